"""Gegenbauer polynomials, harmonic dimensions, averages over one coordinate of the sphere, and the formula of Funk and Hecke.

Notation.  x is uniform on the sphere of radius sqrt(d) in R^d, and w and w' are unit vectors. t = <w, x>/sqrt(d) has a density
           proportional to (1 - t^2)^((d-3)/2) on [-1, 1]. Q_k is the Gegenbauer polynomial of degree k with Q_k(1) = 1, and B_k is the
           number of spherical harmonics of degree k. Equation numbers are those of docs/theory/approximation.md.

              E[Q_k(t) Q_l(t)] = delta_kl / B_k,       E_x[Q_k(<w, x>/sqrt d) Q_k(<w', x>/sqrt d)] = Q_k(<w, w'>) / B_k.

B_k grows like d^k/k!. In the normalisation Q_k(1) = 1, sums of small coefficients times B_k would therefore be inaccurate. Averages use
the orthonormal q_k = sqrt(B_k) Q_k, whose values are of order 1 where the density is concentrated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.checks import refuse, whole

__all__ = ["coordinate_rule", "funk_hecke", "gegenbauer_values", "harmonic_dimension", "orthonormal_coefficients"]

Array = NDArray[np.float64]

ORDER = 32
"""Gauss-Legendre nodes per panel of `coordinate_rule`."""
REACH, PANEL, PHASE = 15.0, 1.0, 10.0
"""End of the rule and width of its panels, in units of 1/sqrt(d), and the largest phase k * width that a panel resolves."""


# -- spherical harmonics ----------------------------------------------------------------------------------------------


def log_harmonic_dimension(dimension: int, degree: int) -> float:
    """Return log B(d, k), exact to rounding because B is computed as a Python integer (eq. 2).

    >>> round(math.exp(log_harmonic_dimension(10, 3)), 9)
    210.0
    """
    return math.log(_harmonic_dimension(dimension, degree))


def harmonic_dimension(dimension: int, degree: int) -> float:
    """Return B(d, k), the number of linearly independent harmonic polynomials of degree k in d variables.

    The result is inf if it exceeds the largest floating-point number.

    >>> [harmonic_dimension(10, k) for k in (0, 1, 2, 3)]
    [1.0, 10.0, 54.0, 210.0]
    """
    count = _harmonic_dimension(dimension, degree)
    return float(count) if count.bit_length() < 1024 else math.inf


def _harmonic_dimension(dimension: int, degree: int) -> int:
    d, k = checked_dimension(dimension), checked_degree(degree)
    return 1 if k == 0 else (2 * k + d - 2) * math.comb(k + d - 3, k - 1) // k


def gegenbauer_values(t: ArrayLike, dimension: int, degree: int) -> Array:
    """Return the Gegenbauer polynomials Q_0(t), ..., Q_degree(t), stacked along a first axis.

    They have Q_k(1) = 1 and are computed by the three-term recurrence (eq. 1).

    >>> gegenbauer_values([0.0, 1.0], 3, 2)
    array([[ 1. ,  1. ],
           [ 0. ,  1. ],
           [-0.5,  1. ]])
    """
    d, top = checked_dimension(dimension), checked_degree(degree)
    points = np.asarray(t, dtype=float)
    table = np.empty((top + 1, *points.shape))
    table[0] = 1.0
    if top >= 1:
        table[1] = points
    for k in range(1, top):
        table[k + 1] = ((2 * k + d - 2) * points * table[k] - k * table[k - 1]) / (k + d - 2)
    return table


def gegenbauer_slopes(t: ArrayLike, dimension: int, degree: int, order: int = 1) -> Array:
    """Return derivatives of any order of Q_0, ..., Q_degree.

    Q_k' in dimension d is k (k+d-2)/(d-1) Q_{k-1} in dimension d + 2.

    >>> gegenbauer_slopes(1.0, 10, 3).round(12)                       # k (k + d - 2) / (d - 1) at t = 1
    array([0.        , 1.        , 2.22222222, 3.66666667])
    """
    d, top = checked_dimension(dimension), checked_degree(degree)
    if order == 0:
        return gegenbauer_values(t, d, top)
    table = np.zeros((top + 1, *np.shape(t)))
    if top >= 1:
        k = np.arange(1, top + 1).reshape(-1, *(1,) * np.ndim(t))
        table[1:] = k * (k + d - 2) / (d - 1) * gegenbauer_slopes(t, d + 2, top - 1, order - 1)
    return table


def orthonormal_values(t: ArrayLike, dimension: int, degree: int) -> Array:
    """Return q_k = sqrt(B_k) Q_k for k up to `degree`, by the recurrence t q_k = b_{k+1} q_{k+1} + b_k q_{k-1} (eq. 3).

    >>> float(orthonormal_values(1.0, 10, 3)[3].round(9)) == round(210**0.5, 9)
    True
    """
    d, top = checked_dimension(dimension), checked_degree(degree)
    points = np.asarray(t, dtype=float)
    table = np.empty((top + 1, *points.shape))
    table[0] = 1.0
    k = np.arange(1, top + 1)
    beside = np.concatenate([[0.0], np.sqrt(k * (k + d - 3) / ((2 * k + d - 2) * (2 * k + d - 4)))])
    for j in range(top):
        below = beside[j] * table[j - 1] if j else 0.0
        table[j + 1] = (points * table[j] - below) / beside[j + 1]
    return table


# -- averages over the sphere -----------------------------------------------------------------------------------------


def coordinate_rule(dimension: int, kinks: Sequence[float] = (), degree: int = 0, order: int = ORDER) -> tuple[Array, Array]:
    """Return nodes u and weights for averages of functions of u = sqrt(d) t, the coordinate of x along a unit vector.

    The rule consists of Gauss-Legendre panels in the angle phi with u = sqrt(d) sin(phi). In phi the density cos(phi)^(d-2) is
    smooth up to the poles. Every kink is an edge, and the panels are short enough for polynomials up to `degree`.

    Parameters
    ----------
    dimension
        The dimension d, at least 3.
    kinks
        Values of u where the functions to be averaged, or their derivatives, jump.
    degree
        Largest degree of the polynomials in t that the functions are multiplied with.
    order
        Nodes per panel.

    Examples
    --------
    >>> u, w = coordinate_rule(7, kinks=(0.0,))
    >>> bool(abs(w @ u**4 - 3 * 7 / 9) < 1e-13), bool(abs(w @ np.maximum(u, 0) ** 2 - 0.5) < 1e-14)
    (True, True)
    """
    d = checked_dimension(dimension)
    root = math.sqrt(d)
    end = min(math.pi / 2, REACH / root)
    inside = [math.asin(kink / root) for kink in kinks if abs(kink) < root]
    corners = np.unique([-end, *(phi for phi in inside if abs(phi) < end), end])
    width = min(PANEL / root, PHASE / max(degree, 1))
    pieces = [np.linspace(a, b, math.ceil((b - a) / width) + 1) for a, b in pairwise(corners)]
    edges = np.unique(np.concatenate(pieces))
    points, shares = np.polynomial.legendre.leggauss(order)
    steps = np.diff(edges)[:, None] / 2
    phi = (edges[:-1, None] + steps * (points + 1)).ravel()
    weights = (steps * shares).ravel() * np.cos(phi) ** (d - 2)
    return root * np.sin(phi), weights / weights.sum()


def orthonormal_coefficients(
    f: Callable[[Array], Any], dimension: int, degree: int, kinks: Sequence[float] = ()
) -> tuple[Array, float]:
    """Return the coefficients E[f(sqrt(d) t) q_k(t)] for k up to `degree`, and E[f(sqrt(d) t)^2].

    Here t = <b, x>/sqrt(d) with |b| = 1 and x uniform on the sphere of radius sqrt(d), and the q_k are the orthonormal polynomials of t.
    The absolute value of a coefficient is the norm of the projection of f(<b, x>) on the polynomials of its degree (eq. 4 of
    docs/theory/approximation.md). By Parseval's identity the squares of all coefficients add up to E[f(sqrt(d) t)^2].

    >>> coefficients, energy = orthonormal_coefficients(np.square, 5, 4)
    >>> bool(abs(coefficients @ coefficients - energy) < 1e-12), (coefficients.round(6) + 0.0).tolist()
    (True, [1.0, 0.0, 1.069045, 0.0, 0.0])
    """
    u, weights = coordinate_rule(dimension, kinks, degree)
    values = np.asarray(f(u), dtype=float)
    refuse(
        not np.isfinite(values).all(),
        f"the function is not finite on the sphere of radius sqrt({dimension}): choose another function",
    )
    table = orthonormal_values(u / math.sqrt(dimension), dimension, degree)
    return table @ (weights * values), float(weights @ values**2)


def funk_hecke(f: Callable[[Array], Any], dimension: int, degree: int, kinks: Sequence[float] = ()) -> Array:
    """Return the eigenvalues of the kernel f(<w, x>) on harmonics of degree 0, ..., `degree` (eq. 4).

    The eigenvalues are lambda_k = E[f(sqrt(d) t) Q_k(t)]. They satisfy
    E_x[Q_k(<x, y>/d) f(<w, x>)] = lambda_k Q_k(<w, y>/sqrt(d)) for every unit vector w and every y on the sphere.

    >>> (funk_hecke(lambda u: u, 9, 2).round(12) + 0.0).tolist()               # linear functions: 1/sqrt(d)
    [0.0, 0.333333333333, 0.0]
    """
    coefficients, _ = orthonormal_coefficients(f, dimension, degree, kinks)
    return coefficients * np.exp([-log_harmonic_dimension(dimension, k) / 2 for k in range(degree + 1)])


def checked_dimension(dimension: int) -> int:
    """Return a dimension of at least 3. In fewer dimensions there are no Gegenbauer polynomials of this form."""
    return whole("dimension", dimension, least=3)


def checked_degree(degree: int) -> int:
    """Return a degree of at least 0."""
    return whole("degree", degree, least=0)
