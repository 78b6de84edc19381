"""A two-layer ReLU network trained on fresh Gaussian inputs: f(x) = sum_i a_i relu(<w_i, x>) + c, by Adam with a decaying step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from limitlab.models.optimisers import Adam

Array = NDArray[np.float64]


def trained_relu_risk(
    rng: np.random.Generator,
    target: Callable[[Array], Array],
    dimension: int,
    width: int,
    *,
    steps: int = 3000,
    batch: int = 500,
    step: float = 0.03,
    test: int = 20_000,
) -> float:
    """Mean squared error on new inputs after one pass of Adam over `steps` fresh batches; the intercept is free.

    Both layers are trained, from neurons of norm 1 and outer weights +-1/sqrt(width); the step falls to zero along half a cosine.

    Examples
    --------
    >>> risk = trained_relu_risk(np.random.default_rng(0), lambda x: np.abs(x[:, 0]) - 0.8, 3, 4, steps=300)
    >>> bool(risk < 0.05)
    True
    """
    weights = width * dimension
    state = np.zeros(weights + width + 1)  # one vector: Adam moves it at once
    w, a, c = state[:weights].reshape(width, dimension), state[weights:-1], state[-1:]
    w[:] = rng.standard_normal((width, dimension)) / np.sqrt(dimension)
    a[:] = np.where(np.arange(width) % 2 == 0, 1.0, -1.0) / np.sqrt(width)
    slope, method = np.empty_like(state), Adam([state], step, steps)
    for _ in range(steps):
        x = rng.standard_normal((batch, dimension))
        active = np.maximum(x @ w.T, 0.0)
        residual = active @ a + c - target(x)
        back = (active > 0) * a
        back *= residual[:, None]
        slope[:weights], slope[weights:-1], slope[-1] = (back.T @ x).ravel(), residual @ active, residual.sum()
        method.move([slope / batch])
    x = rng.standard_normal((test, dimension))
    return float(np.mean((np.maximum(x @ w.T, 0.0) @ a + c - target(x)) ** 2))
