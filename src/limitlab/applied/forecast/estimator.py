"""`Forecast`: a scikit-learn regressor that knows its own learning curve."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from limitlab.applied.forecast import diagnostics, results
from limitlab.applied.forecast.curves import Population, approximation_error
from limitlab.applied.forecast.measure import measured
from limitlab.applied.forecast.memory import exact_bytes, require_memory
from limitlab.applied.forecast.spectrum import Spectrum, checked_gram, decompose, from_gram, from_numbers
from limitlab.applied.forecast.targets import (
    as_numbers,
    check_options,
    one_hot,
    require_finite,
    require_variation,
    warn_of_duplicates,
)
from limitlab.laws.regression.finite_population_flow import flow_curve
from limitlab.models.kernels import Kernel, make_kernel

Array = NDArray[Any]

EXACT_LIMIT = 20_000
"""Points up to which `method="auto"` computes all eigenvectors."""


class Forecast(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Kernel ridge regression with its learning curve: errors for every number of points and ridge from one decomposition.

    Fitted on N points, it predicts what ridge regression trained on n of them does on the others (`predict_error`), with a band
    and beyond N (`learning_curve`), for the best ridge (`best_ridge`), along training (`error_over_time`), and how many
    points reach an error (`samples_for`). As a regressor it is the fit to all N points.

    Parameters
    ----------
    kernel
        "linear", "rbf", "relu-nngp", "random-features", "precomputed" (then X is the Gram matrix), a function
        `(X, Y) -> matrix`, or a feature map with `transform`.
    ridge
        lambda of (K/n + lambda) for the regressor and where a method is not given one; scikit-learn's `KernelRidge` has
        alpha = n lambda.
    gamma, depth, width, activation
        Parameters of the kernels "rbf" (default: one over the total variance), "relu-nngp" (hidden layers) and
        "random-features" (number and activation).
    intercept
        Size of a constant feature, penalised like the others; 0 means none.
    classify
        Whether y holds labels: they become one-hot targets, and `predict` returns labels.
    method
        "exact" (all eigenvectors), "nystrom" (features from `rank` random points), or "auto": exact up to 20,000 points.
    rank
        Of the Nystrom approximation.
    dtype
        "float64", or "float32" for half the memory and about six digits.
    max_memory
        Bytes that may be used (default: what is free); more than that is refused before the work starts.
    random_state
        Seed of random features, Nystrom points and resampling.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((200, 5))
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(1).standard_normal(200)
    >>> forecast = Forecast(kernel="rbf", ridge=0.01).fit(X, y)
    >>> forecast.predict_error(n=[50, 100], ridge=[0.01, 0.1]).test_error.values.round(2).tolist()
    [[0.07, 0.22], [0.05, 0.21]]
    """

    def __init__(
        self,
        kernel: Any = "linear",
        *,
        ridge: float = 1e-2,
        gamma: float | None = None,
        depth: int = 1,
        width: int = 1000,
        activation: Any = "relu",
        intercept: float = 0.0,
        classify: bool = False,
        method: str = "auto",
        rank: int = 2000,
        dtype: str = "float64",
        max_memory: float | None = None,
        random_state: int = 0,
    ):
        self.kernel = kernel
        self.ridge = ridge
        self.gamma = gamma
        self.depth = depth
        self.width = width
        self.activation = activation
        self.intercept = intercept
        self.classify = classify
        self.method = method
        self.rank = rank
        self.dtype = dtype
        self.max_memory = max_memory
        self.random_state = random_state

    # -- the regressor ------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any) -> Self:
        """Decompose the data.

        Parameters
        ----------
        X
            Inputs, one row per point; the Gram matrix when the kernel is "precomputed".
        y
            Targets, one column per output; labels with `classify`.
        """
        results.ridges(self.ridge)
        check_options(self.method, self.dtype, self.rank)
        if y is None:
            raise ValueError("this Forecast estimator requires y to be passed, but the target y is None")
        labels = np.asarray(y) if self.classify else as_numbers(y)
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
        targets = np.asarray(labels) if self.classify else np.asarray(labels, dtype=float)
        if self.classify:
            self.classes_, targets = one_hot(labels)
        require_finite(targets, "y")
        self._flat_target = targets.ndim == 1
        targets = targets.reshape(len(targets), -1)
        require_variation(targets)
        self._decompose(X, targets)
        self.coefficients_ = self.spectrum_.coefficients(self.ridge)
        return self

    def predict(self, X: Any) -> Array:
        """Predictions of the fit to all points at the estimator's own ridge."""
        check_is_fitted(self, "coefficients_")
        X = validate_data(self, X, dtype=self.dtype, reset=False, ensure_all_finite=False)
        require_finite(X, "X")
        values = self._design(X) @ self.coefficients_
        if self.classes_ is not None:
            return np.asarray(self.classes_[values.argmax(axis=1)])
        return np.asarray(values[:, 0] if self._flat_target else values, dtype=float)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 of the predictions, or the share of right labels with `classify`."""
        if self.classify:
            return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))
        return float(super().score(X, y, sample_weight))

    @classmethod
    def from_spectrum(cls, eigenvalues: Any, energies: Any, population: int, ridge: float = 1e-2) -> Forecast:
        """A forecast from eigenvalues of K/N and mode energies (u_k . y)^2 / N instead of data.

        >>> values, energies = [1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005], [0.3, 0.1, 0.2, 0.1, 0.05, 0.05, 0.02, 0.01]
        >>> made = Forecast.from_spectrum(values, energies, population=8)
        >>> made.predict_error(4, [0.01, 0.1]).test_error.values.round(6).tolist()
        [[0.658296, 0.61017]]
        """
        made = cls(ridge=ridge)
        made.spectrum_ = from_numbers(eigenvalues, energies, population)
        made._population = Population(made.spectrum_)
        return made

    # -- forecasts ----------------------------------------------------------------------------------------------------

    def predict_error(self, n: Any, ridge: Any = None, corrected: bool = False) -> xr.Dataset:
        """Expected errors of ridge regression trained on n of the N points and tested on the others.

        Parameters
        ----------
        n, ridge
            Numbers of points (below N) and ridges (default: the estimator's own); one dimension of the result each.
        corrected
            Also give `corrected_test_error`, which uses the leverage of each point in place of their mean: better where
            leverages differ, and the value that `learning_curve` shows.

        Returns
        -------
        xarray.Dataset
            test_error, train_error, degrees_of_freedom and effective_ridge over (n, ridge), averaged over outputs.
        """
        spectrum = self._fitted()
        samples, lam = results.counts(n), results.ridges(self.ridge if ridge is None else ridge)
        if (samples >= spectrum.population).any():
            raise ValueError(
                f"n = {samples[samples >= spectrum.population][0]:g} is not allowed: must be below N = {spectrum.population}, "
                "the number of points fitted; learning_curve extrapolates beyond"
            )
        if corrected and spectrum.vectors is None:
            raise ValueError("corrected=True needs data: this forecast was made from a spectrum")
        found = self._population.errors(samples[:, None], lam, corrected)
        names = ("train_error", "degrees_of_freedom", "effective_ridge")
        values = {"test_error": found.law_error, **{name: getattr(found, name) for name in names}}
        if corrected:
            values["corrected_test_error"] = found.test_error
        for sentence in diagnostics.doubts(spectrum, samples, lam):
            warnings.warn(sentence, diagnostics.ForecastWarning, stacklevel=2)
        variables = {name: (("n", "ridge"), value) for name, value in values.items()}
        result = results.dataset(variables, {"n": samples, "ridge": lam})
        return result.assign_attrs(self._provenance(samples[:, None], lam))

    def learning_curve(self, n: Any = None, ridge: Any = None, confidence: float = 0.95) -> xr.Dataset:
        """The expected test error against the number of points, with a band, also beyond the data.

        Parameters
        ----------
        n
            Numbers of points (default: twenty from N/50 to 2N). From N on they are extrapolated.
        ridge
            One ridge, or "best" for the best one at every n (default: the estimator's own).
        confidence
            Of the band: the spread over resampled points, and beyond N also the error that the same extrapolation makes on
            hidden halves of the data.

        Returns
        -------
        xarray.Dataset
            Over n: test_error (corrected for leverages), test_error_low and _high, law_error (uncorrected), train_error,
            degrees_of_freedom, effective_ridge, ridge, extrapolated.
        """
        spectrum = self._fitted()
        total = spectrum.population
        samples = results.counts(np.unique(np.round(np.geomspace(max(2, total / 50), 2 * total, 20))) if n is None else n)
        lam, _ = self._ridge_at(samples, ridge)
        found = self._population.errors(samples, lam)
        deviation, beyond = found.deviation, samples >= total
        if beyond.any() and spectrum.vectors is not None:
            tail = self._population.tail_deviation(lam[beyond])
            deviation[beyond] = np.hypot(deviation[beyond], tail * np.log2(np.maximum(samples[beyond] / total, 1)))
        return results.curve(found._replace(deviation=deviation), samples, lam, beyond, confidence).assign_attrs(
            self._provenance(samples, lam)
        )

    def best_ridge(self, n: Any) -> xr.Dataset:
        """The ridge with the least expected test error for every n, and that error (at_bound: the end of the range searched)."""
        self._fitted()
        samples = results.counts(n)
        lam, at_bound = self._population.best_ridge(samples)
        values = self._population.errors(samples, lam)
        variables = {
            "ridge": lam,
            "test_error": values.test_error,
            "effective_ridge": values.effective_ridge,
            "at_bound": at_bound,
        }
        return results.dataset({name: ("n", value) for name, value in variables.items()}, {"n": samples})

    def error_over_time(self, n: Any, time: Any) -> xr.Dataset:
        """Expected errors of gradient flow on n of the points, stopped at a time, without ridge: dimensions n and time.

        The loss is |f - y|^2 / (2n); t steps of gradient descent with step h are time t h. Ridge 1/t is similar.
        """
        spectrum = self._fitted()
        samples, times = results.counts(n), np.atleast_1d(np.asarray(time, dtype=float))
        pieces = [
            flow_curve(one, times, spectrum.eigenvalues, spectrum.energies, spectrum.population, spectrum.multiplicities)
            for one in samples
        ]
        values = {
            name: (("n", "time"), np.array([getattr(piece, name) for piece in pieces]))
            for name in ("test_error", "train_error")
        }
        result = results.dataset(values, {"n": samples, "time": times})
        return result.assign_attrs(accuracy=max(piece.accuracy for piece in pieces))

    def samples_for(self, error: float, ridge: Any = None) -> xr.Dataset:
        """How many points reach a test error: n, and the range that the band allows.

        Parameters
        ----------
        error
            The test error wanted (mean square, averaged over outputs).
        ridge
            One ridge, or "best" (default: the estimator's own).
        """
        self._fitted()
        if not np.isfinite(error) or error <= 0:
            raise ValueError(f"error = {error!r} is not allowed: must be a finite number above 0")
        n = self._population.samples_for(error, lambda samples: self._ridge_at(samples, ridge)[0])
        curve = self.learning_curve([n], ridge)
        names = ("test_error", "test_error_low", "test_error_high", "extrapolated", "ridge")
        return xr.Dataset({"n": n, **{name: curve[name].item() for name in names if name in curve}})

    # -- trust --------------------------------------------------------------------------------------------------------

    def diagnose(self, ridge: Any = None) -> xr.Dataset:
        """How unequal the leverages are, and the cross-validation errors of the fit to all points, for every ridge."""
        lam = results.ridges(self.ridge if ridge is None else ridge)
        values = diagnostics.diagnosed(self._fitted(), lam)
        return results.dataset({name: ("ridge", value) for name, value in values.items()}, {"ridge": lam})

    def check_tail(self, ridge: Any = None, confidence: float = 0.95) -> xr.Dataset:
        """Hide half of the points, predict the error with all of them, and say whether the band held: over half and ridge."""
        self._fitted()
        lam = results.ridges(self.ridge if ridge is None else ridge)
        return results.tail(self._population.tail_check(lam), lam, confidence)

    def measure(self, n: Any, ridge: Any = None, splits: int = 5, seed: int = 0) -> xr.Dataset:
        """Real fits on random subsets of the data, for comparison: errors over (n, ridge) with standard errors."""
        check_is_fitted(self, "coefficients_")
        source = self.kernel_ if self.kernel_ is not None else self.X_fit_
        lam = self.ridge if ridge is None else ridge
        targets = self.spectrum_.targets
        assert targets is not None
        return measured(source, self.X_fit_, targets, np.round(results.counts(n)), lam, splits, seed, classes=self.classify)

    def advice(self, ridge: Any = None) -> str:
        """What to do next, in one sentence."""
        from limitlab.applied.forecast.advice import advise

        return advise(self, self.ridge if ridge is None else ridge)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _decompose(self, X: Array, targets: Array) -> None:
        self._landmarks: Array | None = None
        self._root: Array | None = None
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            gram = checked_gram(X, "X")
            if len(gram) != len(targets):
                raise ValueError(f"y is not allowed: {len(targets)} targets for a Gram matrix of {len(gram)} points")
            require_memory(
                exact_bytes(len(gram)), self.max_memory, f"an exact decomposition of {len(gram)} points",
                "give the data and a kernel with method='nystrom', or fewer rows",
            )  # fmt: skip
            self.kernel_: Kernel | None = None
            self.spectrum_: Spectrum = from_gram(gram, targets, overwrite=False)
        else:
            warn_of_duplicates(X)
            self.kernel_ = make_kernel(
                self.kernel, X, gamma=self.gamma, depth=self.depth, width=self.width, activation=self.activation,
                intercept=self.intercept, seed=self.random_state,
            )  # fmt: skip
            self.spectrum_, self._landmarks, self._root = decompose(
                self.kernel_, X, targets, method=self.method, rank=self.rank, dtype=np.dtype(self.dtype),
                max_memory=self.max_memory, exact_limit=EXACT_LIMIT, rng=np.random.default_rng([self.random_state, 0]),
            )  # fmt: skip
        self.X_fit_ = X
        self._population = Population(self.spectrum_, self.random_state)

    def _design(self, X: Array) -> Array:
        if self.kernel_ is None:
            return X
        if self._landmarks is not None:
            return np.asarray(self.kernel_(X, self._landmarks) @ self._root)
        return self.kernel_.table(X) if self.spectrum_.right is not None else self.kernel_(X, self.X_fit_)

    def _fitted(self) -> Spectrum:
        check_is_fitted(self, "spectrum_")
        return self.spectrum_

    def _ridge_at(self, samples: Array, ridge: Any) -> tuple[Array, bool]:
        if isinstance(ridge, str):
            if ridge != "best":
                raise ValueError(f"ridge = {ridge!r} is not allowed: give a number of at least 0, or 'best'")
            return self._population.best_ridge(samples)[0], True
        lam = results.ridges(self.ridge if ridge is None else ridge)
        if lam.size != 1:
            raise ValueError(f"ridge = {ridge!r} is not allowed here: give one number, or 'best'")
        return np.full(samples.shape, lam[0]), False

    def _provenance(self, samples: Array, lam: Array) -> dict[str, Any]:
        spectrum = self.spectrum_
        attrs: dict[str, Any] = {"population": spectrum.population, "rank": spectrum.rank, "kind": "forecast"}
        if spectrum.coarse is not None:
            attrs["approximation_error"] = approximation_error(spectrum, samples, lam)
        return attrs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags
