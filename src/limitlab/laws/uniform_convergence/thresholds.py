"""Thresholds on the line, an infinite class with an exact law of the largest deviation, and the count of dichotomies.

Setting.  Classifiers f_a(x) = 1{x > a} for all real a, x uniform on [0, 1], loss 0 or 1. With `label_noise` "none" the labels are
          1{x > c}. With "coin" they are 0 or 1 with probability 1/2, so that every classifier has the risk 1/2.
Limit.    n -> infinity (the size); D = sqrt(n) sup_a |Rhat(f_a) - R(f_a)|.
Result.   Without noise D tends to Kolmogorov's variable K, the largest |B(t)| of a Brownian bridge B, for every c, because the increments
          of a bridge from any of its points are a bridge again. With coins D tends to half the largest |W(1) - 2 W(t)| of a Brownian motion
          W (docs/theory/uniform_convergence.md, equations 9 to 11), and

              P(D <= b) = 2 sum_{k >= 1} (-1)^(k+1) exp(-k^2 pi^2/(8 b^2)),   that is  D = pi/(4 K) in law.                    (10)

Status.   Theorem without noise (Kolmogorov 1933). Derived with coins, by the reflection principle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import kolmogi, kolmogorov, zeta

from limitlab._core.cost import Cost
from limitlab.errors import Refused
from limitlab.laws import CLOSED_FORM, Draw, Experiment, Headline, Law, Mark, Values, parameter

__all__ = ["ThresholdClass", "dichotomies"]

Array = NDArray[Any]
Noise = Literal["none", "coin"]

DATA_SETS = 200  # number of data sets in one draw


class ThresholdClass(Law):
    """How large can the gap between empirical and true risk be over all thresholds on the line?

    Examples
    --------
    >>> law = ThresholdClass(label_noise="coin")
    >>> round(float(law.theory().largest_deviation), 9), law.quantile([0.1, 0.5, 0.9]).round(6).tolist()
    (0.984350622, [0.641745, 0.949037, 1.375061])
    """

    status = "theorem"
    regime = "n -> infinity; deviations in units of 1/sqrt(n)"
    assumptions = ("inputs with a continuous distribution on the line", "loss 0 or 1", "independent samples")
    references = ("vapnik1971uniform", "cover1965geometrical")
    page = "uniform_convergence"
    observables = ("largest_deviation", "largest_deviation_std")
    simulation = Experiment(
        "number of samples n",
        sizes=(100, 400, 1600),
        draws=100,
        rate=0.5,  # the empirical process moves in steps of 1/n
    )
    # Both kinds of labels, and a threshold that is not 1/2
    points = (
        dict(label_noise="none", threshold=0.3),
        dict(label_noise="coin"),
    )
    headline = Headline(
        "The worst gap follows the Kolmogorov law",
        x=r"deviation $b$",
        over=(0.2, 2.5, 200),
        show=("probability_at_most",),
        curves=("label_noise", ("none", "coin")),
        size=400,
        draws=10,
        places=(0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0, 2.4),
        sliders=("label_noise", "threshold"),
        marks=(Mark("x", lambda law: float(law.quantile(0.95)), "95 % quantile", each=True),),
    )

    label_noise: Noise = parameter(
        "none", "noise of the labels", note="none, or coin: random labels, 0 or 1 with probability 1/2"
    )
    threshold: float = parameter(
        0.3, "true threshold", note="without noise; the limit does not depend on it", symbol="c", least=0, most=1
    )

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of all data sets of a draw at once."""
        return Cost(1500.0 * size, 1e4 * size)

    def cdf(self, b: ArrayLike) -> Array:
        """Return the limit of P(sqrt(n) sup |Rhat - R| <= b), with the empirical risk Rhat and the population risk R of a threshold."""
        level = np.asarray(b, dtype=float)
        if self.label_noise == "none":
            return np.asarray(np.where(level > 0, 1 - kolmogorov(np.maximum(level, 0.0)), 0.0))
        return np.asarray(np.where(level > 0, kolmogorov(math.pi / 4 / np.maximum(level, 1e-300)), 0.0))  # (10)

    def headline_line(self, values: Array) -> dict[str, Array]:
        """Return the limiting distribution function, for the headline view."""
        return {"probability_at_most": self.cdf(values)}

    def headline_points(self, size: int, seeds: Sequence[int], places: Array) -> dict[str, Array]:
        """Return the share of data sets whose largest deviation is at most each place, for the headline view."""
        worst = [math.sqrt(size) * self.suprema(self.draw(size, seed).rng, size, DATA_SETS) for seed in seeds]
        return {"probability_at_most": np.array([(each[:, None] <= places).mean(axis=0) for each in worst])}

    def quantile(self, p: ArrayLike) -> Array:
        """Return the inverse of `cdf` at p."""
        share = np.asarray(p, dtype=float)
        if not ((share >= 0) & (share <= 1)).all():
            raise Refused(f"p = {p!r} is not allowed: must be between 0 and 1 (probabilities)")
        if self.label_noise == "none":
            return np.asarray(kolmogi(1 - share))
        with np.errstate(divide="ignore"):
            return np.asarray(math.pi / 4 / kolmogi(share))

    def predicted(self) -> Values:
        """Return the moments of Kolmogorov's variable, or of pi/4 over this variable (eq. 11)."""
        if self.label_noise == "none":
            mean, square = math.sqrt(math.pi / 2) * math.log(2), math.pi**2 / 12
        else:
            mean, square = math.pi / 4 * math.sqrt(math.pi / 2), 7 * float(zeta(3.0)) / 8
        return dict(largest_deviation=mean, largest_deviation_std=math.sqrt(square - mean**2), accuracy=CLOSED_FORM)

    def measured(self, draw: Draw) -> Values:
        """Draw several data sets and compute their suprema."""
        worst = math.sqrt(draw.size) * self.suprema(draw.rng, draw.size, DATA_SETS)
        return dict(largest_deviation=worst.mean(), largest_deviation_std=worst.std(ddof=1))

    def suprema(self, rng: np.random.Generator, samples: int, data_sets: int) -> Array:
        """Return the exact largest deviation of the empirical risk from the risk over all thresholds, for `data_sets` data sets."""
        x = np.sort(rng.random((data_sets, samples)), axis=1)
        labels = x > self.threshold if self.label_noise == "none" else rng.random(x.shape) < 0.5
        none, every = np.zeros((data_sets, 1)), np.ones((data_sets, 1))
        # a threshold after the first k samples makes an error at each label 1 among them and each label 0 among the others
        ones = np.concatenate([none, np.cumsum(labels, axis=1)], axis=1)
        empirical = (2 * ones - ones[:, -1:] + samples - np.arange(samples + 1)) / samples
        edges = np.concatenate([none, x, every], axis=1)
        risks = [
            np.abs(ends - self.threshold) if self.label_noise == "none" else 0.5 for ends in (edges[:, :-1], edges[:, 1:])
        ]
        return np.asarray(np.max([np.abs(empirical - risk).max(axis=1) for risk in risks], axis=0))


def dichotomies(points: int, dimension: int) -> int:
    """Return the number of labellings of points in general position by affine halfspaces (Cover's count, eq. 12).

    The number is 2^points exactly up to dimension + 1 points, the Vapnik-Chervonenkis dimension.

    >>> [dichotomies(n, 2) for n in (3, 4, 7)]
    [8, 14, 44]
    """
    for name, value, least in (("points", points, 1), ("dimension", dimension, 0)):
        if isinstance(value, bool) or value != int(value) or value < least:
            raise Refused(f"{name} = {value!r} is not allowed: must be a whole number of at least {least}")
    return 2 * sum(math.comb(int(points) - 1, k) for k in range(int(dimension) + 1))
