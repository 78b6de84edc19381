"""Figures of uniform convergence."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from limitlab.laws.regression.ridge import Ridge
from limitlab.laws.uniform_convergence.finite_class import FiniteClass
from limitlab.laws.uniform_convergence.rademacher import rademacher_linear, rademacher_two_layer
from limitlab.laws.uniform_convergence.thresholds import ThresholdClass
from limitlab.laws.uniform_convergence.uniform_convergence import UniformConvergence
from limitlab.plotting.style import finish, new_figure, simulation_points, theory_line

# -- networks -----------------------------------------------------------------------------------------------------


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


# -- classes ------------------------------------------------------------------------------------------------------


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


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "uniform-deviation": uniform_deviation,
    "classes": classes,
}
