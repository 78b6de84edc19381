"""Live figures of the laws on their theory pages, and the cards of the page "Find a law".

The numbers are in docs/_headlines/LAW.json. They are kept in the repository, because computing all of them takes minutes. After the
headline view or the prediction of a law was changed:

    python docs/_ext/live_figures.py ridge random-features-ridge    # these
    python docs/_ext/live_figures.py                                # all
    python docs/_ext/live_figures.py --store FOLDER                 # all, with the finished laws of `limitlab explore --static`

- `{live-figure} Ridge`: the headline view of a law with a slider. The build adds it to a theory page below its question.
- `{law-cards}`: a card with picture, question and link for every law, by subject, with a search field.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from html import escape
from pathlib import Path
from typing import Any

from limitlab._core.registry import all_laws, find_law, law_id
from limitlab.show.explorer.static._frames import as_json, reduced
from limitlab.show.explorer.static._pages import card, figure, gallery, live_views, numbers_of, resources_text

DOCS = Path(__file__).resolve().parents[1]
NUMBERS = DOCS / "_headlines"
LARGEST = 15_000
"""Bytes of the numbers of a law."""
HEAD = re.compile(r"^```\{about-laws\} (?P<laws>[^\n]+)\n```\n\n\*(?:[^\n]+\n)+", re.MULTILINE)
"""The head of a theory page, which is the list of its laws followed by the paragraph that begins with its question in italics."""


def numbers(name: str) -> dict[str, Any]:
    """Return the live figure of a law as it is in the repository."""
    path = NUMBERS / f"{name}.json"
    if not path.exists():
        raise ValueError(f"docs/_headlines/{name}.json is missing: run `python docs/_ext/live_figures.py {name}`")
    return dict(json.loads(path.read_text(encoding="utf-8")))


def with_figures(text: str) -> str:
    """Return the text of a theory page with the live figures of its laws below its question.

    >>> print(with_figures("```{about-laws} Ridge\\n```\\n\\n*What?*\\n\\nText."))
    ```{about-laws} Ridge
    ```
    <BLANKLINE>
    *What?*
    <BLANKLINE>
    ```{live-figure} Ridge
    ```
    <BLANKLINE>
    Text.
    """
    return HEAD.sub(lambda match: f"{match[0]}\n```{{live-figure}} {match['laws']}\n```\n", text, count=1)


def live_figures(names: list[str]) -> str:
    """Return the live figure of the first law as HTML, and those of further laws folded."""
    first, *others = [find_law(name).__name__ for name in names]
    folded = [
        f'<details class="ll-more"><summary>{escape(numbers(name)["finding"])} (<code>{escape(name)}</code>)</summary>'
        f"{figure(numbers(name))}</details>"
        for name in others
    ]
    return "\n".join([figure(numbers(first)), *folded])


def law_cards() -> str:
    """Return the cards of all laws as HTML. They link to the theory pages."""
    return gallery({law: card(law, numbers(name), f"theory/{law.page}.html") for name, law in all_laws().items()})


def setup(app: Any) -> dict[str, bool]:
    """Register the directives, and add the style and the script of live figures to every page."""
    from docutils import nodes
    from sphinx.util.docutils import SphinxDirective

    class LiveFigure(SphinxDirective):
        """The live figures of one or several laws."""

        required_arguments = 1
        final_argument_whitespace = True

        def run(self) -> list[Any]:
            names = self.arguments[0].split()
            for name in names:
                self.env.note_dependency(str(NUMBERS / f"{find_law(name).__name__}.json"))
            return [nodes.raw("", live_figures(names), format="html")]

    class LawCards(SphinxDirective):
        """The cards of all laws."""

        def run(self) -> list[Any]:
            self.env.note_reread()
            return [nodes.raw("", law_cards(), format="html")]

    def add_figures(app: Any, page: str, source: list[str]) -> None:
        if page.startswith("theory/"):
            source[0] = with_figures(source[0])

    def write_resources(app: Any) -> None:
        if app.builder.format == "html":
            folder = Path(app.outdir) / "_static"
            folder.mkdir(parents=True, exist_ok=True)
            for name in ("live.css", "live.js"):
                (folder / name).write_text(resources_text(name), encoding="utf-8")

    app.add_directive("live-figure", LiveFigure)
    app.add_directive("law-cards", LawCards)
    app.connect("source-read", add_figures)
    app.connect("builder-inited", write_resources)
    app.add_css_file("live.css")
    app.add_js_file("live.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def main() -> int:
    """Write the numbers of the laws that the command line names; return 1 if a law is left out."""
    parser = argparse.ArgumentParser(description="Write the numbers of the live figures of the documentation.")
    parser.add_argument("laws", nargs="*", help="laws (default: all)")
    parser.add_argument("--store", help="folder with finished laws")
    parser.add_argument("--seconds", type=float, default=15.0, help="processor time per law")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    asked = parser.parse_args()
    laws = [find_law(name) for name in asked.laws] or list(all_laws().values())
    engine = asked.workers if asked.workers > 1 else None
    run = live_views(laws, seconds=asked.seconds, engine=engine, store=asked.store)
    NUMBERS.mkdir(exist_ok=True)
    for law, cell in zip(laws, run.cells, strict=True):
        if cell is not None:
            text = as_json(reduced(numbers_of(cell), LARGEST - 1)) + "\n"
            (NUMBERS / f"{law_id(law)}.json").write_text(text, encoding="utf-8")
            print(f"{law_id(law)}: {len(text.encode()) / 1000:.1f} kB", flush=True)
    for position, failure in run.failures.items():
        print(f"{law_id(laws[position])}: {failure}", file=sys.stderr)
    return int(bool(run.failures))


if __name__ == "__main__":
    sys.exit(main())
