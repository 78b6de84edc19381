"""The posterior over learning curves, from measured errors of fits at a few sizes.

Model
-----
A learning curve is f(n) = L ((1 - q) ((n + s)/(m + s))^-b + q), where m is the largest measured size, L the error there, b the exponent, q
the share of L that more data do not remove, and s an offset. With s > 0 the error falls slowly first and faster later. The logarithms of
the measured errors have the mean log f(n_j) and the covariance

    C_jk = row_jk + split_jj / K + (d log(m / n_j))^2 [j = k].                                                              (16)

The first term is the sampling error of the rows. It follows from the losses of the rows, averaged over the fits that did not contain
them, and is common to all sizes to a large part. The second term is the error due to the choice of K training sets. The third allows for
the fact that small sizes deviate from the law. Between the measured sizes the posterior interpolates these deviations.

The prior of L is flat in the logarithm, and the priors of b, q and s are broad (`EXPONENTS`, `FLOORS`, `OFFSETS`). They were set on 38 made
tables that are not among the tables of docs/howto/forecast_accuracy.md. For every (b, q, s) on a grid the posterior of log L is normal
and known in closed form, so the posterior of f(n) at any n is a mixture of normals.

Shares of wrong labels
----------------------
The odds p / (1 - p) of a share p follow the power law, because a share levels off near the share of a trivial prediction for few rows. A
share that is measured with few mistakes has a variance of its logarithm of 1 / (mistakes + 1/2). No mistake counts as half a mistake.

Metrics of whole test sets
--------------------------
A metric such as the area under the curve is not a mean over rows. Its values in the splits then give the covariance,

    C_jk = (1/K + tests/training rows) S_jk,                                                                               (17)

where S is the covariance over splits. The second term allows for the rows that the training sets share (Nadeau and Bengio 2003).

Backtest
--------
The posterior from the sizes below the largest predicts the error at the largest size. If the miss is larger than its standard deviation,
the excess widens the band beyond the data, and the smaller sizes have less weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

EXPONENTS = np.geomspace(0.03, 3.0, 41)
"""Grid of the local exponents b / (1 + s/m) at the largest measured size m."""

EXPONENT_CENTRE, EXPONENT_SPREAD = 0.6, 0.6
"""Median of the prior of the local exponent at m, and standard deviation of its logarithm."""

OFFSETS, NO_OFFSET = (0.0, 0.3, 1.0, 3.0), 0.85
"""Grid of s/m, and the prior probability of s = 0. The other values have equal probabilities."""

GROUPED_OFFSETS, GROUPED_NO_OFFSET = (0.0, 1.0, 3.0, 10.0), 0.1
"""The same for random rows of a table whose rows come in groups of similar rows."""

FLOORS = (np.arange(25) + 0.5) / 25
"""Grid of the shares q."""

FLOOR_PRIOR = (1.5, 2.0)
"""Parameters of the beta distribution that is the prior of q."""

MISFIT = 0.1
"""Standard deviation of the deviation of a measured error from the power law, per factor e below the largest size."""

BEYOND = 0.06
"""Standard deviation of the deviation of an error from the power law, per factor e above the largest size."""

LARGEST_SHARE = 0.98
"""Larger shares of wrong labels count as this share in odds."""

DRAWS = 4000

THEORY_WEIGHT = {"mse": 0.8, "error": 0.75}
"""Prior weight of the curve of the kernel forecast, by loss. It has no weight for other losses."""

THEORY_SPREAD = {"mse": 0.06, "error": 0.07}
"""Standard deviation of the logarithm of the step of the kernel forecast, per factor 2, by loss."""

THEORY_POWER = {"mse": 1.0, "error": 1.1}
"""Power of the step of the mean square that is the step of a loss. In real fits to six tables, local powers of shares of wrong labels
against mean squares were between 1.0 and 1.6."""

CLOSE, NEAR = 0.1, 0.25
"""An answer is called trusted if its radius is at most the first share of the truth, and fair up to the second. The radius is the
distance within which the answer is with probability `LIKELY`."""

LIKELY = 0.8
"""Probability of the distance between answer and truth that the word of trust refers to."""


@dataclass(frozen=True)
class Measurement:
    """Errors of fits at a few sizes.

    Attributes
    ----------
    sizes
        Numbers of training rows, increasing.
    values
        Mean losses.
    covariance
        Covariance of the logarithms of the mean losses, without the misfit of the power law.
    """

    sizes: Array
    values: Array
    covariance: Array

    @property
    def standard_errors(self) -> Array:
        """Standard errors of the values."""
        return np.asarray(self.values * np.sqrt(np.diag(self.covariance)))

    def only(self, rows: Any) -> Measurement:
        """Return the measurement at some of the sizes."""
        return Measurement(self.sizes[rows], self.values[rows], self.covariance[rows][:, rows])


FEW_ROWS, USUAL_VARIANCE = 100.0, 2.0
"""The variance of squared errors over their squared mean is drawn towards the second number, that of normal errors, with this many rows."""


def from_rows(sizes: Array, losses: Array, tested: Array, means: Array, labels: bool) -> Measurement:
    """Return the measured errors and their covariance (16) from the losses of single rows.

    Parameters
    ----------
    sizes
        Numbers of training rows.
    losses, tested
        Sum of the losses of every row over the fits that did not contain it, and the number of these fits, with shape (sizes, rows).
    means
        Mean loss of every fit, with shape (sizes, splits). It is NaN for fits that were not made.
    labels
        Whether a loss is 1 for a wrong label and 0 otherwise.
    """
    used = tested > 0
    mean_loss = np.where(used, losses / np.maximum(tested, 1), 0.0)
    counts = used.sum(axis=1)
    values = mean_loss.sum(axis=1) / counts
    centred = np.where(used, mean_loss - values[:, None], 0.0)
    together = used.astype(float) @ used.T
    covariance = centred @ centred.T / np.maximum(together, 1.0) / np.sqrt(np.outer(counts, counts))
    covariance *= together / np.sqrt(np.outer(counts, counts))
    made = np.isfinite(means)
    fits = made.sum(axis=1)
    centre = np.where(made, means, 0.0).sum(axis=1) / fits
    variance = (np.where(made, means - centre[:, None], 0.0) ** 2).sum(axis=1) / np.maximum(fits - 1, 1)
    # the scatter between test sets is in the losses of the rows already
    single = centre * (1 - centre) if labels else (centred**2).sum(axis=1) / counts
    variance = np.maximum(variance - single / np.maximum(tested.sum(axis=1) / fits, 1), 0.0)
    covariance = covariance + np.diag(variance / fits)
    if not labels:
        values = np.maximum(values, np.finfo(float).tiny)
        relative = covariance / np.outer(values, values)
        rows = float(counts.mean())
        least = USUAL_VARIANCE / rows * FEW_ROWS / (rows + FEW_ROWS)
        return Measurement(sizes, values, relative * rows / (rows + FEW_ROWS) + least)
    mistakes = values * counts
    scale = np.maximum(values, 0.5 / counts)
    relative = covariance / np.outer(scale, scale)
    spread = np.sqrt(np.maximum(np.diag(relative), 1e-12))
    correlation = np.clip(relative / np.outer(spread, spread), -FEW_CORRELATED, FEW_CORRELATED)
    weight = mistakes / (mistakes + FEW_MISTAKES)
    weight = np.minimum.outer(weight, weight)
    correlation = weight * correlation + (1 - weight) * USUAL_CORRELATION
    np.fill_diagonal(correlation, 1.0)
    binomial = (1 - np.minimum(values, 0.9)) / (mistakes + 0.5)
    share = np.clip((mistakes * spread**2 / binomial + FEW_MISTAKES * USUAL_SHARE) / (mistakes + FEW_MISTAKES), 0.0, None)
    spread = np.sqrt(share * binomial)
    return Measurement(sizes, np.where(mistakes < 0.5, 0.5, mistakes) / counts, correlation * np.outer(spread, spread))


USUAL_SHARE = 1.0
"""With few mistakes the variance of a share of wrong labels over the binomial variance is drawn towards this number."""

FEW_MISTAKES, USUAL_CORRELATION, FEW_CORRELATED = 5.0, 0.6, 0.95
"""With few mistakes the correlation of errors at two sizes is drawn towards the second number. The third is its largest value."""


def from_splits(sizes: Array, means: Array, share: float, least: float = 0.0, events: Array | None = None) -> Measurement:
    """Return the measured errors and their covariance (17) from the losses of whole test sets.

    Parameters
    ----------
    sizes
        Numbers of training rows.
    means
        Loss of every fit, with shape (sizes, splits). It is NaN for fits that were not made.
    share
        Number of test rows over number of training rows.
    least
        Smallest loss that the test sets can resolve.
    events
        Number of tested rows of the rarest class at every size, if the loss is one minus the area under the curve. The variance is then at
        least that of Hanley and McNeil (1982) for as many events.

    Examples
    --------
    >>> made = from_splits(np.array([10.0, 20.0]), np.array([[0.4, 0.6], [0.2, 0.4]]), 0.1)
    >>> made.values.round(2).tolist(), made.standard_errors.round(2).tolist()
    ([0.5, 0.3], [0.11, 0.11])
    """
    made = np.isfinite(means)
    fits = np.maximum(made.sum(axis=1), 1)
    values = np.where(made, means, 0.0).sum(axis=1) / fits
    centred = np.where(made, means - values[:, None], 0.0)
    both = made.astype(float) @ made.T
    covariance = centred @ centred.T / np.maximum(both - 1, 1)
    covariance *= np.minimum(1 / np.maximum(np.minimum.outer(fits, fits), 1) + share, 1.0)
    values = np.maximum(values, max(least, np.finfo(float).tiny))
    spread = np.sqrt(np.diag(covariance)) / values
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = covariance / np.outer(values, values) / np.outer(spread, spread)
    # pairs of sizes with few common splits have no correlation that can be measured
    measured = (both >= FEW_SPLITS) & np.isfinite(correlation)
    correlation = np.where(measured, correlation, USUAL_CORRELATION)
    if events is not None:
        spread = np.maximum(spread, area_spread(float(np.median(values)), events))
    # the error that two sizes have in common is at most the smaller one
    most = np.minimum.outer(spread, spread) / np.maximum(np.maximum.outer(spread, spread), np.finfo(float).tiny)
    correlation = np.clip(correlation, 0.0, FEW_CORRELATED * most)
    np.fill_diagonal(correlation, 1.0)
    eigenvalues, vectors = np.linalg.eigh(correlation)  # a matrix that is completed in parts may have negative eigenvalues
    correlation = (vectors * np.maximum(eigenvalues, 1e-3)) @ vectors.T
    relative = correlation * np.outer(spread, spread)
    return Measurement(sizes, values, relative + np.diag(np.full(len(sizes), 1e-6)))


FEW_SPLITS = 4
"""Smallest number of common splits from which a correlation of two sizes is measured."""


def area_spread(loss: float, events: Array) -> Array:
    """Return the relative standard deviation of one minus the area under the curve for numbers of events, with many other rows.

    >>> area_spread(0.2, np.array([16.0, 64.0])).round(3).tolist()
    [0.204, 0.102]
    """
    area = 1 - min(max(loss, 1e-6), 0.5)
    return np.asarray(np.sqrt((area / (2 - area) - area**2) / np.maximum(events, 1.0)) / (1 - area))


@dataclass(frozen=True)
class Curve:
    """The posterior of a learning curve, as draws of (L, b, q), with a second opinion on its shape.

    Attributes
    ----------
    measured
        The measured errors.
    level, exponent, floor, noise
        Draws of log L, of b, of q, and of a standard normal variable.
    offset
        Draws of s/m.
    deviation
        Draws of the deviations from the law at the measured sizes, with shape (draws, sizes). They are interpolated between the sizes.
    extra
        Further standard deviation of the logarithm per factor 2 beyond the largest size, from the backtest.
    step
        Function that returns the logarithm of the error at sizes over the error at `rows`, by the kernel forecast.
    rows
        Number of rows in the data.
    theory
        Which draws use `step` for their shape.
    spread
        Standard deviation of the logarithm of this step, per factor 2.
    odds
        Whether L, b and q describe the odds of the loss.
    shift
        Draws of the correction of the logarithm of the level for the choice of the kernel.
    largest
        Largest possible loss.
    """

    measured: Measurement
    level: Array
    exponent: Array
    floor: Array
    offset: Array
    deviation: Array
    noise: Array
    extra: float = 0.0
    step: Callable[[Array], Array] | None = None
    rows: float = 0.0
    theory: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(DRAWS, dtype=bool))
    spread: float = 0.0
    odds: bool = False
    shift: Array = field(default_factory=lambda: np.zeros(1))
    largest: float = np.inf

    def draws(self, n: Any) -> Array:
        """Return draws of the logarithm of the error at sizes n, with shape (draws, sizes)."""
        sizes = np.atleast_1d(np.asarray(n, dtype=float))
        logs = self._by_power_law(sizes)
        if self.step is not None and self.theory.any():
            away = self.spread * np.abs(np.log2(sizes / self.rows))
            now = self._by_power_law(np.array([self.rows]))
            beyond = self.theory[:, None] & (sizes > self.measured.sizes[-1])
            logs = np.where(beyond, now + self.step(sizes) + away * self.noise[:, None], logs)
        return np.asarray(np.minimum(logs + self.shift[:, None], np.log(self.largest)))

    def _by_power_law(self, sizes: Array) -> Array:
        ratio = sizes / self.measured.sizes[-1]
        removable, rest = np.log1p(-self.floor)[:, None], np.log(self.floor)[:, None]
        offset = self.offset[:, None]
        shape = np.logaddexp(removable - self.exponent[:, None] * np.log((ratio + offset) / (1 + offset)), rest)
        at, known = np.log(sizes), np.log(self.measured.sizes)
        distance = np.abs(at[:, None] - known).min(axis=1)
        away = np.hypot(BEYOND * distance, self.extra * np.maximum(np.log2(ratio), 0.0))
        between = np.array([np.interp(at, known, unit) for unit in np.eye(known.size)])
        logs = self.level[:, None] + shape + self.deviation @ between + away * self.noise[:, None]
        return np.asarray(logs - np.logaddexp(0.0, logs) if self.odds else logs)

    def quantiles(self, n: Any, levels: Any) -> Array:
        """Return quantiles of the error at sizes n, with shape (levels, sizes)."""
        return np.asarray(np.exp(np.quantile(self.draws(n), levels, axis=0)))

    def right(self, n: Any, power: float = 1.0) -> Array:
        """Return the probability that the median is within 10 % of the error, for every size.

        `power` is the power of the loss that is shown, such as 1/2 for an RMSE.
        """
        logs = power * self.draws(n)
        off = np.abs(logs - np.median(logs, axis=0))
        return np.asarray((off < np.log1p(CLOSE)).mean(axis=0))

    def radius(self, n: Any, power: float = 1.0) -> Array:
        """Return the share of the truth within which the median is with probability 80 %, for every size.

        `power` is the power of the loss that is shown, such as 1/2 for an RMSE.
        """
        logs = power * self.draws(n)
        off = np.abs(logs - np.median(logs, axis=0))
        return np.asarray(np.expm1(np.quantile(off, LIKELY, axis=0)))

    def trust(self, n: Any) -> list[str]:
        """Return a word for the radius at every size."""
        return [trust_word(radius) for radius in self.radius(n)]

    def shifted(self, shift: float) -> Curve:
        """Return the curve with a correction of the logarithm of its level.

        The size of the correction is uncertain, so the draws have a uniform distribution between 0 and `shift`.
        """
        count = len(self.level)
        order = np.random.default_rng([count, 13]).permutation(count)
        return replace(self, shift=shift * (order + 0.5) / count)

    def with_theory(self, step: Callable[[Array], Array], rows: float, missed: float, loss: str = "mse") -> Curve:
        """Return the curve with a second opinion on its shape.

        Its weight is the prior weight times the likelihoods of the two backtests, so a bad backtest removes it.

        Parameters
        ----------
        step
            Function that returns the logarithm of the mean square at sizes over the mean square at `rows`.
        rows
            Number of rows in the data.
        missed
            Error of the logarithm in the backtest of the second opinion, from half of the rows.
        loss
            Name of the loss of the curve.
        """
        weight, spread, power = THEORY_WEIGHT[loss], THEORY_SPREAD[loss], THEORY_POWER[loss]
        off = min(abs(power * missed), 1.0)
        odds = weight / (1 - weight) * np.exp(0.5 * (min(self.extra, 1.0) ** 2 - off**2) / (2 * spread) ** 2)
        share = odds / (1 + odds)
        count = len(self.level)
        order = np.random.default_rng([count, 9]).permutation(count)
        return replace(self, step=lambda n: power * step(n), rows=rows, theory=order < share * count, spread=spread)

    def samples_for(self, error: float, most: float, levels: Any) -> Array:
        """Return quantiles of the number of rows at which the error falls below a value; infinity beyond `most`.

        Numbers of rows below the smallest measured size count as this size.
        """
        grid = np.geomspace(self.measured.sizes[0], most, 400)
        below = self.draws(grid) <= np.log(error)
        first = np.where(below.any(axis=1), grid[below.argmax(axis=1)], np.inf)
        return np.sort(first)[np.minimum((np.asarray(levels) * len(first)).astype(int), len(first) - 1)]


def trust_word(radius: float) -> str:
    """Return a word for the share of the truth within which an answer is with probability 80 %.

    >>> [trust_word(value) for value in (0.07, 0.2, 0.5)]
    ['trusted', 'fair', 'doubtful']
    """
    return "trusted" if radius <= CLOSE else "fair" if radius <= NEAR else "doubtful"


def posterior(
    measured: Measurement,
    seed: int = 0,
    draws: int = DRAWS,
    backtest: bool = True,
    rising: bool = False,
    odds: bool = False,
    grouped: bool = False,
) -> Curve:
    """Return the posterior of the learning curve.

    Parameters
    ----------
    measured
        The measured errors.
    seed, draws
        Seed and number of the draws.
    backtest
        Whether the backtest widens the band.
    rising
        Whether the error may rise with the number of rows, such as for data that change with time.
    odds
        Whether the odds of the error follow the power law, such as for shares of wrong labels.
    grouped
        Whether the rows come in groups of similar rows. The error then usually falls late, so s > 0 is likely.

    Examples
    --------
    >>> n = np.array([25.0, 50, 100, 200, 400])
    >>> exact = Measurement(n, 3 * n**-0.5 + 0.2, np.diag(np.full(5, 1e-4)))
    >>> low, middle, high = posterior(exact).quantiles([1600], [0.05, 0.5, 0.95])[:, 0]
    >>> bool(low < 3 / 40 + 0.2 < high), bool(high / low < 1.6)
    (True, True)
    """
    offsets, none = (GROUPED_OFFSETS, GROUPED_NO_OFFSET) if grouped else (OFFSETS, NO_OFFSET)
    b, q, offset = (grid.ravel() for grid in np.meshgrid(EXPONENTS, FLOORS, offsets, indexing="ij"))
    prior = (
        -0.5 * (np.log(b / EXPONENT_CENTRE) / EXPONENT_SPREAD) ** 2
        + (FLOOR_PRIOR[0] - 1) * np.log(q)
        + (FLOOR_PRIOR[1] - 1) * np.log1p(-q)
        + np.where(offset == 0, np.log(none), np.log((1 - none) / (len(offsets) - 1)))
    )
    b = b * (1 + offset)
    if rising:
        up = np.linspace(-1.0, 0.0, 21)
        mass = np.log(np.exp(prior - prior.max()).sum() / up.size) + prior.max()
        b, q, prior = np.append(b, up), np.append(q, np.full(up.size, 1e-9)), np.append(prior, np.full(up.size, mass))
        offset = np.append(offset, np.zeros(up.size))
    ratio = np.log(measured.sizes / measured.sizes[-1])
    fall = np.log((measured.sizes / measured.sizes[-1] + offset[:, None]) / (1 + offset[:, None]))
    shape = np.logaddexp(np.log1p(-q)[:, None] - b[:, None] * fall, np.log(q)[:, None])
    values, covariance = measured.values, measured.covariance
    if odds:
        change = 1 / (1 - np.minimum(values, LARGEST_SHARE))
        values, covariance = np.minimum(values, LARGEST_SHARE) * change, covariance * np.outer(change, change)
    extra = missed(measured, seed, rising, odds, grouped) if backtest and measured.sizes.size > 2 else 0.0
    misfit = np.diag((MISFIT**2 + extra**2) * ratio**2)
    inverse = np.linalg.pinv(covariance + misfit, hermitian=True)
    residual = np.log(values) - shape
    precision = inverse.sum()
    mean = residual @ inverse.sum(axis=1) / precision
    left = residual - mean[:, None]
    log_weight = prior - 0.5 * np.einsum("ij,jk,ik->i", left, inverse, left)
    share = np.exp(log_weight - log_weight.max())
    rng = np.random.default_rng([seed, 7])
    pick = np.searchsorted(np.cumsum(share / share.sum()), (np.arange(draws) + 0.5) / draws).clip(0, share.size - 1)
    level = mean[pick] + rng.standard_normal(draws) / np.sqrt(precision)
    gain = misfit @ inverse
    values_left, vectors_left = np.linalg.eigh(misfit - gain @ misfit)
    scatter = rng.standard_normal((draws, ratio.size)) * np.sqrt(np.maximum(values_left, 0.0))
    deviation = (residual[pick] - level[:, None]) @ gain.T + scatter @ vectors_left.T
    return Curve(measured, level, b[pick], q[pick], offset[pick], deviation, rng.standard_normal(draws), extra, odds=odds)


def missed(measured: Measurement, seed: int = 0, rising: bool = False, odds: bool = False, grouped: bool = False) -> float:
    """Return by how much the forecast of the largest size from the smaller ones missed beyond its standard deviation, per factor 2."""
    last = measured.sizes.size - 1
    guess = posterior(measured.only(np.arange(last)), seed, 1000, False, rising, odds, grouped).draws(measured.sizes[-1:])[
        :, 0
    ]
    gap = abs(float(np.log(measured.values[-1]) - guess.mean()))
    c = measured.covariance  # the sampling errors of both are common to a large part, so only the part that differs counts
    unlike = np.sqrt(max(c[-1, -1] + c[-2, -2] - 2 * c[-1, -2], 0.0) + guess.var())
    return float(max(gap - unlike, 0.0) / np.log2(measured.sizes[-1] / measured.sizes[-2]))
