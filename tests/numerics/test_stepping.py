"""Tests of integration with fixed steps (orders, states that are tuples, settling, and the times of the steps)."""

import numpy as np
import pytest

from limitlab.numerics.ode import euler, follow, runge_kutta


def orders(rule, velocity, start, exact, steps=(0.2, 0.1, 0.05, 0.025), end=2.0):
    """Return the slopes of log error against log step between successive steps."""
    errors = [float(np.abs(next(follow(rule(velocity), np.asarray(start), [end], h)) - exact).max()) for h in steps]
    return np.diff(np.log(errors)) / np.diff(np.log(steps))


EQUATIONS = [
    (lambda t, x: x, 1.0, np.exp(2)),
    (lambda t, x: x * (1 - x), 0.1, 1 / (1 + 9 * np.exp(-2))),
    (lambda t, x: np.cos(t) * x, 2.0, 2 * np.exp(np.sin(2))),  # the velocity depends on the time within a step
    (lambda t, x: np.array([-x[1], x[0]]), [1.0, 0.0], [np.cos(2), np.sin(2)]),
]


@pytest.mark.parametrize(("velocity", "start", "exact"), EQUATIONS, ids=["growth", "logistic", "driven", "rotation"])
def test_orders(velocity, start, exact):
    np.testing.assert_allclose(orders(runge_kutta, velocity, start, exact)[-1], 4, atol=0.15)
    np.testing.assert_allclose(orders(euler, velocity, start, exact)[-1], 1, atol=0.15)


def test_powers_of_time_are_integrated_exactly_up_to_degree_three():
    for degree in range(4):
        (found,) = follow(runge_kutta(lambda t, x, k=degree: t**k), 0.0, [1.5], 0.5)
        assert found == pytest.approx(1.5 ** (degree + 1) / (degree + 1), rel=1e-14)


# -- states ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [runge_kutta, euler])
def test_a_tuple_moves_like_the_array_of_its_parts(rule):
    def parts(t, state):
        a, b = state
        return -b.sum() * a, np.array([a * t, -b[0]])

    def whole(t, state):
        da, db = parts(t, (state[0], state[1:]))
        return np.array([da, *db])

    times = [0.0, 0.3, 1.0]
    split = list(follow(rule(parts), (1.0, np.array([0.5, 0.2])), times, 0.1))
    joined = list(follow(rule(whole), np.array([1.0, 0.5, 0.2]), times, 0.1))
    for (a, b), state in zip(split, joined, strict=True):
        np.testing.assert_allclose([a, *b], state, rtol=1e-14)


def test_the_start_is_not_changed():
    w, a = np.array([1.0, 0.0]), np.array([2.0])
    list(follow(runge_kutta(lambda t, s: (s[0][::-1], -s[1])), (w, a), [1.0], 0.1))
    assert (w.tolist(), a.tolist()) == ([1.0, 0.0], [2.0])


@pytest.mark.parametrize("rule", [runge_kutta, euler])
def test_settling_keeps_a_state_where_it_belongs(rule):
    """Fixed steps of a rotation leave the unit circle. With `settle` the state stays on it, at the right angle."""

    def turn(t, x):
        return np.array([-x[1], x[0]])

    seen = []

    def to_circle(x):
        seen.append(float(np.linalg.norm(x)))
        return x / np.linalg.norm(x)

    (free,) = follow(rule(turn), np.array([1.0, 0.0]), [3.0], 0.1)
    (kept,) = follow(rule(turn, to_circle), np.array([1.0, 0.0]), [3.0], 0.1)
    assert abs(np.linalg.norm(free) - 1) > 1e-7
    assert np.linalg.norm(kept) == pytest.approx(1, abs=1e-15)
    assert len(seen) == 30  # `settle` is called once per step
    assert max(abs(np.array(seen) - 1)) > 1e-9
    assert np.arctan2(kept[1], kept[0]) == pytest.approx(3, abs=2e-2 if rule is euler else 1e-5)


def test_settling_does_not_cost_the_order():
    def to_circle(x):
        return x / np.linalg.norm(x)

    def pulled(t, x):  # motion towards (0, 1) along the circle, where the tangent of half the angle falls like e^-t
        return np.array([0.0, 1.0]) - x[1] * x

    angle = np.pi / 2 - 2 * np.arctan(np.exp(-2.0) * np.tan(np.pi / 4))
    exact = np.array([np.cos(angle), np.sin(angle)])
    found = orders(lambda velocity: runge_kutta(velocity, to_circle), pulled, [1.0, 0.0], exact)
    np.testing.assert_allclose(found[-1], 4, atol=0.2)


# -- times and steps ---------------------------------------------------------------------------------------------------


def test_intervals_are_cut_into_equal_steps_of_at_most_the_given_one():
    taken = []

    def advance(t, state, h):
        taken.append((t, h))
        return state + h

    states = list(follow(advance, 0.0, [0.0, 1.0, 1.25, 1.25, 2.0], 0.4))
    np.testing.assert_allclose(states, [0.0, 1.0, 1.25, 1.25, 2.0], rtol=1e-15)
    np.testing.assert_allclose([h for _, h in taken], [1 / 3] * 3 + [0.25] + [0.375] * 2)
    np.testing.assert_allclose([t for t, _ in taken], [0, 1 / 3, 2 / 3, 1.0, 1.25, 1.625])


@pytest.mark.parametrize(("end", "step", "count"), [(1.0, 0.1, 10), (0.3, 0.1, 3), (0.7, 0.1, 7), (1.05, 0.1, 11)])
def test_rounding_adds_no_step(end, step, count):
    """0.3 / 0.1 is not 3 in floating point."""
    taken = []
    list(follow(lambda t, state, h: taken.append(h), None, [end], step))
    assert len(taken) == count


def test_a_tiny_interval_is_not_passed_over():
    (found,) = follow(euler(lambda t, x: 1.0), 0.0, [1e-12], 0.1)
    assert found == 1e-12


def test_states_come_one_at_a_time():
    """A state is computed only when it is requested."""
    taken = []

    def advance(t, state, h):
        taken.append(t)
        return state

    path = follow(advance, 0.0, [1.0, 2.0, 3.0], 1.0)
    next(path)
    assert taken == [0.0]
