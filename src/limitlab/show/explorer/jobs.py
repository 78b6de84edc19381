"""Where the explorer computes: a few worker processes that can be stopped at any moment, with caps on time and memory.

Workers are forked from a clean server process that has the laws loaded, so that a new one is there in a moment; a job that is cancelled,
takes too long or wants too much memory loses its worker and nothing else. The page never computes by itself.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import queue
import signal
import threading
import time
import traceback
from collections.abc import AsyncIterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Literal

from limitlab._core.cost import MEMORY, memory_limit
from limitlab.errors import ConvergenceError, NotComputable, TooCostly
from limitlab.lab.engines import available_cores

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
LOOK_EVERY = 0.004
"""Seconds between two looks at a worker's answers."""


@dataclass(frozen=True)
class Caps:
    """What one request may take.

    Attributes
    ----------
    seconds
        Time of one job.
    megabytes
        Memory of one worker, beyond what it starts with (where the system can limit it).
    upload_megabytes
        Size of an uploaded file.
    workers
        Jobs that run at the same time; further ones wait. 0: one per core, at least 4.
    visitors
        Pages that are open at the same time.
    """

    seconds: float = 120.0
    megabytes: int = 2048
    upload_megabytes: float = 5.0
    workers: int = 0
    visitors: int = 50

    def __post_init__(self) -> None:
        for name, least in (
            ("seconds", 1.0),
            ("megabytes", 64),
            ("upload_megabytes", 0.001),
            ("workers", 0),
            ("visitors", 1),
        ):
            if not getattr(self, name) >= least:
                raise ValueError(f"{name} = {getattr(self, name)} is not allowed: must be at least {least:g}")


@dataclass(frozen=True)
class Message:
    """What a job says: "part" (so far), "result", or "refused" with a sentence."""

    kind: Literal["waiting", "part", "result", "refused"]
    value: Any = None
    done: int = 0
    total: int = 0
    seconds: float = 0.0


class Pool:
    """A few workers for all visitors.

    Parameters
    ----------
    caps
        Of every job.

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
        self.most = self.caps.workers or max(4, available_cores())
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self._coming = 0
        self._closed = False
        self.visitors = 0

    def warm(self) -> None:
        """Start the process that workers are forked from, and the first worker; returns at once."""
        self._idle.append(Worker(self.caps))

    async def run(self, job: str, /, **request: Any) -> AsyncIterator[Message]:
        """Run a job; stopping the iteration (or cancelling its task) stops the job, and the worker with it."""
        waited = False
        while len(self._busy) + self._coming >= self.most:
            if not waited:
                yield Message("waiting")
            waited = True
            await asyncio.sleep(0.05)
        worker = await self._taken()
        began = time.monotonic()
        finished = False
        try:
            worker.ask(job, request)
            while True:
                message = worker.answer()
                if message is not None:
                    finished = message.kind in ("result", "refused")
                    if finished:
                        self._back(worker)
                    yield message
                    if finished:
                        return
                    continue
                if not worker.alive():
                    yield Message(
                        "refused", f"the computation needs more than {self.caps.megabytes} MB, or broke off: make it smaller"
                    )
                    return
                if time.monotonic() - began > self.caps.seconds:
                    yield Message(
                        "refused",
                        f"stopped after {self.caps.seconds:g} s, the limit of this explorer: ask for less, or use Python",
                    )
                    return
                await asyncio.sleep(LOOK_EVERY)
        except (ValueError, TypeError, AttributeError, pickle.PicklingError) as error:  # a request that cannot be sent
            yield Message("refused", f"this cannot be computed here: {error}")
        finally:
            if not finished:
                self._busy.discard(worker)
                worker.stop()

    def close(self) -> None:
        """End all workers."""
        self._closed = True
        for worker in (*self._idle, *self._busy):
            worker.stop()
        self._idle.clear()

    async def _taken(self) -> Worker:
        """A worker that waits for work, or a new one; starting the first takes seconds, in which the page must not stand still."""
        worker = None
        while self._idle and worker is None:
            worker = self._idle.pop()
            if not worker.alive():
                worker.stop()
                worker = None
        if worker is None:
            self._coming += 1
            started = asyncio.ensure_future(asyncio.to_thread(Worker, self.caps))
            try:
                worker = await asyncio.shield(started)
            except asyncio.CancelledError:  # nobody waits for it any more: the next one will
                started.add_done_callback(lambda done: self._idle.append(done.result()))
                raise
            finally:
                self._coming -= 1
        self._busy.add(worker)
        return worker

    def _back(self, worker: Worker) -> None:
        self._busy.discard(worker)
        if self._closed:
            worker.stop()
        else:
            self._idle.append(worker)


class Worker:
    """One worker process and the pipe to it."""

    def __init__(self, caps: Caps):
        context = _context()
        self._pipe, theirs = multiprocessing.Pipe()
        self._process = context.Process(target=_work, args=(theirs, caps.megabytes), daemon=True, name="limitlab-explorer")
        with _one_thread(), _ignoring_interrupts():
            self._process.start()
        theirs.close()

    def ask(self, job: str, request: dict[str, Any]) -> None:
        """Send a job."""
        self._pipe.send_bytes(pickle.dumps((job, request)))

    def answer(self) -> Message | None:
        """What the worker said since the last look, if anything."""
        try:
            return self._pipe.recv() if self._pipe.poll() else None
        except (EOFError, OSError):
            return None

    def alive(self) -> bool:
        """Whether it still works, or has something left to say."""
        return self._process.is_alive() or self._pipe_has_more()

    def _pipe_has_more(self) -> bool:
        with suppress(EOFError, OSError):
            return self._pipe.poll() and not self._pipe.closed and self._process.exitcode == 0
        return False

    def stop(self) -> None:
        """End it now."""
        self._process.kill()
        self._process.join(timeout=2)
        self._pipe.close()


def _context() -> Any:
    methods = multiprocessing.get_all_start_methods()
    if "forkserver" not in methods:
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["limitlab.show.explorer._loaded"])
    return context


@contextmanager
def _one_thread() -> Any:
    """The environment of a new process: one thread per library."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextmanager
def _ignoring_interrupts() -> Any:
    """Ctrl-C is for the page's server, not for what it starts."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# -- in the worker --------------------------------------------------------------------------------------------------------


def _work(pipe: Connection, megabytes: int) -> None:
    """Answer requests until the pipe closes; then, or when the parent is gone, end at once, also in the middle of a job."""
    from limitlab.show.explorer._work import JOBS, throttled

    _limit_memory(megabytes)
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, requests), daemon=True).start()
    while True:
        asked = requests.get()
        began = time.monotonic()

        def report(part: Any, done: int, total: int, began: float = began) -> None:
            pipe.send(Message("part", part, done, total, time.monotonic() - began))

        try:
            job, request = _understood(asked)
            value = JOBS[job](throttled(report), **request)
            answer = Message("result", value, seconds=time.monotonic() - began)
        except MemoryError:
            answer = Message("refused", f"this needs more than {megabytes} MB, the limit of this explorer: make it smaller")
        except Exception as error:
            answer = Message("refused", sentence(error))
        pipe.send(answer)


def _understood(asked: bytes) -> tuple[str, dict[str, Any]]:
    """A request of the page's own server (nobody else can write to the pipe)."""
    try:
        job, request = pickle.loads(asked)
    except (AttributeError, ImportError) as error:
        raise ValueError(f"this law cannot be sent to a worker ({error}): define it in a module of its own") from None
    return job, request


def _listen(pipe: Connection, requests: queue.SimpleQueue[bytes]) -> None:
    while True:
        try:
            requests.put(pipe.recv_bytes())
        except (EOFError, OSError):
            os._exit(0)


def sentence(error: Exception) -> str:
    """What an error says to a visitor: its own words where it is about the input, else that it is a fault of ours.

    >>> sentence(ValueError("ratio = 0 is not allowed"))
    'ratio = 0 is not allowed'
    """
    if isinstance(error, (ValueError, NotImplementedError, ConvergenceError, NotComputable, FloatingPointError)):
        lines = _pydantic_lines(error) or [line.strip() for line in str(error).splitlines() if line.strip()]
        return lines[0].removeprefix(f"{TooCostly.__name__}: ") if lines else type(error).__name__
    traceback.print_exception(error)
    return f"this failed ({type(error).__name__}); please report it, and move the parameters in the meantime"


def _pydantic_lines(error: Exception) -> list[str]:
    errors = getattr(error, "errors", None)
    return [str(item["msg"]).removeprefix("Value error, ") for item in errors()] if callable(errors) else []


def _limit_memory(megabytes: int) -> None:
    """Refuse further memory beyond the cap: by its estimate before a job starts, and by the system, where it can."""
    os.environ[MEMORY] = str(min(memory_limit(), megabytes * 2**20))
    try:
        import resource
    except ImportError:  # not on this system: the cap on time is the one that is left
        return
    now = _data_bytes()
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (now + megabytes * 2**20, resource.RLIM_INFINITY))


def _data_bytes() -> int:
    """Data segment of this process in bytes (0 where the system does not say)."""
    with suppress(OSError, ValueError, IndexError), open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
    return 0
