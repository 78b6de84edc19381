"""Error of N random features with explicit weights at a fixed dimension.

Setting.  x uniform on the sphere of radius sqrt(d), features s(<w_i, x>) with N independent uniform unit vectors w_i; a target of degree k
          and norm 1. f(x) = E_w[f(sqrt(d) w) s(<w, x>)]/lambda_k, so that the weights f(sqrt(d) w_i)/(lambda_k N) give an unbiased fit.
Result.   Its mean squared error is exactly (E s^2/lambda_k^2 - 1)/N (docs/theory/finite_width.md, equation (1)). Least squares on the same
          features has a smaller error. The factor of 1/N is of order d^k. `Staircase` has its step of degree k at an N of the same order.
Status.   Identity (the theory of reproducing kernels states an error of at most C/N with this factor C).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.laws.approximation.harmonics import gegenbauer_coefficients
from limitlab.numerics.sphere import gegenbauer_values

__all__ = ["explicit_weights_error", "fixed_dimension_constant"]

Array = NDArray[Any]


def fixed_dimension_constant(dimension: int, degree: int, activation: Any = "relu") -> float:
    """Return E s^2/lambda_k^2 - 1, which is N times the mean squared error of N random features with explicit weights.

    It is an upper bound of N times the error of least squares, at every N. It is infinite if the activation has no part of that degree
    (relu at odd degrees from 3 on), because the features then do not span the target for any N.

    >>> [round(fixed_dimension_constant(d, 2), 3) for d in (3, 5, 10)]
    [41.667, 101.4, 360.623]
    >>> fixed_dimension_constant(5, 3)
    inf
    """
    harmonics = gegenbauer_coefficients(activation, dimension, [degree])
    level = float(harmonics.coefficients[0]) ** 2
    return harmonics.energy / level - 1 if level > 0 else float("inf")


def explicit_weights_error(W: ArrayLike, degree: int) -> float:
    """Return the squared error of explicit weights on the ReLU neurons W, averaged over random targets of one degree.

    The average over inputs is exact.

    Parameters
    ----------
    W
        Unit vectors, one per row.
    degree
        Degree of the targets, which are Gaussian fields with covariance Q_k(<x, x'>/d).

    Examples
    --------
    >>> from limitlab.models.data import sphere
    >>> rng = np.random.default_rng(0)
    >>> runs = [100 * explicit_weights_error(sphere(rng, 100, 3), 2) for _ in range(200)]
    >>> abs(np.mean(runs) - 125 / 3) < 4 * np.std(runs) / 200**0.5
    np.True_
    """
    neurons = np.asarray(W, dtype=float)
    cosine = np.clip(neurons @ neurons.T, -1.0, 1.0)
    np.fill_diagonal(cosine, 1.0)
    angle = np.arccos(cosine)
    products = (np.sin(angle) + (np.pi - angle) * cosine) / (2 * np.pi)  # E relu(<w, x>) relu(<w', x>), by homogeneity
    eigenvalue = float(gegenbauer_coefficients("relu", neurons.shape[1], [degree]).coefficients[0])
    fields = gegenbauer_values(cosine, neurons.shape[1], degree)[degree]
    return float((fields * products).mean() / eigenvalue**2 - 1)
