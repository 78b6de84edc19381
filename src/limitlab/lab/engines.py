"""Engines, which decide where tasks run: in this process, in threads, in worker processes, or on a cluster.

`concurrent.futures.Executor` is the one interface: pools of limitlab, any executor of the user, and a Dask client through its
`get_executor()`. An engine changes when and where a task runs, never its result. A cluster may also be given by its name:

    "tcp://10.0.0.5:8786"   a scheduler that is running already (tls:// and ws:// likewise)
    "local-cluster"         a scheduler and one worker per core on this machine; "local-cluster:2" for two workers
    "slurm:FILE"            workers as jobs of Slurm, described by a TOML file (`SlurmFile`)

A cluster that is given by its name is opened for one run and closed after it. If the scheduler loses workers, Dask runs their tasks
elsewhere. If the scheduler is gone or has no workers left, `EngineError` is raised within seconds.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import logging
import multiprocessing
import os
import pickle
import queue
import signal
import sys
import threading
import time
import tomllib
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from limitlab._core.blas import single_threaded
from limitlab.errors import did_you_mean

__all__ = ["EngineError"]

T = TypeVar("T")
R = TypeVar("R")
Engine = Any
"""None, "serial", "threads", "processes", a number of worker processes, an Executor, a Dask client, or the name of a cluster:
the address of a Dask scheduler, "local-cluster", "slurm:FILE"."""

Results = Generator[tuple[int, R | BaseException], None, None]

NAMES = ("serial", "threads", "processes")
FOREIGN_WINDOW = 4096
"""Tasks that an executor with an unknown number of workers gets at once."""

CHECK_SECONDS = 2.0
"""Seconds without a finished task after which the cluster is asked whether it still exists."""
SCHEMES = ("tcp://", "tls://", "ws://", "wss://", "ucx://", "inproc://")
LOCAL, SLURM = "local-cluster", "slurm:"
CONNECT_SECONDS = 5.0
"""How long a scheduler may take to answer."""
WORKER_SECONDS = 15.0
"""How long a scheduler may be without any worker before an error is raised; a Slurm file has its own number."""
RETRIES = 3
"""How often a task that did not reach its end for no fault of its own is tried again."""

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

_FOR_LIFE = ExitStack()


class EngineError(RuntimeError):
    """The engine itself failed, not a task."""


class WorkerDied(RuntimeError):
    """A worker process ended in the middle of a task."""


def completed(function: Callable[[T], R], tasks: Sequence[T], engine: Engine = None) -> Results[R]:
    """Run tasks and yield (position, result) in the order in which they finish; an exception is yielded, not raised.

    Closing the generator (also by an interrupt) cancels what has not started and ends the worker processes it started.

    Parameters
    ----------
    function
        The function of a task; for processes and clusters a function of a module.
    tasks
        The tasks.
    engine
        See `Engine`.

    Examples
    --------
    >>> sorted(completed(abs, [-1, 2, -3], engine="threads"))
    [(0, 1), (1, 2), (2, 3)]
    """
    check_engine(engine)
    if engine is None or engine == "serial":
        return _serially(function, tasks)
    if engine == "threads":
        return _on_threads(function, tasks)
    if names_a_cluster(engine):
        _check_pickles(tasks)
        return _on_cluster(function, tasks, engine)
    if isinstance(engine, (int, str)):
        workers = min(available_cores() if isinstance(engine, str) else engine, len(tasks))
        _check_pickles(tasks)
        return _on_processes(function, tasks, max(workers, 1))
    if hasattr(engine, "get_executor"):
        return _on_client(function, tasks, engine)
    return _on_executor(function, tasks, engine)


def check_engine(engine: Engine) -> None:
    """Raise ValueError if a value is not an engine.

    >>> check_engine("proceses")
    Traceback (most recent call last):
        ...
    ValueError: engine = 'proceses' is not known: did you mean 'processes'?
    """
    if engine is None or (isinstance(engine, str) and engine in NAMES):
        return
    if names_a_cluster(engine):
        check_cluster(engine)
        return
    if isinstance(engine, str):
        raise ValueError(f"engine = {engine!r} is not known: {did_you_mean(engine, (*NAMES, LOCAL))}")
    if isinstance(engine, int) and not isinstance(engine, bool):
        if engine < 1:
            raise ValueError(f"engine = {engine} is not allowed: a number of worker processes must be at least 1")
        return
    if isinstance(engine, type) or not (callable(getattr(engine, "submit", None)) or hasattr(engine, "get_executor")):
        raise ValueError(
            f"engine = {engine!r} is not allowed: give 'serial', 'threads', 'processes', a number of worker processes, "
            "a concurrent.futures.Executor, a Dask client or the name of a cluster"
        )


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# -- the engines --------------------------------------------------------------------------------------------------------


def _serially(function: Callable[[T], R], tasks: Sequence[T]) -> Results[R]:
    for position, task in enumerate(tasks):
        try:
            result: R | BaseException = function(task)
        except Exception as error:
            result = error
        yield position, result


def _on_threads(function: Callable[[T], R], tasks: Sequence[T]) -> Results[R]:
    workers = available_cores()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="limitlab")
    try:
        yield from _drain(pool, function, tasks, range(len(tasks)), 2 * workers)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _on_cluster(function: Callable[[T], R], tasks: Sequence[T], engine: str) -> Results[R]:
    """Run tasks on a cluster that is given by its name and opened for this run."""
    with opened(engine, available_cores()) as client:
        yield from _on_client(function, tasks, client)


def _on_client(function: Callable[[T], R], tasks: Sequence[T], client: Any) -> Results[R]:
    """Run tasks on a Dask client, which is left open. Only the end of the whole cluster ends the run."""
    yield from _on_executor(function, tasks, executor_of(client), watch(client))


def _on_executor(
    function: Callable[[T], R], tasks: Sequence[T], executor: Executor, check: Callable[[], None] | None = None
) -> Results[R]:
    """Run tasks on an executor of the user, which is left open."""
    lost, waiting = yield from _drain(executor, function, tasks, range(len(tasks)), FOREIGN_WINDOW, check)
    for position in (*lost, *waiting):
        yield position, WorkerDied("the executor broke down before this task was finished")


def _on_processes(function: Callable[[T], R], tasks: Sequence[T], workers: int) -> Results[R]:
    """Run tasks in worker processes. When one dies, the tasks in flight are run again one at a time: only a task that kills its worker
    by itself has failed."""
    batches: deque[tuple[Sequence[int], int]] = deque([(range(len(tasks)), 2 * workers)])
    while batches:
        positions, window = batches.popleft()
        with _process_pool(workers) as pool:
            lost, waiting = yield from _drain(pool, function, tasks, positions, window)
        if waiting:
            batches.appendleft((waiting, window))
        if len(lost) == 1:
            yield lost[0], WorkerDied("the worker process died while running this task (killed, or out of memory)")
        elif lost:
            batches.appendleft((lost, 1))


def _drain(
    executor: Executor,
    function: Callable[[T], R],
    tasks: Sequence[T],
    positions: Sequence[int],
    window: int,
    check: Callable[[], None] | None = None,
) -> Generator[tuple[int, R | BaseException], None, tuple[list[int], list[int]]]:
    """Run tasks, at most `window` at a time, and yield their results.

    Return the tasks that were in flight when the executor broke, and those that had not started. While no task finishes, `check` is
    called every `CHECK_SECONDS`; it raises an error if no task will finish.
    """
    waiting, in_flight, lost = deque(positions), dict[Future[R], int](), list[int]()
    finished: queue.SimpleQueue[Future[R]] = queue.SimpleQueue()
    broken = False
    try:
        while in_flight or (waiting and not broken):
            while waiting and not broken and len(in_flight) < window:
                try:
                    future = executor.submit(function, tasks[waiting[0]])
                except BrokenExecutor:
                    broken = True
                    break
                in_flight[future] = waiting.popleft()
                future.add_done_callback(finished.put)
            if not in_flight:
                break
            future = _next_finished(finished, check)
            if check is not None and future.cancelled():
                check()  # a scheduler that ends cancels its tasks
            position = in_flight.pop(future)
            error: BaseException | None = CancelledTask("cancelled") if future.cancelled() else future.exception()
            if isinstance(error, BrokenExecutor):
                broken = True
                lost.append(position)
            else:
                yield position, future.result() if error is None else error
    finally:
        for future in in_flight:
            future.cancel()
    return sorted(lost), list(waiting)


def _next_finished(finished: queue.SimpleQueue[Future[R]], check: Callable[[], None] | None) -> Future[R]:
    while check is not None:
        try:
            return finished.get(timeout=CHECK_SECONDS)
        except queue.Empty:
            check()
    return finished.get()


class CancelledTask(RuntimeError):
    """A task was cancelled from outside."""


# -- worker processes ---------------------------------------------------------------------------------------------------


class _Workers(ProcessPoolExecutor):
    """A pool whose workers, which are started when they are first needed, ignore Ctrl-C: the parent process handles it."""

    def submit(self, function: Callable[..., R], /, *arguments: Any, **keywords: Any) -> Future[R]:
        if not hasattr(signal, "pthread_sigmask"):
            return super().submit(function, *arguments, **keywords)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a new process inherits blocked signals
        try:
            return super().submit(function, *arguments, **keywords)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _process_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """A pool whose workers end with this block and with this process, even if it is killed.

    Every worker holds the reading end of a pipe whose writing end only this process has. When that closes, be it here or
    because this process is gone, the workers read the end of the file and exit. They are started afresh ("spawn"), because
    a fork of a process with threads (JAX, BLAS) may hang.
    """
    reading, writing = multiprocessing.Pipe(duplex=False)
    pool = _Workers(workers, multiprocessing.get_context("spawn"), _prepare_worker, (reading,))
    try:
        _wait_until_ready(pool)
        yield pool
    except BaseException:
        writing.close()  # the workers exit now, in the middle of their tasks
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        writing.close()
        reading.close()


def _wait_until_ready(pool: ProcessPoolExecutor) -> None:
    try:
        pool.submit(os.getpid).result()
    except BrokenExecutor:
        raise EngineError(
            "the worker processes could not start: a script that sweeps with processes must do so under "
            "`if __name__ == '__main__':` (or use engine='threads')"
        ) from None


def _prepare_worker(lifeline: Connection) -> None:
    """Prepare a worker process: one thread per library, Ctrl-C is ignored, and the worker ends with its parent."""
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    _keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_at_end_of, args=(lifeline,), daemon=True).start()
    _FOR_LIFE.enter_context(single_threaded())


def _keep_freed_memory() -> None:
    """Keep freed arrays of up to 32 MB in the process: returning and requesting them takes 2 % of the time of a worker (glibc only)."""
    if sys.platform == "linux" and (set_option := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        trim, own_mapping = -1, -3  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
        set_option(trim, 2**27)
        set_option(own_mapping, 2**25)


def _exit_at_end_of(lifeline: Connection) -> None:
    try:
        lifeline.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)


def _check_pickles(tasks: Sequence[Any]) -> None:
    """Raise ValueError, before any worker starts, if tasks cannot be pickled."""
    law = getattr(tasks[0], "law", None) or (tasks[0] if tasks else None)
    remedy = "define the law in a module of its own, or use engine='threads'"
    name = type(law).__name__
    main = sys.modules.get("__main__")
    if type(law).__module__ == "__main__" and not hasattr(main, "__file__"):
        raise ValueError(f"{name} cannot be sent to worker processes: it is defined in an interactive session; {remedy}")
    try:
        pickle.dumps(law)
    except Exception as error:
        reason = str(error).split("\n")[0]
        raise ValueError(f"{name} cannot be sent to worker processes ({reason}); {remedy}") from None


# -- clusters -----------------------------------------------------------------------------------------------------------


class SlurmFile(BaseModel):
    """The content of the file of `slurm:FILE`: the properties of one job, and the number of jobs.

    >>> SlurmFile(jobs=20, cores=8, memory="32GB", queue="cpu").arguments()["processes"]
    8
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    jobs: int = Field(default=1, ge=1, description="number of Slurm jobs")
    cores: int = Field(ge=1, description="cores of one job; each is a worker of one thread")
    memory: str = Field(pattern=r"^\d+(\.\d+)?\s*[kKMGT]i?B$", description="memory of one job, such as 32GB")
    walltime: str = Field(
        default="01:00:00", pattern=r"^(\d+-)?\d{1,2}:\d{2}(:\d{2})?$", description="longest time of one job, HH:MM:SS"
    )
    queue: str | None = Field(default=None, description="partition")
    account: str | None = Field(default=None, description="account that is charged")
    interface: str | None = Field(default=None, description="network interface of the nodes, such as ib0")
    python: str | None = Field(default=None, description="the python of the environment on the nodes")
    folder: str | None = Field(default=None, description="scratch folder of the workers on the nodes")
    logs: str | None = Field(default=None, description="folder for the logs of the jobs")
    directives: list[str] = Field(default_factory=list, description="further #SBATCH lines, such as --constraint=avx512")
    before: list[str] = Field(default_factory=list, description="shell lines that run before a worker starts")
    wait: float = Field(default=600.0, gt=0, description="seconds to wait for the first worker")

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `dask_jobqueue.SLURMCluster`: one worker process per core, libraries limited to one thread."""
        pinned = [f"export {name}=1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")]
        arguments = dict(
            cores=self.cores,
            processes=self.cores,
            memory=self.memory,
            walltime=self.walltime,
            queue=self.queue,
            account=self.account,
            interface=self.interface,
            python=self.python,
            local_directory=self.folder,
            log_directory=self.logs,
            job_extra_directives=self.directives,
            job_script_prologue=[*pinned, *self.before],
        )
        return {name: value for name, value in arguments.items() if value is not None}


def read_slurm(path: str | Path) -> SlurmFile:
    """Return the content of a Slurm file; raise ValueError in one line if it is wrong."""
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"Slurm file {str(path)!r} cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"Slurm file {str(path)!r} is not valid TOML: {error}") from None
    known = SlurmFile.model_fields
    for name in content:
        if name not in known:
            raise ValueError(f"Slurm file {str(path)!r}: there is no entry {name!r}: {did_you_mean(name, known)}")
    try:
        return SlurmFile.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        entry = str(first["loc"][0])
        said = "is missing" if first["type"] == "missing" else f"= {content[entry]!r} is not allowed: {first['msg'].lower()}"
        raise ValueError(f"Slurm file {str(path)!r}: the entry {entry!r} {said} ({known[entry].description})") from None


def names_a_cluster(engine: Any) -> bool:
    """Return whether an engine is the name of a cluster.

    >>> names_a_cluster("local-cluster:2"), names_a_cluster("processes")
    (True, False)
    """
    return isinstance(engine, str) and (engine.startswith((*SCHEMES, SLURM)) or engine.partition(":")[0] == LOCAL)


def check_cluster(engine: str) -> None:
    """Raise ValueError for a name that cannot be a cluster, before anything is started."""
    if engine.startswith(SLURM):
        read_slurm(engine.removeprefix(SLURM))
    elif engine.startswith(SCHEMES):
        address = engine.partition("://")[2]
        if engine.startswith(("tcp", "tls", "ucx")) and not address.rpartition(":")[2].isdecimal():
            raise ValueError(
                f"engine = {engine!r} is not allowed: a scheduler's address ends in a port, such as tcp://host:8786"
            )
    else:
        _local_workers(engine)
    if importlib.util.find_spec("distributed") is None:
        raise ValueError(f"engine = {engine!r} needs Dask: pip install 'limitlab[cluster]'")


def _local_workers(engine: str) -> int | None:
    number = engine.partition(":")[2]
    if engine != LOCAL and (not number.isdecimal() or int(number) < 1):
        raise ValueError(f"engine = {engine!r} is not allowed: write {LOCAL}, or {LOCAL}:2 for two workers")
    return int(number) if number else None


@contextmanager
def opened(engine: str, cores: int) -> Iterator[Any]:
    """Open a client of the cluster of this name, with at least one worker; at the end it is closed with all that was started."""
    dask: Any = importlib.import_module("distributed")
    with ExitStack() as stack:
        patience = WORKER_SECONDS
        if engine.startswith(SLURM):
            wanted = read_slurm(engine.removeprefix(SLURM))
            target, patience = stack.enter_context(_slurm_cluster(wanted)), wanted.wait
            target.scale(jobs=wanted.jobs)
        elif engine.startswith(SCHEMES):
            target = engine
        else:
            workers = _local_workers(engine) or cores
            target = stack.enter_context(
                dask.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address=None,
                    silence_logs=logging.CRITICAL,  # the tasks of a lost worker run again
                )
            )
        try:
            client = stack.enter_context(dask.Client(target, timeout=CONNECT_SECONDS, set_as_default=False))
        except (OSError, TimeoutError):
            raise EngineError(
                f"no Dask scheduler answers at {engine!r} (waited {CONNECT_SECONDS:g} s): is it running?"
            ) from None
        wait_for_a_worker(client, patience)
        yield client


def _slurm_cluster(wanted: SlurmFile) -> Any:
    try:
        jobqueue: Any = importlib.import_module("dask_jobqueue")
    except ImportError:
        raise EngineError("engine 'slurm:FILE' needs dask-jobqueue: pip install 'limitlab[cluster]'") from None
    return jobqueue.SLURMCluster(**wanted.arguments())


def executor_of(client: Any) -> Executor:
    """Return the client as an executor. Tasks have unique names (not hashes of their content) and are tried again."""
    wait_for_a_worker(client, WORKER_SECONDS)
    executor: Executor = client.get_executor(pure=False, retries=RETRIES)
    return executor


def wait_for_a_worker(client: Any, patience: float) -> None:
    """Return when the client has a worker; raise EngineError if it gets none in time, or has no scheduler."""
    end = time.monotonic() + patience
    while not _workers(client):
        if time.monotonic() > end:
            raise EngineError(
                f"the Dask scheduler at {_address(client)} has no workers (waited {patience:g} s): start some, "
                "such as `dask worker ADDRESS --nthreads 1`"
            )
        time.sleep(0.1)


def watch(client: Any) -> Callable[[], None]:
    """Return a function that raises EngineError if the scheduler is gone, or has had no workers for too long."""
    latest = [time.monotonic()]

    def check() -> None:
        if _workers(client):
            latest[0] = time.monotonic()
        elif time.monotonic() - latest[0] > WORKER_SECONDS:
            raise EngineError(f"the Dask cluster at {_address(client)} lost all its workers and got no new ones")

    return check


def _workers(client: Any) -> int:
    """Return the number of workers of the scheduler; raise EngineError if there is no scheduler."""
    if getattr(client, "status", "running") not in ("running", "newly-created"):
        raise EngineError(f"the Dask scheduler at {_address(client)} is gone ({client.status}): start it again")
    try:
        return len(client.sync(client.scheduler.identity, callback_timeout=CONNECT_SECONDS)["workers"])
    except EngineError:
        raise
    except Exception as error:
        raise EngineError(
            f"the Dask scheduler at {_address(client)} does not answer ({type(error).__name__}): is it running?"
        ) from None


def _address(client: Any) -> str:
    return repr(getattr(getattr(client, "scheduler", None), "address", "") or "an unknown address")
