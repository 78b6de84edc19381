"""Gaussian expectations and Hermite series, with error control.

A law depends on a nonlinearity only through three kinds of Gaussian averages: E f(Z), E f(X, Y) for a correlated pair, and the
coefficients of f in the orthonormal Hermite polynomials h_k = He_k / sqrt(k!). Smooth functions are averaged by Gauss-Hermite rules of
growing order until two rules agree. Functions with kinks, or of unknown smoothness, are averaged on adaptive panels
(`limitlab.numerics.quadrature`). Each result is checked against a second rule. An average that misses its tolerance raises
`ConvergenceError`. The mathematics is in docs/theory/gaussian.md; section 4 there treats correlated pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.checks import array, number, refuse, whole
from limitlab.errors import ConvergenceError, Refused
from limitlab.numerics.quadrature import EPSILON, SMALLEST, Integers, integrate
from limitlab.numerics.quadrature import panel_rule as panel_rule

__all__ = ["expectation", "hermite_coefficients", "hermite_values", "inner_product", "norm", "pair_expectation"]

# -- rules, and the choice between them ---------------------------------------------------------------------------------

Array = NDArray[np.float64]
Function = Callable[..., Any]
Kinks = Sequence[float]

HERMITE_ORDERS = (32, 64, 128, 256)


@lru_cache(maxsize=32)
def hermite_rule(order: int) -> tuple[Array, Array]:
    """Return Gauss-Hermite nodes and weights for the standard Gaussian, exact for polynomials of degree below 2 `order`.

    >>> nodes, weights = hermite_rule(3)
    >>> float(round(weights @ nodes**4, 12))
    3.0
    """
    from scipy.special import roots_hermitenorm

    nodes, weights = roots_hermitenorm(order)
    weights = weights / weights.sum()
    nodes.setflags(write=False)
    weights.setflags(write=False)
    return nodes, weights


def averages(
    f: Callable[[Array], Array], mean: Array, std: Array, kinks: Kinks | None, tolerance: float
) -> tuple[Array, Array, Array]:
    """Return E f(mean + std Z), its error estimates and E|f|, each of shape (components, expectations)."""
    if kinks is not None and len(kinks) == 0:
        result = by_hermite(lambda z: f((mean[:, None] + std[:, None] * z).ravel()), HERMITE_ORDERS, tolerance)
        if result is not None:
            return result

    def integrand(_: Integers, x: Array) -> tuple[Array, Array, float]:
        values = f(x)
        return values, np.abs(values), 0.0

    certain = std == 0
    estimate = integrate(integrand, mean, np.where(certain, 1.0, std), kinks or (), tolerance)
    if not certain.any():
        return estimate.value, estimate.error, estimate.scale
    exact, size, _ = integrand(np.arange(mean.size), mean)
    return (
        np.where(certain, exact, estimate.value),
        np.where(certain, 0.0, estimate.error),
        np.where(certain, size, estimate.scale),
    )


def by_hermite(f: Callable[[Array], Array], orders: Sequence[int], tolerance: float) -> tuple[Array, Array, Array] | None:
    """Return the averages by the first of two agreeing Gauss-Hermite rules of growing order, or None if none agree."""
    previous: Array | None = None
    for order in orders:
        nodes, weights = hermite_rule(order)
        values = f(nodes)
        values = values.reshape(values.shape[0], -1, order)
        value, scale = values @ weights, np.abs(values) @ weights
        if previous is not None:
            error = np.abs(value - previous) + 4 * EPSILON * scale
            if np.all(error <= tolerance * scale):
                return value, error, scale
        previous = value
    return None


def declared_kinks(f: Function, kinks: Kinks | None) -> Kinks | None:
    """Return `kinks`, or the attribute `kinks` of the function if `kinks` is None, or None without such an attribute."""
    declared = getattr(f, "kinks", None) if kinks is None else kinks
    if declared is None:
        return None
    return tuple(number("kinks", kink) for kink in declared)


def values_at(f: Function, *points: Array) -> Array:
    """Return f at flat points, checked to be finite and to have at least one value per point."""
    values = np.asarray(f(*points), dtype=float)
    if values.ndim == 0:
        values = np.full(points[0].size, values)
    if values.shape[-1] != points[0].size:
        raise Refused(
            f"the function returned shape {values.shape} for {points[0].size} points: the points must be its last axis"
        )
    if not np.all(np.isfinite(values)):
        bad = np.argwhere(~np.isfinite(values))[0][-1]
        place = ", ".join(f"{float(x[bad])!r}" for x in points)
        raise Refused(f"the function is not finite at {place}: a Gaussian expectation needs finite values everywhere")
    return values


def checked(value: Array, error: Array, scale: Array, tolerance: float, with_error: bool) -> Array | tuple[Array, Array]:
    """Return the value, and its error if `with_error`; raise ConvergenceError with both if the tolerance is missed."""
    if np.any(error > (tolerance + 8 * EPSILON) * scale + 2 * SMALLEST):
        raise ConvergenceError(
            f"Gaussian expectation: error estimate {float(np.max(error)):.2g} is above {tolerance:.2g} x E|f|; "
            "declare the kinks, or accept a larger tolerance",
            estimate=value[()],
            accuracy=float(np.max(error)),
        )
    return (value[()], error[()]) if with_error else value[()]


# -- averages over a correlated pair ------------------------------------------------------------------------------------

PAIR_ORDERS = (24, 48, 96)
MOST_OUTER = 400  # panels in the first variable
BLOCK = 1_000  # averages over the second variable that are computed in one call


@overload
def pair_expectation(
    f: Function,
    correlation: ArrayLike,
    *,
    kinks: Kinks | tuple[Kinks, Kinks] | None = ...,
    tolerance: float = ...,
    with_error: Literal[False] = ...,
) -> Array: ...
@overload
def pair_expectation(
    f: Function,
    correlation: ArrayLike,
    *,
    kinks: Kinks | tuple[Kinks, Kinks] | None = ...,
    tolerance: float = ...,
    with_error: Literal[True],
) -> tuple[Array, Array]: ...
def pair_expectation(
    f: Function,
    correlation: ArrayLike,
    *,
    kinks: Kinks | tuple[Kinks, Kinks] | None = None,
    tolerance: float = 1e-10,
    with_error: bool = False,
) -> Array | tuple[Array, Array]:
    """Return E f(X, Y) for standard Gaussians X, Y of this correlation, which may be -1 or 1.

    Parameters
    ----------
    f
        Function of two flat arrays of points that returns one value per point.
    correlation
        Correlation(s) of the pair, each in [-1, 1].
    kinks
        Places c of lines x = c and y = c across which f or a derivative jumps: one sequence for both variables, or a pair
        of sequences. `()` declares f to be smooth. None makes no assumption.
    tolerance
        Largest error accepted, as a share of E|f|.
    with_error
        Whether to return the error estimate too.

    Raises
    ------
    ConvergenceError
        If the tolerance is not met. Its `estimate` and `accuracy` hold the best value and its error.

    Examples
    --------
    The arc-cosine kernel at correlation 0.5, (sqrt(3)/2 + pi/3) / (2 pi):

    >>> relu = lambda x: np.maximum(x, 0)
    >>> float(pair_expectation(lambda x, y: relu(x) * relu(y), 0.5, kinks=(0.0,)).round(8))
    0.30449889
    """
    rhos = array("correlation", correlation, least=-1, most=1)
    sides = _sides(kinks)
    results = np.array([_pair_average(f, float(rho), sides, tolerance) for rho in rhos.ravel()])
    value, error, scale = (results[:, part].reshape(rhos.shape) for part in range(3))
    return checked(value, error, scale, tolerance, with_error)


def _pair_average(f: Function, rho: float, sides: tuple[Kinks, Kinks] | None, tolerance: float) -> tuple[float, ...]:
    """Return E f(X, Y) for standard Gaussians of correlation rho, its error estimate and E|f(X, Y)|."""
    spread = float(np.sqrt((1 - rho) * (1 + rho)))
    if spread == 0:
        return _one_line(f, rho, sides, tolerance)
    result = _smooth(f, rho, spread, tolerance) if sides == ((), ()) else None
    return result if result is not None else _nested(f, rho, spread, sides or ((), ()), tolerance)


def _one_line(f: Function, rho: float, sides: tuple[Kinks, Kinks] | None, tolerance: float) -> tuple[float, ...]:
    """Return the expectation for the pair (X, X) or (X, -X), its error estimate and E|f|."""
    kinks = None if sides is None else (*sides[0], *(rho * kink for kink in sides[1]))
    result = averages(lambda x: values_at(f, x, rho * x)[None], np.zeros(1), np.ones(1), kinks, tolerance)
    return tuple(float(part[0, 0]) for part in result)


def _nested(f: Function, rho: float, spread: float, sides: tuple[Kinks, Kinks], tolerance: float) -> tuple[float, ...]:
    """Return the expectation by panels in x and, for every x, panels in y whose edges include the kinks in y."""
    unreachable = False

    def conditional_averages(x: Array) -> tuple[Array, Array, Array]:
        """Return E[f(x, Y) | X = x] and E[|f(x, Y)| | X = x] for every x, and the error of the first."""
        nonlocal unreachable

        def integrand(owner: Integers, y: Array) -> tuple[Array, Array, float]:
            values = values_at(f, x[owner], y)[None]
            return values, np.abs(values), 0.0

        goal = 1.0 if unreachable else tolerance / 10
        inner = integrate(integrand, rho * x, np.full(x.size, spread), sides[1], goal)
        weight = np.exp(-(x**2) / 2)
        unreachable = unreachable or bool(np.max(weight * inner.error) > 10 * tolerance * np.max(weight * inner.scale))
        return inner.value, inner.scale, inner.error

    def by_blocks(_: Integers, x: Array) -> tuple[Array, Array, Array]:
        """Return the values of `conditional_averages`, computed for `BLOCK` points at a time to limit the memory."""
        blocks = [conditional_averages(x[i : i + BLOCK]) for i in range(0, x.size, BLOCK)]
        value, scale, error = (np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True))
        return value, scale, error

    steep_points = [kink / rho for kink in sides[1] if abs(kink) < 38 * abs(rho)]  # where the inner average changes fastest
    outer = integrate(by_blocks, np.zeros(1), np.ones(1), (*sides[0], *steep_points), tolerance / 2, MOST_OUTER)
    return tuple(float(part[0, 0]) for part in (outer.value, outer.error, outer.scale))


def _smooth(f: Function, rho: float, spread: float, tolerance: float) -> tuple[float, ...] | None:
    """Return the average by the first of two agreeing product Gauss-Hermite rules of growing order, or None if none agree."""
    previous = np.nan
    for order in PAIR_ORDERS:
        nodes, weights = hermite_rule(order)
        x, w = np.repeat(nodes, order), np.tile(nodes, order)
        values = values_at(f, x, rho * x + spread * w).reshape(order, order)
        value, scale = float(weights @ values @ weights), float(weights @ np.abs(values) @ weights)
        error = abs(value - previous) + 4 * EPSILON * scale
        if error <= tolerance * scale:
            return value, error, scale
        previous = value
    return None


def _sides(kinks: Kinks | tuple[Kinks, Kinks] | None) -> tuple[Kinks, Kinks] | None:
    """Return the kinks in x and the kinks in y."""
    if kinks is None:
        return None
    if any(np.ndim(entry) > 0 for entry in kinks):
        refuse(len(kinks) != 2, f"kinks = {kinks!r} is not allowed: must be numbers, or one sequence for x and one for y")
        first, second = (tuple(float(kink) for kink in np.atleast_1d(side)) for side in kinks)
        return first, second
    both = tuple(float(kink) for kink in kinks)  # type: ignore[arg-type]
    return both, both


# -- kinks of a function of unknown smoothness --------------------------------------------------------------------------

NARROW = 1e-3  # panels that were halved to this width surround a kink
# (mean, std) of two Gaussians, because the average over one of them may miss a kink that lies on the edge of a panel
PROBES = ((0.1234567, 3.0), (-0.3141593, 3.3))
SAME = 1e-12  # largest relative distance at which two branches count as equal
DEGREE = 5


def find_kinks(f: Function) -> tuple[float, ...]:
    """Return the points where f or its derivative jumps, in increasing order.

    An adaptive average of f produces narrow panels around each kink. Each kink is then located by bisection between the smooth
    branches to its left and to its right. The result is the decimal number with the fewest digits at which the two branches
    are equal to rounding. Kinks beyond about |x| = 20 are not found, because they do not contribute to the average. Jumps of
    the second derivative are sometimes found.

    Parameters
    ----------
    f
        Function of a flat array of points that returns one value per point.

    Examples
    --------
    >>> find_kinks(lambda x: np.maximum(x, 0) + np.sign(x - 0.7))
    (0.0, 0.7)
    >>> find_kinks(np.tanh)
    ()
    """

    def integrand(_: Integers, x: Array) -> tuple[Array, Array, float]:
        values = values_at(f, x)[None]
        return values, np.abs(values), 0.0

    places: list[float] = []
    for mean, std in PROBES:
        estimate = integrate(integrand, np.array([mean]), np.array([std]), (), 1e-12)
        narrow = estimate.widths < NARROW
        order = np.argsort(estimate.middles[narrow])
        middles, widths = estimate.middles[narrow][order], estimate.widths[narrow][order]
        low, high = (mean + std * (middles + side * widths / 2) for side in (-1, 1))
        starts = np.flatnonzero(low[1:] > high[:-1] + NARROW) + 1
        groups = zip(np.split(low, starts), np.split(high, starts), strict=True)
        new = [_located(f, *_narrowest(a, b)) for a, b in groups if a.size]
        places += [place for place in new if all(abs(place - old) > NARROW for old in places)]
    return tuple(sorted(places))


def _narrowest(low: Array, high: Array) -> tuple[float, float]:
    """Return the ends of the narrowest of adjacent panels and its two neighbours, because the kink may be on an edge."""
    i = int(np.argmin(high - low))
    return float(low[max(i - 1, 0)]), float(high[min(i + 1, low.size - 1)])


def _located(f: Function, low: float, high: float) -> float:
    """Return the point of an interval where f changes from its left branch to its right branch."""
    reach = max(10 * (high - low), 1e-4)
    left, right = _branch(f, low - reach, low), _branch(f, high, high + reach)
    a, b = low, high
    while True:
        middle = (a + b) / 2
        if not a < middle < b:
            break
        value = values_at(f, np.array([middle]))[0]
        a, b = (middle, b) if abs(value - left(middle)) <= abs(value - right(middle)) else (a, middle)
    alike = SAME * float(np.max(np.abs(values_at(f, np.array([low, high])))))
    for digits in range(17):
        simple = round(b, digits) + 0.0
        close = abs(simple - b) <= 4 * EPSILON * max(abs(b), NARROW)
        if close or (low <= simple <= high and abs(left(simple) - right(simple)) <= alike):
            return simple
    return b


def _branch(f: Function, low: float, high: float) -> np.polynomial.Chebyshev:
    """Return the polynomial through f at Chebyshev points of an interval on which f is smooth."""
    return np.polynomial.Chebyshev.interpolate(lambda x: values_at(f, x), DEGREE, domain=[low, high])


# -- expectations and series --------------------------------------------------------------------------------------------


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
    """Return E f(mean + std Z) for a standard Gaussian Z.

    Parameters
    ----------
    f
        Function of a flat array of points. It may return several values per point, along leading axes.
    mean, std
        Mean and standard deviation; arrays broadcast and give one expectation each.
    kinks
        Points where f or a derivative of f jumps. `()` declares f to be smooth, and Gauss-Hermite rules are tried first.
        None stands for the attribute `kinks` of f. If f has no such attribute, kinks are located by bisection.
    tolerance
        Largest error accepted, as a share of E|f|.
    with_error
        Whether to return the estimate of the absolute error too.

    Returns
    -------
    ndarray, or (ndarray, ndarray)
        Values of shape (*leading axes of f, *shape of mean and std), and their error estimates if `with_error`.

    Raises
    ------
    ConvergenceError
        If the tolerance is not met. Its `estimate` and `accuracy` hold the best value and its error.
    ValueError
        If f is not finite at some point.

    Examples
    --------
    >>> float(expectation(np.exp, kinks=()).round(12)) == round(float(np.exp(0.5)), 12)
    True
    >>> expectation(np.abs, std=[1.0, 2.0]).round(6)
    array([0.797885, 1.595769])
    """
    centre, spread = np.broadcast_arrays(array("mean", mean), array("std", std, least=0))
    lead: tuple[int, ...] = ()

    def flat(x: Array) -> Array:
        nonlocal lead
        values = values_at(f, x)
        lead = values.shape[:-1]
        return values.reshape(-1, x.size)

    result = averages(flat, centre.ravel(), spread.ravel(), declared_kinks(f, kinks), tolerance)
    value, error, scale = (part.reshape((*lead, *centre.shape)) for part in result)
    return checked(value, error, scale, tolerance, with_error)


def norm(f: Function, *, kinks: Kinks | None = None, tolerance: float = 1e-12) -> Array:
    """Return the Gaussian norm sqrt(E f(Z)^2).

    The arguments are those of `expectation`.

    >>> float(norm(lambda x: x**3).round(12)) == round(15**0.5, 12)
    True
    """
    places = declared_kinks(f, kinks)
    return np.sqrt(expectation(lambda x: values_at(f, x) ** 2, kinks=places, tolerance=tolerance))


def inner_product(f: Function, g: Function, *, kinks: Kinks | None = None, tolerance: float = 1e-12) -> Array:
    """Return E f(Z) g(Z).

    `kinks` are the kinks of both functions. None stands for those that f and g declare; if one of them declares none, kinks
    are located by bisection.

    >>> float(inner_product(np.sin, lambda x: x).round(12)) == round(float(np.exp(-0.5)), 12)
    True
    """
    places = kinks
    if kinks is None:
        sides = [declared_kinks(h, None) for h in (f, g)]
        places = None if None in sides else tuple(kink for side in sides for kink in side or ())
    return expectation(lambda x: values_at(f, x) * values_at(g, x), kinks=places, tolerance=tolerance)


def hermite_values(x: ArrayLike, degree: int) -> Array:
    """Return the orthonormal Hermite polynomials h_0(x), ..., h_degree(x), stacked along a first axis.

    The recurrence is sqrt(k+1) h_{k+1} = x h_k - sqrt(k) h_{k-1}. Its terms overflow only if the values do.

    >>> hermite_values([0.0, 1.0], 2)
    array([[ 1.        ,  1.        ],
           [ 0.        ,  1.        ],
           [-0.70710678,  0.        ]])
    """
    points = np.asarray(x, dtype=float)
    table = np.empty((whole("degree", degree, least=0) + 1, *points.shape))
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
    """Return the coefficients E f(Z) h_k(Z), k = 0, ..., degree, in the orthonormal basis h_k = He_k / sqrt(k!).

    Parameters
    ----------
    f
        Function of a flat array of points, square-integrable under the Gaussian.
    degree
        Largest degree.
    kinks, tolerance, with_error
        As in `expectation`. The error of each coefficient is relative to E|f h_k|, which is at most the norm of f.

    Returns
    -------
    ndarray, or (ndarray, ndarray)
        The degree + 1 coefficients, and their error estimates if `with_error`.

    Examples
    --------
    >>> hermite_coefficients(lambda x: x**3, 4).round(12) + 0.0
    array([0.        , 3.        , 0.        , 2.44948974, 0.        ])
    """
    top = whole("degree", degree, least=0)

    def products(x: Array) -> Array:
        return values_at(f, x) * hermite_values(x, top)

    # None selects panels. An empty tuple of kinks would select a Gauss-Hermite rule, which aliases high degrees.
    places = declared_kinks(f, kinks) or None
    result = averages(products, np.zeros(1), np.ones(1), places, tolerance)
    value, error, scale = (part[:, 0] for part in result)
    return checked(value, error, scale, tolerance, with_error)
