"""Forecast errors at any number of points and any ridge.

They come from the law for n < N and from the population functions for n >= N. Searches use both.

Noise of the targets
--------------------
The noise of the targets is the value that maximises the likelihood of the data under the Gaussian process of the kernel.

Let K/N = sum s_k u_k u_k', and let N c_k be the mean square of the targets along u_k. Then y is Gaussian with covariance a (K/N + l). The
factor a is eliminated, and l minimises

    sum_k m_k log(s_k + l) + N log sum_k c_k / (s_k + l),          sigma^2 = l sum_k c_k / (s_k + l)                        (9a)

(docs/theory/learning_curves.md). No further decomposition is needed. The extrapolated error curve tends to this value. The value depends on
the kernel and need not be the true noise of the data.

From N on
---------
A fit to N points with ridge l' acts on the population like ridge regression with the effective ridge kappa = l' / (1 - df/N). Properties of
this fit estimate those of the population. df(l') estimates df1(kappa), d kappa / d l' determines df2(kappa), and leave-one-out estimates
the error (docs/theory/learning_curves.md, eqs. 7-9). Two functions determine every learning curve of independent draws,

    df1(kappa)  and  B(kappa) = test (1 - df2/n).

Fits to the N points with different ridges determine both for every kappa >= kappa_0, without any model. A fit to n > N points with ridge
lambda needs them at the root of kappa (1 - df1(kappa)/n) = lambda. Below kappa_0 (small ridge, many more points) they are extrapolated as
power laws with their slopes above kappa_0. B tends to the noise of the targets (`floor`) and not to zero. The curve is scaled such that its
value at n = N is the leave-one-out error for every ridge.

Below N
-------
The law of a random subset depends on the targets through mean_i r_i(kappa)^2 / (1 - mean_i h_i(kappa))^2. Here r = y - H y are the
residuals of a ridge fit to all points with ridge kappa, and h is the diagonal of H (docs/theory/learning_curves.md, eq. 4). The points
determine two further quantities:

- The mean with the leverage of each point, mean_i (r_i / (1 - h_i))^2. At n = N it is exactly the leave-one-out error.
- The standard deviation of this mean over populations of N such points, by the jackknife, std(e_i^2) / (mean(e_i^2) sqrt N).

Both depend on (n, ridge) through kappa only. They are computed at a few dozen values of kappa and interpolated.

Large data
----------
Six subsets of a thousand points take seconds for any N. On images they were more accurate than a Nystrom approximation of the same cost
(docs/theory/learning_curves.md). Beyond the size of a subset the forecast is an extrapolation, and the result says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.applied.forecast._spectrum import NEARLY_ONE, Spectrum
from limitlab.errors import UnreachableTarget
from limitlab.laws.regression.finite_population import learning_curve
from limitlab.numerics.roots import bracketed_root

Array = NDArray[np.float64]

NOISE_LEVELS = (1e-9, 1e3, 240)
"""Smallest value, largest value and number of values of l in the search, relative to the mean diagonal of the kernel."""


def noise_floor(spectrum: Spectrum) -> float:
    """Return sigma^2 of (9a), the noise part of the mean square of the targets; 0 if a fit without noise is more likely.

    >>> rng = np.random.default_rng(0)
    >>> from limitlab.applied.forecast._spectrum import from_features
    >>> X = rng.standard_normal((400, 10))
    >>> noisy = from_features(X, X @ np.ones((10, 1)) + 2 * rng.standard_normal((400, 1)))
    >>> clean = from_features(X, X @ np.ones((10, 1)))
    >>> round(noise_floor(noisy), 1), noise_floor(clean) < 1e-6
    (4.1, True)
    """
    s, m, c, total = spectrum.eigenvalues, spectrum.multiplicities, spectrum.energies, spectrum.population
    levels = np.geomspace(NOISE_LEVELS[0], NOISE_LEVELS[1], NOISE_LEVELS[2]) * spectrum.mean_diagonal
    shifted = s + levels[:, None]
    power = (c / shifted).sum(axis=1)
    cost = (m * np.log(shifted)).sum(axis=1) + total * np.log(np.maximum(power, np.finfo(float).tiny))
    best = int(np.argmin(cost))
    return 0.0 if best == 0 else float(min(levels[best] * power[best], c.sum()))


NODES = 430
LOWEST, HIGHEST = 1e-8, 1e4
"""Smallest and largest ridge of the fits to all N points, relative to the mean diagonal of the kernel."""

LEAST_GAP = 0.5
"""Smallest remaining share of degrees of freedom in fits that determine the population functions.

