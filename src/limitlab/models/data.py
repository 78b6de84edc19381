"""Random inputs for experiments (on a sphere, in a ball, Gaussian with any covariance, random signs).

The first argument of every function is a NumPy generator. The result has one sample per row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.checks import array, check_shape, number, refuse, whole

__all__ = ["gaussian", "sphere"]

Array = NDArray[np.float64]


def sphere(rng: np.random.Generator, rows: int, dimension: int, radius: float = 1.0) -> Array:
    """Return points uniform on the sphere of radius `radius`, shape (rows, dimension).

    >>> x = sphere(np.random.default_rng(0), 5, 3, radius=2.0)
    >>> np.linalg.norm(x, axis=1).round(12)
    array([2., 2., 2., 2., 2.])
    """
    _check(rows, dimension, radius)
    normal = rng.standard_normal((rows, dimension))
    return normal * (radius / np.linalg.norm(normal, axis=1, keepdims=True))


def ball(rng: np.random.Generator, rows: int, dimension: int, radius: float = 1.0) -> Array:
    """Return points uniform in the ball of radius `radius`, shape (rows, dimension).

    >>> bool(np.all(np.linalg.norm(ball(np.random.default_rng(0), 100, 4), axis=1) < 1))
    True
    """
    directions = sphere(rng, rows, dimension, radius)
    return directions * rng.random((rows, 1)) ** (1 / dimension)


def gaussian(
    rng: np.random.Generator,
    rows: int,
    dimension: int,
    *,
    eigenvalues: ArrayLike | None = None,
    root: ArrayLike | None = None,
) -> Array:
    """Return centred Gaussian rows, shape (rows, dimension).

    The covariance is the identity unless `eigenvalues` or `root` is set.

    Parameters
    ----------
    rng, rows, dimension
        Generator, number of samples, and dimension of each sample.
    eigenvalues
        Variances of the coordinates, for a diagonal covariance: a number, or one number per coordinate.
    root
        A matrix R with `dimension` rows, for the covariance R R^T. R may be any square root of the covariance, or a factor of
        low rank.

    Examples
    --------
    >>> gaussian(np.random.default_rng(0), 3, 2, eigenvalues=[1.0, 0.0])[:, 1] + 0.0
    array([0., 0., 0.])
    """
    _check(rows, dimension)
    refuse(
        eigenvalues is not None and root is not None,
        "root is not allowed together with eigenvalues: give only one of the two",
    )
    if root is not None:
        factor = array("root", root, shape=(dimension, "k"))
        return rng.standard_normal((rows, factor.shape[1])) @ factor.T
    variances = array("eigenvalues", 1.0 if eigenvalues is None else eigenvalues, least=0)
    if variances.ndim:
        check_shape("eigenvalues", variances.shape, (dimension,))
    return rng.standard_normal((rows, dimension)) * np.sqrt(variances)


def gaussian_lattice(rng: np.random.Generator, count: int) -> tuple[Array, Array]:
    """Return two standard Gaussian coordinates of the points of a lattice that is shifted at random.

    The points are spread evenly, so that averages over them have little noise.

    >>> G, Z = gaussian_lattice(np.random.default_rng(0), 4096)
    >>> bool(abs(np.mean(G**2 * Z**2) - 1) < 0.02)
    True
    """
    from scipy.special import ndtri

    golden = 1.32471795724474602596  # powers of its inverse give evenly spread points in the plane
    steps = np.arange(1, count + 1)[:, None] * np.array([1 / golden, 1 / golden**2])
    G, Z = ndtri(np.clip((rng.random(2) + steps) % 1.0, 1e-12, 1 - 1e-12)).T
    return G, Z


def signs(rng: np.random.Generator, rows: int, dimension: int) -> Array:
    """Return independent fair signs -1, +1 (a Rademacher matrix), shape (rows, dimension).

    >>> signs(np.random.default_rng(1), 1, 4)
    array([[-1.,  1.,  1.,  1.]])
    """
    _check(rows, dimension)
    return rng.integers(0, 2, size=(rows, dimension)).astype(np.float64) * 2 - 1


def _check(rows: int, dimension: int, radius: float = 1.0) -> None:
    whole("rows", rows, least=1)
    whole("dimension", dimension, least=1)
    number("radius", radius, above=0)
