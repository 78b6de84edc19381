"""The explorer in a real browser: what a visitor does, and what a hostile one tries."""

from __future__ import annotations

import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

CURVES = """() => Array.from(Bokeh.documents[0]._all_models.values())
  .filter(model => model.type == "ColumnDataSource" && model.data.y !== undefined && model.data.x.length > 1)
  .map(model => [model.data.low !== undefined ? "points" : model.data.z !== undefined ? "cells" : "line",
                 Array.from(model.data.z ?? model.data.y)])"""
"""What is drawn: curves, points and cells of heat maps, as the browser holds them."""


@pytest.fixture(scope="module")
def address(browser: Any) -> Iterator[str]:
    """`limitlab explore`, as a user starts it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "limitlab", "explore", "--port", str(port), "--no-show", "--upload", "5"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    url = f"http://127.0.0.1:{port}/"
    for _ in range(600):
        try:
            urllib.request.urlopen(url, timeout=60).read()
            break
        except OSError:
            assert server.poll() is None, server.communicate()[0]
            time.sleep(0.1)
    yield url
    server.send_signal(signal.SIGINT)
    try:
        server.wait(timeout=20)
    finally:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)


def drawn(page: Any, kind: str) -> list[list[float]]:
    """The numbers of everything of a kind that the page shows."""
    return [values for what, values in page.evaluate(CURVES) if what == kind]


def until(page: Any, wanted: Any, what: str, seconds: float = 20) -> Any:
    """Wait until something is true, and return it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = wanted()
        if found:
            return found
        page.wait_for_timeout(50)
    raise AssertionError(f"{what}: not within {seconds} s; the page says {status(page)!r}")


def status(page: Any) -> str:
    return str(page.locator("[role=status]").inner_text())


def opened(page: Any, url: str) -> Any:
    """The page at an address, with its first picture; nothing may come from elsewhere."""
    page.on("request", lambda request: strangers(request.url))
    page.goto(url)
    page.locator("[role=status]").wait_for()
    return page


def strangers(url: str) -> None:
    assert urlsplit(url).hostname in ("127.0.0.1", None), f"the page asked for {url}"


def state_of(page: Any) -> dict[str, str]:
    return {key: values[0] for key, values in parse_qs(urlsplit(page.url).query).items()}


def test_a_law_is_found_and_a_slider_moves_the_curve(page: Any, address: str) -> None:
    """Search, choose with the keyboard alone, turn a slider with the keyboard alone; the address follows."""
    opened(page, address)
    until(page, lambda: drawn(page, "line"), "a first curve")
    page.locator("input[placeholder*='subject']").fill("tensor matri")
    chooser = page.locator("select[size]").first
    until(page, lambda: "SpikedTensor" in chooser.inner_text() and "Ridge" not in chooser.inner_text(), "a shorter list")
    chooser.select_option("SpikedTensor")
    until(page, lambda: state_of(page).get("law") == "SpikedTensor", "the law in the address")

    def overlaps() -> list[list[float]]:
        return [line for line in drawn(page, "line") if abs(line[0] - 0.5) < 1e-9]  # they start there

    before = until(page, overlaps, "the curve of the law")[0]
    until(page, lambda: page.get_by_role("slider", name="snr").count(), "the slider of the signal strength")
    page.get_by_role("slider", name="snr").focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    until(page, lambda: "p.snr" in state_of(page), "the parameter in the address")
    after = until(page, lambda: [line for line in overlaps() if line[-1] != before[-1]], "another curve")[0]
    assert float(state_of(page)["p.snr"]) > 2
    assert after[-1] > before[-1]  # more signal, more overlap
    assert page.locator("mjx-container, .equation svg").count() > 0  # typeset, with nothing from elsewhere


