"""The explorer as a server: visitors who send any message, addresses of any length, uploads through the socket, signals."""

from __future__ import annotations

import contextlib
import gzip
import json
import signal
import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("panel")
pytest.importorskip("tornado")
if not Path("/proc/self/stat").exists():
    pytest.skip("needs /proc", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).parent))

from explorer_client import Server, Visitor, alive, change, event
from tornado.websocket import WebSocketClosedError

PATIENCE = 5.0
"""Seconds for a small request of another visitor, on a machine that runs other tests. On an idle one it takes 0.01 s."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    served = Server("--workers", "2", "--memory", "500", "--visitors", "3")
    yield served
    served.kill()


@pytest.fixture
def visitor(server: Server) -> Iterator[Visitor]:
    found = Visitor(server, "?mode=phase&grid=5")
    yield found
    found.close()


def points_of(visitor: Visitor) -> str:
    return next(each for each in visitor.of_kind("Spinner") if visitor.models[each].get("title") == "points")


def test_a_grid_that_is_too_large_is_refused_through_the_socket(server: Server, visitor: Visitor) -> None:
    with server.watched() as seconds:
        assert visitor.set(points_of(visitor), "value", 30_000_000)["type"] == "OK"
        assert visitor.wait_for("grid = 30000000 is not allowed", 30) is not None
    assert max(seconds) < PATIENCE
    assert server.peak_server < 600


def test_messages_that_no_browser_sends_change_nothing(server: Server, visitor: Visitor) -> None:
    grid = points_of(visitor)
    odd = [
        None,
        "x" * 30_000,
        [1] * 2000,
        {"a": 1},
        '"><script>',
        -5,
        [[[]]],
        True,
        1e308,
        {"type": "number", "value": "nan"},
    ]
    for model in [
        grid,
        *visitor.of_kind("TextInput")[:2],
        *visitor.of_kind("Select")[:3],
        *visitor.of_kind("Slider")[:1],
        "nothing",
    ]:
        for attribute in ("value", "active", "clicks", "js_event_callbacks", "children"):
            visitor.patch(*(change(model, attribute, value) for value in odd))
    visitor.patch(
        {"kind": "RootAdded"}, "text", 3, None, event("exit", []), event("button_click", [["model", {"id": "nothing"}]])
    )
    refused = visitor.send("PUSH-DOC", {"doc": {}})
    assert refused["type"] == "ERROR"
    assert "Traceback" not in refused["content"]
    assert visitor.set(grid, "value", 7)["type"] == "OK"
    visitor.pull()
    assert visitor.models[grid]["value"] == 7
    assert "Traceback" not in server.log


@pytest.mark.parametrize("frame", ["", "{", "[]", "\0", "x" * 5_000_000, json.dumps({"msgid": "1"})])
def test_bytes_that_are_no_message_end_one_connection_only(server: Server, frame: str) -> None:
    hostile = Visitor(server)
    end = time.monotonic() + 60
    while not hostile.closed and time.monotonic() < end:
        with contextlib.suppress(WebSocketClosedError):  # the socket closes while we send
            hostile.send_raw(frame)
    assert hostile.closed
    assert server.get("/favicon.ico")[0] == 200


def test_compressed_bytes_that_are_very_long_are_refused(server: Server) -> None:
    visitor = Visitor(server, "?mode=forecast")
    bomb = b64encode(gzip.compress(b"0" * 50_000_000)).decode()
    data = [["name", "a.csv"], ["chunk", 1], ["total_chunks", 1], ["type", ""], ["data", {"type": "bytes", "data": bomb}]]
    model = visitor.of_kind("FileDropper")[0]
    before = len(visitor.patches)
    visitor.patch(event("upload_event", [["model", {"id": model}], ["data", {"type": "map", "entries": data}]]))
    assert visitor.wait_for("a.csv", 2, before) is None
    visitor.close()


def test_a_hundred_bad_addresses_leave_room_for_a_visitor(server: Server) -> None:
    bad = [
        "/?x=ratio:1",
        "/?size=" + "9" * 5000,
        "/?p.ratio=" + "[" * 3000,
        "/?law=%00",
        "/?law=LogisticCalibration&p.prevalence=1e-30",
    ]
    assert {server.get(bad[number % 5])[0] for number in range(25)} <= {200, 400}
    visitor = Visitor(server, "?mode=curve")
    assert visitor.wait_for("the limit, in", 60) is not None
    visitor.close()


@pytest.mark.parametrize("length", [33_000, 100_000, 3_000_000])
def test_an_address_of_any_length_is_answered(server: Server, length: int) -> None:
    assert server.get("/?law=" + "a" * length)[0] == 414
    assert server.get("/" + "a" * length)[0] in (404, 414)


def test_uploads_through_the_socket(server: Server) -> None:
    visitor = Visitor(server, "?mode=forecast")
    rows = b"1,2,3\n"
    tables = {
        "formula.csv": (b"a,b,y\n" + rows * 9000 + b"1,=SUM(A1),3\n" + rows * 900, "formulas"),
        "dde.csv": (b"a,b,y\n" + rows * 3000 + b"1,-2+cmd|' /C calc'!A0,3\n", "formulas"),
        "bytes.csv": (b"a,b,y\n" + rows * 20_000 + b"1,\x00,3\n", "not a text file"),
        "long.csv": (b"a,b\n" + b"1" * 5_100_000, "limit of the explorer is 5 MB"),
        "empty.csv": (b"", "the file is empty"),
        "table.csv": (b"a,b,y\n" + rows * 5000, "3 columns"),
    }
    with server.watched() as seconds:
        for name, (content, words) in tables.items():
            before = len(visitor.patches)
            visitor.upload(name, content)
            assert visitor.wait_for(words, 60, before) is not None, name
    assert max(seconds) < PATIENCE
    visitor.close()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_the_server_and_all_its_processes(how: signal.Signals) -> None:
    server = Server("--workers", "2")
    try:
        visitor = Visitor(server, "?mode=compare")
        visitor.click("Compare")
        assert visitor.wait_for(lambda text: " of " in text, 60) is not None
        seconds, left = server.stop(how, within=15)
        assert not left
        assert seconds < 2 * PATIENCE  # less than 1 s on an idle machine
        assert not [each for each in left if alive(each)]
    finally:
        server.kill()


@pytest.mark.slow
def test_thirty_visitors_at_once_get_their_first_plot() -> None:
    server = Server("--workers", "4")

    def visit(number: int) -> bool:
        visitor = Visitor(server, f"?mode=curve&law={['Ridge', 'MaxMargin', 'Perceptron'][number % 3]}", timeout=300)
        return visitor.wait_for("the limit, in", 300) is not None

    try:
        began = time.monotonic()
        with server.watched() as seconds, ThreadPoolExecutor(30) as pool:
            assert all(pool.map(visit, range(30)))
        print(f"30 plots in {time.monotonic() - began:.1f} s; small requests took {max(seconds):.1f} s or less")
        assert server.peak_server < 600
        assert server.most_processes <= 8
    finally:
        server.kill()
