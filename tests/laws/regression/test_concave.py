"""Newton's method from the left: exact roots, elements that stop at different times, refusals."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limitlab.errors import ConvergenceError
from limitlab.laws.regression._random_features_point import concave_root


def saturating(t, a, b, c):
    """a t + t/(1 + b t) - c: a concave function with a fast and a slow part."""
    return a * t + t / (1 + b * t) - c, a + (1 + b * t) ** -2


@given(log_a=st.floats(-12, 6), log_b=st.floats(-6, 6), log_c=st.floats(-6, 6))
def test_root_of_a_quadratic(log_a, log_b, log_c):
    a, b, c = 10**log_a, 10**log_b, 10**log_c
    t = float(concave_root(saturating, c / (2 * (a + 1)), a, b, c))
    half = 1 + a - b * c  # a b t^2 + (1 + a - b c) t - c = 0
    disc = np.sqrt(half**2 + 4 * a * b * c)
    expected = 2 * c / (half + disc) if half > 0 else (disc - half) / (2 * a * b)
    slope = saturating(t, a, b, c)[1]
    np.testing.assert_allclose(t, expected, rtol=max(1e-13, 1e-15 * c / (slope * t)))


def test_each_element_converges_on_its_own():
    c = np.geomspace(1e-8, 1e8, 17)[:, None]
    a = np.geomspace(1e-6, 1, 5)
    t = concave_root(saturating, c / (2 * (a + 1)), a, 1.0, c)
    assert t.shape == (17, 5)
    alone = [[float(concave_root(saturating, x / (2 * (y + 1)), y, 1.0, x)) for y in a] for x in c[:, 0]]
    np.testing.assert_array_equal(t, alone)


def test_iterates_increase():
    seen = []

    def recorded(t, c):
        seen.append(float(t[0]))
        return np.log(t) - c, 1 / t

    assert concave_root(recorded, 1e-30, 3.0) == pytest.approx(np.exp(3.0), rel=1e-15)
    assert all(later > earlier for earlier, later in pairwise(seen[:-1]))


def test_a_start_on_the_root_stays():
    assert concave_root(lambda t: (t - 2.0, np.ones_like(t)), 2.0) == 2.0


def test_refusals():
    with pytest.raises(ValueError, match=r"start = .*left of the root"):
        concave_root(lambda t: (np.log(t), 1 / t), 5.0)
    with pytest.raises(ConvergenceError, match="function is nan"):
        concave_root(lambda t: (t * np.nan, np.ones_like(t)), 1.0)
    with pytest.raises(ConvergenceError, match="no root") as caught:
        concave_root(lambda t: (np.full_like(t, -1.0), np.full_like(t, 1e-3)), 1.0)
    assert caught.value.estimate > 1
