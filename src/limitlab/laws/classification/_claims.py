"""Claims about margins, convex losses, calibration and the best possible error (B1 to B3, L8, T8)."""

from __future__ import annotations

import math

import numpy as np

from limitlab._core.cost import single_threaded
from limitlab.lab.check import SIGMAS, Check, largest, sigmas, smallest, standard_error, words
from limitlab.lab.claims import claim
from limitlab.laws import Ridge
from limitlab.laws.classification.bayes_optimal import BayesOptimal
from limitlab.laws.classification.convex_loss import ConvexLoss
from limitlab.laws.classification.gaussian_score import TrueScore
from limitlab.laws.classification.logistic_calibration import LogisticCalibration
from limitlab.laws.classification.logistic_system import existence
from limitlab.laws.classification.max_margin import MaxMargin
from limitlab.laws.classification.perceptron import Perceptron, perceptron_mistakes
from limitlab.laws.classification.random_features_margin import LabelledFeatures, RandomFeaturesMargin
from limitlab.models.activations import Moments
from limitlab.models.logistic import fit_logistic
from limitlab.numerics.margin import hard_margin

# -- best possible ------------------------------------------------------------------------------------------------


@claim("B3", "The best possible error", BayesOptimal, figure="best-possible")
def best_possible(check: Check) -> None:
    """No method has a smaller error than the Bayes error of a generalised linear model. Outside a hard phase the error of message
    passing equals it. For Gaussian labels ridge regression with its best penalty has this error. Logistic regression with its
    best penalty nearly has it, and maximum margin does not.

    The check compares message passing with the law. It also tests the gaps of ridge, logistic regression and maximum margin, and the
    thresholds of phase retrieval.
    """
    names = ["overlap_gamp", "precision_gamp"]
    check.agree(
        "message passing",
        BayesOptimal,
        points=2 if check.quick else 3,
        sizes=(100, 200, 400) if check.quick else None,
        seeds=60,
        observables=names,
    )
    ratios = (0.3, 1.0, 3.0)
    ridges, margins, logistic = [], [], []
    for ratio in ratios:
        linear = Ridge(ratio=ratio, noise=0.5)
        tuned = linear.replace(ridge=linear.optimal_ridge()).gap_to_best()
        ridges.append(float(tuned.gap_to_best / (tuned.best_error - linear.noise**2)))
        margin = MaxMargin(ratio=ratio).gap_to_best()
        margins.append(float(margin.gap_to_best / margin.best_error))
        law = LogisticCalibration(ratio=ratio, signal=3.0, ridge=0.1, fit_intercept=False)
        logistic.append(float(law.gap_to_best(ridge=np.geomspace(0.01, 2, 16)).gap_to_best.min()))
    check.below("largest relative gap of the best ridge to Bayes", largest(np.abs(ridges)), 1e-9)
    check.above("smallest gap of logistic regression at its best penalty", smallest(logistic), 0)
    check.below("largest gap of logistic regression at its best penalty", largest(logistic), 2e-4)
    check.above("smallest relative gap of maximum margin", smallest(margins), 0.01)
    thresholds = BayesOptimal(channel="abs").thresholds()
    check.near("message passing threshold of phase retrieval", thresholds["algorithmic_samples"], 1.128471, 1e-5)
    check.near("information threshold of phase retrieval", thresholds["information_samples"], 1.0, 1e-5)
    phase = BayesOptimal(ratio=1 / 1.05, channel="abs").theory().attrs["phase"]
    check.equal("phase between them", phase, "hard")
    for r, gap in zip(ratios, margins, strict=True):
        check.show(f"relative gap of maximum margin at p/n = {r:g}", gap)


# -- logistic -----------------------------------------------------------------------------------------------------

_AREA = "Logistic regression and sample sizes"


