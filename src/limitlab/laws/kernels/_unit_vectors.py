"""Averages over a uniform unit vector w of functions of two of its projections <w, x> and <w, y>.

In the plane of x and y, w has the polar coordinates r and phi, where phi is uniform and r^2 has the density (d/2 - 1)(1 - s)^(d/2 - 2)
on [0, 1]. Averages of analytic functions converge geometrically with a Gauss-Jacobi rule in r^2 and equal angles.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import Refused

Array = NDArray[Any]


@lru_cache(maxsize=32)
def plane_rule(dimension: int, radial: int = 20, angular: int = 64) -> tuple[Array, Array, Array]:
    """Two orthogonal components of a uniform unit vector in R^d (d >= 3) and weights: averages are sums over the points.

    >>> u, v, weights = plane_rule(5)
    >>> float((weights @ u**2).round(12)), float((weights @ (u**2 * v**2)).round(12)) == round(1 / 35, 12)
    (0.2, True)
    """
    from scipy.special import roots_jacobi

    if dimension < 3:
        raise Refused(f"dimension = {dimension!r} is not allowed: must be at least 3")
    nodes, weights = roots_jacobi(radial, dimension / 2 - 2, 0.0)
    radius, angle = np.sqrt((1 + nodes) / 2), 2 * np.pi * (np.arange(angular) + 0.5) / angular
    u, v = np.outer(radius, np.cos(angle)).ravel(), np.outer(radius, np.sin(angle)).ravel()
    return u, v, np.repeat(weights / weights.sum(), angular) / angular


def pair_averages(f: Callable[[Array], Array], X: Array, radial: int = 20, angular: int = 64) -> Array:
    """E f(<w, x_i>) f(<w, x_j>) over uniform unit vectors w, for all pairs of rows of X.

    >>> pair_averages(lambda u: u, np.array([[3.0, 0.0, 0.0], [1.0, 1.0, 0.0]])).round(12).tolist()
    [[3.0, 1.0], [1.0, 0.666666666667]]
    """
    table = np.asarray(X, dtype=float)
    u, v, weights = plane_rule(table.shape[1], radial, angular)
    norms = np.linalg.norm(table, axis=1)
    cosines = np.clip(table @ table.T / np.outer(norms, norms), -1.0, 1.0)
    out = np.empty_like(cosines)
    for i, norm in enumerate(norms):
        cosine = cosines[i, i:, None]
        along = norms[i:, None] * (cosine * u + np.sqrt((1 - cosine) * (1 + cosine)) * v)
        out[i, i:] = out[i:, i] = (f(norm * u) * f(along)) @ weights
    return out


def single_averages(f: Callable[[Array], Array], X: Array, radial: int = 20, angular: int = 64) -> Array:
    """E f(<w, x_i>) over uniform unit vectors w, for all rows of X.

    >>> single_averages(np.square, np.array([[3.0, 0.0, 0.0]])).round(12).tolist()
    [3.0]
    """
    u, _, weights = plane_rule(np.shape(X)[1], radial, angular)
    return np.asarray(f(np.linalg.norm(X, axis=1)[:, None] * u) @ weights)
