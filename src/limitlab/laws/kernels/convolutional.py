"""Kernels of convolutional networks of infinite width, for one pair of inputs or tables of images.

`conv_ntk` computes them for one pair through `depth` convolutions with an activation after each, a readout that flattens the positions or
averages them, and a last dense layer (docs/theory/tangent_kernels.md, eqs. 7-8). `limitlab.laws.Network` composes other networks.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from limitlab._core.checks import one_of, whole
from limitlab.laws.kernels.layers.layer import Convolution, Dense, Flatten, GlobalAverage, Layer, Nonlinear
from limitlab.laws.kernels.layers.network import Network

__all__ = ["conv_ntk", "convolutional"]

Readout = Literal["flatten", "gap"]


def conv_ntk(
    x: ArrayLike,
    y: ArrayLike,
    depth: int = 2,
    filter: int = 3,
    readout: Readout = "flatten",
    bias_std: float = 0.0,
    activation: Any = "relu",
    weight_std: float = 1.0,
) -> tuple[float, float]:
    """Return the NNGP kernel and the tangent kernel of a convolutional network between two inputs.

    The convolutions are circular. The NNGP kernel is the covariance of the outputs at the start, in the limit of infinite width.

    Parameters
    ----------
    x, y
        Two inputs: (positions, channels), or images (height, width, channels).
    depth
        Number of convolutions, each with an activation after it.
    filter
        Side of the filters, an odd number.
    readout
        "flatten" or "gap" (global average) before the last dense layer.
    bias_std, activation, weight_std
        As in `ntk`.

    Examples
    --------
    >>> conv_ntk([[1.0], [0.0], [0.0]], [[1.0], [0.0], [0.0]], depth=1)
    (0.16666666666666666, 0.3333333333333333)
    """
    first, second = (np.asarray(image, dtype=float)[None] for image in (x, y))
    pair = convolutional(depth, filter, readout, bias_std, activation, weight_std).kernels(first, second)
    return float(pair.nngp[0, 0]), float(pair.ntk[0, 0])


def convolutional(
    depth: int = 2,
    filter: int = 3,
    readout: Readout = "flatten",
    bias_std: float = 0.0,
    activation: Any = "relu",
    weight_std: float = 1.0,
    outputs: int | None = 1,
) -> Network:
    """Return the network of `conv_ntk` for tables of inputs, with the same arguments.

    >>> convolutional(depth=1).ntk(np.array([[[1.0], [0.0], [0.0]]])).tolist()
    [[0.3333333333333333]]
    """
    whole("depth", depth, least=0)
    one_of("readout", readout, ("flatten", "gap"))
    parts: list[Layer] = []
    for _ in range(depth):
        parts += [Convolution(filter, weight_std, bias_std), Nonlinear(activation)]
    return Network(*parts, Flatten() if readout == "flatten" else GlobalAverage(), Dense(weight_std, bias_std, outputs))
