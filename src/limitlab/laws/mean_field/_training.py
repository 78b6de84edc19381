"""Training of wide two-layer networks f(x) = (1/N) sum_i sigma(x; theta_i) in the experiments.

The module contains one-pass SGD on two centred Gaussians (compiled) and the gradient flow of the population risk for neurons of one
weight, with and without noise. No function uses a prediction.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.models.activations import Activation
from limitlab.models.online import look_up
from limitlab.models.tabulated import tabulate
from limitlab.numerics.ode import follow, visit
from limitlab.numerics.quadrature import even_gaussian_rule, panel_rule

Array = NDArray[np.float64]


BLOCK = 4096  # number of samples drawn together
COARSE = 2e-3
"""Largest relative difference of averages over the input points of many networks from those of a finer rule."""

INPUTS = (
    0.5,
    4.5,
)  # spacing and largest value of the 19 points that represent one Gaussian input when many networks are trained


# -- one-pass SGD on two Gaussians ------------------------------------------------------------------------------------


def ramp(z: Any, knots: tuple[float, float], levels: tuple[float, float]) -> Any:
    """Return the activation of the two-Gaussians network.

    It equals the first level below the first knot and the second level above the second knot, and is linear between the knots.

    >>> ramp(np.array([0.0, 1.0, 2.0]), (0.5, 1.5), (-2.5, 7.5)).tolist()
    [-2.5, 2.5, 7.5]
    """
    slope = (levels[1] - levels[0]) / (knots[1] - knots[0])
    return levels[0] + slope * (np.clip(z, *knots) - knots[0])


@numba.njit(cache=True, nogil=True, fastmath=True)
def _ramp_steps(w: Any, x: Any, y: Any, step: float, low: float, high: float, base: float, slope: float) -> None:
    """Do one step w_i += 2 step (y - f) s'(<w_i, x>) x per row of x, in place."""
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
    """Yield the weights of a two-layer network with the activation `ramp` during one-pass SGD, after each number of samples in `counts`.

    Every step uses one new sample. Labels y are +-1 with equal probability, and x given y is N(0, (1 + y separation)^2 I). The array that
    is yielded is overwritten later.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> paths = ramp_sgd(rng, 0.3 * rng.standard_normal((50, 8)), 0.5, (0.5, 1.5), (-2.5, 7.5), 1e-3, [0, 500])
    >>> [round(float(np.linalg.norm(w, axis=1).mean()), 1) for w in paths]
    [0.8, 1.6]
    """
    slope = (levels[1] - levels[0]) / (knots[1] - knots[0])
    blocks, stops = [], []  # number of samples in every block; number of blocks before every count
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
    """Return the risk E (y - f)^2 of a network on `points` new inputs of each class, with stratified lengths.

    The output of a wide network depends on an input almost only through its length, so that strata of equal probability remove most of
    the noise.

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
    """Neurons sigma(theta x) with weights of shape (N, 1) or (N,) that learn a target on a grid of Gaussian inputs.

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
        """Return the network whose labels are target_function(teacher x)."""
        x, weights = even_gaussian_rule(spacing)
        return cls(Activation(activation), x, weights, np.asarray(Activation(target_function)(teacher * x)))

    def residual(self, theta: Array) -> Array:
        """Return label minus output on the grid."""
        return np.asarray(self.labels - self.activation(np.ravel(theta)[:, None] * self.inputs).mean(axis=0))

    def risk(self, theta: Array) -> float:
        """Return the mean squared error."""
        return float(self.weights @ self.residual(theta) ** 2)

    def velocity(self, theta: Array) -> Array:
        """Return minus N times the gradient of the risk for every neuron."""
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
    """Write -N grad_i R of every neuron into `out`."""
    _residual(theta, value, x, y, residual)
    for i in range(theta.size):
        total = 0.0
        for q in range(x.size):
            total += w[q] * residual[q] * x[q] * look_up(slope, theta[i] * x[q])
        out[i] = 2 * total


