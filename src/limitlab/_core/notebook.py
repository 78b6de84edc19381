"""What a notebook shows of a law, a comparison, a claim or a forecast: small tables with typeset formulas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from limitlab._core.tables import number
from limitlab._core.typeset import mathml, typeset

if TYPE_CHECKING:
    from limitlab._core.law import Law
    from limitlab.applied.forecast import Forecast
    from limitlab.lab.claims import Claim, Outcome
    from limitlab.lab.compare import Comparison
    from limitlab.lab.verification import Record

COLOURS = {
    **dict.fromkeys(("pass", "agree", "trusted"), "#0b7a4b"),
    **dict.fromkeys(("fail", "disagree", "doubtful"), "#b3261e"),
    **dict.fromkeys(("underpowered", "not implemented", "fair"), "#8a6100"),
    "consistent": "#0b63a5",
}
"""Colours that read on a light and on a dark page."""


def law_html(law: Law) -> str:
    """A law: the question it answers, its parameters with their values, its status and regime."""
    kind = type(law)
    rows = [
        (
            f"<code>{escape(name)}</code>",
            mathml(meta.symbol) if meta.symbol else "",
            escape(_brief(getattr(law, name))),
            typeset(meta.words),
        )
        for name, meta in kind.parameters().items()
        if meta.kind in ("physics", "coordinate") or name in law.model_fields_set
    ]
    caveat = f"<p>{typeset(law.caveat())}.</p>" if law.caveat() else ""
    return (
        f"<div><strong>{kind.__name__}</strong>: {typeset(kind.title())}"
        + html_table(("parameter", "symbol", "value", "meaning"), rows)
        + f"<p>{escape(kind.status.capitalize())}; {typeset(kind.regime)}.</p>{caveat}"
        + f"<p>Observables: {', '.join(f'<code>{escape(name)}</code>' for name in law.observed())}</p></div>"
    )


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


def forecast_html(forecast: Forecast) -> str:
    """A fitted forecast: the error here, and what two and four times the data would give."""
    population = int(forecast.spectrum_.population)
    curve = forecast.learning_curve([population, 2 * population, 4 * population])
    banded = "test_error_low" in curve
    rows = [
        (
            f"{int(curve.n[i])}" + (" (your data)" if i == 0 else f" ({2**i} times)"),
            f"{float(curve.test_error[i]):.4g}",
            f"{float(curve.test_error_low[i]):.4g} to {float(curve.test_error_high[i]):.4g}" if banded else "",
        )
        for i in range(curve.sizes["n"])
    ]
    return (
        f"<div><strong>{type(forecast).__name__}</strong> from {population} points, kernel {escape(str(forecast.kernel))}"
        + html_table(("points", "test error", f"{float(curve.attrs['band']):.0%} band"), rows)
        + f"<p>{typeset(forecast.advice())}</p></div>"
    )


# -- pieces -----------------------------------------------------------------------------------------------------------


def word(verdict: str) -> str:
    """A verdict in its colour.

    >>> word("agree")
    '<span style="color:#0b7a4b;font-weight:600">agree</span>'
    """
    return f'<span style="color:{COLOURS.get(verdict, "inherit")};font-weight:600">{escape(verdict)}</span>'


def html_table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Rows of HTML as a table; an empty head is left out.

    >>> html_table((), [("a", 1)])
    '<table><tbody><tr><td>a</td><td>1</td></tr></tbody></table>'
    """
    titles = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{titles}</tr></thead>' if titles else ''}<tbody>{body}</tbody></table>"


def _brief(value: Any) -> str:
    """A value; of a long list its ends."""
    if isinstance(value, Mapping) or not isinstance(value, (tuple, list)) or len(value) <= 6:
        return number(value)
    return f"{number(value[:2])}, ..., {number(value[-1])} ({len(value)} values)"
