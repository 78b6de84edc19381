"""What the pages say of laws and names is made from the declarations.

- `{laws-table}`: all laws; `{theory-index}`: the theory pages by subject; `{about-laws} Ridge`: the head of a theory page;
- `{names-table}`: names that laws share; `{all-names} parameters` (or `observables`): every one of them;
- `{parameter-uses} .*ratio`: what a parameter is in each law; `{sizes-table}`: what the size of an experiment is;
- `{public-names}`, `{public-laws}`: the first pages of the reference.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from limitlab._core.declaration import VOCABULARY
from limitlab._core.law import Law
from limitlab._core.registry import all_laws, find_law, laws_by_subject
from limitlab._core.typeset import between_dollars
from limitlab._core.typeset import in_markdown as said
from limitlab.lab.claims import all_claims, claims_of

DOCS = Path(__file__).resolve().parents[1]
HEADER = ("law", "the question it answers", "status", "claims")


def theory_page(law: type[Law]) -> Path:
    """The theory page that a law names."""
    if not law.page:
        raise ValueError(f"{law.__name__} must name its theory page: page = ... for docs/theory/<page>.md")
    return DOCS / "theory" / f"{law.page}.md"


def laws_table(prefix: str = "") -> str:
    """The laws, one table per subject; links go to the theory pages, relative to a file for which docs/ is `prefix`."""
    lines = []
    for subject, laws in laws_by_subject().items():
        lines += [f"**{subject}**", "", "| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
        for law in laws:
            page = prefix + theory_page(law).relative_to(DOCS).as_posix()
            claims = ", ".join(claims_of(law.__name__))
            lines.append(f"| [`{law.__name__}`]({page}) | {said(law.title())} | {law.status} | {claims} |")
        lines.append("")
    return "\n".join(lines)


def about_laws(names: list[str]) -> str:
    """The head of a theory page: its laws with their questions, claims, figures and sources."""
    laws = [find_law(name) for name in names]
    lines = [
        f"- {{py:obj}}`{law.__name__} <limitlab.laws.{law.__qualname__}>` ({law.status}): {said(law.title())}"
        for law in laws
    ]
    ids = sorted({claim for law in laws for claim in claims_of(law.__name__)}, key=lambda claim: (claim[0], int(claim[1:])))
    figures = list(dict.fromkeys(all_claims()[claim].figure for claim in ids if all_claims()[claim].figure))
    sources = list(dict.fromkeys(key for law in laws for key in law.references))
    text = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "theory").glob("*.md"))
    shown = set(re.findall(r"^:name: fig-([\w-]+)$", text, re.MULTILINE))
    facts = {
        "Claims": ", ".join(ids) + (" (see [their measured numbers](../trust_ledger.md))" if ids else ""),
        "Figures": ", ".join(f"{{ref}}`{name} <fig-{name}>`" if name in shown else f"`{name}`" for name in figures),
        "Sources": "; ".join(f"{{cite:t}}`{key}`" for key in sources),
    }
    return "\n".join([*lines, "", ". ".join(f"{what}: {words}" for what, words in facts.items() if words) + "."])


def theory_index() -> str:
    """The theory pages by subject with the questions of their laws, and a list of contents for the sidebar."""
    pages = sorted(page for page in (DOCS / "theory").glob("*.md") if page.stem != "index")
    lines, listed = [], []
    for subject, laws in laws_by_subject().items():
        of_page: dict[Path, list[type[Law]]] = {}
        for law in laws:
            of_page.setdefault(theory_page(law), []).append(law)
        lines += [f"**{subject}**", ""]
        for page, its in of_page.items():
            questions = "".join(f"\n  - `{law.__name__}`: {said(law.title())}" for law in its)
            lines.append(f"- [](../theory/{page.name}){questions}")
            listed += [page] if page not in listed else []
        lines.append("")
    tools = [page for page in pages if page not in listed]
    lines += ["**Tools that the laws share, and laws at work**", ""]
    lines += [f"- [](../theory/{page.name})\n  - {question(page)}" for page in tools] + [""]
    contents = "\n".join(page.stem for page in [*listed, *tools])
    return "\n".join(lines) + f"\n\n```{{toctree}}\n:hidden:\n:maxdepth: 1\n\n{contents}\n```\n"


def question(page: Path) -> str:
    """The question that a theory page begins with, which stands there in italics."""
    found = re.search(r"^\*([^*\n]+\?)\*", page.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise ValueError(f"{page.name} must begin with its question, in italics: *How ...?*")
    return found[1]


def all_names(kind: str) -> str:
    """Every parameter or every observable of every law: its symbol, its meaning, the laws that have it."""
    rows: dict[str, dict[tuple[str, str], list[str]]] = {}
    for name, law in all_laws().items():
        declared = law.parameters() if kind == "parameters" else law.outputs()
        for own, meta in declared.items():
            words = meta.description if kind == "parameters" else meta.long_name
            rows.setdefault(own, {}).setdefault((meta.symbol or "", words), []).append(name)
    return "\n".join(
        ["| name | symbol | means | laws |", "|---|---|---|---|"]
        + [
            f"| `{own}` | {maths(symbol)} | {said(words)} | {few(laws)} |"
            for own, meanings in sorted(rows.items())
            for (symbol, words), laws in meanings.items()
        ]
    )


def parameter_uses(pattern: str) -> str:
    """What the parameters whose names match a pattern are, symbol and words, law by law."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for name, law in all_laws().items():
        for own, meta in law.parameters().items():
            if re.fullmatch(pattern, own):
                rows.setdefault((own, meta.symbol or "", meta.words), []).append(name)
    lines = ["| name | symbol | is | laws |", "|---|---|---|---|"]
    return "\n".join(
        lines
        + [
            f"| `{own}` | {maths(symbol)} | {said(words)} | {few(laws, 20)} |"
            for (own, symbol, words), laws in sorted(rows.items())
        ]
    )


