"""Learning curves of any estimator of scikit-learn, from fits to nested subsets.

`forecast_model` fits clones of an estimator at a few sizes, several at a time, within a time limit. The posterior over power laws through
these fits gives the curve and its band. `parse_estimator` makes an estimator from text such as `make_pipeline(StandardScaler(),
SVC(C=10))`. The text is parsed and not evaluated. Only names of scikit-learn in a list, numbers, texts and lists of these are allowed.
"""

from __future__ import annotations

import ast
import os
import time as clock
import warnings
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from limitlab._core.page import Described, Page, Table
from limitlab.applied.forecast._answer import (
    HEAVY,
    Answer,
    Unit,
    advice_sentence,
    contradictions,
    from_posterior,
    heavy_share,
    needed_rows,
    trust_sentence,
    unit_of,
)
from limitlab.applied.forecast._estimator import posterior_curve
from limitlab.applied.forecast._fitting import as_numbers, checked_counts, checked_groups, is_classification
from limitlab.applied.forecast._learning import Curve, posterior
from limitlab.applied.forecast._nested import NestedLosses, Splits, make_splits
from limitlab.applied.forecast._trust import WORTHWHILE
from limitlab.errors import Refused, did_you_mean

Array = NDArray[Any]

MODULES = (
    "linear_model", "ensemble", "svm", "neighbors", "tree", "naive_bayes", "discriminant_analysis", "gaussian_process", "kernel_ridge",
    "neural_network", "dummy", "preprocessing", "decomposition", "feature_selection", "impute", "kernel_approximation", "calibration",
    "cross_decomposition", "pipeline", "compose",
)  # fmt: skip
"""Modules of scikit-learn whose public classes an expression may name."""

FUNCTIONS = (
    "make_pipeline",
    "make_union",
    "f_classif",
    "f_regression",
    "mutual_info_classif",
    "mutual_info_regression",
    "chi2",
)
"""Functions of these modules that an expression may name. The scores of features are not called by the expression itself."""

FORBIDDEN = ("memory", "func", "inverse_func", "callback", "n_jobs")
"""Keywords that an expression may not set."""

LONGEST = 2000
"""Largest number of characters of an expression."""

SECONDS = 60.0
"""Time limit for the fits."""

MOST_ROWS = 20_000
"""Largest number of rows of a fit."""


def parse_estimator(text: str) -> Any:
    """Return the estimator that a text describes.

    >>> parse_estimator("make_pipeline(StandardScaler(), Ridge(alpha=2.0))").steps[1][1].alpha
    2.0
    >>> parse_estimator("1 + 1")
    Traceback (most recent call last):
    ...
    limitlab.errors.Refused: model = '1 + 1' is not allowed: give calls of names of scikit-learn, numbers, texts, lists
    """
    if len(text) > LONGEST:
        raise Refused(f"model has {len(text)} characters, which is not allowed: give at most {LONGEST}")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise Refused(f"model = {text!r} is not allowed: it is not an expression such as Ridge(alpha=1.0)") from None
    try:
        made = _made(tree.body, text)
    except (TypeError, ValueError) as error:
        if isinstance(error, Refused):
            raise
        raise Refused(f"model = {text!r} is not allowed: {str(error).splitlines()[0]}") from None
    if isinstance(made, type):
        made = made()
    if not hasattr(made, "fit") or not (hasattr(made, "predict") or hasattr(made, "transform")):
        raise Refused(f"model = {text!r} is not allowed: give an estimator, such as Ridge(alpha=1.0)")
    return made


def _made(node: ast.AST, text: str) -> Any:
    wrong = Refused(f"model = {text!r} is not allowed: give calls of names of scikit-learn, numbers, texts, lists")
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, (bool, int, float, str))):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value = _made(node.operand, text)
        if isinstance(value, (int, float)):
            return -value
    if isinstance(node, (ast.List, ast.Tuple)):
        values = [_made(entry, text) for entry in node.elts]
        return values if isinstance(node, ast.List) else tuple(values)
    if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
        return {
            _made(key, text): _made(value, text)
            for key, value in zip(node.keys, node.values, strict=True)
            if key is not None
        }
    if isinstance(node, ast.Name):
        return _named(node.id, text)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        called = _named(node.func.id, text)
        if not isinstance(called, type) and node.func.id not in ("make_pipeline", "make_union"):
            raise wrong
        arguments = [_made(entry, text) for entry in node.args]
        for keyword in node.keywords:
            if keyword.arg is None:
                raise wrong
            if keyword.arg in FORBIDDEN:
                raise Refused(f"model = {text!r} is not allowed: the parameter {keyword.arg} may not be set")
        return called(*arguments, **{str(keyword.arg): _made(keyword.value, text) for keyword in node.keywords})
    raise wrong


