"""The largest value of a quadratic function on a ball, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

Array = NDArray[Any]


def largest_on_ball(curvatures: Array, slopes: Array, radius: float) -> float:
    """max of sum_i a_i x_i^2 + 2 s_i x_i over |x| <= radius, for a quadratic in the basis of its eigenvectors.

    By duality it is the minimum over mu >= max(a, 0) of mu radius^2 + sum_i s_i^2/(mu - a_i), a convex function of one variable; no
    duality gap, even where the slope has no component along the top eigenvectors (the hard case: then mu = max a).

    Examples
    --------
    >>> largest_on_ball(np.array([2.0, -1.0]), np.array([0.0, 0.0]), 3.0)
    18.0
    >>> round(largest_on_ball(np.array([-1.0]), np.array([0.5]), 10.0), 12)   # inside: x = 0.5
    0.25
    """
    a, s2, square = np.asarray(curvatures, dtype=float), np.asarray(slopes, dtype=float) ** 2, float(radius) ** 2
    if square == 0:
        return 0.0
    low = max(float(a.max()), 0.0)
    moving = s2 > 0

    def rise(mu: float) -> float:
        return float(square - (s2[moving] / (mu - a[moving]) ** 2).sum())

    def value(mu: float) -> float:
        return float(mu * square + (s2[moving] / (mu - a[moving])).sum())

    at_pole = bool((a[moving] >= low).any())
    if not moving.any() or (not at_pole and rise(low) >= 0):
        return value(low) if moving.any() else low * square
    high = low + float(np.sqrt(s2.sum() / square))
    bottom = low + float(np.sqrt(s2[moving & (a >= low)].sum() / square)) / 2 if at_pole else low
    bottom = bottom if bottom > low or not at_pole else float(np.nextafter(low, np.inf))
    if rise(high) <= 0:  # rounding: the root is where the whole slope points along the top
        return value(high)
    if rise(bottom) >= 0:
        return value(bottom)
    return value(float(brentq(rise, bottom, high, xtol=1e-14 * max(high, 1e-300), rtol=1e-14, maxiter=500)))
