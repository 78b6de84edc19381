"""The radial mean-field equation of two centred Gaussians, with its table of h and its characteristics.

On inputs of length chi, the average output of neurons whose weights have radius r in R^d is h(r chi), the mean of the activation over
directions. Characteristics transport the density of radii, so every quantity is an average over chi (docs/theory/mean_field.md, eqs. 5-9).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.numerics.quadrature import quantile_rule

Array = NDArray[np.float64]

CELLS = 20_000  # cells of the table of h, whose error is then below 1e-11 for d > 8
TAIL = 1e-17  # probability that is cut off at either end of the distribution of chi


class ShellTable(NamedTuple):
    """Cubic polynomials for h on equal cells in x = s / (s + scale), which maps every s >= 0 into [0, 1]."""

    values: Array
    slopes: Array  # dh/dx
    scale: float


class Nodes(NamedTuple):
    """Points and weights of a quadrature rule; the weights add up to 1."""

    points: Array
    weights: Array


def shell_mean(s: ArrayLike, dimension: int, knots: tuple[float, float], levels: tuple[float, float]) -> tuple[Array, Array]:
    """Return the mean h(s) = E a(s c) of eq. (6) and its derivative.

    Here `a` is the piecewise linear activation and c a coordinate of a uniform unit vector in R^d.

    >>> h, slope = shell_mean([0.0, 4.0], 40, (0.5, 1.5), (-2.5, 7.5))
    >>> h.round(6).tolist(), slope.round(6).tolist()
    ([-2.5, -1.737228], [0.0, 0.433853])
    """
    from scipy.special import betainc, gammaln

    points, d = np.asarray(s, dtype=float), dimension
    slope = (levels[1] - levels[0]) / (knots[1] - knots[0])
    peak = math.exp(gammaln(d / 2) - gammaln((d - 1) / 2)) / math.sqrt(math.pi) / (d - 1)
    mean, rate = np.full(points.shape, levels[0]), np.zeros(points.shape)
    for sign, knot in ((1.0, knots[0]), (-1.0, knots[1])):
        room = np.clip(
            1 - (knot / np.maximum(points, knot)) ** 2, 0.0, 1.0
        )  # 1 - a^2, zero where the shell stays below the knot
        beyond = betainc((d - 1) / 2, 0.5, room) / 2  # P(s c > knot)
        height = peak * room ** ((d - 1) / 2)  # E c 1{s c > knot}
        mean = mean + sign * slope * (points * height - knot * beyond)
        rate = rate + sign * slope * height
    return np.asarray(mean), np.asarray(rate)


@lru_cache(maxsize=16)
def shell_table(dimension: int, knots: tuple[float, float], levels: tuple[float, float], cells: int = CELLS) -> ShellTable:
    """Return the table of h for compiled loops. Its value at x = 1 (s = inf) is the mean of the two levels.

    >>> table = shell_table(40, (0.5, 1.5), (-2.5, 7.5))
    >>> bool(abs(look_up(table.values, table.slopes, table.scale, 4.0)[0] - shell_mean(4.0, 40, (0.5, 1.5), (-2.5, 7.5))[0]) < 1e-11)
    True
    """
    from scipy.special import gammaln

    d, scale = dimension, knots[1] * math.sqrt(dimension)
    x = np.linspace(0, 1, cells + 1)[:-1]
    s = scale * x / (1 - x)
    values, rates = shell_mean(s, d, knots, levels)
    slope = (levels[1] - levels[0]) / (knots[1] - knots[0])
    peak = math.exp(gammaln(d / 2) - gammaln((d - 1) / 2)) / math.sqrt(math.pi) / 2
    last = slope * peak * (knots[1] ** 2 - knots[0] ** 2) / scale  # h' s^2 / scale as s -> inf
    return ShellTable(np.append(values, sum(levels) / 2), np.append(rates * (s + scale) ** 2 / scale, last), scale)


@numba.njit(cache=True, nogil=True, inline="always")
def look_up(values: Any, slopes: Any, scale: float, s: float) -> tuple[float, float]:
    """Return h(s) and h'(s) from a table by cubic Hermite interpolation and its exact derivative."""
    whole = s + scale
    place = s / whole * (values.size - 1)
    cell = min(int(place), values.size - 2) if place > 0 else 0  # so that a NaN gives a NaN, not an index out of bounds
    u = place - cell
    step = 1.0 / (values.size - 1)
    low, high, rise = values[cell], values[cell + 1], slopes[cell] * step
    a, b = 3 * (high - low) - 2 * rise - slopes[cell + 1] * step, 2 * (low - high) + rise + slopes[cell + 1] * step
    return low + u * (rise + u * (a + u * b)), (rise + u * (2 * a + 3 * u * b)) / step * scale / (whole * whole)


