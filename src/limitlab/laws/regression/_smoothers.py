"""Estimators by k nearest neighbours, and by a kernel smoother whose kernel is infinite at zero.

Both have the methods `fit(x, y)` and `predict(x)` of scikit-learn. `y` may have several columns, one per output. The estimators find
neighbours with SciPy's k-d tree, on R^d or on a torus.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import Refused
from limitlab.laws.regression._cusp import rough_wave

Array = NDArray[np.float64]


PAIRS = 2_000_000
"""Largest number of pairs (query, neighbour) in memory."""


@dataclass
class _LocalAverage:
    """Base class of the two estimators, which stores the sample and its search tree."""

    period: float | None = field(default=None, kw_only=True)
    """Side of the torus on which distances are measured. None means R^d."""

    _tree: Any = field(default=None, init=False, repr=False)
    _labels: Array | None = field(default=None, init=False, repr=False)

    def fit(self, x: ArrayLike, y: ArrayLike) -> Self:
        """Store the rows of x with their labels y, which have shape (samples,) or (samples, outputs)."""
        from scipy.spatial import cKDTree

        points, labels = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        if points.ndim != 2 or labels.shape[:1] != points.shape[:1] or not len(points):
            raise Refused(
                f"x has shape {points.shape} and y has shape {labels.shape}: "
                "x must be (samples, dimension) with at least one sample and y must have as many rows"
            )
        if not (np.isfinite(points).all() and np.isfinite(labels).all()):
            raise Refused("x and y must be finite: remove or impute rows with NaN or inf")
        self._tree = cKDTree(self._wrapped(points), boxsize=self.period)
        self._labels = labels
        return self

    def predict(self, x: ArrayLike) -> Array:
        """Return the estimates at the rows of x, of shape (queries,) or (queries, outputs)."""
        labels = self._fitted()
        queries = np.asarray(x, dtype=float)
        if queries.ndim != 2 or queries.shape[1] != self._tree.m or not np.isfinite(queries).all():
            raise Refused(f"x has shape {queries.shape}: must be finite, of shape (queries, {self._tree.m})")
        return self._average(self._wrapped(queries), labels)

    def _wrapped(self, points: Array) -> Array:
        if self.period is None:
            return points
        wrapped = points % self.period
        return np.where(
            wrapped == self.period, 0.0, wrapped
        )  # the remainder of a tiny negative number rounds up to the period

    def _fitted(self) -> Array:
        if self._labels is None:
            raise Refused(f"this {type(self).__name__} is not fitted: call fit(x, y) first")
        return self._labels

    def _average(self, queries: Array, labels: Array) -> Array:
        raise NotImplementedError


@dataclass
class NearestNeighbourRegressor(_LocalAverage):
    """Average of the labels of the k nearest samples, with equal weights.

    Parameters
    ----------
    neighbours
        Number of samples that are averaged, at least 1. With 1 the estimator interpolates.
    period
        Side of the torus on which distances are measured. None means R^d.

    Examples
    --------
    >>> model = NearestNeighbourRegressor(neighbours=2).fit([[0.0], [1.0], [5.0]], [1.0, 3.0, 9.0])
    >>> model.predict([[0.4], [4.0]]).tolist()
    [2.0, 6.0]
    """

    neighbours: int = 5

    def _average(self, queries: Array, labels: Array) -> Array:
        if not 1 <= self.neighbours <= len(labels):
            raise Refused(f"neighbours = {self.neighbours} is not allowed: must be from 1 to the {len(labels)} samples")
        _, index = self._tree.query(queries, k=np.arange(1, self.neighbours + 1))
        return np.asarray(labels[index].mean(axis=1))


@dataclass
class SingularKernelRegressor(_LocalAverage):
    """Nadaraya-Watson smoother with kernel |u|^-a on |u| <= 1, which interpolates every label at every bandwidth.

    The estimate is the weighted mean of the labels within distance `bandwidth`, with weights (distance)^-singularity. At a sample
    it is the label of this sample, or the mean of the labels of equal samples. If no sample is within the bandwidth, it is 0.

    Parameters
    ----------
    bandwidth
        Radius h of the window, above 0.
    singularity
        Exponent a of the kernel, above 0.
    period
        Side of the torus on which distances are measured. None means R^d.

    Examples
    --------
    >>> x, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, -1.0, 4.0])
    >>> model = SingularKernelRegressor(bandwidth=1.2, singularity=0.4).fit(x, y)
    >>> bool((model.predict(x) == y).all())                             # interpolates, exactly
    True
    >>> model.predict([[0.5], [9.0]]).tolist()                          # two equal weights; an empty window
    [0.0, 0.0]
    """

    bandwidth: float = 0.1
    singularity: float = 0.4

    def __post_init__(self) -> None:
        if not (self.bandwidth > 0 and np.isfinite(self.bandwidth)):
            raise Refused(f"bandwidth = {self.bandwidth} is not allowed: must be above 0")
        if not (self.singularity > 0 and np.isfinite(self.singularity)):
            raise Refused(f"singularity = {self.singularity} is not allowed: must be above 0")

    def weights(self, x: ArrayLike) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
        """Return the weights that `predict` uses, as arrays (query, sample, weight).

        The weights sum to 1 over every non-empty window. With label noise of variance s^2, the variance of the estimate at a query is
        s^2 times the sum of its squared weights.

        >>> model = SingularKernelRegressor(bandwidth=1.5, singularity=1.0).fit([[0.0], [3.0]], [1.0, 5.0])
        >>> [part.tolist() for part in model.weights([[1.0]])]
        [[0], [0], [1.0]]
        """
        self._fitted()
        queries = np.atleast_2d(np.asarray(x, dtype=float))
        return self._weights(self._wrapped(queries))

    def _weights(self, queries: Array) -> tuple[NDArray[np.intp], NDArray[np.intp], Array]:
        from scipy.spatial import cKDTree

        pairs = cKDTree(queries, boxsize=self.period).sparse_distance_matrix(
            self._tree, self.bandwidth, output_type="ndarray"
        )
        query, sample, distance = pairs["i"], pairs["j"], pairs["v"]
        nearest = np.full(len(queries), np.inf)
        np.minimum.at(nearest, query, distance)
        at_sample = nearest[query] == 0
        with np.errstate(
            divide="ignore", over="ignore"
        ):  # the weights are divided by the weight of the nearest sample, so that they cannot overflow
            ratio = distance / np.where(at_sample, 1.0, nearest[query])
            weight = np.where(at_sample, (distance == 0).astype(float), ratio ** -float(self.singularity))
        weight /= np.bincount(query, weight, minlength=len(queries))[query]
        return query, sample, weight

    def _average(self, queries: Array, labels: Array) -> Array:
        columns = labels.reshape(len(labels), -1)
        out = np.zeros((len(queries), columns.shape[1]))
        per_query = self._tree.query_ball_point(queries, self.bandwidth, return_length=True)
        for block in _blocks(per_query):
            query, sample, weight = self._weights(queries[block])
            for output, column in enumerate(columns.T):
                out[block, output] = np.bincount(query, weight * column[sample], minlength=len(out[block]))
        return out.reshape(len(queries), *labels.shape[1:])


def _blocks(counts: NDArray[np.intp]) -> list[slice]:
    """Return slices of consecutive queries with at most PAIRS neighbours in total (a single query may have more)."""
    block = np.cumsum(counts) // PAIRS
    edges = [0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), len(counts)]
    return [slice(start, stop) for start, stop in pairwise(edges) if stop > start]


# -- measured rate of the interpolating smoother on a function that is rough everywhere (claim J4) ---------------------

SCALE = 0.5
"""Bandwidth in units of n^{-1/(2 beta + d)}."""


def octave_samples(first: int, octaves: int, dimension: int, smoothness: float) -> list[int]:
    """Return sample sizes, starting with `first`, between which the bandwidth n^{-1/(2 beta + d)} halves.

    >>> octave_samples(500, 3, dimension=1, smoothness=0.5)
    [500, 2000, 8000]
    """
    return [round(first * 2.0 ** (octave * (2 * smoothness + dimension))) for octave in range(octaves)]


def measured_risk(
    samples: int,
    seed: int,
    dimension: int = 1,
    smoothness: float = 0.5,
    singularity: float = 0.3,
    noise: float = 0.5,
    queries: int = 2000,
) -> dict[str, float]:
    """Return the risk at random queries and the training gap, for one training set on the torus.

    The noise is averaged in closed form in `variance`. It is drawn in `training_gap`, which is the largest |f_n(X_i) - Y_i|.

    Examples
    --------
    >>> run = measured_risk(samples=500, seed=0)
    >>> run["training_gap"], 0 < run["excess_risk"] < 1
    (0.0, True)
    """
    rng = np.random.default_rng([seed, samples])
    bandwidth = SCALE * samples ** (-1 / (2 * smoothness + dimension))
    x, x_new = rng.random((samples, dimension)), rng.random((queries, dimension))
    clean, truth = rough_wave(x, smoothness), rough_wave(x_new, smoothness)
    labels = clean + noise * rng.standard_normal(samples)
    model = SingularKernelRegressor(bandwidth=bandwidth, singularity=singularity, period=1.0).fit(x, labels)
    query, sample, weight = model.weights(x_new)
    bias = np.bincount(query, weight * clean[sample], minlength=queries) - truth
    variance = noise**2 * np.bincount(query, weight**2, minlength=queries)
    return dict(
        squared_bias=float(np.mean(bias**2)),
        variance=float(np.mean(variance)),
        excess_risk=float(np.mean(bias**2 + variance)),
        training_gap=float(np.abs(model.predict(x[:queries]) - labels[:queries]).max()),
    )
