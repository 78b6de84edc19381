"""Claims about logistic regression at fixed p/n: bias and calibration (B1), existence (B2)."""

from __future__ import annotations

import numpy as np

from limitlab.lab.claims import Outcome, claim
from limitlab.lab.compare import compare
from limitlab.lab.criteria import Number, above, agrees, below, near
from limitlab.lab.measures import SIGMAS, effort, largest
from limitlab.laws.classification.gaussian_score import TrueScore
from limitlab.laws.classification.logistic_calibration import LogisticCalibration
from limitlab.laws.classification.logistic_existence import existence
from limitlab.models.logistic import fit_logistic

_AREA = "Logistic regression and sample sizes"


@claim(
    "B1",
    _AREA,
    "With p/n fixed, maximum likelihood inflates the coefficients of a logistic model and spreads them more than Fisher's information "
    "says; its risks are too extreme (calibration slope below 1), and the right ridge penalty repairs this.",
    laws=("LogisticCalibration",),
    figure="logistic-calibration",
)
def calibration(quick: bool) -> Outcome:
    """Comparisons at the check points; signs of bias and slope over p/n; the penalty of least log-loss."""
    from scipy.optimize import minimize_scalar

    points = LogisticCalibration.check_points()
    names = ["bias_factor", "noise_scale", "calibration_slope", "auc", "log_loss"]
    comparisons = [compare(point, seeds=250, observables=names, **effort(quick)) for point in points]
    law = LogisticCalibration(intercept=-1.0, signal=1.5)
    limits = [law.replace(ratio=ratio).theory() for ratio in (0.02, 0.1, 0.2, 0.3)]
    bias, slopes = ([float(limit[name]) for limit in limits] for name in ("bias_factor", "calibration_slope"))
    classical = float(law.replace(ratio=1e-6).theory().noise_scale)

    def loss(x: float) -> float:
        return float(law.replace(ratio=0.1, ridge=float(np.exp(x))).theory().log_loss)

    ridge = float(np.exp(minimize_scalar(loss, bounds=(-5, 1), method="bounded").x))
    tuned = law.replace(ratio=0.1, ridge=ridge).theory()
    measured: dict[str, Number] = {"penalty of least log-loss at p/n = 0.1": ridge}
    for ratio, factor, slope in zip((0.02, 0.1, 0.2, 0.3), bias, slopes, strict=True):
        measured[f"bias factor at p/n = {ratio:g}"] = factor
        measured[f"calibration slope at p/n = {ratio:g}"] = slope
    return Outcome(
        (
            *(agrees(f"the law at check point {i + 1}", one) for i, one in enumerate(comparisons)),
            above("smallest growth of the bias factor with p/n, from 1 on", float(np.diff([1.0, *bias]).min()), 0),
            below("largest growth of the calibration slope with p/n, from 1 on", largest(np.diff([1.0, *slopes])), 0),
            above(
                "noise scale at p/n = 0.1 over that of Fisher's information", float(limits[1].noise_scale) / classical, 1.1
            ),
            near("calibration slope at the penalty of least log-loss", float(tuned.calibration_slope), 1.0, 0.01),
            above("log-loss that this penalty saves at p/n = 0.1", float(limits[1].log_loss - tuned.log_loss), 0.01),
        ),
        measured,
    )


@claim(
    "B2",
    _AREA,
    "A logistic fit without penalty exists if and only if p/n is below a threshold that falls with the signal, and at finite n the "
    "probability of no fit is a normal one with one parameter more for the intercept.",
    laws=("LogisticCalibration",),
    figure="logistic-calibration",
)
def fits_exist(quick: bool) -> Outcome:
    """Shares of simulated data sets without a fit against the formula, with the count of parameters it needs and without."""
    draws = 150 if quick else 2000
    cases = [(8, 24, 0.0, 0.7), (12, 34, -1.0, 1.5), (20, 56, 0.0, 2.0), (20, 74, -1.5, 1.0), (16, 44, 0.5, 1.0)]
    right, wrong = 0.0, 0.0
    measured: dict[str, Number] = {}
    for p, n, b0, gamma in cases:
        share = share_without_fit(p, n, b0, gamma, draws)
        case = existence(TrueScore(b0, gamma))
        want, other = (float(case.no_fit_probability(count, n)) for count in (p, p - 1))
        right += (share - want) ** 2 / (want * (1 - want) / draws)
        wrong += (share - other) ** 2 / (other * (1 - other) / draws)
        measured[f"share without a fit, p = {p}, n = {n}, b0 = {b0:g}, gamma = {gamma:g}"] = share
        measured[f"formula, p = {p}, n = {n}, b0 = {b0:g}, gamma = {gamma:g}"] = want
    thresholds = [existence(TrueScore(0.0, gamma)).threshold for gamma in (0.01, 1.0, 2.0, 4.0)]
    allowed = len(cases) + SIGMAS * np.sqrt(2 * len(cases)) + (0 if quick else 0.03**2 * draws * 4 * len(cases))
    return Outcome(
        (
            below("squared gaps in units of their variance, added over five cases", right, allowed),
            above("the same without the parameter of the intercept", wrong, allowed),
            near("threshold without a signal", thresholds[0], 0.5, 1e-3),
            below("largest change of the threshold as the signal grows", largest(np.diff(thresholds)), 0),
        ),
        measured,
        note="The formula is a normal approximation: of a few hundredths at n of a few dozen, which the full check allows for.",
    )


def share_without_fit(p: int, n: int, b0: float, gamma: float, draws: int) -> float:
    """Share of simulated data sets whose logistic regression has no minimiser."""
    rng, missing = np.random.default_rng([p, n, draws]), 0
    for _ in range(draws):
        X = rng.standard_normal((n, p))
        y = (rng.random(n) < 1 / (1 + np.exp(-b0 - gamma * X[:, 0]))).astype(float)
        missing += not fit_logistic(X, y).exists
    return missing / draws
