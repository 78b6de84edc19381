"""Fits of forecasts, with checks of the data, the spectrum (exact, by subsets or by a Nystrom approximation) and predictions.

Choice of the kernel
--------------------
The choice minimises the leave-one-out mean square over a list of kernels and ridges. One decomposition per kernel serves all ridges. The
smallest of hundreds of scores underestimates the error, and resampled data estimate by how much. The error rate of labels is not used for
the choice, because it would depend on too few mistakes.

Groups
------
The residuals with a group G left out follow from the fit to all points as e_G = (1 - H_GG)^-1 r_G. If rows of a group are similar, errors
on new groups are larger than errors on new rows of known groups. `group_ratio_` is the ratio of the two errors. For new groups, a forecast
from random rows is too small by this factor.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from limitlab.applied.forecast._curves import SUBSET_SIZE, SUBSETS, Ensemble, Population, subset_rows
from limitlab.applied.forecast._kernels import Kernel, default_gamma, make_kernel
from limitlab.applied.forecast._metrics import Classes
from limitlab.applied.forecast._nested import RidgeSolver, Splits, make_splits, scores_by_splits
from limitlab.applied.forecast._spectrum import (
    Spectrum,
    checked_gram,
    decompose,
    exact_bytes,
    from_features,
    from_gram,
    require_memory,
)
from limitlab.applied.forecast._trust import ForecastWarning
from limitlab.errors import Refused
from limitlab.numerics.equivalents import learned

Array = NDArray[Any]

METHODS = ("auto", "exact", "nystrom", "subsets")
TASKS = ("auto", "regression", "classification")
MOST_CLASSES, FEWEST_EACH = 10, 5
"""Whole numbers count as labels if they have at most the first number of different values, with the second number of rows each."""


def check_options(method: Any, dtype: Any, rank: Any) -> None:
    """Raise `ValueError` if an option is not allowed."""
    if method not in METHODS:
        raise Refused(f"method = {method!r} is not allowed: must be {', '.join(map(repr, METHODS))}")
    if str(dtype) not in ("float64", "float32"):
        raise Refused(f"dtype = {dtype!r} is not allowed: must be 'float64' or 'float32'")
    if not isinstance(rank, (int, np.integer)) or rank < 2:
        raise Refused(f"rank = {rank!r} is not allowed: must be a whole number of at least 2")


def as_numbers(y: Any) -> Array:
    """Return targets as numbers. Raise `ValueError` if they are text.

    >>> as_numbers(["cat", "dog"])
    Traceback (most recent call last):
    ...
    limitlab.errors.Refused: y contains text, such as 'cat': pass task='classification' to forecast a classifier, or give numbers
    """
    array = np.asarray(y)
    if array.dtype.kind in "fiub":
        return array
    if array.dtype.kind == "c":
        raise Refused("Complex data not supported: y must contain real numbers")
    try:
        return array.astype(float)
    except (TypeError, ValueError):
        first = next((entry for entry in array.ravel().tolist() if isinstance(entry, str)), array.ravel()[0])
        raise Refused(
            f"y contains text, such as {first!r}: pass task='classification' to forecast a classifier, or give numbers"
        ) from None


def class_targets(y: Any) -> tuple[Array, Array]:
    """Return the classes, and the numbers to which a regression is fitted instead of the labels.

    For two classes they are one column, with -1 in the rows of the first class and +1 in the rows of the second class. For more classes
    they have one column per class, with 1 in the rows of this class and 0 in the other rows.

    >>> classes, columns = class_targets(["b", "a", "b"])
    >>> classes.tolist(), columns.tolist()
    (['a', 'b'], [[1.0], [-1.0], [1.0]])
    >>> class_targets([0, 1, 2])[1].tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise Refused(f"y of shape {labels.shape} is not allowed for a classification: give one label per row")
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise Refused("y contains NaN or infinity (inf): remove these rows")
    classes, index = np.unique(labels, return_inverse=True)
    if classes.size < 2:
        raise Refused(f"y contains only the class {str(classes[0])!r}: give at least two classes")
    return classes, (2.0 * index - 1.0)[:, None] if classes.size == 2 else np.eye(classes.size)[index]


