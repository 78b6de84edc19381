"""Fitting: data become a spectrum, exactly, by subsets or by a Nystrom approximation, and a predictor."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from limitlab.applied.forecast import _results as results
from limitlab.applied.forecast import diagnostics
from limitlab.applied.forecast._choice import Choice, choose
from limitlab.applied.forecast._curves import Population
from limitlab.applied.forecast._ensemble import SUBSET_SIZE, SUBSETS, Ensemble, subset_rows
from limitlab.applied.forecast._grouped import checked_groups, group_ratio
from limitlab.applied.forecast._kernels import Kernel, make_kernel
from limitlab.applied.forecast._memory import exact_bytes, require_memory
from limitlab.applied.forecast._metrics import Classes
from limitlab.applied.forecast._spectrum import Spectrum, checked_gram, decompose, from_gram
from limitlab.applied.forecast._targets import (
    as_numbers,
    check_options,
    class_targets,
    is_classification,
    require_finite,
    require_variation,
    warn_of_duplicates,
)

Array = NDArray[Any]

EXACT_LIMIT = 5_000
"""Points up to which `method="auto"` computes all eigenvectors."""

NO_RIDGE = 1e-9
"""Over the mean diagonal: what stands for ridge 0 where a formula divides by it."""


class Decomposition(BaseEstimator):  # type: ignore[misc]
    """Parameters, fit and predictions of `Forecast`, which adds the questions that a decomposition answers."""

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

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Decompose the data.

        Parameters
        ----------
        X
            Inputs, one row per point; the Gram matrix when the kernel is "precomputed".
        y
            Targets, one column per output; or labels.
        groups
            Group of every row (patient, shop, day). A kernel is then chosen by leaving out groups, `measure` tests on other groups, and
            `group_ratio_` says by what factor errors on new groups exceed those on new rows.
        """
        if self.ridge != "best":
            results.ridges(self.ridge)
        check_options(self.method, self.dtype, self.rank)
        if y is None:
            raise ValueError("this Forecast estimator requires y to be passed, but the target y is None")
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
        self._decompose(X, targets)
        self.ridge_ = self._own_ridge()
        self.coefficients_ = [part.coefficients(self.ridge_) for part in self._spectra()]
        self._compare_groups()
        return self

    def _compare_groups(self) -> None:
        """By how much new groups are harder than new rows, with a warning where it matters."""
        self.group_ratio_ = 1.0
        if self.groups_ is None:
            return
        rows = self._parts[0] if self._parts else slice(None)
        ridge = max(self.ridge_, NO_RIDGE * self.spectrum_.mean_diagonal)
        self.group_ratio_ = group_ratio(self.spectrum_, ridge, self.groups_[rows])
        if self.group_ratio_ > 1.05:
            warnings.warn(
                f"errors on groups that were not seen are {self.group_ratio_:.2f} times those on new rows of known groups: multiply "
                "forecasts by that where new data come in new groups",
                diagnostics.ForecastWarning,
                stacklevel=3,
            )

    def predict(self, X: Any) -> Array:
        """Predictions of the fit to all points: numbers, or labels."""
        values = self._scores(self._checked(X))
        if self.classes_ is not None:
            chosen = (values[:, 0] > 0).astype(int) if values.shape[1] == 1 else values.argmax(axis=1)
            return np.asarray(self.classes_[chosen])
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
                raise ValueError(f"y is not allowed: {len(targets)} targets for a Gram matrix of {len(gram)} points")
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
            spectra[0], self.random_state, tuple(Population(one, self.random_state) for one in spectra)
        )

    def _made_kernel(self, X: Array, targets: Array) -> Kernel:
        if isinstance(self.kernel, str) and self.kernel == "auto":
            self.choice_: Choice = choose(X, targets, self.intercept or 1.0, self.random_state, self.groups_)
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
            return float(results.ridges(self.ridge)[0])
        return float(self._population.best_ridge(np.array([float(len(self.targets_))]))[0][0])

    def _source(self) -> Kernel | Array:
        return self.kernel_ if self.kernel_ is not None else self.X_fit_

    def _checked(self, X: Any) -> Array:
        check_is_fitted(self, "coefficients_")
        X = validate_data(self, X, dtype=self.dtype, reset=False, ensure_all_finite=False)
        require_finite(X, "X")
        return np.asarray(X)

    def _scores(self, X: Array) -> Array:
        """Outputs of the fit to all points (of the mean fit of the subsets)."""
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
        """k(x, x) - k_x' (K + N ridge)^-1 k_x of new points: how far they are from what was seen."""
        spectrum = self.spectrum_
        if self.kernel_ is None or spectrum.vectors is None:
            raise ValueError("test inputs can be compared only where the forecast was fitted on data, not on a Gram matrix")
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
