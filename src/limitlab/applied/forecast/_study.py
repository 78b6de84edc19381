"""Forecast of the learning curve of a table of your own data, in a single call.

`forecast_study` reads a table, chooses the kernel and the ridge, makes real fits at a few sizes, and computes the learning curve with its
band from them. With an expression for a model of scikit-learn the fits are fits of this model. Table, sentences and figure of the result
use the same curve, so they are consistent. The command `limitlab forecast` and the explorer format this result.

`forecast_other` forecasts the learning curve of any estimator of scikit-learn.
"""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from limitlab._core.page import Described, Page, describe_result
from limitlab._core.page import Table as Rows
from limitlab.applied.forecast._answer import (
    HEAVY,
    Answer,
    Unit,
    advice_sentence,
    checked_error,
    contradictions,
    from_posterior,
    heavy_share,
    needed_rows,
    percent,
    trust_sentence,
    unit_of,
)
from limitlab.applied.forecast._estimator import FIT_SECONDS, Forecast, posterior_curve
from limitlab.applied.forecast._fitting import is_classification
from limitlab.applied.forecast._nested import RIDGE_GRID, NestedLosses
from limitlab.applied.forecast._own_model import ModelForecast, forecast_model, parse_estimator, scoring_of
from limitlab.applied.forecast._suspicions import Dependence, Leak, baseline_words, default_metric, no_skill, suspicions
from limitlab.applied.forecast._trust import (
    WORTHWHILE,
    ForecastWarning,
    Gains,
    GapReport,
    explain,
    leverage_variation,
    sentence,
)
from limitlab.applied.forecast.tables import Table, read_table
from limitlab.errors import Refused, UnreachableTarget

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Array = NDArray[Any]

LEAKING = "A column determines the target (see the warning), so the forecast may not hold where this column is not known."
"""Reason for doubt if a column determines the target."""

FEW = 4
"""Largest number of sizes of the option `n` at which there are real fits in addition to the usual sizes."""

SUBSETS_ABOVE = 2000
"""Number of rows above which the kernel forecast uses subsets of 1,000 rows. The real fits use all rows."""

DRIFT = 1.25
"""Ratio of the error on later rows to the error on random rows above which the result reports a change with time."""

