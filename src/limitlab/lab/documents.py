"""The lecture notes that limitlab implements, item by item.

The file `documents.toml` lists five documents, their chapters and their items. An item is a statement, figure, experiment or question that
can be executed. Claims and figures name the items that they cover, and the status of an item follows from them.
"""

from __future__ import annotations

import functools
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

from limitlab._core.arguments import explained
from limitlab._core.page import Code, Described, Page, Table, Verdict, Words
from limitlab.errors import Refused, did_you_mean
from limitlab.lab.claims import items_of_claims, laws_of_claims
from limitlab.lab.figures import items_of_figures

__all__ = ["Document", "Documents", "Item", "ItemList", "documents"]

ItemStatus = Literal["full", "part", "missing", "open"]
STATUSES: tuple[ItemStatus, ...] = ("full", "part", "missing", "open")
KINDS = ("theorem", "proposition", "equation", "figure", "experiment", "conjecture", "open question", "remark")

Names = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Item(Described):
    """A statement, figure, experiment or question of a document.

    Attributes
    ----------
    id
        The key of the document and a number, such as "J-48".
    document, chapter
        The short name of the document, and its chapter.
    kind
        Theorem, proposition, equation, figure, experiment, conjecture, open question or remark.
    phrase
        A short quotation by which a reader finds the place in the document.
    says
        The statement in one sentence, corrected if the document has a misprint.
    missing
        The part that no claim or figure executes, or an empty text.
    is_open
        Whether the document leaves the question open.
    laws, claims, figures
        Ids of the claims and figures that name the item, and of the laws of these claims.
    """

    id: str
    document: str
    chapter: str
    kind: str
    phrase: str
    says: str
    missing: str = ""
    is_open: bool = False
    laws: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()

    @property
    def status(self) -> ItemStatus:
        """The status of the item.

        "open" is the status of an open question, with or without an observation. "full" means that claims or figures cover the whole item.
        "part" means that they cover a part of it, and "missing" that no claim or figure names it.
        """
        if self.is_open:
            return "open"
        if not self.claims and not self.figures:
            return "missing"
        return "part" if self.missing else "full"

    def page(self) -> Page:
        """Return the plain description, with the place, the statement, its status, and the laws, claims and figures."""
        facts = {
            "place": f"{self.document}, {self.chapter}, “{self.phrase}”",
            "kind": self.kind,
            "laws": ", ".join(self.laws),
            "claims": ", ".join(self.claims),
            "figures": ", ".join(self.figures),
        }
        sentences = [self.missing or "Claims and figures cover the whole item."]
        return Page(Words(f"{self.id}: {self.says}"), facts, (), sentences, self.status, self.data())

    def data(self) -> dict[str, Any]:
        """Return the item as a plain structure, for JSON."""
        return {
            "id": self.id,
            "document": self.document,
            "chapter": self.chapter,
            "kind": self.kind,
            "phrase": self.phrase,
            "says": self.says,
            "status": self.status,
            "missing": self.missing,
            "laws": list(self.laws),
            "claims": list(self.claims),
            "figures": list(self.figures),
        }


@dataclass(frozen=True)
class ItemList(Described):
    """Items with a title, such as a chapter of a document.

    Attributes
    ----------
    title
        The title of the list. For a chapter it contains the document and the chapter.
    items
        The items, in the order of the documents.
    number
        The number of the chapter, if the document has numbers.
    """

    title: str
    items: tuple[Item, ...]
    number: int | None = None

    @property
    def counts(self) -> dict[str, int]:
        """The number of items by status."""
        return counted(self.items)

    def table(self, title: str = "") -> Table:
        """Return one row per item, with its place, its statement, its status, and its laws, claims and figures."""
        rows = [
            {
                "item": item.id,
                "place": item.phrase,
                "says": Words(item.says),
                "status": Verdict(item.status),
                "law": Code(", ".join(item.laws)),
                "claim": ", ".join(item.claims),
                "figure": Code(", ".join(item.figures)),
            }
            for item in self.items
        ]
        return Table(rows, title)

    def page(self) -> Page:
        """Return the plain description, with the counts, a table of the items, and the parts that are not executed."""
        return Page(self.title, {"items": in_words(self.items)}, [self.table()], missing_parts(self.items), data=self.data())

    def data(self) -> dict[str, Any]:
        """Return the list as a plain structure, for JSON."""
        return {
            "title": self.title,
            "number": self.number,
            "counts": self.counts,
            "items": [item.data() for item in self.items],
        }


