"""`reproduce`: a saved result, computed again from what it says about itself."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from limitlab.show.cli._app import FAILED, app
from limitlab.show.cli._lawcommand import LawsOption
from limitlab.show.cli._output import EngineOption, JsonOption, print_json, read_engine
from limitlab.show.cli._progress import working


@app.command(epilog="Example: limitlab reproduce ridge.nc")
def reproduce(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A saved result: .nc, .zarr, JSON of a command, or a store.")],
    engine: EngineOption = None,
    as_json: JsonOption = False,
    laws: LawsOption = None,
) -> None:
    """Compute a saved result again and say whether every number is the same; exit code 1 if they differ."""
    from limitlab.lab import reproduce as run

    with working(f"computing {file} again"):
        found = run(file, engine=read_engine(engine), progress=False)
    if as_json:
        print_json({**asdict(found), "matches": found.matches})
    else:
        typer.echo(str(found))
    if not found.matches:
        raise typer.Exit(FAILED)
