"""Which ridge is best for random features, and when none is (claim T6).

At fixed ratios the risk depends on the ridge through the unknown t of `random_features_point`, and B, V are explicit in t. With
rho = F1^2 / (tau^2 + F*^2), the risk falls as the last bit of ridge is taken away exactly if rho B_t + V_t <= 0 at lambda = 0
(docs/theory/random_features.md, section 4). In the wide limit this reads rho >= mu1^2 / mu*^2, whatever the sample size; at a
finite width B_t may be positive, and then a ridge helps at every signal-to-noise ratio.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.laws.regression.random_features_point import coefficients, fixed_point, slopes, weighted
from limitlab.numerics.roots import bracketed_root

Array = NDArray[np.float64]

DECADES = (-14, 8)
"""Where a best ridge is looked for, in powers of ten of (mu1^2 + mu*^2) max(1, 1/rho) max(1, 1/psi1, 1/psi2)."""
SCAN = 265
"""Points of that look: twelve per decade."""
WIDEST = 1e12
"""Widths N/d up to which the change of sign is looked for."""


def best_ridge(
    width_ratio: ArrayLike, sample_ratio: ArrayLike, linear: ArrayLike, nonlinear: ArrayLike, signal_to_noise: ArrayLike
) -> Array:
    """The ridge of least risk; all arguments broadcast. Infinite at rho = 0; 0 where no ridge is best.

    The risk is scanned along lambda, then the zero of its derivative is found to rounding.

    Parameters
    ----------
    width_ratio, sample_ratio, linear, nonlinear
        As in `random_features.risk`.
    signal_to_noise
        rho = F1^2 / (tau^2 + F*^2); infinite without noise.

    Examples
    --------
    In the wide limit the answer is max(0, mu1^2/rho - mu*^2) / psi2:

    >>> best_ridge(np.inf, 3.0, 0.5, 0.3, [1.0, 2.0, 50.0]).round(12).tolist()
    [0.053333333333, 0.011666666667, 0.0]
    """
    psi1, psi2, mu1, mus, rho = np.broadcast_arrays(
        *(np.asarray(given, dtype=float) for given in (width_ratio, sample_ratio, linear, nonlinear, signal_to_noise))
    )
    if not (rho >= 0).all():
        raise ValueError(f"signal_to_noise = {rho[~(rho >= 0)].flat[0]:g} is not allowed: must be at least 0")
    signal, noise = np.where(np.isinf(rho), 1.0, rho), np.where(np.isinf(rho), 0.0, 1.0)
    scale = (
        (mu1**2 + mus**2) * np.maximum(1.0, 1 / np.where(rho > 0, rho, 1.0)) * np.maximum(1.0, 1 / np.minimum(psi1, psi2))
    )
    positive = scale[..., None] * np.logspace(*DECADES, SCAN)
    both_infinite = np.isinf(psi1) & np.isinf(psi2)  # there 0 is no value, but the least of the scan is as good
    first = np.where(both_infinite, positive[..., 0], 0.0)
    grid = np.concatenate([first[..., None], positive], axis=-1)
    values = _risk(
        psi1[..., None], psi2[..., None], grid, mu1[..., None], mus[..., None], signal[..., None], noise[..., None]
    )
    at = np.argmin(values, axis=-1)[..., None]
    low, high = (np.take_along_axis(grid, np.clip(at + side, 0, SCAN), axis=-1)[..., 0] for side in (-1, 1))

    def rising(lam: Array) -> Array:  # the sign of the risk's derivative in lambda
        return -_slope(psi1, psi2, lam, mu1, mus, signal, noise)

    ends = rising(low), rising(high)
    inside = (ends[0] < 0) & (ends[1] > 0) & (rho > 0)
    found = bracketed_root(lambda lam: np.where(inside, rising(np.where(inside, lam, low)), lam - low), low, high)
    none = np.where(both_infinite, 0.0, low)  # the minimum is at the lower end
    return np.asarray(np.where(rho == 0, np.inf, np.where(inside, found, none)))


def _risk(psi1: Array, psi2: Array, lam: Array, mu1: Array, mus: Array, signal: Array, noise: Array) -> Array:
    """signal * B + noise * V."""
    bias, variance, *_ = coefficients(fixed_point(psi1, psi2, lam, mu1, mus))
    return weighted(signal, bias) + weighted(noise, variance)


def _slope(psi1: Array, psi2: Array, lam: Array, mu1: Array, mus: Array, signal: Array, noise: Array) -> Array:
    """The sign of d(signal * B + noise * V)/dt."""
    dbias, dvariance = slopes(fixed_point(psi1, psi2, lam, mu1, mus), mu1, mus)
    return np.asarray(signal * dbias + noise * dvariance)


def snr_threshold(width_ratio: ArrayLike, sample_ratio: ArrayLike, linear: ArrayLike, nonlinear: ArrayLike) -> Array:
    """The signal-to-noise ratio rho above which no ridge is best; infinite where a ridge always helps. Arguments broadcast.

    >>> snr_threshold([4.0, 100.0, np.inf], 3.0, 0.5, 0.3).round(6).tolist()
    [inf, 4.352534, 2.777778]
    """
    psi1, psi2, mu1, mus = np.broadcast_arrays(
        *(np.asarray(given, dtype=float) for given in (width_ratio, sample_ratio, linear, nonlinear))
    )
    endless = np.isinf(psi2)  # the population's least squares: nothing to gain from a ridge
    dbias, dvariance = slopes(fixed_point(psi1, np.where(endless, 1.0, psi2), 0.0, mu1, mus), mu1, mus)
    helps = dbias < 0
    threshold = np.where(helps, -dvariance / np.where(helps, dbias, -1.0), np.inf)
    blind = np.isinf(psi1) & (mu1 == 0)  # nothing is learned at any ridge
    return np.asarray(np.where(endless | blind, 0.0, np.where(mus == 0, np.inf, threshold)))


def ridgeless_width(sample_ratio: ArrayLike, linear: ArrayLike, nonlinear: ArrayLike) -> Array:
    """The width N/d below which a ridge helps at every signal-to-noise ratio: where B_t changes sign. Arguments broadcast.

    Infinite for linear activations (mu* = 0) and for features that see no linear signal (mu1 = 0).

    >>> ridgeless_width([1.5, 3.0, 10.0], 0.5, (1 / 4 - 1 / (2 * np.pi)) ** 0.5).round(4).tolist()
    [5.0966, 11.1794, 62.158]
    """
    psi2, mu1, mus = np.broadcast_arrays(*(np.asarray(given, dtype=float) for given in (sample_ratio, linear, nonlinear)))
    if not np.isfinite(psi2).all():
        raise ValueError("sample_ratio = inf is not allowed: with endless data no ridge is best at every width")
    never = (mu1 == 0) | (mus == 0)
    mu1, mus = np.where(never, 1.0, mu1), np.where(never, 1.0, mus)

    def falling(excess: Array) -> Array:  # minus B_t without a ridge, at width psi2 (1 + excess)
        return -slopes(fixed_point(psi2 * (1 + np.exp(excess)), psi2, 0.0, mu1, mus), mu1, mus)[0]

    found = psi2 * (1 + np.exp(bracketed_root(falling, np.log(1e-6), np.log(WIDEST))))
    return np.asarray(np.where(never, np.inf, found))
