"""Tests of quadrature rules whose nodes a flow moves, for exactness and orders of convergence."""

import numpy as np
import pytest

from limitlab.laws.mean_field._free_energy import pivoted_cholesky
from limitlab.numerics.gaussian import expectation
from limitlab.numerics.quadrature import even_gaussian_rule, gaussian_quantiles, quantile_rule


def test_weights_add_up_and_levels_mirror():
    rule = quantile_rule(31)
    assert rule.weights.sum() == pytest.approx(1, abs=1e-14)
    np.testing.assert_allclose(rule.levels + rule.complements, 1, atol=1e-15)


def test_order_at_logarithmic_ends():
    """The rule is of third order for the mean of -log(1 - u), which is 1. Evenly spaced levels would be of first order."""
    errors = [abs(quantile_rule(n).weights @ -np.log(quantile_rule(n).complements) - 1) for n in (20, 40, 80)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(orders > 2.7)


@pytest.mark.parametrize(("rule", "error"), [(gaussian_quantiles(80), 3e-6), (even_gaussian_rule(0.2), 1e-9)])
def test_smooth_functions_of_a_gaussian(rule, error):
    x, w = rule
    for f in (lambda z: np.tanh(2 * z + 0.3) ** 2, np.cos):
        assert w @ f(x) == pytest.approx(float(expectation(f)), abs=error)


def test_a_steep_layer_is_averaged_by_quantiles():
    x, w = gaussian_quantiles(200)
    assert w @ np.tanh(20 * (x - 0.4)) == pytest.approx(float(expectation(lambda z: np.tanh(20 * (z - 0.4)))), abs=1e-5)


def test_pivoted_cholesky_of_a_singular_matrix():
    a = np.random.default_rng(0).standard_normal((30, 4))
    table = a @ a.T
    thin = pivoted_cholesky(np.diag(table), lambda j: table[j], 1e-13)
    assert thin.shape == (30, 4)
    np.testing.assert_allclose(thin @ thin.T, table, atol=1e-11)
    assert pivoted_cholesky(np.zeros(3), lambda j: np.zeros(3)).shape == (3, 0)
