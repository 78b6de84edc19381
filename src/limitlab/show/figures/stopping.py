"""Figures of early stopping: the window between learning and overfitting, and what stopping there is worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from limitlab.applied.stopping import stopping_table
from limitlab.laws.dmft.examples import single_index
from limitlab.plotting.style import COLOURS, finish, new_figure, theory_line


def stopping_figure(table: xr.Dataset, label: str | None = None, **scales: Any) -> Figure:
    """Window and errors of a table of plans along its one parameter."""
    figure, (left, right) = new_figure(columns=2)
    (name,) = table.test_error.dims
    draw_plans(left, right, table, label or str(name).replace("_", " "), (True, True), **scales)
    return figure


def draw_plans(above: Axes, below: Axes, table: xr.Dataset, label: str, legends: tuple[bool, bool], **scales: Any) -> None:
    """The window in time on one panel, the errors at the best time and at the end on another."""
    (name,) = table.test_error.dims
    x = table[name].values
    late = np.where(np.isfinite(table.overfit), table.overfit, np.nan)
    top = np.where(
        np.isfinite(late), late, np.nanmax(np.append(late, table.time))
    )  # a window without end is drawn to the top
    window = f"within {100 * table.attrs['slack']:g} % of the best"
    above.fill_between(x, table.learned, top, color=COLOURS[0], alpha=0.15, linewidth=0, label=window)
    marks = {"marker": ".", "markersize": 7}  # where it was computed: the lines between are only drawn
    theory_line(above, x, table.time, 0, "best time", **marks)
    theory_line(below, x, table.test_error, 0, "test error, stopped", **marks)
    theory_line(below, x, table.final_test_error, 1, "test error, trained on", **marks)
    theory_line(below, x, table.train_error, 0, "train error, stopped", linestyle="--", **marks)
    finish(above, label, "time $t$", legend=legends[0], yscale="log", **scales)
    finish(below, label, "error", legend=legends[1], **scales)


def stopping_windows(quick: bool = True) -> Figure:
    """When to stop a two-layer network, as a function of width, samples, noise and scale of the start."""
    figure, axes = new_figure(columns=2, rows=4, height=3.2)
    points, m = (9, 5) if quick else (13, 20)
    coarse, steps = (
        160 if quick else 400,
        {"noise": 400},
    )  # at least; with much noise one stops early, which needs a fine grid
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
    figure.suptitle(f"two-layer networks, $m = {m}$ unless it varies: when to stop, and what it is worth", fontsize=14)
    for column, (table, label) in enumerate(zip(tables, labels, strict=True)):
        scales = {} if "noise" in label else {"xscale": "log"}
        draw_plans(axes[2 * column], axes[2 * column + 1], table, label, (column == 0, column == 0), **scales)
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {"two-layer-stopping": stopping_windows}