@dataclass(frozen=True)
class Document(Described):
    """A set of lecture notes or slides.

    Attributes
    ----------
    key
        The letter with which the ids of its items begin.
    name
        The short name, as in the errata.
    title, author, form
        The title, the author, and the kind of the document with its date.
    chapters
        The chapters or sections with their items.
    """

    key: str
    name: str
    title: str
    author: str
    form: str
    chapters: tuple[ItemList, ...]

    @property
    def items(self) -> tuple[Item, ...]:
        """All items of the document."""
        return tuple(item for chapter in self.chapters for item in chapter.items)

    @property
    def counts(self) -> dict[str, int]:
        """The number of items by status."""
        return counted(self.items)

    def page(self) -> Page:
        """Return the plain description, with a table per chapter, and the parts that are not executed."""
        facts = {"author": self.author, "form": self.form, "items": in_words(self.items)}
        tables = [chapter.table(chapter.title) for chapter in self.chapters]
        return Page(f"{self.name}: {self.title}", facts, tables, missing_parts(self.items), data=self.data())

    def data(self) -> dict[str, Any]:
        """Return the document as a plain structure, for JSON."""
        return {
            "key": self.key,
            "name": self.name,
            "title": self.title,
            "author": self.author,
            "form": self.form,
            "counts": self.counts,
            "chapters": [chapter.data() for chapter in self.chapters],
        }


@dataclass(frozen=True)
class Documents(Described):
    """All documents.

    Attributes
    ----------
    documents
        The documents.
    """

    documents: tuple[Document, ...]

    def __iter__(self) -> Iterator[Document]:
        """Return the documents one after another."""
        return iter(self.documents)

    @property
    def items(self) -> tuple[Item, ...]:
        """All items of all documents."""
        return tuple(item for document in self.documents for item in document.items)

    @property
    def chapters(self) -> tuple[ItemList, ...]:
        """All chapters of all documents."""
        return tuple(chapter for document in self.documents for chapter in document.chapters)

    @property
    def counts(self) -> dict[str, int]:
        """The number of items by status."""
        return counted(self.items)

    def find(self, words: str) -> Document | ItemList | Item:
        """Return the document, chapter or item that the words name, or the items that match them.

        Parameters
        ----------
        words
            The key, name or title of a document, the number of a chapter, a part of the title of one chapter, the id of an item, the id
            of a claim or figure, a status, a kind, or a text that occurs in the items.

        Examples
        --------
        >>> documents().find("13").title
        'Notes, chapter 13: Spectral alignment'
        >>> documents().find("J-48").kind
        'theorem'
        >>> {item.status for item in documents().find("open").items}
        {'open'}
        """
        text = " ".join(words.split()).lower()
        if not text:
            raise Refused("the words are missing: write a chapter such as 13, a document such as J, or an item such as J-48")
        for document in self.documents:
            names = [document.name.lower(), document.title.lower()]
            if text in (document.key.lower(), *names) or (len(text) > 4 and any(name.startswith(text) for name in names)):
                return document
        items = {item.id.lower(): item for item in self.items}
        if text in items:
            return items[text]
        chapters = [chapter for chapter in self.chapters if str(chapter.number) == text.removeprefix("chapter ")]
        chapters = chapters or [chapter for chapter in self.chapters if text in chapter_name(chapter).lower()]
        if len(chapters) == 1:
            return chapters[0]
        named = [
            item for item in self.items if text in (item.status, item.kind, *_lower(item.claims), *_lower(item.figures))
        ]
        matches = named or [item for item in self.items if text in " ".join([item.phrase, item.says, *item.laws]).lower()]
        if matches:
            return ItemList(f"Items for {words!r}", tuple(matches))
        known = [*(document.name for document in self.documents), *(item.id for item in self.items)]
        known += [chapter_name(chapter) for chapter in self.chapters]
        known += sorted({claim for item in self.items for claim in item.claims})
        raise Refused(f"no chapter or item of the documents matches {words!r}: {did_you_mean(words, known)}")

    def page(self) -> Page:
        """Return the plain description, with one row per document and chapter and the number of its items by status."""
        rows: list[dict[str, Any]] = []
        for document in self.documents:
            rows.append({"document": document.key, "chapter": document.name, **document.counts})
            rows += [
                {"document": document.key, "chapter": f"- {chapter_name(chapter)}", **chapter.counts}
                for chapter in document.chapters
            ]
        sentences = [
            '"full" items are covered by claims and figures, "part" items in part, "missing" items by none, and "open" items are '
            "open questions."
        ]
        facts = {"items": in_words(self.items)}
        return Page("Items of the documents", facts, [Table(rows)], sentences, data=self.data())

    def data(self) -> dict[str, Any]:
        """Return the number of items by status, of every document and chapter, as a plain structure for JSON."""
        return {
            "counts": self.counts,
            "documents": [
                {
                    "key": document.key,
                    "name": document.name,
                    "title": document.title,
                    "counts": document.counts,
                    "chapters": [
                        {"title": chapter.title, "number": chapter.number, "counts": chapter.counts}
                        for chapter in document.chapters
                    ],
                }
                for document in self.documents
            ],
        }


