"""Is the gap between training and test normal? Three separate tests: of the labels, of the inputs, and for copies.

- *gap*: the error on test data against the leave-one-out error of the training data; both have sampling errors that are known.
- *novelty*: how far test inputs are from what the fit has seen (posterior variance), against the same for training points left out.
- *copies*: test inputs nearer to a training input than training inputs are to each other.

Selection on the test set and columns that leak the target are invisible to all three (docs/theory/learning_curves.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from limitlab.applied.forecast._surrogates import left_out

if TYPE_CHECKING:
    from limitlab.applied.forecast._estimator import Forecast

Array = NDArray[np.float64]

GAP_Z, NOVEL_P, COPIES_P = 2.5, 0.01, 0.001
"""Alarms: on clean data they were raised in 1 to 3 % of 222, 222 and 180 runs."""

NEAREST = 0.02
"""A test point nearer to training than this quantile of training points among themselves counts as near."""

SUSPICIOUS = 0.02
"""Share of training rows with the largest left-out residuals that is listed."""


@dataclass(frozen=True)
class GapReport:
    """What the three tests say.

    Attributes
    ----------
    test_error, left_out_error
        Mean squares on the test data and, left out, on the training data.
    z
        Logarithm of their ratio over its standard error: beyond +-2.5 the labels behave differently.
    novelty_p, copies_p
        p-values: inputs from elsewhere below 0.01, near copies of training rows below 0.001.
    near
        Test rows that are nearer to a training row than 98 % of training rows are to each other.
    suspicious
        Training rows with the largest left-out residuals: where wrong labels are found first.
    sentences
        One for each test.
    """

    test_error: float
    left_out_error: float
    z: float
    novelty_p: float
    copies_p: float
    near: NDArray[np.int64]
    suspicious: NDArray[np.int64]
    sentences: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether no test raised an alarm."""
        return abs(self.z) <= GAP_Z and self.novelty_p >= NOVEL_P and self.copies_p >= COPIES_P

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def gap_report(forecast: Forecast, X: Array, targets: Array, scores: Array) -> GapReport:
    """The three tests of a fitted forecast on test data with `targets` and the fit's `scores`."""
    spectrum, ridge = forecast.spectrum_, max(forecast.ridge_, 1e-9 * forecast.spectrum_.mean_diagonal)
    residuals, leverages = left_out(spectrum, ridge)
    own, new = (residuals**2).mean(axis=1), ((scores - targets) ** 2).mean(axis=1)
    ratio = float(np.log(new.mean() / own.mean()))
    error = np.sqrt(sum(float(np.var(part, ddof=1)) / (len(part) * float(part.mean()) ** 2) for part in (own, new)))
    z = ratio / error
    novelty = _novelty(forecast, X, ridge, leverages)
    copies, near = _copies(forecast, X)
    listed = max(1, round(SUSPICIOUS * len(own)))
    suspicious = np.argsort(-own)[:listed]
    return GapReport(
        float(new.mean()), float(own.mean()), float(z), novelty, copies, near, suspicious,
        _sentences(float(new.mean()), float(own.mean()), float(z), novelty, copies, near),
    )  # fmt: skip


def _novelty(forecast: Forecast, X: Array, ridge: float, leverages: Array) -> float:
    """p-value of the posterior variances of test points against those of training points left out (Kolmogorov and Smirnov)."""
    from scipy.stats import ks_2samp

    spectrum = forecast.spectrum_
    seen = spectrum.population * ridge * leverages / np.maximum(1 - leverages, 1e-6)
    return float(ks_2samp(forecast._posterior_variance(X, ridge), seen).pvalue)


def _copies(forecast: Forecast, X: Array) -> tuple[float, NDArray[np.int64]]:
    """p-value of the number of test points near a training point, and which they are.

    Under the null the share below the 2 % quantile of n training distances is uncertain itself: the count is beta-binomial.
    """
    from scipy.stats import betabinom
    from sklearn.neighbors import NearestNeighbors

    known = np.asarray(forecast.X_fit_, dtype=float)
    search = NearestNeighbors(n_neighbors=2).fit(known)
    among = np.sort(search.kneighbors(known)[0][:, 1])
    rank = max(1, int(np.floor(NEAREST * len(known))))
    reach = among[rank - 1]
    distance = search.kneighbors(np.asarray(X, dtype=float), n_neighbors=1)[0][:, 0]
    near = np.flatnonzero(distance < reach)
    law = betabinom(len(X), rank + 1, len(known) - rank)
    return float(law.sf(near.size - 1)), near


def _sentences(test: float, own: float, z: float, novelty: float, copies: float, near: Any) -> tuple[str, ...]:
    if abs(z) <= GAP_Z:
        gap = f"The gap is normal: test error {test:.4g}, left-out error {own:.4g} ({z:+.1f} standard errors)."
    else:
        size, why = (
            ("large", "other labels, or inputs from elsewhere") if z > 0 else ("small", "is the test set easier, or known?")
        )
        gap = f"The test error {test:.4g} is too {size} for a left-out error of {own:.4g} ({z:+.1f} standard errors): {why}"
    new = (
        f"The test inputs look like the training inputs (p = {novelty:.2g})."
        if novelty >= NOVEL_P
        else f"The test inputs come from elsewhere (p = {novelty:.1g}): compare the columns' means and spreads."
    )
    copied = (
        f"No sign of copied rows (p = {copies:.2g})."
        if copies >= COPIES_P
        else f"{near.size} test rows are near copies of training rows (p = {copies:.1g}): a leak makes errors look too small."
    )
    return gap, new, copied
