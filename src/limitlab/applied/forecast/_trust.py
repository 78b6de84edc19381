"""How far to trust a forecast, whether test data resemble the training data, and what to do next.

Leverages
---------
The law replaces the leverage h_i of every point by the mean. The coefficient of variation of 1 - h_i over the data says how
wrong that is. On digits and diabetes, with linear, random-feature, Gaussian and arc-cosine kernels and the largest subsets, a
coefficient of at most 0.03 went with errors of the forecast of at most 3 %, and one of 0.25 or more with errors from 2 % to
59 %, the large ones at ridge 0 (docs/theory/learning_curves.md).

Test data
---------
- *gap*: the error on test data against the leave-one-out error of the training data; both have sampling errors that are known.
- *novelty*: how far test inputs are from what the fit has seen (posterior variance), against the same for training points left out.
- *copies*: test inputs nearer to a training input than training inputs are to each other.

Selection on the test set and columns that leak the target are invisible to all three (docs/theory/learning_curves.md).

Advice
------
Gains are computed at the best ridge of each number of points, because a ridge that was tuned for half of the data would be tuned again.
For a fixed ridge the gain at that ridge is reported too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from limitlab.applied.forecast._spectrum import Spectrum, left_out

Array = NDArray[np.float64]

TRUSTED, DOUBTED = 0.03, 0.25
"""Coefficients of variation of 1 - leverage up to which the law was right within 3 %, and from which it could be far off."""

SMALLEST_RIDGE = 1e-6
"""Over the mean diagonal of the kernel: leverages at ridge 0 are taken here (without ridge they are all 0 or 1)."""


class ForecastWarning(UserWarning):
    """A forecast that should not be trusted as it stands."""


def leverage_variation(spectrum: Spectrum, ridge: Any) -> Array:
    """Coefficient of variation of 1 - h_i of the fit to all points, for every ridge.

    >>> from limitlab.applied.forecast._spectrum import from_features
    >>> equal = from_features(np.array([[1.0], [-1.0], [1.0], [-1.0]]), np.ones((4, 1)))
    >>> leverage_variation(equal, [0.0, 1.0]).round(12).tolist()
    [0.0, 0.0]
    """
    lam = np.maximum(np.atleast_1d(np.asarray(ridge, dtype=float)), SMALLEST_RIDGE * spectrum.mean_diagonal)
    gaps = 1 - spectrum.leverages(lam)
    mean = gaps.mean(axis=0)
    return np.asarray(gaps.std(axis=0) / np.where(mean > 0, mean, 1.0))


def left_out_error(spectrum: Spectrum, ridge: Any) -> tuple[Array, Array]:
    """Generalised cross-validation and leave-one-out error of the fit to all points, for every ridge above 0."""
    lam = np.maximum(np.atleast_1d(np.asarray(ridge, dtype=float)), SMALLEST_RIDGE * spectrum.mean_diagonal)
    gaps = 1 - spectrum.leverages(lam)
    squares = (spectrum.residuals(lam) ** 2).mean(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return squares.mean(axis=0) / gaps.mean(axis=0) ** 2, (squares / gaps**2).mean(axis=0)


def diagnosed(spectrum: Spectrum, ridge: Any) -> dict[str, NDArray[Any]]:
    """Variation of the leverages with its verdict, and both cross-validation errors, for every ridge."""
    variation = leverage_variation(spectrum, ridge)
    gcv, left_out = left_out_error(spectrum, ridge)
    words = np.array([verdict(value) for value in variation], dtype=object)
    return dict(leverage_variation=variation, gcv=gcv, leave_one_out=left_out, verdict=words)


def verdict(variation: float) -> str:
    """What a coefficient of variation of the leverages means, in one word.

    >>> verdict(0.01), verdict(0.1), verdict(0.4)
    ('trusted', 'fair', 'doubtful')
    """
    return "trusted" if variation <= TRUSTED else "fair" if variation < DOUBTED else "doubtful"


def explain(variation: float, ridge: float) -> str:
    """The same in a sentence.

    >>> explain(0.01, 0.1)
    'at ridge 0.1 the points have nearly equal leverage (variation 0.01): forecasts like this one were right within 3%'
    """
    at = f"at ridge {ridge:.3g} "
    if verdict(variation) == "trusted":
        return f"{at}the points have nearly equal leverage (variation {variation:.2f}): forecasts like this one were right within 3%"
    if verdict(variation) == "fair":
        return f"{at}leverages differ somewhat (variation {variation:.2f}): expect the law to be right within about 10%"
    return (
        f"{at}a few points decide much of the fit (leverage variation {variation:.2f}): forecasts like this one were off by "
        "2% to 59%; use a larger ridge, or check with real fits (measure)"
    )


def doubts(spectrum: Spectrum, samples: Array, ridge: Array) -> list[str]:
    """What speaks against a forecast at these points, one sentence each; nothing for a trusted one."""
    found = []
    rank = spectrum.rank
    if (ridge == 0).any() and ((samples > rank / 2) & (samples < 2 * rank)).any():
        found.append(
            f"at ridge 0 and n within a factor 2 of the {rank} directions of the kernel, forecasts were off by -41% to +44%: "
            "use a positive ridge"
        )
    if spectrum.vectors is not None:
        least = float(ridge.min())  # leverages are the more unequal, the smaller the ridge
        variation = float(leverage_variation(spectrum, least)[0])
        if variation >= DOUBTED:
            found.append(explain(variation, least))
    return found


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


def gap_report(
    spectrum: Spectrum, ridge: float, known: Array, X: Array, spread: Array, targets: Array, scores: Array
) -> GapReport:
    """Return the three tests of test data.

    Parameters
    ----------
    spectrum, ridge, known
        The fitted population, the ridge of the fit, and the training inputs.
    X, spread, targets, scores
        Test inputs with their posterior variances, their targets, and the scores of the fit.
    """
    residuals, leverages = left_out(spectrum, ridge)
    own, new = (residuals**2).mean(axis=1), ((scores - targets) ** 2).mean(axis=1)
    ratio = float(np.log(new.mean() / own.mean()))
    error = np.sqrt(sum(float(np.var(part, ddof=1)) / (len(part) * float(part.mean()) ** 2) for part in (own, new)))
    z = ratio / error
    novelty = _novelty(spread, spectrum.population * ridge * leverages / np.maximum(1 - leverages, 1e-6))
    copies, near = _copies(np.asarray(known, dtype=float), X)
    listed = max(1, round(SUSPICIOUS * len(own)))
    suspicious = np.argsort(-own)[:listed]
    return GapReport(
        float(new.mean()), float(own.mean()), float(z), novelty, copies, near, suspicious,
        _sentences(float(new.mean()), float(own.mean()), float(z), novelty, copies, near),
    )  # fmt: skip


def _novelty(spread: Array, left_out_spread: Array) -> float:
    """p-value of the posterior variances of test points against those of training points left out (Kolmogorov and Smirnov)."""
    from scipy.stats import ks_2samp

    return float(ks_2samp(spread, left_out_spread).pvalue)


def _copies(known: Array, X: Array) -> tuple[float, NDArray[np.int64]]:
    """p-value of the number of test points near a training point, and which they are.

    Under the null the share below the 2 % quantile of n training distances is uncertain itself: the count is beta-binomial.
    """
    from scipy.stats import betabinom
    from sklearn.neighbors import NearestNeighbors

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


WORTHWHILE = 0.02
"""A cut of the error below this is not worth a change."""


@dataclass(frozen=True)
class Gains:
    """What doubling the data and tuning the ridge are expected to do to the mean square, as shares of it.

    Attributes
    ----------
    points
        Rows that there are.
    data, data_low, data_high
        Cut by doubling them, at the best ridge of each size, with its band (equal where there is none).
    at_ridge
        The same cut at the given ridge; None where the best one was asked for.
    ridge, best_ridge
        Cut by the best ridge at the same data, and that ridge.
    error, best_error
        Mean squares now: at the given ridge, and at the best one.
    """

    points: int
    data: float
    data_low: float
    data_high: float
    at_ridge: float | None
    ridge: float
    best_ridge: float
    error: float
    best_error: float


def gains(points: int, best: xr.Dataset, fixed: xr.Dataset | None) -> Gains:
    """Return the relative cuts of the mean square.

    Parameters
    ----------
    points
        Rows that there are.
    best, fixed
        Learning curves at `points` and twice as many: at the best ridge of each, and at one ridge (None if the best one was asked for).
    """
    now, twice = best.test_error.values
    cut = 1 - twice / now
    # the two errors rest on the same points: what is uncertain is the step, not the level
    wide = float(best.step_high.values[1] / best.step.values[1]) if "step_high" in best else 1.0
    low, high = 1 - (1 - cut) * wide, 1 - (1 - cut) / wide
    tuned = float(best["ridge"].values[0])
    if fixed is None:
        return Gains(points, cut, low, high, None, 0.0, tuned, float(now), float(now))
    given = fixed.test_error.values
    return Gains(
        points, cut, low, high, float(1 - given[1] / given[0]), float(1 - now / given[0]), tuned, float(given[0]), float(now)
    )


def sentence(found: Gains, ridge: Any, what: str = "error") -> str:
    """The gains in words; `what` is cut."""
    data = f"doubling the data (to {2 * found.points} points) {_cut(found.data, what)}"
    if abs(found.data_high - found.data_low) >= 0.01:
        data += f" ({found.data_low:.0%} to {found.data_high:.0%})"
    if found.at_ridge is None:
        tune = "the ridge is the best one already"
    else:
        data += f" at the best ridge, by {found.at_ridge:.0%} at ridge {float(ridge):.2g}"
        tune = f"a better ridge ({found.best_ridge:.2g} instead of {float(ridge):.2g}) {_cut(found.ridge, what)}"
    if max(found.data, found.ridge) < WORTHWHILE:
        return f"neither more data nor another ridge helps much, so try other features or another kernel: {data}; {tune}"
    return f"{data}; {tune}" if found.data >= found.ridge else f"{tune}; {data}"


def _cut(share: float, what: str) -> str:
    return f"is expected to cut the {what} by {share:.0%}" if share >= 0.005 else "is expected to change little"
