"""What a label says about a score, what noisy looks say about coefficients, and the least error at an overlap.

Setting.  A guess of the coefficients has squared overlap q with the truth, so that the score of an input is omega + sqrt(V) w with
          V = 1 - q, omega = sqrt(q) v; v and w standard Gaussian.
Result.   The three functions that `BayesOptimal` is made of (docs/theory/bayes_optimal.md, equations 1 and 2):

              I(q) = E (d log Z(y | omega, V)/d omega)^2,  Z = E_w P(y | omega + sqrt(V) w)         the information of a label,
              Q(r)                              squared overlap when every coefficient is seen with noise of variance 1/r,
              the error of the best prediction from omega.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from limitlab.laws.classification._channels import CLASSES, Channel, Prior
from limitlab.numerics.quadrature import even_gaussian_rule, graded_rule, panel_rule

Array = NDArray[np.float64]

FLAT = 9.0  # beyond this u the information of abs is 1 up to e^-40


# -- I(q): what a label says about the score ------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _abs_table() -> np.polynomial.Chebyshev:
    """H(u) = E (t tanh(t u) - u)^2, t = u + w, for |u| <= FLAT: even and smooth."""
    w, weight = even_gaussian_rule(0.02, 9.0)

    def values(u: Array) -> Array:
        t = u[:, None] + w
        return np.asarray((t * np.tanh(t * u[:, None]) - u[:, None]) ** 2 @ weight)

    return np.polynomial.Chebyshev.interpolate(values, 600, domain=[-FLAT, FLAT])


def _shape(channel: Channel, u: Array) -> Array:
    """H(u) of the channels for which I = E H(v sqrt(q/V'))/V' (docs/theory/bayes_optimal.md, eq. 2)."""
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


def information(channel: Channel, q: float, order: int = 24) -> float:
    """I(q).

    >>> information(Channel("gaussian", noise=0.5), 0.75)
    2.0
    """
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
    """E Z'^2/(Z (1 - Z)) with Z = E sig(b omega + b sqrt(V) w)."""
    v, weight = graded_rule([(0.0, 1 / strength)], order)
    risk, slope = _logit(strength, q, v)
    other = _logit(strength, q, -v)[0]  # 1 - Z, without cancellation
    return float(weight @ (slope**2 / (risk * other)))


def _logit(strength: float, q: float, v: Array) -> tuple[Array, Array]:
    """Z and dZ/d omega at omega = sqrt(q) v."""
    from scipy.special import expit

    spread = strength * math.sqrt(1 - q)
    w, weight = even_gaussian_rule(min(0.5, 0.5 / max(spread, 1e-9)), 9.0)
    risk = expit(strength * math.sqrt(q) * v[:, None] + spread * w)
    return np.asarray(risk @ weight), np.asarray(strength * (risk * (1 - risk)) @ weight)


def _noisy_information(channel: Channel, q: float, order: int) -> float:
    """The double integral over y (an even rule) and v."""
    V, tau = 1 - q, channel.noise
    size = math.sqrt(V + tau**2)
    layers = [(0.0, math.sqrt(V / q)), (0.0, tau)]
    v, weight = graded_rule(layers, order)
    kept = (np.abs(v) < 8.5) & ((v > 0) | (channel.name == "relu"))
    v, weight = v[kept], weight[kept] * (1 if channel.name == "relu" else 2)
    step = min(tau, size / 2) / (6 if order <= 24 else 8)
    low = -9 * size if channel.name == "abs" else -10 * tau
    y = np.arange(low, 8.5 * math.sqrt(q) + 10 * size, step)
    total = 0.0
    for part in np.array_split(np.arange(v.size), max(1, v.size * y.size // 2_000_000)):
        value, slope = channel.evidence(y, math.sqrt(q) * v[part, None], V)
        ratio = np.divide(slope**2, value, out=np.zeros_like(value), where=value > 1e-200)
        total += float(weight[part] @ ratio.sum(axis=1)) * step
    return total


# -- Q(r): what a noisy look at an entry says about it ---------------------------------------------------------------------


def recovered(prior: Prior, precision: float) -> float:
    """Q(r): squared overlap when every entry is seen with noise of variance 1/r.

    >>> recovered(Prior("gaussian"), 3.0)
    0.75
    """
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
    """E <x>^2 over the mixture of a seen zero and a seen Gaussian entry."""
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


def precision_of(prior: Prior, q: float) -> float:
    """The inverse of Q."""
    if prior.name == "gaussian" or (prior.name == "sparse" and prior.density == 1):
        return q / (1 - q)
    from scipy.optimize import brentq

    high = 1.0
    while recovered(prior, high) < q and high < 1e12:
        high *= 2
    return float(brentq(lambda r: recovered(prior, r) - q, 0.0, high, xtol=1e-14, rtol=1e-13))


# -- errors at an overlap --------------------------------------------------------------------------------------------------


def errors(channel: Channel, q: float) -> dict[str, float]:
    """Least error at overlap q: the probability of a wrong label, or squared errors with and without the label noise."""
    from scipy.special import ndtr

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
