"""One visitor's page: the list of laws, the controls, the picture, the equations; every change goes through one `State`."""

from __future__ import annotations

import html
import io
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import panel as pn
from bokeh.models import Div
from pydantic_core import ValidationError

from limitlab._core.draws import plain_parameters
from limitlab._core.law import Law
from limitlab._core.typeset import typeset
from limitlab.show.explorer import _equations as equations
from limitlab.show.explorer import _state as state
from limitlab.show.explorer._catalogue import listed, matching
from limitlab.show.explorer._controls import Knob, knobs_of, laid_out
from limitlab.show.explorer._declared import axes_of, curves_of
from limitlab.show.explorer._running import Runner
from limitlab.show.explorer._snippet import snippet
from limitlab.show.explorer._state import MOST_DRAWS, MOST_GRID, MOST_SIZE, Axis, State
from limitlab.show.explorer._view import STYLE, View
from limitlab.show.explorer._views import VIEWS
from limitlab.show.explorer.jobs import Pool, sentence

MODES = {"Curve": "curve", "Phase diagram": "phase", "Compare": "compare", "Plan": "plan", "Your data": "forecast"}

CHIPS = {
    False: ".choices__list--multiple .choices__item { color: #004a77 !important; }",
    True: ".choices__list--multiple .choices__item { color: #cfe9ff !important; }",
}
"""The chosen observables, readable on either page."""


