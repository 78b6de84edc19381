"""Averages over a correlated Gaussian pair, with error control (docs/theory/gaussian.md, section 4)."""

from __future__ import annotations

from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike

from limitlab.numerics._panels import EPSILON, Integers, integrate
from limitlab.numerics.averages import Array, Function, Kinks, averages, checked, hermite_rule, values_at

HERMITE_ORDERS = (24, 48, 96)
MOST_OUTER = 400  # panels in the first variable
BLOCK = 1_000  # averages over the second variable that are computed together


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
    """E f(X, Y) for standard Gaussians X, Y of the given correlation, -1 and 1 included.

    Parameters
    ----------
    f
        Function of two flat arrays of points that returns one value per point.
    correlation
        Correlation(s) of the pair, each in [-1, 1].
    kinks
        Places c of lines x = c and y = c across which f or a derivative jumps: one sequence for both variables, or a pair
        of sequences. `()` promises that f is smooth; None promises nothing.
    tolerance
        Largest error accepted, as a share of E|f|.
    with_error
        Whether to return the error estimate too.

    Raises
    ------
    ConvergenceError
        When the tolerance is not met; `estimate` and `accuracy` say what was reached.

    Examples
    --------
    The arc-cosine kernel at correlation 0.5, (sqrt(3)/2 + pi/3) / (2 pi):

    >>> relu = lambda x: np.maximum(x, 0)
    >>> float(pair_expectation(lambda x, y: relu(x) * relu(y), 0.5, kinks=(0.0,)).round(8))
    0.30449889
    """
    rhos = np.asarray(correlation, dtype=float)
    if not np.all(np.abs(rhos) <= 1):
        raise ValueError(f"correlation = {correlation!r} is not allowed: must be between -1 and 1")
    sides = _sides(kinks)
    results = np.array([_pair_average(f, float(rho), sides, tolerance) for rho in rhos.ravel()])
    value, error, scale = (results[:, part].reshape(rhos.shape) for part in range(3))
    return checked(value, error, scale, tolerance, with_error)


def _pair_average(f: Function, rho: float, sides: tuple[Kinks, Kinks] | None, tolerance: float) -> tuple[float, ...]:
    """One pair expectation, its error estimate and E|f|."""
    spread = float(np.sqrt((1 - rho) * (1 + rho)))
    if spread == 0:
        return _one_line(f, rho, sides, tolerance)
    found = _smooth(f, rho, spread, tolerance) if sides == ((), ()) else None
    return found if found is not None else _nested(f, rho, spread, sides or ((), ()), tolerance)


def _one_line(f: Function, rho: float, sides: tuple[Kinks, Kinks] | None, tolerance: float) -> tuple[float, ...]:
    """The pair (X, X) or (X, -X)."""
    kinks = None if sides is None else (*sides[0], *(rho * kink for kink in sides[1]))
    found = averages(lambda x: values_at(f, x, rho * x)[None], np.zeros(1), np.ones(1), kinks, tolerance)
    return tuple(float(part[0, 0]) for part in found)


def _nested(f: Function, rho: float, spread: float, sides: tuple[Kinks, Kinks], tolerance: float) -> tuple[float, ...]:
    """Panels in x, and for every x panels in y, with the kinks of y at their own places in each of them."""
    hopeless = False

    def given_first(x: Array) -> tuple[Array, Array, Array]:
        """E[f(x, Y) | X = x] and E[|f(x, Y)| | X = x] for every x, and the error of the first."""
        nonlocal hopeless

        def integrand(owner: Integers, y: Array) -> tuple[Array, Array, float]:
            values = values_at(f, x[owner], y)[None]
            return values, np.abs(values), 0.0

        goal = 1.0 if hopeless else tolerance / 10
        inner = integrate(integrand, rho * x, np.full(x.size, spread), sides[1], goal)
        weight = np.exp(-(x**2) / 2)
        hopeless = hopeless or bool(np.max(weight * inner.error) > 10 * tolerance * np.max(weight * inner.scale))
        return inner.value, inner.scale, inner.error

    def by_blocks(_: Integers, x: Array) -> tuple[Array, Array, Array]:
        """The same for so many x at a time that memory stays small."""
        blocks = [given_first(x[i : i + BLOCK]) for i in range(0, x.size, BLOCK)]
        value, scale, error = (np.concatenate(parts, axis=1) for parts in zip(*blocks, strict=True))
        return value, scale, error

    shadows = [kink / rho for kink in sides[1] if abs(kink) < 38 * abs(rho)]  # where the inner average changes fastest
    outer = integrate(by_blocks, np.zeros(1), np.ones(1), (*sides[0], *shadows), tolerance / 2, MOST_OUTER)
    return tuple(float(part[0, 0]) for part in (outer.value, outer.error, outer.scale))


def _smooth(f: Function, rho: float, spread: float, tolerance: float) -> tuple[float, ...] | None:
    """Product Gauss-Hermite rules of growing order until two agree; None when they do not."""
    previous = np.nan
    for order in HERMITE_ORDERS:
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
    """The kinks in x and in y."""
    if kinks is None:
        return None
    if any(np.ndim(entry) > 0 for entry in kinks):
        if len(kinks) != 2:
            raise ValueError(f"kinks = {kinks!r} are not allowed: must be numbers, or one sequence for x and one for y")
        first, second = (tuple(float(kink) for kink in np.atleast_1d(side)) for side in kinks)
        return first, second
    both = tuple(float(kink) for kink in kinks)  # type: ignore[arg-type]
    return both, both
