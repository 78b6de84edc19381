"""Figures of the dynamics of two-layer networks."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from limitlab._core.draws import mean_and_error
from limitlab.lab import compare
from limitlab.lab.judging import extrapolated
from limitlab.laws.dmft._transition import Located, follow_decay, late_residual, locate_threshold, relaxation_rate
from limitlab.laws.dmft.examples import SINGLE_INDEX, single_index, tanh_network
from limitlab.laws.dmft.first_order import FirstOrderDynamics
from limitlab.laws.dmft.growth import AdiabaticGrowth
from limitlab.laws.dmft.interpolation import InterpolationTransition
from limitlab.laws.dmft.middle import MiddleRegime
from limitlab.laws.dmft.multi_index import MultiIndexFlow
from limitlab.laws.dmft.population import MeanFieldSingleIndex
from limitlab.laws.dmft.two_layer import TwoLayerDynamics
from limitlab.models.activations import Activation
from limitlab.plotting.along import along, draws_along, predictions_along
from limitlab.plotting.style import COLOURS, finish, legend_of_styles, new_figure, simulation_points, theory_line

# -- dynamics -----------------------------------------------------------------------------------------------------


def adiabatic_growth(quick: bool = True) -> Figure:
    """Growth of the second layer on pure noise, and the train error along the growth compared with the plateau."""
    figure, (left, right) = new_figure(columns=2)
    slow = np.concatenate([np.geomspace(0.02, 0.3, 16)[:-1], np.linspace(0.3, 4.0, 38)])
    law = AdiabaticGrowth(samples_per_weight=0.5, kernel=(0, 0.5, 0, 0.5), times=tuple(slow))
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
    comparison = compare(net, sizes, seeds, observables=["second_layer", "train_error"])
    mean, error = (part / np.sqrt(10) for part in extrapolated(comparison, "second_layer"))
    words = f"$m = 10$, networks, extrapolated ($d = {', '.join(map(str, sizes))}$)"
    simulation_points(left, few, mean, error, 0, words)
    simulation_points(right, mean, *extrapolated(comparison, "train_error"), 0)
    along(left, law, "times", "second_layer", slow, index=6, label=r"limit $m\to\infty$, adiabatic", linestyle="--")
    left.axhline(law.saturation(), color="grey", linewidth=1, linestyle="-.", label=r"end of growth $\gamma_{GF}$")
    early = np.linspace(0, 0.6, 2)
    left.plot(early, law.initial_slope() * early, color="grey", linewidth=1, label=r"slope $\gamma_*$")
    title = "pure noise, from $a_0 = 1$ (lines) and $1/2$ (dotted)"
    finish(left, "slow time $s = t/m$", r"second layer $\gamma = a/\sqrt{m}$", title, ylim=(0, 1.5))
    grid = np.linspace(0.02, 0.999, 60) * law.saturation()
    theory_line(right, grid, [frozen.residual(float(x)) for x in grid], 6, r"plateau at frozen $\gamma$", linestyle="--")
    finish(right, r"second layer $\gamma$", "train error", "the train error approaches the plateau", ylim=(0, 1.1))
    return figure


def timeline(quick: bool = True) -> Figure:
    """Errors, overlap and second layer against time for a single-index target and several widths, with the mean field."""
    figure, axes = new_figure(columns=2, rows=2)
    widths, sizes, seeds = ((10, 20), (12, 24), 8) if quick else ((10, 20, 40, 80), (15, 30, 60), 20)
    names = {
        "train_error": "train error",
        "test_error": "test error",
        "overlap": "overlap $v$",
        "second_layer": "second layer $a$",
    }
    for index, width in enumerate(widths):
        times, few = np.geomspace(0.2, 6.0 * width, 60), np.array([0.5, 2.0, 6.0, 20.0])
        law = single_index(width, times=tuple(times), solver_steps=(12 if quick else 36) * width + 200)
        result = law.theory()
        if index == 0:
            comparison = compare(law.replace(times=tuple(few)), sizes, seeds, observables=list(names))
        for panel, name in zip(axes, names, strict=True):
            scale = width if name == "train_error" else 1
            theory_line(panel, times / scale, result[name], index, f"$m = {width}$")
            if index == 0:
                simulation_points(panel, few / scale, *extrapolated(comparison, name), index)
    legend_of_styles(axes[0], None, f"$m = 10$, networks, extrapolated\n($d = {', '.join(map(str, sizes))}$)")
    mean_field = MeanFieldSingleIndex(times=tuple(0.5 * times), **SINGLE_INDEX).theory()
    titles = (
        "train error: late parts collapse in $t/m$",
        "test error: least at $t = O(1)$",
        "learning, then unlearning",
        "growth at $t = O(m)$",
    )
    for panel, (name, label), title in zip(axes, names.items(), titles, strict=True):
        if name in mean_field:
            theory_line(panel, times, mean_field[name], 6, "mean field", linestyle="--")
        finish(panel, "slow time $t/m$" if name == "train_error" else "time $t$", label, title, xscale="log")
    return figure


def networks(quick: bool = True) -> Figure:
    """The equations (lines) and networks (points) for tanh neurons, which agree, and strongly non-Gaussian neurons, which disagree."""
    figure, (left, middle, right, last) = new_figure(columns=2, rows=2)
    law = tanh_network(times=tuple(np.linspace(0, 8, 60)), solver_steps=200)
    size, seeds = (100, 6) if quick else (400, 10)
    panels = {
        left: {"train_error": "train error", "test_error": "test error"},
        middle: {"second_layer": "second layer $a$", "overlap": "overlap $v$"},
    }
    theory, few = law.theory(), (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
    looks: dict[str, tuple[str, dict[str, Any]]] = {
        "network": ("gradient flow", {}),
        "sgd": ("SGD", {"markersize": 9, "linestyle": "none", "fmt": "x"}),
    }
    draws = {model: draws_along(law.replace(experiment_model=model), "times", few, size, seeds) for model in looks}
    for panel, names in panels.items():
        for index, (name, label) in enumerate(names.items(), 2 * (panel is middle)):
            theory_line(panel, law.times, theory[name], index, label)
            for model, (_, look) in looks.items():
                simulation_points(panel, few, *mean_and_error(draws[model][name]), index, **look)
        for title, look in looks.values():
            panel.plot([], [], look.get("fmt", "o"), color="0.4", markerfacecolor="white", label=f"{title}, $d = {size}$")
    finish(left, "time $t$", "squared error", r"tanh network, $m = 8$, $n/d = 8$")
    finish(middle, "time $t$", "weights", r"the same network; target $\tanh(2\langle w_*, x\rangle)$")

    skewed, errors, places = skewed_network(), ("train_error", "test_error"), np.array([0.5, 1.0, 2.0, 3.0, 4.0, 6.0])
    along((right, last), skewed, "times", errors, np.linspace(0, 6, 60), index=6, label="equations", linestyle="--")
    for index, d in enumerate((30, 60, 120) if quick else (150, 300, 600)):
        values = draws_along(skewed, "times", places, d, seeds=8)
        for panel, name in zip((right, last), errors, strict=True):
            label = f"networks, $d = {d}$"
            simulation_points(panel, places + 0.12 * (index - 1), *mean_and_error(values[name]), index, label)
    for panel, label in ((right, "train error"), (last, "test error")):
        finish(panel, "time $t$", label, "skewed neurons, $m = 4$: a gap that $d$ does not close")
    return figure


def skewed_network(**changes: Any) -> TwoLayerDynamics:
    """Return a law of four neurons with strong quadratic and cubic parts, for which the Gaussian model is wrong at any dimension."""
    activation = Activation(
        lambda x: 0.8 * x + 0.5 * (x**2 - 1) + 0.3 * x * (x**2 - 3), derivative=lambda x: 0.8 + x + 0.9 * (x**2 - 1)
    )
    parameters: dict[str, Any] = dict(
        width=4,
        sample_ratio=4,
        activation=activation,
        target_function=lambda x: x + 0.5 * (x**2 - 1),
        experiment_model="network",
        noise=0.3,
        solver_steps=240,
    )
    return TwoLayerDynamics(**{**parameters, **changes})


# -- first order --------------------------------------------------------------------------------------------------

Floats = NDArray[np.float64]

RATIO, NOISE = 2.0, 0.5

MARKS = slice(0, None, 5)


def _cubic(x: Floats) -> Floats:
    return 0.8 * x + 0.5 / math.sqrt(2) * (x**2 - 1) + 0.3 / math.sqrt(6) * x * (x**2 - 3)


def _cubic_slope(x: Floats) -> Floats:
    return 0.8 + 1 / math.sqrt(2) * x + 0.9 / math.sqrt(6) * (x**2 - 1)


def _cubic_curvature(x: Floats) -> Floats:
    return 1 / math.sqrt(2) + 1.8 / math.sqrt(6) * x


def _bent(u: Floats) -> Floats:
    return u + 0.5 * (u**2 - 1)


def _bent_slope(u: Floats) -> Floats:
    return 1 + u


CUBIC = Activation(_cubic, derivative=_cubic_slope, second_derivative=_cubic_curvature)

BENT = Activation(_bent, derivative=_bent_slope)


@dataclass(frozen=True)
class Curves:
    """Times, results of both theories, draws of gradient descent and their dimension for one network."""

    times: Floats
    exact: xr.Dataset
    gaussian: xr.Dataset
    runs: xr.Dataset
    size: int

    def measured(self, name: str) -> tuple[Floats, Floats]:
        """Return mean and standard error of an observable over the draws."""
        return mean_and_error(self.runs[name])


def beyond_the_gaussian_model(quick: bool = True) -> Figure:
    """Gradient descent of small networks (points), which agrees with the exact equations (lines) and not with the Gaussian model."""
    figure, (left, right) = new_figure(columns=2)
    few, many, paths, steps = ((150, 12), (150, 60), 4000, 30) if quick else ((800, 40), (800, 80), 20000, 40)
    cubic = _curves(dict(width=4, activation=CUBIC, target_function=BENT, start_overlap=0.2), 4.0, paths, few, steps)
    tanh = _curves(dict(width=2, activation="tanh", target_function="tanh", start_overlap=0.1), 8.0, 2 * paths, many, steps)
    _errors(left, cubic)
    finish(left, "time $t$", "squared error", "cubic activation, $m = 4$", ylim=(0, 2.3))
    _deviations(right, tanh)
    finish(right, "time $t$", "train error above the exact one (%)", "tanh, $m = 2$", ylim=(-9, 9))
    return figure


def _curves(network: dict[str, Any], end: float, paths: int, draws: tuple[int, int], steps: int) -> Curves:
    """Return the curves of a network with frozen second layer on the sphere, by both theories and by gradient descent."""
    law = FirstOrderDynamics(
        loss="committee",
        sample_ratio=RATIO,
        noise=NOISE,
        step=RATIO * end / steps,  # gradient flow of the two-layer laws runs n/d times faster
        steps=steps,
        signal_energy=1.0,
        start_norm=1.0,
        sphere=True,
        paths=paths,
        **network,
    )
    times = np.linspace(0, end, steps + 1)
    gaussian = TwoLayerDynamics(
        sample_ratio=RATIO, noise=NOISE, frozen=True, times=tuple(times), solver_steps=120, **network
    )
    return Curves(times, law.theory(), gaussian.theory(), law.simulate_batch(draws[0], range(draws[1])), draws[0])


def _errors(axes: Axes, curves: Curves) -> None:
    for index, (name, label) in enumerate((("test_error", "test error"), ("train_error", "train error"))):
        theory_line(axes, curves.times, curves.exact[name], index, label)
        theory_line(axes, curves.times, curves.gaussian[name], index, linestyle="--", linewidth=1.3)
        mean, error = curves.measured(name)
        simulation_points(axes, curves.times[MARKS], mean[MARKS], error[MARKS], index)
    legend_of_styles(axes, "exact equations", None)
    axes.plot([], [], "--", color="0.4", linewidth=1.3, label="Gaussian model")
    legend_of_styles(axes, None, f"gradient descent, $d = {curves.size}$")


def _deviations(axes: Axes, curves: Curves) -> None:
    """Plot the train error of the Gaussian model and of gradient descent, relative to the exact equations."""
    exact = curves.exact.train_error.values
    mean, error = curves.measured("train_error")
    theory_line(axes, curves.times, 0 * exact, 1, "exact equations")
    gaussian = 100 * (curves.gaussian.train_error.values / exact - 1)
    theory_line(axes, curves.times, gaussian, 1, "Gaussian model", linestyle="--", linewidth=1.3)
    above, bars = 100 * (mean / exact - 1), 100 * error / exact
    simulation_points(axes, curves.times[MARKS], above[MARKS], bars[MARKS], 1, f"gradient descent, $d = {curves.size}$")


# -- interpolation ------------------------------------------------------------------------------------------------

KERNELS: dict[str, tuple[float, ...]] = {
    "$q^2$": (0, 0, 1.0),
    "$q^3$": (0, 0, 0, 1.0),
    "$(q^2+q^3)/2$": (0, 0, 0.5, 0.5),
}


def frozen_layer(quick: bool = True) -> Figure:
    """Train error on pure noise with a frozen second layer at growing widths, whose gap to the limit falls like 1/m."""
    figure, (left, middle, right) = new_figure(columns=3, width=4.3)
    end, steps = 20.0, 160 if quick else 640
    times = tuple(np.geomspace(0.2, end, 40))
    limit = InterpolationTransition(
        samples_per_weight=0.5, kernel=(0, 0.5, 0.3, 0.2), second_layer=0.5, times=times, solver_steps=steps
    )
    wide, widths, gaps = limit.theory().train_error, np.array([10, 20, 40, 80]), []
    for index, width in enumerate(widths):
        curve = limit.finite_width(int(width), solver_steps=2 * steps).theory().train_error
        gaps.append(float(wide[-1] - curve[-1]))
        theory_line(left, times, curve, index, f"$m = {width}$")
    theory_line(left, times, wide, 6, r"limit $m\to\infty$", linestyle="--")
    few, sizes, seeds = (0.5, 2.0, 6.0), (24, 48) if quick else (24, 48, 96), 5 if quick else 30
    comparison = compare(limit.finite_width(10, times=few), sizes, seeds, observables=["train_error"])
    words = f"networks, $m = 10$,\nextrapolated ($d = {', '.join(map(str, sizes))}$)"
    simulation_points(left, few, *extrapolated(comparison, "train_error"), 0, words)
    title = r"pure noise, $\alpha = 0.5,\ \gamma = 0.5$"
    finish(left, "time $t$", "train error", title, xscale="log", yscale="log", ylim=(0.03, 1.2))
    theory_line(middle, widths, gaps, 0, f"gap to the limit at $t = {end:g}$", marker="o")
    theory_line(middle, widths, gaps[-1] * widths[-1] / widths, 6, r"$\propto 1/m$", linestyle="--")
    finish(middle, "width $m$", "gap of the train error", "how fast widths approach the limit", xscale="log", yscale="log")
    middle.set_xticks(widths, [str(width) for width in widths])
    middle.minorticks_off()
    cubic = InterpolationTransition(samples_per_weight=0.3, kernel=(0, 0, 0, 1.0), solver_steps=2 * steps)
    late, few = np.geomspace(0.5, 40.0, 40), (1.0, 4.0, 12.0)
    for index, share in enumerate((0.6, 0.85, 1.0, 1.2, 1.5)):
        law, label = cubic.replace(second_layer=share * cubic.threshold()), rf"$\gamma = {share:g}\,\gamma_{{GF}}$"
        along(right, law, "times", "train_error", late, index=index, label=label)
        if share in (0.6, 1.2):
            comparison = compare(law.replace(times=few), (15, 30), 2 * seeds, observables=["train_error"])
            simulation_points(right, few, *extrapolated(comparison, "train_error"), index)
    legend_of_styles(right, None, "one neuron,\nextrapolated ($d = 15, 30$)")
    finish(
        right, y_label="train error", title=r"limit of large $m$, $h = q^3$, $\alpha = 0.3$", yscale="log", ylim=(1e-7, 2)
    )
    return figure


def threshold_diagram(quick: bool = True) -> Figure:
    """The threshold gamma_GF against alpha in closed form and located from trajectories, and the located value against time."""
    figure, (left, right) = new_figure(columns=2)
    ratios, measured = np.linspace(0.02, 0.95, 100), (0.3, 0.6) if quick else (0.15, 0.3, 0.5, 0.7)
    for index, (label, kernel) in enumerate(KERNELS.items()):
        line = [InterpolationTransition(samples_per_weight=float(ratio), kernel=kernel).threshold() for ratio in ratios]
        theory_line(left, ratios, line, index, rf"$\tilde h =$ {label}, conjecture")
        thresholds = [
            _located(InterpolationTransition(samples_per_weight=ratio, kernel=kernel), quick) for ratio in measured
        ]
        value, error = np.array([(point.value, point.error) for point in thresholds]).T
        simulation_points(left, measured, value, error, index, "located from trajectories" if index == 0 else None)
        law, point = InterpolationTransition(samples_per_weight=0.3, kernel=kernel), thresholds[measured.index(0.3)]
        ends = 0.36 * _end(quick) * 2.0 ** -np.arange(len(point.by_octave) - 1, -1, -1)
        settled = np.array(point.by_octave) / law.threshold()
        right.plot(ends, settled, marker="o", color=left.lines[-1].get_color(), label=rf"$\tilde h =$ {label}")
        limit = np.array([point.value, point.error]) / law.threshold()
        simulation_points(right, [2.0 * 1.15**index * ends[-1]], limit[:1], limit[1:], index)  # beyond the last time
    right.axhline(1.0, color="grey", linewidth=1)
    title = "above the line gradient flow fits noise"
    finish(left, r"samples per parameter $\alpha = n/(md)$", r"threshold $\gamma_{GF}\,/\,\tau$", title)
    title = r"located up to time $t$, $\alpha = 0.3$; far right: extrapolated"
    finish(right, r"time $t\,\gamma_{GF}^2\,\tilde h'(1)$", "located / closed form", title, xscale="log")
    right.minorticks_off()
    right.set_xticks(ends, [f"{end:.3g}" for end in ends])
    return figure


def _end(quick: bool) -> float:
    return 160.0 if quick else 1280.0


def _located(law: InterpolationTransition, quick: bool) -> Located:
    """Locate the threshold from trajectories of equal length in units of the fastest rate gamma^2 h'(1), which is 0.36 at alpha = 0.3."""
    shares = (0.98, 1.01, 1.04, 1.07) if quick else (0.98, 1.0, 1.02, 1.04)
    end = 0.36 * _end(quick) / (law.threshold() ** 2 * law.reduced().h1)
    return locate_threshold(law, end, int((2.5 if quick else 4) * _end(quick)), shares, octaves=5 if quick else 7)


