"""Lazy training, with a certificate that a two-layer network stays near its linearisation, and the limit of wide networks.

Setting.  f(x) = (alpha/sqrt(m)) sum_j b_j s(<w_j, x>), b_j = +-1 fixed (half of each), w_j uniform unit vectors, only the w_j trained, by
          gradient flow on |y - f|^2/(2n). s_min and s_max are the extreme singular values of the Jacobian at the start, Delta = |y - f_0|,
          and L = alpha m^(-1/2) sup|s''| max|x_i| |X|_op bounds the Lipschitz constant of the Jacobian everywhere.
Result.   docs/theory/lazy_training.md, equations (1)-(4): if 4 L Delta < s_min^2 then for all t

              |y - f_t|^2 <= |y - f_0|^2 exp(-s_min^2 t/(2n)),      |theta_t - theta_0| <= 2 Delta/s_min,
              |theta_t - thetabar_t| <= min(3 Delta/s_min, 28 L s_max^2 Delta^2/s_min^5).

Limit.    m -> infinity at fixed data: the flow is that of the kernel K = alpha^2 E[s'(<w,x>) s'(<w,x'>)] <x,x'>.
Status.   Theorem (Chizat, Oyallon and Bach 2019; Bartlett, Montanari and Rakhlin 2021, theorems 5.1 and 5.4), with constants
          that are derived here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab._core.checks import number, whole
from limitlab._core.cost import Cost
from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Headline, Law, Values, observable, parameter, shared
from limitlab.laws.kernels._lazy_networks import LazyNetworks, half_signs, unit_rows
from limitlab.laws.kernels._wide_networks import waves
from limitlab.models.activations import Activation

__all__ = ["LazyCertificate", "LazyTraining", "lazy_certificate"]

Array = NDArray[Any]


REACH = 20.0  # half the range in which the largest curvature of an activation is searched
RANK = 1e-10  # of s_max; a smaller s_min counts as 0


@dataclass(frozen=True)
class LazyCertificate:
    """Properties of a network that can be proved before it is trained.

    Attributes
    ----------
    sigma_min, sigma_max
        Extreme singular values of the Jacobian at the start.
    lipschitz
        Bound on the Lipschitz constant of the Jacobian, everywhere.
    residual
        The norm Delta = |y - f_0| of labels minus outputs at the start.
    ratio
        The number 4 L Delta / s_min^2, with L = `lipschitz`, Delta = `residual` and s_min = `sigma_min`. The certificate holds if it is
        below 1.
    rate
        The squared residual falls at least like exp(-rate t).
    distance_bound, deviation_bound
        Bounds on the distance from the start and from the linearised network, at all times.
    """

    sigma_min: float
    sigma_max: float
    lipschitz: float
    residual: float
    ratio: float
    rate: float
    distance_bound: float
    deviation_bound: float

    @property
    def holds(self) -> bool:
        """Whether the assumption of the theorem holds."""
        return self.ratio < 1

    @property
    def linear_distance_bound(self) -> float:
        """The bound on the distance of the linearised network from the start, which needs no assumption."""
        return self.residual / self.sigma_min

    @property
    def sharper_deviation_bound(self) -> float:
        """The deviation bound of the proof, with two terms that equation (4) of docs/theory/lazy_training.md combines into one."""
        s = self.sigma_min
        second = (8 + 20 * (self.sigma_max / s) ** 2) * self.lipschitz * self.residual**2 / s**3
        return min(3 * self.residual / s, second)


def lazy_certificate(
    X: ArrayLike, y: ArrayLike, W0: ArrayLike, scale: float, activation: Any, signs: ArrayLike | None = None
) -> LazyCertificate:
    """Return the certificate of a network at its start (eqs. 1-4).

    Parameters
    ----------
    X, y
        Training inputs (rows) and labels.
    W0
        First layer at the start, one neuron per row.
    scale
        Output scale alpha.
    activation
        The activation s, with a bounded second derivative. Unknown derivatives are computed numerically.
    signs
        The signs b_j, by default +1 for the first half of the neurons and -1 for the second.

    Examples
    --------
    >>> X, W = 1.5 * waves(4, 5), waves(4000, 5, 3.0)
    >>> W /= np.linalg.norm(W, axis=1, keepdims=True)
    >>> certificate = lazy_certificate(X, np.cos(1.1 * np.arange(4)), W, 20.0, lambda u: np.tanh(u + 0.5))
    >>> certificate.holds, round(certificate.ratio, 4), round(certificate.distance_bound, 4)
    (True, 0.29, 0.3922)
    """
    inputs, labels, weights = (np.asarray(part, dtype=float) for part in (X, y, W0))
    if inputs.ndim != 2 or labels.shape != (len(inputs),) or weights.ndim != 2 or weights.shape[1] != inputs.shape[1]:
        raise Refused(
            f"X, y and W0 of shapes {inputs.shape}, {labels.shape}, {weights.shape} are not allowed: must be (n, d), (n,), (m, d)"
        )
    number("scale", scale, above=0, infinite=True)
    m, s = len(weights), with_derivatives(activation)
    outer = half_signs(m) if signs is None else np.asarray(signs, dtype=float)
    net = LazyNetworks(inputs, labels, weights, scale, s, outer)
    values = np.linalg.eigvalsh(net.kernel())
    low, high = np.sqrt(np.maximum(values[[0, -1]], 0.0))
    if not low > RANK * high:
        raise Refused(
            f"the Jacobian is rank deficient (singular values from {low:.2g} to {high:.2g}): fewer parameters than samples, or equal inputs"
        )
    lipschitz = scale / np.sqrt(m) * largest_curvature(s) * np.abs(outer).max()
    lipschitz *= np.linalg.norm(inputs, axis=1).max() * np.linalg.norm(inputs, 2)
    delta = float(np.linalg.norm(labels - net.outputs()))
    deviation = min(3 * delta / low, 28 * lipschitz * high**2 * delta**2 / low**5)
    return LazyCertificate(
        *map(
            float,
            (
                low,
                high,
                lipschitz,
                delta,
                4 * lipschitz * delta / low**2,
                low**2 / (2 * len(labels)),
                2 * delta / low,
                deviation,
            ),
        )
    )


def with_derivatives(activation: Any) -> Activation:
    """Return an activation with two derivatives, or raise an error if it has kinks.

    >>> round(float(with_derivatives(lambda u: np.tanh(u + 0.5)).derivative(-0.5)), 10)
    1.0
    """
    s = Activation(activation)
    if s.kinks:
        raise Refused(f"activation = {activation!r} is not allowed: it needs a bounded second derivative, and it has kinks")
    s.second_derivative(0.0)
    return s


@lru_cache(maxsize=256)
def largest_curvature(activation: Activation) -> float:
    """Return sup |s''| over the line, as the largest value on a fine grid with refinement.

    >>> round(largest_curvature(Activation("tanh")) / (4 / (3 * 3**0.5)), 12), largest_curvature(Activation("sin"))
    (1.0, 1.0)
    """
    from scipy.optimize import minimize_scalar

    def curvature(u: Any) -> Any:
        return np.abs(activation.second_derivative(u)) + 0.0 * np.asarray(u)

    grid = np.linspace(-REACH, REACH, 8001)
    values = curvature(grid)
    far = float(curvature(np.array([-10 * REACH, -3 * REACH, 3 * REACH, 10 * REACH])).max())
    if not far <= 1.001 * values.max():
        raise Refused(f"activation = {activation.name!r} is not allowed: it needs a bounded second derivative")
    top = float(grid[values.argmax()])
    width = grid[1] - grid[0]
    options = dict(bounds=(top - width, top + width), method="bounded", options={"xatol": 1e-10})
    refined = minimize_scalar(lambda u: -float(curvature(u)), **options)
    return max(float(values.max()), float(-refined.fun))


# -- the law --------------------------------------------------------------------------------------------------------------


class LazyTraining(Law):
    """How fast does a wide two-layer network fit its data, how far do its weights move, and is it certified to stay lazy?

    Examples
    --------
    >>> law = LazyTraining(scale=2.0, times=(0.0, 1.0, 3.0))
    >>> law.theory().train_error.values.round(4).tolist()
    [1.6224, 0.0241, 0.0008]
    """

    status = "theorem"
    regime = "width -> infinity at fixed data and times"
    assumptions = (
        "an activation with a bounded second derivative that is neither even nor odd about 0",
        "second-layer weights +1 and -1 in equal numbers, not trained; gradient flow",
    )
    references = ("chizat2019lazy", "bartlett2021deep")
    page = "lazy_training"
    observables = {
        "smallest_singular_value": observable(
            "smallest singular value of the Jacobian at the start", r"s_{\min}", scalar=True, least=0
        ),
        "largest_singular_value": observable(
            "largest singular value of the Jacobian at the start", r"s_{\max}", scalar=True, least=0
        ),
        **shared("train_error"),
        "squared_distance": observable("squared distance of the weights from the start", r"|\theta_t-\theta_0|^2", least=0),
        "certified_ratio": observable(
            "4 L Delta / s_min^2, below 1 where the certificate holds", r"4L\Delta/s_{\min}^2", scalar=True, compared=False
        ),
        "distance_bound": observable("certified distance from the start", r"2\Delta/s_{\min}", scalar=True, compared=False),
        "deviation_bound": observable("certified distance from the linearised network", "", scalar=True, compared=False),
        "squared_deviation": observable(
            "squared distance from the linearised network", r"|\theta_t-\bar\theta_t|^2", compared=False
        ),
    }
    simulation = Experiment("width m, an even number", sizes=(40, 80, 160), draws=30)
    # Both starts, two activations, scales and label sizes that are not 1
    points = (
        dict(scale=1.4, label_size=3.0, times=(0.0, 0.6, 2.4), networks=30),
        dict(
            scale=2.5,
            label_size=2.0,
            activation="gelu",
            samples=5,
            dimension=10,
            antisymmetric=True,
            times=(0.05, 0.2, 0.8),
        ),
    )
    headline = Headline(
        "Weights travel a finite distance, however wide",
        x="times",
        over=(0.0, 8.0, 81),
        show=("train_error", "squared_distance"),
        size=160,
        draws=4,
        places=(0.0, 0.5, 1.0, 2.0, 4.0, 8.0),
        sliders=("scale", "label_size"),
    )

    scale: float = parameter(1.0, above=0, scale="log")
    activation: Activation = parameter("softplus")
    samples: int = parameter(6, note="at fixed inputs", least=1)
    dimension: int = parameter(12, note="of the inputs", least=3)
    label_size: float = parameter(1.0, above=0)
    antisymmetric: bool = parameter(
        False, "whether every neuron has a partner with the opposite sign, so that the output starts at 0"
    )
    times: float | tuple[float, ...] = parameter(
        (0.0, 1.0, 4.0), note="of the gradient flow", kind="coordinate", least=0, scale="log"
    )
    networks: int = parameter(20, kind="experiment", least=1)

    @model_validator(mode="after")
    def _curved(self) -> Self:
        largest_curvature(with_derivatives(self.activation))
        return self

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of networks and their flows, whose time per weight grows with the dimension above 100."""
        weights = self.networks * size * float(self.dimension)
        return Cost(10.0 * weights + 1e5, 2e3 * weights * max(1.0, self.dimension / 100) + self.samples**3)

    def limit_cost(self) -> Cost:
        """Return the cost of kernels of all pairs of samples."""
        inputs = float(self.samples * self.dimension)
        return Cost(
            1e5 + 60.0 * self.samples**2 + 5.0 * inputs,
            1e7 + self.samples**3 + 1e4 * self.samples**2 + self.samples * inputs,
        )

    def data(self) -> tuple[Array, Array]:
        """Return inputs with entries of variance 1, and labels. Both are fixed tables of sines and cosines."""
        return np.sqrt(2) * waves(self.samples, self.dimension), self.label_size * np.cos(1.1 * np.arange(self.samples))

    def limits(self, radial: int = 20) -> tuple[Array, Array]:
        """Return the covariance of the outputs at the start and the tangent kernel, at infinite width (eqs. 6-7)."""
        X, _ = self.data()
        s = with_derivatives(self.activation)
        kernel = self.scale**2 * pair_averages(s.derivative, X, radial) * (X @ X.T)
        if self.antisymmetric:
            return np.zeros_like(kernel), kernel
        mean = single_averages(s, X, radial)
        return self.scale**2 * (pair_averages(s, X, radial) - np.outer(mean, mean)), kernel

    def predicted(self, times: Array) -> Values:
        """Return averages of kernel gradient flow over a Gaussian start."""
        y, n = self.data()[1], self.samples
        covariance, kernel = self.limits()
        values, vectors = np.linalg.eigh(kernel)
        energy = (vectors.T @ y) ** 2 + np.einsum(
            "ik,ij,jk->k", vectors, covariance, vectors
        )  # mean squared residuals at the start
        left = np.exp(-values * times[:, None] / n)
        return dict(
            smallest_singular_value=np.sqrt(np.maximum(values[0], 0.0)),
            largest_singular_value=np.sqrt(values[-1]),
            train_error=(left**2 * energy).sum(axis=1) / n,
            squared_distance=((1 - left) ** 2 / values * energy).sum(axis=1),
            accuracy=1e-10,
        )

    def measured(self, draw: Draw, times: Array) -> Values:
        """Train networks by gradient flow, and compute the certificate of each."""
        nets = self.start(draw)
        flow = nets.flow(times)
        values = np.linalg.eigvalsh(nets.kernel())
        certificates = [self.certificate(weights) for weights in nets.weights]
        return dict(
            smallest_singular_value=np.sqrt(np.maximum(values[:, 0], 0.0)).mean(),
            largest_singular_value=np.sqrt(values[:, -1]).mean(),
            train_error=flow.train_error.mean(axis=0),
            squared_distance=flow.squared_distance.mean(axis=0),
            squared_deviation=flow.squared_deviation.mean(axis=0),
            certified_ratio=np.mean([certificate.ratio for certificate in certificates]),
            distance_bound=np.mean([certificate.distance_bound for certificate in certificates]),
            deviation_bound=np.mean([certificate.deviation_bound for certificate in certificates]),
        )

    def start(self, draw: Draw) -> LazyNetworks:
        """Return the networks of a draw, before they are trained."""
        weights = unit_rows(draw.rng, self.networks, draw.size, self.dimension, self.antisymmetric)
        return LazyNetworks(*self.data(), weights, self.scale, with_derivatives(self.activation))

    def certificate(self, weights: Array) -> LazyCertificate:
        """Return the certificate of one network on the law's data."""
        return lazy_certificate(*self.data(), weights, self.scale, self.activation)


