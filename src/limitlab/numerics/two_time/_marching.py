"""Integration of a causal two-time system forward in time ("march"), and extrapolation from several grids.

A system has *correlations* C(t, s) = C(s, t), *responses* R(t, s) with R(t, t) = 1, and *functions* x(t), which obey

    d/dt X(t, s) = -lambda_X(t) X(t, s) + F_X(t, s),     d/dt C(t, t) = 2 [-lambda_C(t) C(t, t) + F_C(t, t)],          (1)

where the forcings F contain memory integrals over all times up to t. A system may also have *auxiliary* two-time functions that follow
algebraically from these, for example solutions of Volterra equations of the second kind. A step computes one row of the triangular
history. The step is the Crank-Nicolson method for (1), in which the local rate lambda is implicit, so that a fast mode is damped. Each step
evaluates the system twice, after a predictor (with the forcing and rate of the previous point) and after a corrector. The error is
O(step^2).

The error of a march is c_2 step^2 + c_3 step^3 + c_4 step^4 + ... Odd powers occur because the predictor is explicit. The values on
grids of N, 2N, 4N, ... steps are combined as in Romberg's quadrature with these powers,

    f^(0)_k = value with 2^k N steps,     f^(j)_k = f^(j-1)_k + (f^(j-1)_k - f^(j-1)_{k-1}) / (2^(j+1) - 1).             (2)

The reported error is a third of the last change |f^(J-1)_J - f^(J-1)_{J-1}| in the second-best column of the table. For two grids
this is the usual estimate by step doubling. For more grids it is larger than the error of the best value f^(J)_J.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numba
import numpy as np
from numpy.typing import NDArray

from limitlab._core.checks import number, whole
from limitlab._core.cost import FIRST_LOOK, duration
from limitlab._core.files import DamagedFile, checkpoint_of, read_arrays, write_arrays
from limitlab.errors import ConvergenceError, Refused
from limitlab.numerics.two_time._memory import History, WholeHistory, triangle_size
from limitlab.numerics.two_time._thinned import ThinnedHistory, capacity

# -- marching -----------------------------------------------------------------------------------------------------------

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Flow:
    """The rates and forcings of the equations at the newest time, and the observables to record at this time."""

    rates: Mapping[str, float]
    forcings: Mapping[str, Floats | float]
    observed: Mapping[str, float]


class TwoTimeSystem(Protocol):
    """A system of equations for functions of two times, in which the values at a time depend on earlier values only."""

    @property
    def correlations(self) -> tuple[str, ...]:
        """Names of the symmetric two-time functions."""

    @property
    def responses(self) -> tuple[str, ...]:
        """Names of the causal two-time functions that are 1 on the diagonal."""

    @property
    def auxiliaries(self) -> tuple[str, ...]:
        """Names of the two-time functions that the flow computes itself."""

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of the functions of one time."""

    @property
    def observed(self) -> tuple[str, ...]:
        """Names of the observables that the flow reports."""

    def start(self) -> Mapping[str, float]:
        """Return the values at time 0 of every function and of the diagonal of every correlation."""

    def flow(self, history: History) -> Flow:
        """Return rates and forcings at the newest time, and write the newest rows of the auxiliaries into the history."""

    def constrain(self, history: History) -> None:
        """Impose constraints on the newest row, such as a fixed norm. `march` calls this before every evaluation."""


@dataclass(frozen=True)
class Progress:
    """Progress of a march, as steps done, total steps, seconds used, and seconds left, estimated from the remaining work."""

    done: int
    steps: int
    elapsed: float
    remaining: float


