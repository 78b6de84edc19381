"""Inverse problems of a law, which are the parameter value that reaches a target and the best parameter value.

An observable is first evaluated on a grid of values of one parameter (`Line`), in one call if the law takes an array. Then its
crossings are refined to rounding, and its minima to about 1e-12 if the observable is smooth.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from limitlab._core.arguments import explained
from limitlab._core.cost import Pace
from limitlab._core.declaration import Parameter
from limitlab._core.law import Law
from limitlab._core.registry import law_at_defaults
from limitlab.errors import Refused, UnreachableTarget, did_you_mean

__all__ = ["optimal", "plan"]

Array = NDArray[np.float64]
Preference = Literal["smallest", "largest", "nearest"]

SCAN_POINTS = {True: 600, False: 80}
"""Points of the first grid, if one call of the law serves all of them (True) or if each needs a call (False)."""
SAME = 1e-14
"""Relative spread below which an observable is considered constant."""
MOST_MINIMA = 24
"""The largest number of local minima of the first grid that are refined."""
LOG_RANGE = (1e-6, 1e6)
"""Range of a log-scaled parameter that has no bounds, if the user gives no interval."""
LINEAR_RANGE = 10.0
"""Range of a linear parameter without bounds, as a multiple of its scale."""


@explained
def plan(
    law: Law | str,
    target: Mapping[str, float],
    solve_for: str,
    bounds: tuple[float, float] | None = None,
    prefer: Preference = "smallest",
) -> xr.Dataset:
    """Find the value of a parameter at which an observable of the limit takes a target value.

    Parameters
    ----------
    law
        The law with the values of all other parameters, or its name for the default parameters.
    target
        One observable and its target value, such as `{"test_error": 0.3}`.
    solve_for
        The parameter to choose.
    bounds
        The interval of the parameter (default: its allowed range, reduced to a practical range).
    prefer
        Which of several answers is returned. A learning curve that is not monotone can have several answers. "nearest" is the
        answer nearest to the present value of the law. All answers are in `solutions`.

    Returns
    -------
    xarray.Dataset
        The observables at the answer, which is the coordinate `solve_for`; `solutions` lists every answer.

    Raises
    ------
    UnreachableTarget
        If no value in the bounds gives the target. The error states the closest value of the observable and the parameter at which
        it occurs.

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
    value = _choose(solutions, prefer, getattr(law, solve_for))
    return _answer(law, line, value).assign(
        solutions=("solution", solutions, {"long_name": f"every {solve_for} with {observable} = {wanted:g}"})
    )


