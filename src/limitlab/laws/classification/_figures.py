"""Figures of margins, calibration and the best possible error."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from limitlab._core.cost import single_threaded
from limitlab._core.draws import mean_and_error
from limitlab.laws.classification._channels import Channel, Prior, information, precision_of
from limitlab.laws.classification._claims import share_without_fit
from limitlab.laws.classification.bayes_optimal import BayesOptimal
from limitlab.laws.classification.convex_loss import ConvexLoss
from limitlab.laws.classification.gaussian_score import TrueScore
from limitlab.laws.classification.logistic_calibration import LogisticCalibration
from limitlab.laws.classification.logistic_system import existence
from limitlab.laws.classification.max_margin import MaxMargin
from limitlab.laws.classification.perceptron import Perceptron
from limitlab.laws.classification.random_features_margin import LabelledFeatures, RandomFeaturesMargin
from limitlab.numerics.margin import hard_margin
from limitlab.plotting.along import along, draws_along, predictions_along
from limitlab.plotting.style import best_line, finish, legend_of_styles, new_figure, simulation_points, theory_line

# -- best possible ------------------------------------------------------------------------------------------------


def best_possible(quick: bool = True) -> Figure:
    """Errors of sign labels with the best possible error, and all fixed points of phase retrieval and of +-1 coefficients."""
    figure, (left, right) = new_figure(columns=2)
    samples, few, size = np.geomspace(0.3, 10, 40), (0.5, 1.0, 2.0, 4.0), 200
    law, name = BayesOptimal(channel="sign"), "classification_error"
    along(left, law, _samples_per_feature, name, samples, label="best possible")
    along(left, MaxMargin(), _samples_per_feature, name, samples, index=1, label="maximum margin", linestyle="--")
    gamp, label = f"{name}_gamp", f"message passing, $p={size}$"
    along(left, law, _samples_per_feature, gamp, (), few, size=size, seeds=10 if quick else 60, label=label)
    finish(left, "samples per coefficient $n/p$", "probability of a wrong label", "sign labels", yscale="log")
    q = np.linspace(0.002, 0.998, 150)
    cases = [
        (r"$|z|$, Gaussian", Channel("abs"), Prior("gaussian")),
        (r"sign, $\pm1$", Channel("sign"), Prior("rademacher")),
        (r"$\max(z,0)$, Gaussian", Channel("relu"), Prior("gaussian")),
    ]
    for index, (name, channel, prior) in enumerate(cases):
        alpha = [precision_of(prior, float(x)) / information(channel, float(x)) for x in q]
        theory_line(right, alpha, q, index, name)
    title = "all fixed points (hard phase: a line turns back)"
    finish(right, "samples per coefficient $n/p$", "squared overlap $q$", title, xlim=(0, 2.2))
    return figure


def _samples_per_feature(samples: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Return the parameters of a law for a number of samples per feature."""
    return {"ratio": 1 / samples}


# -- logistic -----------------------------------------------------------------------------------------------------


def logistic_calibration(quick: bool = True) -> Figure:
    """Bias factor and calibration slope against p/n, and the probability that no fit exists."""
    figure, (left, right) = new_figure(columns=2)
    law = LogisticCalibration(intercept=-1.0, signal=1.5)
    threshold = law.existence_threshold()
    lines = np.concatenate([np.geomspace(0.01, 0.5 * threshold, 24), np.linspace(0.5, 0.8, 15)[1:] * threshold])
    names = {"bias_factor": r"bias factor $\alpha_*$", "calibration_slope": "calibration slope"}
    along(left, law, "ratio", names, lines, (0.02, 0.05, 0.1, 0.16), size=30, seeds=24 if quick else 200)
    tuned, label = lambda ratio: {"ratio": ratio, "ridge": 0.5 * ratio}, r"calibration slope, ridge $\lambda=0.5\,p/n$"
    along(left, law, tuned, "calibration_slope", lines, index=2, label=label, linestyle="--")
    left.axhline(1.0, color="0.5", linewidth=1.0, linestyle=":")
    title = r"$b_0=-1,\ \gamma=1.5$ (points: $p=30$)"
    finish(left, r"predictors per sample $p/n$", "bias factor, slope", title, xscale="log", ylim=(0, 2))
    draws, p = 100 if quick else 1000, 15
    for index, (b0, gamma) in enumerate([(0.0, 0.5), (-1.0, 1.5), (0.0, 3.0)]):
        case = existence(TrueScore(b0, gamma))
        samples = np.arange(20, 91)
        theory_line(right, samples, case.no_fit_probability(p, samples), index, rf"$b_0={b0:g},\ \gamma={gamma:g}$")
        counts = np.array([26, 34, 42, 52, 64])
        shares = np.array([share_without_fit(p, int(n), b0, gamma, draws) for n in counts])
        errors = np.sqrt(np.maximum(shares * (1 - shares), 0.25 / draws) / draws)
        simulation_points(right, counts, shares, errors, index)
    legend_of_styles(right, "law", f"{draws} draws")
    finish(right, "samples $n$", "probability that no fit exists", rf"$p={p}$ predictors and an intercept")
    return figure


