"""Experiment of the laws of local averages, which estimate a noisy cusp at its tip from samples in a ball.

The two laws are `NearestNeighbours` and `SingularKernelSmoother`. Both can be simulated in two ways. If the labels are averaged in closed
form, only the distances of the samples are drawn, and the spread of the result is small. If the labels are drawn, the experiment draws
points in R^d and noisy labels and fits an estimator that does not use the formulas of the law. In this case every training set is
labelled twice, independently. The errors e1, e2 of the two estimates on the same inputs give unbiased estimates of squared bias and
variance (docs/theory/local_averages.md, eq. 6):

    E[e1 e2] = E[bias^2],    E[(e1 - e2)^2 / 2] = E[variance],    E[(e1^2 + e2^2) / 2] = excess risk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


Labels = Literal["averaged", "drawn"]
"""Treatment of the labels in an experiment, averaged in closed form or drawn."""


class Estimator(Protocol):
    """Protocol of an estimator with `fit` and `predict`."""

    def fit(self, x: Array, y: Array) -> Estimator:
        """Fit the estimator to the rows of x with labels y."""
        ...

    def predict(self, x: Array) -> Array:
        """Return the estimates at the rows of x."""
        ...


def drawn_errors(
    rng: np.random.Generator,
    estimator: Estimator,
    training_sets: int,
    samples: int,
    dimension: int,
    smoothness: float,
    amplitude: float,
    noise: float,
    offset: float = 0.0,
    target: Callable[[Array], Array] | None = None,
) -> tuple[Array, Array]:
    """Return the errors at the tip for both labellings and all distances, of shapes (training_sets, 2) and (training_sets, samples).

    A target, which is a function of points as columns, replaces the cusp. `offset` is then its value at the origin.
    """
    errors, distances = np.empty((training_sets, 2)), np.empty((training_sets, samples))
    tip = np.zeros((1, dimension))
    for i in range(training_sets):
        x = uniform_ball(rng, samples, dimension)
        clean = cusp(x, smoothness, amplitude, offset) if target is None else target(x.T)
        labels = clean[:, None] + noise * rng.standard_normal((samples, 2))
        errors[i] = estimator.fit(x, labels).predict(tip)[0] - offset
        distances[i] = np.linalg.norm(x, axis=1)
    return errors, distances


def summary_of_errors(errors: Array) -> dict[str, Array]:
    """Return unbiased estimates of the observables from training sets that are labelled twice.

    >>> {name: float(value) for name, value in summary_of_errors(np.array([[1.0, 3.0]])).items()}
    {'mean_bias': 2.0, 'squared_bias': 3.0, 'variance': 2.0, 'excess_risk': 5.0}
    """
    first, second = errors.T
    squared_bias, variance = np.mean(first * second), np.mean((first - second) ** 2) / 2
    return dict(mean_bias=np.mean(errors), squared_bias=squared_bias, variance=variance, excess_risk=squared_bias + variance)


# -- functions with a Holder exponent below one everywhere or at a point, and random points at which they are sampled --

OCTAVES = 18
"""Number of frequencies 1, 2, 4, ... of the rough wave. Its smallest wavelength is 2^-17."""


def cusp(x: ArrayLike, smoothness: float = 1.0, amplitude: float = 1.0, offset: float = 0.0) -> Array:
    """Return offset + amplitude * |x|^smoothness for the rows of x, with Holder exponent `smoothness` at the origin.

    >>> cusp([[3.0, 4.0], [0.0, 0.0]], smoothness=0.5, amplitude=2.0).round(6).tolist()
    [4.472136, 0.0]
    """
    radius = np.linalg.norm(np.asarray(x, dtype=float), axis=-1)
    return np.asarray(offset + amplitude * radius**smoothness)


def rough_wave(x: ArrayLike, smoothness: float = 0.5, octaves: int = OCTAVES) -> Array:
    r"""Return a function on the unit torus whose Holder exponent is `smoothness` < 1 at every point, and nowhere larger.

    The function is the following sum. Its phases differ between the coordinates c and the octaves j, so that the maxima of the terms do
    not coincide,

    .. math:: f(x) = \sum_c \sum_{j < J} 2^{-b j} \cos(2 \pi\, 2^j x_c + c + j).

    >>> x = np.array([[0.25, 0.5]])
    >>> bool(np.allclose(rough_wave(x), rough_wave(x + 1.0)))          # periodic
    True
    """
    points = np.asarray(x, dtype=float)
    octave = np.arange(octaves)
    phase = np.arange(points.shape[-1])[:, None] + octave
    angle = 2 * np.pi * 2.0**octave * (points % 1.0)[..., None] + phase
    return np.asarray((np.cos(angle) * 2.0 ** (-smoothness * octave)).sum(axis=(-2, -1)))


def uniform_ball(rng: np.random.Generator, count: int, dimension: int) -> Array:
    """Return rows that are uniform in the unit ball, from Gaussian directions and radii whose d-th power is uniform.

    >>> points = uniform_ball(np.random.default_rng(0), 1000, 3)
    >>> points.shape, bool((np.linalg.norm(points, axis=1) <= 1).all())
    ((1000, 3), True)
    """
    direction = rng.standard_normal((count, dimension))
    radius = rng.random((count, 1)) ** (1 / dimension)
    return np.asarray(direction * (radius / np.linalg.norm(direction, axis=1, keepdims=True)))
