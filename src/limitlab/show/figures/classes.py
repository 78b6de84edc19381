"""Figures of classes of classifiers: the worst of many models, thresholds, the perceptron."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from limitlab.laws.classification.perceptron import Perceptron
from limitlab.laws.uniform_convergence.finite_class import FiniteClass
from limitlab.laws.uniform_convergence.thresholds import ThresholdClass
from limitlab.plotting.style import finish, mean_and_error, new_figure, simulation_points, theory_line


def classes(quick: bool = True) -> Figure:
    """The largest deviation among M models, and its distribution over all thresholds on the line."""
    figure, (left, right) = new_figure(columns=2)
    models, few = np.unique(np.geomspace(1, 1e5, 60).round()), np.array([1, 10, 100, 1000])
    law, seeds = FiniteClass(error_rate=0.3), 2 if quick else 20
    theory_line(left, models, law.evaluate(models=models)["largest_deviation"], 0, r"$\int(1-\mathrm{erf}^M)$")
    left.plot(models, np.sqrt(2 * np.log(2 * models)), color="0.3", linestyle=":", linewidth=1.4, label=r"$\sqrt{2\log 2M}$")
    for index, n in enumerate((20, 2000), start=1):
        runs = [law.replace(models=int(number)).simulate_batch(n, range(seeds)) for number in few]
        means = [float(run.largest_deviation.mean()) for run in runs]
        errors = [float(run.largest_deviation_std.mean()) / math.sqrt(400 * seeds) for run in runs]
        simulation_points(left, few, means, errors, index, f"$n={n}$")
    finish(left, "number of models $M$", r"largest deviation $D$", "independent models, $p=0.3$", xscale="log")
    b = np.linspace(0.3, 2.0, 200)
    draws = np.random.default_rng(0)
    for index, (noise, label) in enumerate((("none", "right labels: $K$"), ("coin", r"coin labels: $\pi/(4K)$"))):
        one = ThresholdClass(label_noise=noise)
        theory_line(right, b, one.cdf(b), index, label)
        worst = np.sort(one.suprema(draws, 6400, 600 if quick else 2000)) * 80.0
        levels = one.quantile(np.linspace(0.1, 0.9, 9))
        share = np.searchsorted(worst, levels, side="right") / len(worst)
        simulation_points(right, levels, share, np.sqrt(share * (1 - share) / len(worst)), index)
    finish(
        right,
        r"deviation $b$",
        r"$P(\sqrt{n}\,\sup|\hat R-R|\leq b)$",
        "all thresholds on the line (points: $n=6400$)",
        ylim=(0, 1),
    )
    return figure


def perceptron(quick: bool = True) -> Figure:
    """Mistakes of the perceptron and their bound against the number of features per sample; the margin behind it."""
    figure, (left, right) = new_figure(columns=2)
    ratio, few = np.geomspace(0.6, 8, 80), (0.7, 1.0, 1.5, 2.5, 5.0)
    size, seeds = (100, 6) if quick else (200, 40)
    limit = Perceptron().evaluate(ratio=ratio)
    runs = [Perceptron(ratio=one).simulate_batch(size, range(seeds)) for one in few]
    theory_line(left, ratio, limit["mistake_bound"], 2, r"limit $1/\kappa^2$")
    for index, (name, label) in enumerate((("mistake_bound", r"bound $(R/\kappa)^2/p$"), ("mistakes", "mistakes / $p$"))):
        simulation_points(left, few, *_summary(runs, name), index, f"{label}, $p={size}$")
    inverse = [
        mean_and_error(run.margin.values**-2.0) for run in runs
    ]  # without the longest input, which falls to 1 like log n / p
    mean, error = np.array(inverse).T
    simulation_points(left, few, mean, error, 2, rf"$1/\kappa^2$, $p={size}$")
    finish(
        left, "features per sample $p/n$", "number / dimension $p$", "labels by tossing coins", xscale="log", yscale="log"
    )
    for index, (name, label) in enumerate((("margin", r"margin $\kappa$"), ("support_fraction", r"support $n_{SV}/n$"))):
        theory_line(right, ratio, limit[name], index, label)
        simulation_points(right, few, *_summary(runs, name), index)
    finish(right, "features per sample $p/n$", "margin, share of support vectors", f"points: $p={size}$", xscale="log")
    return figure


def _summary(runs: Sequence[xr.Dataset], name: str) -> tuple[list[float], list[float]]:
    """Means and standard errors of one observable."""
    return [float(run[name].mean()) for run in runs], [
        float(run[name].std(ddof=1)) / math.sqrt(run.sizes["seed"]) for run in runs
    ]


FIGURES: dict[str, Callable[[bool], Figure]] = {"classes": classes, "perceptron": perceptron}
