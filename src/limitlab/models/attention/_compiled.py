"""Compiled flows of many small systems with Q = K = V = I, each by an adaptive Runge-Kutta integration.

A system is a matrix y, which holds n tokens in rows (`gram` False) or their Gram matrix G (`gram` True). With E = exp(beta (G - 1)) and
Z = E 1 the velocities are (docs/theory/attention.md, eqs. 3 and 11)

    tokens:  x' = a - diag(a x^T) x,  a = E x / Z;          Gram:  G' = H + H^T,  H = E G / Z - diag(E G / Z) G.

Without normalisation Z is n e^-beta. The method is Dormand and Prince's 5(4) with its continuous extension of order 4, so that output
times require no additional steps.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

DONE, NOT_FINITE, OUTSIDE, TOO_MANY_STEPS = 0, 1, 2, 3
"""Status codes that `integrate` returns."""

OVERLAP_SLACK = 1e-8  # an overlap further outside [-1, 1] is a failure, not rounding
FASTMATH = {"reassoc", "contract", "arcp", "nsz"}  # sums may be reordered, but NaN must be detected

# Dormand and Prince (1980). The last row is the solution of order 5, and ERROR is its difference from the solution of order 4.
STAGES = np.array(
    [
        [1 / 5, 0, 0, 0, 0, 0],
        [3 / 40, 9 / 40, 0, 0, 0, 0],
        [44 / 45, -56 / 15, 32 / 9, 0, 0, 0],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729, 0, 0],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656, 0],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    ]
)
ERROR = np.array([71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])
# Coefficients of theta, ..., theta^4 of the continuous extension (Shampine 1986, as in SciPy's RK45).
EXTENSION = np.array(
    [
        [1, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432],
        [0, 0, 0, 0],
        [0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799],
        [0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072],
        [0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632],
        [0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844],
        [0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423],
    ]
)


@numba.njit(cache=True, nogil=True, fastmath=FASTMATH)
def velocity(gram: bool, normalised: bool, beta: float, y: Array, out: Array, weights: Array) -> None:
    """Write the time derivative of one system into `out`. `weights` is work space for an n x n matrix."""
    n, m = y.shape
    if gram:
        for i in range(n):
            for j in range(i + 1):
                weights[i, j] = np.exp(beta * (y[i, j] - 1))
                weights[j, i] = weights[i, j]
    else:
        np.dot(y, y.T, weights)
        for i in range(n):
            for j in range(i + 1):
                weights[i, j] = np.exp(beta * (weights[i, j] - 1))
                weights[j, i] = weights[i, j]
    pulled = np.dot(weights, y)
    for i in range(n):
        mass = n * np.exp(-beta)
        if normalised:
            mass = 0.0
            for j in range(n):
                mass += weights[i, j]
        for k in range(m):
            pulled[i, k] /= mass
    if gram:
        for i in range(n):
            for j in range(i + 1):
                slope = pulled[i, j] + pulled[j, i] - (pulled[i, i] + pulled[j, j]) * y[i, j]
                out[i, j] = slope
                out[j, i] = slope
    else:
        for i in range(n):
            radial = 0.0
            for k in range(m):
                radial += pulled[i, k] * y[i, k]
            for k in range(m):
                out[i, k] = pulled[i, k] - radial * y[i, k]


@numba.njit(cache=True, nogil=True)
def _bad(gram: bool, y: Array) -> int:
    """Return the status of a state, which must be finite and, if a Gram matrix, have overlaps in [-1, 1]."""
    for i in range(y.shape[0]):
        for k in range(y.shape[1]):
            if not np.isfinite(y[i, k]):
                return NOT_FINITE
            if gram and abs(y[i, k]) > 1 + OVERLAP_SLACK:
                return OUTSIDE
    return DONE


@numba.njit(cache=True, nogil=True)
def _copy(source: Array, to: Array) -> None:
    """Copy a matrix entry by entry, because numba takes seconds to compile an assignment of arrays."""
    for i in range(source.shape[0]):
        for k in range(source.shape[1]):
            to[i, k] = source[i, k]


@numba.njit(cache=True, nogil=True)
def _renormalise(y: Array) -> None:
    for i in range(y.shape[0]):
        length = 0.0
        for k in range(y.shape[1]):
            length += y[i, k] ** 2
        length = np.sqrt(length)
        for k in range(y.shape[1]):
            y[i, k] /= length


@numba.njit(cache=True, nogil=True, fastmath=FASTMATH)
def _combine(start: Array, slopes: Array, coefficients: Array, h: float, out: Array) -> None:
    """Write start + h sum_k coefficients[k] slopes[k] into `out`, in loops along rows that the compiler vectorises."""
    for i in range(start.shape[0]):
        for k in range(start.shape[1]):
            out[i, k] = start[i, k]
        for stage in range(coefficients.size):
            weight = h * coefficients[stage]
            for k in range(start.shape[1]):
                out[i, k] += weight * slopes[stage, i, k]


@numba.njit(cache=True, nogil=True)
def _step_error(slopes: Array, zero: Array, room: Array) -> float:
    """Return the largest entry of the difference between the solutions of orders 5 and 4, divided by the step, or NaN."""
    _combine(zero, slopes, ERROR, 1.0, room)
    worst = 0.0
    for i in range(room.shape[0]):
        for k in range(room.shape[1]):
            if not abs(room[i, k]) <= worst:  # also true for NaN
                worst = abs(room[i, k])
    return worst


@numba.njit(cache=True, nogil=True)
def _extend(theta: float, weights: Array) -> None:
    """Write the weights of the slopes in the continuous extension at a fraction theta of the step into `weights`."""
    for stage in range(7):
        power, total = theta, 0.0
        for p in range(4):
            total += EXTENSION[stage, p] * power
            power *= theta
        weights[stage] = total


@numba.njit(cache=True, nogil=True)
def integrate(
    gram: bool, normalised: bool, beta: float, start: Array, times: Array, tolerance: float, most_steps: int, out: Array
) -> int:
    """Write the states of one system (n, m) at increasing `times` into `out` (times, n, m), and return a status code."""
    n, m = start.shape
    y, trial, zero, room = start.copy(), start.copy(), np.zeros((n, m)), np.empty((n, m))
    slopes, weights, between = np.empty((7, n, m)), np.empty((n, n)), np.empty(7)
    now, index, steps = 0.0, 0, 0
    while index < times.size and times[index] <= 0:
        _copy(y, out[index])
        index += 1
    h = 0.05 if normalised else 0.05 * np.exp(-beta)
    velocity(gram, normalised, beta, y, slopes[0], weights)
    while index < times.size:
        for stage in range(6):
            _combine(y, slopes, STAGES[stage, : stage + 1], h, trial)
            velocity(gram, normalised, beta, trial, slopes[stage + 1], weights)
        worst = _step_error(slopes, zero, room) * h / tolerance
        if worst <= 1:
            status = _bad(gram, trial)
            if status != DONE:
                return status
            while index < times.size and times[index] <= now + h:
                _extend((times[index] - now) / h, between)
                _combine(y, slopes, between, h, out[index])
                if not gram:
                    _renormalise(out[index])
                index += 1
            now += h
            _copy(trial, y)
            _copy(slopes[6], slopes[0])
            if not gram:
                _renormalise(y)
        elif not np.isfinite(worst):
            if h < 1e-8:
                return NOT_FINITE
            worst = 1e6
        h *= min(5.0, max(0.2, 0.9 * max(worst, 1e-10) ** -0.2))
        steps += 1
        if steps > most_steps:
            return TOO_MANY_STEPS
    return DONE


@numba.njit(cache=True, nogil=True, fastmath=FASTMATH)
def circle_velocity(angles: Array, even: Array, odd: Array, normalised: bool, factor: float, out: Array) -> None:
    """Write the angular velocities, computed from the Fourier coefficients of the kernels, into `out`.

    The function makes two passes over the n tokens with O(n m) operations for m coefficients, and stores 2 m moments.
    Powers e^{ik theta} are computed by the recurrence z^{k+1} = z z^k.
    """
    n, top = angles.size, even.size - 1
    real, imaginary = np.zeros(top + 1), np.zeros(top + 1)
    for i in range(n):
        c, s = np.cos(angles[i]), np.sin(angles[i])
        a, b = 1.0, 0.0
        for k in range(1, top + 1):
            a, b = a * c - b * s, a * s + b * c
            real[k] += a
            imaginary[k] += b
    real /= n
    imaginary /= n
    for i in range(n):
        c, s = np.cos(angles[i]), np.sin(angles[i])
        a, b = 1.0, 0.0
        mass, pull = even[0], 0.0
        for k in range(1, top + 1):
            a, b = a * c - b * s, a * s + b * c
            mass += 2 * even[k] * (a * real[k] + b * imaginary[k])
            pull -= 2 * odd[k] * (b * real[k] - a * imaginary[k])
        out[i] = pull / mass if normalised else factor * pull
