"""Figures of regression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter
from numpy.typing import ArrayLike, NDArray

from limitlab._core.draws import mean_and_error
from limitlab.lab import compare
from limitlab.lab.judging import extrapolated, extrapolated_runs
from limitlab.laws.regression import singular_kernel
from limitlab.laws.regression._claims.kernel_floor import LINEAR, NOISE, REST, feature_learning
from limitlab.laws.regression._cusp import cusp
from limitlab.laws.regression._label_chains import shipped_images
from limitlab.laws.regression._random_features_point import best_ridge
from limitlab.laws.regression._smoothers import SingularKernelRegressor, measured_risk, octave_samples
from limitlab.laws.regression.distillation import Distillation
from limitlab.laws.regression.early_stopping import EarlyStopping
from limitlab.laws.regression.gaussian_equivalence import COMPARED, GaussianEquivalence
from limitlab.laws.regression.kernel_floor import kernel_floor
from limitlab.laws.regression.model_collapse import ModelCollapse
from limitlab.laws.regression.nearest_neighbours import NearestNeighbours
from limitlab.laws.regression.random_features import RandomFeaturesRidge, risk
from limitlab.laws.regression.ridge import Ridge
from limitlab.laws.regression.singular_kernel import SingularKernelSmoother
from limitlab.plotting.along import along, draws_along, predictions_along
from limitlab.plotting.style import COLOURS, best_line, finish, legend_of_styles, new_figure, simulation_points, theory_line

# -- local --------------------------------------------------------------------------------------------------------

Array = NDArray[np.float64]


def nearest_neighbours_risk(quick: bool = True) -> Figure:
    """Draw the test error of k nearest neighbours against k, and the parts of the risk."""
    seeds, sets = (6, 100) if quick else (20, 400)
    figure, (left, right) = new_figure(columns=2)
    for index, samples in enumerate((30, 300, 3000)):
        law = NearestNeighbours(samples=samples, neighbours=1, dimension=2, noise=0.5)
        k, few = (np.unique(np.round(np.geomspace(1, samples, count))) for count in (200, 9))
        label = f"$n = {samples}$"
        along(left, law, "neighbours", "test_error", k, few, size=sets, seeds=seeds, index=index, label=label)
        left.axvline(law.best_neighbours(), color=COLOURS[index], linewidth=0.8, linestyle=":")
    left.axhline(2 * 0.5**2, color="grey", linewidth=1, linestyle="--")
    left.annotate(r"$2\tau^2$", (60, 2 * 0.5**2), xytext=(0, 4), textcoords="offset points", color="grey")
    left.axhline(0.5**2, color="grey", linewidth=1, linestyle="--")
    left.annotate(r"$\tau^2$", (1.1, 0.5**2), xytext=(0, 4), textcoords="offset points", color="grey")
    title = r"$d = 2$, $\beta = 1$; dotted: best $k$; points: simulated"
    finish(left, "neighbours $k$", title=title, ylim=(0.22, 0.85), legend=False)
    left.legend(loc="upper center", ncols=3, fontsize=11, framealpha=1, edgecolor="none")

    law = NearestNeighbours(samples=300, neighbours=1, dimension=2, noise=0.5, labels="drawn")
    k, few = np.unique(np.round(np.geomspace(1, 300, 200))), np.array([3.0, 9, 27, 81, 243])
    names = {"squared_bias": "squared bias", "variance": r"variance $\tau^2/k$", "excess_risk": "excess risk"}
    along(right, law, "neighbours", names, k, few, size=sets, seeds=seeds)
    finish(
        right,
        "neighbours $k$",
        "squared error",
        "$n = 300$: the parts of the risk",
        xscale="log",
        yscale="log",
        legend=False,
    )
    right.legend(loc="center right", fontsize=11, frameon=False)
    return figure


def interpolating_smoother_rate(quick: bool = True) -> Figure:
    """Draw the excess risk of the interpolating smoother against n, at the tip of a cusp and for a function that is rough everywhere."""
    seeds = 4 if quick else 30
    figure, (left, right) = new_figure(columns=2)
    n, few = np.geomspace(30, 1e7, 120), (30, 300, 3000, 30_000)
    for index, (dimension, singularity) in enumerate(((1, 0.4), (2, 0.6), (3, 1.2))):
        exponent = float(singular_kernel.rate_exponent(singularity, dimension, 1.0))
        law, window = SingularKernelSmoother(singularity=singularity, dimension=dimension, noise=1.0), _shrinking(dimension)
        label = f"$d = {dimension}$: slope $-{exponent:.3f}$"
        along(left, law, window, "excess_risk", n, few, size=100, seeds=seeds, index=index, label=label)
        last = predictions_along(law, window, n[-1:])["excess_risk"]
        left.plot(n, 1.5 * last * (n / n[-1]) ** -exponent, color=COLOURS[index], linewidth=1, linestyle="--")
    title = r"tip of a cusp, $\beta = 1$, $h = n^{-1/(2\beta+d)}$; dashed: the slope"
    finish(left, "samples $n$", title=title, yscale="log")

    cases = ((1, 0.5, 0.3, 4), (1, 0.75, 0.3, 4), (2, 0.5, 0.6, 3))
    for index, (dimension, smoothness, singularity, octaves) in enumerate(cases):
        samples = np.array(octave_samples(500, octaves, dimension, smoothness))
        runs = [
            [measured_risk(m, seed, dimension, smoothness, singularity)["excess_risk"] for m in samples.tolist()]
            for seed in range(seeds)
        ]
        mean, error = mean_and_error(runs)
        exponent = 2 * smoothness / (2 * smoothness + dimension)
        label = rf"$d = {dimension}$, $\beta = {smoothness:g}$: slope $-{exponent:.3f}$"
        simulation_points(right, samples, mean, error, index)
        theory_line(right, samples, mean[-1] * (samples / samples[-1]) ** -exponent, index, label, linestyle="--")
    title = "rough on the whole torus; dashed: the slope"
    finish(right, "samples $n$", "excess risk $R$", title, xscale="log", yscale="log")
    return figure


def interpolating_fit(quick: bool = True) -> Figure:
    """Draw a fit that passes through every noisy label and is close to the target elsewhere, and the kernel of such fits."""
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
    title = "the weights of this fit, $d = 1$"
    finish(right, "distance $|u|$ in units of $h$", "weight $K(u) = |u|^{-a}$", title, xscale="log", yscale="log")
    return figure


def singularity_price(quick: bool = True) -> Figure:
    """Draw the variance of smoothers with several singularities against the expected number of neighbours."""
    seeds, sets = (8, 140) if quick else (30, 1000)
    figure, (axes,) = new_figure()
    expected, few, window = np.geomspace(1, 1e5, 100), (1, 10, 100, 1000), 1e-3
    for index, ratio in enumerate((0.2, 0.5, 0.75, 0.9)):
        law = SingularKernelSmoother(bandwidth=window, singularity=ratio, dimension=1, noise=1.0)
        exponent = float(singular_kernel.variance_exponent(ratio, 1))
        label = f"$a/d = {ratio:g}$: slope " + ("$-1$ with a logarithm" if ratio == 0.5 else f"$-{exponent:.2f}$")
        along(
            axes, law, lambda m: {"samples": m / window}, "variance", expected, few,
            size=sets, seeds=seeds, index=index, label=label,
        )  # fmt: skip
    title = "all smoothers interpolate; lines: predicted, points: simulated"
    finish(axes, "expected neighbours $n h^d$", r"variance $/\,\tau^2$", title, yscale="log")
    return figure


def _shrinking(dimension: int) -> Callable[[Array], dict[str, ArrayLike]]:
    """Return the parameters for a number of samples n and the window n^(-1 / (2 + dimension))."""
    return lambda n: {"samples": n, "bandwidth": [count ** (-1 / (2 + dimension)) for count in n.tolist()]}


# -- random features ----------------------------------------------------------------------------------------------

RATE = float(RandomFeaturesRidge.rates("excess_risk")[0])

WIDTH_LABEL = r"features per sample $N/n$"


def double_descent(quick: bool = True) -> Figure:
    """Draw the excess risk over the width at a high and a low signal-to-noise ratio. A ridge removes the peak at N = n."""
    sizes, seeds = ((20, 40), 16) if quick else ((40, 80, 160), 20)
    figure, (left, right) = new_figure(columns=2)
    law, shares = RandomFeaturesRidge(activation="relu", sample_ratio=3.0, noise=0.5), np.geomspace(0.1, 30, 601)
    few = np.array([0.15, 0.3, 0.6, 0.8, 1.0, 1.25, 1.7, 3.0, 6.0])
    ridges = (1e-8, 1e-3, 1e-2, 1e-1)
    names = ("0^+", "10^{-3}", "10^{-2}", "10^{-1}")
    mean, error = _over_widths(law, 3.0 * few, sizes, seeds, np.array(ridges))
    for index, (ridge, name) in enumerate(zip(ridges, names, strict=True)):
        theory_line(left, shares, _excess(law, 3.0 * shares, 0.0 if index == 0 else ridge), index, rf"$\lambda = {name}$")
        finite = (few != 1.0) | (index > 0)  # without a ridge the risk is infinite at N = n
        simulation_points(left, few[finite], mean[finite, index], error[finite, index], index)
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
    finish(right, WIDTH_LABEL, "excess risk $R$", r"ReLU, $n/d = 3$, $F_1^2/\tau^2 = 0.2$", xscale="log", ylim=(0, 6))
    for axes in (left, right):
        _plain_ticks(axes)
    return figure


def ridge_choice(quick: bool = True) -> Figure:
    """Draw the excess risk against the ridge at low and high signal-to-noise ratio, for several widths."""
    sizes, seeds = ((20, 40), 24) if quick else ((40, 80, 160), 24)
    figure, panels = new_figure(columns=2)
    grid, few = np.geomspace(1e-5, 1.0, 300), np.geomspace(1e-5, 1.0, 9)
    for axes, snr in zip(panels, (1.0, 20.0), strict=True):
        base = RandomFeaturesRidge(activation="relu", sample_ratio=3.0, signal=snr**0.5, noise=1.0)
        for index, width in enumerate((4.0, 12.0, np.inf)):
            law, name = base.replace(width_ratio=width), r"\infty" if np.isinf(width) else f"{width:g}"
            relative = partial(np.multiply, 1 / snr)
            along(axes, law, "ridge", "excess_risk", grid, index=index, label=f"$N/d = {name}$", transform=relative)
            if np.isfinite(width):
                value, error = _extrapolated(law, sizes, seeds, few, law.evaluate(ridge=few)["excess_risk"])
                simulation_points(axes, few, value / snr, error / snr, index)
            best = law.optimal_ridge()
            least = float(law.replace(ridge=best).theory().excess_risk) / snr
            axes.plot(max(best, grid[0]), least, marker="*", markersize=15, color=COLOURS[index], clip_on=False, zorder=5)
        side = "below" if snr < base.replace(width_ratio=np.inf).snr_threshold() else "above"
        title = rf"signal to noise $\rho = {snr:g}$, {side} $\mu_1^2/\mu_*^2 = 2.75$"
        legend_of_styles(axes, None, f"simulated, extrapolated\n($d = {', '.join(map(str, sizes))}$)")
        axes.plot([], [], "*", color="0.4", markersize=12, label=r"best $\lambda$ (at the left edge: 0)")
        finish(axes, y_label="excess risk $R/F_1^2$", title=title)
    return figure


def error_maps(quick: bool = True) -> Figure:
    """Draw the train and test error over width and samples. The test error is large at N = n."""
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
    """Draw the gap between nonlinear and noisy linear features over d, which falls like 1/d."""
    sizes, seeds = ((20, 40, 80), 40) if quick else ((40, 80, 160, 320), 60)
    figure, panels = new_figure(columns=2)
    reference = np.array([sizes[0], sizes[-1]])
    for axes, (activation, words, width) in zip(panels, (("relu", "ReLU", 4.0), ("tanh", "tanh", 2.0)), strict=True):
        law = GaussianEquivalence(activation=activation, width_ratio=width, sample_ratio=2.0, ridge=1e-3, noise=0.5)
        draws = draws_along(law, "size", sizes, seeds=seeds)
        for index, name in enumerate(COMPARED):
            mean, error = mean_and_error(draws[f"{name}_gap"] / float(law.theory()[name]))
            clear = np.abs(mean) > 2 * error
            place = np.array(sizes) * 1.03 ** (index - 1.5)
            simulation_points(axes, place[clear], np.abs(mean)[clear], error[clear], index, name.replace("_", " "))
        axes.plot(reference, 3.0 / reference, color="grey", linewidth=1.5, label="slope $-1$")
        title = rf"{words} (gaps beyond two errors), $N/d = {width:g}$, $n/d = 2$"
        finish(axes, "dimension $d$", "|nonlinear − linear| / limit", title, xscale="log", yscale="log", ylim=(3e-3, 0.6))
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.xaxis.set_minor_formatter(NullFormatter())
    return figure


def _excess(law: RandomFeaturesRidge, widths: Array, ridge: float | None) -> Array:
    """Return the excess risk of a law over widths at a ridge, or at the best ridge of each width."""
    mu = law.moments()
    ridges: ArrayLike = (
        ridge if ridge is not None else best_ridge(widths, law.sample_ratio, mu.linear, mu.nonlinear, law.signal_to_noise())
    )
    values = risk(widths, law.sample_ratio, ridges, mu.linear, mu.nonlinear, law.signal, law.nonlinear_signal, law.noise)
    return values["excess_risk"]


def _extrapolated(
    law: RandomFeaturesRidge, sizes: Sequence[int], seeds: int, ridges: Array, limits: ArrayLike
) -> tuple[Array, Array]:
    """Return the excess risks at several ridges, extrapolated to infinite size, and their errors."""
    runs = [draws_along(law, "ridge", ridges, size, seeds)["excess_risk"] for size in sizes]
    return extrapolated_runs(sizes, runs, limits, RATE)


def _over_widths(
    law: RandomFeaturesRidge, widths: Array, sizes: Sequence[int], seeds: int, ridges: Array
) -> tuple[Array, Array]:
    """Return excess risks extrapolated to infinite size and their errors, each of shape (widths, ridges)."""
    laws = [law.replace(width_ratio=float(width)) for width in widths]
    limits = [[each.realised(size).evaluate(ridge=ridges)["excess_risk"] for size in sizes] for each in laws]
    estimates = [_extrapolated(each, sizes, seeds, ridges, limit) for each, limit in zip(laws, limits, strict=True)]
    value, error = (np.array(part) for part in zip(*estimates, strict=True))
    return value, error


def _plain_ticks(axes: Axes) -> None:
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


# -- regression ---------------------------------------------------------------------------------------------------

GROUPS: dict[str, tuple[float, ...]] = dict(
    eigenvalues=(0.2, 1.0, 3.0), weights=(0.3, 0.4, 0.3), signal_energy=(0.5, 1.0, 0.2)
)

ALIGNED: dict[str, tuple[float, ...]] = dict(eigenvalues=(1.0, 20.0), weights=(0.95, 0.05), signal_energy=(0.0076, 1.0))
"""Spectrum with few strong directions that contain the signal. The best penalty for it is negative."""


def ridge_double_descent(quick: bool = True) -> Figure:
    """Draw the excess risk of the least-norm solution against p/n. It has a peak at p = n and falls again for larger p."""
    samples, seeds = (100, 12) if quick else (300, 40)
    figure, (left, right) = new_figure(columns=2)
    under, over = 1 - np.geomspace(0.98, 1e-3, 300), 1 + np.geomspace(1e-3, 19, 300)
    few = (0.1, 0.3, 0.5, 0.7, 0.85, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0)
    size, base = _with_samples(samples), Ridge(ridge=0.0, noise=1.0)
    for index, power in enumerate((1.0, 4.0, 9.0, 25.0)):
        law, label = base.replace(signal_energy=(power,)), f"$|\\beta|^2/\\tau^2 = {power:g}$"
        along(left, law, "ratio", "excess_risk", under, few, size=size, seeds=seeds, index=index, label=label)
        along(left, law, "ratio", "excess_risk", over, index=index)
        best_line(left, law, "best possible" if index == 3 else "", less=1.0, ratio=np.geomspace(0.02, 20, 60))
    left.axvline(1, color="grey", linewidth=1, linestyle=":")
    legend_of_styles(left, r"limit $n\to\infty$", f"simulated, $n = {samples}$")
    finish(
        left, y_label=r"excess risk $R/\tau^2$", title="least-norm solution", xscale="log", yscale="log", ylim=(0.05, 400)
    )
    law = base.replace(signal_energy=(4.0,))
    along(right, law, "ratio", ("bias", "variance"), under, few, size=size, seeds=seeds)
    along(right, law, "ratio", {"bias": "", "variance": ""}, over)
    right.axvline(1, color="grey", linewidth=1, linestyle=":")
    legend_of_styles(right, r"limit $n\to\infty$", f"simulated, $n = {samples}$")
    title = r"$|\beta|^2/\tau^2 = 4$: the two parts"
    finish(right, y_label=r"squared error over $\tau^2$", title=title, xscale="log", ylim=(-0.3, 8))
    return figure


def ridge_path(quick: bool = True) -> Figure:
    """Draw train and test error, bias and variance against the penalty, with correlated features."""
    size, seeds = (150, 12) if quick else (450, 40)
    figure, panels = new_figure(columns=2)
    names = {"test_error": "test", "train_error": "train", "bias": "bias", "variance": "variance"}
    for axes, ratio in zip(panels, (0.75, 1.5), strict=True):
        law = Ridge(ratio=ratio, noise=0.5, **GROUPS)
        along(axes, law, "ridge", names, np.geomspace(1e-3, 1e2, 300), np.geomspace(1e-3, 1e2, 11), size=size, seeds=seeds)
        legend_of_styles(axes, None, f"simulated, $p = {size}$")
        axes.axvline(law.optimal_ridge(), color="grey", linewidth=1, linestyle="--", label=r"best $\lambda$")
        finish(axes, y_label="squared error", title=rf"three groups of features, $p/n = {ratio:g}$", ylim=(-0.05, 2.9))
    return figure


def optimal_ridge(quick: bool = True) -> Figure:
    """Draw the test error at the best penalty, which has no peak, and a case in which the best penalty is negative."""
    size, seeds = (800, 12) if quick else (1600, 30)
    figure, (left, right) = new_figure(columns=2)
    ratios, base = np.geomspace(0.1, 10, 401), Ridge(noise=0.5)
    for index, ridge in enumerate((0.0, 0.01, 0.1)):
        law, label = base.replace(ridge=ridge), rf"$\lambda = {ridge:g}$"
        few = (0.2, 0.5, 0.8, 1.25, 2.0, 5.0) if ridge else ()
        along(left, law, "ratio", "test_error", ratios, few, size=_with_samples(150), seeds=seeds, index=index, label=label)
    legend_of_styles(left, None, "simulated, $n = 150$")
    best, label = lambda ratio: {"ratio": ratio, "ridge": ratio * base.noise**2}, r"best $\lambda = \gamma\tau^2/|\beta|^2$"
    along(left, base, best, "test_error", ratios, index=6, label=label, linestyle="--")
    finish(left, title=r"isotropic, $\tau = 0.5$", ylim=(0.2, 3))
    law = Ridge(ratio=4.0, ridge=0.0, noise=0.1, **ALIGNED)
    limit, optimum = law.negative_ridge_limit(), law.optimal_ridge()
    grid, penalties = np.linspace(0.985 * limit, 1.2, 400), np.linspace(-0.8, 1.0, 7)
    along(right, law, "ridge", "test_error", grid, penalties, size=size, seeds=seeds, label="limit")
    legend_of_styles(right, None, f"simulated, $p = {size}$")
    right.axvline(limit, color="grey", linewidth=1.5, linestyle=":", label=rf"least allowed $\lambda = {limit:.2f}$")
    right.axvline(optimum, color=COLOURS[1], linewidth=1.5, linestyle="--", label=rf"best $\lambda = {optimum:.3f}$")
    finish(right, title=r"5% strong directions, $p/n = 4$", ylim=(0.35, 1.25))
    return figure


def early_stopping(quick: bool = True) -> Figure:
    """Draw the errors along gradient flow, and the excess risk over time divided by the excess risk of the best penalty."""
    size, seeds = (200, 12) if quick else (600, 40)
    figure, (left, right) = new_figure(columns=2)
    times, few = np.geomspace(0.05, 1e3, 160), np.geomspace(0.1, 500, 9)
    law = EarlyStopping(ratio=1.5, noise=0.5, **GROUPS)
    names = {"test_error": "test", "train_error": "train", "variance": "variance"}
    along(left, law, "times", names, times, few, size=size, seeds=seeds)
    left.axvline(law.best_time(), color="grey", linewidth=1, linestyle="--", label="best time")
    finish(left, y_label="squared error", title=f"three groups, $p/n = 1.5$, $p = {size}$", ylim=(-0.05, 2.4))
    for index, (ratio, power, noise) in enumerate(((0.5, 1.0, 0.5**0.5), (2.0, 4.0, 1.0), (1.3, 1.0, 0.2**0.5))):
        flow = EarlyStopping(ratio=ratio, noise=noise, signal_energy=(power,))
        penalty = Ridge(ratio=ratio, noise=noise, signal_energy=(power,))
        best = float(penalty.replace(ridge=penalty.optimal_ridge()).theory()["excess_risk"])
        label, relative = rf"$\gamma = {ratio:g}$, $|\beta|^2/\tau^2 = {power / noise**2:g}$", partial(np.multiply, 1 / best)
        along(right, flow, "times", "excess_risk", times, index=index, label=label, transform=relative)
        along(
            right, penalty, lambda t: {"ridge": 1 / t}, "excess_risk", times, index=index, transform=relative, linestyle=":"
        )
    right.axhline(1, color="grey", linewidth=1)
    title = r"flow (lines) and ridge with $\lambda = 1/t$ (dotted)"
    finish(right, y_label="excess risk / excess risk at best ridge", title=title, ylim=(0.82, 1.6))
    return figure


def _with_samples(samples: int) -> Callable[[float], int]:
    """Return the number of features at a ratio p/n, with a fixed number of samples n."""
    return lambda ratio: round(ratio * samples)


# -- synthetic ----------------------------------------------------------------------------------------------------

GROUPS_SYNTHETIC: dict[str, tuple[float, ...]] = dict(
    eigenvalues=(4.0, 1.0, 0.2), weights=(0.2, 0.3, 0.5), signal_energy=(0.5, 0.3, 0.2)
)


def model_collapse(quick: bool = True) -> Figure:
    """Draw the excess risk along a chain of models, and the critical share of real labels."""
    figure, (left, right) = new_figure(columns=2)
    size, seeds = (100, 20) if quick else (200, 60)
    base = ModelCollapse(ratio=0.8, ridge=0.0, noise=0.5)
    laws = {
        "only the model's labels": base,
        r"share 0.3 real": base.replace(real_share=0.3),
        r"share 0.9 real": base.replace(real_share=0.9),
        r"share 0.3 real, $\lambda=0.05$": base.replace(real_share=0.3, ridge=0.05),
        "data of all generations": base.replace(data="accumulate"),
    }
    along(left, laws, "generations", "excess_risk", range(1, 11), (1, 2, 4, 6, 8), size=size, seeds=seeds)
    legend_of_styles(left, "limit", f"simulated, $p={size}$")
    title = r"each model trained on the previous, $\gamma=0.8,\ \tau=0.5$"
    finish(left, "generation $g$", title=title, yscale="log", ylim=(0.3, 1e3))
    ratios = np.linspace(0.5, 0.98, 97 if quick else 193)
    for index, ridge in enumerate((0.0, 0.01, 0.03)):
        law = ModelCollapse(ridge=ridge)
        shares = [law.replace(ratio=float(ratio)).critical_share() for ratio in ratios]
        theory_line(right, ratios, shares, index, rf"$\lambda={ridge:g}$")
    label = r"critical share of real labels $\pi_c$"
    finish(right, r"features per sample $\gamma$", label, "below the line a chain diverges")
    return figure


def distillation(quick: bool = True) -> Figure:
    """Draw the excess risk of student and teacher against the student's penalty, and against the mixing weight for the same inputs."""
    figure, (left, right) = new_figure(columns=2)
    size, seeds = (80, 10) if quick else (160, 60)
    best = Ridge(ratio=0.8, noise=1.0, **GROUPS_SYNTHETIC).optimal_ridge()
    law = Distillation(teacher_ratio=0.8, teacher_ridge=best / 4, noise=1.0, **GROUPS_SYNTHETIC)
    for index, ratio in enumerate((0.05, 0.3, 1.0)):
        student, label = law.replace(ratio=ratio), rf"student, $\gamma={ratio:g}$"
        few = np.geomspace(0.01, 1, 4) if ratio > 0.1 else ()
        ridges = np.geomspace(0.003, 3, 40)
        along(left, student, "ridge", "excess_risk", ridges, few, size=size, seeds=seeds, index=index, label=label)
    left.axhline(float(law.theory().teacher_excess_risk), color="0.3", linestyle="--", linewidth=1.4, label="teacher")
    legend_of_styles(left, None, f"simulated, $p={size}$")
    finish(left, r"student's penalty $\lambda$", title="a teacher with a quarter of its best penalty")
    same = Distillation(ratio=0.8, noise=1.0, inputs="same", **GROUPS_SYNTHETIC)
    equal = (0.2113, best, 2.026)
    laws = {rf"$\lambda=\lambda_t={ridge:.2g}$": same.replace(ridge=ridge, teacher_ridge=ridge) for ridge in equal}
    along(right, laws, "mix", "excess_risk", np.linspace(-2, 2, 41), (-1.5, -0.5, 0.5, 1.5), size=size, seeds=seeds)
    least = float(Ridge(ratio=0.8, ridge=best, noise=1.0, **GROUPS_SYNTHETIC).theory().excess_risk)
    right.axhline(least, color="0.3", linestyle="--", linewidth=1.4, label="best ridge alone")
    legend_of_styles(right, None, f"simulated, $p={size}$")
    title = "student and teacher have the same inputs"
    finish(right, r"share $\xi$ of the teacher's labels", title=title, yscale="log", ylim=(0.38, 1.9))
    return figure


