"""Gaussian expectations and Hermite series, with error control.

The laws of the lab see a nonlinearity only through Gaussian averages: E f(Z), E f(X, Y) for a correlated pair, and the
coefficients of f in the orthonormal Hermite polynomials h_k = He_k / sqrt(k!). Smooth functions are averaged by
Gauss-Hermite rules of growing order; functions with kinks, or of unknown smoothness, by adaptive panels. Each result is
checked against a second rule: an average that misses its tolerance is a `ConvergenceError`. The mathematics is in
docs/theory/gaussian.md.
"""

from __future__ import annotations

from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from limitlab.numerics._kinks import find_kinks as find_kinks
from limitlab.numerics._pairs import pair_expectation as pair_expectation
from limitlab.numerics.averages import Array, Function, Kinks, averages, checked, declared_kinks, values_at
from limitlab.numerics.averages import hermite_rule as hermite_rule
from limitlab.numerics.panel_rules import panel_rule as panel_rule

__all__ = ["expectation", "hermite_coefficients", "hermite_values", "inner_product", "norm", "pair_expectation"]


@overload
def expectation(
    f: Function,
    *,
    mean: ArrayLike = ...,
    std: ArrayLike = ...,
    kinks: Kinks | None = ...,
    tolerance: float = ...,
    with_error: Literal[False] = ...,
) -> Array: ...
@overload
def expectation(
    f: Function,
    *,
    mean: ArrayLike = ...,
    std: ArrayLike = ...,
    kinks: Kinks | None = ...,
    tolerance: float = ...,
    with_error: Literal[True],
) -> tuple[Array, Array]: ...
def expectation(
    f: Function,
    *,
    mean: ArrayLike = 0.0,
    std: ArrayLike = 1.0,
    kinks: Kinks | None = None,
    tolerance: float = 1e-12,
    with_error: bool = False,
) -> Array | tuple[Array, Array]:
    """E f(mean + std Z) for a standard Gaussian Z.

    Parameters
    ----------
    f
        Function of a flat array of points. It may return several values per point, along leading axes.
    mean, std
        Mean and standard deviation; arrays broadcast and give one expectation each.
    kinks
        Points where f or a derivative of it jumps. `()` promises that f is smooth, and Gauss-Hermite is tried first. None
        takes the attribute `kinks` of f if it has one; else nothing is promised, and kinks are found by bisection.
    tolerance
        Largest error accepted, as a share of E|f|.
    with_error
        Whether to return the error estimate too (it is an absolute one).

    Returns
    -------
    ndarray, or (ndarray, ndarray)
        Values of shape (*leading axes of f, *shape of mean and std); with their error estimates if asked.

    Raises
    ------
    ConvergenceError
        When the tolerance is not met; `estimate` and `accuracy` say what was reached.
    ValueError
        When f is not finite somewhere.

    Examples
    --------
    >>> float(expectation(np.exp, kinks=()).round(12)) == round(float(np.exp(0.5)), 12)
    True
    >>> expectation(np.abs, std=[1.0, 2.0]).round(6)
    array([0.797885, 1.595769])
    """
    centre, spread = np.broadcast_arrays(np.asarray(mean, dtype=float), np.asarray(std, dtype=float))
    if not (np.all(np.isfinite(centre)) and np.all(np.isfinite(spread)) and np.all(spread >= 0)):
        raise ValueError(f"std = {std!r} and mean = {mean!r} are not allowed: must be finite, std at least 0")
    lead: tuple[int, ...] = ()

    def flat(x: Array) -> Array:
        nonlocal lead
        values = values_at(f, x)
        lead = values.shape[:-1]
        return values.reshape(-1, x.size)

    found = averages(flat, centre.ravel(), spread.ravel(), declared_kinks(f, kinks), tolerance)
    value, error, scale = (part.reshape((*lead, *centre.shape)) for part in found)
    return checked(value, error, scale, tolerance, with_error)


