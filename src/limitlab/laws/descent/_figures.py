"""Figures of the implicit bias of descent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from limitlab._core.draws import mean_and_error
from limitlab.laws.descent._claims import STARTS, separable_data_sets
from limitlab.laws.descent._separable_flow import TAILS, LeastSquares, SeparableFlow
from limitlab.laws.descent.least_squares import LeastSquaresDescent
from limitlab.laws.descent.logistic import LogisticDescent
from limitlab.laws.landscapes.minima import digits_minima
from limitlab.plotting.along import along
from limitlab.plotting.style import COLOURS, MARKERS, finish, legend_of_styles, new_figure, simulation_points, theory_line

# -- margins ------------------------------------------------------------------------------------------------------


def least_squares_descent(quick: bool = True) -> Figure:
    """Distance of gradient descent to the interpolant of least norm against the number of steps."""
    size, seeds = (200, 8) if quick else (800, 15)
    figure, (axes,) = new_figure()
    steps, few = np.arange(0, 61), np.arange(0, 61, 10)
    for index, ratio in enumerate((2.0, 4.0, 16.0)):
        law = LeastSquaresDescent(ratio=ratio)
        along(axes, law, "steps", "distance", steps, index=index, label=rf"$p/n = {ratio:g}$")
        theory_line(axes, steps, float(law.evaluate()["best_rate"]) ** steps, index, linestyle=":", linewidth=1)
        runs = [[_after(law.random_problem(law.draw(size, seed)), int(k)) for k in few] for seed in range(seeds)]
        simulation_points(axes, few, *mean_and_error(runs), index)
    title = f"least squares, $p = {size}$ (dotted: bound)"
    finish(axes, "steps $k$", r"$|\theta_k - \theta_\infty| / |\theta_\infty|$", title, yscale="log", ylim=(1e-12, 2))
    return figure


def _after(problem: LeastSquares, steps: int) -> float:
    end = problem.limit()
    return float(np.linalg.norm(problem.descend(steps) - end) / np.linalg.norm(end))


def direction_gap(quick: bool = True) -> Figure:
    """Distance of the direction of w(t) to the direction of the largest margin, against log t, and its product with log t."""
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


# -- residual -----------------------------------------------------------------------------------------------------


def residual(quick: bool = True) -> Figure:
    """Residual of w(t) in the span of the support vectors, which falls like a power of t, and across it, where it converges."""
    figure, (left, right) = new_figure(columns=2)
    times = np.linspace(5, 100, 60 if quick else 200)
    for index, (X, y) in zip(range(4), separable_data_sets(), strict=False):
        law = LogisticDescent.from_data(X, y)
        residuals = law.residual(times)
        inside = np.array([law.flow.in_span(vector) for vector in residuals])
        size, across = np.linalg.norm(inside, axis=1), np.linalg.norm(residuals - inside, axis=1)
        seen = size > 1e-9
        options: dict[str, Any] = dict(color=COLOURS[index], marker=MARKERS[index])
        options |= dict(markevery=6, linestyle="", fillstyle="none")
        left.plot(times[seen], size[seen], label=rf"$|S|={law.support.size}$, $\varrho={law.residual_rate:.3f}$", **options)
        last = np.flatnonzero(seen)[-1]
        line = size[last] * np.exp(-law.residual_rate * (times - times[last]))
        theory_line(left, times[times > 30 * seen.mean()], line[times > 30 * seen.mean()], index, linewidth=1.2)
        right.plot(times, across, **options)
    title = r"lines: $t^{-\varrho}$ through the last point"
    finish(left, r"$\log t$", r"$|P_S(w-\hat w\log t-\tilde w)|$", title, yscale="log", ylim=(1e-9, 30))
    finish(right, r"$\log t$", r"part across the span of $S$", "four data sets, $n=9$, $p=6$")
    return figure


# -- minima -------------------------------------------------------------------------------------------------------


def global_minima(quick: bool = True) -> Figure:
    """Excess risk of the interpolant that descent ends at, and test errors of a network from four starts."""
    figure, (left, right) = new_figure(columns=2)
    start, few, seeds, size = np.linspace(0, 3, 60), (0.0, 0.75, 1.5, 2.25, 3.0), 6 if quick else 40, 120
    laws = {f"$p/n={ratio:g}$": LeastSquaresDescent(ratio=ratio, noise=0.5, steps=0) for ratio in (1.5, 3.0)}
    along(left, laws, "start_distance", "excess_risk", start, few, size=size, seeds=seeds)
    labels = (r"start distance $D=|\theta_0-\beta|$", "excess risk of the interpolant")
    finish(left, *labels, f"least squares (points: $p={size}$)")
    runs = [digits_minima(seed=seed) for seed in range(3 if quick else 10)]
    names = ("Gaussian", "fitted to\nrandom labels", "Gaussian,\nfour times larger", "fitted to wrong\nlabels of others")
    for place, name in enumerate(STARTS):
        errors = np.array([getattr(run, name) for run in runs])
        simulation_points(right, [place], *mean_and_error(errors[:, None]), place)
        right.plot(np.full(len(runs), place + 0.18), errors, ".", color=COLOURS[place], alpha=0.6)
    legend_of_styles(right, None, "mean over runs")
    right.plot([], [], ".", color="0.4", label="single runs")
    right.set_xticks(range(4), names, fontsize=11)
    right.set_xlim(-0.5, 3.6)
    finish(right, "start", "share of errors on test images", "digits, train loss $<10^{-11}$ in every run", ylim=(0, 0.7))
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "least-squares-descent": least_squares_descent,
    "direction-gap": direction_gap,
    "residual": residual,
    "global-minima": global_minima,
}

ITEMS = {
    "least-squares-descent": ("J-1",),
    "direction-gap": ("J-3",),
    "residual": ("J-4",),
    "global-minima": ("L-8", "L-12"),
}
"""Items of the lecture notes that the figures cover."""
