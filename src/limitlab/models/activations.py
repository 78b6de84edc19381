"""Activations of neurons, specified by name, as a function, or through their Gaussian moments only.

A law with an activation accepts a name ("relu", "tanh", ...), any function of arrays, or `Moments(mean, linear, nonlinear)`.
The proportional limits depend on the activation only through these moments:

    s(Z) = mu0 + mu1 Z + (a part of norm mu* that is uncorrelated with both),     Z ~ N(0, 1).

>>> moments("relu").linear
0.5
>>> Activation("erf")(np.array([0.0, 1.0])).round(6)
array([0.      , 0.842701])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import GetJsonSchemaHandler
from pydantic_core import core_schema

from limitlab._core.checks import number
from limitlab.errors import Refused
from limitlab.models._activation_table import TABLE
from limitlab.models.one_variable import OneVariable
from limitlab.numerics.gaussian import expectation, hermite_coefficients, panel_rule

__all__ = ["Activation", "Moments", "hermite", "moments"]

Array = NDArray[np.float64]

NAMES: tuple[str, ...] = tuple(TABLE)
"""Names of activations that every law accepts."""

UFUNCS = dict(tanh="tanh", sin="sin", cos="cos", absolute="abs", square="square", erf="erf", expit="sigmoid")
"""Names of the activations that are universal functions of NumPy or SciPy, by the names of these functions."""

LINEAR = 1e-13
"""A function with a smaller distance to mu0 + mu1 x, as a share of its size, is linear to rounding, and its mu* is 0."""


@dataclass(frozen=True)
class Moments:
    """The moments of an activation s that determine the proportional limits, with Z a standard Gaussian.

    Parameters
    ----------
    mean
        mu0 = E s(Z).
    linear
        mu1 = E Z s(Z).
    nonlinear
        mu* >= 0, with mu*^2 = E s(Z)^2 - mu0^2 - mu1^2.

    Examples
    --------
    >>> Moments(mean=0, linear=1, nonlinear=0.5).square
    1.25
    """

    mean: float
    linear: float
    nonlinear: float

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            object.__setattr__(self, name, number(name, value))
        number("nonlinear", self.nonlinear, least=0, remedy="it is the norm mu*")

    @property
    def square(self) -> float:
        """The mean square E s(Z)^2."""
        return self.mean**2 + self.linear**2 + self.nonlinear**2


class Activation(OneVariable):
    """An activation function with its derivatives, kinks and moments, usable as the type of a law's parameter.

    Instances are immutable.

    Parameters
    ----------
    given
        A name (see `NAMES`), a function of arrays, a table of pairs (x, y), `Moments` (or a mapping with its three entries), or an
        instance of `OneVariable`.
    derivative, second_derivative
        Derivatives of a function. Missing derivatives are computed. Named activations include their derivatives.
    kinks
        Points where a function or its derivatives jump. If missing, they are computed when needed.

    Notes
    -----
    In JSON a named activation is its name, moments are an object, and a function is a record that identifies it in results. The functions
    `numpy.tanh`, `sin`, `cos`, `abs` and `square` and `scipy.special.erf` and `expit` are the activations with these names.

    Examples
    --------
    >>> Activation("tanh").derivative(0.0)
    np.float64(1.0)
    >>> Activation("rleu")
    Traceback (most recent call last):
        ...
    limitlab.models.functions.FunctionError: activation = 'rleu' is not allowed: unknown activation, did you mean 'relu'?
    >>> Activation(lambda x: np.maximum(x - 0.5, 0)).kinks
    (0.5,)
    """

    KIND = "activation"
    MUST_BE = "a name, a function of arrays, a table of pairs (x, y), or Moments(mean, linear, nonlinear)"

    def __init__(
        self,
        given: Any,
        *,
        derivative: Callable[[Any], Any] | None = None,
        second_derivative: Callable[[Any], Any] | None = None,
        kinks: Sequence[float] | None = None,
    ):
        self._moments: Moments | None = None
        self._parity: str | None = None
        if (
            type(given).__name__ == "ufunc"
            and given.__name__ in UFUNCS
            and (derivative, second_derivative, kinks) == (None,) * 3
        ):
            given = UFUNCS[given.__name__]
        if isinstance(given, str):
            self._from_name(given)
        elif isinstance(given, (Moments, Mapping)):
            self._from_moments(given)
        else:
            super().__init__(given, derivative=derivative, second_derivative=second_derivative, kinks=kinks)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The named activations."""
        return NAMES

    def _from_name(self, name: str) -> None:
        entry = TABLE[self.checked_name(name)]
        self.name = name
        self._function: Callable[[Any], Any] | None = entry.function
        self._source = (entry.derivative, entry.second_derivative, entry.kinks)
        self._parity = entry.parity
        self._moments = None if entry.moments is None else Moments(*entry.moments)
        self._key = name

    def _from_moments(self, given: Moments | Mapping[str, float]) -> None:
        if isinstance(given, Mapping) and set(given) != {"mean", "linear", "nonlinear"}:
            raise self.refusal(given, "moments have exactly the entries mean, linear and nonlinear")
        self._moments = given if isinstance(given, Moments) else Moments(**given)
        self.name = "moments"
        self._function = None
        self._source = (None, None, None)
        self._key = self._moments

    def second_derivative(self, x: Any) -> Any:
        """Return s''(x), element by element, or raise an error for an activation whose derivative jumps."""
        if self.name in TABLE and self.kinks:
            raise Refused(f"activation {self.name!r} has no bounded second derivative: use a smooth one, such as 'gelu'")
        return super().second_derivative(x)

    @property
    def given(self) -> Any:
        """The argument from which an equal instance can be constructed."""
        return self.name if self.name in TABLE else self._moments if self._function is None else super().given

    @property
    def jumps(self) -> tuple[float, ...]:
        """The kinks at which the function itself jumps. Named activations are continuous."""
        return () if self.name in TABLE else super().jumps

    @property
    def known_moments(self) -> Moments | None:
        """The moments if they were specified or have closed forms, or None if they require quadrature."""
        return self._moments

    @property
    def parity(self) -> str | None:
        """The parity "even" or "odd" of a named activation, or None if there is none or it is unknown."""
        return self._parity

    def __repr__(self) -> str:
        return f"Activation({self._moments!r})" if self._function is None else f"Activation({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._function is None or self.name in TABLE:
            return Activation, (self._moments if self._function is None else self.name,)
        return super().__reduce__()

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        number = {"type": "number"}
        entries = dict(type="object", properties=dict(mean=number, linear=number, nonlinear=number))
        table = dict(type="array", items=dict(type="array", items=number))
        return {"anyOf": [super().__get_pydantic_json_schema__(schema, handler), entries, table]}

    def _serialised(self, info: core_schema.SerializationInfo) -> Any:
        return asdict(self._moments) if self._function is None and self._moments else super()._serialised(info)


