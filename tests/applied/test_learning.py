"""The posterior over learning curves, nested fits, splits, and forecasts of any estimator."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from limitlab.applied.forecast import Forecast, forecast_model, forecast_other
from limitlab.applied.forecast._kernels import make_kernel
from limitlab.applied.forecast._learning import Measurement, from_rows, from_splits, posterior, trust_word
from limitlab.applied.forecast._nested import RIDGE_GRID, RidgeSolver, kernel_losses, make_splits, row_losses
from limitlab.applied.forecast._own_model import parse_estimator, scoring_of
from limitlab.errors import Refused

SIZES = np.array([20.0, 40.0, 80.0, 160.0, 320.0])


def curve_of(b, q, n, level=0.3):
    return level * ((1 - q) * (n / SIZES[-1]) ** -b + q)


# -- the posterior ----------------------------------------------------------------------------------------------------------


def test_quantiles_are_calibrated_for_curves_of_the_prior():
    """Curves drawn from the prior and measured with correlated noise: the bands at 4 times the largest size hold nine of ten."""
    rng = np.random.default_rng(0)
    covariance = 0.02 * 0.7 + np.diag(np.full(5, 0.02 * 0.3))
    held, below = 0, 0
    for _ in range(200):
        b, q = 0.6 * np.exp(0.7 * rng.standard_normal()), rng.beta(1, 2)
        noise = rng.multivariate_normal(np.zeros(5), covariance)
        made = posterior(Measurement(SIZES, curve_of(b, q, SIZES) * np.exp(noise), covariance), backtest=False)
        low, middle, high = made.quantiles([4 * SIZES[-1]], [0.05, 0.5, 0.95])[:, 0]
        truth = curve_of(b, q, 4 * SIZES[-1])
        held += low <= truth <= high
        below += truth < middle
    assert 170 <= held <= 197
    assert 75 <= below <= 125


def test_a_kink_at_the_largest_size_widens_the_band():
    covariance = np.diag(np.full(5, 1e-4))
    smooth = Measurement(SIZES, curve_of(0.5, 0.1, SIZES), covariance)
    kinked = Measurement(SIZES, smooth.values * np.array([1, 1, 1, 1, 1.5]), covariance)
    widths = []
    for measured in (smooth, kinked):
        made = posterior(measured)
        low, high = made.quantiles([1280], [0.05, 0.95])[:, 0]
        widths.append(np.log(high / low))
    assert widths[1] > 1.5 * widths[0]
    assert posterior(smooth).trust([320]) == ["trusted"]
    assert posterior(kinked).trust([1280]) == ["doubtful"]


def test_errors_that_rise_with_time():
    values = 0.1 * (SIZES / 20) ** 0.4
    measured = Measurement(SIZES, values, np.diag(np.full(5, 1e-3)))
    falling, rising = posterior(measured), posterior(measured, rising=True)
    assert abs(rising.quantiles([320], [0.5])[0, 0] / values[-1] - 1) < 0.1
    assert falling.quantiles([5120], [0.5])[0, 0] < 1.05 * values[-1]
    assert rising.quantiles([5120], [0.5])[0, 0] > 1.5 * values[-1]


def test_standard_errors_of_shares_are_those_of_independent_rows():
    """The scatter over 300 data sets of the error of a fixed rule, against the covariance of a single data set."""
    rng = np.random.default_rng(1)
    values, errors = [], []
    for _ in range(300):
        wrong = (rng.random(200) < 0.2).astype(float)
        losses, tested = np.stack([wrong, wrong]), np.ones((2, 200))
        means = np.stack([wrong.reshape(10, 20).mean(axis=1)] * 2)
        made = from_rows(np.array([50.0, 100.0]), losses, tested, means, labels=True)
        values.append(np.log(made.values[1]))
        errors.append(np.sqrt(made.covariance[1, 1]))
    assert 0.85 < np.mean(errors) / np.std(values) < 1.2


def test_no_mistake_is_half_a_mistake():
    made = from_rows(np.array([10.0, 20.0]), np.zeros((2, 40)), np.ones((2, 40)), np.zeros((2, 4)), labels=True)
    assert made.values.tolist() == [0.5 / 40, 0.5 / 40]
    assert made.covariance[0, 0] == pytest.approx(2.0)
    assert from_splits(np.array([10.0, 20.0]), np.zeros((2, 4)), 0.1, 0.01).values.tolist() == [0.01, 0.01]


def test_the_second_opinion_loses_its_weight_if_its_backtest_is_bad():
    measured = Measurement(SIZES, curve_of(0.5, 0.1, SIZES), np.diag(np.full(5, 1e-4)))
    made = posterior(measured)
    flat = lambda n: np.zeros(len(n))  # noqa: E731
    good, bad = made.with_theory(flat, 320, 0.0), made.with_theory(flat, 320, 1.0)
    assert good.theory.mean() > 0.5
    assert bad.theory.mean() < 0.01
    assert good.quantiles([1280], [0.5])[0, 0] > bad.quantiles([1280], [0.5])[0, 0]


# -- splits and nested fits -----------------------------------------------------------------------------------------------------


def test_no_row_is_in_training_and_test():
    groups = np.repeat(np.arange(12), 5)
    for made in (
        make_splits(60),
        make_splits(60, labels=np.arange(60) % 3),
        make_splits(60, groups=groups),
        make_splits(60, cv="time"),
        make_splits(60, cv=KFold(4)),
    ):
        for train, test in made.splits:
            assert not np.intersect1d(train, test).size
            if made.kind == "groups":
                assert not np.intersect1d(groups[train], groups[test]).size
            if made.kind == "time":
                assert train[0] == train.max() < test.min()
    assert make_splits(60, groups=groups, cv=GroupKFold(4)).kind == "groups"
    assert make_splits(60, cv=TimeSeriesSplit(4)).kind == "time"
    for wrong, words in (
        ("week", "give 'time'"),
        ([(np.arange(5), np.arange(5))] * 2, "must differ"),
        (KFold(100), "cannot split"),
    ):
        with pytest.raises(Refused, match=words):
            make_splits(60, cv=wrong)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_left_out_errors_by_hand(kernel):
    """Leave-one-out of the solver, for features and for a Gram matrix, against fits without each row; also at a ridge of 1e-9."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((12, 3))
    y = X[:, :1] + rng.standard_normal((12, 1))
    made = make_kernel(kernel, X)
    grid = np.array([1e-9, 1e-2, 1.0])
    solver = RidgeSolver(made, X, np.arange(12), y, grid)
    gram = made(X, X)
    for k, shift in enumerate(solver.shifts):
        errors = []
        for i in range(12):
            rest = np.delete(np.arange(12), i)
            guess = gram[i, rest] @ np.linalg.solve(gram[np.ix_(rest, rest)] + shift * np.eye(11), y[rest])
            errors.append(float((guess - y[i]).item() ** 2))
        np.testing.assert_allclose(solver.left_out_rows()[:, k], errors, rtol=1e-3 if shift < 1e-6 else 1e-8)


