"""Figures of uniform convergence and of networks that interpolate images."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from limitlab.laws.landscapes.double_descent import Training, width_double_descent
from limitlab.laws.landscapes.interpolating import WidthDoubleDescent
from limitlab.laws.regression.ridge import Ridge
from limitlab.laws.uniform_convergence.rademacher import rademacher_linear, rademacher_two_layer
from limitlab.laws.uniform_convergence.uniform_convergence import UniformConvergence
from limitlab.models.image_tasks import Images
from limitlab.plotting.style import COLOURS, finish, new_figure, simulation_points, theory_line


def uniform_deviation(quick: bool = True) -> Figure:
    """Largest deviation over a class against what one estimator really does, and Rademacher complexities."""
    figure, (left, right) = new_figure(columns=2)
    law = UniformConvergence(radius=1.0, signal=1.0, noise=0.5)
    inverse = np.geomspace(0.2, 50, 60)
    limits = [law.replace(ratio=float(1 / x)).theory() for x in inverse]
    names = ("sup_empirical_minus_population", "sup_population_minus_empirical")
    labels = (r"$\sup(\hat R-R)$", r"$\sup(R-\hat R)$")
    few, seeds = np.array([0.3, 1.0, 3.0, 10.0, 30.0]), 20 if quick else 100
    runs = [law.replace(ratio=float(1 / x)).simulate_batch(60, range(seeds)) for x in few]
    for index, (name, label) in enumerate(zip(names, labels, strict=True)):
        theory_line(left, inverse, [float(one[name]) for one in limits], index, label)
        means, spread = ([float(getattr(run[name], kind)()) for run in runs] for kind in ("mean", "std"))
        simulation_points(left, few, means, np.array(spread) / math.sqrt(seeds), index)
    ridge = Ridge(ridge=0.1, noise=0.5).evaluate(ratio=1 / inverse)
    theory_line(left, inverse, np.asarray(ridge["test_error"] - ridge["train_error"]), 2, "ridge: test minus train error")
    finish(
        left,
        "samples per dimension $n/d$",
        "difference of risks",
        r"$|\theta|\leq 1$ (points: $d=60$)",
        xscale="log",
        yscale="log",
    )
    n = np.array([50, 100, 200, 400, 800] if quick else [50, 100, 200, 400, 800, 1600])
    rng = np.random.default_rng(0)
    for index, d in enumerate((10, 40)):
        tables = [rng.standard_normal((count, d)) for count in n]
        linear = [rademacher_linear(X, 1.0, 500) for X in tables]
        simulation_points(
            right,
            n,
            [found.value for found in linear],
            [found.standard_error for found in linear],
            index,
            f"linear, $d={d}$",
        )
        theory_line(right, n, np.sqrt(d / n), index, linestyle="-", linewidth=1.2)
        nets = [rademacher_two_layer(X, 1.0, draws=8 if quick else 40, starts=8) for X in tables]
        simulation_points(
            right,
            n,
            [found.value for found in nets],
            [found.standard_error for found in nets],
            index + 2,
            f"two layers, $d={d}$",
        )
        theory_line(right, n, 0.77 * np.sqrt(d / n), index + 2, linestyle=":", linewidth=1.2)
    finish(
        right,
        "samples $n$",
        "Rademacher complexity",
        r"lines: $\sqrt{d/n}$, dotted $0.77\sqrt{d/n}$",
        xscale="log",
        yscale="log",
    )
    return figure


def double_descent(quick: bool = True) -> Figure:
    """Test and train error of two-layer networks on images against the width, with wrong labels."""
    figure, (left, right) = new_figure(columns=2)
    samples, seeds, components = (120, 4, 10) if quick else (300, 8, 10)
    narrow: tuple[int, ...] = (2, 4, 6, 8, 9, 10, 11, 13, 16, 24, 40, 80)
    widths = narrow if quick else (3, 7, 10, 14, 18, 20, 22, 23, 24, 25, 26, 28, 31, 35, 50, 75, 100, 200)
    sets: tuple[Images, ...] = ("digits", "mnist")
    for index, images in enumerate(sets):
        found = width_double_descent(widths, samples, 0.1, seeds=seeds, images=images, components=components)
        ratio = found.parameters_over_samples.values
        for axes, name in ((left, "test_loss"), (right, "train_loss")):
            runs = np.maximum(found[name].values, 1e-16)
            low, middle, high = np.quantile(runs, [0.25, 0.5, 0.75], axis=1)
            bars = np.stack([middle - low, high - middle]) if axes is left else None
            simulation_points(
                axes, ratio, middle, bars, index, f"{images.upper() if images == 'mnist' else images}, $n={samples}$"
            )
            axes.plot(ratio, middle, color=COLOURS[index], linewidth=0.8, alpha=0.6)
        ends = [
            float(
                WidthDoubleDescent(images=images, samples=samples, components=components, flips=0.1, data_seed=seed)
                .theory()
                .excess_risk
            )
            for seed in range(seeds)
        ]
        left.axhline(float(np.mean(ends)), color=COLOURS[index], linestyle="--", linewidth=1.2)
    for axes in (left, right):
        axes.axvline(1.0, color="0.3", linewidth=1.0, linestyle=":")
    finish(
        left,
        "parameters per sample $p/n$",
        "test error (squared)",
        r"median and quartiles (dashed: $N\to\infty$)",
        xscale="log",
        yscale="log",
    )
    finish(right, "parameters per sample $p/n$", "train error", "10 % wrong labels", xscale="log", yscale="log")
    for axes in (left, right):
        axes.set_xticks([0.25, 0.5, 1, 2, 4, 8], ["1/4", "1/2", "1", "2", "4", "8"])
        axes.set_xticks([], minor=True)
    return figure


def ten_classes(quick: bool = True) -> Figure:
    """Ten classes of MNIST: trained to interpolation and by Adam on the same few images, and by Adam on thousands."""
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
        found = width_double_descent(
            widths, samples, 0.2, seeds=seeds, images="mnist", labels="classes", tests=2000, training=training,
            iterations=None if training == "levenberg" else steps,
        )  # fmt: skip
        ratio = found.parameters_over_samples.values
        for axes, name in ((left, "test_loss"), (right, "train_loss")):
            low, middle, high = np.quantile(np.maximum(found[name].values, 1e-16), [0.25, 0.5, 0.75], axis=1)
            bars = np.stack([middle - low, high - middle]) if axes is left and seeds > 1 else None
            simulation_points(axes, ratio, middle, bars, index, label)
            axes.plot(ratio, middle, color=COLOURS[index], linewidth=0.8, alpha=0.6)
    for axes, what in ((left, "test error (squared)"), (right, "train error")):
        axes.axvline(1.0, color="0.3", linewidth=1.0, linestyle=":")
        title = "MNIST, median and quartiles" if axes is left else "ten classes, 20 % wrong labels"
        finish(axes, "parameters per residual $p/(10n)$", what, title, xscale="log", yscale="log")
        axes.set_xticks([0.25, 0.5, 1, 2, 4, 8], ["1/4", "1/2", "1", "2", "4", "8"])
        axes.set_xticks([], minor=True)
    return figure


def random_labels(quick: bool = True) -> Figure:
    """Networks interpolate any share of wrong labels; what it costs on clean images."""
    figure, (left, right) = new_figure(columns=2)
    samples, seeds = (150, 4) if quick else (300, 10)
    shares = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
    widths = [max(1, round(ratio * samples / 12)) for ratio in (0.3, 2.0, 8.0)]
    for index, width in enumerate(widths):
        runs = [width_double_descent([width], samples, float(share), seeds=seeds).isel(width=0) for share in shares]
        label = f"$p/n={(12 * width + 1) / samples:.2g}$"
        wrong = np.array([run.test_classification_error.values for run in runs])
        simulation_points(left, shares, wrong.mean(axis=1), wrong.std(axis=1, ddof=1) / math.sqrt(seeds), index, label)
        train = np.array([np.maximum(run.train_loss.values, 1e-16) for run in runs])
        simulation_points(right, shares, train.mean(axis=1), None, index, label)
    left.plot(shares, shares, color="0.3", linewidth=1.2, linestyle=":", label="share of wrong labels")
    finish(left, "share of wrong training labels", "errors on clean test images", f"digits, $n={samples}$")
    finish(right, "share of wrong training labels", "train error", "interpolation from $p/n = 1$ on", yscale="log")
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "uniform-deviation": uniform_deviation,
    "width-double-descent": double_descent,
    "ten-classes": ten_classes,
    "random-labels": random_labels,
}
