"""Saved forecasts, and their comparison with rows that came later.

`save_forecast` writes the learning curve of a `forecast_study` with its band, the model, the preparation and the provenance as JSON.
`forecast_against` reads new rows, measures the error of the same model with more rows by cross-validation, and says whether the measured
error lies in the band of the saved curve. A saved forecast is parsed as JSON only, and its entries are checked.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import typing
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from limitlab._core.arguments import explained
from limitlab._core.files import write_whole
from limitlab._core.page import Described, Page
from limitlab._core.page import Table as Rows
from limitlab._core.results import package_version
from limitlab.applied.forecast._fitting import class_targets
from limitlab.applied.forecast._kernels import default_gamma, make_kernel
from limitlab.applied.forecast._study import ForecastStudy, forecast_study
from limitlab.applied.forecast.tables import Table, read_table
from limitlab.errors import Refused

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[Any]

FORMAT, VERSION = "limitlab forecast", 1

LARGEST_FILE = 50_000_000
"""Largest number of bytes of a saved forecast."""

MOST_ROWS = 4000
"""Largest number of rows of a fit that measures the error."""

FOLDS = 10
"""Number of parts of a cross-validation."""

FEWEST_NEW = 10
"""Smallest number of new rows."""

TWO_SIDED = 2.0
"""Number of standard errors by which a measured error must lie outside the band to contradict it."""

METRICS = ("mse", "error", "accuracy", "auc")


@dataclass(frozen=True)
class SavedForecast:
    """The content of a saved forecast.

    Attributes
    ----------
    target, task, groups, time
        Target, "regression" or "classification", and the columns of groups and of time.
    kernel, gamma, width, activation
        Name and parameters of the kernel. `gamma` is relative to its default.
    metric, band
        Metric of the curve, and nominal probability of its band.
    n, value, low, high, ridge
        The learning curve with its band, and the ridge for each number of rows.
    rows, scale, seed
        Number of rows of the forecast, standard deviation of the target, and seed.
    most_rows
        The option `rows` of the forecast.
    source, path, digest
        Name, path and SHA-256 of the file of the forecast.
    created, version
        Time of the forecast and version of limitlab.
    inputs, notes
        Names of the prepared columns, and the notes on the preparation.
    """

    target: str
    task: str
    groups: str | None
    time: str | None
    kernel: str
    gamma: float | None
    width: int
    activation: str
    metric: str
    band: float
    n: list[float]
    value: list[float]
    low: list[float]
    high: list[float]
    ridge: list[float]
    rows: int
    scale: float
    seed: int
    most_rows: int | None
    source: str
    path: str
    digest: str
    created: str
    version: str
    inputs: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def at(self, rows: float) -> dict[str, float]:
        """Return value, band and ridge of the curve at a number of rows, by linear interpolation of logarithms."""
        n = np.array(self.n)
        if not n[0] * (1 - 1e-9) <= rows <= n[-1] * (1 + 1e-9):
            raise Refused(
                f"the saved curve ends at {n[-1]:.0f} rows and begins at {n[0]:.0f}, and the error was measured with {rows:.0f}: save a "
                f"forecast with a range of --n that contains {rows:.0f}"
            )
        names = ("value", "low", "high", "ridge")
        columns = {name: np.maximum(np.array(getattr(self, name)), 1e-300) for name in names}
        return {
            name: float(np.exp(np.interp(math.log(rows), np.log(n), np.log(column)))) for name, column in columns.items()
        }


@explained
def save_forecast(study: ForecastStudy, path: str | Path, source: str | Path, **options: Any) -> Path:
    """Write a forecast as JSON, in a file that is complete or absent.

    Parameters
    ----------
    study
        The forecast.
    path
        The file, whose name must end in .json.
    source
        The table of the forecast.
    **options
        The options of the forecast that determine its rows and its tests (`groups`, `time`, `rows`, `seed`, `width`, `activation`).
    """
    file, table = Path(path), Path(source)
    if file.suffix.lower() != ".json":
        raise Refused(f"--save {file} is not allowed: the name must end in .json")
    curve = study.curve
    if "low" not in curve or str(curve.attrs["metric"]) not in METRICS:
        raise Refused("this forecast has no band to save: use another kernel or metric")
    name, gamma = study.kernel, options.get("gamma")
    if name.startswith("rbf "):
        name, gamma = "rbf", float(name.partition(" ")[2])
    elif gamma is not None:
        gamma = float(gamma) / default_gamma(study.table.X)
    content = SavedForecast(
        target=study.target,
        task="classification" if study.table.labels else "regression",
        groups=options.get("groups"),
        time=options.get("time"),
        kernel=name,
        gamma=gamma,
        width=int(options.get("width", 1000)),
        activation=str(options.get("activation", "relu")),
        metric=str(curve.attrs["metric"]),
        band=float(curve.attrs["band"]),
        **{key: [float(entry) for entry in curve[key].values] for key in ("n", "value", "low", "high", "ridge")},
        rows=len(study.table.X),
        scale=float(study.table.scale),
        seed=int(options.get("seed", 0)),
        most_rows=options.get("rows"),
        source=table.name,
        path=str(table.resolve()),
        digest=digest_of(table),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        version=package_version(),
        inputs=list(study.table.names),
        notes=list(study.notes),
    )
    body = {"format": FORMAT, "format_version": VERSION, **vars(content), "sentences": study.sentences()}
    try:
        write_whole(file, (json.dumps(body, indent=1) + "\n").encode())
    except OSError as error:
        raise Refused(f"cannot write '{file}': {error.strerror}") from None
    return file


def digest_of(file: Path) -> str:
    """Return the SHA-256 of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def load_forecast(path: str | Path) -> SavedForecast:
    """Return a saved forecast, or raise `ValueError` if the file is not one."""
    file = Path(path)
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise Refused(f"cannot read '{file}': it is too large for a saved forecast")
        body = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise Refused(f"cannot read '{file}': {str(error).splitlines()[0]}") from None
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise Refused(f"{file.name} is not a saved forecast: write one with limitlab forecast --save")
    if body.get("format_version") != VERSION:
        raise Refused(
            f"{file.name} has the format {body.get('format_version')!r}, and this version reads {VERSION}: save it again"
        )
    values: dict[str, Any] = {}
    for name, hint in typing.get_type_hints(SavedForecast).items():
        values[name] = _checked(file, name, hint, body.get(name))
    curve = [values[name] for name in ("n", "value", "low", "high", "ridge")]
    if len({len(column) for column in curve}) != 1 or not curve[0] or (np.diff(curve[0]) <= 0).any() or curve[0][0] <= 0:
        raise Refused(f"{file.name} is damaged: its curve has columns of different lengths, or is not sorted")
    if values["metric"] not in METRICS or values["task"] not in ("regression", "classification"):
        raise Refused(f"{file.name} is damaged: its metric is {values['metric']!r} and its task {values['task']!r}")
    return SavedForecast(**values)


