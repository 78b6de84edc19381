"""The command line: what it prints, what it leaves behind, how it refuses, its exit codes."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

import limitlab.laws
from limitlab._core import registry
from limitlab._core.registry import all_laws
from limitlab.lab.check import Check
from limitlab.lab.claims import Claim, claims_of
from limitlab.laws import Draw, Experiment, Law, NearestNeighbours, Ridge, parameter
from limitlab.show.cli import app
from markdown_blocks import ROOT, blocks

COMMANDS = [
    *("forecast", "stop", "sample-size", "components", "scaling-fit"),
    *("guide", "laws", "show", "predict", "simulate", "sweep", "plan", "optimal", "cite", "notes", "new-law"),
    *("compare", "verify", "reproduce", "bench"),
    *("figure", "report", "explore"),
]
HEAVY = {"panel", "bokeh", "matplotlib", "sklearn", "jax", "numba", "xarray", "pydantic"}


class Coin(Law):
    """How often does a coin show heads?"""

    observables = ("overlap",)
    simulation = Experiment(rate=np.inf)
    references = ("bai1993limit",)

    heads: float = parameter(0.5, "probability of heads", symbol="p", least=0, most=1)
    lie: float = parameter(0.0, "what the theory adds to the truth")

    def predicted(self, heads: Any) -> dict[str, Any]:
        return {"overlap": heads + self.lie}

    def measured(self, draw: Draw) -> dict[str, Any]:
        return {"overlap": draw.rng.binomial(draw.size, self.heads) / draw.size}


@pytest.fixture(autouse=True)
def _with_a_coin(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coin is a law of another author, whose package is this file."""
    package = registry.Package(Coin.__module__.partition(".")[0])
    package.laws = {"Coin": Coin}
    monkeypatch.setattr(package, "modules", lambda part: [])
    monkeypatch.setitem(registry._LOADED, package.name, package)


def run(*args: str) -> Any:
    """Run a command line in this process; an unexpected exception is a failure of the test."""
    result = CliRunner().invoke(app, list(args))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def strict_json(text: str) -> Any:
    """JSON without the constants that JSON does not have."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def refused(result: Any, code: int = 2) -> str:
    """The one line of a refusal."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if not line.endswith("so far)")]  # signs of life on a slow machine
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    assert "\\" not in lines[0]
    assert "Traceback" not in result.output
    return str(lines[0])


# -- help ----------------------------------------------------------------------------------------------------------------


def test_the_commands_are_these() -> None:
    assert [command.name or command.callback.__name__ for command in app.registered_commands] == COMMANDS  # type: ignore[union-attr]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_and_json(command: str) -> None:
    result = run(command, "--help")
    assert result.exit_code == 0
    assert f"Example: limitlab {command}" in result.stdout
    assert "--json" in result.stdout


def test_help_with_a_law_lists_its_parameters() -> None:
    result = run("predict", "ridge", "--help")
    assert result.exit_code == 0
    assert all(f"--{name.replace('_', '-')}" in result.stdout for name in Ridge.model_fields)


def test_version() -> None:
    assert run("--version").stdout.startswith("limitlab ")


def test_no_command_is_an_overview() -> None:
    result = run()
    assert result.exit_code == 0
    assert "limitlab --help" in result.stdout
    assert "Usage" not in result.stdout


# -- the lecture notes -------------------------------------------------------------------------------------------------


def test_notes_print_a_chapter_with_law_claim_and_figure() -> None:
    result = run("notes", "13")
    assert result.exit_code == 0
    head, *_ = result.stdout.splitlines()
    assert head == "Notes, chapter 13: Spectral alignment"
    assert all(word in result.stdout for word in ("Theorem 13.3", "MixtureAlignment", "J22", "alignment-mixture"))
    chapter = run("notes", "12").stdout.splitlines()
    assert any(line.startswith("J-45 (part): ") for line in chapter)


def test_notes_without_an_argument_count_the_items_of_every_chapter() -> None:
    from limitlab.lab import documents

    result = run("notes")
    assert result.exit_code == 0
    listed = documents()
    rows = [line for line in result.stdout.splitlines() if line.startswith("│")]
    assert len(rows) == len(listed.documents) + len(listed.chapters)
    assert "Spectral alignment" in result.stdout


