"""Vectorised bracketing root finders for real functions.

limitlab writes every equation without a closed root in a form with exactly one sign change. The equation can then be solved
without a starting guess and without a choice of branch. Both solvers here work on whole arrays of equations at once: the
function is called with an array that holds one trial point per equation. They keep a bracket around every root and stop only
when the bracket is as narrow as floating-point numbers allow.

The method is Chandrupatla's (Adv. Eng. Softw. 28 (1997) 145). It uses inverse quadratic interpolation where a test of the last
three points allows it, and bisection elsewhere. In addition, if three steps did not halve the number of floating-point numbers
in a bracket, the next step does. At most 4 x 64 steps are therefore needed for any function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.checks import array
from limitlab.errors import ConvergenceError, Refused

__all__ = ["bracketed_root", "increasing_root_log"]

Array = NDArray[np.float64]
Function = Callable[[Any], Any]

EPSILON = float(np.finfo(np.float64).eps)
SMALLEST = float(np.finfo(np.float64).tiny)
LOWEST = np.int64(np.iinfo(np.int64).min)
TOP_BIT = np.uint64(2**63)
LARGEST_LOG = 690.0  # exp(690) = 1e299.7, so trial points do not overflow
FIRST_LOG_STEP = 1.0
LOG_WIDTH = 0.5  # a bracket [t, t e^0.5] is narrow enough to continue in t instead of log t
PATIENCE = 3  # number of steps after which a bracket must hold at most half as many floating-point numbers
MOST_STEPS = 4 * 64 + 16


def bracketed_root(f: Function, low: ArrayLike, high: ArrayLike) -> Array:
    """Return the root of f between `low` and `high` for every element of the arrays, accurate to rounding.

    Parameters
    ----------
    f
        Function of an array of trial points that returns an array of values, one equation per element. It may use arrays of
        its scope that broadcast. It has to change sign between `low` and `high`. If there are several roots, the result is
        one of them.
    low, high
        Ends of the brackets, in either order. They broadcast against each other and against the values of f.

    Returns
    -------
    ndarray
        The roots. The result is a NumPy scalar if all arguments and values are scalars.

    Raises
    ------
    ValueError
        If f has the same sign at both ends.
    ConvergenceError
        If f returns NaN.

    Examples
    --------
    >>> float(bracketed_root(lambda x: x**3 - 2, 0, 2)) == 2 ** (1 / 3)
    True
    >>> bracketed_root(np.cos, [1.0, 4.0], [2.0, 5.0]) / np.pi
    array([0.5, 1.5])
    """
    ends = np.broadcast_arrays(np.asarray(low, dtype=float), np.asarray(high, dtype=float))
    f_low, f_high = _values(f, ends[0]), _values(f, ends[1])
    a, b, fa, fb = (np.array(end) for end in np.broadcast_arrays(*ends, f_low, f_high))
    wrong = np.sign(fa) * np.sign(fb) > 0
    if wrong.any():
        where = _first(wrong)
        raise Refused(
            f"no sign change in the bracket: f({float(a[where])!r}) = {float(fa[where])!r} and "
            f"f({float(b[where])!r}) = {float(fb[where])!r}; widen the bracket"
        )
    root, _, _ = _chandrupatla(f, a, fa, b, fb, relative=2 * EPSILON, absolute=0.0)
    return root[()]


def increasing_root_log(f: Function, start: ArrayLike = 1.0, *, unbounded: bool = False) -> Array:
    """Return the root t > 0 of an increasing function for every element, accurate to rounding, without a bracket.

    The solver widens a bracket geometrically from `start`, narrows it in log t, and then in t.

    Parameters
    ----------
    f
        Function of an array t > 0, increasing in t, that returns an array of values, one equation per element. It may use
        arrays of its scope that broadcast.
    start
        Positive numbers at which the search begins.
    unbounded
        Whether to return a limit for equations that have no root between 1e-299 and 1e299. The limit is `inf` where f stays
        negative and 0 where f stays positive. If False, such an equation raises an error.

    Returns
    -------
    ndarray
        The roots, with the shape that `start` and the values of f broadcast to. The result is a NumPy scalar if all arguments
        and values are scalars.

    Raises
    ------
    ConvergenceError
        If some equation has no root (f then does not increase through zero), or if f returns NaN. `estimate` holds the trial
        points.

    Examples
    --------
    Ten equations t^2 + t = c at once, over twenty orders of magnitude:

    >>> c = np.geomspace(1e-10, 1e10, 10)
    >>> t = increasing_root_log(lambda t: t**2 + t - c)
    >>> bool(np.allclose(t, 2 * c / (1 + np.sqrt(1 + 4 * c)), rtol=1e-15))
    True
    >>> float(increasing_root_log(lambda t: t / (1 + t) - 2, unbounded=True))
    inf
    """
    origin = array("start", start, above=0)
    near, f_near, far, f_far = _expand(f, np.log(origin))
    missing = np.sign(f_near) * np.sign(f_far) > 0
    if missing.any() and not unbounded:
        where = _first(missing)
        raise ConvergenceError(
            f"no root: the function goes from {f_near[where]:.6g} at {np.exp(near[where]):.3g} "
            f"to {f_far[where]:.6g} at {np.exp(far[where]):.3g}; "
            "it has to increase through zero at some t between 1e-299 and 1e299",
            estimate=np.exp(far)[()],
        )
    limit = np.where(f_far > 0, 0.0, np.inf)[missing]
    far = np.where(missing, near, far)  # an empty bracket ends the search for these elements

    def in_log(x: Array) -> Array:
        return _values(f, np.exp(x))

    _, x_low, x_high = _chandrupatla(in_log, near, f_near, far, f_far, relative=0.0, absolute=LOG_WIDTH)
    low, high = np.exp(x_low), np.exp(x_high)
    root, _, _ = _chandrupatla(f, low, _values(f, low), high, _values(f, high), relative=2 * EPSILON, absolute=0.0)
    root[missing] = limit
    return root[()]


def _expand(f: Function, x: Array) -> tuple[Array, Array, Array, Array]:
    """Return a point `near`, the value of f at it, a point `far` and the value of f at it. Both points are values of x = log t.

    Either the two values have different signs, or `far` is the end of the range.
    """
    values = _values(f, np.exp(x))
    x, value = (np.array(part) for part in np.broadcast_arrays(x, values))
    near, f_near, far, f_far = x.copy(), value.copy(), x, value
    direction = -np.sign(f_near)
    step = FIRST_LOG_STEP
    while True:
        open_ = (np.sign(f_far) * direction < 0) & (np.abs(far) < LARGEST_LOG)
        if not open_.any():
            return near, f_near, far, f_far
        near, f_near = np.where(open_, far, near), np.where(open_, f_far, f_near)
        far = np.where(open_, np.clip(far + step * direction, -LARGEST_LOG, LARGEST_LOG), far)
        f_far = np.where(open_, _values(f, np.exp(far)), f_far)
        step *= 2


def _chandrupatla(
    f: Function, a: Array, fa: Array, b: Array, fb: Array, *, relative: float, absolute: float
) -> tuple[Array, Array, Array]:
    """Narrow every bracket [a, b] to width `relative` |x| + `absolute`; return the best points and the ends of the brackets.

    `a` is always the newest point, `b` the end with the opposite sign, and `c` the point that was dropped last.
    """
    a, fa, b, fb = (np.array(part) for part in np.broadcast_arrays(a, fa, b, fb))
    c, fc = b.copy(), fb.copy()
    fraction = np.full(a.shape, 0.5)
    target, patience = _floats_between(a, b) / 2, np.full(a.shape, PATIENCE)
    for steps in range(MOST_STEPS):
        best = np.where(np.abs(fa) < np.abs(fb), a, b)
        width = np.abs(b - a)
        tolerance = relative * np.abs(best) + absolute + SMALLEST
        active = (width > tolerance) & (fa != 0) & (fb != 0)
        if not active.any():
            return best, np.minimum(a, b), np.maximum(a, b)
        if steps:
            fraction = _fraction(a, fa, b, fb, c, fc, np.where(active, tolerance / np.where(active, width, 1.0), 0.5))
        floats = _floats_between(a, b)
        halved = floats <= target
        patience, target = np.where(halved, PATIENCE, patience - 1), np.where(halved, floats / 2, target)
        trial = a + fraction * (b - a)
        late = (patience < 0) | (trial == a) | (trial == b)  # rounding may also put the trial point on an end
        if (late & active).any():
            trial = np.where(late, _middle_float(a, b), trial)
        trial = np.where(active, trial, best)
        value = _values(f, trial)
        same = np.sign(value) == np.sign(fa)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = trial, value
    raise ConvergenceError(
        "the interval that contains the root did not become small enough", estimate=best[()], accuracy=float(np.max(width))
    )


def _fraction(a: Array, fa: Array, b: Array, fb: Array, c: Array, fc: Array, least: Array) -> Array:
    """Return the fraction at which to divide [a, b], by inverse quadratic interpolation if that is safe, otherwise 1/2."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        safe = (1 - np.sqrt(1 - xi) < phi) & (phi < np.sqrt(xi))
        cut = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    cut = np.where(safe & np.isfinite(cut), cut, 0.5)
    return np.clip(cut, least, 1 - least)