MEASURED = {"mse": "test_error", "error": "classification_error", "accuracy": "accuracy", "auc": "auc"}
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
        The fitted `Forecast`, or the estimator of the option `model`.
    kernel
        Name of the kernel that was given or chosen, or the expression of the model.
    curve
        The learning curve, a result of `Forecast.learning_curve`.
    unit
        How losses are shown.
    answer
        The errors with all rows and with twice the rows.
    others
        Further metrics of a classifier along the same curve.
    checks
        Real fits at a few numbers of rows; None if there are none.
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
        Sentences on the errors with all rows and with twice the rows, on the effect of more data, and on whether errors on later rows are
        larger.
    exponent
        Power of the number of rows with which the error falls between all rows and twice as many.
    groups
        Number of groups; None without groups.
    """

    source: str
    target: str
    table: Table
    model: Any
    kernel: str
    curve: xr.Dataset
    unit: Unit
    answer: Answer
    others: dict[str, Array]
    checks: xr.Dataset | None
    gains: Gains | None
    label_gain: dict[str, float] | None
    needed: dict[str, Any] | None
    trust: list[str]
    gap: GapReport | None
    warnings: list[str]
    level: str
    advice: str
    drift: str | None
    exponent: float
    groups: int | None = None

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
        kind = f"{self.kernel} kernel" if isinstance(self.model, Forecast) else self.kernel
        return f"{self.source}: {self.target} from {columns} columns, N = {size}, {kind} ({self.unit.words})"

    def page(self) -> Page:
        """Return the plain description: the answer, the learning curve as a table, and the sentences. Its data are `to_dict()`."""
        return Page(self.level, tables=[Rows(self.rows(), self.title)], sentences=self.sentences()[1:], data=self.to_dict())

    def rows(self) -> list[dict[str, Any]]:
        """Return the learning curve as a table with an entry per number of rows."""
        return curve_rows(self.curve, self.checks, self.table, self.others, self.unit, self.groups)

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
            "kernel_scores": getattr(self.model, "kernel_scores_", None),
            "answer": self.answer.to_dict(self.unit),
            "trust": self.trust,
            "measured": describe_result(self.checks) if self.checks is not None else None,
            "samples_for": self.needed,
            "target_scale": self.table.scale,
            "level": self.level,
            "exponent": self.exponent,
            "gains": {**(asdict(self.gains) if self.gains is not None else {}), "labels": self.label_gain},
            "sentences": self.sentences(),
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
    splits: int = 10,
    backtest: bool = True,
    test_file: str | Path | None = None,
    groups: str | None = None,
    time: str | None = None,
    subsets: int = 6,
    rows: int | None = None,
    float32: bool = False,
    seed: int = 0,
    model: str | None = None,
    scoring: str | None = None,
    jobs: int | None = None,
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
        Numbers of rows, such as 100:10000:20log (default: the sizes of the real fits, N, 2N and 4N).
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
        Also print the number of rows that this error requires, in the unit of the table (RMSE, a share of wrong labels such as 0.03, ...).
    splits
        Number of folds of the real fits; 0 means no real fits, and then the curve is that of the law alone.
    backtest
        Use the curve of the law, weighted by its backtest, as a second opinion on the curve of the real fits.
    test_file
        Also test whether the error on this file is consistent with the forecast.
    groups
        Column with the group of each row (patient, shop); kernel, ridge and curve are then those for new groups.
    time
        Column with the time of each row; kernel, ridge and curve are then those for later rows.
    subsets
        Number of subsets of 1,000 rows that are used for more than 5,000 rows.
    rows
        Use a random subset with this number of rows.
    float32
        Use single precision, with half the memory and six digits.
    seed
        Seed of all random numbers.
    model
        A model of scikit-learn instead of a kernel, such as "RandomForestRegressor()". The text is parsed and never evaluated.
    scoring
        Scorer of scikit-learn for the model, such as neg_log_loss.
    jobs
        Number of fits of the model at a time (default: all processors).
    seconds
        After this time no further optional part is started. The optional parts are the real fits, the other metrics of labels and the
        second opinion. A warning in the result names the parts that are left out.
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
    >>> study.level.split(": ")[0], study.curve.extrapolated.values.tolist()
    ('Now, with 100 rows', [False, False, True])
    """
    if groups is not None and time is not None:
        raise Refused(
            "groups and time together are not allowed: give one of them, because real fits test on new groups or on later rows"
        )
    if splits < 0 or splits == 1:
        raise Refused(f"splits = {splits} is not allowed: must be at least 2, or 0 for no real fits")
    if not 0 < band < 1:
        raise Refused(f"band = {band!r} is not allowed: must be between 0 and 1")
    if scoring is not None and model is None:
        raise Refused(f"scoring = {scoring!r} is not allowed without a model: give --model, or --metric for the kernel")
    estimator = None if model is None else parse_estimator(model)
    began, left_out = clock.perf_counter(), []
    file, tell = Path(data), progress if progress is not None else lambda words: None

    def check_metric(labels: bool) -> None:
        if metric not in (None, "mse") and not labels:
            raise Refused(
                f"metric = {metric!r} is not allowed for numbers: it needs labels, such as with --task classification"
            )

    def in_time(part: str) -> bool:
        if seconds is None or clock.perf_counter() - began <= seconds:
            return True
        left_out.append(part)
        return False

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ForecastWarning)
        tell(f"reading {file.name}")
        table = read_table(file, target, "classification" if classify else task, rows, seed, test_file, groups, time)
        doubts = suspicions(table, target, "classification" if classify else task, groups, time)
        reasons = [LEAKING] if any(isinstance(line, Leak) for line in doubts) else []
        random = ", on random rows" if any(isinstance(line, Dependence) for line in doubts) else ""
        if estimator is None:
            check_metric(table.labels)
        else:
            tell("fitting the model at a few sizes")
            made = model_study(
                table, estimator, n, scoring or metric, time is not None, splits, band, error, seconds, jobs, seed, target,
                reasons, random,
            )  # fmt: skip
            return replace(made, source=file.name, kernel=str(model), warnings=[*made.warnings, *doubts])
        total = len(table.X)
        tell(f"decomposing {total} rows")
        cv: Any = "time" if time is not None else splits if 0 < splits < total else None
        large = total > SUBSETS_ABOVE and test_file is None
        forecast = Forecast(
            kernel, ridge=ridge, gamma=gamma, width=width, activation=activation, intercept=1.0,
            task="classification" if table.labels else "regression", subsets=subsets, method="subsets" if large else "auto",
            dtype="float32" if float32 else "float64", random_state=seed,
        ).fit(table.X, table.y, groups=table.groups, cv=cv)  # fmt: skip
        kind = default_metric(table, metric) or ("error" if table.labels else "mse")
        forecast._metric(kind)
        unit = unit_of(kind, table.scale, target)
        if error is not None:
            checked_error(unit, error)
        count = counter(table, total)
        fits = splits > 0 and in_time("the real fits")
        if fits:
            tell("making real fits")
            parts = real_study(
                forecast, table, kind, unit, n, ridge, band, error, count, backtest, in_time, time is not None, seconds,
                reasons, random,
            )  # fmt: skip
        else:
            parts = law_study(forecast, table, kind, unit, n, ridge, band, error, count, backtest, in_time)
        gap = forecast.check_gap(table.X_test, table.y_test) if test_file is not None else None
    remarks = list(dict.fromkeys(str(entry.message) for entry in caught if issubclass(entry.category, ForecastWarning)))
    if left_out:
        remarks.append(f"{', '.join(left_out)} would have started after {seconds:g} seconds and are left out")
    remarks += doubts
    skill = no_skill(table, parts["answer"].now, kind, unit, target, time is not None)
    parts["level"] = " ".join(filter(None, (skill, parts["level"], baseline_words(table))))
    return ForecastStudy(
        source=file.name,
        target=target,
        table=table,
        model=forecast,
        kernel=forecast.kernel_scores_[0]["kernel"] if forecast.kernel_scores_ else kernel,
        unit=unit,
        gap=gap,
        warnings=remarks,
        groups=None if table.groups is None else int(np.unique(table.groups).size),
        **parts,
    )


