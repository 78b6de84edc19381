"""Tests of flows on spheres, of their orders and invariants, and of the time step of \"layers\"."""

import numpy as np
import pytest

from limitlab.errors import ConvergenceError
from limitlab.models.attention import Attention
from limitlab.numerics.sphere_flow import (
    exponential_map,
    flow_on_spheres,
    normalise,
    tangent,
)


@pytest.fixture(scope="module")
def tokens():
    return normalise(np.random.default_rng(4).standard_normal((12, 5)))


FIELD = Attention(3.0).drift


@pytest.fixture(scope="module")
def exact(tokens):
    return flow_on_spheres(FIELD, tokens, 4.0, method="adaptive", tolerance=1e-13)


@pytest.mark.parametrize(
    ("method", "order", "finest"), [("rk4", 4, 1e-7), ("exponential", 1, 0.05), ("projected", 1, 0.05), ("layers", 1, 0.2)]
)
def test_order(tokens, exact, method, order, finest):
    steps = np.array([40, 80, 160])
    errors = [np.abs(flow_on_spheres(FIELD, tokens, 4.0, method=method, step=4 / n) - exact).max() for n in steps]
    slope = -np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert slope == pytest.approx(order, abs=0.25)
    assert errors[-1] < finest


@pytest.mark.parametrize("method", ["rk4", "exponential", "projected", "layers", "adaptive"])
def test_rows_keep_unit_length_and_times_are_hit(tokens, method):
    states = flow_on_spheres(FIELD, tokens, [0.0, 0.33, 1.0], method=method)
    np.testing.assert_allclose(np.linalg.norm(states, axis=-1), 1, atol=1e-12)
    np.testing.assert_allclose(states[0], tokens, atol=1e-15)
    last = flow_on_spheres(FIELD, tokens, 1.0, method=method)
    assert np.abs(states[-1] - last).max() < 0.02


def test_corrected_layers_are_the_projected_method(tokens):
    drift = FIELD(0.0, tokens)
    step = 0.1 / (1 - 0.1 * np.sum(tokens * drift, axis=-1))
    layer = normalise(tokens + step[:, None] * drift)
    np.testing.assert_allclose(layer, normalise(tokens + 0.1 * tangent(tokens, drift)), atol=1e-14)


@pytest.mark.parametrize("h", [0.05, 0.1, 0.2])
def test_time_advances_more_slowly_in_layers(h):
    """For nearly equal tokens <x, F> = 1. A layer multiplies angles by 1 / (1 + h), and the projected method by 1 - h."""
    x = normalise(np.array([[1.0, 1e-4], [1.0, -1e-4], [1.0, 0.0]]))
    field = Attention(1.0).drift
    clock = h / (1 + h * np.sum(x * field(0.0, x), axis=-1))
    assert clock == pytest.approx(h / (1 + h), rel=1e-6)
    layered, projected = (flow_on_spheres(field, x, h, method=method, step=h) for method in ("layers", "projected"))
    assert layered[0, 1] / x[0, 1] == pytest.approx(1 / (1 + h), rel=1e-6)
    assert projected[0, 1] / x[0, 1] == pytest.approx(1 - h, rel=1e-6)


def test_exponential_map_is_a_rotation():
    x, v = np.array([0.0, 0.0, 1.0]), np.array([0.3, -0.4, 0.0])
    y = exponential_map(x, v)
    assert np.arccos(x @ y) == pytest.approx(0.5)
    np.testing.assert_array_equal(exponential_map(x, np.zeros(3)), x)


def test_refusals(tokens):
    with pytest.raises(ValueError, match="method"):
        flow_on_spheres(FIELD, tokens, 1.0, method="euler")
    with pytest.raises(ValueError, match="times"):
        flow_on_spheres(FIELD, tokens, [1.0, 0.5])
    with pytest.raises(ValueError, match="step"):
        flow_on_spheres(FIELD, tokens, 1.0, step=0.0)
    with pytest.raises(ValueError, match="length 0"):
        normalise(np.zeros((2, 3)))


def test_divergence_is_loud(tokens):
    with pytest.raises((ConvergenceError, ValueError)):
        flow_on_spheres(lambda t, x: np.full_like(x, np.nan), tokens, 1.0)
