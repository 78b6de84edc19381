"""Files of strangers: looked at before anything reads them. Data are text; nothing is run, evaluated or kept."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from limitlab.applied.forecast.tables import SEPARATORS

ENDINGS = (".csv", ".tsv", ".txt")
MOST_COLUMNS = 2000
LOOKED_AT = 2000
"""Rows in which formulas are looked for."""

_FORMULA = re.compile(r"\s*(=\s*\S|@\s*[A-Za-z]+\(|[+-]\s*([A-Za-z]+[(|!]|[A-Za-z]{1,3}\d))")
"""How a spreadsheet's formula begins. A sign before a number or a word is neither a formula nor refused."""


def checked(name: str, content: bytes, megabytes: float) -> list[str]:
    """The names of the columns of an uploaded table; refused in one sentence if it is not one.

    >>> checked("t.csv", b"a,b\\n1,2\\n", 5)
    ['a', 'b']
    >>> checked("t.csv", b"a,b\\n=1+1,2\\n", 5)
    Traceback (most recent call last):
        ...
    ValueError: the file holds spreadsheet formulas, such as '=1+1' in column 'a': save it with the values instead
    """
    if len(content) > megabytes * 1e6:
        raise ValueError(
            f"the file has {len(content) / 1e6:.1f} MB and the explorer takes {megabytes:g} MB: give fewer rows, or use Python"
        )
    if not name.lower().endswith(ENDINGS):
        raise ValueError("the explorer reads text tables only: the name must end in .csv or .tsv (pickles are never read)")
    if not content.strip():
        raise ValueError("the file is empty")
    text = _text(content)
    rows = _rows(text)
    header = [field.strip() for field in rows[0]]
    if len(rows) < 2 or len(header) < 2:
        raise ValueError(
            "this is not a table: the first line must name at least two columns, and every further line is a row"
        )
    if len(header) > MOST_COLUMNS:
        raise ValueError(
            f"the file has {len(header)} columns and the explorer takes {MOST_COLUMNS}: give fewer, or use Python"
        )
    _refuse_formulas(header, rows)
    return header


def _text(content: bytes) -> str:
    controls = sum(byte < 9 or 13 < byte < 32 for byte in content[:100_000])
    if controls:
        raise ValueError("this is not a text file: save the table as CSV (pickles and spreadsheets are never read)")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _rows(text: str) -> list[list[str]]:
    lines = text.splitlines()[: LOOKED_AT + 1]
    separator = max(SEPARATORS, key=lambda mark: _evenness(lines, mark))
    try:
        return [row for row in csv.reader(io.StringIO("\n".join(lines)), delimiter=separator) if row]
    except csv.Error as error:
        raise ValueError(f"this cannot be read as a table: {error}") from None


def _evenness(lines: Sequence[str], mark: str) -> tuple[bool, int]:
    """Whether a mark splits the first lines alike, and how often the header."""
    counts = {line.count(mark) for line in lines[:20] if line}
    return len(counts) == 1 and max(counts) > 0, lines[0].count(mark)


def _refuse_formulas(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for row in rows:
        for at, cell in enumerate(row):
            if _FORMULA.match(cell):
                column = header[at] if at < len(header) else str(at + 1)
                shown = f"such as {cell.strip()[:40]!r} in column {column[:40]!r}"
                raise ValueError(f"the file holds spreadsheet formulas, {shown}: save it with the values instead")
