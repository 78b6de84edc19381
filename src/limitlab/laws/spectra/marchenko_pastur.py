"""The Marchenko-Pastur law.

Setting.  X is n x p with independent entries of mean 0 and variance sigma^2. S = X^T X / n is the sample covariance of n
          samples in dimension p, whose population covariance is sigma^2 times the identity.
Limit.    n, p -> infinity with p/n -> gamma (`ratio`, dimension over samples).
Result.   The eigenvalues of S fill [a, b] = sigma^2 (1 -+ sqrt(gamma))^2 with density
          sqrt((b - x)(x - a)) / (2 pi sigma^2 gamma x), plus an atom 1 - 1/gamma at zero when gamma > 1
          (docs/theory/spectra.md, eqs. 1 and 2). The transform m(z), the integral of dmu(x) / (x - z), is the root of
          1 + z m = sigma^2 m / (1 + gamma sigma^2 m) with Im m > 0 for Im z > 0 (eq. 5). The extreme eigenvalues tend to a
          and b (Bai and Yin), at a distance of order p^(-2/3).
Status.   Theorem (Marchenko and Pastur 1967; for the edges Bai and Yin 1993).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.laws import CLOSED_FORM, Draw, Headline, Mark, Values, parameter
from limitlab.laws.spectra._measurements import SpectralLaw, points, sample_eigenvalues
from limitlab.models.designs import draw_design
from limitlab.numerics.spectra import marchenko_pastur as numerics

__all__ = ["MarchenkoPastur"]

Array = NDArray[np.float64]


def limit(
    ratio: ArrayLike, variance: ArrayLike = 1.0, positions: ArrayLike = (0.5,), shift: ArrayLike = 1.0
) -> dict[str, Array]:
    """Return the observables of the limit as arrays over the broadcast parameters, with positions as the last axis.

    >>> values = limit(ratio=[0.25, 4.0], positions=[0.5])
    >>> values["largest_eigenvalue"].ravel().tolist(), values["atom"].ravel().tolist()
    ([2.25, 9.0], [0.0, 0.75])
    """
    gamma, v, lam = np.broadcast_arrays(*(np.asarray(value, dtype=float) for value in (ratio, variance, shift)))
    low, high = numerics.edges(gamma, v)
    single = dict(
        second_moment=numerics.moment(2, gamma, v),
        stieltjes_transform=numerics.stieltjes(-lam, gamma, v),
        atom=numerics.atom(gamma),
        smallest_eigenvalue=low,
        largest_eigenvalue=high,
    )
    cdf = numerics.cdf(points(positions, low, high), gamma[..., None], v[..., None])
    return {"cdf": cdf, **{name: np.asarray(value)[..., None] for name, value in single.items()}}


class MarchenkoPastur(SpectralLaw):
    """Which eigenvalues of a sample covariance matrix are pure noise?

    Examples
    --------
    >>> law = MarchenkoPastur(ratio=0.25)
    >>> law.support(), law.atom()
    ([(0.25, 2.25)], 0.0)
    >>> law.density([0.1, 1.0]).round(6).tolist()
    [0.0, 0.616404]
    >>> float(law.stieltjes(-1.0).round(6))
    0.531129
    """

    status = "theorem"
    regime = "dimension p and number of samples n grow together, p/n -> gamma"
    assumptions = (
        "independent entries of mean 0 and common variance",
        "finite fourth moment (only for the edges; the bulk needs two moments)",
    )
    references = ("marchenko1967distribution", "bai1993limit")
    page = "spectra"
    # Variances that are not 1, without and with a mass at zero
    points = (
        dict(ratio=0.3, variance=1.5, shift=0.7),
        dict(ratio=3.0, variance=0.6, shift=1.3),
    )
    headline = Headline(
        "Pure noise spreads over a known interval",
        x=r"eigenvalue $x$",
        over=(0.0, 4.5, 901),
        show=("density",),
        curves=("ratio", (0.1, 0.3, 0.6)),
        size=600,
        draws=1,
        sliders=("variance", "entries"),
        marks=(Mark("x", lambda law: law.support()[0][1], "edge", each=True),),
    )

    ratio: float = parameter(0.25, above=0, scale="log", count="size / value")
    variance: float = parameter(1.0, "variance of an entry", symbol=r"\sigma^2", above=0, scale="log")

    # -- the limit ----------------------------------------------------------------------------------------------------

    def support(self) -> list[tuple[float, float]]:
        """Return the bulk as a list with a single pair (low, high), without the mass at zero."""
        low, high = numerics.edges(self.ratio, self.variance)
        return [(float(low), float(high))]

    def atom(self) -> float:
        """Return the mass at zero."""
        return float(numerics.atom(self.ratio))

    def density(self, x: ArrayLike) -> Array:
        """Return the density of the continuous part."""
        return numerics.density(x, self.ratio, self.variance)

    def cdf(self, x: ArrayLike) -> Array:
        """Return the distribution function, including the mass at zero."""
        return numerics.cdf(x, self.ratio, self.variance)

    def stieltjes(self, z: ArrayLike) -> NDArray[Any]:
        """Return the Stieltjes transform. It is real for real z outside the support. For z = x + 0j it is the limit from above."""
        return numerics.stieltjes(z, self.ratio, self.variance)

    def moment(self, order: int) -> float:
        """Return the moment E x^k of the spectrum."""
        return float(numerics.moment(order, self.ratio, self.variance))

    def reading_points(self) -> Array:
        """Return the points x of the spectrum that `positions` names, where 0 is the lower edge and 1 the upper edge."""
        return points(self.positions, *self.support()[0])

    def predicted(self, positions: Array, ratio: Array, variance: Array, shift: Array) -> Values:
        """Evaluate the limit over arrays of `ratio`, `variance` and `shift`."""
        return {**limit(ratio[..., 0], variance[..., 0], positions, shift[..., 0]), "accuracy": CLOSED_FORM}

    # -- the experiment -----------------------------------------------------------------------------------------------

    def sample_eigenvalues(self, draw: Draw) -> Array:
        """Return the eigenvalues of one drawn sample covariance matrix, in increasing order."""
        return sample_eigenvalues(draw_design(draw.rng, draw.count("ratio"), [self.variance], [draw.size], self.entries).X)

    def rank(self, draw: Draw) -> int:
        """Return the smaller of the numbers of dimensions and samples."""
        return min(draw.size, draw.count("ratio"))
