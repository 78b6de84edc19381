"""`forecast`: the learning curve of a user's own data, checked by a few real fits, and what to do next."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from limitlab.show.cli import forecast_words as words
from limitlab.show.cli._app import FAILED, app
from limitlab.show.cli._options import read_numbers
from limitlab.show.cli._output import (
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
from limitlab.show.cli._progress import working

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from limitlab.applied.forecast import Forecast

FEW = 4
"""Numbers of points at which real fits check the forecast."""

LARGEST_CHECK = 3000
"""No real fit on more points than this: it is a check, not the work that the forecast saves."""


@app.command(epilog="Example: limitlab forecast houses.csv --target price --n 100:10000:20log --plot curve.png")
def forecast(
    data: Annotated[
        Path | None, typer.Argument(metavar="DATA", help="A table: .csv, .tsv, .parquet or .npz.", show_default=False)
    ] = None,
    target: Annotated[str | None, typer.Option("--target", metavar="COLUMN", help="The column to predict.")] = None,
    kernel: Annotated[
        Literal["auto", "linear", "rbf", "laplace", "relu-nngp", "ntk", "random-features"],
        typer.Option("--kernel", help="What kind of model; auto is the best of nine by leave-one-out."),
    ] = "auto",
    n: Annotated[
        str | None,
        typer.Option("--n", metavar="RANGE", help="Numbers of rows, such as 100:10000:20log (default: N/50 to 2N)."),
    ] = None,
    ridge: Annotated[
        str, typer.Option("--ridge", metavar="NUMBER", help='A ridge of (K/n + ridge), or "best" at every n.')
    ] = "best",
    task: Annotated[
        Literal["auto", "regression", "classification"], typer.Option("--task", help="Numbers or labels; auto looks.")
    ] = "auto",
    classify: Annotated[bool, typer.Option("--classify", help="The same as --task classification.")] = False,
    metric: Annotated[
        Literal["mse", "error", "accuracy", "auc"] | None,
        typer.Option("--metric", help="What is forecast (default: mse for numbers, error for labels)."),
    ] = None,
    band: Annotated[float, typer.Option("--band", help="Probability that the band is meant to have.")] = 0.9,
    gamma: Annotated[float | None, typer.Option("--gamma", help="Of the kernel exp(-gamma |x-y|^2).")] = None,
    width: Annotated[int, typer.Option("--width", help="Number of random features.")] = 1000,
    activation: Annotated[str, typer.Option("--activation", help="Of the random features.")] = "relu",
    error: Annotated[
        float | None, typer.Option("--error", help="Also say how many rows reach this test error (mse).")
    ] = None,
    splits: Annotated[int, typer.Option("--splits", help="Real fits at each of a few n, as a check; 0 for none.")] = 5,
    baselines: Annotated[
        bool,
        typer.Option(
            "--backtest/--no-backtest", help="Beyond the data: what halves of it would have said, and a power law."
        ),
    ] = True,
    test_file: Annotated[
        Path | None, typer.Option("--test-file", metavar="FILE", help="Also check that these test data are normal.")
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option("--groups", metavar="COLUMN", help="Rows that belong together (patient, shop): test on new groups."),
    ] = None,
    time: Annotated[
        str | None, typer.Option("--time", metavar="COLUMN", help="When rows were seen: real fits are tested on later rows.")
    ] = None,
    subsets: Annotated[int, typer.Option("--subsets", help="Of 1,000 rows each, for more than 5,000 rows.")] = 6,
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
    if groups is not None and time is not None:
        raise ValueError("--groups and --time together are not allowed: real fits test on new groups or on later rows")
    if splits < 0:
        raise ValueError(f"--splits {splits} is not allowed: must be at least 0")
    from limitlab.applied.forecast import Forecast, ForecastWarning
    from limitlab.applied.forecast.advice import gains
    from limitlab.applied.forecast.tables import read_table

    lam, counts = read_ridge(ridge), read_counts(n)
    with warnings.catch_warnings(record=True) as caught, working(f"reading {data.name}") as tell:
        warnings.simplefilter("always", ForecastWarning)
        table = read_table(data, target, "classification" if classify else task, rows, seed, test_file, groups, time)
        tell(f"decomposing {len(table.X)} rows")
        model = Forecast(
            kernel, ridge=lam, gamma=gamma, width=width, activation=activation, intercept=1.0,
            task="classification" if table.labels else "regression", subsets=subsets,
            dtype="float32" if float32 else "float64", random_state=seed,
        ).fit(table.X, table.y, groups=table.groups)  # fmt: skip
        tell("forecasting")
        counts = default_counts(len(table.X)) if counts is None else counts
        curve = model.learning_curve(counts, lam, metric, band, baselines)
        others = other_metrics(model, curve, lam) if table.labels else {}
        tell("checking with real fits")
        checks = measured_points(model, curve, splits, seed, "time" if time else "random") if splits else None
        found = gains(model, lam)
        gain = label_gain(model, len(table.X)) if table.labels else None
        needed = words.rows_needed(model, error, lam) if error is not None else None
        trust = words.trust_sentences(model, curve) if baselines else []
        report = model.check_gap(table.X_test, table.y_test) if test_file is not None else None
    remarks = list(dict.fromkeys(str(entry.message) for entry in caught if issubclass(entry.category, ForecastWarning)))
    chosen = model.kernel_scores_[0]["kernel"] if model.kernel_scores_ else kernel
    level = words.level_sentence(curve, len(table.X), table, target) + " " + words.exponent_sentence(model)
    drift = words.drift_sentence(curve, checks) if time is not None else None
    advice = words.data_sentence(found, gain, lam, table, target)

    def draw() -> Figure:
        from limitlab.applied.plots import forecast_figure

        return forecast_figure(curve, checks, f"{data.name}: {target}, {chosen}")

    def describe() -> dict[str, Any]:
        return {
            **describe_result(curve),
            "notes": table.notes,
            "warnings": remarks,
            "kernel": chosen,
            "kernel_scores": model.kernel_scores_,
            "trust": trust,
            "measured": describe_result(checks) if checks is not None else None,
            "samples_for": needed,
            "target_scale": table.scale,
            "level": level,
            "exponent": model.exponent(),
            "gains": words.described(found, gain),
            "advice": advice,
            "drift": drift,
            "gap": vars(report) if report is not None else None,
        }

    def show() -> None:
        for line in [f"note: {note}" for note in table.notes] + [f"warning: {remark}" for remark in remarks]:
            say(line)
        columns, size = table.X.shape[1], len(table.X)
        print_table(
            words.curve_rows(curve, checks, table, others),
            title=f"{data.name}: {target} from {columns} columns, N = {size}, {chosen} kernel ({words.unit_of(model)})",
        )
        answer = [needed["sentence"]] if needed is not None else []
        answer += [drift] if drift is not None else []
        checked = list(report.sentences) if report is not None else []
        typer.echo("\n".join([level, *trust, *answer, advice, *checked]))

    deliver(curve, as_json, out, plot, draw, show, describe)
    if (needed is not None and needed["n"] is None) or (report is not None and not report.passed):
        raise typer.Exit(FAILED)


def default_counts(total: int) -> Any:
    """Numbers of rows that are shown where none are asked for: from N/50 to 2N, and N itself.

    >>> default_counts(1000)[[0, -2, -1]].tolist()
    [20.0, 1414.0, 2000.0]
    """
    import numpy as np

    return np.unique(np.round(np.append(np.geomspace(max(2, total / 50), 2 * total, 12), [total, np.sqrt(2) * total])))


def other_metrics(model: Forecast, curve: xr.Dataset, lam: Any) -> dict[str, Any]:
    """The other figures of a classifier along the same curve."""
    shown = [name for name in ("error", "accuracy", "auc") if name != curve.attrs["metric"]]
    return {name: model.learning_curve(curve.n.values, lam, name, baselines=False).value.values for name in shown}


def label_gain(model: Forecast, total: int) -> dict[str, float]:
    """Wrong labels now and with twice the data, at the best ridge."""
    found = model.learning_curve([total, 2 * total], "best", "error", baselines=False).value.values
    return {"now": float(found[0]), "twice": float(found[1])}


def measured_points(
    model: Forecast, curve: xr.Dataset, splits: int, seed: int, order: Literal["random", "time"] = "random"
) -> xr.Dataset | None:
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
        model.measure([n[i]], [curve["ridge"].values[i]], splits=splits, seed=seed, order=order).assign_coords(
            n=[curve.n.values[i]], ridge=[0]
        )
        for i in chosen
    ]
    return xr.concat(parts, "n").assign_attrs(parts[0].attrs)


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
                "data": row.data, "kernel": row.kernel, "n": row.n, "ridge": row.ridge, "measured": words.short(row.measured),
                "law": f"{row.law_gap:+.0%}", "corrected": f"{row.corrected_gap:+.0%}",
                "standard_error": f"{row.standard_error / row.measured:.0%}",
            }
            for row in poor
        ]  # fmt: skip
        print_table(listed, title="Cases that either is wrong about by more than 10%")
    if tails:
        beyond = [
            {
                "kernel": row.kernel, "ridge": row.ridge, "extrapolated": words.short(row.predicted),
                "band": f"{words.short(row.low)} to {words.short(row.high)}", "measured": words.short(row.measured), "inside": row.inside,
            }
            for row in tails
        ]  # fmt: skip
        print_table(beyond, title="MNIST, fitted on 1,000 images and extrapolated to 4,000")
