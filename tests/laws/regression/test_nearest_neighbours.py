"""k nearest neighbours at a cusp: reference values, the sums behind the closed form, limits, rate, experiments, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

import limitlab as ll
from limitlab.laws import NearestNeighbours
from limitlab.laws.regression._neighbour_averages import bias_moments
from limitlab.laws.regression.nearest_neighbours import risk, smallest_uniforms
from references import reference

ENTRIES = reference("local", "knn_cusp_uniform_ball")
OUTPUTS = dict(mean_bias="mean_bias", squared_bias="bias2", variance="variance", excess_risk="excess", test_error="test")


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"n={entry['inputs']['n']}")
def test_reference_values(entry):
    given_, wanted = entry["inputs"], entry["outputs"]
    law = NearestNeighbours(
        samples=given_["n"],
        neighbours=given_["k"],
        dimension=given_["d"],
        smoothness=given_["beta"],
        amplitude=given_["C"],
        noise=given_["noise_var"] ** 0.5,
    )
    theory = law.theory()
    for name, key in OUTPUTS.items():
        np.testing.assert_allclose(float(theory[name]), wanted[key], rtol=1e-10, err_msg=name)


@settings(max_examples=40)
@given(n=st.integers(1, 60), share=st.floats(0, 1), d=st.integers(1, 6), beta=st.floats(0.05, 1))
def test_closed_form_is_the_double_sum_over_order_statistics(n, share, d, beta):
    """E[U_(i)^b U_(j)^b] = G(n+1)/G(n+1+2b) G(i+b)/G(i) G(j+2b)/G(j+b), i < j, summed pair by pair."""
    k, b = max(1, round(share * n)), beta / d
    rank = np.arange(1.0, k + 1)
    single = np.exp(gammaln(rank + b) - gammaln(rank) + gammaln(n + 1) - gammaln(n + 1 + b))
    i, j = np.minimum.outer(rank, rank), np.maximum.outer(rank, rank)
    log_pair = gammaln(i + b) - gammaln(i) + gammaln(j + 2 * b) - gammaln(j + b)
    pair = np.exp(log_pair + gammaln(n + 1) - gammaln(n + 1 + 2 * b))
    values = risk(n, k, d, beta, amplitude=1.3, noise=0.7)
    np.testing.assert_allclose(values["mean_bias"], 1.3 * single.mean(), rtol=1e-11)
    np.testing.assert_allclose(values["squared_bias"], 1.3**2 * pair.mean(), rtol=1e-11)


@settings(max_examples=60)
@given(
    n=st.integers(2, 10**9),
    share=st.floats(0, 1),
    d=st.integers(1, 20),
    beta=st.floats(0.01, 1),
    amplitude=st.floats(0, 10),
    noise=st.floats(0, 10),
)
def test_invariants(n, share, d, beta, amplitude, noise):
    k = max(1, round(n**share))
    values = {name: float(value) for name, value in risk(n, k, d, beta, amplitude, noise).items()}
    assert all(np.isfinite(value) and value >= 0 for value in values.values())
    assert values["mean_bias"] ** 2 <= values["squared_bias"] * (1 + 1e-12)
    assert values["squared_bias"] <= amplitude**2 * (1 + 1e-12)
    np.testing.assert_allclose(values["test_error"], noise**2 + values["squared_bias"] + noise**2 / k, rtol=1e-12)
    more = risk(2 * n, k, d, beta, amplitude, noise)
    assert more["squared_bias"] <= values["squared_bias"]  # more samples are nearer
    if k < n:
        assert risk(n, k + 1, d, beta, amplitude, noise)["squared_bias"] >= values["squared_bias"]  # a further one is not


def test_all_neighbours_average_the_ball():
    """k = n: the plain mean of C|x|^beta over the ball, whose bias has mean C/(1+b) and variance of a mean of n."""
    law = NearestNeighbours(samples=50, neighbours=50, dimension=3, amplitude=2.0, noise=0.0)
    b = 1 / 3
    mean, second = 1 / (1 + b), 1 / (1 + 2 * b)
    np.testing.assert_allclose(float(law.theory().mean_bias), 2 * mean, rtol=1e-13)
    np.testing.assert_allclose(float(law.theory().squared_bias), 4 * (mean**2 + (second - mean**2) / 50), rtol=1e-13)


def test_one_neighbour_interpolates_and_costs_twice_the_noise_variance():
    errors = [float(NearestNeighbours(samples=10**e, neighbours=1, noise=0.6).theory().test_error) for e in (2, 6, 12)]
    assert errors == sorted(errors, reverse=True)
    np.testing.assert_allclose(errors[-1], 2 * 0.6**2, rtol=1e-9)


@pytest.mark.parametrize(("dimension", "smoothness"), [(1, 1.0), (2, 1.0), (5, 0.5), (3, 0.3)])
def test_rate_of_the_best_k(dimension, smoothness):
    """Local slopes per decade approach -2 beta/(2 beta + d), each closer than the one before, or already within 1e-3."""
    risks = []
    for exponent in range(2, 11):
        law = NearestNeighbours(samples=10**exponent, neighbours=1, dimension=dimension, smoothness=smoothness, noise=1.0)
        risks.append(float(law.replace(neighbours=law.best_neighbours()).theory().excess_risk))
    gaps = np.abs(np.diff(np.log10(risks)) + law.rate_exponent())
    assert gaps[-1] < 5e-4
    assert np.all((np.diff(gaps) < 0) | (gaps[1:] < 1e-3))


@settings(max_examples=25)
@given(n=st.integers(1, 1500), d=st.integers(1, 5), beta=st.floats(0.1, 1), noise=st.floats(0.01, 3))
def test_best_neighbours_beats_every_other_k(n, d, beta, noise):
    law = NearestNeighbours(samples=n, neighbours=1, dimension=d, smoothness=beta, noise=noise)
    every = risk(n, np.arange(1, n + 1), d, beta, law.amplitude, noise)["excess_risk"]
    assert law.best_neighbours() == 1 + int(np.argmin(every))


def test_best_neighbours_of_a_large_sample_by_balance():
    """b = 1: bias^2 ~ (C k/2n)^2 against tau^2/k gives k = (2 n^2 tau^2/C^2)^(1/3)."""
    law = NearestNeighbours(samples=10**7, neighbours=1, dimension=1, noise=1.0)
    np.testing.assert_allclose(law.best_neighbours(), (2 * 1e14) ** (1 / 3), rtol=1e-3)


def test_arrays_broadcast():
    values = NearestNeighbours(samples=100, neighbours=2).evaluate(neighbours=np.array([1, 2, 5]), noise=np.ones((4, 1)))
    assert all(np.shape(values[name]) == (4, 3) for name in NearestNeighbours.outputs())


# -- experiments -------------------------------------------------------------------------------------------------------


def assert_agrees(law, size, seeds):
    theory, runs = law.theory(), law.simulate_batch(size, range(seeds))
    for name in law.observables:
        error = float(runs[name].std("seed", ddof=1)) / seeds**0.5
        assert abs(float(runs[name].mean() - theory[name])) <= 5 * error + 1e-12, name


@pytest.mark.parametrize(
    "law",
    [
        NearestNeighbours(samples=100, neighbours=1, amplitude=1.5, noise=0.5),
        NearestNeighbours(samples=1000, neighbours=20, dimension=5, smoothness=0.5, noise=1.0),
        NearestNeighbours(samples=7, neighbours=7, dimension=3, noise=0.3),
    ],
    ids=["interpolating", "typical", "all"],
)
def test_simulation_with_averaged_labels(law):
    assert_agrees(law, size=500, seeds=30)


@pytest.mark.parametrize("neighbours", [1, 6, 30])
def test_simulation_of_the_whole_recipe(neighbours):
    law = NearestNeighbours(samples=30, neighbours=neighbours, dimension=3, smoothness=0.7, noise=0.6, labels="drawn")
    assert_agrees(law, size=150, seeds=20)


def test_an_estimator_that_averages_the_target_instead_of_the_labels_is_caught():
    """Without label noise in the average the variance is 0; the experiment must tell that from tau^2/k."""
    law = NearestNeighbours(samples=30, neighbours=4, noise=0.6, labels="drawn")
    runs = law.simulate_batch(150, range(20))["variance"]
    assert float(runs.mean()) > 5 * float(runs.std(ddof=1)) / 20**0.5
    assert float(law.replace(noise=0.0).simulate(150, 0)["variance"]) < 1e-30


def test_a_path_is_one_draw():
    law = NearestNeighbours(samples=40, neighbours=3)
    path = law.experiment(50, 1, neighbours=np.array([1, 3, 40]), smoothness=np.array([[0.5], [1.0]]))
    single = law.replace(neighbours=40, smoothness=0.5).experiment(50, 1)
    for name in law.observables:
        np.testing.assert_allclose(np.asarray(path[name])[0, 2], single[name], rtol=1e-12)


def test_blocks_do_not_change_the_draw_along_a_path(monkeypatch):
    monkeypatch.setattr("limitlab.laws.regression.nearest_neighbours.BLOCK", 400)
    test_a_path_is_one_draw()


def test_order_statistics_are_those_of_sorted_uniforms():
    rng = np.random.default_rng(1)
    fast = smallest_uniforms(rng, 12, 12, 20_000)
    slow = np.sort(rng.random((20_000, 12)), axis=1).T
    scale = np.hypot(fast.std(axis=1), slow.std(axis=1)) / 20_000**0.5
    assert np.all(np.abs(fast.mean(axis=1) - slow.mean(axis=1)) < 5 * scale)
    assert np.all(np.diff(fast, axis=0) > 0)


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        dict(neighbours=2.5),
        dict(neighbours=101),
        dict(noise=float("inf")),
    ],
    ids=str,
)
def test_bad_parameters_are_named(bad):
    (name,) = bad
    with pytest.raises(ValueError, match=name):
        NearestNeighbours(samples=bad.pop("samples", 100), **bad)


def test_too_many_neighbours_anywhere_in_a_grid():
    law = NearestNeighbours(samples=10, neighbours=2)
    with pytest.raises(ValueError, match=r"neighbours = 20 is not allowed: must be at most samples = 10"):
        law.evaluate(neighbours=np.array([1, 20]))
    with pytest.raises(ValueError, match=r"neighbours = 0 is not allowed: must be at least 1"):
        law.evaluate(neighbours=np.array([0, 1]))
    with pytest.raises(ValueError, match="at most samples = 10"):
        law.experiment(10, 0, neighbours=np.array([1, 20]))
    with pytest.raises(ValueError, match="whole numbers"):
        law.experiment(10, 0, neighbours=np.array([1.5]))


# -- a target function of the position -----------------------------------------------------------------------------------


def bent(x, y):
    return 2 + np.sin(3 * x) + x * y + np.abs(y - 0.1)


CUSPS = {
    1: lambda x: 1.3 * np.abs(x) ** 0.8,
    2: lambda x, y: 1.3 * np.hypot(x, y) ** 0.8,
    3: lambda x, y, z: 1.3 * np.sqrt(x**2 + y**2 + z**2) ** 0.8,
}


@pytest.mark.parametrize("dimension", [1, 2, 3])
@pytest.mark.parametrize(("samples", "neighbours"), [(60, 1), (200, 7), (50, 50)])
def test_a_cusp_as_a_function_has_the_closed_form(dimension, samples, neighbours):
    options = dict(samples=samples, neighbours=neighbours, dimension=dimension, noise=0.4)
    own = NearestNeighbours(target_function=CUSPS[dimension], **options).theory()
    cusp = NearestNeighbours(smoothness=0.8, amplitude=1.3, **options).theory()
    for name in cusp.data_vars:
        assert float(own[name]) == pytest.approx(float(cusp[name]), abs=1e-8), name


def test_a_linear_target_has_no_mean_bias_and_the_squared_bias_of_its_mean():
    law = NearestNeighbours(samples=30, neighbours=30, dimension=2, target_function=lambda x, y: 3 + x - 2 * y)
    assert float(law.theory().mean_bias) == pytest.approx(0, abs=1e-12)
    assert float(law.theory().squared_bias) == pytest.approx(5 / 4 / 30, rel=1e-10)  # E x^2 = 1/4 in the disc


@pytest.mark.parametrize("function", [bent, lambda x: np.abs(x - 0.1), lambda x, y, z: 1.0 * (x + 0.3 * y > 0.2)])
def test_the_stated_accuracy_covers_kinks_and_jumps(function):
    law = NearestNeighbours(samples=40, neighbours=4, dimension=function.__code__.co_argcount, target_function=function)
    values, fine = law.theory(), bias_moments(law.target_function, 40, 4, {1: 20.0, 2: 4.0, 3: 1.6}[law.dimension])
    for name, value in zip(("mean_bias", "squared_bias"), fine, strict=True):
        assert abs(float(values[name]) - value) <= values[name].attrs["numerical_error"] < 6e-3


@pytest.mark.parametrize("labels", ["averaged", "drawn"])
def test_experiments_agree_for_a_target_function(labels):
    law = NearestNeighbours(dimension=2, neighbours=4, samples=40, target_function=bent, noise=0.3, labels=labels)
    theory = law.theory()
    if labels == "averaged":
        assert ll.compare(law).verdict == "agree"
        return
    runs = law.simulate_batch(500, range(12))
    for name in ("mean_bias", "squared_bias", "excess_risk"):
        error = float(runs[name].std("seed", ddof=1)) / np.sqrt(12)
        assert abs(float(runs[name].mean("seed")) - float(theory[name])) < 4 * error
        assert error < 0.1 * float(theory[name])


def test_the_best_number_of_neighbours_of_a_target_function():
    own = NearestNeighbours(samples=60, dimension=1, target_function=np.abs)
    assert own.best_neighbours() == NearestNeighbours(samples=60, dimension=1).best_neighbours()
    with pytest.raises(ValueError, match="its Holder exponent is not known"):
        own.rate_exponent()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(target_function=bent, dimension=3), "must have one argument per coordinate, in at most 3 dimensions"),
        (dict(target_function=lambda a, b, c, d: a, dimension=4), "in at most 3 dimensions"),
        (dict(target_function=bent, smoothness=0.5), "whose Holder exponent and constant are not known: omit smoothness"),
        (dict(target_function=bent, amplitude=2.0), "omit amplitude"),
        (dict(target_function=lambda x, y: np.log(x) + y), "one finite number for each point"),
    ],
)
def test_refused_target_functions(changes, message):
    with pytest.raises(ValueError, match=message):
        NearestNeighbours(**changes)
