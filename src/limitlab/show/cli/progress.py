"""A sign of life for work whose steps cannot be counted (`limitlab.lab.progress` has the bar for work whose steps can)."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from limitlab.lab.progress import PATIENCE


@contextmanager
def working(what: str, patience: float = PATIENCE) -> Iterator[Callable[[str], None]]:
    """Show a spinner on stderr once the work has taken a second; nothing where nobody watches.

    Gives a function that changes the words.

    >>> with working("counting") as tell:
    ...     tell("counting sheep")
    """
    if not sys.stderr.isatty():
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
