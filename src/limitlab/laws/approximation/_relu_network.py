"""Training of the two-layer ReLU network f(x) = sum_i a_i relu(<w_i, x>) + c on fresh Gaussian inputs by Adam with a decaying step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import Refused
from limitlab.laws.approximation.exact import overlaps, pseudo_inverse, relu_tangent_kernel, unit_rows
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
    """Return the mean squared error on new inputs after one pass of Adam over `steps` fresh batches.

    Both layers and the intercept are trained. At the start the neurons have norm about 1, the outer weights are +-1/sqrt(width), and the
    intercept is 0. The step falls to zero along half a cosine.

    Examples
    --------
    >>> risk = trained_relu_risk(np.random.default_rng(0), lambda x: np.abs(x[:, 0]) - 0.8, 3, 4, steps=300)
    >>> bool(risk < 0.05)
    True
    """
    weights = width * dimension
    state = np.zeros(weights + width + 1)  # one vector of all parameters, so that Adam updates it in one operation
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


# -- Exact risk of drawn ReLU neurons on a quadratic target (docs/theory/approximation.md, eqs. 29 and 30) ----------------


def relu_tangent_risk(W: ArrayLike, eigenvalues: ArrayLike) -> float:
    """Return the relative risk of the best fit of <x, B x> (B diagonal) by an intercept and the tangent features of ReLU neurons W.

    The inputs are standard Gaussian, and the risk is divided by the variance of the target.

    >>> round(relu_tangent_risk(np.eye(4), (1.0, 0.5, 0.0, -0.5)), 4)
    0.3996
    """
    w, B = unit_rows(W), np.asarray(eigenvalues, dtype=float)
    if B.shape != (w.shape[1],) or not B.any():
        raise Refused(f"eigenvalues of shape {B.shape} are not allowed: must be {w.shape[1]} numbers that are not all 0")
    root = np.sqrt(2 * np.pi)
    mean = w.ravel() / root
    v = (2 * B * w - (w**2 @ B)[:, None] * w).ravel() / root
    inverse = pseudo_inverse(relu_tangent_kernel(w, overlaps(w)) - np.outer(mean, mean))
    return float(1 - v @ inverse @ v / (2 * B @ B))
