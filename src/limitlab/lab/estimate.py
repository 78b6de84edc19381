"""What a sweep will take, from a few of its cells that are timed in a worker process of their own."""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from limitlab._core.law import Law
from limitlab.lab._sweep import plan_sweep
from limitlab.lab.cells import Cell, Cells
from limitlab.lab.engines import completed
from limitlab.lab.store import Store
from limitlab.lab.tasks import LawTask, key_of, run

PER_KIND = 3
"""Cells that are timed of every size (and of the limit)."""


@dataclass(frozen=True)
class Estimate:
    """What a sweep will take.

    Attributes
    ----------
    cells, done
        Number of cells, and how many of them the store has already.
    timed
        How many cells were timed.
    seconds
        Seconds of one core that the cells which are left need together.
    uncertainty
        Standard error of `seconds`, from the spread of the timed cells.
    longest
        Seconds of the longest timed cell.
    each
        Seconds that the driver needs for one cell: to name, check and write it.
    start
        Seconds until the first worker has finished its first cell (imports, compilation), beyond the cell itself.
    worker_memory, result_memory, disk
        Bytes: the peak of a worker, the assembled result, the store.
    """

    cells: int
    done: int
    timed: int
    seconds: float
    uncertainty: float
    longest: float
    each: float
    start: float
    worker_memory: int
    result_memory: int
    disk: int

    @property
    def core_hours(self) -> float:
        """Hours of one core."""
        return self.seconds / 3600

    def wall(self, workers: int) -> float:
        """Seconds on so many workers: their share of the work and the last cell, or what the driver needs if that is more.

        >>> Estimate(100, 0, 3, 50.0, 1.0, 0.5, 0.01, 2.0, 0, 0, 0).wall(10)
        7.5
        """
        left = self.cells - self.done
        if not left:
            return self.cells * self.each
        share = self.seconds / workers + (self.longest if workers > 1 else 0.0)
        return self.start + max(share, left * self.each)


def estimate(
    law: Law,
    over: Mapping[str, Any],
    sizes: Sequence[int] | int | None = None,
    seeds: Sequence[int] | int | None = None,
    store: str | os.PathLike[str] | None = None,
    with_theory: bool = False,
) -> Estimate:
    """Time a few cells of a sweep and say what all of them will take; parameters are those of `limitlab.sweep`."""
    plan = plan_sweep(law, over, sizes, seeds, with_theory)
    left = [task for task in plan.tasks if not _is_stored(task, store)]
    kinds = defaultdict[int | None, list[LawTask]](list)
    for task in left or plan.tasks[:1]:
        kinds[task.size].append(task)
    chosen = [(size, task) for size, tasks in kinds.items() for task in _spread(tasks)]
    begun = time.perf_counter()
    tasks = [chosen[0][1], *(task for _, task in chosen)]  # the first twice: once to import and compile
    found = dict[int, tuple[float, int, Cell]]()
    for position, outcome in completed(_timed, tasks, 1):
        if isinstance(outcome, BaseException):
            raise outcome
        found[position] = outcome
    measured = [found[position] for position in range(len(tasks))]
    total = time.perf_counter() - begun
    times = defaultdict[int | None, list[float]](list)
    for (size, _), outcome in zip(chosen, measured[1:], strict=True):
        times[size].append(outcome[0])
    seconds = math.fsum(len(kinds[size]) * float(np.mean(run_times)) for size, run_times in times.items())
    variance = sum((len(kinds[s]) * np.std(t, ddof=1)) ** 2 / len(t) for s, t in times.items() if len(t) > 1)
    cells = {size: outcome[2] for (size, _), outcome in zip(chosen, measured[1:], strict=True)}
    each, kept = _driver_cost(chosen[0][1], next(iter(cells.values())))
    numbers = sum(len(kinds[size]) * sum(value.nbytes for value in cell.values.values()) for size, cell in cells.items())
    return Estimate(
        cells=len(plan.tasks),
        done=len(plan.tasks) - len(left),
        timed=len(chosen),
        seconds=seconds if left else 0.0,
        uncertainty=math.sqrt(variance) if left else 0.0,
        longest=max(max(run_times) for run_times in times.values()),
        each=each,
        start=max(0.0, total - math.fsum(outcome[0] for outcome in measured[1:])),
        worker_memory=max(outcome[1] for outcome in measured),
        result_memory=round(numbers * len(plan.tasks) / max(len(left), 1)),
        disk=len(plan.tasks) * kept,
    )


def _spread(tasks: Sequence[LawTask]) -> list[LawTask]:
    """A few tasks, evenly over their order: the first, the last and between."""
    places = sorted({round(place) for place in np.linspace(0, len(tasks) - 1, PER_KIND)})
    return [tasks[place] for place in places]


def _timed(task: LawTask) -> tuple[float, int, Cell]:
    """In a worker: seconds of a cell, the peak of memory so far in bytes, and the cell."""
    start = time.perf_counter()
    cell = run(task)
    return time.perf_counter() - start, _peak_memory(), cell


def _peak_memory() -> int:
    if sys.platform == "win32":
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _driver_cost(task: LawTask, cell: Cell) -> tuple[float, int]:
    """Seconds to name, write and read back a cell, and its bytes on disk."""
    with tempfile.TemporaryDirectory() as folder:
        cells, repeats = Cells(folder), 5
        start = time.perf_counter()
        for number in range(repeats):
            key = f"{number:02x}" + key_of(task)[2:]
            cells.write(key, cell, task.content)
            cells.read(f"{number:02x}" + key[2:])
        seconds = (time.perf_counter() - start) / repeats
        return seconds, sum(entry.stat().st_size for entry in cells.folder.rglob("*.npz")) // repeats


def _is_stored(task: LawTask, store: str | os.PathLike[str] | None) -> bool:
    if store is None or not Store(store).home.is_dir():
        return False
    key = key_of(task)
    return (Store(store).home / "cells" / key[:2] / f"{key}.npz").exists()
