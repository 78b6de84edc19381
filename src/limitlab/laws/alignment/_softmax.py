"""Moments of a softmax of independent Gaussians, one of which is shifted.

With X_0 = exp(D + s xi_0) and X_b = exp(s xi_b) for b = 1, ..., k - 1 the first probability is pi = X_0 / sum X. Since
1 / S = int_0^inf exp(-t S) dt and 1 / S^2 = int_0^inf t exp(-t S) dt, the k-dimensional averages become products of one-dimensional ones
under one integral over log t:

    E pi^j = int a_j(tau + D) a_0(tau)^{k-1} d tau,       a_j(tau) = E[ (e^{tau + s xi})^j exp(-e^{tau + s xi}) ],   j = 1, 2.

Both integrands are analytic in a strip and decay fast: the trapezoidal rule converges exponentially.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

REACH = 9.0
"""Standard deviations beyond which a Gaussian is cut."""
LEFT = 40.0
"""e^-40 is below rounding: where the integral over log t starts, below the shift."""


class SoftmaxMoments(NamedTuple):
    """First and second moments of the shifted probability (`inside`) and of any other one (`outside`)."""

    inside: float
    inside_square: float
    outside: float
    outside_square: float


def softmax_moments(count: int, shift: float, spread: float, step: float = 0.2) -> SoftmaxMoments:
    """Moments of the softmax of `count` Gaussians of standard deviation `spread`, the first shifted by `shift`.

    Parameters
    ----------
    count
        Number k of Gaussians, at least 2.
    shift
        D, which is added to the first.
    spread
        Standard deviation s, at least 0.
    step
        Step of both trapezoidal rules.

    Examples
    --------
    >>> round(softmax_moments(4, 0.0, 1.3).inside, 12)
    0.25
    >>> found = softmax_moments(3, 1.0, 0.0)
    >>> round(found.inside - 1 / (1 + 2 * math.exp(-1)), 12) + 0.0
    0.0
    """
    right = REACH * spread + 5.0
    tau = np.arange(-LEFT - max(shift, 0.0), right + max(-shift, 0.0), step)
    none, _, two = _transforms(tau, spread, step)
    none_in, one_in, two_in = _transforms(tau + shift, spread, step)
    power = none ** (count - 2)
    inside = step * float(np.sum(one_in * power * none))
    return SoftmaxMoments(
        inside,
        step * float(np.sum(two_in * power * none)),
        (1 - inside) / (count - 1),
        step * float(np.sum(two * power * none_in)),
    )


def _transforms(tau: Array, spread: float, step: float) -> tuple[Array, Array, Array]:
    """a_0, a_1, a_2 at the points tau."""
    nodes: Array = np.zeros(1)
    weights: Array = np.ones(1)
    if spread > 0:
        fine = min(step, step / spread) * 1.5
        nodes = np.asarray(fine * np.arange(-math.ceil(REACH / fine), math.ceil(REACH / fine) + 1), dtype=np.float64)
        weights = np.exp(-(nodes**2) / 2)
        weights /= weights.sum()
    logarithm = tau[:, None] + spread * nodes
    t = np.exp(np.minimum(logarithm, 10.0))  # exp(-e^10) is zero
    decay = np.exp(-t)
    one = t * decay
    return decay @ weights, one @ weights, (t * one) @ weights
