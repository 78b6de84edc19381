"""The headline view of a law as data and as a picture."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from limitlab._core.about import brief
from limitlab._core.draws import mean_and_error
from limitlab._core.headline import Headline, headline_of
from limitlab._core.law import Law
from limitlab.plotting.along import draws_along, predictions_along
from limitlab.plotting.panels import drawable
from limitlab.plotting.style import COLOURS, RC, finish, new_figure, simulation_points, theory_line

__all__ = ["HeadlineView", "headline_view"]

Array = NDArray[np.float64]
DASHES = ("-", "--", ":")
DOTS = (0, (1, 2))
"""The line style of a landmark."""
BINS = 45
"""Number of bars of a histogram."""
SETTING_LINE, LONGEST_SETTING = 95, 180
"""Characters of one line of the setting below the panel, and of the whole setting."""
LONG_LABEL = 28
"""Characters of a label of the vertical axis above which its letters are smaller."""
LEGEND_LINE = 62
"""Characters of one line of the legend above a panel with a width of five inches. The line of an entry counts as six characters."""


@dataclass(frozen=True)
class Series:
    """One line, one set of points or one histogram of a view."""

    kind: Literal["line", "points", "histogram"]
    observable: str
    label: str
    curve: int
    x: tuple[float, ...]
    y: tuple[float, ...]
    error: tuple[float, ...] = ()

    @property
    def name(self) -> str:
        """The name of the observable, without the number of a component."""
        return self.observable.partition("[")[0]


@dataclass(frozen=True)
class Landmark:
    """A position on an axis with a few words."""

    axis: Literal["x", "y"]
    value: float
    label: str
    curve: int | None


@dataclass(frozen=True)
class HeadlineView:
    """The numbers of a headline view, with the words that belong to it.

    Examples
    --------
    >>> from limitlab.laws import Ridge
    >>> view = headline_view(Ridge, points=False)
    >>> view.finding, view.x_label
    ('Worst exactly at one feature per sample', 'features per sample $\\\\gamma = p/n$')
    >>> figure = view.figure()
    """

    law: str
    finding: str
    setting: str
    x_label: str
    y_labels: dict[str, str]
    scales: tuple[str, str]
    panels: bool
    series: tuple[Series, ...]
    marks: tuple[Landmark, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the view as plain values, which JSON can hold."""
        return asdict(self)

    def of_panel(self, panel: int) -> list[Series]:
        """Return the series of one panel."""
        names = list(self.y_labels)
        return [each for each in self.series if not self.panels or names.index(each.name) == panel]

    def limits(self, panel: int = 0) -> tuple[float, float]:
        """Return the range of the vertical axis of a panel, without margins.

        The range ends at six times the upper quartile of the lines if a line is higher, so that the rest stays visible.
        """
        shown = self.of_panel(panel)
        lines = _finite([each for each in shown if each.kind != "points"])
        points = _finite([each for each in shown if each.kind == "points"])
        both = np.concatenate([lines, points])
        if self.scales[1] == "log":
            positive = both[both > 0]
            return (float(positive.min()), float(positive.max())) if positive.size else (0.1, 1.0)
        if not both.size:
            return 0.0, 1.0
        histogram = any(each.kind == "histogram" for each in shown)
        low, high = min(both.min(), 0.0) if histogram else both.min(), both.max()
        upper = 6 * float(np.quantile(lines, 0.75)) if lines.size >= 8 and not histogram else 0.0
        return float(low), float(upper if lines.min(initial=0.0) >= 0 and lines.max(initial=0.0) > upper > 0 else high)

    def figure(self, width: float = 6.4, height: float = 4.4) -> Figure:
        """Return the view as a figure, with the finding as its title and the setting below the panels."""
        rows = len(self.y_labels) if self.panels else 1
        figure, axes = new_figure(1, rows, width, height if rows == 1 else 0.75 * height)
        self.draw(axes)
        figure.suptitle(self.finding, fontsize=14, x=0.02, ha="left")
        if self.setting:
            lines = textwrap.fill(self.setting, round(SETTING_LINE * width / 6.4))
            figure.supxlabel(lines, fontsize=9.5, color="0.4", x=0.02, ha="left", multialignment="left")
        return figure

    def draw(self, axes: Sequence[Axes], small: bool = False) -> None:
        """Draw the view on one panel, or on one panel for each observable.

        The legend, which also names the landmarks, is above a panel, so that it covers no curve. A small picture has no labels and no
        legend.
        """
        names = list(self.y_labels)
        for panel, each in enumerate(axes):
            each.set(xscale=self.scales[0], yscale=self.scales[1])
            for series in self.of_panel(panel):
                colour, dashes, label = self.style(series)
                _draw_series(each, series, colour, dashes, None if small else label, small)
            for mark in self.marks:
                _draw_mark(each, mark, small)
            if (upper := self.limits(panel)[1]) < _finite([s for s in self.of_panel(panel) if s.kind != "points"]).max(
                initial=0.0
            ):
                each.set_ylim(0, upper)
            if small:
                each.set(xticks=[], yticks=[], xticklabels=[], yticklabels=[])
                each.minorticks_off()
                continue
            label = self.y_labels[names[panel]] if self.panels or len(names) == 1 else ""
            finish(each, self.x_label if panel == len(axes) - 1 else "", label, legend=False)
            if _visible(label) > LONG_LABEL:
                each.yaxis.label.set_fontsize(0.8 * RC["axes.labelsize"])
            if panel == 0:
                _legend_above(each, self.marks)

    def style(self, series: Series) -> tuple[int, str, str]:
        """Return colour, dashes and label of a series.

        The colour is that of the curve if there are several curves, else of the component or of the observable. The second of two
        observables on one panel is dashed.
        """
        names = list(self.y_labels)
        components = list(dict.fromkeys(each.observable for each in self.series if each.name == series.name))
        name, _, number = series.observable.partition("[")
        observable = 0 if self.panels else names.index(name)
        several = any(each.curve for each in self.series)
        part = components.index(series.observable)
        words = [series.label] if series.label else []
        if number:
            words.append(f"{name.replace('_', ' ')} {number.rstrip(']')}")
        elif len(names) > 1 and not self.panels:
            words.append(name.replace("_", " "))
        return (series.curve if several else part or observable), DASHES[observable % len(DASHES)], ", ".join(words)


