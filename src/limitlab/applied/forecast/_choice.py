"""Which kernel: the one with the least leave-one-out mean square, over a list of kernels and ridges.

One decomposition per kernel serves all ridges. The winner of a choice among hundreds looks better than it is; how much is measured by
letting resampled data choose and looking at their choice on all data. Never choose by the error rate: too few mistakes decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.applied.forecast._grouped import left_out_groups
from limitlab.applied.forecast._kernels import Kernel, default_gamma, make_kernel
from limitlab.applied.forecast._spectrum import Spectrum, from_features, from_gram

Array = NDArray[np.float64]

WIDTHS = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Rates gamma of the Gaussian kernels, over one over the total variance."""

RIDGES = np.geomspace(1e-6, 1e2, 26)
"""Over the mean diagonal of the kernel."""

MOST_POINTS = 1000
"""Larger data choose by a random part of them."""

RESAMPLES = 100


@dataclass(frozen=True)
class Choice:
    """The kernels that were tried.

    Attributes
    ----------
    names, kernels
        Them, fitted to the data.
    scores, ridges
        Least leave-one-out mean square of each, and the ridge that has it.
    errors
        Standard errors of the scores.
    optimism
        By how much the winner's score is too low, in the mean over resamplings.
    """

    names: tuple[str, ...]
    kernels: tuple[Kernel, ...]
    scores: Array
    ridges: Array
    errors: Array
    optimism: float

    @property
    def best(self) -> int:
        """Index of the winner."""
        return int(np.argmin(self.scores))

    def table(self) -> list[dict[str, Any]]:
        """One row per kernel, best first."""
        return [
            {
                "kernel": self.names[i], "leave_one_out": float(self.scores[i]), "standard_error": float(self.errors[i]),
                "ridge": float(self.ridges[i]), "chosen": i == self.best,
            }
            for i in np.argsort(self.scores)
        ]  # fmt: skip


def candidates(X: Array, intercept: float) -> dict[str, Kernel]:
    """The kernels that are tried: linear, Gaussian ones of five widths, Laplace, arc-cosine and tangent."""
    from limitlab.laws.kernels.deep import ntk

    rate = default_gamma(X)
    found = {"linear": make_kernel("linear", X, intercept=intercept)}
    found |= {f"rbf {width:g}": make_kernel("rbf", X, gamma=width * rate, intercept=intercept) for width in WIDTHS}
    found["laplace"] = make_kernel("laplace", X, intercept=intercept)
    found["relu-nngp"] = make_kernel("relu-nngp", X, intercept=intercept)
    found["ntk"] = Kernel(partial(ntk, layers=2), None, intercept)
    return found


def choose(X: Array, targets: Array, intercept: float, seed: int, groups: NDArray[np.int64] | None = None) -> Choice:
    """Try all kernels by leave-one-out, or by leaving out one group at a time.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((80, 2)) / np.sqrt(2)
    >>> bent = choose(X, (X[:, :1] ** 2 - 0.5), 1.0, 0)
    >>> bent.names[bent.best] != "linear", bent.optimism >= 0
    (True, True)
    """
    rng = np.random.default_rng([seed, 5])
    kernels = candidates(X, intercept)
    rows = np.sort(rng.permutation(len(X))[:MOST_POINTS])
    part, wanted = X[rows], targets[rows]
    squares, units = [], []
    for kernel in kernels.values():
        spectrum = _decomposed(kernel, part, wanted)
        lam = RIDGES * spectrum.mean_diagonal
        if groups is None:
            gaps = np.maximum(1 - spectrum.leverages(lam), 1e-6)
            squares.append((spectrum.residuals(lam) ** 2).mean(axis=2) / gaps**2)
        else:
            squares.append(left_out_groups(spectrum, lam, groups[rows]))
        units.append(lam)
    table = np.stack(squares, axis=1)  # (N, kernels, ridges)
    means = table.mean(axis=0)
    at = means.argmin(axis=1)
    every = np.arange(len(at))
    errors = table[:, every, at].std(axis=0, ddof=1) / np.sqrt(len(part))
    return Choice(
        tuple(kernels),
        tuple(kernels.values()),
        means[every, at],
        np.array(units)[every, at],
        errors,
        _optimism(table.reshape(len(part), -1), rng),
    )


def _decomposed(kernel: Kernel, X: Array, targets: Array) -> Spectrum:
    if kernel.features is not None and kernel.table(X[:1]).shape[1] < len(X):
        return from_features(kernel.table(X), targets)
    return from_gram(kernel(X, X), targets)


def _optimism(table: Array, rng: np.random.Generator) -> float:
    """Mean over resamplings of (value on all data minus value on the resample) of the resample's winner."""
    count = len(table)
    weights = rng.multinomial(count, np.full(count, 1 / count), size=RESAMPLES) / count
    drawn, mean = weights @ table, table.mean(axis=0)
    winners = drawn.argmin(axis=1)
    return max(float(np.mean(mean[winners] - drawn[np.arange(RESAMPLES), winners])), 0.0)