def plateau(quick: bool = True) -> Figure:
    """The limit of the train error at late times, in closed form and extrapolated from trajectories."""
    figure, (left, right) = new_figure(columns=2)
    shares = np.linspace(0.02, 1.0, 80)
    end, points = (
        (160.0, np.array([0.2, 0.4, 0.55, 0.7])) if quick else (2560.0, np.array([0.3, 0.45, 0.6, 0.75, 0.85, 0.9]))
    )
    for index, (label, kernel) in enumerate(KERNELS.items()):
        law = InterpolationTransition(samples_per_weight=0.5 if "/" in label else 0.3, kernel=kernel)
        line = [law.residual(x * law.threshold()) for x in shares]
        theory_line(left, shares, line, index, rf"$\tilde h =$ {label}, conjecture")
        limits = [late_residual(follow_decay(law, x * law.threshold(), end, int(4 * end), 6)) for x in points]
        value, error = np.array([[x.value, x.error] for x in limits]).T
        closed = np.array([law.residual(x * law.threshold()) for x in points])
        simulation_points(left, points, value, error, index)
        shift = 0.008 * (index - 1)
        words = rf"$\tilde h =$ {label}, $\alpha = {law.samples_per_weight}$"
        simulation_points(right, points + shift, value / closed, error / closed, index, words)
    right.axhline(1.0, color="grey", linewidth=1)
    across = r"second layer $\gamma\,/\,\gamma_{GF}$"
    title = "lines: closed form, points: extrapolated trajectories"
    finish(left, across, r"train error as $t\to\infty$", title, yscale="log", ylim=(1e-3, 1.2))
    finish(right, across, "extrapolated / closed form", rf"trajectories to $t = {end:g}$")
    return figure