# -- averages over a uniform unit vector w of functions of two of its projections <w, x> and <w, y> ------------------


@lru_cache(maxsize=32)
def plane_rule(dimension: int, radial: int = 20, angular: int = 64) -> tuple[Array, Array, Array]:
    """Return points and weights of a rule for two orthogonal components of a uniform unit vector in R^d (d >= 3).

    Averages are sums over the points.

    >>> u, v, weights = plane_rule(5)
    >>> float((weights @ u**2).round(12)), float((weights @ (u**2 * v**2)).round(12)) == round(1 / 35, 12)
    (0.2, True)
    """
    from scipy.special import roots_jacobi

    whole("dimension", dimension, least=3)
    nodes, weights = roots_jacobi(radial, dimension / 2 - 2, 0.0)
    radius, angle = np.sqrt((1 + nodes) / 2), 2 * np.pi * (np.arange(angular) + 0.5) / angular
    u, v = np.outer(radius, np.cos(angle)).ravel(), np.outer(radius, np.sin(angle)).ravel()
    return u, v, np.repeat(weights / weights.sum(), angular) / angular


def pair_averages(f: Callable[[Array], Array], X: Array, radial: int = 20, angular: int = 64) -> Array:
    """Return E f(<w, x_i>) f(<w, x_j>) over uniform unit vectors w, for all pairs of rows of X.

    >>> pair_averages(lambda u: u, np.array([[3.0, 0.0, 0.0], [1.0, 1.0, 0.0]])).round(12).tolist()
    [[3.0, 1.0], [1.0, 0.666666666667]]
    """
    table = np.asarray(X, dtype=float)
    u, v, weights = plane_rule(table.shape[1], radial, angular)
    norms = np.linalg.norm(table, axis=1)
    cosines = np.clip(table @ table.T / np.outer(norms, norms), -1.0, 1.0)
    out = np.empty_like(cosines)
    for i, norm in enumerate(norms):
        cosine = cosines[i, i:, None]
        along = norms[i:, None] * (cosine * u + np.sqrt((1 - cosine) * (1 + cosine)) * v)
        out[i, i:] = out[i:, i] = (f(norm * u) * f(along)) @ weights
    return out


def single_averages(f: Callable[[Array], Array], X: Array, radial: int = 20, angular: int = 64) -> Array:
    """Return E f(<w, x_i>) over uniform unit vectors w, for all rows of X.

    >>> single_averages(np.square, np.array([[3.0, 0.0, 0.0]])).round(12).tolist()
    [3.0]
    """
    u, _, weights = plane_rule(np.shape(X)[1], radial, angular)
    return np.asarray(f(np.linalg.norm(X, axis=1)[:, None] * u) @ weights)
