"""Figures of uniform convergence."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from matplotlib.figure import Figure

from limitlab.laws.regression.ridge import Ridge
from limitlab.laws.uniform_convergence.finite_class import FiniteClass
from limitlab.laws.uniform_convergence.rademacher import rademacher_linear, rademacher_two_layer
from limitlab.laws.uniform_convergence.thresholds import ThresholdClass
from limitlab.laws.uniform_convergence.uniform_convergence import UniformConvergence
from limitlab.plotting.along import along, draws_along
from limitlab.plotting.style import finish, new_figure, simulation_points, theory_line

# -- networks -----------------------------------------------------------------------------------------------------


def uniform_deviation(quick: bool = True) -> Figure:
    """Draw the largest deviation over a class, the deviation of ridge regression, and Rademacher complexities."""
    figure, (left, right) = new_figure(columns=2)
    law = UniformConvergence(radius=1.0, signal=1.0, noise=0.5)
    names = {"sup_empirical_minus_population": r"$\sup(\hat R-R)$", "sup_population_minus_empirical": r"$\sup(R-\hat R)$"}
    inverse, few = np.geomspace(0.2, 50, 60), (0.3, 1.0, 3.0, 10.0, 30.0)
    along(left, law, lambda x: {"ratio": 1 / x}, names, inverse, few, size=60, seeds=20 if quick else 100)
    ridge = Ridge(ridge=0.1, noise=0.5).evaluate(ratio=1 / inverse)
    theory_line(left, inverse, np.asarray(ridge["test_error"] - ridge["train_error"]), 2, "ridge: test minus train error")
    finish(left, "samples per dimension $n/d$", "difference of risks", r"$|\theta|\leq 1$ (points: $d=60$)", yscale="log")
    n = np.array([50, 100, 200, 400, 800] if quick else [50, 100, 200, 400, 800, 1600])
    rng = np.random.default_rng(0)
    for index, d in enumerate((10, 40)):
        tables = [rng.standard_normal((count, d)) for count in n]
        linear = [rademacher_linear(X, 1.0, 500) for X in tables]
        nets = [rademacher_two_layer(X, 1.0, draws=8 if quick else 40, starts=8) for X in tables]
        for colour, estimates, words in ((index, linear, "linear"), (index + 2, nets, "two layers")):
            value, error = np.array([(estimate.value, estimate.standard_error) for estimate in estimates]).T
            simulation_points(right, n, value, error, colour, f"{words}, $d={d}$")
        theory_line(right, n, np.sqrt(d / n), index, linestyle="-", linewidth=1.2)
        theory_line(right, n, 0.77 * np.sqrt(d / n), index + 2, linestyle=":", linewidth=1.2)
    title = r"lines: $\sqrt{d/n}$, dotted $0.77\sqrt{d/n}$"
    finish(right, "samples $n$", "Rademacher complexity", title, xscale="log", yscale="log")
    return figure


# -- classes ------------------------------------------------------------------------------------------------------


def classes(quick: bool = True) -> Figure:
    """Draw the largest deviation among M models, and the distribution of the largest deviation over all thresholds on the line."""
    figure, (left, right) = new_figure(columns=2)
    models, few = np.unique(np.geomspace(1, 1e5, 60).round()), (1, 10, 100, 1000)
    law, seeds = FiniteClass(error_rate=0.3), 2 if quick else 20
    along(left, law, "models", "largest_deviation", models, label=r"$\int(1-\mathrm{erf}^M)$")
    left.plot(models, np.sqrt(2 * np.log(2 * models)), color="0.3", linestyle=":", linewidth=1.4, label=r"$\sqrt{2\log 2M}$")
    for index, n in enumerate((20, 2000), start=1):
        draws = draws_along(law, "models", few, n, seeds)
        errors = draws["largest_deviation_std"].mean(axis=0) / math.sqrt(400 * seeds)
        simulation_points(left, few, draws["largest_deviation"].mean(axis=0), errors, index, f"$n={n}$")
    finish(left, y_label="largest deviation $D$", title="independent models, $p=0.3$", xscale="log")
    b = np.linspace(0.3, 2.0, 200)
    rng = np.random.default_rng(0)
    noises: dict[Literal["none", "coin"], str] = {"none": "labels without noise: $K$", "coin": r"coin labels: $\pi/(4K)$"}
    for index, (noise, label) in enumerate(noises.items()):
        thresholds = ThresholdClass(label_noise=noise)
        theory_line(right, b, thresholds.cdf(b), index, label)
        worst = np.sort(thresholds.suprema(rng, 6400, 600 if quick else 2000)) * 80.0
        levels = thresholds.quantile(np.linspace(0.1, 0.9, 9))
        share = np.searchsorted(worst, levels, side="right") / len(worst)
        simulation_points(right, levels, share, np.sqrt(share * (1 - share) / len(worst)), index)
    title = "all thresholds on the line (points: $n=6400$)"
    finish(right, r"deviation $b$", r"$P(\sqrt{n}\,\sup|\hat R-R|\leq b)$", title, ylim=(0, 1))
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "uniform-deviation": uniform_deviation,
    "classes": classes,
}

ITEMS = {
    "uniform-deviation": ("L-5", "L-6"),
    "classes": ("L-2", "L-3"),
}
"""Items of the lecture notes that the figures cover."""
