"""Tasks and the function that runs them. Sweeps, comparisons, claims and the report are lists of tasks.

A task gives one cell. It contains everything on which its result depends, so the hash of its content is the key of its cell. A task
of a law contains the law's `revision`, so that a corrected law never uses the cells of an earlier revision. `run_tasks` reads the
cells that a store or a cache contains, runs the other tasks on any engine, shows a progress bar, and stops cleanly when it is
interrupted.
"""

from __future__ import annotations

import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from limitlab._core.cost import check_draw, single_threaded
from limitlab._core.draws import digest, identity, key_parameters
from limitlab._core.law import Law
from limitlab._core.results import absolute_errors, own_dimensions
from limitlab.errors import Refused
from limitlab.lab.engines import Engine, check_engine, completed
from limitlab.lab.progress import Progress, ProgressOption
from limitlab.lab.store import FORMAT, Cell, Cells, current_cache

__all__ = ["TasksFailed"]


class Task(Protocol):
    """A unit of work that gives a cell."""

    @property
    def content(self) -> dict[str, Any]:
        """Return everything on which the result depends, as plain data."""

    @property
    def where(self) -> str:
        """The description of the task for messages."""

    def run(self) -> Cell:
        """Do the work in this process."""


@dataclass(frozen=True, slots=True)
class LawTask:
    """One call of a law, which gives its limit (`size` is None) or one draw.

    Attributes
    ----------
    law
        The law at this point of the loops.
    arrays
        Names and values of the parameters that the call takes as arrays.
    swept
        Names of all swept parameters.
    place
        Index of the result in the loops, then (for a draw) in sizes and seeds.
    size, seed
        Size and seed of a draw, as `Law.simulate` takes them.
    cost_checked
        Whether the cost of the draw was checked before, together with all draws of its size.
    """

    law: Law
    arrays: tuple[tuple[str, tuple[float, ...]], ...] = ()
    swept: tuple[str, ...] = ()
    place: tuple[int, ...] = ()
    size: int | None = None
    seed: int | None = None
    cost_checked: bool = False

    @property
    def content(self) -> dict[str, Any]:
        """Return everything on which the result depends, as plain data."""
        arrays = {name: plain_numbers(values) for name, values in self.arrays}
        content = {
            "format": FORMAT,
            "law": identity(type(self.law)),
            "revision": self.law.revision,
            "parameters": {**_parameters_of(self.law), **arrays},
            "lanes": list(arrays),
        }
        return content if self.size is None else {**content, "size": self.size, "seed": self.seed}

    @property
    def where(self) -> str:
        """The description of the task for messages."""
        arrays = {name for name, _ in self.arrays}
        point = [f"{name} = {getattr(self.law, name)}" for name in self.swept if name not in arrays]
        draw = [] if self.size is None else [f"size = {self.size}", f"seed = {self.seed}"]
        return ", ".join(point + draw) or "the whole grid"

    def run(self) -> Cell:
        """Call the law once."""
        arrays = _as_arrays(self.arrays)
        if self.size is None:
            values = self.law.evaluate(**arrays)
            if not arrays:  # for arrays the sweep names the point
                _refuse_nan(self.law, values)
        else:
            assert self.seed is not None
            if not self.cost_checked:  # a swept parameter may decide the cost
                check_draw(self.law, self.size)
            values = self.law.experiment(self.size, self.seed, **arrays)
        return self._cell(values)

    def _cell(self, values: dict[str, Any]) -> Cell:
        """Return arrays of shape (*swept arrays, *coordinates) with their dimensions.

        Raw samples have dimensions of their own.
        """
        observables = {name: np.array(value, order="C") for name, value in values.items() if name != "accuracy"}
        coords = {name: axis for name, axis in coordinates_of(self.law).items() if axis.ndim}
        axes = (*(name for name, _ in self.arrays), *coords)
        metas = type(self.law).all_outputs()
        lines = self.law.coordinates()
        dims = {
            name: axes[: value.ndim] if (own := metas[name].dims) is None else own_dimensions(own, lines)
            for name, value in observables.items()
        }
        errors = absolute_errors(observables, values.get("accuracy"), self.law.natural_scale) if self.size is None else {}
        return Cell(observables, dims, coords, errors)


_latest: list[tuple[Law, dict[str, Any]]] = []


