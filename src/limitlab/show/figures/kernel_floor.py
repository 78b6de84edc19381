"""Figure of the floor of kernels and of networks that pass it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from limitlab.lab.compare import compare
from limitlab.lab.extrapolated import extrapolated
from limitlab.laws.regression.kernel_floor import kernel_floor
from limitlab.ledger.kernel_floor import LINEAR, NOISE, REST, feature_learning
from limitlab.plotting.style import finish, new_figure, simulation_points, theory_line


def floor(quick: bool = True) -> Figure:
    """Best excess risk of kernels against samples per dimension, and the two-layer law along its path."""
    figure, (left, right) = new_figure(columns=2)
    ratio = np.geomspace(0.5, 100, 100)
    theory_line(left, ratio, kernel_floor(ratio, LINEAR, REST, NOISE), 0, "best kernel")
    left.axhline(REST, color="0.3", linewidth=1.2, linestyle=":", label="$F_*^2$, its floor")
    widths = (5, 10, 20, 40) if quick else (5, 10, 20, 40, 80)
    best = []
    for index, width in enumerate(widths):
        path = feature_learning(width).replace(solver_steps=150 if quick else 300).theory()
        excess = path.test_error.values - NOISE**2
        best.append(float(excess.min()))
        if width in (10, 20, 40):
            theory_line(right, path.time, excess, index + 1, f"$m={width}$, $n/d={width / 2:g}$")
    theory_line(left, np.array(widths) / 2, best, 1, "two-layer law, best time", marker="o", markersize=4)
    sizes, seeds = ((12, 24), 14) if quick else ((20, 40, 80), 20)
    times = (1.0, 3.0, 5.0, 7.7, 12.0)
    found = compare(feature_learning(10).replace(times=times, solver_steps=150), sizes, seeds, observables=["test_error"])
    risk, errors = extrapolated(found, "test_error")
    ran = ", ".join(str(size) for size in sizes)
    simulation_points(right, times, risk - NOISE**2, errors, 2, f"$m=10$, networks, extrapolated\n($d={ran}$)")
    right.axhline(REST, color="0.3", linewidth=1.2, linestyle=":")
    finish(
        left,
        "samples per dimension $n/d$",
        "excess risk $R$",
        r"best over time; $F_1^2=0.5$, $F_*^2=0.3$, $\tau=0.5$",
        xscale="log",
        ylim=(0, 0.8),
    )
    finish(right, "time $t$", "excess risk $R$", "along training; dotted: floor of kernels", ylim=(0, 0.85))
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {"kernel-floor": floor}
