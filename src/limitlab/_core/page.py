"""The plain description of a result, with renderers for text, HTML, JSON and Markdown.

A `Page` is the only description of a result: a title, facts, tables, sentences and a verdict. The functions `text`, `html`,
`as_json` and `markdown` render any page; notebooks, the command line and the report use them. The cells of a table are numbers and
texts. The classes `Words`, `Tex`, `Code` and `Verdict` are texts that some renderers treat in a special way.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from limitlab._core.tables import number, plain_symbol


class Words(str):
    """A sentence that may contain formulas, such as `p/n -> gamma`."""

    __slots__ = ()


class Tex(str):
    """A symbol or formula in TeX."""

    __slots__ = ()


class Code(str):
    """A name or a command, as a user types it."""

    __slots__ = ()


class Verdict(str):
    """The word of a verdict, such as "agree"; it is shown in a colour."""

    __slots__ = ()


@dataclass(frozen=True)
class Table:
    """Rows with named cells.

    Attributes
    ----------
    rows
        One mapping per row, from the name of a column to a number or a text. All rows have the same columns.
    title
        The heading of the table.
    digits
        Significant digits by column, if fewer than six. JSON contains every digit.
    units
        Units by column; they follow the name of the column.
    """

    rows: Sequence[Mapping[str, Any]]
    title: str = ""
    digits: Mapping[str, int] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)

    def heads(self) -> list[str]:
        """The names of the columns in words, with their units.

        >>> Table([{"half_width": 0.1, "time": 2.0}], units={"time": "s"}).heads()
        ['half width', 'time [s]']
        """
        names = self.rows[0] if self.rows else ()
        return [name.replace("_", " ") + (f" [{self.units[name]}]" if name in self.units else "") for name in names]

    def rounded(self) -> list[dict[str, Any]]:
        """The rows with every number rounded to the digits of its column.

        >>> Table([{"gap": 0.123456, "law": "Ridge"}], digits={"gap": 2}).rounded()
        [{'gap': 0.12, 'law': 'Ridge'}]
        """
        return [
            {
                name: float(f"{value:.{self.digits[name]}g}") if name in self.digits and isinstance(value, float) else value
                for name, value in row.items()
            }
            for row in self.rows
        ]


@dataclass(frozen=True)
class Page:
    """The plain description of a result.

    Attributes
    ----------
    title
        The name of the described result.
    facts
        Short statements by their heading. Empty facts are omitted.
    tables, sentences
        Tables, and the sentences that follow them.
    verdict
        One word, if the result has a verdict.
    data
        The result as a plain structure, for JSON; by default the parts of the page.
    """

    title: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    tables: Sequence[Table] = ()
    sentences: Sequence[str] = ()
    verdict: str = ""
    data: Any = None

    def __str__(self) -> str:
        return text(self)

    def _repr_html_(self) -> str:
        return html(self)


class Described:
    """A base class for results with a method `page`, which notebooks show."""

    def page(self) -> Page:
        """Return the plain description of the result."""
        raise NotImplementedError(f"{type(self).__name__} does not define page()")

    def _repr_html_(self) -> str:
        return html(self.page())


# -- text and Markdown --------------------------------------------------------------------------------------------------


def text(page: Page) -> str:
    """Render a page as plain text.

    >>> print(text(Page("a law", {"status": "derived"}, [Table([{"x": 1.0, "f": Tex("\\\\lambda")}])], ["It holds."], "agree")))
    a law
    status: derived
    x  f
    1  λ
    agree: It holds.
    """
    lines = [page.title, *(f"{term}: {words}" for term, words in page.facts.items() if words)]
    for table in page.tables:
        cells = [table.heads(), *([cell_text(value) for value in row.values()] for row in table.rounded())]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines += [table.title] if table.title else []
        lines += ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    sentences = list(page.sentences)
    if page.verdict:
        sentences[:1] = [f"{page.verdict}: {sentences[0]}" if sentences else page.verdict]
    return "\n".join(line for line in [*lines, *sentences] if line)


def cell_text(value: Any) -> str:
    r"""Return a cell as plain text. Numbers have six digits, and Greek letters replace their TeX names.

    >>> cell_text(0.1234567), cell_text(Tex(r"\lambda"))
    ('0.123457', 'λ')
    """
    return plain_symbol(value) if isinstance(value, Tex) else number(value)


def markdown(page: Page) -> str:
    """Render a page as Markdown.

    >>> print(markdown(Page("a law", tables=[Table([{"law": Code("Ridge"), "error": 0.123456}], digits={"error": 2})])))
    **a law**
    <BLANKLINE>
    | law | error |
    |---|---|
    | `Ridge` | 0.12 |
    """
    head = " ".join(f"**{words}**" for words in (page.title, page.verdict) if words)
    parts = [head, "\n".join(f"- {term}: {words}" for term, words in page.facts.items() if words)]
    for table in page.tables:
        heads = table.heads()
        lines = [heads, *([_markdown_cell(value) for value in row.values()] for row in table.rounded())]
        rows = [f"| {' | '.join(line)} |" for line in lines]
        parts += [table.title, "\n".join([rows[0], f"|{'---|' * len(heads)}", *rows[1:]])]
    return "\n\n".join(part for part in [*parts, *page.sentences] if part)


def _markdown_cell(value: Any) -> str:
    marks = "$" if isinstance(value, Tex) else "`" if isinstance(value, Code) else "**" if isinstance(value, Verdict) else ""
    inside = value if isinstance(value, Tex) else number(value).replace("|", "\\|").replace("\n", " ")
    return f"{marks}{inside}{marks}" if inside else ""


# -- HTML ---------------------------------------------------------------------------------------------------------------

COLOURS = {
    **dict.fromkeys(("pass", "agree", "trusted"), "#0b7a4b"),
    **dict.fromkeys(("fail", "disagree", "doubtful"), "#b3261e"),
    **dict.fromkeys(("underpowered", "not implemented", "fair"), "#8a6100"),
    "consistent": "#0b63a5",
}
"""The colours of verdicts. They are legible on a light and on a dark page."""


def html(page: Page) -> str:
    """Render a page as HTML, with formulas as MathML.

    >>> html(Page("Ridge", sentences=["a < b"], verdict="agree")).startswith("<div><strong>Ridge</strong> <span")
    True
    """
    verdict = f" {word(page.verdict)}" if page.verdict else ""
    head = f"<strong>{cell_html(page.title)}</strong>{verdict}" if page.title or verdict else ""
    facts = html_table((), [(escape(term), cell_html(words)) for term, words in page.facts.items() if words])
    tables = "".join(
        (f"<p>{escape(table.title)}</p>" if table.title else "")
        + html_table(table.heads(), [[cell_html(value) for value in row.values()] for row in table.rounded()])
        for table in page.tables
    )
    sentences = "".join(f"<p>{cell_html(Words(sentence))}</p>" for sentence in page.sentences)
    return f"<div>{head}{facts}{tables}{sentences}</div>"


def cell_html(value: Any) -> str:
    """Return a cell as HTML, with escaped texts, typeset sentences and symbols, and numbers of six digits.

    >>> cell_html(Code("a<b")), cell_html(0.1234567), cell_html("1 & 2")
    ('<code>a&lt;b</code>', '0.123457', '1 &amp; 2')
    """
    if isinstance(value, (Words, Tex)):
        from limitlab._core.typeset import mathml, typeset

        return typeset(value) if isinstance(value, Words) else mathml(value) if value else ""
    if isinstance(value, Code):
        return f"<code>{escape(value)}</code>" if value else ""
    return word(value) if isinstance(value, Verdict) else escape(number(value))


def word(verdict: str) -> str:
    """Return the word of a verdict as HTML, in its colour.

    >>> word("agree")
    '<span style="color:#0b7a4b;font-weight:600">agree</span>'
    """
    return f'<span style="color:{COLOURS.get(verdict, "inherit")};font-weight:600">{escape(verdict)}</span>'


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows of HTML as a table. An empty head is omitted; without rows the result is empty.

    >>> html_table((), [("a", "1")])
    '<table><tbody><tr><td>a</td><td>1</td></tr></tbody></table>'
    """
    if not rows:
        return ""
    titles = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{titles}</tr></thead>' if titles else ''}<tbody>{body}</tbody></table>"


# -- JSON ---------------------------------------------------------------------------------------------------------------


def as_json(page: Page) -> str:
    """Render a page as strict JSON. The content is its data if there are any, otherwise its parts; infinity becomes "inf".

    >>> as_json(Page(data={"error": math.inf}))
    '{\\n  "error": "inf"\\n}'
    """
    data = page.data
    if data is None:
        tables = [{"title": table.title, "rows": table.rows} for table in page.tables]
        data = {"title": page.title, "verdict": page.verdict, "facts": page.facts, "tables": tables}
        data["sentences"] = page.sentences
    return json.dumps(jsonable(data), indent=2, allow_nan=False)


def jsonable(value: Any) -> Any:
    """Return numbers, arrays, mappings and lists as types of JSON.

    >>> jsonable({"error": np.array([1.0, np.inf]), "passed": np.True_})
    {'error': [1.0, 'inf'], 'passed': True}
    """
    if isinstance(value, (np.ndarray, np.generic)):
        return jsonable(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return str(value)
