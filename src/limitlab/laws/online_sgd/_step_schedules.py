"""How the step of an algorithm changes along the way: a factor that depends on the number of the step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.models.functions import FunctionParameter, record, values_of

Array = NDArray[np.float64]


class StepSchedule(FunctionParameter):
    """The factor of the step at step number k = 0, 1, ...: "constant", or a function of an array of step numbers.

    Examples
    --------
    >>> StepSchedule("constant")([0, 10]).tolist()
    [1.0, 1.0]
    >>> StepSchedule(lambda k: 1 / (1 + k))([0, 1, 3]).tolist()
    [1.0, 0.5, 0.25]
    """

    KIND = "schedule"
    MUST_BE = '"constant" or a function of an array of step numbers'

    def __init__(self, given: StepSchedule | str | Callable[[Any], Any]):
        self._function: Callable[[Any], Any] | None = None
        if isinstance(given, StepSchedule):
            self._function, self.name = given._function, given.name
        elif isinstance(given, str):
            self.name = self.checked_name(given)
        elif callable(given):
            self._function = given
            self.name = record(given, values_of(type(self), given, np.r_[np.arange(16.0), np.geomspace(16, 1e6, 48)]))
        else:
            raise self.refusal(given)
        self._key = self.name

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The one schedule that has a name."""
        return ("constant",)

    @property
    def given(self) -> Any:
        """What to construct it from again."""
        return self.name if self._function is None else self._function

    def __call__(self, steps: ArrayLike) -> Array:
        """Factors at the given step numbers."""
        k = np.asarray(steps, dtype=float)
        return np.ones(k.shape) if self._function is None else np.asarray(self._function(k), dtype=float)
