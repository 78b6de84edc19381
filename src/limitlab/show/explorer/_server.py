"""The server of the explorer, and its page in a notebook."""

from __future__ import annotations

import atexit
import contextlib
import functools
import logging
import socket
import threading
import traceback
from collections.abc import Callable
from typing import Any

import panel as pn
from bokeh.events import DocumentReady
from bokeh.models import CustomJS
from panel.viewable import Viewable

from limitlab._core.law import Law
from limitlab._core.registry import find_law, law_id
from limitlab.errors import Refused
from limitlab.show.explorer._address import FAILED, FIRST, explorable, read, start
from limitlab.show.explorer._gate import LONGEST_MESSAGE, answer_long_requests, checked_handlers, ending_in_time
from limitlab.show.explorer._page import NAME_SLIDERS, Page
from limitlab.show.explorer.jobs import Caps, Pool

log = logging.getLogger(__name__)

NOTEBOOK_HEIGHT = 760
"""Height of the page in a notebook, in pixels. Its columns scroll."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
FULL = (
    "The explorer has reached its number of visitors. Try again in a few minutes, or run limitlab explore on your computer"
)
WINDOW = """{% block postamble %}<meta name="viewport" content="width=device-width, initial-scale=1">{% endblock %}"""
"""Part of the template of the page, which makes a phone show the page at its own width."""
BODY = {
    "light": "html, body { margin: 0; height: 100%; background: #ffffff; color: #1c1c1c; }",
    "dark": "html, body { margin: 0; height: 100%; background: #181818; color: #e6e6e6; }",
}


def run(port: int, host: str, show: bool, caps: Caps | None, law: str | None, ready: Callable[[str], None]) -> None:
    """Serve until interrupted, with a separate page for every visitor. `ready` is called with the address."""
    first = law_id(find_law(law)) if law else FIRST
    pool = Pool(caps)
    starting = threading.Thread(
        target=_warm, args=(pool,), daemon=True
    )  # the worker loads the laws while this process loads them
    starting.start()
    try:
        server = _server(pool, first, port or _free_port(host), host)
        ready(f"http://{host}:{server.port}/")
        if show:
            server.io_loop.add_callback(server.show, "/")
        server.start()
        with ending_in_time(lambda: server.io_loop.add_callback_from_signal(server.io_loop.stop)):
            server.io_loop.start()
            pool.close()
            server.stop()
    finally:
        pool.close()


def _warm(pool: Pool) -> None:
    with contextlib.suppress(OSError, EOFError, RuntimeError):  # the server ends while the worker starts
        pool.warm()


def _server(pool: Pool, first: str, port: int, host: str) -> Any:
    if first not in explorable():
        raise Refused(
            f"{first} cannot be explored: the law has no numeric parameter for the horizontal axis, or no observable to draw"
        )
    pn.extension("mathjax", "filedropper")
    pn.config.exception_handler = _left_out
    logging.getLogger("tornado.access").setLevel(logging.ERROR)  # it would print every address that is refused
    logging.getLogger("panel.reactive").setLevel(
        logging.CRITICAL
    )  # it would print tracebacks of errors that `_left_out` handles
    origins = [f"{name}:{port}" for name in (host, "localhost")] if host in LOOPBACK else ["*"]
    try:
        with checked_handlers():
            server = pn.serve(
                {"/": lambda: page_of(pool, first)}, port=port, address=host, show=False, start=False, title="limitlab explorer",
                verbose=False, websocket_origin=origins, websocket_max_message_size=LONGEST_MESSAGE,
                check_unused_sessions_milliseconds=1000,
            )  # fmt: skip
        answer_long_requests(server._http)
        return server
    except OSError as error:
        reason = error.strerror or error
        raise Refused(
            f"cannot serve at {host}, port {port} ({reason}): choose another --port, or 0 for any free port"
        ) from None


def _left_out(error: BaseException) -> None:
    """Handle an error of an action of the page, such as a value that a widget does not have."""
    if isinstance(error, FAILED):
        log.warning("a change of a visitor was left out: %s: %.200s", type(error).__name__, error)
    else:
        traceback.print_exception(error)


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def page_of(pool: Pool, first: str) -> Any:
    """Return the page of a visitor in the state of the address."""
    visits = pool.visits
    if len(visits) >= pool.caps.visitors and not _expire_unconnected(visits):
        return pn.pane.Str(FULL)
    page = _new_page(pool, first)
    document = pn.state.curdoc
    visit = object()
    visits[visit] = document.session_context if document is not None else None  # only of a page that could be made

    def left(context: Any) -> None:
        visits.pop(visit, None)
        page.runner.close()

    pn.state.on_session_destroyed(left)
    return page.view


def _expire_unconnected(visits: dict[object, Any]) -> bool:
    """Free the place of the oldest page whose browser has not opened its socket. Return whether there was such a page.

    A browser that opens its socket later gets a new page.
    """
    for visit, context in visits.items():
        session = getattr(context, "session", None)
        if session is None or session.destroyed or session.connection_count == 0:
            if session is not None:
                session.request_expiration()
            del visits[visit]
            return True
    return False


def _new_page(pool: Pool, first: str) -> Page:
    laws = explorable()
    location = pn.state.location
    query = location.search if location is not None else ""
    shown, remarks = read(query, laws, first)
    pn.config.theme = "dark" if shown.theme == "dark" else "default"
    pn.config.raw_css = [BODY[shown.theme]]
    written = [""]

    def tell(address: str) -> None:
        written[0] = f"?{address}"
        if location is not None and location.search != written[0]:
            location.search = written[0]

    page = Page(laws, pool, shown, remarks, tell)
    if (document := pn.state.curdoc) is not None:
        document.template = WINDOW
        document.js_on_event(DocumentReady, CustomJS(code=NAME_SLIDERS))
        pn.state.onload(lambda: page.current.opened())
    if location is not None:
        location.param.watch(_address_follower(page, laws, written), "search")
    return page


def _address_follower(page: Page, laws: Any, written: list[str]) -> Callable[[Any], None]:
    """Return a function that shows the state of the address when the visitor goes back or forward."""

    def follow(event: Any) -> None:
        if event.new != written[0]:
            page.show(read(event.new, laws)[0])

    return follow


@functools.cache
def _notebook_pool() -> Pool:
    pool = Pool()
    atexit.register(pool.close)
    return pool


def notebook(law: Law | type[Law] | str | None) -> Viewable:
    """Return the page for a notebook, at the parameters of a law."""
    pn.extension("mathjax", "filedropper", inline=True)  # inline resources work without a network
    first: Any = find_law(law) if isinstance(law, str) else law
    laws = explorable()
    if first is None:
        first = laws[FIRST]
    kind = type(first) if isinstance(first, Law) else first
    if not (isinstance(kind, type) and issubclass(kind, Law)):
        raise Refused(f"law = {law!r} is not a law: give one such as limitlab.laws.Ridge(ratio=2.0), its class or its name")
    view = Page({**laws, law_id(kind): kind}, _notebook_pool(), start(first)).view
    view.param.update(sizing_mode="stretch_width", height=NOTEBOOK_HEIGHT)
    return view
