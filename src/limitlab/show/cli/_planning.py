"""The commands `plan` (reach a target), `optimal` (best value of a parameter) and `stop` (when to stop training)."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from limitlab._core.page import number, rows_of
from limitlab.errors import Refused
from limitlab.show.cli._app import status_line
from limitlab.show.cli._law import (
    LawArgument,
    LawsOption,
    law_command,
    parse_law,
    read_numbers,
    require_single_values,
    title_of,
)
from limitlab.show.cli._output import JsonOption, OutOption, PlotOption, check_paths, print_table, write_outputs
from limitlab.show.cli._running import require_axis

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from limitlab._core.law import Law


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
    finish(law, result, parameter, observable, as_json, out, plot, level=wanted)
    if not as_json:
        answer, reached = result[parameter].item(), number(result[observable].item())
        wish = (
            "" if reached == number(wanted) else f" (target {number(wanted)})"
        )  # with a whole number the target is rarely reached exactly
        others = [number(value) for value in result["solutions"].values.tolist() if value != answer]
        typer.echo(
            f"{parameter} = {number(answer)} gives {observable} = {reached}{wish}"
            + (f"; other answers: {', '.join(others)}" if others else "")
        )
        words = in_words(law, parameter, answer)
        if words:
            typer.echo(words)


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
    finish(law, result, parameter, observable, as_json, out, plot)
    if not as_json:
        best, value = number(result[parameter].item()), number(result[observable].item())
        edge = " (an end of the search interval, which --bounds changes)" if result.attrs["at_bound"] else ""
        typer.echo(f"{parameter} = {best}{edge} minimises {observable}: {value}")


def finish(
    law: Law,
    result: xr.Dataset,
    parameter: str,
    observable: str,
    as_json: bool,
    out: Path | None,
    plot: Path | None,
    level: float | None = None,
) -> None:
    """Save, draw and print a result."""

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

    The law must have a test error along training times (default: two-layer-dynamics, a network).
    """
    from limitlab.applied.stopping import can_stop, plan_stopping, stopping_table

    if law_name.startswith("-"):  # no law is given, so the first argument is the first parameter
        ctx.args, law_name = [law_name, *ctx.args], DEFAULT
    parsed = parse_law(ctx, law_name)
    if not can_stop(type(parsed.law)):
        raise Refused(
            f"stop {law_name} is not allowed: it has no test error along training times; these laws have one: "
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
        from limitlab.applied.plots import stopping_figure
        from limitlab.lab.result_figures import sweep_figure

        return stopping_figure(table) if len(over) == 1 else sweep_figure(table, ("time", "test_error", "final_test_error"))

    def show() -> None:
        print_table(rows_of(table), title=f"when to stop: {title_of(parsed.law, [*over, 'times'])}")
        if not parsed.over:
            typer.echo(plan_stopping(parsed.law, end, slack).words())

    write_outputs(table, as_json, out, plot, draw, show)


def stoppable() -> list[str]:
    """Return the names of the laws that `stop` accepts."""
    from limitlab._core.registry import all_laws
    from limitlab.applied.stopping import can_stop

    return [name for name, law in all_laws().items() if can_stop(law)]
