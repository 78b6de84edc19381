"""Local averages as estimators: k nearest neighbours, and the kernel smoother whose kernel is infinite at zero.

Both follow scikit-learn's way of speaking (`fit(x, y)`, `predict(x)`; `y` may have several columns, one per output) and find
their neighbours with SciPy's k-d tree, on R^d or on a torus.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import Refused

Array = NDArray[np.float64]

PAIRS = 2_000_000
"""Pairs (query, neighbour) held in memory at once."""


@dataclass
class _LocalAverage:
    """What the two estimators share: the stored sample and its tree."""

    period: float | None = field(default=None, kw_only=True)
    """Side of the torus on which distances are measured; None for R^d."""

    _tree: Any = field(default=None, init=False, repr=False)
    _labels: Array | None = field(default=None, init=False, repr=False)

    def fit(self, x: ArrayLike, y: ArrayLike) -> Self:
        """Store the sample: rows of x with their labels y, of shape (samples,) or (samples, outputs)."""
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
        """Estimates at the rows of x, of shape (queries,) or (queries, outputs)."""
        labels = self._fitted()
        queries = np.asarray(x, dtype=float)
        if queries.ndim != 2 or queries.shape[1] != self._tree.m or not np.isfinite(queries).all():
            raise Refused(f"x has shape {queries.shape}: must be finite, of shape (queries, {self._tree.m})")
        return self._average(self._wrapped(queries), labels)

    def _wrapped(self, points: Array) -> Array:
        if self.period is None:
            return points
        wrapped = points % self.period
        return np.where(wrapped == self.period, 0.0, wrapped)  # a tiny negative number rounds up to the period

    def _fitted(self) -> Array:
        if self._labels is None:
            raise Refused(f"this {type(self).__name__} is not fitted: call fit(x, y) first")
        return self._labels

    def _average(self, queries: Array, labels: Array) -> Array:
        raise NotImplementedError


@dataclass
class NearestNeighbourRegressor(_LocalAverage):
    """The plain average of the labels of the k nearest samples.

    Parameters
    ----------
    neighbours
        How many samples are averaged, at least 1; with 1 the estimator interpolates.
    period
        Side of the torus on which distances are measured; None for R^d.

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
    """The Nadaraya-Watson smoother with kernel |u|^-a on |u| <= 1: it passes through every label, whatever the bandwidth.

    The estimate is the weighted mean of the labels within distance `bandwidth`, with weights (distance)^-singularity; the
    label itself at a sample (the mean of labels at a repeated one); 0 where no sample is within the bandwidth.

    Parameters
    ----------
    bandwidth
        Radius h of the window, above 0.
    singularity
        Exponent a of the kernel, above 0.
    period
        Side of the torus on which distances are measured; None for R^d.

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
        """The rule behind `predict`: arrays (query, sample, weight) with weights that sum to 1 over every non-empty window.

        What the estimate owes to noise of variance s^2 is s^2 times the sum of squared weights of a query.

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
        with np.errstate(divide="ignore", over="ignore"):  # weights relative to the nearest sample's cannot overflow
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
    """Consecutive queries with at most PAIRS neighbours together (a single query may have more)."""
    block = np.cumsum(counts) // PAIRS
    edges = [0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), len(counts)]
    return [slice(start, stop) for start, stop in pairwise(edges) if stop > start]
