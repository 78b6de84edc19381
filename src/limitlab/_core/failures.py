"""The errors of a law at allowed parameters where numbers overflow, vanish or exceed the memory.

Errors are distinguished by their type. An error of limitlab for bad input (`Refused`) and every other exception class of limitlab
or of another author pass through `Law.evaluate` and `Law.experiment` unchanged. An arithmetic error, and a `ValueError` or
`RuntimeError` that NumPy, SciPy or another library raises in a prediction or an experiment, becomes `NotComputable`: one sentence
that names the law and its most extreme parameters. The original error is its cause. A `ValueError` that the code of another author
raises stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic_core import ValidationError

from limitlab._core.checks import numbers_in
from limitlab.errors import NotComputable, TooCostly

if TYPE_CHECKING:
    from limitlab._core.declaration import Declaration

FAILURES = (ArithmeticError, ValueError, RuntimeError, MemoryError)
"""Types of errors that extreme numbers cause. Errors of other types are mistakes in a program and stay as they are."""

EXTREME = 1e4
"""The factor between a parameter and its default above which an error message names the parameter first."""

LIBRARIES = ("limitlab", "numpy", "scipy", "numba", "sklearn", "jax", "jaxlib")
"""Packages whose code computes predictions and experiments."""


def replacement(error: Exception, law: Declaration, size: int | None = None) -> Exception | None:
    """Return the error that replaces an error of a law, or None if the error stays as it is."""
    where = type(law).__name__ + ("" if size is None else f" at size {size}")
    if isinstance(error, MemoryError):
        return TooCostly(f"{where} needs more memory than is available: choose a smaller size, or fewer points")
    if is_intended(error):
        return None
    extremes = _extremes(law)
    at = f" at {', '.join(f'{name} = {value!r}' for name, value in extremes.items())}" if extremes else ""
    towards = ", ".join(f"{name} towards {_default(law, name)}" for name in extremes) or "a parameter"
    return NotComputable(f"{where} cannot be computed{at} in floating-point numbers: move {towards}")


def is_intended(error: Exception) -> bool:
    """Return whether the message of an error is meant for the user.

    This holds if the class of the error belongs to limitlab or to another author, or if code of another author raised the error.

    >>> from limitlab.errors import Refused
    >>> is_intended(Refused("ratio = 0 is not allowed")), is_intended(ZeroDivisionError("division by zero"))
    (True, False)
    """
    if isinstance(error, (ValidationError, NotImplementedError)):
        return True
    author = type(error).__module__.split(".")[0]
    if author == "limitlab" or (author != "builtins" and author not in LIBRARIES):
        return True
    return not isinstance(error, ArithmeticError) and _raised_in(error).split(".")[0] not in LIBRARIES


def check_divergence(law: Declaration, values: Mapping[str, Any], size: int) -> None:
    """Raise `NotComputable` if an experiment ended in NaN."""
    observed = type(law).outputs()
    arrays = {name: np.asarray(value) for name, value in values.items() if name in observed}
    bad = [name for name, array in arrays.items() if array.dtype.kind == "f" and np.isnan(array).any()]
    if bad:
        at = ", ".join(f"{name} = {value!r}" for name, value in _extremes(law).items())
        where = f"at size {size}" + (f" and {at}" if at else "")
        raise NotComputable(
            f"the experiment of {type(law).__name__} {where} diverges ({', '.join(bad)}): choose a larger size, a smaller step or "
            "parameters closer to their defaults"
        )


def _raised_in(error: Exception) -> str:
    """Return the name of the module whose code raised an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))


def _extremes(law: Declaration) -> dict[str, Any]:
    """Return the parameters that are furthest from their defaults; if no parameter is far from its default, all that differ."""
    changed = {
        name: value
        for name, meta in type(law).parameters().items()
        if meta.kind in ("physics", "coordinate") and (value := getattr(law, name)) != meta.default
    }
    far = {name: value for name, value in changed.items() if _distance(value, _default(law, name)) > EXTREME}
    return {name: value for name, value in (far or changed).items() if len(repr(value)) < 60}


def _default(law: Declaration, name: str) -> Any:
    return type(law).parameters()[name].default


def _distance(value: Any, default: Any) -> float:
    """Return the largest factor between the sizes of two parameters."""
    usual = max((abs(number) for number in numbers_in(default) if math.isfinite(number)), default=1.0) or 1.0
    sizes = [abs(number) for number in numbers_in(value) if number and math.isfinite(number)]
    return max((max(size / usual, usual / size if size * 1e300 > usual else math.inf) for size in sizes), default=1.0)
