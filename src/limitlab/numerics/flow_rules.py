"""Rules for averages over a law that a flow carries along: nodes and weights are chosen at the start, and the nodes move.

Quantiles put nodes where the mass is, wherever the flow takes it. Averages over even levels u would be of first order only, because
quantile functions are singular at 0 and 1; levels u(v) = v - sin(2 pi v) / (2 pi) at even v, weighted with u'(v), make the ends flat
(Sidi's substitution). Where the flow stays smooth, even nodes weighted with the density converge faster than any power.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class QuantileRule(NamedTuple):
    """Levels u of quantiles, 1 - u without cancellation, and weights that add up to 1."""

    levels: Array
    complements: Array
    weights: Array


def quantile_rule(count: int) -> QuantileRule:
    """The rule with `count` nodes.

    >>> rule = quantile_rule(40)
    >>> variance = 1.0  # of the exponential law, whose quantiles are -log(1 - u)
    >>> bool(abs(rule.weights @ (np.log(rule.complements) + 1) ** 2 - variance) < 1e-3)
    True
    """
    v = (np.arange(count) + 0.5) / count
    levels = v - np.sin(2 * np.pi * v) / (2 * np.pi)
    return QuantileRule(levels, levels[::-1], (1 - np.cos(2 * np.pi * v)) / count)


def gaussian_quantiles(count: int) -> tuple[Array, Array]:
    """Nodes and weights of the rule for a standard Gaussian.

    >>> nodes, weights = gaussian_quantiles(40)
    >>> bool(abs(weights @ nodes**4 - 3) < 4e-3)
    True
    """
    from scipy.special import ndtri

    levels, complements, weights = quantile_rule(count)
    return np.where(levels < 0.5, ndtri(levels), -ndtri(complements)), weights


def even_gaussian_rule(spacing: float, reach: float = 7.5) -> tuple[Array, Array]:
    """Even nodes for a standard Gaussian, symmetric about 0, with weights that add up to 1.

    >>> x, weights = even_gaussian_rule(0.25)
    >>> round(float(weights @ x**4), 8), round(float(weights @ np.tanh(x) ** 2), 10)
    (3.0, 0.3942944904)
    """
    side = round(reach / spacing)
    x = spacing * np.arange(-side, side + 1)
    weights = np.exp(-(x**2) / 2)
    return np.asarray(x), np.asarray(weights / weights.sum())
