"""The equations of a law, as its page in docs/theory numbers them, and the setting that its file states."""

from __future__ import annotations

import functools
import html
import inspect
import re
import sys
from importlib.resources import files
from pathlib import Path

from limitlab._core.law import Law
from limitlab._core.registry import package_of
from limitlab._core.typeset import typeset

MOST = 12
"""Equations of a page that are shown; the page has the rest."""

_DISPLAY = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
_TAG = re.compile(r"\\tag\{([^}]*)\}")
_GAP = re.compile(r"\\qquad")
_PART = re.compile(r"^(Setting|Limit|Status)\.\s+(.*?)(?=^[A-Z][a-z]+\.\s|\Z)", re.DOTALL | re.MULTILINE)


def equations(law: type[Law]) -> list[tuple[str, str]]:
    """Numbers and LaTeX of the numbered equations of a law's page; none where the page is not at hand.

    >>> from limitlab.laws import Ridge
    >>> numbers = [number for number, _ in equations(Ridge)]
    >>> numbers[:3]
    ['1', '2', '3']
    """
    found = []
    for block in _DISPLAY.findall(page(law)):
        tag = _TAG.search(block)
        if tag is not None:
            found.append((tag[1], " ".join(_TAG.sub("", block).split())))
    return found


def page(law: type[Law]) -> str:
    """The text of a law's page in docs/theory: shipped with the package, or beside the source."""
    package = package_of(law)
    own = package.file("theory", f"{law.page}.md") if package is not None and law.page else None
    if own is not None:
        return own.read_text(encoding="utf-8")
    return _read(f"{law.page}.md") if law.page else ""


@functools.cache
def _read(name: str) -> str:
    package = Path(str(files("limitlab")))
    for folder in (package / "theory_pages", package.parents[1] / "docs" / "theory"):
        if (folder / name).is_file():
            return (folder / name).read_text(encoding="utf-8")
    return ""


def setting(law: type[Law]) -> dict[str, str]:
    """Setting, limit and status of a law in its own words.

    >>> from limitlab.laws import Ridge
    >>> setting(Ridge)["Limit"]
    'n, p -> infinity with p/n -> gamma (`ratio`).'
    """
    return {title: " ".join(text.split()) for title, text in _PART.findall(_docstring(law))}


def equations_html(law: type[Law]) -> str:
    """Setting and equations as HTML, with the equations in dollar signs for the page's typesetting."""
    words = [f"<p><b>{title}.</b> {typeset(text)}</p>" for title, text in setting(law).items()]
    shown = equations(law)
    lines = [
        f'<div class="equation"><div class="lines">{_in_lines(body)}</div><span class="number">({number})</span></div>'
        for number, body in shown[:MOST]
    ]
    if not shown:  # the file's own text says them, in plain letters
        lines = [f"<pre>{html.escape(inspect.cleandoc(_docstring(law)))}</pre>"]
    elif len(shown) > MOST:
        lines.append(f"<p>and {len(shown) - MOST} more on the law's page of the documentation.</p>")
    return "\n".join([*words, *lines])


def _in_lines(body: str) -> str:
    r"""An equation whose parts, where it has several on one line, stand below each other.

    >>> _in_lines(r"a = b,\qquad c = d")
    '<div>$$a = b,$$</div><div>$$c = d$$</div>'
    """
    parts = [body] if "\\begin" in body or "\\left" in body else [part.strip() for part in _GAP.split(body)]
    return "".join(f"<div>$${_as_html(part)}$$</div>" for part in parts if part)


def _as_html(tex: str) -> str:
    """LaTeX that an HTML page can hold as it is."""
    return tex.replace("<", "\\lt ").replace(">", "\\gt ")


def _docstring(law: type[Law]) -> str:
    return getattr(sys.modules.get(law.__module__), "__doc__", None) or inspect.getdoc(law) or ""
