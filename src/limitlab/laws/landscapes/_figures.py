"""Figures of interpolating networks and of landscapes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from limitlab._core.draws import mean_and_error
from limitlab.laws.landscapes._linear_network_training import linear_flow
from limitlab.laws.landscapes.double_descent import Training, width_double_descent
from limitlab.laws.landscapes.hessian import hessian_inertia, hessian_parts
from limitlab.laws.landscapes.interpolating import WidthDoubleDescent
from limitlab.laws.landscapes.linear_network import LinearNetwork, crossing
from limitlab.models.datasets import Images
from limitlab.plotting.along import draws_along, predictions_along
from limitlab.plotting.style import COLOURS, finish, new_figure, simulation_points, theory_line

Array = NDArray[np.float64]

# -- networks -----------------------------------------------------------------------------------------------------


def double_descent(quick: bool = True) -> Figure:
    """Test and train error of two-layer networks on images against the width, with wrong labels."""
    figure, (left, right) = new_figure(columns=2)
    samples, seeds, components = (120, 4, 10) if quick else (300, 8, 10)
    narrow: tuple[int, ...] = (2, 4, 6, 8, 9, 10, 11, 13, 16, 24, 40, 80)
    widths = narrow if quick else (3, 7, 10, 14, 18, 20, 22, 23, 24, 25, 26, 28, 31, 35, 50, 75, 100, 200)
    sets: dict[Images, str] = {"digits": "digits", "mnist": "MNIST"}
    for index, (images, words) in enumerate(sets.items()):
        result = width_double_descent(widths, samples, 0.1, seeds=seeds, images=images, components=components)
        ratio = result.parameters_over_samples.values
        _quartiles(left, ratio, result.test_loss, index, f"{words}, $n={samples}$")
        _quartiles(right, ratio, result.train_loss, index, f"{words}, $n={samples}$", bars=False)
        infinite = WidthDoubleDescent(images=images, samples=samples, components=components, flips=0.1)
        ends = [float(infinite.replace(data_seed=seed).theory().excess_risk) for seed in range(seeds)]
        left.axhline(float(np.mean(ends)), color=COLOURS[index], linestyle="--", linewidth=1.2)
    title = r"median and quartiles (dashed: $N\to\infty$)"
    finish(left, "parameters per sample $p/n$", "test error (squared)", title, xscale="log", yscale="log")
    finish(right, "parameters per sample $p/n$", "train error", "10 % wrong labels", xscale="log", yscale="log")
    _around_one(left, right)
    return figure


def ten_classes(quick: bool = True) -> Figure:
    """Networks on ten classes of MNIST, trained to interpolation and by Adam on the same few images, and by Adam on thousands."""
    figure, (left, right) = new_figure(columns=2)
    few, many, steps = (40, 600, 400) if quick else (100, 4000, 2000)
    ratios = np.array([0.2, 0.5, 0.8, 0.95, 1.1, 1.5, 3.0, 8.0])
    plans: tuple[tuple[str, Training, int, int, float], ...] = (
        (f"to interpolation, $n={few}$", "levenberg", few, 3 if quick else 5, 8.0),
        (f"Adam, $n={few}$", "adam", few, 3 if quick else 5, 8.0),
        (f"Adam, $n={many}$", "adam", many, 1 if quick else 2, 1.5),
    )
    for index, (label, training, samples, seeds, most) in enumerate(plans):
        widths = sorted({max(1, round(ratio * 10 * samples / 21)) for ratio in ratios[ratios <= most]})
        result = width_double_descent(
            widths, samples, 0.2, seeds=seeds, images="mnist", labels="classes", tests=2000, training=training,
            iterations=None if training == "levenberg" else steps,
        )  # fmt: skip
        ratio = result.parameters_over_samples.values
        _quartiles(left, ratio, result.test_loss, index, label, bars=seeds > 1)
        _quartiles(right, ratio, result.train_loss, index, label, bars=False)
    label, title = "parameters per residual $p/(10n)$", "MNIST, median and quartiles"
    finish(left, label, "test error (squared)", title, xscale="log", yscale="log")
    finish(right, label, "train error", "ten classes, 20 % wrong labels", xscale="log", yscale="log")
    _around_one(left, right)
    return figure


def random_labels(quick: bool = True) -> Figure:
    """Train error and errors on clean images of networks that interpolate a share of wrong labels, against this share."""
    figure, (left, right) = new_figure(columns=2)
    samples, seeds = (150, 4) if quick else (300, 10)
    shares = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
    widths = [max(1, round(ratio * samples / 12)) for ratio in (0.3, 2.0, 8.0)]
    for index, width in enumerate(widths):
        runs = [width_double_descent([width], samples, float(share), seeds=seeds).isel(width=0) for share in shares]
        label = f"$p/n={(12 * width + 1) / samples:.2g}$"
        wrong = [run.test_classification_error.values for run in runs]
        simulation_points(left, shares, *mean_and_error(wrong, axis=1), index, label)
        train = [np.maximum(run.train_loss.values, 1e-16).mean() for run in runs]
        simulation_points(right, shares, train, None, index, label)
    left.plot(shares, shares, color="0.3", linewidth=1.2, linestyle=":", label="share of wrong labels")
    finish(left, "share of wrong training labels", "errors on clean test images", f"digits, $n={samples}$")
    finish(right, "share of wrong training labels", "train error", "interpolation from $p/n = 1$ on", yscale="log")
    return figure


# -- landscapes ---------------------------------------------------------------------------------------------------


def linear_network(quick: bool = True) -> Figure:
    """Modes of a linear network, which it learns one after another, and half times of random starts against their scale."""
    figure, (left, right) = new_figure(columns=2)
    law = LinearNetwork(singular_values=(3.0, 2.0, 1.0, 0.5), start=0.001)
    times, few = np.linspace(0, 5, 120), (0.4, 0.8, 1.2, 1.6, 2.4, 3.2, 4.0)
    curves = predictions_along(law, "times", times)["modes"]
    mean, error = mean_and_error(draws_along(law, "times", few, 200, 10 if quick else 40)["modes"])
    for k, s in enumerate(law.singular_values):
        theory_line(left, times, curves[:, k], k, f"$s = {s:g}$")
        simulation_points(left, few, mean[:, k], error[:, k], k)
    finish(left, "time $t$", "strength of a mode $a_k$", "aligned start $a_0 = 0.001$; points: 200 samples")
    scales, size = np.array([1e-4, 1e-3, 1e-2]), len(law.singular_values)
    grid, halves = np.linspace(0, 13, 1300), []
    for seed in range(4 if quick else 20):
        first = np.random.default_rng(seed).standard_normal((2, size, size))
        paths = [linear_flow((e * first[0], e * first[1]), np.diag(law.singular_values), np.eye(size), grid) for e in scales]
        halves.append([[crossing(grid, path[:, k, k], s / 2) for k, s in enumerate(law.singular_values)] for path in paths])
    mean, error = mean_and_error(halves)
    for k, s in enumerate(law.singular_values):
        simulation_points(right, scales, mean[:, k], error[:, k], k)
        theory_line(right, scales, mean[-1, k] + np.log(scales[-1] / scales) / (2 * s), k, f"$s = {s:g}$")
    title = r"lines: slope $\log(100)/(4s)$ per decade"
    finish(right, r"scale $\varepsilon$ of a random start", "half time $t_{1/2}$", title, xscale="log")
    return figure


def hessian_signs(quick: bool = True) -> Figure:
    """Eigenvalues of a network's Hessian at a random start and at interpolation, and the number of negative ones near it."""
    figure, (left, right) = new_figure(columns=2)
    d, width, n = 10, 20, 80
    for index, (words, interpolate) in enumerate((("random start", False), ("interpolation", True))):
        eigenvalues = hessian_inertia(d, width, n, interpolate=interpolate).eigenvalues
        left.plot(np.arange(1, eigenvalues.size + 1), eigenvalues, color=COLOURS[index], label=words)
    left.axvline(width * (d + 1) - n, color="0.4", linestyle=":", linewidth=1.5, label="$p-n$")
    finish(left, "rank of the eigenvalue", "eigenvalue", f"$d={d}$, $N={width}$, $n={n}$, $p={width * (d + 1)}$")
    left.set_yscale("symlog", linthresh=1e-2)
    factors, seeds = np.geomspace(1e-4, 1, 9), range(5 if quick else 10)
    counts = [[hessian_inertia(d, width, n, seed=seed, residual=float(r)).negative for r in factors] for seed in seeds]
    inside = []
    for seed in seeds:
        jacobian, bend = hessian_parts(d, width, n, True, seed, residual=1.0)
        kernel = np.linalg.svd(jacobian)[2][n:]
        inside.append(int(np.sum(np.linalg.eigvalsh(kernel @ bend @ kernel.T) < 0)))
    simulation_points(right, factors, *mean_and_error(counts), 0, "of the Hessian")
    theory_line(right, factors, np.full(factors.size, np.mean(inside)), 1, "of $E$ on the kernel of $J$")
    title = f"close to interpolation, {len(counts)} networks"
    finish(right, "root mean square residual", "number of negative eigenvalues", title, xscale="log")
    right.yaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


