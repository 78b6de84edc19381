"""What one sample tells a student about its teacher: population loss, information exponent, gradient noise.

Setting.  a ~ N(0, I_N), label y = f(<a, v0>) + noise, student g(<a, x>) with |x| = 1, loss L = (y - g)^2; m = <x, v0>. With (z, w)
          standard Gaussian of correlation m (docs/theory/online_sgd.md):

              phi(m)   = E L = |f|^2 + |g|^2 + tau^2 - 2 E f(z) g(w)                                                  (2)
              -phi'(m) = 2 E f'(z) g'(w) = 2 E[f(z) (z - m w) g'(w)] / (1 - m^2)                                      (3)
              G(m)     = lim E |grad L|^2 / N = 4 E[((f(z) - g(w))^2 + tau^2) g'(w)^2]                                (5)
              V(0)     = Var <grad L, v0> at m = 0 = 4 E[((f(z) - g(w))^2 + tau^2) g'(w)^2 z^2] - phi'(0)^2           (6)

Result.   phi is a power series in m with coefficients -2 u_k(f) u_k(g), the products of Hermite coefficients. Its first one that
          does not vanish, of degree k >= 1, is the information exponent.
Numerics. The three averages are analytic in arcsin m, kinks or not: they are computed once, on Chebyshev points of arcsin m, with
          panels that know the kinks and the layer that they cast on the other variable. The second form of (3) needs no
          derivative of the teacher, which may jump.
Status.   Exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import ConvergenceError
from limitlab.models.activations import Activation, hermite
from limitlab.models.tabulated import derivative_of
from limitlab.numerics.quadrature import between_kinks, panel_rule

Array = NDArray[np.float64]
Case = Literal["escapes", "wrong sign", "none"]

HIGHEST_DEGREE = 20  # of the search for the information exponent
VANISHES = 1e-10  # a product of Hermite coefficients below this share of |f| |g| is rounding
POINTS = (33, 65, 129)  # Chebyshev points in arcsin m
RESOLVED, USABLE = 1e-11, 1e-6  # share of the series' tail: enough, and too bad to be used
REACH, NODES, PANELS = 12.0, 16, 6  # of the panels: standard deviations, nodes on each, number between kinks


@dataclass(frozen=True)
class InformationExponent:
    """The first derivative of phi at m = 0 that does not vanish.

    Attributes
    ----------
    order
        Its degree k; None if there is none up to degree 20.
    case
        "escapes": phi falls, m = 0 is left on the side m > 0. "wrong sign": phi rises; an odd k selects m < 0, an even k makes the
        equator attract. "none": phi is flat, and SGD learns nothing.
    derivative
        phi^(k)(0).
    """

    order: int | None
    case: Case
    derivative: float = 0.0

    @property
    def push(self) -> float:
        """c > 0 in -phi'(m) = c m^(k-1) + ..., that is -phi^(k)(0) / (k-1)!."""
        return 0.0 if self.order is None else -self.derivative / math.factorial(self.order - 1)

    @staticmethod
    def of(order: int | None, derivative: float) -> InformationExponent:
        """From the degree and the derivative.

        >>> InformationExponent.of(2, -8.0).case
        'escapes'
        """
        if order is None:
            return InformationExponent(None, "none")
        return InformationExponent(order, "escapes" if derivative < 0 else "wrong sign", derivative)