def _checked(file: Path, name: str, hint: Any, value: Any) -> Any:
    """Return an entry of a saved forecast if it has the declared type."""
    if typing.get_origin(hint) is list:
        (kind,) = typing.get_args(hint)
        if isinstance(value, list):
            return [_checked(file, name, kind, entry) for entry in value]
    else:
        kinds = typing.get_args(hint) or (hint,)
        if float in kinds and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if isinstance(value, kinds) and not (
            isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value))
        ):
            return value
    raise Refused(f"{file.name} is damaged: its entry {name!r} is {value!r}")


# -- the comparison -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LaterStudy(Described):
    """The comparison of a saved forecast with rows that came later.

    Attributes
    ----------
    saved
        The saved forecast.
    new_source
        Name of the file of the new rows.
    old_rows, new_rows
        Number of rows of the forecast that were found again (0 if the file is absent or was changed), and of new rows.
    tests
        One entry per measurement, with the number of rows of the fits, the measured error and its standard error, the forecast with its
        band, and the verdict.
    notes
        Notes on the rows and on their preparation.
    """

    saved: SavedForecast
    new_source: str
    old_rows: int
    new_rows: int
    tests: list[dict[str, Any]]
    notes: list[str]

    @property
    def passed(self) -> bool:
        """Whether no measurement contradicts the band."""
        return all(test["verdict"] != "failed" for test in self.tests)

    def sentences(self) -> list[str]:
        """Return a sentence per measurement. The first one answers whether the band held."""
        lines = []
        for test in self.tests:
            where = f"with {test['n']:.0f} rows, {test['how']}, the error is {show(test['measured'])} ± {test['standard_error']:.1g}"
            promise = f"the forecast was {show(test['forecast'])} ({show(test['low'])} to {show(test['high'])})"
            start = {
                "held": "The band held",
                "undecided": "The measurement is too uncertain to decide whether the band held",
                "failed": "The band failed",
            }[test["verdict"]]
            lines.append(f"{start}: {where} ({self.saved.metric}), and {promise}.")
        return lines

    def page(self) -> Page:
        """Return the plain description, with the verdict first and a table of the measurements."""
        columns = ("n", "how", "measured", "standard_error", "forecast", "low", "high", "verdict")
        rows = [{name: test[name] for name in columns} for test in self.tests]
        first, *rest = self.sentences()
        made = f"{self.saved.source}, {self.saved.rows} rows, {self.saved.kernel} kernel, {self.saved.created}"
        facts = {"answer": first, "forecast": made, "new rows": f"{self.new_rows} in {self.new_source}"}
        data = {
            "saved": vars(self.saved), "new_source": self.new_source, "old_rows": self.old_rows, "new_rows": self.new_rows,
            "tests": self.tests, "sentences": self.sentences(), "notes": self.notes, "held": self.passed,
        }  # fmt: skip
        return Page(facts=facts, tables=[Rows(rows, "measured errors and the saved band")], sentences=rest, data=data)

    def figure(self) -> Figure:
        """Draw the saved curve with its band, and the measured errors."""
        from limitlab.plotting.style import COLOURS, finish, new_figure, simulation_points, theory_line

        figure, (axes,) = new_figure(width=7.2)
        theory_line(axes, np.array(self.saved.n), np.array(self.saved.value), 0, "saved forecast")
        axes.fill_between(self.saved.n, self.saved.low, self.saved.high, color=COLOURS[0], alpha=0.15, linewidth=0)
        n = np.array([test["n"] for test in self.tests])
        simulation_points(
            axes,
            n,
            [test["measured"] for test in self.tests],
            [test["standard_error"] for test in self.tests],
            1,
            "measured",
        )
        finish(axes, "number of points $n$", self.saved.metric, f"{self.saved.source}: {self.saved.target}", xscale="log")
        return figure


