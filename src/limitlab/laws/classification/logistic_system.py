"""The equations of logistic regression at p/n fixed, and their solution.

Setting and unknowns as in `logistic_calibration`: a sample's score without its own influence is b + c1 G + c2 Z, V the influence of a
sample on its own score. The four equations (1) there are solved for (c1, log c2, log V) and, with an intercept, b.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import ConvergenceError
from limitlab.laws.classification.gaussian_score import Score, TrueScore
from limitlab.laws.classification.populations import Groups
from limitlab.models.losses import loss
from limitlab.numerics.quadrature import graded_rule

Array = NDArray[np.float64]

RESIDUAL = 1e-11
FINER = 32
LARGEST_LOG = 40.0
CONTINUATION = 1.6  # growth of p/n on the way to a hard point


class Forces(NamedTuple):
    """Averages of the force with which the log-loss pulls at a sample."""

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
    """The averages of (1) by one integral over w = b + S U, with the label's part folded into m(U) and g(U)."""
    score = Score(truth, b, c1, c2)
    size, alignment = score.spread, score.alignment
    places = [((shift - b) / size, 1 / size) for shift in (-scale, 0.0, scale)]
    u, weight = graded_rule([*places, truth.layer(alignment)], order)
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
        """(b, c1, c2, V)."""
        c2, scale = np.exp(np.clip(unknowns[1:3], -LARGEST_LOG, LARGEST_LOG))
        return (float(unknowns[3]) if self.fit_intercept else 0.0), float(unknowns[0]), float(c2), float(scale)

    def start(self) -> Array:
        """Where the equations lead for small p/n."""
        from scipy.special import expit

        u, weight = graded_rule([self.truth.layer(1.0)], 24)
        risk = expit(self.truth.intercept + self.truth.signal * u)
        bend, kappa = float(weight @ (risk * (1 - risk))), self.population.load
        stiff = bend + self.ridge
        unknowns = [self.truth.signal * bend / stiff, math.log(math.sqrt(kappa * bend) / stiff), math.log(kappa / stiff)]
        return np.array([*unknowns, self.truth.intercept] if self.fit_intercept else unknowns)

    def residual(self, unknowns: Array, order: int = 24) -> Array:
        """How far (1) is from holding, relative to the size of each equation."""
        b, c1, c2, scale = self.read(unknowns)
        found = forces(self.truth, b, c1, c2, scale, order)
        average = self.population.averages(self.ridge / found.stiffness)
        slope, size = found.along / found.stiffness + c1, c1**2 + c2**2
        noise = found.square / found.stiffness**2 * self.population.load
        equations = [
            (c1 - slope * average.W1) / math.sqrt(size),
            (slope**2 * average.W2 + noise * average.E2) / size - 1,
            self.population.load * average.E1 / (found.stiffness * scale) - 1,
        ]
        return np.array([*equations, found.mean] if self.fit_intercept else equations, dtype=float)

    def solved(self, start: Array) -> tuple[Array, float]:
        """A root near the start, and the largest residual there."""
        from scipy.optimize import root

        found = root(self.residual, start, method="hybr", options=dict(xtol=1e-14))
        return found.x, float(np.abs(self.residual(found.x)).max())


def solve_logistic(truth: TrueScore, population: Groups, ridge: float, fit_intercept: bool = True) -> Fitted:
    """The limit (1) of a logistic regression that exists.

    Examples
    --------
    >>> found = solve_logistic(TrueScore(0.0, 5**0.5), Groups(0.2, (1.0,), (1.0,), (1.0,)), 0.0, fit_intercept=False)
    >>> round(found.score.signal / 5**0.5, 8), round(found.score.noise / 0.2**0.5, 8), round(found.leverage, 8)
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
        raise ConvergenceError(f"the equations did not converge at p/n = {population.load:.4g}", None, worst)
    b, c1, c2, scale = equations.read(unknowns)
    fine = float(np.abs(equations.residual(unknowns, FINER)).max())
    train = forces(truth, b, c1, c2, scale).train_loss
    return Fitted(Score(truth, b, c1, c2), scale, train, max(1e-13, worst, fine))


def _loaded(population: Groups, load: float) -> Groups:
    return Groups(load, population.eigenvalues, population.shares, population.energy)
