"""Ridge regression: reference values through the public API, identities, limits, the best penalty, experiments, refusals."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab.lab import compare
from limitlab.laws import Ridge
from limitlab.laws.regression.ridge import best_ridge, exact_ridgeless, risk
from references import reference

entries = partial(reference, "ridge")
OUTPUTS = dict(
    kappa="effective_ridge",
    bias="bias",
    variance="variance",
    excess="excess_risk",
    test="test_error",
    train="train_error",
    norm2="coefficient_norm",
)
GROUPS = dict(eigenvalues=(0.2, 1.0, 3.0), weights=(0.3, 0.4, 0.3), signal_energy=(0.5, 1.0, 0.2))


def law_of(inputs, **more):
    p = sum(inputs["multiplicities"])
    return Ridge(
        ratio=p / inputs["n"],
        noise=inputs["noise_var"] ** 0.5,
        eigenvalues=inputs["eigenvalues"],
        weights=[m / p for m in inputs["multiplicities"]],
        signal_energy=inputs["signal_energy_sum_beta2_per_group"],
        **more,
    )


# -- reference values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", entries("ridge_general_covariance"), ids=lambda e: f"{e['inputs']['ridge_lambda']:g}")
def test_reference_values(entry):
    inputs, wanted = entry["inputs"], entry["outputs"]
    found = law_of(inputs, ridge=inputs["ridge_lambda"]).theory()
    for key, name in OUTPUTS.items():
        np.testing.assert_allclose(float(found[name]), wanted[key], rtol=1e-12, atol=1e-15, err_msg=name)
    np.testing.assert_allclose(float(found.degrees_of_freedom) * inputs["n"], wanted["df1"], rtol=1e-12)
    np.testing.assert_allclose(float(found.average_bias), wanted["bias"] * (1 - wanted["df2"] / inputs["n"]), rtol=1e-9)


@pytest.mark.parametrize("entry", entries("ridge_isotropic_optimal"), ids=lambda e: f"{e['inputs']['gamma']:g}")
def test_isotropic_optimum(entry):
    inputs, wanted = entry["inputs"], entry["outputs"]
    law = Ridge(ratio=inputs["gamma"], noise=inputs["noise_var"] ** 0.5, signal_energy=(inputs["signal_r2"],))
    best = law.optimal_ridge()
    np.testing.assert_allclose(best, wanted["lambda_opt"], rtol=1e-14)
    np.testing.assert_allclose(law.replace(ridge=best).theory().excess_risk, wanted["excess_opt"], rtol=1e-12)
    np.testing.assert_allclose(law.replace(ridge=0.0).theory().excess_risk, float(wanted["excess_ridgeless"]), rtol=1e-12)


@pytest.mark.parametrize("entry", entries("ridge_optimal_lambda_general"), ids=["positive", "negative"])
def test_general_optimum(entry):
    inputs, wanted = entry["inputs"], entry["outputs"]
    law = law_of(inputs, ridge=0.0)
    best = law.optimal_ridge(allow_negative=inputs["allow_negative"])
    np.testing.assert_allclose(best, wanted["lambda_opt"], rtol=1e-11)
    np.testing.assert_allclose(law.replace(ridge=best).theory().test_error, wanted["test_opt"], rtol=1e-11)
    np.testing.assert_allclose(law.theory().test_error, wanted["test_at_zero_plus"], rtol=1e-11)
    np.testing.assert_allclose(law.negative_ridge_limit(), -wanted["left_edge"], rtol=1e-11)
    if best < 0:
        assert law.optimal_ridge(allow_negative=False) == 0


@pytest.mark.parametrize("entry", entries("ridgeless_gaussian_exact_finite_n"), ids=lambda e: f"p={e['inputs']['p']}")
def test_exact_finite_size(entry):
    inputs, wanted = entry["inputs"], entry["outputs"]
    noise, signal = inputs["noise_var"] ** 0.5, inputs["signal_r2"]
    exact = exact_ridgeless(inputs["n"], inputs["p"], noise=noise, signal_energy=signal)
    np.testing.assert_allclose(exact["excess_risk"], wanted["excess_expected"], rtol=1e-12)
    limit = Ridge(ratio=inputs["p"] / inputs["n"], ridge=0.0, noise=noise, signal_energy=(signal,)).theory()
    np.testing.assert_allclose(limit.excess_risk, wanted["excess_limit"], rtol=1e-12)


# -- identities and limits --------------------------------------------------------------------------------------------

groups = st.lists(st.tuples(st.floats(0, 10), st.floats(0.05, 1), st.floats(0, 2)), min_size=1, max_size=4).filter(
    lambda found: any(s > 1e-3 for s, _, _ in found)
)


def spectrum(found):
    s, w, b = np.array(found).T
    return np.where(s > 1e-3, s, 0.0), w, b


@settings(max_examples=80)
@given(found=groups, log_ratio=st.floats(-2, 2), log_ridge=st.floats(-8, 4), noise=st.floats(0, 2))
def test_identities(found, log_ratio, log_ridge, noise):
    s, w, b = spectrum(found)
    ratio, ridge = 10**log_ratio, 10**log_ridge
    limit = risk(ratio, ridge, noise, s, w, b)
    null = float(np.dot(s, b)) + noise**2
    df = limit["degrees_of_freedom"]
    rank = ratio * w[s > 0].sum() / w.sum()
    assert 0 < df < min(1.0, rank) * (1 + 1e-12)
    assert 0 <= limit["train_error"] <= limit["test_error"] * (1 + 1e-12)
    assert limit["train_error"] <= null * (1 + 1e-12)
    assert limit["average_bias"] <= limit["bias"] * (1 + 1e-12)
    # generalised cross-validation: train / (1 - df)^2, with 1 - df = lambda / kappa
    left = ridge / limit["effective_ridge"]
    np.testing.assert_allclose(limit["train_error"], left**2 * limit["test_error"], rtol=1e-10)
    np.testing.assert_allclose(limit["gcv"], limit["test_error"], rtol=1e-13)
    np.testing.assert_allclose(limit["test_error"], limit["bias"] + limit["variance"] + noise**2, rtol=1e-12)


@settings(max_examples=60)
@given(found=groups, log_ratio=st.floats(-1, 1), log_ridge=st.floats(-4, 2), log_scale=st.floats(-3, 3))
def test_scale_invariance(found, log_ratio, log_ridge, log_scale):
    """Measuring the inputs in other units: Sigma and lambda times c, beta over sqrt(c)."""
    s, w, b = spectrum(found)
    c = 10**log_scale
    one, two = risk(10**log_ratio, 10**log_ridge, 0.5, s, w, b), risk(10**log_ratio, c * 10**log_ridge, 0.5, c * s, w, b / c)
    for name in ("bias", "variance", "test_error", "train_error", "degrees_of_freedom"):
        np.testing.assert_allclose(one[name], two[name], rtol=1e-10, atol=1e-15, err_msg=name)
    np.testing.assert_allclose(c * one["effective_ridge"], two["effective_ridge"], rtol=1e-10)
    np.testing.assert_allclose(one["coefficient_norm"], c * two["coefficient_norm"], rtol=1e-10)


@settings(max_examples=40)
@given(found=groups, log_ratio=st.floats(-1, 1))
def test_large_ridge_predicts_zero(found, log_ratio):
    s, w, b = spectrum(found)
    null = float(np.dot(s, b)) + 0.25
    for ridge, tolerance in ((1e12, 1e-8), (np.inf, 1e-14)):
        limit = risk(10**log_ratio, ridge, 0.5, s, w, b)
        np.testing.assert_allclose([limit["test_error"], limit["train_error"]], null, rtol=tolerance)


@settings(max_examples=40)
@given(found=groups, share=st.floats(0.01, 0.99))
def test_no_noise_and_enough_samples_is_exact(found, share):
    s, w, b = spectrum(found)
    limit = risk(share, 0.0, 0.0, s, w, b)
    assert limit["test_error"] == limit["train_error"] == 0


def test_ridgeless_isotropic():
    below, above = np.linspace(0.05, 0.95, 19), np.geomspace(1.05, 50, 19)
    under, over = risk(below, 0.0, 0.7, signal_energy=(2.0,)), risk(above, 0.0, 0.7, signal_energy=(2.0,))
    assert np.all(under["bias"] == 0)
    np.testing.assert_allclose(under["variance"], 0.49 * below / (1 - below), rtol=1e-12)
    np.testing.assert_allclose(under["train_error"], 0.49 * (1 - below), rtol=1e-12)
    np.testing.assert_allclose(over["bias"], 2 * (1 - 1 / above), rtol=1e-12)
    np.testing.assert_allclose(over["variance"], 0.49 / (above - 1), rtol=1e-12)
    assert np.all(over["train_error"] == 0)


def test_peak():
    at = risk(1.0, 0.0, 0.5)
    assert np.isinf([at["variance"], at["test_error"], at["excess_risk"], at["gcv"], at["coefficient_norm"]]).all()
    assert at["bias"] == at["train_error"] == 0
    assert risk(1.0, 0.0, 0.0)["test_error"] == 0  # without noise the limit is continuous
    ridge = np.geomspace(1e-12, 1e-8, 5)
    np.testing.assert_allclose(risk(1.0, ridge, 0.5)["test_error"] * 2 * np.sqrt(ridge), 0.25, rtol=1e-3)
    assert np.isinf(
        Ridge(ratio=2.0, ridge=0.0, eigenvalues=(0.0, 1.0), weights=(0.5, 0.5), signal_energy=(0.0, 1.0)).theory().test_error
    )


@pytest.mark.parametrize("snr", [0.3, 1.0, 2.0, 9.0, 25.0])
def test_second_descent_is_not_monotone_at_high_signal(snr):
    """Over-parametrised branch: decreasing for SNR <= 1, else a minimum at sqrt(SNR) / (sqrt(SNR) - 1)."""
    ratios = np.geomspace(1.001, 1e4, 20001)
    excess = risk(ratios, 0.0, 1.0, signal_energy=(snr,))["excess_risk"]
    if snr <= 1:
        assert np.all(np.diff(excess) < 0)
        assert excess[-1] > snr
    else:
        root = np.sqrt(snr)
        np.testing.assert_allclose(ratios[np.argmin(excess)], root / (root - 1), rtol=1e-3)
        np.testing.assert_allclose(excess.min(), 2 * root - 1, rtol=1e-6)


def test_infinitely_many_features():
    wide, very = Ridge(ratio=np.inf, **GROUPS).theory(), Ridge(ratio=1e9, **GROUPS).theory()
    for name in Ridge.observables:
        if name != "effective_ridge":
            np.testing.assert_allclose(wide[name], very[name], atol=1e-7, err_msg=name)
    assert np.isinf(wide.effective_ridge)
    assert Ridge(ratio=np.inf).negative_ridge_limit() == -np.inf
    mixed = risk([0.5, np.inf], 0.1, 0.5)["test_error"]
    np.testing.assert_allclose(mixed, [risk(0.5, 0.1, 0.5)["test_error"], 1.25])
    with pytest.raises(ValueError, match="ratio = inf"):
        Ridge(ratio=np.inf).simulate(50, 0)
    with pytest.raises(ValueError, match="ridge = inf"):
        risk(np.inf, np.inf, 0.5)


def test_equal_groups_merge():
    one = Ridge(ratio=1.7, ridge=0.03, signal_energy=(3.0,)).theory()
    two = Ridge(ratio=1.7, ridge=0.03, eigenvalues=(1.0, 1.0), weights=(1.0, 2.0), signal_energy=(0.5, 2.5)).theory()
    for name in Ridge.observables:
        np.testing.assert_allclose(one[name], two[name], rtol=1e-12, err_msg=name)


# -- the best penalty -------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(found=groups, log_ratio=st.floats(-1, 1), noise=st.floats(0.05, 2))
def test_no_penalty_beats_the_best_one(found, log_ratio, noise):
    s, w, b = spectrum(found)
    if not (s * b > 1e-3).any():
        return
    law = Ridge(ratio=10**log_ratio, noise=noise, eigenvalues=tuple(s), weights=tuple(w), signal_energy=tuple(b))
    best = law.optimal_ridge()
    limit = law.negative_ridge_limit()
    value = float(law.replace(ridge=best).theory().test_error)
    rivals = np.r_[0.0, limit * np.linspace(0.01, 0.99, 50), np.geomspace(1e-6, 1e6, 200), best * np.array([0.999, 1.001])]
    rivals = rivals[(rivals >= 0) | (rivals > limit)]
    assert np.all(np.asarray(law.evaluate(ridge=rivals)["test_error"]) >= value * (1 - 1e-12))


@pytest.mark.parametrize("ratio", [1e-7, 1.0, 1 + 1e-12, 1e6])
def test_best_penalty_of_extreme_spectra(ratio):
    """Eigenvalues over twelve decades and ratios where the test error is flat to rounding: the derivative still has a zero."""
    s, w, b = (1e-6, 1.0, 1e6), (1.0, 2.0, 1.0), (0.1, 0.0, 1.0)
    best = best_ridge(ratio, 0.5, s, w, b)
    rivals = best * np.geomspace(0.3, 3, 21) if best > 0 else np.abs(best) * np.geomspace(0.1, 10, 21)
    value = float(risk(ratio, best, 0.5, s, w, b)["test_error"])
    assert np.all(risk(ratio, rivals, 0.5, s, w, b)["test_error"] >= value * (1 - 1e-12))


@pytest.mark.parametrize("ratio", [0.3, 1.0, 4.0])
def test_even_prior_has_the_closed_form(ratio):
    """Any covariance with the signal spread evenly over the directions: lambda = gamma tau^2 / |beta|^2."""
    law = Ridge(ratio=ratio, noise=0.6, eigenvalues=(0.1, 1.0, 5.0), weights=(0.2, 0.5, 0.3), signal_energy=(0.4, 1.0, 0.6))
    np.testing.assert_allclose(law.optimal_ridge(), ratio * 0.36 / 2.0, rtol=1e-13)
    nudged = law.replace(signal_energy=(0.4, 1.0, 0.6 + 1e-9))  # the general search, next to the closed form
    np.testing.assert_allclose(nudged.optimal_ridge(), law.optimal_ridge(), rtol=1e-6)


def test_ends_of_the_best_penalty():
    assert best_ridge(0.5, 0.5, signal_energy=(0.0,)) == np.inf
    assert best_ridge(0.5, 0.0, (1.0, 2.0), (0.5, 0.5), (1.0, 0.1)) == 0
    assert best_ridge(0.5, 1e-6, (1.0, 2.0), (0.5, 0.5), (1.0, 0.1)) > 0
    with pytest.raises(ValueError, match="ratio = inf"):
        best_ridge(np.inf, 0.5)


# -- array form, experiments ------------------------------------------------------------------------------------------


def test_array_form():
    law = Ridge(noise=0.3, **GROUPS)
    ratio, ridge, noise = np.array([0.4, 1.0, 3.0]), np.array([0.0, 0.1]), np.array([0.0, 0.5])
    grid = law.evaluate(ratio=ratio[:, None, None], ridge=ridge[:, None], noise=noise)
    assert {np.shape(grid[name]) for name in Ridge.outputs()} == {(3, 2, 2)}
    for i, j, k in np.ndindex(3, 2, 2):
        one = law.replace(ratio=ratio[i], ridge=ridge[j], noise=noise[k]).theory()
        for name in Ridge.observables:
            np.testing.assert_allclose(grid[name][i, j, k], one[name], rtol=1e-12, atol=1e-15, err_msg=name)


def test_experiment_path_equals_single_draws():
    law = Ridge(ratio=1.5, **GROUPS)
    ridge, noise = np.array([[0.0], [0.01], [1.0]]), np.array([0.0, 0.5])
    path = law.experiment(60, 3, ridge=ridge, noise=noise)
    for i, j in np.ndindex(3, 2):
        one = law.replace(ridge=ridge[i, 0], noise=noise[j]).simulate(60, 3)
        for name in Ridge.observables:
            found = np.broadcast_to(path[name], (3, 2))[i, j]
            np.testing.assert_allclose(found, one[name], rtol=1e-10, atol=1e-13, err_msg=name)


@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_interpolation_is_the_limit_of_a_small_penalty(ratio):
    """gcv and the effective ridge at lambda = 0 in a simulation are limits, not 0/0."""
    law = Ridge(ratio=ratio, **GROUPS)
    path = law.experiment(40, 0, ridge=np.array([0.0, 1e-9]))
    for name in Ridge.observables:
        np.testing.assert_allclose(path[name][0], path[name][1], rtol=1e-5, atol=1e-8, err_msg=name)


@pytest.mark.parametrize(
    "law",
    [
        Ridge(ratio=0.5, ridge=0.0, noise=0.7),
        Ridge(ratio=2.0, ridge=0.0, **GROUPS),
        Ridge(ratio=1.0, ridge=0.05, entries="sign", **GROUPS),
        Ridge(ratio=2.0, ridge=0.1, eigenvalues=(0.0, 1.0), weights=(0.7, 0.3), signal_energy=(1.0, 1.0)),
        Ridge(ratio=5.0, ridge=-0.4, eigenvalues=(1.0, 2.0), weights=(0.5, 0.5), signal_energy=(0.1, 1.0)),
    ],
    ids=["least squares", "interpolation", "signs at p = n", "rank deficient", "negative ridge"],
)
def test_agrees_with_simulation(law):
    result = compare(law, sizes=[40, 80, 160], seeds=150, resolution=0.1)
    assert result.passed, str(result)


def test_exact_mean_at_finite_size():
    """Gaussian inputs, n and p small and close: the exact mean holds where the limit, 4, is a quarter too small."""
    seeds = 1500
    runs = [float(Ridge(ratio=16 / 20, ridge=0.0, noise=1.0).experiment(16, seed)["variance"]) for seed in range(seeds)]
    exact = float(exact_ridgeless(20, 16, noise=1.0)["variance"])
    assert exact == pytest.approx(16 / 3)
    # tr S^-1 has a heavy tail here (its variance is finite for n - p > 3): standard error from means of blocks of 50
    blocks = np.mean(np.reshape(runs, (30, -1)), axis=1)
    assert abs(blocks.mean() - exact) < 5 * blocks.std(ddof=1) / np.sqrt(30)
    assert abs(blocks.mean() - 4.0) > 3 * blocks.std(ddof=1) / np.sqrt(30)
    assert np.isinf(exact_ridgeless(20, [19, 20, 21], noise=1.0)["variance"]).all()
    assert np.all(exact_ridgeless(20, [19, 20, 21], noise=0.0)["variance"] == 0)


def test_realised_ratio_and_weights():
    law = Ridge(ratio=1.7, **GROUPS).realised(50)
    assert law.ratio == 50 / 29
    np.testing.assert_allclose(law.shares, [0.3, 0.4, 0.3])
    np.testing.assert_allclose(Ridge(weights=(3.0,)).shares, [1.0])


# -- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (dict(ratio=0.5, ridge=-0.1), "ridge = -0.1 .* at least 0"),
        (dict(ratio=2.0, ridge=-0.2), "ridge = -0.2 .* above -0.1715728753"),
        (dict(ridge=np.nan), "ridge = nan"),
        (dict(ridge=np.inf), "ridge = inf"),
        (dict(eigenvalues=(1.0, -1.0), weights=(0.5, 0.5), signal_energy=(1.0, 1.0)), "eigenvalues"),
        (dict(eigenvalues=(0.0,)), "eigenvalues"),
        (dict(eigenvalues=(1.0, 2.0)), "weights"),
        (dict(weights=(0.0,)), "weights"),
        (dict(signal_energy=(1.0, 2.0)), "signal_energy"),
        (dict(signal=(1.0,)), "it is called 'signal_energy' now"),
        (dict(rigde=1.0), "did you mean 'ridge'"),
    ],
)
def test_refusals(changes, words):
    with pytest.raises(ValueError, match=words):
        Ridge(**changes)


def test_array_refusals():
    with pytest.raises(ValueError, match="at least 0 unless"):
        Ridge().evaluate(ratio=[0.5, 2.0], ridge=-0.1)
    with pytest.raises(ValueError, match=r"ridge = -1 .* above -0.1715"):
        Ridge(ratio=2.0).evaluate(ridge=[0.0, -1.0])
    with pytest.raises(ValueError, match="ratio = -1"):
        Ridge().evaluate(ratio=[1.0, -1.0])
    with pytest.raises(ValueError, match="one value of signal_energy at a time"):
        Ridge().evaluate(signal_energy=[1.0])
    with pytest.raises(ValueError, match="no parameter 'signal': it is called 'signal_energy' now"):
        Ridge().evaluate(signal=[1.0])
    with pytest.raises(ValueError, match="one value of ratio at a time"):
        Ridge().experiment(10, 0, ratio=[1.0, 2.0])
    with pytest.raises(ValueError, match="size = 2"):
        Ridge(**GROUPS).simulate(2, 0)