def test_an_experiment_runs_and_is_cancelled(page: Any, address: str) -> None:
    opened(page, address + "?law=Ridge&x=ratio:0.5:5:log&size=40&draws=6")
    until(page, lambda: drawn(page, "line"), "the curve")
    page.get_by_role("button", name="Run experiment").click()
    until(page, lambda: drawn(page, "points"), "points")
    until(page, lambda: "6 draws of size 40 at 9 points" in status(page), "the end")
    until(page, lambda: len(drawn(page, "points")[0]) == 9, "all points")
    # now one that would take minutes
    opened(page, address + "?law=Ridge&x=ratio:0.5:5:log&size=300&draws=500")
    until(page, lambda: drawn(page, "line"), "the curve")
    page.get_by_role("button", name="Run experiment").click()
    until(page, lambda: drawn(page, "points"), "first points while it runs")
    assert page.get_by_role("button", name="Cancel").is_enabled()
    page.get_by_role("button", name="Cancel").click()
    until(page, lambda: "cancelled" in status(page), "the word")
    until(page, lambda: page.get_by_role("button", name="Cancel").is_disabled(), "nothing more to cancel")
    last = drawn(page, "points")
    page.wait_for_timeout(600)
    assert drawn(page, "points") == last  # nothing arrives any more


def test_a_phase_diagram_and_a_plan(page: Any, address: str) -> None:
    from limitlab.laws import Ridge

    opened(page, address + "?law=Ridge&mode=phase&x=ratio:0.1:10:log&y=ridge:0.001:1:log&grid=12&show=test_error")
    cells = until(page, lambda: drawn(page, "cells"), "a heat map")[0]
    assert len(cells) == 144
    expected = float(Ridge(ratio=0.1, ridge=0.001).theory().test_error)
    assert cells[0] == pytest.approx(expected, rel=1e-6)
    page.get_by_role("button", name="Plan").click()
    until(page, lambda: state_of(page)["mode"] == "plan", "the mode in the address")
    opened(page, address + "?law=Ridge&mode=plan&x=ratio:0.1:10:log&target=0.4")
    page.get_by_role("button", name="Solve").click()
    until(page, lambda: page.get_by_text("gives test_error = 0.4").count(), "the answer")


def test_compare_says_a_verdict_with_its_budget(page: Any, address: str) -> None:
    opened(page, address + "?law=Ridge&mode=compare&p.ratio=0.5")
    page.get_by_role("button", name="Compare", exact=True).last.click()
    verdict = page.locator(".verdict b")
    verdict.wait_for()
    assert verdict.inner_text() in ("agree", "underpowered")
    assert page.locator("th", has_text="finite-size allowance").count() == 1


def test_a_permalink_restores_the_state(page: Any, browser: Any, address: str) -> None:
    opened(page, address)
    until(page, lambda: drawn(page, "line"), "the curve")
    page.get_by_role("slider", name="ratio").focus()
    page.keyboard.press("ArrowLeft")
    page.get_by_role("button", name="Phase diagram").click()
    until(page, lambda: state_of(page)["mode"] == "phase" and "p.ratio" in state_of(page), "the state in the address")
    cells = until(page, lambda: drawn(page, "cells"), "a heat map")[-1]
    other = browser.new_context().new_page()
    opened(other, page.url)
    assert until(other, lambda: drawn(other, "cells"), "the same heat map")[-1] == cells
    assert state_of(other) == state_of(page)
    other.context.close()
    opened(page, address + "?law=Nonsense&p.ratio=-1&x=ratio:0:9&size=1e12&theme=%3Cscript%3E")
    assert (
        "there is no law 'Nonsense'" in page.locator("[role=alert]").inner_text()
    )  # a broken address is repaired, and says so
    until(page, lambda: drawn(page, "line"), "a curve all the same")


