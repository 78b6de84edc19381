"""The hard margin of a set of vectors, with a certificate that the margin is positive or that it is zero.

The margin of v_1, ..., v_n (labelled samples y_i x_i of a classifier without intercept) is

    kappa = max_{|a| <= 1} min_i <v_i, a> = min_{alpha in the simplex} |sum_i alpha_i v_i|,

the distance of their convex hull from the origin. The two sides give bounds that can be checked without the solver. Every direction
a gives a lower bound, and every convex combination alpha gives an upper bound. The convergence test of the solver is not used. The
answer is "separable" if the two bounds agree and are above zero, "not separable" if the upper bound is zero to rounding, and a
`ConvergenceError` in every other case. A run that stopped early therefore never yields the answer "not separable".

The bounds come from the least-distance form of the problem (Lawson and Hanson 1974, chapter 23): non-negative least squares

    min_{u >= 0}  |sum_i u_i v_i|^2 + (sum_i u_i - 1)^2.

An active-set method solves this problem exactly in finitely many steps, and its minimum is zero exactly when kappa is zero.
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
SWEEPS = 30  # largest number of steps of the active-set method per vector


@dataclass(frozen=True)
class HardMargin:
    """The margin of a set of vectors, its direction and weights, and the two bounds that certify it.

    Attributes
    ----------
    separable
        Whether some direction has a positive product with every vector.
    margin
        The margin kappa; 0 if not separable.
    direction
        The unit vector a that attains the margin; 0 if not separable.
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
        """Indices of the support vectors, which are the vectors with a positive weight."""
        return np.flatnonzero(self.weights)


def hard_margin(vectors: ArrayLike) -> HardMargin:
    """Return the largest margin by which a direction separates all the vectors from the origin, with a certificate.

    Parameters
    ----------
    vectors
        One vector y_i x_i per row, shape (n, N), for labels y_i = -1 or +1. There is no intercept.

    Raises
    ------
    ConvergenceError
        If neither "separable" nor "not separable" could be certified. Its `estimate` holds the two bounds.

    Examples
    --------
    >>> fit = hard_margin([[1.0, 0.5], [0.4, 1.2], [2.0, 2.5], [1.5, 0.3]])
    >>> (fit.direction / fit.margin).round(12).tolist(), fit.support.tolist()
    ([0.7, 0.6], [0, 1])
    >>> hard_margin([[1.0, 0.0], [-1.0, 1.0], [-1.0, -1.0]]).separable
    False
    """
    V = array("vectors", vectors, shape=("n", "N"))
    if len(V) < V.shape[1]:  # the direction lies in the span of the rows, so coordinates in this span suffice
        basis, triangle = np.linalg.qr(V.T)
        fit = hard_margin(triangle.T)
        return HardMargin(fit.separable, fit.margin, basis @ fit.direction, fit.weights, fit.lower, fit.upper)
    largest = float(np.sqrt((V**2).sum(axis=1).max()))
    scale = float(np.sqrt(np.mean(V**2))) or 1.0
    for order in (1, -1):  # with many ties the active-set method may stop early; reversing the rows then helps
        fit = _bounds(V, _closest_combination(V[::order] / scale)[::order])
        if fit.lower > 0:
            polished = _on_support(V, fit)
            fit = min((fit, polished), key=lambda each: each.upper - each.lower)
            if fit.upper - fit.lower <= MEET * fit.upper:
                return fit
        if fit.upper <= ZERO * largest:
            zero = np.zeros(V.shape[1])
            return HardMargin(False, 0.0, zero, fit.weights, 0.0, fit.upper)
    raise ConvergenceError(
        f"the margin could not be certified: it lies between {fit.lower:.6g} and {fit.upper:.6g} "
        f"(vectors of norm up to {largest:.6g}); separability is undecided, perturb the data or rescale its columns",
        estimate=(fit.lower, fit.upper),
        accuracy=fit.upper - fit.lower,
    )


def _closest_combination(V: Array) -> Array:
    """Return the weights of the convex combination nearest to the origin, by non-negative least squares."""
    from scipy.optimize import nnls

    table = np.vstack([V.T, np.ones(len(V))])
    target = np.zeros(len(table))
    target[-1] = 1.0
    try:
        weights, _ = nnls(table, target, maxiter=SWEEPS * len(V))
    except RuntimeError as error:  # `maxiter` was reached
        raise ConvergenceError(
            "non-negative least squares did not finish; separability is undecided", accuracy=np.inf
        ) from error
    return np.asarray(weights / weights.sum())


def _bounds(V: Array, weights: Array, towards: Array | None = None) -> HardMargin:
    """Return the margin with both bounds.

    The upper bound is the norm of the convex combination. The lower bound is the smallest product of a vector with the direction
    of the combination, or with the direction of `towards` if that is not None.
    """
    point = weights @ V
    upper = float(np.linalg.norm(point))
    normal = point if towards is None else towards
    direction = normal / (np.linalg.norm(normal) or 1.0)
    lower = float((V @ direction).min())
    return HardMargin(lower > 0, upper, direction, weights, lower, upper)


def _on_support(V: Array, fit: HardMargin) -> HardMargin:
    """Return the solution recomputed from the linear equations <v_i, w> = 1 on its support.

    The solution of these equations is accurate even if the margin is small. The direction of the convex combination is not, because
    the vectors nearly cancel in the sum.
    """
    from scipy.linalg import solve_triangular

    support = fit.support
    basis, triangle = np.linalg.qr(V[support].T)
    pivots = np.abs(np.diagonal(triangle))
    if support.size > V.shape[1] or pivots.min() <= RANK * pivots.max():
        return fit
    along = solve_triangular(triangle, np.ones(support.size), trans="T")
    alpha = solve_triangular(triangle, along)  # w = sum_i alpha_i v_i
    if not (alpha > 0).all():
        return fit
    weights = np.zeros(len(V))
    weights[support] = alpha / alpha.sum()
    return _bounds(V, weights, basis @ along)
