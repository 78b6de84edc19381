"""The exceptions that limitlab raises, and the rules for their messages.

Bad input raises `Refused`, a `ValueError`. Its message names the parameter, its value, the allowed range and the remedy. A solver that
stops before it reaches its accuracy raises `ConvergenceError`, which carries the best estimate; no function returns a last iterate as
its result. Where numbers overflow or lose their meaning at allowed parameters, a law raises `NotComputable`, which names these
parameters.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

__all__ = ["ConvergenceError", "NotComputable", "Refused", "TooCostly", "UnreachableTarget"]


class Refused(ValueError):
    """Input that limitlab does not allow: the message names the parameter, its value, the allowed range and the remedy.

    An error of this type passes through `Law.evaluate` and `Law.experiment` unchanged. An error of NumPy, SciPy or another library
    that occurs in a prediction or an experiment becomes `NotComputable`, with the original error as its cause.

    Examples
    --------
    >>> import limitlab
    >>> try:
    ...     limitlab.laws.Ridge().evaluate(ratio=-1.0)
    ... except limitlab.errors.Refused as error:
    ...     print(str(error)[:50])
    ratio = -1 is not allowed: must be above 0, inf al
    """


class ConvergenceError(RuntimeError):
    """A solver stopped before it reached its accuracy.

    Attributes
    ----------
    estimate
        The best value that the solver had.
    accuracy
        The estimated error of `estimate`.
    """

    def __init__(self, message: str, estimate: Any = None, accuracy: float = float("nan")):
        super().__init__(message)
        self.estimate = estimate
        self.accuracy = accuracy


class NotComputable(RuntimeError):
    """Allowed parameters at which floating-point numbers overflow or lose their accuracy; the original error is the cause."""


class UnreachableTarget(Refused):
    """A plan asked for a value that the law does not take at any allowed parameter.

    Attributes
    ----------
    best
        The value closest to the target that the law takes.
    at
        The value of the parameter at which the law takes it.
    """

    def __init__(self, message: str, best: float, at: float):
        super().__init__(message)
        self.best = best
        self.at = at


class TooCostly(Refused):
    """Work whose estimated memory or time exceeds a limit; it was refused before it started.

    Attributes
    ----------
    cost
        The estimate.
    """

    def __init__(self, message: str, cost: Any = None):
        super().__init__(message)
        self.cost = cost


LISTED = 25
"""The largest number of known names that a hint lists; if there are more, the hint gives the nearest three."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint for a misspelt name: the closest known names, or all known names, or the nearest three of many.

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
