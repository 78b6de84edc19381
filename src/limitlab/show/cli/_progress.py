"""A sign of life for work whose steps cannot be counted (`limitlab.lab.progress` has the bar for work whose steps can)."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from limitlab._core.limits import duration
from limitlab.lab.progress import PATIENCE

FIRST_LINE, NEXT_LINES = 2.0, 30.0
"""Seconds before the first line where there is no terminal, and between the next ones."""


@contextmanager
def working(
    what: str, patience: float = PATIENCE, counted: bool = False, first: float = FIRST_LINE, every: float = NEXT_LINES
) -> Iterator[Callable[[str], None]]:
    """Say on stderr what takes so long: a spinner after a second; where there is no terminal, a line after two and then now and then.

    Gives a function that changes the words. `counted`: on a terminal a bar counts the tasks, and the spinner stays away.

    >>> with working("counting") as tell:
    ...     tell("counting sheep")
    """
    if not sys.stderr.isatty():
        with _lines(what, first, every) as tell:
            yield tell
        return
    if counted:
        yield lambda words: None
        return
    from rich.console import Console

    status = Console(stderr=True).status(what)
    lock, over = threading.Lock(), threading.Event()

    def appear() -> None:
        with lock:
            if not over.is_set():
                status.start()

    timer = threading.Timer(patience, appear)
    timer.daemon = True
    timer.start()
    try:
        yield status.update
    finally:
        timer.cancel()
        with lock:
            over.set()
            status.stop()


@contextmanager
def _lines(what: str, first: float, every: float) -> Iterator[Callable[[str], None]]:
    """A line on stderr after `first` seconds and every `every` from then on."""
    words, over, stream = [what], threading.Event(), sys.stderr

    def watch() -> None:
        waited, pause = 0.0, first
        while not over.wait(pause):
            waited, pause = waited + pause, every
            print(f"{words[-1]} ({duration(waited)} so far)", file=stream, flush=True)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield words.append
    finally:
        over.set()
