"""Laws of other authors, in one file, in a folder that `limitlab new-law` writes and in an installed package."""

from __future__ import annotations

import asyncio
import json
import os
import re
import runpy
import select
import shutil
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import limitlab as ll
from limitlab._core import registry
from limitlab.lab.claims import ClaimTask, all_claims, claims_of
from limitlab.lab.figures import describe_figures, find_figure
from limitlab.lab.sweepfile import read_sweep
from limitlab.lab.tasks import key_of
from limitlab.show.cli import app
from limitlab.show.explorer._address import explorable, matching, snippet, start
from limitlab.show.explorer._page import equations
from limitlab.show.explorer.jobs import Caps, Pool
from limitlab.show.report import write_report
from limitlab.testing import LawContractError, check_faults, check_law
from markdown_blocks import ROOT, blocks

KINDS = ("file", "folder", "installed")


@dataclass(frozen=True)
class Home:
    """A package of another author: its import name, the class of its law, and where it is."""

    package: str
    law: str
    place: Path
    options: tuple[str, ...]

    @property
    def id(self) -> str:
        return f"{self.package}:{self.law}"

    @property
    def figure(self) -> str:
        return f"{self.package}:{kebab(self.law)}"

    @property
    def subject(self) -> str:
        return "Shrinking a vector of means (James and Stein)" if self.place.is_file() else snake(self.package).capitalize()


def kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


def snake(name: str) -> str:
    return name.replace("_", " ")


def run(*args: str, code: int = 0) -> Any:
    """Run a command line in this process; an unexpected exception is a failure of the test."""
    result = CliRunner().invoke(app, list(args))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def process(*args: str, path: Path | None = None, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own, with a folder of installed packages on its search path."""
    return subprocess.run(
        [sys.executable, "-m", "limitlab", *args],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=cwd,
        env=environment(path),
    )


def environment(path: Path | None) -> dict[str, str]:
    sources = [str(ROOT / "src"), *([str(path)] if path else [])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sources)}


def in_one_file(folder: Path) -> str:
    """The law, the claim and the figure of a folder as the text of a single file."""
    law, claim, figure = (folder / name for name in ("file_shrink.py", "_claims.py", "_figures.py"))
    parts = [law.read_text()]
    for part in (claim, figure):
        lines = part.read_text().splitlines()
        parts.append("\n".join(line for line in lines if not line.startswith(('"""', "from __future__", "from ."))))
    return "\n".join(parts)


def declare(site: Path, package: str, name: str = "") -> None:
    """Write what pip writes for an installed package with an entry point."""
    info = site / f"{package}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[limitlab.laws]\n{name or package} = {package}\n")


def forget(*packages: str) -> None:
    """Undo `load_laws` and imports of packages in this process."""
    for package in packages:
        registry._LOADED.pop(package, None)
        for module in [one for one in sys.modules if one == package or one.startswith(f"{package}.")]:
            del sys.modules[module]
    registry._installed.cache_clear()
    registry.source_digest.cache_clear()


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Home]]:
    """The three packages; the installed one is on the search path as long as the tests of this file run."""
    root, search_path = tmp_path_factory.mktemp("foreign"), list(sys.path)
    run("new-law", str(root / "draft"), "--name", "FileShrink")
    file = root / "one_file_laws.py"
    file.write_text(in_one_file(root / "draft"))
    folder = root / "folder_laws"
    run("new-law", str(folder), "--name", "FolderShrink")
    site = root / "site"
    run("new-law", str(site / "installed_laws"), "--name", "InstalledShrink")
    declare(site, "installed_laws")
    sys.path.append(str(site))
    registry._installed.cache_clear()
    yield {
        "file": Home("one_file_laws", "FileShrink", file, ("--laws", str(file))),
        "folder": Home("folder_laws", "FolderShrink", folder, ("--laws", str(folder))),
        "installed": Home("installed_laws", "InstalledShrink", site / "installed_laws", ()),
    }
    sys.path[:] = search_path
    forget("one_file_laws", "folder_laws", "installed_laws")


