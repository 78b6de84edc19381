"""The equations of logistic regression at p/n fixed, and their solution.

Setting, unknowns and the equations (1), (4) and (5) are those of docs/theory/logistic_calibration.md. A sample's score in the fit without
this sample is b + c1 G + c2 Z, and V is the influence of a sample on its score. The four equations (1) are solved for (c1, log c2, log V)
and, with an intercept, b.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import ConvergenceError
from limitlab.laws.classification.gaussian_score import Score, TrueScore
from limitlab.laws.classification.populations import Groups
from limitlab.models.losses import loss
from limitlab.numerics.quadrature import graded_rule

Array = NDArray[np.float64]


RESIDUAL = 1e-11
FINER = 32
LARGEST_LOG = 40.0
CONTINUATION = 1.6  # factor of p/n between two points of a continuation


class Forces(NamedTuple):
    """Averages of the force F of the log-loss on a sample."""

    mean: float  # E F
    along: float  # E[F G]
    square: float  # E F^2
    stiffness: float  # v
    train_loss: float


class Fitted(NamedTuple):
    """The solution of (1)."""

    score: Score
    leverage: float  # V
    train_loss: float
    accuracy: float


def forces(truth: TrueScore, b: float, c1: float, c2: float, scale: float, order: int = 24) -> Forces:
    """Return the averages in (1) by one integral over the score w = b + S U, with S^2 = c1^2 + c2^2 and U standard Gaussian.

    The functions m(U) and g(U) of `gaussian_score` are the averages over the labels at a given U. `scale` is V.
    """
    score = Score(truth, b, c1, c2)
    size, alignment = score.spread, score.alignment
    places = [((shift - b) / size, 1 / size) for shift in (-scale, 0.0, scale)]
    u, weight = graded_rule([*places, *truth.layers(alignment)], order)
    risk, along = truth.seen(u, alignment)
    case, control = (loss("logistic").proximal(sign * (b + size * u), scale) for sign in (1, -1))
    ones, zeros = weight * risk, weight * (1 - risk)
    value = loss("logistic").value
    return Forces(
        mean=float(ones @ case.force - zeros @ control.force),
        along=float((weight * along) @ case.force - (weight * (alignment * u - along)) @ control.force),
        square=float(ones @ case.force**2 + zeros @ control.force**2),
        stiffness=float(ones @ case.stiffness + zeros @ control.stiffness),
        train_loss=float(ones @ value(case.point) + zeros @ value(control.point)),
    )


class _Equations:
    """Equations (1) in the unknowns (c1, log c2, log V) and, with an intercept, b."""

    def __init__(self, truth: TrueScore, population: Groups, ridge: float, fit_intercept: bool):
        self.truth, self.population, self.ridge, self.fit_intercept = truth, population, ridge, fit_intercept

    def read(self, unknowns: Array) -> tuple[float, float, float, float]:
        """Return (b, c1, c2, V) from the unknowns."""
        c2, scale = np.exp(np.clip(unknowns[1:3], -LARGEST_LOG, LARGEST_LOG))
        return (float(unknowns[3]) if self.fit_intercept else 0.0), float(unknowns[0]), float(c2), float(scale)

    def start(self) -> Array:
        """Return the solution for small p/n as a starting point."""
        from scipy.special import expit

        u, weight = graded_rule(self.truth.layers(1.0), 24)
        risk = expit(self.truth.intercept + self.truth.signal * u)
        bend, kappa = float(weight @ (risk * (1 - risk))), self.population.load
        stiff = bend + self.ridge
        unknowns = [self.truth.signal * bend / stiff, math.log(math.sqrt(kappa * bend) / stiff), math.log(kappa / stiff)]
        return np.array([*unknowns, self.truth.intercept] if self.fit_intercept else unknowns)

    def residual(self, unknowns: Array, order: int = 24) -> Array:
        """Return the residuals of (1), relative to the size of each equation."""
        b, c1, c2, scale = self.read(unknowns)
        averaged = forces(self.truth, b, c1, c2, scale, order)
        average = self.population.averages(self.ridge / averaged.stiffness)
        slope, size = averaged.along / averaged.stiffness + c1, c1**2 + c2**2
        noise = averaged.square / averaged.stiffness**2 * self.population.load
        equations = [
            (c1 - slope * average.W1) / math.sqrt(size),
            (slope**2 * average.W2 + noise * average.E2) / size - 1,
            self.population.load * average.E1 / (averaged.stiffness * scale) - 1,
        ]
        return np.array([*equations, averaged.mean] if self.fit_intercept else equations, dtype=float)

    def solved(self, start: Array) -> tuple[Array, float]:
        """Return a root near the start and the largest residual at this root."""
        from scipy.optimize import root

        solution = root(self.residual, start, method="hybr", options=dict(xtol=1e-14))
        return solution.x, float(np.abs(self.residual(solution.x)).max())


def solve_logistic(truth: TrueScore, population: Groups, ridge: float, fit_intercept: bool = True) -> Fitted:
    """Return the limit (1) of a logistic regression that exists.

    Examples
    --------
    >>> fit = solve_logistic(TrueScore(0.0, 5**0.5), Groups(0.2, (1.0,), (1.0,), (1.0,)), 0.0, fit_intercept=False)
    >>> round(fit.score.signal / 5**0.5, 8), round(fit.score.noise / 0.2**0.5, 8), round(fit.leverage, 8)
    (1.49935012, 4.74355316, 3.02692616)
    """
    equations = _Equations(truth, population, ridge, fit_intercept)
    unknowns, worst = equations.solved(equations.start())
    if worst > RESIDUAL:  # follow the solution from a small p/n
        load = 0.05 * population.load
        unknowns = _Equations(truth, _loaded(population, load), ridge, fit_intercept).start()
        while load < population.load:
            unknowns, _ = _Equations(truth, _loaded(population, load), ridge, fit_intercept).solved(unknowns)
            load = min(load * CONTINUATION, population.load)
        unknowns, worst = equations.solved(unknowns)
    if worst > RESIDUAL:
        raise ConvergenceError(
            f"the equations of logistic regression did not converge at p/n = {population.load:.4g}", None, worst
        )
    b, c1, c2, scale = equations.read(unknowns)
    fine = float(np.abs(equations.residual(unknowns, FINER)).max())
    train = forces(truth, b, c1, c2, scale).train_loss
    return Fitted(Score(truth, b, c1, c2), scale, train, max(1e-13, worst, fine))


def _loaded(population: Groups, load: float) -> Groups:
    return Groups(load, population.eigenvalues, population.shares, population.energy)


# -- Existence of a logistic regression without a penalty: threshold in p/n and probability at finite n --------------

NEWTON_STEPS = 200
GRADIENT = 1e-13


class Existence(NamedTuple):
    """Threshold h of (4), spread of (5), and whether an intercept is fitted."""

    threshold: float
    spread: float
    fit_intercept: bool

    def no_fit_probability(self, predictors: ArrayLike, samples: ArrayLike) -> Array:
        """Return the probability (5) that no fit exists; arguments broadcast.

        >>> case = existence(TrueScore(-1.82588843468, 1.34170951851), True)
        >>> case.no_fit_probability(20, [92, 132]).round(8).tolist()
        [0.11149346, 0.00243273]
        """
        from scipy.special import ndtr

        p, n = np.asarray(predictors, dtype=float), np.asarray(samples, dtype=float)
        extra = 1.0 if self.fit_intercept else 0.0
        return np.asarray(ndtr((p + extra - n * self.threshold) / (self.spread * np.sqrt(n))))


def existence(truth: TrueScore, fit_intercept: bool = True) -> Existence:
    """Return threshold and spread of (4) and (5), from the convex minimisation (4) by Newton's method with step halving.

    >>> limit = existence(TrueScore(-1.0, 1.5))
    >>> round(limit.threshold, 10), round(limit.spread, 10)
    (0.359803507, 0.57655004)
    """
    from scipy.special import ndtr

    x, weight = graded_rule(truth.layers(1.0), 24)
    case = truth.seen(x, 1.0)[0]
    mass = np.concatenate([weight * case, weight * (1 - case)])
    directions = np.concatenate([np.stack([np.ones_like(x), x]), -np.stack([np.ones_like(x), x])], axis=1)
    if not fit_intercept:
        directions = directions[1:]

    def parts(t: Array) -> tuple[Array, Array, Array]:
        reach = t @ directions
        return reach, np.asarray(ndtr(reach)), np.exp(-(reach**2) / 2) / np.sqrt(2 * np.pi)

    def value(t: Array) -> float:
        a, below, density = parts(t)
        return float(mass @ ((a**2 + 1) * below + a * density))

    t = np.zeros(len(directions))
    for _ in range(NEWTON_STEPS):
        a, below, density = parts(t)
        gradient = 2 * directions @ (mass * (a * below + density))
        if np.abs(gradient).max() <= GRADIENT:
            break
        step = np.linalg.solve(2 * (directions * (mass * below)) @ directions.T, gradient)
        now, size = value(t), 1.0
        while value(t - size * step) > now + 1e-15 and size > 1e-10:
            size /= 2
        t = t - size * step
    else:
        if np.abs(gradient).max() > 1e-10:
            raise ConvergenceError("the existence threshold did not converge", value(t), float(np.abs(gradient).max()))
    a, below, density = parts(t)
    second = float(mass @ ((a**2 + 1) * below + a * density))
    fourth = float(mass @ ((a**4 + 6 * a**2 + 3) * below + (a**3 + 5 * a) * density))
    return Existence(second, math.sqrt(max(fourth - second**2 - 2 * second, 0.0)), fit_intercept)
