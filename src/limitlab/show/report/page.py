"""The page itself: inline style, small pieces of HTML, figures as data. Nothing is loaded from elsewhere."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Any

from limitlab.show.tables import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGE_SVG = 600_000
"""Bytes above which a figure is sent as PNG: thousands of points are smaller as pixels."""


@dataclass(frozen=True)
class Section:
    """A part of the page, and whether something in it failed, or could not be decided with so few draws."""

    anchor: str
    title: str
    body: str
    failed: bool = False
    group: str = ""
    undecided: bool = False


PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>$style</style>
</head>
<body>
<main>
$content
</main>
</body>
</html>
""")


def page(title: str, header: str, sections: Sequence[Section]) -> str:
    """The whole page: header, table of contents, sections under the headings of their groups."""
    parts = [header, contents(sections)]
    group = ""
    for section in sections:
        if section.group != group:
            group = section.group
            parts.append(f'<h2 id="{slug(group)}">{escape(group)}</h2>')
        heading = f'<h3 id="{section.anchor}">{escape(section.title)}</h3>' if section.title != group else ""
        parts.append(f"<section>{heading}{section.body}</section>")
    return PAGE.substitute(
        title=escape(title),
        style=resources.files(__package__).joinpath("style.css").read_text(encoding="utf-8"),
        content="\n".join(parts),
    )


def contents(sections: Sequence[Section]) -> str:
    """The table of contents; failed sections are marked."""
    groups: dict[str, list[Section]] = {}
    for section in sections:
        groups.setdefault(section.group, []).append(section)
    parts = []
    for group, members in groups.items():
        links = "".join(f'<li><a href="#{item.anchor}">{escape(item.title)}</a>{_mark(item)}</li>' for item in members)
        lonely = len(members) == 1 and members[0].title == group
        parts.append(
            f'<a href="#{slug(group)}"><strong>{escape(group)}</strong></a>{_mark(members[0]) if lonely else ""}'
            + (f"<ul>{links}</ul>" if not lonely else "<br>")
        )
    return f'<nav aria-label="Contents">{"".join(parts)}</nav>'


def _mark(section: Section) -> str:
    return ' <span class="fail">failed</span>' if section.failed else ""


def slug(text: str) -> str:
    """A name for an anchor.

    >>> slug("Theory against simulation")
    'theory-against-simulation'
    """
    return "-".join("".join(letter if letter.isalnum() else " " for letter in text.lower()).split())


def badge(word: str) -> str:
    """A word in the colour of what it means.

    >>> badge("not implemented")
    '<span class="badge not-implemented">not implemented</span>'
    """
    return f'<span class="badge {slug(word)}">{escape(word)}</span>'


def table(rows: Sequence[Mapping[str, Any]], raw: Iterable[str] = (), cards: bool = False, kind: str = "") -> str:
    """Rows as a table; columns named in `raw` are HTML already. On a phone `cards` turns every row into a card."""
    if not rows:
        return ""
    trusted = set(raw)
    head = "".join(f"<th{_align(value)}>{escape(name)}</th>" for name, value in rows[0].items())
    body = "".join(
        "<tr>" + "".join(_cell(name, value, name in trusted) for name, value in row.items()) + "</tr>" for row in rows
    )
    classes = " ".join(word for word in ("cards" if cards else "", kind) if word)
    style = f' class="{classes}"' if classes else ""
    return f'<div class="scroll"><table{style}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(name: str, value: Any, trusted: bool) -> str:
    text = str(value) if trusted else escape(number(value))
    return f'<td data-label="{escape(name)}"{_align(value)}>{text}</td>'


def _align(value: Any) -> str:
    return ' class="number"' if isinstance(value, (int, float)) and not isinstance(value, bool) else ""


def definitions(pairs: Mapping[str, str]) -> str:
    """A list of terms and (escaped) texts; empty texts are left out."""
    items = "".join(f"<dt>{escape(term)}</dt><dd>{text}</dd>" for term, text in pairs.items() if text)
    return f"<dl>{items}</dl>"


def problem(error: BaseException) -> str:
    """What went wrong in a section, in place of what it would have shown."""
    return f'<p class="problem">This part failed: {escape(f"{type(error).__name__}: {error}")}</p>'


def picture(figure: Figure, caption: str, single: bool = False) -> str:
    """A figure inside the page: SVG, or PNG where that is much smaller."""
    from limitlab.show.figures.save import rendered

    kind, data = "svg+xml", rendered(figure, "svg")
    if len(data) > LARGE_SVG:
        kind, data = "png", rendered(figure, "png", dpi=110)
    source = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    classes = ' class="single"' if single else ""
    return (
        f'<figure{classes}><img loading="lazy" alt="{escape(caption)}" src="{source}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )
