"""Self-attention as a force on tokens, and `flow`, the positions of a transformer's tokens over time (layers).

For tokens x_1, ..., x_n on the unit sphere of R^d the drift of token i (before projection on the tangent space) is

    F_i(x) = sum over heads of  sum_j A_ij V x_j  +  w sigma(a x_i + b),      A_ij ~ exp(beta <Q x_i, K x_j>),

with rows of A that add up to 1 (softmax attention) or with A_ij = exp(beta <Q x_i, K x_j>) / n (`normalised=False`). These are
equations (1)-(4) of docs/theory/attention.md. With `normalised=False` and Q = K = V = I the flow is the gradient flow of the energy.

Leading axes of x are independent systems, and `beta` may have one value for each system. Score matrices are computed for a block of
rows at a time, so that no n x n array is stored.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from limitlab._core.checks import array, check_shape, one_of, refuse, whole
from limitlab.errors import Refused
from limitlab.numerics.sphere_flow import Method, flow_on_spheres
from limitlab.numerics.sphere_flow import normalise as unit_rows

# -- the force ----------------------------------------------------------------------------------------------------------

Array = NDArray[Any]
Matrix = Array | Callable[[float], Array]
"""A matrix of shape (d, d), one per system (..., d, d), or a function of time that returns either."""

LARGEST_EXPONENT = 700.0
"""Largest beta of unnormalised attention, because exp overflows for larger values."""

BLOCK_BYTES = 2**20
"""Size of a block of scores in bytes, chosen to fit into the processor's cache."""


@dataclass(frozen=True)
class Head:
    """The matrices of an attention head. None stands for the identity.

    >>> Head(V=0.5 * np.eye(2)).at(0.0)[2]
    array([[0.5, 0. ],
           [0. , 0.5]])
    """

    Q: Matrix | None = None
    K: Matrix | None = None
    V: Matrix | None = None

    def at(self, time: float) -> tuple[Array | None, Array | None, Array | None]:
        """Return the three matrices at a time."""
        q, k, v = (m(time) if callable(m) else m for m in (self.Q, self.K, self.V))
        return q, k, v


@dataclass(frozen=True)
class FeedForward:
    """The layer w sigma(a x + b), applied to each token separately, where w, a, b may be functions of time.

    >>> FeedForward(np.eye(2), np.eye(2), np.zeros(2))(0.0, np.zeros((3, 2))).shape
    (3, 2)
    """

    w: Matrix
    a: Matrix
    b: Matrix | float = 0.0
    activation: Callable[[Array], Array] = np.tanh

    def __call__(self, time: float, x: Array) -> Array:
        """Return the output of the layer for tokens x at a time."""
        w, a, b = (m(time) if callable(m) else np.asarray(m) for m in (self.w, self.a, self.b))
        return np.asarray(self.activation(x @ np.swapaxes(a, -1, -2) + b) @ np.swapaxes(w, -1, -2), dtype=x.dtype)


@dataclass(frozen=True)
class Attention:
    """The drift F of the tokens of a transformer, from attention heads, a feed-forward layer and a temperature.

    Parameters
    ----------
    beta
        Inverse temperature, at least 0, as a number or as one number per system.
    heads
        Attention heads, whose contributions are added.
    feed_forward
        Additional drift of each token, as a function of (time, x).
    normalised
        Whether attention is softmax attention (SA). If False, the weights are exp(score) / n (USA).
    causal
        Whether token i attends only to tokens j <= i.
    block
        Number of rows of scores computed at a time (default: as many as fit in a megabyte).

    Examples
    --------
    At beta = 0 every token moves towards the mean:

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
        array("beta", self.beta, least=0)
        if not self.normalised:
            array("beta", self.beta, most=LARGEST_EXPONENT, remedy="exp(beta) overflows there; use normalised=True")

    def drift(self, time: float, x: Array) -> Array:
        """Return F(x) at a time, of the shape of x and without projection."""
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
    """Return the matrix applied to every token, where None stands for the identity."""
    return x if matrix is None else np.asarray(x @ np.swapaxes(np.asarray(matrix, dtype=x.dtype), -1, -2))


def blocks(x: Array, block: int | None = None) -> Iterator[slice]:
    """Return row ranges whose scores fit in `BLOCK_BYTES`, or ranges of `block` rows.

    >>> [rows.stop for rows in blocks(np.zeros((5, 2)), 2)]
    [2, 4, 5]
    """
    n = x.shape[-2]
    rows = block or max(1, BLOCK_BYTES // max(1, x.itemsize * n * int(np.prod(x.shape[:-2]))))
    whole("block", rows, least=1)
    return (slice(first, min(first + rows, n)) for first in range(0, n, rows))


def _symmetric(beta: Array, x: Array, values: Array, block: int | None) -> Array:
    """Return softmax attention with Q = K = I for many tokens.

    The scores are symmetric, so that each block of exponentials is used twice. The largest score of a row of unit tokens is the
    diagonal score beta. Its subtraction makes the diagonal weight 1.
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


