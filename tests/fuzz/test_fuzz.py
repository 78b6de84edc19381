"""A small fixed slice of the standing fuzz in every run of the tests; a longer one, with a budget of time, among the slow ones."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import run


def report(found):
    return "\n".join(f"{one['id']}  {one['call']}\n    {one['outcome']}" for one in found["wrong"])


SLICE = {"api": 25, "cli": 10, "stores": 2, "odd": 100, "words": 40, "address": 30, "upload": 8, "kill": 1}
"""Calls of every kind in every run of the tests."""

FOUND = json.loads((Path(__file__).parent / "found.json").read_text(encoding="utf-8"))
"""Calls that were not in order once. `run.py --keep` adds to them."""


@pytest.mark.parametrize("kind", SLICE)
def test_a_fixed_slice(kind, tmp_path):
    ends = [run.judged(kind, 2, number, tmp_path) for number in range(SLICE[kind])]
    wrong = [end for end in ends if end["outcome"].startswith("WRONG")]
    assert not wrong
    assert len({end["outcome"] for end in ends}) > (
        kind not in ("stores", "kill", "address")
    )  # not all calls end alike: some compute, some are refused


@pytest.mark.parametrize("case", FOUND, ids=lambda case: f"{case['id']} seed {case['seed']}")
def test_what_was_wrong_once(case, tmp_path):
    kind, number = case["id"].split(":")
    end = run.judged(kind, case["seed"], int(number), tmp_path)
    assert not end["outcome"].startswith("WRONG"), end


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
    found = run.fuzz(
        {"api": 2000, "cli": 800, "stores": 100, "odd": 3000, "words": 1000, "address": 500, "upload": 200, "kill": 30},
        seed=1,
        budget=900,
    )
    assert not found["wrong"], report(found)
    assert found["largest"] < run.MEMORY
