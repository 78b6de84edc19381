"""Distributions of the weak recovery time, the number of samples until a direction is found (docs/theory/online_sgd.md).

Setting.  Spherical online SGD in dimension N with step delta, started uniformly on the sphere: u = sqrt(N) m starts as N(0, 1). tau is
          the first step with m > level (information exponent k odd) or |m| > level (k even); h(m) is the drift (7).
Result.   k = 1   delta tau / N -> int_0^level dm / h(m).                                                                  (9)
          k = 2   delta tau / N  = (log sqrt(N) - log|U|) / kappa + C + o(1), U ~ N(0, 1 + delta V0 / (2 kappa)),          (10)
                  kappa = h'(0) = -phi''(0) - delta G0 / 2, C = log(level) / kappa + int_0^level (1/h - 1/(kappa m)) dm.
          k >= 3  with delta = delta0 N^{-(k-2)/2}: tau = N^{k-1} T / delta0 in law, T the time at which
                  du = (c u^{k-1} - delta0 G0 u / 2) dT + sqrt(delta0 V0) dB diverges. Its mean is the double integral (12).
Status.   k = 1 is a theorem. k = 2 and k >= 3 are derived, and simulations of the exact chain agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.checks import number
from limitlab.errors import Refused

Array = NDArray[np.float64]
Drift = Callable[[Array], Array]

EULER = 0.5772156649015329
NODES, PANELS = 24, 8
PANEL_NODES = 8  # nodes of every panel of (12)
REACH, FAR = 12.0, 5.0  # least upper end of (12), in standard deviations of the start and in distances of the barrier
SMALL = 1e-4  # largest b^2 / (c y^k), the expansion parameter of I, at the upper end of (12)


def passage_time(drift: Drift, low: float, high: float) -> float:
    """Return the rescaled time (step times samples over dimension) that the flow takes between two overlaps.

    >>> round(passage_time(lambda m: 1 - m, 0.0, 0.5), 12) == round(math.log(2), 12)
    True
    """
    m, weights = _panels(low, high)
    values = drift(m)
    if np.any(values <= 0):
        stuck = float(m[np.argmax(values <= 0)])
        raise Refused(
            f"level = {high:g} is not attained, because the drift vanishes at m = {stuck:.6g}: use a smaller step or level"
        )
    return float(weights @ (1 / values))


def _panels(low: float, high: float) -> tuple[Array, Array]:
    """Return nodes and weights of Gauss-Legendre panels between two overlaps."""
    points, weights = np.polynomial.legendre.leggauss(NODES)
    width = (high - low) / PANELS
    nodes = low + width * (np.arange(PANELS)[:, None] + (1 + points) / 2).ravel()
    return nodes, np.tile(weights * width / 2, PANELS)


@dataclass(frozen=True)
class BallisticRecovery:
    """Recovery time for k = 1, where delta tau / N tends to a number."""

    time: float

    def mean(self, size: int) -> float:
        """Return the mean of the rescaled recovery time."""
        return self.time

    def std(self, size: int) -> float:
        """Return the limit 0 of the standard deviation of the rescaled recovery time."""
        return 0.0


@dataclass(frozen=True)
class LogarithmicRecovery:
    """Distribution of the recovery time tau for information exponent k = 2, with step delta in dimension N.

    The rescaled time delta tau / N grows like log N, with fluctuations of order one.

    >>> law = LogarithmicRecovery(kappa=3.0, spread=2**0.5, constant=-0.11552453)
    >>> round(law.mean(1000), 6)
    1.131971
    """

    kappa: float
    spread: float
    constant: float

    def mean(self, size: int) -> float:
        """Return the mean of the rescaled recovery time (10)."""
        mean_log = math.log(self.spread) - (EULER + math.log(2)) / 2
        return (math.log(size) / 2 - mean_log) / self.kappa + self.constant

    def std(self, size: int) -> float:
        """Return the standard deviation of the rescaled recovery time (10)."""
        return math.pi / math.sqrt(8) / self.kappa

    def cdf(self, time: ArrayLike, size: int) -> Array:
        """Return the probability that the rescaled recovery time (10) is at most `time`.

        >>> float(LogarithmicRecovery(3.0, 1.0, 0.0).cdf(50.0, 100))
        1.0
        """
        from scipy.special import ndtr

        needed = np.exp(np.log(size) / 2 - self.kappa * (np.asarray(time, dtype=float) - self.constant))
        return np.asarray(2 * ndtr(-needed / self.spread))


@dataclass(frozen=True)
class DiffusiveRecovery:
    """Recovery time for k >= 3, N^(k-1) times a random number of finite mean, at steps delta0 N^{-(k-2)/2}.

    `push` is c, `shrink` is G0 and `noise` is V0. `level` affects only the leading correction at finite N.
    """

    order: int
    push: float
    shrink: float
    noise: float
    level: float

    def blow_up_time(self, scaled_step: float) -> float:
        """Return the mean time after which the diffusion (11) is infinite, eq. (12), averaged over the start.

        >>> law = DiffusiveRecovery(order=3, push=6.0, shrink=384.0, noise=456.0, level=0.5)
        >>> round(law.blow_up_time(0.05), 6)
        0.761372
        """
        return mean_blow_up(self.order, self.push, self.shrink, self.noise, scaled_step)

    def mean(self, size: int, scaled_step: float | None = None) -> float:
        """Return the mean recovery time in samples over N^{k-1}, at dimension N.

        It is the limit minus the time from u = level sqrt(N) to infinity.

        >>> law = DiffusiveRecovery(order=3, push=6.0, shrink=384.0, noise=456.0, level=0.5)
        >>> round(law.mean(10**12, 0.05), 3)
        15.227
        """
        step = self.best_step() if scaled_step is None else scaled_step
        missing = _tail(self.order, self.push, step * self.shrink / 2, self.level * math.sqrt(size))
        return (self.blow_up_time(step) - missing) / step

    def cdf(self, time: ArrayLike, size: int, scaled_step: float) -> Array:
        """Return the probability that the samples until recovery over N^{k-1} are at most `time`, at dimension N.

        It is computed from the backward equation of the diffusion (11), which is stopped at u = level sqrt(N).

        >>> law = DiffusiveRecovery(order=3, push=6.0, shrink=384.0, noise=456.0, level=0.5)
        >>> law.cdf([2.0, 10.0, 40.0], 200, 0.05).round(3).tolist()
        [0.046, 0.471, 0.947]
        """
        top = self.level * math.sqrt(size)
        marks, survival = _survival(self.order, self.push, self.shrink, self.noise, scaled_step, top)
        rescaled = scaled_step * np.asarray(time, dtype=float)
        return np.asarray(1 - np.exp(np.interp(rescaled, marks, np.log(survival))) * (rescaled <= marks[-1]))

    def best_step(self) -> float:
        """Return the delta0 with the smallest mean number of samples.

        The noise of longer steps reduces the overlap, and with shorter steps the overlap increases slowly.

        >>> round(DiffusiveRecovery(order=3, push=6.0, shrink=384.0, noise=456.0, level=0.5).best_step(), 3)
        0.073
        """
        return _best_step(self.order, self.push, self.shrink, self.noise)


@lru_cache(maxsize=256)
def mean_blow_up(order: int, push: float, shrink: float, noise: float, scaled_step: float) -> float:
    """Return E[T] = int P(start < y) I(y) dy of (12), with I(y) = (2 / b^2) int_L^y e^{Psi(z) - Psi(y)} dz.

    Psi' = 2 (c y^{k-1} - a y) / b^2 with a = delta0 G0 / 2 and b^2 = delta0 V0. I is computed from panel to panel by a recursion, so that
    only differences of Psi over a panel are exponentiated. At both ends I is approximated by 1/d + b^2 d' / (2 d^3), where d is the drift.
    """
    from scipy.special import ndtr

    number("scaled_step", scaled_step, above=0, infinite=True)
    a, variance, odd = scaled_step * shrink / 2, scaled_step * noise, order % 2 == 1
    far = max(REACH, FAR * (a / push) ** (1 / (order - 2)), (variance / (SMALL * push)) ** (1 / order))
    left = -far if odd else 0.0
    edges = _graded(order, push, a, variance, left, far)

    def psi(y: Array) -> Array:
        return np.asarray(2 / variance * y**2 * (push * y ** (order - 2) / order - a / 2))

    low, width = edges[:-1, None], np.diff(edges)[:, None]
    fractions, weights = _unit_rule(PANEL_NODES)
    y = np.concatenate(
        [low + width * fractions, edges[1:, None]], axis=1
    )  # nodes of every panel, and its right end in the last column
    z = low[:, :, None] + (y - low)[:, :, None] * fractions
    fresh = 2 / variance * ((y - low)[:, :, None] * weights * np.exp(psi(z) - psi(y)[:, :, None])).sum(axis=-1)
    inherited = np.exp(psi(low) - psi(y))
    carried = np.empty(len(width))
    value = _asymptotic(order, push, a, variance, left) if odd else 0.0
    for i, (new, keep) in enumerate(zip(fresh[:, -1].tolist(), inherited[:, -1].tolist(), strict=True)):
        carried[i] = value
        value = new + keep * value
    inside = (fresh + inherited * carried[:, None])[:, :-1]
    reached = ndtr(y[:, :-1]) if odd else 2 * ndtr(y[:, :-1]) - 1
    d = push * far ** (order - 1) - a * far
    return float((width * weights * reached * inside).sum()) + _tail(order, push, a, far) + variance / (4 * d**2)


CELLS, TIME_STEPS, LAST_SURVIVAL = 1200, 400, 1e-9
"""Cells of the backward equation, its steps of time in one mean, and the probability at which it ends."""


@lru_cache(maxsize=64)
def _survival(order: int, push: float, shrink: float, noise: float, scaled_step: float, top: float) -> tuple[Array, Array]:
    """Return times and P(T > time) for the first time T at which u (|u| for even k) exceeds `top`, from a start u ~ N(0, 1).

    The backward equation is solved by finite volumes with exponentially fitted rates and by the trapezoidal rule, after four implicit
    steps that smooth the jump at the start.
    """
    from scipy.linalg import solve_banded

    a, diffusion, odd = scaled_step * shrink / 2, scaled_step * noise / 2, order % 2 == 1
    low = -max(REACH, FAR * (a / push) ** (1 / (order - 2))) if odd else -top
    h = (top - low) / CELLS
    u = low + h * (np.arange(CELLS) + 0.5)
    faces = low + h * np.arange(CELLS + 1)
    peclet = (push * faces ** (order - 1) - a * faces) * h / diffusion
    right = diffusion / h**2 * _bernoulli(-peclet[1:])
    left = diffusion / h**2 * _bernoulli(peclet[:-1])
    right[-1] *= 2.0  # the absorbing end is at half a cell
    left[0] *= 0.0 if odd else 2.0
    start = np.exp(-(u**2) / 2)
    start /= max(float(start.sum()), math.sqrt(2 * math.pi) / h)
    tick = mean_blow_up(order, push, shrink, noise, scaled_step) / TIME_STEPS

    def matrix(step: float) -> Array:
        bands = np.zeros((3, CELLS))
        bands[0, 1:], bands[1], bands[2, :-1] = -step * right[:-1], 1 + step * (left + right), -step * left[1:]
        return bands

    whole, half = matrix(tick / 4), matrix(tick / 2)
    inside, times, values = np.ones(CELLS), [0.0], [float(start.sum())]
    while values[-1] > LAST_SURVIVAL and len(times) < 60 * TIME_STEPS:
        if len(times) == 1:
            for _ in range(4):
                inside = solve_banded((1, 1), whole, inside)
        else:
            moved = -(left + right) * inside
            moved[:-1] += right[:-1] * inside[1:]
            moved[1:] += left[1:] * inside[:-1]
            inside = solve_banded((1, 1), half, inside + tick / 2 * moved)
        times.append(times[-1] + tick)
        values.append(float(start @ inside))
    return np.array(times), np.array(values)


def _bernoulli(x: Array) -> Array:
    """Return x / (e^x - 1), which is 1 at 0."""
    small = np.abs(x) < 1e-8
    safe = np.where(small, 1.0, np.clip(x, -500, 500))
    return np.asarray(np.where(small, 1 - x / 2, safe / np.expm1(safe)))


def _asymptotic(order: int, push: float, a: float, variance: float, y: float) -> float:
    """Return I(y) at large |y|."""
    d, slope = push * y ** (order - 1) - a * y, push * (order - 1) * y ** (order - 2) - a
    return 1 / d + variance / 2 * slope / d**3


def _graded(order: int, push: float, a: float, variance: float, left: float, right: float) -> Array:
    """Return edges of panels of width at most 1/4, over which Psi changes by at most about 2."""
    y = np.linspace(left, right, 4001)
    density = 4 + np.abs(push * y ** (order - 1) - a * y) / variance
    total = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(y))])
    return np.interp(np.linspace(0, total[-1], int(np.ceil(total[-1])) + 1), total, y)


@lru_cache(maxsize=4)
def _unit_rule(nodes: int) -> tuple[Array, Array]:
    """Return nodes and weights of Gauss-Legendre quadrature on (0, 1)."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    return (1 + points) / 2, weights / 2