class Page:
    """Widgets and what they do. `view` is what to show.

    Parameters
    ----------
    laws
        The laws that can be chosen, by name.
    pool
        Where to compute.
    first
        What to show first.
    remarks
        What to say first.
    tell_address
        Called with the address of every new state.
    """

    def __init__(
        self,
        laws: Mapping[str, type[Law]],
        pool: Pool,
        first: State,
        remarks: list[str] | None = None,
        tell_address: Callable[[str], None] | None = None,
    ):
        self.laws, self.pool, self.state = laws, pool, first
        self._tell_address = tell_address or (lambda address: None)
        self._quiet = False
        self._knobs: dict[str, Knob] = {}
        self.runner = Runner(pool, self._on_running)
        self.views: dict[str, View] = {mode: kind(self) for mode, kind in VIEWS.items()}
        self._make_widgets()
        self.view = self._laid_out()
        self.show(first)
        if remarks:  # what was wrong with the address stays until the visitor does something
            words = html.escape("; ".join(remarks))
            self.alert.param.update(object=f'<div role="alert" class="refused">{words}</div>', visible=True)

    # -- the state ------------------------------------------------------------------------------------------------------

    @property
    def law(self) -> Law:
        """The law at the parameters that are shown."""
        return state.law_of(self.state, self.laws)

    @property
    def dark(self) -> bool:
        """Whether the page is dark."""
        return self.state.theme == "dark"

    def show(self, new: State) -> None:
        """Show a state: every widget, then its picture."""
        fresh = new.law != self.state.law or not self._knobs
        self.state = new
        self._quiet = True
        try:
            if fresh:
                self._knobs = knobs_of(self.laws[new.law], self._turned)
                self._parameters[:] = laid_out(self._knobs)
                self._show_law()
            law = self.law
            shown = plain_parameters(law)
            for name, knob in self._knobs.items():
                knob.show(shown[name])
            self._show_options(law)
        finally:
            self._quiet = False
        self._write_address()
        self.current.shown()

    @property
    def current(self) -> View:
        """The view of the present mode."""
        return self.views[self.state.mode]

    def _changed(self, **changes: Any) -> None:
        """A visitor changed something: the new state, its address, its picture."""
        if self._quiet:
            return
        try:
            asked = replace(self.state, **changes)
            _ = state.law_of(asked, self.laws)
        except (ValidationError, ValueError) as error:
            self.say(sentence(error), "refused")
            return
        self.state = asked
        self.alert.visible = False
        self._write_address()
        self.current.shown()

    def _write_address(self) -> None:
        self._tell_address(self.state.address())
        other: state.Theme = "light" if self.dark else "dark"
        self.theme_link.object = f'<a href="?{html.escape(replace(self.state, theme=other).address())}">{other}</a>'

    def _turned(self) -> None:
        """A knob was turned."""
        try:
            law = self.laws[self.state.law](**{name: state.short(name, knob.value) for name, knob in self._knobs.items()})
        except (ValidationError, ValueError) as error:
            self.say(sentence(error), "refused")
            return
        first = plain_parameters(state.at_start(type(law)))
        now = plain_parameters(law)
        self._changed(parameters={name: value for name, value in now.items() if value != first[name]})

    # -- the widgets ----------------------------------------------------------------------------------------------------

    def _make_widgets(self) -> None:
        wide = dict(sizing_mode="stretch_width", margin=(2, 8))
        self.search = pn.widgets.TextInput(name="Find a law", placeholder="a name, a subject, a word", **wide)
        self.search.param.watch(lambda event: self._filter(event.new), "value_input")
        self.chooser = pn.widgets.Select(name="Laws by subject", size=9, **wide)
        self._list_laws("")
        self.chooser.param.watch(self._chosen, "value")
        self._parameters = pn.Column(sizing_mode="stretch_width", margin=0)
        self.mode = pn.widgets.RadioButtonGroup(
            name="Mode", options=MODES, button_type="primary", button_style="outline", margin=(4, 8)
        )
        self.mode.param.watch(lambda event: self._changed(mode=event.new), "value")
        short = dict(width=130, margin=(2, 4, 2, 8))
        self.x = pn.widgets.Select(name="Along", options=[], **short)
        self.y = pn.widgets.Select(name="Against", options=[], **short)
        for key, widget in (("x", self.x), ("y", self.y)):
            widget.param.watch(lambda event, key=key: self._new_axis(key, event.new), "value")
        narrow = dict(width=72, margin=(2, 4))
        self.x_low, self.x_high, self.y_low, self.y_high = (
            pn.widgets.TextInput(name=name, **narrow) for name in ("from", "to", "from", "to")
        )
        for key, low, high in (("x", self.x_low, self.x_high), ("y", self.y_low, self.y_high)):
            for end in (low, high):
                end.param.watch(lambda event, key=key: self._new_range(key), "value")
        self.observables = pn.widgets.MultiChoice(
            name="Show", width=190, margin=(2, 4), solid=False, stylesheets=[CHIPS[self.dark]]
        )
        self.observables.param.watch(
            lambda event: self._changed(observables=tuple(event.new)) if event.new else None, "value"
        )
        self.observable = pn.widgets.Select(name="Show", width=200, margin=(2, 8))
        self.observable.param.watch(lambda event: self._changed(observables=(event.new,)) if event.new else None, "value")
        self.scale = pn.widgets.Select(name="Vertical", options=["auto", "linear", "log"], width=76, margin=(2, 4))
        self.scale.param.watch(lambda event: self._changed(scale=event.new), "value")
        self.size = pn.widgets.IntInput(name="size", start=2, end=MOST_SIZE, **narrow)
        self.draws = pn.widgets.IntInput(name="draws", start=1, end=MOST_DRAWS, **narrow)
        self.grid = pn.widgets.IntInput(name="points", start=2, end=MOST_GRID, **narrow)
        self.target = pn.widgets.FloatInput(name="value wanted", width=110, margin=(2, 8))
        for key, widget in (("size", self.size), ("draws", self.draws), ("grid", self.grid), ("target", self.target)):
            widget.param.watch(lambda event, key=key: self._changed(**{key: event.new}), "value")
        self.run = pn.widgets.Button(name="Run", button_type="primary", margin=(20, 8, 4, 8))
        self.run.on_click(lambda event: self.current.run())
        self.cancel = pn.widgets.Button(name="Cancel", disabled=True, margin=(20, 4, 4, 4))
        self.cancel.on_click(lambda event: self.runner.cancel())
        self.progress = pn.indicators.Progress(value=0, max=100, active=False, width=90, margin=(30, 8), visible=False)
        self.spinner = pn.indicators.LoadingSpinner(value=False, size=22, margin=(24, 4), visible=False)
        text = dict(stylesheets=[STYLE])
        self.status = pn.pane.HTML(
            "", css_classes=["status", self.state.theme], margin=(24, 10, 0, 10), styles={"flex": "1 1 260px"}, **text
        )
        self.alert = pn.pane.HTML(
            "", css_classes=["status", self.state.theme], sizing_mode="stretch_width", margin=(4, 10), visible=False, **text
        )
        self.title = pn.pane.HTML(
            "", css_classes=["title", self.state.theme], sizing_mode="stretch_width", margin=(0, 10), **text
        )
        self.theme_link = pn.pane.HTML("", css_classes=["theme", self.state.theme], margin=(8, 14), width=40, **text)
        self.downloads = [
            pn.widgets.FileDownload(
                callback=lambda kind=kind: self._download(kind), filename=f"limitlab.{kind}", label=label, button_type="light",
                margin=(4, 3), width=74, height=32,
            )
            for kind, label in (("png", "PNG"), ("csv", "CSV"), ("py", "Python"))
        ]  # fmt: skip
        self.typeset = Div(text="", width=330, css_classes=["equations", self.state.theme], stylesheets=[STYLE])

    def _laid_out(self) -> Any:
        self._bars = {mode: pn.FlexBox(*self.views[mode].bar(), sizing_mode="stretch_width", margin=0) for mode in VIEWS}
        self.bar = pn.Column(sizing_mode="stretch_width", margin=0)
        self.board = pn.Column(sizing_mode="stretch_both", min_height=320, margin=(0, 6))
        side = pn.Column(
            self.search,
            self.chooser,
            self._parameters,
            css_classes=["side"],
            width=300,
            sizing_mode="stretch_height",
            scroll="y",
            margin=0,
        )
        self.actions = pn.FlexBox(margin=0, sizing_mode="stretch_width", align_items="center")  # wraps in a narrow notebook
        saved = pn.Row(*self.downloads, margin=0)
        top = pn.FlexBox(self.mode, saved, margin=0, sizing_mode="stretch_width", justify_content="space-between")
        main = pn.Column(
            pn.Row(self.title, self.theme_link, sizing_mode="stretch_width", margin=0),
            self.alert, top, self.bar, self.actions, self.board,
            css_classes=["main"], sizing_mode="stretch_both", min_width=480, margin=0, scroll="y",
        )  # fmt: skip
        beside = pn.Column(
            pn.pane.Bokeh(self.typeset, sizing_mode="stretch_width", margin=0), css_classes=["beside"], width=350, scroll="y",
            sizing_mode="stretch_height", margin=0,
        )  # fmt: skip
        return pn.Row(
            side, main, beside, sizing_mode="stretch_both", min_height=640, css_classes=["page", self.state.theme], margin=0
        )

    # -- showing --------------------------------------------------------------------------------------------------------

    def _show_law(self) -> None:
        law = self.laws[self.state.law]
        self.title.object = (
            f"<h1>{law.__name__}</h1><p>{typeset(law.title())} <i>({law.status}; {typeset(law.regime)})</i></p>"
        )
        self.typeset.text = equations.equations_html(law)
        if self.state.law not in self.chooser.options.values():
            self.search.value = ""
            self._list_laws("")
        self.chooser.value = self.state.law

    def _show_options(self, law: Law) -> None:
        names, curves = axes_of(type(law)), curves_of(law)
        self.x.options, self.y.options = names, names
        self.x.value, self.y.value = self.state.x.name, self.state.y.name if self.state.y else None
        for axis, low, high in ((self.state.x, self.x_low, self.x_high), (self.state.y, self.y_low, self.y_high)):
            if axis is not None:
                low.value, high.value = f"{axis.low:.6g}", f"{axis.high:.6g}"
        self.observables.options, self.observable.options = curves, curves
        self.observables.value, self.observable.value = list(self.state.observables), self.state.observables[0]
        self.scale.value, self.size.value, self.draws.value = self.state.scale, self.state.size, self.state.draws
        self.grid.value, self.mode.value = self.state.grid, self.state.mode
        self.target.value = self.state.target

    def put(self, board: list[Any]) -> None:
        """Lay out the present view."""
        if self.board.objects == board:
            return
        self.bar[:] = [self._bars[self.state.mode]]
        self.run.name = self.current.verb
        self.actions[:] = [*self.current.inputs(), self.run, self.cancel, self.spinner, self.progress, self.status]
        self.board[:] = board

    def say(self, words: str, kind: str = "") -> None:
        """A sentence below the buttons; `kind` is "refused" where something could not be done."""
        self.status.object = f'<div role="status" aria-live="polite" class="{kind}">{html.escape(words) or "&nbsp;"}</div>'

    def _on_running(self, running: bool, done: int = 0, total: int = 0) -> None:
        self.cancel.disabled = not running
        self.spinner.value = self.spinner.visible = running
        self.progress.visible = running and total > 1
        self.progress.value = round(100 * done / total) if total else 0

    # -- what visitors do -----------------------------------------------------------------------------------------------

    def _filter(self, words: str) -> None:
        self._quiet = True
        try:
            self._list_laws(words)
        finally:
            self._quiet = False

    def _list_laws(self, words: str) -> None:
        found = matching(self.laws, words)
        here = next((subject for subject, names in found.items() if self.state.law in names), "")
        entries, headings = listed({here: found[here], **found} if here else found)  # the present law is in sight
        chosen = self.state.law if self.state.law in entries.values() else None
        self.chooser.param.update(disabled_options=[], value=None, options=entries)
        self.chooser.param.update(disabled_options=headings, value=chosen)

    def _chosen(self, event: Any) -> None:
        if self._quiet or event.new is None or event.new == self.state.law:
            return
        self.runner.cancel()
        first = state.start(self.laws[event.new])
        self.show(replace(first, mode=self.state.mode, theme=self.state.theme))

    def _new_axis(self, key: str, name: str | None) -> None:
        if self._quiet or name is None:
            return
        axis = state.axis(self.law, name)
        changes: dict[str, Any] = {key: axis}
        other = "y" if key == "x" else "x"
        if getattr(self.state, other) is not None and getattr(self.state, other).name == name:  # they change places
            changes[other] = getattr(self.state, key)
        self.show(replace(self.state, **changes))

    def _new_range(self, key: str) -> None:
        axis: Axis | None = getattr(self.state, key)
        if self._quiet or axis is None:
            return
        low, high = (self.x_low, self.x_high) if key == "x" else (self.y_low, self.y_high)
        try:
            checked = state.checked_axis(
                self.law, axis, low.value, high.value, axis.log or state.axis(self.law, axis.name).log
            )
        except ValueError as error:
            self.say(str(error), "refused")
            return
        self._changed(**{key: checked})

    def _download(self, kind: str) -> Any:
        if kind == "py":
            return io.BytesIO(snippet(self.state, self.law, self.current.measured).encode())
        content = self.current.png() if kind == "png" else self.current.csv().encode()
        return io.BytesIO(content)
