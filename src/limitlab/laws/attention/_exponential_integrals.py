"""Differences and scaled forms of the exponential integrals Ei and E1 that neither overflow nor cancel.

Ei(x) = gamma + log x + Ein(x),     Ein(x) = integral_0^x (e^t - 1)/t dt  (entire, increasing),
E1(x) = -gamma - log x - Ein(-x).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import Refused

Array = NDArray[np.float64]

SERIES = 1.0  # up to here the power series of Ein is used
TERMS = 20  # x^k / (k k!) at x = 1 is below 1e-19 for k = 20
ASYMPTOTIC = 50.0  # from here on the asymptotic series of e^x E1(x) has reached rounding level with 20 terms


def entire_part(x: ArrayLike) -> Array:
    """Ei(x) (or -E1(-x) for x < 0) without its logarithm: the integral of (e^t - 1)/t from 0 to x.

    >>> entire_part([0.0, 1.0, -1.0]).round(12).tolist()
    [0.0, 1.317902151454, -0.796599599297]
    """
    from scipy.special import exp1, expi

    x = np.asarray(x, dtype=float)
    small = np.clip(x, -SERIES, SERIES)
    total = np.zeros_like(small)
    for k in range(TERMS, 0, -1):  # Horner: sum of x^k / (k k!)
        total = small / k * (1 / k + total)
    size = np.maximum(np.abs(x), SERIES)
    with np.errstate(over="ignore"):
        large = np.where(x > 0, expi(size), -exp1(size)) - np.euler_gamma - np.log(size)
    return np.asarray(np.where(np.abs(x) <= SERIES, total, large))[()]


def scaled_exp1(x: ArrayLike) -> Array:
    """e^x E1(x) for x > 0, also where E1 underflows.

    >>> scaled_exp1([1.0, 1000.0]).round(12).tolist()
    [0.596347362323, 0.000999001994]
    """
    from scipy.special import exp1

    x = np.asarray(x, dtype=float)
    if not np.all(x > 0):
        raise Refused("x is not allowed: the exponential integral E1 needs arguments above 0")
    near, far = np.minimum(x, ASYMPTOTIC), np.maximum(x, ASYMPTOTIC)
    tail = np.zeros_like(far)
    for k in range(TERMS, 0, -1):  # 1 - 1/x (1 - 2/x (1 - 3/x ...))
        tail = -k / far * (1 + tail)
    return np.asarray(np.where(x < ASYMPTOTIC, np.exp(near) * exp1(near), (1 + tail) / far))[()]
