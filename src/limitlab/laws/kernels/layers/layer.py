"""What a layer is, and the kernels that layers map.

A signal has positions (the pixels of an image; one position for a plain vector). Between positions p of an input x and q of an input y,
`nngp` is the covariance of the signals at the start and `ntk` the tangent kernel, per channel (docs/theory/tangent_kernels.md, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Parameters = Any  # arrays in lists and tuples


@dataclass(frozen=True)
class Kernels:
    """Kernels between all inputs of two tables at all positions.

    Attributes
    ----------
    first, second
        Covariances within each input of the first and of the second table, shape (inputs, P, P).
    nngp, ntk
        Covariance and tangent kernel between them, shape (inputs, inputs, P, P).
    shape
        How the P positions are arranged: () for one, (P,) on a line, (height, width) in an image.
    """

    first: Array
    second: Array
    nngp: Array
    ntk: Array
    shape: tuple[int, ...] = ()

    @property
    def covariances(self) -> tuple[Array, Array, Array]:
        """What a linear layer treats alike."""
        return self.first, self.second, self.nngp


class Layer(Protocol):
    """One part of a network: its kernels at infinite width, its parameters and its function at finite width."""

    def kernels(self, inputs: Kernels) -> Kernels:
        """The kernels of the output from those of the input."""
        ...

    def start(self, rng: np.random.Generator, shape: tuple[int, ...], width: int) -> tuple[Parameters, tuple[int, ...]]:
        """Parameters at the start for a signal of this shape (positions, then channels), and the shape of the output."""
        ...

    def apply(self, parameters: Parameters, x: Any) -> Any:
        """The output for inputs of shape (inputs, positions, channels); NumPy or JAX arrays."""
        ...


def input_kernels(X: Array, Y: Array) -> Kernels:
    """Kernels of the inputs themselves, per channel: tables (inputs, channels) or images (inputs, *positions, channels).

    >>> input_kernels(np.ones((1, 2)), np.ones((3, 2))).nngp.shape
    (1, 3, 1, 1)
    """
    shape, channels = X.shape[1:-1], X.shape[-1]
    first, second = (table.reshape(len(table), -1, channels) for table in (X, Y))
    own = [np.einsum("ipc,iqc->ipq", table, table) / channels for table in (first, second)]
    positions = first.shape[1]
    flat = (first.reshape(-1, channels) @ second.reshape(-1, channels).T).reshape(len(X), positions, len(Y), positions)
    nngp = np.ascontiguousarray(flat.transpose(0, 2, 1, 3)) / channels
    return Kernels(own[0], own[1], nngp, np.zeros_like(nngp), shape)