def _tail(order: int, push: float, a: float, beyond: float) -> float:
    """Return int_beyond^inf du / (c u^{k-1} - a u), the time of the noiseless flow to infinity, or inf if the drift is not positive."""
    ratio = a / push * beyond ** (2 - order)
    if ratio >= 1:
        return math.inf
    return float(-np.log1p(-ratio) / (a * (order - 2)))


@lru_cache(maxsize=64)
def _best_step(order: int, push: float, shrink: float, noise: float) -> float:
    from scipy.optimize import minimize_scalar

    def samples(log_step: float) -> float:
        step = math.exp(log_step)
        return math.log(mean_blow_up(order, push, shrink, noise, step) / step)

    natural = math.log(2 * push / shrink)  # step whose barrier is at u = 1
    minimum = minimize_scalar(samples, bounds=(natural - 4, natural + 2), method="bounded", options={"xatol": 1e-4})
    return math.exp(minimum.x)


def logarithmic_constant(drift: Drift, kappa: float, level: float) -> float:
    """Return the constant C of equation (10)."""
    m, weights = _panels(0.0, level)
    values = drift(m)
    if np.any(values <= 0):
        passage_time(drift, 0.0, level)
    return math.log(level) / kappa + float(weights @ ((kappa * m - values) / (values * kappa * m)))
