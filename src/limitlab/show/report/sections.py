"""The sections of the report. A section that breaks says so in its place and leaves the others alone."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from limitlab.laws.references import reference_line
from limitlab.ledger.claims import claims_of
from limitlab.show.describe import allowed
from limitlab.show.report.page import Section, badge, definitions, picture, problem, slug, table
from limitlab.show.tables import number, plain_symbol

if TYPE_CHECKING:
    from limitlab.lab.compare import Comparison
    from limitlab.laws.base import Law
    from limitlab.ledger import Claim, Outcome, Record

LEDGER, LAWS, FIGURES = "The ledger", "The laws", "The figures"


def broken(error: BaseException, anchor: str, title: str, group: str) -> Section:
    """In place of a section, what went wrong with it."""
    return Section(anchor, title, problem(error), failed=True, group=group)


# -- the ledger -------------------------------------------------------------------------------------------------------


def ledger_section(records: Sequence[Record]) -> Section:
    """Every claim with its status, the numbers measured and the criterion."""
    counts = {
        status: sum(record.status == status for record in records)
        for status in ("pass", "consistent", "fail", "not implemented")
    }
    intro = (
        "<p>Every statement of the theory as a check that can fail. "
        + ", ".join(f"{count} {badge(status)}" for status, count in counts.items())
        + ".</p>"
    )
    areas = dict.fromkeys(record.claim.area for record in records)
    body = intro + "".join(_area(area, [record for record in records if record.claim.area == area]) for area in areas)
    return Section(slug(LEDGER), LEDGER, body, failed=counts["fail"] > 0, group=LEDGER)


def _area(area: str, records: Sequence[Record]) -> str:
    """The claims of an area: those with a check as a table of numbers, the others as a short list."""
    checked = [_claim_row(record) for record in records if record.status != "not implemented"]
    missing = [_pending_row(record.claim) for record in records if record.status == "not implemented"]
    tables = table(checked, raw=RAW, cards=True, kind="checked") + table(missing, raw=RAW, kind="missing")
    return f"<h3>{escape(area)}</h3>{tables}"


RAW = ("id", "statement", "status", "measured", "criterion")
NUMBERS_SHOWN = 6


def _pending_row(claim: Claim) -> dict[str, str]:
    return {
        "id": f"<strong>{escape(claim.id)}</strong>",
        "statement": escape(claim.statement),
        "status": badge("not implemented"),
    }


def _claim_row(record: Record) -> dict[str, str | float]:
    claim, outcome = record.claim, record.outcome
    shown = f' <a href="#figure-{claim.figure}">figure</a>' if claim.figure else ""
    note = f'<br><span class="soft">{escape(outcome.note)}</span>' if outcome and outcome.note else ""
    return {
        "id": f"<strong>{escape(claim.id)}</strong>",
        "statement": escape(claim.statement) + shown,
        "status": badge(record.status),
        "measured": _measured(outcome) if outcome else f'<span class="fail">{escape(record.error)}</span>',
        "criterion": (escape(outcome.criterion) if outcome else "") + note,
        "seconds": round(outcome.seconds, 1) if outcome else "",
    }


def _measured(outcome: Outcome) -> str:
    """The numbers that decided; of many, the first ones and the rest to unfold."""
    lines = [f"{escape(name.replace('_', ' '))} = {escape(number(value))}" for name, value in outcome.numbers.items()]
    if len(lines) <= NUMBERS_SHOWN + 1:
        return "<br>".join(lines)
    rest = lines[NUMBERS_SHOWN:]
    return "<br>".join(lines[:NUMBERS_SHOWN]) + f"<details><summary>{len(rest)} more</summary>{'<br>'.join(rest)}</details>"


# -- a law ------------------------------------------------------------------------------------------------------------


def law_section(law: type[Law], comparison: Comparison | BaseException) -> Section:
    """What a law says of itself, and whether experiments agree with it."""
    name = law.__name__
    facts = definitions(
        {
            "Status": escape(law.status),
            "Regime": escape(law.regime),
            "Assumptions": "; ".join(escape(assumption) for assumption in law.assumptions),
            "Observables": ", ".join(
                f"<code>{escape(name)}</code>: {escape(meta.long_name)}" for name, meta in law.outputs().items()
            ),
            "Claims": ", ".join(map(escape, claims_of(law.__name__))),
            "Equations": theory_page(law),
            "References": "; ".join(escape(reference_line(key)) for key in law.references),
        }
    )
    body = f'<p class="question">{escape(law.title())}</p>{facts}{parameters_table(law)}'
    if isinstance(comparison, BaseException):
        return Section(f"law-{slug(name)}", name, body + problem(comparison), failed=True, group=LAWS)
    for i, part in enumerate(comparison.parts or (comparison,), 1):
        body += comparison_body(part, f"check point {i}", drawn=i == 1)
    return Section(
        f"law-{slug(name)}",
        name,
        body,
        failed=comparison.verdict == "disagree",
        group=LAWS,
        undecided=comparison.verdict == "underpowered",
    )


def parameters_table(law: type[Law]) -> str:
    """The parameters of a law: name, symbol, default, range, meaning."""
    rows = [
        {
            "parameter": f"<code>{escape(name)}</code>",
            "symbol": escape(plain_symbol(meta.symbol)),
            "default": escape(number(meta.default)),
            "allowed": escape(allowed(law, name)),
            "meaning": escape(meta.words),
        }
        for name, meta in law.parameters().items()
    ]
    return table(rows, raw=("parameter", "symbol", "default", "allowed", "meaning"), cards=True)


def comparison_body(comparison: Comparison, where: str = "its check point", drawn: bool = True) -> str:
    """The verdict, the error budget and, of the first check point, the figure of a comparison."""
    law = comparison.law
    sizes = ", ".join(str(int(size)) for size in comparison.dataset["size"].values)
    rows = [
        {
            "observable": row.observable + (f" at {row.entry}" if row.entry else ""),
            "theory": row.theory,
            "simulation": row.simulation,
            "gap": float(f"{row.gap:.3g}"),
            "standard error": float(f"{row.standard_error:.2g}"),
            "numerical error": float(f"{row.numerical_error:.2g}"),
            "finite-size allowance": float(f"{row.finite_size_allowance:.2g}"),
            "half width": float(f"{row.half_width:.2g}"),
            "z": float(f"{row.z:.2f}"),
            "verdict": badge(row.verdict),
        }
        for row in comparison.rows
    ]
    given = ", ".join(
        f"{name} = {number(getattr(law, name))}" for name in type(law).parameters() if name in law.model_fields_set
    )
    caption = f"{type(law).__name__} at {where}: the limit (lines) and experiments (points, one standard error)."
    return (
        f"<h4>{escape(where.capitalize())}</h4>"
        f'<p class="soft">{escape(given) or "defaults"}</p>'
        f"<p>Theory and simulation: {badge(comparison.verdict)} {escape(comparison.explanation)} "
        f'<span class="soft">Sizes {sizes} ({escape(law.size_meaning)}); gaps are extrapolated to infinite size.</span></p>'
        + (picture(comparison.plot(), caption) if drawn else "")
        + table(rows, raw=("verdict",), cards=True)
    )


def theory_page(law: type[Law]) -> str:
    """The page of the documentation that derives a law, as its module names it."""
    module = sys.modules.get(law.__module__)
    named = re.search(r"docs/(theory/\w+\.md)", (module.__doc__ or "") if module else "")
    return f"<code>docs/{named[1]}</code>" if named else ""


# -- a figure ---------------------------------------------------------------------------------------------------------


def figure_section(name: str, caption: str, quick: bool) -> Section:
    """A figure of the claims, drawn."""
    from limitlab.show.figures import make_figure

    figure = make_figure(name, quick)
    return Section(f"figure-{name}", name, picture(figure, caption, single=figure.get_figwidth() < 8), group=FIGURES)
