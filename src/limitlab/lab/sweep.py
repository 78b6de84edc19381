"""Sweeps: a law over a grid of parameters, its limit or its finite experiments."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from limitlab.lab.assemble import Cells, assemble_simulation, assemble_theory, beside_theory
from limitlab.lab.blas import single_threaded
from limitlab.lab.engines import Engine, check_engine, completed
from limitlab.lab.grid import Grid, read_grid
from limitlab.lab.progress import Progress, ProgressOption
from limitlab.lab.store import Store
from limitlab.lab.tasks import (
    FORMAT,
    Cell,
    Task,
    Trouble,
    attempt,
    identity,
    plain_numbers,
    plain_parameters,
    run,
    simulation_tasks,
    theory_tasks,
)
from limitlab.laws.base import Law, checked_seed, checked_size
from limitlab.laws.results import package_version


class SweepError(RuntimeError):
    """Some tasks of a sweep failed. The others are not lost.

    Attributes
    ----------
    failures
        One entry per failed task: `where` (its parameters), `error`, `traceback`.
    partial
        The result with NaN where tasks failed.
    """

    def __init__(self, message: str, failures: Sequence[Trouble] = (), partial: xr.Dataset | None = None):
        super().__init__(message)
        self.failures = tuple(failures)
        self.partial = partial


class SweepInterrupted(KeyboardInterrupt):
    """A sweep was stopped by hand; `partial` is the result with NaN where tasks had not finished."""

    def __init__(self, message: str, partial: xr.Dataset | None = None):
        super().__init__(message)
        self.partial = partial


def sweep(
    law: Law,
    over: Mapping[str, Any],
    sizes: Sequence[int] | int | None = None,
    seeds: Sequence[int] | int | None = None,
    engine: Engine = None,
    store: str | os.PathLike[str] | None = None,
    base_seed: int = 0,
    progress: ProgressOption = None,
    *,
    with_theory: bool = False,
) -> xr.Dataset:
    """Evaluate a law over a grid of parameters, or draw its finite experiments over it.

    Parameters
    ----------
    law
        The law; it gives the parameters that are not swept.
    over
        Values of every swept parameter: a sequence, an array, or a range such as "0.1:100:60log". The result has one
        dimension for each, in this order.
    sizes
        Sizes of the experiments. Without them the limit itself is swept.
    seeds
        How many draws of each experiment, or the numbers of the draws (default: the law's own number of draws).
    engine
        None (here, one after the other), "threads", "processes", a number of worker processes, any
        `concurrent.futures.Executor`, or a Dask client. The result does not depend on it.
    store
        Where to keep finished tasks, so that the same call goes on where it was stopped: `NAME.nc`, `NAME.zarr`
        (the result is assembled there) or a directory.
    base_seed
        Another base seed gives other draws.
    progress
        None: a bar on a terminal after one second; True, False; or a function of (finished, total).
    with_theory
        Put the limit beside the draws, as variables `theory_<observable>`.

    Returns
    -------
    xarray.Dataset
        Dimensions: swept parameters, then (for draws) `size` and `seed`, then the law's own coordinates. `task_seed` is
        the seed with which `law.simulate(size, task_seed)` gives a draw again.

    Raises
    ------
    SweepError
        If tasks failed; it carries the partial result, and a store keeps the finished ones.
    SweepInterrupted
        On Ctrl-C, likewise.

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
    check_engine(engine)
    plan = _plan(law, over, sizes, seeds, base_seed, with_theory)
    shelf = _open(store, plan)
    cells: list[Cell | None] = [None] * len(plan.tasks)
    failures: dict[int, Trouble] = {}
    try:
        _work(plan, cells, failures, engine, shelf, progress)
    except KeyboardInterrupt:
        finished = sum(cell is not None for cell in cells)
        message = f"stopped after {finished} of {len(cells)} tasks; {_how_to_go_on(store, 'the rest')}"
        raise SweepInterrupted(message, plan.assemble(cells)) from None
    if failures:
        listed = [failures[position] for position in sorted(failures)]
        raise SweepError(_summary(listed, len(cells), store), listed, plan.assemble(cells))
    result = plan.assemble(cells)
    if shelf is not None:
        shelf.finish(result)
    return result


# -- planning -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """The tasks of a sweep, those of the limit first, and how their cells become one result."""

    theory: Grid | None
    draws: Grid | None
    theory_tasks: list[Task]
    draw_tasks: list[Task]
    sizes: list[int]
    indices: list[int]
    base_seed: int

    @property
    def tasks(self) -> list[Task]:
        return self.theory_tasks + self.draw_tasks

    @property
    def grid(self) -> Grid:
        grid = self.draws or self.theory
        assert grid is not None
        return grid

    def assemble(self, cells: Cells) -> xr.Dataset:
        split = len(self.theory_tasks)
        limit = None if self.theory is None else assemble_theory(self.theory, self.theory_tasks, cells[:split])
        if self.draws is None:
            assert limit is not None
            return limit
        simulated = assemble_simulation(self.draws, self.draw_tasks, cells[split:], self.sizes, self.indices, self.base_seed)
        return simulated if limit is None else beside_theory(simulated, limit)


def _plan(law: Law, over: Mapping[str, Any], sizes: Any, seeds: Any, base_seed: int, with_theory: bool) -> _Plan:
    if not isinstance(law, Law):
        raise ValueError(f"law = {law!r} is not a law: give an instance such as limitlab.laws.Ridge(ratio=2.0)")
    base_seed = checked_seed(base_seed)
    if sizes is None:
        if seeds is not None:
            raise ValueError(
                f"seeds = {seeds!r} is given without sizes: give sizes too, or leave seeds out to sweep the limit"
            )
        limit = read_grid(law, over, law.array_parameters)
        return _Plan(limit, None, theory_tasks(limit), [], [], [], base_seed)
    numbers, indices = _checked_sizes(sizes), _checked_indices(law.default_seeds if seeds is None else seeds)
    draws = read_grid(law, over, law.path_parameters)
    for name in {"size", "seed", "task_seed"} & set(draws.names):
        raise ValueError(f"cannot sweep experiments over a parameter called {name!r}: it is a dimension of every such sweep")
    beside = read_grid(law, over, law.array_parameters) if with_theory else None
    return _Plan(
        beside,
        draws,
        theory_tasks(beside) if beside else [],
        simulation_tasks(draws, numbers, indices, base_seed),
        numbers,
        indices,
        base_seed,
    )


def _checked_sizes(sizes: Any) -> list[int]:
    numbers = [checked_size(size) for size in _listed(sizes, "sizes")]
    if not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(f"sizes = {sizes!r} is not allowed: give at least one size, each of them once")
    return numbers


def _checked_indices(seeds: Any) -> list[int]:
    if np.ndim(seeds) == 0:
        if isinstance(seeds, (bool, str)) or not float(seeds).is_integer() or seeds < 1:
            raise ValueError(f"seeds = {seeds!r} is not allowed: give a number of draws of at least 1, or a list of draws")
        return list(range(int(seeds)))
    indices = [checked_seed(seed) for seed in _listed(seeds, "seeds")]
    if not indices or len(set(indices)) < len(indices):
        raise ValueError(f"seeds = {seeds!r} is not allowed: give at least one draw, each of them once")
    return indices


def _listed(given: Any, name: str) -> list[Any]:
    listed = np.atleast_1d(np.asarray(given)).tolist()
    if not all(isinstance(item, (int, float)) and np.isfinite(item) for item in listed):
        raise ValueError(f"{name} = {given!r} is not allowed: must be whole numbers")
    return listed


# -- working ------------------------------------------------------------------------------------------------------------


def _work(
    plan: _Plan,
    cells: list[Cell | None],
    failures: dict[int, Trouble],
    engine: Engine,
    shelf: Store | None,
    progress: ProgressOption,
) -> None:
    """Fill in the cells: from the store where it has them, else by running their tasks."""
    tasks = plan.tasks
    keys = [task.key for task in tasks] if shelf is not None else []
    _check_distinct(tasks, keys)
    if shelf is not None:
        cells[:] = [shelf.read(key) for key in keys]
    todo = [position for position, cell in enumerate(cells) if cell is None]
    with Progress(len(tasks), f"sweeping {type(plan.grid.law).__name__}", progress) as bar, single_threaded():
        bar.advance(len(tasks) - len(todo))
        if len(tasks) == 1 and todo:
            _keep(0, run(tasks[0]), tasks, keys, cells, shelf)  # an error of the only task speaks for itself
            bar.advance()
            return
        with closing(completed(attempt, [tasks[position] for position in todo], engine if len(todo) > 1 else None)) as done:
            for number, outcome in done:
                position = todo[number]
                if isinstance(outcome, Cell):
                    _keep(position, outcome, tasks, keys, cells, shelf)
                elif isinstance(outcome, Trouble):
                    failures[position] = outcome
                else:
                    failures[position] = Trouble(f"{type(outcome).__name__}: {outcome}", where=tasks[position].where)
                bar.advance()


def _keep(
    position: int, cell: Cell, tasks: Sequence[Task], keys: Sequence[str], cells: list[Cell | None], shelf: Store | None
) -> None:
    if shelf is not None:
        shelf.write(keys[position], cell, tasks[position].content)
    cells[position] = cell


def _open(store: str | os.PathLike[str] | None, plan: _Plan) -> Store | None:
    if store is None:
        return None
    law = plan.grid.law
    shelf = Store(store)
    shelf.open(
        {
            "format": FORMAT,
            "law": identity(law),
            "parameters": {n: value for n, value in plain_parameters(law).items() if n not in plan.grid.names},
            "over": {axis.name: _plain_labels(axis.labels) for axis in plan.grid.axes},
            "sizes": plan.sizes,
            "seeds": plan.indices,
            "base_seed": plan.base_seed,
            "with_theory": plan.theory is not None and plan.draws is not None,
            "version": package_version(),
        }
    )
    return shelf


def _plain_labels(labels: Any) -> list[Any]:
    return plain_numbers(labels.tolist()) if labels.dtype.kind == "f" else labels.tolist()


def _check_distinct(tasks: Sequence[Task], keys: Sequence[str]) -> None:
    """Two values that are written alike (two lambdas, say) would share a cell."""
    seen: set[str] = set()
    for key, task in zip(keys, tasks, strict=False):
        if key in seen:
            raise ValueError(
                f"cannot store this sweep: two of its tasks are written alike ({task.where}); give the swept values names "
                "of their own, or sweep without a store"
            )
        seen.add(key)


def _how_to_go_on(store: Any, rest: str) -> str:
    if store is None:
        return "the exception's .partial holds the finished ones (give store='name.nc' to be able to go on later)"
    return f"the finished ones are kept in {str(Store(store).home)!r}: the same command runs only {rest}"


def _summary(failures: Sequence[Trouble], total: int, store: Any) -> str:
    shown = [f"  {failure.where}: {failure.error}" for failure in failures[:5]]
    more = [f"  ... and {len(failures) - 5} more"] if len(failures) > 5 else []
    head = f"{len(failures)} of {total} tasks failed; {_how_to_go_on(store, 'the failed ones')}"
    return "\n".join([head, *shown, *more])
