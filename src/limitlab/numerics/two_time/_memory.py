"""Histories of a two-time system: the rows of all its functions up to the newest time, and the memory integrals over them.

For a row f(t, .) at the newest time there are three integrals over a two-time function X, each by the trapezoid rule,

    after(s)  = int_s^t f(t, u) X(u, s) du,     before(s) = int_0^s f(t, u) X(s, u) du,
    whole(s)  = int_0^t f(t, u) X(u, s) du      for symmetric X, which is the sum of the two.

A `WholeHistory` keeps every point: packed lower triangles in which row i starts at entry i (i + 1) / 2, read once for `after` and
`before` together, i^2 / 2 contiguous reads. `limitlab.numerics.two_time._thinned.ThinnedHistory` keeps few columns.
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
    """All two-time functions up to the newest time `index * step`, on the points `columns` of every row.

    Attributes
    ----------
    index, step
        The newest grid point and the distance of grid points.
    columns
        The earlier points s at which the newest row knows X(t, s); the last one is `index` itself.
    paths, records
        Functions of one time and recorded observables, by name, at all grid points.
    """

    index: int
    step: float
    paths: dict[str, Floats]
    records: dict[str, Floats]

    @property
    def columns(self) -> Integers:
        """Indices of the kept columns."""

    def row(self, name: str) -> Floats:
        """The newest row X(t, .) of a two-time function (a view: writing to it changes the history)."""

    def previous(self, name: str) -> Floats:
        """The row before the newest one, at all columns of the newest row but the last."""

    def path(self, name: str) -> Floats:
        """A function of one time at the columns."""

    def memory(self) -> Any:
        """The arrays as a named tuple that compiled code reads (`limitlab.numerics.two_time.compiled`)."""

    def begin_row(self, index: int) -> Mask:
        """Open the row of a new time; returns which columns of the row before are kept."""

    def close_row(self) -> None:
        """The newest row will not change any more."""

    def after(self, f: Floats, name: str) -> Floats:
        """int_s^t f(u) X(u, s) du."""

    def after_start(self, f: Floats, name: str) -> Floats:
        """`after` for an auxiliary X whose weight is near u = s; the newest row of X must be 0."""

    def before(self, f: Floats, name: str) -> Floats:
        """int_0^s f(u) X(s, u) du."""

    def both(self, forward: Floats, backward: Floats, name: str) -> tuple[Floats, Floats]:
        """`after(forward)` and `before(backward)`."""

    def whole(self, f: Floats, name: str) -> Floats:
        """int_0^t f(u) X(u, s) du for a symmetric X."""

    def total(self, f: Floats) -> float:
        """int_0^t f(u) du."""

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that is needed to continue, as arrays."""

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `state` of an equal history returned."""


class Integrals(ABC):
    """The memory integrals of a history, by name: those of its `memory()`, which compiled code can take as well.

    Attributes
    ----------
    numbers
        Place of every two-time function in the arrays of the memory.
    """

    numbers: dict[str, int]

    @abstractmethod
    def memory(self) -> Any:
        """The arrays as a named tuple."""

    def after(self, f: Floats, name: str) -> Floats:
        """int_s^t f(u) X(u, s) du."""
        memory = self.memory()
        return np.asarray(memory.after(memory, f, self.numbers[name]))

    def after_start(self, f: Floats, name: str) -> Floats:
        """`after` for an auxiliary X whose weight is near u = s; the newest row of X must be 0."""
        memory = self.memory()
        return np.asarray(memory.after_start(memory, f, self.numbers[name]))

    def before(self, f: Floats, name: str) -> Floats:
        """int_0^s f(u) X(s, u) du."""
        memory = self.memory()
        return np.asarray(memory.before(memory, f, self.numbers[name]))

    def both(self, forward: Floats, backward: Floats, name: str) -> tuple[Floats, Floats]:
        """`after(forward)` and `before(backward)`."""
        memory = self.memory()
        after, before = memory.both(memory, forward, backward, self.numbers[name])
        return after, before

    def whole(self, f: Floats, name: str) -> Floats:
        """int_0^t f(u) X(u, s) du for a symmetric X."""
        memory = self.memory()
        return np.asarray(memory.whole(memory, f, self.numbers[name]))

    def total(self, f: Floats) -> float:
        """int_0^t f(u) du."""
        memory = self.memory()
        return float(memory.total(memory, f))


def triangle(steps: int, *functions: int) -> Floats:
    """A packed lower triangle of zeros with rows 0..steps, or as many as there are functions.

    >>> triangle(2).size, triangle(2, 4).shape
    (6, (4, 6))
    """
    return np.zeros((*functions, triangle_size(steps)))


def triangle_size(steps: int) -> int:
    """Entries of a packed lower triangle with rows 0..steps.

    >>> triangle_size(2)
    6
    """
    return (steps + 1) * (steps + 2) // 2


def row(packed: Floats, i: int) -> Floats:
    """Row i of a packed triangle, as a view.

    >>> row(np.arange(6.0), 2)
    array([3., 4., 5.])
    """
    first = i * (i + 1) // 2
    return packed[first : first + i + 1]


@numba.njit(cache=True, fastmath=True)
def _dense_pass(packed: Any, forward: Any, backward: Any, step: Any, after: Any, before: Any) -> None:
    """Both integrals at once: `forward` is the row of `after`, `backward` that of `before`."""
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
    """A whole history in compiled code (see `limitlab.numerics.two_time.compiled`): packed triangles, newest point, step."""

    triangles: Floats
    last: int
    step: float

    @staticmethod
    def newest(memory: Any, number: int) -> Any:
        """X(t, .)."""
        first = memory.last * (memory.last + 1) // 2
        return memory.triangles[number, first : first + memory.last + 1]

    @staticmethod
    def after(memory: Any, f: Any, number: int) -> Any:
        """int_s^t f(u) X(u, s) du."""
        result = np.zeros(f.size)
        _dense_after(memory.triangles[number], f, memory.step, result)
        return result

    @staticmethod
    def after_start(memory: Any, f: Any, number: int) -> Any:
        """The same: nothing is split off. (A named tuple cannot give a function two names.)"""
        result = np.zeros(f.size)
        _dense_after(memory.triangles[number], f, memory.step, result)
        return result

    @staticmethod
    def before(memory: Any, f: Any, number: int) -> Any:
        """int_0^s f(u) X(s, u) du."""
        result = np.zeros(f.size)
        _dense_before(memory.triangles[number], f, memory.step, result)
        return result

    @staticmethod
    def both(memory: Any, forward: Any, backward: Any, number: int) -> Any:
        """`after(forward)` and `before(backward)`."""
        after, before = np.zeros(forward.size), np.zeros(forward.size)
        _dense_pass(memory.triangles[number], forward, backward, memory.step, after, before)
        return after, before

    @staticmethod
    def whole(memory: Any, f: Any, number: int) -> Any:
        """int_0^t f(u) X(u, s) du for a symmetric X."""
        after, before = np.zeros(f.size), np.zeros(f.size)
        _dense_pass(memory.triangles[number], f, f, memory.step, after, before)
        after += before
        return after

    @staticmethod
    def total(memory: Any, f: Any) -> Any:
        """int_0^t f(u) du."""
        return memory.step * (f.sum() - 0.5 * (f[0] + f[-1]))


class WholeHistory(Integrals):
    """Every point of every row, in packed triangles (see `History`).

    Parameters
    ----------
    two_time, auxiliaries
        Names of the two-time functions that evolve, and of those that the system computes itself.
    functions, observed
        Names of the functions of one time and of the recorded observables.
    steps, step
        Number of steps and distance of the grid points.

    Examples
    --------
    A constant history, f = 1, t = 2: int_s^t du = t - s.

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
        """All points up to the newest."""
        return self._all[: self.index + 1]

    def row(self, name: str) -> Floats:
        """X(t, .)."""
        return row(self.triangles[name], self.index)

    def previous(self, name: str) -> Floats:
        """X(t - step, .)."""
        return row(self.triangles[name], self.index - 1)

    def path(self, name: str) -> Floats:
        """x at all points up to the newest."""
        return self.paths[name][: self.index + 1]

    def memory(self) -> WholeMemory:
        """What compiled code sees."""
        return WholeMemory(self._triangles, self.index, self.step)

    def begin_row(self, index: int) -> Mask:
        """Nothing is dropped."""
        self.index = index
        return slice(None)

    def close_row(self) -> None:
        """Nothing to do."""

    def state(self) -> dict[str, NDArray[Any]]:
        """The used part of every triangle."""
        used = triangle_size(self.index)
        return {f"triangle/{name}": packed[:used] for name, packed in self.triangles.items()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Copy the triangles."""
        for name, packed in self.triangles.items():
            saved = state[f"triangle/{name}"]
            packed[: saved.size] = saved
