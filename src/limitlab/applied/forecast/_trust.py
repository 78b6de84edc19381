"""Diagnostics of the reliability of a forecast, tests of test data, and advice.

Leverages
---------
The law replaces the leverage h_i of every point by the mean. The coefficient of variation of 1 - h_i over the data measures the error of
this replacement. In trials on digits and diabetes, with linear, random-feature, Gaussian and arc-cosine kernels and the largest subsets,
forecasts with a coefficient of at most 0.03 had errors of at most 3 %. With a coefficient of 0.25 or more, errors were between 2 % and 59
%. The large errors occurred at ridge 0 (docs/theory/learning_curves.md).

Test data
---------
- The *gap* test compares the error on test data with the leave-one-out error of the training data. Both have known sampling errors.
- The *novelty* test compares the posterior variance at test inputs with that at training points that are left out.
- The *copies* test counts test inputs that are closer to a training input than training inputs are to each other.

None of the tests can detect selection on the test set or columns that leak the target (docs/theory/learning_curves.md).

Advice
------
Gains are computed at the best ridge for each number of points, because a user with more data would tune the ridge again. For a fixed ridge
the gain at this ridge is reported too.
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
"""Limits for the coefficient of variation of 1 - leverage.

Up to the first limit the law was correct within 3 %. Above the second it could be wrong by much more.
"""

SMALLEST_RIDGE = 1e-6
"""Ridge that replaces ridge 0 in leverages, relative to the mean diagonal of the kernel. At ridge 0 they are all 0 or 1."""


class ForecastWarning(UserWarning):
    """Warning that a forecast is not reliable."""


def leverage_variation(spectrum: Spectrum, ridge: Any) -> Array:
    """Return the coefficient of variation of 1 - h_i of the fit to all points, for every ridge.

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
    """Return the variation of the leverages with its verdict, and both cross-validation errors, for every ridge."""
    variation = leverage_variation(spectrum, ridge)
    gcv, left_out = left_out_error(spectrum, ridge)
    words = np.array([verdict(value) for value in variation], dtype=object)
    return dict(leverage_variation=variation, gcv=gcv, leave_one_out=left_out, verdict=words)


def verdict(variation: float) -> str:
    """Return the reliability of the law for a coefficient of variation of the leverages, as a word.

    >>> verdict(0.01), verdict(0.1), verdict(0.4)
    ('trusted', 'fair', 'doubtful')
    """
    return "trusted" if variation <= TRUSTED else "fair" if variation < DOUBTED else "doubtful"


def explain(variation: float, ridge: float) -> str:
    """Return the reliability of the law as a sentence.

    >>> explain(0.01, 0.1)
    'at ridge 0.1 the points have nearly equal leverage (variation 0.01); such forecasts were correct within 3%'
    """
    at = f"at ridge {ridge:.3g} "
    if verdict(variation) == "trusted":
        return (
            f"{at}the points have nearly equal leverage (variation {variation:.2f}); such forecasts were correct within 3%"
        )
    if verdict(variation) == "fair":
        return f"{at}leverages differ somewhat (variation {variation:.2f}); expect the law to be correct within about 10%"
    return (
        f"{at}a few points determine much of the fit (leverage variation {variation:.2f}); such forecasts had errors of "
        "2% to 59%; use a larger ridge, or check with real fits (measure)"
    )


def doubts(spectrum: Spectrum, samples: Array, ridge: Array) -> list[str]:
    """Return sentences on why a forecast at these points is not reliable. The list is empty for a reliable forecast."""
    sentences = []
    rank = spectrum.rank
    if (ridge == 0).any() and ((samples > rank / 2) & (samples < 2 * rank)).any():
        sentences.append(
            f"at ridge 0 and n within a factor 2 of the {rank} directions of the kernel, forecasts had errors of -41% to +44%; "
            "use a positive ridge"
        )
    if spectrum.vectors is not None:
        least = float(ridge.min())  # leverages are most unequal at the smallest ridge
        variation = float(leverage_variation(spectrum, least)[0])
        if variation >= DOUBTED:
            sentences.append(explain(variation, least))
    return sentences


GAP_Z, NOVEL_P, COPIES_P = 2.5, 0.01, 0.001
"""Limits of the three tests. On clean data each test failed in 1 to 3 % of 222, 222 and 180 runs."""

NEAREST = 0.02
"""A test point counts as near if its distance to the training points is below this quantile of distances between them."""

SUSPICIOUS = 0.02
"""Share of training rows that are listed because their left-out residuals are the largest."""


