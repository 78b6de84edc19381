"""The interpolating smoother: reference values, sum rules, leading constants, rates, experiments, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab._core.draws import mean_and_error
from limitlab.laws import SingularKernelSmoother
from limitlab.laws.regression._smoothers import measured_risk, octave_samples
from limitlab.laws.regression.singular_kernel import (
    leading_risk,
    rate_exponent,
    risk,
    share_of_empty_sets,
    variance_exponent,
    window_sums,
)
from references import reference

ENTRIES = reference("local", "singular_nadaraya_watson_cusp")
OUTPUTS = dict(
    mean_bias="mean_bias", squared_bias="bias2", variance="variance", excess_risk="excess", empty_probability="empty"
)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"a={entry['inputs']['a']}")
def test_reference_values(entry):
    given_, wanted = entry["inputs"], entry["outputs"]
    law = SingularKernelSmoother(
        samples=given_["n"],
        bandwidth=given_["h"],
        singularity=given_["a"],
        dimension=given_["d"],
        smoothness=given_["beta"],
        amplitude=given_["C"],
        noise=given_["noise_var"] ** 0.5,
    )
    theory = law.theory()
    assert theory.attrs["accuracy"] < 1e-11
    for name, key in OUTPUTS.items():
        np.testing.assert_allclose(float(theory[name]), wanted[key], rtol=1e-8, err_msg=name)


@settings(max_examples=40)
@given(
    n=st.integers(1, 10**7),
    log_h=st.floats(-4, 0),
    share=st.floats(0.01, 0.99),
    d=st.integers(1, 6),
    beta=st.floats(0.01, 1),
    noise=st.floats(0, 3),
    offset=st.floats(-2, 2),
)
def test_invariants(n, log_h, share, d, beta, noise, offset):
    h = np.exp(log_h)
    values = {name: float(x) for name, x in risk(n, h, share * d, d, beta, 1.0, noise, offset).items()}
    assert all(np.isfinite(value) for value in values.values())
    empty = values["empty_probability"]
    np.testing.assert_allclose(values["excess_risk"], values["squared_bias"] + values["variance"], rtol=1e-12)
    assert values["mean_bias"] ** 2 <= values["squared_bias"] * (1 + 1e-9)
    window = values["squared_bias"] - offset**2 * empty
    assert window <= h ** (2 * beta) * (1 - empty) * (1 + 1e-9) + 1e-12 * (1 + offset**2)  # no bias beyond C h^beta
    assert values["variance"] <= noise**2 * (1 - empty) * (1 + 1e-9)  # never worse than one label
    assert risk(n, h, share * d / 2, d, beta, 1.0, noise)["variance"] <= values["variance"] * (1 + 1e-9)  # tamer kernel


@pytest.mark.parametrize("singularity", [0.3, 1.0, 1.9])
def test_a_constant_target_is_reproduced(singularity):
    """smoothness -> 0 turns the cusp into the constant C: the weights sum to one whenever the window is not empty."""
    values = risk(40, 0.2, singularity, 2, smoothness=1e-12, amplitude=3.0, noise=0.0)
    np.testing.assert_allclose(values["squared_bias"], 9 * (1 - values["empty_probability"]), rtol=1e-9)
    np.testing.assert_allclose(values["mean_bias"], 3 * (1 - values["empty_probability"]), rtol=1e-9)


def test_one_sample_is_copied():
    p, b = 0.25, 0.5
    values = risk(1, 0.5, 0.7, 2, 1.0, amplitude=2.0, noise=0.4)
    np.testing.assert_allclose(values["variance"], 0.16 * p, rtol=1e-11)
    np.testing.assert_allclose(values["squared_bias"], 4 * 0.25 * p / (1 + 2 * b), rtol=1e-11)
    np.testing.assert_allclose(values["empty_probability"], 1 - p, rtol=1e-14)


@pytest.mark.parametrize("ratio", [0.1, 0.3, 0.4, 0.5, 0.6, 0.75])
def test_leading_constants(ratio):
    """Leading term over exact value tends to 1 as the expected number of neighbours grows, on both sides of d/2 and at it."""
    expected = np.array([1e3, 1e5, 1e7, 1e9])
    arguments = (expected / 1e-6, 1e-3, 2 * ratio, 2, 1.0)
    exact, leading = risk(*arguments, noise=1.0), leading_risk(*arguments, noise=1.0)
    gap = np.abs(leading["variance"] / exact["variance"] - 1)
    assert gap[-1] < 2e-3
    assert np.all((np.diff(gap) < 0) | (gap[1:] < 1e-6))
    np.testing.assert_allclose(leading["squared_bias"][-1], exact["squared_bias"][-1], rtol=2e-3)


def test_leading_constants_are_slow_near_half_the_dimension():
    exact, leading = (rule(32_000, 1e-3, 0.45, 1, noise=1.0)["variance"] for rule in (risk, leading_risk))
    assert 1.7 < leading / exact < 1.9


@pytest.mark.parametrize(("ratio", "exponent"), [(0.4, 1.0), (0.6, 2 / 3), (0.75, 1 / 3)])
def test_variance_exponent_changes_at_half_the_dimension(ratio, exponent):
    expected = np.array([1e7, 1e9])
    variance = risk(expected / 1e-3, 1e-3, ratio, 1, noise=1.0)["variance"]
    slope = np.diff(np.log(variance)) / np.diff(np.log(expected))
    np.testing.assert_allclose(float(variance_exponent(ratio, 1)), exponent)
    np.testing.assert_allclose(slope, -exponent, atol=2e-3)


@pytest.mark.parametrize(
    ("dimension", "smoothness", "singularity"),
    [(1, 1.0, 0.4), (2, 1.0, 0.6), (2, 0.5, 0.6), (3, 1.0, 1.2), (2, 1.0, 1.2), (2, 1.0, 1.5)],
)
def test_rate(dimension, smoothness, singularity):
    """At the balancing bandwidth the local slope approaches the exponent; beyond a = d/2 the slower one."""
    n = 10.0 ** np.arange(8, 17)
    rho = float(variance_exponent(singularity, dimension))
    h = n ** (-rho / (2 * smoothness + rho * dimension))
    slopes = np.diff(np.log10(risk(n, h, singularity, dimension, smoothness, noise=1.0)["excess_risk"]))
    target = float(rate_exponent(singularity, dimension, smoothness))
    gaps = np.abs(slopes + target)
    assert gaps[-1] < 1.5e-3
    assert np.all((np.diff(gaps) < 0) | (gaps[1:] < 1e-4))


@pytest.mark.parametrize(
    "law", [SingularKernelSmoother(samples=500), SingularKernelSmoother(samples=20, noise=2.0, dimension=1)]
)
def test_best_bandwidth_by_brute_force(law):
    h = np.geomspace(0.01, 1, 4001)
    values = law.evaluate(bandwidth=h)
    cost = values["excess_risk"] + (law.amplitude**2 + law.noise**2) * values["empty_probability"]
    np.testing.assert_allclose(law.best_bandwidth(), h[np.argmin(cost)], rtol=1.5e-3)


def test_best_bandwidth_follows_the_theorem_and_ignores_the_price_of_silence():
    laws = [SingularKernelSmoother(samples=10**e, dimension=2, singularity=0.6) for e in (6, 8, 10)]
    scaled = np.array([law.best_bandwidth() * law.samples**0.25 for law in laws])
    np.testing.assert_allclose(scaled, scaled[-1], rtol=0.01)
    np.testing.assert_allclose(laws[0].best_bandwidth(empty_cost=100.0), laws[0].best_bandwidth(), rtol=1e-6)


def test_silence_is_free_without_a_price():
    """With f_0 = 0 an empty window is right by accident: the bare excess risk vanishes with the bandwidth."""
    values = risk(100, np.array([1e-6, 0.3]), 0.6, 2)
    assert values["excess_risk"][0] < 1e-8 < values["excess_risk"][1]


# -- experiments -------------------------------------------------------------------------------------------------------


def assert_agrees(law, size, seeds):
    theory, runs = law.theory(), law.simulate_batch(size, range(seeds))
    for name in law.observables:
        error = float(runs[name].std("seed", ddof=1)) / seeds**0.5
        assert abs(float(runs[name].mean() - theory[name])) <= 5 * error + 1e-12, name


@pytest.mark.parametrize(
    "law",
    [
        SingularKernelSmoother(),
        SingularKernelSmoother(offset=-0.8, bandwidth=0.1),
        SingularKernelSmoother(samples=1000, bandwidth=0.3, singularity=2.6, dimension=3, smoothness=0.5),
        SingularKernelSmoother(samples=20, bandwidth=1.0, singularity=0.1, dimension=1),
    ],
    ids=["default", "offset", "strong", "whole ball"],
)
def test_simulation_with_averaged_labels(law):
    assert_agrees(law, size=400, seeds=30)


@pytest.mark.parametrize("offset", [0.0, 0.7])
def test_simulation_of_the_whole_recipe(offset):
    law = SingularKernelSmoother(
        samples=30, bandwidth=0.4, singularity=1.1, dimension=3, smoothness=0.7, noise=0.6, offset=offset, labels="drawn"
    )
    assert_agrees(law, size=100, seeds=20)


def test_a_path_is_one_draw_in_any_blocks(monkeypatch):
    law = SingularKernelSmoother(samples=200, bandwidth=0.3)
    path = law.experiment(50, 1, singularity=np.array([0.2, 1.4]), noise=np.array([[0.1], [0.5], [1.0]]))
    monkeypatch.setattr("limitlab.laws.regression.singular_kernel.BLOCK", 100)
    single = law.replace(singularity=1.4, noise=1.0).experiment(50, 1)
    for name in law.observables:
        np.testing.assert_allclose(np.asarray(path[name])[2, 1], single[name], rtol=1e-10)


def test_window_sums_window_by_window():
    rng = np.random.default_rng(0)
    counts = np.array([1, 4, 2])
    marks = rng.random(7)
    expected = np.zeros(3)
    for window in np.split(marks, np.cumsum(counts)[:-1]):
        weight = window**-0.6 / (window**-0.6).sum()
        average = (weight * window**0.3).sum()
        expected += average, average**2, (weight**2).sum()
    np.testing.assert_allclose(window_sums(marks, counts, np.array([0.6]), np.array([0.3]))[:, 0], expected, rtol=1e-12)


def test_weights_do_not_overflow():
    sums = window_sums(np.array([1e-300, 0.5]), np.array([2]), np.array([0.999]), np.array([1.0]))
    assert np.isfinite(sums).all()
    np.testing.assert_allclose(sums[2], 1.0)


def test_share_of_empty_sets_is_a_ratio_of_binomial_coefficients():
    from math import comb

    assert share_of_empty_sets(inside=5, samples=4, sets=5) == pytest.approx(comb(15, 4) / comb(20, 4), rel=1e-13)
    assert share_of_empty_sets(inside=17, samples=4, sets=5) == 0.0


# -- the estimator on a rough function -------------------------------------------------------------------------------


def test_estimator_interpolates_and_learns_a_rough_function():
    """Training error exactly 0 at every n; the risk falls at about the rate of the theorem (d = 1, beta = 1/2: -1/2)."""
    samples = octave_samples(500, 3, dimension=1, smoothness=0.5)
    runs = [[measured_risk(n, seed) for seed in range(6)] for n in samples]
    assert all(run["training_gap"] == 0.0 for row in runs for run in row)
    risks = np.array([[run["excess_risk"] for run in row] for row in runs])
    mean, error = mean_and_error(risks, axis=1)
    slope = np.log(mean[-1] / mean[0]) / np.log(samples[-1] / samples[0])
    slope_error = np.hypot(error[-1] / mean[-1], error[0] / mean[0]) / np.log(samples[-1] / samples[0])
    assert slope_error < 0.01
    assert abs(slope + 0.5) < 0.05 + 5 * slope_error


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        dict(singularity=2.0),
        dict(singularity=float("nan")),
        dict(offset=float("inf")),
    ],
    ids=str,
)
def test_bad_parameters_are_named(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        SingularKernelSmoother(**bad)


def test_bad_grids_are_named():
    law = SingularKernelSmoother()
    with pytest.raises(ValueError, match="singularity = 3 is not allowed: must be above 0 and below dimension = 2"):
        law.evaluate(singularity=np.array([0.5, 3.0]))
    with pytest.raises(ValueError, match="below dimension = 2"):
        law.experiment(10, 0, singularity=np.array([0.5, 3.0]))
    with pytest.raises(ValueError, match=r"bandwidth = 1\.5 is not allowed: must be above 0, at most 1"):
        law.evaluate(bandwidth=np.array([0.5, 1.5]))
    with pytest.raises(ValueError, match="bandwidth = 0 is not allowed"):
        law.evaluate(bandwidth=0.0)
    with pytest.raises(ValueError, match="bandwidth is too small"):
        SingularKernelSmoother(bandwidth=1e-30, dimension=20).theory()
