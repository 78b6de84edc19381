"""Wide two-layer networks f(x) = (1/N) sum_i sigma(x; theta_i) and how the experiments train them.

One-pass SGD on two centred Gaussians (compiled), and neurons of one weight under the gradient of the population risk, with and without
noise. Nothing here knows about limits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

BLOCK = 4096  # samples that are drawn at once


# -- one-pass SGD on two Gaussians ------------------------------------------------------------------------------------


def ramp(z: Any, knots: tuple[float, float], levels: tuple[float, float]) -> Any:
    """The activation of the two-Gaussians network: one level below the first knot, the other above the second, linear between.

    >>> ramp(np.array([0.0, 1.0, 2.0]), (0.5, 1.5), (-2.5, 7.5)).tolist()
    [-2.5, 2.5, 7.5]
    """
    slope = (levels[1] - levels[0]) / (knots[1] - knots[0])
    return levels[0] + slope * (np.clip(z, *knots) - knots[0])


@numba.njit(cache=True, nogil=True, fastmath=True)
def _ramp_steps(w: Any, x: Any, y: Any, step: float, low: float, high: float, base: float, slope: float) -> None:
    """One step w_i += 2 step (y - f) s'(<w_i, x>) x per row of x, in place."""
    width, dimension = w.shape
    z = np.empty(width)
    for row in range(x.shape[0]):
        total = 0.0
        for i in range(width):
            score = 0.0
            for k in range(dimension):
                score += w[i, k] * x[row, k]
            z[i] = score
            total += min(max(score, low), high)
        output = base + slope * (total / width - low)
        move = 2 * step * (y[row] - output) * slope
        for i in range(width):
            if low < z[i] < high:
                for k in range(dimension):
                    w[i, k] += move * x[row, k]


def ramp_sgd(
    rng: np.random.Generator,
    weights: Array,
    separation: float,
    knots: tuple[float, float],
    levels: tuple[float, float],
    step: float,
    counts: Sequence[int] | NDArray[np.int64],
) -> Iterator[Array]:
    """The weights after the given numbers of samples (increasing): one fresh sample per step.

    Labels are +-1 with equal probability and x given y is N(0, (1 + y separation)^2 I). The array that is yielded is overwritten later.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> paths = ramp_sgd(rng, 0.3 * rng.standard_normal((50, 8)), 0.5, (0.5, 1.5), (-2.5, 7.5), 1e-3, [0, 500])
    >>> [round(float(np.linalg.norm(w, axis=1).mean()), 1) for w in paths]
    [0.8, 1.4]
    """
    w, done = np.array(weights, dtype=float, order="C"), 0
    slope = (levels[1] - levels[0]) / (knots[1] - knots[0])
    for count in counts:
        while done < count:
            rows = min(BLOCK, int(count) - done)
            y = rng.integers(0, 2, rows) * 2.0 - 1.0
            x = rng.standard_normal((rows, w.shape[1]))
            x *= (1 + separation * y)[:, None]
            _ramp_steps(w, x, y, step, *knots, levels[0], slope)
            done += rows
        yield w


def ramp_risk(
    rng: np.random.Generator,
    weights: Array,
    separation: float,
    knots: tuple[float, float],
    levels: tuple[float, float],
    points: int,
) -> float:
    """The risk E (y - f)^2 of a network on `points` new inputs of each class, whose lengths are stratified.

    A wide network sees little else of an input than its length, so that strata of equal probability remove most of the noise.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> round(ramp_risk(rng, 0.3 * rng.standard_normal((200, 8)), 0.5, (0.5, 1.5), (-2.5, 7.5), 4000), 1)
    1.2
    """
    from scipy.special import gammaincinv

    dimension, total = weights.shape[1], 0.0
    for label in (-1.0, 1.0):
        levels_of_length = (np.arange(points) + rng.random(points)) / points
        lengths = np.sqrt(2 * gammaincinv(dimension / 2, levels_of_length))
        x = rng.standard_normal((points, dimension))
        x *= ((1 + label * separation) * lengths / np.linalg.norm(x, axis=1))[:, None]
        for part in np.array_split(x, math.ceil(points * len(weights) / 2**21)):
            total += float(np.sum((label - ramp(part @ weights.T, knots, levels).mean(axis=1)) ** 2))
    return total / (2 * points)
