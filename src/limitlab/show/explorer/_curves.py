"""The limit along a parameter: with experiments on it, or with the answers of a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import panel as pn

from limitlab.plotting.panels import wide
from limitlab.show.explorer import _plots as plots
from limitlab.show.explorer import _tables as tables
from limitlab.show.explorer._snippet import EXPERIMENT_POINTS
from limitlab.show.explorer._state import values_of
from limitlab.show.explorer._view import STYLE, View, label_of, push, values_label, with_trouble
from limitlab.show.explorer.jobs import Message

if TYPE_CHECKING:
    from limitlab.show.explorer._app import Page


class CurveView(View):
    """The limit along a parameter, live; experiments on it when asked."""

    verb = "Run experiment"

    def __init__(self, page: Page):
        super().__init__(page)
        self.plot: plots.CurvePlot | None = None
        self.theory: dict[str, Any] | None = None
        self.points: dict[str, Any] | None = None
        self.pane = pn.pane.Bokeh(sizing_mode="stretch_both", min_height=320)

    def bar(self) -> list[Any]:
        """Parameter, range, observables, experiment."""
        page = self.page
        return [page.x, page.x_low, page.x_high, page.observables, page.scale]

    def inputs(self) -> list[Any]:
        """The experiment."""
        return [self.page.size, self.page.draws]

    def panes(self) -> list[Any]:
        """What stands below the buttons."""
        return [self.pane]

    @property
    def measured(self) -> bool:  # type: ignore[override]
        """Whether experiments are shown."""
        return self.points is not None

    def shown(self) -> None:
        """Compute the curve anew where it changed; experiments at other parameters are taken away."""
        page, state = self.page, self.page.state
        page.put(self.panes())
        now = (state.law, dict(state.parameters), state.x, state.observables, state.theme)
        if self._seen == now:
            self._redraw()
            return
        self._seen, self.points = now, None
        if self.plot is not None:
            self.plot.forget()
        law = page.law
        page.runner.start(
            "curve", self._heard, law=law, along=state.x.name, values=values_of(law, state.x), observables=state.observables
        )

    def run(self) -> None:
        """Experiments at a few places along the curve."""
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
        return plots.curve_png(x_label, y_label, x_log, y_log, self.theory, self.points)

    def csv(self) -> str:
        """Curves and experiments."""
        return tables.curve_csv(self.page.state.x.name, self.theory, self.points)

    def _draw(self, final: bool) -> None:
        self.theory = self.result
        self._redraw()

    def _measured(self, message: Message) -> None:
        if message.kind in ("part", "result"):
            self.points = message.value
            self._redraw()
            known = int(np.max(message.value["draws"]))
            words = f"{known} draws of size {self.page.state.size} at {len(message.value['x'])} places"
            self.page.say(with_trouble(words, message.value) if message.kind == "result" else f"{words} so far")
        elif message.value == "cancelled" and self.points is not None:
            self.page.say("cancelled: the points show the draws that had arrived", "refused")
        else:
            super()._heard(message)

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
        push(self.pane)


class PlanView(CurveView):
    """Which value of a parameter gives the value wanted of an observable?"""

    verb = "Solve"

    def __init__(self, page: Page):
        super().__init__(page)
        self.words = pn.pane.HTML(
            "", sizing_mode="stretch_width", css_classes=["words", page.state.theme], stylesheets=[STYLE]
        )
        self.answer: dict[str, Any] | None = None

    def bar(self) -> list[Any]:
        """What is wanted, of what, by which parameter."""
        page = self.page
        return [page.x, page.x_low, page.x_high, page.observable]

    def inputs(self) -> list[Any]:
        """What is wanted."""
        return [self.page.target]

    def shown(self) -> None:
        """The curve, and what to do."""
        before = self._seen
        super().shown()
        if self._seen != before:
            self.answer, self.words.object = None, ""
            if self.plot is not None:
                self.plot.mark([], None)

    def run(self) -> None:
        """Look for every answer in the interval."""
        state = self.page.state
        if state.target is None:
            self.page.say(f"give the value wanted of {state.observables[0]}", "refused")
            return
        self.page.runner.start(
            "plan", self._answered, law=self.page.law, observable=state.observables[0], wanted=state.target, along=state.x.name,
            low=state.x.low, high=state.x.high,
        )  # fmt: skip

    def panes(self) -> list[Any]:
        """The answer in words, then the curve."""
        return [self.words, self.pane]

    def csv(self) -> str:
        """Every answer."""
        return tables.plan_csv(self.answer, self.page.state.x.name) if self.answer else super().csv()

    def _answered(self, message: Message) -> None:
        if message.kind != "result":
            super()._heard(message)
            return
        state, self.answer = self.page.state, message.value
        wanted = state.target if state.target is not None else 0.0
        self.words.object = tables.plan_html(message.value, state.x.name, state.observables[0], wanted)
        if self.plot is not None:
            self.plot.mark(message.value["solutions"], wanted, self.page.dark)
            push(self.pane)
        self.page.say(f"looked between {state.x.low:g} and {state.x.high:g}, in {message.seconds:.2g} s")
