"""Four ensembles of random attention matrices (Q^T K, V), and phase diagrams of clustering in (time, beta).

Let G, G1, G2, G3 be matrices of independent standard normal entries. In the ensembles "A", "B" and "C", B = Q^T K is the product
G1^T G2 / sqrt(d), so that its scores have the size of those of a trained head. In "D", B is the symmetric (G + G^T) / sqrt(2). Furthermore

    A: V = G3 / sqrt(d),      B: V = G3 G3^T / d (positive semidefinite),      C and D: V = B / sqrt(d).

With V = B / sqrt(d) the dynamics is a gradient flow in D, where B is symmetric, and not in C.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from limitlab._core.checks import one_of
from limitlab.models.attention.clusters import all_close, cluster_count, mean_overlap, pair_fraction
from limitlab.models.attention.engines import gram_flow, random_grams, random_tokens, token_paths
from limitlab.numerics.sphere_flow import flow_on_spheres

Array = NDArray[Any]
Ensemble = Literal["A", "B", "C", "D"]
CHUNK_BYTES = 64 * 2**20


def draw_matrices(rng: np.random.Generator, ensemble: Ensemble, dimension: int) -> tuple[Array, Array]:
    """Return the matrices B = Q^T K and V of one random attention head.

    >>> B, V = draw_matrices(np.random.default_rng(0), "D", 4)
    >>> bool(np.allclose(B, B.T) and np.allclose(V, B / 2))
    True
    """
    one_of("ensemble", ensemble, ("A", "B", "C", "D"))
    first, second, third = rng.standard_normal((3, dimension, dimension))
    B = (first + first.T) / np.sqrt(2) if ensemble == "D" else first.T @ second / np.sqrt(dimension)
    if ensemble == "A":
        return B, third / np.sqrt(dimension)
    if ensemble == "B":
        return B, third @ third.T / dimension
    return B, B / np.sqrt(dimension)


def ensemble_drift(beta: float, B: Array, V: Array | float) -> Any:
    """Return the drift of softmax attention with scores beta <x_i, B x_j> and values V x_j.

    A number V = c stands for the matrix c B. The product with B is then computed once for scores and values.
    """

    def drift(time: float, x: Array) -> Array:
        keys = x @ B.T
        values = keys if isinstance(V, float) else x @ V.T
        scores = (beta * x) @ keys.T
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        pulled = scores @ values
        return pulled * x.dtype.type(V) if isinstance(V, float) else pulled

    return drift


def ensemble_paths(
    rng: np.random.Generator,
    ensemble: Ensemble,
    tokens: int,
    dimension: int,
    beta: float,
    times: ArrayLike,
    *,
    step: float = 0.1,
    dtype: DTypeLike = np.float32,
) -> Array:
    """Return the tokens over time of one system with random matrices, shape (times, tokens, dimension).

    >>> ensemble_paths(np.random.default_rng(0), "A", 4, 6, 1.0, [0.0, 1.0]).shape
    (2, 4, 6)
    """
    B, V = draw_matrices(rng, ensemble, dimension)
    x = random_tokens(rng, 1, tokens, dimension)[0].astype(dtype)
    values = float(1 / np.sqrt(dimension)) if ensemble in "CD" else V.astype(dtype)
    field = ensemble_drift(beta, B.astype(dtype), values)
    return flow_on_spheres(field, x, times, method="rk4", step=step)


@dataclass(frozen=True)
class ClusterStatistics:
    """Averages over systems, each of shape (betas, times), and the standard deviation `spread` of the pair share."""

    beta: Array
    times: Array
    pair_probability: Array
    spread: Array
    all_probability: Array
    mean_overlap: Array
    clusters: Array

    def half_time(self) -> Array:
        """Return the time at which half of the pairs are close, for each beta, by linear interpolation, or inf."""
        half = np.full(len(self.beta), np.inf)
        for row, shares in enumerate(self.pair_probability):
            above = np.flatnonzero(shares >= 0.5)
            if above.size:
                k = int(above[0])
                half[row] = self.times[k]
                if k:
                    low, high = shares[k - 1], shares[k]
                    half[row] = self.times[k - 1] + (0.5 - low) / (high - low) * (self.times[k] - self.times[k - 1])
        return half


def phase_diagram(
    tokens: int,
    dimension: int,
    beta: ArrayLike,
    times: ArrayLike,
    systems: int = 64,
    seed: int = 0,
    *,
    closeness: float = 1e-3,
    tolerance: float = 1e-6,
    count: bool = False,
    workers: int = 1,
) -> ClusterStatistics:
    """Return statistics of clustering over time and temperature for Q = K = V = I, averaged over random starts.

    The starts are the same for every beta.

    Parameters
    ----------
    tokens, dimension
        Number of tokens n and dimension d. For d >= n the Gram matrices are integrated, at a cost that does not depend on d.
    beta, times
        Inverse temperatures and increasing times.
    systems, seed
        Number of random starts, and their seed.
    closeness
        Pairs with overlap above 1 - closeness are close.
    tolerance
        Absolute error allowed in each step.
    count
        Whether to count clusters, which takes more time. If False, the counts are 0.
    workers
        Number of threads (the compiled flow releases Python's global lock).

    Examples
    --------
    >>> diagram = phase_diagram(8, 16, [0.5, 5.0], [2.0, 20.0], systems=4)
    >>> diagram.pair_probability.shape
    (2, 2)
    """
    betas, grid = np.atleast_1d(np.asarray(beta, dtype=float)), np.atleast_1d(np.asarray(times, dtype=float))
    rng = np.random.default_rng(np.random.SeedSequence([seed, tokens, dimension]))
    by_gram = dimension >= tokens
    start = (random_grams if by_gram else random_tokens)(rng, systems, tokens, dimension)

    def statistics_at(b: float) -> list[Array]:
        rows = []
        chunk = max(1, CHUNK_BYTES // (8 * grid.size * tokens * max(tokens, dimension if not by_gram else 0)))
        for first in range(0, systems, chunk):
            part = start[first : first + chunk]
            if by_gram:
                grams = gram_flow(part, b, grid, tolerance=tolerance)
            else:
                paths = token_paths(part, b, grid, tolerance=tolerance)
                grams = paths @ np.swapaxes(paths, -1, -2)
            measured = [pair_fraction(grams, closeness), all_close(grams, closeness), mean_overlap(grams)]
            measured.append(cluster_count(grams, closeness) if count else np.zeros(grams.shape[:2]))
            rows.append(np.stack([np.asarray(m, dtype=float) for m in measured]))
        return list(np.concatenate(rows, axis=-1))

    with ThreadPoolExecutor(workers) as pool:
        statistics = list(pool.map(statistics_at, betas))
    table: Array = np.asarray(statistics)  # (betas, statistics, times, systems)
    mean = table.mean(axis=-1)
    spread = table[:, 0].std(axis=-1, ddof=min(1, systems - 1))
    return ClusterStatistics(betas, grid, mean[:, 0], spread, mean[:, 1], mean[:, 2], mean[:, 3])
