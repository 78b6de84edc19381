"""Online SGD for a spiked tensor as an exact Markov chain of two numbers (docs/theory/spiked_tensor.md, eq. 3).

A step is x <- x - delta grad |Y - x^(k)|^2 with a fresh Y = lambda v^(k) + W. The gradient's noise has the distribution of
2 sqrt(k) R^{k-1} g + 2 sqrt(k(k-1)) R^{k-2} xi x, with R = |x|, g standard Gaussian in R^N and xi standard Gaussian. W is not drawn.
Let m = <x, v>, and let q be the squared length of the part of x orthogonal to v. A step of (m, q) uses the components of g along v and
along this part of x, and the squared length of all other components of g, which is a chi-square.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

DIVERGED = 1e6  # squared length, relative to 1 plus that of the start, at which a run counts as divergent


@numba.njit(cache=True, nogil=True)
def spiked_path(
    rng: Any, order: int, snr: float, step: float, dimension: int, m: float, q: float, counts: NDArray[np.int64]
) -> Array:
    """Return rows (overlap, squared orthogonal length) after the given numbers of steps, with inf after the run diverges.

    The size of a step is `step` / `dimension`.

    >>> path = spiked_path(np.random.default_rng(0), 2, 2.0, 1.0, 10_000, 0.1, 1.0, np.array([0, 10_000]))
    >>> bool(abs(path[1, 0] - 0.984) < 0.05 and abs(path[1, 1] - 1) < 0.05)
    True
    """
    path, done = np.full((counts.size, 2), np.inf), 0
    delta = step / dimension
    limit = DIVERGED * (1 + m * m + q)
    for i in range(counts.size):
        while done < counts[i]:
            square = m * m + q
            if not square < limit:
                return path
            radius = math.sqrt(square)
            noise_scale = 2 * math.sqrt(order) * radius ** (order - 1) * delta
            along = 2 * math.sqrt(order * (order - 1)) * radius ** (order - 2) * rng.standard_normal()
            keep = 1 + delta * (along - 2 * order * square ** (order - 1))
            side = rng.standard_normal()
            m = keep * m + delta * 2 * order * snr * m ** (order - 1) + noise_scale * rng.standard_normal()
            rest = side * side + rng.chisquare(dimension - 2)
            q = max(keep * keep * q + 2 * keep * noise_scale * math.sqrt(q) * side + noise_scale * noise_scale * rest, 0.0)
            done += 1
        path[i, 0], path[i, 1] = m, q
    return path


def full_matrix_path(
    rng: np.random.Generator, snr: float, step: float, x: Array, counts: NDArray[np.int64], direction: Array
) -> Array:
    """Return rows (overlap, squared orthogonal length) for order 2 from full matrices. This slow version checks the chain.

    >>> v = np.eye(20)[0]
    >>> full_matrix_path(np.random.default_rng(0), 2.0, 0.5, v, np.array([0, 5]), v).shape
    (2, 2)
    """
    path, done, size = np.empty((counts.size, 2)), 0, x.size
    x = x.copy()
    for i, count in enumerate(counts):
        while done < count:
            noise = rng.standard_normal((size, size))
            signal = snr * direction * (direction @ x)
            gradient = -2 * (2 * signal + noise @ x + noise.T @ x) + 4 * x * (x @ x)
            x -= step / size * gradient
            done += 1
        m = direction @ x
        path[i] = m, x @ x - m**2
    return path
