"""Overlaps of a network's own token embeddings, layer by layer, and a random-weight network to try it on.

`overlap_profile` takes what one stores from any transformer, an array (layers, tokens, d), and measures how the tokens cluster. The
built-in example, `random_transformer`, applies one and the same random layer again and again (constant parameters, as in ALBERT):
layer normalisation, several attention heads, a feed-forward layer, residual connections.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.models.attention.clusters import cluster_count, pair_fraction
from limitlab.numerics.sphere_flow import normalise

Array = NDArray[Any]


@dataclass(frozen=True)
class OverlapProfile:
    """How the tokens of a network cluster over its layers; every array has one entry (or row) per layer.

    Attributes
    ----------
    histograms, edges
        Share of the pairs i < j in each bin of the overlap <x_i, x_j>, and the bins' edges.
    mean, spread
        Mean and standard deviation of the overlaps.
    pair_probability, clusters
        Share of pairs with overlap above 1 - closeness, and number of connected groups of such pairs.
    closeness
        The threshold.
    """

    histograms: Array
    edges: Array
    mean: Array
    spread: Array
    pair_probability: Array
    clusters: Array
    closeness: float

    def collapse_layer(self, share: float = 0.5) -> int | None:
        """The first layer at which this share of the pairs is close; None if there is none."""
        reached = np.flatnonzero(self.pair_probability >= share)
        return int(reached[0]) if reached.size else None


def overlap_profile(
    embeddings: ArrayLike, *, closeness: float = 0.01, bins: int = 50, centre: bool = False
) -> OverlapProfile:
    """Overlaps of normalised tokens over the layers of a network.

    Parameters
    ----------
    embeddings
        Array of shape (layers, tokens, d): the tokens after each layer, of any length (they are normalised here).
    closeness
        Pairs with overlap above 1 - closeness count as merged.
    bins
        Number of bins between -1 and 1.
    centre
        Subtract the mean token of each layer first; use it where a common offset hides the differences.

    Examples
    --------
    >>> x = random_transformer(layers=12, tokens=16, dimension=32, seed=0)
    >>> profile = overlap_profile(x)
    >>> profile.histograms.shape
    (13, 50)
    >>> bool(profile.mean[-1] > profile.mean[0])  # the tokens of a random network draw together
    True
    """
    x = np.asarray(embeddings, dtype=float)
    if x.ndim != 3 or x.shape[1] < 2 or x.shape[2] < 2:
        raise ValueError(
            f"embeddings of shape {x.shape} are not allowed: must be (layers, tokens, d) with at least 2 tokens and 2 dimensions"
        )
    if not np.isfinite(x).all():
        raise ValueError("embeddings are not allowed: they have entries that are not finite")
    if not 0 < closeness < 1:
        raise ValueError(f"closeness = {closeness!r} is not allowed: must be above 0 and below 1")
    if centre:
        x = x - x.mean(axis=1, keepdims=True)
    x = normalise(x)
    gram = np.clip(x @ np.swapaxes(x, -1, -2), -1.0, 1.0)
    pairs = gram[:, *np.triu_indices(x.shape[1], 1)]
    edges = np.linspace(-1, 1, bins + 1)
    histograms = np.stack([np.histogram(row, edges)[0] for row in pairs]) / pairs.shape[1]
    return OverlapProfile(
        histograms, edges, pairs.mean(axis=1), pairs.std(axis=1), np.atleast_1d(pair_fraction(gram, closeness)),
        np.atleast_1d(cluster_count(gram, closeness)), closeness,
    )  # fmt: skip


def random_transformer(
    layers: int = 24,
    tokens: int = 64,
    dimension: int = 128,
    *,
    heads: int = 4,
    beta: float = 1.0,
    step: float = 0.5,
    feed_forward: float = 0.5,
    seed: int = 0,
) -> Array:
    """Token embeddings of a transformer with random constant parameters, shape (layers + 1, tokens, dimension), unit rows.

    One layer is x -> N(x + step attention(x)) followed by x -> N(x + step feed_forward w tanh(a x)), where N divides by the
    length of each token; queries, keys and values of each head have dimension / heads coordinates.

    >>> random_transformer(layers=2, tokens=3, dimension=8, heads=2).shape
    (3, 3, 8)
    """
    if dimension % heads or heads < 1:
        raise ValueError(f"heads = {heads} is not allowed: must divide the dimension {dimension}")
    rng = np.random.default_rng(seed)
    small = dimension // heads
    q, k, v = rng.standard_normal((3, heads, small, dimension)) / np.sqrt(small)
    out = rng.standard_normal((dimension, dimension)) / np.sqrt(dimension)
    a = rng.standard_normal((4 * dimension, dimension))
    w = rng.standard_normal((dimension, 4 * dimension)) / np.sqrt(4 * dimension)
    x = normalise(rng.standard_normal((tokens, dimension)))
    states = [x]
    for _ in range(layers):
        scores = beta * np.einsum("hsd,id,hse,je->hij", q, x, k, x, optimize=True)
        scores -= scores.max(axis=-1, keepdims=True)
        weights = np.exp(scores)
        weights /= weights.sum(axis=-1, keepdims=True)
        values = np.einsum("hij,hsd,jd->ihs", weights, v, x, optimize=True).reshape(tokens, dimension)
        x = normalise(x + step * values @ out.T)
        x = normalise(x + step * feed_forward * np.tanh(x @ a.T) @ w.T)
        states.append(x)
    return np.stack(states)
