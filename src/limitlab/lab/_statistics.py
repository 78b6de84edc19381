"""The statistics of a comparison: extrapolation to infinite size, error budget, multiple testing.

The gap between experiment and limit is modelled, entry by entry, as

    gap(size) = a + b size^-r,                                                                                  (1)

with the law's own exponent r. The law is right when a = 0. The estimate of a has three errors, and they stay apart:
the standard error of the simulation, the numerical error of the theory, and the finite-size allowance: half of the correction
b size^-r that the fit removed at the largest size, because (1) is only the leading term of the expansion.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Extrapolation:
    """Fit of (1) for every entry: intercept `a`, its standard error and degrees of freedom, and the finite-size term."""

    intercept: Array
    standard_error: Array
    freedom: Array
    correction: Array  # b size^-r at the largest size


def extrapolate(sizes: Array, gaps: Array, errors: Array, draws: int, rate: float) -> Extrapolation:
    """Weighted least squares of (1), independently for every column of `gaps` (rows are sizes).

    With one size, or for a law that is exact at every size (rate = inf), there is no b: a is the weighted mean gap.

    >>> sizes = np.array([50.0, 100.0, 200.0])
    >>> fit = extrapolate(sizes, (3 / sizes)[:, None], np.full((3, 1), 0.01), draws=20, rate=1.0)
    >>> bool(abs(fit.intercept[0]) < 1e-12), float(round(fit.correction[0], 6))
    (True, 0.015)
    """
    weight = 1 / errors**2
    if len(sizes) == 1 or np.isinf(rate):
        hat = weight / weight.sum(axis=0)
        correction = np.zeros(gaps.shape[1])
    else:
        x = (sizes / sizes[-1]) ** -rate  # equals 1 at the largest size, so b is the correction there
        apart = x[:, None] - x[None, :]  # differences, not sums of squares: nothing cancels when one weight dominates
        determinant = np.einsum("ij,ie,je->e", apart**2, weight, weight) / 2
        hat = weight * np.einsum("ij,je->ie", -apart * x[None, :], weight) / determinant
        slope = weight * np.einsum("ij,je->ie", apart, weight) / determinant
        correction = (slope * gaps).sum(axis=0)
    variances = (hat * errors) ** 2
    total = variances.sum(axis=0)
    freedom = total**2 / np.maximum((variances**2 / max(draws - 1, 1)).sum(axis=0), np.finfo(float).tiny)
    return Extrapolation((hat * gaps).sum(axis=0), np.sqrt(total), freedom, correction)


def lack_of_fit(
    sizes: Array, gaps: Array, errors: Array, draws: int, rate: float, fit: Extrapolation
) -> tuple[Array, Array]:
    """Does (1) describe the gaps? For every column a p-value, and the largest residual.

    The next term of the expansion, c size^(-2r), is not held against the law as long as it is at most half of the leading one at the
    largest size, which is what the finite-size allowance grants. With as many coefficients as sizes there is nothing to test (p = 1).

    >>> sizes = np.array([50.0, 100.0, 200.0])
    >>> straight, bent = (3 / sizes)[:, None], np.array([[0.0], [0.2], [0.0]])
    >>> errors = np.full((3, 1), 0.01)
    >>> for gaps in (straight, bent):
    ...     fit = extrapolate(sizes, gaps, errors, 20, 1.0)
    ...     print(bool(lack_of_fit(sizes, gaps, errors, 20, 1.0, fit)[0][0] < 1e-3))
    False
    True
    """
    from scipy.special import fdtrc

    count = gaps.shape[1]
    exact = len(sizes) == 1 or np.isinf(rate)
    freedom = len(sizes) - (1 if exact else 2)
    x = np.ones(len(sizes)) if exact else (sizes / sizes[-1]) ** -rate
    residual = gaps - fit.intercept - fit.correction * x[:, None]
    if freedom < 1:
        return np.ones(count), np.zeros(count)
    following = np.abs(fit.correction) / 2 * x[:, None] ** 2
    refit = extrapolate(sizes, following, errors, draws, rate)
    unexplained = following - refit.intercept - refit.correction * x[:, None]
    distance, granted = (np.sqrt(((part / errors) ** 2).sum(axis=0)) for part in (residual, unexplained))
    statistic = np.maximum(distance - granted, 0.0) ** 2 / freedom
    return np.asarray(fdtrc(freedom, max(draws - 1, 1), statistic)), np.abs(residual).max(axis=0)


def steadied(errors: Array, floor: float) -> Array:
    """Standard errors without accidental zeros: a few draws of a discrete observable may coincide at one size.

    An error below a third of what is typical for its entry (geometric mean over the sizes) is raised to that; an entry whose
    errors all vanish, while those of other entries do not, takes their median for typical.

    >>> steadied(np.array([[0.02], [0.0], [0.005]]), floor=1e-12).round(4).ravel().tolist()
    [0.02, 0.0033, 0.005]
    """
    counted = np.where(errors > floor, errors, np.nan)
    some = ~np.isnan(counted).all(axis=0)
    typical = np.zeros(errors.shape[1])
    typical[some] = np.exp(np.nanmean(np.log(counted[:, some]), axis=0))
    typical[~some] = np.median(typical[some]) if some.any() else 0.0
    return np.maximum(errors, np.maximum(typical / 3, floor))


def fitted_rate(sizes: Array, gaps: Array, errors: Array) -> tuple[float, float]:
    """Exponent of |gap| ~ size^-r and its standard error, from the sizes where the gap stands out (else NaN, NaN).

    >>> sizes = np.array([50.0, 100.0, 200.0])
    >>> [round(value, 3) for value in fitted_rate(sizes, 2 / sizes, 1e-4 / sizes)]
    [1.0, 0.0]
    """
    clear = (np.abs(gaps) > 3 * errors) & (np.sign(gaps) == np.sign(gaps[0]))
    if clear.sum() < 3:
        return float("nan"), float("nan")
    x, y = np.log(sizes[clear]), np.log(np.abs(gaps[clear]))
    sigma = errors[clear] / np.abs(gaps[clear])
    centre = np.average(x, weights=sigma**-2)
    spread = ((x - centre) ** 2 / sigma**2).sum()
    return float(-((x - centre) * y / sigma**2).sum() / spread), float(spread**-0.5)


def holm(p_values: Array, level: float) -> NDArray[np.bool_]:
    """Which hypotheses are rejected at a family-wise error of `level` (Holm's step-down procedure).

    >>> holm(np.array([1e-6, 0.2, 0.02]), 0.05).tolist()
    [True, False, True]
    >>> holm(np.array([1e-6, 0.2, 0.03]), 0.05).tolist()
    [True, False, False]
    """
    order = np.argsort(p_values)
    thresholds = level / np.arange(len(p_values), 0, -1)
    failed = p_values[order] > thresholds
    count = int(np.argmax(failed)) if failed.any() else len(p_values)
    rejected = np.zeros(len(p_values), dtype=bool)
    rejected[order[:count]] = True
    return rejected


def two_sided_p(z: Array, freedom: Array) -> Array:
    """Two-sided p-value of a Student statistic."""
    from scipy.special import stdtr

    return np.asarray(2 * stdtr(freedom, -np.abs(z)))


def critical(level: float, freedom: Array) -> Array:
    """The value that a Student statistic exceeds in absolute value with probability `level`."""
    from scipy.special import stdtrit

    return np.asarray(-stdtrit(freedom, level / 2))
