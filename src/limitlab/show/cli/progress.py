"""A sign of life for work whose steps cannot be counted (`limitlab.lab.progress` has the bar for work whose steps can)."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from limitlab.lab.progress import PATIENCE

EVERY = 3.0
"""Seconds between two lines of progress where there is no terminal."""


@contextmanager
def working(
    what: str, patience: float = PATIENCE, lines: bool = False, every: float = EVERY
) -> Iterator[Callable[[str], None]]:
    """Show a spinner on stderr once the work has taken a second; where nobody watches nothing, or with `lines` a line now and then.

    Gives a function that changes the words.

    >>> with working("counting") as tell:
    ...     tell("counting sheep")
    """
    if not sys.stderr.isatty():
        with _lines(what, every) if lines else nullcontext(lambda words: None) as tell:
            yield tell
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
def _lines(what: str, every: float) -> Iterator[Callable[[str], None]]:
    """A line on stderr every few seconds: what is done, the latest words, how long it has taken."""
    start, over, latest = time.perf_counter(), threading.Event(), [""]

    def speak() -> None:
        while not over.wait(every):
            words = f": {latest[0]}" if latest[0] else ""
            print(f"{what}{words} ({time.perf_counter() - start:.0f} s)", file=sys.stderr, flush=True)

    speaker = threading.Thread(target=speak, daemon=True)
    speaker.start()
    try:
        yield lambda words: latest.__setitem__(0, words)
    finally:
        over.set()
        speaker.join()
