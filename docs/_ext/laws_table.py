"""The table of laws, made from the registry: as a Sphinx directive, and for the README.

`python docs/_ext/laws_table.py` rewrites the README's table; a test fails when it is out of date.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

from limitlab.lab.registry import all_laws
from limitlab.laws.base import Law

DOCS = Path(__file__).resolve().parents[1]
HEADER = ("law", "the question it answers", "observables", "status", "claims")


def theory_page(law: type[Law]) -> Path:
    """The page of docs/theory that the docstring of a law's module names."""
    module = inspect.getmodule(law)
    named = re.search(r"docs/(theory/\w+\.md)", (module.__doc__ or "") if module else "")
    if named is None:
        raise ValueError(f"the docstring of {law.__module__} must name the law's page, docs/theory/<page>.md")
    return DOCS / named[1]


def markdown(prefix: str = "") -> str:
    """The table in Markdown; links go to the theory pages, relative to a file for which docs/ is `prefix`."""
    lines = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    for name, law in all_laws().items():
        page = prefix + theory_page(law).relative_to(DOCS).as_posix()
        observables = ", ".join(f"`{observable}`" for observable in law.observables)
        lines.append(f"| [`{name}`]({page}) | {law.title()} | {observables} | {law.status} | {', '.join(law.claims)} |")
    return "\n".join(lines) + "\n"


def replace_table(readme: str) -> str:
    """The README's text with a fresh table between its two marks."""
    start, end = "<!-- laws: python docs/_ext/laws_table.py -->\n", "<!-- end of laws -->"
    before, rest = readme.split(start)
    return before + start + markdown("docs/") + end + rest.split(end)[1]


def setup(app: Any) -> dict[str, bool]:
    """Register the directive `{laws-table}`, which is made anew in every build."""
    from sphinx.util.docutils import SphinxDirective

    class LawsTable(SphinxDirective):
        """The table of laws."""

        def run(self) -> list[Any]:
            self.env.note_reread()  # the registry may change without the page changing
            here = Path(self.env.doc2path(self.env.docname)).parent
            up = "../" * len(here.relative_to(self.env.srcdir).parts)
            return self.parse_text_to_nodes(markdown(up))

    app.add_directive("laws-table", LawsTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    page = DOCS.parent / "README.md"
    page.write_text(replace_table(page.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote the table of {len(all_laws())} laws into {page.name}")
