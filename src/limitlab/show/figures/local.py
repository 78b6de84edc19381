"""Figures of the local averages: nearest neighbours, and the smoother that interpolates and still learns (claims J3, J4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from limitlab.laws.regression import singular_kernel
from limitlab.laws.regression.holder import cusp
from limitlab.laws.regression.nearest_neighbours import NearestNeighbours
from limitlab.laws.regression.rough_torus import measured_risk, octave_samples
from limitlab.laws.regression.singular_kernel import SingularKernelSmoother
from limitlab.laws.regression.smoothers import SingularKernelRegressor
from limitlab.plotting.style import COLOURS, finish, new_figure, simulation_points, theory_line

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


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "nearest-neighbours-risk": nearest_neighbours_risk,
    "interpolating-smoother-rate": interpolating_smoother_rate,
    "interpolating-fit": interpolating_fit,
    "singularity-price": singularity_price,
}
