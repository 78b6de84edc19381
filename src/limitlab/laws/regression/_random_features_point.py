"""Fixed point of random-features ridge regression, one equation for an unknown t that determines all observables.

With the activation's moments mu1, mu* and g = mu*^2 t + u, u = mu1^2 t / (1 + mu1^2 t), the unknown t > 0 solves
(docs/theory/random_features.md, eq. 4)

    lambda t = (1 - g/psi1)(1 - g/psi2),     0 < g < min(psi1, psi2).

The code uses the inverse ratios 1/psi, so that infinite width and infinitely many samples correspond to the value 0. The smaller of the
shares s1 = 1 - g/psi1 and s2 = 1 - g/psi2 tends to 0 with lambda. They are not computed by subtraction, so that no digits are lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import ConvergenceError, Refused
from limitlab.numerics.roots import bracketed_root

Array = NDArray[np.float64]


Flags = NDArray[np.bool_]


class FixedPoint(NamedTuple):
    """Solution t and the quantities that enter the observables, all at least 0, with the symbols of the theory page."""

    t: Array
    u: Array  # mu1^2 t / (1 + mu1^2 t)
    v: Array  # 1 - u
    g: Array  # mu*^2 t + u
    q: Array  # g - u^2
    tv: Array  # t v, finite also for infinite t
    tq: Array  # t q, finite also for infinite t
    width_share: Array  # s1 = 1 - g/psi1
    sample_share: Array  # s2 = 1 - g/psi2
    per_width: Array  # 1/psi1
    per_sample: Array  # 1/psi2
    det: Array  # s1 s2 + q (s1/psi2 + s2/psi1); zero only at the ridgeless threshold


def fixed_point(
    width_ratio: ArrayLike, sample_ratio: ArrayLike, ridge: ArrayLike, linear: ArrayLike, nonlinear: ArrayLike
) -> FixedPoint:
    """Return the solution of the equation for t. All arguments broadcast.

    Parameters
    ----------
    width_ratio, sample_ratio
        psi1 = N/d and psi2 = n/d, positive, possibly infinite (not both when the ridge is 0).
    ridge
        lambda >= 0; infinity is allowed.
    linear, nonlinear
        mu1 and mu* of the activation, not both 0.

    Examples
    --------
    >>> point = fixed_point(2.0, 3.0, [0.0, 0.01], 0.5, 0.3)
    >>> bool(np.allclose([0.0, 0.01] * point.t, point.width_share * point.sample_share))
    True
    >>> point.g.round(6).tolist()  # without a ridge, g is the smaller ratio
    [2.0, 1.586302]
    """
    psi1, psi2, lam, mu1, mus = np.broadcast_arrays(
        *(np.asarray(argument, dtype=float) for argument in (width_ratio, sample_ratio, ridge, linear, nonlinear))
    )
    _check(psi1, psi2, lam, mu1, mus)
    low, high = np.minimum(psi1, psi2), np.maximum(psi1, psi2)
    one_sided = np.isinf(high)
    part, whole = np.where(one_sided, 0.0, low), np.where(one_sided, 1.0, high)
    ratio, gap = part / whole, (whole - part) / whole
    linear_limit = (lam == 0) & (mus == 0) & (low >= 1)  # no finite root: u reaches 1 first
    plain = ~linear_limit & np.isfinite(lam)
    t = _root(low, ratio, gap, np.where(plain, lam, 1.0), mu1**2, mus**2)
    t = np.where(linear_limit, np.inf, np.where(plain, t, 0.0))
    small = np.where(
        plain, _small_share(t=np.where(plain, t, 0.0), lam=np.where(plain, lam, 0.0), ratio=ratio, gap=gap), 1.0
    )
    small = np.where(linear_limit, 1 - 1 / low, small)
    large = gap + ratio * small
    return _parts(t, mu1**2, mus**2, np.where(psi1 <= psi2, small, large), np.where(psi1 <= psi2, large, small), psi1, psi2)


def _root(low: Array, ratio: Array, gap: Array, lam: Array, mu1_sq: Array, mus_sq: Array) -> Array:
    """Return t > 0 with g(t)/low + s(t) = 1, where s (gap + ratio s) = lambda t. The left side is increasing and concave in t."""
    with np.errstate(divide="ignore"):  # this start is left of the root, because neither summand exceeds 1/2 there
        start = np.minimum(low / (2 * (mu1_sq + mus_sq)), (gap + ratio / 2) / (2 * lam))
    excess = np.where(np.isinf(low), 1.0, (np.where(np.isinf(low), 1.0, low) - 1) / low)
    return concave_root(_balance, start, 1 / low, excess, ratio, gap, lam, mu1_sq, mus_sq)


def _balance(
    t: Array, per: Array, excess: Array, ratio: Array, gap: Array, lam: Array, mu1_sq: Array, mus_sq: Array
) -> tuple[Array, Array]:
    """Return g/low + s - 1 and its derivative in t, with 1/low = `per` and 1 - 1/low = `excess`."""
    x = mu1_sq * t
    v = 1 / (1 + x)
    # 1 - u/low, computed from v = 1 - u near u = 1, so that no digits are lost if the smaller ratio is near 1
    rest = np.where(x < 1, 1 - per * x * v, excess + per * v)
    root = _discriminant(t, lam, ratio, gap)
    value = per * mus_sq * t + 2 * lam * t / (gap + root) - rest
    return value, per * (mus_sq + mu1_sq * v**2) + lam / root


def _small_share(t: Array, lam: Array, ratio: Array, gap: Array) -> Array:
    """Return the smaller of s1 and s2, which is the positive root of s (gap + ratio s) = lambda t."""
    return np.asarray(2 * lam * t / (gap + _discriminant(t, lam, ratio, gap)))


def _discriminant(t: Array, lam: Array, ratio: Array, gap: Array) -> Array:
    root = np.sqrt(gap**2 + 4 * ratio * lam * t)
    return np.where(root > 0, root, 1.0)  # it is zero only without a ridge at equal ratios; then s = 0 for every value here


def _parts(t: Array, mu1_sq: Array, mus_sq: Array, s1: Array, s2: Array, psi1: Array, psi2: Array) -> FixedPoint:
    finite = np.isfinite(t)
    x = np.where(finite, mu1_sq * np.where(finite, t, 0.0), np.inf)
    v = 1 / (1 + x)
    tv = np.where(finite, np.where(finite, t, 0.0) * v, 1 / np.where(finite, 1.0, mu1_sq))
    u = mu1_sq * tv
    noise = mus_sq * np.where(finite, t, 0.0)  # t is infinite only for a linear activation
    q = noise + u * v
    per1, per2 = 1 / psi1, 1 / psi2
    return FixedPoint(
        t=t,
        u=u,
        v=v,
        g=noise + u,
        q=q,
        tv=tv,
        tq=noise * np.where(finite, t, 0.0) + u * tv,
        width_share=s1,
        sample_share=s2,
        per_width=per1,
        per_sample=per2,
        det=s1 * s2 + q * (s1 * per2 + s2 * per1),
    )


def coefficients(point: FixedPoint) -> tuple[Array, Array, Array, Array]:
    """Return B, V, and the squared norm of the ridge coefficients per unit of signal and of noise (eqs. 5 and 7).

    >>> bias, variance, *_ = coefficients(fixed_point(1.0, 3.0, 0.0, 0.5, 0.3))
    >>> float(variance.round(12))  # psi1 / (psi2 - psi1), for every activation
    0.5
    """
    _, u, v, g, q, tv, tq, s1, s2, per1, per2, det = point
    with np.errstate(divide="ignore", invalid="ignore"):  # det = 0 at the ridgeless threshold
        bias = v * (s1 * v + q * per1) / det
        variance = per2 * (g * q * per1 + u**2 * s1) / det
        per_signal = per1 * tv * (q * per2 + u * s2) / det
        per_noise = per1 * per2 * tq / det
    # For a linear activation without a ridge and a smaller ratio of exactly 1, numerators vanish with det, at the rate of v.
    edge = (det == 0) & (v == 0)
    if edge.any():
        both, samples, finite = edge & (per1 == per2), edge & (per2 == 1), edge & (per2 < 1)
        bias = np.where(edge, np.where(both, 1 / 3, 0.0), bias)
        variance = np.where(samples, np.inf, np.where(finite, per2 / np.where(finite, 1 - per2, 1.0), variance))
        per_signal = np.where(edge, np.where(per1 > 0, np.inf, 0.0), per_signal)
        per_noise = np.where(edge, np.where(per1 * per2 > 0, np.inf, 0.0), per_noise)
    return bias, variance, per_signal, per_noise


def weighted(weight: Array, coefficient: Array) -> Array:
    """Return weight * coefficient, with the value 0 for weight 0 and an infinite coefficient.

    >>> weighted(np.array([0.0, 1.0]), np.array([np.inf, np.inf])).tolist()
    [0.0, inf]
    """
    absent = np.asarray(weight == 0)
    if not absent.any():
        return np.asarray(weight * coefficient)
    return np.asarray(weight * np.where(absent, 0.0, coefficient))


def slopes(point: FixedPoint, linear: ArrayLike, nonlinear: ArrayLike) -> tuple[Array, Array]:
    """Return the derivatives in t of the coefficients B and V at a fixed point, both multiplied by the square of `det`.

    The ridge decreases as t increases (d lambda/dt = -det/t^2). A risk F1^2 B + T V therefore decreases with lambda where the sum of
    these derivatives, weighted by F1^2 and T, is positive.

    >>> point = fixed_point(np.inf, 3.0, 0.0, 0.5, 0.3)
    >>> falling_bias, rising_variance = slopes(point, 0.5, 0.3)
    >>> float((-rising_variance / falling_bias).round(12))  # the wide limit's threshold, (0.5/0.3)^2
    2.777777777778
    """
    mu1_sq, mus_sq = np.asarray(linear, dtype=float) ** 2, np.asarray(nonlinear, dtype=float) ** 2
    _, u, v, g, q, _, _, s1, s2, per1, per2, det = point
    du = mu1_sq * v**2
    dg = mus_sq + du
    dq = dg - 2 * u * du
    ds1, ds2 = -per1 * dg, -per2 * dg
    ddet = ds1 * s2 + s1 * ds2 + dq * (s1 * per2 + s2 * per1) + q * (ds1 * per2 + ds2 * per1)
    bias, dbias = v * (s1 * v + q * per1), v * (ds1 * v - s1 * du + dq * per1) - du * (s1 * v + q * per1)
    variance = per2 * (g * q * per1 + u**2 * s1)
    dvariance = per2 * (per1 * (dg * q + g * dq) + 2 * u * du * s1 + u**2 * ds1)
    return np.asarray(dbias * det - bias * ddet), np.asarray(dvariance * det - variance * ddet)


def _check(psi1: Array, psi2: Array, lam: Array, mu1: Array, mus: Array) -> None:
    """Raise `Refused` for arguments without a limit, with the first value that is not allowed."""
    constant, undecided = (mu1 == 0) & (mus == 0), np.isinf(psi1) & np.isinf(psi2) & (lam == 0)
    rules = (
        ("width_ratio", psi1, psi1 > 0, "must be above 0"),
        ("sample_ratio", psi2, psi2 > 0, "must be above 0"),
        ("ridge", lam, lam >= 0, "must be at least 0"),
        ("linear", mu1, np.isfinite(mu1), "must be finite"),
        ("nonlinear", mus, (mus >= 0) & np.isfinite(mus), "must be at least 0 and finite"),
        ("nonlinear", mus, ~constant, "must be above 0 where linear = 0: a constant activation has no features"),
        ("ridge", lam, ~undecided, "must be above 0 where width_ratio and sample_ratio are both infinite"),
    )
    for name, values, good, allowed in rules:
        if not good.all():
            raise Refused(f"{name} = {float(values[~good].flat[0]):g} is not allowed: {allowed}")


# -- roots of increasing concave functions, by Newton's method from the left, which cannot overshoot -------------------

ValueAndSlope = Callable[..., tuple[Any, Any]]

LAST_STEP = 16 * float(np.finfo(np.float64).eps)
"""Relative size of a step at or below which the iteration stops."""
MOST_STEPS = 2000
"""Largest number of steps. Iterates far left of the root at least double, and 1100 doublings span all floating-point numbers."""


def concave_root(function: ValueAndSlope, start: ArrayLike, *parameters: ArrayLike) -> Array:
    """Return the root t > 0 of an increasing concave function, for every element, to rounding level.

    Parameters
    ----------
    function
        `function(t, *parameters)` returns value and slope. All arguments are flat arrays of equal length, with one equation per
        element. Only equations that have not converged are evaluated.
    start
        Positive points left of the roots or equal to them.
    parameters
        Arrays that broadcast with `start`.

    Returns
    -------
    ndarray
        The roots, with the common broadcast shape of `start` and `parameters`.

    Raises
    ------
    ValueError
        If a starting point is not left of the root.
    ConvergenceError
        If the value of the function is nan, or if the function increases too slowly to have a root. `estimate` holds the last points.

    Examples
    --------
    >>> def square_root(t, c):
    ...     return np.sqrt(t) - c, 0.5 / np.sqrt(t)
    >>> concave_root(square_root, 1e-6, [1.0, 2.0, 3.0])
    array([1., 4., 9.])
    """
    arrays = np.broadcast_arrays(*(np.asarray(argument, dtype=float) for argument in (start, *parameters)))
    shape = arrays[0].shape
    t, *inputs = (array.ravel() for array in arrays)
    roots, where = t.copy(), np.arange(t.size)
    for steps in range(MOST_STEPS):
        value, slope = function(t, *inputs)
        step = -value / slope
        if np.isnan(step).any():
            raise ConvergenceError(
                f"the value of the function is nan at {t[np.isnan(step)][0]!r}", estimate=roots.reshape(shape)
            )
        if steps == 0 and (step < -1e-8 * t).any():
            raise Refused(f"start = {t[step < -1e-8 * t][0]!r} is not allowed: must be left of the root")
        t = t + step
        roots[where] = t
        going = step > LAST_STEP * t
        if not going.any():
            return roots.reshape(shape)
        if not going.all():
            t, where, inputs = t[going], where[going], [argument[going] for argument in inputs]
    raise ConvergenceError(f"no root up to {t.max():.3g}", estimate=roots.reshape(shape), accuracy=float(np.max(step / t)))


# -- the best ridge for random features, and the parameters at which it is 0 -------------------------------------------

DECADES = (-14, 8)
"""Range of the search for the best ridge, in powers of ten of (mu1^2 + mu*^2) max(1, 1/rho) max(1, 1/psi1, 1/psi2)."""
SCAN = 265
"""Number of points of this search, twelve per decade."""
WIDEST = 1e12
"""Largest width N/d of the search for the change of sign."""


def best_ridge(
    width_ratio: ArrayLike, sample_ratio: ArrayLike, linear: ArrayLike, nonlinear: ArrayLike, signal_to_noise: ArrayLike
) -> Array:
    """Return the ridge of least risk. All arguments broadcast.

    It is 0 if the risk is least without a ridge, and infinite if nothing can be learned. The function scans the risk along lambda
    and then computes the zero of its derivative to rounding.

    Parameters
    ----------
    width_ratio, sample_ratio, linear, nonlinear
        As in `random_features.risk`.
    signal_to_noise
        rho = F1^2 / (tau^2 + F*^2), which is infinite if tau and F* are 0.

    Examples
    --------
    In the wide limit the best ridge is max(0, mu1^2/rho - mu*^2) / psi2:

    >>> best_ridge(np.inf, 3.0, 0.5, 0.3, [1.0, 2.0, 50.0]).round(12).tolist()
    [0.053333333333, 0.011666666667, 0.0]
    """
    psi1, psi2, mu1, mus, rho = np.broadcast_arrays(
        *(np.asarray(argument, dtype=float) for argument in (width_ratio, sample_ratio, linear, nonlinear, signal_to_noise))
    )
    if not (rho >= 0).all():
        raise Refused(f"signal_to_noise = {rho[~(rho >= 0)].flat[0]:g} is not allowed: must be at least 0")
    signal, noise = np.where(np.isinf(rho), 1.0, rho), np.where(np.isinf(rho), 0.0, 1.0)
    scale = (
        (mu1**2 + mus**2) * np.maximum(1.0, 1 / np.where(rho > 0, rho, 1.0)) * np.maximum(1.0, 1 / np.minimum(psi1, psi2))
    )
    positive = scale[..., None] * np.logspace(*DECADES, SCAN)
    both_infinite = np.isinf(psi1) & np.isinf(
        psi2
    )  # ridge 0 is not allowed there, and the smallest positive ridge of the scan replaces it
    first = np.where(both_infinite, positive[..., 0], 0.0)
    grid = np.concatenate([first[..., None], positive], axis=-1)
    wide = tuple(argument[..., None] for argument in (psi1, psi2, mu1, mus, signal, noise))
    rising = _rises(grid, *wide)
    start = _least(_risk(grid, *wide), rising)[..., None]
    low, high = (np.take_along_axis(grid, np.maximum(start + side, 0), axis=-1)[..., 0] for side in (0, 1))
    endless = (rising < 0).all(axis=-1) | (rho == 0)  # nothing can be learned, and the risk falls with the ridge
    known = (start[..., 0] < 0) | endless

    def rises(lam: Array) -> Array:  # if the result is known, use an equation that has a root in any bracket
        return np.where(known, lam - low, _rises(np.where(known, high, lam), psi1, psi2, mu1, mus, signal, noise))

    best = np.where(known, 0.0, bracketed_root(rises, low, high))
    return np.asarray(np.where(endless, np.inf, best))


def _least(values: Array, rises: Array) -> NDArray[np.intp]:
    """Return i such that the least local minimum along the last axis is between i and i + 1, or -1 if it is at the start.

    The minima are located by the sign of the derivative, because near a flat minimum rounding determines which value is least.
    """
    falls = rises < 0
    turns = falls[..., :-1] & ~falls[..., 1:]
    inside = np.where(turns, np.minimum(values[..., :-1], values[..., 1:]), np.inf)
    first = np.where(falls[..., :1], np.inf, values[..., :1])
    return np.asarray(np.argmin(np.concatenate([first, inside], axis=-1), axis=-1) - 1)


def _risk(lam: Array, psi1: Array, psi2: Array, mu1: Array, mus: Array, signal: Array, noise: Array) -> Array:
    """Return signal * B + noise * V."""
    bias, variance, *_ = coefficients(fixed_point(psi1, psi2, lam, mu1, mus))
    return weighted(signal, bias) + weighted(noise, variance)


def _rises(lam: Array, psi1: Array, psi2: Array, mu1: Array, mus: Array, signal: Array, noise: Array) -> Array:
    """Return the derivative of the risk in lambda, up to a positive factor."""
    dbias, dvariance = slopes(fixed_point(psi1, psi2, lam, mu1, mus), mu1, mus)
    return np.asarray(-signal * dbias - noise * dvariance)


def snr_threshold(width_ratio: ArrayLike, sample_ratio: ArrayLike, linear: ArrayLike, nonlinear: ArrayLike) -> Array:
    """Return the signal-to-noise ratio rho above which the best ridge is 0, or infinity if a ridge always helps.

    All arguments broadcast.

    >>> snr_threshold([4.0, 100.0, np.inf], 3.0, 0.5, 0.3).round(6).tolist()
    [inf, 4.352534, 2.777778]
    """
    psi1, psi2, mu1, mus = np.broadcast_arrays(
        *(np.asarray(argument, dtype=float) for argument in (width_ratio, sample_ratio, linear, nonlinear))
    )
    endless = np.isinf(psi2)  # with infinitely many samples a ridge cannot reduce the risk
    dbias, dvariance = slopes(fixed_point(psi1, np.where(endless, 1.0, psi2), 0.0, mu1, mus), mu1, mus)
    helps = dbias < 0
    threshold = np.where(helps, -dvariance / np.where(helps, dbias, -1.0), np.inf)
    blind = np.isinf(psi1) & (mu1 == 0)  # nothing is learned at any ridge
    return np.asarray(np.where(endless | blind, 0.0, np.where(mus == 0, np.inf, threshold)))


def ridgeless_width(sample_ratio: ArrayLike, linear: ArrayLike, nonlinear: ArrayLike) -> Array:
    """Return the width N/d below which a ridge helps at every signal-to-noise ratio. All arguments broadcast.

    At this width the derivative B_t of equation (10) changes sign. The width is infinite for linear activations (mu* = 0) and for
    features that cannot represent a linear signal (mu1 = 0).

    >>> ridgeless_width([1.5, 3.0, 10.0], 0.5, (1 / 4 - 1 / (2 * np.pi)) ** 0.5).round(4).tolist()
    [5.0966, 11.1794, 62.158]
    """
    psi2, mu1, mus = np.broadcast_arrays(
        *(np.asarray(argument, dtype=float) for argument in (sample_ratio, linear, nonlinear))
    )
    if not np.isfinite(psi2).all():
        raise Refused(
            "sample_ratio = inf is not allowed: must be finite; with infinitely many samples the best ridge is always 0"
        )
    never = (mu1 == 0) | (mus == 0)
    mu1, mus = np.where(never, 1.0, mu1), np.where(never, 1.0, mus)

    def falling(excess: Array) -> Array:  # minus B_t without a ridge, at width psi2 (1 + excess)
        return -slopes(fixed_point(psi2 * (1 + np.exp(excess)), psi2, 0.0, mu1, mus), mu1, mus)[0]

    width = psi2 * (1 + np.exp(bracketed_root(falling, np.log(1e-6), np.log(WIDEST))))
    return np.asarray(np.where(never, np.inf, width))
