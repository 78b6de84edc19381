"""The fixed point behind random-features ridge regression: one unknown t, from which everything else is read off.

With the activation's moments mu1, mu* and g = mu*^2 t + u, u = mu1^2 t / (1 + mu1^2 t), the unknown t > 0 solves
(docs/theory/random_features.md, eq. 4)

    lambda t = (1 - g/psi1)(1 - g/psi2),     0 < g < min(psi1, psi2).

Written with the inverse ratios 1/psi, infinite width and infinitely many samples are the ordinary value 0. The shares
s1 = 1 - g/psi1 and s2 = 1 - g/psi2 vanish as lambda does, and are never formed by subtraction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import Refused
from limitlab.laws.regression._concave import concave_root

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]


class FixedPoint(NamedTuple):
    """The unknown and what the observables are made of; every entry is positive or zero. Symbols as in the theory page."""

    t: Array
    u: Array  # mu1^2 t / (1 + mu1^2 t)
    v: Array  # 1 - u
    g: Array  # mu*^2 t + u
    q: Array  # g - u^2
    tv: Array  # t v, finite also where t is not
    tq: Array  # t q, likewise
    width_share: Array  # s1 = 1 - g/psi1
    sample_share: Array  # s2 = 1 - g/psi2
    per_width: Array  # 1/psi1
    per_sample: Array  # 1/psi2
    det: Array  # s1 s2 + q (s1/psi2 + s2/psi1); zero only at the ridgeless threshold


def fixed_point(
    width_ratio: ArrayLike, sample_ratio: ArrayLike, ridge: ArrayLike, linear: ArrayLike, nonlinear: ArrayLike
) -> FixedPoint:
    """Solve the equation for t; all arguments broadcast.

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
        *(np.asarray(given, dtype=float) for given in (width_ratio, sample_ratio, ridge, linear, nonlinear))
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
    """t > 0 with g(t)/low + s(t) = 1, where s (gap + ratio s) = lambda t. The left side increases and is concave."""
    with np.errstate(divide="ignore"):  # to the left of the root: where neither summand can exceed 1/2
        start = np.minimum(low / (2 * (mu1_sq + mus_sq)), (gap + ratio / 2) / (2 * lam))
    excess = np.where(np.isinf(low), 1.0, (np.where(np.isinf(low), 1.0, low) - 1) / low)
    return concave_root(_balance, start, 1 / low, excess, ratio, gap, lam, mu1_sq, mus_sq)


def _balance(
    t: Array, per: Array, excess: Array, ratio: Array, gap: Array, lam: Array, mu1_sq: Array, mus_sq: Array
) -> tuple[Array, Array]:
    """g/low + s - 1 and its derivative in t, with 1/low = `per` and 1 - 1/low = `excess`."""
    x = mu1_sq * t
    v = 1 / (1 + x)
    # 1 - u/low: near u = 1 through v = 1 - u, so that no digits are lost when the smaller ratio is near 1
    rest = np.where(x < 1, 1 - per * x * v, excess + per * v)
    root = _discriminant(t, lam, ratio, gap)
    value = per * mus_sq * t + 2 * lam * t / (gap + root) - rest
    return value, per * (mus_sq + mu1_sq * v**2) + lam / root


def _small_share(t: Array, lam: Array, ratio: Array, gap: Array) -> Array:
    """The smaller of s1 and s2: the positive root of s (gap + ratio s) = lambda t."""
    return np.asarray(2 * lam * t / (gap + _discriminant(t, lam, ratio, gap)))


def _discriminant(t: Array, lam: Array, ratio: Array, gap: Array) -> Array:
    root = np.sqrt(gap**2 + 4 * ratio * lam * t)
    return np.where(root > 0, root, 1.0)  # zero only without a ridge at equal ratios, where s = 0 whatever is put here


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
    """B, V, and the squared norm of the ridge coefficients per unit of signal and of noise (eqs. 5 and 7).

    >>> bias, variance, *_ = coefficients(fixed_point(1.0, 3.0, 0.0, 0.5, 0.3))
    >>> float(variance.round(12))  # psi1 / (psi2 - psi1), for every activation
    0.5
    """
    _, u, v, g, q, tv, tq, s1, s2, per1, per2, det = point
    with np.errstate(divide="ignore", invalid="ignore"):  # det = 0: the ridgeless threshold
        bias = v * (s1 * v + q * per1) / det
        variance = per2 * (g * q * per1 + u**2 * s1) / det
        per_signal = per1 * tv * (q * per2 + u * s2) / det
        per_noise = per1 * per2 * tq / det
    # A linear activation without a ridge, when the smaller ratio is exactly 1: numerators vanish with det, at the rate of v.
    edge = (det == 0) & (v == 0)
    if edge.any():
        both, samples, finite = edge & (per1 == per2), edge & (per2 == 1), edge & (per2 < 1)
        bias = np.where(edge, np.where(both, 1 / 3, 0.0), bias)
        variance = np.where(samples, np.inf, np.where(finite, per2 / np.where(finite, 1 - per2, 1.0), variance))
        per_signal = np.where(edge, np.where(per1 > 0, np.inf, 0.0), per_signal)
        per_noise = np.where(edge, np.where(per1 * per2 > 0, np.inf, 0.0), per_noise)
    return bias, variance, per_signal, per_noise


def weighted(weight: Array, coefficient: Array) -> Array:
    """weight * coefficient, where an infinite coefficient of something absent counts 0.

    >>> weighted(np.array([0.0, 1.0]), np.array([np.inf, np.inf])).tolist()
    [0.0, inf]
    """
    absent = np.asarray(weight == 0)
    if not absent.any():
        return np.asarray(weight * coefficient)
    return np.asarray(weight * np.where(absent, 0.0, coefficient))


def slopes(point: FixedPoint, linear: ArrayLike, nonlinear: ArrayLike) -> tuple[Array, Array]:
    """Derivatives in t of the coefficients B and V at a fixed point, both times the square of `det`.

    Along t the ridge falls (d lambda/dt = -det/t^2), so a risk F1^2 B + T V decreases with lambda where these, weighted by
    F1^2 and T, add up to something positive.

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
    """Refuse what has no limit, naming the first offending value."""
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
