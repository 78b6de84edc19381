"""From mean squares to error rates beyond the data: a straight line in probit scale.

Along n < N the pairs (log mean square, Phi^-1(error rate)) lie nearly on a line. It is fitted there, and read at the mean square that is
extrapolated to n > N (docs/theory/learning_curves.md, eq. 15). The same with one minus the area under the curve.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SHARES = (0.15, 0.25, 0.4, 0.55, 0.7, 0.85)
"""Shares of the data at which the line is fitted, and all of them (leave-one-out)."""


@dataclass(frozen=True)
class ProbitLine:
    """Phi^-1(rate) = intercept + slope log(mean square), slope at least 0."""

    intercept: float
    slope: float

    def __call__(self, mean_square: Array) -> Array:
        """The rate at a mean square."""
        from scipy.special import ndtr

        return np.asarray(ndtr(self.intercept + self.slope * np.log(mean_square)))


def probit_line(mean_squares: Array, rates: Array, points: int) -> ProbitLine:
    """Least squares with equal weights; a rate of zero counts as half a mistake among the points.

    >>> line = probit_line(np.array([0.2, 0.3, 0.5]), np.array([0.05, 0.08, 0.15]), 500)
    >>> line(np.array([0.3])).round(3).tolist(), bool(line(np.array([0.1]))[0] < 0.05)
    ([0.083], True)
    """
    from scipy.special import ndtri

    x = np.log(mean_squares)
    y = ndtri(np.clip(rates, 0.5 / points, 1 - 0.5 / points))
    slope = float(np.cov(x, y, bias=True)[0, 1] / max(np.var(x), np.finfo(float).tiny))
    slope = max(slope, 0.0)
    return ProbitLine(float(y.mean() - slope * x.mean()), slope)
