"""Channels from a Gaussian score to a label, and priors of the coefficients of a generalised linear model.

A label y is drawn given z = <beta, x>. The current estimate is z ~ N(omega, V). Then Z(y) = E P(y | omega + sqrt(V) w), and the derivative
of log Z is g = d log Z/d omega. The channels are gaussian (z + noise), sign (sign z), flip (the sign, wrong with probability b), probit and
logit (y = 1 with probability Phi(b z) and 1/(1 + e^{-b z})), abs (|z| + noise) and relu (max(z, 0) + noise). Labels of two classes are
-1, +1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from limitlab.laws.classification._own_channels import OwnChannel, OwnPrior
from limitlab.numerics.gaussian import hermite_rule
from limitlab.numerics.quadrature import even_gaussian_rule, graded_rule, panel_rule

Array = NDArray[np.float64]


ChannelName = Literal["gaussian", "sign", "flip", "probit", "logit", "abs", "relu"]
PriorName = Literal["gaussian", "rademacher", "sparse"]

CLASSES = ("sign", "flip", "probit", "logit")
LEAST_VARIANCE = 1e-10


def _density(u: Array) -> Array:
    return np.asarray(np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi))


@dataclass(frozen=True)
class Channel:
    """A channel with its strength b (probit, logit, flip) and its noise (gaussian, abs, relu).

    >>> Channel("abs", noise=0.0).draw(np.random.default_rng(0), np.array([-2.0, 1.0])).tolist()
    [2.0, 1.0]
    """

    name: ChannelName
    strength: float = 1.0
    noise: float = 0.0

    def probability(self, z: Array) -> Array:
        """Return P(y = +1 | z) for two classes."""
        from scipy.special import expit, ndtr

        if self.name == "probit":
            return np.asarray(ndtr(self.strength * z))
        if self.name == "logit":
            return np.asarray(expit(self.strength * z))
        wrong = self.strength if self.name == "flip" else 0.0
        return np.where(z > 0, 1 - wrong, wrong)

    def clean(self, z: Array) -> Array:
        """Return the label without noise, for real-valued labels."""
        if self.name == "abs":
            return np.abs(z)
        return np.maximum(z, 0.0) if self.name == "relu" else z

    def draw(self, rng: np.random.Generator, z: Array) -> Array:
        """Draw labels for the scores z."""
        if self.name in CLASSES:
            return np.where(rng.random(z.shape) < self.probability(z), 1.0, -1.0)
        return self.clean(z) + self.noise * rng.standard_normal(z.shape)

    def pull(self, y: Array, omega: Array, variance: float) -> Array:
        """Return the derivative of the log of `evidence` with respect to omega.

        >>> Channel("gaussian", noise=1.0).pull(np.array([2.0]), np.array([1.0]), 0.25).tolist()
        [0.8]
        """
        from scipy.special import expit, log_ndtr, ndtr

        V = max(variance, LEAST_VARIANCE)
        if self.name == "gaussian":
            return np.asarray((y - omega) / (V + self.noise**2))
        if self.name == "logit":
            w, weight = hermite_rule(60)
            risk = expit(self.strength * y[:, None] * (omega[:, None] + np.sqrt(V) * w))
            return np.asarray(self.strength * y * ((risk * (1 - risk)) @ weight) / (risk @ weight))
        if self.name in CLASSES:
            width = np.sqrt(V + 1 / self.strength**2) if self.name == "probit" else np.sqrt(V)
            u = y * omega / width
            if self.name == "flip":
                b = self.strength
                return np.asarray(y * (1 - 2 * b) * _density(u) / (b + (1 - 2 * b) * ndtr(u)) / width)
            return np.asarray(y * np.exp(-(u**2) / 2 - log_ndtr(u)) / np.sqrt(2 * np.pi) / width)
        if self.noise == 0:
            if self.name == "abs":
                return np.asarray((y * np.tanh(y * omega / V) - omega) / V)
            u = -omega / np.sqrt(V)
            zero = -np.exp(-(u**2) / 2 - log_ndtr(u)) / np.sqrt(2 * np.pi * V)
            return np.where(y > 0, (y - omega) / V, zero)
        value, slope = self.evidence(y, omega, V)
        return np.asarray(slope / np.maximum(value, 1e-300))

    def evidence(self, y: Array, omega: Array, variance: float) -> tuple[Array, Array]:
        """Return Z and dZ/d omega of noisy abs and relu, whose two branches are parts of Gaussians; arguments broadcast."""
        from scipy.special import ndtr

        V, tau2 = variance, self.noise**2
        S = V + tau2
        inner = np.sqrt(V * tau2 / S)

        def piece(sign: float) -> tuple[Array, Array]:
            normal = _density((y - sign * omega) / np.sqrt(S)) / np.sqrt(S)
            reach = (V * y + tau2 * sign * omega) / (S * inner)
            value = normal * ndtr(reach)
            return value, sign * (value * (y - sign * omega) / S + normal * _density(reach) * tau2 / (S * inner))

        right, d_right = piece(1.0)
        if self.name == "abs":
            left, d_left = piece(-1.0)
        else:
            still, u = _density(y / self.noise) / self.noise, -omega / np.sqrt(V)
            left, d_left = still * ndtr(u), -still * _density(u) / np.sqrt(V)
        return right + left, d_right + d_left

    def expected(self, omega: Array, variance: float) -> Array:
        """Return E[y | omega], the best prediction of a real-valued label."""
        from scipy.special import ndtr

        if self.name == "gaussian":
            return omega
        width = np.sqrt(max(variance, LEAST_VARIANCE))
        u = omega / width
        if self.name == "relu":
            return np.asarray(omega * ndtr(u) + width * _density(u))
        return np.asarray(omega * (2 * ndtr(u) - 1) + 2 * width * _density(u))


@dataclass(frozen=True)
class Prior:
    """Prior of independent entries of variance 1.

    The entries are Gaussian (gaussian), +-1 (rademacher), or 0 except for a share `density` of Gaussian entries (sparse).
    """

    name: PriorName
    density: float = 1.0

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Draw `size` entries."""
        if self.name == "rademacher":
            return np.asarray(1 - 2.0 * rng.integers(0, 2, size), dtype=np.float64)
        entries: Array = np.asarray(rng.standard_normal(size))
        if self.name == "sparse":
            entries *= (rng.random(size) < self.density) / np.sqrt(self.density)
        return entries

    def posterior(self, observation: Array, variance: float) -> tuple[Array, Array]:
        """Return mean and variance of an entry given its noisy observation, with Gaussian noise of the given variance.

        >>> Prior("gaussian").posterior(np.array([1.0]), 1.0)
        (array([0.5]), array([0.5]))
        """
        if self.name == "rademacher":
            mean = np.tanh(observation / variance)
            return mean, 1 - mean**2
        size = 1 / self.density if self.name == "sparse" else 1.0
        shrink = size / (size + variance)
        mean, spread = shrink * observation, np.full_like(observation, shrink * variance)
        if self.name == "gaussian" or self.density == 1:
            return mean, spread
        from scipy.special import expit

        odds = (
            np.log(self.density / (1 - self.density))
            + np.log(variance / (size + variance)) / 2
            + observation**2 * shrink / (2 * variance)
        )
        share = expit(odds)
        return share * mean, share * (spread + mean**2) - (share * mean) ** 2


