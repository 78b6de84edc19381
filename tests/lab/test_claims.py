"""The ledger: complete, honest, and its quick checks pass (and can fail)."""

import dataclasses

import pytest

from limitlab.ledger import LEDGER, Claim, Outcome, find_claims, verify
from limitlab.lab.registry import all_laws

IDS = (
    [f"L{i}" for i in range(1, 6)]
    + [f"D{i}" for i in range(1, 11)]
    + [f"J{i}" for i in range(1, 30)]
    + [f"M{i}" for i in range(1, 9)]
    + [f"T{i}" for i in range(1, 10)]
)


def test_every_statement_is_in_the_ledger_once():
    assert sorted(LEDGER) == sorted(IDS)
    assert all(claim.statement and claim.area for claim in LEDGER.values())


def test_laws_and_claims_name_each_other():
    laws = all_laws()
    for claim in LEDGER.values():
        assert set(claim.laws) <= set(laws), f"{claim.id} names an unknown law"
    for name, law in laws.items():
        assert set(law.claims) <= set(LEDGER), f"{name} names an unknown claim"


@pytest.mark.parametrize("claim", [c for c in LEDGER.values() if c.implemented], ids=lambda claim: claim.id)
def test_quick_check_passes(claim):
    outcome = claim.run(quick=True)
    assert outcome.passed, f"{outcome.criterion}: {dict(outcome.measured)}"
    assert outcome.measured
    assert outcome.criterion


@pytest.mark.slow
@pytest.mark.parametrize("claim", [c for c in LEDGER.values() if c.implemented], ids=lambda claim: claim.id)
def test_full_check_passes(claim):
    outcome = claim.run(quick=False)
    assert outcome.passed, f"{outcome.criterion}: {dict(outcome.measured)}"


def test_a_broken_check_fails_and_does_not_stop_the_others():
    def breaks(quick: bool) -> Outcome:
        raise RuntimeError("no luck")

    broken = Claim("X1", "test", "a broken check", check=breaks)
    false = dataclasses.replace(broken, id="X2", check=lambda quick: Outcome(False, "1 < 0", {"one": 1}))
    pending = Claim("X3", "test", "no check yet")
    records = list(verify([broken, false, pending]))
    assert [record.status for record in records] == ["fail", "fail", "not implemented"]
    assert "no luck" in records[0].error


def test_find_claims_forgives_case_and_suggests():
    assert [claim.id for claim in find_claims(["j5", "T9"])] == ["J5", "T9"]
    with pytest.raises(ValueError, match=r"no claim 'J55'.*did you mean"):
        find_claims(["J55"])
