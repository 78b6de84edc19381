"""Solver of Silverstein's equation psi(u) = z, whose solution determines the spectrum of a large sample covariance matrix.

Setting.   S = X^T X / n has rows x_i = Sigma^(1/2) z_i. The population covariance Sigma has distinct eigenvalues s_k > 0
           of multiplicity c_k n. The companion transform v(z) belongs to the n x n matrix X X^T / n. Write v = -1/u. Then

               z = psi(u) = u + sum_k c_k s_k u / (u - s_k),     Im u > 0 for Im z > 0                                   (8)

           (docs/theory/spectra.md). In terms of the effective ridge, u = -kappa.

Edges.     psi'(u) = 1 - f(u) with f(u) = sum c_k s_k^2 / (u - s_k)^2. The support is the complement of the image of
           {u real: f(u) < 1} under psi. Its edges are psi at the roots of f = 1. Since f is convex between two poles, there
           are no roots or two roots between them. There is one root below all poles and one above.

Inverse.   For real u1 and height y >= 0 exactly one u2 >= 0 has Im psi(u1 + i u2) = y (u2 = 0 if y = 0 and f(u1) <= 1), and
           Re psi increases along this curve from -inf to inf. The u of every z of the closed upper half plane is therefore the
           solution of two nested monotone equations. They need no starting guess, no choice of a branch, and no continuation
           in Im z.

           - Inner equation for u2. With q = u2^2 it is Phi(q) = sum c_k s_k^2 / ((u1 - s_k)^2 + q) + y q^(-1/2) = 1. Phi is a
             Stieltjes function, hence 1/Phi is concave, and Newton's method on 1/Phi increases to the root from its left.
           - Outer equation for u1. It is solved by Newton's method in a bracket, with d Re psi / d u1 = 1 / Re(1/psi'(u)). The
             bracket is |x - sum c_k s_k - u1| <= sqrt(sum c_k s_k^2), by Cauchy-Schwarz, since f <= 1 on the curve.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import ConvergenceError

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

EPSILON = float(np.finfo(np.float64).eps)
MOST_STEPS = 200
POLISHING_STEPS = 8
CHUNK = 1_000_000
"""Largest number of entries of an array over points and eigenvalues."""
ACCURACY = 1e-12
"""Largest residual |psi(u) - z| that is accepted, relative to |z| and the mean eigenvalue."""


class Population(NamedTuple):
    """Distinct positive population eigenvalues s in increasing order, their number per sample c, and 1 - sum(c)."""

    s: Array
    c: Array
    deficit: float

    @property
    def trace(self) -> float:
        """sum c_k s_k."""
        return float(self.c @ self.s)

    @property
    def energy(self) -> float:
        """sum c_k s_k^2."""
        return float(self.c @ self.s**2)


def image(u: NDArray[Any], population: Population) -> NDArray[Any]:
    """Return psi(u) of (8), for real or complex arrays u.

    >>> population = Population(np.array([1.0]), np.array([0.25]), 0.75)
    >>> image(np.array([0.5, 1.5]), population)  # the edges of the Marchenko-Pastur law of ratio 1/4
    array([0.25, 2.25])
    """
    s, c, deficit = population
    gap = u[..., None] - s
    if deficit >= -1:  # exact for small u, where the terms of the other form cancel
        return np.asarray(u * (deficit + u * np.sum(c / gap, axis=-1)))
    return np.asarray(u * (1 + np.sum(c * s / gap, axis=-1)))


def total(term: Callable[[NDArray[Any]], NDArray[Any]], u: NDArray[Any], population: Population) -> NDArray[Any]:
    """Return sum_k term(u)_k for an array u of any shape, computed in blocks that bound the memory.

    `term` is called with an array u that has an additional last axis for k.

    >>> population = Population(np.array([1.0, 2.0]), np.array([0.25, 0.25]), 0.5)
    >>> total(lambda u: population.c / (u - population.s), np.array([3.0]), population)
    array([0.375])
    """
    count, flat = max(1, CHUNK // len(population.s)), np.ravel(u)
    parts = [np.sum(term(flat[i : i + count, None]), axis=-1) for i in range(0, flat.size, count)]
    return np.concatenate(parts).reshape(np.shape(u)) if parts else np.zeros(np.shape(u))


def slope(u: NDArray[Any], population: Population) -> NDArray[Any]:
    """Return the derivative of psi of (8) at u."""
    s, c, _ = population
    return np.asarray(1 - np.sum(c * (s / (u[..., None] - s)) ** 2, axis=-1))


def critical_points(population: Population) -> Array:
    """Return all real roots of f = 1 in increasing order.

    psi maps the roots to the edges, and consecutive pairs of roots to the ends of the bulks.

    >>> critical_points(Population(np.array([1.0]), np.array([0.25]), 0.75))
    array([0.5, 1.5])
    """
    s, c, deficit = population
    # f >= 1 within the distance `near_pole` of a pole, and f <= 1 if all poles are further than `reach`
    reach, near_pole = np.sqrt(population.energy), s * np.sqrt(c)
    low = 0.0 if deficit == 0 else s[0] - _root(lambda d: _f_below(s[0] - d, population), near_pole[0], reach)
    high = s[-1] + _root(lambda d: 1 - _f(s[-1] + d, population), near_pole[-1], reach)
    inner = [
        point
        for k in _candidates(s, near_pole)
        for point in _gap(s[k] + near_pole[k], s[k + 1] - near_pole[k + 1], population)
    ]
    return np.array([low, *inner, high])


def _f(u: float, population: Population) -> float:
    return float(np.sum(population.c * (population.s / (u - population.s)) ** 2))


def _f_below(u: float, population: Population) -> float:
    """Return 1 - f below the smallest pole, without cancellation near u = 0, where f = sum(c)."""
    s, c, deficit = population
    return float(deficit - u * np.sum(c * (2 * s - u) / (u - s) ** 2))


def _root(increasing: Callable[[float], float], low: float, high: float) -> float:
    """Return the root of an increasing function; the bracket is widened because the root may be at its end up to rounding."""
    from scipy.optimize import brentq

    low, high = low * (1 - 1e-12), high * (1 + 1e-12)
    return float(brentq(increasing, low, high, xtol=EPSILON * low, rtol=4 * EPSILON, maxiter=500))


def _candidates(s: Array, near_pole: Array) -> list[int]:
    """Return the intervals between poles in which the two nearest terms of f allow f < 1.

    The condition is a^(2/3) + b^(2/3) < length^(2/3), where a and b are the entries of `near_pole` at the two ends of the interval.
    """
    room = np.diff(s) ** (2 / 3) - near_pole[:-1] ** (2 / 3) - near_pole[1:] ** (2 / 3)
    return [int(k) for k in np.flatnonzero(room > 0)]


def _gap(low: float, high: float, population: Population) -> list[float]:
    """Return the two roots of f = 1 in an interval between two poles, or no root if f stays above 1.

    f is convex in the interval and at least 1 at both ends.
    """
    from scipy.optimize import brentq

    s, c, _ = population

    def steepness(u: float) -> float:
        return float(np.sum(c * s**2 / (s - u) ** 3))

    if steepness(low) >= 0 or steepness(high) <= 0:
        return []
    bottom = float(brentq(steepness, low, high, rtol=4 * EPSILON))
    if _f(bottom, population) >= 1:
        return []
    width = high - low
    left = _root_or_end(lambda d: 1 - _f(bottom - d, population), bottom - low, width)
    right = _root_or_end(lambda d: 1 - _f(bottom + d, population), high - bottom, width)
    return [bottom - left, bottom + right]


def _root_or_end(decreasing: Callable[[float], float], end: float, width: float) -> float:
    """Return the root of a decreasing function on [0, end], or `end` if the function is not negative there due to rounding."""
    from scipy.optimize import brentq

    return end if decreasing(end) >= 0 else float(brentq(decreasing, 0.0, end, xtol=EPSILON * width, rtol=4 * EPSILON))


def preimage(z: Complex, population: Population, critical: Array) -> Complex:
    """Return the u of the closed upper half plane with psi(u) = z, for a flat array of z with Im z >= 0.

    For real z inside the support the result is the limit from above. For real z outside the support u is real.

    >>> population = Population(np.array([1.0]), np.array([0.25]), 0.75)
    >>> u = preimage(np.array([1.0 + 0j, 4.0 + 0j]), population, critical_points(population))
    >>> bool(np.allclose(image(u, population), [1, 4])), (u.imag > 0).tolist()
    (True, [True, False])
    """
    count = max(1, CHUNK // len(population.s))
    parts = [_preimage(z[i : i + count], population, critical) for i in range(0, len(z), count)]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=complex)


def _preimage(z: Complex, population: Population, critical: Array) -> Complex:
    x, height = z.real, z.imag
    u = _polished(_nested(x, height, population, critical), z, population)
    residual = np.abs(image(u, population) - z) / (np.abs(z) + population.trace)
    if not np.all(residual <= ACCURACY):
        worst = int(np.argmax(np.where(np.isnan(residual), np.inf, residual)))
        raise ConvergenceError(
            f"Silverstein's equation at z = {z[worst]} is solved to a relative residual of {residual[worst]:.1e} only",
            estimate=u,
            accuracy=float(residual[worst]),
        )
    return u


def _nested(x: Array, height: Array, population: Population, critical: Array) -> Complex:
    """Return u at the root u1 of Re psi(u1 + i u2(u1)) = x.

    The method is Newton's, with bisection where a step leaves the bracket or does not halve the previous step.
    """
    low, high, u1 = _brackets(x, height, population, critical)
    u = u1 + 1j * _heights(u1, height, population)
    last, previous = high - low, high - low
    active = np.ones(x.shape, dtype=bool)
    for _ in range(MOST_STEPS):
        here = u[active]
        miss = image(here, population).real - x[active]
        low[active] = np.where(miss < 0, here.real, low[active])
        high[active] = np.where(miss > 0, here.real, high[active])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # psi' = 0 at an edge, where bisection is used
            step = -miss * (1 / slope(here, population)).real
        trial = here.real + step
        bisect = ~((trial > low[active]) & (trial < high[active]) & (np.abs(step) <= 0.5 * np.abs(previous[active])))
        middle = low[active] + (high[active] - low[active]) / 2
        trial = np.where(bisect, middle, trial)
        previous[active], last[active] = last[active], trial - here.real
        done = (miss == 0) | (np.abs(trial - here.real) <= 2 * EPSILON * np.abs(trial))
        index = np.flatnonzero(active)[~done]
        if not index.size:
            return u
        u[index] = trial[~done] + 1j * _heights(trial[~done], height[index], population)
        active = np.zeros(x.shape, dtype=bool)
        active[index] = True
    return u  # `_preimage` checks the residual


def _brackets(x: Array, height: Array, population: Population, critical: Array) -> tuple[Array, Array, Array]:
    """Return the ends of an interval that contains u1, and a first trial point in the interval."""
    centre, reach = x - population.trace, np.sqrt(population.energy) * (1 + 1e-9)
    edges = image(critical, population)
    room = np.searchsorted(edges, x, side="right")  # odd: inside a bulk
    ends = np.concatenate([[-np.inf], critical, [np.inf]])
    on_axis = height == 0
    low = np.where(on_axis, np.maximum(ends[room], centre - reach), centre - reach)
    high = np.where(on_axis, np.minimum(ends[room + 1], centre + reach), centre + reach)
    guess = np.where((x > edges[0]) & (x < edges[-1]), np.interp(x, edges, critical), centre)
    return low, high, np.clip(guess, low, high)


def _heights(u1: Array, height: Array, population: Population) -> Array:
    """Return the u2 >= 0 with Im psi(u1 + i u2) = height, by Newton's method on 1/Phi, which increases to the root."""
    weight, distance = population.c * population.s**2, (u1[:, None] - population.s) ** 2
    q = np.maximum(np.max(weight - distance, axis=1), height**2)  # Phi >= 1 here
    with np.errstate(divide="ignore", invalid="ignore"):
        outside = (q <= 0) & (_excess(u1, np.zeros(u1.shape), distance, population) <= 0)
    q = np.maximum(q, 0.0)
    active = np.flatnonzero(~outside)
    for _ in range(MOST_STEPS):
        if not active.size:
            break
        here, y = q[active], height[active]
        near = distance[active] + here[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            lift = np.where(y > 0, y / np.sqrt(here), 0.0)
            steepness = np.sum(weight / near**2, axis=1) + np.where(y > 0, lift / (2 * here), 0.0)
        excess = _excess(u1[active], here, distance[active], population) + lift
        step = (1 + excess) * excess / steepness
        q[active] = here + np.maximum(step, 0.0)
        active = active[step > 2 * EPSILON * here]
    return np.sqrt(np.where(outside, 0.0, q))


def _excess(u1: Array, q: Array, distance: Array, population: Population) -> Array:
    """Return sum c_k s_k^2 / ((u1 - s_k)^2 + q) - 1, without cancellation for small u1 and q, where the sum is sum(c)."""
    s, c, deficit = population
    near = distance + q[:, None]
    if deficit >= -1:
        return np.asarray(np.sum(c * (u1[:, None] * (2 * s - u1[:, None]) - q[:, None]) / near, axis=1) - deficit)
    return np.asarray(np.sum(c * s**2 / near, axis=1) - 1)


def _polished(u: Complex, z: Complex, population: Population) -> Complex:
    """Return u after a few complex Newton steps, used where they reduce the residual, so that tiny u are accurate."""
    miss = image(u, population) - z
    for _ in range(POLISHING_STEPS):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            trial = u - miss / slope(u, population)
            new = image(trial, population) - z
        better = (np.abs(new) < np.abs(miss)) & ((trial.imag > 0) == (u.imag > 0)) & (trial.imag >= 0)
        if not better.any():
            break
        u, miss = np.where(better, trial, u), np.where(better, new, miss)
    return u
