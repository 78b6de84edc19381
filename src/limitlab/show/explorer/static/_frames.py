"""The numbers of a live figure, which are the headline views of a law on a grid of slider values.

A live figure is plain data that JSON can hold. Its keys are short, because a page contains hundreds of curves:

- `sliders`: name, label (HTML), values as texts, and the position `start` of the declared value;
- `styles`: kind, colour, dashes, panel and label of every series; `marks`: labels of the landmarks; `axis`: the values on the axis;
- `frames`: for the positions of the sliders, such as "4,2", the series `l` (lines: style, positions in `axis`, values), `p` (points:
  style, values, standard errors), `h` (histograms: style, heights), the landmarks `m` and the range `r` of every panel;
- `missing`: the reason for which a frame was left out, by the positions of the sliders.
"""

from __future__ import annotations

import itertools
import json
import math
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import ValidationError

from limitlab._core.about import brief
from limitlab._core.headline import Headline, headline_of
from limitlab._core.law import Law
from limitlab._core.typeset import mathml, typeset
from limitlab.errors import Refused
from limitlab.lab.grid import one_line
from limitlab.models.activations import Activation
from limitlab.plotting.headline import HeadlineView, Series, headline_view, setting
from limitlab.show.explorer._address import controls_of, slider_range

__all__ = ["as_json", "live_view"]

Array = NDArray[np.float64]
Key = tuple[int, ...]

VALUES = (9, 7)
"""Number of values of the first slider and of the second slider."""
SECONDS = 15.0
"""Processor time of one law."""
LARGEST = 350_000
"""Bytes of the numbers of one law. The page with its style and script stays below 400 kB."""
DIGITS = 5
FLAT = 5e-4
"""Largest distance between a drawn line and the computed one, in heights of the panel."""
MOST_POINTS = 150
"""Largest number of vertices of a line."""
CHANGE = 0.01
"""A slider that moves no curve by this share of the height of the panel is left out."""
DECADE = 10.0
"""Range of a logarithmic slider on each side of the declared value, as a factor."""
ACTIVATIONS = ("relu", "tanh", "erf", "gelu", "sin", "abs", "square")
"""Values of a parameter that is an activation function."""
TOO_LATE = "It was not computed within the time limit."
TOO_LARGE = "It was left out to keep the page small."


@dataclass(frozen=True)
class Slider:
    """A parameter with the values that a reader can choose."""

    name: str
    values: tuple[Any, ...]
    start: int

    def as_dict(self, law: type[Law]) -> dict[str, Any]:
        """Return the slider as plain values, with its label as HTML."""
        meta = law.parameters()[self.name]
        symbol = meta.symbol.partition("=")[0].strip()
        choice = any(not isinstance(value, (int, float)) or isinstance(value, bool) for value in self.values)
        return {
            "name": self.name.replace("_", " "),
            "label": self.name.replace("_", " ") + (f" {mathml(symbol)}" if symbol else ""),
            "help": meta.words,
            "values": [short(value) for value in self.values],
            "start": self.start,
            "choice": choice,
        }


