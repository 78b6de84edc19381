"""Online SGD of a two-layer ReLU network on the XOR mixture as an exact chain of its summary statistics (docs/theory/xor.md, eq. 2).

The data are four clusters at +-mu (label 1) and +-nu (label 0) with noise N(0, I / lambda). The network is sum_i v_i relu(<W_i, Y>), with
logistic loss, penalty (alpha/2)(|v|^2 + |W|^2), and step delta = c / N for all parameters. The update depends on a sample only through
its components along mu and nu, its components along the parts of W orthogonal to both, and the length of the rest. Therefore (v, a, b, Q)
is a Markov chain.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@numba.njit(cache=True, nogil=True)
def _cholesky(matrix: Array, factor: Array) -> None:
    """Write the lower Cholesky factor of a positive semi-definite matrix into `factor`, with zero columns for zero pivots."""
    size = matrix.shape[0]
    for j in range(size):
        pivot = matrix[j, j]
        for k in range(j):
            pivot -= factor[j, k] ** 2
        root = math.sqrt(pivot) if pivot > 1e-14 * (matrix[j, j] + 1e-300) else 0.0
        factor[j, j] = root
        for i in range(j + 1, size):
            rest = matrix[i, j]
            for k in range(j):
                rest -= factor[i, k] * factor[j, k]
            factor[i, j] = rest / root if root > 0 else 0.0


@numba.njit(cache=True, nogil=True)
def xor_path(
    rng: Any,
    v: Array,
    a: Array,
    b: Array,
    gram: Array,
    spread: float,
    alpha: float,
    delta: float,
    dimension: int,
    counts: NDArray[np.int64],
) -> Array:
    """Return the second layer, overlaps with mu and nu, and residual squares (4, K, times) after `counts` steps.

    `spread` is lambda^(-1/2). The arrays v, a, b, gram hold the state at the start and are updated in place.

    >>> state = np.array([1.0]), np.array([0.1]), np.array([0.0]), np.eye(1)
    >>> xor_path(np.random.default_rng(0), *state, 0.0, 0.05, 0.01, 100, np.array([0, 5000])).shape
    (4, 1, 2)
    """
    width = v.size
    path, done = np.empty((4, width, counts.size)), 0
    factor, g, perp, h, push = np.zeros((width, width)), np.empty(width), np.zeros(width), np.empty(width), np.empty(width)
    keep = 1 - delta * alpha
    for i in range(counts.size):
        while done < counts[i]:
            cluster = rng.integers(0, 4)
            sign = 1.0 - 2.0 * (cluster & 1)
            along_mu, along_nu, rest = (sign, 0.0, 0.0) if cluster < 2 else (0.0, sign, 0.0)
            if spread > 0:
                along_mu += spread * rng.standard_normal()
                along_nu += spread * rng.standard_normal()
                _cholesky(gram, factor)
                for j in range(width):
                    g[j] = rng.standard_normal()
                    rest += g[j] ** 2
                    perp[j] = 0.0
                    for k in range(j + 1):
                        perp[j] += spread * factor[j, k] * g[k]
                rest = spread**2 * (rest + rng.chisquare(dimension - 2 - width))
            output = 0.0
            for j in range(width):
                h[j] = along_mu * a[j] + along_nu * b[j] + perp[j]
                output += v[j] * max(h[j], 0.0)
            error = (1.0 if cluster < 2 else 0.0) - 1 / (1 + math.exp(-output))
            for j in range(width):
                push[j] = delta * error * v[j] if h[j] > 0 else 0.0
            if spread > 0:
                for j in range(width):
                    for k in range(width):
                        gram[j, k] = (
                            keep**2 * gram[j, k] + keep * (push[j] * perp[k] + push[k] * perp[j]) + push[j] * push[k] * rest
                        )
            for j in range(width):
                v[j] = keep * v[j] + delta * error * max(h[j], 0.0)
                a[j] = keep * a[j] + push[j] * along_mu
                b[j] = keep * b[j] + push[j] * along_nu
            done += 1
        for j in range(width):
            path[0, j, i], path[1, j, i], path[2, j, i], path[3, j, i] = v[j], a[j], b[j], gram[j, j]
    return path


def random_start(rng: np.random.Generator, width: int, dimension: int) -> tuple[Array, Array, Array, Array]:
    """Return a random start, as second layer, overlaps with mu and nu, and the Gram matrix of the rest of the first layer.

    >>> [part.shape for part in random_start(np.random.default_rng(0), 3, 50)]
    [(3,), (3,), (3,), (3, 3)]
    """
    v = rng.standard_normal(width)
    a, b = rng.standard_normal((2, width)) / math.sqrt(dimension)
    rows = rng.standard_normal((width, dimension - 2)) / math.sqrt(dimension)
    return v, a, b, rows @ rows.T


def full_xor_run(
    rng: np.random.Generator, v: Array, weights: Array, spread: float, alpha: float, delta: float, steps: int
) -> tuple[Array, Array]:
    """Return the second layer and the weights after the same SGD with full vectors.

    mu and nu are the first two axes.

    >>> v, w = full_xor_run(np.random.default_rng(0), np.ones(2), np.eye(2, 20), 0.3, 0.05, 0.01, 10)
    >>> v.shape, w.shape
    ((2,), (2, 20))
    """
    v, w = v.copy(), weights.copy()
    for _ in range(steps):
        cluster = int(rng.integers(0, 4))
        sample = np.asarray(spread * rng.standard_normal(w.shape[1]))
        sample[cluster // 2] += 1.0 - 2.0 * (cluster & 1)
        h = w @ sample
        hidden = np.maximum(h, 0.0)
        error = (1.0 if cluster < 2 else 0.0) - 1 / (1 + math.exp(-float(v @ hidden)))
        change = error * hidden - alpha * v
        w += delta * (np.outer(error * v * (h > 0), sample) - alpha * w)
        v += delta * change
    return v, w
