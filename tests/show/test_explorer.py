"""The explorer without a browser: addresses, controls from declarations, programs that reproduce a view, workers, uploads."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
import time
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import limitlab
from limitlab._core.draws import plain_parameters
from limitlab._core.headline import headline_of
from limitlab._core.registry import all_laws
from limitlab.laws import FirstOrderDynamics, LinearNetwork, MaxMargin, NearestNeighbours, Ridge, SpikedTensor
from limitlab.plotting.headline import headline_view
from limitlab.show.explorer import _address as state
from limitlab.show.explorer import _plots as plots
from limitlab.show.explorer import jobs as work
from limitlab.show.explorer._address import (
    Axis,
    State,
    axes_of,
    changed_state,
    controls_of,
    explorable,
    law_of,
    matching,
    read,
    snippet,
    start,
    values_of,
)
from limitlab.show.explorer._page import Page, ParameterWidget, equations, knobs_of
from limitlab.show.explorer._uploads import checked_table
from limitlab.show.explorer._views import CappedDropper
from limitlab.show.explorer.jobs import Caps, Message, Pool

LAWS = explorable()
UNSEEN = {"SampledMeasure", "SquareMatrixEdge"}
"""Laws without a number to draw along."""


def silent(part: Any, done: int, total: int) -> None:
    pass


# -- declarations -----------------------------------------------------------------------------------------------------------


def test_every_law_can_be_explored_but_those_without_a_number() -> None:
    assert set(all_laws()) - set(LAWS) == UNSEEN


@pytest.mark.parametrize("name", LAWS)
def test_controls_start_inside_what_is_declared(name: str) -> None:
    law = LAWS[name]
    for control in controls_of(law).values():
        meta = law.parameters()[control.name]
        if control.form == "slider":
            assert meta.allows(control.low)
            assert meta.allows(control.high)
            assert control.low < control.high
            assert math.isinf(control.value) or control.low <= control.value <= control.high
            assert not control.log or control.low > 0
        assert (control.group == "advanced") == (meta.kind == "solver")
    shown = start(law)
    assert read(shown.address(), LAWS) == (shown, [])
    for end in (shown.x.low, shown.x.high):
        law_of(shown, LAWS).replace(**{shown.x.name: end})  # both ends of the first picture are allowed


@pytest.mark.parametrize("name", LAWS)
def test_every_law_shows_its_equations(name: str) -> None:
    assert equations(LAWS[name])


def test_search_looks_at_names_questions_subjects_and_declarations() -> None:
    assert "Ridge" in matching(LAWS, "RIDGE")["Regression"]
    assert "SpikedTensor" in matching(LAWS, "tensor noisy")["Online SGD"]
    assert matching(LAWS, "no such words at all") == {}


def test_a_knob_holds_one_value_in_its_field_and_on_its_slider() -> None:
    turned: list[str] = []
    knob = ParameterWidget(controls_of(Ridge)["ratio"], lambda: turned.append("ratio"))
    knob._slider.value = -1.0
    assert (knob.value, turned) == (0.1, ["ratio"])
    knob._field.value = "1000"  # outside the slider, inside the law
    assert (knob.value, knob._slider.value, len(turned)) == (1000, 2.0, 2)
    knob.show(math.inf)
    assert (float(knob.value), len(turned)) == (math.inf, 2)


def test_knobs_give_back_the_law_they_show() -> None:
    for name, kind in LAWS.items():
        law = state.at_start(kind)
        knobs = knobs_of(kind, lambda: None)
        plain = plain_parameters(law)
        for parameter, knob in knobs.items():
            knob.show(plain[parameter])
        assert kind(**{parameter: knob.value for parameter, knob in knobs.items()}) == law, name


# -- addresses --------------------------------------------------------------------------------------------------------------

AXES = st.sampled_from(axes_of(Ridge)).flatmap(
    lambda name: st.tuples(st.floats(1e-3, 1.0), st.floats(1.001, 1e3), st.booleans()).map(
        lambda ends: Axis(name, ends[0], ends[1], ends[2])
    )
)


@given(
    x=AXES,
    ridge=st.floats(0, 1e6),
    eigenvalues=st.lists(st.floats(0.1, 10), min_size=1, max_size=3),
    size=st.integers(2, state.MOST_SIZE),
    target=st.none() | st.floats(-1e6, 1e6),
    mode=st.sampled_from(["curve", "phase", "compare", "plan"]),
    theme=st.sampled_from(["light", "dark"]),
)
def test_an_address_restores_every_state(
    x: Axis, ridge: float, eigenvalues: list[float], size: int, target: float | None, mode: Any, theme: Any
) -> None:
    share = [1 / len(eigenvalues)] * len(eigenvalues)
    law = Ridge(ridge=ridge, eigenvalues=tuple(eigenvalues), weights=tuple(share), signal_energy=tuple(share))
    first = start(law)
    y = next(axis for axis in (first.x, first.y) if axis is not None and axis.name != x.name)
    shown = replace(first, x=x, y=y, size=size, target=target, mode=mode, theme=theme)
    found, remarks = read("?" + shown.address(), LAWS)
    assert remarks == []
    assert found == shown
    assert law_of(found, LAWS) == law


@given(st.text(max_size=200))
def test_no_address_is_an_error(text: str) -> None:
    for address in (text, f"law=Ridge&p.ratio={text}&x={text}&y={text}&show={text}&size={text}&target={text}&theme={text}"):
        shown, _ = read(address, LAWS)
        assert isinstance(law_of(shown, LAWS), LAWS[shown.law])


def test_what_an_address_gets_wrong_is_said() -> None:
    bad = (
        "law=Ridge&p.ratio=-1&p.nothing=2&x=ratio:0:9&y=magic&size=1e12&mode=fly&show=joy&p.eigenvalues="
        + "[1"
        + ",1" * 20000
        + "]"
    )
    shown, remarks = read(bad, LAWS)
    assert shown == replace(start(Ridge), mode=shown.mode)
    assert len(remarks) == 8
    assert any("ratio = -1 is not allowed: must be above 0" in remark for remark in remarks)
    assert any("too long" in remark for remark in remarks)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x=ratio:1", "write ratio:from:to"),
        ("x=ratio:1:2:log:3", "write ratio:from:to"),
        ("x=ratio:1:2:3:4:5:6", "write ratio:from:to"),
        ("x=ratio:" + "1" * 5000 + ":2", "ratio from inf to 2 is not allowed"),
        ("p.ratio=1" + "0" * 4000, "is not allowed: must be a number"),
        ("size=" + "1" * 5000, "size = 1111"),
        ("size=5001", "less than or equal to 5000"),
        ("grid=30000000", "grid = 30000000 is not allowed: input should be less than or equal to 80"),
        ("draws=0", "draws = 0 is not allowed: input should be greater than or equal to 1"),
        ("target=nan", "target = nan is not allowed"),
        ("scale=loud", "scale = loud is not allowed: input should be 'auto', 'linear' or 'log'"),
        ("show=test_error,joy", "Ridge has no curve 'joy'"),
    ],
)
def test_a_wrong_value_in_an_address_is_replaced_by_its_default(text: str, words: str) -> None:
    shown, remarks = read(f"law=Ridge&{text}", LAWS)
    assert shown == replace(start(Ridge), mode=shown.mode)
    (remark,) = remarks
    assert words in remark
    assert len(remark) < 450


def test_of_parameters_that_contradict_each_other_the_others_are_kept() -> None:
    shown, remarks = read("law=Ridge&p.eigenvalues=1,4&p.weights=0.5,0.5&p.noise=0.2", LAWS)
    assert shown.parameters == {"noise": 0.2}
    assert len(remarks) == 2
    assert all("must have one entry for each" in remark for remark in remarks)


@given(
    st.dictionaries(
        st.sampled_from(["x", "y", "observables", "size", "draws", "grid", "target", "mode"]), st.text() | st.floats()
    )
)
def test_a_wrong_change_on_the_page_leaves_the_state_as_it_was(changes: dict[str, Any]) -> None:
    before = start(Ridge)
    changes = {
        name: value for name, value in changes.items() if isinstance(value, str) or name not in ("x", "y", "observables")
    }
    after, remarks = changed_state(before, LAWS, changes)
    same = [name for name in changes if getattr(after, name) == getattr(before, name)]
    assert len(remarks) <= len(same)
    assert 2 <= after.grid <= state.MOST_GRID
    assert 2 <= after.size <= state.MOST_SIZE


# -- the work -------------------------------------------------------------------------------------------------------------


def test_a_curve_is_the_limit_point_by_point() -> None:
    for law, along, values in (
        (Ridge(), "ratio", [0.5, 1.5]),
        (SpikedTensor(times=0.5), "times", [0.1, 0.5]),
        (MaxMargin(), "ratio", [0.5, 3.0]),
    ):
        name = state.start(law).observables[0]
        found = work.curve(silent, law, along, values, [name])
        assert found["x"].tolist() == values
        for x, y in zip(values, found["y"][name], strict=True):
            assert y == pytest.approx(float(law.replace(**{along: x}).theory()[name]), rel=1e-8)


def test_of_further_dimensions_the_last_entry_is_shown() -> None:
    found = work.curve(silent, LinearNetwork(), "times", [0.5, 1.0], ["modes"])
    assert found["remark"] == "mode = 2"
    assert found["y"]["modes"].tolist() == LinearNetwork(times=(0.5, 1.0)).theory().modes.values[:, -1].tolist()
    law = FirstOrderDynamics(steps=2, paths=2000)
    assert work.curve(silent, law, "noise", [0.3], ["test_error"])["remark"] == "time = 2"


def test_points_are_the_draws_of_the_law() -> None:
    for law, along, values in (
        (Ridge(), "ridge", [0.1, 1.0]),
        (Ridge(), "ratio", [0.5, 2.0]),
        (SpikedTensor(times=0.2), "times", [0.1, 0.2]),
    ):
        name = start(law).observables[0]
        found = work.experiment(silent, law, along, values, [name], 20, 5)
        draws = limitlab.sweep(law, over={along: values}, sizes=20, seeds=5)[name].squeeze("size")
        assert found["mean"][name] == pytest.approx(draws.mean("seed").values)
        assert found["error"][name] == pytest.approx((draws.std("seed", ddof=1) / 5**0.5).values)


@pytest.mark.parametrize("law", [Ridge(), SpikedTensor(times=0.3), MaxMargin()])
def test_a_phase_diagram_has_a_row_per_value_of_y(law: Any) -> None:
    shown = start(law)
    assert shown.y is not None
    x, y = values_of(law, shown.x, 4)[1:3], values_of(law, shown.y, 5)[1:4]
    z = work.phase(silent, law, shown.x.name, x, shown.y.name, y, shown.observables[0])["z"]
    assert z.shape == (len(y), len(x))
    there = law.replace(**{shown.x.name: x[1], shown.y.name: y[2]})
    assert z[2, 1] == pytest.approx(float(there.theory()[shown.observables[0]]), rel=1e-8)


def test_a_plan_finds_all_answers_or_says_the_best() -> None:
    found = work.plan(silent, Ridge(ridge=0.1, noise=0.5), "test_error", 0.4, "ratio", 0.01, 10.0)
    assert float(Ridge(ridge=0.1, noise=0.5, ratio=found["solutions"][0]).theory().test_error) == pytest.approx(0.4)
    assert "out of reach" in work.plan(silent, Ridge(), "test_error", 0.0, "ratio", 0.01, 10.0)["sentence"]


# -- programs ---------------------------------------------------------------------------------------------------------------

VIEWS: dict[str, tuple[State, str]] = {
    "curve": (replace(start(Ridge(ridge=0.5)), mode="curve", draws=3, size=20), "limit['test_error'].sum().item()"),
    "along a coordinate": (replace(start(SpikedTensor(snr=3.0)), mode="curve"), "limit['overlap'].sum().item()"),
    "whole numbers": (replace(start(NearestNeighbours), mode="curve"), "limit['excess_risk'].sum().item()"),
    "phase": (replace(start(Ridge), mode="phase", grid=5), "limit['test_error'].sum().item()"),
    "compare": (replace(start(Ridge(ratio=0.5)), mode="compare"), "result.verdict"),
    "plan": (replace(start(Ridge), mode="plan", target=0.5), "float(answer['ratio'])"),
}


@pytest.mark.parametrize("name", VIEWS)
def test_the_program_of_a_view_runs_and_gives_its_numbers(name: str) -> None:
    shown, wanted = VIEWS[name]
    law = law_of(shown, LAWS)
    program = snippet(shown, law, measured=name == "curve")
    names: dict[str, Any] = {}
    exec(program, names)  # matplotlib has no window here (conftest)
    value = eval(wanted, names)
    if shown.mode == "curve":
        found = work.curve(silent, law, shown.x.name, values_of(law, shown.x), shown.observables)
        assert value == pytest.approx(found["y"][shown.observables[0]].sum())
    elif shown.mode == "phase":
        assert shown.y is not None
        z = work.phase(
            silent, law, shown.x.name, values_of(law, shown.x, 5), shown.y.name, values_of(law, shown.y, 5), "test_error"
        )["z"]
        assert value == pytest.approx(z.sum())
    elif shown.mode == "plan":
        assert float(law.replace(ratio=value).theory().test_error) == pytest.approx(0.5)
    else:
        assert value == "agree"


@pytest.mark.parametrize("name", LAWS)
def test_a_law_opens_with_its_headline_view(name: str) -> None:
    """The parameters, the observables and the axis of the page are those of the declaration."""
    law, declared = LAWS[name], headline_of(LAWS[name])
    shown = start(law)
    here = law_of(shown, LAWS)
    assert shown.mode == "headline"
    assert declared.at.keys() <= shown.parameters.keys()
    changes = state.headline_changes(shown, here)
    law(**{**declared.at, **changes})  # the worker can make the view
    for parameter, value in changes.items():
        assert value == getattr(law(**declared.at), parameter)
    if declared.x in axes_of(law) and declared.x == shown.x.name:
        assert (shown.x.low, shown.x.high, shown.x.log) == (*declared.over[:2], declared.scale == "log")


def test_the_headline_view_of_the_page_is_the_one_of_the_law(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    law = law_of(start(Ridge), LAWS)
    found = work.headline_points(silent, law, state.headline_changes(start(Ridge), law))["view"]
    assert found == headline_view(Ridge)
    assert len({series.curve for series in found.series}) == 3
    assert {series.kind for series in found.series} == {"line", "points"}
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(snippet(start(Ridge), law), names)
    assert names["view"] == found
    assert (tmp_path / "Ridge.png").read_bytes().startswith(b"\x89PNG")


# -- workers --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    made = Pool(Caps(seconds=2, megabytes=200, workers=2))
    yield made
    made.close()


async def heard(pool: Pool, job: str, most: int = 10**9, **request: Any) -> list[Message]:
    """What a job says, up to so many messages."""
    found: list[Message] = []
    stream = pool.run(job, **request)
    async for message in stream:
        found.append(message)
        if len(found) == most:
            break
    await stream.aclose()  # type: ignore[attr-defined]
    return found


def in_a_loop(visit: Coroutine[Any, Any, Any]) -> Any:
    """Run in an event loop of a thread's own: a browser's tests may have left one running in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, visit).result()


