"""When to stop training: the minimum of the test error along a trajectory, and the window around it.

Every law with a test error along training times has one. For a two-layer network learning takes a time of order 1 and overfitting a
time of order m (docs/theory/two_layer_dynamics.md, section "Timeline"): between them lies a window in which the test error is within a
given share of its least value. For least squares the early stopping time plays the part of a penalty (docs/theory/early_stopping.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from typing import Any, overload

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from limitlab._core.law import Law
from limitlab.laws.dmft.two_layer import TwoLayerDynamics

__all__ = ["plan_stopping", "stop", "stopping_table"]

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
        The best time and the state there (train error and overlap where the law has them).
    learned, overfit
        First and last time at which the test error is within `slack` of the best one (`overfit` is inf if it never leaves).
    final_test_error, final_train_error
        At the end of the trajectory: the price of not stopping.
    accuracy
        Estimated relative error of the trajectory.
    """

    time: float
    test_error: float
    train_error: float | None
    overlap: float | None
    learned: float
    overfit: float
    final_test_error: float
    final_train_error: float | None
    accuracy: float

    def words(self) -> str:
        """What to do, in a sentence."""
        if np.isinf(self.overfit):
            return (
                f"up to the end the test error never rises far above its best value ({self.test_error:.4g} at time {self.time:.3g}): "
                f"train for a time of {self.learned:.3g} or longer"
            )
        return (
            f"stop at time {self.time:.3g} (test error {self.test_error:.4g}), in any case between {self.learned:.3g} and "
            f"{self.overfit:.3g}; training on to the end gives {self.final_test_error:.4g}"
        )


@overload
def stop(law: Law | None = None, over: None = None, *, end: float | None = None, slack: float = SLACK) -> StoppingPlan: ...
@overload
def stop(
    law: Law | None = None, over: Mapping[str, Sequence[Any]] = ..., *, end: float | None = None, slack: float = SLACK
) -> xr.Dataset: ...
def stop(
    law: Law | None = None,
    over: Mapping[str, Sequence[Any]] | None = None,
    *,
    end: float | None = None,
    slack: float = SLACK,
) -> StoppingPlan | xr.Dataset:
    """When to stop training: one plan, or with `over` a table of plans.

    Parameters
    ----------
    law
        Any law with a test error along training times: `TwoLayerDynamics` (the default), `EarlyStopping`, `MultiPassLeastSquares`, ...
    over
        Values by name of a parameter: plans on a grid.
    end
        Last time to look at (default: until the test error has risen).
    slack
        The window holds the times whose test error is at most (1 + slack) times the best.

    Returns
    -------
    StoppingPlan or xarray.Dataset
        `.time`, `.test_error`, `.learned`, `.overfit`, ...

    Examples
    --------
    >>> from limitlab.laws import EarlyStopping
    >>> plan = stop(EarlyStopping(ratio=0.8, noise=1.0))
    >>> plan.learned < plan.time < plan.overfit
    True
    """
    chosen = TwoLayerDynamics() if law is None else law
    if over:
        return stopping_table(chosen, over, end=end, slack=slack)
    return plan_stopping(chosen, end, slack)


