"""Solutions of ordinary differential equations at listed times, by adaptive steps with an error estimate or by fixed steps.

**Adaptive steps** (`integrate`). The equation is solved at two tolerances. The finer solution is returned, and twice the difference of the
two is an upper estimate of its error. The estimate is never smaller than the tolerance of one step. An integration that stops before the
last time raises `ConvergenceError`, and so does an integration that would take longer than the time limit. Near a point of rest the state
hardly changes, but the steps of an explicit method stay as short as the fastest rate requires. The integration then switches to an
implicit method. Its steps grow, so that long times take little computation.

**Fixed steps** (`follow`, `visit`). Experiments use these functions. A state is an array or a tuple of arrays. A function advances the
state by one step; `runge_kutta` returns such a function of order 4 for a velocity.
"""

from __future__ import annotations

import bisect
import copy
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.cost import Pace
from limitlab._core.files import generator_state, next_saved_state, restore_generator
from limitlab.errors import ConvergenceError

__all__ = ["Trajectory", "integrate"]

# -- adaptive steps -----------------------------------------------------------------------------------------------------

Array = NDArray[np.float64]

COARSER = 30.0
"""Ratio of the coarser to the finer tolerance."""

SAFETY = 2.0
"""Factor from the difference of the two solutions to the error estimate.

Where stability determines the steps, both solutions may have similar errors. In a scan the error was up to 1.7 times the difference."""

RESTING = 1e-5
"""A step that changes the state by less than this share of its size is limited by stability, not by accuracy."""

RESTED = 50, 200
"""Number of such steps in a row, and number of steps that must remain, for a switch to an implicit method."""

LARGEST_IMPLICIT = 300
"""Largest number of components for which an implicit method computes the derivative of the velocity."""

TIGHTEST = 1e-13
"""Smallest tolerance; rounding errors are larger than any tolerance below it."""


class Trajectory(NamedTuple):
    """Solution of a differential equation.

    Attributes
    ----------
    states
        One row per time.
    errors
        Estimated error of every component, the largest over the times.
    """

    states: Array
    errors: Array

    @property
    def relative_error(self) -> float:
        """The largest error of a component relative to its largest value.

        For a component that is always zero, the largest value of all components is used.
        """
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
    """Return the states x(t) of dx/dt = velocity(t, x) at increasing times, from x(0) = `start`.

    Parameters
    ----------
    velocity
        Right side of the equation, a function of the time and of the (one-dimensional) state.
    start
        State at time 0.
    times
        Increasing times of at least 0.
    tolerance
        Error per step, relative to the state.
    method
        A method of `scipy.integrate.solve_ivp`. The default is explicit Runge-Kutta of order 8; stiff equations need an
        implicit method.
    floor
        The absolute tolerance is `floor` times the relative tolerance times the largest component of the start (times 0.001 if
        that is larger).

    Examples
    --------
    >>> solution = integrate(lambda t, x: -x, [1.0], [0.0, 1.0])
    >>> bool(abs(solution.states[1, 0] - np.exp(-1)) <= solution.errors[0] < 1e-9)
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
    """Return the states of `integrate` without error estimates, in about half the time.

    >>> float(states_at(lambda t, x: -x, [1.0], [0.0, 1.0])[1, 0].round(9))
    0.367879441
    """
    first, grid = np.atleast_1d(np.asarray(start, dtype=float)), np.atleast_1d(np.asarray(times, dtype=float))
    if not np.any(grid > 0):
        return np.tile(first, (grid.size, 1))
    allowed = max(tolerance, TIGHTEST)
    return solved(velocity, first, grid, allowed, allowed * _smallest(first, floor), method)


def _smallest(start: ArrayLike, floor: float) -> float:
    """Return the size that the relative tolerance is multiplied with to obtain the absolute tolerance."""
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
    """Return the states at increasing times, one row each, at one relative and one absolute tolerance.

    >>> late = solved(lambda t, x: 1 - x, np.zeros(1), np.array([1.0, 1e7]), 1e-10, 1e-12)
    >>> late.round(8).ravel().tolist()
    [0.63212056, 1.0]
    """
    from scipy import integrate as methods

    if not np.isfinite(velocity(0.0, start)).all():  # SciPy's search for a first step would not end
        raise ConvergenceError("the velocity at the start is not finite", start[None, :])
    end, errors = float(times[-1]), dict(rtol=relative, atol=max(absolute, 1e-300))  # avoids 0 / 0 in the first step
    solver = getattr(methods, method)(velocity, 0.0, start, end, **errors)
    pace, states, resting = Pace(end=end), np.empty((0, start.size)), 0
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
    """Return the reason of a solver's failure as part of an error message."""
    return "the state is no longer finite" if message is None else "no step is short enough (the state blows up, or jumps)"


# -- fixed steps --------------------------------------------------------------------------------------------------------

Advance = Callable[[float, Any, float], Any]
"""Function of (time, state, step) that returns the state after the step."""


def follow(
    advance: Advance,
    start: Any,
    times: Iterable[float],
    step: float,
    at_rest: Callable[[Any, Any], bool] | None = None,
    rng: np.random.Generator | None = None,
) -> Iterator[Any]:
    """Yield the state at each of the increasing times.

    Every interval between two times is divided into equal steps of at most `step`. `at_rest` decides from the states before and
    after a step whether the state has stopped changing; the remaining steps are then skipped. `rng` is the generator that
    `advance` draws from, if any (see `visit`).

    >>> grow = runge_kutta(lambda t, x: x)
    >>> [round(float(x), 4) for x in follow(grow, np.array(1.0), [0.0, 1.0], step=0.1)]
    [1.0, 2.7183]
    """
    grid = [float(time) for time in times]
    befores = [0.0, *grid[:-1]]
    counts = [
        max(1, int(np.ceil((target - now) / step - 1e-9))) if target > now else 0
        for now, target in zip(befores, grid, strict=True)
    ]
    stops, pace = list(itertools.accumulate(counts)), Pace(end=max(grid, default=0.0))

    def move(done: int, state: Any) -> Any:
        interval = bisect.bisect_right(stops, done)
        now, length = befores[interval], (grid[interval] - befores[interval]) / counts[interval]
        time = now + (done - stops[interval] + counts[interval]) * length
        new = advance(time, state, length)
        pace.at(time)
        return new

    yield from visit(move, start, stops, at_rest, rng, about=(grid, step))


