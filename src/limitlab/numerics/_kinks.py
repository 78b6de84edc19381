"""Where is a function not smooth? Its kinks and jumps, for callables of which nothing is known."""

from __future__ import annotations

import numpy as np

from limitlab.numerics._panels import EPSILON, Integers, integrate
from limitlab.numerics.averages import Array, Function, values_at

NARROW = 1e-3  # panels that had to become this narrow surround a kink
PROBES = ((0.1234567, 3.0), (-0.3141593, 3.3))  # mean, std: a kink may hide at a panel edge of one Gaussian, not of both
SAME = 1e-12  # two branches closer than this, relative to the function there, cannot be told apart
DEGREE = 5


def find_kinks(f: Function) -> tuple[float, ...]:
    """Points where f or its derivative jumps, in increasing order.

    The panels of an average of f close in on them; then each is located by bisection between the smooth branches to its left
    and to its right, and given as the simplest decimal number at which the two cannot be told apart. Kinks beyond |x| = 20
    or so, where no average sees them, are not found; jumps of the second derivative sometimes are.

    Parameters
    ----------
    f
        Function of a flat array of points that returns one value per point.

    Examples
    --------
    >>> find_kinks(lambda x: np.maximum(x, 0) + np.sign(x - 0.7))
    (0.0, 0.7)
    >>> find_kinks(np.tanh)
    ()
    """

    def integrand(_: Integers, x: Array) -> tuple[Array, Array, float]:
        values = values_at(f, x)[None]
        return values, np.abs(values), 0.0

    places: list[float] = []
    for mean, std in PROBES:
        found = integrate(integrand, np.array([mean]), np.array([std]), (), 1e-12)
        narrow = found.widths < NARROW
        order = np.argsort(found.middles[narrow])
        middles, widths = found.middles[narrow][order], found.widths[narrow][order]
        low, high = (mean + std * (middles + side * widths / 2) for side in (-1, 1))
        starts = np.flatnonzero(low[1:] > high[:-1] + NARROW) + 1
        groups = zip(np.split(low, starts), np.split(high, starts), strict=True)
        new = [_located(f, *_narrowest(a, b)) for a, b in groups if a.size]
        places += [place for place in new if all(abs(place - old) > NARROW for old in places)]
    return tuple(sorted(places))


def _narrowest(low: Array, high: Array) -> tuple[float, float]:
    """An interval around the narrowest of adjacent panels, with its neighbours in case the kink is on its edge."""
    i = int(np.argmin(high - low))
    return float(low[max(i - 1, 0)]), float(high[min(i + 1, low.size - 1)])


def _located(f: Function, low: float, high: float) -> float:
    """The place in an interval where f changes from its left branch to its right one."""
    reach = max(10 * (high - low), 1e-4)
    left, right = _branch(f, low - reach, low), _branch(f, high, high + reach)
    a, b = low, high
    while True:
        middle = (a + b) / 2
        if not a < middle < b:
            break
        value = values_at(f, np.array([middle]))[0]
        a, b = (middle, b) if abs(value - left(middle)) <= abs(value - right(middle)) else (a, middle)
    alike = SAME * float(np.max(np.abs(values_at(f, np.array([low, high])))))
    for digits in range(17):
        simple = round(b, digits) + 0.0
        close = abs(simple - b) <= 4 * EPSILON * abs(b)
        if close or (low <= simple <= high and abs(left(simple) - right(simple)) <= alike):
            return simple
    return b


def _branch(f: Function, low: float, high: float) -> np.polynomial.Chebyshev:
    """The polynomial through f at Chebyshev points of an interval on which f is smooth."""
    return np.polynomial.Chebyshev.interpolate(lambda x: values_at(f, x), DEGREE, domain=[low, high])