def relaxation(quick: bool = True) -> Figure:
    """Relaxation time against the distance from the threshold, with the power law of slope 2 as a guide."""
    figure, (axes,) = new_figure()
    law = InterpolationTransition(samples_per_weight=0.3, kernel=(0, 0, 0, 1.0))
    plan = {1.4: 64.0, 1.5: 48.0, 1.6: 36.0, 1.8: 24.0} | (
        {} if quick else {1.1: 900.0, 1.15: 400.0, 1.2: 250.0, 1.3: 110.0}
    )
    shares = np.array(sorted(plan))
    decays = np.array([relaxation_rate(law, share * law.threshold(), plan[share], int(8 * plan[share])) for share in shares])
    rates, drifts = decays.T
    simulation_points(axes, shares - 1, 1 / rates, drifts / rates**2, 0, "late rate of the train error (bar: drift)")
    guide = 1 / rates[-1] * ((shares - 1) / (shares[-1] - 1)) ** -2.0
    theory_line(axes, shares - 1, guide, 6, "slope $-2$ (guide)", linestyle="--")
    title = r"$\tilde h = q^3,\ \alpha = 0.3$; the asymptotic exponent is open"
    finish(axes, r"distance $\gamma/\gamma_{GF} - 1$", r"relaxation time $t_{rel}$", title, xscale="log", yscale="log")
    return figure


