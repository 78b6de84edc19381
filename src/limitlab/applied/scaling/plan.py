"""`scaling_plan`: what a table of runs would decide, before any run (docs/theory/scaling_fit.md)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from limitlab.applied.scaling._runs import checked_runs, positive
from limitlab.applied.scaling.fit import ScalingFit
from limitlab.numerics import additive_powers as form
from limitlab.numerics.additive_powers import Best

__all__ = ["scaling_plan"]


def scaling_plan(
    N: ArrayLike,
    D: ArrayLike,
    noise: float,
    E: float = 1.8,
    A: float = 480.0,
    B: float = 2100.0,
    a: float = 0.35,
    b: float = 0.37,
    compute: float = 1e23,
    flops: float = 6.0,
) -> dict[str, float]:
    """Standard errors that a table of runs would give, before any run: of E, a, b and log N at a compute; and its condition number.

    `noise` is the standard deviation of log loss; the other numbers are the assumed truth.

    >>> N, D = (grid.ravel() for grid in np.meshgrid(np.geomspace(5e7, 1e10, 8), np.geomspace(1e9, 3e11, 6)))
    >>> round(scaling_plan(N, D, 0.01, 1.82, 482, 2085, 0.348, 0.366)["a"], 3)
    0.021
    """
    n, d = np.asarray(N, dtype=float), np.asarray(D, dtype=float)
    runs = checked_runs(n, d, E + A * n**-a + B * d**-b, None, flops)
    theta = np.array([E, math.log(A) - a * runs.centre_n, math.log(B) - b * runs.centre_d, a, b])
    spread = form.covariance(theta, runs, positive("noise", noise) ** 2)
    fit = ScalingFit(runs, Best(theta, 0.0, math.inf), 0.95, flops, True, form.condition(theta, runs))
    at, product = math.log(fit.optimum(compute).N), math.log(compute / flops)
    gradient = np.array([0.0, 1.0, -1.0, 1 / a - at + runs.centre_n, product - at - runs.centre_d - 1 / b]) / (a + b)
    errors = np.sqrt(np.diag(spread))
    return {
        "E": float(errors[0]),
        "a": float(errors[3]),
        "b": float(errors[4]),
        "log N": float(math.sqrt(gradient @ spread @ gradient)),
        "condition": fit.condition,
    }
