"""Learning curves of ridge regression on a finite population: n points drawn from N, tested on the other N - n.

The population is described by the eigenvalues s_k of its Gram matrix K/N and by the energies c_k of the targets along its
eigenvectors, c_k = (u_k.y)^2 / N. A fit on a random subset S of n points solves (K_SS / n + lambda) a = y_S. With
df1 = sum s/(s + kappa) and df2 = sum s^2/(s + kappa)^2, now totals,

    kappa (1 - df1/n) = lambda (1 - df1/N),                                                                     (1)
    test = kappa' sum_k c_k (kappa / (s_k + kappa))^2 / (1 - df1/N)^2,       train = (1 - df1/n)^2 test,          (2)
    kappa' = dkappa/dlambda = (1 - df1/N) / (1 - df2/n - (lambda/kappa)(df1 - df2)/N).                            (3)

(1) is the law of a random compression of a matrix (free probability: the R-transform of an n x n corner at x is that of the
whole at n x / N); (2) is the leave-one-out identity. As N grows they become the law of independent draws
(`ridge_equivalent`); as n grows to N they become generalised cross-validation of the fit to everything.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import Refused
from limitlab.numerics.equivalents import both_shares, effective_ridge, gaps, unlearned
from limitlab.numerics.roots import bracketed_root

Array = NDArray[np.float64]


class LearningCurve(NamedTuple):
    """Predicted errors, as arrays of the broadcast shape of samples, ridge and population.

    Attributes
    ----------
    test_error
        Mean squared error on the points that were not drawn.
    train_error
        Mean squared residual on the points that were drawn.
    degrees_of_freedom
        Trace of the fit's hat matrix over n.
    effective_ridge
        kappa.
    """

    test_error: Array
    train_error: Array
    degrees_of_freedom: Array
    effective_ridge: Array


def learning_curve(
    samples: ArrayLike,
    ridge: ArrayLike,
    eigenvalues: ArrayLike,
    energies: ArrayLike,
    population: ArrayLike = np.inf,
    multiplicities: ArrayLike = 1.0,
) -> LearningCurve:
    """Errors of ridge regression on `samples` points of a population with this spectrum and these target energies.

    Parameters
    ----------
    samples
        n, above 0 and below `population`.
    ridge
        lambda >= 0 of (K_SS / n + lambda); scikit-learn's alpha is n lambda on the raw Gram matrix.
    eigenvalues, energies
        s_k and c_k, one-dimensional. Energy at s_k = 0 is noise that no fit explains.
    population
        N; infinity means independent draws from the population.
    multiplicities
        How many eigenvectors share each eigenvalue (their energies added up); they add up to at most N.

    Returns
    -------
    LearningCurve
        Infinite where the fit interpolates exactly as many directions as it has samples and there is noise.

    Examples
    --------
    >>> s, c = 1 / np.arange(1, 41) ** 1.5, np.arange(1, 41) ** -1.2 / 2
    >>> curve = learning_curve(15, [0.0, 0.01, 0.1], s, c, population=40)
    >>> curve.test_error.round(6).tolist()
    [0.772091, 0.758998, 0.821495]
    >>> learning_curve(15, 0.01, s, c).test_error.round(6)
    np.float64(0.496162)
    """
    n, lam, total, s, c, m = _checked(samples, ridge, eigenvalues, energies, population, multiplicities)
    kappa = _effective_ridge(n, lam, total, s, m)
    positive = np.where(s > 0, m, 0.0)
    rank = positive.sum()
    u, a = both_shares(kappa, s)
    # 1 - df1/n and 1 - df1/N: at kappa = 0, and in the finite population, from the rank; otherwise from (1) itself
    gap_all = (1 - rank / total) + (u * positive).sum(axis=-1) / total
    with np.errstate(invalid="ignore", divide="ignore"):
        shrink = np.where(kappa > 0, lam / kappa, 1 - rank / n)
    gap_drawn = np.where(kappa > 0, shrink * gap_all, shrink)
    mixed = (m * u * a).sum(axis=-1)  # df1 - df2
    # the denominator of (3) without cancellation; at kappa = 0 it is 1 - rank/n, since mixed = 0
    slope = gap_drawn + mixed * (1 / n - np.where(kappa > 0, shrink, 0.0) / total)
    energy = (c * u**2).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        test = np.where(energy == 0, 0.0, energy / (gap_all * slope))
        train = np.where(gap_drawn > 0, gap_drawn**2 * test, 0.0)
    return LearningCurve(test[()], train[()], (m * a).sum(axis=-1) / n, kappa[()])


def _effective_ridge(n: Array, lam: Array, total: Array, s: Array, m: Array) -> Any:
    """kappa of (1). Between its ridgeless value (or the value of a full fit) and lambda + tr/n there is one root."""
    positive = np.where(s > 0, m, 0.0)
    rank = positive.sum()
    low = np.asarray(effective_ridge(0.0, s, m / n[..., None]))
    if (np.isinf(total) | (lam == 0)).all():
        return np.asarray(effective_ridge(lam, s, m / n[..., None]))
    low = np.where(rank > n, low, lam * np.maximum(1 - rank / total, 0.0))
    high = lam + (m * s).sum() / n

    def excess(kappa: Any) -> Any:
        left = (unlearned(kappa, s) * positive).sum(axis=-1)
        return kappa * gaps(kappa, s, m / n[..., None])[0] - lam * ((1 - rank / total) + left / total)

    slack = 1e-12
    return np.where(lam > 0, bracketed_root(excess, low * (1 - slack), high * (1 + slack)), np.where(rank > n, low, 0.0))


def _checked(
    samples: ArrayLike,
    ridge: ArrayLike,
    eigenvalues: ArrayLike,
    energies: ArrayLike,
    population: ArrayLike,
    multiplicities: ArrayLike,
) -> tuple[Array, Array, Array, Array, Array, Array]:
    n, lam, total = np.broadcast_arrays(*(np.asarray(given, dtype=float) for given in (samples, ridge, population)))
    s, c = np.asarray(eigenvalues, dtype=float), np.asarray(energies, dtype=float)
    if not (n > 0).all() or np.isinf(n).any():
        raise Refused(f"samples = {n[~((n > 0) & np.isfinite(n))].flat[0]:g} is not allowed: must be above 0 and finite")
    if not (n < total).all():
        many = ~(n < total)
        raise Refused(
            f"samples = {n[many].flat[0]:g} is not allowed: must be below population = {total[many].flat[0]:g}; "
            "for a fit to every point use generalised cross-validation"
        )
    if not (lam >= 0).all() or np.isinf(lam).any():
        raise Refused(
            f"ridge = {lam[~((lam >= 0) & np.isfinite(lam))].flat[0]:g} is not allowed: must be at least 0 and finite"
        )
    if s.ndim != 1 or s.shape != c.shape:
        raise Refused(f"energies is not allowed: must have one entry per eigenvalue, got shapes {c.shape} and {s.shape}")
    if not (c >= 0).all() or not np.isfinite(c).all():
        raise Refused("energies is not allowed: must be finite and at least 0")
    m = np.broadcast_to(np.asarray(multiplicities, dtype=float), s.shape)
    if not (m >= 0).all() or not np.isfinite(m).all():
        raise Refused("multiplicities is not allowed: must be finite and at least 0, one per eigenvalue")
    if m.sum() > total.min():
        raise Refused(f"eigenvalues is not allowed: {m.sum():g} of them in a population of {total.min():g} points")
    return n, lam, total, s, c, m
