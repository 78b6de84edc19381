"""What the benchmarks share: one BLAS thread, so that ratios are of algorithms and not of thread counts, a clock, a table, progress."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from limitlab._core.cost import single_threaded


def clock(function: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """Seconds of the processor, which other programs do not disturb, and result of one call."""
    with single_threaded():
        start = time.process_time()
        result = function(*arguments)
        return time.process_time() - start, result


def best(repeats: int, *calls: Callable[[], Any]) -> tuple[list[float], list[Any]]:
    """The shortest time of each call over interleaved repetitions, and what each returned the first time."""
    runs = [[clock(call) for call in calls] for _ in range(repeats)]
    return [min(run[side][0] for run in runs) for side in range(len(calls))], [result for _, result in runs[0]]


def print_ratios(ratios: Mapping[str, float], *floors: float) -> None:
    """The ratios as rows of a table, each with the least that is wanted of it, where something is."""
    for row, (what, ratio) in enumerate(ratios.items()):
        wanted = f" (at least {floors[row]:g} wanted)" if row < len(floors) else ""
        print(f"| {what} | {ratio:.3g} times faster{wanted} |")


def spent() -> float:
    """Processor seconds of this program and of those that it has run."""
    now = os.times()
    return now.user + now.system + now.children_user + now.children_system


def progress(what: str) -> None:
    """A line about what has just been measured, and the processor time of all so far."""
    print(f"  {what}: {spent():.0f} s so far", file=sys.stderr, flush=True)
