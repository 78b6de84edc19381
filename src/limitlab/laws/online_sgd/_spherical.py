"""Base class and Gaussian averages of the three models of spherical online SGD (docs/theory/online_sgd.md).

Setting.  x <- (x - (delta / N) grad L) / |x - (delta / N) grad L| with one fresh sample per step and the gradient on the unit sphere.
          The mean of the loss depends on the overlap m = <x, v0> only, E L = phi(m). G(m) is the limit of E|grad L|^2 / N.
Limit.    N -> infinity at fixed delta, in the time s = delta * steps / N.
Result.   dm/ds = h(m) = -phi'(m) (1 - m^2) - (delta / 2) m G(m).                                                        (7)

          The second term is the effect of the gradient noise through the normalisation. As delta -> 0 only the population flow remains.
Status.   Derived for a fixed delta. Simulations of the exact chain agree. Theorem as delta -> 0 (Ben Arous, Gheissari, Jagannath 2021).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike, NDArray

from limitlab._core.cost import Cost, latest
from limitlab._core.results import CLOSED_FORM
from limitlab.errors import ConvergenceError, Refused
from limitlab.laws import Draw, Experiment, Law, Values, parameter
from limitlab.laws.online_sgd._recovery import (
    BallisticRecovery,
    DiffusiveRecovery,
    LogarithmicRecovery,
    logarithmic_constant,
    passage_time,
)
from limitlab.models.activations import Activation, hermite
from limitlab.numerics.ode import integrate
from limitlab.numerics.quadrature import between_kinks, panel_rule

Array = NDArray[np.float64]


# -- population loss, information exponent and gradient noise --------------------------------------------------------

Case = Literal["escapes", "wrong sign", "none"]

HIGHEST_DEGREE = 20  # largest degree in the search for the information exponent
VANISHES = 1e-10  # products of Hermite coefficients below this share of |f| |g| count as rounding
POINTS = (33, 65, 129)  # Chebyshev points in arcsin m
RESOLVED, USABLE = (
    1e-11,
    1e-6,
)  # relative size of the last coefficients below which no points are added, and at which an error is raised
REACH, NODES, PANELS = 12.0, 16, 6  # range of the panels in standard deviations, nodes per panel, panels between kinks


@dataclass(frozen=True)
class InformationExponent:
    """The first derivative of phi at m = 0 that does not vanish.

    Attributes
    ----------
    order
        Degree k of the derivative, or None if no derivative up to degree 20 differs from 0.
    case
        "escapes" if phi decreases from m = 0 to positive m, so that m > 0 grows. "wrong sign" if phi increases. In this case m moves to
        negative values for odd k, and m = 0 is stable for even k. "none" if phi is constant, so that SGD does not learn.
    derivative
        The derivative phi^(k)(0).
    """

    order: int | None
    case: Case
    derivative: float = 0.0

    @property
    def push(self) -> float:
        """The coefficient c = -phi^(k)(0) / (k-1)! of -phi'(m) = c m^(k-1) + ...."""
        return 0.0 if self.order is None else -self.derivative / math.factorial(self.order - 1)

    @staticmethod
    def of(order: int | None, derivative: float) -> InformationExponent:
        """Return the exponent for a degree and a derivative.

        >>> InformationExponent.of(2, -8.0).case
        'escapes'
        """
        if order is None:
            return InformationExponent(None, "none")
        return InformationExponent(order, "escapes" if derivative < 0 else "wrong sign", derivative)


def teacher_student_exponent(teacher: Activation, student: Activation) -> InformationExponent:
    """Return the information exponent of labels f(<a, v0>) that g(<a, x>) learns, from the Hermite coefficients of f and g.

    >>> teacher_student_exponent(Activation("h3"), Activation("h3")).order
    3
    >>> teacher_student_exponent(Activation("h3"), Activation("relu")).case  # relu has no third coefficient
    'none'
    """
    f, g = (hermite(activation, HIGHEST_DEGREE) for activation in (teacher, student))
    scale = VANISHES * math.sqrt((f @ f) * (g @ g))
    for k in range(1, HIGHEST_DEGREE + 1):
        product = float(f[k] * g[k])
        if abs(product) > scale:
            return InformationExponent.of(k, -2 * math.factorial(k) * product)
    return InformationExponent.of(None, 0.0)


