"""The report: self-contained, navigable, honest about what failed."""

from __future__ import annotations

import base64
import io
import os
import re
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from limitlab._core.page import Code
from limitlab._core.registry import all_laws, law_id
from limitlab.lab.check import Criterion
from limitlab.lab.claims import Claim, Outcome, Record, all_claims
from limitlab.lab.figures import describe_figures
from limitlab.lab.store import caching
from limitlab.lab.tasks import run_tasks
from limitlab.laws import Law, NearestNeighbours, parameter
from limitlab.plotting.style import COLOURS, new_figure, simulation_points
from limitlab.show.cli import app
from limitlab.show.cli._app import status_line
from limitlab.show.report import _page as page
from limitlab.show.report import write_report
from limitlab.show.report._cards import claim_card, ledger_table
from limitlab.show.report._effort import attempt, quick_draws
from limitlab.show.report._page import now, provenance, slug, verdict_of
from limitlab.show.report._wall import ORDER, SMALL
from limitlab.show.report._write import PartTask, figure_parts, figures_left_out, law_cards, unpacked


class Broken(Law):
    """Does a law whose theory breaks stop the report?"""

    observables = ("overlap",)
    level: float = parameter(1.0, "anything <at all>")

    def predicted(self) -> dict[str, Any]:
        raise RuntimeError("no <theory> today")


class Crashing(Law):
    """Does a law whose theory kills its process take the others along?"""

    observables = ("overlap",)
    level: float = parameter(1.0, "anything")

    def predicted(self) -> dict[str, Any]:
        os._exit(3)


class Reader(HTMLParser):
    """Ids, links, loaded resources, and whether every element is closed."""

    VOID: ClassVar[set[str]] = {"meta", "img", "br", "input", "wbr"}

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.resources: list[str] = []
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids += [given["id"]] if given.get("id") else []  # type: ignore[list-item]
        self.links += [given["href"]] if tag in ("a", "use") and given.get("href") else []  # type: ignore[list-item]
        self.resources += [
            value for key, value in attrs if key in ("src", "srcset", "data") or (key == "href" and tag not in ("a", "use"))
        ]  # type: ignore[misc]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(path: Path) -> Reader:
    reader = Reader()
    reader.feed(path.read_text())
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of one quick law and one that breaks."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    summary = write_report(path, laws=[Broken, NearestNeighbours])
    assert summary.failed == (law_id(Broken),)
    assert f"failed: {law_id(Broken)}" in summary.line()
    return path


def test_nothing_is_loaded_from_elsewhere(report: Path) -> None:
    reader, text = read(report), report.read_text()
    assert reader.resources
    assert all(resource.startswith("data:image/webp;base64,") for resource in reader.resources)
    links = re.findall(r'<a href="(https?://[^"]*)"', text)
    assert set(links) == {"http://127.0.0.1:5006/?law=NearestNeighbours", f"http://127.0.0.1:5006/?law={law_id(Broken)}"}
    assert not re.search(r"url\(|@import|<script [^>]*src|fetch\(|XMLHttpRequest", text)
    assert len(re.findall("https?://", text)) == len(links)


def test_every_link_leads_somewhere(report: Path) -> None:
    reader = read(report)
    assert len(set(reader.ids)) == len(reader.ids)
    assert reader.links
    inside = [link for link in reader.links if not link.startswith("http://127.0.0.1:5006/?law=")]
    assert {link for link in inside if link[1:] not in reader.ids or not link.startswith("#")} == set()


def test_the_ledger_is_a_table_and_every_claim_has_its_card(report: Path) -> None:
    text = report.read_text()
    shown = [claim for claim in all_claims().values() if not claim.implemented or "NearestNeighbours" in claim.laws]
    assert shown
    for claim in shown:
        assert f'<a href="#claim-{claim.id.lower()}">{claim.id}</a>' in text
        assert f'<details class="card" id="claim-{claim.id.lower()}" data-words=' in text
        assert f"limitlab verify {claim.id}" in text
    assert (
        '<form class="tools" id="filters" hidden>' in text
    )  # without the script there is nothing to press that does not work


def test_formulas_are_set(report: Path) -> None:
    text = " ".join(read(report).text)
    assert "tau^2" not in text
    assert "<msup>" in report.read_text()


