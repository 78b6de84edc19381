"""Where a drifting sequence goes: limits extrapolated from a few of its entries, with an uncertainty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def aitken(sequence: ArrayLike) -> Floats:
    """Limits of the geometric sequences through three successive entries each: x2 - (x2 - x1)^2 / (x2 - 2 x1 + x0).

    >>> aitken([1.5, 1.25, 1.125])
    array([1.])
    """
    x = np.asarray(sequence, dtype=float)
    last, before = x[2:] - x[1:-1], x[1:-1] - x[:-2]
    slowing = np.where(before == last, np.inf, before - last)  # a sequence that has arrived is its own limit
    return np.asarray(x[2:] + last**2 / slowing)


@dataclass(frozen=True)
class Limit:
    """A limit measured from a sequence, with the uncertainty of the extrapolation."""

    value: float
    error: float


def settled(sequence: ArrayLike) -> Limit:
    """Where a drifting sequence goes: the Aitken limit of its last three entries, and the distance to the last of them.

    Where the drift does not shrink yet, the last entry and three times its drift beyond the range of the last three.

    >>> settled([1.5, 1.25, 1.125])
    Limit(value=1.0, error=0.125)
    """
    last = np.asarray(sequence, dtype=float)[-3:]
    drift = np.diff(last)
    if drift.size == 2 and drift[0] * drift[1] > 0 and abs(drift[1]) < 0.95 * abs(drift[0]):
        value = float(aitken(last)[-1])
        return Limit(value, max(abs(value - float(last[-1])), abs(float(drift[1]))))
    return Limit(float(last[-1]), float(np.ptp(last)) + 3 * abs(float(drift[-1])))
