"""Many fully connected networks of finite width, with their outputs, layerwise tangent kernels and gradient descent.

    h^1 = w x W^0 / sqrt(d) + b B^0,   h^(k+1) = w s(h^k) W^k / sqrt(m) + b B^k,   f = h^L,

with independent N(0, 1) entries of W and B at the start, all of them trained. All arrays have a first axis for the networks.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from limitlab.models.activations import Activation

Array = NDArray[Any]


@dataclass
class DeepNetworks:
    """Several networks of one architecture. Training changes them in place.

    Attributes
    ----------
    weights, biases
        One array per layer: shapes (networks, inputs, outputs) and (networks, 1, outputs).
    activation
        The activation s.
    weight_std, bias_std
        Standard deviations w of the weights (before the division by the root of their number) and b of the biases.

    Examples
    --------
    >>> nets = DeepNetworks.start(np.random.default_rng(0), 5, (3, 8, 8, 1), Activation("tanh"), 1.0, 0.1)
    >>> nets.outputs(np.eye(3)).shape, nets.tangent_kernel(np.eye(3)).shape
    ((5, 3, 1), (5, 3, 3))
    """

    weights: list[Array]
    biases: list[Array]
    activation: Activation
    weight_std: float
    bias_std: float

    @classmethod
    def start(
        cls,
        rng: np.random.Generator,
        networks: int,
        widths: tuple[int, ...],
        activation: Activation,
        weight_std: float,
        bias_std: float,
    ) -> Self:
        """Draw networks with standard Gaussian parameters; `widths` goes from the input's dimension to the number of outputs."""
        pairs = list(pairwise(widths))
        weights = [rng.standard_normal((networks, inputs, outputs)) for inputs, outputs in pairs]
        biases = [rng.standard_normal((networks, 1, outputs)) for _, outputs in pairs]
        return cls(weights, biases, activation, weight_std, bias_std)

    def with_mirror_images(self) -> DeepNetworks:
        """Return the networks and their mirror images (last layer times -1), which have the same probability and opposite outputs."""
        weights = [np.concatenate([part, part]) for part in self.weights[:-1]]
        biases = [np.concatenate([part, part]) for part in self.biases[:-1]]
        weights.append(np.concatenate([self.weights[-1], -self.weights[-1]]))
        biases.append(np.concatenate([self.biases[-1], -self.biases[-1]]))
        return DeepNetworks(weights, biases, self.activation, self.weight_std, self.bias_std)

    def signals(self, X: Array) -> tuple[list[Array], list[Array]]:
        """Return the inputs of every layer, divided by the square root of their number, s(h^k)/sqrt(m), and its outputs h^(k+1)."""
        signal = np.broadcast_to(X / np.sqrt(X.shape[-1]), (len(self.weights[0]), *X.shape))
        ins, outs = [], []
        for weights, biases in zip(self.weights, self.biases, strict=True):
            ins.append(signal)
            outs.append(self.weight_std * (signal @ weights) + self.bias_std * biases)
            signal = self.activation(outs[-1]) / np.sqrt(weights.shape[-1])
        return ins, outs

    def outputs(self, X: Array) -> Array:
        """Return f at the rows of X, shape (networks, rows, outputs)."""
        return self.signals(X)[1][-1]

    def last_hidden(self, X: Array) -> Array:
        """Return the inputs of the last layer, whose covariance is that of the outputs over draws of the last layer."""
        return self.signals(X)[0][-1]

    def backward(self, outs: list[Array], slopes: Array) -> list[Array]:
        """Return derivatives of sum(slopes x f) with respect to the outputs of every layer."""
        derivatives = [slopes]
        for weights, out in zip(self.weights[:0:-1], outs[-2::-1], strict=True):
            back = self.weight_std / np.sqrt(weights.shape[1]) * (derivatives[0] @ weights.swapaxes(1, 2))
            derivatives.insert(0, back * self.activation.derivative(out))
        return derivatives

    def tangent_kernel(self, X: Array, output: int = 0, other: int | None = None) -> Array:
        """Return the sum over parameters of products of derivatives of two outputs, shape (networks, rows, rows).

        Rows belong to `output` and columns to `other`, which is the same output by default. Each layer contributes (Gram matrix of its
        inputs) x (product of the backpropagated derivatives of both outputs). No derivative is stored.
        """
        ins, outs = self.signals(X)
        backs = self._derivatives(outs, output)
        others = backs if other is None else self._derivatives(outs, other)
        total = np.zeros((len(self.weights[0]), len(X), len(X)))
        for signal, back, second in zip(ins, backs, others, strict=True):
            forward = self.weight_std**2 * (signal @ signal.swapaxes(1, 2)) + self.bias_std**2
            total += forward * (back @ second.swapaxes(1, 2))
        return total

    def _derivatives(self, outs: list[Array], output: int) -> list[Array]:
        slopes = np.zeros_like(outs[-1])
        slopes[..., output] = 1.0
        return self.backward(outs, slopes)

    def descend(self, X: Array, y: Array, step: float) -> None:
        """Take one step of gradient descent on |y - f|^2 / (2n), in place."""
        ins, outs = self.signals(X)
        slopes = (outs[-1] - y[:, None]) / len(X)
        for layer, back in enumerate(self.backward(outs, slopes)):
            self.weights[layer] -= step * self.weight_std * (ins[layer].swapaxes(1, 2) @ back)
            self.biases[layer] -= step * self.bias_std * back.sum(axis=1, keepdims=True)


