"""The ledger: every statement of the theory as a check that can fail, and an honest list of those not checked yet."""

from limitlab.lab.claims.core import Claim as Claim
from limitlab.lab.claims.core import Outcome as Outcome
from limitlab.lab.claims.ledger import LEDGER as LEDGER
from limitlab.lab.claims.ledger import find_claims as find_claims
from limitlab.lab.claims.run import Record as Record
from limitlab.lab.claims.run import verify as verify

__all__ = ["LEDGER", "Claim", "Outcome", "Record", "find_claims", "verify"]