# -- parts of the study -------------------------------------------------------------------------------------------------


def default_counts(total: int, sizes: Any = ()) -> Array:
    """Return the default numbers of rows of a curve, which are the largest sizes of the real fits, N, 2N and 4N.

    >>> default_counts(1000, [56, 112, 225, 450, 900]).tolist()
    [112.0, 225.0, 450.0, 900.0, 1000.0, 2000.0, 4000.0]
    """
    few = np.sort(np.asarray(sizes, dtype=float))[-4:] if len(sizes) else np.round(total / 2.0 ** np.arange(4, 0, -1))
    return np.unique(np.concatenate([few, [total, 2.0 * total, 4.0 * total]]))


def counter(table: Table, total: int) -> Callable[[float], str]:
    """Return a function that returns a number of rows in words, with the number of groups or of rare events."""
    if table.groups is not None:
        each = np.unique(table.groups).size / total
        return lambda n: f"{n:.0f} rows ({max(n * each, 1):.0f} groups)"
    if table.labels:
        counts = np.unique(table.y, return_counts=True)[1]
        if counts.size == 2 and counts.min() / total < RARE:
            share = counts.min() / total
            return lambda n: f"{n:.0f} rows ({n * share:.0f} of the rare class)"
    return lambda n: f"{n:.0f} rows"


RARE = 0.1
"""Share of the rarest of two classes below which sentences contain the number of its rows."""


