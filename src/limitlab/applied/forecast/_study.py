"""The forecast study: everything that a table of your own data says about more data, in one call.

`forecast_study` reads a table, chooses the kernel and the ridge, computes the learning curve with its band, and checks the curve with a
few real fits. Table, sentences and figure of the result come from one curve at one rule for the ridge, so they cannot contradict each
other. The command `limitlab forecast` and the explorer format this result.
"""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from limitlab._core.page import Described, Page
from limitlab._core.page import Table as Rows
from limitlab._core.tables import describe_result, number
from limitlab.applied.forecast._estimator import Forecast
from limitlab.applied.forecast._trust import ForecastWarning, Gains, GapReport, explain, leverage_variation, sentence
from limitlab.applied.forecast.tables import Table, read_table
from limitlab.errors import UnreachableTarget

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[Any]

FEW = 4
"""Numbers of rows at which real fits check the forecast."""

LARGEST_CHECK = 3000
"""The largest number of rows of a real fit. Real fits are a check; the forecast replaces larger ones."""

DRIFT = 1.25
"""Ratio of the error on later rows to the forecast, above which the data are said to change with time."""

MEASURED = {"mse": "test_error", "error": "classification_error"}
"""The metrics that real fits measure, and their names there."""


@dataclass(frozen=True)
class ForecastStudy(Described):
    """The result of `forecast_study`.

    Attributes
    ----------
    source, target
        Name of the file and of the column to predict.
    table
        Inputs and target as numbers, with notes on how they were prepared.
    model
        The fitted `Forecast`.
    kernel
        Name of the kernel, also where it was chosen.
    curve
        The learning curve, as `Forecast.learning_curve` gives it.
    others
        Further metrics of a classifier along the same curve.
    checks
        Real fits at a few of the numbers of rows; None if there are none.
    gains, label_gain
        What twice the data and the best ridge are expected to change; for labels also the share of wrong labels.
    needed
        Number of rows that reach the error asked for, with a sentence; None if no error was asked for.
    trust
        Sentences on how far to trust the curve.
    gap
        The check of the test data; None without a test file.
    warnings
        Warnings of the forecast.
    level, advice, drift
        Sentences: the error with all rows, what to do next, and whether later rows are harder.
    exponent
        Power of the number of rows with which the error falls near all the data.
    """

    source: str
    target: str
    table: Table
    model: Forecast
    kernel: str
    curve: xr.Dataset
    others: dict[str, Array]
    checks: xr.Dataset | None
    gains: Gains
    label_gain: dict[str, float] | None
    needed: dict[str, Any] | None
    trust: list[str]
    gap: GapReport | None
    warnings: list[str]
    level: str
    advice: str
    drift: str | None
    exponent: float

    @property
    def notes(self) -> list[str]:
        """Notes on how the table was prepared."""
        return self.table.notes

    @property
    def passed(self) -> bool:
        """Whether the error asked for can be reached and the test data are normal."""
        reached = self.needed is None or self.needed["n"] is not None
        return reached and (self.gap is None or self.gap.passed)

    @property
    def title(self) -> str:
        """One line: target, number of inputs and rows, kernel, unit of the errors."""
        columns, size = self.table.X.shape[1], len(self.table.X)
        unit = (
            "share of wrong labels"
            if self.table.labels
            else "mean squared error over the variance of the target; RMSE in its own units"
        )
        return f"{self.source}: {self.target} from {columns} columns, N = {size}, {self.kernel} kernel ({unit})"

    def page(self) -> Page:
        """Return the plain description: the learning curve as a table, and the sentences; as data `to_dict()`."""
        return Page(tables=[Rows(self.rows(), self.title)], sentences=self.sentences(), data=self.to_dict())

    def rows(self) -> list[dict[str, Any]]:
        """The learning curve as a table: one row per number of rows."""
        return curve_rows(self.curve, self.checks, self.table, self.others)

    def sentences(self) -> list[str]:
        """The result in sentences: the level, how far to trust it, the rows needed, drift, advice, the check of test data."""
        needed = [self.needed["sentence"]] if self.needed is not None else []
        drift = [self.drift] if self.drift is not None else []
        checked = list(self.gap.sentences) if self.gap is not None else []
        return [self.level, *self.trust, *needed, *drift, self.advice, *checked]

    def figure(self) -> Figure:
        """The learning curve with its band and the real fits."""
        from limitlab.applied.plots import forecast_figure

        return forecast_figure(self.curve, self.checks, f"{self.source}: {self.target}, {self.kernel}")

    def to_dict(self) -> dict[str, Any]:
        """Everything as a plain structure, for JSON."""
        return {
            **describe_result(self.curve),
            "notes": self.notes,
            "warnings": self.warnings,
            "kernel": self.kernel,
            "kernel_scores": self.model.kernel_scores_,
            "trust": self.trust,
            "measured": describe_result(self.checks) if self.checks is not None else None,
            "samples_for": self.needed,
            "target_scale": self.table.scale,
            "level": self.level,
            "exponent": self.exponent,
            "gains": {**asdict(self.gains), "labels": self.label_gain},
            "advice": self.advice,
            "drift": self.drift,
            "gap": vars(self.gap) if self.gap is not None else None,
        }


