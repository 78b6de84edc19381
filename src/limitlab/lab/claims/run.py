"""Running the ledger: one record per claim, whatever happens to the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from limitlab.lab.claims.core import Claim, ClaimStatus, Outcome


@dataclass(frozen=True)
class Record:
    """What running a claim gave: its status, the outcome where the check ran, the error where it broke."""

    claim: Claim
    status: ClaimStatus
    outcome: Outcome | None = None
    error: str = ""


def verify(claims: Iterable[Claim], quick: bool = True) -> Iterator[Record]:
    """Run claims one after the other; a check that breaks counts as failed and does not stop the rest.

    Parameters
    ----------
    claims
        Claims to run, for example `find_claims(["J5"])`.
    quick
        Small sizes (seconds) or the sizes that decide (minutes).

    Examples
    --------
    >>> from limitlab.lab.claims import find_claims
    >>> [record.status for record in verify(find_claims(["J3"]))]
    ['pass']
    """
    for claim in claims:
        yield _run(claim, quick)


def _run(claim: Claim, quick: bool) -> Record:
    if not claim.implemented:
        return Record(claim, "not implemented")
    try:
        outcome = claim.run(quick)
    except Exception as error:  # whatever breaks a check is a failed check, and the ledger goes on
        return Record(claim, "fail", error=f"{type(error).__name__}: {error}")
    return Record(claim, "pass" if outcome.passed else "fail", outcome)
