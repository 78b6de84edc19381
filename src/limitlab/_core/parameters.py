"""What a law's parameter says about itself: what it is, what kind of thing it decides, its bounds, how an experiment counts it.

The same declaration makes the validation, the error messages, the CLI options, the explorer's controls, the docs page, the table of
conventions and the realised ratios of an experiment.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from limitlab._core.checks import numbers_in as numbers_in
from limitlab._core.vocabulary import PARAMETERS
from limitlab.errors import Refused

Scale = Literal["linear", "log"]
Kind = Literal["physics", "coordinate", "solver", "experiment"]
Count = Literal["size * value", "size / value", "shares of size"]

KINDS: dict[Kind, str] = {
    "physics": "decides the limit",
    "coordinate": "becomes a dimension of the result",
    "solver": "changes only the accuracy of the prediction",
    "experiment": "changes only what is simulated",
}
"""What a parameter of each kind does."""


@dataclass(frozen=True)
class Parameter:
    """The metadata of one parameter, as read back from a law by `Law.parameters()`; see `parameter` for their meaning."""

    name: str
    description: str
    default: Any
    note: str = ""
    symbol: str = ""
    kind: Kind = "physics"
    above: float | None = None
    least: float | None = None
    below: float | None = None
    most: float | None = None
    scale: Scale = "linear"
    infinite: bool = False
    count: Count | None = None
    finer: float | None = None

    @property
    def words(self) -> str:
        """Description and note together."""
        return f"{self.description} ({self.note})" if self.note else self.description

    @property
    def dimension(self) -> str:
        """The dimension that a coordinate becomes: `times` are values of `time`, `steps` of `iteration` (a `step` is a length)."""
        return "iteration" if self.name == "steps" else self.name.removesuffix("s")

    @property
    def bounded(self) -> bool:
        """Whether not every number is allowed."""
        return any(bound is not None for bound in (self.above, self.least, self.below, self.most))

    @property
    def allowed(self) -> str:
        """The allowed range in words.

        >>> Parameter("ratio", "features per sample", 1.0, above=0).allowed
        'above 0'
        """
        ends = (("above", self.above), ("at least", self.least), ("below", self.below), ("at most", self.most))
        words = [f"{word} {bound:g}" for word, bound in ends if bound is not None]
        if not words:
            return "any number, inf included" if self.infinite else "any finite number"
        return ", ".join([*words, "inf allowed"] if self.infinite else words)

    def allows(self, number: float) -> bool:
        """Whether a number respects the bounds; NaN never does, infinity only where the law has that limit."""
        try:
            if math.isnan(number) or (math.isinf(number) and not self.infinite):
                return False
        except OverflowError:  # a whole number beyond every floating-point number
            return False
        return (
            (self.above is None or number > self.above)
            and (self.least is None or number >= self.least)
            and (self.below is None or number < self.below)
            and (self.most is None or number <= self.most)
        )

    def checked_array(self, values: ArrayLike) -> NDArray[np.float64]:
        """Values of the parameter as an array of numbers that are all allowed."""
        try:
            array = np.asarray(values, dtype=float)
        except (TypeError, ValueError, OverflowError):
            raise Refused(f"{self.name} = {_short(values)} is not allowed: must be numbers, {self.allowed}") from None
        for number in (array.min(initial=math.inf), array.max(initial=-math.inf)) if array.size else ():
            if not self.allows(float(number)):
                raise Refused(f"{self.name} = {number:g} is not allowed: must be {self.allowed} ({self.words})")
        return array


def parameter(
    default: Any,
    description: str | None = None,
    *,
    note: str = "",
    symbol: str | None = None,
    kind: Kind = "physics",
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    scale: Scale = "linear",
    infinite: bool = False,
    count: Count | None = None,
    finer: float | None = None,
) -> Any:
    """Declare a parameter of a law.

    Parameters
    ----------
    default
        Value used when the parameter is not given.
    description
        What it is, in a few words that fit a slider's label. It may be left out for a name of the shared vocabulary.
    note
        What is special about it in this law (in which unit a time runs, say).
    symbol
        Its LaTeX symbol in the law's page of `docs/theory`. It may be left out where the description is.
    kind
        "physics" decides the limit; a "coordinate" (`times`) becomes a dimension (`time`); a "solver" option changes only the
        accuracy; an "experiment" option only what is simulated.
    above, least, below, most
        Open and closed lower bounds, open and closed upper bounds. For a sequence they hold for every element.
    scale
        How to space values on an axis or a slider.
    infinite
        Whether the law has the limit in which this parameter is infinite.
    count
        How an experiment of a given size turns it into a whole number: round("size * value") samples, say. The comparison then
        takes the prediction at the ratio that was really simulated.
    finer
        For a solver option: the factor that makes the prediction more accurate (2 for points of a grid, 0.01 for a tolerance).

    Examples
    --------
    >>> from limitlab.laws import Draw, Law, Values, parameter
    >>> class Coin(Law):
    ...     bias: float = parameter(0.5, "probability of heads", symbol="p", least=0, most=1)
    ...     noise: float = parameter(0.5, least=0)
    >>> Coin.parameters()["bias"].allowed
    'at least 0, at most 1'
    >>> Coin.parameters()["noise"].description
    'standard deviation of the label noise'
    """
    extra: Any = {name: value for name, value in locals().items() if name not in ("default", "description")}
    return Field(default, description=description, json_schema_extra=extra)


def completed(name: str, field: FieldInfo) -> FieldInfo:
    """The field of a parameter, with description and symbol of the shared vocabulary where the declaration leaves them out."""
    extra = field.json_schema_extra
    if not isinstance(extra, dict) or "finer" not in extra:
        raise TypeError(f"field {name!r} of a law must be declared with parameter(default, description, ...)")
    description, symbol = field.description, extra["symbol"]
    if description is None:
        if name not in PARAMETERS:
            raise TypeError(
                f"parameter {name!r} is not in the shared vocabulary: declare it as "
                f"{name} = parameter({field.default!r}, 'what it is', symbol='...')"
            )
        description, shared_symbol = PARAMETERS[name]
        symbol = shared_symbol if symbol is None else symbol
    return Field(field.default, description=description, json_schema_extra={**extra, "symbol": symbol or ""})


def read_metadata(name: str, field: FieldInfo) -> Parameter:
    """The metadata that `parameter` put on a pydantic field."""
    extra = field.json_schema_extra
    if not isinstance(extra, dict) or "finer" not in extra:
        raise TypeError(f"field {name!r} of a law must be declared with parameter(default, description, ...)")
    return Parameter(name=name, description=field.description or "", default=field.default, **extra)  # type: ignore[arg-type]


def plain(value: Any) -> Any:
    """NumPy scalars and arrays as Python numbers and lists, which is what pydantic knows how to check."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value


