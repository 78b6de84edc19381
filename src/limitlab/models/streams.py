"""Runs of stochastic gradient descent on streams of fresh rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def white_entries(rng: np.random.Generator, shape: tuple[int, ...], excess_kurtosis: float) -> Array:
    """Return independent entries of mean 0, variance 1 and excess kurtosis `excess_kurtosis`.

    The entries are Gaussian for 0, signs for -2, and have the values -r, 0, r for any other excess kurtosis.

    >>> set(np.abs(white_entries(np.random.default_rng(0), (50,), 1.0)).tolist()) == {0.0, 2.0}
    True
    """
    if excess_kurtosis == 0:
        return rng.standard_normal(shape)
    signs = np.asarray(2 * rng.integers(0, 2, shape) - 1, dtype=np.float64)
    if excess_kurtosis == -2:
        return signs
    square = 3 + excess_kurtosis
    return np.where(rng.random(shape) * square < 1, np.sqrt(square) * signs, 0.0)


def least_squares_runs(
    rng: np.random.Generator,
    eigenvalues: Array,
    gap: Array,
    noise: float,
    steps: Array,
    batch: int,
    momentum: float,
    excess_kurtosis: float,
    runs: int,
    first: int | None,
    marks: NDArray[np.int64],
) -> tuple[Array, Array]:
    """Return the mean excess risks of independent runs at the step numbers `marks`.

    The first result is for the iterate. The second is for the average of the iterates from number `first` on.

    Parameters
    ----------
    eigenvalues
        Eigenvalues of the covariance. All vectors are written in its eigenbasis.
    gap
        Difference theta - beta at the start.
    steps
        Step size of every iteration.
    """
    error = np.tile(gap, (runs, 1))
    before, total = error.copy(), np.zeros_like(error)
    root = np.sqrt(eigenvalues)
    last, average = np.empty(len(marks)), np.empty(len(marks))
    done = 0
    for i, mark in enumerate(marks):
        while done < mark:
            if first is not None and done >= first:
                total += error
            x = white_entries(rng, (runs, batch, len(gap)), excess_kurtosis) * root
            wrong = (x @ error[:, :, None])[..., 0] - noise * rng.standard_normal((runs, batch))
            gradient = (wrong[:, None, :] @ x)[:, 0] / batch
            error, before = error - steps[done] * gradient + momentum * (error - before), error
            done += 1
        last[i] = np.mean((error**2) @ eigenvalues)
        count = 0 if first is None else mark - first
        average[i] = np.mean((total**2) @ eigenvalues) / count**2 if count > 0 else 0.0
    return last, average
