"""The commands `sweep` (a grid of tasks in a TOML file) and `reproduce` (compute a saved result again)."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limitlab._core.page import rows_of, table_names
from limitlab.errors import Refused
from limitlab.show.cli._app import FAILED, app, status_line
from limitlab.show.cli._law import LawsOption
from limitlab.show.cli._output import (
    EngineOption,
    JsonOption,
    OutOption,
    PlotOption,
    StoreOption,
    check_paths,
    print_json,
    print_note,
    print_table,
    read_engine,
    write_outputs,
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
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="File with law, grid, sizes, seeds and store.")],
    engine: EngineOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
    out: OutOption = None,
    plot: PlotOption = None,
    laws: LawsOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Time a few cells and estimate the cost of the sweep, without running it.")
    ] = False,
    workers: Annotated[
        str,
        typer.Option(
            "--workers", metavar="K,...", help="With --dry-run, numbers of workers for estimates of the wall time."
        ),
    ] = "1,2,16,128",
) -> None:
    """Run the sweep of a TOML file. With a store, the same command resumes an interrupted sweep, even after kill -9."""
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
        quiet = sys.stderr.isatty()  # a terminal shows a progress bar
        result = run_sweep(
            spec, **changes, progress=None if quiet else lambda n, of: tell(f"{n} of {of} tasks are finished")
        )
    stored = changes.get("store", spec.store)
    if stored is not None:
        print_note(f"wrote {stored}")

    def show() -> None:
        print_table(rows_of(averaged(result)), title=f"{spec.law}, {size_words(result)}")

    saved = any(place is not None for place in (out, plot, stored))
    write_outputs(result, as_json, out, plot, lambda: figure_of(spec, result), None if saved else show)


def print_estimate(spec: SweepSpec, store: str | None, workers: list[int], as_json: bool) -> None:
    """Print the estimated cost of a sweep, with cells, core-hours, memory and wall time for numbers of workers."""
    from dataclasses import asdict

    from limitlab.lab.store import Store
    from limitlab.lab.sweepfile import estimate

    cost = estimate(spec.make_law(), spec.over, spec.sizes, spec.seeds, store, spec.with_theory)
    walls = {number: cost.wall(number) for number in workers}
    if as_json:
        print_json({**asdict(cost), "core_hours": cost.core_hours, "wall_seconds": {str(k): v for k, v in walls.items()}})
        return
    left = cost.cells - cost.done
    in_blocks = " (on disk, assembled in blocks)" if store is not None and Store(store).in_blocks else ""
    rows = [
        {"what": "cells", "how much": f"{cost.cells:,} ({cost.done:,} in the store, {left:,} to do)"},
        {"what": "work", "how much": f"{_hours(cost.seconds)} of one core, +- {_hours(cost.uncertainty)}"},
        {"what": "memory of a worker", "how much": _bytes(cost.worker_memory)},
        {"what": "memory of the result", "how much": _bytes(cost.result_memory) + in_blocks},
        {"what": "store on disk", "how much": _bytes(cost.disk)},
        *({"what": f"wall time, {number} workers", "how much": _hours(wall)} for number, wall in walls.items()),
    ]
    print_table(rows, title=f"{spec.law}: estimated from {cost.timed} timed cells")


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise Refused(f"--workers {text}: give whole numbers of at least 1, such as 2,16")
    return [int(part) for part in parts]


def _hours(seconds: float) -> str:
    """Return a length of time in a suitable unit.

    >>> _hours(30.0), _hours(7200.0)
    ('30 s', '2 h')
    """
    return (
        f"{seconds:.3g} s" if seconds < 120 else f"{seconds / 60:.3g} min" if seconds < 7200 else f"{seconds / 3600:.3g} h"
    )


def _bytes(number: int) -> str:
    """Return a number of bytes in a suitable unit.

    >>> _bytes(2_500_000)
    '2.5 MB'
    """
    return f"{number / 1e9:.3g} GB" if number >= 1e9 else f"{number / 1e6:.3g} MB"


def averaged(result: xr.Dataset) -> xr.Dataset:
    """Return the observables of a sweep, averaged over the draws if there are draws."""
    observables = result[table_names(result)]
    return observables.mean("seed") if "seed" in result.dims else observables


def size_words(result: xr.Dataset) -> str:
    """Return a description of the numbers of a sweep."""
    return f"mean of {result.sizes['seed']} draws" if "seed" in result.dims else "the limit"


def figure_of(spec: SweepSpec, result: xr.Dataset) -> Figure:
    """Draw the limit over the grid, and experiments of the largest size as points if there are any."""
    from limitlab.lab import sweep as run
    from limitlab.lab.result_figures import simulation_figure, sweep_figure

    if "seed" not in result.dims:
        return sweep_figure(result)
    theory = run(spec.make_law(), spec.over, progress=False)
    names = [name for name in table_names(theory) if name in result]
    return simulation_figure(theory, result.isel(size=-1), names)


@app.command(epilog="Example: limitlab reproduce ridge.nc")
def reproduce(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A saved result (.nc, .zarr, JSON of a command, or a store).")
    ],
    engine: EngineOption = None,
    as_json: JsonOption = False,
    laws: LawsOption = None,
) -> None:
    """Compute a saved result again and compare every number. The exit code is 1 if numbers differ."""
    from limitlab.lab import reproduce as run

    with status_line(f"computing {file} again"):
        reproduction = run(file, engine=read_engine(engine), progress=False)
    if as_json:
        print_json({**asdict(reproduction), "matches": reproduction.matches})
    else:
        typer.echo(str(reproduction))
    if not reproduction.matches:
        raise typer.Exit(FAILED)
