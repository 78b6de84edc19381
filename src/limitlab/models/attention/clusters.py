"""Measurements on tokens, such as overlaps, shares of close pairs, numbers of clusters and energies.

Leading axes of the arguments are preserved. `overlap_profile` measures how the tokens of any transformer cluster from layer to layer, from
an array of stored embeddings (layers, tokens, d). The built-in example, `random_transformer`, applies the same random layer repeatedly
(constant parameters, as in ALBERT). The layer has layer normalisation, several attention heads, a feed-forward layer and residual
connections.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.checks import array, number, refuse, whole
from limitlab.numerics.sphere_flow import normalise

# -- measurements -------------------------------------------------------------------------------------------------------

Array = NDArray[Any]


def mean_overlap(gram: ArrayLike) -> Array:
    """Return the mean inner product of two different tokens.

    >>> mean_overlap([[1.0, 0.2], [0.2, 1.0]]).round(12)
    np.float64(0.2)
    """
    g = np.asarray(gram)
    n = g.shape[-1]
    return np.asarray((g.sum(axis=(-2, -1)) - np.trace(g, axis1=-2, axis2=-1)) / (n * (n - 1)))[()]


def smallest_overlap(gram: ArrayLike) -> Array:
    """Return the smallest <x_i, x_j>, which is close to 1 if all tokens form one cluster.

    >>> smallest_overlap([[1.0, 0.2], [0.2, 1.0]])
    np.float64(0.2)
    """
    return np.asarray(np.asarray(gram).min(axis=(-2, -1)))[()]


def pair_fraction(gram: ArrayLike, closeness: float = 1e-3, *, antipodal: bool = False) -> Array:
    """Return the share of pairs i != j with <x_i, x_j> > 1 - closeness.

    With `antipodal` the condition is |<x_i, x_j>| > 1 - closeness.

    >>> pair_fraction(np.ones((3, 3)))
    np.float64(1.0)
    """
    g = _finite(gram)
    n = g.shape[-1]
    close = ((np.abs(g) if antipodal else g) > 1 - closeness).sum(axis=(-2, -1))
    return np.asarray((close - n) / (n * (n - 1)))[()]  # the n entries of the diagonal are always counted


def all_close(gram: ArrayLike, closeness: float = 1e-3) -> Array:
    """Return whether every pair has an overlap <x_i, x_j> > 1 - closeness.

    >>> bool(all_close(np.ones((3, 3))))
    True
    """
    return np.asarray(smallest_overlap(_finite(gram)) > 1 - closeness)[()]


def cluster_count(gram: ArrayLike, closeness: float = 1e-3) -> Array:
    """Return the number of connected components of the graph in which tokens with <x_i, x_j> > 1 - closeness are joined.

    >>> int(cluster_count([[1.0, 0.9995, 0.0], [0.9995, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    2
    """
    from scipy.sparse.csgraph import connected_components

    g = _finite(gram)
    flat = g.reshape(-1, *g.shape[-2:]) > 1 - closeness
    counts = [connected_components(close, directed=False, return_labels=False) for close in flat]
    return np.asarray(counts).reshape(g.shape[:-2])[()]


def circle_clusters(angles: ArrayLike, closeness: float = 1e-3, least_share: float = 0.01) -> int:
    """Return the number of clusters on the circle, as chains of neighbours closer than arccos(1 - closeness).

    Tokens that are still moving between clusters form short chains. Chains with less than `least_share` of all tokens do not
    count.

    >>> circle_clusters([0.0, 0.01, 3.0, 6.28])
    2
    """
    theta = np.sort(np.mod(np.asarray(angles, dtype=float), 2 * np.pi))
    gaps = np.diff(np.r_[theta, theta[0] + 2 * np.pi])
    ends = np.flatnonzero(gaps > np.arccos(1 - closeness))
    if not ends.size:
        return 1
    sizes = np.diff(np.r_[ends, ends[0] + theta.size])
    return int((sizes >= least_share * theta.size).sum())


def token_energy(gram: ArrayLike, beta: ArrayLike) -> Array:
    """Return E_beta = sum_ij exp(beta <x_i, x_j>) / (2 beta n^2), which self-attention with Q = K = V = I never decreases.

    At beta = 0 the result is E_0 = sum_ij <x_i, x_j> / 2n^2, without the divergent constant (docs/theory/attention.md, eq. 5).

    >>> token_energy(np.ones((2, 2)), [0.0, 1.0]).round(6).tolist()
    [0.5, 1.359141]
    """
    g = np.asarray(gram, dtype=float)
    b = np.asarray(beta, dtype=float)
    hot = np.where(b > 0, b, 1.0)
    exponential = np.exp(hot[..., None, None] * g).mean(axis=(-2, -1)) / (2 * hot)
    return np.asarray(np.where(b > 0, exponential, g.mean(axis=(-2, -1)) / 2))[()]


def energy_rate(x: ArrayLike, velocity: ArrayLike, beta: float, normalised: bool = True) -> float:
    """Return the time derivative of the energy E_beta along self-attention, which is (1/n) sum_i (Z_i / n) |x_i'|^2.

    For unnormalised attention the factor Z_i / n is missing.

    >>> energy_rate(np.eye(2), np.zeros((2, 2)), 1.0)
    0.0
    """
    x, v = np.asarray(x, dtype=float), np.asarray(velocity, dtype=float)
    mass = np.exp(beta * (x @ x.T)).mean(axis=-1) if normalised else np.ones(len(x))
    return float(np.mean(mass * (v**2).sum(axis=-1)))


def _finite(gram: ArrayLike) -> Array:
    """Return the Gram matrix, or raise an error if it is not finite.

    Without this check a diverged system would count as not clustered, because NaN > 1 - closeness is False.
    """
    g = np.asarray(gram)
    refuse(not np.isfinite(g).all(), "gram is not allowed: it has entries that are not finite; use a smaller step")
    return g


# -- layer by layer -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OverlapProfile:
    """Measures of the clustering of tokens over the layers of a network, with one entry (or row) per layer.

    Attributes
    ----------
    histograms, edges
        Share of the pairs i < j in each bin of the overlap <x_i, x_j>, and the bins' edges.
    mean, spread
        Mean and standard deviation of the overlaps.
    pair_probability, clusters
        Share of pairs with overlap above 1 - closeness, and number of connected groups of such pairs.
    closeness
        The number that defines these pairs.
    """

    histograms: Array
    edges: Array
    mean: Array
    spread: Array
    pair_probability: Array
    clusters: Array
    closeness: float

    def collapse_layer(self, share: float = 0.5) -> int | None:
        """Return the first layer at which `pair_probability` is at least `share`, or None if there is none."""
        reached = np.flatnonzero(self.pair_probability >= share)
        return int(reached[0]) if reached.size else None


def overlap_profile(
    embeddings: ArrayLike, *, closeness: float = 0.01, bins: int = 50, centre: bool = False
) -> OverlapProfile:
    """Return the overlaps of normalised tokens over the layers of a network.

    Parameters
    ----------
    embeddings
        Array of shape (layers, tokens, d) of the tokens after each layer. The function normalises them.
    closeness
        Pairs with overlap above 1 - closeness count as merged.
    bins
        Number of bins between -1 and 1.
    centre
        Whether to subtract the mean token of each layer first. Use this if all tokens have a large common offset.

    Examples
    --------
    >>> x = random_transformer(layers=12, tokens=16, dimension=32, seed=0)
    >>> profile = overlap_profile(x)
    >>> profile.histograms.shape
    (13, 50)
    >>> bool(profile.mean[-1] > profile.mean[0])  # the tokens of a random network move together
    True
    """
    x = array("embeddings", embeddings, shape=("layers", "tokens", "d"))
    refuse(min(x.shape[1:]) < 2, f"embeddings of shape {x.shape} is not allowed: give at least 2 tokens and 2 dimensions")
    closeness = number("closeness", closeness, above=0, below=1)
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
    """Return token embeddings of a transformer with random constant parameters, shape (layers + 1, tokens, dimension).

    One layer is x -> N(x + step attention(x)) followed by x -> N(x + step feed_forward w tanh(a x)), where N divides each token
    by its length. Queries, keys and values of each head have dimension / heads coordinates.

    >>> random_transformer(layers=2, tokens=3, dimension=8, heads=2).shape
    (3, 3, 8)
    """
    whole("heads", heads, least=1)
    refuse(dimension % heads, f"heads = {heads} is not allowed: must divide the dimension {dimension}")
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
