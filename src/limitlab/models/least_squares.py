"""Ridge regression for every penalty at once: one factorisation of the inputs, then all coefficients and errors.

The penalty is lambda of (1/n)|y - Xb|^2 + lambda |b|^2, so scikit-learn's `Ridge(alpha)` is alpha = n lambda; at lambda = 0
the solution is the one of least norm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

EPSILON = float(np.finfo(np.float64).eps)
GRAM_ERROR = 1e-11  # largest relative error for which the eigenvectors of a Gram matrix are good enough


@dataclass(frozen=True)
class _Factors:
    """Eigenvalues x of X'X/n, the labels in that basis, and the way back: b = lift(labels / (x + lambda))."""

    values: Array  # (r,)
    labels: Array  # (r, targets)
    lift: Callable[[Array], Array]  # (r, columns) -> (p, columns)


class RidgePath:
    """Least squares with a ridge penalty, for all penalties from one factorisation.

    Eigenvectors of the smaller Gram matrix serve every penalty that leaves it well conditioned; a penalty that does not
    (zero, or next to nothing) uses a singular value decomposition, which is slower and is computed only when needed.

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
    >>> path.coefficients([0.0, 1.0]).round(12).tolist()  # the least-norm interpolant, then a penalty of 1
    [[0.5, 1.0, 0.5], [0.25, 0.666666666667, 0.25]]
    >>> path.train_error([0.0, 1.0]).round(12).tolist()
    [0.0, 0.347222222222]
    """

    def __init__(self, X: ArrayLike, y: ArrayLike):
        self.X, labels = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
        if self.X.ndim != 2 or 0 in self.X.shape:
            raise ValueError(f"X of shape {self.X.shape} is not allowed: must be a table of n rows and p columns")
        if labels.ndim not in (1, 2) or len(labels) != len(self.X):
            raise ValueError(f"y of shape {labels.shape} is not allowed: must have {len(self.X)} rows, as X")
        if not np.isfinite(self.X).all() or not np.isfinite(labels).all():
            raise ValueError("X and y must be finite numbers: remove or fill missing values")
        self.y = labels
        self._columns = labels.reshape(len(labels), -1)

    def coefficients(self, ridge: ArrayLike) -> Array:
        """Coefficients for every penalty, shape (*ridge.shape, p), then targets if y has them."""
        lam = np.asarray(ridge, dtype=float)
        if np.isnan(lam).any():
            raise ValueError("ridge = nan is not allowed")
        flat = lam.ravel()
        factors = self._factors_for(flat)
        weighted = self._inverse(factors, flat)[..., None] * factors.labels  # (ridges, r, targets)
        stacked = np.moveaxis(weighted, 1, 0).reshape(factors.values.size, -1)
        solved = factors.lift(stacked).reshape(self.X.shape[1], flat.size, -1)
        return np.moveaxis(solved, 0, 1).reshape(*lam.shape, self.X.shape[1], *self.y.shape[1:])

    def predict(self, X: ArrayLike, ridge: ArrayLike) -> Array:
        """Predictions at new inputs for every penalty, shape (*ridge.shape, rows), then targets if y has them."""
        lam = np.asarray(ridge, dtype=float)
        found = self.coefficients(lam.ravel()).reshape(lam.size, self.X.shape[1], -1)
        stacked = np.moveaxis(found, 1, 0).reshape(self.X.shape[1], -1)
        values = (np.asarray(X, dtype=float) @ stacked).reshape(-1, lam.size, self._columns.shape[1])
        return np.moveaxis(values, 0, 1).reshape(*lam.shape, -1, *self.y.shape[1:])

    def test_error(self, X: ArrayLike, y: ArrayLike, ridge: ArrayLike) -> Array:
        """Mean squared error on other data, for every penalty (and target)."""
        rows = np.ndim(ridge)
        return np.asarray(((self.predict(X, ridge) - np.asarray(y, dtype=float)) ** 2).mean(axis=rows))

    def train_error(self, ridge: ArrayLike) -> Array:
        """Mean squared residual on the data themselves, for every penalty (and target)."""
        return self.test_error(self.X, self.y, ridge)

    def degrees_of_freedom(self, ridge: ArrayLike) -> Array:
        """Trace of the hat matrix over n, for every penalty."""
        lam = np.asarray(ridge, dtype=float)
        factors = self._factors_for(lam.ravel())
        return (factors.values * self._inverse(factors, lam.ravel())).sum(axis=-1).reshape(lam.shape) / len(self.X)

    def gcv(self, ridge: ArrayLike) -> Array:
        """Generalised cross-validation, train error over (1 - degrees of freedom)^2; refuses a fit that interpolates."""
        left = 1 - self.degrees_of_freedom(ridge)
        if (left <= 1e-10).any():
            raise ValueError("ridge = 0 is not allowed in gcv when the fit interpolates: use a small positive penalty")
        return np.asarray(self.train_error(ridge) / left.reshape(*left.shape, *(1,) * (self.y.ndim - 1)) ** 2)

    # -- factorisations -----------------------------------------------------------------------------------------------

    def _factors_for(self, ridges: Array) -> _Factors:
        values = self._gram.values
        with np.errstate(divide="ignore"):
            error = EPSILON * values.max() / np.abs(values + ridges[:, None]).min(initial=np.inf)
        return self._gram if error < GRAM_ERROR else self._svd

    def _inverse(self, factors: _Factors, ridges: Array) -> Array:
        """1 / (x + lambda), and 0 on the null space without a penalty; shape (ridges, r)."""
        shifted = factors.values + ridges[:, None]
        with np.errstate(divide="ignore"):
            return np.where(shifted == 0, 0.0, 1 / shifted)

    @cached_property
    def _gram(self) -> _Factors:
        from scipy.linalg import eigh

        X, n = self.X, len(self.X)
        primal = X.shape[1] <= n
        gram = (X.T @ X if primal else X @ X.T) / n
        values, vectors = eigh(gram, driver="evd", overwrite_a=True, check_finite=False)
        if primal:
            return _Factors(values, vectors.T @ (X.T @ self._columns) / n, lambda weights: vectors @ weights)
        return _Factors(values, vectors.T @ self._columns, lambda weights: X.T @ (vectors @ weights) / n)

    @cached_property
    def _svd(self) -> _Factors:
        from scipy.linalg import svd

        left, singular, right = svd(self.X, full_matrices=False, check_finite=False)
        singular = np.where(singular > EPSILON * max(self.X.shape) * singular.max(), singular, 0.0)
        labels = singular[:, None] * (left.T @ self._columns) / len(self.X)
        return _Factors(singular**2 / len(self.X), labels, lambda weights: right.T @ weights)

    def __repr__(self) -> str:
        return f"RidgePath(n={self.X.shape[0]}, p={self.X.shape[1]})"


def minimum_norm(X: ArrayLike, y: ArrayLike) -> Any:
    """The least-squares solution of least norm, which is the ridge solution as the penalty falls to zero.

    >>> minimum_norm([[1.0, 1.0]], [2.0]).round(12).tolist()
    [1.0, 1.0]
    """
    return RidgePath(X, y).coefficients(0.0)
