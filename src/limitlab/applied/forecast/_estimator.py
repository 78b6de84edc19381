"""`Forecast`, an estimator for scikit-learn that predicts its test error for any number of training points."""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from limitlab._core.declaration import VOCABULARY, Observable
from limitlab._core.page import Page, Table, html
from limitlab._core.results import package_version
from limitlab.applied.forecast._clusters import grouped_rows
from limitlab.applied.forecast._curves import Ensemble, Errors, Population, approximation_error, noise_floor
from limitlab.applied.forecast._fitting import (
    Decomposition,
    as_numbers,
    checked_counts,
    checked_ridges,
    class_targets,
    require_finite,
)
from limitlab.applied.forecast._learning import THEORY_WEIGHT, Curve, posterior
from limitlab.applied.forecast._measure import fit_power_law, measured
from limitlab.applied.forecast._metrics import DRAWS, METRICS, Classes
from limitlab.applied.forecast._nested import LARGEST_FIT, NestedLosses, kernel_losses, selection_shift
from limitlab.applied.forecast._spectrum import from_numbers
from limitlab.applied.forecast._trust import (
    ForecastWarning,
    Gains,
    GapReport,
    diagnosed,
    doubts,
    gains,
    gap_report,
    sentence,
)
from limitlab.errors import Refused
from limitlab.laws.regression.finite_population import flow_curve

Array = NDArray[Any]

TRUSTED_STEP, DOUBTED_STEP = 0.02, 0.07
"""Two limits for the error of the backtest.

Below the first, extrapolations to twice and four times the data were hardly ever wrong by more than 10 %. Above the second, errors of more
than 10 % were frequent (docs/theory/learning_curves.md).
"""


FIT_SECONDS = 60.0
"""Time limit for the real fits of a learning curve."""

SMALL = 400
"""Number of rows up to which the choice of the kernel is repeated in every split. Beyond, its effect follows from resamples."""


def labelled_dataset(variables: Mapping[str, tuple[Any, Any]], coordinates: Mapping[str, Any]) -> xr.Dataset:
    """Return a dataset of variables with the long names and symbols of the observables."""
    made = xr.Dataset(dict(variables), dict(coordinates), {"version": package_version()})
    for name in map(str, made.data_vars):
        meta = VOCABULARY.get(name, Observable(name.replace("_", " ")))
        made[name].attrs.update(long_name=meta.long_name, symbol=meta.symbol)
    for name, words in (("n", "number of points"), ("ridge", "ridge"), ("time", "training time")):
        if name in made.coords:
            made[name].attrs["long_name"] = words
    return made


def quantile(band: float) -> float:
    """Return the half width of a two-sided band of this probability, in standard deviations.

    >>> round(quantile(0.95), 3)
    1.96
    """
    from statistics import NormalDist

    if not 0 < band < 1:
        raise Refused(f"band = {band!r} is not allowed: must be between 0 and 1")
    return NormalDist().inv_cdf((1 + band) / 2)


def trust_of(missed: float) -> str:
    """Return the reliability of an extrapolation as a word. `missed` is the error of its backtest in the logarithm.

    >>> trust_of(0.01), trust_of(-0.05), trust_of(0.2)
    ('trusted', 'fair', 'doubtful')
    """
    return "trusted" if abs(missed) < TRUSTED_STEP else "fair" if abs(missed) <= DOUBTED_STEP else "doubtful"


def banded_curve(errors: Errors, samples: Array, lam: Array, beyond: NDArray[np.bool_], band: float) -> xr.Dataset:
    """Return a learning curve with its band."""
    wide = np.exp(quantile(band) * errors.deviation)
    values: dict[str, Any] = {"test_error": errors.test_error}
    if errors.deviation.any():
        values |= {"test_error_low": errors.test_error / wide, "test_error_high": errors.test_error * wide}
    values |= {
        "law_error": errors.law_error,
        "train_error": errors.train_error,
        "degrees_of_freedom": errors.degrees_of_freedom,
        "effective_ridge": errors.effective_ridge,
        "ridge": lam,
        "extrapolated": beyond,
    }
    made = labelled_dataset({name: ("n", value) for name, value in values.items()}, {"n": samples})
    return made.assign_attrs(band=band)


