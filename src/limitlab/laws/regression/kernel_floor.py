"""Least excess risk of rotation-invariant kernels when the number of samples grows like the dimension.

Setting.  y = f(x) + noise, where the linear part of f has energy F1^2 and the remaining part has energy F*^2. The estimator is kernel
          ridge regression with a kernel that depends on |x|, |x'|, <x, x'> only. It can learn the linear part of f. The remaining part
          acts like noise.
Limit.    n, d -> infinity with n/d -> psi.
Result.   The least excess risk over ridges and kernels is the sum of F*^2 and the excess risk of ridge regression on isotropic inputs
          with noise variance tau_e^2 = tau^2 + F*^2 and the best penalty l = g tau_e^2/F1^2, g = 1/psi
          (docs/theory/random_features.md, equation (15)). An activation attains it if mu*^2/mu1^2 <= tau_e^2/F1^2. For any other
          activation the best ridge is 0, and the excess risk is larger.
Status.   Derived as the optimum of the theorem behind `RandomFeaturesRidge` at infinite width.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import Refused

__all__ = ["kernel_floor"]

Array = NDArray[Any]


def kernel_floor(sample_ratio: ArrayLike, linear: ArrayLike, nonlinear: ArrayLike, noise: ArrayLike) -> Array:
    """Return the least excess risk of kernel ridge regression at n/d = `sample_ratio`. All arguments broadcast.

    Parameters
    ----------
    sample_ratio
        n/d, above 0. For infinitely many samples per dimension the least excess risk is `nonlinear`.
    linear, nonlinear
        F1^2 and F*^2, the energies of the linear part of the target and of its remaining part.
    noise
        Standard deviation tau of the label noise.

    Examples
    --------
    >>> kernel_floor([5.0, 20.0, np.inf], 0.5, 0.3, 0.5).round(9).tolist()
    [0.403631568, 0.327289085, 0.3]
    """
    psi, f1, rest, tau = np.broadcast_arrays(
        *(np.asarray(argument, dtype=float) for argument in (sample_ratio, linear, nonlinear, noise))
    )
    for name, values, good, allowed in (
        ("sample_ratio", psi, psi > 0, "above 0, inf allowed"),
        ("linear", f1, (f1 >= 0) & np.isfinite(f1), "at least 0"),
        ("nonlinear", rest, (rest >= 0) & np.isfinite(rest), "at least 0"),
        ("noise", tau, (tau >= 0) & np.isfinite(tau), "at least 0"),
    ):
        if not good.all():
            raise Refused(f"{name} = {values[~good].flat[0]:g} is not allowed: must be {allowed}")
    g = 1 / psi
    penalty = g * (tau**2 + rest) / np.where(f1 > 0, f1, 1.0)
    a = 1 - g + penalty
    root = np.sqrt(a**2 + 4 * g * penalty)
    with np.errstate(divide="ignore", invalid="ignore"):  # l S(-l), computed without cancellation on both branches
        unlearned = np.where(a > 0, 2 * penalty / (a + root), (root - a) / (2 * g))
    return np.asarray(rest + f1 * np.where(g == 0, 0.0, unlearned))