def chi_nodes(dimension: int, count: int) -> Nodes:
    """Return Gauss-Legendre nodes for the length of a standard Gaussian vector.

    >>> nodes = chi_nodes(40, 60)
    >>> round(float(nodes.weights @ nodes.points**2), 10)
    40.0
    """
    from scipy.stats import chi

    low, high = chi.ppf(TAIL, dimension), chi.isf(TAIL, dimension)
    x, w = np.polynomial.legendre.leggauss(count)
    points = low + (high - low) * (x + 1) / 2
    weights = w * chi.pdf(points, dimension)
    return Nodes(points, weights / weights.sum())


def radius_nodes(dimension: int, initial_scale: float, count: int) -> Nodes:
    """Return quantiles of the radius of w ~ N(0, (s0^2 / d) I) and their weights.

    The flow moves the points, and their weights stay constant.

    >>> nodes = radius_nodes(40, 0.8, 200)
    >>> round(float(nodes.weights @ nodes.points**2), 7)
    0.64
    """
    from scipy.stats import chi

    levels, complements, weights = quantile_rule(count)
    points = np.where(levels < 0.5, chi.ppf(levels, dimension), chi.isf(complements, dimension))
    return Nodes(points * initial_scale / math.sqrt(dimension), weights)


def quantile_nodes(dimension: int, initial_scale: float, count: int) -> Nodes:
    """Return the quantiles of the radius at the levels (i + 1/2) / count with equal weights, a rule of about first order.

    >>> quantile_nodes(40, 0.8, 3).points.round(4).tolist()
    [0.7086, 0.7933, 0.8813]
    """
    from scipy.stats import chi

    points = chi.ppf((np.arange(count) + 0.5) / count, dimension) * initial_scale / math.sqrt(dimension)
    return Nodes(points, np.full(count, 1 / count))


@numba.njit(cache=True, nogil=True)
def shell_outputs(r: Any, weights: Any, chi: Any, scale: float, values: Any, slopes: Any, length: float) -> Any:
    """Return H_y(chi), the network's output on the shells of one class as an average over radii, eq. (7)."""
    out = np.zeros(chi.size)
    for k in range(chi.size):
        for j in range(r.size):
            out[k] += weights[j] * look_up(values, slopes, length, scale * r[j] * chi[k])[0]
    return out


@numba.njit(cache=True, nogil=True)
def radial_velocity(
    r: Any, weights: Any, chi: Any, chi_weights: Any, separation: float, values: Any, slopes: Any, length: float
) -> Any:
    """Return dr/dt for every characteristic, eq. (9)."""
    out, rate = np.zeros(r.size), np.empty(r.size)
    for label in (-1.0, 1.0):
        scale = 1 + label * separation
        for k in range(chi.size):
            mean = 0.0
            for j in range(r.size):
                value, slope = look_up(values, slopes, length, scale * r[j] * chi[k])
                mean += weights[j] * value
                rate[j] = slope
            pull = chi_weights[k] * (mean - label) * scale * chi[k]
            for j in range(r.size):
                out[j] -= pull * rate[j]
    return out