def real_study(
    model: Forecast,
    table: Table,
    kind: str,
    unit: Unit,
    n: Any,
    ridge: Any,
    band: float,
    error: float | None,
    count: Callable[[float], str],
    backtest: bool,
    in_time: Callable[[str], bool],
    timed: bool,
    seconds: float | None,
    reasons: list[str],
    random: str,
) -> dict[str, Any]:
    """Return the parts of a study whose curve is the posterior of real fits."""
    total, limit = len(table.X), FIT_SECONDS if seconds is None else max(seconds, 1.0)
    usual = model.splits_.sizes(4000)
    asked = np.array([]) if n is None else np.asarray(n, dtype=float)
    extra = asked[(asked >= 8) & (asked <= usual[-1]) & ~np.isin(asked, usual)]
    if extra.size > FEW:
        extra = extra[np.unique(np.round(np.linspace(0, extra.size - 1, FEW)).astype(int))]
    name = "error" if kind == "accuracy" else kind
    losses = model._losses(ridge, name == "auc", extra, limit)
    second = backtest and in_time("the second opinion")
    curve = model.posterior(kind, ridge, extra, limit)
    if not second:
        curve = replace(curve, step=None)
    counts = default_counts(total, losses.sizes) if n is None else np.unique(asked)
    made = posterior_curve(base_curve(model, counts, ridge, losses), curve, kind, band, total)
    answer = from_posterior(curve, total, band, unit)
    for reason in reasons:
        answer = answer.doubtful(reason)
    clashes = contradictions(made, curve, band)
    for size, real, value in clashes[-1:]:
        answer = answer.doubtful(
            f"Real fits to {size:.0f} rows have {unit.text(unit.shown(real))}, but the curve has {unit.text(unit.shown(value))}."
        )
    if clashes:
        made = widened(made, max(abs(np.log(real / value)) for _, real, value in clashes), unit)
    if heavy_share(losses, name) > HEAVY:
        answer = answer.doubtful(
            "More than half of the squared error comes from 1% of the rows, so its mean is not reliable. "
            "A logarithm or ranks of the target may help."
        )
    drift, change = drift_sentence(model, losses, name, unit) if timed else (None, None)
    if change is not None:
        answer = answer.doubtful(change)
    where = {"groups": ", on new groups", "time": ", on later rows"}.get(model.splits_.kind, random)
    others = {}
    if table.labels and kind in ("error", "accuracy", "auc") and in_time("the other metrics"):
        empty = xr.Dataset(coords={"n": counts})
        others = {
            other: posterior_curve(empty, model.posterior(other, ridge, extra, limit), other, band, total).value.values
            for other in ("error", "auc") if other != name
        }  # fmt: skip
    label_gain = None
    if table.labels:
        wrong = model.posterior("error", ridge, extra, limit).quantiles([total, 2 * total], [0.5])[0]
        label_gain = {"now": float(wrong[0]), "twice": float(wrong[1])}
    trust = [trust_sentence(answer, curve, losses.fits(), unit)]
    if made.extrapolated.values.any():
        largest = int(losses.sizes[-1])
        words = (
            "beyond the data" if largest >= 0.5 * total else f"beyond the largest real fit ({largest} of your {total} rows)"
        )
        trust.append(f"Rows with * are {words}.")
    if ridge == "best" and losses.ridges.size and losses.ridges[-1] <= 1.5 * RIDGE_GRID[0] * model.spectrum_.mean_diagonal:
        trust.append("The best ridge is the smallest of the search, which is as small as rounding allows.")
    gains = posterior_gains(model, ridge, total, answer)
    advice = advice_sentence(answer, unit, count, WORTHWHILE)
    if gains.at_ridge is not None:
        advice += f" A better ridge ({gains.best_ridge:.2g} instead of {float(ridge):.2g}) changes the mean square by {-gains.ridge:+.0%}."
    return dict(
        curve=made, answer=answer, others=others, checks=measured_points(losses, total), gains=gains, label_gain=label_gain,
        needed=needed_rows(curve, unit, error, total, count, band) if error is not None else None, trust=trust,
        level=answer.sentence(unit, count, where), advice=advice, drift=drift, exponent=float(-np.log2(answer.step[0])),
    )  # fmt: skip


def base_curve(model: Forecast, counts: Array, ridge: Any, losses: NestedLosses) -> xr.Dataset:
    """Return a dataset over n with the ridges of the law for fits to random rows, and otherwise with those of the real fits."""
    if isinstance(ridge, str) and (model.splits_.kind != "rows" or model._parts):
        at = np.exp(np.interp(np.log(counts), np.log(losses.sizes), np.log(np.maximum(losses.ridges, 1e-300))))
    else:
        at = model._ridge_at(counts, ridge)[0]
    return xr.Dataset({"ridge": ("n", at)}, {"n": counts})