def norm(f: Function, *, kinks: Kinks | None = None, tolerance: float = 1e-12) -> Array:
    """The Gaussian norm sqrt(E f(Z)^2); arguments as in `expectation`.

    >>> float(norm(lambda x: x**3).round(12)) == round(15**0.5, 12)
    True
    """
    places = declared_kinks(f, kinks)
    return np.sqrt(expectation(lambda x: values_at(f, x) ** 2, kinks=places, tolerance=tolerance))


def inner_product(f: Function, g: Function, *, kinks: Kinks | None = None, tolerance: float = 1e-12) -> Array:
    """E f(Z) g(Z); `kinks` are those of both functions (None: those that f and g declare, or unknown).

    >>> float(inner_product(np.sin, lambda x: x).round(12)) == round(float(np.exp(-0.5)), 12)
    True
    """
    places = kinks
    if kinks is None:
        sides = [declared_kinks(h, None) for h in (f, g)]
        places = None if None in sides else tuple(kink for side in sides for kink in side or ())
    return expectation(lambda x: values_at(f, x) * values_at(g, x), kinks=places, tolerance=tolerance)


def hermite_values(x: ArrayLike, degree: int) -> Array:
    """The orthonormal Hermite polynomials h_0(x), ..., h_degree(x), stacked along a first axis.

    By the recurrence sqrt(k+1) h_{k+1} = x h_k - sqrt(k) h_{k-1}, in which nothing overflows that does not have to.

    >>> hermite_values([0.0, 1.0], 2)
    array([[ 1.        ,  1.        ],
           [ 0.        ,  1.        ],
           [-0.70710678,  0.        ]])
    """
    points = np.asarray(x, dtype=float)
    table = np.empty((_degree(degree) + 1, *points.shape))
    table[0] = 1.0
    if degree >= 1:
        table[1] = points
    for k in range(1, degree):
        table[k + 1] = (points * table[k] - np.sqrt(k) * table[k - 1]) / np.sqrt(k + 1)
    return table


@overload
def hermite_coefficients(
    f: Function, degree: int, *, kinks: Kinks | None = ..., tolerance: float = ..., with_error: Literal[False] = ...
) -> Array: ...
@overload
def hermite_coefficients(
    f: Function, degree: int, *, kinks: Kinks | None = ..., tolerance: float = ..., with_error: Literal[True]
) -> tuple[Array, Array]: ...
def hermite_coefficients(
    f: Function, degree: int, *, kinks: Kinks | None = None, tolerance: float = 1e-12, with_error: bool = False
) -> Array | tuple[Array, Array]:
    """Coefficients E f(Z) h_k(Z), k = 0, ..., degree, in the orthonormal basis h_k = He_k / sqrt(k!).

    Parameters
    ----------
    f
        Function of a flat array of points, square-integrable under the Gaussian.
    degree
        Largest degree.
    kinks, tolerance, with_error
        As in `expectation`; the error of each coefficient is relative to E|f h_k|, which is at most the norm of f.

    Returns
    -------
    ndarray
        The degree + 1 coefficients; with their error estimates if asked.

    Examples
    --------
    >>> hermite_coefficients(lambda x: x**3, 4).round(12) + 0.0
    array([0.        , 3.        , 0.        , 2.44948974, 0.        ])
    """
    top = _degree(degree)

    def products(x: Array) -> Array:
        return values_at(f, x) * hermite_values(x, top)

    # An empty tuple of kinks would send the products to a Gauss-Hermite rule, which aliases high degrees: panels always.
    places = declared_kinks(f, kinks) or None
    found = averages(products, np.zeros(1), np.ones(1), places, tolerance)
    value, error, scale = (part[:, 0] for part in found)
    return checked(value, error, scale, tolerance, with_error)


def _degree(degree: int) -> int:
    if isinstance(degree, bool) or degree != int(degree) or degree < 0:
        raise ValueError(f"degree = {degree!r} is not allowed: must be a whole number of at least 0")
    return int(degree)
