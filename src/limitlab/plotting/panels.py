"""Functions for figures that are made from declarations, such as a grid of panels and labels with symbols."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from limitlab._core.page import number
from limitlab.plotting.style import new_figure

Array = NDArray[np.float64]
PANELS_PER_ROW = 3
LONGEST_LABEL = 22
"""Letters of a description that fit beside a panel. The name replaces a longer description."""
MARGINS = (1.15, 0.2, 0.82, 0.3)
"""Inches left, right, below and above a panel, for tick labels of seven digits beside a label of one line."""
TITLE = 0.35
"""Inches for the title of a figure."""


def panel_grid(count: int) -> tuple[Figure, Sequence[Axes]]:
    """Return a figure with this many panels, at most three in a row. Surplus panels are removed.

    The margins are fixed, because measuring every text would take as long as drawing the figure.
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
    """Set a title at the upper edge of a figure of any height."""
    figure.suptitle(words, fontsize=15, y=1 - 0.08 / figure.get_figheight())


def legend_above(axes: Axes) -> None:
    """Add a legend above a panel and make room for it.

    The letters are smaller if the legend has many lines.
    """
    labels = axes.get_legend_handles_labels()[1]
    if not labels:
        return
    size = 10.0 if len(labels) <= 4 else 9.0
    figure = axes.get_figure(root=True)
    assert figure is not None
    letter, line = 0.0083 * size, 0.0215 * size  # inches
    columns = max(
        1, min(3, int(4.4 / (0.45 + letter * max(len(re.sub(r"[$^{}]|\\mathrm", "", label)) for label in labels))))
    )
    place = axes.get_position()
    room = line * -(-len(labels) // columns) / figure.get_figheight()
    axes.set_position((place.x0, place.y0, place.width, place.height - room))
    axes.legend(
        fontsize=size, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns, columnspacing=1.0
    )


def longest_dimension(result: xr.Dataset) -> str:
    """Return the numeric dimension with the most values (the first of several), or the first dimension of any kind."""
    dims = [str(dim) for dim in result.dims]
    numeric = [dim for dim in dims if dim not in result.coords or np.issubdtype(result[dim].dtype, np.number)]
    return max(numeric or dims, key=lambda dim: result.sizes[dim])


def axis_values(array: xr.DataArray, along: str) -> tuple[Array, list[str] | None]:
    """Return positions along a dimension, with tick labels if its values are names."""
    if along not in array.coords:
        return np.arange(array.sizes[along], dtype=float), None
    values = array[along].values
    if np.issubdtype(values.dtype, np.number):
        return values.astype(float), None
    return np.arange(len(values), dtype=float), [str(value) for value in values]


def label_of(array: xr.DataArray, name: str | None = None) -> str:
    """Return the label of an axis, which is the symbol with the description.

    >>> label_of(xr.DataArray(1.0, name="bias", attrs={"symbol": "B", "long_name": "squared bias"}))
    '$B$ (squared bias)'
    """
    words = (name or str(array.name)).replace("_", " ")
    meaning = str(array.attrs.get("long_name") or words)
    meaning = meaning if len(meaning) <= LONGEST_LABEL else words
    raw = str(array.attrs.get("symbol") or "")
    visible = len(re.sub(r"[{}_^ ]", "", re.sub(r"\\[a-zA-Z]+", "x", raw)))  # a TeX command is about one letter wide
    symbol = drawable(raw) if visible + len(meaning) <= LONGEST_LABEL + 4 else ""
    return f"{symbol} ({meaning})" if symbol else meaning


def short_name(array: xr.DataArray) -> str:
    """Return the symbol of a quantity (without an equality that follows it), or its name."""
    return drawable(str(array.attrs.get("symbol") or "").partition("=")[0].strip()) or str(array.name).replace("_", " ")


@functools.lru_cache(maxsize=1024)
def drawable(symbol: str) -> str:
    r"""Return a LaTeX symbol as matplotlib's mathtext, or an empty text if it cannot be drawn.

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
    """Return values with NaN in place of infinity, which is a gap in a line."""
    array = np.asarray(values, dtype=float)
    return np.where(np.isfinite(array), array, np.nan)


def geometric(values: Array) -> bool:
    """Return whether values are spaced by a factor rather than by a step.

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
    """Return whether positive values span so much that only a logarithmic axis shows all of them.

    >>> wide([0.01, 5.0]), wide([0.5, 5.0]), wide([0.0, 100.0])
    (True, False, False)
    """
    array = np.asarray(values, dtype=float)
    finite = array[np.isfinite(array)]
    return bool(finite.size and finite.min() > 0 and finite.max() / finite.min() > 50)


def curves_of(array: xr.DataArray, along: str) -> list[tuple[str | None, Array]]:
    """Return the lines of an observable along a dimension, one per point of the other dimensions, with their labels."""
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