# -- I(q), Q(r) and the least error -------------------------------------------------------------------------------------

FLAT = 9.0  # for |u| above this value the function H of abs is 1 up to e^-40


# -- I(q), the information of a label about the score ---------------------------------------------------------------------


@lru_cache(maxsize=1)
def _abs_table() -> np.polynomial.Chebyshev:
    """Return a Chebyshev series of the even, smooth function H(u) = E (t tanh(t u) - u)^2, t = u + w, for |u| <= FLAT."""
    w, weight = even_gaussian_rule(0.02, 9.0)

    def values(u: Array) -> Array:
        t = u[:, None] + w
        return np.asarray((t * np.tanh(t * u[:, None]) - u[:, None]) ** 2 @ weight)

    return np.polynomial.Chebyshev.interpolate(values, 600, domain=[-FLAT, FLAT])


def _shape(channel: Channel, u: Array) -> Array:
    """Return H(u) of the channels for which I = E H(v sqrt(q/V'))/V' (docs/theory/bayes_optimal.md, eq. 2)."""
    from scipy.special import log_ndtr, ndtr

    density = np.exp(-(u**2) / 2) / np.sqrt(2 * np.pi)
    if channel.name == "abs":
        return np.where(np.abs(u) < FLAT, _abs_table()(np.clip(u, -FLAT, FLAT)), 1.0)
    if channel.name == "relu":
        return np.asarray(ndtr(u) - u * density + np.exp(-(u**2) - log_ndtr(-u)) / (2 * np.pi))
    if channel.name == "flip":
        b = channel.strength
        right = b + (1 - 2 * b) * ndtr(u)
        return np.asarray(((1 - 2 * b) * density) ** 2 / (right * (1 - right)))
    return np.asarray(np.exp(-(u**2) - log_ndtr(u) - log_ndtr(-u)) / (2 * np.pi))


