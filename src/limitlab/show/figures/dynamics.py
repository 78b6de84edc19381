"""Figures of two-layer dynamics: slow growth of the second layer, the time line of learning, networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from limitlab.laws.dmft.growth import AdiabaticGrowth
from limitlab.laws.dmft.interpolation import InterpolationTransition
from limitlab.laws.dmft.population import MeanFieldSingleIndex
from limitlab.laws.dmft.two_layer import TwoLayerDynamics
from limitlab.show.figures.style import finish, new_figure, simulation_points, theory_line

SINGLE_INDEX: dict[str, Any] = dict(
    kernel=(0, 0.5, 0.3, 0.2), target=(0, 0.5, 0.3), target_norm=1.0, start_second_layer=1.0, start_overlap=0.1, noise=0.5
)


def _growing(width: int, slow: Any, quick: bool) -> TwoLayerDynamics:
    return TwoLayerDynamics(
        width=width,
        sample_ratio=0.5 * width,
        noise=1.0,
        kernel=(0, 0.5, 0, 0.5),
        start_overlap=0.0,
        times=tuple(float(s) * width for s in slow),
        steps=(16 if quick else 32) * width + 160,
    )


def adiabatic_growth(quick: bool = True) -> Figure:
    """F4 and F5: growth of the second layer on pure noise, and the train error along it against the plateau."""
    figure, (left, right) = new_figure(columns=2)
    slow = np.linspace(0.05, 3.0, 40)
    law = AdiabaticGrowth(ratio=0.5, kernel=(0, 0.5, 0, 0.5), times=tuple(slow))
    curve = law.theory()
    frozen = InterpolationTransition(ratio=0.5, kernel=(0, 0.5, 0, 0.5))
    for index, width in enumerate((10, 20) if quick else (10, 20, 40)):
        result = _growing(width, slow, quick).theory()
        gamma = result.second_layer / np.sqrt(width)
        theory_line(left, slow, gamma, index, f"m = {width}")
        theory_line(right, gamma, result.train_error, index, f"m = {width}")
    theory_line(left, slow, curve.second_layer, 6, "adiabatic", linestyle="--")
    left.axhline(law.saturation(), color="grey", linewidth=1)
    left.annotate(r"$\gamma_{GF}$", (2.7, law.saturation()), textcoords="offset points", xytext=(0, -16))
    early = slow[slow < 0.8]
    left.plot(early, law.initial_slope() * early, color="grey", linestyle=":", label=r"slope $\gamma_*$")
    finish(left, "slow time $s = t/m$", r"second layer $\gamma = a/\sqrt{m}$", "pure noise, free second layer")
    grid = np.linspace(0.02, 0.999, 60) * law.saturation()
    theory_line(right, grid, [frozen.residual(float(x)) for x in grid], 6, r"plateau at frozen $\gamma$", linestyle="--")
    finish(right, r"second layer $\gamma$", "train error", "the train error follows the plateau", ylim=(0, 1.1))
    return figure


def timeline(quick: bool = True) -> Figure:
    """F6: a single-index target for several widths: errors, overlap and second layer against time, mean field beside them."""
    figure, axes = new_figure(columns=2, rows=2)
    widths = (10, 20) if quick else (10, 20, 40)
    names = (
        ("train_error", "train error"),
        ("test_error", "test error"),
        ("overlap", "overlap $v$"),
        ("second_layer", "$a$"),
    )
    for index, width in enumerate(widths):
        times = np.geomspace(0.2, 6.0 * width, 60)
        law = TwoLayerDynamics(
            width=width,
            sample_ratio=0.5 * width,
            times=tuple(times),
            steps=(20 if quick else 36) * width + 200,
            **SINGLE_INDEX,
        )
        result = law.theory()
        for panel, (name, _) in zip(axes, names, strict=True):
            theory_line(panel, times, result[name], index, f"m = {width}")
    times = np.geomspace(0.2, 6.0 * widths[-1], 60)
    mean_field = MeanFieldSingleIndex(times=tuple(0.5 * times), **SINGLE_INDEX).theory()
    for panel, (name, label) in zip(axes, names, strict=True):
        if name in mean_field:
            theory_line(panel, times, mean_field[name], 6, "mean field", linestyle="--")
        finish(panel, "time $t$", label, xscale="log")
    axes[0].set_title("collapse at $t \\sim m$")
    axes[1].set_title("least at $t = O(1)$")
    axes[2].set_title("learning, then unlearning")
    return figure


def networks(quick: bool = True) -> Figure:
    """F7: the equations (lines) against tanh networks trained by gradient flow and by stochastic descent (points)."""
    figure, (left, right) = new_figure(columns=2)
    times = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
    law = TwoLayerDynamics(
        width=8,
        sample_ratio=8,
        activation="tanh",
        target_function=_steep_tanh,
        experiment_model="network",
        times=tuple(np.linspace(0, 8, 60)),
        steps=200,
    )
    theory, grid = law.theory(), np.array(law.times)
    size, seeds = (100, 6) if quick else (400, 16)
    for index, (name, label) in enumerate((("train_error", "train error"), ("test_error", "test error"))):
        theory_line(left, grid, theory[name], index, label)
    for index, (name, label) in enumerate((("second_layer", "second layer $a$"), ("overlap", "overlap $v$"))):
        theory_line(right, grid, theory[name], index + 2, label)
    for model, shift in (("network", 0.0), ("sgd", 0.08)):
        runs = law.replace(times=times, experiment_model=model).simulate_batch(size, range(seeds))
        for index, name in enumerate(("train_error", "test_error", "second_layer", "overlap")):
            panel = left if index < 2 else right
            mean, error = runs[name].mean("seed"), runs[name].std("seed", ddof=1) / np.sqrt(seeds)
            legend = f"{'gradient flow' if model == 'network' else 'SGD'}, d = {size}" if index in (0, 2) else None
            simulation_points(
                panel, np.array(times) + shift, mean, error, index, legend, alpha=1.0 if model == "network" else 0.45
            )
    finish(left, "time $t$", "error", r"tanh network, $m = 8$, $n/d = 8$")
    finish(right, "time $t$", "weights", r"target $\tanh(2\langle w_*, x\rangle)$")
    return figure


def _steep_tanh(x: Any) -> Any:
    return np.tanh(2 * x)


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "adiabatic-growth": adiabatic_growth,
    "two-layer-timeline": timeline,
    "two-layer-networks": networks,
}