def live_view(
    law: type[Law],
    *,
    seconds: float = SECONDS,
    values: Sequence[int] = VALUES,
    largest: int = LARGEST,
    flat: float = FLAT,
    vary_points: bool = True,
) -> dict[str, Any]:
    """Return the live figure of a law as plain values.

    Parameters
    ----------
    law
        The class of the law.
    seconds
        Limit of the processor time. The view at the declared values is computed in any case.
    values
        Number of values of every slider.
    largest
        Bytes of the result as JSON.
    flat
        Largest distance between a drawn line and the computed one, in heights of the panel.
    vary_points
        Whether experiments may run at all values of the sliders.

    Examples
    --------
    >>> from limitlab.laws import Ridge
    >>> live = live_view(Ridge, values=(3,), vary_points=False)
    >>> live["sliders"][0]["name"], sorted(live["frames"])
    ('noise', ['0', '1', '2'])
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning about the size of an experiment was shown when the view was declared
        views = _Views(law, seconds, vary_points)
        sliders = views.choose(values)
        frames, missing = views.grid(sliders)
    start = tuple(slider.start for slider in sliders)
    while True:
        live = _packed(law, views, sliders, start, frames, missing, flat)
        size = len(as_json(live).encode())
        if size <= largest or len(frames) == 1:
            return live
        if flat < 0.02:
            flat *= 2
        else:  # leave out the combinations furthest from the declared values
            order = sorted(frames, key=lambda key: _distance(key, start))
            most = max(1, int(0.95 * len(frames) * largest / size))
            missing = {**missing, **dict.fromkeys(order[most:], TOO_LARGE)}
            frames = {key: frames[key] for key in order[:most]}


def short(value: Any) -> str:
    """Return a value in few characters; a function has its name."""
    name = getattr(value, "name", None)
    return name if isinstance(name, str) else brief(value)


# -- sliders ----------------------------------------------------------------------------------------------------------


def candidates(law: type[Law], counts: Sequence[int]) -> Iterator[tuple[str, tuple[Any, ...], Any]]:
    """Yield the parameters that can have a slider, with an ordered list of values and the declared value.

    The declared sliders come first. The parameter on the axis, the parameter of the curves and options of the solver have no slider.
    """
    view, metas, controls = headline_of(law), law.parameters(), controls_of(law)
    base = law(**view.at)
    numbers = [name for name, control in controls.items() if control.form == "slider" and metas[name].kind == "physics"]
    taken = {view.x, view.curves[0] if view.curves else ""}
    for name in dict.fromkeys([*view.sliders, *numbers]):
        if name in taken or metas[name].kind in ("solver", "coordinate"):
            continue
        start, control = getattr(base, name), controls[name]
        if start is None:
            continue
        if control.form == "choice":
            yield name, control.choices, start
        elif control.form == "switch":
            yield name, (False, True), start
        elif isinstance(start, (int, float)) and not isinstance(start, bool) and math.isfinite(start):
            yield name, slider_values(law, name, start, max(counts)), start
        else:
            yield name, _listed(law, view, name, start), start


def slider_values(law: type[Law], name: str, start: float, count: int) -> tuple[float, ...]:
    """Return round values of a number around the declared value, which is one of them.

    >>> from limitlab.laws import Ridge
    >>> slider_values(Ridge, "noise", 0.5, 5)
    (0.0, 0.25, 0.5, 0.75, 1.0)
    """
    meta, whole = law.parameters()[name], isinstance(start, int)
    low, high, log = slider_range(meta, start, whole)
    if start > 0 and (log or whole):
        low, high = max(low, start / DECADE, 1.0 if whole else 0.0), min(high, start * DECADE)
        if whole and meta.scale != "log":  # a number of things changes the time of the prediction
            low, high = max(low, start / 4), min(high, 4 * start)
        grid = np.geomspace(low, high, count)
    else:
        if start > 0 and low >= 0 and not (meta.least is not None and meta.most is not None):
            high = min(high, 2 * start)
        grid = np.linspace(low, high, count)
    rounded = {float(round(value)) if whole else float(f"{value:.2g}") for value in grid.tolist()}
    inside = sorted(value for value in rounded if meta.allows(value))
    if len(inside) >= count and start not in inside:
        inside.remove(min(inside, key=lambda value: abs(value - start)))
    return tuple(int(value) if whole else value for value in sorted({*inside, start}))


def _listed(law: type[Law], view: Headline, name: str, start: Any) -> tuple[Any, ...]:
    """Return the values of a parameter that is no number, from the check points of the law and the known activations."""
    values = [start, *(point[name] for point in law.points if name in point)]
    if law.model_fields[name].annotation is Activation:
        values += ACTIVATIONS
    return tuple({short(value): value for value in values}.values())


# -- views at the values of the sliders -----------------------------------------------------------------------------------


class OutOfTime(Exception):
    """Raised inside a computation that exceeds the time of its law."""


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise `OutOfTime` in the block after this processor time, where the system can interrupt a computation."""
    usable = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if not usable:
        yield
        return

    def stop(*_: Any) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, max(seconds, 0.01))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class _Views:
    """The headline views of a law at changed parameters, with the time that they took."""

    def __init__(self, law: type[Law], seconds: float, vary_points: bool):
        self.law = law
        began = time.process_time()
        self.first = headline_view(law)
        cost = time.process_time() - began
        self.end = time.process_time() + seconds
        self.vary_points = vary_points and math.prod(VALUES) * cost <= seconds
        self.done: dict[tuple[tuple[str, str], ...], HeadlineView | str] = {(): self.first}
        self.left_out: list[tuple[str, str, str]] = []

    def at(self, **changes: Any) -> HeadlineView | str:
        """Return the view at changed parameters, or the reason for which there is none."""
        name = tuple(sorted((key, short(value)) for key, value in changes.items()))
        if name not in self.done:
            self.done[name] = self._computed(changes)
        return self.done[name]

    def _computed(self, changes: Mapping[str, Any]) -> HeadlineView | str:
        left = self.end - time.process_time()
        if left <= 0:
            return TOO_LATE
        try:
            with _time_limit(left):
                try:
                    view = headline_view(self.law, points=self.vary_points, **changes)
                except Exception as error:
                    if isinstance(error, OutOfTime) or not self.vary_points:
                        raise
                    view = headline_view(self.law, points=False, **changes)  # only the experiment may be impossible
        except OutOfTime:
            return TOO_LATE
        except ValidationError as error:
            return _sentence(one_line(error))
        except Exception as error:  # a law refuses with errors of several classes
            return _sentence(str(error) or type(error).__name__)
        if any(series.kind == "line" and np.isnan(series.y).any() for series in view.series):
            return "The prediction is not a number."
        return view

    def choose(self, counts: Sequence[int]) -> list[Slider]:
        """Return the sliders that change the view, at most as many as there are counts."""
        sliders: list[Slider] = []
        for name, values, start in candidates(self.law, counts):
            if len(sliders) == len(counts):
                break
            values = _fewer(values, start, counts[len(sliders)])
            place = next(i for i, value in enumerate(values) if short(value) == short(start))
            if len(values) < 2:
                continue
            order = sorted(range(len(values)), key=lambda i: abs(i - place))
            views = {i: self.at(**{name: values[i]}) if i != place else self.first for i in order}
            shown = [i for i in range(len(values)) if isinstance(views[i], HeadlineView)]
            if len(shown) >= 2 and any(self._differs(views[i]) for i in shown if i != place):
                sliders.append(Slider(name, tuple(values[i] for i in shown), shown.index(place)))
                self.left_out += [(name, short(values[i]), str(views[i])) for i in range(len(values)) if i not in shown]
        return sliders

    def _differs(self, view: HeadlineView | str) -> bool:
        """Return whether a view has another number of curves than the declared view, or a curve elsewhere."""
        if not isinstance(view, HeadlineView):
            return False
        first, second = ([each for each in v.series if each.kind == "line"] for v in (self.first, view))
        if len(first) != len(second):
            return True
        for before, after in zip(first, second, strict=True):
            y, z = (np.where(np.isfinite(each.y), each.y, 0.0) for each in (before, after))
            if y.size != z.size or np.abs(y - z).max() > CHANGE * max(np.ptp(y), 0.1 * np.abs(y).max()):
                return True
        return False

    def grid(self, sliders: Sequence[Slider]) -> tuple[dict[Key, HeadlineView], dict[Key, str]]:
        """Return the views at all positions of the sliders, and the reasons for those that are left out."""
        start = tuple(slider.start for slider in sliders)
        keys = sorted(itertools.product(*(range(len(slider.values)) for slider in sliders)), key=lambda key: _distance(key, start))
        frames: dict[Key, HeadlineView] = {}
        missing: dict[Key, str] = {}
        for key in keys:
            moved = {
                slider.name: slider.values[i] for slider, i in zip(sliders, key, strict=True) if i != slider.start
            }
            view = self.at(**moved)
            if isinstance(view, HeadlineView):
                frames[key] = view
            else:
                missing[key] = view
        return frames, missing


