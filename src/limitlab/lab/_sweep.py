"""Sweeps, which evaluate the limit or the experiments of a law over a grid of parameters.

`sweep` checks the cost, plans the tasks (`SweepPlan`), runs them (`limitlab.lab.tasks`) and assembles their cells into one Dataset.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from limitlab._core.arguments import explained
from limitlab._core.checks import is_whole
from limitlab._core.cost import NUMBER, Cost, Pace, check_cost, estimate, memory_limit
from limitlab._core.declaration import coordinate_values
from limitlab._core.draws import checked_seeds, checked_sizes, identity, key_parameters, plain_parameters
from limitlab._core.law import Law
from limitlab._core.registry import law_at_defaults
from limitlab._core.results import NOT_STATED, package_version, relative_error, to_dataset
from limitlab.errors import Refused
from limitlab.lab.engines import Engine, check_engine
from limitlab.lab.grid import Grid, parse_range, read_grid, simulation_tasks, theory_tasks
from limitlab.lab.progress import ProgressOption
from limitlab.lab.store import BLOCK, FORMAT, Cell, Region, Regions, Store
from limitlab.lab.tasks import LawTask, RunResult, TaskFailure, plain_numbers, run_tasks

__all__ = ["SweepError", "SweepInterrupted", "sweep"]

OnPart = Callable[[xr.Dataset, int, int], None]

PART_SECONDS = 0.15
"""Seconds between two partial results."""
THEORY_PREFIX = "theory_"
"""Prefix of the names of the limit in a result that also contains draws."""
PER_CELL = 300.0
"""Floating-point numbers that one task holds in addition to its values, for its law, its labels and its cell."""
PER_VALUE = 5.0
"""Floating-point numbers per value of the result, for the value, its copies, and further arrays of a vectorised law."""
OPERATIONS_PER_VALUE = 1e3
"""Operations per value of a vectorised prediction."""
OPERATIONS_PER_MEASURED_VALUE = 1e4
"""Operations per value of an experiment."""


class SweepError(RuntimeError):
    """The error after a sweep of which some tasks failed. The results of the other tasks are not lost.

    Attributes
    ----------
    failures
        One entry per failed task: `where` (its parameters), `error`, `traceback`.
    partial
        The result, with NaN for the failed tasks; None if it would not fit into memory.
    """

    def __init__(self, message: str, failures: Sequence[TaskFailure] = (), partial: xr.Dataset | None = None):
        super().__init__(message)
        self.failures = tuple(failures)
        self.partial = partial


class SweepInterrupted(KeyboardInterrupt):
    """The error after the user stopped a sweep.

    `partial` is the result, with NaN for the tasks that were not finished.
    """

    def __init__(self, message: str, partial: xr.Dataset | None = None):
        super().__init__(message)
        self.partial = partial


@explained
def sweep(
    law: Law | str,
    over: Mapping[str, Any],
    sizes: Sequence[int] | int | None = None,
    seeds: Sequence[int] | int | None = None,
    engine: Engine = None,
    store: str | os.PathLike[str] | None = None,
    progress: ProgressOption = None,
    *,
    with_theory: bool = False,
    on_part: OnPart | None = None,
    absent_as_nan: bool = False,
) -> xr.Dataset:
    """Evaluate the limit of a law, or draw its finite experiments, over a grid of parameters.

    Parameters
    ----------
    law
        The law, or its name for the law with its default parameters. Parameters that are not swept are taken from it.
    over
        The values of every swept parameter, as a sequence, an array, or a range such as "0.1:100:60log". The result has one
        dimension for each parameter, in this order.
    sizes
        Sizes of the experiments. Without sizes the limit is swept.
    seeds
        The number of draws of each experiment (with seeds 0, 1, 2, ...), or their seeds. The default is the number that the law
        declares. The draws are those of `law.simulate(size, seed)`.
    engine
        None (in this process, sequentially), "threads", "processes", a number of worker processes, any
        `concurrent.futures.Executor`, a Dask client, or the name of a cluster: "local-cluster", "slurm:FILE" or the address of a
        Dask scheduler. The result does not depend on it.
    store
        The place of finished tasks, from which the same call continues after it was stopped: `NAME.nc` or `NAME.zarr` (the file of
        the assembled result), or a directory. A Zarr result is assembled block by block, so that it may be larger than the memory.
        A Zarr result of more than 100 MB is returned without reading it into memory; its numbers are read from the disk when they
        are used.
    progress
        None (a bar on a terminal after one second), True, False, or a function of (finished, total).
    with_theory
        Whether to add the limit to the draws, as variables `theory_<observable>`.
    on_part
        Called as `on_part(part, finished, total)` a few times per second while the sweep runs. `part` is the result, with NaN for
        tasks that are not finished; an observable without any finished task is omitted. The tasks run in an order that shows the
        shape of the result early. Every eighth point is computed first, then the points between. One draw is made at all points
        before the next draw. The order does not change the result.
    absent_as_nan
        Whether an observable that exists at some points only is NaN at the other points. By default it is omitted from the result,
        and the attribute `left_out` names it. Not allowed together with `store`.

    Returns
    -------
    xarray.Dataset
        Dimensions: swept parameters, then (for draws) `size` and `seed`, then the law's own coordinates. A swept coordinate
        (`times`) is one of these (`time`).

    Raises
    ------
    SweepError
        If tasks failed. The error contains the partial result, and a store contains the finished tasks.
    SweepInterrupted
        If the user stopped the sweep with Ctrl-C. The error contains the partial result.

    Examples
    --------
    >>> import numpy as np
    >>> from limitlab.laws import Ridge
    >>> limit = sweep(Ridge(noise=0.5), over={"ratio": [0.5, 2.0], "ridge": np.geomspace(0.01, 1, 3)})
    >>> dict(limit.sizes)
    {'ratio': 2, 'ridge': 3}
    >>> draws = sweep(Ridge(noise=0.5), over={"ridge": [0.1, 1.0]}, sizes=[20], seeds=4)
    >>> draws.test_error.dims
    ('ridge', 'size', 'seed')
    """
    law = law_at_defaults(law)
    check_engine(engine)
    refuse_sweep(law, over, sizes, seeds, in_blocks=store is not None and Store(store).in_blocks)
    if absent_as_nan and store is not None:
        raise Refused("absent_as_nan = True is not allowed together with a store: omit one of them")
    plan = replace(plan_sweep(law, over, sizes, seeds, with_theory), absent_as_nan=absent_as_nan)
    parts = None
    if on_part is not None:
        plan = plan.coarse_first()
        parts = _Parts(plan, on_part)
    opened = None if store is None else open_store(store, plan, over)
    run = run_tasks(plan.tasks, engine, opened.cells if opened else None, progress, f"sweeping {type(law).__name__}", parts)
    if run.interrupted:
        message = f"stopped after {run.done} of {len(run)} tasks; {_how_to_continue(store, 'the rest')}"
        raise SweepInterrupted(message, plan.partial(run))
    if run.failures:
        message = run.summary(_how_to_continue(store, "the failed ones"))
        raise SweepError(message, run.listed_failures(), plan.partial(run))
    if opened is not None and opened.in_blocks:
        return opened.finish_in_blocks(lambda regions: plan.assemble(run, regions))
    result = plan.assemble(run)
    if opened is not None:
        opened.finish(result)
    return result


# -- planning -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SweepPlan:
    """The tasks of a sweep, and the assembly of their cells into one result."""

    theory: Grid | None
    draws: Grid | None
    theory_tasks: list[LawTask]
    draw_tasks: list[LawTask]
    sizes: list[int]
    seeds: list[int]
    absent_as_nan: bool = False

    @property
    def tasks(self) -> list[LawTask]:
        """All tasks. Tasks of the limit come first."""
        return self.theory_tasks + self.draw_tasks

    @property
    def grid(self) -> Grid:
        """The grid of the draws, or the grid of the limit if there are no draws."""
        grid = self.draws or self.theory
        assert grid is not None
        return grid

    def coarse_first(self) -> SweepPlan:
        """Return the same tasks in an order that shows the shape of the result early."""
        return replace(self, theory_tasks=_coarse_first(self.theory_tasks), draw_tasks=_coarse_first(self.draw_tasks))

    def partial(self, run: RunResult) -> xr.Dataset | None:
        """Return the result of an unfinished run, if it fits into memory."""
        first = next((cell for cell in run.cells if cell is not None), None)
        small = first is None or len(run) * first.nbytes <= memory_limit()
        return self.assemble(run) if small else None

    def assemble(self, run: RunResult, regions: Regions | None = None) -> xr.Dataset:
        """Return the result, with the versions of limitlab that computed its cells.

        With `regions` the numbers are written to these.
        """
        split = len(self.theory_tasks)
        prefix = THEORY_PREFIX if self.draws is not None else ""
        limit = None
        if self.theory is not None:
            limit = assemble_theory(self.theory, self.theory_tasks, run.part(0, split), regions, prefix, self.absent_as_nan)
        if self.draws is None:
            assert limit is not None
            return limit
        draws = run.part(split, len(run))
        simulated = assemble_simulation(
            self.draws, self.draw_tasks, draws, self.sizes, self.seeds, regions, self.absent_as_nan
        )
        if limit is None:
            return simulated
        versions = sorted({*simulated.attrs["version"].split(", "), *limit.attrs["version"].split(", ")})
        return beside_theory(simulated, limit).assign_attrs(version=", ".join(versions))


def plan_sweep(law: Law, over: Mapping[str, Any], sizes: Any, seeds: Any, with_theory: bool) -> SweepPlan:
    """Return the tasks of a sweep; the parameters are those of `sweep`."""
    if not isinstance(law, Law):
        raise Refused(f"law = {law!r} is not a law: give an instance such as limitlab.laws.Ridge(ratio=2.0)")
    if sizes is None:
        if seeds is not None:
            raise Refused(
                f"seeds = {seeds!r} is not allowed without sizes: give sizes too, or omit seeds to sweep the limit"
            )
        limit = read_grid(law, over, law.array_parameters())
        return SweepPlan(limit, None, theory_tasks(limit), [], [], [])
    numbers, draws = checked_sizes(sizes), checked_seeds(law.simulation.draws if seeds is None else seeds)
    grid = read_grid(law, over, law.path_parameters())
    for name in {"size", "seed"} & set(grid.names):
        raise Refused(f"cannot sweep experiments over a parameter called {name!r}: it is a dimension of every such sweep")
    limit_grid = grid.with_arrays(law.array_parameters()) if with_theory else None
    limits = theory_tasks(limit_grid) if limit_grid else []
    return SweepPlan(limit_grid, grid, limits, simulation_tasks(grid, numbers, draws), numbers, draws)


# -- parts of a result --------------------------------------------------------------------------------------------------


class _Parts:
    """A callback that passes the partial result to a function, at most once every `PART_SECONDS`.

    Assembling partial results takes at most a tenth of the time.
    """

    def __init__(self, plan: SweepPlan, on_part: OnPart):
        self._plan, self._on_part = plan, on_part
        self._next = 0.0

    def __call__(self, run: RunResult, finished: int) -> None:
        start = time.monotonic()
        if start < self._next or finished == len(run) or not run.done:
            return
        part = self._plan.partial(run)
        if part is not None:
            self._on_part(part, finished, len(run))
        end = time.monotonic()
        self._next = end + max(PART_SECONDS, 9 * (end - start))


def _coarse_first(tasks: list[LawTask]) -> list[LawTask]:
    """Return tasks in another order, with every eighth point of the loops first and one seed at all points before the next."""
    points_of_loops: dict[tuple[int, ...], int] = {}
    turns: list[tuple[int, int, int]] = []
    for number, task in enumerate(tasks):
        loops, seed = (task.place, 0) if task.size is None else (task.place[:-2], task.place[-1])
        point = points_of_loops.setdefault(loops, len(points_of_loops))
        level = next(level for level, step in enumerate((8, 4, 2, 1)) if point % step == 0)
        turns.append((seed, level, number))
    return [tasks[number] for _, _, number in sorted(turns)]


# -- cost ---------------------------------------------------------------------------------------------------------------


def sweep_cost(
    law: Law, over: Mapping[str, Any], sizes: Any = None, seeds: Any = None, in_blocks: bool = False
) -> tuple[float, Cost]:
    """Return the number of points of a sweep and its cost.

    `in_blocks` states whether the result is assembled block by block.

    >>> from limitlab.laws import Ridge
    >>> count, cost = sweep_cost(Ridge(), {"ratio": "0.1:10:1000log", "ridge": [0.1, 1.0]})
    >>> count, round(cost.memory / 1e6)
    (2000.0, 1)
    """
    metas = type(law).parameters()
    counts = {name: _count(values) for name, values in over.items() if name in metas}
    draws = sizes is not None
    together = law.path_parameters() if draws else law.array_parameters()
    looped = math.prod(n for name, n in counts.items() if metas[name].kind != "coordinate" and name not in together)
    total = float(math.prod(counts.values()))
    listed = [int(size) for size in _listed(sizes) if is_whole(size) and size >= 2] if draws else []
    repeats = float(len(listed) * _count(seeds if seeds is not None else law.simulation.draws)) if draws else 1.0
    values = total * repeats * len(type(law).outputs()) * max(coordinate_values(law), 1.0)
    held = min(values, max(values / (looped * repeats), BLOCK / NUMBER)) if in_blocks else values
    numbers = PER_CELL * looped * repeats + PER_VALUE * held
    if draws:
        each = [estimate(law, size) for size in listed]
        work = (
            sum(cost.operations for cost in each) * repeats / max(len(each), 1) * looped
            + OPERATIONS_PER_MEASURED_VALUE * values
        )
        return total, Cost(numbers + max((cost.numbers for cost in each), default=0.0), work)
    return total, Cost(numbers, looped * estimate(law).operations + OPERATIONS_PER_VALUE * values)


def refuse_sweep(law: Law, over: Any, sizes: Any = None, seeds: Any = None, in_blocks: bool = False) -> Cost:
    """Return the cost of a sweep; raise `TooCostly` if it exceeds the limits of memory or time."""
    if not isinstance(law, Law) or not isinstance(over, Mapping):
        return Cost()  # `plan_sweep` refuses these arguments
    total, cost = sweep_cost(law, over, sizes, seeds, in_blocks)
    draws = "" if sizes is None else f" with {_count(seeds if seeds is not None else law.simulation.draws):.3g} draws each"
    check_cost(
        cost,
        f"a sweep of {type(law).__name__} over {total:.3g} points{draws}",
        "choose fewer values, or sweep in several parts"
        + ("" if in_blocks else ", or keep the result in a store NAME.zarr"),
    )
    return cost


def _count(values: Any) -> int:
    """Return the number of values without listing them."""
    if isinstance(values, str):
        try:
            return int(parse_range(values).size)
        except ValueError:
            return 1  # a word, or a mistake that `read_grid` refuses
    if isinstance(values, Collection):
        return len(values)
    if getattr(values, "ndim", 0):
        return int(values.size)
    return int(values) if is_whole(values) else 1


def _listed(sizes: Any) -> list[Any]:
    return (
        list(sizes)
        if (isinstance(sizes, Collection) and not isinstance(sizes, str)) or getattr(sizes, "ndim", 0) > 0
        else [sizes]
    )


# -- the store ---------------------------------------------------------------------------------------------------------


def open_store(store: str | os.PathLike[str], plan: SweepPlan, over: Mapping[str, Any]) -> Store:
    """Return the store of a sweep; make it if it does not exist."""
    law = plan.grid.law
    swept = {axis.name: _plain_labels(axis.labels) for axis in plan.grid.axes}
    swept |= {name: plain_parameters(law, {name})[name] for name in over if name not in swept}  # coordinates
    opened = Store(store)
    opened.open(
        {
            "format": FORMAT,
            "what": "sweep",
            "law": identity(type(law)),
            "revision": law.revision,
            "parameters": {name: value for name, value in key_parameters(law).items() if name not in swept},
            "over": swept,
            "sizes": plan.sizes,
            "seeds": plan.seeds,
            "with_theory": plan.theory is not None and plan.draws is not None,
            "version": package_version(),
        }
    )
    return opened


def _plain_labels(labels: Any) -> list[Any]:
    return plain_numbers(labels.tolist()) if labels.dtype.kind == "f" else labels.tolist()


def _how_to_continue(store: Any, rest: str) -> str:
    if store is None:
        return (
            "the attribute .partial of the exception contains the finished ones (with store='name.nc' the sweep can be continued "
            "later)"
        )
    return f"the finished ones are stored in {str(Store(store).home)!r}; the same command runs only {rest}"


# -- from cells to one Dataset ------------------------------------------------------------------------------------------


class LostCells(OSError):
    """The error for finished cells that were damaged or missing when the result was assembled."""


def assemble_theory(
    grid: Grid,
    tasks: Sequence[LawTask],
    run: RunResult,
    regions: Regions | None = None,
    prefix: str = "",
    absent_as_nan: bool = False,
) -> xr.Dataset:
    """Return the limit over the grid, with the swept parameters first and then the coordinates of the law.

    With `regions` the numbers are written to these regions (under names that begin with `prefix`), and the result only describes
    them.
    `absent_as_nan` is that of `sweep`.
    """
    loops = {axis.name: axis.labels for axis in grid.loop_axes}
    arrays = _arrays_of(grid, loops, tasks, run, regions, prefix, absent_as_nan)
    if arrays.nan and not arrays.missing:
        _refuse_nan(grid, arrays, loops)
    result = _labelled(grid, loops, arrays, "theory")
    result.attrs["accuracy"] = NOT_STATED if arrays.accuracy == np.inf else arrays.accuracy
    for name in map(str, result.data_vars):
        if np.isfinite(error := arrays.errors.get(name, np.inf)):
            result[name].attrs["numerical_error"] = error
    return result


def assemble_simulation(
    grid: Grid,
    tasks: Sequence[LawTask],
    run: RunResult,
    sizes: Sequence[int],
    seeds: Sequence[int],
    regions: Regions | None = None,
    absent_as_nan: bool = False,
) -> xr.Dataset:
    """Return the draws over the grid, with swept parameters, size, seed and then the coordinates of the law.

    The other parameters are those of `assemble_theory`.
    """
    draws = {"size": np.asarray(sizes, dtype=np.int64), "seed": np.asarray(seeds, dtype=np.int64)}
    loops = {**{axis.name: axis.labels for axis in grid.loop_axes}, **draws}
    result = _labelled(grid, loops, _arrays_of(grid, loops, tasks, run, regions, "", absent_as_nan), "simulation")
    result["size"].attrs["long_name"] = grid.law.simulation.size_meaning
    result["seed"].attrs["long_name"] = "seed of the draw"
    return result


def beside_theory(simulated: xr.Dataset, theory: xr.Dataset) -> xr.Dataset:
    """Return one Dataset with the draws and, as `theory_<observable>`, the limit."""
    limit = theory.rename({name: f"{THEORY_PREFIX}{name}" for name in theory.data_vars})
    return simulated.assign({name: limit[name] for name in limit.data_vars}).assign_attrs(accuracy=theory.attrs["accuracy"])


Make = Callable[[str, tuple[str, ...], tuple[int, ...], "np.dtype[Any]", int], "NDArray[Any] | Region"]
"""A function that makes an array, from its name, the dimensions of a cell, its whole shape, its type and the number of arrays."""


class _ResultBuilder:
    """Builds the result array cell by cell, holding only the result (or one block) in memory."""

    def __init__(
        self, outer: tuple[int, ...], missing: int, make: Make, absent_as_nan: bool, natural_scale: Callable[[str], float]
    ):
        self.outer, self.missing, self.make, self.absent_as_nan = outer, missing, make, absent_as_nan
        self.natural_scale = natural_scale
        self.arrays: dict[str, Any] = {}
        self.dims: dict[str, tuple[str, ...]] = {}
        self.coords: dict[str, NDArray[Any]] = {}
        self.errors: dict[str, float] = {}
        self.accuracy = float("nan")
        self.names: list[str] | None = None
        self.versions: set[str] = set()
        self.nan: dict[str, tuple[int, ...]] = {}  # the first position of NaN of a variable of a prediction

    def add(self, place: tuple[int, ...], cell: Cell) -> None:
        """Add a cell at its position.

        A variable whose shape differs from that of the first cell is omitted from the result.
        """
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
            self.accuracy = max(self.accuracy, relative_error(cell.values, cell.errors, self.natural_scale))

    def _array_for(self, name: str, cell: Cell) -> Any:
        """Return an array for a variable of all cells.

        Its type is that of this cell, or a type that contains NaN if some entries are missing.
        """
        value = cell.values[name]
        gaps = (self.missing or self.absent_as_nan) and value.dtype.kind != "U"
        dtype = np.result_type(value.dtype, np.float64) if gaps else value.dtype
        return self.make(name, cell.dims[name], (*self.outer, *value.shape), dtype, len(cell.values))


def _arrays_of(
    grid: Grid,
    loops: Mapping[str, NDArray[Any]],
    tasks: Sequence[LawTask],
    run: RunResult,
    regions: Regions | None,
    prefix: str,
    absent_as_nan: bool,
) -> _ResultBuilder:
    """Return all cells in arrays of shape (*loops, *cell).

    The arrays are in memory, with NaN for tasks without a cell, or in regions.
    """
    missing = len(run) - run.done

    def make(name: str, dims: tuple[str, ...], shape: tuple[int, ...], dtype: np.dtype[Any], share: int) -> Any:
        if regions is not None:
            return regions.array(f"{prefix}{name}", shape, dtype, _axes(grid, loops, dims), share)
        gaps = (missing or absent_as_nan) and dtype.kind != "U"
        return np.full(shape, np.nan, dtype) if gaps else np.zeros(shape, dtype)

    builder = _ResultBuilder(
        tuple(labels.size for labels in loops.values()), missing, make, absent_as_nan, grid.law.natural_scale
    )
    pace, absent = Pace("assembling the result"), 0
    for number, (task, cell) in enumerate(zip(tasks, run.cells, strict=True)):
        if cell is None:
            absent += 1
        else:
            builder.add(task.place, cell)
        pace.at(number + 1)
    if absent > missing:
        raise LostCells(
            f"{absent - missing} cells were damaged or removed while the result was assembled: run the sweep again"
        )
    builder.arrays = {name: each.close() if isinstance(each, Region) else each for name, each in builder.arrays.items()}
    return builder


def _axes(grid: Grid, loops: Mapping[str, Any], inner: tuple[str, ...]) -> list[int]:
    """Return the dimensions of an array, with the loops in the order of the user before the dimensions of a cell."""
    dims = (*loops, *inner)
    return sorted(range(len(dims)), key=lambda axis: [*grid.names, "size", "seed", *dims].index(dims[axis]))


def _labelled(grid: Grid, loops: Mapping[str, NDArray[Any]], built: _ResultBuilder, kind: str) -> xr.Dataset:
    """Return the arrays with their dimensions in the order of the user, with coordinates and provenance."""
    arrays, dims = {}, {}
    for name, array in built.arrays.items():
        axes = _axes(grid, loops, built.dims[name])
        dims[name] = tuple((*loops, *built.dims[name])[axis] for axis in axes)
        arrays[name] = array.transpose(axes)
    inner = {name: line for name, line in built.coords.items() if any(name in names for names in dims.values())}
    labels = {**{axis.name: axis.labels for axis in grid.axes}, **loops, **inner}
    # The kind is set afterwards, because a partial result contains NaN, which a prediction must not contain.
    result = to_dataset(grid.law, arrays, kind="sweep", dims=dims, coords=labels).assign_attrs(kind=kind)
    if built.versions:
        result.attrs["version"] = ", ".join(sorted(built.versions))  # of the cells, not of the assembly
    if left := [name for name in built.names or () if name not in built.arrays]:
        result.attrs["left_out"] = ", ".join(left) + " (the shape changes over the grid)"
    if built.missing:
        result.attrs["missing_tasks"] = built.missing
    return result


def _refuse_nan(grid: Grid, built: _ResultBuilder, loops: Mapping[str, NDArray[Any]]) -> None:
    """Raise FloatingPointError that names the first point at which a prediction is NaN."""
    labels = {axis.name: axis.labels for axis in grid.axes}
    for name in built.arrays:
        if name in built.nan:
            at = dict(zip((*loops, *built.dims[name]), built.nan[name], strict=True))
            point = ", ".join(f"{dim} = {labels[dim][at[dim]]}" for dim in grid.names if dim in at)
            raise FloatingPointError(
                f"the prediction of {type(grid.law).__name__} is NaN for {name} at {point}; please report this error of limitlab; "
                "slightly different parameters may avoid it"
            )