def test_notes_as_json() -> None:
    from limitlab.lab import documents

    whole = strict_json(run("notes", "--json").stdout)
    assert whole["counts"] == documents().counts
    assert [document["key"] for document in whole["documents"]] == ["L", "D", "J", "M", "T"]
    chapter = strict_json(run("notes", "chapter", "13", "--json").stdout)
    assert chapter["number"] == 13
    assert {"id", "says", "status", "missing", "laws", "claims", "figures"} <= set(chapter["items"][0])
    item = strict_json(run("notes", "J-5", "--json").stdout)
    assert (item["status"], item["claims"], item["laws"]) == ("full", ["J3"], ["NearestNeighbours"])


def test_notes_refuse_words_that_match_nothing() -> None:
    assert "did you mean 'J-48'" in refused(run("notes", "J-481"))


# -- laws ----------------------------------------------------------------------------------------------------------------


def test_laws_lists_every_law_with_its_question() -> None:
    lines = run("laws").stdout.splitlines()
    for name, law in all_laws().items():
        (line,) = (line for line in lines if line.startswith(f"{name} "))
        assert law.title() in line


def test_laws_as_json() -> None:
    laws = strict_json(run("laws", "--json").stdout)
    assert sorted(law["name"] for law in laws) == sorted(all_laws())
    assert [law["title"] for law in strict_json(run("laws", "coin", "heads", "--json").stdout)] == [Coin.title()]


def test_show_says_everything() -> None:
    text = run("show", "nearest-neighbours").stdout
    law = NearestNeighbours
    for words in (law.title(), law.regime, *law.assumptions, *law.observables, *claims_of(law.__name__)):
        assert words in text
    for name, meta in law.parameters().items():
        assert f"--{name.replace('_', '-')}" in text
        assert meta.description in text
    assert "Example: limitlab predict NearestNeighbours" in text


@pytest.mark.parametrize("law", sorted(all_laws()))
def test_every_law_can_be_shown_and_cited(law: str) -> None:
    assert run("show", law).exit_code == 0
    assert strict_json(run("show", law, "--json").stdout)["name"] == law
    assert run("cite", law).stdout.lstrip().startswith("@")


# -- predict -------------------------------------------------------------------------------------------------------------


def test_prediction_is_the_theory() -> None:
    shown = strict_json(run("predict", "ridge", "--ratio", "2", "--ridge", "0.1", "--noise=0.5", "--json").stdout)
    theory = Ridge(ratio=2.0, ridge=0.1, noise=0.5).theory()
    assert shown["observables"] == {name: theory[name].item() for name in theory.data_vars}
    assert shown["law"] == "Ridge"
    assert shown["parameters"]["ratio"] == 2.0
    assert shown["accuracy"] == theory.attrs["accuracy"]


def test_infinity_is_a_string_in_json() -> None:
    shown = strict_json(run("predict", "ridge", "--ratio", "0.5,1", "--ridge", "0", "--json").stdout)
    assert shown["observables"]["test_error"][1] == "inf"


def test_options_with_several_values_are_swept() -> None:
    shown = strict_json(run("predict", "ridge", "--ratio", "0.1:10:5log", "--ridge", "0.1,1", "--json").stdout)
    assert shown["coordinates"]["ratio"] == pytest.approx(np.geomspace(0.1, 10, 5))
    assert shown["dims"]["test_error"] == ["ratio", "ridge"]
    expected = [
        [Ridge(ratio=ratio, ridge=ridge).theory().test_error.item() for ridge in (0.1, 1.0)]
        for ratio in np.geomspace(0.1, 10, 5)
    ]
    assert np.array(shown["observables"]["test_error"]) == pytest.approx(np.array(expected))


def test_a_table_for_people() -> None:
    text = run("predict", "ridge", "--ratio", "0.5,2", "--observables", "test_error").stdout
    assert "test error" in text
    assert f"{Ridge(ratio=0.5).theory().test_error.item():.6g}" in text
    assert "status: theorem" in text
    assert "train" not in text


def test_a_long_table_is_cut_and_says_so() -> None:
    text = run("predict", "coin", "--heads", "0:1:500").stdout
    assert "500 rows" in text
    assert len(text.splitlines()) < 80


