"""Layers that join positions: flattening, averaging all of them, averaging windows (docs/theory/tangent_kernels.md, eq. 8)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from limitlab.errors import Refused
from limitlab.laws.kernels.layers.layer import Array, Kernels, Parameters

__all__ = ["AveragePool", "Flatten", "GlobalAverage"]


@dataclass(frozen=True)
class Flatten:
    """All positions become channels: kernels are the mean over equal positions.

    >>> from limitlab.laws import Dense, Network
    >>> Network(Flatten(), Dense()).ntk(np.ones((1, 4, 2))).tolist()
    [[1.0]]
    """

    def kernels(self, inputs: Kernels) -> Kernels:
        """The mean of the diagonals."""
        return _one_position(inputs, lambda part: np.trace(part, axis1=-2, axis2=-1) / part.shape[-1])

    def start(self, rng: np.random.Generator, shape: tuple[int, ...], width: int) -> tuple[Parameters, tuple[int, ...]]:
        """There are no parameters."""
        return (), (math.prod(shape),)

    def apply(self, parameters: Parameters, x: Any) -> Any:
        """One row per input."""
        return x.reshape(len(x), -1)


@dataclass(frozen=True)
class GlobalAverage:
    """The mean over all positions: kernels are the mean over all pairs of positions.

    >>> from limitlab.laws import Dense, Network
    >>> Network(GlobalAverage(), Dense()).ntk(np.ones((1, 4, 2))).tolist()
    [[1.0]]
    """

    def kernels(self, inputs: Kernels) -> Kernels:
        """The mean of all entries."""
        return _one_position(inputs, lambda part: part.mean(axis=(-2, -1)))

    def start(self, rng: np.random.Generator, shape: tuple[int, ...], width: int) -> tuple[Parameters, tuple[int, ...]]:
        """There are no parameters."""
        return (), (shape[-1],)

    def apply(self, parameters: Parameters, x: Any) -> Any:
        """The mean signal."""
        return x.mean(axis=tuple(range(1, x.ndim - 1)))


@dataclass(frozen=True)
class AveragePool:
    """The mean over windows that do not overlap.

    Parameters
    ----------
    window
        Side of a window; it must divide every side of the signal.

    Examples
    --------
    >>> from limitlab.laws import Flatten, Network
    >>> Network(AveragePool(2), Flatten()).nngp(np.array([[[1.0], [3.0], [0.0], [2.0]]])).tolist()
    [[2.5]]
    """

    window: int = 2

    def kernels(self, inputs: Kernels) -> Kernels:
        """Means over pairs of windows."""
        shape = self._shape(inputs.shape)
        first, second, nngp, ntk = (self._pooled(part, inputs.shape) for part in (*inputs.covariances, inputs.ntk))
        return replace(inputs, first=first, second=second, nngp=nngp, ntk=ntk, shape=shape)

    def _shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if any(side % self.window for side in shape):
            raise Refused(f"window = {self.window} is not allowed: must divide every side of the signal, here {shape}")
        return tuple(side // self.window for side in shape)

    def _pooled(self, table: Array, shape: tuple[int, ...]) -> Array:
        lead, positions = table.shape[:-2], math.prod(self._shape(shape))
        split = [size for side in shape + shape for size in (side // self.window, self.window)]
        windows = tuple(len(lead) + 1 + 2 * axis for axis in range(2 * len(shape)))
        return np.asarray(table.reshape(*lead, *split).mean(axis=windows)).reshape(*lead, positions, positions)

    def start(self, rng: np.random.Generator, shape: tuple[int, ...], width: int) -> tuple[Parameters, tuple[int, ...]]:
        """There are no parameters."""
        return (), (*self._shape(shape[:-1]), shape[-1])

    def apply(self, parameters: Parameters, x: Any) -> Any:
        """The mean signal of every window."""
        split = [size for side in x.shape[1:-1] for size in (side // self.window, self.window)]
        windows = tuple(2 + 2 * axis for axis in range(x.ndim - 2))
        return x.reshape(len(x), *split, x.shape[-1]).mean(axis=windows)


def _one_position(inputs: Kernels, mean: Callable[[Array], Array]) -> Kernels:
    first, second, nngp, ntk = (mean(part)[..., None, None] for part in (*inputs.covariances, inputs.ntk))
    return Kernels(first, second, nngp, ntk, ())
