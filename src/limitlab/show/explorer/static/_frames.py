"""The numbers of a live figure, which are the headline views of a law on a grid of slider values.

A live figure is plain data that JSON can hold. Its keys are short, because a page contains hundreds of curves:

- `sliders`: name, label (HTML), values as texts, and the position `start` of the declared value;
- `styles`: kind, colour, dashes, panel and label of every series; `marks`: labels of the landmarks; `axis`: the values on the axis;
- `frames`: for the positions of the sliders, such as "4,2", the series `l` (lines: style, positions in `axis`, values), `p` (points:
  style, values, standard errors), `h` (histograms: style, heights), the landmarks `m` and the range `r` of every panel;
- `missing`: the reason for which a frame was left out, by the positions of the sliders; `left_out`: parameter, value and reason of the
  values that have no frame at all; `note`: why there are no sliders.
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
from limitlab.lab.grid import one_line
from limitlab.models.activations import Activation
from limitlab.plotting.headline import HeadlineView, Series, headline_view, setting
from limitlab.show.explorer._address import controls_of, slider_range

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


class OutOfTime(BaseException):
    """Raised inside a computation that exceeds the time of its law. No handler of errors inside the computation catches it."""


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
                except Exception:
                    if not self.vary_points:
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

    def reason(self) -> str:
        """Return why a live figure has no slider."""
        if TOO_LATE in self.done.values():
            return "There are no sliders: no other values were computed within the time limit."
        return "There are no sliders: no other number changes this picture."

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
        keys = sorted(
            itertools.product(*(range(len(slider.values)) for slider in sliders)), key=lambda key: _distance(key, start)
        )
        frames: dict[Key, HeadlineView] = {}
        missing: dict[Key, str] = {}
        for key in keys:
            moved = {slider.name: slider.values[i] for slider, i in zip(sliders, key, strict=True) if i != slider.start}
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
        "note": "" if sliders else views.reason(),
    }


def _frame(view: HeadlineView, styles: list[dict[str, Any]], marks: list[str], flat: float) -> dict[str, Any]:
    """Return the numbers of one view; new styles and labels of landmarks are added to the lists."""
    frame: dict[str, Any] = {"l": [], "r": []}
    ranges = [view.limits(panel) for panel in range(len(view.y_labels) if view.panels else 1)]
    frame["r"] = [_rounded(limits) for limits in ranges]
    for series in view.series:
        number = _index(styles, _style(view, series))
        if series.kind == "line":
            log = [scale == "log" for scale in view.scales]
            kept = vertices(series.x, series.y, log, ranges[styles[number]["panel"]], flat)
            frame["l"].append([number, kept, _rounded(series.y[i] for i in kept)])
        elif series.kind == "points":
            frame.setdefault("p", []).append([number, _rounded(series.y), _rounded(series.error)])
        else:
            frame.setdefault("h", []).append([number, _rounded(series.y)])
    if view.marks:
        frame["m"] = [[mark.axis, *_rounded([mark.value]), _index(marks, mark.label), mark.curve] for mark in view.marks]
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


def vertices(x: Any, y: Any, log: Sequence[bool], limits: Sequence[float], flat: float) -> list[int]:
    """Return the positions of the values that suffice to draw a line.

    A line through these values differs from the line through all values by less than `flat` heights of the panel. The ends of a
    gap, at which the line is infinite, are among the values.
    """
    u, v, ends = (np.asarray(values, dtype=float) for values in (x, y, limits))
    with np.errstate(divide="ignore", invalid="ignore"):
        u, v, ends = (np.log(each) if scale else each for each, scale in ((u, log[0]), (v, log[1]), (ends, log[1])))
        v = (v - ends[0]) / (ends[1] - ends[0])
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


# -- smaller live figures -----------------------------------------------------------------------------------------------


def reduced(live: Mapping[str, Any], largest: int, counts: Sequence[int] = (7, 5, 3, 1)) -> dict[str, Any]:
    """Return a live figure with its first slider only, with fewer values, and with points at the declared values only.

    Parameters
    ----------
    live
        A live figure.
    largest
        Bytes of the result as JSON.
    counts
        Numbers of values of the slider, of which the first is used whose result is small enough.

    Examples
    --------
    >>> from limitlab.laws import Ridge
    >>> small = reduced(live_view(Ridge, vary_points=False), 10_000)
    >>> len(small["sliders"][0]["values"]), len(as_json(small)) < 10_000
    (7, True)
    """
    smaller: dict[str, Any] = {}
    for count, flat in itertools.product(counts, (1e-3, 2e-3, 4e-3, 8e-3)):
        smaller = _with_frames(live, _first_slider(live, count), flat)
        if len(as_json(smaller).encode()) <= largest:
            break
    return smaller


def _first_slider(live: Mapping[str, Any], count: int) -> list[int]:
    """Return positions of the first slider that have a frame, evenly chosen, with the declared position among them."""
    if not live["sliders"]:
        return []
    start = live["start"].split(",")
    there = [i for i in range(len(live["sliders"][0]["values"])) if ",".join([str(i), *start[1:]]) in live["frames"]]
    return list(_fewer(tuple(there), int(start[0]), count))


def _with_frames(live: Mapping[str, Any], positions: Sequence[int], flat: float) -> dict[str, Any]:
    """Return a live figure with the frames at some positions of its first slider."""
    start = live["start"].split(",")
    keys = [",".join([str(i), *start[1:]]) for i in positions] if len(positions) > 1 else [live["start"]]
    frames = {}
    for number, key in enumerate(keys):
        frame = live["frames"][key]
        lines = [_thinner(live, frame, line, flat) for line in frame["l"]]
        kept = {kind: frame[kind] for kind in ("r", "m", *(("p", "h") if key == live["start"] else ())) if kind in frame}
        frames[str(number) if len(positions) > 1 else ""] = {**kept, "l": lines}
    sliders = []
    if len(positions) > 1:
        slider, place = live["sliders"][0], positions.index(int(start[0]))
        sliders = [{**slider, "values": [slider["values"][i] for i in positions], "start": place}]
    fixed = [f"{slider['name']} {slider['values'][slider['start']]}" for slider in live["sliders"][len(sliders) :]]
    words = ", ".join([*fixed, live["setting"]] if live["setting"] else fixed)
    first = str(sliders[0]["start"]) if sliders else ""
    dropped = {
        "sliders": sliders,
        "start": first,
        "frames": frames,
        "missing": {},
        "left_out": [],
        "note": "",
        "setting": words,
    }
    return with_used_axis({**live, **dropped})


def _thinner(live: Mapping[str, Any], frame: Mapping[str, Any], line: Sequence[Any], flat: float) -> list[Any]:
    """Return a line with fewer vertices and fewer digits."""
    style, places, values = line
    y = [math.nan if value is None else value for value in values]
    kept = vertices([live["axis"][i] for i in places], y, live["log"], frame["r"][live["styles"][style]["panel"]], flat)
    return [style, [places[i] for i in kept], fewer_digits([values[i] for i in kept], 4)]


def with_used_axis(live: Mapping[str, Any]) -> dict[str, Any]:
    """Return a live figure with only those values on the axis that its lines use."""
    used = sorted({place for frame in live["frames"].values() for _, places, _ in frame["l"] for place in places})
    position = {place: number for number, place in enumerate(used)}
    frames = {
        key: {**frame, "l": [[style, [position[place] for place in places], values] for style, places, values in frame["l"]]}
        for key, frame in live["frames"].items()
    }
    return {**live, "axis": fewer_digits([live["axis"][place] for place in used], 4), "frames": frames}


def fewer_digits(values: Sequence[float | None], digits: int = 3) -> list[float | None]:
    """Return numbers with few digits."""
    return [None if value is None else float(f"{value:.{digits}g}") for value in values]


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
