"""Outliers of the test Hessian of a ReLU network that is trained on the XOR mixture (docs/theory/alignment.md, XOR mixture).

Setting.  The XOR mixture and network of `limitlab.laws.online_sgd.xor`; blocks of each layer of Hessian and gradients' second moment on
          test samples. A neuron serves the cluster towards whose centre its weights grow during training. The signs of the start
          determine this cluster. `captured` of the four clusters are served by at least one neuron.
Limit.    N -> infinity with noise variance 1/lambda = N^-2 (or any lambda far above N), then long times. The network converges to the fixed
          point in which every neuron serves its cluster.
Result.   Equations (14) and (15) with the penalty alpha (`regularizer`). The error |y - sigma(f)| is 4 alpha on captured clusters and 1/2
          on the other clusters. The second layer has one outlier per captured cluster, and the first layer has two outliers per neuron.
Status.   Derived, checked against the exact chain of summary statistics in `limitlab.models.xor_chain`.
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator
from pydantic_core import PydanticCustomError

from limitlab.errors import Refused
from limitlab.laws import CLOSED_FORM, Draw, Experiment, Headline, Law, Values, observable, parameter
from limitlab.laws.online_sgd.xor import CRITICAL, class_flow, class_strength

__all__ = ["XorAlignment"]

Array = NDArray[np.float64]

OUTSIDE = 0.25
"""A second-layer eigenvalue counts as an outlier if it exceeds this share of the largest eigenvalue. All other eigenvalues tend to 0."""


def other_direction(first: float, second: float) -> tuple[float, float]:
    """Return a neuron's Hessian and gradient outliers along the pair of clusters that it does not serve, eq. (15).

    The arguments are the errors |e| of the two clusters. The neuron is active on the shares p and 1 - p of the samples of the two
    clusters. Its overlap with the pair stays at zero, because the forces of the two clusters cancel, p e_1 = (1 - p) e_2.

    >>> [round(value, 9) for value in other_direction(0.2, 0.2)]  # alpha = 0.05: alpha (1 - 4 alpha), 4 alpha^2
    [0.04, 0.01]
    """
    fires = second / (first + second)
    hessian = fires * first * (1 - first) + (1 - fires) * second * (1 - second)
    gradient = fires * first**2 + (1 - fires) * second**2
    return hessian / 4, gradient / 4


def first_layer(regularizer: float, captured: int) -> tuple[float, float]:
    """Return the mean of a neuron's two outliers per squared second-layer weight, for Hessian and gradient.

    The arguments are the penalty alpha and the number of captured clusters. The mean is also taken over random sets of captured clusters.

    >>> [round(value, 9) for value in first_layer(0.05, 4)]
    [0.04, 0.01]
    """
    error = 4 * regularizer
    served = np.array([error * (1 - error), error**2]) / 4
    other, sets = np.zeros(2), math.comb(3, captured - 1)
    for count in range(3):  # number of captured clusters in the pair that the neuron does not serve
        rest = captured - 1 - count
        ways = math.comb(2, count) * math.comb(1, rest) if rest >= 0 else 0
        errors = [error if i < count else 0.5 for i in range(2)]
        other += ways / sets * np.array(other_direction(*errors))
    hessian, gradient = (served + other) / 2
    return float(hessian), float(gradient)


def second_layer_path(regularizer: float, start_square: float, times: ArrayLike) -> Array:
    """Return the second layer's Hessian outlier of one captured cluster along training as lambda -> infinity, eq. (16).

    Parameters
    ----------
    regularizer
        alpha.
    start_square
        The sum of v_i(0)^2 over the neurons that capture this cluster.
    times
        Times, increasing.

    Examples
    --------
    >>> second_layer_path(0.05, 2.0, [0.0, 500.0]).round(6).tolist()  # from 0 to alpha (1 - 4 alpha) S*
    [0.0, 0.055452]
    """
    from scipy.special import expit

    flow, t = class_flow(regularizer, start_square, times), np.asarray(times, dtype=float)
    overlaps = (flow["together"] + flow["apart"]) / 4 - start_square * np.exp(-2 * regularizer * t) / 2
    return np.asarray(expit(flow["strength"]) * expit(-flow["strength"]) * overlaps / 4)


class XorAlignment(Law):
    """How many outliers does each layer of a ReLU network have after it has captured some of the four clusters of the XOR mixture?

    Examples
    --------
    >>> law = XorAlignment(width=6, regularizer=0.05, captured=3)
    >>> float(law.theory().second_layer_outliers), round(float(law.theory().second_layer_hessian), 6)
    (3.0, 0.055452)
    """

    status = "derived"
    regime = "N -> infinity with noise variance N^-2, then long times"
    assumptions = (
        "one fresh sample per step, step c / N on both layers and on the penalty",
        "signs of the start that determine the captured clusters, second-layer weights of order 1",
    )
    references = ("benarous2024high", "benarous2022high")
    page = "alignment"
    observables = {
        "first_layer_hessian": observable(
            "mean of the two outliers of a neuron's Hessian block over its squared weight", "H_{WW}"
        ),
        "first_layer_gradient": observable(
            "mean of the two outliers of a neuron's gradient block over its squared weight", "G_{WW}"
        ),
        "second_layer_hessian": observable("mean outlier of the second layer's Hessian block", "H_{vv}"),
        "second_layer_gradient": observable("mean outlier of the second layer's gradient block", "G_{vv}"),
        "second_layer_outliers": observable("outliers of the second layer's Hessian block", least=0),
        "first_layer_alignment": observable(
            "alignment of a neuron's weights with its two outliers", r"\rho(W_i,E_2)", rate=(1, 2), least=0, most=1
        ),
        "second_layer_alignment": observable(
            "alignment of the second layer with its outliers", r"\rho(v,E)", rate=(1, 2), least=0, most=1
        ),
    }
    simulation = Experiment("dimension N of the inputs", sizes=(50, 100, 200), draws=80, rate=1.0)
    # The step is not 1. With three captured clusters the two pairs of clusters contribute differently
    points = (
        dict(width=6, regularizer=0.05, step=0.7, captured=4),
        dict(width=5, regularizer=0.07, step=1.3, captured=3),
    )
    headline = Headline(
        "One outlier for every cluster found",
        x="captured",
        over=(1.0, 4.0, 41),
        whole=True,
        show=("second_layer_outliers",),
        size=100,
        draws=6,
        places=(1.0, 2.0, 3.0, 4.0),
        sliders=("width", "regularizer"),
    )

    width: int = parameter(6, symbol="K", least=1)
    regularizer: float = parameter(0.05, above=0, below=CRITICAL)
    step: float = parameter(1.0, note="times the dimension", symbol=r"c_\delta", above=0)
    captured: int = parameter(
        4, "number of clusters that the neurons learn, determined by the signs of the start", symbol="n", least=1, most=4
    )
    test_ratio: float = parameter(10.0, above=0, scale="log", kind="experiment", count="size * value")

    @model_validator(mode="after")
    def _enough_neurons(self) -> Self:
        if self.captured > self.width:
            raise PydanticCustomError(
                "parameter",
                f"captured = {self.captured} is not allowed: at most one cluster per neuron, width = {self.width}",
            )
        return self

    def predicted(self) -> Values:
        """Return the outliers of equations (14) and (15)."""
        hessian, gradient = first_layer(self.regularizer, self.captured)
        error, strength = 4 * self.regularizer, class_strength(self.regularizer)
        return dict(
            first_layer_hessian=hessian,
            first_layer_gradient=gradient,
            second_layer_hessian=error * (1 - error) / 4 * strength,
            second_layer_gradient=error**2 / 4 * strength,
            second_layer_outliers=float(self.captured),
            first_layer_alignment=1.0,
            second_layer_alignment=1.0,
            accuracy=CLOSED_FORM,
        )

    def measured(self, draw: Draw) -> Values:
        """Train a network by the exact chain, from signs that determine the captured clusters, and measure its blocks on test samples."""
        from limitlab.laws.alignment._softmax_sgd import (
            alignment,
            draw_xor,
            first_layer_block,
            sample_weights,
            second_layer_block,
        )

        size, rng = draw.size, draw.rng
        v, w, classes = self.train(size, rng)
        samples, labels = draw_xor(rng, size, 1 / size, draw.count("test_ratio"))
        h, hessian, gradient = sample_weights(samples, labels, v, w)
        second, second_g = second_layer_block(h, hessian), second_layer_block(h, gradient)
        first = [first_layer_block(samples, h, hessian, i) for i in range(self.width)]
        first_g = [first_layer_block(samples, h, gradient, i) for i in range(self.width)]
        n = self.captured
        shares = 1 / (n * np.bincount(classes)[classes])  # every cluster has the same weight for any number of neurons
        return dict(
            first_layer_hessian=shares @ [pairs.values.mean() for pairs in first],
            first_layer_gradient=shares @ [pairs.values.mean() for pairs in first_g],
            second_layer_hessian=second.values[:n].mean(),
            second_layer_gradient=second_g.values[:n].mean(),
            second_layer_outliers=float(np.sum(second.values > OUTSIDE * second.values[0])),
            first_layer_alignment=np.mean([alignment(w[i], first[i], 2) for i in range(self.width)]),
            second_layer_alignment=alignment(v, second, n),
        )

    def train(self, size: int, rng: np.random.Generator) -> tuple[Array, Array, NDArray[np.int64]]:
        """Return second layer (K,) and first layer (K, N) after a long time, and the cluster of every neuron."""
        from limitlab.laws.alignment._softmax_sgd import weights_in_space
        from limitlab.models.xor_chain import random_start, xor_path

        if size < self.width + 3:
            raise Refused(f"size = {size} is not allowed: must be at least width + 3 = {self.width + 3}")
        v, a, b, gram = random_start(rng, self.width, size)
        v, a, b, classes = announce(rng, v, a, b, self.captured, size)
        time = 8 / (CRITICAL - self.regularizer)
        counts = np.array([round(time * size / self.step)])
        xor_path(rng, v, a, b, gram, 1 / size, self.regularizer, self.step / size, size, counts)
        return v, weights_in_space(a, b, gram, size), classes


def announce(
    rng: np.random.Generator, v: Array, a: Array, b: Array, captured: int, dimension: int
) -> tuple[Array, Array, Array, NDArray[np.int64]]:
    """Return a start whose signs announce `captured` clusters, and the cluster of every neuron.

    A neuron announces the cluster that it will serve, which is determined by the signs of its start. The set of clusters is random, and
    each of them has at least one neuron. Clusters are numbered 0 to 3 for mu, -mu, nu, -nu. Weights and overlaps have sizes between 1/2 and
    3/2 of their typical sizes, so that no neuron starts close to zero.

    >>> v, a, b, classes = announce(np.random.default_rng(0), np.ones(4), np.ones(4), np.ones(4), 1, 100)
    >>> len(set(zip(np.sign(v), np.sign(np.where(v > 0, a, b))))), len(set(classes.tolist()))
    (1, 1)
    """
    clusters = rng.permutation(4)[:captured]
    classes = np.concatenate([clusters, rng.choice(clusters, size=v.size - captured)])
    sizes = 0.5 + rng.random((2, v.size))
    second = np.where(classes < 2, 1.0, -1.0) * sizes[0]
    overlap = np.where(classes % 2 == 0, 1.0, -1.0) * sizes[1] / math.sqrt(dimension)
    return second, np.where(classes < 2, overlap, a), np.where(classes < 2, b, overlap), classes
