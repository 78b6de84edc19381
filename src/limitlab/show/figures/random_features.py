"""Figures of random-features regression: double descent over width, the best ridge, error maps, equivalence (claims T4-T7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter
from numpy.typing import ArrayLike, NDArray

from limitlab.lab.extrapolated import extrapolated_runs
from limitlab.laws.regression.gaussian_equivalence import COMPARED, GaussianEquivalence
from limitlab.laws.regression.random_features import RandomFeaturesRidge, risk
from limitlab.laws.regression.random_features_tuning import best_ridge
from limitlab.plotting.style import COLOURS, finish, new_figure, reading_key, simulation_points, theory_line

Array = NDArray[np.float64]

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
    reading_key(left, None, f"simulated, extrapolated\n($d = {', '.join(map(str, sizes))}$)")
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
        reading_key(axes, None, f"simulated, extrapolated\n($d = {', '.join(map(str, sizes))}$)")
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


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "random-features-double-descent": double_descent,
    "random-features-ridge": ridge_choice,
    "random-features-maps": error_maps,
    "gaussian-equivalence": equivalence,
}