@claim("B1", _AREA, LogisticCalibration, figure="logistic-calibration")
def calibration(check: Check) -> None:
    """With p/n fixed, maximum likelihood inflates the coefficients of a logistic model, and their variance is larger than Fisher's
    information predicts. The estimated risks are too extreme (calibration slope below 1). With the right ridge penalty the
    slope is 1.

    The check compares the law with simulations at the check points. It also tests how bias and slope change with p/n, and the penalty of
    least log-loss.
    """
    from scipy.optimize import minimize_scalar

    names = ["bias_factor", "noise_scale", "calibration_slope", "auc", "log_loss"]
    check.agree("the law", LogisticCalibration, seeds=250, observables=names)
    law = LogisticCalibration(intercept=-1.0, signal=1.5)
    limits = [law.replace(ratio=ratio).theory() for ratio in (0.02, 0.1, 0.2, 0.3)]
    bias, slopes = ([float(limit[name]) for limit in limits] for name in ("bias_factor", "calibration_slope"))
    check.above("smallest growth of the bias factor with p/n, from 1 on", float(np.diff([1.0, *bias]).min()), 0)
    check.below("largest growth of the calibration slope with p/n, from 1 on", largest(np.diff([1.0, *slopes])), 0)
    classical = float(law.replace(ratio=1e-6).theory().noise_scale)
    check.above("noise scale at p/n = 0.1 over that of Fisher's information", float(limits[1].noise_scale) / classical, 1.1)

    def loss(x: float) -> float:
        return float(law.replace(ratio=0.1, ridge=float(np.exp(x))).theory().log_loss)

    ridge = float(np.exp(minimize_scalar(loss, bounds=(-5, 1), method="bounded").x))
    tuned = law.replace(ratio=0.1, ridge=ridge).theory()
    check.near("calibration slope at the penalty of least log-loss", float(tuned.calibration_slope), 1.0, 0.01)
    check.above("log-loss that this penalty saves at p/n = 0.1", float(limits[1].log_loss - tuned.log_loss), 0.01)
    check.show("penalty of least log-loss at p/n = 0.1", ridge)
    for ratio, factor, slope in zip((0.02, 0.1, 0.2, 0.3), bias, slopes, strict=True):
        check.show(f"bias factor at p/n = {ratio:g}", factor)
        check.show(f"calibration slope at p/n = {ratio:g}", slope)


@claim("B2", _AREA, LogisticCalibration, figure="logistic-calibration")
def fits_exist(check: Check) -> None:
    """A logistic fit without penalty exists if and only if p/n is below a threshold that falls with the signal. At finite n the
    probability of no fit is approximately a normal probability, in which the intercept counts as one more parameter.

    The check compares shares of simulated data sets without a fit with the formula, and with the formula without the parameter of the
    intercept.
    """
    draws = 150 if check.quick else 2000
    cases = [(8, 24, 0.0, 0.7), (12, 34, -1.0, 1.5), (20, 56, 0.0, 2.0), (20, 74, -1.5, 1.0), (16, 44, 0.5, 1.0)]
    right, wrong = 0.0, 0.0
    for p, n, b0, gamma in cases:
        share = share_without_fit(p, n, b0, gamma, draws)
        case = existence(TrueScore(b0, gamma))
        want, other = (float(case.no_fit_probability(count, n)) for count in (p, p - 1))
        right += (share - want) ** 2 / (want * (1 - want) / draws)
        wrong += (share - other) ** 2 / (other * (1 - other) / draws)
        check.show(f"share without a fit, p = {p}, n = {n}, b0 = {b0:g}, gamma = {gamma:g}", share)
        check.show(f"formula, p = {p}, n = {n}, b0 = {b0:g}, gamma = {gamma:g}", want)
    thresholds = [existence(TrueScore(0.0, gamma)).threshold for gamma in (0.01, 1.0, 2.0, 4.0)]
    allowed = len(cases) + SIGMAS * np.sqrt(2 * len(cases)) + (0 if check.quick else 0.03**2 * draws * 4 * len(cases))
    check.below("squared gaps in units of their variance, added over five cases", right, allowed)
    check.above("the same without the parameter of the intercept", wrong, allowed)
    check.near("threshold without a signal", thresholds[0], 0.5, 1e-3)
    check.below("largest change of the threshold as the signal grows", largest(np.diff(thresholds)), 0)
    check.note(
        "The formula is a normal approximation. Its error is a few hundredths at n of a few dozen, which the full check allows for."
    )


