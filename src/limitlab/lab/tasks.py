"""The unit of work of a sweep: one call of a law, and the cell of numbers that it gives.

A task says everything that its result depends on, so its content can be hashed: the hash names the cell in a store. The
seed of a draw is derived from what is drawn (law, parameters outside the path, size, index of the draw) and from the base
seed, hence the same in every engine, order and grid.
"""

from __future__ import annotations

import hashlib
import json
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from limitlab.lab.blas import single_threaded
from limitlab.lab.grid import Axis, Grid, own_coordinates
from limitlab.laws.base import Law
from limitlab.laws.results import ROUNDING, Values, shaped

FORMAT = 1
"""Version of what a cell means. Raising it makes every stored cell be computed anew."""

SEED_BITS = 53
"""Derived seeds are exact as doubles too, so no file format or language rounds them."""


@dataclass(frozen=True)
class Task:
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
    size, index, seed
        Size of the draw, its number, and the seed derived for it.
    """

    law: Law
    lanes: tuple[tuple[str, tuple[float, ...]], ...]
    swept: tuple[str, ...]
    place: tuple[int, ...]
    size: int | None = None
    index: int | None = None
    seed: int | None = None

    @property
    def content(self) -> dict[str, Any]:
        """Everything that the result depends on, as plain data."""
        parameters = {**plain_parameters(self.law), **{name: plain_numbers(values) for name, values in self.lanes}}
        content = {
            "format": FORMAT,
            "law": identity(self.law),
            "parameters": parameters,
            "lanes": [n for n, _ in self.lanes],
        }
        return content if self.size is None else {**content, "size": self.size, "seed": self.seed}

    @property
    def key(self) -> str:
        """SHA-256 of the content: the name of the cell."""
        return digest(self.content)

    @property
    def where(self) -> str:
        """The task in words, for messages."""
        lanes = {name for name, _ in self.lanes}
        point = [f"{name} = {getattr(self.law, name)}" for name in self.swept if name not in lanes]
        draw = [] if self.size is None else [f"size = {self.size}", f"seed = {self.index} (task_seed {self.seed})"]
        return ", ".join(point + draw) or "the whole grid"


@dataclass(frozen=True)
class Cell:
    """The numbers of one task: arrays by name, their dimensions, the coordinates of these, and the theory's accuracy."""

    values: dict[str, NDArray[Any]]
    dims: dict[str, tuple[str, ...]]
    coords: dict[str, NDArray[Any]]
    accuracy: float = ROUNDING


@dataclass(frozen=True)
class Trouble:
    """A task that failed: what it was and why. (Plain text: not every exception survives the way back from a worker.)"""

    error: str
    traceback: str = ""
    where: str = ""


# -- planning -----------------------------------------------------------------------------------------------------------


def theory_tasks(grid: Grid) -> list[Task]:
    """One task per point of the loops; all lanes are served by one call."""
    return [Task(law, _lanes(grid.lanes), grid.names, place) for place, _, law in _checked_points(grid)]


def simulation_tasks(grid: Grid, sizes: Sequence[int], indices: Sequence[int], base_seed: int) -> list[Task]:
    """One task per point of the loops, size and draw; one draw serves all lanes."""
    lanes = _lanes(grid.lanes)
    tasks = []
    for place, _, law in _checked_points(grid):
        drawn = what_is_drawn(law)
        for i, size in enumerate(sizes):
            for j, index in enumerate(indices):
                seed = derived_seed(base_seed, drawn, size, index)
                tasks.append(Task(law, lanes, grid.names, (*place, i, j), size, index, seed))
    return tasks


def what_is_drawn(law: Law) -> str:
    """Hash of a law without its path parameters: laws that differ only in these share their draws."""
    parameters = {name: value for name, value in plain_parameters(law).items() if name not in law.path_parameters}
    return digest({"law": type(law).__qualname__, "parameters": parameters})


def derived_seed(base_seed: int, drawn: str, size: int, index: int) -> int:
    """The seed of one draw.

    >>> derived_seed(0, "ab" * 32, size=100, index=3)
    6280286291997494
    """
    words = [int(drawn[i : i + 8], 16) for i in range(0, len(drawn), 8)]
    sequence = np.random.SeedSequence([base_seed, size, index, *words])
    return int(sequence.generate_state(1, np.uint64)[0]) >> (64 - SEED_BITS)


