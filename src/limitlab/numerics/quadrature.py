"""Quadrature for Gaussian averages on adaptive panels, on fixed panels, and by rules whose nodes move with a flow.

**Adaptive panels** (`integrate`) are composite Gauss-Legendre quadrature with the Gaussian weight, refined where the error estimate is
large. A kink inside a panel limits the accuracy of a rule. For example, the error of Gauss-Hermite on |x| falls only like a power of the
number of nodes. Inside panels whose edges are the kinks the integrand is smooth, and Gauss-Legendre converges geometrically. Kinks that
are not declared are located by bisection: a panel that does not resolve its integrand is halved repeatedly. An undeclared kink therefore
adds a few dozen panels and does not reduce the accuracy (docs/theory/gaussian.md, section 3). `integrate` treats many Gaussian
expectations at once, each with its own mean, standard deviation and panels.

**Fixed panels** (`gaussian_panels`) have Gauss-Legendre nodes and the Gaussian density in the weights. The edges are placed evenly
with every kink as an edge (`panel_rule`), graded towards points of fast variation (`graded_rule`), or row by row for many Gaussians at
once (`between_kinks`).

**Rules for a flow** have nodes and weights that are set at the start, and the flow moves the nodes. Quantiles (`quantile_rule`) follow the
mass of the distribution under the flow. Averages over evenly spaced levels u would be of first order only, because quantile functions are
singular at 0 and 1. Levels u(v) = v - sin(2 pi v) / (2 pi) at evenly spaced v, weighted with u'(v), remove the effect of these ends
(Sidi's substitution). Where the flow stays smooth, evenly spaced nodes weighted with the density (`even_gaussian_rule`) converge faster
than any power.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

# -- adaptive panels ----------------------------------------------------------------------------------------------------

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Integrand = Callable[[Integers, Array], tuple[Array, Array, Array | float]]
"""Function of the flat arrays (index of the expectation, points).

