"""Forecast: reference values, agreement with real fits, the estimator's contract, searches, extrapolation, training time."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limitlab
from applied.forecast_accuracy import accuracy, hidden_tail
from limitlab._core.draws import mean_and_error
from limitlab.applied.forecast import Forecast, ForecastWarning, compare_with_sklearn
from limitlab.applied.forecast import _curves as curves
from limitlab.applied.forecast._curves import Population, merged
from limitlab.applied.forecast._kernels import RandomFeatures
from limitlab.applied.forecast._spectrum import from_numbers
from limitlab.errors import UnreachableTarget
from limitlab.laws.regression.finite_population import flow_curve, learning_curve
from limitlab.models.datasets import diabetes, digits, mnist, prepared
from references import reference

CURVES = reference("forecast", "learning_curve_finite_population")
REAL = reference("forecast", "learning_curve_real_data")
S, C = 1 / np.arange(1, 41) ** 1.5, np.arange(1, 41) ** -1.2 / 2


def regression(rows=300, columns=12, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns)) / np.sqrt(columns)
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + noise * rng.standard_normal(rows)


# -- reference values ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", CURVES, ids=lambda entry: f"N={entry['inputs']['N']}")
def test_reference_values_from_a_spectrum(entry):
    inputs = entry["inputs"]
    made = Forecast.from_spectrum(inputs["gram_eigenvalues_over_N"], inputs["target_energy_per_mode"], inputs["N"])
    found = made.predict_error(inputs["n"], inputs["ridge_lambda"])
    assert found.test_error.dims == ("n", "ridge")
    np.testing.assert_allclose(found.test_error.values[0], entry["outputs"]["test_on_rest"], rtol=1e-10)
    np.testing.assert_allclose(found.effective_ridge.values[0], entry["outputs"]["kappa"], rtol=1e-10)


@pytest.mark.parametrize("entry", REAL, ids=lambda e: f"{e['inputs']['dataset']}-{e['inputs']['kernel']}-{e['inputs']['n']}")
def test_reference_values_from_data(entry):
    inputs = entry["inputs"]
    X, y = prepared(inputs["dataset"])
    if inputs["kernel"] == "linear":
        model = Forecast("linear", intercept=0.3 if inputs["dataset"] == "digits" else 0.5)
    else:
        model = fitted_digits_rbf()
    found = (model if hasattr(model, "spectrum_") else model.fit(X, y)).predict_error(inputs["n"], inputs["ridge_lambda"])
    np.testing.assert_allclose(found.test_error.values[0], entry["outputs"]["test_theory_finite_population"], rtol=1e-5)


_CACHE = {}


def fitted_digits_rbf():
    if "rbf" not in _CACHE:
        _CACHE["rbf"] = Forecast("rbf", gamma=2.0, ridge=1e-3).fit(*prepared("digits"))
    return _CACHE["rbf"]


def test_each_points_leverage_repairs_the_known_failure():
    """Digits with a Gaussian kernel, few degrees of freedom left: the law is off by a tenth, the corrected one by little."""
    model = fitted_digits_rbf()
    measured = model.measure([1200], [1e-3], splits=3)
    found = model.predict_error([1200], [1e-3], corrected=True)
    law = found.test_error.item() / measured.test_error.item() - 1
    corrected = found.corrected_test_error.item() / measured.test_error.item() - 1
    assert law < -0.05
    assert abs(corrected) < 0.05


# -- against real fits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "rbf", "relu-nngp", "random-features"])
def test_forecast_agrees_with_real_fits(kernel):
    X, y = prepared("diabetes")
    model = Forecast(kernel, width=150, intercept=0.3).fit(X, y)
    n, ridge = [80, 200], [1e-2, 1e-1]
    found, real = model.predict_error(n, ridge), model.measure(n, ridge, splits=30)
    # five standard errors of the measurement, and 3 % for the law, which is what its diagnostic promises here
    allowed = 5 * real.test_error_standard_error.values + 0.03 * real.test_error.values
    assert (np.abs(found.test_error - real.test_error).values < allowed).all()
    spread = 5 * real.train_error_standard_error.values + 0.03 * real.train_error.values
    assert (np.abs(found.train_error - real.train_error).values < spread).all()


def test_a_wrong_law_is_noticed():
    """The same gate refuses the law of independent draws where the population is nearly used up."""
    X, y = regression(rows=300, columns=100)
    model = Forecast("linear").fit(X, y)
    s, c, m = model.spectrum_.eigenvalues, model.spectrum_.energies, model.spectrum_.multiplicities
    real = model.measure([200], [1e-3], splits=30)
    error, value = 5 * real.test_error_standard_error.item() + 0.03 * real.test_error.item(), real.test_error.item()
    assert abs(model.predict_error(200, 1e-3).test_error.item() - value) < error
    assert abs(float(learning_curve(200, 1e-3, s, c, np.inf, m).test_error) - value) > error


def test_real_fits_are_those_of_scikit_learn():
    """The same subset, other code."""
    from sklearn.kernel_ridge import KernelRidge

    X, y = regression(150, 5)
    ours = Forecast("rbf", gamma=2.0).fit(X, y).measure([60], [0.01], splits=1, seed=4)
    order = np.random.default_rng([4, 0, 60]).permutation(150)
    inside, outside = order[:60], order[60:]
    theirs = KernelRidge(alpha=0.6, kernel="rbf", gamma=2.0).fit(X[inside], y[inside])
    for name, rows in (("test_error", outside), ("train_error", inside)):
        assert ours[name].item() == pytest.approx(np.mean((theirs.predict(X[rows]) - y[rows]) ** 2), rel=1e-9)


def test_scikit_learns_learning_curve_agrees():
    """The same model on other random subsets, at five standard errors."""
    X, y = regression(150, 5)
    ours = Forecast("rbf").fit(X, y).measure([60], [0.01], splits=40)
    theirs = compare_with_sklearn(X, y, [60], [0.01], splits=40)
    for name in ("test_error", "train_error"):
        error = np.sqrt(2) * ours[f"{name}_standard_error"].item()
        assert abs(ours[name].item() - theirs[name].item()) < 5 * error


def test_features_and_gram_matrix_give_the_same_answer():
    X, y = regression(120, 8)
    direct = Forecast("linear", intercept=0.5).fit(X, y)
    gram = Forecast("precomputed").fit(X @ X.T + 0.25, y)
    own = Forecast(lambda A, B: A @ B.T, intercept=0.5).fit(X, y)
    wanted = direct.predict_error([20, 60], [0.0, 0.1], corrected=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ForecastWarning)
        for other in (gram, own):
            found = other.predict_error([20, 60], [0.0, 0.1], corrected=True)
            for name in wanted:
                np.testing.assert_allclose(found[name], wanted[name], rtol=1e-7)
    np.testing.assert_allclose(gram.predict(X @ X.T + 0.25), direct.predict(X), rtol=1e-8)
    np.testing.assert_allclose(own.predict(X), direct.predict(X), rtol=1e-8)


def test_prediction_is_kernel_ridge():
    from sklearn.kernel_ridge import KernelRidge

    X, y = regression(80, 4)
    for name, options in (("rbf", {"gamma": 0.7}), ("linear", {})):
        ours = Forecast(name, ridge=0.05, **options).fit(X, y).predict(X[:10] + 0.1)
        theirs = KernelRidge(alpha=0.05 * 80, kernel=name, **options).fit(X, y).predict(X[:10] + 0.1)
        np.testing.assert_allclose(ours, theirs, rtol=1e-7)


def test_several_outputs_are_averaged():
    X, y = regression()
    Y = np.column_stack([y, np.cos(X[:, 2]), X[:, 3] ** 2])
    both = Forecast("rbf").fit(X, Y)
    alone = [Forecast("rbf").fit(X, column).predict_error([50], [0.01]).test_error.item() for column in Y.T]
    np.testing.assert_allclose(both.predict_error([50], [0.01]).test_error.item(), np.mean(alone), rtol=1e-9)
    assert both.predict(X).shape == Y.shape


def test_labels_become_one_hot_targets():
    X, label = digits()
    X, label = (X[:400] - X.mean(axis=0)) / 16, np.array(["even", "odd"])[label[:400] % 2]
    model = Forecast("rbf", classify=True, ridge=1e-3).fit(X, label)
    assert set(model.predict(X)) <= {"even", "odd"}
    assert model.score(X, label) > 0.97
    real = model.measure([200], splits=8)
    assert 0.01 < real.classification_error.item() < 0.15
    assert abs(model.predict_error([200], corrected=True).corrected_test_error.item() / real.test_error.item() - 1) < 0.1


def test_random_features_of_any_activation():
    X, y = regression(100, 6)
    by_name = Forecast("random-features", width=40, activation="tanh", random_state=3).fit(X, y)
    by_map = Forecast(RandomFeatures(40, np.tanh, seed=3)).fit(X, y)
    np.testing.assert_allclose(by_name.predict(X), by_map.predict(X), rtol=1e-9)
    assert by_name.spectrum_.rank == 40


def test_preprocessing_in_a_pipeline():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = diabetes()
    pipe = make_pipeline(StandardScaler(), Forecast("rbf", intercept=1.0)).fit(X, (y - y.mean()) / y.std())
    assert 0.4 < pipe[-1].predict_error([200], [0.05]).test_error.item() < 0.7


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_scikit_learns_own_checks(kernel):
    from sklearn.utils.estimator_checks import check_estimator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(Forecast(kernel))


def test_top_level_name():
    assert limitlab.Forecast is Forecast


# -- approximations -----------------------------------------------------------------------------------------------------


def test_nystrom_states_an_error_that_holds():
    X, y = prepared("digits")
    X, y = X[:1000], y[:1000]
    exact = Forecast("rbf", ridge=0.01).fit(X, y)
    rough = Forecast("rbf", ridge=0.01, method="nystrom", rank=300).fit(X, y)
    n, ridge = [50, 200, 600], [1e-2, 1e-1]
    found, wanted = rough.predict_error(n, ridge), exact.predict_error(n, ridge)
    gap = float(np.abs(found.test_error / wanted.test_error - 1).max())
    assert gap <= max(found.attrs["approximation_error"], 1e-6)
    assert found.attrs["approximation_error"] < 0.2
    assert np.corrcoef(rough.predict(X), exact.predict(X))[0, 1] > 0.99


def test_nystrom_of_full_rank_is_exact():
    X, y = regression(100, 4)
    exact, full = Forecast("rbf").fit(X, y), Forecast("rbf", method="nystrom", rank=100).fit(X, y)
    np.testing.assert_allclose(
        full.predict_error([30], [0.1]).test_error, exact.predict_error([30], [0.1]).test_error, rtol=1e-6
    )


def test_single_precision():
    X, y = regression()
    double, single = (Forecast("rbf", dtype=dtype).fit(X, y) for dtype in ("float64", "float32"))
    n, ridge = [50, 200], [1e-3, 1e-1]
    found = single.predict_error(n, ridge)
    np.testing.assert_allclose(found.test_error, double.predict_error(n, ridge).test_error, rtol=1e-4)
    assert single.spectrum_.vectors.dtype == np.float32


# -- searches -----------------------------------------------------------------------------------------------------------


def test_best_ridge_is_a_minimum():
    model = Forecast("rbf").fit(*regression())
    best = model.best_ridge([40, 250, 600])
    assert not best.at_bound.any()
    for i, n in enumerate(best.n.values):
        nearby = model._population.errors(n, best["ridge"].values[i] * np.array([0.7, 1.0, 1.4])).test_error
        assert nearby[1] == nearby.min()
    assert (np.diff(best["ridge"]) < 0).all()  # more data, less ridge


def test_samples_for_inverts_the_curve():
    model = Forecast("linear", ridge=0.1).fit(*regression())
    wanted = model.learning_curve([100]).test_error.item()
    assert abs(model.samples_for(wanted * 1.0001).n.item() - 100) <= 1
    assert model.samples_for(wanted * 0.98).n.item() > 100
    with pytest.raises(UnreachableTarget, match=r"error = .* cannot be reached"):
        model.samples_for(1e-3)


def test_merged_eigenvalues_change_little():
    made = from_numbers(S, C, 60)
    full, few = (Population(one).errors([10, 30], 0.01).test_error for one in (made, merged(made)))
    np.testing.assert_allclose(few, full, rtol=1e-4)


def test_repeated_eigenvalues_are_multiplicities():
    once = learning_curve([10, 25], [[0.0], [0.1]], [1.0, 1.0, 1.0, 0.2, 0.2, 0.0], [0.1, 0.2, 0.3, 0.1, 0.4, 0.5], 30)
    twice = learning_curve([10, 25], [[0.0], [0.1]], [1.0, 0.2, 0.0], [0.6, 0.5, 0.5], 30, [3, 2, 25])
    for first, second in zip(once, twice, strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-12)


# -- beyond the data ----------------------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(log_ridge=st.floats(-3, 1))
def test_curve_is_continuous_at_the_end_of_the_data(log_ridge):
    made = Population(from_numbers(S, C, 60))
    below, beyond = made.errors([60 - 1e-6, 60], 10**log_ridge).test_error
    assert beyond == pytest.approx(below, rel=1e-3)


@pytest.mark.parametrize("population", [40, 60])
def test_extrapolation_without_ridge(population):
    """With more points than directions least squares is unbiased: the error falls; with fewer it is finite all the same."""
    made = Forecast.from_spectrum(S, C, population).learning_curve([population, 2 * population, 10 * population], 0.0)
    assert np.isfinite(made.test_error).all()
    assert (made.test_error >= 0).all()


def test_extrapolation_follows_the_population():
    """Gaussian inputs with a known spectrum: a forecast from 400 points against the law of independent draws."""
    rng = np.random.default_rng(2)
    s = np.arange(1, 301) ** -1.2
    X = rng.standard_normal((400, 300)) * np.sqrt(s)
    beta = rng.standard_normal(300) * 0.3
    y = X @ beta + 0.3 * rng.standard_normal(400)
    curve = Forecast("linear", ridge=1e-2).fit(X, y).learning_curve([400, 1600, 6400])
    for i, n in enumerate((400, 1600, 6400)):
        truth = float(learning_curve(n, 1e-2, np.r_[s, 0], np.r_[s * beta**2, 0.09]).test_error)
        assert curve.test_error_low[i] <= truth <= curve.test_error_high[i]
        assert abs(curve.test_error.values[i] / truth - 1) < 0.15
    assert curve.extrapolated.values.tolist() == [False, True, True]


def test_band_shrinks_with_the_data_and_hidden_halves_are_reported():
    wide, narrow = (Forecast("linear", ridge=0.1).fit(*regression(rows)) for rows in (100, 1600))
    widths = []
    for model in (wide, narrow):
        curve = model.learning_curve([50])
        widths.append(np.log(curve.test_error_high / curve.test_error_low).item())
    assert 2.5 < widths[0] / widths[1] < 6.5  # a factor 4 for 16 times the data
    check = narrow.backtest([0.1])
    assert check.forecast.shape == (6, 1)
    assert abs(check.missed.item()) < 0.02
    assert check.trust.item() == "trusted"


def test_band_covers_the_population():
    """Nineteen bands of twenty should hold the truth; fewer than 15 of 20 would be far off."""
    rng = np.random.default_rng(5)
    s = np.full(10, 0.1)
    truth = float(learning_curve(80, 0.05, np.r_[s, 0], np.r_[np.full(10, 0.1), 0.25]).test_error)
    held = 0
    for _ in range(20):
        X = rng.standard_normal((200, 10)) * np.sqrt(0.1)
        y = X @ np.ones(10) + 0.5 * rng.standard_normal(200)
        curve = Forecast("linear", ridge=0.05).fit(X, y).learning_curve([80])
        held += bool(curve.test_error_low.item() <= truth <= curve.test_error_high.item())
    assert held >= 15


def test_population_functions_are_made_once_per_spectrum(monkeypatch):
    """The spectrum of all points, the merged one that searches use, and that of each of the six halves."""
    made = []

    class Counted(curves.PopulationFunctions):
        def __init__(self, spectrum, correction=None, largest_ridge=0.0):
            made.append(spectrum)
            super().__init__(spectrum, correction, largest_ridge)

    monkeypatch.setattr(curves, "PopulationFunctions", Counted)
    forecast = Forecast("rbf").fit(*regression(rows=100))
    forecast.learning_curve([50, 100, 150, 200])
    forecast.samples_for(0.9)
    forecast.advice()
    forecast.backtest()
    forecast.exponent()
    assert len(made) == 8
    assert len({id(spectrum) for spectrum in made}) == 8


@pytest.mark.slow
def test_hidden_tail_of_mnist():
    found = hidden_tail(ridges=(1e-2,))
    assert sum(row.inside for row in found) >= 3, found


@pytest.mark.slow
def test_accuracy_on_small_data_sets():
    rows = [row for row in accuracy(("diabetes", "digits")) if row.ridge >= 1e-3]
    gaps = np.abs([row.law_gap for row in rows])
    assert np.median(gaps) <= 0.02
    assert gaps.max() <= 0.12


# -- training time ------------------------------------------------------------------------------------------------------


def test_flow_starts_at_nothing_and_ends_at_least_norm():
    made = Forecast.from_spectrum(S, C, 60)
    found = made.error_over_time([15], [0.0, 1e-3, 1e9, np.inf])
    end = made.predict_error([15], [0.0])
    assert found.test_error.values[0, 0] == pytest.approx(C.sum())
    assert found.test_error.values[0, 1] == pytest.approx(C.sum(), rel=1e-2)
    assert found.test_error.values[0, 3] == end.test_error.item()
    assert found.test_error.values[0, 2] == pytest.approx(end.test_error.item(), rel=1e-6)
    assert (np.diff(found.train_error.values[0]) <= 1e-12).all()
    assert found.attrs["accuracy"] < 1e-9


def test_flow_of_independent_draws_is_the_law_of_early_stopping():
    from limitlab.laws.regression.early_stopping import risk

    times = np.array([0.5, 5.0, 50.0])
    ours = flow_curve(15, times, np.r_[S, 0], np.r_[C, 0.04])
    theirs = risk(times, 40 / 15, 0.2, S, np.full(40, 1 / 40), C / S)
    np.testing.assert_allclose(ours.test_error, theirs["test_error"], rtol=1e-8)
    np.testing.assert_allclose(ours.train_error, theirs["train_error"], rtol=1e-6)


def test_flow_agrees_with_real_training():
    X, y = prepared("diabetes")
    model = Forecast("linear", intercept=0.3).fit(X, y)
    table, n, times = model.kernel_.table(X), 150, np.array([3.0, 30.0, 300.0])
    errors = []
    for seed in range(40):
        order = np.random.default_rng(seed).permutation(len(X))
        A, b, rest = table[order[:n]], y[order[:n]], order[n:]
        values, vectors = np.linalg.eigh(A.T @ A / n)
        start = vectors.T @ A.T @ b / n
        shares = [-np.expm1(-t * values) / np.where(values > 1e-12, values, 1) * (values > 1e-12) for t in times]
        errors.append([np.mean((table[rest] @ (vectors @ (share * start)) - y[rest]) ** 2) for share in shares])
    mean, error = mean_and_error(errors)
    found = model.error_over_time([n], times).test_error.values[0]
    assert (np.abs(found - mean) < 5 * error + 0.01 * mean).all()


# -- data ---------------------------------------------------------------------------------------------------------------


def test_mnist_is_whole():
    X, y = mnist()
    assert X.shape == (8000, 784)
    assert 0 <= X.min() < X.max() <= 1
    assert np.bincount(y).min() > 600
    assert (mnist("test").y == y[4000:]).all()


# -- rows that belong together -------------------------------------------------------------------------------------------------


def test_new_groups_are_harder_than_new_rows():
    """Rows of a group share an offset in inputs and target: leaving out rows is too good, leaving out groups is what real fits say."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 6)
    place, level = rng.standard_normal((40, 3)), rng.standard_normal(40)
    X = place[groups] + 0.05 * rng.standard_normal((240, 3))
    y = level[groups] + 0.1 * rng.standard_normal(240)
    with pytest.warns(ForecastWarning, match="errors on new groups are"):
        model = Forecast("rbf", ridge=1e-3, gamma=1.0).fit(X, y, groups=groups)
    assert model.group_ratio_ > 3
    apart = model.measure([180], splits=6).test_error.item()
    together = Forecast("rbf", ridge=1e-3, gamma=1.0).fit(X, y).measure([180], splits=6).test_error.item()
    assert apart > 3 * together
    with pytest.raises(ValueError, match="groups of shape"):
        Forecast().fit(X, y, groups=groups[:5])


def test_rows_in_time_are_tested_on_those_that_follow():
    """A target that drifts: later rows are harder than rows drawn at random."""
    rng = np.random.default_rng(1)
    time = np.linspace(0, 1, 400)
    X = np.column_stack([time, rng.standard_normal((400, 2))])
    y = 5 * time**2 + X[:, 1] + 0.1 * rng.standard_normal(400)
    model = Forecast("rbf", ridge=1e-3, intercept=1.0).fit(X - X.mean(axis=0), y - y.mean())
    assert (
        model.measure([200], splits=4, order="time").test_error.item() > 2 * model.measure([200], splits=4).test_error.item()
    )


def test_groups_choose_the_kernel():
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(30), 5)
    X = rng.standard_normal((150, 4)) / 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ForecastWarning)
        model = Forecast("auto").fit(X, X[:, 0] + 0.1 * rng.standard_normal(150), groups=groups)
    assert model.kernel_scores_[0]["chosen"]
    assert 0.8 < model.group_ratio_ < 1.3
