"""The page of a visitor, with the list of laws, widgets for parameters, the current view and the equations of the law.

Every change of the page goes through one `State`.
"""

from __future__ import annotations

import asyncio
import functools
import html
import inspect
import io
import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import panel as pn
from bokeh.models import Div

from limitlab._core.declaration import plain
from limitlab._core.draws import plain_parameters
from limitlab._core.headline import headline_of
from limitlab._core.law import Law
from limitlab._core.registry import package_of
from limitlab._core.typeset import typeset
from limitlab.errors import Refused
from limitlab.show.explorer import _address as address
from limitlab.show.explorer._address import (
    MOST_DRAWS,
    MOST_GRID,
    MOST_SIZE,
    Axis,
    Control,
    Group,
    State,
    axes_of,
    changed_state,
    controls_of,
    curves_of,
    from_text,
    law_of,
    listed,
    matching,
    proposals,
    snippet,
    to_text,
)
from limitlab.show.explorer._views import LAYOUT, STYLE, VIEWS, View
from limitlab.show.explorer.jobs import Pool, Runner, sentence

MODES = {
    "Headline": "headline",
    "Curve": "curve",
    "Phase diagram": "phase",
    "Compare": "compare",
    "Plan": "plan",
    "Your data": "forecast",
}

CHIPS = {
    False: ".choices__list--multiple .choices__item { color: #004a77 !important; }",
    True: ".choices__list--multiple .choices__item { color: #cfe9ff !important; }",
}
"""Styles of the selected observables on a light and on a dark page."""
NAME_SLIDERS = """
const name = () => {
  const walk = view => {
    if (view.model.type.endsWith("Slider")) {
      for (const handle of (view.shadow_el ?? view.el).querySelectorAll(".noUi-handle")) {
        if (handle.getAttribute("aria-label") !== view.model.title) handle.setAttribute("aria-label", view.model.title)
      }
    }
    const list = view.model.type.endsWith("SingleSelect") ? view.shadow_el.querySelector("select") : null
    const chosen = list?.selectedOptions[0]
    if (chosen && list.dataset.seen !== list.value) {
      list.dataset.seen = list.value
      list.scrollTop = chosen.offsetTop - list.offsetTop - 40
    }
    for (const child of view.children?.() ?? []) walk(child)
  }
  for (const root of Object.values(Bokeh.index.roots ?? {})) walk(root)
}
name()
setInterval(name, 500)
"""
"""Program of the browser that names every slider and scrolls the list of laws to the present one, also after a choice."""
DOWNLOADS = {"PNG": "png", "CSV": "csv", "Python": "py"}
"""Downloads and the endings of their files. A hyphen in the name keeps Python from importing the file as a module."""
WRAPPED = """
select { max-height: 340px; }
option { white-space: normal; padding: 2px 0 2px 10px; }
option:disabled { padding-left: 2px; font-weight: 600; }
"""
"""Style of the list of laws, in which a question can take several lines."""
SEEN, HIDDEN = {"visibility": "visible"}, {"visibility": "hidden"}
STATUS_HEIGHT = 58
"""Height of the sentence about the picture, in pixels. It is fixed, so that a longer sentence does not move the picture."""
STEPS = 200
"""Number of positions of a slider for real numbers."""
GROUPS: tuple[tuple[Group, str], ...] = (
    ("physics", "Other parameters"),
    ("experiment", "Experiment"),
    ("advanced", "Advanced: the solver"),
)
MOST_MAIN = 4
"""Largest number of sliders next to the picture."""
MOST = 12
"""Largest number of equations in the explorer. The theory page contains all."""

NOT_CHOSEN, NOT_FOUND = "#laws", "#none"
"""Values of the entries of the list that are sentences."""

_DISPLAY = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
_TAG = re.compile(r"\\tag\{([^}]*)\}")
_GAP = re.compile(r"\\qquad")
_PART = re.compile(r"^(Setting|Limit|Status)\.\s+(.*?)(?=^[A-Z][a-z]+\.\s|\Z)", re.DOTALL | re.MULTILINE)


