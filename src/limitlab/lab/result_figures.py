"""Figures for any law, made from its declarations, of a sweep, of experiments beside their limit, and of an answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from limitlab._core.tables import number, table_names
from limitlab.errors import Refused
from limitlab.plotting.panels import (
    axis_values,
    curves_of,
    finite_or_gap,
    geometric,
    give_title,
    label_of,
    longest_dimension,
    panel_grid,
    short_name,
    wide,
)
from limitlab.plotting.style import COLOURS, finish, new_figure, simulation_points, theory_line

if TYPE_CHECKING:
    from limitlab._core.law import Law

Array = NDArray[np.float64]
MOST_CURVES = len(COLOURS)


# -- a sweep, with or without experiments -----------------------------------------------------------------------------


def sweep_figure(theory: xr.Dataset, observables: Sequence[str] | None = None) -> Figure:
    """Draw a prediction on a grid, with one panel per observable along the longest dimension.

    There is one curve for each point of the other dimensions.

    Parameters
    ----------
    theory
        The result of `sweep`, or the prediction of a law with a coordinate such as its time.
    observables
        Names to draw (default: all).

    Examples
    --------
    >>> from limitlab.lab._sweep import sweep
    >>> from limitlab.laws import Ridge
    >>> figure = sweep_figure(sweep(Ridge(), over={"ratio": [0.5, 1.0, 2.0]}), ["test_error"])
    >>> len(figure.axes[0].lines), figure.axes[0].get_ylabel().endswith("(test error)")
    (1, True)
    """
    return simulation_figure(theory, None, observables)


def simulation_figure(theory: xr.Dataset, batch: xr.Dataset | None, observables: Sequence[str] | None = None) -> Figure:
    """Draw the figure of `sweep_figure` with experiments as points, the mean over `seed` and its standard error."""
    names = [name for name in (observables or table_names(theory)) if name in theory and theory[name].ndim]
    if not names:
        raise Refused("the result has no dimension for a plot: sweep over a parameter")
    longest = longest_dimension(theory[names])
    figure, panels = panel_grid(len(names))
    for axes, name in zip(panels, names, strict=False):
        measured = batch[name] if batch is not None and name in batch else None
        along = longest if longest in theory[name].dims else longest_dimension(theory[[name]])
        draw_observable(axes, theory[name], measured, along)
    give_title(figure, str(theory.attrs.get("law", "")))
    return figure


def draw_observable(axes: Axes, theory: xr.DataArray, measured: xr.DataArray | None, along: str) -> None:
    """Draw one observable, with lines along a dimension, and the experiments if there are any."""
    x, ticks = axis_values(theory, along)
    curves = curves_of(theory, along)
    for index, (label, line) in enumerate(curves):
        options: dict[str, Any] = {} if len(curves) <= MOST_CURVES else {"color_index": index / (len(curves) - 1)}
        named = label if len(curves) <= MOST_CURVES or index in (0, len(curves) - 1) else None
        draw_line(axes, x, finite_or_gap(line), index, named, ticks is not None, **options)
    if measured is not None:
        draws = measured.sizes["seed"]
        mean = curves_of(measured.mean("seed"), along)
        spread = curves_of(measured.std("seed", ddof=1) / math.sqrt(draws), along) if draws > 1 else None
        for index, (_, points) in enumerate(mean):
            simulation_points(axes, x, points, spread[index][1] if spread else None, index)
    values = np.concatenate([line for _, line in curves])
    finish(
        axes,
        label_of(theory[along] if along in theory.coords else xr.DataArray(name=along)),
        label_of(theory),
        xscale="log" if ticks is None and geometric(x) else "linear",
        yscale="log" if wide(values) else "linear",
    )
    if ticks is not None:
        axes.set_xticks(x, ticks)


def draw_line(
    axes: Axes, x: Array, y: Array, index: int, label: str | None, dots: bool, color_index: float | None = None
) -> None:
    """Draw the line of a prediction.

    Of many curves each has the shade of its rank; over names the line becomes dots.
    """
    if color_index is None:
        theory_line(axes, x, y, index, label, **({"linestyle": "none", "marker": "_", "markersize": 18} if dots else {}))
    else:
        from matplotlib import colormaps

        axes.plot(x, y, color=colormaps["viridis"](0.9 * color_index), label=label, linewidth=1.2)


# -- an answer --------------------------------------------------------------------------------------------------------


def answer_figure(law: Law, answer: xr.Dataset, parameter: str, observable: str, level: float | None = None) -> Figure:
    """Draw an observable along a parameter, with the value that `plan` or `optimal` returned and the target."""
    from limitlab.lab._sweep import sweep

    solution = float(answer[parameter].item())
    values = around(law, parameter, solution)
    curve = sweep(law, over={parameter: values})[observable]
    figure, (axes,) = new_figure()
    theory_line(axes, values, finite_or_gap(curve.values))
    if level is not None:
        axes.axhline(level, color="0.5", linestyle="--", linewidth=1.2, label=f"target {level:g}")
    best = float(answer[observable].item())
    axes.plot(
        [solution],
        [best],
        "o",
        color=COLOURS[1],
        markersize=9,
        label=f"{short_name(answer[parameter])} = {number(solution)}",
    )
    finish(
        axes,
        label_of(curve[parameter]),
        label_of(curve),
        type(law).__name__,
        xscale="log" if geometric(np.asarray(values)) else "linear",
        yscale="log" if wide(curve.values) else "linear",
    )
    return figure


def around(law: Law, parameter: str, centre: float) -> list[float]:
    """Return values of a parameter around one value, within its bounds."""
    meta = type(law).parameters()[parameter]
    if meta.scale == "log" and centre > 0:
        values = np.geomspace(centre / 30, centre * 30, 201)
    else:
        width = abs(centre) or 1.0
        values = np.linspace(centre - width, centre + width, 201)
    if type(law).model_fields[parameter].annotation is int:
        values = np.unique(np.round(values))
    numbers = [int(value) if value.is_integer() else float(value) for value in values.tolist()]
    return [value for value in numbers if accepts(law, parameter, value)]


def accepts(law: Law, parameter: str, value: float) -> bool:
    """Return whether a law takes this value together with its other parameters."""
    try:
        law.replace(**{parameter: value})
    except ValueError:
        return False
    return True