def _named(name: str, text: str) -> Any:
    import inspect

    known: list[str] = []
    for module_name in MODULES:
        module = import_module(f"sklearn.{module_name}")
        names = [entry for entry in getattr(module, "__all__", dir(module)) if not entry.startswith("_")]
        if name in names and name != "FunctionTransformer":
            found = getattr(module, name, None)
            if name in FUNCTIONS or (inspect.isclass(found) and hasattr(found, "fit")) or name in GP_KERNELS:
                return found
        known += names
    kernels = import_module("sklearn.gaussian_process.kernels")
    if name in GP_KERNELS:
        return getattr(kernels, name)
    raise Refused(f"model = {text!r} is not allowed: scikit-learn has no estimator {name!r}; {did_you_mean(name, known)}")


GP_KERNELS = ("RBF", "Matern", "WhiteKernel", "ConstantKernel", "RationalQuadratic", "DotProduct")
"""Kernels of Gaussian processes that an expression may name."""


# -- losses of an estimator ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scoring:
    """A score as a loss.

    Attributes
    ----------
    name
        Name of the loss in `NestedLosses`.
    unit
        How the loss is shown.
    scorer
        A scorer of scikit-learn, or None if the loss is a mean over rows.
    negative
        Whether the score is minus a loss. Otherwise the loss is one minus the score.
    """

    name: str
    unit: Unit
    scorer: Any = None
    negative: bool = False

    def losses(self, model: Any, X: Any, y: Array) -> tuple[Array | None, float]:
        """Return the losses of the rows (None for a score of the whole set) and their mean."""
        if self.scorer is not None:
            try:
                score = float(self.scorer(model, X, y))
            except ValueError:  # such as an area under the curve with a single class
                return None, float("nan")
            return None, -score if self.negative else 1 - score
        if self.name == "log_loss":
            share = np.clip(model.predict_proba(X), 1e-15, 1)
            place = np.searchsorted(model.classes_, y).clip(0, len(model.classes_) - 1)
            hit = model.classes_[place] == y
            each = -np.log(np.where(hit, share[np.arange(len(y)), place], 1e-15))
            return each, float(each.mean())
        guess = np.asarray(model.predict(X))
        if self.name == "error":
            each = (guess != y).astype(float)
        elif self.name == "mae":
            each = np.abs(guess.reshape(y.shape) - y)
        else:
            each = (guess.reshape(y.shape) - y) ** 2
        each = each.reshape(len(each), -1).mean(axis=1)
        return each, float(each.mean())


def _plain(words: str) -> Unit:
    return Unit(words.replace(" ", "_"), words, lambda loss: loss, lambda value: value)


def scoring_of(scoring: Any, labels: bool, target: str = "", scale: float = 1.0) -> Scoring:
    """Return the loss of a scorer.

    >>> scoring_of(None, True).name, scoring_of("neg_mean_absolute_error", False).name, scoring_of("roc_auc", True).unit.rising
    ('error', 'mae', True)
    """
    if scoring is None:
        scoring = "error" if labels else "neg_root_mean_squared_error"
    if scoring in ("error", "accuracy"):
        if not labels:
            raise Refused(f"scoring = {scoring!r} is not allowed for numbers: it needs labels")
        return Scoring("error", unit_of(scoring))
    if scoring in ("mse", "neg_root_mean_squared_error"):
        return Scoring("mse", unit_of("mse", scale, target))
    if scoring == "neg_mean_squared_error":
        return Scoring(
            "mse",
            replace(_plain("mean squared error"), shown=lambda loss: loss * scale**2, loss=lambda value: value / scale**2),
        )
    if scoring == "neg_mean_absolute_error":
        words = f"mean absolute error in the units of {target}" if target else "mean absolute error"
        return Scoring("mae", Unit("mean_absolute_error", words, lambda loss: loss * scale, lambda value: value / scale))
    if scoring == "neg_log_loss":
        return Scoring("log_loss", _plain("log loss"))
    if isinstance(scoring, str):
        from sklearn.metrics import get_scorer, get_scorer_names

        names = {"auc": "roc_auc_ovr"}
        wanted = names.get(scoring, scoring)
        if wanted not in get_scorer_names():
            raise Refused(f"scoring = {scoring!r} is not allowed: {did_you_mean(scoring, get_scorer_names())}")
        scorer, words = (
            get_scorer(wanted),
            {"auc": "area under the curve", "roc_auc": "area under the curve"}.get(scoring, scoring),
        )
        negative = wanted.startswith("neg_")
    elif callable(scoring):
        scorer, words = scoring, getattr(scoring, "__name__", "score")
        negative = getattr(scoring, "_sign", 1) < 0
    else:
        raise Refused(f"scoring = {scoring!r} is not allowed: give the name of a scorer of scikit-learn, or a function")
    if negative:
        return Scoring("score", _plain(words.removeprefix("neg_").replace("_", " ")), scorer, True)
    column = words.replace(" ", "_")
    return Scoring("score", Unit(column, words, lambda loss: 1 - loss, lambda value: 1 - value, rising=True), scorer)


