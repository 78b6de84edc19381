"""Looking along one parameter of a law: where to look, and the observable there (vectorised where the law can)."""

from __future__ import annotations

import typing
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import did_you_mean
from limitlab.laws.base import Law
from limitlab.laws.parameters import Parameter

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
    >>> line = Line(Ridge(noise=0.5), "ridge", "test_error", (0.0, 10.0))
    >>> line.grid(5).tolist()
    [0.0, 1e-05, 0.001, 0.1, 10.0]
    """

    def __init__(self, law: Law, parameter: str, observable: str, bounds: tuple[float, float] | None = None):
        metas = type(law).parameters()
        if parameter not in metas:
            raise ValueError(f"{type(law).__name__} has no parameter {parameter!r}: {did_you_mean(parameter, metas)}")
        self.law, self.parameter, self.observable = law, parameter, observable
        self.meta = metas[parameter]
        self.whole = type(law).model_fields[parameter].annotation is int
        if self.whole is False and not _is_number(type(law), parameter):
            raise ValueError(f"{parameter!r} of {type(law).__name__} is not a single number: choose another parameter")
        self.bounds = _checked_bounds(self.meta, bounds)
        if observable not in law.observables:
            hint = did_you_mean(observable, law.observables)
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
        if self.parameter in self.law.array_parameters:
            found = np.asarray(self.law.evaluate(**{self.parameter: values})[self.observable], dtype=float)
            if found.ndim > 1:
                raise ValueError(_not_scalar(self.observable, found.shape[1:]))
            return np.broadcast_to(found, values.shape)
        return np.array([self._one(value) for value in values])

    def _one(self, value: float) -> float:
        found = self.law.replace(**{self.parameter: int(value) if self.whole else float(value)}).theory()[self.observable]
        if found.size != 1:
            raise ValueError(_not_scalar(self.observable, found.shape))
        return float(found.item())


def _not_scalar(observable: str, shape: tuple[int, ...]) -> str:
    return f"{observable} has shape {shape} here: give the law a single value of its coordinate (time, ...)"


def _is_number(law: type[Law], parameter: str) -> bool:
    annotation = law.model_fields[parameter].annotation
    return annotation in (int, float) or float in typing.get_args(annotation)


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


def minimise(line: Callable[[Array], Array], low: float, high: float) -> tuple[float, float]:
    """The minimum of a smooth function inside a bracket, far below the square root of rounding.

    Comparing values alone locates a minimum only to about 1e-8. Fitting a Chebyshev series on a shrinking interval and
    solving for the zero of its derivative uses the smoothness, and reaches about 1e-12.

    >>> x, value = minimise(lambda x: np.cosh(x - 0.3), -1.0, 2.0)
    >>> bool(abs(x - 0.3) < 1e-11), value
    (True, 1.0)
    """
    from numpy.polynomial import Chebyshev
    from scipy.optimize import minimize_scalar

    coarse = minimize_scalar(lambda x: float(line(np.array([x]))[0]), bounds=(low, high), method="bounded", options={"xatol": 1e-7})
    best = float(coarse.x)
    for width in (0.1 * (high - low), 0.03 * (high - low)):
        start, stop = max(low, best - width), min(high, best + width)
        nodes = start + (stop - start) * (1 - np.cos(np.pi * (np.arange(17) + 0.5) / 17)) / 2
        values = line(nodes)
        if not np.isfinite(values).all():
            break
        slope = Chebyshev.fit(nodes, values, 16, domain=[start, stop]).deriv()
        roots = slope.roots()
        inside = roots.real[(np.abs(roots.imag) < 1e-6 * (stop - start)) & (roots.real > start) & (roots.real < stop)]
        if not inside.size:
            break
        best = float(inside[np.argmin(np.abs(inside - best))])
    return best, float(line(np.array([best]))[0])
