"""What the pages say of laws and names is made from the declarations: the table of laws, the head of a theory page, the names.

Directives: `{laws-table}`, `{about-laws} Ridge EarlyStopping`, `{names-table}`.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

from limitlab.lab.registry import all_laws, find_law, laws_by_subject
from limitlab.laws.base import Law
from limitlab.laws.observables import VOCABULARY
from limitlab.ledger import all_claims, claims_of

DOCS = Path(__file__).resolve().parents[1]
HEADER = ("law", "the question it answers", "observables", "status", "claims")


def theory_page(law: type[Law]) -> Path:
    """The page of docs/theory that the docstring of a law's module names."""
    module = inspect.getmodule(law)
    named = re.search(r"docs/(theory/\w+\.md)", (module.__doc__ or "") if module else "")
    if named is None:
        raise ValueError(f"the docstring of {law.__module__} must name the law's page, docs/theory/<page>.md")
    return DOCS / named[1]


def laws_table(prefix: str = "") -> str:
    """The laws, one table per subject; links go to the theory pages, relative to a file for which docs/ is `prefix`."""
    lines = []
    for subject, laws in laws_by_subject().items():
        lines += [f"**{subject}**", "", "| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
        for law in laws:
            page = prefix + theory_page(law).relative_to(DOCS).as_posix()
            observables = ", ".join(f"`{name}`" for name in law.outputs())
            claims = ", ".join(claims_of(law.__name__))
            lines.append(f"| [`{law.__name__}`]({page}) | {law.title()} | {observables} | {law.status} | {claims} |")
        lines.append("")
    return "\n".join(lines)


def about_laws(names: list[str]) -> str:
    """The head of a theory page: its laws with their questions, claims, figures and sources."""
    laws = [find_law(name) for name in names]
    lines = [f"- `{law.__name__}` ({law.status}): {law.title()}" for law in laws]
    ids = list(dict.fromkeys(claim for law in laws for claim in claims_of(law.__name__)))
    figures = list(dict.fromkeys(all_claims()[claim].figure for claim in ids if all_claims()[claim].figure))
    sources = list(dict.fromkeys(key for law in laws for key in law.references))
    facts = {
        "Claims": ", ".join(ids),
        "Figures": ", ".join(f"`{figure}`" for figure in figures),
        "Sources": "; ".join(f"{{cite:t}}`{key}`" for key in sources),
    }
    return "\n".join([*lines, "", ". ".join(f"{what}: {words}" for what, words in facts.items() if words) + "."])


def names_table() -> str:
    """Every parameter that two or more laws share, and every observable of the shared vocabulary, with its one meaning."""
    users: dict[str, list[str]] = {}
    meaning, kinds = {}, {}
    for name, law in all_laws().items():
        for parameter, meta in law.parameters().items():
            users.setdefault(parameter, []).append(name)
            meaning[parameter], kinds[parameter] = meta.description, meta.kind
    lines = ["| parameter | means | kind | laws |", "|---|---|---|---:|"]
    lines += [
        f"| `{name}` | {meaning[name]} | {kinds[name]} | {len(laws)} |"
        for name, laws in sorted(users.items())
        if len(laws) > 1
    ]
    lines += ["", "| observable | means | symbol |", "|---|---|---|"]
    lines += [
        f"| `{name}` | {meta.long_name} | ${meta.symbol}$ |" for name, meta in sorted(VOCABULARY.items()) if meta.symbol
    ]
    return "\n".join(lines)


def setup(app: Any) -> dict[str, bool]:
    """Register the directives; their pages are read anew in every build, since the laws may change without the page changing."""
    from sphinx.util.docutils import SphinxDirective

    class Made(SphinxDirective):
        """Markdown that is made from the laws."""

        has_content = False

        def run(self) -> list[Any]:
            self.env.note_reread()
            here = Path(self.env.doc2path(self.env.docname)).parent
            up = "../" * len(here.relative_to(self.env.srcdir).parts)
            return self.parse_text_to_nodes(self.text(up))

        def text(self, up: str) -> str:
            """What the directive stands for."""
            raise NotImplementedError

    class LawsTable(Made):
        def text(self, up: str) -> str:
            return laws_table(up)

    class AboutLaws(Made):
        required_arguments = 1
        final_argument_whitespace = True

        def text(self, up: str) -> str:
            return about_laws(self.arguments[0].split())

    class NamesTable(Made):
        def text(self, up: str) -> str:
            return names_table()

    app.add_directive("laws-table", LawsTable)
    app.add_directive("about-laws", AboutLaws)
    app.add_directive("names-table", NamesTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
