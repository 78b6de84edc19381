"""Record what the library computes and prints, and compare two records: the check that a refactoring changed nothing.

    python tests/snapshot/snapshot.py record FILE.json.gz [--only laws,claims,figures,commands,errors] [--jobs N]
    python tests/snapshot/snapshot.py compare OLD.json.gz NEW.json.gz

A record holds five kinds of entries. Numbers of figures are compared to a relative error of 1e-9, everything else exactly. Durations,
versions, absolute paths, memory addresses and dotted paths of modules are left out of the recorded texts, because they may change.
The inputs of the kinds `commands` and `errors` are in `cases.py` beside this file; `recorded.py` turns results into plain data.
"""

from __future__ import annotations

import argparse
import difflib
import fnmatch
import functools
import gzip
import hashlib
import importlib
import inspect
import itertools
import json
import math
import os
import pickle
import re
import shlex
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

if __name__ == "__main__":  # pytest imports this file when it collects doctests: its environment must stay as it is
    # NumPy is imported later, inside the functions: its BLAS reads these variables once.
    for _variable in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA"):
        os.environ[f"{_variable}_NUM_THREADS"] = "1"
    os.environ.update(
        MPLBACKEND="Agg", JAX_PLATFORMS="cpu", LIMITLAB_MEMORY="4GB", LIMITLAB_TIME="24h", LIMITLAB_PATIENCE="none"
    )
    os.environ.update(COLUMNS="120", TERMINAL_WIDTH="120", NO_COLOR="1", TERM="dumb", TZ="UTC")
    for _variable in ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS"):
        os.environ.pop(_variable, None)

from recorded import PREFIX, captured, dataset, declared, plain, raised, text

KINDS = ("laws", "errors", "commands", "figures", "claims")
SEED = 7
LONGEST_DRAW = 60
"""Seconds after which one draw of a law is given up."""
TOLERANCE = {"figures": 1e-9}
"""The relative error to which the numbers of a kind are compared; all other kinds are compared exactly."""
RETIRED = {
    r"^\.(matrices_held|former_names)\b": "a method of the law and a table, whose effects are recorded",
    r"^\.points\[\d+\]\.(is_random|remarks)\b": "no longer stated by the law; remarks are attributes of the recorded prediction",
    r"^\.(parameters|schema\.properties)\.\w+\.(broadcasts|one_draw_serves_many|unit)$": "the signatures say it: array_parameters, "
    "path_parameters; no law had a unit",
    r"^\.stdout\.json\.parameters\[\d+\]\.unit$": "no law had a unit",
}
"""Places in entries (patterns) that only older records have, with the reason: what they held is left out of the comparison."""
KNOWN: dict[tuple[str, str], str] = {}
"""Entries (kind, pattern of the name) that two records of the same code may differ in, with the reason: listed, but not counted."""


@functools.cache
def internals() -> SimpleNamespace:
    """Every internal name that the script needs: the first candidate (module, name) that exists."""
    places = {
        "all_laws find_law subject_of": ("limitlab._core.registry",),
        "seed_entropy": ("limitlab._core.draws",),
        "all_claims find_claims": ("limitlab.lab.claims",),
        "all_figures describe_figures find_figure figure": ("limitlab.lab.figures",),
        "plotted_data": ("limitlab.plotting.output",),
        "app": ("limitlab.show.cli",),
    }
    found = SimpleNamespace()
    for names, modules in places.items():
        for name in names.split():
            setattr(found, name, _first(name, modules))
    return found


