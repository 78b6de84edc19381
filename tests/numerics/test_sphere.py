"""Tests of Gegenbauer polynomials, of quadrature on the sphere, and of the formula of Funk and Hecke."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import eval_gegenbauer, gammaln

from limitlab.laws.approximation.harmonics import numerical_slope
from limitlab.numerics.sphere import (
    coordinate_rule,
    funk_hecke,
    gegenbauer_slopes,
    gegenbauer_values,
    harmonic_dimension,
    log_harmonic_dimension,
    orthonormal_coefficients,
    orthonormal_values,
)

dimensions = st.integers(3, 60)


def relu(u):
    return np.maximum(u, 0)


def relu_coefficient(d, k):
    """lambda_k of ReLU in closed form."""
    if k == 0:
        return math.sqrt(d) * math.exp(gammaln(d / 2) - gammaln((d + 1) / 2)) / (2 * math.sqrt(math.pi))
    if k == 1:
        return 1 / (2 * math.sqrt(d))
    if k % 2:
        return 0.0
    size = gammaln(d / 2) + gammaln(k - 1) - gammaln(k / 2) - gammaln((k + d + 1) / 2)
    return math.sqrt(d / math.pi) * (-1) ** (k // 2 - 1) * math.exp(size) / 2**k


@pytest.mark.parametrize("d", [3, 4, 7, 20])
def test_polynomials_are_scipys(d):
    t = np.linspace(-1, 1, 41)
    table = gegenbauer_values(t, d, 12)
    for k in range(13):
        wanted = eval_gegenbauer(k, d / 2 - 1, t) / eval_gegenbauer(k, d / 2 - 1, 1.0)
        np.testing.assert_allclose(table[k], wanted, atol=1e-13)
        np.testing.assert_allclose(
            orthonormal_values(t, d, 12)[k], math.sqrt(harmonic_dimension(d, k)) * wanted, rtol=1e-10, atol=1e-10
        )


@given(dimensions, st.integers(1, 10), st.floats(-0.99, 0.99))
def test_derivatives_are_those_of_the_values(d, k, t):
    for order in (1, 2):
        slope = numerical_slope(lambda x, order=order: gegenbauer_slopes(x, d, k, order - 1)[k], [t])[0]
        exact = gegenbauer_slopes(t, d, k, order)[k]
        assert abs(slope - exact) < 1e-9 * max(1.0, abs(float(gegenbauer_slopes(1.0, d, k, order)[k])))


@given(dimensions, st.integers(1, 15))
def test_slope_at_one(d, k):
    assert gegenbauer_slopes(1.0, d, k)[k] == pytest.approx(k * (k + d - 2) / (d - 1), rel=1e-12)


def test_harmonic_dimensions():
    for d in (3, 5, 10):
        for k in range(2, 8):  # homogeneous polynomials of degree k, less those divisible by |x|^2
            assert harmonic_dimension(d, k) == math.comb(k + d - 1, k) - math.comb(k + d - 3, k - 2)
    assert harmonic_dimension(3000, 400) == math.inf
    k, d = 400, 3000
    wanted = math.log((2 * k + d - 2) / k) + gammaln(k + d - 2) - gammaln(k) - gammaln(d - 1)
    assert log_harmonic_dimension(d, k) == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("d", [3, 5, 20, 100, 1000])
def test_polynomials_are_orthonormal(d):
    u, w = coordinate_rule(d, degree=20)
    table = orthonormal_values(u / math.sqrt(d), d, 20)
    np.testing.assert_allclose((table * w) @ table.T, np.eye(21), atol=3e-12)


@pytest.mark.parametrize("d", [3, 5, 10, 30, 100, 450])
def test_relu_against_closed_forms(d):
    degrees = range(0, 31)
    found, energy = orthonormal_coefficients(relu, d, 30, kinks=(0.0,))
    wanted = [relu_coefficient(d, k) * math.exp(log_harmonic_dimension(d, k) / 2) for k in degrees]
    np.testing.assert_allclose(found, wanted, atol=2e-13)
    assert energy == pytest.approx(0.5, abs=1e-13)
    np.testing.assert_allclose(funk_hecke(relu, d, 30, kinks=(0.0,)), [relu_coefficient(d, k) for k in degrees], atol=2e-13)


@settings(max_examples=20, deadline=None)
@given(dimensions, st.floats(-1.5, 1.5))
def test_parseval_of_a_smooth_function(d, shift):
    found, energy = orthonormal_coefficients(lambda u: np.tanh(u / 2 + shift), d, 80)
    assert found @ found == pytest.approx(energy, rel=1e-9)


def test_a_kink_anywhere_costs_no_accuracy():
    """|u - a| has its mean in closed form on the sphere in R^3, where u is uniform on [-sqrt 3, sqrt 3]."""
    a, r = 0.7, math.sqrt(3)
    found, _ = orthonormal_coefficients(lambda u: np.abs(u - a), 3, 0, kinks=(a,))
    assert found[0] == pytest.approx(((r - a) ** 2 + (r + a) ** 2) / (4 * r), rel=1e-14)


def test_the_rule_converges_geometrically():
    """The error of E exp(u) falls geometrically with the number of nodes per panel."""
    exact = math.sinh(math.sqrt(3)) / math.sqrt(3)
    errors = []
    for order in (1, 2, 3, 4):
        u, w = coordinate_rule(3, order=order)
        errors.append(abs(float(w @ np.exp(u)) - exact))
    assert all(b < a / 30 for a, b in pairwise(errors))


def test_funk_hecke_by_integration_over_the_sphere():
    """E_x[Q_k(<x, y>/d) f(<w, x>)] = lambda_k Q_k(<w, y>/sqrt d), on a product grid of the sphere in R^3."""
    t, weight = np.polynomial.legendre.leggauss(60)
    phi = 2 * np.pi * np.arange(60) / 60
    x = math.sqrt(3) * np.stack(
        [np.outer(np.sqrt(1 - t**2), np.cos(phi)), np.outer(np.sqrt(1 - t**2), np.sin(phi)), np.outer(t, np.ones(60))],
        axis=-1,
    )
    w, y = np.array([0.6, 0.0, 0.8]), math.sqrt(3) * np.array([1, 2, 2]) / 3
    for k, eigenvalue in enumerate(funk_hecke(np.sin, 3, 5)):
        left = (weight[:, None] / 120 * gegenbauer_values(x @ y / 3, 3, 5)[k] * np.sin(x @ w)).sum()
        assert left == pytest.approx(eigenvalue * gegenbauer_values(w @ y / math.sqrt(3), 3, 5)[k], abs=1e-12)


def test_numerical_slopes():
    x = np.linspace(-6, 6, 101)
    np.testing.assert_allclose(numerical_slope(lambda u: np.tanh(u + 0.5), x), 1 / np.cosh(x + 0.5) ** 2, atol=1e-11)
    np.testing.assert_allclose(numerical_slope(lambda u: np.maximum(u - 0.3, 0), x, (0.3,)), x > 0.3, atol=1e-11)


@pytest.mark.parametrize(
    "call", [lambda: gegenbauer_values(0.0, 2, 1), lambda: harmonic_dimension(5, -1), lambda: harmonic_dimension(2.5, 1)]
)
def test_bad_input_is_named(call):
    with pytest.raises(ValueError, match=r"(dimension|degree) = .* is not allowed"):
        call()


def test_a_function_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="not finite"), np.errstate(all="ignore"):
        orthonormal_coefficients(lambda u: np.where(u > 1, np.inf, u), 5, 2)
