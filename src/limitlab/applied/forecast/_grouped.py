"""Rows that belong together (patients, shops, days): what a fit does on groups that it has not seen.

Leaving out a group G at once needs only the fit to all points: e_G = (1 - H_GG)^-1 r_G. Where rows of one group resemble each other,
errors on new groups are larger than on new rows of known groups, and every forecast that draws rows at random is too good by that
factor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.applied.forecast._spectrum import Spectrum
from limitlab.numerics.equivalents import learned

Array = NDArray[Any]


def checked_groups(groups: ArrayLike | None, count: int) -> NDArray[np.int64] | None:
    """Groups as whole numbers, one per row."""
    if groups is None:
        return None
    found = np.asarray(groups)
    if found.shape != (count,):
        raise ValueError(f"groups of shape {found.shape} is not allowed: give one entry for each of the {count} rows")
    codes = np.unique(found, return_inverse=True)[1]
    if codes.max() < 2:
        raise ValueError("groups holds fewer than three groups: at least three are needed to leave one out")
    return np.asarray(codes, dtype=np.int64)


def left_out_groups(spectrum: Spectrum, ridges: Array, groups: NDArray[np.int64]) -> Array:
    """Mean squared residuals of every point when its whole group is left out, shape (N, ridges).

    Groups of one point are leave-one-out:

    >>> from limitlab.applied.forecast._spectrum import from_features
    >>> rng = np.random.default_rng(0)
    >>> X, lam = rng.standard_normal((12, 3)), np.array([0.1])
    >>> found = from_features(X, X[:, :1] + rng.standard_normal((12, 1)))
    >>> alone = left_out_groups(found, lam, np.arange(12))[:, 0]
    >>> bool(np.allclose(alone, (found.residuals(lam)[:, 0, 0] / (1 - found.leverages(lam)[:, 0])) ** 2))
    True
    """
    assert spectrum.vectors is not None
    residuals, share = spectrum.residuals(ridges), learned(ridges, spectrum.eigenvalues)
    out = np.empty((spectrum.population, ridges.size))
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        part = spectrum.vectors[rows].astype(float)
        own = np.eye(len(rows)) - part @ part.T  # what no kept direction sees
        for k in range(ridges.size):
            hat = (part * share[k, :-1]) @ part.T + share[k, -1] * own
            gap = np.linalg.solve(np.eye(len(rows)) - hat + 1e-9 * np.eye(len(rows)), residuals[rows, k])
            out[rows, k] = (gap**2).mean(axis=1)
    return out


def group_ratio(spectrum: Spectrum, ridge: float, groups: NDArray[np.int64]) -> float:
    """Error on groups left out over the error on rows left out."""
    lam = np.array([ridge])
    alone = (spectrum.residuals(lam)[:, 0] ** 2).mean(axis=1) / np.maximum(1 - spectrum.leverages(lam)[:, 0], 1e-6) ** 2
    return float(left_out_groups(spectrum, lam, groups).mean() / alone.mean())
