"""The documentation tells the truth: its examples run, its links lead somewhere, its table of laws is the registry's."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import operator
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from limitlab._core.registry import all_laws, laws_by_subject
from limitlab.lab.claims import all_claims
from markdown_blocks import ROOT, blocks, pages

README = ROOT / "README.md"
MADE_BY_THE_BUILD = {"../gallery/index", "gallery/index"}
LINK = re.compile(r"(?<!`)\[[^\]\n]*\]\(([^)\s]+)\)")


INTERACTIVE = [page for page in pages() if ">>>" in page.read_text(encoding="utf-8") and page.name != "CONTRIBUTING.md"]


def short(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def visible_files() -> set[str]:
    """Names of the files and folders in the root of the repository; those of tools begin with a dot."""
    return {path.name for path in ROOT.iterdir() if not path.name.startswith(".")}


@pytest.fixture(scope="module", autouse=True)
def _nothing_left_in_the_root() -> Iterator[None]:
    """Fail if an example, a command or the build of the documentation writes a file into the root of the repository."""
    before = visible_files()
    yield
    assert visible_files() - before == set()


@pytest.fixture(scope="module")
def laws_table() -> ModuleType:
    spec = importlib.util.spec_from_file_location("laws_table", ROOT / "docs" / "_ext" / "laws_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("law", all_laws())
def test_law_has_a_theory_page_that_names_it(law: str, laws_table: ModuleType) -> None:
    page = laws_table.theory_page(all_laws()[law])
    assert page.exists(), f"{short(page)} is missing"
    assert re.search(rf"\b{law}\b", page.read_text(encoding="utf-8")), f"{short(page)} does not name {law}"


@pytest.mark.parametrize("page", pages(), ids=short)
def test_links_lead_somewhere(page: Path) -> None:
    words = re.sub(r"`[^`\n]*`", "code", page.read_text(encoding="utf-8"))  # code such as f[1](x) is no link
    targets = [match[1].split("#")[0] for match in LINK.finditer(words)]
    local = [target for target in targets if target and ":" not in target and target not in MADE_BY_THE_BUILD]
    broken = [target for target in local if not (page.parent / target).exists()]
    assert not broken, f"{short(page)}: {broken}"


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as Markdown makes them."""
    headings = re.findall(r"^#{1,6} (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", pages(), ids=short)
def test_links_into_a_page_find_their_heading(page: Path) -> None:
    targets = [match[1].split("#") for match in LINK.finditer(page.read_text(encoding="utf-8")) if "#" in match[1]]
    local = [(file, anchor) for file, anchor in targets if ":" not in file]
    broken = [(file, anchor) for file, anchor in local if anchor not in anchors(page.parent / file if file else page)]
    assert not broken, f"{short(page)}: {broken}"


@pytest.mark.parametrize("page", INTERACTIVE, ids=short)
def test_examples_on_the_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interactive examples of a page, in order, in one session and an empty folder."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    runner = doctest.DocTestRunner()
    report: list[str] = []
    for block in blocks(page, "python"):
        example = doctest.DocTestParser().get_doctest(block.text, names, page.name, str(page), block.line)
        runner.run(example, out=report.append, clear_globs=False)
        names = example.globs
    assert runner.tries > 0
    assert runner.failures == 0, "".join(report)
    if page.parent.name == "tutorial":  # readers start Python in a folder of their own, often the repository
        assert list(tmp_path.iterdir()) == []


THEORY = sorted(page for page in (ROOT / "docs" / "theory").glob("*.md") if page.name != "index.md")


