"""`scaling-fit`: a scaling law for a table of training runs, with what the table cannot decide."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limitlab.show.cli._app import FAILED, app
from limitlab.show.cli._options import read_numbers
from limitlab.show.cli._output import (
    JsonOption,
    OutOption,
    PlotOption,
    check_paths,
    print_json,
    print_table,
    save_figure,
    save_rows,
    say,
)
from limitlab.show.cli._progress import working

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from limitlab.applied.scaling.fit import ScalingFit


@app.command("scaling-fit", epilog="Example: limitlab scaling-fit runs.csv --compute 1e22,1e24 --plot fit.png")
def scaling_fit_command(
    runs: Annotated[Path, typer.Argument(metavar="RUNS", help="A table, one row per run: .csv or .tsv.")],
    size: Annotated[
        str | None, typer.Option("--size", metavar="COLUMN", help="Model size N (default: N, params, ...).")
    ] = None,
    data: Annotated[str | None, typer.Option("--data", metavar="COLUMN", help="Data D (default: D, tokens, ...).")] = None,
    loss: Annotated[
        str | None, typer.Option("--loss", metavar="COLUMN", help="Final loss (default: loss, val_loss, ...).")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget", metavar="COLUMN", help="Compute of each run, where there is no D (default: C, flops, ...)."
        ),
    ] = None,
    compute: Annotated[
        str | None,
        typer.Option("--compute", metavar="RANGE", help="Budgets to plan for, such as 1e22,1e24 or 1e20:1e24:5log."),
    ] = None,
    flops: Annotated[float, typer.Option("--flops", help="Compute per unit of N D.")] = 6.0,
    level: Annotated[float, typer.Option("--level", help="Of the intervals.")] = 0.95,
    least_squares: Annotated[
        bool, typer.Option("--least-squares", help="Instead of Huber's cost, which forgives bad runs.")
    ] = False,
    interaction: Annotated[bool, typer.Option("--interaction", help="Add a product term G N^-p D^-q.")] = False,
    as_json: JsonOption = False,
    out: OutOption = None,
    plot: PlotOption = None,
) -> None:
    """Fit L = E + A N^-a + B D^-b to your runs: intervals, the best size for a budget, and what the runs cannot decide."""
    from limitlab.applied.scaling.fit import scaling_fit
    from limitlab.applied.scaling.tables import read_runs

    check_paths(out, plot)
    if out is not None and out.suffix.lower() != ".csv":
        raise ValueError(f"--out {out}: the table of parameters is saved as .csv only")
    budgets = [] if compute is None else [float(total) for total in read_numbers("--compute", compute)]
    table = read_runs(runs, N=size, D=data, loss=loss, compute=budget)
    with working(f"fitting {table.N.size} runs"):
        fit = scaling_fit(
            table.N, table.D, table.loss, not least_squares, level, flops, compute=table.compute, interaction=interaction
        )
        parameters, plans = parameter_rows(fit), plan_rows(fit, budgets)
    if out is not None:
        save_rows(parameters, out)
    if plot is not None:

        def draw() -> Figure:
            from limitlab.applied.plots import scaling_fit_figure

            return scaling_fit_figure(fit, runs.name)

        save_figure(draw, plot)
    if as_json:
        print_json(
            dict(
                parameters=parameters,
                optimum=plans,
                separable=fit.separable,
                condition=fit.condition,
                residual_sd=fit.residual_sd,
                warnings=fit.warnings,
            )
        )
    else:
        print_table(parameters, f"L = E + A N^-a + B D^-b, {table.N.size} runs, residual sd of log L {fit.residual_sd:.3g}")
        if plans:
            print_table(plans, f"the best size for a budget of {flops:g} N D")
        for text in fit.warnings:
            say(f"warning: {text}")
    if budgets and not fit.separable:
        raise typer.Exit(FAILED)


def parameter_rows(fit: ScalingFit) -> list[dict[str, Any]]:
    """One row per parameter: value and interval, in words where the table does not decide."""
    from limitlab.applied.scaling.fit import NAMES, NOT_DETERMINED

    rows = []
    for name in NAMES:
        known = fit.separable or name == "E"
        low, high = fit.interval(name) if known and not fit.interaction else (float("-inf"), float("inf"))
        rows.append(
            dict(
                parameter=name,
                value=f"{getattr(fit, name):.6g}" if known else NOT_DETERMINED,
                low="open" if low == float("-inf") else f"{low:.5g}",
                high="open" if high == float("inf") else f"{high:.5g}",
            )
        )
    return rows


def plan_rows(fit: ScalingFit, budgets: list[float]) -> list[dict[str, Any]]:
    """One row per budget: size and data with the least loss, the interval of the size, and how far this is from the runs."""
    rows = []
    for total in budgets if fit.separable else ():
        best = fit.optimum(total)
        low, high = fit.interval("N", compute=total) if not fit.interaction else (0.0, float("inf"))
        rows.append(
            dict(
                compute=total,
                N=best.N,
                N_low=low,
                N_high=high,
                D=best.D,
                loss=float(fit.predict(best.N, best.D)),
                where=fit.trust(total),
            )
        )
    return rows
