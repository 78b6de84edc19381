"""The two estimators against brute force and scikit-learn, on R^d and on the torus; the rough functions they learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab.laws.regression._cusp import cusp, rough_wave, uniform_ball
from limitlab.laws.regression._smoothers import NearestNeighbourRegressor, SingularKernelRegressor


def sample(seed, samples, dimension, outputs=()):
    rng = np.random.default_rng(seed)
    return rng.random((samples, dimension)), rng.standard_normal((samples, *outputs)), rng.random((25, dimension))


def distances(x, queries, period=None):
    difference = queries[:, None] - x[None]
    if period is not None:
        difference = (difference + period / 2) % period - period / 2
    return np.linalg.norm(difference, axis=-1)


def by_hand(x, y, queries, bandwidth, singularity, period=None):
    radius = distances(x, queries, period)
    weight = np.where(radius <= bandwidth, radius**-singularity, 0.0)
    total = weight.sum(axis=1)
    return np.where(total > 0, (weight @ y) / np.where(total > 0, total, 1.0), 0.0)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    samples=st.integers(1, 60),
    dimension=st.integers(1, 4),
    bandwidth=st.floats(0.02, 2),
    singularity=st.floats(0.05, 3),
    period=st.sampled_from([None, 1.0]),
)
def test_singular_kernel_by_brute_force(seed, samples, dimension, bandwidth, singularity, period):
    x, y, queries = sample(seed, samples, dimension)
    model = SingularKernelRegressor(bandwidth=bandwidth, singularity=singularity, period=period).fit(x, y)
    if period is not None and bandwidth > 0.45:
        bandwidth = model.bandwidth = 0.45  # windows smaller than the torus
    expected = by_hand(x, y, queries, bandwidth, singularity, period)
    np.testing.assert_allclose(model.predict(queries), expected, rtol=1e-9, atol=1e-12)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    samples=st.integers(1, 80),
    dimension=st.integers(1, 4),
    bandwidth=st.floats(1e-3, 5),
    singularity=st.floats(0.05, 5),
)
def test_interpolates_exactly_for_every_bandwidth(seed, samples, dimension, bandwidth, singularity):
    x, y, _ = sample(seed, samples, dimension)
    model = SingularKernelRegressor(bandwidth=bandwidth, singularity=singularity).fit(x, y)
    assert np.array_equal(model.predict(x), y)


def test_weights_are_a_partition_of_one_and_give_the_prediction():
    x, y, queries = sample(0, 200, 2)
    model = SingularKernelRegressor(bandwidth=0.1, singularity=0.8).fit(x, y)
    query, index, weight = model.weights(queries)
    total = np.bincount(query, weight, minlength=len(queries))
    filled = (distances(x, queries) <= 0.1).any(axis=1)
    np.testing.assert_allclose(total, filled.astype(float), rtol=1e-12)
    np.testing.assert_allclose(
        np.bincount(query, weight * y[index], minlength=len(queries)), model.predict(queries), rtol=1e-12
    )


def test_an_empty_window_is_answered_by_zero():
    model = SingularKernelRegressor(bandwidth=0.1).fit([[0.0]], [5.0])
    assert model.predict([[0.05], [0.2]]).tolist() == [5.0, 0.0]


def test_repeated_samples_are_averaged():
    model = SingularKernelRegressor(bandwidth=1.0).fit([[0.0], [0.0], [0.5]], [1.0, 3.0, 50.0])
    assert model.predict([[0.0]]).tolist() == [2.0]


def test_a_sample_that_almost_coincides_does_not_overflow():
    model = SingularKernelRegressor(bandwidth=1.0, singularity=50.0).fit([[1e-300], [0.5]], [2.0, 9.0])
    assert model.predict([[0.0]]).tolist() == [2.0]


def test_torus_has_no_boundary():
    x, y, queries = sample(3, 100, 2)
    model = SingularKernelRegressor(bandwidth=0.2, singularity=0.5, period=1.0)
    straight = model.fit(x, y).predict(queries)
    shifted = model.fit(x + 0.37, y).predict(queries + 0.37)
    np.testing.assert_allclose(straight, shifted, rtol=1e-9)
    assert np.isfinite(model.predict([[-1e-18, 0.5]])).all()


def test_several_outputs_are_columns():
    x, y, queries = sample(4, 50, 2, outputs=(3,))
    for model in (SingularKernelRegressor(bandwidth=0.3), NearestNeighbourRegressor(neighbours=4)):
        together = model.fit(x, y).predict(queries)
        apart = np.stack([model.fit(x, column).predict(queries) for column in y.T], axis=1)
        assert together.shape == (25, 3)
        np.testing.assert_allclose(together, apart, rtol=1e-12)


def test_blocks_do_not_change_the_answer(monkeypatch):
    x, y, queries = sample(5, 300, 2)
    model = SingularKernelRegressor(bandwidth=0.4).fit(x, y)
    whole = model.predict(queries)
    monkeypatch.setattr("limitlab.laws.regression._smoothers.PAIRS", 200)
    np.testing.assert_allclose(model.predict(queries), whole, rtol=1e-13)


@pytest.mark.parametrize("neighbours", [1, 5, 40])
def test_nearest_neighbours_are_those_of_scikit_learn(neighbours):
    from sklearn.neighbors import KNeighborsRegressor

    x, y, queries = sample(6, 40, 3)
    ours = NearestNeighbourRegressor(neighbours=neighbours).fit(x, y).predict(queries)
    theirs = KNeighborsRegressor(neighbours).fit(x, y).predict(queries)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_one_neighbour_interpolates():
    x, y, _ = sample(7, 40, 3)
    assert np.array_equal(NearestNeighbourRegressor(neighbours=1).fit(x, y).predict(x), y)


@pytest.mark.parametrize("model", [SingularKernelRegressor(), NearestNeighbourRegressor(neighbours=1)])
def test_bad_input_is_refused(model):
    with pytest.raises(ValueError, match="not fitted"):
        type(model)().predict([[0.0]])
    with pytest.raises(ValueError, match="as many rows"):
        model.fit([[0.0], [1.0]], [1.0])
    with pytest.raises(ValueError, match=r"\(samples, dimension\)"):
        model.fit([0.0, 1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="finite"):
        model.fit([[np.nan]], [1.0])
    with pytest.raises(ValueError, match=r"\(queries, 1\)"):
        model.fit([[0.0]], [1.0]).predict([[0.0, 1.0]])


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="bandwidth = -1"):
        SingularKernelRegressor(bandwidth=-1)
    with pytest.raises(ValueError, match="singularity = 0"):
        SingularKernelRegressor(singularity=0)
    with pytest.raises(ValueError, match="neighbours = 3 is not allowed: must be from 1 to the 2 samples"):
        NearestNeighbourRegressor(neighbours=3).fit([[0.0], [1.0]], [1.0, 2.0]).predict([[0.0]])


# -- what they learn ---------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), smoothness=st.floats(0.1, 1))
def test_cusp_is_holder(seed, smoothness):
    x, _, z = sample(seed, 25, 3)
    change = np.abs(cusp(x, smoothness) - cusp(z, smoothness))
    assert np.all(change <= np.linalg.norm(x - z, axis=1) ** smoothness + 1e-12)


@pytest.mark.parametrize("smoothness", [0.3, 0.5])
def test_rough_wave_is_as_rough_as_it_says_everywhere(smoothness):
    """Root mean square change over a lag r falls like r^smoothness; it is the same in every quarter of the circle."""
    rng = np.random.default_rng(0)
    lag = 1.3 * 2.0 ** -np.arange(8, 15)  # far below the lowest octaves, which a quarter does not average out
    octave = np.arange(18)[:, None]
    exact = np.sqrt((4.0 ** (-smoothness * octave) * (1 - np.cos(2 * np.pi * 2.0**octave * lag))).sum(axis=0))
    slope = np.polyfit(np.log(lag), np.log(exact), 1)[0]
    assert abs(slope - smoothness) < 0.03
    for quarter in range(4):
        x = (quarter + rng.random(4000))[:, None] / 4
        change = [np.sqrt(np.mean((rough_wave(x + r, smoothness) - rough_wave(x, smoothness)) ** 2)) for r in lag]
        np.testing.assert_allclose(change, exact, rtol=0.1)


@pytest.mark.parametrize("dimension", [1, 2, 7])
def test_ball_is_uniform(dimension):
    points = uniform_ball(np.random.default_rng(1), 20_000, dimension)
    marks = np.linalg.norm(points, axis=1) ** dimension  # uniform on [0, 1]
    for moment in (1, 2, 3):
        spread = np.sqrt((1 / (2 * moment + 1) - 1 / (moment + 1) ** 2) / 20_000)
        assert abs((marks**moment).mean() - 1 / (moment + 1)) < 5 * spread
    covariance = points.T @ points / 20_000
    np.testing.assert_allclose(covariance, np.eye(dimension) / (dimension + 2), atol=5 / 20_000**0.5)
