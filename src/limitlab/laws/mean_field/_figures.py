"""Figures of the mean field of wide networks."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from limitlab._core.draws import mean_and_error
from limitlab.lab import compare
from limitlab.lab.judging import extrapolated
from limitlab.laws.mean_field._claims import HORIZONS, RECORDED, SMALL, neuron_gaps, saddle_constants
from limitlab.laws.mean_field._neuron_means import FUNCTIONS, NeuronFlow
from limitlab.laws.mean_field._training import ScalarNetwork, flow_risks, langevin, ramp_sgd, regularised_risk
from limitlab.laws.mean_field.cone import ConeFlow, cone_risk
from limitlab.laws.mean_field.noisy import NoisyMeanField
from limitlab.laws.mean_field.output_scale import OutputScale
from limitlab.laws.mean_field.particles import MeanFieldParticles
from limitlab.laws.mean_field.two_gaussians import TwoGaussians
from limitlab.plotting.along import along, draws_along
from limitlab.plotting.style import COLOURS, finish, legend_of_styles, new_figure, simulation_points, theory_line

# -- meanfield ----------------------------------------------------------------------------------------------------

Array = NDArray[Any]


def two_gaussians(quick: bool = True) -> Figure:
    """Draw the risk of SGD and of the mean-field equation for three separations, and the lengths of the weights at four times."""
    widths, step, seeds = ((50, 100, 200), 0.02, 2) if quick else ((200, 400, 800), 0.024, 6)
    width = widths[-1]
    figure, (left, right) = new_figure(columns=2)
    grid, few = np.geomspace(0.01, 10, 60), np.geomspace(0.01, 2 if quick else 10, 7 if quick else 9)
    for index, separation in enumerate((0.2, 0.4, 0.8)):
        law = TwoGaussians(separation=separation)
        along(left, law, "times", "risk", grid, index=index, label=rf"$\Delta = {separation:g}$")
        comparison = compare(law.replace(times=tuple(few), step=step), widths, seeds, observables=["risk"])
        simulation_points(left, few, *extrapolated(comparison, "risk"), index)
    legend_of_styles(left, r"limit $N\to\infty$", f"SGD, extrapolated\n($N = {', '.join(map(str, widths))}$)")
    finish(left, r"time $t$ (step $\times$ samples)", title="two Gaussians, $d = 40$", yscale="log")
    law, times = TwoGaussians(separation=0.8), [0.0, 0.5, 2.0, 5.0]
    paths, weights = law.radii(times)
    radii = np.concatenate([sgd_radii(law, width, step, times, seed) for seed in range(seeds)], axis=1)
    for index, time in enumerate(times):
        theory_line(right, *radius_density(paths[index], weights), index, f"$t = {time:g}$")
        _histogram_points(right, radii[index], np.linspace(0, 4.2, 71), index)
    legend_of_styles(right, None, f"SGD, $N = {width}$")
    finish(right, "length $r$ of a weight", "density", r"lengths of the weights, $\Delta = 0.8$")
    return figure


def _histogram_points(axes: Axes, values: Array, edges: Array, index: int) -> None:
    """Draw the density of values in the bins that are not empty, with the errors of the counts."""
    counts, scale = np.histogram(values, edges)[0], len(values) * np.diff(edges)
    filled = counts > 0
    middle, height, error = (edges[1:] + edges[:-1]) / 2, counts / scale, np.sqrt(counts) / scale
    simulation_points(axes, middle[filled], height[filled], error[filled], index, markersize=3.5)


def sgd_radii(law: TwoGaussians, width: int, step: float, times: Any, seed: int) -> Array:
    """Return the lengths of the weights of one run of SGD over time, shape (times, width).

    >>> sgd_radii(TwoGaussians(dimension=5), 10, 0.1, [0.0, 0.1], 0).shape
    (2, 10)
    """
    rng, small = np.random.default_rng(seed), step / width
    start = rng.standard_normal((width, law.dimension)) * (law.initial_scale / math.sqrt(law.dimension))
    counts = np.round(np.asarray(times) / small).astype(np.int64)
    task = (law.separation, law.knots, law.levels)
    return np.array([np.linalg.norm(w, axis=1) for w in ramp_sgd(rng, start, *task, small, counts)])


def radius_density(radii: Array, weights: Array, points: int = 150) -> tuple[Array, Array]:
    """Return the density of weighted radii, as the slope of their distribution function smoothed over a few nodes.

    >>> r, density = radius_density(np.linspace(0, 1, 400), np.full(400, 1 / 400))
    >>> bool(np.abs(density[5:-5] - 1).max() < 0.05)
    True
    """
    order = np.argsort(radii)
    r, levels = radii[order], np.cumsum(weights[order]) - weights[order] / 2
    edges = np.interp(np.linspace(0.0005, 0.9995, points), levels, r)
    edges = np.unique(np.concatenate([edges, np.linspace(r[0], r[-1], points)]))
    edges = edges[np.concatenate([[True], np.diff(edges) > 1e-3 * (r[-1] - r[0])])]
    slopes = np.diff(np.interp(edges, r, levels)) / np.diff(edges)
    return (edges[1:] + edges[:-1]) / 2, slopes


def free_energy(quick: bool = True) -> Figure:
    """Draw free energy and risk of noisy erf neurons over time, and the density at several times and at rest."""
    figure, (left, right) = new_figure(columns=2)
    width, seeds = (1000, 3) if quick else (10_000, 8)
    grid, few = np.linspace(0, 12, 61), (0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0)
    law = NoisyMeanField(neuron="erf", inverse_temperature=20.0, penalty=0.1, times=(*grid, math.inf))
    limit = law.theory()
    draws = draws_along(law, "times", few, min(width, 1000), seeds)
    for index, (name, label) in enumerate((("free_energy", "free energy $F$"), ("risk", "risk $R$"))):
        theory_line(left, grid, limit[name][:-1], index, label)
        rest, label_of_rest = float(limit[name][-1]), None if index else "at rest"
        left.axhline(rest, color=COLOURS[index], linestyle=":", linewidth=1.2, label=label_of_rest)
        simulation_points(left, few, *mean_and_error(draws[name]), index)
    title = rf"erf neurons, $\beta = 20$, $\lambda = 0.1$, $N = {min(width, 1000)}$"
    finish(left, "time $t$", "free energy $F$, risk $R$", title)
    theta, times = np.linspace(-3.2, 3.2, 400), (0.0, 1.0, 3.0, 12.0)
    states = noisy_weights(law, width, times)
    for index, time in enumerate(times):
        theory_line(right, theta, law.density(theta, time), index, f"$t = {time:g}$")
        _histogram_points(right, states[index], np.linspace(-3.2, 3.2, 33), index)
    theory_line(right, theta, law.density(theta, math.inf), 6, "Boltzmann law", linestyle="--", linewidth=1.5)
    finish(right, r"weight $\theta$", r"density $\rho$", rf"teacher at $\theta_* = 2$, $N = {width}$")
    return figure


def noisy_weights(law: NoisyMeanField, width: int, times: Any, seed: int = 0) -> Array:
    """Return the weights of noisy erf neurons over time, shape (times, width).

    >>> noisy_weights(NoisyMeanField(neuron="erf"), 5, [0.0, 0.2]).shape
    (2, 5)
    """
    rng = np.random.default_rng(seed)
    network = ScalarNetwork.of("erf", "erf", float(np.sum(law.teacher)), spacing=0.2)
    start = law.start_mean + law.start_std * rng.standard_normal(width)
    paths = langevin(rng, start, lambda w: network.velocity(w) - 2 * law.penalty * w, law.inverse_temperature, times, 0.1)
    return np.array(list(paths))


def mean_field_width(quick: bool = True) -> Figure:
    """Draw the risk over time for two widths, and its gap from the limit against the width."""
    law = MeanFieldParticles(target_function="sin", teacher_weight=1.5, start_mean=-0.5, start_std=0.7)
    figure, (left, right) = new_figure(columns=2)
    grid = np.linspace(0, 4, 41)
    rule = (law.activation, law.target_function, law.teacher_weight)
    along(left, law, "times", "risk", grid, index=6, label=r"limit $N = \infty$", linewidth=2.5)
    for index, width in ((5, 10), (1, 160)):
        for run in range(8):
            start = law.start_mean + law.start_std * np.random.default_rng([run, width]).standard_normal((1, width))
            risk = flow_risks(start, *rule, grid)[0]
            label = f"$N = {width}$, 8 networks" if run == 0 else None
            left.plot(grid, risk, color=COLOURS[index], linewidth=1.0, alpha=0.9, label=label)
    finish(left, y_label="risk $R_N$", title="the time of decay does not depend on $N$")
    widths, draws = np.array([10, 20, 40, 80, 160, 320]), 100 if quick else 1000
    for index, time in enumerate((0.4, 2.0)):
        limit = float(law.replace(times=time).theory().risk)
        theory_line(right, widths, law.rms_gap(widths, time), index, f"predicted, $t = {time:g}$")
        squares = []
        for width in widths:
            start = law.start_mean + law.start_std * np.random.default_rng([int(width), 7]).standard_normal((draws, width))
            squares.append((flow_risks(start, *rule, np.array([time]))[:, 0] - limit) ** 2)
        mean, error = mean_and_error(squares, axis=1)
        simulation_points(right, widths, np.sqrt(mean), error / (2 * np.sqrt(mean)), index)
    title = f"fluctuation and bias over {draws} networks"
    finish(right, "neurons $N$", r"root mean square of $R_N - R$", title, xscale="log", yscale="log")
    return figure


def output_scale(quick: bool = True) -> Figure:
    """Draw displacement, kernel change and distance to the linearised network against the output scale, for three starts."""
    figure, panels = new_figure(columns=3, width=4.3)
    scales, few, runs = np.geomspace(0.5, 100, 8 if quick else 10), np.geomspace(0.5, 100, 6), 3 if quick else 20
    names = {
        "weight_displacement": "rms displacement of the weights",
        "kernel_change": "relative change of the kernel",
        "linearisation_distance": "distance to the linearised residuals",
    }
    for index, start in enumerate(("generic", "paired", "signs")):
        law = OutputScale(initialisation=start, times=2.0)
        if start != "signs":  # independent signs and pairs have the same limit
            along(panels, law, "scale", list(names), scales, index=index, label=f"{start}, limit")
        along(panels, law, "scale", list(names), (), few, size=400, seeds=runs, index=index, label=f"{start}, $N = 400$")
    for axes, label in zip(panels, names.values(), strict=True):
        finish(axes, r"output scale $\alpha$", label, yscale="log", legend=axes is panels[0])
    panels[1].set_title(r"$t = 2$, neurons $\tanh(\langle w, x\rangle + 0.7)$")
    return figure


def weight_animation(
    path: str | Path, *, separation: float = 0.8, width: int = 400, horizon: float = 8.0, frames: int = 60, seed: int = 0
) -> Path:
    """Write an animation of the lengths of the weights under SGD, with the density of the mean-field equation.

    Parameters
    ----------
    path
        File to write. A name that ends in .gif gives a GIF, a name that ends in .html a page with controls.
    separation, width, seed
        Separation of the two Gaussians, number of neurons, and seed of the run.
    horizon, frames
        Last time, and number of pictures. They are evenly spaced in the square root of time, because changes are fastest early.
    """
    from matplotlib.animation import FuncAnimation, PillowWriter
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    target = Path(path)
    if target.suffix not in (".gif", ".html"):
        raise ValueError(f"path = {str(path)!r} is not allowed: must end in .gif or .html")
    law, times = TwoGaussians(separation=separation), horizon * np.linspace(0, 1, frames) ** 2
    paths, weights = law.radii(times)
    radii = sgd_radii(law, width, 0.02, times, seed)
    figure, (axes,) = new_figure(width=5.6, height=3.8)
    FigureCanvasAgg(figure)
    edges = np.linspace(0, 1.05 * float(max(radii.max(), paths.max())), 90)

    def draw(frame: int) -> tuple[Any, ...]:
        axes.clear()
        axes.hist(radii[frame], edges.tolist(), density=True, color=COLOURS[5], alpha=0.7, label=f"SGD, $N = {width}$")
        theory_line(axes, *radius_density(paths[frame], weights), 1, "mean-field equation")
        finish(
            axes, "length $r$ of a weight", "density", rf"$\Delta = {separation:g}$, $t = {times[frame]:.2f}$", ylim=(0, 6)
        )
        return ()

    animation = FuncAnimation(figure, draw, frames=frames, interval=80)
    if target.suffix == ".html":
        target.write_text(animation.to_jshtml(fps=12), encoding="utf-8")
    else:
        animation.save(target, writer=PillowWriter(fps=12), dpi=70)
    return target


# -- landscapes ---------------------------------------------------------------------------------------------------


def cone_flow(quick: bool = True) -> Figure:
    """Draw the risk over time from positive second layers and from both signs, and the value at which positive starts end."""
    figure, (left, right) = new_figure(columns=2)
    times = np.geomspace(0.5, 200, 16)
    for index, signs in enumerate(("positive", "both")):
        law = ConeFlow(angle=2.0, signs=signs)
        for seed in range(2):
            risks = [law.risk_at(law.draw(20, seed), t) for t in times]
            kind = "positive second layer" if signs == "positive" else "both signs"
            label = f"descent, {kind}, two starts" if seed == 0 else None
            simulation_points(left, times, risks, None, index, label, linestyle="-", linewidth=0.8)
    value, zero = cone_risk(2.0, 200, 2000), float(ConeFlow(angle=2.0).theory().zero_risk)
    theory_line(left, [0.5, 200], [value, value], 0, "non-negative least squares")
    theory_line(left, [0.5, 200], [zero, zero], 6, "risk of the network 0", linestyle="--", linewidth=1.2)
    title = r"$N = 20$ neurons, angle $\theta = 2$"
    finish(left, "time $t$", "risk $R$", title, xscale="log", yscale="log", ylim=(1e-6, 1), legend=False)
    left.legend(loc="lower left", fontsize=11, frameon=False)
    names = {
        "risk": "end of positive starts",
        "lower_bound": r"$\mathbb{E}\,\min(y,0)^2$",
        "zero_risk": r"$\mathbb{E}\,y^2$",
    }
    along(right, ConeFlow(inputs=100, directions=1000), "angle", names, np.linspace(0.1, np.pi, 32))
    few, law = (0.6, 1.2, 2.0, 2.6), ConeFlow(inputs=100)
    along(right, law, "angle", "risk", (), few, size=20, seeds=1, label="descent, $N = 20$")
    finish(right, r"angle $\theta$ between the teacher's neurons", title="where positive starts end")
    return figure


def noisy_sgd(quick: bool = True) -> Figure:
    """Draw the excess regularised risk of noisy SGD against its step and against the inverse temperature."""
    figure, (left, right) = new_figure(columns=2)
    base = NoisyMeanField(neuron="linear", dimension=3, inverse_temperature=20.0, penalty=0.2, teacher=(1.0, -0.5, 0.5))
    least, runs = 0.2 * 1.5 / 1.2, 12 if quick else 60

    def measured(law: NoisyMeanField, neurons: int, step: float) -> list[float]:
        problem = (law.teacher, neurons, 0.2, law.inverse_temperature, step, 120.0)
        return [regularised_risk(np.random.default_rng(seed), *problem) - least for seed in range(runs)]

    steps, few = np.geomspace(1e-3, 0.1, 120), (0.005, 0.02, 0.05)
    for index, neurons in enumerate((1, 5, 50)):
        theory_line(left, steps, [base.sgd_excess(float(e), neurons) for e in steps], index, f"$N = {neurons}$")
        simulation_points(left, few, *mean_and_error([measured(base, neurons, e) for e in few], axis=1), index)
    left.axhline(0.075, color=COLOURS[6], linestyle="--", linewidth=1.5, label=r"$D/2\beta$")
    label = "excess regularised risk $J - J_*$"
    finish(left, r"step $\varepsilon$", label, r"$\beta = 20$, $D = 3$, $\lambda = 0.2$", xscale="log")
    betas, few = np.geomspace(2, 300, 120), (5.0, 20.0, 80.0)
    theory_line(right, betas, 1.5 / betas, 6, r"$D/2\beta$", linestyle="--")
    for index, step in enumerate((0.02, 0.005)):
        laws = [base.replace(inverse_temperature=float(beta)) for beta in betas]
        theory_line(right, betas, [law.sgd_excess(step, 20) for law in laws], index, rf"$\varepsilon = {step:g}$")
        draws = [measured(base.replace(inverse_temperature=beta), 20, step) for beta in few]
        simulation_points(right, few, *mean_and_error(draws, axis=1), index)
    finish(right, r"inverse temperature $\beta$", label, "$N = 20$", xscale="log", yscale="log")
    return figure


ANIMATIONS = {"two-gaussians": weight_animation}


def neuron_means(quick: bool = True) -> Figure:
    """Draw gaps of means over N neurons from their limit against N, and their constant against the length of the time."""
    figure, (left, right) = new_figure(columns=2)
    flow = NeuronFlow.draw(0)
    sizes = ((25, 200), (100, 100), (400, 40)) if quick else ((25, 600), (100, 300), (400, 120), (1600, 60))
    limit = flow.limit(1.0, RECORDED, 1024 if quick else 4096)
    results = np.array([neuron_gaps(flow, limit, size, draws) for size, draws in sizes])  # sizes x 2 x horizons x functions
    widths = np.array([float(size) for size, _ in sizes])
    labels = ("risk", r"$\tanh a$", r"$\min(|w|, 3)$", r"$\cos\langle u, \theta\rangle$")
    for j in range(len(FUNCTIONS)):
        gaps, errors = results[:, 0, -1, j], results[:, 1, -1, j]
        simulation_points(left, widths, gaps, errors, j, labels[j])
        theory_line(left, widths, np.exp(np.mean(np.log(gaps * np.sqrt(widths)))) / np.sqrt(widths), j, linestyle=":")
    names = (
        "number of neurons $N$",
        "largest gap up to $T = 8$, root mean square",
        "gaps from the limit (dotted: $N^{-1/2}$)",
    )
    finish(left, *names, xscale="log", yscale="log")
    left.set_xticks(widths, [f"{width:g}" for width in widths])
    grid = np.linspace(0, HORIZONS[-1], 100)
    theory_line(right, grid, SMALL * np.sqrt(np.cosh(2 * flow.growth() * grid)), 1, r"$s\,\sqrt{\cosh 2cT}$, small start")
    values, bars = saddle_constants(flow, 25, 200 if quick else 3000)
    simulation_points(right, HORIZONS, values, bars, 1, r"$\tanh a$, small start, $N = 25$")
    scale = math.sqrt(widths[-1])
    order_one, bars_one = (scale * part for part in results[-1, :, :, 1])
    simulation_points(right, HORIZONS, order_one, bars_one, 0, rf"$\tanh a$, start of order 1, $N = {widths[-1]:g}$")
    title = "growth with the length of time"
    finish(right, "length of the time $T$", r"gap times $N^{1/2}$", title, yscale="log", ylim=(2e-5, 6))
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "neuron-means": neuron_means,
    "two-gaussians": two_gaussians,
    "free-energy": free_energy,
    "mean-field-width": mean_field_width,
    "output-scale": output_scale,
    "cone-flow": cone_flow,
    "noisy-sgd": noisy_sgd,
}

ITEMS = {
    "two-gaussians": ("M-6",),
    "free-energy": ("M-8",),
    "mean-field-width": ("M-4", "M-5"),
    "output-scale": ("M-20",),
    "cone-flow": ("M-7", "M-10"),
    "noisy-sgd": ("M-9",),
}
"""Items of the lecture notes that the figures cover."""
