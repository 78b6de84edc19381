"""Bounds on the second layer and on the generalisation gap of a two-layer network, evaluated along a trajectory.

The section "Timeline" of docs/theory/two_layer_dynamics.md names them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limitlab.laws.dmft.two_layer import TwoLayerDynamics

Floats = NDArray[np.float64]


def bound_diagnostics(law: TwoLayerDynamics) -> dict[str, Floats]:
    """Return the generalisation gap along a trajectory, the bounds on it and on the second layer, and the ratios to the bounds.

    The theory does not give the constant factors of the bounds. They are set to 1 here. The keys are `time` (the population time
    t_hat = n t / (m d)), `gap` (test minus train error), `growth_bound` (a0 + a1 t_hat, with a0 = |a(0)| and a1 = tau + a0),
    `growth_ratio` (|a| / growth_bound), `gap_bound` (growth_bound^2 sqrt(d/n)) and `gap_ratio` (gap / gap_bound).

    >>> bounds = bound_diagnostics(TwoLayerDynamics(times=(0.0, 1.0, 4.0), solver_steps=100))
    >>> bool(bounds["growth_ratio"].max() <= 1)
    True
    """
    result = law.theory()
    t_hat = np.atleast_1d(np.asarray(law.times, dtype=float)) * law.sample_ratio / law.width
    a0 = abs(law.start_second_layer)
    growth = a0 + (law.noise + a0) * t_hat
    gap = np.atleast_1d(result.test_error.values - result.train_error.values)
    bound = growth**2 / np.sqrt(law.sample_ratio)
    return {
        "time": t_hat,
        "gap": gap,
        "growth_bound": growth,
        "growth_ratio": np.abs(np.atleast_1d(result.second_layer.values)) / growth,
        "gap_bound": bound,
        "gap_ratio": gap / bound,
    }