def headline_view(law: Law | type[Law], *, points: bool = True, **changes: Any) -> HeadlineView:
    """Return the headline view of a law, with its prediction and its experiments.

    Parameters
    ----------
    law
        A law, or a class of laws. The parameters of a law replace those of the declared view where they differ from their defaults.
    points
        Whether to run the experiments.
    changes
        Parameters to change.

    Examples
    --------
    >>> from limitlab.laws import Ridge
    >>> view = headline_view(Ridge, noise=0.2)
    >>> sorted({series.kind for series in view.series})
    ['line', 'points']
    """
    kind = law if isinstance(law, type) else type(law)
    view = headline_of(kind)
    own = {} if isinstance(law, type) else {name: getattr(law, name) for name in law.model_fields_set}
    base = kind(**{**view.at, **own, **changes})
    varied = view.curves if view.curves is not None and view.curves[0] not in {**own, **changes} else None
    curves = (
        [(_curve_label(kind, varied[0], value), base.replace(**{varied[0]: value})) for value in varied[1]]
        if varied
        else [("", base)]
    )
    series = [each for number, (label, one) in enumerate(curves) for each in _series(view, one, label, number, points)]
    return HeadlineView(
        law=kind.__name__,
        finding=view.finding,
        setting=setting(view, base, points, {varied[0] if varied else ""}),
        x_label=_x_label(kind, view.x),
        y_labels={name: _y_label(kind, name) for name in dict.fromkeys(each.name for each in series)},
        scales=(view.scale, view.y_scale),
        panels=view.panels,
        series=tuple(series),
        marks=tuple(_landmarks(view, base, [one for _, one in curves])),
    )


# -- numbers --------------------------------------------------------------------------------------------------------------


