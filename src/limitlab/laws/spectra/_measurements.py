"""What the laws of spectra share: what they compare with a drawn matrix, and how it is measured.

Positions are fractions of the way from the lowest to the highest edge, so that one list of them fits every law; the
distribution function is read there. The other observables are single numbers.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.laws import Draw, Experiment, Law, Values, observable, parameter, shared
from limitlab.models.designs import Entries

Array = NDArray[np.float64]

# Linear statistics are off by 1/p, edges by p^(-2/3) (Tracy-Widom); the rank is exact.
OBSERVABLES = {
    **shared("cdf"),
    **shared("second_moment", "stieltjes_transform", scalar=True),
    **shared("atom", rate=math.inf, scalar=True),
    **shared("smallest_eigenvalue", "largest_eigenvalue", rate=2 / 3, scalar=True),
    "eigenvalues": observable("eigenvalues of the drawn matrix", r"\lambda_i", dims=("index",), compared=False),
}


def points(positions: ArrayLike, low: ArrayLike, high: ArrayLike) -> Array:
    """Eigenvalues at the given fractions of the way between the edges; positions are the last axis.

    >>> points([0.0, 0.5], 1.0, 3.0)
    array([1., 2.])
    """
    a, b = np.asarray(low, dtype=float)[..., None], np.asarray(high, dtype=float)[..., None]
    return np.asarray(a + np.asarray(positions, dtype=float) * (b - a))


def measure(eigenvalues: Array, rank: int, at: Array, shift: float) -> dict[str, ArrayLike]:
    """The observables of one drawn spectrum (in increasing order), of which `rank` are not forced to be zero."""
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
    """A law of sample covariance matrices: a subclass says how a spectrum is drawn and where it is read."""

    observables = OBSERVABLES
    simulation = Experiment(
        "dimension p",
        sizes=(150, 300, 600),  # up to 400, finite-size effects hide 5.4 % of the smallest eigenvalue at ratio 3
        draws=80,
    )

    positions: float | tuple[float, ...] = parameter(
        (0.1, 0.3, 0.5, 0.7, 0.9),
        "where the distribution function is read",
        note="fractions of the way between the outer edges",
        kind="coordinate",
        above=0,
        below=1,
    )
    shift: float = parameter(1.0, "minus the argument of the Stieltjes transform", symbol=r"\lambda", above=0, scale="log")
    entries: Entries = parameter("gaussian", kind="experiment")

    @abstractmethod
    def sample_eigenvalues(self, draw: Draw) -> Array:
        """The eigenvalues of one drawn sample covariance matrix, in increasing order."""

    @abstractmethod
    def reading_points(self) -> Array:
        """The eigenvalues at the law's positions."""

    @abstractmethod
    def rank(self, draw: Draw) -> int:
        """How many eigenvalues of a draw are not forced to be zero."""

    def measured(self, draw: Draw, positions: Array) -> Values:
        """One drawn matrix, read between the edges that whole numbers of dimensions and samples give; its eigenvalues too."""
        eigenvalues = self.sample_eigenvalues(draw)
        at = self.realised(draw.size).reading_points()
        return {**measure(eigenvalues, self.rank(draw), at, self.shift), "eigenvalues": eigenvalues}
