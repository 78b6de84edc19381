"""Fits of a sum of powers E + A N^-a + B D^-b to a table of losses (docs/theory/scaling_fit.md, eqs. 1-3).

The module has the model, its derivatives and the search for the parameters. It replaces each size N by the logarithm
n = log(N / geometric mean of the sizes), and each D by d in the same way. The loss is then the following sum, in which e^u and e^v
are the two power terms at the mean sizes, n = d = 0. The product term in brackets is optional.

    L = E + e^{u - a n} + e^{v - b d} [+ e^{w - p n - q d}].

Parameters are stored in the order (E, u, v, a, b) or (E, u, v, a, b, w, p, q).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

GRID = np.geomspace(0.05, 2.5, 18)  # exponents from which the search starts
STARTS, APART = 6, 0.15  # number of starts that are refined, and their smallest distance in the log of an exponent
LOWEST, HIGHEST = 1e-3, 6.0  # bounds of the exponents
HUBER = 1.345  # standard deviations beyond which a residual has less weight; 95 % efficient for Gaussian residuals
SMALLEST_WIDTH = 1e-9


class Runs(NamedTuple):
    """A table of runs with centred log sizes, log losses, and the centres."""

    n: Array
    d: Array
    log_loss: Array
    centre_n: float
    centre_d: float


class Best(NamedTuple):
    """A minimum of the cost.

    `theta` holds its parameters. `cost` is a sum of squares, or Huber's cost with threshold `width` if the width is finite.
    """

    theta: Array
    cost: float
    width: float


def model(theta: Array, runs: Runs) -> tuple[Array, Array]:
    """Return the log of the loss and its derivatives in the parameters, one row per run."""
    first, second = np.exp(theta[1] - theta[3] * runs.n), np.exp(theta[2] - theta[4] * runs.d)
    parts = [np.ones_like(first), first, second, -first * runs.n, -second * runs.d]
    loss = theta[0] + first + second
    if theta.size > 5:
        both = np.exp(theta[5] - theta[6] * runs.n - theta[7] * runs.d)
        parts += [both, -both * runs.n, -both * runs.d]
        loss = loss + both
    return np.log(loss), np.stack(parts, axis=1) / loss[:, None]


def bounds(size: int) -> tuple[Array, Array]:
    """Return the lowest and highest values of the parameters."""
    low = np.array([0.0, -60.0, -60.0, LOWEST, LOWEST, -60.0, LOWEST, LOWEST])[:size]
    high = np.array([np.inf, 60.0, 60.0, HIGHEST, HIGHEST, 60.0, HIGHEST, HIGHEST])[:size]
    return low, high


def polished(runs: Runs, start: Array, width: float) -> Best:
    """Return the minimum of the cost near a start."""
    from scipy.optimize import least_squares

    low, high = bounds(start.size)

    def residual(theta: Array) -> Array:
        return np.asarray(model(theta, runs)[0] - runs.log_loss)

    def slope(theta: Array) -> Array:
        return model(theta, runs)[1]

    inside = np.clip(start, low + 1e-9 * (low > -np.inf), high - 1e-9 * (high < np.inf))
    options = dict(loss="linear") if np.isinf(width) else dict(loss="huber", f_scale=width)
    solution = least_squares(
        residual,
        inside,
        slope,
        (low, high),
        "trf",
        xtol=1e-13,
        ftol=1e-14,
        gtol=1e-14,
        x_scale="jac",
        max_nfev=80,
        **options,
    )
    return Best(np.asarray(solution.x), 2 * float(solution.cost), width)


def with_exponents(runs: Runs, a: float, b: float) -> tuple[float, Array]:
    """Return the misfit and all parameters of the best fit with these exponents.

    The three coefficients minimise the sum of squared relative errors and are at least 0.
    """
    from scipy.optimize import nnls

    weight = np.exp(-runs.log_loss)
    columns = np.stack([np.ones_like(runs.n), np.exp(-a * runs.n), np.exp(-b * runs.d)], axis=1) * weight[:, None]
    coefficients, misfit = nnls(columns, np.ones_like(weight))
    u, v = np.log(np.maximum(coefficients[1:], 1e-6 * np.exp(runs.log_loss.mean())))
    return float(misfit), np.array([coefficients[0], u, v, a, b])


def starts(runs: Runs) -> list[Array]:
    """Return the starting points with the smallest misfits on a grid of exponents.

    There are at most `STARTS` points, and their exponents differ by more than `APART` (see above).
    """
    by_misfit = sorted((with_exponents(runs, float(a), float(b)) for a in GRID for b in GRID), key=lambda pair: pair[0])
    distinct: list[Array] = []
    for _, theta in by_misfit:
        if all(np.abs(np.log(theta[3:] / other[3:])).max() > APART for other in distinct):
            distinct.append(theta)
        if len(distinct) == STARTS:
            break
    return distinct


def best_fit(runs: Runs, robust: bool, interaction: bool = False) -> Best:
    """Return the best least-squares fit of the log losses over all starts, refitted with Huber's cost if `robust`."""
    candidates = [polished(runs, start, np.inf) for start in starts(runs)]
    best = min(candidates, key=lambda fit: fit.cost)
    if interaction:
        best = _with_product(runs, best, np.inf)
    if not robust:
        return best
    spread = residuals(best.theta, runs)
    width = max(HUBER * 1.4826 * float(np.median(np.abs(spread - np.median(spread)))), SMALLEST_WIDTH)
    again = [best.theta, *(fit.theta for fit in candidates)] if not interaction else [best.theta]
    return min((polished(runs, start, width) for start in again), key=lambda fit: fit.cost)


