"""The flow of the statistics of online SGD for softmax regression on a mixture of k Gaussians (docs/theory/alignment.md).

Setting.  Y = mu_a + N(0, I / lambda) for class a; loss -<x^a, Y> + log sum_c exp <x^c, Y>; x <- x - (c / d)(grad L + beta x).
Limit.    d -> infinity at fixed c (`step`); time (c / d) * steps.
Result.   For orthonormal means, equal classes and a symmetric start, equations (3) hold for the margin D, the spread q and the common
          spread r. For any means and probabilities, equations (2) hold; they contain Gaussian averages over the k logits of every class.
Status.   Derived, checked against SGD runs of the d-dimensional weights.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import NotComputable, Refused
from limitlab.numerics.ode import Trajectory, integrate

__all__ = ["mixture_flow", "noiseless_mixture"]

Array = NDArray[np.float64]


class Rates(NamedTuple):
    """Averages in the symmetric flow.

    These are the first term of the margin's equation in (3), the curvature j and the noise e2 of eq. (4), and the mean probability of the
    right class.
    """

    pull: float
    curvature: float
    noise: float
    probability: float


def symmetric_rates(classes: int, snr: float, margin: float, spread: float) -> Rates:
    """Return the averages of eqs. (3) and (4) at margin D and spread q.

    >>> [round(rate, 12) for rate in symmetric_rates(4, 10.0, 0.0, 0.0)]
    [0.25, 0.25, 0.25, 0.25]
    """
    moments = softmax_moments(classes, margin, math.sqrt((margin**2 + spread) / snr))
    others = classes - 1
    curvature = (moments.inside - moments.inside_square) / others + moments.outside - moments.outside_square
    noise = (1 - 2 * moments.inside + moments.inside_square) / others + moments.outside_square
    return Rates((1 - moments.inside) / others, curvature, noise, moments.inside)


def symmetric_flow(
    classes: int, snr: float, regularizer: float, step: float, times: ArrayLike, tolerance: float = 1e-10
) -> Trajectory:
    """Return margin D, spread q and common spread r of eq. (3), for a start x ~ N(0, I / d).

    >>> symmetric_flow(10, 10.0, 0.01, 1.0, [10.0]).states.round(6).tolist()
    [[0.854798, 0.74656, 0.818731]]
    """

    def velocity(_: float, state: Array) -> list[float]:
        margin, spread, common = state
        rates = symmetric_rates(classes, snr, float(margin), max(float(spread), 0.0))
        decay = rates.curvature / snr + regularizer
        return [
            rates.pull - decay * margin,
            -2 * decay * spread + step * rates.noise / snr,
            -2 * regularizer * common,
        ]

    return integrate(velocity, [0.0, 1.0, 1.0], times, tolerance)


def rest(classes: int, snr: float, regularizer: float, step: float) -> tuple[float, float]:
    """Return margin and spread at the unique fixed point of eq. (3).

    >>> [round(part, 8) for part in rest(10, math.inf, 0.01, 1.0)]
    [3.13226292, 0.0]
    """
    from scipy.optimize import brentq, root

    others = classes - 1

    def pull(margin: float) -> float:  # (1 - pi) / (k - 1) at lambda = inf
        return 1 / (others + math.exp(margin))

    start = float(brentq(lambda margin: pull(margin) - regularizer * margin, 0.0, 1 / (regularizer * classes), xtol=1e-15))
    if math.isinf(snr):
        return start, 0.0

    def imbalance(state: Array) -> list[float]:
        rates = symmetric_rates(classes, snr, float(state[0]), float(state[1]) ** 2)
        decay = rates.curvature / snr + regularizer
        return [rates.pull / decay - state[0], math.sqrt(step * rates.noise / (2 * snr * decay)) - state[1]]

    solution = root(imbalance, [start, math.sqrt(regularizer * step / snr)], tol=1e-13)
    if np.max(np.abs(solution.fun)) > 1e-8:
        raise NotComputable(
            f"no fixed point of the flow was found at snr = {snr:g}, regularizer = {regularizer:g}: please report this"
        )
    return float(solution.x[0]), float(solution.x[1]) ** 2


# -- any means, any probabilities ---------------------------------------------------------------------------------------


def mixture_flow(
    gram: ArrayLike,
    probabilities: ArrayLike,
    snr: float,
    regularizer: float,
    step: float,
    times: ArrayLike,
    quasi_points: int = 1024,
    scramble: int = 0,
) -> tuple[Array, Array]:
    """Return overlaps m (times, k, k) and Gram matrices Q (times, k, k), eq. (2).

    m_cb = <x^c, mu_b>, and Q belongs to the parts of the weights that are orthogonal to all means.

    Parameters
    ----------
    gram
        Inner products of the means, a positive definite matrix.
    probabilities
        Probabilities of the classes.
    snr, regularizer, step, times
        lambda, beta, c and times, as for `MixtureAlignment`; the start is x ~ N(0, I / d).
    quasi_points
        Number of points of the Gaussian averages, to which their mirror images are added.
    scramble
        Seed of the points.

    Examples
    --------
    >>> m, q = mixture_flow(np.eye(3), [0.2, 0.3, 0.5], 4.0, 0.05, 1.0, [2.0])
    >>> bool(m[0, 2, 2] > m[0, 1, 1] > m[0, 0, 0])   # frequent classes are learned first
    True
    """
    from limitlab.numerics.ode import follow, runge_kutta

    means, shares = checked_mixture(gram, probabilities)
    size, inverse = len(shares), np.linalg.inv(means)
    nodes = gaussian_nodes(size, quasi_points, scramble)

    def velocity(_: float, state: Array) -> Array:
        m, q = state
        covariance = m @ inverse @ m.T + q
        factor = np.linalg.cholesky(covariance + 1e-13 * np.eye(size)) / math.sqrt(snr)
        noise = nodes @ factor.T
        pull, curvature, square = np.empty((size, size)), np.zeros((size, size)), np.zeros((size, size))
        for a in range(size):
            pi = softmax(m[:, a] + noise)
            mean, second = pi.mean(axis=0), pi.T @ pi / len(pi)
            label = np.eye(size)[a]
            pull[:, a] = shares[a] * (label - mean)
            curvature += shares[a] * (np.diag(mean) - second)
            square += shares[a] * (np.outer(label, label) - np.outer(label, mean) - np.outer(mean, label) + second)
        drag = curvature / snr + regularizer * np.eye(size)
        return np.stack([pull @ means - drag @ m, -(drag @ q + q @ drag) + step / snr * square])

    start = np.stack([np.zeros((size, size)), np.eye(size)])
    path = np.stack(list(follow(runge_kutta(velocity), start, np.asarray(times, dtype=float).ravel().tolist(), 0.25)))
    return path[:, 0], path[:, 1]


def noiseless_mixture(gram: ArrayLike, probabilities: ArrayLike, regularizer: float) -> Array:
    """Return the overlaps m at the fixed point for lambda = infinity.

    This point is the minimum of a strictly convex function of k x k numbers. Newton's method finds it.

    >>> noiseless_mixture(np.eye(3), np.ones(3) / 3, 0.05).round(6)[0].tolist()
    [1.366038, -0.683019, -0.683019]
    """
    means, shares = checked_mixture(gram, probabilities)
    size = len(shares)
    factor = np.linalg.cholesky(means)  # x^c = sum_b z_cb e_b in the basis whose means are the rows of the factor
    z = np.zeros((size, size))
    for _ in range(100):
        pi = softmax(factor @ z.T)  # row a holds the probabilities of a sample at mu_a
        gradient = ((pi - np.eye(size)) * shares[:, None]).T @ factor + regularizer * z
        hessian = regularizer * np.eye(size * size)
        for a in range(size):
            weight = shares[a] * (np.diag(pi[a]) - np.outer(pi[a], pi[a]))
            hessian += np.kron(weight, np.outer(factor[a], factor[a]))
        move = np.linalg.solve(hessian, gradient.ravel()).reshape(size, size)
        z -= move / max(1.0, float(np.abs(move).max()))
        if np.abs(move).max() < 1e-13 * (1 + np.abs(z).max()):
            break
    return np.asarray(z @ factor.T)


def checked_mixture(gram: ArrayLike, probabilities: ArrayLike) -> tuple[Array, Array]:
    """Return the Gram matrix of the means and the probabilities as arrays, or raise `Refused` if they define no mixture."""
    means, shares = np.asarray(gram, dtype=float), np.asarray(probabilities, dtype=float)
    if shares.ndim != 1 or shares.size < 2 or not np.all(shares > 0) or abs(shares.sum() - 1) > 1e-9:
        raise Refused(f"probabilities = {shares.tolist()} is not allowed: must be at least 2 positive numbers of sum 1")
    if means.shape != (shares.size, shares.size) or not np.allclose(means, means.T):
        raise Refused(f"gram of shape {means.shape} is not allowed: must be a symmetric matrix with a row per probability")
    least = float(np.linalg.eigvalsh(means)[0])
    if not least > 1e-9 * float(np.abs(means).max()):
        raise Refused(
            f"gram with least eigenvalue {least:.3g} is not allowed: the means must be linearly independent (merge or remove classes)"
        )
    return means, shares


def softmax(logits: Array) -> Array:
    """Return the softmax of the logits along the last axis.

    >>> softmax(np.zeros(4)).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    power = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(power / power.sum(axis=-1, keepdims=True))