# -- margins ------------------------------------------------------------------------------------------------------

SAMPLE_RATIO = 2.0

WIDTHS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)


def max_margin(quick: bool = True) -> Figure:
    """Margin and classification error of the max-margin classifier on ReLU features against width, with n = 2 d."""
    sizes, seeds, widths = ((50, 100), 10, WIDTHS[::2]) if quick else ((200, 400), 40, WIDTHS)
    base = RandomFeaturesMargin(sample_ratio=SAMPLE_RATIO)
    threshold = base.separability_width()
    grid = np.concatenate([[1.0001 * threshold], np.geomspace(1.01 * threshold, 9.0, 40)])
    figure, panels = new_figure(columns=2)
    names = {"classification_error": r"classification error $P_{\mathrm{err}}$", "margin": r"margin $\kappa^*$"}
    along(panels, base, "width_ratio", list(names), grid, index=6, label="theory")
    for index, size in enumerate(sizes):
        with single_threaded():
            draws = draws_along(base, "width_ratio", widths, size, seeds)
        for axes, name in zip(panels, names, strict=True):
            # A draw that cannot be separated (rare here) has a margin, 0, but no classifier.
            used = (draws["separable"] > 0) | (name == "margin")
            estimates = [mean_and_error(runs[use]) for runs, use in zip(draws[name].T, used.T, strict=True)]
            mean, error = np.transpose(estimates)
            simulation_points(axes, widths, mean, error, index, f"simulation, $d = {size}$")
    best_line(panels[0], base, "best possible, from the inputs")
    for axes, label in zip(panels, names.values(), strict=True):
        axes.axvline(threshold, color="grey", linewidth=1, linestyle=":")
        finish(axes, r"neurons per input $\psi_1 = N/d$", label, "ReLU, $n = 2d$, sign labels", xscale="linear")
    panels[1].annotate(
        f"separable from {threshold:.3f}", (threshold, 0.5), rotation=90, color="grey", fontsize=10, ha="right"
    )
    return figure


def separability(quick: bool = True) -> Figure:
    """Share of draws that can be separated against width, which tends to a step as the size grows, and the threshold against n/d."""
    sizes, draws = ((20, 40, 80), (300, 150, 60)) if quick else ((50, 100, 200), (200, 200, 200))
    base = RandomFeaturesMargin(sample_ratio=SAMPLE_RATIO)
    threshold = base.separability_width()
    figure, (left, right) = new_figure(columns=2)
    widths = np.linspace(0.45, 1.15, 8 if quick else 15)
    with single_threaded():
        for index, (size, seeds) in enumerate(zip(sizes, draws, strict=True)):
            shares = np.array([np.mean([_separable(base, w, size, seed) for seed in range(seeds)]) for w in widths])
            errors = np.sqrt(np.maximum(shares * (1 - shares), 1 / seeds) / seeds)
            label = f"$d = {size}$, {seeds} draws"
            simulation_points(left, widths, shares, errors, index, label, linestyle="-", linewidth=0.8)
    left.axvline(threshold, color="black", linewidth=2, label=rf"$d\to\infty$: a step at {threshold:.3f}")
    title = "steeper for larger $d$; ReLU, $n = 2d$, sign labels"
    finish(left, r"neurons per input $\psi_1 = N/d$", "share of separable draws", title)
    samples = np.geomspace(0.1, 20, 24 if quick else 40)
    links = (("sign", 1.0, "sign"), ("logit", 3.0, "logit, $b = 3$"), ("flip", 0.2, "20% wrong labels"))
    for index, (link, strength, label) in enumerate(links):
        law = RandomFeaturesMargin(link=link, link_strength=strength)
        curve = [law.replace(sample_ratio=float(ratio)).separability_width() for ratio in samples]
        theory_line(right, samples, curve, index, label)
    theory_line(right, samples, samples / 2, 6, r"coin flips: $N = n/2$", linestyle=":")
    x_label, y_label = r"samples per input $\psi_2 = n/d$", r"least separating $\psi_1$"
    finish(right, x_label, y_label, "ReLU: separable above the line", xscale="log", yscale="log")
    return figure