@dataclass(frozen=True)
class Solution:
    """Result of a march, with times, functions and recorded observables by name, and the history of two-time functions."""

    times: Floats
    paths: Mapping[str, Floats]
    history: History

    def two_time(self, name: str) -> Floats:
        """Return a two-time function as a full lower triangle with zeros above the diagonal. The history must be whole."""
        if not isinstance(self.history, WholeHistory):
            raise Refused(f"two_time({name!r}) is not allowed with per_octave: a thinned history keeps `last_row` only")
        size = self.times.size
        full = np.zeros((size, size))
        full[np.tril_indices(size)] = self.history.triangles[name]
        return full

    def last_row(self, name: str) -> tuple[Floats, Floats]:
        """Return the earlier times that the last row stores, and X(end, .) at these times."""
        return self.times[self.history.columns], self.history.row(name)


def memory_bytes(system: TwoTimeSystem, steps: int, per_octave: int | None = None) -> int:
    """Return the number of bytes of the two-time functions of a march."""
    functions = len(system.correlations) + len(system.responses) + len(system.auxiliaries)
    if per_octave is None:
        return 8 * functions * triangle_size(steps)
    size = capacity(steps, per_octave)
    return 16 * (functions + 2) * size**2  # rows, columns, and the points and weights of both


def march(
    system: TwoTimeSystem,
    end: float,
    steps: int,
    *,
    per_octave: int | None = None,
    memory_limit: float = 2e9,
    checkpoint: str | Path | None = None,
    checkpoint_every: float = 60.0,
    progress: Callable[[Progress], None] | None = None,
) -> Solution:
    """Integrate a two-time system from 0 to `end` in `steps` equal steps.

    Parameters
    ----------
    system
        The equations.
    end, steps
        Last time and number of steps.
    per_octave
        Points per octave of a thinned history. With a thinned history step i costs O((per_octave * log i)^2 + i) operations
        instead of O(i^2). None stores the whole history.
    memory_limit
        Largest allowed number of bytes of the two-time functions. If they need more, `march` raises an error at the start.
    checkpoint, checkpoint_every
        File for the state of the march, and number of seconds between two saves. If the file exists, the march continues
        from the saved state, with the same result to the last bit. The file is removed at the end. Without `checkpoint`, the
        file of a surrounding `limitlab._core.files.checkpointing` block is used.
    progress
        Function that is called with a `Progress` about ten times a second.

    Examples
    --------
    >>> from limitlab.numerics.two_time.examples import DampedOscillator
    >>> solution = march(DampedOscillator(coupling=1.0), end=2.0, steps=200)
    >>> bool(abs(solution.two_time("R")[-1, 0] - DampedOscillator(coupling=1.0).exact(2.0)) < 1e-4)
    True
    """
    _check(end, steps, memory_bytes(system, steps, per_octave), memory_limit)
    step = end / steps
    names = ((*system.correlations, *system.responses), system.auxiliaries, system.functions, system.observed)
    history: History = (
        WholeHistory(*names, steps, step) if per_octave is None else ThinnedHistory(*names, steps, step, per_octave)
    )
    signature = f"{type(system).__name__} {system!r} end={end!r} steps={steps} per_octave={per_octave}"
    if checkpoint is None:
        around = checkpoint_of("march", system, end, steps, per_octave)
        checkpoint, checkpoint_every = around.place, around.every
        if checkpoint is not None:
            Path(checkpoint).parent.mkdir(parents=True, exist_ok=True)
            signature = Path(checkpoint).stem  # the hash of the system, because two systems may have the same representation
    resumed = None if checkpoint is None else _load_checkpoint(checkpoint, signature, history)
    flow = _begin(system, history) if resumed is None else Flow(*resumed, {})
    clock = _Clock(steps, per_octave, history.index, progress)
    saved = time.monotonic()
    for index in range(history.index + 1, steps + 1):
        with np.errstate(over="ignore", invalid="ignore"):  # _advance raises ConvergenceError after an overflow
            flow = _advance(system, history, flow, step, index)
        clock.tick(index)
        if checkpoint is not None and time.monotonic() - saved > checkpoint_every:
            _save_checkpoint(checkpoint, signature, history, flow.rates, flow.forcings)
            saved = time.monotonic()
    if checkpoint is not None:
        Path(checkpoint).unlink(missing_ok=True)
    return Solution(np.linspace(0.0, end, steps + 1), {**history.paths, **history.records}, history)


