"""What a computation may cost: memory and time, estimated before it starts and watched while it runs.

Three limits hold for every entry (theory, simulate, sweep, compare, forecast, the explorer). Each can be changed by an environment
variable, for a block of code by `limits(...)`, and on the command line by `limitlab --memory 16GB --time 100h COMMAND`; "none" lifts it.

    LIMITLAB_MEMORY    numbers held at once        4 GB, or half of the machine's memory if that is less
    LIMITLAB_TIME      estimated processor time    24 h
    LIMITLAB_PATIENCE  one integration             120 s (one that would take longer stops after 5 s and says so)

Estimates come from a law's `cost(size)`: how many numbers it holds and how many operations it does. They are good to a factor of a few.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from limitlab.errors import ConvergenceError, TooCostly

MEMORY, TIME, PATIENCE = "LIMITLAB_MEMORY", "LIMITLAB_TIME", "LIMITLAB_PATIENCE"
DEFAULT_MEMORY, DEFAULT_TIME, DEFAULT_PATIENCE = 4e9, 24 * 3600.0, 120.0
NUMBER = 8
"""Bytes of a number."""
SPEED = 1e9
"""Operations per second of one core, for estimates."""
LONG = 20.0
"""Seconds from which an estimate is mentioned before the work starts."""
FIRST_LOOK = 5.0
"""Seconds after which the pace of an integration is looked at."""

_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_CLOCK = {"": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True)
class Cost:
    """What a computation takes.

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


def refuse_beyond(cost: Cost, what: str, remedy: str) -> None:
    """Refuse work whose estimate is beyond a limit: what it is, what it would take, what is allowed, what to do.

    >>> try:
    ...     refuse_beyond(Cost(numbers=1e12), "this draw", "choose a smaller size")
    ... except TooCostly as refused:
    ...     print(str(refused)[:77])
    this draw would hold about 8 TB, more than the 4 GB allowed: choose a smaller
    """
    if not cost.memory <= memory_limit():
        taken, allowed, names = _bytes(cost.memory), _bytes(memory_limit()), f"{MEMORY}, limitlab --memory"
        message = f"{what} would hold about {taken}, more than the {allowed} allowed"
    elif not cost.seconds <= time_limit():
        taken, allowed, names = duration(cost.seconds), duration(time_limit()), f"{TIME}, limitlab --time"
        message = f"{what} would take about {taken} of processor time, more than the {allowed} allowed"
    else:
        if cost.seconds > LONG:
            logging.getLogger("limitlab").warning(f"{what} takes about {duration(cost.seconds)} of processor time")
        return
    raise TooCostly(f"{message}: {remedy}, or allow more ({names})", cost)


def refuse_listing(count: float, what: str, each: float = 300.0) -> None:
    """Refuse a list so long that its entries alone (so many bytes each) are beyond the limit of memory."""
    refuse_beyond(Cost(numbers=count * each / NUMBER), what, "choose fewer")


# -- the limits ---------------------------------------------------------------------------------------------------------


def memory_limit() -> float:
    """Bytes that a computation may hold by its estimate."""
    text = os.environ.get(MEMORY, "")
    return read_memory(text, MEMORY) if text else min(DEFAULT_MEMORY, machine_memory() / 2)


def time_limit() -> float:
    """Seconds of processor time that a computation may take by its estimate."""
    text = os.environ.get(TIME, "")
    return read_time(text, TIME) if text else DEFAULT_TIME


def patience() -> float:
    """Seconds that one integration may take."""
    text = os.environ.get(PATIENCE, "")
    return read_time(text, PATIENCE) if text else DEFAULT_PATIENCE


