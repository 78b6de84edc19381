"""The contract of laws, which is a set of checks that anyone can run on a law of their own.

>>> from limitlab.laws import NearestNeighbours
>>> "theory" in check_law(NearestNeighbours(samples=50, neighbours=3))
True
"""

from __future__ import annotations

import math
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import tomllib
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from limitlab._core.about import bibliography
from limitlab._core.declaration import KINDS, Parameter
from limitlab._core.draws import is_builtin
from limitlab._core.headline import headline_of
from limitlab._core.law import Law
from limitlab._core.results import NOT_STATED, scale_of
from limitlab._core.vocabulary import FORMER_NAMES
from limitlab.lab import compare, sweep

__all__ = ["LawContractError", "check_faults", "check_law", "true_errors"]


LARGEST_ERROR = 0.1
"""The largest allowed numerical error of a prediction, relative to the scale of its observables."""


class LawContractError(AssertionError):
    """The error of a law that violates the contract. The message lists all violations."""


def check_law(law: Law | type[Law], sizes: Sequence[int] | None = None, seeds: int | None = None) -> list[str]:
    """Run the contract suite on a law and return the names of the checks that ran.

    Parameters
    ----------
    law
        A law whose prediction is finite and whose simulation takes seconds. For a class its check points are used.
    sizes, seeds
        Sizes and number of draws of the comparison (default: those that the law declares).

    Raises
    ------
    LawContractError
        If a check fails. The message lists every failed check with its reason.

    Examples
    --------
    >>> from limitlab.laws import Ridge
    >>> check_law(Ridge(ratio=0.5), sizes=[20, 40, 80], seeds=20)[:3]
    ['description', 'parameters', 'refusals']
    """
    points = law.check_points() if isinstance(law, type) else [law]
    first = points[0]
    size = min(sizes if sizes is not None else first.simulation.sizes)
    checks: dict[str, Callable[[], None]] = {
        "description": lambda: _description(first),
        "parameters": lambda: _parameters(first),
        "refusals": lambda: _refusals(first),
        "names": lambda: _names(first, size),
        "round trip": lambda: _round_trip(first),
        "headline view": lambda: _headline(type(first)),
        "theory": lambda: _theory(first),
        "accuracy": lambda: _accuracy(first),
        "array form": lambda: _array_form(first),
        "simulation": lambda: _simulation(first, size),
        "seeds": lambda: _seeds(first, size),
        "streams": lambda: _streams(first, size),
        "path": lambda: _path(first, size),
        "coordinates": lambda: _coordinates(first),
        "agreement": lambda: _agreements(points, sizes, seeds),
    }
    failures = []
    for name, check in checks.items():
        try:
            check()
        except Exception as error:  # all failures are listed, of every type
            failures.append(f"{name}: {type(error).__name__}: {error}")
    if failures:
        raise LawContractError(f"{type(first).__name__} breaks its contract:\n  " + "\n  ".join(failures))
    return list(checks)


# -- the declaration ----------------------------------------------------------------------------------------------------


def _description(law: Law) -> None:
    kind = type(law)
    assert kind.title() != kind.__name__, "the class must have a docstring whose first line is its question"
    assert law.status in ("theorem", "derived", "conjecture"), f"status = {law.status!r}"
    assert law.regime, "regime must state where the law holds"
    assert law.assumptions, "assumptions must not be empty"
    assert law.references, "references must not be empty"
    if is_builtin(kind):
        missing = [key for key in law.references if key not in bibliography()]
        assert not missing, f"references {missing} are not in references.bib"
    assert kind.outputs(), "observables must be listed"
    assert set(law.observed()) <= set(kind.outputs()), "observed() contains a name that is not declared"
    assert isinstance(law.revision, int), "revision must be a whole number"
    assert law.revision >= 1, "revision must be at least 1"


def _parameters(law: Law) -> None:
    for name, meta in type(law).parameters().items():
        assert meta.description, f"{name} has no description"
        assert name.islower(), f"{name} must be a lower-case name"
        assert meta.kind in KINDS, f"{name} has kind {meta.kind!r}"
        assert meta.finer is None or meta.kind == "solver", f"{name} has `finer` but is not a solver option"
    assert type(law)() is not None  # the default values must form a valid law
    assert type(law).check_points(), "check_points() is empty"


