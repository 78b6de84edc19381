"""`figure` and `report`: the pictures behind the claims, and everything on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from limitlab._core.files import require_writable
from limitlab.show.cli._app import FAILED, app
from limitlab.show.cli._completion import figure_ids
from limitlab.show.cli._lawcommand import LawsOption, laws_named
from limitlab.show.cli._output import (
    FIGURE_FORMATS,
    JsonOption,
    check_paths,
    print_json,
    print_table,
    save_drawn,
    save_figure,
    say,
)
from limitlab.show.cli._progress import working


@app.command(epilog="Example: limitlab figure ridge-double-descent --out double_descent.svg --format svg,png")
def figure(
    figure_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Id of a figure, as --list shows them.", autocompletion=figure_ids)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "--plot", metavar="FILE", help="Where to save it: .png (default ID.png), .svg or .pdf."),
    ] = None,
    formats: Annotated[
        str | None, typer.Option("--format", metavar="NAMES", help="Comma list of png, svg, pdf: all of them, beside FILE.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Larger experiments, smaller error bars.")] = False,
    data: Annotated[bool, typer.Option("--data/--no-data", help="Save what is drawn beside it, as .csv.")] = True,
    list_all: Annotated[bool, typer.Option("--list", help="List the ids of all figures.")] = False,
    as_json: JsonOption = False,
    laws: LawsOption = None,
) -> None:
    """Draw one of the figures behind the claims, and save the numbers that it shows beside it."""
    from limitlab.lab.figures import describe_figures, find_figure
    from limitlab.lab.figures import figure as draw

    if list_all:
        rows = [{"id": name, "shows": words} for name, words in describe_figures().items()]
        print_json(rows) if as_json else print_table(rows, most=1000)
        return
    if figure_id is None:
        raise ValueError("name a figure: `limitlab figure --list` lists them")
    name = find_figure(figure_id)
    paths = figure_paths(out if out is not None else Path(f"{name.replace(':', '-')}.png"), formats)
    for path in paths:
        check_paths(figure=path)
    table = paths[0].with_suffix(".csv") if data else None
    check_paths(out=table)
    with working(f"drawing {name}"):
        drawn = draw(name, quick=not full)
        for path in paths:
            save_figure(lambda: drawn, path)
    if table is not None:
        save_drawn(drawn, table)
    if as_json:
        files = [str(path) for path in paths]
        print_json({"id": name, "file": files[0], "files": files, "data": str(table or ""), "formats": FIGURE_FORMATS})


def figure_paths(path: Path, formats: str | None) -> list[Path]:
    """The files of a figure: the one that is named, or one per format beside it.

    >>> [str(path) for path in figure_paths(Path("x.png"), "svg, pdf")]
    ['x.svg', 'x.pdf']
    """
    if formats is None:
        return [path]
    wanted = [f".{name.strip().lower().removeprefix('.')}" for name in formats.split(",")]
    unknown = [suffix for suffix in wanted if suffix not in FIGURE_FORMATS]
    if unknown:
        known = ", ".join(suffix.removeprefix(".") for suffix in FIGURE_FORMATS)
        raise ValueError(f"--format {formats}: the formats are {known}; give one or several with commas")
    stem = path.with_suffix("") if path.suffix.lower() in FIGURE_FORMATS else path
    return [stem.with_name(stem.name + suffix) for suffix in dict.fromkeys(wanted)]


@app.command(epilog="Example: limitlab report --quick --out report.html")
def report(
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to write the page.")] = Path("report.html"),
    quick: Annotated[
        bool, typer.Option("--quick/--full", help="Small experiments (minutes), or the sizes that decide.")
    ] = True,
    law_names: Annotated[
        str | None,
        typer.Option(
            "--laws", metavar="LIST", help="Comma list of laws, and of files or folders with laws (default: all laws)."
        ),
    ] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes (default: one per core).")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Compute everything anew, and keep nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write one self-contained HTML page: the ledger, every law with theory against simulation, the figures.

    Finished parts are kept in FILE.cells: a second run computes only what changed.
    """
    from limitlab._core.registry import all_laws
    from limitlab.lab.engines import available_cores
    from limitlab.show.report import write_report

    laws = laws_named(law_names) if law_names else list(all_laws().values())
    require_writable(out)
    processes = workers if workers is not None else available_cores()
    engine = processes if processes > 1 else None
    store = None if fresh else out.with_name(out.name + ".cells")
    with working("writing the report", every=3.0) as tell:
        summary = write_report(
            out,
            laws=laws,
            quick=quick,
            engine=engine,
            store=store,
            progress=lambda done, total: tell(f"writing the report: {done} of {total} parts done"),
        )
    if as_json:
        print_json({"file": str(out), **summary.counts(), "failed": summary.failed, "undecided": summary.undecided})
    else:
        say(f"wrote {out}")
        typer.echo(summary.line())
    if summary.failed:
        raise typer.Exit(FAILED)
