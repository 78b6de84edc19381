"""Gradient descent on convex problems with many minimisers, or with none: least squares, and losses of separable data.

Least squares has a minimiser in every direction that the data leave free; descent from theta_0 ends at the one nearest to
theta_0. The exponential and the logistic loss of separable data have no minimiser: w(t) grows like log t. `SeparableFlow` follows it in
the time log t, in the coordinates r = w - w_hat log t that stay bounded, so that log t = 10^6 costs no more digits than log t = 10.
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
ON_MARGIN = 1e-9  # samples this close to the margin are on it
FIRST_TIME = 1e-6  # where the flow is still a straight line
TOLERANCE = 1e-10  # of a flow that is looked at; one of many draws needs less

_one_at_a_time = threading.Lock()  # older versions of ODEPACK keep their state in global variables


@dataclass(frozen=True)
class LeastSquares:
    """The loss (1/n) |X theta - y|^2 and gradient descent on it; several columns of labels y are as many problems, side by side.

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
        """Steps below this converge: 1/lambda_max(X'X/n)."""
        return float(1 / self.eigenvalues[0])

    @property
    def best_step(self) -> float:
        """The step with the best guaranteed rate: 1/(lambda_max + lambda_min) of the non-zero eigenvalues of X'X/n."""
        return float(1 / (self.eigenvalues[0] + self.eigenvalues[-1]))

    @property
    def best_rate(self) -> float:
        """Factor by which every step of the best length shrinks the distance to the limit, at least."""
        high, low = self.eigenvalues[0], self.eigenvalues[-1]
        return float((high - low) / (high + low))

    def limit(self, start: ArrayLike = 0.0, labels: Array | None = None) -> Array:
        """Where descent ends: the least-squares solution nearest to the start, for these labels or for others."""
        left, singular, right = self.svd
        y = self.y if labels is None else labels
        theta = np.broadcast_to(np.asarray(start, dtype=float), (*self.X.shape[1:], *y.shape[1:]))
        return np.asarray(theta + right.T @ ((left / singular).T @ (y - self.X @ theta)))

    def descend(self, steps: int, step: float | None = None, start: ArrayLike = 0.0) -> Array:
        """theta after so many steps of gradient descent, step by step (default: the best length)."""
        eta = self.best_step if step is None else float(step)
        if not 0 < eta < self.largest_step:
            raise Refused(f"step = {eta:g} is not allowed: must be above 0, below {self.largest_step:.6g}")
        theta = np.array(np.broadcast_to(np.asarray(start, dtype=float), (*self.X.shape[1:], *self.y.shape[1:])))
        for _ in range(steps):
            theta -= 2 * eta / len(self.X) * (self.X.T @ (self.X @ theta - self.y))
        return theta


