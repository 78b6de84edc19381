"""Figures of regression."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter
from numpy.typing import ArrayLike, NDArray

from limitlab.lab import compare
from limitlab.lab.extrapolated import extrapolated, extrapolated_runs
from limitlab.laws.regression import singular_kernel
from limitlab.laws.regression._claims.kernel_floor import LINEAR, NOISE, REST, feature_learning
from limitlab.laws.regression._holder import cusp
from limitlab.laws.regression._label_chains import shipped_images
from limitlab.laws.regression._random_features_tuning import best_ridge
from limitlab.laws.regression._rough_torus import measured_risk, octave_samples
from limitlab.laws.regression._smoothers import SingularKernelRegressor
from limitlab.laws.regression.distillation import Distillation
from limitlab.laws.regression.early_stopping import EarlyStopping
from limitlab.laws.regression.gaussian_equivalence import COMPARED, GaussianEquivalence
from limitlab.laws.regression.kernel_floor import kernel_floor
from limitlab.laws.regression.linear_model import LinearModel
from limitlab.laws.regression.model_collapse import ModelCollapse
from limitlab.laws.regression.nearest_neighbours import NearestNeighbours
from limitlab.laws.regression.random_features import RandomFeaturesRidge, risk
from limitlab.laws.regression.ridge import Ridge
from limitlab.laws.regression.singular_kernel import SingularKernelSmoother
from limitlab.plotting.style import (
    COLOURS,
    best_line,
    finish,
    mean_and_error,
    new_figure,
    legend_of_styles,
    simulation_points,
    theory_line,
)

# -- local --------------------------------------------------------------------------------------------------------

Array = NDArray[np.float64]


def nearest_neighbours_risk(quick: bool = True) -> Figure:
    """Test error of k nearest neighbours against k: from 2 tau^2 at one neighbour through a minimum to the global mean."""
    seeds, sets = (6, 100) if quick else (20, 400)
    figure, (left, right) = new_figure(columns=2)
    for index, samples in enumerate((30, 300, 3000)):
        law = NearestNeighbours(samples=samples, neighbours=1, dimension=2, noise=0.5)
        k = np.unique(np.round(np.geomspace(1, samples, 200)))
        theory_line(left, k, law.evaluate(neighbours=k)["test_error"], index, f"$n = {samples}$")
        few = np.unique(np.round(np.geomspace(1, samples, 9)))
        mean, error = _over_seeds([law.experiment(sets, seed, neighbours=few)["test_error"] for seed in range(seeds)])
        simulation_points(left, few, mean, error, index)
        best = law.best_neighbours()
        left.axvline(best, color=COLOURS[index], linewidth=0.8, linestyle=":")
    left.axhline(2 * 0.5**2, color="grey", linewidth=1, linestyle="--")
    left.annotate(r"$2\tau^2$", (60, 2 * 0.5**2), xytext=(0, 4), textcoords="offset points", color="grey")
    left.axhline(0.5**2, color="grey", linewidth=1, linestyle="--")
    left.annotate(r"$\tau^2$", (1.1, 0.5**2), xytext=(0, 4), textcoords="offset points", color="grey")
    title = r"$d = 2$, $\beta = 1$; dotted: best $k$; points: simulated"
    finish(left, "neighbours $k$", "test error", title, xscale="log", ylim=(0.22, 0.85), legend=False)
    left.legend(loc="upper center", ncols=3, fontsize=11, framealpha=1, edgecolor="none")

    law = NearestNeighbours(samples=300, neighbours=1, dimension=2, noise=0.5, labels="drawn")
    k, few = np.unique(np.round(np.geomspace(1, 300, 200))), np.array([3.0, 9, 27, 81, 243])
    values, runs = law.evaluate(neighbours=k), [law.experiment(sets, seed, neighbours=few) for seed in range(seeds)]
    names = (("squared_bias", "squared bias"), ("variance", r"variance $\tau^2/k$"), ("excess_risk", "excess risk"))
    for index, (name, label) in enumerate(names):
        theory_line(right, k, values[name], index, label)
        simulation_points(right, few, *_over_seeds([run[name] for run in runs]), index)
    title = "$n = 300$: what the risk is made of"
    finish(right, "neighbours $k$", "squared error", title, xscale="log", yscale="log", legend=False)
    right.legend(loc="center right", fontsize=11, frameon=False)
    return figure


def interpolating_smoother_rate(quick: bool = True) -> Figure:
    """Excess risk of the interpolating smoother against n, at the tip of a cusp and on a function rough everywhere."""
    seeds = 4 if quick else 30
    figure, (left, right) = new_figure(columns=2)
    n = np.geomspace(30, 1e7, 120)
    for index, (dimension, singularity) in enumerate(((1, 0.4), (2, 0.6), (3, 1.2))):
        exponent = float(singular_kernel.rate_exponent(singularity, dimension, 1.0))
        risk = singular_kernel.risk(n, n ** (-1 / (2 + dimension)), singularity, dimension, noise=1.0)["excess_risk"]
        theory_line(left, n, risk, index, f"$d = {dimension}$: slope $-{exponent:.3f}$")
        left.plot(n, 1.5 * risk[-1] * (n / n[-1]) ** -exponent, color=COLOURS[index], linewidth=1, linestyle="--")
        few = np.array([30, 300, 3000, 30_000])
        laws = [
            SingularKernelSmoother(
                samples=m, bandwidth=m ** (-1 / (2 + dimension)), singularity=singularity, dimension=dimension, noise=1.0
            )
            for m in few.tolist()
        ]
        drawn = [[law.experiment(100, seed)["excess_risk"] for law in laws] for seed in range(seeds)]
        simulation_points(left, few, *_over_seeds(drawn), index)
    title = r"tip of a cusp, $\beta = 1$, $h = n^{-1/(2\beta+d)}$; dashed: the slope"
    finish(left, "samples $n$", "excess risk", title, xscale="log", yscale="log")

    cases = ((1, 0.5, 0.3, 4), (1, 0.75, 0.3, 4), (2, 0.5, 0.6, 3))
    for index, (dimension, smoothness, singularity, octaves) in enumerate(cases):
        samples = np.array(octave_samples(500, octaves, dimension, smoothness))
        runs = [
            [measured_risk(m, seed, dimension, smoothness, singularity)["excess_risk"] for m in samples.tolist()]
            for seed in range(seeds)
        ]
        mean, error = _over_seeds(runs)
        exponent = 2 * smoothness / (2 * smoothness + dimension)
        label = rf"$d = {dimension}$, $\beta = {smoothness:g}$: slope $-{exponent:.3f}$"
        simulation_points(right, samples, mean, error, index)
        theory_line(right, samples, mean[-1] * (samples / samples[-1]) ** -exponent, index, label, linestyle="--")
    title = "rough on the whole torus; dashed: the slope"
    finish(right, "samples $n$", "excess risk", title, xscale="log", yscale="log")
    return figure


def interpolating_fit(quick: bool = True) -> Figure:
    """A fit through every noisy label that is close to the truth between them, and the weights that make it possible."""
    samples, noise = (60, 0.4) if quick else (150, 0.4)
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(-1, 1, samples))[:, None]
    y = cusp(x, smoothness=1.0, amplitude=2.0) + noise * rng.standard_normal(samples)
    line = np.unique(np.concatenate([np.linspace(-1, 1, 4001), x.ravel()]))[:, None]
    figure, (left, right) = new_figure(columns=2)
    left.plot(line, cusp(line, smoothness=1.0, amplitude=2.0), color="black", linestyle=":", label="target $2|x|$")
    model = SingularKernelRegressor(bandwidth=0.3, singularity=0.4).fit(x, y)
    theory_line(left, line, model.predict(line), 0, "fit, $a = 0.4$, $h = 0.3$", linewidth=1.2)
    simulation_points(left, x, y, index=1, label="noisy labels", markersize=4)
    gap = np.abs(model.predict(x) - y).max()
    finish(left, "input $x$", "label $y$", rf"a fit through every label (largest residual {gap:g})")

    distance = np.geomspace(1e-3, 1, 200)
    for index, a in enumerate((0.2, 0.4, 0.8)):
        theory_line(right, distance, distance**-a, index, f"$a = {a:g}$")
    title = "the weights that make it possible, $d = 1$"
    finish(right, "distance $|u|$ in units of $h$", "weight $K(u) = |u|^{-a}$", title, xscale="log", yscale="log")
    return figure


def singularity_price(quick: bool = True) -> Figure:
    """What a stronger singularity costs: the sum of squared weights against the expected number of neighbours."""
    seeds, sets = (8, 140) if quick else (30, 1000)
    figure, (axes,) = new_figure()
    expected = np.geomspace(1, 1e5, 100)
    window = 1e-3
    for index, ratio in enumerate((0.2, 0.5, 0.75, 0.9)):
        exponent = float(singular_kernel.variance_exponent(ratio, 1))
        values = singular_kernel.risk(expected / window, window, ratio, 1, noise=1.0)
        word = "$-1$ with a logarithm" if ratio == 0.5 else f"$-{exponent:.2f}$"
        theory_line(axes, expected, values["variance"], index, f"$a/d = {ratio:g}$: slope {word}")
        few = np.array([1, 10, 100, 1000])
        laws = [
            SingularKernelSmoother(samples=round(m / window), bandwidth=window, singularity=ratio, dimension=1, noise=1.0)
            for m in few.tolist()
        ]
        runs = [[law.experiment(sets, seed)["variance"] for law in laws] for seed in range(seeds)]
        simulation_points(axes, few, *_over_seeds(runs), index)
    label = r"variance $/\,\tau^2$"
    finish(
        axes,
        "expected neighbours $n h^d$",
        label,
        r"all of them interpolate; lines: limit, points: simulated",
        xscale="log",
        yscale="log",
    )
    return figure


def _over_seeds(runs: Sequence[Any]) -> tuple[Array, Array]:
    """Mean and standard error over the runs."""
    array = np.array(runs, dtype=float)
    return array.mean(axis=0), array.std(axis=0, ddof=1) / np.sqrt(len(array))


# -- random features ----------------------------------------------------------------------------------------------

RATE = float(RandomFeaturesRidge.rates("excess_risk")[0])

WIDTH_LABEL = r"features per sample $N/n$"


def double_descent(quick: bool = True) -> Figure:
    """Excess risk over the width: a peak at N = n that a ridge removes; at low SNR a fixed ridge makes wide the worst choice."""
    sizes, seeds = ((20, 40), 16) if quick else ((40, 80, 160), 20)
    figure, (left, right) = new_figure(columns=2)
    law, shares = RandomFeaturesRidge(activation="relu", sample_ratio=3.0, noise=0.5), np.geomspace(0.1, 30, 601)
    few = np.array([0.15, 0.3, 0.6, 0.8, 1.0, 1.25, 1.7, 3.0, 6.0])
    ridges = (1e-8, 1e-3, 1e-2, 1e-1)
    names = ("0^+", "10^{-3}", "10^{-2}", "10^{-1}")
    mean, error = _over_widths(law, 3.0 * few, sizes, seeds, np.array(ridges))
    for index, (ridge, name) in enumerate(zip(ridges, names, strict=True)):
        theory_line(left, shares, _excess(law, 3.0 * shares, 0.0 if index == 0 else ridge), index, rf"$\lambda = {name}$")
        kept = (few != 1.0) | (index > 0)  # without a ridge the risk is infinite there
        simulation_points(left, few[kept], mean[kept, index], error[kept, index], index)
    theory_line(left, shares, _excess(law, 3.0 * shares, None), 6, r"best $\lambda$", linestyle="--")
    legend_of_styles(left, None, f"simulated, extrapolated\n($d = {', '.join(map(str, sizes))}$)")
    title = r"ReLU, $n/d = 3$, $F_1^2/\tau^2 = 4$"
    finish(left, WIDTH_LABEL, "excess risk $R$", title, xscale="log", ylim=(0, 3))
    noisy = law.replace(noise=5**0.5)
    for index, ridge in ((2, 1e-2), (3, 1e-1)):
        theory_line(right, shares, _excess(noisy, 3.0 * shares, ridge), index, rf"$\lambda = {names[index]}$")
    theory_line(right, shares, _excess(noisy, 3.0 * shares, None), 6, r"best $\lambda$", linestyle="--")
    mean, error = _over_widths(noisy, 3.0 * few, sizes, seeds, np.array(ridges[2:]))
    for index in (2, 3):
        simulation_points(right, few, mean[:, index - 2], error[:, index - 2], index)
    right.axhline(1, color="grey", linewidth=1.5, linestyle=":", label="predicting zero")
    finish(right, WIDTH_LABEL, "excess risk $R$", r"the same with $F_1^2/\tau^2 = 0.2$", xscale="log", ylim=(0, 6))
    for axes in (left, right):
        _plain_ticks(axes)
    return figure


def ridge_choice(quick: bool = True) -> Figure:
    """Excess risk against the ridge at low and high SNR: wide models want none at high SNR, narrow ones always want one."""
    sizes, seeds = ((20, 40), 24) if quick else ((40, 80, 160), 24)
    figure, panels = new_figure(columns=2)
    grid, few = np.geomspace(1e-5, 1.0, 300), np.geomspace(1e-5, 1.0, 9)
    for axes, snr in zip(panels, (1.0, 20.0), strict=True):
        base = RandomFeaturesRidge(activation="relu", sample_ratio=3.0, signal=snr**0.5, noise=1.0)
        for index, width in enumerate((4.0, 12.0, np.inf)):
            law = base.replace(width_ratio=width)
            name = r"\infty" if np.isinf(width) else f"{width:g}"
            theory_line(axes, grid, np.asarray(law.evaluate(ridge=grid)["excess_risk"]) / snr, index, f"$N/d = {name}$")
            if np.isfinite(width):
                runs = [[law.experiment(size, seed, ridge=few)["excess_risk"] for seed in range(seeds)] for size in sizes]
                found, error = extrapolated_runs(sizes, runs, law.evaluate(ridge=few)["excess_risk"], RATE)
                simulation_points(axes, few, found / snr, error / snr, index)
            best = law.optimal_ridge()
            value = float(law.replace(ridge=best).theory().excess_risk) / snr
            axes.plot(max(best, grid[0]), value, marker="*", markersize=15, color=COLOURS[index], clip_on=False, zorder=5)
        side = "below" if snr < base.replace(width_ratio=np.inf).snr_threshold() else "above"
        title = rf"signal to noise $\rho = {snr:g}$, {side} $\mu_1^2/\mu_*^2 = 2.75$"
        legend_of_styles(axes, None, f"simulated, extrapolated\n($d = {', '.join(map(str, sizes))}$)")
        axes.plot([], [], "*", color="0.4", markersize=12, label=r"best $\lambda$ (at the left edge: 0)")
        finish(axes, r"penalty $\lambda$", "excess risk $R/F_1^2$", title, xscale="log")
    return figure


def error_maps(quick: bool = True) -> Figure:
    """Train and test error over width and samples: the ridge of infinite test error runs along N = n."""
    points = 200 if quick else 600
    figure, panels = new_figure(columns=2)
    ratios = np.geomspace(0.05, 50, points)
    law = RandomFeaturesRidge(activation="relu", ridge=1e-6, noise=0.5)
    values = law.evaluate(width_ratio=ratios[:, None], sample_ratio=ratios)
    for axes, name, limits in zip(panels, ("train_error", "test_error"), ((-4, 0.2), (-0.6, 2.0)), strict=True):
        table = np.log10(np.maximum(np.asarray(values[name]), 1e-300))
        mesh = axes.pcolormesh(ratios, ratios, table, vmin=limits[0], vmax=limits[1], cmap="viridis", rasterized=True)
        bar = figure.colorbar(mesh, ax=axes, extend="both")
        bar.set_label(rf"$\log_{{10}}$ {name.replace('_', ' ')}", fontsize=12)
        axes.plot(ratios, ratios, color="white", linewidth=1, linestyle=":")
        axes.text(0.8, 1.25, "$N = n$", color="white", fontsize=12, rotation=45, ha="center", va="center")
        finish(
            axes, r"samples per dimension $n/d$", r"features per dimension $N/d$",
            rf"{name.replace('_', ' ')}: ReLU, $\lambda = 10^{{-6}}$, $\tau = {law.noise:g}$",
            legend=False, xscale="log", yscale="log",
        )  # fmt: skip
        axes.grid(False)
    return figure


def equivalence(quick: bool = True) -> Figure:
    """Nonlinear and noisy linear features over d: distance of each to the limit, and to each other, falling like 1/d."""
    sizes, seeds = ((20, 40, 80), 40) if quick else ((40, 80, 160, 320), 60)
    figure, panels = new_figure(columns=2)
    reference = np.array([sizes[0], sizes[-1]])
    for axes, (activation, words, width) in zip(panels, (("relu", "ReLU", 4.0), ("tanh", "tanh", 2.0)), strict=True):
        law = GaussianEquivalence(activation=activation, width_ratio=width, sample_ratio=2.0, ridge=1e-3, noise=0.5)
        batches = [law.simulate_batch(size, range(seeds)) for size in sizes]
        for index, name in enumerate(COMPARED):
            limit = float(law.theory()[name])
            values = np.array([batch[f"{name}_gap"].values / limit for batch in batches])  # (sizes, seeds)
            gap, error = np.abs(values.mean(axis=1)), values.std(axis=1, ddof=1) / np.sqrt(seeds)
            clear = gap > 2 * error
            place = np.array(sizes) * 1.03 ** (index - 1.5)
            simulation_points(axes, place[clear], gap[clear], error[clear], index, name.replace("_", " "))
        axes.plot(reference, 3.0 / reference, color="grey", linewidth=1.5, label="slope $-1$")
        finish(
            axes,
            "dimension $d$",
            "|nonlinear − linear| / limit",
            rf"{words} (gaps beyond two errors), $N/d = {width:g}$, $n/d = 2$",
            xscale="log",
            yscale="log",
            ylim=(3e-3, 0.6),
        )
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.xaxis.set_minor_formatter(NullFormatter())
    return figure


def _excess(law: RandomFeaturesRidge, widths: Array, ridge: float | None) -> Array:
    """Excess risk of a law over widths at a ridge, or at the best ridge of each width."""
    mu = law.moments()
    chosen: ArrayLike = (
        ridge if ridge is not None else best_ridge(widths, law.sample_ratio, mu.linear, mu.nonlinear, law.signal_to_noise())
    )
    values = risk(widths, law.sample_ratio, chosen, mu.linear, mu.nonlinear, law.signal, law.nonlinear_signal, law.noise)
    return values["excess_risk"]


def _over_widths(
    law: RandomFeaturesRidge, widths: Array, sizes: Sequence[int], seeds: int, ridges: Array
) -> tuple[Array, Array]:
    """Excess risks extrapolated to infinite size and their errors, each of shape (widths, ridges)."""
    found = []
    for one in (law.replace(width_ratio=float(width)) for width in widths):
        runs = [[one.experiment(size, seed, ridge=ridges)["excess_risk"] for seed in range(seeds)] for size in sizes]
        limits = [one.realised(size).evaluate(ridge=ridges)["excess_risk"] for size in sizes]
        found.append(extrapolated_runs(sizes, runs, limits, RATE))
    value, error = (np.array(part) for part in zip(*found, strict=True))
    return value, error


def _plain_ticks(axes: Axes) -> None:
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


# -- regression ---------------------------------------------------------------------------------------------------

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
    legend_of_styles(left, r"limit $n\to\infty$", f"simulated, $n = {samples}$")
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
    legend_of_styles(right, r"limit $n\to\infty$", f"simulated, $n = {samples}$")
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
            simulation_points(axes, few, *_over_seeds_regression([run[name] for run in runs]), index)
        legend_of_styles(axes, None, f"simulated, $p = {size}$")
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
    legend_of_styles(left, None, "simulated, $n = 150$")
    theory_line(left, ratios, best, 6, r"best $\lambda = \gamma\tau^2/|\beta|^2$", linestyle="--")
    finish(
        left, r"features per sample $\gamma = p/n$", "test error", r"isotropic, $\tau = 0.5$", xscale="log", ylim=(0.2, 3)
    )
    law = Ridge(ratio=4.0, ridge=0.0, noise=0.1, **ALIGNED)
    limit, optimum = law.negative_ridge_limit(), law.optimal_ridge()
    grid, few = np.linspace(0.985 * limit, 1.2, 400), np.linspace(-0.8, 1.0, 7)
    theory_line(right, grid, law.evaluate(ridge=grid)["test_error"], 0, "theory")
    runs = [law.experiment(size, seed, ridge=few)["test_error"] for seed in range(seeds)]
    simulation_points(right, few, *_over_seeds_regression(runs), 0, f"simulation, $p = {size}$")
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
        simulation_points(left, few, *_over_seeds_regression([run[name] for run in runs]), index)
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
    return _over_seeds_regression(
        [[float(np.asarray(each.experiment(size, seed)[name])) for each, size in laws] for seed in range(seeds)]
    )


def _over_seeds_regression(runs: Sequence[ArrayLike]) -> tuple[Array, Array]:
    table = np.asarray(runs, dtype=float)
    return table.mean(axis=0), table.std(axis=0, ddof=1) / np.sqrt(len(table))


# -- synthetic ----------------------------------------------------------------------------------------------------

GROUPS_SYNTHETIC: dict[str, tuple[float, ...]] = dict(
    eigenvalues=(4.0, 1.0, 0.2), weights=(0.2, 0.3, 0.5), signal_energy=(0.5, 0.3, 0.2)
)


def model_collapse(quick: bool = True) -> Figure:
    """Excess risk along a chain of models, and the critical share of real labels."""
    figure, (left, right) = new_figure(columns=2)
    size, seeds = (100, 20) if quick else (200, 60)
    lines = tuple(range(1, 11))
    base = ModelCollapse(ratio=0.8, ridge=0.0, noise=0.5, generations=lines)
    cases = [
        ("only the model's labels", base),
        (r"share 0.3 real", base.replace(real_share=0.3)),
        (r"share 0.9 real", base.replace(real_share=0.9)),
        (r"share 0.3 real, $\lambda=0.05$", base.replace(real_share=0.3, ridge=0.05)),
        ("all data kept", base.replace(data="accumulate")),
    ]
    few = (1, 2, 4, 6, 8)
    for index, (label, law) in enumerate(cases):
        theory_line(left, lines, law.theory().excess_risk, index, label)
        runs = law.replace(generations=few).simulate_batch(size, range(seeds)).excess_risk
        simulation_points(left, few, runs.mean("seed"), runs.std("seed", ddof=1) / math.sqrt(seeds), index)
    legend_of_styles(left, "limit", f"simulated, $p={size}$")
    finish(
        left,
        "generation $g$",
        "excess risk $R$",
        r"each trained on the last, $\gamma=0.8,\ \tau=0.5$",
        yscale="log",
        ylim=(0.3, 1e3),
    )
    ratios = np.linspace(0.5, 0.98, 97 if quick else 193)
    for index, ridge in enumerate((0.0, 0.01, 0.03)):
        law = ModelCollapse(ridge=ridge)
        shares = [law.replace(ratio=float(ratio)).critical_share() for ratio in ratios]
        theory_line(right, ratios, shares, index, rf"$\lambda={ridge:g}$")
    finish(
        right, r"features per sample $\gamma$", r"critical share of real labels $\pi_c$", "below the line a chain diverges"
    )
    return figure


def distillation(quick: bool = True) -> Figure:
    """Excess risk of the student against its penalty, beside the teacher's; the gain of mixing with the same inputs."""
    figure, (left, right) = new_figure(columns=2)
    size, seeds = (80, 10) if quick else (160, 60)
    best = Ridge(ratio=0.8, noise=1.0, **GROUPS_SYNTHETIC).optimal_ridge()
    ridges, few = np.geomspace(0.003, 3, 40), np.geomspace(0.01, 1, 4)
    law = Distillation(teacher_ratio=0.8, teacher_ridge=best / 4, noise=1.0, **GROUPS_SYNTHETIC)
    for index, ratio in enumerate((0.05, 0.3, 1.0)):
        student = law.replace(ratio=ratio)
        values = [float(student.replace(ridge=float(ridge)).theory().excess_risk) for ridge in ridges]
        theory_line(left, ridges, values, index, rf"student, $\gamma={ratio:g}$")
        if ratio > 0.1:
            runs = [student.replace(ridge=float(ridge)).simulate_batch(size, range(seeds)).excess_risk for ridge in few]
            errors = [float(run.std(ddof=1)) / math.sqrt(seeds) for run in runs]
            simulation_points(left, few, [float(run.mean()) for run in runs], errors, index)
    left.axhline(float(law.theory().teacher_excess_risk), color="0.3", linestyle="--", linewidth=1.4, label="teacher")
    legend_of_styles(left, None, f"simulated, $p={size}$")
    finish(
        left, r"student's penalty $\lambda$", "excess risk $R$", "a teacher with a quarter of its best penalty", xscale="log"
    )
    mixes, some = np.linspace(-2, 2, 41), np.array([-1.5, -0.5, 0.5, 1.5])
    for index, ridge in enumerate((0.2113, best, 2.026)):
        same = Distillation(ratio=0.8, ridge=ridge, teacher_ridge=ridge, noise=1.0, inputs="same", **GROUPS_SYNTHETIC)
        values = [float(same.replace(mix=float(mix)).theory().excess_risk) for mix in mixes]
        theory_line(right, mixes, values, index, rf"$\lambda=\lambda_t={ridge:.2g}$")
        runs = [same.replace(mix=float(mix)).simulate_batch(size, range(seeds)).excess_risk for mix in some]
        errors = [float(run.std(ddof=1)) / math.sqrt(seeds) for run in runs]
        simulation_points(right, some, [float(run.mean()) for run in runs], errors, index)
    least = float(Ridge(ratio=0.8, ridge=best, noise=1.0, **GROUPS_SYNTHETIC).theory().excess_risk)
    right.axhline(least, color="0.3", linestyle="--", linewidth=1.4, label="best ridge alone")
    legend_of_styles(right, None, f"simulated, $p={size}$")
    finish(
        right,
        r"share $\xi$ of the teacher's labels",
        "excess risk $R$",
        "student and teacher see the same inputs",
        yscale="log",
        ylim=(0.38, 1.9),
    )
    return figure


