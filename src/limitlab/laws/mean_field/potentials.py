"""The two potentials of a mean-field network, between a neuron and the target and between two neurons.

For neurons sigma(<theta, x>) on Gaussian inputs x ~ N(0, I) and a target phi(<theta*, x>),

    V(theta) = -E phi(<theta*, x>) sigma(<theta, x>),     U(theta, theta') = E sigma(<theta, x>) sigma(<theta', x>),

Both are functions of three inner products (docs/theory/mean_field.md, eqs. 2-4). Three activations have closed forms. Quadrature applies to
every activation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import Refused
from limitlab.models.activations import Activation
from limitlab.numerics.gaussian import expectation, pair_expectation

__all__ = ["neuron_interaction"]

Array = NDArray[np.float64]


def neuron_interaction(
    first: ArrayLike, second: ArrayLike, activation: Any = "erf", other: Any = None, closed_form: bool = True
) -> Array:
    """Return U = E sigma(<first, x>) other(<second, x>) for x ~ N(0, I), eqs. (3-4).

    Parameters
    ----------
    first, second
        Weights of the two neurons, in R^D along the last axis, or plain numbers (D = 1). They broadcast.
    activation, other
        Activation of the first neuron, and of the second neuron if it differs (for example, if the second is a target).
    closed_form
        Whether to use the closed form for "erf", "identity" and "square". Otherwise quadrature is used, as for every other activation.

    Examples
    --------
    >>> round(float(neuron_interaction(0.7, -1.3)), 13)
    -0.4241289551703
    >>> a, b = [0.3, 1.0], [0.5, -0.2]
    >>> bool(abs(neuron_interaction(a, b, "square") - neuron_interaction(a, b, "square", closed_form=False)) < 1e-11)
    True
    """
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    a, b = (array[None] if array.ndim == 0 else array for array in (a, b))
    if a.shape[-1] != b.shape[-1]:
        raise Refused(f"the last axes of first and second must have the same length; got {a.shape[-1]} and {b.shape[-1]}")
    q1, q2, inner = (a**2).sum(axis=-1), (b**2).sum(axis=-1), (a * b).sum(axis=-1)
    sigma = Activation(activation)
    target = sigma if other is None else Activation(other)
    if closed_form and sigma == target and sigma.name in CLOSED:
        return np.asarray(CLOSED[sigma.name](q1, q2, inner))[()]
    q1, q2, inner = np.broadcast_arrays(q1, q2, inner)
    averages = [_pair(sigma, target, *numbers) for numbers in zip(q1.ravel(), q2.ravel(), inner.ravel(), strict=True)]
    return np.reshape(averages, q1.shape)[()]


def _erf(q1: Array, q2: Array, inner: Array) -> Array:
    return 2 / math.pi * np.arcsin(2 * inner / np.sqrt((1 + 2 * q1) * (1 + 2 * q2)))


def _linear(q1: Array, q2: Array, inner: Array) -> Array:
    return inner


def _square(q1: Array, q2: Array, inner: Array) -> Array:
    return q1 * q2 + 2 * inner**2


CLOSED = {"erf": _erf, "identity": _linear, "square": _square}
"""U as a function of the two squared norms and the inner product, by the name of the activation."""


def _pair(sigma: Activation, target: Activation, q1: float, q2: float, inner: float) -> float:
    """Return E sigma(X) target(Y) for a Gaussian pair of variances q1, q2 and covariance `inner`."""
    if q1 * q2 == 0:  # one of the neurons is constant
        return float(expectation(sigma, std=math.sqrt(q1)) * expectation(target, std=math.sqrt(q2)))
    correlation = float(np.clip(inner / math.sqrt(q1 * q2), -1, 1))
    s1, s2 = math.sqrt(q1), math.sqrt(q2)
    places = tuple(kink / s1 for kink in sigma.kinks), tuple(kink / s2 for kink in target.kinks)
    return float(pair_expectation(lambda x, y: sigma(s1 * x) * target(s2 * y), correlation, kinks=places))


def erf_slope(a: ArrayLike, b: ArrayLike) -> Array:
    """Return dU/da for two erf neurons of one weight each, eq. (4).

    >>> step = 1e-6
    >>> quotient = (neuron_interaction(0.7 + step, -1.3) - neuron_interaction(0.7 - step, -1.3)) / (2 * step)
    >>> bool(abs(erf_slope(0.7, -1.3) - quotient) < 1e-9)
    True
    """
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    return np.asarray(4 / math.pi * y / ((1 + 2 * x**2) * np.sqrt(1 + 2 * x**2 + 2 * y**2)))
