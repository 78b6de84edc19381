"""An activation on the sphere: its share in the polynomials of every degree (docs/theory/approximation.md, section 1).

Setting.  x uniform on the sphere of radius sqrt(d), w a unit vector, u = <w, x>, t = u/sqrt(d).
Result.   lambda_k = E[s(u) Q_k(t)], nu_k = E[u s'(u) Q_k(t)], and s(u) = sum_k lambda_k B_k Q_k(t).                    (4)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import Refused
from limitlab.laws.approximation._slopes import numerical_slope
from limitlab.models.activations import Activation
from limitlab.numerics.sphere import (
    checked_degree,
    checked_dimension,
    coordinate_rule,
    harmonic_dimension,
    log_harmonic_dimension,
    orthonormal_coefficients,
)

__all__ = ["gegenbauer_coefficients"]

Array = NDArray[np.float64]

NOISE = 2e-15
"""A coefficient that is this share of the whole function is rounding: it counts as 0."""
LEFT_OVER = 1e-13
"""A left-over energy that is this share of the whole is rounding as well."""


@dataclass(frozen=True)
class Harmonics:
    """What an activation is made of, degree by degree.

    Attributes
    ----------
    degrees
        The degrees k.
    coefficients
        lambda_k = E[s(u) Q_k(t)].
    radial
        nu_k = E[u s'(u) Q_k(t)].
    multiplicities
        B_k, the number of harmonics of each degree (inf beyond the largest float).
    energy
        E s(u)^2, which is the sum of all lambda_k^2 B_k.
    radial_energy, slope_energy
        E[u^2 s'(u)^2] and E s'(u)^2.
    levels, radial_levels
        lambda_k^2 B_k and nu_k^2 B_k, which keep their digits where B_k is huge.
    """

    dimension: int
    degrees: tuple[int, ...]
    coefficients: Array
    radial: Array
    multiplicities: Array
    energy: float
    radial_energy: float
    slope_energy: float
    levels: Array
    radial_levels: Array
    products: Array
    """lambda_k nu_k B_k."""

    @cached_property
    def tangential_levels(self) -> Array:
        """lambda_k^2 k (k + d - 2) B_k: the energy of the tangential part of the gradient, degree by degree (eq. 9)."""
        k = np.asarray(self.degrees, dtype=float)
        return np.asarray(self.levels * k * (k + self.dimension - 2))

    @cached_property
    def tail(self) -> float:
        """Energy in the degrees that are not listed."""
        return _left_over(self.energy, self.levels)

    @cached_property
    def radial_tail(self) -> float:
        """The same of u s'(u)."""
        return _left_over(self.radial_energy, self.radial_levels)

    @cached_property
    def tangential_tail(self) -> float:
        """The same of the tangential gradient, whose whole energy is E[(d - u^2) s'(u)^2]."""
        return _left_over(self.dimension * self.slope_energy - self.radial_energy, self.tangential_levels)


def _left_over(whole: float, parts: Array) -> float:
    left = whole - float(parts.sum())
    return left if left > LEFT_OVER * whole else 0.0


def gegenbauer_coefficients(
    activation: Activation | str | Callable[[Any], Any], dimension: int, degrees: int | Sequence[int]
) -> Harmonics:
    """Coefficients of an activation in the Gegenbauer polynomials of the sphere in R^d.

    Parameters
    ----------
    activation
        A name or a function of arrays, with or without kinks; its derivative is found numerically where it is not known.
    dimension
        d, at least 3.
    degrees
        The degrees wanted.

    Returns
    -------
    Harmonics
        `.coefficients` (lambda_k), `.radial` (nu_k), `.multiplicities` (B_k), `.energy` (E s^2), and what follows from them.

    Examples
    --------
    >>> found = gegenbauer_coefficients("relu", 10, (0, 1, 2, 3))
    >>> found.coefficients.round(6).tolist(), found.multiplicities.tolist(), round(found.energy, 12)
    ([0.409025, 0.158114, 0.037184, 0.0], [1.0, 10.0, 54.0, 210.0], 0.5)
    """
    wanted = tuple(checked_degree(k) for k in np.atleast_1d(np.asarray(degrees)).tolist())
    if not wanted:
        raise Refused("degrees = () is not allowed: give at least one degree")
    return _harmonics(Activation(activation), checked_dimension(dimension), wanted)


@lru_cache(maxsize=128)
def _harmonics(activation: Activation, d: int, degrees: tuple[int, ...]) -> Harmonics:
    chosen = list(degrees)

    def radial_slope(u: Array) -> Array:
        return np.asarray(u * slope_of(activation, u))

    plain, energy = orthonormal_coefficients(activation, d, max(degrees), activation.kinks)
    radial, radial_energy = orthonormal_coefficients(radial_slope, d, max(degrees), activation.kinks)
    plain, radial = _cleaned(plain[chosen], energy), _cleaned(radial[chosen], radial_energy)
    shrink = np.exp([-log_harmonic_dimension(d, k) / 2 for k in degrees])  # Q_k = q_k / sqrt(B_k)
    u, weights = coordinate_rule(d, activation.kinks)
    return Harmonics(
        dimension=d,
        degrees=degrees,
        coefficients=plain * shrink,
        radial=radial * shrink,
        multiplicities=np.array([harmonic_dimension(d, k) for k in degrees]),
        energy=energy,
        radial_energy=radial_energy,
        slope_energy=float(weights @ slope_of(activation, u) ** 2),
        levels=plain**2,
        radial_levels=radial**2,
        products=plain * radial,
    )


def slope_of(activation: Activation, u: Array) -> Array:
    """The derivative of an activation: its own where it is known, else from its values."""
    try:
        return np.broadcast_to(np.asarray(activation.derivative(u), dtype=float), u.shape)
    except ValueError:
        return numerical_slope(activation, u, activation.kinks)


def _cleaned(coefficients: Array, energy: float) -> Array:
    """Coefficients without those that are rounding, so that a degree that is absent has none."""
    return np.where(np.abs(coefficients) > NOISE * math.sqrt(energy), coefficients, 0.0)
