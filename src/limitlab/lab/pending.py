"""Claims that have no check yet. They are listed so that the ledger never hides a gap."""

from limitlab.lab.claims import Claim

CLAIMS: tuple[Claim, ...] = ()
