"""Layers one after another and side by side; a residual block is a branch beside the identity (docs/theory/tangent_kernels.md, eq. 9)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from limitlab.errors import Refused
from limitlab.laws.kernels.layers.convolution import Convolution
from limitlab.laws.kernels.layers.dense import Dense
from limitlab.laws.kernels.layers.layer import Kernels, Layer, Parameters

__all__ = ["Parallel", "Residual", "Serial"]


@dataclass(frozen=True, init=False)
class Serial:
    """Layers one after another.

    >>> from limitlab.laws import Dense, Nonlinear
    >>> len(Serial(Dense(), Nonlinear("relu")).layers)
    2
    """

    layers: tuple[Layer, ...]

    def __init__(self, *layers: Layer):
        object.__setattr__(self, "layers", layers)

    def kernels(self, inputs: Kernels) -> Kernels:
        """The kernels after the last layer."""
        for layer in self.layers:
            inputs = layer.kernels(inputs)
        return inputs

    def start(self, rng: np.random.Generator, shape: tuple[int, ...], width: int) -> tuple[Parameters, tuple[int, ...]]:
        """The parameters of every layer."""
        parameters = []
        for layer in self.layers:
            own, shape = layer.start(rng, shape, width)
            parameters.append(own)
        return parameters, shape

    def apply(self, parameters: Parameters, x: Any) -> Any:
        """The output of the last layer."""
        for layer, own in zip(self.layers, parameters, strict=True):
            x = layer.apply(own, x)
        return x


@dataclass(frozen=True, init=False)
class Parallel:
    """The sum of branches that read the same signal.

    All branches but one must end in weights of their own (`Dense` or `Convolution`): then their outputs are uncorrelated and their
    kernels add up.

    Examples
    --------
    >>> from limitlab.laws import Dense, Network
    >>> Network(Parallel(Dense(), Dense())).nngp([[1.0, 1.0]]).tolist()
    [[2.0]]
    """

    branches: tuple[Layer, ...]

    def __init__(self, *branches: Layer):
        object.__setattr__(self, "branches", branches)
        bare = [branch for branch in branches if not ends_in_weights(branch)]
        if not branches or len(bare) > 1:
            raise Refused(
                f"branches = {bare} are not allowed: all branches but one must end in Dense or Convolution, or their outputs are correlated"
            )

    def kernels(self, inputs: Kernels) -> Kernels:
        """The sums of the branches' kernels."""
        found = [branch.kernels(inputs) for branch in self.branches]
        if len({part.nngp.shape for part in found}) > 1:
            raise Refused("branches are not allowed: their outputs have different positions and cannot be added")
        first, second, nngp, ntk = (
            np.sum([getattr(part, name) for part in found], axis=0) for name in ("first", "second", "nngp", "ntk")
        )
        return Kernels(first, second, nngp, ntk, found[0].shape)

    def start(self, rng: np.random.Generator, shape: tuple[int, ...], width: int) -> tuple[Parameters, tuple[int, ...]]:
        """The parameters of every branch."""
        made = [branch.start(rng, shape, width) for branch in self.branches]
        if len({end for _, end in made}) > 1:
            raise Refused(
                f"branches are not allowed: their outputs have shapes {[end for _, end in made]} and cannot be added"
            )
        return [own for own, _ in made], made[0][1]

    def apply(self, parameters: Parameters, x: Any) -> Any:
        """The sum of the outputs."""
        return sum(branch.apply(own, x) for branch, own in zip(self.branches, parameters, strict=True))


class Residual(Parallel):
    """x plus a branch of it, y = x + branch(x).

    >>> from limitlab.laws import Dense, Network, Nonlinear
    >>> Network(Dense(), Residual(Nonlinear("relu"), Dense()), Dense()).nngp([[2.0, 0.0]]).tolist()
    [[3.0]]
    """

    def __init__(self, *branch: Layer):
        super().__init__(Serial(), Serial(*branch))


def ends_in_weights(layer: Layer) -> bool:
    """Whether the last thing a layer does is to multiply by weights of its own.

    >>> ends_in_weights(Serial()), ends_in_weights(Dense())
    (False, True)
    """
    if isinstance(layer, Serial):
        return bool(layer.layers) and ends_in_weights(layer.layers[-1])
    if isinstance(layer, Parallel):
        return all(map(ends_in_weights, layer.branches))
    return isinstance(layer, (Dense, Convolution))
