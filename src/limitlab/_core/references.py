"""The sources of the laws, from the bibliography `references.bib`, whose keys the laws name."""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from limitlab.errors import Refused, did_you_mean

BIBLIOGRAPHY = files("limitlab") / "references.bib"

_ENTRY = re.compile(r"^@(\w+)\{([^,\s]+),\n(.*?)^\}$", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^\s*(\w+)\s*=\s*\{(.*)\},?$", re.MULTILINE)
_ACCENT = re.compile(r"""\\(?P<accent>['"`^~.]|[vc](?=\W))\s*\{?(?P<letter>[A-Za-z])\}?""")
_COMBINING = dict(zip("'\"`^~.vc", "\u0301\u0308\u0300\u0302\u0303\u0307\u030c\u0327", strict=True))


@functools.cache
def bibliography() -> dict[str, str]:
    """Return every BibTeX entry by its key.

    >>> bibliography()["bai1993limit"].startswith("@article{bai1993limit,")
    True
    """
    return read_entries(BIBLIOGRAPHY.read_text(encoding="utf-8"), BIBLIOGRAPHY.name)


def own_entries(law: type | None) -> dict[str, str]:
    """Return the BibTeX entries in the `references.bib` of the package of another author that defines a law, by key."""
    package = None if law is None else sys.modules.get(law.__module__.partition(".")[0])
    folders = [] if package is None or package.__name__ == "limitlab" else list(getattr(package, "__path__", ()))
    files_there = [Path(folder) / "references.bib" for folder in folders]
    return {
        key: text
        for file in files_there
        if file.is_file()
        for key, text in read_entries(file.read_text("utf-8"), file.name).items()
    }


def read_entries(text: str, name: str) -> dict[str, str]:
    """Return the BibTeX entries of a text by key. Error messages contain `name`, the name of the file."""
    entries = [(match[2], match[0]) for match in _ENTRY.finditer(text)]
    if len(dict(entries)) < len(entries):
        raise Refused(f"two entries of {name} have the same key: rename one of them")
    return dict(entries)


def bibtex(keys: Iterable[str], law: type | None = None) -> list[str]:
    """Return the entries of these keys, in their order, from limitlab's bibliography and from that of the package of a law."""
    known = {**bibliography(), **own_entries(law)}
    for key in keys:
        if key not in known:
            raise Refused(f"there is no reference {key!r} in references.bib: {did_you_mean(key, known)}")
    return [known[key] for key in keys]


def fields(key: str, law: type | None = None) -> dict[str, str]:
    """Return the fields of an entry as plain text.

    >>> fields("bai1993limit")["year"]
    '1993'
    """
    (entry,) = bibtex([key], law)
    return {match[1]: plain_text(match[2]) for match in _FIELD.finditer(entry)}


def reference_line(key: str, law: type | None = None) -> str:
    """Return author, title and year of a source in one line.

    >>> reference_line("bai1993limit")
    'Bai, Zhi-Dong and Yin, Yong-Qua, Limit of the smallest eigenvalue of a large dimensional sample covariance matrix (1993)'
    """
    entry = fields(key, law)
    return f"{entry['author']}, {entry['title']} ({entry['year']})"


def plain_text(tex: str) -> str:
    """Return a field of an entry without braces and with accented letters.

    >>> plain_text("Cand{\\\\`e}s, {Emmanuel}")
    'Candès, Emmanuel'
    """
    letters = _ACCENT.sub(lambda m: unicodedata.normalize("NFC", m["letter"] + _COMBINING[m["accent"]]), tex)
    return re.sub(r'[{}"\\]', "", letters).replace("--", "–")