@numba.njit(cache=True, nogil=True)
def _flow_risks(thetas: Any, value: Any, slope: Any, x: Any, w: Any, y: Any, times: Any, step: float) -> Any:
    """Return the risk of every network (row of weights) at every time, by the Runge-Kutta method of order 4."""
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
    """Return the risk over time of many networks of neurons sigma(theta x), one per row, under gradient flow.

    Examples
    --------
    >>> thetas = np.array([[0.2, 0.4], [1.0, 1.0]])
    >>> risks = flow_risks(thetas, Activation("identity"), Activation("identity"), 2.0, np.array([0.0, 1.0]))
    >>> (risks / [[2.89], [1.0]]).round(4).tolist()
    [[1.0, 0.0183], [1.0, 0.0183]]
    """
    x, w = _inputs(thetas, activation, target_function, teacher)
    tables = tabulate(activation, activation.kinks), tabulate(activation.derivative, activation.kinks)
    labels = np.asarray(target_function(teacher * x), dtype=float)
    return np.asarray(
        _flow_risks(np.asarray(thetas, dtype=float), *tables, x, w, labels, np.asarray(times, dtype=float), step)
    )


def _inputs(thetas: Array, activation: Activation, target_function: Activation, teacher: float) -> tuple[Array, Array]:
    """Return a rule for the inputs, which is finer for functions that have kinks or change fast.

    The equidistant points are used if their averages of squares agree with a finer rule up to a share `COARSE`.
    """
    kinks = tuple(kink / teacher for kink in target_function.kinks) if teacher else ()
    typical = float(np.sqrt(np.mean(np.square(thetas))))

    def averages(rule: tuple[Array, Array]) -> Array:
        x, w = rule
        parts = np.stack(
            [np.asarray(target_function(teacher * x), dtype=float), np.asarray(activation(typical * x), dtype=float)]
        )
        return np.asarray((w * parts) @ parts.T)

    rules = [even_gaussian_rule(*INPUTS)]
    rules += [panel_rule(kinks, order=10, width=width, reach=7.2) for width in (1.8, 0.9, 0.45, 0.225)]
    for coarse, fine in itertools.pairwise(rules):
        before, after = averages(coarse), averages(fine)
        if np.abs(before - after).max() <= COARSE * np.abs(after).max():
            return coarse
    return rules[-1]


@dataclass(frozen=True)
class LinearNetwork:
    """Neurons <theta, x> in R^D that learn a linear teacher along the first axis; weights have shape (N, D).

    >>> network = LinearNetwork(1.5)
    >>> network.risk(np.array([[1.0, 0.5]])), network.velocity(np.array([[1.0, 0.5]])).tolist()
    (0.5, [[1.0, -1.0]])
    """

    teacher: float

    def _error(self, theta: Array) -> Array:
        error = np.add.reduce(theta, axis=0) / -len(theta)  # minus the mean; this call is faster than `mean`
        error[0] += self.teacher
        return np.asarray(error)

    def risk(self, theta: Array) -> float:
        """Return the mean squared difference of teacher and network for inputs of unit covariance."""
        return float(np.sum(self._error(theta) ** 2))

    def velocity(self, theta: Array) -> Array:
        """Return minus N times the gradient of the risk as one row, because it is the same for all neurons."""
        return 2 * self._error(theta)[None]