def _fewer(values: tuple[Any, ...], start: Any, count: int) -> tuple[Any, ...]:
    """Return at most `count` values, evenly chosen, with the declared value among them."""
    if len(values) <= count:
        return values
    place = next(i for i, value in enumerate(values) if short(value) == short(start))
    picked = sorted({round(i) for i in np.linspace(0, len(values) - 1, count)})
    nearest = min(picked, key=lambda i: abs(i - place))
    return tuple(values[i] for i in sorted({*picked} - {nearest} | {place}))


def _distance(key: Key, start: Key) -> tuple[float, Key]:
    """Return the distance of positions from the declared ones, with a tie decided by the positions."""
    return sum((i - j) ** 2 for i, j in zip(key, start, strict=True)), key


def _sentence(text: str) -> str:
    words = " ".join(text.split())
    return words[:1].upper() + words[1:] + ("" if words.endswith(".") else ".")


# -- packing ------------------------------------------------------------------------------------------------------------


def _packed(
    law: type[Law],
    views: _Views,
    sliders: Sequence[Slider],
    start: Key,
    frames: Mapping[Key, HeadlineView],
    missing: Mapping[Key, str],
    flat: float,
) -> dict[str, Any]:
    """Return the live figure from the views at the positions of the sliders."""
    view, declared = headline_of(law), views.first
    styles: list[dict[str, Any]] = []
    marks: list[str] = []
    axis = next(series.x for series in declared.series if series.kind == "line")
    points = next((series.x for series in declared.series if series.kind != "line"), ())
    packed = {}
    for key, each in frames.items():
        packed[",".join(map(str, key))] = _frame(each, styles, marks, flat)
    moved = {slider.name for slider in sliders}
    return {
        "law": law.__name__,
        "question": typeset(law.title()),
        "finding": declared.finding,
        "setting": setting(view, law(**view.at), True, {view.curves[0] if view.curves else "", *moved}),
        "x": _html(declared.x_label),
        "y": [_html(label) for label in declared.y_labels.values()],
        "log": [scale == "log" for scale in declared.scales],
        "panels": len(declared.y_labels) if declared.panels else 1,
        "sliders": [slider.as_dict(law) for slider in sliders],
        "start": ",".join(map(str, start)),
        "styles": styles,
        "marks": marks,
        "axis": _rounded(axis),
        "places": _rounded(points),
        "frames": packed,
        "missing": {",".join(map(str, key)): reason for key, reason in missing.items()},
        "left_out": [list(each) for each in views.left_out],
    }


