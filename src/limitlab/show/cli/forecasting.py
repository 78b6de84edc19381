"""`forecast`: the learning curve of a user's own data, checked by a few real fits, and what to do next."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from limitlab.errors import UnreachableTarget
from limitlab.show.cli.app import FAILED, app
from limitlab.show.cli.options import read_numbers
from limitlab.show.cli.output import (
    JsonOption,
    OutOption,
    PlotOption,
    check_paths,
    deliver,
    describe_result,
    print_json,
    print_table,
    say,
)
from limitlab.show.cli.progress import working
from limitlab.show.tables import number

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from limitlab.applied.forecast import Forecast
    from limitlab.applied.forecast.tables import Table

FEW = 4
"""Numbers of points at which real fits check the forecast."""

LARGEST_CHECK = 3000
"""No real fit on more points than this: it is a check, not the work that the forecast saves."""


@app.command(epilog="Example: limitlab forecast houses.csv --target price --kernel rbf --n 100:10000:20log --plot curve.png")
def forecast(
    data: Annotated[
        Path | None, typer.Argument(metavar="DATA", help="A table: .csv, .tsv, .parquet or .npz.", show_default=False)
    ] = None,
    target: Annotated[str | None, typer.Option("--target", metavar="COLUMN", help="The column to predict.")] = None,
    kernel: Annotated[
        Literal["linear", "rbf", "relu-nngp", "random-features"], typer.Option("--kernel", help="What kind of model.")
    ] = "rbf",
    n: Annotated[
        str | None,
        typer.Option("--n", metavar="RANGE", help="Numbers of rows, such as 100:10000:20log (default: N/50 to 2N)."),
    ] = None,
    ridge: Annotated[
        str, typer.Option("--ridge", metavar="NUMBER", help='A ridge of (K/n + ridge), or "best" at every n.')
    ] = "0.01",
    classify: Annotated[bool, typer.Option("--classify", help="The target holds labels.")] = False,
    gamma: Annotated[float | None, typer.Option("--gamma", help="Of the kernel exp(-gamma |x-y|^2).")] = None,
    width: Annotated[int, typer.Option("--width", help="Number of random features.")] = 1000,
    activation: Annotated[str, typer.Option("--activation", help="Of the random features.")] = "relu",
    error: Annotated[float | None, typer.Option("--error", help="Also say how many rows reach this test error.")] = None,
    splits: Annotated[int, typer.Option("--splits", help="Real fits at each of a few n, as a check; 0 for none.")] = 5,
    rows: Annotated[int | None, typer.Option("--rows", help="Use so many rows, chosen at random.")] = None,
    float32: Annotated[bool, typer.Option("--float32", help="Half the memory, six digits.")] = False,
    seed: Annotated[int, typer.Option("--seed", help="Of everything random.")] = 0,
    self_test: Annotated[
        bool, typer.Option("--self-test", help="Instead: how good forecasts are, on digits, diabetes and MNIST (minutes).")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Of the self-test: the small data sets only (a minute).")] = False,
    as_json: JsonOption = False,
    out: OutOption = None,
    plot: PlotOption = None,
) -> None:
    """The learning curve of your own data: expected test error against rows, with a band, and what to do next."""
    if self_test:
        run_self_test(quick, as_json)
        return
    if data is None:
        raise ValueError("name a file: limitlab forecast DATA.csv --target COLUMN (or --self-test)")
    if target is None:
        raise ValueError("--target is missing: name the column to predict, such as --target price")
    check_paths(out, plot)
    if splits < 0:
        raise ValueError(f"--splits {splits} is not allowed: must be at least 0")
    from limitlab.applied.forecast import Forecast, ForecastWarning
    from limitlab.applied.forecast.tables import read_table

    lam, counts = read_ridge(ridge), read_counts(n)
    table = read_table(data, target, classify, rows, seed)
    own = lam if isinstance(lam, float) else 0.01
    model = Forecast(
        kernel, ridge=own, gamma=gamma, width=width, activation=activation, intercept=1.0, classify=classify,
        dtype="float32" if float32 else "float64", random_state=seed,
    )  # fmt: skip
    with warnings.catch_warnings(record=True) as caught, working(f"decomposing {len(table.X)} rows") as tell:
        warnings.simplefilter("always", ForecastWarning)
        model.fit(table.X, table.y)
        tell("forecasting")
        curve = model.learning_curve(counts, lam)
        best = None if isinstance(lam, str) else model.best_ridge(curve.n.values)
        tell("checking with real fits")
        checks = measured_points(model, curve, splits, seed) if splits else None
        advice = model.advice(lam)
        needed = rows_needed(model, error, lam) if error is not None else None
        trust = trust_line(model, curve)
    remarks = list(dict.fromkeys(str(entry.message) for entry in caught if issubclass(entry.category, ForecastWarning)))

    def draw() -> Figure:
        from limitlab.show.figures.forecast import forecast_figure

        return forecast_figure(curve, best, checks, f"{data.name}: {target}, {kernel}")

    def describe() -> dict[str, Any]:
        return {
            **describe_result(curve),
            "notes": table.notes,
            "warnings": remarks,
            "trust": trust,
            "measured": describe_result(checks) if checks is not None else None,
            "best_ridge": describe_result(best) if best is not None else None,
            "samples_for": needed,
            "target_scale": table.scale,
            "advice": advice,
        }

    def show() -> None:
        for line in [f"note: {note}" for note in table.notes] + [f"warning: {remark}" for remark in remarks]:
            say(line)
        print_table(curve_rows(curve, best, checks), title=title(data, target, kernel, table, model))
        answer = [needed["sentence"]] if needed is not None else []
        typer.echo("\n".join([trust, *answer, advice[0].upper() + advice[1:] + "."]))

    deliver(curve, as_json, out, plot, draw, show, describe)
    if needed is not None and needed["n"] is None:
        raise typer.Exit(FAILED)


def rows_needed(model: Forecast, error: float, lam: Any) -> dict[str, Any]:
    """How many rows reach a test error, or that none do, as numbers and as a sentence."""
    try:
        found = model.samples_for(error, lam)
    except UnreachableTarget as reason:
        return {"n": None, "best": reason.best, "at": reason.at, "sentence": str(reason)[0].upper() + str(reason)[1:] + "."}
    beyond = " (extrapolated)" if found.extrapolated.item() else ""
    sentence = f"A test error of {number(error)} needs about {found.n.item():.0f} rows{beyond}."
    return {"n": found.n.item(), "extrapolated": found.extrapolated.item(), "sentence": sentence}


def title(data: Path, target: str, kernel: str, table: Table, model: Forecast) -> str:
    """What the table is about."""
    unit = (
        "mean squared error of the 0/1 targets" if model.classify else "mean squared error over the variance of the target"
    )
    return f"{data.name}: {target} from {table.X.shape[1]} columns, N = {len(table.X)}, {kernel} kernel ({unit})"


def measured_points(model: Forecast, curve: xr.Dataset, splits: int, seed: int) -> xr.Dataset | None:
    """Real fits at a few of the numbers of points that the curve shows, at its ridge."""
    import numpy as np
    import xarray as xr

    total = model.spectrum_.population
    n = np.round(curve.n.values)
    possible = np.flatnonzero((n < total - 1) & (n <= LARGEST_CHECK) & (n >= 2))
    if not possible.size:
        return None
    chosen = np.unique(possible[np.round(np.linspace(0, possible.size - 1, FEW)).astype(int)])
    parts = [
        model.measure([n[i]], [curve["ridge"].values[i]], splits=splits, seed=seed).assign_coords(
            n=[curve.n.values[i]], ridge=[0]
        )
        for i in chosen
    ]
    return xr.concat(parts, "n").assign_attrs(parts[0].attrs)


def curve_rows(curve: xr.Dataset, best: xr.Dataset | None, checks: xr.Dataset | None) -> list[dict[str, Any]]:
    """One row per number of points."""
    real = {}
    if checks is not None:
        names = [name for name in ("test_error", "test_error_standard_error", "classification_error") if name in checks]
        real = {at: [checks[name].values[i, 0] for name in names] for i, at in enumerate(checks.n.values.tolist())}
    rows = []
    for i, at in enumerate(curve.n.values.tolist()):
        row: dict[str, Any] = {
            "n": f"{at:.0f}" + (" *" if curve.extrapolated.values[i] else ""),
            "test_error": short(curve.test_error[i]),
        }
        if "test_error_low" in curve:
            row["band"] = f"{short(curve.test_error_low[i])} to {short(curve.test_error_high[i])}"
        row |= {"train_error": short(curve.train_error[i]), "degrees_of_freedom": short(curve.degrees_of_freedom[i])}
        if best is not None:
            row |= {"best_ridge": short(best["ridge"][i]), "error_there": short(best.test_error[i])}
        else:
            row["ridge"] = short(curve["ridge"][i])
        if checks is not None:
            found = real.get(at)
            row["real_fits"] = real_fits(*found[:2]) if found else ""
            if "classification_error" in checks:
                row["wrong_labels"] = f"{found[2]:.1%}" if found else ""
        rows.append(row)
    return rows


def real_fits(mean: float, error: float) -> str:
    """A measured error; one fit alone has no error bar.

    >>> real_fits(0.5, 0.01), real_fits(0.5, float("inf"))
    ('0.5 ± 0.01', '0.5 (one fit)')
    """
    return f"{short(mean)} ± {error:.1g}" if error < float("inf") else f"{short(mean)} (one fit)"


def short(value: Any) -> str:
    """Four digits.

    >>> short(0.123456)
    '0.1235'
    """
    return f"{float(value):.4g}"


def trust_line(model: Forecast, curve: xr.Dataset) -> str:
    """What the leverages say, and what the stars mean."""
    from limitlab.applied.forecast import diagnostics

    least = float(curve["ridge"].values.min())
    variation = float(diagnostics.leverage_variation(model.spectrum_, least)[0])
    line = "Trust: " + diagnostics.explain(variation, least) + "."
    if "approximation_error" in curve.attrs:
        line += f" Nystrom approximation: relative error about {curve.attrs['approximation_error']:.1g}."
    if curve.extrapolated.values.any():
        check = model.check_tail(curve["ridge"].values[-1])
        gap = float(abs(check.predicted / check.reference - 1).mean())
        line += f"\n* beyond the data: extrapolated. Hiding half of the rows, the same extrapolation missed by {gap:.1%} on average."
    return line


def read_ridge(text: str) -> float | str:
    """The ridge of `--ridge`.

    >>> read_ridge("0.1"), read_ridge("best")
    (0.1, 'best')
    """
    if text.strip().lower() == "best":
        return "best"
    values = read_numbers("ridge", text)
    if len(values) != 1 or not isinstance(values[0], float) or not values[0] >= 0:
        raise ValueError(f"--ridge {text} is not allowed: give one number of at least 0, or best")
    return values[0]


def read_counts(text: str | None) -> Any:
    """The numbers of rows of `--n`: whole, each once, in order.

    >>> read_counts("10:20:3,5").tolist()
    [5.0, 10.0, 15.0, 20.0]
    """
    if text is None:
        return None
    import numpy as np

    from limitlab.lab.ranges import parse_range

    try:
        return np.unique(np.round(parse_range(text)))
    except ValueError as error:
        raise ValueError(f"--n: {error}") from None


def run_self_test(quick: bool, as_json: bool) -> None:
    """Predicted against measured test errors on real data: a summary, and every case that is off by more than 10 %."""
    from dataclasses import asdict

    from limitlab.applied.forecast.accuracy import accuracy, hidden_tail, summary

    sets = ("diabetes", "digits") if quick else ("diabetes", "digits", "mnist")
    with working("forecasting and measuring") as tell:
        found = accuracy(sets, quick=quick, report=tell)
        tails = [] if quick else hidden_tail(report=tell)
    if as_json:
        print_json(
            {"summary": summary(found), "cases": [asdict(row) for row in found], "tails": [asdict(row) for row in tails]}
        )
        return
    print_table(
        summary(found), title="|predicted / measured - 1| of the test error (the law; with the leverage of each point)"
    )
    poor = [row for row in found if max(abs(row.law_gap), abs(row.corrected_gap)) > 0.1]
    if poor:
        listed = [
            {
                "data": row.data, "kernel": row.kernel, "n": row.n, "ridge": row.ridge, "measured": short(row.measured),
                "law": f"{row.law_gap:+.0%}", "corrected": f"{row.corrected_gap:+.0%}",
                "standard_error": f"{row.standard_error / row.measured:.0%}",
            }
            for row in poor
        ]  # fmt: skip
        print_table(listed, title="Cases that either is wrong about by more than 10%")
    if tails:
        beyond = [
            {
                "kernel": row.kernel, "ridge": row.ridge, "extrapolated": short(row.predicted),
                "band": f"{short(row.low)} to {short(row.high)}", "measured": short(row.measured), "inside": row.inside,
            }
            for row in tails
        ]  # fmt: skip
        print_table(beyond, title="MNIST, fitted on 1,000 images and extrapolated to 4,000")