@contextlib.contextmanager
def limits(
    memory: str | float | None = None, time: str | float | None = None, patience: str | float | None = None
) -> Iterator[None]:
    """Other limits within a block, here and in the worker processes that are started inside it.

    Parameters
    ----------
    memory
        Bytes, or a text such as "16GB"; "none" lifts the limit, None leaves it as it is.
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
    """Bytes: a number, or one with a unit.

    >>> read_memory("1.5GB"), read_memory("2000"), read_memory("none")
    (1500000000.0, 2000.0, inf)
    """
    match = re.fullmatch(r"\s*([0-9.eE+]+)\s*([kmgt]?)b?\s*", text.lower())
    return _read(text, name, match, _UNITS, "a number of bytes such as 4GB")


def read_time(text: str, name: str = "time") -> float:
    """Seconds: a number, or one with a unit.

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
    raise ValueError(f"{name} = {text!r} is not allowed: must be {wanted}, or none")


@functools.cache
def machine_memory() -> float:
    """Bytes that this process could have: the machine's, or what the operating system allows it."""
    found = [math.inf]
    with contextlib.suppress(ValueError, OSError, AttributeError):
        found.append(float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")))
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        found += [float(soft)] if soft != resource.RLIM_INFINITY else []
    with contextlib.suppress(ValueError, OSError), open("/sys/fs/cgroup/memory.max") as file:
        found.append(float(file.read()))  # "max" is no number: no limit
    return min(found)


# -- while it runs ------------------------------------------------------------------------------------------------------


class Pace:
    """How fast an integration moves from 0 to `end`; one that would never arrive is stopped with a sentence.

    Parameters
    ----------
    end
        Where it has to arrive.
    what
        What runs along (for the sentence).

    Examples
    --------
    >>> pace = Pace(1e6, "time")
    >>> pace.at(10.0)      # asked again and again while it moves; raises once it is clear that it will take too long
    """

    def __init__(self, end: float, what: str = "time", clock: Callable[[], float] = time.thread_time):
        self.end, self.what, self.clock = float(end), what, clock
        self.began = clock()
        self._look = self.began + FIRST_LOOK
        self._last = (self.began, 0.0)

    def at(self, position: float, state: Any = None) -> None:
        """The integration has come so far."""
        now = self.clock()
        if now < self._look:
            return
        before, place = self._last
        speed = (position - place) / max(now - before, 1e-9)  # of late: solvers speed up and slow down
        left = (self.end - position) / speed if speed > 0 else math.inf
        if now - self.began + left > patience():
            raise ConvergenceError(
                f"the integration reached {self.what} {position:.3g} of {self.end:.3g} in {now - self.began:.0f} s and would need "
                f"about {duration(left)} more: give a shorter {self.what} or milder parameters, or allow more ({PATIENCE})",
                state,
            )
        logging.getLogger("limitlab").warning(
            f"the integration has reached {self.what} {position:.3g} of {self.end:.3g} after {now - self.began:.0f} s, "
            f"about {duration(left)} to go"
        )
        self._last, self._look = (now, position), now + FIRST_LOOK


class Heartbeat:
    """A line in the log "limitlab" every few seconds, for work whose end is not known.

    >>> beat = Heartbeat("looking for ratio")
    >>> beat(12)       # nothing yet: said again and again, it speaks after some seconds
    """

    def __init__(self, what: str, clock: Callable[[], float] = time.perf_counter):
        self.what, self.clock = what, clock
        self.began = clock()
        self._next = self.began + FIRST_LOOK

    def __call__(self, done: int) -> None:
        """So many steps are done."""
        now = self.clock()
        if now >= self._next:
            logging.getLogger("limitlab").warning(f"{self.what}: {done} points after {now - self.began:.0f} s")
            self._next = now + 2 * FIRST_LOOK


# -- words --------------------------------------------------------------------------------------------------------------


def _bytes(count: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def duration(seconds: float) -> str:
    """A time as people say it.

    >>> duration(90), duration(7200), duration(1e12)
    ('90 s', '2 h', '3.17e+04 years')
    """
    for unit, length, most in (("s", 1.0, 120.0), ("min", 60.0, 7200.0), ("h", 3600.0, 1.8e5), ("days", 86400.0, 6.4e7)):
        if seconds < most:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds / 3.156e7:.3g} years" if math.isfinite(seconds) else "for ever"