def chains_on_images(quick: bool = True) -> Figure:
    """Chains of models and students on the shipped images, beside the laws at the images' spectrum."""
    figure, (left, right) = new_figure(columns=2)
    X, y = shipped_images()
    seeds, generations = range(8 if quick else 100), tuple(range(1, 9))
    cases = [
        (r"only the model's labels, $\lambda=10^{-3}$", dict(ridge=1e-3)),
        (r"share 0.3 real, $\lambda=10^{-3}$", dict(ridge=1e-3, real_share=0.3)),
        (r"no noise on the model's labels, $\lambda=10^{-2}$", dict(ridge=1e-2, synthetic_noise=0.0)),
    ]
    for index, (label, given) in enumerate(cases):
        law = ModelCollapse.from_data(X, y, samples=400, generations=generations, **given)
        theory_line(left, generations, law.theory().excess_risk, index, label)
        runs = law.on_table(X, y, seeds).excess_risk
        simulation_points(left, generations, runs.mean("seed"), runs.std("seed", ddof=1) / math.sqrt(len(seeds)), index)
    finish(left, "generation $g$", "excess risk $R$", "8,000 images, 400 per generation")
    left.set_ylim(0, 1.45 * left.get_ylim()[1])
    ridges, few = np.geomspace(3e-4, 0.1, 30), np.geomspace(1e-3, 0.05, 4)
    for index, samples in enumerate((200, 800, 3000)):
        pair = Distillation.from_data(X, y, samples=samples, teacher_samples=200, teacher_ridge=1e-4)
        values = [float(pair.replace(ridge=float(ridge)).theory().excess_risk) for ridge in ridges]
        theory_line(right, ridges, values, index, f"student, $n={samples}$")
        students = [pair.replace(ridge=float(ridge)).on_table(X, y, seeds).excess_risk for ridge in few]
        errors = [float(run.std(ddof=1)) / math.sqrt(len(seeds)) for run in students]
        simulation_points(right, few, [float(run.mean()) for run in students], errors, index)
    taught = float(pair.on_table(X, y, seeds).teacher_excess_risk.mean())
    limit = float(pair.theory().teacher_excess_risk)
    right.axhline(limit, color="0.3", linestyle="--", linewidth=1.4, label=f"teacher, $n=200$ (measured {taught:.2f})")
    finish(
        right,
        r"student's penalty $\lambda$",
        "excess risk $R$",
        r"a teacher with penalty $10^{-4}$",
        xscale="log",
        ylim=(0.08, 0.46),
    )
    return figure


