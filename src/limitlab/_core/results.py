"""Results of laws as labelled `xarray.Dataset` objects with their provenance."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import Refused

if TYPE_CHECKING:
    import xarray as xr

    from limitlab._core.declaration import Declaration

CLOSED_FORM = 1e-13
"""Relative accuracy of closed forms and of equations solved to rounding, a few hundred units in the last place."""
NOT_STATED = "not stated"
"""The attribute `accuracy` of a prediction that does not state its numerical error."""


def to_dataset(
    law: Declaration,
    values: Mapping[str, Any],
    *,
    kind: str,
    dims: Mapping[str, Sequence[str]] | None = None,
    coords: Mapping[str, Any] | None = None,
    **attrs: Any,
) -> xr.Dataset:
    """Return arrays of a law as a Dataset with labelled dimensions, long names, symbols and provenance.

    Parameters
    ----------
    law
        The law of the values.
    values
        Observables as `Law.evaluate` and `Law.experiment` return them; "accuracy" becomes the attribute `accuracy` of the result
        (relative) and the attribute `numerical_error` of every variable (absolute).
    kind
        "theory" or "simulation".
    dims
        Dimensions of every variable, if they are not the coordinates of the law.
    coords
        Further coordinates.
    attrs
        Further attributes (size and seed of a simulation).
    """
    import xarray as xr

    arrays = {name: np.asarray(value) for name, value in values.items() if name != "accuracy"}
    errors = absolute_errors(arrays, values.get("accuracy"), law.natural_scale) if kind == "theory" else {}
    about = _provenance(law, arrays, errors, kind, attrs)
    lines = {name: np.asarray(line) for name, line in law.coordinates().items()}
    if not lines and dims is None and not coords and not any(array.ndim for array in arrays.values()):
        return _single_numbers(law, arrays, errors, about)
    axes = [name for name, line in lines.items() if line.ndim]
    metas = type(law).all_outputs()
    data = {}
    for name, array in arrays.items():
        meta = metas[name]
        if dims is not None:
            own_dims = dims[name]
        else:
            own_dims = axes[: array.ndim] if meta.dims is None else own_dimensions(meta.dims, lines)
        error = {"numerical_error": errors[name]} if math.isfinite(errors.get(name, math.inf)) else {}
        data[name] = xr.Variable(own_dims, array, dict(long_name=meta.long_name, symbol=meta.symbol) | error)
    result = xr.Dataset(data, coords={**lines, **(coords or {})}, attrs=about)
    describe_coordinates(law, result)
    return result


def own_dimensions(dims: Sequence[str], lines: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the dimensions that an observable declares, without coordinates with a single value.

    >>> own_dimensions(("time", "particle"), {"time": 2.0})
    ('particle',)
    """
    return tuple(dim for dim in dims if dim not in lines or np.ndim(lines[dim]))


