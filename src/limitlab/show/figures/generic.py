"""Figures for any law, made from its metadata: a sweep, an experiment beside its limit, a comparison, an answer."""

from __future__ import annotations

import functools
import math
import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from limitlab.show.figures.extrapolated import extrapolated
from limitlab.show.figures.style import COLOURS, RC, finish, new_figure, simulation_points, theory_line
from limitlab.show.tables import number, table_names

if TYPE_CHECKING:
    from limitlab.lab.compare import Comparison
    from limitlab.laws.base import Law

Array = NDArray[np.float64]
PANELS_PER_ROW = 3
MOST_CURVES = len(COLOURS)
MOST_GAPS = 6
LONGEST_LABEL = 22
"""Letters of a meaning that fit beside a panel; a longer one gives way to the name."""
ROUNDING = 1e-9
"""Relative gaps below this are rounding and are not drawn."""


# -- a sweep, with or without experiments -----------------------------------------------------------------------------


def sweep_figure(theory: xr.Dataset, observables: Sequence[str] | None = None) -> Figure:
    """A theory on a grid: one panel per observable, along the longest dimension, one curve per point of the others.

    Parameters
    ----------
    theory
        What `sweep` returned, or the theory of a law with a coordinate such as its time.
    observables
        Names to draw (default: all).

    Examples
    --------
    >>> from limitlab.lab.sweep import sweep
    >>> from limitlab.laws import Ridge
    >>> figure = sweep_figure(sweep(Ridge(), over={"ratio": [0.5, 1.0, 2.0]}), ["test_error"])
    >>> len(figure.axes[0].lines), figure.axes[0].get_ylabel().endswith("(test error)")
    (1, True)
    """
    return simulation_figure(theory, None, observables)


def simulation_figure(theory: xr.Dataset, batch: xr.Dataset | None, observables: Sequence[str] | None = None) -> Figure:
    """As `sweep_figure`, with experiments as points: the mean over `seed` and its standard error."""
    names = [name for name in (observables or table_names(theory)) if name in theory and theory[name].ndim]
    if not names:
        raise ValueError("nothing to plot against: the result has no dimension; sweep over a parameter")
    longest = longest_dimension(theory[names])
    figure, panels = panel_grid(len(names))
    for axes, name in zip(panels, names, strict=False):
        measured = batch[name] if batch is not None and name in batch else None
        along = longest if longest in theory[name].dims else longest_dimension(theory[[name]])
        draw_observable(axes, theory[name], measured, along)
    give_title(figure, str(theory.attrs.get("law", "")))
    return figure


def draw_observable(axes: Axes, theory: xr.DataArray, measured: xr.DataArray | None, along: str) -> None:
    """One observable: lines along a dimension, and the experiments where there are any."""
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
    """A theory line; with many curves in the shade of its rank, over names as dots."""
    if color_index is None:
        theory_line(axes, x, y, index, label, **({"linestyle": "none", "marker": "_", "markersize": 18} if dots else {}))
    else:
        from matplotlib import colormaps

        axes.plot(x, y, color=colormaps["viridis"](0.9 * color_index), label=label, linewidth=1.2)


def curves_of(array: xr.DataArray, along: str) -> list[tuple[str | None, Array]]:
    """The lines of an observable along a dimension, one per point of the other dimensions, with their labels."""
    if along not in array.dims:
        return [(None, np.atleast_1d(array.values))]
    others = [dim for dim in array.dims if dim != along]
    if not others:
        return [(None, array.values)]
    lines = []
    for index in np.ndindex(*(array.sizes[dim] for dim in others)):
        point = array.isel(dict(zip(others, index, strict=True)))
        words = [f"{short_name(point[dim])} = {number(point[dim].item())}" for dim in others if dim in point.coords]
        lines.append((", ".join(words) or None, point.values))
    return lines


# -- a comparison -----------------------------------------------------------------------------------------------------


