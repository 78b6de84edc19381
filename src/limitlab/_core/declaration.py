"""The declaration of a law: its parameters, its observables, its experiment, and what follows from them without a computation.

`Law` (in `law.py`) adds the prediction and the experiment. Modules that need only the declaration take a `Declaration`.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError, ValidationError

from limitlab._core.apportion import apportion
from limitlab._core.cost import Cost
from limitlab._core.observables import Observable, declared
from limitlab._core.parameters import Parameter, completed, not_a_number, numbers_in, plain, read_metadata, refusal
from limitlab._core.vocabulary import FORMER_NAMES
from limitlab.errors import Refused, did_you_mean

Status = Literal["theorem", "derived", "conjecture"]

LEAST = Cost(numbers=1e5, operations=1e7)
"""What every computation takes: results, labels, Python itself."""
PER_POINT = Cost(numbers=60.0, operations=1e5)
"""What one point of a prediction takes for every observable."""


@dataclass(frozen=True)
class Experiment:
    """The finite experiment of a law: what its size counts, how a comparison samples it, how fast it approaches the limit.

    Attributes
    ----------
    size_meaning
        What `size` counts in `simulate`.
    sizes, draws
        The sizes and the number of draws per size of a comparison that takes seconds.
    rate
        Exponent r of the gap between experiment and limit, gap ~ size^-r, unless an observable has its own. `math.inf` states that the
        law is exact at every size. Two numbers state that the exponent lies between them and is not known better.

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
    """A frozen, validated record of parameters, with what the class of the law declares about them."""

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
    revision: ClassVar[int] = 1
    __written__: ClassVar[str | None] = None  # the docstring of the class as its file states it, see `written`

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
        """Metadata of every parameter, in order."""
        return dict(_metadata(cls))

    @classmethod
    def array_parameters(cls) -> tuple[str, ...]:
        """Parameters that `predicted` names: the prediction takes arrays of them."""
        return _named(cls, "predicted")

    @classmethod
    def path_parameters(cls) -> tuple[str, ...]:
        """Parameters that `measured` names: one simulated draw serves every value of them."""
        return _named(cls, "measured")

    @classmethod
    def former_name(cls, name: str) -> str | None:
        """The present name of a parameter that was called `name` in an earlier version, or None."""
        new = FORMER_NAMES.get(name)
        return new if new in cls.model_fields and name not in cls.model_fields else None

    @classmethod
    def hint(cls, name: str) -> str:
        """What to say about a name that is not a parameter: its new name if it was one, or those that are close."""
        new = cls.former_name(name)
        return f"it is called {new!r} now" if new else did_you_mean(name, cls.model_fields)

    def coordinates(self) -> dict[str, Any]:
        """Coordinates that the observables depend on (such as `time`), by dimension; a single number gives no dimension."""
        return {
            meta.dimension: getattr(self, name) for name, meta in _metadata(type(self)).items() if meta.kind == "coordinate"
        }

    def count(self, parameter: str, size: int) -> int:
        """The whole number that a ratio becomes in an experiment of this size, as its declaration says (at least 1)."""
        value, rule = getattr(self, parameter), _metadata(type(self))[parameter].count
        if math.isinf(value):
            raise Refused(f"{parameter} = inf is not allowed in a simulation: choose a finite value")
        exact = float(size) * value if rule == "size * value" else size / value
        if math.isinf(exact):
            raise Refused(
                f"{parameter} = {value!r} is not allowed in a simulation of size {size}: it would count more than 1e308"
            )
        return max(1, round(exact))

    def realised(self, size: int) -> Self:
        """The law with its ratios and shares as an experiment of this size realises them (n = round(size / ratio), say)."""
        changes: dict[str, Any] = {}
        for name, meta in _metadata(type(self)).items():
            if meta.count == "shares of size":
                changes[name] = tuple(float(part) for part in apportion(size, getattr(self, name)))
            elif meta.count is not None:
                whole = self.count(name, size)
                changes[name] = whole / size if meta.count == "size * value" else size / whole
        return self.replace(**changes) if changes else self

    def replace(self, **changes: Any) -> Self:
        """A copy with some parameters changed, validated like a new law.

        >>> from limitlab.laws import Ridge
        >>> Ridge(ratio=2.0).replace(ridge=0.5).ridge
        0.5
        """
        return type(self)(**{**{name: getattr(self, name) for name in type(self).model_fields}, **changes})

    def finer(self) -> Self:
        """The same law solved with more effort: its solver options multiplied as their declarations say."""
        changes = {}
        for name, meta in _metadata(type(self)).items():
            value = getattr(self, name)
            if meta.finer is not None and value is not None:
                changes[name] = type(value)(value * meta.finer)
        return self.replace(**changes) if changes else self

    @classmethod
    def check_points(cls) -> list[Self]:
        """The laws at `points`, where no term is switched off; comparison, contract and report use them by default."""
        return [cls(**point) for point in cls.points]

    # -- observables ----------------------------------------------------------------------------------------------------

    @classmethod
    def outputs(cls) -> dict[str, Observable]:
        """Metadata of every observable that prediction and experiment share, in order."""
        return {name: meta for name, meta in _observables(cls).items() if meta.compared}

    @classmethod
    def all_outputs(cls) -> dict[str, Observable]:
        """Metadata of every observable, in order; also of those that are not compared."""
        return dict(_observables(cls))

    def observed(self) -> tuple[str, ...]:
        """The observables at these parameters: all that the law compares, unless some belong to one of its models only."""
        return tuple(type(self).outputs())

    def natural_scale(self, observable: str) -> float:
        """The scale on which an observable that may be small by itself is judged, such as tau^2 for a late train error; 0: its own."""
        return 0.0

    def caveat(self) -> str:
        """What is said beside every prediction and verdict of the law."""
        return ""

    @classmethod
    def rates(cls, observable: str) -> tuple[float, float]:
        """Bounds of the exponent of the finite-size gap of an observable: equal where it is known."""
        own = _observables(cls)[observable].rate
        rate = cls.simulation.rate if own is None else own
        return rate if isinstance(rate, tuple) else (rate, rate)

    @classmethod
    def title(cls) -> str:
        """The first line of the law's docstring: the question it answers."""
        return written(cls).split("\n")[0]

    # -- cost -----------------------------------------------------------------------------------------------------------

    def draw_cost(self, size: int) -> Cost:
        """What one experiment of this size takes; a law whose experiment does not decompose a data matrix says it itself."""
        return self.matrix_cost(size)

    def limit_cost(self) -> Cost:
        """What one prediction takes, with all its coordinates: a closed form, or a few equations for every point."""
        values = coordinate_values(self) * len(type(self).outputs())
        return Cost(LEAST.numbers + PER_POINT.numbers * values, LEAST.operations + PER_POINT.operations * values)

    def matrix_cost(self, size: int, matrices: float = 4.0) -> Cost:
        """The cost of an experiment that draws, copies and decomposes a data matrix.

        The lengths that are in play are the size, the whole numbers that ratios become, and the law's other whole numbers. The data
        matrix has the two largest as its sides; `matrices` of them are held at once. The decomposition runs along the smaller side.
        """
        first, second = (*self._lengths(size), 1.0)[:2]
        lines, times = coordinate_values(self), self._repetitions()
        return Cost(
            LEAST.numbers + matrices * first * second + len(type(self).outputs()) * lines + first * times,
            LEAST.operations + (first * second * second + 4 * first * second * lines) * times,
        )

    def _lengths(self, size: int) -> list[float]:
        """The lengths in play in an experiment of this size, the largest first."""
        lengths = [float(size)]
        for name, meta in _metadata(type(self)).items():
            value = getattr(self, name)
            if meta.count in ("size * value", "size / value"):
                lengths += [float(self.count(name, size))] if math.isfinite(value) else []
            elif meta.kind == "physics" and isinstance(value, int) and not isinstance(value, bool):
                lengths.append(float(value))
        return sorted(lengths, reverse=True)

    def _repetitions(self) -> float:
        """How often an experiment is repeated within one draw: its replicas, networks, ..."""
        values = [getattr(self, name) for name, meta in _metadata(type(self)).items() if meta.kind == "experiment"]
        return float(math.prod(value for value in values if isinstance(value, int) and not isinstance(value, bool)))

    # -- validation -----------------------------------------------------------------------------------------------------

    @model_validator(mode="before")
    @classmethod
    def _known_names(cls, given: Any) -> Any:
        if isinstance(given, Mapping):
            for name in given:
                if name not in cls.model_fields:
                    raise PydanticCustomError(
                        "parameter", f"{cls.__name__} has no parameter {str(name)!r}: {cls.hint(str(name))}"
                    )
        return given

    @field_validator("*", mode="wrap")
    @classmethod
    def _one_sentence(cls, value: Any, handler: Callable[[Any], Any], info: ValidationInfo) -> Any:
        """Type and bounds, refused in one sentence that names parameter, value and range."""
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
    """The parameters that a method of a law names, without coordinates, in the order of their declaration.

    A method that takes `**numbers` passes arguments on: it gets what the methods that it overrides name, too.
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
    """The number of values of the law's own coordinates, all together."""
    return float(math.prod(np.size(line) for line in law.coordinates().values()))


