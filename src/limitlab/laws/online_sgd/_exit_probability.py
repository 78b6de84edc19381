"""Probability that a noisy contraction x <- (1 - h) x + h xi leaves an interval.

The methods also work for probabilities of 1e-20, which are too small to be estimated by counting simulated paths. For Gaussian xi,
quadrature advances the density of the paths inside the interval from step to step. The probability of leaving is computed as a sum of
positive parts, not as 1 minus the probability of staying, so that no digits are lost. For signs, all paths are enumerated, or paths are
drawn from a tilted distribution and weighted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import Refused

Array = NDArray[np.float64]

MOST_STEPS = 22
"""Largest number of steps; all 2^22 sign paths fit in memory."""


def gaussian_exit_probability(step: float, level: float, steps: int, nodes: int = 1200) -> float:
    """Return the probability that |x| reaches `level` within `steps` steps from 0, for standard Gaussian xi, by quadrature.

    >>> from math import erfc, sqrt
    >>> bool(abs(gaussian_exit_probability(0.1, 0.5, 1) / erfc(5 / sqrt(2)) - 1) < 1e-12)
    True
    """
    from scipy.special import ndtr

    x, weights = np.polynomial.legendre.leggauss(nodes)
    x, weights = level * x, level * weights
    keep = 1 - step
    leaves = ndtr((-level + keep * x) / step) + ndtr((-level - keep * x) / step)  # probability of leaving from x in one step
    kernel = np.exp(-0.5 * ((x[:, None] - keep * x) / step) ** 2) / (step * math.sqrt(2 * math.pi)) * weights
    density = np.exp(-0.5 * (x / step) ** 2) / (step * math.sqrt(2 * math.pi))  # after the first step
    gone = float(2 * ndtr(-level / step))
    for _ in range(steps - 1):
        gone += float(weights @ (leaves * density))
        density = kernel @ density
    return gone


def sign_exit_probability(step: float, level: float, steps: int) -> float:
    """Return the probability that |x| reaches `level` within `steps` steps from 0, for random signs xi, from all 2^steps paths.

    >>> sign_exit_probability(0.5, 0.8, 3)  # +++ and ---: 0.875
    0.25
    """
    if steps > MOST_STEPS:
        raise Refused(
            f"steps = {steps} is not allowed: must be at most {MOST_STEPS}, because all 2^steps paths are "
            "enumerated; estimate the probability with `log_probability`"
        )
    x, out = np.zeros(1), np.zeros(1, dtype=bool)
    for _ in range(steps):
        x = np.concatenate([(1 - step) * x + step, (1 - step) * x - step])
        out = np.concatenate([out, out]) | (np.abs(x) >= level)
    return float(np.mean(out))


class Estimate(NamedTuple):
    """Logarithm and relative standard error of a probability estimated from weighted draws."""

    logarithm: float
    relative_error: float


def tilted_exit_probability(
    rng: np.random.Generator,
    step: float,
    level: float,
    tilts: Array,
    draw: Callable[[np.random.Generator, float, int], Array],
    log_moment: Callable[[Array], Array],
    paths: int,
) -> Estimate:
    """Return an estimate of P(max |x_k| >= level) for symmetric xi, from paths with tilted noise.

    The noise of step k is drawn from e^{tilt_k xi - log_moment(tilt_k)} P(d xi). Tilts increase x. Paths that leave at the upper end are
    counted twice, once for their mirror images. Paths that leave at both ends are neglected; their probability is of the order of the
    square of the result.

    >>> rng = np.random.default_rng(0)
    >>> gauss = lambda rng, tilt, count: tilt + rng.standard_normal(count)
    >>> estimate = tilted_exit_probability(rng, 0.1, 0.5, np.array([5.0]), gauss, lambda p: p * p / 2, 40_000)
    >>> bool(abs(np.exp(estimate.logarithm) / gaussian_exit_probability(0.1, 0.5, 1) - 1) < 5 * estimate.relative_error < 0.1)
    True
    """
    costs = np.asarray(log_moment(tilts))
    x, log_weight, inside = np.zeros(paths), np.zeros(paths), np.ones(paths, dtype=bool)
    for tilt, cost in zip(tilts, costs, strict=True):
        noise = draw(rng, float(tilt), paths)
        x = (1 - step) * x + step * noise
        log_weight[inside] -= tilt * noise[inside] - cost
        inside &= x < level - 1e-12
    hits = log_weight[~inside]
    if not hits.size:
        return Estimate(-math.inf, math.inf)
    top = float(hits.max())
    weights = np.exp(hits - top)
    mean = weights.sum() / paths
    spread = math.sqrt(max(float((weights**2).sum()) / paths - mean**2, 0.0) / paths)
    return Estimate(top + math.log(2 * mean), spread / mean)
