"""Coefficients of a power series in 1/L from its sum, for any index: Cauchy's formula on contours in q = log L.

For f(L) = sum_k f_k L^{-k-1}, analytic but for real L in [0, 1],

    f_k = (1 / 2 pi i) oint L^k f(L) dL = (1 / 2 pi i) oint e^{(k+1) q} f(e^q) dq.

From `FEW` on the parabola of `numerics.contours` serves every index, whole or not, with the same number of nodes; below, where it would
leave the strip |Im q| < pi, a circle does, for whole indices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.numerics.contours import PARABOLA_NODES, parabola

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
Transforms = Callable[[Complex], tuple[Complex, ...]]

FEW = 16
RADIUS, CIRCLE = 1.25, 160  # of the circle: errors fall like RADIUS^-CIRCLE


def coefficients(transforms: Transforms, index: Array, nodes: int = PARABOLA_NODES) -> Array:
    """Coefficients number `index` of several series at once, shape (series, indices).

    `transforms` gives the sums of the series at points q = log L of the upper half plane.

    >>> powers = coefficients(lambda q: (1 / (np.exp(q) - 0.9),), np.array([0.0, 3.0, 16.5, 200.0]))  # 0.9^k
    >>> bool(np.allclose(powers[0], 0.9 ** np.array([0.0, 3.0, 16.5, 200.0]), rtol=1e-11, atol=1e-13))
    True
    """
    few = index < FEW
    parts: list[tuple[Any, Complex, Any]] = []
    if few.any():
        turn = np.log(RADIUS) + 1j * np.pi * (2 * np.arange(CIRCLE // 2) + 1) / CIRCLE
        parts.append((few, turn, 2 / CIRCLE))
    if not few.all():
        z, weight = parabola(index[~few] + 1, nodes)
        parts.append((~few, -z, 2 * weight))
    found: Array | None = None
    for which, q, weight in parts:
        powers = weight * np.exp((index[which] + 1)[:, None] * q)
        values = [(powers * part).sum(axis=-1).real for part in transforms(q)]
        if found is None:
            found = np.empty((len(values), index.size))
        found[:, which] = values
    assert found is not None
    return found
