"""The ledger itself: the claims of every area in one dictionary, in the order in which they are listed."""

from __future__ import annotations

from collections.abc import Sequence

from limitlab.errors import did_you_mean
from limitlab.lab.claims import (
    attention,
    dynamics,
    equivalence,
    local,
    margins,
    online_sgd,
    pending,
    random_features,
    ridge,
    spectra,
)
from limitlab.lab.claims.core import Claim

LEDGER: dict[str, Claim] = {
    claim.id: claim
    for area in (local, spectra, ridge, random_features, equivalence, margins, dynamics, attention, online_sgd, pending)
    for claim in area.CLAIMS
}
"""Every claim by id."""


def find_claims(ids: Sequence[str] = ()) -> list[Claim]:
    """The claims of these ids (upper or lower case), or all of them when none is given.

    >>> [claim.id for claim in find_claims(["j5"])]
    ['J5']
    """
    spelt = {claim_id.upper(): claim for claim_id, claim in LEDGER.items()}
    for claim_id in ids:
        if claim_id.upper() not in spelt:
            raise ValueError(f"there is no claim {claim_id!r}: {did_you_mean(claim_id, LEDGER)}")
    return [spelt[claim_id.upper()] for claim_id in ids] if ids else list(LEDGER.values())
