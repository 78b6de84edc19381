"""Kernels of convolutional networks of infinite width: one pair of inputs, and tables of images.

`conv_ntk` follows one pair through `depth` convolutions with an activation after each, a readout that flattens the positions or
averages them, and a last dense layer (docs/theory/tangent_kernels.md, eqs. 7-8). Longer programs are made of `limitlab.laws.Network`.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from limitlab.errors import Refused
from limitlab.laws.kernels.layers.convolution import Convolution
from limitlab.laws.kernels.layers.dense import Dense
from limitlab.laws.kernels.layers.layer import Layer
from limitlab.laws.kernels.layers.network import Network
from limitlab.laws.kernels.layers.nonlinear import Nonlinear
from limitlab.laws.kernels.layers.pooling import Flatten, GlobalAverage

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
    """NNGP and tangent kernel of a convolutional network (circular) between two inputs of shape (positions, channels).

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
    found = convolutional(depth, filter, readout, bias_std, activation, weight_std).kernels(first, second)
    return float(found.nngp[0, 0]), float(found.ntk[0, 0])


def convolutional(
    depth: int = 2,
    filter: int = 3,
    readout: Readout = "flatten",
    bias_std: float = 0.0,
    activation: Any = "relu",
    weight_std: float = 1.0,
    outputs: int | None = 1,
) -> Network:
    """The network of `conv_ntk`, for tables of inputs; arguments as there.

    >>> convolutional(depth=1).ntk(np.array([[[1.0], [0.0], [0.0]]])).tolist()
    [[0.3333333333333333]]
    """
    if depth < 0:
        raise Refused(f"depth = {depth!r} is not allowed: must be a whole number of at least 0 (convolutions)")
    if readout not in ("flatten", "gap"):
        raise Refused(f"readout = {readout!r} is not allowed: must be 'flatten' or 'gap'")
    parts: list[Layer] = []
    for _ in range(depth):
        parts += [Convolution(filter, weight_std, bias_std), Nonlinear(activation)]
    return Network(*parts, Flatten() if readout == "flatten" else GlobalAverage(), Dense(weight_std, bias_std, outputs))
