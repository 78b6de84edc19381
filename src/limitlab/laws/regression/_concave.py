"""Roots of increasing concave functions: Newton's method from the left, which cannot overshoot.

The tangent of a concave function lies above it, so the zero of the tangent at a point left of the root is again left of the
root. The iterates therefore increase to the root, quadratically in the end, from any starting point on its left: no bracket,
no damping, no branch to choose. A step that is not positive can only be rounding, and ends the iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import ConvergenceError, Refused

Array = NDArray[np.float64]
ValueAndSlope = Callable[..., tuple[Any, Any]]

LAST_STEP = 16 * float(np.finfo(np.float64).eps)
"""A relative step this small is the last one."""
MOST_STEPS = 2000
"""Iterates at least double while the slope is dominated by what it was; 1100 doublings span all floating-point numbers."""


def concave_root(function: ValueAndSlope, start: ArrayLike, *parameters: ArrayLike) -> Array:
    """Root t > 0 of an increasing concave function, for every element, to rounding level.

    Parameters
    ----------
    function
        `function(t, *parameters)` returns value and slope; all arguments are flat arrays of equal length, one equation per
        element. Only equations that have not converged are evaluated.
    start
        Points left of the roots (or on them), all positive.
    parameters
        Arrays that broadcast with `start`.

    Returns
    -------
    ndarray
        The roots, with the shape that everything broadcasts to.

    Raises
    ------
    ValueError
        When a starting point is not left of the root.
    ConvergenceError
        When the function is not a number, or increases too slowly to have a root; `estimate` holds the last points.

    Examples
    --------
    >>> def square_root(t, c):
    ...     return np.sqrt(t) - c, 0.5 / np.sqrt(t)
    >>> concave_root(square_root, 1e-6, [1.0, 2.0, 3.0])
    array([1., 4., 9.])
    """
    arrays = np.broadcast_arrays(*(np.asarray(given, dtype=float) for given in (start, *parameters)))
    shape = arrays[0].shape
    t, *inputs = (array.ravel() for array in arrays)
    found, where = t.copy(), np.arange(t.size)
    for steps in range(MOST_STEPS):
        value, slope = function(t, *inputs)
        step = -value / slope
        if np.isnan(step).any():
            raise ConvergenceError(
                f"the function is not a number at {t[np.isnan(step)][0]!r}", estimate=found.reshape(shape)
            )
        if steps == 0 and (step < -1e-8 * t).any():
            raise Refused(f"start = {t[step < -1e-8 * t][0]!r} is not allowed: must be left of the root")
        t = t + step
        found[where] = t
        going = step > LAST_STEP * t
        if not going.any():
            return found.reshape(shape)
        if not going.all():
            t, where, inputs = t[going], where[going], [given[going] for given in inputs]
    raise ConvergenceError(f"no root up to {t.max():.3g}", estimate=found.reshape(shape), accuracy=float(np.max(step / t)))
