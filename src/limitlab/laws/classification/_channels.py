"""Channels from a Gaussian score to a label, and priors of coefficients: what message passing needs to know of a generalised linear model.

A label y is drawn given z = <beta, x>, of which a current guess says z ~ N(omega, V). Then Z(y) = E P(y | omega + sqrt(V) w) and the
pull of the label on the score is g = d log Z/d omega. Channels: gaussian z + noise; sign z; flip: the sign, wrong with probability b;
probit and logit: y = 1 with probability Phi(b z), 1/(1 + e^{-b z}); abs |z| + noise; relu max(z, 0) + noise. Labels of two classes
are -1, +1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from limitlab.numerics.gaussian import hermite_rule

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
        """P(y = +1 | z), for two classes."""
        from scipy.special import expit, ndtr

        if self.name == "probit":
            return np.asarray(ndtr(self.strength * z))
        if self.name == "logit":
            return np.asarray(expit(self.strength * z))
        wrong = self.strength if self.name == "flip" else 0.0
        return np.where(z > 0, 1 - wrong, wrong)

    def clean(self, z: Array) -> Array:
        """The label without noise, for numbers."""
        if self.name == "abs":
            return np.abs(z)
        return np.maximum(z, 0.0) if self.name == "relu" else z

    def draw(self, rng: np.random.Generator, z: Array) -> Array:
        """Labels for scores."""
        if self.name in CLASSES:
            return np.where(rng.random(z.shape) < self.probability(z), 1.0, -1.0)
        return self.clean(z) + self.noise * rng.standard_normal(z.shape)

    def pull(self, y: Array, omega: Array, variance: float) -> Array:
        """g = d log Z/d omega.

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
        """Z and dZ/d omega of noisy abs and relu, whose two branches are pieces of Gaussians; arguments broadcast."""
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
        """E[y | omega]: the best prediction of a number."""
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
    """Independent entries of variance 1: gaussian, +-1 (rademacher), or 0 but for a share `density` of Gaussian ones (sparse)."""

    name: PriorName
    density: float = 1.0

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Entries."""
        if self.name == "rademacher":
            return np.asarray(1 - 2.0 * rng.integers(0, 2, size), dtype=np.float64)
        entries: Array = np.asarray(rng.standard_normal(size))
        if self.name == "sparse":
            entries *= (rng.random(size) < self.density) / np.sqrt(self.density)
        return entries

    def posterior(self, seen: Array, variance: float) -> tuple[Array, Array]:
        """Mean and variance of an entry that is seen with Gaussian noise.

        >>> Prior("gaussian").posterior(np.array([1.0]), 1.0)
        (array([0.5]), array([0.5]))
        """
        if self.name == "rademacher":
            mean = np.tanh(seen / variance)
            return mean, 1 - mean**2
        size = 1 / self.density if self.name == "sparse" else 1.0
        shrink = size / (size + variance)
        mean, spread = shrink * seen, np.full_like(seen, shrink * variance)
        if self.name == "gaussian" or self.density == 1:
            return mean, spread
        from scipy.special import expit

        odds = (
            np.log(self.density / (1 - self.density))
            + np.log(variance / (size + variance)) / 2
            + seen**2 * shrink / (2 * variance)
        )
        share = expit(odds)
        return share * mean, share * (spread + mean**2) - (share * mean) ** 2
