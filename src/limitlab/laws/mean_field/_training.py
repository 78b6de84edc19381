"""Wide two-layer networks f(x) = (1/N) sum_i sigma(x; theta_i) and how the experiments train them.

One-pass SGD on two centred Gaussians (compiled), and neurons of one weight under the gradient of the population risk, with and without
noise. Nothing here knows about limits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from limitlab.models.activations import Activation
from limitlab.models.online import look_up
from limitlab.models.tabulated import derivative_of, tabulate
from limitlab.numerics.ode import follow, visit
from limitlab.numerics.quadrature import even_gaussian_rule

Array = NDArray[np.float64]

BLOCK = 4096  # samples that are drawn at once
INPUTS = 0.5, 4.5  # spacing and reach of the 19 points with which many networks average over one Gaussian input


# -- one-pass SGD on two Gaussians ------------------------------------------------------------------------------------


def ramp(z: Any, knots: tuple[float, float], levels: tuple[float, float]) -> Any:
    """The activation of the two-Gaussians network: one level below the first knot, the other above the second, linear between.

    >>> ramp(np.array([0.0, 1.0, 2.0]), (0.5, 1.5), (-2.5, 7.5)).tolist()
    [-2.5, 2.5, 7.5]
    """
    slope = (levels[1] - levels[0]) / (knots[1] - knots[0])
    return levels[0] + slope * (np.clip(z, *knots) - knots[0])


@numba.njit(cache=True, nogil=True, fastmath=True)
def _ramp_steps(w: Any, x: Any, y: Any, step: float, low: float, high: float, base: float, slope: float) -> None:
    """One step w_i += 2 step (y - f) s'(<w_i, x>) x per row of x, in place."""
    width, dimension = w.shape
    z = np.empty(width)
    for row in range(x.shape[0]):
        total = 0.0
        for i in range(width):
            score = 0.0
            for k in range(dimension):
                score += w[i, k] * x[row, k]
            z[i] = score
            total += min(max(score, low), high)
        output = base + slope * (total / width - low)
        move = 2 * step * (y[row] - output) * slope
        for i in range(width):
            if low < z[i] < high:
                for k in range(dimension):
                    w[i, k] += move * x[row, k]


def ramp_sgd(
    rng: np.random.Generator,
    weights: Array,
    separation: float,
    knots: tuple[float, float],
    levels: tuple[float, float],
    step: float,
    counts: Sequence[int] | NDArray[np.int64],
) -> Iterator[Array]:
    """The weights after the given numbers of samples (increasing): one fresh sample per step.

    Labels are +-1 with equal probability and x given y is N(0, (1 + y separation)^2 I). The array that is yielded is overwritten later.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> paths = ramp_sgd(rng, 0.3 * rng.standard_normal((50, 8)), 0.5, (0.5, 1.5), (-2.5, 7.5), 1e-3, [0, 500])
    >>> [round(float(np.linalg.norm(w, axis=1).mean()), 1) for w in paths]
    [0.8, 1.6]
    """
    slope = (levels[1] - levels[0]) / (knots[1] - knots[0])
    blocks, stops = [], []  # samples of every block; blocks until every count
    for fresh in np.diff(counts, prepend=0):
        blocks += [min(BLOCK, int(fresh) - done) for done in range(0, int(fresh), BLOCK)]
        stops.append(len(blocks))

    def move(done: int, w: Array) -> Array:
        y = rng.integers(0, 2, blocks[done]) * 2.0 - 1.0
        x = rng.standard_normal((blocks[done], w.shape[1]))
        x *= (1 + separation * y)[:, None]
        _ramp_steps(w, x, y, step, *knots, levels[0], slope)
        return w

    yield from visit(move, np.array(weights, dtype=float, order="C"), stops, rng=rng)