def langevin(
    rng: np.random.Generator, start: Array, drift: Any, beta: float, times: Sequence[float] | Array, step: float
) -> Iterator[Array]:
    """Yield particles d theta = drift(theta) dt + sqrt(2/beta) dW at increasing times, by Heun's method (weak order 2).

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
    """Return Kozachenko and Leonenko's estimate of -int rho log rho from draws of rho, one per row.

    The coordinates must be independent, because the estimate is a sum over coordinates. In one dimension its bias is of order 1/N. In
    two dimensions the bias would be much larger.

    >>> points = np.random.default_rng(0).standard_normal((4000, 2))
    >>> bool(abs(nearest_neighbour_entropy(points) - np.log(2 * np.pi * np.e)) < 0.1)
    True
    """
    from scipy.special import digamma

    gaps = np.diff(np.sort(points, axis=0), axis=0)
    ends = np.full((1, points.shape[1]), np.inf)
    nearest = np.minimum(np.concatenate([ends, gaps]), np.concatenate([gaps, ends]))
    per_coordinate = digamma(len(points)) - digamma(1) + math.log(2) + np.log(nearest).mean(axis=0)
    return float(per_coordinate.sum())


# -- ReLU networks f = (1/N) sum_i a_i relu(<w_i, x>) on the circle, both layers trained ------------------------------


def circle(count: int) -> Array:
    """Return unit vectors at the angles 2 pi j / count, one per row.

    >>> circle(4).round(12).tolist()[1]
    [0.0, 1.0]
    """
    angle = 2 * np.pi * np.arange(count) / count
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def labels(inputs: Array, angle: float) -> Array:
    """Return relu(cos t) - relu(cos(t - angle)), the difference of two neurons.

    >>> labels(circle(4), np.pi).round(12).tolist()
    [1.0, 0.0, -1.0, -0.0]
    """
    return np.asarray(np.maximum(inputs[:, 0], 0) - np.maximum(inputs @ [np.cos(angle), np.sin(angle)], 0))


@numba.njit(cache=True, nogil=True)
def _descend(a: Any, w: Any, x: Any, y: Any, step: float, steps: int) -> None:
    """Do `steps` steps of every neuron along -N grad R, in place."""
    width, count = a.size, y.size
    residual = np.empty(count)
    for _ in range(steps):
        for j in range(count):
            total = 0.0
            for i in range(width):
                z = w[i, 0] * x[j, 0] + w[i, 1] * x[j, 1]
                if z > 0:
                    total += a[i] * z
            residual[j] = y[j] - total / width
        for i in range(width):
            pull, first, second = 0.0, 0.0, 0.0
            for j in range(count):
                z = w[i, 0] * x[j, 0] + w[i, 1] * x[j, 1]
                if z > 0:
                    pull += residual[j] * z
                    first += residual[j] * x[j, 0]
                    second += residual[j] * x[j, 1]
            rate = 2 * step / count
            w[i, 0], w[i, 1], a[i] = w[i, 0] + rate * a[i] * first, w[i, 1] + rate * a[i] * second, a[i] + rate * pull


def relu_descent(a: Array, w: Array, x: Array, y: Array, step: float, time: float) -> tuple[Array, Array]:
    """Return the two layers after the time `time` of descent along -N grad R, R = mean (y - f)^2.

    >>> x = circle(20)
    >>> a, w = relu_descent(np.array([2.0]), np.array([[1.0, 0.0]]), x, labels(x, np.pi), 0.02, 100.0)
    >>> bool(abs(a[0] ** 2 - np.sum(w**2) - 3) < 0.1)  # conserved up to errors of the finite steps
    True
    """
    a, w = np.array(a, dtype=float), np.array(w, dtype=float)
    _descend(a, w, np.ascontiguousarray(x), np.ascontiguousarray(y), step, round(time / step))
    return a, w


def outputs(a: Array, w: Array, x: Array) -> Array:
    """Return the network's outputs at the rows of x."""
    return np.asarray(np.maximum(x @ w.T, 0) @ a / a.size)


# -- noisy one-pass SGD of N linear neurons with weight decay ---------------------------------------------------------
# theta_i += 2 eps (y - f) x - 2 eps lam theta_i + sqrt(2 eps / beta) g_i

DROPPED = 1 / 6
"""Share of a run that is discarded before averages are taken."""


@numba.njit(cache=True, nogil=True)
def _run(rng: Any, theta: Any, teacher: Any, penalty: float, beta: float, step: float, steps: int, first: int) -> float:
    """Return the mean of |teacher - mean theta|^2 + penalty * mean |theta|^2 over the steps from `first` on."""
    neurons, dimension = theta.shape
    kick, total = np.sqrt(2 * step / beta), 0.0
    x, centre = np.empty(dimension), np.empty(dimension)
    for done in range(steps):
        error, square = 0.0, 0.0
        for k in range(dimension):
            centre[k] = theta[:, k].mean()
            x[k] = rng.standard_normal()
            error += (teacher[k] - centre[k]) * x[k]
        for i in range(neurons):
            for k in range(dimension):
                value = theta[i, k] * (1 - 2 * step * penalty) + 2 * step * error * x[k] + kick * rng.standard_normal()
                theta[i, k] = value
                square += value * value
        if done >= first:
            total += penalty * square / neurons
            for k in range(dimension):
                total += (teacher[k] - theta[:, k].mean()) ** 2
    return total / (steps - first)


def regularised_risk(
    rng: np.random.Generator, teacher: ArrayLike, neurons: int, penalty: float, beta: float, step: float, time: float
) -> float:
    """Return the mean regularised risk R + lam mean |theta|^2 of one run of time / step samples from the minimum.

    >>> mean_risk = regularised_risk(np.random.default_rng(0), [1.0], 5, 0.5, 10.0, 0.01, 400.0)
    >>> bool(abs(mean_risk - (1 / 3 + 1 / 20)) < 0.01)  # minimum penalty / (1 + penalty), plus D/(2 beta)
    True
    """
    target = np.asarray(teacher, dtype=float)
    theta, steps = np.tile(target / (1 + penalty), (neurons, 1)), round(time / step)
    return float(_run(rng, theta, target, penalty, beta, step, steps, round(DROPPED * steps)))
