"""The commands that evaluate laws, with their predictions, experiments, sweeps and plans.

`predict`, `simulate` and `compare` show the limit, finite experiments and their agreement. `sweep` runs the grid of a TOML file, and
`reproduce` computes a saved result again. `plan` solves for a target, `optimal` finds the best value of a parameter, and `stop` finds the
best time to stop training.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from limitlab._core.page import long_rows, number, rows_of, table_names
from limitlab.errors import Refused, did_you_mean
from limitlab.show.cli._app import FAILED, INTERRUPTED, app, say, status_line
from limitlab.show.cli._law import (
    LawArgument,
    LawsOption,
    ParsedLaw,
    law_command,
    parse_law,
    read_numbers,
    read_sizes,
    require_single_values,
    title_of,
)
from limitlab.show.cli._output import (
    COLOURS,
    EngineOption,
    JsonOption,
    OutOption,
    PlotOption,
    StoreOption,
    check_paths,
    print_json,
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
    from limitlab.lab.sweepfile import SweepSpec


# -- predict, simulate, compare --------------------------------------------------------------------------------------


ObservablesOption = Annotated[
    str | None,
    typer.Option("--observables", metavar="NAMES", help="Observables to show, separated by commas (default: all)."),
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
    with status_line(f"solving {type(parsed.law).__name__}"):
        result = beside_best(parsed) if best else select(predicted(parsed), names)

    def draw() -> Figure:
        from limitlab.lab.result_figures import sweep_figure

        if best:
            return sweep_figure(result)
        if not parsed.over and names is None:
            from limitlab.plotting import headline_view

            with status_line(f"simulating {type(parsed.law).__name__}"):
                return headline_view(parsed.law).figure()
        require_axis(parsed)
        figure = sweep_figure(result, names or headline_names(type(parsed.law), result))
        figure.suptitle(short_title(parsed))
        return figure

    saved = out is not None or plot is not None
    write_outputs(result, as_json, out, plot, draw, None if saved else lambda: print_prediction(parsed, result))


def short_title(parsed: ParsedLaw) -> str:
    """Return the name of a law with the parameters that were set to a single value."""
    law = parsed.law
    fixed = [name for name in type(law).parameters() if name in law.model_fields_set and name not in parsed.over]
    return ", ".join([type(law).__name__, *(f"{name.replace('_', ' ')} {number(getattr(law, name))}" for name in fixed)])


MOST_PANELS = 2
"""Largest number of panels of a plot, unless `--observables` names more."""


def headline_names(law: type[Law], result: xr.Dataset) -> list[str]:
    """Return the observables of the headline view of a law that vary in a result, or else its first ones."""
    from limitlab._core.headline import headline_of

    varying = [name for name in table_names(result) if result[name].ndim]
    return ([name for name in headline_of(law).show if name in varying] or varying)[:MOST_PANELS]


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
    say(f"status: {parsed.law.status}; estimated relative accuracy {words}")
    if parsed.law.caveat():
        say(f"note: {parsed.law.caveat()}")


@law_command("simulate ridge --ratio 0.5,2 --size 200 --seeds 10")
def simulate(
    ctx: typer.Context,
    law_name: LawArgument,
    size: Annotated[
        int | None, typer.Option("--size", help="Size of the experiment (default: the largest size of the law).")
    ] = None,
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
        int | None,
        typer.Option(
            "--seeds", help="Draws per size (default: that of the law, and more while the verdict is underpowered)."
        ),
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
        if len(results) > 1:
            words = f"{comparison.verdict}: {type(law).__name__} was compared at {len(results)} check points"
            say(words, fg=COLOURS.get(comparison.verdict), bold=True)
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


# -- shared functions ----------------------------------------------------------------------------------------------


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


# -- sweep, reproduce ------------------------------------------------------------------------------------------------


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
            spec, **changes, progress=None if quiet else lambda n, of: tell(f"{n} of {of} tasks are finished", n / of)
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
        say(str(reproduction))
    if not reproduction.matches:
        raise typer.Exit(FAILED)


# -- plan, optimal, stop ---------------------------------------------------------------------------------------------


BoundsOption = Annotated[
    str | None,
    typer.Option("--bounds", metavar="LOW:HIGH", help="Interval of the search (default: the range of the parameter)."),
]


@law_command("plan ridge --noise 0.5 --target test_error=0.4 --solve-for ratio")
def plan(
    ctx: typer.Context,
    law_name: LawArgument,
    target: Annotated[str, typer.Option("--target", metavar="NAME=VALUE", help="An observable and its target value.")],
    solve_for: Annotated[str, typer.Option("--solve-for", metavar="PARAMETER", help="The parameter to solve for.")],
    bounds: BoundsOption = None,
    prefer: Annotated[
        Literal["smallest", "largest", "nearest"],
        typer.Option("--prefer", help="Which answer to return if there are several."),
    ] = "smallest",
    as_json: JsonOption = False,
    out: OutOption = None,
    plot: PlotOption = None,
    laws: LawsOption = None,
) -> None:
    """Find the amount of data, width or ridge that a target requires.

    If the target cannot be reached, the command prints the best value that can be reached, and the exit code is 1.
    """
    from limitlab.lab import plan as run

    law = require_single_values(parse_law(ctx, law_name), "plan").law
    observable, wanted = read_target(target)
    parameter = solve_for.removeprefix("--").replace("-", "_")
    interval = read_bounds(bounds)
    check_paths(out, plot)
    with status_line(f"solving for {parameter}"):
        result = run(law, {observable: wanted}, parameter, interval, prefer)
    answer, reached = result[parameter].item(), number(result[observable].item())
    # a parameter that is a whole number rarely reaches the target exactly
    wish = "" if reached == number(wanted) else f" (target {number(wanted)})"
    others = [number(value) for value in result["solutions"].values.tolist() if value != answer]
    words = f"{parameter} = {number(answer)} gives {observable} = {reached}{wish}"
    words += f"; other answers: {', '.join(others)}" if others else ""
    finish(law, result, parameter, observable, [words, in_words(law, parameter, answer)], as_json, out, plot, level=wanted)


@law_command("optimal ridge --ratio 2 --noise 0.5 --over ridge --minimise test_error")
def optimal(
    ctx: typer.Context,
    law_name: LawArgument,
    over: Annotated[str, typer.Option("--over", metavar="PARAMETER", help="The parameter to optimise.")] = "ridge",
    minimise: Annotated[str, typer.Option("--minimise", metavar="NAME", help="The observable to minimise.")] = "test_error",
    bounds: BoundsOption = None,
    as_json: JsonOption = False,
    out: OutOption = None,
    plot: PlotOption = None,
    laws: LawsOption = None,
) -> None:
    """Find the value of a parameter at the global minimum of an observable of the limit."""
    from limitlab.lab import optimal as run

    law = require_single_values(parse_law(ctx, law_name), "optimal").law
    parameter, observable = over.removeprefix("--").replace("-", "_"), minimise.replace("-", "_")
    interval = read_bounds(bounds)
    check_paths(out, plot)
    with status_line(f"looking for the best {parameter}"):
        result = run(law, parameter, observable, interval)
    best, value = number(result[parameter].item()), number(result[observable].item())
    edge = " (an end of the search interval, which --bounds changes)" if result.attrs["at_bound"] else ""
    words = f"{parameter} = {best}{edge} minimises {observable}: {value}"
    finish(law, result, parameter, observable, [words], as_json, out, plot)


def finish(
    law: Law,
    result: xr.Dataset,
    parameter: str,
    observable: str,
    answer: Sequence[str],
    as_json: bool,
    out: Path | None,
    plot: Path | None,
    level: float | None = None,
) -> None:
    """Save, draw and print a result, with the sentences of its answer first."""
    if not as_json:
        for place, words in enumerate(filter(None, answer)):
            say(words, bold=place == 0)

    def draw() -> Figure:
        from limitlab.lab.result_figures import answer_figure

        return answer_figure(law, result, parameter, observable, level)

    def show() -> None:
        names = [name for name in law.observed() if name in result]
        rows = [{"observable": name, "value": result[name].item()} for name in names if result[name].ndim == 0]
        print_table(rows, title=f"{title_of(law, [parameter])} at {parameter} = {number(result[parameter].item())}")

    write_outputs(result, as_json, out, plot, draw, show)


def in_words(law: Law, parameter: str, value: float) -> str:
    """Return a ratio in words and its inverse, or an empty text if the parameter is not a ratio.

    >>> from limitlab.laws import Ridge
    >>> in_words(Ridge(), "ratio", 0.44)
    'that is 0.44 features per sample, or 2.27 samples per feature'
    """
    description = type(law).parameters()[parameter].description
    match = re.match(r"([a-z-]+(?: [a-z-]+)?s) per ((?:[a-z-]+ )?[a-z-]+)", description)
    if match is None or not 0 < value < math.inf:
        return ""
    plural, singular = match.groups()
    return f"that is {value:.3g} {plural} per {singular}, or {1 / value:.3g} {singular}s per {plural.removesuffix('s')}"


def read_target(text: str) -> tuple[str, float]:
    """Return the observable and the value of a target.

    >>> read_target("test-error=0.3")
    ('test_error', 0.3)
    """
    name, equals, value = text.partition("=")
    (wanted,) = read_numbers("target", value) if equals and "," not in value and ":" not in value else (None,)
    if not name.strip() or not isinstance(wanted, float):
        raise Refused(f"--target {text} is not allowed: give an observable and a number, such as test_error=0.3")
    return name.strip().replace("-", "_"), wanted


def read_bounds(text: str | None) -> tuple[float, float] | None:
    """Return the interval of `--bounds`.

    >>> read_bounds("0.1:10")
    (0.1, 10.0)
    """
    if text is None:
        return None
    parts = text.replace(",", ":").split(":")
    try:
        low, high = (float(part) for part in parts)
    except ValueError:
        raise Refused(f"--bounds {text} is not allowed: give two numbers, such as 0.1:10") from None
    return low, high


DEFAULT = "two-layer-dynamics"
"""The default law, because most users stop the training of a network."""


@law_command("stop --width 20 --sample-ratio 10 --start-second-layer 0.5,1,2")
def stop(
    ctx: typer.Context,
    law_name: LawArgument = DEFAULT,
    end: Annotated[
        float | None,
        typer.Option("--end", metavar="TIME", help="Last time of the trajectory (default: until the error has risen)."),
    ] = None,
    slack: Annotated[
        float, typer.Option("--slack", metavar="SHARE", help="Largest relative excess over the best error in the window.")
    ] = 0.05,
    as_json: JsonOption = False,
    out: OutOption = None,
    plot: PlotOption = None,
    laws: LawsOption = None,
) -> None:
    """Find the best time to stop training, the error there, and the window of good times.

    The law must have a test error along training times (default: two-layer-dynamics, a network). Instead of a law you can give a .csv, .tsv
    or .parquet file with the steps and validation losses of your own training. The answer is then whether to stop, and the loss to expect
    at step --end (default: twice the last step).
    """
    from limitlab.applied.stopping import can_stop, plan_stopping, stopping_table

    if law_name.startswith("-"):  # no law is given, so the first argument is the first parameter
        ctx.args, law_name = [law_name, *ctx.args], DEFAULT
    if law_name.lower().endswith(CURVE_FILES):
        stop_curve(law_name, ctx.args, end, slack, as_json, out, plot)
        return
    parsed = parse_law(ctx, law_name)
    if not can_stop(type(parsed.law)):
        raise Refused(
            f"stop {law_name} is not allowed: this law has no test error along training times; laws that have one are "
            f"{', '.join(stoppable())}"
        )
    check_paths(out, plot)
    if plot is not None:
        require_axis(parsed)
    first = next(name for name in type(parsed.law).parameters() if isinstance(getattr(parsed.law, name), (int, float)))
    over = dict(parsed.over) or {first: [getattr(parsed.law, first)]}
    with status_line("computing the test error along training"):
        table = stopping_table(parsed.law, over, end=end, slack=slack)

    def draw() -> Figure:
        from limitlab.applied.stopping import stopping_figure
        from limitlab.lab.result_figures import sweep_figure

        return stopping_figure(table) if len(over) == 1 else sweep_figure(table, ("time", "test_error", "final_test_error"))

    def show() -> None:
        if not parsed.over:
            say(plan_stopping(parsed.law, end, slack).words(), bold=True)
        print_table(rows_of(table), title=f"when to stop: {title_of(parsed.law, [*over, 'times'])}")

    write_outputs(table, as_json, out, plot, draw, show)


CURVE_FILES = (".csv", ".tsv", ".parquet", ".pq")
"""Endings of the names of training curves, which `stop` accepts instead of a law."""


def stop_curve(
    name: str, arguments: list[str], end: float | None, slack: float, as_json: bool, out: Path | None, plot: Path | None
) -> None:
    """Print whether a training should stop, from a file with its steps and validation losses."""
    from limitlab.applied.stopping import stop as stop_of

    if arguments:
        raise Refused(f"{arguments[0]} is not allowed with a training curve: give --end and --slack only")
    check_paths(out, plot, tables=True)
    with status_line("fitting the training curve"):
        plan = stop_of(Path(name), end=end, slack=slack)
    write_outputs(plan.table, as_json, out, plot, plan.figure, lambda: print_page(plan.page()), lambda: plan.page().data)


def stoppable() -> list[str]:
    """Return the names of the laws that `stop` accepts."""
    from limitlab._core.registry import all_laws
    from limitlab.applied.stopping import can_stop

    return [name for name, law in all_laws().items() if can_stop(law)]
