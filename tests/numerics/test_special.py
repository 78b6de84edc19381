"""Tests of gamma ratios and exponential integrals against SciPy and recurrences, and of their convergence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expn, gamma, gammaincc, gammaln

from limitlab.numerics.special import exponential_integral, gamma_ratio


@given(x=st.floats(1e-3, 150), shift=st.floats(0, 4))
def test_gamma_ratio_is_the_ratio_of_gamma_functions(x, shift):
    np.testing.assert_allclose(gamma_ratio(x, shift), gamma(x + shift) / gamma(x), rtol=1e-12)


@given(log_x=st.floats(0, 30), shift=st.floats(0, 3))
def test_gamma_ratio_recurrence_keeps_digits_at_any_size(log_x, shift):
    """The recurrence (x)_{a+1} = (x)_a (x + a) tests large x, where differences of log-gamma values are inaccurate."""
    x = np.exp(log_x)
    np.testing.assert_allclose(gamma_ratio(x, shift + 1), gamma_ratio(x, shift) * (x + shift), rtol=3e-14)


def test_gamma_ratio_where_a_difference_of_log_gammas_has_lost_half_its_digits():
    x = 1e9
    exact = np.sqrt(x) * (1 - 1 / (8 * x))  # the next term is 1e-20
    naive = np.exp(gammaln(x + 0.5) - gammaln(x))
    assert abs(gamma_ratio(x, 0.5) / exact - 1) < 1e-14 < 1e-9 < abs(naive / exact - 1)


@pytest.mark.parametrize(("x", "shift"), [(0.0, 1.0), (-1.0, 1.0), (1.0, -0.5), (np.nan, 1.0)])
def test_gamma_ratio_refuses_arguments_outside_its_domain(x, shift):
    with pytest.raises(ValueError, match=r"x = |shift = "):
        gamma_ratio(x, shift)


ARGUMENTS = np.exp(np.linspace(-60, np.log(45.0), 80))


@pytest.mark.parametrize("order", [0, 1, 2, 3, 8, 60])
def test_integer_orders_are_those_of_scipy(order):
    np.testing.assert_allclose(exponential_integral(order, ARGUMENTS), expn(order, ARGUMENTS), rtol=1e-12)


@pytest.mark.parametrize("order", [0.05, 0.3, 0.7, 0.95])
def test_orders_below_one_are_incomplete_gamma_functions(order):
    expected = ARGUMENTS ** (order - 1) * gammaincc(1 - order, ARGUMENTS) * gamma(1 - order)
    np.testing.assert_allclose(exponential_integral(order, ARGUMENTS), expected, rtol=1e-12)


@given(order=st.floats(0.01, 300), log_t=st.floats(-60, 3.8))
def test_recurrence_in_the_order(order, log_t):
    t = np.exp(log_t)
    left = order * exponential_integral(order + 1, t) + t * exponential_integral(order, t)
    np.testing.assert_allclose(left, np.exp(-t), rtol=2e-12)


def test_quadrature_converges_geometrically():
    """The error falls geometrically with the number of nodes, also for slow decay and small arguments."""
    nodes = np.array([20, 30, 40, 50, 60])
    exact = 1e-20**-0.95 * gammaincc(0.95, 1e-20) * gamma(0.95)
    errors = np.array([abs(float(exponential_integral(0.05, 1e-20, n)) / exact - 1) for n in nodes])
    slope, intercept = np.polyfit(nodes, np.log(errors), 1)
    assert slope < -0.2
    np.testing.assert_allclose(np.log(errors), slope * nodes + intercept, atol=1.5)


@pytest.mark.parametrize(("order", "argument"), [(-0.5, 1.0), (1.0, 0.0), (1.0, -1.0), (np.nan, 1.0), (1.0, np.nan)])
def test_exponential_integral_refuses_arguments_outside_its_domain(order, argument):
    with pytest.raises(ValueError, match=r"order = |argument = "):
        exponential_integral(order, argument)
