"""The errors that limitlab raises, and how they are worded.

Bad input is always a `ValueError` whose one line names the thing, the value, what is allowed and what to do. A computation
that stops short of its accuracy raises `ConvergenceError`, which carries the best estimate: a last iterate is never
returned as if it were the answer. Where the numbers themselves overflow or lose their meaning, `NotComputable` says at which parameters.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

__all__ = ["ConvergenceError", "NotComputable", "TooCostly", "UnreachableTarget"]


class ConvergenceError(RuntimeError):
    """A solver stopped before it reached its accuracy; `estimate` is the best value it had, `accuracy` its error estimate."""

    def __init__(self, message: str, estimate: Any = None, accuracy: float = float("nan")):
        super().__init__(message)
        self.estimate = estimate
        self.accuracy = accuracy


class NotComputable(RuntimeError):
    """A legal point at which the numbers leave what floating-point arithmetic can hold; what failed inside is its cause."""


class UnreachableTarget(ValueError):
    """A plan asked for a value that the law never takes; `best` and `at` say how close one can get, and where."""

    def __init__(self, message: str, best: float, at: float):
        super().__init__(message)
        self.best = best
        self.at = at


class TooCostly(ValueError):
    """Work that was refused before it started; `cost` is the estimate."""

    def __init__(self, message: str, cost: Any = None):
        super().__init__(message)
        self.cost = cost


LISTED = 25
"""Known names that a hint lists; of more it gives the nearest."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for a misspelt name: the closest known ones; when none is close all of them, or of many the nearest.

    >>> did_you_mean("rigde", ["ridge", "ratio", "noise"])
    "did you mean 'ridge'?"
    >>> did_you_mean("zzz", ["ratio", "noise"])
    'known names: noise, ratio'
    """
    options = sorted(known)
    lowered = {option.lower().replace("-", "_"): option for option in options}
    close = difflib.get_close_matches(name.lower().replace("-", "_"), lowered, n=2, cutoff=0.6)
    if close:
        return "did you mean " + " or ".join(repr(lowered[match]) for match in close) + "?"
    if len(options) <= LISTED:
        return "known names: " + ", ".join(options)
    nearest = difflib.get_close_matches(name.lower().replace("-", "_"), lowered, n=3, cutoff=0.0)
    return f"of the {len(options)} known names the nearest are {', '.join(lowered[match] for match in nearest)}"
