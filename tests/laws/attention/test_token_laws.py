"""Clustering, mean field on the circle, one cluster at beta = 0, residual networks: references, limits, solvers, bad input."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ive

from limitlab.errors import ConvergenceError, Refused
from limitlab.laws import CircleMeanField, ResidualFlow, SingleCluster, TokenClustering
from limitlab.laws.attention import _circle_density as circle_density
from limitlab.laws.attention.circle import escape_time, growth_rates, most_unstable, poisson_radius
from limitlab.laws.attention.clustering import critical_beta, merging_time, plateau_time
from limitlab.laws.attention.equiangular import collapse_time
from limitlab.laws.attention.residual import ode_output, residual_output, smooth_layer
from limitlab.models.attention import Attention, circle, flow
from limitlab.numerics.special import von_mises_coefficients
from references import reference


def cases(law):
    return [(entry["inputs"], entry["outputs"]) for entry in reference("attention", law)]


# -- mean field ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("inputs", "outputs"), cases("sa_uniform_growth_rate"))
def test_growth_rate_reference(inputs, outputs):
    law = CircleMeanField(beta=inputs["beta"], dimension=inputs["d"], normalised=inputs["kind"] == "SA")
    assert law.growth_rates(inputs["k"]) == pytest.approx(outputs["rate"], rel=1e-12)


@pytest.mark.parametrize(("inputs", "outputs"), cases("sa_most_unstable_mode"))
def test_most_unstable_reference(inputs, outputs):
    assert CircleMeanField(beta=inputs["beta"], dimension=inputs["d"]).predicted_clusters() == outputs["k_max"]


@pytest.mark.parametrize(("inputs", "outputs"), cases("sa_circle_pde"))
@pytest.mark.parametrize(("solver", "tolerance"), [("fourier", 1e-9), ("volumes", 2e-6), ("particles", 5e-4)])
def test_density_reference(inputs, outputs, solver, tolerance):
    law = CircleMeanField(
        beta=inputs["beta"], density=((inputs["a"], 0.0), (0.0, inputs["b"])), times=inputs["T"], solver=solver
    )
    result = law.theory()
    for name, value in outputs.items():
        assert abs(float(result[name]) - value) < tolerance
        assert abs(float(result[name]) - value) < 3 * result[name].attrs["numerical_error"] + 1e-9


@pytest.mark.parametrize(("beta", "normalised"), [(0.5, True), (9.0, True), (20.0, True), (1.0, False), (3.0, False)])
@pytest.mark.parametrize("solver", ["volumes", "particles"])
def test_other_solvers_know_their_errors(solver, beta, normalised):
    """Against the spectral method, also where the steps in time cost more than the resolution in space."""
    times = 1.0 if normalised else float(np.exp(-beta))
    law = CircleMeanField(beta=beta, normalised=normalised, times=times)
    exact, found = law.theory(), law.replace(solver=solver).theory()
    for name in law.observables:
        error = found[name].attrs["numerical_error"]
        assert abs(float(found[name] - exact[name])) <= error + exact[name].attrs["numerical_error"], name
        assert error < 1e-3


@pytest.mark.parametrize(("inputs", "outputs"), cases("sa_beta0_circle_poisson_kernel"))
def test_poisson_reference(inputs, outputs):
    assert poisson_radius(inputs["r0"], inputs["T"]) == pytest.approx(outputs["r"], abs=1e-13)


def test_wrapped_cauchy_stays_one():
    harmonics = tuple((2 * 0.3**k, 0.0) for k in range(1, 40))
    result = CircleMeanField(beta=0.0, density=harmonics, times=(0.5, 1.5)).theory()
    radius = poisson_radius(0.3, np.array([0.5, 1.5]))
    np.testing.assert_allclose(result.cos1, radius, atol=1e-12)
    np.testing.assert_allclose(result.cos2, radius**2, atol=1e-12)


@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_small_harmonics_grow_at_their_rate(k, normalised):
    density = tuple((1e-6 if degree == k else 0.0, 0.0) for degree in range(1, k + 1))
    rho, _ = circle_density.spectral_density(density, 4.0, [0.0, 0.2], normalised=normalised)
    waves = np.abs(np.fft.rfft(rho, axis=-1)[:, k])
    rate = float(growth_rates(k, 4.0, normalised=normalised))
    assert np.log(waves[1] / waves[0]) / 0.2 == pytest.approx(rate, rel=1e-6)


@pytest.mark.parametrize("d", [3, 4, 5])
def test_growth_rates_by_quadrature(d):
    """sigma_k from its definition: the Funk-Hecke eigenvalue of e^{beta t} on the sphere, by Gauss-Gegenbauer quadrature."""
    from scipy.special import eval_gegenbauer, roots_gegenbauer

    beta, nu = 2.5, d / 2 - 1
    t, weight = roots_gegenbauer(80, nu)
    kernel = np.exp(beta * t)
    for k in (1, 2, 3):
        harmonic = eval_gegenbauer(k, nu, t) / eval_gegenbauer(k, nu, 1.0)
        expected = k * (k + d - 2) / beta * (weight @ (kernel * harmonic)) / (weight @ kernel)
        assert growth_rates(k, beta, d) == pytest.approx(expected, rel=1e-11)
        unnormalised = k * (k + d - 2) / beta * (weight @ (kernel * harmonic)) / weight.sum()
        assert growth_rates(k, beta, d, normalised=False) == pytest.approx(unnormalised, rel=1e-11)


def test_growth_rates_at_beta_zero_and_large():
    np.testing.assert_allclose(growth_rates([1, 2], 1e-7, 4), growth_rates([1, 2], 0.0, 4), atol=1e-7)
    assert np.isfinite(growth_rates(5, 600.0)).all()
    assert most_unstable(50.0) == round(np.sqrt(100))
    assert escape_time(5.0, 10_000) == pytest.approx(np.log(100) / growth_rates(3, 5.0))
    with pytest.raises(ValueError, match="k is not allowed"):
        growth_rates(0, 1.0)
    with pytest.raises(ValueError, match="dimension"):
        growth_rates(1, 1.0, 1)


@settings(max_examples=10)
@given(st.integers(0, 10**6), st.floats(0.0, 40.0), st.booleans())
def test_fourier_field_is_the_field(seed, beta, normalised):
    theta = np.random.default_rng(seed).uniform(0, 2 * np.pi, 30)
    x = np.stack([np.cos(theta), np.sin(theta)], axis=1)
    drift = Attention(beta, normalised=normalised).drift(0.0, x)
    expected = np.cos(theta) * drift[:, 1] - np.sin(theta) * drift[:, 0]
    found = circle.angular_velocity(theta, beta, normalised)
    np.testing.assert_allclose(found, expected, atol=1e-11 * max(1.0, np.abs(expected).max()))


def test_kernel_coefficients():
    theta = 2 * np.pi * np.arange(256) / 256
    kernel = np.exp(6.0 * (np.cos(theta) - 1))
    even, odd = von_mises_coefficients(6.0, 10)
    for k in range(10):
        assert even[k] == pytest.approx((kernel * np.cos(k * theta)).mean(), abs=1e-15)
        assert odd[k] == pytest.approx((np.sin(theta) * kernel * np.sin(k * theta)).mean(), abs=1e-15)
    assert even[3] == ive(3, 6.0)


def test_solvers_orders():
    density, exact = ((0.5, 0.0), (0.0, 0.3)), 0.3073457160085986
    errors = [
        abs(
            circle_density.moments(circle_density.volume_density(density, 4.0, [1.0], cells=cells), offset=0.5)["cos1"][0]
            - exact
        )
        for cells in (100, 200, 400)
    ]
    order = np.log2(errors[0] / errors[2]) / 2
    assert 1.7 < order < 3.2


def test_invariants_of_the_density():
    density = ((0.5, 0.2), (-0.1, 0.3))
    turned = []  # theta -> -theta changes the signs of the sines
    for coefficients in (density, tuple((a, -b) for a, b in density)):
        turned.append(CircleMeanField(beta=3.0, density=coefficients, times=2.0).theory())
    assert float(turned[0].cos1) == pytest.approx(float(turned[1].cos1), abs=1e-10)
    assert float(turned[0].sin1) == pytest.approx(-float(turned[1].sin1), abs=1e-10)
    rho, _ = circle_density.spectral_density(density, 3.0, [0.0, 1.0, 2.0])
    np.testing.assert_allclose(rho.mean(axis=-1) * 2 * np.pi, 1, atol=1e-12)
    flat, _ = circle_density.spectral_density(((0.0, 0.0),), 3.0, [5.0])
    np.testing.assert_allclose(flat, 1 / (2 * np.pi), atol=1e-10)
    cells = circle_density.volume_density(density, 9.0, [4.0], cells=200)
    assert cells.min() >= 0
    assert cells.mean() * 2 * np.pi == pytest.approx(1, abs=1e-12)


def test_unresolved_density_is_an_error(monkeypatch):
    monkeypatch.setattr(circle_density, "LARGEST_GRID", 128)
    with pytest.raises(ConvergenceError, match="volumes"):
        CircleMeanField(beta=9.0, times=8.0).theory()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(density=((1.5, 0.0),)), "density"),
    ],
)
def test_circle_refusals(changes, message):
    with pytest.raises(ValueError, match=message):
        CircleMeanField(**changes)


def test_densities_live_on_the_circle():
    law = CircleMeanField(dimension=3)
    with pytest.raises(ValueError, match="dimension = 2"):
        law.theory()
    assert law.growth_rates(2) > 0


def test_quantiles():
    density = ((0.9, 0.0),)
    levels = np.linspace(0.01, 0.99, 9)
    angles = circle.density_quantiles(density, levels)
    np.testing.assert_allclose(angles / (2 * np.pi) + 0.9 * np.sin(angles) / (2 * np.pi), levels, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("beta", [5.0, 9.0, 16.0, 25.0, 50.0])
def test_number_of_early_clusters(beta):
    from limitlab.laws.attention._claims import seen_clusters

    assert all(abs(seen_clusters(beta, 5000, seed) - most_unstable(beta)) <= 2 for seed in range(4))


# -- clustering ----------------------------------------------------------------------------------------------------------


def test_clustering_jumps_at_the_collapse_time():
    law = TokenClustering(tokens=32, beta=3.0)
    time = law.collapse_time()
    assert time == pytest.approx(5.898, abs=5e-4)
    result = law.replace(times=(0.99 * time, 1.01 * time)).theory()
    assert result.pair_probability.values.tolist() == [0.0, 1.0]


def test_boundary_inverts_the_collapse_time():
    betas = np.array([0.5, 3.0, 6.0])
    times = np.asarray(collapse_time(1e-3, 32, betas))
    np.testing.assert_allclose(critical_beta(times, 32), betas, rtol=1e-9)
    assert critical_beta([1.0], 32)[0] == 0.0


@pytest.mark.parametrize(
    ("beta", "tokens", "ratio"), [(9.0, 128, 0.84), (12.0, 500, 0.96), (30.0, 500, 0.92), (15.0, 2000, 0.99)]
)
def test_plateau_formula(beta, tokens, ratio):
    assert plateau_time(beta, tokens) / collapse_time(1e-3, tokens, beta) == pytest.approx(ratio, abs=0.006)


def test_two_clusters_live_as_long_as_two_tokens():
    pair = np.array([[1.0, 0.0, 0.0], [-0.5, np.sqrt(0.75), 0.0]])
    time = float(merging_time(-0.5, 3.0))
    clusters = flow(np.repeat(pair, 5, axis=0), 3.0, time)
    assert clusters[0] @ clusters[-1] == pytest.approx(1 - 1e-3, abs=1e-8)
    slope = np.diff(np.log(merging_time(-0.5, np.array([20.0, 22.0]))))[0] / 2
    assert slope == pytest.approx(1.5, abs=0.06)


def test_density_as_a_flat_list():
    law = CircleMeanField(density=(0.5, 0.0, 0.0, 0.3))
    assert law == CircleMeanField(density=((0.5, 0.0), (0.0, 0.3)))
    with pytest.raises(ValueError, match="density"):
        CircleMeanField(density=(0.5, 0.0, 0.3))


def test_low_dimension_is_a_mean_over_systems():
    law = TokenClustering(tokens=32, dimension=2, beta=5.0, times=15.0)
    runs = [float(law.simulate(40, seed).pair_probability) for seed in range(3)]
    # 0.4394 and 0.103 per system: from 300 systems of an independent program
    assert abs(np.mean(runs) - 0.4394) < 5 * 0.103 * np.sqrt(1 / 120 + 1 / 300)


def test_clustering_path_and_scalar_time():
    law = TokenClustering(tokens=8, times=4.0)
    assert law.theory().pair_probability.dims == ()
    path = law.experiment(16, 0, beta=np.array([0.0, 2.0]))
    assert np.shape(path["pair_probability"]) == (2,)


# -- one cluster, residual networks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "n"), [(2, 2), (2, 8), (3, 16), (10, 32)])
def test_one_cluster(d, n):
    law = SingleCluster(tokens=n, dimension=d)
    assert law.collapsed(60.0, seeds=20) == 1.0
    assert law.collapsed(1.0, seeds=20) < 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("d", "n"), [(2, 2), (2, 8), (2, 64), (3, 64), (10, 32)])
def test_one_cluster_from_many_starts(d, n):
    assert SingleCluster(tokens=n, dimension=d).collapsed(60.0, seeds=100) == 1.0


def test_built_in_weights_are_those_of_the_page():
    w, a, b = smooth_layer(0.4, 3)
    for i in range(3):
        assert b[i] == pytest.approx(0.3 * math.cos(0.4 + i), rel=1e-14)
        for j in range(3):
            assert w[i, j] == pytest.approx(math.cos(0.4 + 1.3 * i + 0.7 * j**2) / math.sqrt(3), rel=1e-14)
            assert a[i, j] == pytest.approx(math.sin(0.8 + 1.3 * i + 0.7 * j**2) / math.sqrt(3), rel=1e-14)


def test_residual_order():
    depths = np.array([20, 40, 80, 160])
    errors = ResidualFlow(dimension=3, horizon=1.5).depth_errors(depths)
    assert -np.polyfit(np.log(depths), np.log(errors), 1)[0] == pytest.approx(1.0, abs=0.1)


def test_residual_equation_knows_its_error():
    """Against a solution to rounding: the stated error of the output and of both observables holds at loose tolerances too."""
    law = ResidualFlow(dimension=5, horizon=3.0)
    exact, best = ode_output(law.start(), 3.0, 1e-13).states[0], law.replace(tolerance=1e-13).theory()
    for tolerance in (1e-4, 1e-6, 1e-9):
        found = ode_output(law.start(), 3.0, tolerance)
        assert np.all(np.abs(found.states[0] - exact) <= found.errors)
        result = law.replace(tolerance=tolerance).theory()
        for name in law.observables:
            assert abs(float(result[name] - best[name])) <= result[name].attrs["numerical_error"]


def test_residual_limits():
    start = np.array([0.3, -0.2])
    np.testing.assert_array_equal(ode_output(start, 0.0).states, [start])
    np.testing.assert_allclose(residual_output(start, 1, 0.1), start + 0.1 * _first_slope(start))
    law = ResidualFlow(weight_noise=0.0)
    assert float(law.simulate(4000, 0).output_norm) == pytest.approx(float(law.theory().output_norm), abs=1e-3)


def _first_slope(x):
    from limitlab.laws.attention.residual import smooth_layer

    w, a, b = smooth_layer(0.0, len(x))
    return w @ np.tanh(a @ x + b)


@pytest.mark.parametrize("solver", ["fourier", "volumes", "particles"])
def test_a_density_at_rest_stays_there_for_ever(solver):
    law = CircleMeanField(density=((0.0, 0.0),), times=1e6, solver=solver)  # rounding alone would wake it after time 50
    assert max(abs(float(value)) for value in law.theory().data_vars.values()) < 1e-12


def test_one_cluster_is_at_rest_and_several_are_not():
    law = CircleMeanField(beta=1.0, times=(60.0, 1e6), solver="particles")
    assert abs(np.diff(law.theory().cos1)) < 1e-12
    one = circle_density.volume_density(law.density, 1.0, [60.0, 1e6], cells=60)
    assert np.array_equal(one[0], one[1])
    with pytest.raises(ConvergenceError, match=r"at beta = .* solver='particles'"):
        circle_density.volume_density(law.density, 20.0, 1e6, cells=60)


@pytest.mark.parametrize("solver", ["fourier", "volumes", "particles"])
def test_what_would_never_arrive_is_stopped(solver, monkeypatch):
    monkeypatch.setattr("limitlab._core.cost.FIRST_LOOK", 0.05)
    with pytest.raises(ConvergenceError, match="would need about"):
        CircleMeanField(beta=300.0, normalised=False, times=1.0, solver=solver).theory()


def test_two_tokens_merge_with_the_closed_probability():
    for dimension, beta in ((2, 0.0), (3, 2.0), (9, 3.0)):
        law = SingleCluster(tokens=2, dimension=dimension, beta=beta)
        times, runs = [1.0, 4.0, 12.0], 2000
        shares, expected = law.collapse_shares(times, runs), np.array([law.pair_collapse_share(t) for t in times])
        error = np.sqrt(np.maximum(expected * (1 - expected), 1 / runs) / runs)
        assert np.all(np.abs(shares - expected) < 4 * error)
    # in the plane the angle between two tokens is uniform, so that the share at time 0 is explicit
    plane = SingleCluster(tokens=2, dimension=2)
    assert plane.pair_collapse_share(0.0, distance=0.5) == pytest.approx(1 / 3)
    with pytest.raises(Refused, match="tokens = 3"):
        SingleCluster(tokens=3).pair_collapse_share(1.0)


def test_positive_temperature_keeps_the_start_and_slows_the_collapse():
    law = SingleCluster(tokens=6, dimension=2)
    cold = law.replace(beta=3.0)
    draws = [law.experiment(4, seed, beta=[0.0, 3.0])["smallest_overlap"] for seed in range(5)]
    np.testing.assert_array_equal([draw[1] for draw in draws], cold.simulate_batch(4, range(5)).smallest_overlap)
    assert np.mean([draw[0] for draw in draws]) > np.mean([draw[1] for draw in draws])
    shares = cold.collapse_shares([20.0, 400.0, 4000.0], 40)
    assert np.all(np.diff(shares) >= 0)
    assert shares[0] < 0.6
    assert shares[-1] > 0.9
