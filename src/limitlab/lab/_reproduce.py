"""Repetition of a saved result from its own record, with a verdict on whether the numbers are the same.

A result contains its law, its parameters, and (in its coordinates and attributes) its grid, sizes and seeds, from which it can be
computed again. It is read as data only. Nothing in it is unpickled, evaluated or imported. A law of another author must therefore
be loaded before, and a function that was a parameter cannot be restored from its record.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xarray as xr
from pydantic_core import ValidationError

from limitlab._core.arguments import explained
from limitlab._core.files import expanded
from limitlab._core.law import Law
from limitlab._core.registry import find_law
from limitlab._core.results import package_version
from limitlab.errors import Refused
from limitlab.lab.engines import Engine
from limitlab.lab.grid import one_line
from limitlab.lab.progress import ProgressOption
from limitlab.lab.store import Store, read_dataset

__all__ = ["Reproduction", "read_result", "reproduce"]

Verdict = Literal["bitwise", "rounding", "accuracy", "differs"]

WORDS: dict[Verdict, str] = {
    "bitwise": "every number is the same to the last bit",
    "rounding": "the numbers agree up to rounding",
    "accuracy": "the numbers agree within the stated accuracy of the prediction",
    "differs": "the numbers differ",
}
ROUNDING = 1e-11
"""Relative differences that other versions of libraries or another processor may cause."""


@dataclass(frozen=True)
class Reproduction:
    """The result of `reproduce`.

    Attributes
    ----------
    verdict
        The worst verdict of all variables: "bitwise", "rounding", "accuracy" (a prediction, within its numerical error) or
        "differs".
    law, kind
        The law that was computed again, and the kind of the result, "theory", "simulation" or "comparison".
    differences
        The largest difference of every variable, relative to its largest value.
    saved_version, saved_revision, version, revision
        Versions of limitlab and revisions of the law, of the saved result and of the repetition.
    missing
        Variables of the file that the law no longer computes.
    """

    verdict: Verdict
    law: str
    kind: str
    differences: Mapping[str, float]
    saved_version: str
    version: str
    saved_revision: int | None
    revision: int
    missing: tuple[str, ...] = ()

    @property
    def matches(self) -> bool:
        """Whether the installed version gives the numbers of the file, up to rounding or within the stated accuracy."""
        return self.verdict != "differs"

    def __str__(self) -> str:
        worst = max(self.differences, key=lambda name: self.differences[name], default="")
        where = (
            f" (most in {worst}: by {self.differences[worst]:.2g} of its scale)"
            if self.verdict != "bitwise" and worst
            else ""
        )
        lost = f"; no longer computed: {', '.join(self.missing)}" if self.missing else ""
        then = f"limitlab {self.saved_version}, revision {self.saved_revision}"
        now = f"limitlab {self.version}, revision {self.revision}"
        return f"{self.law} ({self.kind}): {WORDS[self.verdict]}{where}{lost}. Saved by {then}; computed again by {now}."


@explained
def reproduce(path: str | os.PathLike[str], *, engine: Engine = None, progress: ProgressOption = None) -> Reproduction:
    """Compute a saved result again and compare every number.

    Parameters
    ----------
    path
        A `.nc` or `.zarr` file, the JSON of a command (`--json`), or a store.
    engine, progress
        As in `limitlab.sweep`.

    Examples
    --------
    >>> import tempfile
    >>> from limitlab import sweep
    >>> from limitlab.laws import Ridge
    >>> file = tempfile.mkdtemp() + "/ridge.nc"
    >>> _ = sweep(Ridge(noise=0.5), over={"ridge": [0.1, 1.0]}, sizes=[20], seeds=3, store=file)
    >>> reproduce(file).verdict
    'bitwise'
    """
    saved = read_result(path)
    law = _law(saved, path)
    again = _again(saved, law, engine, progress)
    shared = [str(name) for name in saved.data_vars if name in again]
    compared = {name: _compared(saved[name], again[name]) for name in shared}
    missing = tuple(str(name) for name in saved.data_vars if name not in again)
    order = list(WORDS)
    verdicts = [verdict for verdict, _ in compared.values()] or ["differs"]
    revision = saved.attrs.get("revision")
    return Reproduction(
        verdict=max(verdicts, key=order.index),
        law=type(law).__name__,
        kind=str(saved.attrs["kind"]),
        differences={name: difference for name, (_, difference) in compared.items()},
        saved_version=str(saved.attrs.get("version", "unknown")),
        version=package_version(),
        saved_revision=None if revision is None else int(revision),
        revision=law.revision,
        missing=missing,
    )


# -- reading --------------------------------------------------------------------------------------------------------------


@explained
def read_result(path: str | os.PathLike[str]) -> xr.Dataset:
    """Return a saved result as a Dataset, read as data only."""
    place = expanded(path)
    if not place.exists():
        raise Refused(f"{str(path)!r} does not exist: give a result that was saved as .nc, .zarr or JSON, or a store")
    if place.suffix == ".csv":
        raise Refused(
            f"{str(path)!r} contains numbers without their provenance and cannot be computed again: save results as .nc"
        )
    if place.suffix == ".json":
        return _from_json(place)
    if place.is_dir() and place.suffix != ".zarr":
        place = (
            Store(place).result if not place.name.endswith(".cells") else place.with_name(place.name.removesuffix(".cells"))
        )
        if not place.exists():
            raise Refused(f"store {str(path)!r} has no result yet: run its sweep to the end")
    return read_dataset(place)


def _from_json(place: Path) -> xr.Dataset:
    try:
        content = json.loads(place.read_bytes())
        observables, dims = content["observables"], content["dims"]
        data = {name: (tuple(dims[name]), _numbers(values)) for name, values in observables.items()}
        coords = {name: _numbers(values) for name, values in content["coordinates"].items()}
        attrs = {name: value for name, value in content.items() if name not in ("observables", "dims", "coordinates")}
        attrs["parameters"] = json.dumps(content["parameters"])
        known = {name: (name, line) if line.ndim else line for name, line in coords.items()}
        return xr.Dataset(data, known, attrs)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, OSError):
            raise
        raise Refused(f"{str(place)!r} is not the JSON of a result (limitlab predict or simulate with --json)") from None


def _numbers(values: Any) -> np.ndarray[Any, Any]:
    array = np.asarray(values)
    if array.dtype.kind in "US":  # infinity is a text in JSON; other texts stay texts
        try:
            return array.astype(float)
        except ValueError:
            return array
    return array


def _law(saved: xr.Dataset, path: Any) -> Law:
    """Return the law of a result, at its parameters."""
    name, text = saved.attrs.get("law"), saved.attrs.get("parameters")
    if (
        not isinstance(name, str)
        or not isinstance(text, str)
        or saved.attrs.get("kind") not in ("theory", "simulation", "comparison")
    ):
        raise Refused(f"{str(path)!r} does not contain law, parameters and kind, so it cannot be computed again")
    kind = _known(name) or _loaded(name)
    if kind is None:
        raise Refused(f"there is no law {name!r}: if it is your own law, give its file with --laws FILE.py")
    try:
        parameters = json.loads(text)
        return kind(**parameters)
    except ValidationError as error:
        raise Refused(f"{str(path)!r} cannot be computed again: {one_line(error)}") from None
    except (ValueError, TypeError, RecursionError):
        raise Refused(f"{str(path)!r} cannot be computed again: its parameters are not readable") from None


def _known(name: str) -> type[Law] | None:
    """Return the law of this class name that is built in, installed or loaded, or None."""
    try:
        return find_law(name)
    except ValueError:
        return None


def _loaded(name: str) -> type[Law] | None:
    """Return a law of another author that is loaded already."""
    modules = [module for key, module in list(sys.modules.items()) if not key.startswith("limitlab")]
    values = {vars(module).get(name) for module in modules if isinstance(getattr(module, "__dict__", None), dict)}
    laws = [each for each in values if isinstance(each, type) and issubclass(each, Law)]
    return laws[0] if len(laws) == 1 else None


# -- computing again ------------------------------------------------------------------------------------------------------


def _again(saved: xr.Dataset, law: Law, engine: Engine, progress: ProgressOption) -> xr.Dataset:
    """Repeat the call that made a result, from its coordinates and attributes."""
    from limitlab.lab._compare import compare
    from limitlab.lab._sweep import sweep

    kind, attrs = saved.attrs["kind"], saved.attrs
    coordinates = set(law.coordinates())
    over = {
        str(name): _values(saved[name])
        for name in saved.coords
        if name in type(law).model_fields and name not in coordinates
    }
    over = {name: values for name, values in over.items() if name in saved.dims}
    if kind == "comparison":
        seeds = [int(seed) for seed in np.ravel(_listed(attrs.get("seeds"), "seeds"))]
        names = [str(name).removeprefix("mean_") for name in saved.data_vars if str(name).startswith("mean_")]
        sizes = [int(size) for size in np.ravel(saved["size"].values)]
        return compare(law, sizes, seeds, observables=names, engine=engine, progress=progress).dataset
    if kind == "theory":
        return sweep(law, over, engine=engine, progress=progress) if over else law.theory()
    sizes = [
        int(size)
        for size in np.ravel(saved["size"].values if "size" in saved.coords else _listed(attrs.get("size"), "size"))
    ]
    seeds = [
        int(seed)
        for seed in np.ravel(saved["seed"].values if "seed" in saved.coords else _listed(attrs.get("seed"), "seed"))
    ]
    if not over:
        return law.simulate_batch(sizes[0], seeds) if "seed" in saved.dims else law.simulate(sizes[0], seeds[0])
    beside = any(str(name).startswith("theory_") for name in saved.data_vars)
    repeated = sweep(law, over, sizes, seeds, engine=engine, progress=progress, with_theory=beside)
    return repeated if "size" in saved.dims else repeated.squeeze("size")


def _listed(value: Any, name: str) -> Any:
    if value is None:
        raise Refused(f"the result does not contain its {name}: it cannot be computed again")
    return json.loads(value) if isinstance(value, str) else value


def _values(labels: xr.DataArray) -> list[Any]:
    """Return the values of a swept parameter from their labels, in which tuples are texts."""
    values = labels.values.tolist()
    if not isinstance(values, list):
        return [values]
    return [_tuple(value) if isinstance(value, str) and value.startswith("(") else value for value in values]


def _tuple(text: str) -> Any:
    try:
        return json.loads(text.replace("(", "[").replace(")", "]"))
    except ValueError:
        raise Refused(
            f"the swept value {text} is only described in the result, so the result cannot be computed again"
        ) from None


def _compared(saved: xr.DataArray, again: xr.DataArray) -> tuple[Verdict, float]:
    """Return the verdict on a variable, and its largest difference relative to its scale."""
    if set(saved.dims) != set(again.dims) or any(saved.sizes[dim] != again.sizes[dim] for dim in saved.dims):
        return "differs", float("inf")
    before, now = saved.values, again.transpose(*saved.dims).values
    numeric = before.dtype.kind in "biuf" and now.dtype.kind in "biuf"
    if np.array_equal(before, now, equal_nan=numeric and before.dtype.kind == "f"):
        return "bitwise", 0.0
    if not numeric or not np.array_equal(np.isfinite(before), np.isfinite(now)):
        return "differs", float("inf")
    finite = np.isfinite(before)
    gap = float(np.abs(before[finite].astype(float) - now[finite].astype(float)).max(initial=0.0))
    scale = float(np.abs(now[finite].astype(float)).max(initial=0.0)) or 1.0
    if not np.array_equal(before[~finite], now[~finite], equal_nan=before.dtype.kind == "f"):
        return "differs", float("inf")
    if gap <= ROUNDING * scale:
        return "rounding", gap / scale
    stated = sum(float(result.attrs.get("numerical_error", 0.0)) for result in (saved, again))
    return ("accuracy" if gap <= stated else "differs"), gap / scale
