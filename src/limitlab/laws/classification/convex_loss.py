"""Classifiers on random features trained with a convex loss and a ridge penalty.

Setting.  Features, labels and limit as in `random_features_margin`. The classifier minimises
          (1/n) sum_i loss(y_i <a, u_i>) + (ridge/2) |a|^2, with loss(m) = (1-m)^2/2 (square), (1-m)_+^2/2 (squared hinge), (1-m)_+
          (hinge), log(1 + e^-m) (logistic). `train_loss` is the mean loss without the penalty.
Result.   A sample's margin in the fit without this sample is w = c1 T + c2 Z. With the proximal map p(w) of scale V and its force
          F = (p - w)/V, put v = -E F', q = E F^2 and m = E[F T] + c1 v (docs/theory/margins.md, section 5). Then

              gam = ridge/v,  V = (N/n) E1/v,  c1 = (m/v) W1,  c1^2 + c2^2 = (m/v)^2 W2 + (q/v^2)(N/n) E2,               (8)
              |a|^2 = (m/v)^2 W12 + (q/v^2)(N/n) E12,   train loss = E loss(p).                                          (9)

          For the square loss this is ridge regression on random features with lambda = ridge/psi1 (docs/theory/margins.md, eq. 10).
Status.   Derived (replica method, Gordon's inequality: Gerace et al. 2020, Dhifallah and Lu 2020; universality: Hu and Lu 2022).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import ConvergenceError
from limitlab.laws import Cost, Draw, Experiment, Headline, Values, parameter
from limitlab.laws.classification.populations import Averages, Population
from limitlab.laws.classification.random_features_margin import FeatureClassifier, LabelledFeatures
from limitlab.models.links import Labels, misclassification
from limitlab.models.losses import Loss, LossName, fit, loss
from limitlab.numerics.quadrature import graded_rule

__all__ = ["ConvexLoss"]

Array = NDArray[np.float64]

DAMPING = 0.7
ROUNDS = (10, 60, 400, 3000)  # numbers of damped iterations before each call of the root finder
RESIDUAL = 1e-11
FINER = 32  # nodes per panel in the estimate of the quadrature error
LARGEST_LOG = 60.0
SMALLEST = 1e-30  # least stiffness v, which avoids a division by 0
WORST_ACCURACY = 1e-6


class ForceMoments(NamedTuple):
    """Averages of the force F of the loss on a sample."""

    stiffness: float  # v
    square: float  # q
    slope: float  # m
    train_loss: float


class LossPoint(NamedTuple):
    """The observables at the solution of (8), and the estimated numerical error."""

    error: float
    train_loss: float
    norm: float
    accuracy: float


def force_moments(
    loss_function: Loss, labels: Labels, rho: float, c1: float, c2: float, scale: float, order: int = 24
) -> ForceMoments:
    """Return v, q, m and E loss(p) by one integral over x = w/S, S^2 = c1^2 + c2^2 (docs/theory/margins.md, eq. 11)."""
    size = float(np.hypot(c1, c2))
    alignment = rho * c1 / size
    kinks = [(kink / size, 0.0) for kink in loss_function.kinks(scale)]
    width = float(np.sqrt((1 - alignment) * (1 + alignment))) / max(alignment, 1e-3)
    blurred = [(sign * place / max(alignment, 1e-3), width + wide) for place, wide in labels.layers for sign in (-1, 1)]
    x, weight = graded_rule([*kinks, *blurred, (0.0, 1 / size), (-scale / size, 1 / size)], order)
    density, slope = labels.seen(alignment, x, order)
    proximal_point = loss_function.proximal(size * x, scale)
    mass = weight * density
    return ForceMoments(
        stiffness=float(mass @ proximal_point.stiffness),
        square=float(mass @ proximal_point.force**2),
        slope=rho * float((weight * slope) @ proximal_point.force),
        train_loss=float(mass @ loss_function.value(proximal_point.point)),
    )


def solve_loss(loss_function: Loss, labels: Labels, population: Population, ridge: float) -> LossPoint:
    """Return the limit of a classifier trained with a convex loss and a ridge penalty.

    Examples
    --------
    >>> from limitlab.laws.classification.populations import RandomFeatures
    >>> from limitlab.models.links import Link
    >>> population = RandomFeatures(1.5, 2.0, 0.5, 0.0908450569081047**0.5)
    >>> point = solve_loss(loss("hinge"), Labels(Link("probit"), 2.0), population, 0.05)
    >>> round(point.error, 9), round(point.train_loss, 9), round(point.norm, 9)
    (0.347394782, 0.169328026, 5.401550699)
    """
    from scipy.optimize import root

    equations = _Equations(loss_function, labels, population, ridge)
    worst = np.inf
    for start in equations.starts():
        solution = root(equations.residual, start, method="hybr", options=dict(xtol=1e-14))
        worst = float(np.abs(equations.residual(solution.x)).max())
        if worst < RESIDUAL:
            point = equations.point(solution.x)
            if point.accuracy > WORST_ACCURACY:
                break
            return point
    raise ConvergenceError(
        f"the equations of the {loss_function.name} loss did not converge at ridge {ridge:.3g}", None, worst
    )


class _Equations:
    """Equations (8) in the unknowns (log c1/c2, log c2, log V), without the first if labels are independent of features."""

    def __init__(self, loss_function: Loss, labels: Labels, population: Population, ridge: float):
        self.loss_function, self.labels, self.population, self.ridge = loss_function, labels, population, ridge
        self.rho = population.correlation
        self.informative = self.rho > 0 and labels.correlation > 1e-14

    def starts(self) -> Iterator[Array]:
        """Return starting points along a damped iteration."""
        c1, c2, scale = float(self.informative), 1.0, 1.0
        for steps in ROUNDS:
            for _ in range(steps):
                averaged = self.moments(c1, c2, scale)
                new1, size, new_scale = self._map(averaged, self._averages(averaged))
                new2 = float(np.sqrt(max(size - new1**2, 1e-6 * size)))
                c1, c2, scale = (old + DAMPING * (new - old) for old, new in ((c1, new1), (c2, new2), (scale, new_scale)))
            last = [np.log(c2), np.log(scale)]
            yield np.array([np.log(c1 / c2), *last] if self.informative else last)

    def residual(self, unknowns: Array, order: int = 24) -> Array:
        """Return the residuals of (8), relative to the size of each equation."""
        c1, c2, scale = self.read(unknowns)
        averaged = self.moments(c1, c2, scale, order)
        new1, size, new_scale = self._map(averaged, self._averages(averaged))
        total = c1**2 + c2**2
        last = [1 - size / total, new_scale / scale - 1]
        return np.array([(c1 - new1) / np.sqrt(total), *last] if self.informative else last)

    def point(self, unknowns: Array) -> LossPoint:
        """Return the observables (9)."""
        c1, c2, scale = self.read(unknowns)
        averaged = self.moments(c1, c2, scale)
        average = self._averages(averaged)
        signal, noise = self._parts(averaged)
        error = misclassification(self.labels, self.rho * c1 / float(np.hypot(c1, c2)))
        accuracy = max(1e-13, *(float(np.abs(self.residual(unknowns, order)).max()) for order in (24, FINER)))
        return LossPoint(error, averaged.train_loss, float(signal**2 * average.W12 + noise * average.E12), accuracy)

    def moments(self, c1: float, c2: float, scale: float, order: int = 24) -> ForceMoments:
        """Return v, q and m at one point."""
        return force_moments(self.loss_function, self.labels, self.rho, c1, c2, scale, order)

    def read(self, unknowns: Array) -> tuple[float, float, float]:
        """Return (c1, c2, V) from the unknowns, clipped to avoid overflow at trial points."""
        values = np.exp(np.clip(unknowns, -LARGEST_LOG, LARGEST_LOG))
        c2, scale = float(values[-2]), float(values[-1])
        return (float(values[0]) * c2 if self.informative else 0.0), c2, scale

    def _averages(self, averaged: ForceMoments) -> Averages:
        return self.population.averages(self.ridge / max(averaged.stiffness, SMALLEST))

    def _parts(self, averaged: ForceMoments) -> tuple[float, float]:
        """Return m/v and (q/v^2) N/n."""
        stiffness = max(averaged.stiffness, SMALLEST)
        return averaged.slope / stiffness, averaged.square / stiffness**2 * self.population.load

    def _map(self, averaged: ForceMoments, average: Averages) -> tuple[float, float, float]:
        """Return the right sides of (8)."""
        signal, noise = self._parts(averaged)
        scale = self.population.load * average.E1 / max(averaged.stiffness, SMALLEST)
        return float(signal * average.W1), float(signal**2 * average.W2 + noise * average.E2), float(scale)


class ConvexLoss(FeatureClassifier):
    """How well does a classifier on random neurons predict, when it is trained with this loss and this penalty?

    Examples
    --------
    >>> law = ConvexLoss(loss="logistic", ridge=0.01, link="probit", link_strength=2.0)
    >>> result = law.theory()
    >>> round(float(result.classification_error), 9), round(float(result.train_loss), 9)
    (0.341527999, 0.190267193)
    """

    status = "derived"
    regime = "n, N, d -> infinity with N/d and n/d fixed; ridge above 0"
    assumptions = (
        "inputs are standard Gaussian vectors, weights uniform on the unit sphere and not trained",
        "the label depends on the input through one direction",
        "no intercept; a link with f(-t) = 1 - f(t), unless the activation has mean 0",
        "nonlinear features behave like Gaussian ones of the same covariance",
    )
    references = ("gerace2020generalisation", "dhifallah2020precise", "hu2023universality")
    page = "margins"
    observables = ("classification_error", "train_loss", "coefficient_norm")
    simulation = Experiment(sizes=(30, 60, 120), draws=30)
    revision = 3
    # Every loss and four links, with centred and uncentred activations, and more and fewer features than samples
    points = (
        dict(
            loss="logistic",
            ridge=0.05,
            link="probit",
            link_strength=2.0,
            activation="tanh",
            width_ratio=1.5,
            sample_ratio=2.5,
        ),
        dict(loss="hinge", ridge=0.1, link="flip", link_strength=0.1, activation="relu", width_ratio=0.8, sample_ratio=1.5),
        dict(
            loss="squared_hinge",
            ridge=0.2,
            link="logit",
            link_strength=1.5,
            activation="erf",
            width_ratio=2.0,
            sample_ratio=1.2,
        ),
        dict(
            loss="square",
            ridge=0.1,
            link="sign",
            activation="relu",
            features="linear",
            width_ratio=2.5,
            sample_ratio=1.5,
        ),
    )
    headline = Headline(
        "Every loss has its best penalty",
        x="ridge",
        over=(0.0001, 1.0, 41),
        scale="log",
        show=("classification_error",),
        curves=("loss", ("square", "logistic", "hinge")),
        size=120,
        draws=10,
        places=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3),
        sliders=("width_ratio", "sample_ratio"),
    )

    width_ratio: float = parameter(1.5, above=0, scale="log", count="size * value")
    loss: LossName = parameter("logistic", note="of the margin: square, logistic, hinge or squared_hinge")
    ridge: float = parameter(0.05, above=0, scale="log")

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of the features and of the solver's working memory."""
        return self.matrix_cost(size, matrices=30.0)

    def predicted(self) -> Values:
        """Return the limit at the law's parameters."""
        point = solve_loss(loss(self.loss), self.labels.oriented(), self.population, self.ridge)
        return dict(
            classification_error=point.error,
            train_loss=point.train_loss,
            coefficient_norm=point.norm,
            accuracy=point.accuracy,
        )

    def measured(self, draw: Draw) -> Values:
        """Draw neurons, inputs and labels and return the observables of the minimiser."""
        data = LabelledFeatures(self, draw)
        vectors = data.y[:, None] * data.features
        a = fit(self.loss, vectors, self.ridge)
        return dict(
            classification_error=data.error(a),
            train_loss=float(loss(self.loss).value(vectors @ a).mean()),
            coefficient_norm=float(a @ a),
        )
