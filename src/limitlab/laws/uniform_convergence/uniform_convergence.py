"""How far empirical and population risk can be apart, over all linear predictors of bounded norm.

Setting.  y = <theta*, x> + tau e, |theta*| = r, x standard Gaussian in R^d, n samples. Rhat(theta) = mean (y - <theta, x>)^2 and R its
          expectation, squared errors without a factor 1/2; the class is |theta| <= rho.
Limit.    n, d -> infinity with d/n -> delta (`ratio`).
Result.   docs/theory/uniform_convergence.md, equations (4)-(5): with q = sqrt(rho^2 - p^2) and E^2 = q^2 + (r - p)^2 + tau^2,

              sup (Rhat - R) -> max_p  delta q^2 + 2 sqrt(delta) q E,
              sup (R - Rhat) -> max_p  E^2 - (E - sqrt(delta) q)_+^2,          p in [-rho, rho].

Status.   Derived by Gordon's comparison; the first equals the exact value of a convex dual over the Marchenko-Pastur law.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.laws import Draw, Experiment, Law, Values, observable, parameter
from limitlab.laws.uniform_convergence._trust_region import largest_on_ball

__all__ = ["UniformConvergence", "exact_deviations"]

Array = NDArray[Any]

GRID = 721  # angles of the first look at the maximum


def _highest(height: Callable[[Any], Any]) -> float:
    """The maximum over angles in [0, pi] of a function with few peaks: a grid, then refinement around its best points."""
    from scipy.optimize import minimize_scalar

    angles = np.linspace(0.0, np.pi, GRID)
    values = height(angles)
    peaks = np.flatnonzero((values >= np.roll(values, 1)) | (values >= np.roll(values, -1)))
    best = float(values.max())
    for peak in peaks[np.argsort(values[peaks])][-4:]:
        around = (float(angles[max(peak - 1, 0)]), float(angles[min(peak + 1, GRID - 1)]))
        found = minimize_scalar(lambda angle: -height(angle), bounds=around, method="bounded", options={"xatol": 1e-11})
        best = max(best, float(-found.fun))
    return best


def deviations(ratio: float, radius: float, signal: float, noise: float) -> tuple[float, float]:
    """The limits of sup (Rhat - R) and of sup (R - Rhat) (eqs. 4-5); p = rho cos(angle), q = rho sin(angle).

    >>> [round(value, 10) for value in deviations(0.5, 1.0, 0.0, 1.0)]
    [2.5, 1.5]
    """
    root = np.sqrt(ratio)

    def shape(angle: Any) -> tuple[Any, Any]:
        q, p = radius * np.sin(angle), radius * np.cos(angle)
        return q, np.sqrt(q**2 + (signal - p) ** 2 + noise**2)

    def above(angle: Any) -> Any:
        q, error = shape(angle)
        return ratio * q**2 + 2 * root * q * error

    def below(angle: Any) -> Any:
        q, error = shape(angle)
        return error**2 - np.maximum(error - root * q, 0.0) ** 2

    return _highest(above), _highest(below)


def exact_deviations(X: Array, y: Array, target: Array, noise: float, radius: float) -> tuple[float, float]:
    """sup (Rhat - R) and sup (R - Rhat) over |theta| <= radius for one data set, exactly: two quadratic problems on a ball.

    Parameters
    ----------
    X, y
        Data; the inputs are taken to be standard Gaussian.
    target, noise
        theta* and tau, which decide the population risk |theta - theta*|^2 + tau^2.
    radius
        rho.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 2.0]])
    >>> [round(value, 6) for value in exact_deviations(X, np.zeros(2), np.zeros(2), 0.0, 1.0)]
    [1.0, 0.5]
    """
    n = len(y)
    values, vectors = np.linalg.eigh(X.T @ X / n)
    # Rhat - R = theta' A theta - 2 b' theta + c
    curvature, slope = values - 1, vectors.T @ (X.T @ y / n - target)
    constant = float(y @ y / n - target @ target - noise**2)
    above = largest_on_ball(curvature, -slope, radius) + constant
    return above, largest_on_ball(-curvature, slope, radius) - constant


class UniformConvergence(Law):
    """How far apart can empirical and population risk be, over all linear predictors of bounded norm?

    Examples
    --------
    >>> found = UniformConvergence(ratio=0.1, radius=1.0, signal=1.0, noise=0.5).theory()
    >>> round(float(found.sup_empirical_minus_population), 9), round(float(found.sup_population_minus_empirical), 9)
    (1.109943731, 0.92984772)
    """

    status = "derived"
    regime = "n, d -> infinity with d/n fixed"
    assumptions = ("standard Gaussian inputs", "a linear target with independent Gaussian noise", "squared loss")
    references = ("bartlett2002rademacher", "gordon1988milman")
    page = "uniform_convergence"
    observables = {
        "sup_empirical_minus_population": observable("largest excess of the empirical risk", r"\sup(\hat R-R)"),
        "sup_population_minus_empirical": observable("largest excess of the population risk", r"\sup(R-\hat R)"),
    }
    simulation = Experiment(
        "dimension d",
        sizes=(50, 100, 200),
        draws=200,
        rate=1.0,  # measured: 7.8, 4.2, 2.0, 1.1 per cent at d = 20, 40, 80, 160
    )
    # Fewer and more features than samples; in the second the empirical risk of some predictors is 0
    points = (
        dict(ratio=0.4, radius=1.5, signal=0.8, noise=0.6),
        dict(ratio=2.5, radius=2.0, signal=1.2, noise=0.7),
    )

    ratio: float = parameter(0.5, symbol=r"\delta = d/n", above=0, scale="log", count="size / value")
    radius: float = parameter(1.0, "largest norm in the class", symbol=r"\rho", least=0)
    signal: float = parameter(1.0, least=0)
    noise: float = parameter(0.5, least=0)

    def predicted(self) -> Values:
        """Two maxima over an angle."""
        above, below = deviations(self.ratio, self.radius, self.signal, self.noise)
        return dict(sup_empirical_minus_population=above, sup_population_minus_empirical=below, accuracy=1e-12)

    def measured(self, draw: Draw) -> Values:
        """One data set, and the exact suprema for it."""
        d, n, rng = draw.size, draw.count("ratio"), draw.rng
        X = rng.standard_normal((n, d))
        target = np.zeros(d)
        target[0] = self.signal
        y = X @ target + self.noise * rng.standard_normal(n)
        above, below = exact_deviations(X, y, target, self.noise, self.radius)
        return dict(sup_empirical_minus_population=above, sup_population_minus_empirical=below)
