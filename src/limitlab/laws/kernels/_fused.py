"""All layers of a ReLU network in one compiled pass over the entries of a Gram matrix.

An entry of the kernel depends only on the same entry of the Gram matrix and the variances of its row and column, so that every entry is
read and written once at any depth. The arc sine is the rational approximation of Sun's fdlibm (error below one unit in the last place),
written without branches so that the compiler can compute several entries at a time.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

FASTMATH = {"contract", "arcp", "nsz"}
SNAP = 1 - 4 * np.finfo(float).eps  # beyond this a correlation is 1

P0, P1, P2 = 1.66666666666666657415e-01, -3.25565818622400915405e-01, 2.01212532134862925881e-01
P3, P4, P5 = -4.00555345006794114027e-02, 7.91534994289814532176e-04, 3.47933107596021167570e-05
Q1, Q2, Q3, Q4 = (
    -2.40339491173441421878e00,
    2.02094576023350569471e00,
    -6.88283971605453293030e-01,
    7.70381505559019352791e-02,
)
"""Sun Microsystems' coefficients of asin(x) = x + x^3 P(x^2)/Q(x^2), |x| <= 1/2."""

INVERSE_PI = 1 / np.pi


@numba.njit(inline="always", error_model="numpy", fastmath=FASTMATH)
def arc_share(rho: float) -> tuple[float, float]:
    """Return (pi - angle) / pi and sin(angle) / pi + rho (pi - angle) / pi for the angle whose cosine is rho."""
    size = abs(rho)
    size = 1.0 if size > SNAP else size
    big = size > 0.5
    z = 0.5 * (1.0 - size) if big else size * size
    s = np.sqrt(z) if big else size
    p = z * (P0 + z * (P1 + z * (P2 + z * (P3 + z * (P4 + z * P5)))))
    q = 1.0 + z * (Q1 + z * (Q2 + z * (Q3 + z * Q4)))
    arc = s + s * p / q  # asin(s)
    # asin(size) = pi/2 - 2 asin(sqrt((1 - size)/2)) beyond 1/2
    share = 1.0 - 2.0 * INVERSE_PI * arc if big else 0.5 + INVERSE_PI * arc
    share = share if rho >= 0.0 else 1.0 - share
    signed = size if rho >= 0.0 else -size
    return share, INVERSE_PI * np.sqrt((1.0 - size) * (1.0 + size)) + share * signed


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=FASTMATH)
def relu_duals(value: Array, slope: Array, roots1: Array, roots2: Array) -> None:
    """Compute the duals of relu in place.

    `value` contains the covariances and is overwritten by E s(u) s(v). `slope` is filled with E s'(u) s'(v).
    """
    inverse2 = np.empty_like(roots2)
    for j in range(roots2.size):
        inverse2[j] = 1.0 / roots2[j] if roots2[j] > 0.0 else 0.0
    for i in range(roots1.size):
        root = roots1[i]
        inverse = 1.0 / root if root > 0.0 else 0.0
        for j in range(roots2.size):
            share, rest = arc_share(value[i, j] * inverse * inverse2[j])
            value[i, j] = 0.5 * root * roots2[j] * rest
            slope[i, j] = 0.5 * share


@numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=FASTMATH)
def relu_pass(
    gram: Array,
    tangent: Array,
    roots1: Array,
    roots2: Array,
    inverse1: Array,
    inverse2: Array,
    scale: float,
    weight: float,
    bias: float,
) -> None:
    """Turn inner products of inputs into the NNGP kernel, and write the tangent kernel into `tangent`.

    Parameters
    ----------
    gram
        Inner products; overwritten by the kernel of the last layer.
    tangent
        Array for the tangent kernel, of shape (0, 0) if only `gram` is needed.
    roots1, roots2
        Square roots of the variances of rows and of columns in every layer, shape (layers, rows).
    inverse1, inverse2
        Inverses of these roots, 0 for a variance of 0.
    scale
        Factor of the inner products in the first layer.
    weight, bias
        Variances of weights and of biases.
    """
    rows, columns = gram.shape
    both = tangent.shape[0] > 0
    for i in range(rows):
        for j in range(columns):
            gram[i, j] = gram[i, j] * scale + bias
        if both:
            for j in range(columns):
                tangent[i, j] = gram[i, j]
        for layer in range(roots1.shape[0]):
            root, inverse = roots1[layer, i], inverse1[layer, i]
            for j in range(columns):
                share, rest = arc_share(gram[i, j] * inverse * inverse2[layer, j])
                value = 0.5 * root * roots2[layer, j] * rest
                gram[i, j] = weight * value + bias
                if both:
                    tangent[i, j] = 0.5 * weight * share * tangent[i, j] + gram[i, j]
