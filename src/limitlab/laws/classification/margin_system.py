"""The equations of the largest margin, for any link and any population of features.

Setting.  n labelled features y_i u_i (`populations`, `limitlab.models.links`), kappa = max_{|a| <= 1} min_i y_i <a, u_i>.
Limit.    n, N -> infinity with fixed N/n.
Result.   At margin 1 (|a| = 1/kappa) a sample's margin is w = c1 T + c2 Z, where T is the label times the standardised prediction of the
          score from the features. With h = (1 - w)_+, P = P(w < 1), F2 = E h^2 and b = rho (E[T_L h]/P + rho c1), where T_L is the label
          times the score and rho the correlation of prediction and score,

              c1 = b W1,   c1^2 + c2^2 = b^2 W2 + (F2/P^2)(N/n) E2,   P = (N/n) E1,                                      (5)
              kappa^-2 = b^2 W12 + (F2/P^2)(N/n) E12,   error = P(w <= 0),   share of support vectors = P.                (6)

          The data can be separated exactly when (N/n) rank > min_c E(Z - c T)_+^2.                                       (7)

          Derivation and equation numbers: docs/theory/margins.md.
Status.   Theorem for Gaussian features (Montanari, Ruan, Sohn and Yan 2019). For random features it is a conjecture of the same paper.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import ConvergenceError
from limitlab.laws.classification.populations import Averages, Population
from limitlab.models.links import Labels, misclassification

__all__ = ["separability_threshold", "solve_margin"]

Array = NDArray[np.float64]

DAMPING = 0.7
ROUNDS = (8, 40, 200, 2000)  # numbers of damped iterations before each call of the root finder
CLOSE = 1.3  # loads below this multiple of the threshold start from the linear response there
STEP = 1e-4  # step of 1/c2 in the derivative at the threshold
RESIDUAL = 1e-11  # allowed relative residual of equations (5)
FINER = 32  # nodes per panel in the estimate of the quadrature error
FLOOR = 1e-9  # least penalty during the iteration
LARGEST_LOG = 150.0


@dataclass(frozen=True)
class MarginPoint:
    """The solution of (5) and the observables (6). If the data cannot be separated, only `separable` is computed."""

    separable: bool
    margin: float = 0.0
    error: float = np.inf
    support: float = np.inf
    signal: float = 0.0  # c1, at |a| = 1
    spread: float = 0.0  # c2, at |a| = 1
    accuracy: float = 1e-13


class Moments(NamedTuple):
    """Averages of the truncated margin h = (1 - w)_+."""

    active: float  # P
    square: float  # F2
    slope: float  # b
    pull: float  # rho E[T_L h]/P, which is b - rho^2 c1
    pull_size: float  # the same with |T_L|, the size of the terms that cancel in it


def truncated(labels: Labels, rho: float, c1: float, c2: float, order: int = 24) -> Moments:
    """Return P, F2 and b of w = c1 T + c2 Z, with the integral over Z in closed form.

    The features have correlation rho with the score. The remaining noise is added to Z, so that one integral over the link remains
    (docs/theory/margins.md, eq. 4).
    """
    from scipy.special import ndtr

    near, far = rho * c1, float(np.sqrt(c2**2 + (1 - rho) * (1 + rho) * c1**2))
    t, weight = labels.rule([(1 / near, far / abs(near))] if near else (), order)
    v = 1 - near * t
    below, density = ndtr(v / far), np.exp(-((v / far) ** 2) / 2) / np.sqrt(2 * np.pi)
    first = v * below + far * density
    active = float(weight @ below)
    square = float(weight @ ((v**2 + far**2) * below + v * far * density))
    pull, pull_size = rho * float(weight @ (t * first)) / active, rho * float(weight @ (np.abs(t) * first)) / active
    return Moments(active, square, pull + rho * near, pull, pull_size)


# -- separability -------------------------------------------------------------------------------------------------------


def separability_threshold(labels: Labels, rho: float) -> float:
    """Return the number of features per sample above which some classifier separates the training data.

    It is min_c E(Z - c T)_+^2 with a standard Gaussian Z and T = y G. Here y is the label, and G is a Gaussian that has the correlation
    `rho` with the score of the label (docs/theory/margins.md, eq. 7).

    Parameters
    ----------
    labels
        Link and strength.
    rho
        Correlation between the best linear prediction from the features and the score of the label.

    Examples
    --------
    >>> from limitlab.models.links import Link
    >>> round(separability_threshold(Labels(Link("sign")), 0.8), 10)
    0.3191731999
    >>> separability_threshold(Labels(Link("probit"), 0.0), 1.0)       # labels by coin flips (Cover)
    0.5
    """
    return _separation(labels, rho)[0]


def _separation(labels: Labels, rho: float) -> tuple[float, float]:
    """Return the threshold and its minimiser c, for labels whose correlation with the score is not negative."""
    from scipy.special import ndtr

    from limitlab.numerics.roots import increasing_root_log

    t, weight = labels.rule()
    if abs(weight @ t) < 1e-14 or rho == 0:
        return 0.5, 0.0
    if rho == 1 and float(weight @ (t < 0)) < 1e-15:
        return 0.0, np.inf

    def parts(c: float) -> tuple[float, float]:
        near, far = rho * c, float(np.sqrt(1 + (1 - rho) * (1 + rho) * c**2))
        t, weight = labels.rule([(0.0, far / near)])
        v = -near * t
        below, density = ndtr(v / far), np.exp(-((v / far) ** 2) / 2) / np.sqrt(2 * np.pi)
        first = v * below + far * density
        falling = rho * float(weight @ (t * first)) - (1 - rho) * (1 + rho) * c * float(weight @ below)
        return float(weight @ ((v**2 + far**2) * below + v * far * density)), -falling

    slope = float(increasing_root_log(np.vectorize(lambda c: parts(float(c))[1])))
    return parts(slope)[0], slope


# -- the solution -------------------------------------------------------------------------------------------------------


def solve_margin(labels: Labels, population: Population) -> MarginPoint:
    """Return the limits of the largest margin, of its error and of the share of support vectors.

    They are equation (6) of docs/theory/margins.md.

    Parameters
    ----------
    labels
        Link and strength. The mean E[y L] of label times score must not be negative. If it is, use the link t -> f(-t), which has the
        same margin.
    population
        Load, correlation and spectral averages of the features.

    Examples
    --------
    >>> from limitlab.laws.classification.populations import Isotropic
    >>> from limitlab.models.links import Link
    >>> point = solve_margin(Labels(Link("sign")), Isotropic(load=0.6))
    >>> round(point.margin, 10), round(point.error, 10)
    (0.5294405526, 0.2095312863)
    """
    from scipy.optimize import root

    rho, load = population.correlation, population.load * population.rank
    threshold, slope = _separation(labels, rho)
    if load <= threshold:
        return MarginPoint(separable=False)
    equations = _Equations(labels, population, informative=slope > 0)
    worst = np.inf
    for start in equations.starts(threshold, slope):
        solution = root(equations.residual, start, method="hybr", options=dict(xtol=1e-14))
        worst = float(np.abs(equations.residual(solution.x)).max())
        if worst < RESIDUAL:
            distance = 1 - threshold / load  # close to the threshold the equations lose digits in this proportion
            error = max(worst, float(np.abs(equations.residual(solution.x, FINER)).max())) / distance
            return equations.point(solution.x, error)
    raise ConvergenceError(
        f"the iteration for the largest margin did not converge at {load:.6g} features per sample (separable above {threshold:.6g})",
        None,
        worst,
    )


class _Equations:
    """Equations (5) in the unknowns (log c1/c2, log c2, log gam), without the first if labels are independent of features."""

    def __init__(self, labels: Labels, population: Population, informative: bool):
        self.labels, self.population, self.rho = labels, population, population.correlation
        self.informative = informative

    def starts(self, threshold: float, slope: float) -> Iterator[Array]:
        """Return starting points for the root finder, by linear response near the threshold, then along a damped iteration."""
        if threshold == 0:
            load = self.population.load  # for small loads c1 is near n/N, c2 of order one, and gam of order (N/n)^2
            yield self.pack(1 / load + 1, np.pi / 2, load**2 * (1 + 1 / (1 + load)))
        elif self.population.load * self.population.rank < CLOSE * threshold:
            yield self.linear_response(threshold, slope)
        c1, c2 = float(self.informative), 1.0
        for steps in ROUNDS:
            c1, c2 = self.iterate(c1, c2, steps)
            yield self.pack(c1, c2, self._penalty(self.moments(c1, c2).active))

    def linear_response(self, threshold: float, slope: float) -> Array:
        """Return the unknowns to first order in the distance from the threshold, at which 1/c2 and gam vanish."""
        average, delta = self.population.averages(0.0), STEP
        at = self.moments(slope / delta, 1 / delta)
        first = (at.square * delta**2 / at.active - 1) / delta  # d(F/P)/d(1/c2) = E h/P, h = (Z - c T)_+
        ratio = first / float(average.E12 / average.E1 + slope**2 * average.W12)  # gam c2
        load = at.active / float(self.population.averages(ratio * delta).E1) * self.population.rank
        distance = self.population.load * self.population.rank - threshold
        delta = STEP * distance / max(load - threshold, STEP * 1e-3)
        return self.pack(slope / delta, 1 / delta, ratio * delta)

    def iterate(self, c1: float, c2: float, steps: int) -> tuple[float, float]:
        """Return c1 and c2 after damped iterations of the three equations, with the penalty eliminated."""
        for _ in range(steps):
            hinge = self.moments(c1, c2)
            new1, size = self._map(hinge, self.population.averages(self._penalty(hinge.active)))
            new2 = float(np.sqrt(max(size - new1**2, 1e-6 * size)))
            c1, c2 = c1 + DAMPING * (new1 - c1), c2 + DAMPING * (new2 - c2)
        return c1, c2

    def residual(self, unknowns: Array, order: int = 24) -> Array:
        """Return the residuals of (5), relative to the size of each equation.

        With few features per sample c1 is large, and c1 - b W1 and c1^2 - b^2 W2 are small differences of large numbers. The terms that
        cancel are therefore subtracted by hand: c1 (1 - rho^2 W1) = (b - rho^2 c1) W1 and c2^2 = b^2 (W2 - W1^2) + (F2/P^2)(N/n) E2.
        """
        c1, c2, penalty = self.read(unknowns)
        hinge, average = truncated(self.labels, self.rho, c1, c2, order), self.population.averages(penalty)
        noise = hinge.square / hinge.active**2 * self.population.load
        width = float(hinge.slope**2 * average.variance + noise * average.E2)
        support = self.population.load * float(average.E1)
        last = [1 - width / c2**2, hinge.active / support - 1]
        if not self.informative:
            return np.array(last)
        kept = c1 * ((1 - self.rho) * (1 + self.rho) + self.rho**2 * float(average.lost))
        pulled, size = hinge.pull * float(average.W1), hinge.pull_size * float(average.W1)
        return np.array([2 * (kept - pulled) / (abs(kept) + size), *last])

    def point(self, unknowns: Array, accuracy: float) -> MarginPoint:
        """Return the observables (6)."""
        c1, c2, penalty = self.read(unknowns)
        hinge, average = self.moments(c1, c2), self.population.averages(penalty)
        noise = hinge.square / hinge.active**2 * self.population.load
        margin = float((hinge.slope**2 * average.W12 + noise * average.E12) ** -0.5)
        length, rest = float(np.hypot(c1, c2)), float(np.sqrt((1 - self.rho) * (1 + self.rho)))
        error = misclassification(self.labels, self.rho * c1 / length, spread=float(np.hypot(c2, rest * c1)) / length)
        return MarginPoint(True, margin, error, hinge.active, c1 * margin, c2 * margin, max(accuracy, 1e-13))

    def moments(self, c1: float, c2: float) -> Moments:
        """Return P, F2 and b at a pair (c1, c2)."""
        return truncated(self.labels, self.rho, c1, c2)

    def pack(self, c1: float, c2: float, penalty: float) -> Array:
        """Return the unknowns for (c1, c2, gam)."""
        last = [np.log(c2), np.log(penalty)]
        return np.array([np.log(c1 / c2), *last] if self.informative else last)

    def read(self, unknowns: Array) -> tuple[float, float, float]:
        """Return (c1, c2, gam) from the unknowns, clipped to avoid overflow at trial points."""
        values = np.exp(np.clip(unknowns, -LARGEST_LOG, LARGEST_LOG))
        c2, penalty = float(values[-2]), float(values[-1])
        return (float(values[0]) * c2 if self.informative else 0.0), c2, penalty

    def _map(self, hinge: Moments, average: Averages) -> tuple[float, float]:
        """Return the right sides of the first two equations."""
        noise = hinge.square / hinge.active**2 * self.population.load
        return float(hinge.slope * average.W1), float(hinge.slope**2 * average.W2 + noise * average.E2)

    def _penalty(self, active: float) -> float:
        """Return the penalty at which P = (N/n) E1, or a very small penalty if P is too large for any penalty."""
        share = active / self.population.load
        return max(self.population.penalty(share), FLOOR) if share < self.population.rank * (1 - 1e-12) else FLOOR
