"""Engines, which run tasks in this process, in threads, in worker processes, or on a cluster.

The only interface is `concurrent.futures.Executor`. It is used for pools of limitlab, for any executor of the user, and for a
Dask client through its `get_executor()`. A cluster may also be given by its name (`limitlab.lab.cluster`). An engine changes when
and where a task runs, never its result.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import queue
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from limitlab._core.checks import description
from limitlab._core.cost import MEMORY, memory_limit, single_threaded
from limitlab.errors import Refused, did_you_mean
from limitlab.lab.cluster import LOCAL, EngineError, check_cluster, executor_of, names_a_cluster, opened, watch

T = TypeVar("T")
R = TypeVar("R")
Engine = Any
"""The type of an engine.

It is None, "serial", "threads", "processes", a number of worker processes, an Executor, a Dask client, or the name of a cluster
(the address of a Dask scheduler, "local-cluster", "slurm:FILE").
"""

Results = Generator[tuple[int, R | BaseException], None, None]

NAMES = ("serial", "threads", "processes")
FOREIGN_WINDOW = 4096
"""Tasks that are submitted at once to an executor with an unknown number of workers."""

CHECK_SECONDS = 2.0
"""Seconds without a finished task after which the cluster is checked."""

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

_FOR_LIFE = ExitStack()


class WorkerDied(RuntimeError):
    """The error for a worker process that ended in the middle of a task."""


def completed(function: Callable[[T], R], tasks: Sequence[T], engine: Engine = None) -> Results[R]:
    """Run tasks and yield (position, result) in the order in which they finish.

    An exception of a task is yielded as its result, not raised.

    Closing the generator (also by an interrupt) cancels the tasks that have not started, and ends the worker processes that it
    started.

    Parameters
    ----------
    function
        The function that runs a task. For processes and clusters it must be a function of a module.
    tasks
        The arguments of the function, one per task.
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
    limitlab.errors.Refused: engine = 'proceses' is not known: did you mean 'processes'?
    """
    if engine is None or (isinstance(engine, str) and engine in NAMES):
        return
    if names_a_cluster(engine):
        check_cluster(engine)
        return
    if isinstance(engine, str):
        raise Refused(f"engine = {engine!r} is not known: {did_you_mean(engine, (*NAMES, LOCAL))}")
    if isinstance(engine, int) and not isinstance(engine, bool):
        if engine < 1:
            raise Refused(f"engine = {engine} is not allowed: a number of worker processes must be at least 1")
        return
    if isinstance(engine, type) or not (callable(getattr(engine, "submit", None)) or hasattr(engine, "get_executor")):
        raise Refused(
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
    """Run tasks on a cluster that is named by a text and is opened for this run."""
    with opened(engine, available_cores()) as client:
        yield from _on_client(function, tasks, client)


def _on_client(function: Callable[[T], R], tasks: Sequence[T], client: Any) -> Results[R]:
    """Run tasks on a Dask client, which stays open. Only the end of the whole cluster ends the run."""
    yield from _on_executor(function, tasks, executor_of(client), watch(client))


def _on_executor(
    function: Callable[[T], R], tasks: Sequence[T], executor: Executor, check: Callable[[], None] | None = None
) -> Results[R]:
    """Run tasks on an executor of the user, which stays open."""
    lost, waiting = yield from _drain(executor, function, tasks, range(len(tasks)), FOREIGN_WINDOW, check)
    for position in (*lost, *waiting):
        yield position, WorkerDied("the executor broke down before this task was finished")


def _on_processes(function: Callable[[T], R], tasks: Sequence[T], workers: int) -> Results[R]:
    """Run tasks in worker processes.

    When a process dies, its unfinished tasks are run again one at a time, so that only a task that itself ends its worker counts as
    failed.
    """
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

    The return value is the tasks that were running when the executor broke, and those that had not started. While no task finishes,
    `check` is called every `CHECK_SECONDS`. It raises an error if no task will finish.
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
    """The error of a task that was cancelled from outside."""


# -- worker processes ---------------------------------------------------------------------------------------------------


class _Workers(ProcessPoolExecutor):
    """A pool whose workers ignore Ctrl-C, because the parent process handles it.

    The workers are started when they are first needed.
    """

    def submit(self, function: Callable[..., R], /, *arguments: Any, **keywords: Any) -> Future[R]:
        with _interrupts_blocked():  # a new process inherits the blocked signals
            return super().submit(function, *arguments, **keywords)


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Block SIGINT in this thread, and in the processes that it starts, for the duration of a block."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _process_pool(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Provide a pool whose workers end with this block and with this process, even if the process is killed.

    Every worker has the reading end of a pipe, and only this process has the writing end. When the writing end closes, also because
    this process has died, the workers read the end of the file and exit. Workers are new processes ("spawn"), because a fork of a
    process with threads (JAX, BLAS) may hang.
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
    """Prepare a worker process.

    It uses one thread per library, ignores Ctrl-C, and ends with its parent.
    """
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    _keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_at_end_of, args=(lifeline,), daemon=True).start()
    _FOR_LIFE.enter_context(single_threaded())


def _keep_freed_memory() -> None:
    """Make the process reuse freed arrays of up to 32 MB (glibc only).

    Returning and requesting them would take 2 % of the time of a worker.
    """
    if sys.platform == "linux" and (set_option := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        trim, own_mapping = -1, -3  # M_TRIM_THRESHOLD, M_MMAP_THRESHOLD
        set_option(trim, 2**27)
        set_option(own_mapping, 2**25)


def _exit_at_end_of(lifeline: Connection) -> None:
    try:
        lifeline.recv_bytes()
    except (EOFError, OSError):
        os._exit(1)


# -- worker processes with a cap on memory, whose running tasks can be cancelled -------------------------------------------


class CappedWorkers(Executor):
    """An executor whose running tasks can be cancelled and whose worker processes may use a limited amount of memory.

    `cancel()` of a future ends the worker process that runs its task. The next task gets a new process. Processes are forked from a
    server process that has imported the modules of `preload`, so that a new process starts in a few milliseconds.

    Parameters
    ----------
    workers
        Number of tasks that run at the same time. Further tasks are queued.
    megabytes
        Memory that a worker process may use in addition to its memory at the start. The operating system enforces the limit on
        Linux and macOS. The estimates of limitlab use it on every system.
    preload
        Names of modules that every worker process has imported before its first task.

    Examples
    --------
    >>> with CappedWorkers(1, megabytes=500) as workers:
    ...     workers.submit(abs, -1).result()
    1
    """

    def __init__(self, workers: int, megabytes: int, preload: Sequence[str] = ()):
        check_engine(workers)
        if not megabytes >= 1:
            raise Refused(f"megabytes = {megabytes} is not allowed: must be at least 1; give the memory of one worker in MB")
        self.workers = workers
        self._megabytes, self._preload = megabytes, list(preload)
        self._lifeline, self._end_of_parent = multiprocessing.Pipe(duplex=False)
        self._slots = threading.Semaphore(workers)
        self._lock = threading.Lock()
        self._futures: set[Future[Any]] = set()
        self._idle: list[_CappedWorker] = []
        self._closed = False

    @property
    def unfinished(self) -> int:
        """Number of running and queued tasks."""
        with self._lock:
            return len(self._futures)

    def warm(self) -> None:
        """Start one worker process before the first task needs it."""
        self._give_back(self._new_worker())

    def submit(self, function: Callable[..., R], /, *arguments: Any, **keywords: Any) -> Future[R]:
        """Run a function of a module in a worker process. Cancelling the future ends the process."""
        return self.submit_with_parts(function, None, *arguments, **keywords)

    def submit_with_parts(
        self, function: Callable[..., R], on_part: Callable[[Any], None] | None, /, *arguments: Any, **keywords: Any
    ) -> Future[R]:
        """Run a function that reports parts of its result while it runs.

        Parameters
        ----------
        function
            A function of a module. Unless `on_part` is None, its first argument is a function that it calls with every part.
        on_part
            Called with every part, in a thread of the executor.
        arguments, keywords
            Further arguments of the function.
        """
        request = pickle.dumps((function, on_part is not None, arguments, keywords))
        future: Future[R] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("no task can be submitted to workers that were shut down")
            self._futures.add(future)
        threading.Thread(target=self._serve, args=(future, request, on_part), daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the worker processes, at once with `cancel_futures`, otherwise after the submitted tasks."""
        with self._lock:
            self._closed = True
            idle, futures = [*self._idle], [*self._futures]
            self._idle.clear()
        if cancel_futures:
            for future in futures:
                future.cancel()
            self._end_of_parent.close()  # this also ends a process that is being started
        for worker in idle:
            worker.end()
        if wait:
            wait_for(futures)

    def _serve(self, future: Future[Any], request: bytes, on_part: Callable[[Any], None] | None) -> None:
        """Wait for a free worker in a thread, run a task, and set the result of its future."""
        try:
            with self._slots:
                if not future.cancelled():
                    self._run(future, request, on_part)
        except BaseException as error:  # an error of the start of a worker, or of `on_part`
            if not future.done():
                future.set_exception(error)
        finally:
            with self._lock:
                self._futures.discard(future)

    def _run(self, future: Future[Any], request: bytes, on_part: Callable[[Any], None] | None) -> None:
        """Run a task in a worker.

        Its future is "running" only when the result has arrived, so that it can be cancelled until then.
        """
        worker = self._free_worker()
        reusable = False
        try:
            future.add_done_callback(lambda done: worker.kill() if done.cancelled() else None)
            outcome = worker.run(request, on_part)
            # a process that has just died may still count as alive, so the outcome decides too
            died = isinstance(outcome, _Failure) and isinstance(outcome.error, WorkerDied)
            reusable = future.set_running_or_notify_cancel() and not died and worker.alive()
        finally:
            if reusable:
                self._give_back(worker)
            else:
                worker.end()
        if future.cancelled():
            return
        if isinstance(outcome, _Failure):
            future.set_exception(outcome.error)
        else:
            future.set_result(outcome)

    def _free_worker(self) -> _CappedWorker:
        while True:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            if worker is None:
                return self._new_worker()
            if worker.alive():
                return worker
            worker.end()

    def _give_back(self, worker: _CappedWorker) -> None:
        with self._lock:
            closed = self._closed
            if not closed:
                self._idle.append(worker)
        if closed:
            worker.end()

    def _new_worker(self) -> _CappedWorker:
        return _CappedWorker(self._lifeline, self._megabytes, self._preload)


