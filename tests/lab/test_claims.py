"""The ledger: complete, honest, and its quick checks pass (and can fail)."""

import dataclasses

import pytest

from limitlab._core.registry import all_laws
from limitlab.lab.claims import Claim, Outcome, all_claims, find_claims, laws_of_claims
from limitlab.lab.criteria import above, below, near, true
from limitlab.lab.verification import from_json, to_json, verify

IDS = (
    [f"L{i}" for i in range(1, 12)]
    + [f"D{i}" for i in range(1, 15)]
    + [f"J{i}" for i in range(1, 36)]
    + [f"M{i}" for i in range(1, 15)]
    + [f"T{i}" for i in range(1, 12)]
    + [f"S{i}" for i in range(1, 7)]
    + ["B1", "B2", "B3", "C1", "C2", "C3"]
)


def test_every_statement_is_in_the_ledger_once():
    assert sorted(all_claims()) == sorted(IDS)
    assert all(claim.statement and claim.area for claim in all_claims().values())


def test_claims_name_laws_and_the_index_reads_the_same_names():
    laws = all_laws()
    for claim in all_claims().values():
        assert set(claim.laws) <= set(laws), f"{claim.id} names an unknown law"
    assert laws_of_claims() == {claim.id: claim.laws for claim in all_claims().values() if claim.implemented}
    unclaimed = set(laws) - {law for claim in all_claims().values() for law in claim.laws}
    assert not unclaimed, f"no claim exercises {unclaimed}"


def test_criteria_judge_what_they_print():
    nan = float("nan")
    assert not any(made.holds for made in (below("x", nan, 1), above("x", nan, 1), near("x", nan, 1, 1)))
    assert str(near("slope", 0.9, 1.0, 0.2)) == "slope within 0.2 of 1"
    assert not Outcome(()).passed  # a check without criteria decides nothing
    outcome = Outcome((below("x", 0.5, 1), true("it holds", True)), {"y": 2.0}, "a note", decisive=False)
    assert (outcome.status, outcome.criterion) == ("consistent", "x below 1; it holds")
    assert from_json(to_json(outcome)) == outcome


@pytest.mark.usefixtures("shared_cells")
@pytest.mark.parametrize("claim", [c for c in all_claims().values() if c.implemented], ids=lambda claim: claim.id)
def test_quick_check_passes(claim):
    outcome = claim.run(quick=True)
    assert outcome.passed, [f"{made}: {made.value}" for made in outcome.criteria if not made.holds]
    assert len(outcome.numbers) == len(outcome.criteria) + len(outcome.measured), "a name is used twice"


@pytest.mark.slow
@pytest.mark.parametrize("claim", [c for c in all_claims().values() if c.implemented], ids=lambda claim: claim.id)
def test_full_check_passes(claim):
    outcome = claim.run(quick=False)
    assert outcome.passed, [f"{made}: {made.value}" for made in outcome.criteria if not made.holds]


def test_a_broken_check_fails_and_does_not_stop_the_others(monkeypatch):
    def breaks(quick: bool) -> Outcome:
        raise RuntimeError("no luck")

    broken = Claim("X1", "test", "a broken check", check=breaks)
    false = dataclasses.replace(broken, id="X2", check=lambda quick: Outcome((below("one", 1.0, 0.0),)))
    pending = Claim("X3", "test", "no check yet")
    known = {one.id: one for one in (broken, false, pending)}
    monkeypatch.setattr("limitlab.lab.verification.find_claims", lambda ids: [known[one] for one in ids])
    records = verify([broken, false, pending])
    assert [record.status for record in records] == ["fail", "fail", "not implemented"]
    assert "no luck" in records[0].error


def test_find_claims_forgives_case_and_suggests():
    assert [claim.id for claim in find_claims(["j5", "T9"])] == ["J5", "T9"]
    with pytest.raises(ValueError, match=r"no claim 'J55'.*did you mean"):
        find_claims(["J55"])


def test_a_second_run_reads_what_was_kept(tmp_path, monkeypatch):
    (claim,) = find_claims(["J3"])
    first = verify([claim], store=str(tmp_path))
    monkeypatch.setattr("limitlab.lab.claims.Claim.run", lambda *_: 1 / 0)
    assert verify([claim], store=str(tmp_path)) == first
