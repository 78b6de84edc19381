"""A history that forgets: few points of every row and of every column, dense at both ends.

A row at time t keeps O(p log i) of its i columns (`limitlab.numerics.two_time.nodes`). A column that is dropped is never needed
again, so a kept column s has seen every u from s to t, and keeps those that are dense near s and near t; the row of a kept s has its
own columns. Both memory integrals at a kept column are therefore sums of O(p log i) stored numbers, and only the integrand f(t, .) is
interpolated. A step costs O((p log i)^2 + i), and the whole history is O((p log T)^2) numbers, instead of O(i^2) and O(T^2).

The bulk of `after`, a value times an integral over all points, is split off before the sum is thinned: when the motion has stopped it
cancels against local terms, and what is left is small and so is its error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from limitlab.numerics.two_time.memory import Mask
from limitlab.numerics.two_time.nodes import capacity, interpolate_gaps, kept, spacings, trapezoid_weights

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@numba.njit(cache=True)
def _fill(columns, values, last):  # type: ignore[no-untyped-def]
    """All points from the kept ones."""
    full = np.empty(last + 1)
    for k in range(columns.size):
        full[columns[k]] = values[k]
    interpolate_gaps(columns, full)
    return full


@numba.njit(cache=True)
def _thin(columns, slots, last, spacing, sizes, points, weights, stored):  # type: ignore[no-untyped-def]
    """Drop from every column the points that it does not keep at the newest time, add that time, and weigh what is left."""
    for c in range(columns.size):
        s, slot, size = columns[c], slots[c], 0
        for k in range(sizes[slot] if s < last else 0):
            u = points[slot, k]
            if u == s or u % spacing[min(u - s, last - u)] == 0:
                if size < k:
                    points[slot, size] = u
                    for x in range(stored.shape[0]):
                        stored[x, slot, size] = stored[x, slot, k]
                size += 1
        points[slot, size] = last
        sizes[slot] = size + 1
        trapezoid_weights(points[slot, : size + 1], weights[slot])


@numba.njit(cache=True, fastmath=True)
def _after(columns, slots, newest, stored, f, step, sizes, points, weights):  # type: ignore[no-untyped-def]
    """int_s^t f(u) X(u,s) du = X(t,s) int_s^t f - int_s^t f(u) [X(t,s) - X(u,s)] du, the first integral over all points."""
    last = f.size - 1
    tail, later = np.zeros(last + 1), 0.5 * f[last]
    for u in range(last - 1, -1, -1):
        tail[u] = later + 0.5 * f[u]
        later += f[u]
    result = np.empty(columns.size)
    for c in range(columns.size):
        slot, total = slots[c], 0.0
        for k in range(sizes[slot] - 1):  # at u = t the bracket is 0
            total += weights[slot, k] * f[points[slot, k]] * (newest[c] - stored[slot, k])
        result[c] = step * (newest[c] * tail[columns[c]] - total)
    return result


@numba.njit(cache=True, fastmath=True)
def _after_start(columns, slots, sums, stored, f, step, sizes, points, weights):  # type: ignore[no-untyped-def]
    """int_s^t f(u) X(u,s) du = f(s) int_s^t X(u,s) du + int_s^t [f(u) - f(s)] X(u,s) du, where X(t,s) counts as 0."""
    result = np.empty(columns.size)
    for c in range(columns.size):
        slot, start, total = slots[c], f[columns[c]], 0.0
        for k in range(sizes[slot] - 1):
            total += weights[slot, k] * (f[points[slot, k]] - start) * stored[slot, k]
        result[c] = step * (total + start * sums[slot])
    return result


@numba.njit(cache=True, fastmath=True)
def _before(slots, newest, stored, f, step, sizes, points, weights):  # type: ignore[no-untyped-def]
    """int_0^s f(u) X(s,u) du over the columns that row s had; the newest row is not stored yet."""
    result = np.empty(slots.size)
    for c in range(slots.size):
        slot, total = slots[c], 0.0
        values = newest if c == slots.size - 1 else stored[slot]
        for k in range(sizes[slot]):
            total += weights[slot, k] * f[points[slot, k]] * values[k]
        result[c] = step * total
    return result


class ThinnedHistory:
    """Few points of every row and column (see `History` for the methods).

    Every kept column s owns a slot: an index into the arrays that hold the column, X(u, s) for kept u, and the row, X(s, u) for the
    columns u that it kept.

    Parameters
    ----------
    two_time, auxiliaries, functions, observed, steps, step
        As for `WholeHistory`.
    per_octave
        Points per doubling of the distance from the newest time and from the start.
    """

    def __init__(
        self,
        two_time: Sequence[str],
        auxiliaries: Sequence[str],
        functions: Sequence[str],
        observed: Sequence[str],
        steps: int,
        step: float,
        per_octave: int,
    ):
        self.index, self.step = 0, float(step)
        self.paths = {name: np.zeros(steps + 1) for name in functions}
        self.records = {name: np.zeros(steps + 1) for name in observed}
        self.columns: Integers = np.zeros(1, dtype=np.int64)
        self.slots: Integers = np.zeros(1, dtype=np.int64)
        self._spacing = spacings(steps, per_octave)
        size = capacity(steps, per_octave)
        self._free = list(range(size - 1, 0, -1))
        names = (*two_time, *auxiliaries)
        self._order = {name: k for k, name in enumerate(names)}
        self._newest = {name: np.zeros(1) for name in names}
        self._previous: dict[str, Floats] = {}
        self._columns, self._rows = np.zeros((2, len(names), size, size))
        self._sums = {name: np.zeros(size) for name in auxiliaries}  # over u of X(u, s), up to the last closed row
        self._column_rule, self._row_rule = (
            (np.zeros(size, dtype=np.int64), np.zeros((size, size), dtype=np.int64), np.zeros((size, size)))
            for _ in range(2)
        )
        self._open_row()

    def _open_row(self) -> None:
        """The newest row: its columns with their weights, and the points of all columns up to it."""
        slot, size = self.slots[-1], self.columns.size
        sizes, points, weights = self._row_rule
        sizes[slot], points[slot, :size] = size, self.columns
        trapezoid_weights(self.columns, weights[slot])
        _thin(self.columns, self.slots, self.index, self._spacing, *self._column_rule, self._columns)
        for sums in self._sums.values():
            sums[slot] = 0.0

    def row(self, name: str) -> Floats:
        """X(t, .) at the columns."""
        return self._newest[name]

    def previous(self, name: str) -> Floats:
        """X(t - step, .) at the columns but the last."""
        return self._previous[name]

    def path(self, name: str) -> Floats:
        """x at the columns."""
        return self.paths[name][self.columns]

    def begin_row(self, index: int) -> Mask:
        """Drop the columns that a row at this time does not keep, and add its own."""
        still = kept(self.columns, index, self._spacing)
        self._free += self.slots[~still].tolist()
        self._previous = {name: values[still] for name, values in self._newest.items()}
        self.index = index
        self.columns = np.append(self.columns[still], index)
        self.slots = np.append(self.slots[still], self._free.pop())
        self._newest = {name: np.zeros(self.columns.size) for name in self._newest}
        self._open_row()
        return still

    def close_row(self) -> None:
        """Write the newest row into the columns, the rows and the sums."""
        slot, size, ends = self.slots[-1], self.columns.size, self._column_rule[0][self.slots] - 1
        for name, values in self._newest.items():
            self._columns[self._order[name], self.slots, ends] = values
            self._rows[self._order[name], slot, :size] = values
        for name, sums in self._sums.items():
            sums[self.slots] += self._newest[name]
            sums[slot] *= 0.5

    def _all(self, f: Floats) -> Floats:
        return np.asarray(_fill(self.columns, f, self.index))

    def after(self, f: Floats, name: str) -> Floats:
        """int_s^t f(u) X(u, s) du."""
        return self._forward(self._all(f), name)

    def _forward(self, full: Floats, name: str) -> Floats:
        newest, stored = self._newest[name], self._columns[self._order[name]]
        return np.asarray(_after(self.columns, self.slots, newest, stored, full, self.step, *self._column_rule))

    def after_start(self, f: Floats, name: str) -> Floats:
        """int_s^t f(u) X(u, s) du without its last point u = t."""
        sums, stored = self._sums[name], self._columns[self._order[name]]
        return np.asarray(_after_start(self.columns, self.slots, sums, stored, self._all(f), self.step, *self._column_rule))

    def before(self, f: Floats, name: str) -> Floats:
        """int_0^s f(u) X(s, u) du."""
        return self._backward(self._all(f), name)

    def _backward(self, full: Floats, name: str) -> Floats:
        stored = self._rows[self._order[name]]
        return np.asarray(_before(self.slots, self._newest[name], stored, full, self.step, *self._row_rule))

    def both(self, forward: Floats, backward: Floats, name: str) -> tuple[Floats, Floats]:
        """`after(forward)` and `before(backward)`."""
        return self.after(forward, name), self.before(backward, name)

    def whole(self, f: Floats, name: str) -> Floats:
        """int_0^t f(u) X(u, s) du for a symmetric X."""
        full = self._all(f)
        return self._forward(full, name) + self._backward(full, name)

    def total(self, f: Floats) -> float:
        """int_0^t f(u) du."""
        return self.step * float(self._row_rule[2][self.slots[-1], : f.size] @ f)

    def state(self) -> dict[str, NDArray[Any]]:
        """Columns, slots and what they own."""
        state: dict[str, NDArray[Any]] = {
            "columns": self.columns,
            "slots": self.slots,
            "free": np.array(self._free, dtype=np.int64),
            "stored_columns": self._columns,
            "stored_rows": self._rows,
        }
        for kind, rule in (("column", self._column_rule), ("row", self._row_rule)):
            state |= {f"{kind}_{part}": array for part, array in zip(("sizes", "points", "weights"), rule, strict=True)}
        state |= {f"newest/{name}": values for name, values in self._newest.items()}
        return state | {f"sums/{name}": sums for name, sums in self._sums.items()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take everything back."""
        self.columns, self.slots, self._free = state["columns"], state["slots"], state["free"].tolist()
        self._columns, self._rows = state["stored_columns"], state["stored_rows"]
        self._column_rule, self._row_rule = (
            (state[f"{kind}_sizes"], state[f"{kind}_points"], state[f"{kind}_weights"]) for kind in ("column", "row")
        )
        self._newest = {name: state[f"newest/{name}"] for name in self._newest}
        self._sums = {name: state[f"sums/{name}"] for name in self._sums}