def forecast_study(
    data: str | Path,
    target: str,
    kernel: Literal["auto", "linear", "rbf", "laplace", "relu-nngp", "ntk", "random-features"] = "auto",
    n: ArrayLike | None = None,
    ridge: float | Literal["best"] = "best",
    task: Literal["auto", "regression", "classification"] = "auto",
    classify: bool = False,
    metric: Literal["mse", "error", "accuracy", "auc"] | None = None,
    band: float = 0.9,
    gamma: float | None = None,
    width: int = 1000,
    activation: str = "relu",
    error: float | None = None,
    splits: int = 5,
    backtest: bool = True,
    test_file: str | Path | None = None,
    groups: str | None = None,
    time: str | None = None,
    subsets: int = 6,
    rows: int | None = None,
    float32: bool = False,
    seed: int = 0,
    *,
    seconds: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> ForecastStudy:
    """The learning curve of your own data: expected test error against rows, with a band, and what to do next.

    Parameters
    ----------
    data
        A table: .csv, .tsv, .parquet or .npz.
    target
        The column to predict.
    kernel
        What kind of model; auto is the best of nine by leave-one-out.
    n
        Numbers of rows, such as 100:10000:20log (default: N/50 to 2N).
    ridge
        A ridge of (K/n + ridge), or "best" at every n.
    task
        Numbers or labels; auto looks.
    classify
        The same as --task classification.
    metric
        What is forecast (default: mse for numbers, error for labels).
    band
        Probability that the band is meant to have.
    gamma
        Of the kernel exp(-gamma |x-y|^2).
    width
        Number of random features.
    activation
        Of the random features.
    error
        Also say how many rows reach this test error (mse).
    splits
        Real fits at each of a few n, as a check; 0 for none.
    backtest
        Beyond the data: what halves of it would have said, and a power law.
    test_file
        Also check that these test data are normal.
    groups
        Rows that belong together (patient, shop): test on new groups.
    time
        When rows were seen: real fits are tested on later rows.
    subsets
        Of 1,000 rows each, for more than 5,000 rows.
    rows
        Use so many rows, chosen at random.
    float32
        Half the memory, six digits.
    seed
        Of everything random.
    seconds
        After this time no further optional part is started. The optional parts are the real fits, the other metrics of labels and the
        backtest. A warning in the result names the parts that are left out.
    progress
        Called with a few words before each part of the work.

    Returns
    -------
    ForecastStudy
        `.curve`, `.rows()`, `.sentences()`, `.figure()`, `.to_dict()`.

    Examples
    --------
    >>> import tempfile
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal((100, 2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "points.csv"
    ...     np.savetxt(file, np.c_[x, x[:, 0] + 0.3 * rng.standard_normal(100)], delimiter=",", header="a,b,y", comments="")
    ...     study = forecast_study(file, "y", kernel="linear", n=[50, 100, 200], splits=0)
    >>> study.level.split(":")[0], study.curve.extrapolated.values.tolist()
    ('With 100 rows', [False, True, True])
    """
    if groups is not None and time is not None:
        raise ValueError("groups and time together are not allowed: real fits test on new groups or on later rows")
    if splits < 0:
        raise ValueError(f"splits = {splits} is not allowed: must be at least 0")
    began, left_out = clock.perf_counter(), []
    file, tell = Path(data), progress if progress is not None else lambda words: None

    def in_time(part: str) -> bool:
        if seconds is None or clock.perf_counter() - began <= seconds:
            return True
        left_out.append(part)
        return False

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ForecastWarning)
        tell(f"reading {file.name}")
        table = read_table(file, target, "classification" if classify else task, rows, seed, test_file, groups, time)
        total = len(table.X)
        tell(f"decomposing {total} rows")
        model = Forecast(
            kernel, ridge=ridge, gamma=gamma, width=width, activation=activation, intercept=1.0,
            task="classification" if table.labels else "regression", subsets=subsets,
            dtype="float32" if float32 else "float64", random_state=seed,
        ).fit(table.X, table.y, groups=table.groups)  # fmt: skip
        tell("forecasting")
        backtest = backtest and in_time("the backtest")
        curve = model.learning_curve(default_counts(total) if n is None else n, ridge, metric, band, backtest)
        others = other_metrics(model, curve, ridge) if table.labels and in_time("the other metrics") else {}
        tell("checking with real fits")
        order: Literal["random", "time"] = "time" if time is not None else "random"
        checks = measured_points(model, curve, splits, seed, order) if splits and in_time("the real fits") else None
        more = model.gains(ridge)
        labels = label_gain(model, total) if table.labels else None
        needed = rows_needed(model, error, ridge) if error is not None else None
        trust = trust_sentences(model, curve) if backtest else []
        gap = model.check_gap(table.X_test, table.y_test) if test_file is not None else None
    remarks = list(dict.fromkeys(str(entry.message) for entry in caught if issubclass(entry.category, ForecastWarning)))
    if left_out:
        remarks.append(f"{', '.join(left_out)} would have begun after {seconds:g} seconds and are left out")
    exponent = model.exponent()
    return ForecastStudy(
        source=file.name,
        target=target,
        table=table,
        model=model,
        kernel=model.kernel_scores_[0]["kernel"] if model.kernel_scores_ else kernel,
        curve=curve,
        others=others,
        checks=checks,
        gains=more,
        label_gain=labels,
        needed=needed,
        trust=trust,
        gap=gap,
        warnings=remarks,
        level=level_sentence(curve, total, table, target) + " " + exponent_sentence(model, exponent),
        advice=data_sentence(more, labels, ridge, table, target),
        drift=drift_sentence(curve, checks) if time is not None else None,
        exponent=exponent,
    )