@dataclass(frozen=True)
class _Failure:
    """The exception of a task in a worker process."""

    error: BaseException


class _CappedWorker:
    """One worker process, which runs one task after the other, with the pipe to it."""

    def __init__(self, lifeline: Connection, megabytes: int, preload: list[str]):
        self._pipe, end_of_worker = multiprocessing.Pipe()
        arguments = (end_of_worker, lifeline, megabytes)
        self._process = _context_with(preload).Process(target=_serve_tasks, args=arguments, daemon=True, name="limitlab")
        with _one_thread_in_new_processes(), _interrupts_blocked():
            self._process.start()
        end_of_worker.close()

    def run(self, request: bytes, on_part: Callable[[Any], None] | None) -> Any:
        """Return the result of a task, or a `_Failure`."""
        try:
            self._pipe.send_bytes(request)
            while True:
                final, value = self._pipe.recv()
                if final:
                    return value
                if on_part is not None:
                    on_part(value)
        except (EOFError, OSError):
            return _Failure(WorkerDied("the worker process ended while running this task (killed, or out of memory)"))

    def alive(self) -> bool:
        """Whether the process runs."""
        return bool(self._process.is_alive())

    def kill(self) -> None:
        """End the process now."""
        self._process.kill()

    def end(self) -> None:
        """End the process now and free its resources."""
        self._process.kill()
        self._process.join(timeout=2)
        self._pipe.close()


