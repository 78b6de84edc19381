"""Pages that hold the output of a command: the formulas in their tables are set, and a list of criteria gets a line for each."""

from __future__ import annotations

import re
from typing import Any

from laws_table import maths
from limitlab.show.typeset import Formula, parts

CRITERIA = "trust_ledger"
PAGES = ("howto/benchmarks", CRITERIA)
_CODE = re.compile(r"(`[^`]*`)")


def set_row(row: str) -> str:
    r"""A row of a table with its formulas set, but for its name; single letters and plain numbers stay text.

    >>> print(set_row("| C1 | largest gap to tau^2/k at n = 10^6 is 0 | 2 |"))
    | C1 | largest gap to $\tau ^{2}/k$ at $n = 10^{6}$ is 0 | 2 |
    """
    name, *cells = row.split(" | ")
    return " | ".join(
        [name]
        + ["".join(piece if place % 2 else _set(piece) for place, piece in enumerate(_CODE.split(cell))) for cell in cells]
    )


def _set(text: str) -> str:
    shown = []
    for part in parts(text):
        if isinstance(part, Formula):
            tex = re.sub(r"(?<![\d.])1\\cdot (?=10\^)", "", part.tex)
            shown.append(maths(tex) if re.search(r"[\\^_]", tex.replace(r",\ ", "")) else tex.replace(r",\ ", ", "))
        else:
            shown.append(part)
    return "".join(shown)


def source_read(app: Any, name: str, source: list[str]) -> None:
    """Set the tables of a page before it is parsed."""
    if name in PAGES:
        lines = (source[0].replace("; ", "<br>") if name == CRITERIA else source[0]).split("\n")
        source[0] = "\n".join(set_row(line) if line.startswith("| ") else line for line in lines)


def setup(app: Any) -> dict[str, bool]:
    """Read the pages through `source_read`."""
    app.connect("source-read", source_read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
