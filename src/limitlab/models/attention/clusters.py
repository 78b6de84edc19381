"""What one measures on tokens: overlaps, shares of close pairs, numbers of clusters, energies. Leading axes are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]


def mean_overlap(gram: ArrayLike) -> Array:
    """Mean of <x_i, x_j> over i != j.

    >>> mean_overlap([[1.0, 0.2], [0.2, 1.0]]).round(12)
    np.float64(0.2)
    """
    g = np.asarray(gram)
    n = g.shape[-1]
    return np.asarray((g.sum(axis=(-2, -1)) - np.trace(g, axis1=-2, axis2=-1)) / (n * (n - 1)))[()]


def smallest_overlap(gram: ArrayLike) -> Array:
    """Smallest <x_i, x_j>: all tokens are one cluster when it is close to 1.

    >>> smallest_overlap([[1.0, 0.2], [0.2, 1.0]])
    np.float64(0.2)
    """
    return np.asarray(np.asarray(gram).min(axis=(-2, -1)))[()]


def pair_fraction(gram: ArrayLike, closeness: float = 1e-3, *, antipodal: bool = False) -> Array:
    """Share of pairs i != j with <x_i, x_j> > 1 - closeness; with `antipodal`, of |<x_i, x_j>|.

    >>> pair_fraction(np.ones((3, 3)))
    np.float64(1.0)
    """
    g = _finite(gram)
    n = g.shape[-1]
    close = ((np.abs(g) if antipodal else g) > 1 - closeness).sum(axis=(-2, -1))
    return np.asarray((close - n) / (n * (n - 1)))[()]  # the diagonal is always close


def all_close(gram: ArrayLike, closeness: float = 1e-3) -> Array:
    """Whether every pair is close.

    >>> bool(all_close(np.ones((3, 3))))
    True
    """
    return np.asarray(smallest_overlap(_finite(gram)) > 1 - closeness)[()]


def cluster_count(gram: ArrayLike, closeness: float = 1e-3) -> Array:
    """Number of connected components of the graph of close pairs.

    >>> int(cluster_count([[1.0, 0.9995, 0.0], [0.9995, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    2
    """
    from scipy.sparse.csgraph import connected_components

    g = _finite(gram)
    flat = g.reshape(-1, *g.shape[-2:]) > 1 - closeness
    counts = [connected_components(close, directed=False, return_labels=False) for close in flat]
    return np.asarray(counts).reshape(g.shape[:-2])[()]


def circle_clusters(angles: ArrayLike, closeness: float = 1e-3, least_share: float = 0.01) -> int:
    """Number of clusters of tokens on the circle: chains of neighbours closer than arccos(1 - closeness).

    Tokens that are still on their way from one cluster to another form short chains: those with less than `least_share` of all
    tokens do not count.

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
    """E_beta = sum_ij exp(beta <x_i, x_j>) / (2 beta n^2), which self-attention with Q = K = V = I never decreases.

    At beta = 0 the constant is dropped: E_0 = sum_ij <x_i, x_j> / 2n^2 (docs/theory/attention.md, eq. 5).

    >>> token_energy(np.ones((2, 2)), [0.0, 1.0]).round(6).tolist()
    [0.5, 1.359141]
    """
    g = np.asarray(gram, dtype=float)
    b = np.asarray(beta, dtype=float)
    hot = np.where(b > 0, b, 1.0)
    exponential = np.exp(hot[..., None, None] * g).mean(axis=(-2, -1)) / (2 * hot)
    return np.asarray(np.where(b > 0, exponential, g.mean(axis=(-2, -1)) / 2))[()]


def energy_rate(x: ArrayLike, velocity: ArrayLike, beta: float, normalised: bool = True) -> float:
    """dE_beta/dt along self-attention: (1/n) sum_i (Z_i / n) |x_i'|^2, without Z_i / n for unnormalised attention.

    >>> energy_rate(np.eye(2), np.zeros((2, 2)), 1.0)
    0.0
    """
    x, v = np.asarray(x, dtype=float), np.asarray(velocity, dtype=float)
    mass = np.exp(beta * (x @ x.T)).mean(axis=-1) if normalised else np.ones(len(x))
    return float(np.mean(mass * (v**2).sum(axis=-1)))


def _finite(gram: ArrayLike) -> Array:
    """NaN > 1 - closeness is False: a diverged system would silently count as not clustered."""
    g = np.asarray(gram)
    if not np.isfinite(g).all():
        raise ValueError("gram is not allowed: it has entries that are not finite; use a smaller step")
    return g