class Page:
    """The widgets of a page and their actions. `view` is the Panel object to show.

    Parameters
    ----------
    laws
        The laws in the list, by name.
    pool
        The workers for computations.
    first
        The initial state.
    remarks
        Sentences to show at the start.
    tell_address
        Function that is called with the address of every new state.
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
        self._knobs: dict[str, ParameterWidget] = {}
        self.runner = Runner(pool, self._on_running, pn.state.curdoc)
        self.views: dict[str, View] = {mode: kind(self) for mode, kind in VIEWS.items()}
        self._make_widgets()
        self.view = self._laid_out()
        self.show(first)
        if remarks:  # show errors of the address until the first change by the visitor
            words = html.escape("; ".join(remarks))
            self.alert.param.update(object=f'<div role="alert" class="refused">{words}</div>', visible=True)

    # -- the state ------------------------------------------------------------------------------------------------------

    @property
    def law(self) -> Law:
        """The law at the parameters of the page."""
        return law_of(self.state, self.laws)

    @property
    def dark(self) -> bool:
        """Whether the page is dark."""
        return self.state.theme == "dark"

    def show(self, new: State) -> None:
        """Show a state in every widget and then in the picture."""
        new_law = new.law != self.state.law or not self._knobs
        self.state = new
        if new_law:
            self._quietly(self._show_law)
        self._show_state()
        self._write_address()
        self.current.shown()

    def _show_state(self) -> None:
        """Set every widget to its value in the state."""
        law = self.law

        def set_values() -> None:
            values = plain_parameters(law)
            for name, knob in self._knobs.items():
                knob.show(values[name])
            self._show_options(law)

        self._quietly(set_values)

    def _quietly(self, change: Callable[[], None]) -> None:
        """Change widgets without calling the actions for changes by the visitor."""
        before, self._quiet = self._quiet, True
        try:
            change()
        finally:
            self._quiet = before

    @property
    def current(self) -> View:
        """The view of the current mode."""
        return self.views[self.state.mode]

    def _changed(self, **changes: Any) -> None:
        """Show the changes of a visitor. A change that is not allowed is undone, and a sentence says why."""
        if self._quiet:
            return
        self.state, remarks = changed_state(self.state, self.laws, changes)
        self.alert.visible = False
        if remarks:
            self._show_state()
            self.say("; ".join(remarks), "refused")
            return
        self._write_address()
        self.current.shown()

    def _write_address(self) -> None:
        for download, kind in zip(self.downloads, DOWNLOADS, strict=True):
            download.filename = f"{self.state.law.partition(':')[0]}-{self.state.mode}.{DOWNLOADS[kind]}"
        self._tell_address(self.state.address())
        other: address.Theme = "light" if self.dark else "dark"
        self.theme_link.object = f'<a href="?{html.escape(replace(self.state, theme=other).address())}">{other}</a>'

    def _turned(self) -> None:
        """Show the law at the parameters in the widgets."""
        try:
            law = address.usable(self.laws[self.state.law](**{name: knob.value for name, knob in self._knobs.items()}))
            first = plain_parameters(address.at_start(type(law)))
            now = plain_parameters(law)
        except address.FAILED as error:
            self.say(sentence(error), "refused")
            return
        kept = self.state.parameters.keys() & headline_of(type(law)).at.keys()
        self._changed(parameters={name: value for name, value in now.items() if value != first[name] or name in kept})

    # -- the widgets ----------------------------------------------------------------------------------------------------

    def _make_widgets(self) -> None:
        wide = dict(sizing_mode="stretch_width", margin=(2, 8))
        self.search = pn.widgets.TextInput(name="Find a law", placeholder="a name, a subject, a word", **wide)
        self.search.param.watch(lambda event: self._filter(event.new), "value_input")
        self.chooser = pn.widgets.Select(name="Laws by subject", size=14, stylesheets=[WRAPPED], **wide)
        self._list_laws("")
        self.chooser.param.watch(self._chosen, "value")
        self._parameters = pn.Column(sizing_mode="stretch_width", margin=0)
        self.mode = pn.widgets.RadioButtonGroup(
            name="Mode",
            options=MODES,
            button_type="primary",
            button_style="outline",
            margin=(4, 8),
            stylesheets=[".bk-btn-group { flex-wrap: wrap; }"],
            styles={"max-width": "96vw"},
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
        self.target = pn.widgets.FloatInput(name="target value", width=110, margin=(2, 8))
        for key, widget in (("size", self.size), ("draws", self.draws), ("grid", self.grid), ("target", self.target)):
            widget.param.watch(lambda event, key=key: self._changed(**{key: event.new}), "value")
        self.run = pn.widgets.Button(name="Run", button_type="primary", margin=(4, 8))
        self.run.on_click(lambda event: self.current.run())
        self.cancel = pn.widgets.Button(name="Cancel", disabled=True, margin=(4, 4))
        self.cancel.on_click(lambda event: self.runner.cancel())
        self.progress = pn.indicators.Progress(value=0, max=100, active=False, width=90, margin=(10, 8), styles=HIDDEN)
        self.spinner = pn.indicators.LoadingSpinner(value=False, size=22, margin=(6, 4), styles=HIDDEN)
        text = dict(stylesheets=[STYLE])
        self.status = pn.pane.HTML(
            "", css_classes=["status", "line", self.state.theme], margin=(2, 10), height=STATUS_HEIGHT,
            sizing_mode="stretch_width", styles={"overflow-y": "auto"}, stylesheets=[STYLE, LAYOUT],
        )  # fmt: skip
        self.alert = pn.pane.HTML(
            "", css_classes=["status", self.state.theme], sizing_mode="stretch_width", margin=(4, 10), visible=False, **text
        )
        self.title = pn.pane.HTML(
            "", css_classes=["title", self.state.theme], sizing_mode="stretch_width", margin=(0, 10), **text
        )
        self.theme_link = pn.pane.HTML("", css_classes=["theme", self.state.theme], margin=(8, 14), width=40, **text)
        self.downloads = [
            pn.widgets.FileDownload(
                callback=functools.partial(self._download, kind), filename=f"law.{kind}", label=label, button_type="light",
                margin=(4, 3), width=74, height=32,
            )
            for label, kind in DOWNLOADS.items()
        ]  # fmt: skip
        self.typeset = Div(
            text="", sizing_mode="stretch_width", css_classes=["equations", self.state.theme], stylesheets=[STYLE]
        )

    def _laid_out(self) -> Any:
        self._bars = {mode: pn.FlexBox(*self.views[mode].bar(), sizing_mode="stretch_width", margin=0) for mode in VIEWS}
        self.above = pn.Column(sizing_mode="stretch_width", margin=0)
        self.below = pn.Column(sizing_mode="stretch_width", margin=0)
        self.board = pn.Column(
            sizing_mode="stretch_both", min_height=300, margin=(0, 6), css_classes=["board"], stylesheets=[LAYOUT]
        )
        side = pn.Column(
            self.search, self.chooser, self._parameters, css_classes=["side"], width=290, sizing_mode="stretch_height", scroll="y",
            margin=0, stylesheets=[LAYOUT],
        )  # fmt: skip
        wraps: dict[str, Any] = dict(margin=0, sizing_mode="stretch_width")
        self.sliders = pn.FlexBox(**wraps)
        self.actions = pn.FlexBox(align_items="end", **wraps)
        saved = pn.Row(*self.downloads, margin=0)
        top = pn.FlexBox(self.mode, saved, justify_content="space-between", **wraps)
        main = pn.Column(
            pn.Row(self.title, self.theme_link, sizing_mode="stretch_width", margin=0),
            self.alert, top, self.above, self.board, self.status, self.below,
            css_classes=["main"], sizing_mode="stretch_both", margin=0, scroll="y", stylesheets=[LAYOUT],
        )  # fmt: skip
        beside = pn.Column(
            pn.pane.Bokeh(self.typeset, sizing_mode="stretch_width", margin=0), css_classes=["beside"], width=340, scroll="y",
            sizing_mode="stretch_height", margin=0, stylesheets=[LAYOUT],
        )  # fmt: skip
        return pn.Row(
            side, main, beside, sizing_mode="stretch_both", min_height=560, css_classes=["page", self.state.theme], margin=0,
            stylesheets=[LAYOUT],
        )  # fmt: skip

    # -- showing --------------------------------------------------------------------------------------------------------

    def _show_law(self) -> None:
        law = self.laws[self.state.law]
        self._knobs = knobs_of(law, self._turned)
        main = main_names(law)
        self.sliders[:] = [pn.Column(self._knobs[name].view, width=188, margin=0) for name in main]
        self._parameters[:] = drawers(self._knobs, main)
        self.title.object = f"<h1>{typeset(law.title())} <small>{law.__name__}, {law.status}</small></h1>"
        self.typeset.text = equations_html(law)
        if self.state.law not in self.chooser.options.values():
            self.search.value = ""
        self._list_laws(self.search.value)

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
        """Lay out the current view."""
        if self.board.objects == board:
            return
        self.run.name = self.current.verb
        self.actions[:] = [*self.current.inputs(), self.run, self.cancel, self.spinner, self.progress]
        bar, sliders = self._bars[self.state.mode], [] if self.state.mode == "forecast" else [self.sliders]
        if self.current.answers:  # the result is a text, which follows its inputs
            self.above[:], self.below[:] = [bar, self.actions], sliders
        else:
            self.above[:], self.below[:] = [], [*sliders, self.actions, bar]
        self.board[:] = board

    def say(self, words: str, kind: str = "") -> None:
        """Show a sentence below the buttons. `kind` is "refused" for an error."""
        self.status.object = f'<div role="status" aria-live="polite" class="{kind}">{html.escape(words) or "&nbsp;"}</div>'

    def _on_running(self, running: bool, done: int = 0, total: int = 0) -> None:
        self.cancel.disabled = not running
        self.spinner.value = running  # the widgets keep their places, so that the picture does not move
        self.spinner.styles = SEEN if running else HIDDEN
        self.progress.styles = SEEN if running and total > 1 else HIDDEN
        self.progress.value = round(100 * done / total) if total else 0

    # -- what visitors do -----------------------------------------------------------------------------------------------

    def _filter(self, words: str) -> None:
        self._quietly(lambda: self._list_laws(words))

    def _list_laws(self, words: str) -> None:
        """List the laws that match some words. If the present law is not among them, a sentence is the selected entry."""
        matches = matching(self.laws, words)
        sentence = ""
        if not matches:
            sentence, matches = f"No law has the words “{words[:40]}”. Perhaps one of these:", proposals(self.laws, words)
        entries, headings = listed(matches, self.laws)
        if self.state.law not in entries.values():
            count = len(entries) - len(headings)
            entries = {sentence or f"{count} {'law' if count == 1 else 'laws'} found. Choose one:": NOT_CHOSEN, **entries}
        elif sentence:
            headings = [NOT_FOUND, *headings]
            entries = {sentence: NOT_FOUND, **entries}
        chosen = self.state.law if self.state.law in entries.values() else NOT_CHOSEN
        self.chooser.disabled_options = []
        self.chooser.param.update(value=chosen, options=entries)
        self.chooser.disabled_options = headings

    def _chosen(self, event: Any) -> None:
        if self._quiet or event.new not in self.laws or event.new == self.state.law:
            return
        self.runner.cancel()
        first = address.start(self.laws[event.new])
        self.show(replace(first, theme=self.state.theme))

    def _new_axis(self, key: str, name: str | None) -> None:
        if self._quiet or name is None:
            return
        changes: dict[str, Any] = {key: name}
        other = "y" if key == "x" else "x"
        other_axis: Axis | None = getattr(self.state, other)
        if other_axis is not None and other_axis.name == name:  # swap the two axes
            changes[other] = getattr(self.state, key)
        new, remarks = changed_state(self.state, self.laws, changes)
        self.show(new)
        if remarks:
            self.say("; ".join(remarks), "refused")

    def _new_range(self, key: str) -> None:
        axis: Axis | None = getattr(self.state, key)
        if self._quiet or axis is None:
            return
        low, high = (self.x_low, self.x_high) if key == "x" else (self.y_low, self.y_high)
        log = axis.log or address.axis(self.law, axis.name).log
        self._changed(**{key: f"{axis.name}:{low.value}:{high.value}" + (":log" if log else "")})

    async def _download(self, kind: str) -> Any:
        """Return a file of the current view. The picture is drawn in a thread, so that other visitors get their answers."""
        if kind == "py":
            return io.BytesIO(snippet(self.state, self.law, self.current.measured).encode())
        view = self.current
        try:
            if kind == "csv":
                return io.BytesIO(view.csv().encode())
            async with _drawing():
                return io.BytesIO(await asyncio.to_thread(view.png))
        except Refused as error:  # there is no picture yet
            self.say(str(error), "refused")
            return io.BytesIO()


@functools.cache
def _drawing() -> asyncio.Lock:
    """Return the lock of the thread that draws, because Matplotlib draws one figure at a time."""
    return asyncio.Lock()


# -- the widgets of a parameter -----------------------------------------------------------------------------------------------


class ParameterWidget:
    """The widgets of a parameter and their value.

    Attributes
    ----------
    control
        The control of the parameter.
    view
        The widgets to lay out.
    """

    def __init__(self, control: Control, changed: Callable[[], None]):
        self.control = control
        self._changed = changed
        self._quiet = False
        self._slider: Any = None
        self._field = self._made_field()
        self._field.param.watch(self._on_field, "value")
        rows = [self._field]
        if control.form == "slider":
            self._slider = self._made_slider()
            self._slider.param.watch(self._on_slider, "value")
            rows.append(self._slider)
        self.view = pn.Column(*rows, margin=(0, 0, 4, 0), sizing_mode="stretch_width", css_classes=["knob"])

    @property
    def value(self) -> Any:
        """The value in the widgets, in the form that the law accepts."""
        shown = self._field.value
        if isinstance(shown, str) and len(shown) > address.LONGEST:
            raise Refused(address.too_long(self.control.name))
        if self.control.many and shown.strip():
            return from_text(f"[{shown}]")
        return from_text(shown) if isinstance(shown, str) and self.control.form in ("slider", "text") else shown

    def show(self, value: Any) -> None:
        """Show a value without calling `changed`."""
        self._quiet = True
        try:
            self._field.value = to_text(value) if self.control.form in ("slider", "text") else value
            self._move_slider(value)
        finally:
            self._quiet = False

    def _made_field(self) -> Any:
        control = self.control
        options = dict(name=control.label, description=control.help, sizing_mode="stretch_width", margin=(2, 8))
        if control.form == "choice":
            return pn.widgets.Select(options=list(control.choices), value=control.value, **options)
        if control.form == "switch":
            options.pop("description")
            return pn.widgets.Checkbox(value=bool(control.value), **options)
        return pn.widgets.TextInput(value=to_text(control.value), **options)

    def _made_slider(self) -> Any:
        control = self.control
        low, high = self._place(control.low), self._place(control.high)
        step = 1 if control.whole and not control.log else (high - low) / STEPS
        options = dict(
            start=low, end=high, step=step, value=min(max(self._place(control.value), low), high), show_value=False,
            name=control.name.replace("_", " "),
            stylesheets=[".bk-slider-title { display: none; }"], margin=(0, 12, 2, 12), sizing_mode="stretch_width", tooltips=False,
        )  # fmt: skip
        return pn.widgets.FloatSlider(**options)

    def _place(self, value: Any) -> float:
        """Return the position of a value on the slider."""
        number = float(value)
        if not self.control.log:
            return number
        return (
            math.log10(number)
            if 0 < number < math.inf
            else math.log10(self.control.high if number > 0 else self.control.low)
        )

    def _on_slider(self, event: Any) -> None:
        if self._quiet:
            return
        place = min(max(event.new, self._slider.start), self._slider.end)  # only a browser keeps to the ends of a slider
        value = 10.0**place if self.control.log else place
        value = round(value) if self.control.whole else float(f"{value:.4g}")
        self._quiet = True
        try:
            self._field.value = to_text(value)
        finally:
            self._quiet = False
        self._changed()

    def _on_field(self, event: Any) -> None:
        if self._quiet:
            return
        self._quiet = True
        try:
            self._move_slider(self.value)
        finally:
            self._quiet = False
        self._changed()

    def _move_slider(self, value: Any) -> None:
        if self._slider is None:
            return
        try:
            place = self._place(plain(value))
        except (TypeError, ValueError):
            return
        if math.isfinite(place):
            self._slider.value = min(max(place, self._slider.start), self._slider.end)


def knobs_of(law: type[Law], changed: Callable[[], None]) -> dict[str, ParameterWidget]:
    """Return the widgets of every parameter of a law. `changed` is called when a visitor changes a value."""
    return {name: ParameterWidget(control, changed) for name, control in controls_of(law).items()}


def main_names(law: type[Law]) -> list[str]:
    """Return the parameters next to the picture, which are those that the headline view names.

    The parameter of its curves and the one on its axis follow.

    >>> from limitlab.laws import Ridge
    >>> main_names(Ridge)
    ['noise', 'eigenvalues', 'ridge', 'ratio']
    """
    controls, view = controls_of(law), headline_of(law)
    varied = [view.curves[0]] if view.curves else []
    declared = [name for name in dict.fromkeys([*view.sliders, *varied, view.x]) if name in controls]
    sliders = [name for name, control in controls.items() if control.form == "slider" and control.group == "physics"]
    return (declared or sliders)[:MOST_MAIN]


def drawers(knobs: dict[str, ParameterWidget], main: list[str]) -> list[Any]:
    """Return the widgets of the parameters that are not next to the picture, in folded groups."""
    parts: list[Any] = []
    for group, title in GROUPS:
        views = [knob.view for name, knob in knobs.items() if knob.control.group == group and name not in main]
        if views:
            parts.append(
                pn.Card(
                    *views, title=title, collapsed=True, sizing_mode="stretch_width", margin=(6, 4), css_classes=["fold"]
                )
            )
    return parts


# -- the equations of a law ---------------------------------------------------------------------------------------------------


def equations(law: type[Law]) -> list[tuple[str, str]]:
    """Return numbers and LaTeX of the numbered equations of a theory page. The list is empty if the page is not installed.

    >>> from limitlab.laws import Ridge
    >>> numbers = [number for number, _ in equations(Ridge)]
    >>> numbers[:3]
    ['1', '2', '3']
    """
    numbered = []
    for block in _DISPLAY.findall(page(law)):
        tag = _TAG.search(block)
        if tag is not None:
            numbered.append((tag[1], " ".join(_TAG.sub("", block).split())))
    return numbered


def page(law: type[Law]) -> str:
    """Return the text of the theory page of a law, from the package or from a checkout."""
    package = package_of(law)
    own = package.file("theory", f"{law.page}.md") if package is not None and law.page else None
    if own is not None:
        return own.read_text(encoding="utf-8")
    return _read(f"{law.page}.md") if law.page else ""


@functools.cache
def _read(name: str) -> str:
    package = Path(str(files("limitlab")))
    for folder in (package / "theory_pages", package.parents[1] / "docs" / "theory"):
        if (folder / name).is_file():
            return (folder / name).read_text(encoding="utf-8")
    return ""


def setting(law: type[Law]) -> dict[str, str]:
    """Return setting, limit and status of a law from its docstring.

    >>> from limitlab.laws import Ridge
    >>> setting(Ridge)["Limit"]
    'n, p -> infinity with p/n -> gamma (`ratio`).'
    """
    return {title: " ".join(text.split()) for title, text in _PART.findall(_docstring(law))}


def equations_html(law: type[Law]) -> str:
    """Return setting and equations of a law as HTML, with equations in dollar signs for typesetting."""
    words = [f"<p><b>{title}.</b> {typeset(text)}</p>" for title, text in setting(law).items()]
    shown = equations(law)
    lines = [
        f'<div class="equation"><div class="lines">{_in_lines(body)}</div><span class="number">({number})</span></div>'
        for number, body in shown[:MOST]
    ]
    if not shown:  # the docstring contains the equations as plain text
        lines = [f"<pre>{html.escape(inspect.cleandoc(_docstring(law)))}</pre>"]
    elif len(shown) > MOST:
        lines.append(f"<p>and {len(shown) - MOST} more on the theory page in the documentation.</p>")
    return "\n".join([*words, *lines])


def _in_lines(body: str) -> str:
    r"""Return an equation as HTML, with each of its parts on a separate line.

    >>> _in_lines(r"a = b,\qquad c = d")
    '<div>$$a = b,$$</div><div>$$c = d$$</div>'
    """
    parts = [body] if "\\begin" in body or "\\left" in body else [part.strip() for part in _GAP.split(body)]
    return "".join(f"<div>$${_as_html(part)}$$</div>" for part in parts if part)


def _as_html(tex: str) -> str:
    """Return LaTeX without characters that are special in HTML."""
    return tex.replace("<", "\\lt ").replace(">", "\\gt ")


def _docstring(law: type[Law]) -> str:
    return getattr(sys.modules.get(law.__module__), "__doc__", None) or inspect.getdoc(law) or ""
