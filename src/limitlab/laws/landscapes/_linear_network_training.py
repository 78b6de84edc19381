"""Training of linear and quadratic two-layer networks by gradient flow and descent on both factors, and risks to differentiate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.numerics.ode import follow, runge_kutta

Array = NDArray[np.float64]

STEP = 0.5
"""Step of a descent times the squared size of the weights, below the edge of stability."""


def aligned_start(rng: np.random.Generator, left: Array, right: Array, strength: float) -> tuple[Array, Array]:
    """Return (W2, W1) with W2 W1 = strength * left right', balanced (W1 W1' = W2' W2), with a random basis of hidden neurons.

    >>> w2, w1 = aligned_start(np.random.default_rng(0), np.eye(2), np.eye(2), 0.5)
    >>> bool(np.allclose(w2 @ w1, np.eye(2) / 2)), bool(np.allclose(w1 @ w1.T, w2.T @ w2))
    (True, True)
    """
    basis, root = np.linalg.qr(rng.standard_normal((left.shape[1], left.shape[1])))[0], np.sqrt(strength)
    return root * left @ basis.T, root * basis @ right.T


def linear_flow(weights: tuple[Array, Array], target: Array, covariance: Array, times: Sequence[float] | Array) -> Array:
    """Return W2 W1 at the times under dW = -grad E |(S - W2 W1) x|^2 for x with covariance `covariance`.

    >>> path = linear_flow((np.array([[0.1]]), np.array([[0.1]])), np.array([[2.0]]), np.eye(1), [0.0, 3.0])
    >>> path[:, 0, 0].round(6).tolist()
    [0.01, 2.0]
    """

    def velocity(_: float, state: tuple[Array, Array]) -> tuple[Array, Array]:
        w2, w1 = state
        pull = 2 * (target - w2 @ w1) @ covariance
        return pull @ w1.T, w2.T @ pull

    step = 0.1 / (float(np.linalg.norm(target, 2)) * max(1.0, float(np.linalg.norm(covariance, 2))))
    return np.array([w2 @ w1 for w2, w1 in follow(runge_kutta(velocity), weights, times, step)])


def linear_descent(rng: np.random.Generator, target: Array, hidden: int, runs: int, steps: int = 4000) -> Array:
    """Return the risks |S - W2 W1|^2 of linear networks with target S after gradient descent, one per run.

    All weights start as standard Gaussian numbers. The step size is smaller while the weights are large.

    >>> linear_descent(np.random.default_rng(0), np.diag([2.0, 1.0]), 1, 3).round(9).tolist()
    [1.0, 1.0, 1.0]
    """
    rows, columns = target.shape
    w2, w1 = rng.standard_normal((runs, rows, hidden)), rng.standard_normal((runs, hidden, columns))
    for _ in range(steps):
        pull = target - w2 @ w1
        rate = STEP / (np.sum(w2**2, axis=(1, 2)) + np.sum(w1**2, axis=(1, 2)) + 1)[:, None, None]
        w2, w1 = w2 + rate * pull @ w1.swapaxes(1, 2), w1 + rate * w2.swapaxes(1, 2) @ pull
    return np.asarray(np.sum((target - w2 @ w1) ** 2, axis=(1, 2)))


def quadratic_descent(rng: np.random.Generator, target: Array, hidden: int, runs: int, steps: int = 4000) -> Array:
    """Return the risks 2 |B - W W'|^2 of the quadratic network after gradient descent, one per run.

    >>> quadratic_descent(np.random.default_rng(0), np.diag([2.0, 1.0]), 1, 3).round(9).tolist()
    [2.0, 2.0, 2.0]
    """
    w = rng.standard_normal((runs, len(target), hidden))
    for _ in range(steps):
        w = w + STEP / (np.sum(w**2, axis=(1, 2)) + 1)[:, None, None] * (target - w @ w.swapaxes(1, 2)) @ w
    return np.asarray(2 * np.sum((target - w @ w.swapaxes(1, 2)) ** 2, axis=(1, 2)))


def linear_risk(weights: Array, target: Array, hidden: int) -> Array:
    """Return |S - W2 W1|^2 as a function of one flat vector, for NumPy and JAX arrays."""
    rows, columns = target.shape
    w2, w1 = weights[: rows * hidden].reshape(rows, hidden), weights[rows * hidden :].reshape(hidden, columns)
    return ((target - w2 @ w1) ** 2).sum()


def quadratic_risk(weights: Array, target: Array, hidden: int) -> Array:
    """Return the risk 2 |B - W W'|^2 of one flat vector W (d x hidden).

    It is the risk of sum_i <w_i, x>^2 + c for labels x' B x and Gaussian x at the best c.
    """
    w = weights.reshape(len(target), hidden)
    return 2 * ((target - w @ w.T) ** 2).sum()


def critical_point(spectrum: ArrayLike, hidden: int, selected: Sequence[int], quadratic: bool = False) -> Array:
    """Return the flat weights that have learned the selected modes of a diagonal target, with all other neurons 0.

    >>> critical_point([4.0, 1.0], 1, [0]).tolist()
    [2.0, 0.0, 2.0, 0.0]
    """
    s = np.asarray(spectrum, dtype=float)
    w = np.zeros((s.size, hidden))
    for neuron, mode in enumerate(selected):
        w[mode, neuron] = np.sqrt(s[mode])
    return w.ravel() if quadratic else np.concatenate([w.ravel(), w.T.ravel()])
