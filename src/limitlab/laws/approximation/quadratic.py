"""Risk of random features, tangent features and a trained network of N neurons on quadratic targets.

Setting.  x standard Gaussian in R^d, target b_0 + <x, B x>, a model with a free intercept; risks are divided by Var = 2 |B|_F^2.
          T = Tr(B)^2 / (d |B|_F^2) in [0, 1], psi = N/d.
Limit.    d -> infinity at fixed psi and a fixed spectrum of B (docs/theory/approximation.md, section 7).
Result.   random features, s = x^2, w ~ N(0, Gamma):  1 - N <B, Gamma>^2 / (|B|^2 (Tr(Gamma)^2 + N |Gamma|^2)),              (20)
          random features, any s, Gamma = I/d:        1 - T psi/(c + psi),                                                   (21, 22)
          tangent features, s = x^2:                  (1 - psi)_+^2 + psi (1 - psi)_+ T, and an exact mean at every d,       (23, 24)
          trained network, s = x^2:                   1 - (sum of the N largest squares of positive eigenvalues) / |B|^2.    (25)
Status.   Derived (Ghorbani, Mei, Misiakiewicz and Montanari 2019 for (20), (23) and (25)); (24) is exact.
"""

from __future__ import annotations

import math
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab.errors import NotComputable, Refused
from limitlab.laws import CLOSED_FORM, Draw, Experiment, Headline, Law, Mark, Values, observable, parameter
from limitlab.laws.approximation._quadratic_network import one_pass
from limitlab.laws.approximation.exact import overlaps, pseudo_inverse, relu_kernel
from limitlab.models.activations import Activation, hermite, moments
from limitlab.models.data import gaussian, sphere
from limitlab.numerics.ode import integrate
from limitlab.numerics.spectra import marchenko_pastur

__all__ = ["QuadraticTarget"]

Array = NDArray[np.float64]


Model = Literal["rf", "nt", "nn"]

QUADRATIC = ("square", "h2", "he2")
"""Activations that are x^2 up to scale and intercept."""
HERMITE_DEGREES = 80
"""Number of degrees in the covariance of smooth neurons in the experiment; the remaining energy is added to the diagonal."""


# -- the limits, as functions of broadcasting arrays ---------------------------------------------------------------------


def random_feature_risk(width: ArrayLike, eigenvalues: Array, feature_covariance: Array) -> Array:
    """Return the relative risk of N random quadratic features with covariance Gamma, both matrices diagonal, eq. (20).

    >>> float(random_feature_risk(4, np.arange(1, 11) / 5, np.full(10, 0.1)).round(10))
    0.7755102041
    """
    n, gamma = np.asarray(width, dtype=float), feature_covariance
    aligned = float(eigenvalues @ gamma) ** 2 / float(eigenvalues @ eigenvalues)
    return np.asarray(1 - n * aligned / (gamma.sum() ** 2 + n * float(gamma @ gamma)))


def activation_constant(width_ratio: ArrayLike, activation: Activation) -> Array:
    """Return the constant c of the law (21), which is given by (22).

    With mu_N the spectrum of the neurons' overlaps, 1/c = s_2^2 int mu_N(ds) / (s_1^2 s + nu). The constant is 1 for x^2, tends to nu/s_2^2
    for many neurons, and is infinite for an activation without a part of degree 2.

    >>> activation_constant([0.5, 1.0, 2.0], Activation("relu")).round(4).tolist()
    [3.2621, 2.5487, 1.8588]
    """
    psi = np.asarray(width_ratio, dtype=float)
    first, second = hermite(activation, 2)[1:]
    rest = moments(activation).nonlinear ** 2  # nu
    if second == 0:
        return np.full(psi.shape, np.inf)
    if first == 0:
        return np.full(psi.shape, rest / second**2)
    resolvent = marchenko_pastur.stieltjes(-rest / first**2, psi) / first**2
    return np.asarray(1 / (second**2 * resolvent))


def isotropic_risk(width_ratio: ArrayLike, trace_fraction: float, activation: Activation) -> Array:
    """Return the relative risk of random features of any activation and isotropic neurons, eq. (21).

    >>> float(isotropic_risk(2.0, 0.923, Activation("relu")).round(10))
    0.5216151211
    """
    psi = np.asarray(width_ratio, dtype=float)
    return np.asarray(1 - trace_fraction * psi / (activation_constant(psi, activation) + psi))


def tangent_risk(width_ratio: ArrayLike, trace_fraction: float) -> Array:
    """Return the limit of the relative risk of quadratic tangent features, eq. (23).

    >>> tangent_risk([0.5, 1.0], 0.8).round(12).tolist()
    [0.45, 0.0]
    """
    psi = np.asarray(width_ratio, dtype=float)
    left = np.maximum(1 - psi, 0.0)
    return np.asarray(left**2 + psi * left * trace_fraction)


def tangent_mean(width: ArrayLike, dimension: int, trace_fraction: float) -> Array:
    """Return the mean relative risk of quadratic tangent features at finite d, eq. (24).

    It is the mean of |P B P|^2 / |B|^2 over projections P on q = (d - N)_+ random dimensions.

    >>> float(tangent_mean(4, 10, 1.1**2 * 100 / 154).round(10)), float(tangent_risk(0.4, 1.1**2 * 100 / 154).round(10))
    (0.5523809524, 0.5485714286)
    """
    d, q = float(dimension), np.maximum(dimension - np.asarray(width, dtype=float), 0.0)
    pairs = q * (d - q) / (d * (d - 1) * (d + 2))
    return np.asarray(q / d - pairs * d + pairs * trace_fraction * d)


def network_risk(width: ArrayLike, eigenvalues: Array) -> Array:
    """Return the least relative risk of a trained network, whose N neurons fit the N largest positive eigenvalues, eq. (25).

    >>> network_risk([1, 2, 3], np.array([2.0, -1.0, 1.0])).round(12).tolist()
    [0.333333333333, 0.166666666667, 0.166666666667]
    """
    positive = np.sort(np.maximum(eigenvalues, 0.0))[::-1]
    carried = np.concatenate([[0.0], np.cumsum(positive**2)])
    neurons = np.minimum(np.asarray(width, dtype=float), eigenvalues.size).astype(int)
    whole = float(eigenvalues @ eigenvalues)
    return np.asarray(np.maximum(whole - carried[neurons], 0.0) / whole)


# -- the law ------------------------------------------------------------------------------------------------------------


_SPECTRUM = (1.0, 0.9, 0.8, 0.3, 0.25, 0.2, -0.2, -0.4)


class QuadraticTarget(Law):
    """How well do random features, tangent features and a trained network fit a quadratic function with N neurons?

    Examples
    --------
    >>> B = tuple(0.2 * k for k in range(1, 11))
    >>> [round(float(QuadraticTarget(model=m, width=4, eigenvalues=B).theory().relative_risk), 6) for m in ("rf", "nt", "nn")]
    [0.77551, 0.548571, 0.236364]
    """

    status = "derived"
    regime = "d -> infinity with N/d and the spectrum of B fixed; (24) and (25) hold at every d"
    assumptions = ("standard Gaussian inputs", "free intercept, unlimited data", "neurons independent of B")
    references = ("ghorbani2019limitations",)
    page = "approximation"
    observables = {
        "relative_risk": observable("risk over the variance of the target", r"R/\mathrm{Var}f_*", least=0, most=1),
        "relative_risk_exact": observable(
            "mean of the relative risk at this dimension", r"\mathbb{E}R/\mathrm{Var}f_*", rate=math.inf, least=0, most=1
        ),
    }
    simulation = Experiment(
        "dimension d; every eigenvalue has the same share of the dimensions, and the width is proportional to d",
        sizes=(16, 24, 32),
        draws=24,
    )
    # Every model occurs. Variances of the neurons are unequal, eigenvalues have both signs, and relu has parts of degrees 1, 2 and above
    points = (
        dict(model="rf", width=6, eigenvalues=_SPECTRUM, feature_covariance=(0.9, 0.7, 0.5, 0.4, 0.3, 0.3, 0.2, 0.1)),
        dict(model="nt", width=3, eigenvalues=_SPECTRUM),
        dict(model="nn", width=3, eigenvalues=(1.0, 0.9, 0.8, 0.3, 0.25, 0.2, -0.2, -0.85)),
        dict(model="rf", width=12, eigenvalues=(1.0, 0.9, 0.8, 0.5, 0.5, 0.4, 0.2, -0.1), activation="relu"),
    )
    headline = Headline(
        "Trained neurons beat fixed ones at every width",
        x="width",
        over=(1.0, 44.0, 44),
        whole=True,
        show=("relative_risk",),
        curves=("model", ("rf", "nt", "nn")),
        at=dict(replicas=5, eigenvalues=tuple(2 * 0.93**k for k in range(40))),
        size=40,
        draws=2,
        places=(1.0, 5.0, 10.0, 20.0, 30.0, 40.0),
        sliders=("eigenvalues", "feature_covariance"),
        marks=(Mark("x", lambda law: float(len(law.eigenvalues)), "one neuron per eigenvalue"),),
    )

    model: Model = parameter("rf", note="random features, tangent features or a trained network")
    width: int = parameter(4, least=1, scale="log")
    eigenvalues: tuple[float, ...] = parameter(
        (2.0, 1.4, 1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05),
        note="here of the target's matrix B, one for each input dimension",
        symbol=r"\lambda_i(B)",
    )
    feature_covariance: tuple[float, ...] | None = parameter(
        None,
        "variances of the neurons' weights",
        note="rf: one for each dimension; None for equal variances",
        symbol=r"\Gamma",
        least=0,
    )
    activation: Activation = parameter("square")
    replicas: int = parameter(30, note="rf and nt", kind="experiment", least=1)
    step: float = parameter(0.4, note="nn: times the cube of the dimension", kind="experiment", above=0, scale="log")
    training_time: float = parameter(
        2.5, "step times number of samples", note="nn: for a target of largest eigenvalue 1", kind="experiment", above=0
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if not any(self.eigenvalues):
            raise Refused(f"eigenvalues = {self.eigenvalues!r} are not allowed: at least one must differ from 0")
        if len(self.eigenvalues) < 2:
            raise Refused(f"eigenvalues = {self.eigenvalues!r} are not allowed: give at least two, one for each dimension")
        variances = self.feature_covariance
        if variances is not None and (len(variances) != len(self.eigenvalues) or not any(variances)):
            raise Refused(
                f"feature_covariance of {len(variances)} numbers is not allowed: must be as many as eigenvalues "
                f"({len(self.eigenvalues)}), at least 0 and not all 0"
            )
        if variances is not None and self.model != "rf":
            raise Refused(
                f"feature_covariance is not allowed for model = {self.model!r}: use it with random features, model 'rf'"
            )
        if self.activation.name not in QUADRATIC and self.model != "rf":
            raise Refused(
                f"activation = {self.activation.name!r} is not allowed for model = {self.model!r}: use 'square', or model 'rf'"
            )
        if self.activation.name not in QUADRATIC and variances is not None and len(set(variances)) > 1:
            raise Refused(
                f"feature_covariance with activation = {self.activation.name!r} is not allowed: "
                "the limit with unequal variances is known for 'square' only; use equal variances"
            )
        return self

    def observed(self) -> tuple[str, ...]:
        """Return the observables of the model; only tangent features have `relative_risk_exact`.

        This mean over drawn neurons is exact at every dimension.
        """
        return ("relative_risk", "relative_risk_exact") if self.model == "nt" else ("relative_risk",)

    def spectrum(self) -> Array:
        """Return the eigenvalues of the matrix B of the target <x, B x>."""
        return np.asarray(self.eigenvalues, dtype=float)

    def target_variance(self) -> float:
        """Return 2 |B|_F^2, the variance of the target <x, B x>, by which the risks are divided.

        >>> round(QuadraticTarget(eigenvalues=(1.0, 2.0)).target_variance(), 12)
        10.0
        """
        return 2 * float(self.spectrum() @ self.spectrum())

    def trace_fraction(self) -> float:
        """Return Tr(B)^2 / (d |B|_F^2), the largest share of the target <x, B x> that isotropic random features can fit.

        >>> QuadraticTarget(eigenvalues=(1.0, 1.0, 1.0)).trace_fraction()
        1.0
        """
        B = self.spectrum()
        return float(B.sum() ** 2 / (B.size * (B @ B)))

    def activation_constant(self) -> float:
        """Return the constant c of equation (21) of docs/theory/approximation.md at this width.

        >>> round(QuadraticTarget(activation="relu", width=20).activation_constant(), 4)
        1.8588
        """
        return float(activation_constant(self.width / len(self.eigenvalues), self.activation))

    def predicted(self, width: Array) -> Values:
        """Return the limit over a grid of widths, and for tangent features and trained networks also the value at this dimension."""
        B, d = self.spectrum(), len(self.eigenvalues)
        if self.model == "nt":
            return dict(
                relative_risk=tangent_risk(width / d, self.trace_fraction()),
                relative_risk_exact=tangent_mean(width, d, self.trace_fraction()),
                accuracy=CLOSED_FORM,
            )
        if self.model == "nn":
            least = network_risk(width, B)
            return dict(relative_risk=least, relative_risk_exact=least, accuracy=CLOSED_FORM)
        if self.activation.name in QUADRATIC:
            gamma = np.asarray(self.feature_covariance or (1.0,) * d, dtype=float)
            return dict(relative_risk=random_feature_risk(width, B, gamma), accuracy=CLOSED_FORM)
        return dict(relative_risk=isotropic_risk(width / d, self.trace_fraction(), self.activation), accuracy=1e-11)

    def flow(self, weights: ArrayLike, intercept: float, times: ArrayLike, constant: float = 0.0) -> Array:
        """Return the risk of the quadratic network along gradient flow of the population risk, eq. (26).

        The risk is not divided by the variance.

        Parameters
        ----------
        weights
            Neurons at the start, d x N, one per column, in the basis in which B is diagonal.
        intercept
            c at the start.
        times
            Increasing times of at least 0.
        constant
            b_0 of the target.

        Examples
        --------
        >>> law = QuadraticTarget(model="nn", eigenvalues=(3.0, 2.0), width=1)
        >>> law.flow([[1.0], [0.1]], 0.0, [0.0, 10.0], constant=-5.0).round(6).tolist()
        [16.9803, 8.0]
        """
        return population_flow(self.spectrum(), np.asarray(weights, dtype=float), intercept, times, constant)

    # -- the experiment ------------------------------------------------------------------------------------------------

    def realised(self, size: int) -> Self:
        """Return the law in dimension `size`, with the same shares of eigenvalues and the width in proportion."""
        groups = len(self.eigenvalues)
        place = (np.arange(size) * groups) // size

        def stretched(values: tuple[float, ...]) -> tuple[float, ...]:
            return tuple(np.asarray(values)[place].tolist())

        return self.replace(
            eigenvalues=stretched(self.eigenvalues),
            feature_covariance=None if self.feature_covariance is None else stretched(self.feature_covariance),
            width=max(1, round(self.width * size / groups)),
        )

    def measured(self, draw: Draw) -> Values:
        """Return the exact best fit for drawn neurons, or the risk of a network trained by one pass of SGD."""
        law = self.realised(draw.size)
        if law.model == "nn":
            return dict(relative_risk=law.trained(draw.rng))
        once = law.tangent_projection if law.model == "nt" else law.random_projection
        risk = float(np.mean([once(draw.rng) for _ in range(self.replicas)]))
        return dict(relative_risk=risk, relative_risk_exact=risk) if law.model == "nt" else dict(relative_risk=risk)

    def random_projection(self, rng: np.random.Generator) -> float:
        """Return the share of the target that random features leave unexplained, for one draw of neurons (eq. 27)."""
        B, d, count = self.spectrum(), len(self.eigenvalues), self.width
        if self.activation.name in QUADRATIC:
            variances = np.asarray(self.feature_covariance or (1.0,) * d, dtype=float)
            w = gaussian(rng, count, d, eigenvalues=variances / variances.sum())
            covariance, second = 2 * (w @ w.T) ** 2, math.sqrt(2)
        else:
            w = sphere(rng, count, d)
            covariance, second = neuron_covariance(overlaps(w), self.activation), float(hermite(self.activation, 2)[2])
        v = math.sqrt(2) * second * (w**2 @ B)
        return float(1 - v @ pseudo_inverse(covariance) @ v / self.target_variance())

    def tangent_projection(self, rng: np.random.Generator) -> float:
        """Return the share of the target that tangent features leave unexplained, for one draw of neurons (eq. 28)."""
        B, d = self.spectrum(), len(self.eigenvalues)
        if self.width >= d:
            return 0.0
        free = np.linalg.qr(rng.standard_normal((d, d)))[0][:, self.width :]
        return float(((free.T * B @ free) ** 2).sum() / (B @ B))

    def trained(self, rng: np.random.Generator) -> float:
        """Return the relative population risk after one pass of SGD on the target, scaled so that the largest |eigenvalue| is 1."""
        d, step = len(self.eigenvalues), self.step / len(self.eigenvalues) ** 3
        B = self.spectrum() / np.abs(self.spectrum()).max()
        start = rng.standard_normal((self.width, d)) * math.sqrt(0.5 / d)
        balanced = -float((start**2).sum())  # for the centred target, the mean residual is 0 at this intercept
        steps = round(self.training_time / step)
        w, c = one_pass(rng, B, start, balanced, -float(B.sum()), step=step, steps=steps, intercept_pace=d)
        if not np.isfinite(w).all():
            raise NotComputable(f"SGD diverges at step = {self.step:g}: use a smaller step or a larger size")
        return population_risk(B, w.T, c, -float(B.sum())) / (2 * float(B @ B))


def neuron_covariance(rho: Array, activation: Activation) -> Array:
    """Return Cov(s(<w, x>), s(<w', x>)) for Gaussian inputs and unit vectors of overlap rho.

    The result is a closed form for ReLU and a Hermite series for other activations.

    >>> rho = np.array([[1.0, 0.2], [0.2, 1.0]])
    >>> bool(np.allclose(neuron_covariance(rho, Activation("h3")), rho**3))
    True
    """
    if activation.name == "relu":
        return relu_kernel(rho) - 1 / (2 * np.pi)
    squares = hermite(activation, HERMITE_DEGREES)[1:] ** 2
    total = moments(activation).linear ** 2 + moments(activation).nonlinear ** 2
    series = np.polynomial.polynomial.polyval(rho, np.concatenate([[0.0], squares]))
    return np.asarray(series + max(total - squares.sum(), 0.0) * np.eye(len(rho)))


# -- Gradient flow of the network of quadratic neurons on the population risk (docs/theory/approximation.md, eq. 26) -


def population_risk(eigenvalues: Array, weights: Array, intercept: float, constant: float) -> float:
    """Return E (f_* - f)^2 for Gaussian inputs.

    >>> population_risk(np.array([1.0, 0.0]), np.array([[1.0], [0.0]]), 0.0, 0.5)
    0.25
    """
    error = np.diag(eigenvalues) - weights @ weights.T
    return float(2 * (error**2).sum() + (np.trace(error) + constant - intercept) ** 2)


def population_flow(eigenvalues: Array, weights: Array, intercept: float, times: ArrayLike, constant: float) -> Array:
    """Return the risk at increasing times along the flow, from `weights` (d x N) and `intercept`.

    >>> population_flow(np.array([1.0, 0.5]), np.array([[0.5], [0.1]]), 0.0, [0.0, 8.0], -1.5).round(6).tolist()
    [1.6828, 0.5]
    """
    if weights.ndim != 2 or weights.shape[0] != eigenvalues.size:
        raise Refused(
            f"weights of shape {weights.shape} are not allowed: must have {eigenvalues.size} rows, one per dimension"
        )
    grid = np.atleast_1d(np.asarray(times, dtype=float))
    if not (np.isfinite(grid).all() and (grid >= 0).all() and (np.diff(grid) > 0).all()):
        raise Refused(f"times = {times!r} are not allowed: must be increasing, finite and at least 0")
    shape, B = weights.shape, np.diag(eigenvalues)

    def velocity(_: float, state: Array) -> Array:
        w = state[:-1].reshape(shape)
        error = B - w @ w.T
        mean = np.trace(error) + constant - state[-1]
        return np.append(8 * error @ w + 4 * mean * w, 2 * mean)

    path = integrate(velocity, np.append(weights, intercept), grid, tolerance=1e-10)
    return np.array([population_risk(eigenvalues, row[:-1].reshape(shape), float(row[-1]), constant) for row in path.states])