def test_tuples_are_comma_lists() -> None:
    shown = strict_json(
        run("predict", "ridge", "--eigenvalues", "1,4", "--weights", "0.5,0.5", "--signal-energy", "1,2", "--json").stdout
    )
    law = Ridge(eigenvalues=(1.0, 4.0), weights=(0.5, 0.5), signal_energy=(1.0, 2.0))
    assert shown["observables"]["test_error"] == law.theory().test_error.item()


def test_csv_has_every_point_with_all_digits(tmp_path: Path) -> None:
    file = tmp_path / "grid.csv"
    assert run("predict", "ridge", "--ratio", "0.5,1,2", "--ridge", "0", "--out", str(file)).exit_code == 0
    rows = list(csv.DictReader(file.open()))
    assert [float(row["ratio"]) for row in rows] == [0.5, 1.0, 2.0]
    values = [float(row["test_error"]) for row in rows]
    assert values == [Ridge(ratio=ratio, ridge=0.0).theory().test_error.item() for ratio in (0.5, 1.0, 2.0)]


def test_netcdf_has_values_and_provenance(tmp_path: Path) -> None:
    file = tmp_path / "grid.nc"
    assert run("predict", "ridge", "--ratio", "0.5,2", "--out", str(file)).exit_code == 0
    with xr.open_dataset(file, engine="h5netcdf") as saved:
        assert saved.test_error.values.tolist() == [Ridge(ratio=ratio).theory().test_error.item() for ratio in (0.5, 2.0)]
        assert saved.attrs["law"] == "Ridge"
        assert json.loads(saved.attrs["parameters"])["noise"] == Ridge().noise
    assert [entry.name for entry in tmp_path.iterdir()] == ["grid.nc"]


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_plots(tmp_path: Path, suffix: str, start: bytes) -> None:
    file = tmp_path / f"plot.{suffix}"
    assert run("predict", "coin", "--heads", "0:1:5", "--plot", str(file)).exit_code == 0
    assert file.read_bytes().startswith(start)
    before = file.read_bytes()
    run("predict", "coin", "--heads", "0:1:5", "--plot", str(file))
    assert file.read_bytes() == before, "the same command gives the same file"


# -- simulate and compare ------------------------------------------------------------------------------------------------


def test_a_seed_decides_the_draw() -> None:
    args = ("simulate", "coin", "--size", "50", "--json")
    first, again, other = (run(*args, "--seed", seed).stdout for seed in ("3", "3", "4"))
    assert first == again != other
    assert strict_json(first)["observables"]["overlap"] == [Coin().simulate(50, 3).overlap.item()]


def test_simulation_beside_its_limit() -> None:
    text = run("simulate", "coin", "--heads", "0.2,0.8", "--size", "400", "--seeds", "5").stdout
    assert "standard error" in text
    assert "limit" in text
    assert "0.8" in text


def test_comparison_that_agrees(tmp_path: Path) -> None:
    file = tmp_path / "gap.png"
    result = run("compare", "coin", "--size", "100,200,400", "--seeds", "50", "--plot", str(file))
    assert result.exit_code == 0, result.output
    assert "agree: " in result.stdout
    assert "standard error" in result.stdout
    assert file.read_bytes().startswith(b"\x89PNG")


def test_comparison_that_disagrees_is_exit_code_1() -> None:
    result = run("compare", "coin", "--lie", "0.1", "--size", "100,200,400", "--seeds", "50", "--json")
    assert result.exit_code == 1
    shown = strict_json(result.stdout)
    assert shown["verdict"] == "disagree"
    assert shown["passed"] is False
    assert shown["table"][0]["observable"] == "overlap"


def test_comparison_that_cannot_tell_is_exit_code_1() -> None:
    result = run("compare", "coin", "--size", "4", "--seeds", "2")
    assert result.exit_code == 1
    assert "underpowered: " in result.stdout


# -- plan and optimal ----------------------------------------------------------------------------------------------------


def test_plan_finds_the_value(tmp_path: Path) -> None:
    file = tmp_path / "answer.svg"
    args = ("plan", "coin", "--target", "overlap=0.3", "--solve-for", "heads")
    assert strict_json(run(*args, "--json").stdout)["coordinates"]["heads"] == pytest.approx(0.3)
    assert "heads = 0.3 gives overlap = 0.3" in run(*args, "--plot", str(file)).stdout
    assert file.read_bytes().startswith(b"<?xml")


def test_plan_out_of_reach_is_exit_code_1() -> None:
    line = refused(run("plan", "coin", "--target", "overlap=2", "--solve-for", "heads"), code=1)
    assert "out of reach" in line
    assert "largest value is 1" in line


def test_plan_within_bounds() -> None:
    args = ("plan", "coin", "--target", "overlap=0.3", "--solve-for", "heads")
    assert "in [0.5, 1]" in refused(run(*args, "--bounds", "0.5:1"), code=1)


def test_optimal() -> None:
    text = run("optimal", "ridge", "--ratio", "0.5", "--noise", "0.5", "--minimise", "excess-risk").stdout
    assert "ridge = 0.125 minimises excess_risk" in text  # the isotropic optimum: ratio * noise^2 / signal


# -- stop -----------------------------------------------------------------------------------------------------------------


def test_stop_prints_the_window_and_saves_it(tmp_path: Path) -> None:
    given = ("stop", "two-layer-dynamics", "--width", "3", "--noise", "0.2,0.8", "--end", "6")
    assert "overfit" in run(*given).stdout
    out, plot = tmp_path / "plans.csv", tmp_path / "window.png"
    run(*given, "--out", str(out), "--plot", str(plot))
    lines = out.read_text().splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("noise,time,test_error")
    assert plot.stat().st_size > 1000
    data = json.loads(run(*given, "--json").stdout)
    assert data["observables"]["time"][0] > data["observables"]["time"][1]  # the noisier, the sooner


def test_stop_wants_a_law_that_is_followed_in_time() -> None:
    result = run("stop", "ridge")
    assert result.exit_code == 2
    assert "no test error along training times; laws that have one are EarlyStopping" in result.stderr


# -- sweep ---------------------------------------------------------------------------------------------------------------

SWEEP = """
law = "NearestNeighbours"
sizes = [10, 20]
seeds = 3
[over]
neighbours = [1, 2]
"""


@pytest.fixture
def sweep_file(tmp_path: Path) -> Path:
    file = tmp_path / "sweep.toml"
    file.write_text(SWEEP)
    return file


def test_sweep_of_a_file(sweep_file: Path, tmp_path: Path) -> None:
    store, out, plot = tmp_path / "kept.nc", tmp_path / "all.csv", tmp_path / "plot.png"
    result = run("sweep", str(sweep_file), "--store", str(store), "--out", str(out), "--plot", str(plot))
    assert result.exit_code == 0, result.output
    first = store.read_bytes()
    assert len(list(csv.DictReader(out.open()))) == 2 * 2 * 3
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert run("sweep", str(sweep_file), "--store", str(store)).exit_code == 0
    assert store.read_bytes() == first


def test_sweep_prints_means(sweep_file: Path) -> None:
    text = run("sweep", str(sweep_file)).stdout
    assert "mean of 3 draws" in text
    assert "excess risk" in text


def test_sweep_as_json(sweep_file: Path) -> None:
    shown = strict_json(run("sweep", str(sweep_file), "--json").stdout)
    assert shown["coordinates"]["size"] == [10, 20]


# -- verify --------------------------------------------------------------------------------------------------------------


def make_claim(passed: bool | None) -> Claim:
    def check(check: Check) -> None:
        check.below("x", 0.5 if passed else 2.0, 1.0)
        check.show("y", np.inf)
        check.note("a [caveat]")

    return Claim("X1", "Coins", "A coin is [fair].", check=None if passed is None else check)


def with_claims(monkeypatch: pytest.MonkeyPatch, *claims: Claim) -> None:
    """A ledger of these claims alone."""
    known = {claim.id: claim for claim in claims}
    for place in ("limitlab.lab.claims.find_claims", "limitlab.lab.claims.find_claims"):  # the importer first
        monkeypatch.setattr(place, lambda ids=(): [known[one] for one in ids or known])


@pytest.mark.parametrize(("passed", "status", "code"), [(True, "pass", 0), (False, "fail", 1), (None, "not implemented", 1)])
def test_verify_by_id(monkeypatch: pytest.MonkeyPatch, passed: bool | None, status: str, code: int) -> None:
    with_claims(monkeypatch, make_claim(passed))
    result = run("verify", "X1")
    assert result.exit_code == code
    assert f"1 {status}" in result.stdout
    assert "A coin is [fair]." in result.stdout
    (record,) = strict_json(run("verify", "X1", "--json").stdout)
    assert record["status"] == status
    assert record["measured"] == ({} if passed is None else {"x": 0.5 if passed else 2.0, "y": "inf"})


