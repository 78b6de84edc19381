"""The commands `predict`, `simulate` and `compare` for the limit, finite experiments and their agreement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limitlab._core.page import long_rows, rows_of, table_names
from limitlab.errors import Refused, did_you_mean
from limitlab.show.cli._app import FAILED, INTERRUPTED, status_line
from limitlab.show.cli._law import (
    LawArgument,
    LawsOption,
    ParsedLaw,
    law_command,
    parse_law,
    read_sizes,
    require_single_values,
    title_of,
)
from limitlab.show.cli._output import (
    EngineOption,
    JsonOption,
    OutOption,
    PlotOption,
    StoreOption,
    check_paths,
    print_note,
    print_page,
    print_table,
    read_engine,
    write_outputs,
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
        bool, typer.Option("--best", help="Also print the smallest error that any method can reach with the same data.")
    ] = False,
    as_json: JsonOption = False,
    out: OutOption = None,
    plot: PlotOption = None,
    laws: LawsOption = None,
) -> None:
    """Predict the limit of a law. Several values of an option (0,0.1 or 0.1:10:50log) define a sweep."""
    parsed = parse_law(ctx, law_name)
    names = chosen(parsed.law, observables)
    check_paths(out, plot)
    if plot is not None:
        require_axis(parsed)
    with status_line(f"solving {type(parsed.law).__name__}"):
        result = beside_best(parsed) if best else select(predicted(parsed), names)

    def draw() -> Figure:
        from limitlab.lab.result_figures import sweep_figure

        return sweep_figure(result)

    saved = out is not None or plot is not None
    write_outputs(result, as_json, out, plot, draw, None if saved else lambda: print_prediction(parsed, result))


def predicted(parsed: ParsedLaw) -> xr.Dataset:
    """Return the prediction of a law, on the grid of its swept parameters if there are any."""
    if not parsed.over:
        return parsed.law.theory()
    from limitlab.lab import sweep

    return sweep(parsed.law, over=parsed.over, progress=False)


def beside_best(parsed: ParsedLaw) -> xr.Dataset:
    """Return the error of a law, the best possible error and the gap, on the grid of swept parameters if there are any."""
    from limitlab.laws.classification.beside_best import HasBayesError

    if not isinstance(parsed.law, HasBayesError):
        raise Refused(
            f"--best is not allowed with {type(parsed.law).__name__}: the best possible error is known only for data of the channels "
            "of BayesOptimal"
        )
    return parsed.law.gap_to_best(**parsed.over)


def print_prediction(parsed: ParsedLaw, result: xr.Dataset) -> None:
    """Print a prediction as a table with one row per observable, or one row per grid point."""
    names, title = table_names(result), title_of(parsed.law, parsed.over)
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
    typer.echo(f"status: {parsed.law.status}; estimated relative accuracy {words}")
    if parsed.law.caveat():
        typer.echo(f"note: {parsed.law.caveat()}")


@law_command("simulate ridge --ratio 0.5,2 --size 200 --seeds 10")
def simulate(
    ctx: typer.Context,
    law_name: LawArgument,
    size: Annotated[int | None, typer.Option("--size", help="Size of the experiment (default: that of the law).")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first draw.")] = 0,
    seeds: Annotated[int, typer.Option("--seeds", help="Number of independent draws.")] = 1,
    observables: ObservablesOption = None,
    as_json: JsonOption = False,
    out: OutOption = None,
    plot: PlotOption = None,
    laws: LawsOption = None,
) -> None:
    """Run finite experiments of a law and print them with its prediction. The same seed gives the same numbers."""
    parsed = parse_law(ctx, law_name)
    names = chosen(parsed.law, observables)
    check_paths(out, plot)
    if seeds < 1:
        raise Refused(f"--seeds {seeds} is not allowed: must be at least 1")
    if plot is not None:
        require_axis(parsed)
    experiment_size = size if size is not None else parsed.law.simulation.sizes[-1]
    with status_line(f"simulating {type(parsed.law).__name__} at size {experiment_size}"):
        result = select(simulated(parsed, experiment_size, seed, seeds), names)

    def draw() -> Figure:
        from limitlab.lab.result_figures import simulation_figure

        return simulation_figure(select(predicted(parsed), names), result)

    def show() -> None:
        print_simulation(parsed, experiment_size, result, select(predicted(parsed), names))

    saved = out is not None or plot is not None
    write_outputs(result, as_json, out, plot, draw, None if saved else show)
    if result.sizes["seed"] < seeds:
        raise typer.Exit(INTERRUPTED)


def simulated(parsed: ParsedLaw, size: int, seed: int, draws: int) -> xr.Dataset:
    """Return experiments along a dimension `seed`, on the grid of the swept parameters if there are any.

    The draws are the same with and without a grid.
    """
    seeds = range(seed, seed + draws)
    if not parsed.over:
        return drawn(parsed.law, size, seeds)
    from limitlab.lab import sweep

    return sweep(parsed.law, parsed.over, sizes=[size], seeds=list(seeds), progress=False).squeeze("size")


def drawn(law: Law, size: int, seeds: Sequence[int]) -> xr.Dataset:
    """Return draws that are computed one after the other. Ctrl-C stops them and keeps the finished ones."""
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
        print_note(f"interrupted after {len(runs)} of {len(seeds)} draws; the finished draws are kept")
    return stacked(runs, seeds[: len(runs)])


def print_simulation(parsed: ParsedLaw, size: int, result: xr.Dataset, theory: xr.Dataset) -> None:
    """Print the mean over the draws, its standard error and the limit, with one row per observable and grid point."""
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
        rows, title=f"{title_of(parsed.law, parsed.over)}, size {size} ({parsed.law.simulation.size_meaning}), {draw_words}"
    )


@law_command("compare ridge --ratio 2 --size 50,100,200 --seeds 60 --plot gap.png")
def compare(
    ctx: typer.Context,
    law_name: LawArgument,
    size: Annotated[
        str | None,
        typer.Option("--size", "--sizes", metavar="LIST", help="Sizes, such as 50,100,200 (default: those of the law)."),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option("--seeds", help="Draws per size (default: that of the law, then more).")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first draw.")] = 0,
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget",
            metavar="SECONDS",
            help="Time for further draws while the verdict is underpowered (default: 60, 0 with --seeds).",
        ),
    ] = None,
    resolution: Annotated[
        float, typer.Option("--resolution", help="Smallest gap to detect, relative to the scale of an observable.")
    ] = 0.05,
    engine: EngineOption = None,
    store: StoreOption = None,
    observables: ObservablesOption = None,
    as_json: JsonOption = False,
    out: OutOption = None,
    plot: PlotOption = None,
    laws: LawsOption = None,
) -> None:
    """Compare theory and simulation of a law, and print the error budget and the verdict.

    The exit code is 1 unless the verdict is "agree". Without parameters, the law is compared at its check points, where every term of its
    equations contributes.
    """
    from limitlab._core.draws import checked_seeds
    from limitlab.lab import compare as run

    law = require_single_values(parse_law(ctx, law_name), "compare").law
    names = chosen(law, observables)
    check_paths(out, plot)
    sizes = read_sizes("size", size) if size is not None else None
    with status_line(f"comparing {type(law).__name__} with experiments"):
        draws = checked_seeds(law.simulation.draws if seeds is None else seeds, least=2)
        time = budget if budget is not None or seeds is not None else BUDGET_SECONDS
        options: dict[str, Any] = dict(
            engine=read_engine(engine), store=store, progress=False, budget=time, resolution=resolution
        )
        comparison = run(
            law if ctx.args else type(law), sizes, [seed + number for number in draws], observables=names, **options
        )
    results = comparison.parts or (comparison,)

    def show() -> None:
        for result in results:
            print_page(result.page())

    write_outputs(comparison.dataset, as_json, out, plot, comparison.plot, show, lambda: describe_comparisons(results))
    if not comparison.passed:
        raise typer.Exit(FAILED)


BUDGET_SECONDS = 60.0
"""Default time in seconds for further draws, if --seeds is not given."""


def describe_comparisons(results: Sequence[Comparison]) -> dict[str, Any]:
    """Return the comparison as a plain structure, for JSON.

    Comparisons at several check points are a list, with the worst verdict at the top.
    """
    if len(results) == 1:
        return results[0].page().data
    worst = max((result.verdict for result in results), key=("agree", "underpowered", "disagree").index)
    points = [result.page().data for result in results]
    return {"law": points[0]["law"], "verdict": worst, "passed": worst == "agree", "check_points": points}


# -- what the three share -------------------------------------------------------------------------------------------


def chosen(law: Law, observables: str | None) -> list[str] | None:
    """Return the observables in a comma list, or None for all observables."""
    if observables is None:
        return None
    names = [name.strip().replace("-", "_") for name in observables.split(",") if name.strip()]
    for name in names:
        if name not in law.observed():
            raise Refused(f"{type(law).__name__} has no observable {name!r}: {did_you_mean(name, law.observed())}")
    return names or None


def select(result: xr.Dataset, names: list[str] | None) -> xr.Dataset:
    """Return a result restricted to the observables `names`, or all of it if `names` is None."""
    return result if names is None else result[names]


def require_axis(parsed: ParsedLaw) -> None:
    """Raise `ValueError` unless a plot has a horizontal axis, which is a swept parameter or a coordinate such as time."""
    import numpy as np

    if not parsed.over and not any(np.ndim(axis) for axis in parsed.law.coordinates().values()):
        raise Refused("the plot has no horizontal axis: give a parameter several values, such as 0.1:10:50log")
