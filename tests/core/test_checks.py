"""The checks of arguments refuse what is outside the bounds, and return what is inside in its plain form."""

import math

import numpy as np
import pytest

from limitlab._core.checks import array, check_shape, number, one_of, refuse, whole
from limitlab.errors import ConvergenceError, NotComputable, Refused, TooCostly, UnreachableTarget


@pytest.mark.parametrize("value", [1, 2.5, True, "3", None, math.nan, math.inf, 10**400, np.True_, [3]])
def test_whole_refuses(value):
    with pytest.raises(Refused, match="steps = "):
        whole("steps", value, least=2)


@pytest.mark.parametrize("value", [2, 3.0, np.int64(5), np.float64(7.0)])
def test_whole_returns_an_int(value):
    steps = whole("steps", value, least=2, most=7)
    assert type(steps) is int
    assert steps == value


def test_whole_has_an_upper_bound():
    with pytest.raises(Refused, match=r"degree = 8 .* between 2 and 7"):
        whole("degree", 8, least=2, most=7)


@pytest.mark.parametrize(
    ("value", "bounds"),
    [
        (0.0, {"above": 0}),
        (-0.1, {"least": 0}),
        (1.0, {"below": 1}),
        (1.1, {"most": 1}),
        (math.inf, {"above": 0}),
        (math.nan, {"infinite": True}),
        (10**400, {"infinite": True}),
        (True, {}),
        ("1", {}),
        (1j, {}),
        (None, {}),
        (np.ones(2), {}),
    ],
)
def test_number_refuses(value, bounds):
    with pytest.raises(Refused, match="ridge = "):
        number("ridge", value, **bounds)


def test_number_returns_a_float():
    assert number("ratio", math.inf, above=0, infinite=True) == math.inf
    for value in (0, np.float32(0.0), np.array(0.0)):
        assert type(number("ridge", value, least=0, most=0)) is float


@pytest.mark.parametrize("value", ["nn", 1, None, True, np.ones(2)])
def test_one_of_refuses(value):
    with pytest.raises(Refused, match="must be 'rf', 'nt' or 2"):
        one_of("model", value, ("rf", "nt", 2))


def test_one_of_hints_at_a_misspelt_choice():
    with pytest.raises(Refused, match="did you mean 'softplus'"):
        one_of("activation", "sofplus", ("relu", "tanh", "erf", "gelu", "softplus"))


@pytest.mark.parametrize(
    ("value", "options"),
    [
        (["a"], {}),
        ([[1.0], [2.0, 3.0]], {}),
        ([1.0, math.nan], {"infinite": True}),
        ([1.0, math.inf], {}),
        ([0.5, 0.0], {"above": 0}),
        ([0.5, -1.0], {"least": 0}),
        ([0.5, 1.0], {"below": 1}),
        ([0.5, 2.0], {"most": 1}),
        ([1.0, 1.0], {"increasing": True}),
        (1.0, {"shape": ("n",)}),
        ([], {"shape": ("n",)}),
        (np.ones((2, 3)), {"shape": ("n", "n")}),
        (np.ones((2, 3)), {"shape": ("n", 2)}),
        (np.ones(3), {"shape": (..., "n", "d")}),
    ],
)
def test_array_refuses(value, options):
    with pytest.raises(Refused, match=r"^weights "):
        array("weights", value, **options)


def test_array_returns_floats():
    numbers = array("weights", [[1, 2, 3]], shape=(..., "n", 3), above=0, increasing=True)
    assert numbers.dtype == np.float64
    assert numbers.tolist() == [[1.0, 2.0, 3.0]]
    assert array("ratio", [1.0, math.inf], above=0, infinite=True).tolist() == [1.0, math.inf]
    assert array("points", [], shape=None).size == 0


def test_a_letter_in_a_shape_is_one_length():
    check_shape("kernel", (2, 5, 4, 4), (..., "n", "n"))
    with pytest.raises(Refused, match=r"kernel of shape \(2, 5, 4, 3\) .* \(\.\.\., n, n\)"):
        check_shape("kernel", (2, 5, 4, 3), (..., "n", "n"))


def test_refusals_are_value_errors_of_one_type():
    refuse(False, "this is not raised")
    with pytest.raises(ValueError, match="give one of them"):
        refuse(True, "give one of them")
    assert issubclass(TooCostly, Refused)
    assert issubclass(UnreachableTarget, Refused)
    assert not issubclass(ConvergenceError, Refused)
    assert not issubclass(NotComputable, Refused)
