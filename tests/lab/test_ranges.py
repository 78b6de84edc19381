import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab.lab.grid import parse_range


def test_the_three_forms():
    np.testing.assert_array_equal(parse_range("0:1:11"), np.linspace(0, 1, 11))
    np.testing.assert_array_equal(parse_range("0.1:100:60log"), np.geomspace(0.1, 100, 60))
    np.testing.assert_array_equal(parse_range("1,2,5"), [1.0, 2.0, 5.0])


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("3", [3.0]),
        (" 1e-3 , inf", [1e-3, np.inf]),
        ("0, 1:4:3LOG", [0.0, 1.0, 2.0, 4.0]),
        ("2:0:3lin", [2.0, 1.0, 0.0]),
        ("-1:-100:3 log", [-1.0, -10.0, -100.0]),
    ],
)
def test_variations(text, values):
    np.testing.assert_allclose(parse_range(text), values, rtol=1e-15)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("relu", "'relu' is not a number"),
        ("1,,2", "'' is not a number"),
        ("nan", "'nan' is not a number"),
        ("0:1", "2 parts"),
        ("0:1:2:3", "4 parts"),
        ("0:1:x", "'x' is not a number of points"),
        ("0:1:2.5", "not a number of points"),
        ("0:1:-3", "not a number of points"),
        ("0:1:1", "between 2 and"),
        ("0:1:99999999", "between 2 and"),
        ("0:1:5log", "same sign"),
        ("-1:1:5log", "same sign"),
        ("0:inf:5", "must be finite"),
        (":1:5", "'' is not a number"),
    ],
)
def test_bad_ranges_say_what_is_wrong(text, complaint):
    with pytest.raises(ValueError, match=re.escape(complaint)) as caught:
        parse_range(text)
    assert "\n" not in str(caught.value)


def test_what_is_not_a_text_is_refused():
    with pytest.raises(ValueError, match="is not a text"):
        parse_range(3.0)


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.integers(2, 200), st.sampled_from(["", "log"]))
@settings(deadline=None, max_examples=50)
def test_ends_are_exact_and_the_count_is_kept(start, stop, count, spacing):
    values = parse_range(f"{start!r}:{stop!r}:{count}{spacing}")
    assert values.size == count
    assert values[0] == start
    assert values[-1] == stop
    assert np.all(np.diff(values) * (stop - start) >= 0)
