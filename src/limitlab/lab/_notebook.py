"""HTML of comparisons, claims and outcomes for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from limitlab._core.notebook import html_table, word
from limitlab._core.tables import number
from limitlab._core.typeset import typeset

if TYPE_CHECKING:
    from limitlab.lab._compare import Comparison
    from limitlab.lab.claims import Claim, Outcome
    from limitlab.lab.verification import Record


def comparison_html(comparison: Comparison) -> str:
    """A comparison: its verdict, why, and its error budget."""
    rows = [
        (
            escape(row.observable) + (f" at {escape(row.entry)}" if row.entry else ""),
            *(f"{value:.4g}" for value in (row.theory, row.simulation, row.gap, row.standard_error, row.numerical_error)),
            *(f"{value:.2g}" for value in (row.finite_size_allowance, row.half_width, row.z)),
            word(row.verdict),
        )
        for row in comparison.rows
    ]
    head = ("observable", "theory", "simulation", "gap", "standard error", "numerical error", "finite-size allowance")
    return (
        f"<div><strong>{type(comparison.law).__name__}</strong>: theory and simulation {word(comparison.verdict)}"
        f"<p>{typeset(comparison.explanation)}</p>" + html_table((*head, "half width", "z", "verdict"), rows) + "</div>"
    )


def claim_html(claim: Claim, record: Record | None = None) -> str:
    """A claim: its statement and what it is about; with a record, what its check found."""
    facts = {
        "laws": ", ".join(map(escape, claim.laws)),
        "figure": f"<code>ll.figure({claim.figure!r})</code>" if claim.figure else "",
        "check it": f"<code>limitlab verify {escape(claim.id)}</code>" if claim.implemented else word("not implemented"),
    }
    status = f" {word(record.status)}" if record else ""
    found = outcome_html(record.outcome) if record and record.outcome else ""
    broke = f"<p>{escape(record.error)}</p>" if record and record.error else ""
    return (
        f"<div><strong>{escape(claim.id)}</strong>{status} ({escape(claim.area)}): {typeset(claim.statement)}"
        f"{found}{broke}{html_table((), [(term, words) for term, words in facts.items() if words])}</div>"
    )


def outcome_html(outcome: Outcome) -> str:
    """What a check found: every criterion with its number, then the note and the time."""
    rows = [
        (typeset(str(one)), escape(number(one.value)), word("pass" if one.holds else "fail")) for one in outcome.criteria
    ]
    note = f"<p>{typeset(outcome.note)}</p>" if outcome.note else ""
    taken = f"<p>{word(outcome.status)} in {outcome.seconds:.1f} s</p>"
    return html_table(("criterion", "found", "holds"), rows) + note + taken