@pytest.fixture(params=KINDS)
def home(request: pytest.FixtureRequest, homes: dict[str, Home]) -> Home:
    return homes[request.param]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# -- every command ------------------------------------------------------------------------------------------------------

COMMANDS = [
    ("laws", "{id}"),
    ("laws", "{subject}"),
    ("show {id}", "number of means d"),
    ("show {id}", "Example: limitlab predict {id}"),
    ("predict {id} --help", "--mean-size"),
    ("predict {id} --noise 0.5,1", "0.16"),
    ("predict {dashed} --noise 1 --json", '"excess_risk": 0.5'),
    ("simulate {law} --size 50 --seeds 3", "3 draws"),
    ("compare {id} --mean-size 1.5 --noise 0.6", "agree: 4 observables"),
    ("plan {id} --target excess_risk=0.4 --solve-for noise", "0.816497"),
    ("optimal {id} --over noise --minimise excess_risk --bounds 0.1:10", "noise = 0.1"),
    ("figure {figure} --out shrink.png", ""),
    ("figure {package}:X1 --out claim.svg", ""),
    ("figure --list", "{figure}"),
    ("verify {package}:X1", "1 pass"),
    ("report --laws {source} --workers 1 --fresh", "1 claims pass"),
]


@pytest.mark.parametrize(("command", "words"), COMMANDS)
def test_command(command: str, words: str, home: Home) -> None:
    names = dict(
        id=home.id, law=home.law, package=home.package, figure=home.figure, subject=home.subject,
        dashed=f"{home.package}:{kebab(home.law)}", source=home.options[-1] if home.options else home.id,
    )  # fmt: skip
    options = home.options if "--laws" not in command else ()
    result = run(*(word.format(**names) for word in command.split()), *options)
    assert words.format(**names) in re.sub(r"\s+", " ", result.stdout)
    if "--out" in command:
        assert Path(command.split()[-1]).stat().st_size > 5000


def test_cite_reads_the_bibliography_of_the_package(homes: dict[str, Home]) -> None:
    for kind in ("folder", "installed"):
        assert "Estimation with quadratic loss" in run("cite", homes[kind].id, *homes[kind].options).stdout
    bibliography = homes["folder"].place / "references.bib"
    text = bibliography.read_text()
    bibliography.write_text(text.replace("quadratic loss", "another title"))
    try:
        assert "another title" in run("cite", homes["folder"].id, *homes["folder"].options).stdout
    finally:
        bibliography.write_text(text)


def test_verify_without_ids_checks_the_claims_of_the_package_only(homes: dict[str, Home], tmp_path: Path) -> None:
    result = json.loads(run("verify", "--json", *homes["folder"].options).stdout)
    assert [record["id"] for record in result] == ["folder_laws:X1"]
    (tmp_path / "no_claims_here.py").write_text("")
    try:
        assert "contains no claims" in run("verify", "--laws", "no_claims_here.py", code=2).stderr
    finally:
        forget("no_claims_here")


def test_sweep_of_a_file_and_its_reproduction(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "sweep.toml"
    file.write_text(f'law = "{home.id}"\nsizes = [50]\nseeds = 3\nstore = "draws.nc"\n[over]\nnoise = [0.5, 1.0]\n')
    run("sweep", str(file), *home.options)
    assert "same to the last bit" in run("reproduce", "draws.nc", *home.options).stdout
    run("predict", home.id, "--noise", "0.5,1", "--out", "limit.nc", *home.options)
    assert "same to the last bit" in run("reproduce", "limit.nc", *home.options).stdout


def test_stop_refuses_a_law_without_time(homes: dict[str, Home]) -> None:
    assert "error" in run("stop", homes["folder"].id, *homes["folder"].options, code=2).stderr


def serve_and_fetch(home: Home, site: Path | None) -> str:
    """The page of the explorer with a law of another author, fetched once from a server of its own."""
    command = [sys.executable, "-m", "limitlab", "explore", home.id, *home.options, "--no-show", "--port", "0", "--json"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(site))
    try:
        assert server.stdout is not None
        told = ""
        while "}" not in told:
            assert select.select([server.stdout], [], [], 60)[0], "the explorer did not start"
            part = os.read(server.stdout.fileno(), 10_000).decode()
            assert part, server.communicate()[1]
            told += part
        with urllib.request.urlopen(json.loads(told)["address"], timeout=30) as answer:
            assert answer.status == 200
            return str(answer.read().decode())
    finally:
        server.terminate()
        server.communicate(timeout=30)


def test_explorer_serves_a_law_of_a_folder(homes: dict[str, Home]) -> None:
    assert "limitlab explorer" in serve_and_fetch(homes["folder"], None)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "installed"])
