"""The ledger: every statement of the theory as a check that can fail, and an honest list of those not checked yet."""

from limitlab.ledger.claims import Claim as Claim
from limitlab.ledger.claims import Outcome as Outcome
from limitlab.ledger.claims import all_claims as all_claims
from limitlab.ledger.claims import claim as claim
from limitlab.ledger.claims import claims_of as claims_of
from limitlab.ledger.claims import find_claims as find_claims
from limitlab.ledger.run import Record as Record
from limitlab.ledger.run import verify as verify

__all__ = ["Claim", "Outcome", "Record", "all_claims", "claim", "claims_of", "find_claims", "verify"]
