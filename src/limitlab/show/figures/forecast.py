"""Figures of forecasts: a learning curve with its band, the real fits beside it, and what lies beyond the data dashed."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from limitlab.show.figures.style import COLOURS, RC, finish, new_figure, readable_ticks, simulation_points, theory_line


def draw_curve(
    axes: Axes, curve: xr.Dataset, measured: xr.Dataset | None = None, index: int = 0, label: str = "forecast"
) -> None:
    """One learning curve: solid with its band where the data reach, dashed beyond, real fits as points."""
    n, beyond = curve.n.values, curve.extrapolated.values
    inside = ~beyond
    start = max(int(np.argmax(beyond)) - 1, 0) if beyond.any() else len(n)
    if inside.any():
        theory_line(axes, n[inside], curve.test_error.values[inside], index, label)
    if beyond.any():
        words = None if inside.any() else label
        theory_line(axes, n[start:], curve.test_error.values[start:], index, words, linestyle="--")
    if "test_error_low" in curve:
        colour = COLOURS[index % len(COLOURS)]
        axes.fill_between(n, curve.test_error_low, curve.test_error_high, color=colour, alpha=0.15, linewidth=0)
    if measured is not None:
        error = measured.test_error_standard_error.values[:, 0]
        known = error if np.isfinite(error).all() else None
        simulation_points(axes, measured.n, measured.test_error.values[:, 0], known, index)


def forecast_figure(
    curve: xr.Dataset, best: xr.Dataset | None = None, measured: xr.Dataset | None = None, title: str = ""
) -> Figure:
    """A forecast with its band, the curve of the best ridge, the real fits, and the end of the data."""
    figure, (axes,) = new_figure(width=7.2)
    ridges = np.unique(curve["ridge"].values)
    words = rf"forecast, $\lambda = {ridges[0]:.2g}$" if ridges.size == 1 else "forecast, best ridge"
    draw_curve(axes, curve, None, 0, words)
    if measured is not None:
        error = measured.test_error_standard_error.values[:, 0]
        known = error if np.isfinite(error).all() else None
        simulation_points(
            axes, measured.n, measured.test_error.values[:, 0], known, 0, f"real fits ({measured.attrs['splits']} splits)"
        )
    if best is not None:
        theory_line(axes, best.n, best.test_error, 1, "forecast, best ridge at every $n$", linewidth=1.5)
    if curve.extrapolated.values.any():
        axes.axvline(curve.attrs["population"], color="grey", linewidth=1, linestyle=":", label="all the data")
    finish(axes, "number of points $n$", "test error", title, xscale="log", yscale="log", legend=False)
    axes.legend(loc="upper right", fontsize=RC["legend.fontsize"], frameon=False)  # a falling curve leaves that corner free
    readable_ticks(axes)
    return figure


def learning_curves(quick: bool = True) -> Figure:
    """Learning curves of digits and diabetes with four kernels: the forecast as lines, real fits as points, beyond N dashed."""
    from limitlab.applied.forecast import Forecast, ForecastWarning
    from limitlab.models.datasets import prepared

    figure, panels = new_figure(columns=2)
    splits = 4 if quick else 20
    kernels = (
        ("linear", "linear"),
        ("rbf", "Gaussian"),
        ("relu-nngp", "arc-cosine"),
        ("random-features", "random features"),
    )
    for axes, name, few in zip(panels, ("diabetes", "digits"), ((30, 80, 200), (50, 150, 500)), strict=True):
        X, y = prepared(name)
        if quick and name == "digits":
            X, y = X[:900], y[:900]
        for index, (kernel, words) in enumerate(kernels):
            forecast = Forecast(kernel, ridge=0.01, intercept=0.3, width=150 if name == "diabetes" else 400).fit(X, y)
            grid = np.geomspace(15, 4 * len(X), 40)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ForecastWarning)
                draw_curve(axes, forecast.learning_curve(grid), forecast.measure(few, splits=splits), index, words)
        axes.axvline(len(X), color="grey", linewidth=1, linestyle=":")
        finish(
            axes,
            "number of points $n$",
            "test error",
            rf"{name}, $N = {len(X)}$, $\lambda = 0.01$",
            xscale="log",
            yscale="log",
        )
        readable_ticks(axes)
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {"learning-curves": learning_curves}
