"""Estimates and limits of memory and time, a guard that stops integrations that would take too long, and a limit of BLAS threads.

**Limits.** Three limits hold for every entry point (theory, simulate, sweep, compare, forecast, the explorer). Each can be changed by an
environment variable, for a block of code by `limits(...)`, and on the command line by `limitlab --memory 16GB --time 100h COMMAND`;
"none" lifts a limit.

    LIMITLAB_MEMORY    numbers held at once        4 GB, or half of the machine's memory if that is less
    LIMITLAB_TIME      estimated processor time    24 h
    LIMITLAB_PATIENCE  one integration             120 s (an integration that would take longer is stopped after 5 s)

**Estimates.** `law.cost(size)` estimates how many numbers an experiment holds and how many operations it does, to a factor of a
few. The rules for the estimates are `draw_cost` and `limit_cost` of the law (see `Declaration`).
"""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from limitlab._core.checks import numbers_in, refusal_of
from limitlab.errors import ConvergenceError, TooCostly

MEMORY, TIME, PATIENCE = "LIMITLAB_MEMORY", "LIMITLAB_TIME", "LIMITLAB_PATIENCE"
DEFAULT_MEMORY, DEFAULT_TIME, DEFAULT_PATIENCE = 4e9, 24 * 3600.0, 120.0
NUMBER = 8
"""Bytes of a number."""
SPEED = 1e9
"""Operations per second of one core, for estimates."""
LONG = 20.0
"""An estimate of more seconds than this is logged before the work starts."""
FIRST_LOOK = 5.0
"""Seconds after which the speed of an integration is measured."""

_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_CONTAINER = Path("/sys/fs/cgroup")
_CLOCK = {"": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True)
class Cost:
    """The memory and the work of a computation.

    Attributes
    ----------
    numbers
        Floating-point numbers held at once.
    operations
        Floating-point operations.

    Examples
    --------
    >>> draw = Cost(numbers=3e8, operations=2e12)
    >>> f"{draw.memory:.1e} bytes, {draw.seconds:.0f} s"
    '2.4e+09 bytes, 2000 s'
    """

    numbers: float = 0.0
    operations: float = 0.0

    @property
    def memory(self) -> float:
        """Bytes."""
        return NUMBER * self.numbers

    @property
    def seconds(self) -> float:
        """Estimated processor time."""
        return self.operations / SPEED


def check_cost(cost: Cost, what: str, remedy: str) -> None:
    """Raise `TooCostly` if an estimate exceeds a limit; the message gives the estimate, the limit and the remedy.

    >>> try:
    ...     check_cost(Cost(numbers=1e12), "this draw", "choose a smaller size")
    ... except TooCostly as refused:
    ...     print(str(refused)[:77])
    this draw would hold about 8 TB, more than the 4 GB allowed: choose a smaller
    """
    if not cost.memory <= memory_limit():
        taken, allowed, names = bytes_in_words(cost.memory), bytes_in_words(memory_limit()), f"{MEMORY}, limitlab --memory"
        message = f"{what} would hold about {taken}, more than the {allowed} allowed"
    elif not cost.seconds <= time_limit():
        taken, allowed, names = duration(cost.seconds), duration(time_limit()), f"{TIME}, limitlab --time"
        message = f"{what} would take about {taken} of processor time, more than the {allowed} allowed"
    else:
        if cost.seconds > LONG:
            logging.getLogger("limitlab").warning(f"{what} takes about {duration(cost.seconds)} of processor time")
        return
    raise TooCostly(f"{message}: {remedy}, or allow more ({names})", cost)


def check_listing(count: float, what: str, each: float = 300.0) -> None:
    """Raise `TooCostly` if a list of `count` entries of `each` bytes exceeds the limit of memory."""
    check_cost(Cost(numbers=count * each / NUMBER), what, "choose fewer")


# -- the limits ---------------------------------------------------------------------------------------------------------


