"""The live figures of the documentation: every law has one below its question, it is small, and a sample of them is up to date."""

from __future__ import annotations

import importlib.util
import json
import re
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from limitlab._core.registry import all_laws
from limitlab.show.explorer.static._frames import live_view, reduced
from markdown_blocks import ROOT


@pytest.fixture(scope="module")
def extension() -> ModuleType:
    """The extension of the documentation, docs/_ext/live_figures.py."""
    spec = importlib.util.spec_from_file_location("live_figures", ROOT / "docs" / "_ext" / "live_figures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("law", all_laws())
def test_every_law_has_a_small_live_figure_on_its_page(law: str, extension: ModuleType) -> None:
    live = extension.numbers(law)
    assert (extension.NUMBERS / f"{law}.json").stat().st_size <= extension.LARGEST
    assert live["law"] == law
    assert live["finding"] == all_laws()[law].headline.finding  # type: ignore[union-attr]
    assert live["start"] in live["frames"]
    page = (ROOT / "docs" / "theory" / f"{all_laws()[law].page}.md").read_text(encoding="utf-8")
    shown = re.search(r"\{live-figure\} (.*)", extension.with_figures(page))
    assert shown is not None
    assert law in shown[1].split()


def test_every_law_has_a_card_that_links_to_its_page(extension: ModuleType) -> None:
    cards = extension.law_cards()
    links = re.findall(r'<a class="ll-card" href="([^"]+)"', cards)
    assert len(links) == len(all_laws()) == cards.count('class="ll-thumb"')
    for link in links:
        assert (ROOT / "docs" / link).with_suffix(".md").exists()


def test_no_numbers_of_other_laws_are_left(extension: ModuleType) -> None:
    assert {path.stem for path in extension.NUMBERS.iterdir()} == set(all_laws())


@pytest.mark.parametrize("law", ["Ridge", "MarchenkoPastur", "EquiangularTokens", "NearestNeighbours"])
def test_the_numbers_are_up_to_date(law: str, extension: ModuleType) -> None:
    """The stored lines are those of the law at every value of the slider, and the points those of its experiment."""
    stored = extension.numbers(law)
    again = reduced(live_view(all_laws()[law], values=(9, 1), seconds=60, vary_points=False), 10**6, (9,))
    (slider,), (now,) = stored["sliders"], again["sliders"][:1]
    assert set(slider["values"]) <= set(now["values"]), "run `python docs/_ext/live_figures.py`"
    for position, value in enumerate(slider["values"]):
        old, new = stored["frames"][str(position)], again["frames"][str(now["values"].index(value))]
        for before, after in zip(old["l"], new["l"], strict=True):
            x, y = coordinates(stored, before)
            at, expected = coordinates(again, after)
            height = np.ptp(old["r"][0])
            assert np.abs(np.interp(x, at, expected) - y).max() < 0.02 * height, "run `python docs/_ext/live_figures.py`"
    for kind in ("p", "h"):
        before, after = stored["frames"][stored["start"]].get(kind, []), again["frames"][again["start"]].get(kind, [])
        for old, new in zip(before, after, strict=True):
            assert old[1] == pytest.approx(new[1], rel=1e-3, abs=1e-6), "run `python docs/_ext/live_figures.py`"


def coordinates(live: dict[str, Any], line: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    _, places, values = line
    return np.array([live["axis"][place] for place in places]), np.array(values, dtype=float)


def test_the_numbers_are_plain_json(extension: ModuleType) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not allowed in JSON")

    for path in extension.NUMBERS.iterdir():
        json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
