"""A server of the explorer in a process, and visitors that send it any message through its socket.

A `Visitor` is not a browser: it writes the messages of Bokeh's protocol itself, so it can also send messages that no browser sends.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

START = 90.0
"""Seconds that a server may need to start on a busy machine."""


# -- the server ---------------------------------------------------------------------------------------------------------------


class Server:
    """`limitlab explore` in a process of its own group. `log` collects what it prints."""

    def __init__(self, *arguments: str, **environment: str):
        command = [sys.executable, "-m", "limitlab", "explore", "--port", "0", "--no-show", *arguments]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        self.log = ""
        self.peak_server = self.peak_total = 0.0
        self.most_processes = 0
        assert self.process.stdout is not None
        end, found = time.monotonic() + START, None
        while found is None and time.monotonic() < end and self.process.poll() is None:
            if select.select([self.process.stdout], [], [], 0.5)[0]:
                self.log += os.read(self.process.stdout.fileno(), 65536).decode()
                found = re.search(r"http://\S+?/?(?=\s)", self.log)
        if found is None:
            self.kill()
            raise RuntimeError(f"the explorer did not start: {self.log}")
        self.url = found[0].rstrip("/")
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        while piece := os.read(self.process.stdout.fileno(), 65536):
            self.log = (self.log + piece.decode(errors="replace"))[-200_000:]

    def get(self, path: str, timeout: float = 60.0) -> tuple[int, bytes, float]:
        """Return status, body and seconds of a request."""
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=timeout)
        began = time.monotonic()
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused before all of it was sent
                connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read(), time.monotonic() - began
        finally:
            connection.close()

    def processes(self) -> list[int]:
        """Return the server and all processes below it."""
        return tree(self.process.pid)

    @contextlib.contextmanager
    def watched(self) -> Iterator[list[float]]:
        """Measure memory and the seconds of small requests of another visitor within a block."""
        seconds: list[float] = []
        over = threading.Event()

        def ask() -> None:
            while not over.is_set():
                try:
                    seconds.append(self.get("/favicon.ico", 120)[2])
                except OSError:
                    seconds.append(float("inf"))
                over.wait(0.05)

        def measure() -> None:
            while not over.is_set():
                sizes = [resident(each) for each in self.processes()]
                self.peak_server, self.peak_total = max(self.peak_server, sizes[0]), max(self.peak_total, sum(sizes))
                self.most_processes = max(self.most_processes, len(sizes))
                over.wait(0.1)

        threads = [threading.Thread(target=each, daemon=True) for each in (ask, measure)]
        for thread in threads:
            thread.start()
        try:
            yield seconds
        finally:
            over.set()
            for thread in threads:
                thread.join(timeout=130)

    def stop(self, how: signal.Signals = signal.SIGTERM, within: float = 5.0) -> tuple[float, list[int]]:
        """Send a signal; return the seconds until the server and all its processes are gone, and those that remain after `within`."""
        family, began = self.processes(), time.monotonic()
        self.process.send_signal(how)
        while time.monotonic() < began + within and any(alive(each) for each in family):
            self.process.poll()
            time.sleep(0.02)
        return time.monotonic() - began, [each for each in family if alive(each)]

    def kill(self) -> None:
        """End everything that is left."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def tree(pid: int) -> list[int]:
    """Return a process and all processes below it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, left = [], [pid]
    while left:
        found.append(left.pop(0))
        left += children.get(found[-1], [])
    return found


def alive(pid: int) -> bool:
    """Return whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (OSError, IndexError):
        return False


