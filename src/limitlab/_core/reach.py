"""What is said where a legal point is out of reach: numbers that overflow, vanish or no longer fit into memory.

A law's own refusals speak for themselves. What comes from below it (an overflow, a matrix that lost its rank, a bracket that rounding
closed) would be a riddle, so it becomes one sentence that names the law and its most extreme parameters; the riddle stays as the cause.
"""

from __future__ import annotations

import dis
import math
from collections.abc import Mapping
from importlib.resources import files
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic_core import ValidationError

from limitlab._core.parameters import numbers_in
from limitlab.errors import NotComputable, TooCostly

if TYPE_CHECKING:
    from limitlab._core.declaration import Declaration

RIDDLES = (ArithmeticError, ValueError, RuntimeError, MemoryError)
"""What may come from below a law at an extreme point. Other errors are mistakes in a program and stay what they are."""

EXTREME = 1e4
"""A parameter this many times larger or smaller than its default is named first."""

_PACKAGE = str(files("limitlab"))
_RAISE = dis.opmap["RAISE_VARARGS"]
_LIBRARIES = tuple(
    f"{folder}{name}{folder}" for folder in ("/", "\\") for name in ("numpy", "scipy", "numba", "sklearn", "jax")
)


def explained(law: Declaration, error: Exception, size: int | None = None) -> Exception:
    """The error to raise in the place of one that a law met: itself where it was said on purpose."""
    where = type(law).__name__ + ("" if size is None else f" at size {size}")
    if isinstance(error, MemoryError):
        return TooCostly(f"{where} needs more memory than there is: choose a smaller size, or fewer points")
    if _on_purpose(error):
        return error
    found = _extremes(law)
    at = f" at {', '.join(f'{name} = {value!r}' for name, value in found.items())}" if found else ""
    towards = ", ".join(f"{name} towards {_default(law, name)}" for name in found) or "a parameter"
    return NotComputable(f"{where} cannot be computed{at} in floating-point numbers: move {towards}")


def refuse_divergence(law: Declaration, values: Mapping[str, Any], size: int) -> None:
    """An experiment that ends in NaN has run away: say so, rather than hand it on."""
    observed = type(law).outputs()
    arrays = {name: np.asarray(value) for name, value in values.items() if name in observed}
    bad = [name for name, array in arrays.items() if array.dtype.kind == "f" and np.isnan(array).any()]
    if bad:
        at = ", ".join(f"{name} = {value!r}" for name, value in _extremes(law).items())
        where = f"at size {size}" + (f" and {at}" if at else "")
        raise NotComputable(
            f"the experiment of {type(law).__name__} {where} diverges ({', '.join(bad)}): choose a larger size, a smaller step or milder "
            "parameters"
        )


def _on_purpose(error: Exception) -> bool:
    """Whether the error was raised by a sentence of ours or of the user's, not by a library or by arithmetic."""
    if isinstance(error, ValidationError) or type(error).__module__.startswith("limitlab."):
        return True
    file, stated = _origin(error.__traceback__)
    if any(library in file for library in _LIBRARIES):
        return False
    return stated or not (file.startswith(_PACKAGE) or isinstance(error, ArithmeticError))


def _origin(trace: TracebackType | None) -> tuple[str, bool]:
    """The file in which an error was raised, and whether a `raise` statement raised it rather than an operation that failed."""
    if trace is None:
        return "", False
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return code.co_filename, code.co_code[trace.tb_lasti] == _RAISE


def _extremes(law: Declaration) -> dict[str, Any]:
    """The parameters that are furthest from their defaults; if none is far, all that differ."""
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
    """The largest factor between the sizes of two parameters."""
    usual = max((abs(number) for number in numbers_in(default) if math.isfinite(number)), default=1.0) or 1.0
    sizes = [abs(number) for number in numbers_in(value) if number and math.isfinite(number)]
    return max((max(size / usual, usual / size if size * 1e300 > usual else math.inf) for size in sizes), default=1.0)
