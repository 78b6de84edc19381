"""Learning of quadratic functions by tangent features at N of the order of d (docs/theory/approximation.md, section 5).

Limit.    N, d -> infinity with N/d -> psi (`width_ratio`).
Result.   r_2 = int int mu(ds) mu(ds') / (1 + gamma (s + s')),                                                           (13)

          where mu is the law of the eigenvalues of sum_i w_i w_i^T. It is Marchenko and Pastur's law with N/d = psi, including an atom
          (1 - psi)_+ at 0.
          The inner integral is c m(c + s), where c = 1/gamma and m(x) = int mu(ds') / (x + s') is the positive root of

              x m^2 + (x + psi - 1) m = 1.                                                                               (13a)

          The outer integral is elliptic. `marchenko_pastur.log_quadrature` evaluates it to rounding error at every psi and gamma.
Status.   Derived. The features of different neurons share directions, which the equivalent (10)-(12) does not include.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab._core.checks import number
from limitlab.errors import Refused
from limitlab.models.activations import Activation, hermite
from limitlab.numerics.gaussian import norm
from limitlab.numerics.spectra import marchenko_pastur

__all__ = ["degree_two_step", "step_strength"]

Array = NDArray[np.float64]


def degree_two_step(width_ratio: float, gamma: float = math.inf) -> float:
    """Return r_2 of tangent features with N = psi d neurons, the unexplained share of a quadratic form without trace.

    The relative error is below 4e-15 for every `gamma` and every `width_ratio` up to 1e300, also next to width_ratio = 1, where the
    smallest eigenvalues tend to 0. The largest relative error in 2769 comparisons with 50-digit values is 1e-15. The comparisons cover
    width ratios from 1e-3 to 1e3, with distances from 1 down to 1e-15, and gamma from 1e-12 to 1e15. Results below 1e-300 lose digits
    because they are close to the smallest floating-point number.

    Parameters
    ----------
    width_ratio
        psi = N/d.
    gamma
        Strength of the linear part of s' relative to all higher parts, `step_strength(activation)`; inf for a quadratic activation.

    Examples
    --------
    >>> round(degree_two_step(0.5, 1.7519383938841089), 9), degree_two_step(0.25)
    (0.536516464, 0.5625)
    >>> f"{degree_two_step(1.0, 1e4):.10e}"
    '3.2166609465e-04'
    """
    number("width_ratio", width_ratio, least=0)
    number("gamma", gamma, least=0, infinite=True)
    psi, strength = float(width_ratio), float(gamma)
    empty = max(1.0 - psi, 0.0)
    if psi == 0 or math.isinf(strength):
        return empty**2
    if strength == 0:
        return 1.0
    root = 1 + math.sqrt(psi)  # root^2 is the upper edge, the unit of s
    # 1 and gamma root^2 are both divided by the larger of the two to avoid overflow
    white, coloured = min(1 / strength / root / root, 1.0), min(strength * root * root, 1.0)
    s, mass = marchenko_pastur.log_quadrature(psi, 1 / root / root, smallest=white)

    def inner(s: Array) -> Array:
        """Return c m(c + s) by the form of the root of (13a) in which no terms cancel."""
        tilt = (psi - 1) / root / root  # the lower edge is its square
        linear = white + coloured * (s + tilt)
        radical = np.sqrt(white + coloured * (s + tilt**2)) * np.sqrt(white + coloured * (s + 1))
        conjugate = coloured * (2 / root) ** 2 * (white + coloured * s) / (radical + np.abs(linear))
        return 2 * white / np.where(linear > 0, linear + radical, conjugate)

    return min(float((psi * mass) @ inner(s) + empty * inner(np.zeros(1))[0]), 1.0)


def decoupled_step(width_ratio: float, gamma: float) -> float:
    """Return r_2 of the equivalent (10)-(12) in the limit N/d -> `width_ratio`, eq. (13').

    The value is the positive root of gamma r^2 + (1 + 2 psi gamma - gamma) r = 1.

    >>> round(decoupled_step(0.5, 1.7519383938841089), 4)               # against 0.5365
    0.5222
    """
    if math.isinf(gamma):
        return max(1 - 2 * width_ratio, 0.0)
    middle = 1 + (2 * width_ratio - 1) * gamma
    radical = math.hypot(middle, 2 * math.sqrt(gamma))
    return 2 / (middle + radical) if middle > 0 else (radical - middle) / 2 / gamma


def step_strength(activation: Any) -> float:
    """Return gamma = g_1^2 / sum_{k >= 2} g_k^2, with g_k the Hermite coefficients of s'; inf if s' is linear.

    Here s is the activation with Hermite coefficients s_k. Since g_k = sqrt(k + 1) s_{k+1}, gamma is 2 s_2^2 over
    E s'(Z)^2 - s_1^2 - 2 s_2^2.

    >>> round(step_strength("relu"), 7), step_strength("square")
    (1.7519384, inf)
    """
    from limitlab.laws.approximation.harmonics import slope_of

    function = Activation(activation)
    _, first, second = hermite(function, 2)
    whole = float(norm(lambda x: slope_of(function, x), kinks=function.kinks)) ** 2
    rest = whole - first**2 - 2 * second**2
    if rest <= 1e-13 * whole:
        if second == 0:
            raise Refused(f"activation = {function.name!r} is not allowed: its tangent features are linear or constant")
        return math.inf
    return float(2 * second**2 / rest)
