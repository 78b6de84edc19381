"""Early stopping: reference values, an independent quadrature, the two ends, monotonicity, descent, experiments, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab.lab import compare
from limitlab.laws import EarlyStopping, Ridge
from limitlab.laws.regression.early_stopping import risk
from limitlab.numerics.equivalents import right_edge
from limitlab.numerics.spectra import marchenko_pastur
from references import reference

ENTRIES = reference("ridge", "gradient_flow_least_squares")
GROUPS = dict(eigenvalues=(0.2, 1.0, 3.0), weights=(0.3, 0.4, 0.3), signal_energy=(0.5, 1.0, 0.2))
OUTPUTS = dict(bias="bias", variance="variance", test="test_error", train="train_error")


@pytest.mark.parametrize("entry", ENTRIES, ids=["isotropic", "three groups"])
def test_reference_values(entry):
    inputs, wanted = entry["inputs"], entry["outputs"]
    p = sum(inputs["multiplicities"])
    law = EarlyStopping(
        ratio=p / inputs["n"],
        noise=inputs["noise_var"] ** 0.5,
        eigenvalues=inputs["eigenvalues"],
        weights=[m / p for m in inputs["multiplicities"]],
        signal_energy=inputs["signal_energy_sum_beta2_per_group"],
        times=inputs["times"],
    )
    found = law.theory()
    assert found.test_error.dims == ("time",)
    assert found.attrs["accuracy"] < 1e-11
    for key, name in OUTPUTS.items():
        np.testing.assert_allclose(found[name], wanted[key], rtol=1e-11, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("ratio", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("step_share", [0.0, 0.5, 1.0])
def test_isotropic_against_marchenko_pastur_integrals(ratio, step_share):
    """Gauss quadrature of the limiting spectrum, over ten decades of time; the variance to relative accuracy."""
    x, w = marchenko_pastur.quadrature(ratio, count=1500)
    atom = float(marchenko_pastur.atom(ratio))
    step = step_share / float(right_edge([1.0], [ratio]))
    if step:
        count = np.array([1, 2, 5, 12, 13, 30, 1000])
        time, logarithm = count * step, count[:, None] * np.log(np.abs(1 - step * x))
    else:
        time = np.geomspace(1e-7, 1e3, 21)
        logarithm = -time[:, None] * x
    residual, fitted = np.exp(logarithm), -np.expm1(logarithm)
    found = risk(time, ratio, 0.5, signal_energy=(2.0,), step=step)
    mass = (w * residual**2).sum(axis=-1) + atom
    np.testing.assert_allclose(found["bias"], 2 * mass, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(found["variance"], 0.25 * ratio * (w * fitted**2 / x).sum(axis=-1), rtol=1e-10)
    train = 2 * (w * x * residual**2).sum(axis=-1) + 0.25 * (1 - ratio + ratio * mass)
    np.testing.assert_allclose(found["train_error"], train, atol=1e-12)
    assert max(found["accuracy"].values()) < 1e-10


energies = st.floats(0, 2, allow_subnormal=False)
groups = st.lists(st.tuples(st.floats(0.05, 10), st.floats(0.05, 1), energies), min_size=1, max_size=3)
# Close to ratio 1 the variance has a condition number of 1 / |1 - ratio|: no two ways of summing the shares agree to 1e-12 there.
log_ratios = st.floats(-1, 1).filter(lambda x: x == 0 or abs(x) > 1e-3)


@settings(max_examples=25)
@given(found=groups, log_ratio=log_ratios, noise=st.floats(0, 1))
def test_ends_and_monotonicity(found, log_ratio, noise):
    s, w, b = np.array(found).T
    ratio = 10**log_ratio
    times = np.r_[0.0, np.geomspace(1e-3, 1e4, 15), np.inf]
    flow = risk(times, ratio, noise, s, w, b)
    null = float(np.dot(s, b)) + noise**2
    np.testing.assert_allclose([flow["test_error"][0], flow["train_error"][0]], null, rtol=1e-14)
    assert flow["variance"][0] == 0
    slack = 1e-10 * max(null, 1.0)
    assert np.all(np.diff(flow["train_error"]) <= slack)  # the flow descends on it
    assert np.all(np.diff(flow["variance"]) >= -slack * max(1.0, flow["variance"][-1]))
    assert np.all(flow["bias"] >= 0)
    end = Ridge(ratio=ratio, ridge=0.0, noise=noise, eigenvalues=tuple(s), weights=tuple(w), signal_energy=tuple(b)).theory()
    for name in EarlyStopping().observed():
        np.testing.assert_allclose(flow[name][-1], end[name], rtol=1e-12, atol=1e-15, err_msg=name)


@settings(max_examples=25)
@given(found=groups, ratio=st.sampled_from([0.4, 2.5]))
def test_long_times_reach_the_least_norm_solution(found, ratio):
    s, w, b = np.array(found).T
    late, end = (risk(t, ratio, 0.5, s, w, b) for t in (1e6 / s.min(), np.inf))
    for name in EarlyStopping().observed():
        np.testing.assert_allclose(late[name], end[name], rtol=1e-8, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("ratio", [0.5, 2.0, 100.0])
def test_very_long_times_keep_their_digits(ratio):
    """The null space gives the trace of the resolvent a pole at zero; it must not cost digits as the time grows."""
    late, end = (risk(t, ratio, 0.5, **GROUPS) for t in (1e12, np.inf))
    for name in EarlyStopping().observed():
        np.testing.assert_allclose(late[name], end[name], rtol=1e-11, atol=1e-12, err_msg=name)
    assert max(late["accuracy"].values()) < 1e-10


def test_short_times_grow_like_the_gradient():
    """To first order in t the estimator is t X'y / n: variance tau^2 t^2 tr(Sigma^2) / n, train error down by 2t |Sigma beta|^2..."""
    s, w, b = (np.array(GROUPS[name]) for name in ("eigenvalues", "weights", "signal_energy"))
    ratio, t = 1.5, 1e-6
    found = risk(t, ratio, 0.5, s, w, b)
    np.testing.assert_allclose(found["variance"], 0.25 * t**2 * ratio * (w * s**2).sum(), rtol=1e-5)
    np.testing.assert_allclose(((s * b).sum() - found["bias"]) / t, 2 * (s**2 * b).sum(), rtol=1e-4)