def not_a_number(given: Any, checked: Any) -> str:
    """Why something that pydantic read as a number is none: a text, True or False; "" if it is one. The texts of infinity are numbers,
    since JSON has no other way to write it.

    >>> not_a_number("2", 2.0), not_a_number((1.0, True), (1.0, 1.0)), not_a_number("Infinity", math.inf)
    ('must be a number, not a text', 'must be a number, not True or False', '')
    """
    if isinstance(checked, (tuple, list)) and isinstance(given, (tuple, list)) and len(given) == len(checked):
        return next(filter(None, map(not_a_number, given, checked)), "")
    if isinstance(checked, bool) or not isinstance(checked, (int, float)):
        return ""
    if isinstance(given, (bool, np.bool_)):
        return "must be a number, not True or False"
    return "must be a number, not a text" if isinstance(given, (str, bytes)) and not math.isinf(checked) else ""


def _short(value: Any) -> str:
    """A value in at most 80 letters."""
    shown = repr(value)
    return shown if len(shown) < 80 else shown[:77] + "..."


def refusal(meta: Parameter, value: Any, reason: str = "") -> PydanticCustomError:
    """The one sentence for a bad value: parameter, value, what is allowed, what it means."""
    shown = _short(value)
    symbol = f", symbol {meta.symbol}" if meta.symbol else ""
    text = f"{meta.name} = {shown} is not allowed: {reason or 'must be ' + meta.allowed} ({meta.words}{symbol})"
    return PydanticCustomError("parameter", text)
