"""`predict`, `simulate`, `compare`: the limit, the finite experiment, and whether they agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limitlab._core.tables import long_rows, rows_of, table_names
from limitlab.errors import did_you_mean
from limitlab.show.cli._app import FAILED, INTERRUPTED, working
from limitlab.show.cli._law import Asked, LawArgument, LawsOption, asked_law, law_command, read_sizes, single, title_of
from limitlab.show.cli._output import (
    EngineOption,
    JsonOption,
    OutOption,
    PlotOption,
    StoreOption,
    check_paths,
    deliver,
    print_page,
    print_table,
    read_engine,
    say,
)

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from limitlab._core.law import Law
    from limitlab.lab import Comparison

ObservablesOption = Annotated[
    str | None, typer.Option("--observables", metavar="NAMES", help="Comma list of observables to show (default: all).")
]


@law_command("predict ridge --ratio 0.1:10:50log --ridge 0,0.1 --plot double_descent.png")
def predict(
    ctx: typer.Context,
    law_name: LawArgument,
    observables: ObservablesOption = None,
    best: Annotated[
        bool, typer.Option("--best", help="The law's error beside the least that any method can reach with the same data.")
    ] = False,
    as_json: JsonOption = False,
    out: OutOption = None,
    plot: PlotOption = None,
    laws: LawsOption = None,
) -> None:
    """The limit that a law predicts. An option with several values (0,0.1 or 0.1:10:50log) is swept over."""
    asked = asked_law(ctx, law_name)
    names = chosen(asked.law, observables)
    check_paths(out, plot)
    if plot is not None:
        require_axis(asked)
    with working(f"solving {type(asked.law).__name__}"):
        result = beside_best(asked) if best else select(predicted(asked), names)

    def draw() -> Figure:
        from limitlab.lab.result_figures import sweep_figure

        return sweep_figure(result)

    saved = out is not None or plot is not None
    deliver(result, as_json, out, plot, draw, None if saved else lambda: print_prediction(asked, result))


def predicted(asked: Asked) -> xr.Dataset:
    """The theory of a law, on the grid of its swept parameters where there are any."""
    if not asked.over:
        return asked.law.theory()
    from limitlab.lab import sweep

    return sweep(asked.law, over=asked.over, progress=False)


def beside_best(asked: Asked) -> xr.Dataset:
    """A law's error, the best possible one and the gap, on the grid of its swept parameters where there are any."""
    from limitlab.laws.classification.beside_best import HasBayesError

    if not isinstance(asked.law, HasBayesError):
        raise ValueError(
            f"--best is not allowed with {type(asked.law).__name__}: its data are not those of a channel whose best possible error is "
            "known (see BayesOptimal)"
        )
    return asked.law.gap_to_best(**asked.over)


def print_prediction(asked: Asked, result: xr.Dataset) -> None:
    """A prediction as a table: an observable per row, or a grid point per row."""
    names, title = table_names(result), title_of(asked.law, asked.over)
    if len({result[name].dims for name in names}) > 1:
        print_table(long_rows(result, names), title=title)
    elif result[names[0]].ndim:
        print_table(rows_of(result, names), title=title)
    else:
        meanings = [result[name].attrs.get("long_name", "") for name in names]
        rows = [{**row, "meaning": words} for row, words in zip(long_rows(result, names), meanings, strict=True)]
        print_table(rows, title=title)
    accuracy = result.attrs["accuracy"]
    words = accuracy if isinstance(accuracy, str) else f"{float(accuracy):.1g}"
    typer.echo(f"status: {asked.law.status}; estimated relative accuracy {words}")
    if asked.law.caveat():
        typer.echo(f"note: {asked.law.caveat()}")


