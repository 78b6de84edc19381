"""Weighted sample covariances: Marchenko and Pastur's case, spikes, and matrices that were drawn."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab.laws.alignment.blocks import WeightedBulk, outliers


@given(st.floats(0.01, 3), st.floats(0.1, 5))
@settings(max_examples=30, deadline=None)
def test_equal_weights_are_marchenko_and_pastur(ratio, variance):
    bulk = WeightedBulk(np.ones(1), np.ones(1), ratio, variance)
    assert bulk.edge() == pytest.approx(variance * (1 + math.sqrt(ratio)) ** 2, rel=1e-9)
    m = bulk.edge_transform()
    assert abs(bulk.slope(m)) < 1e-6 * bulk.slope(m / 2)


@given(st.floats(0.05, 1), st.floats(0.2, 3))
@settings(max_examples=30, deadline=None)
def test_weights_scale(ratio, factor):
    one = WeightedBulk(np.array([0.3, 1.0]), np.array([0.6, 0.4]), ratio, 1.0)
    assert one._replace(weights=factor * one.weights).edge() == pytest.approx(factor * one.edge(), rel=1e-9)


def test_infinitely_many_samples():
    bulk = WeightedBulk(np.array([0.3, 1.0]), np.array([0.5, 0.5]), 0.0, 0.2)
    assert bulk.edge() == pytest.approx(0.2 * 0.65)
    (one,) = outliers(bulk, np.array([[[0.5, 0.5]]]))
    assert one.value == pytest.approx(0.65)
    assert one.mass == 1.0
    near = outliers(bulk._replace(ratio=1e-6), np.array([[[0.5, 0.5]]]))
    assert near[0].value == pytest.approx(0.65, rel=1e-4)
    assert near[0].mass == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("spike", [1.2, 1.4, 2.0, 4.0])
def test_one_spike_of_a_covariance(spike):
    """Baik, Ben Arous, Peche: outside iff spike > 1 + sqrt(gamma)."""
    ratio = 0.1
    found = outliers(WeightedBulk(np.ones(1), np.ones(1), ratio, 1.0), np.array([[[spike]]]))
    if spike < 1 + math.sqrt(ratio):
        assert not found
        return
    ((value, _, mass),) = found
    assert value == pytest.approx(spike * (1 + ratio / (spike - 1)), rel=1e-10)
    assert mass == pytest.approx((1 - ratio / (spike - 1) ** 2) / (1 + ratio / (spike - 1)), rel=1e-8)


def test_against_a_matrix_with_dependent_weights():
    """Two classes with different weights and means, and a direction on which the weight depends."""
    rng, d, ratio, variance = np.random.default_rng(0), 400, 0.2, 0.05
    count = round(d / ratio)
    label = rng.random(count) < 0.3
    samples = math.sqrt(variance) * rng.standard_normal((count, d))
    samples[:, 0] += label
    weights = np.where(label, 1.0, 0.4)
    values, vectors = np.linalg.eigh(samples.T @ (samples * weights[:, None]) / count)
    bulk = WeightedBulk(np.array([1.0, 0.4]), np.array([0.3, 0.7]), ratio, variance)
    block = np.array([[[0.3 * (1 + variance), 0.7 * variance]]])
    (one,) = outliers(bulk, block)
    assert values[-1] == pytest.approx(one.value, rel=0.05)
    assert vectors[0, -1] ** 2 == pytest.approx(one.mass, abs=0.02)
    assert values[-2] == pytest.approx(bulk.edge(), rel=0.05)
