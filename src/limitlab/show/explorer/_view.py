"""What every mode of the page has: a button, widgets, what to draw at once, what to draw when asked, what to save."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import panel as pn

from limitlab._core.law import Law
from limitlab._core.tables import plain_symbol
from limitlab.show.explorer._state import Axis
from limitlab.show.explorer.jobs import Message

if TYPE_CHECKING:
    from limitlab.show.explorer._app import Page

STYLE = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")


class View:
    """A mode of the page.

    Attributes
    ----------
    verb
        What its button says.
    measured
        Whether experiments are shown.
    """

    verb = "Run"
    measured = False

    def __init__(self, page: Page):
        self.page = page
        self.result: Any = None
        self._seen: Any = None

    def bar(self) -> list[Any]:
        """The widgets above the picture."""
        return []

    def inputs(self) -> list[Any]:
        """The widgets before the button."""
        return []

    def shown(self) -> None:
        """The state is new: draw what can be drawn at once."""

    def run(self) -> None:
        """The button was pressed."""

    def png(self) -> bytes:
        """The picture."""
        raise ValueError("there is no picture yet: press the button first")

    def csv(self) -> str:
        """The numbers."""
        raise ValueError("there are no numbers yet: press the button first")

    def _heard(self, message: Message) -> None:
        """A job said something."""
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


def label_of(law: Law, axis: Axis) -> str:
    """The label of an axis: words and symbol."""
    meta = type(law).parameters()[axis.name]
    symbol = plain_symbol(meta.symbol)
    words = axis.name.replace("_", " ")
    return f"{words} {symbol}" if symbol and "\\" not in symbol else words


def values_label(law: Law, names: tuple[str, ...]) -> str:
    """The label of what is drawn: the words of one observable, or the names of several."""
    metas = type(law).outputs()
    return (
        metas[names[0]].long_name
        if len(names) == 1 and metas[names[0]].long_name
        else ", ".join(name.replace("_", " ") for name in names)
    )


def with_trouble(words: str, result: Any) -> str:
    """A sentence, and the first thing that went wrong in a part of the result."""
    trouble = result.get("trouble") if isinstance(result, dict) else ""
    return f"{words}. Not everywhere: {trouble}" if trouble else words


def push(pane: Any) -> None:
    """In a notebook a changed source is not sent by itself."""
    if pn.state.curdoc is None or pn.state.curdoc.session_context is None:
        pane.param.trigger("object")
