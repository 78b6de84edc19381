"""Types of law parameters that are functions, selected by name or passed as a function of arrays.

`FunctionParameter` is the base class of these types. It implements equality, hashing, pickling, validation by pydantic, and a record in
JSON that distinguishes two functions. The record of a name is the name. The record of a function is "module:name#fingerprint", where the
fingerprint is computed from values of every function that enters the computation. Such a record cannot be converted back into a function.

`Schedule` is a number that depends on time, specified by a constant, a table of times and values, or a function of time.
"""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import PydanticCustomError, core_schema

from limitlab._core.checks import description
from limitlab.errors import Refused, did_you_mean

# -- functions of any kind ----------------------------------------------------------------------------------------------

Array = NDArray[np.float64]


class FunctionError(Refused):
    """Error for a value that cannot be used as a function of this kind.

    `reason` is the part of the message without the name of the parameter.
    """

    def __init__(self, kind: str, given: Any, reason: str):
        super().__init__(f"{kind} = {description(given)} is not allowed: {reason}")
        self.reason = reason


class FunctionParameter:
    """Base class of functions, specified by name or as a callable, that are usable as the type of a law's parameter.

    Instances are immutable. A subclass defines the word for its kind (`KIND`), the valid names (`names`) and a description of valid values
    (`MUST_BE`). Its constructor checks callables with `values_of` and sets `name` and `_key`. Two instances are equal if their `_key` is.
    """

    KIND: ClassVar[str] = "function"
    MUST_BE: ClassVar[str] = "a name or a function of arrays"
    name: str
    _key: Any

    @classmethod
    @abstractmethod
    def names(cls) -> tuple[str, ...]:
        """Return the valid names."""

    @classmethod
    def refusal(cls, given: Any, reason: str = "") -> FunctionError:
        """Return the error for a value that cannot be used."""
        return FunctionError(cls.KIND, given, reason or f"must be {cls.MUST_BE}")

    @classmethod
    def checked_name(cls, name: str) -> str:
        """Return a valid name, or raise `FunctionError` with the most similar valid name."""
        if name not in cls.names():
            if ":" in name:
                raise cls.refusal(name, "this names a function of another program; pass the function itself")
            raise cls.refusal(name, f"unknown {cls.KIND}, {did_you_mean(name, cls.names())}")
        return name

    @property
    def given(self) -> Any:
        """The argument from which an equal instance can be constructed, which is a name or the function."""
        return self.name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    # -- pydantic ------------------------------------------------------------------------------------------------------

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validated,
            serialization=core_schema.plain_serializer_function_ser_schema(cls._serialised, info_arg=True),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "enum": list(cls.names())}

    @classmethod
    def _validated(cls, given: Any) -> Self:
        try:
            return cls(given)  # type: ignore[call-arg]
        except ValueError as error:
            reason = error.reason if isinstance(error, FunctionError) else str(error)
            raise PydanticCustomError(cls.KIND, reason) from None

    def _serialised(self, info: core_schema.SerializationInfo) -> Any:
        return self.name if self.name in self.names() or info.mode == "json" else self


def record(function: Callable[[Any], Any], *values: Array) -> str:
    """Return the record of a function, which consists of its module, its name and a fingerprint of `values`.

    `values` are values of the function and of all functions that belong to it, such as derivatives.
    """
    module, name = (getattr(function, part, None) for part in ("__module__", "__qualname__"))
    return f"{module or 'builtins'}:{name or type(function).__qualname__}#{_fingerprint(values)}"


def code_record(*functions: Callable[..., Any]) -> str:
    """Return a record of functions that are not functions of one array, from their code and the values that they use.

    >>> code_record(lambda x: 2 * x) == code_record(lambda x: 3 * x)
    False
    """
    digest = hashlib.sha256()
    for function in functions:
        for part in _code_parts(function):
            digest.update(part)
    first = functions[0]
    module, name = (getattr(first, part, None) for part in ("__module__", "__qualname__"))
    return f"{module or 'builtins'}:{name or type(first).__qualname__}#{digest.hexdigest()[:8]}"


def _code_parts(function: Any) -> list[bytes]:
    """Return the code, the constants, the defaults, and the numbers of a closure and of global names of a function."""
    code = getattr(function, "__code__", None)
    if code is None:
        return [repr(getattr(function, "__qualname__", function)).encode()]
    parts = [code.co_code, repr(code.co_names).encode()]
    parts += [part for value in code.co_consts for part in _value_parts(value)]
    cells = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    names = [function.__globals__[name] for name in code.co_names if name in function.__globals__]
    for value in (*(function.__defaults__ or ()), *cells, *names):
        parts += _value_parts(value)
    return parts