def _context_with(preload: list[str]) -> Any:
    """Return a context whose processes are forked from a server that has imported these modules.

    On systems without such a server the processes are new.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*preload, "limitlab.lab._fork_server"])
    return context


@contextmanager
def _one_thread_in_new_processes() -> Iterator[None]:
    """Start new processes with one thread per library."""
    before = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _serve_tasks(pipe: Connection, lifeline: Connection, megabytes: int) -> None:
    """Run tasks in a worker process until the pipe closes."""
    _prepare_worker(lifeline)
    _cap_memory(megabytes)
    while True:
        try:
            request = pipe.recv_bytes()
        except (EOFError, OSError, MemoryError):
            return
        outcome = _served(request, lambda part: pipe.send((False, part)))
        try:
            pipe.send((True, outcome))
        except Exception as error:  # a result that cannot be pickled
            reason = str(error).split("\n")[0]
            pipe.send((True, _Failure(RuntimeError(f"the result cannot be sent back from the worker process: {reason}"))))


def _served(request: bytes, report: Callable[[Any], None]) -> Any:
    """Return the result of a task, or a `_Failure` with an exception that can be pickled."""
    try:
        function, with_parts, arguments, keywords = pickle.loads(request)  # only the parent process writes to the pipe
    except (AttributeError, ImportError) as error:
        return _Failure(ValueError(f"this law cannot be sent to a worker ({error}): define it in a module of its own"))
    try:
        return function(report, *arguments, **keywords) if with_parts else function(*arguments, **keywords)
    except BaseException as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # not every exception can be pickled
            return _Failure(RuntimeError(f"{type(error).__name__}: {error}"))
        return _Failure(error)


def _cap_memory(megabytes: int) -> None:
    """Limit the additional memory of this process, in the estimates of limitlab and, if possible, by the operating system."""
    os.environ[MEMORY] = str(min(memory_limit(), megabytes * 2**20))
    try:
        import resource
    except ImportError:  # not on this operating system
        return
    data_segment = 0
    with suppress(OSError, ValueError, IndexError), open("/proc/self/statm", encoding="ascii") as file:
        data_segment = int(file.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (data_segment + megabytes * 2**20, resource.RLIM_INFINITY))


def _own_functions(law: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parameters of a law that are functions of the user, with these functions."""
    for parameter in getattr(type(law), "model_fields", ()):
        value = getattr(law, parameter)
        given = getattr(value, "given", None)
        for part in (given, *(getattr(value, "parts", None) or ())):
            if callable(part):
                yield parameter, part


def _pickles(value: Any) -> bool:
    try:
        pickle.dumps(value)
    except Exception:
        return False
    return True


def _check_pickles(tasks: Sequence[Any]) -> None:
    """Raise ValueError before any worker starts if tasks cannot be pickled."""
    law = getattr(tasks[0], "law", None) or (tasks[0] if tasks else None)
    remedy = "define the law in a module of its own, or use engine='threads'"
    name = type(law).__name__
    main = sys.modules.get("__main__")
    if type(law).__module__ == "__main__" and not hasattr(main, "__file__"):
        raise Refused(f"{name} cannot be sent to worker processes: it is defined in an interactive session; {remedy}")
    for parameter, function in _own_functions(law):
        interactive = getattr(function, "__module__", None) == "__main__" and not hasattr(main, "__file__")
        if interactive or not _pickles(function):
            raise Refused(
                f"{parameter} = {description(function)} cannot be sent to worker processes of {name}: it has no name in a module; define "
                "it with def in a module of its own, or use engine='threads'"
            )
    try:
        pickle.dumps(law)
    except Exception as error:
        reason = str(error).split("\n")[0]
        raise Refused(f"{name} cannot be sent to worker processes ({reason}); {remedy}") from None
