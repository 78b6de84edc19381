"""Does a logistic regression without a penalty exist? The threshold in p/n, and the probability at finite n.

Setting.  Labels Y = -1, +1 with P(Y = 1 | X) = sig(b0 + gamma X), X standard Gaussian; p predictors, n samples, with or without intercept.
Result.   The fit exists in the limit if and only if p/n < h (docs/theory/logistic_calibration.md, eqs. 4-5),

              h = min_{t0, t1} E (t0 Y + t1 Y X - Z)_+^2,                                                               (4)
              P(no fit) = Phi((p + c - n h)/(spread sqrt n)),   spread^2 = Var u^2 - 2 h,   u = (t0 Y + t1 Y X - Z)_+,   (5)

          c = 1 with an intercept and 0 without (then t0 = 0).
Status.   (4) theorem (Candes and Sur 2020). (5) derived from the kinematic formula of cones; without a signal it is Cover's count.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import ConvergenceError
from limitlab.laws.classification.gaussian_score import TrueScore
from limitlab.numerics.quadrature import graded_rule

Array = NDArray[np.float64]

NEWTON_STEPS = 200
GRADIENT = 1e-13


class Existence(NamedTuple):
    """The threshold h of (4), the spread of (5), and whether an intercept is fitted."""

    threshold: float
    spread: float
    fit_intercept: bool

    def no_fit_probability(self, predictors: ArrayLike, samples: ArrayLike) -> Array:
        """Equation (5); arguments broadcast.

        >>> case = existence(TrueScore(-1.82588843468, 1.34170951851), True)
        >>> case.no_fit_probability(20, [92, 132]).round(8).tolist()
        [0.11149346, 0.00243273]
        """
        from scipy.special import ndtr

        p, n = np.asarray(predictors, dtype=float), np.asarray(samples, dtype=float)
        extra = 1.0 if self.fit_intercept else 0.0
        return np.asarray(ndtr((p + extra - n * self.threshold) / (self.spread * np.sqrt(n))))


def existence(truth: TrueScore, fit_intercept: bool = True) -> Existence:
    """The convex minimisation (4), by Newton's method with halving, and the spread of (5).

    >>> found = existence(TrueScore(-1.0, 1.5))
    >>> round(found.threshold, 10), round(found.spread, 10)
    (0.359803507, 0.57655004)
    """
    from scipy.special import ndtr

    x, weight = graded_rule([truth.layer(1.0)], 24)
    case = truth.seen(x, 1.0)[0]
    mass = np.concatenate([weight * case, weight * (1 - case)])
    directions = np.concatenate([np.stack([np.ones_like(x), x]), -np.stack([np.ones_like(x), x])], axis=1)
    if not fit_intercept:
        directions = directions[1:]

    def parts(t: Array) -> tuple[Array, Array, Array]:
        reach = t @ directions
        return reach, np.asarray(ndtr(reach)), np.exp(-(reach**2) / 2) / np.sqrt(2 * np.pi)

    def value(t: Array) -> float:
        a, below, density = parts(t)
        return float(mass @ ((a**2 + 1) * below + a * density))

    t = np.zeros(len(directions))
    for _ in range(NEWTON_STEPS):
        a, below, density = parts(t)
        gradient = 2 * directions @ (mass * (a * below + density))
        if np.abs(gradient).max() <= GRADIENT:
            break
        step = np.linalg.solve(2 * (directions * (mass * below)) @ directions.T, gradient)
        now, size = value(t), 1.0
        while value(t - size * step) > now + 1e-15 and size > 1e-10:
            size /= 2
        t = t - size * step
    else:
        if np.abs(gradient).max() > 1e-10:
            raise ConvergenceError("the existence threshold did not converge", value(t), float(np.abs(gradient).max()))
    a, below, density = parts(t)
    second = float(mass @ ((a**2 + 1) * below + a * density))
    fourth = float(mass @ ((a**4 + 6 * a**2 + 3) * below + (a**3 + 5 * a) * density))
    return Existence(second, float(np.sqrt(fourth - second**2 - 2 * second)), fit_intercept)
