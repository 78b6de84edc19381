"""A progress bar that appears after one second, and only on a terminal.

This module imports nothing of limitlab, because the help page of the command line imports it and must load no law.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

Report = Callable[[int, int], None]
ProgressOption = bool | Report | None

PATIENCE = 1.0
"""Seconds before the bar appears."""


class Progress:
    """Count finished tasks, and show them in a bar.

    Parameters
    ----------
    total
        Number of tasks.
    label
        The text beside the bar.
    show
        None for a bar if standard error is a terminal, True for always, False for never. A function is called with (finished,
        total) after every task instead of the bar.

    Examples
    --------
    >>> with Progress(3, "tossing coins", show=lambda done, total: print(f"{done}/{total}")) as progress:
    ...     progress.advance()
    ...     progress.advance(2)
    1/3
    3/3
    """

    def __init__(self, total: int, label: str, show: ProgressOption = None):
        self.total = total
        self.label = label
        self.finished = 0
        self._report = show if callable(show) else None
        self._wanted = sys.stderr.isatty() if show is None else bool(show) and not callable(show)
        self._bar: Any = None
        self._task: Any = None
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        if self._wanted:
            self._timer = threading.Timer(PATIENCE, self._appear)
            self._timer.daemon = True
            self._timer.start()
        return self

    def advance(self, tasks: int = 1) -> None:
        """Count further finished tasks."""
        with self._lock:
            self.finished += tasks
            if self._bar is not None:
                self._bar.update(self._task, completed=self.finished)
        if self._report is not None and tasks:
            self._report(self.finished, self.total)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._wanted = False
            if self._bar is not None:
                self._bar.stop()

    def _appear(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        with self._lock:
            if not self._wanted:
                return
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("left:"),
                TimeRemainingColumn(),
            )
            self._bar = Bar(*columns, console=Console(stderr=True, force_terminal=True), transient=True)
            self._task = self._bar.add_task(self.label, total=self.total, completed=self.finished)
            self._bar.start()