def test_a_worker_answers_refuses_is_stopped_and_replaced(pool: Pool) -> None:
    quick = dict(law=Ridge(), along="ratio", values=[0.5, 2.0], observables=["test_error"])
    endless = dict(
        law=Ridge(ratio=1.5), along="noise", values=[0.5, 1.0], observables=["test_error"], size=100, draws=20_000
    )

    async def visit() -> None:
        (answer,) = await heard(pool, "curve", **quick)
        assert answer.value["y"]["test_error"] == pytest.approx(Ridge().evaluate(ratio=[0.5, 2.0])["test_error"])
        (answer,) = await heard(pool, "curve", **{**quick, "along": "magic"})
        assert (answer.kind, "magic" in answer.value) == ("refused", True)
        parts = await heard(pool, "experiment", most=2, **endless)  # cancelled by not listening any more
        assert [part.kind for part in parts] == ["part", "part"]
        answer = (await heard(pool, "experiment", **endless))[-1]
        assert (answer.kind, answer.value.startswith("stopped after 2 s")) == ("refused", True)
        many = await asyncio.gather(*(heard(pool, "curve", **quick) for _ in range(5)))  # more than there are workers
        assert [found[-1].kind for found in many] == ["result"] * 5

    in_a_loop(visit())
    end = time.monotonic() + 10
    while pool.workers.unfinished and time.monotonic() < end:  # a task is struck off just after its result is there
        time.sleep(0.01)
    assert pool.workers.unfinished == 0