# -- minima -------------------------------------------------------------------------------------------------------


def five_layers(quick: bool = True) -> Figure:
    """Test and train loss of five layers with a squared hinge against the number of parameters."""
    figure, (left, right) = new_figure(columns=2)
    widths, samples, flips, seeds, iterations = (2, 3, 4, 5, 6, 8, 16), 200, 0.2, 6, 120
    if not quick:
        widths, samples, flips, seeds, iterations = (2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20), 300, 0.1, 6, 300  # type: ignore[assignment]
    result = width_double_descent(widths, samples, flips, depth=5, loss="squared_hinge", seeds=seeds, iterations=iterations)
    ratio = result.parameters_over_samples.values
    _quartiles(left, ratio, result.test_loss, 0, "median and quartiles", least=-np.inf)
    done = (result.train_loss < 1e-11).mean("seed").values
    simulation_points(right, ratio, done, np.sqrt(done * (1 - done) / seeds), 1, "mean and standard error")
    right.plot(ratio, done, color=COLOURS[1], linewidth=0.8, alpha=0.6)
    right.set_ylim(-0.05, 1.05)
    title = f"five layers, $n={samples}$, {flips:.0%} wrong labels"
    finish(left, "parameters per sample $p/n$", r"test loss, mean of $\max(0,1-yf)^2$", title, xscale="log", yscale="log")
    title = f"{seeds} starts, {iterations} iterations"
    finish(right, "parameters per sample $p/n$", "share of runs that interpolate", title, xscale="log")
    _around_one(left, right, most=4)
    return figure


