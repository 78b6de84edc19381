"""The equations of the largest margin, for any link and any population of features.

Setting.  n labelled features y_i u_i (`populations`, `limitlab.models.links`), kappa = max_{|a| <= 1} min_i y_i <a, u_i>.
Limit.    n, N -> infinity with fixed N/n.
Result.   At margin 1 (|a| = 1/kappa) a sample's margin is w = c1 T + c2 Z, where T = y L is label times its score, as the
          features see it. With h = (1 - w)_+, P = P(w < 1), F2 = E h^2 and b = E[dh/dT]-type average below,

              c1 = b W1,   c1^2 + c2^2 = b^2 W2 + (F2/P^2)(N/n) E2,   P = (N/n) E1,                                      (5)
              kappa^-2 = b^2 W12 + (F2/P^2)(N/n) E12,   error = P(w <= 0),   share of support vectors = P.                (6)

          The data can be separated exactly when (N/n) rank > min_c E(Z - c T)_+^2.                                       (7)

          Derivation and equation numbers: docs/theory/margins.md.
Status.   For Gaussian features a theorem (Montanari, Ruan, Sohn and Yan 2019); for random features a conjecture there.
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
ROUNDS = (8, 40, 200, 2000)  # damped steps before each attempt of the root finder
CLOSE = 1.3  # loads below this multiple of the threshold start from the linear response there
STEP = 1e-4  # of 1/c2 for the derivative at the threshold
RESIDUAL = 1e-11  # of equations (5), relative
FINER = 32  # nodes per panel for the estimate of the quadrature's error
FLOOR = 1e-9  # of the penalty while iterating
LARGEST_LOG = 60.0


@dataclass(frozen=True)
class MarginPoint:
    """The solution of (5) and the observables (6). Where the data cannot be separated only `separable` has a meaning."""

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


def truncated(labels: Labels, rho: float, c1: float, c2: float, order: int = 24) -> Moments:
    """P, F2 and b of w = c1 T + c2 Z by integrating Z in closed form.

    T is seen through a channel of correlation rho; folding its noise into Z leaves the link itself under one integral
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
    return Moments(active, square, rho * (float(weight @ (t * first)) / active + near))


# -- separability -------------------------------------------------------------------------------------------------------


def separability_threshold(labels: Labels, rho: float) -> float:
    """The load above which a perfect separation exists: min_c E(Z - c T)_+^2, for features of correlation rho.

    Parameters
    ----------
    labels
        Link and strength.
    rho
        Correlation between the features' best guess and the score behind the label.

    Examples
    --------
    >>> from limitlab.models.links import Link
    >>> round(separability_threshold(Labels(Link("sign")), 0.8), 10)
    0.3191731999
    >>> separability_threshold(Labels(Link("probit"), 0.0), 1.0)       # labels by coin flips: Cover's 1/2
    0.5
    """
    return _separation(labels, rho)[0]


