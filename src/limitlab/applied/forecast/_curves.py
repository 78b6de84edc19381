"""Errors at any number of points and any ridge: the law below N, the population functions beyond, and searches over both."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.applied.forecast._band import Profile, profile
from limitlab.applied.forecast._spectrum import Spectrum
from limitlab.applied.forecast._tail import extrapolate
from limitlab.errors import UnreachableTarget
from limitlab.laws.regression.finite_population import learning_curve

Array = NDArray[np.float64]

CHUNK = 4_000_000
"""Numbers per temporary array of the law."""

RIDGES = (1e-6, 1e1)
"""Ridges between which the best one is looked for, over the mean diagonal of the kernel."""

SEARCH, REFINE, REFINEMENTS = 36, 9, 3
BIN = 0.02
"""Eigenvalues within this relative distance are merged in searches: the error is of second order in it."""

MOST_TIMES_MORE = 1000
"""`samples_for` looks no further than so many times the data."""

SPLITS = 3
"""Random splits of the data into two halves that test the extrapolation."""


class Errors(NamedTuple):
    """Errors on a grid of n and ridge (broadcast), those of `finite_population.LearningCurve` and the relative deviation."""

    test_error: Array
    law_error: Array
    train_error: Array
    degrees_of_freedom: Array
    effective_ridge: Array
    deviation: Array


@dataclass(frozen=True)
class Population:
    """A spectrum with what can be read off its points, and the errors that follow.

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
        """Leverage correction and band; None for a spectrum without points."""
        if self.spectrum.vectors is None:
            return None
        return profile(self.spectrum)

    @cached_property
    def merged(self) -> Spectrum:
        """The spectrum with close eigenvalues merged, for searches."""
        return merged(self.spectrum)

    @cached_property
    def halves(self) -> list[Population]:
        """Random halves of the points as populations of their own: pairs without a common point, whose sampling errors cancel."""
        found = []
        for index in range(SPLITS):
            order = np.random.default_rng([self.seed, 2, index]).permutation(self.spectrum.population)
            middle = self.spectrum.population // 2
            found += [
                Population(self.spectrum.subset(np.sort(rows)), self.seed)
                for rows in (order[:middle], order[middle : 2 * middle])
            ]
        return found

    def errors(self, samples: Any, ridge: Any, corrected: bool = True, quick: bool = False) -> Errors:
        """Errors at (samples, ridge), which broadcast; n >= N is extrapolated. `quick` uses merged eigenvalues."""
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
            plain = extrapolate(spectrum, n[beyond], lam[beyond])
            far = plain if known is None else extrapolate(spectrum, n[beyond], lam[beyond], known.correction)
            spread = known.deviation(far.fitted_ridge) if known is not None else np.zeros_like(far.test_error)
            out[:, beyond] = (
                far.test_error, plain.test_error, far.train_error, far.degrees_of_freedom, far.effective_ridge, spread,
            )  # fmt: skip
        return Errors(*out)

    def best_ridge(self, samples: Any, corrected: bool = True) -> tuple[Array, NDArray[np.bool_]]:
        """The ridge with the least test error for every n, and whether it is an end of the range searched."""
        n = np.atleast_1d(np.asarray(samples, dtype=float))
        low, high = (math.log(end * self.spectrum.mean_diagonal) for end in RIDGES)
        grid = np.broadcast_to(np.linspace(low, high, SEARCH), (n.size, SEARCH))
        for _ in range(REFINEMENTS + 1):
            values = self.errors(n[:, None], np.exp(grid), corrected, quick=True).test_error
            best = values.argmin(axis=1)
            rows = np.arange(n.size)
            left, right = grid[rows, np.maximum(best - 1, 0)], grid[rows, np.minimum(best + 1, grid.shape[1] - 1)]
            chosen = grid[rows, best]
            grid = np.linspace(left, right, REFINE, axis=1)
        step = (high - low) / (SEARCH - 1) / 8
        return np.exp(chosen), (chosen < low + step) | (chosen > high - step)

    def backtest(self, ridge: Any, corrected: bool = True) -> tuple[Array, Array]:
        """What halves of the points say about all of them: forecasts of the error at n = N over (half, ridge), and the errors left out."""
        lam = np.atleast_1d(np.asarray(ridge, dtype=float))
        total = self.spectrum.population
        reference = self.errors(total, lam, corrected).test_error
        return np.array([half.errors(total, lam, corrected).test_error for half in self.halves]), reference

    def tail_deviation(self, ridge: Any, corrected: bool = True) -> Array:
        """b_t for every ridge: mean over the halves of the logarithm of forecast over truth, the error per doubling of the data."""
        forecasts, reference = self.backtest(ridge, corrected)
        return np.asarray(np.log(forecasts / reference).mean(axis=0))

    def samples_for(self, error: float, ridge_at: Callable[[Array], Array], corrected: bool = True) -> float:
        """The smallest n whose predicted error is at most `error`; `ridge_at` gives the ridge used at each n."""
        total = self.spectrum.population
        grid = np.unique(np.round(np.geomspace(2, MOST_TIMES_MORE * total, 120)))
        values = self.errors(grid, ridge_at(grid), corrected, quick=True).test_error
        reached = np.flatnonzero(values <= error)
        if not reached.size:
            best = int(values.argmin())
            raise UnreachableTarget(
                f"error = {error:g} is out of reach: the least predicted is {values[best]:.4g}, at n = {grid[best]:.0f}; "
                "another ridge (ridge='best'), other features or another kernel may do better",
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
    """Relative error of a Nystrom approximation at these points: twice the difference to half its rank.

    That is a bound if the error falls faster than one over the root of the rank.
    """
    if spectrum.coarse is None:
        return 0.0
    inside = np.minimum(samples, spectrum.population - 1)
    fine, coarse = (Population(one).errors(inside, ridge, corrected=False).test_error for one in (spectrum, spectrum.coarse))
    return float(2 * np.max(np.abs(coarse / fine - 1)))


def law_errors(spectrum: Spectrum, samples: Array, ridge: Array) -> tuple[Array, Array, Array, Array]:
    """The finite-population law for flat arrays of n and ridge, in pieces that fit into memory."""
    pieces = max(1, -(-samples.size * spectrum.eigenvalues.size // CHUNK))
    parts = [
        learning_curve(n, lam, spectrum.eigenvalues, spectrum.energies, spectrum.population, spectrum.multiplicities)
        for n, lam in zip(np.array_split(samples, pieces), np.array_split(ridge, pieces), strict=True)
        if n.size
    ]
    test, train, freedom, kappa = (np.concatenate([np.atleast_1d(part[i]) for part in parts]) for i in range(4))
    return test, train, freedom, kappa


def merged(spectrum: Spectrum, width: float = BIN) -> Spectrum:
    """A spectrum whose eigenvalues within a relative distance are replaced by their mean, energies added up.

    >>> from limitlab.applied.forecast._spectrum import from_numbers
    >>> found = merged(from_numbers([1.0, 1.0, 0.5], [0.1, 0.2, 0.3], 10))
    >>> found.eigenvalues.tolist(), found.multiplicities.tolist()
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
