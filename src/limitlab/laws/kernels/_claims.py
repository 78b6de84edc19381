"""Claims about kernels of wide networks and lazy training (J9 to J14, J45, M8, M14)."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab._core.draws import mean_and_error
from limitlab.lab.check import SIGMAS, Check, Slope, largest, log_slope, sigmas, smallest
from limitlab.lab.claims import claim
from limitlab.laws.kernels._lazy_networks import Flow, LazyNetworks, unit_rows
from limitlab.laws.kernels._wide_networks import DeepNetworks, residual_tangent_kernel, spectral_norms, waves
from limitlab.laws.kernels.convolutional import convolutional
from limitlab.laws.kernels.deep import nngp, ntk
from limitlab.laws.kernels.gradient_flow import KernelGradientFlow, kernel_gradient_flow
from limitlab.laws.kernels.layers.network import Network
from limitlab.laws.kernels.lazy import LazyCertificate, LazyTraining, lazy_certificate
from limitlab.laws.kernels.residual import resnet_ntk
from limitlab.laws.kernels.wide_network import WideNetwork
from limitlab.models.activations import Activation
from limitlab.models.data import sphere
from limitlab.models.datasets import Task, pooled_digits, row_task
from limitlab.models.optimisers import trained_by_adam

# -- wide networks ------------------------------------------------------------------------------------------------

Array = NDArray[np.float64]

_AREA = "Kernels and lazy training"

POINTS = waves(4, 3)
"""Inputs at which kernels are compared."""

WEIGHTS = 2_000_000
"""Of networks that are trained side by side."""


@claim("J9", _AREA, WideNetwork, figure="kernel-convergence", items=("J-18",))
def random_feature_kernel(check: Check) -> None:
    """The kernel of random features approaches its mean at rate width^(-1/2).

    Measured: the root mean square error of (1/N) sum_j s(<w_j, x>) s(<w_j, x'>) against the dual, over widths, for two activations.
    """
    widths, draws = ((25, 100, 400, 1600), 60) if check.quick else ((25, 100, 400, 1600, 6400), 200)
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
    check.near("exponent in the width of the error, relu", slopes[0], -0.5, 0.1)
    check.near("exponent in the width of the error, tanh", slopes[1], -0.5, 0.1)
    check.below("largest distance of a mean kernel from its limit in standard errors", largest(biases), SIGMAS)
    check.show("draws of every width", draws)


@claim("J10", _AREA, WideNetwork, figure="kernel-convergence", items=("J-19",))
def gaussian_process(check: Check) -> None:
    """A wide network at initialisation is a Gaussian process with a recursive covariance.

    Compared: covariance and characteristic function with the limit, also extrapolated from two widths, and the excess kurtosis of the
    outputs of a ReLU network with its value 3 ((1 + 5/m)^2 - 1) at two hidden layers of width m, which falls as 1/m.
    """
    names = ["output_variance", "output_covariance", "characteristic"]
    check.agree(
        "covariance and Gaussianity",
        WideNetwork,
        points=1 if check.quick else 2,
        seeds=None if check.quick else 150,
        observables=names,
    )
    for number, law in enumerate(WideNetwork.check_points(), 1):
        draws = DRAWS[number] * (1 if check.quick else 4)
        check.extrapolated(f"covariance at check point {number}", law, (32, 64), draws, names[:2])
    widths, draws = ((8, 16, 32), 20_000) if check.quick else ((8, 16, 32, 64), 100_000)
    for width in widths:
        ratio, error = excess_kurtosis(width, draws) / (3 * ((1 + 5 / width) ** 2 - 1))
        check.near(f"excess kurtosis of the outputs at width {width} over its value", ratio, 1.0, SIGMAS * error)
        check.show(f"standard error of this ratio at width {width}", error)


def excess_kurtosis(width: int, draws: int) -> Array:
    """Return E f^4 / (E f^2)^2 - 3 for the output f of a random three-layer network, and its standard error.

    Conditional on the hidden layers, f is Gaussian with a variance V. The excess is therefore 3 Var(V)/(E V)^2, which is estimated from
    draws of the hidden layers.
    """
    rng = np.random.default_rng(width)
    variances = []
    for start in range(0, draws, 5000):
        count = min(5000, draws - start)
        nets = DeepNetworks.start(rng, count, (3, width, width, 1), Activation("relu"), 1.0, 0.0)
        hidden = nets.last_hidden(POINTS[:1])
        variances.append((hidden**2).sum(axis=(1, 2)))
    v = np.concatenate(variances)
    parts = v.reshape(20, -1)
    spread = 3 * parts.var(axis=1) / parts.mean(axis=1) ** 2
    return np.array([3 * v.var() / v.mean() ** 2, spread.std(ddof=1) / math.sqrt(len(parts))])


DRAWS = {1: 140, 2: 70}
"""Number of draws, of 60 networks each, at the check points of `WideNetwork`. The standard error of means is then below 1 %."""


@claim("J11", _AREA, WideNetwork, figure="kernel-convergence", quick_decides=False, items=("J-20",))
def tangent_kernel(check: Check) -> None:
    """The tangent kernel of a wide network approaches a recursive limit.

    The limit of the kernel of several outputs is this kernel times the identity over the outputs.

    Measured: the relative error of the kernel of single networks over widths, depths and activations, and means against the recursion,
    also extrapolated from two widths. The blocks between different outputs have mean 0, and their root mean square falls as
    width^(-1/2). For two layers of ReLU its value at one input is w^2 Sigma^1 / sqrt(2 m) at every width m.
    """
    widths, draws = ((32, 128, 512), 24) if check.quick else ((32, 128, 512, 1024), 40)
    slopes: dict[str, float] = {}
    for layers, name in ((2, "erf"), (3, "relu"), (3, "erf"), (4, "relu")):
        errors = kernel_errors(widths, draws, layers, name)
        slopes[f"{layers} layers of {name}"] = log_slope(widths, errors).value
        check.show(f"relative error at width {widths[-1]}, {layers} layers of {name}", errors[-1])
    for what, value in slopes.items():
        check.near(f"exponent in the width of the error, {what}", value, -0.5, 0.1)
    names, points = ["tangent_own", "tangent_pair"], WideNetwork.check_points()
    check.agree("mean tangent kernel of four layers", points[1], observables=names)
    for number, law in enumerate(points, 1):
        draws = DRAWS[number] * (1 if check.quick else 4)
        check.extrapolated(f"mean tangent kernel at check point {number}", law, (32, 64), draws, names)
    cross_widths = (32, 128, 512)
    cross = [cross_blocks(width, 30 if check.quick else 100) for width in cross_widths]
    fit = log_slope(cross_widths, [block.share for block in cross], [block.error for block in cross])
    check.near(
        "exponent in the width of the blocks between different outputs over the other blocks, three layers of erf",
        fit.value,
        -0.5,
        SIGMAS * fit.error,
    )
    check.below("their largest mean in standard errors", largest(block.bias for block in cross), SIGMAS)
    check.show("standard error of this exponent", fit.error)
    check.show(f"these blocks over the other blocks at width {cross_widths[-1]}", cross[-1].share)
    for width in (32, 128):
        ratio, error = cross_ratio(width, 500 if check.quick else 2000)
        check.near(
            f"root mean square of these blocks over its value, two layers of relu, width {width}", ratio, 1.0, SIGMAS * error
        )
        check.show(f"standard error of this ratio at width {width}", error)


class CrossBlocks(NamedTuple):
    """Blocks of tangent kernels between different outputs."""

    share: float  # root mean square of their norms over that of the blocks of a single output
    error: float  # standard error of this share
    bias: float  # largest mean entry in standard errors


def cross_blocks(width: int, draws: int, outputs: int = 8) -> CrossBlocks:
    """Return the size and the mean of the blocks between different outputs, of three-layer networks."""
    across, squares, own = [], [], []
    for draw in range(draws):
        rng = np.random.default_rng([width, draw, 4])
        net = DeepNetworks.start(rng, 1, (3, width, width, outputs), Activation("erf"), 1.0, 0.3)
        # pairs of outputs without a common member, so that the entries of different pairs are uncorrelated
        blocks = np.array([net.tangent_kernel(POINTS, a, a + 1)[0] for a in range(0, outputs, 2)])
        across.append(blocks.mean(axis=0))
        squares.append((blocks**2).mean())
        own.append((net.tangent_kernel(POINTS)[0] ** 2).mean())
    square, error = (float(value) for value in mean_and_error(np.array(squares)))
    share = math.sqrt(square / float(np.mean(own)))
    return CrossBlocks(share, share * error / (2 * square), sigmas(across, 0.0))


def cross_ratio(width: int, draws: int, outputs: int = 12) -> tuple[float, float]:
    """Return the root mean square of K_ab(x, x) for a != b over w^2 Sigma^1 / sqrt(2 m), and its standard error.

    In two layers of ReLU, K_ab(x, x) is w^2 Sigma^1 times the mean of v_ja v_jb, over all m neurons, where v_ja is the last weight of
    a neuron that is active at x and 0 for other neurons.
    """
    std, bias, x = 1.2, 0.3, POINTS[:1]
    nets = DeepNetworks.start(np.random.default_rng([width, 5]), draws, (3, width, outputs), Activation("relu"), std, bias)
    squares = np.mean([nets.tangent_kernel(x, a, a + 1)[:, 0, 0] ** 2 for a in range(outputs - 1)], axis=0)
    value = std**4 * float(nngp(x, layers=1, weight_std=std, bias_std=bias)[0, 0]) ** 2 / (2 * width)
    mean, error = (float(part) for part in mean_and_error(squares / value))
    return math.sqrt(mean), error / (2 * math.sqrt(mean))


def kernel_errors(widths: tuple[int, ...], draws: int, layers: int, activation: str) -> list[float]:
    """Return the relative root mean square distance of the tangent kernels of networks from their limit, by width."""
    limit = ntk(POINTS, layers=layers, activation=activation, bias_std=0.3)
    errors = []
    for width in widths:
        rng = np.random.default_rng([width, layers])
        nets = [
            DeepNetworks.start(rng, 1, (3, *(width,) * (layers - 1), 1), Activation(activation), 1.0, 0.3)
            for _ in range(draws)
        ]
        gaps = [np.linalg.norm(net.tangent_kernel(POINTS)[0] - limit) / np.linalg.norm(limit) for net in nets]
        errors.append(float(np.sqrt(np.mean(np.square(gaps)))))
    return errors


@claim("J12", _AREA, LazyTraining, figure="kernel-drift", quick_decides=False, items=("J-21", "J-22", "T-2"))
def drift(check: Check) -> None:
    """The tangent kernel of a wide network stays near its limit at all times of training, because the weights move little.

    Measured: the relative change of the kernel from start to end of training, about 1/m, and its fluctuation at the start, m^(-1/2).
    For three layers the largest values over the time of training: the change of the kernel, its distance from the limit, which is
    m^(-1/2), and the movement of the hidden and of the last weight matrix in operator norm over sqrt(m), which is m^(-1/2).
    """
    widths, draws = ((50, 200, 800), 12) if check.quick else ((50, 200, 800, 3200), 24)
    changes, spreads = lazy_drift(widths, draws)
    # narrow networks of three layers change less than 1/m: local exponents are -0.85, -0.91, -0.97 from width 32 to 256
    deep_widths, deep_draws = ((64, 256), (200, 40)) if check.quick else ((64, 128, 256, 512), (800, 600, 400, 160))
    deep = [deep_drift(width, count) for width, count in zip(deep_widths, deep_draws, strict=True)]
    deep_changes = [drift.change for drift in deep]
    moved, scattered, deep_moved = (
        log_slope(sizes, values).value
        for sizes, values in ((widths, changes), (widths, spreads), (deep_widths, deep_changes))
    )
    check.near("exponent in the width of the kernel's change, two layers", moved, -1.0, 0.2)
    if not check.quick:
        # between 800 and 3200 the correction 1/m changes the exponent by 0.01, and 24 networks have a standard error of 0.01
        last = log_slope(widths[-2:], changes[-2:]).value
        check.near("exponent of this change between the two largest widths", last, -1.0, 0.03)
    check.near(
        "exponent in the width of the kernel's largest change over time, three layers",
        deep_moved,
        -1.0,
        0.2 if check.quick else 0.15,
    )
    check.near("exponent in the width of the kernel's fluctuation at the start", scattered, -0.5, 0.15)
    check.below(f"relative change at width {widths[-1]}", changes[-1], 0.05)
    for what, values, errors, correction in (
        ("the kernel's largest distance over time from the limit", "distance", "distance_error", 0.05),
        ("the hidden weights' largest movement over time", "hidden", "hidden_error", 0.02),
        ("the last weights' largest movement over time", "last", "last_error", 0.02),
    ):
        fit = log_slope(deep_widths, [getattr(row, values) for row in deep], [getattr(row, errors) for row in deep])
        check.near(f"exponent in the width of {what}, three layers", fit.value, -0.5, correction + SIGMAS * fit.error)
        check.show(f"standard error of the exponent of {what}", fit.error)
    for m, change in zip(widths, changes, strict=True):
        check.show(f"relative change of two layers at width {m}", change)
    for m, row in zip(deep_widths, deep, strict=True):
        check.show(f"width times largest relative change of three layers at width {m}", m * row.change)
        check.show(f"largest movement of the hidden weights, operator norm over sqrt(m), at width {m}", row.hidden)
        check.show(f"largest movement of the last weights, operator norm over sqrt(m), at width {m}", row.last)
    check.note(
        "The change of the kernel falls faster with the width than its fluctuation at the start, which has the exponent -1/2."
    )


def lazy_drift(widths: tuple[int, ...], draws: int) -> tuple[list[float], list[float]]:
    """Return the mean relative change of the kernel in training to the end, and its fluctuation at the start, by width.

    The start is antisymmetric, so that the output at the start, which has another size in every network, does not contribute.
    """
    rng = np.random.default_rng(0)
    n, d = 6, 32
    X, y = rng.standard_normal((n, d)), np.sign(rng.standard_normal(n))
    s = Activation("softplus")
    changes, spreads = [], []
    for width in widths:
        nets = LazyNetworks(X, y, unit_rows(np.random.default_rng(width), draws, width, d, True), 2.0, s)
        kernels = nets.kernel()
        low = float(np.linalg.eigvalsh(kernels.mean(axis=0))[0])
        changes.append(float(nets.flow(np.array([6 * n / low])).kernel_change.mean()))
        centre = kernels.mean(axis=0)
        spread = np.sqrt(((kernels - centre) ** 2).sum(axis=(1, 2)).sum() / (draws - 1))
        spreads.append(float(spread / np.linalg.norm(centre)))
    return changes, spreads


class DeepDrift(NamedTuple):
    """Largest values over the time of training, as means over networks with their standard errors."""

    change: float  # |K_t - K_0| / |K_0|
    distance: float  # root mean square of |K_t - Theta| / |Theta|
    distance_error: float
    hidden: float  # |W^1_t - W^1_0| / sqrt(m) in operator norm
    hidden_error: float
    last: float  # |W^2_t - W^2_0| / sqrt(m)
    last_error: float


TIMES = (1, 2, 4, 8, 16, 30, 60)
"""Steps of training after which `deep_drift` computes the kernel, and after every second of them the movement of the weights."""


def deep_drift(width: int, draws: int) -> DeepDrift:
    """Return the largest changes of three-layer networks over 60 steps of training."""
    X, y = 1.3 * waves(5, 10), np.cos(1.1 * np.arange(5))
    limit = ntk(X, layers=3, activation="erf", weight_std=1.2, bias_std=0.3)
    rng, together, rows = np.random.default_rng(width), max(1, WEIGHTS // width**2), list[Array]()
    for start in range(0, draws, together):
        some = min(together, draws - start)
        nets = DeepNetworks.start(rng, some, (10, width, width, 1), Activation("erf"), 1.2, 0.3)
        before, weights = nets.tangent_kernel(X), [part.copy() for part in nets.weights[1:]]
        largest_values = np.zeros((4, some))
        for step in range(1, TIMES[-1] + 1):
            nets.descend(X, y, 0.6)
            if step not in TIMES:
                continue
            kernel = nets.tangent_kernel(X)
            change = np.linalg.norm(kernel - before, axis=(1, 2)) / np.linalg.norm(before, axis=(1, 2))
            distance = np.linalg.norm(kernel - limit, axis=(1, 2)) / np.linalg.norm(limit)
            movements = np.zeros((2, some))
            if TIMES.index(step) % 2 == 0:
                movements = np.array(
                    [spectral_norms(now - first) for now, first in zip(nets.weights[1:], weights, strict=True)]
                ) / math.sqrt(width)
            largest_values = np.maximum(largest_values, [change, distance, *movements])
        rows.append(largest_values)
    values = np.concatenate(rows, axis=1)
    means, errors = mean_and_error(values.T)
    square, square_error = mean_and_error(values[1] ** 2)
    root = math.sqrt(float(square))
    return DeepDrift(
        float(means[0]), root, float(square_error) / (2 * root), float(means[2]), float(errors[2]), float(means[3]),
        float(errors[3]),
    )  # fmt: skip


@claim("J14", _AREA, KernelGradientFlow, figure="kernel-flow", quick_decides=False, items=("L-13", "J-17", "M-11"))
def kernel_flow(check: Check) -> None:
    """Gradient flow of the linearised network is kernel gradient flow, which wide networks follow in training.

    Compared: the linearised network integrated in its parameters with the closed form, and the network itself with it over widths. The
    means of trained networks, extrapolated from two widths, agree with the flow of the limit kernel.
    """
    gap = linearised_gap()
    check.below("largest distance of the linearised network's flow, integrated, from the closed form", gap, 1e-7)
    widths, draws = ((32, 128, 512), 8) if check.quick else ((32, 128, 512, 1024), 20)
    gaps = [network_gap(width, draws) for width in widths]
    check.below("exponent in the width of a network's distance from its kernel's flow", log_slope(widths, gaps).value, -0.4)
    points = KernelGradientFlow.check_points()[: 1 if check.quick else 2]
    comparisons = [check.compare(point, seeds=40 if check.quick else 80) for point in points]
    check.equal(
        "comparisons of trained networks with the limit that agree",
        sum(comparison.passed for comparison in comparisons),
        len(points),
    )
    if not check.quick:
        check.extrapolated("trained networks at check point 1", points[0], (32, 64), 250, ["train_error", "test_square"])
    for width, value in zip(widths, gaps, strict=True):
        check.show(f"distance at width {width}", value)


def linearised_gap() -> float:
    """Return the gap between explicit integration of d theta/dt = -J'(f_0 + J (theta - theta_0) - y)/n and the closed form."""
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

    solution = solve_ivp(rate, (0, 8.0), np.zeros(jacobian.shape[1]), "DOP853", times, rtol=1e-11, atol=1e-12)
    closed = kernel_gradient_flow(jacobian @ jacobian.T, y, f0, times).train
    return float(np.abs(f0 + (jacobian @ solution.y).T - closed).max())


def network_gap(width: int, draws: int) -> float:
    """Return the root mean square distance on test inputs of trained networks from the flow of their own kernels at the start."""
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
    """Return Gaussian inputs, and labels of norm 1 per entry."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), math.sqrt(n) * sphere(rng, 1, n)[0]


# -- lazy ---------------------------------------------------------------------------------------------------------

ACTIVATIONS = ("softplus", "gelu", "sigmoid")


def trained(
    seed: int, n: int, d: int, width: int, scale: float, name: str, antisymmetric: bool
) -> tuple[LazyCertificate, Flow, Array]:
    """Return the certificate of one network, its flow, and the times of the flow."""
    X, y = lazy_data(seed, n, d)
    weights = unit_rows(np.random.default_rng([seed, width]), 1, width, d, antisymmetric)
    certificate = lazy_certificate(X, y, weights[0], scale, name)
    times = np.array([0.3, 1.0, 3.0]) * n / certificate.sigma_min**2
    return certificate, LazyNetworks(X, y, weights, scale, Activation(name)).flow(times), times


def used_up(certificate: LazyCertificate, flow: Flow, times: Array, n: int) -> dict[str, float]:
    """Return measured values over certified bounds for every inequality, which are at most 1 if it holds."""
    allowed = certificate.residual**2 / n * np.exp(-certificate.rate * times)
    bounds = (
        (flow.squared_distance, certificate.distance_bound),
        (flow.linear_squared_distance, certificate.linear_distance_bound),
        (flow.squared_deviation, certificate.deviation_bound),
    )
    return {
        "train error": float((flow.train_error[0] / allowed).max()),
        **{
            name: float(np.sqrt(squares.max())) / bound
            for name, (squares, bound) in zip(("distance", "linear distance", "deviation"), bounds, strict=True)
        },
    }


WIDE, WIDE_QUICK = (640, 2560), (320, 1280)
LARGE, LARGE_QUICK = (32.0, 128.0, 512.0), (128.0, 512.0, 2048.0)
"""Widths and output scales. In most of these networks the second branch of the bound on the deviation is the smaller branch."""


@claim("J13", "Kernels and lazy training", LazyTraining, figure="lazy-bounds", items=("J-23", "J-24"))
def certificate_holds(check: Check) -> None:
    """In the lazy regime the train error decays exponentially and the weights stay within explicit bounds.

    Checked: every inequality on a sweep of networks over width, scale, activation and start, and the scalings of the distances. At large
    scales the second branch of the bound on the deviation is the smaller branch, and the deviation is a constant share of it. For labels
    along the weakest direction of the Jacobian the limits of large scales are known: the residual decays at four times the certified
    rate, the distance tends to half of its bound, and that of the linearised network to its whole bound.
    """
    n, d = 8, 16
    widths, scales, seeds = (40, 160, 640), (0.5, 2.0, 8.0), range(1 if check.quick else 4)
    shares: dict[str, list[float]] = {}
    certified = count = 0
    for seed in seeds:
        for width in widths:
            for scale in scales:
                for name in ACTIVATIONS:
                    for antisymmetric in (False, True):
                        certificate, flow, times = trained(seed, n, d, width, scale, name, antisymmetric)
                        for what, share in used_up(certificate, flow, times, n).items():
                            shares.setdefault(what, []).append(share)
                        certified += certificate.holds
                        count += 1
    check.at_least("networks on which every inequality was tested", count, 50)
    for what, values in shares.items():
        check.at_most(f"largest share of the bound on {what} that was used up", largest(values), 1.0)
    check.above("networks for which the assumption of the theorem holds", certified, 0)
    wide, large = (WIDE_QUICK, LARGE_QUICK) if check.quick else (WIDE, LARGE)
    second, largest_share, variation, in_width = second_branch(n, d, wide, large, range(4 if check.quick else 6))
    check.at_least("networks in which the second branch of the bound on the deviation is the smaller one", second, 20)
    check.at_most("largest share of this branch that was used up", largest_share, 1.0)
    check.below(
        f"relative variation of the deviation over this branch for alpha from {large[0]:g} to {large[-1]:g}", variation, 0.01
    )
    # L falls as m^(-1/2) and the other terms of the branch tend to constants
    check.near("exponent in the width of the deviation at large scales", in_width.value, -0.5, 5 * in_width.error)
    if not check.quick:
        check.below("standard error of this exponent", in_width.error, 0.02)
    single = lazy_certificate(
        np.ones((1, d)), np.ones(1), unit_rows(np.random.default_rng(0), 1, 640, d, True)[0], 512.0, "gelu"
    )
    constants = single.deviation_bound / single.sharper_deviation_bound
    check.near(
        "second branch over the sum of the two terms of its proof, for one sample (s_min = s_max)", constants, 1.0, 1e-9
    )
    rate, distance, linear = weakest_labels(n, d, 160, 512.0)
    # the corrections are of order 1/alpha, and the flow ends when e^-12 of the residual is left
    check.near_relative("decay rate over the certified rate, labels along the weakest direction", rate, 4.0, 0.01)
    check.near_relative("distance over its bound, labels along the weakest direction", distance, 0.5, 0.01)
    check.near_relative("distance of the linearised network over its bound, the same labels", linear, 1.0, 0.001)
    alphas = (1.0, 4.0, 16.0)
    by_scale = [trained(0, n, d, 400, alpha, "softplus", True) for alpha in alphas]
    distances = log_slope(alphas, [float(np.sqrt(flow.squared_distance[0, -1])) for _, flow, _ in by_scale]).value
    check.near("exponent in alpha of the distance, antisymmetric start", distances, -1.0, 0.02)
    deviation = log_slope(alphas, [float(np.sqrt(flow.squared_deviation[0, -1])) for _, flow, _ in by_scale]).value
    check.near("exponent in alpha of the deviation, antisymmetric start", deviation, -2.0, 0.04)
    sizes = (100, 400, 1600)
    gaps, lows = zip(*(_mean_gap(n, d, m, 4 if check.quick else 12) for m in sizes), strict=True)
    check.near(
        "exponent in the width of the output's distance from the linearised network's",
        log_slope(sizes, gaps).value,
        -1.0,
        0.25,
    )
    check.below("relative change of s_min over the widths", float(np.ptp(lows) / np.mean(lows)), 0.1)
    check.show("networks", count)
    check.show("with a certificate", certified)
    check.show("share of the second branch that was used up", largest_share)
    check.note("The certificate is sufficient and far from necessary. The inequalities hold also when its assumption fails.")


def _wave(u: Array) -> Array:
    return np.asarray(np.sin(2 * u + 0.5))


def _wave_slope(u: Array) -> Array:
    return np.asarray(2 * np.cos(2 * u + 0.5))


def _wave_curve(u: Array) -> Array:
    return np.asarray(-4 * np.sin(2 * u + 0.5))


WAVE = Activation(_wave, derivative=_wave_slope, second_derivative=_wave_curve, kinks=())
"""sin(2 u + 1/2), whose Hermite coefficients differ from 0. Its derivative is far from linear, so that its Jacobian is well conditioned."""


@claim("J45", "Kernels and lazy training", LazyTraining, figure="lazy-bounds", items=("J-24",))
def orders_of_the_bounds(check: Check) -> None:
    """For Gaussian inputs the terms of the lazy bounds and both distances have explicit orders in the samples n and the dimension d.

    Delta is of order n^(1/2). s_min is at least of order d^(1/2). s_max is at most of order n^(1/2) + d^(1/2), the Lipschitz constant
    is of order (d/m)^(1/2) times this sum, and the distance from the start is of order (n/d)^(1/2). The deviation from the linearised
    network is at most of order n^(5/2)/(d^2 m^(1/2)). The check fits exponents of d at fixed n/d and m/d, and of n at fixed d and m. For
    wide networks it compares s_min, s_max and the distance of the linearised network with those of the kernel to leading order in d.
    """
    dimensions, seeds = ((16, 32, 64), 2) if check.quick else ((16, 32, 64, 128), 4)
    trained_dimensions = dimensions[:2] if check.quick else dimensions[:3]
    shares, alpha, large = (0.5, 1.0, 2.0, 4.0), 1.5, dimensions[-1]
    start = {(d, share): start_terms(d, round(share * d), 16 * d, alpha, seeds) for d in dimensions for share in shares}

    def exponent(term: int, share: float) -> float:
        return log_slope(dimensions, [start[d, share][term] for d in dimensions]).value

    in_d = [float(np.mean([exponent(term, share) for share in shares])) for term in range(4)]
    check.near("exponent of Delta in d at fixed n/d and m/d, mean over n/d", in_d[0], 0.5, 0.1)
    check.at_least("exponent of s_min in d at fixed n/d and m/d, mean over n/d", in_d[1], 0.45)
    check.at_most("exponent of s_max in d at fixed n/d and m/d, mean over n/d", in_d[2], 0.55)
    check.near("exponent of the Lipschitz constant in d at fixed n/d and m/d, mean over n/d", in_d[3], 0.5, 0.1)
    sums = [math.sqrt(share * large) + math.sqrt(large) for share in shares]
    by_n = [log_slope(sums, [start[large, share][term] for share in shares]).value for term in range(4)]
    check.at_most(f"exponent of s_max in n^(1/2) + d^(1/2) at d = {large}", by_n[2], 1.05)
    check.near(f"exponent of the Lipschitz constant in n^(1/2) + d^(1/2) at d = {large}", by_n[3], 1.0, 0.15)
    value = math.sqrt(1 + alpha**2 * WAVE_VARIANCE)
    over = np.array([start[large, share][0] / math.sqrt(share * large) / value for share in shares])
    # Delta^2 is a sum of n terms, whose relative variance is about 2/n
    check.near(f"Delta over its value at d = {large}", float(over.mean()), 1.0, SIGMAS / math.sqrt(2 * 7.5 * large * seeds))
    # a width of 200 d makes the terms of order (n/m)^(1/2) smaller than 1 % at s_min; the leading order in d is exact to about 0.5 % here
    for share in shares[:2] if check.quick else shares:
        d, ratios = 64, []
        for seed in range(1 if check.quick else 3):
            ratios.append(over_equivalent(d, round(share * d), 200 * d, alpha, seed))
        for name, ratio in zip(
            ("s_min", "s_max", "distance of the linearised network"), np.mean(ratios, axis=0), strict=True
        ):
            check.near(
                f"{name} over that of the kernel to leading order, d = {d}, n/d = {share:g}, m = 200 d",
                float(ratio),
                1.0,
                0.02,
            )
    runs = {
        (d, share): distances(d, round(share * d), 16 * d, alpha, range(seeds if d < 64 else 1))
        for d in trained_dimensions
        for share in shares
    }
    last = trained_dimensions[-1]
    moved = [log_slope(trained_dimensions, [runs[d, share][0] for d in trained_dimensions]).value for share in shares]
    check.near(
        "exponent of the distance in d at fixed n/d, mean over n/d", float(np.mean(moved)), 0.0, 0.2 if check.quick else 0.1
    )
    ratio = log_slope(shares, [runs[last, share][0] for share in shares]).value
    check.near(f"exponent of the distance in n/d at d = {last}", ratio, 0.5, 0.1)
    bounded = [runs[last, share][1] / (share * last) ** 2.5 for share in shares]
    check.true(f"the deviation over n^(5/2) falls with n at d = {last}", bool(np.all(np.diff(bounded) < 0)))
    deviations = [log_slope(trained_dimensions, [runs[d, share][1] for d in trained_dimensions]).value for share in shares]
    # n^(5/2)/(d^2 m^(1/2)) does not depend on d at fixed n/d and m/d
    check.at_most("largest exponent of the deviation in d at fixed n/d and m/d", largest(deviations), 0.1)
    check.show("exponents of the deviation in d at fixed n/d and m/d", ", ".join(f"{value:.2f}" for value in deviations))
    growth = log_slope(shares, [runs[last, share][1] for share in shares]).value
    check.show(f"exponent of the deviation in n at d = {last}", growth)
    check.note("The deviation is far below its bound. Its measured exponent in n is below 5/2.")


def start_terms(d: int, n: int, width: int, alpha: float, seeds: int) -> Array:
    """Return means of Delta, s_min, s_max and the Lipschitz constant of networks at a random start."""
    rows = []
    for seed in range(seeds):
        X, y = lazy_data(seed, n, d)
        weights = unit_rows(np.random.default_rng([seed, width, 2]), 1, width, d)
        certificate = lazy_certificate(X, y, weights[0], alpha, WAVE)
        rows.append((certificate.residual, certificate.sigma_min, certificate.sigma_max, certificate.lipschitz))
    return np.mean(rows, axis=0)


WAVE_VARIANCE = (1 - math.cos(1.0) * math.exp(-8)) / 2 - math.sin(0.5) ** 2 * math.exp(-4)
"""Variance of this activation for a standard Gaussian input."""


def over_equivalent(d: int, n: int, width: int, alpha: float, seed: int) -> tuple[float, float, float]:
    """Return s_min, s_max and (y' K^-1 y)^(1/2) of a network over those of the kernel of infinite width to leading order in d.

    With r_i = |x_i|^2/d this kernel is alpha^2 (mu_i mu_j <x_i, x_j> + delta_ij |x_i|^2 (nu_i - mu_i^2)), where mu_i and nu_i are the means
    of s' and s'^2 for a Gaussian of variance r_i.
    """
    X, y = lazy_data(seed, n, d)
    weights = unit_rows(np.random.default_rng([seed, width, 4]), 1, width, d)
    kernel = LazyNetworks(X, y, weights, alpha, WAVE).kernel()[0]
    r = (X**2).sum(axis=1) / d
    mean, square = 2 * math.cos(0.5) * np.exp(-2 * r), 2 + 2 * math.cos(1.0) * np.exp(-8 * r)
    equivalent = alpha**2 * (mean[:, None] * mean * (X @ X.T) + np.diag(d * r * (square - mean**2)))
    values, limits = np.linalg.eigvalsh(kernel), np.linalg.eigvalsh(equivalent)
    distance = float(y @ np.linalg.solve(kernel, y) / (y @ np.linalg.solve(equivalent, y)))
    return math.sqrt(values[0] / limits[0]), math.sqrt(values[-1] / limits[-1]), math.sqrt(distance)


def distances(d: int, n: int, width: int, alpha: float, seeds: Iterable[int]) -> Array:
    """Return means of the distance from the start and of the deviation from the linearised network at the end of training."""
    rows = []
    for seed in seeds:
        X, y = lazy_data(seed, n, d)
        nets = LazyNetworks(X, y, unit_rows(np.random.default_rng([seed, width, 3]), 1, width, d, True), alpha, WAVE)
        low = float(np.linalg.eigvalsh(nets.kernel()[0])[0])
        flow = nets.flow(np.array([1.0, 4.0]) * n / low)
        rows.append((math.sqrt(float(flow.squared_distance.max())), math.sqrt(float(flow.squared_deviation.max()))))
    return np.mean(rows, axis=0)


class SecondBranch(NamedTuple):
    """Results for networks at large scales with the antisymmetric start."""

    networks: int  # in which the second branch is the smaller one
    share: float  # largest share of the second branch that was used up
    variation: float  # largest relative variation of the deviation over the branch, for all scales
    exponent: Slope  # of the deviation in the width


def second_branch(n: int, d: int, widths: tuple[int, ...], scales: tuple[float, ...], seeds: Iterable[int]) -> SecondBranch:
    """Return the number of networks in which the second branch of the bound (4) is the smaller one, and what they use up of it."""
    count, shares, exponents = 0, list[float](), list[float]()
    variation = 0.0
    for seed in seeds:
        deviations = []
        for width in widths:
            used, active = list[float](), list[float]()
            for alpha in scales:
                certificate, flow, _ = trained(seed, n, d, width, alpha, "softplus", True)
                deviation = float(np.sqrt(flow.squared_deviation.max()))
                used.append(deviation * alpha**2)  # the second branch is proportional to alpha^-2
                if certificate.deviation_bound < (1 - 1e-9) * 3 * certificate.residual / certificate.sigma_min:
                    count += 1
                    active.append(deviation / certificate.deviation_bound)
            deviations.append(deviation)
            variation = max(variation, float(np.ptp(used) / np.mean(used)))
            shares += active
        exponents.append(log_slope(widths, deviations).value)
    mean, error = mean_and_error(exponents)
    return SecondBranch(count, largest(shares), variation, Slope(float(mean), float(error)))


def weakest_labels(n: int, d: int, width: int, scale: float) -> tuple[float, float, float]:
    """Return decay rate, distance and linear distance over their certified values, for labels along the weakest direction.

    The weakest direction is the eigenvector of the smallest eigenvalue of the kernel at the antisymmetric start.
    """
    X, y = lazy_data(0, n, d)
    weights = unit_rows(np.random.default_rng(1), 1, width, d, True)
    values, vectors = np.linalg.eigh(LazyNetworks(X, y, weights, scale, Activation("softplus")).kernel()[0])
    labels = math.sqrt(n) * vectors[:, 0]
    certificate = lazy_certificate(X, labels, weights[0], scale, "softplus")
    times = np.array([0.5, 1.5, 12.0]) * n / values[0]
    flow = LazyNetworks(X, labels, weights, scale, Activation("softplus")).flow(times)
    rate = float(np.log(flow.train_error[0, 0] / flow.train_error[0, 1])) / (times[1] - times[0])
    return (
        rate / certificate.rate,
        math.sqrt(float(flow.squared_distance[0, -1])) / certificate.distance_bound,
        math.sqrt(float(flow.linear_squared_distance[0, -1])) / certificate.linear_distance_bound,
    )


def _mean_gap(n: int, d: int, width: int, draws: int) -> tuple[float, float]:
    """Return the mean distance of the outputs from those of the linearised network at the end, and mean s_min."""
    runs = [trained(seed, n, d, width, 2.0, "softplus", True) for seed in range(draws)]
    return float(np.mean([flow.output_gap.max() for _, flow, _ in runs])), float(
        np.mean([certificate.sigma_min for certificate, _, _ in runs])
    )


# -- convolutional ------------------------------------------------------------------------------------------------

WEIGHT_STD, BIAS_STD = 2**0.5, 0.1

RIDGES = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1)
"""Penalties relative to the kernel's mean diagonal. The kernel uses the penalty with the least error on the test images."""


class Errors(NamedTuple):
    """Shares of wrong answers on test images for the best kernel and for networks from starts of several sizes."""

    kernel: float
    networks: tuple[float, ...]


@functools.cache
def network(outputs: int) -> Network:
    """Return two convolutions and a dense layer, the same object for all data so that its gradient is compiled once."""
    return convolutional(2, 3, "flatten", BIAS_STD, "relu", WEIGHT_STD, outputs=outputs)


def kernel_and_networks(task: Task, seed: int, scales: tuple[float, ...], width: int, steps: int) -> Errors:
    """Return the errors of regression with a convolutional tangent kernel, and of networks of finite width trained by Adam.

    Two convolutions along the rows of pixels (columns are channels) and a dense layer; starts are those of the kernel times `scales`.
    """
    net = network(task.y.shape[1])
    kernel, across = net.ntk(task.X), net.ntk(task.X_test, task.X)
    level = float(np.trace(kernel)) / len(kernel)
    fits = (across @ np.linalg.solve(kernel + ridge * level * np.eye(len(kernel)), task.y) for ridge in RIDGES)
    errors = []
    for scale in scales:
        rng = np.random.default_rng([seed, 8])
        start = [[scale * part for part in layer] for layer in net.start(rng, task.X.shape[1:], width)]
        trained = trained_by_adam(net.apply, start, task.X, task.y, rng, steps=steps)
        errors.append(wrong(np.asarray(net.apply(trained, task.X_test)), task.y_test))
    return Errors(min(wrong(fit, task.y_test) for fit in fits), tuple(errors))


def wrong(f: Array, y: Array) -> float:
    """Return the share of outputs with the wrong sign, or with the wrong largest column.

    >>> wrong(np.array([[1.0], [-2.0]]), np.array([[1.0], [1.0]])), wrong(np.eye(2), np.eye(2))
    (0.5, 0.0)
    """
    return float(np.mean(f * y <= 0) if f.shape[1] == 1 else np.mean(f.argmax(axis=1) != y.argmax(axis=1)))


def plain_task(samples: int, tests: int, seed: int) -> Task:
    """Return a task with the ten classes of single digits."""
    images, digit = pooled_digits(7)
    rng, labels = np.random.default_rng(seed), 2.0 * (digit[:, None] == np.arange(10)) - 1
    train, test = rng.permutation(4000)[:samples], 4000 + rng.permutation(4000)[:tests]
    return Task(images[train], labels[train], images[test], labels[test])


@claim("M8", "Approximation", figure="convolutional-kernel", items=("M-12", "M-21"))
def convolutional_ordering(check: Check) -> None:
    """On images, convolutional tangent kernels do worse than the trained convolutional network.

    Rows of digits of which two decide the label, for networks with a small start, networks with the kernel's start, and the kernel.
    """
    (digits_in_row, samples, tests, seeds) = (16, 400, 500, 2) if check.quick else (20, 500, 1000, 4)
    width, steps = (32, 500) if check.quick else (48, 1000)
    results = [
        kernel_and_networks(row_task(digits_in_row, samples, tests, seed), seed, (0.3, 1.0), width, steps)
        for seed in range(seeds)
    ]
    small, kernel_start = (np.array([result.networks[i] for result in results]) for i in (0, 1))
    kernel = np.array([result.kernel for result in results])
    check.above(
        "smallest ratio of the kernel's test error to the network's", smallest(kernel / np.maximum(small, 1e-3)), 2.0
    )
    check.below("largest test error of a network with a small start", largest(small), 0.12)
    check.below("largest test error of the kernel (chance: 0.5)", largest(kernel), 0.47)
    check.below(
        "mean distance of networks with the kernel's start from it", abs(float((kernel_start - kernel).mean())), 0.06
    )
    check.above(
        "test error of networks with the kernel's start over small ones", float(kernel_start.mean() / small.mean()), 2.0
    )
    check.show("mean test error of the kernel", float(kernel.mean()))
    check.show("mean test error of networks with 0.3 times its start", float(small.mean()))
    check.show("mean test error of networks with its start", float(kernel_start.mean()))
    if not check.quick:
        for count in (500, 2000):
            plain = kernel_and_networks(plain_task(count, 1000, 0), 0, (0.3,), 64, 2000)
            check.show(f"plain digits, n = {count}: test error of the kernel", plain.kernel)
            check.show(f"plain digits, n = {count}: test error of the network", plain.networks[0])
    check.note(
        f"Qualitative: rows of {digits_in_row} zeros and ones, n = {samples}. On plain digits at n up to 2,000 the order does not "
        "show: the kernel is as good as the network or better. The difference needs a start small enough to learn features."
    )


# -- conditioning -------------------------------------------------------------------------------------------------

PAIR = np.array([[1.0, 0.5, -0.3, 0.8], [0.2, -1.0, 0.4, 0.6]])


@claim("M14", _AREA, figure="residual-kernel", items=("M-21",))
def residual_networks(check: Check) -> None:
    """Tangent kernels extend to other architectures, here to residual networks.

    Compared: the recursion with the tangent kernel of finite networks by backpropagation, its rate in the width and its mean.
    """
    widths, draws = ((50, 100, 200), 150) if check.quick else ((50, 100, 200, 400), 200)
    for blocks, branch in ((3, 1.0), (10, 0.3)):
        name, limit = f"{blocks} blocks, branch {branch:g}", resnet_ntk(PAIR, None, blocks, branch).ntk
        runs = {width: tangent_kernels(blocks, branch, width, draws) for width in widths}
        gaps = [float(np.sqrt(np.mean((kernels - limit)[:, 0, 1] ** 2))) for kernels in runs.values()]
        last, plain = runs[widths[-1]], resnet_ntk(PAIR, None, blocks, branch).nngp
        check.between(f"exponent in the width of the rms gap, {name}", log_slope(widths, gaps).value, -0.7, -0.35)
        check.below(f"mean at width {widths[-1]} in standard errors, {name}", sigmas(last, limit), 4.0)
        check.above(f"the same against the NNGP kernel, {name}", sigmas(last, plain), 4.0)
        for width, gap in zip(widths, gaps, strict=True):
            check.show(f"rms gap at width {width}, {name}", gap)
    check.note("Graph and recurrent networks are not checked.")


def tangent_kernels(blocks: int, branch: float, width: int, draws: int) -> Array:
    """Return tangent kernels of the pair of inputs for `draws` networks of finite width, by backpropagation."""
    rngs = (np.random.default_rng([blocks, width, k]) for k in range(draws))
    return np.array([residual_tangent_kernel(rng, PAIR, width, blocks, branch) for rng in rngs])
