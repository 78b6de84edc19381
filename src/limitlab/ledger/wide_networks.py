"""Claims about wide networks: random features (J9), Gaussian outputs (J10), tangent kernel (J11), drift (J12), kernel flow (J14)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.claims import Outcome, claim
from limitlab.lab.compare import compare
from limitlab.lab.criteria import Number, above, agrees, below, equal, near
from limitlab.lab.measures import SIGMAS, effort, largest, log_slope
from limitlab.laws.kernels.deep import nngp, ntk
from limitlab.laws.kernels.gradient_flow import KernelGradientFlow, kernel_gradient_flow
from limitlab.laws.kernels.lazy import LazyTraining
from limitlab.laws.kernels.lazy_networks import LazyNetworks, unit_rows
from limitlab.laws.kernels.wide_network import WideNetwork
from limitlab.laws.kernels.wide_networks import DeepNetworks, waves
from limitlab.models.activations import Activation
from limitlab.models.data import sphere

Array = NDArray[np.float64]

_AREA = "Kernels and lazy training"
POINTS = waves(4, 3)
"""Inputs at which kernels are compared."""
WEIGHTS = 2_000_000
"""Of networks that are trained side by side."""


# -- J9: kernels of random features -----------------------------------------------------------------------------------------


@claim(
    "J9",
    _AREA,
    "The kernel of random features approaches its mean at rate width^(-1/2).",
    laws=("WideNetwork",),
    figure="kernel-convergence",
)
def random_feature_kernel(quick: bool) -> Outcome:
    """Root mean square error of (1/N) sum_j s(<w_j, x>) s(<w_j, x'>) against the dual, over widths, for two activations."""
    widths, draws = ((25, 100, 400, 1600), 60) if quick else ((25, 100, 400, 1600, 6400), 200)
    slopes, biases = [], []
    for name in ("relu", "tanh"):
        s, limit = Activation(name), nngp(POINTS, layers=2, activation=name)
        errors = []
        for width in widths:
            rng = np.random.default_rng([width, len(name)])
            features = s(rng.standard_normal((draws, width, 3)) @ POINTS.T / math.sqrt(3))
            kernels = features.swapaxes(1, 2) @ features / width
            errors.append(float(np.sqrt(np.mean((kernels - limit) ** 2))))
            spread = kernels.std(axis=0, ddof=1) / math.sqrt(draws)
            biases.append(float(np.max(np.abs(kernels.mean(axis=0) - limit) / spread)))
        slopes.append(log_slope(widths, errors).value)
    return Outcome(
        (
            near("exponent in the width of the error, relu", slopes[0], -0.5, 0.1),
            near("exponent in the width of the error, tanh", slopes[1], -0.5, 0.1),
            below("largest distance of a mean kernel from its limit in standard errors", largest(biases), SIGMAS),
        ),
        {"draws of every width": draws},
    )


# -- J10, J11: the start ------------------------------------------------------------------------------------------------------


@claim(
    "J10",
    _AREA,
    "A wide network at initialisation is a Gaussian process with a recursive covariance.",
    laws=("WideNetwork",),
    figure="kernel-convergence",
)
def gaussian_process(quick: bool) -> Outcome:
    """Comparison of covariance and characteristic function; the excess kurtosis of the outputs falls as 1/width."""
    names = ["output_variance", "output_covariance", "characteristic"]
    points = WideNetwork.check_points()[: 1 if quick else 2]
    comparisons = [compare(point, seeds=None if quick else 150, observables=names, **effort(quick)) for point in points]
    widths, draws = ((4, 8, 16, 32), 20_000) if quick else ((4, 8, 16, 32, 64), 100_000)
    kurtosis = [excess_kurtosis(width, draws) for width in widths]
    return Outcome(
        (
            *(agrees(f"covariance and Gaussianity at check point {i + 1}", one) for i, one in enumerate(comparisons)),
            near(
                "exponent in the width of the excess kurtosis of the outputs", log_slope(widths, kurtosis).value, -1.0, 0.2
            ),
            above(f"excess kurtosis at width {widths[0]}, far from Gaussian", kurtosis[0], 0.5),
        ),
        {f"excess kurtosis at width {widths[-1]}": kurtosis[-1]},
    )


def excess_kurtosis(width: int, draws: int) -> float:
    """E f^4 / (E f^2)^2 - 3 of a three-layer network, over draws of hidden layers; given those, f is Gaussian with a variance V.

    So the excess is 3 Var(V)/(E V)^2, which is measured.
    """
    rng = np.random.default_rng(width)
    variances = []
    for start in range(0, draws, 5000):
        count = min(5000, draws - start)
        nets = DeepNetworks.start(rng, count, (3, width, width, 1), Activation("relu"), 1.0, 0.0)
        hidden = nets.last_hidden(POINTS[:1])
        variances.append((hidden**2).sum(axis=(1, 2)))
    v = np.concatenate(variances)
    return float(3 * v.var() / v.mean() ** 2)


@claim(
    "J11",
    _AREA,
    "The tangent kernel of a wide network approaches a recursive limit.",
    laws=("WideNetwork",),
    figure="kernel-convergence",
)
def tangent_kernel(quick: bool) -> Outcome:
    """Relative error of the kernel of single networks over widths, depths and activations; means against the recursion."""
    widths, draws = ((32, 128, 512), 24) if quick else ((32, 128, 512, 1024), 40)
    slopes: dict[str, float] = {}
    measured: dict[str, Number] = {}
    for layers, name in ((2, "erf"), (3, "relu"), (3, "erf"), (4, "relu")):
        errors = kernel_errors(widths, draws, layers, name)
        slopes[f"{layers} layers of {name}"] = log_slope(widths, errors).value
        measured[f"relative error at width {widths[-1]}, {layers} layers of {name}"] = errors[-1]
    point = WideNetwork.check_points()[1]
    comparison = compare(point, observables=["tangent_own", "tangent_pair"], **effort(quick))
    return Outcome(
        (
            *(near(f"exponent in the width of the error, {what}", value, -0.5, 0.1) for what, value in slopes.items()),
            agrees("mean tangent kernel of four layers", comparison),
        ),
        measured,
    )


def kernel_errors(widths: tuple[int, ...], draws: int, layers: int, activation: str) -> list[float]:
    """Root mean square of |K - Theta| / |Theta| over networks, by width."""
    limit = ntk(POINTS, layers=layers, activation=activation, bias_std=0.3)
    found = []
    for width in widths:
        rng = np.random.default_rng([width, layers])
        nets = [
            DeepNetworks.start(rng, 1, (3, *(width,) * (layers - 1), 1), Activation(activation), 1.0, 0.3)
            for _ in range(draws)
        ]
        gaps = [np.linalg.norm(net.tangent_kernel(POINTS)[0] - limit) / np.linalg.norm(limit) for net in nets]
        found.append(float(np.sqrt(np.mean(np.square(gaps)))))
    return found


# -- J12: drift -----------------------------------------------------------------------------------------------------------------


@claim(
    "J12",
    _AREA,
    "The tangent kernel of a wide network hardly moves during training.",
    laws=("LazyTraining",),
    figure="kernel-drift",
)
def drift(quick: bool) -> Outcome:
    """Relative change of the kernel from start to end of training: about 1/m, while the kernel at the start fluctuates as m^(-1/2)."""
    widths, draws = ((50, 200, 800), 6) if quick else ((50, 200, 800, 3200), 12)
    changes, spreads = lazy_drift(widths, draws)
    # narrow networks of three layers move less than 1/m says: exponents between neighbours are -0.85, -0.91, -0.97 from 32 to 256
    deep_widths, deep_draws = ((64, 256), (200, 40)) if quick else ((64, 128, 256, 512), (800, 600, 400, 200))
    deep = deep_drift(deep_widths, deep_draws)
    moved, scattered, deep_moved = (
        log_slope(sizes, values).value for sizes, values in ((widths, changes), (widths, spreads), (deep_widths, deep))
    )
    return Outcome(
        (
            near("exponent in the width of the kernel's change, two layers", moved, -1.0, 0.2),
            near("exponent in the width of the kernel's change, three layers", deep_moved, -1.0, 0.2 if quick else 0.15),
            near("exponent in the width of the kernel's fluctuation at the start", scattered, -0.5, 0.15),
            below(f"relative change at width {widths[-1]}", changes[-1], 0.05),
        ),
        {
            **{f"relative change of two layers at width {m}": change for m, change in zip(widths, changes, strict=True)},
            **{
                f"width times relative change of three layers at width {m}": m * value
                for m, value in zip(deep_widths, deep, strict=True)
            },
        },
        note="Steeper than the exponent -1/2 of the usual proof; that exponent belongs to the kernel at the start.",
    )


def lazy_drift(widths: tuple[int, ...], draws: int) -> tuple[list[float], list[float]]:
    """Mean relative change of the kernel in training to the end, and relative fluctuation of the kernel at the start, by width."""
    rng = np.random.default_rng(0)
    n, d = 12, 24
    X, y = rng.standard_normal((n, d)), np.sign(rng.standard_normal(n))
    s = Activation("softplus")
    changes, spreads = [], []
    for width in widths:
        nets = LazyNetworks(X, y, unit_rows(np.random.default_rng(width), draws, width, d), 2.0, s)
        kernels = nets.kernel()
        low = float(np.linalg.eigvalsh(kernels.mean(axis=0))[0])
        changes.append(float(nets.flow(np.array([6 * n / low])).kernel_change.mean()))
        centre = kernels.mean(axis=0)
        spread = np.sqrt(((kernels - centre) ** 2).sum(axis=(1, 2)).sum() / (draws - 1))
        spreads.append(float(spread / np.linalg.norm(centre)))
    return changes, spreads


def deep_drift(widths: tuple[int, ...], draws: tuple[int, ...]) -> list[float]:
    """Mean relative change of the kernel of three-layer networks after 60 steps of descent, by width, over so many networks of each."""
    X, y = 1.3 * waves(5, 10), np.cos(1.1 * np.arange(5))
    found = []
    for width, count in zip(widths, draws, strict=True):
        rng, together, gaps = np.random.default_rng(width), max(1, WEIGHTS // width**2), list[float]()
        for start in range(0, count, together):
            some = min(together, count - start)
            nets = DeepNetworks.start(rng, some, (10, width, width, 1), Activation("erf"), 1.2, 0.3)
            before = nets.tangent_kernel(X)
            for _ in range(60):
                nets.descend(X, y, 0.6)
            gaps += list(np.linalg.norm(nets.tangent_kernel(X) - before, axis=(1, 2)) / np.linalg.norm(before, axis=(1, 2)))
        found.append(float(np.mean(gaps)))
    return found


# -- J14: kernel flow is the flow of the linearised network -------------------------------------------------------------------


@claim(
    "J14",
    _AREA,
    "Gradient flow of the linearised network is kernel gradient flow, which wide networks follow in training.",
    laws=("KernelGradientFlow",),
    figure="kernel-flow",
)
def kernel_flow(quick: bool) -> Outcome:
    """The linearised network integrated in its parameters against the closed form; the network itself against it over widths."""
    gap = linearised_gap()
    widths, draws = ((32, 128, 512), 8) if quick else ((32, 128, 512, 1024), 20)
    gaps = [network_gap(width, draws) for width in widths]
    points = KernelGradientFlow.check_points()[: 1 if quick else 2]
    comparisons = [compare(point, seeds=40 if quick else 80, **effort(quick)) for point in points]
    return Outcome(
        (
            below("largest distance of the linearised network's flow, integrated, from the closed form", gap, 1e-7),
            below(
                "exponent in the width of a network's distance from its kernel's flow", log_slope(widths, gaps).value, -0.4
            ),
            equal(
                "comparisons of trained networks with the limit that agree",
                sum(one.passed for one in comparisons),
                len(points),
            ),
        ),
        {f"distance at width {width}": value for width, value in zip(widths, gaps, strict=True)},
    )


def linearised_gap() -> float:
    """Explicit integration of d theta/dt = -J'(f_0 + J (theta - theta_0) - y)/n with a dense Jacobian, against the closed form."""
    from scipy.integrate import solve_ivp

    law = LazyTraining(samples=5, dimension=6)
    X, y = law.data()
    weights = unit_rows(np.random.default_rng(3), 1, 20, 6)[0]
    net = LazyNetworks(X, y, weights, 1.5, Activation("softplus"))
    slopes = net.activation.derivative(X @ weights.T) * net.outer
    jacobian = (slopes[:, :, None] * X[:, None, :]).reshape(5, -1)
    f0, times = net.outputs(), np.array([0.5, 2.0, 8.0])

    def rate(_: float, moved: Array) -> Array:
        return np.asarray(-jacobian.T @ (f0 + jacobian @ moved - y) / 5)

    found = solve_ivp(rate, (0, 8.0), np.zeros(jacobian.shape[1]), "DOP853", times, rtol=1e-11, atol=1e-12)
    closed = kernel_gradient_flow(jacobian @ jacobian.T, y, f0, times).train
    return float(np.abs(f0 + (jacobian @ found.y).T - closed).max())


def network_gap(width: int, draws: int) -> float:
    """Root mean square distance on test inputs of trained networks from the flow of their own kernels at the start."""
    law = KernelGradientFlow.check_points()[0]
    X, y, tests = law.data()
    points = np.vstack([X, tests])
    nets = DeepNetworks.start(
        np.random.default_rng(width), draws, (law.dimension, width, 1), law.activation, law.weight_std, law.bias_std
    )
    kernels, start = nets.tangent_kernel(points), nets.outputs(points)[..., 0]
    n, end = len(X), 18.0
    for _ in range(round(end / law.step)):
        nets.descend(X, y, law.step)
    gaps = []
    for kernel, f0, f in zip(kernels, start, nets.outputs(tests)[..., 0], strict=True):
        flow = kernel_gradient_flow(kernel[:n, :n], y, f0[:n], [end], kernel[n:, :n], f0[n:], step=law.step)
        assert flow.test is not None
        gaps.append(float(np.mean((flow.test[0] - f) ** 2)))
    return math.sqrt(float(np.mean(gaps)))


def lazy_data(seed: int, n: int, d: int) -> tuple[Array, Array]:
    """Gaussian inputs and labels of norm 1 per entry."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), math.sqrt(n) * sphere(rng, 1, n)[0]
