"""Forecasts of labels: real error rates and areas computed elsewhere, below and beyond the data; metrics, bands, what is refused."""

import itertools
import warnings
from functools import cache

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn import datasets as sklearn_datasets

from limitlab.applied.forecast import Forecast, ForecastClassifier, ForecastWarning
from limitlab.applied.forecast._metrics import auc, error_rate
from references import reference

INSIDE = reference("forecast_classification", "forecast_classification")
BEYOND = reference("forecast_classification", "forecast_classification_beyond")
KERNELS = {
    "exp(-|x-x'|^2) + 0.09": lambda A, B: np.exp(-(cdist(A, B) ** 2)) + 0.09,
    "<x,x'> + 0.09": lambda A, B: A @ B.T + 0.09,
    "exp(-|x-x'|) + 0.09": lambda A, B: np.exp(-cdist(A, B)) + 0.09,
}


@cache
def data(name):
    if name.startswith("digits"):
        X, digit = sklearn_datasets.load_digits(return_X_y=True)
        X = X - X.mean(axis=0)
        y = {"digits_eo": 1 - 2 * (digit % 2), "digits9": np.where(digit == 9, 1, -1), "digits10": digit}[name]
    elif name == "wine":
        X, y = sklearn_datasets.load_wine(return_X_y=True)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    else:
        X, y = sklearn_datasets.make_moons(3000, noise=0.3, random_state=0)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X / np.sqrt((X**2).sum(axis=1).mean()), y


def groups():
    key = lambda entry: (entry["inputs"]["data"], entry["inputs"]["kernel"])  # noqa: E731
    return [list(found) for _, found in itertools.groupby(sorted(INSIDE, key=key), key)]


@pytest.mark.parametrize("entries", groups(), ids=lambda one: f"{one[0]['inputs']['data']}, {one[0]['inputs']['kernel']}")
def test_error_and_area_of_real_fits_below_the_data(entries):
    """Within the tolerance of the file: 3 standard errors plus 10 % of the error (0.3 points at least), 0.01 of the area."""
    first = entries[0]["inputs"]
    model = Forecast(KERNELS[first["kernel"]], task="classification").fit(*data(first["data"]))
    for entry in entries:
        given, wanted = entry["inputs"], entry["outputs"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ForecastWarning)  # of few points per class, in wine
            rate, area = (model.learning_curve([given["n"]], given["ridge"], name).value.item() for name in ("error", "auc"))
        room = 3 * wanted["error_standard_error"] + max(0.1 * wanted["error"], 0.003)
        assert abs(rate - wanted["error"]) < room, (given["n"], rate, wanted["error"])
        assert abs(area - wanted["auc"]) < 3 * wanted["auc_standard_error"] + 0.01, (given["n"], area, wanted["auc"])


@pytest.mark.parametrize("entry", [BEYOND[0], *(pytest.param(one, marks=pytest.mark.slow) for one in BEYOND[1:])])
def test_error_of_real_fits_beyond_the_data(entry):
    """Twelve draws of the known points: the mean forecast within 3 standard errors plus 15 % (0.5 points at least)."""
    given, wanted = entry["inputs"], entry["outputs"]
    X, y = data(given["data"])
    found = []
    for draw in range(12):
        rows = np.random.default_rng(draw).permutation(len(X))[: given["known"]]
        model = Forecast(KERNELS[given["kernel"]], task="classification").fit(X[rows], y[rows])
        curve = model.learning_curve([given["n"]], given["ridge"], "error", baselines=False)
        found.append(curve.value.item())
    assert abs(np.mean(found) - wanted["error"]) < 3 * wanted["error_standard_error"] + max(0.15 * wanted["error"], 0.005)