@dataclass(frozen=True)
class PairAverages:
    """Averages over pairs of Gaussians as functions of their correlation m, stored as series in arcsin m.

    The averages are E f(z) g(w), E f'(z) g'(w) and E (f(z) - g(w))^2 g'(w)^2. `squares` holds |f|^2, |g|^2 and
    E g'(w)^2. `accuracy` is the largest of the last coefficients of the series, relative to their size.
    """

    series: Array
    squares: tuple[float, float, float]
    search_moments: tuple[float, float]
    accuracy: float

    def kernel(self, m: ArrayLike) -> Array:
        """Return the mean of f(z) g(w) over a pair of scores."""
        return self._at(m, 0)

    def slope(self, m: ArrayLike) -> Array:
        """Return the derivative of `kernel` with respect to the overlap."""
        return self._at(m, 1)

    def mismatch(self, m: ArrayLike) -> Array:
        """Return E (f(z) - g(w))^2 g'(w)^2, with rounding errors below 0 set to 0."""
        return np.maximum(self._at(m, 2), 0.0)

    def _at(self, m: ArrayLike, part: int) -> Array:
        angle = np.arcsin(np.clip(np.asarray(m, dtype=float), -1.0, 1.0)) * (2 / np.pi)
        return np.asarray(chebyshev.chebval(angle, self.series[part]))

    def search_noise(self, noise: float) -> float:
        """Return the variance (6) of the gradient along the hidden direction at overlap 0."""
        with_labels, with_noise = self.search_moments
        return 4 * (with_labels + noise**2 * with_noise) - 4 * float(self.slope(0.0)) ** 2


@lru_cache(maxsize=64)
def pair_averages(teacher: Activation, student: Activation) -> PairAverages:
    """Return the averages (2), (3) and (5) as functions of the correlation.

    >>> averages = pair_averages(Activation("relu"), Activation("relu"))
    >>> float(averages.kernel(0.5).round(8))
    0.30449889
    """
    slope = student.derivative
    squares = _squares(teacher, student, slope)
    scale = np.sqrt(squares[0]) * np.sqrt(
        [squares[1], squares[2], 0.0]
    )  # sizes of the averages, because an average may be 0 at every correlation
    series, tail = np.zeros((3, 1)), np.inf
    for count in POINTS:
        angles = np.cos(np.pi * (np.arange(count) + 0.5) / count)
        values = np.array([_averages_at(math.sin(angle * math.pi / 2), teacher, student, slope) for angle in angles])
        series = np.linalg.solve(chebyshev.chebvander(angles, count - 1), values).T
        tail = float(np.max(np.abs(series[:, -3:]).max(axis=1) / np.maximum(np.abs(series).max(axis=1), scale)))
        if tail < RESOLVED:
            break
    if not tail < USABLE:
        raise ConvergenceError(
            f"averages of {teacher!r} and {student!r} are not resolved by {POINTS[-1]} correlations (tail {tail:.1g}); "
            "use a teacher and a student without jumps",
            series,
            tail,
        )
    return PairAverages(series, squares, _search_moments(teacher, student, slope), tail + 1e-12)


def _averages_at(m: float, f: Activation, g: Activation, slope: Callable[[Any], Any]) -> tuple[float, float, float]:
    """Return the averages at one correlation, by panels in w and in t, where z = m w + sqrt(1 - m^2) t.

    The panels in t end at the kinks of f.
    """
    spread = math.sqrt((1 - m) * (1 + m))
    w, weight = panel_rule((*g.kinks, *_layers(f.kinks, m, spread)), order=NODES, reach=REACH)
    t, inner = between_kinks(f.kinks, m * w, spread, panels=PANELS, order=NODES, reach=REACH)
    values = np.broadcast_to(np.asarray(f((m * w[:, None] + spread * t).ravel()), dtype=float), t.size).reshape(t.shape)
    student, gain = (np.broadcast_to(np.asarray(h(w), dtype=float), w.shape) for h in (g, slope))
    mean, tilt = (inner * values).sum(axis=1), (inner * values * t).sum(axis=1)
    gap = (inner * (values - student[:, None]) ** 2).sum(axis=1)
    return float(weight @ (mean * student)), float(weight @ (tilt * gain)) / spread, float(weight @ (gap * gain**2))


