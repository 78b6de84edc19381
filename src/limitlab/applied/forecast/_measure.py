"""Learning curves by real fits on random subsets, with one factorisation for all ridges of a subset.

`RidgePath` solves ridge regression for many penalties. The penalty is lambda in (1/n)|y - Xb|^2 + lambda |b|^2, so alpha = n lambda in
`Ridge(alpha)` of scikit-learn. At lambda = 0 the solution is the interpolant or least-squares solution of smallest norm.

`measured` checks a forecast with real fits. `compare_with_sklearn` and the power law a n^-b + c through a few real fits are what a user
would do without a forecast.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from limitlab._core.arguments import explained
from limitlab.applied.forecast._kernels import Kernel
from limitlab.applied.forecast._metrics import Metric, error_rate
from limitlab.errors import Refused

# -- ridge regression with one factorisation -------------------------------------------------------------------------


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
        """Return the generalised cross-validation error, which is train error / (1 - degrees of freedom per point)^2.

        Raise `Refused` if the fit interpolates.
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
        """Return the coefficients of `_from_gram` from singular vectors, which represent the null space exactly."""
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


# -- real fits on random subsets -------------------------------------------------------------------------------------


ROUNDING = 1e-12


def measured(
    kernel: Kernel | Array,
    X: Array,
    targets: Array,
    samples: Any,
    ridge: Any,
    splits: int = 5,
    seed: int = 0,
    most_tests: int = 4000,
    classes: bool = False,
    groups: NDArray[np.int64] | None = None,
    order: Literal["random", "time"] = "random",
) -> xr.Dataset:
    """Return train and test errors of kernel ridge regression on random subsets, tested on the other points.

    Parameters
    ----------
    kernel
        A fitted kernel, or a Gram matrix.
    X, targets
        Inputs (not used with a Gram matrix) and targets, one column per output.
    samples, ridge
        Sizes of the subsets, and ridges.
    splits
        Number of random subsets per size.
    seed
        Seed of the subsets.
    most_tests
        Largest number of other points that are used for tests.
    classes
        Whether the columns of the targets are classes. If so, the share of wrong labels (by the largest output) is measured too.
    groups
        Group of every row. A subset is then the first n rows of a random order of groups, and the test rows belong to other groups.
    order
        "random", or "time" if the rows are in the order of time. With "time" the subsets are consecutive rows, and the test rows follow
        them.

    Returns
    -------
    xarray.Dataset
        Variables test_error, train_error (and classification_error) over n and ridge, averaged over the splits, with standard errors.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((60, 3))
    >>> from limitlab.applied.forecast._kernels import make_kernel
    >>> errors = measured(make_kernel("linear", X), X, X[:, :1], [20, 40], [1e-9], splits=2)
    >>> bool((errors.test_error < 1e-10).all())
    True
    """
    n, lam = np.atleast_1d(np.asarray(samples, dtype=int)), np.atleast_1d(np.asarray(ridge, dtype=float))
    total = len(targets)
    if (n < 1).any() or (n >= total).any():
        raise Refused(
            f"n = {n[(n < 1) | (n >= total)][0]} is not allowed: real fits need 1 <= n < {total}, so that points are left for tests"
        )
    if splits < 1:
        raise Refused(f"splits = {splits} is not allowed: must be at least 1")
    names = ("test_error", "train_error", *(("classification_error",) if classes else ()))
    values = np.empty((len(names), splits, n.size, lam.size))
    for split in range(splits):
        for column, count in enumerate(n):
            rng = np.random.default_rng([seed, split, int(count)])
            if order == "time":
                inside, outside = _in_time(total, int(count), split / max(splits - 1, 1), most_tests)
            else:
                inside, outside = _apart(total, int(count), groups, rng)
            outside = outside[:most_tests]
            values[:, split, column] = _one_fit(kernel, X, targets, inside, outside, lam, classes)
    mean = values.mean(axis=1)
    error = values.std(axis=1, ddof=1) / np.sqrt(splits) if splits > 1 else np.full_like(mean, np.inf)
    variables = {name: (("n", "ridge"), mean[i]) for i, name in enumerate(names)}
    variables |= {f"{name}_standard_error": (("n", "ridge"), error[i]) for i, name in enumerate(names)}
    return xr.Dataset(variables, {"n": n, "ridge": lam}, {"splits": splits, "seed": seed, "kind": "measured"})