def chains_on_images(quick: bool = True) -> Figure:
    """Draw excess risks of chains of models and of students on the shipped images, and the laws at the spectrum of the images."""
    figure, (left, right) = new_figure(columns=2)
    X, y = shipped_images()
    seeds, generations = range(8 if quick else 100), tuple(range(1, 9))
    cases = {
        r"only the model's labels, $\lambda=10^{-3}$": dict(ridge=1e-3),
        r"share 0.3 real, $\lambda=10^{-3}$": dict(ridge=1e-3, real_share=0.3),
        r"no noise on the model's labels, $\lambda=10^{-2}$": dict(ridge=1e-2, synthetic_noise=0.0),
    }
    for index, (label, changes) in enumerate(cases.items()):
        law = ModelCollapse.from_data(X, y, samples=400, generations=generations, **changes)
        along(left, law, "generations", "excess_risk", generations, index=index, label=label)
        simulation_points(left, generations, *mean_and_error(law.on_table(X, y, seeds).excess_risk), index)
    finish(left, "generation $g$", title="8,000 images, 400 per generation")
    left.set_ylim(0, 1.45 * left.get_ylim()[1])
    ridges, few = np.geomspace(3e-4, 0.1, 30), np.geomspace(1e-3, 0.05, 4)
    for index, samples in enumerate((200, 800, 3000)):
        pair = Distillation.from_data(X, y, samples=samples, teacher_samples=200, teacher_ridge=1e-4)
        along(right, pair, "ridge", "excess_risk", ridges, index=index, label=f"student, $n={samples}$")
        students = [pair.replace(ridge=float(ridge)).on_table(X, y, seeds).excess_risk for ridge in few]
        simulation_points(right, few, *mean_and_error(students, axis=1), index)
    taught = float(pair.on_table(X, y, seeds).teacher_excess_risk.mean())
    limit = float(pair.theory().teacher_excess_risk)
    right.axhline(limit, color="0.3", linestyle="--", linewidth=1.4, label=f"teacher, $n=200$ (measured {taught:.2f})")
    finish(right, r"student's penalty $\lambda$", title=r"a teacher with penalty $10^{-4}$", ylim=(0.08, 0.46))
    return figure


