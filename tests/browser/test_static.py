"""The static explorer in a real browser, from files on disk: sliders, labels, sizes of the window, dark mode, and the search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from limitlab.laws import LogisticCalibration, MarchenkoPastur, Ridge
from limitlab.show.explorer.static import write_pages

SIZES = [(1440, 900), (1024, 768), (390, 844)]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of three laws."""
    folder = tmp_path_factory.mktemp("site")
    write_pages(folder, [Ridge, MarchenkoPastur, LogisticCalibration], seconds=3)
    return folder


def opened(page: Any, path: Path) -> Any:
    """The page of a file; a request for anything else fails the test."""
    page.on("request", lambda request: local(request.url))
    page.goto(path.as_uri())
    page.locator(".ll-curve").first.wait_for(state="attached")
    return page


def local(url: str) -> None:
    assert url.startswith(("file:", "data:")), f"the page asked for {url}"


def curves(page: Any) -> list[str]:
    return list(page.locator(".ll-curve").evaluate_all("lines => lines.map(line => line.getAttribute('d'))"))


def test_a_slider_moves_the_curve(page: Any, site: Path) -> None:
    opened(page, site / "Ridge.html")
    slider = page.get_by_role("slider", name="noise")
    assert slider.get_attribute("aria-valuetext") == "0.5"
    before, box = curves(page), page.locator(".ll-figure svg").last.bounding_box()
    assert len(before) == 3
    assert page.locator(".ll-ghost").count() == 0
    slider.focus()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    assert float(slider.get_attribute("aria-valuetext")) > 0.5
    assert page.locator(".ll-slider b").inner_text() == slider.get_attribute("aria-valuetext")
    after = curves(page)
    assert len(after) == 3
    assert all(new != old for new, old in zip(after, before, strict=True))
    assert page.locator(".ll-ghost").count() == 3  # the curves at the declared value stay as grey lines
    assert "grey" in page.get_by_role("status").inner_text()
    assert page.locator(".ll-figure svg").last.bounding_box() == box  # the plot neither moves nor changes its size
    page.get_by_role("button", name="Reset").click()
    assert curves(page) == before


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("law", ["Ridge", "MarchenkoPastur", "LogisticCalibration"])
def test_the_page_fits_the_window(page: Any, site: Path, law: str, size: tuple[int, int]) -> None:
    width, height = size
    page.set_viewport_size({"width": width, "height": height})
    opened(page, site / f"{law}.html")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for plot in page.locator(".ll-figure > svg").all():
        box = plot.bounding_box()
        assert box["width"] >= min(width - 40, 900)
        assert box["height"] >= (200 if law == "LogisticCalibration" else 300)  # the latter has two panels
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        texts = plot.locator("text").evaluate_all(
            "all => all.map(t => { const b = t.getBoundingClientRect(); return [b.left, b.right, b.top, b.bottom]; })"
        )
        assert len(texts) >= 5
        for left, right, top, bottom in texts:
            assert left >= box["x"] - 1
            assert right <= box["x"] + box["width"] + 1
            assert top >= box["y"] - 1
            assert bottom <= box["y"] + box["height"] + 1
    first = page.locator(".ll-figure > svg").first.bounding_box()
    assert first["y"] + first["height"] <= height  # without scrolling
    if law == "Ridge":
        control = page.get_by_role("slider", name="noise").bounding_box()
        assert control["y"] + control["height"] <= height


def test_dark_mode_follows_the_system(browser: Any, site: Path) -> None:
    colours = {}
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)
        shown = opened(context.new_page(), site / "Ridge.html")
        colours[scheme] = shown.evaluate("getComputedStyle(document.body).backgroundColor")
        context.close()
    assert colours == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 28)"}


def test_the_index_has_pictures_and_a_search(page: Any, site: Path) -> None:
    opened(page, site / "index.html")
    assert page.locator(".ll-card").count() == 3
    assert page.locator(".ll-thumb svg .ll-curve").count() >= 5
    search = page.get_by_role("searchbox", name="Find a law")
    search.fill("penalty")
    visible = page.locator(".ll-card:visible code").all_inner_texts()
    assert "Ridge" in visible
    assert "MarchenkoPastur" not in visible
    search.fill("unheard-of")
    assert page.locator(".ll-card:visible").count() == 0
    assert "No law" in page.get_by_role("status").inner_text()
    search.fill("eigenvalue pure noise")
    page.locator(".ll-card:visible").first.click()
    page.wait_for_url("**/MarchenkoPastur.html")
    assert page.locator(".ll-area").count() == 3  # the histograms
