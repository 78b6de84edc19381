"""What a user would try instead: real fits at a few sizes, and a power law a n^-b + c through them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.applied.forecast._kernels import Kernel
from limitlab.applied.forecast._surrogates import Metric

Array = NDArray[np.float64]

SHARES = (0.08, 0.15, 0.28, 0.5, 0.8)
"""Shares of the data at which real fits are made."""

SPLITS = 8
LARGEST_FIT, MOST_TESTS = 2000, 1000


@dataclass(frozen=True)
class PowerLaw:
    """a n^-b + c with a, b, c at least 0."""

    a: float
    b: float
    c: float

    def __call__(self, samples: Any) -> Array:
        """Its value at a number of points."""
        return np.asarray(self.a * np.asarray(samples, dtype=float) ** -self.b + self.c)


def fit_power_law(samples: Any, values: Any) -> PowerLaw:
    """Least squares in the logarithm, over exponents and floors.

    For each exponent and floor the best factor is an average; a grid of them refined once is safer than a descent from one start.

    >>> n = np.array([20, 50, 100, 300])
    >>> found = fit_power_law(n, 2 * n**-0.5 + 0.1)
    >>> round(found.b, 2), round(found.c, 2)
    (0.5, 0.1)
    """
    n, y = np.asarray(samples, dtype=float), np.asarray(values, dtype=float)
    if not (y > 0).all():
        y = np.maximum(y, np.finfo(float).tiny)
    exponents, floors = np.linspace(0.0, 3.0, 61), np.linspace(0.0, 0.999, 60) * y.min()
    best = PowerLaw(float(np.exp(np.log(y).mean())), 0.0, 0.0)
    for _ in range(4):
        above = np.log(np.maximum(y - floors[:, None], np.finfo(float).tiny))  # (floors, n)
        factor = np.exp((above[:, None, :] + exponents[:, None] * np.log(n)).mean(axis=2))
        guess = factor[:, :, None] * n ** -exponents[:, None] + floors[:, None, None]
        miss = ((np.log(guess) - np.log(y)) ** 2).sum(axis=2)
        i, j = np.unravel_index(int(np.argmin(miss)), miss.shape)
        best = PowerLaw(float(factor[i, j]), float(exponents[j]), float(floors[i]))
        wide, tall = (exponents[1] - exponents[0]) * 2, (floors[1] - floors[0]) * 2
        exponents = np.linspace(max(best.b - wide, 0.0), best.b + wide, 41)
        floors = np.linspace(max(best.c - tall, 0.0), min(best.c + tall, 0.9999 * y.min()), 41)
    return best


def real_values(
    source: Kernel | Array, X: Array, targets: Array, samples: Array, ridges: Array, metric: Metric, splits: int, seed: int
) -> Array:
    """The metric of real fits on random subsets, shape (sizes, splits): one linear solve each."""
    from scipy.linalg import cho_factor, cho_solve

    total = len(targets)
    out = np.empty((len(samples), splits))
    for i, (count, ridge) in enumerate(zip(samples.astype(int), ridges, strict=True)):
        for split in range(splits):
            order = np.random.default_rng([seed, 4, split, int(count)]).permutation(total)
            inside, outside = order[:count], order[count : count + MOST_TESTS]
            if isinstance(source, Kernel):
                gram, across = source(X[inside], X[inside]), source(X[outside], X[inside])
            else:
                gram, across = source[np.ix_(inside, inside)], source[np.ix_(outside, inside)]
            shift = max(ridge, 1e-12 * float(np.trace(gram)) / count) * count
            gram[np.diag_indices(count)] += shift
            fit = across @ cho_solve(cho_factor(gram, overwrite_a=True, check_finite=False), targets[inside])
            out[i, split] = metric(fit, targets[outside])
    return out


def sizes_for(total: int) -> Array:
    """Sizes of the real fits.

    >>> sizes_for(1000).tolist()
    [80.0, 150.0, 280.0, 500.0, 800.0]
    """
    return np.unique(np.round(np.array(SHARES) * min(total, LARGEST_FIT / SHARES[-1])))