def share_without_fit(p: int, n: int, b0: float, gamma: float, draws: int) -> float:
    """Return the share of simulated data sets whose logistic regression has no minimiser."""
    rng, missing = np.random.default_rng([p, n, draws]), 0
    for _ in range(draws):
        X = rng.standard_normal((n, p))
        y = (rng.random(n) < 1 / (1 + np.exp(-b0 - gamma * X[:, 0]))).astype(float)
        missing += not fit_logistic(X, y).exists
    return missing / draws


# -- margins ------------------------------------------------------------------------------------------------------

STANDARD_ERRORS = 3.0

WIDTHS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)

SAMPLE_RATIO = 2.0

SEPARABILITY_WIDTH = 0.76843356
"""Least N/d at which ReLU features separate n = 2d points with sign labels."""


@claim("T8", "Random features and margins", RandomFeaturesMargin, MaxMargin, ConvexLoss, figure="max-margin", items=("T-7",))
def largest_margin(check: Check) -> None:
    """In max-margin classification on random features, margin, error and share of support vectors have explicit limits, and the
    data can be separated above an explicit width.

    The check compares margin and error over the width with hard-margin solutions. It also tests the threshold and the limit of small ridge.
    """
    size, seeds, widths = (50, 40, (1.5, 3.0)) if check.quick else (200, 40, WIDTHS)
    z, contrast = [], []
    with single_threaded():
        for width in widths:
            law = RandomFeaturesMargin(width_ratio=width, sample_ratio=SAMPLE_RATIO)
            theory, runs = law.theory(), law.simulate_batch(size, range(seeds))
            for name in ("margin", "classification_error", "support_fraction"):
                z.append(sigmas(runs[name].values, float(theory[name])))
                check.show(f"{words(name)} at N/d = {width:g} simulated", float(runs[name].mean()))
                check.show(f"{words(name)} at N/d = {width:g} in theory", float(theory[name]))
            linear = Moments(law.moments.mean, law.moments.linear, 0.0)  # the features without their nonlinear part
            wrong = float(law.replace(activation=linear).theory()["classification_error"])
            contrast.append(sigmas(runs["classification_error"].values, wrong))
    check.at_most(f"largest z of margin, error and support at d = {size}, {len(widths)} widths", largest(z), STANDARD_ERRORS)
    check.agree("the linear classifier of largest margin:", MaxMargin, seeds=150 if check.quick else 600, together=True)
    check.agree(
        "a logistic classifier with a ridge on random features:",
        ConvexLoss.check_points()[0],
        seeds=60 if check.quick else 300,
    )
    check.above("smallest z of the error of linear features", smallest(contrast), 10)
    limits = [RandomFeaturesMargin(width_ratio=float(w)).theory() for w in np.geomspace(0.8, 100, 8)]
    margins, errors = ([float(limit[name]) for limit in limits] for name in ("margin", "classification_error"))
    check.above("smallest growth of the margin between 8 widths", smallest(np.diff(margins)), 0)
    check.below("largest change of the error between 8 widths", largest(np.diff(errors)), 0)
    threshold = RandomFeaturesMargin().separability_width()
    check.below(
        f"distance of the separability threshold N/d from {SEPARABILITY_WIDTH}", abs(threshold - SEPARABILITY_WIDTH), 1e-8
    )
    check.below("share of draws separable 15% below the threshold", separable_share(0.85 * threshold, check.quick), 0.5)
    check.above("share of draws separable 15% above the threshold", separable_share(1.15 * threshold, check.quick), 0.5)
    soft = [ConvexLoss(loss="squared_hinge", ridge=ridge).theory() for ridge in (1e-4, 1e-5, 1e-6)]
    hard = RandomFeaturesMargin(width_ratio=1.5).theory()
    distance = [abs(float(each["classification_error"] - hard["classification_error"])) for each in soft]
    check.below("gap of the squared hinge's error to the margin's at ridge 1e-6", distance[2], 1e-5)
    check.above("shrinkage of the squared hinge's gap from ridge 1e-4 to 1e-5", distance[0] / distance[1], 5)
    check.above("shrinkage of the squared hinge's gap from ridge 1e-5 to 1e-6", distance[1] / distance[2], 5)
    check.note(
        "ReLU, n = 2d, sign labels. The source states the equivalence of nonlinear and Gaussian features for the largest margin as "
        "a conjecture, and does not name the link of its figure; labels here are the sign of a linear function."
    )


