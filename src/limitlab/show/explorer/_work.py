"""The work behind the views, as it is done in a worker process: requests of plain data in, plain arrays out, progress on the way.

A function here takes a `report`, which it calls with a part of its result and with (done, total); everything else is data.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab._core.blas import single_threaded
from limitlab._core.law import Law
from limitlab.lab.grid import Grid, read_grid, simulation_tasks, theory_tasks
from limitlab.lab.store import Cell
from limitlab.lab.tasks import LawTask, TaskFailure, attempt
from limitlab.show.explorer._declared import dimension

Array = NDArray[np.float64]
Report = Callable[[Any, int, int], None]

TELL_EVERY = 0.15
"""Seconds between two parts of a result."""


def curve(report: Report, law: Law, along: str, values: Sequence[float], observables: Sequence[str]) -> dict[str, Any]:
    """The limit along a parameter: `x`, `y` by observable, the stated relative accuracy and what went wrong."""
    grid = read_grid(law, {along: values}, law.array_parameters())
    tasks, dims = theory_tasks(grid), (dimension(type(law), along),)
    x = _positions(grid, along)
    y = {name: np.full(len(x), np.nan) for name in observables}
    error, trouble, remark = 0.0, "", ""
    for done, task, cell in _ran(_coarse_first(tasks)):
        if isinstance(cell, TaskFailure):
            trouble = trouble or f"{cell.where}: {cell.error}"
        else:
            for name in observables:
                _fill(y[name], dims, grid, task, cell, name)
                error = max(error, cell.errors.get(name, 0.0))
            remark = remark or _elsewhere(cell, observables[0], dims)
        if done < len(tasks):
            report({"x": x, "y": y, "accuracy": error, "trouble": trouble, "remark": remark}, done, len(tasks))
    if trouble and len(tasks) == 1:
        raise ValueError(trouble.partition(": ")[2])
    return {"x": x, "y": y, "accuracy": error, "trouble": trouble, "remark": remark}


def experiment(
    report: Report,
    law: Law,
    along: str,
    values: Sequence[float],
    observables: Sequence[str],
    size: int,
    draws: int,
) -> dict[str, Any]:
    """Finite experiments along a parameter: `x`, and by observable the mean and its standard error, as the draws arrive."""
    grid = read_grid(law, {along: values}, law.path_parameters())
    tasks = sorted(
        simulation_tasks(grid, [size], range(draws)), key=lambda task: task.place[-1]
    )  # a draw everywhere, then the next
    x, dims = _positions(grid, along), (dimension(type(law), along),)
    count = np.zeros(len(x))
    total, squares = ({name: np.zeros(len(x)) for name in observables} for _ in range(2))
    trouble = ""

    def found() -> dict[str, Any]:
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = {name: np.where(count > 0, total[name] / count, np.nan) for name in observables}
            spread = {
                name: np.sqrt(np.maximum(squares[name] / count - mean[name] ** 2, 0) / (count - 1)) for name in observables
            }
        error = {name: np.where(count > 1, spread[name], np.nan) for name in observables}
        return {"x": x, "mean": mean, "error": error, "draws": count.copy(), "trouble": trouble}

    for done, task, cell in _ran(tasks):
        if isinstance(cell, TaskFailure):
            trouble = trouble or f"{cell.where}: {cell.error}"
        else:
            here = np.zeros(len(x), dtype=bool)
            for name in observables:
                value = np.full(len(x), np.nan)
                _fill(value, dims, grid, task, cell, name)
                here = ~np.isnan(value)
                total[name] += np.where(here, value, 0.0)
                squares[name] += np.where(here, value, 0.0) ** 2
            count += here
        report(found(), done, len(tasks))
    if not count.any():
        raise ValueError(trouble.partition(": ")[2] or "no experiment could be run here")
    return found()


def phase(
    report: Report, law: Law, x: str, x_values: Sequence[float], y: str, y_values: Sequence[float], observable: str
) -> dict[str, Any]:
    """The limit over two parameters: `z` with one row per value of y."""
    grid = read_grid(law, {x: x_values, y: y_values}, law.array_parameters())
    tasks = theory_tasks(grid)
    xs, ys = _positions(grid, x), _positions(grid, y)
    z, trouble = np.full((len(ys), len(xs)), np.nan), ""
    dims = dimension(type(law), y), dimension(type(law), x)
    for done, task, cell in _ran(_coarse_first(tasks)):
        if isinstance(cell, TaskFailure):
            trouble = trouble or f"{cell.where}: {cell.error}"
        else:
            _fill(z, dims, grid, task, cell, observable)
        if done < len(tasks):
            report({"x": xs, "y": ys, "z": z, "trouble": trouble}, done, len(tasks))
    if not np.isfinite(z).any():
        raise ValueError(trouble.partition(": ")[2] or f"{observable} is nowhere finite here: change the ranges")
    return {"x": xs, "y": ys, "z": z, "trouble": trouble}


def compare(report: Report, law: Law, sizes: Sequence[int], seconds: float) -> dict[str, Any]:
    """The verdict, the error budget and the gaps at every size."""
    from limitlab.lab import compare as run

    result = run(law, sizes=list(sizes), budget=seconds, progress=lambda done, total: report(None, done, total))
    names = [row.observable for row in result.rows]
    gaps = {}
    for name in names:
        gap = np.asarray(result.dataset[f"mean_{name}"] - result.dataset[f"theory_{name}"], dtype=float)
        error = np.asarray(result.dataset[f"error_{name}"], dtype=float)
        flat = gap.reshape(len(sizes), -1)
        worst = int(np.nanargmax(np.abs(flat).max(axis=0))) if np.isfinite(flat).any() else 0
        gaps[name] = (flat[:, worst], error.reshape(len(sizes), -1)[:, worst])
    return {
        "verdict": result.verdict,
        "explanation": result.explanation,
        "draws": result.draws,
        "sizes": list(sizes),
        "rows": [vars(row) for row in result.rows],
        "gaps": gaps,
    }


def plan(report: Report, law: Law, observable: str, wanted: float, along: str, low: float, high: float) -> dict[str, Any]:
    """Every value of a parameter in an interval at which an observable takes the value wanted."""
    from limitlab.errors import UnreachableTarget
    from limitlab.lab import plan as run

    try:
        answer = run(law, {observable: wanted}, along, (low, high))
    except UnreachableTarget as error:
        return {"sentence": str(error), "solutions": [], "best": (error.at, error.best)}
    return {
        "solutions": [float(value) for value in answer["solutions"].values],
        "best": None,
        "sentence": "",
        "observables": {name: float(answer[name]) for name in law.observed() if name in answer and answer[name].ndim == 0},
    }


def forecast(report: Report, name: str, content: bytes, target: str) -> dict[str, Any]:
    """The learning curve of an uploaded table. The file exists only while it is read."""
    from limitlab.applied.forecast import Forecast, ForecastWarning
    from limitlab.applied.forecast.tables import read_table
    from limitlab.show.cli import forecast_words as words
    from limitlab.show.cli.forecasting import default_counts

    with warnings.catch_warnings(record=True) as caught, single_threaded():
        warnings.simplefilter("always", ForecastWarning)
        report(None, 0, 3)
        with tempfile.TemporaryDirectory(prefix="limitlab-") as folder:
            file = Path(folder) / ("table.tsv" if name.lower().endswith(".tsv") else "table.csv")
            file.write_bytes(content)
            table = read_table(file, target, most_rows=2000)
        report(None, 1, 3)
        model = Forecast(
            "auto", ridge="best", intercept=1.0, task="classification" if table.labels else "regression", random_state=0
        )
        model.fit(table.X, table.y)
        report(None, 2, 3)
        found = model.learning_curve(default_counts(len(table.X)), "best", baselines=False)
    remarks = dict.fromkeys(str(entry.message) for entry in caught if issubclass(entry.category, ForecastWarning))
    return {
        "n": found.n.values.astype(float),
        "value": found["value"].values.astype(float),
        "low": found["low"].values.astype(float) if "low" in found else None,
        "high": found["high"].values.astype(float) if "high" in found else None,
        "rows": len(table.X),
        "metric": str(found.attrs["metric"]),
        "sentence": words.level_sentence(found, len(table.X), table, target),
        "notes": [*table.notes, *remarks],
    }


JOBS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "curve": curve,
    "experiment": experiment,
    "phase": phase,
    "compare": compare,
    "plan": plan,
    "forecast": forecast,
}


# -- cells into curves ----------------------------------------------------------------------------------------------------


def throttled(report: Report) -> Report:
    """A report that speaks at most every `TELL_EVERY` seconds."""
    last = [0.0]

    def tell(part: Any, done: int, total: int) -> None:
        now = time.monotonic()
        if now - last[0] >= TELL_EVERY:
            last[0] = now
            report(part, done, total)

    return tell


def _ran(tasks: Sequence[LawTask]) -> Iterator[tuple[int, LawTask, Cell | TaskFailure]]:
    for done, task in enumerate(tasks, 1):
        yield done, task, attempt(task)


def _coarse_first(tasks: Sequence[LawTask]) -> list[LawTask]:
    """The tasks of a grid in an order that shows its shape early: every eighth, then those between."""

    def fineness(position: int) -> int:
        return next(level for level, step in enumerate((8, 4, 2, 1)) if position % step == 0)

    order = sorted(range(len(tasks)), key=lambda position: (fineness(position), position))
    return [tasks[position] for position in order]


def _positions(grid: Grid, along: str) -> Array:
    """The values of a swept parameter, as the law has them."""
    for axis in grid.axes:
        if axis.name == along:
            return np.asarray(axis.labels, dtype=float)
    return np.atleast_1d(np.asarray(getattr(grid.law, along), dtype=float))


def _fill(out: Array, dims: Sequence[str], grid: Grid, task: LawTask, cell: Cell, name: str) -> None:
    """Put an observable of a cell where it belongs in an array over `dims`; of a further dimension its last entry."""
    if name not in cell.values:
        return
    place = dict(zip((axis.name for axis in grid.loop_axes), task.place, strict=False))
    array, own = np.asarray(cell.values[name], dtype=float), list(cell.dims[name])
    for position in reversed(range(len(own))):
        if own[position] not in dims:
            array = array.take(-1, axis=position)
            del own[position]
    free = [dim for dim in dims if dim not in place]
    array = array.transpose([own.index(dim) for dim in free if dim in own])
    out[tuple(place.get(dim, slice(None)) for dim in dims)] = np.expand_dims(
        array, tuple(i for i, dim in enumerate(free) if dim not in own)
    )


def _elsewhere(cell: Cell, name: str, dims: Sequence[str]) -> str:
    """At which point of its further dimensions an observable is shown."""
    further = [dim for dim in cell.dims.get(name, ()) if dim not in dims]
    return ", ".join(f"{dim} = {cell.coords[dim][-1]:g}" if dim in cell.coords else f"the last {dim}" for dim in further)
