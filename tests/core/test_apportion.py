"""Whole numbers in given proportions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limitlab._core.declaration import apportion


@pytest.mark.parametrize("size", [3, 7, 50, 101])
def test_apportion(size):
    weights = np.array([0.2, 0.5, 0.3])
    counts = apportion(size, 7 * weights)
    assert counts.sum() == size
    assert counts.min() >= 1
    assert np.abs(counts - size * weights).max() < 1 or size == 3


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=8), st.integers(0, 500))
def test_every_group_has_its_share(weights, extra):
    size = len(weights) + extra
    counts = apportion(size, weights)
    exact = size * np.array(weights) / np.sum(weights)
    assert counts.sum() == size
    assert counts.min() >= 1
    assert np.all(counts <= np.maximum(np.ceil(exact + 1e-9), 1))  # only who is given a first one has more than its share
    np.testing.assert_array_equal(apportion(size, counts), counts)  # proportions that are whole numbers stay


def test_apportion_refuses_too_few():
    with pytest.raises(ValueError, match="size = 2"):
        apportion(2, [1, 1, 1])