def written(law: type) -> str:
    """The docstring as it stands in the law's file, or that of the law it is made from."""
    for kind in law.__mro__:
        text = vars(kind).get("__written__" if "__written__" in vars(kind) else "__doc__")
        if isinstance(text, str) and text.strip():
            return inspect.cleandoc(text)
    return law.__name__


def _unnamed_values(law: type[Declaration], values: tuple[Any, ...]) -> str:
    """What is said about values that are given without the names of their parameters."""
    first, name = ", ".join(map(repr, values))[:80], law.__name__
    names = list(law.model_fields)
    example = f"{name}({names[0]}={values[0]!r})" if names else f"{name}()"
    return (
        f"{name}({first}) does not say which parameter is meant: give it by name, such as {example} "
        f"(the parameters are {', '.join(names)})"
    )


def _increasing(numbers: tuple[float, ...]) -> bool:
    return bool(numbers) and all(a < b for a, b in itertools.pairwise(numbers))


def _reason(meta: Parameter, error: ValidationError) -> str:
    """Why pydantic refused a value; where it wanted a number, with the numbers allowed."""
    first = error.errors()[0]
    wanted = {"float": "must be a number", "int": "must be a whole number"}.get(first["type"].split("_")[0])
    return first["msg"].lower() if wanted is None else ", ".join([wanted, *([meta.allowed] if meta.bounded else [])])
