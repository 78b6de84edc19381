"""Derivatives of functions that are known by their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

WEIGHTS = np.array([4 / 5, -1 / 5, 4 / 105, -1 / 280])
"""Of f(x + kh) - f(x - kh), k = 1, ..., 4, in the central difference of order 8."""

STEP = 0.02  # rounding (1e-16 / h) and truncation (h^8) balance for functions of scale 1


def difference(f: Callable[[Any], Any], step: float = STEP) -> Callable[[Any], Any]:
    """The derivative of a smooth function of arrays by central differences of order 8.

    >>> slope = difference(np.sin)
    >>> bool(abs(slope(0.3) - np.cos(0.3)) < 1e-13)
    True
    """

    def slope(x: Any) -> Any:
        total = 0.0
        for k, weight in enumerate(WEIGHTS, 1):
            total = total + weight * (f(x + k * step) - f(x - k * step))
        return total / step

    return slope
