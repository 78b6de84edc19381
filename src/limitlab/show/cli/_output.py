"""The output of commands as tables on the terminal, JSON, files and figures."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from limitlab._core.files import replacing, require_writable, write_whole
from limitlab._core.page import Page, describe_result, jsonable, number, plain_symbol, rows_of, table_names
from limitlab.errors import Refused
from limitlab.show.cli._app import IN_TERMINAL, say

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from limitlab._core.law import Law

JsonOption = Annotated[bool, typer.Option("--json", help='Print JSON instead of a table (infinity as the string "inf").')]
OutOption = Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Save the numbers: .csv or .nc (NetCDF).")]
PlotOption = Annotated[
    Path | None,
    typer.Option("--plot", metavar="[FILE]", help="Save a figure: .png, .svg or .pdf. Without FILE, draw in the terminal."),
]
EngineOption = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help="Engine that runs the draws (serial, threads, processes, a number of workers, local-cluster, slurm:FILE, or the address of a "
        "Dask scheduler).",
    ),
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="NAME",
        help="Store finished draws in NAME (.nc, .zarr or a folder); the same command then resumes.",
    ),
]

RESULT_FORMATS = (".csv", ".nc")
FIGURE_FORMATS = (".png", ".svg", ".pdf")
WIDE = 200
"""Width of a table in characters if the output is a file or a pipe, so that no text is folded."""


COLOURS = {"agree": "green", "disagree": "red", "underpowered": "yellow"}
"""The colours of verdicts."""


def kebab(name: str) -> str:
    """Return the spelling of a parameter on the command line.

    >>> kebab("width_ratio")
    'width-ratio'
    """
    return name.replace("_", "-")


def read_engine(text: str | None) -> int | str | None:
    """Return the engine of a text, which is a name, an address or a number of workers.

    >>> read_engine("2"), read_engine("processes")
    (2, 'processes')
    """
    return int(text) if text is not None and text.isdecimal() else text


def stdout() -> Console:
    """Return the console for results, with the width of the terminal, or a large width without a terminal."""
    return Console(width=None if sys.stdout.isatty() else WIDE, highlight=False, soft_wrap=False)


def check_paths(out: Path | None = None, plot: Path | None = None, figure: Path | None = None, tables: bool = False) -> None:
    """Raise an error before the work starts if a file cannot be written.

    If `tables` is true, the numbers are rows, which are saved as .csv only.
    """
    named = (
        (out, "--out", RESULT_FORMATS[:1] if tables else RESULT_FORMATS),
        (plot, "--plot", FIGURE_FORMATS),
        (figure, "--out", FIGURE_FORMATS),
    )
    for path, option, formats in named:
        if path is not None and str(path) != IN_TERMINAL:
            if path.suffix.lower() not in formats:
                raise Refused(f"{option} {path}: the name must end in {' or '.join(formats)}")
            require_writable(path)


def write_outputs(
    result: Any,
    as_json: bool,
    out: Path | None,
    plot: Path | None,
    draw: Callable[[], Figure],
    show: Callable[[], None] | None,
    describe: Callable[[], Any] | None = None,
) -> None:
    """Save the result (a dataset or rows), draw it, and print it as JSON or with `show`.

    If `show` is None, nothing is printed.
    """
    if out is not None:
        (save_rows if isinstance(result, list) else save_result)(result, out)
    if plot is not None:
        save_figure(draw, plot)
    if as_json:
        print_json(describe() if describe is not None else describe_result(result))
    elif show is not None:
        show()


def print_note(line: str) -> None:
    """Print a note on stderr, so that stdout contains results only."""
    say(line, err=True)


# -- tables ---------------------------------------------------------------------------------------------------------


def print_table(rows: Sequence[Mapping[str, Any]], title: str = "", most: int = 60, fold: bool = False) -> None:
    """Print rows as a table.

    A long table is shortened to its first and last rows, and a wide table to the columns that fit. A line says what was left out. If
    `fold` is true, the table has all columns, and long texts are folded.
    """
    console = stdout()
    if title:
        say(title)
    names = list(rows[0] if rows else ()) if fold else fitting_columns(rows, console.width)
    table = Table()
    widths = column_widths([needed(name, rows) for name in names], console.width)
    if fold and None in widths:
        print_blocks(rows)
        return
    for name, width in zip(names, widths, strict=True):
        justify: Literal["left", "right"] = "left" if isinstance(rows[0][name], str) else "right"
        table.add_column(name.replace("_", " "), justify=justify, overflow="fold", width=width)
    shown: list[Mapping[str, Any] | None] = list(rows)
    if len(rows) > most:
        shown = [*rows[: most // 2], None, *rows[-(most // 2) :]]
    for row in shown:
        table.add_row(*("..." if row is None else number(row[name]) for name in names))
    console.print(table, markup=False)
    if len(rows) > most:
        say(f"{len(rows)} rows; --out or --json gives all of them")
    left = [name for name in (rows[0] if rows else ()) if name not in names]
    if left:
        say(f"no room for {', '.join(left)}: widen the terminal, or use --out or --json")


def print_page(page: Page, fold: bool = False) -> None:
    """Print a page, with its answer first.

    The answer is the verdict with the first sentence, or the title if there is no verdict. Then follow the title, the facts, the tables and
    the other sentences. Tables are cut to the width of the terminal. If `fold` is true, they have all rows and columns, and long texts are
    folded.
    """
    sentences = list(page.sentences)
    if page.verdict:
        answer = ": ".join([page.verdict, *sentences[:1]])
        say(answer, fg=COLOURS.get(page.verdict), bold=True)
        sentences = sentences[1:]
    if page.title:
        say(page.title, bold=not page.verdict)
    if page.facts:
        print_facts(page.facts)
    for table in page.tables:
        rows = table.rounded()
        print_table(rows, table.title, max(len(rows), 60) if fold else 60, fold)
    if sentences:
        say("\n".join(sentences))


def print_facts(facts: Mapping[str, str]) -> None:
    """Print terms and their texts side by side."""
    grid = Table.grid(padding=(0, 2))
    for term, words in facts.items():
        grid.add_row(term, words)
    stdout().print(grid, markup=False)


def print_blocks(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print every row as a line with its first cell, and an indented line for each of the other cells.

    It replaces a table whose words do not fit side by side.
    """
    for row in rows:
        (_, first), *others = row.items()
        say(number(first), bold=True)
        for name, cell in others:
            if number(cell):
                say(f"    {name.replace('_', ' ')}: {number(cell)}", " " * 8)


def needed(name: str, rows: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Return the smallest width of a column that breaks no word and no number, and the width of its longest cell.

    >>> needed("test_error", [{"test_error": 0.25}]), needed("law", [{"law": "two words of text"}])
    ((5, 10), (5, 17))
    """
    cells = [number(row[name]) for row in rows]
    words = name.split("_") + [
        word for cell in cells for word in (cell.split() if isinstance(rows[0][name], str) else [cell])
    ]
    return max(map(len, words)), max(map(len, [name, *cells]))


def column_widths(needs: Sequence[tuple[int, int]], width: int) -> list[int | None]:
    """Return the widths of columns that fit side by side, or None for every column if their words do not fit.

    >>> column_widths([(5, 10), (5, 17)], 28), column_widths([(5, 10), (5, 17)], 8)
    ([10, 11], [None, None])
    """
    spare = width - 1 - sum(least + 3 for least, _ in needs)
    if spare < 0:
        return [None] * len(needs)
    widths: list[int | None] = []
    for least, most in needs:
        more = min(most - least, spare)
        widths.append(least + more)
        spare -= more
    return widths


def fitting_columns(rows: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    """Return the first columns that fit side by side. Texts may be folded between words, but numbers may not.

    >>> fitting_columns([{"observable": "test_error", "theory": 0.123456, "simulation": 0.123457}], 30)
    ['observable', 'theory']
    """
    columns: list[str] = []
    room = width - 1
    for name in rows[0] if rows else ():
        least, most = needed(name, rows)
        room -= max(least, min(most, READABLE) if isinstance(rows[0][name], str) else 0) + 3
        if room < 0 and len(columns) > 1:
            break
        columns.append(name)
    return columns


READABLE = 30
"""Width in characters from which a column of long texts is readable."""


# -- JSON -----------------------------------------------------------------------------------------------------------


def print_json(value: Any) -> None:
    """Print strict JSON on stdout, with infinities and NaN as the strings "inf", "-inf" and "nan"."""
    typer.echo(json.dumps(jsonable(value), indent=2, allow_nan=False))


# -- files ----------------------------------------------------------------------------------------------------------


def save_result(result: xr.Dataset, path: Path) -> None:
    """Write a result to .csv (one row per grid point) or .nc (everything, with its provenance).

    The file is complete or not written at all.
    """
    if path.suffix.lower() == ".csv":
        save_rows(rows_of(result), path)
        left = [str(name) for name in result.data_vars if str(name) not in table_names(result)]
        if left:
            print_note(f"{path} has no column for {', '.join(left)} (raw samples): save as .nc to keep them")
        return
    with replacing(path) as temporary:
        storable(result).to_netcdf(temporary, engine="h5netcdf")
    print_note(f"wrote {path}")


def save_rows(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write rows to a CSV file with full precision."""
    import csv
    import io

    text = io.StringIO()
    listed = list(rows)
    writer = csv.DictWriter(text, fieldnames=list(listed[0]) if listed else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(listed)
    write_whole(path, text.getvalue().encode())
    print_note(f"wrote {path}")


def storable(result: xr.Dataset) -> xr.Dataset:
    """Return the result with attributes that NetCDF can store, which are numbers and text."""
    known = (str, int, float, np.generic, np.ndarray)
    attrs = {
        key: value if isinstance(value, known) and not isinstance(value, bool) else json.dumps(jsonable(value))
        for key, value in result.attrs.items()
    }
    return result.assign_attrs(attrs)


def save_figure(make: Callable[[], Figure], path: Path) -> None:
    """Draw and write a figure. The file is complete or not written at all, and equal figures give equal files.

    If the path is "-", the figure is drawn in the terminal.
    """
    from limitlab.plotting.output import rendered

    if str(path) == IN_TERMINAL:
        from limitlab.show.cli._terminal import print_figure

        print_figure(make())
        return

    write_whole(path, rendered(make(), path.suffix.lower().removeprefix(".")))
    print_note(f"wrote {path}")


def save_drawn(figure: Figure, path: Path) -> None:
    """Write the numbers of a figure to a CSV file."""
    from limitlab.plotting.output import as_csv, plotted_data

    write_whole(path, as_csv(plotted_data(figure)).encode())
    print_note(f"wrote {path}")


KIND_WORDS = {"solver": "Accuracy of the prediction (advanced)", "experiment": "Details of the experiment (advanced)"}


def parameter_table(law: type[Law]) -> None:
    """Print the options for the parameters of a law.

    The parameters of the limit come first, and the advanced parameters follow by kind. On a narrow terminal the description of an option is
    below its name.
    """
    from limitlab._core.about import allowed

    for kinds, title in (
        (("physics", "coordinate"), ""),
        (("solver",), KIND_WORDS["solver"]),
        (("experiment",), KIND_WORDS["experiment"]),
    ):
        rows = [
            (f"--{kebab(name)}", plain_symbol(meta.symbol), number(meta.default), allowed(law, name), meta.words)
            for name, meta in law.parameters().items()
            if meta.kind in kinds
        ]
        if not rows:
            continue
        console = stdout()
        if console.width < WIDE_TABLE:
            say(f"\n{title}" if title else "")
            for option, symbol, default, values, words in rows:
                say(" ".join(filter(None, [option, symbol, f"(default {default}; {values})"])), "    ")
                say(f"    {words}", "    ")
            continue
        table = Table(title=title or None, title_justify="left")
        for name in ("option", "symbol", "default", "allowed", "description"):
            table.add_column(name, overflow="fold", no_wrap=name == "option")
        for row in rows:
            table.add_row(*row)
        console.print(table, markup=False)


WIDE_TABLE = 110
"""Width of the terminal in characters from which parameters are a table."""
