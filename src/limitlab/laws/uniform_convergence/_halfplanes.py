"""The largest imbalance of signs between the two sides of a line in the plane, computed exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import Refused

Array = NDArray[Any]


def largest_imbalance(points: ArrayLike, signs: ArrayLike) -> float:
    """Return the largest |sum of the signs on one side of a line - sum on the other side|, over all lines that miss the points.

    Every line can be moved, without passing a point, until it almost touches a point. If the line turns around this point, the sum on its
    left changes only at the angles of the other points. The method sorts these angles around each of the n points.

    Parameters
    ----------
    points
        In general position, shape (n, 2).
    signs
        Any numbers, one per point.

    Examples
    --------
    >>> largest_imbalance([[0.0, 0.0], [1.0, 0.1], [2.0, 0.0], [3.0, 0.1]], [1.0, -1.0, 1.0, -1.0])
    4.0
    """
    x, s = np.asarray(points, dtype=float), np.asarray(signs, dtype=float)
    if x.ndim != 2 or x.shape[1] != 2 or s.shape != x.shape[:1]:
        raise Refused(f"points of shape {x.shape} and signs of shape {s.shape} are not allowed: must be (n, 2) and (n,)")
    total, best = float(s.sum()), abs(float(s.sum()))
    for i in range(len(x)):
        others = np.arange(len(x)) != i
        step, weight = x[others] - x[i], s[others]
        angle = np.arctan2(step[:, 1], step[:, 0]) % (2 * np.pi)
        order = np.argsort(angle)
        angle, weight = angle[order], weight[order]
        events = np.sort(np.concatenate([angle, (angle + np.pi) % (2 * np.pi)]))
        low = (events + np.append(events[1:], events[:1] + 2 * np.pi)) / 2 % (2 * np.pi)  # directions between two events
        sums = np.concatenate([[0.0], np.cumsum(np.concatenate([weight, weight]))])
        twice = np.concatenate([angle, angle + 2 * np.pi])
        left = sums[np.searchsorted(twice, low + np.pi)] - sums[np.searchsorted(twice, low)]
        for own_sign in (0.0, float(s[i])):
            best = max(best, float(np.abs(2 * (left + own_sign) - total).max(initial=0.0)))
    return best
