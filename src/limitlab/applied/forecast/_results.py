"""Checked arguments and labelled results of a forecast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from limitlab._core.observables import VOCABULARY, Observable
from limitlab._core.results import package_version
from limitlab.applied.forecast._curves import Errors

Array = NDArray[np.float64]

TRUSTED, DOUBTED = 0.02, 0.07
"""Errors of the backtest below which steps to twice and four times the data were wrong by more than 10 % hardly ever, and beyond which
often (docs/theory/learning_curves.md)."""


def counts(n: Any) -> Array:
    """Numbers of points as an array.

    >>> counts([10, 0])
    Traceback (most recent call last):
    ...
    ValueError: n = 0 is not allowed: must be at least 1 and finite
    """
    values = np.atleast_1d(np.asarray(n, dtype=float))
    bad = ~(np.isfinite(values) & (values >= 1))
    if bad.any() or values.ndim != 1 or not values.size:
        shown = f"{values[bad][0]:g}" if bad.any() else repr(n)
        raise ValueError(f"n = {shown} is not allowed: must be at least 1 and finite")
    return values


def ridges(ridge: Any) -> Array:
    """Ridges as an array.

    >>> ridges(-1.0)
    Traceback (most recent call last):
    ...
    ValueError: ridge = -1 is not allowed: must be at least 0 and finite
    """
    try:
        values = np.atleast_1d(np.asarray(ridge, dtype=float))
    except (TypeError, ValueError):
        raise ValueError(f"ridge = {ridge!r} is not allowed: must be a number of at least 0") from None
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any() or values.ndim != 1 or not values.size:
        shown = f"{values[bad][0]:g}" if bad.any() else repr(ridge)
        raise ValueError(f"ridge = {shown} is not allowed: must be at least 0 and finite")
    return values


def dataset(variables: Mapping[str, tuple[Any, Any]], coordinates: Mapping[str, Any]) -> xr.Dataset:
    """Variables with the long names and symbols of the observables."""
    made = xr.Dataset(dict(variables), dict(coordinates), {"version": package_version()})
    for name in map(str, made.data_vars):
        meta = VOCABULARY.get(name, Observable(name.replace("_", " ")))
        made[name].attrs.update(long_name=meta.long_name, symbol=meta.symbol)
    for name, words in (("n", "number of points"), ("ridge", "ridge"), ("time", "training time")):
        if name in made.coords:
            made[name].attrs["long_name"] = words
    return made


def quantile(band: float) -> float:
    """How many standard deviations a two-sided band has.

    >>> round(quantile(0.95), 3)
    1.96
    """
    from statistics import NormalDist

    if not 0 < band < 1:
        raise ValueError(f"band = {band!r} is not allowed: must be between 0 and 1")
    return NormalDist().inv_cdf((1 + band) / 2)


def trust(missed: float) -> str:
    """What a backtest that missed by this much (in the logarithm) means for an extrapolation.

    >>> trust(0.01), trust(-0.05), trust(0.2)
    ('trusted', 'fair', 'doubtful')
    """
    return "trusted" if abs(missed) < TRUSTED else "fair" if abs(missed) <= DOUBTED else "doubtful"


def curve(found: Errors, samples: Array, lam: Array, beyond: NDArray[np.bool_], band: float) -> xr.Dataset:
    """A learning curve with its band."""
    wide = np.exp(quantile(band) * found.deviation)
    values: dict[str, Any] = {"test_error": found.test_error}
    if found.deviation.any():
        values |= {"test_error_low": found.test_error / wide, "test_error_high": found.test_error * wide}
    values |= {
        "law_error": found.law_error,
        "train_error": found.train_error,
        "degrees_of_freedom": found.degrees_of_freedom,
        "effective_ridge": found.effective_ridge,
        "ridge": lam,
        "extrapolated": beyond,
    }
    made = dataset({name: ("n", value) for name, value in values.items()}, {"n": samples})
    return made.assign_attrs(band=band)


def with_metric(
    made: xr.Dataset, metric: Any, value: Array, spread: Array | None, base: float, step_spread: Array, band: float
) -> xr.Dataset:
    """The curve of a metric beside that of the mean square: value, band, the step from N, the last value known."""
    z = quantile(band)
    name = metric if isinstance(metric, str) else getattr(metric, "__name__", "metric")
    rising = name in ("accuracy", "auc")
    loss, start = (1 - value, 1 - base) if rising else (value, base)
    variables: dict[str, Any] = {"value": value}
    if spread is not None and spread.any():
        low, high = loss * np.exp(-z * spread), loss * np.exp(z * spread)
        variables |= {"low": 1 - np.minimum(high, 1), "high": 1 - low} if rising else {"low": low, "high": high}
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.where(start > 0, loss / start, np.nan) if start > 0 else np.full(loss.shape, np.nan)
    wide = np.exp(z * np.abs(step_spread))
    variables |= {"step": step, "step_low": step / wide, "step_high": step * wide, "last_value": np.full(value.shape, base)}
    for key, values in variables.items():
        made[key] = ("n", values)
    made["value"].attrs["long_name"] = name
    made["step"].attrs["long_name"] = "loss over that at N"
    return made.assign_attrs(metric=name)
