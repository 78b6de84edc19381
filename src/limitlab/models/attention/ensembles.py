"""Random attention matrices: four ensembles of (Q^T K, V), and phase diagrams of clustering in (time, beta).

With G of independent standard normal entries, B = Q^T K is drawn as a product G1^T G2 / sqrt(d) of two of them ("A", "B", "C"; its
scores have the size of a trained head's) or as the symmetric (G + G^T) / sqrt(2) ("D"), and

    A: V = G3 / sqrt(d),      B: V = G3 G3^T / d (positive semidefinite),      C and D: V = B / sqrt(d).

V = B / sqrt(d) is a gradient flow in D, where B is symmetric, and not in C.
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
    """B = Q^T K and V of one system.

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
    """Softmax attention with scores beta <x_i, B x_j> and values V x_j; V as a number c stands for c B.

    Products with B are shared between scores and values, and no n x d x d product is done twice.
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
    """Tokens over time of one system with random matrices, shape (times, tokens, dimension).

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
    """Averages over systems, each of shape (betas, times); `spread` is the standard deviation of the pair share over systems."""

    beta: Array
    times: Array
    pair_probability: Array
    spread: Array
    all_probability: Array
    mean_overlap: Array
    clusters: Array

    def half_time(self) -> Array:
        """Time at which half of the pairs are close, per beta, by linear interpolation; inf where it is not reached."""
        found = np.full(len(self.beta), np.inf)
        for row, shares in enumerate(self.pair_probability):
            above = np.flatnonzero(shares >= 0.5)
            if above.size:
                k = int(above[0])
                found[row] = self.times[k]
                if k:
                    low, high = shares[k - 1], shares[k]
                    found[row] = self.times[k - 1] + (0.5 - low) / (high - low) * (self.times[k] - self.times[k - 1])
        return found


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
    """Clustering over time and temperature for Q = K = V = I: averages over random starts, the same ones for every beta.

    Parameters
    ----------
    tokens, dimension
        n and d. For d >= n the Gram engine is used, at a cost that does not depend on d.
    beta, times
        Inverse temperatures and increasing times.
    systems, seed
        Number of random starts, and their seed.
    closeness
        Pairs with overlap above 1 - closeness are close.
    tolerance
        Absolute error allowed in each step.
    count
        Whether to count clusters (slower; zeros otherwise).
    workers
        Threads (the compiled flow does not hold Python's lock).

    Examples
    --------
    >>> found = phase_diagram(8, 16, [0.5, 5.0], [2.0, 20.0], systems=4)
    >>> found.pair_probability.shape
    (2, 2)
    """
    betas, grid = np.atleast_1d(np.asarray(beta, dtype=float)), np.atleast_1d(np.asarray(times, dtype=float))
    rng = np.random.default_rng(np.random.SeedSequence([seed, tokens, dimension]))
    by_gram = dimension >= tokens
    start = (random_grams if by_gram else random_tokens)(rng, systems, tokens, dimension)

    def one(b: float) -> list[Array]:
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
        found = list(pool.map(one, betas))
    table: Array = np.asarray(found)  # (betas, statistics, times, systems)
    mean = table.mean(axis=-1)
    spread = table[:, 0].std(axis=-1, ddof=min(1, systems - 1))
    return ClusterStatistics(betas, grid, mean[:, 0], spread, mean[:, 1], mean[:, 2], mean[:, 3])