# -- parts of the study -------------------------------------------------------------------------------------------------


def default_counts(total: int) -> Array:
    """Numbers of rows that are shown by default: from N/50 to 2N, and N itself.

    >>> default_counts(1000)[[0, -2, -1]].tolist()
    [20.0, 1414.0, 2000.0]
    """
    return np.unique(np.round(np.append(np.geomspace(max(2, total / 50), 2 * total, 12), [total, np.sqrt(2) * total])))


def other_metrics(model: Forecast, curve: xr.Dataset, ridge: Any) -> dict[str, Array]:
    """The other metrics of a classifier along the same curve."""
    names = [name for name in ("error", "accuracy", "auc") if name != curve.attrs["metric"]]
    return {name: model.learning_curve(curve.n.values, ridge, name, baselines=False).value.values for name in names}


def label_gain(model: Forecast, total: int) -> dict[str, float]:
    """Shares of wrong labels now and with twice the data, at the best ridge."""
    values = model.learning_curve([total, 2 * total], "best", "error", baselines=False).value.values
    return {"now": float(values[0]), "twice": float(values[1])}


def measured_points(
    model: Forecast, curve: xr.Dataset, splits: int, seed: int, order: Literal["random", "time"] = "random"
) -> xr.Dataset | None:
    """Real fits at a few of the numbers of rows of the curve, at its ridge; None if no number of rows allows one."""
    total = model.spectrum_.population
    n = np.round(curve.n.values)
    possible = np.flatnonzero((n < total - 1) & (n <= LARGEST_CHECK) & (n >= 2))
    if not possible.size:
        return None
    places = np.unique(possible[np.round(np.linspace(0, possible.size - 1, FEW)).astype(int)])
    parts = [
        model.measure([n[i]], [curve["ridge"].values[i]], splits=splits, seed=seed, order=order).assign_coords(
            n=[curve.n.values[i]], ridge=[0]
        )
        for i in places
    ]
    return xr.concat(parts, "n").assign_attrs(parts[0].attrs)


