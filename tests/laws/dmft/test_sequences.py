"""Limits of sequences: exact where the drift is geometric, honest about the rest."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limitlab.laws.dmft._transition import aitken, settled


@given(limit=st.floats(-2, 2), scale=st.floats(0.1, 2), ratio=st.floats(0.1, 0.9), sign=st.sampled_from([-1, 1]))
def test_a_geometric_sequence_is_extrapolated_exactly(limit, scale, ratio, sign):
    sequence = limit + scale * (sign * ratio) ** np.arange(3)
    np.testing.assert_allclose(aitken(sequence), limit, atol=1e-9)


def test_every_three_neighbours_give_a_limit():
    sequence = 1 + 0.5 ** np.arange(6) + 0.1 ** np.arange(6)
    found = aitken(sequence)
    assert found.shape == (4,)
    assert np.all(np.diff(np.abs(found - 1)) < 0)  # the fast part dies out
    for k in range(4):
        np.testing.assert_allclose(aitken(sequence[k : k + 3]), found[k], rtol=1e-14)


def test_a_sequence_that_has_arrived_or_moves_evenly():
    np.testing.assert_array_equal(aitken([2.0, 2.0, 2.0]), [2.0])
    np.testing.assert_array_equal(aitken([1.0, 2.0, 3.0]), [3.0])  # no limit to point at: the last entry
    assert settled([2.0, 2.0, 2.0]).value == 2.0
    assert settled([2.0, 2.0, 2.0]).error == 0.0


@given(limit=st.floats(0.05, 1), exponent=st.floats(0.4, 2.0), sign=st.sampled_from([-1, 1]))
def test_the_limit_of_powers_at_doubling_times_is_within_its_error(limit, exponent, sign):
    """A pure power at doubling times is geometric; its square in addition leaves an error that is known."""
    power = 2.0 ** (-exponent * np.arange(3, 9))
    pure, mixed = settled(limit + sign * power), settled(limit + sign * power + 0.5 * power**2)
    assert abs(pure.value - limit) < 1e-9
    assert abs(mixed.value - limit) <= mixed.error
    assert mixed.error < abs(float(power[-3]))


@pytest.mark.parametrize("last", [[0.0, 1.0, 2.0], [0.0, 1.0, 2.5], [0.0, 1.0, 0.5]], ids=["steady", "faster", "back"])
def test_a_drift_that_does_not_shrink_has_a_large_error(last):
    """No limit is claimed beyond the last entry, and the error reaches over all that was seen and three more steps."""
    found = settled([9.0, *last])  # only the last three count
    assert found.value == last[-1]
    assert found.error == pytest.approx(np.ptp(last) + 3 * abs(last[-1] - last[-2]))


def test_two_entries_are_too_few_for_an_extrapolation():
    found = settled([1.0, 1.25])
    assert (found.value, found.error) == (1.25, 1.0)
