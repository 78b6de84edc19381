"""The commands `verify` (claims), `figure`, `report` (all results on a page), `explore` (laws with sliders) and `bench` (times)."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from limitlab._core.cost import duration
from limitlab._core.files import require_writable, write_whole
from limitlab._core.page import jsonable, number
from limitlab.errors import Refused
from limitlab.show.cli._app import FAILED, IN_TERMINAL, app, say, status_line
from limitlab.show.cli._catalogue import shorten
from limitlab.show.cli._law import LawsOption, claim_ids, figure_ids, laws_named
from limitlab.show.cli._output import (
    FIGURE_FORMATS,
    EngineOption,
    JsonOption,
    check_paths,
    print_json,
    print_note,
    print_table,
    read_engine,
    save_drawn,
    save_figure,
    stdout,
)

if TYPE_CHECKING:
    from limitlab.lab.claims import Record


@app.command(epilog="Example: limitlab verify J5 J8 --full")
def verify(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Claims to check (default: all).", autocompletion=claim_ids)
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Run the full checks (minutes) instead of the quick ones (seconds).")
    ] = False,
    engine: EngineOption = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--store", metavar="FOLDER", help="Store results in this folder; a second run computes only what changed."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Also write the results to this Markdown (.md) or JSON (.json) file."),
    ] = None,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", help="Print statement, criteria and numbers of every claim, not only of those that fail."
        ),
    ] = False,
    as_json: JsonOption = False,
    laws: LawsOption = None,
) -> None:
    """Check claims of the theory and print one line for each of them.

    A claim that fails is printed with its statement, its criteria and its measured numbers. The exit code is then 1. With --laws and
    without ids, only the claims of this file or folder are checked.
    """
    from limitlab._core.registry import package_name
    from limitlab.lab.claims import claims_of_package, decided_words, find_claims
    from limitlab.lab.claims import verify as run

    if out is not None and out.suffix not in (".md", ".json"):
        raise Refused(f"--out {out} is not allowed: its name must end in .md or .json")
    if laws and not ids:
        claims = [claim for place in laws for claim in claims_of_package(package_name(place))]
        if not claims:
            raise Refused(f"--laws {laws[0]} contains no claims: write them in _claims.py, or name the claims to check")
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
        print_records(records, verbose)
        counts = {status: sum(record.status == status for record in records) for status in COLOURS}
        words = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        say(f"{words} in {duration(seconds)}. {decided_words(records)}")
    if asked_but_missing:
        say(f"not implemented: {', '.join(asked_but_missing)}", err=True)
    if failed or asked_but_missing:
        raise typer.Exit(FAILED)


COLOURS = {"pass": "green", "consistent": "cyan", "fail": "red", "not implemented": "yellow"}


def print_records(records: list[Record], verbose: bool = False) -> None:
    """Print one line per claim, with the details of claims that fail, or of all claims."""
    column, word = max(len(record.claim.id) for record in records), max(len(record.status) for record in records)
    for record in records:
        line = f"{record.status:<{word}}  {record.claim.id:<{column}}  "
        if record.outcome:
            holding = sum(criterion.holds for criterion in record.outcome.criteria)
            counted = f"{holding} of {len(record.outcome.criteria)} criteria"
            line += f"{counted:<17}  {duration(record.outcome.seconds):>7}  "
        line += shorten(record.claim.statement, stdout().width - len(line))
        rest = line.removeprefix(record.status)
        typer.echo(typer.style(record.status, fg=COLOURS[record.status]) + rest.rstrip())
        if verbose or record.status == "fail":
            print_details(record)


def print_details(record: Record) -> None:
    """Print the statement of a claim, a table of its criteria, its numbers, its note and its error."""
    say(f"    {record.claim.statement}", "    ")
    if record.outcome:
        rows = [
            {
                "criterion": str(criterion),
                "measured": criterion.value if isinstance(criterion.value, str) else number(criterion.value),
                "holds": "yes" if criterion.holds else "no",
            }
            for criterion in record.outcome.criteria
        ]
        if rows:
            print_table(rows, most=1000, fold=True)
        measured = ", ".join(f"{name} = {number(value)}" for name, value in record.outcome.measured.items())
        for words in (measured, record.outcome.note and f"Note: {record.outcome.note}"):
            if words:
                say(f"    {words}", "    ")
    if record.error:
        say(f"    {record.error}", "    ", fg="red")


def markdown(records: list[Record], full: bool, seconds: float) -> str:
    """Return a Markdown table of the claims, with the criteria that decided and the time of each."""
    from limitlab.lab.claims import decided_words

    counts = {status: sum(record.status == status for record in records) for status in COLOURS}
    lines = [
        f"{'Full' if full else 'Quick'} checks, {len(records)} claims in {seconds / 60:.1f} minutes: "
        + ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        + ".",
        "",
        decided_words(records),
        "",
        "| claim | status | decided by | seconds |",
        "|---|---|---|---:|",
    ]
    for record in records:
        outcome = record.outcome
        deciding = (
            "; ".join(f"{criterion} ({number(criterion.value)})" for criterion in outcome.criteria)
            if outcome
            else record.error
        )
        cell = deciding.replace("|", "\\|").replace("\n", " ")
        lines.append(f"| {record.claim.id} | {record.status} | {cell} | {outcome.seconds if outcome else 0:.0f} |")
    return "\n".join(lines) + "\n"


@app.command(epilog="Example: limitlab figure ridge-double-descent --out double_descent.svg --format svg,png")
def figure(
    figure_id: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]", help="Id of a figure, or name of a law; --list shows all of them.", autocompletion=figure_ids
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "--plot", metavar="FILE", help="File of the figure, .png (default ID.png), .svg or .pdf."),
    ] = None,
    formats: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAMES",
            help="One or several of png, svg and pdf, separated by commas; one file each, next to FILE.",
        ),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Run larger experiments, for smaller error bars.")] = False,
    data: Annotated[bool, typer.Option("--data/--no-data", help="Also save the numbers of the figure, as .csv.")] = True,
    list_all: Annotated[bool, typer.Option("--list", help="List the ids of all figures.")] = False,
    as_json: JsonOption = False,
    laws: LawsOption = None,
) -> None:
    """Draw a figure of the documentation or the headline view of a law, and save its numbers next to it."""
    from limitlab.lab.figures import describe_figures
    from limitlab.lab.figures import figure as draw

    if list_all:
        rows = [{"id": name, "shows": words} for name, words in {**headlines(), **describe_figures()}.items()]
        print_json(rows) if as_json else print_table(rows, most=1000, fold=True)
        return
    if figure_id is None:
        raise Refused("the id of a figure is missing: `limitlab figure --list` lists all ids")
    name = named_figure(figure_id)
    paths = figure_paths(out if out is not None else Path(f"{name.replace(':', '-')}.png"), formats)
    for path in paths:
        check_paths(figure=path)
    table = paths[0].with_suffix(".csv") if data and str(paths[0]) != IN_TERMINAL else None
    check_paths(out=table)
    with status_line(f"drawing {name}"):
        drawn = draw(name, quick=not full)
    for path in paths:
        save_figure(lambda: drawn, path)
    if table is not None:
        save_drawn(drawn, table)
    if as_json:
        files = [str(path) for path in paths]
        print_json({"id": name, "file": files[0], "files": files, "data": str(table or ""), "formats": FIGURE_FORMATS})


def headlines() -> dict[str, str]:
    """Return the names of the laws, with the finding of the headline view that `figure LAW` draws."""
    from limitlab._core.headline import headline_of
    from limitlab._core.registry import all_laws

    return {name: f"{headline_of(law).finding} (the headline view of this law)." for name, law in all_laws().items()}


def named_figure(text: str) -> str:
    """Return the id of a figure, or the name of a law whose headline view is drawn.

    >>> named_figure("J5"), named_figure("ridge")
    ('marchenko-pastur', 'Ridge')
    """
    from limitlab._core.registry import find_law, law_id
    from limitlab.lab.figures import find_figure

    try:
        return find_figure(text)
    except Refused:
        try:
            return law_id(find_law(text))
        except ValueError:
            pass
        raise


def figure_paths(path: Path, formats: str | None) -> list[Path]:
    """Return the files of a figure, which are FILE, or one file per format next to it.

    >>> [str(path) for path in figure_paths(Path("x.png"), "svg, pdf")]
    ['x.svg', 'x.pdf']
    """
    if formats is None:
        return [path]
    wanted = [f".{name.strip().lower().removeprefix('.')}" for name in formats.split(",")]
    unknown = [suffix for suffix in wanted if suffix not in FIGURE_FORMATS]
    if unknown:
        known = ", ".join(suffix.removeprefix(".") for suffix in FIGURE_FORMATS)
        raise Refused(f"--format {formats}: the formats are {known}; give one or several, separated by commas")
    stem = path.with_suffix("") if path.suffix.lower() in FIGURE_FORMATS else path
    return [stem.with_name(stem.name + suffix) for suffix in dict.fromkeys(wanted)]


@app.command(epilog="Example: limitlab report --quick --out report.html")
def report(
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="File of the page.")] = Path("report.html"),
    quick: Annotated[bool, typer.Option("--quick/--full", help="Small experiments (minutes), or the full checks.")] = True,
    law_names: Annotated[
        str | None,
        typer.Option(
            "--laws", metavar="LIST", help="Laws, files and folders with laws, separated by commas (default: all laws)."
        ),
    ] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes (default: one per core).")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Compute everything again, and store nothing.")] = False,
    docs: Annotated[
        str, typer.Option("--docs", metavar="ADDRESS", help="Address of the documentation, for links to the theory pages.")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Write a self-contained HTML page with a picture of every law, comparisons of theory and simulation, and all claims.

    Finished parts are stored in FILE.cells, and a second run computes only what changed.
    """
    from limitlab._core.registry import all_laws
    from limitlab.lab.engines import available_cores
    from limitlab.show.report import write_report

    laws = laws_named(law_names) if law_names else list(all_laws().values())
    require_writable(out)
    processes = workers if workers is not None else available_cores()
    engine = processes if processes > 1 else None
    store = None if fresh else out.with_name(out.name + ".cells")
    with status_line("writing the report") as tell:
        summary = write_report(
            out,
            laws=laws,
            quick=quick,
            engine=engine,
            store=store,
            progress=lambda done, total: tell(f"writing the report: {done} of {total} parts done", done / total),
            docs=docs,
        )
    if as_json:
        print_json({"file": str(out), **summary.counts(), "failed": summary.failed, "undecided": summary.undecided})
    else:
        print_note(f"wrote {out}")
        say(summary.line())
    if summary.failed:
        raise typer.Exit(FAILED)


