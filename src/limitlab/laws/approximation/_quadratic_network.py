"""The network of quadratic neurons f(x) = sum_i <w_i, x>^2 + c, trained by one pass of SGD on Gaussian inputs.

The target is b_0 + <x, B x> with B diagonal. A step of size h on a fresh sample, with residual e = target - f(x), is

    w_i <- w_i + 4 h e <w_i, x> x,       c <- c + 2 h m e,

where m = 1 is plain SGD. With many neurons the intercept then converges later than the neurons, because it moves a distance of order d at a
speed of order 1. With m = d (`intercept_pace`) the intercept converges together with the neurons.

>>> rng = np.random.default_rng(0)
>>> B = np.array([1.0, 0.2, 0.0])
>>> w, c = one_pass(rng, B, 0.5 * np.eye(3)[:1], 0.0, -1.2, step=1e-3, steps=5000)
>>> bool(abs(w[0, 0]) > 0.9)
True
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

BLOCK = 2_000_000
"""Number of random values that are drawn at once."""


def one_pass(
    rng: np.random.Generator,
    eigenvalues: Array,
    neurons: Array,
    intercept: float,
    constant: float,
    *,
    step: float,
    steps: int,
    intercept_pace: float = 1.0,
) -> tuple[Array, float]:
    """Return the neurons (one per row) and the intercept after SGD on `steps` samples, each of which is used once."""
    w, c, d = np.array(neurons, dtype=float, order="C"), float(intercept), eigenvalues.size
    rows = max(1, BLOCK // d)
    for first in range(0, steps, rows):
        x = rng.standard_normal((min(rows, steps - first), d))
        c = float(_compiled()(w, c, x, np.asarray(eigenvalues, dtype=float), constant, step, intercept_pace))
    return w, c


@lru_cache(maxsize=1)
def _compiled() -> Any:
    from numba import njit

    return njit(cache=True)(_run)


def _run(w: Array, c: float, inputs: Array, eigenvalues: Array, constant: float, step: float, pace: float) -> float:
    count, d = w.shape
    scores = np.empty(count)
    for k in range(inputs.shape[0]):
        x = inputs[k]
        residual = constant - c
        for a in range(d):
            residual += eigenvalues[a] * x[a] * x[a]
        for i in range(count):
            score = 0.0
            for a in range(d):
                score += w[i, a] * x[a]
            scores[i] = score
            residual -= score * score
        for i in range(count):
            push = 4 * step * residual * scores[i]
            for a in range(d):
                w[i, a] += push * x[a]
        c += 2 * step * pace * residual
    return c
