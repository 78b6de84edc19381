"""Learning curves in any metric, from simulated scores up to N points and from a probit line beyond N.

Mean squares come from the law itself (`_curves`). Error rate, accuracy and area under the curve are averages over surrogate scores for
n < N, and leave-one-out values at n = N. Beyond the data they follow from the extrapolated mean square along a line in probit scale
(docs/theory/learning_curves.md, eqs. 6a and 13-15).

Surrogate training sets
-----------------------
In the fit to all points except point i, point i has the score m_i = y_i - e_i, e_i = r_i / (1 - h_i) (docs/theory/learning_curves.md,
eq. 13). Its score in a fit to n random points deviates from m_i, to first order by

    g = (H(xi e) - h xi e) / (1 - h),      xi_j = (1[j drawn] - p) / sqrt(p (1 - p)),      p = min(n/N, 1/2),             (14)

with the same xi for every output. A common factor scales all g so that mean (m + g - y)^2 is the test error that the law predicts for n
points. Functions of scores and labels (error rate, area under the curve, a cost) are averaged over such draws. This is a heuristic. The
same page reports its accuracy in trials.

Probit line
-----------
For n < N the pairs (log mean square, Phi^-1(error rate)) lie nearly on a line. The line is fitted to these pairs. The error rate for n > N
is its value at the extrapolated mean square (docs/theory/learning_curves.md, eq. 15). One minus the area under the curve is treated in the
same way.
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
from limitlab.applied.forecast._spectrum import NEARLY_ONE, Spectrum, left_out
from limitlab.applied.forecast._trust import ForecastWarning
from limitlab.errors import Refused
from limitlab.numerics.equivalents import learned

Array = NDArray[Any]

Metric = Callable[[Array, Array], float]

DRAWS = 96
"""Number of surrogate training sets. With half as many, error rates still changed by 2 %."""


def smoothed(spectrum: Spectrum, kappa: float, values: Array) -> Array:
    """Return H = K (K + N kappa)^-1 times columns."""
    assert spectrum.vectors is not None
    share = learned(np.array([kappa]), spectrum.eigenvalues)[0]
    inside = spectrum.vectors.T @ values
    projected = spectrum.vectors @ ((share[:-1] - share[-1])[:, None] * inside)
    return np.asarray(projected + share[-1] * values)


def surrogate_scores(
    spectrum: Spectrum, samples: float, kappa: float, error: float, rng: np.random.Generator, draws: int = DRAWS
) -> Array:
    """Return simulated scores of every point in fits to `samples` other points, with shape (draws, N, outputs).

    Parameters
    ----------
    spectrum
        The population of N points.
    samples, kappa, error
        n, its effective ridge, and the mean square error of the scores (the test error of the law).
    rng, draws
        Random generator and number of draws.

    Examples
    --------
    >>> from limitlab.applied.forecast._spectrum import from_features
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 5))
    >>> spectrum = from_features(X, np.sign(X[:, :1]))
    >>> scores = surrogate_scores(spectrum, 40, 0.1, 0.5, rng)
    >>> scores.shape, round(float(np.mean((scores - spectrum.targets) ** 2)), 2)
    ((96, 100, 1), 0.5)
    """
    assert spectrum.targets is not None
    residuals, leverages = left_out(spectrum, kappa)
    total = len(residuals)
    drawn = max(1, round(min(samples / total, 0.5) * total))
    p = drawn / total
    marks = np.full((total, draws), -p)
    for column in range(draws):
        marks[rng.permutation(total)[:drawn], column] += 1
    marks /= np.sqrt(p * (1 - p))
    pushed = marks[:, :, None] * residuals[:, None, :]  # the same xi for all outputs
    field = smoothed(spectrum, kappa, pushed.reshape(total, -1)).reshape(pushed.shape) - leverages[:, None, None] * pushed
    field /= np.maximum(1 - leverages, NEARLY_ONE)[:, None, None]
    mean = float(np.mean(residuals**2))
    size = float(np.mean(field**2))
    scale = np.sqrt(max(error - mean, 0.0) / size) if size > 0 else 0.0
    return np.moveaxis((spectrum.targets - residuals)[:, None, :] + scale * field, 1, 0)


# -- functions of scores and labels ------------------------------------------------------------------------------------------


def error_rate(scores: Array, targets: Array) -> float:
    """Return the share of wrong labels, by the sign of a single output or by the largest of several outputs.

    >>> error_rate(np.array([[0.2], [-0.1], [0.3]]), np.array([[1.0], [1.0], [1.0]])).__round__(3)
    0.333
    """
    if targets.shape[1] == 1:
        return float(np.mean((scores[:, 0] > 0) != (targets[:, 0] > 0)))
    return float(np.mean(scores.argmax(axis=1) != targets.argmax(axis=1)))


def accuracy(scores: Array, targets: Array) -> float:
    """Return the share of correct labels."""
    return 1.0 - error_rate(scores, targets)


def auc(scores: Array, targets: Array) -> float:
    """Return the area under the curve of true against false positives, averaged over outputs (each class against the rest).

    >>> auc(np.array([[0.1], [0.4], [0.35], [0.8]]), np.array([[-1.0], [-1.0], [1.0], [1.0]]))
    0.75
    """
    from scipy.stats import rankdata

    ranks = rankdata(scores, axis=0)
    positive = targets > 0 if targets.shape[1] == 1 else targets > 0.5
    ones = positive.sum(axis=0)
    zeros = len(targets) - ones
    sums = np.where(positive, ranks, 0).sum(axis=0) - ones * (ones + 1) / 2
    return float(np.mean(sums / (ones * zeros)))


def mean_square(scores: Array, targets: Array) -> float:
    """Return the mean squared error of the scores."""
    return float(np.mean((scores - targets) ** 2))


METRICS: dict[str, Metric] = {"mse": mean_square, "error": error_rate, "accuracy": accuracy, "auc": auc}


SHARES = (0.15, 0.25, 0.4, 0.55, 0.7, 0.85)
"""Shares of the data at which the line is fitted. The value 1 means leave-one-out."""


@dataclass(frozen=True)
class ProbitLine:
    """The line Phi^-1(rate) = intercept + slope log(mean square), with a slope of at least 0."""

    intercept: float
    slope: float

    def __call__(self, mean_square: Array) -> Array:
        """Return the rate at a mean square."""
        from scipy.special import ndtr

        return np.asarray(ndtr(self.intercept + self.slope * np.log(mean_square)))


def probit_line(mean_squares: Array, rates: Array, points: int) -> ProbitLine:
    """Return the least-squares line with equal weights. A rate of zero counts as half a mistake among the points.

    >>> line = probit_line(np.array([0.2, 0.3, 0.5]), np.array([0.05, 0.08, 0.15]), 500)
    >>> line(np.array([0.3])).round(3).tolist(), bool(line(np.array([0.1]))[0] < 0.05)
    ([0.083], True)
    """
    from scipy.special import ndtri

    x = np.log(mean_squares)
    y = ndtri(np.clip(rates, 0.5 / points, 1 - 0.5 / points))
    slope = float(np.cov(x, y, bias=True)[0, 1] / max(np.var(x), np.finfo(float).tiny))
    slope = max(slope, 0.0)
    return ProbitLine(float(y.mean() - slope * x.mean()), slope)


RATES = ("error", "accuracy", "auc")
"""Metrics that can be extrapolated beyond the data."""

MOST_KEPT = 30_000_000
"""Largest number of scores that stay in memory for other metrics."""

FEWEST_PER_CLASS = 15
"""Training points per class below which error rates were too low by up to a fifth."""


@dataclass(frozen=True)
class Classes:
    """A population with labels.

    Parameters
    ----------
    population
        The points. Their targets are +1 and -1 for two classes, and one column of 0 and 1 per class for more.
    labels
        The original labels, for metrics that are functions of the user.
    seed
        Seed of the surrogate training sets.
    kept
        Scores that are already computed. All metrics use the same scores.
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
            raise Refused("this forecast was made from a spectrum: fit it on data for metrics other than the mean square")
        return np.asarray(targets, dtype=float)

    def scores(self, samples: float, ridge: float, draws: int = DRAWS) -> Array:
        """Return simulated scores of every point in fits to n other points, with shape (draws, N, outputs).

        At n = N the fits are to all other points.
        """
        spectrum, total = self.population.spectrum, self.population.spectrum.population
        if samples >= total:
            residuals, _ = left_out(spectrum, max(ridge, 1e-12 * spectrum.mean_diagonal))
            return (self.targets - residuals)[None]
        if (samples, ridge, draws) in self.kept:
            return self.kept[samples, ridge, draws]
        errors = self.population.errors(np.array([samples]), np.array([ridge]))
        kappa, error = max(float(errors.effective_ridge[0]), 1e-12 * spectrum.mean_diagonal), float(errors.test_error[0])
        rng = np.random.default_rng([self.seed, 3, int(samples)])
        scores = surrogate_scores(spectrum, samples, kappa, error, rng, draws)
        if (len(self.kept) + 1) * scores.size <= MOST_KEPT:
            self.kept[samples, ridge, draws] = scores
        return scores

    def values(self, metric: Any, samples: float, ridge: float) -> Array:
        """Return the metric of every draw of scores."""
        scores = self.scores(samples, ridge)
        if isinstance(metric, str):
            return np.array([METRICS[metric](draw, self.targets) for draw in scores])
        return np.array([float(metric(draw[:, 0] if draw.shape[1] == 1 else draw, self.labels)) for draw in scores])

    def line(self, metric: str, ridge_at: Callable[[Array], Array]) -> ProbitLine:
        """Return the probit line of one minus accuracy (or area), fitted at shares of the data and at all data."""
        total = self.population.spectrum.population
        samples = np.array([max(2.0, round(share * total)) for share in SHARES] + [float(total)])
        ridges = ridge_at(samples)
        squares = self.population.errors(samples, ridges).test_error
        rates = [loss(metric, float(self.values(metric, n, lam).mean())) for n, lam in zip(samples, ridges, strict=True)]
        return probit_line(squares, np.array(rates), total)

    def curve(self, metric: Any, samples: Array, ridges: Array, ridge_at: Callable[[Array], Array]) -> Array:
        """Return the metric for every number of points."""
        total = self.population.spectrum.population
        linked = isinstance(metric, str) and metric in RATES
        beyond = (
            samples >= total if linked else samples > total
        )  # use the line at N too, because the noise of a few mistakes would produce a kink
        if beyond.any() and not linked:
            raise Refused(
                f"n = {samples[beyond][0]:g} is not allowed if the metric is a function: must be at most N = {total}; "
                f"only mse, {', '.join(RATES)} can be extrapolated beyond the data"
            )
        self.warn_of_few(samples)
        out = np.empty(samples.shape)
        for i in np.flatnonzero(~beyond):
            out[i] = self.values(metric, samples[i], ridges[i]).mean()
        if beyond.any():
            rate = self.line(metric, ridge_at)(self.population.errors(samples[beyond], ridges[beyond]).test_error)
            out[beyond] = [loss(metric, float(value)) for value in rate]
        return out

    def warn_of_few(self, samples: Array) -> None:
        """Warn if there are so few points per class that forecasts of labels are too optimistic."""
        _, counts = np.unique(self.labels, return_counts=True)
        rarest = counts.min() / counts.sum()
        few = samples[samples * rarest < FEWEST_PER_CLASS]
        if few.size:
            warnings.warn(
                f"n = {few.min():g} has about {few.min() * rarest:.0f} points of the rarest class; with fewer than "
                f"{FEWEST_PER_CLASS} points per class, forecasts of error rates were too low by up to a fifth",
                ForecastWarning,
                stacklevel=4,
            )

    def deviation(self, metric: str, values: Array, base: float, samples: Array, tail: Array) -> Array:
        """Return the standard deviation of the logarithm of the loss (approximate beyond N).

        It combines the binomial error with the error of the extrapolation. `base` is the value at N, and `tail` is b_t of the mean square
        for every n (6a).
        """
        total = self.population.spectrum.population
        rate = np.array([loss(metric, float(value)) for value in values])
        rate, base = np.maximum(rate, 0.5 / total), max(loss(metric, base), 0.5 / total)
        level = self._area_error(rate) if metric == "auc" else np.sqrt((1 - rate) / (rate * total))
        doublings = np.log2(np.maximum(samples / total, 1.0))
        step = np.where(samples > total, np.log(rate / base) / 4, 0.0)
        return np.asarray(np.sqrt(level**2 + (tail * doublings / 2) ** 2 + step**2))

    def _area_error(self, rate: Array) -> Array:
        """Return the relative standard error of one minus the area, by the formula of Hanley and McNeil for the rarest class."""
        _, counts = np.unique(self.labels, return_counts=True)
        ones, area = float(counts.min()), 1 - rate
        zeros = float(counts.sum()) - ones
        first, second = area / (2 - area), 2 * area**2 / (1 + area)
        square = (area * rate + (ones - 1) * (first - area**2) + (zeros - 1) * (second - area**2)) / (ones * zeros)
        return np.asarray(np.sqrt(np.maximum(square, 0.0)) / rate)

    def run_spread(self, metric: Any, samples: float, ridge: float) -> float:
        """Return the standard deviation of a single run over its training points and, for rates, over its N - n test points."""
        values = self.values(metric, samples, ridge)
        spread = float(values.var(ddof=1))
        if isinstance(metric, str) and metric in ("error", "accuracy"):
            rate = float(values.mean())
            spread += rate * (1 - rate) / max(self.population.spectrum.population - samples, 1)
        return float(np.sqrt(spread))


def loss(metric: str, value: float) -> float:
    """Return the loss of a metric, which is the metric itself for "error" and "mse", and one minus the metric for "accuracy" and "auc".

    The loss falls with more data. The function is its own inverse.

    >>> loss("error", 0.1), round(loss("auc", 0.9), 3)
    (0.1, 0.1)
    """
    return value if metric in ("error", "mse") else 1 - value
