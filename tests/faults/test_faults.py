"""The lists of planted faults can be planted, every law and claim has some, and (slow) every fault is caught by some check."""

import pytest
from plant import HERE, KINDS, PACKAGE, PLACES, ROOT, STRENGTH, Fate, faults, only, page, part_of, run, summary, survivors

from limitlab._core.registry import all_laws
from limitlab.lab import all_claims

FAULTS = list(faults())
EXPLAINED: dict[str, str] = {}
"""Faults that no check catches, with the reason."""
NOT_NEGATED: dict[str, str] = {}
"""Claims without a fault that makes their statement false, with the reason."""


@pytest.mark.parametrize("family", sorted(path.stem for path in HERE.glob("*.toml")))
def test_a_list_can_be_planted(family):
    for fault in (fault for fault in FAULTS if fault.family == family):
        text = (PACKAGE / fault.file).read_text(encoding="utf-8")
        compile(fault.planted(text), fault.file, "exec")
        assert fault.place in PLACES, fault.name
        assert fault.kind in KINDS, fault.name
        assert fault.laws or fault.tests or fault.negates, fault.name
        assert set(fault.laws) <= set(all_laws()), fault.name
        assert all((ROOT / test.split("::")[0]).exists() for test in fault.tests), fault.name
        if fault.negates:
            assert fault.negates in all_claims(), fault.name
            assert STRENGTH.fullmatch(fault.strength), fault.name
            assert fault.note, f"{fault.name} does not say what it makes false"


def test_there_are_many_and_every_law_has_some():
    assert len(FAULTS) >= 500
    faulty = {law for fault in FAULTS for law in fault.laws}
    assert set(all_laws()) <= faulty, set(all_laws()) - faulty


def test_every_claim_is_negated_by_a_fault():
    negated = {fault.negates for fault in FAULTS}
    builtin = {claim_id for claim_id, claim in all_claims().items() if not claim.package}
    assert builtin - set(NOT_NEGATED) <= negated, sorted(builtin - negated - set(NOT_NEGATED))


def test_the_page_lists_every_fault_once():
    fates = [
        Fate(fault, {"quick": "consistent", "full": "caught"} if fault.negates else {"compare": "caught"})
        for fault in FAULTS
    ]
    rows = [
        line for line in page(fates).splitlines() if line.startswith("| ") and not line.startswith(("| claim", "| fault"))
    ]
    assert len(rows) == len(FAULTS)


def test_a_policy_asks_the_next_check_only_if_it_is_needed():
    fault = next(fault for fault in FAULTS if fault.laws and fault.tests and not fault.negates)
    assert survivors(Fate(fault))[:2] == ["compare", "tests"]
    assert survivors(Fate(fault, {"compare": "caught"})) == []
    negation = next((fault for fault in FAULTS if fault.negates), None)
    if negation is not None:
        assert only(("quick", "full"))(Fate(negation, {"quick": "caught"})) == ["quick"]
        assert only(("quick", "full"))(Fate(negation, {"quick": "consistent"})) == ["quick", "full"]


def test_the_parts_contain_every_fault_once():
    parts = [part_of(FAULTS, f"{number}/10") for number in range(1, 11)]
    assert sorted(fault.name for part in parts for fault in part) == sorted(fault.name for fault in FAULTS)
    with pytest.raises(ValueError, match="--part"):
        part_of(FAULTS, "11/10")


@pytest.mark.slow
def test_every_fault_is_caught():
    fates = list(run([Fate(fault) for fault in FAULTS], jobs=2, budget=20.0, policy=survivors))
    print(summary(fates))
    missed = {fate.fault.name for fate in fates if not fate.caught}
    assert missed <= set(EXPLAINED), missed - set(EXPLAINED)
    private = [fate for fate in fates if fate.fault.place != "shared" and fate.answer("compare")]
    assert sum(fate.answer("compare") == "caught" for fate in private) >= 0.85 * len(private)


@pytest.mark.slow
def test_claims_fail_if_their_statement_is_false():
    negations = [Fate(fault) for fault in FAULTS if fault.negates]
    fates = list(run(negations, jobs=2, budget=20.0, policy=only(("quick", "full"))))
    print(summary(fates))
    assert not [fate.fault.name for fate in fates if fate.answer("quick") == "pass"]  # it should say "consistent"
    assert not [fate.fault.name for fate in fates if fate.fault.strength == "negation" and not fate.caught]
    small = [fate for fate in fates if fate.fault.strength != "negation"]
    assert sum(fate.caught for fate in small) >= 0.95 * len(small)


def test_a_broken_environment_does_not_count_as_caught(tmp_path, monkeypatch):
    fault = next(fault for fault in FAULTS if fault.negates)
    monkeypatch.setattr("plant.sys.executable", "/bin/false")
    with pytest.raises(RuntimeError, match="does not start"):
        list(run([Fate(fault)], jobs=1, budget=1.0, policy=only(("quick",))))
