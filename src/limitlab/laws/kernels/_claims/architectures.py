"""Claims about tangent kernels of convolutional, residual, graph and recurrent networks (M8, M14, M19)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.check import Check, largest, log_slope, sigmas, smallest, standard_error
from limitlab.lab.claims import claim
from limitlab.laws.kernels._graph_recurrent import (
    graph_kernel,
    graph_kernels_of_networks,
    recurrent_kernel,
    recurrent_kernels_of_networks,
)
from limitlab.laws.kernels._wide_networks import residual_tangent_kernel
from limitlab.laws.kernels.convolutional import convolutional
from limitlab.laws.kernels.layers.network import Network
from limitlab.laws.kernels.residual import resnet_ntk
from limitlab.models.datasets import Task, pooled_digits, row_task
from limitlab.models.optimisers import trained_by_adam

Array = NDArray[np.float64]

_AREA = "Kernels and lazy training"


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


def tangent_kernels(blocks: int, branch: float, width: int, draws: int) -> Array:
    """Return tangent kernels of the pair of inputs for `draws` networks of finite width, by backpropagation."""
    rngs = (np.random.default_rng([blocks, width, k]) for k in range(draws))
    return np.array([residual_tangent_kernel(rng, PAIR, width, blocks, branch) for rng in rngs])


GRAPHS = ([(0, 1), (1, 2), (2, 3)], [(0, 1), (1, 2), (2, 0)])
"""Edges of a path with four nodes and of a triangle."""


@claim("M19", _AREA, quick_decides=False, items=("M-21",))
def graph_and_recurrent_networks(check: Check) -> None:
    """Tangent kernels of graph and of recurrent networks tend to deterministic recursions as the width grows.

    Compared: the recursions with the kernels of random finite networks by automatic differentiation, for graphs with different numbers of
    nodes and for sequences. Single kernels approach the limit like width^(-1/2), and their mean, extrapolated in 1/width, equals it.
    """
    widths, draws = ((25, 50, 100), 60) if check.quick else ((50, 100, 200), 1200)
    rng = np.random.default_rng(19)
    features = [rng.standard_normal((nodes, 3)) for nodes in (4, 3)]
    propagation = [normalised_adjacency(edges, len(part)) for edges, part in zip(GRAPHS, features, strict=True)]
    sequences = rng.standard_normal((2, 4, 3))
    cases: dict[str, tuple[Array, Callable[[int], Array]]] = {}
    for name in ("relu",) if check.quick else ("relu", "erf"):
        cases[f"graphs, {name}"] = (
            graph_kernel(name, 3, features, propagation),
            partial(drawn_graph_kernels, name, features, propagation, draws),
        )
        cases[f"sequences, {name}"] = (
            recurrent_kernel(name, 1.2, sequences),
            partial(drawn_recurrent_kernels, name, sequences, draws),
        )
    upper, z, ratios = np.triu_indices(2), [], []
    for case, (limit, draw) in cases.items():
        runs = [draw(width)[:, *upper] for width in widths]
        gaps = [float(np.sqrt(np.mean(np.sum((part - limit[upper]) ** 2, axis=1)))) for part in runs]
        check.between(f"exponent in the width of the rms gap, {case}", log_slope(widths, gaps).value, -0.7, -0.35)
        weights = np.array([1 / 3, -2.0, 8 / 3])  # remove the terms 1/m and 1/m^2
        mean = np.tensordot(weights, [part.mean(axis=0) for part in runs], 1)
        spread = [weight * part.std(axis=0, ddof=1) for weight, part in zip(weights, runs, strict=True)]
        error = np.linalg.norm(spread, axis=0) / np.sqrt(draws)
        z.append(largest(np.abs(mean - limit[upper]) / error))
        sums = np.tensordot(weights, [part.sum(axis=1).mean() for part in runs], 1) / limit[upper].sum()
        deviations = [weight * standard_error(part.sum(axis=1)) for weight, part in zip(weights, runs, strict=True)]
        ratios.append((float(sums), float(np.linalg.norm(deviations) / limit[upper].sum())))
        check.show(f"sum of the mean kernel over that of its limit, {case}", ratios[-1][0])
        check.show(f"standard error of this ratio, {case}", ratios[-1][1])
    check.below("largest z of an extrapolated mean kernel", largest(z), 4.5)
    share = float(np.mean([ratio for ratio, _ in ratios]))
    error = float(np.linalg.norm([part for _, part in ratios]) / len(ratios))
    check.near("sum of the extrapolated mean kernel over that of its limit, mean of all cases", share, 1.0, 4 * error)


def drawn_graph_kernels(name: str, features: list[Array], propagation: list[Array], draws: int, width: int) -> Array:
    """Return tangent kernels of random graph networks with three layers."""
    return graph_kernels_of_networks(name, 3, features, propagation, width, draws, width)


def drawn_recurrent_kernels(name: str, sequences: Array, draws: int, width: int) -> Array:
    """Return tangent kernels of random recurrent networks of gain 1.2."""
    return recurrent_kernels_of_networks(name, 1.2, sequences, width, draws, width)


def normalised_adjacency(edges: list[tuple[int, int]], nodes: int) -> Array:
    """Return D^(-1/2) (A + 1) D^(-1/2) for an undirected graph, where D contains the row sums of A + 1."""
    table = np.eye(nodes)
    for i, j in edges:
        table[i, j] = table[j, i] = 1.0
    degrees = table.sum(axis=1)
    return np.asarray(table / np.sqrt(np.outer(degrees, degrees)))
