"""Weighted averages over random windows: sum rules, a brute-force integral, limits, convergence of the rule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab.laws.regression._laplace import weighted_average

COUNTS = st.integers(1, 10**9)
SHARES = st.floats(1e-6, 1.0)
TAILS = st.floats(0.001, 0.999)
POWERS = st.floats(0.0, 1.0)


def nonempty(n, p):
    return -np.expm1(n * np.log1p(-p)) if p < 1 else 1.0


@settings(max_examples=60)
@given(n=COUNTS, p=SHARES, q=TAILS, b=POWERS)
def test_sum_rules_bounds_and_accuracy(n, p, q, b):
    result = weighted_average(n, p, q, b)
    mass = nonempty(n, p)
    assert result.accuracy < 1e-11
    np.testing.assert_allclose(result.mass, mass, rtol=1e-11)
    # the weights sum to one, so the average of U^0 is 1 and so is its square: sums over points and over pairs together
    np.testing.assert_allclose(weighted_average(n, p, q, 0.0).mean_square, mass, rtol=1e-11)
    assert 0 < result.mean <= mass * (1 + 1e-11)
    assert result.mean**2 <= result.mean_square * mass * (1 + 1e-11)  # Cauchy and Schwarz on the event
    assert result.mean_square <= result.mean * (1 + 1e-11)  # U^b <= 1
    assert result.concentration <= mass * (1 + 1e-11)
    assert result.concentration >= mass**2 / (n * p) * (1 - 1e-9)  # sum of squares >= 1/count, then Jensen


@pytest.mark.parametrize(("q", "b"), [(0.2, 1.0), (0.45, 0.5), (0.6, 0.2)])
def test_two_points_by_brute_force(q, b):
    """n = 2: the window holds one point (probability 2 p (1-p)) or two (p^2), a double integral over their marks."""
    x, w = np.polynomial.legendre.leggauss(400)
    x, w = (x + 1) / 2, w / 2
    u, w = x**6, 6 * x**5 * w  # marks concentrate near 0, where the weights are large
    first, second, weight = u[:, None], u[None, :], w[:, None] * w[None, :]
    k1, k2 = first**-q, second**-q
    average = (first**b * k1 + second**b * k2) / (k1 + k2)
    p = 0.3
    one, two = 2 * p * (1 - p), p**2
    result = weighted_average(2, p, q, b)
    np.testing.assert_allclose(result.mean, one / (1 + b) + two * (weight * average).sum(), rtol=1e-9)
    np.testing.assert_allclose(result.mean_square, one / (1 + 2 * b) + two * (weight * average**2).sum(), rtol=1e-9)
    concentration = one + two * (weight * (k1**2 + k2**2) / (k1 + k2) ** 2).sum()
    np.testing.assert_allclose(result.concentration, concentration, rtol=1e-9)


def test_equal_weights_give_the_mean_inverse_of_a_binomial_count():
    """As the tail exponent falls to 0 the concentration is E[1/count]."""
    from scipy.stats import binom

    n, p = 30, 0.2
    counts = np.arange(1, n + 1)
    expected = (binom.pmf(counts, n, p) / counts).sum()
    np.testing.assert_allclose(weighted_average(n, p, 1e-7, 1.0).concentration, expected, rtol=1e-5)


def test_the_step_converges_geometrically_and_the_estimate_covers_the_error():
    steps = np.array([1.0, 0.75, 0.6, 0.5, 0.4])
    exact = weighted_average(1000, 0.1, 0.4, 0.5)
    runs = [weighted_average(1000, 0.1, 0.4, 0.5, step=step) for step in steps]
    errors = np.array([abs(float(run.mean_square / exact.mean_square) - 1) for run in runs])
    slope, _ = np.polyfit(1 / steps, np.log(errors), 1)
    assert slope < -(np.pi**2) * 0.75  # exp(-pi^2/h) up to the boundary layer of the strip
    assert all(run.accuracy >= error for run, error in zip(runs, errors, strict=True))


def test_arrays_equal_scalars():
    n, p, q, b = np.array([[3.0], [400.0]]), np.array([0.1, 1.0]), 0.4, np.array([0.5, 1.0])
    grid = weighted_average(n, p, q, b)
    for i in range(2):
        for j in range(2):
            single = weighted_average(n[i, 0], p[j], q, b[j])
            for name in ("mass", "mean", "mean_square", "concentration"):
                np.testing.assert_allclose(getattr(grid, name)[i, j], getattr(single, name), rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((0, 0.5, 0.5, 1.0), "count"),
        ((5, 0.0, 0.5, 1.0), "probability"),
        ((5, 1.5, 0.5, 1.0), "probability"),
        ((5, 0.5, 0.0, 1.0), "tail"),
        ((5, 0.5, 1.0, 1.0), "tail"),
        ((5, 0.5, 0.5, -1.0), "power"),
        ((np.inf, 0.5, 0.5, 1.0), "count"),
        ((5, 0.5, 0.5, np.nan), "power"),
    ],
)
def test_bad_arguments_are_named(arguments, name):
    with pytest.raises(ValueError, match=rf"^{name} = "):
        weighted_average(*arguments)