def _check(end: float, steps: int, needed: int, limit: float) -> None:
    number("end", end, above=0)
    whole("steps", steps, least=2)
    if needed > limit:
        allowed = int(steps * np.sqrt(limit / needed))
        raise Refused(
            f"steps = {steps} is not allowed: the history would take {needed / 1e9:.2f} GB, the limit is {limit / 1e9:.2f} GB; "
            f"use at most {allowed} steps, a thinned history (per_octave), or raise memory_limit"
        )


def _begin(system: TwoTimeSystem, history: History) -> Flow:
    """Write the start into row 0 and return the flow there."""
    start = system.start()
    for name in system.functions:
        history.paths[name][0] = start[name]
    for name in system.correlations:
        history.row(name)[0] = start[name]
    for name in system.responses:
        history.row(name)[0] = 1.0
    system.constrain(history)
    return _record(system, history, system.flow(history))


def _record(system: TwoTimeSystem, history: History, flow: Flow) -> Flow:
    for name in system.observed:
        history.records[name][history.index] = flow.observed[name]
    return flow


def _advance(system: TwoTimeSystem, history: History, old: Flow, step: float, index: int) -> Flow:
    """Advance by one step (predict with the old flow, evaluate, correct, evaluate) and return the new flow."""
    history.close_row()
    stored = history.begin_row(index)
    forcings = {name: f[stored] if isinstance(f, np.ndarray) else f for name, f in old.forcings.items()}
    new = old = Flow(old.rates, forcings, old.observed)
    for _ in range(2):
        _crank_nicolson(system, history, old, new, step, index)
        system.constrain(history)
        new = system.flow(history)
        if not math.isfinite(sum(map(abs, new.rates.values())) + sum(map(_sum, new.forcings.values()))):
            rate = max(abs(value) for value in old.rates.values())
            raise ConvergenceError(
                f"the march overflowed at time {index * step:.4g}: the step {step:.3g} times the fastest local rate {rate:.3g} is "
                f"{step * rate:.3g}; use more steps (below 1 is safe), or more points per octave if the history is thinned",
                estimate=history.paths,
            )
    return _record(system, history, new)


def _sum(force: Floats | float) -> float:
    return float(np.add.reduce(force)) if isinstance(force, np.ndarray) else force


def _crank_nicolson(system: TwoTimeSystem, history: History, old: Flow, new: Flow, step: float, index: int) -> None:
    """Write the newest point of every evolving quantity. With `new is old` this is the predictor."""
    half = 0.5 * step
    for name in system.functions:
        path, (l0, l1) = history.paths[name], (old.rates[name], new.rates[name])
        force = float(old.forcings[name]) + float(new.forcings[name])
        path[index] = (path[index - 1] * (1 - half * l0) + half * force) / (1 + half * l1)
    for names, symmetric in ((system.correlations, True), (system.responses, False)):
        for name in names:
            before, newest = history.previous(name), history.row(name)
            forces = np.asarray(old.forcings[name]), np.asarray(new.forcings[name])
            _move_row(before, newest, *forces, old.rates[name], new.rates[name], step, symmetric)


@numba.njit(cache=True, error_model="numpy")
def _move_row(before: Any, newest: Any, f0: Any, f1: Any, l0: Any, l1: Any, step: Any, symmetric: Any) -> None:
    """Write X(t, s) of (1) for all s < t, and X(t, t), which evolves in both arguments or is 1 for a response."""
    half, last = 0.5 * step, before.size - 1
    for s in range(before.size):
        newest[s] = (before[s] * (1 - half * l0) + half * (f0[s] + f1[s])) / (1 + half * l1)
    newest[-1] = 1.0
    if symmetric:
        newest[-1] = (before[last] * (1 - step * l0) + step * (f0[last] + f1[-1])) / (1 + step * l1)


