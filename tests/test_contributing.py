"""The walk-through of CONTRIBUTING.md is real: its code is put where the page says, and everything finds it without a list being edited."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from markdown_blocks import ROOT, blocks

PAGE = ROOT / "CONTRIBUTING.md"
CLAIM_IMPORTS = "import numpy as np\n\nfrom limitlab.laws.regression.shrinkage import JamesStein\n"


def block(containing: str, language: str = "python") -> str:
    """The one block of the page with these words."""
    (found,) = (one.text for one in blocks(PAGE, language) if containing in one.text)
    return found


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the four files of the walk-through added, and nothing else changed."""
    root = tmp_path_factory.mktemp("with_a_new_law")
    shutil.copytree(ROOT / "src" / "limitlab", root / "limitlab", ignore=shutil.ignore_patterns("__pycache__", "*.nb?"))
    shutil.copytree(ROOT / "docs", root / "docs", ignore=shutil.ignore_patterns("_build", "gallery", "generated"))
    law = block("class JamesStein(Law)")
    (root / "limitlab" / "laws" / "regression" / "shrinkage.py").write_text(law)
    claim = block("@claim(").replace("assert shrinking_wins.run(quick=True).passed\n", "")
    head, rest = claim.split("\n\n", 1)
    (root / "limitlab" / "ledger" / "shrinkage.py").write_text(
        f'"""Claims about shrinkage."""\n\nfrom __future__ import annotations\n\n{CLAIM_IMPORTS}{head}\n\n{rest}'
    )
    figure = block("def shrinkage(quick")
    (root / "limitlab" / "show" / "figures" / "shrinkage.py").write_text(
        f'"""Figures of shrinkage."""\n\nfrom __future__ import annotations\n\n{CLAIM_IMPORTS}{figure}'
    )
    (root / "docs" / "theory" / "shrinkage.md").write_text(block("{about-laws} JamesStein", "markdown"))
    return root


def run(package: Path, *command: str) -> str:
    """A command with the extended package; its output."""
    done = subprocess.run(command, cwd=package, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def python(package: Path, code: str) -> str:
    return run(package, sys.executable, "-c", code)


def test_the_law_is_exported_and_keeps_the_contract(package: Path) -> None:
    python(package, "from limitlab.testing import check_law; from limitlab.laws import JamesStein; check_law(JamesStein)")
    assert "JamesStein" in run(package, sys.executable, "-m", "limitlab", "laws")
    assert "--mean-size" in run(package, sys.executable, "-m", "limitlab", "predict", "james-stein", "--help")
    assert "Estimation with quadratic loss" in run(package, sys.executable, "-m", "limitlab", "cite", "james-stein")


def test_the_claim_and_the_figure_are_found(package: Path) -> None:
    assert "X1" in run(package, sys.executable, "-m", "limitlab", "show", "james-stein")
    assert "1 pass" in run(package, sys.executable, "-m", "limitlab", "verify", "X1")
    run(package, sys.executable, "-m", "limitlab", "figure", "shrinkage")
    assert (package / "shrinkage.png").stat().st_size > 10_000


def test_the_page_has_its_head(package: Path) -> None:
    code = "import sys; sys.path.insert(0, 'docs/_ext'); import laws_table as t; print(t.about_laws(['JamesStein'])); "
    text = python(
        package, code + "from limitlab._core.registry import find_law; print(t.theory_page(find_law('james-stein')))"
    )
    for words in ("How well can many means", "Claims: X1", "`shrinkage`", "{cite:t}`james1961estimation`", "shrinkage.md"):
        assert words in text


def test_the_rest_of_the_page_runs(package: Path) -> None:
    rest = [
        one.text for one in blocks(PAGE, "python") if "class JamesStein(Law)" not in one.text and "@claim(" not in one.text
    ]
    code = "import numpy as np\nfrom limitlab.laws import *\nfrom limitlab.laws.regression.shrinkage import *\n"
    code += "from limitlab.laws.regression.shrinkage import Array\nfrom limitlab.laws import Values\n" + "\n".join(rest)
    python(package, code)


def test_walk_through_shows_every_step() -> None:
    code = "\n".join(one.text for one in blocks(PAGE, "python"))
    for step in ("class JamesStein(Law)", "check_law(", 'verdict == "agree"', 'verdict == "disagree"', "@claim(", "FIGURES"):
        assert step in code


def test_the_law_of_the_walk_through_is_right(package: Path) -> None:
    """Against the exact finite-size risk: E|y|^-2 by Monte Carlo, independent of the law's own experiment."""
    signal, noise, d = 1.5, 0.7, 400
    rng = np.random.default_rng(5)
    squares = np.sum((signal + noise * rng.standard_normal((4000, d))) ** 2, axis=1)
    exact = noise**2 - noise**4 * (d - 2) ** 2 / d * np.mean(1 / squares)  # Stein's unbiased estimate of the risk
    code = f"from limitlab.laws import JamesStein; print(float(JamesStein(mean_size={signal}, noise={noise}).theory().excess_risk))"
    assert float(python(package, code)) == pytest.approx(exact, rel=4 / d)
