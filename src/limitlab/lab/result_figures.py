"""Figures for any law, made from its declarations.

They show a sweep, experiments beside their limit, the answer of `plan` or `optimal`, and a comparison with prediction and experiment
at growing size and the gaps between them.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from limitlab._core.law import Law
from limitlab._core.page import number, table_names
from limitlab.errors import Refused
from limitlab.lab.judging import Compared, Row, Verdict, extrapolated
from limitlab.plotting.panels import (
    axis_values,
    curves_of,
    finite_or_gap,
    geometric,
    give_title,
    label_of,
    legend_above,
    longest_dimension,
    panel_grid,
    short_name,
    wide,
)
from limitlab.plotting.style import COLOURS, RC, finish, new_figure, simulation_points, theory_line

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

    If there are many curves, `color_index` sets the shade of each curve. Along a dimension of names the line becomes separate marks.
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


# -- a comparison -------------------------------------------------------------------------------------------------------

MOST_GAPS = 6
ROUNDING = 1e-9
"""Relative gaps below this are rounding errors and are not drawn."""


class Judged(Compared, Protocol):
    """The parts of a comparison that its figure shows."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The error budget, one row per observable."""

    @property
    def verdict(self) -> Verdict:
        """The verdict over all observables."""


def comparison_figure(result: Judged) -> Figure:
    """Draw the figure of a comparison, with every observable over size or coordinate, and the relative gaps.

    Parameters
    ----------
    result
        The result of `compare`.
    """
    data = result.dataset
    names = list(dict.fromkeys(row.observable for row in result.rows))
    figure, panels = panel_grid(len(names) + 1)
    explained: set[tuple[str, ...]] = set()
    for axes, name in zip(panels, names, strict=False):
        draw = draw_over_size if data[f"theory_{name}"].ndim == 1 else draw_along
        draw(axes, name, result)
        labels = tuple(axes.get_legend_handles_labels()[1])
        if labels not in explained:  # one legend serves for all panels with the same labels
            axes.legend(fontsize=RC["legend.fontsize"], frameon=False)
        explained.add(labels)
    draw_gaps(panels[len(names)], result, names)
    give_title(figure, f"{type(result.law).__name__}: theory and simulation {VERDICTS[result.verdict]}")
    return figure


VERDICTS = {"agree": "agree", "disagree": "disagree", "underpowered": "not decided (underpowered)"}


def draw_over_size(axes: Axes, name: str, result: Judged) -> None:
    """Draw a single number, with its limit as a line, its experiments as points, and their extrapolation."""
    theory, mean, error = (result.dataset[f"{kind}_{name}"] for kind in ("theory", "mean", "error"))
    sizes = theory["size"].values.astype(float)
    beyond = sizes[-1] * max(float(sizes[-1] / sizes[0]) ** 0.5, 1.5)
    theory_line(axes, [*sizes, beyond], [*theory.values, theory.values[-1]], 0, "limit")
    simulation_points(axes, sizes, mean.values, error.values, 1, "experiment")
    value, budget = extrapolated(result, name)
    simulation_points(axes, [beyond], [value], [budget], 2, "extrapolated, as judged")
    finish(axes, size_label(result.law), label_of(theory, name), legend=False)
    size_axis(axes, sizes, beyond)


