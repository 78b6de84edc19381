"""Figures of the interpolation of pure noise: frozen second layers, the threshold, the plateau below it, relaxation above it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from limitlab.lab.compare import compare
from limitlab.lab.extrapolated import extrapolated
from limitlab.laws.dmft.interpolation import InterpolationTransition
from limitlab.laws.dmft.transition import Located, follow_decay, late_residual, locate_threshold, relaxation_rate
from limitlab.plotting.style import finish, new_figure, reading_key, simulation_points, theory_line

KERNELS: dict[str, tuple[float, ...]] = {
    "$q^2$": (0, 0, 1.0),
    "$q^3$": (0, 0, 0, 1.0),
    "$(q^2+q^3)/2$": (0, 0, 0.5, 0.5),
}


def frozen_layer(quick: bool = True) -> Figure:
    """Train error on pure noise with a frozen second layer: growing widths approach the limit system like 1/m."""
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
    found = compare(limit.finite_width(10, times=few), sizes, seeds, observables=["train_error"])
    ran = ", ".join(str(size) for size in sizes)
    simulation_points(left, few, *extrapolated(found, "train_error"), 0, f"networks, $m = 10$,\nextrapolated ($d = {ran}$)")
    title = r"pure noise, $\alpha = 0.5,\ \gamma = 0.5$"
    finish(left, "time $t$", "train error", title, xscale="log", yscale="log", ylim=(0.03, 1.2))
    theory_line(middle, widths, gaps, 0, f"gap to the limit at $t = {end:g}$", marker="o")
    theory_line(middle, widths, gaps[-1] * widths[-1] / widths, 6, r"$\propto 1/m$", linestyle="--")
    finish(middle, "width $m$", "gap of the train error", "how fast widths approach the limit", xscale="log", yscale="log")
    middle.set_xticks(widths, [str(width) for width in widths])
    middle.minorticks_off()
    cubic = InterpolationTransition(
        samples_per_weight=0.3, kernel=(0, 0, 0, 1.0), times=tuple(np.geomspace(0.5, 40.0, 40)), solver_steps=2 * steps
    )
    some = (1.0, 4.0, 12.0)
    for index, share in enumerate((0.6, 0.85, 1.0, 1.2, 1.5)):
        law = cubic.replace(second_layer=share * cubic.threshold())
        theory_line(right, np.array(cubic.times), law.theory().train_error, index, rf"$\gamma = {share:g}\,\gamma_{{GF}}$")
        if share in (0.6, 1.2):
            found = compare(law.replace(times=some), (15, 30), 2 * seeds, observables=["train_error"])
            simulation_points(right, some, *extrapolated(found, "train_error"), index)
    reading_key(right, None, "one neuron,\nextrapolated ($d = 15, 30$)")
    title = r"limit of large $m$, $h = q^3$, $\alpha = 0.3$"
    finish(right, "time $t$", "train error", title, xscale="log", yscale="log", ylim=(1e-7, 2))
    return figure


def threshold_diagram(quick: bool = True) -> Figure:
    """The threshold gamma_GF against alpha, closed form and located from trajectories; how the located value settles with time."""
    figure, (left, right) = new_figure(columns=2)
    ratios, measured = np.linspace(0.02, 0.95, 100), (0.3, 0.6) if quick else (0.15, 0.3, 0.5, 0.7)
    for index, (label, kernel) in enumerate(KERNELS.items()):
        line = [InterpolationTransition(samples_per_weight=float(ratio), kernel=kernel).threshold() for ratio in ratios]
        theory_line(left, ratios, line, index, rf"$\tilde h =$ {label}, conjecture")
        found = [_located(InterpolationTransition(samples_per_weight=ratio, kernel=kernel), quick) for ratio in measured]
        simulation_points(
            left,
            measured,
            [point.value for point in found],
            [point.error for point in found],
            index,
            "located from trajectories" if index == 0 else None,
        )
        law, point = InterpolationTransition(samples_per_weight=0.3, kernel=kernel), found[measured.index(0.3)]
        ends = 0.36 * _end(quick) * 2.0 ** -np.arange(len(point.by_octave) - 1, -1, -1)
        settled = np.array(point.by_octave) / law.threshold()
        right.plot(ends, settled, marker="o", color=left.lines[-1].get_color(), label=rf"$\tilde h =$ {label}")
        limit = np.array([point.value, point.error]) / law.threshold()
        simulation_points(right, [2.0 * 1.15**index * ends[-1]], limit[:1], limit[1:], index)  # beyond the last time
    right.axhline(1.0, color="grey", linewidth=1)
    finish(
        left,
        r"samples per parameter $\alpha = n/(md)$",
        r"threshold $\gamma_{GF}\,/\,\tau$",
        "above the line gradient flow fits noise",
    )
    finish(
        right,
        r"time $t\,\gamma_{GF}^2\,\tilde h'(1)$",
        r"located / closed form",
        r"located up to time $t$, $\alpha = 0.3$; far right: extrapolated",
        xscale="log",
    )
    right.minorticks_off()
    right.set_xticks(ends, [f"{end:.3g}" for end in ends])
    return figure


def _end(quick: bool) -> float:
    return 160.0 if quick else 1280.0


def _located(law: InterpolationTransition, quick: bool) -> Located:
    """The threshold from trajectories of equal length in units of the fastest rate gamma^2 h'(1), which is 0.36 at alpha = 0.3."""
    shares = (0.98, 1.01, 1.04, 1.07) if quick else (0.98, 1.0, 1.02, 1.04)
    end = 0.36 * _end(quick) / (law.threshold() ** 2 * law.reduced().h1)
    return locate_threshold(law, end, int((2.5 if quick else 4) * _end(quick)), shares, octaves=5 if quick else 7)


def plateau(quick: bool = True) -> Figure:
    """The train error that is left after a long time, closed form and extrapolated from trajectories."""
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
        simulation_points(
            right,
            points + shift,
            value / closed,
            error / closed,
            index,
            rf"$\tilde h =$ {label}, $\alpha = {law.samples_per_weight}$",
        )
    right.axhline(1.0, color="grey", linewidth=1)
    across = r"second layer $\gamma\,/\,\gamma_{GF}$"
    finish(
        left,
        across,
        r"train error as $t\to\infty$",
        "lines: closed form, points: extrapolated trajectories",
        yscale="log",
        ylim=(1e-3, 1.2),
    )
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
    found = np.array([relaxation_rate(law, share * law.threshold(), plan[share], int(8 * plan[share])) for share in shares])
    rates, drifts = found.T
    simulation_points(axes, shares - 1, 1 / rates, drifts / rates**2, 0, "late rate of the train error (bar: drift)")
    guide = 1 / rates[-1] * ((shares - 1) / (shares[-1] - 1)) ** -2.0
    theory_line(axes, shares - 1, guide, 6, "slope $-2$ (guide)", linestyle="--")
    finish(
        axes,
        r"distance $\gamma/\gamma_{GF} - 1$",
        r"relaxation time $t_{rel}$",
        r"$\tilde h = q^3,\ \alpha = 0.3$; the asymptotic exponent is open",
        xscale="log",
        yscale="log",
    )
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "interpolation-frozen": frozen_layer,
    "interpolation-threshold": threshold_diagram,
    "interpolation-plateau": plateau,
    "interpolation-relaxation": relaxation,
}
