"""Two solvers of the continuity equation for the density of very many tokens on the circle, and the moments of the density.

With angles theta and K(t) = exp(beta (cos t - 1)), W(t) = -sin(t) K(t), the velocity at theta under a law mu is

    softmax: v = (W * mu) / (K * mu),      unnormalised: v = e^beta (W * mu),

and a density solves d_t rho + d_theta (rho v) = 0 (docs/theory/attention.md, eqs. 14-15).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.cost import Pace
from limitlab._core.files import checkpoint_of
from limitlab.errors import ConvergenceError
from limitlab.models.attention.circle import Coefficients, density_masses, density_values
from limitlab.numerics.special import von_mises_coefficients
from limitlab.numerics.sphere_flow import checked_times

Array = NDArray[Any]

TAIL = 1e-10  # allowed size of the last resolved Fourier coefficients, relative to the largest coefficient
HOPELESS = 1e-5  # the integration on a grid stops if the tail exceeds this value
SMALLEST_GRID, LARGEST_GRID = 128, 2048
TOLERANCE = 1e-12
COURANT = 6.0
STILL = 1e-15  # largest change by rounding of a density at rest, relative to its peak
RESTED = 50  # number of unchanged steps after which a density counts as at rest


def spectral_density(
    density: Coefficients, beta: float, times: ArrayLike, *, normalised: bool = True, points: int | None = None
) -> tuple[Array, float]:
    """Return the density over time by the Fourier pseudospectral method, and its relative Fourier tail.

    The density is given on M equally spaced points, with shape (times, M). The tail is the size of the last resolved harmonics relative to
    the largest harmonic. M is doubled until the tail is below `TAIL`. If 2048 points do
    not resolve the density, the function raises `ConvergenceError`. Finite volumes or particles then still give results.

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
    """Return the largest of the last harmonics that the 2/3 rule keeps, divided by the largest of all harmonics."""
    size = rho.shape[-1]
    coefficients = np.abs(np.fft.rfft(rho, axis=-1))
    return float((coefficients[..., size // 3 - 4 : size // 3].max(axis=-1) / coefficients.max(axis=-1)).max())


def _spectral(density: Coefficients, beta: float, grid: Array, normalised: bool, size: int) -> tuple[Array, float]:
    """Return the density on `size` points and its tail, at the times before the tail exceeds `HOPELESS`."""
    from scipy.integrate import DOP853

    k = np.arange(size // 2 + 1)
    even, odd = von_mises_coefficients(beta, size // 2)
    resolved = k < size / 3  # by the 2/3 rule, products of these harmonics cause no aliasing among them

    def slope(_: float, rho: Array) -> Array:
        hat = np.fft.rfft(rho) * resolved
        pull = np.fft.irfft(1j * odd * hat, size)  # W * rho: W_k = i odd_k
        mass = np.fft.irfft(even * hat, size)
        v = pull / mass if normalised else np.exp(beta) * 2 * np.pi * pull
        flux = np.fft.rfft(np.fft.irfft(hat, size) * v) * resolved
        return np.fft.irfft(-1j * k * flux, size)

    start = density_values(density, 2 * np.pi * np.arange(size) / size)
    at_rest = (
        np.abs(slope(0.0, start)).max() <= STILL * start.max()
    )  # for example the uniform law, in which rounding errors must not grow
    if _tail(start) > TAIL or at_rest or grid[-1] == 0:
        return np.tile(start, (grid.size, 1)), _tail(start)
    # stable step for the highest harmonic (speed at most 1, or e^beta), so that its rounding errors do not grow
    longest = 3.0 * COURANT / size / (1.0 if normalised else float(np.exp(beta)))
    solver = DOP853(slope, 0.0, start, float(grid[-1]), max_step=longest, rtol=TOLERANCE, atol=TOLERANCE)
    pace, rho = Pace(end=grid[-1]), np.empty((0, size))
    while solver.status == "running":
        solver.step()
        if solver.status == "failed" or _tail(solver.y) > HOPELESS:
            return rho, HOPELESS
        reached = int(np.searchsorted(grid, solver.t, side="right"))
        rho = np.concatenate([rho, solver.dense_output()(grid[len(rho) : reached]).T])
        pace.at(solver.t, rho)
    return rho, _tail(rho)


def volume_density(
    density: Coefficients, beta: float, times: ArrayLike, *, normalised: bool = True, cells: int = 800
) -> Array:
    """Return cell averages over time by second-order finite volumes with van Leer's limiter and Heun steps.

    The averages are positive and have mass exactly 1. Their shape is (times, cells), and cell j is [2 pi j / M, 2 pi (j + 1) / M]. A
    density at rest stays at rest. Several separate clusters in the scheme can stop moving because each of them lies on its own cells, but
    the clusters of the equation continue to move towards each other. The function then raises `ConvergenceError`.

    >>> rho = volume_density([(0.5, 0.0)], 1.0, [0.0, 5.0], cells=200)
    >>> bool(abs(rho[1].mean() * 2 * np.pi - 1) < 1e-12 and rho.min() >= 0)
    True
    """
    grid, width = checked_times(times), 2 * np.pi / cells
    k = np.arange(cells // 2 + 1)
    even, odd = von_mises_coefficients(beta, cells // 2)
    shift = np.exp(0.5j * k * width)  # from centres to right edges
    blur = np.sinc(k / cells)  # a cell average is the density convolved with the cell

    def edge_velocity(rho: Array) -> Array:
        hat = np.fft.rfft(rho) * shift / blur
        pull = np.fft.irfft(1j * odd * hat, cells)
        return np.asarray(pull / np.fft.irfft(even * hat, cells) if normalised else np.exp(beta) * 2 * np.pi * pull)

    def advance(rho: Array, v: Array, h: float) -> Array:
        flux = v * _upwind(rho, v)
        return np.asarray(rho - h / width * (flux - np.roll(flux, 1)))

    edges = density_masses(density, width * np.arange(cells + 1))
    rho, now, still = np.diff(edges) / width, 0.0, 0
    out, pace, first = np.empty((grid.size, cells)), Pace(end=grid[-1]), 0
    checkpoint = checkpoint_of("volumes", tuple(density), beta, grid.tobytes(), normalised, cells)
    if (state := checkpoint.load()) is not None:
        rho, out = state["rho"], state["out"]
        now, still, first = float(state["now"]), int(state["still"]), int(state["index"])
    for index, target in enumerate(grid[first:], start=first):
        while now < target and still < RESTED:
            v, before = edge_velocity(rho), rho
            h = min(0.25 * width / max(float(np.abs(v).max()), 1e-300), 0.05, target - now)
            half = advance(rho, v, h)
            rho = (rho + advance(half, edge_velocity(half), h)) / 2
            now = target if target - now <= h else now + h
            pace.at(now, out[:index])
            still = still + 1 if np.abs(rho - before).max() <= STILL * rho.max() else 0
            if still == RESTED and _in_pieces(rho):
                raise ConvergenceError(
                    f"at beta = {beta:g} each cluster of the numerical solution stops in one cell at time {now:.3g}, but the clusters of "
                    "the equation continue to move: use a shorter time, or solver='particles'",
                    out[:index],
                )
            checkpoint.offer(lambda: _as_arrays(rho=rho, out=out, now=now, still=still, index=index))  # noqa: B023 (called immediately or never)
        out[index] = rho
    checkpoint.finish()
    return out


def _as_arrays(**state: Any) -> dict[str, Array]:
    return {name: np.asarray(value) for name, value in state.items()}


def _in_pieces(rho: Array) -> bool:
    """Return whether the density is neither uniform nor concentrated in four neighbouring cells."""
    near = np.sum([np.roll(rho, shift) for shift in range(4)], axis=0)
    return bool(np.ptp(rho) > 1e-9 * rho.max() and near.max() < (1 - 1e-9) * rho.sum())


def _upwind(rho: Array, v: Array) -> Array:
    """Return the density at right edges, extrapolated from the upwind cell with van Leer's limited slopes."""
    left, right = rho - np.roll(rho, 1), np.roll(rho, -1) - rho
    product = left * right
    total = left + right
    slope = np.where(product > 0, 2 * product / np.where(product > 0, total, 1.0), 0.0)
    return np.where(v > 0, rho + slope / 2, np.roll(rho - slope / 2, -1))


def moments(rho: ArrayLike, offset: float = 0.0) -> dict[str, Array]:
    """Return integrals of cos, sin and cos 2 theta against densities on the grid theta_j = 2 pi (j + offset) / M (last axis).

    >>> moments(density_values([(0.5, 0.0)], 2 * np.pi * np.arange(8) / 8))["cos1"].round(12)
    np.float64(0.25)
    """
    values = np.asarray(rho, dtype=float)
    size = values.shape[-1]
    theta = 2 * np.pi * (np.arange(size) + offset) / size
    weight = 2 * np.pi / size
    waves = dict(cos1=np.cos(theta), sin1=np.sin(theta), cos2=np.cos(2 * theta))
    return {name: np.asarray(values @ wave * weight)[()] for name, wave in waves.items()}
