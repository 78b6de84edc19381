"""Noisy mean field: reference values, free energy that falls, Boltzmann law, linear neurons, measured temperature."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab.laws import NoisyMeanField, neuron_interaction
from limitlab.laws.mean_field._free_energy import ErfNeurons, erf_path
from limitlab.laws.mean_field._training import regularised_risk
from limitlab.laws.mean_field.noisy import linear_path
from limitlab.laws.mean_field.potentials import erf_slope
from references import label, reference

NAMES = ("risk", "free_energy", "mean", "second_moment")


@pytest.mark.parametrize("entry", reference("mean_field", "mf_noisy_linear"), ids=label)
def test_linear_reference(entry):
    given_, want = entry["inputs"], entry["outputs"]
    found = NoisyMeanField(
        neuron="linear",
        inverse_temperature=given_["beta"],
        penalty=given_["lam"],
        teacher=given_["theta_star"],
        start_mean=given_["mean0"],
        start_std=math.sqrt(given_["var0"]),
        times=given_["t"],
    ).theory()
    want["second_moment"] = want.pop("var") + want["mean"] ** 2
    for name in NAMES:
        assert float(found[name]) == pytest.approx(want[name], abs=1e-12)


@pytest.mark.parametrize("entry", reference("mean_field", "mf_noisy_erf_stationary"), ids=label)
def test_stationary_reference(entry):
    given_ = entry["inputs"]
    law = NoisyMeanField(
        neuron="erf", inverse_temperature=given_["beta"], penalty=given_["lam"], teacher=given_["teacher"], times=math.inf
    )
    found = law.theory()
    for name in NAMES:
        assert float(found[name]) == pytest.approx(entry["outputs"][name], abs=1e-9)


@pytest.mark.parametrize("entry", reference("mean_field", "mf_noisy_erf_pde"), ids=label)
def test_flow_reference(entry):
    given_ = entry["inputs"]
    found = NoisyMeanField(
        neuron="erf",
        inverse_temperature=given_["beta"],
        penalty=given_["lam"],
        teacher=given_["teacher"],
        start_mean=given_["mean0"],
        start_std=given_["std0"],
        times=given_["t"],
    ).theory()
    for name in NAMES:
        np.testing.assert_allclose(found[name], entry["outputs"][name], atol=entry["tolerance"])


@pytest.mark.parametrize("entry", reference("mean_field", "mf_erf_potential"), ids=label)
def test_interaction_reference(entry):
    found = NoisyMeanField(neuron="erf").interaction(entry["inputs"]["theta1"], entry["inputs"]["theta2"])
    assert found == pytest.approx(entry["outputs"]["U"], abs=1e-13)


@pytest.mark.parametrize("entry", reference("mean_field", "noisy_sgd_excess"), ids=label)
def test_excess_reference(entry):
    found = NoisyMeanField(neuron="linear", **entry["inputs"]).theory().stationary_excess
    assert float(found) == pytest.approx(entry["outputs"]["stationary_excess"], abs=1e-12)


@given(st.floats(2, 300), st.floats(0.02, 1.0), st.floats(-2, 2), st.floats(0.3, 1.0), st.floats(0.002, 0.05))
@settings(max_examples=3, deadline=None)
def test_free_energy_never_increases_in_ten_thousand_steps(beta, penalty, mean, std, step):
    system = ErfNeurons(beta, penalty, 2.0, max(math.sqrt(40 / (beta * penalty)), abs(mean) + 9 * std), 120)
    masses = system.gaussian(mean, std)
    energy = system.free_energy(masses)
    for _ in range(10_000):
        masses = system.advance(masses, step)
        new = system.free_energy(masses)
        assert new <= energy + 1e-13
        energy = new
    assert abs(masses.sum() - 1) < 1e-12
    assert masses.min() >= 0


@pytest.mark.parametrize(("beta", "penalty"), [(5.0, 0.3), (50.0, 0.2)])
def test_the_flow_ends_at_the_boltzmann_law_from_everywhere(beta, penalty):
    system = ErfNeurons(beta, penalty, 2.0, 9.0, 300)
    rest = system.rest()
    psi = system.potential(rest) + np.log(np.maximum(rest, 1e-300)) / beta
    heavy = rest > 1e-5
    assert np.ptp(psi[heavy]) < 1e-9  # log rho + beta Psi is constant
    for start in (-2.0, 0.5, 3.0):
        masses = system.gaussian(start, 0.5)
        for _ in range(1500):
            masses = system.advance(masses, 0.2)
        assert np.abs(masses - rest).sum() < 1e-7
        assert abs(system.free_energy(masses) - system.free_energy(rest)) < 1e-7


def test_boltzmann_law_minimises_the_free_energy():
    system = ErfNeurons(20.0, 0.1, 2.0, 6.0, 200)
    rest, rng = system.rest(), np.random.default_rng(0)
    for _ in range(10):
        other = rng.dirichlet(np.ones(200))
        for share in (1e-3, 0.1):
            assert system.free_energy((1 - share) * rest + share * other) > system.free_energy(rest)


def test_extrapolation_has_high_order():
    """Three grids and two rounds of extrapolation: the error falls by more than 20 when the cells are halved."""
    best, _ = erf_path(20.0, 0.1, 2.0, -1.0, 0.6, [0.5, 2.0], 400)
    errors = [np.abs(erf_path(20.0, 0.1, 2.0, -1.0, 0.6, [0.5, 2.0], cells)[0] - best).max() for cells in (50, 100)]
    assert errors[0] / errors[1] > 8
    assert errors[1] < 1e-4


def test_late_times_meet_the_state_of_rest():
    law = NoisyMeanField(neuron="erf", inverse_temperature=10.0, penalty=1.0, times=(12.0, math.inf))
    found = law.theory()
    for name in NAMES:
        assert abs(float(found[name][0] - found[name][1])) < 1e-7
    linear = NoisyMeanField(neuron="linear", times=(200.0, math.inf)).theory()
    for name in NAMES:
        assert abs(float(linear[name][0] - linear[name][1])) < 1e-10


def test_low_temperature_meets_the_noiseless_flow():
    """beta -> infinity: the mean of linear neurons does not depend on the noise; erf neurons follow the particle flow."""
    from limitlab.laws.mean_field._training import ScalarNetwork
    from limitlab.numerics.ode import follow, runge_kutta
    from limitlab.numerics.quadrature import gaussian_quantiles

    cold = NoisyMeanField(neuron="erf", inverse_temperature=2000.0, penalty=0.01, times=0.5, solver_steps=100).theory()
    network = ScalarNetwork.of("erf", "erf", 2.0)
    z, w = gaussian_quantiles(400)
    order = np.random.default_rng(0).choice(400, 4000, p=w)  # a sample: the network takes equal weights
    advance = runge_kutta(lambda _, theta: network.velocity(theta) - 0.02 * theta)
    theta = list(follow(advance, -1 + 0.6 * z[order], [0.5], 0.05))[-1]
    assert network.risk(theta) == pytest.approx(float(cold.risk), abs=0.03)


@given(st.floats(-3, 3), st.floats(-3, 3))
@settings(max_examples=20, deadline=None)
def test_slope_of_the_erf_potential(a, b):
    step = 1e-5
    difference = (neuron_interaction(a + step, b) - neuron_interaction(a - step, b)) / (2 * step)
    assert float(erf_slope(a, b)) == pytest.approx(float(difference), abs=1e-8)


@pytest.mark.parametrize("activation", ["erf", "identity", "square"])
def test_closed_forms_are_the_quadratures(activation):
    rng = np.random.default_rng(3)
    for _ in range(4):
        a, b = rng.standard_normal((2, 3))
        closed = neuron_interaction(a, b, activation)
        assert closed == pytest.approx(float(neuron_interaction(a, b, activation, closed_form=False)), abs=1e-9)


def test_free_energy_of_linear_neurons_falls():
    path = linear_path(3.0, 0.4, 1.5, -1.0, 2.0, 3, np.linspace(0, 5, 200))
    assert np.all(np.diff(path["free_energy"]) < 0)


def test_the_temperature_of_the_noise():
    """sqrt(2/beta) dW gives the variance 1/(2 lambda beta) at rest; dW/sqrt(beta) would give half of it."""
    law = NoisyMeanField(neuron="linear", inverse_temperature=4.0, penalty=0.3, teacher=1.5, times=math.inf)
    runs = law.simulate_batch(500, range(6))
    variance = float((runs.second_moment - runs["mean"] ** 2).mean())
    assert variance == pytest.approx(1 / (2 * 0.3 * 4), rel=0.06)


def test_teacher_as_a_vector():
    scalar = NoisyMeanField(neuron="linear", dimension=3, teacher=math.sqrt(1.5)).theory()
    vector = NoisyMeanField(neuron="linear", dimension=3, teacher=(1.0, -0.5, 0.5)).theory()
    np.testing.assert_allclose(vector.risk, scalar.risk, rtol=1e-12)


def test_density_integrates_to_one_and_has_the_moments():
    law = NoisyMeanField(neuron="erf", inverse_temperature=20.0, penalty=0.1, times=2.0)
    theta = np.linspace(-7, 7, 4001)
    rho = law.density(theta, 2.0)
    assert np.trapezoid(rho, theta) == pytest.approx(1, abs=1e-6)
    assert np.trapezoid(theta * rho, theta) == pytest.approx(float(law.theory()["mean"]), abs=5e-3)


def test_strong_decay_does_not_explode_the_experiment():
    law = NoisyMeanField(neuron="linear", penalty=40.0, times=(0.01, 1.0))
    run, limit = law.simulate(200, 0), law.theory()
    assert np.abs(run.second_moment - limit.second_moment).max() < 0.3


def test_a_density_that_no_grid_resolves_is_refused():
    with pytest.raises(ValueError, match="raise the penalty"):
        NoisyMeanField(neuron="erf", inverse_temperature=0.01, penalty=1e-6, times=0.1).theory()


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (dict(neuron="erf", dimension=2), "dimension = 2"),
        (dict(neuron="erf", start_std=0.01), "start_std"),
        (dict(teacher=(1.0, 2.0), dimension=3), "teacher"),
    ],
)
def test_bad_input(bad, words):
    with pytest.raises(ValueError, match=words):
        NoisyMeanField(**bad)


SGD = [entry for entry in reference("further_dynamics", "noisy_sgd_excess") if "sgd_step" in entry["inputs"]]


@pytest.mark.parametrize("entry", SGD, ids=label)
def test_noisy_sgd_reference(entry):
    given_, want = entry["inputs"], entry["outputs"]
    teacher, penalty, beta = np.array(given_["teacher"]), given_["penalty"], given_["inverse_temperature"]
    law = NoisyMeanField(
        neuron="linear", dimension=3, inverse_temperature=beta, penalty=penalty, teacher=tuple(given_["teacher"])
    )
    assert float(law.theory().stationary_excess) == pytest.approx(want["limit"], abs=1e-12)
    least = penalty * float(teacher @ teacher) / (1 + penalty)
    for step, value in zip(given_["sgd_step"], want["measured"], strict=True):
        runs = [
            regularised_risk(np.random.default_rng(i), teacher, given_["N"], penalty, beta, step, 120.0) - least
            for i in range(10)
        ]
        assert law.sgd_excess(step, given_["N"]) == pytest.approx(value, abs=entry["tolerance"])
        assert np.mean(runs) == pytest.approx(law.sgd_excess(step, given_["N"]), abs=5 * np.std(runs, ddof=1) / 10**0.5)


@pytest.mark.parametrize("entry", reference("further_dynamics", "noisy_sgd_excess")[:2], ids=label)
def test_equipartition_for_every_number_of_neurons(entry):
    law, want = NoisyMeanField(neuron="linear", **entry["inputs"]), entry["outputs"]["stationary_excess"]
    assert float(law.theory().stationary_excess) == pytest.approx(want, abs=entry["tolerance"])
    for neurons in (1, 3, 100):
        assert law.sgd_excess(1e-9, neurons) == pytest.approx(want, rel=1e-7)


def test_sgd_excess_refuses_steps_that_do_not_settle():
    law = NoisyMeanField(neuron="linear", dimension=3, penalty=0.2)
    with pytest.raises(ValueError, match=r"step = 0\.5"):
        law.sgd_excess(0.5, 5)
    with pytest.raises(ValueError, match="linear"):
        NoisyMeanField(neuron="erf").sgd_excess(0.01, 5)
