"""Results on a page as Bokeh figures, tables and sentences, and their downloads as PNG and CSV."""

from __future__ import annotations

import csv
import html
import io
import math
import textwrap
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from bokeh.layouts import column
from bokeh.models import ColumnDataSource, HoverTool, Range1d, Span, Whisker
from bokeh.models.mappers import LinearColorMapper, LogColorMapper
from bokeh.plotting import figure as bokeh_figure
from numpy.typing import NDArray

from limitlab._core.page import number, plain_symbol
from limitlab.plotting.headline import HeadlineView
from limitlab.plotting.panels import wide
from limitlab.plotting.style import COLOURS, finish, new_figure, simulation_points, theory_line

Array = NDArray[np.float64]
MARKS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "plus", "x")
TOOLS = "pan,box_zoom,wheel_zoom,reset"
DARK = {"#000000": "#dddddd", "#0072B2": "#4fb0ea"}
"""Colours that are invisible on a dark page, and their replacements."""


def colour(index: int, dark: bool = False) -> str:
    """Return the colour of a curve."""
    shade = COLOURS[index % len(COLOURS)]
    return DARK.get(shade, shade) if dark else shade


LEGEND_LINE = 52
"""Characters of one line of a legend on a narrow window. The line of an entry counts as six characters."""
REST = 1.0
"""Seconds without a change after which a curve becomes the grey line of the next change."""


class Extras:
    """The grey line of the curves before the last change, and the dots at the present value of the parameter on the axis."""

    def __init__(self, figure: Any, dark: bool):
        self._ghost = ColumnDataSource({"xs": [], "ys": []})
        self._dot = ColumnDataSource({"here": [], "there": []})
        figure.multi_line(
            "xs", "ys", source=self._ghost, color="#888888", line_width=2, line_alpha=0.7, legend_label="before the change"
        )
        self._dots = figure.scatter(
            "here", "there", source=self._dot, size=13, color="#ffffff" if dark else "#222222", legend_label="present value"
        )
        self._now: list[tuple[Array, Array]] = []
        self._changed = -math.inf
        self._entries: list[Any] = []

    def hide_unused(self, figure: Any) -> None:
        """Show an entry in the legend only while there is something to see. Call it after the legend is laid out."""
        items = sorted(figure.legend[0].items, key=lambda each: each.label.value.endswith("experiment"))
        self._entries = [
            next(each for each in items if each.label.value == words) for words in ("before the change", "present value")
        ]
        figure.legend[0].items = [each for each in items if each not in self._entries] + self._entries
        self._show_entries()

    def follow(self, before: Extras) -> None:
        """Take the curves of another plot as the curves before the next change."""
        self._now, self._changed, self._ghost.data = before._now, before._changed, dict(before._ghost.data)
        self._show_entries()

    def lines(self, lines: Sequence[tuple[Array, Array]]) -> None:
        """Take the new curves, and draw the curves before in grey."""
        same = len(lines) == len(self._now) and all(
            np.array_equal(x, a) and np.array_equal(y, b, equal_nan=True)
            for (x, y), (a, b) in zip(lines, self._now, strict=True)
        )
        if same:
            return
        now = time.monotonic()
        if self._now and now - self._changed > REST:
            self._ghost.data = {"xs": [x for x, _ in self._now], "ys": [y for _, y in self._now]}
        self._now, self._changed = [(np.asarray(x), np.asarray(y)) for x, y in lines], now
        self._show_entries()

    def dots(self, here: float | None, log: bool) -> None:
        """Mark a value of the parameter on the axis on every curve. None and values beyond the curve have no mark."""
        places: list[tuple[float, float]] = []
        for x, y in self._now if here is not None and math.isfinite(here) else ():
            there = at_value(x, y, here, log) if here is not None else math.nan
            if math.isfinite(there):
                places.append((float(here or 0.0), there))
        self._dot.data = {"here": [a for a, _ in places], "there": [b for _, b in places]}
        self._show_entries()

    def _show_entries(self) -> None:
        for entry, drawn in zip(self._entries, (self._ghost.data["xs"], self._dot.data["here"]), strict=False):
            entry.visible = len(drawn) > 0


def at_value(x: Array, y: Array, here: float, log: bool) -> float:
    """Return the value of a curve at a position by interpolation. It is NaN beyond the ends of the curve.

    >>> round(at_value(np.array([1.0, 100.0]), np.array([0.0, 1.0]), 10.0, log=True), 6)
    0.5
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    known = np.isfinite(y) & (x > 0 if log else np.isfinite(x))
    if not known.any() or (log and here <= 0):
        return math.nan
    places = np.log(x[known]) if log else x[known]
    return float(np.interp(math.log(here) if log else here, places, y[known], left=math.nan, right=math.nan))


class CurvePlot:
    """Curves with experiments. The axes are fixed, and the numbers can be replaced at any time."""

    def __init__(self, x_label: str, y_label: str, names: Sequence[str], x_log: bool, y_log: bool, dark: bool = False):
        self.key = (x_label, y_label, tuple(names), x_log, y_log, dark)
        self.figure = _figure(x_label, y_label, x_log, y_log, dark)
        self.lines, self.points, self._entries = {}, {}, []
        self.extras = Extras(self.figure, dark)
        for index, name in enumerate(names):
            line = ColumnDataSource({"x": [], "y": []})
            dots = ColumnDataSource({"x": [], "y": [], "low": [], "high": []})
            shade = colour(index, dark)
            label = name.replace("_", " ")
            drawn = self.figure.line("x", "y", source=line, color=shade, line_width=3, legend_label=f"{label}, limit")
            self.figure.scatter(
                "x", "y", source=dots, marker=MARKS[index % len(MARKS)], size=9, line_color=shade, line_width=2,
                fill_color="#181818" if dark else "white", legend_label=f"{label}, experiment",
            )  # fmt: skip
            self.figure.add_layout(_bars(dots, shade))
            self.figure.add_tools(
                HoverTool(renderers=[drawn], tooltips=[(x_label, "@x{0.[0000]}"), (label, "@y{0.[000000]}")])
            )
            self.lines[name], self.points[name] = line, dots
        _legend(self.figure, dark)
        self.extras.hide_unused(self.figure)
        self._entries = [item for item in self.figure.legend[0].items if item.label.value.endswith("experiment")]
        self.remove_experiments()

    def draw(self, x: Array, y: Mapping[str, Array]) -> None:
        """Replace the curves, with gaps where values are not finite."""
        for name, line in self.lines.items():
            known = ~np.isnan(y[name])
            line.data = {"x": x[known], "y": np.where(np.isfinite(y[name][known]), y[name][known], np.nan)}
        self.extras.lines([(line.data["x"], line.data["y"]) for line in self.lines.values()])

    def measure(self, x: Array, mean: Mapping[str, Array], error: Mapping[str, Array]) -> None:
        """Replace the experiments, drawn as means with a standard error on each side."""
        for name, dots in self.points.items():
            known = np.isfinite(mean[name])
            bar = np.where(np.isfinite(error[name]), error[name], 0.0)[known]
            at = mean[name][known]
            dots.data = {"x": x[known], "y": at, "low": at - bar, "high": at + bar}
        for entry in self._entries:
            entry.visible = True

    def remove_experiments(self) -> None:
        """Remove the experiments."""
        for dots in self.points.values():
            dots.data = {"x": [], "y": [], "low": [], "high": []}
        for entry in self._entries:
            entry.visible = False

    def mark(self, x: Sequence[float], y: float | None, dark: bool = False) -> None:
        """Draw lines at the answers of a plan."""
        self.figure.center = [item for item in self.figure.center if not isinstance(item, Span)]
        for place in x:
            self.figure.add_layout(
                Span(location=place, dimension="height", line_color=colour(1, dark), line_dash="dashed", line_width=2)
            )
        if y is not None:
            self.figure.add_layout(
                Span(location=y, dimension="width", line_color=colour(2, dark), line_dash="dotted", line_width=2)
            )


DASHES = {"-": "solid", "--": "dashed", ":": "dotted"}


class HeadlinePlot:
    """The headline view of a law. `layout` is the Bokeh object to show, and `draw` replaces the numbers.

    A view with another `form` needs another plot.
    """

    def __init__(self, view: HeadlineView, dark: bool, before: HeadlinePlot | None = None):
        self.form = form_of(view, dark)
        names = list(view.y_labels)
        self._sources: list[list[ColumnDataSource]] = []
        self._marks: list[list[Span]] = []
        self._log = view.scales[0] == "log"
        panels = range(len(names) if view.panels else 1)
        self.figures = [self._panel(view, names, panel, len(panels), dark) for panel in panels]
        self.layout = column(*self.figures, sizing_mode="stretch_both") if len(panels) > 1 else self.figures[0]
        if before is not None and before.form[0] == view.law and len(before._extras) == len(self._extras):
            for new, old in zip(self._extras, before._extras, strict=True):
                new.follow(old)
        self.draw(view, None)

    def _panel(self, view: HeadlineView, names: Sequence[str], panel: int, panels: int, dark: bool) -> Any:
        label = ", ".join(names) if panels == 1 else names[panel]
        figure = _figure(
            in_words(view.x_label), in_words(view.y_labels[label]) if label in view.y_labels else label.replace("_", " "),
            self._log, view.scales[1] == "log", dark,
        )  # fmt: skip
        figure.y_range = Range1d(0, 1)
        figure.min_height = 300 if panels == 1 else 200
        extras, sources = Extras(figure, dark), []
        for series in view.of_panel(panel):
            index, dashes, words = view.style(series)
            shade, label = colour(index, dark), in_words(words)
            if series.kind == "histogram":
                source = ColumnDataSource({"left": [], "right": [], "top": []})
                figure.quad(
                    left="left", right="right", bottom=0, top="top", source=source, fill_color=shade, fill_alpha=0.25,
                    line_color=shade, line_alpha=0.3, legend_label="one draw",
                )  # fmt: skip
            elif series.kind == "points":
                source = ColumnDataSource({"x": [], "y": [], "low": [], "high": []})
                figure.scatter(
                    "x", "y", source=source, marker=MARKS[index % len(MARKS)], size=9, line_color=shade, line_width=2,
                    fill_color="#181818" if dark else "white", legend_label="experiment",
                )  # fmt: skip
                figure.add_layout(_bars(source, shade))
            else:
                source = ColumnDataSource({"x": [], "y": []})
                drawn = figure.line(
                    "x", "y", source=source, color=shade, line_width=3, line_dash=DASHES[dashes],
                    legend_label=label or "limit",
                )  # fmt: skip
                tips = [(in_words(view.x_label), "@x{0.[0000]}"), (label or "limit", "@y{0.[000000]}")]
                figure.add_tools(HoverTool(renderers=[drawn], tooltips=tips))
            sources.append(source)
        self._sources.append(sources)
        spans = [
            Span(
                dimension="height" if mark.axis == "x" else "width", line_dash="dotted", line_width=2,
                line_color="#888888" if mark.curve is None else colour(mark.curve, dark),
            )
            for mark in view.marks
        ]  # fmt: skip
        for span in spans:
            figure.add_layout(span)
        for words in dict.fromkeys(mark.label for mark in view.marks):
            figure.line(
                [math.nan], [math.nan], line_dash="dotted", line_width=2, color="#888888", legend_label=in_words(words)
            )
        self._marks.append(spans)
        _legend(figure, dark)
        extras.hide_unused(figure)
        figure.legend[0].visible = panel == 0 or bool(figure.legend[0].items)
        self._extras = [*getattr(self, "_extras", []), extras]
        return figure

    def draw(self, view: HeadlineView, here: float | None) -> None:
        """Replace the numbers by those of a view of the same form. `here` is the present value of the parameter on the axis."""
        for panel, figure in enumerate(self.figures):
            lines = []
            for source, series in zip(self._sources[panel], view.of_panel(panel), strict=True):
                x, y = np.asarray(series.x, dtype=float), np.asarray(series.y, dtype=float)
                y = np.where(np.isfinite(y), y, np.nan)
                if series.kind == "histogram":
                    source.data = {"left": x[:-1], "right": x[1:], "top": y}
                elif series.kind == "points":
                    error = np.nan_to_num(np.asarray(series.error, dtype=float))
                    source.data = {"x": x, "y": y, "low": y - error, "high": y + error}
                else:
                    source.data = {"x": x, "y": y}
                    lines.append((x, y))
            for span, mark in zip(self._marks[panel], view.marks, strict=True):
                span.location = mark.value
            low, high = view.limits(panel)
            if view.scales[1] == "log":
                figure.y_range.update(start=low / 1.3, end=high * 1.3)
            else:
                edge = 0.04 * ((high - low) or abs(high) or 1.0)
                figure.y_range.update(start=low - edge, end=high + edge)
            self._extras[panel].lines(lines)
            self._extras[panel].dots(here, self._log)

    def mark(self, here: float | None) -> None:
        """Move the dots at the present value."""
        for extras in self._extras:
            extras.dots(here, self._log)


def form_of(view: HeadlineView, dark: bool) -> Any:
    """Return everything of a view but its numbers."""
    parts = [(series.kind, *view.style(series)) for series in view.series]
    marks = [(mark.axis, mark.label, mark.curve) for mark in view.marks]
    return (view.law, view.x_label, view.y_labels, view.scales, view.panels, parts, marks, dark)


def in_words(label: str) -> str:
    r"""Return a label without LaTeX.

    >>> in_words(r"features per sample $\gamma = p/n$")
    'features per sample γ = p/n'
    """
    return plain_symbol(label.replace("$", ""))


def gaps(x: Array, mean: Array, error: Array, limit: Array) -> list[tuple[float, float, float]]:
    """Return position, relative gap, and gap in standard errors (NaN for a single draw) of every finite point."""
    found = []
    for place, value, spread, line in zip(x, mean, error, limit, strict=True):
        if np.isfinite(value) and np.isfinite(line):
            gap = abs(value - line)
            found.append(
                (float(place), float(gap / abs(line)) if line else math.inf, float(gap / spread) if spread > 0 else math.nan)
            )
    return found


def disagreement(found: Sequence[tuple[float, float, float]], along: str) -> str:
    """Return a sentence about the gaps between points and limit.

    >>> disagreement([(1.0, 0.02, 1.0), (2.0, 0.1, 5.0)], "ratio")
    '1 of 2 points are within 2 standard errors of the limit; the largest gap is 10 % (5 standard errors) at ratio = 2'
    """
    if not found:
        return ""
    known = [(place, share, z) for place, share, z in found if math.isfinite(z)]
    place, share, z = max(found, key=lambda each: each[1] if math.isfinite(each[1]) else -1.0)
    largest = f"the largest gap is {100 * share:.2g} %" if math.isfinite(share) else "the limit is zero there"
    if math.isfinite(z):
        largest += f" ({z:.2g} standard errors)"
    words = f"{largest} at {along} = {place:.4g}"
    if known:
        words = (
            f"{sum(z <= 2 for _, _, z in known)} of {len(known)} points are within 2 standard errors of the limit; {words}"
        )
    return words


def phase_figure(x: Array, y: Array, z: Array, words: Sequence[str], logs: tuple[bool, bool], dark: bool = False) -> Any:
    """Return a heat map. `words` contains the labels of x, y and the colours."""
    figure = _figure(words[0], words[1], *logs, dark, frame=False)
    finite = z[np.isfinite(z)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    kind = LogColorMapper if wide(finite) and low > 0 else LinearColorMapper
    mapper = kind(palette="Viridis256", low=low, high=high if high > low else low + 1, nan_color="#888888")
    left, right = _edges(x, logs[0])
    bottom, top = _edges(y, logs[1])
    rows, columns = z.shape
    data = {
        "left": np.tile(left, rows), "right": np.tile(right, rows), "bottom": np.repeat(bottom, columns), "top": np.repeat(top, columns),
        "x": np.tile(x, rows), "y": np.repeat(y, columns), "z": np.where(np.isfinite(z), z, np.nan).ravel(),
    }  # fmt: skip
    quads = figure.quad(
        left="left", right="right", bottom="bottom", top="top", source=ColumnDataSource(data), line_width=1,
        fill_color={"field": "z", "transform": mapper}, line_color={"field": "z", "transform": mapper},
    )  # fmt: skip
    figure.add_layout(
        quads.construct_color_bar(
            title=words[2], width=14, title_text_font_size="14px", title_text_font_style="normal", background_fill_alpha=0
        ),
        "right",
    )
    bar = figure.right[0]
    bar.major_label_text_color = bar.title_text_color = "#dddddd" if dark else "#222222"
    places = zip(words, ("@x{0.[0000]}", "@y{0.[0000]}", "@z{0.[0000]}"), strict=True)
    figure.add_tools(HoverTool(renderers=[quads], tooltips=list(places)))
    return figure


def gap_figure(sizes: Sequence[int], gaps: Mapping[str, tuple[Array, Array]], dark: bool = False) -> Any:
    """Draw experiment minus limit against size, as multiples of the largest gap of each observable."""
    figure = _figure("size", "gap (of the largest)", True, False, dark)
    for index, (name, (gap, error)) in enumerate(list(gaps.items())[: len(COLOURS)]):
        scale = float(np.nanmax(np.abs(gap) + np.where(np.isfinite(error), error, 0.0))) or 1.0
        shift = 1.02 ** (index - len(gaps) / 2)
        source = ColumnDataSource(
            {"x": np.asarray(sizes) * shift, "y": gap / scale, "low": (gap - error) / scale, "high": (gap + error) / scale}
        )
        shade = colour(index, dark)
        figure.scatter(
            "x", "y", source=source, marker=MARKS[index], size=9, color=shade, legend_label=name.replace("_", " ")
        )
        figure.add_layout(_bars(source, shade))
    figure.add_layout(Span(location=0, dimension="width", line_color="#888888", line_dash="dashed"))
    _legend(figure, dark, "right")
    return figure


def forecast_figure(result: Mapping[str, Any], dark: bool = False) -> Any:
    """Draw the forecast of a learning curve with its band, and mark the number of rows in the data."""
    figure = _figure("rows n", _metric(result), True, bool(wide(result["value"])), dark)
    if result["low"] is not None:
        band = ColumnDataSource({"x": result["n"], "low": result["low"], "high": result["high"]})
        words = f"band ({result['band']:.0%})"
        figure.varea("x", "low", "high", source=band, fill_color=colour(0, dark), fill_alpha=0.2, legend_label=words)
    lines = []
    for part, dash, words in _forecast_lines(result):
        source = ColumnDataSource({"x": result["n"][part], "y": result["value"][part]})
        style = {"color": colour(0, dark), "line_width": 3, "line_dash": dash, "legend_label": words}
        lines.append(figure.line("x", "y", source=source, **style))
    figure.add_tools(HoverTool(renderers=lines, tooltips=[("rows", "@x{0}"), ("error", "@y{0.[0000]}")]))
    if result["real_fits"] is not None:
        fits = result["real_fits"]
        ends = {"low": fits["value"] - fits["error"], "high": fits["value"] + fits["error"]}
        source = ColumnDataSource({"x": fits["n"], "y": fits["value"], **ends})
        figure.scatter("x", "y", source=source, size=8, color=colour(1, dark), legend_label="real fits")
        figure.segment("x", "low", "x", "high", source=source, color=colour(1, dark))
    figure.add_layout(Span(location=result["rows"], dimension="height", line_color="#888888", line_dash="dashed"))
    _legend(figure, dark)
    return figure


def _forecast_lines(result: Mapping[str, Any]) -> list[tuple[slice, str, str]]:
    """Return the parts of a forecast within the data and beyond it, each with its dashes and its name in the legend."""
    beyond = np.asarray(result["beyond"], dtype=bool)
    first = int(np.argmax(beyond)) if beyond.any() else beyond.size
    parts = [(slice(0, first), "solid", "forecast")] if first else []
    if beyond.any():
        parts.append((slice(max(first - 1, 0), None), "dashed", "beyond the data"))
    return parts


def _metric(result: Mapping[str, Any]) -> str:
    return "mean squared error (the mean as prediction has error 1)" if result["metric"] == "mse" else str(result["metric"])


def _figure(x_label: str, y_label: str, x_log: bool, y_log: bool, dark: bool, frame: bool = True) -> Any:
    made = bokeh_figure(
        x_axis_type="log" if x_log else "linear", y_axis_type="log" if y_log else "linear", tools=TOOLS, toolbar_location="above",
        sizing_mode="stretch_both", min_height=300, x_axis_label=x_label, y_axis_label=y_label, output_backend="canvas",
    )  # fmt: skip
    made.toolbar.logo = None
    ink, paper = ("#dddddd", "#181818") if dark else ("#222222", "#ffffff")
    made.background_fill_color = made.border_fill_color = paper
    made.outline_line_color = None
    for axis in made.axis:
        axis.axis_label_text_font_size, axis.major_label_text_font_size = "16px", "14px"
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_color = axis.major_label_text_color = ink
        axis.axis_line_color = axis.major_tick_line_color = axis.minor_tick_line_color = ink
    made.grid.grid_line_color, made.grid.grid_line_alpha = ink, 0.15 if frame else 0.0
    return made


def _legend(figure: Any, dark: bool, side: str = "above") -> None:
    if not figure.legend:
        return
    legend = figure.legend[0]
    figure.center.remove(legend)
    figure.add_layout(legend, side)
    legend.background_fill_color, legend.background_fill_alpha = "#181818" if dark else "#ffffff", 0.75
    legend.border_line_color = None
    legend.label_text_color = "#dddddd" if dark else "#222222"
    legend.label_text_font_size, legend.click_policy = "13px", "hide"
    legend.spacing, legend.glyph_height, legend.label_height = 0, 16, 16
    lengths = [len(item.label.value) + 6 for item in legend.items]
    if side == "above":  # a narrow window has room for a few entries in a line
        fits = (n for n in range(len(lengths), 1, -1) if sum(max(lengths[k::n]) for k in range(n)) <= LEGEND_LINE)
        legend.ncols = next(fits, 1)
    legend.orientation = "horizontal" if side == "above" else "vertical"
    legend.margin, legend.padding = 0, 2


def _bars(source: Any, shade: str) -> Any:
    """Return error bars in the colour of their points."""
    bars = Whisker(base="x", upper="high", lower="low", source=source, line_color=shade, line_width=2)
    for head in (bars.upper_head, bars.lower_head):
        head.size, head.line_color = 6, shade
    return bars


def _edges(values: Array, log: bool) -> tuple[Array, Array]:
    """Return the left and right ends of cells around values."""
    if len(values) == 1:
        return values * (0.9 if log else 1.0) - (0.0 if log else 0.5), values * (1.1 if log else 1.0) + (0.0 if log else 0.5)
    places = np.log(values) if log else values
    middles = (places[1:] + places[:-1]) / 2
    ends = np.concatenate([[2 * places[0] - middles[0]], middles, [2 * places[-1] - middles[-1]]])
    ends = np.exp(ends) if log else ends
    return ends[:-1], ends[1:]


# -- PNG --------------------------------------------------------------------------------------------------------------------


def curve_png(
    x_label: str,
    y_label: str,
    x_log: bool,
    y_log: bool,
    theory: Mapping[str, Any] | None,
    measured: Mapping[str, Any] | None,
    title: str = "",
    caption: str = "",
) -> bytes:
    """Return the curves and experiments of a view as a PNG."""
    figure, (axes,) = new_figure()
    names = list((theory or measured or {"y": {}})["y" if theory else "mean"])
    for index, name in enumerate(names):
        label = name.replace("_", " ")
        if theory:
            line = theory["y"][name]
            theory_line(axes, theory["x"], np.where(np.isfinite(line), line, math.nan), index, f"{label}, limit")
        if measured and name in measured["mean"]:
            simulation_points(
                axes, measured["x"], measured["mean"][name], measured["error"][name], index, f"{label}, experiment"
            )
    finish(axes, x_label, y_label, xscale="log" if x_log else "linear", yscale="log" if y_log else "linear")
    return _bytes(figure, title, caption)


def phase_png(
    result: Mapping[str, Any], words: Sequence[str], logs: tuple[bool, bool], title: str = "", caption: str = ""
) -> bytes:
    """Return a phase diagram as a PNG."""
    from matplotlib.colors import LogNorm

    figure, (axes,) = new_figure()
    z = np.ma.masked_invalid(result["z"])
    norm = LogNorm() if wide(z.compressed()) and z.min() > 0 else None
    mesh = axes.pcolormesh(result["x"], result["y"], z, shading="nearest", norm=norm, cmap="viridis")
    figure.colorbar(mesh, ax=axes, label=words[2])
    finish(
        axes, words[0], words[1], xscale="log" if logs[0] else "linear", yscale="log" if logs[1] else "linear", legend=False
    )
    return _bytes(figure, title, caption)


def gap_png(result: Mapping[str, Any], title: str = "", caption: str = "") -> bytes:
    """Return the gaps of a comparison as a PNG."""
    figure, (axes,) = new_figure()
    for index, (name, (gap, error)) in enumerate(result["gaps"].items()):
        scale = float(np.nanmax(np.abs(gap))) or 1.0
        simulation_points(axes, result["sizes"], gap / scale, error / scale, index, name.replace("_", " "))
    axes.axhline(0, color="#888888", linestyle="--")
    finish(axes, "size", "experiment minus limit (share of the largest)", xscale="log")
    return _bytes(figure, title, caption)


def forecast_png(result: Mapping[str, Any]) -> bytes:
    """Return a forecast as a PNG."""
    figure, (axes,) = new_figure()
    if result["low"] is not None:
        label = f"band ({result['band']:.0%})"
        axes.fill_between(result["n"], result["low"], result["high"], color=COLOURS[0], alpha=0.2, label=label)
    for part, dash, words in _forecast_lines(result):
        theory_line(axes, result["n"][part], result["value"][part], 0, words, linestyle="-" if dash == "solid" else "--")
    if result["real_fits"] is not None:
        fits = result["real_fits"]
        simulation_points(axes, fits["n"], fits["value"], fits["error"], 1, "real fits")
    axes.axvline(result["rows"], color="#888888", linestyle="--")
    finish(axes, "rows n", _metric(result), xscale="log")
    return _bytes(figure)


def headline_png(view: HeadlineView) -> bytes:
    """Return a headline view as a PNG."""
    return _bytes(view.figure())


def _bytes(figure: Any, title: str = "", caption: str = "") -> bytes:
    """Return a figure as a PNG, with wrapped title, caption and labels, so that no text is cut."""
    if title:
        figure.suptitle(textwrap.fill(title, 62), fontsize=13, x=0.02, ha="left")
    if caption:
        figure.supxlabel(textwrap.fill(caption, 95), fontsize=9.5, color="0.4", x=0.02, ha="left", multialignment="left")
    for axes in figure.axes:
        axes.set_ylabel(textwrap.fill(axes.get_ylabel(), 32))
        axes.set_xlabel(textwrap.fill(axes.get_xlabel(), 44))
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=150)
    return stream.getvalue()


# -- results as words and tables ----------------------------------------------------------------------------------------------

COLUMNS = {
    "observable": "observable",
    "verdict": "verdict",
    "theory": "limit",
    "simulation": "experiment",
    "gap": "gap",
    "standard_error": "standard error",
    "finite_size_allowance": "finite-size allowance",
    "z": "z",
    "half_width": "half width",
    "numerical_error": "numerical error",
}
"""Columns of the error budget: fields of `lab.judging.Row` and their headings."""


def verdict_html(result: Mapping[str, Any]) -> str:
    """Return a comparison as HTML, with the verdict, its explanation and the error budget."""
    rows = [[shown(row.get(field, "")) for field in COLUMNS] for row in result["rows"]]
    badge = f'<p class="verdict {result["verdict"]}"><b>{result["verdict"]}</b> {html.escape(result["explanation"])}</p>'
    return badge + table_html(list(COLUMNS.values()), rows)


def plan_html(result: Mapping[str, Any], along: str, observable: str, wanted: float) -> str:
    """Return a plan as HTML, with every answer and the observables at the first."""
    if not result["solutions"]:
        return f'<p class="verdict underpowered"><b>not reachable</b> {html.escape(result["sentence"])}</p>'
    first, *others = map(number, result["solutions"])
    more = f" Other answers: {', '.join(others)}." if others else ""
    words = f"<b>{along} = {first}</b> gives {observable} = {number(wanted)}.{more}"
    there = result["observables"]
    return f'<p class="verdict agree">{words}</p>' + table_html(list(there), [[shown(value) for value in there.values()]])


def forecast_html(result: Mapping[str, Any]) -> str:
    """Return a forecast as HTML, with its sentences, its warnings and the notes on the preparation of the table.

    The box of the sentences has the colour of doubt if there are warnings.
    """
    kind = "underpowered" if result["warnings"] else "agree"
    sentences = "".join(f"<p>{html.escape(words)}</p>" for words in result["sentences"])
    warned = "".join(f'<p class="verdict disagree">{html.escape(words)}</p>' for words in result["warnings"])
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in result["notes"])
    return f'<div class="verdict {kind}">{sentences}</div>{warned}<ul class="notes">{notes}</ul>'


def table_html(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return an HTML table with text in every cell.

    >>> table_html(["a"], [["<b>"]])
    '<div class="table"><table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table></div>'
    """
    head = "".join(f"<th>{html.escape(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def shown(value: Any) -> str:
    """Return a cell of the error budget with three digits."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


# -- CSV --------------------------------------------------------------------------------------------------------------------


def curve_csv(along: str, theory: Mapping[str, Any] | None, measured: Mapping[str, Any] | None) -> str:
    """Return a CSV table with one line per number.

    A line contains the parameter, the kind, the observable, the value, and for experiments the standard error and the number of draws.
    """
    rows: list[list[Any]] = []
    for name, line in (theory["y"] if theory else {}).items():
        rows += [[x, "limit", name, y, "", ""] for x, y in zip(theory["x"], line, strict=True)]  # type: ignore[index]
    for name, mean in (measured["mean"] if measured else {}).items():
        parts = zip(measured["x"], mean, measured["error"][name], measured["draws"], strict=True)  # type: ignore[index]
        rows += [[x, "experiment", name, y, error, int(draws)] for x, y, error, draws in parts if draws]
    return _csv([along, "kind", "observable", "value", "standard_error", "draws"], rows)


def headline_csv(view: HeadlineView) -> str:
    """Return a CSV table with one line per number of a headline view. A bar of a histogram has the middle of its interval."""
    rows: list[list[Any]] = []
    for series in view.series:
        x = np.asarray(series.x, dtype=float)
        x = (x[:-1] + x[1:]) / 2 if series.kind == "histogram" else x
        errors: Sequence[Any] = series.error or [""] * len(x)
        kind = {"line": "limit", "points": "experiment"}.get(series.kind, series.kind)
        rows += [
            [a, kind, series.observable, in_words(series.label), y, error]
            for a, y, error in zip(x.tolist(), series.y, errors, strict=True)
        ]
    return _csv([in_words(view.x_label), "kind", "observable", "curve", "value", "standard_error"], rows)


def phase_csv(x: str, y: str, observable: str, result: Mapping[str, Any]) -> str:
    """Return a CSV table with one line per point of the grid."""
    rows = [[a, b, result["z"][j, i]] for j, b in enumerate(result["y"]) for i, a in enumerate(result["x"])]
    return _csv([x, y, observable], rows)


def compare_csv(result: Mapping[str, Any]) -> str:
    """Return the error budget as CSV."""
    return _csv(list(COLUMNS), [[row.get(field, "") for field in COLUMNS] for row in result["rows"]])


def plan_csv(result: Mapping[str, Any], along: str) -> str:
    """Return every answer as CSV."""
    return _csv([along], [[value] for value in result["solutions"]])


def forecast_csv(result: Mapping[str, Any]) -> str:
    """Return the forecast and its band as CSV."""
    blank = [""] * len(result["n"])
    low, high = (result[end] if result[end] is not None else blank for end in ("low", "high"))
    return _csv(["n", result["metric"], "low", "high"], list(zip(result["n"], result["value"], low, high, strict=True)))


def _csv(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows([[repr(float(cell)) if isinstance(cell, float) else cell for cell in row] for row in rows])
    return stream.getvalue()
