"""The question people ask: how much would more data help, and is it data, another ridge or other features that this problem needs?

Gains are read at the best ridge of each number of points: nobody who doubles the data keeps a ridge that was tuned for half of them;
where a ridge is given, the gain at that ridge is told beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from limitlab.applied.forecast._estimator import Forecast

WORTHWHILE = 0.02
"""A cut of the error below this is not worth a change."""


@dataclass(frozen=True)
class Gains:
    """What doubling the data and tuning the ridge are expected to do to the mean square, as shares of it.

    Attributes
    ----------
    points
        Rows that there are.
    data, data_low, data_high
        Cut by doubling them, at the best ridge of each size, with its band (equal where there is none).
    at_ridge
        The same cut at the given ridge; None where the best one was asked for.
    ridge, best_ridge
        Cut by the best ridge at the same data, and that ridge.
    error, best_error
        Mean squares now: at the given ridge, and at the best one.
    """

    points: int
    data: float
    data_low: float
    data_high: float
    at_ridge: float | None
    ridge: float
    best_ridge: float
    error: float
    best_error: float


def gains(forecast: Forecast, ridge: Any) -> Gains:
    """Relative cuts of the mean square."""
    points = len(forecast.targets_) if hasattr(forecast, "targets_") else forecast.spectrum_.population
    ask = np.array([float(points), 2.0 * points])
    best = forecast.learning_curve(ask, "best", "mse", baselines=False)
    now, twice = best.test_error.values
    cut = 1 - twice / now
    # the two errors rest on the same points: what is uncertain is the step, not the level
    wide = float(best.step_high.values[1] / best.step.values[1]) if "step_high" in best else 1.0
    low, high = 1 - (1 - cut) * wide, 1 - (1 - cut) / wide
    tuned = float(best["ridge"].values[0])
    if isinstance(ridge, str):
        return Gains(points, cut, low, high, None, 0.0, tuned, float(now), float(now))
    given = forecast.learning_curve(ask, ridge, "mse", baselines=False).test_error.values
    return Gains(
        points, cut, low, high, float(1 - given[1] / given[0]), float(1 - now / given[0]), tuned, float(given[0]), float(now)
    )


def advise(forecast: Forecast, ridge: Any) -> str:
    """What to do next, in one sentence.

    >>> from limitlab.applied.forecast import Forecast
    >>> X = np.random.default_rng(0).standard_normal((200, 30))
    >>> y = X[:, 0] + np.random.default_rng(1).standard_normal(200)
    >>> advise(Forecast(ridge=10.0).fit(X, y), 10.0).split(";")[0]
    'a better ridge (0.14 instead of 10) is expected to cut the error by 40%'
    """
    return sentence(gains(forecast, ridge), ridge)


def sentence(found: Gains, ridge: Any, what: str = "error") -> str:
    """The gains in words; `what` is cut."""
    data = f"doubling the data (to {2 * found.points} points) {_cut(found.data, what)}"
    if abs(found.data_high - found.data_low) >= 0.01:
        data += f" ({found.data_low:.0%} to {found.data_high:.0%})"
    if found.at_ridge is None:
        tune = "the ridge is the best one already"
    else:
        data += f" at the best ridge, by {found.at_ridge:.0%} at ridge {float(ridge):.2g}"
        tune = f"a better ridge ({found.best_ridge:.2g} instead of {float(ridge):.2g}) {_cut(found.ridge, what)}"
    if max(found.data, found.ridge) < WORTHWHILE:
        return f"neither more data nor another ridge helps much, so try other features or another kernel: {data}; {tune}"
    return f"{data}; {tune}" if found.data >= found.ridge else f"{tune}; {data}"


def _cut(share: float, what: str) -> str:
    return f"is expected to cut the {what} by {share:.0%}" if share >= 0.005 else "is expected to change little"
