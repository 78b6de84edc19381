"""Tokens on the circle, with densities to draw them from and their exact velocities in O(n m) operations.

With angles theta and K(t) = exp(beta (cos t - 1)), W(t) = -sin(t) K(t), the velocity at theta is the ratio of the means of W and K
over all tokens (docs/theory/attention.md, eq. 14). The Fourier coefficients of both kernels are Bessel functions that fall faster
than exponentially beyond k ~ sqrt(beta). The first m harmonics of the tokens (`harmonics`) therefore determine the velocity to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.numerics.ode import follow, runge_kutta
from limitlab.numerics.special import von_mises_coefficients
from limitlab.numerics.sphere_flow import checked_times

Array = NDArray[Any]

STILL = 1e-15
"""Tokens are at rest if one step changes every angle by at most this amount."""

Coefficients = Sequence[tuple[float, float]]
"""Pairs (a_k, b_k), k = 1, 2, ..., of the density (1 + sum a_k cos k theta + b_k sin k theta) / 2 pi."""


def harmonics(beta: float) -> int:
    """Return the number of harmonics after which the Fourier coefficients of the kernels are below rounding.

    >>> harmonics(4.0)
    28
    """
    return int(np.ceil(10 + 9 * np.sqrt(beta)))


# -- particles --------------------------------------------------------------------------------------------------------


def angular_velocity(angles: Array, beta: float, normalised: bool = True) -> Array:
    """Return the velocity of every token, exact to rounding, from the first m harmonics of the tokens in O(n m) operations.

    >>> angular_velocity(np.array([0.0, np.pi / 2]), 0.0).round(12)
    array([ 0.5, -0.5])
    """
    from limitlab.models.attention._compiled import circle_velocity

    even, odd = von_mises_coefficients(beta, harmonics(beta))
    theta = np.ascontiguousarray(angles, dtype=float)
    out = np.empty_like(theta)
    circle_velocity(theta, even, odd, normalised, 1.0 if normalised else float(np.exp(beta)), out)
    return out


def circle_flow(angles: ArrayLike, beta: float, times: ArrayLike, *, normalised: bool = True, step: float = 0.05) -> Array:
    """Return the angles of tokens on the circle over time, shape (times, n), by the Runge-Kutta method of order 4.

    >>> circle_flow([0.0, 1.0], 1.0, [0.0, 20.0])[1].round(6)
    array([0.5, 0.5])
    """
    grid, theta = checked_times(times), np.asarray(angles, dtype=float)
    longest = step if normalised else step * min(1.0, 2 * float(np.exp(-beta)))  # speeds of up to e^beta
    advance = runge_kutta(lambda _, y: angular_velocity(y, beta, normalised))
    out = np.array(list(follow(advance, theta, grid, longest, lambda before, after: np.abs(after - before).max() <= STILL)))
    return out if np.ndim(times) else np.asarray(out[0])


# -- densities --------------------------------------------------------------------------------------------------------


def density_values(density: Coefficients, theta: ArrayLike) -> Array:
    """Return the density at angles.

    >>> float(2 * np.pi * density_values([(0.5, 0.0)], 0.0))
    1.5
    """
    t = np.asarray(theta, dtype=float)
    total = np.ones_like(t)
    for k, (a, b) in enumerate(density, start=1):
        total += a * np.cos(k * t) + b * np.sin(k * t)
    return np.asarray(total / (2 * np.pi))


def density_quantiles(density: Coefficients, levels: ArrayLike) -> Array:
    """Return the angles in [0, 2 pi] below which the density has the masses `levels`.

    >>> density_quantiles([(0.0, 0.0)], [0.25]).round(12) / np.pi
    array([0.5])
    """
    from limitlab.numerics.roots import bracketed_root

    u = np.asarray(levels, dtype=float)

    return np.asarray(bracketed_root(lambda t: density_masses(density, t) - u, np.zeros_like(u), np.full_like(u, 2 * np.pi)))


def density_masses(density: Coefficients, theta: Array) -> Array:
    """Return the masses of the density between angle 0 and the angles `theta`."""
    mass = theta / (2 * np.pi)
    for k, (a, b) in enumerate(density, start=1):
        mass = mass + (a * np.sin(k * theta) + b * (1 - np.cos(k * theta))) / (2 * np.pi * k)
    return np.asarray(mass)


def angle_moments(angles: ArrayLike) -> dict[str, Array]:
    """Return the means of cos theta, sin theta and cos 2 theta over tokens (last axis).

    >>> angle_moments([0.0, np.pi])["cos2"]
    np.float64(1.0)
    """
    t = np.asarray(angles, dtype=float)
    return {"cos1": np.cos(t).mean(axis=-1), "sin1": np.sin(t).mean(axis=-1), "cos2": np.cos(2 * t).mean(axis=-1)}
