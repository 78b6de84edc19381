"""What a law's parameter says about itself: description, symbol, bounds, scale, unit.

The same metadata makes the validation, the error messages, the CLI options, the explorer's sliders and the docs page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

Scale = Literal["linear", "log", "symlog"]


@dataclass(frozen=True)
class Parameter:
    """The metadata of one parameter, as read back from a law by `Law.parameters()`."""

    name: str
    description: str
    symbol: str
    default: Any
    above: float | None
    least: float | None
    below: float | None
    most: float | None
    scale: Scale
    unit: str
    infinite: bool

    @property
    def bounded(self) -> bool:
        """Whether not every number is allowed."""
        return any(bound is not None for bound in (self.above, self.least, self.below, self.most))

    @property
    def allowed(self) -> str:
        """The allowed range in words.

        >>> Parameter("ratio", "p/n", r"\\gamma", 1.0, 0, None, None, None, "log", "", False).allowed
        'above 0'
        """
        words = [
            f"{word} {bound:g}"
            for word, bound in (
                ("above", self.above),
                ("at least", self.least),
                ("below", self.below),
                ("at most", self.most),
            )
            if bound is not None
        ]
        if not words:
            return "any number, inf included" if self.infinite else "any finite number"
        return ", ".join([*words, "inf allowed"] if self.infinite else words)

    def allows(self, number: float) -> bool:
        """Whether a number respects the bounds; NaN never does, infinity only where the law has that limit."""
        if math.isnan(number) or (math.isinf(number) and not self.infinite):
            return False
        return (
            (self.above is None or number > self.above)
            and (self.least is None or number >= self.least)
            and (self.below is None or number < self.below)
            and (self.most is None or number <= self.most)
        )


def parameter(
    default: Any,
    description: str,
    *,
    symbol: str = "",
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    scale: Scale = "linear",
    unit: str = "",
    infinite: bool = False,
) -> Any:
    """Declare a parameter of a law.

    Parameters
    ----------
    default
        Value used when the parameter is not given.
    description
        What it is, in a few words that fit a slider's label.
    symbol
        Its LaTeX symbol in the law's page of `docs/theory`.
    above, least, below, most
        Open and closed lower bounds, open and closed upper bounds. For a sequence they hold for every element.
    scale
        How to space values on an axis or a slider.
    unit
        Unit, where it has one.
    infinite
        Whether the law has the limit in which this parameter is infinite.

    Examples
    --------
    >>> from limitlab.laws.base import Law
    >>> class Coin(Law):
    ...     bias: float = parameter(0.5, "probability of heads", symbol="p", least=0, most=1)
    >>> Coin.parameters()["bias"].allowed
    'at least 0, at most 1'
    """
    extra: Any = dict(
        symbol=symbol, above=above, least=least, below=below, most=most, scale=scale, unit=unit, infinite=infinite
    )
    return Field(default, description=description, json_schema_extra=extra)


def read_metadata(name: str, field: FieldInfo) -> Parameter:
    """The metadata that `parameter` put on a pydantic field."""
    extra = field.json_schema_extra
    if not isinstance(extra, dict) or "infinite" not in extra:
        raise TypeError(f"field {name!r} of a law must be declared with parameter(default, description, ...)")
    return Parameter(name=name, description=field.description or "", default=field.default, **extra)  # type: ignore[arg-type]


def plain(value: Any) -> Any:
    """NumPy scalars and arrays as Python numbers and lists, which is what pydantic knows how to check."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value


def numbers_in(value: Any) -> Iterator[float]:
    """Every number in a validated value: itself, or the elements of a sequence at any depth."""
    if isinstance(value, bool):
        return
    if isinstance(value, (int, float)):
        yield float(value)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from numbers_in(item)


def refusal(meta: Parameter, value: Any, reason: str = "") -> PydanticCustomError:
    """The one sentence for a bad value: parameter, value, what is allowed, what it means."""
    shown = repr(value) if len(repr(value)) < 80 else repr(value)[:77] + "..."
    symbol = f", symbol {meta.symbol}" if meta.symbol else ""
    text = f"{meta.name} = {shown} is not allowed: {reason or 'must be ' + meta.allowed} ({meta.description}{symbol})"
    return PydanticCustomError("parameter", text)  # type: ignore[arg-type]


def check_increasing(times: float | tuple[float, ...], repeats: bool = False) -> None:
    """Refuse times that are empty or not increasing (`repeats`: equal neighbours are fine).

    >>> check_increasing((1.0, 0.5))
    Traceback (most recent call last):
    ...
    ValueError: times = (1.0, 0.5) is not allowed: must hold at least one number, in increasing order
    """
    gaps = np.diff(np.atleast_1d(np.asarray(times, dtype=float)))
    if np.size(times) == 0 or np.any(gaps < 0 if repeats else gaps <= 0):
        raise ValueError(f"times = {times!r} is not allowed: must hold at least one number, in increasing order")