def _quartiles(
    axes: Axes, ratio: Array, losses: xr.DataArray, index: int, label: str, bars: bool = True, least: float = 1e-16
) -> None:
    """Plot the median over runs with the quartiles as bars; losses below `least` are drawn at `least`."""
    low, middle, high = np.quantile(np.maximum(losses.values, least), [0.25, 0.5, 0.75], axis=1)
    simulation_points(axes, ratio, middle, np.stack([middle - low, high - middle]) if bars else None, index, label)
    axes.plot(ratio, middle, color=COLOURS[index], linewidth=0.8, alpha=0.6)


def _around_one(*panels: Axes, most: int = 8) -> None:
    """Mark one parameter per sample, and label the axis with powers of 2."""
    for axes in panels:
        axes.axvline(1.0, color="0.3", linewidth=1.0, linestyle=":")
        places = [0.25, 0.5, 1, 2, 4, 8][: 5 + (most == 8)]
        axes.set_xticks(places, ["1/4", "1/2", *(str(place) for place in places[2:])])
        axes.set_xticks([], minor=True)


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "width-double-descent": double_descent,
    "ten-classes": ten_classes,
    "random-labels": random_labels,
    "linear-network": linear_network,
    "hessian-inertia": hessian_signs,
    "five-layers": five_layers,
}

ITEMS = {
    "width-double-descent": ("L-8",),
    "ten-classes": ("L-9", "T-3"),
    "random-labels": ("L-11", "T-3"),
    "linear-network": ("M-1",),
    "hessian-inertia": ("J-16",),
    "five-layers": ("L-10", "T-3"),
}
"""Items of the lecture notes that the figures cover."""
