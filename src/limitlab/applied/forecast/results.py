"""Checked arguments and labelled results of a forecast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from limitlab.applied.forecast.curves import Errors
from limitlab.laws.observables import VOCABULARY, Observable
from limitlab.laws.results import package_version

Array = NDArray[np.float64]


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


def quantile(confidence: float) -> float:
    """How many standard deviations a two-sided band has.

    >>> round(quantile(0.95), 3)
    1.96
    """
    from statistics import NormalDist

    if not 0 < confidence < 1:
        raise ValueError(f"confidence = {confidence!r} is not allowed: must be between 0 and 1")
    return NormalDist().inv_cdf((1 + confidence) / 2)


def curve(found: Errors, samples: Array, lam: Array, beyond: NDArray[np.bool_], confidence: float) -> xr.Dataset:
    """A learning curve with its band."""
    wide = np.exp(quantile(confidence) * found.deviation)
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
    return made.assign_attrs(confidence=confidence)


def tail(check: Mapping[str, Array], lam: Array, confidence: float) -> xr.Dataset:
    """The validation of the extrapolation; `inside` says whether the reference was within the band of each half."""
    # the band of a half, and what the halves themselves say about extrapolating by a factor 2
    rms = np.sqrt((np.log(check["predicted"] / check["reference"]) ** 2).mean(axis=0))
    wide = np.exp(quantile(confidence) * np.hypot(check["deviation"], rms))
    values = {
        "predicted": check["predicted"],
        "low": check["predicted"] / wide,
        "high": check["predicted"] * wide,
        "reference": check["reference"],
        "inside": (check["predicted"] / wide <= check["reference"]) & (check["reference"] <= check["predicted"] * wide),
    }
    made = dataset({name: (("half", "ridge"), value) for name, value in values.items()}, {"ridge": lam})
    return made.assign_attrs(confidence=confidence)
