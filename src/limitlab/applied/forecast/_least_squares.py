"""Ridge regression for many penalties, with a single factorisation of the inputs.

The penalty is lambda in (1/n)|y - Xb|^2 + lambda |b|^2, so alpha = n lambda in `Ridge(alpha)` of scikit-learn. At lambda = 0 the solution
is the interpolant or least-squares solution of smallest norm.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import Refused

Array = NDArray[np.float64]

EPSILON = float(np.finfo(np.float64).eps)
REFINED_ABOVE = 1e-13  # relative error above which a solution from the Gram matrix is refined once
SVD_ABOVE = 1e-6  # relative error above which a singular value decomposition replaces the Gram matrix


class _Tridiagonal:
    """A symmetric matrix as Q T Q' with tridiagonal T, which suffices to solve linear systems for every shift."""

    def __init__(self, matrix: Array):
        from scipy.linalg import lapack

        size = len(matrix)
        work = int(lapack.dsytrd_lwork(size, lower=1)[0])
        reduced, self.diagonal, self.off, self._scales, _ = lapack.dsytrd(matrix.T, lower=1, lwork=work, overwrite_a=1)
        self._reflectors = np.asfortranarray(reduced[1:, :-1])
        self.values = lapack.dsterf(self.diagonal, self.off)[0] if size > 1 else self.diagonal

    def solve(self, right: Array, shifts: Array) -> Array:
        """Return (matrix + shift)^-1 right for every shift.

        `right` has shape (size, shifts or 1, columns), and the result has shape (size, shifts, columns).
        """
        from scipy.linalg import lapack

        size, columns = right.shape[0], right.shape[2]
        if size == 1:
            return np.asarray(right / (self.diagonal + shifts)[:, None])
        turned = np.broadcast_to(self._rotate(right, "T"), (size, shifts.size, columns))
        solution = np.empty((size, shifts.size, columns))
        for i, shift in enumerate(shifts):
            solution[:, i] = lapack.dgtsv(self.off, self.diagonal + shift, self.off, turned[:, i])[3]
        return self._rotate(solution, "N")

    def _rotate(self, block: Array, transpose: str) -> Array:
        """Return Q block or Q' block. Q does not change the first coordinate."""
        from scipy.linalg import lapack

        rotated = block.reshape(len(block), -1).copy(order="F")
        work = 64 * rotated.shape[1]
        rotated[1:] = lapack.dormqr("L", transpose, self._reflectors, self._scales, rotated[1:], lwork=work)[0]
        return rotated.reshape(block.shape)


