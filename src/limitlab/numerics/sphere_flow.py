"""Flows on spheres dx/dt = P_x F(t, x) of points x of unit length, where P_x y = y - <x, y> x.

States are arrays whose last axis has unit length. Leading axes (points, systems) are integrated together. A `Drift` F does not
include the projection. The methods and their orders (measured in tests/numerics/test_sphere_flow.py) are:

- "rk4": classical Runge-Kutta on the projected field, renormalised after every step (order 4).
- "exponential": motion at constant speed along the great circle in the direction of the velocity, for a time h (order 1).
- "projected": normalise(x + h P_x F) (order 1).
- "layers": normalise(x + h F), which is the map of a layer of a network with layer normalisation (order 1). Time advances more
  slowly by the factor 1 + h <x, F>. With the corrected step h / (1 - h <x, F>) the map is exactly "projected".
- "adaptive": an explicit Runge-Kutta method of order 8 with error control.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.checks import array, number, one_of, refuse
from limitlab.errors import ConvergenceError
from limitlab.numerics.ode import follow, runge_kutta, solved

Array = NDArray[Any]
Drift = Callable[[float, Array], Array]
Step = Callable[[Drift, float, Array, float], Array]
Method = Literal["rk4", "exponential", "projected", "layers", "adaptive"]

NORM_DRIFT = 1e-6
"""Largest departure from unit length of an adaptive solution. A solution with a smaller departure is normalised."""


def normalise(x: Array) -> Array:
    """Return the rows divided by their lengths.

    >>> normalise(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    refuse(
        not np.all(length > 0),
        "a row of length 0 is not allowed: it has no direction; remove it or move it slightly",
    )
    return np.asarray(x / length)


def tangent(x: Array, y: Array) -> Array:
    """Return the part of y orthogonal to x, row by row.

    >>> tangent(np.array([1.0, 0.0]), np.array([2.0, 3.0]))
    array([0., 3.])
    """
    return np.asarray(y - np.einsum("...d,...d->...", x, y)[..., None] * x)


def exponential_map(x: Array, v: Array) -> Array:
    """Return the point on the great circle from x with initial velocity v (tangent at x) after unit time.

    >>> exponential_map(np.array([1.0, 0.0]), np.array([0.0, np.pi / 2])).round(12)
    array([0., 1.])
    """
    speed = np.linalg.norm(v, axis=-1, keepdims=True)
    return np.asarray(np.cos(speed) * x + np.sinc(speed / np.pi) * v)


def _rk4(field: Drift, t: float, x: Array, h: float) -> Array:
    return np.asarray(runge_kutta(lambda time, y: tangent(y, field(time, y)), normalise)(t, x, h))


def _exponential(field: Drift, t: float, x: Array, h: float) -> Array:
    return normalise(exponential_map(x, h * tangent(x, field(t, x))))  # removes accumulated rounding errors of the length


def _projected(field: Drift, t: float, x: Array, h: float) -> Array:
    return normalise(x + h * tangent(x, field(t, x)))


def _layers(field: Drift, t: float, x: Array, h: float) -> Array:
    return normalise(x + h * field(t, x))


STEPS: dict[str, Step] = {"rk4": _rk4, "exponential": _exponential, "projected": _projected, "layers": _layers}


def flow_on_spheres(
    field: Drift,
    start: Array,
    times: ArrayLike,
    *,
    method: Method = "rk4",
    step: float = 0.05,
    tolerance: float = 1e-11,
) -> Array:
    """Return the states of dx/dt = P_x field(t, x) at the times, with x = start at time 0 and P_x y = y - <x, y> x.

    Parameters
    ----------
    field
        The drift F(t, x) without projection, of the shape of x.
    start
        Array whose last axis has unit length.
    times
        A time, or increasing times, all at least 0.
    method, step
        The methods are in the module's docstring. Each interval between two times is divided into equal steps of at most `step`.
    tolerance
        Relative tolerance of "adaptive".

    Returns
    -------
    ndarray
        Shape (times, *start.shape), or start.shape for a single time.

    Examples
    --------
    With the drift to a pole, the angle between x and the pole satisfies tan(angle(t) / 2) = e^-t tan(angle(0) / 2).

    >>> pole = np.array([0.0, 1.0])
    >>> x = flow_on_spheres(lambda t, x: pole, np.array([1.0, 0.0]), 1.0, method="adaptive")
    >>> bool(abs(np.tan(np.arccos(x[1]) / 2) - np.exp(-1)) < 1e-10)
    True
    """
    one_of("method", method, (*STEPS, "adaptive"))
    step = number("step", step, above=0)
    grid = checked_times(times)
    if method == "adaptive":
        states = _adaptive(field, start, grid, tolerance)
    else:
        states = _fixed(STEPS[method], field, start, grid, step)
    return states if np.ndim(times) else np.asarray(states[0])


def checked_times(times: ArrayLike) -> NDArray[np.float64]:
    """Return times as a one-dimensional array of numbers of at least 0 that do not decrease."""
    grid = array("times", np.atleast_1d(times), shape=("n",), least=0)
    refuse(np.any(np.diff(grid) < 0), f"times = {times!r} is not allowed: must be in increasing order")
    return grid


def _fixed(advance: Step, field: Drift, start: Array, grid: NDArray[np.float64], step: float) -> Array:
    states = np.empty((grid.size, *start.shape), dtype=start.dtype)

    def advance_state(t: float, x: Array, h: float) -> Array:
        return advance(field, t, x, h).astype(start.dtype, copy=False)

    for index, x in enumerate(follow(advance_state, start, grid, step)):
        states[index] = x
        if not np.isfinite(x).all():
            raise ConvergenceError(
                f"the flow is not finite at time {grid[index]:g}: use a smaller step than {step:g}", states[:index]
            )
    return states


def _adaptive(field: Drift, start: Array, grid: NDArray[np.float64], tolerance: float) -> Array:
    def velocity(t: float, flat: Array) -> Array:
        x = flat.reshape(start.shape)
        return tangent(x, field(t, x)).ravel()

    if grid[-1] == 0:
        return np.tile(start, (grid.size, *(1,) * start.ndim))
    first = np.asarray(start, dtype=np.float64).ravel()
    rows = solved(
        velocity, first, grid, max(tolerance, 3e-14), tolerance, implicit_at_rest=False
    )  # the implicit method would leave the sphere
    states = rows.reshape(grid.size, *start.shape)
    drift = float(np.abs(np.linalg.norm(states, axis=-1) - 1).max())
    if not drift < NORM_DRIFT:
        raise ConvergenceError(f"the flow left the sphere by {drift:.1e}: use a smaller tolerance", states, drift)
    return normalise(states)