def separable_share(width: float, quick: bool) -> float:
    """Return the share of draws that can be separated at this width (ReLU, n = 2d, sign labels)."""
    size, seeds = (60, 20) if quick else (150, 40)
    law = RandomFeaturesMargin(width_ratio=width, sample_ratio=SAMPLE_RATIO)
    drawn = (LabelledFeatures(law, law.draw(size, seed)) for seed in range(seeds))
    with single_threaded():
        return float(np.mean([hard_margin(data.y[:, None] * data.features).separable for data in drawn]))


# -- classes ------------------------------------------------------------------------------------------------------

_AREA_CLASSES = "Uniform convergence and real networks"


@claim("L8", _AREA_CLASSES, Perceptron, figure="perceptron", items=("L-1",))
def mistakes_are_bounded(check: Check) -> None:
    """Rosenblatt's perceptron makes at most (R/margin)^2 mistakes, in any order of presentation, and some data attain this bound.

    The check tests the bound in cyclic and random orders. Mistakes per dimension must not depend on the dimension. Margin and bound are
    compared with their limits.
    """
    small, large, seeds = (50, 100, 30) if check.quick else (100, 200, 40)
    laws = [Perceptron(ratio=ratio) for ratio in (0.8, 2.0, 5.0)]
    batches = [[law.simulate_batch(p, range(seeds)) for p in (small, large)] for law in laws]
    worst = [float(runs.largest_ratio.max()) for pair in batches for runs in pair]
    rng = np.random.default_rng(0)
    for _ in range(20 if check.quick else 100):
        vectors = rng.standard_normal((40, 40)) + 0.3
        solution = hard_margin(vectors)
        bound = float((vectors**2).sum(axis=1).max()) / solution.margin**2
        worst += [perceptron_mistakes(vectors[rng.permutation(40)]) / bound for _ in range(3)]
    check.at_most("largest number of mistakes over its bound, all data sets and orders", largest(worst), 1.0)
    orthonormal = Perceptron.from_data(np.eye(8), np.ones(8))
    attained = orthonormal.mistakes / orthonormal.mistake_bound
    check.near("number of mistakes over its bound for orthonormal inputs, which attain it", attained, 1, 1e-9)
    for law, pair in zip(laws, batches, strict=True):
        limit, last = law.theory(), pair[1]
        counts = [float(runs.mistakes.mean()) for runs in pair]
        errors = [standard_error(runs.mistakes.values) for runs in pair]
        gap = abs(float(last.margin.mean()) - float(limit.margin)) - 4 * standard_error(last.margin.values)
        name = f"at p/n = {law.ratio:g}"
        change = abs(counts[1] / counts[0] - 1) - (4 * math.hypot(*errors) / counts[0] if check.quick else 0.0)
        check.at_most(f"relative change of mistakes per dimension from p = {small} to {large} {name}", change, 0.15)
        check.at_most(f"gap of the mean margin beyond 4 standard errors {name}, relative", gap / float(limit.margin), 0.05)
        check.between(
            f"median bound over its limit {name}",
            float(last.mistake_bound.median() / limit.mistake_bound),
            1.0,
            1.6 if check.quick else 1.5,
        )
        check.show(f"mistakes per dimension {name}", counts[1])
        check.show(f"limit of the bound per dimension {name}", float(limit.mistake_bound))
    check.note(
        "The number of mistakes is measured, not predicted. The bound tends to its limit with a relative gap of order sqrt(log(n)/p)."
    )