# -- least excess risk of kernels ---------------------------------------------------------------------------------


def floor(quick: bool = True) -> Figure:
    """Draw the least excess risk of kernels against samples per dimension, and the excess risk of the two-layer law over time."""
    figure, (left, right) = new_figure(columns=2)
    ratio = np.geomspace(0.5, 100, 100)
    theory_line(left, ratio, kernel_floor(ratio, LINEAR, REST, NOISE), 0, "best kernel")
    left.axhline(REST, color="0.3", linewidth=1.2, linestyle=":", label="$F_*^2$, its lower bound")
    widths = (5, 10, 20, 40) if quick else (5, 10, 20, 40, 80)
    best = []
    for index, width in enumerate(widths):
        limit = feature_learning(width).replace(solver_steps=150 if quick else 300).theory()
        excess = limit.test_error.values - NOISE**2
        best.append(float(excess.min()))
        if width in (10, 20, 40):
            theory_line(right, limit.time, excess, index + 1, f"$m={width}$, $n/d={width / 2:g}$")
    theory_line(left, np.array(widths) / 2, best, 1, "two-layer law, best time", marker="o", markersize=4)
    sizes, seeds = ((12, 24), 14) if quick else ((20, 40, 80), 20)
    times = (1.0, 3.0, 5.0, 7.7, 12.0)
    comparison = compare(
        feature_learning(10).replace(times=times, solver_steps=150), sizes, seeds, observables=["test_error"]
    )
    risk, errors = extrapolated(comparison, "test_error")
    ran = ", ".join(str(size) for size in sizes)
    simulation_points(right, times, risk - NOISE**2, errors, 2, f"$m=10$, networks, extrapolated\n($d={ran}$)")
    right.axhline(REST, color="0.3", linewidth=1.2, linestyle=":")
    title = r"best over time; $F_1^2=0.5$, $F_*^2=0.3$, $\tau=0.5$"
    finish(left, "samples per dimension $n/d$", "excess risk $R$", title, xscale="log", ylim=(0, 0.8))
    finish(right, "time $t$", "excess risk $R$", "along training; dotted: lower bound of kernels", ylim=(0, 0.85))
    return figure


