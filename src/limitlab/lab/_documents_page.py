"""The page `docs/documents.md`, which lists the items of the lecture notes. `python -m limitlab._core.index` writes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from limitlab._core.registry import find_law
from limitlab._core.typeset import in_markdown
from limitlab.lab.documents import STATUSES, Document, Item, ItemList, assembled, chapter_name, in_words

HEAD = """# The documents, item by item

Which parts of the lecture notes can you run? limitlab implements five sets of lecture notes and slides. This page lists their
theorems, equations, figures, experiments and open questions. For each of them it names the
[claim](glossary.md#comparisons-and-claims) and the figure that cover it, and the parts that are not implemented.

For example, item J-6 is theorem 5.3 of the *Notes*. Its row names the claim J4, which measures the rate of the theorem, and the law
`SingularKernelSmoother`. These commands print the row, the whole chapter, and the measured numbers of the claim:

```bash
limitlab notes J-6
limitlab notes 5
limitlab verify J4
```

The numbers of the items are ours. A statement begins with a quotation, by which you find the place in the document. If the document
has a misprint, the sentence gives the corrected statement, and the [errata](errata.md) give the reason.

Claims and figures declare the items that they cover. The status of an item follows from these declarations:

| status | meaning |
|---|---|
| full | Claims or figures cover the whole item. |
| part | Claims or figures cover a part of the item. The row names the part that is not executed, or the nearest form that is executed. |
| missing | No claim or figure covers the item. |
| open | The document leaves the question open. An observation may exist. |

The column of laws lists the laws of the claims. A law links to its theory page, a claim to the page with the
[measured numbers](trust_ledger.md) of all claims, and a figure to its picture. A wrong status is an error like a wrong number, and
reports of such errors are welcome.
"""

COLUMNS = ["item", "statement", "status", "law", "claim", "figure"]


def page(index: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page as Markdown, from the content of the index of laws, claims and figures."""
    claims = {name: tuple(entry["items"]) for name, entry in index["claims"].items()}
    laws = {name: tuple(entry["laws"]) for name, entry in index["claims"].items()}
    listed = assembled(claims, laws, {name: tuple(entry["items"]) for name, entry in index["figures"].items()})
    head = ["document", "chapters", "items", *STATUSES]
    rows = [[f"[{each.name}](#{anchor(_heading(each))})", _links(each), *_numbers(each.items)] for each in listed]
    rows.append(["all", "", *_numbers(listed.items)])
    parts = [HEAD, table(head, rows, numbers=5)]
    for document in listed:
        parts += [f"## {_heading(document)}", f"{document.author}, {document.form}."]
        for chapter in document.chapters:
            parts += [f"### {chapter.title}", f"Items: {in_words(chapter.items)}.", table(COLUMNS, map(_row, chapter.items))]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def table(head: list[str], rows: Iterable[list[str]], numbers: int = 0) -> str:
    """Return a table of Markdown, whose last `numbers` columns are aligned to the right."""
    rule = ["---"] * (len(head) - numbers) + ["---:"] * numbers
    return "\n".join([f"| {' | '.join(head)} |", f"|{'|'.join(rule)}|", *(f"| {' | '.join(row)} |" for row in rows)])


def anchor(heading: str) -> str:
    """Return the anchor of a heading, as GitHub and the documentation make it.

    >>> anchor("Notes, chapter 13: Spectral alignment")
    'notes-chapter-13-spectral-alignment'
    """
    return "".join(letter for letter in heading.lower() if letter.isalnum() or letter in "-_ ").replace(" ", "-")


def _heading(document: Document) -> str:
    return f"{document.name}: {document.title}"


def _links(document: Document) -> str:
    """Return links to the chapters of a document. The text of a link is the number of the chapter, or its title."""
    linked = [f"[{_short(chapter)}](#{anchor(chapter.title)})" for chapter in document.chapters]
    return ", ".join(linked)


def _short(chapter: ItemList) -> str:
    return str(chapter.number or chapter_name(chapter))


def _numbers(items: Iterable[Item]) -> list[str]:
    statuses = [item.status for item in items]
    return [str(len(statuses)), *(str(statuses.count(status)) for status in STATUSES)]


def _row(item: Item) -> list[str]:
    """Return the cells of an item, with links to the theory pages of its laws, to its claims and to its figures."""
    statement = f"“{_quoted(item.phrase)}” ({item.kind}). {in_markdown(item.says)}"
    if item.missing:
        statement += f" *Not executed:* {in_markdown(item.missing)}"
    return [
        item.id,
        statement,
        item.status,
        ", ".join(f"[`{law}`](theory/{find_law(law).page}.md)" for law in item.laws),
        ", ".join(f"[{claim}](trust_ledger.md)" for claim in item.claims),
        ", ".join(f"[{figure}](figures/{figure}.png)" for figure in item.figures),
    ]


def _quoted(phrase: str) -> str:
    """Return a quotation with the characters escaped that have a meaning in a table of Markdown.

    >>> print(_quoted("Theorem 4.7 (Soudry et al. [2018])"))
    Theorem 4.7 (Soudry et al. \\[2018\\])
    """
    return "".join("\\" + letter if letter in "[]|*_`$<" else letter for letter in phrase)
