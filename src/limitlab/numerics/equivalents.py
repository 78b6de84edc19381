"""Deterministic equivalents of ridge resolvents, that is, the effective ridge and its two counts of degrees of freedom.

Let S = X'X/n be the sample covariance of n rows. The population covariance has eigenvalues s_k, and the load m_k is the
multiplicity of s_k divided by n. Resolvents of S then act like resolvents of the population covariance at another ridge kappa
(docs/theory/ridge.md, eqs. 1, 9 and 13):

    kappa (1 - df1) = lambda,    df1 = sum_k m_k s_k / (s_k + kappa),    df2 = sum_k m_k s_k^2 / (s_k + kappa)^2.

Every function takes the spectrum as `eigenvalues`, shape (K,), and `load`, shape (..., K); the leading axes of `load`
broadcast against the ridge. Counts of degrees of freedom are per sample. For lambda >= 0 no result is a difference of nearly
equal numbers. Let u_k = kappa / (s_k + kappa) be the share of direction k that is *not* learned, and P the number of positive
eigenvalues per sample. Then

    1 - df1 = (1 - P) + sum m u = lambda / kappa,        1 - df2 = (1 - df1) + sum m u (1 - u).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.checks import refuse
from limitlab.errors import ConvergenceError, Refused
from limitlab.numerics.roots import bracketed_root

__all__ = ["Equivalent", "df1", "df2", "effective_ridge", "negative_ridge_limit", "ridge_equivalent"]

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

EPSILON = float(np.finfo(np.float64).eps)
MOST_NEWTON_STEPS = 300
RANK_ROUNDING = 1e-14  # a total load of positive eigenvalues this close to 1 is treated as 1
CONTINUATION_STEPS = (1, 8, 32, 128, 512)
NEWTON_STEPS_PER_STAGE = 30


class Equivalent(NamedTuple):
    """The effective ridge, its degrees of freedom and their gaps to one, as arrays of the broadcast shape.

    Attributes
    ----------
    kappa
        Effective ridge.
    df1, df2
        First and second degrees of freedom, per sample.
    gap1, gap2
        1 - df1 and 1 - df2, free of cancellation.
    """

    kappa: Array
    df1: Array
    df2: Array
    gap1: Array
    gap2: Array

    @property
    def derivative(self) -> Array:
        """Derivative of kappa in lambda, which is 1 / (1 - df2) and is infinite at the interpolation threshold."""
        with np.errstate(divide="ignore"):
            return np.asarray(1 / self.gap2)


# -- shares and degrees of freedom ----------------------------------------------------------------------------------------


def unlearned(kappa: ArrayLike, eigenvalues: ArrayLike) -> Any:
    """Return the share kappa / (s + kappa) of each direction that ridge regression does not learn.

    The share is 1 for a direction without variance. The spectrum is the last axis of the result. `kappa` may be complex, 0 or infinite.

    >>> unlearned([0.0, 1.0, np.inf], [0.0, 1.0]).tolist()
    [[1.0, 0.0], [1.0, 0.5], [1.0, 1.0]]
    """
    k, s = np.asarray(kappa)[..., None], np.asarray(eigenvalues, dtype=float)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where((s == 0) | np.isinf(k), 1.0, k / (s + k))


def learned(kappa: ArrayLike, eigenvalues: ArrayLike) -> Any:
    """Return the share s / (s + kappa) of each direction that ridge regression learns.

    The share is 0 for a direction without variance.

    >>> learned([0.0, 1.0, np.inf], [0.0, 1.0]).tolist()
    [[0.0, 1.0], [0.0, 0.5], [0.0, 0.0]]
    """
    k, s = np.asarray(kappa)[..., None], np.asarray(eigenvalues, dtype=float)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where((s == 0) | np.isinf(k), 0.0, s / (s + k))


def both_shares(kappa: ArrayLike, eigenvalues: ArrayLike) -> tuple[Any, Any]:
    """Return `unlearned` and `learned` for each direction, in little more time than a call of one of them.

    >>> [share.tolist() for share in both_shares(1.0, [0.0, 1.0, 3.0])]
    [[1.0, 0.5, 0.25], [0.0, 0.5, 0.75]]
    """
    k, s = np.asarray(kappa)[..., None], np.asarray(eigenvalues, dtype=float)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = s + k
        left, fitted = k / total, s / total
    nothing = (s == 0) | np.isinf(k)
    return (np.where(nothing, 1.0, left), np.where(nothing, 0.0, fitted)) if nothing.any() else (left, fitted)


def df1(kappa: ArrayLike, eigenvalues: ArrayLike, load: ArrayLike) -> Any:
    """Return the first degrees of freedom per sample, sum m s / (s + kappa).

    >>> float(df1(1.0, [1.0, 3.0], [0.5, 0.2]))
    0.4
    """
    return (np.asarray(load) * learned(kappa, eigenvalues)).sum(axis=-1)


def df2(kappa: ArrayLike, eigenvalues: ArrayLike, load: ArrayLike) -> Any:
    """Return the second degrees of freedom per sample, sum m s^2 / (s + kappa)^2.

    >>> float(df2(1.0, [1.0, 3.0], [0.8, 1.6]))
    1.1
    """
    return (np.asarray(load) * learned(kappa, eigenvalues) ** 2).sum(axis=-1)


def rank_gap(eigenvalues: ArrayLike, load: ArrayLike) -> Any:
    """Return 1 - P, where P is the number of positive eigenvalues per sample.

    The result is exactly 0 if P is 1 up to rounding.

    >>> float(rank_gap([0.0, 1.0], [3.0, 0.25]))
    0.75
    """
    gap = 1 - (np.asarray(load, dtype=float) * (np.asarray(eigenvalues) > 0)).sum(axis=-1)
    return np.where(np.abs(gap) < RANK_ROUNDING, 0.0, gap)


def gaps(kappa: ArrayLike, eigenvalues: ArrayLike, load: ArrayLike) -> tuple[Any, Any]:
    """Return 1 - df1 and 1 - df2 at any kappa, summed so that few digits cancel.

    >>> [float(gap) for gap in gaps(1.0, [1.0, 3.0], [0.5, 1.0])]
    [0.0, 0.3125]
    """
    k, gaps_at = np.asarray(kappa), _gaps_of(np.asarray(eigenvalues, dtype=float), np.asarray(load, dtype=float))
    with np.errstate(invalid="ignore"):
        first, second = (np.where(np.isinf(k), 1.0, gap)[()] for gap in gaps_at(k)[:2])
    return first, second


# -- the effective ridge --------------------------------------------------------------------------------------------------


def effective_ridge(ridge: ArrayLike, eigenvalues: ArrayLike, load: ArrayLike) -> Any:
    """Return the effective ridge kappa of a ridge lambda, the largest root of kappa (1 - df1(kappa)) = lambda.

    Parameters
    ----------
    ridge
        The ridge lambda. It may be positive, zero, infinite, or negative above `negative_ridge_limit`.
    eigenvalues
        Population eigenvalues, at least 0, shape (K,).
    load
        Multiplicity of each eigenvalue over the number of samples, shape (..., K).

    Raises
    ------
    ValueError
        If a ridge is at or below its limit. The message contains the limit.

    Notes
    -----
    The left side is convex on the branch of the largest root. Replacing the positive eigenvalues by their mean can only
    increase df1, because s -> s / (s + kappa) is concave. The closed root for the mean is therefore an upper bound, and
    Newton's method always decreases monotonically from there to the root. With a single eigenvalue the bound is the root.

    Examples
    --------
    >>> round(float(effective_ridge(0.1, [1.0], [2.0])), 12)
    1.184428877022
    >>> effective_ridge([0.0, 1e-3], [0.1, 2.0], [[0.3, 0.3]]).round(9).tolist()  # fewer directions than samples
    [0.0, 0.002453673]
    """
    return _effective_ridge(*_prepare(ridge, eigenvalues, load))[()]


def ridge_equivalent(ridge: ArrayLike, eigenvalues: ArrayLike, load: ArrayLike) -> Equivalent:
    """Return the effective ridge, the degrees of freedom and their gaps to one, for every element of the broadcast arrays.

    Parameters are those of `effective_ridge`.

    >>> equivalent = ridge_equivalent(0.05, [0.2, 1.0, 3.0], [0.5, 0.6, 0.4])
    >>> [round(float(value), 10) for value in (equivalent.kappa, equivalent.df1, equivalent.df2)]
    [0.4818128832, 0.8962252739, 0.6132313118]
    """
    s, m, lam, free = _prepare(ridge, eigenvalues, load)
    kappa = _effective_ridge(s, m, lam, free)
    with np.errstate(invalid="ignore", divide="ignore"):
        gap1 = np.where(kappa > 0, lam / kappa, free)  # kappa = 0 only without ridge and with at most n directions
    gap1 = np.where(np.isinf(kappa), 1.0, gap1)
    left, share = both_shares(kappa, s)
    gap2 = gap1 + (m * left * share).sum(axis=-1)
    return Equivalent(kappa[()], (m * share).sum(axis=-1), (m * share**2).sum(axis=-1), gap1[()], gap2[()])


def negative_ridge_limit(eigenvalues: ArrayLike, load: ArrayLike) -> Any:
    """Return the lower limit of a negative ridge, which is minus the left edge of the sample eigenvalues, or 0.

    With more positive population eigenvalues than samples, the smallest non-zero eigenvalue of S tends to a positive edge.
    The ridge may then be negative down to minus that edge (docs/theory/ridge.md, eq. 12). Otherwise the limit is 0, because
    limitlab does not implement the theory of a negative ridge there.

    >>> round(-float(negative_ridge_limit([1.0, 20.0], [3.8, 0.2])), 10)
    1.1000527569
    >>> float(negative_ridge_limit([1.0], [0.5]))
    0.0
    """
    kappa = np.asarray(edge_kappa(eigenvalues, load))
    lowest = kappa * gaps(kappa, eigenvalues, load)[0]  # stationary at this kappa, so errors of kappa enter at second order
    return np.where(kappa > 0, np.minimum(lowest, 0.0), 0.0)[()]


def edge_kappa(eigenvalues: ArrayLike, load: ArrayLike) -> Any:
    """Return the effective ridge at `negative_ridge_limit`, which is the solution of df2 = 1.

    The result is 0 if there are at most as many directions as samples.

    >>> round(float(edge_kappa([1.0], [4.0])), 12)
    1.0
    """
    s, m, _, free = _prepare(0.0, eigenvalues, load)
    wide = free < 0
    m = np.where(wide[..., None], m, 4.0 * (s == s.max()))  # placeholder for elements without an equation to solve
    positive = s[s > 0]
    root = np.sqrt((m * (s > 0)).sum(axis=-1)) - 1  # a single eigenvalue s has the solution s (sqrt(P) - 1)
    slack = 1 + 1e-12  # the solution is monotone in s, which gives a bracket; the slack absorbs rounding at its ends
    kappa = bracketed_root(lambda k: 1 - df2(k, s, m), positive.min() * root / slack, positive.max() * root * slack)
    return np.where(wide, kappa, 0.0)[()]


def right_edge(eigenvalues: ArrayLike, load: ArrayLike) -> Any:
    """Return the right end of the limiting spectrum of S, which is the limit of the largest sample eigenvalue.

    The right end is x (1 + sum m s / (x - s)) at the only x above every eigenvalue where df2(-x) = 1.

    >>> round(float(right_edge([1.0], [4.0])), 12)
    9.0
    """
    s, m, _, _ = _prepare(0.0, eigenvalues, load)
    spikes = np.asarray(~(m > 0).reshape(-1, s.size).any(axis=0))
    if (spikes & (s > 0)).any():
        return _edge_with_spikes(s, m, spikes)
    top, slack = s.max(), 1e-12
    alone, all_ = (m * (s == top)).sum(axis=-1), (m * (s > 0)).sum(axis=-1)  # load of the largest eigenvalue, and of all
    low, high = top * (1 + np.sqrt(alone) * (1 - slack)), top * (1 + np.sqrt(all_) * (1 + slack))
    low = np.where(alone > 0, low, top)
    x = np.asarray(bracketed_root(lambda x: 1 - (m * (s / (x[..., None] - s)) ** 2).sum(axis=-1), low, high))
    return (x * (1 + (m * s / (x[..., None] - s)).sum(axis=-1)))[()]


def _edge_with_spikes(s: Array, m: Array, spikes: NDArray[np.bool_]) -> Any:
    """Return the limit of the largest sample eigenvalue if some eigenvalues have load 0, which may cause outliers."""
    bulk, load = s[~spikes], m[..., ~spikes]
    largest = np.asarray(right_edge(bulk, load))
    for spike in s[spikes]:
        if spike > bulk.max():
            apart = (load * (bulk / (spike - bulk)) ** 2).sum(axis=-1) < 1
            position = spike * (1 + (load * bulk / (spike - bulk)).sum(axis=-1))
            largest = np.where(apart, np.maximum(largest, position), largest)
    return largest[()]


def resolvent_ridge(z: ArrayLike, eigenvalues: ArrayLike, load: ArrayLike) -> Any:
    """Return the effective ridge kappa(z) of the resolvent (S - z)^-1 at complex z off the real axis (lambda = -z).

    1 / kappa(z) is the Stieltjes transform of the n x n Gram matrix XX'/n. For Im z > 0 exactly one solution of the equation
    has Im kappa < 0 (Silverstein and Bai 1995), so a solution with that sign is the correct solution. Newton's method starts
    at the closed root for the mean eigenvalue. If it does not converge, or if Im kappa has the wrong sign, the solution is
    continued from large |z| along a ray. The number of steps along the ray is increased until both conditions hold.

    Examples
    --------
    >>> z = np.array([0.5 + 0.2j, -1.0 + 0.01j])
    >>> kappa = resolvent_ridge(z, [1.0, 4.0], [0.7, 0.8])
    >>> bool(np.allclose(-kappa * (1 - df1(kappa, [1.0, 4.0], [0.7, 0.8])), z, rtol=1e-13))
    True
    """
    s, m, lam, free = _prepare(-np.asarray(z, dtype=complex), eigenvalues, load)
    refuse((lam.imag == 0).any(), "z on the real axis is not allowed: use effective_ridge(-z) left of the spectrum")
    if (s > 0).sum() == 1:
        return _mean_root(lam, s, m, free)[()]
    shape = lam.shape
    flat, loads, frees = lam.ravel(), np.broadcast_to(m, (*shape, s.size)).reshape(-1, s.size), np.ravel(free)
    kappa = np.empty_like(flat)
    open_ = np.arange(flat.size)
    for steps in CONTINUATION_STEPS:
        candidate, good = _continued(flat[open_], s, loads[open_], frees[open_], steps)
        kappa[open_[good]] = candidate[good]
        open_ = open_[~good]
        if not open_.size:
            return kappa.reshape(shape)[()]
    raise ConvergenceError(
        f"the effective ridge was not found at {open_.size} points, such as z = {-flat[open_[0]]:.6g}",
        estimate=kappa.reshape(shape),
    )


# -- inside ---------------------------------------------------------------------------------------------------------------


def _prepare(ridge: ArrayLike, eigenvalues: ArrayLike, load: ArrayLike) -> tuple[Array, Array, Any, Array]:
    """Return the checked spectrum, the ridge broadcast against the load, and 1 - P of the same shape."""
    s, m, lam = np.asarray(eigenvalues, dtype=float), np.asarray(load, dtype=float), np.asarray(ridge)
    if s.ndim != 1 or not s.size or not (s.min() >= 0 and 0 < s.max() < np.inf):  # NaN fails every comparison
        raise Refused(
            f"eigenvalues = {eigenvalues!r} are not allowed: give finite numbers that are not negative, at least one of them above 0"
        )
    bounded = m.min(initial=0.0) >= 0 and m.max(initial=0.0) < np.inf
    if m.shape[-1:] != s.shape or not bounded or not (m * (s > 0)).any(axis=-1).all():
        raise Refused("load is not allowed: its last axis must hold one number of at least 0 per eigenvalue, some above 0")
    refuse(np.isnan(lam).any(), "ridge = nan is not allowed: must be a number")
    lam = lam if np.iscomplexobj(lam) else lam.astype(float)
    shape = np.broadcast_shapes(lam.shape, m.shape[:-1])
    free = rank_gap(s, m)
    same = lam.shape == free.shape == shape  # skips np.broadcast_to, which is slow for small arrays
    return s, m, lam if same else np.broadcast_to(lam, shape), free if same else np.broadcast_to(free, shape)


def _effective_ridge(s: Array, m: Array, lam: Array, free: Array) -> Array:
    """Return `effective_ridge` for the values that `_prepare` returns."""
    _check_ridge(lam, s, m, free)
    finite = np.isfinite(lam)
    target = np.where(finite, lam, 1.0)
    kappa = _mean_root(target, s, m, free)
    if (s > 0).sum() > 1:
        kappa = _newton_from_above(kappa, target, s, m)
    return np.where(finite, kappa, np.inf)


def _check_ridge(lam: Array, s: Array, m: Array, free: Array) -> None:
    negative = lam < 0
    if not negative.any():
        return
    if (negative & (free >= 0)).any():
        raise Refused(
            f"ridge = {lam[negative & (free >= 0)].flat[0]:g} is not allowed: must be at least 0 unless there are more "
            "directions with variance than samples (p > n)"
        )
    limit = np.broadcast_to(negative_ridge_limit(s, m), lam.shape)
    low = negative & (lam <= limit)
    if low.any():
        raise Refused(
            f"ridge = {lam[low].flat[0]:g} is not allowed: must be above {limit[low].flat[0]:.10g}, "
            "which is minus the left edge of the sample spectrum"
        )


def _mean_root(lam: Any, s: Array, m: Array, free: Array) -> Any:
    """Return the root of kappa (1 - P t / (t + kappa)) = lambda, for real or complex lambda.

    Here t is the mean of the positive eigenvalues, and P is their number per sample. The root is
    (A + sqrt((lambda + a)(lambda + b))) / 2 with A = lambda - (1 - P) t and the Marchenko-Pastur edges a, b. The product of two principal
    square roots is on the correct branch everywhere. Where the sum would cancel, the root follows from the product of the two solutions,
    which is -lambda t.
    """
    count = 1 - free
    mean = (m * s).sum(axis=-1) / (m * (s > 0)).sum(axis=-1)
    left, right = mean * (free / (1 + np.sqrt(count))) ** 2, mean * (1 + np.sqrt(count)) ** 2
    if not np.iscomplexobj(lam):
        left = np.maximum(left, -lam)  # minus the edge for the mean eigenvalue is below lambda, up to rounding
    linear, root = lam - free * mean, np.sqrt(lam + left) * np.sqrt(lam + right)
    adds = (np.conj(linear) * root).real >= 0
    with np.errstate(invalid="ignore", divide="ignore"):
        other = 2 * lam * mean / (root - linear)
    return np.where(adds, (linear + root) / 2, other)


def _newton_from_above(kappa: Array, lam: Array, s: Array, m: Array) -> Array:
    """Return the roots by Newton's method from above, for a convex increasing function, iterated until no element changes."""
    gaps_at, room = _gaps_of(s, m), np.abs(lam)
    with np.errstate(invalid="ignore", divide="ignore"):
        for _ in range(MOST_NEWTON_STEPS):
            gap1, gap2, size = gaps_at(kappa)
            excess = kappa * gap1 - lam
            step = excess / gap2
            moves = (excess > 2 * EPSILON * (kappa * size + room)) & (step > EPSILON * kappa)  # the first bound is rounding
            if not moves.any():
                return kappa
            step = np.where(moves, step, 0.0)
            kappa = kappa - step
    raise ConvergenceError("the effective ridge did not converge", estimate=kappa, accuracy=float(step.max()))