def test_verify_everything_does_not_fail_for_what_is_not_implemented(monkeypatch: pytest.MonkeyPatch) -> None:
    with_claims(monkeypatch, make_claim(True), dataclasses.replace(make_claim(None), id="X2"))
    assert run("verify").exit_code == 0


def test_verify_writes_the_ledger(tmp_path: Path) -> None:
    for suffix, words in ((".md", "| J3 | pass | largest z"), (".json", '"id": "J3"')):
        file = tmp_path / f"ledger{suffix}"
        assert run("verify", "J3", "--out", str(file)).exit_code == 0
        assert words in file.read_text()
    assert run("verify", "J3", "--out", "ledger.txt").exit_code == 2


def test_verify_a_real_claim() -> None:
    result = run("verify", "J3")
    assert result.exit_code == 0, result.output
    assert "pass" in result.stdout


# -- bad input -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ("predict ridge --ratio -1", "ratio = -1.0 is not allowed: must be above 0"),
        ("predict ridge --ratio nan", "ratio = nan is not allowed"),
        ("predict ridge --ratio abc", "ratio = 'abc' is not allowed: must be a number, above 0, inf allowed"),
        ("predict nearest-neighbours --samples 2.5", "samples = 2.5 is not allowed: must be a whole number, at least 1"),
        ("predict ridge --jsn", "did you mean 'json'"),
        ("predict ridge --ratio 1:2", "write start:stop:count"),
        ("predict ridge --ratio 0.5,-1", "ratio = -1.0 is not allowed"),
        ("predict ridge --rtio 2", "did you mean 'ratio'"),
        ("predict ridge --ratio", "--ratio needs a value"),
        ("predict ridge 2", "unexpected argument '2'"),
        ("predict ridge --ratio 1 --ratio 2", "given twice"),
        ("predict ridge --eigenvalues 1,2", "weights"),
        ("predict ridgy", "did you mean 'Ridge'"),
        ("predict --ratio 2", "name the law before its parameters"),
        ("predict", "Missing argument 'LAW'"),
        ("predict ridge --observables tst_error", "did you mean 'test_error'"),
        ("simulate ridge --plot x.png", "no horizontal axis"),
        ("laws transfromers", "no law contains 'transfromers': did you mean"),
        ("predict ridge --ratio 1,2 --plot x.jpeg", "must end in .png or .svg or .pdf"),
        ("predict ridge --out x.xlsx", "must end in .csv or .nc"),
        ("predict ridge --out /no/such/folder/x.csv", "there is no folder '/no/such/folder'"),
        ("compare coin --plot /no/such/folder/x.png", "there is no folder '/no/such/folder'"),
        ("compare coin --heads 0.1,0.2", "--heads has 2 values"),
        ("compare coin --size 10,x", "'x' is not a whole number"),
        ("compare coin --size 1", "size = 1 is not allowed"),
        ("compare coin --seeds 1", "seeds = 1 is not allowed"),
        ("compare coin --seeds many", "--seeds"),
        ("simulate coin --size 0", "size = 0 is not allowed"),
        ("simulate coin --seeds 0", "--seeds 0 is not allowed"),
        ("simulate coin --seed -1", "seed = -1 is not allowed"),
        ("plan coin --solve-for heads", "Missing option '--target'"),
        ("plan coin --target overlap --solve-for heads", "such as test_error=0.3"),
        ("plan coin --target overlap=nan --solve-for heads", "must be a finite number"),
        ("plan coin --target overlp=1 --solve-for heads", "did you mean 'overlap'"),
        ("plan coin --target overlap=1 --solve-for hads", "did you mean 'heads'"),
        ("plan coin --target overlap=1 --solve-for heads --bounds 1", "give two numbers"),
        ("plan coin --target overlap=1 --solve-for heads --prefer best", "best"),
        ("optimal coin --over heads --minimise tail", "overlap"),
        ("sweep /no/such/file.toml", "cannot be read: No such file"),
        ("verify Z99", "there is no claim 'Z99'"),
        ("figure no-such-figure", "there is no figure 'no-such-figure'"),
        ("figure", "id of a figure is missing"),
        ("figure ridge-double-descent --out a.gif", "--out a.gif: the name must end in .png or .svg or .pdf"),
        ("figure ridge-double-descent --format png,gif", "--format png,gif: the formats are png, svg, pdf"),
        ("report --out /no/such/folder/report.html", "there is no folder '/no/such/folder'"),
        ("report --out /tmp", "it is a folder"),
        ("report --laws ridgy", "did you mean 'Ridge'"),
        ("show nothing", "there is no law 'nothing'"),
        ("predikt ridge", "Did you mean 'predict'"),
        ("--frobnicate", "--frobnicate"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(args: str, words: str) -> None:
    assert words in refused(run(*args.split()))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("law = ", "is not valid TOML"),
        ("law = 'Ridgy'\n[over]\nratio=[1]", "did you mean 'Ridge'"),
        ("law = 'Ridge'\n[over]\nrtio=[1]", "did you mean 'ratio'"),
        ("law = 'Ridge'\n[over]\nratio=[-1]", "ratio = -1 is not allowed"),
        ("law = 'Ridge'\n[over]\nratio='1:2'", "write start:stop:count"),
        ("law = 'Ridge'\n", "'over' is missing"),
        ("law = 'Ridge'\nsize = 3\n[over]\nratio=[1]", "did you mean 'sizes'"),
        ("law = 'Ridge'\nengine = 'proceses'\n[over]\nratio=[1]", "did you mean 'processes'"),
        ("law = 'Ridge'\nsizes = ['a']\n[over]\nratio=[1]", "sizes"),
        ("law = 'Ridge'\nstore = '/no/such/place/x.nc'\n[over]\nratio=[1]", "/no/such/place/x.nc"),
    ],
)
def test_bad_sweep_files(tmp_path: Path, content: str, words: str) -> None:
    if os.geteuid() == 0 and "/no/such/place" in content:
        content = content.replace("/no/such/place", "/proc/no/such/place")  # root may make any folder but not there
        words = words.replace("/no/such/place", "/proc/no/such/place")
    file = tmp_path / "bad.toml"
    file.write_text(content)
    assert words in refused(run("sweep", str(file)))


