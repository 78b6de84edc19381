"""The declaration of a law, with its parameters, its observables, its experiment, and facts that follow from them.

From the declaration of a parameter limitlab derives its validation, the error messages, the options of the command line, the
controls of the explorer, the page of the docs, the table of conventions and the realised ratios of an experiment. An observable is
a quantity that a law predicts and measures; squared errors have no factor 1/2.

`Law` (in `law.py`) adds the prediction and the experiment. Modules that need only the declaration take a `Declaration`.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError, ValidationError

from limitlab._core.checks import numbers_in
from limitlab._core.cost import Cost
from limitlab._core.headline import Headline
from limitlab._core.page import plain_symbol
from limitlab._core.vocabulary import FORMER_NAMES, OBSERVABLES, PARAMETERS, RANGES
from limitlab.errors import Refused, did_you_mean

# -- parameters -------------------------------------------------------------------------------------------------------


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
        """Whether the parameter has a bound."""
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
        For a solver option, the factor by which its value is multiplied to make the prediction more accurate (2 for the points of
        a grid, 0.01 for a tolerance).

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
    symbol = f", symbol {plain_symbol(meta.symbol)}" if meta.symbol else ""
    text = f"{meta.name} = {shown} is not allowed: {reason or 'must be ' + meta.allowed} ({meta.words}{symbol})"
    return PydanticCustomError("parameter", text)


# -- observables ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Observable:
    """The metadata of one observable, returned by `Law.outputs()`; `observable` explains the fields."""

    long_name: str = ""
    symbol: str = ""
    rate: float | tuple[float, float] | None = None
    scalar: bool = False
    dims: tuple[str, ...] | None = None
    compared: bool = True
    least: float = -math.inf
    most: float = math.inf

    @property
    def range(self) -> str:
        """The possible values in words.

        >>> observable("probability", least=0, most=1).range, observable("squared error", least=0).range, observable("mean").range
        ('0 to 1', 'at least 0', '')
        """
        if math.isinf(self.least):
            return "" if math.isinf(self.most) else f"at most {self.most:g}"
        return f"at least {self.least:g}" if math.isinf(self.most) else f"{self.least:g} to {self.most:g}"


def observable(
    long_name: str = "",
    symbol: str = "",
    *,
    rate: float | tuple[float, float] | None = None,
    scalar: bool = False,
    dims: tuple[str, ...] | None = None,
    compared: bool = True,
    least: float = -math.inf,
    most: float = math.inf,
) -> Observable:
    """Declare an observable of a law.

    Parameters
    ----------
    long_name
        The meaning, in a few words. It is omitted for a name of the shared vocabulary.
    symbol
        Its LaTeX symbol.
    rate
        Exponent r of the gap between experiment and limit, gap ~ size^-r. The default is that of the law's `simulation`. `math.inf`
        states that there is no gap. Two numbers state that the exponent lies between them.
    scalar
        Whether the observable does not depend on the law's coordinates.
    dims
        Dimensions of its own, for raw samples such as eigenvalues.
    compared
        Whether a comparison judges the observable. False for a quantity that only the prediction or only the experiment has, such as a
        threshold or raw eigenvalues.
    least, most
        The range of possible values. A prediction that leaves its range by more than its accuracy is an error and is never returned.

    Examples
    --------
    >>> observable("largest eigenvalue", r"\\lambda_{\\max}", rate=2 / 3).long_name
    'largest eigenvalue'
    """
    return Observable(long_name, symbol, rate, scalar, dims, compared, least, most)


VOCABULARY: dict[str, Observable] = {
    name: observable(*words, least=RANGES[name][0], most=RANGES[name][1]) if name in RANGES else observable(*words)
    for name, words in OBSERVABLES.items()
}
"""Observables with the same meaning in every law that has them."""


def shared(
    *names: str,
    rate: float | None = None,
    scalar: bool = False,
    dims: tuple[str, ...] | None = None,
    compared: bool = True,
) -> dict[str, Observable]:
    """Return observables of the vocabulary, to be used together with observables that the law declares.

    >>> list(shared("bias", "variance") | {"gcv": observable("generalised cross-validation score")})
    ['bias', 'variance', 'gcv']
    """
    return declared(dict.fromkeys(names, Observable(rate=rate, scalar=scalar, dims=dims, compared=compared)))


def declared(names: Collection[str]) -> dict[str, Observable]:
    """Return the observables that a law lists, as names of the vocabulary or as a mapping with declarations.

    >>> declared(("bias", "variance"))["bias"].long_name
    'squared bias given the inputs'
    >>> declared({"bias": observable(rate=2.0)})["bias"]
    Observable(long_name='squared bias given the inputs', symbol='B', rate=2.0, scalar=False, dims=None, compared=True, least=0.0, most=inf)
    """
    metas: Mapping[str, Observable] = names if isinstance(names, Mapping) else dict.fromkeys(names, Observable())
    return {name: _with_shared_words(name, meta) for name, meta in metas.items()}


def _with_shared_words(name: str, meta: Observable) -> Observable:
    known = VOCABULARY.get(name)
    if meta.long_name:
        if known is not None and meta.long_name != known.long_name:
            raise TypeError(
                f"observable name {name!r} is reserved for {known.long_name!r}: choose another name for {meta.long_name!r}"
            )
        return meta
    if known is None:
        raise TypeError(
            f"observable {name!r} is not in the shared vocabulary: declare it as {name}=observable('what it is', 'symbol')"
        )
    least, most = max(known.least, meta.least), min(known.most, meta.most)
    return replace(known, rate=meta.rate, scalar=meta.scalar, dims=meta.dims, compared=meta.compared, least=least, most=most)


def apportion(size: int, weights: ArrayLike) -> NDArray[np.int64]:
    """Split `size` things into groups in proportion to the weights, at least one each (method of the largest remainder).

    >>> apportion(10, [0.55, 0.44, 0.01]).tolist()
    [5, 4, 1]
    """
    shares = np.asarray(weights, dtype=float) / np.sum(weights)
    if size < len(shares):
        raise Refused(f"size = {size} is not allowed: must be at least the number of groups, {len(shares)}")
    exact = shares * size
    counts = np.maximum(np.floor(exact).astype(np.int64), 1)
    while counts.sum() != size:
        short = counts.sum() < size
        gap = exact - counts if short else np.where(counts > 1, counts - exact, -np.inf)
        counts[np.argmax(gap)] += 1 if short else -1
    return counts


# -- the law ------------------------------------------------------------------------------------------------------------


Status = Literal["theorem", "derived", "conjecture"]

OVERHEAD = Cost(numbers=1e5, operations=1e7)
"""The cost of every computation for results, labels and Python itself."""
PER_POINT = Cost(numbers=60.0, operations=1e5)
"""The cost of one point of a prediction for every observable."""


@dataclass(frozen=True)
class Experiment:
    """The finite experiment of a law, with the meaning of its size, the draws of a comparison and its rate.

    Attributes
    ----------
    size_meaning
        What `size` counts in `simulate`.
    sizes, draws
        The sizes and the number of draws per size of a comparison that takes seconds.
    rate
        Exponent r of the gap between experiment and limit, gap ~ size^-r, unless an observable has its own. `math.inf` states that
        the law is exact at every size. Two numbers state that the exponent lies between them and is not known more exactly.

    Examples
    --------
    >>> Experiment("number of features p", sizes=(100, 200, 400), draws=30).rate
    1.0
    """

    size_meaning: str = "dimension d"
    sizes: tuple[int, ...] = (50, 100, 200)
    draws: int = 20
    rate: float | tuple[float, float] = 1.0

    def __post_init__(self) -> None:
        if not self.sizes or any(size < 2 for size in self.sizes):
            raise Refused(f"sizes = {self.sizes!r} is not allowed: must be one or more whole numbers of at least 2")
        if self.draws < 2:
            raise Refused(f"draws = {self.draws!r} is not allowed: must be at least 2, which a standard error needs")


class Declaration(BaseModel):
    """A frozen, validated record of parameters, with the facts that the class of the law declares about them."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, arbitrary_types_allowed=True, ser_json_inf_nan="strings"
    )

    status: ClassVar[Status] = "derived"
    regime: ClassVar[str] = ""
    assumptions: ClassVar[tuple[str, ...]] = ()
    references: ClassVar[tuple[str, ...]] = ()
    page: ClassVar[str] = ""
    observables: ClassVar[Collection[str]] = ()
    simulation: ClassVar[Experiment] = Experiment()
    points: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    headline: ClassVar[Headline | None] = None
    revision: ClassVar[int] = 1
    __written__: ClassVar[str | None] = None  # the docstring of the class in its file; see `own_docstring`

    if not TYPE_CHECKING:  # type checkers read the parameters from the fields

        def __init__(self, *values: Any, **parameters: Any) -> None:
            if values:
                raise TypeError(_unnamed_values(type(self), values))
            super().__init__(**parameters)

        __init__.__signature__ = inspect.signature(BaseModel.__init__)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, field in list(vars(cls).items()):
            if isinstance(field, FieldInfo):
                setattr(cls, name, completed(name, field))

    # -- parameters -----------------------------------------------------------------------------------------------------

    @classmethod
    def parameters(cls) -> dict[str, Parameter]:
        """Return the metadata of every parameter, in order."""
        return dict(_metadata(cls))

    @classmethod
    def array_parameters(cls) -> tuple[str, ...]:
        """Return the parameters that `predicted` names in its signature. The prediction takes arrays of them."""
        return _named(cls, "predicted")

    @classmethod
    def path_parameters(cls) -> tuple[str, ...]:
        """Return the parameters that `measured` names in its signature. One simulated draw serves every value of them."""
        return _named(cls, "measured")

    @classmethod
    def former_name(cls, name: str) -> str | None:
        """Return the present name of a parameter that was called `name` in an earlier version, or None."""
        new = FORMER_NAMES.get(name)
        return new if new in cls.model_fields and name not in cls.model_fields else None

    @classmethod
    def hint(cls, name: str) -> str:
        """Return a hint for a name that is not a parameter, which is its new name or the names that are close to it."""
        new = cls.former_name(name)
        return f"it is called {new!r} now" if new else did_you_mean(name, cls.model_fields)

    def coordinates(self) -> dict[str, Any]:
        """Return the coordinates of the observables (such as `time`), by dimension; a single number gives no dimension."""
        return {
            meta.dimension: getattr(self, name) for name, meta in _metadata(type(self)).items() if meta.kind == "coordinate"
        }

    def count(self, parameter: str, size: int) -> int:
        """Return the whole number that a ratio becomes in an experiment of this size, at least 1."""
        value, rule = getattr(self, parameter), _metadata(type(self))[parameter].count
        if math.isinf(value):
            raise Refused(f"{parameter} = inf is not allowed in a simulation: choose a finite value")
        exact = float(size) * value if rule == "size * value" else size / value
        if math.isinf(exact):
            raise Refused(
                f"{parameter} = {value!r} is not allowed in a simulation of size {size}: its count would exceed 1e308; "
                "choose a value closer to 1"
            )
        return max(1, round(exact))

    def realised(self, size: int) -> Self:
        """Return the law with the ratios and shares that an experiment of this size has, because counts are whole numbers."""
        changes: dict[str, Any] = {}
        for name, meta in _metadata(type(self)).items():
            if meta.count == "shares of size":
                changes[name] = tuple(float(part) for part in apportion(size, getattr(self, name)))
            elif meta.count is not None:
                whole = self.count(name, size)
                changes[name] = whole / size if meta.count == "size * value" else size / whole
        return self.replace(**changes) if changes else self

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some parameters changed, validated like a new law.

        >>> from limitlab.laws import Ridge
        >>> Ridge(ratio=2.0).replace(ridge=0.5).ridge
        0.5
        """
        return type(self)(**{**{name: getattr(self, name) for name in type(self).model_fields}, **changes})

    def finer(self) -> Self:
        """Return the law with more accurate solver options, each multiplied by the factor of its declaration."""
        changes = {}
        for name, meta in _metadata(type(self)).items():
            value = getattr(self, name)
            if meta.finer is not None and value is not None:
                changes[name] = type(value)(value * meta.finer)
        return self.replace(**changes) if changes else self

    @classmethod
    def check_points(cls) -> list[Self]:
        """Return the laws at `points`, where no term of the equations is zero.

        Comparison, contract and report use them by default.
        """
        return [cls(**point) for point in cls.points]

    # -- observables ----------------------------------------------------------------------------------------------------

    @classmethod
    def outputs(cls) -> dict[str, Observable]:
        """Return the metadata of every observable that prediction and experiment share, in order."""
        return {name: meta for name, meta in _observables(cls).items() if meta.compared}

    @classmethod
    def all_outputs(cls) -> dict[str, Observable]:
        """Return the metadata of every observable, in order, including observables that are not compared."""
        return dict(_observables(cls))

    def observed(self) -> tuple[str, ...]:
        """Return the observables at these parameters.

        A law overrides this method if some observables exist for one of its models only.
        """
        return tuple(type(self).outputs())

    def natural_scale(self, observable: str) -> float:
        """Return the smallest scale against which an observable is judged, or 0.

        With 0 the scale is the largest predicted value. A positive scale is for observables whose values may be tiny.

        An example is the train error at late times, whose scale is tau^2.
        """
        return 0.0

    def caveat(self) -> str:
        """Return a sentence that limitlab shows beside every prediction and verdict of the law."""
        return ""

    @classmethod
    def rates(cls, observable: str) -> tuple[float, float]:
        """Return the bounds of the exponent of the finite-size gap of an observable. They are equal if the exponent is known."""
        declared_rate = _observables(cls)[observable].rate
        rate = cls.simulation.rate if declared_rate is None else declared_rate
        return rate if isinstance(rate, tuple) else (rate, rate)

    @classmethod
    def title(cls) -> str:
        """Return the first line of the law's docstring, which is the question that the law answers."""
        return own_docstring(cls).split("\n")[0]

    # -- cost -----------------------------------------------------------------------------------------------------------

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of one experiment of this size.

        A law overrides this method if its experiment does not decompose a data matrix.
        """
        return self.matrix_cost(size)

    def limit_cost(self) -> Cost:
        """Return the cost of one prediction with all its coordinates.

        The estimate holds for a closed form, or for a few equations per point.
        """
        values = coordinate_values(self) * len(type(self).outputs())
        return Cost(OVERHEAD.numbers + PER_POINT.numbers * values, OVERHEAD.operations + PER_POINT.operations * values)

    def matrix_cost(self, size: int, matrices: float = 4.0) -> Cost:
        """Return the cost of an experiment that draws, copies and decomposes a data matrix.

        The lengths of an experiment are the size, the whole numbers that ratios become, and the law's other whole numbers. The two
        largest are the sides of the data matrix; `matrices` such matrices are held at once. The decomposition runs along the
        smaller side.
        """
        first, second = (*self._lengths(size), 1.0)[:2]
        lines, times = coordinate_values(self), self._repetitions()
        return Cost(
            OVERHEAD.numbers + matrices * first * second + len(type(self).outputs()) * lines + first * times,
            OVERHEAD.operations + (first * second * second + 4 * first * second * lines) * times,
        )

    def _lengths(self, size: int) -> list[float]:
        """Return the lengths of an experiment of this size (size, counts, whole-number parameters), the largest first."""
        lengths = [float(size)]
        for name, meta in _metadata(type(self)).items():
            value = getattr(self, name)
            if meta.count in ("size * value", "size / value"):
                lengths += [float(self.count(name, size))] if math.isfinite(value) else []
            elif meta.kind == "physics" and isinstance(value, int) and not isinstance(value, bool):
                lengths.append(float(value))
        return sorted(lengths, reverse=True)

    def _repetitions(self) -> float:
        """Return how often an experiment is repeated within one draw, for example once per replica or network."""
        values = [getattr(self, name) for name, meta in _metadata(type(self)).items() if meta.kind == "experiment"]
        return float(math.prod(value for value in values if isinstance(value, int) and not isinstance(value, bool)))

    # -- validation -----------------------------------------------------------------------------------------------------

    @model_validator(mode="before")
    @classmethod
    def _known_names(cls, parameters: Any) -> Any:
        if isinstance(parameters, Mapping):
            for name in parameters:
                if name not in cls.model_fields:
                    raise PydanticCustomError(
                        "parameter", f"{cls.__name__} has no parameter {str(name)!r}: {cls.hint(str(name))}"
                    )
        return parameters

    @field_validator("*", mode="wrap")
    @classmethod
    def _one_sentence(cls, value: Any, handler: Callable[[Any], Any], info: ValidationInfo) -> Any:
        """Check type and bounds; an error is one sentence that names parameter, value and range."""
        meta = _metadata(cls)[str(info.field_name)]
        bare = plain(value)
        if isinstance(bare, bool) and not isinstance(meta.default, bool):
            raise refusal(meta, value, "must be a number, not True or False")
        try:
            checked = handler(bare)
        except ValidationError as error:
            raise refusal(meta, value, _reason(meta, error)) from None
        if reason := not_a_number(bare, checked):
            raise refusal(meta, value, reason)
        if not all(meta.allows(number) for number in numbers_in(checked)):
            raise refusal(meta, value)
        if meta.kind == "coordinate" and isinstance(checked, tuple) and not _increasing(checked):
            raise refusal(meta, value, "must hold at least one number, in increasing order")
        return checked


@functools.cache
def _metadata(law: type[Declaration]) -> dict[str, Parameter]:
    return {name: read_metadata(name, field) for name, field in law.model_fields.items()}


@functools.cache
def _observables(law: type[Declaration]) -> dict[str, Observable]:
    return declared(law.observables)


@functools.cache
def _named(law: type[Declaration], method: str) -> tuple[str, ...]:
    """Return the parameters that a method of a law names, without coordinates, in the order of their declaration.

    A method that takes `**numbers` passes its arguments on, so it also receives the parameters that the overridden methods name.
    """
    names: set[str] = set()
    for kind in law.__mro__:
        if method in vars(kind):
            arguments = inspect.signature(vars(kind)[method]).parameters
            names.update(arguments)
            if not any(argument.kind is argument.VAR_KEYWORD for argument in arguments.values()):
                break
    return tuple(name for name, meta in _metadata(law).items() if name in names and meta.kind != "coordinate")


def coordinate_values(law: Declaration) -> float:
    """Return the number of values of all coordinates of a law, multiplied with each other."""
    return float(math.prod(np.size(line) for line in law.coordinates().values()))


def own_docstring(law: type) -> str:
    """Return the docstring in the law's file, or the docstring of the law from which it is derived."""
    for kind in law.__mro__:
        text = vars(kind).get("__written__" if "__written__" in vars(kind) else "__doc__")
        if isinstance(text, str) and text.strip():
            return inspect.cleandoc(text)
    return law.__name__


def _unnamed_values(law: type[Declaration], values: tuple[Any, ...]) -> str:
    """Return the error message for values that are passed without the names of their parameters."""
    first, name = ", ".join(map(repr, values))[:80], law.__name__
    names = list(law.model_fields)
    example = f"{name}({names[0]}={values[0]!r})" if names else f"{name}()"
    return (
        f"{name}({first}) is not allowed: give each parameter by its name, such as {example} "
        f"(the parameters are {', '.join(names)})"
    )


def _increasing(numbers: tuple[float, ...]) -> bool:
    return bool(numbers) and all(a < b for a, b in itertools.pairwise(numbers))


def _reason(meta: Parameter, error: ValidationError) -> str:
    """Return why pydantic refused a value. If a number was required, the reason states the allowed numbers."""
    first = error.errors()[0]
    wanted = {"float": "must be a number", "int": "must be a whole number"}.get(first["type"].split("_")[0])
    return first["msg"].lower() if wanted is None else ", ".join([wanted, *([meta.allowed] if meta.bounded else [])])
