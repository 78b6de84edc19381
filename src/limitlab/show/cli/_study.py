"""`sample-size`: how many samples a logistic regression needs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limitlab._core.tables import rows_of
from limitlab.show.cli._app import app
from limitlab.show.cli._output import JsonOption, OutOption, PlotOption, check_paths, deliver, print_facts, print_table, say
from limitlab.show.cli._progress import working

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from limitlab.applied.study_size import SampleSize

ASSUMES = "assumes Gaussian predictors, a logistic model, no selection, no penalty; skewed predictors need more"


@app.command(
    "sample-size",
    epilog="Example: limitlab sample-size --predictors 20 --auc 0.8 --prevalence 0.2 --plot buys.png. With a pilot: limitlab sample-size "
    "--pilot patients.csv --target died",
)
def sample_size_command(
    predictors: Annotated[int | None, typer.Option("--predictors", metavar="P", help="Candidate predictors.")] = None,
    auc: Annotated[float | None, typer.Option("--auc", help="AUC of the true model, 0.5 to 0.999.")] = None,
    prevalence: Annotated[float | None, typer.Option("--prevalence", help="Share of labels 1.")] = None,
    pilot: Annotated[
        Path | None,
        typer.Option("--pilot", metavar="FILE", help="A pilot table that tells what is not given: .csv, .parquet or .npz."),
    ] = None,
    target: Annotated[str | None, typer.Option("--target", metavar="COLUMN", help="The pilot's column of labels.")] = None,
    slope: Annotated[float, typer.Option("--slope", help="Mean calibration slope to reach.")] = 0.9,
    auc_loss: Annotated[float | None, typer.Option("--auc-loss", help="AUC that may be lost.")] = None,
    log_loss: Annotated[float | None, typer.Option("--log-loss", help="Log-loss above the true model's.")] = None,
    error: Annotated[float | None, typer.Option("--error", help="Error rate above the true model's.")] = None,
    risk: Annotated[float, typer.Option("--risk", help="Largest probability that no fit exists.")] = 0.01,
    as_json: JsonOption = False,
    out: OutOption = None,
    plot: PlotOption = None,
) -> None:
    """How many samples does a logistic regression need? From the limit law, beside the rules of thumb."""
    import numpy as np

    from limitlab.applied.study_size import sample_size

    check_paths(out, plot)
    with working("solving for the number of samples"):
        found = sample_size(predictors, auc, prevalence, slope, auc_loss, log_loss, error, risk, pilot, target)
        known = [found.samples, found.riley_samples, found.ten_events_samples]
        least = 1.2 * found.predictors / found.existence_threshold
        table = found.curve(np.unique(np.round([*np.geomspace(least, 3 * max(known), 8), *known])))

    def draw() -> Figure:
        from limitlab.applied.plots import sample_size_figure

        return sample_size_figure(found)

    def show() -> None:
        if found.pilot is not None:
            for line in [f"note: {note}" for note in found.pilot.notes] + found.pilot.remarks():
                say(line)
        print_facts(_facts(found))
        print_table(rows_of(table), title="what each number of samples buys")

    deliver(table, as_json, out, plot, draw, show, lambda: _plain(found))


def _facts(found: SampleSize) -> dict[str, str]:
    facts = {"samples": f"{found.samples}"}
    facts |= {f"  for {name.replace('_', ' ')}": f"{count}" for name, count in found.needed.items()}
    return facts | {
        "Riley (i)": f"{found.riley_samples}, where the slope is {found.slope_at_riley:.3f}",
        "ten events per predictor": f"{found.ten_events_samples}, where the slope is {found.slope_at_ten_events:.3f}",
        "design": f"{found.predictors} predictors, AUC {found.auc:.4g}, prevalence {found.prevalence:.4g}",
        "true score": f"mean {found.intercept:.4g}, standard deviation {found.signal:.4g}",
        "": ASSUMES,
    }


def _plain(found: SampleSize) -> dict[str, Any]:
    plain = {name: value for name, value in asdict(found).items() if not name.startswith("_")}
    return plain if found.pilot is None else {**plain, "pilot": {**plain["pilot"], "remarks": found.pilot.remarks()}}
