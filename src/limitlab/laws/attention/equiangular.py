"""The equiangular law, which gives the number of layers until n tokens in high dimension collapse.

Setting.  n tokens on the unit sphere under self-attention with Q = K = V = I and inverse temperature beta; time counts layers.
Limit.    d -> infinity at fixed n: random tokens are equiangular, <x_i, x_j> = g0 for all i != j, and remain equiangular.
Result.   The common overlap g solves (docs/theory/attention.md, eqs. 7-10)

              softmax:      g' = 2 (1 - g)((n-1) g + 1) / (e^{beta (1 - g)} + n - 1),
              unnormalised: g' = (2/n) e^{beta g} (1 - g)((n-1) g + 1),

          and the time at which g = 1 - eps has a closed form. With u = 1 - g0, c = n/(n-1), s = log(u/eps), l = log((c - eps)/(c - u)),

              X = Ei(beta u) - Ei(beta eps) + e^{beta c} [E1(beta (c - u)) - E1(beta (c - eps))],
              softmax:      t = [(n-1)(s + l) + X] / 2n,
              unnormalised: t = e^{-beta} X / 2.

          The overlap at a time is the inverse of this function. Since t >= s/2 (softmax), the root is bracketed. No differential equation
          is solved.
Status.   Theorem for equiangular starts (any d where they exist; every start if n = 2). For random tokens the gap is of order d^-1/2.
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab._core.cost import Cost
from limitlab.errors import Refused, UnreachableTarget
from limitlab.laws import CLOSED_FORM, Draw, Experiment, Headline, Law, Values, parameter
from limitlab.numerics.roots import bracketed_root

__all__ = ["EquiangularTokens"]

Array = NDArray[np.float64]


LARGEST_EXPONENT = 700.0
SMALL_BETA = (
    1.0  # up to beta c = 1 the logarithms of Ei and E1 are cancelled analytically, so that beta -> 0 loses no digits
)


def velocity(overlap: ArrayLike, tokens: ArrayLike, beta: ArrayLike, normalised: bool = True) -> Array:
    """Return the right side of the equation for g; arguments broadcast.

    >>> velocity([0.0, 1.0], 32, 1.0).round(6).tolist()
    [0.059315, 0.0]
    """
    g, n, b = np.asarray(overlap, dtype=float), np.asarray(tokens, dtype=float), np.asarray(beta, dtype=float)
    pull = 2 * (1 - g) * ((n - 1) * g + 1)
    return np.asarray(pull / (np.exp(b * (1 - g)) + n - 1) if normalised else pull * np.exp(b * g) / n)


def collapse_time(
    distance: ArrayLike, tokens: ArrayLike, beta: ArrayLike, start_overlap: ArrayLike = 0.0, normalised: bool = True
) -> Array:
    """Return the time at which the common overlap is 1 - distance; all arguments except `normalised` broadcast.

    Parameters
    ----------
    distance
        eps, between 0 and 1 - start_overlap.
    tokens, beta, start_overlap
        n, inverse temperature, overlap at time 0 (above -1/(n-1)).
    normalised
        True for softmax attention, False for weights exp(score) / n.

    Examples
    --------
    >>> collapse_time(1e-3, 32, [0.0, 1.0, 5.0]).round(9).tolist()
    [5.186260981, 5.270283908, 9.544329204]
    """
    eps, n, b, g0 = np.broadcast_arrays(*(np.asarray(a, dtype=float) for a in (distance, tokens, beta, start_overlap)))
    _check(n, b, g0)
    if not np.all((eps > 0) & (eps < 1 - g0)):
        raise Refused(f"distance = {distance!r} is not allowed: must be above 0 and below 1 - start_overlap")
    return time_to_shrink(np.log((1 - g0) / eps), n, b, g0, normalised)


def time_to_shrink(
    log_factor: ArrayLike, tokens: ArrayLike, beta: ArrayLike, start_overlap: ArrayLike, normalised: bool
) -> Array:
    """Return the time in which 1 - g shrinks by a factor e^s with s = `log_factor` >= 0.

    The time increases with s and is also exact where e^-s underflows.

    >>> time_to_shrink([0.0, 1e4], 2, 0.0, 0.0, True).round(6).tolist()
    [0.0, 5000.346574]
    """
    s, n, beta, g0 = (np.asarray(a, dtype=float) for a in (log_factor, tokens, beta, start_overlap))
    u, c = 1 - g0, n / (n - 1)
    eps = u * np.exp(-s)
    log_ratio = np.log1p((u - eps) / (c - u))
    x = _integral(s, beta, u, eps, c, log_ratio)
    return np.asarray(((n - 1) * (s + log_ratio) + x) / (2 * n) if normalised else np.exp(-beta) * x / 2)[()]


def _integral(s: Array, beta: Array, u: Array, eps: Array, c: Array, log_ratio: Array) -> Array:
    """Return X, the integral of n e^{beta y} / (y (n - (n-1) y)) over y = 1 - g from eps to u."""
    growth = entire_part(beta * u) - entire_part(beta * eps) + s  # Ei(beta u) - Ei(beta eps)
    small = beta * c <= SMALL_BETA
    few, many = np.where(small, beta, 0.0), np.where(small, 1.0, beta)
    near = np.exp(few * c) * (log_ratio - entire_part(-few * (c - u)) + entire_part(-few * (c - eps)))
    # e^{beta c} E1(beta (c - y)) = e^{beta y} [e^z E1(z)], z = beta (c - y)
    far = np.exp(many * u) * scaled_exp1(many * (c - u)) - np.exp(many * eps) * scaled_exp1(many * (c - eps))
    return np.asarray(growth + np.where(small, near, far))


def overlap(
    time: ArrayLike, tokens: ArrayLike, beta: ArrayLike, start_overlap: ArrayLike = 0.0, normalised: bool = True
) -> Array:
    """Return the common overlap g at a time, the inverse of `collapse_time`; all arguments except `normalised` broadcast.

    >>> overlap(3.0, 32, [0.0, 1.0, 5.0]).round(9).tolist()
    [0.926340057, 0.914207012, 0.067086357]
    """
    t, n, beta, g0 = np.broadcast_arrays(*(np.asarray(a, dtype=float) for a in (time, tokens, beta, start_overlap)))
    _check(n, beta, g0)
    if not np.all((t >= 0) & np.isfinite(t)):
        raise Refused(f"time = {time!r} is not allowed: must be finite and at least 0")
    # dt/ds >= 1/2 with softmax and >= e^-beta/2 without softmax, which bounds s from above
    most = 2 * t * (1.0 if normalised else np.exp(beta)) * (1 + 1e-12) + 1e-300
    s = bracketed_root(lambda s: time_to_shrink(s, n, beta, g0, normalised) - t, np.zeros_like(t), most)
    return np.asarray(g0 - (1 - g0) * np.expm1(-np.where(t > 0, s, 0.0)))[()]


def largest_beta(time: float, distance: float, tokens: int, start_overlap: float = 0.0) -> float:
    """Return the largest inverse temperature at which softmax attention collapses the tokens to 1 - distance within a time.

    >>> round(largest_beta(9.544329203520165, 1e-3, 32), 9)
    5.0
    """
    soonest = float(collapse_time(distance, tokens, 0.0, start_overlap))
    if not time >= soonest:
        raise UnreachableTarget(
            f"time = {time:g} is not allowed: even at beta = 0 the distance {distance:g} takes the time {soonest:.6g}; allow more layers",
            best=soonest,
            at=0.0,
        )
    most = LARGEST_EXPONENT / max(1.0, 1 - start_overlap)
    if time >= collapse_time(distance, tokens, most, start_overlap):
        return most
    return float(bracketed_root(lambda beta: collapse_time(distance, tokens, beta, start_overlap) - time, 0.0, most))


def _check(n: Array, beta: Array, g0: Array) -> None:
    if not np.all(n >= 2):
        raise Refused(f"tokens = {np.min(n):g} is not allowed: must be at least 2")
    if not np.all(beta >= 0):
        raise Refused(f"beta = {np.min(beta):g} is not allowed: must be at least 0")
    if not np.all((g0 > -1 / (n - 1)) & (g0 < 1)):
        raise Refused(
            "start_overlap is not allowed: must be above -1/(tokens - 1) and below 1, the range of a common overlap"
        )
    if not np.all(beta * np.maximum(1.0, 1 - g0) <= LARGEST_EXPONENT):
        raise Refused(
            f"beta = {np.max(beta):g} is not allowed: must be at most {LARGEST_EXPONENT:g} / max(1, 1 - start_overlap)"
        )


# -- the law ----------------------------------------------------------------------------------------------------------


class EquiangularTokens(Law):
    """After how many layers do n tokens in high dimension collapse to one point?

    Examples
    --------
    >>> law = EquiangularTokens(tokens=32, beta=5.0, times=(2.0, 8.0, 12.0))
    >>> law.theory().overlap.values.round(6)
    array([0.034262, 0.978559, 0.999993])
    >>> round(law.collapse_time(1e-3), 6)
    9.544329
    >>> round(law.largest_beta(time=30.0), 4)
    6.9065
    """

    status = "theorem"
    regime = "d -> infinity at a fixed number of tokens and a fixed temperature; exact for equiangular starts"
    assumptions = (
        "Q = K = V = I, no feed-forward layer, layer normalisation as a projection on the sphere",
        "all pairs of tokens start with the same overlap (random tokens: overlap 0 up to d^-1/2)",
    )
    references = ("geshkovski2025mathematical",)
    page = "attention"
    observables = ("overlap",)
    simulation = Experiment("dimension d of the tokens", sizes=(64, 128, 256), draws=40)
    # The starts are not orthogonal; one point is unnormalised attention
    points = (
        dict(tokens=8, beta=2.0, start_overlap=0.25, times=(0.5, 1.0, 2.0)),
        dict(tokens=12, beta=1.5, start_overlap=0.1, normalised=False, times=(0.2, 0.5, 1.0)),
    )
    headline = Headline(
        "All tokens become one within a few layers",
        x="times",
        over=(0.0, 12.0, 101),
        show=("overlap",),
        curves=("beta", (0, 1, 3)),
        size=128,
        draws=3,
        places=(1.0, 2.0, 3.0, 5.0, 8.0, 12.0),
        sliders=("tokens", "start_overlap"),
    )

    tokens: int = parameter(16, least=2)
    beta: float = parameter(1.0, least=0, most=LARGEST_EXPONENT)
    start_overlap: float = parameter(0.0, note="of every two tokens", symbol="g_0", above=-1, below=1)
    normalised: bool = parameter(True)
    times: float | tuple[float, ...] = parameter((1.0, 2.0, 3.0, 5.0), note="in layers", kind="coordinate", least=0)

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of computing all pairs of tokens."""
        return Cost(
            1e5 + 5.5 * self.tokens**2 + 4.0 * self.tokens * size, 1e7 + 3e3 * self.tokens**2 + 50.0 * self.tokens**2 * size
        )

    @model_validator(mode="after")
    def _possible_start(self) -> Self:
        lowest = -1 / (self.tokens - 1)
        if not self.start_overlap > lowest:
            raise Refused(
                f"start_overlap = {self.start_overlap:g} is not allowed: must be above -1/(tokens - 1) = {lowest:.6g} and below 1; "
                "no equiangular configuration exists"
            )
        most = LARGEST_EXPONENT / max(1.0, 1 - self.start_overlap)
        if self.beta > most:
            raise Refused(
                f"beta = {self.beta:g} is not allowed with start_overlap = {self.start_overlap:g}: must be at most {most:g}"
            )
        return self

    def predicted(self, times: Array, tokens: Array, beta: Array, start_overlap: Array) -> Values:
        """Return the limit at every time, over a grid of token numbers, temperatures and starts."""
        return {"overlap": overlap(times, tokens, beta, start_overlap, self.normalised), "accuracy": CLOSED_FORM}

    def measured(self, draw: Draw, times: Array, beta: Array) -> Values:
        """Draw tokens in `size` dimensions with the mean overlap `start_overlap` and return the mean overlap of all pairs over time."""
        from limitlab.models.attention.clusters import mean_overlap
        from limitlab.models.attention.engines import correlated_tokens, gram_path

        x = correlated_tokens(draw.rng, self.tokens, draw.size, self.start_overlap)
        systems = np.broadcast_to(x, (beta.size, *x.shape))
        grams = gram_path(systems, beta.ravel(), times, normalised=self.normalised)
        return {"overlap": mean_overlap(grams).T.reshape(*beta.shape[:-1], -1)}

    def collapse_time(self, distance: ArrayLike) -> Any:
        """Return the time at which the overlap is 1 - distance, as a number or as an array for several distances."""
        times_to_distance = collapse_time(distance, self.tokens, self.beta, self.start_overlap, self.normalised)
        return times_to_distance if np.ndim(distance) else float(times_to_distance)

    def layers(self, distance: float = 1e-3, step: float = 1.0) -> int:
        """Return the number of layers of size `step` after which the tokens are within `distance` of each other.

        >>> EquiangularTokens(tokens=32, beta=1.0).layers(1e-3, step=0.1)
        53
        """
        if not step > 0:
            raise Refused(f"step = {step!r} is not allowed: must be above 0")
        return math.ceil(self.collapse_time(distance) / step)

    def largest_beta(self, time: float, distance: float = 1e-3) -> float:
        """Return the largest inverse temperature at which the tokens collapse within a time, for softmax attention only."""
        if not self.normalised:
            raise Refused("normalised = False is not allowed here: without softmax the time is not monotone in beta")
        return largest_beta(time, distance, self.tokens, self.start_overlap)


