"""Claims about kernels of wide networks at the start and during training (J9 to J12, J14)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab._core.draws import mean_and_error
from limitlab.lab.check import SIGMAS, Check, largest, log_slope, sigmas
from limitlab.lab.claims import claim
from limitlab.laws.kernels._lazy_networks import LazyNetworks, unit_rows
from limitlab.laws.kernels._wide_networks import DeepNetworks, spectral_norms, waves
from limitlab.laws.kernels.deep import nngp, ntk
from limitlab.laws.kernels.gradient_flow import KernelGradientFlow, kernel_gradient_flow
from limitlab.laws.kernels.lazy import LazyTraining
from limitlab.laws.kernels.wide_network import WideNetwork
from limitlab.models.activations import Activation
from limitlab.models.data import sphere

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
