"""Load, correlation and six spectral averages of the features of a linear classifier, which determine its limit.

Setting.  Centred Gaussian features u in R^N with covariance Sigma. The label depends on a standard Gaussian score. The best linear
          prediction of the score from u has correlation rho with the score. With n samples the *load* is N/n.
Result.   A penalty gam |a|^2 enters through averages over the spectrum of Sigma (E) and over the direction of the label (W):

              E1 = E Sigma/(Sigma + gam),   E12 = E Sigma/(Sigma + gam)^2,   E2 = E Sigma^2/(Sigma + gam)^2,

          and W1, W12, W2 are the same averages, weighted by the label's direction and divided by their value at gam = 0.
          See docs/theory/margins.md, section 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab.errors import Refused
from limitlab.laws import Law, parameter
from limitlab.models.links import Labels, Link

Array = NDArray[np.float64]


class Averages(NamedTuple):
    """The six averages at one penalty (or an array of them), and two differences of them without cancellation."""

    E1: Array
    E12: Array
    E2: Array
    W1: Array
    W12: Array
    W2: Array
    lost: Array  # 1 - W1
    variance: Array  # W2 - W1^2


@dataclass(frozen=True)
class Isotropic:
    """Independent standard Gaussian features that contain the label's score.

    >>> Isotropic(load=0.5).averages(1.0).E12
    np.float64(0.25)
    """

    load: float  # p/n
    correlation: float = 1.0
    rank: float = 1.0

    def averages(self, penalty: ArrayLike) -> Averages:
        """Return the averages for features of covariance 1."""
        gam = np.asarray(penalty, dtype=float)
        share = 1 / (1 + gam)
        return Averages(share, share**2, share**2, share, share**2, share**2, gam * share, np.zeros_like(share))

    def penalty(self, first: float) -> float:
        """Return the penalty at which E1 is equal to `first`, a value below `rank`."""
        return 1 / first - 1


@dataclass(frozen=True)
class RandomFeatures:
    """Gaussian equivalent of random features, with covariance Sigma = mu1^2 W W' + mu*^2.

    W has `width` rows per column, and its rows have unit length.

    >>> population = RandomFeatures(width=2.0, samples=2.0, linear=0.5, nonlinear=0.0908450569081047**0.5)
    >>> round(population.correlation, 10)
    0.8784646848
    """

    width: float  # N/d
    samples: float  # n/d
    linear: float  # mu1
    nonlinear: float  # mu*

    @property
    def load(self) -> float:
        """Number of features per sample."""
        return self.width / self.samples

    @property
    def correlation(self) -> float:
        """Correlation rho between the best linear prediction from the features and the score of the label."""
        return float(np.sqrt(min(self.width * self.linear**2 * float(self._signal(0.0)), 1.0)))

    @property
    def rank(self) -> float:
        """Share of directions with positive variance.

        It is below 1 only if the activation is linear and there are more neurons than inputs.
        """
        return 1.0 if self.nonlinear > 0 else min(1.0, 1 / self.width)

    def _roots(self, penalty: ArrayLike) -> tuple[Array, Array]:
        """Return 1/E[1/(Sigma + gam)], and the root R of the Marchenko-Pastur equation (docs/theory/margins.md, eq. 3)."""
        c, mu1 = self.width, self.linear**2
        a = self.nonlinear**2 + np.asarray(penalty, dtype=float)
        h = mu1 * (1 - c) + a
        root = np.sqrt(h**2 + 4 * c * a * mu1)
        with np.errstate(invalid="ignore", divide="ignore"):
            inverse = np.where(h >= 0, (h + root) / 2, 2 * c * a * mu1 / (root - h))  # no cancellation on either side
        return inverse, root

    def _signal(self, penalty: ArrayLike) -> Array:
        """Return E s/(mu1^2 s + mu*^2 + gam) over eigenvalues s of W W'."""
        return np.asarray(1 / (self._roots(penalty)[0] + self.width * self.linear**2))

    def averages(self, penalty: ArrayLike) -> Averages:
        """Return the averages from the Stieltjes transform of W W' and its derivative (docs/theory/margins.md, eq. 3)."""
        gam = np.asarray(penalty, dtype=float)
        c, mu1, mus = self.width, self.linear**2, self.nonlinear**2
        inverse, root = self._roots(gam)
        grown, above = inverse + c * mu1, mus + gam
        # Averages of s/(.), s/(.)^2, s^2/(.)^2 over the spectrum of W W', (.) = mu1^2 s + mu*^2 + gam, without differences
        signal, signal2 = 1 / grown, 1 / (root * grown)
        signal22 = signal * (2 * above * (1 + c) + mu1 * (1 - c) ** 2) / ((root + above) * root)
        rest, rest2 = (1 / inverse, grown / (root * inverse**2)) if mus > 0 else (0.0, 0.0)  # averages of 1/(.) and 1/(.)^2
        E1, E12 = mu1 * signal + mus * rest, mu1 * signal2 + mus * rest2
        E2 = mu1**2 * signal22 + 2 * mu1 * mus * signal2 + mus**2 * rest2
        start = self._signal(0.0)
        W1, W2 = signal / start, (mu1 * signal22 + mus * signal2) / start
        return Averages(E1, E12, E2, W1, signal2 / start, W2, 1 - W1, W2 - W1**2)

    def penalty(self, first: float) -> float:
        """Return the penalty at which E1 is equal to `first`, a value below `rank`."""
        from limitlab.numerics.roots import increasing_root_log

        scale = self.width * self.linear**2 + self.nonlinear**2
        return float(increasing_root_log(lambda gam: first - self.averages(gam).E1, start=scale, unbounded=True))


