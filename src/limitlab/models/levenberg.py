"""Networks trained to interpolation by the Levenberg-Marquardt method: full batch, double precision, few parameters.

First-order methods do not reach interpolation near its threshold. With J the Jacobian and r the residuals a step is
(J'J + mu)^-1 J'r = J'(JJ' + mu)^-1 r, whichever system is smaller; mu is divided by 3 after a success and multiplied by 4 after a failure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from limitlab.models.adam import Adam

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

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Inputs and outputs of every layer."""
        return list(pairwise(self.widths))

    @property
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

    def outputs(self, theta: Array, X: Array) -> Array:
        """f at the rows of X, shape (rows, outputs)."""
        signal = X
        for number, (weights, biases) in enumerate(self.layers(theta)):
            signal = np.tanh(signal) if number else signal
            signal = signal @ weights / np.sqrt(len(weights)) + biases
        return signal

    def backward(self, theta: Array, X: Array) -> tuple[Array, list[tuple[Array, Array]]]:
        """f, and for every layer what goes in, (rows, inputs), and the derivatives of f by what comes out, (rows, f, outputs)."""
        layers, signals, signal = self.layers(theta), [], X
        for number, (weights, biases) in enumerate(layers):
            signal = np.tanh(signal) if number else signal
            signals.append(signal)
            signal = signal @ weights / np.sqrt(len(weights)) + biases
        back = np.broadcast_to(np.eye(signal.shape[1]), (*signal.shape, signal.shape[1]))
        parts = []
        for (weights, _), inside in zip(layers[::-1], signals[::-1], strict=True):
            parts.append((inside / np.sqrt(len(weights)), back))
            back = (back @ weights.T) / np.sqrt(len(weights)) * ((1 - inside) * (1 + inside))[:, None, :]
        return signal, parts[::-1]

    def gradient(self, theta: Array, X: Array, v: Callable[[Array], Array]) -> Array:
        """J' v(f) by backpropagation, without the derivatives of single outputs."""
        layers, signals, signal = self.layers(theta), [], X
        for number, (weights, biases) in enumerate(layers):
            signal = np.tanh(signal) if number else signal
            signals.append(signal)
            signal = signal @ weights / np.sqrt(len(weights)) + biases
        back, found = v(signal), list[Array]()
        for (weights, _), inside in zip(layers[::-1], signals[::-1], strict=True):
            found = [(inside.T @ back).ravel() / np.sqrt(len(weights)), back.sum(axis=0), *found]
            back = (back @ weights.T) / np.sqrt(len(weights)) * ((1 - inside) * (1 + inside))
        return np.concatenate(found)

    def jacobian(self, theta: Array, X: Array) -> Array:
        """Derivatives of f with respect to all parameters, shape (rows x outputs, parameters)."""
        f, parts = self.backward(theta, X)
        blocks = []
        for inside, back in parts:
            blocks.append((inside[:, None, :, None] * back[:, :, None, :]).reshape(f.size, -1))
            blocks.append(back.reshape(f.size, -1))
        return np.concatenate(blocks, axis=1)

    def gram(self, parts: list[tuple[Array, Array]]) -> Array:
        """J J' from the parts of `backward`, layer by layer, without J."""
        rows, outputs = parts[0][1].shape[:2]
        total = np.zeros((rows, outputs, rows, outputs))
        for inside, back in parts:
            flat = back.reshape(rows * outputs, -1)
            total += (inside @ inside.T + 1)[:, None, :, None] * (flat @ flat.T).reshape(total.shape)
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
        "square": mean (y - f)^2; "squared_hinge": mean max(0, 1 - y f)^2, in which satisfied margins play no part.
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
        _, parts = network.backward(theta, X)
        active = np.flatnonzero(current) if loss == "squared_hinge" else slice(None)
        slopes = np.ones(current.size) if loss == "square" else labels.ravel()
        if network.parameters > len(current[active]):
            gram = (slopes[:, None] * network.gram(parts) * slopes)[active][:, active]
            right, full = current[active], np.zeros(current.size)
        else:
            jacobian = (slopes[:, None] * network.jacobian(theta, X))[active]
            gram, right = jacobian.T @ jacobian, jacobian.T @ current[active]
        while damping < LARGEST:
            step = _solved(gram, damping, right)
            if step is not None:
                if network.parameters > len(current[active]):
                    full[active] = step
                    step = network.pull_back(parts, slopes * full)
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
    try:
        return np.asarray(
            cho_solve(cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False), right, check_finite=False)
        )
    except LinAlgError:
        return None