def _frame(view: HeadlineView, styles: list[dict[str, Any]], marks: list[str], flat: float) -> dict[str, Any]:
    """Return the numbers of one view; new styles and labels of landmarks are added to the lists."""
    frame: dict[str, Any] = {"l": [], "r": []}
    ranges = [view.limits(panel) for panel in range(len(view.y_labels) if view.panels else 1)]
    frame["r"] = [_rounded(limits) for limits in ranges]
    for series in view.series:
        number = _index(styles, _style(view, series))
        if series.kind == "line":
            kept = vertices(series, view.scales, ranges[styles[number]["panel"]], flat)
            frame["l"].append([number, kept, _rounded(series.y[i] for i in kept)])
        elif series.kind == "points":
            frame.setdefault("p", []).append([number, _rounded(series.y), _rounded(series.error)])
        else:
            frame.setdefault("h", []).append([number, _rounded(series.y)])
    if view.marks:
        frame["m"] = [
            [mark.axis, *_rounded([mark.value]), _index(marks, mark.label), mark.curve] for mark in view.marks
        ]
    return frame


def _style(view: HeadlineView, series: Series) -> dict[str, Any]:
    """Return the style of a series as plain values. Lines and points of a curve differ in their kind only."""
    colour, dashes, label = view.style(series)
    names = list(view.y_labels)
    panel = names.index(series.name) if view.panels else 0
    return {"kind": series.kind, "colour": colour, "dashes": dashes, "label": _html(label), "panel": panel}


def _index(items: list[Any], item: Any) -> int:
    if item not in items:
        items.append(item)
    return items.index(item)


def vertices(series: Series, scales: tuple[str, str], limits: tuple[float, float], flat: float) -> list[int]:
    """Return the positions of the values that suffice to draw a line.

    A line through these values differs from the line through all values by less than `flat` heights of the panel. The ends of a
    gap, at which the line is infinite, are among the values.
    """
    u, v = (np.asarray(values, dtype=float) for values in (series.x, series.y))
    low, high = limits
    with np.errstate(divide="ignore", invalid="ignore"):
        u = np.log(u) if scales[0] == "log" else u
        v = (np.log(v) - np.log(low)) / (np.log(high) - np.log(low)) if scales[1] == "log" else (v - low) / (high - low)
    finite = np.isfinite(u) & np.isfinite(v)
    v = np.clip(np.where(finite, v, 0.0), -1.0, 2.0)
    edges = np.flatnonzero(np.diff(finite.astype(int)))
    kept = {0, len(u) - 1, *edges.tolist(), *(edges + 1).tolist()}
    spans = [(first, last) for first, last in itertools.pairwise(sorted(kept)) if finite[first] and finite[last]]
    while spans and len(kept) < MOST_POINTS:
        first, last = spans.pop(0)
        inside = np.arange(first + 1, last)
        if inside.size == 0:
            continue
        gaps = np.abs(np.interp(u[inside], u[[first, last]], v[[first, last]]) - v[inside])
        if gaps.max() > flat:
            middle = int(inside[gaps.argmax()])
            kept.add(middle)
            spans += [(first, middle), (middle, last)]
    return sorted(int(i) for i in kept)


def _rounded(values: Any) -> list[float | None]:
    """Return numbers with a few digits; a number that is not finite becomes None."""
    return [_short_number(float(value)) if math.isfinite(value) else None for value in values]


def _short_number(value: float) -> float | int:
    rounded = float(f"{value:.{DIGITS}g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e15 else rounded


def _html(label: str) -> str:
    """Return a label with formulas between dollars as HTML."""
    return typeset(label)


def as_json(live: Mapping[str, Any]) -> str:
    """Return plain values as compact JSON."""
    return json.dumps(live, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
