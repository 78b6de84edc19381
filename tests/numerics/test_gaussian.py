"""Tests of Gaussian expectations against closed forms, of their convergence orders and of their error estimates."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erf, factorial2, gammaln, ndtr

from limitlab.errors import ConvergenceError
from limitlab.numerics.gaussian import (
    expectation,
    find_kinks,
    hermite_coefficients,
    hermite_rule,
    hermite_values,
    inner_product,
    norm,
    pair_expectation,
    panel_rule,
)

CORRELATIONS = [-1.0, -0.999, -0.5, 0.0, 0.3, 0.9, 0.999, 1 - 1e-6, 1 - 1e-12, 1.0]


def relu(x):
    return np.maximum(x, 0.0)


def density(x):
    return np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)


def slope(sizes, errors):
    return np.polyfit(np.log(sizes), np.log(errors), 1)[0]


# -- rules ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2, 5, 20])
def test_gauss_hermite_is_exact_below_twice_its_order(order):
    nodes, weights = hermite_rule(order)
    for degree in range(2 * order):
        moment = 0.0 if degree % 2 else factorial2(degree - 1) if degree else 1.0
        assert weights @ nodes**degree == pytest.approx(moment, rel=1e-11, abs=1e-11 * factorial2(2 * order))


def test_gauss_hermite_has_order_one_at_a_kink():
    """The error of Gauss-Hermite for |x| falls like 1 / (number of nodes), which is why panels are used."""
    orders = np.array([16, 32, 64, 128, 256])
    errors = [abs(weights @ np.abs(nodes) - np.sqrt(2 / np.pi)) for nodes, weights in map(hermite_rule, orders)]
    assert slope(orders, errors) == pytest.approx(-1, abs=0.05)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_panel_rule_has_order_twice_its_nodes(order):
    """For a function whose kink is a panel edge the error is proportional to width^(2 order)."""
    widths = 2.0 ** -np.arange(3) * (
        0.5 if order < 4 else 1.0
    )  # with narrower panels of order 4 only rounding errors remain
    exact = math.exp(0.5) * 2 * ndtr(1.0)  # E exp|Z|
    rules = [panel_rule((0.0,), order=order, width=width) for width in widths]
    errors = [abs(weights @ np.exp(np.abs(nodes)) - exact) for nodes, weights in rules]
    assert slope(widths, errors) == pytest.approx(2 * order, abs=0.15)


def test_panel_rule_has_order_two_when_the_kink_is_not_declared():
    place = 1 / 3  # at one or two thirds of its panel for every width
    widths = 2.0 ** -np.arange(0, 5)
    exact = 2 * density(place) + place * (2 * ndtr(place) - 1)
    errors = [abs(w @ np.abs(x - place) - exact) for x, w in (panel_rule(order=8, width=width) for width in widths)]
    assert slope(widths, errors) == pytest.approx(2, abs=0.05)


def test_panel_rule_weights_are_a_probability():
    nodes, weights = panel_rule((0.3, -2.0, 50.0))
    assert weights.sum() == pytest.approx(1, abs=1e-14)
    assert np.all(weights >= 0)
    assert np.all(np.diff(nodes) > 0)


# -- one variable --------------------------------------------------------------------------------------------------------

CLOSED_FORMS = {
    "abs": (np.abs, math.sqrt(2 / math.pi)),
    "exp 5x": (lambda x: np.exp(5 * x), math.exp(12.5)),
    "exp 12x, whose mass is beyond 10": (lambda x: np.exp(12 * x), math.exp(72)),
    "exp x^2/4": (lambda x: np.exp(x**2 / 4), math.sqrt(2)),
    "cos 20x": (lambda x: np.cos(20 * x) + 1, math.exp(-200) + 1),
    "log|x|": (lambda x: np.log(np.abs(x)), -(np.euler_gamma + math.log(2)) / 2),
    "|x|^-1/2": (lambda x: np.abs(x) ** -0.5, 2**-0.25 * math.gamma(0.25) / math.sqrt(math.pi)),
    "erf^2": (lambda x: erf(x) ** 2, 2 / math.pi * math.asin(2 / 3)),
    "x^40": (lambda x: x**40.0, float(factorial2(39))),
    "constant": (lambda x: 3.0, 3.0),
}


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_closed_forms_with_nothing_declared(name):
    f, exact = CLOSED_FORMS[name]
    value, error = expectation(f, with_error=True)
    assert abs(value - exact) <= error + 4e-15 * abs(exact)
    assert error <= 2e-12 * max(abs(exact), 1)


@settings(deadline=None, max_examples=80)
@given(place=st.floats(-4, 4), second=st.floats(-4, 4), jump=st.booleans())
def test_error_estimate_bounds_the_error_at_undeclared_kinks_and_jumps(place, second, jump):
    """For two kinks or jumps at any places the error is below its estimate, and the estimate is below the tolerance."""

    def f(x):
        one, two = (np.where(x > c, 1.0, 0.0) if jump else relu(x - c) for c in (place, second))
        return one + 0.5 * two + 0.1

    def exact(c):
        return ndtr(-c) if jump else density(c) - c * ndtr(-c)

    value, error = expectation(f, with_error=True)
    truth = exact(place) + 0.5 * exact(second) + 0.1
    assert abs(value - truth) <= error + 4e-14  # allows for a jump that rounding moves across a panel edge
    assert error <= 1.01e-12 * truth


@pytest.mark.parametrize("f", [np.tanh, np.sin, lambda x: erf(3 * x), lambda x: np.tanh(50 * x)])
def test_smooth_and_unknown_agree(f):
    """Functions that are declared smooth have the same averages, also if Gauss-Hermite converges too slowly and panels are used."""

    def square(x):
        return f(x) ** 2

    assert expectation(square, kinks=()) == pytest.approx(expectation(square), abs=1e-12)


def test_means_and_deviations_broadcast_and_functions_may_have_several_values():
    mean, std = np.array([[-1.0], [0.0], [2.0]]), np.array([0.0, 0.5, 3.0])
    first, second = expectation(lambda x: np.stack([x, relu(x)]), mean=mean, std=std)
    np.testing.assert_allclose(first, np.broadcast_to(mean, (3, 3)), atol=1e-12)
    ratio = mean / np.where(std > 0, std, 1)
    exact = np.where(std > 0, mean * ndtr(ratio) + std * density(ratio), relu(mean))
    np.testing.assert_allclose(second, exact, atol=1e-12)
    assert np.ndim(expectation(np.tanh)) == 0


def test_kinks_are_read_from_the_function():
    calls = []

    class Kinked:
        kinks = (0.4321,)

        def __call__(self, x):
            calls.append(x.size)
            return np.abs(x - 0.4321)

    value = expectation(Kinked())
    assert len(calls) == 1  # one round of panels, because the kink is declared
    assert value == pytest.approx(expectation(lambda x: np.abs(x - 0.4321)), rel=1e-12)


def test_a_missed_tolerance_raises_an_error_with_the_estimate():
    def single_precision(x):
        return np.exp(x.astype(np.float32))

    with pytest.raises(ConvergenceError, match="above 1e-12") as caught:
        expectation(single_precision)
    assert caught.value.estimate == pytest.approx(math.exp(0.5), rel=1e-7)
    assert 1e-12 < caught.value.accuracy < 1e-5
    assert expectation(single_precision, tolerance=1e-6) == pytest.approx(math.exp(0.5), rel=1e-6)


def test_a_heavy_tail_raises_an_error():
    """f times the density does not vanish at 38 standard deviations, the end of the outermost panel."""
    with pytest.raises(ConvergenceError):
        expectation(lambda x: np.exp(np.minimum(x**2 / 2, 700)) / (1 + np.abs(x)))


def test_bad_input_says_what_is_wrong():
    with pytest.raises(ValueError, match="not finite at"):
        expectation(lambda x: np.where(x > 1, np.inf, x))
    with pytest.raises(ValueError, match=r"std = -1.* at least 0"):
        expectation(np.tanh, std=-1)
    with pytest.raises(ValueError, match="must be its last axis"):
        expectation(lambda x: x[:3])
    with pytest.raises(ValueError, match=r"kinks = .* must be finite"):
        expectation(np.tanh, kinks=(np.nan,))
    with pytest.raises(ValueError, match=r"degree = -1"):
        hermite_coefficients(np.tanh, -1)


# -- two variables -------------------------------------------------------------------------------------------------------

PAIR_KERNELS = {
    "relu": (relu, (0.0,), lambda r: (np.sqrt((1 - r) * (1 + r)) + r * (np.pi - np.arccos(r))) / (2 * np.pi)),
    "abs": (np.abs, (0.0,), lambda r: 2 / np.pi * (np.sqrt((1 - r) * (1 + r)) + r * np.arcsin(r))),
    "sign": (np.sign, (0.0,), lambda r: 2 / np.pi * np.arcsin(r)),
    "erf": (erf, (), lambda r: 2 / np.pi * np.arcsin(2 * r / 3)),
    "sin": (np.sin, (), lambda r: np.exp(-1) * np.sinh(r)),
    "cos": (np.cos, (), lambda r: np.exp(-1) * np.cosh(r)),
    "square": (np.square, (), lambda r: 1 + 2 * r**2),
}


@pytest.mark.parametrize("declared", [True, False], ids=["kinks declared", "nothing declared"])
@pytest.mark.parametrize("name", PAIR_KERNELS)
def test_pair_kernels(name, declared):
    f, kinks, kernel = PAIR_KERNELS[name]
    rho = np.array(CORRELATIONS)
    value, error = pair_expectation(lambda x, y: f(x) * f(y), rho, kinks=kinks if declared else None, with_error=True)
    exact = kernel(rho)
    assert np.all(np.abs(value - exact) <= error + 1e-14)
    assert np.all(error <= 1.01e-10 * np.maximum(np.abs(exact), kernel(1.0)))


def test_pair_with_a_kink_on_the_diagonal_and_with_different_kinks():
    """E|X - Y| = 2 sqrt((1 - rho)/pi), whose kink is on no line x = c or y = c, and shifted ReLUs with and without declared kinks."""
    assert pair_expectation(lambda x, y: np.abs(x - y), 0.5) == pytest.approx(2 * math.sqrt(0.5 / math.pi), rel=1e-10)

    def shifted(x, y):
        return relu(x - 0.3) * relu(y + 0.4)

    declared, found = pair_expectation(shifted, 0.6, kinks=((0.3,), (-0.4,))), pair_expectation(shifted, 0.6)
    assert declared == pytest.approx(found, rel=1e-10)


@settings(deadline=None, max_examples=20)
@given(rho=st.floats(-1, 1))
def test_pair_is_symmetric_and_consistent_with_mehler(rho):
    """E f(X) g(Y) is the same with the roles swapped, and is the sum of products of coefficients times rho^k."""

    def g(y):
        return np.exp(0.3 * y)

    direct = pair_expectation(lambda x, y: np.sin(x) * g(y), rho, kinks=())
    swapped = pair_expectation(lambda x, y: g(x) * np.sin(y), rho, kinks=())
    products = hermite_coefficients(np.sin, 30) * hermite_coefficients(g, 30)
    assert direct == pytest.approx(swapped, abs=1e-12)
    assert direct == pytest.approx(np.polynomial.polynomial.polyval(rho, products), abs=1e-11)


def test_pair_rejects_bad_input():
    with pytest.raises(ValueError, match=r"correlation = 1.5 .* between -1 and 1"):
        pair_expectation(lambda x, y: x * y, 1.5)
    with pytest.raises(ValueError, match="one sequence for x and one for y"):
        pair_expectation(lambda x, y: x * y, 0.5, kinks=((0.0,),))


def test_pair_carries_its_estimate_when_it_fails():
    with pytest.raises(ConvergenceError) as caught:
        pair_expectation(lambda x, y: (x * y).astype(np.float32), 0.5, tolerance=1e-10)
    assert caught.value.estimate == pytest.approx(0.5, rel=1e-6)


# -- Hermite series ------------------------------------------------------------------------------------------------------


def test_hermite_values_against_explicit_polynomials_and_far_out():
    x = np.linspace(-5, 5, 11)
    table = hermite_values(x, 4)
    explicit = [np.ones_like(x), x, x**2 - 1, x**3 - 3 * x, x**4 - 6 * x**2 + 3]
    for k, polynomial in enumerate(explicit):
        np.testing.assert_allclose(table[k], polynomial / math.sqrt(math.factorial(k)), rtol=1e-12, atol=1e-12)
    assert hermite_values(1.5, 0).shape == (1,)
    assert hermite_values(np.zeros((2, 3)), 7).shape == (8, 2, 3)
    assert np.all(np.isfinite(hermite_values(30.0, 400)))


def test_hermite_functions_are_orthonormal():
    nodes, weights = panel_rule(width=0.5, reach=30.0)
    table = hermite_values(nodes, 60)
    np.testing.assert_allclose((table * weights) @ table.T, np.eye(61), atol=1e-12)


def exact_relu(k):
    """E relu h_k: 1/sqrt(2 pi), 1/2, then (-1)^(k/2-1) (k-3)!! / sqrt(2 pi k!) for even k and 0 for odd k."""
    if k < 2:
        return (1 / math.sqrt(2 * math.pi), 0.5)[k]
    if k % 2:
        return 0.0
    log_double = (k / 2 - 1) * math.log(2) + gammaln((k - 1) / 2) - gammaln(0.5)
    return (-1) ** (k // 2 - 1) * math.exp(log_double - gammaln(k + 1) / 2) / math.sqrt(2 * math.pi)


def exact_erf(k):
    if k % 2 == 0:
        return 0.0
    j = (k - 1) // 2
    size = math.exp(gammaln(2 * j + 1) / 2 - gammaln(j + 1) - j * math.log(3)) / math.sqrt(3)
    return 2 / math.sqrt(math.pi) * (-1) ** j * size / math.sqrt(k)


def exact_exponential(k):
    """The coefficients of exp(tZ) are E exp(tZ) h_k = exp(t^2/2) t^k / sqrt(k!), here for t = 1.5."""
    return math.exp(1.125 + k * math.log(1.5) - gammaln(k + 1) / 2)


@pytest.mark.parametrize(
    ("f", "exact"), [(relu, exact_relu), (erf, exact_erf), (lambda x: np.exp(1.5 * x), exact_exponential)]
)
def test_hermite_coefficients_against_closed_forms_to_degree_150(f, exact):
    wanted = np.array([exact(k) for k in range(151)])
    got, error = hermite_coefficients(f, 150, with_error=True)
    assert np.all(np.abs(got - wanted) <= error + 4e-14)
    np.testing.assert_allclose(got, wanted, atol=1e-12)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(-3, 3), min_size=1, max_size=8))
def test_parseval_and_reconstruction_for_polynomials(coefficients):
    """The coefficients of a Hermite series are recovered, and its norm is the norm of the coefficients."""
    wanted = np.array(coefficients)

    def f(x):
        return wanted @ hermite_values(x, wanted.size - 1)

    scale = max(1.0, float(np.abs(wanted).max()))
    np.testing.assert_allclose(hermite_coefficients(f, wanted.size + 1)[: wanted.size], wanted, atol=1e-12 * scale)
    assert norm(f) == pytest.approx(np.linalg.norm(wanted), abs=1e-12 * scale)


def test_parseval_for_a_smooth_function():
    """The squared norm minus the squares of the first coefficients is positive and falls geometrically."""
    coefficients = hermite_coefficients(np.tanh, 80)
    left = norm(np.tanh) ** 2 - np.cumsum(coefficients**2)
    assert np.all(left > -1e-13)
    assert left[79] < 0.01 * left[39] < 1e-4 * left[9]


def test_parity():
    assert np.abs(hermite_coefficients(np.tanh, 20)[::2]).max() < 1e-14
    assert np.abs(hermite_coefficients(np.abs, 20)[1::2]).max() < 1e-14


def test_stein_and_inner_product():
    """E Z f = E f', and sqrt(k) u_k(f) = u_{k-1}(f')."""
    assert inner_product(lambda x: x, np.tanh) == pytest.approx(expectation(lambda x: 1 / np.cosh(x) ** 2), rel=1e-12)
    up, down = hermite_coefficients(np.tanh, 21)[1:], hermite_coefficients(lambda x: 1 / np.cosh(x) ** 2, 20)
    np.testing.assert_allclose(np.sqrt(np.arange(1, 22)) * up, down, atol=1e-13)


# -- kinks ---------------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=20)
@given(place=st.floats(-4, 4), jump=st.booleans())
def test_kinks_are_found_where_they_are(place, jump):
    def f(x):
        return np.sin(x) + (np.where(x > place, 1.0, 0.0) if jump else relu(x - place))

    found = find_kinks(f)
    assert len(found) == 1
    assert found[0] == pytest.approx(place, abs=1e-11)


def test_kinks_of_several_and_none():
    assert find_kinks(lambda x: np.clip(x, -1, 1)) == (-1.0, 1.0)
    assert find_kinks(lambda x: np.abs(np.abs(x) - 0.25)) == (-0.25, 0.0, 0.25)
    for smooth in (np.tanh, np.sin, erf, np.square, lambda x: np.tanh(30 * x)):
        assert find_kinks(smooth) == ()