def _one_fit(
    estimator: Any, X: Any, y: Array, inside: Array, outside: Array, scoring: Scoring
) -> tuple[Array | None, float]:
    from sklearn.base import clone

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(estimator).fit(_rows(X, inside), y[inside])
        return scoring.losses(model, _rows(X, outside), y[outside])


def _rows(X: Any, rows: Array) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def estimator_losses(
    estimator: Any,
    X: Any,
    y: Array,
    splits: Splits,
    sizes: Array,
    scoring: Scoring,
    seconds: float = SECONDS,
    jobs: int | None = None,
) -> NestedLosses:
    """Return the losses of clones of an estimator at nested sizes.

    Fits are made from the smallest size to the largest in turns of a split each. After the time limit no further turn is started, but two
    turns are always made.
    """
    from sklearn.utils.parallel import Parallel, delayed

    total, sizes = len(y), np.asarray(sizes, dtype=float)
    jobs = (os.cpu_count() or 1) if jobs is None else jobs
    losses, tested = np.zeros((1, sizes.size, total)), np.zeros((sizes.size, total))
    last = np.zeros((1, sizes.size, total)), np.zeros((sizes.size, total))
    means = np.full((1, sizes.size, len(splits.splits)), np.nan)
    labels = scoring.name == "error" or y.dtype.kind not in "f"
    began, count, by_row = clock.perf_counter(), len(splits.splits), True
    # splits are taken in turns from the last to the first, because the last is the latest of splits in time
    order = list(range(count))[::-1]
    turns = [order[i : i + max(1, jobs)] for i in range(0, count, max(1, jobs))]
    with Parallel(n_jobs=jobs) as pool:
        for turn, members in enumerate(turns):
            if turn * max(1, jobs) >= 2 and clock.perf_counter() - began > seconds:
                break
            tasks = []
            for s in members:
                split = splits.splits[s]
                for j, size in enumerate(sizes.astype(int)):
                    if size > len(split.train):
                        continue
                    inside = split.train[:size]
                    if labels and np.unique(y[inside]).size < 2:
                        continue
                    outside = np.concatenate([split.test, split.train[size:]]) if splits.kind == "rows" else split.test
                    tasks.append((j, s, inside, outside[:4000]))
            made = pool(delayed(_one_fit)(estimator, X, y, inside, outside, scoring) for _, _, inside, outside in tasks)
            for (j, s, _, outside), (each, mean) in zip(tasks, made, strict=True):
                means[0, j, s] = mean
                if each is None:
                    by_row = False
                    continue
                losses[0, j, outside] += each
                tested[j, outside] += 1
                if s == count - 1:
                    last[0][0, j, outside] += each
                    last[1][j, outside] += 1
    held = np.isfinite(means[0]).any(axis=1)
    if held.sum() < 2:
        raise Refused("the estimator could not be fitted at two sizes: give more rows, or rows of every class")
    share = float(np.mean([len(split.test) / len(split.train) for split in splits.splits]))
    return NestedLosses(
        splits.kind, sizes[held], losses[:, held] if by_row else None, tested[held], means[:, held], (scoring.name,),
        np.full(int(held.sum()), np.nan), share, 0.5 / total, (last[0][:, held], last[1][held]) if splits.kind == "time" else None,
    )  # fmt: skip


