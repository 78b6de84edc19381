"""Two-layer networks that learn a target of several directions, by the exact population flow in R^d and by one-pass SGD.

f(x) = (1/m) sum_i a_i sigma(<w_i, x>) with unit w_i, x ~ N(0, I_d), target sum_l b_l prod_j h_{l_j}(x_j) in the orthonormal Hermite
polynomials of the first k coordinates, sigma = sum_k c_k h_k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.polynomial.polynomial import polyder, polyval
from numpy.typing import NDArray

from limitlab.numerics.ode import follow, runge_kutta, visit

Floats = NDArray[np.float64]
Target = Sequence[tuple[Sequence[int], float]]


def random_weights(rng: np.random.Generator, overlaps: Floats, dimension: int) -> Floats:
    """Return unit rows with the first coordinates `overlaps` and the others in a uniform direction.

    >>> w = random_weights(np.random.default_rng(0), np.array([[0.6, 0.0]]), 5)
    >>> w[0, :2].tolist(), round(float(w[0] @ w[0]), 12)
    ([0.6, 0.0], 1.0)
    """
    m, k = overlaps.shape
    rest = rng.standard_normal((m, dimension - k))
    rest *= np.sqrt(1 - np.sum(overlaps**2, axis=1, keepdims=True)) / np.linalg.norm(rest, axis=1, keepdims=True)
    return np.concatenate([overlaps, rest], axis=1)


def population_flow(
    hermite: Sequence[float], target: Target, a: Floats, w: Floats, times: Sequence[float] | Floats, step: float = 0.05
) -> list[tuple[Floats, Floats]]:
    """Return (a, w) at the times under the gradient flow of the population risk, with w on the sphere of R^d.

    >>> a, w = population_flow((0.0, 1.0), [((1,), 1.0)], np.ones(1), np.array([[0.6, 0.8]]), [20.0])[0]
    >>> float(w[0, 0].round(6)), float(a[0].round(6))
    (1.0, 1.0)
    """
    c = np.asarray(hermite, dtype=float)
    square, slope, indices = c**2, polyder(c**2), len(target[0][0])

    def velocity(_: float, state: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        a, w = state
        gram, (value, gradient) = w @ w.T, signal(c, target, w[:, :indices])
        pull = -(polyval(gram, slope) * a) @ w / a.size
        pull[:, :indices] += gradient
        return value - polyval(gram, square) @ a / a.size, a[:, None] * (pull - np.sum(pull * w, axis=1, keepdims=True) * w)

    def settle(state: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        return state[0], state[1] / np.linalg.norm(state[1], axis=1, keepdims=True)

    return list(follow(runge_kutta(velocity, settle), (np.asarray(a, dtype=float), np.asarray(w, dtype=float)), times, step))


def signal(hermite: Floats, target: Target, v: Floats) -> tuple[Floats, Floats]:
    """Return E sigma(<w, x>) phi(x) with the target phi, and its gradient in v, for rows v of the first coordinates of w.

    >>> value, gradient = signal(np.array([0.0, 0.7, 0.5]), [((1, 0), 1.0), ((1, 1), 1.0)], np.array([[0.4, 0.2]]))
    >>> value.round(6).tolist(), gradient.round(6).tolist()
    ([0.336569], [[0.841421, 0.282843]])
    """
    value, gradient = np.zeros(len(v)), np.zeros_like(v)
    for degrees, weight in target:
        total = sum(degrees)
        if total >= len(hermite):
            continue
        scale = weight * hermite[total] * math.sqrt(math.factorial(total) / math.prod(map(math.factorial, degrees)))
        value += scale * _monomial(v, degrees)
        for j, degree in enumerate(degrees):
            if degree:
                lower = (*degrees[:j], degree - 1, *degrees[j + 1 :])
                gradient[:, j] += scale * degree * _monomial(v, lower)
    return value, gradient


def _monomial(v: Floats, degrees: Sequence[int]) -> Floats | float:
    """Return prod_j v_j^degree_j of every row, column by column because this is faster than an array of powers."""
    product: Floats | float = 1.0
    for j, degree in enumerate(degrees):
        if degree:
            product = product * v[:, j] ** degree
    return product


def network_risk(hermite: Sequence[float], target: Target, a: Floats, w: Floats) -> float:
    """Return the mean squared difference of the target and a network with unit rows w."""
    c = np.asarray(hermite, dtype=float)
    value, _ = signal(c, target, w[:, : len(target[0][0])])
    norm = sum(weight**2 for _, weight in target)
    return float(norm - 2 * np.mean(a * value) + a @ polyval(w @ w.T, c**2) @ a / a.size**2)


def one_pass_sgd(
    rng: np.random.Generator,
    hermite: Sequence[float],
    target: Target,
    a: Floats,
    w: Floats,
    noise: float,
    times: Sequence[float],
    step: float,
    batch: int,
) -> list[tuple[Floats, Floats]]:
    """Return (a, w) at the times under SGD with `batch` fresh samples per step, with weights on the sphere."""
    from numpy.polynomial.hermite_e import hermeder, hermeval

    scaled = np.array([c / math.sqrt(math.factorial(k)) for k, c in enumerate(hermite)])
    slopes = hermeder(scaled)

    def move(_: int, state: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        a, w = state
        x = rng.standard_normal((batch, w.shape[1]))
        z = x @ w.T
        active = hermeval(z, scaled)
        error = labels(target, x) + noise * rng.standard_normal(batch) - active @ a / a.size
        push = (error[:, None] * hermeval(z, slopes)).T @ x / batch
        a, w = (
            a + step * error @ active / batch,
            w + step * a[:, None] * (push - np.sum(push * w, axis=1, keepdims=True) * w),
        )
        return a, w / np.linalg.norm(w, axis=1, keepdims=True)

    start = np.array(a, dtype=float), np.array(w, dtype=float)
    return list(visit(move, start, [round(time / step) for time in times], rng=rng))


def labels(target: Target, x: Floats) -> Floats:
    """Return phi(x), row by row.

    >>> labels([((1, 0), 1.0), ((1, 1), 1.0)], np.array([[2.0, 3.0]])).tolist()
    [8.0]
    """
    from numpy.polynomial.hermite_e import hermeval

    total = np.zeros(len(x))
    for degrees, weight in target:
        part = np.full(len(x), weight)
        for j, degree in enumerate(degrees):
            if degree:
                part *= hermeval(x[:, j], np.eye(degree + 1)[degree]) / math.sqrt(math.factorial(degree))
        total += part
    return total