def _series(view: Headline, law: Law, label: str, curve: int, points: bool) -> Iterator[Series]:
    """Yield the line of every observable of one curve, and its points or its histogram."""
    values = view.values()
    lines = law.headline_line(values) if hasattr(law, "headline_line") else predictions_along(law, view.x, values)
    for name, y in _named(law, view, lines):
        yield Series("line", name, label, curve, tuple(values.tolist()), tuple(np.broadcast_to(y, values.shape).tolist()))
    if not points:
        return
    if hasattr(law, "headline_histogram"):
        low, high, _ = view.over
        samples = np.asarray(law.headline_histogram(view.size, 0), dtype=float)
        heights, edges = np.histogram(samples, bins=BINS, range=(low, high))
        density = heights / (samples.size * np.diff(edges))
        yield Series("histogram", view.show[0], label, curve, tuple(edges.tolist()), tuple(density.tolist()))
        return
    if not view.places:
        return
    places = np.asarray(view.places, dtype=float)
    seeds = range(view.draws)
    size = int if view.size is None else view.size
    if hasattr(law, "headline_points"):
        draws = law.headline_points(view.size, seeds, places)
    else:
        draws = draws_along(law, view.x, places, size, seeds)
    for name, table in _named(law, view, draws, axis=2):
        mean, error = mean_and_error(table) if len(table) > 1 else (table[0], np.zeros_like(table[0]))
        yield Series("points", name, label, curve, view.places, tuple(mean.tolist()), tuple(error.tolist()))


def _named(law: Law, view: Headline, values: Mapping[str, Any], axis: int = 1) -> Iterator[tuple[str, Array]]:
    """Yield the arrays of observables; an array with a further axis yields one entry for each value of its coordinate."""
    for name in view.show:
        array = np.asarray(values[name], dtype=float)
        flat = array.reshape(*array.shape[:axis], -1) if array.ndim > axis else array[..., None]
        count = flat.shape[-1]
        lines = [line for key, line in law.coordinates().items() if np.size(line) == count and key not in (view.x, "time")]
        numbers = np.ravel(lines[0]).tolist() if len(lines) == 1 else range(1, count + 1)
        for column, number in enumerate(numbers):
            yield (name if count == 1 else f"{name}[{brief(number)}]"), flat[..., column]


def _landmarks(view: Headline, base: Law, curves: Sequence[Law]) -> Iterator[Landmark]:
    """Yield the landmarks with a finite position."""
    for mark in view.marks:
        for number, law in enumerate(curves if mark.each else [base]):
            if np.isfinite(value := mark.position(law)):
                yield Landmark(mark.axis, value, mark.label, number if mark.each else None)


# -- words ----------------------------------------------------------------------------------------------------------------


def _curve_label(law: type[Law], name: str, value: Any) -> str:
    """Return the label of a curve, with the symbol of its parameter where it is short."""
    if isinstance(value, str):
        return value
    symbol = law.parameters()[name].symbol.partition("=")[0].strip()
    return drawable(f"{symbol} = {_tex_number(brief(value))}") if symbol else f"{name.replace('_', ' ')} {brief(value)}"


def _tex_number(text: str) -> str:
    r"""Return numbers in LaTeX, with powers of ten instead of the letter e.

    >>> _tex_number("1e-05"), _tex_number("inf"), _tex_number("0.25")
    ('10^{-5}', '\\infty', '0.25')
    """
    power = re.sub(r"([\d.]+)e([+-]\d+)", lambda m: rf"{m[1]} \cdot 10^{{{int(m[2])}}}", text)
    return re.sub(r"(?<![\d.])1 \\cdot ", "", power).replace("inf", r"\infty")


def setting(view: Headline, law: Law, points: bool, varied: Collection[str] = ()) -> str:
    """Return the parameters that the picture fixes, and what its points are, without the parameters that vary."""
    fixed = {name for name in law.model_fields_set if name != view.x and name not in varied}
    metas = type(law).parameters()
    words = [
        f"{name.replace('_', ' ')} {_short(getattr(law, name))}"
        for name in metas
        if name in fixed and metas[name].kind == "physics"
    ]
    if points and hasattr(law, "headline_histogram"):
        words.append(f"bars: one draw of size {view.size}")
    elif points and view.places:
        words.append(f"points: {view.draws} draws" + ("" if view.size is None else f" of size {view.size}"))
    return textwrap.shorten(", ".join(words), LONGEST_SETTING, placeholder=" ...")


