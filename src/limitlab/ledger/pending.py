"""Claims that have no check yet. They are listed so that the ledger never hides a gap."""

from limitlab.ledger.claims import Claim

_ONLINE = "Online SGD"
_MEAN_FIELD = "Mean field"
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
    Claim(
        "M1",
        _MEAN_FIELD,
        "Particle gradient flow follows the mean-field PDE with an error of order N^(-1/2) on bounded times.",
    ),
    Claim("M2", _MEAN_FIELD, "Two centred Gaussians: SGD and the PDE have the same risk curves and radius distributions."),
    Claim("M3", _MEAN_FIELD, "Noisy dynamics decreases the free energy towards its unique Boltzmann fixed point."),
    Claim(
        "M4",
        _MEAN_FIELD,
        "Scaling the output by alpha leads from mean field to the tangent kernel, whose change falls as 1/alpha (1/alpha^2 if symmetric).",
    ),
    Claim("M5", _MEAN_FIELD, "The residuals are driven by the kernel of the current particle measure."),
    Claim(
        "M6",
        _APPROXIMATION,
        "Random features with N between d^l and d^(l+1) fit exactly the polynomials of degree l; tangent features one degree more.",
    ),
    Claim(
        "M7",
        _APPROXIMATION,
        "A degree-k polynomial of one direction costs tangent features d^(k-1) neurons and a network a number that does not grow.",
    ),
    Claim("M8", _APPROXIMATION, "On images, convolutional tangent kernels do worse than the trained convolutional network."),
    Claim(
        "T1",
        _APPROXIMATION,
        "Quadratic targets: exact risks of random features, tangent features and networks at N/d = psi.",
    ),
    Claim("T2", _APPROXIMATION, "One-pass SGD on the quadratic network reaches the optimum."),
    Claim("T3", _APPROXIMATION, "ReLU networks show the same ordering of random features, tangent features and networks."),
)
