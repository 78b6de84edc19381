"""Functions of a matrix from its resolvent: Cauchy's formula on contours around a spectrum in [0, b].

For f analytic inside a contour around the spectrum of a symmetric A,

    f(A) = -(1 / 2 pi i) oint f(z) (A - z)^-1 dz  ~  2 Re sum_j w_j f(z_j) (A - z_j)^-1,                         (1)

where the nodes z_j run over the upper half of the contour (the lower half is its mirror image). The same sum holds for any
trace or quadratic form of the resolvent, in particular for its deterministic equivalent. Two contours cover all filters of
gradient descent:

- `parabola(time)`, for functions that decay like e^{-time z}: the number of nodes depends neither on the spectrum nor on the
  time;
- `circle(bound)`, for entire functions when time * bound is of order one: *relative* accuracy survives as time tends to 0.

`descent_parabola` is the parabola for the powers (1 - step z)^count, which decay like e^{-count step w} in
w = -log(1 - step z) / step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Complex = NDArray[np.complex128]

PARABOLA_NODES = 32
CIRCLE_NODES = 96
CIRCLE_STRETCH = 1.5  # radius over half of the bound: errors fall like stretch^-nodes
# Weideman and Trefethen (2007): the parabola for e^{-time z}, error about 2.85^-nodes until rounding.
APEX, CURVATURE, OPENING = 0.1309, 0.1194, 0.25


class Contour(NamedTuple):
    """Nodes in the upper half plane and their weights in (1), along the last axis."""

    z: Complex
    weight: Complex


def parabola(time: ArrayLike, nodes: int = PARABOLA_NODES) -> Contour:
    """A parabola around the positive axis, for functions that decay like e^{-time z}.

    >>> z, weight = parabola(3.0)
    >>> value = 2 * (weight * np.exp(-3.0 * z) / (0.7 - z)).sum().real
    >>> bool(abs(value - np.exp(-2.1)) < 1e-13)
    True
    """
    theta = (-np.pi * (2 * np.arange(nodes // 2) + 1) / nodes).astype(np.complex128)
    # beyond so many nodes the apex stays: it would move out to where e^{-time z} amplifies rounding, and truncation is below it already
    scale = min(nodes, PARABOLA_NODES) / np.asarray(time, dtype=float)[..., None]
    z = scale * (-APEX + CURVATURE * theta**2 - 1j * OPENING * theta)
    return Contour(z, 1j / nodes * scale * (2 * CURVATURE * theta - 1j * OPENING))


def descent_parabola(count: ArrayLike, step: float, nodes: int = PARABOLA_NODES) -> tuple[Contour, Complex]:
    """The contour for powers (1 - step z)^count of a spectrum in [0, 1/step], and the values of the power on it.

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
    """A circle around [0, bound], for entire functions that do not grow much over it.

    >>> z, weight = circle(4.0)
    >>> value = 2 * (weight * np.cos(z) / (3.0 - z)).sum().real
    >>> bool(abs(value - np.cos(3.0)) < 1e-13)
    True
    """
    half = np.asarray(bound, dtype=float)[..., None] / 2
    turn = CIRCLE_STRETCH * half * np.exp(1j * np.pi * (2 * np.arange(nodes // 2) + 1) / nodes)
    return Contour(half + turn, -turn / nodes)
