"""The report in a real browser: it sorts, filters, searches, opens a card and prints; without JavaScript it still reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from limitlab.lab.check import Criterion
from limitlab.lab.claims import Claim, Outcome, Record
from limitlab.show.report._cards import claim_card, ledger_table
from limitlab.show.report._page import Card, Picture, now, page, section
from limitlab.show.report._wall import header, wall

DOT = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"


SUBJECTS = {
    **{"Regression": 8, "Spectra of sample covariances": 3, "Kernels and lazy training": 3, "Scaling laws": 2},
    **{"Margins and classification": 7, "Dynamics of two-layer networks": 8, "Online SGD": 10},
}
"""Numbers of laws by subject, as on the first screen of a real report."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small ledger as a page: three claims that stand differently, two of them with the same figure."""
    records = [
        Record(
            Claim("X2", "Coins", "The variance is tau^2 gamma/(1 - gamma).", figure="coin", check=lambda check: None),
            "pass",
            Outcome((Criterion("gap", 0.5, "below 1", True),), {"heads": 7, "tails": 3}, seconds=2.0),
        ),
        Record(
            Claim("X10", "Dice", "Six sides at rate n^(-1/2).", figure="coin", check=lambda check: None),
            "fail",
            Outcome((Criterion("comparison", "underpowered", "agrees with the simulation", False),), seconds=10.0),
        ),
        Record(Claim("X1", "Dice", "Nobody looked."), "not implemented"),
    ]
    pictures = {"coin": Picture("coin", "Heads against tails", DOT, 640, 480)}
    cards = [claim_card(record, pictures, []) for record in records]
    places = [(subject, number) for subject, count in SUBJECTS.items() for number in range(count)]
    laws = [
        Card(
            f"law-{position}",
            subject,
            f"Law{position}",
            "How?",
            "<p>Answer.</p>",
            "underpowered" if number == 2 else "agree",
            words=f"law{position} {subject.lower()}",
            finding="What it shows",
            thumbnail=DOT,
        )
        for position, (subject, number) in enumerate(places)
    ]
    content = [header(now(), records, laws), wall(laws), section("The laws", laws), ledger_table(records)]
    content += [section("The claims", cards)]
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(page("report", content, pictures.values()))
    return path.as_uri()


def ids(page: Any) -> list[str]:
    """The claims that the ledger shows, from the top."""
    return [row.inner_text() for row in page.locator("#ledger tbody tr:visible td:first-child").all()]


def test_the_ledger_sorts(page: Any, report: str) -> None:
    page.goto(report)
    assert ids(page) == ["X2", "X10", "X1"]
    page.get_by_role("button", name="id", exact=True).click()
    assert ids(page) == ["X1", "X2", "X10"]  # by number, not by letter
    page.get_by_role("button", name="seconds").click()
    page.get_by_role("button", name="seconds").click()
    assert ids(page) == ["X10", "X2", "X1"]
    assert page.locator("#ledger th[aria-sort=descending]").inner_text().startswith("seconds")


def test_the_ledger_filters_and_searches(page: Any, report: str) -> None:
    page.goto(report)
    page.select_option("#area", "Dice")
    assert ids(page) == ["X10", "X1"]
    page.select_option("#verdict", "underpowered")
    assert ids(page) == ["X10"]
    assert page.locator("#shown").inner_text() == "1 of 3 claims"
    page.select_option("#area", "")
    page.select_option("#verdict", "")
    page.fill("#search", "tau gamma")
    assert ids(page) == ["X2"]
    page.fill("#search", "")


def test_a_link_opens_its_card(page: Any, report: str) -> None:
    page.goto(report)
    card = page.locator("#claim-x10")
    assert not card.locator(".inside").is_visible()
    page.locator("#ledger a", has_text="X10").click()
    card.locator(".inside").wait_for(state="visible")  # the page hears of the new address a moment later
    assert card.locator("summary .badge").first.inner_text() == "underpowered"
    assert card.locator("summary math msup").count() == 1
    shown = card.locator("figure svg").bounding_box()
    assert shown["width"] > 300
    assert abs(shown["width"] / shown["height"] - 640 / 480) < 0.02
    assert "limitlab verify X10" in card.inner_text()
    numbers = page.locator("#claim-x2 details")
    page.locator("#claim-x2 > summary").click()
    assert not numbers.locator("table").is_visible()
    numbers.locator("summary").click()
    numbers.locator("table").wait_for(state="visible")


def test_it_prints_with_every_card_open(page: Any, report: str, tmp_path: Path) -> None:
    page.goto(report)
    page.evaluate("addEventListener('afterprint', () => { window.printed = true })")
    page.evaluate(
        "addEventListener('beforeprint', () => { window.opened = document.querySelectorAll('details.card[open]').length })"
    )
    sheet = page.pdf(path=str(tmp_path / "report.pdf"), format="A4", prefer_css_page_size=True)
    assert sheet[:5] == b"%PDF-"
    assert len(sheet) > 20_000
    assert page.evaluate("window.opened") == 3 + sum(SUBJECTS.values())
    assert page.locator("details.card[open]").count() == 0  # and folded again
    page.emulate_media(media="print")
    assert page.locator(".tools:visible").count() == 0


def test_without_javascript_it_reads(browser: Any, report: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report)
    assert page.locator("#ledger tbody tr").count() == 3
    assert page.locator(".tools:visible").count() == 0
    page.locator("#claim-x2 > summary").click()
    page.locator("#claim-x2 .inside").wait_for(state="visible")
    context.close()


def test_nothing_is_asked_of_the_network(page: Any, report: str) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report)
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


@pytest.mark.parametrize(("width", "height", "least"), [(1440, 900, 15), (1024, 768, 10), (390, 844, 4)])
def test_the_first_screen_is_a_wall_of_pictures(browser: Any, report: str, width: int, height: int, least: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": height})
    page = context.new_page()
    page.goto(report)
    whole = "image => { const box = image.getBoundingClientRect(); return box.height > 60 && box.bottom <= innerHeight }"
    assert page.evaluate(f"[...document.querySelectorAll('.tile img')].filter({whole}).length") >= least
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


def test_one_search_finds_laws_and_claims(page: Any, report: str) -> None:
    page.goto(report)
    page.fill("#search", "spectra")
    assert page.locator(".tile:visible").count() == 3
    assert page.locator(".subject:visible h2").all_inner_texts() == ["Spectra of sample covariances"]
    assert page.locator("#the-laws details.card:visible").count() == 3
    assert page.locator("#hits").inner_text() == "3 laws and 0 claims"
    page.fill("#search", "dice")
    assert page.locator("#hits").inner_text() == "0 laws and 2 claims"
    assert page.locator("#the-claims details.card:visible").count() == 2
    page.fill("#search", "no such words")
    page.locator("#nothing").wait_for(state="visible")
    page.fill("#search", "")
    page.locator("button[data-choose=underpowered]").click()
    assert page.locator(".tile:visible").count() == len([count for count in SUBJECTS.values() if count >= 3])


def test_a_picture_leads_to_the_card_of_its_law(page: Any, report: str) -> None:
    page.goto(report)
    page.locator(".tile").nth(4).click()
    page.locator("#law-4 .inside").wait_for(state="visible")
    assert page.locator("#law-4 summary").bounding_box()["y"] < 200