def _short(value: Any) -> str:
    """Return a value in few characters; a function has its name."""
    name = getattr(value, "name", None)
    return name if isinstance(name, str) else brief(value)


def _x_label(law: type[Law], name: str) -> str:
    if name == "size":
        return law.simulation.size_meaning
    meta = law.parameters().get(name)
    if meta is None:
        return name
    words = meta.dimension if meta.kind == "coordinate" and meta.dimension != meta.symbol else meta.description
    return f"{words.partition(', ')[0]} {drawable(meta.symbol)}".rstrip()


def _y_label(law: type[Law], name: str) -> str:
    meta = law.all_outputs().get(name)
    return f"{name.replace('_', ' ')} {drawable(meta.symbol) if meta else ''}".rstrip()


# -- drawing --------------------------------------------------------------------------------------------------------------


def _draw_series(axes: Axes, series: Series, colour: int, dashes: str, label: str | None, small: bool) -> None:
    """Draw one series. A small picture has thinner lines and smaller points."""
    y = np.asarray(series.y)
    y = np.where(np.isfinite(y), y, np.nan)
    if series.kind == "line":
        theory_line(axes, series.x, y, colour, label or None, linestyle=dashes, linewidth=1.4 if small else 2.0)
    elif series.kind == "histogram":
        axes.stairs(y, series.x, fill=True, color=COLOURS[colour % len(COLOURS)], alpha=0.25)
    else:
        simulation_points(axes, series.x, y, None if small else series.error, colour, None, markersize=3 if small else 6)


def _draw_mark(axes: Axes, mark: Landmark, small: bool) -> None:
    """Draw a landmark as a dotted line across the panel."""
    colour = "0.55" if mark.curve is None else COLOURS[mark.curve % len(COLOURS)]
    line = axes.axvline if mark.axis == "x" else axes.axhline
    line(mark.value, color=colour, linestyle=DOTS, linewidth=1.0 if small else 1.3, zorder=0)


def _legend_above(axes: Axes, marks: Sequence[Landmark]) -> None:
    """Add a legend of curves and landmarks above a panel, in as few lines as its width allows."""
    handles, labels = axes.get_legend_handles_labels()
    for label in dict.fromkeys(mark.label for mark in marks):
        handles.append(Line2D([], [], color="0.5", linestyle=DOTS, linewidth=1.3))
        labels.append(label)
    if not labels:
        return
    lengths = [_visible(label) + 6 for label in labels]
    room = LEGEND_LINE * axes.bbox.width / axes.figure.dpi / 5
    columns = next((n for n in range(len(labels), 1, -1) if _legend_length(lengths, n) <= room), 1)
    axes.legend(
        handles,
        labels,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=columns,
        frameon=False,
        fontsize=RC["legend.fontsize"],
        borderaxespad=0.1,
        borderpad=0.1,
        columnspacing=1.4,
        handlelength=1.7,
    )


def _visible(label: str) -> int:
    r"""Return the number of characters of a label that are drawn.

    >>> _visible(r"test error $E_{\mathrm{test}}$")
    16
    """
    plain = re.sub(r"\\(mathrm|text|operatorname|mathbb|mathcal|hat|bar)(?![a-zA-Z])|[${}_^]", "", label)
    return len(re.sub(r"\\[a-zA-Z]+", "x", plain))


def _legend_length(lengths: Sequence[int], columns: int) -> int:
    """Return the length of the lines of a legend whose entries fill one column after the other.

    >>> _legend_length([3, 10, 4, 4], 3)
    18
    """
    return sum(int(column.max()) for column in np.array_split(lengths, columns))


def _finite(series: Sequence[Series]) -> Array:
    """Return the finite values of several series."""
    values = np.concatenate([np.asarray(each.y, dtype=float) for each in series]) if series else np.array([])
    return values[np.isfinite(values)]