def _separation(labels: Labels, rho: float) -> tuple[float, float]:
    """The threshold and the slope c that attains it (for labels whose correlation with the score is not negative)."""
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
    """The largest margin in the limit, and what comes with it.

    Parameters
    ----------
    labels
        Link and strength; E[y L] must not be negative (else use the link t -> f(-t), which has the same margin).
    population
        What the features look like.

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
        found = root(equations.residual, start, method="hybr", options=dict(xtol=1e-14))
        worst = float(np.abs(equations.residual(found.x)).max())
        if worst < RESIDUAL:
            distance = 1 - threshold / load  # the equations lose digits where they degenerate
            error = max(worst, float(np.abs(equations.residual(found.x, FINER)).max())) / distance
            return equations.point(found.x, error)
    raise ConvergenceError(
        f"the equations of the margin did not converge at load {load:.6g} (threshold {threshold:.6g})", None, worst
    )


class _Equations:
    """Equations (5) in the unknowns (log c1/c2, log c2, log gam); without the first where labels are unrelated to features."""

    def __init__(self, labels: Labels, population: Population, informative: bool):
        self.labels, self.population, self.rho = labels, population, population.correlation
        self.informative = informative

    def starts(self, threshold: float, slope: float) -> Iterator[Array]:
        """Where to look for the root: near the threshold by linear response, then along a damped iteration."""
        if threshold == 0:  # noiseless: few samples per feature leave c1 = n/N, c2 of order one
            load = self.population.load
            yield self.pack(1 / load + 1, np.pi / 2, load**2 + load)
        elif self.population.load * self.population.rank < CLOSE * threshold:
            yield self.linear_response(threshold, slope)
        c1, c2 = float(self.informative), 1.0
        for steps in ROUNDS:
            c1, c2 = self.iterate(c1, c2, steps)
            yield self.pack(c1, c2, self._penalty(self.moments(c1, c2).active))

    def linear_response(self, threshold: float, slope: float) -> Array:
        """At the threshold 1/c2 and gam vanish; to first order they are proportional to the distance from it."""
        average, delta = self.population.averages(0.0), STEP
        at = self.moments(slope / delta, 1 / delta)
        first = (at.square * delta**2 / at.active - 1) / delta  # d(F/P)/d(1/c2) = E h/P, h = (Z - c T)_+
        ratio = first / float(average.E12 / average.E1 + slope**2 * average.W12)  # gam c2
        load = at.active / float(self.population.averages(ratio * delta).E1) * self.population.rank
        distance = self.population.load * self.population.rank - threshold
        delta = STEP * distance / max(load - threshold, STEP * 1e-3)
        return self.pack(slope / delta, 1 / delta, ratio * delta)

    def iterate(self, c1: float, c2: float, steps: int) -> tuple[float, float]:
        """Damped iteration of the three equations, the penalty eliminated."""
        for _ in range(steps):
            found = self.moments(c1, c2)
            new1, size = self._map(found, self.population.averages(self._penalty(found.active)))
            new2 = float(np.sqrt(max(size - new1**2, 1e-6 * size)))
            c1, c2 = c1 + DAMPING * (new1 - c1), c2 + DAMPING * (new2 - c2)
        return c1, c2

    def residual(self, unknowns: Array, order: int = 24) -> Array:
        """How far (5) is from holding, relative to the size of each equation."""
        c1, c2, penalty = self.read(unknowns)
        found, average = truncated(self.labels, self.rho, c1, c2, order), self.population.averages(penalty)
        new1, size = self._map(found, average)
        total = c1**2 + c2**2
        wanted = self.population.load * float(average.E1)
        last = [1 - size / total, found.active / wanted - 1]
        return np.array([(c1 - new1) / np.sqrt(total), *last] if self.informative else last)

    def point(self, unknowns: Array, accuracy: float) -> MarginPoint:
        """The observables (6)."""
        c1, c2, penalty = self.read(unknowns)
        found, average = self.moments(c1, c2), self.population.averages(penalty)
        noise = found.square / found.active**2 * self.population.load
        margin = float((found.slope**2 * average.W12 + noise * average.E12) ** -0.5)
        error = misclassification(self.labels, self.rho * c1 / float(np.hypot(c1, c2)))
        return MarginPoint(True, margin, error, found.active, c1 * margin, c2 * margin, max(accuracy, 1e-13))

    def moments(self, c1: float, c2: float) -> Moments:
        """P, F2, b at one pair."""
        return truncated(self.labels, self.rho, c1, c2)

    def pack(self, c1: float, c2: float, penalty: float) -> Array:
        """(c1, c2, gam) as unknowns."""
        last = [np.log(c2), np.log(penalty)]
        return np.array([np.log(c1 / c2), *last] if self.informative else last)

    def read(self, unknowns: Array) -> tuple[float, float, float]:
        """(c1, c2, gam) from the unknowns; trial points stay clear of overflow."""
        values = np.exp(np.clip(unknowns, -LARGEST_LOG, LARGEST_LOG))
        c2, penalty = float(values[-2]), float(values[-1])
        return (float(values[0]) * c2 if self.informative else 0.0), c2, penalty

    def _map(self, found: Moments, average: Averages) -> tuple[float, float]:
        """The right sides of the first two equations."""
        noise = found.square / found.active**2 * self.population.load
        return float(found.slope * average.W1), float(found.slope**2 * average.W2 + noise * average.E2)

    def _penalty(self, active: float) -> float:
        """The penalty at which P = (N/n) E1; next to nothing where P is still too large for any."""
        share = active / self.population.load
        return max(self.population.penalty(share), FLOOR) if share < self.population.rank * (1 - 1e-12) else FLOOR
