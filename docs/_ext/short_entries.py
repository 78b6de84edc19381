"""Entries of the reference as one reads them: what several names share is said once, and types and values are short."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from docutils import nodes
from sphinx import addnodes

LONGEST_VALUE = 500
_ARRAY = re.compile(
    r"(?:numpy\.)?ndarray\s?\[tuple\s?\[(?:typing\.)?Any\s?, (?:\.\.\.|…)\], (?:numpy\.)?dtype\s?\[([\w.]+)\]\]"
)
_DTYPE = re.compile(r"type\[Any\] \| dtype\[Any\] \| _HasDType.*_DTypeDict( \| None)?( \| str)?")
_PREFIX = re.compile(r"\b(?:collections\.abc|typing|numpy|limitlab(?:\.[a-z_]+)+)\.(?=\w)")
_OBJECT = re.compile(r"<(?:class|ufunc|module) '(?:\w+\.)*(\w+)'[^>]*>|<function (\w+)[^>]*>")


def short_type(text: str) -> str:
    """A type without the insides of arrays.

    >>> short_type("tuple[numpy.ndarray[tuple[typing.Any, ...], numpy.dtype[numpy.int64]], int]")
    'tuple[Array[int64], int]'
    """
    text = _ARRAY.sub(lambda found: _named(found[1].rpartition(".")[2]), text)
    return _PREFIX.sub("", _DTYPE.sub(r"DTypeLike\1", text))


def _named(kind: str) -> str:
    return "Array" if kind in ("float64", "Any") else f"Array[{kind}]"


def short_object(text: str) -> str:
    """A value without the way Python shows functions, classes and modules.

    >>> short_object("<module 'numpy' from 'somewhere/numpy/__init__.py'>"), short_object("<class 'numpy.float64'>")
    ('numpy', 'float64')
    """
    return _OBJECT.sub(lambda found: found[1] or found[2], text)


# -- lists of parameters ----------------------------------------------------------------------------------------------


def _split(item: nodes.list_item) -> tuple[list[nodes.Node], str] | None:
    """Name and type of an entry, and what is said of it; None if it has no words or several paragraphs."""
    children = list(item[0].children)
    for place, node in enumerate(children):
        if isinstance(node, nodes.Text) and node.astext() in (" -- ", " – "):
            words = "".join(part.astext() for part in children[place + 1 :])
            return (children[:place], words) if len(item) == 1 else None
    return None


def say_once(entries: nodes.bullet_list) -> None:
    """Entries in a row with the same words become one."""
    before: tuple[nodes.list_item, int, str] | None = None
    for item in list(entries.children):
        parts = _split(item)
        if parts and before and parts[1] == before[2]:
            kept, place, words = before
            added = [nodes.Text(", "), *(node.deepcopy() for node in parts[0])]
            kept[0].children[place:place] = added
            for node in added:
                kept[0].setup_child(node)
            entries.remove(item)
            before = (kept, place + len(added), words)
        else:
            before = (item, len(parts[0]), parts[1]) if parts else None


def shorten_types(paragraph: nodes.paragraph) -> None:
    """The type between the brackets after a name."""
    types = [node for node in paragraph.children if isinstance(node, addnodes.literal_emphasis | addnodes.pending_xref)]
    text = "".join(node.astext() for node in types)
    if "ndarray" in text or "_HasDType" in text:
        replace_run(paragraph, types, addnodes.literal_emphasis("", short_type(text)))
    for node in types:
        for leaf in list(node.findall(nodes.Text)):
            leaf.parent.replace(leaf, nodes.Text(_PREFIX.sub("", leaf.astext())))


def replace_run(parent: nodes.Element, run: Sequence[nodes.Node], node: nodes.Node) -> None:
    """One node in place of several."""
    parent.insert(parent.index(run[0]), node)
    for old in run:
        parent.remove(old)


# -- signatures -------------------------------------------------------------------------------------------------------


def shorten_signature(signature: addnodes.desc_signature) -> None:
    """Types and values of constants and properties, defaults of parameters."""
    for note in list(signature.findall(addnodes.desc_annotation)):
        text = note.astext()
        if text.startswith(" = ") and len(text) > LONGEST_VALUE:
            note[:] = [nodes.Text(" = ...")]
        elif "ndarray" in text:
            note[:] = [nodes.Text(short_type(text))]
    for leaf in list(signature.findall(nodes.Text)):
        if _OBJECT.search(leaf.astext()):
            leaf.parent.replace(leaf, nodes.Text(short_object(leaf.astext())))


def share_words(doctree: nodes.document) -> None:
    """Constants in a row that share their words become one entry with several names."""
    for entry in list(doctree.findall(addnodes.desc)):
        if entry.parent is None or entry.get("objtype") not in ("data", "attribute"):
            continue
        siblings = entry.parent.children
        following = [node for node in siblings[siblings.index(entry) + 1 :] if not isinstance(node, addnodes.index)]
        for other in following:
            same = isinstance(other, addnodes.desc) and other.get("objtype") == entry["objtype"]
            if not same or not entry[-1].astext() or other[-1].astext() != entry[-1].astext():
                break
            for signature in other.children[:-1]:
                entry.insert(len(entry) - 1, signature)
            other.parent.remove(other)
            other.parent = None


def process(app: Any, doctree: nodes.document) -> None:
    """All of it, on pages that describe objects."""
    for signature in list(doctree.findall(addnodes.desc_signature)):
        shorten_signature(signature)
    for content in doctree.findall(addnodes.desc_content):
        for paragraph in content.children:
            words = paragraph.astext()
            if isinstance(paragraph, nodes.paragraph) and words.startswith("alias of") and "ndarray" in words:
                paragraph[:] = [nodes.Text("alias of "), nodes.literal("", short_type(words.removeprefix("alias of ")))]
    for field in doctree.findall(nodes.field_body):
        for paragraph in list(field.findall(nodes.paragraph)):
            if paragraph.children and isinstance(paragraph[0], addnodes.literal_strong):
                shorten_types(paragraph)
        for entries in list(field.findall(nodes.bullet_list)):
            say_once(entries)
    share_words(doctree)


def setup(app: Any) -> dict[str, bool]:
    """After the page was read, before references are resolved."""
    app.connect("doctree-read", process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
