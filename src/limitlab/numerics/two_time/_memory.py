"""Histories of a two-time system, which store the rows of all its functions and compute memory integrals over them.

For a row f(t, .) at the newest time there are three integrals over a two-time function X, each by the trapezoid rule:

    after(s)  = int_s^t f(t, u) X(u, s) du,     before(s) = int_0^s f(t, u) X(s, u) du,
    whole(s)  = int_0^t f(t, u) X(u, s) du      for symmetric X, which is the sum of the two.

A `WholeHistory` stores every point in packed lower triangles, in which row i starts at entry i (i + 1) / 2. `after` and `before` together
need one pass over a triangle, which is i^2 / 2 contiguous reads. `limitlab.numerics.two_time._thinned.ThinnedHistory` stores few columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = slice | NDArray[np.bool_]


class History(Protocol):
    """Interface of a history of all two-time functions up to the newest time `index * step`.

    Attributes
    ----------
    index, step
        Index of the newest grid point, and distance of grid points.
    columns
        The points s at which the newest row stores X(t, s). The last entry is `index`.
    paths, records
        Functions of one time and recorded observables, by name, at all grid points.
    """

    index: int
    step: float
    paths: dict[str, Floats]
    records: dict[str, Floats]

    @property
    def columns(self) -> Integers:
        """The grid indices of the columns that the newest row stores."""

    def row(self, name: str) -> Floats:
        """Return the newest row X(t, .) of a two-time function, as a view. Writing to the view changes the history."""

    def previous(self, name: str) -> Floats:
        """Return the row before the newest row, at all columns of the newest row except the last."""

    def path(self, name: str) -> Floats:
        """Return a function of one time at the columns."""

    def memory(self) -> Any:
        """Return the arrays as a named tuple that compiled code reads (`limitlab.numerics.two_time.compiled`)."""

    def begin_row(self, index: int) -> Mask:
        """Start the row of a new time, and return a mask of the columns of the previous row that remain stored."""

    def close_row(self) -> None:
        """Finish the newest row, which does not change afterwards."""

    def after(self, f: Floats, name: str) -> Floats:
        """Return int_s^t f(u) X(u, s) du, for the newest time t, at all stored s."""

    def after_start(self, f: Floats, name: str) -> Floats:
        """Return `after` for an auxiliary X that is concentrated near u = s. The newest row of X must be 0."""

    def before(self, f: Floats, name: str) -> Floats:
        """Return int_0^s f(u) X(s, u) du, at all stored s."""

    def both(self, forward: Floats, backward: Floats, name: str) -> tuple[Floats, Floats]:
        """Return `after(forward)` and `before(backward)`."""

    def whole(self, f: Floats, name: str) -> Floats:
        """Return int_0^t f(u) X(u, s) du for a symmetric X and the newest time t, at all stored s."""

    def total(self, f: Floats) -> float:
        """Return int_0^t f(u) du up to the newest time t."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the arrays from which the march can continue."""

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the arrays that `state` of an equal history returned."""


class Integrals(ABC):
    """Base class of histories, with memory integrals over a two-time function that is selected by its name.

    The integrals are the static functions of `memory()`, which compiled code calls too.

    Attributes
    ----------
    numbers
        Index of every two-time function in the arrays of the memory.
    """

    numbers: dict[str, int]

    @abstractmethod
    def memory(self) -> Any:
        """Return the arrays as a named tuple."""

    def after(self, f: Floats, name: str) -> Floats:
        """Return int_s^t f(u) X(u, s) du, for the newest time t, at all stored s."""
        memory = self.memory()
        return np.asarray(memory.after(memory, f, self.numbers[name]))

    def after_start(self, f: Floats, name: str) -> Floats:
        """Return `after` for an auxiliary X that is concentrated near u = s. The newest row of X must be 0."""
        memory = self.memory()
        return np.asarray(memory.after_start(memory, f, self.numbers[name]))

    def before(self, f: Floats, name: str) -> Floats:
        """Return int_0^s f(u) X(s, u) du, at all stored s."""
        memory = self.memory()
        return np.asarray(memory.before(memory, f, self.numbers[name]))

    def both(self, forward: Floats, backward: Floats, name: str) -> tuple[Floats, Floats]:
        """Return `after(forward)` and `before(backward)`."""
        memory = self.memory()
        after, before = memory.both(memory, forward, backward, self.numbers[name])
        return after, before

    def whole(self, f: Floats, name: str) -> Floats:
        """Return int_0^t f(u) X(u, s) du for a symmetric X and the newest time t, at all stored s."""
        memory = self.memory()
        return np.asarray(memory.whole(memory, f, self.numbers[name]))

    def total(self, f: Floats) -> float:
        """Return int_0^t f(u) du up to the newest time t."""
        memory = self.memory()
        return float(memory.total(memory, f))


def triangle(steps: int, *functions: int) -> Floats:
    """Return a packed lower triangle of zeros with rows 0..steps, for each function if `functions` is set.

    >>> triangle(2).size, triangle(2, 4).shape
    (6, (4, 6))
    """
    return np.zeros((*functions, triangle_size(steps)))


def triangle_size(steps: int) -> int:
    """Return the number of entries of a packed lower triangle with rows 0..steps.

    >>> triangle_size(2)
    6
    """
    return (steps + 1) * (steps + 2) // 2


def row(packed: Floats, i: int) -> Floats:
    """Return row i of a packed triangle, as a view.

    >>> row(np.arange(6.0), 2)
    array([3., 4., 5.])
    """
    first = i * (i + 1) // 2
    return packed[first : first + i + 1]


@numba.njit(cache=True, fastmath=True)
def _dense_pass(packed: Any, forward: Any, backward: Any, step: Any, after: Any, before: Any) -> None:
    """Add both integrals to `after` and `before`, where `forward` is the row of `after` and `backward` the row of `before`."""
    last = forward.size - 1
    for u in range(last + 1):
        first = u * (u + 1) // 2
        weight = step * forward[u] * (0.5 if u == last else 1.0)
        total = 0.0
        for s in range(u + 1):
            value = packed[first + s]
            after[s] += weight * value
            total += backward[s] * value
        diagonal = packed[first + u]
        after[u] -= 0.5 * step * forward[u] * diagonal  # the end u = s has half a weight
        before[u] = step * (total - 0.5 * backward[0] * packed[first] - 0.5 * backward[u] * diagonal)


@numba.njit(cache=True, fastmath=True)
def _dense_after(packed: Any, forward: Any, step: Any, after: Any) -> None:
    last = forward.size - 1
    for u in range(last + 1):
        first = u * (u + 1) // 2
        weight = step * forward[u] * (0.5 if u == last else 1.0)
        for s in range(u + 1):
            after[s] += weight * packed[first + s]
        after[u] -= 0.5 * step * forward[u] * packed[first + u]


@numba.njit(cache=True, fastmath=True)
def _dense_before(packed: Any, backward: Any, step: Any, before: Any) -> None:
    for u in range(backward.size):
        first = u * (u + 1) // 2
        total = 0.0
        for s in range(u + 1):
            total += backward[s] * packed[first + s]
        before[u] = step * (total - 0.5 * backward[0] * packed[first] - 0.5 * backward[u] * packed[first + u])


class WholeMemory(NamedTuple):
    """A whole history in compiled code (see `limitlab.numerics.two_time.compiled`), as packed triangles, newest index and step."""

    triangles: Floats
    last: int
    step: float

    @staticmethod
    def newest(memory: Any, number: int) -> Any:
        """Return the newest row X(t, .) of the two-time function with this number."""
        first = memory.last * (memory.last + 1) // 2
        return memory.triangles[number, first : first + memory.last + 1]

    @staticmethod
    def after(memory: Any, f: Any, number: int) -> Any:
        """Return int_s^t f(u) X(u, s) du, for the newest time t, at all stored s."""
        result = np.zeros(f.size)
        _dense_after(memory.triangles[number], f, memory.step, result)
        return result

    @staticmethod
    def after_start(memory: Any, f: Any, number: int) -> Any:
        """Return `after`, because a whole history needs no other rule.

        The body is repeated because a named tuple cannot have two names for a function.
        """
        result = np.zeros(f.size)
        _dense_after(memory.triangles[number], f, memory.step, result)
        return result

    @staticmethod
    def before(memory: Any, f: Any, number: int) -> Any:
        """Return int_0^s f(u) X(s, u) du, at all stored s."""
        result = np.zeros(f.size)
        _dense_before(memory.triangles[number], f, memory.step, result)
        return result

    @staticmethod
    def both(memory: Any, forward: Any, backward: Any, number: int) -> Any:
        """Return `after(forward)` and `before(backward)`."""
        after, before = np.zeros(forward.size), np.zeros(forward.size)
        _dense_pass(memory.triangles[number], forward, backward, memory.step, after, before)
        return after, before

    @staticmethod
    def whole(memory: Any, f: Any, number: int) -> Any:
        """Return int_0^t f(u) X(u, s) du for a symmetric X and the newest time t, at all stored s."""
        after, before = np.zeros(f.size), np.zeros(f.size)
        _dense_pass(memory.triangles[number], f, f, memory.step, after, before)
        after += before
        return after

    @staticmethod
    def total(memory: Any, f: Any) -> Any:
        """Return int_0^t f(u) du up to the newest time t."""
        return memory.step * (f.sum() - 0.5 * (f[0] + f[-1]))


class WholeHistory(Integrals):
    """A history that stores every point of every row, in packed triangles (see `History`).

    Parameters
    ----------
    two_time, auxiliaries
        Names of the two-time functions that evolve, and of those that the system computes algebraically.
    functions, observed
        Names of the functions of one time and of the recorded observables.
    steps, step
        Number of steps and distance of the grid points.

    Examples
    --------
    For a constant history, f = 1 and t = 2, the integral is int_s^t du = t - s.

    >>> history = WholeHistory(("X",), (), (), (), steps=2, step=1.0)
    >>> history.triangles["X"][:] = 1.0
    >>> _ = history.begin_row(2)
    >>> history.after(np.ones(3), "X"), history.before(np.ones(3), "X"), history.total(np.ones(3))
    (array([2., 1., 0.]), array([0., 1., 2.]), 2.0)
    """

    def __init__(
        self,
        two_time: Sequence[str],
        auxiliaries: Sequence[str],
        functions: Sequence[str],
        observed: Sequence[str],
        steps: int,
        step: float,
    ):
        self.index, self.step = 0, float(step)
        names = (*two_time, *auxiliaries)
        self._triangles = triangle(steps, len(names))
        self.triangles = dict(zip(names, self._triangles, strict=True))
        self.numbers = {name: number for number, name in enumerate(names)}
        self.paths = {name: np.zeros(steps + 1) for name in functions}
        self.records = {name: np.zeros(steps + 1) for name in observed}
        self._all = np.arange(steps + 1)

    @property
    def columns(self) -> Integers:
        """All points up to the newest point."""
        return self._all[: self.index + 1]

    def row(self, name: str) -> Floats:
        """Return the newest row X(t, .) of a two-time function."""
        return row(self.triangles[name], self.index)

    def previous(self, name: str) -> Floats:
        """Return the row X(t - step, .) before the newest row."""
        return row(self.triangles[name], self.index - 1)

    def path(self, name: str) -> Floats:
        """Return a function of one time at all points up to the newest point."""
        return self.paths[name][: self.index + 1]

    def memory(self) -> WholeMemory:
        """Return the arrays that compiled code reads."""
        return WholeMemory(self._triangles, self.index, self.step)

    def begin_row(self, index: int) -> Mask:
        """Start the row of a new time. No column is dropped."""
        self.index = index
        return slice(None)

    def close_row(self) -> None:
        """Do nothing, because a whole history needs no update."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the used part of every triangle."""
        used = triangle_size(self.index)
        return {f"triangle/{name}": packed[:used] for name, packed in self.triangles.items()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Copy the saved triangles into this history."""
        for name, packed in self.triangles.items():
            saved = state[f"triangle/{name}"]
            packed[: saved.size] = saved
