"""The extrapolation of an observable to infinite size, with its error, as the verdict of a comparison uses it.

A figure with experiments of one size beside a limit shows finite-size gaps, which a comparison removes before its verdict. A figure
of the extrapolated values shows agreement where the verdict is "agree".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from limitlab._core.draws import mean_and_error
from limitlab._core.law import Law

Array = NDArray[np.float64]


class Compared(Protocol):
    """The parts of a comparison from which an observable is extrapolated."""

    @property
    def law(self) -> Law:
        """The law, at the parameters that were compared."""

    @property
    def dataset(self) -> xr.Dataset:
        """Predictions, means and standard errors at every size."""

    @property
    def draws(self) -> int:
        """Draws per size."""


def extrapolated(result: Compared, name: str) -> tuple[Array, Array]:
    """Return an observable extrapolated to infinite size, and its error, which is standard error plus finite-size allowance.

    Entries with an infinite limit, which are not compared, are NaN.

    >>> from limitlab import compare
    >>> from limitlab.laws import Ridge
    >>> result = compare(Ridge(ratio=0.5, ridge=0.1, noise=0.5), sizes=[20, 40, 80], seeds=30)
    >>> value, error = extrapolated(result, "test_error")
    >>> bool(abs(value - result.law.theory().test_error) < 4 * error)
    True
    """
    from limitlab.lab.judging import entries_of

    theory = result.dataset[f"theory_{name}"].values
    value, error = np.full(theory[-1].shape, np.nan), np.full(theory[-1].shape, np.nan)
    finite = np.isfinite(theory).all(axis=0)
    entries = entries_of(result.law, result.dataset, name, result.draws)
    value[finite] = [entry.theory + entry.gap for entry in entries]
    error[finite] = [entry.standard_error + entry.allowance for entry in entries]
    return value, error


def extrapolated_runs(
    sizes: Sequence[int], runs: Sequence[ArrayLike], limits: ArrayLike, rate: float
) -> tuple[Array, Array]:
    """Return the same extrapolation for draws that are already made.

    `runs` contains, for every size, the entries of every draw; `limits` is their prediction.

    >>> sizes, rng = (50, 100, 200), np.random.default_rng(0)
    >>> value, error = extrapolated_runs(sizes, [1 + 3 / n + 0.01 * rng.standard_normal((40, 1)) for n in sizes], [1.0], 1.0)
    >>> bool(abs(value[0] - 1) < 3 * error[0])
    True
    """
    from limitlab.lab.judging import extrapolate

    tables = [np.asarray(run, dtype=float) for run in runs]
    means, errors = (np.array(part) for part in zip(*map(mean_and_error, tables), strict=True))
    limit = np.broadcast_to(np.asarray(limits, dtype=float), means.shape)
    fit = extrapolate(np.asarray(sizes, dtype=float), means - limit, errors, len(tables[0]), rate)
    return limit[-1] + fit.intercept, fit.standard_error + np.abs(fit.correction) / 2
