"""A small fixed slice of the standing fuzz in every run of the tests; a longer one, with a budget of time, among the slow ones."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import run


def report(found):
    return "\n".join(f"{one['id']}  {one['call']}\n    {one['outcome']}" for one in found["wrong"])


@pytest.mark.parametrize("kind", ["api", "cli", "stores"])
def test_a_fixed_slice(kind, tmp_path):
    ends = [run.judged(kind, 2, number, tmp_path) for number in range({"api": 25, "cli": 10, "stores": 2}[kind])]
    wrong = [end for end in ends if end["outcome"].startswith("WRONG")]
    assert not wrong
    assert len({end["outcome"] for end in ends}) > (
        kind != "stores"
    )  # not all calls end alike: some compute, some are refused


def test_what_is_wrong_is_noticed():
    assert run.of_error(TypeError("must be real number, not str")).startswith("WRONG")
    assert run.holds_nan({"risk": [1.0, float("nan")]})
    with pytest.raises(np.linalg.LinAlgError) as caught:
        np.linalg.inv(np.zeros((2, 2)))
    assert run.of_error(caught.value).startswith("WRONG")
    with pytest.raises(ValueError, match="must be finite") as said:
        raise ValueError("ratio must be finite")
    assert run.of_error(said.value) == "refused (ValueError)"


@pytest.mark.slow
def test_more_calls_within_a_budget():
    found = run.fuzz({"api": 2000, "cli": 800, "stores": 100}, seed=1, budget=900)
    assert not found["wrong"], report(found)
    assert found["largest"] < run.MEMORY
