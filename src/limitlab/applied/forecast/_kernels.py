"""Kernels and feature maps for kernel ridge regression.

The kernels are linear, Gaussian, Laplace, arc-cosine, random features, and kernels of the user. `make_kernel` computes the parameters of a
`Kernel` from the data, such as the width of a Gaussian or the weights of random features. The kernel then compares rows in blocks, so that
no temporary array is larger than the result. A kernel that is an inner product of features has the attribute `features`. With fewer
features than rows, computations with the features are cheaper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from limitlab.errors import Refused, did_you_mean
from limitlab.models.activations import Activation

Array = NDArray[Any]
KernelFunction = Callable[[Array, Array], Array]

NAMES = ("linear", "rbf", "laplace", "relu-nngp", "random-features", "precomputed")
"""Names of kernels that `make_kernel` and `Forecast` accept."""

BLOCK = 4_000_000
"""Largest number of entries of a temporary array."""


# -- kernels of two tables ------------------------------------------------------------------------------------------------


def gaussian(X: Array, Y: Array, gamma: float) -> Array:
    """Return the kernel exp(-gamma |x - y|^2) between the rows of two tables.

    >>> gaussian(np.array([[0.0], [1.0]]), np.array([[0.0]]), 2.0).round(6).ravel().tolist()
    [1.0, 0.135335]
    """
    squared = (X**2).sum(axis=1)[:, None] + (Y**2).sum(axis=1) - 2 * (X @ Y.T)
    return np.asarray(np.exp(-gamma * np.maximum(squared, 0)))


def laplace(X: Array, Y: Array, rate: float) -> Array:
    """Return the kernel exp(-rate |x - y|) between the rows of two tables.

    >>> laplace(np.array([[0.0], [1.0]]), np.array([[0.0]]), 2.0).round(6).ravel().tolist()
    [1.0, 0.135335]
    """
    squared = (X**2).sum(axis=1)[:, None] + (Y**2).sum(axis=1) - 2 * (X @ Y.T)
    return np.asarray(np.exp(-rate * np.sqrt(np.maximum(squared, 0))))


def arc_cosine(X: Array, Y: Array, depth: int = 1) -> Array:
    """Return the kernel of an infinitely wide ReLU network with `depth` hidden layers and He's scaling, which keeps norms.

    For one layer this is the arc-cosine kernel of degree 1, (|x||y| / pi)(sin t + (pi - t) cos t), where t is the angle between x and y.

    >>> arc_cosine(np.array([[1.0, 0.0]]), np.array([[2.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])).round(6).tolist()
    [[2.0, 0.31831, 0.0]]
    """
    norms = np.linalg.norm(X, axis=1)[:, None] * np.linalg.norm(Y, axis=1)
    cosine = np.clip((X @ Y.T) / np.where(norms > 0, norms, 1), -1, 1)
    for _ in range(depth):
        angle = np.arccos(cosine)
        cosine = np.minimum((np.sin(angle) + (np.pi - angle) * cosine) / np.pi, 1)
    return np.asarray(norms * cosine)


def default_gamma(X: Array) -> float:
    """Return one over the total variance of the rows, for which the kernel of a typical pair of rows is exp(-2).

    >>> default_gamma(np.array([[0.0, 0.0], [2.0, 2.0]]))
    0.5
    """
    total = float(np.var(X, axis=0, dtype=np.float64).sum())
    return 1 / total if total > 0 else 1.0


# -- fitted kernels ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters fixed.

    Parameters
    ----------
    compare
        Function of two tables that returns the matrix of kernels between their rows.
    features
        Function of a table that returns features whose inner products are the kernel, or None.
    intercept
        Size c of a constant feature; it adds c^2 to the kernel.

    Examples
    --------
    >>> kernel = make_kernel("linear", np.eye(2), intercept=0.5)
    >>> kernel(np.eye(2), np.eye(2)).tolist(), kernel.table(np.eye(2)).tolist()
    ([[1.25, 0.25], [0.25, 1.25]], [[1.0, 0.0, 0.5], [0.0, 1.0, 0.5]])
    """

    compare: KernelFunction
    features: Callable[[Array], Array] | None = None
    intercept: float = 0.0

    def __call__(self, X: Array, Y: Array, dtype: DTypeLike = np.float64) -> Array:
        """Return the kernel between the rows of X and those of Y, computed in blocks of rows of X."""
        out = np.empty((len(X), len(Y)), dtype=dtype)
        rows = max(1, BLOCK // max(1, len(Y)))
        for start in range(0, len(X), rows):
            block = np.asarray(self.compare(X[start : start + rows], Y))
            if block.shape != (len(X[start : start + rows]), len(Y)):
                raise Refused(
                    f"kernel is not allowed: it maps tables of {len(X[start : start + rows])} and {len(Y)} rows to an array "
                    f"of shape {block.shape}; it must return one number for every pair of rows"
                )
            out[start : start + rows] = block
        if self.intercept:
            out += np.asarray(self.intercept**2, dtype=dtype)
        return out

    def diagonal(self, X: Array) -> Array:
        """Return the kernel of every row with itself."""
        if self.features is not None:
            return np.asarray((self.table(X) ** 2).sum(axis=1))
        values = [np.asarray(self.compare(row[None], row[None])).item() for row in X]
        return np.array(values, dtype=float) + self.intercept**2

    def table(self, X: Array, dtype: DTypeLike = np.float64) -> Array:
        """Return the features of the rows of X, with the constant feature."""
        if self.features is None:
            raise Refused("this kernel has no features")
        values = np.asarray(self.features(X), dtype=dtype)
        return np.column_stack([values, np.full(len(X), self.intercept, dtype=dtype)]) if self.intercept else values


class RandomFeatures:
    """Features s(<w_j, x> / scale) / sqrt(width) with Gaussian weights w_j and a scale for which <w, x> / scale has mean square 1.

    Parameters
    ----------
    width
        Number of features.
    activation
        Any activation: a name, or a function of arrays.
    seed
        Seed of the weights.

    Examples
    --------
    >>> X = np.ones((3, 4))
    >>> RandomFeatures(5, "tanh", seed=0).fit(X).transform(X).shape
    (3, 5)
    """

    def __init__(self, width: int = 1000, activation: Any = "relu", seed: int = 0):
        self.width, self.activation, self.seed = width, activation, seed

    def fit(self, X: Array, y: Any = None) -> RandomFeatures:
        """Draw the weights for inputs of this dimension, and set the scale."""
        if not isinstance(self.width, (int, np.integer)) or self.width < 1:
            raise Refused(f"width = {self.width!r} is not allowed: must be a whole number of at least 1")
        self._activation = Activation(self.activation)
        scale = float(np.sqrt(np.mean((np.asarray(X, dtype=float) ** 2).sum(axis=1)))) or 1.0
        self._weights = np.random.default_rng(self.seed).standard_normal((X.shape[1], self.width)) / scale
        return self

    def transform(self, X: Array) -> Array:
        """Return the features of the rows of X."""
        return np.asarray(self._activation(X @ self._weights)) / np.sqrt(self.width)


def make_kernel(
    kernel: Any,
    X: Array,
    *,
    gamma: float | None = None,
    depth: int = 1,
    width: int = 1000,
    activation: Any = "relu",
    intercept: float = 0.0,
    seed: int = 0,
) -> Kernel:
    """Return a kernel whose parameters are set by the data, from a name, a function of two tables or a feature map.

    Parameters
    ----------
    kernel
        "linear", "rbf", "laplace", "relu-nngp" (arc-cosine), "random-features", a function `(X, Y) -> matrix`, or an object with
        `transform` (and, if it has to be fitted, `fit`) such as `RandomFeatures` or a transformer of scikit-learn.
    X
        The data.
    gamma
        Rate of the kernel. "rbf" is exp(-gamma |x - y|^2), with one over the total variance of X as default. "laplace" is
        exp(-gamma |x - y|), with the root of this value as default.
    depth
        Number of hidden layers of "relu-nngp".
    width, activation, seed
        Parameters of "random-features".
    intercept
        Size of a constant feature.

    Examples
    --------
    >>> make_kernel("rbf", np.eye(2), gamma=1.0)(np.eye(2), np.eye(2)).round(6).tolist()
    [[1.0, 0.135335], [0.135335, 1.0]]
    """
    if not np.isfinite(intercept):
        raise Refused(f"intercept = {intercept!r} is not allowed: must be a finite number")
    if hasattr(kernel, "transform"):
        fitted = kernel.fit(X) if hasattr(kernel, "fit") else kernel
        return _from_features(fitted.transform, intercept)
    if callable(kernel):
        return Kernel(kernel, None, intercept)
    if kernel == "linear":
        return Kernel(_inner, _unchanged, intercept)
    if kernel in ("rbf", "laplace"):
        if gamma is not None and not (np.isfinite(gamma) and gamma > 0):
            raise Refused(f"gamma = {gamma!r} is not allowed: must be above 0, or None for one over the total variance")
        if kernel == "laplace":
            return Kernel(partial(laplace, rate=np.sqrt(default_gamma(X)) if gamma is None else gamma), None, intercept)
        return Kernel(partial(gaussian, gamma=default_gamma(X) if gamma is None else gamma), None, intercept)
    if kernel == "relu-nngp":
        if not isinstance(depth, (int, np.integer)) or depth < 1:
            raise Refused(f"depth = {depth!r} is not allowed: must be a whole number of at least 1")
        return Kernel(partial(arc_cosine, depth=depth), None, intercept)
    if kernel == "random-features":
        return _from_features(RandomFeatures(width, activation, seed).fit(X).transform, intercept)
    hint = did_you_mean(kernel, NAMES) if isinstance(kernel, str) else f"known names: {', '.join(NAMES)}"
    raise Refused(f"kernel = {kernel!r} is not allowed: give a name, a function of two tables or a feature map; {hint}")


# These are functions of the module and not closures, so that a fitted kernel can be pickled.


def _from_features(transform: Callable[[Array], Any], intercept: float) -> Kernel:
    features = partial(_dense, transform)
    return Kernel(partial(_inner_features, features), features, intercept)


def _dense(transform: Callable[[Array], Any], X: Array) -> Array:
    values = transform(X)
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)


def _inner_features(features: Callable[[Array], Array], X: Array, Y: Array) -> Array:
    return _inner(features(X), features(Y))


def _inner(X: Array, Y: Array) -> Array:
    return X @ Y.T


def _unchanged(X: Array) -> Array:
    return X
