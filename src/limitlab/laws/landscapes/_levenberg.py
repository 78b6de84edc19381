"""Training of networks to interpolation by the Levenberg-Marquardt method, in double precision, for few parameters and full batches.

First-order methods do not reach interpolation near its threshold. With J the Jacobian and r the residuals a step is
(J'J + mu)^-1 J'r = J'(JJ' + mu)^-1 r, computed from the smaller of the two linear systems. A step that lowers the loss divides mu by 3.
Other steps are not taken and multiply mu by 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from limitlab.models.optimisers import Adam

Array = NDArray[Any]
Loss = Literal["square", "squared_hinge"]

GOAL = 1e-12  # mean loss at which training stops
ITERATIONS = 150
STEPS = 4000  # of first-order training
DAMPING = 1e-2  # at the start
LARGEST = 1e15  # damping


@dataclass
class TanhNetwork:
    """f = A tanh(... tanh(W x/sqrt(d) + b) ...)/sqrt(N) + c with all parameters trained, in one flat vector.

    Parameters
    ----------
    widths
        Dimension of the inputs, neurons of every hidden layer, number of outputs.

    Examples
    --------
    >>> net = TanhNetwork((10, 25, 1))
    >>> net.parameters, net.start(np.random.default_rng(0)).shape
    (301, (301,))
    """

    widths: tuple[int, ...]

    @cached_property
    def shapes(self) -> list[tuple[int, int]]:
        """The numbers of inputs and outputs of every layer."""
        return list(pairwise(self.widths))

    @cached_property
    def parameters(self) -> int:
        """The number of weights and biases."""
        return sum((inputs + 1) * outputs for inputs, outputs in self.shapes)

    def start(self, rng: np.random.Generator) -> Array:
        """Return standard Gaussian parameters, except the last bias, which starts at 0."""
        theta = rng.standard_normal(self.parameters)
        theta[-self.widths[-1] :] = 0.0
        return theta

    def layers(self, theta: Array) -> list[tuple[Array, Array]]:
        """Return the weights (inputs, outputs) and biases of every layer."""
        layers, place = [], 0
        for inputs, outputs in self.shapes:
            weights = theta[place : place + inputs * outputs].reshape(inputs, outputs)
            place += inputs * outputs
            layers.append((weights, theta[place : place + outputs]))
            place += outputs
        return layers

    def signals(self, theta: Array, X: Array) -> tuple[list[Array], Array]:
        """Return the inputs of every layer, and the outputs."""
        signals, signal = list[Array](), X
        for weights, biases in self.layers(theta):
            signals.append(np.tanh(signal) if signals else signal)
            signal = signals[-1] @ weights
            signal /= math.sqrt(len(weights))
            signal += biases
        return signals, signal

    def outputs(self, theta: Array, X: Array) -> Array:
        """Return f at the rows of X, shape (rows, outputs)."""
        return self.signals(theta, X)[1]

    def backward(self, theta: Array, X: Array) -> tuple[Array, list[tuple[Array, Array]]]:
        """Return f, and for every layer its inputs (rows, inputs) and the derivatives of f by its outputs (rows, f, outputs)."""
        signals, f = self.signals(theta, X)
        back = np.tile(np.eye(f.shape[1]), (len(X), 1))
        parts = []
        for number, (weights, _) in reversed(list(enumerate(self.layers(theta)))):
            root, inside = math.sqrt(len(weights)), signals[number]
            parts.append((inside / root, back.reshape(*f.shape, -1)))
            if number:
                slope = (1 - inside) * (1 + inside)
                slope /= root
                back = (back @ weights.T).reshape(*f.shape, -1) * slope[:, None, :]
                back = back.reshape(f.size, -1)
        return f, parts[::-1]

    def gradient(self, theta: Array, X: Array, v: Callable[[Array], Array]) -> Array:
        """Return the gradient of a function of the outputs by backpropagation, without the derivatives of single outputs."""
        signals, f = self.signals(theta, X)
        back, parts = v(f), list[Array]()
        for number, (weights, _) in reversed(list(enumerate(self.layers(theta)))):
            root, inside = math.sqrt(len(weights)), signals[number]
            parts = [(inside.T @ back).ravel() / root, back.sum(axis=0), *parts]
            back = (back @ weights.T) / root * ((1 - inside) * (1 + inside)) if number else back
        return np.concatenate(parts)

    def jacobian(self, theta: Array, X: Array) -> Array:
        """Return the derivatives of f with respect to all parameters, shape (rows x outputs, parameters)."""
        return self.derivatives(self.backward(theta, X)[1])

    def derivatives(self, parts: list[tuple[Array, Array]]) -> Array:
        """Return the Jacobian from the parts of `backward`."""
        rows, outputs = parts[0][1].shape[:2]
        jacobian, place = np.empty((rows, outputs, self.parameters)), 0
        for inside, back in parts:
            inputs, width = inside.shape[1], back.shape[2]
            block = jacobian[:, :, place : place + inputs * width].reshape(rows, outputs, inputs, width)  # a view
            np.multiply(inside[:, None, :, None], back[:, :, None, :], out=block)
            place += inputs * width
            jacobian[:, :, place : place + width] = back
            place += width
        return jacobian.reshape(rows * outputs, -1)

    def gram(self, parts: list[tuple[Array, Array]]) -> Array:
        """Return the Jacobian times its transpose from the parts of `backward`, layer by layer, without the Jacobian itself."""
        rows, outputs = parts[0][1].shape[:2]
        total = np.zeros((rows, outputs, rows, outputs))
        for inside, back in parts:
            flat = back.reshape(rows * outputs, -1)
            block = (flat @ flat.T).reshape(total.shape)
            block *= (inside @ inside.T + 1)[:, None, :, None]
            total += block
        return total.reshape(rows * outputs, -1)

    def pull_back(self, parts: list[tuple[Array, Array]], v: Array) -> Array:
        """Return the transposed Jacobian times v, as a vector of parameters."""
        blocks = []
        for inside, back in parts:
            weighted = np.einsum("ro,rok->rk", v.reshape(back.shape[:2]), back)
            blocks += [(inside.T @ weighted).ravel(), weighted.sum(axis=0)]
        return np.concatenate(blocks)


@dataclass(frozen=True)
class PlainTanh:
    """A two-layer tanh network without biases, f = <a, tanh(W x)>/sqrt(N), with first and second derivatives in all its parameters.

    The parameters are one flat vector with a row (a_j, W_j) per neuron.

    >>> PlainTanh(10, 20).parameters
    220
    """

    dimension: int
    width: int

    @property
    def parameters(self) -> int:
        """The number of parameters, N (d + 1)."""
        return self.width * (self.dimension + 1)

    def start(self, rng: np.random.Generator) -> Array:
        """Return a random start with a standard Gaussian and W Gaussian of variance 1/d."""
        rows = rng.standard_normal((self.width, self.dimension + 1))
        rows[:, 1:] /= np.sqrt(self.dimension)
        return rows.ravel()

    def _parts(self, theta: Array, X: Array) -> tuple[Array, Array, Array]:
        rows = theta.reshape(self.width, self.dimension + 1)
        active = np.tanh(X @ rows[:, 1:].T)
        return rows[:, 0] / np.sqrt(self.width), active, 1 - active**2

    def outputs(self, theta: Array, X: Array) -> Array:
        """Return f at the rows of X, one column."""
        a, active, _ = self._parts(theta, X)
        return np.asarray((active @ a)[:, None])

    def jacobian(self, theta: Array, X: Array) -> Array:
        """Return the derivatives of f, one row per sample.

        >>> net, rng = PlainTanh(2, 3), np.random.default_rng(0)
        >>> theta, X, h = net.start(rng), rng.standard_normal((1, 2)), 1e-6
        >>> slopes = [(net.outputs(theta + h * e, X) - net.outputs(theta - h * e, X)).item() / (2 * h) for e in np.eye(9)]
        >>> bool(np.allclose(slopes, net.jacobian(theta, X)))
        True
        """
        a, active, slope = self._parts(theta, X)
        across = (a * slope)[:, :, None] * X[:, None, :]
        return np.concatenate([active[:, :, None] / np.sqrt(self.width), across], axis=2).reshape(len(X), -1)

    def curvature(self, theta: Array, X: Array, residuals: Array) -> Array:
        """Return the mean of residual times Hessian of the output, which has one block per neuron."""
        a, active, slope = self._parts(theta, X)
        size, n = self.dimension + 1, len(X)
        matrix = np.zeros((self.parameters, self.parameters))
        mixed = (residuals[:, None] * slope).T @ X / (n * np.sqrt(self.width))
        for j in range(self.width):
            place = slice(j * size + 1, (j + 1) * size)
            weights = residuals * a[j] * (-2 * active[:, j] * slope[:, j]) / n
            matrix[place, place] = (X.T * weights) @ X
            matrix[j * size, place] = matrix[place, j * size] = mixed[j]
        return matrix

    # the other methods that Levenberg-Marquardt calls

    def backward(self, theta: Array, X: Array) -> tuple[Array, Array]:
        """Return the outputs and their Jacobian."""
        return self.outputs(theta, X), self.jacobian(theta, X)

    def derivatives(self, jacobian: Array) -> Array:
        """Return the Jacobian."""
        return jacobian

    def gram(self, jacobian: Array) -> Array:
        """Return the Jacobian times its transpose."""
        return np.asarray(jacobian @ jacobian.T)

    def pull_back(self, jacobian: Array, v: Array) -> Array:
        """Return the transposed Jacobian times v."""
        return np.asarray(jacobian.T @ v)


@dataclass(frozen=True)
class Fit:
    """Parameters, mean loss and iterations of a trained network, and the number of residuals that are not 0 (hinge margins below 1)."""

    theta: Array
    loss: float
    iterations: int
    unsatisfied: int


def levenberg_marquardt(
    network: TanhNetwork,
    theta: Array,
    X: Array,
    y: Array,
    loss: Loss = "square",
    goal: float = GOAL,
    iterations: int = ITERATIONS,
    damping: float = DAMPING,
) -> Fit:
    """Train from a start until the mean loss is below `goal`, for at most `iterations` iterations.

    Parameters
    ----------
    network, theta
        The network and its parameters at the start.
    X, y
        Inputs and labels, shape (rows, outputs) or (rows,).
    loss
        "square": mean (y - f)^2; "squared_hinge": mean max(0, 1 - y f)^2 of labels +-1, to which satisfied margins do not contribute.
    goal, iterations
        Mean loss, and number of iterations, at which training stops.
    damping
        mu at the start. If many parameters interpolate, it influences the result: with more damping the fit stays closer to the start.

    Examples
    --------
    >>> X, y = np.linspace(-1, 1, 8)[:, None], np.tile([1.0, -1.0], 4)
    >>> net = TanhNetwork((1, 20, 1))
    >>> levenberg_marquardt(net, net.start(np.random.default_rng(0)), X, y).loss < 1e-12
    True
    """
    labels = y.reshape(len(X), -1)

    def residuals(f: Array) -> Array:
        if loss == "square":
            return (labels - f).ravel()
        return np.maximum(0.0, 1 - labels * f).ravel()

    done = 0
    current = residuals(network.outputs(theta, X))
    value = float(current @ current) / current.size
    while done < iterations and value >= goal and damping < LARGEST:
        done += 1
        target, active = current, np.ones(current.size, dtype=bool)
        inputs = X
        if loss == "squared_hinge":  # satisfied margins do not contribute; the derivatives by f have the labels' signs
            unsatisfied = (current > 0).reshape(labels.shape)
            rows = unsatisfied.any(axis=1)
            inputs, active, target = X[rows], unsatisfied[rows].ravel(), (labels.ravel() * current)[unsatisfied.ravel()]
        _, parts = network.backward(theta, inputs)
        many = network.parameters > target.size
        if many:
            gram, right = network.gram(parts), target
            gram = gram if active.all() else gram[np.ix_(active, active)]
        else:
            jacobian = network.derivatives(parts)
            jacobian = jacobian if active.all() else jacobian[active]
            gram, right = jacobian.T @ jacobian, jacobian.T @ target
        while damping < LARGEST:
            step = _solved(gram, damping, right)
            if step is not None:
                if many:
                    full = np.zeros(active.size)
                    full[active] = step
                    step = network.pull_back(parts, full)
                trial = residuals(network.outputs(theta + step, X))
                lower = float(trial @ trial) / trial.size
                if lower < value:
                    theta, current, value, damping = theta + step, trial, lower, max(damping / 3, 1 / LARGEST)
                    break
            damping *= 4
    return Fit(theta, value, done, int((np.abs(current) > 1e-5).sum()))


def first_order(
    network: TanhNetwork,
    theta: Array,
    X: Array,
    y: Array,
    rng: np.random.Generator,
    loss: Loss = "square",
    *,
    iterations: int = STEPS,
    batch: int = 256,
    step: float = 0.02,
) -> Fit:
    """Train by Adam on random batches. The thousands of cheap steps end before interpolation.

    Parameters
    ----------
    network, theta, X, y, loss
        As in `levenberg_marquardt`.
    rng
        Random number generator of the batches.
    iterations, batch, step
        Number of steps, samples in each (at most all), and Adam's step at the start.

    Examples
    --------
    >>> X, y = np.linspace(-1, 1, 8)[:, None], np.tile([1.0, 1.0, -1.0, -1.0], 2)
    >>> net, rng = TanhNetwork((1, 20, 1)), np.random.default_rng(0)
    >>> 1e-12 < first_order(net, net.start(rng), X, y, rng, iterations=500).loss < 1
    True
    """
    labels, state = y.reshape(len(X), -1), theta.copy()
    method = Adam([state], step, iterations)

    def gap(f: Array, wanted: Array) -> Array:
        return wanted - f if loss == "square" else wanted * np.maximum(0.0, 1 - wanted * f)

    def slope(inputs: Array, wanted: Array) -> Array:
        return network.gradient(state, inputs, lambda f: -2 * gap(f, wanted) / wanted.size)

    for _ in range(iterations):
        rows = slice(None) if len(X) <= batch else rng.integers(0, len(X), batch)
        method.move([slope(X[rows], labels[rows])])
    residuals = gap(network.outputs(state, X), labels)
    return Fit(state, float(np.mean(residuals**2)), iterations, int((np.abs(residuals) > 1e-5).sum()))


def _solved(gram: Array, shift: float, right: Array) -> Array | None:
    """Return (gram + shift)^-1 right, or None if rounding makes the matrix indefinite."""
    matrix = gram.copy()
    matrix.flat[:: len(matrix) + 1] += shift
    _, step, failed = dposv(matrix.T, right, lower=1, overwrite_a=1)  # symmetric; LAPACK need not copy the transpose
    return None if failed else np.asarray(step)
