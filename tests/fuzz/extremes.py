"""Predictions at extreme but allowed parameters, for every law.

    python tests/fuzz/extremes.py                             40 sets of parameters of every law; prints a table and what is wrong
    python tests/fuzz/extremes.py Ridge MaxMargin --sets 400 --seed 3

A set changes one to three parameters of a law at its defaults or at a check point. Each changed number is drawn within its bounds, mostly
far from its default. An answer is one of these:

- "answered": every observable is finite or infinite, within its declared range, without a warning, within the limits of time and memory.
- "refused": limitlab raises one of its own errors.
- "NaN", "warning", "slow", "foreign": the prediction is NaN, a library warns, the prediction takes longer than 20 s of processor time
  without a message, or the error of a library arrives.
- "range": an observable would leave its declared range, and limitlab refuses to return it.
- "jump": an observable moves by more than 1 % of its size if one changed parameter moves by 1e-7 of its value.
- "accuracy": the prediction with finer solver options differs by more than three times the stated accuracy and its own accuracy.
"""

from __future__ import annotations

import argparse
import math
import resource
import signal
import sys
import time
import typing
import warnings
from collections import Counter
from typing import Any

import numpy as np

from limitlab._core.law import Law
from limitlab._core.registry import all_laws
from limitlab.errors import ConvergenceError, NotComputable, Refused, TooCostly

SECONDS = 20.0
MEMORY = 6e9
STEP = 1e-7
WRONG = ("NaN", "warning", "slow", "foreign", "range", "jump", "accuracy")


class OutOfTime(BaseException):
    """The prediction took longer than `SECONDS` of processor time."""


def _numbers(law: type[Law], name: str) -> tuple[Any, ...]:
    """Return the kinds of number (int, float, tuple of them) that a parameter accepts."""
    from calls import _members

    return tuple(
        kind
        for kind in _members(law.model_fields[name].annotation)
        if kind in (int, float)
        or (typing.get_origin(kind) is tuple and set(typing.get_args(kind)) <= {int, float, Ellipsis})
    )


def extreme_number(rng: np.random.Generator, meta: Any) -> float:
    """Return a number within the bounds of a parameter, mostly far from 1 or close to a bound."""
    low = meta.above if meta.above is not None else meta.least
    high = meta.below if meta.below is not None else meta.most
    distance = 10.0 ** (rng.uniform(-3, 3) if rng.random() < 0.4 else rng.uniform(-30, 12))
    if low is not None and high is not None:
        share = min(distance, 1.0) * rng.random() if rng.random() < 0.8 else rng.random()
        number = low + (high - low) * share if rng.random() < 0.5 else high - (high - low) * share
    elif low is not None:
        number = low + distance
    elif high is not None:
        number = high - distance
    else:
        number = distance * rng.choice([-1, 1])
    return float(number)


def extreme_value(rng: np.random.Generator, law: type[Law], name: str) -> Any:
    """Return an extreme value of a parameter that holds numbers."""
    meta = law.parameters()[name]
    kind = _numbers(law, name)[rng.integers(len(_numbers(law, name)))]
    if kind is int:
        return int((meta.least or 0) + rng.choice([0, 1, 2, 3, 7, 30, 100, 1000, 10_000]))
    if kind is float:
        return extreme_number(rng, meta)
    return tuple(sorted(extreme_number(rng, meta) for _ in range(rng.integers(1, 4))))


def parameter_set(law: type[Law], seed: int, number: int) -> tuple[Law, dict[str, Any]]:
    """Return a law that accepts the changes, and the changes."""
    rng = np.random.default_rng([seed, number])
    names = [name for name in law.parameters() if _numbers(law, name)]
    for _ in range(200):
        base = [law(), *law.check_points()][rng.integers(1 + len(law.points))]
        if not names:
            return base, {}
        chosen = rng.permutation(names)[: rng.integers(1, 4)].tolist()
        changes = {name: extreme_value(rng, law, name) for name in chosen}
        try:
            return base.replace(**changes), changes
        except (ValueError, NotComputable, ConvergenceError):
            continue
    return law(), {}


