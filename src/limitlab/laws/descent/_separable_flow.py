"""Gradient descent on least squares and on losses of separable data.

A least-squares problem with more unknowns than samples has many minimisers, and descent from theta_0 ends at the minimiser nearest to
theta_0. The exponential and the logistic loss of separable data have no minimiser, and w(t) grows like log t. `SeparableFlow` integrates w
in the time log t, in the coordinates r = w - w_hat log t. r stays bounded, so that no digits are lost even at log t = 10^6.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import ConvergenceError, Refused
from limitlab.numerics.margin import HardMargin, hard_margin

Array = NDArray[np.float64]
Tail = Literal["exponential", "logistic"]
TAILS: tuple[Tail, ...] = ("exponential", "logistic")

RANK = 1e-10  # singular values below this share of the largest are zero
ON_MARGIN = 1e-9  # samples with <v_i, w_hat> - 1 below this value lie on the margin
FIRST_TIME = 1e-6  # up to this time the flow is a straight line
TOLERANCE = 1e-10  # of the integration of a single flow; a flow that is one of many draws needs less

_one_at_a_time = threading.Lock()  # older versions of ODEPACK keep their state in global variables


@dataclass(frozen=True)
class LeastSquares:
    """The loss (1/n) |X theta - y|^2 and gradient descent on it.

    Each column of labels y is a separate problem.

    Examples
    --------
    >>> problem = LeastSquares(np.array([[1.0, 2.0, 0.0, 1.0], [0.0, 1.0, 1.0, -1.0]]), np.array([1.0, 2.0]))
    >>> problem.limit().round(6).tolist()
    [0.058824, 0.764706, 0.647059, -0.588235]
    >>> round(problem.largest_step, 6), round(problem.best_rate, 6)
    (0.317321, 0.400617)
    """

    X: Array
    y: Array

    @cached_property
    def svd(self) -> tuple[Array, Array, Array]:
        """Singular value decomposition of X without the singular values that are zero."""
        left, singular, right = np.linalg.svd(self.X, full_matrices=False)
        keep = singular > RANK * singular.max(initial=0.0)
        return left[:, keep], singular[keep], right[keep]

    @property
    def eigenvalues(self) -> Array:
        """Non-zero eigenvalues of X'X/n, in decreasing order."""
        return self.svd[1] ** 2 / len(self.X)

    @property
    def largest_step(self) -> float:
        """The bound 1/lambda_max(X'X/n) on the step below which descent converges."""
        return float(1 / self.eigenvalues[0])

    @property
    def best_step(self) -> float:
        """The step 1/(lambda_max + lambda_min) with the best guaranteed rate; lambda_min is the least non-zero eigenvalue of X'X/n."""
        return float(1 / (self.eigenvalues[0] + self.eigenvalues[-1]))

    @property
    def best_rate(self) -> float:
        """The guaranteed factor by which a step of the best length shrinks the distance to the limit."""
        high, low = self.eigenvalues[0], self.eigenvalues[-1]
        return float((high - low) / (high + low))

    def limit(self, start: ArrayLike = 0.0, labels: Array | None = None) -> Array:
        """Return the end of descent, which is the least-squares solution nearest to the start, for y or for other `labels`."""
        left, singular, right = self.svd
        y = self.y if labels is None else labels
        theta = np.broadcast_to(np.asarray(start, dtype=float), (*self.X.shape[1:], *y.shape[1:]))
        return np.asarray(theta + right.T @ ((left / singular).T @ (y - self.X @ theta)))

    def descend(self, steps: int, step: float | None = None, start: ArrayLike = 0.0) -> Array:
        """Return theta after `steps` steps of gradient descent, by default of the best length."""
        eta = self.best_step if step is None else float(step)
        if not 0 < eta < self.largest_step:
            raise Refused(f"step = {eta:g} is not allowed: must be above 0 and below {self.largest_step:.6g}")
        theta = np.array(np.broadcast_to(np.asarray(start, dtype=float), (*self.X.shape[1:], *self.y.shape[1:])))
        for _ in range(steps):
            theta -= 2 * eta / len(self.X) * (self.X.T @ (self.X @ theta - self.y))
        return theta


