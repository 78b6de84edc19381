"""Networks trained to interpolation by the Levenberg-Marquardt method: full batch, double precision, few parameters.

First-order methods do not reach interpolation near its threshold. With J the Jacobian and r the residuals a step is
(J'J + mu)^-1 J'r = J'(JJ' + mu)^-1 r, whichever system is smaller; mu is divided by 3 after a success and multiplied by 4 after a failure.
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

GOAL = 1e-12  # of the mean loss
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
        """Inputs and outputs of every layer."""
        return list(pairwise(self.widths))

    @cached_property
    def parameters(self) -> int:
        """Number of weights and biases."""
        return sum((inputs + 1) * outputs for inputs, outputs in self.shapes)

    def start(self, rng: np.random.Generator) -> Array:
        """Standard Gaussian parameters; the last bias starts at 0."""
        theta = rng.standard_normal(self.parameters)
        theta[-self.widths[-1] :] = 0.0
        return theta

    def layers(self, theta: Array) -> list[tuple[Array, Array]]:
        """Weights (inputs, outputs) and biases of every layer."""
        found, place = [], 0
        for inputs, outputs in self.shapes:
            weights = theta[place : place + inputs * outputs].reshape(inputs, outputs)
            place += inputs * outputs
            found.append((weights, theta[place : place + outputs]))
            place += outputs
        return found

    def signals(self, theta: Array, X: Array) -> tuple[list[Array], Array]:
        """What goes into every layer, and f."""
        found, signal = list[Array](), X
        for weights, biases in self.layers(theta):
            found.append(np.tanh(signal) if found else signal)
            signal = found[-1] @ weights
            signal /= math.sqrt(len(weights))
            signal += biases
        return found, signal

    def outputs(self, theta: Array, X: Array) -> Array:
        """f at the rows of X, shape (rows, outputs)."""
        return self.signals(theta, X)[1]

    def backward(self, theta: Array, X: Array) -> tuple[Array, list[tuple[Array, Array]]]:
        """f, and for every layer what goes in, (rows, inputs), and the derivatives of f by what comes out, (rows, f, outputs)."""
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
        """J' v(f) by backpropagation, without the derivatives of single outputs."""
        signals, f = self.signals(theta, X)
        back, found = v(f), list[Array]()
        for number, (weights, _) in reversed(list(enumerate(self.layers(theta)))):
            root, inside = math.sqrt(len(weights)), signals[number]
            found = [(inside.T @ back).ravel() / root, back.sum(axis=0), *found]
            back = (back @ weights.T) / root * ((1 - inside) * (1 + inside)) if number else back
        return np.concatenate(found)

    def jacobian(self, theta: Array, X: Array) -> Array:
        """Derivatives of f with respect to all parameters, shape (rows x outputs, parameters)."""
        return self.derivatives(self.backward(theta, X)[1])

    def derivatives(self, parts: list[tuple[Array, Array]]) -> Array:
        """J from the parts of `backward`."""
        rows, outputs = parts[0][1].shape[:2]
        found, place = np.empty((rows, outputs, self.parameters)), 0
        for inside, back in parts:
            inputs, width = inside.shape[1], back.shape[2]
            block = found[:, :, place : place + inputs * width].reshape(rows, outputs, inputs, width)  # a view
            np.multiply(inside[:, None, :, None], back[:, :, None, :], out=block)
            place += inputs * width
            found[:, :, place : place + width] = back
            place += width
        return found.reshape(rows * outputs, -1)

    def gram(self, parts: list[tuple[Array, Array]]) -> Array:
        """J J' from the parts of `backward`, layer by layer, without J."""
        rows, outputs = parts[0][1].shape[:2]
        total = np.zeros((rows, outputs, rows, outputs))
        for inside, back in parts:
            flat = back.reshape(rows * outputs, -1)
            block = (flat @ flat.T).reshape(total.shape)
            block *= (inside @ inside.T + 1)[:, None, :, None]
            total += block
        return total.reshape(rows * outputs, -1)

    def pull_back(self, parts: list[tuple[Array, Array]], v: Array) -> Array:
        """J' v, as a vector of parameters."""
        found = []
        for inside, back in parts:
            weighted = np.einsum("ro,rok->rk", v.reshape(back.shape[:2]), back)
            found += [(inside.T @ weighted).ravel(), weighted.sum(axis=0)]
        return np.concatenate(found)


@dataclass(frozen=True)
class Fit:
    """A trained network: parameters, mean loss, iterations, and how many residuals are not 0 (margins below 1, for the hinge)."""

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
    """Train from a start until the mean loss is below a goal, or for so many iterations.

    Parameters
    ----------
    network, theta
        The network and its parameters at the start.
    X, y
        Inputs and labels, shape (rows, outputs) or (rows,).
    loss
        "square": mean (y - f)^2; "squared_hinge": mean max(0, 1 - y f)^2 of labels +-1, in which satisfied margins play no part.
    goal, iterations
        When to stop.
    damping
        mu at the start. Where many parameters interpolate it has a say in which of them are found: more damping stays closer to the start.

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
        wanted, active = current, np.ones(current.size, dtype=bool)
        inputs = X
        if loss == "squared_hinge":  # satisfied margins play no part; the derivatives by f have the labels' signs
            unsatisfied = (current > 0).reshape(labels.shape)
            rows = unsatisfied.any(axis=1)
            inputs, active, wanted = X[rows], unsatisfied[rows].ravel(), (labels.ravel() * current)[unsatisfied.ravel()]
        _, parts = network.backward(theta, inputs)
        many = network.parameters > wanted.size
        if many:
            gram, right = network.gram(parts), wanted
            gram = gram if active.all() else gram[np.ix_(active, active)]
        else:
            jacobian = network.derivatives(parts)
            jacobian = jacobian if active.all() else jacobian[active]
            gram, right = jacobian.T @ jacobian, jacobian.T @ wanted
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
    """The same training by Adam on random batches, as it is usually done: thousands of cheap steps, which stop short of interpolation.

    Parameters
    ----------
    network, theta, X, y, loss
        As in `levenberg_marquardt`.
    rng
        Draws the batches.
    iterations, batch, step
        Steps, samples in each (all, if there are no more), and Adam's step at the start.

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
    """(gram + shift)^-1 right, or nothing where rounding has left the matrix without a root."""
    matrix = gram.copy()
    matrix.flat[:: len(matrix) + 1] += shift
    _, step, failed = dposv(matrix.T, right, lower=1, overwrite_a=1)  # symmetric: the transpose is what LAPACK need not copy
    return None if failed else np.asarray(step)
