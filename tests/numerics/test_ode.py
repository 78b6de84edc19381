"""Tests of solutions of differential equations, of their stated errors, and of integrations that stop early."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab.errors import ConvergenceError
from limitlab.numerics.ode import TIGHTEST, Trajectory, integrate

TIMES = np.array([0.3, 1.0, 2.5, 6.0])
FAST = 300.0
"""Rate of the fast mode of the stiff equations, whose solutions change at rate 1."""

EQUATIONS = {
    "decay": (lambda t, x: -x, [1.0], lambda t: [np.exp(-t)]),
    "growth": (lambda t, x: x, [1.0], lambda t: [np.exp(t)]),
    "logistic": (lambda t, x: x * (1 - x), [0.1], lambda t: [1 / (1 + 9 * np.exp(-t))]),
    "rotation": (lambda t, x: np.array([-x[1], x[0]]), [1.0, 0.0], lambda t: [np.cos(t), np.sin(t)]),
    "driven": (lambda t, x: np.cos(t) * x, [2.0], lambda t: [2 * np.exp(np.sin(t))]),
    "two sizes": (
        lambda t, x: np.array([-x[0], -0.5 * x[1]]),
        [1e6, 1e-6],
        lambda t: [1e6 * np.exp(-t), 1e-6 * np.exp(-0.5 * t)],
    ),
    "fast start": (
        lambda t, x: -FAST * (x - np.cos(t)) - np.sin(t),
        [2.0],
        lambda t: [np.cos(t) + np.exp(-FAST * t)],
    ),
    "fast mode": (
        lambda t, x: np.array([-x[0] + x[1], -FAST * x[1]]),
        [1.0, 1.0],
        lambda t: [np.exp(-t) + (np.exp(-t) - np.exp(-FAST * t)) / (FAST - 1), np.exp(-FAST * t)],
    ),
}


def gap(path, exact, times=TIMES):
    """The largest true error of every component over the times."""
    return np.abs(path.states - np.array([exact(t) for t in times])).max(axis=0)


@pytest.mark.parametrize("name", EQUATIONS)
@pytest.mark.parametrize("tolerance", [1e-3, 1e-5, 1e-7, 1e-9, 1e-11, 1e-13])
def test_stated_errors_bound_the_true_ones(name, tolerance):
    velocity, start, exact = EQUATIONS[name]
    path = integrate(velocity, start, TIMES, tolerance)
    assert path.states.shape == (TIMES.size, len(start))
    assert np.all(gap(path, exact) <= path.errors)
    scale = np.abs(path.states).max(axis=0)
    assert path.relative_error == pytest.approx(float(np.max(path.errors / scale)), rel=1e-12)


@pytest.mark.parametrize("name", ["decay", "growth", "logistic", "rotation", "driven"])
def test_errors_follow_the_tolerance(name):
    """Stated errors are of the order of the tolerance (they add up over the steps), and fall with it."""
    velocity, start, exact = EQUATIONS[name]
    paths = {tolerance: integrate(velocity, start, TIMES, tolerance) for tolerance in (1e-5, 1e-8, 1e-11)}
    for tolerance, path in paths.items():
        assert path.relative_error < 1000 * tolerance
    stated = np.array([path.errors.max() for path in paths.values()])
    assert np.all(stated[1:] < stated[:-1] / 100)
    assert gap(paths[1e-11], exact).max() < 1e-9 * np.abs(paths[1e-11].states).max()


@pytest.mark.parametrize("method", ["Radau", "BDF", "LSODA"])
@pytest.mark.parametrize("name", ["fast start", "fast mode"])
def test_implicit_methods_need_few_evaluations_of_a_stiff_equation(method, name):
    velocity, start, exact = EQUATIONS[name]
    calls = {"explicit": 0, "implicit": 0}

    def counted(kind):
        def slope(t, x):
            calls[kind] += 1
            return velocity(t, x)

        return slope

    explicit = integrate(counted("explicit"), start, TIMES, 1e-6)
    implicit = integrate(counted("implicit"), start, TIMES, 1e-6, method)
    for path in (explicit, implicit):
        assert np.all(gap(path, exact) <= path.errors)
    assert calls["implicit"] < calls["explicit"] / 3


@settings(max_examples=30)
@given(rate=st.floats(-3, 1), start=st.floats(-1e3, 1e3), tolerance=st.sampled_from([1e-6, 1e-9, 1e-12]))
def test_linear_equations_at_every_scale(rate, start, tolerance):
    path = integrate(lambda t, x: rate * x, [start], TIMES, tolerance)
    assert np.all(gap(path, lambda t: [start * np.exp(rate * t)]) <= path.errors)


def test_the_stated_error_is_at_least_the_tolerance_of_one_step():
    """At a point of rest the error is 0, and the stated error is the tolerance."""
    path = integrate(lambda t, x: np.zeros(2), [2.0, 0.0], [1.0], 1e-7)
    np.testing.assert_array_equal(path.states, [[2.0, 0.0]])
    np.testing.assert_allclose(path.errors, [2e-7, 2e-9])
    assert integrate(lambda t, x: -x, [1.0], [1.0], 1e-300).errors[0] >= TIGHTEST * np.exp(-1)


def test_times_at_the_start():
    path = integrate(lambda t, x: -x, [1.0, 3.0], [0.0, 2.0])
    np.testing.assert_array_equal(path.states[0], [1.0, 3.0])
    nothing = integrate(lambda t, x: 1 / t, [1.0, 3.0], 0.0)  # the velocity is not called
    np.testing.assert_array_equal(nothing.states, [[1.0, 3.0]])
    assert nothing.relative_error == 0
    single = integrate(lambda t, x: -x, 1.0, 2.0)
    assert single.states.shape == (1, 1)


def test_an_error_where_a_component_is_zero_is_relative_to_the_others():
    assert Trajectory(np.array([[0.0, 4.0]]), np.array([1e-3, 1e-9])).relative_error == 1e-3 / 4
    assert Trajectory(np.zeros((1, 2)), np.zeros(2)).relative_error == 0


# -- integrations that stop early ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["DOP853", "RK45"])
@pytest.mark.parametrize(("times", "reached"), [([2.0], 0), ([0.25, 0.5, 2.0, 3.0], 2)])
def test_a_blow_up_raises_an_error(method, times, reached):
    """The solution of x' = x^2 from 1 is 1 / (1 - t). The estimate of the error holds the states at the times before 1."""
    with pytest.raises(ConvergenceError, match=f"stopped before time 2 of {times[-1]:g}") as caught:
        integrate(lambda t, x: x**2, [1.0], times, method=method)
    assert caught.value.estimate.shape == (reached, 1)
    np.testing.assert_allclose(caught.value.estimate[:, 0], 1 / (1 - np.array(times[:reached])), rtol=1e-6)


def test_a_state_that_leaves_the_domain_of_its_equation():
    def slope(t, x):
        with np.errstate(invalid="ignore"):
            return -np.sqrt(x)  # reaches 0 at t = 2

    with np.errstate(invalid="ignore"), pytest.raises(ConvergenceError, match="stopped before time 3"):
        integrate(slope, [1.0], [1.0, 3.0])


def test_a_velocity_that_is_not_a_number_is_refused_at_once():
    """Without the check SciPy's search for a first step would not end."""
    for bad in (np.nan, np.inf):
        with pytest.raises(ConvergenceError, match="velocity at the start is not finite"):
            integrate(lambda t, x, bad=bad: np.full_like(x, bad), [1.0], [1.0])
