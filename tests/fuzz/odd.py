"""Random calls with arguments that no annotation allows, addresses of the explorer, uploads, and kills of sweeps."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import functools
import inspect
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
from calls import Call, Maker

ODD: tuple[Any, ...] = (
    None, 0, -1, 1, 10**400, 2.5, float("nan"), float("inf"), -1e308, 5e-324, True, 1j, "", "x", "ratio", "Ridge", "~", "\0",
    "日本語", "a" * 5000,
    b"x", [], [[]], [None], [1, "a"], [float("nan")], (), (1, 2, 3), {}, {"a": 1}, {1: 2}, {"ratio": None}, {"test_error": []},
    {1, 2}, object(), object,
    print, range(3), np.array([]), np.array([1.0, 2.0]), np.zeros((2, 2)), np.array("x"), np.array([None]), np.float32(0.5), np.int8(3),
    datetime.date(2020, 1, 1), datetime.timedelta(1), Path("/nowhere/x"), Path(), io.StringIO(), slice(3), ..., NotImplemented,
    ValueError("x"),
)  # fmt: skip
"""Values of other types, shapes and sizes than a function expects."""

SKIPPED = {
    "explore", "serve", "claim", "write_report", "verify", "animate", "figure", "caching", "limits", "checkpointing", "check_faults",
    "forecast_other", "stop", "plan_stopping", "stopping_table",
}  # fmt: skip
"""Functions that run for minutes with allowed arguments, or are called in another way."""

USUAL: dict[str, Any] = {
    "over": {"ratio": [0.5, 2.0]}, "target": {"test_error": 0.6}, "solve_for": "ratio", "minimise": "test_error", "sizes": [4, 8],
    "seeds": 2, "budget": 0,
}  # fmt: skip
"""Allowed values of arguments, so that a call gets past the checks of the others."""


@functools.cache
def functions() -> list[tuple[str, Callable[..., Any]]]:
    """The public functions of limitlab outside the subjects, by name."""
    import limitlab
    import limitlab.applied
    import limitlab.lab

    found = {}
    for package in (limitlab.lab, limitlab.applied, limitlab):
        for name in package.__all__:
            value = getattr(package, name)
            if inspect.isfunction(value) and name not in SKIPPED:
                found[f"{package.__name__}.{name}"] = value
    return sorted(found.items())


METHODS = (
    "simulate",
    "simulate_batch",
    "evaluate",
    "replace",
    "cost",
    "experiment",
    "draw",
    "model_validate",
    "model_validate_json",
)


def odd_call(seed: int, number: int) -> Call:
    """A call of a public function or of a method of a law with arguments of other types."""
    make = Maker(seed, number)
    law = make.law()
    if make.chance(0.4):
        name = make.pick(METHODS)
        method = getattr(law, name)
        if name in ("evaluate", "replace", "experiment"):
            first = [make.pick(ODD), make.pick(ODD)] if name == "experiment" else []
            key = make.pick([*type(law).model_fields, "x"])
            named = {key: make.pick(ODD)}
            return f"{type(law).__name__}.{name}({first!r:.80}, {named!r:.200})", lambda: method(*first, **named)
        values = [make.pick([*ODD, 4, 8]) for _ in range({"simulate": 2, "simulate_batch": 2, "draw": 2}.get(name, 1))]
        if isinstance(values[0], dict) and name == "model_validate":  # pydantic's own sentence
            values = [{}]
        return f"{type(law).__name__}.{name}({values!r:.200})", lambda: method(*values)
    name, function = make.pick(functions())
    arguments: dict[str, Any] = {}
    parameters = [each for each in inspect.signature(function).parameters.values() if each.kind != each.VAR_KEYWORD]
    for each in parameters:
        usual = law if each.name == "law" else USUAL.get(each.name)
        if each.name == "engine":
            usual = None
        if make.chance(0.35 if usual is not None else 0.7) or (usual is None and each.default is each.empty):
            arguments[each.name] = make.pick(ODD)
        elif usual is not None:
            arguments[each.name] = usual
    arguments = {key: value for key, value in arguments.items() if key not in ("store", "out", "progress", "args")}
    if isinstance(arguments.get("engine"), (int, np.integer)):
        del arguments["engine"]  # it would start worker processes
    return f"{name}({arguments!r:.300})", lambda: function(**arguments)


# -- the explorer in this process --------------------------------------------------------------------------------------------


def address_of(make: Maker) -> str:
    """An address of the explorer, more or less broken."""
    law = type(make.law())
    odd = [
        "",
        "x",
        "nan",
        "-1",
        "1e400",
        "9" * 5000,
        "[" * 2000,
        "null",
        "true",
        "{}",
        '{"a":1}',
        "1,2",
        "é",
        "\0",
        "<script>",
        "ratio:1",
        "a:b:c:d:e",
    ]
    axes = [
        f"{name}:{low}:{high}{log}"
        for name in list(law.model_fields)[:3]
        for low, high, log in ((0.1, 1, ""), (1, 100, ":log"), (-1, "x", ":log"))
    ]
    pairs: list[tuple[str, Any]] = [("law", make.pick([law.__name__] * 5 + odd))]
    for key, values in (
        ("mode", ["curve", "phase", "compare", "plan", "forecast"]), ("x", axes), ("y", axes), ("show", [*law.outputs(), "test_error,x"]),
        ("size", ["2", "100", "5001", "1e9"]), ("draws", ["1", "500", "501"]), ("grid", ["2", "80", "30000000"]), ("scale",
        ["log", "auto"]),
        ("target", ["0.3", "-inf"]), ("theme", ["dark"]), ("nothing", odd),
    ):  # fmt: skip
        if make.chance(0.4):
            pairs.append((key, make.pick([*values, *values, *odd])))
    for name, value in make.changes(make.pick([law()])).items():
        pairs.append((f"p.{name}", make.pick([json.dumps(value, default=str), str(value), *odd[:3]])))
    text = urlencode(pairs, errors="replace")
    return "?" + (text if make.chance(0.9) else quote(text[: int(make.rng.integers(len(text)))]) + "&&=%zz;")


def address_call(seed: int, number: int) -> Call:
    """An address, the state that it gives, and what the page computes in the server for it."""
    from limitlab.show.explorer import _address as address

    make = Maker(seed, number)
    text = address_of(make)
    changes = {
        make.pick(["x", "y", "size", "draws", "grid", "mode", "scale", "target", "observables", "theme"]): make.pick(ODD)
    }

    def visit() -> None:
        laws = address.explorable()
        began = time.process_time()
        shown, _ = address.read(text, laws)
        again, remarks = address.read("?" + shown.address(), laws)
        assert not remarks, f"the address of a state is refused: {remarks}"
        assert dataclasses.replace(again, grid=shown.grid) == shown, "the address of a state gives another state"
        changed, _ = address.changed_state(shown, laws, changes)
        law = address.law_of(changed, laws)
        points = len(address.values_of(law, changed.x)) + len(address.values_of(law, changed.x, changed.grid))
        assert points <= 1000, f"{points} points"
        compile(address.snippet(changed, law), "snippet", "exec")
        spent = time.process_time() - began
        assert spent < 2, f"an address takes {spent:.1f} s of the server"

    return text[:300], visit


def table_of(make: Maker) -> tuple[str, bytes]:
    """The name and content of an upload, more or less a table."""
    rng = make.rng
    rows = int(make.pick([0, 1, 5, 30, 200, 3000]))
    mark = make.pick([",", ";", "\t", "|", " "])
    names = make.pick(
        [
            ["a", "b", "y"],
            ["y"],
            ["a", "a", "a"],
            ["", "", ""],
            ["=1+1", "b", "y"],
            [f"c{i}" for i in range(2500)],
            ["é", "日", "y"],
        ]
    )
    odd = [
        "",
        "nan",
        "inf",
        "x",
        "1e999",
        '"',
        "=1+1",
        "=HYPERLINK(1)",
        "@SUM(A1)",
        "-2+3+cmd|' /C calc'!A0",
        "2020-01-01",
        "é",
        "\u202e",
        "1_000",
        "0x1f",
    ]
    share = make.pick([0.0, 0.0, 0.01, 0.3])

    def cell() -> str:
        return str(make.pick(odd)) if rng.random() < share else f"{rng.standard_normal():.3f}"

    wide = min(len(names), 50)
    lines = [mark.join(names), *(mark.join(cell() for _ in range(wide)) for _ in range(rows))]
    content = (
        make.pick(["\n", "\n", "\r\n", "\r"])
        .join(lines)
        .encode(make.pick(["utf-8", "utf-8-sig", "utf-16", "latin-1"]), errors="replace")
    )
    if make.chance(0.15):
        content = bytes(rng.integers(0, 256, 300, dtype=np.uint8)) + content
    return make.pick(["t.csv"] * 6 + ["t.tsv", "t.pkl", "../../t.csv", "t", "é.csv", "x" * 300 + ".csv"]), content


def upload_call(seed: int, number: int) -> Call:
    """An upload as a worker of the explorer handles it: its check, and the forecast of its last column."""
    from limitlab.show.explorer import jobs

    make = Maker(seed, number)
    name, content = table_of(make)

    def drop() -> None:
        columns = jobs.table(lambda *_: None, name, content, 5.0)["columns"]
        assert not any(formula in content for formula in (b"=HYPERLINK(", b"@SUM(", b"cmd|")), "a formula passed"
        if make.chance(0.5):
            jobs.forecast(lambda *_: None, name, content, make.pick([columns[-1], columns[0]]))

    return f"{name[:40]}: {content[:200]!r}", drop


# -- kills -------------------------------------------------------------------------------------------------------------------

SWEEP = """
import sys
import limitlab as ll
if __name__ == "__main__":
    store, engine = sys.argv[1], sys.argv[2]
    ll.sweep(ll.laws.Ridge(), {"ratio": "0.5:2:6log", "ridge": [0.1, 1.0]}, sizes=[20, 40], seeds=30, store=store,
             engine=int(engine) if engine.isdigit() else engine, progress=False)
