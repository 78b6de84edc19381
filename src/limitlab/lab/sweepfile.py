"""Sweep files, which are TOML files that describe a sweep, and estimates of the time of a sweep.

    law = "Ridge"
    sizes = [100, 200]
    seeds = 20
    engine = "processes"
    store = "ridge.nc"

    [parameters]
    noise = 0.5

    [over]
    ratio = "0.1:10:30log"
    ridge = [0.01, 0.1, 1.0]

Only `law` and `[over]` are required. Without `sizes` the limit is swept. Paths are relative to the working directory.
`estimate` runs a few tasks of a sweep in a worker process and extrapolates their time, memory and disk space.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, field_validator
from pydantic_core import ValidationError

from limitlab._core.arguments import explained
from limitlab._core.files import expanded
from limitlab._core.law import Law
from limitlab._core.registry import find_law
from limitlab.errors import Refused, did_you_mean
from limitlab.lab._sweep import plan_sweep, sweep
from limitlab.lab.engines import Engine, check_engine, completed
from limitlab.lab.grid import one_line, read_grid
from limitlab.lab.progress import ProgressOption
from limitlab.lab.store import Cell, Cells, Store
from limitlab.lab.tasks import LawTask, key_of, run

__all__ = ["SweepSpec", "load_sweep", "read_sweep", "run_sweep"]

_UNSET: Any = object()
LONGEST = 10_000_000
"""Largest number of characters of a sweep file."""
TIMED_TASKS = 3
"""Tasks of every size (and of the limit) that `estimate` times."""


class SweepSpec(BaseModel):
    """The validated content of a sweep file. `over` contains lists and ranges in their written form."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    law: str = Field(description="name of the law, or module:Class for your own law, whose file is given by --laws")
    parameters: dict[str, Any] = Field(default_factory=dict, description="parameters that are not swept")
    over: dict[str, list[Any] | str] = Field(min_length=1, description="values or ranges of every swept parameter")
    sizes: StrictInt | list[StrictInt] | None = Field(default=None, description="sizes of the experiments")
    seeds: StrictInt | list[StrictInt] | None = Field(
        default=None, description="number of draws of each experiment, or their seeds"
    )
    engine: StrictInt | str | None = Field(
        default=None, description="serial, threads, processes, a number of workers, or a cluster"
    )
    store: str | None = Field(default=None, min_length=1, description="place of finished tasks and of the result")
    with_theory: StrictBool = Field(default=False, description="add the limit to the draws")

    @field_validator("engine")
    @classmethod
    def _known_engine(cls, engine: int | str | None) -> int | str | None:
        check_engine(engine)
        return engine

    def make_law(self) -> Law:
        """Return the law with the parameters of the file."""
        kind = find_law(self.law)
        try:
            return kind(**self.parameters)
        except ValidationError as error:
            raise Refused(one_line(error)) from None


