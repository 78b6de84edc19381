"""`verify`, `figure`, `report`, `explore`: the claims, the figures, all results on one page, and laws with sliders."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from limitlab._core.files import require_writable, write_whole
from limitlab._core.page import jsonable
from limitlab._core.tables import number
from limitlab.show.cli._app import FAILED, app, working
from limitlab.show.cli._law import LawsOption, claim_ids, figure_ids, laws_named
from limitlab.show.cli._output import (
    FIGURE_FORMATS,
    EngineOption,
    JsonOption,
    check_paths,
    print_json,
    print_table,
    read_engine,
    save_drawn,
    save_figure,
    say,
    stdout,
)

if TYPE_CHECKING:
    from limitlab.lab.verification import Record


@app.command(epilog="Example: limitlab verify J5 J8 --full")
def verify(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Claims to check (default: all).", autocompletion=claim_ids)
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="The sizes that decide (minutes) instead of small ones (seconds).")
    ] = False,
    engine: EngineOption = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--store", metavar="FOLDER", help="Keep outcomes and draws there: a second run computes only what changed."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Also write the ledger there, as Markdown (.md) or JSON (.json)."),
    ] = None,
    as_json: JsonOption = False,
    laws: LawsOption = None,
) -> None:
    """Check the claims of the ledger and print what was measured; exit code 1 when one fails.

    With --laws and without ids, only the claims of that file or folder are checked.
    """
    from limitlab._core.registry import package_name
    from limitlab.lab.claims import claims_of_package, find_claims
    from limitlab.lab.verification import verify as run

    if out is not None and out.suffix not in (".md", ".json"):
        raise ValueError(f"--out {out} is not allowed: its name must end in .md or .json")
    if laws and not ids:
        claims = [one for place in laws for one in claims_of_package(package_name(place))]
        if not claims:
            raise ValueError(f"--laws {laws[0]} states no claims: write them in _claims.py, or name the claims to check")
    else:
        claims = find_claims(ids or ())
    start = time.perf_counter()
    records = run(claims, quick=not full, engine=read_engine(engine), store=store)
    seconds = time.perf_counter() - start
    if out is not None:
        plain = json.dumps(jsonable([record.page().data for record in records]), indent=2, allow_nan=False)
        write_whole(out, (plain if out.suffix == ".json" else markdown(records, full, seconds)).encode())
    failed = [record.claim.id for record in records if record.status == "fail"]
    asked_but_missing = [record.claim.id for record in records if ids and record.status == "not implemented"]
    if as_json:
        print_json([record.page().data for record in records])
    else:
        print_records(records)
        counts = {status: sum(record.status == status for record in records) for status in COLOURS}
        typer.echo(", ".join(f"{count} {status}" for status, count in counts.items()))
    if asked_but_missing:
        typer.echo(f"not implemented: {', '.join(asked_but_missing)}", err=True)
    if failed or asked_but_missing:
        raise typer.Exit(FAILED)


COLOURS = {"pass": "green", "consistent": "cyan", "fail": "red", "not implemented": "yellow"}


def print_records(records: list[Record]) -> None:
    """The ledger: what is claimed, what was measured, what was asked of it."""
    grid = Table.grid(padding=(0, 2))
    for record in records:
        grid.add_row(
            Text(record.status, style=COLOURS[record.status]), Text(record.claim.id, style="bold"), words_of(record)
        )
    stdout().print(grid)


def words_of(record: Record) -> Text:
    """The statement of a claim, then the numbers, the criterion and the note of its check."""
    words = Text(record.claim.statement)
    if record.outcome:
        outcome = record.outcome
        measured = ", ".join(f"{name} = {number(value)}" for name, value in outcome.numbers.items())
        words.append(f"\n{measured}", style="cyan")
        words.append(f"\nCriterion: {outcome.criterion} ({outcome.seconds:.1f} s)", style="dim")
        words.append(f"\nNote: {outcome.note}" if outcome.note else "", style="dim")
    words.append(f"\n{record.error}" if record.error else "", style="red")
    return words


def markdown(records: list[Record], full: bool, seconds: float) -> str:
    """The ledger as Markdown: what every claim was decided by, and how long it took."""
    counts = {status: sum(record.status == status for record in records) for status in COLOURS}
    lines = [
        f"{'Full' if full else 'Quick'} checks, {len(records)} claims in {seconds / 60:.1f} minutes: "
        + ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        + ".",
        "",
        "| claim | status | decided by | seconds |",
        "|---|---|---|---:|",
    ]
    for record in records:
        outcome = record.outcome
        deciding = "; ".join(f"{one} ({number(one.value)})" for one in outcome.criteria) if outcome else record.error
        cell = deciding.replace("|", "\\|").replace("\n", " ")
        lines.append(f"| {record.claim.id} | {record.status} | {cell} | {outcome.seconds if outcome else 0:.0f} |")
    return "\n".join(lines) + "\n"


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