def _first(name: str, modules: tuple[str, ...]) -> Any:
    for module in modules:
        try:
            return getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("limitlab"):
                raise
        except AttributeError:
            pass
    raise SystemExit(f"none of {', '.join(modules)} has {name!r}: add its new place to the table in internals()")


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """A block that is interrupted by a TimeoutError after so many seconds."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"skipped: one draw takes more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# -- laws -------------------------------------------------------------------------------------------------------------

ATTRIBUTES = ("status", "regime", "assumptions", "references")
EXPERIMENT = {
    "size_meaning": "size_meaning", "finite_size_rate": "rate", "default_sizes": "sizes", "default_seeds": "draws",
}  # fmt: skip
"""The fields of the experiment of a law by the names under which they are recorded."""
OLD_NAMES = {
    *EXPERIMENT, "extras", "former_names", "is_random", "matrices_held", "natural_scale", "remarks",
}  # fmt: skip
FORMER_NAMES = {
    "AdiabaticGrowth": ("ratio",), "EarlyStopping": ("signal", "time"), "FirstOrderDynamics": ("signal",),
    "InterpolationTransition": ("ratio", "steps"), "MiddleRegime": ("ratio",), "OnlineMixture": ("start",),
    "OnlinePCA": ("start",), "OnlineSingleIndex": ("start",), "ResidualFlow": ("noise",), "Ridge": ("signal",),
    "TwoLayerDynamics": ("steps",),
}  # fmt: skip
"""Former names of parameters that are tried, by law; in the order of the first record."""
NEW_NAMES = {"__written__", "all_outputs", "estimated_errors", "former_name", "matrix_cost", "points", "simulation"}
"""Names of every law that left and joined it after the first record."""


def law_entry(law: Any) -> dict[str, Any]:
    """What a law declares, and what it computes at each of its check points."""
    entry: dict[str, Any] = {name: plain(getattr(law, name)) for name in ATTRIBUTES}
    entry |= {name: plain(getattr(law.simulation, field)) for name, field in EXPERIMENT.items()}
    entry |= dict(revision=law.revision, title=law.title(), subject=internals().subject_of(law))
    entry |= dict(doc=text(law.__doc__), names=own_names(law))
    entry |= dict(array_parameters=list(law.array_parameters()), path_parameters=list(law.path_parameters()))
    entry["parameters"] = {name: declared(meta) for name, meta in law.parameters().items()}
    entry["annotations"] = {name: text(field.annotation) for name, field in law.model_fields.items()}
    outputs = {name: declared(meta, but=("compared",)) for name, meta in law.all_outputs().items()}
    entry["observables"] = {name: meta for name, meta in outputs.items() if name in law.outputs()}
    entry["extras"] = {name: meta for name, meta in outputs.items() if name not in law.outputs()}
    entry["rates"] = {name: plain(law.rates(name)) for name in law.outputs()}
    entry["schema"] = captured(lambda: plain(law.model_json_schema()))
    entry["points"] = [captured(functools.partial(point_entry, point)) for point in law.check_points()]
    return entry


def own_names(law: Any) -> list[str]:
    """The names that completion offers for a law, as the first record has them."""
    from pydantic import BaseModel

    kept = {"model_dump", "model_dump_json", "model_fields", "model_validate", "model_validate_json"}
    hidden = {name for name in dir(BaseModel) if not name.startswith("__")} - kept
    names = {name for name in dir(law) if name not in hidden and (not name.startswith("_") or name.startswith("__"))}
    return sorted((names - NEW_NAMES) | OLD_NAMES)


def point_entry(point: Any) -> dict[str, Any]:
    """What a law says and computes at one set of parameters."""
    kind, size = type(point), min(type(point).simulation.sizes)
    written = point.model_dump_json()
    facts: dict[str, Callable[[], Any]] = dict(
        repr=lambda: text(repr(point)),
        json=lambda: json.loads(written),
        json_round_trip=lambda: (again := kind.model_validate_json(written)) == point and again.model_dump_json() == written,
        pickle_round_trip=lambda: pickle.loads(pickle.dumps(point)) == point,
        finer=lambda: json.loads(point.finer().model_dump_json()),
        realised=lambda: json.loads(point.realised(size).model_dump_json()),
        stream_words=lambda: internals().seed_entropy(point),
        first_random_numbers=lambda: point.draw(size, SEED).rng.standard_normal(3).tolist(),
        observed=lambda: list(point.observed()),
        scales=lambda: {name: plain(point.natural_scale(name)) for name in point.observed()},
        caveat=lambda: text(point.caveat()),
        cost_of_draw=lambda: declared(point.cost(size)),
        cost_of_limit=lambda: declared(point.cost()),
        theory=lambda: dataset(point.theory()),
        draw=lambda: drawn(point, size),
    )
    return {name: captured(function) for name, function in facts.items()}


def drawn(point: Any, size: int) -> dict[str, Any]:
    """One draw of the smallest default size."""
    with limited(LONGEST_DRAW):
        return dataset(point.simulate(size, SEED))


# -- claims and figures -------------------------------------------------------------------------------------------------


def claim_entry(claim: Any) -> dict[str, Any]:
    """What a claim states, and the outcome of its quick check."""
    entry = {name: plain(getattr(claim, name)) for name in ("id", "area", "statement", "laws", "figure", "implemented")}
    return entry | {"outcome": captured(lambda: outcome_entry(claim.run(True)))}


def outcome_entry(outcome: Any) -> dict[str, Any]:
    """An outcome without the time it took."""
    criteria = [{name: plain(value) for name, value in vars(one).items()} | {"text": text(one)} for one in outcome.criteria]
    rest = {
        name: plain(getattr(outcome, name)) for name in ("measured", "note", "decisive", "passed", "status", "criterion")
    }
    return {"criteria": criteria, **rest}


def figure_entry(name: str) -> dict[str, Any]:
    """A quick figure: its description, its texts, and all numbers that it shows."""
    import matplotlib.pyplot as plt

    found = internals()
    draw = found.all_figures()[name]
    figure = draw(True)
    numbers = ("x", "y", "low", "high", "value")
    series = []
    for about, group in itertools.groupby(
        found.plotted_data(figure), lambda row: {k: row[k] for k in row if k not in numbers}
    ):
        rows = list(group)
        series.append({**about, **{column: [row[column] for row in rows] for column in numbers}})
    panels = [
        dict(
            title=axes.get_title(), x_label=axes.get_xlabel(), y_label=axes.get_ylabel(), label=str(axes.get_label()),
            scales=[axes.get_xscale(), axes.get_yscale()], limits=plain([axes.get_xlim(), axes.get_ylim()]),
            legend=[one.get_text() for one in axes.get_legend().get_texts()] if axes.get_legend() else [],
            texts=[one.get_text() for one in axes.texts],
        )
        for axes in figure.axes
    ]  # fmt: skip
    entry = dict(
        description=found.describe_figures()[name], doc=text(inspect.getdoc(draw)), title=figure.get_suptitle(), panels=panels,
        texts=[one.get_text() for one in figure.texts], size=figure.get_size_inches().tolist(), series=series,
        legends=[[one.get_text() for one in legend.get_texts()] for legend in figure.legends],
    )  # fmt: skip
    plt.close("all")
    return entry


# -- commands and errors ------------------------------------------------------------------------------------------------


@contextmanager
def folder_with_inputs() -> Iterator[tuple[Path, set[Path]]]:
    """A temporary working folder and the input files in it."""
    import cases

    home, folder = os.getcwd(), Path(tempfile.mkdtemp(prefix=PREFIX))
    try:
        os.chdir(folder)
        yield folder, cases.write_inputs(folder)
    finally:
        os.chdir(home)
        shutil.rmtree(folder)


def command_entry(line: str, variables: dict[str, str] | None = None) -> dict[str, Any]:
    """One call of the command line in a folder of its own: exit code, output, and the files that it wrote."""
    from typer.testing import CliRunner

    with folder_with_inputs() as (folder, given):
        for one in line.split(" && "):
            done = CliRunner().invoke(internals().app, shlex.split(one), prog_name="limitlab", env=variables)
        bug = {} if done.exception is None or isinstance(done.exception, SystemExit) else raised(done.exception)
        files = {path.name: file_content(path) for path in sorted(folder.iterdir()) if path not in given}
        return {"code": done.exit_code, "stdout": output(done.stdout), "stderr": text(done.stderr), "files": files, **bug}


def output(words: str) -> Any:
    """Standard output: the data where it is JSON, otherwise its lines."""
    try:
        return {"json": plain(json.loads(words))}
    except ValueError:
        return text(words).splitlines()


def file_content(path: Path) -> Any:
    """What a command wrote: text in full if it is short, its hash if it is long; of other files only that they exist."""
    if path.suffix == ".json":
        return output(path.read_text(encoding="utf-8"))
    if path.suffix not in (".csv", ".md", ".svg"):
        return "written" if path.is_dir() or path.stat().st_size else "empty"
    words = text(path.read_text(encoding="utf-8"))
    if path.suffix == ".md":  # the ledger, with the minutes of all claims and the seconds of each
        words = re.sub(r"\| \d+ \|$", "| * |", re.sub(r"in \d+\.\d minutes", "in * minutes", words), flags=re.MULTILINE)
    return words.splitlines() if len(words) < 5000 else hashlib.sha256(words.encode()).hexdigest()


def error_entry(expression: str) -> dict[str, Any]:
    """A call with bad input: the error that it raises, or the type of what it gives in spite of it."""
    import cases

    with folder_with_inputs():
        return captured(lambda: {"accepted": type(eval(expression, cases.names(internals()))).__name__})


def refusals_entry(law: Any) -> dict[str, Any]:
    """What a law says to values that no parameter takes, to former names, and to values beyond each bound."""
    bad: list[tuple[str, Any]] = [("no_such_parameter", 1.0), *((old, 1.0) for old in FORMER_NAMES.get(law.__name__, ()))]
    for name, meta in law.parameters().items():
        bounds = [bound for bound in (meta.above, meta.least, meta.below, meta.most) if bound is not None]
        beyond = [step for bound in bounds for step in (bound, bound - 1, bound + 1)]
        bad += [(name, value) for value in (math.nan, math.inf, -math.inf, "text", True, None, (), (math.nan,), {}, *beyond)]

    def attempt(name: str, value: Any) -> Any:
        return text(repr(getattr(law(**{name: value}), name)))

    return {f"{name}={value!r}": captured(functools.partial(attempt, name, value)) for name, value in bad}


# -- recording ----------------------------------------------------------------------------------------------------------


@functools.cache
def entries(kind: str) -> dict[str, Callable[[], Any]]:
    """The entries of a kind by name, each as a function that computes it."""
    import cases

    found, part = internals(), functools.partial
    if kind == "laws":
        laws: dict[str, Callable[[], Any]] = {name: part(law_entry, law) for name, law in found.all_laws().items()}
        return {"names in limitlab.laws": lambda: list(importlib.import_module("limitlab.laws").__all__), **laws}
    if kind == "claims":
        return {name: part(claim_entry, claim) for name, claim in found.all_claims().items()}
    if kind == "figures":
        return {name: part(figure_entry, name) for name in sorted(found.all_figures())}
    if kind == "commands":
        lines = cases.command_lines(list(found.all_laws()))
        tab = {f"TAB {words}|": part(command_entry, "", cases.completion(words)) for words in cases.COMPLETIONS.split("|")}
        return {f"limitlab {line}": part(command_entry, line) for line in lines} | tab
    refusals = {f"{name}(bad values)": part(refusals_entry, law) for name, law in found.all_laws().items()}
    wrong = {f"limitlab {line}": part(command_entry, line) for line in cases.BAD_COMMANDS}
    return {one: part(error_entry, one) for one in cases.BAD_CALLS} | wrong | refusals


def compute(kind: str, name: str) -> tuple[Any, float]:
    """One entry and the seconds it took; an entry that fails is recorded as its error."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        entry = captured(entries(kind)[name])
    return entry, time.perf_counter() - start