def spectral_norms(matrices: Array, columns: int = 8, rounds: int = 3) -> Array:
    """Return the largest singular value of each matrix by subspace iteration, for matrices of low rank up to small remainders.

    The relative error is about (s_k / s_1)^(2 rounds), where k - 1 is the number of columns of the iterated block.

    >>> spectral_norms(np.array([np.diag([3.0, 1.0, 0.0])])).round(12).tolist()
    [3.0]
    """
    block = np.random.default_rng(0).standard_normal((matrices.shape[-1], min(columns, matrices.shape[-1])))
    for _ in range(rounds):
        block = np.linalg.qr(matrices.swapaxes(-1, -2) @ (matrices @ block))[0]
    return np.asarray(np.linalg.norm(matrices @ block, ord=2, axis=(-2, -1)))


def waves(rows: int, columns: int, shift: float = 0.0) -> Array:
    """Return a fixed table of numbers between -1 and 1 without symmetries, sin(1 + 1.7 i + 2.3 a + 0.5 i a + shift).

    >>> waves(1, 2).round(6).tolist()
    [[0.841471, -0.157746]]
    """
    i, a = np.arange(rows)[:, None], np.arange(columns)
    return np.sin(1 + 1.7 * i + 2.3 * a + 0.5 * i * a + shift)


# -- residual networks of finite width at their start, with signals and tangent kernels layer by layer ---------------


def residual_tangent_kernel(
    rng: np.random.Generator, X: Array, width: int, blocks: int, branch: float, activation: Any = "relu"
) -> Array:
    """Return the tangent kernel of one residual network between the rows of X, from Gram matrices of signals and derivatives.

    >>> residual_tangent_kernel(np.random.default_rng(0), np.eye(3), 50, 2, 0.5).shape
    (3, 3)
    """
    s, scale = Activation(activation), branch / np.sqrt(width)
    first = rng.standard_normal((X.shape[1], width))
    hidden = [rng.standard_normal((width, width)) for _ in range(blocks)]
    signals = [X @ first / np.sqrt(X.shape[1])]
    for weights in hidden:
        signals.append(signals[-1] + scale * s(signals[-1]) @ weights)
    back = np.tile(rng.standard_normal(width) / np.sqrt(width), (len(X), 1))
    kernel = signals[-1] @ signals[-1].T / width
    for weights, signal in zip(hidden[::-1], signals[-2::-1], strict=True):
        inside = s(signal)
        kernel += scale**2 * (inside @ inside.T) * (back @ back.T)
        back = back + scale * (back @ weights.T) * s.derivative(signal)
    return np.asarray(kernel + (X @ X.T / X.shape[1]) * (back @ back.T))
