"""Random inputs with a grouped covariance, and the risks of spectral filters for a fixed draw of the inputs.

A *design* is an n x p table X of independent rows with a diagonal covariance. The columns form groups, and all p_k columns of
group k have the eigenvalue s_k. The labels are y = X beta + noise, where beta has squared norm b_k spread uniformly at random
over the directions of group k. An estimator that filters the spectrum of S = X'X/n,

    b = f(S) S^+ X'y / n,     f(x) = the fitted share of a direction, g(x) = 1 - f(x) = the residual share,

has errors that are quadratic in beta and in the noise. (For ridge regression f = x/(x + lambda), for gradient flow f = 1 - e^{-tx}.)
This module averages over beta and the noise in closed form, so that the results are random only through X.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Design", "draw_design", "white"]

Array = NDArray[np.float64]
Entries = Literal["gaussian", "sign", "student"]

FREEDOM = 5  # degrees of freedom of Student entries, which have all moments below the fifth

EPSILON = float(np.finfo(np.float64).eps)


class Filter(NamedTuple):
    """The fitted and the residual share of each eigendirection, shape (..., r), which add up to one."""

    fit: Array
    residual: Array


def ridge_filter(values: Array, ridge: ArrayLike) -> Filter:
    """Return the filter of a ridge penalty, which does not fit the null space.

    >>> ridge_filter(np.array([0.0, 1.0]), [0.0, 1.0]).fit.tolist()
    [[0.0, 1.0], [0.0, 0.5]]
    """
    lam = np.asarray(ridge, dtype=float)[..., None]
    with np.errstate(invalid="ignore", divide="ignore"):
        fit, residual = values / (values + lam), lam / (values + lam)
    none = (values == 0) | np.isinf(lam)
    return Filter(np.where(none, 0.0, fit), np.where(none, 1.0, residual))


def ridge_resolvent(S: Array, ridge: float) -> Array:
    """Return (S + ridge)^-1 of a sample covariance, or the pseudo-inverse if the ridge is 0.

    >>> ridge_resolvent(np.diag([1.0, 0.0]), 0.0).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    if ridge > 0:
        return np.asarray(np.linalg.inv(S + ridge * np.eye(len(S))))
    return np.asarray(np.linalg.pinv(S, hermitian=True))


def flow_filter(values: Array, time: ArrayLike) -> Filter:
    """Return the filter of gradient flow from zero, stopped at a time.

    >>> flow_filter(np.array([0.0, 1.0]), [0.0, np.inf]).fit.tolist()
    [[0.0, 0.0], [0.0, 1.0]]
    """
    with np.errstate(invalid="ignore"):
        decay = np.where(values == 0, 0.0, np.asarray(time, dtype=float)[..., None] * values)
    return Filter(-np.expm1(-decay), np.exp(-decay))


def penalised_filter(values: Array, times: ArrayLike, penalty: Callable[[Array], Any], steps: int = 200) -> Filter:
    """Return the filter of gradient flow from zero with a time-dependent penalty, at increasing times.

    Each step uses the penalty at the middle of the step and solves the flow exactly.

    >>> penalised_filter(np.array([0.0, 1.0]), [2.0], lambda t: 1.0).fit.round(6).tolist()
    [[0.0, 0.490842]]
    """
    gains, gain, now = [], np.zeros_like(values), 0.0
    for time in np.ravel(np.asarray(times, dtype=float)):
        if time > now:
            length = (float(time) - now) / steps
            middles = np.asarray(now + (np.arange(steps) + 0.5) * length, dtype=np.float64)
            rate = values + np.broadcast_to(penalty(middles), steps)[:, None]
            grown = np.where(rate > 0, -np.expm1(-length * rate) / np.where(rate > 0, rate, 1.0), length)
            until = length * np.cumsum(rate[::-1], axis=0)[::-1]  # integral of the rate from a step to the end
            gain = gain * np.exp(-until[0]) + (grown * np.exp(length * rate - until)).sum(axis=0)
        now = float(time)
        gains.append(gain)
    fit = values * np.array(gains)
    return Filter(fit, 1 - fit)