def is_classification(task: Any, y: Any) -> bool:
    """Return whether y contains labels.

    With task "auto" it does if it contains text, True and False, or few different whole numbers.

    >>> [is_classification("auto", y) for y in (["a", "b"], np.arange(30) % 3, np.arange(30))]
    [True, True, False]
    """
    if task not in TASKS:
        raise Refused(f"task = {task!r} is not allowed: must be {', '.join(map(repr, TASKS))}")
    if task != "auto":
        return bool(task == "classification")
    array = np.asarray(y)
    if array.ndim > 1 and array.shape[1] > 1:
        return False
    if array.dtype.kind in "iu":
        return np.unique(array).size <= min(MOST_CLASSES, array.size // FEWEST_EACH)
    if array.dtype.kind == "O":
        return any(isinstance(entry, (str, bool)) for entry in array.ravel().tolist())
    return array.dtype.kind in "bUS"


def require_finite(array: Array, name: str) -> None:
    """Raise `ValueError` if an array contains missing values."""
    bad = ~np.isfinite(array)
    if bad.any():
        row = int(np.argwhere(bad)[0][0])
        raise Refused(
            f"{name} contains NaN or infinity (inf) in {int(bad.sum())} places, first in row {row}: "
            "remove these rows or fill the missing values"
        )


def require_variation(targets: Array) -> None:
    """Raise `ValueError` if the target is constant."""
    if not (np.ptp(targets, axis=0) > 0).any():
        raise Refused(f"y is constant (every target is {targets[0, 0]:g}): give targets that vary")


def warn_of_duplicates(X: Array) -> None:
    """Warn of duplicate rows, which occur in training and test sets and make forecast and measured errors too small."""
    rows = np.ascontiguousarray(X)
    copies = len(rows) - len({row.tobytes() for row in rows})
    if copies:
        warnings.warn(
            f"X contains {copies} duplicate rows of {len(rows)}: a point may be tested on a copy of itself, which makes errors "
            "too small; drop the duplicates unless new data will repeat these rows too",
            ForecastWarning,
            stacklevel=3,
        )


def checked_counts(n: Any) -> Array:
    """Return numbers of points as an array. Raise `ValueError` unless they are at least 1 and finite.

    >>> checked_counts([10, 0])
    Traceback (most recent call last):
    ...
    limitlab.errors.Refused: n = 0 is not allowed: must be at least 1 and finite
    """
    values = np.atleast_1d(np.asarray(n, dtype=float))
    bad = ~(np.isfinite(values) & (values >= 1))
    if bad.any() or values.ndim != 1 or not values.size:
        shown = f"{values[bad][0]:g}" if bad.any() else repr(n)
        raise Refused(f"n = {shown} is not allowed: must be at least 1 and finite")
    return values


def checked_ridges(ridge: Any) -> Array:
    """Return ridges as an array. Raise `ValueError` unless they are at least 0 and finite.

    >>> checked_ridges(-1.0)
    Traceback (most recent call last):
    ...
    limitlab.errors.Refused: ridge = -1 is not allowed: must be at least 0 and finite
    """
    try:
        values = np.atleast_1d(np.asarray(ridge, dtype=float))
    except (TypeError, ValueError):
        raise Refused(f"ridge = {ridge!r} is not allowed: must be a number of at least 0") from None
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any() or values.ndim != 1 or not values.size:
        shown = f"{values[bad][0]:g}" if bad.any() else repr(ridge)
        raise Refused(f"ridge = {shown} is not allowed: must be at least 0 and finite")
    return values


def checked_groups(groups: ArrayLike | None, count: int) -> NDArray[np.int64] | None:
    """Return groups as whole numbers, one per row."""
    if groups is None:
        return None
    names = np.asarray(groups)
    if names.shape != (count,):
        raise Refused(f"groups of shape {names.shape} is not allowed: give one entry for each of the {count} rows")
    codes = np.unique(names, return_inverse=True)[1]
    if codes.max() < 2:
        raise Refused("groups contains fewer than three groups: give at least three, so that one can be left out")
    return np.asarray(codes, dtype=np.int64)


def left_out_groups(spectrum: Spectrum, ridges: Array, groups: NDArray[np.int64]) -> Array:
    """Return the mean squared residuals of every point with its whole group left out, with shape (N, ridges).

    With groups of a single point the result is leave-one-out:

    >>> from limitlab.applied.forecast._spectrum import from_features
    >>> rng = np.random.default_rng(0)
    >>> X, lam = rng.standard_normal((12, 3)), np.array([0.1])
    >>> spectrum = from_features(X, X[:, :1] + rng.standard_normal((12, 1)))
    >>> alone = left_out_groups(spectrum, lam, np.arange(12))[:, 0]
    >>> bool(np.allclose(alone, (spectrum.residuals(lam)[:, 0, 0] / (1 - spectrum.leverages(lam)[:, 0])) ** 2))
    True
    """
    assert spectrum.vectors is not None
    residuals, share = spectrum.residuals(ridges), learned(ridges, spectrum.eigenvalues)
    out = np.empty((spectrum.population, ridges.size))
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        part = spectrum.vectors[rows].astype(float)
        rest = np.eye(len(rows)) - part @ part.T  # projection onto the directions without a vector
        for k in range(ridges.size):
            hat = (part * share[k, :-1]) @ part.T + share[k, -1] * rest
            gap = np.linalg.solve(np.eye(len(rows)) - hat + 1e-9 * np.eye(len(rows)), residuals[rows, k])
            out[rows, k] = (gap**2).mean(axis=1)
    return out


def group_ratio(spectrum: Spectrum, groups: NDArray[np.int64]) -> float:
    """Return the error with groups left out over the error with rows left out, each at its best ridge."""
    lam = np.geomspace(SMALLEST_FOR_GROUPS, 1e2, 17) * spectrum.mean_diagonal
    alone = (spectrum.residuals(lam) ** 2).mean(axis=2) / np.maximum(1 - spectrum.leverages(lam), 1e-6) ** 2
    return float(left_out_groups(spectrum, lam, groups).mean(axis=0).min() / alone.mean(axis=0).min())


WIDTHS = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Rates gamma of the Gaussian kernels, relative to one over the total variance."""

RIDGES = np.geomspace(1e-10, 1e2, 37)
"""Ridges of the choice, relative to the mean diagonal of the kernel."""

SMALLEST_FOR_GROUPS = 1e-6
"""Smallest ridge of the choice with groups, whose residuals lose their digits at smaller ridges."""

MOST_POINTS = 1000
"""Largest number of points for the choice. For larger data the choice uses a random subset."""

RESAMPLES = 100


@dataclass(frozen=True)
class Choice:
    """The candidates in a choice of the kernel, with their scores.

    Attributes
    ----------
    names, kernels
        Names of the kernels, and the kernels fitted to the data.
    scores, ridges
        Smallest leave-one-out mean square of each kernel, and its ridge.
    errors
        Standard errors of the scores.
    optimism
        Mean over resamplings of the amount by which the smallest score is too low.
    """

    names: tuple[str, ...]
    kernels: tuple[Kernel, ...]
    scores: Array
    ridges: Array
    errors: Array
    optimism: float

    @property
    def best(self) -> int:
        """Index of the best kernel."""
        return int(np.argmin(self.scores))

    def table(self) -> list[dict[str, Any]]:
        """Return one row per kernel, sorted by score."""
        return [
            {
                "kernel": self.names[i], "leave_one_out": float(self.scores[i]), "standard_error": float(self.errors[i]),
                "ridge": float(self.ridges[i]), "chosen": i == self.best,
            }
            for i in np.argsort(self.scores)
        ]  # fmt: skip


def candidates(X: Array, intercept: float) -> dict[str, Kernel]:
    """Return the candidates, which are linear, Gaussian (five widths), Laplace, arc-cosine and tangent kernels."""
    from limitlab.laws.kernels.deep import ntk

    rate = default_gamma(X)
    kernels = {"linear": make_kernel("linear", X, intercept=intercept)}
    kernels |= {f"rbf {width:g}": make_kernel("rbf", X, gamma=width * rate, intercept=intercept) for width in WIDTHS}
    kernels["laplace"] = make_kernel("laplace", X, intercept=intercept)
    kernels["relu-nngp"] = make_kernel("relu-nngp", X, intercept=intercept)
    kernels["ntk"] = Kernel(partial(ntk, layers=2), None, intercept)
    return kernels


def choose(X: Array, targets: Array, intercept: float, seed: int, groups: NDArray[np.int64] | None = None) -> Choice:
    """Return the scores of all candidates by leave-one-out, or by leaving out one group at a time.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((80, 2)) / np.sqrt(2)
    >>> bent = choose(X, (X[:, :1] ** 2 - 0.5), 1.0, 0)
    >>> bent.names[bent.best] != "linear", bent.optimism >= 0
    (True, True)
    """
    rng = np.random.default_rng([seed, 5])
    kernels = candidates(X, intercept)
    rows = np.sort(rng.permutation(len(X))[:MOST_POINTS])
    part, wanted = X[rows], targets[rows]
    squares, units = [], []
    for kernel in kernels.values():
        if groups is None:
            solver = RidgeSolver(kernel, part, np.arange(len(part)), wanted, RIDGES)
            squares.append(solver.left_out_rows())
            units.append(solver.shifts / len(part))
        else:
            spectrum = _decomposed(kernel, part, wanted)
            lam = RIDGES[RIDGES >= SMALLEST_FOR_GROUPS] * spectrum.mean_diagonal
            squares.append(left_out_groups(spectrum, lam, groups[rows]))
            units.append(lam)
    table = np.stack(squares, axis=1)  # (N, kernels, ridges)
    means = table.mean(axis=0)
    at = means.argmin(axis=1)
    every = np.arange(len(at))
    errors = table[:, every, at].std(axis=0, ddof=1) / np.sqrt(len(part))
    return Choice(
        tuple(kernels),
        tuple(kernels.values()),
        means[every, at],
        np.array(units)[every, at],
        errors,
        _optimism(table.reshape(len(part), -1), rng),
    )


def choose_by_splits(X: Array, targets: Array, intercept: float, splits: Splits) -> Choice:
    """Return the scores of all candidates on the test rows of splits."""
    kernels = candidates(X, intercept)
    scores, ridges, errors = scores_by_splits(kernels, X, targets, splits)
    return Choice(tuple(kernels), tuple(kernels.values()), scores, ridges, errors, 0.0)


def _decomposed(kernel: Kernel, X: Array, targets: Array) -> Spectrum:
    if kernel.features is not None and kernel.table(X[:1]).shape[1] < len(X):
        return from_features(kernel.table(X), targets)
    return from_gram(kernel(X, X), targets)


def _optimism(table: Array, rng: np.random.Generator) -> float:
    """Return the optimism of the choice.

    For each resample, it is the score on all data minus the score on the resample, for the best candidate of the resample.
    """
    count = len(table)
    weights = rng.multinomial(count, np.full(count, 1 / count), size=RESAMPLES) / count
    drawn, mean = weights @ table, table.mean(axis=0)
    winners = drawn.argmin(axis=1)
    return max(float(np.mean(mean[winners] - drawn[np.arange(RESAMPLES), winners])), 0.0)


EXACT_LIMIT = 5_000
"""Points up to which `method="auto"` computes all eigenvectors."""

NO_RIDGE = 1e-9
"""Ridge that replaces 0 in formulas that divide by it, relative to the mean diagonal of the kernel."""


class Decomposition(BaseEstimator):  # type: ignore[misc]
    """Base class of `Forecast` with its parameters, fit and predictions."""

    def __init__(
        self,
        kernel: Any = "linear",
        *,
        ridge: Any = "best",
        gamma: float | None = None,
        depth: int = 1,
        width: int = 1000,
        activation: Any = "relu",
        intercept: float = 0.0,
        task: str = "regression",
        method: str = "auto",
        subsets: int = SUBSETS,
        subset_size: Any = "auto",
        rank: int = 2000,
        dtype: str = "float64",
        max_memory: float | None = None,
        classify: bool = False,
        random_state: int = 0,
    ):
        self.kernel = kernel
        self.ridge = ridge
        self.gamma = gamma
        self.depth = depth
        self.width = width
        self.activation = activation
        self.intercept = intercept
        self.task = task
        self.method = method
        self.subsets = subsets
        self.subset_size = subset_size
        self.rank = rank
        self.dtype = dtype
        self.max_memory = max_memory
        self.classify = classify
        self.random_state = random_state

    # -- the estimator ------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, groups: Any = None, cv: Any = None) -> Self:
        """Decompose the data.

        Parameters
        ----------
        X
            Inputs, one row per point, or the Gram matrix if the kernel is "precomputed".
        y
            Targets with one column per output, or labels.
        groups
            Group of every row (patient, shop, day). The choice of the kernel then leaves out groups, `measure` tests on other groups, and
            `group_ratio_` is the factor by which errors on new groups exceed those on new rows.
        cv
            Splits for the real fits: "time" if the rows are in the order of time, a number of folds, a splitter of scikit-learn or pairs of
            training and test rows. The choice of the kernel and of the ridge uses them too.
        """
        if self.ridge != "best":
            checked_ridges(self.ridge)
        check_options(self.method, self.dtype, self.rank)
        if y is None:
            raise Refused("this Forecast estimator requires y to be passed, but the target y is None")
        labelled = self.classify or is_classification(self.task, y)
        labels = np.asarray(y) if labelled else as_numbers(y)
        X, labels = validate_data(
            self,
            X,
            labels,
            multi_output=True,
            y_numeric=False,
            dtype=self.dtype,
            ensure_min_samples=2,
            ensure_all_finite=False,
        )
        require_finite(X, "X")
        self.classes_: Array | None = None
        targets = np.asarray(labels) if labelled else np.asarray(labels, dtype=float)
        if labelled:
            self.classes_, targets = class_targets(labels)
        require_finite(targets, "y")
        self._flat_target = targets.ndim == 1
        targets = targets.reshape(len(targets), -1)
        require_variation(targets)
        self.labels_ = np.asarray(labels)
        self.groups_ = checked_groups(groups, len(targets))
        self.splits_: Splits = make_splits(
            len(targets), self.labels_ if labelled else None, self.groups_, cv, self.random_state, X, self.labels_
        )
        self._real_fits: dict[Any, Any] = {}
        self._decompose(X, targets)
        self.ridge_ = self._own_ridge()
        self.coefficients_ = [part.coefficients(self.ridge_) for part in self._spectra()]
        self._compare_groups()
        return self

    def _compare_groups(self) -> None:
        """Set `group_ratio_`, and warn if errors on new groups are much larger than on new rows."""
        self.group_ratio_ = 1.0
        if self.groups_ is None:
            return
        rows = self._parts[0] if self._parts else slice(None)
        self.group_ratio_ = group_ratio(self.spectrum_, self.groups_[rows])
        if self.group_ratio_ > 1.05:
            warnings.warn(
                f"errors on new groups are {self.group_ratio_:.2f} times those on new rows of known groups, each with its best ridge; "
                "real fits and the curve through them are for new groups",
                ForecastWarning,
                stacklevel=3,
            )

    def predict(self, X: Any) -> Array:
        """Return predictions (numbers or labels) of the fit to all points."""
        values = self._scores(self._checked(X))
        if self.classes_ is not None:
            predicted = (values[:, 0] > 0).astype(int) if values.shape[1] == 1 else values.argmax(axis=1)
            return np.asarray(self.classes_[predicted])
        return np.asarray(values[:, 0] if self._flat_target else values, dtype=float)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _decompose(self, X: Array, targets: Array) -> None:
        self._landmarks: Array | None = None
        self._root: Array | None = None
        self.kernel_scores_: list[dict[str, Any]] | None = None
        self._parts: list[NDArray[np.int64]] = []
        self.kernel_: Kernel | None = None
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            gram = checked_gram(X, "X")
            if len(gram) != len(targets):
                raise Refused(f"y is not allowed: {len(targets)} targets for a Gram matrix of {len(gram)} points")
            require_memory(
                exact_bytes(len(gram)), self.max_memory, f"an exact decomposition of {len(gram)} points",
                "give the data and a kernel with method='nystrom', or fewer rows",
            )  # fmt: skip
            self.spectrum_: Spectrum = from_gram(gram, targets, overwrite=False)
            self._population: Population = Population(self.spectrum_, self.random_state)
        else:
            warn_of_duplicates(X)
            self.kernel_ = self._made_kernel(X, targets)
            size = SUBSET_SIZE if self.subset_size == "auto" else int(self.subset_size)
            many = self.method == "subsets" or (self.method == "auto" and len(X) > EXACT_LIMIT)
            if many and not self._few_features(X) and len(X) > size:
                self._decompose_parts(X, targets, size)
            else:
                self.spectrum_, self._landmarks, self._root = decompose(
                    self.kernel_, X, targets, method="exact" if self.method == "subsets" else self.method, rank=self.rank,
                    dtype=np.dtype(self.dtype), max_memory=self.max_memory, exact_limit=EXACT_LIMIT,
                    rng=np.random.default_rng([self.random_state, 0]),
                )  # fmt: skip
                self._population = Population(self.spectrum_, self.random_state)
        self.X_fit_, self.targets_ = X, targets
        rows = self._parts[0] if self._parts else slice(None)
        first = self._population.parts[0] if isinstance(self._population, Ensemble) else self._population
        self._classes = Classes(first, self.labels_[rows], self.random_state)

    def _decompose_parts(self, X: Array, targets: Array, size: int) -> None:
        assert self.kernel_ is not None
        rng = np.random.default_rng([self.random_state, 6])
        self._parts = subset_rows(len(X), self.subsets, size, rng)
        spectra = [
            decompose(
                self.kernel_, X[rows], targets[rows], method="exact", rank=self.rank, dtype=np.dtype(self.dtype),
                max_memory=self.max_memory, exact_limit=size, rng=rng,
            )[0]
            for rows in self._parts
        ]  # fmt: skip
        self.spectrum_ = spectra[0]
        self._population = Ensemble(
            spectra[0], self.random_state, tuple(Population(part, self.random_state) for part in spectra)
        )

    def _made_kernel(self, X: Array, targets: Array) -> Kernel:
        if isinstance(self.kernel, str) and self.kernel == "auto":
            if self.splits_.kind in ("time", "given"):
                self.choice_: Choice = choose_by_splits(X, targets, self.intercept or 1.0, self.splits_)
            else:
                self.choice_ = choose(X, targets, self.intercept or 1.0, self.random_state, self.groups_)
            self.kernel_scores_ = self.choice_.table()
            return self.choice_.kernels[self.choice_.best]
        kernel = self.kernel
        if isinstance(kernel, str) and kernel == "ntk":
            from functools import partial

            from limitlab.laws.kernels.deep import ntk

            kernel = partial(ntk, layers=self.depth + 1)
        return make_kernel(
            kernel, X, gamma=self.gamma, depth=self.depth, width=self.width, activation=self.activation,
            intercept=self.intercept, seed=self.random_state,
        )  # fmt: skip

    def _few_features(self, X: Array) -> bool:
        kernel = self.kernel_
        return kernel is not None and kernel.features is not None and kernel.table(X[:1]).shape[1] <= SUBSET_SIZE

    def _spectra(self) -> list[Spectrum]:
        if isinstance(self._population, Ensemble):
            return [part.spectrum for part in self._population.parts]
        return [self.spectrum_]

    def _own_ridge(self) -> float:
        if self.ridge != "best":
            return float(checked_ridges(self.ridge)[0])
        if self.splits_.kind != "rows" and self.kernel_ is not None:
            return float(scores_by_splits({"": self.kernel_}, self.X_fit_, self.targets_, self.splits_)[1][0])
        return float(self._population.best_ridge(np.array([float(len(self.targets_))]))[0][0])

    def _source(self) -> Kernel | Array:
        return self.kernel_ if self.kernel_ is not None else self.X_fit_

    def _checked(self, X: Any) -> Array:
        check_is_fitted(self, "coefficients_")
        X = validate_data(self, X, dtype=self.dtype, reset=False, ensure_all_finite=False)
        require_finite(X, "X")
        return np.asarray(X)

    def _scores(self, X: Array) -> Array:
        """Return the outputs of the fit to all points, or the mean outputs of the fits to the subsets."""
        if self._parts:
            assert self.kernel_ is not None
            parts = [self.kernel_(X, self.X_fit_[rows]) @ c for rows, c in zip(self._parts, self.coefficients_, strict=True)]
            return np.asarray(np.mean(parts, axis=0))
        return np.asarray(self._design(X) @ self.coefficients_[0])

    def _design(self, X: Array) -> Array:
        if self.kernel_ is None:
            return X
        if self._landmarks is not None:
            return np.asarray(self.kernel_(X, self._landmarks) @ self._root)
        return self.kernel_.table(X) if self.spectrum_.right is not None else self.kernel_(X, self.X_fit_)

    def _posterior_variance(self, X: Array, ridge: float) -> Array:
        """Return the posterior variance k(x, x) - k_x' (K + N ridge)^-1 k_x of new points."""
        spectrum = self.spectrum_
        if self.kernel_ is None or spectrum.vectors is None:
            raise Refused("test inputs cannot be compared with a Gram matrix: fit the forecast on data")
        rows = self._parts[0] if self._parts else slice(None)
        across = self.kernel_(X, self.X_fit_[rows]) @ spectrum.vectors
        weight = 1 / (spectrum.population * (spectrum.eigenvalues[:-1] + ridge))
        return np.asarray(self.kernel_.diagonal(X) - (across**2 * weight).sum(axis=1))

    def _fitted(self) -> Spectrum:
        check_is_fitted(self, "spectrum_")
        return self.spectrum_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags
