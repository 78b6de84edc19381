"""Claims that have no check yet. They are listed so that the ledger never hides a gap."""

from limitlab.ledger.claims import Claim

_GENERALISATION = "Uniform convergence and real networks"
_KERNELS = "Kernels and lazy training"
_MEAN_FIELD = "Mean field"
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
