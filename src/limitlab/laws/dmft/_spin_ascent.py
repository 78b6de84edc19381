"""Gradient ascent on a random Gaussian polynomial on the sphere, with a constant speed or with a speed that the energy drives.

H(w) = sqrt(d) sum_k sqrt(c_k) <G_k, w^(k)> for independent standard Gaussian tensors G_k has the covariance d sum_k c_k <w, w'>^k. The
point w moves on the unit sphere of R^d with the velocity a grad H / d, projected on the tangent space. Runs come in pairs that climb H and
-H from the same start, so that most of the noise cancels in their mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import Refused
from limitlab.numerics.ode import follow, runge_kutta

Floats = NDArray[np.float64]


def random_polynomial(
    rng: np.random.Generator, coefficients: Sequence[float], dimension: int
) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Return the function that maps points w, one per column, to H(w)/d and its gradients.

    The coefficients c_k go from degree 0 to at most 3.

    >>> energy, gradient = random_polynomial(np.random.default_rng(0), (0.0, 0.0, 1.0), 4)(np.eye(4)[:, :1])
    >>> bool(abs(gradient[0, 0] - 2 * energy[0]) < 1e-12)  # homogeneous of degree 2
    True
    """
    if len(coefficients) > 4 and any(coefficients[4:]):
        raise Refused(f"coefficients = {tuple(coefficients)} is not allowed: tensors of degree above 3 do not fit in memory")
    tensors = {}
    for degree, c in enumerate(coefficients):
        if degree and c:
            tensor = math.sqrt(c / dimension) * rng.standard_normal((dimension,) * degree)
            orders = list(permutations(range(degree)))
            tensors[degree] = np.mean([np.transpose(tensor, order) for order in orders], axis=0)

    def value(w: Floats) -> tuple[Floats, Floats]:
        energy, gradient = np.zeros(w.shape[1]), np.zeros_like(w)
        for degree, tensor in tensors.items():
            part = np.broadcast_to(tensor[..., None], (*tensor.shape, 1)) if degree == 1 else tensor @ w
            if degree == 3:
                part = np.einsum("ijr,jr->ir", part, w)
            energy = energy + np.sum(part * w, axis=0)
            gradient = gradient + degree * part
        return energy, gradient

    return value


def ascent(
    rng: np.random.Generator,
    coefficients: Sequence[float],
    dimension: int,
    amplitude: float,
    driven: bool,
    times: Sequence[float] | Floats,
    pairs: int = 4,
    step: float = 0.1,
) -> dict[str, Floats]:
    """Return the means of a, s, <w, w(0)> and H/d over pairs of runs, at the times.

    The equations are dw/dx = a P_w grad H/d and ds/dx = a, where P_w projects on the tangent space of the sphere. If `driven`, also
    da/dx = H/d. Otherwise a is constant and equal to `amplitude`.

    >>> means = ascent(np.random.default_rng(0), (0.0, 0.0, 1.0), 20, 1.0, False, [0.0, 2.0])
    >>> bool(abs(means["energy"][0]) < 1e-12 and means["energy"][1] > 0.5), means["clock"].round(9).tolist()
    (True, [0.0, 2.0])
    """
    field = random_polynomial(rng, coefficients, dimension)
    first = np.repeat(rng.standard_normal((dimension, pairs)), 2, axis=1)
    first /= np.linalg.norm(first, axis=0)
    sign = np.tile([1.0, -1.0], pairs)

    def velocity(_: float, state: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        w, (a, _clock) = state
        energy, gradient = field(w)
        across = gradient - np.sum(gradient * w, axis=0) * w
        return a * sign * across, np.stack([sign * energy if driven else np.zeros_like(a), a])

    def settle(state: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        return state[0] / np.linalg.norm(state[0], axis=0), state[1]

    start = (first, np.stack([np.full(2 * pairs, amplitude), np.zeros(2 * pairs)]))
    rows = [
        [*extra.mean(axis=1), np.mean(np.sum(w * first, axis=0)), np.mean(sign * field(w)[0])]
        for w, extra in follow(runge_kutta(velocity, settle), start, times, step)
    ]
    return dict(zip(("second_layer", "clock", "correlation_with_start", "energy"), np.array(rows).T, strict=True))