def test_explorer_serves_a_law_of_a_file_and_of_an_installed_package(kind: str, homes: dict[str, Home]) -> None:
    assert "limitlab explorer" in serve_and_fetch(homes[kind], homes["installed"].place.parent)


def test_explorer_refuses_a_law_that_is_not_loaded() -> None:
    assert "not loaded" in run("explore", "nothing_here:Law", "--no-show", "--port", "0", code=2).stderr


def test_explorer_lists_the_law_under_its_own_subject(home: Home) -> None:
    load(home)
    assert matching(explorable(), "")[home.subject] == [home.id]
    assert home.id in matching(explorable(), "noisy observation")[home.subject]


def test_explorer_computes_with_a_foreign_law_in_a_worker(homes: dict[str, Home]) -> None:
    law = ll.load_laws(homes["folder"].place)[homes["folder"].id]

    async def last(pool: Pool) -> Any:
        request = dict(law=law(), along="noise", values=[0.5, 1.0], observables=["excess_risk"])
        return [message async for message in pool.run("curve", **request)][-1]

    pool = Pool(Caps(workers=1))
    try:
        message = asyncio.run(last(pool))
    finally:
        pool.close()
    assert message.kind == "result", message
    np.testing.assert_allclose(message.value["y"]["excess_risk"], [0.2, 0.5])


def test_explorer_shows_the_page_of_the_package_and_lines_that_load_it(homes: dict[str, Home]) -> None:
    law = ll.load_laws(homes["folder"].place)[homes["folder"].id]
    assert [number for number, _ in equations(law)] == ["1", "2"]
    lines = snippet(start(law), law())
    assert 'll.load_laws("folder_laws")' in lines
    assert "from folder_laws.folder_shrink import FolderShrink" in lines
    assert str(homes["folder"].place.parent) not in lines
    installed = registry.find_law(homes["installed"].id)
    assert "load_laws" not in snippet(start(installed), installed())


# -- every function -----------------------------------------------------------------------------------------------------


def load(home: Home) -> type[ll.laws.Law]:
    """The law of a package, loaded unless the package is installed."""
    if home.options:
        return ll.load_laws(home.place)[home.id]
    return ll.laws.find_law(home.id)


def test_functions_take_the_id_of_a_foreign_law(home: Home) -> None:
    law = load(home)
    assert ll.compare(home.id, sizes=[100, 200, 400], seeds=400, budget=0, resolution=0.2, progress=False).verdict == "agree"
    np.testing.assert_allclose(ll.sweep(home.id, over={"noise": [0.5, 1.0]}).excess_risk, [0.2, 0.5])
    assert float(ll.plan(home.id, target={"excess_risk": 0.4}, solve_for="noise")["noise"]) == pytest.approx(np.sqrt(2 / 3))
    assert float(ll.optimal(home.id, over="noise", minimise="excess_risk", bounds=(0.1, 10))["noise"]) == pytest.approx(0.1)
    assert [record.status for record in ll.verify(f"{home.package}:X1")] == ["pass"]
    assert len(ll.figure(home.figure).axes) == 1
    assert claims_of(law) == [f"{home.package}:X1"]
    assert registry.law_id(law) == home.id
    assert registry.subject_of(law) == home.subject


