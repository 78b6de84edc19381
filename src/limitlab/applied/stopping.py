"""Stopping times of training, at the minimum of the test error along a trajectory, and the window of good times.

The functions accept every law with a test error along training times. A two-layer network learns in a time of order 1 and overfits in a
time of order m (docs/theory/two_layer_dynamics.md, section "Timeline"). Between these times lies a window in which the test error is close
to its smallest value. For least squares, early stopping acts like a penalty (docs/theory/early_stopping.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from limitlab._core.arguments import explained
from limitlab._core.law import Law
from limitlab.applied.training_curve import TrainingForecast, stop_training
from limitlab.errors import Refused
from limitlab.laws.dmft.two_layer import TwoLayerDynamics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plan_stopping", "stop", "stopping_figure", "stopping_table"]

Floats = NDArray[np.float64]

SLACK = 0.05
"""Default relative excess over the best test error that is allowed in the window."""

STEPS_PER_TIME = 8
"""Fewest steps per unit of time, or per time of the fastest mode if that is shorter. They give four correct digits."""

ABOUT: dict[str, dict[str, str]] = {
    "time": dict(long_name="best time to stop", symbol=r"t_{opt}"),
    "test_error": dict(long_name="test error at the best time"),
    "train_error": dict(long_name="train error at the best time"),
    "overlap": dict(long_name="overlap at the best time", symbol="v"),
    "learned": dict(long_name="start of the window"),
    "overfit": dict(long_name="end of the window"),
    "final_test_error": dict(long_name="test error at the end"),
    "final_train_error": dict(long_name="train error at the end"),
    "accuracy": dict(long_name="relative error of the trajectory"),
}


@dataclass(frozen=True)
class StoppingPlan:
    """The best time to stop training, and the errors there and at the end.

    Attributes
    ----------
    time, test_error, train_error, overlap
        The best time, and the errors and the overlap at this time (train error and overlap only if the law has them).
    learned, overfit
        First and last time of the window in which the test error is at most (1 + slack) times the best. `overfit` is inf if the window does
        not end.
    final_test_error, final_train_error
        The errors at the end of the trajectory, without early stopping.
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
        """Return a recommendation as a sentence."""
        if np.isinf(self.overfit):
            return (
                f"the test error stays close to its best value ({self.test_error:.4g} at time {self.time:.3g}) up to the end; "
                f"train for a time of {self.learned:.3g} or longer"
            )
        return (
            f"stop at time {self.time:.3g} (test error {self.test_error:.4g}), or at any time between {self.learned:.3g} and "
            f"{self.overfit:.3g}; the test error at the end is {self.final_test_error:.4g}"
        )


@overload
def stop(law: Law | None = None, over: None = None, *, end: float | None = None, slack: float = SLACK) -> StoppingPlan: ...
@overload
def stop(
    law: str | Path | tuple[ArrayLike, ArrayLike], over: None = None, *, end: float | None = None, slack: float = SLACK
) -> TrainingForecast: ...
@overload
def stop(
    law: Law | None = None, over: Mapping[str, Sequence[Any]] = ..., *, end: float | None = None, slack: float = SLACK
) -> xr.Dataset: ...
def stop(
    law: Law | str | Path | tuple[ArrayLike, ArrayLike] | None = None,
    over: Mapping[str, Sequence[Any]] | None = None,
    *,
    end: float | None = None,
    slack: float = SLACK,
) -> StoppingPlan | TrainingForecast | xr.Dataset:
    """Return the best time to stop training, or a table of such plans if `over` is given.

    For the losses of your own training, given as a file or as arrays (steps, losses), the result says whether to stop, and the loss to
    expect at step `end`.

    Parameters
    ----------
    law
        Any law with a test error along training times: `TwoLayerDynamics` (the default), `EarlyStopping`, `MultiPassLeastSquares`, ...
        Or a training curve, as in `limitlab.applied.stop_training`.
    over
        Values of parameters, by name. The result is then a table of plans on their grid.
    end
        Last time of the trajectory (default: until the test error has risen).
    slack
        The window contains the times whose test error is at most (1 + slack) times the best. For a training curve it is the smallest
        relative gain that justifies further steps (default: 0.01).

    Returns
    -------
    StoppingPlan, TrainingForecast or xarray.Dataset
        `.time`, `.test_error`, `.learned`, `.overfit`, ...

    Examples
    --------
    >>> from limitlab.laws import EarlyStopping
    >>> plan = stop(EarlyStopping(ratio=0.8, noise=1.0))
    >>> plan.learned < plan.time < plan.overfit
    True
    """
    if isinstance(law, (str, Path, tuple)):
        if over:
            raise Refused("over is not allowed with a training curve: a curve has no parameters")
        return stop_training(law, end) if slack == SLACK else stop_training(law, end, slack)
    trained = TwoLayerDynamics() if law is None else law
    if over:
        return stopping_table(trained, over, end=end, slack=slack)
    return plan_stopping(trained, end, slack)


