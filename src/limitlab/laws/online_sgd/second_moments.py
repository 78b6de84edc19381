"""Second moments of least squares by one-pass SGD, by the exact recursion, in closed form and in the limit of many dimensions.

The equations are those of docs/theory/streaming_least_squares.md. A group has eigenvalue s and `count` directions. In the limit `count` is
the group's share of all directions. E is the sum of the mean of (theta - beta)_i^2 over these directions, and R = sum s E is the excess
risk.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.numerics.roots import bracketed_root

Array = NDArray[np.float64]

NEARLY_ONE = 0.5  # powers of eigenvalues L with 1 - L below this are computed from 1 - L


class Modes(NamedTuple):
    """The recursion in its eigenbasis, R_k = sum signal * L^k + tau^2 sum noise * (1 - L^k) / (1 - L).

    Attributes
    ----------
    rates
        Values of 1 - L per step, or the rates of decay in the limit.
    signal, noise
        Weights of the modes in the excess risk, due to the start and due to noise of variance 1.
    """

    rates: Array
    signal: Array
    noise: Array

    def excess(self, steps: ArrayLike, noise: ArrayLike) -> Array:
        """Return the excess risk after whole numbers of steps, equation (4). `steps` and `noise` broadcast."""
        k, tau2 = np.asarray(steps, dtype=float)[..., None], np.asarray(noise, dtype=float)[..., None] ** 2
        slow = self.rates < NEARLY_ONE
        with np.errstate(over="ignore", under="ignore"):
            power = np.where(slow, np.exp(k * np.log1p(-np.where(slow, self.rates, 0.0))), (1 - self.rates) ** k)
            lost = np.where(slow, -np.expm1(k * np.log1p(-np.where(slow, self.rates, 0.0))), 1 - power)
        return np.asarray((self.signal * power + tau2 * self.noise * _quotient(lost, self.rates, k)).sum(axis=-1))

    def excess_in_time(self, times: ArrayLike, noise: ArrayLike) -> Array:
        """Return the excess risk in continuous time, for modes whose `rates` are those of the limit."""
        t, tau2 = np.asarray(times, dtype=float)[..., None], np.asarray(noise, dtype=float)[..., None] ** 2
        with np.errstate(over="ignore", under="ignore"):
            left, lost = np.exp(-self.rates * t), -np.expm1(-self.rates * t)
        return np.asarray((self.signal * left + tau2 * self.noise * _quotient(lost, self.rates, t)).sum(axis=-1))


def _quotient(lost: Array, rates: Array, k: Array) -> Array:
    """Return (1 - L^k) / (1 - L), which is k for L = 1."""
    still = rates == 0
    return np.where(still, k, lost / np.where(still, 1.0, rates))


def discrete_modes(s: Array, counts: Array, energy: Array, step: float, batch: float, kurtosis: float) -> Modes:
    """Return the modes of the recursion (1) with step `step`.

    After division of E by sqrt(count) the map is symmetric, diagonal plus rank one.

    >>> modes = discrete_modes(np.ones(1), np.ones(1), np.ones(1), 0.5, 1.0, 0.0)  # one direction, E x^4 = 3
    >>> float(modes.excess(1, 0.0)), float((1 - 0.5) ** 2 + 2 * 0.5**2)
    (0.75, 0.75)
    """
    decay = step * s * (2 - step * s * (1 + (1 + kurtosis) / batch))  # 1 - rho
    return _diagonalised(decay, s * np.sqrt(counts), energy / np.sqrt(counts), step**2 / batch)


def limit_modes(s: Array, shares: Array, energy: Array, step: float, batch: float) -> Modes:
    """Return the modes of the limit (5). Its time is the number of steps divided by the dimension d, and the step is `step`/d."""
    return _diagonalised(2 * step * s, s * np.sqrt(shares), energy / np.sqrt(shares), step**2 / batch)


def _diagonalised(decay: Array, direction: Array, start: Array, strength: float) -> Modes:
    rates, basis = np.linalg.eigh(np.diag(decay) - strength * np.outer(direction, direction))
    along = direction @ basis
    return Modes(rates, along * (start @ basis), strength * along**2)


@numba.njit(cache=True, nogil=True)
def recursion(
    s: Array,
    counts: Array,
    energy: Array,
    steps: Array,
    batch: float,
    kurtosis: float,
    momentum: float,
    tau2: float,
    first: int,
    marks: NDArray[np.int64],
) -> tuple[Array, Array]:
    """Return the excess risk of the iterate, and of the average from step number `first` on, at increasing steps `marks`.

    `steps` holds the step of every iteration. The iterate follows equations (1) and (2), the average equation (6). The average is valid for
    momentum 0 only, and is 0 before the first averaged iterate.
    """
    a, cross, before = energy.copy(), energy.copy(), energy.copy()
    summed, mean_square = np.zeros_like(s), np.zeros_like(s)
    last, average = np.zeros(marks.size), np.zeros(marks.size)
    done = 0
    risk = float(np.sum(s * a))
    for i in range(marks.size):
        while done < marks[i]:
            if done >= first:  # theta_done enters the average
                for g in range(s.size):
                    if done == first:
                        summed[g] = a[g]
                    else:
                        summed[g] = (1 - steps[done - 1] * s[g]) * summed[g] + a[g]
                    mean_square[g] += 2 * summed[g] - a[g]
            eta = steps[done]
            fresh = eta * eta / batch
            total = 0.0
            for g in range(s.size):
                p = 1 + momentum - eta * s[g]
                new = p * p * a[g] - 2 * p * momentum * cross[g] + momentum * momentum * before[g]
                new += fresh * ((1 + kurtosis) * s[g] * s[g] * a[g] + counts[g] * s[g] * (risk + tau2))
                cross[g] = p * a[g] - momentum * cross[g]
                before[g] = a[g]
                a[g] = new
                total += s[g] * new
            risk = total
            done += 1
        last[i] = risk
        if marks[i] > first:
            average[i] = np.sum(s * mean_square) / (marks[i] - first) ** 2
    return last, average


def limit_average(
    s: Array, shares: Array, energy: Array, step: float, batch: float, tau2: float, first: float, times: Array
) -> Array:
    """Return the excess risk of the average from time `first` on in the limit, by the matrix exponential of (7)."""
    from scipy.linalg import expm

    size = s.size
    noise_in = step**2 / batch * shares * s
    flow = np.diag(-2 * step * s) + np.outer(noise_in, s)
    system = np.zeros((3 * size + 1, 3 * size + 1))  # energies, their sums with the average, mean squares of the sum, 1
    system[:size, :size], system[:size, -1] = flow, tau2 * noise_in
    system[size : 2 * size, :size], system[size : 2 * size, size : 2 * size] = np.eye(size), np.diag(-step * s)
    system[2 * size : -1, size : 2 * size] = 2 * np.eye(size)
    start = np.zeros(3 * size + 1)
    start[:size], start[-1] = energy, 1.0
    start[:size] = (expm(system * first) @ start)[:size]
    risks = [(expm(system * (t - first)) @ start)[2 * size : -1] @ s / (t - first) ** 2 for t in np.ravel(times)]
    return np.reshape(risks, np.shape(times))


def gain(step: ArrayLike, s: Array, counts: Array, batch: float, kurtosis: float, momentum: float) -> Array:
    """Return the gain N of equation (8). The excess risk after many steps is N / (1 - N) times the noise variance."""
    eta = np.asarray(step, dtype=float)[..., None]
    with np.errstate(divide="ignore"):
        y = eta * (1 + momentum) / (batch * (1 - momentum) * (2 * (1 + momentum) - eta * s))
        return np.asarray((counts * s * y / (1 - (1 + kurtosis) * s * y)).sum(axis=-1))


def largest_step(s: Array, counts: Array, batch: float, kurtosis: float, momentum: float) -> float:
    """Return the step at which the gain is 1. From this step on the mean square diverges.

    >>> round(largest_step(1 / np.arange(1, 61.0), np.ones(60), 1.0, 0.0, 0.0), 4)
    0.363
    """
    s, counts = s[s > 0], counts[s > 0]
    top = float(s.max())
    pole = 2 * (1 + momentum) / top
    if kurtosis > -1:  # in this case a single direction already diverges at a shorter step
        pole = 2 * batch * (1 - momentum**2) / (top * ((1 + kurtosis) * (1 + momentum) + batch * (1 - momentum)))
    high = pole * (1 - 1e-14)

    def excess(step: Array) -> Array:
        return gain(step, s, counts, batch, kurtosis, momentum) - 1

    return float(bracketed_root(excess, 0.0, high)) if excess(np.asarray(high)) > 0 else pole
