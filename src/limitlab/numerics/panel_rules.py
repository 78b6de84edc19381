"""Fixed rules for Gaussian averages: Gauss-Legendre nodes on panels, with the Gaussian density in the weights.

One construction, `gaussian_panels`, and three ways to place the edges: evenly with every kink as an edge, graded towards places of
fast variation, and row by row for many Gaussians at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

GROWTH = 2.5
"""Growth of the panels of a graded rule away from a place where something varies fast."""

REACH, PANEL = 13.0, 2.0
"""End of a graded rule, in standard deviations, and width of its widest panels."""


def gaussian_panels(edges: ArrayLike, order: int = 24) -> tuple[Array, Array]:
    """Nodes and weights on the panels between increasing edges (last axis): shape (..., panels * order).

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
    """A rule for laws that average many functions with the same kinks: panels of at most the given width, every kink an edge.

    Parameters
    ----------
    kinks
        Points where the functions to be averaged, or their derivatives, jump.
    order
        Nodes per panel.
    width, reach
        Width of the panels and end of the last one.

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
    """A rule whose panels shrink geometrically towards every (place, width) of fast variation.

    >>> from scipy.special import ndtr
    >>> t, w = graded_rule([(0.3, 1e-4)])
    >>> bool(abs(w @ ndtr((t - 0.3) / 1e-4) - ndtr(-0.3 / np.sqrt(1 + 1e-8))) < 1e-14)
    True
    """
    edges = set(np.arange(-REACH, REACH + 1, PANEL).tolist())
    for place, width in layers:
        if abs(place) < REACH:
            edges.add(place)
            step = width
            while 0 < step < PANEL:
                edges.update((place - step, place + step))
                step *= GROWTH
    return gaussian_panels(sorted(edge for edge in edges if abs(edge) <= REACH), order)


def between_kinks(
    kinks: Sequence[float], mean: Array, spread: float, *, panels: int, order: int, reach: float
) -> tuple[Array, Array]:
    """A rule in t for each of several means (rows), with panels that end where mean + spread t is a kink.

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
    """Gauss-Legendre nodes and weights on [0, 1]."""
    points, weights = np.polynomial.legendre.leggauss(order)
    return (points + 1) / 2, weights / 2
