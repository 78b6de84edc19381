"""A history that forgets: few columns of every row, dense near the newest time and near the start.

A row at time t keeps the columns that `limitlab.numerics.two_time.nodes.still_kept` allows, O(p log i) of i. A column that is dropped is
never needed again, so a kept column s knows X(u, s) at *every* u from s to t, and the row of every kept s knows X(s, u) at the columns
of its own time. Both memory integrals at a kept column are therefore sums of O(p log i) stored numbers; only the integrand f(t, .) is
interpolated. A step costs O((p log i)^2 + i), and the memory is O(p log T) numbers per time, instead of O(i^2) and O(i).

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
from limitlab.numerics.two_time.nodes import interpolate_gaps, multiresolution, still_kept, trapezoid_weights

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


@numba.njit(cache=True, fastmath=True)
def _after(columns, slots, newest, stored, f, step, start, points, weights):  # type: ignore[no-untyped-def]
    """int_s^t f(u) X(u,s) du = X(t,s) int_s^t f - int_s^t f(u) [X(t,s) - X(u,s)] du, the first integral over all points."""
    last = f.size - 1
    tail, later = np.zeros(last + 1), 0.5 * f[last]
    for u in range(last - 1, -1, -1):
        tail[u] = later + 0.5 * f[u]
        later += f[u]
    result = np.empty(columns.size)
    for c in range(columns.size):
        s, column, total = columns[c], stored[slots[c]], 0.0
        for k in range(start[last - s], start[last - s + 1] - 1):  # at u = t the bracket is 0
            u = s + points[k]
            total += weights[k] * f[u] * (newest[c] - column[u])
        result[c] = step * (newest[c] * tail[s] - total)
    return result


@numba.njit(cache=True, fastmath=True)
def _after_start(columns, slots, sums, stored, f, step, start, points, weights):  # type: ignore[no-untyped-def]
    """int_s^t f(u) X(u,s) du = f(s) int_s^t X(u,s) du + int_s^t [f(u) - f(s)] X(u,s) du, where X(t,s) counts as 0."""
    last = f.size - 1
    result = np.empty(columns.size)
    for c in range(columns.size):
        s, column, total = columns[c], stored[slots[c]], 0.0
        for k in range(start[last - s], start[last - s + 1] - 1):
            u = s + points[k]
            total += weights[k] * (f[u] - f[s]) * column[u]
        result[c] = step * (total + f[s] * sums[slots[c]])
    return result


@numba.njit(cache=True, fastmath=True)
def _before(slots, newest, stored, f, step, row_columns, row_weights, row_sizes):  # type: ignore[no-untyped-def]
    """int_0^s f(u) X(s,u) du over the columns that row s had; the newest row is not stored yet."""
    result = np.empty(slots.size)
    for c in range(slots.size):
        slot, total = slots[c], 0.0
        values = newest if c == slots.size - 1 else stored[slot]
        for k in range(row_sizes[slot]):
            total += row_weights[slot, k] * f[row_columns[slot, k]] * values[k]
        result[c] = step * total
    return result


def capacity(steps: int, per_octave: int) -> int:
    """An upper bound of the number of columns that any row keeps.

    >>> rows = [still_kept(np.arange(n), n, 4).sum() for n in range(1, 3000)]
    >>> bool(max(rows) < capacity(3000, 4))
    True
    """
    octaves = int(np.ceil(np.log2(max(2.0, steps / (2 * per_octave)))))
    return 4 * per_octave + 2 * (per_octave + 1) * octaves + 4


class ThinnedHistory:
    """Few columns of every row (see `History` for the methods).

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
        rule = multiresolution(steps, per_octave)
        self._rule = (rule.start, rule.points, rule.weights)
        self.index, self.step, self.per_octave = 0, float(step), per_octave
        self.paths = {name: np.zeros(steps + 1) for name in functions}
        self.records = {name: np.zeros(steps + 1) for name in observed}
        names, size = (*two_time, *auxiliaries), capacity(steps, per_octave)
        self.columns: Integers = np.zeros(1, dtype=np.int64)
        self.slots: Integers = np.zeros(1, dtype=np.int64)
        self._free = list(range(size - 1, 0, -1))
        self._newest = {name: np.zeros(1) for name in names}
        self._previous: dict[str, Floats] = {}
        self._columns = {name: np.zeros((size, steps + 1)) for name in names}  # X(u, s) by slot of s and by u
        self._rows = {name: np.zeros((size, size)) for name in names}  # X(s, u) by slot of s and by the columns of row s
        self._row_columns, self._row_weights = np.zeros((size, size), dtype=np.int64), np.zeros((size, size))
        self._row_sizes = np.zeros(size, dtype=np.int64)
        self._sums = {name: np.zeros(size) for name in auxiliaries}  # over u of X(u, s), up to the last closed row
        self._open_row()

    def _open_row(self) -> None:
        """Note the columns of the newest row and their weights."""
        slot, size = self.slots[-1], self.columns.size
        self._row_sizes[slot] = size
        self._row_columns[slot, :size] = self.columns
        trapezoid_weights(self.columns, self._row_weights[slot, :size])
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
        kept = still_kept(self.columns, index, self.per_octave)
        self._free += self.slots[~kept].tolist()
        self._previous = {name: values[kept] for name, values in self._newest.items()}
        self.index = index
        self.columns = np.append(self.columns[kept], index)
        self.slots = np.append(self.slots[kept], self._free.pop())
        self._newest = {name: np.zeros(self.columns.size) for name in self._newest}
        self._open_row()
        return kept

    def close_row(self) -> None:
        """Write the newest row into the columns, the rows and the sums."""
        slot, size = self.slots[-1], self.columns.size
        for name, values in self._newest.items():
            self._columns[name][self.slots, self.index] = values
            self._rows[name][slot, :size] = values
        for name, sums in self._sums.items():
            sums[self.slots] += self._newest[name]
            sums[slot] *= 0.5

    def _all(self, f: Floats) -> Floats:
        return np.asarray(_fill(self.columns, f, self.index))

    def after(self, f: Floats, name: str) -> Floats:
        """int_s^t f(u) X(u, s) du."""
        return self._forward(self._all(f), name)

    def _forward(self, full: Floats, name: str) -> Floats:
        return np.asarray(
            _after(self.columns, self.slots, self._newest[name], self._columns[name], full, self.step, *self._rule)
        )

    def after_start(self, f: Floats, name: str) -> Floats:
        """int_s^t f(u) X(u, s) du without its last point u = t."""
        sums, stored = self._sums[name], self._columns[name]
        return np.asarray(_after_start(self.columns, self.slots, sums, stored, self._all(f), self.step, *self._rule))

    def before(self, f: Floats, name: str) -> Floats:
        """int_0^s f(u) X(s, u) du."""
        return self._backward(self._all(f), name)

    def _backward(self, full: Floats, name: str) -> Floats:
        rows = (self._row_columns, self._row_weights, self._row_sizes)
        return np.asarray(_before(self.slots, self._newest[name], self._rows[name], full, self.step, *rows))

    def both(self, forward: Floats, backward: Floats, name: str) -> tuple[Floats, Floats]:
        """`after(forward)` and `before(backward)`."""
        return self.after(forward, name), self.before(backward, name)

    def whole(self, f: Floats, name: str) -> Floats:
        """int_0^t f(u) X(u, s) du for a symmetric X."""
        full = self._all(f)
        return self._forward(full, name) + self._backward(full, name)

    def total(self, f: Floats) -> float:
        """int_0^t f(u) du."""
        return self.step * float(self._row_weights[self.slots[-1], : f.size] @ f)

    def state(self) -> dict[str, NDArray[Any]]:
        """Columns, slots and what is stored for them."""
        state: dict[str, NDArray[Any]] = {
            "columns": self.columns,
            "slots": self.slots,
            "free": np.array(self._free, dtype=np.int64),
            "row_columns": self._row_columns,
            "row_weights": self._row_weights,
            "row_sizes": self._row_sizes,
        }
        for name in self._newest:
            state |= {f"newest/{name}": self._newest[name], f"row/{name}": self._rows[name]}
            state[f"stored/{name}"] = self._columns[name][:, : self.index + 1]
        return state | {f"sums/{name}": sums for name, sums in self._sums.items()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Copy everything back."""
        self.columns, self.slots = state["columns"], state["slots"]
        self._free = state["free"].tolist()
        self._row_columns, self._row_weights, self._row_sizes = (
            state[name] for name in ("row_columns", "row_weights", "row_sizes")
        )
        for name in self._newest:
            self._newest[name], self._rows[name] = state[f"newest/{name}"], state[f"row/{name}"]
            self._columns[name][:, : self.index + 1] = state[f"stored/{name}"]
        self._sums = {name: state[f"sums/{name}"] for name in self._sums}
