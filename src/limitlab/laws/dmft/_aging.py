"""The aging equations of random Gaussian equations on a sphere, for the threshold, the plateau below it and slow growth.

A network with frozen second layer a_j = gamma sqrt(m) that is trained on pure noise becomes, for large m, a system of alpha d random
equations for one unit vector with covariance htilde(q) = h(q) - h(0) - h'(0) q. Only h0, h1, h2 = htilde(1), htilde'(1), htilde''(1)
enter its long-time limit, if ageing has one effective temperature (weak ergodicity breaking). With the fast response chi, the
slope xhat of the slow part, S = gamma^2 h1 chi and CA the mean squared residual,

    CA = tau^2 / (1 + S + xhat gamma^2 h0)^2 + gamma^2 h0 / [(1 + S)(1 + S + xhat gamma^2 h0)]                         (1.1)
    xhat = 1 / (chi alpha gamma^2 CA h1) - chi                                                                           (1.2)
    1 = alpha S^2 / (1 + S)^2 + alpha gamma^2 CA h2 chi^2                                                              (1.3)

Together they are equation (1) of docs/theory/interpolation.md. Other numbers in brackets are equation numbers of that page. The ansatz is
a conjecture. Compared with the two-time equations, it is right within a per cent at small alpha and far below the threshold. Elsewhere its
values are too low, by up to 9 % for the threshold and by more for the plateau near the threshold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab._core.declaration import Status
from limitlab.errors import ConvergenceError, Refused
from limitlab.laws import Law, parameter
from limitlab.laws.dmft._finite.kernels import kernels_of
from limitlab.models.activations import Activation

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Reduced:
    """The numbers htilde(1), htilde'(1), htilde''(1) of a kernel without its constant and linear parts.

    >>> Reduced.of((0.3, 0.5, 0, 1.0))
    Reduced(h0=1.0, h1=3.0, h2=6.0)
    """

    h0: float
    h1: float
    h2: float

    @classmethod
    def of(cls, kernel: Sequence[float]) -> Reduced:
        """Return the numbers for the coefficients of the kernel, from degree 0."""
        c = np.array(kernel, dtype=float)
        k = np.arange(c.size)
        c[:2] = 0.0
        return cls(float(c.sum()), float(k @ c), float((k * (k - 1)) @ c))

    @property
    def threshold_energy(self) -> float:
        """The energy E_th of the spherical model with covariance d htilde; gamma has the slope tau sqrt(alpha) E_th at the start, eq. (4).

        >>> round(float(Reduced.of((0, 0, 1.0)).threshold_energy), 6)
        1.414214
        """
        return (self.h1 + self.h0 * (self.h2 / self.h1 - 1)) / np.sqrt(self.h2)


def threshold(ratio: ArrayLike, noise: ArrayLike, h0: ArrayLike, h1: ArrayLike, h2: ArrayLike) -> Floats:
    """Return gamma_GF, eq. (2), the scale of the second layer above which gradient flow fits pure noise, or inf for ratio >= 1.

    The arguments broadcast.

    >>> round(float(threshold(0.3, 1.0, 1.0, 2.0, 2.0)) ** 2, 9), round(0.3 / (2 - 0.3), 9)  # htilde = q^2, tau = 1
    (0.176470588, 0.176470588)
    """
    alpha, tau, h0, h1, h2 = np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in (ratio, noise, h0, h1, h2)))
    below = alpha < 1
    safe = np.where(below, alpha, 0.5)
    b = h1 + (h2 / ((1 - safe) * h1) - 1) * h0
    square = tau**2 / (b**2 * ((1 - safe) / (safe * h2) - h0 / (h1 * b)))
    return np.where(below, np.sqrt(square), np.inf)


@dataclass(frozen=True)
class Plateau:
    """Response chi, slope xhat, mean squared residual and speed of the second layer at late times and fixed second layer."""

    response: float
    slope: float
    residual: float
    growth: float


def plateau(gamma: float, ratio: float, noise: float, reduced: Reduced) -> Plateau:
    """Return the root of (1) below the threshold. Above the threshold the residual is 0.

    >>> state = plateau(0.252050415, 0.3, 1.0, Reduced.of((0, 0, 1.0)))
    >>> round(state.response, 5), round(state.residual / 2, 7)
    (12.66925, 0.0723948)
    """
    limit = float(threshold(ratio, noise, reduced.h0, reduced.h1, reduced.h2))
    if gamma >= limit:
        return Plateau(np.inf, np.inf, 0.0, 0.0)
    if gamma == 0:
        return Plateau(np.inf, 0.0, noise**2, 0.0)
    from scipy.optimize import brentq

    def mismatch(log_chi: Any) -> Any:  # NaN if the residual would not be positive
        chi = np.exp(log_chi)
        residual, slope = _state(chi, gamma, ratio, reduced)
        weak = 1 + gamma**2 * reduced.h1 * chi
        full = weak + slope * gamma**2 * reduced.h0
        return noise**2 / full**2 + gamma**2 * reduced.h0 / (weak * full) - np.where(residual > 0, residual, np.nan)

    grid = np.linspace(-8.0, 24.0, 641)
    values = mismatch(grid)
    signs = np.flatnonzero(np.sign(values[:-1]) * np.sign(values[1:]) < 0)
    roots = [float(brentq(mismatch, grid[i], grid[i + 1], xtol=1e-14, rtol=1e-14)) for i in signs]
    roots = [root for root in roots if abs(mismatch(root)) < 1e-6 * noise**2]  # a sign change at a pole is not a root
    if not roots:
        raise ConvergenceError(
            f"the aging equations have no root at gamma = {gamma:g} (threshold {limit:g}), ratio = {ratio:g}"
        )
    chi = float(np.exp(roots[0]))
    residual, slope = _state(chi, gamma, ratio, reduced)
    weak = 1 + gamma**2 * reduced.h1 * chi
    growth = ratio * gamma * (residual * (reduced.h1 * chi + slope * reduced.h0) - reduced.h0 / weak)
    return Plateau(chi, slope, residual, growth)


def _state(chi: Any, gamma: float, ratio: float, reduced: Reduced) -> tuple[Any, Any]:
    """Return the residual from (1.3) and the slope from (1.2)."""
    s = gamma**2 * reduced.h1 * chi
    residual = (1 - ratio * (s / (1 + s)) ** 2) / (ratio * gamma**2 * reduced.h2 * chi**2)
    return residual, 1 / (chi * ratio * gamma**2 * residual * reduced.h1) - chi


# -- parameters of the laws of training on pure noise, for a wide network with centred neurons and n = alpha m d samples ----


class PureNoise(Law):
    """Parameters of pure-noise training in the limit of large width."""

    status: ClassVar[Status] = "conjecture"
    references = ("montanari2025dynamical",)

    samples_per_weight: float = parameter(0.3, above=0, scale="log", count="size * value")
    noise: float = parameter(1.0, note="labels are pure noise", least=0)
    kernel: tuple[float, ...] | None = parameter(None, note="None: of the activation, or q^2 if that is None too")
    activation: Activation | None = parameter(None, note="in place of a kernel")

    @model_validator(mode="after")
    def _nonlinear(self) -> Self:
        coefficients = self.coefficients()
        if not coefficients:
            raise Refused(
                "kernel = () is not allowed: give at least the coefficients of degree 0 to 2, such as (0, 0.5, 0.5)"
            )
        if min(coefficients) < 0:
            raise Refused(
                f"kernel = {coefficients} is not allowed: coefficients of h must be at least 0 (they are squares c_k^2)"
            )
        if coefficients[0] > 1e-12:
            raise Refused(
                f"kernel = {coefficients} is not allowed: h(0) must be 0, otherwise the output has a mean of order sqrt(m)"
            )
        if sum(coefficients[2:]) == 0:
            raise Refused(
                f"kernel = {coefficients} is not allowed: a part of degree 2 or more is required, because linear neurons have no transition"
            )
        return self

    def coefficients(self) -> tuple[float, ...]:
        """Return the coefficients of the kernel, from the activation or from `kernel`."""
        if self.kernel is not None and self.activation is not None:
            raise Refused("kernel is not allowed together with activation: give one of them")
        if self.activation is not None:
            return kernels_of(self.activation, None).kernel
        return (0.0, 0.0, 1.0) if self.kernel is None else self.kernel

    def reduced(self) -> Reduced:
        """Return the three numbers of the kernel that enter the long-time limit."""
        return Reduced.of(self.coefficients())
