"""Figures of forecasts: a learning curve with its band, the real fits beside it, and what lies beyond the data dashed."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from limitlab.plotting.style import COLOURS, RC, finish, new_figure, readable_ticks, simulation_points, theory_line


def draw_curve(
    axes: Axes, curve: xr.Dataset, measured: xr.Dataset | None = None, index: int = 0, label: str = "forecast"
) -> None:
    """One learning curve: solid with its band where the data reach, dashed beyond, real fits as points."""
    n, beyond = curve.n.values, curve.extrapolated.values
    inside = ~beyond
    start = max(int(np.argmax(beyond)) - 1, 0) if beyond.any() else len(n)
    if inside.any():
        theory_line(axes, n[inside], curve.value.values[inside], index, label)
    if beyond.any():
        words = None if inside.any() else label
        theory_line(axes, n[start:], curve.value.values[start:], index, words, linestyle="--")
    if "low" in curve:
        axes.fill_between(n, curve.low, curve.high, color=COLOURS[index % len(COLOURS)], alpha=0.15, linewidth=0)
    name = MEASURED.get(curve.attrs["metric"])
    if measured is not None and name in measured:
        error = measured[f"{name}_standard_error"].values[:, 0]
        known = error if np.isfinite(error).all() else None
        words = f"real fits ({measured.attrs['splits']} splits)" if index == 0 else None
        simulation_points(axes, measured.n, measured[name].values[:, 0], known, index, words)


def forecast_figure(curve: xr.Dataset, measured: xr.Dataset | None = None, title: str = "") -> Figure:
    """A forecast with its band, real fits, the end of the data, and beyond it what else one would guess."""
    figure, (axes,) = new_figure(width=7.2)
    ridges = np.unique(curve["ridge"].values)
    words = rf"forecast, $\lambda = {ridges[0]:.2g}$" if ridges.size == 1 else "forecast, best ridge at every $n$"
    draw_curve(axes, curve, measured, 0, words)
    beyond = curve.extrapolated.values
    if beyond.any():
        n = curve.n.values
        if "step_low" in curve:
            loss = curve.last_value if curve.attrs["metric"] in ("mse", "error") else 1 - curve.last_value
            ends = [(loss * curve[name]).values for name in ("step_low", "step_high")]
            if curve.attrs["metric"] not in ("mse", "error"):
                ends = [1 - end for end in ends]
            axes.fill_between(
                n[beyond], *(end[beyond] for end in ends), color=COLOURS[0], alpha=0.3, linewidth=0, label="step from $N$"
            )
        if "power_law" in curve:
            axes.plot(
                n[beyond],
                curve.power_law.values[beyond],
                color="black",
                linewidth=1,
                linestyle="-.",
                label="$a\\,n^{-b} + c$ through real fits",
            )
        axes.plot(n[beyond], curve.last_value.values[beyond], color="grey", linewidth=1, label="as with all the data")
        axes.axvline(curve.attrs["population"], color="grey", linewidth=1, linestyle=":", label="all the data")
    named = {
        "mse": "test error",
        "error": "share of wrong labels",
        "accuracy": "share of right labels",
        "auc": "area under the curve",
    }
    rising = curve.attrs["metric"] in ("accuracy", "auc")
    finish(
        axes, "number of points $n$", named.get(curve.attrs["metric"], curve.attrs["metric"]), title, xscale="log",
        yscale="linear" if rising else "log", legend=False,
    )  # fmt: skip
    axes.legend(
        loc="lower right" if rising else "upper right", fontsize=RC["legend.fontsize"], framealpha=0.9, edgecolor="none"
    )
    readable_ticks(axes)
    return figure


MEASURED = {"mse": "test_error", "error": "classification_error"}
"""Metrics that real fits measure."""


def learning_curves(quick: bool = True) -> Figure:
    """Learning curves of digits and diabetes with four kernels: the forecast as lines, real fits as points, beyond N dashed."""
    from limitlab.applied.forecast import Forecast, ForecastWarning
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
            for axes in several:  # the other kernels behind each, without their bands
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


FIGURES: dict[str, Callable[[bool], Figure]] = {"learning-curves": learning_curves}
