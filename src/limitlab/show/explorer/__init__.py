"""The explorer: every law with sliders, live, in a browser or a notebook. Needs Panel (`pip install "limitlab[explorer]"`)."""

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
    """A law with sliders, in a notebook: a Panel object, which the notebook shows.

    Parameters
    ----------
    law
        A law (its parameters are where the sliders start), its class or its name; left out: any, from the list.

    Returns
    -------
    panel.viewable.Viewable
        Show it as the last line of a cell; `limitlab explore` serves the same page in a browser.

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
    """Serve the explorer until it is interrupted; `limitlab explore` does.

    Parameters
    ----------
    port, host
        Where (port 0: any that is free). The default host is this computer only.
    show
        Whether to open a browser.
    caps
        What one request may take.
    law
        The law that is shown first.
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
