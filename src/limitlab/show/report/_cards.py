"""The cards of laws and claims in the report, and the table of all claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from limitlab._core.about import allowed, references_of
from limitlab._core.page import Code, Tex, Verdict, Words, number
from limitlab._core.registry import law_id, laws_option, package_of, subject_of
from limitlab._core.typeset import mathml, typeset
from limitlab.lab.claims import claims_of
from limitlab.show.report._page import (
    Card,
    Picture,
    badge,
    definitions,
    drawn,
    folded,
    problem,
    slug,
    table,
    verdict_of,
)
from limitlab.show.report._wall import thumbnail

if TYPE_CHECKING:
    from limitlab._core.law import Law
    from limitlab.lab import Comparison
    from limitlab.lab.claims import Claim, Outcome, Record
    from limitlab.lab.judging import Row
    from limitlab.plotting.headline import HeadlineView


LAWS = "The laws"


def law_card(
    law: type[Law], comparison: Comparison | BaseException, view: HeadlineView | BaseException, seconds: float = 0.0
) -> tuple[Card, Picture | None]:
    """Return the card of a law, which is its section of the report, and the picture of its headline view.

    The card shows the headline view, the verdict in a sentence and where to find more. The error budget is folded.
    """
    name = law_id(law)
    picture, small, finding = None, "", law.title()
    if isinstance(view, BaseException):
        body = problem(view)
    else:
        picture = drawn(
            f"law-{slug(name)}", view.figure(), f"{view.finding}. Lines are predictions. {MARKS[marks_of(view)]}"
        )
        small, finding = thumbnail(f"small-{slug(name)}", view).source, view.finding
        body = picture.shown()
    if isinstance(comparison, BaseException):
        verdict = "broken"
        body += problem(comparison)
    else:
        verdict = comparison.verdict
        body += f"<p>{badge(verdict)} {typeset(verdict_sentence(comparison))}</p>"
    after = ""
    if not isinstance(comparison, BaseException):
        points, known = comparison.parts or (comparison,), len(law.check_points())
        budget = "".join(
            comparison_body(part, f"check point {i}" if known > 1 else "its check point") for i, part in enumerate(points, 1)
        )
        if len(points) < known:
            budget += f'<p class="soft">This page compares at the first of {known} check points.</p>'
        after = folded("Error budget", budget + (f'<p class="soft">{seconds:.1f} s</p>' if seconds else ""))
    card = Card(
        anchor=f"law-{slug(name)}",
        group=subject_of(law),
        title=name,
        lead=typeset(law.title()),
        body=body,
        after=after + folded("Assumptions, observables, parameters and references", about(law)),
        verdict=verdict,
        failed=verdict in ("disagree", "broken") or picture is None,
        undecided=verdict == "underpowered",
        seconds=seconds,
        words=" ".join([name, law.title(), subject_of(law), verdict, finding, *law.outputs(), *claims_of(law)]).lower(),
        finding=finding,
        thumbnail=small,
    )
    return card, picture


MARKS = {
    "points": "Points are means over draws.",
    "histogram": "Bars are one draw.",
    "": "There are no experiments in this figure.",
}
"""The words about the experiments of a headline view."""


def marks_of(view: HeadlineView) -> str:
    """Return how a headline view shows experiments, which is "points", "histogram" or an empty text."""
    kinds = {series.kind for series in view.series} - {"line"}
    return min(kinds, default="")


def verdict_sentence(comparison: Comparison) -> str:
    """Return the verdict of a comparison in one or two sentences."""
    sizes = [str(int(size)) for size in comparison.dataset["size"].values]
    places = " and ".join(filter(None, [", ".join(sizes[:-1]), sizes[-1]]))
    draws = f"{comparison.draws} draws at {'each of the sizes' if len(sizes) > 1 else 'size'} {places}"
    if comparison.verdict == "agree":
        share = f"{100 * comparison.widest_budget:.1g}"
        return (
            f"The prediction agrees with {draws}. They would have shown a gap of {share} % of the scale of an observable with "
            "probability 0.9."
        )
    if comparison.verdict == "underpowered":
        return f"The gaps are within their error budget, but {draws} cannot decide. {comparison.explanation}"
    return f"The prediction disagrees with {draws}. {comparison.explanation}"


def about(law: type[Law]) -> str:
    """Return the description of a law as HTML, with its parameters in a folded table."""
    facts = definitions(
        {
            "Status": escape(law.status),
            "Regime": typeset(law.regime),
            "Assumptions": "; ".join(typeset(assumption) for assumption in law.assumptions),
            "Observables": ", ".join(
                f"<code>{escape(name)}</code>: {typeset(meta.long_name)}"
                + (f" {mathml(meta.symbol)}" if meta.symbol else "")
                for name, meta in law.outputs().items()
            ),
            "References": "; ".join(map(escape, references_of(law))),
        }
    )
    return facts + folded("Parameters", parameters_table(law))


def links_of(law: type[Law], claims: Sequence[str], docs: str = "") -> str:
    """Return where a reader finds more about a law, as HTML.

    These are its theory page, its page of the explorer, commands, and its claims with links to those on the page.
    """
    name, load = escape(law_id(law)), loading(law)
    listed = [
        f'<a href="#claim-{slug(claim)}">{escape(claim)}</a>' if claim in claims else escape(claim)
        for claim in claims_of(law_id(law))
    ]
    return definitions(
        {
            "Theory": theory_page(law, docs),
            "Explorer": f'<a href="{EXPLORER}?law={name}">this law with sliders</a>, while '
            f"<code>limitlab explore {name}{load}</code> runs",
            "Commands": f"<code>limitlab figure {name}{load}</code> draws this figure. <code>limitlab compare {name}{load}</code> "
            "compares theory and simulation at all check points.",
            "Claims": ", ".join(listed),
        }
    )


EXPLORER = "http://127.0.0.1:5006/"
"""The address of the explorer on this computer."""


def parameters_table(law: type[Law]) -> str:
    """Return a table of the parameters of a law with symbol, default, range and meaning."""
    rows = [
        {
            "parameter": Code(name),
            "symbol": Tex(meta.symbol),
            "default": number(meta.default),
            "allowed": allowed(law, name),
            "meaning": Words(meta.words),
        }
        for name, meta in law.parameters().items()
    ]
    return table(rows)


def comparison_body(comparison: Comparison, where: str) -> str:
    """Return a comparison as HTML, with verdict and error budget.

    The row that decided the verdict is visible, and the other rows are folded.
    """
    law = comparison.law
    parameters = ", ".join(
        f"{name} = {number(getattr(law, name))}" for name in type(law).parameters() if name in law.model_fields_set
    )
    sizes = ", ".join(str(int(size)) for size in comparison.dataset["size"].values)
    first, last = (int(comparison.dataset.attrs["seeds"][end]) for end in (0, -1))
    rows = [
        {
            "observable": row.observable.replace("_", " ") + (f" at {row.entry}" if row.entry else ""),
            "theory": row.theory,
            "simulation": row.simulation,
            "gap": float(f"{row.gap:.3g}"),
            "standard error": float(f"{row.standard_error:.2g}"),
            "numerical error": float(f"{row.numerical_error:.2g}"),
            "finite-size allowance": float(f"{row.finite_size_allowance:.2g}"),
            "half width": float(f"{row.half_width:.2g}"),
            "z": float(f"{row.z:.2f}"),
            "verdict": Verdict(row.verdict),
        }
        for row in comparison.rows
    ]
    shown = comparison.rows.index(most_decisive(comparison))
    rest = rows[:shown] + rows[shown + 1 :]
    again = f"limitlab compare {law_id(type(law))} " + " ".join(
        f"--{name.replace('_', '-')} {_typed(getattr(law, name))}"
        for name in type(law).parameters()
        if name in law.model_fields_set
    )
    again += loading(type(law))
    return (
        f"<h4>{escape(where.capitalize())} {badge(comparison.verdict)}</h4>"
        f"<p>{typeset(comparison.explanation)}</p>"
        f'<p class="soft">{escape(parameters) or "defaults"}; sizes {sizes} ({typeset(law.simulation.size_meaning)}); '
        f"seeds {first} to {last}.</p>"
        + '<p class="soft">Error budget of the observable that decided:</p>'
        + table(rows[shown : shown + 1], kind="budget")
        + folded(f"{len(rest)} more observables", table(rest, kind="budget"))
        + f'<p class="soft">At this point: <code>{escape(again)}</code></p>'
    )


def most_decisive(comparison: Comparison) -> Row:
    """Return the row of the error budget that determines the verdict."""
    order = ("agree", "underpowered", "disagree")
    return max(comparison.rows, key=lambda row: (order.index(row.verdict), abs(row.z), row.relative_half_width))


def _typed(value: object) -> str:
    """Return a value in the spelling of the command line."""
    if isinstance(value, (tuple, list)) and any(isinstance(item, (tuple, list)) for item in value):
        return "'" + repr(value).replace("(", "[").replace(",)", "]").replace(")", "]") + "'"
    return number(value).replace(", ", ",")


def theory_page(law: type[Law], docs: str = "") -> str:
    """Return the theory page of a law as HTML, or an empty text if there is none.

    It is a link if `docs`, the address of the documentation, is known, and otherwise the path of the page.
    """
    package = package_of(law)
    if not law.page:
        return ""
    if docs and package is None:
        return (
            f'<a href="{escape(docs.rstrip("/"))}/theory/{escape(law.page)}.html">{escape(law.page.replace("_", " "))}</a>'
        )
    folder = "docs" if package is None else package.name
    return f"<code>{escape(folder)}/theory/{escape(law.page)}.md</code>"


def loading(law: type[Law]) -> str:
    """Return the option that loads the package of a law, or an empty text for a built-in law."""
    package = package_of(law)
    return "" if package is None else laws_option(package.name)


CLAIMS = "The claims"
NUMBERS_SHOWN = 60
"""Largest number of further numbers of a claim on the page. `limitlab verify ID --json` prints all."""


def ledger_table(records: Sequence[Record]) -> str:
    """Return a table of all claims as HTML. The script of the page sorts, filters and searches it."""
    rows = "".join(_row(record) for record in records)
    verdicts = dict.fromkeys(verdict_of(record) for record in records)
    areas = dict.fromkeys(record.claim.area for record in records)
    numeric = {"seconds": ' class="number"'}
    head = "".join(
        f'<th aria-sort="none"{numeric.get(name, "")}><button type="button">{name}</button></th>'
        for name in ("id", "statement", "verdict", "area", "seconds")
    )
    return (
        '<section id="the-ledger"><h2>Table of claims</h2>'
        "<p>Every claim is a statement of the theory with a test that can fail. Click an id to open its card.</p>"
        '<form class="tools" id="filters" hidden>'
        f"{_choice('verdict', verdicts)}{_choice('area', areas)}"
        '<output id="shown" aria-live="polite"></output></form>'
        f'<div class="scroll"><table id="ledger"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></section>'
    )


def _choice(name: str, values: Mapping[str, None]) -> str:
    options = "".join(f'<option value="{escape(value)}">{escape(value)}</option>' for value in values)
    return f'<select id="{name}" aria-label="Only this {name}"><option value="">every {name}</option>{options}</select>'


def _row(record: Record) -> str:
    claim, verdict = record.claim, verdict_of(record)
    seconds = f"{record.outcome.seconds:.1f}" if record.outcome else ""
    return (
        f'<tr data-words="{escape(searched(record))}" data-verdict="{escape(verdict)}" data-area="{escape(claim.area)}">'
        f'<td data-key="{_order(claim.id)}"><a href="#claim-{slug(claim.id)}">{escape(claim.id)}</a></td>'
        f"<td>{typeset(claim.statement)}</td><td>{badge(verdict)}</td><td>{escape(claim.area)}</td>"
        f'<td class="number">{seconds}</td></tr>'
    )


def searched(record: Record) -> str:
    """Return the text of a claim that the search uses."""
    claim = record.claim
    return " ".join([claim.id, claim.statement, claim.area, verdict_of(record), *claim.laws, claim.figure or ""]).lower()


def _order(claim_id: str) -> str:
    """Return a key for sorting, in which J2 precedes J10."""
    letters = claim_id.rstrip("0123456789")
    return f"{letters}{int(claim_id[len(letters) :] or 0):04d}"


# -- a card -----------------------------------------------------------------------------------------------------------


def claim_card(record: Record, pictures: Mapping[str, Picture], laws: Sequence[str], full: bool = False) -> Card:
    """Return the card of a claim, with its criteria, figure, time and the command that checks it again."""
    one, verdict, again = record.claim, verdict_of(record), " --full" if full else ""
    load = escape(laws_option(one.package))
    body = "" if record.outcome is None else _decided(record.outcome)
    if record.error:
        body += f'<p class="problem">The check raised an error: {escape(record.error)}</p>'
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
        words=searched(record),
    )


def _decided(outcome: Outcome) -> str:
    """Return the criteria with their measured values as HTML. Further numbers are folded."""
    rows = [
        {
            "criterion": Words(item),
            "found": Words(item.value) if isinstance(item.value, str) else number(item.value),
            "holds": Verdict("pass" if item.holds else "underpowered" if item.value == "underpowered" else "fail"),
        }
        for item in outcome.criteria
    ]
    further = [(name, value) for name, value in outcome.measured.items()]
    listed = [{"number": Words(name.replace("_", " ")), "value": number(value)} for name, value in further[:NUMBERS_SHOWN]]
    note = f'<p class="note">{typeset(outcome.note)}</p>' if outcome.note else ""
    return table(rows, kind="criteria") + note + folded(f"{len(further)} further numbers", table(listed, kind="numbers"))


def seeds_of(one: Claim) -> str:
    """Return the function that contains the fixed seeds of a check, as HTML."""
    if one.check is None:
        return ""
    file = one.check.__module__.replace(".", "/") + ".py"
    return f"fixed in the check: <code>{escape(one.check.__name__)}</code> in <code>{escape(file)}</code>"


def _link(law: str, laws: Sequence[str]) -> str:
    return f'<a href="#law-{slug(law)}">{escape(law)}</a>' if law in laws else escape(law)
