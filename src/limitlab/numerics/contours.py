"""Functions of a matrix from its resolvent, and coefficients of a power series from its sum, by Cauchy's formula on contours.

For f analytic inside a contour around the spectrum in [0, b] of a symmetric A,

    f(A) = -(1 / 2 pi i) oint f(z) (A - z)^-1 dz  ~  2 Re sum_j w_j f(z_j) (A - z_j)^-1,                         (1)

where the nodes z_j run over the upper half of the contour (the lower half is its mirror image). The same sum holds for any
trace or quadratic form of the resolvent, in particular for its deterministic equivalent. Two contours cover all filters of
gradient descent:

- `parabola(time)`, for functions that decay like e^{-time z}. The number of nodes depends neither on the spectrum nor on the
  time.
- `circle(bound)`, for entire functions when time * bound is of order one. The *relative* accuracy stays the same as time
  tends to 0.

`descent_parabola` is the parabola for the powers (1 - step z)^count, which decay like e^{-count step w} in
w = -log(1 - step z) / step.

For a power series f(L) = sum_k f_k L^{-k-1}, analytic except for real L in [0, 1],

    f_k = (1 / 2 pi i) oint L^k f(L) dL = (1 / 2 pi i) oint e^{(k+1) q} f(e^q) dq,       q = log L.              (2)

From index `FEW` on, `coefficients` uses the parabola for every index, whole or not, with the same number of nodes. For smaller indices
the parabola would leave the strip |Im q| < pi. There `coefficients` uses a circle, which requires whole indices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Complex = NDArray[np.complex128]

PARABOLA_NODES = 32
CIRCLE_NODES = 96
CIRCLE_STRETCH = 1.5  # radius over half of the bound; errors fall like stretch^-nodes
# Weideman and Trefethen (2007): the parabola for e^{-time z}, error about 2.85^-nodes until rounding.
APEX, CURVATURE, OPENING = 0.1309, 0.1194, 0.25


class Contour(NamedTuple):
    """Nodes in the upper half plane and their weights in (1), along the last axis."""

    z: Complex
    weight: Complex


def parabola(time: ArrayLike, nodes: int = PARABOLA_NODES) -> Contour:
    """Return a parabola around the positive axis, for functions that decay like e^{-time z}.

    >>> z, weight = parabola(3.0)
    >>> value = 2 * (weight * np.exp(-3.0 * z) / (0.7 - z)).sum().real
    >>> bool(abs(value - np.exp(-2.1)) < 1e-13)
    True
    """
    theta = (-np.pi * (2 * np.arange(nodes // 2) + 1) / nodes).astype(np.complex128)
    # the apex stays where it is for more nodes, because e^{-time z} is larger further out and would amplify rounding errors
    scale = min(nodes, PARABOLA_NODES) / np.asarray(time, dtype=float)[..., None]
    z = scale * (-APEX + CURVATURE * theta**2 - 1j * OPENING * theta)
    return Contour(z, 1j / nodes * scale * (2 * CURVATURE * theta - 1j * OPENING))


def descent_parabola(count: ArrayLike, step: float, nodes: int = PARABOLA_NODES) -> tuple[Contour, Complex]:
    """Return the contour for powers (1 - step z)^count of a spectrum in [0, 1/step], and the values of the power on it.

    >>> (z, weight), power = descent_parabola(40, 0.5)
    >>> value = 2 * (weight * power / (0.7 - z)).sum().real
    >>> bool(abs(value - (1 - 0.35) ** 40) < 1e-13)
    True
    """
    time = np.asarray(count, dtype=float) * step
    w, weight = parabola(time, nodes)
    z = np.asarray(-np.expm1(-step * w) / step, dtype=np.complex128)
    return Contour(z, weight * np.exp(-step * w)), np.exp(-time[..., None] * w)


def circle(bound: ArrayLike, nodes: int = CIRCLE_NODES) -> Contour:
    """Return a circle around [0, bound], for entire functions whose values on the circle are not much larger than on [0, bound].

    >>> z, weight = circle(4.0)
    >>> value = 2 * (weight * np.cos(z) / (3.0 - z)).sum().real
    >>> bool(abs(value - np.cos(3.0)) < 1e-13)
    True
    """
    half = np.asarray(bound, dtype=float)[..., None] / 2
    turn = CIRCLE_STRETCH * half * np.exp(1j * np.pi * (2 * np.arange(nodes // 2) + 1) / nodes)
    return Contour(half + turn, -turn / nodes)


def log_one_plus(z: Complex) -> Complex:
    """Return log(1 + z) for complex z, accurate for small |z|. (The real part of NumPy's `log1p` loses its digits there.)

    >>> value = log_one_plus(np.array([1e-20 + 2e-20j]))
    >>> bool(abs(value[0] / (1e-20 + 2e-20j) - 1) < 1e-15)
    True
    """
    return np.asarray(np.log1p(z.real * (2 + z.real) + z.imag**2) / 2 + 1j * np.arctan2(z.imag, 1 + z.real))


# -- coefficients of a power series -------------------------------------------------------------------------------------

Array = NDArray[np.float64]
Transforms = Callable[[Complex], tuple[Complex, ...]]

FEW = 16
RADIUS, CIRCLE = 1.25, 160  # radius and nodes of the circle; errors fall like RADIUS^-CIRCLE


def coefficients(transforms: Transforms, index: Array, nodes: int = PARABOLA_NODES) -> Array:
    """Return the coefficients number `index` of several series at once, shape (series, indices).

    `transforms` returns the sums of the series at points q = log L of the upper half plane.

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
    result: Array | None = None
    for which, q, weight in parts:
        powers = weight * np.exp((index[which] + 1)[:, None] * q)
        values = [(powers * part).sum(axis=-1).real for part in transforms(q)]
        if result is None:
            result = np.empty((len(values), index.size))
        result[:, which] = values
    assert result is not None
    return result