# -- Differences and scaled forms of the exponential integrals Ei and E1 that neither overflow nor cancel ------------

SERIES = 1.0  # the power series of Ein is used for arguments up to this value
TERMS = 20  # x^k / (k k!) at x = 1 is below 1e-19 for k = 20
ASYMPTOTIC = 50.0  # for larger x, 20 terms of the asymptotic series of e^x E1(x) are exact to rounding


def entire_part(x: ArrayLike) -> Array:
    """Return the integral of (e^t - 1)/t from 0 to x, which is Ei(x) (or -E1(-x) for x < 0) without its logarithm.

    >>> entire_part([0.0, 1.0, -1.0]).round(12).tolist()
    [0.0, 1.317902151454, -0.796599599297]
    """
    from scipy.special import exp1, expi

    x = np.asarray(x, dtype=float)
    small = np.clip(x, -SERIES, SERIES)
    total = np.zeros_like(small)
    for k in range(TERMS, 0, -1):  # Horner's scheme for the sum of x^k / (k k!)
        total = small / k * (1 / k + total)
    size = np.maximum(np.abs(x), SERIES)
    with np.errstate(over="ignore"):
        large = np.where(x > 0, expi(size), -exp1(size)) - np.euler_gamma - np.log(size)
    return np.asarray(np.where(np.abs(x) <= SERIES, total, large))[()]


def scaled_exp1(x: ArrayLike) -> Array:
    """Return e^x E1(x) for x > 0, also where E1 underflows.

    >>> scaled_exp1([1.0, 1000.0]).round(12).tolist()
    [0.596347362323, 0.000999001994]
    """
    from scipy.special import exp1

    x = np.asarray(x, dtype=float)
    if not np.all(x > 0):
        raise Refused("x is not allowed: the exponential integral E1 needs arguments above 0")
    near, far = np.minimum(x, ASYMPTOTIC), np.maximum(x, ASYMPTOTIC)
    tail = np.zeros_like(far)
    for k in range(TERMS, 0, -1):  # 1 - 1/x (1 - 2/x (1 - 3/x ...))
        tail = -k / far * (1 + tail)
    return np.asarray(np.where(x < ASYMPTOTIC, np.exp(near) * exp1(near), (1 + tail) / far))[()]
