"""Widgets from declarations: one per parameter, with no word about any particular law."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import panel as pn

from limitlab._core.law import Law
from limitlab._core.parameters import plain
from limitlab.show.explorer._declared import Control, Group, controls_of
from limitlab.show.explorer._state import from_text, to_text

STEPS = 200
"""Positions of a slider that takes any number."""
GROUPS: tuple[tuple[Group, str], ...] = (("physics", ""), ("experiment", "Experiment"), ("advanced", "Advanced: the solver"))


class Knob:
    """The widgets of one parameter and the value that they show.

    Attributes
    ----------
    control
        What was declared.
    view
        What to lay out.
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
        """What is set, as the law takes it."""
        shown = self._field.value
        if self.control.many and shown.strip():
            return from_text(f"[{shown}]")
        return from_text(shown) if isinstance(shown, str) and self.control.form in ("slider", "text") else shown

    def show(self, value: Any) -> None:
        """Show a value without telling anybody."""
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
            name="", margin=(0, 12, 2, 12), sizing_mode="stretch_width", tooltips=False,
        )  # fmt: skip
        return pn.widgets.FloatSlider(**options)

    def _place(self, value: Any) -> float:
        """Where a value lies on the slider."""
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
        value = 10.0**event.new if self.control.log else event.new
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


def knobs_of(law: type[Law], changed: Callable[[], None]) -> dict[str, Knob]:
    """A knob per parameter of a law; `changed` is called when a visitor turned one."""
    return {name: Knob(control, changed) for name, control in controls_of(law).items()}


def laid_out(knobs: dict[str, Knob]) -> list[Any]:
    """The knobs in their groups; all but those of the physics are folded away."""
    parts: list[Any] = []
    for group, title in GROUPS:
        views = [knob.view for knob in knobs.values() if knob.control.group == group]
        if views and not title:
            parts += views
        elif views:
            parts.append(
                pn.Card(
                    *views, title=title, collapsed=True, sizing_mode="stretch_width", margin=(6, 0), css_classes=["fold"]
                )
            )
    return parts
