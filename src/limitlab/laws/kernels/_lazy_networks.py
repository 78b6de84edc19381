"""Two-layer networks with an output scale, trained in their first layer by gradient flow, and their linearisation.

    f(x) = (alpha / sqrt(m)) sum_j b_j s(<w_j, x>),   b_j = +1 for the first half of the neurons and -1 for the other.

The n x md Jacobian is never formed: J J' = (alpha^2/m) (D D') * (X X') entry by entry, with D_ij = s'(<w_j, x_i>).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import Refused
from limitlab.models.activations import Activation

Array = NDArray[Any]

STEP = 0.25  # time step in units of n / s_max^2


class Flow(NamedTuple):
    """Quantities along gradient flow, with a row per time and, for several networks, a first axis for networks."""

    train_error: Array  # mean squared residual
    squared_distance: Array  # |theta_t - theta_0|^2
    linear_error: Array  # mean squared residual of the linearised network
    linear_squared_distance: Array
    squared_deviation: Array  # |theta_t - thetabar_t|^2 from the linearised network
    output_gap: Array  # |f_t - fbar_t| at the training inputs
    kernel_change: Array  # |K_t - K_0| / |K_0|


@dataclass
class LazyNetworks:
    """Several networks with weights of shape (networks, m, d), on the data (X, y).

    Examples
    --------
    >>> nets = LazyNetworks(np.eye(3), np.ones(3), unit_rows(np.random.default_rng(0), 2, 8, 3), 1.0, Activation("tanh"))
    >>> nets.outputs().shape, nets.kernel().shape
    ((2, 3), (2, 3, 3))
    """

    X: Array
    y: Array
    weights: Array
    scale: float
    activation: Activation
    signs: Array | None = None

    @property
    def outer(self) -> Array:
        """The output weights alpha b_j / sqrt(m)."""
        m = self.weights.shape[-2]
        signs = half_signs(m) if self.signs is None else self.signs
        return self.scale * signs / np.sqrt(m)

    def outputs(self, weights: Array | None = None) -> Array:
        """Return f at the rows of X, shape (networks, n)."""
        inner = self.X @ (self.weights if weights is None else weights).swapaxes(-1, -2)
        return np.asarray(self.activation(inner) @ self.outer)

    def kernel(self, weights: Array | None = None) -> Array:
        """Return the tangent kernel of every network, shape (networks, n, n)."""
        slopes = (
            self.activation.derivative(self.X @ (self.weights if weights is None else weights).swapaxes(-1, -2)) * self.outer
        )
        return np.asarray((slopes @ slopes.swapaxes(-1, -2)) * (self.X @ self.X.T))

    def pull_back(self, weights: Array, residual: Array) -> Array:
        """Return the transposed Jacobian of the outputs times r, with the shape of the weights."""
        slopes = self.activation.derivative(self.X @ weights.swapaxes(-1, -2)) * self.outer
        return np.asarray((slopes * residual[..., None]).swapaxes(-1, -2) @ self.X)

    def flow(self, times: Array) -> Flow:
        """Integrate gradient flow of |y - f|^2/(2n) by Runge and Kutta's method, and return quantities at increasing times."""
        n, start = len(self.y), self.weights
        kernel, first = self.kernel(), self.outputs()
        values, vectors = np.linalg.eigh(kernel)
        away = (vectors.swapaxes(-1, -2) @ (self.y - first)[..., None])[..., 0]
        longest = STEP * n / float(values.max())
        weights, now, rows = start, 0.0, []
        for time in times:
            steps = int(np.ceil((time - now) / longest - 1e-9))
            for _ in range(steps):
                weights = self._step(weights, (time - now) / steps, n)
            now = float(time)
            rate = np.maximum(values, 0.0) / n
            gone = -np.expm1(-rate * now)  # share that the linear flow has removed from the residual, by eigenvector
            linear = first + (vectors @ (gone * away)[..., None])[..., 0]
            phi = np.divide(gone, n * rate, out=np.full_like(gone, now / n), where=rate > 0)
            moved = self.pull_back(start, (vectors @ (phi * away)[..., None])[..., 0])
            f = self.outputs(weights)
            rows.append(
                (
                    ((self.y - f) ** 2).mean(axis=-1),
                    ((weights - start) ** 2).sum(axis=(-1, -2)),
                    ((self.y - linear) ** 2).mean(axis=-1),
                    (moved**2).sum(axis=(-1, -2)),
                    ((weights - start - moved) ** 2).sum(axis=(-1, -2)),
                    np.linalg.norm(f - linear, axis=-1),
                    np.linalg.norm(self.kernel(weights) - kernel, axis=(-1, -2)) / np.linalg.norm(kernel, axis=(-1, -2)),
                )
            )
        return Flow(*(np.stack(column, axis=-1) for column in zip(*rows, strict=True)))

    def _step(self, weights: Array, h: float, n: int) -> Array:
        outer = self.outer

        def slope(at: Array) -> Array:  # J'(y - f)/n, with the inner products of both computed once
            inner = self.X @ at.swapaxes(-1, -2)
            away = (self.y - self.activation(inner) @ outer) / n
            back = self.activation.derivative(inner) * (away[..., None] * outer)
            return np.asarray(back.swapaxes(-1, -2) @ self.X)

        a = slope(weights)
        b = slope(weights + h / 2 * a)
        c = slope(weights + h / 2 * b)
        return np.asarray(weights + h / 6 * (a + 2 * b + 2 * c + slope(weights + h * c)))


def half_signs(width: int) -> Array:
    """Return +1 for the first half of the neurons and -1 for the second.

    >>> half_signs(4).tolist()
    [1.0, 1.0, -1.0, -1.0]
    """
    if width < 2 or width % 2:
        raise Refused(f"width = {width!r} is not allowed: must be an even number of at least 2, half of each sign")
    return np.repeat([1.0, -1.0], width // 2)


def unit_rows(rng: np.random.Generator, networks: int, width: int, dimension: int, antisymmetric: bool = False) -> Array:
    """Draw first layers at the start as uniform unit vectors, shape (networks, width, dimension).

    With `antisymmetric`, the neurons of the second half repeat those of the first, so that the output is 0 at the start.

    >>> unit_rows(np.random.default_rng(0), 1, 4, 3, antisymmetric=True)[0, 2:].shape
    (2, 3)
    """
    count = len(half_signs(width)) // 2 if antisymmetric else width
    rows = rng.standard_normal((networks, count, dimension))
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    return np.concatenate([rows, rows], axis=1) if antisymmetric else rows
