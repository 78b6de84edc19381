"""Options, inputs and targets of a forecast: checked, with one line that says what is wrong and what to do."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.applied.forecast.diagnostics import ForecastWarning

Array = NDArray[Any]


METHODS = ("auto", "exact", "nystrom", "subsets")
TASKS = ("auto", "regression", "classification")
MOST_CLASSES, FEWEST_EACH = 10, 5
"""Whole numbers are labels where there are at most so many different ones, with so many rows each on average."""


def check_options(method: Any, dtype: Any, rank: Any) -> None:
    """Refuse options that mean nothing."""
    if method not in METHODS:
        raise ValueError(f"method = {method!r} is not allowed: must be {', '.join(map(repr, METHODS))}")
    if str(dtype) not in ("float64", "float32"):
        raise ValueError(f"dtype = {dtype!r} is not allowed: must be 'float64' or 'float32'")
    if not isinstance(rank, (int, np.integer)) or rank < 2:
        raise ValueError(f"rank = {rank!r} is not allowed: must be a whole number of at least 2")


def as_numbers(y: Any) -> Array:
    """Targets as numbers; text is refused with the option that would accept it.

    >>> as_numbers(["cat", "dog"])
    Traceback (most recent call last):
    ...
    ValueError: y holds text, such as 'cat': pass task='classification' to forecast a classifier, or give numbers
    """
    array = np.asarray(y)
    if array.dtype.kind in "fiub":
        return array
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold real numbers")
    try:
        return array.astype(float)
    except (TypeError, ValueError):
        first = next((entry for entry in array.ravel().tolist() if isinstance(entry, str)), array.ravel()[0])
        raise ValueError(
            f"y holds text, such as {first!r}: pass task='classification' to forecast a classifier, or give numbers"
        ) from None


def class_targets(y: Any) -> tuple[Array, Array]:
    """Classes and what is fitted for them: one column of -1 and +1 for two classes, a column of 0 and 1 each for more.

    >>> classes, columns = class_targets(["b", "a", "b"])
    >>> classes.tolist(), columns.tolist()
    (['a', 'b'], [[1.0], [-1.0], [1.0]])
    >>> class_targets([0, 1, 2])[1].tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise ValueError(f"y of shape {labels.shape} is not allowed for a classification: give one label per row")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("y contains NaN or infinity (inf): remove these rows")
    classes, index = np.unique(labels, return_inverse=True)
    if classes.size < 2:
        raise ValueError(f"y holds one class only ({classes[0]!r}): there is nothing to learn")
    return classes, (2.0 * index - 1.0)[:, None] if classes.size == 2 else np.eye(classes.size)[index]


def is_classification(task: Any, y: Any) -> bool:
    """Whether y is to be classified: as told, or (task "auto") where it holds text, True and False, or few whole numbers.

    >>> [is_classification("auto", y) for y in (["a", "b"], np.arange(30) % 3, np.arange(30))]
    [True, True, False]
    """
    if task not in TASKS:
        raise ValueError(f"task = {task!r} is not allowed: must be {', '.join(map(repr, TASKS))}")
    if task != "auto":
        return bool(task == "classification")
    array = np.asarray(y)
    if array.ndim > 1 and array.shape[1] > 1:
        return False
    if array.dtype.kind in "iu":
        return np.unique(array).size <= min(MOST_CLASSES, array.size // FEWEST_EACH)
    if array.dtype.kind == "O":
        return any(isinstance(entry, (str, bool)) for entry in array.ravel().tolist())
    return array.dtype.kind in "bUS"


def require_finite(array: Array, name: str) -> None:
    """Refuse missing values, saying where the first one is."""
    bad = ~np.isfinite(array)
    if bad.any():
        row = int(np.argwhere(bad)[0][0])
        raise ValueError(
            f"{name} contains NaN or infinity (inf) in {int(bad.sum())} places, first in row {row}: "
            "remove these rows or fill the missing values"
        )


def require_variation(targets: Array) -> None:
    """Refuse a constant target."""
    if not (np.ptp(targets, axis=0) > 0).any():
        raise ValueError(f"y is constant (every target is {targets[0, 0]:g}): there is nothing to learn")


def warn_of_duplicates(X: Array) -> None:
    """Duplicate rows end up on both sides of a split: the forecast, like the measurement, comes out too good."""
    rows = np.ascontiguousarray(X)
    copies = len(rows) - len({row.tobytes() for row in rows})
    if copies:
        warnings.warn(
            f"X holds {copies} duplicate rows of {len(rows)}: a point may be tested on its own copy, which makes errors look "
            "too small; drop the duplicates unless new data will repeat these rows too",
            ForecastWarning,
            stacklevel=3,
        )