def draw_along(axes: Axes, name: str, result: Judged) -> None:
    """Draw a curve, with its limit as a line, the largest size as faint points, and the extrapolation as points."""
    largest = {"size": -1}
    theory, mean, error = (result.dataset[f"{kind}_{name}"] for kind in ("theory", "mean", "error"))
    value, budget = (mean.isel(largest).copy(data=part) for part in extrapolated(result, name))
    along = longest_dimension(theory.isel(largest).to_dataset(name="value"))
    x, _ = axis_values(theory, along)
    size = int(theory["size"].values[-1])
    curves = curves_of(theory.isel(largest), along)
    for index, (label, line) in enumerate(curves):
        theory_line(axes, x, finite_or_gap(line), index, label or "limit")
        colour = index if len(curves) > 1 else 1
        for kind, parts, look in (
            (f"size {size}", (mean.isel(largest), error.isel(largest)), {"alpha": 0.35}),
            ("extrapolated, as judged", (value, budget), {}),
        ):
            points, spread = (curves_of(part, along)[index][1] for part in parts)
            simulation_points(
                axes, x, points, spread, colour + (not look and len(curves) == 1), kind if index == 0 else None, **look
            )
    finish(
        axes,
        label_of(theory[along]) if along in theory.coords else along,
        label_of(theory, name),
        xscale="log" if geometric(x) else "linear",
        yscale="log" if wide(theory.isel(largest).values) else "linear",
        legend=False,
    )


def draw_gaps(axes: Axes, result: Judged, names: Sequence[str]) -> None:
    """Draw the relative gaps against size, beside the declared rate.

    If there are more than `MOST_GAPS` observables, those with the largest gaps are drawn.
    """
    data = result.dataset
    sizes = data["size"].values.astype(float)
    gaps_of: dict[str, tuple[Array, Array]] = {}
    for name in names:
        theory, mean, error = (data[f"{kind}_{name}"].values.reshape(len(sizes), -1) for kind in ("theory", "mean", "error"))
        finite = np.isfinite(theory).all(axis=0)
        scale = float(np.abs(theory[:, finite]).max()) or 1.0
        gap: Array = np.sqrt(np.mean((mean - theory)[:, finite] ** 2, axis=1)) / scale
        spread = np.sqrt(np.mean(error[:, finite] ** 2, axis=1)) / scale
        if gap.max() >= ROUNDING:
            gaps_of[name] = gap, spread
    largest = sorted(gaps_of, key=lambda name: -gaps_of[name][0].max())[:MOST_GAPS]
    for index, name in enumerate(name for name in gaps_of if name in largest):
        gap, spread = gaps_of[name]
        # side by side, so that the error bars do not cover each other
        shift = sizes * 1.03 ** (index - (len(largest) - 1) / 2)
        simulation_points(axes, shift, gap, np.minimum(spread, 0.9 * gap), index, name.replace("_", " "))
    rate = min(result.law.rates(name)[0] for name in names)
    if math.isfinite(rate) and len(sizes) > 1:
        top = max(axes.get_ylim()[1], 1e-12)
        theory_line(
            axes,
            sizes,
            top * (sizes / sizes[0]) ** -rate,
            6,
            rf"$\mathrm{{size}}^{{-{rate:.2g}}}$",
            linestyle=":",
            linewidth=1.2,
        )
    words = "relative gap" if len(gaps_of) == len(largest) else f"relative gap, {MOST_GAPS} largest"
    finish(axes, size_label(result.law), words, yscale="log", legend=False)
    legend_above(axes)
    size_axis(axes, sizes)


def size_label(law: Law) -> str:
    """Return the label of a size axis, in lines that fit below a panel.

    The label is the meaning of the size without the text after its first semicolon, comma or bracket.

    >>> from limitlab.laws import SpikedTensor, Staircase
    >>> size_label(SpikedTensor()), size_label(Staircase())
    ('dimension N', 'dimension d')
    """
    main = re.split(r"[;,(]", law.simulation.size_meaning)[0].strip()
    return "\n".join(textwrap.wrap(main, 34))


def size_axis(axes: Axes, sizes: Any, beyond: float | None = None) -> None:
    """Set a logarithmic axis whose ticks are the sizes of the experiments, and infinity if `infinity` is a position."""
    names = [f"{int(size)}" for size in sizes]
    axes.set_xscale("log")
    axes.set_xticks([*sizes, *([] if beyond is None else [beyond])], [*names, *([] if beyond is None else [r"$\infty$"])])
    axes.minorticks_off()
