"""The explorer, which shows laws with sliders in a browser or a notebook.

It needs Panel (`pip install "limitlab[explorer]"`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from panel.viewable import Viewable

    from limitlab._core.law import Law
    from limitlab.show.explorer.jobs import Caps

__all__ = ["explore", "serve"]

MISSING = 'the explorer needs Panel, which is not installed: pip install "limitlab[explorer]"'


def explore(law: Law | type[Law] | str | None = None) -> Viewable:
    """Return a Panel object that shows a law with sliders in a notebook.

    Parameters
    ----------
    law
        A law, its class or its name. The sliders start at the parameters of a law. Without a law, the page starts with the default law, and
        a list offers all laws.

    Returns
    -------
    panel.viewable.Viewable
        The page, to be the last line of a cell. `limitlab explore` serves the same page in a browser.

    Examples
    --------
    >>> from limitlab.laws import Ridge
    >>> page = explore(Ridge(ratio=2.0))    # doctest: +SKIP
    """
    _require_panel()
    from limitlab.show.explorer._server import notebook

    return notebook(law)


def serve(
    port: int = 5006,
    host: str = "127.0.0.1",
    show: bool = False,
    caps: Caps | None = None,
    law: str | None = None,
    ready: Callable[[str], None] = print,
) -> None:
    """Serve the explorer until it is interrupted. The command `limitlab explore` calls this function.

    Parameters
    ----------
    port, host
        Port (0 means any free port) and address of the server. The default address accepts connections from this computer only.
    show
        Whether to open a browser.
    caps
        Limits of one request.
    law
        The first law on the page.
    ready
        Called with the address when the page can be opened.
    """
    _require_panel()
    from limitlab.show.explorer._server import run

    run(port, host, show, caps, law, ready)


def _require_panel() -> None:
    import importlib.util

    if importlib.util.find_spec("panel") is None:
        raise ModuleNotFoundError(MISSING, name="panel")
