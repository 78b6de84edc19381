"""Figures of margins and implicit bias (claims T8, J1, J2)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from limitlab._core.blas import single_threaded
from limitlab.laws.classification.convex_loss import ConvexLoss
from limitlab.laws.classification.random_features_margin import LabelledFeatures, RandomFeaturesMargin
from limitlab.laws.descent.least_squares import LeastSquaresDescent
from limitlab.laws.descent.separable_flow import TAILS, LeastSquares, SeparableFlow
from limitlab.numerics.margin import hard_margin
from limitlab.plotting.style import COLOURS, finish, new_figure, simulation_points, theory_line
from limitlab.show.figures.best_possible import best_line

Array = NDArray[np.float64]

SAMPLE_RATIO = 2.0
WIDTHS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)


def max_margin(quick: bool = True) -> Figure:
    """Margin and classification error of the max-margin classifier on ReLU features against width, with n = 2 d."""
    sizes, seeds, widths = ((50, 100), 10, WIDTHS[::2]) if quick else ((200, 400), 40, WIDTHS)
    base = RandomFeaturesMargin(sample_ratio=SAMPLE_RATIO)
    threshold = base.separability_width()
    grid = np.concatenate([[1.0001 * threshold], np.geomspace(1.01 * threshold, 9.0, 40)])
    limits = [base.replace(width_ratio=float(width)).theory() for width in grid]
    figure, panels = new_figure(columns=2)
    names = (("classification_error", r"classification error $P_{\mathrm{err}}$"), ("margin", r"margin $\kappa^*$"))
    for axes, (name, _) in zip(panels, names, strict=True):
        theory_line(axes, grid, [float(limit[name]) for limit in limits], 6, "theory")
    for index, size in enumerate(sizes):
        with single_threaded():
            runs = [base.replace(width_ratio=width).simulate_batch(size, range(seeds)) for width in widths]
        for axes, (name, _) in zip(panels, names, strict=True):
            # A draw that cannot be separated (rare here) has a margin, 0, but no classifier.
            tables = [run[name].values[(run.separable.values > 0) | (name == "margin")] for run in runs]
            means, errors = ([f(t) for t in tables] for f in (np.mean, lambda t: np.std(t, ddof=1) / np.sqrt(len(t))))
            simulation_points(axes, widths, means, errors, index, f"simulation, $d = {size}$")
    best_line(panels[0], base, "best possible, from the inputs")
    for axes, (_, label) in zip(panels, names, strict=True):
        axes.axvline(threshold, color="grey", linewidth=1, linestyle=":")
        finish(axes, r"neurons per input $\psi_1 = N/d$", label, "ReLU, $n = 2d$, sign labels")
    panels[1].annotate(
        f"separable from {threshold:.3f}", (threshold, 0.5), rotation=90, color="grey", fontsize=10, ha="right"
    )
    return figure


def separability(quick: bool = True) -> Figure:
    """Share of draws that can be separated, against width: a step that sharpens with size; and the threshold against n/d."""
    sizes, draws = ((20, 40, 80), (300, 150, 60)) if quick else ((50, 100, 200), (200, 200, 200))
    base = RandomFeaturesMargin(sample_ratio=SAMPLE_RATIO)
    threshold = base.separability_width()
    figure, (left, right) = new_figure(columns=2)
    widths = np.linspace(0.45, 1.15, 8 if quick else 15)
    with single_threaded():
        for index, (size, seeds) in enumerate(zip(sizes, draws, strict=True)):
            shares = np.array([np.mean([_separable(base, w, size, seed) for seed in range(seeds)]) for w in widths])
            errors = np.sqrt(np.maximum(shares * (1 - shares), 1 / seeds) / seeds)
            simulation_points(
                left, widths, shares, errors, index, f"$d = {size}$, {seeds} draws", linestyle="-", linewidth=0.8
            )
    left.axvline(threshold, color="black", linewidth=2, label=rf"$d\to\infty$: a step at {threshold:.3f}")
    finish(
        left,
        r"neurons per input $\psi_1 = N/d$",
        "share of separable draws",
        "the step sharpens with $d$; ReLU, $n = 2d$, sign labels",
    )
    samples = np.geomspace(0.1, 20, 24 if quick else 40)
    for index, (link, strength, label) in enumerate(
        (("sign", 1.0, "sign"), ("logit", 3.0, "logit, $b = 3$"), ("flip", 0.2, "20% wrong labels"))
    ):
        law = RandomFeaturesMargin(link=link, link_strength=strength)
        curve = [law.replace(sample_ratio=float(ratio)).separability_width() for ratio in samples]
        theory_line(right, samples, curve, index, label)
    theory_line(right, samples, samples / 2, 6, r"coin flips: $N = n/2$", linestyle=":")
    finish(
        right, r"samples per input $\psi_2 = n/d$", r"least separating $\psi_1$", "ReLU: separable above the line",
        xscale="log", yscale="log",
    )  # fmt: skip
    return figure


def _separable(base: RandomFeaturesMargin, width: float, size: int, seed: int) -> bool:
    law = base.replace(width_ratio=float(width))
    data = LabelledFeatures(law, law.draw(size, seed))
    return hard_margin(data.y[:, None] * data.features).separable


def convex_losses(quick: bool = True) -> Figure:
    """Classification error against the ridge penalty for four losses, and the largest margin that two of them tend to."""
    size, seeds = (100, 20) if quick else (200, 40)
    figure, (axes,) = new_figure(width=7.4)
    few = np.geomspace(1e-4, 1.0, 5)
    grid = np.concatenate([[1e-6, 1e-5], np.geomspace(1e-4, 10, 43)])
    case = dict(link="probit", link_strength=2.0, activation="tanh")  # centred: no intercept blurs the small sizes
    for index, loss in enumerate(("square", "logistic", "hinge", "squared_hinge")):
        law = ConvexLoss(loss=loss, **case)
        curve = [float(law.replace(ridge=float(ridge)).theory()["classification_error"]) for ridge in grid]
        theory_line(axes, grid, curve, index, loss.replace("_", " "))
        draws = range(1000 * index, 1000 * index + seeds)  # one path of draws per loss, so that losses are independent
        with single_threaded():
            runs = [law.replace(ridge=float(r)).simulate_batch(size, draws)["classification_error"] for r in few]
        means = [float(run.mean()) for run in runs]
        errors = [float(run.std(ddof=1)) / np.sqrt(seeds) for run in runs]
        simulation_points(axes, few * 1.06 ** (index - 1.5), means, errors, index)
    limit = float(RandomFeaturesMargin(width_ratio=1.5, **case).theory()["classification_error"])
    axes.axhline(limit, color="black", linewidth=1, linestyle="--", label="largest margin")
    best_line(axes, law, "best possible, from the inputs")
    title = rf"tanh, $\psi_1 = 1.5$, $\psi_2 = 2$, probit labels, $d = {size}$"
    finish(
        axes, r"ridge penalty $\lambda$", r"classification error $P_{\mathrm{err}}$", title, xscale="log", ylim=(0.25, 0.42)
    )
    return figure


def least_squares_descent(quick: bool = True) -> Figure:
    """Distance of gradient descent to the interpolant of least norm against the number of steps."""
    size, seeds = (200, 8) if quick else (800, 15)
    figure, (axes,) = new_figure()
    steps, few = np.arange(0, 61), np.arange(0, 61, 10)
    for index, ratio in enumerate((2.0, 4.0, 16.0)):
        law = LeastSquaresDescent(ratio=ratio)
        theory_line(axes, steps, law.evaluate(steps=steps)["distance"], index, rf"$p/n = {ratio:g}$")
        rate = float(law.evaluate()["best_rate"])
        theory_line(axes, steps, rate**steps, index, linestyle=":", linewidth=1)
        runs = np.array([[_after(law.random_problem(law.draw(size, seed)), int(k)) for k in few] for seed in range(seeds)])
        simulation_points(axes, few, runs.mean(axis=0), runs.std(axis=0, ddof=1) / np.sqrt(seeds), index)
    finish(
        axes, "steps $k$", r"$|\theta_k - \theta_\infty| / |\theta_\infty|$", f"least squares, $p = {size}$ (dotted: bound)",
        yscale="log", ylim=(1e-12, 2),
    )  # fmt: skip
    return figure


def _after(problem: LeastSquares, steps: int) -> float:
    end = problem.limit()
    return float(np.linalg.norm(problem.descend(steps) - end) / np.linalg.norm(end))


def direction_gap(quick: bool = True) -> Figure:
    """Distance of the direction of w(t) to that of the largest margin against log t, and its product with log t."""
    figure, (left, right) = new_figure(columns=2)
    times = np.geomspace(3, 1e4 if quick else 1e6, 60)
    for index, (n, p) in enumerate(((30, 10), (40, 40), (40, 100))):
        X = np.random.default_rng([n, p]).standard_normal((n, p))
        for loss, style in zip(TAILS, ("-", "--"), strict=True):
            flow = SeparableFlow(np.sign(X[:, :1]) * X, loss)
            gap, constant = flow.direction_gap(times), flow.gap_constant
            label = f"$n = {n}$, $p = {p}$" if loss == "exponential" else None
            theory_line(right, times, gap * times, index, label, linestyle=style)
            right.plot(times[-1] * 1.3, constant, marker="<", color=COLOURS[index], markersize=8)
            if loss == "exponential":
                simulation_points(left, times[::4], gap[::4], None, index, label)
                theory_line(left, times, constant / times, index)
    finish(left, r"$\log t$", "direction gap", r"gradient flow (points) and $C/\log t$ (lines)", xscale="log", yscale="log")
    finish(right, r"$\log t$", r"direction gap $\times \log t$", "exponential (solid), logistic (dashed)", xscale="log")
    right.plot([], [], marker="<", color="grey", linestyle="none", label="limit $C$")
    right.legend(fontsize=11, frameon=False, loc="center right", bbox_to_anchor=(1.0, 0.62))
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "max-margin": max_margin,
    "separability": separability,
    "convex-losses": convex_losses,
    "least-squares-descent": least_squares_descent,
    "direction-gap": direction_gap,
}
