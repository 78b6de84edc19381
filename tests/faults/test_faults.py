"""The lists of planted faults stay usable, and (slow) every fault in them is noticed by something."""

import pytest
from plant import HERE, KINDS, PACKAGE, PLACES, ROOT, faults, run, summary

from limitlab._core.registry import all_laws

FAULTS = list(faults())
EXPLAINED: dict[str, str] = {}
"""Faults that nothing notices, with the reason."""


@pytest.mark.parametrize("family", sorted(path.stem for path in HERE.glob("*.toml")))
def test_a_list_can_be_planted(family):
    for fault in (fault for fault in FAULTS if fault.family == family):
        text = (PACKAGE / fault.file).read_text(encoding="utf-8")
        compile(fault.planted(text), fault.file, "exec")
        assert fault.place in PLACES, fault.name
        assert fault.kind in KINDS, fault.name
        assert fault.laws or fault.tests, fault.name
        assert set(fault.laws) <= set(all_laws()), fault.name
        assert all((ROOT / test.split("::")[0]).exists() for test in fault.tests), fault.name


def test_there_are_many_and_every_law_has_some():
    assert len(FAULTS) >= 150
    faulty = {law for fault in FAULTS for law in fault.laws}
    assert set(all_laws()) <= faulty, set(all_laws()) - faulty


@pytest.mark.slow
def test_every_fault_is_noticed():
    fates = list(run(FAULTS, jobs=2, budget=20.0, ask_tests="survivors"))
    print(summary(fates))
    missed = {fate.fault.name for fate in fates if not fate.caught}
    assert missed <= set(EXPLAINED), missed - set(EXPLAINED)
    own = [fate for fate in fates if fate.fault.place != "shared" and fate.fault.laws]
    assert sum(fate.compare == "caught" for fate in own) >= 0.85 * len(own)