# -- the flow -----------------------------------------------------------------------------------------------------------

UNIT_TOLERANCE = 1e-8


def flow(
    x0: ArrayLike,
    beta: ArrayLike,
    times: ArrayLike,
    Q: Matrix | None = None,
    K: Matrix | None = None,
    V: Matrix | None = None,
    normalised: bool = True,
    heads: Sequence[Any] | int | None = None,
    feed_forward: Any = None,
    *,
    causal: bool = False,
    method: Method = "adaptive",
    step: float | None = None,
    tolerance: float = 1e-11,
    normalise: bool = False,
    dtype: DTypeLike | None = None,
    block: int | None = None,
) -> Array:
    """Return the positions of tokens on the unit sphere under self-attention at the times `times`.

    Parameters
    ----------
    x0
        Tokens at time 0, of unit length, with shape (n, d), or (..., n, d) for independent systems.
    beta
        Inverse temperature, at least 0, as a number or as one number per system.
    times
        A time, or increasing times, all at least 0.
    Q, K, V
        Matrices (d, d), one matrix per system (..., d, d), or functions of time. None stands for the identity. Scores are
        beta <Q x_i, K x_j>.
    normalised
        Whether attention is softmax attention. If False, the weights are exp(score) / n.
    heads
        Several heads, as a sequence of `Head` or of (Q, K, V), instead of Q, K and V. If `heads` is a number H, Q, K and V hold one
        matrix per head along their first axis.
    feed_forward
        Additional drift w sigma(a x + b), as a `FeedForward`, a tuple (w, a, b) or (w, a, b, activation) with tanh as default
        activation, or a function of (time, x).
    causal
        Whether token i attends only to tokens j <= i.
    method, step, tolerance
        The methods are those of `limitlab.numerics.sphere_flow`. The default is adaptive. The default of a fixed step is 0.05, and
        without normalisation at most 0.1 exp(-beta).
    normalise
        Whether to scale the rows of x0 to unit length. If False, rows of another length raise an error.
    dtype
        float64 or float32 (fixed steps only). The default is the type of x0.
    block
        Number of rows of scores computed at a time.

    Returns
    -------
    ndarray
        Positions of shape (times, ..., n, d), or (..., n, d) for a single time.

    Examples
    --------
    >>> x0 = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> x = flow(x0, beta=1.0, times=[0.0, 2.0, 20.0])
    >>> (x[:, 0] @ x[:, 1].T).diagonal().round(4)  # overlap of the two tokens
    array([0.   , 0.914, 1.   ])
    """
    x = checked_tokens(x0, normalise=normalise, dtype=dtype)
    field = Attention(
        beta,
        heads=checked_heads(Q, K, V, heads, x.shape[-1]),
        feed_forward=checked_feed_forward(feed_forward),
        normalised=normalised,
        causal=causal,
        block=block,
    )
    if np.ndim(beta) and np.shape(beta) != x.shape[:-2]:
        raise Refused(f"beta of shape {np.shape(beta)} is not allowed: must be a number or one per system, {x.shape[:-2]}")
    refuse(
        method == "adaptive" and x.dtype != np.float64,
        "dtype = float32 is not allowed with method = 'adaptive': choose 'rk4' or float64",
    )
    _warn_of_antipodes(x)
    longest = 0.05 if normalised else min(0.05, 0.1 * float(np.exp(-np.max(beta))))
    return flow_on_spheres(field.drift, x, times, method=method, step=longest if step is None else step, tolerance=tolerance)


