"""Two-layer networks with both layers trained by gradient flow, and means of functions over their neurons.

f = (1/N) sum_i a_i tanh(<w_i, x>) with neurons theta_i = (a_i, w_i) in R^5 and inputs in R^4, theta_i' = -N grad_i R with R = E (y - f)^2.
The population of inputs has 40 members of equal probability, so that R and its gradient are finite sums.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limitlab.numerics.ode import states_at

Array = NDArray[np.float64]

INPUTS, DIMENSION = 40, 4
STEP = 0.25
"""Step of the Runge-Kutta method for finite networks. Its error is about 1e-4 of the means at t = 8."""

AXES = np.array([1.0, 0.5, -0.5, 1.0, 0.7])
FUNCTIONS = ("risk", "tanh a", "min(|w|, 3)", "cos <u, theta>")
"""The risk, and three bounded Lipschitz functions of a neuron, where u = (1, 0.5, -0.5, 1, 0.7)."""


def means(risk: Array, theta: Array) -> Array:
    """Return the risk and the means of the bounded Lipschitz functions over neurons, shape (networks, 4)."""
    a, w = theta[..., 0], theta[..., 1:]
    parts = (np.tanh(a), np.minimum(np.linalg.norm(w, axis=-1), 3.0), np.cos(theta @ AXES))
    return np.stack([risk, *(part.mean(axis=-1) for part in parts)], axis=-1)


@dataclass(frozen=True)
class NeuronFlow:
    """Gradient flow of networks on a population of inputs.

    Examples
    --------
    >>> flow = NeuronFlow.draw(0)
    >>> theta = flow.start(np.random.default_rng(0).standard_normal((3, 20, 5)), 1.0)
    >>> flow.finite(theta, (0.0, 1.0)).shape
    (2, 3, 4)
    """

    X: Array
    y: Array

    @classmethod
    def draw(cls, seed: int) -> NeuronFlow:
        """Draw the population of inputs, with labels sin(1.5 x_1) + x_2 x_3 / 2."""
        X = np.random.default_rng(seed).standard_normal((INPUTS, DIMENSION))
        return cls(X, np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2])

    def start(self, normal: Array, size: float) -> Array:
        """Return neurons at the start from standard Gaussian numbers: Gaussian with standard deviation `size` and mean 0."""
        return size * normal

    def growth(self) -> float:
        """Return the rate 2 |E y x| at which neurons near 0 grow, where a' = <c, w> and w' = c a with c = 2 E y x."""
        return float(2 * np.linalg.norm(self.y @ self.X) / len(self.X))

    def velocity(self, theta: Array) -> Array:
        """Return minus N times the gradient of the risk for every neuron. The axes of `theta` are networks, neurons and parameters."""
        a, w = theta[..., :1], theta[..., 1:]
        s = np.tanh(w @ self.X.T)
        residual = 2 * (self.y - (a * s).mean(axis=-2, keepdims=True)) / len(self.X)
        inner = a * (((1 - s**2) * residual) @ self.X)
        return np.concatenate([(s * residual).sum(axis=-1, keepdims=True), inner], axis=-1)

    def risk(self, theta: Array) -> Array:
        """Return the mean squared error of every network."""
        f = (theta[..., :1] * np.tanh(theta[..., 1:] @ self.X.T)).mean(axis=-2)
        return np.asarray(((self.y - f) ** 2).mean(axis=-1))

    def finite(self, theta: Array, times: tuple[float, ...]) -> Array:
        """Return `means` of networks along the flow, by a Runge-Kutta method, shape (times, networks, 4)."""
        rows, now = [], 0.0
        for time in times:
            steps = int(np.ceil((time - now) / STEP - 1e-9))
            for _ in range(steps):
                h = (time - now) / steps
                k1 = self.velocity(theta)
                k2 = self.velocity(theta + h / 2 * k1)
                k3 = self.velocity(theta + h / 2 * k2)
                theta = theta + h / 6 * (k1 + 2 * k2 + 2 * k3 + self.velocity(theta + h * k3))
            now = time
            rows.append(means(self.risk(theta), theta))
        return np.array(rows)

    def limit(self, size: float, times: tuple[float, ...], points: int) -> Array:
        """Return `means` of the limit N -> infinity, shape (times, 4), from scrambled Sobol points as neurons at the start.

        The flow is integrated in f and theta together by an adaptive method.
        """
        from scipy.special import ndtri
        from scipy.stats import qmc

        normal = ndtri(qmc.Sobol(DIMENSION + 1, rng=np.random.default_rng(1)).random(points))
        theta = self.start(normal, size)
        shape = theta.shape

        def velocity(_: float, flat: Array) -> Array:
            at = flat.reshape(shape)
            s = np.tanh(self.X @ at[:, 1:].T)  # inputs x neurons
            pull = 2 * (self.y - s @ at[:, 0] / points) / len(self.X)
            return np.column_stack([pull @ s, at[:, :1] * ((pull[:, None] * (1 - s**2)).T @ self.X)]).ravel()

        states = states_at(velocity, theta.ravel(), times, 1e-5).reshape(-1, *shape)
        return np.array([means(self.risk(state[None]), state[None])[0] for state in states])
