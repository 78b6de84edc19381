"""A convolution: kernels are averaged over the filter's offsets, the same for both positions (docs/theory/tangent_kernels.md, eq. 7)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import numpy as np

from limitlab.errors import Refused
from limitlab.laws.kernels.layers.layer import Array, Kernels, Parameters

__all__ = ["Convolution"]


@dataclass(frozen=True)
class Convolution:
    """y_p = w sum_o W_o x_(p+o) / sqrt(offsets x channels) + b B over a line or an image.

    Parameters
    ----------
    filter
        Side of the filter, an odd number.
    weight_std, bias_std
        Standard deviations w of the weights and b of the biases.
    padding
        "circular" (the edges meet) or "zero".
    outputs
        Channels of the output of a finite network; None: its width.

    Examples
    --------
    >>> from limitlab.laws import Flatten, Network
    >>> Network(Convolution(3), Flatten()).nngp(np.ones((1, 5, 2))).tolist()
    [[1.0]]
    """

    filter: int = 3
    weight_std: float = 1.0
    bias_std: float = 0.0
    padding: Literal["circular", "zero"] = "circular"
    outputs: int | None = None

    def __post_init__(self) -> None:
        if self.filter < 1 or self.filter % 2 == 0:
            raise Refused(f"filter = {self.filter!r} is not allowed: must be an odd number of at least 1")
        if self.padding not in ("circular", "zero"):
            raise Refused(f"padding = {self.padding!r} is not allowed: must be 'circular' or 'zero'")

    def offsets(self, dimensions: int) -> list[tuple[int, ...]]:
        """All offsets of the filter."""
        if dimensions == 0:
            raise Refused("a convolution needs inputs with positions: give tables of shape (inputs, positions, channels)")
        half = self.filter // 2
        return list(product(range(-half, half + 1), repeat=dimensions))

    def kernels(self, inputs: Kernels) -> Kernels:
        """The kernels of the output."""
        w2, b2 = self.weight_std**2, self.bias_std**2
        first, second, nngp = (w2 * self._average(part, inputs.shape) + b2 for part in inputs.covariances)
        ntk = w2 * self._average(inputs.ntk, inputs.shape) + nngp if inputs.ntk.any() else nngp.copy()
        return replace(inputs, first=first, second=second, nngp=nngp, ntk=ntk)

    def _average(self, table: Array, shape: tuple[int, ...]) -> Array:
        """The mean over offsets o of the entries (p + o, q + o)."""
        from limitlab.laws.kernels.layers._compiled import diagonal_sums

        count = len(self.offsets(len(shape)))
        for axis, side in enumerate(shape):
            before, after = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
            pairs = np.ascontiguousarray(table).reshape(-1, *table.shape[-2:])
            table = diagonal_sums(pairs, before, side, after, self.filter // 2, self.padding == "circular").reshape(
                table.shape
            )
        return table / count

    def start(self, rng: np.random.Generator, shape: tuple[int, ...], width: int) -> tuple[Parameters, tuple[int, ...]]:
        """Standard Gaussian weights (offsets, channels, outputs) and biases."""
        outputs = width if self.outputs is None else self.outputs
        count = len(self.offsets(len(shape) - 1))
        return [rng.standard_normal((count, shape[-1], outputs)), rng.standard_normal(outputs)], (*shape[:-1], outputs)

    def apply(self, parameters: Parameters, x: Any) -> Any:
        """The sum over offsets of shifted signals times weights."""
        weights, biases = parameters
        numpy = x.__array_namespace__()
        axes = tuple(range(1, x.ndim - 1))
        moved = [shifted(x, axes, offset, self.padding, numpy) for offset in self.offsets(len(axes))]
        total = sum(part @ weights[k] for k, part in enumerate(moved))
        return self.weight_std / np.sqrt(len(moved) * x.shape[-1]) * total + self.bias_std * biases


def shifted(x: Any, axes: tuple[int, ...], offset: tuple[int, ...], padding: str, numpy: Any = np) -> Any:
    """x at p + offset for every position p, around the edge or with zeros beyond it.

    >>> shifted(np.arange(4), (0,), (1,), "zero").tolist(), shifted(np.arange(4), (0,), (1,), "circular").tolist()
    ([1, 2, 3, 0], [1, 2, 3, 0])
    >>> shifted(np.arange(4), (0,), (-1,), "zero").tolist()
    [0, 0, 1, 2]
    """
    moved = numpy.roll(x, tuple(-step for step in offset), axes)
    if padding == "circular":
        return moved
    for axis, step in zip(axes, offset, strict=True):
        place = np.arange(x.shape[axis]) + step
        inside = ((place >= 0) & (place < x.shape[axis])).reshape([-1 if k == axis else 1 for k in range(x.ndim)])
        moved = moved * inside
    return moved