def judged(law: Law, changes: dict[str, Any]) -> tuple[str, str]:
    """Return how the prediction of a law ends, and a detail."""
    signal.signal(signal.SIGPROF, _out_of_time)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            values = law.theory()
        foreign = [each for each in heard if not issubclass(each.category, UserWarning)]  # limitlab's own are sentences
        if foreign:
            return "warning", str(foreign[0].message)
        return _checked_again(law, changes, values)
    except OutOfTime:
        return "slow", ""
    except NotComputable as error:
        return ("range" if "leave its range" in str(error) else "refused"), str(error)
    except (Refused, TooCostly) as error:
        return "refused", str(error)
    except FloatingPointError as error:
        return "NaN", str(error)
    except Exception as error:
        ours = type(error).__module__.startswith("limitlab")
        return ("refused" if ours else "foreign"), f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _out_of_time(*_: Any) -> None:
    raise OutOfTime


def _checked_again(law: Law, changes: dict[str, Any], values: Any) -> tuple[str, str]:
    """Compare a prediction with those at finer solver options and at neighbouring parameters."""
    names = [name for name in law.observed() if values[name].dtype.kind == "f"]
    stated = {name: values[name].attrs.get("numerical_error", math.inf) for name in names}
    try:
        finer = law.finer()
        better = finer.theory() if finer != law else values
    except (ValueError, NotComputable, ConvergenceError):  # the finer options exceed their bounds or the limits
        finer, better = law, values
    if finer != law:
        for name in names:
            gap, scale = _gap(values[name], better[name])
            if gap > 3 * stated[name] + better[name].attrs.get("numerical_error", 0.0) + 1e-12 * scale:
                return (
                    "accuracy",
                    f"{name} = {_short(values[name])} moves by {gap:.2g} with finer options, stated {stated[name]:.2g}",
                )
    for changed, value in changes.items():
        if not isinstance(value, float) or value == 0 or law.parameters()[changed].kind == "solver":
            continue
        try:
            near = law.replace(**{changed: _moved(law.parameters()[changed], value)}).theory()
        except (ValueError, NotComputable, ConvergenceError):
            continue
        for name in names:
            if near[name].shape != values[name].shape:
                continue
            gap, scale = _gap(values[name], near[name])
            error = stated[name] if math.isfinite(stated[name]) else 0.0
            if gap > 0.01 * scale + 10 * error and gap > 1e-14:
                return "jump", f"{name} = {_short(values[name])} becomes {_short(near[name])} as {changed} moves by 1e-7"
    return "answered", ""


def _moved(meta: Any, value: float) -> float:
    """Return a number moved by 1e-7 of its distance from its lower bound, because a limit may diverge at the bound."""
    low = next((bound for bound in (meta.above, meta.least) if bound is not None), 0.0)
    return low + (value - low) * (1 + STEP)


def _gap(first: Any, second: Any) -> tuple[float, float]:
    """Return the largest finite difference of two arrays, and the scale of the first."""
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    finite = np.isfinite(first) & np.isfinite(second)
    return float(np.abs(first[finite] - second[finite]).max(initial=0)), float(np.abs(first[finite]).max(initial=0))


def _short(array: Any) -> str:
    flat = np.ravel(np.asarray(array))
    return f"{flat[0]:.6g}" if flat.size == 1 else f"({flat[0]:.6g} ... {flat[-1]:.6g})"


def main(arguments: list[str] | None = None) -> int:
    """Run the sets and print a table; return 1 if an answer is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("laws", nargs="*")
    parser.add_argument("--sets", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="number of one set")
    options = parser.parse_args(arguments)
    resource.setrlimit(resource.RLIMIT_AS, (int(MEMORY), int(MEMORY)))
    total: Counter[str] = Counter()
    for _name, law in sorted(all_laws().items()):
        if options.laws and law.__name__ not in options.laws:
            continue
        ends: Counter[str] = Counter()
        began = time.process_time()
        for number in range(options.sets) if options.only is None else [options.only]:
            candidate, changes = parameter_set(law, options.seed, number)
            end, detail = judged(candidate, changes)
            ends[end] += 1
            if end in WRONG:
                words = ", ".join(f"{key}={value!r}" for key, value in changes.items())
                print(f"  {end:8s} {law.__name__} set {number}: {words[:200]}\n           {detail[:300]}", flush=True)
        total += ends
        print(f"{law.__name__:24s} {dict(ends)} {time.process_time() - began:.0f} s", flush=True)
    print(dict(total))
    return int(any(total[end] for end in WRONG))


if __name__ == "__main__":
    sys.exit(main())