@pytest.mark.slow
@pytest.mark.parametrize(("several", "median", "decile"), [(False, 0.06, 0.10), (True, 0.05, 0.15)])
def test_typical_and_rare_errors_over_all_cases(several, median, decile):
    """Relative errors of all cases of the file, two classes and several: median and ninth decile."""
    models, gaps = {}, []
    for entry in INSIDE:
        given = entry["inputs"]
        key = given["data"], given["kernel"]
        if (given["data"] in ("digits10", "wine")) is not several:
            continue
        if key not in models:
            models[key] = Forecast(KERNELS[given["kernel"]], task="classification").fit(*data(given["data"]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ForecastWarning)
            gaps.append(
                models[key].learning_curve([given["n"]], given["ridge"]).value.item() / entry["outputs"]["error"] - 1
            )
    assert np.median(np.abs(gaps)) < median, gaps
    assert np.quantile(np.abs(gaps), 0.9) < decile, gaps


# -- the interface ---------------------------------------------------------------------------------------------------------------


@cache
def small():
    X, y = data("digits10")
    return X[:400], y[:400]


def test_metrics_agree_with_each_other_and_with_a_function():
    X, y = small()
    model = Forecast("rbf", ridge=1e-3, task="classification").fit(X, y)
    error, accuracy = (model.learning_curve([100, 200], metric=name).value.values for name in ("error", "accuracy"))
    np.testing.assert_allclose(error + accuracy, 1, atol=1e-12)
    own = model.learning_curve(
        [100, 200], metric=lambda scores, labels: np.mean(scores.argmax(axis=1) != labels)
    ).value.values
    np.testing.assert_allclose(own, error, atol=1e-12)
    curve = model.learning_curve([100, 200, 800], baselines=False)
    assert (curve.low < curve.value).all()
    assert (curve.value < curve.high).all()
    assert curve.value.values[2] < curve.last_value.values[2] < curve.value.values[0]
    assert curve.extrapolated.values.tolist() == [False, False, True]
    assert curve.trust.values[2] in ("trusted", "fair", "doubtful")


def test_real_runs_scatter_as_predicted():
    X, y = data("digits_eo")
    X, y = X[:600], y[:600]
    model = Forecast("rbf", ridge=1e-3, task="classification").fit(X, y)
    spread = model.run_spread(150)
    runs = []
    for seed in range(60):
        order = np.random.default_rng(seed).permutation(600)
        fit = Forecast("rbf", ridge=1e-3, task="classification", gamma=1.0).fit(X[order[:150]], y[order[:150]])
        runs.append(1 - fit.score(X[order[150:]], y[order[150:]]))
    assert 0.6 < spread / np.std(runs, ddof=1) < 1.6


def test_labels_of_any_kind_and_the_classifier_of_scikit_learn():
    X, y = small()
    words = np.array(["odd", "even"])[(y % 2 == 0).astype(int)]
    model = Forecast("rbf", ridge=1e-3, task="auto").fit(X, words)
    classifier = ForecastClassifier("rbf", ridge=1e-3).fit(X, words)
    assert model.classes_.tolist() == ["even", "odd"]
    assert (model.predict(X) == classifier.predict(X)).all()
    assert ((classifier.decision_function(X) > 0) == (classifier.predict(X) == "odd")).all()
    assert classifier.score(X, words) > 0.97
    assert Forecast("rbf", task="auto").fit(X, X[:, 20]).classes_ is None


def test_what_is_refused():
    X, y = small()
    numbers = Forecast("rbf").fit(X, X[:, 20])
    labels = Forecast("rbf", task="classification").fit(X, y)
    with pytest.raises(ValueError, match="metric = 'error' is not allowed for numbers"):
        numbers.learning_curve([50], metric="error")
    with pytest.raises(ValueError, match="metric = 'auk' is not allowed: give one of mse, error, accuracy, auc"):
        labels.learning_curve([50], metric="auk")
    with pytest.raises(ValueError, match=r"n = 800 is not allowed.*at most N = 400"):
        labels.learning_curve([800], metric=lambda scores, labels: 0.0)
    with pytest.raises(ValueError, match="must be at most N = 400"):
        labels.surrogate_scores(401)
    with pytest.warns(ForecastWarning, match="points of the rarest class"):
        labels.learning_curve([30])


def test_rates_by_hand():
    scores, truth = np.array([[0.1], [0.4], [0.35], [0.8]]), np.array([[-1.0], [-1.0], [1.0], [1.0]])
    assert error_rate(scores, truth) == 0.5
    assert auc(scores, truth) == 0.75
    three = np.eye(3)[[0, 1, 2, 0]]
    assert error_rate(three[:, [0, 2, 1]], three) == 0.5
    assert auc(three, three) == 1.0