def test_short_names_are_enough_where_they_are_unique(home: Home) -> None:
    law = load(home)
    assert registry.find_law(home.law) is law
    assert find_figure(kebab(home.law)) == home.figure


def test_worker_processes_run_foreign_laws_and_claims(home: Home) -> None:
    law = load(home)
    here, there = (ll.sweep(law(), {"noise": [0.5, 1.0]}, sizes=[50], seeds=2, engine=engine) for engine in (None, 2))
    np.testing.assert_array_equal(here.excess_risk, there.excess_risk)
    (record,) = ll.verify(f"{home.package}:X1", engine=2)
    assert record.status == "pass", record.error


def test_report_shows_claims_and_figures_of_a_package(homes: dict[str, Home], tmp_path: Path) -> None:
    law = ll.load_laws(homes["folder"].place)[homes["folder"].id]
    summary = write_report(tmp_path / "report.html", laws=[law], engine=2, progress=False)
    assert summary.failed == ()
    page = (tmp_path / "report.html").read_text()
    for words in (
        "limitlab verify folder_laws:X1 --laws folder_laws",
        "limitlab figure folder_laws:folder-shrink --laws folder_laws",
        "limitlab compare folder_laws:FolderShrink --laws folder_laws",
        "folder_laws/theory/folder_shrink.md",
        "Estimation with quadratic loss",
    ):
        assert words in page
    assert str(homes["folder"].place.parent) not in page


def test_report_shows_figures_and_claims_that_name_no_law(tmp_path: Path) -> None:
    file = tmp_path / "extra_parts.py"
    file.write_text(
        "from limitlab.lab import claim\nfrom limitlab.laws import NearestNeighbours\n"
        "from limitlab.plotting import finish, new_figure, theory_line\n\n"
        "class MyNeighbours(NearestNeighbours):\n    'Is this law of mine shown?'\n\n"
        "@claim('Q1', 'Arithmetic')\ndef sums(check):\n    'Two and two make four.'\n    check.equal('2 + 2', 2 + 2, 4)\n\n"
        "def line(quick=True):\n    'A line that no claim names.'\n    figure, (axes,) = new_figure()\n"
        "    theory_line(axes, [0, 1], [0, 1], 0, 'line')\n    finish(axes, 'x', 'y')\n    return figure\n\nFIGURES = {'a-line': line}\n"
    )
    try:
        laws = list(ll.load_laws(file).values())
        summary = write_report(tmp_path / "report.html", laws=laws, progress=False)
        page = (tmp_path / "report.html").read_text()
    finally:
        forget("extra_parts")
    assert summary.passed == 1
    assert "Two and two make four." in page
    assert "limitlab figure extra_parts:a-line --laws extra_parts.py" in page


# -- what is refused, and what is left out --------------------------------------------------------------------------------


def test_a_package_that_fails_to_import_is_named_in_one_warning(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "broken_laws").mkdir(parents=True)
    (site / "broken_laws" / "__init__.py").write_text("import a_module_that_does_not_exist\n")
    declare(site, "broken_laws", name="mine")
    for args in (("verify", "J3", "--engine", "2"), ("predict", "ridge")):
        done = process(*args, path=site, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        lines = [line for line in done.stderr.splitlines() if "so far" not in line]
        if args[0] == "predict":  # a built-in law needs no other package
            assert lines == []
        else:
            (line,) = lines
            assert line.startswith(
                "warning: the package 'broken_laws' of the entry point 'mine' cannot be imported and is left out"
            )
            assert "(__init__.py, line 1)" in line


def test_claims_that_fail_to_import_are_left_out_of_an_installed_package(tmp_path: Path) -> None:
    site = tmp_path / "site"
    run("new-law", str(site / "half_laws"), "--name", "HalfShrink")
    (site / "half_laws" / "_claims.py").write_text("1 / 0\n")
    declare(site, "half_laws")
    done = process("laws", path=site, cwd=tmp_path)
    assert done.returncode == 0
    assert "half_laws:HalfShrink" in done.stdout
    (line,) = done.stderr.splitlines()
    assert "'_claims'" in line
    assert "ZeroDivisionError" in line
    done = process("verify", "--laws", str(site / "half_laws"), cwd=tmp_path)  # loaded on purpose: an error
    assert done.returncode == 2
    assert done.stderr.startswith("error: the module '_claims'")


def test_an_entry_point_may_name_a_package_inside_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    run("new-law", str(site / "outer_tool" / "inner_laws"), "--name", "InnerShrink")
    (site / "outer_tool" / "__init__.py").write_text("")
    declare(site, "outer_tool.inner_laws")
    monkeypatch.syspath_prepend(str(site))
    try:
        registry._installed.cache_clear()
        law = registry.find_law("outer_tool.inner_laws:InnerShrink")
        assert registry.law_id(law) == "outer_tool.inner_laws:InnerShrink"
        assert registry.subject_of(law) == "Inner laws"
        assert claims_of(law) == ["outer_tool.inner_laws:X1"]
        assert "outer_tool.inner_laws:inner-shrink" in describe_figures()
    finally:
        forget("outer_tool")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def broken(:\n", "SyntaxError"),
        ("import a_module_that_does_not_exist\n", "ModuleNotFoundError"),
        ("x = 1\n1 / 0\n", "ZeroDivisionError: division by zero (bad_laws.py, line 2)"),
    ],
)
def test_a_file_that_fails_to_import_is_one_line(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "bad_laws.py").write_text(text)
    error = run("laws", "--laws", "bad_laws.py", code=2).stderr
    assert words in error
    assert len(error.splitlines()) == 1
    assert "bad_laws" not in registry.packages()


def test_two_laws_of_the_same_name_are_ambiguous(tmp_path: Path) -> None:
    for number in (1, 2):
        run("new-law", str(tmp_path / f"twin{number}"), "--name", "TwinShrink")
    try:
        for number in (1, 2):
            ll.load_laws(tmp_path / f"twin{number}")
        with pytest.raises(ValueError, match="ambiguous: write one of twin1:TwinShrink, twin2:TwinShrink"):
            ll.compare("TwinShrink")
        with pytest.raises(ValueError, match="ambiguous: write one of twin1:twin-shrink, twin2:twin-shrink"):
            ll.figure("twin-shrink")
        with pytest.raises(ValueError, match=r"ambiguous: write one of .*twin1:X1, twin2:X1"):
            ll.verify("X1")
        assert ll.sweep("twin2:TwinShrink", over={"noise": [1.0]}).excess_risk.item() == 0.5
        assert {"twin1:X1", "twin2:X1"} <= set(all_claims())
    finally:
        forget("twin1", "twin2")


@pytest.mark.parametrize("name", ["json.py", "limitlab.py", "pytest"])
def test_a_name_of_another_module_is_refused_before_anything_runs(name: str, tmp_path: Path) -> None:
    place = tmp_path / name
    if name.endswith(".py"):
        place.write_text("raise SystemExit('this file was executed')\n")
    else:
        place.mkdir()
        (place / "__init__.py").write_text("raise SystemExit('this file was executed')\n")
    before = list(sys.path)
    with pytest.raises(ValueError, match="another module is called"):
        ll.load_laws(place)
    assert sys.path == before


@pytest.mark.parametrize("place", ["missing.py", "missing", "my-laws.py", "class.py", "notes.txt"])
def test_what_is_no_file_or_folder_of_laws_is_refused(place: str, tmp_path: Path) -> None:
    if place != "missing.py" and "." in place:
        (tmp_path / place).write_text("")
    with pytest.raises(ValueError, match=f"laws = '{place}' is not allowed: must be a Python file such as my_laws.py"):
        ll.load_laws(place)


