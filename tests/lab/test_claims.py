"""The ledger: complete, honest, and its quick checks pass (and can fail)."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from limitlab._core.registry import all_laws
from limitlab.lab.check import Check, Criterion
from limitlab.lab.claims import Claim, Outcome, all_claims, claim, find_claims, from_json, laws_of_claims, to_json, verify
from limitlab.laws import NearestNeighbours, SampledMeasure

IDS = (
    [f"L{i}" for i in range(1, 13)]
    + [f"D{i}" for i in range(1, 24)]
    + [f"J{i}" for i in [*range(1, 43), *range(45, 50)]]
    + [f"M{i}" for i in range(1, 20)]
    + [f"T{i}" for i in range(1, 13)]
    + [f"S{i}" for i in range(1, 7)]
    + ["B1", "B2", "B3", "C1", "C2", "C3"]
)


def test_every_statement_is_in_the_ledger_once():
    assert sorted(all_claims()) == sorted(IDS)
    assert all(claim.statement and claim.area for claim in all_claims().values())


def test_claims_name_laws_and_the_index_reads_the_same_names():
    laws = all_laws()
    claims = all_claims().values()
    for stated in claims:
        assert set(stated.laws) <= set(laws), f"{stated.id} names an unknown law"
    assert laws_of_claims() == {stated.id: stated.laws for stated in claims if stated.implemented}
    unclaimed = set(laws) - {law for stated in claims for law in stated.laws}
    assert not unclaimed, f"no claim exercises {unclaimed}"


def test_criteria_judge_what_they_print():
    check, nan = Check(), float("nan")
    check.below("x", nan, 1)
    check.above("x", nan, 1)
    check.at_most("x", nan, 1)
    check.at_least("x", nan, 1)
    check.between("x", nan, 0, 1)
    check.near("x", nan, 1, 1)
    check.near_relative("x", nan, 1, 1)
    check.near_relative("x", 1.0, 0.0, 1)
    assert not any(made.holds for made in check.criteria)
    check = Check()
    check.below("x", np.float64(0.5), 1)
    check.above("x", 2, 1)
    check.at_most("x", 1, 1)
    check.at_least("x", 1, 1)
    check.between("x", 0.5, 0, 1)
    check.near("slope", 0.9, 1.0, 0.2)
    check.near_relative("half time", 5.3, 5.28, 0.03)
    check.equal("2 + 2", 4, 4)
    check.true("the energy never decreases", True)
    assert all(made.holds for made in check.criteria)
    assert type(check.criteria[0].value) is float
    assert "; ".join(map(str, check.criteria)) == (
        "x below 1; x above 1; x at most 1; x at least 1; x between 0 and 1; slope within 0.2 of 1; half time within 3% of 5.28; "
        "2 + 2 equal to 4; the energy never decreases"
    )


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("below", (1, 1)),
        ("above", (1, 1)),
        ("at_most", (1.01, 1)),
        ("at_least", (0.99, 1)),
        ("between", (1, 0, 1)),
        ("near", (0.7, 1, 0.2)),
        ("near_relative", (1.2, 1, 0.1)),
        ("equal", ("stable", "critical")),
        ("true", (False,)),
    ],
)
def test_every_criterion_can_fail(method, arguments):
    check = Check()
    getattr(check, method)("x", *arguments)
    assert [made.holds for made in check.criteria] == [False]


def test_a_check_becomes_an_outcome():
    assert not Outcome(()).passed  # a check without criteria decides nothing

    @claim("X1", "Arithmetic", NearestNeighbours, figure="sums", quick_decides=False)
    def sums(check: Check) -> None:
        """One half is below one, and
        two and two make four.

        By counting.
        """
        check.below("x", 0.5, 1)
        check.show("y", 2.0)
        check.equal("2 + 2", 4, 4)
        check.note("a note")

    assert (sums.statement, sums.laws) == ("One half is below one, and two and two make four.", ("NearestNeighbours",))
    outcome = dataclasses.replace(sums.run(quick=True), seconds=0.0)
    criteria = (Criterion("x", 0.5, "below 1", True), Criterion("2 + 2", 4, "equal to 4", True))
    assert outcome == Outcome(criteria, {"y": 2.0}, "a note", decisive=False)
    assert (outcome.status, sums.run(quick=False).status) == ("consistent", "pass")
    assert from_json(to_json(outcome)) == outcome


def test_a_claim_needs_classes_and_a_statement():
    with pytest.raises(ValueError, match=r"laws = .*NearestNeighbours.* must be classes of laws"):
        claim("X1", "Arithmetic", "NearestNeighbours")
    with pytest.raises(ValueError, match=r"'silent'.*state the claim"):

        @claim("X1", "Arithmetic")
        def silent(check: Check) -> None:
            check.true("it holds", True)


@pytest.mark.parametrize(("factor", "holds"), [(1.0, True), (1.05, False), (0.95, False)])
def test_extrapolated_experiments_decide_about_five_percent(monkeypatch, factor, holds):
    right = SampledMeasure.predicted
    monkeypatch.setattr(
        SampledMeasure, "predicted", lambda law: {**right(law), "squared_error": factor * right(law)["squared_error"]}
    )
    check = Check()
    check.extrapolated("sampling", SampledMeasure(), (5, 10), 600, ["squared_error"])
    near, sure = check.criteria
    assert (near.holds, sure.holds) == (holds, True)
    few = Check()
    few.extrapolated("sampling", SampledMeasure(), (5, 10), 5, ["squared_error"])
    assert not few.criteria[1].holds


def test_agreement_is_named_by_check_point(monkeypatch):
    calls = []

    def compare(law, sizes, seeds, **options):
        calls.append((law, sizes, seeds, options["resolution"], options["budget"], options["early"]))
        return SimpleNamespace(verdict="agree" if seeds else "underpowered", passed=bool(seeds))

    monkeypatch.setattr("limitlab.lab._compare.compare", compare)
    points = NearestNeighbours.check_points()
    check = Check(quick=True)
    check.agree("law", NearestNeighbours, seeds=5)
    check.agree("first", NearestNeighbours, points=1, seeds=5)
    check.agree("two", *points[:2], seeds=5)
    check.agree("one", points[0], sizes=(10, 20))
    check.agree("all", NearestNeighbours, seeds=5, together=True)
    numbers = [f"law at check point {i}" for i in range(1, len(points) + 1)]
    names = [*numbers, "first at check point 1", "two at check point 1", "two at check point 2", "one", "all"]
    assert [made.name for made in check.criteria] == names
    assert [made.holds for made in check.criteria] == [name != "one" for name in names]
    assert calls[-2:] == [(points[0], (10, 20), None, 0.1, 0.0, True), (NearestNeighbours, None, 5, 0.1, 0.0, True)]
    Check(quick=False).agree("law", points[0], seconds=30.0)
    assert calls[-1] == (points[0], None, None, 0.05, 30.0, False)


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
    def breaks(check: Check) -> None:
        raise RuntimeError("no luck")

    broken = Claim("X1", "test", "a broken check", check=breaks)
    false = dataclasses.replace(broken, id="X2", check=lambda check: check.below("one", 1.0, 0.0))
    pending = Claim("X3", "test", "no check yet")
    known = {one.id: one for one in (broken, false, pending)}
    monkeypatch.setattr("limitlab.lab.claims.find_claims", lambda ids: [known[one] for one in ids])
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