@law_command("simulate ridge --ratio 0.5,2 --size 200 --seeds 10")
def simulate(
    ctx: typer.Context,
    law_name: LawArgument,
    size: Annotated[int | None, typer.Option("--size", help="Size of the experiment (default: the law's own).")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first draw.")] = 0,
    seeds: Annotated[int, typer.Option("--seeds", help="Number of independent draws.")] = 1,
    observables: ObservablesOption = None,
    as_json: JsonOption = False,
    out: OutOption = None,
    plot: PlotOption = None,
    laws: LawsOption = None,
) -> None:
    """Finite experiments of a law, beside its prediction. The same seed gives the same numbers."""
    asked = asked_law(ctx, law_name)
    names = chosen(asked.law, observables)
    check_paths(out, plot)
    if seeds < 1:
        raise ValueError(f"--seeds {seeds} is not allowed: must be at least 1")
    if plot is not None:
        require_axis(asked)
    experiment_size = size if size is not None else asked.law.simulation.sizes[-1]
    with working(f"simulating {type(asked.law).__name__} at size {experiment_size}"):
        result = select(simulated(asked, experiment_size, seed, seeds), names)

    def draw() -> Figure:
        from limitlab.lab.result_figures import simulation_figure

        return simulation_figure(select(predicted(asked), names), result)

    def show() -> None:
        print_simulation(asked, experiment_size, result, select(predicted(asked), names))

    saved = out is not None or plot is not None
    deliver(result, as_json, out, plot, draw, None if saved else show)
    if result.sizes["seed"] < seeds:
        raise typer.Exit(INTERRUPTED)


def simulated(asked: Asked, size: int, seed: int, draws: int) -> xr.Dataset:
    """Experiments along a dimension `seed`, on the grid of the swept parameters where there are any: the same draws either way."""
    seeds = range(seed, seed + draws)
    if not asked.over:
        return drawn(asked.law, size, seeds)
    from limitlab.lab import sweep

    return sweep(asked.law, asked.over, sizes=[size], seeds=list(seeds), progress=False).squeeze("size")


def drawn(law: Law, size: int, seeds: Sequence[int]) -> xr.Dataset:
    """Draws one after the other; Ctrl-C ends them and keeps those that are finished."""
    from limitlab._core.cost import check_draw
    from limitlab._core.draws import checked_size
    from limitlab._core.results import stacked

    check_draw(law, checked_size(size), len(seeds))
    runs: list[xr.Dataset] = []
    try:
        for seed in seeds:
            runs.append(law.simulate(size, seed))
    except KeyboardInterrupt:
        if not runs:
            raise
        say(f"interrupted after {len(runs)} of {len(seeds)} draws: these are kept")
    return stacked(runs, seeds[: len(runs)])


def print_simulation(asked: Asked, size: int, result: xr.Dataset, theory: xr.Dataset) -> None:
    """Mean over the draws, its standard error, and the limit, one row per observable and grid point."""
    import numpy as np
    import xarray as xr

    names = [name for name in table_names(result) if name in theory]
    draws = result.sizes["seed"]
    averages = result[names].mean("seed")
    mean = long_rows(averages, names)
    limit = long_rows(xr.Dataset({name: theory[name].transpose(*averages[name].dims) for name in names}), names)
    spread = long_rows(result[names].std("seed", ddof=1) / np.sqrt(draws), names) if draws > 1 else [{}] * len(mean)
    rows = []
    for place, error, goal in zip(mean, spread, limit, strict=True):
        value = place.pop("value")
        uncertainty = {"standard_error": float(f"{error['value']:.4g}")} if error else {}
        rows.append({**place, "simulation": value, **uncertainty, "limit": goal["value"]})
    draw_words = f"{draws} draws" if draws > 1 else "1 draw"
    print_table(
        rows, title=f"{title_of(asked.law, asked.over)}, size {size} ({asked.law.simulation.size_meaning}), {draw_words}"
    )


@law_command("compare ridge --ratio 2 --size 50,100,200 --seeds 60 --plot gap.png")
def compare(
    ctx: typer.Context,
    law_name: LawArgument,
    size: Annotated[
        str | None,
        typer.Option("--size", "--sizes", metavar="LIST", help="Sizes, such as 50,100,200 (default: the law's own)."),
    ] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", help="Draws per size (default: the law's own, then more).")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first draw.")] = 0,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget",
            metavar="SECONDS",
            help="Time for adding draws while the verdict is open (default: 60, 0 with --seeds).",
        ),
    ] = None,
    resolution: Annotated[
        float, typer.Option("--resolution", help="Smallest gap worth noticing, relative to the scale of an observable.")
    ] = 0.05,
    engine: EngineOption = None,
    store: StoreOption = None,
    observables: ObservablesOption = None,
    as_json: JsonOption = False,
    out: OutOption = None,
    plot: PlotOption = None,
    laws: LawsOption = None,
) -> None:
    """Do theory and simulation agree? Error budget and verdict; exit code 1 unless the verdict is "agree".

    Without parameters of the law, it is compared at its check points, where no term is switched off.
    """
    from limitlab._core.draws import checked_seeds
    from limitlab.lab import compare as run

    law = single(asked_law(ctx, law_name), "compare").law
    names = chosen(law, observables)
    check_paths(out, plot)
    sizes = read_sizes("size", size) if size is not None else None
    with working(f"comparing {type(law).__name__} with experiments"):
        draws = checked_seeds(law.simulation.draws if seeds is None else seeds, least=2)
        time = budget if budget is not None or seeds is not None else BUDGET_SECONDS
        options: dict[str, Any] = dict(
            engine=read_engine(engine), store=store, progress=False, budget=time, resolution=resolution
        )
        found = run(law if ctx.args else type(law), sizes, [seed + number for number in draws], observables=names, **options)
    results = found.parts or (found,)

    def show() -> None:
        for result in results:
            print_page(result.page())

    deliver(found.dataset, as_json, out, plot, found.plot, show, lambda: describe_comparisons(results))
    if not found.passed:
        raise typer.Exit(FAILED)


BUDGET_SECONDS = 60.0
"""Time for adding draws, where the number of draws is left to the command."""


def describe_comparisons(results: Sequence[Comparison]) -> dict[str, Any]:
    """The comparison as a plain structure, for JSON; those of several check points as a list with the worst verdict above it."""
    if len(results) == 1:
        return results[0].page().data
    worst = max((result.verdict for result in results), key=("agree", "underpowered", "disagree").index)
    points = [result.page().data for result in results]
    return {"law": points[0]["law"], "verdict": worst, "passed": worst == "agree", "check_points": points}


# -- what the three share -------------------------------------------------------------------------------------------


def chosen(law: Law, observables: str | None) -> list[str] | None:
    """The observables that a comma list names, or None for all of them."""
    if observables is None:
        return None
    names = [name.strip().replace("-", "_") for name in observables.split(",") if name.strip()]
    for name in names:
        if name not in law.observed():
            raise ValueError(f"{type(law).__name__} has no observable {name!r}: {did_you_mean(name, law.observed())}")
    return names or None


def select(result: xr.Dataset, names: list[str] | None) -> xr.Dataset:
    """A result with only these observables."""
    return result if names is None else result[names]


def require_axis(asked: Asked) -> None:
    """A plot needs something to run along: a swept parameter, or a coordinate of the law such as its time."""
    import numpy as np

    if not asked.over and not any(np.ndim(axis) for axis in asked.law.coordinates().values()):
        raise ValueError("nothing to plot against: give a parameter several values, such as 0.1:10:50log")
