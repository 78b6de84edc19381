"""Integration with fixed steps: the one way in which experiments move a state from time to time.

A state is an array or a tuple of arrays. How it advances is a function; `runge_kutta` makes one of order 4 from a velocity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from limitlab.limits import Pace

Advance = Callable[[float, Any, float], Any]
"""(time, state, step) -> state."""


def follow(
    advance: Advance, start: Any, times: Iterable[float], step: float, at_rest: Callable[[Any, Any], bool] | None = None
) -> Iterator[Any]:
    """The state at each of the increasing times; every interval between two of them is cut into equal steps of at most `step`.

    `at_rest` tells from the states before and after a step whether nothing moves any more, so that the rest need not be followed.

    >>> grow = runge_kutta(lambda t, x: x)
    >>> [round(float(x), 4) for x in follow(grow, np.array(1.0), [0.0, 1.0], step=0.1)]
    [1.0, 2.7183]
    """
    grid = list(times)
    state, now, pace, resting = start, 0.0, Pace(max(map(float, grid), default=0.0)), False
    for target in grid:
        count = max(1, int(np.ceil((float(target) - now) / step - 1e-9))) if target > now else 0
        length = (float(target) - now) / max(count, 1)
        for k in range(0 if resting else count):
            before, state = state, advance(now + k * length, state, length)
            pace.at(now + k * length)
            if at_rest is not None and (resting := at_rest(before, state)):
                break
        now = float(target)
        yield state


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
