"""When to stop training a two-layer network: the minimum of the test error along a trajectory, and the window around it.

Learning takes a time of order 1, overfitting a time of order m (docs/theory/two_layer_dynamics.md, section "Timeline"): between them lies
a window in which the test error is within a given share of its least value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from limitlab.laws.dmft.two_layer import TwoLayerDynamics

Floats = NDArray[np.float64]

SLACK = 0.05
"""How far above the best test error the window reaches, unless told otherwise."""

STEPS_PER_TIME = 8
"""Steps per unit of time, or per time of the fastest mode if that is shorter, unless the law has more: enough for four digits."""

ABOUT: dict[str, dict[str, str]] = {
    "time": dict(long_name="best time to stop", symbol=r"t_{opt}"),
    "test_error": dict(long_name="test error there"),
    "train_error": dict(long_name="train error there"),
    "overlap": dict(long_name="overlap there", symbol="v"),
    "learned": dict(long_name="start of the window"),
    "overfit": dict(long_name="end of the window"),
    "final_test_error": dict(long_name="test error at the end"),
    "final_train_error": dict(long_name="train error at the end"),
    "accuracy": dict(long_name="relative error of the trajectory"),
}


@dataclass(frozen=True)
class StoppingPlan:
    """When to stop, and how much it matters.

    Attributes
    ----------
    time, test_error, train_error, overlap
        The best time and the state there.
    learned, overfit
        First and last time at which the test error is within `slack` of the best one (`overfit` is inf if it never leaves).
    final_test_error, final_train_error
        At the end of the trajectory: the price of not stopping.
    accuracy
        Estimated relative error of the trajectory.
    """

    time: float
    test_error: float
    train_error: float
    overlap: float
    learned: float
    overfit: float
    final_test_error: float
    final_train_error: float
    accuracy: float


def plan_stopping(law: TwoLayerDynamics, end: float | None = None, slack: float = SLACK, points: int = 400) -> StoppingPlan:
    """The best stopping time of a network, from its trajectory up to `end` (default 4 times the width, at least 20).

    Parameters
    ----------
    law
        The network and its data; its own times are not used.
    end
        Last time to look at.
    slack
        The window holds the times whose test error is at most (1 + slack) times the best.
    points
        Times at which the trajectory is read.

    Examples
    --------
    >>> plan = plan_stopping(TwoLayerDynamics(width=4, sample_ratio=2, solver_steps=200), end=20.0)
    >>> plan.learned < plan.time < plan.overfit
    True
    """
    if not slack > 0:
        raise ValueError(f"slack = {slack} is not allowed: must be above 0")
    last = max(20.0, 4.0 * law.width) if end is None else float(end)
    if not last > 0:
        raise ValueError(f"end = {last:g} is not allowed: must be above 0")
    law = law.replace(solver_steps=max(law.solver_steps, int(np.ceil(STEPS_PER_TIME * last * max(1.0, law.fastest_rate())))))
    first = min(8.0 * last / law.solver_steps, 0.1 * last)  # times that even the coarsest of the three grids resolves
    times = np.concatenate([[0.0], np.geomspace(first, last, points)])
    result = law.replace(times=tuple(times)).theory()
    test = result.test_error.values
    best = int(np.argmin(test))
    inside = test <= (1 + slack) * test[best]
    later = np.flatnonzero(~inside[best:])
    earlier = np.flatnonzero(~inside[: best + 1])
    return StoppingPlan(
        time=_vertex(times, test, best),
        test_error=float(test[best]),
        train_error=float(result.train_error[best]),
        overlap=float(result.overlap[best]),
        learned=float(times[earlier[-1] + 1]) if earlier.size else 0.0,
        overfit=float(times[best + later[0] - 1]) if later.size else np.inf,
        final_test_error=float(test[-1]),
        final_train_error=float(result.train_error[-1]),
        accuracy=float(result.attrs["accuracy"]),
    )


def _vertex(times: Floats, values: Floats, best: int) -> float:
    """Minimum of the parabola through the least value and its neighbours."""
    if best in (0, values.size - 1):
        return float(times[best])
    curve = np.polyfit(times[best - 1 : best + 2], values[best - 1 : best + 2], 2)
    return float(-curve[1] / (2 * curve[0]))


def stopping_table(law: TwoLayerDynamics, over: Mapping[str, Sequence[Any]], **options: Any) -> xr.Dataset:
    """Plans on a grid of parameters (width, samples, noise, scale of the start, ...), one variable per attribute of `StoppingPlan`.

    Parameters
    ----------
    law
        The network; what is swept is replaced.
    over
        Values by name of the parameter.
    **options
        As for `plan_stopping`.

    Examples
    --------
    >>> table = stopping_table(TwoLayerDynamics(width=4, sample_ratio=2), {"start_second_layer": [0.5, 2.0]}, end=10.0)
    >>> bool(table.test_error[0] < table.test_error[1])  # a small start generalises better
    True
    """
    names, grids = list(over), [list(values) for values in over.values()]
    shape = tuple(len(values) for values in grids)
    if not names or 0 in shape:
        raise ValueError(f"over = {dict(over)} is not allowed: give at least one parameter and one value of each")
    plans = [plan_stopping(law.replace(**dict(zip(names, point, strict=True))), **options) for point in product(*grids)]
    data = {
        field.name: (names, np.array([getattr(plan, field.name) for plan in plans]).reshape(shape), ABOUT[field.name])
        for field in fields(StoppingPlan)
    }
    return xr.Dataset(data, dict(zip(names, grids, strict=True)), {"slack": options.get("slack", SLACK)})
