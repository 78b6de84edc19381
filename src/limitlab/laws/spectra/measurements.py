"""What the laws of spectra share: what they compare with a drawn matrix, and how it is measured.

Positions are fractions of the way from the lowest to the highest edge, so that one list of them fits every law; the
distribution function is read there. The other observables are single numbers.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from limitlab.laws.base import Law, checked_size
from limitlab.laws.parameters import parameter
from limitlab.laws.results import Values, package

Array = NDArray[np.float64]

SINGLE = ("second_moment", "stieltjes_transform", "atom", "smallest_eigenvalue", "largest_eigenvalue")
OBSERVABLES = ("cdf", *SINGLE)

# Linear statistics are off by 1/p, edges by p^(-2/3) (Tracy-Widom); the rank is exact.
RATES = {
    "cdf": 1.0,
    "second_moment": 1.0,
    "stieltjes_transform": 1.0,
    "atom": math.inf,
    "smallest_eigenvalue": 2 / 3,
    "largest_eigenvalue": 2 / 3,
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

    observables: ClassVar[tuple[str, ...]] = OBSERVABLES
    scalar_observables: ClassVar[tuple[str, ...]] = SINGLE
    size_meaning: ClassVar[str] = "dimension p"
    finite_size_rate: ClassVar[dict[str, float]] = RATES
    default_sizes: ClassVar[tuple[int, ...]] = (50, 100, 200)
    default_seeds: ClassVar[int] = 40

    ratio: float = parameter(0.25, "dimension over number of samples", symbol=r"\gamma = p/n", above=0, scale="log")

    def samples(self, size: int) -> int:
        """Number of samples that go with dimension `size`."""
        return max(1, round(size / self.ratio))

    @abstractmethod
    def sample_eigenvalues(self, size: int, seed: int) -> Array:
        """The eigenvalues of one drawn sample covariance matrix, in increasing order."""

    @abstractmethod
    def measured(self, eigenvalues: Array) -> dict[str, ArrayLike]:
        """The observables of a drawn spectrum."""

    def experiment(self, size: int, seed: int, **path: Any) -> Values:
        """The observables of one drawn matrix."""
        return self.measured(self.sample_eigenvalues(size, seed))

    def simulate(self, size: int, seed: int) -> xr.Dataset:
        """One drawn matrix: the observables and the raw `eigenvalues`."""
        eigenvalues = self.sample_eigenvalues(checked_size(size), seed)
        values = {**self.measured(eigenvalues), "eigenvalues": eigenvalues}
        return package(self, values, kind="simulation", dims={"eigenvalues": ("index",)}, size=int(size), seed=int(seed))
