"""Averages over a Gaussian with an error estimate: the rules, and the choice between them.

Smooth functions are averaged by Gauss-Hermite rules of growing order until two agree; others by adaptive panels
(`limitlab.numerics._panels`). The public functions are in `limitlab.numerics.gaussian`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import ConvergenceError
from limitlab.numerics._panels import EPSILON, SMALLEST, Integers, integrate

Array = NDArray[np.float64]
Function = Callable[..., Any]
Kinks = Sequence[float]

HERMITE_ORDERS = (32, 64, 128, 256)


@lru_cache(maxsize=32)
def hermite_rule(order: int) -> tuple[Array, Array]:
    """Gauss-Hermite nodes and weights for the standard Gaussian; exact for polynomials of degree below 2 `order`.

    >>> nodes, weights = hermite_rule(3)
    >>> float(round(weights @ nodes**4, 12))
    3.0
    """
    from scipy.special import roots_hermitenorm

    nodes, weights = roots_hermitenorm(order)
    weights = weights / weights.sum()
    nodes.setflags(write=False)
    weights.setflags(write=False)
    return nodes, weights


def averages(
    f: Callable[[Array], Array], mean: Array, std: Array, kinks: Kinks | None, tolerance: float
) -> tuple[Array, Array, Array]:
    """Expectations, their error estimates and E|f|, each of shape (components, expectations)."""
    if kinks is not None and len(kinks) == 0:
        result = by_hermite(lambda z: f((mean[:, None] + std[:, None] * z).ravel()), HERMITE_ORDERS, tolerance)
        if result is not None:
            return result

    def integrand(_: Integers, x: Array) -> tuple[Array, Array, float]:
        values = f(x)
        return values, np.abs(values), 0.0

    certain = std == 0
    found = integrate(integrand, mean, np.where(certain, 1.0, std), kinks or (), tolerance)
    if not certain.any():
        return found.value, found.error, found.scale
    exact, size, _ = integrand(np.arange(mean.size), mean)
    return np.where(certain, exact, found.value), np.where(certain, 0.0, found.error), np.where(certain, size, found.scale)


def by_hermite(f: Callable[[Array], Array], orders: Sequence[int], tolerance: float) -> tuple[Array, Array, Array] | None:
    """Gauss-Hermite rules of growing order until two agree; None when they do not."""
    previous: Array | None = None
    for order in orders:
        nodes, weights = hermite_rule(order)
        values = f(nodes)
        values = values.reshape(values.shape[0], -1, order)
        value, scale = values @ weights, np.abs(values) @ weights
        if previous is not None:
            error = np.abs(value - previous) + 4 * EPSILON * scale
            if np.all(error <= tolerance * scale):
                return value, error, scale
        previous = value
    return None


def declared_kinks(f: Function, kinks: Kinks | None) -> Kinks | None:
    """The kinks that are given, or that the function carries as an attribute; None when nothing is known."""
    declared = getattr(f, "kinks", None) if kinks is None else kinks
    if declared is None:
        return None
    places = tuple(float(kink) for kink in declared)
    if not all(np.isfinite(place) for place in places):
        raise ValueError(f"kinks = {places!r} are not allowed: must be finite numbers")
    return places


def values_at(f: Function, *points: Array) -> Array:
    """f at flat points, at least one value per point, all finite."""
    values = np.asarray(f(*points), dtype=float)
    if values.ndim == 0:
        values = np.full(points[0].size, values)
    if values.shape[-1] != points[0].size:
        raise ValueError(
            f"the function gave shape {values.shape} for {points[0].size} points: the points must be its last axis"
        )
    if not np.all(np.isfinite(values)):
        bad = np.argwhere(~np.isfinite(values))[0][-1]
        place = ", ".join(f"{float(x[bad])!r}" for x in points)
        raise ValueError(f"the function is not finite at {place}: a Gaussian expectation needs finite values everywhere")
    return values


def checked(value: Array, error: Array, scale: Array, tolerance: float, with_error: bool) -> Array | tuple[Array, Array]:
    """The value (and its error) if the tolerance is met, else a ConvergenceError that carries both."""
    if np.any(error > (tolerance + 8 * EPSILON) * scale + 2 * SMALLEST):
        raise ConvergenceError(
            f"Gaussian expectation: error estimate {float(np.max(error)):.2g} is above {tolerance:.2g} x E|f|; "
            "declare the kinks, or accept a larger tolerance",
            estimate=value[()],
            accuracy=float(np.max(error)),
        )
    return (value[()], error[()]) if with_error else value[()]
