"""Two-time functions stored on a thinned grid that is dense near the diagonal and near time 0 and sparse between.

A two-time function X(t, s) of a system that ages changes on the scale of min(t - s, s). It changes quickly near the diagonal and near
the start, and slowly in between. Between two ends a point is therefore stored if its index is a multiple of a spacing. The spacing is a
power of two that grows with the distance from the nearer end. It is 1 up to 2 p, 2 up to 4 p, 4 up to 8 p, and so on, where
p = `per_octave` is the number of points per octave. O(p log n) of n points are stored. Values in between are interpolated by local cubics,
and the weights of an integral are

    W = P^T w,    w = trapezoid weights of all points,   P = interpolation from kept points to all points,            (1)

so that the rule *is* the trapezoid rule for all functions that the cubics reproduce. Its error is therefore the sum of the trapezoid
error of the fine grid, which can be extrapolated, and an interpolation error, which depends on the number of points per octave.

Whether a point is stored depends on its *index*, so that points are only dropped when the end advances, and every point that is stored
now was stored before. No value has to be interpolated again, and the weight of a point changes only when a neighbour is dropped.
Points at fixed distances from the moving end are also accurate, but the weight of a fixed time then oscillates as the end advances, and
the equations amplify these oscillations.

A row at time t stores O(p log i) of its i columns. A dropped column is not needed again. The remaining column s covers all u from s to t,
and it stores points u that are dense near s and near t. The row of a stored s has a separate list of columns. Both memory integrals at
a stored column are therefore sums of O(p log i) stored numbers, and only the integrand f(t, .) is interpolated. A step costs
O((p log i)^2 + i) operations, and the whole history has O((p log T)^2) numbers, instead of O(i^2) and O(T^2).

The largest part of `after`, a value times an integral over all points, is computed separately and exactly. When the motion has stopped,
this part cancels against local terms. The rest is small, and so is the error of thinning it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from limitlab._core.checks import whole
from limitlab.numerics.two_time._memory import Integrals, Mask

# -- which points are kept ----------------------------------------------------------------------------------------------

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def spacings(longest: int, per_octave: int) -> Integers:
    """Return the spacing of stored points at every distance 0..longest from the nearer end.

    >>> spacings(20, per_octave=2)
    array([1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4, 4, 4, 8, 8, 8, 8])
    """
    whole("per_octave", per_octave, least=2, remedy="local cubics need four points")
    octave = np.ceil(np.log2(np.maximum(np.arange(longest + 1), 1) / (2 * per_octave)))
    return np.asarray(1 << np.maximum(octave, 0).astype(np.int64))


def kept(points: Integers, last: int, spacing: Integers) -> NDArray[np.bool_]:
    """Return a mask of the points between 0 and `last` that are stored.

    >>> points = np.arange(14)
    >>> points[kept(points, 13, spacings(13, per_octave=2))]
    array([ 0,  1,  2,  3,  4,  6,  8,  9, 10, 11, 12, 13])
    """
    return np.asarray(points % spacing[np.minimum(points, last - points)] == 0)


def capacity(longest: int, per_octave: int) -> int:
    """Return an upper bound of the number of stored points between two ends at most `longest` apart.

    >>> spacing = spacings(3000, 4)
    >>> rows = [kept(np.arange(n + 1), n, spacing).sum() for n in range(3000)]
    >>> bool(max(rows) < capacity(3000, 4))
    True
    """
    octaves = int(np.ceil(np.log2(max(2.0, longest / (2 * per_octave)))))
    return 4 * per_octave + 2 * (per_octave + 1) * octaves + 4


@numba.njit(cache=True)
def trapezoid_weights(points: Any, weights: Any) -> None:
    """Write the weights (1) of increasing integers into `weights`."""
    size = points.size
    for k in range(size):
        weights[k] = 1.0
    weights[0] -= 0.5
    weights[size - 1] -= 0.5
    for k in range(size - 1):
        gap = float(points[k + 1] - points[k])
        if gap == 1.0:
            continue
        # Each Lagrange polynomial of four neighbours is summed over the points inside the gap, by sums of powers 1..gap-1.
        s0, s1 = gap - 1.0, 0.5 * gap * (gap - 1.0)
        s2, s3 = s1 * (2.0 * gap - 1.0) / 3.0, s1 * s1
        low = min(max(k - 1, 0), size - 4)
        for p in range(4):
            e1, e2, e3, scale = 0.0, 0.0, 1.0, 1.0
            for q in range(4):
                if q != p:
                    x = float(points[low + q] - points[k])
                    e2 += e1 * x
                    e1 += x
                    e3 *= x
                    scale *= float(points[low + p] - points[low + q])
            weights[low + p] += (s3 - e1 * s2 + e2 * s1 - e3 * s0) / scale


@numba.njit(cache=True, fastmath=True)
def interpolate_gaps(points: Any, values: Any) -> None:
    """Fill `values` in place between the `points` by local cubics, in powers of the distance from the start of the gap."""
    size = points.size
    for k in range(size - 1):
        first, gap = points[k], points[k + 1] - points[k]
        if gap == 1:
            continue
        low = min(max(k - 1, 0), size - 4)
        x0, x1 = float(points[low] - first), float(points[low + 1] - first)
        x2, x3 = float(points[low + 2] - first), float(points[low + 3] - first)
        y0, y1, y2, y3 = values[points[low]], values[points[low + 1]], values[points[low + 2]], values[points[low + 3]]
        d01, d12, d23 = (y1 - y0) / (x1 - x0), (y2 - y1) / (x2 - x1), (y3 - y2) / (x3 - x2)
        d012, d123 = (d12 - d01) / (x2 - x0), (d23 - d12) / (x3 - x1)
        c3 = (d123 - d012) / (x3 - x0)  # Newton's divided differences
        c2 = d012 - c3 * (x0 + x1 + x2)
        c1 = d01 - d012 * (x0 + x1) + c3 * (x0 * x1 + x0 * x2 + x1 * x2)
        c0 = y0 - d01 * x0 + d012 * x0 * x1 - c3 * x0 * x1 * x2
        for g in range(1, gap):
            x = float(g)
            values[first + g] = c0 + x * (c1 + x * (c2 + x * c3))


# -- the history --------------------------------------------------------------------------------------------------------


@numba.njit(cache=True)
def _fill(columns: Any, values: Any, last: Any) -> Any:
    """Return the values at all points, interpolated from the values at the columns."""
    full = np.empty(last + 1)
    for k in range(columns.size):
        full[columns[k]] = values[k]
    interpolate_gaps(columns, full)
    return full


@numba.njit(cache=True)
def _thin(columns: Any, slots: Any, last: Any, spacing: Any, sizes: Any, points: Any, weights: Any, stored: Any) -> None:
    """Drop the points of every column that are not stored at the newest time, add that time, and update the weights."""
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
def _after(memory: Any, f: Any, number: Any) -> Any:
    """Return int_s^t f(u) X(u,s) du = X(t,s) int_s^t f - int_s^t f(u) [X(t,s) - X(u,s)] du.

    The first integral on the right is taken over all points.
    """
    newest, stored, (sizes, points, weights) = memory.rows_now[number], memory.columns_kept[number], memory.column_rule
    last = f.size - 1
    tail, later = np.zeros(last + 1), 0.5 * f[last]
    for u in range(last - 1, -1, -1):
        tail[u] = later + 0.5 * f[u]
        later += f[u]
    result = np.empty(memory.columns.size)
    for c in range(memory.columns.size):
        slot, total = memory.slots[c], 0.0
        for k in range(sizes[slot] - 1):  # at u = t the bracket is 0
            total += weights[slot, k] * f[points[slot, k]] * (newest[c] - stored[slot, k])
        result[c] = memory.step * (newest[c] * tail[memory.columns[c]] - total)
    return result


@numba.njit(cache=True, fastmath=True)
def _after_start(memory: Any, f: Any, number: Any) -> Any:
    """Return int_s^t f(u) X(u,s) du = f(s) int_s^t X(u,s) du + int_s^t [f(u) - f(s)] X(u,s) du, where X(t,s) counts as 0."""
    stored, sums, (sizes, points, weights) = memory.columns_kept[number], memory.sums[number], memory.column_rule
    result = np.empty(memory.columns.size)
    for c in range(memory.columns.size):
        slot, start, total = memory.slots[c], f[memory.columns[c]], 0.0
        for k in range(sizes[slot] - 1):
            total += weights[slot, k] * (f[points[slot, k]] - start) * stored[slot, k]
        result[c] = memory.step * (total + start * sums[slot])
    return result


@numba.njit(cache=True, fastmath=True)
def _before(memory: Any, f: Any, number: Any) -> Any:
    """Return int_0^s f(u) X(s,u) du over the columns of row s. The newest row is not stored yet."""
    stored, (sizes, points, weights) = memory.rows_kept[number], memory.row_rule
    result = np.empty(memory.slots.size)
    for c in range(memory.slots.size):
        slot, total = memory.slots[c], 0.0
        values = memory.rows_now[number] if c == memory.slots.size - 1 else stored[slot]
        for k in range(sizes[slot]):
            total += weights[slot, k] * f[points[slot, k]] * values[k]
        result[c] = memory.step * total
    return result


Rule = tuple[Integers, Integers, Floats]
"""Number of stored points of every column (or row), the points, and their weights in an integral."""


class ThinnedMemory(NamedTuple):
    """The arrays of a thinned history that compiled code reads (`limitlab.numerics.two_time.compiled`)."""

    rows_now: Floats
    columns: Integers
    slots: Integers
    columns_kept: Floats
    rows_kept: Floats
    sums: Floats
    column_rule: Rule
    row_rule: Rule
    last: int
    step: float

    @staticmethod
    def newest(memory: Any, number: int) -> Any:
        """Return the newest row X(t, .) of a two-time function at the columns."""
        return memory.rows_now[number]

    @staticmethod
    def after(memory: Any, f: Any, number: int) -> Any:
        """Return int_s^t f(u) X(u, s) du, for the newest time t, at all stored s."""
        return _after(memory, _fill(memory.columns, f, memory.last), number)

    @staticmethod
    def after_start(memory: Any, f: Any, number: int) -> Any:
        """Return int_s^t f(u) X(u, s) du without its last point u = t."""
        return _after_start(memory, _fill(memory.columns, f, memory.last), number)

    @staticmethod
    def before(memory: Any, f: Any, number: int) -> Any:
        """Return int_0^s f(u) X(s, u) du, at all stored s."""
        return _before(memory, _fill(memory.columns, f, memory.last), number)

    @staticmethod
    def both(memory: Any, forward: Any, backward: Any, number: int) -> Any:
        """Return `after(forward)` and `before(backward)`."""
        after = _after(memory, _fill(memory.columns, forward, memory.last), number)
        return after, _before(memory, _fill(memory.columns, backward, memory.last), number)

    @staticmethod
    def whole(memory: Any, f: Any, number: int) -> Any:
        """Return int_0^t f(u) X(u, s) du for a symmetric X and the newest time t, at all stored s."""
        full = _fill(memory.columns, f, memory.last)
        result = _after(memory, full, number)
        result += _before(memory, full, number)
        return result

    @staticmethod
    def total(memory: Any, f: Any) -> Any:
        """Return int_0^t f(u) du up to the newest time t."""
        return memory.step * np.sum(memory.row_rule[2][memory.slots[-1], : f.size] * f)


class ThinnedHistory(Integrals):
    """A history that stores few points of every row and column (see `History` for the methods).

    Every stored column s has a slot, which is an index into two kinds of arrays. One holds the column, X(u, s) at the stored u. The
    second holds the row, X(s, u) at the columns u that were stored at time s.

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
        self.numbers = {name: number for number, name in enumerate(names)}
        self._newest = self._previous = np.zeros((len(names), 1))
        self._columns, self._rows = np.zeros((2, len(names), size, size))
        self._sums = np.zeros((len(names), size))  # sums over u of X(u, s), up to the last finished row
        self._column_rule, self._row_rule = (
            (np.zeros(size, dtype=np.int64), np.zeros((size, size), dtype=np.int64), np.zeros((size, size)))
            for _ in range(2)
        )
        self._open_row()

    def _open_row(self) -> None:
        """Set the weights of the newest row's columns, and the points and weights of all columns up to the newest time."""
        slot, size = self.slots[-1], self.columns.size
        sizes, points, weights = self._row_rule
        sizes[slot], points[slot, :size] = size, self.columns
        trapezoid_weights(self.columns, weights[slot])
        _thin(self.columns, self.slots, self.index, self._spacing, *self._column_rule, self._columns)
        self._sums[:, slot] = 0.0

    def row(self, name: str) -> Floats:
        """Return the newest row X(t, .) of a two-time function at the columns."""
        return self._newest[self.numbers[name]]

    def previous(self, name: str) -> Floats:
        """Return the row X(t - step, .) before the newest row, at the columns except the last."""
        return self._previous[self.numbers[name]]

    def path(self, name: str) -> Floats:
        """Return a function of one time at the columns."""
        return self.paths[name][self.columns]

    def memory(self) -> ThinnedMemory:
        """Return the arrays that compiled code reads."""
        return ThinnedMemory(
            self._newest,
            self.columns,
            self.slots,
            self._columns,
            self._rows,
            self._sums,
            self._column_rule,
            self._row_rule,
            self.index,
            self.step,
        )

    def begin_row(self, index: int) -> Mask:
        """Drop the columns that a row at this time does not store, and add the column of this time."""
        still = kept(self.columns, index, self._spacing)
        self._free += self.slots[~still].tolist()
        self._previous = np.compress(still, self._newest, axis=1)
        self.index = index
        self.columns = np.append(self.columns[still], index)
        self.slots = np.append(self.slots[still], self._free.pop())
        self._newest = np.zeros((len(self.numbers), self.columns.size))
        self._open_row()
        return still

    def close_row(self) -> None:
        """Write the newest row into the columns, the rows and the sums."""
        slot, size, ends = self.slots[-1], self.columns.size, self._column_rule[0][self.slots] - 1
        self._columns[:, self.slots, ends] = self._newest
        self._rows[:, slot, :size] = self._newest
        self._sums[:, self.slots] += self._newest
        self._sums[:, slot] *= 0.5

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the columns, the slots and the arrays that they index."""
        state: dict[str, NDArray[Any]] = {
            "columns": self.columns,
            "slots": self.slots,
            "free": np.array(self._free, dtype=np.int64),
            "stored_columns": self._columns,
            "stored_rows": self._rows,
            "newest": self._newest,
            "sums": self._sums,
        }
        for kind, rule in (("column", self._column_rule), ("row", self._row_rule)):
            state |= {f"{kind}_{part}": array for part, array in zip(("sizes", "points", "weights"), rule, strict=True)}
        return state

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the arrays that `state` returned."""
        self.columns, self.slots, self._free = state["columns"], state["slots"], state["free"].tolist()
        self._columns, self._rows = state["stored_columns"], state["stored_rows"]
        self._column_rule, self._row_rule = (
            (state[f"{kind}_sizes"], state[f"{kind}_points"], state[f"{kind}_weights"]) for kind in ("column", "row")
        )
        self._newest, self._sums = state["newest"], state["sums"]
