"""Learning curves by real fits on random subsets, with one eigendecomposition for all ridges of a subset.

`measured` checks a forecast. `compare_with_sklearn` and the power law a n^-b + c through a few real fits are what a user would do without
a forecast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from limitlab.applied.forecast._kernels import Kernel
from limitlab.applied.forecast._least_squares import RidgePath
from limitlab.applied.forecast._metrics import Metric, error_rate
from limitlab.errors import Refused

Array = NDArray[np.float64]

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
    """Return the same for a single ridge from a linear solve, which costs an eighth as much."""
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