def widened(made: xr.Dataset, gap: float, unit: Unit) -> xr.Dataset:
    """Return a curve with a band that contains the value times and divided by exp(gap)."""
    loss = 1 - made.value if unit.rising else made.value
    ends = [loss * np.exp(-gap), loss * np.exp(gap)]
    low, high = (1 - ends[1], 1 - ends[0]) if unit.rising else ends
    if unit.rising or unit.percent:
        low, high = low.clip(0, 1), high.clip(0, 1)
    return made.assign(low=np.minimum(made.low, low), high=np.maximum(made.high, high))


def posterior_gains(model: Forecast, ridge: Any, total: int, answer: Answer) -> Gains:
    """Return the gains with the effect of more data from the posterior."""
    tuned = float(model._ridge_at(np.array([float(total)]), "best")[0][0])
    cut, low, high = (1 - ratio for ratio in (answer.step[0], answer.step[2], answer.step[1]))
    made = Gains(total, cut, low, high, None, 0.0, tuned, answer.now[0], answer.now[0])
    if isinstance(ridge, str) or model.splits_.kind != "rows" or model._parts:
        return made
    law = model.gains(ridge)
    return replace(made, at_ridge=law.at_ridge, ridge=law.ridge, best_ridge=law.best_ridge)


def law_study(
    model: Forecast,
    table: Table,
    kind: str,
    unit: Unit,
    n: Any,
    ridge: Any,
    band: float,
    error: float | None,
    count: Callable[[float], str],
    backtest: bool,
    in_time: Callable[[str], bool],
) -> dict[str, Any]:
    """Return the parts of a study without real fits. The curve is that of the law."""
    total = len(table.X)
    counts = default_counts(total) if n is None else np.unique(np.asarray(n, dtype=float))
    curve = model.learning_curve(counts, ridge, kind, band, baselines=False)
    curve = curve.assign(extrapolated=curve.n > total)
    ends = model.learning_curve([total, 2 * total], ridge, kind, band, baselines=False)
    losses = [
        [float(1 - ends[name][i]) if unit.rising else float(ends[name][i]) for name in ("value", "low", "high")]
        for i in (0, 1)
    ]
    now, twice = ((row[0], min(row[1:]), max(row[1:])) for row in losses)
    step = tuple(float(ends[name][1]) for name in ("step", "step_low", "step_high"))
    answer = Answer(total, now, twice, step, float("nan"), float("nan"), "not tested")  # type: ignore[arg-type]
    others = {}
    if table.labels and in_time("the other metrics"):
        others = {
            other: model.learning_curve(counts, ridge, other, baselines=False).value.values
            for other in ("error", "auc")
            if other != kind
        }
    more = model.gains(ridge)
    labels = None
    if table.labels:
        values = model.learning_curve([total, 2 * total], "best", "error", baselines=False).value.values
        labels = {"now": float(values[0]), "twice": float(values[1])}
    return dict(
        curve=curve, answer=answer, others=others, checks=None, gains=more, label_gain=labels,
        needed=rows_by_law(model, unit, kind, error, ridge, total, count) if error is not None else None,
        trust=trust_sentences(model, curve) if backtest and in_time("the backtest") else [],
        level=answer.sentence(unit, count), advice=data_sentence(more, labels, ridge, table, unit.words), drift=None,
        exponent=float(-np.log2(answer.step[0])),
    )  # fmt: skip


def rows_by_law(
    model: Forecast, unit: Unit, kind: str, error: float, ridge: Any, total: int, count: Callable[[float], str]
) -> dict[str, Any]:
    """Return the number of rows that an error requires by the law, with a sentence."""
    loss = checked_error(unit, error)
    if kind == "mse":
        try:
            answer = model.samples_for(loss, ridge)
        except UnreachableTarget as reason:
            best = float(unit.shown(reason.best))
            least = f"{unit.text(best)}, with {count(reason.at)}"
            words = f"{unit.text(error)} {unit.words} cannot be reached: the best expected value is {least}."
            return {"n": None, "best": best, "at": reason.at, "sentence": words}
        n, beyond = float(answer.n), bool(answer.n > total)
    else:
        grid = np.unique(np.round(np.geomspace(4, 16 * total, 24)))
        values = model.learning_curve(grid, ridge, kind, baselines=False).value.values
        values = 1 - values if unit.rising else values
        if not (values <= loss).any():
            best = float(unit.shown(values.min()))
            words = (
                f"{unit.text(error)} {unit.words} cannot be reached with up to {count(grid[-1])}: "
                f"the best expected value is {unit.text(best)}."
            )
            return {"n": None, "best": best, "at": float(grid[values.argmin()]), "sentence": words}
        n = float(grid[int((values <= loss).argmax())])
        beyond = n > total
    words = f"{unit.text(error)} {unit.words} needs about {count(n)}{' (extrapolated)' if beyond else ''}, by the law without real fits."
    return {"n": n, "low": None, "high": None, "extrapolated": beyond, "sentence": words}