def _floats_between(a: Array, b: Array) -> Array:
    """Return the number of floating-point numbers in a bracket."""
    i, j = (_ordinal(end).view(np.uint64) ^ TOP_BIT for end in (a, b))  # differences of unsigned integers do not overflow
    return (np.maximum(i, j) - np.minimum(i, j)).astype(float)


def _middle_float(a: Array, b: Array) -> Array:
    """Return the median of all floating-point numbers between a and b."""
    i, j = _ordinal(a), _ordinal(b)
    middle = (i >> 1) + (j >> 1) + (i & j & 1)
    return np.where(middle < 0, LOWEST - np.minimum(middle, 0), middle).view(np.float64)


def _ordinal(x: Array) -> NDArray[np.int64]:
    """Return the position of x in the ordered list of all floating-point numbers (0 for zero)."""
    bits = np.array(x).view(np.int64)
    return np.where(bits < 0, LOWEST - np.minimum(bits, 0), bits)


def _values(f: Function, points: Array) -> Array:
    """Return f at the trial points; raise ConvergenceError if a value is NaN.

    Overflow at a distant trial point is allowed, because only the sign of the value is used there.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        values = np.asarray(f(points[()]), dtype=float)
    if np.isnan(values).any():
        bad = np.broadcast_to(points, values.shape)[np.isnan(values)].flat[0]
        raise ConvergenceError(f"the value of the function is nan at {float(bad)!r}", estimate=points[()])
    return values


def _first(mask: Array | NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(mask)[0])
