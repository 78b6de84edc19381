"""A two-layer tanh network without biases, f = <a, tanh(W x)>/sqrt(N), with first and second derivatives in all its parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PlainTanh:
    """The network with the methods that `levenberg_marquardt` uses; parameters are one flat vector, a row (a_j, W_j) per neuron.

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
        """Return (1/n) sum_i r_i Hess f_i, which has one block per neuron."""
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

    # methods that Levenberg-Marquardt calls

    def backward(self, theta: Array, X: Array) -> tuple[Array, Array]:
        """Return f and its Jacobian."""
        return self.outputs(theta, X), self.jacobian(theta, X)

    def derivatives(self, jacobian: Array) -> Array:
        """Return J."""
        return jacobian

    def gram(self, jacobian: Array) -> Array:
        """Return J J'."""
        return np.asarray(jacobian @ jacobian.T)

    def pull_back(self, jacobian: Array, v: Array) -> Array:
        """Return J' v."""
        return np.asarray(jacobian.T @ v)
