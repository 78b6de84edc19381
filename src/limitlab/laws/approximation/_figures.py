"""Figures of approximation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from limitlab._core.draws import mean_and_error
from limitlab.laws.approximation._claims import (
    GREEDY_SCALE,
    aligned_risk,
    closing,
    exponential_spectrum,
    greedy_problem,
    least_squares_errors,
    relu_risks,
    sgd_path,
    shifted_tanh,
    spectra_of,
)
from limitlab.laws.approximation._frank_wolfe import frank_wolfe, largest_norm
from limitlab.laws.approximation.exact import unexplained_exact
from limitlab.laws.approximation.fixed_dimension import explicit_weights_error, fixed_dimension_constant
from limitlab.laws.approximation.quadratic import QuadraticTarget
from limitlab.laws.approximation.sampled_measure import SampledMeasure
from limitlab.laws.approximation.staircase import Staircase
from limitlab.laws.approximation.step import decoupled_step, degree_two_step, step_strength
from limitlab.laws.approximation.tangent_interpolation import TangentInterpolation, tangent_rank
from limitlab.models.activations import Activation, hermite, moments
from limitlab.models.data import sphere
from limitlab.plotting.along import along, draws_along
from limitlab.plotting.style import COLOURS, MARKERS, finish, legend_of_styles, new_figure, simulation_points, theory_line

# -- approximation ------------------------------------------------------------------------------------------------

Array = NDArray[np.float64]


def staircase(quick: bool = True) -> Figure:
    """Error of random features, tangent features and a kernel against log N / log d, for a target with equal parts of degrees 1 to 3."""
    figure, axes = new_figure(columns=3, width=4.3)
    dimensions = (10, 20, 40) if quick else (20, 40, 80)
    largest = dict.fromkeys(("rf", "nt", "kernel_ridge"), 400 if quick else 2000)
    titles = dict(
        rf="random features", nt="tangent features", kernel_ridge=r"kernel ridge regression, $\tau = 0.1$, $\lambda = 0.1$"
    )
    for panel, (model, title) in zip(axes, titles.items(), strict=True):
        for index, d in enumerate(dimensions):
            _staircase_curve(panel, Staircase(model=model, dimension=d, **_EQUAL), index, largest[model])
        for level in range(4):
            panel.axhline(level / 3, color="grey", linewidth=0.7, linestyle=":")
        for step in (
            (1, 2) if model == "nt" else (1, 2, 3)
        ):  # degree `step`, or `step` + 1 for tangent features, is learned here
            panel.axvline(step, color="grey", linewidth=0.7, linestyle="--")
        name = r"$\log n/\log d$" if model == "kernel_ridge" else r"$\log N/\log d$"
        top = 1.4 if model == "kernel_ridge" else 1.08
        if model == "rf":
            legend_of_styles(panel, "equivalent", "drawn")
        finish(panel, name, "error over the target's variance", title, ylim=(-0.03, top), legend=model != "rf")
    axes[0].legend(loc="lower left", fontsize=11, frameon=False)
    return figure


_EQUAL = dict(activation=shifted_tanh, degrees=(1, 2, 3), signal_energy=(1 / 3, 1 / 3, 1 / 3), noise=0.1, ridge=0.1)


def _staircase_curve(axes: Axes, law: Staircase, index: int, largest: int) -> None:
    """Draw the law as a line and exact errors of a few drawn sets of neurons or inputs as points."""
    d = law.dimension
    name = "samples" if law.model == "kernel_ridge" else "width"
    line = np.unique(np.round(np.geomspace(1, d**3.5, 160)))
    theory_line(axes, np.log(line) / np.log(d), _error(law.evaluate(**{name: line})), index, f"$d = {d}$")
    most = largest // d if law.model == "nt" else largest
    few = np.unique(np.round(np.geomspace(dict(rf=1, nt=3, kernel_ridge=2)[law.model], most, 8)).astype(int))
    estimates = []
    for count in few.tolist():
        each = law.replace(**{name: count})
        estimates.append(
            mean_and_error([_error(each.experiment(d, seed)) for seed in range(8 if count < 0.3 * most else 2)])
        )
    mean, error = np.transpose(estimates)
    simulation_points(axes, np.log(few) / np.log(d), mean, error, index)


def _error(values: dict[str, Array]) -> Array:
    """Return the relative error of the target with equal parts of three degrees."""
    return np.asarray(values["excess_risk"] if "excess_risk" in values else values["unexplained"].mean(axis=-1))


def tangent_step(quick: bool = True) -> Figure:
    """Unexplained share of quadratic forms for tangent features of N ~ d ReLU neurons, as limit, equivalent and exact values."""
    figure, (left, right) = new_figure(columns=2)
    gamma = step_strength("relu")
    psi = np.linspace(0.01, 2.5, 120)
    theory_line(left, psi, [degree_two_step(x, gamma) for x in psi], 0, "limit, double integral")
    theory_line(left, psi, [decoupled_step(x, gamma) for x in psi], 1, "decoupled equivalent", linestyle="--")
    theory_line(left, psi, np.maximum(1 - psi, 0) ** 2, 2, r"quadratic activation, $(1-\psi)_+^2$", linestyle=":")
    sizes = (12, 24) if quick else (12, 24, 40)
    ratios, seeds = (0.25, 0.5, 1.0, 2.0), 6 if quick else 12
    for index, d in enumerate(sizes):
        simulation_points(left, ratios, *_step_values(d, ratios, seeds), index + 3, f"drawn neurons, $d = {d}$")
    finish(left, r"$\psi = N/d$", "unexplained share $r_2$", "tangent features of ReLU")

    dimensions = np.array((8, 12, 18, 28) if quick else (8, 12, 18, 28, 40))
    mean, error = np.array([np.ravel(_step_values(d, (0.5,), 2 * seeds)) for d in dimensions.tolist()]).T
    simulation_points(right, 1 / dimensions, mean, error, 3, r"drawn neurons, $\psi = 1/2$")
    laws = [Staircase(model="nt", dimension=d, width=round(d / 2), degrees=2) for d in dimensions.tolist()]
    shares = [float(law.theory().unexplained) for law in laws]
    theory_line(right, 1 / dimensions, shares, 1, "equivalent at this $d$", linestyle="--")
    theory_line(right, 1 / dimensions, [law.degree_two() for law in laws], 0, "equivalent, corrected")
    limit = degree_two_step(0.5, gamma)
    right.plot([0], [limit], marker="*", markersize=14, color=COLOURS[0], linestyle="", label="limit")
    finish(right, "$1/d$", "unexplained share $r_2$", r"approach to the limit at $\psi = 1/2$", xlim=(-0.004, None))
    return figure


def _step_values(dimension: int, ratios: Sequence[float], seeds: int) -> tuple[Array, Array]:
    """Return the unexplained share of quadratic forms at several ratios N/d, and its standard error over drawn neurons."""
    runs = [
        [
            unexplained_exact(
                sphere(np.random.default_rng(seed), round(ratio * dimension), dimension),
                2,
                "relu",
                "nt",
                highest_degree=None,
            )[0]
            for ratio in ratios
        ]
        for seed in range(seeds)
    ]
    return mean_and_error(runs)


def one_direction(quick: bool = True) -> Figure:
    """Error on a cubic of one direction, for which tangent features need d^2 neurons and a network eight in every dimension."""
    figure, (left, right) = new_figure(columns=2)
    for index, d in enumerate((6, 9, 13) if quick else (6, 9, 13, 17)):
        law = Staircase(model="nt", dimension=d, activation=shifted_tanh, degrees=3)
        widths = np.unique(np.round(np.geomspace(1, 12 * d**2, 80)))
        theory_line(left, widths / d**2, law.evaluate(width=widths)["unexplained"], index, f"$d = {d}$")
        few = np.unique(np.round(np.geomspace(2, (700 if quick else 2200) // d, 6)).astype(int))
        runs = [
            [
                unexplained_exact(sphere(np.random.default_rng(seed), n, d), 3, shifted_tanh, "nt", np.eye(d)[0], None)[0]
                for n in few.tolist()
            ]
            for seed in range(10 if quick else 60)
        ]
        simulation_points(left, few / d**2, *mean_and_error(runs), index)
    legend_of_styles(left, "equivalent at this $d$", "drawn neurons")
    label = r"error over $\mathrm{Var}\,f_*$"
    finish(left, "neurons $N/d^2$", label, "tangent features on $f_* = Q_3(\\langle b, x\\rangle)$", xscale="log")
    dimensions = np.unique(np.round(np.geomspace(5, 3000, 14)).astype(int))
    for index, neurons in enumerate((2, 4, 6, 8)):
        risks = [aligned_risk(d, 3, neurons) for d in dimensions.tolist()]
        theory_line(right, dimensions, risks, index, f"{neurons} neurons along $b$", marker=".")
    finish(right, "dimension $d$", label, "best network of a few neurons, same $f_*$", xscale="log", yscale="log")
    return figure


def quadratic_targets(quick: bool = True) -> Figure:
    """Relative risk against N of random features, tangent features and a trained network, on a target with an exponential spectrum."""
    d = 200 if quick else 600
    B = np.sort(np.random.default_rng(0).exponential(size=d))[::-1]
    figure, (axes,) = new_figure(width=9.6, height=4.8)
    line = np.unique(np.round(np.geomspace(d / 15, 10 * d, 150)))
    few = np.unique(np.round(np.geomspace(d / 15, 10 * d, 9)).astype(int))
    laws = {
        "random features": QuadraticTarget(eigenvalues=B, replicas=1),
        r"random features, $\Gamma \propto B$": QuadraticTarget(eigenvalues=B, feature_covariance=B, replicas=1),
        "tangent features": QuadraticTarget(model="nt", eigenvalues=B, replicas=1),
        "trained network": QuadraticTarget(model="nn", eigenvalues=B),
    }
    along(axes, laws, "width", "relative_risk", line)
    for index, law in enumerate(laws.values()):
        if law.model != "nn":
            fits = [[_one_fit(law.replace(width=n), seed) for seed in range(4 if n < 3 * d else 1)] for n in few.tolist()]
            errors = [float(mean_and_error(runs)[1]) if len(runs) > 1 else 0.0 for runs in fits]
            simulation_points(axes, few, [np.mean(runs) for runs in fits], errors, index)
    low_rank = [n for n in few.tolist() if n < d]
    simulation_points(axes, low_rank, [_best_low_rank(B, n) for n in low_rank], index=3)
    first = laws["random features"]
    floor = 1 - first.trace_fraction()
    corrected = first.evaluate(width=line)["relative_risk"] - 2 * floor * line / d**2
    theory_line(axes, line, corrected, 0, r"random features, minus $2(1-T)N/d^2$", linestyle="--", linewidth=1)
    axes.axhline(floor, color="grey", linewidth=1, linestyle="-.", label="$1 - T$")
    axes.axvline(d, color="grey", linewidth=1, linestyle=":", label="$N = d$")
    title = f"$d = {d}$, exponential spectrum; points: one fit or the mean of four"
    finish(axes, "neurons $N$", r"risk over $\mathrm{Var}\,f_*$", title, xscale="log", ylim=(-0.03, 1.03), legend=False)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=11, frameon=False)
    return figure


def _one_fit(law: QuadraticTarget, seed: int) -> float:
    rng = np.random.default_rng(seed)
    return law.tangent_projection(rng) if law.model == "nt" else law.random_projection(rng)


def _best_low_rank(B: Array, width: int) -> float:
    """Return the relative risk of the network whose neurons are the leading singular vectors of B, written in a random basis."""
    basis = np.linalg.qr(np.random.default_rng(1).standard_normal((B.size, B.size)))[0]
    matrix = basis * B @ basis.T
    values, vectors = np.linalg.eigh(matrix)
    neurons = vectors[:, -width:] * np.sqrt(np.maximum(values[-width:], 0))
    return float(((matrix - neurons @ neurons.T) ** 2).sum() / (B @ B))


POINTS = 200


def quadratic_sgd(quick: bool = True) -> Figure:
    """Risk of one-pass SGD on the quadratic network and of the population flow, with and without negative eigenvalues."""
    d, width = (20, 5) if quick else (40, 10)
    end = 0.3 * d
    figure, axes = new_figure(columns=2)
    for panel, (name, B) in zip(axes, spectra_of(d, width).items(), strict=True):
        law = QuadraticTarget(model="nn", width=width, eigenvalues=B)
        variance, times = law.target_variance(), np.linspace(0, end, POINTS + 1)
        for index in range(3):
            sgd, flow, _ = sgd_path(B, width, index, end, points=POINTS)
            theory_line(panel, times, flow / variance, index, f"population flow, start {index + 1}")
            simulation_points(panel, times[::10], sgd[::10] / variance, index=index)
        legend_of_styles(panel, None, "one pass of SGD")
        panel.axhline(float(law.theory().relative_risk), color="grey", linestyle="--", linewidth=1.5, label="optimum")
        title = f"$d = {d}$, $N = {width}$, {name}"
        finish(panel, r"time $t$ (step $\times$ samples)", r"risk over $\mathrm{Var}\,f_*$", title, yscale="log")
    return figure


def quadratic_relu(quick: bool = True) -> Figure:
    """Relative risk of random features, exact tangent features and trained networks with ReLU neurons on a quadratic target."""
    d, seeds, steps = (16, 4, 1500) if quick else (24, 4, 6000)
    figure, (axes,) = new_figure(width=7.0)
    law, label = QuadraticTarget(eigenvalues=exponential_spectrum(d), activation="relu"), "random features, limit"
    along(axes, law, lambda ratio: {"width": ratio * d}, "relative_risk", np.geomspace(0.1, 2, 60), label=label)
    widths = np.maximum(1, np.round(d * np.array([0.125, 0.25, 0.5, 1.0, 1.5]))).astype(int)
    tests = 250 if quick else 500
    runs = [[relu_risks(d, width, seed, steps, tests) for seed in range(seeds)] for width in widths.tolist()]
    for index, name in enumerate(("random features", "tangent features", "network")):
        mean, error = mean_and_error([[run[name] for run in row] for row in runs], axis=1)
        axes.plot(widths / d, mean, color=COLOURS[index], linewidth=0.8, linestyle=":" if index else "none")
        simulation_points(axes, widths / d, mean, error, index, f"{name}, $d = {d}$")
    title = "ReLU neurons, exponential spectrum (dotted: only simulated)"
    labels = ("neurons per dimension $N/d$", r"risk over $\mathrm{Var}\,f_*$", title)
    finish(axes, *labels, xscale="linear", ylim=(-0.03, 1.05))
    return figure


# -- finite width -------------------------------------------------------------------------------------------------

ACTIVATIONS = {"relu": "ReLU", "square": "square"}


def fixed_dimension(quick: bool = True) -> Figure:
    """Error of N random features on a target of degree 2, with explicit weights at C/N and with least squares below C/N."""
    figure, (axes,) = new_figure()
    rng = np.random.default_rng(0)
    widths, draws = np.array([3, 10, 30, 100, 300] if quick else [3, 10, 30, 100, 300, 1000]), 10 if quick else 60
    for index, d in enumerate((3, 5, 10)):
        theory_line(axes, widths, fixed_dimension_constant(d, 2) / widths, index, f"$C/N$, $d={d}$")
        explicit = [[explicit_weights_error(sphere(rng, int(n), d), 2) for _ in range(20 * draws)] for n in widths[:3]]
        label = "explicit weights" if index == 0 else None
        simulation_points(axes, widths[:3], *mean_and_error(explicit, axis=1), index, label)
        mean, error = mean_and_error([least_squares_errors(rng, int(n), d, draws) for n in widths], axis=1)
        simulation_points(axes, widths, mean, error, index, "least squares" if index == 0 else None, alpha=0.6)
        axes.plot(widths, mean, color=axes.lines[-1].get_color(), linewidth=0.8, linestyle=":")
    title = "target of degree 2, ReLU"
    finish(axes, "random features $N$", "squared error", title, xscale="log", yscale="log", ylim=(1e-5, 300))
    return figure


def greedy(quick: bool = True) -> Figure:
    """Error of independent sampling of a measure, which is C/N, and of the method of Frank and Wolfe, which adds single neurons."""
    figure, (axes,) = new_figure()
    X, neurons, weights = greedy_problem(np.random.default_rng(0))
    law = SampledMeasure(neurons=tuple(map(tuple, neurons.tolist())), weights=tuple(weights.tolist()))
    n, few = np.geomspace(1, 400, 50), np.array([2, 5, 20, 80, 320])
    theory_line(axes, n, float(law.theory().squared_error) / n, 0, "$C/N$, sampled neurons")
    mean, error = mean_and_error(draws_along(law, "size", few, seeds=6 if quick else 40)["squared_error"])
    simulation_points(axes, few, mean / few, error / few, 0)
    steps = 100 if quick else 400
    k = np.arange(1, steps + 1)
    path = frank_wolfe(X, weights @ neurons, GREEDY_SCALE, steps)
    theory_line(axes, k, path.errors[1:], 1, "Frank-Wolfe, one neuron per step")
    theory_line(axes, k, 16 * largest_norm(X, GREEDY_SCALE) ** 2 / (k + 2), 1, "bound for Frank-Wolfe", linestyle=":")
    finish(axes, "neurons $N$", r"$|f_N-f|^2$", "six ReLU neurons, 400 inputs", xscale="log", yscale="log", ylim=(None, 200))
    return figure


def tangent_interpolation(quick: bool = True) -> Figure:
    """Train error of tangent features on pure noise, the eigenvalue that vanishes at N d = n, and the ranks."""
    figure, (left, middle, right) = new_figure(columns=3, width=4.3)
    ratio, few = np.geomspace(0.5, 5, 120), (0.6, 0.8, 0.95, 1.05, 1.25, 2.0, 4.0)
    laws = {f"ReLU, $N={width:g}$": TangentInterpolation(width=width) for width in (10.0, 4.0, 2.0)}
    along(left, laws, "samples_over_parameters", "train_error", ratio, few, size=20, seeds=12 if quick else 40)
    places = np.sort(np.append(few, [0.98, 1.0, 1.02]))
    simulation_points(middle, places, [closing(float(x), 10, 20) for x in places], None, 0)
    middle.axvline(1.0, color="0.3", linewidth=1.0, linestyle=":")
    title = r"ReLU, $N=10$, $d=20$: vanishes at $Nd=n$"
    finish(middle, "samples per weight $n/(Nd)$", r"smallest eigenvalue $\lambda_{\min}$", title, xscale="log", yscale="log")
    finish(left, "samples per weight $n/(Nd)$", title=r"pure noise, $\tau=1$ (points: $d=20$)")
    for axes in (left, middle):
        axes.set_xticks([0.5, 1, 2, 4], ["1/2", "1", "2", "4"])
        axes.set_xticks([], minor=True)
    d, widths = 12, np.arange(1, 13)
    theory_line(right, widths, widths * d, 0, "$Nd$")
    theory_line(right, widths, widths * d - widths * (widths - 1) / 2, 1, "$Nd-N(N-1)/2$")
    for index, (name, words) in enumerate(ACTIVATIONS.items()):
        ranks = [tangent_rank(d, int(n), name) for n in widths[::2]]
        simulation_points(right, widths[::2], ranks, None, index, f"drawn neurons, {words}")
    finish(right, "neurons $N$", "rank of the tangent features", f"full rank for ReLU, $d={d}$")
    return figure


# -- gaussian -----------------------------------------------------------------------------------------------------

ACTIVATIONS_GAUSSIAN = ("relu", "abs", "gelu", "tanh", "erf")


def hermite_series(quick: bool = True) -> Figure:
    """Squared Hermite coefficients of five activations, and the share of their second moment beyond each degree."""
    figure, (left, right) = new_figure(columns=2)
    degrees = np.arange(61 if quick else 121)
    for index, name in enumerate(ACTIVATIONS_GAUSSIAN):
        squares = hermite(Activation(name), int(degrees[-1])) ** 2
        nonzero = (squares > 1e-20) & (degrees > 0)
        style: dict[str, Any] = dict(color=COLOURS[index], marker=MARKERS[index], markersize=4)
        left.plot(degrees[nonzero], squares[nonzero], linewidth=1, label=name, **style)
        whole = moments(Activation(name))
        beyond = 1 - np.cumsum(squares) / (whole.mean**2 + whole.linear**2 + whole.nonlinear**2)
        shown = beyond > 1e-12
        theory_line(right, degrees[shown][1:], beyond[shown][1:], index, name)
    limits: dict[str, Any] = dict(yscale="log", ylim=(1e-12, 2))
    finish(left, "degree $k$", "squared coefficient $u_k^2$", "kinks cause a slow decay", xscale="log", **limits)
    label = r"$1-\sum_{k\leq K}u_k^2\,/\,\mathbb{E}\,s(Z)^2$"
    finish(right, "degree $K$", label, "second moment beyond degree $K$", **limits)
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "staircase": staircase,
    "tangent-step": tangent_step,
    "one-direction": one_direction,
    "quadratic-targets": quadratic_targets,
    "quadratic-sgd": quadratic_sgd,
    "quadratic-relu": quadratic_relu,
    "fixed-dimension": fixed_dimension,
    "frank-wolfe": greedy,
    "tangent-interpolation": tangent_interpolation,
    "hermite-series": hermite_series,
}

ITEMS = {
    "staircase": ("M-13",),
    "one-direction": ("M-14",),
    "quadratic-targets": ("T-8", "T-9"),
    "quadratic-sgd": ("T-10",),
    "quadratic-relu": ("T-12",),
    "fixed-dimension": ("M-15",),
    "frank-wolfe": ("T-1",),
    "tangent-interpolation": ("T-2",),
}
"""Items of the lecture notes that the figures cover."""
