"""`explore`: every law with sliders, in a browser."""

from __future__ import annotations

from typing import Annotated

import typer

from limitlab.show.cli._app import app
from limitlab.show.cli._lawcommand import LawsOption
from limitlab.show.cli._output import JsonOption, print_json, say


@app.command(epilog="Example: limitlab explore ridge")
def explore(
    law_name: Annotated[str | None, typer.Argument(metavar="LAW", help="The law to begin with.", show_default=False)] = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Where to serve; 0 for any free port.")] = 5006,
    host: Annotated[str, typer.Option("--host", help="Who may come: 127.0.0.1 is this computer only.")] = "127.0.0.1",
    show: Annotated[bool, typer.Option("--show/--no-show", help="Open a browser.")] = True,
    seconds: Annotated[float, typer.Option("--seconds", min=1, help="Longest time of one computation.")] = 120,
    memory: Annotated[int, typer.Option("--memory", min=64, help="Most memory of one computation, in MB.")] = 2048,
    upload: Annotated[float, typer.Option("--upload", min=0.001, help="Largest file that can be uploaded, in MB.")] = 5,
    workers: Annotated[int, typer.Option("--workers", min=0, help="Computations at the same time (0: one per core).")] = 0,
    visitors: Annotated[int, typer.Option("--visitors", min=1, help="Pages that are open at the same time.")] = 50,
    as_json: JsonOption = False,
    laws: LawsOption = None,
) -> None:
    """Sliders for every law in a browser: theory live, experiments on it, phase diagrams, comparisons, plans, your own data."""
    from limitlab.show.explorer import serve
    from limitlab.show.explorer.jobs import Caps

    caps = Caps(seconds, memory, upload, workers, visitors)

    def ready(address: str) -> None:
        if as_json:
            print_json({"address": address})
        say(f"the explorer is at {address} (Ctrl-C ends it)")
        if not address.startswith(("http://127.", "http://localhost")):
            say("everybody who reaches this computer can use it: it has no password")

    try:
        serve(port, host, show, caps, law_name, ready)
    except ModuleNotFoundError as error:
        if error.name != "panel":
            raise
        raise ValueError(str(error)) from None
