"""Residual networks of finite width at their start: signals and tangent kernels, layer by layer.

h_0 = x W_0/sqrt(d),   h_(l+1) = h_l + (b/sqrt(N)) s(h_l) W_l,   f = h_L v/sqrt(N),   entries independent N(0, 1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.models.activations import Activation

Array = NDArray[Any]


def residual_tangent_kernel(
    rng: np.random.Generator, X: Array, width: int, blocks: int, branch: float, activation: Any = "relu"
) -> Array:
    """The tangent kernel of one network between the rows of X: Gram matrices of signals times those of what comes back.

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
