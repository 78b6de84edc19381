"""What the laws of spectra compare with a drawn matrix: their shared observables, and how they are measured.

Positions are fractions of the way from the lowest to the highest edge, so that one list of them fits every law; the
distribution function is read there. The other observables are single numbers.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

SINGLE = ("second_moment", "stieltjes_transform", "atom", "smallest_eigenvalue", "largest_eigenvalue")
OBSERVABLES = ("cdf", *SINGLE)

# Linear statistics are off by 1/p, edges by p^(-2/3) (Tracy-Widom); the rank is exact.
RATES = {
    "cdf": 1.0,
    "second_moment": 1.0,
    "stieltjes_transform": 1.0,
    "atom": math.inf,
    "smallest_eigenvalue": 2 / 3,
    "largest_eigenvalue": 2 / 3,
}


def points(positions: ArrayLike, low: ArrayLike, high: ArrayLike) -> Array:
    """Eigenvalues at the given fractions of the way between the edges; positions are the last axis.

    >>> points([0.0, 0.5], 1.0, 3.0)
    array([1., 2.])
    """
    a, b = np.asarray(low, dtype=float)[..., None], np.asarray(high, dtype=float)[..., None]
    return np.asarray(a + np.asarray(positions, dtype=float) * (b - a))


def measure(eigenvalues: Array, rank: int, at: Array, shift: float) -> dict[str, ArrayLike]:
    """The observables of one drawn spectrum (in increasing order), of which `rank` are not forced to be zero."""
    size = len(eigenvalues)
    return dict(
        cdf=np.searchsorted(eigenvalues, at, side="right") / size,
        second_moment=np.mean(eigenvalues**2),
        stieltjes_transform=np.mean(1 / (eigenvalues + shift)),
        atom=1 - rank / size,
        smallest_eigenvalue=eigenvalues[size - rank],
        largest_eigenvalue=eigenvalues[-1],
    )
