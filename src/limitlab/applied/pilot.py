"""What a pilot table says about a planned study: predictors, prevalence, the AUC that a true model could have, and how skewed its rows are.

The AUC that a fit has on its own rows is too good. The law `LogisticCalibration` says by how much: the scores that rows get from a fit
without them have the standard deviation S of its equation (3), which depends on p/n, the prevalence and the true model's strength gamma.
S is estimated without refitting (Yadlowsky et al. 2021), the law is solved for gamma, and gamma gives the true model's AUC.
docs/theory/logistic_calibration.md, section "A pilot".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.laws.classification.gaussian_score import TrueScore
from limitlab.laws.classification.logistic_calibration import intercept_of
from limitlab.laws.classification.logistic_system import existence, solve_logistic
from limitlab.laws.classification.populations import Groups
from limitlab.models.logistic import fit_logistic

__all__ = ["Pilot", "read_pilot"]

Array = NDArray[np.float64]

RANK = 1e-9  # singular values below this share of the largest are none
LARGE_VARIATION, ABOVE_GAUSSIAN = 1.0, 1.5  # of leverages: beyond both the law is said to be too favourable
WEAKEST = 0.02  # signal below which there is none


@dataclass(frozen=True)
class Pilot:
    """What a pilot table says.

    Attributes
    ----------
    samples, predictors, prevalence
        Rows, independent columns (categories count one less than their levels), share of labels 1.
    apparent_auc
        AUC of the fit on its own rows: too good.
    held_out_auc, auc_error
        AUC of the scores that rows get from a fit without them, and its standard error (Hanley and McNeil).
    auc
        AUC of the true model, from the law: what `sample_size` needs.
    intercept, signal
        Mean and standard deviation of the true model's score.
    score_spread
        Standard deviation of the scores of rows from a fit without them.
    leverage_variation, gaussian_variation, scored_variation
        Standard deviation over mean of the rows' leverages: in the table, of Gaussian predictors, and after a transformation of every
        column to normal scores.
    notes
        What was done to read the table.
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
        """What to make of the table, in sentences."""
        said = [
            f"AUC {self.apparent_auc:.3f} on the pilot's own rows, {self.held_out_auc:.3f} without them (standard error "
            f"{self.auc_error:.3f}), {self.auc:.3f} of the true model: the last is planned with"
        ]
        levers = f"leverages vary by {self.leverage_variation:.2f} of their mean (Gaussian predictors: {self.gaussian_variation:.2f})"
        if self.skewed:
            said.append(
                f"{levers}: a few rows decide the fit, and the calibration slope will fall short of what is promised; with normal scores "
                f"in place of the columns they vary by {self.scored_variation:.2f}: transform skewed columns, or plan with more samples"
            )
        else:
            said.append(f"{levers}: close enough for the law")
        return said


def read_pilot(pilot: str | Path | tuple[ArrayLike, ArrayLike], target: str | None = None) -> Pilot:
    """What a pilot table says: a file with the name of its label column, or arrays (X, y).

    Parameters
    ----------
    pilot
        A CSV, TSV, Parquet or NPZ file (nothing in it is ever run), or inputs and labels as arrays.
    target
        The column of labels, for a file. It must hold two classes; the later one in the alphabet or the larger number is label 1.

    Raises
    ------
    ValueError
        Where the table has no two classes, no logistic fit, or no signal beyond chance.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 5))
    >>> y = rng.random(500) < 1 / (1 + np.exp(-1.5 * X[:, 0]))
    >>> found = read_pilot((X, y))
    >>> found.predictors, bool(found.apparent_auc > found.held_out_auc), found.skewed
    (5, True, False)
    """
    if isinstance(pilot, tuple):
        X, labels = np.asarray(pilot[0], dtype=float), np.asarray(pilot[1])
        if X.ndim != 2 or labels.shape != X.shape[:1] or not np.isfinite(X).all():
            raise ValueError(
                f"pilot with X of shape {X.shape} and y of shape {labels.shape} is not allowed: give finite n x p and n labels"
            )
        return _studied(X, labels, [])
    if target is None:
        raise ValueError("target is missing: name the column of labels in the pilot file")
    from limitlab.applied.forecast.tables import read_table

    table = read_table(pilot, target, "classification")
    return _studied(table.X, table.y, table.notes)