EXPLORE_EXAMPLE = """Example: limitlab explore ridge

limitlab explore --static pages ridge early-stopping"""


@app.command(epilog=EXPLORE_EXAMPLE)
def explore(
    law_names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[LAW]...", help="The first law on the page; with --static, the laws (default: all).", show_default=False
        ),
    ] = None,
    static: Annotated[
        Path | None,
        typer.Option(
            "--static", metavar="FOLDER", help="Write pages with precomputed sliders to this folder; run no server."
        ),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(
            "--store", metavar="FOLDER", help="With --static, store finished laws; a second run computes changes only."
        ),
    ] = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port of the server; 0 means any free port.")] = 5006,
    host: Annotated[
        str, typer.Option("--host", help="Address of the server; 127.0.0.1 accepts this computer only.")
    ] = "127.0.0.1",
    show: Annotated[bool, typer.Option("--show/--no-show", help="Open a browser.")] = True,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds",
            min=1,
            help="Longest time of one computation (default 120), or of one law with --static (default 15).",
            show_default=False,
        ),
    ] = None,
    memory: Annotated[int, typer.Option("--memory", min=64, help="Largest memory of one computation, in MB.")] = 2048,
    upload: Annotated[float, typer.Option("--upload", min=0.001, help="Largest file that can be uploaded, in MB.")] = 5,
    workers: Annotated[
        int, typer.Option("--workers", min=0, help="Number of computations at the same time (0: one per core).")
    ] = 0,
    visitors: Annotated[
        int, typer.Option("--visitors", min=1, help="Largest number of pages that are open at the same time.")
    ] = 50,
    as_json: JsonOption = False,
    laws: LawsOption = None,
) -> None:
    """Explore laws in a browser, with sliders for their parameters.

    The page draws predictions at once. It also runs experiments, phase diagrams, comparisons, plans and forecasts of your own data. With
    --static the command writes self-contained pages instead, one for every law, which need no server and no network.
    """
    if static is not None:
        write_static(static, law_names or [], store, seconds, workers, as_json)
        return
    if store is not None:
        raise Refused("--store needs --static FOLDER: the server of the explorer stores nothing")
    if law_names and len(law_names) > 1:
        raise Refused(f"{len(law_names)} laws are not allowed without --static: name one law, which the page shows first")
    from limitlab.show.explorer import serve
    from limitlab.show.explorer.jobs import Caps

    caps = Caps(120 if seconds is None else seconds, memory, upload, workers, visitors)

    def ready(address: str) -> None:
        if as_json:
            print_json({"address": address})
        print_note(f"the explorer is at {address} (Ctrl-C ends it)")
        if not address.startswith(("http://127.", "http://localhost")):
            print_note("the explorer has no password: every computer that can connect to this one can use it")

    try:
        serve(port, host, show, caps, law_names[0] if law_names else None, ready)
        atexit.register(os._exit, 0)  # to free the pages of all visitors one by one would take seconds
    except ModuleNotFoundError as error:
        if error.name != "panel":
            raise
        raise Refused(str(error)) from None


