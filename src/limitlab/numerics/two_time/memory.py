"""Memory integrals over a triangular history, the inner loop of every two-time system.

A two-time function X(t_i, t_j) with j <= i on the grid t_j = j * step is a packed lower triangle: row i starts at entry
i (i + 1) / 2. For a row f(t_i, .) there are three integrals, each by the trapezoid rule,

    after(s)  = int_s^t f(t, u) X(u, s) du,     before(s) = int_0^s f(t, u) X(s, u) du,
    whole(s)  = int_0^t f(t, u) X(u, s) du      for symmetric X, which is the sum of the two,

and the triangle is read once for both of the first two: a dense pass costs i^2 / 2 contiguous reads. With a
multi-resolution rule (`limitlab.numerics.two_time.nodes`) both are evaluated at O(log i) kept columns only, each from O(log i)
points, and are zero at the others. The caller combines them into something *small*, a time derivative or a residual, and then
calls `fill`: interpolating the integrals themselves would leave an error that does not fade when the motion does, and such errors
grow. For the same reason the bulk of every integral, a value times an integral over all points, is split off before sampling.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from limitlab.numerics.two_time.nodes import Nodes, interpolate_gaps

Floats = NDArray[np.float64]


def triangle(steps: int, dtype: type = np.float64) -> Floats:
    """A packed lower triangle of zeros with rows 0..steps.

    >>> triangle(2).size
    6
    """
    return np.zeros((steps + 1) * (steps + 2) // 2, dtype=dtype)


def row(packed: Floats, i: int) -> Floats:
    """Row i of a packed triangle, as a view.

    >>> row(np.arange(6.0), 2)
    array([3., 4., 5.])
    """
    first = i * (i + 1) // 2
    return packed[first : first + i + 1]


@numba.njit(cache=True, fastmath=True)
def _dense_pass(packed, forward, backward, step, after, before):  # type: ignore[no-untyped-def]
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
def _dense_after(packed, forward, step, after):  # type: ignore[no-untyped-def]
    last = forward.size - 1
    for u in range(last + 1):
        first = u * (u + 1) // 2
        weight = step * forward[u] * (0.5 if u == last else 1.0)
        for s in range(u + 1):
            after[s] += weight * packed[first + s]
        after[u] -= 0.5 * step * forward[u] * packed[first + u]


@numba.njit(cache=True, fastmath=True)
def _dense_before(packed, backward, step, before):  # type: ignore[no-untyped-def]
    for u in range(backward.size):
        first = u * (u + 1) // 2
        total = 0.0
        for s in range(u + 1):
            total += backward[s] * packed[first + s]
        before[u] = step * (total - 0.5 * backward[0] * packed[first] - 0.5 * backward[u] * packed[first + u])


@numba.njit(cache=True)
def _sparse_after(packed, forward, step, start, points, weights, after):  # type: ignore[no-untyped-def]
    """int_s^t f(u) X(u,s) du = X(t,s) int_s^t f - int_s^t f(u) [X(t,s) - X(u,s)] du, the first integral over all points."""
    last = forward.size - 1
    tail, later = np.zeros(last + 1), 0.5 * forward[last]
    for u in range(last - 1, -1, -1):
        tail[u] = later + 0.5 * forward[u]
        later += forward[u]
    for j in points[start[last] : start[last + 1]]:
        total, newest = 0.0, packed[last * (last + 1) // 2 + j]
        for k in range(start[last - j], start[last - j + 1]):
            u = j + points[k]
            total += weights[k] * forward[u] * (newest - packed[u * (u + 1) // 2 + j])
        after[j] = step * (newest * tail[j] - total)


@numba.njit(cache=True)
def _sparse_after_start(packed, forward, column, step, start, points, weights, after):  # type: ignore[no-untyped-def]
    """int_s^t f(u) X(u,s) du = f(s) int_s^t X(u,s) du + int_s^t [f(u) - f(s)] X(u,s) du; `column` has sums of X over u."""
    last = forward.size - 1
    for j in points[start[last] : start[last + 1]]:
        total = 0.0
        for k in range(start[last - j], start[last - j + 1]):
            u = j + points[k]
            total += weights[k] * (forward[u] - forward[j]) * packed[u * (u + 1) // 2 + j]
        after[j] = step * (total + forward[j] * column[j])


@numba.njit(cache=True)
def _sparse_before(packed, backward, step, start, points, weights, before):  # type: ignore[no-untyped-def]
    last = backward.size - 1
    for j in points[start[last] : start[last + 1]]:
        first, total = j * (j + 1) // 2, 0.0
        for k in range(start[j], start[j + 1]):
            total += weights[k] * backward[points[k]] * packed[first + points[k]]
        before[j] = step * total


class Memory:
    """The three memory integrals on a uniform grid, dense (`nodes=None`) or with a multi-resolution rule.

    Parameters
    ----------
    step
        Distance of the grid points.
    nodes
        Rule from `multiresolution`, or None to use every point.

    Examples
    --------
    A constant history, f = 1, t = 2: int_s^t du = t - s.

    >>> Memory(1.0).after(np.ones(3), np.ones(6))
    array([2., 1., 0.])
    """

    def __init__(self, step: float, nodes: Nodes | None = None):
        self.step = float(step)
        self.nodes = nodes

    def after(self, f: Floats, packed: Floats) -> Floats:
        """int_s^t f(u) X(u, s) du for s = t_0..t_i, where i + 1 is the length of f."""
        result = np.zeros(f.size)
        if self.nodes is None:
            _dense_after(packed, f, self.step, result)
        else:
            _sparse_after(packed, f, self.step, self.nodes.start, self.nodes.points, self.nodes.weights, result)
        return result

    def after_start(self, f: Floats, packed: Floats, column: Floats) -> Floats:
        """`after` for an X(u, s) whose weight is near u = s, so that f(s) int X(u, s) du is the bulk of it.

        `column` has the sums of X(u, s) over u (half a weight at u = s) up to the last finished row; the newest row counts as 0.
        """
        if self.nodes is None:
            return self.after(f, packed)
        result = np.zeros(f.size)
        rule = (self.nodes.start, self.nodes.points, self.nodes.weights)
        _sparse_after_start(packed, f, column, self.step, *rule, result)
        return result

    def fill(self, values: Floats) -> Floats:
        """Values that a multi-resolution memory computed at the kept columns, interpolated to the others, in place."""
        if self.nodes is not None:
            interpolate_gaps(self.nodes.of(values.size - 1)[0], values)
        return values

    def before(self, f: Floats, packed: Floats) -> Floats:
        """int_0^s f(u) X(s, u) du for s = t_0..t_i.

        >>> Memory(1.0).before(np.ones(3), np.ones(6))
        array([0., 1., 2.])
        """
        result = np.zeros(f.size)
        if self.nodes is None:
            _dense_before(packed, f, self.step, result)
        else:
            _sparse_before(packed, f, self.step, self.nodes.start, self.nodes.points, self.nodes.weights, result)
        return result

    def both(self, forward: Floats, backward: Floats, packed: Floats) -> tuple[Floats, Floats]:
        """`after(forward)` and `before(backward)` in one pass over the triangle."""
        if self.nodes is not None:
            return self.after(forward, packed), self.before(backward, packed)
        after, before = np.zeros(forward.size), np.zeros(forward.size)
        _dense_pass(packed, forward, backward, self.step, after, before)
        return after, before

    def whole(self, f: Floats, packed: Floats) -> Floats:
        """int_0^t f(u) X(u, s) du for a symmetric X.

        >>> Memory(1.0).whole(np.ones(3), np.ones(6))
        array([2., 2., 2.])
        """
        after, before = self.both(f, f, packed)
        return after + before

    def total(self, f: Floats) -> float:
        """int_0^t f(u) du.

        >>> Memory(0.5).total(np.array([0.0, 1.0, 2.0]))
        1.0
        """
        return self.step * (float(f.sum()) - 0.5 * float(f[0] + f[-1]))