# -- kernel floor -------------------------------------------------------------------------------------------------


def floor(quick: bool = True) -> Figure:
    """Best excess risk of kernels against samples per dimension, and the two-layer law along its path."""
    figure, (left, right) = new_figure(columns=2)
    ratio = np.geomspace(0.5, 100, 100)
    theory_line(left, ratio, kernel_floor(ratio, LINEAR, REST, NOISE), 0, "best kernel")
    left.axhline(REST, color="0.3", linewidth=1.2, linestyle=":", label="$F_*^2$, its floor")
    widths = (5, 10, 20, 40) if quick else (5, 10, 20, 40, 80)
    best = []
    for index, width in enumerate(widths):
        path = feature_learning(width).replace(solver_steps=150 if quick else 300).theory()
        excess = path.test_error.values - NOISE**2
        best.append(float(excess.min()))
        if width in (10, 20, 40):
            theory_line(right, path.time, excess, index + 1, f"$m={width}$, $n/d={width / 2:g}$")
    theory_line(left, np.array(widths) / 2, best, 1, "two-layer law, best time", marker="o", markersize=4)
    sizes, seeds = ((12, 24), 14) if quick else ((20, 40, 80), 20)
    times = (1.0, 3.0, 5.0, 7.7, 12.0)
    found = compare(feature_learning(10).replace(times=times, solver_steps=150), sizes, seeds, observables=["test_error"])
    risk, errors = extrapolated(found, "test_error")
    ran = ", ".join(str(size) for size in sizes)
    simulation_points(right, times, risk - NOISE**2, errors, 2, f"$m=10$, networks, extrapolated\n($d={ran}$)")
    right.axhline(REST, color="0.3", linewidth=1.2, linestyle=":")
    finish(
        left,
        "samples per dimension $n/d$",
        "excess risk $R$",
        r"best over time; $F_1^2=0.5$, $F_*^2=0.3$, $\tau=0.5$",
        xscale="log",
        ylim=(0, 0.8),
    )
    finish(right, "time $t$", "excess risk $R$", "along training; dotted: floor of kernels", ylim=(0, 0.85))
    return figure