With a smaller share df2 is too uncertain. On MNIST, in extrapolations from 700 points by a factor of three without ridge, the errors were
-27 % with a limit of 0.05 and -12 % with a limit of 0.5.
"""

FEW_DIRECTIONS = 0.95
"""A kernel with fewer directions than this share of the points has no tail of the spectrum.

Its population functions are known down to kappa = 0.
"""

FLOOR_SHARE = 0.999
"""Largest floor, relative to B at the smallest kappa that the data determine."""

LARGEST_LOG = 600.0
SLOPE_WINDOW = np.log(10.0)


class Extrapolation(NamedTuple):
    """Predicted errors beyond the data.

    Attributes
    ----------
    test_error, train_error, degrees_of_freedom, effective_ridge
        Quantities of `laws.regression.finite_population.LearningCurve`, with the correction for unequal leverages if there is one.
    law_error
        The test error without the correction.
    fitted_ridge
        The ridge of the fit to all N points that has the same effective ridge. Resampling uses the residuals of this fit.
    """

    test_error: Array
    law_error: Array
    train_error: Array
    degrees_of_freedom: Array
    effective_ridge: Array
    fitted_ridge: Array


class ErrorFunction(NamedTuple):
    """B against log kappa, and the leave-one-out error of the fit to all points against its ridge.

    Attributes
    ----------
    log_bias
        log B at the nodes of `PopulationFunctions.log_kappa`.
    floor
        Limit of B for small kappa.
    slope
        Power of kappa with which B approaches the floor.
    log_left_out
        Logarithm of the leave-one-out error at the nodes of `PopulationFunctions.all_ridges`.
    """

    log_bias: Array
    floor: float
    slope: float
    log_left_out: Array


class PopulationFunctions:
    """Estimates of df1, df2 and B of the population of N points, as functions of log kappa.

    Parameters
    ----------
    spectrum
        The points.
    correction
        Factor for unequal leverages at a ridge of the fit to all points. None means generalised cross-validation.
    largest_ridge
        Upper bound for the ridges of later calls.
    """

    def __init__(self, spectrum: Spectrum, correction: Callable[[Array], Array] | None = None, largest_ridge: float = 0.0):
        s, m, c, total = spectrum.eigenvalues, spectrum.multiplicities, spectrum.energies, spectrum.population
        unit = spectrum.mean_diagonal
        lam = np.geomspace(LOWEST * unit, largest_node(spectrum, largest_ridge), NODES)
        positive = np.where(s > 0, m, 0.0)
        u = lam[:, None] / (s + lam[:, None])
        gap = (1 - positive.sum() / total) + (positive * u).sum(axis=1) / total
        mixed = (positive * u * (1 - u)).sum(axis=1) / total
        # d kappa / d lambda = 1 / (1 - df2/N) is at least 1 in the limit; estimates from N points may be slightly smaller
        slope = np.maximum((gap - mixed) / gap**2, 1.0)
        test = (c * u**2).sum(axis=1) / gap**2
        self.unit, self.population = unit, float(total)
        self.all_ridges = np.log(lam)
        self.complete = bool(positive.sum() < FEW_DIRECTIONS * total)
        first = 0 if self.complete else int(np.argmax(gap >= LEAST_GAP))
        self.log_kappa, self.log_ridge = np.log(lam / gap)[first:], np.log(lam)[first:]
        self.log_df1, self.log_df2 = _log(total * (1 - gap)[first:]), _log(total * (1 - 1 / slope)[first:])
        self.slope = self._slope(self.log_df1)  # under a power law df2 is a fixed share of df1, so both have this slope
        noise = noise_floor(spectrum)

        def error_function(errors: Array) -> ErrorFunction:
            log_bias = _log((errors / slope)[first:])
            floor = min(noise, FLOOR_SHARE * float(np.exp(log_bias[0])))
            above = _log(np.maximum(np.exp(log_bias) - floor, 0.0))
            return ErrorFunction(log_bias, floor, max(self._slope(above), 0.0), _log(errors))

        self.plain = error_function(test)
        self.corrected = self.plain if correction is None else error_function(test * correction(lam))

    def _slope(self, values: Array) -> float:
        near = self.log_kappa <= self.log_kappa[0] + SLOPE_WINDOW
        return 0.0 if self.complete else float(np.polyfit(self.log_kappa[near], values[near], 1)[0])

    def count(self, values: Array, x: Array) -> Array:
        """Return `log_df1` or `log_df2` at log kappa, by interpolation and, below the smallest known kappa, by a power law."""
        return np.asarray(np.interp(x, self.log_kappa, values) + self.slope * np.minimum(x - self.log_kappa[0], 0.0))

    def bias(self, known: ErrorFunction, x: Array) -> Array:
        """Return the logarithm of B at log kappa.

        Below the smallest known kappa, B minus the floor is extrapolated as a power law.
        """
        inside = np.interp(x, self.log_kappa, known.log_bias)
        below = known.slope * np.minimum(x - self.log_kappa[0], 0.0)
        if not known.floor:
            return np.asarray(inside + below)
        share = known.floor / np.exp(known.log_bias[0])  # share of noise in B at the smallest known kappa
        return np.asarray(inside + np.log(share + (1 - share) * np.exp(below)))

    def effective(self, n: Array, lam: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Return log kappa of n points with ridge lambda, and where kappa is 0 (no ridge, fewer directions than points)."""
        top, floor = np.full(n.shape, self.log_kappa[-1]), np.full(n.shape, np.log(np.finfo(float).tiny) / 2)
        wanted = np.where(lam > 0, lam, self.unit)  # a placeholder where there is no equation to solve

        def excess(x: Any) -> Any:
            return np.exp(x) * (1 - np.exp(self.count(self.log_df1, np.asarray(x))) / n) - wanted

        # left of the zero of 1 - df1/n the function is not positive; it increases through its root to the right of it
        crowded = np.exp(np.minimum(self.count(self.log_df1, floor), LARGEST_LOG)) >= n
        if crowded.any():
            crowd = np.log(np.where(crowded, n, np.exp(self.log_df1.mean())))
            edge = bracketed_root(lambda x: crowd - self.count(self.log_df1, np.asarray(x)), floor, top)
            floor = np.where(crowded, edge, floor)
        return np.where(lam > 0, bracketed_root(excess, floor, top), floor), (lam == 0) & ~crowded

    def error(self, known: ErrorFunction, x: Array, n: Array) -> Array:
        """Return the test error of n points at log kappa."""
        df1, df2 = np.exp(self.count(self.log_df1, x)), np.exp(self.count(self.log_df2, x))
        with np.errstate(divide="ignore"):
            return np.asarray(np.exp(self.bias(known, x)) / np.maximum(1 - np.minimum(df2, df1) / n, 0.0))

    def left_out(self, known: ErrorFunction, lam: Array) -> Array:
        """Return the leave-one-out error of the fit to all N points."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.exp(np.interp(np.log(lam), self.all_ridges, known.log_left_out)))


def largest_node(spectrum: Spectrum, largest_ridge: float) -> float:
    """Return the largest ridge of the fits to all N points that determine `PopulationFunctions`."""
    return max(HIGHEST * spectrum.mean_diagonal, 10 * largest_ridge)


def extrapolate(functions: PopulationFunctions, samples: Any, ridge: Any) -> Extrapolation:
    """Return the errors of fits to n >= N points from the same population.

    Parameters
    ----------
    functions
        The population functions of the N points.
    samples, ridge
        n and lambda, which broadcast.

    Examples
    --------
    At n = N the result is the cross-validation error of the fit to all points:

    >>> from limitlab.applied.forecast._spectrum import from_numbers
    >>> s, c = 1 / np.arange(1, 41) ** 1.5, np.arange(1, 41) ** -1.2 / 2
    >>> errors = extrapolate(PopulationFunctions(from_numbers(s, c, 40)), [40, 80, 10_000], 0.1).test_error
    >>> left = 0.1 / (s + 0.1)
    >>> bool(abs(errors[0] / ((c * left**2).sum() / left.mean() ** 2) - 1) < 1e-3)
    True
    >>> errors.round(3).tolist()
    [0.701, 0.662, 0.622]
    """
    n, lam = np.broadcast_arrays(np.asarray(samples, dtype=float), np.asarray(ridge, dtype=float))
    x, zero = functions.effective(n, lam)
    start, _ = functions.effective(np.full(n.shape, functions.population), lam)

    def test_error(known: ErrorFunction) -> Array:
        anchor = functions.left_out(known, lam) / functions.error(known, start, np.full(n.shape, functions.population))
        return np.asarray(functions.error(known, x, n) * anchor)

    law = test_error(functions.plain)
    test = law if functions.corrected is functions.plain else test_error(functions.corrected)
    kappa, df1 = np.where(zero, 0.0, np.exp(x)), np.exp(functions.count(functions.log_df1, x))
    shrink = np.where(kappa > 0, lam / np.where(kappa > 0, kappa, 1), 1 - df1 / n)
    fitted = np.exp(np.interp(x, functions.log_kappa, functions.log_ridge))
    return Extrapolation(test[()], law[()], (shrink**2 * test)[()], (df1 / n)[()], kappa[()], fitted[()])


def _log(values: Array) -> Array:
    return np.asarray(np.log(np.maximum(values, np.finfo(float).tiny)))


PROFILE_NODES = 48
PROFILE_RANGE = (1e-7, 1e2)
"""Range of kappa for the profile, relative to the mean diagonal of the kernel."""

COLUMNS = 256
"""Largest number of columns in a matrix product."""


@dataclass(frozen=True)
class Profile:
    """Correction for unequal leverages and relative standard error of the mean, against log kappa.

    Attributes
    ----------
    log_kappa
        Nodes, increasing.
    log_correction
        Logarithm of mean (r / (1 - h))^2 over mean r^2 / (1 - mean h)^2; 0 where it is undefined.
    spread
        Standard deviation of the logarithm of mean (r / (1 - h))^2, by the jackknife.
    """

    log_kappa: Array
    log_correction: Array
    spread: Array

    def correction(self, kappa: Any) -> Array:
        """Return the factor that replaces the mean leverage in the law by the leverage of each point."""
        return np.exp(self._at(kappa, self.log_correction))

    def deviation(self, kappa: Any) -> Array:
        """Return the relative standard error of a predicted test error, which is due to the finite number of points."""
        return self._at(kappa, self.spread)

    def _at(self, kappa: Any, values: Array) -> Array:
        from scipy.interpolate import PchipInterpolator

        low, high = self.log_kappa[[0, -1]]
        with np.errstate(divide="ignore"):
            place = np.clip(np.log(np.asarray(kappa, dtype=float)), low, high)
        return np.asarray(PchipInterpolator(self.log_kappa, values)(place))


def profile(spectrum: Spectrum, nodes: int = PROFILE_NODES) -> Profile:
    """Return the profile of a fitted population.

    Examples
    --------
    >>> from limitlab.applied.forecast._spectrum import from_features
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 5))
    >>> unequal = profile(from_features(X, X[:, :1] + rng.standard_normal((200, 1))))
    >>> bool(abs(unequal.correction(0.01) - 1) < 0.02), bool(0.05 < unequal.deviation(0.01) < 0.2)
    (True, True)
    """
    kappas = np.geomspace(*PROFILE_RANGE, nodes) * spectrum.mean_diagonal
    outputs = 1 if spectrum.targets is None else spectrum.targets.shape[1]
    pieces = np.array_split(kappas, max(1, -(-nodes * outputs // COLUMNS)))
    corrections, spreads = zip(*(_piece(spectrum, piece) for piece in pieces), strict=True)
    return Profile(np.log(kappas), np.concatenate(corrections), np.concatenate(spreads))


def _piece(spectrum: Spectrum, kappas: Array) -> tuple[Array, Array]:
    squares = (spectrum.residuals(kappas) ** 2).mean(axis=2)  # (N, kappas)
    gaps = 1 - spectrum.leverages(kappas)
    alone = np.maximum(gaps, NEARLY_ONE)
    left_out = squares / alone**2
    mean, plain = left_out.mean(axis=0), squares.mean(axis=0) / gaps.mean(axis=0) ** 2
    sensible = (gaps.min(axis=0) > NEARLY_ONE) & (plain > 0) & (mean > 0)
    correction = np.where(sensible, np.log(np.where(sensible, mean / np.where(plain > 0, plain, 1), 1)), 0.0)
    used = np.where(sensible, left_out, squares)
    size = used.mean(axis=0)
    spread = used.std(axis=0) / (np.where(size > 0, size, 1.0) * np.sqrt(len(used)))
    return correction, spread


CHUNK = 4_000_000
"""Largest number of entries of a temporary array of the law."""

RIDGES = (1e-7, 1e1)
"""Range of the search for the best ridge, relative to the mean diagonal of the kernel."""

SEARCH, REFINE, REFINEMENTS = 40, 9, 3
BIN = 0.02
"""Relative distance within which eigenvalues are merged in searches. The error is of second order in it."""

MOST_TIMES_MORE = 1000
"""Largest multiple of the number of points in the search of `samples_for`."""

SPLITS = 3
"""Number of random splits of the data into two halves that test the extrapolation."""


class Errors(NamedTuple):
    """Errors at (n, ridge) with the fields of `finite_population.LearningCurve` and the relative deviation."""

    test_error: Array
    law_error: Array
    train_error: Array
    degrees_of_freedom: Array
    effective_ridge: Array
    deviation: Array


@dataclass(frozen=True)
class Population:
    """The forecast errors of a spectrum.

    Parameters
    ----------
    spectrum
        The points.
    seed
        Seed of the resampling and of the halves.
    """

    spectrum: Spectrum
    seed: int = 0

    @cached_property
    def profile(self) -> Profile | None:
        """The correction for leverages and the band; None for a spectrum without points."""
        if self.spectrum.vectors is None:
            return None
        return profile(self.spectrum)

    @cached_property
    def merged(self) -> Spectrum:
        """The spectrum with merged close eigenvalues, for searches."""
        return merged(self.spectrum)

    @cached_property
    def _functions(self) -> dict[tuple[bool, bool, float], PopulationFunctions]:
        return {}

    def functions(self, corrected: bool, quick: bool, largest_ridge: float) -> PopulationFunctions:
        """Return the population functions. They are computed at first use and cached.

        Parameters
        ----------
        corrected
            Whether they include the correction for unequal leverages.
        quick
            Whether to use the merged spectrum.
        largest_ridge
            Upper bound for the ridges of later calls. Calls with the same range of ridges use the same functions. Only a very large bound
            extends the range.
        """
        spectrum = self.merged if quick else self.spectrum
        known = self.profile if corrected else None
        key = known is not None, quick, largest_node(spectrum, largest_ridge)
        if key not in self._functions:
            correction = None if known is None else known.correction
            self._functions[key] = PopulationFunctions(spectrum, correction, largest_ridge)
        return self._functions[key]

    @cached_property
    def halves(self) -> list[Population]:
        """Random halves of the points as populations. The halves of a pair have no common point, so their sampling errors cancel."""
        halves = []
        for index in range(SPLITS):
            order = np.random.default_rng([self.seed, 2, index]).permutation(self.spectrum.population)
            middle = self.spectrum.population // 2
            halves += [
                Population(self.spectrum.subset(np.sort(rows)), self.seed)
                for rows in (order[:middle], order[middle : 2 * middle])
            ]
        return halves

    def errors(self, samples: Any, ridge: Any, corrected: bool = True, quick: bool = False) -> Errors:
        """Return the errors at (samples, ridge), which broadcast. `quick` uses merged eigenvalues."""
        n, lam = np.broadcast_arrays(np.asarray(samples, dtype=float), np.asarray(ridge, dtype=float))
        spectrum = self.merged if quick else self.spectrum
        known = self.profile if corrected else None
        out = np.zeros((6, *n.shape))
        beyond = n >= spectrum.population
        if (~beyond).any():
            law = law_errors(spectrum, n[~beyond], lam[~beyond])
            kappa = law[3]
            factor = known.correction(kappa) if known is not None else 1.0
            factor = np.where(kappa > 0, factor, 1.0)
            spread = known.deviation(kappa) if known is not None else np.zeros_like(kappa)
            out[:, ~beyond] = (law[0] * factor, law[0], law[1], law[2], kappa, spread)
        if beyond.any():
            functions = self.functions(corrected, quick, float(lam[beyond].max()))
            far = extrapolate(functions, n[beyond], lam[beyond])
            spread = known.deviation(far.fitted_ridge) if known is not None else np.zeros_like(far.test_error)
            out[:, beyond] = (
                far.test_error, far.law_error, far.train_error, far.degrees_of_freedom, far.effective_ridge, spread,
            )  # fmt: skip
        return Errors(*out)

    def best_ridge(self, samples: Any, corrected: bool = True) -> tuple[Array, NDArray[np.bool_]]:
        """Return the ridge with the smallest test error for every n, and whether it is an end of the range of the search."""
        n = np.atleast_1d(np.asarray(samples, dtype=float))
        low, high = (math.log(end * self.spectrum.mean_diagonal) for end in RIDGES)
        grid = np.broadcast_to(np.linspace(low, high, SEARCH), (n.size, SEARCH))
        for _ in range(REFINEMENTS + 1):
            values = self.errors(n[:, None], np.exp(grid), corrected, quick=True).test_error
            best = values.argmin(axis=1)
            rows = np.arange(n.size)
            left, right = grid[rows, np.maximum(best - 1, 0)], grid[rows, np.minimum(best + 1, grid.shape[1] - 1)]
            at_best = grid[rows, best]
            grid = np.linspace(left, right, REFINE, axis=1)
        step = (high - low) / (SEARCH - 1) / 8
        return np.exp(at_best), (at_best < low + step) | (at_best > high - step)

    def backtest(self, ridge: Any, corrected: bool = True) -> tuple[Array, Array]:
        """Return forecasts of the error at n = N from halves of the points over (half, ridge), and the leave-one-out errors."""
        lam = np.atleast_1d(np.asarray(ridge, dtype=float))
        total = self.spectrum.population
        reference = self.errors(total, lam, corrected).test_error
        return np.array([half.errors(total, lam, corrected).test_error for half in self.halves]), reference

    def tail_deviation(self, ridge: Any, corrected: bool = True) -> Array:
        """Return b_t for every ridge, the error of a forecast per doubling of the data.

        It is the mean over the halves of the logarithm of forecast over truth.
        """
        forecasts, reference = self.backtest(ridge, corrected)
        return np.asarray(np.log(forecasts / reference).mean(axis=0))

    def samples_for(self, error: float, ridge_at: Callable[[Array], Array], corrected: bool = True) -> float:
        """Return the smallest n with a predicted error of at most `error`. `ridge_at` returns the ridge at each n."""
        total = self.spectrum.population
        grid = np.unique(np.round(np.geomspace(2, MOST_TIMES_MORE * total, 120)))
        values = self.errors(grid, ridge_at(grid), corrected, quick=True).test_error
        reached = np.flatnonzero(values <= error)
        if not reached.size:
            best = int(values.argmin())
            raise UnreachableTarget(
                f"error = {error:g} cannot be reached: the smallest predicted error is {values[best]:.4g}, at n = {grid[best]:.0f}; "
                "another ridge (ridge='best'), other features or another kernel may give a smaller error",
                best=float(values[best]),
                at=float(grid[best]),
            )
        first = int(reached[0])
        low, high = (grid[first - 1] if first else 1.0), grid[first]
        while high - low > max(1.0, 1e-4 * high):
            middle = np.array([np.floor((low + high) / 2)])
            below = bool(self.errors(middle, ridge_at(middle), corrected, quick=True).test_error[0] <= error)
            low, high = (low, float(middle[0])) if below else (float(middle[0]), high)
        return float(high)


def approximation_error(spectrum: Spectrum, samples: Array, ridge: Array) -> float:
    """Return the relative error of a Nystrom approximation, which is twice the difference to half its rank.

    This is a bound if the error falls faster than one over the root of the rank.
    """
    if spectrum.coarse is None:
        return 0.0
    inside = np.minimum(samples, spectrum.population - 1)
    fine, coarse = (Population(s).errors(inside, ridge, corrected=False).test_error for s in (spectrum, spectrum.coarse))
    return float(2 * np.max(np.abs(coarse / fine - 1)))


def law_errors(spectrum: Spectrum, samples: Array, ridge: Array) -> tuple[Array, Array, Array, Array]:
    """Return the finite-population law for flat arrays of n and ridge, in pieces that fit into memory."""
    pieces = max(1, -(-samples.size * spectrum.eigenvalues.size // CHUNK))
    parts = [
        learning_curve(n, lam, spectrum.eigenvalues, spectrum.energies, spectrum.population, spectrum.multiplicities)
        for n, lam in zip(np.array_split(samples, pieces), np.array_split(ridge, pieces), strict=True)
        if n.size
    ]
    test, train, freedom, kappa = (np.concatenate([np.atleast_1d(part[i]) for part in parts]) for i in range(4))
    return test, train, freedom, kappa


def merged(spectrum: Spectrum, width: float = BIN) -> Spectrum:
    """Return a spectrum in which eigenvalues within a relative distance are replaced by their mean, with summed energies.

    >>> from limitlab.applied.forecast._spectrum import from_numbers
    >>> spectrum = merged(from_numbers([1.0, 1.0, 0.5], [0.1, 0.2, 0.3], 10))
    >>> spectrum.eigenvalues.tolist(), spectrum.multiplicities.tolist()
    ([1.0, 0.5, 0.0], [2.0, 1.0, 7.0])
    """
    s, m, c = spectrum.eigenvalues, spectrum.multiplicities, spectrum.energies
    label = np.floor(np.log(s[:-1] / s[0]) / width)
    starts = np.flatnonzero(np.r_[True, np.diff(label) != 0])
    count = np.add.reduceat(m[:-1], starts)
    values = np.add.reduceat((m * s)[:-1], starts) / count
    return replace(
        spectrum,
        eigenvalues=np.append(values, s[-1]),
        multiplicities=np.append(count, m[-1]),
        energies=np.append(np.add.reduceat(c[:-1], starts), c[-1]),
        vectors=None,
        targets=None,
        projections=None,
        right=None,
        coarse=None,
    )


SUBSETS, SUBSET_SIZE = 6, 1000


@dataclass(frozen=True)
class Ensemble(Population):
    """Several populations of the same size from the same data. The attribute `spectrum` is that of the first.

    Parameters
    ----------
    parts
        The populations.
    """

    parts: tuple[Population, ...] = field(default=())

    def errors(self, samples: Any, ridge: Any, corrected: bool = True, quick: bool = False) -> Errors:
        """Return the errors averaged over the parts, with the deviation of the average."""
        errors = [part.errors(samples, ridge, corrected, quick) for part in self.parts]
        mean = Errors(*(np.mean([error[i] for error in errors], axis=0) for i in range(len(errors[0]))))
        each = np.sqrt(np.mean([error.deviation**2 for error in errors], axis=0) / len(self.parts))
        return mean._replace(deviation=each)

    def backtest(self, ridge: Any, corrected: bool = True) -> tuple[Array, Array]:
        """Return forecasts of the error of each part from its halves over (half of any part, ridge), and the mean left-out error."""
        pairs = [part.backtest(ridge, corrected) for part in self.parts]
        reference = np.mean([truth for _, truth in pairs], axis=0)
        return np.concatenate([guess / truth for guess, truth in pairs]) * reference, reference


def subset_rows(total: int, subsets: int, size: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Return disjoint random subsets of the rows, at most as many as the points allow.

    >>> [len(rows) for rows in subset_rows(2500, 6, 1000, np.random.default_rng(0))]
    [1000, 1000]
    """
    order = rng.permutation(total)
    count = max(1, min(subsets, total // size))
    return [np.sort(order[i * size : (i + 1) * size]) for i in range(count)]