# -- further dynamics ---------------------------------------------------------------------------------------------


def annealed_penalty(quick: bool = True) -> Figure:
    """Draw the excess risk over time without a penalty, with a constant and with a decaying penalty, and its gap to the limit."""
    figure, (left, right) = new_figure(columns=2)
    penalties = {"no penalty": None, "constant 1.5": 1.5, r"decaying $1.5e^{-t/2}$": lambda t: 1.5 * np.exp(-t / 2)}
    laws = {words: EarlyStopping(ratio=1 / 1.5, noise=0.5, penalty=penalty) for words, penalty in penalties.items()}
    times, few = np.geomspace(0.05, 30, 50), (0.3, 1.0, 3.0, 10.0)
    along(left, laws, "times", "excess_risk", times, few, size=100, seeds=10 if quick else 60)
    finish(left, title=r"$n/p = 1.5$, $\tau = 0.5$; points: $p = 100$")
    late = (0.5, 2.0, 8.0)
    law = laws[r"decaying $1.5e^{-t/2}$"].replace(times=late)
    sizes = np.array((15, 25, 50, 100) if quick else (15, 25, 50, 100, 200))
    whole = [law.replace(ratio=p / law.draw(p, 0).count("ratio")) for p in sizes.tolist()]  # n is a whole number
    limits = np.array([each.theory().excess_risk for each in whole])
    runs = draws_along(law, "size", sizes, seeds=60 if quick else 400)["excess_risk"]
    gaps, errors = mean_and_error(runs - limits)
    for index, time in enumerate(late):
        place, gap = 1.03 ** (index - 1) / sizes, gaps[:, index]
        theory_line(right, [0, place[0]], [0, np.mean(gap * sizes) * place[0]], index, linewidth=1, linestyle=":")
        simulation_points(right, place, gap, errors[:, index], index, f"$t = {time:g}$")
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

ITEMS = {
    "nearest-neighbours-risk": ("J-5",),
    "interpolating-smoother-rate": ("J-6",),
    "interpolating-fit": ("J-6",),
    "random-features-double-descent": ("L-17", "L-18", "M-19"),
    "random-features-ridge": ("M-19", "T-4"),
    "random-features-maps": ("M-18", "T-5"),
    "gaussian-equivalence": ("T-6",),
    "ridge-double-descent": ("J-7", "J-13", "M-17"),
    "kernel-floor": ("L-13", "L-14"),
    "annealed-penalty": ("D-8",),
}
"""Items of the lecture notes that the figures cover."""
