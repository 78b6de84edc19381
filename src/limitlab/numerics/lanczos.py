"""Largest eigenvalues and spectral density of large symmetric matrices, computed from products with vectors only.

`top_eigenpairs` uses ARPACK's restarted Lanczos method (through SciPy) with a fixed start, so that its results are reproducible.
`spectral_measure` is stochastic Lanczos quadrature. For a random unit vector v, a few steps of the Lanczos method give the nodes and
weights of a Gauss rule for v^T f(A) v. The mean of v^T f(A) v over v is tr f(A) / n.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.checks import whole

__all__ = ["Eigenpairs", "SpectralMeasure", "spectral_measure", "top_eigenpairs"]

Array = NDArray[np.float64]
Product = Callable[[Array], Array]

DENSE = 64
"""Largest size for which the matrix is formed and all its eigenvalues are computed."""


class Eigenpairs(NamedTuple):
    """Eigenvalues in decreasing order, and unit eigenvectors as columns."""

    values: Array
    vectors: Array


def top_eigenpairs(product: Product, size: int, count: int, tolerance: float = 1e-10) -> Eigenpairs:
    """Return the (algebraically) largest eigenvalues of a symmetric matrix and their eigenvectors.

    Parameters
    ----------
    product
        Function that maps a vector v to A v.
    size
        Length of v.
    count
        Number of eigenvalues, at most `size`.
    tolerance
        Relative accuracy of the eigenvalues.

    Examples
    --------
    >>> values, vectors = top_eigenpairs(lambda v: np.arange(100.0) * v, 100, 2)
    >>> values.round(8).tolist(), bool(abs(vectors[99, 0]) > 1 - 1e-8)
    ([99.0, 98.0], True)
    """
    from scipy.sparse.linalg import LinearOperator, eigsh

    count = whole("count", count, least=1, most=size)
    if size <= DENSE or count > size // 3:
        matrix = np.column_stack([product(column) for column in np.eye(size)])
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        return Eigenpairs(values[::-1][:count], vectors[:, ::-1][:, :count])
    operator = LinearOperator((size, size), matvec=lambda v: product(np.ravel(v)), dtype=np.float64)
    start = np.random.default_rng(size).standard_normal(size)
    basis_size = min(size - 1, max(2 * count + 10, 20))
    values, vectors = eigsh(operator, k=count, which="LA", tol=tolerance, v0=start, ncv=basis_size)
    order = np.argsort(values)[::-1]
    return Eigenpairs(values[order], vectors[:, order])


class SpectralMeasure(NamedTuple):
    """An approximate spectrum, consisting of nodes and their shares, which add up to 1."""

    nodes: Array
    shares: Array

    def density(self, points: ArrayLike, width: float) -> Array:
        """Return the density of the measure, smoothed by Gaussians of standard deviation `width`.

        >>> measure = SpectralMeasure(np.array([0.0]), np.array([1.0]))
        >>> float(measure.density(0.0, 1.0).round(6))
        0.398942
        """
        distance = (np.asarray(points, dtype=float)[..., None] - self.nodes) / width
        return np.asarray(np.exp(-(distance**2) / 2) @ self.shares / (width * np.sqrt(2 * np.pi)))

    def moment(self, order: int) -> float:
        """Return tr A^order / size."""
        return float(self.shares @ self.nodes**order)


def spectral_measure(
    product: Product, size: int, steps: int = 40, probes: int = 8, rng: np.random.Generator | None = None
) -> SpectralMeasure:
    """Return the spectrum of a symmetric matrix by stochastic Lanczos quadrature.

    Parameters
    ----------
    product
        Function that maps a vector v to A v.
    size
        Length of v.
    steps
        Number of Lanczos steps per probe, which is the number of nodes of each Gauss rule.
    probes
        Number of random vectors over which the rules are averaged.
    rng
        Generator of the random vectors (default: one with a fixed seed).

    Examples
    --------
    >>> measure = spectral_measure(lambda v: np.linspace(0, 2, 500) * v, 500)
    >>> bool(abs(measure.moment(1) - 1) < 0.05)
    True
    """
    from scipy.linalg import eigh_tridiagonal

    random = np.random.default_rng(0) if rng is None else rng
    nodes, shares = [], []
    for _ in range(probes):
        diagonal, beside = _tridiagonal(product, random.choice([-1.0, 1.0], size=size), min(steps, size))
        values, vectors = eigh_tridiagonal(diagonal, beside)
        nodes.append(values)
        shares.append(vectors[0] ** 2 / probes)
    return SpectralMeasure(np.concatenate(nodes), np.concatenate(shares))


def _tridiagonal(product: Product, start: Array, steps: int) -> tuple[Array, Array]:
    """Return the tridiagonal matrix of A in the Krylov space of `start`, by Lanczos with full reorthogonalisation."""
    basis = np.empty((steps, start.size))
    basis[0] = start / np.linalg.norm(start)
    diagonal, beside = np.empty(steps), np.empty(steps - 1)
    for j in range(steps):
        image = np.asarray(product(basis[j]), dtype=float)
        diagonal[j] = basis[j] @ image
        if j == steps - 1:
            break
        for _ in range(2):  # two passes make the basis orthogonal to rounding
            image = image - basis[: j + 1].T @ (basis[: j + 1] @ image)
        beside[j] = np.linalg.norm(image)
        if beside[j] < 1e-12 * max(float(np.abs(diagonal[: j + 1]).max()), 1e-300):  # the Krylov space is exhausted
            return diagonal[: j + 1], beside[:j]
        basis[j + 1] = image / beside[j]
    return diagonal, beside
