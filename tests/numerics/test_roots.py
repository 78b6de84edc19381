"""Tests that roots are accurate to rounding for every element and start, and that equations without a root raise an error."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab.errors import ConvergenceError
from limitlab.numerics.roots import bracketed_root, increasing_root_log

EPSILON = np.finfo(float).eps


class Counted:
    """A function that counts how often it is called."""

    def __init__(self, f):
        self.f, self.calls = f, 0

    def __call__(self, x):
        self.calls += 1
        return self.f(x)


@pytest.mark.parametrize(
    ("f", "low", "high", "root"),
    [
        (lambda x: x**3 - 2, 0.0, 2.0, 2 ** (1 / 3)),
        (np.cos, 4.0, 5.0, 3 * np.pi / 2),
        (lambda x: np.expm1(700 * x - 3), -1.0, 1.0, 3 / 700),
        (lambda x: np.log(x) + 1, 1e-300, 1e300, np.exp(-1.0)),
        (lambda x: 1 / x - 1e-200, 1.0, 1e300, 1e200),
        (lambda x: 2.0 - x, 5.0, -5.0, 2.0),  # decreasing, ends swapped
    ],
)
def test_known_roots_to_rounding(f, low, high, root):
    assert bracketed_root(f, low, high) == pytest.approx(root, rel=4 * EPSILON, abs=0)


def test_superlinear_on_smooth_and_bounded_on_the_worst():
    """Smooth functions need few calls. A function with a jump needs bisection, and at most 4 x 64 calls."""
    smooth = Counted(lambda x: np.exp(x) - 2)
    bracketed_root(smooth, 0.0, 1.0)
    assert smooth.calls <= 12
    jump = Counted(lambda x: np.where(x < 0.1234567, -1.0, 1.0))
    assert bracketed_root(jump, -1e300, 1e300) == pytest.approx(0.1234567, rel=4 * EPSILON)
    assert jump.calls <= 270
    flat = Counted(lambda x: (x - 1e-5) ** 9)
    assert bracketed_root(flat, -1.0, 2.0) == pytest.approx(1e-5, rel=4 * EPSILON)
    assert flat.calls <= 270


@settings(deadline=None, max_examples=60)
@given(place=st.floats(-1e3, 1e3), width=st.floats(1e-3, 1e3), left=st.floats(0.01, 0.99))
def test_any_jump_is_located_to_adjacent_numbers(place, width, left):
    """For a step function the root is one of the two floating-point numbers next to the step."""
    low, high = place - left * width, place + (1 - left) * width
    root = bracketed_root(lambda x: np.where(x < place, -1.0, 1.0), low, high)
    assert abs(root - place) <= 2 * EPSILON * abs(place) + np.finfo(float).tiny


def test_arrays_of_any_shape_and_scalar_in_scalar_out():
    c = np.linspace(0.1, 50, 24).reshape(2, 3, 4)
    np.testing.assert_allclose(bracketed_root(lambda x: x**2 - c, 0.0, 10.0), np.sqrt(c), rtol=4 * EPSILON)
    np.testing.assert_allclose(increasing_root_log(lambda t: t**2 - c), np.sqrt(c), rtol=4 * EPSILON)
    column = np.array([[1.0], [2.0]])
    assert bracketed_root(lambda x: x - np.array([0.1, 0.2, 0.3]), -column, column).shape == (2, 3)
    assert increasing_root_log(lambda t: t - 3.0, start=np.full((2, 1), 0.1)).shape == (2, 1)
    assert np.ndim(bracketed_root(np.sin, 3.0, 4.0)) == 0
    assert np.ndim(increasing_root_log(lambda t: t - 2)) == 0


def test_element_of_an_array_does_not_depend_on_its_neighbours():
    c = np.geomspace(1e-12, 1e12, 31)

    def equation(c):
        return lambda t: t**3 / (1 + t) + np.sqrt(t) - c

    together = increasing_root_log(equation(c))
    # arrays of one element, because NumPy may round powers of scalars differently
    alone = [increasing_root_log(equation(np.array([value])))[0] for value in c]
    np.testing.assert_array_equal(together, alone)


def random_features_equation(rng, count):
    """The equation of ridge on random features over the whole range of its parameters, degenerate ones included."""
    psi1, psi2 = 10 ** rng.uniform(-3, 6, (2, count))
    psi2[::7] = psi1[::7]
    ridge = 10 ** rng.uniform(-12, 4, count)
    linear, nonlinear = rng.uniform(0.01, 1, (2, count))
    nonlinear[::10] = 0
    low, gap, k = np.minimum(psi1, psi2), np.abs(psi1 - psi2), ridge * psi1 * psi2

    def f(t):
        small = 2 * k * t / (gap + np.sqrt(gap**2 + 4 * k * t))
        return nonlinear * t + linear * t / (1 + linear * t) + small - low

    return f, low


def test_twenty_thousand_equations_of_a_law():
    f, scale = random_features_equation(np.random.default_rng(0), 20_000)
    counted = Counted(f)
    t = increasing_root_log(counted)
    assert np.max(np.abs(f(t)) / scale) < 8 * EPSILON
    assert counted.calls < 60


@settings(deadline=None, max_examples=60)
@given(log_root=st.floats(-640, 640), power=st.floats(0.1, 5), log_start=st.floats(-600, 600))
def test_increasing_root_over_six_hundred_orders_of_magnitude(log_root, power, log_start):
    root = np.exp(log_root)
    found = increasing_root_log(lambda t: np.expm1(power * (np.log(t) - np.log(root))), start=np.exp(log_start))
    assert abs(np.log(found) - np.log(root)) <= 4 * EPSILON * max(1.0, abs(log_root))


def test_exact_zero_at_the_start_is_the_root():
    assert increasing_root_log(np.log) == 1.0
    assert bracketed_root(lambda x: x, 0.0, 1.0) == 0.0


@pytest.mark.parametrize("f", [lambda t: t + 1, lambda t: -1 / (1 + t), lambda t: 1.5 - t])
def test_no_increasing_root_is_loud(f):
    """A function that is positive everywhere, negative everywhere or decreasing raises an error with the last trial points."""
    with pytest.raises(ConvergenceError, match="increase through zero") as caught:
        increasing_root_log(f)
    assert np.isfinite(caught.value.estimate)


def test_unbounded_roots_are_the_limits():
    c = np.array([0.5, 1.0, 2.0])
    t = increasing_root_log(lambda t: t / (1 + t) - c, unbounded=True)
    assert t[0] == pytest.approx(1.0, rel=4 * EPSILON)
    assert t[2] == np.inf
    assert increasing_root_log(lambda t: t + 1, unbounded=True) == 0.0


def test_bad_input_says_what_is_wrong():
    with pytest.raises(ValueError, match=r"no sign change.*widen the bracket"):
        bracketed_root(lambda x: x**2 + 1, -1.0, 1.0)
    with pytest.raises(ValueError, match=r"start = .* must be above 0"):
        increasing_root_log(np.log, start=-1.0)
    with pytest.raises(ConvergenceError, match="value of the function is nan at"):
        bracketed_root(lambda x: np.where(np.abs(x) < 0.7, np.nan, x), -1.0, 1.0)
    with pytest.raises(ConvergenceError, match="value of the function is nan at"):
        increasing_root_log(lambda t: np.where(t > 2, np.nan, -1.0))