def _layers(kinks: tuple[float, ...], m: float, spread: float) -> list[float]:
    """Return panel edges in w around the images w = kink / m of the teacher's kinks, at geometric distances from them."""
    if abs(m) < 0.3:
        return []
    distances = spread * 2.0 ** np.arange(-1, max(1, math.ceil(math.log2(4 / spread))))
    return [kink / m + side * distance for kink in kinks for distance in (0.0, *distances) for side in (-1, 1)]


def _squares(f: Activation, g: Activation, slope: Callable[[Any], Any]) -> tuple[float, float, float]:
    """Return |f|^2, |g|^2 and E g'^2."""
    z, weight = panel_rule((*f.kinks, *g.kinks), reach=REACH)
    first, second, third = (float(weight @ np.broadcast_to(np.asarray(h(z)) ** 2, z.shape)) for h in (f, g, slope))
    return first, second, third


def _search_moments(f: Activation, g: Activation, slope: Callable[[Any], Any]) -> tuple[float, float]:
    """Return E (f(z) - g(w))^2 g'(w)^2 z^2 and E g'(w)^2 z^2 for independent z and w."""
    z, weight = panel_rule((*f.kinks, *g.kinks), reach=REACH)
    label, student, gain = (np.broadcast_to(np.asarray(h(z), dtype=float), z.shape) for h in (f, g, slope))
    with_square = [float(weight @ (z**2 * label**power)) for power in (2, 1, 0)]
    gains = [float(weight @ (gain**2 * student**power)) for power in (0, 1, 2)]
    labelled = with_square[0] * gains[0] - 2 * with_square[1] * gains[1] + with_square[2] * gains[2]
    return labelled, gains[0]


SCAN = 2001  # number of overlaps at which the sign of the drift is evaluated
NEAR = 1e-7  # drift at an end of the interval, relative to its scale, that counts as zero