def memory_limit() -> float:
    """Return the number of bytes that a computation may hold according to its estimate."""
    text = os.environ.get(MEMORY, "")
    return read_memory(text, MEMORY) if text else min(DEFAULT_MEMORY, machine_memory() / 2)


def time_limit() -> float:
    """Return the seconds of processor time that a computation may take according to its estimate."""
    text = os.environ.get(TIME, "")
    return read_time(text, TIME) if text else DEFAULT_TIME


def patience() -> float:
    """Return the seconds that one integration may take."""
    text = os.environ.get(PATIENCE, "")
    return read_time(text, PATIENCE) if text else DEFAULT_PATIENCE


@contextlib.contextmanager
def limits(
    memory: str | float | None = None, time: str | float | None = None, patience: str | float | None = None
) -> Iterator[None]:
    """Change the limits within a block, in this process and in the worker processes that are started inside the block.

    Parameters
    ----------
    memory
        Bytes, or a text such as "16GB". The text "none" removes the limit, and None does not change it.
    time, patience
        Seconds, or texts such as "90s", "30min", "100h".

    Examples
    --------
    >>> with limits(memory="16GB", time="100h"):
    ...     memory_limit(), time_limit()
    (16000000000.0, 360000.0)
    """
    asked = {MEMORY: (memory, read_memory), TIME: (time, read_time), PATIENCE: (patience, read_time)}
    changes = {name: str(value) for name, (value, _) in asked.items() if value is not None}
    for name, text in changes.items():
        asked[name][1](text, name.removeprefix("LIMITLAB_").lower())
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = old


def read_memory(text: str, name: str = "memory") -> float:
    """Return a number of bytes from a text with or without a unit.

    >>> read_memory("1.5GB"), read_memory("2000"), read_memory("none")
    (1500000000.0, 2000.0, inf)
    """
    match = re.fullmatch(r"\s*([0-9.eE+]+)\s*([kmgt]?)b?\s*", text.lower())
    return _read(text, name, match, _UNITS, "a number of bytes such as 4GB")


def read_time(text: str, name: str = "time") -> float:
    """Return a number of seconds from a text with or without a unit.

    >>> read_time("30min"), read_time("2h"), read_time("none")
    (1800.0, 7200.0, inf)
    """
    match = re.fullmatch(r"\s*([0-9.eE+]+)\s*(s|min|h|d|)\s*", text.lower())
    return _read(text, name, match, _CLOCK, "a time such as 90s, 30min or 2h")


def _read(text: str, name: str, match: re.Match[str] | None, units: dict[str, float], wanted: str) -> float:
    if text.strip().lower() in ("none", "inf"):
        return math.inf
    with contextlib.suppress(ValueError):
        if match is not None:
            return float(match[1]) * units[match[2]]
    raise refusal_of(name, text, f"must be {wanted}, or none")


@functools.cache
def machine_memory() -> float:
    """Return the bytes of memory that this process could have.

    This is the memory of the machine, or less if the operating system limits it.
    """
    bounds = [_process_limit(), _container_limit()]
    with contextlib.suppress(ValueError, OSError, AttributeError):
        bounds.append(float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")))
    return min(bounds)


def available_memory() -> float:
    """Return the bytes of memory that this process may still use.

    This is the least of the free memory of the machine, the limit of a container and the limit of the process.

    >>> 0 < available_memory() <= machine_memory()
    True
    """
    used = 0.0
    with contextlib.suppress(ValueError, OSError):
        used = float((_CONTAINER / "memory.current").read_text(encoding="ascii"))
    return min(_free_memory(), max(_container_limit() - used, 0.0), _process_limit())


def _free_memory() -> float:
    with contextlib.suppress(ValueError, OSError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))) * 1024
    with contextlib.suppress(ValueError, OSError, AttributeError):
        # the system does not report free memory, so half of all memory is taken
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2
    return 4.0 * 1024**3


def _container_limit() -> float:
    with contextlib.suppress(ValueError, OSError):
        return float((_CONTAINER / "memory.max").read_text(encoding="ascii"))  # the file contains "max" if there is no limit
    return math.inf