def ramp_risk(
    rng: np.random.Generator,
    weights: Array,
    separation: float,
    knots: tuple[float, float],
    levels: tuple[float, float],
    points: int,
) -> float:
    """The risk E (y - f)^2 of a network on `points` new inputs of each class, whose lengths are stratified.

    A wide network sees little else of an input than its length, so that strata of equal probability remove most of the noise.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> round(ramp_risk(rng, 0.3 * rng.standard_normal((200, 8)), 0.5, (0.5, 1.5), (-2.5, 7.5), 4000), 1)
    2.0
    """
    from scipy.special import gammaincinv

    dimension, total = weights.shape[1], 0.0
    for label in (-1.0, 1.0):
        levels_of_length = (np.arange(points) + rng.random(points)) / points
        lengths = np.sqrt(2 * gammaincinv(dimension / 2, levels_of_length))
        x = rng.standard_normal((points, dimension))
        x *= ((1 + label * separation) * lengths / np.linalg.norm(x, axis=1))[:, None]
        for part in np.array_split(x, math.ceil(points * len(weights) / 2**21)):
            total += float(np.sum((label - ramp(part @ weights.T, knots, levels).mean(axis=1)) ** 2))
    return total / (2 * points)


# -- neurons of one weight under the gradient of the population risk ---------------------------------------------------


@dataclass(frozen=True)
class ScalarNetwork:
    """Neurons sigma(theta x) of one weight that learn a target on a grid of Gaussian inputs; weights have shape (N, 1) or (N,).

    >>> network = ScalarNetwork.of("tanh", "tanh", 2.0)
    >>> bool(network.risk(np.array([2.0, 2.0])) < 1e-30 and np.abs(network.velocity(np.array([2.0, 2.0]))).max() < 1e-15)
    True
    """

    activation: Activation
    inputs: Array
    weights: Array
    labels: Array

    @classmethod
    def of(cls, activation: Any, target_function: Any, teacher: float, spacing: float = 0.1) -> ScalarNetwork:
        """The network whose labels are target_function(teacher x)."""
        x, weights = even_gaussian_rule(spacing)
        return cls(Activation(activation), x, weights, np.asarray(Activation(target_function)(teacher * x)))

    def residual(self, theta: Array) -> Array:
        """y - f on the grid."""
        return np.asarray(self.labels - self.activation(np.ravel(theta)[:, None] * self.inputs).mean(axis=0))

    def risk(self, theta: Array) -> float:
        """E (y - f)^2."""
        return float(self.weights @ self.residual(theta) ** 2)

    def velocity(self, theta: Array) -> Array:
        """-N grad_i R = 2 E (y - f) x sigma'(theta_i x)."""
        pull = 2 * self.weights * self.residual(theta) * self.inputs
        return np.reshape(self.activation.derivative(np.ravel(theta)[:, None] * self.inputs) @ pull, np.shape(theta))


@numba.njit(cache=True, nogil=True)
def _residual(theta: Any, value: Any, x: Any, y: Any, out: Any) -> None:
    for q in range(x.size):
        total = 0.0
        for i in range(theta.size):
            total += look_up(value, theta[i] * x[q])
        out[q] = y[q] - total / theta.size


@numba.njit(cache=True, nogil=True)
def _pull(theta: Any, value: Any, slope: Any, x: Any, w: Any, y: Any, residual: Any, out: Any) -> None:
    """-N grad_i R of every neuron."""
    _residual(theta, value, x, y, residual)
    for i in range(theta.size):
        total = 0.0
        for q in range(x.size):
            total += w[q] * residual[q] * x[q] * look_up(slope, theta[i] * x[q])
        out[i] = 2 * total


@numba.njit(cache=True, nogil=True)
def _flow_risks(thetas: Any, value: Any, slope: Any, x: Any, w: Any, y: Any, times: Any, step: float) -> Any:
    """Risk of every network (row of weights) at every time, by the Runge-Kutta method of order 4."""
    risks, residual = np.empty((thetas.shape[0], times.size)), np.empty(x.size)
    k1, k2, k3, k4 = (
        np.empty(thetas.shape[1]),
        np.empty(thetas.shape[1]),
        np.empty(thetas.shape[1]),
        np.empty(thetas.shape[1]),
    )
    for row in range(thetas.shape[0]):
        theta, now = thetas[row].copy(), 0.0
        for column in range(times.size):
            count = math.ceil((times[column] - now) / step - 1e-9)
            for _ in range(count):
                h = (times[column] - now) / count
                _pull(theta, value, slope, x, w, y, residual, k1)
                _pull(theta + h / 2 * k1, value, slope, x, w, y, residual, k2)
                _pull(theta + h / 2 * k2, value, slope, x, w, y, residual, k3)
                _pull(theta + h * k3, value, slope, x, w, y, residual, k4)
                theta += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            now = times[column]
            _residual(theta, value, x, y, residual)
            risks[row, column] = np.sum(w * residual**2)
    return risks


