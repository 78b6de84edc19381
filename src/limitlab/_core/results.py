"""What a result looks like: arrays of a law as a labelled `xarray.Dataset` with its provenance."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import xarray as xr

    from limitlab._core.declaration import Declaration

CLOSED_FORM = 1e-13
"""Relative accuracy of closed forms, and of equations solved to rounding: a few hundred units in the last place."""
NOT_STATED = "not stated"
"""The attribute `accuracy` of a prediction that does not state its numerical error."""


def package(
    law: Declaration,
    values: Mapping[str, Any],
    *,
    kind: str,
    dims: Mapping[str, Sequence[str]] | None = None,
    coords: Mapping[str, Any] | None = None,
    **attrs: Any,
) -> xr.Dataset:
    """Arrays of a law as a Dataset with labelled dimensions, long names, symbols and provenance.

    Parameters
    ----------
    law
        The law the values come from.
    values
        Observables as `Law.evaluate` and `Law.experiment` give them; "accuracy" becomes the attribute `accuracy` of the result
        (relative) and the attribute `numerical_error` of every variable (absolute).
    kind
        "theory" or "simulation".
    dims
        Dimensions of every variable, where they are not the law's own coordinates.
    coords
        Further coordinates.
    attrs
        Further attributes (size and seed of a simulation).
    """
    import xarray as xr

    given = {name: np.asarray(value) for name, value in values.items() if name != "accuracy"}
    errors = absolute_errors(given, values.get("accuracy")) if kind == "theory" else {}
    about = _provenance(law, given, errors, kind, attrs)
    lines = {name: np.asarray(line) for name, line in law.coordinates().items()}
    if not lines and dims is None and not coords and not any(array.ndim for array in given.values()):
        return _single_numbers(law, given, errors, about)
    axes = [name for name, line in lines.items() if line.ndim]
    metas = type(law).all_outputs()
    data = {}
    for name, array in given.items():
        meta = metas[name]
        if dims is not None:
            own = dims[name]
        else:
            own = (
                axes[: array.ndim]
                if meta.dims is None
                else [dim for dim in meta.dims if dim not in lines or lines[dim].ndim]
            )
        error = {"numerical_error": errors[name]} if math.isfinite(errors.get(name, math.inf)) else {}
        data[name] = xr.Variable(own, array, dict(long_name=meta.long_name, symbol=meta.symbol) | error)
    result = xr.Dataset(data, coords={**lines, **(coords or {})}, attrs=about)
    describe_coordinates(law, result)
    return result


def _provenance(
    law: Declaration, values: Mapping[str, NDArray[Any]], errors: Mapping[str, float], kind: str, further: Mapping[str, Any]
) -> dict[str, Any]:
    """The attributes of a result; a prediction that is NaN somewhere is refused here."""
    about: dict[str, Any] = dict(
        law=type(law).__name__,
        parameters=law.model_dump_json(),
        status=law.status,
        version=package_version(),
        revision=law.revision,
        kind=kind,
    )
    about.update(further)
    if kind == "theory":
        about["accuracy"] = accuracy_of(values, errors)
        refuse_nan(values, about)
    return about


def _single_numbers(
    law: Declaration, values: Mapping[str, NDArray[Any]], errors: Mapping[str, float], about: Mapping[str, Any]
) -> xr.Dataset:
    """A result of single numbers, as a copy of an earlier one: many times faster than to build its Dataset anew."""
    result = _blank(type(law), tuple(values)).copy(data=dict(values))
    for name, error in errors.items():
        if math.isfinite(error):
            result.variables[name].attrs["numerical_error"] = error
    result.attrs.update(about)
    return result


@functools.lru_cache(maxsize=512)
def _blank(law: type[Declaration], names: tuple[str, ...]) -> xr.Dataset:
    """What every result of a law with these variables has in common."""
    import xarray as xr

    metas = law.all_outputs()
    return xr.Dataset({name: ((), 0.0, dict(long_name=metas[name].long_name, symbol=metas[name].symbol)) for name in names})


def scale_of(value: ArrayLike) -> float:
    """The largest finite absolute value of an observable, against which its errors are measured."""
    array = np.abs(np.asarray(value, dtype=float))
    if array.ndim == 0:
        return float(array) if math.isfinite(array) else 0.0
    return float(array[np.isfinite(array)].max(initial=0.0))


def absolute_errors(values: Mapping[str, NDArray[Any]], accuracy: Any) -> dict[str, float]:
    """The numerical error of every observable, from an accuracy that is relative (a number), absolute (by name) or not stated (None).

    An error that is not stated is infinite.

    >>> absolute_errors({"risk": np.array([1.0, 4.0])}, 1e-3), absolute_errors({"risk": np.array([1.0, 4.0])}, None)
    ({'risk': 0.004}, {'risk': inf})
    """
    if isinstance(accuracy, Mapping):
        return {name: float(np.max(error)) for name, error in accuracy.items()}
    numbers = {name: value for name, value in values.items() if value.dtype.kind in "biuf"}
    if accuracy is None:
        return dict.fromkeys(numbers, math.inf)
    relative = float(np.max(np.asarray(accuracy)))
    return {name: relative * scale_of(value) for name, value in numbers.items()}


def accuracy_of(values: Mapping[str, NDArray[Any]], errors: Mapping[str, float]) -> float | str:
    """The attribute `accuracy` of a prediction: its relative numerical error, or "not stated".

    >>> accuracy_of({"risk": np.array(2.0)}, {"risk": 0.002}), accuracy_of({"risk": np.array(2.0)}, {"risk": math.inf})
    (0.001, 'not stated')
    """
    return relative_error(values, errors) if all(map(math.isfinite, errors.values())) else NOT_STATED


def relative_error(values: Mapping[str, NDArray[Any]], errors: Mapping[str, float]) -> float:
    """The largest error relative to its observable's scale (to the largest of the scales, where an observable is zero)."""
    scales = {name: scale_of(values[name]) for name in errors}
    largest = max(scales.values(), default=0.0) or 1.0
    return max((error / (scales[name] or largest) for name, error in errors.items()), default=CLOSED_FORM) or CLOSED_FORM


