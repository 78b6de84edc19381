"""Information, errors and message passing for channels and priors of the user.

The averages of docs/theory/bayes_optimal.md are computed from the likelihood itself. With w and v standard Gaussian,

    Z(y | omega, V) = E P(y | omega + sqrt(V) w),   dZ/d omega = E P(y | omega + sqrt(V) w) w / sqrt(V),
    I(q) = E_v sum_y (dZ/d omega)^2 / Z   at omega = sqrt(q) v, V = 1 - q.

The second identity is Stein's lemma. It holds for a likelihood with jumps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from limitlab.models.channels import ORDER, REACH, CoefficientPrior, OutputChannel
from limitlab.numerics.gaussian import hermite_rule
from limitlab.numerics.quadrature import GROWTH, panel_rule

Array = NDArray[np.float64]

WIDE = 0.1  # from this variance on all rows share the nodes in the score
FIXED_REACH, FIXED_PANEL = 11.0, 0.6
SMOOTH = 0.2  # below this spread, relative to the channel's length, Hermite nodes resolve the likelihood
HERMITE = 24
CHUNK = 1_000_000
SHARP_RATIO = 2.0  # growth of the information between q = 1 - 10^-4 and 1 - 10^-6 of a channel with a jump
BLIND = 1e-7  # information at overlap 0, relative to that at 1/2, of a channel that does not depend on the sign


@dataclass(frozen=True)
class OwnChannel:
    """A channel of the user, with the methods of the named channels."""

    output: OutputChannel
    name: str = "own"
    noise: float = 0.0

    @property
    def classes(self) -> bool:
        """Whether the labels are a few values."""
        return self.output.labels is not None

    @property
    def sharp(self) -> bool:
        """Whether the information grows without bound as q tends to 1."""
        return self.information(1 - 1e-6) > SHARP_RATIO * self.information(1 - 1e-4)

    @property
    def blind(self) -> bool:
        """Whether a label has no information about the score at overlap 0."""
        return self.information(1e-10) < BLIND * self.information(0.5)

    def draw(self, rng: np.random.Generator, z: Array) -> Array:
        """Draw labels for the scores z."""
        return self.output.draw(rng, z)

    def pull(self, y: Array, omega: Array, variance: float) -> Array:
        """Return d log Z/d omega."""
        spread = math.sqrt(max(variance, 1e-10))
        w, weight = self._rows(omega, spread)
        with np.errstate(divide="ignore"):
            logs = np.log(weight) + self.output.log_likelihood(y[:, None], omega[:, None] + spread * w)
        share = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray((share * w).sum(axis=1) / share.sum(axis=1) / spread)

    def _rows(self, omega: Array, spread: float, order: int = ORDER, near: bool = True) -> tuple[Array, Array]:
        """Return nodes w and weights, one row per omega. Rows are near if a kink is within the reach of their nodes."""
        if not (near and self.output.kinks) and spread < SMOOTH * self.output.length:
            w, weight = hermite_rule(HERMITE if order == ORDER else HERMITE + 8)
            return np.broadcast_to(w, (omega.size, w.size)), np.broadcast_to(weight, (omega.size, w.size))
        return self.output.score_rule(omega, spread, order)

    def evidence(self, omega: Array, variance: float, order: int = ORDER) -> tuple[Array, Array]:
        """Return Z and dZ/d omega for all labels (rows) and all omega (columns)."""
        y, _ = self.output.rule()
        spread = math.sqrt(variance)
        if variance >= WIDE and y.size > 8:
            z, table = _table(self.output, order)
            t = (z[:, None] - omega) / spread
            kernel = np.exp(-(t**2) / 2) / (spread * math.sqrt(2 * math.pi))
            return table @ kernel, table @ (kernel * t) / spread
        value, slope = np.empty((2, y.size, omega.size))
        places = np.asarray(self.output.kinks, dtype=float)
        near = (np.abs(omega[:, None] - places) < REACH * spread).any(axis=1)
        for rows in (np.flatnonzero(near), np.flatnonzero(~near)):
            if not rows.size:
                continue
            w, weight = self._rows(omega[rows], spread, order, bool(near[rows[0]]))
            for part in np.array_split(rows, max(1, y.size * w.size // CHUNK)):
                inside = np.searchsorted(rows, part)
                z = omega[part, None] + spread * w[inside]
                mass = weight[inside] * self.output.likelihood(y[:, None, None], z)
                value[:, part], slope[:, part] = mass.sum(axis=-1), (mass * w[inside]).sum(axis=-1) / spread
        return value, slope

    def _decisions(self, q: float) -> tuple[float, ...]:
        """Return the values of v at which the most likely label changes, by bisection."""

        def best(v: Array) -> NDArray[np.int64]:
            return np.asarray(np.argmax(self.evidence(math.sqrt(q) * v, 1 - q)[0], axis=0))

        grid = np.linspace(-8.5, 8.5, 401)
        label = best(grid)
        at = np.flatnonzero(label[1:] != label[:-1])
        if not at.size:
            return ()
        low, high, start = grid[at], grid[at + 1], label[at]
        for _ in range(48):
            middle = (low + high) / 2
            same = best(middle) == start
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        return tuple(((low + high) / 2).tolist())

    def _scores(self, q: float, order: int, cuts: tuple[float, ...] = ()) -> tuple[Array, Array]:
        """Return nodes and weights in v, with panels that shrink towards the images of the kinks, and edges at the cuts."""
        root, spread = math.sqrt(q), math.sqrt(1 - q)
        width = spread / root
        places = list(cuts)
        for kink in self.output.kinks:
            steps = width * GROWTH ** np.arange(0, max(1, math.ceil(math.log(max(4 / width, 1.0), GROWTH))))
            places += [kink / root, *(kink / root + steps), *(kink / root - steps)]
        length = min(2.0, 2 * max(self.output.length, spread) / root)
        return panel_rule(places, order=order, width=length, reach=8.5)

    def information(self, q: float, order: int = 24) -> float:
        """Return I(q)."""
        return _information(self, q, order)

    def label_error(self) -> float:
        """Return the relative error of the integrals of the likelihood."""
        return max(self.output.error, 1e-10)

    def errors(self, q: float) -> dict[str, float]:
        """Return the least error at overlap q, for labels of a finite variance or for a few labels."""
        y, weight = self.output.rule()
        inside = min(max(q, 1e-12), 1 - 1e-12)
        v, share = self._scores(inside, 24, self._decisions(inside) if self.classes else ())
        value, _ = self.evidence(math.sqrt(inside) * v, 1 - inside)
        if self.classes:
            return {"classification_error": float(share @ (1 - value.max(axis=0)))}
        if not self.output.has_variance:
            return {}
        z, whole = panel_rule(self.output.kinks, width=min(2.0, 2 * self.output.length), reach=9.5)
        clean, second = self.output.mean(z), self.output.second_moment(z)
        excess = float(whole @ clean**2 - share @ ((y * weight) @ value) ** 2)
        excess = max(excess, 0.0) if q < 1 else 0.0
        return {"test_error": excess + float(whole @ (second - clean**2)), "excess_risk": excess}

    def measured_errors(self, z: Array, guess: Array, variance: float) -> dict[str, float]:
        """Return the error of predictions from scores `guess` of this variance, on inputs with the true scores z."""
        spread = math.sqrt(max(variance, 1e-10))
        y, weight = self.output.rule()
        if self.classes:
            value, _ = self.evidence(guess, spread**2)
            best = y[np.argmax(value, axis=0)]
            return {"classification_error_gamp": float(np.mean(1 - self.output.likelihood(best, z)))}
        if not self.output.has_variance:
            return {}
        value = np.concatenate([self.evidence(part, spread**2)[0] for part in np.array_split(guess, 8)], axis=1)
        clean, second = self.output.mean(z), self.output.second_moment(z)
        excess = float(np.mean((clean - (y * weight) @ value) ** 2))
        return {"excess_risk_gamp": excess, "test_error_gamp": excess + float(np.mean(second - clean**2))}


@lru_cache(maxsize=16)
def _table(output: OutputChannel, order: int) -> tuple[Array, Array]:
    """Return nodes in the score, and the likelihood of every label at them times the weights of an integral over the score."""
    z, weight = panel_rule(output.kinks, order=order, width=min(FIXED_PANEL, output.length), reach=FIXED_REACH)
    plain = weight * np.exp(z**2 / 2) * math.sqrt(2 * math.pi)
    y, _ = output.rule()
    return z, output.likelihood(y[:, None], z[None]) * plain


@lru_cache(maxsize=8192)
def _information(channel: OwnChannel, q: float, order: int) -> float:
    _, weight = channel.output.rule()
    v, share = channel._scores(q, order)
    value, slope = channel.evidence(math.sqrt(q) * v, 1 - q, ORDER if order <= 24 else ORDER + 4)
    ratio = np.divide(slope**2, value, out=np.zeros_like(value), where=value > 1e-250)
    return float(weight @ (ratio @ share))


# -- priors ---------------------------------------------------------------------------------------------------------------

NARROW = 400.0  # for noise below the support over this number, Q is an average over coefficient and noise


@dataclass(frozen=True)
class OwnPrior:
    """A prior of the user, with the methods of the named priors."""

    entries: CoefficientPrior
    name: str = "own"

    @property
    def mean(self) -> float:
        """The mean of a coefficient."""
        return self.entries.mean

    @property
    def discrete(self) -> bool:
        """Whether the coefficients have finitely many values."""
        return self.entries.discrete

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Draw `size` entries."""
        return self.entries.draw(rng, size)

    def posterior(self, observation: Array, variance: float) -> tuple[Array, Array]:
        """Return mean and variance of an entry given its noisy observation."""
        _, mean, square = self.entries.posterior(observation, variance)
        return mean, square

    def recovered(self, precision: float) -> float:
        """Return Q(r)."""
        return _recovered(self, precision)

    def precision_of(self, q: float) -> float:
        """Return the precision r at which Q(r) = q, or 0 if Q exceeds q at every precision."""
        from scipy.optimize import brentq

        if q <= self.recovered(0.0):
            return 0.0
        low = high = q / (1 - q) if q < 1 else 1e13  # the precision for a Gaussian prior
        while self.recovered(high) < q and high < 1e13:
            high *= 4
        while self.recovered(low) > q and low > 1e-13:
            low /= 4
        if not self.recovered(low) < q < self.recovered(high):
            return high if self.recovered(high) <= q else low
        return math.exp(
            brentq(lambda x: self.recovered(math.exp(x)) - q, math.log(low), math.log(high), xtol=1e-13, rtol=1e-13)
        )


@lru_cache(maxsize=8192)
def _recovered(prior: OwnPrior, precision: float) -> float:
    entries, r = prior.entries, precision
    if r == 0:
        return entries.mean**2
    spread = 1 / math.sqrt(r)
    low, high = entries.support
    if not entries.discrete and spread > (high - low) / NARROW:
        ends = np.linspace(low - 9 * spread, high + 9 * spread, math.ceil((high - low) / (2 * spread)) + 10)
        points, weights = np.polynomial.legendre.leggauss(16)
        R = (ends[:-1, None] + np.diff(ends)[:, None] * (points + 1) / 2).ravel()
        step = (np.diff(ends)[:, None] * weights / 2).ravel()
        evidence, mean, _ = entries.posterior(R, spread**2)
        return float(step @ (evidence * mean**2))
    g, gaussian = panel_rule(width=0.5, reach=9.0) if entries.discrete else panel_rule(width=2.0, order=16, reach=9.0)
    x, w = entries.rule()
    x, w = np.concatenate([entries.points, x]), np.concatenate([entries.weights, w])
    _, mean, _ = entries.posterior((x[:, None] + spread * g).ravel(), spread**2)
    return float(w @ (mean.reshape(x.size, g.size) ** 2 @ gaussian))
