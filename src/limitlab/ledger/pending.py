"""Claims that have no check yet. They are listed so that the ledger never hides a gap."""

from limitlab.ledger.claims import Claim

_APPROXIMATION = "Approximation"

CLAIMS: tuple[Claim, ...] = (
    Claim("M8", _APPROXIMATION, "On images, convolutional tangent kernels do worse than the trained convolutional network."),
)