def test_a_worker_that_wants_too_much_memory_is_refused_and_says_so() -> None:
    """With time enough that a busy machine cannot bring up the other limit first."""
    large = dict(law=Ridge(), along="noise", values=[0.5], observables=["test_error"], size=20_000, draws=1)
    pool = Pool(Caps(seconds=120, megabytes=200, workers=1))
    try:
        answer = in_a_loop(heard(pool, "experiment", **large))[-1]
    finally:
        pool.close()
    assert answer.kind == "refused"
    assert "would hold about 6.4 GB, more than the 210 MB allowed" in answer.value


def test_a_widget_value_beyond_its_bounds_is_taken_back_with_a_sentence(pool: Pool) -> None:
    """The bounds of a number field hold in the browser only."""
    page = Page(LAWS, pool, replace(start(Ridge), mode="phase", grid=3))
    page.grid.value = 30_000_000
    assert (page.state.grid, page.grid.value) == (3, 3)
    assert "grid = 30000000 is not allowed" in page.status.object
    page.x_low.value = "-5"
    assert (page.state.x.low, page.x_low.value) == (0.1, "0.1")
    assert "ratio from -5 to 10 is not allowed" in page.status.object
    page.grid.value = 2
    assert page.state.grid == 2


def test_a_search_never_selects_a_heading(pool: Pool) -> None:
    page = Page(LAWS, pool, replace(start(Ridge), mode="compare"))
    for words in ("transformer", "token", "early stopping", "overfitting", "neural network", "zzzz", "ridge", ""):
        page.search.value_input = words
        assert page.chooser.value in page.chooser.options.values()
        assert page.chooser.value not in page.chooser.disabled_options
        assert any(value in LAWS for value in page.chooser.options.values())
        assert page.state.law == "Ridge"
    subjects = [value for value in page.chooser.options.values() if value.startswith("# ")]
    assert subjects == sorted(subjects)


