"""Fits of a sum of powers E + A N^-a + B D^-b: form, derivatives, search for the parameters (docs/theory/scaling_fit.md, eqs. 1-3).

Inside, sizes are logarithms n = log(N / their geometric mean) and d likewise, so that the two amplitudes are parts of the loss:

    L = E + e^{u - a n} + e^{v - b d} [+ e^{w - p n - q d}].

Parameters are kept in the order (E, u, v, a, b) or (E, u, v, a, b, w, p, q).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

GRID = np.geomspace(0.05, 2.5, 18)  # exponents from which the search starts
STARTS, APART = 6, 0.15  # how many of them are polished, and how far apart they must be
LOWEST, HIGHEST = 1e-3, 6.0  # exponents that are looked at
HUBER = 1.345  # standard deviations beyond which a residual counts less: 95 % efficient for Gaussian ones
SMALLEST_WIDTH = 1e-9


class Runs(NamedTuple):
    """A table of runs: centred log sizes, log losses, and the centres."""

    n: Array
    d: Array
    log_loss: Array
    centre_n: float
    centre_d: float


class Best(NamedTuple):
    """A minimum of the cost: its parameters, cost (sum of squares, Huber's beyond `width`), and the width (inf: squares)."""

    theta: Array
    cost: float
    width: float


Embedding = Callable[[Array], tuple[Array, Array]]
"""Free parameters -> all parameters and their derivatives."""


def model(theta: Array, runs: Runs) -> tuple[Array, Array]:
    """Log of the loss and its derivatives in the parameters, one row per run."""
    first, second = np.exp(theta[1] - theta[3] * runs.n), np.exp(theta[2] - theta[4] * runs.d)
    parts = [np.ones_like(first), first, second, -first * runs.n, -second * runs.d]
    loss = theta[0] + first + second
    if theta.size > 5:
        both = np.exp(theta[5] - theta[6] * runs.n - theta[7] * runs.d)
        parts += [both, -both * runs.n, -both * runs.d]
        loss = loss + both
    return np.log(loss), np.stack(parts, axis=1) / loss[:, None]


def bounds(size: int) -> tuple[Array, Array]:
    """Lowest and highest values of the parameters."""
    low = np.array([0.0, -60.0, -60.0, LOWEST, LOWEST, -60.0, LOWEST, LOWEST])[:size]
    high = np.array([np.inf, 60.0, 60.0, HIGHEST, HIGHEST, 60.0, HIGHEST, HIGHEST])[:size]
    return low, high


def polished(runs: Runs, start: Array, width: float, embed: Embedding | None = None, size: int = 0) -> Best:
    """The minimum of the cost near a start, over all parameters or over those that `embed` leaves free."""
    from scipy.optimize import least_squares

    free_to_all: Embedding = embed if embed is not None else lambda theta: (theta, np.eye(theta.size))
    low, high = bounds(start.size) if embed is None else (np.full(start.size, -np.inf), np.full(start.size, np.inf))
    if embed is not None:
        low[size:], high[size:] = -np.inf, np.inf

    def residual(free: Array) -> Array:
        return np.asarray(model(free_to_all(free)[0], runs)[0] - runs.log_loss)

    def slope(free: Array) -> Array:
        theta, inner = free_to_all(free)
        return np.asarray(model(theta, runs)[1] @ inner)

    inside = np.clip(start, low + 1e-9 * (low > -np.inf), high - 1e-9 * (high < np.inf))
    options = dict(loss="linear") if np.isinf(width) else dict(loss="huber", f_scale=width)
    found = least_squares(
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
    return Best(free_to_all(found.x)[0], 2 * float(found.cost), width)


def with_exponents(runs: Runs, a: float, b: float) -> tuple[float, Array]:
    """For given exponents the three coefficients by non-negative least squares of relative errors: their misfit, all parameters."""
    from scipy.optimize import nnls

    weight = np.exp(-runs.log_loss)
    columns = np.stack([np.ones_like(runs.n), np.exp(-a * runs.n), np.exp(-b * runs.d)], axis=1) * weight[:, None]
    coefficients, misfit = nnls(columns, np.ones_like(weight))
    u, v = np.log(np.maximum(coefficients[1:], 1e-6 * np.exp(runs.log_loss.mean())))
    return float(misfit), np.array([coefficients[0], u, v, a, b])


def starts(runs: Runs) -> list[Array]:
    """Good starts on a grid of exponents: the best, far apart."""
    found = sorted((with_exponents(runs, float(a), float(b)) for a in GRID for b in GRID), key=lambda pair: pair[0])
    chosen: list[Array] = []
    for _, theta in found:
        if all(np.abs(np.log(theta[3:] / other[3:])).max() > APART for other in chosen):
            chosen.append(theta)
        if len(chosen) == STARTS:
            break
    return chosen


def best_fit(runs: Runs, robust: bool, interaction: bool = False) -> Best:
    """The best parameters over all starts: least squares of log losses, then Huber's cost if it is to be robust."""
    candidates = [polished(runs, start, np.inf) for start in starts(runs)]
    best = min(candidates, key=lambda one: one.cost)
    if interaction:
        best = _with_product(runs, best, np.inf)
    if not robust:
        return best
    spread = residuals(best.theta, runs)
    width = max(HUBER * 1.4826 * float(np.median(np.abs(spread - np.median(spread)))), SMALLEST_WIDTH)
    again = [best.theta, *(one.theta for one in candidates)] if not interaction else [best.theta]
    return min((polished(runs, start, width) for start in again), key=lambda one: one.cost)


def _with_product(runs: Runs, additive: Best, width: float) -> Best:
    """The best fit with a product term, from several exponents of it."""
    theta = additive.theta
    small = np.log(0.1 * np.exp(runs.log_loss.mean()))
    tries = [
        np.r_[theta, small, p * theta[3], q * theta[4]]
        for p, q in ((0.5, 0.5), (0.5, 0.25), (0.25, 0.5), (1.0, 0.5), (0.5, 1.0))
    ]
    found = [polished(runs, np.clip(start, *bounds(8)), width) for start in tries]
    return min(found, key=lambda one: one.cost)


def centred(N: ArrayLike, D: ArrayLike, loss: ArrayLike) -> Runs:
    """A table of sizes, data and losses as the fit takes it."""
    log_n, log_d = (np.log(np.asarray(column, dtype=float).ravel()) for column in (N, D))
    log_loss = np.log(np.asarray(loss, dtype=float).ravel())
    return Runs(log_n - log_n.mean(), log_d - log_d.mean(), log_loss, float(log_n.mean()), float(log_d.mean()))


def log_optimum(theta: Array, runs: Runs, log_product: float) -> float:
    """log N at the least value of the fitted sum for a given log(N D), eq. (5).

    >>> runs = centred([1.0, 2.0, 4.0], [4.0, 2.0, 1.0], [1.0, 1.0, 1.0])
    >>> theta = np.array([0.0, 0.0 - 0.5 * runs.centre_n, 0.0 - 0.5 * runs.centre_d, 0.5, 0.5])  # N^-1/2 + D^-1/2
    >>> round(log_optimum(theta, runs, float(np.log(100.0))), 12) == round(float(np.log(10)), 12)
    True
    """
    _, u, v, a, b = theta[:5]
    return float((np.log(a / b) + u - v + a * runs.centre_n - b * runs.centre_d + b * log_product) / (a + b))


def residuals(theta: Array, runs: Runs) -> Array:
    """Log loss minus its fit."""
    return np.asarray(runs.log_loss - model(theta, runs)[0])


def noise_variance(best: Best, runs: Runs) -> tuple[float, float]:
    """s^2 for differences of the cost, and the factor of (J'J)^-1 that makes it a covariance; the same for least squares."""
    left, freedom = residuals(best.theta, runs), runs.n.size - best.theta.size
    inside = np.abs(left) <= best.width
    clipped = np.where(inside, left, np.sign(left) * (best.width if np.isfinite(best.width) else 0.0))
    share = float(np.mean(inside)) or 1.0
    squares = float(np.sum(clipped**2)) / freedom
    return squares / share, squares / share**2


def covariance(theta: Array, runs: Runs, variance: float) -> Array:
    """Covariance of the estimates for a variance of the log losses; huge, not infinite, where the table decides nothing."""
    slope = model(theta, runs)[1]
    length = np.linalg.norm(slope, axis=0)
    length = np.where(length > 0, length, 1.0)
    inverse = np.linalg.pinv((slope / length).T @ (slope / length), rcond=1e-15)
    return np.asarray(variance * inverse / np.outer(length, length))


def condition(theta: Array, runs: Runs) -> float:
    """Condition number of the derivatives in (E, log A, log B, a, b), columns of unit length."""
    slope = model(theta, runs)[1][:, :5]
    lengths = np.linalg.norm(slope, axis=0)
    return float(np.linalg.cond(slope / np.where(lengths > 0, lengths, 1.0)))
