"""The one runner: tasks in, cells out, on any engine, with a store or a cache, progress and a clean stop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

from limitlab._core.blas import single_threaded
from limitlab.lab._slots import OnDisk, Slots, missing_in
from limitlab.lab.cells import Cell, Cells, current_cache
from limitlab.lab.engines import Engine, check_engine, completed
from limitlab.lab.progress import Progress, ProgressOption
from limitlab.lab.tasks import Task, Trouble, attempt, key_of, run

__all__ = ["TasksFailed"]


class TasksFailed(RuntimeError):
    """Some tasks failed; `failures` says which and why. The finished ones are in the store, where there is one."""

    def __init__(self, message: str, failures: Sequence[Trouble] = ()):
        super().__init__(message)
        self.failures = tuple(failures)


@dataclass(frozen=True)
class Finished:
    """What a run of tasks gave.

    Attributes
    ----------
    cells
        One per task, in their order; None where a task failed or was not reached.
    failures
        What went wrong, by position.
    interrupted
        Whether the run was stopped by hand.
    """

    cells: Slots
    failures: dict[int, Trouble]
    interrupted: bool = False

    @property
    def done(self) -> int:
        """Number of finished tasks."""
        return len(self.cells) - missing_in(self.cells)

    def complete(self, what: str, store: str = "") -> list[Cell]:
        """All cells; raises where the run did not finish."""
        kept = f"the finished ones are kept in {store!r}: the same call runs only the rest" if store else "nothing is kept"
        if self.interrupted:
            raise KeyboardInterrupt(f"{what}: stopped after {self.done} of {len(self.cells)} tasks; {kept}")
        if self.failures:
            listed = [self.failures[position] for position in sorted(self.failures)]
            raise TasksFailed(summary(listed, len(self.cells), kept), listed)
        return [cell for cell in self.cells if cell is not None]


def run_tasks(
    tasks: Sequence[Task],
    engine: Engine = None,
    cells: Cells | None = None,
    progress: ProgressOption = None,
    label: str = "working",
    on_cells: Callable[[Slots, int], None] | None = None,
) -> Finished:
    """Fill in the cells of tasks: from the folder of cells where it has them, else by running them.

    Parameters
    ----------
    tasks
        The tasks.
    engine
        As in `limitlab.sweep`.
    cells
        Folder of cells (default: that of a surrounding `caching` block, if there is one).
    progress, label
        As in `limitlab.sweep`, and what is said beside the bar.
    on_cells
        Called as `on_cells(cells, finished)` after every task, with the cells so far.

    Examples
    --------
    >>> from limitlab.lab.tasks import LawTask
    >>> from limitlab.laws import Ridge
    >>> finished = run_tasks([LawTask(Ridge(ratio=2.0)), LawTask(Ridge(ratio=0.5), size=20, seed=1)])
    >>> finished.done
    2
    """
    check_engine(engine)
    shelf = cells if cells is not None else current_cache()
    keys = [key_of(task) for task in tasks] if shelf is not None else []
    twins = _twins(tasks, keys)
    found: list[Cell | None] | OnDisk = [None] * len(tasks) if shelf is None else OnDisk(shelf, keys)
    failures: dict[int, Trouble] = {}
    absent = found.absent() if isinstance(found, OnDisk) else [i for i, cell in enumerate(found) if cell is None]
    todo = [position for position in absent if position not in twins]
    served = defaultdict[int, list[int]](list)
    for twin, first in twins.items():
        served[first].append(twin)

    def keep(position: int, cell: Cell) -> None:
        if shelf is not None:
            shelf.write(keys[position], cell, tasks[position].content)
        for same in (position, *served.get(position, ())):
            found[same] = cell

    try:
        with Progress(len(tasks), label, progress) as bar, single_threaded():
            bar.advance(len(tasks) - len(todo))
            if len(tasks) == len(todo) == 1:
                keep(0, run(tasks[0]))  # an error of the only task speaks for itself
                bar.advance()
                return Finished(found, failures)
            waiting = [tasks[position] for position in todo]
            with closing(completed(attempt, waiting, engine if len(todo) > 1 else None)) as results:
                for number, outcome in results:
                    position = todo[number]
                    if isinstance(outcome, Cell):
                        keep(position, outcome)
                    elif isinstance(outcome, Trouble):
                        failures[position] = outcome
                    else:
                        failures[position] = Trouble(f"{type(outcome).__name__}: {outcome}", where=tasks[position].where)
                    bar.advance()
                    if on_cells is not None:
                        on_cells(found, bar.finished)
    except KeyboardInterrupt:
        return Finished(found, failures, interrupted=True)
    return Finished(found, failures)


def summary(failures: Sequence[Trouble], total: int, kept: str) -> str:
    """The failures of a run in a few lines."""
    shown = [f"  {failure.where}: {failure.error}" for failure in failures[:5]]
    more = [f"  ... and {len(failures) - 5} more"] if len(failures) > 5 else []
    return "\n".join([f"{len(failures)} of {total} tasks failed; {kept}", *shown, *more])


def _twins(tasks: Sequence[Task], keys: Sequence[str]) -> dict[int, int]:
    """Positions of tasks that are the same as an earlier one, which serves them too."""
    first: dict[str, int] = {}
    twins: dict[int, int] = {}
    for position, key in enumerate(keys):
        if key in first:
            if getattr(tasks[position], "law", None) != getattr(tasks[first[key]], "law", None):
                # two values that are written alike (two lambdas, say) would share a cell
                raise ValueError(
                    f"cannot store this: two of its tasks are written alike ({tasks[position].where}); give the values names "
                    "of their own, or do without a store"
                )
            twins[position] = first[key]
        first.setdefault(key, position)
    return twins
