"""`stop`: when to stop training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from limitlab._core.about import titled
from limitlab._core.tables import rows_of
from limitlab.show.cli._lawcommand import LawArgument, LawsOption, asked_law, law_command
from limitlab.show.cli._output import JsonOption, OutOption, PlotOption, check_paths, deliver, print_table
from limitlab.show.cli._progress import working
from limitlab.show.cli._running import require_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEFAULT = "two-layer-dynamics"
"""The law that is meant where none is named: training a network is what people stop."""


@law_command("stop --width 20 --sample-ratio 10 --start-second-layer 0.5,1,2")
def stop(
    ctx: typer.Context,
    law_name: LawArgument = DEFAULT,
    end: Annotated[
        float | None,
        typer.Option("--end", metavar="TIME", help="Last time to look at (default: until the error has risen)."),
    ] = None,
    slack: Annotated[
        float, typer.Option("--slack", metavar="SHARE", help="How far above the best error the window reaches.")
    ] = 0.05,
    as_json: JsonOption = False,
    out: OutOption = None,
    plot: PlotOption = None,
    laws: LawsOption = None,
) -> None:
    """When is a model trained long enough, and when too long? The best time, the error there, and the window around it.

    Any law whose test error is followed in time (default: two-layer-dynamics, a network).
    """
    from limitlab.applied.stopping import can_stop, plan_stopping, stopping_table

    if law_name.startswith("-"):  # the law is left out: what stands in its place is its first parameter
        ctx.args, law_name = [law_name, *ctx.args], DEFAULT
    asked = asked_law(ctx, law_name)
    if not can_stop(type(asked.law)):
        raise ValueError(
            f"stop {law_name} is not allowed: it has no test error along training times; these laws have one: "
            f"{', '.join(stoppable())}"
        )
    check_paths(out, plot)
    if plot is not None:
        require_axis(asked)
    first = next(name for name in type(asked.law).parameters() if isinstance(getattr(asked.law, name), (int, float)))
    over = dict(asked.over) or {first: [getattr(asked.law, first)]}
    with working("following the test error"):
        table = stopping_table(asked.law, over, end=end, slack=slack)

    def draw() -> Figure:
        from limitlab.applied.plots import stopping_figure
        from limitlab.lab.result_figures import sweep_figure

        return stopping_figure(table) if len(over) == 1 else sweep_figure(table, ("time", "test_error", "final_test_error"))

    def show() -> None:
        print_table(rows_of(table), title=f"when to stop: {titled(asked.law, [*over, 'times'])}")
        if not asked.over:
            typer.echo(plan_stopping(asked.law, end, slack).words())

    deliver(table, as_json, out, plot, draw, show)


def stoppable() -> list[str]:
    """The laws that `stop` takes."""
    from limitlab._core.registry import all_laws
    from limitlab.applied.stopping import can_stop

    return [name for name, law in all_laws().items() if can_stop(law)]