"""


def kill_call(seed: int, number: int, folder: Path) -> Call:
    """A sweep that a signal ends at a random time: no process and no temporary file is left, and the next run gives the same bytes."""
    make = Maker(seed, number)
    ending, engine = make.pick(["nc", "nc", "zarr"]), make.pick(["serial"] * 3 + ["2"])
    how = make.pick([signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
    wait = float(make.rng.uniform(0.3, 3.0))

    def strike() -> None:
        place = Path(tempfile.mkdtemp(dir=folder))
        program = place / "sweep.py"
        program.write_text(SWEEP, encoding="utf-8")
        store = place / f"s.{ending}"
        command = [sys.executable, str(program), str(store), engine]
        first = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True, text=True
        )
        try:
            time.sleep(wait)
            first.send_signal(how)
            first.communicate(timeout=60)
            end = time.monotonic() + 10
            while (left := group(first.pid)) and time.monotonic() < end:
                time.sleep(0.1)
            assert not left, f"processes are left 10 s after {how.name}: {left}"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(first.pid, signal.SIGKILL)
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, f"the next run fails: {done.stderr[-200:]}"
        assert not (left := [str(each.relative_to(place)) for each in place.rglob("*.tmp*")]), (
            f"temporary files are left: {left}"
        )
        assert digest(store) == reference(folder, ending), "the next run gives other bytes"

    return f"{how.name} after {wait:.2f} s, engine {engine}, .{ending}", strike


def group(leader: int) -> list[int]:
    """The running processes of a process group."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[2]) == leader and fields[0] not in "ZX":
                    found.append(int(entry.name))
    return found


