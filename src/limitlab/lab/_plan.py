"""Planning with a law: which value of a parameter reaches a target, and which value is best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from limitlab._core.law import Law
from limitlab._core.registry import law_at_defaults
from limitlab.errors import UnreachableTarget, did_you_mean
from limitlab.lab._scan import Line
from limitlab.lab._scan import minimise as minimise_on

__all__ = ["optimal", "plan"]

Array = NDArray[np.float64]
Preference = Literal["smallest", "largest", "nearest"]

SCAN_POINTS = {True: 600, False: 80}
"""Points of the first look along a parameter: many where the law is vectorised, few where each costs a solve."""
SAME = 1e-14
"""Relative spread below which an observable does not change."""
MOST_VALLEYS = 24
"""Local minima of the first look that are refined."""


def plan(
    law: Law | str,
    target: Mapping[str, float],
    solve_for: str,
    bounds: tuple[float, float] | None = None,
    prefer: Preference = "smallest",
) -> xr.Dataset:
    """The value of a parameter at which an observable takes a target value, by root finding on the theory.

    Parameters
    ----------
    law
        The law, with every other parameter as it should be; or its name, for its default parameters.
    target
        One observable and the value wanted, such as `{"test_error": 0.3}`.
    solve_for
        The parameter to choose.
    bounds
        Interval to look in (default: the parameter's range, cut to a practical one).
    prefer
        Curves of learning are not monotone, so there may be several answers: all are in `solutions`; this picks the main one
        ("nearest" to the law's present value).

    Returns
    -------
    xarray.Dataset
        The observables at the answer, which is the coordinate `solve_for`; `solutions` lists every answer.

    Raises
    ------
    UnreachableTarget
        When no value in the bounds gives the target; it says the best reachable value and where it is.

    Examples
    --------
    How many samples per dimension bring the test error down to 0.4 (ratio is p/n)?

    >>> from limitlab.laws import Ridge
    >>> answer = plan(Ridge(ridge=0.1, noise=0.5), {"test_error": 0.4}, solve_for="ratio")
    >>> round(float(answer.test_error), 10)
    0.4
    """
    law, (observable, wanted) = law_at_defaults(law), _checked_target(target)
    line = Line(law, solve_for, observable, bounds)
    grid = line.grid(SCAN_POINTS[solve_for in law.array_parameters()])
    values = line(grid)
    if line.whole:
        solutions = _whole_solutions(grid, values, wanted, line)
    else:
        solutions = np.array([_root(line, wanted, *bracket) for bracket in _brackets(line, grid, values, wanted)])
        solutions = np.unique(np.concatenate([grid[values == wanted], solutions]))
    if not solutions.size:
        raise _unreachable(line, grid, values, wanted)
    chosen = _choose(solutions, prefer, getattr(law, solve_for))
    return _answer(law, line, chosen).assign(
        solutions=("solution", solutions, {"long_name": f"every {solve_for} with {observable} = {wanted:g}"})
    )


def optimal(
    law: Law | str,
    over: str = "ridge",
    minimise: str = "test_error",
    bounds: tuple[float, float] | None = None,
) -> xr.Dataset:
    """The best value of a parameter: the global minimum of an observable of the limit.

    Parameters
    ----------
    law
        The law, with every other parameter as it should be; or its name, for its default parameters.
    over
        The parameter to choose.
    minimise
        The observable to make small.
    bounds
        Interval to look in (default: the parameter's range, cut to a practical one).

    Returns
    -------
    xarray.Dataset
        The observables at the optimum, which is the coordinate `over`; attr `at_bound` says whether it is an end of the interval.

    Examples
    --------
    >>> from limitlab.laws import Ridge
    >>> best = optimal(Ridge(ratio=0.5, noise=0.5**0.5), over="ridge", minimise="excess_risk")
    >>> round(float(best.ridge), 9), round(float(best.excess_risk), 9)
    (0.25, 0.280776406)
    """
    law = law_at_defaults(law)
    if isinstance(law, Law) and minimise not in law.observed():
        hint = did_you_mean(minimise, law.observed())
        raise ValueError(
            f"{type(law).__name__} has no observable {minimise!r}: {hint}; say which with minimise (--minimise)"
        )
    line = Line(law, over, minimise, bounds)
    grid = line.grid(SCAN_POINTS[over in law.array_parameters()])
    values = line(grid)
    if np.isfinite(values).all() and len(values) > 1 and np.ptp(values) <= SAME * np.abs(values).max():
        raise ValueError(
            f"{minimise} does not depend on {over} between {grid[0]:g} and {grid[-1]:g}: nothing to choose; minimise another "
            "observable, or over another parameter"
        )
    best, at_bound = (_whole_minimum if line.whole else _minimum)(line, grid, values)
    return _answer(law, line, best).assign_attrs(at_bound=int(at_bound), minimised=minimise)


# -- answers ---------------------------------------------------------------------------------------------------------


def _answer(law: Law, line: Line, value: float) -> xr.Dataset:
    solved = law.replace(**{line.parameter: int(value) if line.whole else float(value)})
    result = solved.theory().assign_coords({line.parameter: value})
    result[line.parameter].attrs.update(long_name=line.meta.description, symbol=line.meta.symbol)
    return result


def _checked_target(target: Mapping[str, float]) -> tuple[str, float]:
    if len(target) != 1:
        raise ValueError(f"target = {dict(target)} is not allowed: give exactly one observable and its value")
    ((observable, wanted),) = target.items()
    if not np.isfinite(wanted):
        raise ValueError(f"target {observable} = {wanted} is not allowed: must be a finite number")
    return observable, float(wanted)


def _choose(solutions: Array, prefer: Preference, present: float) -> float:
    if prefer not in ("smallest", "largest", "nearest"):
        raise ValueError(f"prefer = {prefer!r} is not allowed: must be 'smallest', 'largest' or 'nearest'")
    if prefer == "nearest":
        return float(solutions[np.argmin(np.abs(solutions - float(present)))])
    return float(solutions[0] if prefer == "smallest" else solutions[-1])


def _unreachable(line: Line, grid: Array, values: Array, wanted: float) -> UnreachableTarget:
    """The closest value, refined, and the range that can be had."""
    below = wanted < values.min()
    sign = 1.0 if below else -1.0
    at, _ = (_whole_minimum if line.whole else _minimum)(line, grid, sign * values, sign)
    best = float(line(at)[0])
    word = "smallest" if below else "largest"
    return UnreachableTarget(
        f"{line.observable} = {wanted:g} is out of reach for {line.parameter} in [{line.bounds[0]:g}, {line.bounds[1]:g}]: "
        f"the {word} value is {best:.6g}, at {line.parameter} = {at:.6g}; change another parameter or the target",
        best=best,
        at=at,
    )


# -- roots -----------------------------------------------------------------------------------------------------------


def _brackets(line: Line, grid: Array, values: Array, wanted: float) -> list[tuple[float, float]]:
    """Intervals over which the observable crosses the target, also inside a cell around a narrow peak or dip."""
    gap = values - wanted
    found = [(float(grid[i]), float(grid[i + 1])) for i in np.flatnonzero(gap[:-1] * gap[1:] < 0)]
    for i in range(1, len(grid) - 1):
        flat = gap[i] == gap[i - 1]  # of a flat stretch only the end can hide a turn
        dips = not flat and 0 < gap[i] <= min(gap[i - 1], gap[i + 1])
        peaks = not flat and 0 > gap[i] >= max(gap[i - 1], gap[i + 1])
        if not (dips or peaks) or not np.isfinite(gap[i - 1 : i + 2]).all():
            continue
        sign = 1.0 if dips else -1.0
        turn, value = minimise_on(lambda x, s=sign: s * line(x), float(grid[i - 1]), float(grid[i + 1]), line.bounds)  # type: ignore[misc]
        if sign * value < wanted if dips else sign * value > wanted:
            found += [(float(grid[i - 1]), turn), (turn, float(grid[i + 1]))]
    return found


def _root(line: Line, wanted: float, low: float, high: float) -> float:
    """The crossing inside a bracket, to rounding."""
    from scipy.optimize import brentq

    def gap(x: float) -> float:
        value = float(line(x)[0]) - wanted
        return float(np.clip(value, -1e300, 1e300))  # brentq cannot use an infinite end, but its sign is right

    return float(brentq(gap, low, high, xtol=1e-300, rtol=8.9e-16, maxiter=500))


def _whole_solutions(grid: Array, values: Array, wanted: float, line: Line) -> Array:
    """For a whole-number parameter: the first value on the far side of each crossing."""
    found = list(grid[values == wanted])
    gap = values - wanted
    for i in np.flatnonzero(gap[:-1] * gap[1:] < 0):
        low, high = int(grid[i]), int(grid[i + 1])
        while high - low > 1:
            middle = (low + high) // 2
            if (float(line(float(middle))[0]) - wanted) * gap[i] > 0:
                low = middle
            else:
                high = middle
        found.append(float(high if gap[i] > 0 else low))
    return np.unique(np.asarray(found, dtype=float))


# -- minima ----------------------------------------------------------------------------------------------------------


def _minimum(line: Line, grid: Array, values: Array, sign: float = 1.0) -> tuple[float, bool]:
    """The global minimum of sign * observable: every local minimum of the scan refined, ends included."""
    candidates = [_refined(line, grid, values, int(i), sign) for i in _local_minima(values)]
    if not candidates:
        raise ValueError(f"{line.observable} is infinite everywhere for {line.parameter} in {line.bounds}: widen the bounds")
    best, _, at_bound = min(candidates, key=lambda candidate: candidate[1])
    return best, at_bound


def _local_minima(values: Array) -> NDArray[np.intp]:
    """Indices of the scan that no neighbour undercuts: of a flat stretch its ends, of very many the lowest."""
    padded = np.concatenate([[np.inf], values, [np.inf]])
    before, after = padded[:-2], padded[2:]
    inner = (values == before) & (values == after)
    found = np.flatnonzero(np.isfinite(values) & (values <= before) & (values <= after) & ~inner)
    return found[np.argsort(values[found], kind="stable")[:MOST_VALLEYS]]


def _refined(line: Line, grid: Array, values: Array, i: int, sign: float) -> tuple[float, float, bool]:
    """The minimum near a point of the scan: where it is, its value, and whether it is an end of the interval."""
    last = len(grid) - 1
    low, high = float(grid[max(i - 1, 0)]), float(grid[min(i + 1, last)])
    turn, value = minimise_on(lambda x: sign * line(x), low, high, line.bounds)
    if i in (0, last) and values[i] <= value:
        return float(grid[i]), float(values[i]), True
    return turn, value, False


def _whole_minimum(line: Line, grid: Array, values: Array, sign: float = 1.0) -> tuple[float, bool]:
    """The best whole number: the best of the scan, then the whole numbers between its neighbours."""
    i = int(np.argmin(values))
    low, high = float(grid[max(i - 1, 0)]), float(grid[min(i + 1, len(grid) - 1)])
    between = np.unique(np.round(np.linspace(low, high, int(min(high - low, 400)) + 1))).astype(float)
    best = float(between[np.argmin(sign * line(between))])
    return best, best in (grid[0], grid[-1])