def test_two_visitors_do_not_meet(page: Any, browser: Any, address: str) -> None:
    context = browser.new_context()
    other = context.new_page()
    opened(page, address + "?law=Ridge&p.noise=0.1")
    opened(other, address + "?law=Ridge&p.noise=1")
    mine, theirs = (until(each, lambda each=each: drawn(each, "line"), "a curve")[0] for each in (page, other))
    assert theirs[0] > mine[0] + 0.5  # the noise
    other.get_by_role("slider", name="ridge").focus()
    for _ in range(3):
        other.keyboard.press("ArrowRight")
    until(other, lambda: "p.ridge" in state_of(other), "the other's change")
    assert "p.ridge" not in state_of(page)
    assert drawn(page, "line")[0] == mine
    context.close()


def test_a_table_is_forecast_and_hostile_files_are_refused(page: Any, address: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((120, 3))
    table = tmp_path / "houses.csv"
    lines = [f"{a:.5f},{b:.5f},{c:.5f},{a - b + 0.3 * rng.standard_normal():.5f}" for a, b, c in inputs]
    table.write_text("\n".join(["size,age,rooms,price", *lines]) + "\n", encoding="utf-8")
    junk = tmp_path / "junk.csv"
    junk.write_bytes(rng.bytes(10_000_000))
    pickled = tmp_path / "pickled.csv"
    pickled.write_bytes(pickle.dumps(_Bomb()))
    formula = tmp_path / "formula.csv"
    formula.write_text("name,price\n=cmd|' /C calc'!A0,1\nb,2\n", encoding="utf-8")

    opened(page, address + "?mode=forecast")
    drop = page.locator("input[type=file]")
    for file, words in ((junk, r"too large|takes 5 MB"), (pickled, "not a text file"), (formula, "spreadsheet formulas")):
        drop.set_input_files(file)
        until(page, lambda words=words: re.search(words, page_text(page)), f"{file.name} refused")
        page.reload()
        page.locator("[role=status]").wait_for()
    assert not (tmp_path / "boom").exists()
    drop.set_input_files(table)
    until(page, lambda: "4 columns" in status(page), "the table read")
    page.get_by_role("button", name="Forecast").click()
    until(page, lambda: drawn(page, "line"), "a forecast", 40)
    assert "price" in page.locator(".verdict").inner_text()


class _Bomb:
    """What a pickle can do when it is read."""

    def __reduce__(self) -> Any:
        return os.system, ("touch boom",)


def page_text(page: Any) -> str:
    """All text that a visitor can read, also inside widgets."""
    return str(page.locator("body").inner_text()) + " ".join(
        page.locator(".filepond--root, [role=status]").all_inner_texts()
    )


BOXES = """() => { const found = []
  const walk = root => { for (const each of root.querySelectorAll("*")) {
    if (each.classList.contains("bk-Figure")) found.push(each.getBoundingClientRect().toJSON())
    if (each.shadowRoot) walk(each.shadowRoot) } }
  walk(document)
  return [innerWidth, innerHeight, found] }"""


@pytest.mark.parametrize(("width", "height", "share"), [(1440, 900, 0.3), (1024, 768, 0.6), (390, 844, 0.35)])
def test_the_picture_is_large_and_inside_the_window(
    browser: Any, address: str, width: int, height: int, share: float
) -> None:
    context = browser.new_context(viewport={"width": width, "height": height}, is_mobile=width < 500)
    page = context.new_page()
    opened(page, address + "?law=Ridge")
    until(page, lambda: len(drawn(page, "line")) >= 3, "the curves of the headline view")
    inner, tall, (box, *_) = page.evaluate(BOXES)
    assert inner == width  # nothing is wider than the window
    assert box["width"] * box["height"] >= share * width * height
    assert box["bottom"] <= tall
    assert box["right"] <= width + 1
    if width < 500:
        assert box["width"] >= 360
        assert box["height"] >= 300
        assert page.get_by_role("slider", name="noise").bounding_box()["y"] > box["bottom"]
    context.close()


def test_the_picture_stays_in_place_and_keeps_the_previous_curve(page: Any, address: str) -> None:
    """Neither a slider nor an experiment moves it; every slider has a name."""
    opened(page, address + "?law=Ridge")
    until(page, lambda: "standard errors of the limit" in status(page), "a sentence about the gap of the points")
    until(page, lambda: len(drawn(page, "points")) == 3, "points at three curves")
    assert all(len(points) == 8 for points in drawn(page, "points"))
    first = page.evaluate(BOXES)
    until(page, lambda: page.get_by_role("slider", name="ratio").count() == 1, "a named slider")
    page.wait_for_timeout(1200)
    page.get_by_role("slider", name="noise").focus()
    places = []
    for _ in range(4):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(120)
        places.append(page.evaluate(BOXES))
    ghosts = """() => Array.from(Bokeh.documents[0]._all_models.values())
      .filter(model => model.type == "ColumnDataSource" && model.data.xs !== undefined).map(model => model.data.xs.length)"""
    until(page, lambda: max(page.evaluate(ghosts)) == 3, "the grey lines")
    page.get_by_role("button", name="Run experiment").click()
    for _ in range(8):
        page.wait_for_timeout(60)
        places.append(page.evaluate(BOXES))
    assert all(place == first for place in places)


def test_the_present_value_is_marked_on_the_curve(page: Any, address: str) -> None:
    opened(page, address + "?law=Ridge&mode=curve&x=ratio:0.1:10:log&p.ratio=3")
    until(page, lambda: drawn(page, "line"), "the curve")
    dots = """() => Array.from(Bokeh.documents[0]._all_models.values())
      .filter(model => model.type == "ColumnDataSource" && model.data.here !== undefined && model.data.here.length > 0)
      .map(model => [model.data.here[0], model.data.there[0]])"""
    (here, there) = until(page, lambda: page.evaluate(dots), "a dot")[0]
    from limitlab.laws import Ridge

    assert here == 3
    assert there == pytest.approx(float(Ridge(ratio=3, noise=0.5).theory().test_error), rel=1e-3)


WORDS = (
    "overfitting",
    "neural network",
    "transformer",
    "PCA",
    "early stopping",
    "qqqq",
    "token",
    "ridge",
    "attention",
    "svm",
)


@pytest.mark.parametrize("law", ["Ridge", "TokenFlow"])
def test_every_search_gives_a_list_or_a_sentence_and_no_error(page: Any, address: str, law: str) -> None:
    opened(page, address + f"?law={law}")
    chooser = page.locator("select[size]").first
    until(page, lambda: law in chooser.inner_text(), "the list")
    for words in WORDS:
        before = chooser.inner_text()
        page.locator("input[placeholder*='subject']").fill(words)
        until(page, lambda before=before: chooser.inner_text() != before, f"a list for {words}")
        names = chooser.locator("option:not([disabled])").all_inner_texts()
        assert any(name.strip().endswith(")") for name in names), words
        if words in ("overfitting", "qqqq"):
            assert "No law has the words" in chooser.inner_text()
    assert state_of(page).get("law", law) == law


def test_downloads_are_a_picture_numbers_and_a_program_that_runs(page: Any, address: str, tmp_path: Path) -> None:
    opened(page, address + "?law=Ridge&x=ratio:0.1:10:log&p.ridge=0.01")
    line = until(page, lambda: drawn(page, "line"), "the curve")[0]
    found = {}
    for kind in ("PNG", "CSV", "Python"):
        with page.expect_download() as download:
            page.locator("a, button").filter(has_text=re.compile(f"^{kind}$")).first.click()
        found[kind] = Path(download.value.path()).read_bytes()
        assert download.value.suggested_filename == f"Ridge-curve.{'py' if kind == 'Python' else kind.lower()}"
    assert found["PNG"].startswith(b"\x89PNG")
    rows = found["CSV"].decode().splitlines()
    assert rows[0] == "ratio,kind,observable,value,standard_error,draws"
    assert [float(row.split(",")[3]) for row in rows[1:]] == pytest.approx(line)
    program = found["Python"].decode() + "print(repr(limit['test_error'].values.tolist()))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert eval(done.stdout) == pytest.approx(line)