def _value_parts(value: Any) -> list[bytes]:
    if hasattr(value, "co_code"):
        return [value.co_code, *(part for each in value.co_consts for part in _value_parts(each))]
    if isinstance(value, np.ndarray):
        return [value.tobytes()]
    return [repr(value).encode()] if isinstance(value, (int, float, complex, str, bool, tuple, type(None))) else []


def _fingerprint(parts: tuple[Array, ...]) -> str:
    """Return eight hexadecimal digits, computed from nine decimal digits of every value."""
    text = ""
    for values in parts:
        size = float(np.max(np.abs(values), initial=0.0))
        digits = np.round(values / max(size, 1e-300), 9) + 0.0
        text += f"{size:.8e} " + " ".join(f"{digit:.9f}" for digit in digits) + ";"
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def values_of(kind: type[FunctionParameter], function: Callable[[Any], Any], points: Array) -> Array:
    """Return the values of a callable at a few points, and raise `FunctionError` if it is not a function of arrays."""
    try:
        values = np.asarray(function(points), dtype=float)
    except Exception as error:
        raise kind.refusal(function, f"it failed on an array ({error}); try numpy.vectorize(function)") from error
    if values.shape != points.shape or not np.all(np.isfinite(values)):
        raise kind.refusal(function, "must map an array of numbers to finite numbers, one for each")
    return values


# -- functions of time --------------------------------------------------------------------------------------------------

PROBES = np.array([0.0, 0.1, 0.5, 1.0, 3.0, 10.0, 50.0])
"""Times at which a function is evaluated to check and identify it."""


class Schedule(FunctionParameter):
    """A function of time with values of at least 0, usable as the type of a law's parameter.

    Instances are immutable.

    Parameters
    ----------
    given
        A number (a constant schedule), pairs (time, value) with times that increase from 0, or a function of an array of times. Pairs
        are interpolated linearly, and the value is constant after the last time.

    Notes
    -----
    In JSON a constant is its number, a table is its pairs, and a function is a record that identifies it in results.

    Examples
    --------
    >>> Schedule([(0, 1.0), (2, 0.0)])([0.5, 5.0]).tolist()
    [0.75, 0.0]
    >>> Schedule(lambda t: 1.5 * np.exp(-t / 2))(2.0).round(6).item()
    0.551819
    """

    KIND = "schedule"
    MUST_BE = "a number of at least 0, pairs (time, value) with times increasing from 0, or a function of time"

    def __init__(self, given: Any):
        if isinstance(given, Schedule):
            self.__dict__.update(given.__dict__)
        elif isinstance(given, str) and ":" in given:
            raise self.refusal(given, "this names a function of another program; pass the function itself")
        elif callable(given):
            self._from_function(given)
        else:
            self._from_numbers(given)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return no names, because schedules have none."""
        return ()

    def _from_function(self, function: Callable[[Any], Any]) -> None:
        values = values_of(type(self), function, PROBES)
        if values.min() < 0:
            raise self.refusal(function, "must be at least 0 at every time")
        self.plain: Any = None
        self._function = function
        self.name = record(function, values)
        self._key: Any = ("function", self.name)

    def _from_numbers(self, given: Any) -> None:
        try:
            table = np.asarray(given, dtype=float)
        except (TypeError, ValueError):
            raise self.refusal(given) from None
        if table.ndim == 0:
            table = np.array([[0.0, float(table)]])
        wrong = table.ndim != 2 or table.shape[1] != 2 or not np.all(np.isfinite(table))
        if wrong or table[0, 0] != 0 or np.any(np.diff(table[:, 0]) <= 0) or table[:, 1].min() < 0:
            raise self.refusal(given)
        times, values = table.T
        self._function = lambda t: np.interp(t, times, values)
        self.plain = float(values[0]) if len(table) == 1 else tuple((float(t), float(v)) for t, v in table)
        self.name = str(self.plain)
        self._key = ("table", self.plain)

    @property
    def given(self) -> Any:
        """The argument from which an equal instance can be constructed."""
        return self._function if self.plain is None else self.plain

    @property
    def kinks(self) -> tuple[float, ...]:
        """Times at which the slope of a table jumps."""
        return () if not isinstance(self.plain, tuple) else tuple(t for t, _ in self.plain[1:])

    def __call__(self, times: ArrayLike) -> Array:
        """Return the values at the times."""
        values = np.asarray(self._function(np.asarray(times, dtype=float)), dtype=float)
        if not np.all(np.isfinite(values)) or values.min(initial=math.inf) < 0:
            raise self.refusal(self.name, "must return finite numbers of at least 0 at every time")
        return values

    def __reduce__(self) -> tuple[Any, tuple[Any]]:
        return Schedule, (self.given,)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"type": "number", "minimum": 0}, {"type": "array"}]}

    def _serialised(self, info: core_schema.SerializationInfo) -> Any:
        if self.plain is None:
            return self.name if info.mode == "json" else self
        return self.plain
