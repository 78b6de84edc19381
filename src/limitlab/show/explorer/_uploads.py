"""Checks of uploaded tables. A file is read as text only.

A worker process makes these checks, because the server answers all visitors and must not stop for one file.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from limitlab.applied.forecast.tables import SEPARATORS
from limitlab.errors import Refused

ENDINGS = (".csv", ".tsv", ".txt")
MOST_COLUMNS = 2000

_FORMULA = re.compile(r"\s*(=\s*\S|@\s*[A-Za-z]+\(|[+-]\s*([A-Za-z]+[(|!]|[A-Za-z]{1,3}\d)|[+-][^|]{0,1000}\|[^!]{0,1000}!)")
"""Start of a formula in a spreadsheet. A sign before a number or a word is allowed."""
_CONTROLS = bytes(byte for byte in range(32) if byte < 9 or byte > 13)
"""Bytes that no text contains."""


def checked_table(name: str, content: bytes, megabytes: float) -> list[str]:
    """Return the names of the columns of an uploaded table. Raise `ValueError` if the file is not a table.

    >>> checked_table("t.csv", b"a,b\\n1,2\\n", 5)
    ['a', 'b']
    >>> checked_table("t.csv", b"a,b\\n=1+1,2\\n", 5)
    Traceback (most recent call last):
        ...
    limitlab.errors.Refused: the file contains spreadsheet formulas, such as '=1+1' in column 'a': replace them by their values
    """
    if len(content) > megabytes * 1e6:
        raise Refused(
            f"the file has {len(content) / 1e6:.1f} MB and the limit of the explorer is {megabytes:g} MB: give fewer rows, or use Python"
        )
    if not name.lower().endswith(ENDINGS):
        raise Refused("the explorer reads text tables only: the name must end in .csv or .tsv (pickles are never read)")
    if not content.strip():
        raise Refused("the file is empty")
    text = _text(content)
    rows = _rows(text)
    header = [field.strip() for field in rows[0]]
    if len(rows) < 2 or len(header) < 2:
        raise Refused("this is not a table: the first line must name at least two columns, and every further line is a row")
    if len(header) > MOST_COLUMNS:
        raise Refused(
            f"the file has {len(header)} columns and the limit of the explorer is {MOST_COLUMNS}: give fewer columns, or use Python"
        )
    _refuse_formulas(header, rows)
    _refuse_hidden_formulas(text)
    return header


def _text(content: bytes) -> str:
    if len(content.translate(None, _CONTROLS)) < len(content):
        raise Refused("this is not a text file: save the table as CSV (pickles and spreadsheets are never read)")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _rows(text: str) -> list[list[str]]:
    lines = text.splitlines()
    separator = max(SEPARATORS, key=lambda mark: _evenness(lines, mark))
    try:
        return [row for row in csv.reader(io.StringIO("\n".join(lines)), delimiter=separator) if row]
    except csv.Error as error:
        raise Refused(f"this cannot be read as a table: {error}") from None


def _evenness(lines: Sequence[str], mark: str) -> tuple[bool, int]:
    """Return whether a mark splits the first lines into equally many fields, and its number in the header."""
    counts = {line.count(mark) for line in lines[:20] if line}
    return len(counts) == 1 and max(counts) > 0, lines[0].count(mark)


def _refuse_formulas(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for row in rows:
        for at, cell in enumerate(row):
            if _FORMULA.match(cell):
                column = header[at] if at < len(header) else str(at + 1)
                shown = f"such as {cell.strip()[:40]!r} in column {column[:40]!r}"
                raise Refused(f"the file contains spreadsheet formulas, {shown}: replace them by their values")


def _refuse_hidden_formulas(text: str) -> None:
    """Refuse formulas that are cells only for a program that ignores quotation marks."""
    lines = text.splitlines()
    mark = re.escape(max(SEPARATORS, key=lambda each: _evenness(lines, each)))
    hidden = re.search(rf"(?:^|{mark}|[\r\n])[\s\"]*(=\s*\S+|@\s*[A-Za-z]+\()", text)
    if hidden is not None:
        raise Refused(f"the file contains spreadsheet formulas, such as {hidden[1][:40]!r}: replace them by their values")
