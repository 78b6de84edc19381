"""Measurements for several checks, such as slopes, standard errors and distances in standard errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.draws import mean_and_error

__all__ = ["largest", "log_slope", "sigmas", "smallest", "standard_error"]

Array = NDArray[np.float64]

SIGMAS = 5.0
"""Standard errors within which a measured mean must agree with its law."""


class Slope(NamedTuple):
    """A fitted slope and its standard error."""

    value: float
    error: float


def words(name: str) -> str:
    """Return the name of an observable as words.

    >>> words("train_error")
    'train error'
    """
    return name.replace("_", " ")


def largest(values: Iterable[float]) -> float:
    """Return the largest number, or NaN if one of them is NaN. (Python's `max` can skip a NaN, so that a check would pass.)

    >>> largest([1.0, float("nan"), 0.5])
    nan
    """
    return float(np.max(list(values)))


def smallest(values: Iterable[float]) -> float:
    """Return the smallest number, or NaN if one of them is NaN.

    >>> smallest([1.0, 0.5])
    0.5
    """
    return float(np.min(list(values)))


def standard_error(values: ArrayLike) -> float:
    """Return the largest standard error of the mean over the first axis.

    >>> standard_error([1.0, 3.0])
    1.0
    """
    return float(np.max(mean_and_error(values)[1]))


def sigmas(values: ArrayLike, target: ArrayLike) -> float:
    """Return the largest distance of the mean over the first axis from a target, in standard errors.

    >>> sigmas([1.0, 3.0], 4.0)
    2.0
    """
    mean, error = mean_and_error(values)
    return float(np.max(np.abs(mean - np.asarray(target)) / error))


def slope(x: ArrayLike, y: ArrayLike, errors: ArrayLike | None = None) -> Slope:
    """Return the slope of y against x by least squares, weighted by the errors of y if they are known.

    Without errors of y, the standard error of the slope follows from the scatter about the line (it is 0 for two points).

    >>> slope([0, 1, 2], [1.0, 3.0, 5.0]).value
    2.0
    """
    a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    weight = np.ones_like(b) if errors is None else np.asarray(errors, dtype=float) ** -2.0
    centre = np.average(a, weights=weight)
    spread = float((weight * (a - centre) ** 2).sum())
    value = float((weight * (a - centre) * b).sum()) / spread
    if errors is not None:
        return Slope(value, spread**-0.5)
    left = b - b.mean() - value * (a - a.mean())
    freedom = max(a.size - 2, 1)
    return Slope(value, math.sqrt(float(left @ left) / freedom / spread))


def log_slope(x: ArrayLike, y: ArrayLike, errors: ArrayLike | None = None) -> Slope:
    """Return the exponent of y ~ x^slope; `errors` are those of y.

    >>> round(log_slope([1, 10, 100], [5.0, 0.5, 0.05]).value, 12)
    -1.0
    """
    values = np.asarray(y, dtype=float)
    relative = None if errors is None else np.asarray(errors, dtype=float) / np.abs(values)
    return slope(np.log(np.asarray(x, dtype=float)), np.log(np.abs(values)), relative)


def common_rate(sizes: Sequence[int], gaps: Array, errors: Array) -> Slope:
    """Return the exponent r of gaps b_k d^-r with separate b_k and a common r, from least squares, with its standard error.

    Parameters
    ----------
    sizes
        The dimensions d.
    gaps, errors
        Gaps and their standard errors, shape (sizes, number of gaps).

    Examples
    --------
    >>> d = np.array([10, 20, 40])
    >>> rate, error = common_rate(d, np.array([2.0, -1.0]) / d[:, None], np.full((3, 2), 1e-3))
    >>> round(rate, 3), error < 0.02
    (1.0, True)
    """
    rates = np.linspace(-1, 4, 5001)
    powers = (np.asarray(sizes, dtype=float) / sizes[0])[:, None, None] ** -rates  # (sizes, 1, rates)
    weight = errors[..., None] ** -2
    amplitude = (weight * powers * gaps[..., None]).sum(axis=0) / (weight * powers**2).sum(axis=0)
    misfit = (weight * (gaps[..., None] - amplitude * powers) ** 2).sum(axis=(0, 1))
    best = int(np.argmin(misfit))
    inside = rates[misfit <= misfit[best] + 1]
    return Slope(float(rates[best]), float(inside[-1] - inside[0]) / 2)
