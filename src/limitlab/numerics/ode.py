"""Ordinary differential equations: states at given times, with an estimate of their error.

The error is measured, not assumed: the equation is solved at two tolerances, and twice the difference is an upper
estimate of the error of the finer one, which is returned; less than the tolerance of one step is never claimed. An integration
that stops short raises `ConvergenceError`.
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

SAFETY = 2.0
"""Times the difference of the two solutions. Where stability sets the steps, both may err alike: by up to 1.7 times in a scan."""

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
    if not np.isfinite(velocity(0.0, first)).all():  # solve_ivp would look for a first step for ever
        raise ConvergenceError("the velocity at the start is not finite", first[None, :])
    allowed, smallest = max(tolerance, TIGHTEST), floor * max(float(np.abs(first).max()), 1e-3)
    fine, coarse = (_solved(velocity, first, grid, level, method, smallest) for level in (allowed, COARSER * allowed))
    one_step = allowed * np.maximum(np.abs(fine).max(axis=0), smallest)  # two solutions may agree by chance
    return Trajectory(fine, np.maximum(SAFETY * np.abs(fine - coarse).max(axis=0), one_step))


def _solved(
    velocity: Callable[[float, Array], Any], start: Array, times: Array, tolerance: float, method: str, smallest: float
) -> Array:
    from scipy.integrate import solve_ivp

    found = solve_ivp(velocity, (0.0, float(times[-1])), start, method, times, rtol=tolerance, atol=tolerance * smallest)
    states = np.reshape(found.y, (start.size, -1)).T  # an empty list where no time was reached
    if not found.success or not np.isfinite(states).all():
        missed = float(times[min(len(states), times.size - 1)])
        raise ConvergenceError(f"the integration stopped before time {missed:g} of {times[-1]:g}: {found.message}", states)
    return np.asarray(states)
