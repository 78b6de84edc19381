"""Self-attention as a force: what each token is pulled by, given all tokens.

For tokens x_1, ..., x_n on the unit sphere of R^d the drift of token i (before projection on the tangent space) is

    F_i(x) = sum over heads of  sum_j A_ij V x_j  +  w sigma(a x_i + b),      A_ij ~ exp(beta <Q x_i, K x_j>),

with rows of A that add up to 1 (softmax attention) or with A_ij = exp(beta <Q x_i, K x_j>) / n (`normalised=False`, the true
gradient flow when Q = K = V = I). Equations (1)-(4) of docs/theory/attention.md.

Leading axes of x are independent systems, and `beta` may have one value for each. Score matrices are formed for a block of rows
at a time, so memory stays bounded: no n x n array ever exists beyond the block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
Matrix = Array | Callable[[float], Array]
"""A matrix of shape (d, d), one per system (..., d, d), or a function of time that returns either."""

LARGEST_EXPONENT = 700.0
"""exp of more overflows: unnormalised attention is refused beyond it."""

BLOCK_BYTES = 2**20
"""Size of a block of scores: it should stay in the cache."""


@dataclass(frozen=True)
class Head:
    """One attention head; None is the identity.

    >>> Head(V=0.5 * np.eye(2)).at(0.0)[2]
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    Q: Matrix | None = None
    K: Matrix | None = None
    V: Matrix | None = None

    def at(self, time: float) -> tuple[Array | None, Array | None, Array | None]:
        """The three matrices at a time."""
        q, k, v = (m(time) if callable(m) else m for m in (self.Q, self.K, self.V))
        return q, k, v


@dataclass(frozen=True)
class FeedForward:
    """The layer w sigma(a x + b) that acts on every token alone; w, a, b may be functions of time.

    >>> FeedForward(np.eye(2), np.eye(2), np.zeros(2))(0.0, np.zeros((3, 2))).shape
    (3, 2)
    """

    w: Matrix
    a: Matrix
    b: Matrix | float = 0.0
    activation: Callable[[Array], Array] = np.tanh

    def __call__(self, time: float, x: Array) -> Array:
        """The layer's output for tokens x at a time."""
        w, a, b = (m(time) if callable(m) else np.asarray(m) for m in (self.w, self.a, self.b))
        return np.asarray(self.activation(x @ np.swapaxes(a, -1, -2) + b) @ np.swapaxes(w, -1, -2), dtype=x.dtype)


@dataclass(frozen=True)
class Attention:
    """The drift F of a transformer's tokens: heads, feed-forward layer, temperature.

    Parameters
    ----------
    beta
        Inverse temperature, at least 0: one number, or one per system.
    heads
        Attention heads; their contributions are added.
    feed_forward
        Further drift of each token alone, as a function of (time, x).
    normalised
        Softmax attention (SA) or, if False, exp(score) / n (USA).
    causal
        Whether token i attends only to tokens j <= i.
    block
        Rows of scores formed at a time (default: as many as fit in a megabyte).

    Examples
    --------
    At beta = 0 every token is pulled to the mean:

    >>> Attention(0.0).drift(0.0, np.array([[1.0, 0.0], [0.0, 1.0]]))
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """

    beta: ArrayLike
    heads: Sequence[Head] = field(default_factory=lambda: (Head(),))
    feed_forward: Callable[[float, Array], Array] | None = None
    normalised: bool = True
    causal: bool = False
    block: int | None = None

    def __post_init__(self) -> None:
        beta = np.asarray(self.beta, dtype=float)
        if not np.all(np.isfinite(beta) & (beta >= 0)):
            raise ValueError(f"beta = {self.beta!r} is not allowed: must be finite and at least 0")
        if not self.normalised and np.any(beta > LARGEST_EXPONENT):
            raise ValueError(
                f"beta = {self.beta!r} is not allowed without normalisation: must be at most {LARGEST_EXPONENT:g}, "
                "where exp(beta) overflows; use normalised=True"
            )

    def drift(self, time: float, x: Array) -> Array:
        """F(x) at a time: the shape of x, not projected."""
        total = np.zeros_like(x)
        for head in self.heads:
            total += self._head(head, time, x)
        if self.feed_forward is not None:
            total += self.feed_forward(time, x)
        return total

    def _head(self, head: Head, time: float, x: Array) -> Array:
        q, k, v = head.at(time)
        queries, keys = applied(q, x), applied(k, x)
        values = applied(v, x)
        beta = np.asarray(self.beta, dtype=x.dtype)[..., None, None]
        if q is None and k is None and self.normalised and not self.causal and x.shape[-2] > 1024:
            return _symmetric(beta, x, values, self.block)
        out = np.empty_like(x)
        for rows in blocks(x, self.block):
            scores = beta * (queries[..., rows, :] @ np.swapaxes(keys, -1, -2))
            if self.causal:
                later = np.arange(x.shape[-2]) > np.arange(x.shape[-2])[rows, None]
                scores = np.where(later, -np.inf, scores)
            out[..., rows, :] = self._weights(scores) @ values
        return out

    def _weights(self, scores: Array) -> Array:
        if not self.normalised:
            return np.asarray(np.exp(scores) / scores.dtype.type(scores.shape[-1]))
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        return scores


def applied(matrix: Array | None, x: Array) -> Array:
    """The matrix applied to every token; None is the identity."""
    return x if matrix is None else np.asarray(x @ np.swapaxes(np.asarray(matrix, dtype=x.dtype), -1, -2))


def blocks(x: Array, block: int | None = None) -> Iterator[slice]:
    """Row ranges whose scores fit in `BLOCK_BYTES` (or have the given number of rows).

    >>> [rows.stop for rows in blocks(np.zeros((5, 2)), 2)]
    [2, 4, 5]
    """
    n = x.shape[-2]
    rows = block or max(1, BLOCK_BYTES // max(1, x.itemsize * n * int(np.prod(x.shape[:-2]))))
    if rows < 1:
        raise ValueError(f"block = {block} is not allowed: must be at least 1 row")
    return (slice(first, min(first + rows, n)) for first in range(0, n, rows))


def _symmetric(beta: Array, x: Array, values: Array, block: int | None) -> Array:
    """Softmax attention with Q = K = I and many tokens: scores are symmetric, so each block of exponentials serves twice.

    The largest score of a row of unit tokens is its own, beta; subtracting it makes the diagonal weight 1.
    """
    side = block or max(64, int((BLOCK_BYTES // x.itemsize) ** 0.5))
    n = x.shape[-2]
    top = np.zeros_like(x)
    mass = np.zeros((*x.shape[:-1], 1), dtype=x.dtype)
    scaled = beta * x
    for first in range(0, n, side):
        rows = slice(first, min(first + side, n))
        for second in range(first, n, side):
            columns = slice(second, min(second + side, n))
            weights = scaled[..., rows, :] @ np.swapaxes(x[..., columns, :], -1, -2)
            weights -= beta
            np.exp(weights, out=weights)
            top[..., rows, :] += weights @ values[..., columns, :]
            mass[..., rows, :] += weights.sum(axis=-1, keepdims=True)
            if second > first:
                top[..., columns, :] += np.swapaxes(weights, -1, -2) @ values[..., rows, :]
                mass[..., columns, :] += weights.sum(axis=-2)[..., None]
    return np.asarray(top / mass)
