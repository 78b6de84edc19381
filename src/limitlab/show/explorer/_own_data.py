"""The learning curve of a table that a visitor brings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import panel as pn

from limitlab.show.explorer import _plots as plots
from limitlab.show.explorer import _tables as tables
from limitlab.show.explorer import _uploads as uploads
from limitlab.show.explorer._view import STYLE, View

if TYPE_CHECKING:
    from limitlab.show.explorer._app import Page


class ForecastView(View):
    """The learning curve of a table that a visitor brings. It is read, used and forgotten."""

    verb = "Forecast"

    def __init__(self, page: Page):
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
        """The file and the column to predict."""
        return [self.drop, self.target]

    def shown(self) -> None:
        """Say what to do."""
        self.page.put([self.words, self.pane])
        if self.result is None and self._file is None:
            most = self.page.pool.caps.upload_megabytes
            self.page.say(
                f"drop a table with a header line (.csv, at most {most:g} MB). It stays in memory and is not kept."
            )

    def run(self) -> None:
        """Forecast the chosen column."""
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
        return tables.forecast_csv(self.result) if self.result else super().csv()

    def _dropped(self, event: Any) -> None:
        self.result, self._file = None, None
        self.words.object, self.pane.object = "", None
        if not event.new:  # taken away again
            self.target.options = []
            return
        name, content = list(event.new.items())[-1]
        raw = content.encode() if isinstance(content, str) else bytes(content)
        self.drop.value.clear()  # the one copy is the page's own, until the next file or the end of the visit
        try:
            columns = uploads.checked(name, raw, self.page.pool.caps.upload_megabytes)
        except ValueError as error:
            self.target.options = []
            self.page.say(f"{name}: {error}", "refused")
            return
        self._file = (name, raw)
        self.target.options = columns
        self.target.value = columns[-1]
        self.page.say(f"{name}: {len(columns)} columns. Choose the column to predict and press Forecast.")

    def _draw(self, final: bool) -> None:
        self.words.object = tables.forecast_html(self.result)
        self.pane.object = plots.forecast_figure(self.result, self.page.dark)


class CappedDropper(pn.widgets.FileDropper):  # type: ignore[misc]
    """A drop zone that stops listening to a file that is longer than it may be, whatever the browser says."""

    def __init__(self, most_bytes: int, **options: Any):
        super().__init__(**options)
        self._most_bytes = most_bytes

    def _process_event(self, event: Any) -> None:
        name, chunk = str(event.data.get("name", "")), event.data.get("data", b"")
        held = sum(len(part) for parts in self._file_buffer.values() for part in parts)
        if held + len(chunk) > self._most_bytes:
            self._file_buffer.clear()
            self.value.clear()
            self.value[name] = b"\0" * (self._most_bytes + 1)  # what is refused as too long, without keeping it
            self.param.trigger("value")
            return
        if event.event_name == "upload_event" and event.data["chunk"] != 1 and name not in self._file_buffer:
            return  # the rest of a file that was refused
        super()._process_event(event)
