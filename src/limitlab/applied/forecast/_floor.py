"""How much of the targets is noise: the value that makes the data most likely under the kernel's own Gaussian process.

With K/N = sum s_k u_k u_k' and the targets along u_k of mean square N c_k, y is Gaussian with covariance a (K/N + l); a is eliminated and l
minimises

    sum_k m_k log(s_k + l) + N log sum_k c_k / (s_k + l),          sigma^2 = l sum_k c_k / (s_k + l)                        (9a)

(docs/theory/learning_curves.md). No further decomposition is needed. It is where the continued error curve ends, not a claim about
the data.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limitlab.applied.forecast._spectrum import Spectrum

Array = NDArray[np.float64]

LOWEST, HIGHEST, NODES = 1e-9, 1e3, 240
"""Values of l over the mean diagonal of the kernel that are compared."""


def noise_floor(spectrum: Spectrum) -> float:
    """sigma^2 of (9a): the part of the targets' mean square that is noise; 0 where no noise is more likely than some.

    >>> rng = np.random.default_rng(0)
    >>> from limitlab.applied.forecast._spectrum import from_features
    >>> X = rng.standard_normal((400, 10))
    >>> noisy = from_features(X, X @ np.ones((10, 1)) + 2 * rng.standard_normal((400, 1)))
    >>> clean = from_features(X, X @ np.ones((10, 1)))
    >>> round(noise_floor(noisy), 1), noise_floor(clean) < 1e-6
    (4.1, True)
    """
    s, m, c, total = spectrum.eigenvalues, spectrum.multiplicities, spectrum.energies, spectrum.population
    levels = np.geomspace(LOWEST, HIGHEST, NODES) * spectrum.mean_diagonal
    shifted = s + levels[:, None]
    power = (c / shifted).sum(axis=1)
    cost = (m * np.log(shifted)).sum(axis=1) + total * np.log(np.maximum(power, np.finfo(float).tiny))
    best = int(np.argmin(cost))
    return 0.0 if best == 0 else float(min(levels[best] * power[best], c.sum()))
