"""A fully connected layer: Sigma -> w^2 Sigma + b^2, Theta -> w^2 Theta + the new Sigma (docs/theory/tangent_kernels.md, eq. 6)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limitlab.laws.kernels.layers.layer import Kernels, Parameters

__all__ = ["Dense"]


@dataclass(frozen=True)
class Dense:
    """y = w W x / sqrt(channels) + b B at every position, with entries of W, B from N(0, 1).

    Parameters
    ----------
    weight_std, bias_std
        Standard deviations w of the weights and b of the biases.
    outputs
        Channels of the output of a finite network; None: its width.

    Examples
    --------
    >>> from limitlab.laws import Network
    >>> Network(Dense(weight_std=2.0)).ntk([[1.0, 1.0]]).tolist()   # a linear model
    [[4.0]]
    """

    weight_std: float = 1.0
    bias_std: float = 0.0
    outputs: int | None = None

    def kernels(self, inputs: Kernels) -> Kernels:
        """The kernels of the output."""
        w2, b2 = self.weight_std**2, self.bias_std**2
        first, second, nngp = (w2 * part + b2 for part in inputs.covariances)
        return replace(inputs, first=first, second=second, nngp=nngp, ntk=w2 * inputs.ntk + nngp)

    def start(self, rng: np.random.Generator, shape: tuple[int, ...], width: int) -> tuple[Parameters, tuple[int, ...]]:
        """Standard Gaussian weights (channels, outputs) and biases."""
        outputs = width if self.outputs is None else self.outputs
        return [rng.standard_normal((shape[-1], outputs)), rng.standard_normal(outputs)], (*shape[:-1], outputs)

    def apply(self, parameters: Parameters, x: Any) -> Any:
        """The signal times the weights, plus the biases."""
        weights, biases = parameters
        return self.weight_std / np.sqrt(x.shape[-1]) * (x @ weights) + self.bias_std * biases