@dataclass(frozen=True)
class SeparableFlow:
    """Gradient flow dw/dt = -grad (1/n) sum_i loss(<v_i, w>) from 0 on separable data, loss(m) = e^-m or log(1 + e^-m).

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

    @cached_property
    def hard_margin(self) -> HardMargin:
        """The max-margin solution that the direction tends to."""
        found = hard_margin(self.vectors)
        if not found.separable:
            raise Refused("the data are not allowed: no direction separates them, so that descent has no max-margin limit")
        return found

    @cached_property
    def direction(self) -> Array:
        """w_hat: the shortest vector with <v_i, w> >= 1 for all i."""
        return self.hard_margin.direction / self.hard_margin.margin

    @cached_property
    def excess(self) -> Array:
        """<v_i, w_hat> - 1: zero on the support vectors, and only there."""
        excess = self.vectors @ self.direction - 1
        support = self.hard_margin.support
        excess[support] = 0.0
        idle = np.flatnonzero(excess < ON_MARGIN)
        if idle.size > support.size or np.linalg.matrix_rank(self.vectors[support]) < support.size:
            raise Refused(
                "the data are not allowed: the support vectors are linearly dependent or one of them carries no weight, "
                "and then the remainder of w(t) does not converge; perturb the data"
            )
        return excess

    @property
    def correction(self) -> Array:
        """w_tilde: the part of r(infinity) in the span of the support vectors, <v_i, w_tilde> = -log(n alpha_i)."""
        support = self.hard_margin.support
        alpha = self.hard_margin.weights[support] / self.hard_margin.margin**2
        return np.asarray(np.linalg.lstsq(self.vectors[support], -np.log(len(self.vectors) * alpha), rcond=None)[0])

    @property
    def exponents(self) -> Array:
        """With which powers t^-exponent the parts of r vanish: relaxation of the support vectors, and pulls of the other samples."""
        support = self.hard_margin.support
        alpha = self.hard_margin.weights[support] / self.hard_margin.margin**2
        scaled = np.sqrt(alpha)[:, None] * self.vectors[support]
        return np.sort(np.concatenate([np.linalg.eigvalsh(scaled @ scaled.T), self.excess[self.excess > 0]]))

    @property
    def rate(self) -> float:
        """r approaches its limit in the span of the support vectors like t^-rate; at most 1, along w_hat.

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
        """r(infinity) = lim w(t) - w_hat log t; outside the span of the support vectors it is known only by integration."""
        return self.completed(self.remainders([self.settled])[0])

    def completed(self, settled: Array) -> Array:
        """r(infinity) from a late r(t): exact in the span of the support vectors, as it is outside."""
        return self.correction + (settled - self.in_span(settled))

    def in_span(self, vector: Array) -> Array:
        """The part of a vector in the span of the support vectors."""
        support = self.vectors[self.hard_margin.support]
        return np.asarray(np.linalg.lstsq(support, support @ vector, rcond=None)[0])

    @property
    def gap_constant(self) -> float:
        """C of the law |w/|w| - w_hat/|w_hat|| ~ C/log t: the part of r(infinity) across w_hat, over |w_hat|."""
        return float(np.linalg.norm(self.across(self.remainder)) * self.hard_margin.margin)

    def across(self, remainder: Array) -> Array:
        """The part of r (one row per time) orthogonal to w_hat."""
        unit = self.hard_margin.direction
        return remainder - np.multiply.outer(remainder @ unit, unit)

    def remainders(self, log_times: ArrayLike) -> Array:
        """r(t) = w(t) - w_hat log t at increasing values of log t, shape (times, dimension)."""
        from scipy.integrate import odeint

        wanted = np.atleast_1d(np.asarray(log_times, dtype=float))
        begin = float(np.log(FIRST_TIME))
        if (np.diff(wanted) <= 0).any() or not (wanted > begin).all():
            raise Refused(f"log_time = {log_times!r} is not allowed: must be increasing and above {begin:.6g}")
        # At first w is still -t grad L(0).
        start = -self.gradient(np.zeros(self.vectors.shape[1])) * FIRST_TIME - self.direction * begin
        with _one_at_a_time, warnings.catch_warnings(action="ignore"):  # what the warnings say is in the message
            found, how = odeint(
                self._rate, start, [begin, *wanted], Dfun=self._jacobian, rtol=self.tolerance, atol=self.tolerance, mxstep=10**6,
                tfirst=True, full_output=True,
            )  # fmt: skip
        if how["message"] != "Integration successful.":
            raise ConvergenceError(
                f"the gradient flow was not followed to log t = {wanted[-1]:.4g}: {how['message']}", found
            )
        return np.asarray(found[1:])

    def weights(self, log_times: ArrayLike) -> Array:
        """w(t) at increasing values of log t, shape (times, dimension)."""
        wanted = np.atleast_1d(np.asarray(log_times, dtype=float))
        return self.remainders(wanted) + wanted[:, None] * self.direction

    def direction_gap(self, log_times: ArrayLike) -> Array:
        """|w/|w| - w_hat/|w_hat|| at increasing values of log t."""
        wanted = np.atleast_1d(np.asarray(log_times, dtype=float))
        return np.asarray(self.gap(wanted, self.remainders(wanted)).reshape(np.shape(log_times)))

    def gap(self, log_times: Array, remainders: Array) -> Array:
        """The direction gap from r, so that nothing cancels."""
        along = remainders @ self.hard_margin.direction + log_times / self.hard_margin.margin
        return np.asarray(2 * np.sin(np.arctan2(np.linalg.norm(self.across(remainders), axis=-1), along) / 2))

    def _pulls(self, tau: float, r: Array) -> tuple[Array, Array | float]:
        """t f_i of the pull f_i of every sample, and its logarithmic derivative in the sample's margin."""
        pulls = self.excess * -tau  # called thousands of times for small data: few operations, in place
        pulls -= self.vectors.dot(r)
        np.minimum(pulls, 300.0, out=pulls)
        np.exp(pulls, out=pulls)  # t e^-m
        if self.loss == "exponential":
            return pulls, -1.0
        damping = 1 / (1 + pulls * math.exp(-tau))  # f = e^-m / (1 + e^-m)
        return pulls * damping, -damping

    def _rate(self, tau: float, r: Array) -> Array:
        """dr/dlog t = t sum_i f_i v_i / n - w_hat."""
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
        """The gradient of the mean loss at w."""
        m = self.vectors @ w
        pull = np.exp(-m) if self.loss == "exponential" else 1 / (1 + np.exp(m))
        return np.asarray(-pull @ self.vectors / len(self.vectors))


def gradient_descent(flow: SeparableFlow, step: float, steps: Sequence[int]) -> Array:
    """w after given numbers of plain steps of gradient descent from 0, shape (len(steps), dimension).

    >>> flow = SeparableFlow(np.array([[1.0, 0.0], [0.0, 1.0]]))
    >>> gradient_descent(flow, 0.1, [0, 1]).tolist()
    [[0.0, 0.0], [0.05, 0.05]]
    """
    w, found = np.zeros(flow.vectors.shape[1]), []
    for k in range(max(steps) + 1):
        if k in steps:
            found.append(w.copy())
        w = w - step * flow.gradient(w)
    return np.array(found)