# -- further dynamics ---------------------------------------------------------------------------------------------


def annealed_penalty(quick: bool = True) -> Figure:
    """Excess risk over time without a penalty, with a constant and with a decaying one."""
    figure, (left, right) = new_figure(columns=2)
    times, few = np.geomspace(0.05, 30, 50), (0.3, 1.0, 3.0, 10.0)
    cases = {"no penalty": None, "constant 1.5": 1.5, r"decaying $1.5e^{-t/2}$": lambda t: 1.5 * np.exp(-t / 2)}
    for index, (words, penalty) in enumerate(cases.items()):
        law = EarlyStopping(ratio=1 / 1.5, noise=0.5, penalty=penalty, times=tuple(times))
        runs = law.replace(times=few).simulate_batch(100, range(10 if quick else 60)).excess_risk
        theory_line(left, times, law.theory().excess_risk, index, words)
        simulation_points(left, few, runs.mean("seed"), runs.std("seed", ddof=1) / np.sqrt(runs.sizes["seed"]), index)
    finish(left, "time $t$", "excess risk $R$", r"$n/p = 1.5$, $\tau = 0.5$; points: $p = 100$", xscale="log")
    law = EarlyStopping(ratio=1 / 1.5, noise=0.5, penalty=cases[r"decaying $1.5e^{-t/2}$"], times=(0.5, 2.0, 8.0))
    sizes = (15, 25, 50, 100) if quick else (15, 25, 50, 100, 200)
    limits = [
        law.replace(ratio=p / law.draw(p, 0).count("ratio")).theory().excess_risk for p in sizes
    ]  # n is a whole number
    runs = [law.simulate_batch(p, range(60 if quick else 400)).excess_risk for p in sizes]
    for index, t in enumerate((0.5, 2.0, 8.0)):
        gaps, errors = np.array(
            [mean_and_error(run.isel(time=index) - limit[index]) for run, limit in zip(runs, limits, strict=True)]
        ).T
        place = (1 / np.array(sizes)) * 1.03 ** (index - 1)
        theory_line(right, [0, place[0]], [0, np.mean(gaps * np.array(sizes)) * place[0]], index, linewidth=1, linestyle=":")
        simulation_points(right, place, gaps, errors, index, f"$t = {t:g}$")
    right.axhline(0.0, color="0.3", linewidth=1.5)
    title = "decaying penalty: the gap vanishes like $1/p$ (dotted)"
    finish(right, "$1/p$ for $p$ features", "gap to the limit of $R$", title)
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "nearest-neighbours-risk": nearest_neighbours_risk,
    "interpolating-smoother-rate": interpolating_smoother_rate,
    "interpolating-fit": interpolating_fit,
    "singularity-price": singularity_price,
    "random-features-double-descent": double_descent,
    "random-features-ridge": ridge_choice,
    "random-features-maps": error_maps,
    "gaussian-equivalence": equivalence,
    "ridge-double-descent": ridge_double_descent,
    "ridge-path": ridge_path,
    "optimal-ridge": optimal_ridge,
    "early-stopping": early_stopping,
    "model-collapse": model_collapse,
    "distillation": distillation,
    "chains-on-images": chains_on_images,
    "kernel-floor": floor,
    "annealed-penalty": annealed_penalty,
}
