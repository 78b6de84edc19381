"""The spectrum of a sample covariance matrix for any population spectrum.

Setting.  n samples x_i = Sigma^(1/2) z_i in dimension p, z with independent entries of mean 0 and variance 1. Sigma has
          eigenvalue s_k in a share w_k of the dimensions. S = X^T X / n.
Limit.    n, p -> infinity with p/n -> gamma (`ratio`, dimension over samples).
Result.   The companion transform v(z) = -1/u(z) is the transform of the n x n matrix X X^T / n. It solves Silverstein's equation

              z = psi(u) = u + gamma sum_k w_k s_k u / (u - s_k),    Im u > 0                                        (8)

          The other results follow from u (docs/theory/spectra.md, eqs. 9-14). They are m(z) = [v(z) + (1 - gamma)/z] / gamma,
          the density Im v / (pi gamma), the distribution function in closed form, the edges (critical values of psi), the
          masses of separate bulks, and the eigenvalue of S that belongs to a single spike of Sigma.
Status.   Theorem (Silverstein 1995; for outliers Baik and Silverstein 2006, Paul 2007, Bai and Yao 2012).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab._core.declaration import apportion
from limitlab.errors import Refused
from limitlab.laws import Draw, Headline, Mark, Values, parameter
from limitlab.laws._population import HasSpectrum
from limitlab.laws.spectra._measurements import SpectralLaw, points, sample_eigenvalues
from limitlab.models.designs import draw_design
from limitlab.numerics.spectra import SampleSpectrum
from limitlab.numerics.spectra.silverstein import ACCURACY

__all__ = ["SampleCovariance"]

Array = NDArray[np.float64]


@lru_cache(maxsize=64)
def limiting_spectrum(eigenvalues: tuple[float, ...], weights: tuple[float, ...], ratio: float) -> SampleSpectrum:
    """Return the limiting spectrum, cached by its parameters."""
    return SampleSpectrum(eigenvalues, weights, ratio=ratio)


class SampleCovariance(HasSpectrum, SpectralLaw):
    """What does the spectrum of a covariance look like when it is estimated from n samples in p dimensions?

    Examples
    --------
    >>> law = SampleCovariance(ratio=0.15, eigenvalues=(1, 4, 10), weights=(0.5, 0.3, 0.2))
    >>> [(round(low, 3), round(high, 3)) for low, high in law.support()]
    [(0.465, 1.493), (2.456, 5.686), (7.271, 14.119)]
    >>> position, overlap = law.outlier(25.0)
    >>> round(position, 3), round(overlap, 3)
    (25.792, 0.955)
    >>> law.outlier(11.0) is None
    True
    """

    status = "theorem"
    regime = "dimension p and number of samples n grow together, p/n -> gamma, at a fixed population spectrum"
    assumptions = (
        "samples x = Sigma^{1/2} z with independent entries z of mean 0 and variance 1",
        "finite fourth moment of z (for edges and outliers)",
        "a bounded population spectrum; for outliers a single eigenvalue apart from the rest",
    )
    references = ("silverstein1995strong", "silverstein1995analysis", "bai2012sample")
    page = "spectra"
    # Three groups at a ratio below 1, and two groups at a ratio above 1, with a mass at zero
    points = (
        dict(ratio=0.2, eigenvalues=(0.5, 1.0, 4.0), weights=(0.3, 0.5, 0.2), shift=0.7),
        dict(ratio=3.0, eigenvalues=(1.0, 2.0), weights=(0.7, 0.3)),
    )
    headline = Headline(
        "Samples blur two eigenvalues into bulks",
        x=r"eigenvalue $x$",
        over=(0.0, 8.0, 1601),
        show=("density",),
        curves=("ratio", (0.02, 0.1, 0.5)),
        size=600,
        draws=1,
        sliders=("eigenvalues", "weights"),
        marks=(
            Mark("x", lambda law: law.eigenvalues[0], "population eigenvalue"),
            Mark("x", lambda law: law.eigenvalues[-1], "population eigenvalue"),
        ),
    )

    ratio: float = parameter(0.25, above=0, scale="log", count="size / value")
    eigenvalues: tuple[float, ...] = parameter((1.0, 3.0), least=0)
    weights: tuple[float, ...] = parameter(
        (0.5, 0.5), note="of the dimensions, rescaled to add up to 1", above=0, count="shares of size"
    )

    @model_validator(mode="after")
    def _groups_match(self) -> Self:
        if self.spectrum is not None:
            if (self.spectrum.weights == 0).any():
                raise Refused(
                    f"spectrum = {self.spectrum!r} is not allowed: the law describes the bulks, and a spike is an outlier; "
                    "leave the spikes out and use outlier(spike)"
                )
            return self
        if len(self.weights) != len(self.eigenvalues):
            raise Refused(
                f"weights has {len(self.weights)} entries, which is not allowed: must be as many as eigenvalues, "
                f"{len(self.eigenvalues)}"
            )
        if not any(value > 0 for value in self.eigenvalues):
            raise Refused(f"eigenvalues = {self.eigenvalues} is not allowed: at least one must be above 0")
        return self

    # -- the limit ----------------------------------------------------------------------------------------------------

    @property
    def limit(self) -> SampleSpectrum:
        """The limiting spectrum as an object of `limitlab.numerics.spectra`."""
        if self.spectrum is None:
            return limiting_spectrum(self.eigenvalues, self.weights, self.ratio)
        s, w = self.spectrum.eigenvalues, self.spectrum.weights
        return limiting_spectrum(tuple(s.tolist()), tuple(w.tolist()), self.ratio)

    def support(self) -> list[tuple[float, float]]:
        """Return the bulks from left to right as (low, high), without the mass at zero."""
        return self.limit.support()

    def bulk_masses(self) -> list[float]:
        """Return the mass of each bulk. These masses and the mass at zero add up to one."""
        return self.limit.bulk_masses()

    def atom(self) -> float:
        """Return the mass at zero."""
        return self.limit.atom()

    def density(self, x: ArrayLike) -> Array:
        """Return the density of the continuous part."""
        return self.limit.density(x)

    def cdf(self, x: ArrayLike) -> Array:
        """Return the distribution function, including the mass at zero."""
        return self.limit.cdf(x)

    def stieltjes(self, z: ArrayLike) -> NDArray[Any]:
        """Return the Stieltjes transform. It is real for real z outside the support. For z = x + 0j it is the limit from above."""
        return self.limit.stieltjes(z)

    def companion(self, z: ArrayLike) -> NDArray[Any]:
        """Return the Stieltjes transform of the n x n matrix X X^T / n, with the conventions of `stieltjes`."""
        return self.limit.companion(z)

    def moment(self, order: int) -> float:
        """Return the moment E x^k of the spectrum."""
        return self.limit.moment(order)

    def outlier(self, spike: float) -> tuple[float, float] | None:
        """Return the position of the outlier that a spike of Sigma causes, and the squared overlap of the eigenvectors.

        The result is None if the spike causes no outlier.
        """
        return self.limit.outlier(spike)

    def reading_points(self) -> Array:
        """Return the points x of the spectrum that `positions` names, where 0 and 1 are the outer edges."""
        bulks = self.support()
        return points(self.positions, bulks[0][0], bulks[-1][1])

    def predicted(self, positions: Array, shift: Array) -> Values:
        """Evaluate the limit for one spectrum."""
        return dict(
            cdf=self.cdf(self.reading_points()),
            second_moment=self.moment(2),
            stieltjes_transform=self.stieltjes(-shift),
            atom=self.atom(),
            smallest_eigenvalue=self.support()[0][0],
            largest_eigenvalue=self.support()[-1][1],
            accuracy=ACCURACY,
        )

    # -- the experiment -----------------------------------------------------------------------------------------------

    def group_sizes(self, draw: Draw) -> list[int]:
        """Return the number of dimensions in each group."""
        if self.spectrum is not None:
            return self.spectrum.at(draw.size).counts(draw.size).tolist()
        return [int(count) for count in apportion(draw.size, self.weights)]

    def group_eigenvalues(self, draw: Draw) -> Sequence[float]:
        """Return the population eigenvalue of each group."""
        return self.eigenvalues if self.spectrum is None else self.spectrum.at(draw.size).eigenvalues.tolist()

    def sample(self, draw: Draw) -> Array:
        """Return a table of samples, shape (n, size)."""
        return draw_design(
            draw.rng, draw.count("ratio"), self.group_eigenvalues(draw), self.group_sizes(draw), self.entries
        ).X

    def sample_eigenvalues(self, draw: Draw) -> Array:
        """Return the eigenvalues of one drawn sample covariance matrix, in increasing order."""
        X = self.sample(draw)
        positive = sample_eigenvalues(X[:, np.any(X != 0, axis=0)])  # null directions of Sigma give exact zeros
        return np.concatenate([np.zeros(draw.size - positive.size), positive])

    def rank(self, draw: Draw) -> int:
        """Return the smaller of the number of samples and the number of dimensions with positive population eigenvalue."""
        positive = sum(
            count for count, value in zip(self.group_sizes(draw), self.group_eigenvalues(draw), strict=True) if value > 0
        )
        return min(draw.count("ratio"), positive)