class _Clock:
    """Reports the remaining time of a march, estimated from the work of the remaining steps."""

    def __init__(self, steps: int, per_octave: int | None, first: int, callback: Callable[[Progress], None] | None):
        size = np.arange(steps + 1, dtype=float)
        if per_octave is not None:
            size = np.minimum(size, 2 * per_octave * np.log2(4 + size / per_octave))
        self.work = np.cumsum(size**2 + 100.0 * np.arange(steps + 1) / max(steps, 1) + 2000.0)
        self.first, self.steps, self.callback = first, steps, callback
        self.began = self.last = time.monotonic()
        self.next_log = self.began + FIRST_LOOK

    def tick(self, done: int) -> None:
        now = time.monotonic()
        if self.callback is None and now > self.next_log and done < self.steps:
            share = (self.work[-1] - self.work[done]) / (self.work[done] - self.work[self.first])
            logging.getLogger("limitlab").warning(
                f"the march has done {done} of {self.steps} steps after {now - self.began:.0f} s, about "
                f"{duration((now - self.began) * float(share))} to go"
            )
            self.next_log = now + 2 * FIRST_LOOK
        if self.callback is None or (now - self.last < 0.1 and done < self.steps):
            return
        self.last = now
        share = (self.work[-1] - self.work[done]) / (self.work[done] - self.work[self.first])
        self.callback(Progress(done, self.steps, now - self.began, (now - self.began) * float(share)))


# -- saved states -------------------------------------------------------------------------------------------------------


def _save_checkpoint(
    path: str | os.PathLike[str],
    signature: str,
    history: History,
    rates: Mapping[str, float],
    forcings: Mapping[str, Floats | float],
) -> None:
    """Write the history up to its newest point, and the flow there.

    The file is replaced atomically, so that a reader finds either the earlier file or the new file.
    """
    arrays: dict[str, NDArray[Any]] = {f"history/{name}": array for name, array in history.state().items()}
    arrays |= {f"path/{name}": path[: history.index + 1] for name, path in history.paths.items()}
    arrays |= {f"record/{name}": path[: history.index + 1] for name, path in history.records.items()}
    arrays |= {f"rate/{name}": np.array(rate) for name, rate in rates.items()}
    arrays |= {f"forcing/{name}": np.asarray(forcing) for name, forcing in forcings.items()}
    write_arrays(path, arrays, {"signature": signature, "index": int(history.index)})


def _load_checkpoint(
    path: str | os.PathLike[str], signature: str, history: History
) -> tuple[dict[str, float], dict[str, Floats | float]] | None:
    """Fill the history from a file and return rates and forcings at its newest point, or None if there is no file.

    Raise ValueError if the file belongs to another system or grid, is damaged, or was written by another version.
    """
    try:
        about, arrays = read_arrays(path)
        if about["signature"] != signature:
            raise ValueError(
                f"checkpoint = {str(path)!r} is not allowed: the file was written by another integration ({about['signature']}); "
                "give another file or remove it"
            )
        parts: dict[str, dict[str, NDArray[Any]]] = {kind: {} for kind in ("history", "path", "record", "rate", "forcing")}
        for name, array in arrays.items():
            kind, _, rest = name.partition("/")
            parts[kind][rest] = array
        history.index = int(about["index"])
        for values_of, saved in ((history.paths, parts["path"]), (history.records, parts["record"])):
            for name, values in values_of.items():
                values[: history.index + 1] = saved[name]
        history.restore(parts["history"])
    except FileNotFoundError:
        return None
    except (DamagedFile, KeyError) as error:
        raise ValueError(
            f"checkpoint = {str(path)!r} is not allowed: it is damaged or from another version of limitlab ({error}); remove it or give "
            "another file"
        ) from None
    rates = {name: float(value) for name, value in parts["rate"].items()}
    forcings: dict[str, Floats | float] = {
        name: value if value.ndim else float(value) for name, value in parts["forcing"].items()
    }
    return rates, forcings