def test_nested_losses_are_those_of_scikit_learn():
    from sklearn.kernel_ridge import KernelRidge

    rng = np.random.default_rng(3)
    X = rng.standard_normal((50, 3))
    y = np.sin(X[:, :1]) + 0.1 * rng.standard_normal((50, 1))
    splits = make_splits(50)
    losses = kernel_losses(make_kernel("rbf", X, gamma=0.3), X, y, False, splits, np.array([20, 40]), lambda n: 0.01)
    for j, size in enumerate((20, 40)):
        inside = splits.splits[0].train[:size]
        outside = np.setdiff1d(np.arange(50), inside)
        model = KernelRidge(alpha=0.01 * size, kernel="rbf", gamma=0.3).fit(X[inside], y[inside])
        assert losses.means[0, j, 0] == pytest.approx(np.mean((model.predict(X[outside]) - y[outside]) ** 2), rel=1e-9)


def test_losses_of_rows():
    one = row_losses(np.array([[0.5], [-0.5]]), np.array([[1.0], [1.0]]), labels=True)
    assert one.tolist() == [[0.25, 2.25], [0.0, 1.0]]


def test_small_ridges_are_found():
    """A smooth function without noise needs a ridge far below a millionth, and the search goes there."""
    rng = np.random.default_rng(4)
    X = rng.uniform(-1, 1, (300, 2))
    y = np.sin(2 * X[:, :1]) * X[:, 1:]
    losses = kernel_losses(make_kernel("rbf", X), X, y, False, make_splits(300), np.array([135.0, 270.0]))
    assert losses.ridges[-1] < 1e-7
    fixed = kernel_losses(make_kernel("rbf", X), X, y, False, make_splits(300), np.array([135.0, 270.0]), lambda n: 1e-6)
    assert losses.means[0, -1].mean() < 0.5 * fixed.means[0, -1].mean()
    assert RIDGE_GRID[0] < 1e-9


