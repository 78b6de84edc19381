"""The smooth staircase at finite dimension: deterministic equivalents of random features, tangent features and kernel ridge.

Notation.  Levels e_k = lambda_k^2 B_k of the activation, B_k harmonics of degree k, r_k the share of a target of degree k that is not
           explained (docs/theory/approximation.md, sections 3, 4 and 6). Functions broadcast over the number of neurons or samples and
           append an axis of degrees to r. Degrees beyond the last one that is followed act as a white tail: nothing of them is learned.

           random features   N   = sum_k e_k / (e_k/B_k + kappa) + tail/kappa,           r_k = kappa / (e_k/B_k + kappa),       (7, 8)
           tangent features  c_k = N (n_k/rho_r + g_k/rho_t) / B_k,                      r_k = 1 / (1 + c_k),                   (10-12)
           kernel ridge      n   = sum_k x_k / (x_k/B_k + kappa) + (tail + lambda)/kappa, u_k = kappa / (x_k/B_k + kappa).       (14-16)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import ConvergenceError, Refused
from limitlab.laws.approximation.harmonics import Harmonics
from limitlab.numerics.roots import increasing_root_log

Array = NDArray[np.float64]

MOST_STEPS = 200_000
CONVERGED = 4e-16


class Levels(NamedTuple):
    """Energies of a kernel on the sphere, degree by degree: all harmonics of a degree share `energy` evenly."""

    energy: Array
    multiplicity: Array
    tail: float

    def eigenvalues(self) -> Array:
        """The eigenvalue of every harmonic: energy over multiplicity."""
        return np.asarray(self.energy / self.multiplicity)

    def rank(self) -> float:
        """Number of harmonics that the kernel sees."""
        return np.inf if self.tail > 0 else float(self.multiplicity[self.energy > 0].sum())


def effective_ridge(count: ArrayLike, levels: Levels, ridge: ArrayLike = 0.0) -> Array:
    """kappa of (7) or (14): the one unknown, increasing in the ridge and decreasing in the number of features or samples.

    It is 0 where there are more features than functions that they could span, and no ridge.

    >>> levels = Levels(np.array([1.0, 2.0]), np.array([1.0, 4.0]), 0.5)
    >>> kappa = effective_ridge(3.0, levels)
    >>> bool(abs(1 / (1 + kappa) + 2 / (0.5 + kappa) + 0.5 / kappa - 3) < 1e-13)
    True
    """
    n, lam = np.broadcast_arrays(np.asarray(count, dtype=float), np.asarray(ridge, dtype=float))
    energy, size = levels.energy, levels.eigenvalues()
    rest = levels.tail + lam
    solvable = (rest > 0) | (n < levels.rank())

    def excess(kappa: Array) -> Array:
        used = (energy / (size + kappa[..., None])).sum(axis=-1) + rest / kappa
        return np.where(solvable, 1 - used / n, kappa - 1.0)

    return np.where(solvable, increasing_root_log(excess, np.ones(n.shape)), 0.0)


def unexplained_share(kappa: ArrayLike, eigenvalues: Array) -> Array:
    """r_k = kappa / (s_k + kappa), eq. (8); a degree without an eigenvalue is not explained at all.

    >>> unexplained_share(0.0, np.array([0.0, 1.0])).tolist()
    [1.0, 0.0]
    """
    k = np.asarray(kappa, dtype=float)[..., None]
    whole = eigenvalues + k
    return np.asarray(np.where(whole > 0, k / np.where(whole > 0, whole, 1.0), 1.0))


def learning_curve(
    samples: ArrayLike, ridge: ArrayLike, noise: ArrayLike, levels: Levels, signal: Array
) -> dict[str, Array]:
    """Kernel ridge regression, eqs. (14)-(17): kappa, the shares u_k, g and the excess risk; the first three arguments broadcast.

    >>> levels = Levels(np.array([0.5, 0.5]), np.array([1.0, 9.0]), 0.0)
    >>> curve = learning_curve(5.0, 0.1, 0.0, levels, np.array([0.0, 1.0]))
    >>> bool(0 < curve["excess_risk"] < 1)
    True
    """
    n, lam, tau = np.broadcast_arrays(*(np.asarray(part, dtype=float) for part in (samples, ridge, noise)))
    kappa = effective_ridge(n, levels, lam)
    left = unexplained_share(kappa, levels.eigenvalues())
    learned = np.where(levels.energy > 0, 1 - left, 0.0)
    with np.errstate(invalid="ignore"):  # 0 of infinitely many harmonics
        squares = np.where(learned > 0, levels.multiplicity * learned**2, 0.0)
    g = squares.sum(axis=-1) / n  # (16)
    if (g >= 1).any():
        raise Refused(
            "ridge = 0 is not allowed with as many samples as the kernel has functions: use a positive ridge or fewer samples"
        )
    risk = ((signal * left**2).sum(axis=-1) + tau**2 * g) / (1 - g)  # (17)
    return dict(effective_ridge=kappa, unexplained=left, second_degrees_of_freedom=g, excess_risk=risk)


def tangent_unexplained(width: ArrayLike, harmonics: Harmonics) -> Array:
    """r_k of N tangent features, eqs. (10)-(12): two unknowns, found by iteration from c = 0, which decreases them.

    >>> from limitlab.laws.approximation.harmonics import gegenbauer_coefficients
    >>> tangent_unexplained(24, gegenbauer_coefficients("relu", 24, range(31)))[:4].round(6).tolist()
    [0.010292, 0.021075, 0.30746, 1.0]
    """
    n = np.asarray(width, dtype=float)[..., None]
    d, many = harmonics.dimension, harmonics.multiplicities
    radial, tangential = harmonics.radial_levels, harmonics.tangential_levels
    tails = harmonics.radial_tail, harmonics.tangential_tail
    seen = radial + tangential > 0
    full = (n * d >= many[seen].sum()) & (
        max(tails) == 0
    )  # more features than functions: everything that is seen is explained
    share = np.ones(np.broadcast_shapes(n.shape, many.shape))
    for _ in range(MOST_STEPS):
        along = (radial * share).sum(axis=-1, keepdims=True) + tails[0]  # (11)
        across = ((tangential * share).sum(axis=-1, keepdims=True) + tails[1]) / (d - 1)
        along, across = (np.where(full | (part == 0), 1.0, part) for part in (along, across))
        new = 1 / (1 + n * (radial / along + tangential / across) / many)  # (10), (12)
        step = np.abs(new / share - 1).max(initial=0.0)
        share = new
        if step <= CONVERGED * many.size:
            return np.where(full, np.where(seen, 0.0, 1.0), share)
    raise ConvergenceError(f"the tangent staircase has not converged after {MOST_STEPS} steps", share, float(step))
