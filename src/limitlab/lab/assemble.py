"""From cells to one Dataset: every number at its place, every dimension labelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from limitlab.lab.cells import Cell
from limitlab.lab.grid import Grid
from limitlab.lab.tasks import LawTask
from limitlab.laws.results import package, relative_error

Slots = Sequence[Cell | None]
"""One cell per task; None where a task has not finished."""


def assemble_theory(grid: Grid, tasks: Sequence[LawTask], cells: Slots) -> xr.Dataset:
    """The limit over the grid: swept parameters first, then the law's own coordinates."""
    accuracy = max((relative_error(cell.values, cell.errors) for cell in cells if cell is not None), default=float("nan"))
    loops = {axis.name: axis.labels for axis in grid.loops}
    result = _fill(grid, loops, tasks, cells, "theory")
    result.attrs["accuracy"] = accuracy
    for name in map(str, result.data_vars):
        errors = [cell.errors[name] for cell in cells if cell is not None and name in cell.errors]
        result[name].attrs.update({"numerical_error": max(errors)} if errors else {})
    _refuse_nan(result, grid, complete=None not in cells)
    return result


def assemble_simulation(
    grid: Grid, tasks: Sequence[LawTask], cells: Slots, sizes: Sequence[int], seeds: Sequence[int]
) -> xr.Dataset:
    """The draws over the grid: swept parameters, size, seed, then the law's own coordinates."""
    draws = {"size": np.asarray(sizes, dtype=np.int64), "seed": np.asarray(seeds, dtype=np.int64)}
    loops = {**{axis.name: axis.labels for axis in grid.loops}, **draws}
    result = _fill(grid, loops, tasks, cells, "simulation")
    result["size"].attrs["long_name"] = grid.law.size_meaning
    result["seed"].attrs["long_name"] = "seed of the draw"
    return result


def beside_theory(simulated: xr.Dataset, theory: xr.Dataset) -> xr.Dataset:
    """Draws with the limit beside them, as `theory_<observable>`."""
    beside = theory.rename({name: f"theory_{name}" for name in theory.data_vars})
    return simulated.assign({name: beside[name] for name in beside.data_vars}).assign_attrs(
        accuracy=theory.attrs["accuracy"]
    )


def _fill(grid: Grid, loops: Mapping[str, NDArray[Any]], tasks: Sequence[LawTask], cells: Slots, kind: str) -> xr.Dataset:
    """Cells at their places in arrays of shape (*loops, *cell), NaN where a task has no cell."""
    done = [(task.place, cell) for task, cell in zip(tasks, cells, strict=True) if cell is not None]
    finished = [cell for _, cell in done]
    names = list(finished[0].values) if finished else []
    kept = [name for name in names if _same_shape(finished, name)]
    outer = tuple(labels.size for labels in loops.values())
    arrays, dims = {}, {}
    for name in kept:
        array = _empty(outer, [cell.values[name] for cell in finished], complete=len(done) == len(tasks))
        for place, cell in done:
            array[place] = cell.values[name]
        found = (*loops, *finished[0].dims[name])
        dims[name] = tuple(sorted(found, key=[*grid.names, "size", "seed", *found].index))
        arrays[name] = array.transpose([found.index(dim) for dim in dims[name]])
    inner = {name: line for name, line in _common_coordinates(finished).items() if any(name in own for own in dims.values())}
    labels = {**{axis.name: axis.labels for axis in grid.axes}, **loops, **inner}
    # Packaged under a neutral kind: a partial result has NaN where tasks are missing, which a prediction may not have.
    result = package(grid.law, arrays, kind="sweep", dims=dims, coords=labels).assign_attrs(kind=kind)
    if len(kept) < len(names):
        result.attrs["left_out"] = (
            ", ".join(name for name in names if name not in kept) + " (the shape changes over the grid)"
        )
    if len(done) < len(tasks):
        result.attrs["missing_tasks"] = len(tasks) - len(done)
    return result


def _empty(outer: tuple[int, ...], values: Sequence[NDArray[Any]], complete: bool) -> NDArray[Any]:
    """An array for all cells: of their own type, or (where some are missing) of a type that has NaN."""
    dtype = np.result_type(*{value.dtype for value in values})
    shape = (*outer, *values[0].shape)
    if complete or dtype.kind == "U":
        return np.zeros(shape, dtype)
    return np.full(shape, np.nan, np.result_type(dtype, np.float64))


def _same_shape(cells: Sequence[Cell], name: str) -> bool:
    """Whether every cell has the variable, with the same dimensions."""
    first = cells[0]
    return all(
        name in cell.values and cell.dims[name] == first.dims[name] and cell.values[name].shape == first.values[name].shape
        for cell in cells
    )


def _common_coordinates(cells: Sequence[Cell]) -> dict[str, NDArray[Any]]:
    """Coordinates of the cells that are the same in all of them."""
    if not cells:
        return {}
    return {
        name: line
        for name, line in cells[0].coords.items()
        if all(name in cell.coords and np.array_equal(line, cell.coords[name]) for cell in cells[1:])
    }


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