def gaussian_nodes(dimension: int, count: int, scramble: int) -> Array:
    """Return quasi-random standard Gaussian points (rows) with their mirror images.

    >>> gaussian_nodes(3, 8, 0).shape
    (16, 3)
    """
    from scipy.special import ndtri
    from scipy.stats import qmc

    points = qmc.Sobol(dimension, rng=np.random.default_rng(scramble)).random(1 << (count - 1).bit_length())
    half = ndtri(np.clip(points, 1e-12, 1 - 1e-12))
    return np.concatenate([half, -half])


# -- Moments of a softmax of independent Gaussians, one of which is shifted ------------------------------------------

GAUSSIAN_END = 9.0
"""Number of standard deviations at which the integral over a Gaussian is cut."""
LEFT = 40.0
"""Distance below the shift at which the integral over log t starts; e^-40 is below rounding."""


class SoftmaxMoments(NamedTuple):
    """First and second moments of the shifted Gaussian's probability (`inside`) and of any other probability (`outside`)."""

    inside: float
    inside_square: float
    outside: float
    outside_square: float


def softmax_moments(count: int, shift: float, spread: float, step: float = 0.2) -> SoftmaxMoments:
    """Return moments of the softmax of `count` Gaussians of standard deviation `spread`, the first of which is shifted by `shift`.

    With 1/S = int_0^inf e^{-t S} dt for the denominator S, each moment is an integral over log t of a product of one-dimensional averages.

    Parameters
    ----------
    count
        Number k of Gaussians, at least 2.
    shift
        D, which is added to the first Gaussian.
    spread
        Standard deviation s, at least 0.
    step
        Step of the trapezoidal rules over log t and over a Gaussian.

    Examples
    --------
    >>> round(softmax_moments(4, 0.0, 1.3).inside, 12)
    0.25
    >>> moments = softmax_moments(3, 1.0, 0.0)
    >>> round(moments.inside - 1 / (1 + 2 * math.exp(-1)), 12) + 0.0
    0.0
    """
    right = GAUSSIAN_END * spread + 5.0
    tau = np.arange(-LEFT - max(shift, 0.0), right + max(-shift, 0.0), step)
    none, _, two = _transforms(tau, spread, step)
    none_in, one_in, two_in = _transforms(tau + shift, spread, step)
    power = none ** (count - 2)
    inside = step * float(np.sum(one_in * power * none))
    return SoftmaxMoments(
        inside,
        step * float(np.sum(two_in * power * none)),
        (1 - inside) / (count - 1),
        step * float(np.sum(two * power * none_in)),
    )


def _transforms(tau: Array, spread: float, step: float) -> tuple[Array, Array, Array]:
    """Return E[t^j e^{-t}] for j = 0, 1, 2 at the points tau, where t = exp(tau + s Z) with Z standard Gaussian and s = `spread`."""
    nodes: Array = np.zeros(1)
    weights: Array = np.ones(1)
    if spread > 0:
        fine = min(step, step / spread) * 1.5
        nodes = np.asarray(
            fine * np.arange(-math.ceil(GAUSSIAN_END / fine), math.ceil(GAUSSIAN_END / fine) + 1), dtype=np.float64
        )
        weights = np.exp(-(nodes**2) / 2)
        weights /= weights.sum()
    logarithm = tau[:, None] + spread * nodes
    t = np.exp(np.minimum(logarithm, 10.0))  # exp(-e^10) is zero
    decay = np.exp(-t)
    first = t * decay
    return decay @ weights, first @ weights, (t * first) @ weights