def _process_limit() -> float:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        if soft != resource.RLIM_INFINITY:
            return float(soft)
    return math.inf


# -- while a computation runs -------------------------------------------------------------------------------------------


class Pace:
    """Reports the progress of a long computation, and stops an integration that would exceed the time limit.

    Parameters
    ----------
    what
        The name of the quantity that increases while the computation runs, for the messages.
    end
        The value of `what` at which the computation is complete; None if this is not known. Without `end` the computation is never stopped.
    clock
        Function that returns the time in seconds.

    Examples
    --------
    >>> pace = Pace("time", end=1e6)
    >>> pace.at(10.0)      # call this after every step; it raises ConvergenceError if the rest would take too long
    """

    def __init__(self, what: str = "time", end: float | None = None, clock: Callable[[], float] | None = None):
        self.what, self.end = what, None if end is None else float(end)
        self.clock = clock or (time.perf_counter if end is None else time.thread_time)
        self.began = self.clock()
        self._report_at = self.began + FIRST_LOOK
        self._last = (self.began, 0.0)

    def at(self, position: float, state: Any = None) -> None:
        """Record the position of the computation; `state` becomes the estimate of a `ConvergenceError`."""
        now = self.clock()
        if now < self._report_at:
            return
        spent, log = f"{now - self.began:.0f} s", logging.getLogger("limitlab")
        if self.end is None:
            log.warning(f"{self.what}: {position:.0f} points after {spent}")
            self._report_at = now + 2 * FIRST_LOOK
            return
        before, place = self._last
        speed = (position - place) / max(now - before, 1e-9)  # the recent speed, because the speed of a solver changes
        left = (self.end - position) / speed if speed > 0 else math.inf
        if now - self.began + left > patience():
            raise ConvergenceError(
                f"the integration reached {self.what} {position:.3g} of {self.end:.3g} in {spent} and would need "
                f"about {duration(left)} more: give a shorter {self.what}, choose parameters for which the solution changes more "
                f"slowly, or raise the time limit of an integration ({PATIENCE})",
                state,
            )
        log.warning(
            f"the integration has reached {self.what} {position:.3g} of {self.end:.3g} after {spent}, about {duration(left)} to go"
        )
        self._last, self._report_at = (now, position), now + FIRST_LOOK


# -- computations that take long ------------------------------------------------------------------------------------------

ANNOUNCED_AFTER = 5.0
"""Seconds after which a computation is announced, if nothing has announced it before."""


class _Announcer:
    """A thread that announces computations which have run for `ANNOUNCED_AFTER` seconds."""

    def __init__(self) -> None:
        self.running: dict[int, tuple[float, Callable[[], str]]] = {}
        self.process = 0
        self.count = 0

    def begin(self, what: Callable[[], str]) -> int:
        """Add a computation and return its number."""
        first = self.process != os.getpid()  # the first computation of this process, which may be a fork
        if first:
            self.process = os.getpid()
            self.running.clear()
        self.count += 1
        self.running[self.count] = time.monotonic() + ANNOUNCED_AFTER, what
        if first:
            threading.Thread(target=self._watch, name="limitlab-announcer", daemon=True).start()
        return self.count

    def _watch(self) -> None:
        while True:
            time.sleep(ANNOUNCED_AFTER / 10)
            now = time.monotonic()
            for number, (due, what) in list(self.running.items()):
                if now >= due and self.running.pop(number, None) is not None:
                    logging.getLogger("limitlab").warning(
                        f"{what()} takes longer than {ANNOUNCED_AFTER:g} s (Ctrl-C stops it)"
                    )


_ANNOUNCER = _Announcer()


@contextlib.contextmanager
def announced(what: Callable[[], str]) -> Iterator[None]:
    """Log a line if a block takes longer than `ANNOUNCED_AFTER` seconds. Inner blocks are not announced again.

    >>> with announced(lambda: "the prediction of Ridge"):
    ...     pass
    """
    if _ANNOUNCER.running and _ANNOUNCER.process == os.getpid():
        yield
        return
    number = _ANNOUNCER.begin(what)
    try:
        yield
    finally:
        _ANNOUNCER.running.pop(number, None)