def digest(store: Path) -> str:
    """The digest of a result."""
    import hashlib

    files = sorted(each for each in store.rglob("*") if each.is_file()) if store.is_dir() else [store]
    return hashlib.sha256(b"".join(each.name.encode() + each.read_bytes() for each in files)).hexdigest()


_REFERENCES: dict[str, str] = {}


def reference(folder: Path, ending: str) -> str:
    """The digest of a result of an uninterrupted sweep."""
    if ending not in _REFERENCES:
        place = Path(tempfile.mkdtemp(dir=folder))
        (place / "sweep.py").write_text(SWEEP, encoding="utf-8")
        subprocess.run(
            [sys.executable, str(place / "sweep.py"), str(place / f"s.{ending}"), "serial"], check=True, timeout=120
        )
        _REFERENCES[ending] = digest(place / f"s.{ending}")
    return _REFERENCES[ending]


def seed_of_the_day() -> int:
    """A seed that is new every day."""
    return int(datetime.datetime.now(datetime.UTC).strftime("%Y%m%d"))


# -- command lines of any words ------------------------------------------------------------------------------------------------

WORDS = (
    "", " ", "x", "-1", "0", "1", "2.5", "nan", "inf", "1e400", "9" * 400, "--", "-", "-x", "--x", "ridge", "Ridge",
    "0.1:10:4log", "1,2", ":", ",",
    "[", "{}", "null", "true", "~", "/", "/nowhere/x", "/dev/null", ".", "..", "é", "日本", "\u202e", "a" * 3000, "$HOME", "`id`", "%s",
    "*",
)  # fmt: skip
"""Words that are wrong nearly everywhere."""

LONG = {"explore", "report", "verify", "bench", "new-law", "figure", "compare", "animate"}
"""Commands that run for a long time, or write files, with few arguments."""


@functools.cache
def commands() -> dict[str, list[tuple[list[str], bool]]]:
    """The commands, and for each the names of its options and whether they take a value."""
    import typer

    from limitlab.show.cli import app

    group: Any = typer.main.get_command(app)
    found = {}
    for name in group.list_commands(None):
        parameters = group.get_command(None, name).params
        found[name] = [
            (list(each.opts), not getattr(each, "is_flag", False)) for each in parameters if each.opts[0].startswith("-")
        ]
    return {name: options for name, options in found.items() if name not in LONG}


def words_call(seed: int, number: int) -> tuple[str, list[str]]:
    """A command line of a command, some of its options and any words."""
    make = Maker(seed, number)
    name = make.pick(sorted(commands()))
    line = [make.pick([name] * 20 + list(WORDS))]
    line += [make.pick([make.pick(WORDS), "Ridge", "MaxMargin"]) for _ in range(make.pick([0, 1, 1, 1, 2, 3]))]
    options = commands()[name]
    for _ in range(make.pick([0, 1, 1, 2, 3]) if options else 0):
        flags, valued = make.pick(options)
        flag = make.pick(flags)
        if flag in ("--laws", "--out", "--plot", "--save", "--figure", "--engine"):
            continue
        line += [flag, make.pick(WORDS)] if valued else [flag]
    return " ".join(line)[:300], line
