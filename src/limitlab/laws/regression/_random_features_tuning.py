"""Which ridge is best for random features, and when none is.

At fixed ratios the risk depends on the ridge through the unknown t of `random_features_point`, and B, V are explicit in t. With
rho = F1^2 / (tau^2 + F*^2), the risk falls as the last bit of ridge is taken away exactly if rho B_t + V_t <= 0 at lambda = 0
(docs/theory/random_features.md, section 4). In the wide limit this reads rho >= mu1^2 / mu*^2, whatever the sample size; at a
finite width B_t may be positive, and then a ridge helps at every signal-to-noise ratio.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import Refused
from limitlab.laws.regression._random_features_point import coefficients, fixed_point, slopes, weighted
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
    """The ridge of least risk; all arguments broadcast. 0 where no ridge is best, infinite where nothing can be learned.

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
        raise Refused(f"signal_to_noise = {rho[~(rho >= 0)].flat[0]:g} is not allowed: must be at least 0")
    signal, noise = np.where(np.isinf(rho), 1.0, rho), np.where(np.isinf(rho), 0.0, 1.0)
    scale = (
        (mu1**2 + mus**2) * np.maximum(1.0, 1 / np.where(rho > 0, rho, 1.0)) * np.maximum(1.0, 1 / np.minimum(psi1, psi2))
    )
    positive = scale[..., None] * np.logspace(*DECADES, SCAN)
    both_infinite = np.isinf(psi1) & np.isinf(psi2)  # there 0 is no value, but the least of the scan is as good
    first = np.where(both_infinite, positive[..., 0], 0.0)
    grid = np.concatenate([first[..., None], positive], axis=-1)
    wide = tuple(given[..., None] for given in (psi1, psi2, mu1, mus, signal, noise))
    rising = _rises(grid, *wide)
    start = _least(_risk(grid, *wide), rising)[..., None]
    low, high = (np.take_along_axis(grid, np.maximum(start + side, 0), axis=-1)[..., 0] for side in (0, 1))
    endless = (rising < 0).all(axis=-1) | (rho == 0)  # nothing to learn: the more ridge, the better
    known = (start[..., 0] < 0) | endless

    def rises(lam: Array) -> Array:  # where the answer is known, an equation that any bracket solves
        return np.where(known, lam - low, _rises(np.where(known, high, lam), psi1, psi2, mu1, mus, signal, noise))

    found = np.where(known, 0.0, bracketed_root(rises, low, high))
    return np.asarray(np.where(endless, np.inf, found))


def _least(values: Array, rises: Array) -> NDArray[np.intp]:
    """Where along the last axis the least local minimum is: between i and i + 1, or at the very start (i = -1).

    Minima are found by the sign of the derivative, because near a flat one rounding decides which value is least.
    """
    falls = rises < 0
    turns = falls[..., :-1] & ~falls[..., 1:]
    inside = np.where(turns, np.minimum(values[..., :-1], values[..., 1:]), np.inf)
    first = np.where(falls[..., :1], np.inf, values[..., :1])
    return np.asarray(np.argmin(np.concatenate([first, inside], axis=-1), axis=-1) - 1)


def _risk(lam: Array, psi1: Array, psi2: Array, mu1: Array, mus: Array, signal: Array, noise: Array) -> Array:
    """signal * B + noise * V."""
    bias, variance, *_ = coefficients(fixed_point(psi1, psi2, lam, mu1, mus))
    return weighted(signal, bias) + weighted(noise, variance)


def _rises(lam: Array, psi1: Array, psi2: Array, mu1: Array, mus: Array, signal: Array, noise: Array) -> Array:
    """The derivative of the risk in lambda, up to a positive factor."""
    dbias, dvariance = slopes(fixed_point(psi1, psi2, lam, mu1, mus), mu1, mus)
    return np.asarray(-signal * dbias - noise * dvariance)


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
        raise Refused("sample_ratio = inf is not allowed: with endless data no ridge is best at every width")
    never = (mu1 == 0) | (mus == 0)
    mu1, mus = np.where(never, 1.0, mu1), np.where(never, 1.0, mus)

    def falling(excess: Array) -> Array:  # minus B_t without a ridge, at width psi2 (1 + excess)
        return -slopes(fixed_point(psi2 * (1 + np.exp(excess)), psi2, 0.0, mu1, mus), mu1, mus)[0]

    found = psi2 * (1 + np.exp(bracketed_root(falling, np.log(1e-6), np.log(WIDEST))))
    return np.asarray(np.where(never, np.inf, found))
