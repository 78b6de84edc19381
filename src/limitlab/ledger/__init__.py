"""The ledger: every statement of the theory as a check that can fail, and an honest list of those not checked yet."""

from limitlab.lab.claims import Claim as Claim
from limitlab.lab.claims import Outcome as Outcome
from limitlab.lab.claims import all_claims as all_claims
from limitlab.lab.claims import claim as claim
from limitlab.lab.claims import claims_of as claims_of
from limitlab.lab.claims import find_claims as find_claims
from limitlab.lab.verification import Record as Record
from limitlab.lab.verification import verify as verify

__all__ = ["Claim", "Outcome", "Record", "all_claims", "claim", "claims_of", "find_claims", "verify"]
