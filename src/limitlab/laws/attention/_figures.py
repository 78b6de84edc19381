"""Figures of tokens as particles on the sphere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from limitlab._core.draws import mean_and_error
from limitlab.laws.attention._circle_density import spectral_density
from limitlab.laws.attention.circle import CircleMeanField, growth_rates, most_unstable
from limitlab.laws.attention.clustering import critical_beta, plateau_time
from limitlab.laws.attention.equiangular import EquiangularTokens, collapse_time, overlap
from limitlab.laws.attention.residual import ResidualFlow
from limitlab.laws.attention.single_cluster import SingleCluster
from limitlab.models.attention import circle
from limitlab.models.attention.clusters import circle_clusters, overlap_profile, pair_fraction, random_transformer
from limitlab.models.attention.engines import random_tokens, token_paths
from limitlab.models.attention.ensembles import ensemble_paths, phase_diagram
from limitlab.plotting.along import along, draws_along
from limitlab.plotting.style import COLOURS, finish, legend_of_styles, new_figure, simulation_points, theory_line, value_map

# -- attention ----------------------------------------------------------------------------------------------------

Array = NDArray[Any]

ENSEMBLES = {
    "A": r"$V$ independent (Ginibre)",
    "B": r"$V$ positive (Wishart)",
    "C": r"$V = Q^\top K/\sqrt{d}$",
    "D": r"$V = Q^\top K/\sqrt{d}$, symmetric",
}


def token_collapse(quick: bool = True) -> Figure:
    """Common overlap of 32 random tokens over the layers, and the time of their collapse, in closed form and simulated."""
    dimension, seeds = (512, 4) if quick else (2048, 24)
    figure, (left, right) = new_figure(columns=2)
    times, few = np.linspace(0, 14, 300), np.arange(1.0, 14.0, 1.5)
    for index, beta in enumerate((0.0, 2.0, 4.0, 5.0)):
        theory_line(left, times, 1 - overlap(times, 32, beta), index, rf"$\beta = {beta:g}$")
        overlaps = draws_along(EquiangularTokens(tokens=32, beta=beta), "times", few, dimension, seeds)["overlap"]
        simulation_points(left, few, *mean_and_error(1 - overlaps), index)
    left.plot(times[-110:], 3e2 * np.exp(-2 * times[-110:]), color="grey", linestyle=":", label=r"slope of $e^{-2t}$")
    finish(left, "time $t$", r"$1 - g$", f"32 random tokens, $d = {dimension}$", yscale="log", ylim=(1e-7, 2))
    betas, some = np.linspace(0, 12, 200), np.array([0.5, 2.0, 3.5, 5.0, 6.0])
    for index, tokens in enumerate((8, 32, 128)):
        theory_line(right, betas, collapse_time(1e-3, tokens, betas), index, rf"$n = {tokens}$")
    high = np.linspace(7, 12, 60)
    theory_line(right, high, plateau_time(high, 128), 6, "plateau formula, $n = 128$", linestyle=":", linewidth=1.5)
    merging = phase_diagram(32, dimension, some, np.arange(3.0, 25.0, 0.25), systems=2 * seeds)
    simulation_points(right, some, merging.half_time(), None, 1, "half of the pairs merged, $n = 32$")
    labels = (r"inverse temperature $\beta$", r"collapse time $t^*$", r"overlap $1 - 10^{-3}$")
    finish(right, *labels, yscale="log", ylim=(3, 2e4))
    return figure


def attention_phase_diagram(quick: bool = True) -> Figure:
    """Share of merged pairs in time and temperature, in the plane and in high dimension, with the closed-form boundary on top."""
    systems, points = (12, 28) if quick else (64, 90)
    figure, panels = new_figure(columns=3, width=4.3)
    betas, times = np.linspace(0.1, 9, points), np.linspace(0, 30, 121)
    edge = critical_beta(times, 32)
    for axes, dimension in zip(panels, (2, 16, 128), strict=True):
        diagram = phase_diagram(32, dimension, betas, times, systems=systems, workers=2)
        image = value_map(axes, times, betas, diagram.pair_probability, cmap="viridis", vmin=0, vmax=1)
        shown = edge > 0
        axes.plot(
            times[shown], edge[shown], color="white", linewidth=2.5, linestyle="--", label=r"$t^*(\beta)$, $d = \infty$"
        )
        finish(axes, "time $t$", r"inverse temperature $\beta$", f"$n = 32$, $d = {dimension}$", legend=False, ylim=(0.1, 9))
        axes.legend(loc="upper left", labelcolor="white", frameon=False)
    bar = figure.colorbar(image, ax=list(panels))
    bar.set_label(r"share of merged pairs $P_{\mathrm{pair}}$", fontsize=13)
    return figure


def attention_ensembles(quick: bool = True) -> Figure:
    """Share of merged pairs over time for four ensembles of random Q, K, V, of which two collapse and two stay in groups."""
    draws = 12 if quick else 50
    figure, panels = new_figure(columns=2, rows=2, height=3.9)
    times = np.linspace(1, 30, 30)
    for axes, (name, title) in zip(panels, ENSEMBLES.items(), strict=True):
        for index, beta in enumerate((0.5, 2.0, 5.0)):
            shares = []
            for draw in range(draws):
                rng = np.random.default_rng([draw, ord(name), index])
                x = ensemble_paths(rng, name, 32, 128, beta, times, step=0.2 if quick else 0.1)  # type: ignore[arg-type]
                shares.append(pair_fraction(x @ np.swapaxes(x, -1, -2)))
            mean, error = mean_and_error(shares)
            shown = slice(index, None, 3)
            simulation_points(axes, times[shown], mean[shown], error[shown], index, rf"$\beta = {beta:g}$")
            axes.plot(times, mean, color=COLOURS[index], linewidth=0.8, alpha=0.6)
        label = r"share of merged pairs $P_{\mathrm{pair}}$"
        finish(axes, "time $t$", label, title, ylim=(-0.05, 1.05), legend=False)
    panels[0].legend(loc="center right", fontsize=11, frameon=False)
    figure.suptitle(f"32 tokens, $d = 128$; mean over {draws} draws of $Q$, $K$, $V$ and its standard error", fontsize=14)
    return figure


def attention_ensemble_maps(quick: bool = True) -> Figure:
    """Share of merged pairs in time and temperature for four ensembles of random Q, K, V."""
    draws, points = (6, 9) if quick else (24, 18)
    figure, panels = new_figure(columns=2, rows=2, height=3.9)
    betas, times = np.linspace(0.25, 9, points), np.linspace(0, 30, 31)
    for axes, (name, title) in zip(panels, ENSEMBLES.items(), strict=True):
        shares = np.zeros((points, len(times)))
        for row, beta in enumerate(betas):
            for draw in range(draws):
                rng = np.random.default_rng([draw, ord(name), 1])  # every beta uses the same matrices
                x = ensemble_paths(rng, name, 32, 128, float(beta), times, step=0.25)  # type: ignore[arg-type]
                shares[row] += pair_fraction(x @ np.swapaxes(x, -1, -2)) / draws
        image = value_map(axes, times, betas, shares, cmap="viridis", vmin=0, vmax=1)
        finish(axes, "time $t$", r"inverse temperature $\beta$", title, legend=False)
    figure.suptitle(
        f"32 tokens, $d = 128$; mean over {draws} draws of $Q$, $K$, $V$, interpolated between grid points", fontsize=14
    )
    bar = figure.colorbar(image, ax=list(panels), pad=0.01)
    bar.set_label(r"share of merged pairs $P_{\mathrm{pair}}$", fontsize=13)
    return figure


def overlap_histograms(quick: bool = True) -> Figure:
    """Histograms of the overlaps of all pairs by layer, for a random transformer with constant parameters and for tokens in the plane."""
    tokens = 64 if quick else 256
    figure, (left, right) = new_figure(columns=2)
    profile = overlap_profile(random_transformer(layers=15, tokens=tokens, dimension=128, beta=2.0, seed=1), bins=40)
    _ridges(left, profile.histograms, profile.edges, [0, 3, 5, 7, 9, 12, 15])
    finish(left, r"overlap $\langle x_i, x_j\rangle$", "layer", "random transformer, $d = 128$", legend=False)
    start = random_tokens(np.random.default_rng(2), 1, tokens, 2)[0]
    times = [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0]
    plane = overlap_profile(token_paths(start, 7.0, times), bins=40)
    _ridges(right, plane.histograms, plane.edges, list(range(len(times))), [f"{t:g}" for t in times])
    finish(right, r"overlap $\langle x_i, x_j\rangle$", "time $t$", r"$Q = K = V = I$, $d = 2$, $\beta = 7$", legend=False)
    return figure


def _ridges(axes: Any, histograms: Array, edges: Array, rows: list[int], labels: list[str] | None = None) -> None:
    """Draw histograms above each other, the first at the top, each scaled to the same height."""
    for position, row in enumerate(rows):
        base = len(rows) - 1 - position
        shown = histograms[row] / histograms[row].max() * 0.85
        axes.stairs(base + shown, edges, baseline=base, fill=True, color=COLOURS[0], alpha=1 - 0.1 * position)
    axes.set_yticks(range(len(rows)), (labels or [str(row) for row in rows])[::-1])


def instability_spectrum(quick: bool = True) -> Figure:
    """Growth rates of harmonics around the uniform law, and the number of early clusters on the circle against their maximum."""
    tokens, seeds = (1000, 6) if quick else (5000, 24)
    figure, (left, right) = new_figure(columns=2)
    degrees = np.arange(1, 21)
    for index, beta in enumerate((1.0, 5.0, 16.0, 50.0)):
        theory_line(left, degrees, growth_rates(degrees, beta), index, rf"$d = 2$, $\beta = {beta:g}$", marker=".")
    theory_line(left, degrees, growth_rates(degrees, 16.0, dimension=3), 2, r"$d = 3$, $\beta = 16$", linestyle="--")
    left.xaxis.set_major_locator(MaxNLocator(integer=True))
    finish(left, "degree $k$", r"growth rate $\sigma_k$", "instability of the uniform law")
    fine = np.linspace(0.5, 52, 400)
    fastest = [most_unstable(float(beta)) for beta in fine]
    theory_line(right, fine, fastest, 0, r"fastest degree, $\mathrm{argmax}\,\sigma_k$")
    near = np.array([_nearly_fastest(float(beta)) for beta in fine])
    right.fill_between(fine, *near.T, color=COLOURS[0], alpha=0.15, linewidth=0, label="degrees at least 95 % as fast")
    theory_line(right, fine, np.sqrt(2 * fine), 6, r"$\sqrt{2\beta}$", linestyle=":", linewidth=1.5)
    betas = np.array([5.0, 9.0, 16.0, 25.0, 50.0])
    counts = [[_clusters(beta, tokens, seed) for beta in betas] for seed in range(seeds)]
    simulation_points(right, betas, *mean_and_error(counts), 1, f"clusters of {tokens} tokens at $t = 10$")
    finish(right, r"inverse temperature $\beta$", "number of clusters, degree $k$", f"tokens on the circle, {seeds} draws")
    return figure


def _nearly_fastest(beta: float) -> tuple[int, int]:
    """Return the least and largest degree whose growth rate is at least 95 % of the largest rate.

    In a system of finitely many tokens the degree that dominates at first varies between draws within this range.
    """
    degrees = np.arange(1, 41)
    rates = growth_rates(degrees, beta)
    fast = degrees[rates >= 0.95 * rates.max()]
    return int(fast[0]), int(fast[-1])


def _clusters(beta: float, tokens: int, seed: int) -> int:
    start = np.random.default_rng([seed, int(beta)]).uniform(0, 2 * np.pi, tokens)
    return circle_clusters(circle.circle_flow(start, beta, 10.0, step=0.2))


def circle_density(quick: bool = True) -> Figure:
    """Density of very many tokens on the circle over time, and histograms of finitely many tokens."""
    tokens, groups = (5000, 8) if quick else (20_000, 16)
    figure, (left, right) = new_figure(columns=2)
    density, beta, times = ((0.5, 0.0), (0.0, 0.3)), 4.0, [0.0, 1.0, 2.0, 3.0]
    rho, _ = spectral_density(density, beta, times, points=512)
    starts = [circle.density_quantiles(density, np.random.default_rng(seed).random(tokens)) for seed in range(groups)]
    angles = np.array([circle.circle_flow(start, beta, times, step=0.1) for start in starts]) % (2 * np.pi)
    theta, edges = 2 * np.pi * np.arange(512) / 512, np.linspace(0, 2 * np.pi, 41)
    for index, time in enumerate(times):
        theory_line(left, theta, rho[index], index, f"$t = {time:g}$")
        heights = [np.histogram(run[index], edges, density=True)[0] for run in angles]
        simulation_points(left, (edges[1:] + edges[:-1]) / 2, *mean_and_error(heights), index, markersize=3.5)
    title = rf"$\beta = 4$; lines: limit, points: mean of {groups} runs of {tokens} tokens"
    finish(left, r"angle $\theta$", r"density $\rho$", title)
    law, draws = CircleMeanField(beta=beta, density=density, stratified=False), 40 if quick else 400
    moments = {"cos1": r"$\cos\theta$", "sin1": r"$\sin\theta$", "cos2": r"$\cos 2\theta$"}
    along(right, law, "times", moments, np.linspace(0, 3, 61), np.linspace(0, 3, 7), size=400, seeds=draws)
    legend_of_styles(right, r"density, $n\to\infty$", f"$n = 400$, {draws} draws")
    finish(right, y_label="mean over the tokens", title="moments of the density")
    return figure


def residual_depth(quick: bool = True) -> Figure:
    """Gap of order 1/L between a residual network and its differential equation, and fluctuations L^-1/2 with noisy weights."""
    figure, (axes,) = new_figure()
    depths = np.array([10, 20, 40, 80, 160, 320])
    law, seeds = ResidualFlow(weight_noise=0.5), 30 if quick else 100
    errors = law.depth_errors(depths)
    simulation_points(axes, depths, errors, None, 0, "smooth weights")
    theory_line(axes, depths, errors[-1] * depths[-1] / depths, 0, "$L^{-1}$")
    spread = draws_along(law, "size", depths, seeds=seeds)["output_norm"].std(axis=0, ddof=1)
    simulation_points(axes, depths, spread, spread / np.sqrt(2 * (seeds - 1)), 1, r"noisy weights: spread of $|x|^2/d$")
    theory_line(axes, depths, np.exp(np.log(spread * np.sqrt(depths)).mean()) / np.sqrt(depths), 1, "$L^{-1/2}$")
    finish(axes, "layers $L$", "gap from the differential equation", "residual network, $d = 4$", xscale="log", yscale="log")
    return figure


def tokens_on_sphere(quick: bool = True) -> Figure:
    """Tokens on the sphere in three dimensions at four times, which form a few clusters that merge much later."""
    tokens = 60 if quick else 200
    times = [0.0, 2.0, 6.0, 20.0]
    paths = sphere_paths(tokens, 9.0, times)
    figure = Figure(figsize=(14, 4.2), layout="constrained")
    for index, time in enumerate(times):
        axes = figure.add_subplot(1, len(times), index + 1, projection="3d")
        _globe(axes)
        _scatter(axes, paths[index])
        axes.set_title(f"$t = {time:g}$", fontsize=14)
    figure.suptitle(rf"{tokens} tokens, $\beta = 9$, $Q = K = V = I$", fontsize=14)
    return figure


def sphere_paths(tokens: int, beta: float, times: Any, seed: int = 0) -> Array:
    """Return random tokens on the sphere in three dimensions over time.

    >>> sphere_paths(4, 1.0, [0.0, 1.0]).shape
    (2, 4, 3)
    """
    return token_paths(random_tokens(np.random.default_rng(seed), 1, tokens, 3)[0], beta, times, tolerance=1e-7)


def sphere_animation(
    path: str | Path, *, tokens: int = 60, beta: float = 9.0, horizon: float = 20.0, frames: int = 60, seed: int = 0
) -> Path:
    """Write tokens moving on the sphere as a GIF, or as a page with controls if the name ends in .html.

    Parameters
    ----------
    path
        Name of the file, ending in .gif or .html.
    tokens, beta, seed
        Parameters of the system, which has Q = K = V = I and a random start.
    horizon, frames
        Last time, and number of pictures. They are evenly spaced in the square root of time because the motion is fastest at early times.
    """
    from matplotlib.animation import FuncAnimation, PillowWriter
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    target = Path(path)
    if target.suffix not in (".gif", ".html"):
        raise ValueError(f"path = {str(path)!r} is not allowed: must end in .gif or .html")
    times = horizon * np.linspace(0, 1, frames) ** 2
    paths = sphere_paths(tokens, beta, times, seed)
    figure = Figure(figsize=(4.5, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.add_subplot(projection="3d")
    _globe(axes)
    points = _scatter(axes, paths[0])

    def draw(frame: int) -> tuple[Any, ...]:
        points._offsets3d = tuple(paths[frame].T)  # Matplotlib has no public setter for points in three dimensions
        axes.set_title(rf"$\beta = {beta:g}$, $t = {times[frame]:.1f}$")
        axes.view_init(20, 30 + 90 * frame / max(frames - 1, 1))
        return (points,)

    animation = FuncAnimation(figure, draw, frames=frames, interval=80)
    if target.suffix == ".html":
        target.write_text(animation.to_jshtml(fps=12), encoding="utf-8")
    else:
        animation.save(target, writer=PillowWriter(fps=12), dpi=80)
    return target


def _globe(axes: Any) -> None:
    u, v = np.mgrid[0 : 2 * np.pi : 25j, 0 : np.pi : 13j]
    axes.plot_wireframe(np.cos(u) * np.sin(v), np.sin(u) * np.sin(v), np.cos(v), color="grey", linewidth=0.4, alpha=0.4)
    axes.set_box_aspect((1, 1, 1), zoom=1.45)
    axes.set_axis_off()


def _scatter(axes: Any, x: Array) -> Any:
    return axes.scatter(*x.T, s=28, color=COLOURS[1], edgecolor="black", linewidth=0.4, depthshade=True)


# -- landscapes ---------------------------------------------------------------------------------------------------


def token_saddles(quick: bool = True) -> Figure:
    """Distance of tokens from a saddle at beta = 0, which grows at the largest rate, and the rates for every split between two poles."""
    figure, (left, right) = new_figure(columns=2)
    tokens, dimension, kick, rng = 6, 3, 1e-6, np.random.default_rng(0)
    times = np.linspace(0, 20, 41)
    for index, at_pole in enumerate((3, 4, 5)):
        saddle = np.zeros((tokens, dimension))
        saddle[:, 0] = np.where(np.arange(tokens) < at_pole, 1.0, -1.0)
        start = saddle + kick * rng.standard_normal((10 if quick else 40, *saddle.shape))
        paths = token_paths(start / np.linalg.norm(start, axis=-1, keepdims=True), 0.0, times, tolerance=1e-12)
        distance = np.sqrt(np.mean((paths - saddle) ** 2, axis=(1, 2, 3)))
        simulation_points(left, times[1::2], distance[1::2], None, index, f"{at_pole} and {tokens - at_pole} at the poles")
    early = times[:30]
    theory_line(left, early, 0.4 * kick * np.exp(early), 6, "$e^{t}$", linestyle="--")
    title = f"$n = {tokens}$, $d = {dimension}$, kick $10^{{-6}}$"
    finish(left, "time $t$", "distance from the saddle (rms)", title, yscale="log", ylim=(1e-7, 30))
    counts = np.arange(10, 21)
    rates = [np.unique(SingleCluster.saddle_rates(20, int(k), 2).round(12))[::-1] for k in counts]
    for index, (part, place) in enumerate((("largest", 0), ("second", 1), ("smallest", -1))):
        theory_line(right, counts / 20, [rate[place] for rate in rates], index, f"{part} rate", marker="o", markersize=4)
    right.axhline(0, color="0.4", linewidth=1)
    title = "$n = 20$: only one cluster ($k=n$) has no positive rate"
    finish(right, "share of tokens at the larger pole $k/n$", "rate", title)
    return figure


ANIMATIONS = {"tokens-on-sphere": sphere_animation}


def single_cluster_map(quick: bool = True) -> Figure:
    """Share of starts that have collapsed to one cluster, over temperature and dimension at three times, and for two tokens over time."""
    seeds, betas = (16, np.linspace(0, 5, 11)) if quick else (60, np.linspace(0, 5, 21))
    marks = (10.0, 100.0, 1000.0)
    dimensions = (2, 3, 4, 6, 8, 12)
    figure, panels = new_figure(columns=2, rows=2, height=3.9)
    law = SingleCluster(tokens=8)
    shares = np.array(
        [[law.replace(dimension=d, beta=float(b)).collapse_shares(marks, seeds) for b in betas] for d in dimensions]
    )
    rows = np.arange(len(dimensions))
    for index, (axes, mark) in enumerate(zip(panels, marks, strict=False)):
        image = value_map(axes, betas, rows, shares[..., index], cmap="viridis", vmin=0, vmax=1)
        axes.axhline(4.0, color="red", linestyle="--", linewidth=2.5)
        axes.axvline(1 / 8, color="red", linestyle=":", linewidth=2.5)
        axes.text(0.55 * betas[-1], 4.2, r"proven for $d \geq n$", color="red", fontsize=12)
        axes.set_yticks(rows, [str(d) for d in dimensions])
        finish(axes, r"inverse temperature $\beta$", "dimension $d$", f"$n = 8$, $t = {mark:g}$", legend=False)
        figure.colorbar(image, ax=axes).set_label("share of one cluster", fontsize=12)
    times, few = np.geomspace(2, 2e3, 200), np.geomspace(3, 1e3, 7)
    for index, (d, beta) in enumerate(((2, 1.0), (2, 3.0), (10, 3.0))):
        pair = SingleCluster(tokens=2, dimension=d, beta=beta)
        label = rf"$d = {d}$, $\beta = {beta:g}$"
        theory_line(panels[3], times, [pair.pair_collapse_share(float(t)) for t in times], index, label)
        runs = 400 if quick else 2000
        measured = pair.collapse_shares(few.tolist(), runs)
        simulation_points(panels[3], few, measured, np.sqrt(np.maximum(measured * (1 - measured), 0) / runs), index)
    finish(panels[3], "time $t$", "share of merged pairs", "two tokens", xscale="log", ylim=(-0.03, 1.03))
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "token-collapse": token_collapse,
    "attention-phase-diagram": attention_phase_diagram,
    "attention-ensembles": attention_ensembles,
    "attention-ensemble-maps": attention_ensemble_maps,
    "overlap-histograms": overlap_histograms,
    "instability-spectrum": instability_spectrum,
    "circle-density": circle_density,
    "residual-depth": residual_depth,
    "tokens-on-sphere": tokens_on_sphere,
    "token-saddles": token_saddles,
    "single-cluster-map": single_cluster_map,
}

ITEMS = {
    "token-collapse": ("J-63",),
    "attention-phase-diagram": ("J-68",),
    "attention-ensembles": ("J-70",),
    "attention-ensemble-maps": ("J-70",),
    "overlap-histograms": ("J-64",),
    "instability-spectrum": ("J-65",),
    "circle-density": ("J-65",),
    "residual-depth": ("J-62",),
    "tokens-on-sphere": ("J-69",),
    "token-saddles": ("J-67",),
    "single-cluster-map": ("J-66",),
}
"""Items of the lecture notes that the figures cover."""
