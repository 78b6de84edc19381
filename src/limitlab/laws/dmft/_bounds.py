"""Bounds of the theory on growth and overfitting of a two-layer network, along a trajectory.

Section "Bounds" of docs/theory/two_layer_dynamics.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limitlab.laws.dmft.two_layer import TwoLayerDynamics

Floats = NDArray[np.float64]


def bound_diagnostics(law: TwoLayerDynamics) -> dict[str, Floats]:
    """Return the growth laws along a trajectory, with their unknown constants set to 1, and the ratios to them.

    Keys: `time` (population time that = n t / (m d)), `gap` (test minus train error), `growth_bound` = a0 + a1 that with
    a1 = tau + a0, `growth_ratio` = a / growth_bound, `gap_bound` = growth_bound^2 sqrt(d/n) and `gap_ratio`.

    >>> bounds = bound_diagnostics(TwoLayerDynamics(times=(0.0, 1.0, 4.0), solver_steps=100))
    >>> bool(bounds["growth_ratio"].max() <= 1)
    True
    """
    result = law.theory()
    that = np.atleast_1d(np.asarray(law.times, dtype=float)) * law.sample_ratio / law.width
    a0 = abs(law.start_second_layer)
    growth = a0 + (law.noise + a0) * that
    gap = np.atleast_1d(result.test_error.values - result.train_error.values)
    bound = growth**2 / np.sqrt(law.sample_ratio)
    return {
        "time": that,
        "gap": gap,
        "growth_bound": growth,
        "growth_ratio": np.abs(np.atleast_1d(result.second_layer.values)) / growth,
        "gap_bound": bound,
        "gap_ratio": gap / bound,
    }