def measured_points(losses: NestedLosses, total: int) -> xr.Dataset:
    """Return the real fits with their standard errors as a dataset over n."""
    variables: dict[str, Any] = {}
    for name in losses.names:
        measured = losses.measurement(name) if losses.kind != "time" else None
        at = losses.names.index(name)
        if measured is not None:
            values, errors = measured.values, measured.standard_errors
        else:  # errors on the rows after the latest time
            values = losses.means[at][:, -1]
            made = np.isfinite(losses.means[at]).sum(axis=1)
            errors = np.where(made > 1, np.nanstd(losses.means[at], axis=1), np.nan)  # the scatter over times
        key = MEASURED[name]
        variables[key] = (("n", "ridge"), (1 - values if name == "auc" else values)[:, None])
        variables[f"{key}_standard_error"] = (("n", "ridge"), errors[:, None])
        if name == "error":
            variables["accuracy"] = (("n", "ridge"), 1 - values[:, None])
            variables["accuracy_standard_error"] = variables[f"{key}_standard_error"]
    return xr.Dataset(
        variables, {"n": losses.sizes, "ridge": [0]}, {"splits": losses.means.shape[2], "kind": losses.kind, "rows": total}
    )


def model_study(
    table: Table, estimator: Any, n: Any, scoring: Any, timed: bool, splits: int, band: float, error: float | None,
    seconds: float | None, jobs: int | None, seed: int, target: str, reasons: list[str], random: str,
) -> ForecastStudy:  # fmt: skip
    """Return the study of an estimator of scikit-learn."""
    if splits == 0:
        raise Refused("splits = 0 is not allowed with a model: its curve needs real fits")
    from limitlab.applied.forecast._own_model import check_task

    check_task(estimator, table.labels, target)
    made = scoring_of(scoring, table.labels, target, table.scale)
    total = len(table.X)
    inputs = table.X * np.sqrt(table.X.shape[1])
    result: ModelForecast = forecast_model(
        estimator, inputs, table.y, n, made, "time" if timed else min(splits, total), table.groups, band, error,
        FIT_SECONDS if seconds is None else seconds, jobs, seed,
    )  # fmt: skip
    count = counter(table, total)
    where = ", on later rows" if timed else ", on new groups" if table.groups is not None else random
    names = {"value": "value", "standard_error": "value_standard_error"}
    checks = result.measured.rename(names).expand_dims(ridge=[0], axis=1)
    answer, trust = result.answer, result.trust
    for reason in reasons:
        answer = answer.doubtful(reason)
        trust = trust_sentence(answer, result.posterior, int(result.measured.attrs["fits"]), made.unit)
    skill = no_skill(table, answer.now, made.name, made.unit, target, timed)
    return ForecastStudy(
        source="", target=target, table=table, model=estimator, kernel="", curve=result.curve.assign_attrs(shown=True), unit=made.unit,
        answer=answer, others={}, checks=checks, gains=None, label_gain=None, needed=result.needed, trust=[trust], gap=None,
        warnings=[], level=" ".join(filter(None, (skill, answer.sentence(made.unit, count, where)))),
        advice=advice_sentence(answer, made.unit, count, WORTHWHILE), drift=None, exponent=float(-np.log2(answer.step[0])),
        groups=None if table.groups is None else int(np.unique(table.groups).size),
    )  # fmt: skip


# -- the table ----------------------------------------------------------------------------------------------------------


