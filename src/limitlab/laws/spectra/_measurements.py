"""Observables, measurements and base class of the laws of spectra.

The distribution function is evaluated at positions between the edges. Position 0 is the lowest edge and position 1 the highest edge, so
that the same positions suit every law. The other observables are single numbers.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.laws import Draw, Experiment, Law, Values, observable, parameter, shared
from limitlab.models.designs import Entries

Array = NDArray[np.float64]


# gaps are of order 1/p for linear statistics and p^(-2/3) for edges (Tracy-Widom); the rank has none
OBSERVABLES = {
    **shared("cdf"),
    **shared("second_moment", "stieltjes_transform", scalar=True),
    **shared("atom", rate=math.inf, scalar=True),
    **shared("smallest_eigenvalue", "largest_eigenvalue", rate=2 / 3, scalar=True),
    "eigenvalues": observable("eigenvalues of the drawn matrix", r"\lambda_i", dims=("index",), compared=False),
}


def points(positions: ArrayLike, low: ArrayLike, high: ArrayLike) -> Array:
    """Return the points at the given fractions of the way between the edges. Positions are the last axis.

    >>> points([0.0, 0.5], 1.0, 3.0)
    array([1., 2.])
    """
    a, b = np.asarray(low, dtype=float)[..., None], np.asarray(high, dtype=float)[..., None]
    return np.asarray(a + np.asarray(positions, dtype=float) * (b - a))


def measure(eigenvalues: Array, rank: int, at: Array, shift: float) -> dict[str, ArrayLike]:
    """Return the observables of drawn eigenvalues in increasing order. All but `rank` of the eigenvalues must be zero."""
    size = len(eigenvalues)
    return dict(
        cdf=np.searchsorted(eigenvalues, at, side="right") / size,
        second_moment=np.mean(eigenvalues**2),
        stieltjes_transform=np.mean(1 / (eigenvalues + shift)),
        atom=1 - rank / size,
        smallest_eigenvalue=eigenvalues[size - rank],
        largest_eigenvalue=eigenvalues[-1],
    )


class SpectralLaw(Law):
    """Base class of laws of sample covariance matrices.

    A subclass defines how a spectrum is drawn and at which points its distribution function is evaluated.
    """

    observables = OBSERVABLES
    simulation = Experiment(
        "dimension p",
        sizes=(
            150,
            300,
            600,
        ),  # with sizes up to 400 the comparison misses an error of 5.4 % in the smallest eigenvalue at ratio 3
        draws=80,
    )

    positions: float | tuple[float, ...] = parameter(
        (0.1, 0.3, 0.5, 0.7, 0.9),
        "positions at which the distribution function is evaluated",
        note="fractions of the way between the outer edges",
        kind="coordinate",
        above=0,
        below=1,
    )
    shift: float = parameter(1.0, "minus the argument of the Stieltjes transform", symbol=r"\lambda", above=0, scale="log")
    entries: Entries = parameter("gaussian", kind="experiment")

    @abstractmethod
    def sample_eigenvalues(self, draw: Draw) -> Array:
        """Return the eigenvalues of one drawn sample covariance matrix, in increasing order."""

    @abstractmethod
    def reading_points(self) -> Array:
        """Return the points x of the spectrum that `positions` names, where 0 is the lower edge and 1 the upper edge."""

    @abstractmethod
    def density(self, x: ArrayLike) -> Array:
        """Return the density of the continuous part."""

    def headline_line(self, values: Array) -> dict[str, Array]:
        """Return the density at eigenvalues, for the headline view."""
        return {"density": self.density(values)}

    def headline_histogram(self, size: int, seed: int) -> Array:
        """Return the eigenvalues of one draw, for the headline view."""
        return self.sample_eigenvalues(self.draw(size, seed))

    @abstractmethod
    def rank(self, draw: Draw) -> int:
        """Return the number of eigenvalues of a draw that need not be zero."""

    def measured(self, draw: Draw, positions: Array) -> Values:
        """Measure one drawn matrix. The positions refer to the edges at its ratio of whole numbers of dimensions and samples."""
        eigenvalues = self.sample_eigenvalues(draw)
        at = self.realised(draw.size).reading_points()
        return {**measure(eigenvalues, self.rank(draw), at, self.shift), "eigenvalues": eigenvalues}


# -- eigenvalues of a drawn table, and of an equivalent bidiagonal matrix for Gaussian entries -------------------------


def sample_eigenvalues(X: ArrayLike) -> Array:
    """Return all p eigenvalues of X^T X / n in increasing order. The zeros due to p > n are exact.

    >>> sample_eigenvalues([[3.0, 0.0, 1.0], [1.0, 0.0, -3.0]]).round(12)
    array([0., 5., 5.])
    """
    table = np.asarray(X, dtype=float)
    n, p = table.shape
    gram = table.T @ table if p <= n else table @ table.T
    positive = np.maximum(np.linalg.eigvalsh(gram / n), 0.0)
    return np.concatenate([np.zeros(p - positive.size), positive])


def extreme_eigenvalues(rng: np.random.Generator, dimension: int, samples: int) -> tuple[float, float]:
    """Return the smallest non-zero and the largest eigenvalue of X^T X / n for a Gaussian X, in linear time.

    Householder reflections turn a Gaussian table into a bidiagonal one whose entries are independent chi variables
    (Dumitriu and Edelman 2002), so the eigenvalues have exactly the same distribution as those of a drawn table.

    >>> low, high = extreme_eigenvalues(np.random.default_rng(0), dimension=500, samples=2000)
    >>> bool(abs(low - 0.25) < 0.02 and abs(high - 2.25) < 0.06)
    True
    """
    from scipy.linalg import eigvalsh_tridiagonal

    many, few = max(dimension, samples), min(dimension, samples)
    diagonal = rng.chisquare(np.arange(many, many - few, -1.0))
    below = rng.chisquare(np.arange(few - 1, 0, -1.0))
    main = diagonal + np.concatenate([[0.0], below])
    off_diagonal = np.sqrt(diagonal[:-1] * below)
    ends = [eigvalsh_tridiagonal(main, off_diagonal, select="i", select_range=(k, k))[0] for k in (0, few - 1)]
    return max(float(ends[0]), 0.0) / samples, float(ends[1]) / samples