def test_a_law_has_its_figure_verdict_and_budget(report: Path) -> None:
    text = " ".join(read(report).text)
    for words in ("uniform in the unit ball", *NearestNeighbours.observables, "finite-size allowance", "seeds 0 to"):
        assert words in text
    assert re.search(r"The prediction agrees with \d+ draws at each of the sizes 200, 400 and 800\.", text)
    assert "limitlab figure NearestNeighbours" in text
    assert "Too few and too many neighbours both hurt. Lines are predictions. Points are means over draws." in text
    assert re.search(r"NearestNeighbours\s+agree", text)
    assert "limitlab compare NearestNeighbours --samples" in text


def test_what_failed_is_shown_and_the_rest_is_there(report: Path) -> None:
    text = report.read_text()
    assert "no &lt;theory&gt; today" in text
    assert "<theory>" not in text
    assert "anything &lt;at all&gt;" in text
    assert f'id="law-{slug(law_id(Broken))}"' in text
    assert 'id="law-nearestneighbours"' in text


def test_the_first_sentence_has_the_date_and_the_counts(report: Path) -> None:
    head = " ".join(re.sub(r"<[^>]*>", "", report.read_text().partition("<header>")[2].partition("</header>")[0]).split())
    assert "2 laws of learning, each computed and simulated on this machine on" in head
    assert f"{now():%B %Y}. 1 agree, 0 disagree, 1 raised an error." in head


def test_every_law_has_a_picture_on_the_wall_that_leads_to_its_card(report: Path) -> None:
    text = report.read_text()
    wall = text.partition('<div class="wall"')[2].partition("</div></section></div>")[0]
    tiles = re.findall(r'<a class="tile ([a-z-]+)" href="#([^"]+)" data-verdict="([^"]+)"[^>]*>(.*?)</a>', wall)
    assert [(style, anchor, verdict) for style, anchor, verdict, _ in tiles] == [
        ("agree", "law-nearestneighbours", "agree"),
        ("broken", f"law-{slug(law_id(Broken))}", "broken"),
    ]
    inside = tiles[0][3]
    assert "Too few and too many neighbours both hurt" in inside
    assert "Nearest<wbr>Neighbours" in inside
    source = re.search(r'<img src="data:image/webp;base64,([^"]*)"', inside)
    assert source
    shown = Image.open(io.BytesIO(base64.b64decode(source[1])))
    assert shown.size == (round(200 * SMALL[0]), round(200 * SMALL[1]))
    pixels = np.asarray(shown.convert("RGB")).reshape(-1, 3)
    blue = np.array([int(COLOURS[0][i : i + 2], 16) for i in (1, 3, 5)])
    assert (np.abs(pixels.astype(int) - blue).max(axis=1) < 30).sum() > 100  # the line of the first curve
    assert text.index('id="the-laws-in-pictures"') < text.index('id="the-laws"') < text.index('id="the-ledger"')


def test_the_subjects_of_the_wall_are_those_of_the_laws() -> None:
    from limitlab._core.registry import laws_by_subject

    assert set(laws_by_subject()) == set(ORDER)


def test_the_search_finds_laws_by_question_and_observable(report: Path) -> None:
    words = re.search(r'href="#law-nearestneighbours" [^>]*data-words="([^"]*)"', report.read_text())
    assert words
    assert {"nearest", "labels", "regression", "excess_risk", "j3"} <= set(words[1].split())


def test_theory_pages_are_links_where_the_documentation_has_an_address() -> None:
    from limitlab.show.report._cards import theory_page

    assert theory_page(NearestNeighbours) == "<code>docs/theory/local_averages.md</code>"
    linked = theory_page(NearestNeighbours, "https://docs.example/")
    assert linked == '<a href="https://docs.example/theory/local_averages.html">local averages</a>'