class RidgePath:
    """Least squares with a ridge penalty, for all penalties from a single factorisation.

    Orthogonal transformations bring the smaller Gram matrix to tridiagonal form, so that every penalty costs no more than a matrix product.
    If the matrix is ill conditioned for a penalty, a refinement step with the residuals of the data restores the digits that were lost in
    the Gram matrix. If the matrix is singular in double precision, a singular value decomposition is computed once.

    Parameters
    ----------
    X
        Inputs, shape (n, p).
    y
        Labels, shape (n,) or (n, targets).

    Examples
    --------
    >>> X, y = np.array([[1.0, 0.0, 1.0], [0.0, 2.0, 0.0]]), np.array([1.0, 2.0])
    >>> path = RidgePath(X, y)
    >>> path.coefficients([0.0, 1.0]).round(12).tolist()  # the interpolant of smallest norm, then a penalty of 1
    [[0.5, 1.0, 0.5], [0.25, 0.666666666667, 0.25]]
    >>> path.train_error([0.0, 1.0]).round(12).tolist()
    [0.0, 0.347222222222]
    """

    def __init__(self, X: ArrayLike, y: ArrayLike):
        self.X, labels = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
        if self.X.ndim != 2 or 0 in self.X.shape:
            raise Refused(f"X of shape {self.X.shape} is not allowed: must be a table of n rows and p columns")
        if labels.ndim not in (1, 2) or len(labels) != len(self.X):
            raise Refused(f"y of shape {labels.shape} is not allowed: must have {len(self.X)} rows, as X")
        if not np.isfinite(self.X).all() or not np.isfinite(labels).all():
            raise Refused("X and y must be finite numbers: remove or fill missing values")
        self.y = labels
        self._columns = labels.reshape(len(labels), -1)

    def coefficients(self, ridge: ArrayLike) -> Array:
        """Return the coefficients for every penalty, with shape (*ridge.shape, p) and a last axis for targets if y has one."""
        lam = np.asarray(ridge, dtype=float)
        if np.isnan(lam).any():
            raise Refused("ridge = nan is not allowed")
        flat = lam.ravel()
        error = self._gram_error(flat)
        values = np.empty((flat.size, self.X.shape[1], self._columns.shape[1]))
        plain, singular = error <= REFINED_ABOVE, error > SVD_ABOVE
        if plain.any():
            values[plain] = self._from_gram(flat[plain])
        if not (plain | singular).all():
            values[~(plain | singular)] = self._from_gram(flat[~(plain | singular)], refine=True)
        if singular.any():
            values[singular] = self._from_svd(flat[singular])
        return values.reshape(*lam.shape, self.X.shape[1], *self.y.shape[1:])

    def predict(self, X: ArrayLike, ridge: ArrayLike) -> Array:
        """Return predictions at new inputs for every penalty, with shape (*ridge.shape, rows) and a last axis for targets."""
        lam = np.asarray(ridge, dtype=float)
        coefficients = self.coefficients(lam.ravel()).reshape(lam.size, self.X.shape[1], -1)
        stacked = np.moveaxis(coefficients, 1, 0).reshape(self.X.shape[1], -1)
        values = (np.asarray(X, dtype=float) @ stacked).reshape(-1, lam.size, self._columns.shape[1])
        return np.moveaxis(values, 0, 1).reshape(*lam.shape, -1, *self.y.shape[1:])

    def test_error(self, X: ArrayLike, y: ArrayLike, ridge: ArrayLike) -> Array:
        """Return the mean squared error on other data, for every penalty (and target)."""
        rows = np.ndim(ridge)
        return np.asarray(((self.predict(X, ridge) - np.asarray(y, dtype=float)) ** 2).mean(axis=rows))

    def train_error(self, ridge: ArrayLike) -> Array:
        """Return the mean squared residual on the training data, for every penalty (and target)."""
        return self.test_error(self.X, self.y, ridge)

    def degrees_of_freedom(self, ridge: ArrayLike) -> Array:
        """Return the trace of the hat matrix over n, for every penalty."""
        lam = np.asarray(ridge, dtype=float)
        flat, values = lam.ravel()[:, None], self._gram.values
        if (self._gram_error(lam.ravel()) > SVD_ABOVE).any():
            values = self._svd[1] ** 2 / len(self.X)
        return (values * _inverse(values + flat)).sum(axis=-1).reshape(lam.shape) / len(self.X)

    def gcv(self, ridge: ArrayLike) -> Array:
        """Return the generalised cross-validation error, which is train error / (1 - degrees of freedom)^2.

        Raise `ValueError` if the fit interpolates.
        """
        left = 1 - self.degrees_of_freedom(ridge)
        if (left <= 1e-10).any():
            raise Refused("ridge = 0 is not allowed in gcv when the fit interpolates: use a small positive penalty")
        return np.asarray(self.train_error(ridge) / left.reshape(*left.shape, *(1,) * (self.y.ndim - 1)) ** 2)

    # -- factorisations -----------------------------------------------------------------------------------------------

    def _gram_error(self, ridges: Array) -> Array:
        """Return the expected relative error of a solution from the Gram matrix, for every penalty."""
        values = self._gram.values
        with np.errstate(divide="ignore"):
            return np.asarray(EPSILON * values.max() / np.abs(values + ridges[:, None]).min(axis=1))

    def _from_gram(self, ridges: Array, refine: bool = False) -> Array:
        """Return coefficients (ridges, p, targets) from the smaller of X'X/n and XX'/n."""
        X, n, gram = self.X, len(self.X), self._gram
        labels, penalties = self._columns[:, None, :], ridges[:, None]
        if X.shape[1] <= n:
            solution = gram.solve(_times(X.T, labels) / n, ridges)
            if refine:
                solution += gram.solve(_times(X.T, labels - _times(X, solution)) / n - penalties * solution, ridges)
            return np.moveaxis(solution, 0, 1)
        dual = gram.solve(labels, ridges)
        if refine:
            dual += gram.solve(labels - _times(X, _times(X.T, dual)) / n - penalties * dual, ridges)
        return np.moveaxis(_times(X.T, dual) / n, 0, 1)

    def _from_svd(self, ridges: Array) -> Array:
        """Return the same coefficients from singular vectors, which represent the null space exactly."""
        left, singular, right = self._svd
        shrunk = singular[:, None] * _inverse(singular[:, None] ** 2 / len(self.X) + ridges) / len(self.X)
        labels = left.T @ self._columns
        return np.moveaxis(_times(right.T, shrunk[:, :, None] * labels[:, None, :]), 0, 1)

    @cached_property
    def _gram(self) -> _Tridiagonal:
        """The smaller of X'X/n and XX'/n."""
        X = self.X
        return _Tridiagonal((X.T @ X if X.shape[1] <= len(X) else X @ X.T) / len(X))

    @cached_property
    def _svd(self) -> tuple[Array, Array, Array]:
        """The singular value decomposition, with singular values that are rounding noise set to 0."""
        from scipy.linalg import svd

        left, singular, right = svd(self.X, full_matrices=False, check_finite=False)
        return left, np.where(singular > EPSILON * max(self.X.shape) * singular.max(), singular, 0.0), right

    def __repr__(self) -> str:
        return f"RidgePath(n={self.X.shape[0]}, p={self.X.shape[1]})"


def _times(matrix: Array, block: Array) -> Array:
    """Return the contraction of a matrix with the first axis of an array, computed as a single matrix product."""
    return (matrix @ block.reshape(block.shape[0], -1)).reshape(-1, *block.shape[1:])


def _inverse(values: Array) -> Array:
    """Return 1 / values, and 0 where a value is 0."""
    with np.errstate(divide="ignore"):
        return np.where(values == 0, 0.0, 1 / values)


def minimum_norm(X: ArrayLike, y: ArrayLike) -> Any:
    """Return the least-squares solution of smallest norm, which is the limit of the ridge solution for small penalties.

    >>> minimum_norm([[1.0, 1.0]], [2.0]).round(12).tolist()
    [1.0, 1.0]
    """
    return RidgePath(X, y).coefficients(0.0)
