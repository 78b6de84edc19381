"""The three power series through which activation and target enter the dynamics of a two-layer network.

With sigma = sum_k c_k h_k and phi = sum_k b_k h_k in the orthonormal Hermite polynomials h_k, and unit vectors w, w', w_*,

    E sigma(<w,x>) sigma(<w',x>) = h(<w,w'>),    h(q) = sum_k c_k^2 q^k,
    E sigma(<w,x>) phi(<w_*,x>) = phihat(<w,w_*>),   phihat(v) = sum_k c_k b_k v^k,      ||phi||^2 = sum_k b_k^2.

Section "Kernels" of docs/theory/two_layer_dynamics.md.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import Refused
from limitlab.models.activations import Activation, hermite

Floats = NDArray[np.float64]

DEGREE = 60
"""Degree at which the series of an activation is cut."""

TAIL = 1e-3
"""Largest share of h''(1) in the last quarter of the series. With a larger share h''(1) may be infinite."""


@dataclass(frozen=True)
class Kernels:
    """Coefficients, from degree 0, of the kernels neuron-neuron and neuron-target, and the squared norm of the target.

    >>> Kernels((0.0, 0.5, 0.5), (0.0, 0.5), 1.0).h(0.5)
    np.float64(0.375)
    """

    kernel: tuple[float, ...]
    target: tuple[float, ...]
    target_norm: float

    def h(self, q: ArrayLike, order: int = 0) -> Floats:
        """Return the kernel of two neurons, or its derivative of order `order`.

        >>> Kernels((0.0, 0.5, 0.5), (), 0.0).h(1.0, order=2)
        np.float64(1.0)
        """
        return _series(self.kernel, q, order)

    def phihat(self, v: ArrayLike, order: int = 0) -> Floats:
        """Return phihat or its derivative of order `order`."""
        return _series(self.target, v, order)

    @property
    def padded(self) -> tuple[Floats, Floats]:
        """Both coefficient arrays, never empty."""
        return np.array(self.kernel or (0.0,)), np.array(self.target or (0.0,))


def _series(coefficients: tuple[float, ...], x: ArrayLike, order: int) -> Floats:
    return np.polynomial.polynomial.polyval(np.asarray(x, dtype=float), _derivative(coefficients, order))


@functools.lru_cache(maxsize=256)
def _derivative(coefficients: tuple[float, ...], order: int) -> Floats:
    """Return the coefficients of a derivative of a power series."""
    return np.polynomial.polynomial.polyder(np.array(coefficients or (0.0,), dtype=float), order)


def checked_kernels(kernel: Sequence[float], target: Sequence[float], target_norm: float | None) -> Kernels:
    """Return the kernels with these coefficients, where the squared norm of the target is by default the least possible one.

    >>> checked_kernels((0, 0.5), (0, 0.5), None).target_norm
    0.5
    """
    c, s = tuple(float(x) for x in kernel), tuple(float(x) for x in target)
    if not c or min(c) < 0:
        raise Refused(f"kernel = {c} is not allowed: coefficients of h must be at least 0 (they are squares c_k^2)")
    square = dict(enumerate(c))
    orphans = [k for k, value in enumerate(s) if value != 0 and square.get(k, 0.0) == 0]
    if orphans:
        raise Refused(
            f"target = {s} is not allowed: its coefficient of degree {orphans[0]} must be 0, because the kernel has none of that degree"
        )
    least = sum(value**2 / square[k] for k, value in enumerate(s) if value != 0)
    norm = least if target_norm is None else float(target_norm)
    if norm < least * (1 - 1e-12):
        raise Refused(
            f"target_norm = {norm:g} is not allowed: must be at least {least:g}, the norm that the coefficients of target imply"
        )
    return Kernels(c, s, norm)


@functools.lru_cache(maxsize=64)
def kernels_of(activation: Activation, target_function: Activation | None) -> Kernels:
    """Return the kernels of an activation and a target function (None for pure noise), from their Hermite coefficients.

    >>> kernels = kernels_of(Activation("erf"), None)
    >>> bool(abs(kernels.h(1.0) - 2 / np.pi * np.arcsin(2 / 3)) < 1e-9)
    True
    """
    c = hermite(activation, DEGREE)
    degrees = np.arange(DEGREE + 1)
    curvature = degrees * (degrees - 1) * c**2
    tail = curvature[3 * DEGREE // 4 :].sum()
    if tail > TAIL * max(curvature.sum(), 1e-300):
        raise Refused(
            f"activation = {activation.name!r} is not allowed: too rough, h''(1) = sum k(k-1) c_k^2 does not converge; "
            "use a smoother one, such as 'tanh' or 'erf'"
        )
    if target_function is None:
        return Kernels(_trimmed(c**2), (), 0.0)
    b = hermite(target_function, DEGREE)
    from limitlab.numerics.gaussian import expectation

    norm = float(expectation(lambda x: target_function(x) ** 2, kinks=target_function.kinks or None))
    return Kernels(_trimmed(c**2), _trimmed(c * b), norm)


def _trimmed(coefficients: Floats) -> tuple[float, ...]:
    """Return the coefficients without trailing ones that are rounding errors."""
    keep = np.flatnonzero(np.abs(coefficients) > 1e-14 * max(float(np.abs(coefficients).max()), 1e-300))
    return tuple(float(x) for x in coefficients[: keep[-1] + 1]) if keep.size else (0.0,)
