"""Forecast of the learning curve of a table of your own data, in a single call.

`forecast_study` reads a table, chooses the kernel and the ridge, computes the learning curve with its band, and checks the curve with a few
real fits. Table, sentences and figure of the result use the same curve and the same rule for the ridge, so they are consistent. The command
`limitlab forecast` and the explorer format this result.

`forecast_other` forecasts the learning curve of any estimator of scikit-learn.
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

from limitlab._core.page import Described, Page, describe_result, number
from limitlab._core.page import Table as Rows
from limitlab.applied.forecast._estimator import Forecast
from limitlab.applied.forecast._fitting import is_classification
from limitlab.applied.forecast._measure import fit_power_law
from limitlab.applied.forecast._suspicions import baseline_words, default_metric, suspicions
from limitlab.applied.forecast._trust import ForecastWarning, Gains, GapReport, explain, leverage_variation, sentence
from limitlab.applied.forecast.tables import Table, read_table
from limitlab.errors import Refused, UnreachableTarget

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Array = NDArray[Any]

FEW = 4
"""Number of sizes at which real fits check the forecast."""

LARGEST_CHECK = 3000
"""The largest number of rows of a real fit. Larger fits would take too long for a check."""

DRIFT = 1.25
"""Ratio of the error on later rows to the forecast above which the result reports a change with time."""

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
        Name of the kernel that was given or chosen.
    curve
        The learning curve, a result of `Forecast.learning_curve`.
    others
        Further metrics of a classifier along the same curve.
    checks
        Real fits at a few of the numbers of rows; None if there are none.
    gains, label_gain
        Expected effect of twice the data and of the best ridge. For labels it includes the share of wrong labels.
    needed
        Number of rows that the error of the option `error` requires, with a sentence; None without this option.
    trust
        Sentences on how reliable the curve is.
    gap
        The check of the test data; None without a test file.
    warnings
        Warnings of the forecast.
    level, advice, drift
        Sentences on the error with all rows, on the effect of more data and another ridge, and on whether errors on later rows are larger.
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
        """Whether the required error can be reached and the test data are consistent with the forecast."""
        reached = self.needed is None or self.needed["n"] is not None
        return reached and (self.gap is None or self.gap.passed)

    @property
    def title(self) -> str:
        """A line with target, number of inputs and rows, kernel, and unit of the errors."""
        columns, size = self.table.X.shape[1], len(self.table.X)
        unit = (
            "share of wrong labels"
            if self.table.labels
            else "mean squared error over the variance of the target; RMSE in its own units"
        )
        return f"{self.source}: {self.target} from {columns} columns, N = {size}, {self.kernel} kernel ({unit})"

    def page(self) -> Page:
        """Return the plain description, with the learning curve as a table and the sentences. Its data are `to_dict()`."""
        return Page(tables=[Rows(self.rows(), self.title)], sentences=self.sentences(), data=self.to_dict())

    def rows(self) -> list[dict[str, Any]]:
        """Return the learning curve as a table with an entry per number of rows."""
        return curve_rows(self.curve, self.checks, self.table, self.others)

    def sentences(self) -> list[str]:
        """Return the result in sentences.

        They describe the error with all rows, its reliability, the required rows, the change with time, advice and the check of test data.
        """
        needed = [self.needed["sentence"]] if self.needed is not None else []
        drift = [self.drift] if self.drift is not None else []
        checked = list(self.gap.sentences) if self.gap is not None else []
        return [self.level, *self.trust, *needed, *drift, self.advice, *checked]

    def figure(self) -> Figure:
        """Draw the learning curve with its band and the real fits."""
        return forecast_figure(self.curve, self.checks, f"{self.source}: {self.target}, {self.kernel}")

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a plain structure, for JSON."""
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
    """Forecast the learning curve of your own data, with an uncertainty band and advice.

    The learning curve is the expected test error against the number of rows.

    Parameters
    ----------
    data
        A .csv, .tsv, .parquet or .npz table.
    target
        The column to predict.
    kernel
        Kernel of the model; auto selects the best of nine by leave-one-out.
    n
        Numbers of rows, such as 100:10000:20log (default: N/50 to 2N).
    ridge
        The ridge in (K/n + ridge), or "best" for the best ridge at every n.
    task
        Whether the target contains numbers or labels; auto decides from the data.
    classify
        The same as --task classification.
    metric
        Metric of the curve (default: mse for numbers, error for labels).
    band
        Nominal probability of the band.
    gamma
        Rate of the kernel exp(-gamma |x-y|^2).
    width
        Number of random features.
    activation
        Activation of the random features.
    error
        Also print the number of rows that this test error (mse) requires.
    splits
        Number of real fits at each of a few n, as a check; 0 means none.
    backtest
        Test extrapolations on halves of the data, and add a power law.
    test_file
        Also test whether the error on this file is consistent with the forecast.
    groups
        Column with the group of each row (patient, shop); real fits are then tested on new groups.
    time
        Column with the time of each row; real fits are then tested on later rows.
    subsets
        Number of subsets of 1,000 rows that are used for more than 5,000 rows.
    rows
        Use a random subset with this number of rows.
    float32
        Use single precision, with half the memory and six digits.
    seed
        Seed of all random numbers.
    seconds
        After this time no further optional part is started. The optional parts are the real fits, the other metrics of labels and the
        backtest. A warning in the result names the parts that are left out.
    progress
        A function that is called with a few words before each part of the work.

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
        raise Refused(
            "groups and time together are not allowed: give one of them, because real fits test on new groups or on later rows"
        )
    if splits < 0:
        raise Refused(f"splits = {splits} is not allowed: must be at least 0")
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
        metric = default_metric(table, metric)  # type: ignore[assignment]
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
        remarks.append(f"{', '.join(left_out)} would have started after {seconds:g} seconds and are left out")
    remarks += suspicions(table, target, "classification" if classify else task, groups, time, curve)
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
        level=" ".join(
            filter(
                None,
                (level_sentence(curve, total, table, target), baseline_words(table), exponent_sentence(model, exponent)),
            )
        ),
        advice=data_sentence(more, labels, ridge, table, target),
        drift=drift_sentence(curve, checks) if time is not None else None,
        exponent=exponent,
    )


# -- parts of the study -------------------------------------------------------------------------------------------------


def default_counts(total: int) -> Array:
    """Return the default numbers of rows of a curve, from N/50 to 2N and including N.

    >>> default_counts(1000)[[0, -2, -1]].tolist()
    [20.0, 1414.0, 2000.0]
    """
    return np.unique(np.round(np.append(np.geomspace(max(2, total / 50), 2 * total, 12), [total, np.sqrt(2) * total])))


def other_metrics(model: Forecast, curve: xr.Dataset, ridge: Any) -> dict[str, Array]:
    """Return the other metrics of a classifier along the same curve."""
    names = [name for name in ("error", "accuracy", "auc") if name != curve.attrs["metric"]]
    return {name: model.learning_curve(curve.n.values, ridge, name, baselines=False).value.values for name in names}


def label_gain(model: Forecast, total: int) -> dict[str, float]:
    """Return the shares of wrong labels with all data and with twice the data, at the best ridge."""
    values = model.learning_curve([total, 2 * total], "best", "error", baselines=False).value.values
    return {"now": float(values[0]), "twice": float(values[1])}


def measured_points(
    model: Forecast, curve: xr.Dataset, splits: int, seed: int, order: Literal["random", "time"] = "random"
) -> xr.Dataset | None:
    """Return real fits at a few points of the curve and at its ridge, or None if no point allows a fit."""
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
    """Return the number of rows that a test error requires, or the smallest possible error, with a sentence."""
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
    """Return the curve as a table.

    Each entry contains the metric with its band and in the units of the target, the real fits, and the power law.
    """
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
    """Return the real fits by number of rows. The result is empty if they were not measured in the metric of the curve."""
    name = MEASURED.get(metric)
    if checks is None or name is None or name not in checks:
        return {}
    values, errors = checks[name].values[:, 0], checks[f"{name}_standard_error"].values[:, 0]
    return {at: real_fits(values[i], errors[i]) for i, at in enumerate(checks.n.values.tolist())}


def real_fits(mean: float, error: float) -> str:
    """Return a measured error with its error bar, which a single fit does not have.

    >>> real_fits(0.5, 0.01), real_fits(0.5, float("inf"))
    ('0.5 ± 0.01', '0.5 (one fit)')
    """
    return f"{short(mean)} ± {error:.1g}" if error < float("inf") else f"{short(mean)} (one fit)"


def short(value: Any) -> str:
    """Return a number with four digits.

    >>> short(0.123456)
    '0.1235'
    """
    return f"{float(value):.4g}"


# -- the sentences ------------------------------------------------------------------------------------------------------


def level_sentence(curve: xr.Dataset, points: int, table: Table, target: str) -> str:
    """Return a sentence on the error with all data, in the units of the target."""
    at = int(np.argmin(np.abs(curve.n.values - points)))
    value = float(curve.value[at])
    band = f" ({short(curve.low[at])} to {short(curve.high[at])})" if "low" in curve else ""
    if table.labels:
        metric = curve.attrs["metric"]
        words = {"error": f"{value:.1%} wrong labels", "accuracy": f"{value:.1%} correct labels"}.get(
            metric, f"{metric} {short(value)}"
        )
        return f"With {curve.n.values[at]:.0f} rows: {words}{band}."
    rms = np.sqrt(value) * table.scale
    return (
        f"With {curve.n.values[at]:.0f} rows: an error of {short(rms)} in the units of {target} (RMSE), "
        f"{value:.1%} of its variance{band}."
    )


def exponent_sentence(model: Forecast, exponent: float) -> str:
    """Return a sentence on the exponent with which the error falls near the number of rows of the data."""
    near = model.spectrum_.population
    return f"Near {near} rows the error above its noise floor falls like n^-{exponent:.2f} (mean square, best ridge)."


def data_sentence(more: Gains, labels: dict[str, float] | None, ridge: Any, table: Table, target: str) -> str:
    """Return a sentence on the effect of twice the data at the best ridge for each size, in the units of the target."""
    words = sentence(more, ridge, "mean square of the scores" if table.labels else "error")
    words = words[0].upper() + words[1:] + "."
    if table.labels and labels is not None:
        return (
            words
            + f" The share of wrong labels is {labels['now']:.1%}, and {labels['twice']:.1%} with twice the data (approximate)."
        )
    now, twice = (np.sqrt(value) * table.scale for value in (more.best_error, more.best_error * (1 - more.data)))
    return words + f" At the best ridge the RMSE falls from {short(now)} to {short(twice)} in the units of {target}."


def drift_sentence(curve: xr.Dataset, checks: xr.Dataset | None) -> str:
    """Return a sentence on whether errors on later rows are larger than the forecast, from the largest real fits."""
    name = MEASURED.get(curve.attrs["metric"])
    if checks is None or name is None or name not in checks:
        return "No real fit was tested on later rows, so a change with time was not tested."
    last = checks.isel(n=-1, ridge=0)
    forecast = float(curve.value.sel(n=float(last.n)))
    ratio, error = float(last[name]) / forecast, float(last[f"{name}_standard_error"]) / forecast
    count = f"{float(last.n):.0f} consecutive rows"
    if ratio < DRIFT or ratio - 2 * error < 1:
        return (
            f"Errors on later rows are not larger. Fits to {count} have {ratio:.2f}({error:.2g}) times the forecast error on the rows "
            "that follow."
        )
    return (
        f"Errors on later rows are larger. Fits to {count} have {ratio:.2f}({error:.2g}) times the forecast error on the rows that follow. "
        "The data change with time, and more old rows do not help. Fit to recent rows and test on the newest."
    )


def trust_sentences(model: Forecast, curve: xr.Dataset) -> list[str]:
    """Return sentences on the leverages and on forecasts from halves of the data."""
    least = float(curve["ridge"].values.min())
    variation = float(leverage_variation(model.spectrum_, least)[0])
    lines = ["Trust: " + explain(variation, least) + "."]
    if "approximation_error" in curve.attrs:
        lines[0] += f" Nystrom approximation: relative error about {curve.attrs['approximation_error']:.1g}."
    if curve.extrapolated.values.any():
        halves = model.backtest(curve["ridge"].values[-1])
        missed, trust = float(np.expm1(halves.missed.item())), str(halves.trust.item())
        warning = {
            "trusted": "such extrapolations were correct within a few per cent",
            "fair": "such extrapolations were mostly correct within 10%",
            "doubtful": "warning: such extrapolations were often wrong by 10% or more",
        }[trust]
        lines.append(
            "Rows with * are beyond the data. Forecasts for all rows from half of them differ by "
            f"{missed:+.1%} from the left-out error ({trust}; {warning})."
        )
        if curve.attrs["metric"] != "mse":
            lines.append("Bands for labels beyond the data are approximate.")
    return lines


# -- other estimators ------------------------------------------------------------------------------------------------


SHARES = (0.2, 0.32, 0.5, 0.7, 0.9)
"""Shares of the rows at which `forecast_other` fits the estimator."""

SPLITS = 5
"""Number of random subsets of each size in `forecast_other`."""


def forecast_other(
    estimator: Any, X: Any, y: Any, n: Any, kernel: Any = "auto", splits: int = SPLITS, seed: int = 0
) -> xr.Dataset:
    """Return a forecast of the learning curve of any scikit-learn estimator beyond its data (experimental).

    limitlab has no law for forests or boosted models. The effect of more data depends mostly on the data, so the forecast takes the shape
    of the curve from a kernel. The forecast is the last measured value times theory(n) / theory(last), where theory is the curve of the
    kernel that leave-one-out selects, with the best ridge at every n. In trials this forecast was as accurate as a power law at twice the
    data and more accurate at four times. The result contains both.

    Parameters
    ----------
    estimator
        An estimator with `fit` and `predict`. Clones of it are fitted at five sizes.
    X, y
        Inputs, and targets that are numbers or labels (text, True and False, few different whole numbers).
    n
        Numbers of points of the forecast.
    kernel
        Kernel whose curve determines the shape of the forecast.
    splits, seed
        Number of random subsets per size, and their seed.

    Returns
    -------
    xarray.Dataset
        Over n: `value` (mean square, or share of wrong labels) from the ratio of the theory, and `power_law`. Over size: `measured` and
        `standard_error`.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((150, 10))
    >>> curve = forecast_other(Ridge(), X, X[:, 0] + rng.standard_normal(150), [300, 600], kernel="linear")
    >>> bool((curve.value < curve.measured[-1]).all())
    True
    """
    from sklearn.base import clone

    inputs, targets = np.asarray(X, dtype=float), np.asarray(y)
    labels = is_classification("auto", targets)
    total = len(inputs)
    if total < 50:
        raise Refused(f"X has {total} rows, which is not allowed: must be at least 50 for measurements at five sizes")
    sizes = np.round(np.array(SHARES) * total).astype(int)
    runs = np.empty((sizes.size, splits))
    for i, size in enumerate(sizes):
        for split in range(splits):
            order = np.random.default_rng([seed, split, i]).permutation(total)
            inside, outside = order[:size], order[size:]
            guess = clone(estimator).fit(inputs[inside], targets[inside]).predict(inputs[outside])
            runs[i, split] = np.mean(guess != targets[outside]) if labels else np.mean((guess - targets[outside]) ** 2)
    measured = runs.mean(axis=1)
    theory = Forecast(kernel, intercept=1.0, task="classification" if labels else "regression").fit(inputs, targets)
    wanted = np.atleast_1d(np.asarray(n, dtype=float))
    shape = theory.learning_curve(np.append(wanted, float(sizes[-1])), "best", baselines=False).value.values
    values = measured[-1] * shape[:-1] / max(shape[-1], np.finfo(float).tiny)
    law = fit_power_law(sizes, np.maximum(measured, 0.5 / total)) if labels else fit_power_law(sizes, measured)
    return xr.Dataset(
        {
            "value": ("n", values), "power_law": ("n", law(wanted)), "measured": ("size", measured),
            "standard_error": ("size", runs.std(axis=1, ddof=1) / np.sqrt(splits)),
        },
        {"n": wanted, "size": sizes},
        {"status": "experimental", "metric": "error" if labels else "mse"},
    )  # fmt: skip


# -- figures ------------------------------------------------------------------------------------------------------------


def forecast_figure(curve: xr.Dataset, measured: xr.Dataset | None = None, title: str = "") -> Figure:
    """Draw a forecast with its band, real fits, the number N of points in the data, and simpler extrapolations beyond N."""
    from limitlab.plotting.style import COLOURS, RC, finish, new_figure, readable_ticks

    figure, (axes,) = new_figure(width=7.2)
    ridges = np.unique(curve["ridge"].values)
    words = rf"forecast, $\lambda = {ridges[0]:.2g}$" if ridges.size == 1 else "forecast, best ridge at every $n$"
    draw_curve(axes, curve, measured, 0, words)
    beyond = curve.extrapolated.values
    if beyond.any():
        n = curve.n.values
        if "step_low" in curve:
            loss = curve.last_value if curve.attrs["metric"] in ("mse", "error") else 1 - curve.last_value
            ends = [(loss * curve[name]).values for name in ("step_low", "step_high")]
            if curve.attrs["metric"] not in ("mse", "error"):
                ends = [1 - end for end in ends]
            axes.fill_between(
                n[beyond], *(end[beyond] for end in ends), color=COLOURS[0], alpha=0.3, linewidth=0, label="step from $N$"
            )
        if "power_law" in curve:
            axes.plot(
                n[beyond],
                curve.power_law.values[beyond],
                color="black",
                linewidth=1,
                linestyle="-.",
                label="$a\\,n^{-b} + c$ through real fits",
            )
        axes.plot(n[beyond], curve.last_value.values[beyond], color="grey", linewidth=1, label="as with all the data")
        axes.axvline(curve.attrs["population"], color="grey", linewidth=1, linestyle=":", label="all the data")
    named = {
        "mse": "test error",
        "error": "share of wrong labels",
        "accuracy": "share of right labels",
        "auc": "area under the curve",
    }
    rising = curve.attrs["metric"] in ("accuracy", "auc")
    finish(
        axes, "number of points $n$", named.get(curve.attrs["metric"], curve.attrs["metric"]), title, xscale="log",
        yscale="linear" if rising else "log", legend=False,
    )  # fmt: skip
    axes.legend(
        loc="lower right" if rising else "upper right", fontsize=RC["legend.fontsize"], framealpha=0.9, edgecolor="none"
    )
    readable_ticks(axes)
    return figure


def draw_curve(
    axes: Axes, curve: xr.Dataset, measured: xr.Dataset | None = None, index: int = 0, label: str = "forecast"
) -> None:
    """Draw a learning curve with its band.

    The line is solid up to the number of points in the data and dashed beyond. Real fits are points.
    """
    from limitlab.plotting.style import COLOURS, simulation_points, theory_line

    n, beyond = curve.n.values, curve.extrapolated.values
    inside = ~beyond
    start = max(int(np.argmax(beyond)) - 1, 0) if beyond.any() else len(n)
    if inside.any():
        theory_line(axes, n[inside], curve.value.values[inside], index, label)
    if beyond.any():
        words = None if inside.any() else label
        theory_line(axes, n[start:], curve.value.values[start:], index, words, linestyle="--")
    if "low" in curve:
        axes.fill_between(n, curve.low, curve.high, color=COLOURS[index % len(COLOURS)], alpha=0.15, linewidth=0)
    name = MEASURED.get(curve.attrs["metric"])
    if measured is not None and name in measured:
        error = measured[f"{name}_standard_error"].values[:, 0]
        known = error if np.isfinite(error).all() else None
        words = f"real fits ({measured.attrs['splits']} splits)" if index == 0 else None
        simulation_points(axes, measured.n, measured[name].values[:, 0], known, index, words)
