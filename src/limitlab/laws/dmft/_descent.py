"""The equations of gradient descent in high dimension, for matrix-valued correlations and responses in discrete time.

theta has m columns (neurons), and the truth has q. The loss is L(r; w_*, e) with r in R^m and w_* in R^q. Every two-time function of
docs/theory/first_order.md is a matrix of m x m blocks, stored here as one matrix of (steps m) rows. Block (k, s) of `response_loss` is
R_l(k, s), and the diagonal blocks contain Gamma_k = R_l(k, k). With M(k, s) = 1[k = s](1 - step ridge) - step R_l(k, s) equations (4)
and (5) read

    R_theta(k+1, .) = M(k, .) R_theta,   C(k+1, .) = M(k, .) C - step R_l(k, *) C(*, .) + (step^2/delta) C_l(k, .) R_theta'.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import ConvergenceError
from limitlab.laws.dmft._losses import Loss, as_vector

__all__ = ["descent_correlations"]

Floats = NDArray[np.float64]

PIVOT = 1e-5
"""Least pivot of the covariance of the process, relative to its scale. The covariance is numerically singular after about ten steps."""


@dataclass(frozen=True)
class DescentCorrelations:
    """Correlations, overlap and errors in the limit, for k, s = 0..steps.

    For losses of one scalar response the axes of neurons and directions are dropped.

    Attributes
    ----------
    correlation
        C(k, s) = theta_k' theta_s, shape (steps + 1, steps + 1, m, m).
    overlap
        theta_k' theta_*, shape (steps + 1, m, q).
    train_error, test_error
        Average of `loss.error` over the training samples and over new samples.
    stein_gap
        Largest difference of two estimates of the response to the truth, by differentiated paths and by Stein's lemma.
    predictions, truth, noise
        The sampled process of the predictions, shape (steps + 1, m, paths), with the predictions of theta_* and the noise of its samples.
    """

    correlation: Floats
    overlap: Floats
    train_error: Floats
    test_error: Floats
    stein_gap: float
    predictions: Floats
    truth: Floats
    noise: Floats


def whitened_paths(rng: np.random.Generator, paths: int, columns: int) -> Floats:
    """Return Gaussian-like samples with mean exactly 0 and covariance exactly the identity.

    They are whitened by QR, and each occurs with both signs.

    >>> z = whitened_paths(np.random.default_rng(0), 100, 5)
    >>> bool(np.allclose(z.T @ z / 100, np.eye(5))), bool(np.allclose(z.sum(axis=0), 0))
    (True, True)
    """
    half = max(paths // 2, columns + 1)
    q, r = np.linalg.qr(rng.standard_normal((half, columns)))
    z = q * np.sign(np.diag(r)) * np.sqrt(half)
    return np.concatenate([z, -z])


def descent_correlations(
    loss: Loss,
    sample_ratio: float,
    step: float,
    steps: int,
    *,
    signal: ArrayLike = 1.0,
    start_norm: ArrayLike = 0.0,
    start_overlap: ArrayLike = 0.0,
    ridge: ArrayLike = 0.0,
    sphere: bool = False,
    paths: int = 4000,
    seed: int = 0,
) -> DescentCorrelations:
    """Solve the discrete-time equations (1) to (6) of docs/theory/first_order.md.

    Parameters
    ----------
    loss
        A `limitlab.laws.dmft._losses.Loss`; `loss_from_function` returns one for any function that JAX can differentiate.
    sample_ratio, step, steps, ridge
        n/d, step size, number of steps, and ridge penalty: one number, one number for every step, or one symmetric matrix
        (m x m) for every step, which couples the neurons.
    signal, start_norm, start_overlap
        |theta_*|^2, |theta_0|^2 and <theta_0, theta_*>; for several neurons or directions the matrices theta_*' theta_* (q x q),
        theta_0' theta_0 (m x m) and theta_0' theta_* (m x q).
    sphere
        Whether every neuron is rescaled to its norm at the start after each step.
    paths, seed
        Number of sampled paths, and their seed.

    Examples
    --------
    >>> from limitlab.laws.dmft._losses import square
    >>> result = descent_correlations(square(0.5), 2.0, 0.1, 8, start_norm=0.5, start_overlap=0.2, paths=100)
    >>> result.overlap[8].round(6)
    np.float64(0.600625)
    """
    truth, start = _square_matrix(signal), _square_matrix(start_norm)
    m, q = len(start), len(truth)
    kernels = DescentKernels(
        start,
        np.reshape(start_overlap, (m, q)).astype(float),
        truth,
        step,
        step / sample_ratio,
        penalty_matrices(ridge, steps, m),
        steps,
    )
    z = whitened_paths(np.random.default_rng(np.random.SeedSequence([seed, 77])), paths, 1 + q + m * (steps + 1))
    sampled = Paths(as_vector(loss), z, kernels)
    errors, predictions = np.zeros((2, steps + 1)), np.empty((steps + 1, m, len(z)))
    limit = 1e12 * (np.trace(truth) + np.trace(start) + 1)
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow raises ConvergenceError below
        for k in range(steps + 1):
            errors[:, k], predictions[k] = sampled.predict(k), sampled.predictions
            if not np.all(np.isfinite(sampled.pulls[k])) or np.trace(kernels.equal_time(k)) > limit:
                raise ConvergenceError(
                    f"step = {step:g} is not allowed: gradient descent diverges at iteration {k}; use a smaller step"
                )
            if k < steps:
                sampled.differentiate(k)
                kernels.advance(k, sphere)
    correlation = kernels.correlation.reshape(steps + 1, m, steps + 1, m).swapaxes(1, 2)
    overlap = kernels.overlap.reshape(steps + 1, m, q)
    if not loss.vector:
        correlation, overlap = correlation[:, :, 0, 0], overlap[:, 0, 0]
    return DescentCorrelations(
        correlation, overlap, errors[0], errors[1], sampled.stein_gap, predictions, sampled.truth, sampled.noise
    )


def penalty_matrices(ridge: ArrayLike, steps: int, width: int) -> Floats:
    """Return one penalty matrix (width x width) for every step.

    >>> penalty_matrices([0.1, 0.2], 2, 1).ravel().tolist()
    [0.1, 0.2]
    """
    values = np.asarray(ridge, dtype=float)
    return values if values.ndim == 3 else np.broadcast_to(values, steps)[:, None, None] * np.eye(width)


def _square_matrix(values: ArrayLike) -> Floats:
    return np.atleast_2d(np.asarray(values, dtype=float))


class DescentKernels:
    """Two-time functions as block matrices (block row k belongs to the neurons after k steps), and their continuation by one step."""

    def __init__(
        self, start: Floats, overlap: Floats, signal: Floats, step: float, rate: float, ridge: Floats, steps: int
    ) -> None:
        self.width, self.steps, self.signal = len(start), steps, signal
        self.step, self.rate, self.ridge = step, rate, ridge
        rows = self.width * (steps + 1)
        self.correlation, self.response_theta, self.response_loss, self.force = np.zeros((4, rows, rows))
        self.overlap, self.response_star = np.zeros((2, rows, len(signal)))
        self.correlation[: self.width, : self.width], self.overlap[: self.width] = start, overlap

    def at(self, k: int) -> slice:
        """Return the rows of step k."""
        return slice(k * self.width, (k + 1) * self.width)

    def until(self, k: int) -> slice:
        """Return the rows of steps 0..k-1."""
        return slice(0, k * self.width)

    def equal_time(self, k: int) -> Floats:
        """Return C(k, k)."""
        return self.correlation[self.at(k), self.at(k)]

    def advance(self, k: int, sphere: bool) -> None:
        """Compute C, R_theta and the overlap after one more step by eqs. (4) and (5), on the sphere also by eq. (6)."""
        now, new, known = self.at(k), self.at(k + 1), self.until(k + 1)
        identity = np.eye(self.width)
        memory = -self.step * self.response_loss[now, known]
        memory[:, now] += identity - self.step * self.ridge[k]
        toward, kick = -self.step * self.response_star[now], self.step * self.rate * self.force[now, known]

        response = memory @ self.response_theta[known, known]
        response[:, now] = identity
        overlap = memory @ self.overlap[known] + toward @ self.signal
        past = memory @ self.correlation[known, known] + toward @ self.overlap[known].T
        past += kick @ self.response_theta[known, known].T
        equal = memory @ past.T + toward @ overlap.T + kick @ response.T
        if sphere:
            scale = np.sqrt(np.diag(self.equal_time(0)) / np.diag(equal))[:, None]
            response, overlap, past, equal = scale * response, scale * overlap, scale * past, scale * equal * scale.T
        self.response_theta[new, known], self.overlap[new] = response, overlap
        self.correlation[new, known], self.correlation[known, new] = past, past.T
        self.correlation[new, new] = 0.5 * (equal + equal.T)


class Paths:
    """Sampled paths of the predictions, eq. (2), and their averages, eq. (3). The last axis of every array counts paths.

    For exchangeable neurons only the derivatives along the first neuron are computed, and the averages are symmetrised.
    """

    def __init__(self, loss: Loss, z: Floats, kernels: DescentKernels) -> None:
        self.loss, self.kernels, self.count = loss, kernels, len(z)
        m, q, steps = kernels.width, len(kernels.signal), kernels.steps
        self.noise, self.gaussian = z[:, 0], z[:, 1:]  # Gaussians of the truth, then m per step
        self.factor = np.zeros((self.gaussian.shape[1],) * 2)
        self.factor[:q, :q] = np.linalg.cholesky(kernels.signal)
        self.truth = self.factor[:q, :q] @ self.gaussian[:, :q].T
        start, aligned = kernels.equal_time(0), kernels.overlap[:m]
        alike = all(np.allclose(block, symmetrised(block)) for block in (start, *kernels.ridge))
        self.exchangeable = loss.exchangeable and alike and np.allclose(aligned, aligned[0])
        self.columns = 1 if self.exchangeable else m
        self.average = np.full(self.count, 1 / self.count)
        self.predictions = np.zeros((m, self.count))
        self.pulls = np.zeros((steps + 1, m, self.count))  # grad L(r_k)
        self.turns = np.zeros((steps, m, q * self.count))  # d grad L(r_k) / d w_*
        self.moves: list[Floats] = []  # at s: d grad L(r_k) / d w_s for k = s, s + 1, ...
        self.stein_gap = 0.0

    def predict(self, k: int) -> tuple[float, float]:
        """Draw a new point of the Gaussian process w and the prediction r that it drives, eq. (2).

        Return the errors on the samples and on new samples.
        """
        kernels, q, now = self.kernels, len(self.truth), self.kernels.at(k)
        for row in range(now.start, now.stop):
            known = np.concatenate([kernels.overlap[row], kernels.correlation[row, : row + 1]])
            _extend(self.factor, q + row, known, max(kernels.signal.max(), known[-1]))
        w = self.factor[q + now.start : q + now.stop, : q + now.stop] @ self.gaussian[:, : q + now.stop].T
        self.predictions = w - self._memory(k, self.pulls)
        arguments = self.predictions, self.truth, self.noise
        self.pulls[k] = self.loss.first(*arguments)
        return float(self.loss.error(*arguments).mean()), float(self.loss.error(w, self.truth, self.noise).mean())

    def differentiate(self, k: int) -> None:
        """Compute responses and correlations of the gradient, eq. (3), by differentiating (2) along every path."""
        kernels, m = self.kernels, self.kernels.width
        now, known = kernels.at(k), kernels.until(k + 1)
        hessian = self.loss.second(self.predictions, self.truth, self.noise)
        for s, moved in enumerate(self.moves):
            moved[k - s] = _product(hessian, -self._memory(k, moved, s))
        self.moves.append(np.empty((kernels.steps - k, m, self.columns * self.count)))
        self.moves[k][0] = hessian[:, : self.columns].reshape(m, -1)
        moves = np.array([self._mean(moved[k - s]) for s, moved in enumerate(self.moves)])
        kernels.response_loss[now, known] = _row(from_first_column(moves) if self.exchangeable else moves)
        force = np.matmul(self.pulls[k], self.pulls[: k + 1].swapaxes(1, 2)) / self.count
        kernels.force[now, known] = _row(symmetrised(force) if self.exchangeable else force)
        kernels.force[known, now] = kernels.force[now, known].T
        self._turn(k, hessian)

    def _turn(self, k: int, hessian: Floats) -> None:
        """Compute the response to the truth along every path, or by Stein's lemma if labels are discontinuous in the truth."""
        kernels, now, known = self.kernels, self.kernels.at(k), self.kernels.until(k + 1)
        seen = self.pulls[k] @ self.truth.T / self.count - kernels.response_loss[now, known] @ kernels.overlap[known]
        stein = self._same_rows(np.linalg.solve(kernels.signal, seen.T).T)
        kernels.response_star[now] = stein
        if self.loss.cross is not None:
            direct = self.loss.cross(self.predictions, self.truth, self.noise)
            self.turns[k] = direct.reshape(kernels.width, -1) + _product(hessian, -self._memory(k, self.turns))
            turned = self._same_rows(self._mean(self.turns[k]))
            kernels.response_star[now] = turned
            self.stein_gap = max(self.stein_gap, float(np.abs(stein - turned).max()))

    def _memory(self, k: int, of: Floats, first: int = 0) -> Floats:
        """Return (step/delta) sum_{first <= j < k} R_theta(k, j) X_j for X = `of`, whose first entry belongs to step `first`."""
        m = self.kernels.width
        weights = self.kernels.rate * self.kernels.response_theta[self.kernels.at(k), first * m : k * m]
        return weights @ of[: k - first].reshape((k - first) * m, of.shape[-1])

    def _mean(self, columns: Floats) -> Floats:
        """Return the average over the N paths of m x c matrices that are stored in an array of shape (m, c N)."""
        return columns.reshape(len(columns), -1, self.count) @ self.average

    def _same_rows(self, block: Floats) -> Floats:
        """Return the average of a response to the truth (m x q) over exchangeable neurons."""
        return np.broadcast_to(block.mean(axis=0), block.shape) if self.exchangeable else block


