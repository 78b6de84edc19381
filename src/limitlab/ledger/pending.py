"""Claims that have no check yet. They are listed so that the ledger never hides a gap."""

from limitlab.ledger.claims import Claim

_ONLINE = "Online SGD"
_APPROXIMATION = "Approximation"

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "J22",
        _ONLINE,
        "In a Gaussian mixture SGD lives in the outlier eigenspaces of Hessian and gradient matrix, given enough test samples.",
    ),
    Claim(
        "J23",
        _ONLINE,
        "In the XOR mixture the same alignment holds layer by layer; rank-deficient runs show fewer outliers.",
    ),
    Claim("M8", _APPROXIMATION, "On images, convolutional tangent kernels do worse than the trained convolutional network."),
)
