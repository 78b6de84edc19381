"""Looking along one parameter of a law: where to look, and the observable there (vectorised where the law can)."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from limitlab._core.cost import Pace
from limitlab._core.law import Law
from limitlab._core.parameters import Parameter
from limitlab.errors import did_you_mean

Array = NDArray[np.float64]

LOG_RANGE = (1e-6, 1e6)
"""Where a log-scaled parameter is looked for when neither the user nor its bounds say."""
LINEAR_RANGE = 10.0
"""The same for a linear one: up to this many times its scale."""


class Line:
    """One observable of a law as a function of one of its parameters.

    Parameters
    ----------
    law
        The law; its other parameters stay as they are.
    parameter, observable
        Names.
    bounds
        Interval to look in; by default the parameter's own, cut to a practical range.

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
            raise ValueError(f"{type(law).__name__} has no parameter {parameter!r}: {did_you_mean(parameter, metas)}")
        self.law, self.parameter, self.observable = law, parameter, observable
        self.meta = metas[parameter]
        self._looked, self._pace = 0, Pace(f"looking along {parameter} of {type(law).__name__}")
        self.whole = type(law).model_fields[parameter].annotation is int
        if self.whole is False and not _is_number(type(law), parameter):
            raise ValueError(f"{parameter!r} of {type(law).__name__} is not a single number: choose another parameter")
        self.bounds = _checked_bounds(self.meta, bounds)
        if bounds is None:  # some parameters are tied to others, such as neighbours to samples
            self.bounds = (self._allowed(self.bounds[0]), self._allowed(self.bounds[1]))
        if observable not in law.observed():
            hint = did_you_mean(observable, law.observed())
            raise ValueError(f"{type(law).__name__} has no observable {observable!r}: {hint}")

    @property
    def log(self) -> bool:
        """Whether the parameter is spaced geometrically."""
        return self.meta.scale == "log" and self.bounds[0] >= 0

    def grid(self, points: int) -> Array:
        """Points to look at: geometric for a log-scaled parameter (with the exact 0 where allowed), else linear."""
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
        """The observable at these values of the parameter."""
        values = np.atleast_1d(np.asarray(values, dtype=float))
        if self.parameter in self.law.array_parameters():
            found = np.asarray(self.law.evaluate(**{self.parameter: values})[self.observable], dtype=float)
            if found.ndim > 1:
                raise ValueError(_not_scalar(self.observable, found.shape[1:]))
            self._looked += values.size
            self._pace.at(self._looked)
            return np.broadcast_to(found, values.shape)
        return np.array([self._one(value) for value in values])

    def _allowed(self, end: float) -> float:
        """This end of the range, or the value nearest to it (by bisection from the present one) that the law accepts."""
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

    def _one(self, value: float) -> float:
        result = self.law.replace(**{self.parameter: int(value) if self.whole else float(value)}).theory()
        if self.observable not in result:
            raise ValueError(
                f"{type(self.law).__name__} has no {self.observable} at {self.parameter} = {value:g} (it does not exist there): give "
                "bounds that keep clear of it"
            )
        found = result[self.observable]
        if found.size != 1:
            raise ValueError(_not_scalar(self.observable, found.shape))
        self._looked += 1
        self._pace.at(self._looked)
        return float(found.item())


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
            raise ValueError(f"bounds = {tuple(bounds)} are not allowed: give two finite numbers, the smaller one first")
        if (low is not None and start < low) or (high is not None and stop > high):
            raise ValueError(f"bounds = {tuple(bounds)} leave the range of {meta.name}: must be {meta.allowed}")
        return start, stop
    if meta.scale == "log":
        start = max(low if low is not None else 0.0, 0.0)
        if meta.least is None or start > 0:  # an open lower bound at 0 is not itself a value
            start = max(start, LOG_RANGE[0]) if meta.above is not None and start == 0 else start
        return start, LOG_RANGE[1] if high is None else high
    size = LINEAR_RANGE * max(1.0, abs(float(meta.default)) if isinstance(meta.default, (int, float)) else 1.0)
    return (low if low is not None else -size), (high if high is not None else size)


def minimise(
    line: Callable[[Array], Array], low: float, high: float, bounds: tuple[float, float] | None = None
) -> tuple[float, float]:
    """The minimum of a smooth function inside the bracket [low, high], far below the square root of rounding.

    Comparing values alone locates a minimum only to about 1e-8. A Chebyshev series on a wider interval (inside `bounds`) uses the
    smoothness: where it converges to rounding, the zero of its derivative is the minimum to about 1e-12. Where it does not, because
    the function has a kink or a pole nearby, the interval shrinks, and in the end the comparison of values stands.

    >>> x, value = minimise(lambda x: np.cosh(x - 0.3), -0.5, 1.0, bounds=(-1.0, 2.0))
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
    """The zero of the derivative nearest to `near`, from a Chebyshev series that has converged; None when it has not."""
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
