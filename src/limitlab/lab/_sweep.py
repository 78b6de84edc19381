"""Sweeps: a law over a grid of parameters, its limit or its finite experiments."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import xarray as xr

from limitlab._core.cost import memory_limit
from limitlab._core.draws import checked_seeds, checked_sizes, identity, plain_parameters
from limitlab._core.law import Law
from limitlab._core.registry import law_at_defaults
from limitlab._core.results import package_version
from limitlab.lab._assemble import BESIDE, assemble_simulation, assemble_theory, beside_theory
from limitlab.lab._budget import refuse_sweep
from limitlab.lab._regions import Regions
from limitlab.lab._slots import Slots, missing_in
from limitlab.lab.engines import Engine, check_engine
from limitlab.lab.grid import Grid, read_grid
from limitlab.lab.progress import ProgressOption
from limitlab.lab.runner import run_tasks, summary
from limitlab.lab.store import Store
from limitlab.lab.tasks import FORMAT, LawTask, Trouble, plain_numbers, simulation_tasks, theory_tasks

__all__ = ["SweepError", "SweepInterrupted", "sweep"]

OnPart = Callable[[xr.Dataset, int, int], None]

PART_SECONDS = 0.15
"""Time between two parts of a result."""


class SweepError(RuntimeError):
    """Some tasks of a sweep failed. The others are not lost.

    Attributes
    ----------
    failures
        One entry per failed task: `where` (its parameters), `error`, `traceback`.
    partial
        The result with NaN where tasks failed; None where it would not fit into memory.
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
    """Evaluate a law over a grid of parameters, or draw its finite experiments over it.

    Parameters
    ----------
    law
        The law, or its name for the law with its default parameters; it gives the parameters that are not swept.
    over
        Values of every swept parameter: a sequence, an array, or a range such as "0.1:100:60log". The result has one
        dimension for each, in this order.
    sizes
        Sizes of the experiments. Without them the limit itself is swept.
    seeds
        How many draws of each experiment (with seeds 0, 1, 2, ...), or their seeds (default: the law's own number of draws). A
        draw is the one that `law.simulate(size, seed)` gives.
    engine
        None (here, one after the other), "threads", "processes", a number of worker processes, any
        `concurrent.futures.Executor`, a Dask client, or the name of a cluster: "local-cluster", "slurm:FILE" or the address of a Dask
        scheduler. The result does not depend on it.
    store
        Where to keep finished tasks, so that the same call goes on where it was stopped: `NAME.nc`, `NAME.zarr`
        (the result is assembled there) or a directory. A Zarr result is assembled block by block, so that it may be larger than the
        memory; one of more than 100 MB is returned unread: its numbers come from the disk when they are used.
    progress
        None: a bar on a terminal after one second; True, False; or a function of (finished, total).
    with_theory
        Put the limit beside the draws, as variables `theory_<observable>`.
    on_part
        Called as `on_part(part, finished, total)` a few times per second while the sweep runs. `part` is the result with NaN where tasks
        have not finished; an observable without any finished task is left out. The tasks run in an order that shows the shape of the
        result early: every eighth point, then those between; one draw at all points, then the next. The result is the same.
    absent_as_nan
        Whether an observable that exists at some points only is NaN at the others. By default it is left out of the result, and the
        attribute `left_out` names it. Not allowed together with `store`.

    Returns
    -------
    xarray.Dataset
        Dimensions: swept parameters, then (for draws) `size` and `seed`, then the law's own coordinates. A swept coordinate
        (`times`) is one of these (`time`).

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
    law = law_at_defaults(law)
    check_engine(engine)
    refuse_sweep(law, over, sizes, seeds, in_blocks=store is not None and Store(store).in_blocks)
    if absent_as_nan and store is not None:
        raise ValueError("absent_as_nan = True is not allowed together with a store: leave one of them out")
    plan = replace(plan_sweep(law, over, sizes, seeds, with_theory), absent_as_nan=absent_as_nan)
    parts = None
    if on_part is not None:
        plan = plan.coarse_first()
        parts = _Parts(plan, on_part)
    shelf = _open(store, plan, over)
    run = run_tasks(plan.tasks, engine, shelf.cells if shelf else None, progress, f"sweeping {type(law).__name__}", parts)
    if run.interrupted:
        message = f"stopped after {run.done} of {len(run.cells)} tasks; {_how_to_go_on(store, 'the rest')}"
        raise SweepInterrupted(message, plan.partial(run.cells))
    if run.failures:
        listed = [run.failures[position] for position in sorted(run.failures)]
        message = summary(listed, len(run.cells), _how_to_go_on(store, "the failed ones"))
        raise SweepError(message, listed, plan.partial(run.cells))
    if shelf is not None and shelf.in_blocks:
        return shelf.finish_in_blocks(lambda regions: plan.assemble(run.cells, regions))
    result = plan.assemble(run.cells)
    if shelf is not None:
        shelf.finish(result)
    return result


# -- planning -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SweepPlan:
    """The tasks of a sweep, those of the limit first, and how their cells become one result."""

    theory: Grid | None
    draws: Grid | None
    theory_tasks: list[LawTask]
    draw_tasks: list[LawTask]
    sizes: list[int]
    seeds: list[int]
    absent_as_nan: bool = False

    @property
    def tasks(self) -> list[LawTask]:
        """All of them, those of the limit first."""
        return self.theory_tasks + self.draw_tasks

    @property
    def grid(self) -> Grid:
        """The grid of the draws, or of the limit where there are none."""
        grid = self.draws or self.theory
        assert grid is not None
        return grid

    def coarse_first(self) -> SweepPlan:
        """The same tasks in an order that shows the shape of the result early."""
        return replace(self, theory_tasks=_coarse_first(self.theory_tasks), draw_tasks=_coarse_first(self.draw_tasks))

    def partial(self, cells: Slots) -> xr.Dataset | None:
        """The result of an unfinished run, if it fits into memory."""
        first = next((cell for cell in cells if cell is not None), None)
        small = first is None or len(cells) * first.nbytes <= memory_limit()
        return self.assemble(cells) if small else None

    def assemble(self, cells: Slots, regions: Regions | None = None) -> xr.Dataset:
        """The result, with the versions of limitlab that its cells come from; with `regions` it is written there and only described."""
        split = len(self.theory_tasks)
        beside = BESIDE if self.draws is not None else ""
        limit = None
        if self.theory is not None:
            limit = assemble_theory(self.theory, self.theory_tasks, cells[:split], regions, beside, self.absent_as_nan)
        if self.draws is None:
            assert limit is not None
            return limit
        simulated = assemble_simulation(
            self.draws, self.draw_tasks, cells[split:], self.sizes, self.seeds, regions, self.absent_as_nan
        )
        if limit is None:
            return simulated
        versions = sorted({*simulated.attrs["version"].split(", "), *limit.attrs["version"].split(", ")})
        return beside_theory(simulated, limit).assign_attrs(version=", ".join(versions))


def plan_sweep(law: Law, over: Mapping[str, Any], sizes: Any, seeds: Any, with_theory: bool) -> SweepPlan:
    """The tasks of a sweep, checked; parameters are those of `sweep`."""
    if not isinstance(law, Law):
        raise ValueError(f"law = {law!r} is not a law: give an instance such as limitlab.laws.Ridge(ratio=2.0)")
    if sizes is None:
        if seeds is not None:
            raise ValueError(
                f"seeds = {seeds!r} is given without sizes: give sizes too, or leave seeds out to sweep the limit"
            )
        limit = read_grid(law, over, law.array_parameters())
        return SweepPlan(limit, None, theory_tasks(limit), [], [], [])
    numbers, draws = checked_sizes(sizes), checked_seeds(law.simulation.draws if seeds is None else seeds)
    grid = read_grid(law, over, law.path_parameters())
    for name in {"size", "seed"} & set(grid.names):
        raise ValueError(f"cannot sweep experiments over a parameter called {name!r}: it is a dimension of every such sweep")
    beside = read_grid(law, over, law.array_parameters()) if with_theory else None
    limits = theory_tasks(beside) if beside else []
    return SweepPlan(beside, grid, limits, simulation_tasks(grid, numbers, draws), numbers, draws)


# -- parts of a result --------------------------------------------------------------------------------------------------


class _Parts:
    """Hands out the result so far, every `PART_SECONDS` or more rarely: assembling it takes at most a tenth of the time."""

    def __init__(self, plan: SweepPlan, on_part: OnPart):
        self._plan, self._on_part = plan, on_part
        self._next = 0.0

    def __call__(self, cells: Slots, finished: int) -> None:
        start = time.monotonic()
        if start < self._next or finished == len(cells) or missing_in(cells) == len(cells):
            return
        part = self._plan.partial(cells)
        if part is not None:
            self._on_part(part, finished, len(cells))
        end = time.monotonic()
        self._next = end + max(PART_SECONDS, 9 * (end - start))


def _coarse_first(tasks: list[LawTask]) -> list[LawTask]:
    """Every eighth point of the loops first, then those between; one seed at all points, then the next."""
    points: dict[tuple[int, ...], int] = {}
    turns: list[tuple[int, int, int]] = []
    for number, task in enumerate(tasks):
        loops, seed = (task.place, 0) if task.size is None else (task.place[:-2], task.place[-1])
        point = points.setdefault(loops, len(points))
        level = next(level for level, step in enumerate((8, 4, 2, 1)) if point % step == 0)
        turns.append((seed, level, number))
    return [tasks[number] for _, _, number in sorted(turns)]


# -- the store ---------------------------------------------------------------------------------------------------------


def _open(store: str | os.PathLike[str] | None, plan: SweepPlan, over: Mapping[str, Any]) -> Store | None:
    if store is None:
        return None
    law = plan.grid.law
    swept = {axis.name: _plain_labels(axis.labels) for axis in plan.grid.axes}
    swept |= {name: plain_parameters(law, {name})[name] for name in over if name not in swept}  # coordinates
    shelf = Store(store)
    shelf.open(
        {
            "format": FORMAT,
            "what": "sweep",
            "law": identity(type(law)),
            "revision": law.revision,
            "parameters": {name: value for name, value in plain_parameters(law).items() if name not in swept},
            "over": swept,
            "sizes": plan.sizes,
            "seeds": plan.seeds,
            "with_theory": plan.theory is not None and plan.draws is not None,
            "version": package_version(),
        }
    )
    return shelf


def _plain_labels(labels: Any) -> list[Any]:
    return plain_numbers(labels.tolist()) if labels.dtype.kind == "f" else labels.tolist()


def _how_to_go_on(store: Any, rest: str) -> str:
    if store is None:
        return "the exception's .partial holds the finished ones (give store='name.nc' to be able to go on later)"
    return f"the finished ones are kept in {str(Store(store).home)!r}: the same command runs only {rest}"