def _parameters_of(law: Law) -> dict[str, Any]:
    """Return `key_parameters` of a law.

    The value of the latest law is cached, because the tasks of the draws of a law follow one another.
    """
    if not _latest or _latest[0][0] is not law:
        _latest[:] = [(law, key_parameters(law))]
    return _latest[0][1]


def _refuse_nan(law: Law, values: dict[str, Any]) -> None:
    bad = [name for name, value in values.items() if name != "accuracy" and np.isnan(np.asarray(value, dtype=float)).any()]
    if bad:
        raise FloatingPointError(f"the prediction of {type(law).__name__} is NaN for {', '.join(bad)}; please report this")


def coordinates_of(law: Law) -> dict[str, NDArray[Any]]:
    """Return the coordinates of a law as arrays."""
    return {name: np.asarray(axis) for name, axis in law.coordinates().items()}


def plain_numbers(values: Sequence[Any]) -> list[Any]:
    """Return numbers in their form in JSON, in which infinity is a text."""
    return [("Infinity" if value > 0 else "-Infinity") if np.isinf(value) else value for value in values]


def _as_arrays(arrays: tuple[tuple[str, tuple[float, ...]], ...]) -> dict[str, NDArray[Any]]:
    """Return the arrays by name, with shapes that broadcast to the grid of all combinations of their values."""
    after = len(arrays) - 1
    return {name: np.reshape(values, (-1,) + (1,) * (after - i)) for i, (name, values) in enumerate(arrays)}


@dataclass(frozen=True)
class TaskFailure:
    """The error of a failed task as plain text, because a worker process cannot send every exception."""

    error: str
    traceback: str = ""
    where: str = ""


def key_of(task: Task) -> str:
    """Return the SHA-256 of a task's content, which is the key of its cell."""
    return digest(task.content)


def attempt(task: Task) -> Cell | TaskFailure:
    """Return the cell of a task, or its error, so that one bad point does not end a sweep."""
    try:
        return run(task)
    except Exception as error:
        return TaskFailure(f"{type(error).__name__}: {error}", traceback.format_exc(), task.where)


def run(task: Task) -> Cell:
    """Run a task in this process, with one BLAS thread."""
    with single_threaded():
        return task.run()


# -- running ------------------------------------------------------------------------------------------------------------


class TasksFailed(RuntimeError):
    """The error for a run in which tasks failed. The finished cells are in the store, if there is one.

    Attributes
    ----------
    failures
        One entry per failed task: `where` (its parameters), `error`, `traceback`.
    """

    def __init__(self, message: str, failures: Sequence[TaskFailure] = ()):
        super().__init__(message)
        self.failures = tuple(failures)


@dataclass(frozen=True)
class RunResult:
    """The result of a run of tasks.

    Attributes
    ----------
    store
        The finished cells.
    keys
        The key of every task's cell.
    present
        For every task 1 if its cell is finished, else 0.
    failures
        The failed tasks by position.
    interrupted
        Whether the user stopped the run.
    """

    store: Cells
    keys: Sequence[str]
    present: bytearray
    failures: Mapping[int, TaskFailure] = field(default_factory=dict)
    interrupted: bool = False

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def done(self) -> int:
        """Number of tasks whose cell is finished."""
        return self.present.count(1)

    @property
    def cells(self) -> Iterator[Cell | None]:
        """Yield the cells in the order of the tasks, and None for a task without a cell.

        The cells are read one after the other.
        """
        return (self.store.read(key) if there else None for key, there in zip(self.keys, self.present, strict=True))

    def part(self, start: int, end: int) -> RunResult:
        """Return the result of the tasks from `start` to `end`."""
        failures = {position - start: failure for position, failure in self.failures.items() if start <= position < end}
        return RunResult(self.store, self.keys[start:end], self.present[start:end], failures, self.interrupted)

    def complete(self, what: str, store: str = "") -> list[Cell]:
        """Return all cells.

        `TasksFailed` or KeyboardInterrupt is raised if the run did not finish.
        """
        remainder = (
            f"the finished tasks are stored in {store!r}; the same call runs only the rest" if store else "nothing is stored"
        )
        if self.interrupted:
            raise KeyboardInterrupt(f"{what}: stopped after {self.done} of {len(self)} tasks; {remainder}")
        if self.failures:
            raise TasksFailed(self.summary(remainder), self.listed_failures())
        return [cell for cell in self.cells if cell is not None]

    def listed_failures(self) -> list[TaskFailure]:
        """Return the failed tasks in their order."""
        return [self.failures[position] for position in sorted(self.failures)]

    def summary(self, remainder: str) -> str:
        """Return the failures in a few lines."""
        failures = self.listed_failures()
        shown = [f"  {failure.where}: {failure.error}" for failure in failures[:5]]
        more = [f"  ... and {len(failures) - 5} more"] if len(failures) > 5 else []
        return "\n".join([f"{len(failures)} of {len(self)} tasks failed; {remainder}", *shown, *more])


