"""Figures of spectra."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from limitlab._core.draws import mean_and_error
from limitlab.lab.check import log_slope
from limitlab.laws import MarchenkoPastur, SampleCovariance
from limitlab.laws.spectra._claims import EXPECTED_DISTANCE, TRACY_WIDOM_AT_ZERO, inverse_trace, sup_distance
from limitlab.laws.spectra._measurements import extreme_eigenvalues
from limitlab.laws.spectra.square_matrix import SquareMatrixEdge, mean_inverse_trace
from limitlab.plotting.style import COLOURS, RC, finish, new_figure, simulation_points, theory_line

# -- spectra ------------------------------------------------------------------------------------------------------

Array = NDArray[np.float64]


def marchenko_pastur(quick: bool = True) -> Figure:
    """Draw histograms of sample eigenvalues and the Marchenko-Pastur density, for three ratios."""
    size, seeds = (200, 20) if quick else (800, 20)
    figure, axes = new_figure(columns=3, width=4.3)
    for index, (panel, ratio) in enumerate(zip(axes, (0.1, 0.5, 2.0), strict=True)):
        law = MarchenkoPastur(ratio=ratio, entries="sign")
        ((low, high),) = law.support()
        x = _edge_grid(low, high)
        theory_line(panel, x, law.density(x), index, label=r"$\rho(x)$")
        centres, mean, error = _histogram([law.sample_eigenvalues(law.draw(size, seed)) for seed in range(seeds)], low, high)
        simulation_points(panel, centres, mean, error, index, label=rf"$p = {size}$, entries $\pm 1$")
        atom = rf", $\mu(\{{0\}}) = {law.atom():g}$" if law.atom() else ""
        finish(panel, "eigenvalue $x$", r"density $\rho(x)$", rf"$\gamma = p/n = {ratio:g}${atom}", ylim=(0, None))
    return figure


def distance_to_law(quick: bool = True) -> Figure:
    """Draw the sup distance between empirical and limiting distribution function as the matrix grows."""
    sizes, seeds = ((50, 100, 200, 400, 800), 16) if quick else ((50, 100, 200, 400, 800, 1600), 20)
    figure, (panel,) = new_figure(width=7.2, height=4.8)
    line = np.geomspace(sizes[0], sizes[-1], 60)
    for index, ratio in enumerate((0.4, 2.0)):
        law = MarchenkoPastur(ratio=ratio, entries="sign")
        distances = [
            [sup_distance(law.sample_eigenvalues(law.draw(size, s)), law.realised(size)) for s in range(seeds)]
            for size in sizes
        ]
        mean, error = mean_and_error(distances, axis=1)
        leading = EXPECTED_DISTANCE * np.log(line * min(1, 1 / ratio)) / line
        theory_line(panel, line, leading, index, rf"leading order, $\gamma = {ratio:g}$")
        label = rf"matrices, $\gamma = {ratio:g}$: slope ${log_slope(sizes, mean).value:.2f}$"
        simulation_points(panel, sizes, mean, error, index, label=label)
    title = r"distance to the law; leading order $\sqrt{2}\,\log(\mathrm{rank})/(\pi p)$"
    finish(panel, "dimension $p$", r"$\sup_x\,|F_p(x) - F(x)|$", title, xscale="log", yscale="log")
    _ticks(panel, sizes)
    return figure


def bulks_and_outlier(quick: bool = True) -> Figure:
    """Draw three separated bulks of a sample covariance matrix and the outlier of a single spike."""
    size, seeds, spike = (200, 20, 20.0) if quick else (800, 20, 20.0)
    law = SampleCovariance(ratio=0.15, eigenvalues=(1.0, 4.0, 10.0), weights=(0.5, 0.3, 0.2))
    outlier = law.outlier(spike)
    assert outlier is not None
    position, overlap = outlier
    tops, shares, bulk = _spiked(law, size, seeds, spike)
    figure, (panel,) = new_figure(width=9.0, height=4.8)
    for index, ((low, high), mass) in enumerate(zip(law.support(), law.bulk_masses(), strict=True)):
        x = _edge_grid(low, high)
        theory_line(panel, x, x * law.density(x), index, label=f"bulk of mass {mass:.1f}")
        centres, mean, error = _histogram(bulk, low, high, bins=14)
        simulation_points(panel, centres, centres * mean, centres * error, index)
    panel.axvline(position, color=COLOURS[3], linewidth=RC["lines.linewidth"], label=f"outlier predicted at {position:.2f}")
    panel.errorbar(  # the spread over draws, not the standard error, because a single matrix has a single outlier
        [tops.mean()],
        [0.3],
        xerr=[tops.std(ddof=1)],
        fmt="D",
        color=COLOURS[3],
        markerfacecolor="white",
        markeredgewidth=1.5,
        capsize=3,
        label=f"largest eigenvalue, {seeds} draws at $p = {size}$",
    )
    mean, error = mean_and_error(shares)
    measured = f"{mean:.3f} ± {error:.3f}"
    text = f"squared overlap:\npredicted {overlap:.3f}\nmeasured {measured}"
    panel.text(position * 1.07, 0.42, text, fontsize=11, color=COLOURS[3])
    title = rf"$\Sigma$: eigenvalues 1, 4, 10 and one spike at {spike:g}; $p/n = {law.ratio}$"
    labels = ("eigenvalue $x$ (logarithmic axis)", r"$x\,\rho(x)$, density of $\log x$")
    finish(panel, *labels, title, xscale="log", ylim=(0, 0.95), xlim=(0.4, 75))
    _ticks(panel, (0.5, 1, 2, 5, 10, 20, 50))
    return figure


def edges(quick: bool = True) -> Figure:
    """Draw the distances of extreme eigenvalues from the edges, and the probability that the smallest is below its limit."""
    sizes, draws = ((25, 50, 100, 200, 400, 800), 1000) if quick else ((25, 50, 100, 200, 400, 800, 1600, 3200), 1500)
    law = MarchenkoPastur(ratio=0.25)
    ((low, high),) = law.support()
    ends = np.array([_extremes(law, size, draws) for size in sizes])
    mean, error = mean_and_error(ends - [low, high], axis=1)
    mean = np.abs(mean)
    figure, (first, second) = new_figure(columns=2, width=6.2, height=4.6)
    line = np.geomspace(sizes[0], sizes[-1], 50)
    for index, (name, column) in enumerate(((r"$\lambda_{\max}$", 1), (r"$\lambda_{\min}$", 0))):
        constant = np.exp(np.mean(np.log(mean[:, column] * np.asarray(sizes) ** (2 / 3))))
        theory_line(first, line, constant * line ** (-2 / 3), index)
        label = f"{name}: fitted $p^{{{log_slope(sizes, mean[:, column]).value:.2f}}}$"
        simulation_points(first, sizes, mean[:, column], error[:, column], index, label=label)
    title = rf"edges ${low:g}$, ${high:g}$ at $\gamma = {law.ratio}$ (lines: $p^{{-2/3}}$)"
    finish(first, "dimension $p$", "mean distance to the edge", title, xscale="log", yscale="log")
    below = np.mean(ends[..., 0] < low, axis=1)
    limit = 1 - TRACY_WIDOM_AT_ZERO
    second.axhline(limit, color=COLOURS[2], linewidth=2, label=f"Tracy-Widom: {limit:.3f}")
    spread = np.sqrt(below * (1 - below) / draws)
    simulation_points(second, sizes, below, spread, 2, label=r"$P(\lambda_{\min} < (1-\sqrt{\gamma})^2)$")
    title = r"probability that $\lambda_{\min}$ lies below its limit"
    finish(second, "dimension $p$", "probability", title, xscale="log", ylim=(0, 0.35))
    for panel in (first, second):
        _ticks(panel, sizes)
    return figure


def _ticks(panel: Axes, values: Sequence[float]) -> None:
    """Label a logarithmic axis with plain numbers at these values."""
    panel.set_xticks(values, [f"{value:g}" for value in values])
    panel.set_xticks([], minor=True)


def _edge_grid(low: float, high: float, count: int = 400) -> Array:
    """Return points that are dense at both edges, where the density is like a square root."""
    angle = np.linspace(0, np.pi, count)
    return (low + high) / 2 - (high - low) / 2 * np.cos(angle)


def _histogram(draws: Sequence[Array], low: float, high: float, bins: int = 20) -> tuple[Array, Array, Array]:
    """Return bin centres, mean density over the draws and its standard error."""
    cuts = _edge_grid(low, high, bins + 1)
    width = np.diff(cuts)
    densities = [np.histogram(draw, cuts)[0] / (len(draw) * width) for draw in draws]
    return (cuts[1:] + cuts[:-1]) / 2, *mean_and_error(densities)


def _spiked(law: SampleCovariance, size: int, seeds: int, spike: float) -> tuple[Array, Array, list[Array]]:
    """Return top eigenvalues, squared overlaps with the spike's direction, and the other eigenvalues of drawn matrices."""
    tops, shares, bulk = [], [], []
    for seed in range(seeds):
        table = law.sample(law.draw(size, seed))
        extra = law.draw(size, seeds + seed).rng.standard_normal((len(table), 1)) * np.sqrt(spike)
        full = np.hstack([extra, table])
        values, vectors = np.linalg.eigh(full.T @ full / len(full))
        tops.append(values[-1])
        shares.append(vectors[0, -1] ** 2)
        bulk.append(values[:-1])
    return np.array(tops), np.array(shares), bulk


