"""The equiangular law: reference values, its own differential equation, inverse queries, bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad, solve_ivp
from scipy.special import exp1, expi

from limitlab.errors import UnreachableTarget
from limitlab.laws import EquiangularTokens
from limitlab.laws.attention.equiangular import (
    collapse_time,
    entire_part,
    largest_beta,
    overlap,
    scaled_exp1,
    time_to_shrink,
    velocity,
)
from limitlab.models.attention import flow
from references import reference


def cases(law):
    return [(entry["inputs"], entry["outputs"]) for entry in reference("attention", law)]


@pytest.mark.parametrize(("inputs", "outputs"), cases("sa_equiangular_overlap"))
def test_overlap_reference(inputs, outputs):
    law = EquiangularTokens(
        tokens=inputs["n"],
        beta=inputs["beta"],
        start_overlap=inputs["gamma0"],
        normalised=inputs["kind"] == "SA",
        times=inputs["t"],
    )
    assert abs(float(law.theory().overlap) - outputs["gamma"]) < 1e-10


@pytest.mark.parametrize(("inputs", "outputs"), cases("sa_clustering_time"))
def test_collapse_time_reference(inputs, outputs):
    law = EquiangularTokens(
        tokens=inputs["n"], beta=inputs["beta"], start_overlap=inputs["gamma0"], normalised=inputs["kind"] == "SA"
    )
    assert abs(law.collapse_time(inputs["eps"]) / outputs["t_star"] - 1) < 1e-11


@settings(max_examples=30)
@given(st.integers(2, 500), st.floats(0, 30), st.floats(0.02, 0.98), st.floats(1e-6, 0.9), st.booleans())
def test_time_is_the_integral_of_one_over_the_velocity(n, beta, where, share, normalised):
    g0 = -1 / (n - 1) + where * (1 + 1 / (n - 1))
    eps = share * (1 - g0)
    integral, error = quad(
        lambda s: (1 - g0) * np.exp(-s) / velocity(1 - (1 - g0) * np.exp(-s), n, beta, normalised),
        0,
        -np.log(share),
        epsrel=1e-11,
    )
    found = float(collapse_time(eps, n, beta, g0, normalised))
    assert abs(found - integral) < 1e-9 * integral + 10 * error


@settings(max_examples=30)
@given(st.integers(2, 200), st.floats(0, 12), st.floats(0.05, 0.95), st.floats(0.0, 20.0), st.booleans())
def test_overlap_and_time_are_inverse(n, beta, where, time, normalised):
    g0 = -1 / (n - 1) + where * (1 + 1 / (n - 1))
    time = time if normalised else time * np.exp(-beta)
    g = float(overlap(time, n, beta, g0, normalised))
    assert g0 <= g <= 1
    if 1e-9 < 1 - g < (1 - g0) * (1 - 1e-6):
        # the error of 1 - g is a rounding of g: compare in g
        back = float(collapse_time(1 - g, n, beta, g0, normalised))
        assert abs(back - time) * float(velocity(g, n, beta, normalised)) < 1e-12


@pytest.mark.parametrize("normalised", [True, False])
def test_trajectory_solves_its_equation(normalised):
    times = np.linspace(0.1, 6 if normalised else 0.6, 8)
    found = solve_ivp(
        lambda t, g: velocity(g, 20, 3.0, normalised), (0, times[-1]), [0.1], "DOP853", times, rtol=1e-13, atol=1e-14
    )
    np.testing.assert_allclose(overlap(times, 20, 3.0, 0.1, normalised), found.y[0], atol=1e-12)


def test_small_beta_meets_beta_zero():
    times = collapse_time(1e-3, 32, np.array([0.0, 1e-300, 1e-12, 1e-8]))
    np.testing.assert_allclose(times, times[0], rtol=1e-7)
    assert abs(times[2] / times[0] - 1) < 1e-11


def test_nothing_jumps_where_the_formula_switches():
    beta = (1 - 1 / 32) * (1 + np.array([-1e-9, 1e-9]))  # beta c = 1
    low, high = collapse_time(1e-3, 32, beta)
    assert 0 < high - low < 1e-8


def test_large_beta_does_not_overflow():
    assert np.isfinite(collapse_time(1e-3, 500, 690.0))
    assert overlap(1e3, 500, 690.0) == pytest.approx(0.0, abs=1e-12)
    assert time_to_shrink(5e4, 32, 3.0, 0.0, True) == pytest.approx(2.5e4, rel=1e-3)  # e^-5e4 underflows


def test_final_rate_is_two():
    near, far = collapse_time(np.array([1e-6, 1e-10]), 32, 4.0)
    assert np.log(1e4) / (far - near) == pytest.approx(2.0, abs=1e-4)


def test_time_grows_with_beta_and_largest_beta_inverts_it():
    betas = np.linspace(0, 20, 50)
    assert np.all(np.diff(collapse_time(1e-3, 32, betas)) > 0)
    for beta in (0.5, 5.0, 12.0):
        assert largest_beta(float(collapse_time(1e-3, 32, beta)), 1e-3, 32) == pytest.approx(beta, rel=1e-10)
    with pytest.raises(UnreachableTarget, match="allow more layers"):
        EquiangularTokens(tokens=32).largest_beta(time=1.0)
    with pytest.raises(ValueError, match="not monotone"):
        EquiangularTokens(tokens=32, normalised=False).largest_beta(time=30.0)


@pytest.mark.parametrize("overlap_at_start", [-0.1, 0.0, 0.3])
def test_particles_stay_equiangular(overlap_at_start):
    target = np.full((8, 8), overlap_at_start) + (1 - overlap_at_start) * np.eye(8)
    x = np.linalg.cholesky(target)
    final = flow(x, 3.0, 2.0, tolerance=1e-13)
    pairs = (final @ final.T)[~np.eye(8, dtype=bool)]
    assert np.ptp(pairs) < 1e-12
    assert pairs[0] == pytest.approx(float(overlap(2.0, 8, 3.0, overlap_at_start)), abs=1e-12)


def test_two_tokens_are_exact_in_every_dimension():
    x = np.array([[1.0, 0.0, 0.0], [-0.6, 0.8, 0.0]])
    final = flow(x, 2.0, 4.0)
    assert final[0] @ final[1] == pytest.approx(float(overlap(4.0, 2, 2.0, -0.6)), abs=1e-10)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(start_overlap=-0.2), "no equiangular configuration"),
        (dict(tokens=2, start_overlap=-0.9, beta=600.0), "at most"),
    ],
)
def test_refusals(changes, message):
    with pytest.raises(ValueError, match=message):
        EquiangularTokens(**{"tokens": 16, **changes})


def test_distance_has_to_be_ahead():
    with pytest.raises(ValueError, match="distance"):
        EquiangularTokens(start_overlap=0.5).collapse_time(0.6)


def test_exponential_integrals():
    x = np.array([0.3, 0.999, 1.001, 5.0, 49.9, 50.1, 200.0])
    np.testing.assert_allclose(entire_part(x), expi(x) - np.euler_gamma - np.log(x), rtol=1e-14)
    np.testing.assert_allclose(entire_part(-x), -exp1(x) - np.euler_gamma - np.log(x), rtol=1e-13)
    np.testing.assert_allclose(scaled_exp1(x), np.exp(x) * exp1(x), rtol=1e-14)