def information(channel: Channel | OwnChannel, q: float, order: int = 24) -> float:
    """Return the information of a label about its score at overlap q.

    >>> information(Channel("gaussian", noise=0.5), 0.75)
    2.0
    """
    if isinstance(channel, OwnChannel):
        return channel.information(q, order)
    V = 1 - q
    if channel.name == "gaussian":
        return 1 / (V + channel.noise**2)
    if channel.name == "logit":
        return _logit_information(channel.strength, q, order)
    if channel.noise > 0 and channel.name in ("abs", "relu"):
        return _noisy_information(channel, q, order)
    width = V + 1 / channel.strength**2 if channel.name == "probit" else V
    scale = math.sqrt(width / q)
    v, weight = graded_rule([(0.0, scale)], order)
    return float(weight @ _shape(channel, v / scale)) / width


def _logit_information(strength: float, q: float, order: int) -> float:
    """Return E Z'^2/(Z (1 - Z)) with Z = E sig(b omega + b sqrt(V) w)."""
    v, weight = graded_rule([(0.0, 1 / strength)], order)
    risk, slope = _logit(strength, q, v)
    other = _logit(strength, q, -v)[0]  # 1 - Z, without cancellation
    return float(weight @ (slope**2 / (risk * other)))


def _logit(strength: float, q: float, v: Array) -> tuple[Array, Array]:
    """Return Z and dZ/d omega at omega = sqrt(q) v."""
    from scipy.special import expit

    spread = strength * math.sqrt(1 - q)
    w, weight = even_gaussian_rule(min(0.5, 0.5 / max(spread, 1e-9)), 9.0)
    risk = expit(strength * math.sqrt(q) * v[:, None] + spread * w)
    return np.asarray(risk @ weight), np.asarray(strength * (risk * (1 - risk)) @ weight)


