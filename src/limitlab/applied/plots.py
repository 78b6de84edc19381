"""Figures of the results of forecasts, stopping plans, sample sizes and scaling fits."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from limitlab.applied.scaling.fit import ScalingFit
from limitlab.applied.study_size import SampleSize
from limitlab.plotting.style import (
    COLOURS,
    RC,
    finish,
    new_figure,
    readable_ticks,
    simulation_points,
    theory_line,
)

__all__ = ["draw_curve", "forecast_figure", "sample_size_figure", "scaling_fit_figure", "stopping_figure"]

# -- logistic -----------------------------------------------------------------------------------------------------


def sample_size_figure(study: SampleSize, fits: int = 0) -> Figure:
    """Draw calibration slope and losses against the number of samples, with the rules of thumb marked.

    With `fits` above 0, the figure also shows the mean and spread of that many simulated studies at a few sizes.
    """
    figure, (left, right) = new_figure(columns=2)
    marks = {
        "this law": study.samples,
        "Riley's criterion (i)": study.riley_samples,
        "10 events/predictor": study.ten_events_samples,
    }
    low = 1.3 * study.predictors / study.existence_threshold
    samples = np.geomspace(low, 3 * max(marks.values()), 40)
    table = study.curve(samples)
    theory_line(left, samples, table.calibration_slope, 0, "calibration slope")
    if fits:
        few = np.unique(np.round(np.geomspace(2 * low, 2 * max(marks.values()), 5))).astype(int)
        slopes = [study.simulated_slopes(int(n), fits) for n in few]
        simulation_points(
            left, few, [s.mean() for s in slopes], [s.std(ddof=1) for s in slopes], 0, "one study (mean, spread)"
        )
    for index, (name, count) in enumerate(marks.items()):
        left.axvline(count, color=COLOURS[index + 1], linestyle="--", linewidth=1.4, label=f"{name}: $n = {count}$")
    title = f"$p = {study.predictors}$, AUC {study.auc:g}, prevalence {study.prevalence:g}"
    finish(left, "samples $n$", "calibration slope", title, xscale="log", ylim=(0, 1.15), legend=False)
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, fontsize=11, frameon=False)
    for index, name in enumerate(("auc_loss", "log_loss_excess", "error_excess")):
        theory_line(right, samples, np.maximum(table[name], 1e-9), index, table[name].attrs["long_name"])
    risk = np.asarray(table.no_fit_probability)
    visible = risk > 1e-5
    theory_line(right, samples[visible], risk[visible], 3, "probability that no fit exists", linestyle="--")
    finish(
        right,
        "samples $n$",
        "loss relative to the true model",
        "losses by number of samples",
        xscale="log",
        yscale="log",
        ylim=(1e-5, 2),
    )
    return figure


# -- stopping -----------------------------------------------------------------------------------------------------


def stopping_figure(table: xr.Dataset, label: str | None = None, **scales: Any) -> Figure:
    """Draw the window of stopping times and the errors of a table of plans against its parameter."""
    figure, (left, right) = new_figure(columns=2)
    (name,) = table.test_error.dims
    draw_plans(left, right, table, label or str(name).replace("_", " "), (True, True), **scales)
    return figure


def draw_plans(above: Axes, below: Axes, table: xr.Dataset, label: str, legends: tuple[bool, bool], **scales: Any) -> None:
    """Draw the window of stopping times on one panel, and the errors at the best time and at the end on another."""
    (name,) = table.test_error.dims
    x = table[name].values
    late = np.where(np.isfinite(table.overfit), table.overfit, np.nan)
    top = np.where(
        np.isfinite(late), late, np.nanmax(np.append(late, table.time))
    )  # a window without end is drawn up to the largest time of the panel
    window = f"within {100 * table.attrs['slack']:g} % of the best"
    above.fill_between(x, table.learned, top, color=COLOURS[0], alpha=0.15, linewidth=0, label=window)
    marks = {"marker": ".", "markersize": 7}  # points mark the computed values; the lines only connect them
    theory_line(above, x, table.time, 0, "best time", **marks)
    theory_line(below, x, table.test_error, 0, "test error, stopped", **marks)
    theory_line(below, x, table.final_test_error, 1, "test error, at the end", **marks)
    theory_line(below, x, table.train_error, 0, "train error, stopped", linestyle="--", **marks)
    finish(above, label, "time $t$", legend=legends[0], yscale="log", **scales)
    finish(below, label, "error", legend=legends[1], **scales)


# -- scaling ------------------------------------------------------------------------------------------------------


def scaling_fit_figure(fit: ScalingFit, title: str = "") -> Figure:
    """Draw the runs with the fitted loss, and the best size against the compute.

    The best size and its band are drawn only if the runs determine them.
    """
    figure, (left, right) = new_figure(columns=2)
    runs = fit.runs
    N, D = np.exp(runs.n + runs.centre_n), np.exp(runs.d + runs.centre_d)
    order = np.unique(N.round(-int(np.floor(np.log10(N.min()))) + 6))
    shown = order[np.unique(np.linspace(0, order.size - 1, 5).round().astype(int))]
    fine = np.geomspace(D.min(), D.max(), 80)
    for index, size in enumerate(shown):
        near = np.abs(np.log(N / size)) < 1e-4
        theory_line(left, fine, fit.predict(size, fine), index, f"$N = {size:.2g}$", linewidth=1.3)
        simulation_points(left, D[near], np.exp(runs.log_loss[near]), index=index, markersize=4)
    finish(left, "data $D$", "loss $L$", title or "runs and fit", xscale="log", yscale="log")
    compute = np.geomspace(fit.largest_compute / 1e4, fit.largest_compute * 1e2, 13)
    used = fit.flops * N * D
    right.plot(used, N, ".", color="grey", markersize=4, label="runs")
    if fit.separable:
        theory_line(right, compute, [fit.optimum(c).N for c in compute], 0, "best size $N^*$")
        if not fit.interaction:
            ends = np.array([fit.interval("N", compute=c) for c in compute])
            right.fill_between(compute, *ends.T, color=COLOURS[0], alpha=0.2, linewidth=0, label=f"{100 * fit.level:g} %")
        right.axvline(fit.largest_compute, color="grey", linestyle=":", linewidth=1)
        name = f"$a = {fit.a:.3f}$, $b = {fit.b:.3f}$, condition {fit.condition:.0f}"
    else:
        name = "best size: not determined by these data"
    finish(right, "compute $C$", "size $N$", name, xscale="log", yscale="log")
    return figure


# -- forecast -----------------------------------------------------------------------------------------------------


def draw_curve(
    axes: Axes, curve: xr.Dataset, measured: xr.Dataset | None = None, index: int = 0, label: str = "forecast"
) -> None:
    """Draw a learning curve with its band.

    The line is solid up to the number of points in the data and dashed beyond. Real fits are points.
    """
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
    """Draw a forecast with its band, real fits, the number of points in the data, and simpler guesses beyond it."""
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
"""The variable of the real fits that measures each metric."""
