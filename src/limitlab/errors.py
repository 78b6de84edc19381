"""The exceptions that limitlab raises, and the rules for their messages.

Bad input raises `Refused`, a `ValueError`. Its message names the parameter, its value, the allowed range and the remedy. A solver
that stops before it reaches its accuracy raises `ConvergenceError`, which contains the best estimate. No function returns the last
iterate as its result. Where numbers overflow or lose their meaning at allowed parameters, a law raises `NotComputable`, which names
these parameters.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

__all__ = ["ConvergenceError", "FailedFunction", "NotComputable", "Refused", "TooCostly", "UnreachableTarget"]


class Refused(ValueError):
    """The error for input that limitlab does not allow.

    The message names the parameter, its value, the allowed range and the remedy.

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
    """The error of a solver that stopped before it reached its accuracy.

    Attributes
    ----------
    estimate
        The best value that the solver has computed.
    accuracy
        The estimated error of `estimate`.
    """

    def __init__(self, message: str, estimate: Any = None, accuracy: float = float("nan")):
        super().__init__(message)
        self.estimate = estimate
        self.accuracy = accuracy


class NotComputable(RuntimeError):
    """The error for allowed parameters at which floating-point numbers overflow or lose their accuracy.

    The original error is its cause.
    """


class FailedFunction(Refused):
    """The error for a function of the user that raises an exception while a law calls it.

    The message contains the exception and the line of the user's code. The original exception is its cause.
    """


class UnreachableTarget(Refused):
    """The error of `plan` for a target that the law does not reach at any allowed value of the parameter.

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
    """The error for work whose estimated memory or time exceeds a limit. It is raised before the work starts.

    Attributes
    ----------
    cost
        The estimated memory and operations.
    """

    def __init__(self, message: str, cost: Any = None):
        super().__init__(message)
        self.cost = cost


LISTED = 25
"""The largest number of known names that a hint lists. A hint about more names contains the nearest three."""


def did_you_mean(name: Any, known: Iterable[str]) -> str:
    """Return a hint for a misspelt name.

    It contains the closest known names. If no name is close, it contains all known names, or the nearest three of many.

    >>> did_you_mean("rigde", ["ridge", "ratio", "noise"])
    "did you mean 'ridge'?"
    >>> did_you_mean("zzz", ["ratio", "noise"])
    'known names: noise, ratio'
    """
    options = sorted(known)
    if not isinstance(name, str):
        return f"give a name as a text, such as {options[0]!r}" if options else "give a name as a text"
    name = name[:100]
    lowered = {option.lower().replace("-", "_"): option for option in options}
    close = difflib.get_close_matches(name.lower().replace("-", "_"), lowered, n=2, cutoff=0.6)
    if close:
        return "did you mean " + " or ".join(repr(lowered[match]) for match in close) + "?"
    if len(options) <= LISTED:
        return "known names: " + ", ".join(options)
    nearest = difflib.get_close_matches(name.lower().replace("-", "_"), lowered, n=3, cutoff=0.0)
    return f"of the {len(options)} known names the nearest are {', '.join(lowered[match] for match in nearest)}"
