"""A student on its teacher's own inputs, as a combination of ridge filters of the sample covariance.

Setting.  Teacher (penalty b) and student (penalty a) see the same inputs; the student's labels are (1 - mix) y + mix X b_teacher.
Result.   Equations (3) and (4) of `distillation`: bias and variance are bilinear in the filters, through two-point functions of their
          penalties (docs/theory/learning_from_models.md, section 4).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.numerics.equivalents import both_shares, ridge_equivalent

Array = NDArray[np.float64]

NEAR = 2.0  # penalties within this factor are divided differences that cancel: an integral of the derivative instead
NODES = 16


class Filter(NamedTuple):
    """A combination sum_i values_i g_{ridges_i} + slopes_i dg_{ridges_i}/da of ridge filters."""

    ridges: Array
    values: Array
    slopes: Array


def mixed_filter(ridge: float, teacher_ridge: float, mix: float) -> Filter:
    """Equation (3) as a combination of ridge filters; for penalties that nearly agree, by an integral between them.

    >>> mixed_filter(0.3, 0.1, 1.0).values.round(12).tolist()
    [1.5, -0.5]
    >>> float(mixed_filter(0.1, 0.1, 0.7).values.sum().round(12))
    1.0
    """
    a, b = ridge, teacher_ridge
    if max(a, b) > NEAR * min(a, b):
        return Filter(np.array([a, b]), np.array([1 - mix + mix * a / (a - b), -mix * b / (a - b)]), np.zeros(2))
    points, weights = np.polynomial.legendre.leggauss(NODES)
    between = b + (a - b) * (points + 1) / 2
    share = mix * weights / 2
    return Filter(np.r_[a, between], np.r_[1 - mix, share], np.r_[0.0, share * between])


def same_inputs(
    chosen: Filter, ratio: float, eigenvalues: Array, weights: Array, energy: Array
) -> tuple[float, float, float]:
    """Bias, variance over tau^2 and 1 - df2 of a combination of ridge filters (eq. 4 and its derivatives)."""
    s, load = eigenvalues, ratio * weights
    found = ridge_equivalent(chosen.ridges, s, load[None])
    kappa, gap = np.atleast_1d(found.kappa), float(np.min(found.gap2))
    if gap == 0:
        return math.inf, math.inf, 0.0
    u, kept = (np.asarray(share) for share in both_shares(kappa, s))
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = np.where(s > 0, kept / (s + kappa[:, None]), 0.0) * np.asarray(found.derivative).reshape(-1, 1)  # du/da

    def form(left: Array, right: Array, weight: Array) -> Array:
        return np.asarray((left * weight) @ right.T)

    c, d = chosen.values, chosen.slopes
    left = 1 - form(kept, kept, load)  # 1 - df2(a, b)
    m1 = -form(slope, kept, load)  # derivatives of df2 in its first argument and in both; the second's is the transpose
    m12 = form(slope, slope, load)

    def combined(n: Array, n1: Array, n12: Array) -> float:
        """sum over pairs of (c + d d/da)(c + d d/db) n/(1 - df2)."""
        first = n1 / left + n * m1 / left**2
        both = n12 / left + (n1 * m1.T + n1.T * m1 + n * m12) / left**2 + 2 * n * m1 * m1.T / left**3
        return float(c @ (n / left) @ c + 2 * d @ first @ c + d @ both @ d)

    signal = energy * s
    bias = combined(form(u, u, signal), form(slope, u, signal), form(slope, slope, signal))
    zero = np.zeros_like(left)
    return bias, combined(zero + 1, zero, zero) - 1, gap
