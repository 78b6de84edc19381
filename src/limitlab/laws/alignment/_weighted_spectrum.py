"""Weighted sample covariances: the bulk of (1/M) sum_l w_l z_l z_l^T with z_l Gaussian of variance 1/lambda in d dimensions.

With gam = d / M and weights w that do not depend on z, the Stieltjes transform m < 0 to the right of the bulk solves z = z(m),

    z(m) = -1/m + (1/lambda) E[ w / (1 + w gam m / lambda) ],        m in (-lambda / (gam w_max), 0),                (weighted bulk)

which decreases and then increases as m falls from 0: the right edge is its minimum. A direction in which the weights do depend on the
sample (or in which it has a mean) adds a block A(m) = E[ s s^T w / (1 + w gam m / lambda) ], s the sample's components there; an eigenvalue
leaves the bulk where det(A(m) - z(m)) = 0 with m between the edge's and 0.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

OUTSIDE = 1 + 1e-9  # times the edge: what is above is no part of the bulk


class WeightedBulk(NamedTuple):
    """Weights w with their probabilities, the ratio gam = d / M (0: infinitely many samples) and the noise variance 1 / lambda."""

    weights: Array
    shares: Array
    ratio: float
    variance: float

    def filtered(self, m: float) -> Array:
        """w / (1 + w gam m / lambda)."""
        return np.asarray(self.weights / (1 + self.weights * self.ratio * self.variance * m))

    def location(self, m: float) -> float:
        """z(m).

        >>> WeightedBulk(np.ones(1), np.ones(1), 0.25, 1.0).location(-2 / 3)  # Marchenko and Pastur's: z = -1/m + 1/(1 + m/4)
        2.7
        """
        return -1 / m + self.variance * float(self.shares @ self.filtered(m))

    def slope(self, m: float) -> float:
        """dz/dm."""
        return 1 / m**2 - self.ratio * self.variance**2 * float(self.shares @ self.filtered(m) ** 2)

    def edge_transform(self) -> float:
        """m at the right edge: where gam = E[(w u)^2 / (1 - w u)^2] with u = -gam m / lambda; -inf when gam = 0."""
        from scipy.optimize import brentq

        top = float(self.weights[self.shares > 0].max())
        if self.ratio == 0:
            return -math.inf

        def balance(x: float) -> float:  # x = u w_max in (0, 1); the excess of gam over the average, which falls with x
            part = self.weights * (x / top)
            return self.ratio - float(self.shares @ (part / np.maximum(1 - part, 1e-300)) ** 2)

        last = 1 - 1e-12
        x = last if balance(last) > 0 else float(brentq(balance, 0.0, last, xtol=1e-15, rtol=1e-14))
        return -x / (top * self.ratio * self.variance)

    def edge(self) -> float:
        """The right end of the bulk.

        >>> WeightedBulk(np.ones(1), np.ones(1), 0.25, 1.0).edge()  # (1 + sqrt(1/4))^2
        2.25
        """
        m = self.edge_transform()
        return self.variance * float(self.shares @ self.weights) if math.isinf(m) else self.location(m)


class Outlier(NamedTuple):
    """An eigenvalue outside the bulk: where it is, its direction among the special ones, the share of its square that lies there."""

    value: float
    direction: Array
    mass: float


def outliers(bulk: WeightedBulk, block: Array) -> list[Outlier]:
    """Eigenvalues to the right of the bulk, from the special directions; largest first.

    Parameters
    ----------
    bulk
        Weights (J of them), their shares, ratio and variance.
    block
        E[s s^T; w = w_j], the unfiltered parts of A(m): shape (p, p, J), shares included.

    Examples
    --------
    >>> bulk = WeightedBulk(np.ones(1), np.ones(1), 0.25, 1.0)
    >>> (spike,) = outliers(bulk, np.array([[[3.0]]]))          # a covariance with one eigenvalue 3
    >>> round(spike.value, 9), round(spike.mass, 9)             # 3 (1 + gam/2), (1 - gam/4) / (1 + gam/2)
    (3.375, 0.833333333)
    """
    from scipy.optimize import brentq

    def matrix(m: float) -> Array:
        return np.asarray(block @ bulk.filtered(m))

    m_edge, edge = bulk.edge_transform(), bulk.edge()
    if math.isinf(m_edge):
        values, vectors = np.linalg.eigh(matrix(0.0))
        return [Outlier(float(v), u, 1.0) for v, u in zip(values[::-1], vectors.T[::-1], strict=True) if v > edge * OUTSIDE]
    ends = np.linalg.eigvalsh(matrix(m_edge))
    found = []
    for i in np.flatnonzero(ends > edge * OUTSIDE)[::-1]:

        def excess(m: float, i: int = int(i)) -> float:
            return float(np.linalg.eigvalsh(matrix(m))[i]) - bulk.location(m)

        m = float(brentq(excess, m_edge, -1 / float(ends[-1]), xtol=1e-14 * abs(m_edge), rtol=1e-13))
        direction = np.linalg.eigh(matrix(m))[1][:, i]
        derivative = -bulk.ratio * bulk.variance * (block @ bulk.filtered(m) ** 2) / bulk.slope(m)  # dA/dz
        found.append(Outlier(bulk.location(m), direction, 1 / (1 - float(direction @ derivative @ direction))))
    return found


def number_of_outliers(bulk: WeightedBulk, block: Array) -> int:
    """How many `outliers` there are, from the matrix at the edge alone.

    >>> number_of_outliers(WeightedBulk(np.ones(1), np.ones(1), 0.25, 1.0), np.array([[[3.0]]]))
    1
    """
    m_edge = bulk.edge_transform()
    at_edge = np.linalg.eigvalsh(block @ bulk.filtered(0.0 if math.isinf(m_edge) else m_edge))
    return int(np.sum(at_edge > bulk.edge() * OUTSIDE))