def _noisy_information(channel: Channel, q: float, order: int) -> float:
    """Return I(q) as a double integral over y (by an equally spaced rule) and v."""
    V, tau = 1 - q, channel.noise
    size = math.sqrt(V + tau**2)
    layers = [(0.0, math.sqrt(V / q)), (0.0, tau)]
    v, weight = graded_rule(layers, order)
    relevant = (np.abs(v) < 8.5) & ((v > 0) | (channel.name == "relu"))
    v, weight = v[relevant], weight[relevant] * (1 if channel.name == "relu" else 2)
    step = min(tau, size / 2) / (6 if order <= 24 else 8)
    low = -9 * size if channel.name == "abs" else -10 * tau
    y = np.arange(low, 8.5 * math.sqrt(q) + 10 * size, step)
    total = 0.0
    for part in np.array_split(np.arange(v.size), max(1, v.size * y.size // 2_000_000)):
        value, slope = channel.evidence(y, math.sqrt(q) * v[part, None], V)
        ratio = np.divide(slope**2, value, out=np.zeros_like(value), where=value > 1e-200)
        total += float(weight[part] @ ratio.sum(axis=1)) * step
    return total


# -- Q(r), the overlap from a noisy observation of an entry ----------------------------------------------------------------


def recovered(prior: Prior | OwnPrior, precision: float) -> float:
    """Return the mean square of the posterior mean of an entry that is observed with noise of variance 1/r.

    >>> recovered(Prior("gaussian"), 3.0)
    0.75
    """
    if isinstance(prior, OwnPrior):
        return prior.recovered(precision)
    r = precision
    if prior.name == "gaussian" or (prior.name == "sparse" and prior.density == 1):
        return r / (1 + r)
    if r == 0:
        return 0.0
    if prior.name == "rademacher":
        v, weight = graded_rule([(-math.sqrt(r), 1 / math.sqrt(r))], 24)
        return float(weight @ np.tanh(r + math.sqrt(r) * v))
    return _sparse_recovered(prior.density, r)


def _sparse_recovered(e: float, r: float) -> float:
    """Return the mean square of the posterior mean, averaged over entries that are 0 and entries that are Gaussian."""
    from scipy.special import expit

    a = 1 + r / e
    turn = math.sqrt(max(2 * (math.log((1 - e) / e) + math.log(a) / 2) / (1 - 1 / a), 0.0))
    total = 0.0
    for share, scale in ((1 - e, 1.0), (e, math.sqrt(a))):
        places = [(sign * turn / scale, 0.3 / scale) for sign in (-1, 1)]
        v, weight = graded_rule([*places, (0.0, 0.3)], 24)
        R = scale * v
        mean = math.sqrt(r) * R / (e * a) * expit(-(math.log((1 - e) / e) + math.log(a) / 2 - R**2 * (1 - 1 / a) / 2))
        total += share * float(weight @ mean**2)
    return total


def precision_of(prior: Prior | OwnPrior, q: float) -> float:
    """Return the precision r at which `recovered` is q."""
    if isinstance(prior, OwnPrior):
        return prior.precision_of(q)
    if prior.name == "gaussian" or (prior.name == "sparse" and prior.density == 1):
        return q / (1 - q)
    from scipy.optimize import brentq

    high = 1.0
    while recovered(prior, high) < q and high < 1e12:
        high *= 2
    return float(brentq(lambda r: recovered(prior, r) - q, 0.0, high, xtol=1e-14, rtol=1e-13))


# -- errors at an overlap --------------------------------------------------------------------------------------------------


def errors(channel: Channel | OwnChannel, q: float) -> dict[str, float]:
    """Return the least error at overlap q.

    For two classes it is the probability of a wrong label. For real-valued labels these are the squared errors with and without the label
    noise.
    """
    from scipy.special import ndtr

    if isinstance(channel, OwnChannel):
        return channel.errors(q)
    if channel.name in ("sign", "flip"):
        wrong = channel.strength if channel.name == "flip" else 0.0
        return {"classification_error": wrong + (1 - 2 * wrong) * math.acos(math.sqrt(q)) / math.pi}
    if channel.name in CLASSES:
        v, weight = panel_rule((0.0,), width=0.25, reach=12.0)
        if channel.name == "probit":
            u = v * math.sqrt(q / (1 - q + 1 / channel.strength**2))
            return {"classification_error": float(weight @ ndtr(-np.abs(u)))}
        risk = _logit(channel.strength, q, v)[0]
        return {"classification_error": float(weight @ np.minimum(risk, 1 - risk))}
    variance = {"gaussian": 1.0, "abs": 1.0, "relu": 0.5}[channel.name]
    v, weight = graded_rule([(0.0, math.sqrt(max(1 - q, 1e-14) / max(q, 1e-14)))], 24)
    excess = variance - float(weight @ channel.expected(math.sqrt(q) * v, 1 - q) ** 2)
    excess = max(excess, 0.0) if q < 1 else 0.0
    return {"test_error": excess + channel.noise**2, "excess_risk": excess}