@dataclass(frozen=True)
class Groups:
    """Gaussian features in groups of equal variance that contain the label's score.

    >>> Groups(0.5, (4.0, 1.0), (0.5, 0.5), (0.8, 0.2)).averages(1.0).W1.round(12)
    np.float64(0.74)
    """

    load: float  # p/n
    eigenvalues: tuple[float, ...]  # s_k
    shares: tuple[float, ...]  # of the directions
    energy: tuple[float, ...]  # of the variance of the label's score
    correlation: float = 1.0
    rank: float = 1.0

    def averages(self, penalty: ArrayLike) -> Averages:
        """Return the averages as sums over the groups.

        The averages of the label's direction are weighted by its variance in each group.
        """
        s, gam = np.asarray(self.eigenvalues), np.asarray(penalty, dtype=float)[..., None]
        filtered = s / (s + gam)
        powers = (filtered, filtered / (s + gam), filtered**2)
        energy = np.asarray(self.energy)
        W1 = (energy * filtered).sum(axis=-1)
        E1, E12, E2 = ((np.asarray(self.shares) * power).sum(axis=-1) for power in powers)
        _, W12, W2 = ((energy * power).sum(axis=-1) for power in powers)
        lost, variance = (energy * gam / (s + gam)).sum(axis=-1), (energy * (filtered - W1[..., None]) ** 2).sum(axis=-1)
        return Averages(E1, E12, E2, W1, W12, W2, lost, variance)

    def penalty(self, first: float) -> float:
        """Return the penalty at which E1 is equal to `first`, a value below `rank`."""
        from limitlab.numerics.roots import increasing_root_log

        return float(increasing_root_log(lambda gam: first - self.averages(gam).E1, unbounded=True))


Population = Isotropic | Groups | RandomFeatures


# -- Parameters of all laws of classification, which determine how labels depend on a Gaussian score -----------------


class LabelledLaw(Law):
    """Base class of laws with labels y = -1, +1 and P(y = +1 | x) = f(<beta, x>), |beta| = 1."""

    link: Link = parameter(
        "sign",
        "how the label depends on the score",
        note="sign, probit, logit, flip, or a function f(t) in [0, 1]",
        symbol="f",
    )
    link_strength: float = parameter(
        1.0,
        note="slope b of probit, logit and functions f(b t); probability of a wrong label for flip; not used by sign",
        least=0,
    )

    @model_validator(mode="after")
    def _flip_at_most_half(self) -> Self:
        if self.link == Link("flip") and self.link_strength > 0.5:
            raise Refused(
                f"link_strength = {self.link_strength:g} is not allowed with link = 'flip': must be at least 0, at most 0.5, "
                "because it is the probability of a wrong label"
            )
        return self

    @property
    def labels(self) -> Labels:
        """Link and strength of the labels."""
        return Labels(self.link, self.link_strength)
