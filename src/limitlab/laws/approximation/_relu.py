"""ReLU neurons on a quadratic target and Gaussian inputs, exactly given the neurons (docs/theory/approximation.md, eqs. 29, 30).

Tangent features 1{<w_i, x> > 0} x have the Gram matrix of `relu_tangent_kernel`, means m_i = w_i/sqrt(2 pi), and covariances
V_i = (2 B w_i - <w_i, B w_i> w_i)/sqrt(2 pi) with <x, B x>, for unit vectors w_i. With a free intercept the relative risk is
1 - V'(K - m m')^+ V / (2 |B|^2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import Refused
from limitlab.laws.approximation.exact import overlaps, pseudo_inverse, relu_tangent_kernel, unit_rows

Array = NDArray[np.float64]


def relu_tangent_risk(W: ArrayLike, eigenvalues: ArrayLike) -> float:
    """Relative risk of the tangent features of given ReLU neurons on the target <x, B x>, B diagonal, with a free intercept.

    >>> round(relu_tangent_risk(np.eye(4), (1.0, 0.5, 0.0, -0.5)), 4)
    0.3996
    """
    w, B = unit_rows(W), np.asarray(eigenvalues, dtype=float)
    if B.shape != (w.shape[1],) or not B.any():
        raise Refused(f"eigenvalues of shape {B.shape} are not allowed: must be {w.shape[1]} numbers that are not all 0")
    root = np.sqrt(2 * np.pi)
    mean = w.ravel() / root
    v = (2 * B * w - (w**2 @ B)[:, None] * w).ravel() / root
    inverse = pseudo_inverse(relu_tangent_kernel(w, overlaps(w)) - np.outer(mean, mean))
    return float(1 - v @ inverse @ v / (2 * B @ B))
