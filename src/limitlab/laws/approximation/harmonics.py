"""Coefficients of an activation on the sphere in the polynomials of every degree (docs/theory/approximation.md, section 1).

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
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import Refused
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
"""A coefficient below this share of the whole function is a rounding error and counts as 0."""
LEFT_OVER = 1e-13
"""A remaining energy below this share of the whole energy is a rounding error and counts as 0."""


@dataclass(frozen=True)
class Harmonics:
    """Coefficients and energies of an activation for each degree.

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
        lambda_k^2 B_k and nu_k^2 B_k, computed without loss of digits where B_k is huge.
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
        """Return lambda_k^2 k (k + d - 2) B_k, the energy of the tangential part of the gradient for each degree (eq. 9)."""
        k = np.asarray(self.degrees, dtype=float)
        return np.asarray(self.levels * k * (k + self.dimension - 2))

    @cached_property
    def tail(self) -> float:
        """Return the energy of the activation in the degrees that are not in `degrees`."""
        return _left_over(self.energy, self.levels)

    @cached_property
    def radial_tail(self) -> float:
        """Return the energy of u s'(u) in the degrees that are not in `degrees`."""
        return _left_over(self.radial_energy, self.radial_levels)

    @cached_property
    def tangential_tail(self) -> float:
        """Return the energy of the tangential gradient in the degrees that are not in `degrees`.

        The energy of all degrees is E[(d - u^2) s'(u)^2].
        """
        return _left_over(self.dimension * self.slope_energy - self.radial_energy, self.tangential_levels)


def _left_over(whole: float, parts: Array) -> float:
    left = whole - float(parts.sum())
    return left if left > LEFT_OVER * whole else 0.0


def gegenbauer_coefficients(
    activation: Activation | str | Callable[[Any], Any], dimension: int, degrees: int | Sequence[int]
) -> Harmonics:
    """Return the coefficients of an activation in the Gegenbauer polynomials of the sphere in R^d.

    Parameters
    ----------
    activation
        A name or a function of arrays, with or without kinks. A derivative that is not defined in closed form is computed numerically.
    dimension
        d, at least 3.
    degrees
        The degrees k.

    Returns
    -------
    Harmonics
        `.coefficients` (lambda_k), `.radial` (nu_k), `.multiplicities` (B_k), `.energy` (E s^2), and quantities derived from them.

    Examples
    --------
    >>> relu = gegenbauer_coefficients("relu", 10, (0, 1, 2, 3))
    >>> relu.coefficients.round(6).tolist(), relu.multiplicities.tolist(), round(relu.energy, 12)
    ([0.409025, 0.158114, 0.037184, 0.0], [1.0, 10.0, 54.0, 210.0], 0.5)
    """
    degree_tuple = tuple(checked_degree(k) for k in np.atleast_1d(np.asarray(degrees)).tolist())
    if not degree_tuple:
        raise Refused("degrees = () is not allowed: give at least one degree")
    return _harmonics(Activation(activation), checked_dimension(dimension), degree_tuple)


@lru_cache(maxsize=128)
def _harmonics(activation: Activation, d: int, degrees: tuple[int, ...]) -> Harmonics:
    columns = list(degrees)

    def radial_slope(u: Array) -> Array:
        return np.asarray(u * slope_of(activation, u))

    plain, energy = orthonormal_coefficients(activation, d, max(degrees), activation.kinks)
    radial, radial_energy = orthonormal_coefficients(radial_slope, d, max(degrees), activation.kinks)
    plain, radial = _cleaned(plain[columns], energy), _cleaned(radial[columns], radial_energy)
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
    """Return the derivative of an activation, in closed form if there is one and from its values otherwise."""
    try:
        return np.broadcast_to(np.asarray(activation.derivative(u), dtype=float), u.shape)
    except ValueError:
        return numerical_slope(activation, u, activation.kinks)


def _cleaned(coefficients: Array, energy: float) -> Array:
    """Return the coefficients with rounding errors replaced by 0, so that an absent degree has coefficient 0."""
    return np.where(np.abs(coefficients) > NOISE * math.sqrt(energy), coefficients, 0.0)


# -- The derivative of a function that is smooth between kinks, from its values ---------------------------------------

WIDTH = 0.5  # length of the interval on which the polynomial of a point interpolates
NODES = 17


def numerical_slope(f: Callable[[Array], Any], x: ArrayLike, kinks: Sequence[float] = ()) -> Array:
    """Return f'(x) at every point, from values of f only.

    The derivative is that of the polynomial through f at Chebyshev points of an interval that contains x and has no kink inside. For a
    function that is analytic in a strip of width about 1 the error is a rounding error, about 1e-12 of the size of f. At a kink the result
    is the derivative on the right side.

    Parameters
    ----------
    f
        Function of a flat array of points that returns one value per point.
    x
        Points.
    kinks
        Points at which f or its derivative jumps.

    Examples
    --------
    >>> bool(abs(numerical_slope(np.tanh, [0.3])[0] - (1 - np.tanh(0.3) ** 2)) < 1e-12)
    True
    >>> numerical_slope(np.abs, [-0.1, 0.2], kinks=(0.0,)).round(9)
    array([-1.,  1.])
    """
    points = np.asarray(x, dtype=float)
    edges = np.concatenate([[-np.inf], np.sort(np.asarray(kinks, dtype=float)), [np.inf]])
    piece = np.searchsorted(edges, points, side="right")
    left, right = edges[piece - 1], edges[piece]
    low = np.maximum(points - WIDTH / 2, left)
    high = np.minimum(low + WIDTH, right)
    low = np.maximum(high - WIDTH, left)
    nodes, weights, differentiate = _rule()
    middle, half = (low + high) / 2, (high - low) / 2
    grid = middle[..., None] + half[..., None] * nodes
    values = np.asarray(f(grid.ravel()), dtype=float).reshape(grid.shape)
    slopes = np.einsum("ij,...j->...i", differentiate, values)  # derivatives at the nodes, in units of half the interval
    return _interpolated(nodes, weights, slopes, (points - middle) / half) / half


def _interpolated(nodes: Array, weights: Array, values: Array, at: Array) -> Array:
    """Return barycentric interpolation, one point per row of values."""
    apart = at[..., None] - nodes
    hit = apart == 0
    shares = weights / np.where(hit, 1.0, apart)
    smooth = (shares * values).sum(axis=-1) / shares.sum(axis=-1)
    return np.asarray(np.where(hit.any(axis=-1), (values * hit).sum(axis=-1), smooth))


@lru_cache(maxsize=1)
def _rule() -> tuple[Array, Array, Array]:
    """Return Chebyshev points inside (-1, 1), their weights, and the differentiation matrix.

    The ends of the interval are not among the points, so that f is not evaluated at a jump.
    """
    angle = np.pi * (np.arange(NODES) + 0.5) / NODES
    nodes, weights = np.cos(angle), (-1.0) ** np.arange(NODES) * np.sin(angle)
    apart = nodes[:, None] - nodes
    np.fill_diagonal(apart, 1.0)
    matrix = weights / weights[:, None] / apart
    np.fill_diagonal(matrix, 0.0)
    np.fill_diagonal(matrix, -matrix.sum(axis=1))
    return nodes, np.asarray(weights), np.asarray(matrix)
