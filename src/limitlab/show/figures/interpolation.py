"""Figures of the interpolation of pure noise: frozen second layers, the threshold, relaxation above it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from limitlab.laws.dmft.interpolation import InterpolationTransition
from limitlab.laws.dmft.transition import locate_threshold, relaxation_rate
from limitlab.laws.dmft.two_layer import TwoLayerDynamics
from limitlab.show.figures.style import finish, new_figure, simulation_points, theory_line


def frozen_layer(quick: bool = True) -> Figure:
    """F1: train error on pure noise with a frozen second layer: growing widths approach the limit system."""
    figure, (left, right) = new_figure(columns=2)
    kernel, end, steps = (0, 0.5, 0.3, 0.2), 20.0, 160 if quick else 640
    times = tuple(np.geomspace(0.2, end, 40))
    for index, width in enumerate((5, 20, 80)):
        law = TwoLayerDynamics(
            width=width,
            sample_ratio=0.5 * width,
            noise=1.0,
            kernel=kernel,
            start_second_layer=0.5 * np.sqrt(width),
            start_overlap=0.0,
            frozen=True,
            times=times,
            steps=2 * steps,
        )
        theory_line(left, times, law.theory().train_error, index, f"m = {width}")
    limit = InterpolationTransition(ratio=0.5, kernel=kernel, second_layer=0.5, times=times, steps=steps)
    theory_line(left, times, limit.theory().train_error, 6, "limit of large m", linestyle="--")
    finish(left, "time $t$", r"train error", r"$\alpha = 0.5,\ \gamma = 0.5$", xscale="log", yscale="log")
    cubic = InterpolationTransition(
        ratio=0.3, kernel=(0, 0, 0, 1.0), times=tuple(np.geomspace(0.5, 40.0, 40)), steps=2 * steps
    )
    for index, share in enumerate((0.6, 0.85, 1.0, 1.2, 1.5)):
        curve = cubic.replace(second_layer=share * cubic.threshold())
        theory_line(right, np.array(cubic.times), curve.theory().train_error, index, rf"$\gamma = {share:g}\,\gamma_{{GF}}$")
    finish(right, "time $t$", "train error", r"limit of large $m$, $h = q^3$, $\alpha = 0.3$", xscale="log", yscale="log")
    return figure


def threshold_diagram(quick: bool = True) -> Figure:
    """F2: gamma_GF against alpha, closed form as lines, located from trajectories as points."""
    figure, (axes,) = new_figure()
    ratios = np.linspace(0.02, 0.95, 100)
    kernels: dict[str, tuple[float, ...]] = {
        "$q^2$": (0, 0, 1.0),
        "$q^3$": (0, 0, 0, 1.0),
        "$(q^2+q^3)/2$": (0, 0, 0.5, 0.5),
    }
    measured = (0.3,) if quick else (0.15, 0.3, 0.5, 0.7)
    end, steps = (40.0, 240) if quick else (80.0, 640)
    for index, (label, kernel) in enumerate(kernels.items()):
        line = [InterpolationTransition(ratio=float(ratio), kernel=kernel).threshold() for ratio in ratios]
        note = ", conjecture" if "/" in label else ""
        theory_line(axes, ratios, line, index, rf"$\tilde h =$ {label}{note}")
        found = [locate_threshold(InterpolationTransition(ratio=ratio, kernel=kernel), end, steps) for ratio in measured]
        simulation_points(axes, measured, [point.value for point in found], [point.error for point in found], index)
    finish(
        axes,
        r"samples per parameter $\alpha = n/(md)$",
        r"threshold $\gamma_{GF}\,/\,\tau$",
        "above the line gradient flow fits noise",
    )
    return figure


def relaxation(quick: bool = True) -> Figure:
    """F3: relaxation time against the distance from the threshold, with the power law of slope 2 as a guide."""
    figure, (axes,) = new_figure()
    law = InterpolationTransition(ratio=0.3, kernel=(0, 0, 0, 1.0))
    plan = {1.4: 64.0, 1.5: 48.0, 1.6: 36.0, 1.8: 24.0} | ({} if quick else {1.2: 200.0, 1.3: 110.0})
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
    "interpolation-relaxation": relaxation,
}