def moments(activation: Activation | Moments | str | Callable[[Any], Any]) -> Moments:
    """Return the Gaussian moments mu0, mu1, mu* of an activation, in closed form if one exists, otherwise by quadrature.

    Parameters
    ----------
    activation
        A name, a function of arrays, an `Activation`, or `Moments`, which are returned unchanged.

    Examples
    --------
    >>> moments("square")
    Moments(mean=1.0, linear=0.0, nonlinear=1.4142135623730951)
    >>> round(moments(lambda x: np.tanh(x + 0.5)).nonlinear, 6)
    0.186758
    """
    return _moments(Activation(activation))


def hermite(activation: Activation | str | Callable[[Any], Any], degree: int) -> Array:
    """Return the coefficients of an activation in the orthonormal Hermite polynomials, from degree 0 to `degree`.

    Coefficients of a named activation that vanish by symmetry are exactly 0.

    Examples
    --------
    >>> hermite("relu", 4).round(5)
    array([ 0.39894,  0.5    ,  0.28209,  0.     , -0.08143])
    """
    return _hermite(Activation(activation), int(degree)).copy()


@lru_cache(maxsize=256)
def _moments(activation: Activation) -> Moments:
    if activation.known_moments is not None:
        return activation.known_moments
    mean, linear = hermite_coefficients(activation, 1, kinks=activation.kinks)

    def rest(x: Array) -> Array:
        return activation(x) - mean - linear * x

    # mu*^2 is the average of a square, not a difference of averages, so that a small value has no cancellation. Rounding errors
    # of s limit its accuracy.
    points, weights = panel_rule(activation.kinks)
    share = np.sqrt(weights @ rest(points) ** 2) / (np.hypot(mean, linear) or 1.0)
    if share <= LINEAR:
        return Moments(float(mean), float(linear), 0.0)
    tolerance = max(1e-12, LINEAR / float(share))
    nonlinear = np.sqrt(expectation(lambda x: rest(x) ** 2, kinks=activation.kinks or None, tolerance=tolerance))
    return Moments(float(mean), float(linear), float(nonlinear))


@lru_cache(maxsize=256)
def _hermite(activation: Activation, degree: int) -> Array:
    coefficients = np.array(hermite_coefficients(activation, degree, kinks=activation.kinks))
    if activation.known_moments is not None:
        known = (activation.known_moments.mean, activation.known_moments.linear)
        coefficients[: degree + 1][:2] = known[: degree + 1]
    if activation.parity is not None:
        coefficients[3 if activation.parity == "even" else 2 :: 2] = 0.0
    return coefficients
