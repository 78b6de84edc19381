"""Figures of the tools for a user's own data."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from limitlab.applied.scaling.fit import scaling_fit
from limitlab.applied.stopping import draw_plans, stopping_table
from limitlab.applied.study_size import sample_size, sample_size_figure
from limitlab.laws.dmft.examples import single_index
from limitlab.plotting.style import (
    COLOURS,
    finish,
    new_figure,
    readable_ticks,
)

# -- forecast -----------------------------------------------------------------------------------------------------


def learning_curves(quick: bool = True) -> Figure:
    """Draw learning curves of digits and diabetes with four kernels.

    Lines are forecasts, dashed beyond N. Points are real fits.
    """
    from limitlab.applied.forecast import Forecast, ForecastWarning, draw_curve
    from limitlab.models.datasets import prepared

    figure, panels = new_figure(columns=4, rows=2, width=3.5, height=3.4)
    splits = 8 if quick else 20
    kernels = (
        ("linear", "linear"),
        ("rbf", "Gaussian"),
        ("relu-nngp", "arc-cosine"),
        ("random-features", "random features"),
    )
    for row, (name, few) in enumerate((("diabetes", (30, 80, 200)), ("digits", (50, 150, 500)))):
        X, y = prepared(name)
        several = panels[4 * row : 4 * row + 4]
        if quick and name == "digits":
            X, y = X[:900], y[:900]
        grid = np.geomspace(15, 4 * len(X), 40)
        for index, (kernel, words) in enumerate(kernels):
            forecast = Forecast(kernel, ridge=0.01, intercept=0.3, width=150 if name == "diabetes" else 400).fit(X, y)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ForecastWarning)
                curve, measured = forecast.learning_curve(grid, baselines=False), forecast.measure(few, splits=splits)
            draw_curve(several[index], curve, measured, index)
            for axes in several:  # curves of the other kernels in grey, without bands
                if axes is not several[index]:
                    axes.plot(grid, curve.value, color="0.75", linewidth=1, zorder=0)
            several[index].axvline(len(X), color="grey", linewidth=1, linestyle=":")
            label = "test error" if index == 0 else ""
            finish(
                several[index], "number of points $n$", label, f"{words}, {name}", xscale="log", yscale="log", legend=False
            )
        limits = np.array([axes.get_ylim() for axes in several])
        for axes in several:
            axes.set_ylim(limits[:, 0].min(), limits[:, 1].max())
            readable_ticks(axes)
    figure.suptitle(
        rf"$\lambda = 0.01$; line and band: forecast (beyond the data dashed), points: real fits, {splits} splits, grey: the other kernels",
        fontsize=13,
    )
    return figure


# -- stopping -----------------------------------------------------------------------------------------------------


def stopping_windows(quick: bool = True) -> Figure:
    """Draw stopping plans of a two-layer network against width, samples, noise and scale of the initial weights."""
    figure, axes = new_figure(columns=2, rows=4, height=3.2)
    points, m = (9, 5) if quick else (13, 20)
    coarse, steps = (
        160 if quick else 400,
        {"noise": 400},
    )  # lower bounds; with much noise the best time is early, which needs a fine grid
    widths = [3, 4, 5, 6, 8, 10] if quick else [5, 7, 10, 14, 20, 28, 40, 56, 80]
    studies: Sequence[tuple[str, str, list[Any]]] = (
        ("sample_ratio", r"samples per parameter $\alpha = n/(md)$", list(m * np.geomspace(0.2, 4.0, points))),
        ("noise", r"noise $\tau$", list(np.linspace(0.1, 1.2, points))),
        ("start_second_layer", "second layer at the start $a_0$", list(np.geomspace(0.25, 4.0, points))),
    )
    plans = [stopping_table(single_index(w, solver_steps=coarse), {"width": [w]}, end=4.0 * w) for w in widths]
    tables = [
        xr.concat(plans, "width"),
        *(
            stopping_table(single_index(m, solver_steps=steps.get(name, coarse)), {name: values}, end=4.0 * m)
            for name, _, values in studies
        ),
    ]
    tables[1] = tables[1].assign_coords(sample_ratio=tables[1].sample_ratio / m)
    labels = [r"width $m$, $\alpha = 1/2$", *(label for _, label, _ in studies)]
    figure.suptitle(
        f"two-layer networks, $m = {m}$ unless it varies: best stopping time, and errors with and without stopping",
        fontsize=14,
    )
    for column, (table, label) in enumerate(zip(tables, labels, strict=True)):
        scales = {} if "noise" in label else {"xscale": "log"}
        draw_plans(axes[2 * column], axes[2 * column + 1], table, label, (column == 0, column == 0), **scales)
    return figure


# -- logistic -----------------------------------------------------------------------------------------------------


def study_size(quick: bool = True) -> Figure:
    """Draw calibration and losses of a fit against the number of samples, with simulated studies."""
    return sample_size_figure(sample_size(20, auc=0.8, prevalence=0.2), 20 if quick else 100)


# -- scaling ------------------------------------------------------------------------------------------------------


def two_fits(quick: bool = True) -> Figure:
    """Draw the distance from the best fit for every pair of exponents, for a grid of runs and for runs with D = 20 N.

    The grid determines both exponents. Runs at a fixed ratio of data to size do not.
    """
    from matplotlib.colors import BoundaryNorm

    figure, panels = new_figure(columns=2)
    levels = np.array([0, 1, 2, 3, 5, 10, 20, 50])
    steps = BoundaryNorm(levels**2, 256, extend="max")  # steps of equal contrast
    truth = (1.82, 482.0, 2085.0, 0.348, 0.366)
    grids = np.meshgrid(np.geomspace(5e7, 1e10, 8), np.geomspace(1e9, 3e11, 6), indexing="ij")
    line = np.geomspace(5e7, 1e10, 48)
    for axes, (N, D), title in zip(
        panels, (grids, (line, 20 * line)), ("a grid of $N$ and $D$", "one ray $D = 20\\,N$"), strict=True
    ):
        N, D = N.ravel(), D.ravel()
        E, A, B, a, b = truth
        loss = (E + A * N**-a + B * D**-b) * np.exp(0.005 * np.random.default_rng(0).standard_normal(N.size))
        fit = scaling_fit(N, D, loss, robust=False)
        points = np.linspace(0.15, 0.75, 49 if quick else 97)
        rise = np.array([[fit.profiled_rise(x, y) for x in points] for y in points])
        # contours of the rise and not of its square root, which is not smooth at the minimum
        image = axes.contourf(points, points, rise, levels=levels**2, norm=steps, cmap="Blues_r", extend="max")
        axes.plot([a], [b], "X", color=COLOURS[1], markeredgecolor="white", markersize=11)
        axes.annotate(
            "truth", (a, b), (-8, -8), textcoords="offset points", ha="right", va="top", color=COLOURS[1], fontsize=12
        )
        axes.grid(False)
        conclusion = "separable" if fit.separable else "not separable"
        finish(axes, "exponent $a$", "exponent $b$", f"{title}: {conclusion}", legend=False)
    bar = figure.colorbar(image, ax=list(panels))
    bar.set_ticks((levels**2).tolist(), labels=[str(level) for level in levels])
    bar.set_label("standard errors from the best fit")
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "learning-curves": learning_curves,
    "two-layer-stopping": stopping_windows,
    "sample-size": study_size,
    "scaling-fit": two_fits,
}

ITEMS = {
    "two-layer-stopping": ("D-1", "D-2", "D-4"),
}
"""Items of the lecture notes that the figures cover."""