# -- further dynamics ---------------------------------------------------------------------------------------------


def universality(quick: bool = True) -> Figure:
    """Norm along gradient descent for Gaussian inputs and signs, with a spread and with a sparse target."""
    figure, (left, right) = new_figure(columns=2)
    law = FirstOrderDynamics(loss="tanh", sample_ratio=2.0, noise=0.3, signal_energy=2.0, step=0.5, steps=20, paths=4000)
    limit, draws, at = law.theory(), 10 if quick else 60, np.arange(0, 21, 4)
    cases: dict[str, dict[str, Any]] = {
        "Gaussian, spread": {},
        "signs, spread": dict(entries="sign"),
        "Gaussian, one coordinate": dict(target_spread=False),
        "signs, one coordinate": dict(entries="sign", target_spread=False),
    }
    batches = [law.replace(**changes).simulate_batch(300, range(draws)).isel(time=at) for changes in cases.values()]
    labels = {"norm": r"norm $|\theta|^2$", "overlap": r"overlap $\langle\theta,\theta_*\rangle$"}
    for axes, (name, label) in zip((left, right), labels.items(), strict=True):
        theory_line(axes, limit.time, limit[name], 6, r"limit, $d\to\infty$", marker=".")
        for index, (words, batch) in enumerate(zip(cases, batches, strict=True)):
            simulation_points(axes, at + 0.25 * (index - 1.5), *mean_and_error(batch[name]), index, words)
        finish(axes, "step $k$", label, r"tanh regression, $n/d = 2$, points: $d = 300$")
    return figure