def visit(
    move: Callable[[int, Any], Any],
    start: Any,
    stops: Sequence[int],
    at_rest: Callable[[Any, Any], bool] | None = None,
    rng: np.random.Generator | None = None,
    about: Any = None,
) -> Iterator[Any]:
    """Yield the state after each of the increasing numbers of moves, where `move(k, state)` is move number k, counted from 0.

    Within an experiment or a prediction of a law, `limitlab._core.files` may save the state and that of the generator `rng`.
    Moves that draw random numbers must draw them from `rng`, otherwise a resumed computation would differ.

    >>> list(visit(lambda k, x: x + k, 0, [0, 2, 4]))
    [0, 1, 6]
    """
    saved_state = next_saved_state(start, tuple(stops), about)
    state, done, past, resting = start, 0, list[tuple[Any, NDArray[Any] | None]](), False
    if (saved := saved_state.load()) is not None:
        state, done, past = _unpacked(saved, start)
    for number, stop in enumerate(stops):
        if number < len(past):
            seen, drawn = past[number]
            _restore(rng, drawn)  # the code that receives the state may draw from the generator too
            yield seen
            continue
        if saved is not None:
            _restore(rng, saved.get("rng"))
            saved = None
        while done < stop and not resting:
            before, state = state, move(done, state)
            done += 1
            resting = at_rest is not None and at_rest(before, state)
            saved_state.offer(lambda: _packed(state, done, past, rng))  # noqa: B023 (called immediately or never)
        if saved_state.active:
            past.append((copy.deepcopy(state), None if rng is None else generator_state(rng)))
        yield state
    saved_state.finish()


def _packed(
    state: Any, done: int, past: list[tuple[Any, NDArray[Any] | None]], rng: np.random.Generator | None
) -> dict[str, NDArray[Any]]:
    """Return the contents of a saved state, as arrays by name."""
    packed = {f"state.{i}": np.asarray(part) for i, part in enumerate(_parts(state))} | {"done": np.array(done)}
    for number, (seen, drawn) in enumerate(past):
        packed |= {f"past.{number}.{i}": np.asarray(part) for i, part in enumerate(_parts(seen))}
        packed |= {} if drawn is None else {f"past.{number}.rng": drawn}
    return packed if rng is None else {**packed, "rng": generator_state(rng)}


def _unpacked(saved: dict[str, NDArray[Any]], start: Any) -> tuple[Any, int, list[tuple[Any, NDArray[Any] | None]]]:
    width = len(_parts(start))

    def state(name: str) -> Any:
        parts = tuple(saved[f"{name}.{i}"] for i in range(width))
        return parts if isinstance(start, tuple) else parts[0]

    numbers = itertools.takewhile(lambda number: f"past.{number}.0" in saved, itertools.count())
    return state("state"), int(saved["done"]), [(state(f"past.{n}"), saved.get(f"past.{n}.rng")) for n in numbers]


def _parts(state: Any) -> tuple[Any, ...]:
    return state if isinstance(state, tuple) else (state,)


def _restore(rng: np.random.Generator | None, saved: NDArray[Any] | None) -> None:
    if rng is not None and saved is not None:
        restore_generator(rng, saved)


def runge_kutta(velocity: Callable[[float, Any], Any], settle: Callable[[Any], Any] | None = None) -> Advance:
    """Return a function that makes one step of the classical Runge-Kutta method of order 4.

    `settle` maps the state after every step back to its domain, for example to a sphere.

    >>> turn = runge_kutta(lambda t, state: (-state[1], state[0]))
    >>> x, y = turn(0.0, (1.0, 0.0), 0.1)
    >>> bool(abs(x - np.cos(0.1)) < 1e-7 and abs(y - np.sin(0.1)) < 1e-6)
    True
    """

    def advance(t: float, state: Any, h: float) -> Any:
        k1 = velocity(t, state)
        k2 = velocity(t + h / 2, _moved(state, h / 2, k1))
        k3 = velocity(t + h / 2, _moved(state, h / 2, k2))
        k4 = velocity(t + h, _moved(state, h, k3))
        if isinstance(state, tuple):
            slope: Any = tuple(a + 2 * b + 2 * c + d for a, b, c, d in zip(k1, k2, k3, k4, strict=True))
        else:
            slope = k1 + 2 * k2 + 2 * k3 + k4
        new = _moved(state, h / 6, slope)
        return new if settle is None else settle(new)

    return advance


def euler(velocity: Callable[[float, Any], Any], settle: Callable[[Any], Any] | None = None) -> Advance:
    """Return one Euler step along the velocity, which is also a step of stochastic gradient descent."""

    def advance(t: float, state: Any, h: float) -> Any:
        new = _moved(state, h, velocity(t, state))
        return new if settle is None else settle(new)

    return advance


def _moved(state: Any, h: float, slope: Any) -> Any:
    if isinstance(state, tuple):
        return tuple(x + h * k for x, k in zip(state, slope, strict=True))
    return state + h * slope
