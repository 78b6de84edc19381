"""Figures of least squares in high dimension: double descent, ridge paths, the best penalty, early stopping (claims J8, T9)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from limitlab.laws.regression.early_stopping import EarlyStopping
from limitlab.laws.regression.linear_model import LinearModel
from limitlab.laws.regression.ridge import Ridge
from limitlab.plotting.style import COLOURS, finish, new_figure, reading_key, simulation_points, theory_line
from limitlab.show.figures.best_possible import best_line

Array = NDArray[np.float64]

GROUPS: dict[str, tuple[float, ...]] = dict(
    eigenvalues=(0.2, 1.0, 3.0), weights=(0.3, 0.4, 0.3), signal_energy=(0.5, 1.0, 0.2)
)
ALIGNED: dict[str, tuple[float, ...]] = dict(eigenvalues=(1.0, 20.0), weights=(0.95, 0.05), signal_energy=(0.0076, 1.0))
"""Few strong directions that carry the signal: the case in which the best penalty is negative."""


def ridge_double_descent(quick: bool = True) -> Figure:
    """Excess risk of the least-norm solution against p/n: a peak at p = n, then a second descent."""
    samples, seeds = (100, 12) if quick else (300, 40)
    figure, (left, right) = new_figure(columns=2)
    under, over = 1 - np.geomspace(0.98, 1e-3, 300), 1 + np.geomspace(1e-3, 19, 300)
    few = np.array([0.1, 0.3, 0.5, 0.7, 0.85, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0])
    for index, power in enumerate((1.0, 4.0, 9.0, 25.0)):
        law = Ridge(ridge=0.0, noise=1.0, signal_energy=(power,))
        for label, ratios in ((f"$|\\beta|^2/\\tau^2 = {power:g}$", under), (None, over)):
            theory_line(left, ratios, law.evaluate(ratio=ratios)["excess_risk"], index, label)
        simulation_points(left, few, *_over_ratios(law, few, samples, seeds, "excess_risk"), index)
        best_line(left, law, "best possible" if index == 3 else "", less=1.0, ratio=np.geomspace(0.02, 20, 60))
    left.axvline(1, color="grey", linewidth=1, linestyle=":")
    reading_key(left, r"limit $n\to\infty$", f"simulated, $n = {samples}$")
    finish(
        left, r"features per sample $\gamma = p/n$", r"excess risk $R/\tau^2$", "least-norm solution",
        xscale="log", yscale="log", ylim=(0.05, 400),
    )  # fmt: skip
    law = Ridge(ridge=0.0, noise=1.0, signal_energy=(4.0,))
    for index, name in enumerate(("bias", "variance")):
        for label, ratios in ((name, under), (None, over)):
            theory_line(right, ratios, law.evaluate(ratio=ratios)[name], index, label)
        simulation_points(right, few, *_over_ratios(law, few, samples, seeds, name), index)
    right.axvline(1, color="grey", linewidth=1, linestyle=":")
    reading_key(right, r"limit $n\to\infty$", f"simulated, $n = {samples}$")
    finish(
        right, r"features per sample $\gamma = p/n$", r"squared error over $\tau^2$", r"$|\beta|^2/\tau^2 = 4$: the two parts",
        xscale="log", ylim=(-0.3, 8),
    )  # fmt: skip
    return figure


def ridge_path(quick: bool = True) -> Figure:
    """Train, test and cross-validated error along the penalty, with correlated features: theory and one factorisation per draw."""
    size, seeds = (150, 12) if quick else (450, 40)
    figure, panels = new_figure(columns=2)
    grid, few = np.geomspace(1e-3, 1e2, 300), np.geomspace(1e-3, 1e2, 11)
    for axes, ratio in zip(panels, (0.75, 1.5), strict=True):
        law = Ridge(ratio=ratio, noise=0.5, **GROUPS)
        values, runs = law.evaluate(ridge=grid), [law.experiment(size, seed, ridge=few) for seed in range(seeds)]
        names = (("test_error", "test"), ("train_error", "train"), ("bias", "bias"), ("variance", "variance"))
        for index, (name, label) in enumerate(names):
            theory_line(axes, grid, values[name], index, label)
            simulation_points(axes, few, *_over_seeds([run[name] for run in runs]), index)
        reading_key(axes, None, f"simulated, $p = {size}$")
        axes.axvline(law.optimal_ridge(), color="grey", linewidth=1, linestyle="--", label=r"best $\lambda$")
        finish(
            axes,
            r"penalty $\lambda$",
            "squared error",
            rf"three groups of features, $p/n = {ratio:g}$",
            xscale="log",
            ylim=(-0.05, 2.9),
        )
    return figure


def optimal_ridge(quick: bool = True) -> Figure:
    """The best penalty removes the peak; where strong directions carry the signal, it is negative."""
    size, seeds = (800, 12) if quick else (1600, 30)
    figure, (left, right) = new_figure(columns=2)
    ratios = np.geomspace(0.1, 10, 401)
    base = Ridge(noise=0.5)
    for index, ridge in enumerate((0.0, 0.01, 0.1)):
        theory_line(left, ratios, base.evaluate(ratio=ratios, ridge=ridge)["test_error"], index, rf"$\lambda = {ridge:g}$")
    best = base.evaluate(ratio=ratios, ridge=ratios * base.noise**2)["test_error"]
    some = np.array([0.2, 0.5, 0.8, 1.25, 2.0, 5.0])
    for index, ridge in ((1, 0.01), (2, 0.1)):
        simulation_points(left, some, *_over_ratios(base.replace(ridge=ridge), some, 150, seeds, "test_error"), index)
    reading_key(left, None, "simulated, $n = 150$")
    theory_line(left, ratios, best, 6, r"best $\lambda = \gamma\tau^2/|\beta|^2$", linestyle="--")
    finish(
        left, r"features per sample $\gamma = p/n$", "test error", r"isotropic, $\tau = 0.5$", xscale="log", ylim=(0.2, 3)
    )
    law = Ridge(ratio=4.0, ridge=0.0, noise=0.1, **ALIGNED)
    limit, optimum = law.negative_ridge_limit(), law.optimal_ridge()
    grid, few = np.linspace(0.985 * limit, 1.2, 400), np.linspace(-0.8, 1.0, 7)
    theory_line(right, grid, law.evaluate(ridge=grid)["test_error"], 0, "theory")
    runs = [law.experiment(size, seed, ridge=few)["test_error"] for seed in range(seeds)]
    simulation_points(right, few, *_over_seeds(runs), 0, f"simulation, $p = {size}$")
    right.axvline(limit, color="grey", linewidth=1.5, linestyle=":", label=rf"least allowed $\lambda = {limit:.2f}$")
    right.axvline(optimum, color=COLOURS[1], linewidth=1.5, linestyle="--", label=rf"best $\lambda = {optimum:.3f}$")
    finish(right, r"penalty $\lambda$", "test error", r"5% strong directions, $p/n = 4$", ylim=(0.35, 1.25))
    return figure


def early_stopping(quick: bool = True) -> Figure:
    """Errors along gradient flow, and the best stopping time against the best penalty: never better, nearly as good."""
    size, seeds = (200, 12) if quick else (600, 40)
    figure, (left, right) = new_figure(columns=2)
    times, few = np.geomspace(0.05, 1e3, 160), np.geomspace(0.1, 500, 9)
    law = EarlyStopping(ratio=1.5, noise=0.5, times=tuple(times), **GROUPS)
    values = law.evaluate()
    runs = [law.replace(times=tuple(few)).experiment(size, seed) for seed in range(seeds)]
    for index, (name, label) in enumerate((("test_error", "test"), ("train_error", "train"), ("variance", "variance"))):
        theory_line(left, times, values[name], index, label)
        simulation_points(left, few, *_over_seeds([run[name] for run in runs]), index)
    left.axvline(law.best_time(), color="grey", linewidth=1, linestyle="--", label="best time")
    finish(left, "time $t$", "squared error", f"three groups, $p/n = 1.5$, $p = {size}$", xscale="log", ylim=(-0.05, 2.4))
    for index, (ratio, power, noise) in enumerate(((0.5, 1.0, 0.5**0.5), (2.0, 4.0, 1.0), (1.3, 1.0, 0.2**0.5))):
        flow = EarlyStopping(ratio=ratio, noise=noise, signal_energy=(power,), times=tuple(times))
        penalty = Ridge(ratio=ratio, noise=noise, signal_energy=(power,))
        best = float(penalty.replace(ridge=penalty.optimal_ridge()).theory()["excess_risk"])
        label = rf"$\gamma = {ratio:g}$, $|\beta|^2/\tau^2 = {power / noise**2:g}$"
        theory_line(right, times, np.asarray(flow.evaluate()["excess_risk"]) / best, index, label)
        path = np.asarray(penalty.evaluate(ridge=1 / times)["excess_risk"]) / best
        theory_line(right, times, path, index, linestyle=":")
    right.axhline(1, color="grey", linewidth=1)
    title = r"flow (lines) and ridge with $\lambda = 1/t$ (dotted)"
    finish(right, "time $t$", "excess risk / best over ridge", title, xscale="log", ylim=(0.95, 1.6))
    return figure


def _over_ratios(law: LinearModel, ratios: Array, samples: int, seeds: int, name: str) -> tuple[Array, Array]:
    """Mean and standard error of one observable over draws, at several ratios with the same number of samples."""
    laws = [(law.replace(ratio=float(ratio)), round(ratio * samples)) for ratio in ratios]
    return _over_seeds(
        [[float(np.asarray(each.experiment(size, seed)[name])) for each, size in laws] for seed in range(seeds)]
    )


def _over_seeds(runs: Sequence[ArrayLike]) -> tuple[Array, Array]:
    table = np.asarray(runs, dtype=float)
    return table.mean(axis=0), table.std(axis=0, ddof=1) / np.sqrt(len(table))


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "ridge-double-descent": ridge_double_descent,
    "ridge-path": ridge_path,
    "optimal-ridge": optimal_ridge,
    "early-stopping": early_stopping,
}