def teacher_student_exponent(teacher: Activation, student: Activation) -> InformationExponent:
    """The information exponent of y = f(<a, v0>) learned by g(<a, x>); phi^(k)(0) = -2 k! u_k(f) u_k(g).

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
    """E f(z) g(w), E f'(z) g'(w) and E (f(z) - g(w))^2 g'(w)^2 as functions of the correlation m: series in arcsin m.

    `squares` holds |f|^2, |g|^2 and E g'(w)^2; `accuracy` is the largest tail of the series, relative to their size.
    """

    series: Array
    squares: tuple[float, float, float]
    search_moments: tuple[float, float]
    accuracy: float

    def kernel(self, m: ArrayLike) -> Array:
        """E f(z) g(w)."""
        return self._at(m, 0)

    def slope(self, m: ArrayLike) -> Array:
        """E f'(z) g'(w), the derivative of `kernel`."""
        return self._at(m, 1)

    def mismatch(self, m: ArrayLike) -> Array:
        """E (f(z) - g(w))^2 g'(w)^2, never negative."""
        return np.maximum(self._at(m, 2), 0.0)

    def _at(self, m: ArrayLike, part: int) -> Array:
        angle = np.arcsin(np.clip(np.asarray(m, dtype=float), -1.0, 1.0)) * (2 / np.pi)
        return np.asarray(chebyshev.chebval(angle, self.series[part]))

    def search_noise(self, noise: float) -> float:
        """V(0) of (6)."""
        with_labels, with_noise = self.search_moments
        return 4 * (with_labels + noise**2 * with_noise) - 4 * float(self.slope(0.0)) ** 2


@lru_cache(maxsize=64)
def pair_averages(teacher: Activation, student: Activation) -> PairAverages:
    """The averages (2), (3) and (5) for all correlations at once.

    >>> averages = pair_averages(Activation("relu"), Activation("relu"))
    >>> float(averages.kernel(0.5).round(8))
    0.30449889
    """
    slope = derivative_of(student)
    squares = _squares(teacher, student, slope)
    scale = np.sqrt(squares[0]) * np.sqrt([squares[1], squares[2], 0.0])  # an average may vanish altogether
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
    """One correlation: panels in w, and in t of z = m w + sqrt(1 - m^2) t panels between the kinks of f."""
    spread = math.sqrt((1 - m) * (1 + m))
    w, weight = panel_rule((*g.kinks, *_layers(f.kinks, m, spread)), order=NODES, reach=REACH)
    t, inner = between_kinks(f.kinks, m * w, spread, panels=PANELS, order=NODES, reach=REACH)
    values = np.broadcast_to(np.asarray(f((m * w[:, None] + spread * t).ravel()), dtype=float), t.size).reshape(t.shape)
    student, gain = (np.broadcast_to(np.asarray(h(w), dtype=float), w.shape) for h in (g, slope))
    mean, tilt = (inner * values).sum(axis=1), (inner * values * t).sum(axis=1)
    gap = (inner * (values - student[:, None]) ** 2).sum(axis=1)
    return float(weight @ (mean * student)), float(weight @ (tilt * gain)) / spread, float(weight @ (gap * gain**2))


def _layers(kinks: tuple[float, ...], m: float, spread: float) -> list[float]:
    """Places in w around those that a kink of the teacher casts its shadow on, at distances that halve down to its width."""
    if abs(m) < 0.3:
        return []
    distances = spread * 2.0 ** np.arange(-1, max(1, math.ceil(math.log2(4 / spread))))
    return [kink / m + side * distance for kink in kinks for distance in (0.0, *distances) for side in (-1, 1)]


def _squares(f: Activation, g: Activation, slope: Callable[[Any], Any]) -> tuple[float, float, float]:
    """|f|^2, |g|^2 and E g'^2."""
    z, weight = panel_rule((*f.kinks, *g.kinks), reach=REACH)
    first, second, third = (float(weight @ np.broadcast_to(np.asarray(h(z)) ** 2, z.shape)) for h in (f, g, slope))
    return first, second, third


def _search_moments(f: Activation, g: Activation, slope: Callable[[Any], Any]) -> tuple[float, float]:
    """E (f(z) - g(w))^2 g'(w)^2 z^2 and E g'(w)^2 z^2 for independent z and w."""
    z, weight = panel_rule((*f.kinks, *g.kinks), reach=REACH)
    label, student, gain = (np.broadcast_to(np.asarray(h(z), dtype=float), z.shape) for h in (f, g, slope))
    with_square = [float(weight @ (z**2 * label**power)) for power in (2, 1, 0)]
    gains = [float(weight @ (gain**2 * student**power)) for power in (0, 1, 2)]
    labelled = with_square[0] * gains[0] - 2 * with_square[1] * gains[1] + with_square[2] * gains[2]
    return labelled, gains[0]
