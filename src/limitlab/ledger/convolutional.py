"""The claim on convolutional networks and their tangent kernels (M8)."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.claims import Outcome, claim
from limitlab.lab.criteria import Number, above, below
from limitlab.lab.measures import largest, smallest
from limitlab.laws.kernels.convolutional import convolutional
from limitlab.laws.kernels.layers.network import Network
from limitlab.models.adam import trained_by_adam
from limitlab.models.image_tasks import Task, pooled_digits, row_task

Array = NDArray[np.float64]

WEIGHT_STD, BIAS_STD = 2**0.5, 0.1
RIDGES = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1)
"""Penalties that the kernel may choose from, relative to its mean diagonal; it gets the one that is best on the test images."""


class Errors(NamedTuple):
    """Shares of wrong answers on test images: the best kernel, and networks from starts of several sizes."""

    kernel: float
    networks: tuple[float, ...]


@functools.cache
def network(outputs: int) -> Network:
    """Two convolutions and a dense layer; the same object for all data, so that its gradient is compiled once."""
    return convolutional(2, 3, "flatten", BIAS_STD, "relu", WEIGHT_STD, outputs=outputs)


def kernel_and_networks(task: Task, seed: int, scales: tuple[float, ...], width: int, steps: int) -> Errors:
    """Two convolutions along the rows of pixels (columns are channels) and a dense layer: regression with the tangent kernel, and networks
    of finite width by Adam, whose starts are those of the kernel times `scales`."""
    net = network(task.y.shape[1])
    kernel, across = net.ntk(task.X), net.ntk(task.X_test, task.X)
    level = float(np.trace(kernel)) / len(kernel)
    fits = (across @ np.linalg.solve(kernel + ridge * level * np.eye(len(kernel)), task.y) for ridge in RIDGES)
    found = []
    for scale in scales:
        rng = np.random.default_rng([seed, 8])
        start = [[scale * part for part in layer] for layer in net.start(rng, task.X.shape[1:], width)]
        trained = trained_by_adam(net.apply, start, task.X, task.y, rng, steps=steps)
        found.append(wrong(np.asarray(net.apply(trained, task.X_test)), task.y_test))
    return Errors(min(wrong(fit, task.y_test) for fit in fits), tuple(found))


def wrong(f: Array, y: Array) -> float:
    """Share of outputs with the wrong sign, or with the wrong largest column.

    >>> wrong(np.array([[1.0], [-2.0]]), np.array([[1.0], [1.0]])), wrong(np.eye(2), np.eye(2))
    (0.5, 0.0)
    """
    return float(np.mean(f * y <= 0) if f.shape[1] == 1 else np.mean(f.argmax(axis=1) != y.argmax(axis=1)))


def plain_task(samples: int, tests: int, seed: int) -> Task:
    """The ten classes of single digits."""
    images, digit = pooled_digits(7)
    rng, labels = np.random.default_rng(seed), 2.0 * (digit[:, None] == np.arange(10)) - 1
    train, test = rng.permutation(4000)[:samples], 4000 + rng.permutation(4000)[:tests]
    return Task(images[train], labels[train], images[test], labels[test])


@claim(
    "M8",
    "Approximation",
    "On images, convolutional tangent kernels do worse than the trained convolutional network.",
    figure="convolutional-kernel",
)
def convolutional_ordering(quick: bool) -> Outcome:
    """Rows of digits of which two decide the label: network with a small start, network with the kernel's own start, and the kernel."""
    (digits_in_row, samples, tests, seeds) = (16, 400, 500, 2) if quick else (20, 500, 1000, 4)
    width, steps = (32, 500) if quick else (48, 1000)
    found = [
        kernel_and_networks(row_task(digits_in_row, samples, tests, seed), seed, (0.3, 1.0), width, steps)
        for seed in range(seeds)
    ]
    small, own = (np.array([one.networks[i] for one in found]) for i in (0, 1))
    kernel = np.array([one.kernel for one in found])
    measured: dict[str, Number] = {
        "mean test error of the kernel": float(kernel.mean()),
        "mean test error of networks with 0.3 times its start": float(small.mean()),
        "mean test error of networks with its start": float(own.mean()),
    }
    if not quick:
        for count in (500, 2000):
            plain = kernel_and_networks(plain_task(count, 1000, 0), 0, (0.3,), 64, 2000)
            measured[f"plain digits, n = {count}: test error of the kernel"] = plain.kernel
            measured[f"plain digits, n = {count}: test error of the network"] = plain.networks[0]
    return Outcome(
        (
            above(
                "smallest ratio of the kernel's test error to the network's", smallest(kernel / np.maximum(small, 1e-3)), 2.0
            ),
            below("largest test error of a network with a small start", largest(small), 0.12),
            below("largest test error of the kernel (chance: 0.5)", largest(kernel), 0.47),
            below("mean distance of networks with the kernel's start from it", abs(float((own - kernel).mean())), 0.06),
            above("test error of networks with the kernel's start over small ones", float(own.mean() / small.mean()), 2.0),
        ),
        measured,
        note=(
            f"Qualitative: rows of {digits_in_row} zeros and ones, n = {samples}. On plain digits at n up to 2,000 the order does not "
            "show: the kernel is as good as the network or better. What makes the difference is a start small enough to learn features."
        ),
    )
