"""Plotted data and files of a figure. The data are those of its lines, points, bars, bands and maps.

The numbers are read from the artists of the figure. The same figure gives the same bytes, so that a committed picture changes only
when its drawing changes.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.collections import Collection, LineCollection, PathCollection, QuadMesh
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle, StepPatch
from numpy.typing import NDArray

from limitlab._core.arguments import explained
from limitlab.errors import Refused
from limitlab.plotting.style import RC

__all__ = ["plotted_data", "rendered"]

Row = dict[str, Any]
COLUMNS = ("panel", "title", "x_label", "y_label", "kind", "label", "colour", "x", "y", "low", "high", "value")
"""Columns of the rows. `low` and `high` are the ends of an error bar or the sides of a band, `value` is the height of a map."""
COLOUR_BAR = "<colorbar>"
UNDATED: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
"""Metadata of the saved files, without the date."""


@explained
def plotted_data(figure: Figure) -> list[Row]:
    """Return every number that a figure shows, one row per vertex of a line, point, bar of a histogram or cell of a map.

    >>> figure = Figure()
    >>> _ = figure.subplots().plot([1, 2], [3.0, 4.0], label="limit")
    >>> [[row[name] for name in ("panel", "kind", "label", "x", "y")] for row in plotted_data(figure)]
    [[1, 'line', 'limit', 1.0, 3.0], [1, 'line', 'limit', 2.0, 4.0]]
    """
    rows = []
    for number, axes in enumerate(_panels(figure), 1):
        place = dict(panel=number, title=axes.get_title(), x_label=axes.get_xlabel(), y_label=axes.get_ylabel())
        rows += [dict.fromkeys(COLUMNS, "") | place | row for row in _rows_of(axes)]
    return rows


def panels_without_data(figure: Figure) -> list[str]:
    """Return the panels that show no number.

    Empty panels, and panels with only reference lines or gaps, show no number.

    >>> figure = Figure()
    >>> first, second = figure.subplots(1, 2)
    >>> _ = first.plot([1, 2], [3, 4]), second.axhline(1.0), second.set_title("the other")
    >>> panels_without_data(figure)
    ["panel 2 ('the other')"]
    """
    return [
        f"panel {number} ({axes.get_title()!r})"
        for number, axes in enumerate(_panels(figure), 1)
        if not any(_is_finite(row) for row in _rows_of(axes))
    ]


def _panels(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.get_label() != COLOUR_BAR]


def _is_finite(row: Row) -> bool:
    return row["kind"] != "reference" and all(np.isfinite(row[name]) for name in ("x", "y", "value") if name in row)


# -- one panel --------------------------------------------------------------------------------------------------------


def _rows_of(axes: Axes) -> Iterator[Row]:
    bars = [container for container in axes.containers if isinstance(container, ErrorbarContainer)]
    used = {id(part) for container in bars for part in _parts(container)}
    for container in bars:
        yield from _error_bars(container)
    for artist in axes.get_children():
        if id(artist) in used or not artist.get_visible():
            continue
        if isinstance(artist, Line2D):
            yield from _line(axes, artist)
        elif isinstance(artist, Collection):
            yield from _collection(artist)
        elif isinstance(artist, Patch) and artist is not axes.patch:
            yield from _bar(artist)
    for image in axes.images:
        yield from _image(image)


def _parts(container: ErrorbarContainer) -> Iterator[Any]:
    line, caps, columns = container.lines
    yield from (part for part in (line, *caps, *columns) if part is not None)


def _about(artist: Any, kind: str) -> Row:
    from matplotlib.colors import to_hex

    label = str(artist.get_label() or "")
    colour = artist.get_color() if isinstance(artist, Line2D) else None
    return dict(
        kind=kind,
        label="" if label.startswith("_") else label,
        colour=to_hex(colour) if isinstance(colour, str | tuple) else "",
    )


def _numbers(values: Any) -> NDArray[np.float64]:
    return np.ma.filled(np.ma.asarray(values, dtype=float), np.nan)


def _points(about: Row, x: Any, y: Any, **more: Any) -> Iterator[Row]:
    columns = {"x": _numbers(x).ravel(), "y": _numbers(y).ravel()}
    columns |= {name: _numbers(values).ravel() for name, values in more.items()}
    for values in zip(*columns.values(), strict=True):
        yield about | {name: float(value) for name, value in zip(columns, values, strict=True)}


def _line(axes: Axes, line: Line2D) -> Iterator[Row]:
    if (
        line.get_transform() is not axes.transData
    ):  # a line across the panel, one of whose coordinates is a position, not a number
        kind = "reference"
    else:
        kind = "line" if line.get_linestyle() not in ("None", "none", "", " ") else "points"
    data: tuple[Any, ...] = line.get_data_3d() if hasattr(line, "get_data_3d") else line.get_data(orig=False)
    yield from _points(_about(line, kind), *data[:2], **({"value": data[2]} if len(data) > 2 else {}))


def _error_bars(container: ErrorbarContainer) -> Iterator[Row]:
    line, _, columns = container.lines
    if line is None or not np.size(line.get_xdata()):  # the second belongs to the legend only
        return
    x, y = (_numbers(part) for part in line.get_data(orig=False))
    about = _about(line, "points") | {
        "label": "" if str(container.get_label()).startswith("_") else str(container.get_label())
    }
    ends: dict[str, Any] = {}
    for column in columns:
        segments = column.get_segments()
        along = 1 if container.has_yerr and column is columns[-1] else 0
        if len(segments) == len(x):
            spans = np.array([segment[:, along] if len(segment) else (np.nan, np.nan) for segment in segments])
            ends = {"low": spans.min(axis=1), "high": spans.max(axis=1)}
    yield from _points(about, x, y, **ends)


def _collection(artist: Collection) -> Iterator[Row]:
    if isinstance(artist, QuadMesh):
        yield from _mesh(artist)
    elif hasattr(artist, "_offsets3d"):
        x, y, z = artist._offsets3d  # there is no public method in three dimensions
        yield from _points(_about(artist, "points"), x, y, value=z)
    elif isinstance(artist, PathCollection):
        yield from _points(_about(artist, "points"), *_numbers(artist.get_offsets()).T)
    elif isinstance(artist, LineCollection) or not hasattr(artist, "do_3d_projection"):
        kind = "segments" if isinstance(artist, LineCollection) else "outline"
        for path in artist.get_paths():
            yield from _points(_about(artist, kind), *np.asarray(path.vertices, dtype=float).T)


def _mesh(mesh: Any) -> Iterator[Row]:
    """Return the cells of a map at their centres, or its corners if the colours are interpolated between the corners."""
    if hasattr(mesh, "grid_values"):  # for `style.value_map` the computed values, not the interpolated ones
        x, y = np.meshgrid(mesh.grid_x, mesh.grid_y)
        yield from _points(_about(mesh, "map"), x, y, value=mesh.grid_values)
        return
    corners, values = np.asarray(mesh.get_coordinates()), _numbers(mesh.get_array())
    if values.size != corners[..., 0].size:
        corners = (corners[1:, 1:] + corners[1:, :-1] + corners[:-1, 1:] + corners[:-1, :-1]) / 4
    yield from _points(_about(mesh, "map"), corners[..., 0], corners[..., 1], value=values)


def _image(image: Any) -> Iterator[Row]:
    values = _numbers(image.get_array())
    if values.ndim == 2:
        y, x = np.indices(values.shape)
        yield from _points(_about(image, "map"), x, y, value=values)


def _bar(patch: Patch) -> Iterator[Row]:
    if isinstance(patch, StepPatch):
        values, edges, baseline = patch.get_data()
        base = np.zeros(len(values)) if baseline is None else np.broadcast_to(_numbers(baseline), (len(values),))
        middle = (np.asarray(edges)[1:] + np.asarray(edges)[:-1]) / 2
        yield from _points(_about(patch, "bars"), middle, values, low=base)
    elif isinstance(patch, Rectangle):
        low = float(patch.get_y())
        yield from _points(
            _about(patch, "bars"), [patch.get_x() + patch.get_width() / 2], [low + patch.get_height()], low=[low]
        )


def as_csv(rows: Sequence[Row]) -> str:
    """Return rows as CSV, with numbers of twelve digits.

    >>> as_csv([dict.fromkeys(COLUMNS, "") | {"panel": 1, "x": 1 / 3}]).splitlines()[1]
    '1,,,,,,,0.333333333333,,,,'
    """
    import csv

    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: f"{value:.12g}" if isinstance(value, float) else value for name, value in row.items()})
    return text.getvalue()


# -- pictures ---------------------------------------------------------------------------------------------------------


@explained
def rendered(figure: Figure, kind: str, dpi: float = RC["savefig.dpi"]) -> bytes:
    """Return the figure as the bytes of an "svg", "pdf" or "png" file. A figure with a panel without data raises ValueError.

    >>> rendered(Figure(), "png")[1:4]
    b'PNG'
    """
    _refuse_empty(figure)
    buffer = io.BytesIO()
    with rc_context({"svg.hashsalt": RC["svg.hashsalt"]}):
        figure.savefig(buffer, format=kind, dpi=dpi, metadata=UNDATED[kind])
    return buffer.getvalue()


def pixels(figure: Figure, dpi: float = RC["savefig.dpi"]) -> NDArray[np.uint8]:
    """Return the figure as an image of bytes with the shape (height, width, 4).

    The figure is laid out and drawn once. Writing a file does both twice. A panel without data raises ValueError, as in `rendered`.

    >>> pixels(Figure(figsize=(2, 1)), dpi=50).shape
    (50, 100, 4)
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    _refuse_empty(figure)
    figure.set_dpi(dpi)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())


def _refuse_empty(figure: Figure) -> None:
    if empty := panels_without_data(figure):
        raise Refused(f"the figure has a panel without data: {', '.join(empty)}")
