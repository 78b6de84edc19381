"""Tokens on the circle: the density in the limit of many tokens, and the exact field of finitely many in O(n K) operations.

With angles theta and K(t) = exp(beta (cos t - 1)), W(t) = -sin(t) K(t), the velocity at theta under a law mu is

    softmax: v = (W * mu) / (K * mu),      unnormalised: v = e^beta (W * mu),

and a density solves d_t rho + d_theta (rho v) = 0 (docs/theory/attention.md, eqs. 14-15). The Fourier coefficients of both kernels
are Bessel functions that fall faster than exponentially beyond k ~ sqrt(beta), so K harmonics of mu decide v to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import ConvergenceError
from limitlab.numerics.sphere_flow import checked_times

Array = NDArray[Any]
Coefficients = Sequence[tuple[float, float]]
"""(a_k, b_k) for k = 1, 2, ...: the density (1 + sum a_k cos k theta + b_k sin k theta) / 2 pi."""

TAIL = 1e-10  # largest Fourier coefficient beyond 2/3 of the band, relative to the largest of all
HOPELESS = 1e-5  # a grid is given up as soon as the tail reaches this
SMALLEST_GRID, LARGEST_GRID = 128, 2048
TOLERANCE = 1e-12
COURANT = 6.0


def harmonics(beta: float) -> int:
    """Number of harmonics beyond which the kernels' Fourier coefficients are below rounding.

    >>> harmonics(4.0)
    28
    """
    return int(np.ceil(10 + 9 * np.sqrt(beta)))


def kernel_coefficients(beta: float, count: int) -> tuple[Array, Array]:
    """Means of K(t) cos kt and of -W(t) sin kt over the circle, k = 0, ..., count.

    >>> even, odd = kernel_coefficients(0.0, 2)
    >>> even.tolist(), odd.tolist()
    ([1.0, 0.0, 0.0], [0.0, 0.5, 0.0])
    """
    from scipy.special import ive

    k = np.arange(count + 1)
    return ive(k, beta), (ive(np.abs(k - 1), beta) - ive(k + 1, beta)) / 2


# -- particles --------------------------------------------------------------------------------------------------------


def angular_velocity(angles: Array, beta: float, normalised: bool = True) -> Array:
    """Velocity of every token from the first harmonics of their empirical law: exact to rounding, in O(n K) operations.

    >>> angular_velocity(np.array([0.0, np.pi / 2]), 0.0).round(12)
    array([ 0.5, -0.5])
    """
    from limitlab.models.attention.compiled import circle_velocity

    even, odd = kernel_coefficients(beta, harmonics(beta))
    theta = np.ascontiguousarray(angles, dtype=float)
    out = np.empty_like(theta)
    circle_velocity(theta, even, odd, normalised, 1.0 if normalised else float(np.exp(beta)), out)
    return out


def circle_flow(angles: ArrayLike, beta: float, times: ArrayLike, *, normalised: bool = True, step: float = 0.05) -> Array:
    """Angles of tokens on the circle over time, shape (times, n): Runge-Kutta of order 4 with the Fourier field.

    >>> circle_flow([0.0, 1.0], 1.0, [0.0, 20.0])[1].round(6)
    array([0.5, 0.5])
    """
    grid, now = checked_times(times), 0.0
    theta = np.asarray(angles, dtype=float)
    longest = step if normalised else min(step, 0.1 * float(np.exp(-beta)))
    out = np.empty((grid.size, *theta.shape))
    for index, target in enumerate(grid):
        count = int(np.ceil((target - now) / longest - 1e-9))
        for _ in range(count):
            theta = _rk4(lambda y: angular_velocity(y, beta, normalised), theta, (target - now) / count)
        out[index], now = theta, target
    return out if np.ndim(times) else np.asarray(out[0])


def _rk4(velocity: Callable[[Array], Array], y: Array, h: float) -> Array:
    k1 = velocity(y)
    k2 = velocity(y + h / 2 * k1)
    k3 = velocity(y + h / 2 * k2)
    k4 = velocity(y + h * k3)
    return np.asarray(y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4))


# -- densities --------------------------------------------------------------------------------------------------------


def density_values(density: Coefficients, theta: ArrayLike) -> Array:
    """The density at angles.

    >>> float(2 * np.pi * density_values([(0.5, 0.0)], 0.0))
    1.5
    """
    t = np.asarray(theta, dtype=float)
    total = np.ones_like(t)
    for k, (a, b) in enumerate(density, start=1):
        total += a * np.cos(k * t) + b * np.sin(k * t)
    return np.asarray(total / (2 * np.pi))


def density_quantiles(density: Coefficients, levels: ArrayLike) -> Array:
    """Angles in [0, 2 pi] below which the density has the given masses.

    >>> density_quantiles([(0.0, 0.0)], [0.25]).round(12) / np.pi
    array([0.5])
    """
    from limitlab.numerics.roots import bracketed_root

    u = np.asarray(levels, dtype=float)

    return np.asarray(bracketed_root(lambda t: _cdf(density, t) - u, np.zeros_like(u), np.full_like(u, 2 * np.pi)))


def _cdf(density: Coefficients, theta: Array) -> Array:
    mass = theta / (2 * np.pi)
    for k, (a, b) in enumerate(density, start=1):
        mass = mass + (a * np.sin(k * theta) + b * (1 - np.cos(k * theta))) / (2 * np.pi * k)
    return np.asarray(mass)


def spectral_density(
    density: Coefficients, beta: float, times: ArrayLike, *, normalised: bool = True, points: int | None = None
) -> tuple[Array, float]:
    """The density on an even grid over time by the Fourier pseudospectral method, shape (times, M), with its relative tail.

    The grid is doubled until the Fourier tail has decayed. Where the density is too peaked for 2048 points, a `ConvergenceError`
    says so: use finite volumes or particles there.

    >>> rho, tail = spectral_density([(0.5, 0.0)], 1.0, [0.0, 1.0])
    >>> rho.shape, bool(tail < 1e-10)
    ((2, 128), True)
    """
    size = points or SMALLEST_GRID
    while True:
        rho, tail = _spectral(density, beta, checked_times(times), normalised, size)
        if tail < TAIL:
            return rho, tail
        if points is not None or 2 * size > LARGEST_GRID:
            raise ConvergenceError(
                f"the density at beta = {beta:g} and time {np.max(times):g} is not resolved by {size} points: the Fourier tail is "
                f"{tail:.1e} of its peak, not {TAIL:g}; use a shorter time, or solver='volumes' or 'particles'",
                rho,
                tail,
            )
        size *= 2


def _tail(rho: Array) -> float:
    """The largest of the last harmonics that the 2/3 rule keeps, relative to the largest of all."""
    size = rho.shape[-1]
    coefficients = np.abs(np.fft.rfft(rho, axis=-1))
    return float((coefficients[..., size // 3 - 4 : size // 3].max(axis=-1) / coefficients.max(axis=-1)).max())


def _spectral(density: Coefficients, beta: float, grid: Array, normalised: bool, size: int) -> tuple[Array, float]:
    """The density on `size` points at the times reached before the tail shows that they are too few, and that tail."""
    from scipy.integrate import solve_ivp

    k = np.arange(size // 2 + 1)
    even, odd = kernel_coefficients(beta, size // 2)
    kept = k < size / 3  # the 2/3 rule: products of kept harmonics do not fold back on kept ones

    def slope(_: float, rho: Array) -> Array:
        hat = np.fft.rfft(rho) * kept
        pull = np.fft.irfft(1j * odd * hat, size)  # W * rho: W_k = i odd_k
        mass = np.fft.irfft(even * hat, size)
        v = pull / mass if normalised else np.exp(beta) * 2 * np.pi * pull
        flux = np.fft.rfft(np.fft.irfft(hat, size) * v) * kept
        return np.fft.irfft(-1j * k * flux, size)

    def unresolved(_: float, rho: Array) -> float:
        return _tail(rho) - HOPELESS

    unresolved.terminal = True  # type: ignore[attr-defined]
    start = density_values(density, 2 * np.pi * np.arange(size) / size)
    if _tail(start) > TAIL or grid[-1] == 0:
        return np.tile(start, (grid.size, 1)), _tail(start)
    # inside the stability region for the highest kept harmonic (speed at most 1, or e^beta): its rounding noise must not grow
    longest = 3.0 * COURANT / size / (1.0 if normalised else float(np.exp(beta)))
    options = dict(rtol=TOLERANCE, atol=TOLERANCE, max_step=longest)
    found = solve_ivp(slope, (0.0, grid[-1]), start, "DOP853", grid, events=unresolved, **options)
    rho = np.asarray(found.y).T
    return rho, _tail(rho) if found.status == 0 else HOPELESS


def volume_density(
    density: Coefficients, beta: float, times: ArrayLike, *, normalised: bool = True, cells: int = 800
) -> Array:
    """Cell averages over time by second-order finite volumes (van Leer's limiter, Heun steps): positive, mass exactly 1.

    Shape (times, cells); cell j is [2 pi j / M, 2 pi (j + 1) / M].

    >>> rho = volume_density([(0.5, 0.0)], 1.0, [0.0, 5.0], cells=200)
    >>> bool(abs(rho[1].mean() * 2 * np.pi - 1) < 1e-12 and rho.min() >= 0)
    True
    """
    grid, width = checked_times(times), 2 * np.pi / cells
    k = np.arange(cells // 2 + 1)
    even, odd = kernel_coefficients(beta, cells // 2)
    shift = np.exp(0.5j * k * width)  # from centres to right edges
    blur = np.sinc(k / cells)  # a cell average is a point value convolved with the cell

    def edge_velocity(rho: Array) -> Array:
        hat = np.fft.rfft(rho) * shift / blur
        pull = np.fft.irfft(1j * odd * hat, cells)
        return np.asarray(pull / np.fft.irfft(even * hat, cells) if normalised else np.exp(beta) * 2 * np.pi * pull)

    def advance(rho: Array, v: Array, h: float) -> Array:
        flux = v * _upwind(rho, v)
        return np.asarray(rho - h / width * (flux - np.roll(flux, 1)))

    edges = _cdf(density, width * np.arange(cells + 1))
    rho, now = np.diff(edges) / width, 0.0
    out = np.empty((grid.size, cells))
    for index, target in enumerate(grid):
        while now < target:
            v = edge_velocity(rho)
            h = min(0.25 * width / max(float(np.abs(v).max()), 1e-300), 0.05, target - now)
            half = advance(rho, v, h)
            rho = (rho + advance(half, edge_velocity(half), h)) / 2
            now = target if target - now <= h else now + h
        out[index] = rho
    return out


def _upwind(rho: Array, v: Array) -> Array:
    """Density at right edges from the side the flow comes from, with van Leer's limited slopes."""
    left, right = rho - np.roll(rho, 1), np.roll(rho, -1) - rho
    product = left * right
    total = left + right
    slope = np.where(product > 0, 2 * product / np.where(product > 0, total, 1.0), 0.0)
    return np.where(v > 0, rho + slope / 2, np.roll(rho - slope / 2, -1))


def moments(rho: ArrayLike, offset: float = 0.0) -> dict[str, Array]:
    """Integrals of cos, sin and cos 2 theta against densities on an even grid theta_j = 2 pi (j + offset) / M (last axis).

    >>> moments(density_values([(0.5, 0.0)], 2 * np.pi * np.arange(8) / 8))["cos1"].round(12)
    np.float64(0.25)
    """
    values = np.asarray(rho, dtype=float)
    size = values.shape[-1]
    theta = 2 * np.pi * (np.arange(size) + offset) / size
    weight = 2 * np.pi / size
    waves = dict(cos1=np.cos(theta), sin1=np.sin(theta), cos2=np.cos(2 * theta))
    return {name: np.asarray(values @ wave * weight)[()] for name, wave in waves.items()}


def angle_moments(angles: ArrayLike) -> dict[str, Array]:
    """Means of cos, sin and cos 2 theta over tokens (last axis).

    >>> angle_moments([0.0, np.pi])["cos2"]
    np.float64(1.0)
    """
    t = np.asarray(angles, dtype=float)
    return {"cos1": np.cos(t).mean(axis=-1), "sin1": np.sin(t).mean(axis=-1), "cos2": np.cos(2 * t).mean(axis=-1)}