def show(value: float) -> str:
    """Return a number with four digits."""
    return f"{value:.4g}"


@explained
def forecast_against(saved: str | Path | SavedForecast, new: str | Path, seed: int = 0) -> LaterStudy:
    """Return whether the band of an earlier forecast holds for rows that came later.

    If the table of the forecast still exists unchanged, the model is fitted to its rows and tested on the new rows, and the error with all
    rows is measured by cross-validation. Otherwise the error with the new rows is measured by cross-validation.

    Parameters
    ----------
    saved
        A file that `limitlab forecast --save` wrote.
    new
        A table with the columns of the forecast. Rows that are equal to a row of the forecast are left out.
    seed
        Seed of the cross-validation.

    Returns
    -------
    LaterStudy
        `.passed`, `.sentences()`, `.tests`, `.figure()`.
    """
    before = saved if isinstance(saved, SavedForecast) else load_forecast(saved)
    file, old = Path(new), Path(before.path)
    notes: list[str] = []
    known = old.is_file() and digest_of(old) == before.digest and old.resolve() != file.resolve()
    if known:
        table = read_table(
            old, before.target, before.task, before.most_rows, before.seed, file, groups=before.groups, time=before.time
        )
        assert table.X_test is not None
        assert table.y_test is not None
        fresh = ~copies(table)
        old_rows, new_rows = len(table.X), int(fresh.sum())
        if new_rows < len(fresh):
            notes.append(f"left out {len(fresh) - new_rows} rows of {file.name} that are equal to a row of {before.source}")
        X, y = np.concatenate([table.X, table.X_test[fresh]]), np.concatenate([table.y, table.y_test[fresh]])
        groups = None if table.groups is None or table.groups_test is None else np.r_[table.groups, table.groups_test[fresh]]
    else:
        notes.append(
            f"the file of the forecast ({before.source}) is absent or was changed, so only the rows of {file.name} are used"
        )
        table = read_table(file, before.target, before.task, None, before.seed, groups=before.groups, time=before.time)
        X, y, groups = table.X, table.y, table.groups
        old_rows, new_rows = 0, len(X)
    if new_rows < FEWEST_NEW:
        raise Refused(
            f"{file.name} has {new_rows} new rows with a value of {before.target!r}, which is too few: give at least {FEWEST_NEW}"
        )
    lost = [name for name in before.inputs if name not in table.names]
    if lost:
        notes.append(f"{len(lost)} of {len(before.inputs)} columns of the forecast are absent now, such as {lost[0]}")
    # errors in the unit of the saved curve, which divides by the variance of its own target
    unit = (table.scale / before.scale) ** 2 if before.metric == "mse" else 1.0
    tests: list[dict[str, Any]] = []
    rng = np.random.default_rng(seed)
    if old_rows:
        train = subset(np.arange(old_rows), MOST_ROWS, rng)
        losses = [(train, np.arange(old_rows, len(X)))]
        tests.append(measurement(before, X, y, losses, unit, f"tested on the {new_rows} new rows", groups))
    parts = list(splits(len(X), groups, before.time is not None, rng))
    how = "tested on the last rows" if before.time is not None else f"by cross-validation of {len(X)} rows"
    tests.append(
        measurement(
            before, X, y, parts, unit, how if groups is None else how + ", one tenth of the groups at a time", groups
        )
    )
    return LaterStudy(before, file.name, old_rows, new_rows, tests[::-1], [*notes, *table.notes])


