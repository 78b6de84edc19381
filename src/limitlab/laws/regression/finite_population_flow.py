"""Learning curves in training time: gradient flow on n of N points, tested on the other N - n.

The setting and the symbols are those of `finite_population`. Gradient flow on K_SS / n from zero, stopped at time t, leaves the
residual filter e^{-t x}; its resolvent is ridge regression at the complex ridge lambda = -z, so its errors are contour
integrals of what ridge does (docs/theory/learning_curves.md, eqs. 10-12):

    mean of r_1 r_2 over the points not drawn  ->  (kappa_1 - kappa_2) / (lambda_1 - lambda_2)
                                                   x sum_k c_k u_k(kappa_1) u_k(kappa_2) / (g_1 g_2),   g = 1 - df1/N,     (1)
    y_S' (K_SS/n + lambda)^-1 y_S / n          ->  sum_k c_k / (s_k + kappa),                                              (2)

with the residuals r_1, r_2 of two ridges. On the diagonal (1) is the ridge law. As N grows it is the law of independent draws.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import ConvergenceError, Refused
from limitlab.laws.regression.finite_population import learning_curve
from limitlab.numerics.contours import parabola

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

EPSILON = float(np.finfo(np.float64).eps)
FINE, COARSE = 32, 28
"""Nodes of the quadrature, and of the one that estimates its error."""

STAGES = (8, 64, 512)
NEWTON_STEPS = 30
WORST_ACCURACY = 1e-6


class FlowCurve(NamedTuple):
    """Errors along gradient flow, as arrays of the shape of the times.

    Attributes
    ----------
    test_error
        Mean squared error on the points that were not drawn.
    train_error
        Mean squared residual on the points that were drawn.
    accuracy
        Estimate of the numerical error, relative to the error at time 0.
    """

    test_error: Array
    train_error: Array
    accuracy: float


def flow_curve(
    samples: float,
    time: ArrayLike,
    eigenvalues: ArrayLike,
    energies: ArrayLike,
    population: float = np.inf,
    multiplicities: ArrayLike = 1.0,
) -> FlowCurve:
    """Errors of gradient flow on `samples` points of a population, at times between 0 and infinity.

    Parameters
    ----------
    samples
        n, above 0 and below `population`.
    time
        When to stop, for the loss |f - y|^2 / (2n): 0 is nothing learned, infinity the fit of least norm.
    eigenvalues, energies, population, multiplicities
        As in `finite_population.learning_curve`.

    Examples
    --------
    >>> s, c = 1 / np.arange(1, 41) ** 1.5, np.arange(1, 41) ** -1.2 / 2
    >>> curve = flow_curve(15, [0.0, 10.0, np.inf], s, c, population=40)
    >>> curve.test_error.round(6).tolist()
    [1.603324, 0.797214, 0.772091]
    """
    t = np.atleast_1d(np.asarray(time, dtype=float))
    s, c = np.asarray(eigenvalues, dtype=float), np.asarray(energies, dtype=float)
    m = np.broadcast_to(np.asarray(multiplicities, dtype=float), s.shape)
    if not (t >= 0).all():
        raise Refused(f"time = {t[~(t >= 0)].flat[0]:g} is not allowed: must be at least 0")
    end = learning_curve(samples, 0.0, s, c, population, m)  # also checks the population
    test, train = np.full(t.shape, float(c.sum())), np.full(t.shape, float(c.sum()))
    test[np.isinf(t)], train[np.isinf(t)] = end.test_error, end.train_error
    inside, error = (t > 0) & np.isfinite(t), 0.0
    for i in np.flatnonzero(inside):
        fine, coarse = (_errors(float(samples), t.flat[i], s, c, float(population), m, nodes) for nodes in (FINE, COARSE))
        error = max(error, abs(fine[0] - coarse[0]), abs(fine[1] - coarse[1]))
        test.flat[i], train.flat[i] = max(fine[0], 0.0), max(fine[1], 0.0)
    accuracy = max(error / max(float(c.sum()), np.finfo(float).tiny), EPSILON)
    if accuracy > WORST_ACCURACY:
        raise ConvergenceError("the contour integrals of gradient flow did not converge", test, accuracy)
    shape = np.shape(time)
    return FlowCurve(test.reshape(shape)[()], train.reshape(shape)[()], accuracy)


def _errors(n: float, t: float, s: Array, c: Array, total: float, m: Array, nodes: int) -> tuple[float, float]:
    """Test error, the double integral of (1) against e^{-t(z + z')} / (z z'), and train error, that of (2) against e^{-2tz}."""
    test_points, train_points = parabola(t, nodes), parabola(2 * t, nodes)
    kappa = complex_ridge(-test_points.z, n, s, m, total)
    charge = test_points.weight * np.exp(-t * test_points.z) / test_points.z
    test = 0.0
    for other, charges, ridge in ((kappa, charge, -test_points.z), (kappa.conj(), charge.conj(), -test_points.z.conj())):
        test += 2 * (charge[:, None] * charges * _pair(kappa, other, ridge, n, s, c, total, m)).sum().real
    inner = complex_ridge(-train_points.z, n, s, m, total)
    response = (c / (s + inner[:, None])).sum(axis=1)
    train = 2 * (train_points.weight * np.exp(-2 * t * train_points.z) * response).sum().real
    return float(test), float(train)


def _pair(first: Complex, second: Complex, ridge: Complex, n: float, s: Array, c: Array, total: float, m: Array) -> Complex:
    """Equation (1) for all pairs; the divided difference is g_1 / (1 - df22/n - lambda_2 sum s/((s+k_1)(s+k_2)) / N)."""
    one, two = (kappa[:, None] / (s + kappa[:, None]) for kappa in (first, second))  # unlearned shares; 1 at s = 0
    positive = np.where(s > 0, m, 0.0)
    gap = (1 - positive.sum() / total) + (two * positive).sum(axis=1) / total
    both = ((1 - one) * positive) @ (1 - two).T
    share = (one / first[:, None] * positive * s) @ (two / second[:, None]).T
    return np.asarray(((one * c) @ two.T) / (gap * (1 - both / n - ridge * (share / total))))


def complex_ridge(ridge: Complex, samples: float, eigenvalues: Array, multiplicities: Array, population: float) -> Complex:
    """kappa of kappa (1 - df1/n) = lambda (1 - df1/N) at complex lambda off the negative axis, continued from large |lambda|.

    >>> ridge = np.array([-0.5 + 0.3j])
    >>> kappa = complex_ridge(ridge, 3.0, np.array([1.0, 0.5]), np.array([2.0, 3.0]), 10.0)
    >>> df = (np.array([2.0, 3.0]) * np.array([1.0, 0.5]) / (np.array([1.0, 0.5]) + kappa)).sum()
    >>> bool(abs(kappa[0] * (1 - df / 3) - ridge[0] * (1 - df / 10)) < 1e-14)
    True
    """
    for steps in STAGES:
        kappa, good = _continued(np.asarray(ridge, dtype=complex), samples, eigenvalues, multiplicities, population, steps)
        if good.all():
            return kappa
    raise ConvergenceError(f"the effective ridge was not found at {int((~good).sum())} points of a contour", estimate=kappa)


def _continued(lam: Complex, n: float, s: Array, m: Array, total: float, steps: int) -> tuple[Complex, Any]:
    positive = np.where(s > 0, m, 0.0)
    rank = positive.sum()
    trace = float((positive * s).sum())
    far = np.maximum(1.0, 30 * trace / n / np.abs(lam))
    kappa = lam * far + trace * (1 / n - 1 / total)
    small = np.zeros(lam.shape, dtype=bool)
    for stage in range(steps):
        target = lam * far ** (1 - (stage + 1) / steps)
        for _ in range(NEWTON_STEPS):
            u = kappa[:, None] / (s + kappa[:, None])
            left = (positive * u).sum(axis=1)
            mixed = (positive * u * (1 - u)).sum(axis=1)
            drawn, every = (1 - rank / n) + left / n, (1 - rank / total) + left / total
            residual = kappa * drawn - target * every
            size = np.abs(kappa) * (abs(1 - rank / n) + np.abs(left) / n) + np.abs(target) * (1 + np.abs(left) / total)
            small = np.abs(residual) <= 64 * EPSILON * size
            if small.all():
                break
            slope = drawn + mixed / n - target / kappa * (mixed / total)
            kappa = np.where(small, kappa, kappa - residual / slope)
    return kappa, small & (kappa.imag * lam.imag > 0)
