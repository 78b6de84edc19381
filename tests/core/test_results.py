"""What a result looks like does not depend on the way it was packaged."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from limitlab._core.law import Law
from limitlab._core.results import to_dataset
from limitlab.laws import MaxMargin, Ridge


@pytest.mark.parametrize("law", [Ridge(ratio=2.0, noise=0.3), MaxMargin()], ids=lambda law: type(law).__name__)
def test_a_result_of_single_numbers_is_the_one_that_xarray_builds(law: Law) -> None:
    values = law.evaluate()
    quick = to_dataset(law, values, kind="theory", caveat="none")
    built = to_dataset(law, values, kind="theory", dims=dict.fromkeys(values, ()), caveat="none")
    xr.testing.assert_identical(quick, built)
    assert list(quick.attrs) == list(built.attrs)
    assert {name: array.dtype for name, array in quick.items()} == {name: array.dtype for name, array in built.items()}
    assert [list(array.attrs) for array in quick.values()] == [list(array.attrs) for array in built.values()]


def test_results_of_single_numbers_share_nothing() -> None:
    first = Ridge(ratio=2.0).theory()
    kept = first.copy(deep=True)
    second = Ridge(ratio=3.0).theory()
    second.test_error.attrs["symbol"] = "changed"
    second.attrs["law"] = "changed"
    second["added"] = 1.0
    xr.testing.assert_identical(first, kept)
    assert "added" not in Ridge(ratio=2.0).theory()
    assert Ridge(ratio=2.0).theory().test_error.attrs["symbol"] == first.test_error.attrs["symbol"]


def test_nan_in_a_prediction_is_refused_whatever_its_shape() -> None:
    law = Ridge()
    for value in (np.float64(np.nan), np.array([1.0, np.nan])):
        with pytest.raises(FloatingPointError, match=r"Ridge.*NaN for bias"):
            to_dataset(law, {"bias": value}, kind="theory", dims={"bias": ("a",) * np.ndim(value)})
    with pytest.raises(FloatingPointError, match=r"Ridge.*NaN for bias"):
        to_dataset(law, {"bias": np.float64(np.nan)}, kind="theory")