@explained
def plan_stopping(law: Law, end: float | None = None, slack: float = SLACK, points: int = 400) -> StoppingPlan:
    """Return the best stopping time of a law, from its trajectory up to `end`.

    Parameters
    ----------
    law
        The law of the training. Its parameter `times` is not used.
    end
        Last time of the trajectory. The default for a two-layer network is 4 times the width, at least 20. For other laws the trajectory is
        extended until the test error has left the window.
    slack
        The window contains the times whose test error is at most (1 + slack) times the best.
    points
        Number of times at which the trajectory is computed.

    Examples
    --------
    >>> plan = plan_stopping(TwoLayerDynamics(width=4, sample_ratio=2, solver_steps=200), end=20.0)
    >>> plan.learned < plan.time < plan.overfit
    True
    """
    if not can_stop(type(law)):
        raise Refused(
            f"stopping {type(law).__name__} is not possible: it has no test error along training times; laws that have one are "
            "TwoLayerDynamics, EarlyStopping and MultiPassLeastSquares"
        )
    if not slack > 0:
        raise Refused(f"slack = {slack} is not allowed: must be above 0")
    if end is not None and not end > 0:
        raise Refused(f"end = {end:g} is not allowed: must be above 0")
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
    """Return whether a law has a test error along training times.

    >>> from limitlab.laws import EarlyStopping, Ridge
    >>> can_stop(EarlyStopping), can_stop(Ridge)
    (True, False)
    """
    times = law.parameters().get("times")
    return times is not None and times.kind == "coordinate" and "test_error" in law.outputs()


MOST_EXTENSIONS, EXTENSION_FACTOR = 7, 4.0
"""Largest number of extensions of a trajectory in search of a rise of the test error, and the factor of each."""


def trajectory(law: Law, end: float | None, slack: float, points: int) -> tuple[Floats, xr.Dataset]:
    """Return times and the prediction at these times, up to `end` or until the test error has risen."""
    if isinstance(law, TwoLayerDynamics):
        last = max(20.0, 4.0 * law.width) if end is None else float(end)
        steps = int(np.ceil(STEPS_PER_TIME * last * max(1.0, law.fastest_rate())))
        law = law.replace(solver_steps=max(law.solver_steps, steps))
        first = min(8.0 * last / law.solver_steps, 0.1 * last)  # times that even the coarsest of the three grids resolves
        return _read(law, first, last, points)
    last, before = 4.0 if end is None else float(end), np.inf
    for _ in range(MOST_EXTENSIONS if end is None else 0):
        test = _read(law, 1e-2 * last, last, 30)[1].test_error.values
        if (
            test[-1] > (1 + slack) * test.min() or abs(test[-1] / before - 1) < 0.1 * slack
        ):  # the test error has risen or is constant
            break
        last, before = EXTENSION_FACTOR * last, test[-1]
    return _read(law, 1e-4 * last, last, points)


def _read(law: Law, first: float, last: float, points: int) -> tuple[Floats, xr.Dataset]:
    times = np.concatenate([[0.0], np.geomspace(first, last, points)])
    return times, law.replace(times=tuple(times)).theory()


def _at(result: xr.Dataset, name: str, place: int) -> float | None:
    return float(result[name][place]) if name in result else None


def _vertex(times: Floats, values: Floats, best: int) -> float:
    """Return the minimum of the parabola through the smallest value and its neighbours."""
    if best in (0, values.size - 1):
        return float(times[best])
    curve = np.polyfit(times[best - 1 : best + 2], values[best - 1 : best + 2], 2)
    return float(-curve[1] / (2 * curve[0]))


@explained
def stopping_table(law: Law, over: Mapping[str, Sequence[Any]], **options: Any) -> xr.Dataset:
    """Return plans on a grid of parameters, with one variable per attribute of `StoppingPlan`.

    Parameters
    ----------
    law
        The law of the training. The parameters in `over` are replaced.
    over
        Values of parameters (width, samples, noise, scale of the start, ...), by name.
    **options
        Options of `plan_stopping`.

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
        raise Refused(f"over = {dict(over)} is not allowed: give at least one parameter and one value of each")
    plans = [plan_stopping(law.replace(**dict(zip(names, point, strict=True))), **options) for point in product(*grids)]
    data = {
        field.name: (names, np.array([getattr(plan, field.name) for plan in plans]).reshape(shape), ABOUT[field.name])
        for field in fields(StoppingPlan)
        if getattr(plans[0], field.name) is not None
    }
    return xr.Dataset(data, dict(zip(names, grids, strict=True)), {"slack": options.get("slack", SLACK)})


# -- figures ------------------------------------------------------------------------------------------------------------


@explained
def stopping_figure(table: xr.Dataset, label: str | None = None, **scales: Any) -> Figure:
    """Draw the window of stopping times and the errors of a table of plans against its parameter."""
    from limitlab.plotting.style import new_figure

    figure, (left, right) = new_figure(columns=2)
    (name,) = table.test_error.dims
    draw_plans(left, right, table, label or str(name).replace("_", " "), (True, True), **scales)
    return figure


def draw_plans(above: Axes, below: Axes, table: xr.Dataset, label: str, legends: tuple[bool, bool], **scales: Any) -> None:
    """Draw the window of stopping times on one panel, and the errors at the best time and at the end on another."""
    from limitlab.plotting.style import COLOURS, finish, theory_line

    (name,) = table.test_error.dims
    x = table[name].values
    late = np.where(np.isfinite(table.overfit), table.overfit, np.nan)
    # a window without end is drawn up to the largest time of the panel
    top = np.where(np.isfinite(late), late, np.nanmax(np.append(late, table.time)))
    window = f"within {100 * table.attrs['slack']:g} % of the best"
    above.fill_between(x, table.learned, top, color=COLOURS[0], alpha=0.15, linewidth=0, label=window)
    marks = {"marker": ".", "markersize": 7}  # points mark the computed values; the lines only connect them
    theory_line(above, x, table.time, 0, "best time", **marks)
    theory_line(below, x, table.test_error, 0, "test error, stopped", **marks)
    theory_line(below, x, table.final_test_error, 1, "test error, at the end", **marks)
    theory_line(below, x, table.train_error, 0, "train error, stopped", linestyle="--", **marks)
    finish(above, label, "time $t$", legend=legends[0], yscale="log", **scales)
    finish(below, label, "error", legend=legends[1], **scales)