def rows_needed(model: Forecast, error: float, ridge: Any) -> dict[str, Any]:
    """The number of rows that reaches a test error, or the best error if none does, with a sentence."""
    try:
        answer = model.samples_for(error, ridge)
    except UnreachableTarget as reason:
        words = str(reason)[0].upper() + str(reason)[1:] + "."
        return {"n": None, "best": reason.best, "at": reason.at, "sentence": words}
    beyond = " (extrapolated)" if answer.extrapolated.item() else ""
    words = f"A test error of {number(error)} needs about {answer.n.item():.0f} rows{beyond}."
    return {"n": answer.n.item(), "extrapolated": answer.extrapolated.item(), "sentence": words}


# -- the table ----------------------------------------------------------------------------------------------------------


def curve_rows(
    curve: xr.Dataset, checks: xr.Dataset | None, table: Table, others: dict[str, Array] | None = None
) -> list[dict[str, Any]]:
    """One row per number of rows: the metric with its band and in the target's units, real fits, and the power law."""
    metric = curve.attrs["metric"]
    measured = real_by_count(checks, metric)
    rows = []
    for i, at in enumerate(curve.n.values.tolist()):
        row: dict[str, Any] = {"n": f"{at:.0f}" + (" *" if curve.extrapolated.values[i] else "")}
        row[metric if table.labels else "test_error"] = short(curve.value[i])
        if "low" in curve:
            row["band"] = f"{short(curve.low[i])} to {short(curve.high[i])}"
        if not table.labels and metric == "mse":
            row["rmse"] = short(np.sqrt(curve.value[i]) * table.scale)
        row |= {name: short(values[i]) for name, values in (others or {}).items()}
        row["ridge"] = f"{float(curve['ridge'][i]):.2g}"
        if measured:
            row["real_fits"] = measured.get(at, "")
        if "power_law" in curve:
            row["power_law"] = short(curve.power_law[i]) if curve.extrapolated.values[i] else ""
        rows.append(row)
    return rows


def real_by_count(checks: xr.Dataset | None, metric: str) -> dict[float, str]:
    """Real fits by number of rows, in the metric of the curve; empty if they were not measured in it."""
    name = MEASURED.get(metric)
    if checks is None or name is None or name not in checks:
        return {}
    values, errors = checks[name].values[:, 0], checks[f"{name}_standard_error"].values[:, 0]
    return {at: real_fits(values[i], errors[i]) for i, at in enumerate(checks.n.values.tolist())}


def real_fits(mean: float, error: float) -> str:
    """A measured error; a single fit has no error bar.

    >>> real_fits(0.5, 0.01), real_fits(0.5, float("inf"))
    ('0.5 ± 0.01', '0.5 (one fit)')
    """
    return f"{short(mean)} ± {error:.1g}" if error < float("inf") else f"{short(mean)} (one fit)"


def short(value: Any) -> str:
    """A number with four digits.

    >>> short(0.123456)
    '0.1235'
    """
    return f"{float(value):.4g}"


# -- the sentences ------------------------------------------------------------------------------------------------------


