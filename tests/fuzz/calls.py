"""Random calls made from the declarations of the laws: a new law is covered by itself. Call number i of a seed is always the same call."""

from __future__ import annotations

import functools
import json
import math
import os
import types
import typing
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from limitlab._core.law import Law
from limitlab._core.registry import all_laws
from limitlab.models.activations import NAMES

HUGE = (1e12, 1e160, 1e300, 1e308, 1.7976931348623157e308)
TINY = (0.0, 5e-324, 1e-320, 1e-300, 1e-160, 1e-12)
NONSENSE: tuple[Any, ...] = (
    math.nan, math.inf, -math.inf, -1, -1e300, 10**400, -(10**400), True, np.True_, None, "", "2", "nan", "x", "relu", (), [], {},
    (1.0, "x"), (math.nan,), [[1.0]], {"a": 1}, 1j, np.array([[1.0, 2.0]]), np.float32(0.3), np.int8(3), b"1", object, print,
)  # fmt: skip
SIZES: tuple[Any, ...] = (
    2,
    3,
    5,
    8,
    16,
    24,
    40,
    2.0,
    np.int64(6),
    0,
    1,
    -3,
    10**6,
    10**9,
    10**400,
    2.5,
    "8",
    None,
    True,
    math.nan,
    math.inf,
    [4],
)
SEEDS: tuple[Any, ...] = (0, 1, 7, 2**63, 3.0, np.int32(4), -1, 0.5, "a", None, True, math.nan, math.inf, 10**400, [1], 2j)

Call = tuple[str, Callable[[], Any]]
"""A call in words, and the call."""


@functools.cache
def _laws_of(kind: type[Law]) -> list[Law]:
    return [kind(), *kind.check_points()]


class Maker:
    """The random choices of one call."""

    def __init__(self, seed: int, number: int):
        self.rng = np.random.default_rng([seed, number])

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def pick(self, options: Any) -> Any:
        return options[int(self.rng.integers(len(options)))]

    def law(self) -> Law:
        """A law at its defaults or at a check point."""
        kind = self.pick(list(all_laws().values()))
        return self.pick(_laws_of(kind)) if self.chance(0.7) else kind()

    def number(self, meta: Any) -> float:
        """A number that is allowed, more often near 1 than at the ends of what floating-point numbers hold."""
        low = meta.above if meta.above is not None else meta.least
        high = meta.below if meta.below is not None else meta.most
        if low is not None and high is not None and self.chance(0.7):
            return float(
                self.pick([low, high, (low + high) / 2, low + (high - low) * self.rng.random(), np.nextafter(low, high)])
            )
        shift = float(low) if low is not None else 0.0
        size = 10 ** self.rng.uniform(-2, 2) if self.chance(0.7) else self.pick(TINY + HUGE)
        if meta.infinite and self.chance(0.1):
            return math.inf
        return shift + size if low is not None or self.chance(0.7) else -size

    def whole(self, meta: Any) -> int:
        least = int(meta.least or meta.above or 0)
        return (
            least + int(self.pick([0, 1, 2, 3, 5, 10, 30]))
            if self.chance(0.8)
            else self.pick([10**4, 10**6, 10**9, 10**18, 10**30, 10**400])
        )

    def value(self, law: type[Law], name: str) -> Any:
        """A value for a parameter: legal by its type, sometimes nonsense."""
        if self.chance(0.12):
            return self.pick(NONSENSE)
        meta, annotation = law.parameters()[name], law.model_fields[name].annotation
        return self.typed(meta, self.pick(_members(annotation)))

    def typed(self, meta: Any, kind: Any) -> Any:
        if kind is type(None):
            return None
        if kind is bool:
            return self.chance(0.5)
        if kind is int:
            return self.whole(meta)
        if kind is float:
            return self.number(meta)
        if typing.get_origin(kind) is typing.Literal:
            return self.pick(typing.get_args(kind))
        if typing.get_origin(kind) in (tuple, list):
            inner = [each for each in typing.get_args(kind) if each is not Ellipsis]
            entries = [self.typed(meta, self.pick(_members(self.pick(inner)))) for _ in range(self.pick([0, 1, 1, 2, 2, 3]))]
            numbers = all(isinstance(entry, (int, float)) for entry in entries)
            return tuple(sorted(set(entries))) if numbers and self.chance(0.6) else tuple(entries)
        if kind is str or isinstance(kind, type):
            return self.pick([*NAMES, "sign", "probit", "logit", "flip", "square", "logistic", np.tanh, np.sin])
        return 1.0

    def changes(self, law: Law) -> dict[str, Any]:
        names = list(type(law).model_fields)
        return {
            name: self.value(type(law), name)
            for name in self.rng.permutation(names)[: self.pick([0, 1, 1, 1, 2, 3])].tolist()
        }