def descent_filter(values: Array, steps: ArrayLike, step: float) -> Filter:
    """Return the filter of `steps` steps of gradient descent from zero.

    >>> descent_filter(np.array([0.0, 1.0]), [0, 2], 0.5).fit.tolist()
    [[0.0, 0.0], [0.0, 0.75]]
    """
    count, slow = np.asarray(steps, dtype=float)[..., None], step * values < 0.5
    with np.errstate(invalid="ignore", over="ignore"):
        power = (1 - step * values) ** count
        logarithm = np.where(values == 0, 0.0, count * np.log1p(-np.where(slow, step * values, 0.0)))
    return Filter(np.where(slow, 0.0 - np.expm1(logarithm), 1 - power), np.where(slow, np.exp(logarithm), power))


class Design:
    """A drawn table of inputs that computes the risks of any spectral filter.

    Parameters
    ----------
    X
        Inputs, shape (n, p), columns ordered by group.
    eigenvalues
        Population eigenvalue of each group.
    counts
        Number of columns of each group.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> design = draw_design(rng, 30, [1.0, 4.0], [6, 4])
    >>> ridgeless = ridge_filter(design.values, 0.0)
    >>> float(design.bias(ridgeless, [1.0, 1.0])), float(design.train_error(ridgeless, [1.0, 1.0], noise=3.0).round(12))
    (0.0, 6.0)
    """

    def __init__(self, X: ArrayLike, eigenvalues: ArrayLike, counts: Sequence[int]):
        self.X = np.asarray(X, dtype=float)
        self.samples, self.features = self.X.shape
        self.eigenvalues, self.counts = np.asarray(eigenvalues, dtype=float), np.asarray(counts)

    # -- observables --------------------------------------------------------------------------------------------------

    def bias(self, chosen: Filter, signal: ArrayLike, test: ArrayLike | None = None) -> Array:
        """Return the squared bias for these inputs, which is the mean over beta of |Sigma^{1/2} g(S) beta|^2.

        `test` is the variance of the test inputs in each group, if it differs from that of the training inputs.
        """
        s, b2 = self._tested(test), np.asarray(signal, dtype=float)
        if len(s) == 1:
            unseen = self.features - self.values.size
            return np.asarray(s[0] * b2[0] / self.features * ((chosen.residual**2).sum(axis=-1) + unseen))
        product = self._form(s) * self._form(b2 / self.counts)
        if self.features <= self.samples:  # the eigenvectors are a basis
            return np.asarray(((chosen.residual @ product) * chosen.residual).sum(axis=-1))
        fitted = ((chosen.fit @ product) * chosen.fit).sum(axis=-1)
        return np.asarray((s * b2).sum() - 2 * chosen.fit @ (s * b2 @ self._shares) + fitted)

    def average_bias(self, chosen: Filter, signal: ArrayLike, test: ArrayLike | None = None) -> Array:
        """Return the squared bias of the predictor averaged over draws, which depends only on the mean of g(S) in each group."""
        s, b2 = self._tested(test), np.asarray(signal, dtype=float)
        if self.features <= self.samples:
            left = chosen.residual @ self._shares.T
        else:
            left = 1 - chosen.fit @ self._shares.T
        return np.asarray((s * b2 * left**2).sum(axis=-1))

    def variance(self, chosen: Filter, noise: ArrayLike, test: ArrayLike | None = None) -> Array:
        """Return the variance for these inputs, which is noise^2 / n times the trace of Sigma f(S)^2 S^+."""
        sigma = (self._tested(test) * self.counts) @ self._shares
        return np.asarray(np.asarray(noise) ** 2 / self.samples * ((chosen.fit**2 * self._inverse) @ sigma))

    def _tested(self, test: ArrayLike | None) -> Array:
        """Return the variance of the test inputs in each group."""
        return self.eigenvalues if test is None else np.asarray(test, dtype=float)

    def train_error(self, chosen: Filter, signal: ArrayLike, noise: ArrayLike) -> Array:
        """Return the mean squared residual, averaged over beta and the noise."""
        along = np.asarray(signal, dtype=float) @ self._shares
        extra = self.samples - self.values.size  # dimension of the label space orthogonal to all inputs
        left = chosen.residual**2
        return np.asarray(left @ (self.values * along) + np.asarray(noise) ** 2 * (left.sum(axis=-1) + extra) / self.samples)

    def coefficient_norm(self, chosen: Filter, signal: ArrayLike, noise: ArrayLike) -> Array:
        """Return the squared norm of the coefficients, averaged over beta and the noise."""
        along, fitted = np.asarray(signal, dtype=float) @ self._shares, chosen.fit**2
        return np.asarray(fitted @ along + np.asarray(noise) ** 2 / self.samples * (fitted @ self._inverse))

    def overlap(self, chosen: Filter, signal: ArrayLike) -> Array:
        """Return <beta, b> without noise, averaged over beta."""
        return np.asarray(chosen.fit @ (np.asarray(signal, dtype=float) @ self._shares))

    def degrees_of_freedom(self, chosen: Filter) -> Array:
        """Return the trace of the hat matrix divided by n."""
        return np.asarray(chosen.fit.sum(axis=-1) / self.samples)

    def left_over(self, chosen: Filter) -> Array:
        """Return 1 - degrees of freedom, summed from the residual shares."""
        return np.asarray((chosen.residual.sum(axis=-1) + self.samples - self.values.size) / self.samples)

    # -- the spectrum -------------------------------------------------------------------------------------------------

    @property
    def values(self) -> Array:
        """The min(n, p) leading eigenvalues of S, where eigenvalues at rounding level are replaced by 0."""
        return self._decomposition[0]

    @cached_property
    def _decomposition(self) -> tuple[Array, Array | None]:
        """Eigenvalues of S and, if there is more than one group, its eigenvectors (columns)."""
        if len(self.eigenvalues) == 1:
            singular, vectors = np.linalg.svd(self.X, compute_uv=False), None
        else:
            _, singular, right = np.linalg.svd(self.X, full_matrices=False)
            vectors = right.T
        positive = singular > EPSILON * max(self.X.shape) * singular.max(initial=0.0)
        return np.where(positive, singular, 0.0) ** 2 / self.samples, vectors

    @cached_property
    def _inverse(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.where(self.values > 0, 1 / self.values, 0.0)

    @cached_property
    def _shares(self) -> Array:
        """Squared norm of each eigenvector inside each group, divided by the size of the group, shape (groups, r)."""
        vectors = self._decomposition[1]
        if vectors is None:
            return np.full((1, self.values.size), 1 / self.features)
        starts = np.cumsum(self.counts) - self.counts
        return np.asarray(np.add.reduceat(vectors**2, starts, axis=0) / self.counts[:, None])

    def _form(self, weight: Array) -> Array:
        """Return the matrix of diag(weight per group) in the basis of eigenvectors."""
        vectors = self._decomposition[1]
        assert vectors is not None
        return vectors.T @ (np.repeat(weight, self.counts)[:, None] * vectors)


def white(rng: np.random.Generator, shape: tuple[int, int], entries: Entries) -> Array:
    """Return independent entries of mean 0 and variance 1.

    They are Gaussian, random signs, or Student variables with five degrees of freedom.

    >>> white(np.random.default_rng(0), (1, 3), "sign").tolist()
    [[1.0, 1.0, 1.0]]
    """
    if entries == "sign":
        return np.asarray(2.0 * rng.integers(0, 2, shape) - 1)
    if entries == "student":
        return np.asarray(rng.standard_t(FREEDOM, shape) * np.sqrt((FREEDOM - 2) / FREEDOM))
    return np.asarray(rng.standard_normal(shape))


def draw_design(
    rng: np.random.Generator, samples: int, eigenvalues: ArrayLike, counts: Sequence[int], entries: Entries = "gaussian"
) -> Design:
    """Return a design of n independent rows.

    Each column has white entries (Gaussian, random signs or Student variables) times the square root of its eigenvalue.

    >>> draw_design(np.random.default_rng(0), 3, [1.0, 4.0], [1, 1], "sign").X.tolist()
    [[1.0, 2.0], [1.0, -2.0], [-1.0, -2.0]]
    """
    rows = white(rng, (samples, int(np.sum(counts))), entries)
    return Design(rows * np.sqrt(np.repeat(np.asarray(eigenvalues, dtype=float), counts)), eigenvalues, counts)
