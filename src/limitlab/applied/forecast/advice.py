"""One sentence: is it more data, another ridge, or other features that this problem needs?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limitlab.applied.forecast.estimator import Forecast

WORTHWHILE = 0.02
"""A cut of the error below this is not worth a change."""


def gains(forecast: Forecast, ridge: Any) -> dict[str, float]:
    """Relative cuts of the test error: by doubling the data at the same ridge, and by the best ridge at the same data.

    Returns "data", "data_low", "data_high" (its band, where there is one), "ridge", and "best_ridge".
    """
    total = forecast.spectrum_.population
    curve = forecast.learning_curve([total, 2 * total], ridge)
    now, twice = curve.test_error.values
    found = {"data": 1 - twice / now, "error": float(now)}
    if "test_error_low" in curve:
        # the two errors rest on the same points: what is uncertain is the step, not the level
        tail = float(forecast._population.tail_deviation(curve["ridge"].values[1])[0])
        found |= {"data_low": 1 - (1 - found["data"]) * (1 + tail), "data_high": 1 - (1 - found["data"]) / (1 + tail)}
    if not isinstance(ridge, str):
        best = forecast.best_ridge([total])
        found |= {"ridge": 1 - best.test_error.item() / now, "best_ridge": best["ridge"].item()}
    return {name: float(value) for name, value in found.items()}


def advise(forecast: Forecast, ridge: Any) -> str:
    """What to do next, in one sentence.

    >>> import numpy as np
    >>> from limitlab.applied.forecast import Forecast
    >>> X = np.random.default_rng(0).standard_normal((200, 30))
    >>> y = X[:, 0] + np.random.default_rng(1).standard_normal(200)
    >>> advise(Forecast(ridge=10.0).fit(X, y), 10.0).split(";")[0]
    'a better ridge (0.14 instead of 10) is expected to cut the error by 40%'
    """
    found = gains(forecast, ridge)
    total = forecast.spectrum_.population
    data = f"doubling the data (to {2 * total} points) {_cut(found['data'])}"
    if "data_low" in found and abs(found["data_high"] - found["data_low"]) >= 0.01:
        data += f" ({found['data_low']:.0%} to {found['data_high']:.0%})"
    if "ridge" not in found:
        tune = "the ridge is the best one already"
        better = 0.0
    else:
        better = found["ridge"]
        tune = f"a better ridge ({found['best_ridge']:.2g} instead of {float(ridge):.2g}) {_cut(better)}"
    if max(found["data"], better) < WORTHWHILE:
        return f"neither more data nor another ridge helps much, so try other features or another kernel: {data}; {tune}"
    return f"{data}; {tune}" if found["data"] >= better else f"{tune}; {data}"


def _cut(share: float) -> str:
    return f"is expected to cut the error by {share:.0%}" if share >= 0.005 else "is expected to change little"
