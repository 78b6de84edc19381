"""The table of runs: what is refused, and whether its design can tell the two terms apart."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from limitlab.numerics import additive_powers as form
from limitlab.numerics.additive_powers import Runs

LEAST_ROWS, LEAST_SIZES = 8, 3
RAY = 0.01  # decades: closer to one line log D = slope log N + const, slope > 0, the two terms can be exchanged


def checked_runs(N: ArrayLike, D: ArrayLike | None, loss: ArrayLike, compute: ArrayLike | None, flops: float) -> Runs:
    """The checked table."""
    n = np.ravel(np.asarray(N, dtype=float))
    if D is None:
        if compute is None:
            raise ValueError("D is missing: give D, or compute")
        D = np.ravel(np.asarray(compute, dtype=float)) / (flops * n)
    columns = dict(N=n, D=np.ravel(np.asarray(D, dtype=float)), loss=np.ravel(np.asarray(loss, dtype=float)))
    lengths = {name: column.size for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns of different lengths are not allowed: {lengths}")
    if n.size < LEAST_ROWS:
        raise ValueError(f"{n.size} runs are not allowed: five parameters need at least {LEAST_ROWS}")
    for name, column in columns.items():
        if not (np.isfinite(column).all() and (column > 0).all()):
            row = int(np.flatnonzero(~(np.isfinite(column) & (column > 0)))[0])
            raise ValueError(f"{name} = {column[row]:g} in row {row + 1} is not allowed: must be above 0 and finite")
        if name != "loss" and np.unique(column.round(12)).size < LEAST_SIZES:
            raise ValueError(
                f"{np.unique(column).size} values of {name} are not allowed: give runs at {LEAST_SIZES} or more"
            )
    return form.centred(columns["N"], columns["D"], columns["loss"])


def on_a_ray(runs: Runs) -> bool:
    """Whether log D is a rising straight line in log N, up to a hundredth of a decade: the test of the design, whatever the fit says."""
    slope = float(runs.n @ runs.d / (runs.n @ runs.n))
    spread = float(np.sqrt(np.mean((runs.d - slope * runs.n) ** 2))) / math.log(10)
    return slope > 0 and spread < RAY


def positive(name: str, value: float) -> float:
    """A number that must be above 0."""
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} = {value:g} is not allowed: must be above 0 and finite")
    return float(value)
