"""Kernel ridge regression on drawn inputs, averaged in closed form over targets, noise and test inputs.

Setting.  n inputs on the sphere, the kernel k(x, x') = sum_k xi_k B_k Q_k(<x, x'>/d) with k(x, x) = 1, a random target of energy F_k^2 in
          degree k, noise of standard deviation tau, and the fit k(x, X)(K + lambda)^{-1} y.
Result.   With A = (K + lambda)^{-1} and M = A [sum_k xi_k^2 B_k Q_k] A (docs/theory/approximation.md, eqs. 18 and 19)

              risk = tau^2 tr M + sum_k F_k^2 {1 - 2 xi_k tr(A Q_k) + tr(M Q_k)}.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limitlab.laws.approximation.exact import KINKED_DEGREES, RANDOM_KERNELS, SMOOTH_DEGREES, feature_kernel, overlaps
from limitlab.laws.approximation.harmonics import gegenbauer_coefficients
from limitlab.models.activations import Activation
from limitlab.numerics.sphere import gegenbauer_values

Array = NDArray[np.float64]


def fit_on_sphere(
    x: Array, activation: Activation, ridge: float, noise: float, degrees: NDArray[np.int64], signal: Array
) -> dict[str, Array | float]:
    """Return the observables of kernel ridge regression for inputs x, rows of norm 1; `signal` holds the F_k^2 of `degrees`.

    >>> rows = np.eye(5)
    >>> observables = fit_on_sphere(rows, Activation("relu"), 0.1, 0.5, np.array([1, 2]), np.array([1.0, 0.5]))
    >>> bool(0 < observables["excess_risk"] < 3)
    True
    """
    rho, d = overlaps(x), x.shape[1]
    top = max(int(degrees.max()), KINKED_DEGREES if activation.kinks else SMOOTH_DEGREES)
    harmonics = gegenbauer_coefficients(activation, d, range(top + 1))
    closed = RANDOM_KERNELS.get(activation.name)
    kernel = (feature_kernel(x, rho, harmonics) if closed is None else closed(x, rho)) / harmonics.energy
    inverse = np.linalg.inv(kernel + ridge * np.eye(len(x)))
    table = gegenbauer_values(rho, d, top)
    eigenvalues = harmonics.coefficients**2 / harmonics.energy
    twice = np.tensordot(eigenvalues * harmonics.levels / harmonics.energy, table, axes=1)  # the kernel composed with itself
    middle = inverse @ twice @ inverse
    explained = np.array([eigenvalues[k] * np.vdot(inverse, table[k]) for k in degrees])
    spread = np.array([np.vdot(middle, table[k]) for k in degrees])
    variance = float(np.trace(middle))
    risk = noise**2 * variance + float(signal @ (1 - 2 * explained + spread))  # (19)
    return dict(
        unexplained=1 - explained,
        effective_ridge=1 / float(np.trace(inverse)),  # (18)
        second_degrees_of_freedom=variance / (1 + variance),
        excess_risk=risk,
    )
