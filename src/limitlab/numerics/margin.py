"""The hard margin of a set of vectors, with a certificate for either answer.

The margin of v_1, ..., v_n (labelled samples y_i x_i of a classifier without intercept) is

    kappa = max_{|a| <= 1} min_i <v_i, a> = min_{alpha in the simplex} |sum_i alpha_i v_i|,

the distance of their convex hull from the origin. The two sides are bounds that anybody can check: every direction a gives a
lower bound, every convex combination alpha an upper one. A solver is not believed when it says that it is done: the answer is
"separable" when the two bounds meet above zero, "not separable" when the upper one is zero to rounding, and a
`ConvergenceError` in every other case. An unfinished run is never taken for a set that cannot be separated.

The bounds come from the least-distance form of the problem (Lawson and Hanson 1974, chapter 23): non-negative least squares

    min_{u >= 0}  |sum_i u_i v_i|^2 + (sum_i u_i - 1)^2,

which an active-set method solves exactly in finitely many steps, and whose minimum is zero exactly when kappa is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.checks import array
from limitlab.errors import ConvergenceError

__all__ = ["HardMargin", "hard_margin"]

Array = NDArray[np.float64]

MEET = 1e-8  # largest accepted distance of the two bounds, relative to the margin
ZERO = 1e-11  # upper bounds below this share of the largest vector are zero
RANK = 1e-13  # pivots below this share of the largest are zero
SWEEPS = 30  # steps of the active-set method per vector


@dataclass(frozen=True)
class HardMargin:
    """The margin of a set of vectors, what attains it, and the two bounds that prove it.

    Attributes
    ----------
    separable
        Whether some direction has a positive product with every vector.
    margin
        kappa; 0 when not separable.
    direction
        The unit vector a that attains it; 0 when not separable.
    weights
        The convex combination alpha whose norm is kappa; positive exactly on the support vectors.
    lower, upper
        min_i <v_i, a> and |sum_i alpha_i v_i|, between which kappa lies.
    """

    separable: bool
    margin: float
    direction: Array
    weights: Array
    lower: float
    upper: float

    @property
    def support(self) -> NDArray[np.int64]:
        """Indices of the support vectors: those with a positive weight."""
        return np.flatnonzero(self.weights)


def hard_margin(vectors: ArrayLike) -> HardMargin:
    """The largest margin by which one direction separates all the vectors from the origin, exactly.

    Parameters
    ----------
    vectors
        One vector per row, shape (n, N): y_i x_i for labels y_i = -1, +1. There is no intercept.

    Raises
    ------
    ConvergenceError
        When neither "separable" nor "not separable" could be certified; `estimate` holds the two bounds.

    Examples
    --------
    >>> found = hard_margin([[1.0, 0.5], [0.4, 1.2], [2.0, 2.5], [1.5, 0.3]])
    >>> (found.direction / found.margin).round(12).tolist(), found.support.tolist()
    ([0.7, 0.6], [0, 1])
    >>> hard_margin([[1.0, 0.0], [-1.0, 1.0], [-1.0, -1.0]]).separable
    False
    """
    V = array("vectors", vectors, shape=("n", "N"))
    if len(V) < V.shape[1]:  # the direction lies in the span of the rows: work with their coordinates there
        basis, triangle = np.linalg.qr(V.T)
        found = hard_margin(triangle.T)
        return HardMargin(found.separable, found.margin, basis @ found.direction, found.weights, found.lower, found.upper)
    largest = float(np.sqrt((V**2).sum(axis=1).max()))
    scale = float(np.sqrt(np.mean(V**2))) or 1.0
    for order in (1, -1):  # with many ties the active-set method now and then stops early in one order, and not in the other
        found = _bounds(V, _closest_combination(V[::order] / scale)[::order])
        if found.lower > 0:
            polished = _on_support(V, found)
            found = min((found, polished), key=lambda each: each.upper - each.lower)
            if found.upper - found.lower <= MEET * found.upper:
                return found
        if found.upper <= ZERO * largest:
            zero = np.zeros(V.shape[1])
            return HardMargin(False, 0.0, zero, found.weights, 0.0, found.upper)
    raise ConvergenceError(
        f"the margin could not be certified: it lies between {found.lower:.6g} and {found.upper:.6g} "
        f"(vectors of norm up to {largest:.6g}); separability is undecided, perturb the data or rescale its columns",
        estimate=(found.lower, found.upper),
        accuracy=found.upper - found.lower,
    )


def _closest_combination(V: Array) -> Array:
    """Weights of the convex combination nearest to the origin, by non-negative least squares."""
    from scipy.optimize import nnls

    table = np.vstack([V.T, np.ones(len(V))])
    target = np.zeros(len(table))
    target[-1] = 1.0
    try:
        weights, _ = nnls(table, target, maxiter=SWEEPS * len(V))
    except RuntimeError as error:  # it ran out of steps
        raise ConvergenceError(
            "non-negative least squares did not finish; separability is undecided", accuracy=np.inf
        ) from error
    return np.asarray(weights / weights.sum())


def _bounds(V: Array, weights: Array, towards: Array | None = None) -> HardMargin:
    """Both bounds: the norm of a convex combination, and the least product with its direction, or with that of a vector `towards`."""
    point = weights @ V
    upper = float(np.linalg.norm(point))
    chosen = point if towards is None else towards
    direction = chosen / (np.linalg.norm(chosen) or 1.0)
    lower = float((V @ direction).min())
    return HardMargin(lower > 0, upper, direction, weights, lower, upper)


def _on_support(V: Array, found: HardMargin) -> HardMargin:
    """The same solution from the linear equations <v_i, w> = 1 on its support, which lose no digits to a small margin; the combination of
    the vectors does, and its direction too, where they nearly cancel."""
    from scipy.linalg import solve_triangular

    support = found.support
    basis, triangle = np.linalg.qr(V[support].T)
    pivots = np.abs(np.diagonal(triangle))
    if support.size > V.shape[1] or pivots.min() <= RANK * pivots.max():
        return found
    along = solve_triangular(triangle, np.ones(support.size), trans="T")
    alpha = solve_triangular(triangle, along)  # w = sum_i alpha_i v_i
    if not (alpha > 0).all():
        return found
    weights = np.zeros(len(V))
    weights[support] = alpha / alpha.sum()
    return _bounds(V, weights, basis @ along)
