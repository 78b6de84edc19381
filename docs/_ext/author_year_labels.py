"""The list of sources by the names and years with which the pages cite them: [Ali et al., 2019], not [AKT19]."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from pybtex.plugin import register_plugin
from pybtex.style.formatting.alpha import Style
from pybtex.style.labels import BaseLabelStyle


class AuthorYear(BaseLabelStyle):
    """Names of one or two authors, or of the first of more, and the year; a letter where several sources have the same."""

    def format_labels(self, entries: Iterable[Any]) -> Iterator[str]:
        """The label of each source, in order."""
        labels = [f"{names(entry)}, {entry.fields.get('year', '')}" for entry in entries]
        counts, seen = Counter(labels), Counter[str]()
        for label in labels:
            seen[label] += 1
            yield label + chr(96 + seen[label]) if counts[label] > 1 else label


def names(entry: Any) -> str:
    """The authors of a source, short."""
    people = entry.persons.get("author") or entry.persons.get("editor", [])
    last = [" ".join(map(str, [*person.rich_prelast_names, *person.rich_last_names])) for person in people]
    return " and ".join(last) if len(last) < 3 else f"{last[0]} et al."


class Named(Style):
    """The usual list with these labels."""

    default_label_style = AuthorYear


register_plugin("pybtex.style.formatting", "named", Named)


def setup(app: Any) -> dict[str, bool]:
    """The style is registered when this file is imported."""
    return {"parallel_read_safe": True, "parallel_write_safe": True}
