"""From cells to one Dataset: every number at its place, every dimension labelled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from limitlab._core.cost import Pace
from limitlab._core.results import NOT_STATED, package, relative_error
from limitlab.lab._regions import Region, Regions
from limitlab.lab._slots import Slots, missing_in
from limitlab.lab.cells import Cell
from limitlab.lab.grid import Grid
from limitlab.lab.tasks import LawTask

BESIDE = "theory_"
"""What the names of the limit begin with where it stands beside draws."""


class LostCells(OSError):
    """Cells that were there when a run ended were damaged or gone when its result was assembled."""


def assemble_theory(
    grid: Grid,
    tasks: Sequence[LawTask],
    cells: Slots,
    regions: Regions | None = None,
    prefix: str = "",
    absent_as_nan: bool = False,
) -> xr.Dataset:
    """The limit over the grid: swept parameters first, then the law's own coordinates.

    With `regions` the numbers go there (under names that begin with `prefix`), and the result only describes them. `absent_as_nan` is that
    of `sweep`.
    """
    loops = {axis.name: axis.labels for axis in grid.loops}
    filled = _filled(grid, loops, tasks, cells, regions, prefix, absent_as_nan)
    if filled.nan and not filled.missing:
        _refuse_nan(grid, filled, loops)
    result = _labelled(grid, loops, filled, "theory")
    result.attrs["accuracy"] = NOT_STATED if filled.accuracy == np.inf else filled.accuracy
    for name in map(str, result.data_vars):
        if np.isfinite(error := filled.errors.get(name, np.inf)):
            result[name].attrs["numerical_error"] = error
    return result


def assemble_simulation(
    grid: Grid,
    tasks: Sequence[LawTask],
    cells: Slots,
    sizes: Sequence[int],
    seeds: Sequence[int],
    regions: Regions | None = None,
    absent_as_nan: bool = False,
) -> xr.Dataset:
    """The draws over the grid: swept parameters, size, seed, then the law's own coordinates; the rest as above."""
    draws = {"size": np.asarray(sizes, dtype=np.int64), "seed": np.asarray(seeds, dtype=np.int64)}
    loops = {**{axis.name: axis.labels for axis in grid.loops}, **draws}
    filled = _filled(grid, loops, tasks, cells, regions, absent_as_nan=absent_as_nan)
    result = _labelled(grid, loops, filled, "simulation")
    result["size"].attrs["long_name"] = grid.law.simulation.size_meaning
    result["seed"].attrs["long_name"] = "seed of the draw"
    return result


def beside_theory(simulated: xr.Dataset, theory: xr.Dataset) -> xr.Dataset:
    """Draws with the limit beside them, as `theory_<observable>`."""
    beside = theory.rename({name: f"{BESIDE}{name}" for name in theory.data_vars})
    return simulated.assign({name: beside[name] for name in beside.data_vars}).assign_attrs(
        accuracy=theory.attrs["accuracy"]
    )


Make = Callable[[str, tuple[str, ...], tuple[int, ...], "np.dtype[Any]", int], "NDArray[Any] | Region"]
"""An array to fill, from its name, the dimensions of a cell, its whole shape, its type and the number of arrays."""