def test_a_picture_has_title_and_parameters_inside_its_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[Any] = []
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    original = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *a, **k: (figures.append(self), original(self, *a, **k))[1])
    x = np.linspace(0.1, 1, 20)
    label = "risk on a new sample with new noisy labels, averaged over the noise and over the inputs of the test set"
    png = plots.curve_png(
        label, label, False, False, {"x": x, "y": {"risk": x}}, None, "A question? " * 8, "noise 0.5, " * 20
    )
    assert png.startswith(b"\x89PNG")
    (figure,) = figures
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    frame, renderer = figure.bbox, canvas.get_renderer()
    for text in (figure._suptitle, figure._supxlabel, figure.axes[0].xaxis.label, figure.axes[0].yaxis.label):
        assert text is not None
        box = text.get_window_extent(renderer)
        assert text.get_text()
        assert frame.x0 - 1 <= box.x0 < box.x1 <= frame.x1 + 1
        assert frame.y0 - 1 <= box.y0 < box.y1 <= frame.y1 + 1


def test_caps_are_checked() -> None:
    with pytest.raises(ValueError, match="seconds = 0 is not allowed"):
        Caps(seconds=0)


# -- uploads ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"a,b\n" + b"1,2\n" * 2_000_000, "8.0 MB"),
        ("t.pkl", b"a,b\n1,2\n", "pickles are never read"),
        ("t.csv", b"\x80\x04\x95abc", "not a text file"),
        ("t.csv", b"", "empty"),
        ("t.csv", b"nothing but words\nof which none is a column\n", "not a table"),
        ("t.csv", b"a,b\n1,=HYPERLINK(1)\n", "formulas"),
        ("t.csv", b"a,b\n1,@SUM(A1)\n", "formulas"),
        ("t.csv", b"a;b\n1;+A1*2\n", "formulas"),
        ("t.csv", (",".join(map(str, range(3000))) + "\n1\n").encode(), "3000 columns"),
    ],
)
def test_what_is_no_table_is_refused_in_a_sentence(name: str, content: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        checked_table(name, content, 5)


def test_numbers_with_signs_and_words_are_no_formulas() -> None:
    assert checked_table("t.tsv", b"a\tb\n-1.5\t+2\n-inf\t- none\n", 5) == ["a", "b"]


def test_a_browser_that_lies_about_its_file_is_cut_off() -> None:
    from types import SimpleNamespace

    drop, seen = CappedDropper(1000), []
    drop.param.watch(lambda event: seen.extend(len(content) for content in event.new.values()), "value")
    for chunk in range(1, 50):
        data = {"name": "long.csv", "chunk": chunk, "total_chunks": 100, "data": b"x" * 300, "type": "text/csv"}
        drop._process_event(SimpleNamespace(event_name="upload_event", data=data))
        assert sum(map(len, drop._file_buffer.get("long.csv", []))) <= 1000
    assert seen == [1001]  # told once, as too long
    data = {"name": "short.csv", "chunk": 1, "total_chunks": 1, "data": b"a,b", "type": "text/csv"}
    drop.value.clear()
    drop._process_event(SimpleNamespace(event_name="upload_event", data=data))
    assert drop.value == {"short.csv": "a,b"}


def test_an_upload_is_forecast_and_not_kept(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    rng = np.random.default_rng(1)
    inputs = rng.standard_normal((60, 2))
    lines = [f"{a},{b},{a + b + 0.1 * rng.standard_normal()}" for a, b in inputs]
    found = work.forecast(silent, "t.csv", "\n".join(["a,b,price", *lines]).encode(), "price")
    assert found["rows"] == 60
    assert np.all(np.diff(found["value"]) < 0.05)
    assert list(tmp_path.iterdir()) == []
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["a,b,price", *lines]), encoding="utf-8")
    program = (
        snippet(replace(start(Ridge), mode="forecast"), Ridge())
        .replace("your.csv", str(table))
        .replace("your_column", "price")
    )
    names: dict[str, Any] = {}
    exec(program, names)
    assert names["rows"] == 60
    with pytest.raises(ValueError, match="price"):
        work.forecast(silent, "t.csv", b"a,b\n1,2\n", "price")


# -- without Panel, and in a notebook -------------------------------------------------------------------------------------------


def test_without_panel_one_sentence_says_what_to_install() -> None:
    program = "import sys; sys.modules['panel'] = None; import limitlab; limitlab.explore(limitlab.laws.Ridge())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1].endswith('pip install "limitlab[explorer]"')


def test_a_notebook_gets_a_page_with_the_law_of_its_own() -> None:
    from limitlab.show.explorer._server import _notebook_pool

    page = limitlab.explore(Ridge(ratio=3.0))
    try:
        text = [widget.value for widget in page.select(lambda part: getattr(part, "name", "").startswith("ratio"))]
        assert text[:1] == ["3.0"]
        with pytest.raises(ValueError, match="is not a law"):
            limitlab.explore(3)  # type: ignore[arg-type]
    finally:
        _notebook_pool().close()
        _notebook_pool.cache_clear()


def test_a_page_that_cannot_be_made_is_not_counted_as_a_visitor(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    from limitlab.show.explorer import _server as server

    def fail(*arguments: Any) -> None:
        raise TypeError("no page")

    monkeypatch.setattr(server, "_new_page", fail)
    with pytest.raises(TypeError):
        server.page_of(pool, "Ridge")
    assert not pool.visits
