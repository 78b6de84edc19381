"""The unit of work: a task that gives one cell. Sweeps, comparisons, the ledger and the report are lists of tasks.

A task says everything that its result depends on, so its content can be hashed: the hash names the cell. A task of a law carries
the law's `revision`, so that a corrected law never meets the cells of an earlier one.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from limitlab._core.blas import single_threaded
from limitlab._core.cost import check_draw
from limitlab._core.draws import digest, identity, plain_parameters
from limitlab._core.law import Law
from limitlab._core.results import absolute_errors
from limitlab.lab.cells import Cell
from limitlab.lab.grid import Axis, Grid, own_coordinates

FORMAT = 2
"""Version of what a cell means. Raising it makes every stored cell be computed anew."""


class Task(Protocol):
    """Work that gives a cell."""

    @property
    def content(self) -> dict[str, Any]:
        """Everything that the result depends on, as plain data."""

    @property
    def where(self) -> str:
        """The task in words, for messages."""

    def run(self) -> Cell:
        """Do the work in this process."""


@dataclass(frozen=True, slots=True)
class LawTask:
    """One call of a law: its limit (`size` is None) or one draw.

    Attributes
    ----------
    law
        The law at this point of the loops.
    lanes
        Names and values of the parameters that the call takes as arrays.
    swept
        Names of all swept parameters.
    place
        Index of the result in the loops, then (for a draw) in sizes and seeds.
    size, seed
        Size and seed of a draw, as `Law.simulate` takes them.
    """

    law: Law
    lanes: tuple[tuple[str, tuple[float, ...]], ...] = ()
    swept: tuple[str, ...] = ()
    place: tuple[int, ...] = ()
    size: int | None = None
    seed: int | None = None

    @property
    def content(self) -> dict[str, Any]:
        """Everything that the result depends on, as plain data."""
        lanes = {name: plain_numbers(values) for name, values in self.lanes}
        content = {
            "format": FORMAT,
            "law": identity(type(self.law)),
            "revision": self.law.revision,
            "parameters": {**_parameters_of(self.law), **lanes},
            "lanes": list(lanes),
        }
        return content if self.size is None else {**content, "size": self.size, "seed": self.seed}

    @property
    def where(self) -> str:
        """The task in words, for messages."""
        lanes = {name for name, _ in self.lanes}
        point = [f"{name} = {getattr(self.law, name)}" for name in self.swept if name not in lanes]
        draw = [] if self.size is None else [f"size = {self.size}", f"seed = {self.seed}"]
        return ", ".join(point + draw) or "the whole grid"

    def run(self) -> Cell:
        """One call of the law."""
        lanes = _as_arrays(self.lanes)
        if self.size is None:
            values = self.law.evaluate(**lanes)
            if not lanes:  # with lanes the sweep names the point
                _refuse_nan(self.law, values)
        else:
            assert self.seed is not None
            check_draw(self.law, self.size)  # a swept parameter may be the one that costs
            values = self.law.experiment(self.size, self.seed, **lanes)
        return self._cell(values)

    def _cell(self, values: dict[str, Any]) -> Cell:
        """Arrays of shape (*lanes, *coordinates) with their dimensions; raw samples have their own."""
        given = {name: np.array(value, order="C") for name, value in values.items() if name != "accuracy"}
        coords = {name: axis for name, axis in own_coordinates(self.law).items() if axis.ndim}
        axes = (*(name for name, _ in self.lanes), *coords)
        metas = type(self.law).all_outputs()
        dims = {name: metas[name].dims or axes[: value.ndim] for name, value in given.items()}
        errors = absolute_errors(given, values.get("accuracy")) if self.size is None else {}
        return Cell(given, dims, coords, errors)


_latest: list[tuple[Law, dict[str, Any]]] = []


def _parameters_of(law: Law) -> dict[str, Any]:
    """`plain_parameters`, remembered for the latest law: the tasks of a law's draws come one after the other."""
    if not _latest or _latest[0][0] is not law:
        _latest[:] = [(law, plain_parameters(law))]
    return _latest[0][1]


def _refuse_nan(law: Law, values: dict[str, Any]) -> None:
    bad = [name for name, value in values.items() if name != "accuracy" and np.isnan(np.asarray(value, dtype=float)).any()]
    if bad:
        raise FloatingPointError(f"{type(law).__name__} gave NaN for {', '.join(bad)}; please report this")


@dataclass(frozen=True)
class Trouble:
    """A task that failed: what it was and why. (Plain text: not every exception survives the way back from a worker.)"""

    error: str
    traceback: str = ""
    where: str = ""


def key_of(task: Task) -> str:
    """SHA-256 of a task's content: the name of its cell."""
    return digest(task.content)


def attempt(task: Task) -> Cell | Trouble:
    """Run a task; an error is reported, not raised, so that one bad point does not end a sweep."""
    try:
        return run(task)
    except Exception as error:
        return Trouble(f"{type(error).__name__}: {error}", traceback.format_exc(), task.where)


def run(task: Task) -> Cell:
    """Run a task in this process, with one BLAS thread."""
    with single_threaded():
        return task.run()


# -- the tasks of a grid ------------------------------------------------------------------------------------------------


def theory_tasks(grid: Grid) -> list[LawTask]:
    """One task per point of the loops; all lanes are served by one call."""
    return [LawTask(law, _lanes(grid.lanes), grid.names, place) for place, _, law in _checked_points(grid)]


def simulation_tasks(grid: Grid, sizes: Sequence[int], seeds: Sequence[int]) -> list[LawTask]:
    """One task per point of the loops, size and seed; one draw serves all lanes."""
    lanes = _lanes(grid.lanes)
    return [
        LawTask(law, lanes, grid.names, (*place, i, j), size, seed)
        for place, _, law in _checked_points(grid)
        for i, size in enumerate(sizes)
        for j, seed in enumerate(seeds)
    ]


def plain_numbers(values: Sequence[Any]) -> list[Any]:
    """Numbers as JSON holds them: infinity is a text there, as it is in a law's own JSON."""
    return [("Infinity" if value > 0 else "-Infinity") if np.isinf(value) else value for value in values]


def _lanes(axes: Sequence[Axis]) -> tuple[tuple[str, tuple[float, ...]], ...]:
    return tuple((axis.name, axis.values) for axis in axes)


def _checked_points(grid: Grid) -> Iterator[tuple[tuple[int, ...], dict[str, Any], Law]]:
    """The points of the grid, whose coordinates (such as `time`) must all be the same: they label one dimension."""
    common: dict[str, NDArray[Any]] | None = None
    for place, point, law in grid.points():
        own = own_coordinates(law)
        common = own if common is None else common
        for name in own.keys() | common.keys():
            if name not in own or name not in common or not np.array_equal(own[name], common[name]):
                raise ValueError(
                    f"cannot sweep over {', '.join(point)}: the coordinate {name!r} of {type(law).__name__} changes from "
                    f"point to point; give the law one list of values for all points, which becomes the dimension {name!r}"
                )
        yield place, point, law


def _as_arrays(lanes: tuple[tuple[str, tuple[float, ...]], ...]) -> dict[str, NDArray[Any]]:
    """Lanes as arrays that broadcast to the outer product, one axis each."""
    after = len(lanes) - 1
    return {name: np.reshape(values, (-1,) + (1,) * (after - i)) for i, (name, values) in enumerate(lanes)}
