"""Running what the report shows, and writing it: the ledger, a comparison per law, the figures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

from limitlab.lab.cells import Cells
from limitlab.lab.files import write_whole
from limitlab.lab.progress import ProgressOption
from limitlab.lab.registry import all_laws
from limitlab.lab.runner import Finished, run_tasks
from limitlab.lab.tasks import Task
from limitlab.laws.base import Law
from limitlab.ledger import Claim, Record, all_claims
from limitlab.ledger.run import ClaimTask, records_of
from limitlab.show.figures import describe_figures
from limitlab.show.paths import require_writable
from limitlab.show.report.jobs import PartTask
from limitlab.show.report.page import Section, definitions, page
from limitlab.show.report.sections import LEDGER, ledger_section


@dataclass(frozen=True)
class Summary:
    """What a report found: names of the failed sections and claims, of laws left undecided, and how many claims stand where."""

    failed: tuple[str, ...]
    passed: int
    missing: int
    laws: int
    undecided: tuple[str, ...] = ()

    def counts(self) -> dict[str, int]:
        """The counts by name."""
        return {"claims_passed": self.passed, "claims_not_implemented": self.missing, "laws": self.laws}

    def line(self) -> str:
        """One line for the terminal."""
        end = f"failed: {', '.join(self.failed)}" if self.failed else "nothing failed"
        weak = f" (too few draws to decide: {', '.join(self.undecided)})" if self.undecided else ""
        return f"{self.passed} claims pass, {self.missing} are not implemented, {self.laws} laws compared{weak}; {end}"


def write_report(
    path: str | Path,
    laws: Sequence[type[Law]] | None = None,
    quick: bool = True,
    engine: Any = None,
    store: str | Path | None = None,
    progress: ProgressOption = None,
) -> Summary:
    """Write the report as one HTML file.

    Parameters
    ----------
    path
        File to write.
    laws
        Laws to include (default: all). Claims and figures are those of these laws, and all claims without a check.
    quick
        Small experiments, or the sizes that decide.
    engine
        As in `limitlab.sweep`: None does everything here, a number starts that many worker processes.
    store
        Folder in which finished parts and the draws behind them are kept: a second run computes only what changed.
    progress
        As in `limitlab.sweep`.

    Returns
    -------
    Summary
        What failed (nothing, one hopes). A part that fails says so on the page; the others are written all the same.
    """
    target = require_writable(path)
    chosen = list(all_laws().values()) if laws is None else list(laws)
    claims = claims_of({law.__name__ for law in chosen})
    cache = None if store is None else str(store)
    checked = [claim for claim in claims if claim.implemented]
    parts = [
        *(PartTask("law", law.__name__, quick, cache, law=law) for law in chosen),
        *figure_parts(claims, len(chosen) == len(all_laws()), quick, cache),
    ]
    tasks: list[Task] = [*(ClaimTask(claim.id, quick, cache) for claim in checked), *parts]
    run = run_tasks(tasks, engine, Cells(cache) if cache else None, progress, "writing the report")
    if run.interrupted:
        kept = f"; the finished ones are kept in {cache!r}" if cache else ""
        raise KeyboardInterrupt(f"stopped after {run.done} of {len(tasks)} parts{kept}")
    first = len(checked)
    found = {record.claim.id: record for record in records_of(checked, Finished(run.cells[:first], run.failures))}
    records = [found.get(claim.id, Record(claim, "not implemented")) for claim in claims]
    made = [
        part.section(cell, run.failures[first + i].error if cell is None else "")
        for i, (part, cell) in enumerate(zip(parts, run.cells[first:], strict=True))
    ]
    sections = [ledger_section(records), *made]
    write_whole(target, page("limitlab report", header(quick), sections).encode())
    return summarise(records, sections, len(chosen))


def claims_of(names: set[str]) -> list[Claim]:
    """The claims that concern these laws, and those that nobody checks yet."""
    return [claim for claim in all_claims().values() if not claim.implemented or names & set(claim.laws)]


def figure_parts(claims: Sequence[Claim], everything: bool, quick: bool, cache: str | None) -> list[PartTask]:
    """The figures of these claims; all figures when the report is on all laws."""
    shown_by: dict[str, list[str]] = {}
    for claim in claims:
        if claim.figure:
            shown_by.setdefault(claim.figure, []).append(claim.id)
    parts = []
    for name, words in describe_figures().items():
        ids = shown_by.get(name, [])
        if everything or ids:
            parts.append(
                PartTask("figure", name, quick, cache, caption=words + (f" (claims {', '.join(ids)})" if ids else ""))
            )
    return parts


def header(quick: bool) -> str:
    """Title and provenance: what made this page, nothing about where."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "xarray", "matplotlib"))
    facts = definitions(
        {
            "Version": escape(f"limitlab {version('limitlab')}"),
            "Date": now().strftime("%d %B %Y, %H:%M UTC"),
            "Experiments": "quick: small sizes" if quick else "full: the sizes that decide",
            "Made with": escape(packages),
            "Made by": f"<code>limitlab report {'--quick' if quick else '--full'}</code>",
        }
    )
    return (
        "<header><h1>limitlab: the limit laws of learning, checked</h1>"
        "<p>Each law is predicted, simulated at growing size, and compared. Squared errors carry no factor 1/2; "
        f"noise is a standard deviation.</p>{facts}</header>"
    )


def now() -> datetime:
    """The present time, or SOURCE_DATE_EPOCH where a reproducible build sets it."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH")
    return datetime.fromtimestamp(int(fixed), UTC) if fixed else datetime.now(UTC)


def summarise(records: Sequence[Record], sections: Sequence[Section], laws: int) -> Summary:
    """The counts of a report, and every claim and section that failed."""
    claims = [record.claim.id for record in records if record.status == "fail"]
    parts = [section.title for section in sections if section.failed and section.title != LEDGER]
    return Summary(
        failed=(*claims, *parts),
        passed=sum(record.status == "pass" for record in records),
        missing=sum(record.status == "not implemented" for record in records),
        laws=laws,
        undecided=tuple(section.title for section in sections if section.undecided),
    )
