"""The largest gap between empirical and population risk over all linear predictors of bounded norm.

Setting.  y = <theta*, x> + tau e, |theta*| = r, x and e standard Gaussian, n samples in R^d. Rhat(theta) is the mean of
          (y - <theta, x>)^2 over the samples, and R is its expectation. The class is |theta| <= rho.
Limit.    n, d -> infinity with d/n -> delta (`ratio`).
Result.   With q = sqrt(rho^2 - p^2) and E^2 = q^2 + (r - p)^2 + tau^2 (docs/theory/uniform_convergence.md, equations 4 and 5),

              sup (Rhat - R) -> max_p  delta q^2 + 2 sqrt(delta) q E,
              sup (R - Rhat) -> max_p  E^2 - (E - sqrt(delta) q)_+^2,          p in [-rho, rho].

Status.   Derived by Gordon's comparison theorem. The first limit equals the exact value of a dual problem (equation 6).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from limitlab.laws import Draw, Experiment, Headline, Law, Values, observable, parameter

__all__ = ["UniformConvergence", "exact_deviations"]

Array = NDArray[Any]


GRID = 721  # angles at which the maximum is searched first


def _highest(height: Callable[[Any], Any]) -> float:
    """Return the maximum over angles in [0, pi] of a function with few peaks, by a grid and refinement around its best points."""
    from scipy.optimize import minimize_scalar

    angles = np.linspace(0.0, np.pi, GRID)
    values = height(angles)
    peaks = np.flatnonzero((values >= np.roll(values, 1)) | (values >= np.roll(values, -1)))
    best = float(values.max())
    for peak in peaks[np.argsort(values[peaks])][-4:]:
        around = (float(angles[max(peak - 1, 0)]), float(angles[min(peak + 1, GRID - 1)]))
        refined = minimize_scalar(lambda angle: -height(angle), bounds=around, method="bounded", options={"xatol": 1e-11})
        best = max(best, float(-refined.fun))
    return best


def deviations(ratio: float, radius: float, signal: float, noise: float) -> tuple[float, float]:
    """Return the limits of sup (Rhat - R) and of sup (R - Rhat) (eqs. 4-5), with p = rho cos(angle) and q = rho sin(angle).

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
    """Return the largest values of Rhat - R and of R - Rhat over |theta| <= radius, exactly, for one data set.

    Rhat is the empirical risk of the linear predictor theta, and R is its population risk, both with squared loss.

    Parameters
    ----------
    X, y
        Data. The inputs are assumed to be standard Gaussian.
    target, noise
        theta* and tau, which determine the population risk |theta - theta*|^2 + tau^2.
    radius
        Largest norm rho of the predictors.

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
    """How large can the gap between empirical and population risk be, over all linear predictors of bounded norm?

    Examples
    --------
    >>> limit = UniformConvergence(ratio=0.1, radius=1.0, signal=1.0, noise=0.5).theory()
    >>> round(float(limit.sup_empirical_minus_population), 9), round(float(limit.sup_population_minus_empirical), 9)
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
    # Fewer and more features than samples; at the second point the empirical risk of some predictors is 0
    points = (
        dict(ratio=0.4, radius=1.5, signal=0.8, noise=0.6),
        dict(ratio=2.5, radius=2.0, signal=1.2, noise=0.7),
    )
    headline = Headline(
        "The worst gap grows with features per sample",
        x="ratio",
        over=(0.05, 5.0, 41),
        scale="log",
        show=("sup_population_minus_empirical", "sup_empirical_minus_population"),
        size=100,
        draws=3,
        places=(0.1, 0.3, 0.6, 1.0, 2.0, 5.0),
        sliders=("radius", "noise"),
    )

    ratio: float = parameter(0.5, symbol=r"\delta = d/n", above=0, scale="log", count="size / value")
    radius: float = parameter(1.0, "largest norm in the class", symbol=r"\rho", least=0)
    signal: float = parameter(1.0, least=0)
    noise: float = parameter(0.5, least=0)

    def predicted(self) -> Values:
        """Return the two limits as maxima over an angle."""
        above, below = deviations(self.ratio, self.radius, self.signal, self.noise)
        return dict(sup_empirical_minus_population=above, sup_population_minus_empirical=below, accuracy=1e-12)

    def measured(self, draw: Draw) -> Values:
        """Draw one data set and compute its largest deviations over the class exactly."""
        d, n, rng = draw.size, draw.count("ratio"), draw.rng
        X = rng.standard_normal((n, d))
        target = np.zeros(d)
        target[0] = self.signal
        y = X @ target + self.noise * rng.standard_normal(n)
        above, below = exact_deviations(X, y, target, self.noise, self.radius)
        return dict(sup_empirical_minus_population=above, sup_population_minus_empirical=below)


# -- the largest value of a quadratic function on a ball, exactly ----------------------------------------------------


def largest_on_ball(curvatures: Array, slopes: Array, radius: float) -> float:
    """Return max of sum_i a_i x_i^2 + 2 s_i x_i over |x| <= radius, for a quadratic in the basis of its eigenvectors.

    By duality the maximum is the minimum over mu >= max(a, 0) of mu radius^2 + sum_i s_i^2/(mu - a_i), a convex function of one variable.
    There is no duality gap, even if the slope has no component along the top eigenvectors (the hard case, in which mu = max a).

    Examples
    --------
    >>> largest_on_ball(np.array([2.0, -1.0]), np.array([0.0, 0.0]), 3.0)
    18.0
    >>> round(largest_on_ball(np.array([-1.0]), np.array([0.5]), 10.0), 12)   # inside: x = 0.5
    0.25
    """
    a, s2, square = np.asarray(curvatures, dtype=float), np.asarray(slopes, dtype=float) ** 2, float(radius) ** 2
    if square == 0:
        return 0.0
    low = max(float(a.max()), 0.0)
    moving = s2 > 0

    def rise(mu: float) -> float:
        return float(square - (s2[moving] / (mu - a[moving]) ** 2).sum())

    def value(mu: float) -> float:
        return float(mu * square + (s2[moving] / (mu - a[moving])).sum())

    at_pole = bool((a[moving] >= low).any())
    if not moving.any() or (not at_pole and rise(low) >= 0):
        return value(low) if moving.any() else low * square
    high = low + float(np.sqrt(s2.sum() / square))
    bottom = low + float(np.sqrt(s2[moving & (a >= low)].sum() / square)) / 2 if at_pole else low
    bottom = bottom if bottom > low or not at_pole else float(np.nextafter(low, np.inf))
    if rise(high) <= 0:  # only by rounding, if the whole slope points along the top eigenvectors
        return value(high)
    if rise(bottom) >= 0:
        return value(bottom)
    return value(float(brentq(rise, bottom, high, xtol=1e-14 * max(high, 1e-300), rtol=1e-14, maxiter=500)))
