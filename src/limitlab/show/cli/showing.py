"""`figure` and `report`: the pictures behind the claims, and everything on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from limitlab.show.cli.app import FAILED, app
from limitlab.show.cli.completion import figure_ids
from limitlab.show.cli.output import FIGURE_FORMATS, JsonOption, check_paths, print_json, print_table, save_figure, say
from limitlab.show.cli.progress import working
from limitlab.show.paths import require_writable


@app.command(epilog="Example: limitlab figure ridge-double-descent --out double_descent.svg")
def figure(
    figure_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Id of a figure, as --list shows them.", autocompletion=figure_ids)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "--plot", metavar="FILE", help="Where to save it: .png (default ID.png), .svg or .pdf."),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Larger experiments, smaller error bars.")] = False,
    list_all: Annotated[bool, typer.Option("--list", help="List the ids of all figures.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Draw one of the figures behind the claims."""
    from limitlab.show.figures import describe_figures, find_figure, make_figure

    if list_all:
        rows = [{"id": name, "shows": words} for name, words in describe_figures().items()]
        print_json(rows) if as_json else print_table(rows, most=1000)
        return
    if figure_id is None:
        raise ValueError("name a figure: `limitlab figure --list` lists them")
    name = find_figure(figure_id)
    path = out if out is not None else Path(f"{name}.png")
    check_paths(figure=path)
    with working(f"drawing {name}"):
        save_figure(lambda: make_figure(name, quick=not full), path)
    if as_json:
        print_json({"id": name, "file": str(path), "formats": FIGURE_FORMATS})


@app.command(epilog="Example: limitlab report --quick --out report.html")
def report(
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to write the page.")] = Path("report.html"),
    quick: Annotated[
        bool, typer.Option("--quick/--full", help="Small experiments (minutes), or the sizes that decide.")
    ] = True,
    law_names: Annotated[
        str | None, typer.Option("--laws", metavar="NAMES", help="Comma list of laws (default: all).")
    ] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes (default: one per core).")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Compute everything anew, and keep nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write one self-contained HTML page: the ledger, every law with theory against simulation, the figures.

    Finished parts are kept in FILE.cells: a second run computes only what changed.
    """
    from limitlab.lab.engines import available_cores
    from limitlab.lab.registry import all_laws, find_law
    from limitlab.show.report import write_report

    laws = [find_law(name.strip()) for name in law_names.split(",")] if law_names else list(all_laws().values())
    require_writable(out)
    processes = workers if workers is not None else available_cores()
    engine = processes if processes > 1 else None
    store = None if fresh else out.with_name(out.name + ".cells")
    with working("writing the report", lines=True) as tell:
        summary = write_report(
            out,
            laws=laws,
            quick=quick,
            engine=engine,
            store=store,
            progress=lambda done, total: tell(f"{done} of {total} parts done"),
        )
    if as_json:
        print_json({"file": str(out), **summary.counts(), "failed": summary.failed, "undecided": summary.undecided})
    else:
        say(f"wrote {out}")
        typer.echo(summary.line())
    if summary.failed:
        raise typer.Exit(FAILED)
