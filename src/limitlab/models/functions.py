"""Functions as parameters of a law: chosen by name, or given as a function of arrays.

What every such type shares: equality and hashing, pickling, a record in JSON that tells two functions apart, and how pydantic reads it.
A name stands for itself in JSON. A function is recorded as "module:name#fingerprint", where the fingerprint is made from values of all
it computes with; such a record is never turned back into a function.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import PydanticCustomError, core_schema

from limitlab.errors import did_you_mean

Array = NDArray[np.float64]


class FunctionError(ValueError):
    """Something that cannot be used as such a function; `reason` says why, without naming the parameter."""

    def __init__(self, kind: str, given: Any, reason: str):
        super().__init__(f"{kind} = {given!r} is not allowed: {reason}")
        self.reason = reason


class FunctionParameter:
    """A function by name or as a callable. Immutable; a valid type for a law's parameter.

    A subclass says what it is called (`KIND`), which names there are (`names`), what one must be (`MUST_BE`), how to check a callable
    (`_probe`), and gives `name` and `_key` (what tells two of them apart) in its constructor.
    """

    KIND: ClassVar[str] = "function"
    MUST_BE: ClassVar[str] = "a name or a function of arrays"
    name: str
    _key: Any

    @classmethod
    @abstractmethod
    def names(cls) -> tuple[str, ...]:
        """The names that there are."""

    @classmethod
    def refusal(cls, given: Any, reason: str = "") -> FunctionError:
        """The error for something that cannot be used."""
        return FunctionError(cls.KIND, given, reason or f"must be {cls.MUST_BE}")

    @classmethod
    def checked_name(cls, name: str) -> str:
        """A name that there is; one that is close is suggested."""
        if name not in cls.names():
            if ":" in name:
                raise cls.refusal(name, "this names a function of another program; pass the function itself")
            raise cls.refusal(name, f"unknown {cls.KIND}, {did_you_mean(name, cls.names())}")
        return name

    @property
    def given(self) -> Any:
        """What to construct it from again: a name, or the function."""
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
    """A record of a function: where it is from, and a fingerprint of the given values of it and of what belongs to it."""
    module, name = (getattr(function, part, None) for part in ("__module__", "__qualname__"))
    return f"{module or 'builtins'}:{name or type(function).__qualname__}#{_fingerprint(values)}"


def _fingerprint(parts: tuple[Array, ...]) -> str:
    """Eight hexadecimal digits made from nine decimal ones of every value."""
    text = ""
    for values in parts:
        size = float(np.max(np.abs(values), initial=0.0))
        digits = np.round(values / max(size, 1e-300), 9) + 0.0
        text += f"{size:.8e} " + " ".join(f"{digit:.9f}" for digit in digits) + ";"
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def values_of(kind: type[FunctionParameter], function: Callable[[Any], Any], points: Array) -> Array:
    """Values of a callable at a few points, after making sure that it is a function of arrays."""
    try:
        values = np.asarray(function(points), dtype=float)
    except Exception as error:
        raise kind.refusal(function, f"it failed on an array ({error}); try numpy.vectorize(function)") from error
    if values.shape != points.shape or not np.all(np.isfinite(values)):
        raise kind.refusal(function, "must map an array of numbers to finite numbers, one for each")
    return values
