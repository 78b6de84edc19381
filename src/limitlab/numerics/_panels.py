"""Gaussian quadrature on panels: composite Gauss-Legendre with the Gaussian weight, refined where it has to be.

A kink spoils every rule that does not know of it: the error of Gauss-Hermite on |x| falls only like a power of the number
of nodes. Inside panels whose edges are the kinks the integrand is smooth, and Gauss-Legendre converges geometrically. Kinks
that are not declared are found by bisection: a panel that does not resolve its integrand is halved, again and again, so
that a kink at an unknown place costs a few dozen panels and no accuracy (docs/theory/gaussian.md, section 3).

`integrate` does this for many Gaussian expectations at once, each with its own mean, standard deviation and panels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Integrand = Callable[[Integers, Array], tuple[Array, Array, Array | float]]
"""(which expectation, points), both flat -> values, their magnitudes and their own errors, of shape (components, points)."""

EPSILON = float(np.finfo(np.float64).eps)
SMALLEST = 1e-290  # an average below this is 0: its digits are those of subnormal numbers
REACHES = (14.0, 26.0, 38.0)  # standard deviations: a weight of 1e-43, 1e-148, and the end of the floating-point numbers
PANEL = 2.0  # width of the first panels, in standard deviations
NODES = 24  # per panel
TAIL = 4  # Legendre coefficients that show whether a panel is resolved; several, as one may vanish by chance or symmetry
ROUNDING = 32 * EPSILON  # what of them is noise
NUDGE = 1e-14  # of a panel's width: how far inside its edges a function is looked at there
MOST_ROUNDS = 120
MOST_PANELS, MOST_PER_OWNER = 4_000, 300  # for one expectation, and on average for many


@dataclass(frozen=True)
class Estimate:
    """Expectations with their error estimates; `scale` is E|f|, `widths` and `middles` describe the final panels."""

    value: Array
    error: Array
    scale: Array
    middles: Array
    widths: Array


@dataclass(frozen=True)
class Panels:
    """Panels in units of the standard deviation: which expectation each belongs to, its ends, and its integrals."""

    owner: Integers
    low: Array
    high: Array
    value: Array
    error: Array
    size: Array
    inherited: Array

    def joined(self, other: Panels, keep: NDArray[np.bool_]) -> Panels:
        """These panels where `keep` says so, and the other ones."""
        flat = [np.concatenate([getattr(self, n)[keep], getattr(other, n)]) for n in ("owner", "low", "high")]
        names = ("value", "error", "size", "inherited")
        wide = [np.concatenate([getattr(self, n)[:, keep], getattr(other, n)], axis=1) for n in names]
        return Panels(*flat, *wide)

    def total(self, integrals: Array, owners: int) -> Array:
        """Sums over the panels of each expectation."""
        if owners == 1:
            return integrals.sum(axis=1, keepdims=True)
        return np.stack([np.bincount(self.owner, weights=row, minlength=owners) for row in integrals])


def integrate(
    f: Integrand, mean: Array, std: Array, kinks: Sequence[float], tolerance: float, most: int = MOST_PANELS
) -> Estimate:
    """E f(mean_i + std_i Z) for every i, with error at most `tolerance` E|f| where that can be had with `most` panels.

    Does not raise when it cannot: the error estimate says so, and the caller decides.
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
    """Halve the panels that matter until every expectation has its accuracy, or halving no longer helps."""
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
    """Panels of equal width plus an edge at every kink that is within reach."""
    base = np.linspace(-reach, reach, round(2 * reach / PANEL) + 1)
    places = np.clip((np.asarray(kinks, dtype=float) - mean[:, None]) / std[:, None], -reach, reach)
    edges = np.sort(np.concatenate([np.broadcast_to(base, (mean.size, base.size)), places], axis=1), axis=1)
    owner = np.repeat(np.arange(mean.size), edges.shape[1] - 1)
    low, high = edges[:, :-1].ravel(), edges[:, 1:].ravel()
    real = high > low
    return owner[real], low[real], high[real]


def _measured(f: Integrand, mean: Array, std: Array, owner: Integers, low: Array, high: Array) -> Panels:
    """The integrals over given panels, each with an error estimate made of two checks.

    The first is the tail of the integrand's Legendre series, which falls slowly as soon as the panel contains a kink. It is
    blind to a kink between an edge and the node next to it, a part of relative width `blind`, so the second compares f just
    inside both edges with the polynomial through the nodes. For a single jump or kink anywhere in the panel the sum of both
    is at least the true error (docs/theory/gaussian.md, section 3).
    """
    points, weights, to_tail, to_edges = _rule()
    blind = points[0]
    width = (high - low)[:, None]
    z = low[:, None] + width * points
    x = mean[owner][:, None] + std[owner][:, None] * z
    x[:, NODES:] += np.array([1, -1]) * _nudge(mean[owner], std[owner] * width[:, 0], x)
    values, sizes, own = f(np.repeat(owner, points.size), x.ravel())
    values, sizes, own = (np.broadcast_to(part, values.shape).reshape(-1, *z.shape) for part in (values, sizes, own))
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * width
    inside = (values * density)[..., :NODES]
    tail = np.abs(inside @ to_tail).max(axis=-1) - ROUNDING * np.abs(inside).max(axis=-1)
    surprise = np.abs(values[..., NODES:] - values[..., :NODES] @ to_edges) * density[..., NODES:]
    error = np.maximum(tail, 0.0) + blind * surprise.sum(axis=-1)
    size, inherited = ((part * density)[..., :NODES] @ weights for part in (sizes, own))
    return Panels(owner, low, high, inside @ weights, error, size, inherited)


def _nudge(mean: Array, width: Array, x: Array) -> Array:
    """How far inside its edges to look: as little as rounding allows, so that a jump at an edge is seen from its own side."""
    rounding = 8 * EPSILON * (np.abs(mean) + np.abs(x).max(axis=1))
    return np.minimum(np.maximum(NUDGE * width, rounding), 1e-3 * width)[:, None]


@lru_cache(maxsize=1)
def _rule() -> tuple[Array, Array, Array, Array]:
    """The Gauss-Legendre rule on [0, 1] as matrices acting on values at its nodes.

    Returns the nodes followed by both edges; the weights; the map to the last Legendre coefficients; the map to the values of
    the interpolating polynomial at the edges.
    """
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    edges = np.array([-1.0, 1.0])
    # The Legendre coefficients of the interpolating polynomial are sums over the Gauss nodes.
    to_series = np.polynomial.legendre.legvander(nodes, NODES - 1) * (np.arange(NODES) + 0.5) * weights[:, None]
    to_edges = to_series @ np.polynomial.legendre.legvander(edges, NODES - 1).T
    return (np.concatenate([nodes, edges]) + 1) / 2, weights / 2, to_series[:, -TAIL:], to_edges