def _in_time(total: int, count: int, share: float, most_tests: int) -> tuple[Any, Any]:
    """Return consecutive rows and the rows that follow. `share` moves the window from the first rows to the last."""
    room = total - count
    tests = max(1, min(most_tests, room // 2 or 1))
    start = round(share * (room - tests))
    return np.arange(start, start + count), np.arange(start + count, start + count + tests)


def _apart(total: int, count: int, groups: NDArray[np.int64] | None, rng: np.random.Generator) -> tuple[Any, Any]:
    """Return random rows and the other rows. With groups, return rows of random groups and all rows of the other groups."""
    if groups is None:
        order = rng.permutation(total)
        return order[:count], order[count:]
    rank = rng.permutation(int(groups.max()) + 1)
    order = np.argsort(rank[groups] + rng.random(total) * 0.5, kind="stable")
    inside = order[:count]
    outside = order[count:][~np.isin(groups[order[count:]], groups[inside])]
    if not outside.size:
        raise Refused(
            f"n = {count} is not allowed: it leaves none of the {int(groups.max()) + 1} groups for tests; give fewer rows"
        )
    return inside, rng.permutation(outside)


def _one_fit(
    kernel: Kernel | Array, X: Array, targets: Array, inside: Any, outside: Any, lam: Array, classes: bool
) -> Array:
    """Return the errors of a fit to a subset for every ridge, with shape (observables, ridges)."""
    y, truth = targets[inside], targets[outside]
    if isinstance(kernel, Kernel) and kernel.features is not None and kernel.table(X[:1]).shape[1] < len(inside):
        path = RidgePath(kernel.table(X[inside]), y)
        guess, fitted = path.predict(kernel.table(X[outside]), lam), path.predict(kernel.table(X[inside]), lam)
    else:
        solve = _one_ridge if lam.size == 1 and lam[0] > 0 else _dual_path
        guess, fitted = solve(*_grams(kernel, X, inside, outside), y, lam)
    errors = [((guess - truth) ** 2).mean(axis=(1, 2)), ((fitted - y) ** 2).mean(axis=(1, 2))]
    if classes:
        errors.append(np.array([error_rate(scores, truth) for scores in guess]))
    return np.array(errors)


def _grams(kernel: Kernel | Array, X: Array, inside: Any, outside: Any) -> tuple[Array, Array]:
    if isinstance(kernel, Kernel):
        return kernel(X[inside], X[inside]), kernel(X[outside], X[inside])
    return kernel[np.ix_(inside, inside)], kernel[np.ix_(outside, inside)]


def _one_ridge(gram: Array, across: Array, y: Array, lam: Array) -> tuple[Array, Array]:
    """Return the predictions of `_dual_path` for a single ridge. A linear solve costs an eighth of an eigendecomposition."""
    from scipy.linalg import cho_factor, cho_solve

    shifted = gram + len(y) * lam[0] * np.eye(len(y))
    coefficients = cho_solve(cho_factor(shifted, overwrite_a=True, check_finite=False), y)
    return (across @ coefficients)[None], (gram @ coefficients)[None]


def _dual_path(gram: Array, across: Array, y: Array, lam: Array) -> tuple[Array, Array]:
    """Return predictions on test points and on training points for every ridge, with shape (ridges, rows, outputs)."""
    from scipy.linalg import eigh

    n = len(y)
    values, vectors = eigh(gram / n, driver="evd", check_finite=False)
    values = np.where(values > ROUNDING * values[-1], values, 0.0)
    with np.errstate(divide="ignore"):
        inverse = np.where(
            values[:, None] > 0, 1 / (values[:, None] + lam), np.where(lam > 0, 1 / np.where(lam > 0, lam, 1), 0.0)
        )
    scaled = (vectors.T @ y)[:, None, :] * inverse[:, :, None]  # (n, ridges, outputs)
    flat = scaled.reshape(n, -1)
    guess = ((across @ vectors) @ flat / n).reshape(len(across), lam.size, -1)
    fitted = (vectors @ (values[:, None] * flat)).reshape(n, lam.size, -1)
    return np.moveaxis(guess, 1, 0), np.moveaxis(fitted, 1, 0)


@explained
def compare_with_sklearn(
    X: Array,
    y: Array,
    samples: Any,
    ridge: Any,
    kernel: str = "rbf",
    gamma: float | None = None,
    splits: int = 5,
    seed: int = 0,
) -> xr.Dataset:
    """Return the learning curve of `KernelRidge` by `sklearn.model_selection.learning_curve`, for comparison.

    scikit-learn makes a fit for every size, ridge and split.

    Parameters
    ----------
    X, y
        Inputs and targets.
    samples, ridge
        Sizes of the subsets, and ridges lambda. In scikit-learn alpha = n lambda, so every pair needs a separate run.
    kernel, gamma
        Parameters of `KernelRidge`. None for `gamma` means the default of limitlab.
    splits, seed
        Number of random subsets of the largest size, and their seed. Smaller subsets are the first rows of these.

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((60, 3))
    >>> compare_with_sklearn(X, X[:, 0], [20], [1e-3], kernel="linear", splits=2).test_error.shape
    (1, 1)
    """
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import ShuffleSplit, learning_curve

    from limitlab.applied.forecast._kernels import default_gamma

    n, lam = np.atleast_1d(np.asarray(samples, dtype=int)), np.atleast_1d(np.asarray(ridge, dtype=float))
    width = default_gamma(X) if gamma is None else gamma
    train, test = np.empty((2, n.size, lam.size, splits))
    for i, count in enumerate(n):
        subsets = ShuffleSplit(splits, train_size=int(count), test_size=len(X) - int(count), random_state=seed)
        for j, value in enumerate(lam):
            model = KernelRidge(alpha=count * value, kernel=kernel, gamma=width if kernel == "rbf" else None)
            _, on_train, on_test = learning_curve(
                model, X, y, train_sizes=[int(count)], cv=subsets, scoring="neg_mean_squared_error"
            )
            train[i, j], test[i, j] = -on_train[0], -on_test[0]
    axes = ("n", "ridge")
    spread = test.std(axis=2, ddof=1) / np.sqrt(splits) if splits > 1 else np.full(test.shape[:2], np.inf)
    means = {"test_error": test.mean(axis=2), "train_error": train.mean(axis=2), "test_error_standard_error": spread}
    variables = {name: (axes, value) for name, value in means.items()}
    return xr.Dataset(variables, {"n": n, "ridge": lam}, {"splits": splits, "seed": seed, "kind": "scikit-learn"})


SHARES = (0.08, 0.15, 0.28, 0.5, 0.8)
"""Sizes of the real fits, as shares of the data."""

SPLITS = 8
LARGEST_FIT, MOST_TESTS = 2000, 1000


@dataclass(frozen=True)
class PowerLaw:
    """a n^-b + c with a, b, c at least 0."""

    a: float
    b: float
    c: float

    def __call__(self, samples: Any) -> Array:
        """Return the value at a number of points."""
        return np.asarray(self.a * np.asarray(samples, dtype=float) ** -self.b + self.c)


def fit_power_law(samples: Any, values: Any) -> PowerLaw:
    """Return the power law with the smallest squared deviation in the logarithm.

    For each exponent b and floor c the best factor is an average. The search uses a grid of exponents and floors that is refined once,
    because a descent from a single start can end in a local minimum.

    >>> n = np.array([20, 50, 100, 300])
    >>> law = fit_power_law(n, 2 * n**-0.5 + 0.1)
    >>> round(law.b, 2), round(law.c, 2)
    (0.5, 0.1)
    """
    n, y = np.asarray(samples, dtype=float), np.asarray(values, dtype=float)
    if not (y > 0).all():
        y = np.maximum(y, np.finfo(float).tiny)
    exponents, floors = np.linspace(0.0, 3.0, 61), np.linspace(0.0, 0.999, 60) * y.min()
    best = PowerLaw(float(np.exp(np.log(y).mean())), 0.0, 0.0)
    for _ in range(4):
        above = np.log(np.maximum(y - floors[:, None], np.finfo(float).tiny))  # (floors, n)
        factor = np.exp((above[:, None, :] + exponents[:, None] * np.log(n)).mean(axis=2))
        guess = factor[:, :, None] * n ** -exponents[:, None] + floors[:, None, None]
        miss = ((np.log(guess) - np.log(y)) ** 2).sum(axis=2)
        i, j = np.unravel_index(int(np.argmin(miss)), miss.shape)
        best = PowerLaw(float(factor[i, j]), float(exponents[j]), float(floors[i]))
        wide, tall = (exponents[1] - exponents[0]) * 2, (floors[1] - floors[0]) * 2
        exponents = np.linspace(max(best.b - wide, 0.0), best.b + wide, 41)
        floors = np.linspace(max(best.c - tall, 0.0), min(best.c + tall, 0.9999 * y.min()), 41)
    return best


def real_values(
    source: Kernel | Array, X: Array, targets: Array, samples: Array, ridges: Array, metric: Metric, splits: int, seed: int
) -> Array:
    """Return the metric of real fits on random subsets, with shape (sizes, splits) and a linear solve for each fit."""
    from scipy.linalg import cho_factor, cho_solve

    total = len(targets)
    out = np.empty((len(samples), splits))
    for i, (count, ridge) in enumerate(zip(samples.astype(int), ridges, strict=True)):
        for split in range(splits):
            order = np.random.default_rng([seed, 4, split, int(count)]).permutation(total)
            inside, outside = order[:count], order[count : count + MOST_TESTS]
            if isinstance(source, Kernel):
                gram, across = source(X[inside], X[inside]), source(X[outside], X[inside])
            else:
                gram, across = source[np.ix_(inside, inside)], source[np.ix_(outside, inside)]
            shift = max(ridge, 1e-12 * float(np.trace(gram)) / count) * count
            gram[np.diag_indices(count)] += shift
            fit = across @ cho_solve(cho_factor(gram, overwrite_a=True, check_finite=False), targets[inside])
            out[i, split] = metric(fit, targets[outside])
    return out


def sizes_for(total: int) -> Array:
    """Return the sizes of the real fits.

    >>> sizes_for(1000).tolist()
    [80.0, 150.0, 280.0, 500.0, 800.0]
    """
    return np.unique(np.round(np.array(SHARES) * min(total, LARGEST_FIT / SHARES[-1])))