def record(file: Path, kinds: list[str], jobs: int) -> None:
    """Compute every entry of the kinds and write them to a file."""
    print(f"recording {importlib.import_module('limitlab').__file__}", file=sys.stderr)
    content: dict[str, dict[str, Any]] = {}
    walls = {}
    for kind in kinds:
        names, start = list(entries(kind)), time.perf_counter()
        if jobs > 1:
            with ProcessPoolExecutor(jobs) as pool:
                results = list(show(kind, names, pool.map(compute, itertools.repeat(kind), names)))
        else:
            results = list(show(kind, names, (compute(kind, name) for name in names)))
        content[kind] = dict(zip(names, results, strict=True))
        walls[kind] = time.perf_counter() - start
        with gzip.open(file, "wt", encoding="utf-8", compresslevel=6) as stream:  # after each kind: what is finished is kept
            json.dump(content, stream)
    for kind, seconds in walls.items():
        found = content[kind]
        failed = [name for name in found if kind != "errors" and ' < Exception", "message": ' in json.dumps(found[name])]
        print(f"{kind}: {len(found)} entries in {seconds:.0f} s; with an error inside: {', '.join(failed) or 'none'}")


def show(kind: str, names: list[str], results: Any) -> Iterator[Any]:
    """The results one after the other, with a line on stderr for each."""
    for number, (name, (entry, seconds)) in enumerate(zip(names, results, strict=True), 1):
        print(f"{kind} {number}/{len(names)} {name} ({seconds:.1f} s)", file=sys.stderr, flush=True)
        yield entry


