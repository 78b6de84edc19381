"""The benchmarks' page: its programs agree with what the documentation shows, and a row never hides a faster peer."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Programs of the folder `benchmarks`, by name; forgotten afterwards."""
    names = ("run", "peers", "growth", "timing")  # other folders have programs of these names too
    others = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield importlib.import_module
    for name in names:
        sys.modules.pop(name, None)
    sys.modules.update(others)


def test_the_how_to_is_a_page_of_the_one_command(program):
    run, page = program("run"), (ROOT / "docs" / "howto" / "benchmarks.md").read_text(encoding="utf-8")
    assert page.startswith(run.HEAD)
    assert all(words in page for words in (run.RATIOS, run.GROWTH, run.ROOF, run.PEERS))
    assert re.search(r"^Measured by `limitlab bench --peers` at commit [0-9a-f]{7,}: ", page, re.MULTILINE)
    assert re.findall(r"^## (.*)$", page, re.MULTILINE) == ["Ratios", *run.SECTIONS]
    measured = {row.split(" | ")[0].strip("| ") for row in page.split("## Growth")[0].splitlines() if row.startswith("| ")}
    assert measured - {"benchmark"} == {path.stem.removeprefix("bench_") for path in run.benchmarks()}
    assert "failed" not in page


def test_every_program_of_the_page_is_there(program):
    run = program("run")
    assert all((run.HERE / file).exists() for file, _ in run.SECTIONS.values())


def test_a_row_of_a_faster_peer_says_so(program):
    peers = program("peers")
    task = peers.Task("torch", "a sum", "", lambda: 0.0, 1e-9, "it adds in another order")
    assert peers.row(task, 0.5).endswith("| the peer is faster: it adds in another order |")
    assert peers.row(task, 2.0).endswith("| 2 | 1e-09 | it adds in another order |")
    assert peers.row(task, "could not be installed: no space").endswith("| - | 1e-09 | could not be installed: no space |")
    assert all(each.peer in peers.ENVIRONMENTS and each.remark for each in peers.TASKS)


def test_growth_finds_the_exponent_of_a_power_law(program):
    growth = program("growth")
    sizes = (10, 20, 40)
    assert growth.slope(sizes, tuple(3.0 * size**2.5 for size in sizes)) == pytest.approx(2.5)
    seconds, peak = growth.measured(lambda size: np.ones(size), 10**6)
    assert seconds > 0
    assert 8e6 <= peak < 9e6
