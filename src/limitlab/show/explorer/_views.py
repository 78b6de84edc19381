"""The modes of a page, which are the curve, the phase diagram, the comparison, the plan and the forecast of a table.

A `View` draws a mode of the page and starts its jobs. It uses the page through the protocol `Desk`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import panel as pn

from limitlab._core.about import brief
from limitlab._core.declaration import plain
from limitlab._core.headline import headline_of
from limitlab._core.law import Law
from limitlab._core.page import plain_symbol
from limitlab.errors import Refused
from limitlab.plotting.headline import HeadlineView
from limitlab.plotting.panels import wide
from limitlab.show.explorer import _plots as plots
from limitlab.show.explorer._address import EXPERIMENT_POINTS, Axis, State, headline_changes, live, start, values_of
from limitlab.show.explorer.jobs import Message, Pool, Runner

STYLE = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
MOST_CAPTION = 180
"""Largest number of characters of the parameters below a picture."""
LAYOUT = (Path(__file__).parent / "layout.css").read_text(encoding="utf-8")
NAME = 60
"""Largest number of characters of the name of an uploaded file."""
QUICK_CELLS = 4000
"""Largest number of points of a phase diagram that is drawn at once, if a single call of the law computes all points."""


class Desk(Protocol):
    """The parts of a page that a view uses, which are the state, the jobs and shared widgets."""

    pool: Pool
    runner: Runner
    state: State
    x: Any
    x_low: Any
    x_high: Any
    y: Any
    y_low: Any
    y_high: Any
    observables: Any
    observable: Any
    scale: Any
    size: Any
    draws: Any
    grid: Any
    target: Any

    @property
    def law(self) -> Law:
        """The law at the parameters of the page."""

    @property
    def dark(self) -> bool:
        """Whether the page is dark."""

    def put(self, board: list[Any]) -> None:
        """Lay out these panes."""

    def say(self, words: str, kind: str = "") -> None:
        """Show a sentence."""


class View:
    """A mode of the page.

    Attributes
    ----------
    verb
        Text of its button.
    answers
        Whether the result is mainly a text, whose inputs are above it.
    measured
        Whether experiments are shown.
    """

    verb = "Run"
    answers = False
    measured = False

    def __init__(self, page: Desk):
        self.page = page
        self.result: Any = None
        self._seen: Any = None

    def bar(self) -> list[Any]:
        """Return the widgets above the picture."""
        return []

    def inputs(self) -> list[Any]:
        """Return the widgets before the button."""
        return []

    def shown(self) -> None:
        """Draw the part of the picture that can be computed before the button is pressed."""

    def opened(self) -> None:
        """Draw again what was drawn before the browser was ready, because it may have missed the change."""

    def run(self) -> None:
        """Run the action of the button."""

    def png(self) -> bytes:
        """Return the picture."""
        raise Refused("there is no picture yet: press the button first")

    def csv(self) -> str:
        """Return the numbers."""
        raise Refused("there are no numbers yet: press the button first")

    def _heading(self, *varied: str) -> tuple[str, str]:
        """Return title and caption of a picture, which are the question of the law and its parameters."""
        law, kind = self.page.law, type(self.page.law)
        metas = kind.parameters()
        values = [
            f"{name.replace('_', ' ')} {brief(getattr(law, name))}"
            for name, meta in metas.items()
            if meta.kind == "physics" and name not in varied and getattr(law, name) is not None
        ]
        return kind.title(), f"{kind.__name__}: " + textwrap.shorten(", ".join(values), MOST_CAPTION, placeholder=" ...")

    def _heard(self, message: Message) -> None:
        """Show a message of a job."""
        if message.kind == "waiting":
            self.page.say("waiting for a free worker")
        elif message.kind == "refused":
            self.page.say(message.value, "refused")
        else:
            if message.value is not None:
                self.result = message.value
                self._draw(message.kind == "result")
            if message.kind == "result":
                self.page.say(self._closing(message))
            elif message.total > 1:
                self.page.say(f"{message.done} of {message.total}")

    def _closing(self, message: Message) -> str:
        return with_trouble(f"done in {message.seconds:.2g} s", message.value)

    def _draw(self, final: bool) -> None:
        """Show the result so far."""


class HeadlineMode(View):
    """The headline view that the law declares. It is drawn again when a slider moves.

    The experiments start without a click at the declared parameters, and with the button at others.
    """

    verb = "Run experiment"

    def __init__(self, page: Desk):
        super().__init__(page)
        self.plot: plots.HeadlinePlot | None = None
        self.pane = pn.pane.Bokeh(sizing_mode="stretch_both", min_height=300)

    @property
    def measured(self) -> bool:  # type: ignore[override]
        """Whether experiments are shown."""
        return self.result is not None and any(series.kind != "line" for series in self.result["view"].series)

    def shown(self) -> None:
        """Compute the lines again if they changed, and remove the experiments at other parameters."""
        page, state = self.page, self.page.state
        page.put([self.pane])
        changes = headline_changes(state, page.law)
        now = (state.law, changes, state.theme)
        if self._seen == now:
            if self.plot is not None:
                self.plot.mark(self._here())
                push(self.pane)
            return
        self._seen = now
        page.runner.start("headline", self._heard_line, law=page.law, changes=changes)

    def run(self) -> None:
        """Run the experiments of the view."""
        page = self.page
        changes = headline_changes(page.state, page.law)
        page.say("the experiment runs")
        page.runner.start("headline_points", self._heard, law=page.law, changes=changes)

    def png(self) -> bytes:
        """Return the view with title and parameters."""
        return plots.headline_png(self.result["view"]) if self.result else super().png()

    def csv(self) -> str:
        """Return one line per number."""
        return plots.headline_csv(self.result["view"]) if self.result else super().csv()

    def _heard_line(self, message: Message) -> None:
        self._heard(message)
        state = self.page.state
        if message.kind == "result" and state.parameters == start(type(self.page.law)).parameters:
            self.run()

    def _here(self) -> float | None:
        """Return the present value of the parameter on the axis, if it is a single number."""
        return here_of(self.page.law, headline_of(type(self.page.law)).x)

    def _draw(self, final: bool) -> None:
        view, dark = self.result["view"], self.page.dark
        if self.plot is None or not self._keeps(view, dark):
            self.plot = plots.HeadlinePlot(view, dark, self.plot)
            self.plot.draw(view, self._here())
            self.pane.object = self.plot.layout
        else:
            self.plot.draw(view, self._here())
        push(self.pane)

    def _keeps(self, view: HeadlineView, dark: bool) -> bool:
        """Whether the present plot can show a view."""
        return self.plot is not None and self.plot.form == plots.form_of(view, dark)

    def _closing(self, message: Message) -> str:
        view: HeadlineView = message.value["view"]
        words = f"{view.finding}. {plots.in_words(view.setting)}".rstrip(". ")
        log, found = view.scales[0] == "log", []
        for points in (series for series in view.series if series.kind == "points"):
            line = next(
                each
                for each in view.series
                if (each.kind, each.observable, each.curve) == ("line", points.observable, points.curve)
            )
            x, y = np.asarray(line.x), np.asarray(line.y)
            limit = np.array([plots.at_value(x, y, place, log) for place in points.x])
            found += plots.gaps(np.asarray(points.x), np.asarray(points.y), np.asarray(points.error), limit)
        gap = plots.disagreement(found, headline_of(type(self.page.law)).x.replace("$", ""))
        return f"{words}; {gap}" if gap else words


class CurveView(View):
    """The limit along a parameter, which is drawn again when a slider moves, and experiments, which start with a button."""

    verb = "Run experiment"

    def __init__(self, page: Desk):
        super().__init__(page)
        self.plot: plots.CurvePlot | None = None
        self.theory: dict[str, Any] | None = None
        self.points: dict[str, Any] | None = None
        self.pane = pn.pane.Bokeh(sizing_mode="stretch_both", min_height=320)

    def bar(self) -> list[Any]:
        """Return the widgets for parameter, range and observables."""
        page = self.page
        return [page.x, page.x_low, page.x_high, page.observables, page.scale]

    def inputs(self) -> list[Any]:
        """Return the widgets of the experiment."""
        return [self.page.size, self.page.draws]

    def panes(self) -> list[Any]:
        """Return the panes below the buttons."""
        return [self.pane]

    @property
    def measured(self) -> bool:  # type: ignore[override]
        """Whether experiments are shown."""
        return self.points is not None

    def shown(self) -> None:
        """Compute the curve again if it changed, and remove experiments at other parameters."""
        page, state = self.page, self.page.state
        page.put(self.panes())
        others = {name: value for name, value in state.parameters.items() if name != state.x.name}
        now = (state.law, others, state.x, state.observables, state.theme)
        if self._seen == now:
            self._redraw()
            return
        self._seen, self.points = now, None
        if self.plot is not None:
            self.plot.remove_experiments()
        law = page.law
        page.runner.start(
            "curve", self._heard, law=law, along=state.x.name, values=values_of(law, state.x), observables=state.observables
        )

    def run(self) -> None:
        """Run experiments at a few points of the curve."""
        state, law = self.page.state, self.page.law
        self.points = None
        self.page.runner.start(
            "experiment", self._measured, law=law, along=state.x.name, values=values_of(law, state.x, EXPERIMENT_POINTS),
            observables=state.observables, size=state.size, draws=state.draws,
        )  # fmt: skip

    def png(self) -> bytes:
        """Curves and experiments."""
        if self.plot is None:
            return super().png()
        x_label, y_label, _, x_log, y_log, _ = self.plot.key
        return plots.curve_png(
            x_label, y_label, x_log, y_log, self.theory, self.points, *self._heading(self.page.state.x.name)
        )

    def csv(self) -> str:
        """Curves and experiments."""
        return plots.curve_csv(self.page.state.x.name, self.theory, self.points)

    def _draw(self, final: bool) -> None:
        self.theory = self.result
        self._redraw()

    def _measured(self, message: Message) -> None:
        if message.kind in ("part", "result"):
            self.points = message.value
            self._redraw()
            known = int(np.max(message.value["draws"]))
            words = f"{known} draws of size {self.page.state.size} at {len(message.value['x'])} points"
            if message.kind == "result":
                gap = self._gap(message.value)
                self.page.say(with_trouble(f"{words}; {gap}" if gap else words, message.value))
            else:
                self.page.say(f"{words} so far")
        elif message.value == "cancelled" and self.points is not None:
            self.page.say("cancelled; the points show the finished draws", "refused")
        else:
            super()._heard(message)

    def _gap(self, points: Mapping[str, Any]) -> str:
        """Return a sentence about the gaps between points and limit."""
        found = [
            gap
            for name, mean in points["mean"].items()
            for gap in plots.gaps(points["x"], mean, points["error"][name], points["limit"][name])
        ]
        return plots.disagreement(found, self.page.state.x.name)

    def _closing(self, message: Message) -> str:
        state, words = self.page.state, f"the limit, in {1000 * message.seconds:.0f} ms"
        numbers = np.concatenate([line[np.isfinite(line)] for line in message.value["y"].values()])
        scale = float(np.abs(numbers).max(initial=0.0)) or 1.0
        error = message.value["accuracy"]
        words += f"; numerical error {error / scale:.0e} of its scale" if np.isfinite(error) else "; accuracy not stated"
        if message.value["remark"]:
            words += f"; shown at {message.value['remark']}"
        endless = [name for name in state.observables if np.isinf(message.value["y"][name]).any()]
        words += f"; {', '.join(endless)} is infinite at some points" if endless else ""
        return with_trouble(words, message.value)

    def _redraw(self) -> None:
        if self.theory is None or set(self.theory["y"]) != set(self.page.state.observables):
            return
        state, page = self.page.state, self.page
        values = np.concatenate(list(self.theory["y"].values()))
        y_log = state.scale == "log" or (state.scale == "auto" and wide(values[np.isfinite(values)]))
        key = (
            label_of(page.law, state.x),
            values_label(page.law, state.observables),
            state.observables,
            state.x.log,
            y_log,
            page.dark,
        )
        if self.plot is None or self.plot.key != key:
            self.plot = plots.CurvePlot(*key)
            self.plot.draw(self.theory["x"], self.theory["y"])
            self.pane.object = self.plot.figure
        else:
            self.plot.draw(self.theory["x"], self.theory["y"])
        if self.points is not None:
            self.plot.measure(self.points["x"], self.points["mean"], self.points["error"])
        self.plot.extras.dots(here_of(page.law, state.x.name), state.x.log)
        push(self.pane)


class PlanView(CurveView):
    """The values of a parameter for which an observable has a target value."""

    verb = "Solve"

    def __init__(self, page: Desk):
        super().__init__(page)
        self.words = pn.pane.HTML(
            "", sizing_mode="stretch_width", css_classes=["words", page.state.theme], stylesheets=[STYLE]
        )
        self.answer: dict[str, Any] | None = None

    def bar(self) -> list[Any]:
        """Return the widgets for parameter, range and observable."""
        page = self.page
        return [page.x, page.x_low, page.x_high, page.observable]

    def inputs(self) -> list[Any]:
        """Return the widget of the target value."""
        return [self.page.target]

    def shown(self) -> None:
        """Draw the curve, and show a hint."""
        before = self._seen
        super().shown()
        if self._seen != before:
            self.answer, self.words.object = None, ""
            if self.plot is not None:
                self.plot.mark([], None)

    def run(self) -> None:
        """Find every solution in the interval."""
        state = self.page.state
        if state.target is None:
            self.page.say(f"give the target value of {state.observables[0]}", "refused")
            return
        self.page.runner.start(
            "plan", self._answered, law=self.page.law, observable=state.observables[0], wanted=state.target, along=state.x.name,
            low=state.x.low, high=state.x.high,
        )  # fmt: skip

    def panes(self) -> list[Any]:
        """Return the answer in words and the curve."""
        return [self.words, self.pane]

    def csv(self) -> str:
        """Return every answer."""
        return plots.plan_csv(self.answer, self.page.state.x.name) if self.answer else super().csv()

    def _answered(self, message: Message) -> None:
        if message.kind != "result":
            super()._heard(message)
            return
        state, self.answer = self.page.state, message.value
        wanted = state.target if state.target is not None else 0.0
        self.words.object = plots.plan_html(message.value, state.x.name, state.observables[0], wanted)
        if self.plot is not None:
            self.plot.mark(message.value["solutions"], wanted, self.page.dark)
            push(self.pane)
        self.page.say(f"searched between {state.x.low:g} and {state.x.high:g}, in {message.seconds:.2g} s")


class PhaseView(View):
    """An observable over two parameters."""

    verb = "Draw"

    def __init__(self, page: Desk):
        super().__init__(page)
        self.pane = pn.pane.Bokeh(sizing_mode="stretch_both", min_height=320)

    def bar(self) -> list[Any]:
        """Return the widgets for both parameters, their ranges and the observable."""
        page = self.page
        return [page.x, page.x_low, page.x_high, page.y, page.y_low, page.y_high, page.observable, page.grid]

    def shown(self) -> None:
        """Draw at once if a single call of the law computes the whole grid."""
        state, law = self.page.state, type(self.page.law)
        self.page.put([self.pane])
        now = (state.law, dict(state.parameters), state.x, state.y, state.observables[:1], state.grid, state.theme)
        if self._seen == now:
            return
        self._seen = now
        if state.y is None:
            self.page.say(f"{state.law} has a single numerical parameter, and a phase diagram needs two", "refused")
        elif live(law, state.x.name) and live(law, state.y.name) and state.grid**2 <= QUICK_CELLS:
            self.run()
        else:
            self.page.say(
                f"every point needs a separate solution of the equations: press Draw ({state.grid} x {state.grid} points)"
            )

    def opened(self) -> None:
        """Draw the grid again if it was there before the browser was ready."""
        if self.result:
            self._draw(True)

    def run(self) -> None:
        """Compute the grid."""
        state, law = self.page.state, self.page.law
        if state.y is None:
            return
        self.page.runner.start(
            "phase", self._heard, law=law, x=state.x.name, x_values=values_of(law, state.x, state.grid), y=state.y.name,
            y_values=values_of(law, state.y, state.grid), observable=state.observables[0],
        )  # fmt: skip

    def png(self) -> bytes:
        """Return the heat map."""
        return plots.phase_png(self.result, *self._words(), *self._heading(*self._axes())) if self.result else super().png()

    def csv(self) -> str:
        """Return one line per point."""
        state = self.page.state
        if not self.result or state.y is None:
            return super().csv()
        return plots.phase_csv(state.x.name, state.y.name, state.observables[0], self.result)

    def _axes(self) -> list[str]:
        state = self.page.state
        return [each.name for each in (state.x, state.y) if each is not None]

    def _words(self) -> tuple[list[str], tuple[bool, bool]]:
        state, law = self.page.state, self.page.law
        assert state.y is not None
        words = [label_of(law, state.x), label_of(law, state.y), values_label(law, state.observables[:1])]
        return words, (state.x.log, state.y.log)

    def _draw(self, final: bool) -> None:
        words, logs = self._words()
        self.pane.object = plots.phase_figure(
            self.result["x"], self.result["y"], self.result["z"], words, logs, self.page.dark
        )


class CompareView(View):
    """The comparison of theory and experiment at these parameters."""

    verb = "Compare"
    answers = True

    def __init__(self, page: Desk):
        super().__init__(page)
        self.pane = pn.pane.Bokeh(sizing_mode="stretch_both", min_height=240)
        self.words = pn.pane.HTML(
            "", sizing_mode="stretch_width", css_classes=["words", page.state.theme], stylesheets=[STYLE]
        )
        self.seconds = pn.widgets.IntInput(name="time limit (s)", value=20, start=1, end=90, width=110, margin=(2, 8))

    def bar(self) -> list[Any]:
        """Return no widgets, because the comparison depends on the parameters only."""
        return []

    def inputs(self) -> list[Any]:
        """Return the widget of the time limit."""
        return [self.seconds]

    def shown(self) -> None:
        """Show a hint, and remove a verdict at other parameters."""
        state = self.page.state
        self.page.put([self.words, self.pane])
        now = (state.law, dict(state.parameters), state.theme)
        if self._seen != now:
            self._seen, self.result = now, None
            self.words.object, self.pane.object = "", None
            sizes = ", ".join(map(str, self.page.law.simulation.sizes))
            self.page.say(f"press Compare to compare experiments of sizes {sizes} with the limit at these parameters")

    def run(self) -> None:
        """Compare at the sizes of the law."""
        law = self.page.law
        seconds = min(float(self.seconds.value), self.page.pool.caps.seconds * 0.7)
        self.page.runner.start("compare", self._heard, law=law, sizes=sorted(law.simulation.sizes), seconds=seconds)

    def png(self) -> bytes:
        """Return the figure of the gaps."""
        return plots.gap_png(self.result, *self._heading()) if self.result else super().png()

    def csv(self) -> str:
        """Return the error budget."""
        return plots.compare_csv(self.result) if self.result else super().csv()

    def _draw(self, final: bool) -> None:
        self.words.object = plots.verdict_html(self.result)
        self.pane.object = plots.gap_figure(self.result["sizes"], self.result["gaps"], self.page.dark)


# -- your own data ------------------------------------------------------------------------------------------------------------


class ForecastView(View):
    """The learning curve of an uploaded table. The table stays in memory until the next upload or the end of the visit."""

    verb = "Forecast"
    answers = True

    def __init__(self, page: Desk):
        super().__init__(page)
        most = page.pool.caps.upload_megabytes
        self.drop = CappedDropper(
            most_bytes=int(most * 1e6),
            name="A table (.csv)", max_file_size=f"{most * 1000:.0f}KB", multiple=False, chunk_size=1_000_000, width=300, height=110,
            layout="compact", margin=(2, 8),
        )  # fmt: skip
        self.target = pn.widgets.Select(name="Column to predict", options=[], width=200, margin=(2, 8))
        self.drop.param.watch(self._dropped, "value")
        self.pane = pn.pane.Bokeh(sizing_mode="stretch_both", min_height=260)
        self.words = pn.pane.HTML(
            "", sizing_mode="stretch_width", css_classes=["words", page.state.theme], stylesheets=[STYLE]
        )
        self._file: tuple[str, bytes] | None = None

    def bar(self) -> list[Any]:
        """Return the widgets for the file and the column to predict."""
        return [self.drop, self.target]

    def shown(self) -> None:
        """Show a hint."""
        self.page.put([self.words, self.pane])
        if self.result is None and self._file is None:
            most = self.page.pool.caps.upload_megabytes
            self.page.say(
                f"drop a table with a header line (.csv, at most {most:g} MB). It is kept in memory only, until the end of the visit."
            )

    def run(self) -> None:
        """Forecast the selected column."""
        if self._file is None:
            self.page.say("drop a table first", "refused")
            return
        name, content = self._file
        self.page.runner.start("forecast", self._heard, name=name, content=content, target=self.target.value)

    def png(self) -> bytes:
        """The forecast."""
        return plots.forecast_png(self.result) if self.result else super().png()

    def csv(self) -> str:
        """The forecast."""
        return plots.forecast_csv(self.result) if self.result else super().csv()

    def _dropped(self, event: Any) -> None:
        self.result, self._file = None, None
        self.words.object, self.pane.object = "", None
        if not event.new:  # the visitor removed the file
            self.target.options = []
            return
        name, content = list(event.new.items())[-1]
        name, raw = name[:NAME], content.encode() if isinstance(content, str) else bytes(content)
        self.drop.value.clear()  # the page has its own copy, until the next file or the end of the visit
        self.target.options = []

        def checked(message: Message) -> None:
            if message.kind == "refused":
                self.page.say(f"{name}: {message.value}", "refused")
            elif message.kind == "result":
                columns = message.value["columns"]
                self._file = (name, raw)
                self.target.options, self.target.value = columns, columns[-1]
                self.page.say(f"{name}: {len(columns)} columns. Choose the column to predict and press Forecast.")

        self.page.say(f"{name} is being checked")
        self.page.runner.start("table", checked, name=name, content=raw, megabytes=self.page.pool.caps.upload_megabytes)

    def _draw(self, final: bool) -> None:
        self.words.object = plots.forecast_html(self.result)
        self.pane.object = plots.forecast_figure(self.result, self.page.dark)


class CappedDropper(pn.widgets.FileDropper):  # type: ignore[misc]
    """A drop zone that discards a file if it is longer than allowed, even if the browser reports another length."""

    def __init__(self, most_bytes: int, **options: Any):
        super().__init__(**options)
        self._most_bytes = most_bytes

    def _process_event(self, event: Any) -> None:
        data = event.data if isinstance(event.data, dict) else {}
        name, chunk, number, total = (data.get(key) for key in ("name", "data", "chunk", "total_chunks"))
        if event.event_name == "upload_event" and not (
            isinstance(name, str) and isinstance(chunk, bytes) and type(number) is type(total) is int and "type" in data
        ):
            return  # no browser sends this
        if not isinstance(name, str):
            return
        chunk = chunk if isinstance(chunk, bytes) else b""
        held = sum(len(part) for parts in self._file_buffer.values() for part in parts)
        if held + len(chunk) > self._most_bytes:
            self._file_buffer.clear()
            self.value.clear()
            self.value[name] = b"\0" * (self._most_bytes + 1)  # a placeholder that is rejected as too long
            self.param.trigger("value")
            return
        if event.event_name == "upload_event" and number != 1 and name not in self._file_buffer:
            return  # ignore the rest of a rejected file
        super()._process_event(event)


VIEWS: Mapping[str, type[View]] = {
    "headline": HeadlineMode,
    "curve": CurveView,
    "phase": PhaseView,
    "compare": CompareView,
    "plan": PlanView,
    "forecast": ForecastView,
}


# -- words --------------------------------------------------------------------------------------------------------------------


def label_of(law: Law, axis: Axis) -> str:
    """Return the label of an axis, with words and symbol."""
    meta = type(law).parameters()[axis.name]
    symbol = plain_symbol(meta.symbol)
    words = axis.name.replace("_", " ")
    return f"{words} {symbol}" if symbol and "\\" not in symbol else words


def here_of(law: Law, along: str) -> float | None:
    """Return the value of a parameter as a single number. None if it is not a single number.

    >>> from limitlab.laws import Ridge
    >>> here_of(Ridge(ratio=2.0), "ratio"), here_of(Ridge(eigenvalues=(1, 4), weights=(0.5, 0.5), signal_energy=(1, 1)), "weights")
    (2.0, None)
    """
    value = plain(getattr(law, along, None))
    value = value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def values_label(law: Law, names: tuple[str, ...]) -> str:
    """Return the label of the vertical axis, from the words of a single observable or the names of several."""
    metas = type(law).outputs()
    return (
        metas[names[0]].long_name
        if len(names) == 1 and metas[names[0]].long_name
        else ", ".join(name.replace("_", " ") for name in names)
    )


def with_trouble(words: str, result: Any) -> str:
    """Return a sentence with the first error in a part of the result."""
    trouble = result.get("trouble") if isinstance(result, dict) else ""
    return f"{words}. Some points failed: {trouble}" if trouble else words


def push(pane: Any) -> None:
    """Send a changed source to a notebook, which is not automatic."""
    if pn.state.curdoc is None or pn.state.curdoc.session_context is None:
        pane.param.trigger("object")
