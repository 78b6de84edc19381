"""Functions that compute the parts of the report and write the page.

The parts are independent tasks. A task checks a claim, compares a law or draws a figure.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from limitlab._core.draws import identity
from limitlab._core.files import require_writable, write_whole
from limitlab._core.law import Law
from limitlab._core.page import Code, Words
from limitlab._core.registry import (
    all_laws,
    know_package,
    law_id,
    laws_option,
    library_digest,
    package_of,
    packages,
    subject_of,
)
from limitlab._core.typeset import typeset
from limitlab.lab.claims import Claim, ClaimTask, Record, all_claims, records_of
from limitlab.lab.figures import all_figures, describe_figures
from limitlab.lab.progress import ProgressOption
from limitlab.lab.store import FORMAT, Cell, Cells, caching
from limitlab.lab.tasks import RunResult, Task, run_tasks
from limitlab.show.report._cards import CLAIMS, LAWS, about, claim_card, law_card, ledger_table, links_of
from limitlab.show.report._effort import attempt, headline
from limitlab.show.report._page import Card, Picture, drawn, folded, now, page, problem, provenance, section, slug, table
from limitlab.show.report._wall import by_subject, header, wall

if TYPE_CHECKING:
    from limitlab._core.law import Law


@dataclass(frozen=True)
class PartTask:
    """A card of a law, or a figure, as a task. Its cell contains the HTML, and comparisons store their cells in `cache`."""

    kind: Literal["law", "figure"]
    name: str
    quick: bool
    cache: str | None = None
    law: type[Law] | None = None
    caption: str = ""
    package: str = ""

    @property
    def content(self) -> dict[str, Any]:
        """Return everything that the result depends on, with the source code of the report."""
        law = {} if self.law is None else {"law": identity(self.law), "revision": self.law.revision}
        about = {"part": self.kind, "name": self.name, "quick": self.quick, "caption": self.caption}
        sources = [
            library_digest("show/cli", "show/explorer"),
            *([packages()[self.package].digest()] if self.package else []),
        ]
        return {"format": FORMAT, **about, **law, "source": sources}

    @property
    def where(self) -> str:
        """Return the task in words."""
        return f"{self.kind} {self.name}"

    def run(self) -> Cell:
        """Make the card of the law, or draw the figure."""
        card: Card | None = None
        if self.package:
            know_package(self.package)  # a worker process has not loaded the package yet
        with caching(self.cache):
            if self.law is not None:
                start = time.perf_counter()
                comparison, view = attempt(self.law, self.quick), headline(self.law)
                card, picture = law_card(self.law, comparison, view, time.perf_counter() - start)
            else:
                from limitlab.lab.figures import figure

                picture = drawn(self.name, figure(self.name, self.quick), self.caption)
        made = {"card": asdict(card) if card else None, "picture": asdict(picture) if picture else None}
        return Cell({"made": np.array(json.dumps(made))})


def unpacked(cell: Cell) -> tuple[Card | None, Picture | None]:
    """Return the card and the picture in the cell of a task."""
    made = json.loads(str(cell.values["made"]))
    return (Card(**made["card"]) if made["card"] else None, Picture(**made["picture"]) if made["picture"] else None)


FIGURES = "Further figures"


@dataclass(frozen=True)
class Summary:
    """Summary of a report, with the names of failed parts and undecided laws, and the numbers of claims by status."""

    failed: tuple[str, ...]
    passed: int
    missing: int
    laws: int
    undecided: tuple[str, ...] = ()
    consistent: int = 0

    def counts(self) -> dict[str, int]:
        """Return the counts by name."""
        return {
            "claims_passed": self.passed,
            "claims_consistent": self.consistent,
            "claims_not_implemented": self.missing,
            "laws": self.laws,
        }

    def line(self) -> str:
        """Return a line for the terminal."""
        end = f"failed: {', '.join(self.failed)}" if self.failed else "nothing failed"
        weak = f" (too few draws to decide: {', '.join(self.undecided)})" if self.undecided else ""
        consistent = f"{self.consistent} are consistent, " if self.consistent else ""
        return f"{self.passed} claims pass, {consistent}{self.missing} are not implemented, {self.laws} laws compared{weak}; {end}"


def write_report(
    path: str | Path,
    laws: Sequence[type[Law]] | None = None,
    quick: bool = True,
    engine: Any = None,
    store: str | Path | None = None,
    progress: ProgressOption = None,
    docs: str = "",
) -> Summary:
    """Write the report as one HTML file.

    Parameters
    ----------
    path
        File to write.
    laws
        Laws to include (default: all). The report contains the claims and figures of these laws, and all claims without a check.
    quick
        Whether to run small experiments instead of the full checks.
    engine
        Engine of the tasks, as in `limitlab.sweep`. None means this process, and a number means that many worker processes.
    store
        Folder for finished parts and their draws. A second run computes only what changed.
    progress
        Progress option, as in `limitlab.sweep`.
    docs
        Address of the documentation, for links to theory pages. Without it, the page names their files.

    Returns
    -------
    Summary
        The failed parts and the counts. The page shows the error of a failed part, and the other parts are written normally.
    """
    target, began = require_writable(path), time.perf_counter()
    chosen = list(all_laws().values()) if laws is None else list(laws)
    foreign = whole_packages(chosen)
    claims = claims_of({law_id(law) for law in chosen}, foreign)
    cache = None if store is None else str(store)
    checked = [claim for claim in claims if claim.implemented]
    everything = len(chosen) == len(all_laws())
    figures = figure_parts(claims, everything, quick, cache, foreign)
    parts = [PartTask("law", law_id(law), quick, cache, law=law, package=_package(law)) for law in chosen]
    # start long tasks first, so that no worker is idle at the end; figures take longest, and laws have a time limit
    tasks: list[Task] = [*figures, *(ClaimTask(claim.id, quick, cache, claim.package) for claim in checked), *parts]
    run = run_tasks(tasks, engine, Cells(cache) if cache else None, progress, "writing the report")
    if run.interrupted:
        kept = f"; finished parts are stored in {cache!r}" if cache else ""
        raise KeyboardInterrupt(f"stopped after {run.done} of {len(tasks)} parts{kept}")
    first, second = len(figures), len(figures) + len(checked)
    checked_records = {record.claim.id: record for record in records_of(checked, run.part(first, second))}
    records = [checked_records.get(claim.id, Record(claim, "not implemented")) for claim in claims]
    pictures, broken = drawn_figures(figures, run.part(0, first))
    cards, own_pictures = law_cards(parts, run.part(second, len(tasks)), [claim.id for claim in claims], docs)
    names = [law_id(law) for law in chosen]
    claim_cards = [claim_card(record, pictures, names, full=not quick) for record in records]
    shown = {record.claim.figure for record in records}
    rest = [name for name in describe_figures() if name in pictures and name not in shown]
    further = [figure_card(name, pictures[name]) for name in rest] + broken
    left_out = figures_left_out([part.name for part in figures]) if everything else ""
    summary = summarise(records, [*cards, *broken], len(chosen))
    areas = list(dict.fromkeys(card.group for card in claim_cards))
    content = [
        header(now(), records, cards),
        wall(cards, {card.verdict for card in [*cards, *claim_cards]}),
        section(LAWS, [card for group in by_subject(cards).values() for card in group]),
        *([section(FIGURES, further, left_out)] if further or left_out else []),
        ledger_table(records),
        section(CLAIMS, sorted(claim_cards, key=lambda card: areas.index(card.group))),
        f'<section id="provenance"><h2>How this page was made</h2>{provenance(quick, time.perf_counter() - began)}</section>',
    ]
    write_whole(target, page("limitlab report", content, [*pictures.values(), *own_pictures]).encode())
    return summary


def drawn_figures(parts: Sequence[PartTask], run: RunResult) -> tuple[dict[str, Picture], list[Card]]:
    """Return the pictures by the id of their figure, and a card for every figure that could not be drawn."""
    pictures, broken = {}, []
    for position, (part, cell) in enumerate(zip(parts, run.cells, strict=True)):
        picture = unpacked(cell)[1] if cell else None
        if picture is not None:
            pictures[part.name] = picture
        else:
            broken.append(broken_card("figure", part.name, typeset(part.caption), run.failures[position].error))
    return pictures, broken


def law_cards(
    parts: Sequence[PartTask], run: RunResult, claims: list[str], docs: str = ""
) -> tuple[list[Card], list[Picture]]:
    """Return a card for every law and their pictures. A law whose worker process ended gets a card with an error."""
    cards, pictures = [], []
    for position, (part, cell) in enumerate(zip(parts, run.cells, strict=True)):
        assert part.law is not None
        card, picture = unpacked(cell) if cell else (None, None)
        if card is None:
            card = broken_card("law", part.name, typeset(part.law.title()), run.failures[position].error)
            card = replace(card, group=subject_of(part.law), finding=part.law.title(), after=about(part.law))
        cards.append(replace(card, body=card.body + links_of(part.law, claims, docs)))
        pictures += [picture] if picture else []
    return cards, pictures


def broken_card(kind: str, name: str, lead: str, error: str) -> Card:
    """Return a card with an error, as a replacement for a card that could not be made."""
    return Card(f"{kind}-{slug(name)}", "", name, lead, problem(error), verdict="broken", failed=True)


def figure_card(name: str, picture: Picture) -> Card:
    """Return the card of a figure that belongs to no claim."""
    load = escape(laws_option(_prefix(name)))
    again = f'<p class="soft">Draw it: <code>limitlab figure {escape(name)}{load}</code></p>'
    return Card(f"figure-{slug(name)}", "", name, typeset(picture.caption), picture.shown() + again)


def figures_left_out(drawn: Sequence[str]) -> str:
    """Return a list of the figures that a quick report does not draw, as HTML."""
    names = {name: words for name, words in describe_figures().items() if name not in drawn}
    if not names:
        return ""
    rows = [{"figure": Code(name), "shows": Words(words)} for name, words in names.items()]
    return (
        f"<p>{len(names)} figures belong to no claim and are left out of a quick report. <code>limitlab figure NAME</code> draws one of "
        "them, <code>limitlab report --full</code> and the documentation show all.</p>"
        + folded(f"The {len(names)} figures", table(rows))
    )


def whole_packages(laws: Sequence[type[Law]]) -> set[str]:
    """Return the packages of other authors whose laws are all in the report."""
    return {name for name, package in packages().items() if set(package.laws.values()) <= set(laws)}


def claims_of(names: set[str], foreign: Collection[str] = ()) -> list[Claim]:
    """Return the claims about these laws, and those that have no check yet.

    With all laws, claims without a law are included too. All claims of the packages `foreign` are included.
    """
    whole = names >= set(all_laws())
    return [
        claim
        for claim in all_claims().values()
        if not claim.implemented or names & set(claim.laws) or claim.package in foreign or (whole and not claim.laws)
    ]


def figure_parts(
    claims: Sequence[Claim], everything: bool, quick: bool, cache: str | None, foreign: Collection[str] = ()
) -> list[PartTask]:
    """Return the figures of these claims and of the packages `foreign`, or all figures in a full report on all laws."""
    wanted, every = {claim.figure for claim in claims}, everything and not quick
    drawn = {
        name: words for name, words in describe_figures().items() if name in wanted or _prefix(name) in foreign or every
    }
    return [
        PartTask("figure", name, quick, cache, caption=drawn[name], package=_prefix(name)) for name in spread_by_file(drawn)
    ]


def _prefix(name: str) -> str:
    """Return the package in the id of a figure, or an empty text for a figure of limitlab."""
    return name.partition(":")[0] if ":" in name else ""


def _package(law: type[Law]) -> str:
    """Return the name of the package that contains a law, or an empty text for a built-in law."""
    package = package_of(law)
    return package.name if package is not None else ""


def spread_by_file(names: Iterable[str]) -> list[str]:
    """Return the first figure of every file, then the second of every file, and so on.

    Figures of the same file call the same compiled functions. Workers that draw them at the same time would all compile these functions.

    >>> spread_by_file(["alignment-mixture", "alignment-xor", "ridge-path"])
    ['alignment-mixture', 'ridge-path', 'alignment-xor']
    """
    counts: Counter[str] = Counter()
    rounds = {}
    for name in names:
        home = all_figures()[name].__module__
        rounds[name] = counts[home]
        counts[home] += 1
    return sorted(rounds, key=rounds.__getitem__)


def summarise(records: Sequence[Record], cards: Sequence[Card], laws: int) -> Summary:
    """Return the summary of a report, with the counts and every claim, law and figure that failed."""
    claims = [record.claim.id for record in records if record.status == "fail"]
    return Summary(
        failed=(*claims, *(card.title for card in cards if card.failed)),
        passed=sum(record.status == "pass" for record in records),
        missing=sum(record.status == "not implemented" for record in records),
        laws=laws,
        undecided=tuple(card.title for card in cards if card.undecided),
        consistent=sum(record.status == "consistent" for record in records),
    )
