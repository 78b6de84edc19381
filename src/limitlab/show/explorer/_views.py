"""The five ways to look at a law (or at one's own data); here the phase diagram and the comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import panel as pn

from limitlab.show.explorer import _plots as plots
from limitlab.show.explorer import _tables as tables
from limitlab.show.explorer._curves import CurveView, PlanView
from limitlab.show.explorer._declared import live
from limitlab.show.explorer._own_data import ForecastView
from limitlab.show.explorer._state import values_of
from limitlab.show.explorer._view import STYLE, View, label_of, values_label

if TYPE_CHECKING:
    from limitlab.show.explorer._app import Page

QUICK_CELLS = 4000
"""Points of a phase diagram that are drawn without being asked, where one call of the law serves them all."""


class PhaseView(View):
    """An observable over two parameters."""

    verb = "Draw"

    def __init__(self, page: Page):
        super().__init__(page)
        self.pane = pn.pane.Bokeh(sizing_mode="stretch_both", min_height=320)

    def bar(self) -> list[Any]:
        """Both parameters and their ranges, the observable."""
        page = self.page
        return [page.x, page.x_low, page.x_high, page.y, page.y_low, page.y_high, page.observable, page.grid]

    def shown(self) -> None:
        """Draw at once where one call serves the whole grid."""
        state, law = self.page.state, type(self.page.law)
        self.page.put([self.pane])
        now = (state.law, dict(state.parameters), state.x, state.y, state.observables[:1], state.grid, state.theme)
        if self._seen == now:
            return
        self._seen = now
        if state.y is None:
            self.page.say(f"{state.law} has one number only: a phase diagram needs two", "refused")
        elif live(law, state.x.name) and live(law, state.y.name) and state.grid**2 <= QUICK_CELLS:
            self.run()
        else:
            self.page.say(f"every point is a solve of its own: press Draw ({state.grid} x {state.grid} points)")

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
        """The heat map."""
        return plots.phase_png(self.result, *self._words()) if self.result else super().png()

    def csv(self) -> str:
        """One line per point."""
        state = self.page.state
        if not self.result or state.y is None:
            return super().csv()
        return tables.phase_csv(state.x.name, state.y.name, state.observables[0], self.result)

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
    """Do theory and experiment agree here?"""

    verb = "Compare"

    def __init__(self, page: Page):
        super().__init__(page)
        self.pane = pn.pane.Bokeh(sizing_mode="stretch_both", min_height=240)
        self.words = pn.pane.HTML(
            "", sizing_mode="stretch_width", css_classes=["words", page.state.theme], stylesheets=[STYLE]
        )
        self.seconds = pn.widgets.IntInput(name="seconds for it", value=20, start=1, end=90, width=110, margin=(2, 8))

    def bar(self) -> list[Any]:
        """Nothing: the parameters decide."""
        return []

    def inputs(self) -> list[Any]:
        """How long it may look."""
        return [self.seconds]

    def shown(self) -> None:
        """Ask for the button; a verdict at other parameters is taken away."""
        state = self.page.state
        self.page.put([self.words, self.pane])
        now = (state.law, dict(state.parameters), state.theme)
        if self._seen != now:
            self._seen, self.result = now, None
            self.words.object, self.pane.object = "", None
            sizes = ", ".join(map(str, self.page.law.simulation.sizes))
            self.page.say(f"press Compare: experiments of sizes {sizes} against the limit at these parameters")

    def run(self) -> None:
        """Compare at the law's own sizes."""
        law = self.page.law
        seconds = min(float(self.seconds.value), self.page.pool.caps.seconds * 0.7)
        self.page.runner.start("compare", self._heard, law=law, sizes=sorted(law.simulation.sizes), seconds=seconds)

    def png(self) -> bytes:
        """The gaps."""
        return plots.gap_png(self.result) if self.result else super().png()

    def csv(self) -> str:
        """The error budget."""
        return tables.compare_csv(self.result) if self.result else super().csv()

    def _draw(self, final: bool) -> None:
        self.words.object = tables.verdict_html(self.result)
        self.pane.object = plots.gap_figure(self.result["sizes"], self.result["gaps"], self.page.dark)


VIEWS: Mapping[str, type[View]] = {
    "curve": CurveView,
    "phase": PhaseView,
    "compare": CompareView,
    "plan": PlanView,
    "forecast": ForecastView,
}
