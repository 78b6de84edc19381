"""Noisy one-pass SGD of N linear neurons with weight decay: theta_i += 2 eps (y - f) x - 2 eps lam theta_i + sqrt(2 eps/beta) g_i."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

DROPPED = 1 / 6
"""Share of a run that is thrown away before averages are taken."""


@numba.njit(cache=True, nogil=True)
def _run(rng: Any, theta: Any, teacher: Any, penalty: float, beta: float, step: float, steps: int, first: int) -> float:
    """Mean of |teacher - mean theta|^2 + penalty * mean |theta|^2 over the steps from `first` on."""
    neurons, dimension = theta.shape
    kick, total = np.sqrt(2 * step / beta), 0.0
    x, centre = np.empty(dimension), np.empty(dimension)
    for done in range(steps):
        error, square = 0.0, 0.0
        for k in range(dimension):
            centre[k] = theta[:, k].mean()
            x[k] = rng.standard_normal()
            error += (teacher[k] - centre[k]) * x[k]
        for i in range(neurons):
            for k in range(dimension):
                value = theta[i, k] * (1 - 2 * step * penalty) + 2 * step * error * x[k] + kick * rng.standard_normal()
                theta[i, k] = value
                square += value * value
        if done >= first:
            total += penalty * square / neurons
            for k in range(dimension):
                total += (teacher[k] - theta[:, k].mean()) ** 2
    return total / (steps - first)


def regularised_risk(
    rng: np.random.Generator, teacher: ArrayLike, neurons: int, penalty: float, beta: float, step: float, time: float
) -> float:
    """Mean regularised risk R + lam mean |theta|^2 of one run of length time / step from the minimum, one sample per step.

    >>> found = regularised_risk(np.random.default_rng(0), [1.0], 5, 0.5, 10.0, 0.01, 400.0)
    >>> bool(abs(found - (1 / 3 + 1 / 20)) < 0.01)  # minimum penalty / (1 + penalty), plus D/(2 beta)
    True
    """
    target = np.asarray(teacher, dtype=float)
    theta, steps = np.tile(target / (1 + penalty), (neurons, 1)), round(time / step)
    return float(_run(rng, theta, target, penalty, beta, step, steps, round(DROPPED * steps)))