def _provenance(
    law: Declaration, values: Mapping[str, NDArray[Any]], errors: Mapping[str, float], kind: str, further: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the attributes of a result; raise FloatingPointError if a prediction contains NaN."""
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
        about["accuracy"] = accuracy_of(values, errors, law.natural_scale)
        refuse_nan(values, about)
    return about


def _single_numbers(
    law: Declaration, values: Mapping[str, NDArray[Any]], errors: Mapping[str, float], about: Mapping[str, Any]
) -> xr.Dataset:
    """Return a Dataset of scalars, copied from a cached template because building one takes several times longer."""
    result = _empty_dataset(type(law), tuple(values)).copy(data=dict(values))
    for name, error in errors.items():
        if math.isfinite(error):
            result.variables[name].attrs["numerical_error"] = error
    result.attrs.update(about)
    return result


@functools.lru_cache(maxsize=512)
def _empty_dataset(law: type[Declaration], names: tuple[str, ...]) -> xr.Dataset:
    """Return a Dataset of zeros with these variables, their long names and their symbols."""
    import xarray as xr

    metas = law.all_outputs()
    return xr.Dataset({name: ((), 0.0, dict(long_name=metas[name].long_name, symbol=metas[name].symbol)) for name in names})


def scale_of(value: ArrayLike) -> float:
    """Return the largest finite absolute value of an observable, against which its errors are measured."""
    array = np.abs(np.asarray(value, dtype=float))
    if array.ndim == 0:
        return float(array) if math.isfinite(array) else 0.0
    return float(array[np.isfinite(array)].max(initial=0.0))


def absolute_errors(
    values: Mapping[str, NDArray[Any]], accuracy: Any, natural_scale: Callable[[str], float] | None = None
) -> dict[str, float]:
    """Return the numerical error of every observable, from an accuracy in any of its forms.

    An accuracy is relative (a number), absolute (a mapping from names) or not stated (None).

    An error that is not stated is infinite. A relative accuracy refers to the largest value of an observable, or to its natural scale if
    this is larger.

    >>> absolute_errors({"risk": np.array([1.0, 4.0])}, 1e-3), absolute_errors({"risk": np.array([1.0, 4.0])}, None)
    ({'risk': 0.004}, {'risk': inf})
    """
    if isinstance(accuracy, Mapping):
        return {name: float(np.max(error)) for name, error in accuracy.items()}
    numbers = {name: value for name, value in values.items() if value.dtype.kind in "biuf"}
    if accuracy is None:
        return dict.fromkeys(numbers, math.inf)
    relative = float(np.max(np.asarray(accuracy)))
    natural = natural_scale or (lambda _: 0.0)
    return {name: relative * max(scale_of(value), natural(name)) for name, value in numbers.items()}


def accuracy_of(
    values: Mapping[str, NDArray[Any]], errors: Mapping[str, float], natural_scale: Callable[[str], float] | None = None
) -> float | str:
    """Return the attribute `accuracy` of a prediction, which is its relative numerical error or "not stated".

    >>> accuracy_of({"risk": np.array(2.0)}, {"risk": 0.002}), accuracy_of({"risk": np.array(2.0)}, {"risk": math.inf})
    (0.001, 'not stated')
    """
    return relative_error(values, errors, natural_scale) if all(map(math.isfinite, errors.values())) else NOT_STATED


def relative_error(
    values: Mapping[str, NDArray[Any]], errors: Mapping[str, float], natural_scale: Callable[[str], float] | None = None
) -> float:
    """Return the largest error relative to the scale of its observable.

    If an observable is zero, its error is relative to the largest scale of all observables.
    """
    natural = natural_scale or (lambda _: 0.0)
    scales = {name: max(scale_of(values[name]), natural(name)) for name in errors}
    largest = max(scales.values(), default=0.0) or 1.0
    return max((error / (scales[name] or largest) for name, error in errors.items()), default=CLOSED_FORM) or CLOSED_FORM


def stacked(runs: Sequence[xr.Dataset], seeds: Sequence[int]) -> xr.Dataset:
    """Return experiments along a new first dimension `seed`."""
    import xarray as xr

    if not runs:
        raise Refused("seeds = [] is not allowed: give at least one seed")
    data = {
        name: (("seed", *first.dims), np.stack([run[name].values for run in runs]), first.attrs)
        for name, first in runs[0].data_vars.items()
    }
    coords = {**runs[0].coords, "seed": np.asarray(seeds, dtype=np.int64)}
    return xr.Dataset(data, coords, {key: value for key, value in runs[0].attrs.items() if key != "seed"})


def describe_coordinates(law: Declaration, result: xr.Dataset) -> None:
    """Add description and symbol to swept parameters and to the law's own coordinates."""
    for name, meta in type(law).parameters().items():
        for coordinate in (name, meta.dimension) if meta.kind == "coordinate" else (name,):
            if coordinate in result.coords:
                result[coordinate].attrs.update(long_name=meta.note or meta.description, symbol=meta.symbol)


def _has_nan(array: NDArray[Any]) -> bool:
    return bool(np.isnan(array).any() if array.ndim else array != array)


def refuse_nan(values: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> None:
    """Raise FloatingPointError if a prediction contains NaN.

    Infinity is allowed, because some limits are infinite.
    """
    bad = [name for name, array in values.items() if array.dtype.kind in "fc" and _has_nan(array)]
    if bad:
        raise FloatingPointError(
            f"the prediction of {about['law']} is NaN for {', '.join(bad)} at {about['parameters']}; "
            "please report this error of limitlab; slightly different parameters may avoid it"
        )


@functools.cache
def package_version() -> str:
    """Return the version of the installed package, which is stored with every result."""
    try:
        return version("limitlab")
    except PackageNotFoundError:  # running from a source tree that was never installed
        return "0+unknown"


def parameters_of(result: xr.Dataset) -> dict[str, Any]:
    """Return the parameters for which a result was computed.

    >>> from limitlab.laws import Ridge
    >>> parameters_of(Ridge(ratio=2.0).theory())["ratio"]
    2.0
    """
    return dict(json.loads(result.attrs["parameters"]))
