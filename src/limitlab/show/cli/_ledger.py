"""`verify`: the claims of the ledger, checked."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from limitlab._core.files import write_whole
from limitlab._core.page import jsonable
from limitlab._core.tables import number
from limitlab.show.cli._app import FAILED, app
from limitlab.show.cli._completion import claim_ids
from limitlab.show.cli._lawcommand import LawsOption
from limitlab.show.cli._output import EngineOption, JsonOption, print_json, read_engine, stdout

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