def _refusals(law: Law) -> None:
    """Check that bad values and unknown names raise a ValueError that names the parameter."""
    attempts: list[tuple[str, Any]] = [("no_such_parameter", 1.0)]
    for name, meta in type(law).parameters().items():
        attempts += [(name, value) for value in _outside(law, meta)]
    for name, value in attempts:
        refusal = _refusal(law, name, value)
        assert refusal is not None, f"{name} = {value!r} was accepted"
        assert name in refusal, f"the refusal of {name} = {value!r} does not contain this name: {refusal}"
    for old in filter(type(law).former_name, FORMER_NAMES):
        new = type(law).former_name(old)
        refusal = _refusal(law, old, 1.0)
        assert refusal is not None, f"the former name {old} was accepted"
        assert repr(new) in refusal, f"the refusal of {old} does not contain {new}: {refusal}"


def _outside(law: Law, meta: Parameter) -> Iterator[Any]:
    """Yield values just outside every bound of a parameter, and values that no parameter takes.

    No parameter takes NaN or a text that is not one of its choices, and no coordinate is empty or decreases.
    """
    leaves = _leaves(type(law).model_fields[meta.name].annotation)
    if str in leaves:
        yield "no such choice"
    if meta.kind == "coordinate" and tuple in leaves:
        yield ()
        yield (2.0, 1.0)
    if not leaves & {int, float}:
        return
    whole, series = float not in leaves, tuple in leaves and not leaves & {int, float} - {int}
    values: list[float] = [math.nan]
    if not meta.infinite and not whole:
        values += [math.inf, -math.inf]
    for bound, down, closed in (
        (meta.above, True, False), (meta.least, True, True), (meta.below, False, False), (meta.most, False, True),
    ):  # fmt: skip
        if bound is not None and math.isfinite(bound):
            direction = -math.inf if down else math.inf
            step = (bound - 1 if down else bound + 1) if whole else float(np.nextafter(bound, direction))
            values.append(step if closed else bound)
    for value in values:
        number = int(value) if whole and math.isfinite(value) else value
        yield (number,) if series else number


def _leaves(annotation: Any) -> set[Any]:
    """Yield the plain types of a union, or of a sequence its own type and the type of its elements."""
    value = getattr(annotation, "__value__", annotation)
    origin = typing.get_origin(value)
    if origin is typing.Annotated:
        return _leaves(typing.get_args(value)[0])
    if origin in (typing.Union, types.UnionType):
        return set().union(*map(_leaves, typing.get_args(value)))
    if origin is typing.Literal:
        return {str}
    if origin is tuple:
        inner = typing.get_args(value)[0]
        return {tuple, inner} if inner in (int, float) else set()
    return {value}


def _refusal(law: Law, name: str, value: Any) -> str | None:
    try:
        law.replace(**{name: value})
    except ValueError as error:
        return str(error)
    return None


def _names(law: Law, size: int) -> None:
    """Check that `evaluate` and `experiment` refuse unknown names and parameters that they do not take as arrays."""
    calls: dict[str, tuple[Callable[..., Any], Sequence[str]]] = {
        "evaluate": (law.evaluate, law.array_parameters()),
        "experiment": (lambda **path: law.experiment(size, 1, **path), law.path_parameters()),
    }
    for call, (function, served) in calls.items():
        for name in ("no_such_parameter", *(known for known in type(law).parameters() if known not in served)):
            words = _words_of_refusal(function, name)
            assert words is not None, f"{call}({name}=...) was accepted"
            assert name in words, f"{call}({name}=...) is refused in a message without this name: {words}"


def _words_of_refusal(function: Callable[..., Any], name: str) -> str | None:
    try:
        function(**{name: np.array([1.0, 2.0])})
    except ValueError as error:
        return str(error)
    return None


def _round_trip(law: Law) -> None:
    assert type(law).model_validate_json(law.model_dump_json()) == law, "JSON round trip changes the law"
    assert pickle.loads(pickle.dumps(law)) == law, "pickling changes the law"
    assert hash(law) == hash(law.replace()), "equal laws must have equal hashes"


def _headline(law: type[Law]) -> None:
    """Check the names in the headline view of a law, and that its lines are finite numbers or infinite limits."""
    view = headline_of(law)
    replaced = hasattr(law, "headline_line")
    assert replaced or view.x == "size" or view.x in law.parameters(), f"headline: there is no parameter {view.x!r}"
    assert replaced or set(view.show) <= set(law.all_outputs()), f"headline: {view.show} are not all observables"
    unknown = {*view.at, *view.sliders, *(view.curves or ())[:1]} - set(law.parameters())
    assert not unknown, f"headline: there are no parameters {sorted(unknown)}"
    assert law.headline is None or len(view.finding.split()) <= 8, "headline: the finding has more than eight words"


