"""ReLU networks f = (1/N) sum_i a_i relu(<w_i, x>) on inputs of the circle, trained by gradient descent on both layers."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def circle(count: int) -> Array:
    """Unit vectors at the angles 2 pi j / count, one per row.

    >>> circle(4).round(12).tolist()[1]
    [0.0, 1.0]
    """
    angle = 2 * np.pi * np.arange(count) / count
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def labels(inputs: Array, angle: float) -> Array:
    """relu(cos t) - relu(cos(t - angle)): two neurons, of which one counts negatively.

    >>> labels(circle(4), np.pi).round(12).tolist()
    [1.0, 0.0, -1.0, -0.0]
    """
    return np.asarray(np.maximum(inputs[:, 0], 0) - np.maximum(inputs @ [np.cos(angle), np.sin(angle)], 0))


@numba.njit(cache=True, nogil=True)
def _descend(a: Any, w: Any, x: Any, y: Any, step: float, steps: int) -> None:
    """Steps along -N grad R of every neuron, in place."""
    width, count = a.size, y.size
    residual = np.empty(count)
    for _ in range(steps):
        for j in range(count):
            total = 0.0
            for i in range(width):
                z = w[i, 0] * x[j, 0] + w[i, 1] * x[j, 1]
                if z > 0:
                    total += a[i] * z
            residual[j] = y[j] - total / width
        for i in range(width):
            pull, first, second = 0.0, 0.0, 0.0
            for j in range(count):
                z = w[i, 0] * x[j, 0] + w[i, 1] * x[j, 1]
                if z > 0:
                    pull += residual[j] * z
                    first += residual[j] * x[j, 0]
                    second += residual[j] * x[j, 1]
            rate = 2 * step / count
            w[i, 0], w[i, 1], a[i] = w[i, 0] + rate * a[i] * first, w[i, 1] + rate * a[i] * second, a[i] + rate * pull


def relu_descent(a: Array, w: Array, x: Array, y: Array, step: float, time: float) -> tuple[Array, Array]:
    """The two layers after a time of steps * step along -N grad R, R = mean (y - f)^2.

    >>> x = circle(20)
    >>> a, w = relu_descent(np.array([2.0]), np.array([[1.0, 0.0]]), x, labels(x, np.pi), 0.02, 100.0)
    >>> bool(abs(a[0] ** 2 - np.sum(w**2) - 3) < 0.1)  # conserved, but for the length of the steps
    True
    """
    a, w = np.array(a, dtype=float), np.array(w, dtype=float)
    _descend(a, w, np.ascontiguousarray(x), np.ascontiguousarray(y), step, round(time / step))
    return a, w


def outputs(a: Array, w: Array, x: Array) -> Array:
    """f at the rows of x."""
    return np.asarray(np.maximum(x @ w.T, 0) @ a / a.size)
