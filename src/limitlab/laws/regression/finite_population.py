"""Learning curves of ridge regression on n points drawn from a finite population of N, tested on the other N - n.

The population is described by the eigenvalues s_k of its Gram matrix K/N and by the energies c_k of the targets along its
eigenvectors, c_k = (u_k.y)^2 / N. A fit on a random subset S of n points solves (K_SS / n + lambda) a = y_S. With
df1 = sum s/(s + kappa) and df2 = sum s^2/(s + kappa)^2, here without division by n (docs/theory/learning_curves.md),

    kappa (1 - df1/n) = lambda (1 - df1/N),                                                                     (1)
    test = kappa' sum_k c_k (kappa / (s_k + kappa))^2 / (1 - df1/N)^2,       train = (1 - df1/n)^2 test,          (2)
    kappa' = dkappa/dlambda = (1 - df1/N) / (1 - df2/n - (lambda/kappa)(df1 - df2)/N).                            (3)

Equation (1) describes the spectrum of a random n x n corner of a matrix. In free probability, the R-transform of the corner at x equals
the R-transform of the whole matrix at n x / N. Equation (2) is the leave-one-out identity. As N grows, (1) and (2) become the equations
for independent draws (`ridge_equivalent`). As n grows to N, they become generalised cross-validation of the fit to all points.

For gradient flow on the n points, the errors at time t are contour integrals over lambda = -z (equations 10 to 12 of the page).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import ConvergenceError, Refused
from limitlab.numerics.contours import parabola
from limitlab.numerics.equivalents import both_shares, effective_ridge, gaps, unlearned
from limitlab.numerics.roots import bracketed_root

Array = NDArray[np.float64]


class LearningCurve(NamedTuple):
    """Predicted errors, as arrays of the broadcast shape of samples, ridge and population.

    Attributes
    ----------
    test_error
        Mean squared error on the points that were not drawn.
    train_error
        Mean squared residual on the points that were drawn.
    degrees_of_freedom
        Trace of the fit's hat matrix over n.
    effective_ridge
        Effective ridge kappa of equation (1).
    """

    test_error: Array
    train_error: Array
    degrees_of_freedom: Array
    effective_ridge: Array


def learning_curve(
    samples: ArrayLike,
    ridge: ArrayLike,
    eigenvalues: ArrayLike,
    energies: ArrayLike,
    population: ArrayLike = np.inf,
    multiplicities: ArrayLike = 1.0,
) -> LearningCurve:
    """Return the errors of ridge regression on `samples` points of a population with a given spectrum and target energies.

    Parameters
    ----------
    samples
        n, above 0 and below `population`.
    ridge
        lambda >= 0 of (K_SS / n + lambda). On the raw Gram matrix, scikit-learn's alpha is n lambda.
    eigenvalues, energies
        s_k and c_k, one-dimensional. The energy at s_k = 0 is noise, which cannot be fitted.
    population
        N. Infinity means independent draws from the population.
    multiplicities
        Number of eigenvectors that share each eigenvalue. Their energies are added up, and their numbers add up to at most N.

    Returns
    -------
    LearningCurve
        Errors are infinite if there is noise and the fit interpolates exactly as many directions as it has samples.

    Examples
    --------
    >>> s, c = 1 / np.arange(1, 41) ** 1.5, np.arange(1, 41) ** -1.2 / 2
    >>> curve = learning_curve(15, [0.0, 0.01, 0.1], s, c, population=40)
    >>> curve.test_error.round(6).tolist()
    [0.772091, 0.758998, 0.821495]
    >>> learning_curve(15, 0.01, s, c).test_error.round(6)
    np.float64(0.496162)
    """
    n, lam, total, s, c, m = _checked(samples, ridge, eigenvalues, energies, population, multiplicities)
    kappa = _effective_ridge(n, lam, total, s, m)
    positive = np.where(s > 0, m, 0.0)
    rank = positive.sum()
    u, a = both_shares(kappa, s)
    # 1 - df1/N follows from the rank. 1 - df1/n follows from the rank at kappa = 0 and from (1) at other values.
    gap_all = (1 - rank / total) + (u * positive).sum(axis=-1) / total
    with np.errstate(invalid="ignore", divide="ignore"):
        shrink = np.where(kappa > 0, lam / kappa, 1 - rank / n)
    gap_drawn = np.where(kappa > 0, shrink * gap_all, shrink)
    mixed = (m * u * a).sum(axis=-1)  # df1 - df2
    # the denominator of (3) without cancellation; at kappa = 0 it is 1 - rank/n, since mixed = 0
    slope = gap_drawn + mixed * (1 / n - np.where(kappa > 0, shrink, 0.0) / total)
    energy = (c * u**2).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        test = np.where(energy == 0, 0.0, energy / (gap_all * slope))
        train = np.where(gap_drawn > 0, gap_drawn**2 * test, 0.0)
    return LearningCurve(test[()], train[()], (m * a).sum(axis=-1) / n, kappa[()])


def _effective_ridge(n: Array, lam: Array, total: Array, s: Array, m: Array) -> Any:
    """Return kappa of (1), the only root between the value without a ridge (or lambda (1 - rank/N) if rank <= n) and lambda + tr/n."""
    positive = np.where(s > 0, m, 0.0)
    rank = positive.sum()
    low = np.asarray(effective_ridge(0.0, s, m / n[..., None]))
    if (np.isinf(total) | (lam == 0)).all():
        return np.asarray(effective_ridge(lam, s, m / n[..., None]))
    low = np.where(rank > n, low, lam * np.maximum(1 - rank / total, 0.0))
    high = lam + (m * s).sum() / n

    def excess(kappa: Any) -> Any:
        left = (unlearned(kappa, s) * positive).sum(axis=-1)
        return kappa * gaps(kappa, s, m / n[..., None])[0] - lam * ((1 - rank / total) + left / total)

    slack = 1e-12
    return np.where(lam > 0, bracketed_root(excess, low * (1 - slack), high * (1 + slack)), np.where(rank > n, low, 0.0))


def _checked(
    samples: ArrayLike,
    ridge: ArrayLike,
    eigenvalues: ArrayLike,
    energies: ArrayLike,
    population: ArrayLike,
    multiplicities: ArrayLike,
) -> tuple[Array, Array, Array, Array, Array, Array]:
    n, lam, total = np.broadcast_arrays(*(np.asarray(argument, dtype=float) for argument in (samples, ridge, population)))
    s, c = np.asarray(eigenvalues, dtype=float), np.asarray(energies, dtype=float)
    if not (n > 0).all() or np.isinf(n).any():
        raise Refused(f"samples = {n[~((n > 0) & np.isfinite(n))].flat[0]:g} is not allowed: must be above 0 and finite")
    if not (n < total).all():
        many = ~(n < total)
        raise Refused(
            f"samples = {n[many].flat[0]:g} is not allowed: must be below population = {total[many].flat[0]:g}; "
            "for a fit to every point use generalised cross-validation"
        )
    if not (lam >= 0).all() or np.isinf(lam).any():
        raise Refused(
            f"ridge = {lam[~((lam >= 0) & np.isfinite(lam))].flat[0]:g} is not allowed: must be at least 0 and finite"
        )
    if s.ndim != 1 or s.shape != c.shape:
        raise Refused(f"energies is not allowed: must have one entry per eigenvalue, got shapes {c.shape} and {s.shape}")
    if not (c >= 0).all() or not np.isfinite(c).all():
        raise Refused("energies is not allowed: must be finite and at least 0")
    m = np.broadcast_to(np.asarray(multiplicities, dtype=float), s.shape)
    if not (m >= 0).all() or not np.isfinite(m).all():
        raise Refused("multiplicities is not allowed: must be finite and at least 0, one per eigenvalue")
    if m.sum() > total.min():
        raise Refused(
            f"{m.sum():g} eigenvalues are not allowed: must be at most the {total.min():g} points of the population"
        )
    return n, lam, total, s, c, m


# -- learning curves in training time, for gradient flow on n of N points that is tested on the other N - n -----------

Complex = NDArray[np.complex128]

EPSILON = float(np.finfo(np.float64).eps)
FINE, COARSE = 32, 28
"""Numbers of nodes of the quadrature, and of the second quadrature that estimates its error."""

STAGES = (8, 64, 512)
NEWTON_STEPS = 30
WORST_ACCURACY = 1e-6


class FlowCurve(NamedTuple):
    """Predicted errors along gradient flow, as arrays of the shape of the times.

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
    """Return the errors of gradient flow on `samples` points of a population, at times between 0 and infinity.

    Parameters
    ----------
    samples
        n, above 0 and below `population`.
    time
        Stopping time, for the loss |f - y|^2 / (2n). At time 0 nothing is learned, and at infinity the fit has the least norm.
    eigenvalues, energies, population, multiplicities
        The same parameters as in `finite_population.learning_curve`.

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
    """Return the test and train error as contour integrals (equations 11 and 12 of docs/theory/learning_curves.md).

    The test error is the double integral of C(z, z'), equation (10), against e^{-t(z + z')} / (z z').
    """
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
    """Return C of equation (10) of docs/theory/learning_curves.md for all pairs of nodes.

    The divided difference in (10) is g_1 / (1 - df22/n - lambda_2 sum s/((s+k_1)(s+k_2)) / N).
    """
    left, right = (kappa[:, None] / (s + kappa[:, None]) for kappa in (first, second))  # unlearned shares; 1 at s = 0
    positive = np.where(s > 0, m, 0.0)
    gap = (1 - positive.sum() / total) + (right * positive).sum(axis=1) / total
    both = ((1 - left) * positive) @ (1 - right).T
    share = (left / first[:, None] * positive * s) @ (right / second[:, None]).T
    return np.asarray(((left * c) @ right.T) / (gap * (1 - both / n - ridge * (share / total))))


def complex_ridge(ridge: Complex, samples: float, eigenvalues: Array, multiplicities: Array, population: float) -> Complex:
    """Return the solution kappa of kappa (1 - df1/n) = lambda (1 - df1/N) at complex lambda off the negative axis.

    The solution is continued from large |lambda|.

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
