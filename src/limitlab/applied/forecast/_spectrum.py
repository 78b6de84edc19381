"""Eigenvalues of the Gram matrix of data, and the targets along its eigenvectors.

There are three methods. For a kernel with fewer features than points they come from the singular values of the table of features. For other
kernels they come from all eigenvectors of the Gram matrix. If this matrix is too large, they come from the features of a Nystrom
approximation (Williams and Seeger 2001), K ~ K_M (K_MM)^-1 K_M' for `rank` random points M.

The remainder of this approximation is positive semi-definite and its trace is known. The law represents the remainder by one eigenvalue of
high multiplicity. Its energy is the part of the targets that the other directions do not explain. The error of the approximation is
estimated as twice the difference to an approximation with half of the points M. This is a bound if the error falls faster than one over
the root of their number.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab._core.cost import available_memory
from limitlab.applied.forecast._kernels import Kernel
from limitlab.errors import Refused
from limitlab.numerics.equivalents import learned

Array = NDArray[Any]

ROUNDING = {np.dtype(np.float64): 1e-13, np.dtype(np.float32): 2e-6}
"""Eigenvalues below this share of the largest are rounding noise and count as zero."""

INDEFINITE = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-4}
"""A negative eigenvalue beyond this share of the largest means that the matrix is no Gram matrix."""

NEARLY_ONE = 1e-6
"""Lower bound for 1 - leverage. Below it a point determines its own prediction, and its left-out residual is meaningless."""


@dataclass(frozen=True)
class Spectrum:
    """The properties of a population of N points that the law depends on.

    Attributes
    ----------
    eigenvalues, multiplicities, energies
        Eigenvalues s_k of K/N, the number of eigenvectors of each, and the mean square of the targets along them (averaged over outputs).
        The last entry represents all directions without a vector. Its eigenvalue is 0, or that of the remainder of an approximation.
    population
        Number N of points.
    vectors, targets, projections
        Eigenvectors (N x r), targets (N x q), and their inner products (r x q). None for a spectrum that was given as numbers.
    right
        Right singular vectors of a table of features, which transform projections to coefficients.
    coarse
        The same population at half the rank of an approximation; None for an exact decomposition.
    """

    eigenvalues: Array
    multiplicities: Array
    energies: Array
    population: int
    vectors: Array | None = None
    targets: Array | None = None
    projections: Array | None = None
    right: Array | None = None
    coarse: Spectrum | None = None

    @property
    def rank(self) -> int:
        """Number of directions with a positive eigenvalue."""
        return round(float(self.multiplicities[self.eigenvalues > 0].sum()))

    @property
    def mean_diagonal(self) -> float:
        """Trace of K/N, which is the mean kernel of a point with itself and the unit of a ridge."""
        return float((self.multiplicities * self.eigenvalues).sum())

    @property
    def mean_square(self) -> float:
        """Mean square of the targets, which is the error of the prediction 0."""
        return float(self.energies.sum())

    def coefficients(self, ridge: float) -> Array:
        """Return the coefficients of the fit to all points, in feature space if there are features."""
        assert self.projections is not None
        assert self.vectors is not None
        s, total = self.eigenvalues[:-1], self.population
        scaled = self.projections / (s + ridge)[:, None]
        if self.right is not None:
            return np.asarray(self.right @ (scaled * np.sqrt(s / total)[:, None]))
        return np.asarray(self.vectors @ scaled / total)

    def residuals(self, kappa: Array) -> Array:
        """Return the residuals y - K (K + N kappa)^-1 y of every point for every kappa, with shape (N, kappas, outputs)."""
        if self.vectors is None or self.targets is None or self.projections is None:
            raise Refused("this forecast was made from a spectrum: fit it on data for residuals and bands")
        share = learned(kappa, self.eigenvalues)
        shares, rest = share[:, :-1].T, share[:, -1]  # (r, kappas), (kappas,)
        missed = self.targets - self.vectors @ self.projections
        scaled = (shares[:, :, None] * self.projections[:, None, :]).reshape(len(shares), -1)
        fitted = (self.vectors @ scaled).reshape(self.population, len(rest), -1)
        return np.asarray(self.targets[:, None, :] - fitted - rest[:, None] * missed[:, None, :], dtype=float)

    def leverages(self, kappa: Array) -> Array:
        """Return the diagonal of K (K + N kappa)^-1 for every kappa, with shape (N, kappas)."""
        if self.vectors is None:
            raise Refused("this forecast was made from a spectrum: fit it on data for leverages")
        share = learned(kappa, self.eigenvalues)
        squares = self.vectors**2
        inside = 1 - squares.sum(axis=1, dtype=float)
        return np.asarray(squares @ share[:, :-1].T + np.maximum(inside, 0)[:, None] * share[:, -1], dtype=float)

    def subset(self, rows: NDArray[np.int64]) -> Spectrum:
        """Return the spectrum of some of the points, from the matrix of the known directions (exact if all directions are known)."""
        if self.vectors is None or self.targets is None:
            raise Refused("this forecast was made from a spectrum: fit it on data for the spectrum of a subset")
        table = self.vectors[rows] * np.sqrt(self.eigenvalues[:-1] * self.population).astype(self.vectors.dtype)
        if table.shape[1] < len(rows):
            return from_features(table, self.targets[rows])
        return from_gram(table @ table.T, self.targets[rows])


def left_out(spectrum: Spectrum, kappa: float) -> tuple[Array, Array]:
    """Return leave-one-out residuals e (N x outputs) and leverages h of the fit to all points with ridge kappa."""
    at = np.array([kappa])
    leverages = spectrum.leverages(at)[:, 0]
    return spectrum.residuals(at)[:, 0, :] / np.maximum(1 - leverages, NEARLY_ONE)[:, None], leverages


def from_numbers(eigenvalues: Any, energies: Any, population: int) -> Spectrum:
    """Return a spectrum from eigenvalues of K/N and mode energies.

    >>> from_numbers([0.5, 1.0], [0.1, 0.2], 5).eigenvalues.tolist()
    [1.0, 0.5, 0.0]
    """
    s, c = np.asarray(eigenvalues, dtype=float), np.asarray(energies, dtype=float)
    if s.ndim != 1 or s.shape != c.shape or not s.size:
        raise Refused(f"energies is not allowed: must have one entry per eigenvalue, got shapes {c.shape} and {s.shape}")
    if not (np.isfinite(s) & (s >= 0)).all() or not (s > 0).any():
        raise Refused("eigenvalues is not allowed: must be finite and at least 0, and at least one must be above 0")
    if not (np.isfinite(c) & (c >= 0)).all():
        raise Refused("energies is not allowed: must be finite and at least 0")
    if not np.isfinite(population) or int(population) != population or population < s.size:
        raise Refused(
            f"population = {population!r} is not allowed: must be a whole number of at least {s.size}, the number of eigenvalues"
        )
    positive = s > 0
    order = np.argsort(-s[positive], kind="stable")
    return _assembled(s[positive][order], c[positive][order], float(c[~positive].sum()), int(population))


def from_gram(gram: Array, targets: Array, overwrite: bool = True) -> Spectrum:
    """Return the spectrum of a Gram matrix from all its eigenvectors. The matrix is overwritten unless `overwrite` is False.

    >>> spectrum = from_gram(np.diag([3.0, 6.0, 0.0]), np.array([[1.0], [2.0], [3.0]]))
    >>> spectrum.eigenvalues.tolist(), spectrum.energies.round(12).tolist()
    ([2.0, 1.0, 0.0], [1.333333333333, 0.333333333333, 3.0])
    """
    from scipy.linalg import eigh

    n = len(gram)
    values, vectors = eigh(gram, driver="evd", overwrite_a=overwrite, check_finite=False)
    top = float(values[-1])
    if top <= 0:
        raise Refused(
            "the Gram matrix has no positive eigenvalue, so no fit is possible: use another kernel, or inputs that are not all 0"
        )
    if values[0] < -INDEFINITE[values.dtype] * top:
        raise Refused(
            f"the Gram matrix is not positive semi-definite: its smallest eigenvalue is {values[0] / top:.2g} of the largest; "
            "use a positive definite kernel"
        )
    kept = values > ROUNDING[values.dtype] * top
    return _projected(values[kept][::-1].astype(float) / n, vectors[:, kept][:, ::-1], targets)


def from_features(table: Array, targets: Array) -> Spectrum:
    """Return the spectrum of the kernel of inner products of features, from their singular values.

    >>> spectrum = from_features(np.array([[2.0], [0.0]]), np.array([[1.0], [1.0]]))
    >>> spectrum.eigenvalues.tolist(), spectrum.energies.tolist()
    ([2.0, 0.0], [0.5, 0.5])
    """
    from scipy.linalg import svd

    left, singular, right = svd(table, full_matrices=False, check_finite=False)
    if not singular.max(initial=0.0) > 0:
        raise Refused(
            "the Gram matrix has no positive eigenvalue, so no fit is possible: use another kernel, or inputs that are not all 0"
        )
    kept = singular > np.finfo(singular.dtype).eps * max(table.shape) * singular.max()
    values = singular[kept].astype(float) ** 2 / len(table)
    return replace(_projected(values, left[:, kept], targets), right=right[kept].T)


def nystrom_features(kernel: Kernel, X: Array, landmarks: Array, dtype: Any) -> tuple[Array, Array]:
    """Return the features of a Nystrom approximation, and the matrix that maps kernels with the landmarks to them."""
    from scipy.linalg import eigh

    values, vectors = eigh(kernel(landmarks, landmarks), driver="evd", check_finite=False)
    kept = values > ROUNDING[np.dtype(np.float64)] * 1e3 * values[-1]
    root = (vectors[:, kept] / np.sqrt(values[kept])).astype(dtype)
    return kernel(X, landmarks, dtype) @ root, root


def from_nystrom(table: Array, targets: Array, diagonal: Array, coarse: Spectrum | None = None) -> Spectrum:
    """Return the spectrum of an approximation by features.

    The part of the diagonal of the Gram matrix that the features miss becomes the last eigenvalue.
    """
    spectrum = from_features(table, targets)
    missing = max(float(diagonal.sum() - (table.astype(float) ** 2).sum()), 0.0)
    values, count = spectrum.eigenvalues.copy(), float(spectrum.multiplicities[-1])
    if count > 0 and missing > ROUNDING[np.dtype(np.float64)] * float(diagonal.sum()):
        values[-1] = missing / spectrum.population / count
    return replace(spectrum, eigenvalues=values, coarse=coarse)


def decompose(
    kernel: Kernel,
    X: Array,
    targets: Array,
    *,
    method: str,
    rank: int,
    dtype: Any,
    max_memory: float | None,
    exact_limit: int,
    rng: np.random.Generator,
) -> tuple[Spectrum, Array | None, Array | None]:
    """Return the spectrum of data, and for a Nystrom approximation its landmarks and their matrix."""
    n, itemsize = len(X), np.dtype(dtype).itemsize
    if kernel.features is not None:
        columns = kernel.table(X[:1]).shape[1]
        if columns < n:
            require_memory(
                factor_bytes(n, columns, itemsize), max_memory, f"a table of {n} points and {columns} features",
                "use fewer features, dtype='float32', or fewer rows",
            )  # fmt: skip
            return from_features(kernel.table(X, dtype), targets), None, None
    if method == "exact" or (method == "auto" and n <= exact_limit):
        require_memory(
            exact_bytes(n, itemsize), max_memory, f"an exact decomposition of {n} points",
            "use method='nystrom'" + (", dtype='float32'" if itemsize == 8 else "") + ", or fewer rows",
        )  # fmt: skip
        return from_gram(symmetric_gram(kernel, X, dtype), targets), None, None
    count = min(rank, n)
    require_memory(
        factor_bytes(n, count, itemsize), max_memory, f"a Nystrom approximation of rank {count} for {n} points",
        f"use a smaller rank than {count}" + (", dtype='float32'" if itemsize == 8 else "") + ", or fewer rows",
    )  # fmt: skip
    landmarks = rng.permutation(n)[:count]
    diagonal = kernel.diagonal(X)
    half, _ = nystrom_features(kernel, X, X[landmarks[: max(1, count // 2)]], dtype)
    coarse = replace(from_nystrom(half, targets, diagonal), vectors=None, projections=None, right=None)
    table, root = nystrom_features(kernel, X, X[landmarks], dtype)
    return from_nystrom(table, targets, diagonal, coarse), X[landmarks], root


def symmetric_gram(kernel: Kernel, X: Array, dtype: Any) -> Array:
    """Return the Gram matrix of data. Raise `ValueError` if it is not symmetric and finite."""
    return checked_gram(kernel(X, X, dtype), "kernel")


def checked_gram(gram: Array, name: str) -> Array:
    """Return the matrix if it is square, symmetric and finite. Otherwise raise `ValueError`."""
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1]:
        raise Refused(f"{name} is not allowed: a Gram matrix must be square, got shape {gram.shape}")
    if not np.isfinite(gram).all():
        raise Refused(f"{name} is not allowed: the Gram matrix contains NaN or infinity; remove or fill missing values")
    size = float(np.abs(gram).max())
    gap = _asymmetry(gram)
    if gap > (1e-8 if gram.dtype == np.float64 else 1e-3) * size:
        raise Refused(
            f"{name} is not allowed: the Gram matrix is not symmetric (entries differ from their mirror images by up to {gap:.2g})"
        )
    return gram


def _asymmetry(gram: Array, block: int = 1024) -> float:
    """Return the largest difference to the transpose, without a second matrix in memory."""
    largest = 0.0
    for i in range(0, len(gram), block):
        for j in range(0, i + 1, block):
            gap = gram[i : i + block, j : j + block] - gram[j : j + block, i : i + block].T
            largest = max(largest, float(np.abs(gap).max()))
    return largest


def _projected(values: Array, vectors: Array, targets: Array) -> Spectrum:
    """Return a spectrum with the energies along eigenvectors. The remaining energy is that of the residuals, for accuracy."""
    projections = vectors.T @ targets.astype(vectors.dtype)
    energies = (projections.astype(float) ** 2).mean(axis=1) / len(targets)
    rest = float(np.mean((targets - vectors @ projections).astype(float) ** 2)) if len(values) < len(targets) else 0.0
    spectrum = _assembled(values, energies, rest, len(targets))
    return replace(spectrum, vectors=vectors, targets=targets, projections=projections)


def _assembled(values: Array, energies: Array, rest: float, population: int) -> Spectrum:
    multiplicities = np.append(np.ones(len(values)), float(population - len(values)))
    return Spectrum(np.append(values, 0.0), multiplicities, np.append(energies, rest), population)


def exact_bytes(points: int, itemsize: int = 8) -> float:
    """Return the peak memory of an exact decomposition of a Gram matrix, in bytes.

    It consists of the matrix, which the eigenvectors overwrite, and the work space of LAPACK.

    >>> round(exact_bytes(20_000) / 1e9, 1)
    9.6
    """
    return 3.0 * points**2 * itemsize


def factor_bytes(points: int, columns: int, itemsize: int = 8) -> float:
    """Return the peak memory of a decomposition of a table of features, in bytes.

    It consists of the table, its singular vectors and work space.

    >>> round(factor_bytes(100_000, 1000) / 1e9, 1)
    2.4
    """
    return 3.0 * points * columns * itemsize


def require_memory(needed: float, limit: float | None, what: str, remedy: str) -> None:
    """Raise `ValueError` if a computation needs more memory than allowed.

    >>> require_memory(1e10, 8e9, "decomposing 20000 points", "use dtype='float32'")
    Traceback (most recent call last):
    ...
    limitlab.errors.Refused: decomposing 20000 points needs about 10.0 GB of memory and 8.0 GB may be used: use dtype='float32'
    """
    bound = available_memory() if limit is None else limit
    if needed > bound:
        raise Refused(f"{what} needs about {needed / 1e9:.1f} GB of memory and {bound / 1e9:.1f} GB may be used: {remedy}")