@explained
def optimal(
    law: Law | str,
    over: str = "ridge",
    minimise: str = "test_error",
    bounds: tuple[float, float] | None = None,
) -> xr.Dataset:
    """Find the best value of a parameter, which is the global minimum of an observable of the limit.

    Parameters
    ----------
    law
        The law with the values of all other parameters, or its name for the default parameters.
    over
        The parameter to choose.
    minimise
        The observable to minimise.
    bounds
        The interval of the parameter (default: its allowed range, reduced to a practical range).

    Returns
    -------
    xarray.Dataset
        The observables at the optimum, which is the coordinate `over`; the attribute `at_bound` states whether it is an end of the
        interval.

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
        raise Refused(f"{type(law).__name__} has no observable {minimise!r}: {hint}; choose one with minimise (--minimise)")
    line = Line(law, over, minimise, bounds)
    grid = line.grid(SCAN_POINTS[over in law.array_parameters()])
    values = line(grid)
    if np.isfinite(values).all() and len(values) > 1 and np.ptp(values) <= SAME * np.abs(values).max():
        raise Refused(
            f"{minimise} does not depend on {over} between {grid[0]:g} and {grid[-1]:g}: minimise another "
            "observable, or choose another parameter"
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
        raise Refused(f"target = {dict(target)} is not allowed: give exactly one observable and its value")
    ((observable, wanted),) = target.items()
    if not np.isfinite(wanted):
        raise Refused(f"target {observable} = {wanted} is not allowed: must be a finite number")
    return observable, float(wanted)


def _choose(solutions: Array, prefer: Preference, present: float) -> float:
    if prefer not in ("smallest", "largest", "nearest"):
        raise Refused(f"prefer = {prefer!r} is not allowed: must be 'smallest', 'largest' or 'nearest'")
    if prefer == "nearest":
        return float(solutions[np.argmin(np.abs(solutions - float(present)))])
    return float(solutions[0] if prefer == "smallest" else solutions[-1])


def _unreachable(line: Line, grid: Array, values: Array, wanted: float) -> UnreachableTarget:
    """Return the error for a target that the law does not reach, with the value of the law that is closest to the target."""
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
    """Return intervals in which the observable crosses the target.

    A narrow peak or dip between grid points is included.
    """
    gap = values - wanted
    brackets = [(float(grid[i]), float(grid[i + 1])) for i in np.flatnonzero(gap[:-1] * gap[1:] < 0)]
    for i in range(1, len(grid) - 1):
        flat = gap[i] == gap[i - 1]  # in a constant part only the end can contain a turn
        dips = not flat and 0 < gap[i] <= min(gap[i - 1], gap[i + 1])
        peaks = not flat and 0 > gap[i] >= max(gap[i - 1], gap[i + 1])
        if not (dips or peaks) or not np.isfinite(gap[i - 1 : i + 2]).all():
            continue
        sign = 1.0 if dips else -1.0
        turn, value = minimise_between(lambda x, s=sign: s * line(x), float(grid[i - 1]), float(grid[i + 1]), line.bounds)  # type: ignore[misc]
        if sign * value < wanted if dips else sign * value > wanted:
            brackets += [(float(grid[i - 1]), turn), (turn, float(grid[i + 1]))]
    return brackets


def _root(line: Line, wanted: float, low: float, high: float) -> float:
    """Return the crossing inside a bracket, to rounding."""
    from scipy.optimize import brentq

    def gap(x: float) -> float:
        value = float(line(x)[0]) - wanted
        return float(np.clip(value, -1e300, 1e300))  # brentq needs a finite end, and only its sign matters

    return float(brentq(gap, low, high, xtol=1e-300, rtol=8.9e-16, maxiter=500))


def _whole_solutions(grid: Array, values: Array, wanted: float, line: Line) -> Array:
    """Return the solutions of a whole-number parameter, which are the first values on the far side of each crossing."""
    solutions = list(grid[values == wanted])
    gap = values - wanted
    for i in np.flatnonzero(gap[:-1] * gap[1:] < 0):
        low, high = int(grid[i]), int(grid[i + 1])
        while high - low > 1:
            middle = (low + high) // 2
            if (float(line(float(middle))[0]) - wanted) * gap[i] > 0:
                low = middle
            else:
                high = middle
        solutions.append(float(high if gap[i] > 0 else low))
    return np.unique(np.asarray(solutions, dtype=float))


# -- minima ----------------------------------------------------------------------------------------------------------


def _minimum(line: Line, grid: Array, values: Array, sign: float = 1.0) -> tuple[float, bool]:
    """Return the global minimum of sign * observable, and whether it is an end of the interval.

    Every local minimum of the grid is refined.
    """
    candidates = [_refined(line, grid, values, int(i), sign) for i in _local_minima(values)]
    if not candidates:
        raise Refused(f"{line.observable} is infinite everywhere for {line.parameter} in {line.bounds}: widen the bounds")
    best, _, at_bound = min(candidates, key=lambda candidate: candidate[1])
    return best, at_bound


def _local_minima(values: Array) -> NDArray[np.intp]:
    """Return the indices of local minima of the grid.

    For a constant part these are its two ends. If there are more than `MOST_MINIMA` minima, only the lowest are returned.
    """
    padded = np.concatenate([[np.inf], values, [np.inf]])
    before, after = padded[:-2], padded[2:]
    inner = (values == before) & (values == after)
    minima = np.flatnonzero(np.isfinite(values) & (values <= before) & (values <= after) & ~inner)
    return minima[np.argsort(values[minima], kind="stable")[:MOST_MINIMA]]


def _refined(line: Line, grid: Array, values: Array, i: int, sign: float) -> tuple[float, float, bool]:
    """Return the minimum near a point of the grid, its value, and whether it is an end of the interval."""
    last = len(grid) - 1
    low, high = float(grid[max(i - 1, 0)]), float(grid[min(i + 1, last)])
    turn, value = minimise_between(lambda x: sign * line(x), low, high, line.bounds)
    if i in (0, last) and values[i] <= value:
        return float(grid[i]), float(values[i]), True
    return turn, value, False


def _whole_minimum(line: Line, grid: Array, values: Array, sign: float = 1.0) -> tuple[float, bool]:
    """Return the best whole number, from the grid and from the whole numbers between the neighbours of its best point."""
    i = int(np.argmin(values))
    low, high = float(grid[max(i - 1, 0)]), float(grid[min(i + 1, len(grid) - 1)])
    between = np.unique(np.round(np.linspace(low, high, int(min(high - low, 400)) + 1))).astype(float)
    best = float(between[np.argmin(sign * line(between))])
    return best, best in (grid[0], grid[-1])


# -- one parameter ------------------------------------------------------------------------------------------------------


class Line:
    """One observable of a law as a function of one of its parameters.

    Parameters
    ----------
    law
        The law, which sets all other parameters.
    parameter, observable
        Names.
    bounds
        The interval (default: the allowed range of the parameter, reduced to a practical range).

    Examples
    --------
    >>> from limitlab.laws import Ridge
    >>> line = Line(Ridge(noise=0.5), "ridge", "test_error", (0.0, 1.0))
    >>> line.grid(4).round(9).tolist()
    [0.0, 1e-06, 0.001, 1.0]
    """

    def __init__(self, law: Law, parameter: str, observable: str, bounds: tuple[float, float] | None = None):
        metas = type(law).parameters()
        if parameter not in metas:
            raise Refused(f"{type(law).__name__} has no parameter {parameter!r}: {did_you_mean(parameter, metas)}")
        self.law, self.parameter, self.observable = law, parameter, observable
        self.meta = metas[parameter]
        self._evaluated, self._pace = 0, Pace(f"looking along {parameter} of {type(law).__name__}")
        self.whole = type(law).model_fields[parameter].annotation is int
        if self.whole is False and not _is_number(type(law), parameter):
            raise Refused(f"{parameter!r} of {type(law).__name__} is not a single number: choose another parameter")
        self.bounds = _checked_bounds(self.meta, bounds)
        if bounds is None:  # some parameters are tied to others, such as neighbours to samples
            self.bounds = (self._allowed(self.bounds[0]), self._allowed(self.bounds[1]))
        if observable not in law.observed():
            hint = did_you_mean(observable, law.observed())
            raise Refused(f"{type(law).__name__} has no observable {observable!r}: {hint}")

    @property
    def log(self) -> bool:
        """Whether values of the parameter are spaced geometrically."""
        return self.meta.scale == "log" and self.bounds[0] >= 0

    def grid(self, points: int) -> Array:
        """Return the values of the first grid.

        The spacing is geometric for a log-scaled parameter (with the exact 0 if it is allowed). It is also geometric for a whole-number
        parameter, with rounding to whole numbers. For other parameters the values are evenly spaced.
        """
        low, high = self.bounds
        if self.whole:
            return np.unique(np.round(np.geomspace(max(low, 1), high, points)))
        if not self.log:
            return np.linspace(low, high, points)
        if low > 0:
            return np.geomspace(low, high, points)
        floor = min(LOG_RANGE[0], high * 1e-6)
        return np.concatenate([[0.0], np.geomspace(floor, high, points - 1)])

    def __call__(self, values: Array | float) -> Array:
        """Return the observable at these values of the parameter."""
        values = np.atleast_1d(np.asarray(values, dtype=float))
        if self.parameter in self.law.array_parameters():
            result = np.asarray(self.law.evaluate(**{self.parameter: values})[self.observable], dtype=float)
            if result.ndim > 1:
                raise Refused(_not_scalar(self.observable, result.shape[1:]))
            self._evaluated += values.size
            self._pace.at(self._evaluated)
            return np.broadcast_to(result, values.shape)
        return np.array([self._at(value) for value in values])

    def _allowed(self, end: float) -> float:
        """Return an end of the range, or the nearest value that the law accepts.

        The value is found by bisection from the present value of the law.
        """
        present = getattr(self.law, self.parameter)
        if not isinstance(present, (int, float)) or self._accepts(end):
            return end
        inside, outside = float(present), end
        for _ in range(60):
            middle = (inside + outside) / 2
            middle = round(middle) if self.whole else middle
            inside, outside = (middle, outside) if self._accepts(middle) else (inside, middle)
        return inside

    def _accepts(self, value: float) -> bool:
        try:
            self.law.replace(**{self.parameter: int(value) if self.whole else float(value)})
        except ValueError:
            return False
        return True

    def _at(self, value: float) -> float:
        result = self.law.replace(**{self.parameter: int(value) if self.whole else float(value)}).theory()
        if self.observable not in result:
            raise Refused(
                f"{type(self.law).__name__} has no {self.observable} at {self.parameter} = {value:g}, because it does not exist there: "
                "give bounds without this value"
            )
        value_there = result[self.observable]
        if value_there.size != 1:
            raise Refused(_not_scalar(self.observable, value_there.shape))
        self._evaluated += 1
        self._pace.at(self._evaluated)
        return float(value_there.item())


def _not_scalar(observable: str, shape: tuple[int, ...]) -> str:
    return f"{observable} has shape {shape} here: give the law a single value of its coordinate (time, ...)"


def _is_number(law: type[Law], parameter: str) -> bool:
    annotation = law.model_fields[parameter].annotation
    union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    return annotation in (int, float) or (union and float in typing.get_args(annotation))


def _checked_bounds(meta: Parameter, bounds: tuple[float, float] | None) -> tuple[float, float]:
    low = next((float(bound) for bound in (meta.least, meta.above) if bound is not None), None)
    high = next((float(bound) for bound in (meta.most, meta.below) if bound is not None), None)
    if bounds is not None:
        start, stop = map(float, bounds)
        if not start < stop or not np.isfinite([start, stop]).all():
            raise Refused(f"bounds = {tuple(bounds)} are not allowed: give two finite numbers, the smaller one first")
        if (low is not None and start < low) or (high is not None and stop > high):
            raise Refused(f"bounds = {tuple(bounds)} are not allowed: {meta.name} must be {meta.allowed}")
        return start, stop
    if meta.scale == "log":
        start = max(low if low is not None else 0.0, 0.0)
        if meta.least is None or start > 0:  # an open lower bound at 0 is not itself a value
            start = max(start, LOG_RANGE[0]) if meta.above is not None and start == 0 else start
        return start, LOG_RANGE[1] if high is None else high
    size = LINEAR_RANGE * max(1.0, abs(float(meta.default)) if isinstance(meta.default, (int, float)) else 1.0)
    return (low if low is not None else -size), (high if high is not None else size)


def minimise_between(
    line: Callable[[Array], Array], low: float, high: float, bounds: tuple[float, float] | None = None
) -> tuple[float, float]:
    """Return the minimum of a smooth function inside [low, high] and its value, to about 1e-12.

    A comparison of values locates a minimum only to the square root of rounding, about 1e-8. A Chebyshev series on a wider interval
    (inside `bounds`) uses the smoothness. If the series converges to rounding, the zero of its derivative is the minimum to about
    1e-12. If it does not converge, because the function has a kink or a pole nearby, shorter intervals are tried. The last resort
    is the minimum from the comparison of values.

    >>> x, value = minimise_between(lambda x: np.cosh(x - 0.3), -0.5, 1.0, bounds=(-1.0, 2.0))
    >>> bool(abs(x - 0.3) < 1e-11), value
    (True, 1.0)
    """
    from scipy.optimize import minimize_scalar

    coarse = minimize_scalar(
        lambda x: float(line(np.array([x]))[0]), bounds=(low, high), method="bounded", options={"xatol": 1e-8}
    )
    best = float(coarse.x)
    first, last = bounds if bounds is not None else (low, high)
    for width in (0.5 * abs(best), 0.1 * abs(best), (high - low) / 2):
        refined = _stationary(line, max(first, best - width), min(last, best + width), best)
        if refined is not None and low <= refined <= high:
            return refined, float(line(np.array([refined]))[0])
    return best, float(coarse.fun)


def _stationary(line: Callable[[Array], Array], start: float, stop: float, near: float) -> float | None:
    """Return the zero of the derivative nearest to `near`, from a Chebyshev series; None if the series has not converged."""
    from numpy.polynomial import Chebyshev

    if not start < near < stop:
        return None
    points = 32
    nodes = start + (stop - start) * (1 - np.cos(np.pi * (np.arange(points) + 0.5) / points)) / 2
    values = line(nodes)
    if not np.isfinite(values).all():
        return None
    series = Chebyshev.fit(nodes, values, points - 1, domain=[start, stop])
    size = np.abs(series.coef)
    if size[-4:].max() > 1e-13 * size.max() or not size.any():  # not resolved, or zero everywhere
        return None
    series = series.truncate(int(np.flatnonzero(size > 1e-15 * size.max())[-1]) + 1)
    roots = series.deriv().roots()
    inside = roots.real[np.abs(roots.imag) < 1e-7 * (stop - start)]
    return float(inside[np.argmin(np.abs(inside - near))]) if inside.size else None
