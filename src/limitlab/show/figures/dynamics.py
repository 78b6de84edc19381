"""Figures of two-layer dynamics: slow growth of the second layer, the time line of learning, networks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from limitlab.lab.compare import compare
from limitlab.lab.extrapolated import extrapolated
from limitlab.laws.dmft.examples import SINGLE_INDEX, single_index, tanh_network
from limitlab.laws.dmft.growth import AdiabaticGrowth
from limitlab.laws.dmft.interpolation import InterpolationTransition
from limitlab.laws.dmft.population import MeanFieldSingleIndex
from limitlab.laws.dmft.two_layer import TwoLayerDynamics
from limitlab.models.activations import Activation
from limitlab.plotting.style import finish, new_figure, reading_key, simulation_points, theory_line


def adiabatic_growth(quick: bool = True) -> Figure:
    """Growth of the second layer on pure noise, and the train error along it against the plateau."""
    figure, (left, right) = new_figure(columns=2)
    slow = np.concatenate([np.geomspace(0.02, 0.3, 16)[:-1], np.linspace(0.3, 4.0, 38)])
    law = AdiabaticGrowth(samples_per_weight=0.5, kernel=(0, 0.5, 0, 0.5), times=tuple(slow))
    curve = law.theory()
    frozen = InterpolationTransition(samples_per_weight=0.5, kernel=(0, 0.5, 0, 0.5))
    widths, steps = ((10, 20), 20) if quick else ((10, 20, 40, 80), 32)  # of the solver up to slow time 4, per width
    for index, width in enumerate(widths):
        for start, style in ((1.0, "-"), (0.5, ":")):
            result = law.replace(start_second_layer=start).finite_width(width, solver_steps=steps * width).theory()
            gamma = result.second_layer / np.sqrt(width)
            theory_line(left, slow, gamma, index, f"$m = {width}$" if start == 1 else None, linestyle=style)
            if start == 1:
                theory_line(right, gamma, result.train_error, index, f"$m = {width}$")
    few, sizes, seeds = (0.5, 1.0, 2.0), (12, 24) if quick else (15, 30, 60), 8 if quick else 20
    net = law.finite_width(10, times=tuple(10 * s for s in few))
    found = compare(net, sizes, seeds, observables=["second_layer", "train_error"])
    mean, error = (part / np.sqrt(10) for part in extrapolated(found, "second_layer"))
    words = f"$m = 10$, networks, extrapolated ($d = {', '.join(map(str, sizes))}$)"
    simulation_points(left, few, mean, error, 0, words)
    simulation_points(right, mean, *extrapolated(found, "train_error"), 0)
    theory_line(left, slow, curve.second_layer, 6, r"limit $m\to\infty$, adiabatic", linestyle="--")
    left.axhline(law.saturation(), color="grey", linewidth=1, linestyle="-.", label=r"end of growth $\gamma_{GF}$")
    early = np.linspace(0, 0.6, 2)
    left.plot(early, law.initial_slope() * early, color="grey", linewidth=1, label=r"slope $\gamma_*$")
    finish(
        left,
        "slow time $s = t/m$",
        r"second layer $\gamma = a/\sqrt{m}$",
        "pure noise, from $a_0 = 1$ (lines) and $1/2$ (dotted)",
        ylim=(0, 1.25),
    )
    grid = np.linspace(0.02, 0.999, 60) * law.saturation()
    theory_line(right, grid, [frozen.residual(float(x)) for x in grid], 6, r"plateau at frozen $\gamma$", linestyle="--")
    finish(right, r"second layer $\gamma$", "train error", "the train error approaches the plateau", ylim=(0, 1.1))
    return figure


def timeline(quick: bool = True) -> Figure:
    """A single-index target for several widths: errors, overlap and second layer against time, mean field beside them."""
    figure, axes = new_figure(columns=2, rows=2)
    widths, sizes, seeds = ((10, 20), (12, 24), 8) if quick else ((10, 20, 40, 80), (15, 30, 60), 20)
    names = (
        ("train_error", "train error"),
        ("test_error", "test error"),
        ("overlap", "overlap $v$"),
        ("second_layer", "second layer $a$"),
    )
    for index, width in enumerate(widths):
        times = np.geomspace(0.2, 6.0 * width, 60)
        law = single_index(width, times=tuple(times), solver_steps=(12 if quick else 36) * width + 200)
        result = law.theory()
        few = np.array([0.5, 2.0, 6.0, 20.0])
        if index == 0:
            found = compare(law.replace(times=tuple(few)), sizes, seeds, observables=[name for name, _ in names])
        for panel, (name, _) in zip(axes, names, strict=True):
            scale = width if name == "train_error" else 1
            theory_line(panel, times / scale, result[name], index, f"$m = {width}$")
            if index == 0:
                simulation_points(panel, few / scale, *extrapolated(found, name), index)
    reading_key(axes[0], None, f"$m = 10$, networks, extrapolated\n($d = {', '.join(map(str, sizes))}$)")
    times = np.geomspace(0.2, 6.0 * widths[-1], 60)
    mean_field = MeanFieldSingleIndex(times=tuple(0.5 * times), **SINGLE_INDEX).theory()
    for panel, (name, label) in zip(axes, names, strict=True):
        if name in mean_field:
            theory_line(panel, times, mean_field[name], 6, "mean field", linestyle="--")
        finish(panel, "slow time $t/m$" if name == "train_error" else "time $t$", label, xscale="log")
    axes[0].set_title("train error: late parts collapse in $t/m$")
    axes[1].set_title("test error: least at $t = O(1)$")
    axes[2].set_title("learning, then unlearning")
    axes[3].set_title("growth at $t = O(m)$")
    return figure


def networks(quick: bool = True) -> Figure:
    """The equations (lines) against networks (points): tanh neurons, which agree, and strongly non-Gaussian ones, which do not."""
    figure, (left, middle, right, last) = new_figure(columns=2, rows=2)
    law = tanh_network(times=(0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0), solver_steps=200)
    size, seeds = (100, 6) if quick else (400, 10)
    names = ("train_error", "test_error", "second_layer", "overlap")
    labels = ("train error", "test error", "second layer $a$", "overlap $v$")
    grid = np.linspace(0, 8, 60)
    theory = law.replace(times=tuple(grid)).theory()
    for index, (name, label) in enumerate(zip(names, labels, strict=True)):
        theory_line(left if index < 2 else middle, grid, theory[name], index, label)
    looks: tuple[tuple[Any, float, str, dict[str, Any]], ...] = (
        ("network", 0.0, "gradient flow", {}),
        ("sgd", 0.0, "SGD", {"markersize": 9, "linestyle": "none", "fmt": "x"}),
    )
    for model, shift, title, look in looks:
        chosen = law.replace(experiment_model=model)
        for index, name in enumerate(names):
            panel = left if index < 2 else middle
            _points(panel, chosen, name, size, seeds, index, None, shift=shift, **look)
        for panel in (left, middle):
            panel.plot([], [], look.get("fmt", "o"), color="0.4", markerfacecolor="white", label=f"{title}, $d = {size}$")
    finish(left, "time $t$", "squared error", r"tanh network, $m = 8$, $n/d = 8$")
    finish(middle, "time $t$", "weights", r"the same network; target $\tanh(2\langle w_*, x\rangle)$")

    skewed = skewed_network(times=(0.5, 1.0, 2.0, 3.0, 4.0, 6.0))
    grid = np.linspace(0, 6, 60)
    theory = skewed.replace(times=tuple(grid)).theory()
    for panel, name, label in zip((right, last), names, labels, strict=False):
        theory_line(panel, grid, theory[name], 6, "equations", linestyle="--")
        for number, d in enumerate((30, 60, 120) if quick else (150, 300, 600)):
            _points(panel, skewed, name, d, 8, number, f"networks, $d = {d}$", shift=0.12 * (number - 1))
        finish(panel, "time $t$", label, "skewed neurons, $m = 4$: a gap that $d$ does not close")
    return figure


def _points(
    panel: Any, law: TwoLayerDynamics, name: str, size: int, seeds: int, index: int, label: Any, **style: Any
) -> None:
    """Mean and standard error of simulated networks, moved to the right by `shift`."""
    runs = _simulated(law, size, seeds)
    shift = style.pop("shift")
    mean, error = runs[name].mean("seed"), runs[name].std("seed", ddof=1) / np.sqrt(seeds)
    simulation_points(panel, np.asarray(law.times) + shift, mean, error, index, label, **style)


@functools.lru_cache(maxsize=8)
def _simulated(law: TwoLayerDynamics, size: int, seeds: int) -> Any:
    return law.simulate_batch(size, range(seeds))


def skewed_network(**changes: Any) -> TwoLayerDynamics:
    """Four neurons with strong quadratic and cubic parts: far from the Gaussian model at any dimension."""
    activation = Activation(
        lambda x: 0.8 * x + 0.5 * (x**2 - 1) + 0.3 * x * (x**2 - 3), derivative=lambda x: 0.8 + x + 0.9 * (x**2 - 1)
    )
    given: dict[str, Any] = dict(
        width=4,
        sample_ratio=4,
        activation=activation,
        target_function=lambda x: x + 0.5 * (x**2 - 1),
        experiment_model="network",
        noise=0.3,
        solver_steps=240,
    )
    return TwoLayerDynamics(**{**given, **changes})


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "adiabatic-growth": adiabatic_growth,
    "two-layer-timeline": timeline,
    "two-layer-networks": networks,
}
