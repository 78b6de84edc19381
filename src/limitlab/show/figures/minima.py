"""Figures of global minima: four starts on the digits, and five layers with a squared hinge."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from limitlab.laws.descent.least_squares import LeastSquaresDescent
from limitlab.laws.landscapes.double_descent import width_double_descent
from limitlab.laws.landscapes.minima import digits_minima
from limitlab.ledger.minima import STARTS
from limitlab.plotting.style import COLOURS, finish, new_figure, reading_key, simulation_points, theory_line


def global_minima(quick: bool = True) -> Figure:
    """Excess risk of the interpolant that descent finds from a start, and test errors of a network from four starts."""
    figure, (left, right) = new_figure(columns=2)
    start, few, seeds, size = np.linspace(0, 3, 60), (0.0, 0.75, 1.5, 2.25, 3.0), 6 if quick else 40, 120
    for index, ratio in enumerate((1.5, 3.0)):
        law = LeastSquaresDescent(ratio=ratio, noise=0.5, steps=0)
        limits = [float(law.replace(start_distance=float(x)).theory().excess_risk) for x in start]
        theory_line(left, start, limits, index, f"$p/n={ratio:g}$")
        runs = [law.replace(start_distance=x).simulate_batch(size, range(seeds)).excess_risk for x in few]
        errors = [float(run.std(ddof=1)) / math.sqrt(seeds) for run in runs]
        simulation_points(left, few, [float(run.mean()) for run in runs], errors, index)
    finish(
        left, r"start distance $D=|\theta_0-\beta|$", "excess risk of the interpolant", f"least squares (points: $p={size}$)"
    )
    found = [digits_minima(seed=seed) for seed in range(3 if quick else 10)]
    names = ("Gaussian", "fitted to\nrandom labels", "Gaussian,\nfour times larger", "fitted to wrong\nlabels of others")
    for place, name in enumerate(STARTS):
        errors_found = np.array([getattr(one, name) for one in found])
        simulation_points(right, [place], [errors_found.mean()], [errors_found.std(ddof=1) / math.sqrt(len(found))], place)
        right.plot(np.full(len(found), place + 0.18), errors_found, ".", color=COLOURS[place], alpha=0.6)
    reading_key(right, None, "mean over runs")
    right.plot([], [], ".", color="0.4", label="single runs")
    right.set_xticks(range(4), names, fontsize=11)
    right.set_xlim(-0.5, 3.6)
    finish(right, "start", "share of errors on test images", "digits, train loss $<10^{-11}$ in every run", ylim=(0, 0.7))
    return figure


def five_layers(quick: bool = True) -> Figure:
    """Test and train loss of five layers with a squared hinge against the number of parameters."""
    figure, (left, right) = new_figure(columns=2)
    widths, samples, flips, seeds, iterations = (2, 3, 4, 5, 6, 8, 16), 200, 0.2, 6, 120
    if not quick:
        widths, samples, flips, seeds, iterations = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20), 300, 0.1, 6, 300  # type: ignore[assignment]
    found = width_double_descent(widths, samples, flips, depth=5, loss="squared_hinge", seeds=seeds, iterations=iterations)
    ratio = found.parameters_over_samples.values
    low, middle, high = np.quantile(found.test_loss.values, [0.25, 0.5, 0.75], axis=1)
    simulation_points(left, ratio, middle, np.stack([middle - low, high - middle]), 0, "median and quartiles")
    left.plot(ratio, middle, color=COLOURS[0], linewidth=0.8, alpha=0.6)
    done = (found.train_loss < 1e-11).mean("seed").values
    simulation_points(right, ratio, done, np.sqrt(done * (1 - done) / seeds), 1, "mean and standard error")
    right.plot(ratio, done, color=COLOURS[1], linewidth=0.8, alpha=0.6)
    right.set_ylim(-0.05, 1.05)
    for axes in (left, right):
        axes.axvline(1.0, color="0.3", linewidth=1.0, linestyle=":")
    title = f"five layers, $n={samples}$, {flips:.0%} wrong labels"
    finish(left, "parameters per sample $p/n$", r"test loss, mean of $\max(0,1-yf)^2$", title, xscale="log", yscale="log")
    finish(
        right,
        "parameters per sample $p/n$",
        "share of runs that interpolate",
        f"{seeds} starts, {iterations} iterations",
        xscale="log",
    )
    for axes in (left, right):
        axes.set_xticks([0.25, 0.5, 1, 2, 4], ["1/4", "1/2", "1", "2", "4"])
        axes.set_xticks([], minor=True)
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {"global-minima": global_minima, "five-layers": five_layers}