def _with_product(runs: Runs, additive: Best, width: float) -> Best:
    """Return the best fit with a product term, from several starting exponents of this term."""
    theta = additive.theta
    small = np.log(0.1 * np.exp(runs.log_loss.mean()))
    tries = [
        np.r_[theta, small, p * theta[3], q * theta[4]]
        for p, q in ((0.5, 0.5), (0.5, 0.25), (0.25, 0.5), (1.0, 0.5), (0.5, 1.0))
    ]
    fits = [polished(runs, np.clip(start, *bounds(8)), width) for start in tries]
    return min(fits, key=lambda fit: fit.cost)


def centred(N: ArrayLike, D: ArrayLike, loss: ArrayLike) -> Runs:
    """Return the table of runs with model sizes N, numbers of data D and losses, for the functions of this module."""
    log_n, log_d = (np.log(np.asarray(column, dtype=float).ravel()) for column in (N, D))
    log_loss = np.log(np.asarray(loss, dtype=float).ravel())
    return Runs(log_n - log_n.mean(), log_d - log_d.mean(), log_loss, float(log_n.mean()), float(log_d.mean()))


def log_optimum(theta: Array, runs: Runs, log_product: float) -> float:
    """Return log N at the minimum of the fitted sum for a fixed log(N D), eq. (5).

    >>> runs = centred([1.0, 2.0, 4.0], [4.0, 2.0, 1.0], [1.0, 1.0, 1.0])
    >>> theta = np.array([0.0, 0.0 - 0.5 * runs.centre_n, 0.0 - 0.5 * runs.centre_d, 0.5, 0.5])  # N^-1/2 + D^-1/2
    >>> round(log_optimum(theta, runs, float(np.log(100.0))), 12) == round(float(np.log(10)), 12)
    True
    """
    _, u, v, a, b = theta[:5]
    return float((np.log(a / b) + u - v + a * runs.centre_n - b * runs.centre_d + b * log_product) / (a + b))


def residuals(theta: Array, runs: Runs) -> Array:
    """Return the log loss minus its fit."""
    return np.asarray(runs.log_loss - model(theta, runs)[0])


def noise_variance(best: Best, runs: Runs) -> tuple[float, float]:
    """Return two estimates of the variance of the log losses, one for differences of the cost and one for covariances.

    Tests divide differences of the cost by the first. The covariance of the parameters is the second times (J'J)^-1. For least
    squares the two numbers are equal.
    """
    left, freedom = residuals(best.theta, runs), runs.n.size - best.theta.size
    inside = np.abs(left) <= best.width
    clipped = np.where(inside, left, np.sign(left) * (best.width if np.isfinite(best.width) else 0.0))
    share = float(np.mean(inside)) or 1.0
    squares = float(np.sum(clipped**2)) / freedom
    return squares / share, squares / share**2


def covariance(theta: Array, runs: Runs, variance: float) -> Array:
    """Return the covariance of the estimates for a variance of the log losses.

    Entries of parameters that the table does not determine are very large but finite.
    """
    slope = model(theta, runs)[1]
    length = np.linalg.norm(slope, axis=0)
    length = np.where(length > 0, length, 1.0)
    inverse = np.linalg.pinv((slope / length).T @ (slope / length), rcond=1e-15)
    return np.asarray(variance * inverse / np.outer(length, length))


def condition(theta: Array, runs: Runs) -> float:
    """Return the condition number of the derivatives in (E, log A, log B, a, b), scaled to columns of unit length."""
    slope = model(theta, runs)[1][:, :5]
    lengths = np.linalg.norm(slope, axis=0)
    return float(np.linalg.cond(slope / np.where(lengths > 0, lengths, 1.0)))
