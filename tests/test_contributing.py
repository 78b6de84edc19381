"""The walk-through of CONTRIBUTING.md: its code is put into the files that the page names, in a copy of the project, and runs there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from markdown_blocks import ROOT, blocks

PAGE = ROOT / "CONTRIBUTING.md"
SUBJECT = Path("src/limitlab/laws/regression")
TABLE = "FIGURES: dict[str, Callable[[bool], Figure]] = {\n"
GENERATED = ("src/limitlab/laws/__init__.pyi", "src/limitlab/_core/index.json", "tests/public_names.txt")
"""The lists that the index command writes for a new law."""


def block(containing: str, language: str = "python") -> str:
    """The only block of the page that contains these words."""
    (match,) = (one.text for one in blocks(PAGE, language) if containing in one.text)
    return match


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project with the files of the walk-through; the lists of names are written by the index command."""
    root = tmp_path_factory.mktemp("with_a_new_law")
    ignored = shutil.ignore_patterns("__pycache__", "*.nb?", "_build", "gallery", "generated", "figures", "images")
    for folder in ("src", "docs"):
        shutil.copytree(ROOT / folder, root / folder, ignore=ignored)
    (root / "tests").mkdir()
    for file in ("pyproject.toml", "tests/public_names.txt"):
        shutil.copy(ROOT / file, root / file)
    (root / SUBJECT / "shrinkage.py").write_text(block("class JamesStein(Law)"))
    (root / SUBJECT / "_claims" / "shrinkage.py").write_text(block("@claim("))
    (root / "docs" / "theory" / "shrinkage.md").write_text(block("{about-laws} JamesStein", "markdown"))
    figures = root / SUBJECT / "_figures.py"
    imports, _, function = block("def shrinkage(quick").partition("\n\n\n")
    text = figures.read_text().replace(
        "from __future__ import annotations\n", f"from __future__ import annotations\n\n{imports}\n"
    )
    assert TABLE in text
    figures.write_text(text.replace(TABLE, f'{function}\n\n{TABLE}    "shrinkage": shrinkage,\n'))
    run(root, sys.executable, *index_command())
    return root


def index_command() -> list[str]:
    """The command of the page that writes the lists, without the name of the interpreter."""
    program, *arguments = block("limitlab._core.index", "bash").split()
    assert program == "python"
    return arguments


def run(project: Path, *command: str) -> str:
    """Run a command with the copied package and return its output."""
    environment = {**os.environ, "PYTHONPATH": str(project / "src")}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def python(project: Path, code: str) -> str:
    return run(project, sys.executable, "-c", code)


def limitlab(project: Path, *arguments: str) -> str:
    return run(project, sys.executable, "-m", "limitlab", *arguments)


def test_the_package_under_test_is_the_copy(project: Path) -> None:
    assert python(project, "import limitlab; print(limitlab.__file__)").startswith(str(project))


def test_the_law_is_public_and_keeps_the_contract(project: Path) -> None:
    python(project, "from limitlab.testing import check_law; from limitlab.laws import JamesStein; check_law(JamesStein)")
    assert "JamesStein" in limitlab(project, "laws")
    assert "--mean-size" in limitlab(project, "predict", "james-stein", "--help")
    assert "Estimation with quadratic loss" in limitlab(project, "cite", "james-stein")


def test_the_index_command_writes_the_lists_that_the_page_names(project: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    for file in GENERATED:
        assert f"`{file}`" in page
        assert "JamesStein" in (project / file).read_text()
        assert "JamesStein" not in (ROOT / file).read_text()
    assert run(project, sys.executable, *index_command(), "--check") == ""


def test_the_claim_and_the_figure_run(project: Path) -> None:
    assert "X1" in limitlab(project, "show", "james-stein")
    assert "1 pass" in limitlab(project, "verify", "X1")
    limitlab(project, "figure", "shrinkage")
    assert (project / "shrinkage.png").stat().st_size > 10_000


def test_the_page_has_its_head(project: Path) -> None:
    code = "import sys; sys.path.insert(0, 'docs/_ext'); import laws_table as t; print(t.about_laws(['JamesStein'])); "
    text = python(
        project, code + "from limitlab._core.registry import find_law; print(t.theory_page(find_law('james-stein')))"
    )
    for words in ("How well can many means", "Claims: X1", "`shrinkage`", "{cite:t}`james1961estimation`", "shrinkage.md"):
        assert words in text


def test_the_new_files_keep_the_layers_and_the_rules_of_ruff(project: Path) -> None:
    python(project, "from importlinter.cli import lint_imports_command; lint_imports_command(['--no-cache'])")
    files = [SUBJECT / "shrinkage.py", SUBJECT / "_claims" / "shrinkage.py"]
    run(project, sys.executable, "-m", "ruff", "check", "--no-cache", *map(str, files))


def test_the_other_code_of_the_page_runs(project: Path) -> None:
    files = ("class JamesStein(Law)", "@claim(", "def shrinkage(quick")
    rest = [one.text for one in blocks(PAGE, "python") if not any(words in one.text for words in files)]
    assert len(rest) == 3
    code = "from limitlab.laws import JamesStein, Values\nfrom limitlab.laws.regression.shrinkage import Array\n"
    python(project, code + "\n".join(rest))


def test_the_planted_fault_of_the_page_fits_the_law() -> None:
    (fault,) = tomllib.loads(block("[[fault]]", "toml"))["fault"]
    assert block("class JamesStein(Law)").count(fault["old"]) == 1
    assert fault["file"] == "laws/regression/shrinkage.py"


def test_walk_through_shows_every_step() -> None:
    code = "\n".join(one.text for one in blocks(PAGE, "python"))
    for step in (
        "class JamesStein(Law)",
        "check_law(",
        'verdict == "agree"',
        'verdict == "disagree"',
        "@claim(",
        "along(",
    ):
        assert step in code


def test_the_law_of_the_walk_through_is_right(project: Path) -> None:
    """Against the exact finite-size risk: E|y|^-2 by Monte Carlo, independent of the law's own experiment."""
    signal, noise, d = 1.5, 0.7, 400
    rng = np.random.default_rng(5)
    squares = np.sum((signal + noise * rng.standard_normal((4000, d))) ** 2, axis=1)
    exact = noise**2 - noise**4 * (d - 2) ** 2 / d * np.mean(1 / squares)  # Stein's unbiased estimate of the risk
    code = f"from limitlab.laws import JamesStein; print(float(JamesStein(mean_size={signal}, noise={noise}).theory().excess_risk))"
    assert float(python(project, code)) == pytest.approx(exact, rel=4 / d)