def flow_risks(
    thetas: Array, activation: Activation, target_function: Activation, teacher: float, times: Array, step: float = 0.1
) -> Array:
    """Risk over time of many networks of neurons sigma(theta x), one per row of weights, under the gradient flow of their risk.

    Examples
    --------
    >>> thetas = np.array([[0.2, 0.4], [1.0, 1.0]])
    >>> risks = flow_risks(thetas, Activation("identity"), Activation("identity"), 2.0, np.array([0.0, 1.0]))
    >>> (risks / [[2.89], [1.0]]).round(4).tolist()
    [[1.0, 0.0183], [1.0, 0.0183]]
    """
    x, w = even_gaussian_rule(*INPUTS)
    tables = tabulate(activation, activation.kinks), tabulate(derivative_of(activation), activation.kinks)
    labels = np.asarray(target_function(teacher * x), dtype=float)
    return np.asarray(
        _flow_risks(np.asarray(thetas, dtype=float), *tables, x, w, labels, np.asarray(times, dtype=float), step)
    )


@dataclass(frozen=True)
class LinearNetwork:
    """Neurons <theta, x> in R^D that learn a linear teacher along the first axis; weights have shape (N, D).

    >>> network = LinearNetwork(1.5)
    >>> network.risk(np.array([[1.0, 0.5]])), network.velocity(np.array([[1.0, 0.5]])).tolist()
    (0.5, [[1.0, -1.0]])
    """

    teacher: float

    def _error(self, theta: Array) -> Array:
        error = np.add.reduce(theta, axis=0) / -len(theta)  # minus the mean, without the checks that `mean` makes
        error[0] += self.teacher
        return np.asarray(error)

    def risk(self, theta: Array) -> float:
        """E (y - f)^2 for inputs of unit covariance."""
        return float(np.sum(self._error(theta) ** 2))

    def velocity(self, theta: Array) -> Array:
        """-N grad_i R = 2 E (y - f) x, the same for all neurons: one row."""
        return 2 * self._error(theta)[None]


def langevin(
    rng: np.random.Generator, start: Array, drift: Any, beta: float, times: Sequence[float] | Array, step: float
) -> Iterator[Array]:
    """Particles d theta = drift(theta) dt + sqrt(2/beta) dW at the increasing times, by Heun's method (weak order 2).

    >>> rng = np.random.default_rng(0)
    >>> last = list(langevin(rng, np.zeros(4000), lambda theta: -theta, 2.0, [0.0, 4.0], 0.1))[-1]
    >>> bool(abs(last.var() - 0.5) < 0.05)
    True
    """

    def advance(_: float, theta: Array, h: float) -> Array:
        kick = math.sqrt(2 * h / beta) * rng.standard_normal(theta.shape)
        first = drift(theta)
        return np.asarray(theta + h / 2 * (first + drift(theta + h * first + kick)) + kick)

    yield from follow(advance, np.asarray(start, dtype=float), times, step, rng=rng)


def nearest_neighbour_entropy(points: Array) -> float:
    """Kozachenko and Leonenko's estimate of -int rho log rho from draws of rho, one per row, whose coordinates are independent.

    The estimate is a sum over coordinates: on a line its bias is of order 1/N, in a plane it would be much larger.

    >>> points = np.random.default_rng(0).standard_normal((4000, 2))
    >>> bool(abs(nearest_neighbour_entropy(points) - np.log(2 * np.pi * np.e)) < 0.1)
    True
    """
    from scipy.special import digamma

    gaps = np.diff(np.sort(points, axis=0), axis=0)
    ends = np.full((1, points.shape[1]), np.inf)
    nearest = np.minimum(np.concatenate([ends, gaps]), np.concatenate([gaps, ends]))
    each = digamma(len(points)) - digamma(1) + math.log(2) + np.log(nearest).mean(axis=0)
    return float(each.sum())
