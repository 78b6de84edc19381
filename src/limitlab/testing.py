"""The contract that every law keeps, as checks anyone can run on a law of their own.

>>> from limitlab.laws import NearestNeighbours
>>> "theory" in check_law(NearestNeighbours(samples=50, neighbours=3))
True
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr

from limitlab.lab.compare import compare
from limitlab.laws.base import Law
from limitlab.laws.parameters import Parameter


class LawContractError(AssertionError):
    """One or more parts of the contract are broken; the message lists them all."""


def check_law(law: Law, sizes: Sequence[int] | None = None, seeds: int | None = None) -> list[str]:
    """Run the contract suite on a law and return the names of the checks that ran.

    Parameters
    ----------
    law
        An instance, with parameters at which theory is finite and a simulation takes a moment.
    sizes, seeds
        For the comparison at growing sizes (default: the law's own).

    Raises
    ------
    LawContractError
        Listing every check that failed and why.

    Examples
    --------
    >>> from limitlab.laws import Ridge
    >>> check_law(Ridge(ratio=0.5), sizes=[20, 40, 80], seeds=20)[:3]
    ['description', 'parameters', 'refusals']
    """
    size = min(sizes if sizes is not None else law.default_sizes)
    checks: dict[str, Callable[[], None]] = {
        "description": lambda: _description(law),
        "parameters": lambda: _parameters(law),
        "refusals": lambda: _refusals(law),
        "round trip": lambda: _round_trip(law),
        "theory": lambda: _theory(law),
        "array form": lambda: _array_form(law),
        "simulation": lambda: _simulation(law, size),
        "seeds": lambda: _seeds(law, size),
        "path": lambda: _path(law, size),
        "agreement": lambda: _agreement(law, sizes, seeds),
    }
    failures = []
    for name, check in checks.items():
        try:
            check()
        except Exception as error:  # every failure is listed, whatever its kind
            failures.append(f"{name}: {type(error).__name__}: {error}")
    if failures:
        raise LawContractError(f"{type(law).__name__} breaks its contract:\n  " + "\n  ".join(failures))
    return list(checks)


def _description(law: Law) -> None:
    kind = type(law)
    assert kind.title() != kind.__name__, "the class needs a docstring whose first line is its question"
    assert law.status in ("theorem", "derived", "conjecture"), f"status = {law.status!r}"
    assert law.regime, "regime must say where the law holds"
    assert law.assumptions, "assumptions must not be empty"
    assert law.references, "references must not be empty"
    assert all(entry.lstrip().startswith("@") for entry in law.references), "references must be BibTeX entries"
    assert law.observables, "observables must be listed"


def _parameters(law: Law) -> None:
    for name, meta in type(law).parameters().items():
        assert meta.description, f"{name} has no description"
        assert name.islower(), f"{name} must be a lower-case name"
    assert type(law)() is not None  # the defaults are a valid law
    for name in (*law.array_parameters, *law.path_parameters):
        assert name in type(law).parameters(), f"{name} is listed but is not a parameter"


def _refusals(law: Law) -> None:
    """Bad values and unknown names are refused with a ValueError that names the parameter."""
    attempts = {"no_such_parameter": 1.0}
    for name, meta in type(law).parameters().items():
        if isinstance(meta.default, (int, float)) and not isinstance(meta.default, bool):
            attempts[name] = math.nan
    for name, value in attempts.items():
        refusal = _refusal(law, name, value)
        assert refusal is not None, f"{name} = {value} was accepted"
        assert name in refusal, f"the refusal of {name} = {value} does not name it: {refusal}"


def _refusal(law: Law, name: str, value: float) -> str | None:
    try:
        law.replace(**{name: value})
    except ValueError as error:
        return str(error)
    return None


def _round_trip(law: Law) -> None:
    assert type(law).model_validate_json(law.model_dump_json()) == law, "JSON round trip changes the law"
    assert pickle.loads(pickle.dumps(law)) == law, "pickling changes the law"
    assert hash(law) == hash(law.replace()), "equal laws must have equal hashes"


def _theory(law: Law) -> None:
    result = law.theory()
    assert isinstance(result, xr.Dataset)
    missing = set(law.observables) - set(map(str, result))
    assert not missing, f"theory lacks {sorted(missing)}"
    for key in ("accuracy", "law", "parameters", "status", "version"):
        assert key in result.attrs, f"theory lacks attrs[{key!r}]"
    assert 0 <= result.attrs["accuracy"] < 0.1, f"accuracy = {result.attrs['accuracy']}"
    assert not any(np.isnan(result[name]).any() for name in law.observables), "theory gives NaN"
    assert all(result[name].attrs.get("long_name") for name in law.observables), "an observable has no long_name"
    xr.testing.assert_identical(result, law.theory())


def _nearby(law: Law, meta: Parameter) -> list[float]:
    """Up to three allowed values around the law's own."""
    value = float(getattr(law, meta.name))
    trials = [value, 0.8 * value, 1.25 * value] if value else [0.0, 0.1, 0.5]
    if isinstance(meta.default, int):
        trials = [value, value + 1.0, value + 2.0]
    return [trial for trial in trials if meta.allows(trial)]


def _array_form(law: Law) -> None:
    for name in law.array_parameters:
        meta = type(law).parameters()[name]
        values = _nearby(law, meta)
        arrays = law.evaluate(**{name: np.array(values)})
        for i, value in enumerate(values):
            scalar = law.replace(**{name: int(value) if isinstance(meta.default, int) else value}).theory()
            for observable in law.observables:
                array = np.asarray(arrays[observable])
                entry = array[i] if array.ndim > scalar[observable].ndim else array
                np.testing.assert_allclose(
                    entry, scalar[observable], rtol=1e-9, atol=1e-12, err_msg=f"array form of {observable} in {name}"
                )


def _simulation(law: Law, size: int) -> None:
    theory, run = law.theory(), law.simulate(size, 1)
    for name in law.observables:
        assert name in run, f"simulation lacks {name}"
        assert run[name].dims == theory[name].dims, (
            f"{name}: dims {run[name].dims} in simulation, {theory[name].dims} in theory"
        )
        assert np.isfinite(run[name]).all(), f"simulated {name} is not finite"
    assert run.attrs["size"] == size
    assert run.attrs["seed"] == 1


def _seeds(law: Law, size: int) -> None:
    first = law.simulate(size, 1)
    xr.testing.assert_identical(first, law.simulate(size, 1))
    other = law.simulate(size, 2)
    assert any(not np.array_equal(first[name], other[name]) for name in law.observables), "the seed changes nothing"
    batch = law.simulate_batch(size, [5, 2, 1])
    for name in law.observables:
        np.testing.assert_array_equal(batch[name].sel(seed=1), first[name], err_msg=f"batch of {name}")
        np.testing.assert_array_equal(batch[name].sel(seed=2), other[name], err_msg=f"batch of {name}")


def _path(law: Law, size: int) -> None:
    for name in law.path_parameters:
        values = _nearby(law, type(law).parameters()[name])
        path = law.experiment(size, 1, **{name: np.array(values)})
        for i, value in enumerate(values):
            single = law.replace(**{name: value}).simulate(size, 1)
            for observable in law.observables:
                array = np.asarray(path[observable])
                entry = array[i] if array.ndim > single[observable].ndim else array
                np.testing.assert_allclose(
                    entry, single[observable], rtol=1e-8, atol=1e-12, err_msg=f"path of {observable} in {name}"
                )


def _agreement(law: Law, sizes: Sequence[int] | None, seeds: int | None) -> None:
    """Theory and experiment are not in disagreement, and the gap does not grow with size."""
    result = compare(law, sizes, seeds)
    assert result.verdict != "disagree", result.explanation
    for name in {row.observable for row in result.rows}:
        theory, mean, error = (np.abs(result.dataset[f"{kind}_{name}"].values) for kind in ("theory", "mean", "error"))
        gap = np.abs(result.dataset[f"mean_{name}"].values - result.dataset[f"theory_{name}"].values)
        gap = gap.reshape(len(gap), -1)
        noise = error.reshape(gap.shape)
        grows = gap[-1] - gap[0] - 5 * np.hypot(noise[-1], noise[0]) - 1e-10 * (1 + np.max(theory[np.isfinite(theory)]))
        assert not (np.isfinite(grows) & (grows > 0)).any(), f"the gap of {name} grows with size: {gap[0]} -> {gap[-1]}"
        assert np.isfinite(mean).all(), f"mean of {name} is not finite"


__all__ = ["LawContractError", "check_law"]
