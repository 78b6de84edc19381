"""The least cost of a fit whose parameters are tied to each other: what profiles are made of."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.numerics import additive_powers as form
from limitlab.numerics.additive_powers import Runs

Array = NDArray[np.float64]


def minimised(runs: Runs, width: float, embed: Any, start: Array) -> tuple[float, Array]:
    """The least cost over free parameters that `embed` completes, by damped Gauss-Newton steps, and where it is."""

    def measured(free: Array) -> tuple[float, Array, Array]:
        theta, inner = embed(free)
        legal = (
            theta[0] >= 0
            and min(theta[3:5]) >= form.LOWEST
            and max(theta[3:5]) <= form.HIGHEST
            and np.abs(theta[1:3]).max() < 300
        )
        if not legal:
            return math.inf, free, np.empty((0, 0))
        log_loss, slope = form.model(theta, runs)
        left = log_loss - runs.log_loss
        size = np.abs(left)
        cost = float(np.sum(np.where(size <= width, left**2, 2 * width * size - width**2 if np.isfinite(width) else 0.0)))
        weight = np.where(size <= width, 1.0, width / np.maximum(size, 1e-300)) if np.isfinite(width) else np.ones_like(left)
        return cost, left * weight, slope @ inner

    free, damping = np.array(start), 1e-3
    cost, pull, slope = measured(free)
    if math.isinf(cost):
        return math.inf, free
    for _ in range(200):
        gram, gradient = slope.T @ slope, slope.T @ pull
        kept = np.ones(free.size, bool)
        # E at its bound and pushed below it stays there
        bound = embed(free)[0][0] <= 0 and free[0] == 0
        if bound and gradient[0] > 0:
            kept[0] = False
        moved = np.zeros(free.size)
        system = gram[np.ix_(kept, kept)]
        moved[kept] = -np.linalg.solve(system + damping * np.diag(np.diag(system) + 1e-300), gradient[kept])
        trial = free + moved
        if embed(trial)[0][0] < 0 and kept[0]:
            trial[0] = 0.0
        new = measured(trial)
        if new[0] <= cost:
            done = cost - new[0] <= 1e-13 * cost + 1e-300
            free, (cost, pull, slope), damping = trial, new, max(damping / 5, 1e-12)
            if done:
                break
        else:
            damping *= 4
            if damping > 1e10:
                break
    return cost, free
