"""Beyond the data: what N points say about fits to n >= N points of the same kind.

A fit to N points with ridge l' acts on the population like ridge regression with the effective ridge kappa = l' / (1 - df/N),
and measures what the population does there: df(l') is the population's df1(kappa), d kappa / d l' gives its df2(kappa), and
leave-one-out gives its error (docs/theory/learning_curves.md, eqs. 7-9). So the two functions that decide every learning
curve of independent draws,

    df1(kappa)  and  B(kappa) = test (1 - df2/n),

are known for every kappa that the N points can reach, kappa >= kappa_0, without any model. A fit to n > N points with
ridge lambda needs them at the root of kappa (1 - df1(kappa)/n) = lambda. Below kappa_0 (small ridge, many more points) they
are continued as power laws with the slopes they have above it, and the band widens by what the slopes might be instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.forecast.spectrum import Spectrum

Array = NDArray[np.float64]

NODES = 400
LOWEST, HIGHEST = 1e-7, 1e4
"""Ridges of the fits to all N points that are looked at, over the mean diagonal of the kernel."""

LEAST_GAP = 0.05
"""A fit that leaves less than this share of the degrees of freedom says little: the reach of the data ends there."""

SLOPE_WINDOW = np.log(10.0)
SLOPE_DOUBT = 0.5
"""Below the reach the slope of B may be this share smaller or larger than the one fitted above it."""


class Extrapolation(NamedTuple):
    """Predicted errors beyond the data.

    Attributes
    ----------
    test_error, train_error, degrees_of_freedom, effective_ridge
        As in `numerics.finite_population.LearningCurve`.
    doubt
        Relative uncertainty from the power law, 0 where the data reach.
    fitted_ridge
        The ridge of the fit to all N points that has the same effective ridge; its residuals are those to resample.
    """

    test_error: Array
    train_error: Array
    degrees_of_freedom: Array
    effective_ridge: Array
    doubt: Array
    fitted_ridge: Array


class PopulationFunctions:
    """df1, df2 and B of the population behind N points, as functions of log kappa.

    Parameters
    ----------
    spectrum
        The points.
    correction
        Factor for unequal leverages at a ridge of the fit to all points; 1 means generalised cross-validation.
    """

    def __init__(self, spectrum: Spectrum, correction: Callable[[Array], Array]):
        s, m, c, total = spectrum.eigenvalues, spectrum.multiplicities, spectrum.energies, spectrum.population
        lam = np.geomspace(LOWEST, HIGHEST, NODES) * spectrum.mean_diagonal
        positive = np.where(s > 0, m, 0.0)
        u = lam[:, None] / (s + lam[:, None])
        gap = (1 - positive.sum() / total) + (positive * u).sum(axis=1) / total
        mixed = (positive * u * (1 - u)).sum(axis=1) / total
        slope = (gap - mixed) / gap**2  # d kappa / d lambda = 1 / (1 - df2/N) of the population
        test = (c * u**2).sum(axis=1) / gap**2 * correction(lam)
        # kappa' >= 1 in the limit; a finite sample may say slightly less
        slope = np.maximum(slope, 1.0)
        inside = gap >= LEAST_GAP
        first = int(np.argmax(inside))
        self.complete = bool(first == 0 and 1 - positive.sum() / total > LEAST_GAP)
        self.log_kappa = np.log(lam / gap)[first:]
        self.log_ridge = np.log(lam)[first:]
        self.log_df1 = np.log(total * (1 - gap)[first:])
        self.log_df2 = np.log(np.maximum(total * (1 - 1 / slope)[first:], np.finfo(float).tiny))
        self.log_bias = np.log(np.maximum((test / slope)[first:], np.finfo(float).tiny))
        # under a power law df2 is a fixed share of df1, so both have one slope
        count = self._slope(self.log_df1)
        self.slopes = {"log_df1": count, "log_df2": count, "log_bias": self._slope(self.log_bias)}

    def _slope(self, values: Array) -> float:
        near = self.log_kappa <= self.log_kappa[0] + SLOPE_WINDOW
        return 0.0 if self.complete else float(np.polyfit(self.log_kappa[near], values[near], 1)[0])

    def at(self, name: str, x: Array) -> Array:
        """One of the functions at log kappa; a power law below the reach of the data, where the last value stays above it."""
        values = getattr(self, name)
        inside = np.interp(x, self.log_kappa, values)
        return np.asarray(inside + self.slopes[name] * np.minimum(x - self.log_kappa[0], 0.0))


def extrapolate(
    spectrum: Spectrum, samples: Any, ridge: Any, correction: Callable[[Array], Array] = np.ones_like
) -> Extrapolation:
    """Errors of fits to n >= N points of the same kind.

    Parameters
    ----------
    spectrum
        The N points.
    samples, ridge
        n and lambda, which broadcast.
    correction
        See `PopulationFunctions`.

    Examples
    --------
    At n = N the answer is cross-validation of the fit to all points:

    >>> from limitlab.lab.forecast.spectrum import from_numbers
    >>> s, c = 1 / np.arange(1, 41) ** 1.5, np.arange(1, 41) ** -1.2 / 2
    >>> found = extrapolate(from_numbers(s, c, 40), [40, 80, 10_000], 0.1)
    >>> left = 0.1 / (s + 0.1)
    >>> bool(abs(found.test_error[0] / ((c * left**2).sum() / left.mean() ** 2) - 1) < 1e-3)
    True
    >>> found.test_error.round(3).tolist()
    [0.701, 0.662, 0.622]
    """
    from limitlab.numerics.roots import bracketed_root

    known = PopulationFunctions(spectrum, correction)
    n, lam = np.broadcast_arrays(np.asarray(samples, dtype=float), np.asarray(ridge, dtype=float))
    top = known.log_kappa[-1]
    low = np.log(np.finfo(float).tiny) / 2

    wanted = np.where(lam > 0, lam, spectrum.mean_diagonal)  # a stand-in where there is no equation to solve

    def excess(x: Any) -> Any:
        return np.exp(x) * (1 - np.exp(known.at("log_df1", np.asarray(x))) / n) - wanted

    # left of the largest zero of 1 - df1/n the function is not positive; it increases through its last root
    floor = np.full(n.shape, low)
    crowded = np.exp(known.at("log_df1", floor)) >= n
    if crowded.any():
        crowd = np.where(crowded, n, np.exp(known.log_df1.mean()))
        edge = bracketed_root(lambda x: crowd - np.exp(known.at("log_df1", np.asarray(x))), floor, np.full(n.shape, top))
        floor = np.where(crowded, edge, floor)
    x = np.where(lam > 0, bracketed_root(excess, floor, np.full(n.shape, top)), floor)
    kappa = np.where((lam == 0) & ~crowded, 0.0, np.exp(x))
    df1, df2 = np.exp(known.at("log_df1", x)), np.exp(known.at("log_df2", x))
    below = np.maximum(known.log_kappa[0] - x, 0.0)
    doubt = np.where(known.complete, 0.0, SLOPE_DOUBT * np.abs(known.slopes["log_bias"]) * below)
    with np.errstate(divide="ignore"):
        test = np.exp(known.at("log_bias", x)) / np.maximum(1 - np.minimum(df2, df1) / n, 0.0)
    shrink = np.where(kappa > 0, lam / np.where(kappa > 0, kappa, 1), 1 - df1 / n)
    fitted = np.exp(np.interp(x, known.log_kappa, known.log_ridge))
    return Extrapolation(test[()], (shrink**2 * test)[()], (df1 / n)[()], kappa[()], doubt[()], fitted[()])
