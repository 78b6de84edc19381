"""`stop`: when to stop training a two-layer network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from limitlab.show.cli.lawcommand import LawArgument, asked_law, law_command
from limitlab.show.cli.output import JsonOption, OutOption, PlotOption, check_paths, deliver, print_table
from limitlab.show.cli.progress import working
from limitlab.show.cli.running import require_axis
from limitlab.show.tables import rows_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@law_command("stop two-layer-dynamics --width 20 --sample-ratio 10 --start-second-layer 0.5,1,2")
def stop(
    ctx: typer.Context,
    law_name: LawArgument = "two-layer-dynamics",
    end: Annotated[
        float | None, typer.Option("--end", metavar="TIME", help="Last time to look at (default: 4 widths, at least 20).")
    ] = None,
    slack: Annotated[
        float, typer.Option("--slack", metavar="SHARE", help="How far above the best error the window reaches.")
    ] = 0.05,
    as_json: JsonOption = False,
    out: OutOption = None,
    plot: PlotOption = None,
) -> None:
    """When is a network trained long enough, and when too long? The best time, the error there, and the window around it."""
    from limitlab.applied.stopping import stopping_table
    from limitlab.laws.dmft.two_layer import TwoLayerDynamics

    asked = asked_law(ctx, law_name)
    if not isinstance(asked.law, TwoLayerDynamics):
        raise ValueError(
            f"stop {law_name} is not allowed: only two-layer-dynamics has a test error that falls and rises again"
        )
    check_paths(out, plot)
    if plot is not None:
        require_axis(asked)
    over = dict(asked.over) or {"width": [asked.law.width]}
    with working("following the test error"):
        table = stopping_table(asked.law, over, end=end, slack=slack)

    def draw() -> Figure:
        from limitlab.show.figures.generic import sweep_figure
        from limitlab.show.figures.stopping import stopping_figure

        return stopping_figure(table) if len(over) == 1 else sweep_figure(table, ("time", "test_error", "final_test_error"))

    deliver(table, as_json, out, plot, draw, lambda: print_table(rows_of(table), title="when to stop"))
