"""The report: self-contained, navigable, honest about what failed."""

from __future__ import annotations

import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typer.testing import CliRunner

from limitlab.lab.runner import run_tasks
from limitlab.laws import Law, NearestNeighbours, parameter
from limitlab.ledger import Claim, Outcome, Record, all_claims
from limitlab.ledger.criteria import below
from limitlab.show.cli import app
from limitlab.show.report import page, write_report
from limitlab.show.report.jobs import PartTask
from limitlab.show.report.sections import ledger_section


class Broken(Law):
    """Does a law whose theory breaks stop the report?"""

    observables = ("overlap",)
    level: float = parameter(1.0, "anything <at all>")

    def predicted(self) -> dict[str, Any]:
        raise RuntimeError("no <theory> today")


class Reader(HTMLParser):
    """Ids, links, loaded resources, and whether every element is closed."""

    VOID: ClassVar[set[str]] = {"meta", "img", "br"}

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
        self.links += [given["href"]] if tag == "a" and given.get("href") else []  # type: ignore[list-item]
        self.resources += [
            value for key, value in attrs if key in ("src", "srcset", "data") or (key == "href" and tag != "a")
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
    assert summary.failed == ("Broken",)
    assert "failed: Broken" in summary.line()
    return path


def test_nothing_is_loaded_from_elsewhere(report: Path) -> None:
    reader = read(report)
    assert reader.resources
    assert all(resource.startswith("data:image/") for resource in reader.resources)
    assert "url(" not in report.read_text()
    assert "@import" not in report.read_text()
    assert "<script" not in report.read_text()


def test_every_link_leads_somewhere(report: Path) -> None:
    reader = read(report)
    assert len(set(reader.ids)) == len(reader.ids)
    assert reader.links
    assert {link for link in reader.links if not link.startswith("#")} == set()
    figures = {claim.figure for claim in all_claims().values() if claim.figure}
    dead = {link for link in reader.links if link[1:] not in reader.ids}
    assert dead <= {f"#figure-{name}" for name in figures}, dead
    assert not dead


def test_the_whole_ledger_is_there(report: Path) -> None:
    text = report.read_text()
    shown = [claim for claim in all_claims().values() if not claim.implemented or "NearestNeighbours" in claim.laws]
    assert shown
    for claim in shown:
        assert f"<strong>{claim.id}</strong>" in text
    assert "not implemented" in text


def test_a_law_has_its_figure_verdict_and_budget(report: Path) -> None:
    text = " ".join(read(report).text)
    for words in (
        NearestNeighbours.title(),
        NearestNeighbours.regime,
        *NearestNeighbours.assumptions,
        *NearestNeighbours.observables,
    ):
        assert words in text
    assert "finite-size allowance" in text
    assert re.search(r"Theory and simulation:\s+agree", text)


def test_what_failed_is_shown_and_the_rest_is_there(report: Path) -> None:
    text = report.read_text()
    assert "no &lt;theory&gt; today" in text
    assert "<theory>" not in text
    assert "anything &lt;at all&gt;" in text
    assert text.index('id="law-broken"') < text.index('id="law-nearestneighbours"')


def test_provenance_names_no_machine(report: Path) -> None:
    text = report.read_text()
    assert "limitlab 0" in text
    assert str(Path.home()) not in text
    assert os.uname().nodename not in re.sub(r"base64,[^\"]*", "", text) or len(os.uname().nodename) < 4


def test_a_fixed_date(monkeypatch: pytest.MonkeyPatch) -> None:
    from limitlab.show.report.write import header

    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert "01 January 1970" in header(quick=True)


def test_the_ledger_shows_numbers_and_failures() -> None:
    claim = Claim("X1", "Coins", "A <fair> coin.", figure="coin")
    good = Record(claim, "pass", Outcome((below("y", 0.5, 1.0),), {"x": float("inf")}, note="mind the gap", seconds=1.25))
    bad = Record(Claim("X2", "Coins", "An unfair coin."), "fail", error="ZeroDivisionError: division by zero")
    section = ledger_section([good, bad])
    assert section.failed
    for words in ("A &lt;fair&gt; coin.", "x = inf", "below 1", "mind the gap", "1.2", "division by zero", "#figure-coin"):
        assert words in section.body
    assert not ledger_section([good]).failed


def test_exit_code_1_when_something_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bad = Claim(
        "X2",
        "Coins",
        "An unfair coin.",
        laws=("NearestNeighbours",),
        check=lambda quick: Outcome((below("x", 2.0, 1.0),)),
    )
    for module in ("ledger.claims", "show.report.write"):
        monkeypatch.setattr(f"limitlab.{module}.all_claims", lambda: {"X2": bad})
    path = tmp_path / "report.html"
    result = CliRunner().invoke(app, ["report", "--laws", "nearest-neighbours", "--workers", "1", "--out", str(path)])
    assert result.exit_code == 1, result.output
    assert "failed: X2" in result.stdout
    assert "x = 2" in path.read_text()


def test_worker_processes_give_the_same_sections() -> None:
    parts = [
        PartTask("law", "NearestNeighbours", True, law=NearestNeighbours),
        PartTask("figure", "interpolating-fit", True),
    ]
    here, there = (run_tasks(parts, engine).cells for engine in (None, 2))
    assert [part.section(cell) for part, cell in zip(parts, here, strict=True)] == [
        part.section(cell) for part, cell in zip(parts, there, strict=True)
    ]
    assert not parts[0].section(here[0]).failed


def test_a_part_that_breaks_is_a_failed_section() -> None:
    parts = [PartTask("figure", "no-such-figure", True), PartTask("law", "NearestNeighbours", True, law=NearestNeighbours)]
    run = run_tasks(parts)
    section = parts[0].section(run.cells[0], run.failures[0].error)
    assert section.failed
    assert "no-such-figure" in section.body
    assert run.cells[1] is not None


def test_a_second_report_computes_only_what_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write_report(tmp_path / "a.html", laws=[NearestNeighbours], store=tmp_path / "cells")
    monkeypatch.setattr(NearestNeighbours, "measured", lambda *_, **__: 1 / 0)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert write_report(tmp_path / "b.html", laws=[NearestNeighbours], store=tmp_path / "cells") == first
    monkeypatch.setattr("limitlab.show.report.jobs.source_digest", lambda: "another version of the package")
    part = PartTask("law", "NearestNeighbours", True, str(tmp_path / "cells"), law=NearestNeighbours)
    assert not part.section(part.run()).failed  # a section is made anew, from the draws that were kept


def test_page_pieces() -> None:
    assert page.table([]) == ""
    assert '<td data-label="x" class="number">1</td>' in page.table([{"x": 1}])
    assert "&lt;b&gt;" in page.table([{"x": "<b>"}])
    assert "<b>" in page.table([{"x": "<b>"}], raw=["x"])
