"""The example networks that claims, figures and benchmarks of two-layer dynamics share."""

from __future__ import annotations

from typing import Any

import numpy as np

from limitlab.laws.dmft.two_layer import TwoLayerDynamics

SINGLE_INDEX: dict[str, Any] = dict(
    kernel=(0, 0.5, 0.3, 0.2), target=(0, 0.5, 0.3), target_norm=1.0, start_second_layer=1.0, start_overlap=0.1, noise=0.5
)
"""h = 0.5 q + 0.3 q^2 + 0.2 q^3, phihat = 0.5 v + 0.3 v^2, noise 1/2, a start of order one."""


def single_index(width: int, **changes: Any) -> TwoLayerDynamics:
    """Return the running example with n = m d / 2 samples.

    >>> single_index(20).sample_ratio
    10.0
    """
    return TwoLayerDynamics(**{**SINGLE_INDEX, "width": width, "sample_ratio": 0.5 * width, **changes})


def tanh_network(**changes: Any) -> TwoLayerDynamics:
    """Return a law of eight tanh neurons that learn tanh(2 u) from eight samples per dimension.

    The Gaussian model describes this real network well.

    >>> tanh_network().width
    8
    """
    parameters: dict[str, Any] = dict(
        width=8, sample_ratio=8, activation="tanh", target_function=steep_tanh, experiment_model="network"
    )
    return TwoLayerDynamics(**{**parameters, **changes})


def steep_tanh(x: Any) -> Any:
    """Return tanh(2 x).

    >>> float(steep_tanh(0.0))
    0.0
    """
    return np.tanh(2 * x)