def comparison_figure(result: Comparison) -> Figure:
    """Theory against simulation for any law: every observable over size (or along its coordinate), and the relative gaps.

    Parameters
    ----------
    result
        What `compare` returned.
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


VERDICTS = {"agree": "agree", "disagree": "disagree", "underpowered": "cannot be told apart yet (underpowered)"}


def draw_over_size(axes: Axes, name: str, result: Comparison) -> None:
    """A single number: its limit as a line, the experiments of every size as points, and what they extrapolate to."""
    theory, mean, error = (result.dataset[f"{kind}_{name}"] for kind in ("theory", "mean", "error"))
    sizes = theory["size"].values.astype(float)
    beyond = sizes[-1] * max(float(sizes[-1] / sizes[0]) ** 0.5, 1.5)
    theory_line(axes, [*sizes, beyond], [*theory.values, theory.values[-1]], 0, "limit")
    simulation_points(axes, sizes, mean.values, error.values, 1, "experiment")
    value, budget = extrapolated(result, name)
    simulation_points(axes, [beyond], [value], [budget], 2, "extrapolated, as judged")
    finish(axes, size_label(result.law), label_of(theory, name), legend=False)
    size_axis(axes, sizes, beyond)


def draw_along(axes: Axes, name: str, result: Comparison) -> None:
    """A curve: its limit as a line, the experiments of the largest size as faint points, what all sizes extrapolate to as points."""
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


def draw_gaps(axes: Axes, result: Comparison, names: Sequence[str]) -> None:
    """How the relative gap shrinks with size, next to the rate that the law expects; of many observables those with the largest gaps."""
    data = result.dataset
    sizes = data["size"].values.astype(float)
    found: dict[str, tuple[Array, Array]] = {}
    for name in names:
        theory, mean, error = (data[f"{kind}_{name}"].values.reshape(len(sizes), -1) for kind in ("theory", "mean", "error"))
        finite = np.isfinite(theory).all(axis=0)
        scale = float(np.abs(theory[:, finite]).max()) or 1.0
        gap: Array = np.sqrt(np.mean((mean - theory)[:, finite] ** 2, axis=1)) / scale
        spread = np.sqrt(np.mean(error[:, finite] ** 2, axis=1)) / scale
        if gap.max() >= ROUNDING:
            found[name] = gap, spread
    largest = sorted(found, key=lambda name: -found[name][0].max())[:MOST_GAPS]
    for index, name in enumerate(name for name in found if name in largest):
        gap, spread = found[name]
        shift = sizes * 1.03 ** (index - (len(largest) - 1) / 2)  # side by side, so that the error bars can be told apart
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
    words = "relative gap" if len(found) == len(largest) else f"relative gap, {MOST_GAPS} largest"
    finish(axes, size_label(result.law), words, yscale="log", legend=False)
    legend_above(axes)
    size_axis(axes, sizes)


def size_label(law: Law) -> str:
    """What grows, in as many words as fit below a panel.

    >>> from limitlab.laws import SpikedTensor, Staircase
    >>> size_label(SpikedTensor()), size_label(Staircase())
    ('dimension N', 'dimension d')
    """
    main = re.split(r"[;,(]", law.size_meaning)[0].strip()
    return "\n".join(textwrap.wrap(main, 34))


def size_axis(axes: Axes, sizes: Any, beyond: float | None = None) -> None:
    """A logarithmic axis that names the sizes that were run, infinity where a place stands for it, and nothing else."""
    names = [f"{int(size)}" for size in sizes]
    axes.set_xscale("log")
    axes.set_xticks([*sizes, *([] if beyond is None else [beyond])], [*names, *([] if beyond is None else [r"$\infty$"])])
    axes.minorticks_off()


# -- an answer --------------------------------------------------------------------------------------------------------


def answer_figure(law: Law, answer: xr.Dataset, parameter: str, observable: str, level: float | None = None) -> Figure:
    """An observable along a parameter, with the value that `plan` or `optimal` found and the level that was wanted."""
    from limitlab.lab.sweep import sweep

    found = float(answer[parameter].item())
    values = around(law, parameter, found)
    curve = sweep(law, over={parameter: values})[observable]
    figure, (axes,) = new_figure()
    theory_line(axes, values, finite_or_gap(curve.values))
    if level is not None:
        axes.axhline(level, color="0.5", linestyle="--", linewidth=1.2, label=f"target {level:g}")
    best = float(answer[observable].item())
    axes.plot(
        [found], [best], "o", color=COLOURS[1], markersize=9, label=f"{short_name(answer[parameter])} = {number(found)}"
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
    """Values of a parameter around one of them, within its bounds."""
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
    """Whether a law takes this value beside its other parameters."""
    try:
        law.replace(**{parameter: value})
    except ValueError:
        return False
    return True


# -- labels and axes --------------------------------------------------------------------------------------------------


MARGINS = (1.15, 0.2, 0.82, 0.3)
"""Inches left, right, below and above a panel: enough for tick labels of seven digits beside a label of one line."""
TITLE = 0.35
"""Inches for the title of a figure."""


def panel_grid(count: int) -> tuple[Figure, Sequence[Axes]]:
    """A figure with this many panels, at most three in a row; left-over ones are removed.

    The margins are given: measuring every text to find them would take as long as drawing the figure.
    """
    columns = 2 if count == 4 else min(count, PANELS_PER_ROW)
    rows = -(-count // columns)
    width, height = (6.6, 4.6) if count == 1 else (4.8, 3.6)
    left, right, bottom, top = MARGINS
    tall = height * rows + TITLE
    margins = {
        "left": left / (width * columns),
        "right": 1 - right / (width * columns),
        "bottom": bottom / tall,
        "top": 1 - (top + TITLE) / tall,
        "wspace": (left + right) / (width - left - right),
        "hspace": (bottom + top) / (height - bottom - top),
    }
    figure, panels = new_figure(columns, rows, width, tall / rows, margins)
    for axes in panels[count:]:
        axes.remove()
    return figure, list(panels[:count])


def give_title(figure: Figure, words: str) -> None:
    """A title at the upper edge of a figure of any height."""
    figure.suptitle(words, fontsize=15, y=1 - 0.08 / figure.get_figheight())


def legend_above(axes: Axes, size: float = 8) -> None:
    """A legend over a panel, which makes room for it."""
    labels = axes.get_legend_handles_labels()[1]
    if not labels:
        return
    figure = axes.get_figure(root=True)
    assert figure is not None
    letter, line = 0.0075 * size, 0.0215 * size  # inches
    columns = max(
        1, min(3, int(4.2 / (0.45 + letter * max(len(re.sub(r"[$^{}]|\\mathrm", "", label)) for label in labels))))
    )
    place = axes.get_position()
    room = line * -(-len(labels) // columns) / figure.get_figheight()
    axes.set_position((place.x0, place.y0, place.width, place.height - room))
    axes.legend(
        fontsize=size, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns, columnspacing=1.0
    )


def longest_dimension(result: xr.Dataset) -> str:
    """The numeric dimension with the most values (the first of several), or the first dimension of any kind."""
    dims = [str(dim) for dim in result.dims]
    numeric = [dim for dim in dims if dim not in result.coords or np.issubdtype(result[dim].dtype, np.number)]
    return max(numeric or dims, key=lambda dim: result.sizes[dim])


def axis_values(array: xr.DataArray, along: str) -> tuple[Array, list[str] | None]:
    """Positions along a dimension, with tick labels where its values are names."""
    if along not in array.coords:
        return np.arange(array.sizes[along], dtype=float), None
    values = array[along].values
    if np.issubdtype(values.dtype, np.number):
        return values.astype(float), None
    return np.arange(len(values), dtype=float), [str(value) for value in values]


def label_of(array: xr.DataArray, name: str | None = None) -> str:
    """An axis label: the symbol and what it stands for.

    >>> label_of(xr.DataArray(1.0, name="bias", attrs={"symbol": "B", "long_name": "squared bias"}))
    '$B$ (squared bias)'
    """
    words = (name or str(array.name)).replace("_", " ")
    meaning = str(array.attrs.get("long_name") or words)
    meaning = meaning if len(meaning) <= LONGEST_LABEL else words
    raw = str(array.attrs.get("symbol") or "")
    visible = len(re.sub(r"[{}_^ ]", "", re.sub(r"\\[a-zA-Z]+", "x", raw)))  # a command is about one letter wide
    symbol = drawable(raw) if visible + len(meaning) <= LONGEST_LABEL + 4 else ""
    return f"{symbol} ({meaning})" if symbol else meaning


def short_name(array: xr.DataArray) -> str:
    """The symbol of a quantity (without what it is equal to), or its name."""
    return drawable(str(array.attrs.get("symbol") or "").partition("=")[0].strip()) or str(array.name).replace("_", " ")


@functools.lru_cache(maxsize=1024)
def drawable(symbol: str) -> str:
    r"""A LaTeX symbol as matplotlib's mathtext, or nothing where it cannot be drawn.

    >>> drawable(r"p/n"), drawable(""), drawable(r"\nosuchcommand{x}")
    ('$p/n$', '', '')
    """
    from matplotlib.mathtext import MathTextParser

    if not symbol:
        return ""
    try:
        MathTextParser("path").parse(f"${symbol}$")
    except ValueError:
        return ""
    return f"${symbol}$"


def finite_or_gap(values: Any) -> Array:
    """Infinite values as gaps in a line."""
    array = np.asarray(values, dtype=float)
    return np.where(np.isfinite(array), array, np.nan)


def geometric(values: Array) -> bool:
    """Whether values are spaced by a factor rather than by a step.

    >>> geometric(np.geomspace(0.1, 10, 5)), geometric(np.linspace(0.1, 10, 5))
    (True, False)
    """
    positive = values[np.isfinite(values)]
    if len(positive) < 3 or positive.min() <= 0 or positive.max() / positive.min() < 8:
        return False
    ordered = np.sort(positive)
    return bool(
        np.std(np.diff(np.log(ordered)))
        < np.std(np.diff(ordered)) / np.mean(np.diff(ordered)) * np.mean(np.diff(np.log(ordered)))
    )


def wide(values: Any) -> bool:
    """Whether positive values span so much that only a logarithmic axis shows them all.

    >>> wide([0.01, 5.0]), wide([0.5, 5.0]), wide([0.0, 100.0])
    (True, False, False)
    """
    array = np.asarray(values, dtype=float)
    finite = array[np.isfinite(array)]
    return bool(finite.size and finite.min() > 0 and finite.max() / finite.min() > 50)