def symmetrised(blocks: Floats) -> Floats:
    """Return the average of m x m blocks over relabelled neurons, with equal diagonal entries and equal other entries.

    >>> symmetrised(np.array([[1.0, 0.0], [4.0, 3.0]]))
    array([[2., 2.],
           [2., 2.]])
    """
    m = blocks.shape[-1]
    if m == 1:
        return blocks
    same = np.trace(blocks, axis1=-2, axis2=-1)[..., None, None] / m
    other = (blocks.sum(axis=(-2, -1), keepdims=True) - m * same) / (m * (m - 1))
    return np.asarray(other + (same - other) * np.eye(m))


def from_first_column(blocks: Floats) -> Floats:
    """Return matrices of exchangeable neurons from their first columns of shape (..., m, 1).

    >>> from_first_column(np.array([[1.0], [2.0], [4.0]]))[1]
    array([3., 1., 3.])
    """
    m = blocks.shape[-2]
    same = blocks[..., :1, :]
    other = blocks[..., 1:, :].mean(axis=-2, keepdims=True) if m > 1 else 0.0 * same
    return np.asarray(other + (same - other) * np.eye(m))


def _row(blocks: Floats) -> Floats:
    """Return the k blocks of an array (k, m, m) side by side, shape (m, k m)."""
    return blocks.swapaxes(0, 1).reshape(blocks.shape[1], -1)


def _product(hessian: Floats, columns: Floats) -> Floats:
    """Multiply a Hessian (m, m, N) with m x c matrices (m, c N), path by path."""
    m, _, count = hessian.shape
    parts = columns.reshape(m, -1, count)
    product = hessian[:, 0, None] * parts[0]
    for j in range(1, m):
        product += hessian[:, j, None] * parts[j]
    return product.reshape(m, -1)


def _extend(factor: Floats, k: int, covariances: Floats, scale: float) -> None:
    """Add a row to a Cholesky factor, with a little white noise that bounds its pivot away from zero."""
    from scipy.linalg import solve_triangular

    row = solve_triangular(factor[:k, :k], covariances[:k], lower=True, check_finite=False)
    left = max(covariances[k] - row @ row, 0.0)
    factor[k, :k], factor[k, k] = row, np.sqrt(left + PIVOT**2 * scale)