def resident(pid: int) -> float:
    """Return the memory of a process in MB."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
    return 0.0


# -- a visitor ----------------------------------------------------------------------------------------------------------------

_LOOP = asyncio.new_event_loop()
_STARTED = threading.Lock()
_THREAD: list[threading.Thread] = []


def _wait(coroutine: Any, timeout: float = 60.0) -> Any:
    with _STARTED:
        if not _THREAD:
            _THREAD.append(threading.Thread(target=_LOOP.run_forever, daemon=True))
            _THREAD[0].start()
    return asyncio.run_coroutine_threadsafe(coroutine, _LOOP).result(timeout)


class Refusal(Exception):
    """The server gave no page."""


class Visitor:
    """A page of the explorer, read and changed through its socket."""

    def __init__(self, server: Server, query: str = "", timeout: float = 120.0):
        status, body, self.seconds_of_page = server.get(f"/{query}", timeout)
        found = re.search(rb'"token":"([^"]+)"', body)
        if status != 200 or found is None:
            raise Refusal(f"status {status}: {body[:200]!r}")
        self._token = found[1].decode()
        self._url = server.url.replace("http", "ws", 1) + "/ws"
        self._number = 0
        self._heard = threading.Condition()
        self.replies: dict[str, dict[str, Any]] = {}
        self.patches: list[str] = []
        self.closed = False
        _wait(self._connect(), timeout)
        self.models: dict[str, dict[str, Any]] = {}
        self.pull(timeout)

    async def _connect(self) -> None:
        request = HTTPRequest(self._url, connect_timeout=60, request_timeout=60)
        self._socket = await websocket_connect(request, subprotocols=["bokeh", self._token], max_message_size=200_000_000)
        for _ in range(3):  # the three frames of the first message, ACK
            await self._socket.read_message()
        self._task = asyncio.ensure_future(self._listen())

    async def _listen(self) -> None:
        frames: list[Any] = []
        wanted = 3
        while (frame := await self._socket.read_message()) is not None:
            frames.append(frame)
            if len(frames) == 1:
                wanted = 3 + 2 * json.loads(frame).get("num_buffers", 0)
            if len(frames) < wanted:
                continue
            header, content = json.loads(frames[0]), frames[2]
            with self._heard:
                if "reqid" in header:
                    self.replies[header["reqid"]] = {"type": header["msgtype"], "content": content}
                else:
                    self.patches.append(str(content))
                self._heard.notify_all()
            frames, wanted = [], 3
        with self._heard:
            self.closed = True
            self._heard.notify_all()

    def send_raw(self, frame: str | bytes, binary: bool = False) -> None:
        """Send one frame."""
        _wait(self._write(frame, binary))

    async def _write(self, frame: str | bytes, binary: bool) -> None:
        await self._socket.write_message(frame, binary)

    def send(self, kind: str, content: Any, wait: float = 60.0, buffers: Sequence[bytes] = ()) -> dict[str, Any]:
        """Send a message and return its reply ({} if the socket was closed, or if there was none within `wait` seconds)."""
        self._number += 1
        identity = str(self._number)
        header = {"msgid": identity, "msgtype": kind, **({"num_buffers": len(buffers)} if buffers else {})}
        for frame in (json.dumps(header), "{}", content if isinstance(content, str) else json.dumps(content)):
            self.send_raw(frame)
        for number, buffer in enumerate(buffers):
            self.send_raw(json.dumps({"id": f"b{number}"}))
            self.send_raw(buffer, binary=True)
        with self._heard:
            self._heard.wait_for(lambda: identity in self.replies or self.closed, wait)
        return self.replies.pop(identity, {})

    def pull(self, timeout: float = 60.0) -> None:
        """Read all models of the page."""
        reply = self.send("PULL-DOC-REQ", {}, timeout)
        self.models = {}
        with self._heard:
            self.patches.append(reply["content"])
        self._collect(json.loads(reply["content"])["doc"])

    def _collect(self, part: Any) -> None:
        if isinstance(part, dict):
            if part.get("type") == "object" and "id" in part:
                self.models[part["id"]] = {"name": part.get("name"), **part.get("attributes", {})}
            for entry in part.values():
                self._collect(entry)
        elif isinstance(part, list):
            for entry in part:
                self._collect(entry)

    def find(self, label: str, kind: str = "") -> str:
        """Return the id of the first model with a label (its title, name or label)."""
        for identity, model in self.models.items():
            words = [model.get(key) for key in ("title", "label")]
            if label in [word for word in words if isinstance(word, str)] and kind in str(model["name"]):
                return identity
        raise LookupError(label)

    def of_kind(self, kind: str) -> list[str]:
        """Return the ids of all models whose type contains a word."""
        return [identity for identity, model in self.models.items() if kind in str(model["name"])]

    def patch(self, *events: Any, wait: float = 60.0) -> dict[str, Any]:
        """Send changes of the page."""
        return self.send("PATCH-DOC", {"events": list(events)}, wait)

    def set(self, model: str, attribute: str, value: Any, wait: float = 60.0) -> dict[str, Any]:
        """Change an attribute of a model."""
        return self.patch(change(model, attribute, value), wait=wait)

    def click(self, label: str) -> dict[str, Any]:
        """Press a button."""
        return self.patch(event("button_click", [["model", {"id": self.find(label)}]]))

    def upload(self, name: str, content: bytes, chunk: int = 1_000_000) -> dict[str, Any]:
        """Drop a file."""
        model = self.of_kind("FileDropper")[0]
        pieces = [content[at : at + chunk] for at in range(0, len(content), chunk)] or [b""]
        reply: dict[str, Any] = {}
        for number, piece in enumerate(pieces):
            data = [
                ["chunk", number + 1], ["total_chunks", len(pieces)], ["name", name], ["type", "text/csv"],
                ["data", {"type": "bytes", "data": {"id": "b0"}}],
            ]  # fmt: skip
            dropped = event("upload_event", [["model", {"id": model}], ["data", {"type": "map", "entries": data}]])
            reply = self.send("PATCH-DOC", {"events": [dropped]}, buffers=[piece])
        return reply

    def wait_for(self, wanted: str | Callable[[str], bool], timeout: float = 60.0, start: int = 0) -> str | None:
        """Return the first change of the page that contains these words, or None."""
        fits = (lambda text: wanted in text) if isinstance(wanted, str) else wanted
        with self._heard:
            self._heard.wait_for(lambda: self.closed or any(map(fits, self.patches[start:])), timeout)
            return next(filter(fits, self.patches[start:]), None)

    def close(self) -> None:
        """Leave."""
        with contextlib.suppress(Exception):
            _wait(self._end(), 5)

    async def _end(self) -> None:
        self._socket.close()


def change(model: str, attribute: str, value: Any) -> dict[str, Any]:
    """Return the event of a changed attribute."""
    return {"kind": "ModelChanged", "model": {"id": model}, "attr": attribute, "new": value}


def event(name: str, values: list[list[Any]]) -> dict[str, Any]:
    """Return the event of a click or an upload."""
    data = {"type": "event", "name": name, "values": {"type": "map", "entries": values}}
    return {"kind": "MessageSent", "msg_type": "bokeh_event", "msg_data": data}
