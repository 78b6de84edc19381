"""Running what the report shows, and writing it: the ledger, a comparison per law, the figures."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from limitlab.lab.files import write_whole
from limitlab.show.paths import require_writable
from limitlab.show.report.page import Section, definitions, page
from limitlab.show.report.sections import FIGURES, LAWS, LEDGER, figure_section, guarded, law_section, ledger_section

if TYPE_CHECKING:
    from limitlab.lab.claims import Record
    from limitlab.lab.compare import Comparison
    from limitlab.laws.base import Law

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Summary:
    """What a report found: names of the failed sections and claims, and how many claims stand where."""

    failed: tuple[str, ...]
    passed: int
    missing: int
    laws: int

    def counts(self) -> dict[str, int]:
        """The counts by name."""
        return {"claims_passed": self.passed, "claims_not_implemented": self.missing, "laws": self.laws}

    def line(self) -> str:
        """One line for the terminal."""
        end = f"failed: {', '.join(self.failed)}" if self.failed else "nothing failed"
        return f"{self.passed} claims pass, {self.missing} are not implemented, {self.laws} laws compared; {end}"


def write_report(
    path: str | Path, laws: Sequence[type[Law]] | None = None, quick: bool = True, tell: Tell | None = None
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
    tell
        Called with what is being done.

    Returns
    -------
    Summary
        What failed (nothing, one hopes). A section that fails says so on the page; the others are written all the same.
    """
    from limitlab.lab.registry import all_laws

    target = require_writable(path)
    chosen = list(all_laws().values()) if laws is None else list(laws)
    say = tell or (lambda words: None)
    records = run_ledger({law.__name__ for law in chosen}, quick, say)
    sections = [guarded(lambda: ledger_section(records), "the-ledger", LEDGER, LEDGER)]
    for law in chosen:
        say(f"comparing {law.__name__} with experiments")
        comparison = attempt(law, quick)
        sections.append(
            guarded(lambda: law_section(law, comparison), f"law-{law.__name__.lower()}", law.__name__, LAWS)  # noqa: B023
        )
    sections += figure_sections(records, len(chosen) == len(all_laws()), quick, say)
    write_whole(target, page("limitlab report", header(quick), sections).encode())
    return summarise(records, sections, len(chosen))


def run_ledger(names: set[str], quick: bool, tell: Tell) -> list[Record]:
    """The claims that concern these laws, checked, and those that nobody checks yet."""
    from limitlab.lab.claims import LEDGER as CLAIMS
    from limitlab.lab.claims import verify

    records: list[Record] = []
    for claim in CLAIMS.values():
        if not claim.implemented or names & set(claim.laws):
            tell(f"checking claim {claim.id}")
            records.extend(verify([claim], quick))
    return records


def attempt(law: type[Law], quick: bool) -> Comparison | Exception:
    """The comparison of a law at its default parameters, or what went wrong."""
    from limitlab.lab.compare import compare

    try:
        sizes = law.default_sizes if quick else tuple(2 * size for size in law.default_sizes)
        return compare(law(), sizes, law.default_seeds if quick else 2 * law.default_seeds)
    except Exception as error:  # shown in the law's section
        return error


def figure_sections(records: Sequence[Record], everything: bool, quick: bool, tell: Tell) -> list[Section]:
    """The figures of the claims that were run; all figures when the report is on all laws."""
    from limitlab.show.figures import describe_figures

    claims: dict[str, list[str]] = {}
    for record in records:
        if record.claim.figure:
            claims.setdefault(record.claim.figure, []).append(record.claim.id)
    sections = []
    for name, words in describe_figures().items():
        if everything or name in claims:
            tell(f"drawing {name}")
            sections.append(
                guarded(lambda: figure_section(name, words, claims.get(name, []), quick), f"figure-{name}", name, FIGURES)  # noqa: B023
            )
    return sections


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
    )