def level_sentence(curve: xr.Dataset, points: int, table: Table, target: str) -> str:
    """The error with all the data, in the target's units."""
    at = int(np.argmin(np.abs(curve.n.values - points)))
    value = float(curve.value[at])
    band = f" ({short(curve.low[at])} to {short(curve.high[at])})" if "low" in curve else ""
    if table.labels:
        metric = curve.attrs["metric"]
        words = {"error": f"{value:.1%} wrong labels", "accuracy": f"{value:.1%} right labels"}.get(
            metric, f"{metric} {short(value)}"
        )
        return f"With {curve.n.values[at]:.0f} rows: {words}{band}."
    rms = np.sqrt(value) * table.scale
    return (
        f"With {curve.n.values[at]:.0f} rows: an error of {short(rms)} in the units of {target} (RMSE), "
        f"{value:.1%} of its variance{band}."
    )


def exponent_sentence(model: Forecast, exponent: float) -> str:
    """How the error falls near all the data, from the spectrum of the kernel."""
    near = model.spectrum_.population
    return f"Near {near} rows the error above its noise floor falls like n^-{exponent:.2f} (mean square, best ridge)."


def data_sentence(more: Gains, labels: dict[str, float] | None, ridge: Any, table: Table, target: str) -> str:
    """How much twice the data would help, at the best ridge of each size, in the target's units."""
    words = sentence(more, ridge, "mean square of the scores" if table.labels else "error")
    words = words[0].upper() + words[1:] + "."
    if table.labels and labels is not None:
        return words + f" In labels: {labels['now']:.1%} wrong now, {labels['twice']:.1%} with twice the data (approximate)."
    now, twice = (np.sqrt(value) * table.scale for value in (more.best_error, more.best_error * (1 - more.data)))
    return words + f" At the best ridge the RMSE falls from {short(now)} to {short(twice)} in the units of {target}."


def drift_sentence(curve: xr.Dataset, checks: xr.Dataset | None) -> str:
    """Whether later rows are harder than rows drawn at random, by the largest of the real fits."""
    name = MEASURED.get(curve.attrs["metric"])
    if checks is None or name is None or name not in checks:
        return "No real fit was tested on later rows: nothing is known about change with time."
    last = checks.isel(n=-1, ridge=0)
    forecast = float(curve.value.sel(n=float(last.n)))
    ratio, error = float(last[name]) / forecast, float(last[f"{name}_standard_error"]) / forecast
    count = f"{float(last.n):.0f} consecutive rows"
    if ratio < DRIFT or ratio - 2 * error < 1:
        return f"Later rows are no harder: fits to {count} have {ratio:.2f}({error:.2g}) times the forecast error on the rows that follow."
    return (
        f"Later rows are harder: fits to {count} have {ratio:.2f}({error:.2g}) times the forecast error on the rows that follow. "
        "The data change with time, more old rows will not mend that; fit to recent rows and test on the newest."
    )


def trust_sentences(model: Forecast, curve: xr.Dataset) -> list[str]:
    """What the leverages say, and what half of the data would have said about the whole."""
    least = float(curve["ridge"].values.min())
    variation = float(leverage_variation(model.spectrum_, least)[0])
    lines = ["Trust: " + explain(variation, least) + "."]
    if "approximation_error" in curve.attrs:
        lines[0] += f" Nystrom approximation: relative error about {curve.attrs['approximation_error']:.1g}."
    if curve.extrapolated.values.any():
        halves = model.backtest(curve["ridge"].values[-1])
        missed, trust = float(np.expm1(halves.missed.item())), str(halves.trust.item())
        warning = {
            "trusted": "extrapolations like this were right within a few per cent",
            "fair": "extrapolations like this were mostly right within 10%",
            "doubtful": "warning: extrapolations like this were often wrong by 10% and more",
        }[trust]
        lines.append(
            f"* beyond the data. Half of your rows would have missed the whole by {missed:+.1%} ({trust}: {warning})."
        )
        if curve.attrs["metric"] != "mse":
            lines.append("Bands of labels beyond the data are approximate.")
    return lines