def with_metric(
    made: xr.Dataset, metric: Any, value: Array, spread: Array | None, base: float, step_spread: Array, band: float
) -> xr.Dataset:
    """Return the curve `made` of the mean square with the variables of a metric added.

    These variables are the value of the metric with its band, the ratio to the value at N, and the value at N.
    """
    z = quantile(band)
    name = metric if isinstance(metric, str) else getattr(metric, "__name__", "metric")
    rising = name in ("accuracy", "auc")
    loss, start = (1 - value, 1 - base) if rising else (value, base)
    variables: dict[str, Any] = {"value": value}
    if spread is not None and spread.any():
        low, high = loss * np.exp(-z * spread), loss * np.exp(z * spread)
        variables |= {"low": 1 - np.minimum(high, 1), "high": 1 - low} if rising else {"low": low, "high": high}
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.where(start > 0, loss / start, np.nan) if start > 0 else np.full(loss.shape, np.nan)
    wide = np.exp(z * np.abs(step_spread))
    variables |= {"step": step, "step_low": step / wide, "step_high": step * wide, "last_value": np.full(value.shape, base)}
    for key, values in variables.items():
        made[key] = ("n", values)
    made["value"].attrs["long_name"] = name
    made["step"].attrs["long_name"] = "loss over its value at N"
    return made.assign_attrs(metric=name)


def posterior_curve(made: xr.Dataset, curve: Curve, kind: str, band: float, rows: float) -> xr.Dataset:
    """Return a dataset over n with the values of a posterior.

    Parameters
    ----------
    made
        A dataset with the coordinate n.
    curve
        The posterior of the loss.
    kind
        The metric. For "accuracy" and "auc" the loss is one minus the metric.
    band
        Nominal probability of the band.
    rows
        Number of rows in the data.
    """
    samples = made.n.values.astype(float)
    low, middle, high = curve.quantiles(samples, [(1 - band) / 2, 0.5, (1 + band) / 2])
    now = float(curve.quantiles([rows], [0.5])[0, 0])
    steps = np.exp(np.quantile(curve.draws(samples) - curve.draws([rows]), [(1 - band) / 2, 0.5, (1 + band) / 2], axis=0))
    rising = kind in ("accuracy", "auc")
    law = fit_power_law(curve.measured.sizes, curve.measured.values)(samples)
    largest = float(curve.measured.sizes[-1])
    values = {
        "value": 1 - middle if rising else middle,
        "low": 1 - np.minimum(high, 1) if rising else low,
        "high": 1 - low if rising else high,
        "step": steps[1],
        "step_low": steps[0],
        "step_high": steps[2],
        "last_value": np.full(samples.shape, 1 - now if rising else now),
        "power_law": 1 - law if rising else law,
        "trust": np.array(curve.trust(samples)),
        "right": curve.right(samples),
        "radius": curve.radius(samples),
        "extrapolated": samples > (rows if largest >= 0.5 * rows else largest),
    }
    for key, entry in values.items():
        made[key] = ("n", entry)
    made["value"].attrs["long_name"] = kind
    made["step"].attrs["long_name"] = "loss over its value at N"
    made["right"].attrs["long_name"] = "probability that the value is within 10 % of the truth"
    made["radius"].attrs["long_name"] = "share of the truth within which the value is with probability 80 %"
    return made.assign_attrs(metric=kind, band=band, population=int(rows), largest_fit=int(largest))


