"""`sweep`: a grid of predictions or experiments, described by a TOML file, that goes on where it was stopped."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limitlab.show.cli.app import app
from limitlab.show.cli.output import (
    EngineOption,
    JsonOption,
    OutOption,
    PlotOption,
    StoreOption,
    check_paths,
    deliver,
    print_table,
    read_engine,
    say,
)
from limitlab.show.cli.progress import working
from limitlab.show.tables import rows_of, table_names

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from limitlab.lab.sweepfile import SweepSpec

LawsOption = Annotated[
    Path | None, typer.Option("--laws", metavar="FILE.py", help="A Python file with laws of your own, named module:Class.")
]

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
) -> None:
    """Run the sweep of a TOML file. With a store, the same command goes on where it was stopped, even by kill -9."""
    from limitlab.lab.sweepfile import load_laws, load_sweep, run_sweep

    check_paths(out, plot)
    if laws is not None:
        load_laws(laws)
    spec = load_sweep(file)
    changes: dict[str, Any] = {}
    if engine is not None:
        changes["engine"] = read_engine(engine)
    if store is not None:
        changes["store"] = store
    with working(f"sweeping {spec.law}", counted=True) as tell:
        quiet = sys.stderr.isatty()  # there a bar is drawn
        result = run_sweep(
            spec, **changes, progress=None if quiet else lambda n, of: tell(f"{n} of {of} tasks are finished")
        )
    kept = changes.get("store", spec.store)
    if kept is not None:
        say(f"wrote {kept}")

    def show() -> None:
        print_table(rows_of(averaged(result)), title=f"{spec.law}, {size_words(result)}")

    saved = any(place is not None for place in (out, plot, kept))
    deliver(result, as_json, out, plot, lambda: figure_of(spec, result), None if saved else show)


def averaged(result: xr.Dataset) -> xr.Dataset:
    """Observables of a sweep, averaged over the draws where it has them."""
    observables = result[table_names(result)]
    return observables.mean("seed") if "seed" in result.dims else observables


def size_words(result: xr.Dataset) -> str:
    """What the numbers of a sweep are."""
    return f"mean of {result.sizes['seed']} draws" if "seed" in result.dims else "the limit"


def figure_of(spec: SweepSpec, result: xr.Dataset) -> Figure:
    """The limit over the grid, and the experiments of the largest size as points where there are any."""
    from limitlab.lab.sweep import sweep as run
    from limitlab.show.figures.generic import simulation_figure, sweep_figure

    if "seed" not in result.dims:
        return sweep_figure(result)
    theory = run(spec.make_law(), spec.over, progress=False)
    names = [name for name in table_names(theory) if name in result]
    return simulation_figure(theory, result.isel(size=-1), names)
