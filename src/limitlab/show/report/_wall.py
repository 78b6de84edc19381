"""The first screen of the report, with a sentence, a search, and a wall with one picture for each law.

A picture is the headline view of a law without labels. Its border and a word give the verdict, and it leads to the card of the law.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from html import escape
from typing import TYPE_CHECKING

from limitlab._core.typeset import typeset
from limitlab.plotting.style import new_figure
from limitlab.show.report._page import Card, Picture, badge, drawn, legend, slug, verdict_of

if TYPE_CHECKING:
    from limitlab.lab.claims import Record
    from limitlab.plotting.headline import HeadlineView

WALL = "The laws in pictures"
SMALL = 1.6, 1.1
"""Width and height of a picture on the wall in inches, at 100 pixels per inch on the screen."""
SHARP = 200
"""Pixels per inch of a picture on the wall, so that it is sharp on screens with two pixels per point."""
ORDER = (
    "Regression",
    "Spectra of sample covariances",
    "Kernels and lazy training",
    "Scaling laws",
    "Margins and classification",
    "Dynamics of two-layer networks",
    "Mean field of wide networks",
    "Uniform convergence",
    "Approximation",
    "Interpolating networks and landscapes",
    "Transformers as particles",
    "Spectral alignment",
    "Online SGD",
    "Implicit bias of descent",
)
"""The subjects in the order of the wall. Neighbours fill the rows of a wide screen. Other subjects follow in alphabetical order."""


def by_subject(cards: Sequence[Card]) -> dict[str, list[Card]]:
    """Return the cards of every subject, with the subjects in the order of the wall.

    >>> cards = [Card("a", group, "A", "", "") for group in ("Zoology", "Botany", "Scaling laws", "Regression")]
    >>> list(by_subject(cards))
    ['Regression', 'Scaling laws', 'Botany', 'Zoology']
    """
    grouped: dict[str, list[Card]] = {}
    for card in cards:
        grouped.setdefault(card.group, []).append(card)
    return dict(sorted(grouped.items(), key=lambda item: (_place(item[0]), item[0])))


def _place(subject: str) -> int:
    return ORDER.index(subject) if subject in ORDER else len(ORDER)


def thumbnail(name: str, view: HeadlineView) -> Picture:
    """Return the headline view of a law as a small picture without labels."""
    rows = len(view.y_labels) if view.panels else 1
    figure, axes = new_figure(1, rows, SMALL[0], SMALL[1] / rows)
    view.draw(axes, small=True)
    return drawn(name, figure, view.finding, dpi=SHARP)


def header(day: datetime, records: Sequence[Record], laws: Sequence[Card]) -> str:
    """Return the title, the sentence with the date and the counts, and the search, as HTML."""
    compared = _counts([card.verdict for card in laws], LAW_VERDICTS)
    claims = _counts([verdict_of(record) for record in records], CLAIM_VERDICTS)
    buttons = "".join(
        f'<button type="button" class="choice {slug(word)}" data-choose="{word}"><b>{count}</b> {escape(words)}</button>'
        for word, count in compared.items()
        for words in [LAW_VERDICTS[word]]
    )
    return (
        f"<header><h1>limitlab</h1><p>{sentence(day, compared, claims)}</p></header>"
        '<form class="tools find" hidden><input type="search" id="search" placeholder="Search laws and claims" '
        f'aria-label="Search laws and claims">{buttons}<output id="hits" aria-live="polite"></output></form>'
    )


def sentence(day: datetime, laws: Mapping[str, int], claims: Mapping[str, int]) -> str:
    """Return the sentence at the top of the page, as HTML.

    >>> words = sentence(datetime(2026, 11, 19), {"agree": 2, "underpowered": 1}, {"pass": 3})
    >>> words.partition("on 19 November 2026. ")[2]
    '2 agree, 1 had too few draws for a decision, 0 disagree. All 3 claims about them pass.'
    """
    total, checked = sum(laws.values()), sum(claims.values())
    parts = [f"{laws.get(word, 0)} {words}" for word, words in LAW_VERDICTS.items() if laws.get(word) or word == "disagree"]
    words = (
        f"<b>{total} law{'s' * (total != 1)} of learning</b>, each computed and simulated on this machine on {day.day} {day:%B %Y}. "
        + (", ".join(parts) + "." if total else "")
    )
    passed = claims.get("pass", 0)
    if checked and passed == checked:
        words += f" All {checked} claims about them pass." if checked > 1 else " The claim about them passes."
    elif checked:
        counts = ", ".join(f"{count} {CLAIM_VERDICTS[word]}" for word, count in claims.items())
        words += f" Of {checked} claims about them, {counts}."
    return words


LAW_VERDICTS = {
    "agree": "agree",
    "underpowered": "had too few draws for a decision",
    "disagree": "disagree",
    "broken": "raised an error",
}
"""The verdicts of laws, with their words in a sentence."""
CLAIM_VERDICTS = {
    "pass": "pass",
    "consistent": "are consistent with a quick check",
    "underpowered": "had too few draws",
    "fail": "fail",
    "broken": "raised an error",
    "not implemented": "are not implemented",
}
"""The verdicts of claims, with their words in a sentence."""


def _counts(verdicts: Sequence[str], words: Mapping[str, str]) -> dict[str, int]:
    return {word: verdicts.count(word) for word in words if word in verdicts}


def wall(cards: Sequence[Card], verdicts: Collection[str] = ()) -> str:
    """Return one picture for each law, grouped by subject, and the meanings of the verdicts on the page, as HTML."""
    groups = "".join(
        f'<section class="subject" style="--n:{len(members)}"><h2>{escape(subject)}</h2><div class="row">'
        f"{''.join(tile(card) for card in members)}</div></section>"
        for subject, members in by_subject(cards).items()
    )
    used = [word for word in (*LAW_VERDICTS, *CLAIM_VERDICTS) if word in verdicts]
    return f'<div class="wall" id="{slug(WALL)}">{groups}</div><p id="nothing" hidden>{NO_HIT}</p>' + legend(used)


NO_HIT = "No law and no claim contains these words."


def tile(card: Card) -> str:
    """Return the picture of a law with its finding, name and verdict, as a link to its card, as HTML."""
    shown = (
        f'<img src="{card.thumbnail}" alt="" width="{round(100 * SMALL[0])}" height="{round(100 * SMALL[1])}">'
        if card.thumbnail
        else '<span class="empty"></span>'
    )
    return (
        f'<a class="tile {slug(card.verdict)}" href="#{card.anchor}" data-verdict="{escape(card.verdict)}" '
        f'data-words="{escape(card.words)}">{shown}<span class="finding">{typeset(card.finding)}</span>'
        f'<span class="name">{breakable(card.title)}</span> {badge(card.verdict)}</a>'
    )


def breakable(name: str) -> str:
    """Return the name of a law as HTML that may break before a capital letter.

    >>> breakable("RandomFeaturesRidge")
    'Random<wbr>Features<wbr>Ridge'
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "<wbr>", escape(name))
