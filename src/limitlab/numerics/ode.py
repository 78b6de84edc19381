"""Ordinary differential equations: states at given times, with an estimate of their error.

The error is measured, not assumed: the equation is solved at two tolerances, and the difference is the error of the coarser solution,
an upper estimate of that of the finer one, which is returned. An integration that stops short raises `ConvergenceError`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import ConvergenceError

Array = NDArray[np.float64]

COARSER = 30.0
"""Ratio of the two tolerances."""

TIGHTEST = 1e-13
"""Tolerances below this ask for less than rounding."""


class Trajectory(NamedTuple):
    """Solution of a differential equation.

    Attributes
    ----------
    states
        One row per time.
    errors
        Estimated error of every component: the largest over the times.
    """

    states: Array
    errors: Array

    @property
    def relative_error(self) -> float:
        """The largest error of a component relative to its largest value (to that of all components, where it is zero)."""
        scale = np.abs(self.states).max(axis=0)
        return float(np.max(self.errors / np.where(scale > 0, scale, scale.max() or 1.0)))


def integrate(
    velocity: Callable[[float, Array], Any],
    start: ArrayLike,
    times: ArrayLike,
    tolerance: float = 1e-11,
    method: str = "DOP853",
    floor: float = 0.01,
) -> Trajectory:
    """States x(t) of dx/dt = velocity(t, x) at increasing times, from x(0) = `start`.

    Parameters
    ----------
    velocity
        Right side, a function of the time and of the state (one-dimensional).
    start
        State at time 0.
    times
        Increasing times of at least 0.
    tolerance
        Error per step, relative to the state.
    method
        A method of `scipy.integrate.solve_ivp`: explicit Runge-Kutta of order 8, or an implicit one for stiff equations.
    floor
        Components smaller than this share of the start's largest one need no more absolute accuracy than one of that size.

    Examples
    --------
    >>> path = integrate(lambda t, x: -x, [1.0], [0.0, 1.0])
    >>> bool(abs(path.states[1, 0] - np.exp(-1)) <= path.errors[0] < 1e-9)
    True
    """
    first, grid = np.atleast_1d(np.asarray(start, dtype=float)), np.atleast_1d(np.asarray(times, dtype=float))
    if not np.any(grid > 0):
        return Trajectory(np.tile(first, (grid.size, 1)), np.zeros(first.size))
    fine = _solved(velocity, first, grid, max(tolerance, TIGHTEST), method, floor)
    coarse = _solved(velocity, first, grid, COARSER * max(tolerance, TIGHTEST), method, floor)
    rounding = 10 * np.finfo(float).eps * np.abs(fine).max(axis=0)
    return Trajectory(fine, np.maximum(np.abs(fine - coarse).max(axis=0), rounding))


def _solved(
    velocity: Callable[[float, Array], Any], start: Array, times: Array, tolerance: float, method: str, floor: float
) -> Array:
    from scipy.integrate import solve_ivp

    smallest = floor * tolerance * max(float(np.abs(start).max()), 1e-3)
    found = solve_ivp(velocity, (0.0, float(times[-1])), start, method, times, rtol=tolerance, atol=smallest)
    if not found.success or not np.isfinite(found.y).all():
        reached = float(found.t[-1]) if found.t.size else 0.0
        raise ConvergenceError(f"the integration stopped at time {reached:g} of {times[-1]:g}: {found.message}", found.y.T)
    return np.asarray(found.y.T)
