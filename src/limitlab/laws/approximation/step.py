"""The step at which tangent features learn quadratic functions, N of the order of d (docs/theory/approximation.md, section 5).

Limit.    N, d -> infinity with N/d -> psi (`width_ratio`).
Result.   r_2 = int int mu(ds) mu(ds') / (1 + gamma (s + s')),                                                           (13)

          mu the law of the eigenvalues of sum_i w_i w_i^T: Marchenko and Pastur's with N/d = psi, an atom (1 - psi)_+ at 0 included.
Status.   Derived: the features of different neurons share directions, which the staircase's equivalent (10)-(12) leaves out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.models.activations import Activation, hermite
from limitlab.numerics.gaussian import norm
from limitlab.numerics.spectra import marchenko_pastur

__all__ = ["degree_two_step", "step_strength"]

Array = NDArray[np.float64]

NODES = 160


def degree_two_step(width_ratio: float, gamma: float = math.inf) -> float:
    """r_2 of tangent features with N = psi d neurons: the share of a quadratic form without trace that is not explained.

    Parameters
    ----------
    width_ratio
        psi = N/d.
    gamma
        Strength of the linear part of s' against all higher ones, `step_strength(activation)`; inf for a quadratic activation.

    Examples
    --------
    >>> round(degree_two_step(0.5, 1.7519383938841089), 9), degree_two_step(0.25)
    (0.536516464, 0.5625)
    """
    if not (width_ratio >= 0 and math.isfinite(width_ratio)):
        raise ValueError(f"width_ratio = {width_ratio!r} is not allowed: must be at least 0 and finite")
    if not gamma >= 0:
        raise ValueError(f"gamma = {gamma!r} is not allowed: must be at least 0, inf allowed")
    empty = max(1.0 - width_ratio, 0.0)
    if width_ratio == 0 or math.isinf(gamma):
        return empty**2
    s, mass = occupied(width_ratio)
    among = mass @ (1 / (1 + gamma * (s[:, None] + s))) @ mass
    return float(empty**2 + 2 * empty * (mass @ (1 / (1 + gamma * s))) + among)


def decoupled_step(width_ratio: float, gamma: float) -> float:
    """What the equivalent (10)-(12) says in the same limit: the positive root of gamma r^2 + (1 + 2 psi gamma - gamma) r = 1, eq. (13').

    >>> round(decoupled_step(0.5, 1.7519383938841089), 4)               # against 0.5365
    0.5222
    """
    if math.isinf(gamma):
        return max(1 - 2 * width_ratio, 0.0)
    middle = 1 + 2 * width_ratio * gamma - gamma
    return 2 / (middle + math.sqrt(middle**2 + 4 * gamma))


def occupied(width_ratio: float) -> tuple[Array, Array]:
    """Nodes and weights for the non-zero eigenvalues of sum_i w_i w_i^T per dimension; the weights add up to min(1, psi).

    The matrix is psi times the sample covariance of N vectors in d dimensions, of ratio 1/psi.

    >>> s, mass = occupied(0.5)
    >>> float(mass.sum().round(12)), float((mass @ s).round(12))
    (0.5, 0.5)
    """
    return marchenko_pastur.quadrature(1 / width_ratio, variance=width_ratio, count=NODES)


def step_strength(activation: Any) -> float:
    """gamma = g_1^2 / sum_{k >= 2} g_k^2, with g_k the Hermite coefficients of s'; inf where s' is linear.

    By g_k = sqrt(k + 1) s_{k+1}: 2 s_2^2 over E s'(Z)^2 - s_1^2 - 2 s_2^2.

    >>> round(step_strength("relu"), 7), step_strength("square")
    (1.7519384, inf)
    """
    from limitlab.laws.approximation.harmonics import slope_of

    chosen = Activation(activation)
    _, first, second = hermite(chosen, 2)
    whole = float(norm(lambda x: slope_of(chosen, x), kinks=chosen.kinks)) ** 2
    rest = whole - first**2 - 2 * second**2
    if rest <= 1e-13 * whole:
        if second == 0:
            raise ValueError(f"activation = {chosen.name!r} is not allowed: its tangent features are linear or constant")
        return math.inf
    return float(2 * second**2 / rest)
