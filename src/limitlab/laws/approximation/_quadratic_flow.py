"""Gradient flow of the network of quadratic neurons on the population risk (docs/theory/approximation.md, eq. 26).

With W the d x N matrix of neurons, c the intercept, E = B - W W^T and s = Tr E + b_0 - c,

    risk = 2 |E|_F^2 + s^2,        dW/dt = 8 E W + 4 s W,        dc/dt = 2 s.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import Refused
from limitlab.numerics.ode import integrate

Array = NDArray[np.float64]


def population_risk(eigenvalues: Array, weights: Array, intercept: float, constant: float) -> float:
    """E (f_* - f)^2 for Gaussian inputs.

    >>> population_risk(np.array([1.0, 0.0]), np.array([[1.0], [0.0]]), 0.0, 0.5)
    0.25
    """
    error = np.diag(eigenvalues) - weights @ weights.T
    return float(2 * (error**2).sum() + (np.trace(error) + constant - intercept) ** 2)


def population_flow(eigenvalues: Array, weights: Array, intercept: float, times: ArrayLike, constant: float) -> Array:
    """The risk at increasing times along the flow, from `weights` (d x N) and `intercept`.

    >>> population_flow(np.array([1.0, 0.5]), np.array([[0.5], [0.1]]), 0.0, [0.0, 8.0], -1.5).round(6).tolist()
    [1.6828, 0.5]
    """
    if weights.ndim != 2 or weights.shape[0] != eigenvalues.size:
        raise Refused(
            f"weights of shape {weights.shape} are not allowed: must have {eigenvalues.size} rows, one per dimension"
        )
    grid = np.atleast_1d(np.asarray(times, dtype=float))
    if not (np.isfinite(grid).all() and (grid >= 0).all() and (np.diff(grid) > 0).all()):
        raise Refused(f"times = {times!r} are not allowed: must be increasing, finite and at least 0")
    shape, B = weights.shape, np.diag(eigenvalues)

    def velocity(_: float, state: Array) -> Array:
        w = state[:-1].reshape(shape)
        error = B - w @ w.T
        mean = np.trace(error) + constant - state[-1]
        return np.append(8 * error @ w + 4 * mean * w, 2 * mean)

    path = integrate(velocity, np.append(weights, intercept), grid, tolerance=1e-10)
    return np.array([population_risk(eigenvalues, row[:-1].reshape(shape), float(row[-1]), constant) for row in path.states])