def multi_index(quick: bool = True) -> Figure:
    """Overlaps with two directions over time, and the gap of networks to their particles against the width."""
    figure, (left, right) = new_figure(columns=2)
    times, few = np.linspace(0, 4, 60), (0.5, 1.0, 2.0, 3.0, 4.0)
    law = MultiIndexFlow(second_layer=1.0, overlaps=((0.3, 0.0),))
    limit = predictions_along(law, "times", times)["overlap"][:, 0]
    mean, error = mean_and_error(draws_along(law, "times", few, 60, 5 if quick else 20)["overlap"][:, :, 0])
    for index in range(2):
        theory_line(left, times, limit[:, index], index, f"direction {index + 1}")
        simulation_points(left, few, mean[:, index], error[:, index], index)
    finish(left, r"population time $\hat t$", "overlap $v$", r"$\varphi = u_1 + u_1u_2$; points: $m = d = 60$")
    sizes = np.array([12, 24, 48, 96] if quick else [12, 24, 48, 96, 192])
    law = MultiIndexFlow(times=(4.0,))
    particles = law.theory()
    batches = [law.simulate_batch(int(m), range(8 if quick else 20)) for m in sizes]
    names = {"second_layer": "second layer", "overlap": "overlap", "test_error": "test error"}
    for index, (name, words) in enumerate(names.items()):
        estimates = [mean_and_error(batch[name]) for batch in batches]
        gaps = [np.abs(mean - particles[name].values).mean() for mean, _ in estimates]
        simulation_points(right, sizes, gaps, [error.mean() for _, error in estimates], index, words)
    theory_line(right, sizes, 1.6 / sizes, 6, r"$\propto 1/m$", linestyle="--")
    title = r"$\hat t = 4$, three particles"
    finish(right, "neurons $m = d$", "mean gap to the particles", title, xscale="log", yscale="log")
    return figure


