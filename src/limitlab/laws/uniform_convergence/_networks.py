"""The largest value of a mean over a class of two-layer networks, by ascent over all weights (docs/theory/uniform_convergence.md, eq. 3).

The class contains f(x) = sum_j a_j relu(<w_j, x>) with N neurons, |w_j| = 1 and |a|_1 <= gamma (or |a|_2 <= gamma). Inputs and labels are
drawn with replacement from a finite population, so that the population risk is a mean over the population, without an error. With c_i the
number of draws of member i, the deviation of a network is sum_i (c_i/n - 1/M) |y_i - f(x_i)|.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Norm = Literal["l1", "l2"]
Loss = Callable[[Array], tuple[Array, Array]]
"""Function of the outputs, shape (samples, starts), that returns values and slopes."""

ALONE, TOGETHER = 60, 90  # steps of ascent of the neurons at equal second-layer weights, and of both layers
LONGEST, SHORTEST = 0.5, 0.01  # lengths of the first and the last step
NEURONS = 64  # least number of neurons of all starts together, so that every width has the same chance to find a good neuron


def project(a: Array, gamma: float, norm: Norm = "l1") -> Array:
    """Return the nearest points (rows) of the ball |a| <= gamma in the l1 or the l2 norm.

    >>> project(np.array([[3.0, 1.0]]), 2.0).tolist(), project(np.array([[3.0, 4.0]]), 1.0, "l2").tolist()
    ([[2.0, 0.0]], [[0.6000000000000001, 0.8]])
    """
    if norm == "l2":
        return np.asarray(a * np.minimum(1.0, gamma / np.maximum(np.linalg.norm(a, axis=1, keepdims=True), 1e-300)))
    ordered = -np.sort(-np.abs(a), axis=1)
    excess = (np.cumsum(ordered, axis=1) - gamma) / np.arange(1, a.shape[1] + 1)
    last = np.sum(ordered > excess, axis=1, keepdims=True) - 1  # the entries that stay different from 0
    threshold = np.maximum(np.take_along_axis(excess, last, axis=1), 0.0)
    return np.asarray(np.sign(a) * np.maximum(np.abs(a) - threshold, 0.0))


def absolute_error(weights: Array, labels: Array) -> Loss:
    """Return the loss sum_i weights_i |y_i - f_i|, which is Lipschitz in the output."""

    def loss(outputs: Array) -> tuple[Array, Array]:
        gap = outputs - labels[:, None]
        return weights @ np.abs(gap), weights[:, None] * np.sign(gap)

    return loss


def correlation(signs: Array) -> Loss:
    """Return the mean of signs_i f_i, whose supremum defines the Rademacher complexity."""
    mean = signs / len(signs)
    return lambda outputs: (mean @ outputs, np.broadcast_to(mean[:, None], outputs.shape))


def largest_value(
    inputs: Array, loss: Loss, gamma: float, width: int, rng: np.random.Generator, norm: Norm = "l1", neurons: int = NEURONS
) -> float:
    """Return the largest value that ascent over all weights of networks of `width` neurons finds, from several starts.

    First the neurons ascend at equal second-layer weights of both signs, then both layers ascend. The lengths of the steps decrease
    geometrically. Networks of every width have the same number of neurons in all starts together.

    >>> x, signs = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, 1.0])
    >>> values = [largest_value(x, correlation(signs), 2.0, width, np.random.default_rng(0)) for width in (1, 4)]
    >>> [round(value, 3) for value in values]
    [1.414, 1.414]
    """
    starts, d = max(neurons // width, 2), inputs.shape[1]
    w = _unit(rng.standard_normal((starts * width, d)))
    signs = 1 - 2.0 * ((np.arange(starts)[:, None] + np.arange(width)) % 2)
    a = signs * gamma / (width if norm == "l1" else np.sqrt(width))
    best = -np.inf
    for phase, steps in ((False, ALONE), (True, TOGETHER)):
        for length in np.geomspace(LONGEST, SHORTEST, steps):
            before = inputs @ w.T
            hidden = np.maximum(before, 0.0)
            outputs = (hidden.reshape(-1, starts, width) * a).sum(axis=2)
            value, slope = loss(outputs)
            best = max(best, float(np.max(value)))
            each = np.repeat(slope, width, axis=1)
            pull = ((before > 0) * each).T @ inputs * a.reshape(-1, 1)
            pull -= (pull * w).sum(axis=1, keepdims=True) * w
            w = _unit(w + length * _unit(pull))
            if phase:
                push = (hidden * each).sum(axis=0).reshape(starts, width)
                a = project(a + length * gamma * _unit(push), gamma, norm)
    return best


def largest_deviation(
    rng: np.random.Generator,
    samples: int,
    dimension: int,
    gamma: float,
    width: int,
    norm: Norm = "l1",
    neurons: int = NEURONS,
    members: int = 4,
) -> float:
    """Return sup (Rhat - R) over the class for the absolute error, minus Rhat - R of the network 0, whose mean is 0.

    The population has `members` times as many members as there are samples, with Gaussian inputs and labels <beta, x> + noise, |beta| = 1,
    with noise of variance 1. The network 0 is subtracted because its deviation depends on the labels only.

    >>> value = largest_deviation(np.random.default_rng(0), 100, 5, 1.0, 2)
    >>> 0.05 < value < 0.4
    True
    """
    count = members * samples
    inputs = rng.standard_normal((count, dimension))
    labels = inputs[:, 0] + rng.standard_normal(count)
    weights = rng.multinomial(samples, np.full(count, 1 / count)) / samples - 1 / count
    return largest_value(inputs, absolute_error(weights, labels), gamma, width, rng, norm, neurons) - float(
        weights @ np.abs(labels)
    )


def _unit(vectors: Array) -> Array:
    """Return vectors (rows) of length 1, or 0 for the vector 0."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-300))
