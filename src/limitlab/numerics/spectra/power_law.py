"""Power-law spectra s_j = j^{-a} with target coefficients b_j = j^{-b}, j = 1..V, represented by few groups.

The first modes are represented one by one. The sum over the other modes is an integral in log j by Gauss-Legendre panels, with the first
correction of Euler and Maclaurin at both ends (docs/theory/power_law_scaling.md, section "Numbers").
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


KEPT = 256  # number of modes that are represented one by one
ALL = 2 * KEPT  # spectra with at most this number of modes are not grouped
PANEL, ORDER = 1.5, 12  # length of a panel in log j, nodes on it
END = 1 / 24  # coefficient of Euler and Maclaurin's formula between half integers
# An infinite spectrum is cut where the rest of its trace is below 10^-13 of the whole, at most at mode 10^60.
TAIL_DIGITS, LARGEST = 13, 60


class Modes(NamedTuple):
    """Eigenvalue, number of modes and total squared target coefficient of every group of modes."""

    eigenvalues: Array
    counts: Array
    energy: Array

    @property
    def variance(self) -> float:
        """Variance of the target, sum lambda b^2."""
        return float(self.eigenvalues @ self.energy)


def power_law_modes(alpha: float, beta: float, modes: float) -> Modes:
    """Return the groups of the spectrum j^(-2 alpha), b_j = j^-beta, with V modes, which may be infinite if 2 alpha > 1.

    >>> groups = power_law_modes(1.0, 0.7, 1e6)
    >>> groups.counts.size, bool(abs(groups.counts @ groups.eigenvalues - (np.pi**2 / 6 - 1e-6)) < 1e-11)
    (331, True)
    """
    if modes <= ALL:
        j, counts = np.arange(1.0, round(modes) + 1), np.ones(round(modes))
    else:
        last = 10.0 ** min(TAIL_DIGITS / (2 * alpha - 1), LARGEST) if math.isinf(modes) else round(modes)
        rest, weights = _log_panels(math.log(KEPT + 0.5), math.log(last - 0.5))
        # sum f = integral + (f'(low) - f'(high)) / 24 + ..., where the two modes beside each end give the derivatives
        j = np.r_[np.arange(1.0, KEPT + 2), rest, last - 1, last]
        counts = np.r_[np.ones(KEPT - 1), 1 - END, END, weights, END, 1 - END]
    return Modes(j ** (-2 * alpha), counts, counts * j ** (-2 * beta))


def _log_panels(low: float, high: float) -> tuple[Array, Array]:
    """Return nodes j and weights of an integral over j from e^low to e^high, by Gauss-Legendre panels in log j."""
    points, weights = np.polynomial.legendre.leggauss(ORDER)
    edges = np.linspace(low, high, math.ceil((high - low) / PANEL) + 1)
    half = np.diff(edges)[:, None] / 2
    j = np.exp(edges[:-1, None] + half * (1 + points))
    return j.ravel(), (half * weights * j).ravel()
