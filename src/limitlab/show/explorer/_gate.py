"""Limits of the connection to visitors, which are the messages that reach a page, the lengths of addresses, and the end of the server.

A visitor can send any message through the socket of the page, also messages that no browser sends. `Accepted` describes the messages
that change a page. All others are left out. The new value of a widget is then checked by the page, with the model that checks the
address (`limitlab.show.explorer._address.State`).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import logging
import os
import signal
import socket
import threading
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from multiprocessing import active_children
from typing import Annotated, Any, Literal

import bokeh.server.tornado
from bokeh.server.session import ServerSession
from bokeh.util.token import get_session_id, get_token_payload
from panel.io.server import AutoloadJsHandler, DocHandler, WSHandler
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, TypeAdapter
from pydantic_core import ValidationError
from tornado.iostream import IOStream, UnsatisfiableReadError
from tornado.web import HTTPError

log = logging.getLogger(__name__)

LONGEST_TEXT = 20_000
"""Largest number of characters of a text in a message."""
LONGEST_LIST = 1000
"""Largest number of entries of a list in a message."""
LONGEST_MESSAGE = 4_000_000
"""Largest number of bytes of a message. Files arrive in pieces of 1,000,000 bytes."""
LONGEST_ADDRESS = 32_000
"""Largest number of characters of an address that is answered with a page."""
MESSAGES = 50.0
"""Number of messages of a visitor that are handled in a second. Further messages are handled later."""
PAUSE = 0.05
"""Seconds between the pages of two visitors, in which the server answers other requests."""
GRACE = 3.0
"""Seconds after a signal at which the server is ended, if it has not ended before."""
LINGER = 5.0
"""Seconds for which the rest of a request that was too long is read and thrown away."""

TOO_LONG = "the address is too long for the explorer"
UNUSABLE = "the explorer cannot use this address: remove the part after the question mark"


# -- messages -----------------------------------------------------------------------------------------------------------------

Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
Plain = Text | StrictBool | StrictInt | StrictFloat | None
"""A value of a widget."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Reference(_Part):
    """A model of the page, by its id."""

    id: Annotated[str, Field(max_length=64)]


class Changed(_Part):
    """A new value of a widget, or a new address after the visitor went back or forward."""

    kind: Literal["ModelChanged"]
    model: Reference
    attr: Literal["value", "value_input", "value_throttled", "active", "clicks", "search"]
    new: Plain | Annotated[list[Plain], Field(max_length=LONGEST_LIST)]


def _short_enough(text: str) -> str:
    unpacked = zlib.decompressobj(wbits=31)
    unpacked.decompress(base64.b64decode(text), LONGEST_MESSAGE)
    if not unpacked.eof:
        raise ValueError("the bytes are too many, or incomplete")
    return text


class _Buffer(_Part):
    """Bytes, which follow the message, or are a compressed text in the message.

    The decompressed length is limited, because a short text may contain gigabytes.
    """

    type: Literal["bytes"]
    data: Reference | Annotated[str, AfterValidator(_short_enough)]


class _Data(_Part):
    type: Literal["map"]
    entries: Annotated[list[tuple[Text, Plain | _Buffer]], Field(max_length=10)]


class _Values(_Part):
    type: Literal["map"]
    entries: Annotated[list[tuple[Literal["model"], Reference] | tuple[Literal["data"], _Data]], Field(max_length=2)] = []


class _Event(_Part):
    type: Literal["event"]
    name: Literal["document_ready", "button_click", "upload_event", "delete_event"]
    values: _Values


class Happened(_Part):
    """A click, a part of an upload, or the end of the start of a page."""

    kind: Literal["MessageSent"]
    msg_type: Literal["bokeh_event"]
    msg_data: _Event


Accepted: TypeAdapter[Changed | Happened] = TypeAdapter(Annotated[Changed | Happened, Field(discriminator="kind")])
"""The changes of a page that a visitor may send."""


def accepted(content: Any, known: Callable[[str, str], bool]) -> list[Any]:
    """Return the changes in the content of a message that a visitor may send.

    `known` tells whether the page has a model with an attribute.

    >>> change = {"kind": "ModelChanged", "model": {"id": "p1"}, "attr": "value", "new": 2.5}
    >>> accepted({"events": [change, {**change, "attr": "js_event_callbacks"}, {"kind": "RootAdded"}]}, lambda model, name: True)
    [{'kind': 'ModelChanged', 'model': {'id': 'p1'}, 'attr': 'value', 'new': 2.5}]
    """
    events = content.get("events") if isinstance(content, dict) else None
    passed = []
    for event in events if isinstance(events, list) else ():
        try:
            read = Accepted.validate_python(event)
        except (ValidationError, RecursionError, zlib.error):
            continue
        if not isinstance(read, Changed) or known(read.model.id, read.attr):
            passed.append(read.model_dump(mode="json"))
    return passed


