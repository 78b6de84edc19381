"""Learning curves of other estimators of scikit-learn (experimental).

limitlab has no law for forests or boosted models. The effect of more data depends mostly on the data, so the forecast takes the shape of
the curve from a kernel. It is the last measured value times theory(n) / theory(last), where theory is the best-ridge curve of the kernel
that leave-one-out selects. In trials this forecast was as accurate as a power law at twice the data and more accurate at four times. The
result contains both.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from limitlab.applied.forecast._estimator import Forecast
from limitlab.applied.forecast._fitting import is_classification
from limitlab.applied.forecast._measure import fit_power_law
from limitlab.errors import Refused

SHARES = (0.2, 0.32, 0.5, 0.7, 0.9)
SPLITS = 5


def forecast_other(
    estimator: Any, X: Any, y: Any, n: Any, kernel: Any = "auto", splits: int = SPLITS, seed: int = 0
) -> xr.Dataset:
    """Return a forecast of the learning curve of any scikit-learn estimator beyond its data.

    Parameters
    ----------
    estimator
        An estimator with `fit` and `predict`. Clones of it are fitted at five sizes.
    X, y
        Inputs, and targets that are numbers or labels (text, True and False, few different whole numbers).
    n
        Numbers of points of the forecast.
    kernel
        Kernel whose curve determines the shape of the forecast.
    splits, seed
        Number of random subsets per size, and their seed.

    Returns
    -------
    xarray.Dataset
        Over n: `value` (mean square, or share of wrong labels) from the ratio of the theory, and `power_law`. Over size: `measured` and
        `standard_error`.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((150, 10))
    >>> curve = forecast_other(Ridge(), X, X[:, 0] + rng.standard_normal(150), [300, 600], kernel="linear")
    >>> bool((curve.value < curve.measured[-1]).all())
    True
    """
    from sklearn.base import clone

    inputs, targets = np.asarray(X, dtype=float), np.asarray(y)
    labels = is_classification("auto", targets)
    total = len(inputs)
    if total < 50:
        raise Refused(f"X has {total} rows, which is not allowed: must be at least 50 for measurements at five sizes")
    sizes = np.round(np.array(SHARES) * total).astype(int)
    runs = np.empty((sizes.size, splits))
    for i, size in enumerate(sizes):
        for split in range(splits):
            order = np.random.default_rng([seed, split, i]).permutation(total)
            inside, outside = order[:size], order[size:]
            guess = clone(estimator).fit(inputs[inside], targets[inside]).predict(inputs[outside])
            runs[i, split] = np.mean(guess != targets[outside]) if labels else np.mean((guess - targets[outside]) ** 2)
    measured = runs.mean(axis=1)
    theory = Forecast(kernel, intercept=1.0, task="classification" if labels else "regression").fit(inputs, targets)
    wanted = np.atleast_1d(np.asarray(n, dtype=float))
    shape = theory.learning_curve(np.append(wanted, float(sizes[-1])), "best", baselines=False).value.values
    values = measured[-1] * shape[:-1] / max(shape[-1], np.finfo(float).tiny)
    law = fit_power_law(sizes, np.maximum(measured, 0.5 / total)) if labels else fit_power_law(sizes, measured)
    return xr.Dataset(
        {
            "value": ("n", values), "power_law": ("n", law(wanted)), "measured": ("size", measured),
            "standard_error": ("size", runs.std(axis=1, ddof=1) / np.sqrt(splits)),
        },
        {"n": wanted, "size": sizes},
        {"status": "experimental", "metric": "error" if labels else "mse"},
    )  # fmt: skip