@dataclass(frozen=True)
class GapReport:
    """The results of the three tests of test data.

    Attributes
    ----------
    test_error, left_out_error
        Mean squares on the test data and, left out, on the training data.
    z
        Logarithm of the ratio of these errors over its standard error. Outside +-2.5 the test fails.
    novelty_p, copies_p
        p-values. The novelty test fails below 0.01, and the test for near copies of training rows fails below 0.001.
    near
        Test rows that are closer to a training row than 98 % of training rows are to each other.
    suspicious
        Training rows with the largest left-out residuals. Wrong labels are most likely among them.
    sentences
        The result of each test as a sentence.
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
        """Whether all three tests passed."""
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
    old, new = (residuals**2).mean(axis=1), ((scores - targets) ** 2).mean(axis=1)
    ratio = float(np.log(new.mean() / old.mean()))
    error = np.sqrt(sum(float(np.var(part, ddof=1)) / (len(part) * float(part.mean()) ** 2) for part in (old, new)))
    z = ratio / error
    novelty = _novelty(spread, spectrum.population * ridge * leverages / np.maximum(1 - leverages, 1e-6))
    copies, near = _copies(np.asarray(known, dtype=float), X)
    listed = max(1, round(SUSPICIOUS * len(old)))
    suspicious = np.argsort(-old)[:listed]
    return GapReport(
        float(new.mean()), float(old.mean()), float(z), novelty, copies, near, suspicious,
        _sentences(float(new.mean()), float(old.mean()), float(z), novelty, copies, near),
    )  # fmt: skip


def _novelty(spread: Array, left_out_spread: Array) -> float:
    """Return the Kolmogorov-Smirnov p-value of posterior variances of test points against those of left-out training points."""
    from scipy.stats import ks_2samp

    return float(ks_2samp(spread, left_out_spread).pvalue)


def _copies(known: Array, X: Array) -> tuple[float, NDArray[np.int64]]:
    """Return the p-value of the number of test points near a training point, and the indices of these points.

    Under the null hypothesis the count is beta-binomial, because the 2 % quantile of n training distances is itself uncertain.
    """
    from scipy.stats import betabinom
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=2).fit(known)
    between_training = np.sort(search.kneighbors(known)[0][:, 1])
    rank = max(1, int(np.floor(NEAREST * len(known))))
    limit = between_training[rank - 1]
    distance = search.kneighbors(np.asarray(X, dtype=float), n_neighbors=1)[0][:, 0]
    near = np.flatnonzero(distance < limit)
    law = betabinom(len(X), rank + 1, len(known) - rank)
    return float(law.sf(near.size - 1)), near


def _sentences(test: float, left_out_error: float, z: float, novelty: float, copies: float, near: Any) -> tuple[str, ...]:
    if abs(z) <= GAP_Z:
        gap = f"The test error {test:.4g} is consistent with the left-out error {left_out_error:.4g} ({z:+.1f} standard errors)."
    else:
        size, why = (
            ("large", "The labels or the inputs may have another distribution.")
            if z > 0
            else ("small", "The test set may be easier, or overlap with the training set.")
        )
        gap = f"The test error {test:.4g} is too {size} for a left-out error of {left_out_error:.4g} ({z:+.1f} standard errors). {why}"
    new = (
        f"The test inputs have the distribution of the training inputs (p = {novelty:.2g})."
        if novelty >= NOVEL_P
        else f"The test inputs have another distribution (p = {novelty:.1g}). Compare the means and spreads of the columns."
    )
    copied = (
        f"The test for copied rows is negative (p = {copies:.2g})."
        if copies >= COPIES_P
        else f"{near.size} test rows are near copies of training rows (p = {copies:.1g}). Such copies make the test error too small."
    )
    return gap, new, copied


WORTHWHILE = 0.02
"""Reductions of the error below this share are reported as not worthwhile."""


@dataclass(frozen=True)
class Gains:
    """The expected relative reductions of the mean square by twice the data and by a better ridge.

    Attributes
    ----------
    points
        Number of rows in the data.
    data, data_low, data_high
        Reduction by twice the data at the best ridge for each size, with its band. Without a band all three are equal.
    at_ridge
        Reduction by twice the data at the current ridge; None if the current ridge is "best".
    ridge, best_ridge
        Reduction by the best ridge for the same data, and this ridge.
    error, best_error
        Mean squares for the same data at the current ridge and at the best ridge.
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
    """Return the expected relative reductions of the mean square.

    Parameters
    ----------
    points
        Number of rows in the data.
    best, fixed
        Learning curves at `points` and twice as many. The first is at the best ridge for each, the second at the current ridge (None if the
        current ridge is "best").
    """
    now, twice = best.test_error.values
    cut = 1 - twice / now
    # both errors use the same points, so that only their ratio is uncertain
    wide = float(best.step_high.values[1] / best.step.values[1]) if "step_high" in best else 1.0
    low, high = 1 - (1 - cut) * wide, 1 - (1 - cut) / wide
    tuned = float(best["ridge"].values[0])
    if fixed is None:
        return Gains(points, cut, low, high, None, 0.0, tuned, float(now), float(now))
    errors = fixed.test_error.values
    return Gains(
        points,
        cut,
        low,
        high,
        float(1 - errors[1] / errors[0]),
        float(1 - now / errors[0]),
        tuned,
        float(errors[0]),
        float(now),
    )


def sentence(gains: Gains, ridge: Any, quantity: str = "error") -> str:
    """Return the gains as a sentence about the reduction of a quantity."""
    data = f"doubling the data (to {2 * gains.points} points) {_cut(gains.data, quantity)}"
    if abs(gains.data_high - gains.data_low) >= 0.01:
        data += f" ({gains.data_low:.0%} to {gains.data_high:.0%})"
    if gains.at_ridge is None:
        tune = "the ridge is already the best"
    else:
        data += f" at the best ridge, by {gains.at_ridge:.0%} at ridge {float(ridge):.2g}"
        tune = f"a better ridge ({gains.best_ridge:.2g} instead of {float(ridge):.2g}) {_cut(gains.ridge, quantity)}"
    if max(gains.data, gains.ridge) < WORTHWHILE:
        return f"neither more data nor another ridge helps much, so try other features or another kernel: {data}; {tune}"
    return f"{data}; {tune}" if gains.data >= gains.ridge else f"{tune}; {data}"


def _cut(share: float, quantity: str) -> str:
    return f"is expected to cut the {quantity} by {share:.0%}" if share >= 0.005 else "is expected to change little"