def plain_parameters(law: Law) -> dict[str, Any]:
    """The parameters of a law as JSON gives them back: numbers, texts, lists."""
    return dict(json.loads(law.model_dump_json()))


def plain_numbers(values: Sequence[Any]) -> list[Any]:
    """Numbers as JSON holds them: infinity is a text there, as it is in a law's own JSON."""
    return [("Infinity" if value > 0 else "-Infinity") if np.isinf(value) else value for value in values]


def identity(law: Law) -> str:
    """The name of a law's class; with its module unless it is one of limitlab's own, which may move between files."""
    kind = type(law)
    return kind.__qualname__ if kind.__module__.startswith("limitlab.") else f"{kind.__module__}:{kind.__qualname__}"


def digest(content: Any) -> str:
    """SHA-256 of plain data, written in one canonical way."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _lanes(axes: Sequence[Axis]) -> tuple[tuple[str, tuple[float, ...]], ...]:
    return tuple((axis.name, axis.values) for axis in axes)


def _checked_points(grid: Grid) -> Iterator[tuple[tuple[int, ...], dict[str, Any], Law]]:
    """The points of the grid, whose coordinates (such as `time`) must all be the same: they label one dimension."""
    common: dict[str, NDArray[Any]] | None = None
    for place, point, law in grid.points():
        own = own_coordinates(law, grid.names)
        common = own if common is None else common
        for name in own.keys() | common.keys():
            if name not in own or name not in common or not np.array_equal(own[name], common[name]):
                raise ValueError(
                    f"cannot sweep over {', '.join(point)}: the coordinate {name!r} of {type(law).__name__} changes from "
                    f"point to point; give the law one list of values for all points, which becomes the dimension {name!r}"
                )
        yield place, point, law


# -- running ------------------------------------------------------------------------------------------------------------


def attempt(task: Task) -> Cell | Trouble:
    """Run a task; an error is reported, not raised, so that one bad point does not end a sweep."""
    try:
        return run(task)
    except Exception as error:
        return Trouble(f"{type(error).__name__}: {error}", traceback.format_exc(), task.where)


def run(task: Task) -> Cell:
    """Run a task in this process."""
    law, lanes = task.law, _as_arrays(task.lanes)
    with single_threaded():
        if task.size is None:
            return _cell(task, law.evaluate(**lanes)) if lanes else _from_dataset(law.theory())
        assert task.seed is not None
        if lanes or type(law).experiment is not Law.experiment:
            return _cell(task, law.experiment(task.size, task.seed, **lanes))
        return _from_dataset(law.simulate(task.size, task.seed))


def _as_arrays(lanes: tuple[tuple[str, tuple[float, ...]], ...]) -> dict[str, NDArray[Any]]:
    """Lanes as arrays that broadcast to the outer product, one axis each."""
    after = len(lanes) - 1
    return {name: np.reshape(values, (-1,) + (1,) * (after - i)) for i, (name, values) in enumerate(lanes)}


def _cell(task: Task, values: Values) -> Cell:
    """Arrays of shape (*lanes, *coordinates), as `evaluate` and `experiment` give them."""
    given = {name: np.asarray(value) for name, value in values.items()}
    accuracy = float(np.max(given.pop("accuracy", np.asarray(ROUNDING))))
    coords = {name: axis for name, axis in own_coordinates(task.law).items() if axis.ndim}
    shape = (*(len(line) for _, line in task.lanes), *(axis.size for axis in coords.values()))
    dims = (*(name for name, _ in task.lanes), *coords)
    full = {
        name: np.array(shaped(task.law, name, value, shape, len(task.lanes)), order="C") for name, value in given.items()
    }
    return Cell(full, {name: dims[: value.ndim] for name, value in full.items()}, coords, accuracy)


def _from_dataset(result: xr.Dataset) -> Cell:
    """A result that the law itself packaged, whose variables may have dimensions of their own."""
    return Cell(
        {str(name): np.asarray(array.values) for name, array in result.data_vars.items()},
        {str(name): tuple(str(dim) for dim in array.dims) for name, array in result.data_vars.items()},
        {str(name): np.asarray(axis.values) for name, axis in result.coords.items() if axis.dims == (name,)},
        float(result.attrs.get("accuracy", ROUNDING)),
    )
