"""Figures of finitely many neurons: random features at fixed dimension, Frank and Wolfe, interpolation of noise."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from limitlab.laws.approximation.fixed_dimension import explicit_weights_error, fixed_dimension_constant
from limitlab.laws.approximation.frank_wolfe import frank_wolfe, largest_norm
from limitlab.laws.approximation.sampled_measure import SampledMeasure
from limitlab.laws.approximation.tangent_interpolation import TangentInterpolation, tangent_rank
from limitlab.ledger.finite_width import GREEDY_SCALE, closing, greedy_problem, least_squares_errors
from limitlab.models.data import sphere
from limitlab.plotting.style import finish, new_figure, simulation_points, theory_line

ACTIVATIONS = {"relu": "ReLU", "square": "square"}


def fixed_dimension(quick: bool = True) -> Figure:
    """Error of N random features on a target of degree 2: explicit weights at C/N, least squares below."""
    figure, (axes,) = new_figure()
    rng = np.random.default_rng(0)
    widths, draws = np.array([3, 10, 30, 100, 300] if quick else [3, 10, 30, 100, 300, 1000]), 10 if quick else 60
    for index, d in enumerate((3, 5, 10)):
        theory_line(axes, widths, fixed_dimension_constant(d, 2) / widths, index, f"$C/N$, $d={d}$")
        explicit = [[explicit_weights_error(sphere(rng, int(n), d), 2) for _ in range(20 * draws)] for n in widths[:3]]
        errors = np.std(explicit, axis=1, ddof=1) / math.sqrt(20 * draws)
        simulation_points(
            axes, widths[:3], np.mean(explicit, axis=1), errors, index, "explicit weights" if index == 0 else None
        )
        least = [least_squares_errors(rng, int(n), d, draws) for n in widths]
        means = np.array([run.mean() for run in least])
        spread = [run.std(ddof=1) / math.sqrt(draws) for run in least]
        simulation_points(axes, widths, means, spread, index, "least squares" if index == 0 else None, alpha=0.6)
        axes.plot(widths, means, color=axes.lines[-1].get_color(), linewidth=0.8, linestyle=":")
    title = "target of degree 2, ReLU"
    finish(axes, "random features $N$", "squared error", title, xscale="log", yscale="log", ylim=(1e-5, 300))
    return figure


def greedy(quick: bool = True) -> Figure:
    """Independent sampling of a measure at C/N, and the method of Frank and Wolfe, one neuron at a time."""
    figure, (axes,) = new_figure()
    X, neurons, weights = greedy_problem(np.random.default_rng(0))
    law = SampledMeasure(neurons=tuple(map(tuple, neurons.tolist())), weights=tuple(weights.tolist()))
    constant, few, seeds = float(law.theory().squared_error), np.array([2, 5, 20, 80, 320]), 6 if quick else 40
    n = np.geomspace(1, 400, 50)
    theory_line(axes, n, constant / n, 0, "$C/N$, sampled neurons")
    runs = [law.simulate_batch(int(size), range(seeds)).squared_error.values / size for size in few]
    errors = [run.std(ddof=1) / math.sqrt(seeds) for run in runs]
    simulation_points(axes, few, [run.mean() for run in runs], errors, 0)
    steps = 100 if quick else 400
    k = np.arange(1, steps + 1)
    found = frank_wolfe(X, weights @ neurons, GREEDY_SCALE, steps)
    theory_line(axes, k, found.errors[1:], 1, "Frank-Wolfe, one neuron per step")
    theory_line(axes, k, 16 * largest_norm(X, GREEDY_SCALE) ** 2 / (k + 2), 1, "its bound", linestyle=":")
    finish(axes, "neurons $N$", r"$|f_N-f|^2$", "six ReLU neurons, 400 inputs", xscale="log", yscale="log", ylim=(None, 200))
    return figure


def tangent_interpolation(quick: bool = True) -> Figure:
    """Train error of tangent features on pure noise, the eigenvalue that closes at N d = n, and the ranks."""
    figure, (left, middle, right) = new_figure(columns=3, width=4.3)
    ratio, few = np.geomspace(0.5, 5, 120), np.array([0.6, 0.8, 0.95, 1.05, 1.25, 2.0, 4.0])
    seeds = 12 if quick else 40
    for index, width in enumerate((10.0, 4.0, 2.0)):
        law = TangentInterpolation(width=width)
        theory_line(left, ratio, law.evaluate(samples_over_parameters=ratio)["train_error"], index, f"ReLU, $N={width:g}$")
        runs = [law.replace(samples_over_parameters=float(x)).simulate_batch(20, range(seeds)).train_error for x in few]
        errors = [float(run.std(ddof=1)) / math.sqrt(seeds) for run in runs]
        simulation_points(left, few, [float(run.mean()) for run in runs], errors, index)
    places = np.sort(np.append(few, [0.98, 1.0, 1.02]))
    simulation_points(middle, places, [closing(float(x), 10, 20) for x in places], None, 0)
    middle.axvline(1.0, color="0.3", linewidth=1.0, linestyle=":")
    title = r"ReLU, $N=10$, $d=20$: closes at $Nd=n$"
    finish(middle, "samples per weight $n/(Nd)$", r"smallest eigenvalue $\lambda_{\min}$", title, xscale="log", yscale="log")
    finish(left, "samples per weight $n/(Nd)$", "train error", r"pure noise, $\tau=1$ (points: $d=20$)", xscale="log")
    for axes in (left, middle):
        axes.set_xticks([0.5, 1, 2, 4], ["1/2", "1", "2", "4"])
        axes.set_xticks([], minor=True)
    d, widths = 12, np.arange(1, 13)
    theory_line(right, widths, widths * d, 0, "$Nd$")
    theory_line(right, widths, widths * d - widths * (widths - 1) / 2, 1, "$Nd-N(N-1)/2$")
    for index, name in enumerate(("relu", "square")):
        simulation_points(
            right,
            widths[::2],
            [tangent_rank(d, int(n), name) for n in widths[::2]],
            None,
            index,
            f"drawn neurons, {ACTIVATIONS[name]}",
        )
    finish(right, "neurons $N$", "rank of the tangent features", f"full rank for ReLU, $d={d}$")
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "fixed-dimension": fixed_dimension,
    "frank-wolfe": greedy,
    "tangent-interpolation": tangent_interpolation,
}
