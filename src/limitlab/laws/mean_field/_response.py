"""First and second derivatives of the mean-field flow with respect to the distribution of the weights at the start.

The nodes of a discrete distribution with shares w_j move by theta_j' = 2 E (y - f) x sigma'(theta_j x), f = sum_j w_j sigma(theta_j x).
Moving a share e of the distribution to node k changes nodes and output by e theta^1 + e^2 theta^2 / 2 and e f^1 + e^2 f^2 / 2. The
coefficients solve linear equations along the flow (docs/theory/mean_field.md, eqs. 16-19). All directions k are integrated together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.models.activations import Activation
from limitlab.numerics.ode import states_at

Array = NDArray[np.float64]

THIRD = 1e-4  # step of the difference that gives the third derivative of an activation


class Response(NamedTuple):
    """Arrays over times of the risk and of the limits of N Var R_N and N (E R_N - R)."""

    risk: Array
    fluctuation: Array
    bias: Array


@dataclass(frozen=True)
class ScalarFlow:
    """Neurons sigma(theta x) of one weight, with a quadrature rule for x and labels at its points."""

    activation: Activation
    inputs: Array
    weights: Array
    labels: Array

    def slopes(self, theta: Array) -> tuple[Array, Array, Array, Array]:
        """Return sigma and its derivatives in theta, x sigma', x^2 sigma'' and x^3 sigma''', for every node at every input."""
        z, x = theta[:, None] * self.inputs, self.inputs
        second = self.activation.second_derivative
        third = (second(z + THIRD) - second(z - THIRD)) / (2 * THIRD)
        return self.activation(z), x * self.activation.derivative(z), x**2 * second(z), x**3 * third

    def velocity(self, theta: Array, shares: Array) -> Array:
        """Return 2 E (y - f) x sigma'(theta_j x), eq. (1)."""
        z = theta[:, None] * self.inputs
        pull = 2 * self.weights * (self.labels - shares @ self.activation(z))
        return np.asarray((self.inputs * self.activation.derivative(z)) @ pull)

    def changes(self, theta: Array, first: Array, second: Array, shares: Array) -> tuple[Array, Array, Array, Array]:
        """Return the velocities of `first` and `second`, one row per direction, and the first two derivatives of the risk."""
        value, slope, curve, jerk = self.slopes(theta)
        residual = self.weights * (self.labels - shares @ value)
        weighted = shares[:, None] * slope
        f1 = value - shares @ value + first @ weighted  # eq. (18)
        moved = np.diagonal(first)[:, None] * slope - first @ weighted
        f2 = 2 * moved + first**2 @ (shares[:, None] * curve) + second @ weighted
        stiffness, bend = 2 * curve @ residual, 2 * jerk @ residual
        v1 = first * stiffness - 2 * (f1 * self.weights) @ slope.T
        v2 = second * stiffness + first**2 * bend - 4 * first * ((f1 * self.weights) @ curve.T)
        v2 -= 2 * (f2 * self.weights) @ slope.T
        return v1, v2, -2 * f1 @ residual, 2 * f1**2 @ self.weights - 2 * f2 @ residual

    def risk(self, theta: Array, shares: Array) -> float:
        """Return E (y - f)^2."""
        return float(self.weights @ (self.labels - shares @ self.activation(theta[:, None] * self.inputs)) ** 2)

    def response(self, nodes: Array, shares: Array, times: Array, tolerance: float = 1e-8) -> Response:
        """Return the risk of the flow and the variance and bias that it implies for finite networks, eqs. (16-17).

        >>> from limitlab.numerics.gaussian import hermite_rule
        >>> x, w = hermite_rule(20)
        >>> run = ScalarFlow(Activation("identity"), x, w, 2 * x).response(x, w, np.array([0.0, 1.0]))  # theta ~ N(0, 1), target 2 x
        >>> (run.risk / 4).round(8).tolist(), (run.fluctuation / 16).round(8).tolist(), run.bias.round(8).tolist()
        ([1.0, 0.01831564], [1.0, 0.00033546], [1.0, 0.01831564])
        """
        count = nodes.size

        def velocity(time: float, flat: Array) -> Array:
            theta, (first, second) = flat[:count], flat[count:].reshape(2, count, count)
            v1, v2, *_ = self.changes(theta, first, second, shares)
            return np.concatenate([self.velocity(theta, shares), v1.ravel(), v2.ravel()])

        start = np.concatenate([nodes, np.zeros(2 * count**2)])
        rows = []
        for state in states_at(velocity, start, times, tolerance):
            theta, (first, second) = state[:count], state[count:].reshape(2, count, count)
            *_, r1, r2 = self.changes(theta, first, second, shares)
            rows.append((self.risk(theta, shares), shares @ (r1 - shares @ r1) ** 2, shares @ r2 / 2))
        return Response(*np.array(rows).T)
