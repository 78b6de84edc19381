"""Power-law spectra in few groups: lambda_j = j^{-2 alpha}, target coefficients b_j = j^{-beta}, j = 1..V.

The first modes are kept one by one; the sum over the rest is an integral in log j by Gauss-Legendre panels, with the first correction of
Euler and Maclaurin at both of its ends (docs/theory/power_law_scaling.md, section "Numbers").
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

KEPT = 256  # modes that are kept one by one
ALL = 2 * KEPT  # up to so many modes nothing is grouped
PANEL, ORDER = 1.5, 12  # length of a panel in log j, nodes on it
END = 1 / 24  # of Euler and Maclaurin's formula between half integers
TAIL_DIGITS, LARGEST = (
    13,
    60,
)  # an infinite spectrum ends where the rest of its trace is below this many digits, at most at 10^60


class Spectrum(NamedTuple):
    """Groups of modes: eigenvalue, number of modes, and squared target coefficients (their total in the group)."""

    eigenvalues: Array
    counts: Array
    energy: Array

    @property
    def variance(self) -> float:
        """Variance of the target, sum lambda b^2."""
        return float(self.eigenvalues @ self.energy)


@lru_cache(maxsize=64)
def power_law(alpha: float, beta: float, modes: float) -> Spectrum:
    """The groups of a power-law spectrum with so many modes (infinity allowed if 2 alpha > 1).

    >>> groups = power_law(1.0, 0.7, 1e6)
    >>> groups.counts.size, bool(abs(groups.counts @ groups.eigenvalues - (np.pi**2 / 6 - 1e-6)) < 1e-11)
    (331, True)
    """
    if modes <= ALL:
        j, counts = np.arange(1.0, round(modes) + 1), np.ones(round(modes))
    else:
        last = 10.0 ** min(TAIL_DIGITS / (2 * alpha - 1), LARGEST) if math.isinf(modes) else round(modes)
        rest, weights = _log_panels(math.log(KEPT + 0.5), math.log(last - 0.5))
        # sum f = integral + (f'(low) - f'(high)) / 24 + ..., the derivatives from the two modes beside each end
        j = np.r_[np.arange(1.0, KEPT + 2), rest, last - 1, last]
        counts = np.r_[np.ones(KEPT - 1), 1 - END, END, weights, END, 1 - END]
    return Spectrum(j ** (-2 * alpha), counts, counts * j ** (-2 * beta))


def _log_panels(low: float, high: float) -> tuple[Array, Array]:
    """Nodes j and weights of an integral over j from e^low to e^high, Gauss-Legendre on panels in log j."""
    points, weights = np.polynomial.legendre.leggauss(ORDER)
    edges = np.linspace(low, high, math.ceil((high - low) / PANEL) + 1)
    half = np.diff(edges)[:, None] / 2
    j = np.exp(edges[:-1, None] + half * (1 + points))
    return j.ravel(), (half * weights * j).ravel()