# -- the prediction -----------------------------------------------------------------------------------------------------


def _theory(law: Law) -> None:
    result = law.theory()
    assert isinstance(result, xr.Dataset)
    missing = set(law.observed()) - set(map(str, result))
    assert not missing, f"theory lacks {sorted(missing)}"
    for key in ("accuracy", "law", "parameters", "revision", "status", "version"):
        assert key in result.attrs, f"theory lacks attrs[{key!r}]"
    if result.attrs["accuracy"] != NOT_STATED:
        assert 0 <= result.attrs["accuracy"] < LARGEST_ERROR, f"accuracy = {result.attrs['accuracy']}"
        assert all("numerical_error" in result[name].attrs for name in law.observed()), (
            "an observable has no numerical error"
        )
    assert not any(np.isnan(result[name]).any() for name in law.observed()), "theory gives NaN"
    assert all(result[name].attrs.get("long_name") for name in law.observed()), "an observable has no long_name"
    xr.testing.assert_identical(result, law.theory())


def true_errors(law: Law) -> dict[str, tuple[float, float]]:
    """Return for each observable its change when the law is solved more accurately, and the stated numerical error.

    An error that is not stated is infinite.

    >>> from limitlab.laws import SpikedTensor
    >>> change, stated = true_errors(SpikedTensor())["overlap"]
    >>> change <= 3 * stated
    True
    """
    coarse, fine = law.theory(), law.finer().theory()
    errors = {}
    for name in law.observed():
        both = np.isfinite(coarse[name].values) & np.isfinite(fine[name].values)
        gap = np.abs(np.where(both, coarse[name].values - np.where(both, fine[name].values, 0.0), 0.0))
        errors[name] = (float(np.max(gap, initial=0.0)), float(coarse[name].attrs.get("numerical_error", math.inf)))
    return errors


def _accuracy(law: Law) -> None:
    """Check that a more accurate solution changes the prediction by less than three times the stated error.

    If the law states no error, the change must be small. For a law without solver options, the change is that between neighbouring
    floating-point values of the parameters.
    """
    theory = law.theory()
    if theory.attrs["accuracy"] == NOT_STATED:
        for name, change in law.estimated_errors().items():
            scale = scale_of(theory[name].values)
            assert change <= LARGEST_ERROR * scale, f"{name} states no accuracy and changes by {change:.2g} of {scale:.2g}"
        return
    if law.finer() == law:
        return
    for name, (change, stated) in true_errors(law).items():
        assert change <= 3 * stated + 1e-13, f"{name} states an error of {stated:.2g} and changes by {change:.2g}"


def _nearby(law: Law, meta: Parameter) -> list[float]:
    """Return up to three allowed values around the value of the law."""
    present = getattr(law, meta.name)
    if present is None:
        return [trial for trial in (0.5, 1.0, 2.0) if meta.allows(trial)]
    value = float(present)
    trials = [value, 0.8 * value, 1.25 * value] if value else [0.0, 0.1, 0.5]
    if isinstance(meta.default, int):
        trials = [value, value + 1.0, value + 2.0]
    return [trial for trial in trials if meta.allows(trial) and _can_be_built(law, meta, trial)]


def _can_be_built(law: Law, meta: Parameter, value: float) -> bool:
    """Return whether a value is compatible with the other parameters of a law."""
    try:
        _with(law, meta, value)
    except ValueError:
        return value == getattr(law, meta.name)  # the present value is always tried, so that its error is shown
    return True


def _with(law: Law, meta: Parameter, value: float) -> Law:
    return law.replace(**{meta.name: int(value) if isinstance(meta.default, int) else value})


def _array_form(law: Law) -> None:
    for name in law.array_parameters():
        meta = type(law).parameters()[name]
        values = _nearby(law, meta)
        arrays = law.evaluate(**{name: np.array(values)})
        for i, value in enumerate(values):
            scalar = _with(law, meta, value).theory()
            for observable in law.observed():
                np.testing.assert_allclose(
                    arrays[observable][i],
                    scalar[observable],
                    rtol=1e-9,
                    atol=1e-12,
                    err_msg=f"array form of {observable} in {name}",
                )