def plan_stopping(law: Law, end: float | None = None, slack: float = SLACK, points: int = 400) -> StoppingPlan:
    """The best stopping time of a law, from its trajectory up to `end`.

    Parameters
    ----------
    law
        What is trained and its data; its own times are not used.
    end
        Last time to look at. Default: of a two-layer network 4 times the width, at least 20; of another law as long as it takes until the
        test error has left the window.
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
    if not can_stop(type(law)):
        raise ValueError(
            f"stopping {type(law).__name__} is not possible: it has no test error along training times; laws that have one are "
            "TwoLayerDynamics, EarlyStopping and MultiPassLeastSquares"
        )
    if not slack > 0:
        raise ValueError(f"slack = {slack} is not allowed: must be above 0")
    if end is not None and not end > 0:
        raise ValueError(f"end = {end:g} is not allowed: must be above 0")
    times, result = trajectory(law, end, slack, points)
    test = result.test_error.values
    best = int(np.argmin(test))
    inside = test <= (1 + slack) * test[best]
    later = np.flatnonzero(~inside[best:])
    earlier = np.flatnonzero(~inside[: best + 1])
    return StoppingPlan(
        time=_vertex(times, test, best),
        test_error=float(test[best]),
        train_error=_at(result, "train_error", best),
        overlap=_at(result, "overlap", best),
        learned=float(times[earlier[-1] + 1]) if earlier.size else 0.0,
        overfit=float(times[best + later[0] - 1]) if later.size else np.inf,
        final_test_error=float(test[-1]),
        final_train_error=_at(result, "train_error", -1),
        accuracy=float(result.attrs["accuracy"]),
    )


def can_stop(law: type[Law]) -> bool:
    """Whether a law has a test error along training times.

    >>> from limitlab.laws import EarlyStopping, Ridge
    >>> can_stop(EarlyStopping), can_stop(Ridge)
    (True, False)
    """
    times = law.parameters().get("times")
    return times is not None and times.kind == "coordinate" and "test_error" in law.outputs()


LOOKS, STRETCH = 7, 4.0
"""How often the end of a trajectory is moved, and by which factor, to find the rise of the test error."""


def trajectory(law: Law, end: float | None, slack: float, points: int) -> tuple[Floats, xr.Dataset]:
    """Times and what the law predicts there, up to `end` or until the test error has risen."""
    if isinstance(law, TwoLayerDynamics):
        last = max(20.0, 4.0 * law.width) if end is None else float(end)
        steps = int(np.ceil(STEPS_PER_TIME * last * max(1.0, law.fastest_rate())))
        law = law.replace(solver_steps=max(law.solver_steps, steps))
        first = min(8.0 * last / law.solver_steps, 0.1 * last)  # times that even the coarsest of the three grids resolves
        return _read(law, first, last, points)
    last, before = 4.0 if end is None else float(end), np.inf
    for _ in range(LOOKS if end is None else 0):
        test = _read(law, 1e-2 * last, last, 30)[1].test_error.values
        if test[-1] > (1 + slack) * test.min() or abs(test[-1] / before - 1) < 0.1 * slack:  # risen, or at rest
            break
        last, before = STRETCH * last, test[-1]
    return _read(law, 1e-4 * last, last, points)


def _read(law: Law, first: float, last: float, points: int) -> tuple[Floats, xr.Dataset]:
    times = np.concatenate([[0.0], np.geomspace(first, last, points)])
    return times, law.replace(times=tuple(times)).theory()


def _at(result: xr.Dataset, name: str, place: int) -> float | None:
    return float(result[name][place]) if name in result else None


def _vertex(times: Floats, values: Floats, best: int) -> float:
    """Minimum of the parabola through the least value and its neighbours."""
    if best in (0, values.size - 1):
        return float(times[best])
    curve = np.polyfit(times[best - 1 : best + 2], values[best - 1 : best + 2], 2)
    return float(-curve[1] / (2 * curve[0]))


def stopping_table(law: Law, over: Mapping[str, Sequence[Any]], **options: Any) -> xr.Dataset:
    """Plans on a grid of parameters (width, samples, noise, scale of the start, ...), one variable per attribute of `StoppingPlan`.

    Parameters
    ----------
    law
        What is trained; what is swept is replaced.
    over
        Values by name of the parameter.
    **options
        As for `plan_stopping`.

    Examples
    --------
    >>> network = TwoLayerDynamics(width=4, sample_ratio=2)
    >>> table = stopping_table(network, {"start_second_layer": [0.5, 2.0]}, end=10.0)
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
        if getattr(plans[0], field.name) is not None
    }
    return xr.Dataset(data, dict(zip(names, grids, strict=True)), {"slack": options.get("slack", SLACK)})
