r"""Exact moments of averages with power-law weights, from Laplace transforms.

Each of n points lies in a window with probability p, independently. A point in the window has a uniform random number U, its mark, and
the weight K = U^{-q}, 0 < q < 1. The mean of K^2 is infinite for q >= 1/2. The weighted average of U^b over the window,

.. math:: A = \frac{\sum_i U_i^b K_i}{\sum_i K_i},

is a ratio of dependent sums. Because 1/S = \int e^{-tS} dt and 1/S^2 = \int t e^{-tS} dt, the moments of A are single integrals
of products of the functions M(c, j; t) = E[U^c K^j e^{-tK}], which are exponential integrals (`numerics.special`):

.. math:: M(c, j; t) = E_{(1+c)/q + 1 - j}(t) / q, \qquad \Phi(t) = 1 - p + p\, M(0, 0; t).

The integrals are taken in s = log t by the trapezoidal rule. The integrands are analytic in the strip |Im s| < pi/2 and decrease
to 0 at both ends, so the error of a step h is of the order exp(-pi^2/h). At the default step 1/8 this error is far below the rounding
error. A second rule with twice the step estimates the error.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import Refused
from limitlab.numerics.special import exponential_integral

Array = NDArray[np.float64]

STEP = 0.125
"""Step of the trapezoidal rule in log t."""
LARGEST = 45.0
"""Largest t. Every integrand contains e^-t, and beyond this t it is below 1e-19 of its peak."""
SMALLEST = np.exp(-40.0)
"""Smallest t, in units of (1-q)/(n p). Below it the integrands are below 1e-17 of their peak."""
BLOCK = 1024
"""Number of points evaluated at once. A block holds a few arrays of BLOCK x 500 numbers."""


class WeightedAverage(NamedTuple):
    """Moments of the weighted average A on the event that the window is not empty."""

    mass: Array
    """Probability that the window is not empty, by the same quadrature. The exact value is 1 - (1-p)^n (sum rule)."""
    mean: Array
    """E[A; not empty]."""
    mean_square: Array
    """E[A^2; not empty]."""
    concentration: Array
    """E[sum K^2 / (sum K)^2; not empty], which is 1 if one point has all the weight and 1/count for equal weights."""
    accuracy: Array
    """Estimated relative error, the larger of the change with twice the step and the defect of the sum rule."""


def weighted_average(
    count: ArrayLike, probability: ArrayLike, tail: ArrayLike, power: ArrayLike, step: float = STEP
) -> WeightedAverage:
    """Return the moments of the weighted average of U^power with weights U^-tail over a random window.

    Parameters
    ----------
    count
        Number n of points, at least 1.
    probability
        Probability p that a point lies in the window, in (0, 1].
    tail
        Exponent q of the weights, in (0, 1).
    power
        Exponent b of the averaged quantity U^b, at least 0.
    step
        Step of the trapezoidal rule in log t.

    Notes
    -----
    All arguments but `step` broadcast. The function computes one table per distinct pair (tail, power), and then sums over about
    500 nodes per point.

    Examples
    --------
    With one point in the window the average is the mark of this point:

    >>> result = weighted_average(1, 1.0, 0.4, 1.0)
    >>> round(float(result.mean), 12), round(float(result.mean_square), 12), round(float(result.concentration), 12)
    (0.5, 0.333333333333, 1.0)
    """
    arrays = np.broadcast_arrays(*(np.asarray(a, dtype=float) for a in (count, probability, tail, power)))
    _check(*arrays)
    shape = arrays[0].shape
    n, p, q, b = (array.ravel() for array in arrays)
    out = np.empty((len(WeightedAverage._fields), n.size))
    pairs, group = np.unique(np.stack([q, b]), axis=1, return_inverse=True)
    for index, (tail_value, power_value) in enumerate(pairs.T):
        members = np.flatnonzero(group.ravel() == index)
        t = _grid(float((n[members] * p[members]).max()), tail_value, step)
        table = _transforms(t, tail_value, power_value)
        for block in np.array_split(members, -(-members.size // BLOCK)):
            out[:, block] = _integrate(n[block, None], p[block, None], t, table, step)
    return WeightedAverage(*(row.reshape(shape) for row in out))


def _check(n: Array, p: Array, q: Array, b: Array) -> None:
    rules = (
        ("count", n, n >= 1, "at least 1"),
        ("probability", p, (p > 0) & (p <= 1), "above 0 and at most 1"),
        ("tail", q, (q > 0) & (q < 1), "above 0 and below 1"),
        ("power", b, b >= 0, "at least 0"),
    )
    for name, value, allowed, words in rules:
        if not np.all(allowed & np.isfinite(value)):
            raise Refused(
                f"{name} = {value[~allowed].flat[0] if np.any(~allowed) else value} is not allowed: must be {words}"
            )


def _grid(expected: float, tail: float, step: float) -> Array:
    """Return nodes t = e^s, equally spaced in s, in decreasing order.

    Their number is odd, so that every second node, with twice the step, is also a trapezoidal rule between the same ends.
    """
    span = np.log(LARGEST / SMALLEST) + np.log(max(expected, 1.0) / (1 - tail))
    half = int(np.ceil(span / (2 * step)))
    return np.asarray(LARGEST * np.exp(-step * np.arange(2 * half + 1)))


class _Transforms(NamedTuple):
    """Values of M(c, j; t) on the grid. phi = M(0, 0), and gap = 1 - phi is stored because it is small for small t."""

    phi: Array
    gap: Array
    weight: Array  # M(0, 1)
    weight_square: Array  # M(0, 2)
    value: Array  # M(b, 1)
    value_square: Array  # M(2b, 2)


def _transforms(t: Array, q: float, b: float) -> _Transforms:
    def transform(power: float, weights: int) -> Array:
        return exponential_integral((1 + power) / q + 1 - weights, t) / q

    weight = transform(0, 1)
    gap = -np.expm1(-t) + q * t * weight  # by nu E_{nu+1}(t) = e^-t - t E_nu(t) at nu = 1/q; both terms are positive
    return _Transforms(transform(0, 0), gap, weight, transform(0, 2), transform(b, 1), transform(2 * b, 2))


def _integrate(n: Array, p: Array, t: Array, table: _Transforms, step: float) -> Array:
    """Return the rows of `WeightedAverage` for a column of points (n, p)."""
    log_phi = np.log1p(-np.minimum(p * table.gap, 0.5))
    if np.any(p > 0.5):  # 1 - p + p phi, because 1 - p gap loses digits as it tends to zero
        log_phi = np.where(p * table.gap < 0.5, log_phi, np.log(1 - p + p * table.phi))
    singles = n * p * np.exp((n - 1) * log_phi)  # n points
    ordered_pairs = (n - 1) * p * singles * np.exp(-log_phi)  # n (n-1) ordered pairs
    sums = np.stack([table.weight, table.value, t * table.value_square, t * table.weight_square], axis=-1)
    pairs = t * table.value**2
    rules = [np.full(t.size, step), np.where(np.arange(t.size) % 2 == 0, 2 * step, 0.0)]  # every node, every second node
    fine, coarse = (singles @ (sums * (t * rule)[:, None]) for rule in rules)  # dt = t ds
    for result, rule in zip((fine, coarse), rules, strict=True):
        result[:, 2] += ordered_pairs @ (pairs * t * rule)
    with np.errstate(divide="ignore"):
        mass = -np.expm1(n[:, 0] * np.log1p(-p[:, 0]))
    refinement = np.abs(coarse / fine - 1).max(axis=1)
    return np.vstack([fine.T, np.maximum(refinement, np.abs(fine[:, 0] / mass - 1))])
