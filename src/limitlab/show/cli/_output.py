"""The output of a command: a table on the terminal, JSON, a file, a picture."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from limitlab._core.files import replacing, require_writable, write_whole
from limitlab._core.page import Page, jsonable
from limitlab._core.tables import describe_result, number, plain_symbol, rows_of, table_names
from limitlab.show._describe import kebab

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from limitlab._core.law import Law

JsonOption = Annotated[bool, typer.Option("--json", help='Print JSON instead of a table (infinity as the string "inf").')]
OutOption = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Save the numbers: .csv or .nc (NetCDF).")]
PlotOption = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Save a figure: .png, .svg or .pdf.")]
EngineOption = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help="Where draws run: serial, threads, processes, a number of workers, local-cluster, slurm:FILE, or the address of a "
        "Dask scheduler.",
    ),
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store", metavar="NAME", help="Keep finished draws in NAME (.nc, .zarr, folder): the same command goes on there."
    ),
]

RESULT_FORMATS = (".csv", ".nc")
FIGURE_FORMATS = (".png", ".svg", ".pdf")
WIDE = 200
"""Columns of a table that goes to a file or a pipe, where nothing needs to be folded."""


COLOURS = {"agree": "green", "disagree": "red", "underpowered": "yellow"}
"""The colours of verdicts."""


def read_engine(text: str | None) -> int | str | None:
    """An engine as it is typed: a name, an address or a number of workers.

    >>> read_engine("2"), read_engine("processes")
    (2, 'processes')
    """
    return int(text) if text is not None and text.isdecimal() else text


def stdout() -> Console:
    """The console for results: as wide as the terminal, or wide enough where there is none."""
    return Console(width=None if sys.stdout.isatty() else WIDE, highlight=False, soft_wrap=False)


def check_paths(out: Path | None = None, plot: Path | None = None, figure: Path | None = None, tables: bool = False) -> None:
    """Refuse a file that could not be written, before the work starts. `tables`: the numbers are rows, saved as .csv only."""
    named = (
        (out, "--out", RESULT_FORMATS[:1] if tables else RESULT_FORMATS),
        (plot, "--plot", FIGURE_FORMATS),
        (figure, "--out", FIGURE_FORMATS),
    )
    for path, option, formats in named:
        if path is not None:
            if path.suffix.lower() not in formats:
                raise ValueError(f"{option} {path}: the name must end in {' or '.join(formats)}")
            require_writable(path)


def deliver(
    result: Any,
    as_json: bool,
    out: Path | None,
    plot: Path | None,
    draw: Callable[[], Figure],
    show: Callable[[], None] | None,
    describe: Callable[[], Any] | None = None,
) -> None:
    """Save the result (a dataset or rows), draw it, then print it: as JSON, or by `show` (None: nothing is printed)."""
    if out is not None:
        (save_rows if isinstance(result, list) else save_result)(result, out)
    if plot is not None:
        save_figure(draw, plot)
    if as_json:
        print_json(describe() if describe is not None else describe_result(result))
    elif show is not None:
        show()


def say(line: str) -> None:
    """A remark for people, on stderr so that stdout holds results only."""
    typer.echo(line, err=True)


# -- tables ---------------------------------------------------------------------------------------------------------


def print_table(rows: Sequence[Mapping[str, Any]], title: str = "", most: int = 60) -> None:
    """Rows as a table; of a long one the first and the last, of a wide one the columns that fit, and what was left out."""
    console = stdout()
    if title:
        console.print(title, markup=False)
    names = fitting_columns(rows, console.width)
    table = Table()
    for name in names:
        textual = isinstance(rows[0][name], str)
        least = None if textual else max(len(number(row[name])) for row in rows)  # a number is never folded, its name may be
        table.add_column(name.replace("_", " "), justify="left" if textual else "right", overflow="fold", min_width=least)
    shown: list[Mapping[str, Any] | None] = list(rows)
    if len(rows) > most:
        shown = [*rows[: most // 2], None, *rows[-(most // 2) :]]
    for row in shown:
        table.add_row(*("..." if row is None else number(row[name]) for name in names))
    console.print(table, markup=False)
    if len(rows) > most:
        console.print(f"{len(rows)} rows; all of them with --out or --json", markup=False)
    left = [name for name in (rows[0] if rows else ()) if name not in names]
    if left:
        console.print(f"no room for {', '.join(left)}: widen the terminal, or --out or --json", markup=False)


def print_page(page: Page) -> None:
    """Print a page: title, facts, tables that fit the terminal, then the verdict in its colour and the sentences."""
    if page.title:
        stdout().print(page.title, markup=False)
    if page.facts:
        print_facts(page.facts)
    for table in page.tables:
        print_table(table.rounded(), table.title)
    if page.verdict:
        typer.secho(page.verdict, fg=COLOURS.get(page.verdict), bold=True, nl=False)
        typer.echo(": ", nl=False)
    if page.sentences:
        typer.echo("\n".join(page.sentences))


def print_facts(facts: Mapping[str, str]) -> None:
    """Terms and what is said of them, side by side."""
    grid = Table.grid(padding=(0, 2))
    for term, words in facts.items():
        grid.add_row(term, words)
    stdout().print(grid, markup=False)


def fitting_columns(rows: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    """The columns that fit side by side, from the left; texts may be folded, numbers may not.

    >>> fitting_columns([{"observable": "test_error", "theory": 0.123456, "simulation": 0.123457}], 30)
    ['observable', 'theory']
    """
    kept: list[str] = []
    room = width - 1
    for name in rows[0] if rows else ():
        longest_word = max(map(len, name.split("_")))
        longest_cell = max(len(number(row[name])) for row in rows)
        room -= max(longest_word, min(longest_cell, 30) if isinstance(rows[0][name], str) else longest_cell) + 3
        if room < 0 and len(kept) > 1:
            break
        kept.append(name)
    return kept


# -- JSON -----------------------------------------------------------------------------------------------------------


def print_json(value: Any) -> None:
    """Strict JSON on stdout: infinities and NaN as the strings "inf", "-inf", "nan"."""
    typer.echo(json.dumps(jsonable(value), indent=2, allow_nan=False))


# -- files ----------------------------------------------------------------------------------------------------------


def save_result(result: xr.Dataset, path: Path) -> None:
    """Write a result to .csv (one row per grid point) or .nc (everything, with its provenance), whole or not at all."""
    if path.suffix.lower() == ".csv":
        save_rows(rows_of(result), path)
        left = [str(name) for name in result.data_vars if str(name) not in table_names(result)]
        if left:
            say(f"{path} has no column for {', '.join(left)} (raw samples): save as .nc to keep them")
        return
    with replacing(path) as temporary:
        storable(result).to_netcdf(temporary, engine="h5netcdf")
    say(f"wrote {path}")


def save_rows(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write rows as CSV with full precision."""
    import csv
    import io

    text = io.StringIO()
    listed = list(rows)
    writer = csv.DictWriter(text, fieldnames=list(listed[0]) if listed else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(listed)
    write_whole(path, text.getvalue().encode())
    say(f"wrote {path}")


def storable(result: xr.Dataset) -> xr.Dataset:
    """The result with attributes that NetCDF knows: numbers and text."""
    known = (str, int, float, np.generic, np.ndarray)
    attrs = {
        key: value if isinstance(value, known) and not isinstance(value, bool) else json.dumps(jsonable(value))
        for key, value in result.attrs.items()
    }
    return result.assign_attrs(attrs)


def save_figure(make: Callable[[], Figure], path: Path) -> None:
    """Draw and write a figure, whole or not at all; the same figure gives the same file."""
    from limitlab.plotting.output import rendered

    write_whole(path, rendered(make(), path.suffix.lower().removeprefix(".")))
    say(f"wrote {path}")


def save_drawn(figure: Figure, path: Path) -> None:
    """Write the numbers that a figure shows as CSV."""
    from limitlab.plotting.output import as_csv, plotted_data

    write_whole(path, as_csv(plotted_data(figure)).encode())
    say(f"wrote {path}")


KIND_WORDS = {"solver": "Accuracy of the prediction (advanced)", "experiment": "What is simulated (advanced)"}


def parameter_table(law: type[Law]) -> None:
    """Print a law's parameters as the options they are: those that decide the limit, then the advanced ones by kind."""
    from limitlab._core.about import allowed

    for kinds, title in (
        (("physics", "coordinate"), ""),
        (("solver",), KIND_WORDS["solver"]),
        (("experiment",), KIND_WORDS["experiment"]),
    ):
        chosen = {name: meta for name, meta in law.parameters().items() if meta.kind in kinds}
        if not chosen:
            continue
        table = Table("option", "symbol", "default", "allowed", "description", title=title or None, title_justify="left")
        for name, meta in chosen.items():
            default = number(meta.default)
            table.add_row(f"--{kebab(name)}", plain_symbol(meta.symbol), default, allowed(law, name), meta.words)
        stdout().print(table, markup=False)
