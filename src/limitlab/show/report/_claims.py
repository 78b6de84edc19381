"""The ledger on the page: a table of all claims that sorts, filters and searches, and a card for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from limitlab._core.registry import laws_option
from limitlab._core.tables import number
from limitlab._core.typeset import typeset
from limitlab.show.report._page import Card, Picture, badge, definitions, folded, slug, table

if TYPE_CHECKING:
    from limitlab.lab.claims import Claim, Outcome
    from limitlab.lab.verification import Record

CLAIMS = "The claims"
NUMBERS_SHOWN = 60
"""Further numbers of a claim that are listed; `limitlab verify ID --json` has all of them."""


def verdict_of(record: Record) -> str:
    """The word of a claim's badge: its status, or why it could not be decided.

    A claim that fails only because a comparison inside it had too few draws says so.
    """
    if record.status != "fail":
        return record.status
    if record.outcome is None:
        return "broken"
    open_ones = [one for one in record.outcome.criteria if not one.holds]
    return "underpowered" if open_ones and all(one.value == "underpowered" for one in open_ones) else "fail"


def ledger_table(records: Sequence[Record]) -> str:
    """The whole ledger as one table; the script of the page makes it sort, filter and search."""
    rows = "".join(_row(record) for record in records)
    verdicts = dict.fromkeys(verdict_of(record) for record in records)
    areas = dict.fromkeys(record.claim.area for record in records)
    numeric = {"seconds": ' class="number"'}
    head = "".join(
        f'<th aria-sort="none"{numeric.get(name, "")}><button type="button">{name}</button></th>'
        for name in ("id", "statement", "verdict", "area", "seconds")
    )
    return (
        '<section id="the-ledger"><h2>The ledger</h2>'
        "<p>Every statement of the theory as a check that can fail. An id leads to its card.</p>"
        '<form class="tools" hidden><input type="search" id="search" placeholder="Search claims" aria-label="Search claims">'
        f"{_choice('verdict', verdicts)}{_choice('area', areas)}"
        '<output id="shown" aria-live="polite"></output></form>'
        f'<div class="scroll"><table id="ledger"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></section>'
    )


def _choice(name: str, values: Mapping[str, None]) -> str:
    options = "".join(f'<option value="{escape(value)}">{escape(value)}</option>' for value in values)
    return f'<select id="{name}" aria-label="Only this {name}"><option value="">every {name}</option>{options}</select>'


def _row(record: Record) -> str:
    one, verdict = record.claim, verdict_of(record)
    seconds = f"{record.outcome.seconds:.1f}" if record.outcome else ""
    searched = " ".join([one.id, one.statement, one.area, verdict, *one.laws, one.figure or ""]).lower()
    return (
        f'<tr data-words="{escape(searched)}" data-verdict="{escape(verdict)}" data-area="{escape(one.area)}">'
        f'<td data-key="{_order(one.id)}"><a href="#claim-{slug(one.id)}">{escape(one.id)}</a></td>'
        f"<td>{typeset(one.statement)}</td><td>{badge(verdict)}</td><td>{escape(one.area)}</td>"
        f'<td class="number">{seconds}</td></tr>'
    )


def _order(claim_id: str) -> str:
    """J2 comes before J10."""
    letters = claim_id.rstrip("0123456789")
    return f"{letters}{int(claim_id[len(letters) :] or 0):04d}"


# -- a card -----------------------------------------------------------------------------------------------------------


def claim_card(record: Record, pictures: Mapping[str, Picture], laws: Sequence[str], full: bool = False) -> Card:
    """A claim with what decided it, its figure, its time and how to check it again."""
    one, verdict, again = record.claim, verdict_of(record), " --full" if full else ""
    load = escape(laws_option(one.package))
    body = "" if record.outcome is None else _decided(record.outcome)
    if record.error:
        body += f'<p class="problem">The check broke: {escape(record.error)}</p>'
    if one.figure and one.figure in pictures:
        body += pictures[one.figure].shown()
    body += definitions(
        {
            "Laws": ", ".join(_link(law, laws) for law in one.laws),
            "Area": escape(one.area),
            "Time": f"{record.outcome.seconds:.1f} s" if record.outcome else "",
            "Seeds": seeds_of(one),
            "Reproduce this": f"<code>limitlab verify {escape(one.id)}{again}{load}</code>" if one.implemented else "",
            "Draw it": f"<code>limitlab figure {escape(one.figure)}{load}</code>" if one.figure else "",
        }
    )
    return Card(
        anchor=f"claim-{slug(one.id)}",
        group=one.area,
        title=one.id,
        lead=typeset(one.statement),
        body=body,
        verdict=verdict,
        failed=record.status == "fail",
        seconds=record.outcome.seconds if record.outcome else 0.0,
    )


def _decided(outcome: Outcome) -> str:
    """The criteria with what was found; further numbers folded away."""
    rows = [
        {
            "criterion": typeset(str(one)),
            "found": typeset(str(one.value)) if isinstance(one.value, str) else escape(number(one.value)),
            "holds": badge("pass") if one.holds else badge("underpowered" if one.value == "underpowered" else "fail"),
        }
        for one in outcome.criteria
    ]
    further = [(name, value) for name, value in outcome.measured.items()]
    listed = [
        {"number": typeset(name.replace("_", " ")), "value": escape(number(value))}
        for name, value in further[:NUMBERS_SHOWN]
    ]
    note = f'<p class="note">{typeset(outcome.note)}</p>' if outcome.note else ""
    return (
        table(rows, raw=("criterion", "found", "holds"), kind="criteria")
        + note
        + folded(f"{len(further)} further numbers", table(listed, raw=("number", "value"), kind="numbers"))
    )


def seeds_of(one: Claim) -> str:
    """Where the seeds of a check stand: they are fixed, so that it gives the same numbers again."""
    if one.check is None:
        return ""
    file = one.check.__module__.replace(".", "/") + ".py"
    return f"fixed in the check: <code>{escape(one.check.__name__)}</code> in <code>{escape(file)}</code>"


def _link(law: str, laws: Sequence[str]) -> str:
    return f'<a href="#law-{slug(law)}">{escape(law)}</a>' if law in laws else escape(law)