# -- the forecast --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelForecast(Described):
    """The result of `forecast_model`.

    Attributes
    ----------
    estimator
        The estimator.
    curve
        The learning curve over n, with `value`, its band `low` and `high`, `step`, `power_law`, `trust` and `extrapolated`.
    measured
        Real fits over the sizes, with `value` and `standard_error`.
    answer
        The losses with all rows and with twice the rows.
    unit
        How losses are shown.
    posterior
        The posterior of the loss.
    needed
        Number of rows that the option `error` requires; None without this option.
    """

    estimator: Any
    curve: xr.Dataset
    measured: xr.Dataset
    answer: Answer
    unit: Unit
    posterior: Curve
    trust: str
    needed: dict[str, Any] | None = None

    def sentences(self) -> list[str]:
        """Return the answer, its reliability, the effect of more rows, and the required rows."""
        more = [self.needed["sentence"]] if self.needed is not None else []
        return [self.level, self.trust, *more, advice_sentence(self.answer, self.unit, count_words, WORTHWHILE)]

    @property
    def level(self) -> str:
        """The errors with all rows and with twice the rows in a sentence."""
        return self.answer.sentence(self.unit, count_words)

    def rows(self) -> list[dict[str, Any]]:
        """Return the curve as a table."""
        real = dict(zip(self.measured.n.values.tolist(), self.measured.value.values.tolist(), strict=True))
        return [
            {
                "n": f"{at:.0f}" + (" *" if self.curve.extrapolated.values[i] else ""),
                self.unit.column: self.unit.text(self.curve.value[i]),
                "band": f"{self.unit.text(self.curve.low[i])} to {self.unit.text(self.curve.high[i])}",
                "real_fits": self.unit.text(real[at]) if at in real else "",
            }
            for i, at in enumerate(self.curve.n.values.tolist())
        ]

    def page(self) -> Page:
        """Return the plain description. Its data are `to_dict()`."""
        title = f"{type(self.estimator).__name__}, {self.unit.words}"
        return Page(self.level, tables=[Table(self.rows(), title)], sentences=self.sentences()[1:], data=self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a plain structure, for JSON."""
        from limitlab._core.page import describe_result

        return {
            **describe_result(self.curve), "measured": describe_result(self.measured), "answer": self.answer.to_dict(self.unit),
            "samples_for": self.needed, "sentences": self.sentences(),
        }  # fmt: skip


def count_words(n: float) -> str:
    """Return a number of rows in words.

    >>> count_words(442)
    '442 rows'
    """
    return f"{n:.0f} rows"


def forecast_model(
    estimator: Any,
    X: Any,
    y: Any,
    n: Any = None,
    scoring: Any = None,
    cv: Any = None,
    groups: Any = None,
    band: float = 0.9,
    error: float | None = None,
    seconds: float = SECONDS,
    jobs: int | None = None,
    seed: int = 0,
) -> ModelForecast:
    """Forecast the learning curve of any scikit-learn estimator from fits at a few sizes.

    Parameters
    ----------
    estimator
        An estimator with `fit` and `predict`. Clones of it are fitted.
    X, y
        Inputs (an array or a table), and targets that are numbers or labels (text, True and False, few different whole numbers).
    n
        Numbers of rows of the curve (default: the sizes of the fits, all rows, and two and four times as many).
    scoring
        The name of a scorer of scikit-learn, "error", or a scorer (default: wrong labels, or RMSE for numbers).
    cv
        Splits for the fits: a number of folds, a splitter of scikit-learn, pairs of rows, or "time" if the rows are in the order of time.
    groups
        Group of every row. Fits are then tested on new groups.
    band
        Nominal probability of the band.
    error
        A value of the score. The result then contains the number of rows that it requires.
    seconds
        Time limit for the fits. At least two splits are always made.
    jobs
        Number of fits at a time (default: all processors).
    seed
        Seed of the splits.

    Returns
    -------
    ModelForecast
        `.curve`, `.level`, `.sentences()`, `.rows()`, `.to_dict()`.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 10))
    >>> result = forecast_model(Ridge(), X, X[:, 0] + rng.standard_normal(200), n=[200, 400], jobs=1)
    >>> bool(result.curve.low[0] < 1.05 < result.curve.high[0])
    True
    """
    targets = np.asarray(y)
    if targets.ndim == 2 and targets.shape[1] == 1:
        targets = targets[:, 0]
    if not hasattr(X, "iloc"):
        X = np.asarray(X)
    total = len(targets)
    if len(X) != total:
        raise Refused(f"y is not allowed: {total} targets for {len(X)} rows of X")
    if total < 20:
        raise Refused(f"X has {total} rows, which is not allowed: give at least 20")
    if not 0 < band < 1:
        raise Refused(f"band = {band!r} is not allowed: must be between 0 and 1")
    if not hasattr(estimator, "fit") or not hasattr(estimator, "predict"):
        raise Refused(f"estimator = {type(estimator).__name__} is not allowed: it needs the methods fit and predict")
    labels = is_classification("auto", targets) if _kind(estimator) is None else _kind(estimator) == "classifier"
    if not labels:
        targets = np.asarray(as_numbers(targets), dtype=float)
    made = scoring if isinstance(scoring, Scoring) else scoring_of(scoring, labels)
    codes = checked_groups(groups, total)
    splits = make_splits(total, targets if labels else None, codes, cv, seed, X, targets)
    sizes = splits.sizes(MOST_ROWS)
    losses = estimator_losses(estimator, X, targets, splits, sizes, made, seconds, jobs)
    measured = losses.measurement(made.name)
    curve = posterior(measured, seed, rising=losses.kind == "time", odds=made.name == "error")
    if made.name == "error":
        curve = replace(curve, largest=1.0)
    wanted = (
        np.unique(np.concatenate([measured.sizes[-4:], [total, 2.0 * total, 4.0 * total]]))
        if n is None
        else checked_counts(n)
    )
    data = posterior_curve(xr.Dataset(coords={"n": wanted}), curve, made.name, band, total)
    data = shown_curve(data, made.unit)
    answer = from_posterior(curve, total, band, made.unit)
    for size, real, value in contradictions(data, curve, band):
        answer = answer.doubtful(
            f"Real fits to {size:.0f} rows have {made.unit.text(made.unit.shown(real))}, "
            f"and the curve has {made.unit.text(made.unit.shown(value))}."
        )
    if heavy_share(losses, made.name) > HEAVY:
        answer = answer.doubtful("More than half of the error comes from 1% of the rows, so its mean is not reliable.")
    shown = xr.Dataset(
        {
            "value": ("n", made.unit.shown(measured.values)),
            "standard_error": ("n", np.abs(made.unit.shown(measured.values + measured.standard_errors) - made.unit.shown(measured.values))),
        },
        {"n": measured.sizes},
        {"fits": losses.fits(), "kind": losses.kind},
    )  # fmt: skip
    needed = needed_rows(curve, made.unit, error, total, count_words, band) if error is not None else None
    return ModelForecast(
        estimator, data, shown, answer, made.unit, curve, trust_sentence(answer, curve, losses.fits(), made.unit), needed
    )


def shown_curve(data: xr.Dataset, unit: Unit) -> xr.Dataset:
    """Return a curve of a loss in the shown unit."""
    made = data.copy()
    for name in ("value", "last_value", "power_law"):
        made[name] = ("n", np.asarray(unit.shown(data[name].values), dtype=float))
    ends = [np.asarray(unit.shown(data[name].values), dtype=float) for name in ("low", "high")]
    made["low"], made["high"] = ("n", np.minimum(*ends)), ("n", np.maximum(*ends))
    made["value"].attrs["long_name"] = unit.words
    return made.assign_attrs(metric=unit.column)


def check_task(estimator: Any, labels: bool, target: str) -> None:
    """Raise `ValueError` if a classifier is given for numbers, or a regressor for labels."""
    kind = _kind(estimator)
    if kind == "regressor" and labels:
        raise Refused(
            f"model = {type(estimator).__name__} is not allowed: {target} contains labels; give a classifier, or --task regression"
        )
    if kind == "classifier" and not labels:
        raise Refused(
            f"model = {type(estimator).__name__} is not allowed: {target} contains numbers; give a regressor, or --task classification"
        )


def _kind(estimator: Any) -> str | None:
    """Return "classifier", "regressor", or None if the estimator does not say."""
    from sklearn.base import is_classifier, is_regressor

    return "classifier" if is_classifier(estimator) else "regressor" if is_regressor(estimator) else None