def curve_rows(
    curve: xr.Dataset,
    checks: xr.Dataset | None,
    table: Table,
    others: dict[str, Array] | None = None,
    unit: Unit | None = None,
    groups: int | None = None,
) -> list[dict[str, Any]]:
    """Return the curve as a table.

    Each entry contains the metric with its band in the unit of the answer, the real fits, and the power law.
    """
    metric = str(curve.attrs["metric"])
    done = bool(curve.attrs.get("shown", False))
    unit = unit_of(metric, table.scale) if unit is None else unit
    show: Callable[[Any], Any] = (lambda value: value) if done or unit.rising else unit.shown
    measured = real_by_count(checks, metric, unit, show)
    rows = []
    for i, at in enumerate(curve.n.values.tolist()):
        row: dict[str, Any] = {"n": f"{at:.0f}" + (" *" if curve.extrapolated.values[i] else "")}
        if groups is not None:
            row["groups"] = f"{max(at * groups / len(table.X), 1):.0f}"
        row[unit.column] = unit.text(show(curve.value.values[i]))
        if "low" in curve:
            row["band"] = f"{unit.text(show(curve.low.values[i]))} to {unit.text(show(curve.high.values[i]))}"
        if metric == "mse" and not done:
            row["share_of_variance"] = percent(float(curve.value[i]))
        for name, values in (others or {}).items():
            other = unit_of(name)
            row[other.column] = other.text(float(values[i]))
        if measured:
            row["real_fits"] = measured.get(at, "")
        if "power_law" in curve:
            row["power_law"] = unit.text(show(curve.power_law.values[i])) if curve.extrapolated.values[i] else ""
        if "ridge" in curve:
            row["ridge"] = f"{float(curve['ridge'][i]):.2g}"
        rows.append(row)
    return rows


def real_by_count(checks: xr.Dataset | None, metric: str, unit: Unit, show: Callable[[Any], Any]) -> dict[float, str]:
    """Return the real fits by number of rows. The result is empty if they were not measured in the metric of the curve."""
    name = "value" if checks is not None and "value" in checks else MEASURED.get(metric)
    if checks is None or name is None or name not in checks:
        return {}
    values, errors = checks[name].values[:, 0], checks[f"{name}_standard_error"].values[:, 0]
    texts = {}
    for i, at in enumerate(checks.n.values.tolist()):
        error = abs(float(show(values[i] + errors[i]) - show(values[i])))
        texts[at] = (
            unit.text(show(values[i]))
            + ("" if np.isnan(error) else " ± ")
            + ("" if np.isnan(error) else f"{100 * error:.1g}" if unit.percent else f"{error:.1g}")
        )
    return texts


# -- the sentences ------------------------------------------------------------------------------------------------------


def data_sentence(more: Gains, labels: dict[str, float] | None, ridge: Any, table: Table, unit: str) -> str:
    """Return a sentence on the effect of twice the data at the best ridge for each size, by the law."""
    words = sentence(more, ridge, "mean square of the scores" if table.labels else "mean square")
    words = words[0].upper() + words[1:] + "."
    if table.labels and labels is not None:
        return (
            words
            + f" The share of wrong labels is {percent(labels['now'])}, and {percent(labels['twice'])} with twice the data (approximate)."
        )
    now, twice = (np.sqrt(value) * table.scale for value in (more.best_error, more.best_error * (1 - more.data)))
    return words + f" At the best ridge the {unit} falls from {now:.4g} to {twice:.4g}."