# -- labels ---------------------------------------------------------------------------------------------------------------------


def test_forecasts_of_noisy_labels_are_not_optimistic():
    """Five ordered labels with noise, 120 rows: forecast over truth at four times the rows, and the bands."""
    from scipy.special import ndtr

    def draw(count, rng):
        X = rng.standard_normal((count, 5))
        return X / np.sqrt(5), np.clip(np.round(3 + X[:, 0] + 0.5 * rng.standard_normal(count)), 1, 5).astype(int)

    test, fits = draw(20_000, np.random.default_rng(99)), []
    for seed in range(4):
        model = Forecast("rbf", gamma=0.3, intercept=1.0, task="classification").fit(
            *draw(480, np.random.default_rng([seed, 2]))
        )
        fits.append(1 - model.score(*test))
    truth = np.mean(fits)
    cuts = np.array([1.5, 2.5, 3.5, 4.5])
    edges = ndtr((cuts[:, None] - 3 - np.sqrt(5) * test[0][:, 0]) / 0.5)
    best = 1 - np.mean(np.diff(np.vstack([np.zeros(20_000), edges, np.ones(20_000)]), axis=0).max(axis=0))
    assert best < truth
    ratios, held = [], 0
    for seed in range(8):
        model = Forecast("rbf", gamma=0.3, intercept=1.0, task="classification").fit(
            *draw(120, np.random.default_rng([seed, 1]))
        )
        curve = model.learning_curve([480])
        ratios.append(float(curve.value[0]) / truth)
        held += bool(curve.low[0] <= truth <= curve.high[0])
    assert abs(np.mean(np.log(ratios))) < 0.12
    assert held >= 6


# -- splits of the user -----------------------------------------------------------------------------------------------------------


def test_splitters_change_the_curve():
    rng = np.random.default_rng(5)
    group = np.repeat(np.arange(40), 5)
    X = rng.standard_normal((40, 3))[group] + 0.1 * rng.standard_normal((200, 3))
    y = rng.standard_normal(40)[group] + 0.1 * rng.standard_normal(200)
    rows = Forecast("rbf", intercept=1.0).fit(X, y).learning_curve([200, 400])
    groups = Forecast("rbf", intercept=1.0).fit(X, y, groups=group).learning_curve([200, 400])
    given = Forecast("rbf", intercept=1.0).fit(X, y, groups=group, cv=GroupKFold(8)).learning_curve([200, 400])
    assert groups.value[0] > 3 * rows.value[0]
    assert 0.7 < float(given.value[0] / groups.value[0]) < 1.4
    strata = Forecast("linear", task="classification").fit(X, y > 0, cv=StratifiedKFold(5)).learning_curve([200, 400])
    assert 0 < strata.value[0] < 0.6


# -- estimators ---------------------------------------------------------------------------------------------------------------------


def test_any_estimator_and_scorer():
    from sklearn.datasets import make_classification, make_friedman1

    X, y = make_friedman1(400, noise=1.0, random_state=0)
    more, target = make_friedman1(2000, noise=1.0, random_state=1)
    forest = RandomForestRegressor(30, random_state=0)
    result = forecast_model(forest, X[:200], y[:200], n=[200, 400], jobs=1, band=0.98)
    real = float(np.sqrt(np.mean((forest.fit(X, y).predict(more) - target) ** 2)))
    assert result.curve.low[1] < real < result.curve.high[1]
    assert abs(result.curve.value.values[1] / real - 1) < 0.2
    assert result.level == result.sentences()[0] == str(result.page()).splitlines()[0]
    X, label = make_classification(300, 8, random_state=0)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    for scoring, word in (
        ("neg_log_loss", "log loss"),
        ("roc_auc", "area under the curve"),
        ("f1", "f1"),
        (None, "wrong labels"),
    ):
        made = forecast_model(model, pd.DataFrame(X), label, scoring=scoring, jobs=1, error=0.4)
        assert word in made.level
        assert made.curve.low.values[-1] <= made.curve.value.values[-1] <= made.curve.high.values[-1]
        assert made.needed is not None


def test_the_band_of_a_model_holds_the_truth():
    """A ridge regression with Gaussian inputs: nine of ten bands at twice the rows should hold the mean error of real fits."""
    rng = np.random.default_rng(6)
    beta = rng.standard_normal(10) / np.sqrt(10)

    def draw(count):
        X = rng.standard_normal((count, 10))
        return X, X @ beta + rng.standard_normal(count)

    test, held = draw(20_000), 0
    truth = np.mean([np.mean((Ridge().fit(*draw(160)).predict(test[0]) - test[1]) ** 2) for _ in range(40)])
    for seed in range(20):
        curve = forecast_model(Ridge(), *draw(80), n=[160], scoring="neg_mean_squared_error", jobs=1, seed=seed).curve
        held += bool(curve.low[0] <= truth <= curve.high[0])
    assert held >= 15


def test_a_time_limit_still_gives_two_splits():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((100, 3))
    result = forecast_model(Ridge(), X, X[:, 0] + rng.standard_normal(100), seconds=0.0, jobs=1)
    assert result.measured.attrs["fits"] == 2 * result.measured.n.size


def test_expressions_are_parsed_and_not_evaluated():
    assert parse_estimator("RandomForestRegressor(n_estimators=5)").n_estimators == 5
    assert isinstance(parse_estimator("Ridge"), Ridge)
    nested = parse_estimator("Pipeline([('scale', StandardScaler()), ('svc', SVC(C=-1.0, kernel='rbf'))])")
    assert nested.steps[1][1].C == -1.0
    for text in (
        "__import__('os').system('true')", "(lambda: 0)()", "Ridge(alpha=open('x'))", "Ridge.__class__", "[x for x in (1,)]",
        "FunctionTransformer(func=print)", "make_pipeline(Ridge(), memory='folder')", "Ridge(**{'alpha': 1})", "1 + 1", "exec('1')",
        "clone(Ridge())", "'a' * 10", "Ridge(alpha=10**10**10)", "(" * 300 + ")" * 300, "Ridge()" + " " * 3000,
    ):  # fmt: skip
        with pytest.raises(Refused, match="model"):
            parse_estimator(text)


def test_refusals_of_models():
    X = np.random.default_rng(8).standard_normal((60, 2))
    for words, call in (
        ("targets for 60 rows", lambda: forecast_model(Ridge(), X, X[:50, 0])),
        ("at least 20", lambda: forecast_model(Ridge(), X[:10], X[:10, 0])),
        ("fit and predict", lambda: forecast_model(StandardScaler(), X, X[:, 0])),
        ("scoring = 'error' is not allowed for numbers", lambda: forecast_model(Ridge(), X, X[:, 0], scoring="error")),
        ("scoring = 3", lambda: scoring_of(3, False)),
        ("band = 1", lambda: forecast_model(Ridge(), X, X[:, 0], band=1)),
        ("cv = 'week'", lambda: forecast_model(Ridge(), X, X[:, 0], cv="week")),
    ):
        with pytest.raises(Refused, match=words):
            call()


def test_the_former_name_has_a_band():
    rng = np.random.default_rng(9)
    X = rng.standard_normal((150, 5))
    curve = forecast_other(Ridge(), X, X[:, 0] + rng.standard_normal(150), [300, 600])
    assert (curve.low < curve.value).all()
    assert (curve.value < curve.high).all()
    assert {"power_law", "measured", "standard_error"} <= set(curve)


# -- offsets, deviations, radius and few events ------------------------------------------------------------------------------


def test_the_curve_passes_near_precise_fits_that_are_no_power_law():
    """Between precise fits the curve interpolates them, and its band there is that of the fits."""
    values = curve_of(0.5, 0.1, SIZES) * np.array([1.0, 1.15, 0.9, 1.1, 1.0])
    made = posterior(Measurement(SIZES, values, np.diag(np.full(5, 1e-4))), backtest=False)
    low, middle, high = made.quantiles(SIZES, [0.05, 0.5, 0.95])
    np.testing.assert_allclose(middle, values, rtol=0.02)
    assert np.log(high / low).max() < 2 * 1.645 * 0.013
    between = made.quantiles([np.sqrt(80 * 160)], [0.5])[0, 0]
    assert min(values[2:4]) < between < max(values[2:4])