def test_binary_is_no_sweep_file(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_bytes(b"\xff\xfe\x00\x81")
    assert "is not a text file" in refused(run("sweep", str(file)))


def test_unreadable_store(sweep_file: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken.nc"
    taken.write_text("something else")
    assert "was not made by a sweep" in refused(run("sweep", str(sweep_file), "--store", str(taken)))
    assert taken.read_text() == "something else"


def test_damaged_store(sweep_file: Path, tmp_path: Path) -> None:
    store = tmp_path / "kept"
    assert run("sweep", str(sweep_file), "--store", str(store)).exit_code == 0
    (store / "sweep.json").write_text("{")
    with pytest.warns(UserWarning, match="damaged"):
        again = run("sweep", str(sweep_file), "--store", str(store))
    assert again.exit_code == 0, again.output
    assert (store / "sweep.json").read_text() != "{"  # made anew, and no cell is lost


def test_paths_are_checked_before_the_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def work(*args: object, **options: object) -> None:
        raise AssertionError("the work had begun")

    monkeypatch.setattr(limitlab.lab, "compare", work, raising=False)
    monkeypatch.setattr(Coin, "theory", work)
    monkeypatch.setattr(Coin, "simulate", work)
    missing = str(tmp_path / "missing" / "x.nc")
    for command in ("predict", "simulate", "compare"):
        assert "there is no folder" in refused(run(command, "coin", "--out", missing))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert "Permission denied" in refused(run("predict", "coin", "--out", str(tmp_path / "x.csv")))


def test_nothing_is_left_behind_when_writing_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(xr.Dataset, "to_netcdf", full)
    assert "No space left on device" in refused(run("predict", "coin", "--out", str(tmp_path / "x.nc")))
    assert list(tmp_path.iterdir()) == []


# -- interruptions and bugs ----------------------------------------------------------------------------------------------


def test_interrupt_is_one_line_and_exit_code_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Coin, "theory", stop)
    assert refused(run("predict", "coin"), code=130) == "error: interrupted"


def test_a_bug_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def bug(*args: object, **options: object) -> None:
        raise TypeError("a bug")

    monkeypatch.setattr(Coin, "theory", bug)
    with pytest.raises(TypeError, match="a bug"):
        run("predict", "coin")


def test_a_solver_that_stops_short_is_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    from limitlab.errors import ConvergenceError

    def short(*args: object, **options: object) -> None:
        raise ConvergenceError("the residual is still 0.1")

    monkeypatch.setattr(Coin, "theory", short)
    assert "the residual is still 0.1" in refused(run("predict", "coin"), code=1)


# -- the page that explains it all ---------------------------------------------------------------------------------------

PAGE = ROOT / "docs" / "howto" / "cli.md"


GUIDE = [line for block in blocks(PAGE, "bash") for line in block.text.splitlines() if line]


@pytest.mark.parametrize("command", [line for line in GUIDE if " report " not in line])  # test_report.py writes reports
def test_commands_of_the_guide_run(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program, *args = shlex.split(command)
    assert program == "limitlab"
    result = run(*args)
    assert result.exit_code == 0, result.output


# -- real processes ------------------------------------------------------------------------------------------------------


def process(*args: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "limitlab", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


def test_module_is_the_command() -> None:
    done = process("predict", "ridge", "--ratio", "2", "--json")
    assert done.returncode == 0
    assert strict_json(done.stdout)["law"] == "Ridge"


def test_process_refuses_bad_input_with_one_line() -> None:
    done = process("predict", "ridge", "--ratio", "-1")
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_starting_up_imports_little() -> None:
    program = "import sys, limitlab.show.cli; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert not set(done.stdout.split()) & HEAVY


def test_closed_pipe_is_quiet() -> None:
    command = f"{sys.executable} -m limitlab predict ridge --ratio 0.1:10:2000log --json | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "{\n"
    assert "Traceback" not in done.stderr


LONG = """
law = "Ridge"
sizes = [300]
seeds = 2000
store = "long"
[over]
ratio = [0.5, 2.0]
"""


def test_ctrl_c_of_a_running_sweep(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(LONG)
    command = [sys.executable, str(ROOT / "tests" / "hears_ctrl_c.py"), "sweep", "long.toml"]
    running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("long/cells/*/*.cell")) and time.monotonic() < deadline:
            time.sleep(0.05)
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 130, err
    assert [
        line.partition(":")[0] for line in err.splitlines() if "processor time" not in line and not line.endswith("so far)")
    ] == ["error"]
    assert "the same command runs only the rest" in err
    assert "Traceback" not in err + out


def test_ctrl_c_keeps_the_draws_that_are_finished(monkeypatch, tmp_path):
    from limitlab.laws import Ridge

    once = Ridge.simulate

    def interrupted(self, size, seed):
        if seed == 2:
            raise KeyboardInterrupt
        return once(self, size, seed)

    monkeypatch.setattr(Ridge, "simulate", interrupted)
    result = run("simulate", "ridge", "--size", "8", "--seeds", "5", "--out", str(tmp_path / "x.nc"))
    assert result.exit_code == 130
    assert "interrupted after 2 of 5 draws" in result.stderr
    assert xr.open_dataset(tmp_path / "x.nc", engine="h5netcdf").sizes["seed"] == 2


def test_a_line_after_two_seconds_where_there_is_no_terminal(capsys):
    import time

    from limitlab.show.cli import _app as progress

    with progress.status_line("solving", first=0.05):
        time.sleep(0.4)
    assert re.search(r"solving \(0\.\d+ s so far\)", capsys.readouterr().err)


def test_limits_are_options_of_every_command():
    refused = run("--memory", "1MB", "simulate", "ridge", "--size", "500")
    assert refused.exit_code == 2
    assert "more than the 1 MB allowed" in refused.stderr
    assert run("--memory", "apples", "laws").exit_code == 2
    assert "LIMITLAB_MEMORY" not in os.environ


def test_reproduce(tmp_path):
    file = str(tmp_path / "x.nc")
    assert run("predict", "ridge", "--ratio", "0.5,2", "--out", file).exit_code == 0
    again = run("reproduce", file)
    assert again.exit_code == 0
    assert "the same to the last bit" in again.stdout
    with xr.open_dataset(file, engine="h5netcdf") as saved:
        changed = saved.load()
    changed["test_error"] = changed.test_error + 1
    changed.to_netcdf(file, engine="h5netcdf")
    assert run("reproduce", file, "--json").exit_code == 1
