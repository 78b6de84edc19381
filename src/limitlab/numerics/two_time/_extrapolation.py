"""From several grids to one answer with an error estimate: step doubling, Richardson, Romberg.

The error of a march is c_2 step^2 + c_3 step^3 + c_4 step^4 + ... (the predictor is explicit, so odd powers do occur), and
the values on grids of N, 2N, 4N, ... steps combine as in Romberg's quadrature with these powers,

    f^(0)_k = value with 2^k N steps,     f^(j)_k = f^(j-1)_k + (f^(j-1)_k - f^(j-1)_{k-1}) / (2^(j+1) - 1).             (1)

The reported error is a third of the last change |f^(J-1)_J - f^(J-1)_{J-1}| in the second-best column of the table: for two grids
the usual estimate by step doubling, for more of them on the safe side of the error of the best value f^(J)_J.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from limitlab.numerics.two_time._marching import Solution

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Extrapolated:
    """Functions at chosen times, extrapolated to step zero, with the estimated error of every entry.

    Attributes
    ----------
    values, errors
        By name, arrays over the chosen times.
    finest
        The march with the most steps.
    """

    values: Mapping[str, Floats]
    errors: Mapping[str, Floats]
    finest: Solution


def romberg_table(levels: Sequence[Floats]) -> tuple[Floats, Floats]:
    """The extrapolated value and its error estimate from values on grids N, 2N, 4N, ...

    >>> value, error = romberg_table([np.array(1.0 + h**2 + h**3) for h in (0.4, 0.2, 0.1)])
    >>> bool(abs(value - 1) < 1e-12), bool(error < 0.01)
    (True, True)
    """
    table = [np.asarray(level, dtype=float) for level in levels]
    if len(table) == 1:
        return table[0], np.full(table[0].shape, np.inf)
    power = 2
    while len(table) > 1:
        change = np.abs(table[-1] - table[-2]) / 3.0
        table = [fine + (fine - coarse) / (2.0**power - 1.0) for coarse, fine in pairwise(table)]
        power += 1
    return table[0], change


def at_times(solution: Solution, name: str, times: Floats, points: int = 6) -> Floats:
    """A function of a solution at arbitrary times, by local polynomials of degree `points - 1` (exact on grid points)."""
    grid, values = solution.times, solution.paths[name]
    points = min(points, grid.size)
    step = grid[1] - grid[0]
    position = np.asarray(times, dtype=float) / step
    near = np.rint(position)
    position = np.where(np.abs(position - near) < 1e-9 * np.maximum(1.0, near), near, position)
    first = np.clip(np.floor(position).astype(int) - points // 2 + 1, 0, grid.size - points)
    local = position - first
    result = np.zeros(position.shape)
    for p in range(points):
        weight = np.ones(position.shape)
        for q in range(points):
            if q != p:
                weight *= (local - q) / (p - q)
        result += weight * values[first + p]
    return result


def extrapolate(
    solve: Callable[[int], Solution], steps: int, times: Floats, levels: int = 3, names: Sequence[str] | None = None
) -> Extrapolated:
    """March on `levels` grids, the finest with `steps` steps (rounded up to a multiple of 2^(levels-1)), and extrapolate.

    Parameters
    ----------
    solve
        A march with a given number of steps.
    steps, levels
        Steps of the finest grid, number of grids (each has half the steps of the next).
    times
        Where to report.
    names
        Functions to report (default: all).

    Examples
    --------
    >>> from limitlab.numerics.two_time.examples import DampedOscillator
    >>> from limitlab.numerics.two_time._marching import march
    >>> system = DampedOscillator(coupling=1.0)
    >>> result = extrapolate(lambda n: march(system, 2.0, n), 80, np.array([1.0, 2.0]))
    >>> bool(np.all(np.abs(result.values["x"] - system.exact(np.array([1.0, 2.0]))) < 1e-7))
    True
    """
    if levels < 1:
        raise ValueError(f"levels = {levels} is not allowed: must be at least 1")
    coarsest = max(2, -(-steps // 2 ** (levels - 1)))
    solutions = [solve(coarsest * 2**level) for level in range(levels)]
    values, errors = {}, {}
    for name in names if names is not None else solutions[-1].paths:
        values[name], errors[name] = romberg_table([at_times(solution, name, times) for solution in solutions])
    return Extrapolated(values, errors, solutions[-1])
