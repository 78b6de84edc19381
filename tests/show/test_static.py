"""The static explorer: its numbers are those of the laws, its pages are self-contained and small, and refusals have a reason."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from limitlab.errors import Refused
from limitlab.laws import Draw, GaussianEquivalence, Law, MarchenkoPastur, Ridge, Values, parameter
from limitlab.plotting.headline import headline_view
from limitlab.show.cli import app
from limitlab.show.explorer.static import write_pages
from limitlab.show.explorer.static._frames import live_view, slider_values, vertices
from limitlab.show.explorer.static._pages import left_out


@pytest.fixture(scope="module")
def ridge() -> dict[str, Any]:
    return live_view(Ridge, values=(5,))


def line_at(live: dict[str, Any], key: str, number: int, places: Any) -> np.ndarray:
    """The drawn line at values of a logarithmic axis, which the page joins by straight segments."""
    _, positions, values = live["frames"][key]["l"][number]
    return np.interp(np.log(places), np.log([live["axis"][place] for place in positions]), values)


def test_a_frame_is_the_prediction_at_the_values_of_the_sliders(ridge: dict[str, Any]) -> None:
    (slider,) = ridge["sliders"]
    assert slider["name"] == "noise"
    assert ridge["start"] == str(slider["values"].index("0.5"))
    for position, value in enumerate(slider["values"]):
        for number, penalty in enumerate((1e-3, 1e-2, 0.1)):
            places = np.array([0.2, 1.0, 3.0])
            law = Ridge(ridge=penalty, noise=float(value))
            expected = law.evaluate(ratio=places)["test_error"]
            assert line_at(ridge, str(position), number, places) == pytest.approx(expected, rel=0.02, abs=5e-3)


def test_the_declared_points_are_those_of_the_headline_view(ridge: dict[str, Any]) -> None:
    view = headline_view(Ridge)
    points = [series for series in view.series if series.kind == "points"]
    for series, (_, means, errors) in zip(points, ridge["frames"][ridge["start"]]["p"], strict=True):
        assert means == pytest.approx(series.y, rel=1e-4)
        assert errors == pytest.approx(series.error, rel=1e-4)


def test_experiments_run_at_every_value_if_they_are_cheap(ridge: dict[str, Any]) -> None:
    tops = [max(frame["p"][0][1]) for _, frame in sorted(ridge["frames"].items(), key=lambda item: int(item[0]))]
    assert len(tops) == 5
    assert np.all(np.diff(tops) > 0)  # more noise, a higher peak in the simulation
    without = live_view(Ridge, values=(3,), vary_points=False)
    assert [key for key, frame in without["frames"].items() if "p" in frame] == [without["start"]]


def test_a_histogram_has_the_heights_of_the_view() -> None:
    live = live_view(MarchenkoPastur, values=(3,))
    bars = [series for series in headline_view(MarchenkoPastur).series if series.kind == "histogram"]
    for series, (_, heights) in zip(bars, live["frames"][live["start"]]["h"], strict=True):
        assert heights == pytest.approx(series.y, rel=1e-4)
    assert len(live["places"]) == len(bars[0].x)


def test_a_choice_is_a_slider() -> None:
    live = live_view(GaussianEquivalence, values=(3,), vary_points=False)
    (slider,) = live["sliders"]
    assert slider["choice"]
    assert slider["values"][slider["start"]] == "relu"
    assert len(live["frames"]) == 3


class Bounded(Law):
    """How large is a number that exists up to a bound?"""

    observables = ("test_error",)
    x: float = parameter(1.0, "a number", symbol="x", least=0, most=2)
    scale: float = parameter(1.0, "a factor", symbol="s", least=0)
    slope: float = parameter(1.0, "a slope", symbol="b", least=0)
    idle: float = parameter(1.0, "a number without effect", symbol="c", least=0)

    def predicted(self, x: Any, scale: Any) -> Values:
        if self.slope > 1.2 and np.any(scale > 1.2):
            raise ValueError("scale and slope are not allowed: one of them must be at most 1.2")
        return {"test_error": scale * (1 + self.slope * x)}

    def measured(self, draw: Draw, scale: Any) -> Values:
        return {"test_error": scale * (1 + self.slope * self.x)}


def test_a_refused_combination_is_left_out_with_its_reason() -> None:
    live = live_view(Bounded, values=(5, 5))
    assert [slider["name"] for slider in live["sliders"]] == ["scale", "slope"]  # not the number without effect
    refused = {key for key in live["missing"]}
    assert refused
    for key in refused:
        scale, slope = (float(s["values"][int(i)]) for s, i in zip(live["sliders"], key.split(","), strict=True))
        assert scale > 1.2
        assert slope > 1.2
        assert "must be at most 1.2" in live["missing"][key]
    assert len(live["frames"]) + len(refused) == 25
    said = left_out(live)
    assert f"{len(refused)} of 25 combinations" in said
    assert "must be at most" in said


def test_a_figure_without_a_slider_says_why() -> None:
    class Still(Bounded):
        """How large is a number that no parameter changes?"""

        def predicted(self, x: Any, scale: Any) -> Values:
            return {"test_error": 1 + x}

    live = live_view(Still, vary_points=False)
    assert live["sliders"] == []
    assert "no other number changes this picture" in live["note"]


def test_the_time_limit_leaves_combinations_out_and_keeps_the_declared_one() -> None:
    class Slow(Bounded):
        """How large is a number that takes time?"""

        def predicted(self, x: Any, scale: Any) -> Values:
            total = 0.0
            for _ in range(300_000):
                total += 1e-9
            return {"test_error": scale * (1 + self.slope * x) + total}

    live = live_view(Slow, seconds=0.15)
    assert live["start"] in live["frames"]
    assert len(live["frames"]) < 63
    assert all("time limit" in reason for reason in live["missing"].values())


def test_a_large_live_figure_is_reduced() -> None:
    whole = live_view(Ridge, vary_points=False)
    size = len(json.dumps(whole))
    small = live_view(Ridge, vary_points=False, largest=size // 3)
    assert len(json.dumps(small, separators=(",", ":"), ensure_ascii=False).encode()) <= size // 3
    assert small["start"] in small["frames"]


def test_the_values_of_a_slider_respect_the_bounds_and_contain_the_declared_value() -> None:
    assert 0.37 in slider_values(Ridge, "noise", 0.37, 9)
    assert min(slider_values(Ridge, "noise", 0.37, 9)) >= 0
    assert min(slider_values(Bounded, "x", 1.9, 9)) >= 0
    assert max(slider_values(Bounded, "x", 1.9, 9)) <= 2


@pytest.mark.parametrize("log", [False, True])
def test_few_vertices_draw_the_line(log: bool) -> None:
    x = np.geomspace(0.1, 10, 400)
    y = 1 + np.exp(-4 * (x - 1) ** 2)
    y[250] = np.inf
    kept = vertices(x, y, (log, log), (1.0, 2.0), 1e-3)
    assert {0, 249, 250, 251, 399} <= set(kept)
    assert len(kept) < 120
    change = np.log if log else np.asarray
    finite = [i for i in range(400) if i != 250]
    joints = [i for i in kept if i != 250]
    drawn = np.interp(change(x[finite]), change(x[joints]), change(y[joints]))
    height = float(np.diff(change([1.0, 2.0]))[0])
    assert np.abs(drawn - change(y[finite])).max() < 1.01e-3 * height


def test_pages_are_self_contained_and_small(tmp_path: Path) -> None:
    store = tmp_path / "store"
    summary = write_pages(tmp_path / "pages", [Ridge, MarchenkoPastur], store=store)
    assert {path.name for path in (tmp_path / "pages").iterdir()} == {"index.html", "Ridge.html", "MarchenkoPastur.html"}
    for page in (tmp_path / "pages").iterdir():
        text = page.read_text(encoding="utf-8")
        assert page.stat().st_size < 400_000
        assert not re.search(r"""(?:src|href)=["'](?:https?:)?//|@import|url\(http|fetch\(|XMLHttpRequest""", text)
    assert summary.sizes["Ridge"] == (tmp_path / "pages" / "Ridge.html").stat().st_size
    stored = {path: path.stat().st_mtime_ns for path in store.rglob("*.cell")}
    again = write_pages(tmp_path / "pages", [Ridge, MarchenkoPastur], store=store)
    assert again == summary  # with the same times, since nothing was computed
    assert {path: path.stat().st_mtime_ns for path in store.rglob("*.cell")} == stored


def test_a_text_of_a_law_cannot_end_the_script(tmp_path: Path) -> None:
    class Hostile(Bounded):
        """How large is </script><script>alert(1)</script>?"""

    write_pages(tmp_path, [Hostile])
    for page in tmp_path.iterdir():
        assert "<script>alert" not in page.read_text(encoding="utf-8")


def test_the_command_writes_pages(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["explore", "--static", str(tmp_path / "site"), "ridge", "--workers", "1", "--json"])
    assert ran.exit_code == 0, ran.output
    told = json.loads(ran.stdout)
    assert Path(told["file"]).exists()
    assert 10_000 < told["bytes"]["Ridge"] < 400_000


def test_bad_options_are_refused(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["explore", "ridge", "early-stopping"]).exit_code != 0
    assert CliRunner().invoke(app, ["explore", "--store", str(tmp_path)]).exit_code != 0
    taken = tmp_path / "file"
    taken.write_text("")
    with pytest.raises(Refused, match="file"):
        write_pages(taken, [Ridge])
    with pytest.raises(Refused, match="seconds"):
        write_pages(tmp_path, [Ridge], seconds=0)
