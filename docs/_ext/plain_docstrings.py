"""Docstrings are written for people who read the source; this makes Sphinx show them as written.

The docstring of a module is laid out by hand like a section of a paper: headed paragraphs (setting, limit, result), lists, prose, and
equations in ASCII. The first three become text, the rest is shown verbatim. Formulas within text are set (`limitlab._core.typeset` finds
them); what is left of vertical bars, norms or absolute values, and of stars, products, reStructuredText must not take for markup.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Any

from sphinx.ext import autosummary
from sphinx.util.inspect import TypeAliasForwardRef

from limitlab._core.typeset import Formula, parts

_CODE = re.compile(
    r"(``.*?``|`[^`]*`|\*\*\w[^*]*\*\*|(?<![^ (])\*[A-Za-z][A-Za-z -]*\*(?=[ ,.;:)]|$)|docs/theory/\w+\.md|<[\w ]+>/\S*)"
)  # code, stressed words, pages and files
_MARKUP = re.compile(r"[|*]|_(?=\W|$)")
_INTEGRAL = re.compile(r"\bint_(\w)\^(\w)\b")
_STAR = re.compile(r"(?<!\w)([a-zA-Z])\*(?=[ (){},.;:]|$)")  # the index of a special value
_SET = re.compile(r"[\\^_]")
_INITIAL = re.compile(r"^(\s*)(?=[A-Z]\.(?:\s|$)|\(\w+\)\s)")  # "N." and "(4)" begin no list
_HEADED = re.compile(r"(?:([A-Z][a-z]+)\.  +|(Numerics)\. )")  # two blanks or more: what follows is aligned
_PAGE = re.compile(r"docs/theory/(\w+)\.md")
_COLUMNS = re.compile(r"\S {3,}\S")
_NUMBER = re.compile(r" {4,}(\([\d, .'-]+[a-z]?\)[.,]?)$")  # of an equation, at the end of its line
WIDEST = 80  # characters of a line that fit onto a page at the usual size


def protect(line: str) -> str:
    """A line of prose with its formulas set, and `|`, `*` and trailing underscores taken literally outside of code and stressed words."""
    initial = _INITIAL.match(line)
    start = initial[0] + "\\" if initial else ""
    pieces = _CODE.split(line[initial.end() :] if initial else line)  # code is at the odd places
    pieces[::2] = ["".join(map(shown, parts(spelt(piece)))) for piece in pieces[::2]]
    return start + _PAGE.sub(r":doc:`\1 </theory/\1>`", "".join(pieces))


def spelt(prose: str) -> str:
    """Prose in which integrals, stars and bracketed indices are written as `parts` reads them."""
    braced = re.sub(r"(?<=\w)_\(([^()\s]+)\)", r"_{\1}", prose)
    return _STAR.sub(r"$\1_*$", _INTEGRAL.sub(r"$\\int_{\1}^{\2}$", braced))


def shown(part: str | Formula) -> str:
    r"""A piece of prose, or a formula: one with Greek letters, powers, indices or signs is set, a single letter or `p/n` stays text.

    >>> shown(Formula("p/n")), shown(Formula("n^{-1/2}"))
    ('p/n', '\\ :math:`n^{-1/2}`\\ ')
    """
    if isinstance(part, Formula):
        plain = part.tex.replace(r",\ ", ", ")
        if _SET.search(plain):
            return rf"\ :math:`{'{}' * plain.startswith(('^', '_'))}{part.tex}`\ "
        part = plain
    return _MARKUP.sub(r"\\\g<0>", part)


# -- modules ----------------------------------------------------------------------------------------------------------


def laid_out(lines: list[str]) -> list[str]:
    """A module's docstring: its first paragraph's line, then its blocks as text or verbatim."""
    first, _, rest = "\n".join(lines).strip().partition("\n")
    return [protect(first), "", *blocks(rest.strip("\n").split("\n"))]


def blocks(lines: list[str]) -> Iterator[str]:
    """Runs of lines without a gap, each in its own way; a headed paragraph takes all that is indented below it."""
    rest = list(lines)
    while rest:
        if head := _HEADED.match(rest[0]):
            inside = [" " * head.end() + rest.pop(0)[head.end() :]]
            while rest and (not rest[0].strip() or rest[0].startswith(" " * head.end())):
                inside.append(rest.pop(0))
            yield from (f"**{head[1] or head[2]}**", *("   " + line for line in blocks(_dedented(inside))), "")
        elif not rest[0].strip():
            rest.pop(0)
        else:
            block = [rest.pop(0)]
            while rest and (not _HEADED.match(rest[0]) if rest[0].strip() else block[0][0] == rest[1][:1] == " "):
                block.append(rest.pop(0))
            yield from (*(map(protect, block) if _is_text(block) else _literal(block)), "")


def _dedented(lines: list[str]) -> list[str]:
    return textwrap.dedent("\n".join(lines)).strip("\n").split("\n")


def _is_text(block: list[str]) -> bool:
    """Prose starts at the margin and has no columns; a list has dashes there, and its lines go on below the text."""
    listed = block[0].startswith("- ")
    at_margin = all(line.startswith(("- ", "  ")) if listed else not line.startswith(" ") for line in block)
    return at_margin and not any(_COLUMNS.search(line) or line.startswith(">>>") for line in block)


def _literal(block: list[str]) -> list[str]:
    language = "pycon" if block[0].lstrip().startswith(">>>") else "text"
    lines = [_NUMBER.sub(r"   \1", _PAGE.sub(r"\1", line)) for line in _dedented(block)]
    if len(lines) == 1:  # nothing is aligned
        lines = [re.sub(r" {4,}", "   ", lines[0])]
    options = ["   :class: wide"] if max(map(len, lines)) > WIDEST else []
    return [f".. code-block:: {language}", *options, "", *("   " + line for line in lines)]


# -- what is in them --------------------------------------------------------------------------------------------------


def one_name_each(lines: list[str]) -> list[str]:
    """In sections of attributes every name gets an entry of its own: Sphinx takes `low, high` for a type and a name."""
    result: list[str] = []
    inside = False
    for index, line in enumerate(lines):
        following = lines[index + 1 :]
        if following and re.fullmatch(r"-{3,}", following[0].strip()):
            inside = line.strip() in ("Attributes", "Class attributes")
        names = line.split(", ") if inside and re.fullmatch(r"\w+(, \w+)+", line) else []
        words = []
        for said in following if names else ():
            if said.strip() and not said.startswith(" "):
                break
            words.append(said)
        for name in names[:-1]:
            result += [name, *words]
        result.append(names[-1] if names else line)
    return result


def _names(lines: list[str], index: int) -> bool:
    """Whether a line has the names or the type that the indented text below it explains."""
    below = lines[index + 1] if index + 1 < len(lines) else ""
    return bool(lines[index].strip()) and below.strip() != "" and _indent(below) > _indent(lines[index])


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Rewrite a docstring in place before it is parsed."""
    if what == "module":
        lines[:] = laid_out(lines)
        return
    if what in ("attribute", "data", "property") and lines and ":" in lines[0]:
        lines.insert(0, "\\ ")  # what stands before a colon in the first line would be a type
    in_code = False
    for index, line in enumerate(lines):
        in_code = line.lstrip().startswith(">>>") or (in_code and bool(line.strip()))
        if not in_code and not line.lstrip().startswith((":", "..")) and not _names(lines, index):
            lines[index] = protect(line)
    lines[:] = one_name_each(lines)


def skip(app: Any, what: str, name: str, obj: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out what others add and say nothing about: scikit-learn's requests, fields of named tuples, pydantic's settings."""
    said = str(getattr(obj, "__doc__", "") or "")
    foreign = re.fullmatch(r"set_\w+_request|model_config", name) or said.startswith("Alias for field number")
    return True if foreign else None


def setup(app: Any) -> dict[str, bool]:
    """Run before napoleon reads the sections (priority below its default of 500)."""
    app.connect("autodoc-process-docstring", process, priority=400)
    app.connect("autodoc-skip-member", skip)
    autosummary.WELL_KNOWN_ABBREVIATIONS += ("eq.", "eqs.")  # a summary does not end there
    # an alias within a longer type: its name, where Sphinx would show the object
    TypeAliasForwardRef.__repr__ = lambda alias: alias.name  # type: ignore[method-assign]
    return {"parallel_read_safe": True, "parallel_write_safe": True}