def test_files_beside_a_loaded_file_do_not_replace_installed_modules(tmp_path: Path) -> None:
    (tmp_path / "plain_laws.py").write_text("import colorsys\nimport textwrap\n")
    for name in ("colorsys", "textwrap"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('this file was executed')\n")
    try:
        sys.modules.pop("colorsys", None)
        assert ll.load_laws(tmp_path / "plain_laws.py") == {}
    finally:
        forget("plain_laws")
        sys.path.remove(str(tmp_path.resolve()))


def test_two_modules_with_one_class_name_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "double_laws"
    folder.mkdir()
    for module in ("first", "second"):
        (folder / f"{module}.py").write_text("from limitlab.laws import Ridge\n\nclass Twice(Ridge):\n    'Twice?'\n")
    with pytest.raises(ValueError, match=r"double_laws.first and double_laws.second; rename one"):
        ll.load_laws(folder)
    forget("double_laws")


def test_a_sweep_file_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "innocent_module.py").write_text("raise SystemExit('this file was executed')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ValueError, match="its module is not loaded"):
        read_sweep({"law": "innocent_module:Thing", "over": {"noise": [1.0]}})
    assert "innocent_module" not in sys.modules
    lazy = type(sys)("lazy_module")
    lazy.__getattr__ = lambda name: pytest.fail(f"{name} was loaded")  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "lazy_module", lazy)
    with pytest.raises(ValueError, match="is not a subclass of"):
        read_sweep({"law": "lazy_module:Thing", "over": {"noise": [1.0]}})
    file = tmp_path / "sweep.toml"
    file.write_text('law = "innocent_module:Thing"\n[over]\nnoise = [1.0]\n')
    assert "not loaded" in process("sweep", "sweep.toml", path=tmp_path, cwd=tmp_path).stderr


# -- the key of a stored claim --------------------------------------------------------------------------------------------


def test_key_of_a_claim_follows_the_source_but_not_the_figures(tmp_path: Path) -> None:
    folder = tmp_path / "keyed_laws"
    run("new-law", str(folder), "--name", "KeyedShrink")
    ll.load_laws(folder)

    def key(edited: str = "") -> str:
        if edited:
            path = folder / edited
            path.write_text(path.read_text() + "\n# an edit\n")
        registry.source_digest.cache_clear()
        return key_of(ClaimTask("keyed_laws:X1", True, None, "keyed_laws"))

    try:
        first = key()
        assert key("_figures.py") == first
        assert key("tests/test_keyed_shrink.py") == first
        after_law = key("keyed_shrink.py")
        assert after_law != first
        assert key("_claims.py") not in (first, after_law)
    finally:
        forget("keyed_laws")


# -- new-law --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["myLaw", "My_Law", "My-Law", "Law", "Ridge", "RIDGE", "None", "L" + "a" * 30, "Tests", "1Law", ""]
)
def test_names_that_a_law_cannot_have(name: str, tmp_path: Path) -> None:
    error = run("new-law", str(tmp_path / "fresh_laws"), "--name", name, code=2).stderr
    assert error.startswith(f"error: --name {name} is not allowed".replace("  ", " "))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("my-laws", "must be a Python name"),
        ("json", "another module is called 'json'"),
        ("a_file", "it is a file"),
        (str(ROOT / "src" / "limitlab" / "models" / "mine"), "src/limitlab/laws/SUBJECT"),
        (str(ROOT / "src" / "limitlab" / "laws" / "spectra" / "mine"), "src/limitlab/laws/SUBJECT"),
    ],
)
def test_folders_that_laws_cannot_have(folder: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "a_file").write_text("")
    assert words in run("new-law", folder, "--name", "FreshShrink", code=2).stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a_file"]
    assert not Path(folder).is_dir()


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    for file in ("fresh_shrink.py", "theory/fresh_shrink.md", "tests/test_fresh_shrink.py"):
        path = tmp_path / "fresh_laws" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
        error = run("new-law", "fresh_laws", "--name", "FreshShrink", code=2).stderr
        assert f"fresh_laws/{file}' exists already" in error
        assert "choose another --name" in error
        assert path.read_text() == "mine"
        path.unlink()
        assert [one for one in (tmp_path / "fresh_laws").rglob("*") if one.is_file()] == []


def ruff(folder: Path, root: Path = ROOT) -> None:
    """Check the style of a folder with the settings of a checkout."""
    for command in (("check",), ("format", "--check")):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--no-cache", "--config", "pyproject.toml", str(folder)],
            cwd=root, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout


def test_further_laws_are_added_to_the_files_of_the_first(tmp_path: Path) -> None:
    folder = tmp_path / "several_laws"
    names = ["Ab", "SecondShrink", "AVeryLongNameOfAShrinkageLaw30"]
    for name in names:
        told = json.loads(run("new-law", "several_laws", "--name", name, "--json").stdout)
        assert told["law"] == f"several_laws:{name}"
        assert all((tmp_path / path).is_file() for path in told["created"] + told["extended"])
    assert told["extended"] == [f"several_laws/{name}" for name in ("_claims.py", "_figures.py", "faults.toml")]
    ruff(folder)
    try:
        assert list(ll.load_laws(folder)) == [f"several_laws:{name}" for name in sorted(names)]
        assert [record.claim.id for record in ll.verify([f"several_laws:X{i}" for i in (1, 2, 3)])] == [
            f"several_laws:X{i}" for i in (1, 2, 3)
        ]
        assert {name for name in describe_figures() if name.startswith("several_laws:")} == {
            f"several_laws:{name}" for name in ("ab", "second-shrink", "a-very-long-name-of-a-shrinkage-law30")
        }
    finally:
        forget("several_laws")


def test_the_test_that_new_law_writes_passes(homes: dict[str, Home]) -> None:
    """It contains the contract, which holds for the example."""
    written = runpy.run_path(str(homes["folder"].place / "tests" / "test_folder_shrink.py"))
    tests = [value for name, value in written.items() if name.startswith("test_")]
    assert len(tests) == 2
    for test in tests:
        test()
    assert written["check_law"] is check_law


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The files of a checkout that `new-law` reads and extends."""
    root = tmp_path / "checkout"
    for path in (ROOT / "src").rglob("*.py"):  # empty modules, from which ruff sees which imports are those of limitlab
        copy = root / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text('"""A module of limitlab."""\n')
    for file in (
        "pyproject.toml",
        "src/limitlab/_core/registry.py",
        "src/limitlab/laws/spectra/__init__.py",
        "src/limitlab/laws/spectra/_claims.py",
        "src/limitlab/laws/spectra/_figures.py",
        "src/limitlab/laws/regression/__init__.py",
        "src/limitlab/laws/regression/_claims/__init__.py",
        "src/limitlab/laws/regression/_figures.py",
        "tests/faults/spectra.toml",
        "tests/faults/regression.toml",
    ):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_bytes((ROOT / file).read_bytes())
    return root


def test_new_law_in_a_checkout(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkout)
    told = {}
    for subject, name in (("spectra", "OneShrink"), ("regression", "TwoShrink"), ("shrinkage", "ThreeShrink")):
        told[subject] = json.loads(run("new-law", f"src/limitlab/laws/{subject}", "--name", name, "--json").stdout)
        assert told[subject]["law"] == name
        assert told[subject]["next"][0] == "python -m limitlab._core.index"
    assert told["spectra"]["extended"] == [
        "src/limitlab/laws/spectra/_claims.py",
        "src/limitlab/laws/spectra/_figures.py",
        "tests/faults/spectra.toml",
    ]
    assert told["regression"]["created"] == [
        "src/limitlab/laws/regression/two_shrink.py",
        "src/limitlab/laws/regression/_claims/two_shrink.py",
        "docs/theory/two_shrink.md",
        "tests/laws/regression/test_two_shrink.py",
    ]
    assert "src/limitlab/laws/shrinkage/__init__.py" in told["shrinkage"]["created"]
    claims = "".join(path.read_text() for path in (checkout / "src").rglob("*_claims*/*.py")) + "".join(
        path.read_text() for path in (checkout / "src").rglob("_claims.py")
    )
    assert sorted(re.findall(r'"(X\d)"', claims)) == ["X1", "X2", "X3"]
    assert (
        (checkout / "docs/theory/one_shrink.md")
        .read_text()
        .startswith("# Shrinking a vector of means (OneShrink)\n\n```{about-laws} OneShrink")
    )
    ruff(checkout, checkout)
    faults = tomllib.loads((checkout / "tests/faults/spectra.toml").read_text())["fault"][-6:]
    for fault in faults:
        assert (checkout / "src/limitlab" / fault["file"]).read_text().count(fault["old"]) == 1
        assert (checkout / fault["tests"][0]).is_file()


@pytest.mark.slow
def test_a_new_law_of_a_checkout_is_found_everywhere(tmp_path: Path) -> None:
    """In a copy of the package: the new laws get into the index, and comparison, claims and figures work."""
    for part in ("src", "tests", "docs"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__", "_build", "*.nb?"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}

    def python(*args: str) -> str:
        done = subprocess.run([sys.executable, *args], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    python("-m", "limitlab", "new-law", "src/limitlab/laws/spectra", "--name", "OneShrink")
    python("-m", "limitlab", "new-law", "src/limitlab/laws/regression", "--name", "TwoShrink")
    assert "written: _core/index.json" in python("-m", "limitlab._core.index")
    for name in ("one-shrink", "two-shrink"):
        assert "agree: 4 observables" in python("-m", "limitlab", "compare", name)
        python("-m", "limitlab", "figure", name)
    assert "2 pass" in python("-m", "limitlab", "verify", "X1", "X2")


# -- planted faults -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_every_fault_of_the_example_is_noticed_by_the_comparison(homes: dict[str, Home]) -> None:
    fates = check_faults(homes["folder"].place)
    assert len(fates) == 6
    assert set(fates.values()) == {"disagree"}


@pytest.mark.slow
def test_a_fault_that_changes_nothing_is_reported(tmp_path: Path) -> None:
    run("new-law", "harmless_laws", "--name", "HarmlessShrink")
    faults = tmp_path / "harmless_laws" / "faults.toml"
    faults.write_text(
        '[[fault]]\nfile = "harmless_shrink.py"\nold = "# equation (2)"\nnew = "# (2)"\nlaws = ["HarmlessShrink"]\n'
    )
    with pytest.raises(LawContractError, match=r"1 of 1 faults are not noticed:\n  harmless_shrink.py: .* \(agree\)"):
        check_faults("harmless_laws")


def test_faults_are_refused_where_they_cannot_be_planted(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"it has no faults\.toml"):
        check_faults(tmp_path)
    run("new-law", "wrong_laws", "--name", "WrongShrink")
    faults = tmp_path / "wrong_laws" / "faults.toml"
    faults.write_text('[[fault]]\nfile = "wrong_shrink.py"\nold = "shrink"\nnew = "x"\nlaws = ["WrongShrink"]\n')
    with pytest.raises(ValueError, match="fault 1: 'shrink' occurs"):
        check_faults("wrong_laws")


# -- the page -------------------------------------------------------------------------------------------------------------


def test_the_page_about_own_laws_runs(tmp_path: Path) -> None:
    """Its commands and programs run in the order of the page, and its outputs are real."""
    page = ROOT / "docs" / "howto" / "own_laws.md"
    output, names, checked = "", {}, 0
    try:
        for block in blocks(page):
            if block.language == "bash":
                lines = [line.split(" #")[0].split() for line in block.text.splitlines() if line.startswith("limitlab")]
                output = "\n".join(run(*line[1:]).stdout for line in lines if line[1] != "explore")
            elif block.language == "python":
                exec(compile(block.text, str(page), "exec"), names)
            elif block.language == "text":
                shown = re.sub(r"\(?\b\d+(\.\d+)? s\b\)?", "", block.text)
                found = re.sub(r"\s+", " ", re.sub(r"\(?\b\d+(\.\d+)? s\b\)?", "", output))
                for line in shown.splitlines():
                    assert re.sub(r"\s+", " ", line).strip() in found, line
                checked += 1
    finally:
        forget("my_laws")
    assert checked >= 3
