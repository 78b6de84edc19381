"""Profile intervals: how far a parameter can move before the least cost over all the others rises too much."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Cost = Callable[[float, Array], tuple[float, Array]]

CLOSE = 1e-5  # of the distance to the end
MOST_STEPS = 60


def profile_interval(
    cost: Cost, at: float, error: float, start: Array, rise: tuple[float, float, float], least: float, most: float
) -> tuple[float, float]:
    """The two values at which the profiled cost has risen by the given amount; infinite where a bound comes first.

    Parameters
    ----------
    cost
        (value, start of the other parameters) -> least cost over them, and where it is.
    at, error
        The estimate and its standard error, from which the search starts.
    start
        The other parameters at the estimate.
    rise
        Least cost, unit of its rise, and rise in these units that ends the interval.
    least, most
        Bounds of the search.

    Examples
    --------
    >>> ends = profile_interval(lambda value, other: ((value - 2.0) ** 2, other), 2.0, 0.7, np.zeros(1), (0.0, 1.0, 4.0), -10, 10)
    >>> [round(end, 6) for end in ends]
    [0.0, 4.0]
    """
    base, unit, most_rise = rise
    if not (error > 0 and math.isfinite(error) and unit > 0):
        return at, at
    wanted = math.sqrt(most_rise)

    def root(value: float, guess: Array) -> tuple[float, Array]:
        """Square root of the rise, which is nearly linear in the distance."""
        found, where = cost(value, guess)
        return math.sqrt(max(found - base, 0.0) / unit), where

    def end(side: float, bound: float) -> float:
        inner, inner_rise, guess = 0.0, 0.0, start
        reach = abs(bound - at)
        if reach == 0:
            return side * math.inf
        outer = min(wanted * error, reach)
        for _ in range(MOST_STEPS):  # outwards
            outer_rise, where = root(at + side * outer, guess)
            if outer_rise >= wanted:
                break
            if outer >= reach:
                return side * math.inf
            inner, inner_rise, guess = outer, outer_rise, where
            outer = min(outer * min(max(1.05 * wanted / max(outer_rise, 1e-3 * wanted), 1.1), 3.0), reach)
        else:
            return side * math.inf
        for _ in range(MOST_STEPS):  # inwards, by interpolation kept off the ends
            if outer - inner <= CLOSE * outer:
                break
            share = (wanted - inner_rise) / (outer_rise - inner_rise) if math.isfinite(outer_rise) else 0.5
            middle = inner + min(max(share, 0.02), 0.98) * (outer - inner)
            found, where = root(at + side * middle, guess)
            if abs(found - wanted) < CLOSE**2 * wanted:
                return at + side * middle
            if found >= wanted:
                outer, outer_rise = middle, found
            else:
                inner, inner_rise, guess = middle, found, where
        return at + side * (inner + (wanted - inner_rise) / (outer_rise - inner_rise) * (outer - inner))

    return end(-1.0, least), end(1.0, most)