class _Filling:
    """Arrays for all cells, into which one cell after the other is put: nothing but the result (or a block of it) is held in memory."""

    def __init__(self, outer: tuple[int, ...], missing: int, make: Make, absent_as_nan: bool = False):
        self.outer, self.missing, self.make, self.absent_as_nan = outer, missing, make, absent_as_nan
        self.arrays: dict[str, Any] = {}
        self.dims: dict[str, tuple[str, ...]] = {}
        self.coords: dict[str, NDArray[Any]] = {}
        self.errors: dict[str, float] = {}
        self.accuracy = float("nan")
        self.names: list[str] | None = None
        self.versions: set[str] = set()
        self.nan: dict[str, tuple[int, ...]] = {}  # where a variable of a prediction (they have errors) is NaN first

    def put(self, place: tuple[int, ...], cell: Cell) -> None:
        """One cell at its place. A variable whose shape differs from that of the first cell is left out."""
        if self.names is None:
            self.names, self.dims, self.coords = list(cell.values), dict(cell.dims), dict(cell.coords)
            self.arrays = {name: self._array_for(name, cell) for name in cell.values}
            self.accuracy = -np.inf
        if self.absent_as_nan:
            for name in cell.values.keys() - set(self.names):
                self.names, self.dims = [*self.names, name], {**self.dims, name: cell.dims[name]}
                self.arrays[name] = self._array_for(name, cell)
        for name in list(self.arrays):
            value, array = cell.values.get(name), self.arrays[name]
            if value is None and self.absent_as_nan:
                continue
            inner = array.shape[len(self.outer) :]
            if value is None or cell.dims[name] != self.dims[name] or value.shape != inner:
                del self.arrays[name]
                if isinstance(array, Region):
                    array.drop()
                continue
            if value.dtype != array.dtype and (wider := np.result_type(array.dtype, value.dtype)) != array.dtype:
                array = self.arrays[name] = array.astype(wider)
            array[place] = value
            if cell.errors and value.dtype.kind in "fc" and name not in self.nan and (bad := np.isnan(value)).any():
                self.nan[name] = (*place, *np.argwhere(bad)[0].tolist())
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

    def _array_for(self, name: str, cell: Cell) -> Any:
        """An array for a variable of all cells: of the type of this cell, or of one that has NaN if some entries are missing."""
        value = cell.values[name]
        gaps = (self.missing or self.absent_as_nan) and value.dtype.kind != "U"
        dtype = np.result_type(value.dtype, np.float64) if gaps else value.dtype
        return self.make(name, cell.dims[name], (*self.outer, *value.shape), dtype, len(cell.values))


def _filled(
    grid: Grid,
    loops: Mapping[str, NDArray[Any]],
    tasks: Sequence[LawTask],
    cells: Slots,
    regions: Regions | None,
    prefix: str = "",
    absent_as_nan: bool = False,
) -> _Filling:
    """Cells at their places in arrays of shape (*loops, *cell): here, with NaN where a task has no cell, or all of them in regions."""
    missing = missing_in(cells)

    def make(name: str, own: tuple[str, ...], shape: tuple[int, ...], dtype: np.dtype[Any], share: int) -> Any:
        if regions is not None:
            return regions.array(f"{prefix}{name}", shape, dtype, _axes(grid, loops, own), share)
        gaps = (missing or absent_as_nan) and dtype.kind != "U"
        return np.full(shape, np.nan, dtype) if gaps else np.zeros(shape, dtype)

    filling = _Filling(tuple(labels.size for labels in loops.values()), missing, make, absent_as_nan)
    pace, absent = Pace("assembling the result"), 0
    for number, (task, cell) in enumerate(zip(tasks, cells, strict=True)):
        if cell is None:
            absent += 1
        else:
            filling.put(task.place, cell)
        pace.at(number + 1)
    if absent > missing:
        raise LostCells(
            f"{absent - missing} cells were damaged or removed while the result was assembled: run the sweep again"
        )
    filling.arrays = {name: each.close() if isinstance(each, Region) else each for name, each in filling.arrays.items()}
    return filling


def _axes(grid: Grid, loops: Mapping[str, Any], own: tuple[str, ...]) -> list[int]:
    """The dimensions of an array, loops before those of a cell, in the order that the user gave them in."""
    found = (*loops, *own)
    return sorted(range(len(found)), key=lambda axis: [*grid.names, "size", "seed", *found].index(found[axis]))


def _labelled(grid: Grid, loops: Mapping[str, NDArray[Any]], filled: _Filling, kind: str) -> xr.Dataset:
    """The arrays with their dimensions in the user's order, coordinates and provenance."""
    arrays, dims = {}, {}
    for name, array in filled.arrays.items():
        axes = _axes(grid, loops, filled.dims[name])
        dims[name] = tuple((*loops, *filled.dims[name])[axis] for axis in axes)
        arrays[name] = array.transpose(axes)
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


def _refuse_nan(grid: Grid, filled: _Filling, loops: Mapping[str, NDArray[Any]]) -> None:
    """NaN never appears silently in a prediction: say where it is."""
    labels = {axis.name: axis.labels for axis in grid.axes}
    for name in filled.arrays:
        if name in filled.nan:
            at = dict(zip((*loops, *filled.dims[name]), filled.nan[name], strict=True))
            point = ", ".join(f"{dim} = {labels[dim][at[dim]]}" for dim in grid.names if dim in at)
            raise FloatingPointError(
                f"{type(grid.law).__name__} gave NaN for {name} at {point}; please report this, and move the parameters "
                "slightly in the meantime"
            )