def test_the_verdict_of_a_quick_report_does_not_depend_on_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same draws are analysed on a machine on which every step seems to take no time, and on one where it takes hours."""
    import limitlab.lab._compare as compare

    laws = [all_laws()[name] for name in ("LogisticDescent", "ThresholdClass", "Ridge")]
    seen = []
    for pace in (0.0, 3600.0):
        ticks = iter(range(10**9))
        monkeypatch.setattr(compare.time, "perf_counter", lambda pace=pace, ticks=ticks: pace * next(ticks))
        results = [attempt(law, quick=True) for law in laws]
        seen.append([(result.verdict, result.draws, result.widest_budget) for result in results])  # type: ignore[union-attr]
    assert seen[0] == seen[1]
    assert all(draws <= quick_draws(law) for law, (_, draws, _) in zip(laws, seen[0], strict=True))


def test_provenance_names_versions_and_processor_but_no_machine(report: Path) -> None:
    text = report.read_text()
    for words in ("limitlab 0", "Commit", "numpy&nbsp;", "scipy&nbsp;", "Python&nbsp;", " cores, "):
        assert words in text
    assert str(Path.home()) not in text
    assert os.uname().nodename not in re.sub(r"base64,[^\"]*", "", text) or len(os.uname().nodename) < 4


def test_a_fixed_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert now().year == 1970
    assert "01 January 1970" in provenance(quick=True, seconds=0.0)


def test_a_claim_shows_numbers_and_failures() -> None:
    claim = Claim("X1", "Coins", "One <fair> coin of tau^2.", figure="coin", check=lambda check: None)
    good = Record(
        claim,
        "pass",
        Outcome((Criterion("y", 0.5, "below 1", True),), {"x": float("inf")}, note="mind the gap", seconds=1.25),
    )
    bad = Record(Claim("X2", "Coins", "An unfair coin."), "fail", error="ZeroDivisionError: division by zero")
    picture = page.Picture("coin", "Heads over tails", "data:image/webp;base64,", 640, 480)
    card = claim_card(good, {"coin": picture}, [])
    for words in (
        "inf",
        "below 1",
        "mind the gap",
        "1.2 s",
        'href="#picture-coin"',
        "limitlab verify X1",
        "further numbers",
    ):
        assert words in card.body
    assert "One &lt;fair&gt; coin" in card.lead
    assert not card.failed
    broken = claim_card(bad, {}, [])
    assert broken.failed
    assert broken.verdict == "broken"
    assert "division by zero" in broken.body
    table = ledger_table([good, bad])
    assert "One &lt;fair&gt; coin" in table
    assert 'data-verdict="broken"' in table


def test_a_claim_that_cannot_tell_says_so_in_its_badge() -> None:
    claim = Claim("X1", "Coins", "A fair coin.")
    open_one = Criterion("comparison", "underpowered", "agrees with the simulation", False)
    off = Criterion("comparison", "disagree", "agrees with the simulation", False)
    assert verdict_of(Record(claim, "fail", Outcome((open_one,)))) == "underpowered"
    assert verdict_of(Record(claim, "fail", Outcome((open_one, off)))) == "fail"
    assert (
        verdict_of(Record(claim, "consistent", Outcome((Criterion("z", 1, "below 5", True),), decisive=False)))
        == "consistent"
    )
    card = claim_card(Record(claim, "fail", Outcome((open_one,))), {}, [])
    assert ">underpowered</span>" in card.html().partition("</summary>")[0]


def test_exit_code_1_when_something_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bad = Claim(
        "X2",
        "Coins",
        "An unfair coin.",
        laws=("NearestNeighbours",),
        check=lambda check: check.below("x", 2.0, 1.0),
    )
    monkeypatch.setattr("limitlab.show.report._write.all_claims", lambda: {"X2": bad})
    monkeypatch.setattr("limitlab.lab.claims.find_claims", lambda ids: [bad])
    path = tmp_path / "report.html"
    result = CliRunner().invoke(app, ["report", "--laws", "nearest-neighbours", "--workers", "1", "--out", str(path)])
    assert result.exit_code == 1, result.output
    assert "failed: X2" in result.stdout
    assert ">2</td>" in path.read_text()


def test_worker_processes_give_the_same_cards() -> None:
    parts = [
        PartTask("law", "NearestNeighbours", True, law=NearestNeighbours),
        PartTask("figure", "interpolating-fit", True),
    ]
    here, there = (list(run_tasks(parts, engine).cells) for engine in (None, 2))
    (card, picture), (same, same_picture) = unpacked(here[0]), unpacked(there[0])  # type: ignore[arg-type]
    assert card is not None
    assert same is not None
    assert re.sub(r"[\d.]+ s<", "", card.body) == re.sub(r"[\d.]+ s<", "", same.body)
    assert picture == same_picture
    assert unpacked(here[1]) == unpacked(there[1])  # type: ignore[arg-type]


def test_a_check_that_kills_its_worker_loses_nothing(tmp_path: Path) -> None:
    parts = [PartTask("law", law.__name__, True, law=law) for law in (Crashing, NearestNeighbours)]
    run = run_tasks(parts, 2)
    cards, pictures = law_cards(parts, run, [])
    assert [card.verdict for card in cards] == ["broken", "agree"]
    assert "worker process died" in cards[0].body
    assert Crashing.title() in cards[0].lead
    assert len(pictures) == 1


def test_a_figure_that_breaks_is_a_failed_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limitlab.show.report._write.figure_parts", lambda *_: [PartTask("figure", "no-such-figure", True)])
    summary = write_report(tmp_path / "a.html", laws=[NearestNeighbours])
    assert summary.failed == ("no-such-figure",)
    assert "there is no figure" in (tmp_path / "a.html").read_text()


def test_a_quick_report_draws_the_figures_of_claims_and_names_the_others() -> None:
    claims, every = list(all_claims().values()), set(describe_figures())
    quick, full = ({part.name for part in figure_parts(claims, True, fast, None)} for fast in (True, False))
    assert quick == {claim.figure for claim in claims} & every
    assert full == every
    assert all(f"<code>{name}</code>" in figures_left_out(sorted(quick)) for name in every - quick)
    assert figures_left_out(sorted(every)) == ""


def test_a_second_report_computes_only_what_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write_report(tmp_path / "a.html", laws=[NearestNeighbours], store=tmp_path / "cells")
    monkeypatch.setattr(NearestNeighbours, "measured", lambda *_, **__: 1 / 0)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert write_report(tmp_path / "b.html", laws=[NearestNeighbours], store=tmp_path / "cells") == first
    monkeypatch.setattr("limitlab.show.report._write.library_digest", lambda *_: "another version of the package")
    part = PartTask("law", "NearestNeighbours", True, str(tmp_path / "cells"), law=NearestNeighbours)
    card, _ = unpacked(part.run())
    assert card is not None
    assert not card.failed  # a card is made anew, from the draws that were kept


def test_a_stored_headline_view_is_the_computed_one(tmp_path: Path) -> None:
    from limitlab.plotting import headline_view
    from limitlab.show.report._effort import headline

    with caching(str(tmp_path)):
        headline(NearestNeighbours)
        assert headline(NearestNeighbours) == headline_view(NearestNeighbours)
    assert isinstance(headline(Broken), RuntimeError)


def test_the_digest_of_a_check_leaves_out_what_it_cannot_use() -> None:
    from limitlab._core.registry import library_digest

    assert len({library_digest(), library_digest("show"), library_digest("show", "applied")}) == 3


def test_progress_is_told_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with status_line("writing the report", first=0.05, every=0.05) as tell:
        tell("writing the report: 3 of 9 parts done")
        time.sleep(0.3)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 2
    assert re.fullmatch(r"writing the report: 3 of 9 parts done \(0\.\d+ s so far\)", lines[-1])


def test_a_picture_keeps_the_colours_of_a_few_points_beside_a_map() -> None:
    figure, (left, right) = new_figure(columns=2)
    left.pcolormesh(np.linspace(-1, 1, 60)[:, None] * np.linspace(-1, 1, 80), cmap="RdBu_r", shading="gouraud")
    for index in range(3):
        simulation_points(right, [1, 2], [index, index + 1], [0.1, 0.1], index)
    source = page.drawn("x", figure, "").source
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(source.partition(",")[2]))).convert("RGB")).reshape(-1, 3)
    for colour in COLOURS[:3]:
        wanted = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])
        assert np.abs(shown.astype(int) - wanted).max(axis=1).min() <= 8


def test_page_pieces() -> None:
    assert page.table([]) == ""
    assert '<td class="number">1</td>' in page.table([{"x": 1}])
    assert "&lt;b&gt;" in page.table([{"x": "<b>"}])
    assert "<code>b</code>" in page.table([{"x": Code("b")}])
