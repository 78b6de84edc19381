"""Moments of a softmax of Gaussians: exact cases, invariances, and an independent average."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab.laws.alignment.mixture_flow import softmax_moments


@given(st.integers(2, 30), st.floats(-3, 6), st.floats(0, 3))
@settings(max_examples=25, deadline=None)
def test_bounds_and_sum(count, shift, spread):
    found = softmax_moments(count, shift, spread)
    assert 0 < found.inside < 1
    assert found.inside + (count - 1) * found.outside == pytest.approx(1, abs=1e-12)
    assert found.inside**2 - 1e-12 <= found.inside_square <= found.inside + 1e-12
    assert found.outside**2 - 1e-12 <= found.outside_square <= found.outside + 1e-12


@pytest.mark.parametrize("spread", [0.3, 1.0, 2.5])
def test_without_shift_all_are_alike(spread):
    found = softmax_moments(5, 0.0, spread)
    assert found.inside == pytest.approx(0.2, abs=1e-13)
    assert found.inside_square == pytest.approx(found.outside_square, abs=1e-13)


def test_two_gaussians_are_a_logistic_average():
    """k = 2: E sigma(D + sqrt(2) s xi), by Gauss-Hermite."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    pi = 1 / (1 + np.exp(-(1.3 + math.sqrt(2) * 0.7 * nodes)))
    weights = weights / weights.sum()
    found = softmax_moments(2, 1.3, 0.7)
    assert found.inside == pytest.approx(weights @ pi, abs=1e-11)
    assert found.inside_square == pytest.approx(weights @ pi**2, abs=1e-11)
    assert found.outside_square == pytest.approx(weights @ (1 - pi) ** 2, abs=1e-11)


def test_against_draws():
    rng = np.random.default_rng(0)
    logits = 0.9 * rng.standard_normal((200_000, 6))
    logits[:, 0] += 1.2
    pi = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    found = softmax_moments(6, 1.2, 0.9)
    for values, exact in (
        (pi[:, 0], found.inside),
        (pi[:, 0] ** 2, found.inside_square),
        (pi[:, 1], found.outside),
        (pi[:, 1] ** 2, found.outside_square),
    ):
        assert abs(values.mean() - exact) < 5 * values.std() / math.sqrt(len(values))


def test_the_step_is_fine_enough():
    """The trapezoidal rule converges exponentially: halving the step changes nothing."""
    coarse, fine = softmax_moments(10, 2.9, 0.95), softmax_moments(10, 2.9, 0.95, step=0.1)
    np.testing.assert_allclose(coarse, fine, atol=1e-12)
    rough = softmax_moments(10, 2.9, 0.95, step=0.8)
    assert abs(rough.inside - fine.inside) < 1e-4
