"""Checks of arguments. Each check is one call, and every error message has the same form.

A check returns the value in its plain form (`int`, `float`, array of floats) or raises `Refused` with the message "NAME = VALUE is
not allowed: must be RANGE; REMEDY". Public functions check each of their arguments once. Functions that only limitlab calls do not
check what their callers have checked.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Iterator
from numbers import Real
from types import EllipsisType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import Refused

T = TypeVar("T")

Shape = tuple[int | str | EllipsisType, ...]
"""The shape that an array must have.

A number is a length. A letter is any length of at least 1, and equal letters are equal lengths. `...` in the first place is any
number of further axes.
"""

# -- the helpers --------------------------------------------------------------------------------------------------------


def refuse(condition: Any, sentence: str) -> None:
    """Raise `Refused` with a message if a condition holds.

    >>> refuse(True, "kernel is not allowed together with activation: give one of them")
    Traceback (most recent call last):
        ...
    limitlab.errors.Refused: kernel is not allowed together with activation: give one of them
    """
    if condition:
        raise Refused(sentence)


def whole(name: str, value: Any, least: int | None = None, most: int | None = None, remedy: str = "") -> int:
    """Return a whole number within bounds as an `int`.

    >>> whole("size", 20.0, least=2)
    20
    >>> whole("size", "20", least=2)
    Traceback (most recent call last):
        ...
    limitlab.errors.Refused: size = '20' is not allowed: must be a whole number of at least 2
    """
    if is_whole(value) and (least is None or value >= least) and (most is None or value <= most):
        return int(value)
    if least is not None and most is not None:
        bounds = f" between {least} and {most}"
    else:
        bounds = "" if least is None else f" of at least {least}"
        bounds += "" if most is None else f" of at most {most}"
    raise refusal_of(name, value, f"must be a whole number{bounds}", remedy)


def number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    infinite: bool = False,
    remedy: str = "",
) -> float:
    """Return a number within bounds as a `float`; NaN is never allowed, infinity only with `infinite`.

    >>> number("ridge", 0, least=0)
    0.0
    >>> number("ridge", -1.0, least=0, remedy="use effective_ridge left of the spectrum")
    Traceback (most recent call last):
        ...
    limitlab.errors.Refused: ridge = -1.0 is not allowed: must be at least 0 and finite; use effective_ridge left of the spectrum
    """
    plain = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if isinstance(plain, (bool, np.bool_)) or not isinstance(plain, Real):
        raise refusal_of(name, value, f"must be a number, {range_in_words(above, least, below, most, infinite)}", remedy)
    try:
        plain = float(plain)
    except OverflowError:  # no floating-point number can hold this whole number
        plain = math.nan
    if (
        math.isnan(plain)
        or (math.isinf(plain) and not infinite)
        or (above is not None and not plain > above)
        or (least is not None and not plain >= least)
        or (below is not None and not plain < below)
        or (most is not None and not plain <= most)
    ):
        raise refusal_of(name, value, f"must be {range_in_words(above, least, below, most, infinite)}", remedy)
    return plain


def one_of(name: str, value: T, choices: Collection[Any], remedy: str = "") -> T:
    """Return a value that is one of the choices.

    >>> one_of("model", "rf", ("rf", "nt"))
    'rf'
    >>> one_of("model", "rt", ("rf", "nt", "nn"))
    Traceback (most recent call last):
        ...
    limitlab.errors.Refused: model = 'rt' is not allowed: must be 'rf', 'nt' or 'nn'
    """
    options = list(choices)
    if any(value is option or (type(value) is type(option) and value == option) for option in options):
        return value
    *others, last = map(repr, options)
    listed = f"{', '.join(others)} or {last}" if others else last
    names = [option for option in options if isinstance(option, str)] if len(options) > 4 else []
    close = difflib.get_close_matches(value, names, 1, 0.6) if isinstance(value, str) else []
    hint = f"did you mean {close[0]!r}?" if close else ""
    raise refusal_of(name, value, f"must be {listed}", remedy or hint)


def array(
    name: str,
    value: Any,
    *,
    shape: Shape | None = None,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    infinite: bool = False,
    increasing: bool = False,
    remedy: str = "",
) -> NDArray[np.float64]:
    """Return an array of floats after a check of its shape and of the bounds of its entries.

    With `increasing` the entries must also increase along the last axis. The error message names the first entry that is out of bounds.

    Examples
    --------
    >>> array("weights", [[1, 2], [3, 4]], shape=("n", 2)).shape
    (2, 2)
    >>> array("weights", [1.0, -2.0], least=0)
    Traceback (most recent call last):
        ...
    limitlab.errors.Refused: weights = -2.0 is not allowed: must be at least 0 and finite
    """
    try:
        numbers = np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise refusal_of(
            name, value, f"must be numbers, {range_in_words(above, least, below, most, infinite)}", remedy
        ) from None
    if shape is not None:
        check_shape(name, numbers.shape, shape, remedy)
    allowed = ~np.isnan(numbers) if infinite else np.isfinite(numbers)
    for bound, compare in ((above, np.greater), (least, np.greater_equal), (below, np.less), (most, np.less_equal)):
        if bound is not None:
            allowed &= compare(numbers, bound)
    if not allowed.all():
        first = float(numbers[~allowed].flat[0])
        raise refusal_of(name, first, f"must be {range_in_words(above, least, below, most, infinite)}", remedy)
    if increasing and not (np.diff(numbers) > 0).all():
        raise refusal_of(name, value, "must be in increasing order", remedy)
    return numbers


def check_shape(name: str, shape: tuple[int, ...], wanted: Shape, remedy: str = "") -> None:
    """Raise `Refused` unless an array has the required shape.

    >>> check_shape("x0", (5, 3), (..., "n", "d"))
    >>> check_shape("x0", (5,), ("n", "n"))
    Traceback (most recent call last):
        ...
    limitlab.errors.Refused: x0 of shape (5,) is not allowed: must have shape (n, n)
    """
    lengths, pattern = shape, wanted
    if wanted and wanted[0] is ...:
        pattern = wanted[1:]
        lengths = shape[len(shape) - len(pattern) :] if len(shape) >= len(pattern) else ()
    letters: dict[str, int] = {}
    fits = len(lengths) == len(pattern) and all(
        (letters.setdefault(entry, length) == length and length > 0) if isinstance(entry, str) else entry == length
        for entry, length in zip(pattern, lengths, strict=True)
    )
    if not fits:
        words = ", ".join("..." if entry is ... else str(entry) for entry in wanted) + ("," if len(wanted) == 1 else "")
        raise Refused(f"{name} of shape {shape} is not allowed: must have shape ({words}){_and(remedy)}")


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number that a floating-point number can hold (True and False are not numbers)."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        return False
    try:
        return float(value).is_integer()
    except OverflowError:
        return False


def numbers_in(value: Any) -> Iterator[float]:
    """Yield every number in a value, which is the value itself or the elements of a sequence at any depth.

    A whole number that no floating-point number can hold becomes NaN, which no bound allows.

    >>> list(numbers_in((1, (2.5, True), "text")))
    [1.0, 2.5]
    """
    if isinstance(value, bool):
        return
    if isinstance(value, (int, float)):
        try:
            yield float(value)
        except OverflowError:
            yield math.nan
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from numbers_in(item)


def range_in_words(
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    infinite: bool = False,
) -> str:
    """Return the allowed range in words.

    >>> range_in_words(above=0), range_in_words(least=0, most=1), range_in_words(least=0, infinite=True)
    ('above 0 and finite', 'between 0 and 1', 'at least 0, inf allowed')
    """
    if least is not None and most is not None:
        return f"between {least:g} and {most:g}"
    ends = (("above", above), ("at least", least), ("below", below), ("at most", most))
    words = " and ".join(f"{word} {bound:g}" for word, bound in ends if bound is not None)
    if not words:
        return "a number, inf allowed" if infinite else "finite"
    if infinite:
        return f"{words}, inf allowed"
    closed = (above is not None or least is not None) and (below is not None or most is not None)
    return words if closed else f"{words} and finite"


def refusal_of(name: str, value: Any, rule: str, remedy: str = "") -> Refused:
    """Return the error for a value that a rule does not allow.

    >>> refusal_of("sizes", [], "give at least one size")
    Refused('sizes = [] is not allowed: give at least one size')
    """
    shown = repr(value)
    return Refused(f"{name} = {shown if len(shown) < 80 else shown[:77] + '...'} is not allowed: {rule}{_and(remedy)}")


def _and(remedy: str) -> str:
    return f"; {remedy}" if remedy else ""


# -- arguments that several packages share --------------------------------------------------------------------------------


def checked_table(inputs: tuple[tuple[float, ...], ...] | None, targets: tuple[float, ...] | None) -> None:
    """Raise `Refused` if inputs and labels do not form a table.

    The cases are inputs without targets, rows of different lengths, and different numbers of rows and labels.

    >>> checked_table(((1.0, 2.0),), (1.0, -1.0))
    Traceback (most recent call last):
        ...
    limitlab.errors.Refused: targets of shape (2,) is not allowed: must have shape (1,); give one label for each row of inputs
    """
    if inputs is None and targets is None:
        return
    if inputs is None or targets is None:
        missing = "inputs" if inputs is None else "targets"
        raise Refused(f"{missing} = None is not allowed: give inputs and targets together (see from_data)")
    refuse(
        not inputs or len({len(row) for row in inputs}) != 1 or not inputs[0],
        "inputs are not allowed: must be at least one row, all of the same length of at least 1",
    )
    array("inputs", inputs)
    array("targets", targets, shape=(len(inputs),), remedy="give one label for each row of inputs")


OWN_CODE = ("limitlab", "numpy", "scipy", "numba", "sklearn", "jax", "jaxlib")
"""Packages that are not the code of a user."""


def user_line(error: BaseException) -> str:
    """Return the place of the user's code that raised an error, as " at FILE:LINE", or an empty text.

    >>> user_line(ValueError("an error without a traceback"))
    ''
    """
    place, trace = "", error.__traceback__
    while trace is not None:
        package = str(trace.tb_frame.f_globals.get("__name__", "")).split(".")[0]
        if package not in OWN_CODE:
            place = f" at {trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def description(given: Any) -> str:
    """Return a text for a value, which is "NAME (FILE:LINE)" for a function of Python.

    >>> description(np.tanh), description(3)
    ("<ufunc 'tanh'>", '3')
    """
    code = getattr(given, "__code__", None)
    if code is None:
        text = repr(given)
        return text if len(text) < 80 else f"{text[:77]}..."
    return f"{given.__qualname__.split('.')[-1]} ({code.co_filename}:{code.co_firstlineno})"
