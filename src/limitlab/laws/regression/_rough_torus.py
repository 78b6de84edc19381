"""The interpolating smoother on a function that is rough everywhere: the rate of claim J4 measured, not computed.

The law of `singular_kernel` looks at the worst point of a cusp. A cusp sampled at random test points would show a faster
rate, because nearly all of its points are smooth. The lacunary series of `models.holder` is equally rough near every point
of the torus, and there is no boundary, so the average risk over test points shows the exponent itself. It repeats its shape
at every octave, so risks are compared at bandwidths one octave apart (`octave_samples`): in between, local slopes oscillate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limitlab.laws.regression._holder import rough_wave
from limitlab.laws.regression._smoothers import SingularKernelRegressor

Array = NDArray[np.float64]

SCALE = 0.5
"""The bandwidth is this many times n^{-1/(2 beta + d)}."""


def octave_samples(first: int, octaves: int, dimension: int, smoothness: float) -> list[int]:
    """Sample sizes from `first` on at which the bandwidth n^{-1/(2 beta + d)} halves each time.

    >>> octave_samples(500, 3, dimension=1, smoothness=0.5)
    [500, 2000, 8000]
    """
    return [round(first * 2.0 ** (octave * (2 * smoothness + dimension))) for octave in range(octaves)]


def measured_risk(
    samples: int,
    seed: int,
    dimension: int = 1,
    smoothness: float = 0.5,
    singularity: float = 0.3,
    noise: float = 0.5,
    queries: int = 2000,
) -> dict[str, float]:
    """One training set on the torus: risk at random queries, and how far the fit is from the labels it was given.

    The noise is averaged in closed form in `variance` and drawn in `training_gap`, the largest |f_n(X_i) - Y_i|.

    Examples
    --------
    >>> run = measured_risk(samples=500, seed=0)
    >>> run["training_gap"], 0 < run["excess_risk"] < 1
    (0.0, True)
    """
    rng = np.random.default_rng([seed, samples])
    bandwidth = SCALE * samples ** (-1 / (2 * smoothness + dimension))
    x, x_new = rng.random((samples, dimension)), rng.random((queries, dimension))
    clean, truth = rough_wave(x, smoothness), rough_wave(x_new, smoothness)
    labels = clean + noise * rng.standard_normal(samples)
    model = SingularKernelRegressor(bandwidth=bandwidth, singularity=singularity, period=1.0).fit(x, labels)
    query, sample, weight = model.weights(x_new)
    bias = np.bincount(query, weight * clean[sample], minlength=queries) - truth
    variance = noise**2 * np.bincount(query, weight**2, minlength=queries)
    return dict(
        squared_bias=float(np.mean(bias**2)),
        variance=float(np.mean(variance)),
        excess_risk=float(np.mean(bias**2 + variance)),
        training_gap=float(np.abs(model.predict(x[:queries]) - labels[:queries]).max()),
    )