def sizes_table() -> str:
    """What the size of an experiment is, law by law."""
    rows: dict[str, list[str]] = {}
    for name, law in all_laws().items():
        rows.setdefault(law.simulation.size_meaning, []).append(name)
    lines = ["| size | laws |", "|---|---|"]
    return "\n".join(lines + [f"| {said(size)} | {few(laws, 20)} |" for size, laws in sorted(rows.items())])


def maths(symbol: str) -> str:
    """A symbol as a formula in a cell of a table."""
    return between_dollars(symbol) if symbol else ""


def few(names: list[str], most: int = 6) -> str:
    """Names in code, cut short with their number when there are many."""
    shown = ", ".join(f"`{name}`" for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def public_names() -> str:
    """The names of the top level and of the tools for a user's own data, with links into the reference."""
    import limitlab
    import limitlab.applied

    lines, seen = ["| name | what it does |", "|---|---|"], set()
    for module in (limitlab, limitlab.applied):
        for name in module.__all__:
            value = getattr(module, name)
            if (inspect.isclass(value) or inspect.isfunction(value)) and value not in seen:
                seen.add(value)
                home = f"{module.__name__}.{name}"
                summary = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")
                lines.append(f"| {{py:obj}}`{module.__name__}.{name} <{home}>` | {said(summary)} |")
    return "\n".join(lines)


def public_laws() -> str:
    """The laws by subject, with links to the class in the reference and to the theory page."""
    lines = []
    for subject, laws in laws_by_subject().items():
        lines += [f"**{subject}**", "", "| law | the question it answers | theory |", "|---|---|---|"]
        for law in laws:
            home, page = f"limitlab.laws.{law.__qualname__}", theory_page(law).relative_to(DOCS).as_posix()
            lines.append(f"| {{py:obj}}`{law.__name__} <{home}>` | {said(law.title())} | [](../{page}) |")
        lines.append("")
    return "\n".join(lines)


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
        f"| `{name}` | {said(meaning[name])} | {kinds[name]} | {len(laws)} |"
        for name, laws in sorted(users.items())
        if len(laws) > 1
    ]
    lines += ["", "| observable | means | symbol |", "|---|---|---|"]
    lines += [
        f"| `{name}` | {said(meta.long_name)} | {maths(meta.symbol)} |"
        for name, meta in sorted(VOCABULARY.items())
        if meta.symbol
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

    def directive(made: Callable[..., str], argument: bool = False) -> type[SphinxDirective]:
        class Directive(Made):
            required_arguments = int(argument)
            final_argument_whitespace = True

            def text(self, up: str) -> str:
                return made(*self.arguments[:1]) if made is not laws_table else laws_table(up)

        return Directive

    app.add_directive("laws-table", directive(laws_table))
    app.add_directive("about-laws", directive(lambda names: about_laws(names.split()), argument=True))
    app.add_directive("theory-index", directive(theory_index))
    app.add_directive("names-table", directive(names_table))
    app.add_directive("all-names", directive(all_names, argument=True))
    app.add_directive("parameter-uses", directive(parameter_uses, argument=True))
    app.add_directive("sizes-table", directive(sizes_table))
    app.add_directive("public-names", directive(public_names))
    app.add_directive("public-laws", directive(public_laws))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