It returns values, their magnitudes and their errors, each of shape (components, points)."""

EPSILON = float(np.finfo(np.float64).eps)
SMALLEST = 1e-290  # an average below this counts as 0, because subnormal numbers limit its accuracy
REACHES = (14.0, 26.0, 38.0)  # ends in standard deviations, where the weight is 1e-43, 1e-148 and the smallest float
PANEL = 2.0  # width of the first panels, in standard deviations
NODES = 24  # per panel
TAIL = 4  # number of last Legendre coefficients that measure the error; several, since one may vanish by chance or symmetry
ROUNDING = 32 * EPSILON  # rounding error of these coefficients
NUDGE = 1e-14  # functions are evaluated at this distance inside the edges, as a share of the panel's width
MOST_ROUNDS = 120
MOST_PANELS, MOST_PER_OWNER = 4_000, 300  # largest number of panels for one expectation, and on average for many


@dataclass(frozen=True)
class Estimate:
    """Expectations with their error estimates.

    `scale` is E|f|, and `middles` and `widths` describe the final panels.
    """

    value: Array
    error: Array
    scale: Array
    middles: Array
    widths: Array


@dataclass(frozen=True)
class Panels:
    """Panels in units of the standard deviation, with the index of the expectation, the ends and the integrals of each.

    `value` and `error` are the integral and its error estimate, `size` is the integral of the magnitudes of the integrand, and
    `inherited` is that of the errors of the integrand.
    """

    owner: Integers
    low: Array
    high: Array
    value: Array
    error: Array
    size: Array
    inherited: Array

    def joined(self, other: Panels, keep: NDArray[np.bool_]) -> Panels:
        """Return the panels at which `keep` is true, followed by all panels of `other`."""
        flat = [np.concatenate([getattr(self, n)[keep], getattr(other, n)]) for n in ("owner", "low", "high")]
        names = ("value", "error", "size", "inherited")
        wide = [np.concatenate([getattr(self, n)[:, keep], getattr(other, n)], axis=1) for n in names]
        return Panels(*flat, *wide)

    def total(self, integrals: Array, owners: int) -> Array:
        """Return the sums over the panels of each expectation."""
        if owners == 1:
            return integrals.sum(axis=1, keepdims=True)
        return np.stack([np.bincount(self.owner, weights=row, minlength=owners) for row in integrals])


def integrate(
    f: Integrand, mean: Array, std: Array, kinks: Sequence[float], tolerance: float, most: int = MOST_PANELS
) -> Estimate:
    """Return E f(mean_i + std_i Z) for every i, with error at most `tolerance` E|f| if `most` panels suffice.

    If they do not suffice, the function does not raise. The error estimate then exceeds the tolerance, and the caller checks it.
    """
    for reach in REACHES:
        panels = _refined(f, mean, std, kinks, tolerance, reach, most)
        value, error, size = (panels.total(part, mean.size) for part in (panels.value, panels.error, panels.size))
        outermost = np.maximum(np.abs(panels.low), np.abs(panels.high)) > reach - PANEL
        tail = panels.total(np.where(outermost, panels.size, 0.0), mean.size)
        if np.all(tail <= EPSILON * size):
            break
    error = error + panels.total(panels.inherited, mean.size) + 4 * EPSILON * size
    error = error + np.where(tail <= EPSILON * size, 0.0, tail)
    return Estimate(value, error, size, (panels.low + panels.high) / 2, panels.high - panels.low)


def _refined(
    f: Integrand, mean: Array, std: Array, kinks: Sequence[float], tolerance: float, reach: float, most: int
) -> Panels:
    """Return panels, halved until every expectation meets its tolerance, no panel can be halved, or the limit is met."""
    panels = _measured(f, mean, std, *_first_panels(mean, std, kinks, reach))
    for _ in range(MOST_ROUNDS):
        allowed = tolerance * panels.total(panels.size, mean.size) + SMALLEST
        wanting = np.any(panels.total(panels.error, mean.size) > allowed, axis=0)
        if not wanting.any():
            break
        count = np.bincount(panels.owner, minlength=mean.size)
        heavy = np.any(panels.error > (allowed / (2 * count))[:, panels.owner], axis=0)
        middle = (panels.low + panels.high) / 2
        split = wanting[panels.owner] & heavy & (panels.low < middle) & (middle < panels.high)
        if not split.any() or panels.owner.size + split.sum() > max(most, MOST_PER_OWNER * mean.size):
            break
        owner, low, high, cut = panels.owner[split], panels.low[split], panels.high[split], middle[split]
        halves = np.tile(owner, 2), np.concatenate([low, cut]), np.concatenate([cut, high])
        panels = panels.joined(_measured(f, mean, std, *halves), ~split)
    return panels


def _first_panels(mean: Array, std: Array, kinks: Sequence[float], reach: float) -> tuple[Integers, Array, Array]:
    """Return panels of equal width with an additional edge at every kink between -`reach` and `reach`."""
    base = np.linspace(-reach, reach, round(2 * reach / PANEL) + 1)
    places = np.clip((np.asarray(kinks, dtype=float) - mean[:, None]) / std[:, None], -reach, reach)
    edges = np.sort(np.concatenate([np.broadcast_to(base, (mean.size, base.size)), places], axis=1), axis=1)
    owner = np.repeat(np.arange(mean.size), edges.shape[1] - 1)
    low, high = edges[:, :-1].ravel(), edges[:, 1:].ravel()
    real = high > low
    return owner[real], low[real], high[real]


def _measured(f: Integrand, mean: Array, std: Array, owner: Integers, low: Array, high: Array) -> Panels:
    """Return the integrals over the panels, each with an error estimate that is the sum of two parts.

    The first part is the tail of the integrand's Legendre series, which falls slowly if the panel contains a kink. This part
    misses a kink between an edge and the node next to it, an interval of relative width `blind`. The second part therefore
    compares f just inside both edges with the polynomial through the nodes. For a single jump or kink anywhere in the panel
    the sum of both is at least the true error (docs/theory/gaussian.md, section 3).
    """
    points, weights, to_tail, to_edges = _rule()
    blind = points[0]
    width = (high - low)[:, None]
    z = low[:, None] + width * points
    x = mean[owner][:, None] + std[owner][:, None] * z
    x[:, NODES:] += np.array([1, -1]) * _nudge(mean[owner], std[owner] * width[:, 0], x)
    values, sizes, errors = f(np.repeat(owner, points.size), x.ravel())
    values, sizes, errors = (np.broadcast_to(part, values.shape).reshape(-1, *z.shape) for part in (values, sizes, errors))
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * width
    inside = (values * density)[..., :NODES]
    tail = np.abs(inside @ to_tail).max(axis=-1) - ROUNDING * np.abs(inside).max(axis=-1)
    surprise = np.abs(values[..., NODES:] - values[..., :NODES] @ to_edges) * density[..., NODES:]
    error = np.maximum(tail, 0.0) + blind * surprise.sum(axis=-1)
    size, inherited = ((part * density)[..., :NODES] @ weights for part in (sizes, errors))
    return Panels(owner, low, high, inside @ weights, error, size, inherited)


def _nudge(mean: Array, width: Array, x: Array) -> Array:
    """Return the distance from a panel's edges at which f is evaluated.

    The distance is as small as rounding allows, so that a jump at an edge is evaluated on the side of the panel.
    """
    rounding = 8 * EPSILON * (np.abs(mean) + np.abs(x).max(axis=1))
    return np.minimum(np.maximum(NUDGE * width, rounding), 1e-3 * width)[:, None]


@lru_cache(maxsize=1)
def _rule() -> tuple[Array, Array, Array, Array]:
    """Return the Gauss-Legendre rule on [0, 1] as matrices that act on values at its nodes.

    The results are the nodes followed by both edges, the weights, the map to the last Legendre coefficients, and the map to the
    values of the interpolating polynomial at the edges.
    """
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    edges = np.array([-1.0, 1.0])
    # The Legendre coefficients of the interpolating polynomial are sums over the Gauss nodes.
    to_series = np.polynomial.legendre.legvander(nodes, NODES - 1) * (np.arange(NODES) + 0.5) * weights[:, None]
    to_edges = to_series @ np.polynomial.legendre.legvander(edges, NODES - 1).T
    return (np.concatenate([nodes, edges]) + 1) / 2, weights / 2, to_series[:, -TAIL:], to_edges


# -- fixed panels -------------------------------------------------------------------------------------------------------

GROWTH = 2.5
"""Ratio of the widths of adjacent panels of a graded rule, away from a point of fast variation."""

GRADED_REACH, GRADED_PANEL = 13.0, 2.0
"""End of a graded rule and width of its widest panels, in standard deviations."""


def gaussian_panels(edges: ArrayLike, order: int = 24) -> tuple[Array, Array]:
    """Return nodes and weights of shape (..., panels * order) on the panels between increasing edges (last axis).

    >>> nodes, weights = gaussian_panels(np.linspace(-12, 12, 13))
    >>> bool(abs(weights @ nodes**4 - 3) < 1e-13)
    True
    """
    ends = np.asarray(edges, dtype=float)
    points, weights = _legendre(order)
    widths = np.diff(ends, axis=-1)[..., None]
    nodes = (ends[..., :-1, None] + widths * points).reshape(*ends.shape[:-1], -1)
    shares = (widths * weights).reshape(nodes.shape)
    return nodes, shares * np.exp(-(nodes**2) / 2) / np.sqrt(2 * np.pi)


def panel_rule(
    kinks: Sequence[float] = (), *, order: int = 24, width: float = 2.0, reach: float = 14.0
) -> tuple[Array, Array]:
    """Return nodes and weights of a rule for averages over a standard Gaussian variable.

    The rule has panels of at most the width `width`, and an edge at every kink. Laws that average many functions with the same kinks
    use it.

    Parameters
    ----------
    kinks
        Points where the functions to be averaged, or their derivatives, jump.
    order
        Nodes per panel.
    width, reach
        Largest width of a panel, and end of the last panel. The first panel begins at minus `reach`.

    Examples
    --------
    >>> nodes, weights = panel_rule(kinks=(0.0,))
    >>> bool(abs(weights @ np.abs(nodes) - np.sqrt(2 / np.pi)) < 1e-15)
    True
    """
    corners = np.unique([-reach, *(kink for kink in kinks if -reach < kink < reach), reach])
    pieces = [np.linspace(a, b, int(np.ceil((b - a) / width)) + 1) for a, b in pairwise(corners)]
    return gaussian_panels(np.unique(np.concatenate(pieces)), order)


def graded_rule(layers: Sequence[tuple[float, float]], order: int = 24) -> tuple[Array, Array]:
    """Return nodes and weights on panels that shrink geometrically towards every (place, width) of fast variation.

    >>> from scipy.special import ndtr
    >>> t, w = graded_rule([(0.3, 1e-4)])
    >>> bool(abs(w @ ndtr((t - 0.3) / 1e-4) - ndtr(-0.3 / np.sqrt(1 + 1e-8))) < 1e-14)
    True
    """
    edges = set(np.arange(-GRADED_REACH, GRADED_REACH + 1, GRADED_PANEL).tolist())
    for place, width in layers:
        if abs(place) < GRADED_REACH:
            edges.add(place)
            step = width
            while 0 < step < GRADED_PANEL:
                edges.update((place - step, place + step))
                step *= GROWTH
    return gaussian_panels(sorted(edge for edge in edges if abs(edge) <= GRADED_REACH), order)


def between_kinks(
    kinks: Sequence[float], mean: Array, spread: float, *, panels: int, order: int, reach: float
) -> tuple[Array, Array]:
    """Return nodes and weights in t for each of several means (rows), with panel edges where mean + spread t is a kink.

    >>> t, w = between_kinks((0.0,), np.array([0.3, -1.0]), 0.5, panels=4, order=16, reach=9.0)
    >>> np.maximum([[0.3], [-1.0]] + 0.5 * t, 0).shape == w.shape
    True
    """
    places = np.clip((np.asarray(kinks, dtype=float) - mean[:, None]) / spread, -reach, reach)
    ends = np.full((mean.size, 1), reach)
    corners = np.sort(np.concatenate([-ends, places, ends], axis=1), axis=1)
    fractions = np.arange(panels) / panels
    inner = (corners[:, :-1, None] + np.diff(corners, axis=1)[..., None] * fractions).reshape(mean.size, -1)
    return gaussian_panels(np.concatenate([inner, ends], axis=1), order)


@lru_cache(maxsize=16)
def _legendre(order: int) -> tuple[Array, Array]:
    """Return Gauss-Legendre nodes and weights on [0, 1]."""
    points, weights = np.polynomial.legendre.leggauss(order)
    return (points + 1) / 2, weights / 2


# -- rules whose nodes a flow moves -------------------------------------------------------------------------------------


class QuantileRule(NamedTuple):
    """Levels u of quantiles, complements 1 - u without cancellation, and weights that add up to 1."""

    levels: Array
    complements: Array
    weights: Array


def quantile_rule(count: int) -> QuantileRule:
    """Return the quantile rule with `count` nodes.

    >>> rule = quantile_rule(40)
    >>> variance = 1.0  # of the exponential distribution, whose quantiles are -log(1 - u)
    >>> bool(abs(rule.weights @ (np.log(rule.complements) + 1) ** 2 - variance) < 1e-3)
    True
    """
    v = (np.arange(count) + 0.5) / count
    levels = v - np.sin(2 * np.pi * v) / (2 * np.pi)
    return QuantileRule(levels, levels[::-1], (1 - np.cos(2 * np.pi * v)) / count)


def gaussian_quantiles(count: int) -> tuple[Array, Array]:
    """Return nodes and weights of the quantile rule for a standard Gaussian.

    >>> nodes, weights = gaussian_quantiles(40)
    >>> bool(abs(weights @ nodes**4 - 3) < 4e-3)
    True
    """
    from scipy.special import ndtri

    levels, complements, weights = quantile_rule(count)
    return np.where(levels < 0.5, ndtri(levels), -ndtri(complements)), weights


def even_gaussian_rule(spacing: float, reach: float = 7.5) -> tuple[Array, Array]:
    """Return evenly spaced nodes for a standard Gaussian, symmetric about 0, with weights that add up to 1.

    >>> x, weights = even_gaussian_rule(0.25)
    >>> round(float(weights @ x**4), 8), round(float(weights @ np.tanh(x) ** 2), 10)
    (3.0, 0.3942944904)
    """
    side = round(reach / spacing)
    x = spacing * np.arange(-side, side + 1)
    weights = np.exp(-(x**2) / 2)
    return np.asarray(x), np.asarray(weights / weights.sum())
