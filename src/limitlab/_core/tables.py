"""Tables of results, for a terminal, a file or a page."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import xarray as xr


def number(value: Any) -> str:
    """Return a number as text with six digits; whole numbers have no decimal point.

    >>> number(0.9365291), number(3), number(float("inf")), number(True), number("relu")
    ('0.936529', '3', 'inf', 'yes', 'relu')
    """
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return f"{value + 0.0:.6g}"  # adding 0 turns -0 into 0
    if isinstance(value, (tuple, list, np.ndarray)):
        return ", ".join(number(item) for item in value)
    return str(value)


GREEK = {
    **{"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "zeta": "ζ", "eta": "η", "theta": "θ"},
    **{"iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ"},
    **{"sigma": "σ", "tau": "τ", "phi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω"},
}


def plain_symbol(symbol: str) -> str:
    r"""Return a LaTeX symbol as text for a terminal. Greek letters replace their names; the rest is unchanged.

    >>> plain_symbol(r"\lambda"), plain_symbol("p/n"), plain_symbol(r"\gamma_0")
    ('λ', 'p/n', 'γ_0')
    """
    return re.sub(r"\\([a-z]+)", lambda match: GREEK.get(match[1], match[0]), symbol)


def rows_of(result: xr.Dataset, observables: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Return one row per point of a result's grid, with its coordinates and then its observables.

    >>> import xarray as xr
    >>> rows_of(xr.Dataset({"test_error": ("ratio", [1.0, 2.0])}, {"ratio": [0.1, 0.2]}))
    [{'ratio': 0.1, 'test_error': 1.0}, {'ratio': 0.2, 'test_error': 2.0}]
    """
    names = list(observables) if observables is not None else table_names(result)
    if not names:
        return []
    dims = list(dict.fromkeys(dim for name in names for dim in result[name].dims))
    sizes = [result.sizes[dim] for dim in dims]
    columns = {name: np.broadcast_to(_aligned(result[name], dims), sizes) for name in names}
    labels = {dim: result[dim].values if dim in result.coords else np.arange(result.sizes[dim]) for dim in dims}
    return [
        {
            **{str(dim): labels[dim][i].item() for dim, i in zip(dims, index, strict=True)},
            **{str(name): columns[name][index].item() for name in names},
        }
        for index in np.ndindex(*sizes)
    ]


def describe_result(result: xr.Dataset) -> dict[str, Any]:
    """Return the attributes, coordinates, observables and dimensions of a result as plain data for JSON."""
    attrs = dict(result.attrs)
    if isinstance(attrs.get("parameters"), str):
        attrs["parameters"] = json.loads(attrs["parameters"])
    return {
        **attrs,
        "coordinates": {name: array.values for name, array in result.coords.items()},
        "observables": {name: array.values for name, array in result.data_vars.items()},
        "dims": {name: list(array.dims) for name, array in result.data_vars.items()},
    }


def long_rows(result: xr.Dataset, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return one row per number, with its coordinates, its name and its value.

    A coordinate is blank if the observable does not depend on it.

    >>> import xarray as xr
    >>> long_rows(xr.Dataset({"mass": 1.0, "cdf": ("x", [0.0, 0.5])}, {"x": [1.0, 2.0]}), ["mass", "cdf"])[:2]
    [{'x': '', 'observable': 'mass', 'value': 1.0}, {'x': 1.0, 'observable': 'cdf', 'value': 0.0}]
    """
    dims = list(dict.fromkeys(str(dim) for name in names for dim in result[name].dims))
    rows = []
    for name in names:
        for row in rows_of(result, [name]):
            place = {dim: row.get(dim, "") for dim in dims}
            rows.append({**place, "observable": name, "value": row[name]})
    return rows


def table_names(result: xr.Dataset) -> list[str]:
    """Return the names of the variables that share the result's grid.

    Raw samples with a dimension of their own do not fit into a table.
    """
    names = [str(name) for name in result.data_vars]
    return [name for name in names if set(result[name].dims) <= set(map(str, result.coords))]


def _aligned(array: xr.DataArray, dims: Sequence[Any]) -> Any:
    """Return the values of an array with its dimensions in the order of `dims`; missing dimensions have length one."""
    ordered = array.transpose(*[dim for dim in dims if dim in array.dims])
    return ordered.values.reshape([array.sizes.get(dim, 1) for dim in dims])
