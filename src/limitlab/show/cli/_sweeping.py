"""`sweep`: a grid of predictions or experiments, described by a TOML file. `reproduce`: a saved result, computed again."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limitlab._core.tables import rows_of, table_names
from limitlab.show.cli._app import FAILED, app, status_line
from limitlab.show.cli._law import LawsOption
from limitlab.show.cli._output import (
    EngineOption,
    JsonOption,
    OutOption,
    PlotOption,
    StoreOption,
    check_paths,
    write_outputs,
    print_json,
    print_table,
    read_engine,
    print_note,
)

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from limitlab.lab.sweepfile import SweepSpec


EXAMPLE = """Example: limitlab sweep ridge.toml --engine 2, with a file ridge.toml such as

law = "Ridge"
sizes = [100, 200]
seeds = 20
store = "ridge.nc"
parameters = { noise = 0.5 }
over = { ratio = "0.1:10:30log", ridge = [0.01, 0.1, 1.0] }"""


@app.command(epilog=EXAMPLE.replace("[", r"\["))
def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="What to sweep: law, grid, sizes, seeds, store.")],
    engine: EngineOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
    out: OutOption = None,
    plot: PlotOption = None,
    laws: LawsOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Time a few cells and say what the sweep would take; run nothing else.")
    ] = False,
    workers: Annotated[
        str, typer.Option("--workers", metavar="K,...", help="With --dry-run: numbers of workers to say the wall time for.")
    ] = "1,2,16,128",
) -> None:
    """Run the sweep of a TOML file. With a store, the same command goes on where it was stopped, even by kill -9."""
    from limitlab.lab.sweepfile import load_sweep, run_sweep

    check_paths(out, plot)
    spec = load_sweep(file)
    if dry_run:
        print_estimate(spec, store if store is not None else spec.store, _numbers(workers), as_json)
        return
    changes: dict[str, Any] = {}
    if engine is not None:
        changes["engine"] = read_engine(engine)
    if store is not None:
        changes["store"] = store
    with status_line(f"sweeping {spec.law}", counted=True) as tell:
        quiet = sys.stderr.isatty()  # there a bar is drawn
        result = run_sweep(
            spec, **changes, progress=None if quiet else lambda n, of: tell(f"{n} of {of} tasks are finished")
        )
    kept = changes.get("store", spec.store)
    if kept is not None:
        print_note(f"wrote {kept}")

    def show() -> None:
        print_table(rows_of(averaged(result)), title=f"{spec.law}, {size_words(result)}")

    saved = any(place is not None for place in (out, plot, kept))
    write_outputs(result, as_json, out, plot, lambda: figure_of(spec, result), None if saved else show)


def print_estimate(spec: SweepSpec, store: str | None, workers: list[int], as_json: bool) -> None:
    """What the sweep would take: cells, core-hours, memory, and the wall time on so many workers."""
    from dataclasses import asdict

    from limitlab.lab.store import Store
    from limitlab.lab.sweepfile import estimate

    found = estimate(spec.make_law(), spec.over, spec.sizes, spec.seeds, store, spec.with_theory)
    walls = {number: found.wall(number) for number in workers}
    if as_json:
        print_json({**asdict(found), "core_hours": found.core_hours, "wall_seconds": {str(k): v for k, v in walls.items()}})
        return
    left = found.cells - found.done
    in_blocks = " (on disk: it is assembled in blocks)" if store is not None and Store(store).in_blocks else ""
    rows = [
        {"what": "cells", "how much": f"{found.cells:,} ({found.done:,} in the store, {left:,} to do)"},
        {"what": "work", "how much": f"{_hours(found.seconds)} of one core, +- {_hours(found.uncertainty)}"},
        {"what": "memory of a worker", "how much": _bytes(found.worker_memory)},
        {"what": "memory of the result", "how much": _bytes(found.result_memory) + in_blocks},
        {"what": "store on disk", "how much": _bytes(found.disk)},
        *({"what": f"wall time, {number} workers", "how much": _hours(wall)} for number, wall in walls.items()),
    ]
    print_table(rows, title=f"{spec.law}: estimated from {found.timed} timed cells")


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ValueError(f"--workers {text}: give whole numbers of at least 1, such as 2,16")
    return [int(part) for part in parts]


def _hours(seconds: float) -> str:
    """A length of time in the unit that suits it.

    >>> _hours(30.0), _hours(7200.0)
    ('30 s', '2 h')
    """
    return (
        f"{seconds:.3g} s" if seconds < 120 else f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
    )


def _bytes(number: int) -> str:
    """A number of bytes in the unit that suits it.

    >>> _bytes(2_500_000)
    '2.5 MB'
    """
    return f"{number / 1e9:.3g} GB" if number >= 1e9 else f"{number / 1e6:.3g} MB"


def averaged(result: xr.Dataset) -> xr.Dataset:
    """Observables of a sweep, averaged over the draws where it has them."""
    observables = result[table_names(result)]
    return observables.mean("seed") if "seed" in result.dims else observables


def size_words(result: xr.Dataset) -> str:
    """What the numbers of a sweep are."""
    return f"mean of {result.sizes['seed']} draws" if "seed" in result.dims else "the limit"


def figure_of(spec: SweepSpec, result: xr.Dataset) -> Figure:
    """The limit over the grid, and the experiments of the largest size as points where there are any."""
    from limitlab.lab import sweep as run
    from limitlab.lab.result_figures import simulation_figure, sweep_figure

    if "seed" not in result.dims:
        return sweep_figure(result)
    theory = run(spec.make_law(), spec.over, progress=False)
    names = [name for name in table_names(theory) if name in result]
    return simulation_figure(theory, result.isel(size=-1), names)


@app.command(epilog="Example: limitlab reproduce ridge.nc")
def reproduce(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A saved result: .nc, .zarr, JSON of a command, or a store.")],
    engine: EngineOption = None,
    as_json: JsonOption = False,
    laws: LawsOption = None,
) -> None:
    """Compute a saved result again and say whether every number is the same; exit code 1 if they differ."""
    from limitlab.lab import reproduce as run

    with status_line(f"computing {file} again"):
        found = run(file, engine=read_engine(engine), progress=False)
    if as_json:
        print_json({**asdict(found), "matches": found.matches})
    else:
        typer.echo(str(found))
    if not found.matches:
        raise typer.Exit(FAILED)