# -- extrapolation ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Extrapolated:
    """Functions at requested times, extrapolated to step zero, with the estimated error of every entry.

    Attributes
    ----------
    values, errors
        Arrays over the requested times, by name.
    finest
        The march with the most steps.
    """

    values: Mapping[str, Floats]
    errors: Mapping[str, Floats]
    finest: Solution


def romberg_table(levels: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Return the extrapolated value and its error estimate from values on grids N, 2N, 4N, ...

    >>> value, error = romberg_table([np.array(1.0 + h**2 + h**3) for h in (0.4, 0.2, 0.1)])
    >>> bool(abs(value - 1) < 1e-12), bool(error < 0.01)
    (True, True)
    """
    table = [np.asarray(level, dtype=float) for level in levels]
    if len(table) == 1:
        return table[0], np.full(table[0].shape, np.inf)
    power = 2
    while len(table) > 1:
        change = np.abs(table[-1] - table[-2]) / 3.0
        table = [fine + (fine - coarse) / (2.0**power - 1.0) for coarse, fine in pairwise(table)]
        power += 1
    return table[0], change


def at_times(solution: Solution, name: str, times: Floats, points: int = 6) -> Floats:
    """Return a function of a solution at any times, by local polynomials of degree `points - 1` (exact on grid points)."""
    return interpolate(solution.times, solution.paths[name], times, points)


def interpolate(grid: Floats, values: Floats, times: Floats, points: int = 6) -> Floats:
    """Return values on a uniform grid at any times, by local polynomials of degree `points - 1` along the first axis.

    >>> grid = np.linspace(0, 1, 11)
    >>> interpolate(grid, np.stack([grid, grid**2], axis=1), np.array([0.25])).round(12).tolist()
    [[0.25, 0.0625]]
    """
    points = min(points, grid.size)
    step = grid[1] - grid[0]
    position = np.asarray(times, dtype=float) / step
    near = np.rint(position)
    position = np.where(np.abs(position - near) < 1e-9 * np.maximum(1.0, near), near, position)
    first = np.clip(np.floor(position).astype(int) - points // 2 + 1, 0, grid.size - points)
    local = position - first
    result = np.zeros(position.shape + values.shape[1:])
    for p in range(points):
        weight = np.ones(position.shape)
        for q in range(points):
            if q != p:
                weight *= (local - q) / (p - q)
        result += weight.reshape(position.shape + (1,) * (values.ndim - 1)) * values[first + p]
    return result


def extrapolate(
    solve: Callable[[int], Solution],
    steps: int,
    times: Floats,
    levels: int = 3,
    names: Sequence[str] | None = None,
    read: Callable[[Solution, str, Floats], Floats] = at_times,
) -> Extrapolated:
    """March on `levels` grids and return the functions extrapolated to step zero.

    Parameters
    ----------
    solve
        Function that runs a march with the number of steps that is its argument.
    steps, levels
        Steps of the finest grid, rounded up to a multiple of 2^(levels-1), and number of grids. Each grid has half the steps of
        the next.
    times
        Times of the results.
    names
        Functions to report (default: all).
    read
        Function of a solution, a name and the times that returns the values. The default reads functions of one time.

    Examples
    --------
    >>> from limitlab.numerics.two_time.examples import DampedOscillator
    >>> from limitlab.numerics.two_time._marching import march
    >>> system = DampedOscillator(coupling=1.0)
    >>> result = extrapolate(lambda n: march(system, 2.0, n), 80, np.array([1.0, 2.0]))
    >>> bool(np.all(np.abs(result.values["x"] - system.exact(np.array([1.0, 2.0]))) < 1e-7))
    True
    """
    whole("levels", levels, least=1)
    coarsest = max(2, -(-steps // 2 ** (levels - 1)))
    solutions = [solve(coarsest * 2**level) for level in range(levels)]
    values, errors = {}, {}
    for name in names if names is not None else solutions[-1].paths:
        values[name], errors[name] = romberg_table([read(solution, name, times) for solution in solutions])
    return Extrapolated(values, errors, solutions[-1])
