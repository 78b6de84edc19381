"""Code blocks of Markdown pages, so that what the documentation shows is what the tests run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_FENCE = re.compile(r"^(?P<ticks>```+)(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=ticks)[ \t]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text and the line its text starts on."""

    language: str
    text: str
    line: int


def blocks(path: Path, language: str | None = None) -> list[Block]:
    """The fenced blocks of a page in order, or those of one language (the first word after the fence)."""
    page = path.read_text(encoding="utf-8")
    found = [
        Block((match["info"].split() or [""])[0], match["body"], page[: match.start("body")].count("\n") + 1)
        for match in _FENCE.finditer(page)
    ]
    return [block for block in found if language in (None, block.language)]


def pages() -> list[Path]:
    """Every Markdown page of the project that a reader may open (not what a documentation build wrote)."""
    written = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")]
    made = [ROOT / "docs" / name for name in ("_build", "gallery", "api/generated")]
    return sorted(page for page in written if not any(page.is_relative_to(folder) for folder in made))