def _coordinates(law: Law) -> None:
    """Check that a single coordinate gives no dimension, and that a sweep over a coordinate gives its dimension."""
    for name, meta in type(law).parameters().items():
        if meta.kind != "coordinate":
            continue
        several = [float(value) for value in np.atleast_1d(getattr(law, name))][-2:]
        swept = sweep(law, over={name: several}, progress=False)
        assert meta.dimension in swept.dims, f"sweeping over {name} gives no dimension {meta.dimension}"
        direct = law.replace(**{name: tuple(several)}).theory()
        for observable in law.observed():
            values = swept[observable]
            same = direct[observable].broadcast_like(values).transpose(*values.dims)
            np.testing.assert_array_equal(values, same, err_msg=f"{observable} swept over {name}")
        single = law.replace(**{name: several[-1]}).theory()
        assert meta.dimension not in single.dims, f"a single {name} keeps the dimension {meta.dimension}"


# -- the experiment -----------------------------------------------------------------------------------------------------


def _simulation(law: Law, size: int) -> None:
    theory, run = law.theory(), law.simulate(size, 1)
    for name in law.observed():
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
    if all(np.array_equal(first[name], other[name]) for name in law.observed()):
        default = type(law)()  # at some parameters an experiment draws no random number, but not at its defaults
        runs = default.simulate(size, 1), default.simulate(size, 2)
        changed = [name for name in default.observed() if not np.array_equal(runs[0][name], runs[1][name])]
        assert changed, "the seed changes nothing"
    batch = law.simulate_batch(size, [5, 2, 1])
    for name in law.observed():
        np.testing.assert_array_equal(batch[name].sel(seed=1), first[name], err_msg=f"batch of {name}")
        np.testing.assert_array_equal(batch[name].sel(seed=2), other[name], err_msg=f"batch of {name}")


def _streams(law: Law, size: int) -> None:
    """Check that size and seed determine the draw, whatever the solver options are, and alone as in a sweep.

    One parameter that a draw serves for all its values is swept, and one parameter with a draw for each value.
    """
    alone = law.simulate(size, 7)
    for name in law.observed():
        np.testing.assert_array_equal(
            law.finer().simulate(size, 7)[name], alone[name], err_msg=f"{name} depends on a solver option"
        )
    numbers = [name for name, meta in type(law).parameters().items() if _can_be_swept(law, meta)]
    shared = [name for name in numbers if name in law.path_parameters()]
    separate = [name for name in numbers if name not in law.path_parameters()]
    for name in shared[:1] + separate[:1]:
        points = _nearby(law, type(law).parameters()[name])[:2]
        swept = sweep(law, over={name: points}, sizes=[size], seeds=[7], progress=False).isel(size=0, seed=0)
        for i, point in enumerate(points):
            single = _with(law, type(law).parameters()[name], point).simulate(size, 7)
            for observable in law.observed():
                np.testing.assert_allclose(
                    swept[observable].isel({name: i}).values,
                    single[observable].values,
                    rtol=1e-8,
                    atol=1e-12,
                    err_msg=f"{observable} alone and swept over {name}",
                )


def _can_be_swept(law: Law, meta: Parameter) -> bool:
    """Return whether a parameter is a single number that changes the experiment and no coordinate."""
    value = getattr(law, meta.name)
    return (
        meta.kind in ("physics", "experiment")
        and isinstance(value, (int, float))
        and not isinstance(value, bool)
        and meta.name not in type(law).coordinates.__code__.co_names
    )


def _path(law: Law, size: int) -> None:
    for name in law.path_parameters():
        meta = type(law).parameters()[name]
        values = _nearby(law, meta)
        path = law.experiment(size, 1, **{name: np.array(values)})
        for i, value in enumerate(values):
            single = _with(law, meta, value).simulate(size, 1)
            for observable in law.observed():
                np.testing.assert_allclose(
                    path[observable][i],
                    single[observable],
                    rtol=1e-8,
                    atol=1e-12,
                    err_msg=f"path of {observable} in {name}",
                )


def _agreements(points: Sequence[Law], sizes: Sequence[int] | None, seeds: int | None) -> None:
    for point in points:
        _agreement(point, sizes, seeds)