class CheckedSocket(WSHandler):  # type: ignore[misc]
    """The socket of a page. Messages that are too long, too many or of another kind change nothing."""

    _received = 0
    _free_at = 0.0

    async def prepare(self) -> None:
        """Refuse a connection without the token of a page."""
        await super().prepare()
        names = [name.strip() for name in self.request.headers.get("Sec-WebSocket-Protocol", "").split(",")]
        try:
            get_session_id(names[1])
            fits = len(names) == 2 and names[0] == "bokeh" and "session_expiry" in get_token_payload(names[1])
        except Exception:  # texts that are no token raise errors of many types
            fits = False
        if not fits and not self._finished:
            self.set_status(403)
            self.finish("open the page of the explorer first")

    async def on_message(self, fragment: str | bytes) -> None:
        """Handle a part of a message."""
        self._received += len(fragment)
        if self._received > LONGEST_MESSAGE or self.receiver is None:
            self.close(1009, "the message is too long")
            return
        try:
            message = await self.receiver.consume(fragment)
        except Exception as error:  # bytes that are no message
            log.info("a visitor sent no message of the protocol (%s)", type(error).__name__)
            self.close(1002, "this is not a message of the protocol")
            return
        if message is not None:
            self._received = 0
            await self._in_turn()
            await self._answer(message)

    async def _in_turn(self) -> None:
        """Let other visitors have their turn, and wait if this visitor sends more than `MESSAGES` per second."""
        now = asyncio.get_running_loop().time()
        self._free_at = max(self._free_at, now) + 1 / MESSAGES
        await asyncio.sleep(max(self._free_at - now - 1, 0))

    async def _answer(self, message: Any) -> None:
        if self.connection is None or self.connection.session.destroyed:
            return
        try:
            reply = await self._reply(message)
        except Exception as error:  # a value of another type, or a page that has just ended
            log.info("a message of a visitor was left out: %s", type(error).__name__)
            reply = None
        if reply is None:
            reply = self.connection.error(message, "the explorer cannot use this message")
        await self.send_message(reply)

    async def _reply(self, message: Any) -> Any:
        if message.msgtype == "PULL-DOC-REQ":
            async with one_at_a_time():
                return await ServerSession.pull(message, self.connection)
        if message.msgtype != "PATCH-DOC":
            return None
        document = self.connection.session.document

        def known(name: str, attribute: str) -> bool:
            model = document.get_model_by_id(name)
            return model is not None and attribute in model.properties()

        events = accepted(message.content, known)
        if not events:
            return self.connection.ok(message)
        message.content["events"] = events
        return await ServerSession.patch(message, self.connection)


@contextlib.asynccontextmanager
async def one_at_a_time() -> AsyncIterator[None]:
    """Run long steps of several visitors one after the other, with a pause after each, in which the server answers other requests.

    Without the pause, every turn of the event loop would contain a long step, and an answer takes many turns.
    """
    async with _turns():
        yield
        await asyncio.sleep(PAUSE)


@functools.cache
def _turns() -> asyncio.Lock:
    return asyncio.Lock()


class CheckedPage(DocHandler):  # type: ignore[misc]
    """The handler of the page, which refuses addresses that are too long."""

    async def get(self, *arguments: Any, **named: Any) -> None:
        """Answer with the page."""
        if len(self.request.uri) > LONGEST_ADDRESS:
            self.set_status(414)
            self.finish(TOO_LONG)
            return
        try:
            async with one_at_a_time():
                await super().get(*arguments, **named)
        except HTTPError:
            raise
        except Exception as error:  # Panel reads the address too, and some texts raise errors there
            log.info("an address was refused: %s", type(error).__name__)
            self.set_status(400)
            self.finish(UNUSABLE)


@contextlib.contextmanager
def checked_handlers() -> Iterator[None]:
    """Make servers that are built within a block use the handlers of this module."""
    patterns = bokeh.server.tornado.per_app_patterns
    before = list(patterns)
    replaced = {WSHandler: CheckedSocket, DocHandler: CheckedPage}
    patterns[:] = [
        (path, replaced.get(handler, handler), *rest) for path, handler, *rest in before if handler is not AutoloadJsHandler
    ]
    try:
        yield
    finally:
        patterns[:] = before


# -- requests that never end --------------------------------------------------------------------------------------------------


class _Stream(IOStream):
    """A connection that answers a request line or headers that are too long with status 414."""

    def close(self, exc_info: Any = False) -> None:
        """Close the connection."""
        if isinstance(exc_info, UnsatisfiableReadError) and not self.closed():
            body = TOO_LONG.encode()
            head = f"HTTP/1.1 414 URI Too Long\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            with contextlib.suppress(OSError):
                rest = self.socket.dup()
                rest.send(head.encode() + body)
                rest.shutdown(socket.SHUT_WR)
                asyncio.get_running_loop().create_task(_thrown_away(rest))
        super().close(exc_info)


async def _thrown_away(rest: socket.socket) -> None:
    """Read the rest of a request, because closing at once would also discard the answer."""
    loop = asyncio.get_running_loop()
    with rest, contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(LINGER):
            while await loop.sock_recv(rest, 2**16):
                pass


def answer_long_requests(http_server: Any) -> None:
    """Make a server of Tornado answer requests whose headers are too long, which it otherwise closes without an answer."""
    handle = http_server.handle_stream

    def handle_stream(stream: Any, address: Any) -> None:
        handle(
            _Stream(stream.socket, max_buffer_size=stream.max_buffer_size, read_chunk_size=stream.read_chunk_size), address
        )

    http_server.handle_stream = handle_stream


# -- the end ------------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def ending_in_time(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at SIGINT and SIGTERM within a block. This process and its workers end `GRACE` seconds later in any case.

    In a thread other than the main thread, no signal can be handled.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: Any) -> None:
        timer = threading.Timer(GRACE, _end_now, (128 + number,))
        timer.daemon = True
        timer.start()
        stop()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end_now(code: int) -> None:
    for child in active_children():
        child.kill()
    os._exit(code)