def checked_tokens(x0: ArrayLike, *, normalise: bool = False, dtype: DTypeLike | None = None) -> Array:
    """Return tokens as an array of unit rows, and check that there are at least two tokens and two dimensions.

    >>> checked_tokens([[2.0, 0.0], [0.0, 1.0]], normalise=True)
    array([[1., 0.],
           [0., 1.]])
    """
    tokens = np.asarray(x0)
    x = tokens.astype(np.float64)
    check_shape("x0", x.shape, (..., "n", "d"))
    refuse(min(x.shape[-2:]) < 2, f"x0 of shape {x.shape} is not allowed: must be (..., n, d) with n and d at least 2")
    length = np.linalg.norm(x, axis=-1)
    refuse(not np.isfinite(length).all(), "x0 is not allowed: it has entries that are not finite")
    refuse(np.any(length == 0), "x0 is not allowed: a token is zero and has no direction; remove it")
    tolerance = UNIT_TOLERANCE if tokens.dtype != np.float32 else 1e-5
    worst = float(np.abs(length - 1).max())
    if worst > tolerance and not normalise:
        raise Refused(
            f"x0 is not allowed: the length of a row differs from 1 by {worst:.2g}; scale it or pass normalise=True"
        )
    default_type = tokens.dtype if tokens.dtype == np.float32 else np.float64
    wanted = np.dtype(default_type if dtype is None else dtype)
    one_of("dtype", str(wanted), ("float32", "float64"))
    return unit_rows(x).astype(wanted)


def checked_heads(
    Q: Matrix | None, K: Matrix | None, V: Matrix | None, heads: Sequence[Any] | int | None, dimension: int
) -> list[Head]:
    """Return a list of heads from any of the forms that `flow` accepts, with checked shapes of their matrices."""
    if heads is None:
        parsed = [Head(Q, K, V)]
    elif isinstance(heads, (int, np.integer)):
        stacks = [None if m is None else np.asarray(m) for m in (Q, K, V)]
        refuse(
            heads < 1 or any(m is not None and (m.ndim < 3 or len(m) != heads) for m in stacks),
            f"heads = {heads} is not allowed: Q, K and V must hold that many matrices along their first axis",
        )
        parsed = [Head(*(None if m is None else m[h] for m in stacks)) for h in range(heads)]
    else:
        refuse(not all(m is None for m in (Q, K, V)), "heads is not allowed together with Q, K, V: give the matrices once")
        parsed = [head if isinstance(head, Head) else Head(*head) for head in heads]
        refuse(not parsed, "heads = [] is not allowed: give at least one head")
    for head in parsed:
        for name, matrix in zip("QKV", head.at(0.0), strict=True):
            if matrix is not None:
                check_shape(name, np.shape(matrix), (..., dimension, dimension))
    return parsed


def checked_feed_forward(given: Any) -> Callable[[float, Array], Array] | None:
    """Return a function of (time, x) from any of the forms of the layer that `flow` accepts."""
    if given is None or isinstance(given, FeedForward):
        return given
    if isinstance(given, Sequence) and not isinstance(given, str) and len(given) in (2, 3, 4):
        return FeedForward(*given)
    if callable(given):
        return given
    raise Refused("feed_forward is not allowed: must be FeedForward, (w, a, b[, activation]) or a function of (time, x)")


def _warn_of_antipodes(x: Array) -> None:
    if x.shape[-2] == 2 and np.any(np.einsum("...d,...d->...", x[..., 0, :], x[..., 1, :]) < -1 + 1e-12):
        warnings.warn("two antipodal tokens are an unstable equilibrium: their positions do not change", stacklevel=3)
