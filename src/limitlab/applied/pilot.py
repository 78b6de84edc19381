"""Estimates from a pilot table for a planned study.

They are the number of predictors, the prevalence, the AUC of the true model, and the skewness of the rows. The AUC of a fit on its own rows
is too large, and the law `LogisticCalibration` quantifies by how much. A leave-one-out score of a row is its score in a fit without this
row. These scores have the standard deviation S of equation (3), which depends on p/n, the prevalence and the strength gamma of the true
model. S is estimated without refitting (Yadlowsky et al. 2021). The law is then solved for gamma, and gamma determines the AUC of the true
model. See docs/theory/logistic_calibration.md, section "A pilot".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.arguments import explained
from limitlab.errors import Refused
from limitlab.laws.classification.gaussian_score import Score, TrueScore
from limitlab.laws.classification.logistic_calibration import intercept_of
from limitlab.laws.classification.logistic_system import existence, solve_logistic
from limitlab.laws.classification.populations import Groups
from limitlab.models.logistic import fit_logistic

__all__ = ["Pilot", "read_pilot"]

Array = NDArray[np.float64]

RANK = 1e-9  # singular values below this share of the largest count as zero
LARGE_VARIATION, ABOVE_GAUSSIAN = 1.0, 1.5  # variation of leverages; above both limits the law is too favourable
INTERVAL_FITS = 100  # simulated pilots for each signal of an interval
LARGEST_SCORE = 40.0  # fits with larger scores count as fits that do not exist
WEAKEST = 0.02  # smallest signal that is distinguished from no signal


@dataclass(frozen=True)
class Pilot:
    """The results of a pilot table.

    Attributes
    ----------
    samples, predictors, prevalence
        Number of rows, number of independent columns (a category counts one less than its levels), and share of labels 1.
    apparent_auc
        AUC of the fit on its own rows. It is too large.
    held_out_auc, auc_error
        AUC of the leave-one-out scores, and its standard error (Hanley and McNeil).
    auc
        AUC of the true model according to the law. `sample_size` uses this value.
    intercept, signal
        Mean and standard deviation of the score of the true model.
    score_spread
        Standard deviation of the leave-one-out scores.
    leverage_variation, gaussian_variation, scored_variation
        Standard deviation over mean of the leverages of the rows, for the table, for Gaussian predictors, and after a transformation of
        every column to normal scores.
    notes
        The steps taken to read the table.
    """

    samples: int
    predictors: int
    prevalence: float
    apparent_auc: float
    held_out_auc: float
    auc_error: float
    auc: float
    intercept: float
    signal: float
    score_spread: float
    leverage_variation: float
    gaussian_variation: float
    scored_variation: float
    notes: tuple[str, ...] = ()

    @property
    def skewed(self) -> bool:
        """Whether a few rows have so much leverage that the law is too favourable."""
        return self.leverage_variation > max(LARGE_VARIATION, ABOVE_GAUSSIAN * self.gaussian_variation)

    def remarks(self) -> list[str]:
        """Return sentences about the AUC and the leverages of the table."""
        sentences = [
            f"the AUC is {self.apparent_auc:.3f} on the pilot's rows, {self.held_out_auc:.3f} with each row left out (standard error "
            f"{self.auc_error:.3f}), and {self.auc:.3f} for the true model; the plan uses the last value"
        ]
        levers = f"leverages vary by {self.leverage_variation:.2f} of their mean (Gaussian predictors: {self.gaussian_variation:.2f})"
        if self.skewed:
            sentences.append(
                f"{levers}; a few rows determine the fit, and the calibration slope will be smaller than predicted; with normal scores "
                f"in place of the columns they vary by {self.scored_variation:.2f}; transform skewed columns, or plan with more samples"
            )
        else:
            sentences.append(f"{levers}, which is close enough for the law")
        return sentences


@explained
def read_pilot(pilot: str | Path | tuple[ArrayLike, ArrayLike], target: str | None = None) -> Pilot:
    """Return the results of a pilot table.

    Parameters
    ----------
    pilot
        A CSV, TSV, Parquet or NPZ file, or arrays (X, y) of inputs and labels. Files are parsed as data only; no code in them runs.
    target
        Name of the column of labels, for a file. It must contain two classes. The larger number, or the class that is later in the
        alphabet, is label 1.

    Raises
    ------
    ValueError
        If the table does not have two classes, has no logistic fit, or shows no signal beyond chance.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 5))
    >>> y = rng.random(500) < 1 / (1 + np.exp(-1.5 * X[:, 0]))
    >>> results = read_pilot((X, y))
    >>> results.predictors, bool(results.apparent_auc > results.held_out_auc), results.skewed
    (5, True, False)
    """
    if isinstance(pilot, tuple):
        X, labels = np.asarray(pilot[0], dtype=float), np.asarray(pilot[1])
        if X.ndim != 2 or labels.shape != X.shape[:1] or not np.isfinite(X).all():
            raise Refused(
                f"pilot with X of shape {X.shape} and y of shape {labels.shape} is not allowed: give finite n x p and n labels"
            )
        return _studied(X, labels, [])
    if target is None:
        raise Refused("target is missing: name the column of labels in the pilot file")
    from limitlab.applied.forecast.tables import read_table

    table = read_table(pilot, target, "classification")
    return _studied(table.X, table.y, table.notes)


def _studied(X: Array, labels: NDArray[Any], notes: list[str]) -> Pilot:
    classes = np.unique(labels)
    if classes.size != 2:
        raise Refused(f"the pilot's labels have {classes.size} classes ({', '.join(map(str, classes[:5]))}): must be two")
    y = (labels == classes[1]).astype(float)
    Z = whitened(X)
    n, p = Z.shape
    if p + 2 > n:
        raise Refused(f"the pilot has {n} rows for {p} predictors: give more rows, or fewer columns")
    fit = fit_logistic(Z, y)
    if not fit.exists:
        raise Refused(
            f"the pilot's {n} rows can be separated by their {p} predictors, so that no fit exists: give more rows, fewer columns, or the "
            "AUC that you expect"
        )
    fitted = fit.intercept + Z @ fit.coefficients
    left_out = scores_without(Z, y, fitted)
    spread, prevalence = float(left_out.std()), float(y.mean())
    truth = truth_behind(spread, p / n, prevalence)
    held_out = auc_of(left_out, y)
    return Pilot(
        samples=n,
        predictors=p,
        prevalence=prevalence,
        apparent_auc=auc_of(fitted, y),
        held_out_auc=held_out,
        auc_error=auc_error(held_out, int(y.sum()), int(n - y.sum())),
        auc=truth.auc,
        intercept=truth.intercept,
        signal=truth.signal,
        score_spread=spread,
        leverage_variation=variation(leverages(Z)),
        gaussian_variation=math.sqrt(2 * (n - 1 - p) / (p * (n + 1))),
        scored_variation=variation(leverages(whitened(normal_scores(X)))),
        notes=(*notes, f"label 1 is {classes[1]!s}"),
    )


# -- simulated studies ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SimulatedFits:
    """Results of simulated studies.

    Attributes
    ----------
    slopes
        Calibration slope of each study; 0 if no fit exists.
    spreads
        Standard deviation of the leave-one-out scores of each study; infinite if no fit exists.
    """

    slopes: Array
    spreads: Array


def simulated_fits(
    truth: TrueScore, predictors: int, samples: int, fits: int, seed: int = 0, spreads: bool = False
) -> SimulatedFits:
    """Return the results of logistic regressions on simulated studies with Gaussian predictors.

    Parameters
    ----------
    truth
        The true score of the labels.
    predictors, samples, fits
        Number of predictors, of samples of each study, and of studies.
    seed
        Seed of the studies. Studies with the same seed have related random numbers for every true score.
    spreads
        Whether to compute the spreads of the leave-one-out scores instead of the slopes.
    """
    from scipy.special import expit

    slopes, widths = np.zeros(fits), np.full(fits, math.inf)
    for i in range(fits):
        rng = np.random.default_rng([seed, i])
        table = np.ones((samples, predictors + 1))
        table[:, :predictors] = rng.standard_normal((samples, predictors))
        y = (rng.random(samples) < expit(truth.intercept + truth.signal * table[:, 0])).astype(float)
        coefficients = newton_fit(table, y)
        if coefficients is None:
            continue
        if spreads:
            widths[i] = scores_without(table[:, :predictors], y, table @ coefficients).std()
        else:
            rest = float(np.linalg.norm(coefficients[1:predictors]))
            slopes[i] = Score(truth, float(coefficients[-1]), float(coefficients[0]), rest).calibration()[0]
    return SimulatedFits(slopes, widths)


def newton_fit(table: Array, y: Array, steps: int = 30) -> Array | None:
    """Return the coefficients of a logistic regression by Newton's method, or None if it does not converge to moderate scores.

    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.standard_normal(50), np.ones(50)])
    >>> y = (rng.random(50) < 0.5).astype(float)
    >>> fit = fit_logistic(X[:, :1], y)
    >>> bool(np.allclose(newton_fit(X, y), [fit.coefficients[0], fit.intercept]))
    True
    """
    from scipy.linalg import cho_factor, cho_solve
    from scipy.special import expit

    coefficients = np.zeros(table.shape[1])
    for _ in range(steps):
        scores = table @ coefficients
        if np.abs(scores).max() > LARGEST_SCORE:
            return None
        risk = expit(scores)
        weight = np.maximum(risk * (1 - risk), 1e-12)
        try:
            factor = cho_factor((table * weight[:, None]).T @ table)
        except np.linalg.LinAlgError:
            return None
        step = cho_solve(factor, table.T @ (y - risk))
        coefficients = coefficients + step
        if np.abs(step).max() < 1e-8 * (1 + np.abs(coefficients).max()):
            return coefficients
    return None


def signal_interval(pilot: Pilot, level: float = 0.9, fits: int = INTERVAL_FITS, seed: int = 0) -> tuple[float, float]:
    """Return an interval of the signal of the true score, by inversion of a test with simulated pilots.

    A signal belongs to the interval if the spread of leave-one-out scores in the pilot lies between the quantiles of its distribution
    over pilots of the same size, number of predictors and prevalence. The lower end is 0 if no signal is consistent with the pilot.
    """
    from scipy.stats import norm

    half = float(norm.ppf((1 + level) / 2))
    grid = np.geomspace(max(WEAKEST, pilot.signal / 4), 2.5 * pilot.signal, 7)
    scores = np.empty(grid.size)
    for i, signal in enumerate(grid):
        truth = TrueScore(intercept_of(pilot.prevalence, float(signal)) if pilot.prevalence != 0.5 else 0.0, float(signal))
        spreads = simulated_fits(truth, pilot.predictors, pilot.samples, fits, seed + i, spreads=True).spreads
        below = (np.sum(spreads < pilot.score_spread) + 0.5) / (fits + 1)
        known = np.log(spreads[np.isfinite(spreads)])
        if known.size > 0.9 * fits and known.std() > 0:  # the normal score is less noisy than the count in the tails
            scores[i] = (math.log(pilot.score_spread) - known.mean()) / known.std(ddof=1)
        else:
            scores[i] = float(norm.ppf(below))
    line = np.polynomial.Polynomial.fit(np.log(grid), scores, 3)
    fine = np.geomspace(grid[0], grid[-1], 2000)
    values = np.minimum.accumulate(line(np.log(fine)))
    low = float(fine[np.argmax(values <= half)]) if values[0] > half else 0.0
    high = float(fine[np.argmax(values <= -half)]) if values[-1] <= -half else float(fine[-1])
    return low, high


# -- the AUC of the true model ------------------------------------------------------------------------------------------


def whitened(X: Array) -> Array:
    """Return independent columns of variance 1 that span the centred columns.

    A fit without penalty gives the same scores with these columns.
    """
    left, singular, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    nonzero = singular > RANK * singular.max(initial=0.0)
    return np.asarray(left[:, nonzero] * math.sqrt(len(X)))


def scores_without(Z: Array, y: Array, scores: Array) -> Array:
    """Return the leave-one-out score of each row, to first order in the influence of its label.

    The result is score - V_i (y_i - sig(score)), with the inverse curvature q_i of row i, h_i = sig'(score) and V_i = q_i/(1 - h_i q_i).
    """
    from scipy.special import expit

    table = np.column_stack([Z, np.ones(len(Z))])
    risk = expit(scores)
    bend = risk * (1 - risk)
    inverse = np.linalg.inv((table * bend[:, None]).T @ table)
    curvature = np.sum((table @ inverse) * table, axis=1)
    return np.asarray(scores - curvature / (1 - bend * curvature) * (y - risk))


def truth_behind(spread: float, ratio: float, prevalence: float) -> TrueScore:
    """Return the true score for which fits at this p/n give new rows scores of this standard deviation.

    >>> truth = truth_behind(2.0, 0.02, 0.3)
    >>> fitted = solve_logistic(truth, Groups(0.02, (1.0,), (1.0,), (1.0,)), 0.0).score
    >>> round(fitted.spread, 9), round(truth.prevalence, 9)
    (2.0, 0.3)
    """
    from scipy.optimize import brentq

    def at(signal: float) -> TrueScore:
        return TrueScore(intercept_of(prevalence, signal), signal)

    def excess(signal: float) -> float:
        truth = at(signal)
        if ratio >= existence(truth).threshold:
            return math.inf
        return solve_logistic(truth, Groups(ratio, (1.0,), (1.0,), (1.0,)), 0.0).score.spread - spread

    low = WEAKEST
    if excess(low) > 0:
        raise Refused(
            f"the pilot shows no signal beyond chance: leave-one-out scores have standard deviation {spread:.3g}, which is no larger than "
            "for fits to pure noise; give more rows, or the AUC that you expect"
        )
    high = spread  # fitted scores have a larger spread than true ones
    gap = excess(high)
    while math.isinf(gap):  # no fit exists for this signal; return to one for which a fit exists
        middle = math.sqrt(low * high)
        gap = excess(middle)
        if gap < 0:
            low, gap = middle, math.inf
        else:
            high = middle
        if high / low < 1 + 1e-9:
            raise Refused(
                f"no true model gives scores of standard deviation {spread:.3g} at p/n = {ratio:.3g}: give more rows"
            )
    return at(float(brentq(excess, low, high, xtol=1e-10)))


def auc_of(scores: Array, y: Array) -> float:
    """Return the probability that the score of a case is larger than that of a control.

    >>> auc_of(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0.0, 0.0, 1.0, 1.0]))
    0.75
    """
    from scipy.stats import rankdata

    cases, controls = y.sum(), len(y) - y.sum()
    return float((rankdata(scores)[y == 1].sum() - cases * (cases + 1) / 2) / (cases * controls))


def auc_error(auc: float, cases: int, controls: int) -> float:
    """Return the standard error of a measured AUC (Hanley and McNeil 1982).

    >>> round(auc_error(0.8, 50, 100), 4)
    0.0412
    """
    two_cases, two_controls = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    variance = auc * (1 - auc) + (cases - 1) * (two_cases - auc**2) + (controls - 1) * (two_controls - auc**2)
    return math.sqrt(max(variance, 0.0) / (cases * controls))


# -- leverages ----------------------------------------------------------------------------------------------------------


def leverages(Z: Array) -> Array:
    """Return the share of each row in its own fitted value, for whitened columns."""
    return np.asarray((Z**2).sum(axis=1) / len(Z))


def variation(values: Array) -> float:
    """Return the standard deviation over the mean."""
    return float(values.std() / values.mean())


def normal_scores(X: Array) -> Array:
    """Return every column as Gaussian quantiles of its ranks.

    >>> normal_scores(np.array([[1.0], [10.0], [100.0]])).round(3).ravel().tolist()
    [-0.967, 0.0, 0.967]
    """
    from scipy.special import ndtri
    from scipy.stats import rankdata

    return np.asarray(ndtri((rankdata(X, axis=0) - 0.5) / len(X)))