def test_rows_in_groups_allow_for_a_late_fall():
    """The error of a table with 100 patients falls late. The prior for groups is nearer to the truth."""
    error = lambda n: 0.1 + 0.9 * np.exp(-np.asarray(n) / 100.0)  # noqa: E731
    sizes = np.array([11.0, 22.0, 45.0, 90.0, 180.0])
    measured = Measurement(sizes, error(sizes), 0.01 * (0.8 + 0.2 * np.eye(5)))
    usual, grouped = (posterior(measured, grouped=flag) for flag in (False, True))
    at = [400.0]
    assert grouped.quantiles(at, [0.5])[0, 0] < 0.85 * usual.quantiles(at, [0.5])[0, 0]
    low, high = grouped.quantiles(at, [0.05, 0.95])[:, 0]
    assert low < error(400) < high
    off = [abs(np.log(made.quantiles(at, [0.5])[0, 0] / error(400))) for made in (usual, grouped)]
    assert off[1] < 0.8 * off[0]


def test_the_radius_holds_four_of_five_truths():
    """For curves of the prior the median is within the radius with probability 80 %, and the word follows from the radius."""
    rng = np.random.default_rng(4)
    covariance = 0.02 * 0.7 + np.diag(np.full(5, 0.02 * 0.3))
    held = 0
    for _ in range(200):
        b, q = 0.6 * np.exp(0.6 * rng.standard_normal()), rng.beta(1.5, 2)
        noise = rng.multivariate_normal(np.zeros(5), covariance)
        made = posterior(Measurement(SIZES, curve_of(b, q, SIZES) * np.exp(noise), covariance), backtest=False)
        radius, value = made.radius([640.0])[0], made.quantiles([640.0], [0.5])[0, 0]
        held += abs(np.log(value / curve_of(b, q, 640.0))) < np.log1p(radius)
        assert made.radius([640.0], 0.5)[0] == pytest.approx(np.sqrt(1 + radius) - 1)
    assert 145 <= held <= 175
    assert [trust_word(value) for value in (0.1, 0.11, 0.25, 0.26)] == ["trusted", "fair", "fair", "doubtful"]


def test_few_events_give_a_wide_but_finite_band_of_the_area():
    """Few splits with events at the largest sizes leave gaps in the covariance. The repaired covariance is positive."""
    means = np.full((4, 10), np.nan)
    rng = np.random.default_rng(5)
    means[:2] = 0.2 + 0.03 * rng.standard_normal((2, 10))
    means[2, [0, 3, 6, 9]] = 0.19, 0.22, 0.17, 0.2
    means[3, [0, 9]] = 0.003, 0.3
    sizes = np.array([300.0, 600.0, 1200.0, 2400.0])
    made = from_splits(sizes, means, 0.1, 0.03, np.array([16.0, 16.0, 12.0, 3.0]))
    assert np.linalg.eigvalsh(made.covariance).min() > 0
    assert np.sqrt(made.covariance[-1, -1]) > np.sqrt(made.covariance[0, 0]) > 0.2
    low, middle, high = posterior(made).quantiles([2400.0], [0.05, 0.5, 0.95])[:, 0]
    assert 0.1 < middle < 0.3
    assert high / low > 1.5


def test_a_choice_of_the_kernel_shifts_the_level_by_up_to_its_ratio():
    measured = Measurement(SIZES, curve_of(0.5, 0.1, SIZES), np.diag(np.full(5, 1e-6)))
    made = posterior(measured, backtest=False)
    shifted = made.shifted(0.4)
    ratio = shifted.quantiles([320.0], [0.5])[0, 0] / made.quantiles([320.0], [0.5])[0, 0]
    assert ratio == pytest.approx(np.exp(0.2), rel=0.01)
    ends = shifted.quantiles([320.0], [0.0, 1.0])[:, 0] / made.quantiles([320.0], [0.5])[0, 0]
    np.testing.assert_allclose(ends, [1.0, np.exp(0.4)], rtol=0.01)