@explained
def documents() -> Documents:
    """Return the lecture notes that limitlab implements, with their chapters and items.

    Examples
    --------
    >>> len(documents().items)
    149
    >>> item = documents().find("J-5")
    >>> item.status, item.claims
    ('full', ('J3',))
    """
    return assembled(items_of_claims(), laws_of_claims(), items_of_figures())


def assembled(claims: Names, laws: Names, figures: Names) -> Documents:
    """Return the documents with the claims and figures that name their items.

    Parameters
    ----------
    claims
        The items that every claim names.
    laws
        The laws of every claim.
    figures
        The items that every figure names.
    """
    content = _content()
    known = [item["id"] for document in content for chapter in document["chapter"] for item in chapter["item"]]
    for kind, named in (("claim", claims), ("figure", figures)):
        for name, ids in named.items():
            for item_id in ids:
                if item_id not in known:
                    raise Refused(
                        f"the {kind} {name} names the item {item_id!r}, which no document has: {did_you_mean(item_id, known)}"
                    )

    def item_of(entry: Mapping[str, Any], document: str, chapter: str) -> Item:
        covering = tuple(name for name, ids in claims.items() if entry["id"] in ids)
        return Item(
            id=entry["id"],
            document=document,
            chapter=chapter,
            kind=entry["kind"],
            phrase=entry["phrase"],
            says=entry["says"],
            missing=entry.get("missing", ""),
            is_open=entry.get("open", False),
            laws=tuple(dict.fromkeys(law for name in covering for law in laws.get(name, ()))),
            claims=covering,
            figures=tuple(name for name, ids in figures.items() if entry["id"] in ids),
        )

    def chapter_of(entry: Mapping[str, Any], document: str) -> ItemList:
        number = entry.get("number")
        name = f"chapter {number}: {entry['title']}" if number else entry["title"]
        items = tuple(item_of(item, document, name) for item in entry["item"])
        return ItemList(f"{document}, {name}", items, number)

    return Documents(
        tuple(
            Document(
                key=entry["key"],
                name=entry["name"],
                title=entry["title"],
                author=entry["author"],
                form=entry["form"],
                chapters=tuple(chapter_of(chapter, entry["name"]) for chapter in entry["chapter"]),
            )
            for entry in content
        )
    )


@functools.cache
def _content() -> list[dict[str, Any]]:
    """Return the content of `documents.toml`."""
    text = (files("limitlab") / "lab" / "documents.toml").read_text(encoding="utf-8")
    content: list[dict[str, Any]] = tomllib.loads(text)["document"]
    return content


def counted(items: Iterable[Item]) -> dict[str, int]:
    """Return the number of items by status, with every status."""
    counts = Counter(item.status for item in items)
    return {status: counts[status] for status in STATUSES}


def in_words(items: Iterable[Item]) -> str:
    """Return the number of items by status as text.

    >>> in_words(documents().find("14").items[:2])
    '2 (2 full, 0 part, 0 missing, 0 open)'
    """
    counts = counted(items)
    return f"{sum(counts.values())} ({', '.join(f'{count} {status}' for status, count in counts.items())})"


def missing_parts(items: Iterable[Item]) -> list[str]:
    """Return the sentences on the parts that are not executed, each with the id of its item."""
    return [f"{item.id} ({item.status}): {item.missing}" for item in items if item.missing]


def chapter_name(chapter: ItemList) -> str:
    """Return the title of a chapter without the name of the document.

    >>> chapter_name(documents().find("13"))
    'chapter 13: Spectral alignment'
    """
    return chapter.items[0].chapter


def _lower(names: Iterable[str]) -> list[str]:
    return [name.lower() for name in names]