@pytest.mark.parametrize(
    ("ratio", "power", "variance", "wanted"), [(0.5, 1, 0.5, 1.033), (2, 4, 1, 1.007), (1.3, 1, 0.2, 1.017)]
)
def test_best_stopping_is_not_better_than_the_best_penalty(ratio, power, variance, wanted):
    model = dict(ratio=ratio, noise=variance**0.5, signal_energy=(power,))
    flow, ridge = EarlyStopping(**model), Ridge(**model)
    best = flow.best_time()
    stopped = float(flow.replace(times=best).theory().excess_risk)
    penalised = float(ridge.replace(ridge=ridge.optimal_ridge()).theory().excess_risk)
    assert stopped / penalised == pytest.approx(wanted, abs=5e-4)
    around = flow.replace(times=(best * 0.99, best * 1.01)).theory().excess_risk
    assert np.all(around > stopped)


def test_best_time_at_the_ends():
    assert EarlyStopping(ratio=0.5, noise=0.0).best_time() == np.inf
    assert EarlyStopping(signal_energy=(0.0,)).best_time() == 0
    law = EarlyStopping(ratio=0.5, noise=0.5, step=0.2)
    count = law.best_time() / 0.2
    assert count == pytest.approx(round(count), abs=1e-9)
    assert abs(law.best_time() - EarlyStopping(ratio=0.5, noise=0.5).best_time()) < 0.5


def test_small_steps_are_the_flow():
    times = (0.5, 2.0, 8.0)
    flow = EarlyStopping(ratio=1.5, times=times, **GROUPS).theory()
    gaps = []
    for step in (0.01, 0.005, 0.0025):
        descent = EarlyStopping(ratio=1.5, times=times, step=step, **GROUPS).theory()
        gaps.append(np.abs(descent.test_error - flow.test_error).max())
    np.testing.assert_allclose(np.diff(np.log2(gaps)), -1, atol=0.05)  # first order in the step


