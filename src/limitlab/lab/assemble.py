"""From cells to one Dataset: every number at its place, every dimension labelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from limitlab.lab.cells import Cell
from limitlab.lab.grid import Grid
from limitlab.lab.slots import Slots, missing_in
from limitlab.lab.tasks import LawTask
from limitlab.laws.results import package, relative_error


def assemble_theory(grid: Grid, tasks: Sequence[LawTask], cells: Slots) -> xr.Dataset:
    """The limit over the grid: swept parameters first, then the law's own coordinates."""
    filled = _filled(tuple(axis.labels.size for axis in grid.loops), tasks, cells)
    result = _labelled(grid, {axis.name: axis.labels for axis in grid.loops}, filled, "theory")
    result.attrs["accuracy"] = filled.accuracy
    for name in map(str, result.data_vars):
        result[name].attrs.update({"numerical_error": filled.errors[name]} if name in filled.errors else {})
    _refuse_nan(result, grid, complete=not filled.missing)
    return result


def assemble_simulation(
    grid: Grid, tasks: Sequence[LawTask], cells: Slots, sizes: Sequence[int], seeds: Sequence[int]
) -> xr.Dataset:
    """The draws over the grid: swept parameters, size, seed, then the law's own coordinates."""
    draws = {"size": np.asarray(sizes, dtype=np.int64), "seed": np.asarray(seeds, dtype=np.int64)}
    loops = {**{axis.name: axis.labels for axis in grid.loops}, **draws}
    filled = _filled(tuple(labels.size for labels in loops.values()), tasks, cells)
    result = _labelled(grid, loops, filled, "simulation")
    result["size"].attrs["long_name"] = grid.law.size_meaning
    result["seed"].attrs["long_name"] = "seed of the draw"
    return result


def beside_theory(simulated: xr.Dataset, theory: xr.Dataset) -> xr.Dataset:
    """Draws with the limit beside them, as `theory_<observable>`."""
    beside = theory.rename({name: f"theory_{name}" for name in theory.data_vars})
    return simulated.assign({name: beside[name] for name in beside.data_vars}).assign_attrs(
        accuracy=theory.attrs["accuracy"]
    )


class _Filling:
    """Arrays for all cells, into which one cell after the other is put: nothing but the result is held in memory."""

    def __init__(self, outer: tuple[int, ...], missing: int):
        self.outer, self.missing = outer, missing
        self.arrays: dict[str, NDArray[Any]] = {}
        self.dims: dict[str, tuple[str, ...]] = {}
        self.coords: dict[str, NDArray[Any]] = {}
        self.errors: dict[str, float] = {}
        self.accuracy = float("nan")
        self.names: list[str] | None = None
        self.versions: set[str] = set()

    def put(self, place: tuple[int, ...], cell: Cell) -> None:
        """One cell at its place. A variable whose shape differs from that of the first cell is left out."""
        if self.names is None:
            self.names, self.dims, self.coords = list(cell.values), dict(cell.dims), dict(cell.coords)
            self.arrays = {name: self._empty(value) for name, value in cell.values.items()}
            self.accuracy = -np.inf
        for name in list(self.arrays):
            value, array = cell.values.get(name), self.arrays[name]
            inner = array.shape[len(self.outer) :]
            if value is None or cell.dims[name] != self.dims[name] or value.shape != inner:
                del self.arrays[name]
                continue
            if value.dtype != array.dtype and (wider := np.result_type(array.dtype, value.dtype)) != array.dtype:
                array = self.arrays[name] = array.astype(wider)
            array[place] = value
        self.coords = {
            name: line
            for name, line in self.coords.items()
            if name in cell.coords and np.array_equal(line, cell.coords[name])
        }
        self.versions.add(cell.version)
        for name, error in cell.errors.items():
            self.errors[name] = max(error, self.errors.get(name, error))
        if cell.errors:
            self.accuracy = max(self.accuracy, relative_error(cell.values, cell.errors))

    def _empty(self, value: NDArray[Any]) -> NDArray[Any]:
        """An array of the cell's own type, or (where some cells are missing) of a type that has NaN."""
        shape = (*self.outer, *value.shape)
        if not self.missing or value.dtype.kind == "U":
            return np.zeros(shape, value.dtype)
        return np.full(shape, np.nan, np.result_type(value.dtype, np.float64))


def _filled(outer: tuple[int, ...], tasks: Sequence[LawTask], cells: Slots) -> _Filling:
    """Cells at their places in arrays of shape (*outer, *cell), NaN where a task has no cell."""
    filling = _Filling(outer, missing_in(cells))
    for task, cell in zip(tasks, cells, strict=True):
        if cell is not None:
            filling.put(task.place, cell)
    return filling


def _labelled(grid: Grid, loops: Mapping[str, NDArray[Any]], filled: _Filling, kind: str) -> xr.Dataset:
    """The arrays with their dimensions in the user's order, coordinates and provenance."""
    arrays, dims = {}, {}
    for name, array in filled.arrays.items():
        found = (*loops, *filled.dims[name])
        dims[name] = tuple(sorted(found, key=[*grid.names, "size", "seed", *found].index))
        arrays[name] = array.transpose([found.index(dim) for dim in dims[name]])
    inner = {name: line for name, line in filled.coords.items() if any(name in own for own in dims.values())}
    labels = {**{axis.name: axis.labels for axis in grid.axes}, **loops, **inner}
    # Packaged under a neutral kind: a partial result has NaN where tasks are missing, which a prediction may not have.
    result = package(grid.law, arrays, kind="sweep", dims=dims, coords=labels).assign_attrs(kind=kind)
    if filled.versions:
        result.attrs["version"] = ", ".join(sorted(filled.versions))  # a result of old cells does not pass for a new one
    if left := [name for name in filled.names or () if name not in filled.arrays]:
        result.attrs["left_out"] = ", ".join(left) + " (the shape changes over the grid)"
    if filled.missing:
        result.attrs["missing_tasks"] = filled.missing
    return result


def _refuse_nan(result: xr.Dataset, grid: Grid, complete: bool) -> None:
    """NaN never appears silently in a prediction: say where it is."""
    for name, array in result.data_vars.items():
        if not complete or array.dtype.kind not in "fc" or not (bad := np.isnan(array.values)).any():
            continue
        at = dict(zip(array.dims, np.argwhere(bad)[0], strict=True))
        point = ", ".join(f"{dim} = {result[dim].values[i]}" for dim, i in at.items() if dim in grid.names)
        raise FloatingPointError(
            f"{result.attrs['law']} gave NaN for {name} at {point}; please report this, and move the parameters slightly "
            "in the meantime"
        )
