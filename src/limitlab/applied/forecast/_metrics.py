"""Learning curves in any metric: below N by surrogate training sets, at N by leave-one-out, beyond N by the probit line.

Mean squares come from the law itself (`curves`). Error rate, accuracy and area under the curve are averages over surrogate scores;
beyond the data they follow the extrapolated mean square along a line in probit scale (docs/theory/learning_curves.md, eqs. 6a and 13-15).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.applied.forecast._curves import Population
from limitlab.applied.forecast._link import SHARES, ProbitLine, probit_line
from limitlab.applied.forecast._surrogates import DRAWS, METRICS, left_out, surrogate_scores
from limitlab.applied.forecast.diagnostics import ForecastWarning

Array = NDArray[np.float64]

RATES = ("error", "accuracy", "auc")
"""Metrics that can be continued beyond the data."""

MOST_KEPT = 30_000_000
"""Numbers of scores that are kept for other metrics."""

FEWEST_PER_CLASS = 15
"""Training points per class below which error rates were too low by up to a fifth."""


@dataclass(frozen=True)
class Classes:
    """A population with labels.

    Parameters
    ----------
    population
        The points; their targets are +-1 for two classes, one column of 0 and 1 each for more.
    labels
        The labels as they were given, for metrics of the user's own.
    seed
        Seed of the surrogate training sets.
    kept
        Scores that were made already: another metric needs no others.
    """

    population: Population
    labels: NDArray[Any]
    seed: int = 0
    kept: dict[tuple[float, float, int], Array] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def targets(self) -> Array:
        """Targets of the points."""
        targets = self.population.spectrum.targets
        if targets is None:
            raise ValueError("this forecast was made from a spectrum: fit it on data for anything but mean squares")
        return np.asarray(targets, dtype=float)

    def scores(self, samples: float, ridge: float, draws: int = DRAWS) -> Array:
        """Scores of every point by fits to `samples` other points (n < N), or to all others (n = N): (draws, N, outputs)."""
        spectrum, total = self.population.spectrum, self.population.spectrum.population
        if samples >= total:
            residuals, _ = left_out(spectrum, max(ridge, 1e-12 * spectrum.mean_diagonal))
            return (self.targets - residuals)[None]
        if (samples, ridge, draws) in self.kept:
            return self.kept[samples, ridge, draws]
        found = self.population.errors(np.array([samples]), np.array([ridge]))
        kappa, error = max(float(found.effective_ridge[0]), 1e-12 * spectrum.mean_diagonal), float(found.test_error[0])
        rng = np.random.default_rng([self.seed, 3, int(samples)])
        scores = surrogate_scores(spectrum, samples, kappa, error, rng, draws)
        if (len(self.kept) + 1) * scores.size <= MOST_KEPT:
            self.kept[samples, ridge, draws] = scores
        return scores

    def values(self, metric: Any, samples: float, ridge: float) -> Array:
        """The metric of every draw of scores."""
        scores = self.scores(samples, ridge)
        if isinstance(metric, str):
            return np.array([METRICS[metric](one, self.targets) for one in scores])
        return np.array([float(metric(one[:, 0] if one.shape[1] == 1 else one, self.labels)) for one in scores])

    def line(self, metric: str, ridge_at: Callable[[Array], Array]) -> ProbitLine:
        """The probit line of one minus accuracy (or area), fitted at shares of the data and at all of them."""
        total = self.population.spectrum.population
        samples = np.array([max(2.0, round(share * total)) for share in SHARES] + [float(total)])
        ridges = ridge_at(samples)
        squares = self.population.errors(samples, ridges).test_error
        rates = [loss(metric, float(self.values(metric, n, lam).mean())) for n, lam in zip(samples, ridges, strict=True)]
        return probit_line(squares, np.array(rates), total)

    def curve(self, metric: Any, samples: Array, ridges: Array, ridge_at: Callable[[Array], Array]) -> Array:
        """The metric against the number of points."""
        total = self.population.spectrum.population
        linked = isinstance(metric, str) and metric in RATES
        beyond = samples >= total if linked else samples > total  # a handful of mistakes would make a kink at N
        if beyond.any() and not linked:
            raise ValueError(
                f"n = {samples[beyond][0]:g} is not allowed with a metric of your own: must be at most N = {total}; "
                f"beyond the data only mse, {', '.join(RATES)} are continued"
            )
        self.warn_of_few(samples)
        out = np.empty(samples.shape)
        for i in np.flatnonzero(~beyond):
            out[i] = self.values(metric, samples[i], ridges[i]).mean()
        if beyond.any():
            rate = self.line(metric, ridge_at)(self.population.errors(samples[beyond], ridges[beyond]).test_error)
            out[beyond] = [loss(metric, float(one)) for one in rate]
        return out

    def warn_of_few(self, samples: Array) -> None:
        """Say where a forecast of labels is known to be too good."""
        _, counts = np.unique(self.labels, return_counts=True)
        rarest = counts.min() / counts.sum()
        few = samples[samples * rarest < FEWEST_PER_CLASS]
        if few.size:
            warnings.warn(
                f"n = {few.min():g} has about {few.min() * rarest:.0f} points of the rarest class: below {FEWEST_PER_CLASS} per class, "
                "forecasts of labels were too good by up to a fifth",
                ForecastWarning,
                stacklevel=4,
            )

    def deviation(self, metric: str, values: Array, base: float, samples: Array, tail: Array) -> Array:
        """Standard deviation of the logarithm of the loss: binomial, plus what the extrapolation may miss (approximate beyond N).

        `base` is the value at N, `tail` b_t of the mean square for every n (6a).
        """
        total = self.population.spectrum.population
        rate = np.array([loss(metric, float(value)) for value in values])
        rate, base = np.maximum(rate, 0.5 / total), max(loss(metric, base), 0.5 / total)
        level = self._area_error(rate) if metric == "auc" else np.sqrt((1 - rate) / (rate * total))
        doublings = np.log2(np.maximum(samples / total, 1.0))
        step = np.where(samples > total, np.log(rate / base) / 4, 0.0)
        return np.asarray(np.sqrt(level**2 + (tail * doublings / 2) ** 2 + step**2))

    def _area_error(self, rate: Array) -> Array:
        """Relative standard error of one minus the area, by Hanley and McNeil's formula for the rarest class."""
        _, counts = np.unique(self.labels, return_counts=True)
        ones, area = float(counts.min()), 1 - rate
        zeros = float(counts.sum()) - ones
        first, second = area / (2 - area), 2 * area**2 / (1 + area)
        square = (area * rate + (ones - 1) * (first - area**2) + (zeros - 1) * (second - area**2)) / (ones * zeros)
        return np.asarray(np.sqrt(np.maximum(square, 0.0)) / rate)

    def run_spread(self, metric: Any, samples: float, ridge: float) -> float:
        """Standard deviation of one run: over the points drawn for training and, for rates, over the N - n points that test it."""
        values = self.values(metric, samples, ridge)
        spread = float(values.var(ddof=1))
        if isinstance(metric, str) and metric in ("error", "accuracy"):
            rate = float(values.mean())
            spread += rate * (1 - rate) / max(self.population.spectrum.population - samples, 1)
        return float(np.sqrt(spread))


def loss(metric: str, value: float) -> float:
    """What falls with more data: the error rate, or one minus accuracy or area. Its own inverse.

    >>> loss("error", 0.1), round(loss("auc", 0.9), 3)
    (0.1, 0.1)
    """
    return value if metric in ("error", "mse") else 1 - value