def stacked(runs: Sequence[xr.Dataset], seeds: Sequence[int]) -> xr.Dataset:
    """Experiments side by side, along a first dimension `seed`."""
    import xarray as xr

    if not runs:
        raise ValueError("seeds = [] is not allowed: give at least one seed")
    data = {
        name: (("seed", *first.dims), np.stack([run[name].values for run in runs]), first.attrs)
        for name, first in runs[0].data_vars.items()
    }
    coords = {**runs[0].coords, "seed": np.asarray(seeds, dtype=np.int64)}
    return xr.Dataset(data, coords, {key: value for key, value in runs[0].attrs.items() if key != "seed"})


def describe_coordinates(law: Declaration, result: xr.Dataset) -> None:
    """Swept parameters and the law's own coordinates get their description and symbol."""
    for name, meta in type(law).parameters().items():
        for coordinate in (name, meta.dimension) if meta.kind == "coordinate" else (name,):
            if coordinate in result.coords:
                result[coordinate].attrs.update(long_name=meta.note or meta.description, symbol=meta.symbol)


def _has_nan(array: NDArray[Any]) -> bool:
    return bool(np.isnan(array).any() if array.ndim else array != array)


def refuse_nan(values: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> None:
    """NaN never appears silently in a prediction (infinity may: some limits are infinite)."""
    bad = [name for name, array in values.items() if array.dtype.kind in "fc" and _has_nan(array)]
    if bad:
        raise FloatingPointError(
            f"{about['law']} gave NaN for {', '.join(bad)} at {about['parameters']}; "
            "please report this, and move the parameters slightly in the meantime"
        )


@functools.cache
def package_version() -> str:
    """Version of the installed package, as stored with every result."""
    try:
        return version("limitlab")
    except PackageNotFoundError:  # running from a source tree that was never installed
        return "0+unknown"


def parameters_of(result: xr.Dataset) -> dict[str, Any]:
    """The parameters a result was computed for.

    >>> from limitlab.laws import Ridge
    >>> parameters_of(Ridge(ratio=2.0).theory())["ratio"]
    2.0
    """
    return dict(json.loads(result.attrs["parameters"]))
