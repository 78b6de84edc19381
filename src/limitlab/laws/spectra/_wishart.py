"""Eigenvalues of sample covariance matrices: from a drawn table, or for Gaussian entries from an equivalent small matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def sample_eigenvalues(X: ArrayLike) -> Array:
    """All p eigenvalues of X^T X / n in increasing order; those forced to zero by p > n are exactly zero.

    >>> sample_eigenvalues([[3.0, 0.0, 1.0], [1.0, 0.0, -3.0]]).round(12)
    array([0., 5., 5.])
    """
    table = np.asarray(X, dtype=float)
    n, p = table.shape
    gram = table.T @ table if p <= n else table @ table.T
    positive = np.maximum(np.linalg.eigvalsh(gram / n), 0.0)
    return np.concatenate([np.zeros(p - positive.size), positive])


def extreme_eigenvalues(rng: np.random.Generator, dimension: int, samples: int) -> tuple[float, float]:
    """Smallest non-zero and largest eigenvalue of X^T X / n for a Gaussian X, in time linear in the size.

    Householder reflections turn a Gaussian table into a bidiagonal one whose entries are independent chi variables
    (Dumitriu and Edelman 2002), so the eigenvalues have exactly the law of those of a drawn table, without drawing it.

    >>> low, high = extreme_eigenvalues(np.random.default_rng(0), dimension=500, samples=2000)
    >>> bool(abs(low - 0.25) < 0.02 and abs(high - 2.25) < 0.06)
    True
    """
    from scipy.linalg import eigvalsh_tridiagonal

    many, few = max(dimension, samples), min(dimension, samples)
    diagonal = rng.chisquare(np.arange(many, many - few, -1.0))
    below = rng.chisquare(np.arange(few - 1, 0, -1.0))
    main = diagonal + np.concatenate([[0.0], below])
    beside = np.sqrt(diagonal[:-1] * below)
    ends = [eigvalsh_tridiagonal(main, beside, select="i", select_range=(k, k))[0] for k in (0, few - 1)]
    return max(float(ends[0]), 0.0) / samples, float(ends[1]) / samples
