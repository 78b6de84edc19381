"""Which points of a uniform grid a memory integral visits: all of them, or few that are dense at both ends.

A two-time function X(t, s) of a system that ages changes on the scale of min(t - s, s): quickly near the diagonal and near
the start, slowly in between. On the integers 0..n few points are therefore enough: every point within 2 p of an end, every second
one up to 4 p, every fourth one up to 8 p, and so on (p = `per_octave`), O(p log n) points instead of n. What lies between them is
interpolated by local cubics, and the weights of an integral are

    W = P^T w,    w = trapezoid weights of all points,   P = interpolation from kept points to all points,            (1)

so that the rule *is* the trapezoid rule for whatever the cubics reproduce. Its error is therefore the trapezoid error of
the fine grid (which extrapolates cleanly) plus an interpolation error that the number of points per octave controls.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Nodes:
    """The kept points of every interval 0..n, n <= steps, with their weights, one after the other in flat arrays.

    Attributes
    ----------
    start
        Interval 0..n owns `points[start[n]:start[n + 1]]` and the same slice of `weights`.
    points, weights
        Kept points and weights of unit step: an integral is the step times sum(weights * values).
    """

    start: Integers
    points: NDArray[np.int32]
    weights: Floats

    def of(self, n: int) -> tuple[NDArray[np.int32], Floats]:
        """Points and weights of the interval 0..n.

        >>> points, weights = multiresolution(100, per_octave=2).of(40)
        >>> points
        array([ 0,  1,  2,  3,  4,  6,  8, 12, 16, 24, 28, 32, 34, 36, 37, 38, 39,
               40], dtype=int32)
        >>> round(float(weights @ points.astype(float)**3), 6)  # the trapezoid rule of all 41 points
        640400.0
        """
        own = slice(int(self.start[n]), int(self.start[n + 1]))
        return self.points[own], self.weights[own]


def multiresolution(steps: int, per_octave: int = 8) -> Nodes:
    """Kept points of all intervals up to `steps`; `per_octave` points per doubling of the distance from either end."""
    if per_octave < 2:
        raise ValueError(f"per_octave = {per_octave} is not allowed: must be at least 2 (local cubics need four points)")
    distances = _distances(steps, per_octave)
    start = np.concatenate([[0], np.cumsum(_counts(distances, steps))])
    points, weights = np.empty(start[-1], dtype=np.int32), np.empty(start[-1])
    _fill_rule(distances, start, points, weights)
    return Nodes(start, points, weights)


def _distances(steps: int, per_octave: int) -> Integers:
    """Distances from an end: 0..2p by one, then p of every spacing 2, 4, 8, ..., which is p per doubling."""
    distances, spacing = list(range(2 * per_octave + 1)), 2
    while distances[-1] <= steps:
        distances += [distances[-1] + spacing * k for k in range(1, per_octave + 1)]
        spacing *= 2
    return np.array(distances, dtype=np.int64)


def _counts(distances: Integers, steps: int) -> Integers:
    """Number of kept points of 0..n for every n: twice the distances up to n/2, the middle counted once."""
    n = np.arange(steps + 1)
    half = np.searchsorted(distances, n / 2, side="right")
    return np.asarray(2 * half - (2 * distances[half - 1] == n), dtype=np.int64)


@numba.njit(cache=True)
def _fill_rule(distances, start, points, weights):  # type: ignore[no-untyped-def]
    """Kept points of every interval and their weights."""
    for n in range(start.size - 1):
        first, size = start[n], start[n + 1] - start[n]
        for k in range(size):
            points[first + k] = distances[k] if 2 * k < size else n - distances[size - 1 - k]
        trapezoid_weights(points[first : first + size], weights[first : first + size])


@numba.njit(cache=True)
def trapezoid_weights(points, weights):  # type: ignore[no-untyped-def]
    """The weights (1) of increasing integers that begin with 0, written into `weights`."""
    size = points.size
    for k in range(size):
        weights[k] = 1.0
    weights[0] -= 0.5
    weights[size - 1] -= 0.5
    for k in range(size - 1):
        gap = float(points[k + 1] - points[k])
        if gap == 1.0:
            continue
        # The sum over the points inside the gap of each Lagrange polynomial of four neighbours, by sums of powers 1..gap-1.
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
def interpolate_gaps(points, values):  # type: ignore[no-untyped-def]
    """Fill `values` (known at `points`) in place between them by local cubics, written as powers of the distance from the gap."""
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


def still_kept(columns: Integers, newest: int, per_octave: int) -> NDArray[np.bool_]:
    """Which columns s a row at time `newest` still keeps: multiples of the spacing that their distance to both ends allows.

    Spacings are powers of two that only grow with the distance to the newest point, so a column that was dropped is never missed
    again: what a later row keeps, every earlier row has.

    >>> columns = np.arange(13)
    >>> columns[still_kept(columns, 13, per_octave=2)]
    array([ 0,  1,  2,  3,  4,  6,  8,  9, 10, 11, 12])
    """
    distance = np.minimum(columns, newest - columns)
    octave = np.ceil(np.log2(np.maximum(distance, 1) / (2 * per_octave)))
    spacing = 1 << np.maximum(octave, 0).astype(np.int64)
    return np.asarray(columns % spacing == 0)