# -- estimates for a law --------------------------------------------------------------------------------------------------


class Estimated(Protocol):
    """The part of a law that the estimates use."""

    def limit_cost(self) -> Cost:
        """The cost of a prediction."""

    def draw_cost(self, size: int) -> Cost:
        """The cost of an experiment of this size."""

    @classmethod
    def parameters(cls) -> Mapping[str, Any]:
        """Metadata of every parameter."""


def estimate(law: Estimated, size: int | None = None) -> Cost:
    """Return the cost of an experiment of this size, or (without a size) of a prediction; infinite where it overflows."""
    try:
        return law.limit_cost() if size is None else law.draw_cost(size)
    except OverflowError:
        return Cost(math.inf, math.inf)


def latest(law: Estimated, coordinate: str = "times") -> float:
    """Return the largest finite value of a coordinate, which is the duration of an experiment."""
    return max((number for number in numbers_in(getattr(law, coordinate)) if math.isfinite(number)), default=0.0)


def check_draw(law: Estimated, size: int, draws: int = 1) -> None:
    """Raise `TooCostly` if experiments of this size exceed a limit."""
    draw = estimate(law, size)
    words = (
        f"a draw of {type(law).__name__} at size {size}"
        if draws == 1
        else f"{draws} draws of {type(law).__name__} at size {size}"
    )
    check_cost(Cost(draw.numbers, draws * draw.operations), words, "choose a smaller size" + _smaller(law, size))


def check_prediction(law: Estimated) -> None:
    """Raise `TooCostly` if a prediction exceeds a limit."""
    check_cost(estimate(law), f"the prediction of {type(law).__name__}", "ask for fewer points or a coarser grid")


def _smaller(law: Estimated, size: int) -> str:
    """Return an addition to the remedy, which names the whole-number parameters that are larger than the size."""
    wholes = {
        name: getattr(law, name)
        for name, meta in type(law).parameters().items()
        if meta.kind in ("physics", "experiment")
        and isinstance(getattr(law, name), int)
        and not isinstance(getattr(law, name), bool)
    }
    large = [name for name, value in wholes.items() if value > size]
    return f" or fewer {', '.join(large)}" if large else ""


# -- words --------------------------------------------------------------------------------------------------------------


def bytes_in_words(count: float) -> str:
    """Return a number of bytes in words.

    >>> bytes_in_words(12), bytes_in_words(4e9)
    ('12 bytes', '4 GB')
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def duration(seconds: float) -> str:
    """Return a duration in words.

    >>> duration(90), duration(7200), duration(1e12)
    ('90 s', '2 h', '3.17e+04 years')
    """
    for unit, length, most in (("s", 1.0, 120.0), ("min", 60.0, 7200.0), ("h", 3600.0, 1.8e5), ("days", 86400.0, 6.4e7)):
        if seconds < most:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds / 3.156e7:.3g} years" if math.isfinite(seconds) else "for ever"


# -- one thread per task ----------------------------------------------------------------------------------------------


_lock = threading.Lock()
_users = 0
_limit: Any = None


@contextlib.contextmanager
def single_threaded() -> Iterator[None]:
    """Make every BLAS call of this process use one thread within a block; blocks may nest and overlap between threads.

    There are two reasons. Workers that each start one thread per core compete for the cores. A matrix product that is split over
    another number of threads may differ in its last bits, so that a result would depend on the machine and on the engine.

    >>> import numpy as np
    >>> with single_threaded():
    ...     product = np.ones((2, 2)) @ np.ones((2, 2))
    """
    global _users, _limit
    with _lock:
        if _users == 0:
            _limit = _all_libraries_to_one()
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.restore_original_limits()


def _all_libraries_to_one() -> Any:
    import numpy  # noqa: F401  (SciPy brings its own BLAS: a library must be loaded before it can be limited)
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1, user_api="blas")
