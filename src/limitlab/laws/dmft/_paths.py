"""Sampled paths of the predictions, and the two-time functions that their averages determine, as matrices of blocks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import ConvergenceError
from limitlab.laws.dmft._losses import Loss

Floats = NDArray[np.float64]

PIVOT = 1e-5
"""Least pivot of the covariance of the process, relative to its scale. The covariance is numerically singular after about ten steps."""

STEIN_ERRORS, STEIN_ROUNDING = 6.0, 1e-9
"""Largest accepted violation of Stein's identity, in standard errors, and as a share of the size of gradient and truth."""


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

    def parameters(self) -> tuple[Floats, Floats]:
        """Return the inner products of the parameters with each other and with the truth."""
        return self.correlation, self.overlap

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
        assert self.loss.second is not None
        hessian = self.loss.second(self.predictions, self.truth, self.noise)
        for s, moved in enumerate(self.moves):
            moved[k - s] = _product(hessian, -self._memory(k, moved, s))
        self.moves.append(np.empty((kernels.steps - k, m, self.columns * self.count)))
        self.moves[k][0] = hessian[:, : self.columns].reshape(m, -1)
        moves = np.array([self._mean(moved[k - s]) for s, moved in enumerate(self.moves)])
        kernels.response_loss[now, known] = row_of_blocks(from_first_column(moves) if self.exchangeable else moves)
        self._correlate(k)
        self._turn(k, hessian)

    def _correlate(self, k: int) -> None:
        """Compute the correlations of the gradient after k steps with those after 0..k steps."""
        kernels, now, known = self.kernels, self.kernels.at(k), self.kernels.until(k + 1)
        force = np.matmul(self.pulls[k], self.pulls[: k + 1].swapaxes(1, 2)) / self.count
        kernels.force[now, known] = row_of_blocks(symmetrised(force) if self.exchangeable else force)
        kernels.force[known, now] = kernels.force[now, known].T

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
            self._check_stein(k)

    def _check_stein(self, k: int) -> None:
        """Raise an error if the products of gradient and truth contradict the derivatives along the paths.

        Stein's identity states that the average over paths of the differences is 0. The standard error is that of pairs of paths of
        opposite sign.
        """
        kernels, q = self.kernels, len(self.truth)
        rows = kernels.width if not self.exchangeable else 1
        gaps = self.pulls[k].mean(axis=0) * self.truth
        for s, moved in enumerate(self.moves):
            slopes = moved[k - s].reshape(kernels.width, self.columns, self.count).sum(axis=0) / rows
            gaps = gaps - kernels.overlap[kernels.at(s)][: self.columns].T @ slopes
        gaps = gaps - kernels.signal @ self.turns[k].reshape(kernels.width, q, self.count).mean(axis=0)
        pairs = gaps.reshape(q, 2, -1).mean(axis=1)
        scale = np.abs(self.pulls[k]).mean() * np.sqrt(np.diag(kernels.signal))
        error = STEIN_ERRORS * pairs.std(axis=1) / np.sqrt(pairs.shape[1]) + STEIN_ROUNDING * scale
        worst = float(np.max(np.abs(pairs.mean(axis=1)) / np.maximum(error, 1e-300)))
        if worst > 1:
            raise ConvergenceError(
                f"the derivatives of the loss contradict its gradient: after {k} steps Stein's identity fails by {worst:.1f} times "
                f"its largest statistical error; give the correct derivatives, or Loss(..., jumps=('r',)) for a gradient that jumps",
                accuracy=worst,
            )

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


def row_of_blocks(blocks: Floats) -> Floats:
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