def write_static(
    folder: Path, names: list[str], store: Path | None, seconds: float | None, workers: int, as_json: bool
) -> None:
    """Write the pages of the static explorer, and print their number and size."""
    from limitlab.lab.engines import available_cores
    from limitlab.show.explorer.static import write_pages

    laws = [law for name in names for law in laws_named(name)] or None
    processes = workers or available_cores()
    began = time.perf_counter()
    with status_line("computing the pages") as tell:
        summary = write_pages(
            folder,
            laws,
            **({} if seconds is None else {"seconds": seconds}),
            engine=processes if processes > 1 else None,
            store=store,
            progress=lambda done, total: tell(f"computing the pages: {done} of {total} laws done", done / total),
        )
    page = folder / "index.html"
    if as_json:
        sizes, left_out = dict(summary.sizes), dict(summary.incomplete)
        print_json({"file": str(page), "bytes": sizes, "combinations_left_out": left_out, "failed": dict(summary.failed)})
    else:
        print_note(f"wrote {page} in {time.perf_counter() - began:.0f} s")
        say(summary.line())
    for name, reason in summary.failed.items():
        say(f"{name}: {reason}", err=True)
    if summary.failed:
        raise typer.Exit(FAILED)


# -- bench -----------------------------------------------------------------------------------------------------------


