"""Rules of the prose that a program can check: summaries of docstrings, and words that the rules of CONTRIBUTING.md exclude."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from markdown_blocks import ROOT

SOURCE = ROOT / "src" / "limitlab"
EXCLUDED = re.compile(
    r"\b(riddles?|shelf|shelves|nobody|somebody|speaks?|forgets?|let go|at hand|do(es)? not mind|the house|wherever it stands)\b",
    re.IGNORECASE,
)
"""Words and phrases that give a literal fact a second, figurative wording."""
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.py")]
    if "_build" not in path.parts and path.name not in ("CHANGELOG.md", "changelog.md")
)
"""The pages and scripts that a person reads."""


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The line and the text of every docstring of a module, those of constants and fields included."""
    for node in ast.walk(tree):
        for statement in getattr(node, "body", []) if isinstance(getattr(node, "body", None), list) else []:
            value = getattr(statement, "value", None)
            if isinstance(statement, ast.Expr) and isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield statement.lineno, value.value


def summaries(path: Path) -> Iterator[tuple[int, str]]:
    """The line and the first sentence of every docstring of a file."""
    for line, text in docstrings(ast.parse(path.read_text(encoding="utf-8"))):
        yield line, text.strip().split("\n\n")[0]


@pytest.mark.parametrize(
    "package", sorted(path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__")
)
def test_the_first_line_of_a_docstring_is_a_sentence_without_a_colon(package: str) -> None:
    bad = [
        f"{path.relative_to(SOURCE)}:{line}: {first.splitlines()[0]}"
        for path in sorted((SOURCE / package).rglob("*.py"))
        for line, first in summaries(path)
        if re.search(r"(?<![\w`]):\s|\w:\s(?!.*[`>])", first.splitlines()[0])
        and not first.splitlines()[0].rstrip().endswith(":")
    ]
    assert not bad, "\n" + "\n".join(bad)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pages_use_no_excluded_word(path: Path) -> None:
    bad = [
        f"{n}: {line.strip()}"
        for n, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if EXCLUDED.search(line)
    ]
    assert not bad, "\n" + "\n".join(bad)


def test_sources_use_no_excluded_word() -> None:
    bad = [
        f"{path.relative_to(SOURCE)}:{n}: {line.strip()}"
        for path in sorted(SOURCE.rglob("*.py"))
        for n, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if EXCLUDED.search(line)
    ]
    assert not bad, "\n" + "\n".join(bad)
