"""Pages that hold the output of a command: the formulas in their tables are set, and a list of criteria gets a line for each."""

from __future__ import annotations

import re
from typing import Any

from laws_table import maths
from limitlab._core.typeset import Formula, parts
from plain_docstrings import spelt

PAGES = ("howto/benchmarks", "trust_ledger")
_CODE = re.compile(r"(`[^`]*`)")


def set_row(row: str, between: str = "; ") -> str:
    r"""A row of a table with its formulas set, but for its name, and `between` in place of semicolons.

    Single letters and plain numbers stay text.

    >>> print(set_row("| C1 | largest gap to tau^2/k at n = 10^6; (1 - gamma)^2 | 2 |", "<br>"))
    | C1 | largest gap to $\tau ^{2}/k$ at $n = 10^{6}$<br>$(1 - \gamma )^{2}$ | 2 |
    """
    name, *cells = row.split(" | ")
    return " | ".join([name, *(between.join(map(_set, cell.split("; "))) for cell in cells)])


def _set(text: str) -> str:
    pieces = _CODE.split(text)  # code is at the odd places
    pieces[::2] = ["".join(map(_shown, parts(spelt(piece)))) for piece in pieces[::2]]
    return "".join(pieces)


def _shown(part: str | Formula) -> str:
    if isinstance(part, str):
        return part
    tex = re.sub(r"(?<![\d.])1\\cdot (?=10\^)", "", part.tex)  # 1e-6
    plain = tex.replace(r",\ ", ", ")
    return maths(tex) if re.search(r"[\\^_]", plain) else plain


def source_read(app: Any, name: str, source: list[str]) -> None:
    """Set the tables of a page before it is parsed; in the ledger every criterion gets a line."""
    if name in PAGES:
        between = "<br>" if name == "trust_ledger" else "; "
        lines = source[0].split("\n")
        source[0] = "\n".join(set_row(line, between) if line.startswith("| ") else line for line in lines)


def setup(app: Any) -> dict[str, bool]:
    """Read the pages through `source_read`."""
    app.connect("source-read", source_read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