def _extremes(law: MarchenkoPastur, size: int, draws: int) -> Array:
    draw = law.draw(size, 0)
    return np.array([extreme_eigenvalues(draw.rng, size, draw.count("ratio")) for _ in range(draws)])


# -- conditioning -------------------------------------------------------------------------------------------------


def square_matrix(quick: bool = True) -> Figure:
    """Draw the laws of smallest eigenvalue and condition number at n = d, and the mean trace of the inverse around n = d."""
    figure, (left, right) = new_figure(columns=2)
    law, rng, n = SquareMatrixEdge(), np.random.default_rng(0), 50
    draws = 400 if quick else 3000
    singular = np.linalg.svd(rng.standard_normal((draws, n, n)), compute_uv=False)
    x = np.geomspace(0.02, 100, 200)
    shown = np.geomspace(0.05, 40, 9)
    cases = (
        (law.smallest_cdf, n * singular[:, -1] ** 2, r"$n\lambda_{\min}$"),
        (law.condition_cdf, singular[:, 0] / singular[:, -1] / n, r"$\kappa/n$"),
    )
    for index, (cdf, values, label) in enumerate(cases):
        theory_line(left, x, cdf(x), index, label)
        share = (values[:, None] <= shown).mean(axis=0)
        simulation_points(left, shown, share, np.sqrt(share * (1 - share) / draws), index)
    title = f"square Gaussian matrices (points: $n={n}$)"
    finish(left, "value $x$", r"distribution function $P(\,\cdot\leq x)$", title, xscale="log")
    samples = 40
    columns = np.arange(10, 81)
    away = np.abs(columns - samples) > 1
    for side, name in ((columns < samples, r"$\min(n,d)/(|n-d|-1)$"), (columns > samples, "")):
        theory_line(right, columns[away & side], mean_inverse_trace(samples, columns[away & side]), 0, name or None)
    few, repeats = np.array([10, 20, 30, 35, 40, 45, 50, 60, 80]), 100 if quick else 1000
    traces = [[inverse_trace(rng.standard_normal((samples, d))) for _ in range(repeats)] for d in few]
    means, errors = mean_and_error(traces, axis=1)
    finite = few != samples
    simulation_points(right, few[finite], means[finite], errors[finite], 0, "mean")
    simulation_points(right, few, np.median(traces, axis=1), None, 1, "median (the mean at $n=d$ is infinite)")
    finish(right, "columns $d$", r"$\mathrm{tr}\,(X^\top X)^+$", f"$n={samples}$ rows", yscale="log", ylim=(0.2, 3000))
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "marchenko-pastur": marchenko_pastur,
    "spectral-distance": distance_to_law,
    "spectral-bulks": bulks_and_outlier,
    "spectral-edges": edges,
    "square-matrix": square_matrix,
}

ITEMS = {
    "marchenko-pastur": ("J-10",),
    "spectral-distance": ("J-10",),
    "spectral-edges": ("J-14",),
    "square-matrix": ("M-17",),
}
"""Items of the lecture notes that the figures cover."""