def copies(table: Table) -> NDArray[np.bool_]:
    """Return which test rows are equal to a training row, in the inputs and in the target."""
    assert table.X_test is not None
    assert table.y_test is not None
    seen = {(row.tobytes(), str(value)) for row, value in zip(np.ascontiguousarray(table.X), table.y, strict=True)}
    pairs = zip(np.ascontiguousarray(table.X_test), table.y_test, strict=True)
    return np.array([(row.tobytes(), str(value)) in seen for row, value in pairs])


def subset(rows: Array, most: int, rng: np.random.Generator) -> Array:
    """Return the rows, or a random subset of the largest allowed number."""
    return rows if rows.size <= most else np.sort(rng.permutation(rows)[:most])


def splits(total: int, groups: Array | None, in_time: bool, rng: np.random.Generator) -> Iterator[tuple[Array, Array]]:
    """Yield training and test rows, which are parts of the rows or of the groups, or the last tenth of the rows in time."""
    if in_time:
        start = total - max(FEWEST_NEW, total // FOLDS)
        yield subset(np.arange(start), MOST_ROWS, rng), np.arange(start, total)
        return
    names = np.arange(total) if groups is None else np.unique(groups, return_inverse=True)[1]
    count = int(names.max()) + 1
    fold = rng.permutation(np.arange(count) % min(FOLDS, count))[names]
    for part in range(int(fold.max()) + 1):
        yield subset(np.flatnonzero(fold != part), MOST_ROWS, rng), np.flatnonzero(fold == part)


def measurement(
    saved: SavedForecast, X: Array, y: Array, parts: list[tuple[Array, Array]], unit: float, how: str, groups: Array | None
) -> dict[str, Any]:
    """Return the measured error of fits to the training rows of all parts, the forecast at their number of rows, and the verdict."""
    n = float(np.mean([train.size for train, _ in parts]))
    promise = saved.at(n)
    labelled = saved.task == "classification"
    targets = class_targets(y)[1] if labelled else np.asarray(y, dtype=float)
    targets = np.asarray(targets, dtype=float).reshape(len(X), -1)
    rows = np.concatenate([test for _, test in parts])
    scores = np.concatenate([fitted_scores(saved, X, targets, train, test, promise["ridge"]) for train, test in parts])
    measured, error = measure(saved.metric, scores, targets[rows], None if groups is None else groups[rows])
    measured, error = measured * unit, error * unit
    low, high = promise["low"], promise["high"]
    outside = max(low - measured, measured - high)
    verdict = "held" if outside <= 0 else "failed" if outside > TWO_SIDED * error else "undecided"
    return {
        "n": n, "how": how, "measured": measured, "standard_error": error, "forecast": promise["value"], "low": low, "high": high,
        "verdict": verdict,
    }  # fmt: skip


def fitted_scores(saved: SavedForecast, X: Array, targets: Array, train: Array, test: Array, ridge: float) -> Array:
    """Return the predictions for the test rows by kernel ridge regression on the training rows."""
    from scipy.linalg import solve

    rate = None if saved.gamma is None else saved.gamma * default_gamma(X)
    kernel = make_kernel(
        saved.kernel, X, gamma=rate, width=saved.width, activation=saved.activation, intercept=1.0, seed=saved.seed
    )
    gram = np.asarray(kernel(X[train], X[train]), dtype=float)
    gram[np.diag_indices_from(gram)] += max(ridge, 1e-12 * float(np.trace(gram)) / train.size) * train.size
    return np.asarray(kernel(X[test], X[train]) @ solve(gram, targets[train], assume_a="pos"), dtype=float)


def measure(metric: str, scores: Array, targets: Array, groups: Array | None = None) -> tuple[float, float]:
    """Return a metric of predictions and its standard error. Rows of a group count as one for the standard error.

    >>> measure("mse", np.array([[1.0], [2.0]]), np.array([[0.0], [2.0]]))
    (0.5, 0.5)
    """
    from limitlab.applied.pilot import auc_error, auc_of

    if metric == "auc":
        if targets.shape[1] > 1:
            raise Refused("a comparison in the metric auc needs two classes: save the forecast with --metric error")
        y = (targets[:, 0] > 0).astype(float)
        value = auc_of(scores[:, 0], y)
        return value, auc_error(value, int(y.sum()), int(len(y) - y.sum()))
    if metric == "mse":
        losses = np.mean((scores - targets) ** 2, axis=1)
    elif targets.shape[1] == 1:
        losses = ((scores[:, 0] > 0) != (targets[:, 0] > 0)).astype(float)
    else:
        losses = (scores.argmax(axis=1) != targets.argmax(axis=1)).astype(float)
    value = float(losses.mean())
    if groups is not None:
        place = np.unique(groups, return_inverse=True)[1]
        sums = np.bincount(place, losses - value)
        error = math.sqrt(float(np.sum(sums**2))) / len(losses) * math.sqrt(sums.size / max(sums.size - 1, 1))
    else:
        error = float(losses.std(ddof=1)) / math.sqrt(len(losses))
    if metric != "mse":
        error = max(error, 0.5 / len(losses))  # no wrong label is not proof of a probability 0
    return (1 - value if metric == "accuracy" else value), error


# -- the command ----------------------------------------------------------------------------------------------------------


def forecast_command(
    data: str | Path,
    target: str | None = None,
    *,
    save: str | Path | None = None,
    against: str | Path | None = None,
    **options: Any,
) -> Any:
    """Return a forecast, or the comparison of a forecast with later rows."""
    if Path(data).suffix.lower() == ".json":
        if against is None:
            raise Refused("Missing option '--against': a saved forecast is compared with a table of later rows")
        extra = [
            name for name, value in options.items() if value != inspect.signature(forecast_study).parameters[name].default
        ]
        extra += ["save"] * (save is not None)
        extra = [name for name in extra if name != "progress"]
        if extra:
            raise Refused(f"--{extra[0].replace('_', '-')} is not allowed with a saved forecast: its own options are used")
        return forecast_against(data, against)
    if target is None:
        raise Refused("Missing option '--target': name the column to predict")
    if options.get("model") is not None and (save is not None or against is not None):
        raise Refused(
            "--model together with --save or --against is not allowed: they compare forecasts of a kernel; leave --model out"
        )
    study = forecast_study(data, target, **options)
    if save is None and against is None:
        return study
    kept = {
        name: options[name] for name in ("groups", "time", "rows", "seed", "width", "activation", "gamma") if name in options
    }
    if against is None:
        save_forecast(study, typing.cast(Path, save), data, **kept)
        return study
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "forecast.json" if save is None else Path(save)
        save_forecast(study, file, data, **kept)
        return forecast_against(file, against)


def _same_options() -> None:
    """Give `forecast_command` the parameters of `forecast_study`, and its own ones after them."""
    signature = inspect.signature(forecast_study)
    parameters = list(signature.parameters.values())
    ours = inspect.signature(forecast_command).parameters
    merged = [entry.replace(default=None) if entry.name == "target" else entry for entry in parameters]
    positional = [entry for entry in merged if entry.kind is not inspect.Parameter.KEYWORD_ONLY]
    named = [entry for entry in merged if entry.kind is inspect.Parameter.KEYWORD_ONLY]
    # the parameters after the target have defaults, so the target may have one too
    forecast_command.__signature__ = inspect.Signature([*positional, ours["save"], ours["against"], *named])  # type: ignore[attr-defined]
    hints = typing.get_type_hints(forecast_study)
    file = str | Path | None
    forecast_command.__annotations__ = {**hints, "target": str | None, "save": file, "against": file}
    text = inspect.getdoc(forecast_study) or ""
    about = (
        "save\n    Write the forecast to this .json file, to compare it with later rows.\n"
        "against\n    Compare the forecast with this table of later rows. The argument DATA may then be a saved forecast (.json).\n"
    )
    forecast_command.__doc__ = text.replace("seconds\n    After", about + "seconds\n    After", 1)


_same_options()
