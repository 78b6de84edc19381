"""The largest gap between empirical risk and its expectation among finitely many models.

Setting.  M models that are fixed before the data are drawn. Each is wrong on a new sample with probability p (`error_rate`), independently
          of the others. Rhat_j is the share of errors of model j on n samples, p its expectation, v = p (1 - p) the variance of the loss.
Limit.    n -> infinity (the size) at fixed M (`models`).
Result.   docs/theory/uniform_convergence.md, equations (7)-(8): D = max_j |Rhat_j - p| sqrt(n/v) has P(D < x) -> erf(x/sqrt 2)^M. For one
          model the mean of D is sqrt(2/pi). For many models it grows like sqrt(2 log 2M). The ratio to this leading term tends to 1 so
          slowly that the term is no good approximation at any practical M (`leading_term`).
Status.   Theorem (central limit theorem). For dependent models the mean is an upper bound.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfc

from limitlab._core.cost import Cost
from limitlab.laws import Draw, Experiment, Headline, Law, Values, parameter

__all__ = ["FiniteClass"]

Array = NDArray[Any]

REACH, PANELS, ORDER = 14.0, 56, 16  # of the quadrature; the weight beyond 14 is negligible even for 10^12 models
CLASSES = 400  # independent classes of models in one draw


def largest_deviation(models: ArrayLike) -> tuple[Array, Array]:
    """Return mean and standard deviation of the largest of M standard Gaussian |z_j|. M can be an array.

    Both follow from integrals of 1 - erf(x/sqrt 2)^M.

    >>> mean, spread = largest_deviation([1, 1000])
    >>> mean.round(9).tolist(), spread.round(9).tolist()
    ([0.797884561, 3.435410191], [0.602810275, 0.334874541])
    """
    x, weight = _rule()
    with np.errstate(divide="ignore"):
        log_inside = np.log1p(-erfc(x / math.sqrt(2)))
    outside = -np.expm1(np.asarray(models, dtype=float)[..., None] * log_inside)  # P(D > x)
    mean = outside @ weight
    return mean, np.sqrt(2 * outside @ (weight * x) - mean**2)


@lru_cache(maxsize=1)
def _rule() -> tuple[Array, Array]:
    """Return Gauss-Legendre points and weights on equal panels of [0, REACH]."""
    node, weight = np.polynomial.legendre.leggauss(ORDER)
    half = REACH / PANELS / 2
    centres = half * (2 * np.arange(PANELS) + 1)
    return (centres[:, None] + half * node).ravel(), np.tile(half * weight, PANELS)


class FiniteClass(Law):
    """How large is the gap between empirical risk and its expectation for the worst of M models that were fixed before the data?

    Examples
    --------
    >>> law = FiniteClass(models=1000)
    >>> round(float(law.theory().largest_deviation), 6), round(law.leading_term(), 6)
    (3.43541, 3.898949)
    """

    status = "theorem"
    regime = "n -> infinity at a fixed number of models"
    assumptions = ("models fixed before the data", "losses 0 or 1, independent between models")
    references = ("vapnik1971uniform",)
    page = "uniform_convergence"
    observables = ("largest_deviation", "largest_deviation_std")
    simulation = Experiment(
        "number of samples n",
        sizes=(200, 400, 800),
        draws=80,
        rate=1.0,  # the skewness of the losses moves both tails in opposite directions, so its first order cancels
    )
    # Few and many models, error rates on either side of 1/2
    points = (
        dict(models=10, error_rate=0.3),
        dict(models=300, error_rate=0.6),
    )
    headline = Headline(
        "A million models cost only five standard errors",
        x="models",
        over=(1.0, 1000000.0, 61),
        scale="log",
        show=("largest_deviation",),
        size=400,
        draws=4,
        places=(1.0, 10.0, 100.0, 1000.0, 10000.0),
        sliders=("error_rate",),
    )

    models: int = parameter(100, "number of models", symbol="M", least=1, most=10**12, scale="log")
    error_rate: float = parameter(
        0.3, "probability of an error of every model", note="the limit does not depend on it", symbol="p", above=0, below=1
    )

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of all models of every class."""
        return Cost(1e5 + 3.0 * CLASSES * self.models, 1e7 + 30.0 * CLASSES * self.models)

    def predicted(self, models: Array) -> Values:
        """Return the mean and the standard deviation of the largest deviation by two integrals."""
        mean, spread = largest_deviation(models)
        return dict(largest_deviation=mean, largest_deviation_std=spread, accuracy=1e-11)

    def measured(self, draw: Draw) -> Values:
        """Draw several classes of models, each on its own samples, with binomial numbers of errors."""
        wrong = draw.rng.binomial(draw.size, self.error_rate, (CLASSES, self.models)) / draw.size
        variance = self.error_rate * (1 - self.error_rate)
        worst = np.abs(wrong - self.error_rate).max(axis=1) * math.sqrt(draw.size / variance)
        return dict(largest_deviation=worst.mean(), largest_deviation_std=worst.std(ddof=1))

    def leading_term(self) -> float:
        """Return sqrt(2 log 2M) for M models. The mean largest deviation over this term tends slowly to 1 from below as M grows."""
        return math.sqrt(2 * math.log(2 * self.models))
