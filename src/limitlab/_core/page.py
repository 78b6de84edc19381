"""The plain description of a result, with renderers for text, HTML, JSON and Markdown, and rows of numbers from datasets.

A `Page` is the only description of a result: a title, facts, tables, sentences and a verdict. The functions `text`, `html`,
`as_json` and `markdown` render any page; notebooks, the command line and the report use them. The cells of a table are numbers and
texts. The classes `Words`, `Tex`, `Code` and `Verdict` are texts that some renderers treat in a special way.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from limitlab._core.typeset import GREEK, mathml, typeset

if TYPE_CHECKING:
    import xarray as xr


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
    **dict.fromkeys(("pass", "agree", "trusted", "full"), "#0b7a4b"),
    **dict.fromkeys(("fail", "disagree", "doubtful", "missing"), "#b3261e"),
    **dict.fromkeys(("underpowered", "not implemented", "fair", "part"), "#8a6100"),
    **dict.fromkeys(("consistent", "open"), "#0b63a5"),
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


# -- numbers as text, and rows of numbers from a dataset --------------------------------------------------------------


def number(value: Any) -> str:
    """Return a number as text with six digits; whole numbers have no decimal point.

    >>> number(0.9365291), number(3), number(float("inf")), number(True), number("relu")
    ('0.936529', '3', 'inf', 'yes', 'relu')
    """
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return f"{value + 0.0:.6g}"  # adding 0 turns -0 into 0
    if isinstance(value, (tuple, list, np.ndarray)):
        return ", ".join(number(item) for item in value)
    return str(value)


def plain_symbol(symbol: str) -> str:
    r"""Return a LaTeX symbol as text for a terminal. Greek letters replace their names, and no other command of LaTeX remains.

    >>> plain_symbol(r"\lambda"), plain_symbol("p/n"), plain_symbol(r"\gamma_0")
    ('λ', 'p/n', 'γ_0')
    >>> plain_symbol(r"E_{\mathrm{test}}"), plain_symbol(r"\sqrt{d}\,\|w\|"), plain_symbol(r"\ell^{-2}")
    ('E_test', '√(d) |w|', 'ell^-2')
    """
    text = re.sub(r"\\sqrt\{([^{}]*)\}", r"√(\1)", symbol)
    text = re.sub(rf"\\(?:{'|'.join(_MARKS)})(?![A-Za-z]) *", "", text)
    text = re.sub(r"\\([A-Za-z]+)", lambda match: GREEK.get(match[1], match[1]), text)
    return re.sub(r"\\([,;: !])", " ", text).replace("\\", "").replace("{", "").replace("}", "")


_MARKS = (
    "mathrm",
    "mathbf",
    "mathcal",
    "mathbb",
    "mathsf",
    "text",
    "rm",
    "bf",
    "operatorname",
    "hat",
    "bar",
    "tilde",
    "left",
    "right",
)
"""Commands of LaTeX that change the form of a letter or a bracket. They are left out of plain text."""


def rows_of(result: xr.Dataset, observables: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Return one row per point of a result's grid, with its coordinates and then its observables.

    >>> import xarray as xr
    >>> rows_of(xr.Dataset({"test_error": ("ratio", [1.0, 2.0])}, {"ratio": [0.1, 0.2]}))
    [{'ratio': 0.1, 'test_error': 1.0}, {'ratio': 0.2, 'test_error': 2.0}]
    """
    names = list(observables) if observables is not None else table_names(result)
    if not names:
        return []
    dims = list(dict.fromkeys(dim for name in names for dim in result[name].dims))
    sizes = [result.sizes[dim] for dim in dims]
    columns = {name: np.broadcast_to(_aligned(result[name], dims), sizes) for name in names}
    labels = {dim: result[dim].values if dim in result.coords else np.arange(result.sizes[dim]) for dim in dims}
    return [
        {
            **{str(dim): labels[dim][i].item() for dim, i in zip(dims, index, strict=True)},
            **{str(name): columns[name][index].item() for name in names},
        }
        for index in np.ndindex(*sizes)
    ]


def describe_result(result: xr.Dataset) -> dict[str, Any]:
    """Return the attributes, coordinates, observables and dimensions of a result as plain data for JSON."""
    attrs = dict(result.attrs)
    if isinstance(attrs.get("parameters"), str):
        attrs["parameters"] = json.loads(attrs["parameters"])
    return {
        **attrs,
        "coordinates": {name: array.values for name, array in result.coords.items()},
        "observables": {name: array.values for name, array in result.data_vars.items()},
        "dims": {name: list(array.dims) for name, array in result.data_vars.items()},
    }


def long_rows(result: xr.Dataset, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return one row per number, with its coordinates, its name and its value.

    A coordinate is blank if the observable does not depend on it.

    >>> import xarray as xr
    >>> long_rows(xr.Dataset({"mass": 1.0, "cdf": ("x", [0.0, 0.5])}, {"x": [1.0, 2.0]}), ["mass", "cdf"])[:2]
    [{'x': '', 'observable': 'mass', 'value': 1.0}, {'x': 1.0, 'observable': 'cdf', 'value': 0.0}]
    """
    dims = list(dict.fromkeys(str(dim) for name in names for dim in result[name].dims))
    rows = []
    for name in names:
        for row in rows_of(result, [name]):
            place = {dim: row.get(dim, "") for dim in dims}
            rows.append({**place, "observable": name, "value": row[name]})
    return rows


def table_names(result: xr.Dataset) -> list[str]:
    """Return the names of the variables that share the result's grid.

    Raw samples with a dimension of their own do not fit into a table.
    """
    names = [str(name) for name in result.data_vars]
    return [name for name in names if set(result[name].dims) <= set(map(str, result.coords))]


def _aligned(array: xr.DataArray, dims: Sequence[Any]) -> Any:
    """Return the values of an array with its dimensions in the order of `dims`; missing dimensions have length one."""
    ordered = array.transpose(*[dim for dim in dims if dim in array.dims])
    return ordered.values.reshape([array.sizes.get(dim, 1) for dim in dims])
