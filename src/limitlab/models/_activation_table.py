"""Table of the named activations, with two derivatives, kinks, parity, and Gaussian moments where closed forms exist.

Every function accepts NumPy or JAX arrays, including arrays that a JAX program traces, and works element by element.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal

import numpy as np

Function = Callable[[Any], Any]
MomentTriple = tuple[float, float, float]

DEGREES = range(1, 7)  # of the named Hermite polynomials


@dataclass(frozen=True)
class Entry:
    """A named activation.

    `parity` is the parity of the part beyond degree 1. With "even" the Hermite coefficients of degree 3, 5, ... vanish, and with
    "odd" those of degree 2, 4, ... `moments` holds E s, E[Z s] and the norm of the rest (docs/theory/gaussian.md, section 5).
    `second_derivative` is None if the second derivative has a point mass.
    """

    function: Function
    derivative: Function
    second_derivative: Function | None
    kinks: tuple[float, ...] = ()
    parity: Literal["even", "odd"] | None = None
    moments: MomentTriple | None = None


def _numpy_of(x: Any) -> ModuleType:
    """Return the array module of an array, which is numpy or jax.numpy."""
    find = getattr(x, "__array_namespace__", None)
    return find() if find is not None else np


def _special_of(x: Any) -> ModuleType:
    """Return the module of special functions for an array, which is scipy.special or jax.scipy.special."""
    if _numpy_of(x).__name__.startswith("jax"):
        from jax.scipy import special as jax_special

        return jax_special
    from scipy import special

    return special


def _relu(x: Any) -> Any:
    return _numpy_of(x).maximum(x, 0.0)


def _step(x: Any) -> Any:
    return _numpy_of(x).where(x > 0, 1.0, 0.0)


def _tanh(x: Any) -> Any:
    return _numpy_of(x).tanh(x)


def _sech_squared(x: Any) -> Any:
    value = _tanh(x)
    return (1 - value) * (1 + value)


def _erf(x: Any) -> Any:
    return _special_of(x).erf(x)


def _erf_slope(x: Any) -> Any:
    return 2 / math.sqrt(math.pi) * _numpy_of(x).exp(-(x**2))


def _density(x: Any) -> Any:
    return _numpy_of(x).exp(-(x**2) / 2) / math.sqrt(2 * math.pi)


def _normal_cdf(x: Any) -> Any:
    return _special_of(x).ndtr(x)


def _softplus(x: Any) -> Any:
    numpy = _numpy_of(x)
    return numpy.maximum(x, 0.0) + numpy.log1p(numpy.exp(-numpy.abs(x)))  # twice as fast as logaddexp


def _sigmoid(x: Any) -> Any:
    return _special_of(x).expit(x)


def _sigmoid_slope(x: Any) -> Any:
    return _sigmoid(x) * _sigmoid(-x)


def _sin(x: Any) -> Any:
    return _numpy_of(x).sin(x)


def _cos(x: Any) -> Any:
    return _numpy_of(x).cos(x)


def _hermite(degree: int, factor: float = 1.0) -> Function:
    """Return the function factor x He_degree, which is zero for a negative degree."""
    coefficients = factor * np.polynomial.hermite_e.herme2poly([0.0] * degree + [1.0]) if degree >= 0 else np.zeros(1)

    def polynomial(x: Any) -> Any:
        value = 0.0 * x + float(coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            value = value * x + float(coefficient)
        return value

    return polynomial


def _hermite_entry(degree: int, factor: float) -> Entry:
    """Return the entry of factor x He_degree, with He_k' = k He_{k-1}."""
    size = factor * math.sqrt(math.factorial(degree))
    return Entry(
        _hermite(degree, factor),
        _hermite(degree - 1, factor * degree),
        _hermite(degree - 2, factor * degree * (degree - 1)),
        parity="even" if degree % 2 == 0 else "odd",
        moments=(0.0, size, 0.0) if degree == 1 else (0.0, 0.0, size),
    )


PI = math.pi

TABLE: dict[str, Entry] = {
    "relu": Entry(
        _relu,
        _step,
        None,
        kinks=(0.0,),
        parity="even",
        moments=(1 / math.sqrt(2 * PI), 0.5, math.sqrt(1 / 4 - 1 / (2 * PI))),
    ),
    "tanh": Entry(_tanh, _sech_squared, lambda x: -2 * _tanh(x) * _sech_squared(x), parity="odd"),
    "erf": Entry(
        _erf,
        _erf_slope,
        lambda x: -2 * x * _erf_slope(x),
        parity="odd",
        moments=(0.0, 2 / math.sqrt(3 * PI), math.sqrt(2 / PI * math.asin(2 / 3) - 4 / (3 * PI))),
    ),
    "gelu": Entry(
        lambda x: x * _normal_cdf(x),
        lambda x: _normal_cdf(x) + x * _density(x),
        lambda x: (2 - x**2) * _density(x),
        parity="even",
        moments=(1 / (2 * math.sqrt(PI)), 0.5, math.sqrt(1 / 12 + 1 / (2 * math.sqrt(3) * PI) - 1 / (4 * PI))),
    ),
    "softplus": Entry(_softplus, _sigmoid, _sigmoid_slope, parity="even"),
    "sigmoid": Entry(_sigmoid, _sigmoid_slope, lambda x: _sigmoid_slope(x) * (_sigmoid(-x) - _sigmoid(x)), parity="odd"),
    "sin": Entry(
        _sin,
        _cos,
        lambda x: -_sin(x),
        parity="odd",
        moments=(0.0, math.exp(-0.5), math.sqrt(math.exp(-1) * (math.sinh(1) - 1))),
    ),
    "cos": Entry(
        _cos,
        lambda x: -_sin(x),
        lambda x: -_cos(x),
        parity="even",
        moments=(math.exp(-0.5), 0.0, math.sqrt(math.exp(-1) * (math.cosh(1) - 1))),
    ),
    "abs": Entry(
        lambda x: _numpy_of(x).abs(x),
        lambda x: _numpy_of(x).sign(x),
        None,
        kinks=(0.0,),
        parity="even",
        moments=(math.sqrt(2 / PI), 0.0, math.sqrt(1 - 2 / PI)),
    ),
    "square": Entry(lambda x: x**2, lambda x: 2 * x, lambda x: 0 * x + 2, parity="even", moments=(1.0, 0.0, math.sqrt(2))),
    "cube": Entry(lambda x: x**3, lambda x: 3 * x**2, lambda x: 6 * x, parity="odd", moments=(0.0, 3.0, math.sqrt(6))),
    "identity": Entry(lambda x: 1.0 * x, lambda x: 0 * x + 1, lambda x: 0 * x, parity="odd", moments=(0.0, 1.0, 0.0)),
    **{f"h{k}": _hermite_entry(k, 1 / math.sqrt(math.factorial(k))) for k in DEGREES},
    **{f"he{k}": _hermite_entry(k, 1.0) for k in DEGREES},
}
