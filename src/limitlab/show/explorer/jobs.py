"""Jobs for the views, and the worker processes that run them.

A job is a function that a worker process runs. Its first argument is the function `report`, which it calls with a part of the result and
with (done, total). Its other arguments and its result are plain data. Every number comes from a function of `limitlab.lab` or
`limitlab.applied`. The jobs select the data that the page draws, and the page computes nothing.
"""

from __future__ import annotations

import asyncio
import functools
import math
import pickle
import tempfile
import time
import traceback
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic_core import ValidationError

from limitlab import lab
from limitlab._core.cost import check_draw
from limitlab._core.law import Law
from limitlab._core.lazy import index
from limitlab.errors import ConvergenceError, NotComputable, Refused, TooCostly, UnreachableTarget
from limitlab.lab.engines import CappedWorkers, WorkerDied, available_cores
from limitlab.lab.grid import one_line
from limitlab.show.explorer._address import dimension
from limitlab.show.explorer._uploads import checked_table

Array = NDArray[np.float64]
Report = Callable[[Any, int, int], None]

TELL_EVERY = 0.1
"""Seconds between two reports of progress."""
PATIENCE = 0.5
"""Seconds before a newer curve stops the current one, so that a moving slider does not restart a worker at every step."""
LIVE = ("headline", "curve")
"""Jobs that run again at every step of a slider. The experiments of a headline view are another job."""
MOST_ROWS = 4000
"""Largest number of rows of an uploaded table that a forecast uses."""
FORECAST_SECONDS = 30.0
"""Time after which a forecast starts no further optional part."""


# -- jobs ---------------------------------------------------------------------------------------------------------------------


def curve(report: Report, law: Law, along: str, values: Sequence[float], observables: Sequence[str]) -> dict[str, Any]:
    """Return the limit along a parameter.

    The result contains `x`, `y` by observable, the numerical error, and failures and further dimensions in words.
    """

    def drawn(limit: xr.Dataset, trouble: str) -> dict[str, Any]:
        dims = (dimension(type(law), along),)
        errors = [limit[name].attrs.get("numerical_error", 0.0) for name in observables if name in limit]
        return {
            "x": np.asarray(limit[dims[0]].values, dtype=float),
            "y": {name: _over(limit, name, dims) for name in observables},
            "accuracy": max([0.0, *errors]),
            "trouble": trouble,
            "remark": _place_in_further_dimensions(limit, observables[0], dims),
        }

    return _swept(report, drawn, law, {along: values})


