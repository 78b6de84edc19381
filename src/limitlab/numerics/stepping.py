"""Integration with fixed steps: the one way in which experiments move a state from time to time.

A state is an array or a tuple of arrays. How it advances is a function; `runge_kutta` makes one of order 4 from a velocity.
"""

from __future__ import annotations

import bisect
import copy
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab._core.checkpoints import checkpoint_within, generator_state, restore_generator
from limitlab._core.limits import Pace

Advance = Callable[[float, Any, float], Any]
"""(time, state, step) -> state."""


def follow(
    advance: Advance,
    start: Any,
    times: Iterable[float],
    step: float,
    at_rest: Callable[[Any, Any], bool] | None = None,
    rng: np.random.Generator | None = None,
) -> Iterator[Any]:
    """The state at each of the increasing times; every interval between two of them is cut into equal steps of at most `step`.

    `at_rest` tells from the states before and after a step whether nothing moves any more, so that the rest need not be followed.
    `rng` is the generator that `advance` draws from, if it does (see `visit`).

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
    stops, pace = list(itertools.accumulate(counts)), Pace(max(grid, default=0.0))

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
    """The state after each of the increasing numbers of moves; `move(k, state)` makes the one after the first k.

    Within an experiment or a prediction of a law the state is kept where `limitlab._core.checkpoints` was asked to. So is that of the
    generator `rng` that the moves draw from: without it they may not draw.

    >>> list(visit(lambda k, x: x + k, 0, [0, 2, 4]))
    [0, 1, 6]
    """
    kept = checkpoint_within(start, tuple(stops), about)
    state, done, past, resting = start, 0, list[tuple[Any, NDArray[Any] | None]](), False
    if (found := kept.load()) is not None:
        state, done, past = _unpacked(found, start)
    for number, stop in enumerate(stops):
        if number < len(past):
            seen, drawn = past[number]
            _restore(rng, drawn)  # whoever looks at the state may draw too
            yield seen
            continue
        if found is not None:
            _restore(rng, found.get("rng"))
            found = None
        while done < stop and not resting:
            before, state = state, move(done, state)
            done += 1
            resting = at_rest is not None and at_rest(before, state)
            kept.offer(lambda: _packed(state, done, past, rng))  # noqa: B023 (called at once, or not at all)
        if kept.active:
            past.append((copy.deepcopy(state), None if rng is None else generator_state(rng)))
        yield state
    kept.finish()


def _packed(
    state: Any, done: int, past: list[tuple[Any, NDArray[Any] | None]], rng: np.random.Generator | None
) -> dict[str, NDArray[Any]]:
    """All that a checkpoint needs, as arrays by name."""
    packed = {f"state.{i}": np.asarray(part) for i, part in enumerate(_parts(state))} | {"done": np.array(done)}
    for number, (seen, drawn) in enumerate(past):
        packed |= {f"past.{number}.{i}": np.asarray(part) for i, part in enumerate(_parts(seen))}
        packed |= {} if drawn is None else {f"past.{number}.rng": drawn}
    return packed if rng is None else {**packed, "rng": generator_state(rng)}


def _unpacked(found: dict[str, NDArray[Any]], start: Any) -> tuple[Any, int, list[tuple[Any, NDArray[Any] | None]]]:
    width = len(_parts(start))

    def state(name: str) -> Any:
        parts = tuple(found[f"{name}.{i}"] for i in range(width))
        return parts if isinstance(start, tuple) else parts[0]

    numbers = itertools.takewhile(lambda number: f"past.{number}.0" in found, itertools.count())
    return state("state"), int(found["done"]), [(state(f"past.{n}"), found.get(f"past.{n}.rng")) for n in numbers]


def _parts(state: Any) -> tuple[Any, ...]:
    return state if isinstance(state, tuple) else (state,)


def _restore(rng: np.random.Generator | None, kept: NDArray[Any] | None) -> None:
    if rng is not None and kept is not None:
        restore_generator(rng, kept)


def runge_kutta(velocity: Callable[[float, Any], Any], settle: Callable[[Any], Any] | None = None) -> Advance:
    """The classical method of order 4; `settle` puts a state back where it belongs (on a sphere, say) after every step.

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
    """One step along the velocity: what stochastic descent does."""

    def advance(t: float, state: Any, h: float) -> Any:
        new = _moved(state, h, velocity(t, state))
        return new if settle is None else settle(new)

    return advance


def _moved(state: Any, h: float, slope: Any) -> Any:
    if isinstance(state, tuple):
        return tuple(x + h * k for x, k in zip(state, slope, strict=True))
    return state + h * slope
