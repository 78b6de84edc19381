"""Fokker-Planck equations in one dimension by Scharfetter and Gummel's finite volumes.

d_t rho = (rho Psi' + rho' / beta)' on an interval with walls. The flux between two cells is that of the stationary problem between
their centres, so that cell masses stay positive and add up to the same number, and the state at rest is exactly proportional to
exp(-beta Psi) at the centres. A step is implicit in rho for a given Psi: a tridiagonal system whose inverse is a stochastic matrix,
so that sum(Psi rho) + sum(rho log rho) / beta cannot grow, however long the step is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import NotComputable

Array = NDArray[np.float64]


def bernoulli(z: ArrayLike) -> Array:
    """z / (e^z - 1), smoothly through 0.

    >>> bernoulli([-1.0, 0.0, 1e-9, 800.0]).round(9).tolist()
    [1.581976707, 1.0, 1.0, 0.0]
    """
    x = np.asarray(z, dtype=float)
    small = np.abs(x) < 1e-5
    safe = np.where(small, 1.0, np.clip(x, -700, 700))
    return np.where(small, 1 - x / 2 + x * x / 12, np.where(np.abs(x) > 700, np.maximum(-x, 0.0), safe / np.expm1(safe)))


def diffusion_step(masses: ArrayLike, psi: ArrayLike, width: float, beta: float, time: float) -> Array:
    """Cell masses after one implicit step of length `time` in the potential `psi` (values at the centres of even cells).

    Parameters
    ----------
    masses
        Mass of every cell, not negative.
    psi
        Potential at the centres.
    width
        Width of a cell.
    beta
        Inverse temperature: the diffusion constant is 1 / beta.
    time
        Length of the step.

    Examples
    --------
    >>> centres = np.linspace(-3.95, 3.95, 80)
    >>> masses = np.full(80, 1 / 80)
    >>> for _ in range(100):
    ...     masses = diffusion_step(masses, centres**2, 0.1, 2.0, 0.2)
    >>> gibbs = np.exp(-2 * centres**2)
    >>> bool(abs(masses.sum() - 1) < 1e-13 and np.abs(masses - gibbs / gibbs.sum()).max() < 1e-12)
    True
    """
    from scipy.linalg.lapack import dgtsv

    start, values = np.asarray(masses, dtype=float), np.asarray(psi, dtype=float)
    up = beta * np.diff(values)
    rate = time / (beta * width**2)
    out, back = rate * bernoulli(up), rate * bernoulli(-up)  # mass per unit mass that goes right and that comes back
    diagonal = np.ones(start.size)
    diagonal[:-1] += out
    diagonal[1:] += back
    *_, moved, trouble = dgtsv(-out, diagonal, -back, start)
    if trouble:
        raise NotComputable(f"the tridiagonal system of a step of length {time:g} is singular")
    return np.asarray(moved)