def _agreement(law: Law, sizes: Sequence[int] | None, seeds: int | None) -> None:
    """Check that prediction and experiment do not disagree, and that the gap does not grow with size."""
    result = compare(law, sizes, seeds, budget=0.0, progress=False)
    assert result.verdict != "disagree", result.explanation
    for name in {row.observable for row in result.rows}:
        theory, mean, error = (np.abs(result.dataset[f"{kind}_{name}"].values) for kind in ("theory", "mean", "error"))
        gap = np.abs(result.dataset[f"mean_{name}"].values - result.dataset[f"theory_{name}"].values)
        gap = gap.reshape(len(gap), -1)
        noise = error.reshape(gap.shape)
        grows = gap[-1] - gap[0] - 5 * np.hypot(noise[-1], noise[0]) - 1e-10 * (1 + np.max(theory[np.isfinite(theory)]))
        assert not (np.isfinite(grows) & (grows > 0)).any(), f"the gap of {name} grows with size: {gap[0]} -> {gap[-1]}"
        assert np.isfinite(mean).all(), f"mean of {name} is not finite"


# -- planted faults -----------------------------------------------------------------------------------------------------


COMPARE = """
import sys
from limitlab import compare, load_laws
folder, budget, *names = sys.argv[1:]
laws = load_laws(folder)
verdicts = [compare(laws[f"{folder}:{name}"], budget=float(budget), progress=False).verdict for name in names]
print(max(verdicts, key=("agree", "underpowered", "disagree").index))
"""


def check_faults(folder: str | os.PathLike[str], budget: float = 20.0) -> dict[str, str]:
    """Plant the faults of a folder of laws in a copy, one at a time, and check that each of them is detected.

    Parameters
    ----------
    folder
        A folder with laws and a list of faults, `faults.toml`, as `limitlab new-law` writes it. In `file` the text `old`, which
        must occur once, is replaced by `new`. Then the `laws` are compared at their check points. For a fault without laws its
        `tests` are run.
    budget
        Seconds that a comparison may spend on adding draws.

    Returns
    -------
    dict[str, str]
        The result for every fault, which is "disagree" (the verdict of the comparison), "error" or "test".

    Raises
    ------
    LawContractError
        If a fault is not detected. The message lists all such faults.

    Examples
    --------
    >>> check_faults("my_laws")    # doctest: +SKIP
    {'my_law.py: tau for tau^2 in (1)': 'disagree'}
    """
    source = Path(folder).resolve()
    if not (source / "faults.toml").is_file():
        raise ValueError(
            f"folder = {str(folder)!r} is not allowed: it has no faults.toml; `limitlab new-law` writes an example"
        )
    faults = tomllib.loads((source / "faults.toml").read_text(encoding="utf-8")).get("fault", [])
    fates: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as place:
        for number, fault in enumerate(faults, 1):
            copy = Path(place) / str(number) / source.name
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
            path = copy / fault["file"]
            text = path.read_text(encoding="utf-8")
            if text.count(fault["old"]) != 1:
                raise ValueError(
                    f"fault {number}: {fault['old']!r} occurs {text.count(fault['old'])} times in {fault['file']}, not once"
                )
            if number == 1:
                _check_sound(copy, faults, budget)
            path.write_text(text.replace(fault["old"], fault["new"]), encoding="utf-8")
            words = fault.get("note") or f"{fault['old']} -> {fault['new']}"
            fates[f"{fault['file']}: {words}"] = _fate(copy, fault, budget)
    missed = [f"{name} ({fate})" for name, fate in fates.items() if fate not in ("disagree", "error", "test")]
    if missed:
        raise LawContractError(f"{len(missed)} of {len(faults)} faults are not detected:\n  " + "\n  ".join(missed))
    return fates


def _check_sound(copy: Path, faults: Sequence[Any], budget: float) -> None:
    """Raise LawContractError unless the laws agree without a fault, because otherwise every fault would seem to be detected."""
    names = list(dict.fromkeys(name for fault in faults for name in fault.get("laws", ())))
    done = _run(copy, "-c", COMPARE, copy.name, str(budget), *names) if names else None
    if done is not None and done.stdout.strip() != "agree":
        problem = done.stdout.strip() or done.stderr.strip().split("\n")[-1]
        raise LawContractError(f"without a fault the comparison does not agree: {problem}")


def _fate(copy: Path, fault: dict[str, Any], budget: float) -> str:
    """Return the result for a planted fault, from the comparison, or from the tests of a fault without laws."""
    if fault.get("laws"):
        done = _run(copy, "-c", COMPARE, copy.name, str(budget), *fault["laws"])
        return done.stdout.strip() if done.returncode == 0 else "error"
    done = _run(copy, "-m", "pytest", "-q", *(str(Path(copy.name) / test) for test in fault.get("tests", ())))
    return "test" if done.returncode == 1 else "the tests pass"


def _run(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the folder that contains the copy, so that the copy is imported and not its source."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=copy.parent, env=environment, capture_output=True, text=True, check=False
    )