def test_array_form_and_infinite_ratio():
    law = EarlyStopping(times=(0.0, 1.0, np.inf), **GROUPS)
    grid = law.evaluate(ratio=np.array([0.5, 2.0, np.inf])[:, None], noise=np.array([0.0, 0.5]))
    assert np.shape(grid["test_error"]) == (3, 2, 3)
    for i, ratio in enumerate((0.5, 2.0, np.inf)):
        one = law.replace(ratio=ratio, noise=0.5).theory()
        for name in EarlyStopping().observed():
            np.testing.assert_allclose(grid[name][i, 1], one[name], rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(grid["bias"][2], np.dot(GROUPS["eigenvalues"], GROUPS["signal_energy"]))
    assert EarlyStopping(times=2.0).theory().test_error.dims == ()


def test_many_groups():
    """A continuous population spectrum by 60 groups: against simulation-free ridge limits at both ends and a split group."""
    s = np.geomspace(0.05, 5, 60)
    times = np.array([0.1, 1.0, 10.0])
    whole = risk(times, 1.3, 0.5, s, np.ones(60), np.ones(60) / 60)
    halves = risk(times, 1.3, 0.5, np.repeat(s, 2), np.ones(120), np.ones(120) / 120)
    for name in EarlyStopping().observed():
        np.testing.assert_allclose(whole[name], halves[name], rtol=1e-11)


@pytest.mark.parametrize(
    "law",
    [
        EarlyStopping(ratio=1.5, times=(0.3, 3.0, 30.0), **GROUPS),
        EarlyStopping(ratio=0.6, times=(0.3, 3.0, np.inf), entries="sign", **GROUPS),
        EarlyStopping(
            ratio=2.0, times=(0.5, 5.0), step=0.1, eigenvalues=(0.0, 1.0), weights=(0.4, 0.6), signal_energy=(1.0, 1.0)
        ),
    ],
    ids=["flow", "signs", "descent"],
)
def test_agrees_with_simulation(law):
    result = compare(law, sizes=[40, 80, 160], seeds=30)
    assert result.passed, str(result)


def test_experiment_is_gradient_descent():
    """The spectral filter equals plain iterations on the same data."""
    law = EarlyStopping(ratio=2.0, times=1.6, step=0.08, noise=0.0, **GROUPS)
    design = law.design(law.draw(40, 7))
    X, n = design.X, design.samples
    population = np.repeat(GROUPS["eigenvalues"], design.counts)
    shrink = np.eye(40)
    for _ in range(20):
        shrink = shrink - 0.08 * X.T @ (X @ shrink) / n
    coefficients = np.repeat(np.array(GROUPS["signal_energy"]) / design.counts, design.counts)
    bias = np.einsum("i,ij,j->", population, shrink**2, coefficients)
    np.testing.assert_allclose(law.experiment(40, 7)["bias"], bias, rtol=1e-10)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (dict(times=(1.0, np.nan)), "times = .* must be at least 0"),
        (dict(time=1.0), "it is called 'times' now"),
        (dict(step=1.0), "step = 1 .* at most 0.171573"),
        (dict(ratio=np.inf, step=0.1), "step = 0.1 .* at most 0"),
        (dict(ridge=0.1), "no parameter 'ridge'"),
    ],
)
def test_refusals(changes, words):
    with pytest.raises(ValueError, match=words):
        EarlyStopping(**changes)


def test_array_refusals():
    with pytest.raises(ValueError, match="time = -1"):
        risk([-1.0, 1.0], 0.5, 0.5)
    with pytest.raises(ValueError, match=r"step = 0.17 .* at most"):
        EarlyStopping(step=0.17).evaluate(ratio=[2.0, 4.0])


@pytest.mark.parametrize("step", [1e-9, 1e-12, 1e-18, 1e-30])
def test_tiny_steps_have_the_errors_of_gradient_flow(step):
    flow = EarlyStopping(ratio=0.7, noise=0.5, times=(1e-6, 0.01, 1.0)).theory()
    descent = EarlyStopping(ratio=0.7, noise=0.5, times=(1e-6, 0.01, 1.0), step=step).theory()
    for name in flow.data_vars:
        # a step of 1e-9 rounds the first time to whole steps
        np.testing.assert_allclose(descent[name], flow[name], rtol=max(4 * step, 1e-10), atol=1e-12)