@explained
def load_sweep(path: str | os.PathLike[str]) -> SweepSpec:
    """Read a sweep file; raise ValueError with a one-line message if it is wrong.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> file = Path(tempfile.mkdtemp()) / "ridge.toml"
    >>> _ = file.write_text('law = "Ridge"\\n[over]\\nratio = "0.5:2:3"\\n')
    >>> load_sweep(file).over
    {'ratio': '0.5:2:3'}
    """
    try:
        with open(expanded(path), encoding="utf-8") as file:
            text = file.read(LONGEST + 1)
    except UnicodeDecodeError:
        raise Refused(f"sweep file {str(path)!r} is not a text file") from None
    except OSError as error:
        raise Refused(f"sweep file {str(path)!r} cannot be read: {error.strerror or error}") from None
    if len(text) > LONGEST:
        raise Refused(
            f"sweep file {str(path)!r} is not allowed: it has more than {LONGEST:,} characters; write ranges in place of lists"
        )
    try:
        return read_sweep(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise Refused(f"sweep file {str(path)!r} is not valid TOML: {error}") from None
    except RecursionError:
        raise Refused(f"sweep file {str(path)!r} cannot be read: its lists or tables are nested too deeply") from None
    except ValueError as error:
        raise Refused(f"sweep file {str(path)!r}: {error}") from None


@explained
def read_sweep(content: Mapping[str, Any]) -> SweepSpec:
    """Return the sweep that a mapping describes.

    The law and the grid are checked before any task runs.

    >>> read_sweep({"law": "Ridge", "over": {"ratio": [0.5]}, "seed": 3})
    Traceback (most recent call last):
        ...
    limitlab.errors.Refused: there is no entry 'seed': did you mean 'seeds'?
    """
    known = SweepSpec.model_fields
    for name in content:
        if name not in known:
            raise Refused(f"there is no entry {name!r}: {did_you_mean(name, known)}")
    try:
        spec = SweepSpec.model_validate(dict(content))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        entry = str(first["loc"][0]) if first["loc"] else "the file"
        if first["type"] == "missing":
            raise Refused(f"the entry {entry!r} is missing ({known[entry].description})") from None
        message = one_line(error)
        reason = (
            message if first["type"] == "value_error" else f"{entry} = {content[entry]!r} is not allowed: {message.lower()}"
        )
        raise Refused(f"{reason} ({known[entry].description})") from None
    read_grid(spec.make_law(), spec.over, ())
    return spec


@explained
def run_sweep(
    spec: SweepSpec | str | os.PathLike[str],
    *,
    engine: Engine = _UNSET,
    store: str | os.PathLike[str] | None = _UNSET,
    progress: ProgressOption = None,
) -> xr.Dataset:
    """Run the sweep that a file describes.

    Parameters
    ----------
    spec
        The result of `load_sweep`, or the path of a sweep file.
    engine, store
        Replacements for the values in the file.
    progress
        As in `limitlab.sweep`.

    Examples
    --------
    >>> spec = read_sweep({"law": "Ridge", "over": {"ratio": [0.5, 2.0]}})
    >>> run_sweep(spec).test_error.dims
    ('ratio',)
    """
    if not isinstance(spec, SweepSpec):
        spec = load_sweep(spec)
    return sweep(
        spec.make_law(),
        spec.over,
        sizes=spec.sizes,
        seeds=spec.seeds,
        engine=spec.engine if engine is _UNSET else engine,
        store=spec.store if store is _UNSET else store,
        progress=progress,
        with_theory=spec.with_theory,
    )


# -- estimates ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    """The estimated time, memory and disk space of a sweep.

    Attributes
    ----------
    cells, done
        The number of cells, and the number of cells that the store contains already.
    timed
        The number of timed cells.
    seconds
        Seconds of one core for all remaining cells together.
    uncertainty
        Standard error of `seconds`, from the spread of the timed cells.
    longest
        Seconds of the longest timed cell.
    each
        Seconds that the driver needs to compute the key of one cell, check the cell and write it.
    start
        Seconds until the first worker has finished its first cell (imports, compilation), beyond the cell itself.
    worker_memory, result_memory, disk
        Bytes of the peak of a worker, of the assembled result and of the store.
    """

    cells: int
    done: int
    timed: int
    seconds: float
    uncertainty: float
    longest: float
    each: float
    start: float
    worker_memory: int
    result_memory: int
    disk: int

    @property
    def core_hours(self) -> float:
        """The core-hours of the remaining cells."""
        return self.seconds / 3600

    def wall(self, workers: int) -> float:
        """Return the wall time in seconds on a number of workers.

        It is the time until the first worker has started, plus the longer of two times. The first is the share of one worker plus the
        longest cell. The second is the time that the driver needs for all cells.

        >>> Estimate(100, 0, 3, 50.0, 1.0, 0.5, 0.01, 2.0, 0, 0, 0).wall(10)
        7.5
        """
        left = self.cells - self.done
        if not left:
            return self.cells * self.each
        share = self.seconds / workers + (self.longest if workers > 1 else 0.0)
        return self.start + max(share, left * self.each)


def estimate(
    law: Law,
    over: Mapping[str, Any],
    sizes: Sequence[int] | int | None = None,
    seeds: Sequence[int] | int | None = None,
    store: str | os.PathLike[str] | None = None,
    with_theory: bool = False,
) -> Estimate:
    """Time a few tasks of a sweep and estimate the time of all tasks; the parameters are those of `limitlab.sweep`."""
    plan = plan_sweep(law, over, sizes, seeds, with_theory)
    left = [task for task in plan.tasks if not _is_stored(task, store)]
    kinds = defaultdict[int | None, list[LawTask]](list)
    for task in left or plan.tasks[:1]:
        kinds[task.size].append(task)
    sample = [(size, task) for size, tasks in kinds.items() for task in _spread(tasks)]
    begun = time.perf_counter()
    # the first task runs twice, because its first run imports and compiles
    tasks = [sample[0][1], *(task for _, task in sample)]
    outcomes = dict[int, tuple[float, int, Cell]]()
    for position, outcome in completed(_timed, tasks, 1):
        if isinstance(outcome, BaseException):
            raise outcome
        outcomes[position] = outcome
    measured = [outcomes[position] for position in range(len(tasks))]
    total = time.perf_counter() - begun
    times = defaultdict[int | None, list[float]](list)
    for (size, _), outcome in zip(sample, measured[1:], strict=True):
        times[size].append(outcome[0])
    seconds = math.fsum(len(kinds[size]) * float(np.mean(run_times)) for size, run_times in times.items())
    variance = sum((len(kinds[s]) * np.std(t, ddof=1)) ** 2 / len(t) for s, t in times.items() if len(t) > 1)
    cells = {size: outcome[2] for (size, _), outcome in zip(sample, measured[1:], strict=True)}
    each, cell_bytes = _driver_cost(sample[0][1], next(iter(cells.values())))
    numbers = sum(len(kinds[size]) * sum(value.nbytes for value in cell.values.values()) for size, cell in cells.items())
    return Estimate(
        cells=len(plan.tasks),
        done=len(plan.tasks) - len(left),
        timed=len(sample),
        seconds=seconds if left else 0.0,
        uncertainty=math.sqrt(variance) if left else 0.0,
        longest=max(max(run_times) for run_times in times.values()),
        each=each,
        start=max(0.0, total - math.fsum(outcome[0] for outcome in measured[1:])),
        worker_memory=max(outcome[1] for outcome in measured),
        result_memory=round(numbers * len(plan.tasks) / max(len(left), 1)),
        disk=len(plan.tasks) * cell_bytes,
    )


def _spread(tasks: Sequence[LawTask]) -> list[LawTask]:
    """Return a few tasks at even distances, including the first and the last."""
    places = sorted({round(place) for place in np.linspace(0, len(tasks) - 1, TIMED_TASKS)})
    return [tasks[place] for place in places]


def _timed(task: LawTask) -> tuple[float, int, Cell]:
    """Run a task in a worker; return its seconds, the peak of memory so far in bytes, and its cell."""
    start = time.perf_counter()
    cell = run(task)
    return time.perf_counter() - start, _peak_memory(), cell


def _peak_memory() -> int:
    if sys.platform == "win32":
        return 0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _driver_cost(task: LawTask, cell: Cell) -> tuple[float, int]:
    """Return the seconds to compute the key of a cell, write it and read it back, and its bytes on disk."""
    with tempfile.TemporaryDirectory() as folder:
        repeats = 5
        start = time.perf_counter()
        for number in range(repeats):
            key = f"{number:02x}" + key_of(task)[2:]
            Cells(folder).write(key, cell, task.content)
            Cells(folder).read(key)
        seconds = (time.perf_counter() - start) / repeats
        return seconds, Cells(folder).path(key).stat().st_size


def _is_stored(task: LawTask, store: str | os.PathLike[str] | None) -> bool:
    return store is not None and Store(store).cells.path(key_of(task)).exists()
