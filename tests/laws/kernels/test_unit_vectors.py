"""Averages over unit vectors, numerical derivatives: exact moments, convergence, Monte Carlo, bad input."""

import numpy as np
import pytest

from limitlab.laws.kernels.duals import difference
from limitlab.laws.kernels.lazy import pair_averages, plane_rule, single_averages
from limitlab.laws.uniform_convergence.uniform_convergence import largest_on_ball


@pytest.mark.parametrize("dimension", [3, 4, 7, 40])
def test_moments_of_a_unit_vector(dimension):
    u, v, weights = plane_rule(dimension)
    d = dimension
    exact = {(2, 0): 1 / d, (0, 2): 1 / d, (1, 1): 0.0, (4, 0): 3 / (d * (d + 2)), (2, 2): 1 / (d * (d + 2))}
    for (a, b), value in exact.items():
        assert weights @ (u**a * v**b) == pytest.approx(value, abs=1e-14)
    assert weights.sum() == pytest.approx(1, abs=1e-14)


def test_averages_converge_geometrically():
    X = np.array([[2.0, 1.0, 0.0, 1.0], [-1.0, 2.0, 1.0, 0.0]])
    fine = pair_averages(np.tanh, X, 60, 200)
    gaps = [np.abs(pair_averages(np.tanh, X, radial, 64) - fine).max() for radial in (4, 8, 16)]
    assert gaps[1] < gaps[0] / 20
    assert gaps[2] < 1e-9


def test_averages_against_draws():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3, 5))
    w = rng.standard_normal((400_000, 5))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    values = np.log1p(np.exp(w @ X.T))
    products = values[:, :, None] * values[:, None, :]
    error = products.std(axis=0) / np.sqrt(len(w))

    def softplus(x):
        return np.logaddexp(x, 0)

    assert (np.abs(pair_averages(softplus, X) - products.mean(axis=0)) < 5 * error).all()
    assert (np.abs(single_averages(softplus, X) - values.mean(axis=0)) < 5 * values.std(axis=0) / np.sqrt(len(w))).all()


def test_parallel_rows():
    X = np.array([[1.0, 2.0, 2.0], [2.0, 4.0, 4.0], [-1.0, -2.0, -2.0]])
    found = pair_averages(np.sin, X)
    u, _, weights = plane_rule(3)
    np.testing.assert_allclose(found[0, 1], weights @ (np.sin(3 * u) * np.sin(6 * u)), atol=1e-12)
    np.testing.assert_allclose(found[0, 2], -found[0, 0], atol=1e-12)


def test_a_plane_needs_three_dimensions():
    with pytest.raises(ValueError, match="dimension = 2 is not allowed"):
        plane_rule(2)


def test_differences_have_order_eight():
    gaps = [abs(difference(np.exp, step)(1.0) - np.e) for step in (0.4, 0.2)]
    assert np.log2(gaps[0] / gaps[1]) == pytest.approx(8, abs=0.3)


def test_ball_special_cases():
    assert largest_on_ball(np.array([1.0]), np.array([1.0]), 0.0) == 0.0
    assert largest_on_ball(np.array([-1.0, -2.0]), np.zeros(2), 3.0) == 0.0
    # the hard case: no slope along the top eigenvector
    assert largest_on_ball(np.array([2.0, 0.0]), np.array([0.0, 1.0]), 2.0) == pytest.approx(2 * 4 + 0.5)