def _separable(base: RandomFeaturesMargin, width: float, size: int, seed: int) -> bool:
    law = base.replace(width_ratio=float(width))
    data = LabelledFeatures(law, law.draw(size, seed))
    return hard_margin(data.y[:, None] * data.features).separable


def convex_losses(quick: bool = True) -> Figure:
    """Classification error against the ridge penalty for four losses, and the largest margin that two of them tend to."""
    size, seeds = (100, 20) if quick else (200, 40)
    figure, (axes,) = new_figure(width=7.4)
    few, grid = np.geomspace(1e-4, 1.0, 5), np.concatenate([[1e-6, 1e-5], np.geomspace(1e-4, 10, 43)])
    case = dict(
        link="probit", link_strength=2.0, activation="tanh"
    )  # centred, so that no intercept increases the finite-size effects
    for index, loss in enumerate(("square", "logistic", "hinge", "squared_hinge")):
        law = ConvexLoss(loss=loss, **case)
        along(axes, law, "ridge", "classification_error", grid, index=index, label=loss.replace("_", " "))
        draws = range(1000 * index, 1000 * index + seeds)  # every loss has its own draws, so that the losses are independent
        with single_threaded():
            runs = draws_along(law, "ridge", few, size, draws)["classification_error"]
        simulation_points(axes, few * 1.06 ** (index - 1.5), *mean_and_error(runs), index)
    limit = float(RandomFeaturesMargin(width_ratio=1.5, **case).theory()["classification_error"])
    axes.axhline(limit, color="black", linewidth=1, linestyle="--", label="largest margin")
    best_line(axes, law, "best possible, from the inputs")
    title = rf"tanh, $\psi_1 = 1.5$, $\psi_2 = 2$, probit labels, $d = {size}$"
    finish(axes, title=title, xscale="log", ylim=(0.25, 0.42))
    return figure


# -- classes ------------------------------------------------------------------------------------------------------


def perceptron(quick: bool = True) -> Figure:
    """Mistakes of the perceptron and their bound against the number of features per sample, and the margin in the bound."""
    figure, (left, right) = new_figure(columns=2)
    ratio, few = np.geomspace(0.6, 8, 80), (0.7, 1.0, 1.5, 2.5, 5.0)
    size, seeds = (100, 6) if quick else (200, 40)
    limit = predictions_along(Perceptron(), "ratio", ratio)
    theory_line(left, ratio, limit["mistake_bound"], 2, r"limit $1/\kappa^2$")
    draws = draws_along(Perceptron(), "ratio", few, size, seeds)
    counts = {
        r"bound $(R/\kappa)^2/p$": draws["mistake_bound"],
        "mistakes / $p$": draws["mistakes"],
        r"$1/\kappa^2$": draws["margin"] ** -2.0,  # without the factor R^2 / p, which tends to 1 slowly
    }
    for index, (label, runs) in enumerate(counts.items()):
        simulation_points(left, few, *mean_and_error(runs), index, f"{label}, $p={size}$")
    finish(
        left, "features per sample $p/n$", "number / dimension $p$", "labels by tossing coins", xscale="log", yscale="log"
    )
    for index, (name, label) in enumerate((("margin", r"margin $\kappa$"), ("support_fraction", r"support $n_{SV}/n$"))):
        theory_line(right, ratio, limit[name], index, label)
        simulation_points(right, few, *mean_and_error(draws[name]), index)
    finish(right, "features per sample $p/n$", "margin, share of support vectors", f"points: $p={size}$", xscale="log")
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "best-possible": best_possible,
    "logistic-calibration": logistic_calibration,
    "max-margin": max_margin,
    "separability": separability,
    "convex-losses": convex_losses,
    "perceptron": perceptron,
}

ITEMS = {
    "max-margin": ("T-7",),
    "perceptron": ("L-1",),
}
"""Items of the lecture notes that the figures cover."""