def middle_regime(quick: bool = True) -> Figure:
    """Second layer over times of order sqrt(m) at several widths, and the energy of the spin model with the threshold energy."""
    figure, (left, right) = new_figure(columns=2)
    x = np.linspace(0.05, 3, 40)
    law = MiddleRegime(kernel=(0.0, 0.5, 0.0, 0.5), x=tuple(x))
    for index, width in enumerate((20, 80, 320) if quick else (20, 80, 320, 1280)):
        curve = law.finite_width(width).theory().second_layer
        theory_line(left, x, curve, index, f"$m = {width}$", linestyle="--", linewidth=1.5)
    along(left, law, "x", "second_layer", x, index=6, label=r"limit $m\to\infty$")
    few, sizes = (0.5, 1.0, 1.5, 2.0), (15, 30, 60)
    comparison = compare(law.replace(x=few), sizes, 20 if quick else 60, observables=["second_layer"])
    words = "Gaussian tensors,\nextrapolated ($d = 15, 30, 60$)"
    simulation_points(left, few, *extrapolated(comparison, "second_layer"), 3, words)
    finish(left, r"$x = \tau\sqrt{\alpha/m}\,t$", title=r"$h = (q+q^3)/2$, $\alpha = 0.5$")
    s = np.geomspace(0.1, 20, 40)
    kernels = {r"$\tilde h = q^3/2$": (0.0, 0.0, 0.0, 0.5), r"$\tilde h = 0.3q^2+0.2q^3$": (0.0, 0.0, 0.3, 0.2)}
    for index, (words, kernel) in enumerate(kernels.items()):
        spins = MiddleRegime(kernel=kernel, solver_steps=16)
        theory_line(right, s, spins.spin_flow(s).energy, index, words)
        right.axhline(spins.threshold_energy(), color=COLOURS[index], linestyle=":", linewidth=1.5)
    finish(right, "clock $s$", "energy $e$", "the spin model behind it; dotted: threshold energies", xscale="log")
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "adiabatic-growth": adiabatic_growth,
    "two-layer-timeline": timeline,
    "two-layer-networks": networks,
    "beyond-gaussian-model": beyond_the_gaussian_model,
    "interpolation-frozen": frozen_layer,
    "interpolation-threshold": threshold_diagram,
    "interpolation-plateau": plateau,
    "interpolation-relaxation": relaxation,
    "universality": universality,
    "multi-index": multi_index,
    "middle-regime": middle_regime,
}

ITEMS = {
    "adiabatic-growth": ("D-17", "D-19"),
    "two-layer-timeline": ("L-20", "D-20", "D-25"),
    "two-layer-networks": ("D-11", "D-21"),
    "beyond-gaussian-model": ("D-5",),
    "interpolation-frozen": ("D-13",),
    "interpolation-threshold": ("D-14",),
    "interpolation-plateau": ("D-14",),
    "interpolation-relaxation": ("D-15",),
    "universality": ("D-10",),
    "multi-index": ("D-9",),
    "middle-regime": ("D-18",),
}
"""Items of the lecture notes that the figures cover."""