class Forecast(RegressorMixin, Decomposition):  # type: ignore[misc]
    """Kernel ridge regression that predicts its test error for any number of training points and any ridge.

    A forecast is fitted to N points and needs one eigendecomposition. `predict_error` returns the errors of ridge regression trained on n
    of the points and tested on the others. `learning_curve` adds a band, extrapolates beyond N, and accepts any metric. `best_ridge`
    returns the best ridge for every n, `error_over_time` the errors along training, and `samples_for` the number of points that an error
    requires. `backtest` estimates how reliable an extrapolation is. `check_gap` tests whether the error on test data is consistent with
    the forecast. As an estimator of scikit-learn, a forecast is the fit to all N points.

    Parameters
    ----------
    kernel
        "linear", "rbf", "laplace", "relu-nngp", "ntk", "random-features", "auto" (the best of nine by leave-one-out), "precomputed"
        (then X is the Gram matrix), a function `(X, Y) -> matrix`, or a feature map with `transform`.
    ridge
        lambda in (K/n + lambda), or "best" for the ridge with the smallest expected error at every n. The `KernelRidge` of scikit-learn has
        alpha = n lambda.
    gamma, depth, width, activation
        Parameters of the kernels. gamma is the rate of "rbf" (default: one over the total variance of X) and of "laplace" (default: the
        root of this value). depth is the number of hidden layers of "relu-nngp" and "ntk". width and activation are the number and the
        activation of "random-features".
    intercept
        Size of a constant feature, penalised like the others; 0 means none.
    task
        "regression", "classification" or "auto". In a classification, two classes become one target of +1 and -1, and several classes
        become one target of 0 and 1 each. "auto" means classification if y contains text, True and False, or few different whole numbers.
    method
        "exact" (all eigenvectors), "subsets" (the average of forecasts from disjoint random subsets), "nystrom" (features from `rank`
        random points), or "auto" (exact up to 5,000 points, then subsets).
    subsets, subset_size
        Number of subsets, and points in each ("auto": 1,000).
    rank
        Rank of the Nystrom approximation.
    dtype
        "float64", or "float32" for half the memory and about six digits.
    max_memory
        Largest memory in bytes (default: the free memory). A fit that needs more raises an error before it starts.
    classify
        True has the same effect as task="classification".
    random_state
        Seed of random features, subsets, Nystrom points and resampling.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((200, 5))
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(1).standard_normal(200)
    >>> forecast = Forecast(kernel="rbf", ridge=0.01).fit(X, y)
    >>> forecast.predict_error(n=[50, 100], ridge=[0.01, 0.1]).test_error.values.round(2).tolist()
    [[0.07, 0.22], [0.05, 0.21]]
    """

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R^2 of the predictions, or the share of correct labels."""
        check_is_fitted(self, "coefficients_")
        if self.classes_ is not None:
            return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))
        return float(RegressorMixin.score(self, X, y, sample_weight))

    @classmethod
    def from_spectrum(cls, eigenvalues: Any, energies: Any, population: int, ridge: float = 1e-2) -> Forecast:
        """Return a forecast from eigenvalues of K/N and mode energies (u_k . y)^2 / N instead of data.

        >>> values = [1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005]
        >>> energies = [0.3, 0.1, 0.2, 0.1, 0.05, 0.05, 0.02, 0.01]
        >>> made = Forecast.from_spectrum(values, energies, population=8)
        >>> made.predict_error(4, [0.01, 0.1]).test_error.values.round(6).tolist()
        [[0.658296, 0.61017]]
        """
        made = cls(ridge=ridge)
        made.ridge_ = float(checked_ridges(ridge)[0])
        made.spectrum_ = from_numbers(eigenvalues, energies, population)
        made._population = Population(made.spectrum_)
        made.classes_ = None
        return made

    # -- forecasts ----------------------------------------------------------------------------------------------------

    def predict_error(self, n: Any, ridge: Any = None, corrected: bool = False) -> xr.Dataset:
        """Return the expected errors of ridge regression trained on n of the N points and tested on the others.

        Parameters
        ----------
        n, ridge
            Numbers of points (below N) and ridges (default: the ridge of the estimator). Each is a dimension of the result.
        corrected
            Also return `corrected_test_error`, which uses the leverage of each point instead of their mean. It is more accurate if
            leverages differ, and `learning_curve` uses it.

        Returns
        -------
        xarray.Dataset
            test_error, train_error, degrees_of_freedom and effective_ridge over (n, ridge), averaged over outputs.
        """
        spectrum = self._fitted()
        samples, lam = checked_counts(n), checked_ridges(self.ridge_ if ridge is None else ridge)
        if (samples >= spectrum.population).any():
            raise Refused(
                f"n = {samples[samples >= spectrum.population][0]:g} is not allowed: must be below N = {spectrum.population}, "
                "the number of fitted points; use learning_curve to extrapolate beyond"
            )
        if corrected and spectrum.vectors is None:
            raise Refused("corrected=True needs data: this forecast was made from a spectrum")
        errors = self._population.errors(samples[:, None], lam, corrected)
        names = ("train_error", "degrees_of_freedom", "effective_ridge")
        values = {"test_error": errors.law_error, **{name: getattr(errors, name) for name in names}}
        if corrected:
            values["corrected_test_error"] = errors.test_error
        for doubt in doubts(spectrum, samples, lam):
            warnings.warn(doubt, ForecastWarning, stacklevel=2)
        variables = {name: (("n", "ridge"), value) for name, value in values.items()}
        result = labelled_dataset(variables, {"n": samples, "ridge": lam})
        return result.assign_attrs(self._provenance(samples[:, None], lam))

    def learning_curve(
        self,
        n: Any = None,
        ridge: Any = None,
        metric: Any = None,
        band: float = 0.9,
        baselines: bool = True,
        seconds: float = FIT_SECONDS,
    ) -> xr.Dataset:
        """Return the expected test error of fits to n points, with a band, up to and beyond the number of points in the data.

        Parameters
        ----------
        n
            Numbers of points (default: twenty from N/50 to 2N). Errors for n above N are extrapolated.
        ridge
            A ridge, or "best" for the best ridge at every n (default: the ridge of the estimator).
        metric
            "mse" (the default for numbers), "error" (the default for labels), "accuracy", "auc", or a function of scores and labels. A
            function works up to n = N only.
        band
            Nominal probability of the band.
        baselines
            Whether to make real fits at a few sizes. This is done only if some n is above N. The curve is then the median of the posterior
            over power laws a n^-b + c through these fits, in the metric of the curve. For fits to random rows, the step of the mean square
            that the law predicts is a second opinion with a weight from backtests. Without real fits the curve is that of the law, and its
            band for labels beyond N is approximate.
        seconds
            Time limit for the real fits.

        Returns
        -------
        xarray.Dataset
            The variables are functions of n. `value` is the metric, with its band `low` and `high`, and `last_value` is its value at N.
            `step` is the ratio of the loss to its value at N, with its band `step_low` and `step_high`. The loss is the metric itself, or
            one minus it for "accuracy" and "auc". `power_law` is the least-squares power law through real fits, and `law_value` the value
            of the law (for the mean square). `trust` is the reliability of the value, `extrapolated` whether n is at least N, and `ridge`
            the ridge of the law. With real fits, `right` is the probability that the value is within 10 % of the truth, `radius` is the
            share of the truth within which the value is with probability 80 %, and `extrapolated`
            is whether n is above N or, for large data, above the largest real fit. The mean square has the variables
            `test_error`, `test_error_low`, `test_error_high`, `law_error` (without the correction for leverages), `train_error`,
            `degrees_of_freedom` and `effective_ridge`.
        """
        spectrum = self._fitted()
        total = spectrum.population
        kind = self._metric(metric)
        samples = checked_counts(np.unique(np.round(np.geomspace(max(2, total / 50), 2 * total, 20))) if n is None else n)
        lam, _ = self._ridge_at(samples, ridge)
        errors = self._population.errors(samples, lam)
        beyond, known = samples >= total, spectrum.vectors is not None
        doublings = np.log2(np.maximum(samples / total, 1.0))
        missed = np.zeros(samples.shape)
        if (doublings > 0).any() and known:
            missed[beyond] = self._population.tail_deviation(lam[beyond])
        deviation = np.hypot(errors.deviation, missed * doublings)
        made = banded_curve(errors._replace(deviation=deviation), samples, lam, beyond, band)
        last, _ = self._ridge_at(np.array([float(total)]), ridge)
        if kind == "mse":
            value, base = errors.test_error, float(self._population.errors(float(total), last).test_error[0])
            spread: Array | None = deviation
        elif (
            baselines and known and isinstance(kind, str) and (doublings > 0).any()
        ):  # the values of real fits replace these
            value, base, spread = np.full(samples.shape, np.nan), float("nan"), None
        else:
            labelled = self._labelled()
            value = labelled.curve(kind, samples, lam, lambda at: self._ridge_at(at, ridge)[0])
            base = float(labelled.curve(kind, np.array([float(total)]), last, lambda at: self._ridge_at(at, ridge)[0])[0])
            spread = labelled.deviation(kind, value, base, samples, missed) if isinstance(kind, str) else None
        made = with_metric(made, kind, value, spread, base, missed * doublings, band)
        made = made.assign_attrs(self._provenance(samples, lam))
        if known and (doublings > 0).any():
            made["trust"] = ("n", np.where(doublings > 0, [trust_of(error) for error in missed], ""))
            if baselines and isinstance(kind, str):
                made = self._with_real_fits(made, kind, ridge, band, seconds)
        return made

    def posterior(self, metric: Any = None, ridge: Any = None, sizes: Any = (), seconds: float = FIT_SECONDS) -> Curve:
        """Return the posterior of the learning curve from real fits at a few sizes.

        Parameters
        ----------
        metric
            "mse", "error", "accuracy" or "auc". The curve is that of the loss, which is one minus the metric for the last two.
        ridge
            A ridge, or "best".
        sizes
            Further sizes of real fits.
        seconds
            Time limit for the real fits.
        """
        self._fitted()
        kind = self._metric(metric)
        name = "error" if kind == "accuracy" else kind
        losses = self._losses(ridge, name == "auc", sizes, seconds)
        grouped = losses.kind == "rows" and self._rows_in_groups()
        curve = posterior(
            losses.measurement(name), self.random_state, rising=losses.kind == "time", odds=name == "error", grouped=grouped
        )
        curve = replace(curve.shifted(self._selection(name)), largest=np.inf if name == "mse" else 1.0)
        if name not in THEORY_WEIGHT or self.splits_.kind != "rows" or grouped or isinstance(self._population, Ensemble):
            return curve
        rows = float(len(self.targets_))

        def step(n: Array) -> Array:
            at = np.append(n, rows)
            values = self._population.errors(at, self._ridge_at(at, ridge)[0]).test_error
            return np.asarray(np.log(np.maximum(values[:-1], np.finfo(float).tiny) / max(values[-1], np.finfo(float).tiny)))

        missed = float(self._population.tail_deviation(self._ridge_at(np.array([rows]), ridge)[0])[0])
        return curve.with_theory(step, rows, missed, name)

    def _losses(self, ridge: Any, area: bool, sizes: Any = (), seconds: float = FIT_SECONDS) -> NestedLosses:
        """Return the losses of real fits. They are computed at first use and cached."""
        wanted = self.ridge if ridge is None else ridge
        extra = tuple(np.round(np.atleast_1d(np.asarray(sizes, dtype=float))).tolist())
        key = str(wanted), area, extra
        known = next(
            (
                value
                for at, value in self._real_fits.items()
                if at[0] == key[0] and at[1] >= area and (not extra or at[2] == extra)
            ),
            None,
        )
        if known is None:
            fixed = None if isinstance(wanted, str) else float(checked_ridges(wanted)[0])
            known = self._real_fits[key] = kernel_losses(
                self._source(), self.X_fit_, self.targets_, self.classes_ is not None, self.splits_,
                self.splits_.sizes(LARGEST_FIT, extra), None if fixed is None else lambda n: fixed,
                clock.perf_counter() + seconds, area,
            )  # fmt: skip
        return known

    def _rows_in_groups(self) -> bool:
        """Return whether the rows come in groups of similar rows. This is computed at first use and cached."""
        if "grouped" not in self._real_fits:
            self._real_fits["grouped"] = (
                self.X_fit_ is not None and self.kernel != "precomputed" and grouped_rows(self.X_fit_)
            )
        return bool(self._real_fits["grouped"])

    def _selection(self, name: str) -> float:
        """Return the correction of the logarithm of the error for the choice of the kernel by the same data."""
        if self.kernel_scores_ is None or not hasattr(self, "choice_"):
            return 0.0
        choice, total = self.choice_, len(self.targets_)
        if "selection" not in self._real_fits:
            if self.splits_.kind == "rows" and total <= SMALL:
                kernels = dict(zip(choice.names, choice.kernels, strict=True))
                shift = selection_shift(kernels, choice.names[choice.best], self.X_fit_, self.targets_, self.splits_)
            else:
                shift = float(np.log1p(choice.optimism / max(float(choice.scores[choice.best]), np.finfo(float).tiny)))
            self._real_fits["selection"] = shift
        return float(self._real_fits["selection"]) if name == "mse" else 0.0

    def _with_real_fits(self, made: xr.Dataset, kind: str, ridge: Any, band: float, seconds: float) -> xr.Dataset:
        """Return the curve with its values from the posterior of real fits."""
        curve = self.posterior(kind, ridge, seconds=seconds)
        rows = float(len(self.targets_))
        made = made.assign(law_value=made["value"]) if kind == "mse" else made
        return posterior_curve(made, curve, kind, band, rows)

    def best_ridge(self, n: Any) -> xr.Dataset:
        """Return the ridge with the smallest expected test error for every n, and this error.

        `at_bound` is True where the ridge is an end of the range of the search.
        """
        self._fitted()
        samples = checked_counts(n)
        lam, at_bound = self._population.best_ridge(samples)
        values = self._population.errors(samples, lam)
        variables = {
            "ridge": lam,
            "test_error": values.test_error,
            "effective_ridge": values.effective_ridge,
            "at_bound": at_bound,
        }
        return labelled_dataset({name: ("n", value) for name, value in variables.items()}, {"n": samples})

    def exponent(self) -> float:
        """Return the power of n with which the error at the best ridge falls between N/2 and N points.

        The noise of the targets is subtracted from the error. The result is a local slope that follows from the spectrum and the targets.
        It is not a fit to runs, and it does not apply beyond the data.

        >>> X = np.random.default_rng(0).standard_normal((400, 20))
        >>> y = X @ np.ones(20) + np.random.default_rng(1).standard_normal(400)
        >>> bool(0.8 < Forecast("linear").fit(X, y).exponent() < 1.2)  # with few parameters the error falls like 1/n
        True
        """
        spectrum = self._fitted()
        ask = np.array([0.5, 0.999]) * spectrum.population
        errors = self._population.errors(ask, self._population.best_ridge(ask)[0]).test_error
        above = errors - min(noise_floor(spectrum), 0.999 * float(errors[1]))
        return float(np.log(above[0] / above[1]) / np.log(ask[1] / ask[0]))

    def error_over_time(self, n: Any, time: Any) -> xr.Dataset:
        """Return the expected errors of gradient flow without ridge on n of the points, stopped at each time.

        The loss is |f - y|^2 / (2n), so t steps of gradient descent with step h take the time t h. A ridge of 1/t has a similar effect. The
        dimensions of the result are n and time.
        """
        spectrum = self._fitted()
        samples, times = checked_counts(n), np.atleast_1d(np.asarray(time, dtype=float))
        pieces = [
            flow_curve(count, times, spectrum.eigenvalues, spectrum.energies, spectrum.population, spectrum.multiplicities)
            for count in samples
        ]
        values = {
            name: (("n", "time"), np.array([getattr(piece, name) for piece in pieces]))
            for name in ("test_error", "train_error")
        }
        result = labelled_dataset(values, {"n": samples, "time": times})
        return result.assign_attrs(accuracy=max(piece.accuracy for piece in pieces))

    def samples_for(self, error: float, ridge: Any = None) -> xr.Dataset:
        """Return the number of points that a test error requires, with the band of the error there.

        Parameters
        ----------
        error
            The required test error (mean square, averaged over outputs).
        ridge
            A ridge, or "best" (default: the ridge of the estimator).
        """
        self._fitted()
        if not np.isfinite(error) or error <= 0:
            raise Refused(f"error = {error!r} is not allowed: must be a finite number above 0")
        n = self._population.samples_for(error, lambda samples: self._ridge_at(samples, ridge)[0])
        curve = self.learning_curve([n], ridge, "mse", baselines=False)
        names = ("test_error", "test_error_low", "test_error_high", "extrapolated", "ridge")
        return xr.Dataset({"n": n, **{name: curve[name].item() for name in names if name in curve}})

    # -- trust --------------------------------------------------------------------------------------------------------

    def diagnose(self, ridge: Any = None) -> xr.Dataset:
        """Return the variation of the leverages and the cross-validation errors of the fit to all points, for every ridge."""
        lam = checked_ridges(self.ridge_ if ridge is None else ridge)
        values = diagnosed(self._fitted(), lam)
        return labelled_dataset({name: ("ridge", value) for name, value in values.items()}, {"ridge": lam})

    def backtest(self, ridge: Any = None) -> xr.Dataset:
        """Return forecasts of the error at N from random halves of the data, and their errors.

        `missed` is the mean logarithm of forecast over truth. It estimates the error of an extrapolation to twice the data. `trust` is
        "trusted" (below 0.02), "fair" (up to 0.07) or "doubtful".
        """
        self._fitted()
        lam = checked_ridges(self.ridge_ if ridge is None else ridge)
        forecasts, reference = self._population.backtest(lam)
        missed = np.log(forecasts / reference).mean(axis=0)
        values = {
            "forecast": (("half", "ridge"), forecasts),
            "reference": ("ridge", reference),
            "missed": ("ridge", missed),
            "trust": ("ridge", np.array([trust_of(error) for error in missed])),
        }
        return labelled_dataset(values, {"ridge": lam})

    def measure(
        self, n: Any, ridge: Any = None, splits: int = 5, seed: int = 0, order: Literal["random", "time"] = "random"
    ) -> xr.Dataset:
        """Return the errors of real fits on random subsets of the data over (n, ridge), with standard errors.

        With `order="time"` the subsets are consecutive rows, and the tests use the rows that follow. The rows must be in the order of time.
        """
        check_is_fitted(self, "coefficients_")
        lam = self.ridge_ if ridge is None else ridge
        counts = np.round(checked_counts(n))
        return measured(
            self._source(), self.X_fit_, self.targets_, counts, lam, splits, seed, classes=self.classes_ is not None,
            groups=self.groups_, order=order,
        )  # fmt: skip

    def surrogate_scores(self, n: float, ridge: Any = None, draws: int = DRAWS) -> Array:
        """Return simulated scores of every point in fits to n other points, with shape (draws, N, outputs).

        Use them to compute any metric of your own.
        """
        spectrum = self._fitted()
        (samples,) = checked_counts([n])
        if samples > spectrum.population:
            raise Refused(
                f"n = {n:g} is not allowed: must be at most N = {spectrum.population}, the number of fitted points"
            )
        return self._labelled().scores(float(samples), float(self._ridge_at(np.array([samples]), ridge)[0][0]), draws)

    def run_spread(self, n: float, ridge: Any = None, metric: Any = None) -> float:
        """Return the standard deviation of the metric over runs with random training points and the other N - n points as test points."""
        self._fitted()
        (samples,) = checked_counts([n])
        return self._labelled().run_spread(
            self._metric(metric), samples, float(self._ridge_at(np.array([samples]), ridge)[0][0])
        )

    def check_gap(self, X: Any, y: Any) -> GapReport:
        """Return tests of whether the error on test data is consistent with the training data.

        They compare the test error with its forecast, and test for inputs from another distribution and for copied rows.
        """
        inputs = self._checked(X)
        targets = (
            class_targets(np.r_[self.classes_, np.asarray(y).ravel()])[1][len(self.classes_) :]
            if self.classes_ is not None
            else as_numbers(y)
        )
        targets = np.asarray(targets, dtype=float).reshape(len(inputs), -1)
        require_finite(targets, "y")
        ridge = max(self.ridge_, 1e-9 * self.spectrum_.mean_diagonal)
        spread, scores = self._posterior_variance(inputs, ridge), self._scores(inputs)
        return gap_report(self.spectrum_, ridge, self.X_fit_, inputs, spread, targets, scores)

    def advice(self, ridge: Any = None) -> str:
        """Return a sentence on the expected effect of more data and of a better ridge.

        >>> X = np.random.default_rng(0).standard_normal((200, 30))
        >>> y = X[:, 0] + np.random.default_rng(1).standard_normal(200)
        >>> Forecast(ridge=10.0).fit(X, y).advice().split(";")[0]
        'a better ridge (0.14 instead of 10) is expected to cut the error by 40%'
        """
        return sentence(self.gains(ridge), self.ridge if ridge is None else ridge)

    def gains(self, ridge: Any = None) -> Gains:
        """Return the shares by which twice the data, and the best ridge, are expected to reduce the mean square."""
        self._fitted()
        current = self.ridge if ridge is None else ridge
        points = len(self.targets_) if hasattr(self, "targets_") else self.spectrum_.population
        ask = np.array([float(points), 2.0 * points])
        best = self.learning_curve(ask, "best", "mse", baselines=False)
        fixed = None if isinstance(current, str) else self.learning_curve(ask, current, "mse", baselines=False)
        return gains(points, best, fixed)

    # -- private ------------------------------------------------------------------------------------------------------

    def page(self) -> Page:
        """Return the plain description of the forecast, with the errors for all points and for two and four times as many."""
        if not hasattr(self, "spectrum_"):
            return Page(repr(self))
        population = int(self.spectrum_.population)
        curve = self.learning_curve([population, 2 * population, 4 * population])
        rows = []
        for i, times in enumerate((" (your data)", " (2 times)", " (4 times)")):
            row: dict[str, Any] = {"points": f"{int(curve.n[i])}{times}", "test_error": float(curve.test_error[i])}
            if "test_error_low" in curve:
                low, high = float(curve.test_error_low[i]), float(curve.test_error_high[i])
                row[f"{float(curve.attrs['band']):.0%} band"] = f"{low:.4g} to {high:.4g}"
            rows.append(row)
        title = f"{type(self).__name__} from {population} points, kernel {self.kernel}"
        return Page(title, tables=[Table(rows, digits={"test_error": 4})], sentences=[self.advice()])

    def _repr_html_(self) -> str:
        return html(self.page())

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def _labelled(self) -> Classes:
        if not hasattr(self, "labels_"):
            raise Refused("this forecast was made from a spectrum: fit it on data for metrics other than the mean square")
        return self._classes

    def _metric(self, metric: Any) -> Any:
        if metric is None:
            return "error" if self.classes_ is not None else "mse"
        if callable(metric):
            return metric
        if metric not in METRICS:
            raise Refused(
                f"metric = {metric!r} is not allowed: give one of {', '.join(METRICS)}, or a function of scores and labels"
            )
        if metric != "mse" and self.classes_ is None:
            raise Refused(
                f"metric = {metric!r} is not allowed for numbers: it needs labels, Forecast(task='classification')"
            )
        return metric

    def _ridge_at(self, samples: Array, ridge: Any) -> tuple[Array, bool]:
        wanted = self.ridge if ridge is None else ridge
        if isinstance(wanted, str):
            if wanted != "best":
                raise Refused(f"ridge = {ridge!r} is not allowed: give a number of at least 0, or 'best'")
            return self._population.best_ridge(samples)[0], True
        lam = checked_ridges(wanted)
        if lam.size != 1:
            raise Refused(f"ridge = {ridge!r} is not allowed here: give one number, or 'best'")
        return np.full(samples.shape, lam[0]), False

    def _provenance(self, samples: Array, lam: Array) -> dict[str, Any]:
        spectrum = self.spectrum_
        attrs: dict[str, Any] = {"population": spectrum.population, "rank": spectrum.rank, "kind": "forecast"}
        if spectrum.coarse is not None:
            attrs["approximation_error"] = approximation_error(spectrum, samples, lam)
        return attrs


class ForecastClassifier(ClassifierMixin, Forecast):  # type: ignore[misc]
    """`Forecast` as a classifier for scikit-learn, with labels as targets and the accuracy as score.

    >>> X = np.random.default_rng(0).standard_normal((200, 5))
    >>> model = ForecastClassifier("linear").fit(X, np.where(X[:, 0] > 0, "up", "down"))
    >>> model.predict(X[:2]).tolist(), model.score(X, np.where(X[:, 0] > 0, "up", "down")) > 0.95
    (['up', 'up'], True)
    """

    def fit(self, X: Any, y: Any, groups: Any = None, cv: Any = None) -> Self:
        """Decompose the data; y contains labels of any type."""
        task = self.task
        self.task = "classification"
        try:
            return super().fit(X, y, groups, cv)
        finally:
            self.task = task

    def decision_function(self, X: Any) -> Array:
        """Return the scores of the fit to all points, one column per output, or a vector for a single output."""
        values = self._scores(self._checked(X))
        return values[:, 0] if values.shape[1] == 1 else values

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of correct labels."""
        return Forecast.score(self, X, y, sample_weight)


def check_gap(X: Any, y: Any, X_test: Any, y_test: Any, kernel: Any = "auto", **options: Any) -> GapReport:
    """Return tests of whether the error on test data is consistent with the training data.

    The result is that of `Forecast(kernel, ...).fit(X, y).check_gap(X_test, y_test)`.

    >>> rng = np.random.default_rng(0)
    >>> X, noise = rng.standard_normal((300, 3)), 0.1 * rng.standard_normal(300)
    >>> y = X[:, 0] + noise
    >>> check_gap(X[:200], y[:200], X[200:], y[200:], kernel="linear").passed
    True
    >>> check_gap(X[:200], y[:200], X[200:] + 1, y[200:], kernel="linear").passed
    False
    """
    return Forecast(kernel, **{"task": "auto", **options}).fit(X, y).check_gap(X_test, y_test)