def equation_numbers(page: Path) -> list[str]:
    return re.findall(r"\\tag\{([^}]*)\}", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", THEORY, ids=short)
def test_theory_page_asks_its_question_and_numbers_its_equations_in_order(page: Path, laws_table: ModuleType) -> None:
    assert laws_table.question(page).endswith("?")
    numbers = [(int(re.sub(r"\D", "", number)), re.sub(r"\d", "", number)) for number in equation_numbers(page)]
    assert numbers == sorted(set(numbers))
    assert {number for number, _ in numbers} == set(range(1, max(numbers)[0] + 1))


def test_equations_that_the_code_cites_exist() -> None:
    pages = {page.stem: set(equation_numbers(page)) for page in THEORY}
    cited = re.compile(r"docs/theory/(\w+)\.md, eqs?\. ([\da-z', -]+)")
    found = [
        (short(path), page, number)
        for path in sorted((ROOT / "src").rglob("*.py"))
        for page, numbers in cited.findall(path.read_text(encoding="utf-8"))
        for number in re.findall(r"\d+[a-z']?", numbers)
    ]
    assert len(found) > 30
    assert [one for one in found if one[2] not in pages[one[1]]] == []


def readme_commands() -> list[str]:
    """The commands of the README's tour, without their comments."""
    lines = (line.split("#")[0].strip() for block in blocks(README, "bash") for line in block.text.splitlines())
    return [line for line in lines if line.startswith("limitlab ")]


@pytest.mark.parametrize("command", readme_commands())
def test_command_of_the_readme_runs(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from limitlab.show.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code, f"{command}: exit code {ended.value.code}"


def test_readme_has_a_line_for_every_subject() -> None:
    text = README.read_text(encoding="utf-8")
    assert [subject for subject in laws_by_subject() if f"\n- **{subject}**: " not in text] == []


def test_errata_say_what_is_printed_what_is_right_and_why() -> None:
    items = re.split(r"^\d+\. ", (ROOT / "docs" / "errata.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert len(items) > 60
    for item in items:
        assert re.search(r"\*\*Printed:\*\* \S.*\n.*\*\*Right:\*\* \S.*\n.*\*\*Evidence:\*\* \S", item), item


def test_claims_that_the_errata_name_exist() -> None:
    text = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    evidence = " ".join(re.findall(r"\*\*Evidence:\*\* (.*)", text))
    named = set(re.findall(r"\b([DJLMSTBC]\d{1,2})\b", evidence))
    assert len(named) > 30
    assert named <= set(all_claims())


def test_symbols_have_at_most_one_subscript() -> None:
    """A_{b}_{c} is an error in TeX: tables of names would show it in place of the symbol."""
    declared = {meta.symbol for law in all_laws().values() for meta in (*law.parameters().values(), *law.outputs().values())}
    for symbol in filter(None, declared):
        flat = symbol
        while re.search(r"\{[^{}]*\}", flat):
            flat = re.sub(r"\{[^{}]*\}", "()", flat)
        assert not re.search(r"_(\(\)|\\?\w)_", flat), symbol


def test_readme_has_commands() -> None:
    assert len(readme_commands()) >= 5


def test_ci_runs_the_test_command_of_the_readme() -> None:
    """The extraction in .ci/run, run here: it finds one command, which is in a block of the README and runs pytest."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (extraction,) = re.findall(r"^test_command=\$\((.*)\)$", script, re.MULTILINE)
    found = subprocess.run(["bash", "-c", extraction], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    assert found in [block.text.strip() for block in blocks(README)]
    assert "pytest" in found
    assert "[test]" in found


def test_architecture_page_names_functions_that_exist() -> None:
    """The table of one prediction: a module and a function of it in every row."""
    rows = re.findall(
        r"^\| `(limitlab\.[\w.]+)` \| `([\w.]+)` \|", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(rows) > 10
    for module, function in rows:
        assert callable(operator.attrgetter(function)(importlib.import_module(module))), (module, function)


def test_architecture_page_names_every_package() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"][0][
        "layers"
    ]
    table = re.findall(r"^\| `(\w+)(?:\.py|/|/<subject>/)` \|", text, re.MULTILINE)
    assert table == list(reversed(layers))


def test_root_holds_no_output_of_an_example() -> None:
    """Data, figures and results belong into a folder; the root has the files that describe the project."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines()
    in_root = {name for name in listed if "/" not in name and not name.startswith(".")}
    allowed = {".md", ".cff", ".toml", ".py", ""}
    assert [name for name in sorted(in_root) if Path(name).suffix not in allowed] == []


def test_versions_are_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"\nversion: {project['version']}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_no_path_of_a_machine_in_the_repository() -> None:
    """Nobody's home or scratch folder, no address of a package registry."""
    # put together here, so that this file does not find itself
    folders = ("work", "root", r"home/\w+", r"Users/\w+", "tmp/venv", "opt/pypi")
    forbidden = re.compile("|".join([*(rf"(?<![\w.])/{folder}\b" for folder in folders), "index" + "-url"]))
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    files = [ROOT / name for name in listed.split("\0") if name]
    files = files or [path for path in ROOT.rglob("*") if ".venv" not in path.parts]  # not a git checkout
    found = []
    for path in files:
        if path.suffix in {".py", ".md", ".toml", ".cff", ".txt", ".json", ".rst", ".cfg", ""} and path.is_file():
            text = path.read_text(encoding="utf-8", errors="ignore")
            found += [f"{short(path)}: {match[0]}" for match in forbidden.finditer(text)]
    assert not found, found


@pytest.mark.slow
def test_documentation_builds_without_warnings(tmp_path: Path) -> None:
    pytest.importorskip("sphinx_gallery", reason="the docs extra is not installed")
    command = [sys.executable, "-m", "sphinx", "--quiet", "-W", "--keep-going", str(ROOT / "docs"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-5000:]