def run_tasks(
    tasks: Sequence[Task],
    engine: Engine = None,
    cells: Cells | None = None,
    progress: ProgressOption = None,
    label: str = "working",
    on_cell: Callable[[RunResult, int], None] | None = None,
) -> RunResult:
    """Run the tasks whose cells are not in a store or a cache yet, and return all cells.

    Parameters
    ----------
    tasks
        The tasks.
    engine
        As in `limitlab.sweep`.
    cells
        The place where finished cells are read and written (default: the folder of a surrounding `caching` block, otherwise the
        memory).
    progress, label
        As in `limitlab.sweep`, and the text beside the bar.
    on_cell
        Called as `on_cell(result, finished)` after every task, with the result so far and the number of tasks that succeeded or
        failed.

    Examples
    --------
    >>> from limitlab.laws import Ridge
    >>> finished = run_tasks([LawTask(Ridge(ratio=2.0)), LawTask(Ridge(ratio=0.5), size=20, seed=1)])
    >>> finished.done
    2
    """
    check_engine(engine)
    cells = cells if cells is not None else current_cache()
    if cells is None:  # no other run reads these cells, so their keys need not be hashes
        store, keys = Cells(), [str(position) for position in range(len(tasks))]
        first_of: dict[int, int] = {}
    else:
        store, keys = cells, [key_of(task) for task in tasks]
        first_of = _same_tasks(tasks, keys)
    later = defaultdict[int, list[int]](list)
    for position, first in first_of.items():
        later[first].append(position)
    present = bytearray(
        len(tasks) if cells is None else (store.read(key) is not None for key in keys)
    )  # every file is checked
    todo = [position for position, there in enumerate(present) if not there and position not in first_of]
    failures: dict[int, TaskFailure] = {}
    result = RunResult(store, keys, present, failures)

    def finish(position: int, cell: Cell) -> None:
        store.write(keys[position], cell, tasks[position].content if store.folder is not None else {})
        for same in (position, *later.get(position, ())):
            present[same] = 1

    try:
        with Progress(len(tasks), label, progress) as bar, single_threaded():
            bar.advance(len(tasks) - len(todo))
            if len(tasks) == len(todo) == 1:
                finish(0, run(tasks[0]))  # with a single task, raise its error directly
                bar.advance()
                return result
            remaining = [tasks[position] for position in todo]
            with closing(completed(attempt, remaining, engine if len(todo) > 1 else None)) as outcomes:
                for number, outcome in outcomes:
                    position = todo[number]
                    if isinstance(outcome, Cell):
                        finish(position, outcome)
                    elif isinstance(outcome, TaskFailure):
                        failures[position] = outcome
                    else:
                        failures[position] = TaskFailure(f"{type(outcome).__name__}: {outcome}", where=tasks[position].where)
                    bar.advance()
                    if on_cell is not None:
                        on_cell(result, bar.finished)
    except KeyboardInterrupt:
        return replace(result, interrupted=True)
    return result


def _same_tasks(tasks: Sequence[Task], keys: Sequence[str]) -> dict[int, int]:
    """Return the position of the first task with the same content, for every later task.

    Both tasks share one cell.
    """
    first: dict[str, int] = {}
    first_of: dict[int, int] = {}
    for position, key in enumerate(keys):
        if first.setdefault(key, position) == position:
            continue
        first_of[position] = first[key]
        if getattr(tasks[position], "law", None) != getattr(tasks[first[key]], "law", None):
            # two values with the same text (such as two lambdas) would share a cell
            raise Refused(
                f"the tasks cannot be stored: two of them have the same text ({tasks[position].where}); "
                "give the values different names, or omit the store"
            )
    return first_of
