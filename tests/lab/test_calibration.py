"""The level and the power that `compare` promises (docs/howto/compare.md has the numbers of the whole run)."""

import pytest
from calibrate import LEVEL, false_alarms, five_percent_off, interval, power

from limitlab.lab import compare
from limitlab.laws import Ridge


def test_a_fault_of_five_percent_is_seen():
    law = five_percent_off(Ridge.check_points()[0], "train_error")
    assert compare(law, budget=20.0, progress=False).verdict == "disagree"
    assert compare(Ridge.check_points()[0], budget=20.0, progress=False).verdict == "agree"


@pytest.mark.slow
def test_false_alarms_are_at_most_the_level():
    found = list(false_alarms())
    alarms, total = sum(verdicts["disagree"] for _, _, verdicts in found), sum(count for _, count, _ in found)
    assert total >= 2000
    assert interval(alarms, total)[0] <= LEVEL, f"{alarms} of {total}"


@pytest.mark.slow
def test_faults_of_five_percent_are_caught():
    found = {name: verdicts["disagree"] / verdicts.total() for name, _, verdicts in power()}
    assert sum(share >= 0.9 for share in found.values()) >= 10, found