def _members(annotation: Any) -> list[Any]:
    """The types of a union; what `Annotated` wraps."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return [each for part in typing.get_args(annotation) for each in _members(part)]
    return _members(typing.get_args(annotation)[0]) if typing.get_origin(annotation) is typing.Annotated else [annotation]


# -- Python ---------------------------------------------------------------------------------------------------------------


def api_call(seed: int, number: int) -> Call:
    """One call of the library."""
    import limitlab as ll

    make = Maker(seed, number)
    law, verb = (
        make.law(),
        make.pick(["theory"] * 5 + ["simulate"] * 4 + ["sweep"] * 3 + ["evaluate", "json", "cost", "compare", "optimal"]),
    )
    changes = make.changes(law)
    words = f"{type(law).__name__}({_shown(changes)}).{verb}"
    size, run = make.pick(SIZES), make.pick(SEEDS)
    if verb == "theory":
        return words, lambda: law.replace(**changes).theory()
    if verb == "simulate":
        return f"{words}({size!r}, {run!r})", lambda: law.replace(**changes).simulate(size, run)
    if verb == "json":
        return words, lambda: type(law).model_validate_json(law.replace(**changes).model_dump_json())
    if verb == "cost":
        return f"{words}({size!r})", lambda: law.replace(**changes).cost(size)
    over = {name: [make.value(type(law), name) for _ in range(make.pick([0, 1, 2, 3]))] for name in list(changes)[:2]}
    if make.chance(0.3) and over:
        over[next(iter(over))] = make.pick(["0.1:10:5log", "1:2:3", "1:2", "0:1:1000000", "", "a:b:c", "1,2,inf"])
    if verb == "evaluate":
        return f"{words}({_shown(over)})", lambda: law.evaluate(**over)
    if verb == "compare":
        return words, lambda: ll.compare(
            law.replace(**changes),
            sizes=make.pick([[4, 8], [8], [6, 12], 0, "x"]),
            seeds=make.pick([2, 3, 1, [0, 5], None, "a"]),
            budget=0,
        )
    if verb == "optimal":
        name = make.pick([*type(law).model_fields, "nothing"])
        return f"{words} over {name}", lambda: ll.optimal(law, over=name, minimise=make.pick([*type(law).outputs(), "x"]))
    sizes = make.pick([None, None, [4], [4, 8], 6, [10**9], "x"])
    seeds = make.pick([None, 1, 2, [3, 4], 10**12, "a", -1]) if sizes is not None else None
    return f"{words}({_shown(over)}, sizes={sizes!r}, seeds={seeds!r})", lambda: ll.sweep(
        law, over, sizes=sizes, seeds=seeds
    )


def _shown(values: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())[:300]


# -- the command line -----------------------------------------------------------------------------------------------------


def cli_call(seed: int, number: int, folder: Path) -> tuple[str, list[str]]:
    """The arguments of one command; files that it needs are written into the folder."""
    make = Maker(seed, number)
    law = make.law()
    name = (
        make.pick([type(law).__name__, type(law).__name__.lower(), "rigde", ""]) if make.chance(0.1) else type(law).__name__
    )
    options: list[str] = []
    for key, value in make.changes(law).items():
        text = ",".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
        text = (
            make.pick(["0.1:10:4log", "1:2:3", "1:0:2", "1,2", ",", "nan", "0:1:99999999", "[1", "{}"])
            if make.chance(0.2)
            else text
        )
        options += [f"--{key.replace('_', '-')}", text]
    common = make.pick(
        [
            [],
            ["--json"],
            ["--out", str(folder / "x.nc")],
            ["--out", str(folder / "x.csv")],
            ["--plot", str(folder / "x.png")],
            ["--out", "/nowhere/x.nc"],
        ]
    )
    size = ["--size", make.pick(["4", "8", "16"] * 4 + ["0", "-1", "x", "1e9", "100000"])]
    verb = make.pick(
        ["predict"] * 4
        + ["simulate"] * 4
        + ["show", "compare", "optimal", "plan", "sweep", "sweep", "reproduce", "reproduce", "forecast", "nonsense"]
    )
    if verb == "predict":
        arguments = ["predict", name, *options, *common]
    elif verb == "simulate":
        arguments = ["simulate", name, *options, *size, "--seeds", make.pick(["1", "2"] * 4 + ["0", "-1", "x"]), *common]
    elif verb == "show":
        arguments = [make.pick(["show", "cite"]), name]
    elif verb == "compare":
        arguments = [
            "compare",
            name,
            *options,
            "--size",
            make.pick(["4,8", "8", "x", "0"]),
            "--seeds",
            make.pick(["2", "3", "1"]),
            "--budget",
            "0",
        ]
    elif verb == "optimal":
        arguments = ["optimal", name, "--over", make.pick([*type(law).model_fields, "x"]), *options]
    elif verb == "plan":
        goal = make.pick([*type(law).outputs(), "x"])
        arguments = [
            "plan",
            name,
            *options,
            "--target",
            f"{goal}={make.pick(['0.3', '1e9', 'x', '-1'])}",
            "--solve-for",
            make.pick(list(type(law).model_fields)),
        ]
    elif verb == "sweep":
        arguments = ["sweep", str(hostile_sweep(make, law, folder))]
    elif verb == "reproduce":
        arguments = ["reproduce", str(hostile_result(make, law, folder))]
    elif verb == "forecast":
        arguments = [
            "forecast",
            str(hostile_table(make, folder)),
            "--target",
            make.pick(["y", "x", "", "z"]),
            *make.pick([[], ["--json"]]),
        ]
    else:
        arguments = make.pick(
            [
                ["--version"],
                [],
                ["figure", "nothing"],
                ["verify", "Z99"],
                ["predict"],
                ["--memory", "x", "laws"],
                ["sweep", "/nowhere"],
                ["laws", "x"],
                ["reproduce", str(folder)],
            ]
        )
    return " ".join(arguments)[:400], arguments


def hostile_sweep(make: Maker, law: Law, folder: Path) -> Path:
    """A sweep file, more or less broken."""
    file = folder / "sweep.toml"
    over = {name: [make.value(type(law), name) for _ in range(2)] for name in list(make.changes(law))[:2]} or {
        "ratio": [1.0]
    }
    lines = [
        f"law = {json.dumps(make.pick([type(law).__name__] * 6 + ['..:x', 'os:system', 'antigravity:x', 'Ridge:', '']))}"
    ]
    lines += make.pick(
        [
            [],
            ["sizes = [4]", "seeds = 2"],
            ["sizes = 4"],
            ["sizes = [1000000000]"],
            ["seeds = 3"],
            ["engine = 'x'"],
            ["store = ''"],
            ["nothing = 1"],
        ]
    )
    lines += ["[over]", *(f"{name} = {_toml(values)}" for name, values in over.items())]
    text = "\n".join(lines)
    file.write_text(
        text if make.chance(0.85) else text[: int(make.rng.integers(len(text)))] + make.pick(["\x00", "[", "=", "'"]),
        encoding="utf-8",
    )
    return file


def _toml(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(entry) for entry in value) + "]"
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    return repr(value) if isinstance(value, (int, float)) else json.dumps(str(value))


def hostile_result(make: Maker, law: Law, folder: Path) -> Path:
    """A saved result: whole, mutated, or something else under its name."""
    file = folder / make.pick(["r.nc", "r.json", "r.zarr", "r.csv", "r.txt"])
    for old in (file,):
        if old.is_dir():
            import shutil

            shutil.rmtree(old)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = type(make.pick([law]))().theory() if make.chance(0.5) else all_laws()["Ridge"]().theory()
    from limitlab._core.page import describe_result, jsonable

    odd = ["", "x", "{}", "[]", '{"ratio": "__import__(1)"}', 3, -1.0, "os:system", "[" * 5000]
    attributes = ("law", "parameters", "kind", "version", "revision")
    changed = {name: make.pick(odd) for name in attributes if make.chance(0.15)}
    described = describe_result(result)
    result.attrs |= changed
    storable = {key: value if isinstance(value, (str, int, float)) else str(value) for key, value in result.attrs.items()}
    try:
        if file.suffix == ".nc":
            result.assign_attrs(storable).to_netcdf(file, engine="h5netcdf")
        elif file.suffix == ".zarr":
            result.assign_attrs(storable).to_zarr(file, mode="w", zarr_format=2)
        else:
            file.write_text(json.dumps(jsonable({**described, **changed})))
    except ValueError:  # an attribute that this format does not take
        file.write_text("x")
    if file.is_file() and make.chance(0.3):
        content = bytearray(file.read_bytes())
        for _ in range(make.pick([1, 5, 50])):
            content[int(make.rng.integers(len(content)))] = int(make.rng.integers(256))
        file.write_bytes(bytes(content[: int(make.rng.integers(1, len(content) + 1))] if make.chance(0.3) else content))
    return file


def hostile_table(make: Maker, folder: Path) -> Path:
    """A CSV file, more or less a table."""
    file = folder / "data.csv"
    rows = int(make.pick([0, 1, 3, 30, 60]))
    odd = ["", "nan", "inf", "x", "1e999", '"', "\x00", "1;2", "é"]

    def cell() -> str:
        return str(make.pick([f"{make.rng.standard_normal():.3f}"] * 30 + odd))

    header = make.pick(["a,b,y", "a,b,y", "y,y,y", "", "a,b", "a;b;y"])
    file.write_bytes(
        "\n".join([header, *(",".join(cell() for _ in range(3)) for _ in range(rows))]).encode(
            make.pick(["utf-8", "utf-16", "utf-8"])
        )
    )
    return file


# -- stores ---------------------------------------------------------------------------------------------------------------


def store_call(seed: int, number: int, folder: Path) -> Call:
    """A sweep into a store, damage to one of its files, and the sweep again: the same result, or one sentence."""
    import shutil

    import xarray as xr

    import limitlab as ll

    make = Maker(seed, number)
    place = folder / make.pick(["s.nc", "s.zarr", "s"])
    law, over = all_laws()["Ridge"](), {"ridge": [0.1, 1.0], "ratio": [0.5, 2.0]}

    def run() -> Any:
        for old in folder.iterdir():
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        first = ll.sweep(law, over, sizes=[6], seeds=2, store=place)
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        for _ in range(make.pick([1, 2, 4])):
            victim = make.pick(files)
            if not victim.is_file():
                continue
            content = victim.read_bytes()
            how = make.pick(["flip", "cut", "empty", "gone", "folder", "other", "swap"])
            if how == "flip" and content:
                at = int(make.rng.integers(len(content)))
                victim.write_bytes(content[:at] + bytes([content[at] ^ (1 << make.pick(range(8)))]) + content[at + 1 :])
            elif how == "cut":
                victim.write_bytes(content[: len(content) // 2])
            elif how == "empty":
                victim.write_bytes(b"")
            elif how == "other":
                victim.write_bytes(os.urandom(200))
            elif how == "swap":
                (
                    shutil.copy(make.pick([file for file in files if file.is_file()]), victim.with_name("other")),
                    victim.with_name("other").replace(victim),
                )
            else:
                victim.unlink()
                if how == "folder":
                    victim.mkdir()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            again = ll.sweep(law, over, sizes=[6], seeds=2, store=place)
        xr.testing.assert_identical(first, again)
        return again

    return f"damaged store {place.name}", run