@dataclass(frozen=True)
class SeparableFlow:
    """Gradient flow dw/dt = -grad (1/n) sum_i loss(<v_i, w>), from 0 or from `origin`, on separable data, loss(m) = e^-m or log(1 + e^-m).

    Examples
    --------
    >>> flow = SeparableFlow(np.array([[1.0, 0.5], [0.4, 1.2], [2.0, 2.5], [1.5, 0.3]]))
    >>> flow.direction.round(12).tolist(), flow.correction.round(6).tolist()
    ([0.7, 0.6], [-1.050562, 0.350187])
    >>> flow.direction_gap([50.0, 800.0]).round(6).tolist(), round(flow.gap_constant, 6)
    ([0.02078, 0.001288], 1.029963)
    """

    vectors: Array  # y_i x_i
    loss: Tail = "exponential"
    tolerance: float = TOLERANCE  # of the integration
    origin: tuple[float, ...] | None = None  # w(0); None is 0

    @cached_property
    def hard_margin(self) -> HardMargin:
        """The max-margin solution that the direction tends to."""
        solution = hard_margin(self.vectors)
        if not solution.separable:
            raise Refused("the data are not allowed: no direction separates them, so that descent has no max-margin limit")
        return solution

    @cached_property
    def direction(self) -> Array:
        """The shortest vector w_hat with <v_i, w_hat> >= 1 for all i."""
        return self.hard_margin.direction / self.hard_margin.margin

    @cached_property
    def excess(self) -> Array:
        """The values <v_i, w_hat> - 1, which are zero on the support vectors and positive elsewhere."""
        excess = self.vectors @ self.direction - 1
        support = self.hard_margin.support
        excess[support] = 0.0
        idle = np.flatnonzero(excess < ON_MARGIN)
        if idle.size > support.size or np.linalg.matrix_rank(self.vectors[support]) < support.size:
            raise Refused(
                "the data are not allowed: the support vectors are linearly dependent or one of them has the multiplier 0, "
                "and then the remainder of w(t) does not converge; perturb the data"
            )
        return excess

    @property
    def correction(self) -> Array:
        """The part w_tilde of r(infinity) in the span of the support vectors, with <v_i, w_tilde> = -log(n alpha_i)."""
        support = self.hard_margin.support
        alpha = self.hard_margin.weights[support] / self.hard_margin.margin**2
        return np.asarray(np.linalg.lstsq(self.vectors[support], -np.log(len(self.vectors) * alpha), rcond=None)[0])

    @property
    def exponents(self) -> Array:
        """The exponents of the powers of 1/t with which r tends to its limit in the span of the support vectors.

        They are the eigenvalues of the matrix A in docs/theory/implicit_bias.md (eq. 2a), and the values of `excess` of the other samples.
        """
        support = self.hard_margin.support
        alpha = self.hard_margin.weights[support] / self.hard_margin.margin**2
        scaled = np.sqrt(alpha)[:, None] * self.vectors[support]
        return np.sort(np.concatenate([np.linalg.eigvalsh(scaled @ scaled.T), self.excess[self.excess > 0]]))

    @property
    def rate(self) -> float:
        """The exponent in t^-rate, with which r tends to its limit in the span of the support vectors.

        It is at most 1, which is the exponent along w_hat.

        >>> round(SeparableFlow(np.array([[1.0, 0.5, 0.0], [2.0, -0.5, 0.3], [1.5, 0.0, -0.8], [3.0, 1.0, 1.0]])).rate, 12)
        0.2
        """
        return min(float(self.exponents[0]), 1.0)

    @property
    def settled(self) -> float:
        """A value of log t by which r has converged."""
        return 100.0 + 40.0 / self.rate

    @cached_property
    def remainder(self) -> Array:
        """The limit r(infinity) of w(t) - w_hat log t. Its part outside the span of the support vectors requires integration."""
        return self.completed(self.remainders([self.settled])[0])

    def completed(self, settled: Array) -> Array:
        """Return r(infinity) from a late r(t), with the exact part in the span of the support vectors."""
        return self.correction + (settled - self.in_span(settled))

    def in_span(self, vector: Array) -> Array:
        """Return the part of a vector in the span of the support vectors."""
        support = self.vectors[self.hard_margin.support]
        return np.asarray(np.linalg.lstsq(support, support @ vector, rcond=None)[0])

    @property
    def gap_constant(self) -> float:
        """The constant C of |w/|w| - w_hat/|w_hat|| ~ C/log t.

        It is the length of the part of r(infinity) across w_hat, over |w_hat|.
        """
        return float(np.linalg.norm(self.across(self.remainder)) * self.hard_margin.margin)

    def across(self, remainder: Array) -> Array:
        """Return the part of r (one row per time) orthogonal to w_hat."""
        unit = self.hard_margin.direction
        return remainder - np.multiply.outer(remainder @ unit, unit)

    @property
    def first(self) -> Array:
        """The weights w(0)."""
        return np.zeros(self.vectors.shape[1]) if self.origin is None else np.array(self.origin, dtype=float)

    def remainders(self, log_times: ArrayLike) -> Array:
        """Return r(t) = w(t) - w_hat log t at increasing values of log t, shape (times, dimension)."""
        from scipy.integrate import odeint

        wanted = np.atleast_1d(np.asarray(log_times, dtype=float))
        begin = float(np.log(FIRST_TIME))
        if (np.diff(wanted) <= 0).any() or not (wanted > begin).all():
            raise Refused(f"log_time = {log_times!r} is not allowed: must be increasing and above {begin:.6g}")
        # up to FIRST_TIME, w is w(0) - t grad L(w(0))
        first = self.first
        start = first - self.gradient(first) * FIRST_TIME - self.direction * begin
        with _one_at_a_time, warnings.catch_warnings(action="ignore"):  # the message of the error below contains the reason
            solution, report = odeint(
                self._rate, start, [begin, *wanted], Dfun=self._jacobian, rtol=self.tolerance, atol=self.tolerance, mxstep=10**6,
                tfirst=True, full_output=True,
            )  # fmt: skip
        if report["message"] != "Integration successful.":
            raise ConvergenceError(
                f"the integration of the gradient flow up to log t = {wanted[-1]:.4g} failed: {report['message']}", solution
            )
        return np.asarray(solution[1:])

    def weights(self, log_times: ArrayLike) -> Array:
        """Return w(t) at increasing values of log t, shape (times, dimension)."""
        wanted = np.atleast_1d(np.asarray(log_times, dtype=float))
        return self.remainders(wanted) + wanted[:, None] * self.direction

    def direction_gap(self, log_times: ArrayLike) -> Array:
        """Return the distance of the direction of w(t) from its limit at increasing values of log t."""
        wanted = np.atleast_1d(np.asarray(log_times, dtype=float))
        return np.asarray(self.gap(wanted, self.remainders(wanted)).reshape(np.shape(log_times)))

    def gap(self, log_times: Array, remainders: Array) -> Array:
        """Return the direction gap from r, by a formula without cancellation."""
        along = remainders @ self.hard_margin.direction + log_times / self.hard_margin.margin
        return np.asarray(2 * np.sin(np.arctan2(np.linalg.norm(self.across(remainders), axis=-1), along) / 2))

    def _pulls(self, tau: float, r: Array) -> tuple[Array, Array | float]:
        """Return t f_i for the pull f_i of every sample, and its logarithmic derivative in the sample's margin."""
        pulls = self.excess * -tau  # in place and with few operations, because small data sets call this thousands of times
        pulls -= self.vectors.dot(r)
        np.minimum(pulls, 300.0, out=pulls)
        np.exp(pulls, out=pulls)  # t e^-m
        if self.loss == "exponential":
            return pulls, -1.0
        damping = 1 / (1 + pulls * math.exp(-tau))  # f = e^-m / (1 + e^-m)
        return pulls * damping, -damping

    def _rate(self, tau: float, r: Array) -> Array:
        """Return dr/dlog t = t sum_i f_i v_i / n - w_hat."""
        rate = self._pulls(tau, r)[0].dot(self._shares)
        rate -= self.direction
        return np.asarray(rate)

    @cached_property
    def _shares(self) -> Array:
        return self.vectors / len(self.vectors)

    def _jacobian(self, tau: float, r: Array) -> Array:
        pulls, slope = self._pulls(tau, r)
        return np.asarray((self.vectors * (pulls * slope / len(self.vectors))[:, None]).T @ self.vectors)

    def gradient(self, w: Array) -> Array:
        """Return the gradient of the mean loss at w."""
        m = self.vectors @ w
        pull = np.exp(-m) if self.loss == "exponential" else 1 / (1 + np.exp(m))
        return np.asarray(-pull @ self.vectors / len(self.vectors))


def gradient_descent(flow: SeparableFlow, step: float, steps: Sequence[int]) -> Array:
    """Return w after the numbers `steps` of steps of gradient descent from the origin of the flow, shape (len(steps), dimension).

    >>> flow = SeparableFlow(np.array([[1.0, 0.0], [0.0, 1.0]]))
    >>> gradient_descent(flow, 0.1, [0, 1]).tolist()
    [[0.0, 0.0], [0.05, 0.05]]
    """
    w, weights = flow.first, []
    for k in range(max(steps) + 1):
        if k in steps:
            weights.append(w.copy())
        w = w - step * flow.gradient(w)
    return np.array(weights)
