"""Exact mean and mean square of the bias of k nearest neighbours for any target in up to three dimensions.

Given the volume t = |x|^d of the ball up to the (k+1)-th nearest input, the k nearest inputs are independent and uniform in this ball. With
the target f, its difference D(x) = f(x) - f(0), and the means M1(t), M2(t) of D and D^2 over this ball,

    E[bias] = E M1(t),      E[bias^2] = E [ M2(t)/k + (1 - 1/k) M1(t)^2 ],      t ~ Beta(k + 1, n - k),

and t = 1 for k = n (docs/theory/local_averages.md).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from limitlab.models.index_functions import IndexFunction

Array = NDArray[np.float64]

VOLUMES, RADII, DIRECTIONS = 60, 40, {1: 2, 2: 64, 3: 16}
"""Nodes of the quadrature over t, over the radius, and over an angle of the direction."""
TAIL = 1e-15
"""Probability of t beyond each end of its quadrature."""
GRADING = 3
"""Power that grades the nodes of the radius towards the origin, where a target may have a cusp."""


def bias_moments(target: IndexFunction, samples: float, neighbours: float, share: float = 1.0) -> tuple[float, float]:
    """Return E[bias] and E[bias^2] at the origin. `share` multiplies the numbers of nodes.

    >>> from limitlab.laws.regression.nearest_neighbours import risk
    >>> cusp = IndexFunction(lambda x, y: 1.3 * (x**2 + y**2) ** 0.4)
    >>> exact = risk(200, 7, dimension=2, smoothness=0.8, amplitude=1.3)
    >>> bool(abs(bias_moments(cusp, 200, 7)[1] - exact["squared_bias"]) < 1e-9)
    True
    """
    from scipy.special import betaincinv, betaln

    d = target.index
    volumes, chances = np.ones(1), np.ones(1)
    if neighbours < samples:
        a, b = neighbours + 1.0, samples - neighbours
        low, high = float(betaincinv(a, b, TAIL)), 1 - float(betaincinv(b, a, TAIL))
        z, weights = np.polynomial.legendre.leggauss(round(VOLUMES * share))
        radii = low ** (1 / d) + (high ** (1 / d) - low ** (1 / d)) * (1 + z) / 2
        volumes = radii**d
        chances = weights * np.exp((a - 1 / d) * np.log(volumes) + (b - 1) * np.log1p(-volumes) - betaln(a, b))
        chances /= chances.sum()
    z, weights = np.polynomial.legendre.leggauss(round(RADII * share))
    z = (1 + z) / 2
    shells = weights * z ** (GRADING * d - 1)  # the density d s^(d - 1) ds with s = z^GRADING
    directions, shares = _directions(d, share)
    radii = volumes[:, None] ** (1 / d) * z**GRADING
    points = directions[:, :, None, None] * radii
    gaps = (target(points.reshape(d, -1)) - float(target(np.zeros((d, 1)))[0])).reshape(points.shape[1:])
    means = [np.einsum("i,ijk,k->j", shares, gaps**power, shells / shells.sum()) for power in (1, 2)]
    return float(chances @ means[0]), float(chances @ (means[1] / neighbours + (1 - 1 / neighbours) * means[0] ** 2))


def _directions(dimension: int, share: float) -> tuple[Array, Array]:
    """Return unit vectors (columns) and weights of a quadrature over the sphere of R^1, R^2 or R^3."""
    if dimension == 1:
        return np.array([[1.0, -1.0]]), np.array([0.5, 0.5])
    count = round(DIRECTIONS[dimension] * share)
    if dimension == 2:
        angle = 2 * math.pi * np.arange(count) / count
        return np.stack([np.cos(angle), np.sin(angle)]), np.full(count, 1 / count)
    height, weights = np.polynomial.legendre.leggauss(count)
    angle = math.pi * np.arange(2 * count) / count
    ring = np.sqrt(1 - height**2)[:, None]
    vectors = [ring * np.cos(angle), ring * np.sin(angle), height[:, None] + 0 * angle]
    return np.stack([vector.ravel() for vector in vectors]), np.repeat(weights / (4 * count), 2 * count)
