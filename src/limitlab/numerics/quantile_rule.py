"""A rule for averages over a law that is given by its quantiles, when a flow may stretch it anywhere.

Even levels u put nodes where the mass is, but averages over them are of first order only: quantile functions are singular at 0 and 1.
Levels u(v) = v - sin(2 pi v) / (2 pi) at even v, weighted with u'(v), keep the nodes where the mass is and make the ends flat (Sidi's
substitution): what is averaged may be smooth in the middle and logarithmically singular at the ends.
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
    >>> bool(abs(rule.weights @ (np.log(rule.complements) + 1) ** 2 - variance) < 1e-4)
    True
    """
    v = (np.arange(count) + 0.5) / count
    levels = v - np.sin(2 * np.pi * v) / (2 * np.pi)
    return QuantileRule(levels, levels[::-1], (1 - np.cos(2 * np.pi * v)) / count)


def gaussian_quantiles(count: int) -> tuple[Array, Array]:
    """Nodes and weights of the rule for a standard Gaussian.

    >>> nodes, weights = gaussian_quantiles(40)
    >>> bool(abs(weights @ nodes**4 - 3) < 2e-3 and abs(weights @ np.tanh(3 * nodes) ** 2 - 0.698434) < 1e-6)
    True
    """
    from scipy.special import ndtri

    levels, complements, weights = quantile_rule(count)
    return np.where(levels < 0.5, ndtri(levels), -ndtri(complements)), weights
