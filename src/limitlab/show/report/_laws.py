"""A law on the page: what it says of itself, whether experiments agree with it, and by how much they could differ."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING

from limitlab._core.about import allowed, references_of
from limitlab._core.registry import law_id, laws_option, package_of, subject_of
from limitlab._core.tables import number
from limitlab._core.typeset import mathml, typeset
from limitlab.lab.claims import claims_of
from limitlab.show._describe import kebab
from limitlab.show.report._page import Card, Picture, badge, definitions, drawn, folded, problem, slug, table

if TYPE_CHECKING:
    from limitlab._core.law import Law
    from limitlab.lab import Comparison
    from limitlab.lab.judging import Row

LAWS = "The laws"


def law_card(law: type[Law], comparison: Comparison | BaseException, seconds: float = 0.0) -> tuple[Card, Picture | None]:
    """The card of a law and the picture of its first check point."""
    name, load, broken = law_id(law), loading(law), isinstance(comparison, BaseException)
    body, picture = "", None
    if isinstance(comparison, BaseException):
        body = problem(comparison)
    else:
        points, known = comparison.parts or (comparison,), len(law.check_points())
        for i, part in enumerate(points, 1):
            where = f"check point {i}" if known > 1 else "its check point"
            if i == 1:
                caption = f"{name} at {where}: the limit (lines) and experiments (points) of what decided."
                picture = drawn(f"law-{slug(name)}", replace(part, rows=most_decisive(part)).plot(), caption)
            body += comparison_body(part, where, picture if i == 1 else None)
        if len(points) < known:
            body += f'<p class="soft">The first of {known} check points; <code>limitlab compare {name}{load}</code> compares at all.</p>'
    body += definitions(
        {"Time": f"{seconds:.1f} s" if seconds else "", "Reproduce this": f"<code>limitlab compare {name}{load}</code>"}
    )
    verdict = "broken" if isinstance(comparison, BaseException) else comparison.verdict
    card = Card(
        anchor=f"law-{slug(name)}",
        group=subject_of(law),
        title=name,
        lead=typeset(law.title()),
        body=body + about(law),
        verdict=verdict,
        failed=broken or verdict == "disagree",
        undecided=verdict == "underpowered",
        seconds=seconds,
    )
    return card, picture


def about(law: type[Law]) -> str:
    """What a law says of itself; its parameters folded away."""
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
            "Equations": theory_page(law),
            "References": "; ".join(map(escape, references_of(law))),
        }
    )
    return facts + folded("Parameters", parameters_table(law))


def claim_links(law: str, shown: list[str]) -> str:
    """The claims that exercise a law, those that the page shows as links."""
    links = [f'<a href="#claim-{slug(one)}">{escape(one)}</a>' if one in shown else escape(one) for one in claims_of(law)]
    return definitions({"Claims": ", ".join(links)})


def parameters_table(law: type[Law]) -> str:
    """The parameters of a law: name, symbol, default, range, meaning."""
    rows = [
        {
            "parameter": f"<code>{escape(name)}</code>",
            "symbol": mathml(meta.symbol) if meta.symbol else "",
            "default": escape(number(meta.default)),
            "allowed": escape(allowed(law, name)),
            "meaning": typeset(meta.words),
        }
        for name, meta in law.parameters().items()
    ]
    return table(rows, raw=("parameter", "symbol", "default", "allowed", "meaning"))


def comparison_body(comparison: Comparison, where: str, picture: Picture | None) -> str:
    """The verdict, the figure, the row of the error budget that decided, and the others folded away."""
    law = comparison.law
    given = ", ".join(
        f"{name} = {number(getattr(law, name))}" for name in type(law).parameters() if name in law.model_fields_set
    )
    sizes = ", ".join(str(int(size)) for size in comparison.dataset["size"].values)
    first, last = (int(comparison.dataset.attrs["seeds"][end]) for end in (0, -1))
    rows = [
        {
            "observable": escape(row.observable.replace("_", " ")) + (f" at {escape(row.entry)}" if row.entry else ""),
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
    shown = comparison.rows.index(most_decisive(comparison)[0])
    raw = ("observable", "verdict")
    rest = rows[:shown] + rows[shown + 1 :]
    again = f"limitlab compare {law_id(type(law))} " + " ".join(
        f"--{kebab(name)} {_typed(getattr(law, name))}" for name in type(law).parameters() if name in law.model_fields_set
    )
    again += loading(type(law))
    return (
        f"<h4>{escape(where.capitalize())} {badge(comparison.verdict)}</h4>"
        f"<p>{typeset(comparison.explanation)}</p>"
        f'<p class="soft">{escape(given) or "defaults"}; sizes {sizes} ({typeset(law.simulation.size_meaning)}); '
        f"seeds {first} to {last}.</p>"
        + (picture.shown() if picture else "")
        + '<p class="soft">Error budget of the observable that decided:</p>'
        + table(rows[shown : shown + 1], raw=raw, kind="budget")
        + folded(f"{len(rest)} more observables", table(rest, raw=raw, kind="budget"))
        + f'<p class="soft">At this point: <code>{escape(again)}</code></p>'
    )


DRAWN = 2
"""Observables of a law that are drawn; `limitlab compare LAW --plot FILE` draws all."""


def most_decisive(comparison: Comparison) -> tuple[Row, ...]:
    """The rows of the error budget on which the verdict hangs, the weightiest first."""
    order = ("agree", "underpowered", "disagree")
    return tuple(
        sorted(
            comparison.rows, key=lambda row: (order.index(row.verdict), abs(row.z), row.relative_half_width), reverse=True
        )[:DRAWN]
    )


def _typed(value: object) -> str:
    """A value as the command line takes it."""
    if isinstance(value, (tuple, list)) and any(isinstance(item, (tuple, list)) for item in value):
        return "'" + repr(value).replace("(", "[").replace(",)", "]").replace(")", "]") + "'"
    return number(value).replace(", ", ",")


def theory_page(law: type[Law]) -> str:
    """The page that derives a law, as HTML; an empty text if the law names none."""
    package = package_of(law)
    folder = "docs" if package is None else package.name
    return f"<code>{escape(folder)}/theory/{escape(law.page)}.md</code>" if law.page else ""


def loading(law: type[Law]) -> str:
    """The option that a command needs to load the package of a law; empty for a built-in law."""
    package = package_of(law)
    return "" if package is None else laws_option(package.name)