def headline_points(report: Report, law: Law, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the headline view of a law with its experiments."""
    return headline(report, law, changes, points=True)


def experiment(
    report: Report, law: Law, along: str, values: Sequence[float], observables: Sequence[str], size: int, draws: int
) -> dict[str, Any]:
    """Return finite experiments along a parameter, with mean, standard error and limit by observable."""
    check_draw(law, size)
    limit = curve(lambda part, done, total: None, law, along, values, observables)["y"]

    def drawn(result: xr.Dataset, trouble: str) -> dict[str, Any]:
        dims, result = (dimension(type(law), along),), result.squeeze("size")
        runs = {name: _over(result, name, (*dims, "seed")) for name in observables}
        means = {name: _mean_and_error(run) for name, run in runs.items()}
        return {
            "x": np.asarray(result[dims[0]].values, dtype=float),
            "mean": {name: mean for name, (mean, _) in means.items()},
            "error": {name: error for name, (_, error) in means.items()},
            "draws": np.max([np.isfinite(run).sum(axis=1) for run in runs.values()], axis=0),
            "limit": limit,
            "trouble": trouble,
        }

    points = _swept(report, drawn, law, {along: values}, sizes=size, seeds=draws)
    if not points["draws"].any():
        raise Refused(points["trouble"] or "no experiment could be run at these parameters")
    return points


def headline(report: Report, law: Law, changes: Mapping[str, Any], points: bool = False) -> dict[str, Any]:
    """Return the headline view of a law with changed parameters, with its experiments if `points` is true."""
    from limitlab.plotting.headline import headline_view

    return {"view": headline_view(type(law), points=points, **changes)}


def phase(
    report: Report, law: Law, x: str, x_values: Sequence[float], y: str, y_values: Sequence[float], observable: str
) -> dict[str, Any]:
    """Return the limit over two parameters, where `z` has one row per value of y."""

    def drawn(limit: xr.Dataset, trouble: str) -> dict[str, Any]:
        dims = dimension(type(law), y), dimension(type(law), x)
        ys, xs = (np.asarray(limit[dim].values, dtype=float) for dim in dims)
        return {"x": xs, "y": ys, "z": _over(limit, observable, dims), "trouble": trouble}

    diagram = _swept(report, drawn, law, {x: x_values, y: y_values})
    if not np.isfinite(diagram["z"]).any():
        raise Refused(diagram["trouble"] or f"{observable} is not finite at any point: change the ranges")
    return diagram


def compare(report: Report, law: Law, sizes: Sequence[int], seconds: float) -> dict[str, Any]:
    """Return the verdict, the error budget, and the largest gap of every observable at every size."""
    result = lab.compare(law, sizes=list(sizes), budget=seconds, progress=lambda done, total: report(None, done, total))
    gaps = {}
    for name in (row.observable for row in result.rows):
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
    """Return every value of a parameter in an interval for which an observable has the target value."""
    try:
        answer = lab.plan(law, {observable: wanted}, along, (low, high))
    except UnreachableTarget as error:
        return {"sentence": str(error), "solutions": [], "best": (error.at, error.best)}
    return {
        "solutions": [float(value) for value in answer["solutions"].values],
        "best": None,
        "sentence": "",
        "observables": {name: float(answer[name]) for name in law.observed() if name in answer and answer[name].ndim == 0},
    }


def forecast(report: Report, name: str, content: bytes, target: str) -> dict[str, Any]:
    """Return the learning curve of an uploaded table. The file is deleted before this function returns."""
    from limitlab.applied.forecast import forecast_study

    parts: list[str] = []

    def tell(words: str) -> None:
        report(None, len(parts), 4)  # the study has four parts
        parts.append(words)

    with tempfile.TemporaryDirectory(prefix="limitlab-") as folder:
        file = Path(folder) / ("table.tsv" if name.lower().endswith(".tsv") else "table.csv")
        file.write_bytes(content)
        study = forecast_study(file, target, rows=MOST_ROWS, seconds=FORECAST_SECONDS, progress=tell)
    curve_of_study, checks = study.curve, study.checks
    sentences = study.sentences()
    measured = {"mse": "test_error", "error": "classification_error"}.get(str(curve_of_study.attrs["metric"]), "")
    points = None
    if checks is not None and measured in checks:
        values, errors = checks[measured].values[:, 0], checks[f"{measured}_standard_error"].values[:, 0]
        points = {"n": checks.n.values.astype(float), "value": values, "error": np.where(np.isfinite(errors), errors, 0.0)}
    return {
        "n": curve_of_study.n.values.astype(float),
        "value": curve_of_study["value"].values.astype(float),
        "low": curve_of_study["low"].values.astype(float) if "low" in curve_of_study else None,
        "high": curve_of_study["high"].values.astype(float) if "high" in curve_of_study else None,
        "beyond": curve_of_study["extrapolated"].values.astype(bool),
        "band": float(curve_of_study.attrs.get("band", 0.9)),
        "real_fits": points,
        "rows": len(study.table.X),
        "metric": str(curve_of_study.attrs["metric"]),
        "sentence": " ".join(sentences),
        "sentences": sentences,
        "warnings": list(study.warnings),
        "notes": list(study.notes),
    }


def table(report: Report, name: str, content: bytes, megabytes: float) -> dict[str, Any]:
    """Return the names of the columns of an uploaded table."""
    return {"columns": checked_table(name, content, megabytes)}


JOBS: Mapping[str, Callable[..., dict[str, Any]]] = {
    "headline": headline,
    "headline_points": headline_points,
    "curve": curve,
    "experiment": experiment,
    "phase": phase,
    "compare": compare,
    "plan": plan,
    "table": table,
    "forecast": forecast,
}


def _swept(
    report: Report, drawn: Callable[[xr.Dataset, str], dict[str, Any]], law: Law, over: Mapping[str, Any], **draws: Any
) -> dict[str, Any]:
    """Return a sweep in the form of `drawn`. If some of its tasks fail, the result contains the others and the first error."""

    def on_part(part: xr.Dataset, done: int, total: int) -> None:
        report(drawn(part, ""), done, total)

    try:
        return drawn(lab.sweep(law, over, **draws, progress=False, on_part=on_part, absent_as_nan=True), "")
    except lab.SweepError as error:
        first = error.failures[0]
        if error.partial is None or not error.partial.data_vars:
            raise Refused(first.error.partition(": ")[2] or first.error) from None
        return drawn(error.partial, f"{first.where}: {first.error}")


def _over(result: xr.Dataset, name: str, dims: Sequence[str]) -> Array:
    """Return an observable as an array over these dimensions, at the last entry of further dimensions.

    Missing values are NaN.
    """
    if name not in result:
        return np.full([result.sizes[dim] for dim in dims], np.nan)
    values = result[name]
    values = values.isel({dim: -1 for dim in values.dims if dim not in dims})
    values = values.expand_dims({dim: result.sizes[dim] for dim in dims if dim not in values.dims})
    return np.asarray(values.transpose(*dims).values, dtype=float)


def _mean_and_error(runs: Array) -> tuple[Array, Array]:
    """Return mean and standard error over the last axis, without missing entries. They are NaN if there are too few entries."""
    known = ~np.isnan(runs)
    count = known.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known, runs, 0.0).sum(axis=-1) / count
        squares = (np.where(known, runs - mean[..., None], 0.0) ** 2).sum(axis=-1)
        error = np.where(count > 1, np.sqrt(squares / (count - 1) / count), np.nan)
    return mean, error


def _place_in_further_dimensions(result: xr.Dataset, name: str, dims: Sequence[str]) -> str:
    """Return the point of the further dimensions at which `_over` shows an observable, in words."""
    further = [str(dim) for dim in result[name].dims if dim not in dims] if name in result else []
    return ", ".join(f"{dim} = {float(result[dim][-1]):g}" if dim in result.coords else f"the last {dim}" for dim in further)


# -- workers ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Caps:
    """The limits of the explorer.

    Attributes
    ----------
    seconds
        Longest time of a job.
    megabytes
        Largest memory of a worker, beyond its initial memory (if the operating system can limit it).
    upload_megabytes
        Largest size of an uploaded file.
    workers
        Number of jobs that run at the same time. Further jobs are queued. 0 means one per core, at least 4.
    visitors
        Largest number of pages that are open at the same time.
    """

    seconds: float = 120.0
    megabytes: int = 2048
    upload_megabytes: float = 5.0
    workers: int = 0
    visitors: int = 50

    def __post_init__(self) -> None:
        least = {"seconds": 1.0, "megabytes": 64, "upload_megabytes": 0.001, "workers": 0, "visitors": 1}
        for name, bound in least.items():
            if not getattr(self, name) >= bound:
                raise Refused(f"{name} = {getattr(self, name)} is not allowed: must be at least {bound:g}")


@dataclass(frozen=True)
class Message:
    """The state of a job, which is "waiting" (for a worker), "started", "part" (of a result), "result" or "refused" (an error)."""

    kind: Literal["waiting", "started", "part", "result", "refused"]
    value: Any = None
    done: int = 0
    total: int = 0
    seconds: float = 0.0


class Pool:
    """The workers of all visitors, for an event loop.

    Parameters
    ----------
    caps
        Limits of every job.

    Examples
    --------
    >>> async def first(pool):
    ...     return [message.kind async for message in pool.run("curve", law=None)][-1]
    >>> pool = Pool(Caps(workers=1))
    >>> asyncio.run(first(pool))
    'refused'
    >>> pool.close()
    """

    def __init__(self, caps: Caps | None = None):
        self.caps = caps if caps is not None else Caps()
        modules = [*dict.fromkeys(index()["laws"].values()), __name__]
        workers = self.caps.workers or max(4, available_cores())
        self.workers = CappedWorkers(workers, self.caps.megabytes, preload=modules)
        self.visits: dict[object, Any] = {}
        """The open pages, with the contexts of their sessions."""

    def warm(self) -> None:
        """Start the process that workers are forked from, and the first worker."""
        self.workers.warm()

    async def run(self, job: str, /, **request: Any) -> AsyncIterator[Message]:
        """Run a job. Closing the iteration or cancelling its task cancels the job and ends its worker process."""
        loop, messages = asyncio.get_running_loop(), asyncio.Queue[Message | None]()

        def from_a_thread(message: Message | None) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(messages.put_nowait, message)

        if self.workers.unfinished >= self.workers.workers:
            yield Message("waiting")
        try:
            future = self.workers.submit_with_parts(_answer, from_a_thread, job, request, self.caps.megabytes)
        except (ValueError, TypeError, AttributeError, pickle.PicklingError) as error:  # the request cannot be pickled
            yield Message("refused", f"the explorer cannot compute this: {error}")
            return
        future.add_done_callback(lambda done: from_a_thread(None))
        end = math.inf
        try:
            while True:
                left = None if end == math.inf else max(end - loop.time(), 0.0)
                message = await asyncio.wait_for(messages.get(), left)
                if message is None:
                    yield self._last(future)
                    return
                if message.kind == "started":
                    end = loop.time() + self.caps.seconds
                else:
                    yield message
        except TimeoutError:
            words = f"stopped after {self.caps.seconds:g} s, the limit of this explorer: make the computation smaller, or use Python"
            yield Message("refused", words)
        finally:
            future.cancel()

    def _last(self, future: Future[Message]) -> Message:
        """Return the last message of a job."""
        try:
            return future.result(timeout=0)
        except (WorkerDied, CancelledError):
            words = f"the computation needs more than {self.caps.megabytes} MB, or ended unexpectedly: make it smaller"
            return Message("refused", words)
        except Exception as error:
            return Message("refused", sentence(error))

    def close(self) -> None:
        """End all workers."""
        self.workers.shutdown(wait=False, cancel_futures=True)


# -- the jobs of one page -----------------------------------------------------------------------------------------------------


@dataclass
class Job:
    """A request and the function for its messages."""

    name: str
    request: dict[str, Any]
    tell: Callable[[Message], None]
    began: float = field(default_factory=time.monotonic)


class Runner:
    """Runs the jobs of one page.

    Parameters
    ----------
    pool
        The workers that run the jobs.
    on_running
        Function that is called with (running, done, total) when a job starts, advances and ends.
    document
        The Bokeh document of the page, whose lock a change needs. None outside a server.
    """

    def __init__(self, pool: Pool, on_running: Callable[..., None], document: Any = None):
        self._pool, self._on_running, self._document = pool, on_running, document
        self._task: asyncio.Task[None] | None = None
        self._job: Job | None = None
        self._next: Job | None = None

    @property
    def running(self) -> bool:
        """Whether a job is running."""
        return self._task is not None and not self._task.done()

    def start(self, name: str, tell: Callable[[Message], None], /, **request: Any) -> None:
        """Start a job in place of the current job. A fast curve is finished first."""
        job = Job(name, request, tell)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # in a script no page is served, so the job runs in this process
            self._job = job
            asyncio.run(self._follow(job))
            return
        if self.running and self._job is not None and self._job.name == name and name in LIVE:
            left = PATIENCE - (time.monotonic() - self._job.began)
            if left > 0:
                self._next = job
                loop.call_later(left, self._hurry, self._job)
                return
        self._stop()
        self._begin(job)

    def cancel(self) -> None:
        """Stop the current job at the request of the visitor, with a message."""
        job, self._next = self._job if self.running else None, None
        self._stop()
        if job is not None:
            self._on_running(False)
            job.tell(Message("refused", "cancelled"))

    def close(self) -> None:
        """Stop the job at the end of a visit."""
        self._next = None
        self._stop()

    def _begin(self, job: Job) -> None:
        job.began = time.monotonic()
        self._job = job
        self._task = asyncio.get_running_loop().create_task(self._follow(job))

    def _stop(self) -> None:
        if self.running and self._task is not None:
            self._task.cancel()
        self._task, self._job = None, None

    def _hurry(self, slow: Job) -> None:
        """Replace a slow curve by the newer one."""
        if self._job is slow and self._next is not None:
            job, self._next = self._next, None
            self._stop()
            self._begin(job)

    async def _follow(self, job: Job) -> None:
        stream = self._pool.run(job.name, **job.request)
        try:
            self._later(job, lambda: self._on_running(True))
            async for message in stream:
                self._later(job, functools.partial(self._heard, job, message))
        finally:
            await stream.aclose()  # type: ignore[attr-defined]
        self._later(job, self._follow_up)

    def _follow_up(self) -> None:
        """Start the job that was queued behind the finished one."""
        if self._next is not None:
            job, self._next = self._next, None
            self._begin(job)

    def _heard(self, job: Job, message: Message) -> None:
        if message.kind in ("result", "refused"):
            self._on_running(False)
        else:
            self._on_running(True, message.done, message.total)
        job.tell(message)

    def _later(self, job: Job, action: Callable[[], None]) -> None:
        """Change the page with its lock and in the order of the messages. A stopped job changes nothing."""

        def act() -> None:
            if self._job is job:
                action()

        if self._served():
            self._document.add_next_tick_callback(act)
        else:
            act()

    def _served(self) -> bool:
        return self._document is not None and self._document.session_context is not None


# -- in a worker process ------------------------------------------------------------------------------------------------------


def _answer(send: Callable[[Message], None], job: str, request: dict[str, Any], megabytes: int) -> Message:
    """Run a job in a worker process; `send` is called with its parts, at most once per `TELL_EVERY` seconds."""
    send(Message("started"))
    began = last = time.monotonic()

    def report(part: Any, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if part is not None or now - last >= TELL_EVERY:
            last = now
            send(Message("part", part, done, total, now - began))

    try:
        value = JOBS[job](report, **request)
    except MemoryError:
        return Message(
            "refused", f"the computation needs more than {megabytes} MB, the limit of this explorer: make it smaller"
        )
    except Exception as error:
        return Message("refused", sentence(error))
    return Message("result", value, seconds=time.monotonic() - began)


def sentence(error: Exception) -> str:
    """Return the message of an error for a visitor, or a request to report the error if it is not about the input.

    >>> sentence(ValueError("ratio = 0 is not allowed"))
    'ratio = 0 is not allowed'
    """
    if isinstance(error, ValidationError):
        return one_line(error)
    if isinstance(error, (ValueError, NotImplementedError, ConvergenceError, NotComputable, FloatingPointError)):
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return lines[0].removeprefix(f"{TooCostly.__name__}: ") if lines else type(error).__name__
    traceback.print_exception(error)
    return f"this failed ({type(error).__name__}); please report it, and use other parameters in the meantime"
