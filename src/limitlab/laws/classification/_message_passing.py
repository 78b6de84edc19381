"""Generalised approximate message passing (Rangan 2011) for labels of a known channel and coefficients of a known prior."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.laws.classification._channels import LEAST_VARIANCE, Channel, Prior

Array = NDArray[np.float64]

STEPS = 200
SETTLED = 1e-6
STUCK = 0.01  # random start of a channel that does not see the sign


class Estimate(NamedTuple):
    """The last estimate: posterior means, their mean variance V, and the noise S with which entries are seen."""

    mean: Array
    variance: float
    seen_noise: float


def message_passing(
    A: Array, y: Array, channel: Channel, prior: Prior, rng: np.random.Generator, steps: int = STEPS
) -> Estimate:
    """Estimate x0 from labels of A x0, with entries of A of variance 1/p.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> A, x0 = rng.standard_normal((800, 200)) / 200**0.5, rng.standard_normal(200)
    >>> channel, prior = Channel("gaussian", noise=0.1), Prior("gaussian")
    >>> found = message_passing(A, channel.draw(rng, A @ x0), channel, prior, rng)
    >>> bool(np.mean((found.mean - x0) ** 2) < 0.01)
    True
    """
    n, p = A.shape
    a: Array = np.asarray(STUCK * rng.standard_normal(p)) if channel.name == "abs" else np.zeros(p)
    V, g, S = 1.0, np.zeros(n), 1.0
    for _ in range(steps):
        omega = A @ a - V * g
        g = channel.pull(y, omega, V)
        S = p / (n * max(float(np.mean(g**2)), 1e-12))
        new, spread = prior.posterior(a + S * (A.T @ g), S)
        moved = float(np.mean((new - a) ** 2))
        a, V = new, max(float(np.mean(spread)), LEAST_VARIANCE)
        if moved < SETTLED**2:
            break
    return Estimate(a, V, S)
