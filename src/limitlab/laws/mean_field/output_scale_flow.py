"""Training of a two-layer network with an output scale on given data, compared with its linearisation.

fhat = (alpha/N) sum_j sigma(x; theta_j) with sigma = a tanh(<w, x> + shift), minus its value at the start if centred; both layers follow
theta_j' = -(N / (2 alpha^2)) grad_j R, where R is the mean of u^2 over the points and u = y - fhat. Then
(docs/theory/mean_field.md, eqs. 20-23)

    u' = -(1/n) H u,     H = (1/N) sum_j grad sigma(x; theta_j) . grad sigma(x'; theta_j),     d|u|^2/dt = -2 <u, H u>,

where the norm and the inner product are means over the n points.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.checks import number
from limitlab.errors import Refused
from limitlab.numerics.ode import follow, runge_kutta, states_at

__all__ = ["output_scale_flow"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ScaledRun:
    """Results of `output_scale_flow`. Each is an array over times.

    Attributes
    ----------
    risk, linearised_risk
        Mean squared residual of the network, and of its linearisation at the start.
    kernel_change
        Frobenius distance of the kernel H from its start, relative to it.
    displacement
        Root mean square distance of a neuron's parameters from their start.
    residual_slope
        d|u|^2/dt = -2 <u, H u>.
    residual, linearised_residual
        u at the points, along a second axis.
    """

    risk: Array
    linearised_risk: Array
    kernel_change: Array
    displacement: Array
    residual_slope: Array
    residual: Array
    linearised_residual: Array


def tangent_kernel(x: Array, weights: Array, second_layer: Array, shift: float) -> Array:
    """Return H on the points, eq. (21).

    >>> tangent_kernel(np.eye(2), np.zeros((1, 2)), np.array([2.0]), 0.0)
    array([[4., 0.],
           [0., 4.]])
    """
    value = np.tanh(x @ weights.T + shift)
    slope = second_layer * (1 - value**2)
    return np.asarray((value @ value.T + (x @ x.T) * (slope @ slope.T)) / second_layer.size)


def output_scale_flow(
    X: ArrayLike,
    y: ArrayLike,
    weights: ArrayLike,
    second_layer: ArrayLike,
    scale: float,
    times: ArrayLike,
    shift: float = 0.0,
    centred: bool = True,
    tolerance: float = 1e-11,
    step: float | None = None,
) -> ScaledRun:
    """Train a two-layer tanh network with output scale alpha by gradient flow, and its linearisation too.

    Parameters
    ----------
    X, y
        Inputs, one per row, and labels.
    weights, second_layer
        First layer at the start, shape (N, d), and second layer, N numbers.
    scale
        The factor alpha of the output.
    times
        Increasing times; one number gives arrays of length 1.
    shift
        Number added to every neuron's score.
    centred
        Whether the output at the start is subtracted.
    tolerance
        Tolerance of the integration.
    step
        Longest step of a Runge-Kutta method with equal steps, which replaces the adaptive method. It costs less and is as accurate for
        smooth solutions.

    Examples
    --------
    >>> i, k, j = np.arange(6)[:, None], np.arange(3), np.arange(8)[:, None]
    >>> X, y = np.sin(0.4 + 1.7 * i * (k + 1)), np.cos(2 * np.arange(6))
    >>> run = output_scale_flow(X, y, np.cos(0.2 + 1.1 * j * (k + 1)), 1 + 0.5 * np.sin(3 * np.arange(8)), 4.0, [0.0, 2.0], shift=0.7)
    >>> run.risk.round(9).tolist(), run.kernel_change.round(9).tolist()
    ([0.541261074, 0.442641181], [0.0, 0.053135217])
    """
    x, labels = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    w0, a0 = np.asarray(weights, dtype=float), np.asarray(second_layer, dtype=float)
    _check(x, labels, w0, a0, scale)
    points, width, grid = labels.size, a0.size, np.atleast_1d(np.asarray(times, dtype=float))
    at_start = np.tanh(x @ w0.T + shift) @ a0 if centred else np.zeros(points)

    def parts(flat: Array) -> tuple[Array, Array, Array]:
        a, w = flat[:width], flat[width:].reshape(w0.shape)
        value = np.tanh(x @ w.T + shift)
        return a, value, labels - scale / width * (value @ a - at_start)

    def velocity(_: float, flat: Array) -> Array:
        a, value, u = parts(flat)
        pull = u[:, None] * (a * (1 - value**2))
        return np.concatenate([u @ value, (pull.T @ x).ravel()]) / (scale * points)

    start = np.concatenate([a0, w0.ravel()])
    if step is None:
        states = states_at(velocity, start, grid, tolerance)
    else:
        states = np.stack(list(follow(runge_kutta(velocity), start, grid, step)))
    kernels = [tangent_kernel(x, state[width:].reshape(w0.shape), state[:width], shift) for state in states]
    first = tangent_kernel(x, w0, a0, shift)
    residual = np.array([parts(state)[2] for state in states])
    linear = linearised(first, parts(start)[2], grid)
    return ScaledRun(
        risk=np.mean(residual**2, axis=1),
        linearised_risk=np.mean(linear**2, axis=1),
        kernel_change=np.array([np.linalg.norm(kernel - first) for kernel in kernels]) / np.linalg.norm(first),
        displacement=np.sqrt(np.sum((states - start) ** 2, axis=1) / width),
        residual_slope=np.array([-2 * u @ kernel @ u for u, kernel in zip(residual, kernels, strict=True)]) / points**2,
        residual=residual,
        linearised_residual=linear,
    )


def linearised(kernel: Array, residual: Array, times: Array) -> Array:
    """Return the residuals exp(-H t / n) u at the times, for a constant kernel H and residuals u at time 0.

    >>> linearised(np.eye(2), np.ones(2), np.array([2.0])).round(6).tolist()
    [[0.367879, 0.367879]]
    """
    rates, modes = np.linalg.eigh(kernel / residual.size)
    return np.asarray((np.exp(-np.maximum(rates, 0) * times[:, None]) * (residual @ modes)) @ modes.T)


def _check(x: Array, y: Array, w: Array, a: Array, scale: float) -> None:
    if x.ndim != 2 or y.shape != x.shape[:1]:
        raise Refused(f"y of shape {y.shape} is not allowed: must have one label per row of X, of shape {x.shape}")
    if w.ndim != 2 or a.ndim != 1 or w.shape != (a.size, x.shape[1]):
        raise Refused(
            f"weights of shape {w.shape} are not allowed: must be (N, {x.shape[1]}) for second_layer of shape {a.shape}"
        )
    number("scale", scale, above=0)
