"""Which points of a uniform grid are kept, and how to integrate and interpolate with them.

A two-time function X(t, s) of a system that ages changes on the scale of min(t - s, s): quickly near the diagonal and near
the start, slowly in between. Between two ends a point is therefore kept if its index is a multiple of a spacing, a power of two that
grows with the distance from the nearer end: 1 up to 2 p, 2 up to 4 p, 4 up to 8 p, and so on, p = `per_octave` points per octave, O(p
log n) of n in all. What lies between is interpolated by local cubics, and the weights of an integral are

    W = P^T w,    w = trapezoid weights of all points,   P = interpolation from kept points to all points,            (1)

so that the rule *is* the trapezoid rule for whatever the cubics reproduce. Its error is therefore the trapezoid error of
the fine grid (which extrapolates cleanly) plus an interpolation error that the number of points per octave controls.

That spacings are powers of two of the *index* matters. When an end moves on, points are only ever dropped: what is kept later was kept
before, nothing has to be interpolated again, and a point keeps its weight until a neighbour goes. With points at fixed distances from the
moving end, which is also accurate, the weight of an old event oscillates, and these oscillations feed on themselves.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def spacings(longest: int, per_octave: int) -> Integers:
    """The spacing of kept points at every distance 0..longest from the nearer end.

    >>> spacings(20, per_octave=2)
    array([1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4, 4, 4, 8, 8, 8, 8])
    """
    if per_octave < 2:
        raise ValueError(f"per_octave = {per_octave} is not allowed: must be at least 2 (local cubics need four points)")
    octave = np.ceil(np.log2(np.maximum(np.arange(longest + 1), 1) / (2 * per_octave)))
    return np.asarray(1 << np.maximum(octave, 0).astype(np.int64))


def kept(points: Integers, last: int, spacing: Integers) -> NDArray[np.bool_]:
    """Which points between 0 and `last` are kept.

    >>> points = np.arange(14)
    >>> points[kept(points, 13, spacings(13, per_octave=2))]
    array([ 0,  1,  2,  3,  4,  6,  8,  9, 10, 11, 12, 13])
    """
    return np.asarray(points % spacing[np.minimum(points, last - points)] == 0)


def capacity(longest: int, per_octave: int) -> int:
    """An upper bound of the number of points that are kept between two ends at most `longest` apart.

    >>> spacing = spacings(3000, 4)
    >>> rows = [kept(np.arange(n + 1), n, spacing).sum() for n in range(3000)]
    >>> bool(max(rows) < capacity(3000, 4))
    True
    """
    octaves = int(np.ceil(np.log2(max(2.0, longest / (2 * per_octave)))))
    return 4 * per_octave + 2 * (per_octave + 1) * octaves + 4


@numba.njit(cache=True)
def trapezoid_weights(points: Any, weights: Any) -> None:
    """The weights (1) of increasing integers, written into `weights`."""
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
def interpolate_gaps(points: Any, values: Any) -> None:
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