EXAMPLE = """Example: limitlab bench ridge

limitlab bench --out benchmarks.md"""


@app.command(epilog=EXAMPLE)
def bench(
    part: Annotated[str, typer.Argument(metavar="[PART]", help="Only benchmarks whose name contains this.")] = "",
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE.md", help="Where to write the page: a file or a folder.")
    ] = Path("benchmarks.md"),
    peers: Annotated[
        bool, typer.Option("--peers", help="Also compare with other packages, each in a separate environment made by pip.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure times relative to alternatives, growth exponents and the share of the machine's peak speed.

    This takes some minutes.
    """
    out = out / "benchmarks.md" if out.is_dir() else out
    if not out.parent.is_dir():
        raise Refused(f"--out {out} is not allowed: there is no folder {out.parent}; create it first")
    command = [sys.executable, str(benchmark_folder() / "run.py"), *([part] if part else []), "--out", str(out)]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    command += [*(["--peers"] if peers else []), *(["--json"] if as_json else [])]
    # Ctrl-C reaches this process only, which then ends the benchmark and its processes without their tracebacks
    with subprocess.Popen(command, env={**os.environ, **threads}, start_new_session=True) as running:
        try:
            code = running.wait()
        except BaseException:
            end_group(running.pid)
            raise
    if code == 2:
        raise Refused(f"no name of a benchmark contains {part!r}")
    raise typer.Exit(code)


def end_group(leader: int) -> None:
    """End a process and all processes of its group."""
    with contextlib.suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(leader, signal.SIGKILL)
        else:
            os.kill(leader, signal.SIGTERM)


def benchmark_folder() -> Path:
    """Return the folder of the benchmarks, in an installed package or next to the sources of a checkout."""
    package = Path(str(files("limitlab")))
    for folder in (package / "_benchmarks", package.parents[1] / "benchmarks"):
        if (folder / "run.py").exists():
            return folder
    raise Refused("the benchmarks are not installed: install the wheel of limitlab, or use a checkout of the sources")