def _studied(X: Array, labels: NDArray[Any], notes: list[str]) -> Pilot:
    classes = np.unique(labels)
    if classes.size != 2:
        raise ValueError(f"the pilot's labels have {classes.size} classes ({', '.join(map(str, classes[:5]))}): must be two")
    y = (labels == classes[1]).astype(float)
    Z = whitened(X)
    n, p = Z.shape
    if p + 2 > n:
        raise ValueError(f"the pilot has {n} rows for {p} predictors: give more rows, or fewer columns")
    fit = fit_logistic(Z, y)
    if not fit.exists:
        raise ValueError(
            f"the pilot's {n} rows can be separated by their {p} predictors, so that no fit exists: give more rows, fewer columns, or the "
            "AUC that you expect"
        )
    seen = fit.intercept + Z @ fit.coefficients
    alone = scores_without(Z, y, seen)
    spread, prevalence = float(alone.std()), float(y.mean())
    truth = truth_behind(spread, p / n, prevalence)
    held_out = auc_of(alone, y)
    return Pilot(
        samples=n,
        predictors=p,
        prevalence=prevalence,
        apparent_auc=auc_of(seen, y),
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


# -- the AUC of the true model ------------------------------------------------------------------------------------------


def whitened(X: Array) -> Array:
    """Independent columns of unit variance that span the centred ones: a fit without penalty is the same."""
    left, singular, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    kept = singular > RANK * singular.max(initial=0.0)
    return np.asarray(left[:, kept] * math.sqrt(len(X)))


def scores_without(Z: Array, y: Array, scores: Array) -> Array:
    """Score of each row from a fit without it, to first order: the pull of the row's own label is taken back.

    With the inverse curvature q_i of row i, h_i = sig'(score) and V_i = q_i/(1 - h_i q_i): score - V_i (y_i - sig(score)).
    """
    from scipy.special import expit

    table = np.column_stack([Z, np.ones(len(Z))])
    risk = expit(scores)
    bend = risk * (1 - risk)
    inverse = np.linalg.inv((table * bend[:, None]).T @ table)
    own = np.einsum("ij,jk,ik->i", table, inverse, table)
    return np.asarray(scores - own / (1 - bend * own) * (y - risk))


def truth_behind(spread: float, ratio: float, prevalence: float) -> TrueScore:
    """The true score for which fits at this p/n give new rows scores of this standard deviation.

    >>> found = truth_behind(2.0, 0.02, 0.3)
    >>> fitted = solve_logistic(found, Groups(0.02, (1.0,), (1.0,), (1.0,)), 0.0).score
    >>> round(fitted.spread, 9), round(found.prevalence, 9)
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
        raise ValueError(
            f"the pilot shows no signal beyond chance: scores of rows without their own influence have standard deviation {spread:.3g}, no "
            "more than fits to pure noise give; give more rows, or the AUC that you expect"
        )
    high = spread  # scores of fits are inflated: the true ones spread less
    gap = excess(high)
    while math.isinf(gap):  # beyond the existence threshold: come back to a signal whose fit exists
        middle = math.sqrt(low * high)
        gap = excess(middle)
        if gap < 0:
            low, gap = middle, math.inf
        else:
            high = middle
        if high / low < 1 + 1e-9:
            raise ValueError(
                f"no true model gives scores of standard deviation {spread:.3g} at p/n = {ratio:.3g}: give more rows"
            )
    return at(float(brentq(excess, low, high, xtol=1e-10)))


def auc_of(scores: Array, y: Array) -> float:
    """Probability that a case scores above a control.

    >>> auc_of(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0.0, 0.0, 1.0, 1.0]))
    0.75
    """
    from scipy.stats import rankdata

    cases, controls = y.sum(), len(y) - y.sum()
    return float((rankdata(scores)[y == 1].sum() - cases * (cases + 1) / 2) / (cases * controls))


def auc_error(auc: float, cases: int, controls: int) -> float:
    """Standard error of a measured AUC (Hanley and McNeil 1982).

    >>> round(auc_error(0.8, 50, 100), 4)
    0.0412
    """
    one, two = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    variance = auc * (1 - auc) + (cases - 1) * (one - auc**2) + (controls - 1) * (two - auc**2)
    return math.sqrt(max(variance, 0.0) / (cases * controls))


# -- leverages ----------------------------------------------------------------------------------------------------------


def leverages(Z: Array) -> Array:
    """How much of a row's own fitted value comes from it, for whitened columns."""
    return np.asarray((Z**2).sum(axis=1) / len(Z))


def variation(values: Array) -> float:
    """Standard deviation over mean."""
    return float(values.std() / values.mean())


def normal_scores(X: Array) -> Array:
    """Every column as normal quantiles of its ranks.

    >>> normal_scores(np.array([[1.0], [10.0], [100.0]])).round(3).ravel().tolist()
    [-0.967, 0.0, 0.967]
    """
    from scipy.special import ndtri
    from scipy.stats import rankdata

    return np.asarray(ndtri((rankdata(X, axis=0) - 0.5) / len(X)))
