"""Ordinary differential equations: states at given times, with an estimate of their error.

The error is measured, not assumed: the equation is solved at two tolerances, and twice the difference is an upper
estimate of the error of the finer one, which is returned; less than the tolerance of one step is never claimed. An integration
that stops short raises `ConvergenceError`, and so does one that would take longer than `limitlab._core.limits.patience()`.

An explicit method near a point of rest takes steps as short as the fastest rate asks for, though nothing moves any more. There an
implicit one takes over, whose steps grow, so that long times cost little.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.limits import Pace
from limitlab.errors import ConvergenceError

__all__ = ["Trajectory", "integrate"]

Array = NDArray[np.float64]

COARSER = 30.0
"""Ratio of the two tolerances."""

SAFETY = 2.0
"""Times the difference of the two solutions. Where stability sets the steps, both may err alike: by up to 1.7 times in a scan."""

RESTING = 1e-5
"""A step that moves the state by less than this share of its size is short for stability's sake, not for accuracy's."""

RESTED = 50, 200
"""So many such steps in a row, and at least so many more to come, before an implicit method takes over."""

LARGEST_IMPLICIT = 300
"""Components of the largest state for which the derivative of the velocity is worth its price."""

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
    if not np.any(np.asarray(times) > 0):
        still = states_at(velocity, start, times)
        return Trajectory(still, np.zeros(still.shape[1]))
    allowed = max(tolerance, TIGHTEST)
    fine, coarse = (states_at(velocity, start, times, level, method, floor) for level in (allowed, COARSER * allowed))
    one_step = allowed * np.maximum(np.abs(fine).max(axis=0), _smallest(start, floor))  # two solutions may agree by chance
    return Trajectory(fine, np.maximum(SAFETY * np.abs(fine - coarse).max(axis=0), one_step))


def states_at(
    velocity: Callable[[float, Array], Any],
    start: ArrayLike,
    times: ArrayLike,
    tolerance: float = 1e-11,
    method: str = "DOP853",
    floor: float = 0.01,
) -> Array:
    """The states of `integrate` alone, at half its price: for callers who find the error in another way.

    >>> float(states_at(lambda t, x: -x, [1.0], [0.0, 1.0])[1, 0].round(9))
    0.367879441
    """
    first, grid = np.atleast_1d(np.asarray(start, dtype=float)), np.atleast_1d(np.asarray(times, dtype=float))
    if not np.any(grid > 0):
        return np.tile(first, (grid.size, 1))
    allowed = max(tolerance, TIGHTEST)
    return solved(velocity, first, grid, allowed, allowed * _smallest(first, floor), method)


def _smallest(start: ArrayLike, floor: float) -> float:
    """The size below which a component needs no more absolute accuracy."""
    return floor * max(float(np.abs(start).max()), 1e-3)


def solved(
    velocity: Callable[[float, Array], Any],
    start: Array,
    times: Array,
    relative: float,
    absolute: float,
    method: str = "DOP853",
    implicit_at_rest: bool = True,
) -> Array:
    """States at increasing times, one row each, at one relative and one absolute tolerance.

    >>> late = solved(lambda t, x: 1 - x, np.zeros(1), np.array([1.0, 1e7]), 1e-10, 1e-12)
    >>> late.round(8).ravel().tolist()
    [0.63212056, 1.0]
    """
    from scipy import integrate as methods

    if not np.isfinite(velocity(0.0, start)).all():  # SciPy would look for a first step for ever
        raise ConvergenceError("the velocity at the start is not finite", start[None, :])
    end, errors = float(times[-1]), dict(rtol=relative, atol=max(absolute, 1e-300))  # 0 / 0 in the first step otherwise
    solver = getattr(methods, method)(velocity, 0.0, start, end, **errors)
    pace, states, resting = Pace(end), np.empty((0, start.size)), 0
    explicit = method in ("DOP853", "RK45", "RK23") and implicit_at_rest and start.size <= LARGEST_IMPLICIT
    while solver.status == "running":
        before = solver.y
        message = solver.step()
        if solver.status == "failed" or not np.isfinite(solver.y).all():
            missed = float(times[len(states)])
            raise ConvergenceError(f"the integration stopped before time {missed:g} of {end:g}: {_reason(message)}", states)
        reached = int(np.searchsorted(times, solver.t, side="right"))
        if reached > len(states):
            states = np.concatenate([states, solver.dense_output()(times[len(states) : reached]).T])
        pace.at(solver.t, states)
        still = np.abs(solver.y - before).max() <= RESTING * max(float(np.abs(solver.y).max()), absolute / relative)
        resting = resting + 1 if explicit and still else 0
        if resting >= RESTED[0] and end - solver.t > RESTED[1] * solver.step_size:
            solver, explicit = methods.Radau(velocity, solver.t, solver.y, end, **errors), False
    return states


def _reason(message: str | None) -> str:
    """Why a solver failed, in our words."""
    return "the state is no longer finite" if message is None else "no step is short enough (the state blows up, or jumps)"
