"""Claims that have no check yet. They are listed so that the ledger never hides a gap."""

from limitlab.ledger.claims import Claim

_GENERALISATION = "Uniform convergence and real networks"
_KERNELS = "Kernels and lazy training"
_ONLINE = "Online SGD"
_APPROXIMATION = "Approximation"

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "L1",
        _GENERALISATION,
        "Over linear predictors of norm at most rho, empirical and population risk differ by order rho sqrt(d/n).",
    ),
    Claim(
        "L2",
        _GENERALISATION,
        "For two-layer networks of bounded l1 norm gamma the deviation is of order gamma sqrt(d/n), whatever the width.",
    ),
    Claim(
        "L3",
        _GENERALISATION,
        "On images, the test error of a two-layer network peaks where it starts to interpolate and falls again with width.",
    ),
    Claim(
        "L4",
        _GENERALISATION,
        "A network fits random labels; with some labels corrupted it interpolates and still does well on clean data.",
    ),
    Claim("J9", _KERNELS, "The kernel of random features approaches its mean at rate width^(-1/2)."),
    Claim("J10", _KERNELS, "A wide network at initialisation is a Gaussian process with a recursive covariance."),
    Claim("J11", _KERNELS, "The tangent kernel of a wide network approaches a recursive limit."),
    Claim("J12", _KERNELS, "The tangent kernel of a wide network hardly moves during training."),
    Claim(
        "J13",
        _KERNELS,
        "In the lazy regime the train error decays exponentially and the weights stay within explicit bounds.",
    ),
    Claim("J14", _KERNELS, "Gradient flow of the linearised network is kernel gradient flow."),
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