# -- comparing ----------------------------------------------------------------------------------------------------------


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every number and text inside an entry, with its place."""
    if isinstance(value, (dict, list)) and value:
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, f"{path}[{key}]" if isinstance(value, list) else f"{path}.{key}")
    else:
        yield path, value


def same(old: Any, new: Any, tolerance: float) -> bool:
    """Whether two values are equal; numbers to a relative error."""
    if tolerance and isinstance(old, float) and isinstance(new, float) and math.isfinite(old) and math.isfinite(new):
        return abs(old - new) <= tolerance * max(abs(old), abs(new))
    return repr(old) == repr(new)


def differences(old: Any, new: Any, tolerance: float) -> Iterator[str]:
    """What differs between two entries, one line each."""
    if json.dumps(old) == json.dumps(new):
        return
    first = {path: value for path, value in leaves(old) if not any(re.search(pattern, path) for pattern in RETIRED)}
    second = dict(leaves(new))
    equal = True
    for path in first | second:
        if path not in first or path not in second:
            where, value = ("only in NEW", second[path]) if path not in first else ("only in OLD", first[path])
            equal = False
            yield f"{path} is {where}: {value!r:.300}"
        elif not same(first[path], second[path], tolerance):
            equal = False
            both = first[path], second[path]
            if all(isinstance(one, str) and "\n" in one for one in both):
                lines = difflib.unified_diff(*(one.splitlines() for one in both), lineterm="", n=0)
                yield "\n      ".join([f"{path}:", *itertools.islice(lines, 2, None)])
            else:
                yield f"{path}: {both[0]!r:.300} -> {both[1]!r:.300}"
    if equal and list(first) != list(second):
        yield "the order of the keys differs"


def compare(old_file: Path, new_file: Path) -> int:
    """Print every difference of two records; 1 if there is one."""
    old, new = (json.loads(gzip.decompress(file.read_bytes())) for file in (old_file, new_file))
    total = 0
    for kind in KINDS:
        if kind not in old or kind not in new:
            if kind in old or kind in new:
                print(f"{kind}: not compared, {new_file if kind in old else old_file} does not have it")
            continue
        counted = 0
        for name in old[kind] | new[kind]:
            missing = [str(file) for file, side in ((old_file, old), (new_file, new)) if name not in side[kind]]
            found = (
                [f"is missing in {missing[0]}"] if missing
                else list(differences(old[kind][name], new[kind][name], TOLERANCE.get(kind, 0.0)))
            )  # fmt: skip
            reason = next((why for (k, pattern), why in KNOWN.items() if k == kind and fnmatch.fnmatch(name, pattern)), "")
            counted += bool(found) and not reason
            if found:
                print(f"{kind}: {name}" + (f" (known: {reason})" if reason else ""))
                print("".join(f"    {line}\n" for line in found), end="")
        print(f"{kind}: {counted} of {len(old[kind] | new[kind])} entries differ")
        total += counted
    return int(total > 0)


def main() -> int:
    """The command line of this script."""
    parser = argparse.ArgumentParser(description="Record what the library computes and prints, and compare two records.")
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("file", type=Path)
    recording.add_argument("--only", default=",".join(KINDS), help="comma list of kinds")
    recording.add_argument("--jobs", type=int, default=1)
    comparing = commands.add_parser("compare")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    given = parser.parse_args()
    if given.command == "compare":
        return compare(given.old, given.new)
    kinds = given.only.split(",")
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"unknown kinds {sorted(unknown)}: the kinds are {', '.join(KINDS)}")
    record(given.file.resolve(), [kind for kind in KINDS if kind in kinds], given.jobs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
