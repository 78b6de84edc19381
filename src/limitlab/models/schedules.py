"""A number that changes in time, as a parameter: a constant, a table of times and values, or a function of time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import GetJsonSchemaHandler
from pydantic_core import core_schema

from limitlab.models.functions import FunctionParameter, record, values_of

Array = NDArray[np.float64]

PROBES = np.array([0.0, 0.1, 0.5, 1.0, 3.0, 10.0, 50.0])
"""Times at which a given function is looked at."""


class Schedule(FunctionParameter):
    """A schedule t -> value of at least 0. Immutable; a valid type for a law's parameter.

    Parameters
    ----------
    given
        A number (constant), pairs (time, value) with increasing times from 0 on (linear between them, constant beyond the last), or a
        function of an array of times.

    Notes
    -----
    In JSON a constant is its number, a table its pairs, and a function a record that tells results apart.

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
        """There are none."""
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
        """What to construct it from again."""
        return self._function if self.plain is None else self.plain

    @property
    def kinks(self) -> tuple[float, ...]:
        """Times at which the slope of a table jumps."""
        return () if not isinstance(self.plain, tuple) else tuple(t for t, _ in self.plain[1:])

    def __call__(self, times: ArrayLike) -> Array:
        """Values at the times."""
        values = np.asarray(self._function(np.asarray(times, dtype=float)), dtype=float)
        if not np.all(np.isfinite(values)) or values.min(initial=math.inf) < 0:
            raise self.refusal(self.name, "must give finite numbers of at least 0 at every time")
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