class SphericalSGD(Law):
    """What does online SGD on the sphere do with a loss whose average depends on one overlap?"""

    status = "derived"
    regime = "N -> infinity at a fixed step, one fresh sample per step, time s = step * samples / N"
    assumptions = (
        "samples are independent and used once",
        "the gradient is projected and the weights are normalised after every step",
    )
    references = ("benarous2021online", "benarous2022high")
    observables = ("overlap",)
    simulation = Experiment("dimension N of the weights", sizes=(200, 400, 800), draws=40)

    step: float = parameter(0.3, note="times the dimension", symbol=r"\delta", above=0, scale="log")
    start_overlap: float = parameter(0.2, above=-1, below=1)
    times: float | tuple[float, ...] = parameter(
        (0.5, 1.0, 2.0, 4.0), note="step times samples over the dimension", symbol="s", kind="coordinate", least=0
    )
    tolerance: float = parameter(1e-11, kind="solver", above=0, most=1e-3, scale="log", finer=0.1)

    # -- the functions that define a model -----------------------------------------------------------------------------

    @abstractmethod
    def population_loss(self, m: ArrayLike) -> Array:
        """Return the mean loss at overlap m."""

    @abstractmethod
    def population_slope(self, m: ArrayLike) -> Array:
        """Return the derivative of the mean loss with respect to the overlap."""

    @abstractmethod
    def gradient_noise(self, m: ArrayLike) -> Array:
        """Return the mean squared length of a gradient over the dimension, at overlap m."""

    @abstractmethod
    def search_noise(self) -> float:
        """Return the variance of the component of a gradient along the hidden direction, at overlap 0."""

    @abstractmethod
    def information_exponent(self) -> InformationExponent:
        """Return the order and value of the first derivative of the mean loss at overlap 0 that does not vanish."""

    @abstractmethod
    def model(self) -> Any:
        """Return the model that `limitlab.models.online` simulates."""

    def drift_error(self) -> float:
        """Return the relative error of the averages in the drift."""
        return CLOSED_FORM

    # -- consequences for every model ----------------------------------------------------------------------------------

    def drift(self, m: ArrayLike) -> Array:
        """Return the rate of change of the overlap, h(m) of (7)."""
        overlap = np.asarray(m, dtype=float)
        shrink = self.step / 2 * overlap * self.gradient_noise(overlap)
        return np.asarray(-self.population_slope(overlap) * (1 - overlap**2) - shrink)

    def descends(self) -> bool:
        """Return whether the mean loss falls on all overlaps between 0 and 1, so that the descent has no other minimum."""
        return bool(np.all(self.population_slope(np.linspace(0, 1, SCAN)[1:-1]) < 0))

    def critical_step(self) -> float:
        """Return the step from which the overlap 0 is stable.

        It is -2 phi''(0) / G(0) for k = 2, inf for k = 1 and 0 for k >= 3.
        """
        exponent = self.information_exponent()
        if exponent.case != "escapes" or exponent.order is None:
            return 0.0
        if exponent.order == 2:
            return 2 * exponent.push / float(self.gradient_noise(0.0))
        return math.inf if exponent.order == 1 else 0.0

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of one sample per step. Only summary statistics are stored."""
        return Cost(1e5, 1e7 + 500.0 * size * latest(self) / self.step)

    def predicted(self, times: Array) -> Values:
        """Integrate equation (7)."""
        path = integrate(lambda _, m: self.drift(m), [self.start_overlap], times, self.tolerance)
        # An error of the drift may accumulate over the whole time. The bound does not include that a stable flow reduces the error.
        drifted = self.drift_error() * (1 + float(times[-1])) * float(np.abs(self.drift(path.states)).max(initial=0.0))
        return dict(overlap=path.states[:, 0], accuracy={"overlap": float(path.errors[0]) + drifted})

    def measured(self, draw: Draw, times: Array) -> Values:
        """Run the exact chain of the overlap once from `start_overlap`."""
        from limitlab.models.online import checked_dimension, long_overlap_path

        size = checked_dimension(draw.size)
        counts = self.samples(times, size)
        return dict(
            overlap=long_overlap_path(draw.rng, self.model().compiled(), self.start_overlap, size, self.step, counts)
        )

    def full_experiment(self, size: int, seeds: Sequence[int], threads: int = 1) -> Array:
        """Return overlaps (seeds, times) of SGD with full vectors.

        The overlaps have the same distribution as those of the exact chain, so that they check the chain. The row of a seed does not depend
        on the other seeds or on the number of threads.
        """
        from limitlab.models.online import checked_dimension, full_overlap_paths

        rngs = [self.draw(checked_dimension(size), seed).rng for seed in seeds]
        counts = self.samples(np.atleast_1d(self.times), size).tolist()
        return full_overlap_paths(rngs, self.model(), self.start_overlap, size, self.step, counts, threads)

    def samples(self, times: ArrayLike, size: int) -> NDArray[np.int64]:
        """Return the number of steps at each of the times, in dimension `size`."""
        return np.round(np.asarray(times, dtype=float) * size / self.step).astype(np.int64)

    def stable_overlap(self) -> float:
        """Return the limit of the flow from `start_overlap`, or from just above it if the start is an unstable fixed point."""
        drift = float(self.drift(self.start_overlap))
        if abs(drift) < 1e-9:
            drift = float(self.drift(self.start_overlap + 1e-4))
            if drift <= 0:
                return self.start_overlap
        side = 1.0 if drift > 0 else -1.0
        m = self.start_overlap + (side - self.start_overlap) * np.linspace(0, 1, SCAN)[1:]
        values = self.drift(m) * side
        values[-1] = -float(self.gradient_noise(side)) * self.step / 2
        turned = np.flatnonzero(values[:-1] < 0)
        if turned.size == 0 and values[-1] > -NEAR * float(self.gradient_noise(0.0)) * self.step:
            return side
        from scipy.optimize import brentq

        last = int(turned[0]) if turned.size else SCAN - 2
        low = m[last - 1] if last else self.start_overlap + side * 1e-4
        return float(brentq(lambda x: float(self.drift(x)), low, m[last], xtol=1e-14, rtol=1e-14))

    def recovery(self, level: float) -> BallisticRecovery | LogarithmicRecovery | DiffusiveRecovery:
        """Return the distribution of the first step at which the overlap exceeds a level, from a uniform start."""
        if not 0 < level < 1:
            raise Refused(f"level = {level!r} is not allowed: must be between 0 and 1 (an overlap)")
        exponent = self.information_exponent()
        if exponent.order is None or exponent.case != "escapes":
            raise Refused(
                f"no recovery from m > 0 is possible: the information exponent is {exponent.order} ({exponent.case}); change the student"
            )
        if exponent.order == 1:
            return BallisticRecovery(passage_time(self.drift, 0.0, level))
        shrink, noise = float(self.gradient_noise(0.0)), self.search_noise()
        if exponent.order == 2:
            kappa = exponent.push - self.step * shrink / 2
            if kappa <= 0:
                raise Refused(
                    f"step = {self.step:g} is not allowed here: m = 0 is stable from step {self.critical_step():.6g} on; "
                    "use a smaller step"
                )
            spread = math.sqrt(1 + self.step * noise / (2 * kappa))
            return LogarithmicRecovery(kappa, spread, logarithmic_constant(self.drift, kappa, level))
        return DiffusiveRecovery(exponent.order, exponent.push, shrink, noise, level)

    def recovery_time(self, level: float, size: int | None = None) -> float:
        """Return the mean of the rescaled recovery time, step * samples / N.

        For k >= 2 it depends on the dimension N = `size`. For k >= 3 the step is interpreted as delta0 N^{-(k-2)/2} at this N.
        """
        law = self.recovery(level)
        if isinstance(law, BallisticRecovery):
            return law.time
        if size is None:
            raise Refused(
                "size = None is not allowed here: give the dimension N, because the time grows with N for information exponents above 1"
            )
        if isinstance(law, LogarithmicRecovery):
            return law.mean(size)
        scale = size ** ((law.order - 2) / 2)
        return self.step * law.mean(size, self.step * scale) * float(size) ** (law.order - 2)

    def search_variance(self, ratio: float) -> float:
        """Return N times the mean squared overlap after `ratio` N samples in the limit (14), from a uniform start.

        N is the dimension. The information exponent must be at least 2. The limit holds as long as the overlap is small.

        Parameters
        ----------
        ratio
            Samples divided by the dimension, alpha.

        >>> from limitlab.laws import OnlinePCA
        >>> round(OnlinePCA(snr=2.0, step=0.1).search_variance(0.5), 6)
        1.535277
        """
        exponent = self.information_exponent()
        if exponent.case != "escapes" or exponent.order is None or exponent.order < 2:
            raise Refused(
                f"information exponent {exponent.order} ({exponent.case}) is not allowed: must be at least 2, with a falling loss"
            )
        push = exponent.push if exponent.order == 2 else 0.0
        rate = 2 * (push - self.step * float(self.gradient_noise(0.0)) / 2)
        time = self.step * ratio
        gathered = math.expm1(rate * time) / rate if rate else time
        return math.exp(rate * time) + self.step * self.search_noise() * gathered

    def descent_time(self, level: float) -> float:
        """Return the rescaled time from overlap `level` to 1 - `level`.

        The descent takes of order N / step samples for every k.
        """
        if not 0 < level < 0.5:
            raise Refused(f"level = {level!r} is not allowed: must be between 0 and 1/2")
        return passage_time(self.drift, level, 1 - level)
