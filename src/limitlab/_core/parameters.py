"""The declaration of a parameter, with its meaning, its kind, its bounds and its count in an experiment.

limitlab derives from it the validation, the error messages, the options of the command line, the controls of the explorer, the page
of the docs, the table of conventions and the realised ratios of an experiment.
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
    "experiment": "changes only the simulation",
}
"""The effect of a parameter of each kind."""


@dataclass(frozen=True)
class Parameter:
    """The metadata of one parameter, returned by `Law.parameters()`; `parameter` explains the fields."""

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
        """The description, followed by the note in brackets."""
        return f"{self.description} ({self.note})" if self.note else self.description

    @property
    def dimension(self) -> str:
        """The dimension that a coordinate becomes.

        `times` are values of `time`. `steps` are values of `iteration`, because a `step` is a length.
        """
        return "iteration" if self.name == "steps" else self.name.removesuffix("s")

    @property
    def bounded(self) -> bool:
        """Whether there is a bound."""
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
        """Return whether a number is within the bounds.

        NaN is never allowed, and infinity only if the law has that limit.
        """
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
        """Return values of the parameter as an array; raise `Refused` if one of them is not allowed."""
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
        The value of the parameter if the user sets none.
    description
        The meaning, in a few words that fit the label of a slider. It may be omitted for a name of the shared vocabulary.
    note
        An addition to the description for this law, for example the unit of a time.
    symbol
        Its LaTeX symbol on the theory page of the law. It may be omitted together with the description.
    kind
        "physics" decides the limit. A "coordinate" (`times`) becomes a dimension (`time`). A "solver" option changes only the
        accuracy; an "experiment" option changes only the simulation.
    above, least, below, most
        Open and closed lower bounds, open and closed upper bounds. For a sequence they hold for every element.
    scale
        The spacing of values on an axis or a slider, "linear" or "log".
    infinite
        Whether the law has the limit in which this parameter is infinite.
    count
        How an experiment of a given size turns it into a whole number, for example round("size * value") samples. The comparison
        then takes the prediction at the ratio that was simulated.
    finer
        The factor of a solver option that makes the prediction more accurate (2 for points of a grid, 0.01 for a tolerance).

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
    """Return the field of a parameter, with description and symbol of the shared vocabulary if it declares none."""
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
    """Return the metadata that `parameter` stored in a pydantic field."""
    extra = field.json_schema_extra
    if not isinstance(extra, dict) or "finer" not in extra:
        raise TypeError(f"field {name!r} of a law must be declared with parameter(default, description, ...)")
    return Parameter(name=name, description=field.description or "", default=field.default, **extra)  # type: ignore[arg-type]


def plain(value: Any) -> Any:
    """Return NumPy scalars and arrays as Python numbers and lists, which pydantic can check."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value


def not_a_number(raw: Any, checked: Any) -> str:
    """Return why a value that pydantic read as a number is not allowed, or "" if it is a number.

    Texts, True and False are refused. The texts of infinity are allowed, because JSON has no other form of infinity.

    >>> not_a_number("2", 2.0), not_a_number((1.0, True), (1.0, 1.0)), not_a_number("Infinity", math.inf)
    ('must be a number, not a text', 'must be a number, not True or False', '')
    """
    if isinstance(checked, (tuple, list)) and isinstance(raw, (tuple, list)) and len(raw) == len(checked):
        return next(filter(None, map(not_a_number, raw, checked)), "")
    if isinstance(checked, bool) or not isinstance(checked, (int, float)):
        return ""
    if isinstance(raw, (bool, np.bool_)):
        return "must be a number, not True or False"
    return "must be a number, not a text" if isinstance(raw, (str, bytes)) and not math.isinf(checked) else ""


def _short(value: Any) -> str:
    """Return a value as text of at most 80 characters."""
    shown = repr(value)
    return shown if len(shown) < 80 else shown[:77] + "..."


def refusal(meta: Parameter, value: Any, reason: str = "") -> PydanticCustomError:
    """Return the error for a bad value. Its message is one sentence with parameter, value, allowed range and meaning."""
    shown = _short(value)
    symbol = f", symbol {meta.symbol}" if meta.symbol else ""
    text = f"{meta.name} = {shown} is not allowed: {reason or 'must be ' + meta.allowed} ({meta.words}{symbol})"
    return PydanticCustomError("parameter", text)
