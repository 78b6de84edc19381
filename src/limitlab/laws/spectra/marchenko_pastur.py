"""The Marchenko-Pastur law (claims J5, J6, J7).

Setting.  X is n x p with independent entries of mean 0 and variance sigma^2; S = X^T X / n is the sample covariance of n
          samples in dimension p, whose population covariance is sigma^2 times the identity.
Limit.    n, p -> infinity with p/n -> gamma (`ratio`: dimension over samples).
Result.   The eigenvalues of S fill [a, b] = sigma^2 (1 -+ sqrt(gamma))^2 with density
          sqrt((b - x)(x - a)) / (2 pi sigma^2 gamma x), plus an atom 1 - 1/gamma at zero when gamma > 1
          (docs/theory/spectra.md, eqs. 1 and 2). The transform m(z), the integral of dmu(x) / (x - z), is the root of
          1 + z m = sigma^2 m / (1 + gamma sigma^2 m) with Im m > 0 for Im z > 0 (eq. 5). The extreme eigenvalues tend to a
          and b (Bai and Yin), from which they stay a distance of order p^(-2/3).
Status.   Theorem (Marchenko and Pastur 1967; edges: Bai and Yin 1993).
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab.laws.base import Status
from limitlab.laws.parameters import parameter
from limitlab.laws.results import Values
from limitlab.laws.spectra.measurements import SpectralLaw, measure, points
from limitlab.models.designs import Entries, draw_design
from limitlab.models.wishart import sample_eigenvalues
from limitlab.numerics.spectra import marchenko_pastur as numerics

Array = NDArray[np.float64]


def limit(
    ratio: ArrayLike, variance: ArrayLike = 1.0, positions: ArrayLike = (0.5,), shift: ArrayLike = 1.0
) -> dict[str, Array]:
    """Observables of the limit as arrays over the broadcast parameters, with the positions as a last axis.

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

    status: ClassVar[Status] = "theorem"
    regime: ClassVar[str] = "dimension p and number of samples n grow together, p/n -> gamma"
    assumptions: ClassVar[tuple[str, ...]] = (
        "independent entries of mean 0 and common variance",
        "finite fourth moment (only for the edges; the bulk needs two moments)",
    )
    references: ClassVar[tuple[str, ...]] = (
        """@article{marchenko1967distribution,
  title={Distribution of eigenvalues for some sets of random matrices},
  author={Marchenko, Vladimir A. and Pastur, Leonid A.},
  journal={Mathematics of the USSR-Sbornik}, volume={1}, number={4}, pages={457--483}, year={1967}
}""",
        """@article{bai1993limit,
  title={Limit of the smallest eigenvalue of a large dimensional sample covariance matrix},
  author={Bai, Zhi-Dong and Yin, Yong-Qua},
  journal={Annals of Probability}, volume={21}, number={3}, pages={1275--1294}, year={1993}
}""",
    )
    claims: ClassVar[tuple[str, ...]] = ("J5", "J6", "J7")
    array_parameters: ClassVar[tuple[str, ...]] = ("ratio", "variance", "shift")

    variance: float = parameter(1.0, "variance of an entry", symbol=r"\sigma^2", above=0, scale="log")
    positions: tuple[float, ...] = parameter(
        (0.1, 0.3, 0.5, 0.7, 0.9), "where the cdf is compared, as fractions of the bulk", above=0, below=1
    )
    shift: float = parameter(
        1.0, "minus the argument at which the transform is compared", symbol=r"\lambda", above=0, scale="log"
    )
    entries: Entries = parameter("gaussian", "law of the entries in a simulation: gaussian or sign", symbol="X_{ij}")

    @model_validator(mode="after")
    def _some_position(self) -> Self:
        if not self.positions:
            raise ValueError("positions = () is not allowed: give at least one number between 0 and 1")
        return self

    # -- the limit ----------------------------------------------------------------------------------------------------

    def support(self) -> list[tuple[float, float]]:
        """The bulk as a list of one (low, high); the atom at zero is not in it."""
        low, high = numerics.edges(self.ratio, self.variance)
        return [(float(low), float(high))]

    def atom(self) -> float:
        """Mass at zero."""
        return float(numerics.atom(self.ratio))

    def density(self, x: ArrayLike) -> Array:
        """Density of the continuous part."""
        return numerics.density(x, self.ratio, self.variance)

    def cdf(self, x: ArrayLike) -> Array:
        """Distribution function, atom included."""
        return numerics.cdf(x, self.ratio, self.variance)

    def stieltjes(self, z: ArrayLike) -> NDArray[Any]:
        """Stieltjes transform; real outside the support for real z, else complex (x + 0j is the limit from above)."""
        return numerics.stieltjes(z, self.ratio, self.variance)

    def moment(self, order: int) -> float:
        """The moment E x^k of the spectrum."""
        return float(numerics.moment(order, self.ratio, self.variance))

    def coordinates(self) -> dict[str, Any]:
        """The positions, as fractions of the way between the edges."""
        return {"position": self.positions}

    def evaluate(self, **grid: Any) -> Values:
        """The limit over arrays of `ratio`, `variance` and `shift`; single numbers have a last axis of length one."""
        ratio, variance, shift = self.arrays(grid, "ratio", "variance", "shift")
        return limit(ratio, variance, self.positions, shift)

    # -- the experiment -----------------------------------------------------------------------------------------------

    def realised(self, size: int) -> Self:
        """The law at the ratio that whole numbers of dimensions and samples give."""
        return self.replace(ratio=size / self.samples(size))

    def sample_eigenvalues(self, size: int, seed: int) -> Array:
        """The eigenvalues of one drawn sample covariance matrix, in increasing order."""
        design = draw_design(self.rng(size, seed), self.samples(size), [self.variance], [size], self.entries)
        return sample_eigenvalues(design.X)

    def measured(self, eigenvalues: Array) -> dict[str, ArrayLike]:
        """The observables, read between the edges that whole numbers of dimensions and samples give."""
        size = len(eigenvalues)
        at = points(self.positions, *self.realised(size).support()[0])
        return measure(eigenvalues, min(size, self.samples(size)), at, self.shift)