def _continued(lam: Complex, s: Array, m: Array, free: Array, steps: int) -> tuple[Complex, NDArray[np.bool_]]:
    """Return kappa, continued from large |lambda| to lambda in geometric steps, and a mask of the certified elements."""
    far = np.maximum(1.0, 30 * (m * s).sum(axis=-1) / np.abs(lam))
    kappa = _mean_root(lam * (far if steps > 1 else 1.0), s, m, free)
    small = np.zeros(lam.shape, dtype=bool)
    gaps_at = _gaps_of(s, m)
    for stage in range(steps):
        target = lam * far ** (1 - (stage + 1) / steps)
        for _ in range(NEWTON_STEPS_PER_STAGE):
            with np.errstate(all="ignore"):
                gap1, gap2, size = gaps_at(kappa)
                residual = kappa * gap1 - target
                small = np.abs(residual) <= 8 * EPSILON * (np.abs(kappa) * size + np.abs(target))
                if small.all():
                    break
                kappa = np.where(small, kappa, kappa - residual / gap2)
    return kappa, small & (kappa.imag * lam.imag > 0)


def _gaps_of(s: Array, m: Array) -> Callable[[Any], tuple[Any, Any, Any]]:
    """Return a function of finite kappa that computes 1 - df1 and 1 - df2 with the least cancellation.

    The third result of that function is the sum of the magnitudes of the terms of 1 - df1, which bounds its rounding error.
    """
    free = rank_gap(s, m)
    if not s.all():
        s, m = s[s > 0], m[..., s > 0]
    many = free < 0
    wide, start, sign = many[..., None], np.where(many, 1.0, free), np.where(many, -1.0, 1.0)

    def gaps_at(kappa: Any) -> tuple[Any, Any, Any]:
        # With at most as many directions as samples all terms are positive. With more, the terms of df1 stay of order one.
        k = kappa[..., None]
        share = np.where(wide, s, k) / (s + k)  # the learned share if wide, otherwise the share that is not learned
        terms = m * share
        first, second = terms.sum(axis=-1), (terms * np.where(wide, share, 2 - share)).sum(axis=-1)
        size = first if first.dtype.kind == "f" else np.abs(terms).sum(axis=-1)
        return start + sign * first, start + sign * second, start + size

    return gaps_at
