"""HTML of a law for notebooks, and the pieces that other results use: tables and coloured verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from limitlab._core.tables import number
from limitlab._core.typeset import mathml, typeset

if TYPE_CHECKING:
    from limitlab._core.declaration import Declaration

COLOURS = {
    **dict.fromkeys(("pass", "agree", "trusted"), "#0b7a4b"),
    **dict.fromkeys(("fail", "disagree", "doubtful"), "#b3261e"),
    **dict.fromkeys(("underpowered", "not implemented", "fair"), "#8a6100"),
    "consistent": "#0b63a5",
}
"""Colours that read on a light and on a dark page."""


def law_html(law: Declaration) -> str:
    """A law: the question it answers, its parameters with their values, its status and regime."""
    kind = type(law)
    rows = [
        (
            f"<code>{escape(name)}</code>",
            mathml(meta.symbol) if meta.symbol else "",
            escape(_brief(getattr(law, name))),
            typeset(meta.words),
        )
        for name, meta in kind.parameters().items()
        if meta.kind in ("physics", "coordinate") or name in law.model_fields_set
    ]
    caveat = f"<p>{typeset(law.caveat())}.</p>" if law.caveat() else ""
    return (
        f"<div><strong>{kind.__name__}</strong>: {typeset(kind.title())}"
        + html_table(("parameter", "symbol", "value", "meaning"), rows)
        + f"<p>{escape(kind.status.capitalize())}; {typeset(kind.regime)}.</p>{caveat}"
        + f"<p>Observables: {', '.join(f'<code>{escape(name)}</code>' for name in law.observed())}</p></div>"
    )


# -- pieces -----------------------------------------------------------------------------------------------------------


def word(verdict: str) -> str:
    """A verdict in its colour.

    >>> word("agree")
    '<span style="color:#0b7a4b;font-weight:600">agree</span>'
    """
    return f'<span style="color:{COLOURS.get(verdict, "inherit")};font-weight:600">{escape(verdict)}</span>'


def html_table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Rows of HTML as a table; an empty head is left out.

    >>> html_table((), [("a", 1)])
    '<table><tbody><tr><td>a</td><td>1</td></tr></tbody></table>'
    """
    titles = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{titles}</tr></thead>' if titles else ''}<tbody>{body}</tbody></table>"


def _brief(value: Any) -> str:
    """A value; of a long list its ends."""
    if isinstance(value, Mapping) or not isinstance(value, (tuple, list)) or len(value) <= 6:
        return number(value)
    return f"{number(value[:2])}, ..., {number(value[-1])} ({len(value)} values)"
