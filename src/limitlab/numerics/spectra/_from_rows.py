"""Estimate of a population spectrum from rows, without the bias of the sample spectrum.

The sample eigenvalues of n rows in p dimensions are spread out more than the eigenvalues of the population. The deterministic equivalent
removes this bias. With the kernel matrix G = XX'/n and a ridge lambda > 0 put

    1/kappa = tr (G + lambda)^{-1} / n.                                                                   (1)

Then, up to errors of order 1/n (docs/theory/ridge.md, eq. 1, and docs/theory/early_stopping.md, eq. 5),

    (p/n) sum_k w_k s_k / (s_k + kappa) = 1 - lambda/kappa,                                                (2)
    y'(G + lambda)^{-1} y / n = sum_k b_k s_k / (s_k + kappa) + tau^2 / kappa.                              (3)

The left side of (2) is linear in the weights w_k of eigenvalues s_k on a grid, and the right side of (3) is linear in the energies b_k
and the variance tau^2 of the noise. Both are solved by least squares with coefficients of at least 0, for many ridges at once.

The error is estimated by random halves of the rows. An average over all rows is the mean of the averages over two halves. The estimate
from one half therefore differs from the estimate from all rows by one standard error of the latter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LEAST_ROWS = 40
RIDGES = 60  # number of ridges in equations (2) and (3)
GRID = 120  # number of eigenvalues on the grid, spaced geometrically
HALVES = 4
WORST_ERROR = 0.3  # largest estimated relative error of an estimate that is not refused
NOTHING = 1e-12  # sample eigenvalues below this share of the largest count as 0
TOTAL_WEIGHT = 10.0  # weight of the equations for the sum of the weights and for the trace


class Estimate(NamedTuple):
    """Atoms of a population spectrum, energies, label noise, and the least kappa of the equations."""

    eigenvalues: Array
    weights: Array
    energy: Array | None
    label_noise: float | None
    least: float


def halves_of(count: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Return random halves of the rows.

    >>> [len(half) for half in halves_of(10, np.random.default_rng(0))]
    [5, 5, 5, 5]
    """
    return [np.sort(rng.permutation(count)[: count // 2]) for _ in range(HALVES)]


def estimate(X: Array, y: Array | None) -> Estimate:
    """Return the atoms that solve (2), with the energies that solve (3), and the least kappa of these equations."""
    from scipy.optimize import nnls

    centred = X - X.mean(axis=0)
    n, p = len(X) - 1, X.shape[1]  # the mean costs one row
    left, singular, _ = np.linalg.svd(centred, full_matrices=False)
    values = singular**2 / n
    positive = values > NOTHING * values[0]
    values, left = values[positive], left[:, positive]
    null = n - values.size  # dimension of the rows' space that the columns do not reach

    ridges = np.geomspace(1e-4 * values.mean() if null == 0 else 1e-3 * values.min(), 30 * values[0], RIDGES)
    kappa = n / ((1 / (values + ridges[:, None])).sum(axis=1) + null / ridges)  # (1)
    grid = _grid(values, kappa, n, null)
    shares = p / n * grid / (grid + kappa[:, None])
    ones, mean = np.ones((1, grid.size)), grid[None] / values.sum() * p
    table = np.concatenate([shares, TOTAL_WEIGHT * ones, TOTAL_WEIGHT * mean])
    weights = nnls(table, np.r_[1 - ridges / kappa, TOTAL_WEIGHT, TOTAL_WEIGHT], maxiter=50 * GRID)[0]  # (2)
    used = weights > 1e-9
    s, w = grid[used], weights[used] / weights[used].sum()
    if y is None:
        return Estimate(s, w, None, None, float(kappa.min()))
    target = y - y.mean()
    along = (left.T @ target) ** 2 / n
    rest = max(float(target @ target) / n - float(along.sum()), 0.0)
    forms = (along / (values + ridges[:, None])).sum(axis=1) + rest / ridges  # left side of (3)
    parts = np.concatenate([s / (s + kappa[:, None]), 1 / kappa[:, None]], axis=1)
    solution = nnls(parts * kappa[:, None], forms * kappa, maxiter=50 * GRID)[0]
    return Estimate(s, w, solution[:-1], float(np.sqrt(solution[-1])), float(kappa.min()))


def _grid(values: Array, kappa: Array, n: int, null: int) -> Array:
    """Return 0, a geometric grid of population eigenvalues, and the population eigenvalues that belong to separate sample eigenvalues."""
    low = min(0.3 * values.min(), values.mean()) if null else 0.3 * max(kappa.min(), values.min())
    grid = np.geomspace(low, 1.2 * values[0], GRID)
    separate = []
    for i, value in enumerate(values[: min(len(values), n // 4)]):
        others = np.delete(values, i)
        gap = np.min(np.abs(others - value), initial=np.inf)
        if gap > 3 * value * np.sqrt(2 / n):
            companion = float((1 / (others - value)).sum() - null / value) / n
            if companion < 0:
                separate.append(-1 / companion)
    return np.unique(np.concatenate([[0.0], grid, np.array(separate, dtype=float)]))
