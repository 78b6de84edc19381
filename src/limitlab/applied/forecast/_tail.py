"""Beyond the data: what N points say about fits to n >= N points of the same kind.

A fit to N points with ridge l' acts on the population like ridge regression with the effective ridge kappa = l' / (1 - df/N),
and measures what the population does there: df(l') is the population's df1(kappa), d kappa / d l' gives its df2(kappa), and
leave-one-out gives its error (docs/theory/learning_curves.md, eqs. 7-9). So the two functions that decide every learning
curve of independent draws,

    df1(kappa)  and  B(kappa) = test (1 - df2/n),

are known for every kappa that the N points can reach, kappa >= kappa_0, without any model. A fit to n > N points with
ridge lambda needs them at the root of kappa (1 - df1(kappa)/n) = lambda. Below kappa_0 (small ridge, many more points) they
are continued as power laws with the slopes they have above it, B down to the noise of the targets (`floor`) and not to zero.
The curve is anchored at n = N, where leave-one-out gives the error at every ridge.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.applied.forecast._floor import noise_floor
from limitlab.applied.forecast._spectrum import Spectrum
from limitlab.numerics.roots import bracketed_root

Array = NDArray[np.float64]

NODES = 400
LOWEST, HIGHEST = 1e-7, 1e4
"""Ridges of the fits to all N points that are looked at, over the mean diagonal of the kernel."""

LEAST_GAP = 0.5
"""The reach of the data ends where a fit uses up more than half of the degrees of freedom: df2 is too uncertain beyond (on
MNIST, extrapolating 700 points threefold without ridge, errors were -27 % with 0.05 in this place and -12 % with 0.5)."""

FEW_DIRECTIONS = 0.95
"""A kernel with fewer directions than this share of the points has no tail: its functions are known down to kappa = 0."""

FLOOR_SHARE = 0.999
"""The floor is kept below B where the reach of the data ends."""

LARGEST_LOG = 600.0
SLOPE_WINDOW = np.log(10.0)


class Extrapolation(NamedTuple):
    """Predicted errors beyond the data.

    Attributes
    ----------
    test_error, train_error, degrees_of_freedom, effective_ridge
        As in `laws.regression.finite_population.LearningCurve`.
    fitted_ridge
        The ridge of the fit to all N points that has the same effective ridge; its residuals are those to resample.
    """

    test_error: Array
    train_error: Array
    degrees_of_freedom: Array
    effective_ridge: Array
    fitted_ridge: Array


class PopulationFunctions:
    """df1, df2 and B of the population behind N points, as functions of log kappa.

    Parameters
    ----------
    spectrum
        The points.
    correction
        Factor for unequal leverages at a ridge of the fit to all points; 1 means generalised cross-validation.
    largest_ridge
        The largest ridge that will be asked for.
    """

    def __init__(self, spectrum: Spectrum, correction: Callable[[Array], Array], largest_ridge: float = 0.0):
        s, m, c, total = spectrum.eigenvalues, spectrum.multiplicities, spectrum.energies, spectrum.population
        unit = spectrum.mean_diagonal
        lam = np.geomspace(LOWEST * unit, max(HIGHEST * unit, 10 * largest_ridge), NODES)
        positive = np.where(s > 0, m, 0.0)
        u = lam[:, None] / (s + lam[:, None])
        gap = (1 - positive.sum() / total) + (positive * u).sum(axis=1) / total
        mixed = (positive * u * (1 - u)).sum(axis=1) / total
        # d kappa / d lambda = 1 / (1 - df2/N) of the population: at least 1 in the limit; N points may say slightly less
        slope = np.maximum((gap - mixed) / gap**2, 1.0)
        test = (c * u**2).sum(axis=1) / gap**2 * correction(lam)
        self.unit, self.population = unit, float(total)
        self.all_ridges, self.all_errors = np.log(lam), _log(test)
        self.complete = bool(positive.sum() < FEW_DIRECTIONS * total)
        first = 0 if self.complete else int(np.argmax(gap >= LEAST_GAP))
        self.log_kappa, self.log_ridge = np.log(lam / gap)[first:], np.log(lam)[first:]
        self.log_df1, self.log_df2 = _log(total * (1 - gap)[first:]), _log(total * (1 - 1 / slope)[first:])
        self.log_bias = _log((test / slope)[first:])
        self.floor = min(noise_floor(spectrum), FLOOR_SHARE * float(np.exp(self.log_bias[0])))
        # under a power law df2 is a fixed share of df1, so both have one slope
        count = self._slope(self.log_df1)
        above = _log(np.maximum(np.exp(self.log_bias) - self.floor, 0.0))
        self.slopes = {"log_df1": count, "log_df2": count, "log_bias": max(self._slope(above), 0.0)}

    def _slope(self, values: Array) -> float:
        near = self.log_kappa <= self.log_kappa[0] + SLOPE_WINDOW
        return 0.0 if self.complete else float(np.polyfit(self.log_kappa[near], values[near], 1)[0])

    def at(self, name: str, x: Array) -> Array:
        """One of the functions at log kappa: as measured where the data reach, a power law below."""
        values = getattr(self, name)
        inside = np.interp(x, self.log_kappa, values)
        below = self.slopes[name] * np.minimum(x - self.log_kappa[0], 0.0)
        if name != "log_bias" or not self.floor:
            return np.asarray(inside + below)
        share = self.floor / np.exp(values[0])  # of noise in B where the data's reach ends
        return np.asarray(inside + np.log(share + (1 - share) * np.exp(below)))

    def effective(self, n: Array, lam: Array) -> tuple[Array, NDArray[np.bool_]]:
        """log kappa of n points with ridge lambda, and where kappa is 0 (no ridge, fewer directions than points)."""
        top, floor = np.full(n.shape, self.log_kappa[-1]), np.full(n.shape, np.log(np.finfo(float).tiny) / 2)
        wanted = np.where(lam > 0, lam, self.unit)  # a stand-in where there is no equation to solve

        def excess(x: Any) -> Any:
            return np.exp(x) * (1 - np.exp(self.at("log_df1", np.asarray(x))) / n) - wanted

        # left of the zero of 1 - df1/n the function is not positive; it increases through its root to the right of it
        crowded = np.exp(np.minimum(self.at("log_df1", floor), LARGEST_LOG)) >= n
        if crowded.any():
            crowd = np.log(np.where(crowded, n, np.exp(self.log_df1.mean())))
            edge = bracketed_root(lambda x: crowd - self.at("log_df1", np.asarray(x)), floor, top)
            floor = np.where(crowded, edge, floor)
        return np.where(lam > 0, bracketed_root(excess, floor, top), floor), (lam == 0) & ~crowded

    def error(self, x: Array, n: Array) -> Array:
        """Test error of n points at log kappa."""
        df1, df2 = np.exp(self.at("log_df1", x)), np.exp(self.at("log_df2", x))
        with np.errstate(divide="ignore"):
            return np.asarray(np.exp(self.at("log_bias", x)) / np.maximum(1 - np.minimum(df2, df1) / n, 0.0))

    def left_out(self, lam: Array) -> Array:
        """Leave-one-out error of the fit to all N points."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.exp(np.interp(np.log(lam), self.all_ridges, self.all_errors)))


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

    >>> from limitlab.applied.forecast._spectrum import from_numbers
    >>> s, c = 1 / np.arange(1, 41) ** 1.5, np.arange(1, 41) ** -1.2 / 2
    >>> found = extrapolate(from_numbers(s, c, 40), [40, 80, 10_000], 0.1)
    >>> left = 0.1 / (s + 0.1)
    >>> bool(abs(found.test_error[0] / ((c * left**2).sum() / left.mean() ** 2) - 1) < 1e-3)
    True
    >>> found.test_error.round(3).tolist()
    [0.701, 0.662, 0.622]
    """
    n, lam = np.broadcast_arrays(np.asarray(samples, dtype=float), np.asarray(ridge, dtype=float))
    known = PopulationFunctions(spectrum, correction, float(lam.max(initial=0.0)))
    x, zero = known.effective(n, lam)
    start, _ = known.effective(np.full(n.shape, known.population), lam)
    kappa, df1 = np.where(zero, 0.0, np.exp(x)), np.exp(known.at("log_df1", x))
    anchor = known.left_out(lam) / known.error(start, np.full(n.shape, known.population))
    test = known.error(x, n) * anchor
    shrink = np.where(kappa > 0, lam / np.where(kappa > 0, kappa, 1), 1 - df1 / n)
    fitted = np.exp(np.interp(x, known.log_kappa, known.log_ridge))
    return Extrapolation(test[()], (shrink**2 * test)[()], (df1 / n)[()], kappa[()], fitted[()])


def _log(values: Array) -> Array:
    return np.asarray(np.log(np.maximum(values, np.finfo(float).tiny)))
