"""Thin factors of large positive semidefinite matrices, from a few of their columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def pivoted_cholesky(diagonal: ArrayLike, column: Callable[[int], Array], tolerance: float = 1e-15) -> Array:
    """A with A A^T equal to a positive semidefinite matrix up to `tolerance` times its largest entry; shape (n, rank).

    Columns are chosen where the rest is largest, and only these are ever computed: the matrix may be too large to store.

    Parameters
    ----------
    diagonal
        Diagonal of the matrix.
    column
        column(j) is its column j.
    tolerance
        Largest entry of the diagonal of the rest, as a share of the largest of the matrix.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 300)
    >>> thin = pivoted_cholesky(np.ones(300), lambda j: np.exp(-((x - x[j]) ** 2)))
    >>> thin.shape[1] < 20, bool(np.abs(thin @ thin.T - np.exp(-((x[:, None] - x) ** 2))).max() < 1e-7)
    (True, True)
    """
    rest = np.array(diagonal, dtype=float)
    smallest, parts = tolerance * float(rest.max(initial=0.0)), np.empty((0, rest.size))
    while parts.shape[0] < rest.size:
        pivot = int(np.argmax(rest))
        if rest[pivot] <= smallest:
            break
        new = (np.asarray(column(pivot), dtype=float) - parts[:, pivot] @ parts) / np.sqrt(rest[pivot])
        parts = np.vstack([parts, new])
        rest = np.maximum(rest - new**2, 0.0)
    return np.ascontiguousarray(parts.T)