def drift_sentence(model: Forecast, losses: NestedLosses, name: str, unit: Unit) -> tuple[str, str | None]:
    """Return a sentence on whether errors on later rows are larger than on random rows, and a reason for doubt if they are."""
    values = losses.means[losses.names.index(name)]
    last = int(np.flatnonzero(np.isfinite(values[:, -1]))[-1])
    size, measured = float(losses.sizes[last]), float(values[last, -1])
    every = values[np.isfinite(values).all(axis=1)]
    scatter = float(np.std(np.log(np.maximum(every[-1], 1e-300)), ddof=1)) if every.size else 0.5
    size = min(size, float(model.spectrum_.population - 1))
    at = np.array([size])
    if name == "mse":
        random = float(model._population.errors(at, model._ridge_at(at, "best")[0]).test_error[0])
    else:
        random = float(model.learning_curve(at, "best", name, baselines=False).value[0])
        random = 1 - random if name == "auc" else random
    ratio = measured / max(random, 1e-12)
    last_words = f"Fits to the {losses.sizes[last]:.0f} rows before the last block have {ratio:.2f} times the error of fits to random rows"
    if ratio < DRIFT or np.log(ratio) < min(scatter, 0.5):
        return f"Errors on later rows are not larger. {last_words}.", None
    few = values[:, -1]
    best = int(np.nanargmin(few))
    more = ""
    if few[best] < 0.9 * measured:
        more = f" Fits to the latest {losses.sizes[best]:.0f} rows only have a smaller error ({unit.text(unit.shown(float(few[best])))})."
    return (
        f"Errors on later rows are larger. {last_words}. The data change with time, and more old rows do not help.{more} "
        "Fit to recent rows and test on the newest.",
        "The data change with time, so errors on rows after the last block may differ.",
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


SPLITS = 10
"""Number of splits in `forecast_other`."""


def forecast_other(
    estimator: Any, X: Any, y: Any, n: Any, kernel: Any = "auto", splits: int = SPLITS, seed: int = 0
) -> xr.Dataset:
    """Return a forecast of the learning curve of any scikit-learn estimator beyond its data.

    The result is that of `forecast_model` as a dataset. An earlier version took the shape of the curve from a kernel. Its forecasts for a
    logistic regression on digits were too small by factors 3 and 5.

    Parameters
    ----------
    estimator
        An estimator with `fit` and `predict`. Clones of it are fitted at a few sizes.
    X, y
        Inputs, and targets that are numbers or labels (text, True and False, few different whole numbers).
    n
        Numbers of points of the forecast.
    kernel
        Not used. It remains for calls that name it.
    splits, seed
        Number of folds, and the seed of their random order.

    Returns
    -------
    xarray.Dataset
        Over n: `value` (mean square, or share of wrong labels) with its band `low` and `high`, and `power_law`. Over size: `measured` and
        `standard_error`.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((150, 10))
    >>> curve = forecast_other(Ridge(), X, X[:, 0] + rng.standard_normal(150), [300, 600])
    >>> bool((curve.value < curve.measured[0]).all())
    True
    """
    if len(X) < 50:
        raise Refused(f"X has {len(X)} rows, which is not allowed: must be at least 50 for measurements at a few sizes")
    labels = is_classification("auto", np.asarray(y))
    made = forecast_model(estimator, X, y, n, "error" if labels else "neg_mean_squared_error", splits, jobs=1, seed=seed)
    measured = made.posterior.measured
    return xr.Dataset(
        {
            **{name: ("n", made.curve[name].values) for name in ("value", "low", "high", "power_law")},
            "measured": ("size", measured.values), "standard_error": ("size", measured.standard_errors),
        },
        {"n": made.curve.n.values, "size": measured.sizes},
        {"metric": "error" if labels else "mse"},
    )  # fmt: skip


# -- figures ------------------------------------------------------------------------------------------------------------


def forecast_figure(curve: xr.Dataset, measured: xr.Dataset | None = None, title: str = "") -> Figure:
    """Draw a forecast with its band, real fits, the number N of points in the data, and simpler extrapolations beyond N."""
    from limitlab.plotting.style import COLOURS, RC, finish, new_figure, readable_ticks

    figure, (axes,) = new_figure(width=7.2)
    ridges = np.unique(curve["ridge"].values) if "ridge" in curve else np.zeros(2)
    words = rf"forecast, $\lambda = {ridges[0]:.2g}$" if ridges.size == 1 else "forecast"
    if ridges.size > 1 and "ridge" in curve:
        words = "forecast, best ridge at every $n$"
    draw_curve(axes, curve, measured, 0, words)
    beyond = curve.extrapolated.values
    if beyond.any():
        n = curve.n.values
        if "step_low" in curve and not curve.attrs.get("shown", False):
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
    name = "value" if measured is not None and "value" in measured else MEASURED.get(curve.attrs["metric"])
    if measured is not None and name in measured:
        error = measured[f"{name}_standard_error"].values[:, 0]
        known = error if np.isfinite(error).all() else None
        splits = f" ({measured.attrs['splits']} splits)" if "splits" in measured.attrs else ""
        words = f"real fits{splits}" if index == 0 else None
        simulation_points(axes, measured.n, measured[name].values[:, 0], known, index, words)
