"""The headline view of a law as data and as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from limitlab._core.about import brief
from limitlab._core.draws import mean_and_error
from limitlab._core.headline import Headline, headline_of
from limitlab._core.law import Law
from limitlab.plotting.along import draws_along, predictions_along
from limitlab.plotting.panels import drawable
from limitlab.plotting.style import COLOURS, finish, new_figure, simulation_points, theory_line

__all__ = ["HeadlineView", "headline_view"]

Array = NDArray[np.float64]
DASHES = ("-", "--", ":")
BINS = 45
"""Number of bars of a histogram."""


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

    def figure(self, width: float = 6.4, height: float = 4.4) -> Figure:
        """Return the view as a figure, with the finding as its title and the setting below it."""
        rows = len(self.y_labels) if self.panels else 1
        figure, axes = new_figure(1, rows, width, height if rows == 1 else 0.75 * height)
        self.draw(axes)
        figure.suptitle(self.finding, fontsize=14, x=0.02, ha="left")
        axes[0].set_title(self.setting, fontsize=9.5, color="0.45", loc="left")
        return figure

    def draw(self, axes: Sequence[Axes], small: bool = False) -> None:
        """Draw the view on one panel, or on one panel for each observable.

        A small picture has no labels and no legend.
        """
        names = list(self.y_labels)
        for panel, each in enumerate(axes):
            each.set(xscale=self.scales[0], yscale=self.scales[1])
            for series in self.of_panel(panel):
                _draw_series(each, series, 0 if self.panels else names.index(series.name), self._several(), small)
            for mark in self.marks:
                _draw_mark(each, mark, small)
            _limit(each, [s for s in self.of_panel(panel) if s.kind != "points"], self.scales[1] == "log")
            if small:
                each.set(xticks=[], yticks=[], xticklabels=[], yticklabels=[])
                each.minorticks_off()
                continue
            label = self.y_labels[names[panel]] if self.panels or len(names) == 1 else ""
            finish(each, self.x_label if panel == len(axes) - 1 else "", label)

    def _several(self) -> bool:
        """Whether several curves share the panels, so that the colour stands for the curve and the dashes for the observable."""
        return any(series.curve for series in self.series)


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
        setting=_setting(view, base, points),
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
    for name, y in _named(lines, view.show):
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
    for name, table in _named(draws, view.show, axis=2):
        mean, error = mean_and_error(table) if len(table) > 1 else (table[0], np.zeros_like(table[0]))
        yield Series("points", name, label, curve, view.places, tuple(mean.tolist()), tuple(error.tolist()))


def _named(values: Any, show: Sequence[str], axis: int = 1) -> Iterator[tuple[str, Array]]:
    """Yield the arrays of observables; an array with further axes yields one entry for each of its columns."""
    for name in show:
        array = np.asarray(values[name], dtype=float)
        flat = array.reshape(*array.shape[:axis], -1) if array.ndim > axis else array[..., None]
        for column in range(flat.shape[-1]):
            yield (name if flat.shape[-1] == 1 else f"{name}[{column}]"), flat[..., column]


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
    symbol = drawable(law.parameters()[name].symbol.partition("=")[0].strip())
    words = symbol if symbol else name.replace("_", " ")
    return f"{words} $=$ {brief(value)}" if symbol else f"{words} {brief(value)}"


def _setting(view: Headline, law: Law, points: bool) -> str:
    """Return the parameters that the picture fixes, and what its points are."""
    changed = {
        name: getattr(law, name)
        for name, meta in type(law).parameters().items()
        if name != view.x
        and (view.curves is None or name != view.curves[0])
        and meta.kind == "physics"
        and getattr(law, name) != meta.default
    }
    words = [f"{name.replace('_', ' ')} {brief(value)}" for name, value in changed.items()]
    if points and hasattr(law, "headline_histogram"):
        words.append(f"bars: one draw of size {view.size}")
    elif points and view.places:
        words.append(f"points: {view.draws} draws" + ("" if view.size is None else f" of size {view.size}"))
    return ", ".join(words)


def _x_label(law: type[Law], name: str) -> str:
    if name == "size":
        return law.simulation.size_meaning
    meta = law.parameters().get(name)
    if meta is None:
        return name
    return f"{meta.dimension if meta.kind == 'coordinate' else meta.description} {drawable(meta.symbol)}".rstrip()


def _y_label(law: type[Law], name: str) -> str:
    meta = law.all_outputs().get(name)
    return f"{name.replace('_', ' ')} {drawable(meta.symbol) if meta else ''}".rstrip()


# -- drawing --------------------------------------------------------------------------------------------------------------


def _draw_series(axes: Axes, series: Series, observable: int, several: bool, small: bool) -> None:
    """Draw one series; the colour is that of the curve, or of the observable if there is one curve."""
    name, _, column = series.observable.partition("[")
    part = int(column.rstrip("]")) if column else observable
    colour = series.curve if several else part
    words = [series.label] if series.label else []
    if column:
        words.append(f"{name.replace('_', ' ')} {part + 1}")
    elif not several or observable:
        words.append(name.replace("_", " "))
    label = None if small else ", ".join(words)
    y = np.asarray(series.y)
    y = np.where(np.isfinite(y), y, np.nan)
    if series.kind == "line":
        theory_line(
            axes,
            series.x,
            y,
            colour,
            label,
            linestyle=DASHES[(part if several else 0) % len(DASHES)],
            linewidth=1.4 if small else 2.0,
        )
    elif series.kind == "histogram":
        axes.stairs(y, series.x, fill=True, color=COLOURS[colour % len(COLOURS)], alpha=0.25)
    else:
        simulation_points(axes, series.x, y, None if small else series.error, colour, None, markersize=3 if small else 6)


def _draw_mark(axes: Axes, mark: Landmark, small: bool) -> None:
    """Draw a landmark as a dotted line with its words at the edge of the panel."""
    colour = "0.55" if mark.curve is None else COLOURS[mark.curve % len(COLOURS)]
    line = axes.axvline if mark.axis == "x" else axes.axhline
    line(mark.value, color=colour, linestyle=(0, (1, 2)), linewidth=1.0 if small else 1.3, zorder=0)
    if small or mark.curve:
        return
    if mark.axis == "x":
        axes.annotate(
            mark.label,
            (mark.value, 0.02),
            xycoords=("data", "axes fraction"),
            rotation=90,
            va="bottom",
            ha="right",
            fontsize=9.5,
            color="0.4",
        )
    else:
        axes.annotate(
            mark.label,
            (0.99, mark.value),
            xycoords=("axes fraction", "data"),
            va="bottom",
            ha="right",
            fontsize=9.5,
            color="0.4",
        )


def _limit(axes: Axes, series: Sequence[Series], logarithmic: bool) -> None:
    """Cut the vertical axis where a line is more than six times as high as its upper quartile, so that the rest stays visible."""
    values = np.concatenate([np.asarray(each.y)[np.isfinite(each.y)] for each in series]) if series else np.array([])
    if logarithmic or values.size < 8:
        return
    upper = 6 * float(np.quantile(values, 0.75))
    if values.min() >= 0 and values.max() > upper > 0:
        axes.set_ylim(0, upper)
