"""`flow`: the positions of a transformer's tokens over time (layers), for any heads and feed-forward layer."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from limitlab.models.attention.fields import Attention, FeedForward, Head, Matrix
from limitlab.numerics.sphere_flow import Method, flow_on_spheres
from limitlab.numerics.sphere_flow import normalise as unit_rows

Array = NDArray[Any]

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
    """Tokens on the unit sphere under self-attention: their positions at the given times.

    Parameters
    ----------
    x0
        Tokens at time 0, shape (n, d), or (..., n, d) for independent systems; unit rows.
    beta
        Inverse temperature, at least 0: one number, or one per system.
    times
        One time, or increasing times, all at least 0.
    Q, K, V
        Matrices (d, d), one per system (..., d, d), or functions of time; None is the identity. Scores are beta <Q x_i, K x_j>.
    normalised
        Softmax attention, or exp(score) / n if False.
    heads
        Several heads instead of Q, K, V: a sequence of `Head` or of (Q, K, V). As a number H, Q, K and V hold one matrix per head
        along their first axis.
    feed_forward
        `FeedForward`, a tuple (w, a, b) or (w, a, b, activation) (tanh by default), or a function of (time, x): w sigma(a x + b) is
        added to the drift.
    causal
        Whether token i attends only to tokens j <= i.
    method, step, tolerance
        See `limitlab.numerics.sphere_flow`. The default is adaptive; a fixed step is 0.05 by default (0.1 exp(-beta) at most
        without normalisation).
    normalise
        Scale the rows of x0 to unit length instead of refusing others.
    dtype
        float64 or float32 (fixed steps only); default: that of x0.
    block
        Rows of scores formed at a time.

    Returns
    -------
    ndarray
        Shape (times, ..., n, d), or (..., n, d) for a single time.

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
        raise ValueError(
            f"beta of shape {np.shape(beta)} is not allowed: must be a number or one per system, {x.shape[:-2]}"
        )
    if method == "adaptive" and x.dtype != np.float64:
        raise ValueError("dtype = float32 is not allowed with method = 'adaptive': choose 'rk4' or float64")
    _warn_of_antipodes(x)
    longest = 0.05 if normalised else min(0.05, 0.1 * float(np.exp(-np.max(beta))))
    return flow_on_spheres(field.drift, x, times, method=method, step=longest if step is None else step, tolerance=tolerance)


def checked_tokens(x0: ArrayLike, *, normalise: bool = False, dtype: DTypeLike | None = None) -> Array:
    """Tokens as an array of unit rows, at least two of them in at least two dimensions.

    >>> checked_tokens([[2.0, 0.0], [0.0, 1.0]], normalise=True)
    array([[1., 0.],
           [0., 1.]])
    """
    given = np.asarray(x0)
    x = given.astype(np.float64)
    if x.ndim < 2 or x.shape[-2] < 2 or x.shape[-1] < 2:
        raise ValueError(f"x0 of shape {x.shape} is not allowed: must be (..., n, d) with n and d at least 2")
    length = np.linalg.norm(x, axis=-1)
    if not np.isfinite(length).all():
        raise ValueError("x0 is not allowed: it has entries that are not finite")
    if np.any(length == 0):
        raise ValueError("x0 is not allowed: a token is zero and has no direction; remove it")
    tolerance = UNIT_TOLERANCE if given.dtype != np.float32 else 1e-5
    worst = float(np.abs(length - 1).max())
    if worst > tolerance and not normalise:
        raise ValueError(f"x0 is not allowed: a row has length off by {worst:.2g} from 1; scale it or say normalise=True")
    kept = given.dtype if given.dtype == np.float32 else np.float64
    wanted = np.dtype(kept if dtype is None else dtype)
    if wanted not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype = {wanted} is not allowed: must be float32 or float64")
    return unit_rows(x).astype(wanted)


def checked_heads(
    Q: Matrix | None, K: Matrix | None, V: Matrix | None, heads: Sequence[Any] | int | None, dimension: int
) -> list[Head]:
    """The heads, however they were given, with matrices of the right shape."""
    if heads is None:
        found = [Head(Q, K, V)]
    elif isinstance(heads, (int, np.integer)):
        stacks = [None if m is None else np.asarray(m) for m in (Q, K, V)]
        if heads < 1 or any(m is not None and (m.ndim < 3 or len(m) != heads) for m in stacks):
            raise ValueError(
                f"heads = {heads} is not allowed: Q, K and V must hold that many matrices along their first axis"
            )
        found = [Head(*(None if m is None else m[h] for m in stacks)) for h in range(heads)]
    else:
        if not all(m is None for m in (Q, K, V)):
            raise ValueError("heads and Q, K, V together are not allowed: give the matrices once")
        found = [head if isinstance(head, Head) else Head(*head) for head in heads]
        if not found:
            raise ValueError("heads = [] is not allowed: give at least one head")
    for head in found:
        for name, matrix in zip("QKV", head.at(0.0), strict=True):
            if matrix is not None and np.shape(matrix)[-2:] != (dimension, dimension):
                shape = np.shape(matrix)
                raise ValueError(f"{name} of shape {shape} is not allowed: must be (..., {dimension}, {dimension})")
    return found


def checked_feed_forward(given: Any) -> Callable[[float, Array], Array] | None:
    """A function of (time, x), however the layer was given."""
    if given is None or isinstance(given, FeedForward):
        return given
    if isinstance(given, Sequence) and not isinstance(given, str) and len(given) in (2, 3, 4):
        return FeedForward(*given)
    if callable(given):
        return given
    raise ValueError("feed_forward is not allowed: must be FeedForward, (w, a, b[, activation]) or a function of (time, x)")


def _warn_of_antipodes(x: Array) -> None:
    if x.shape[-2] == 2 and np.any(np.einsum("...d,...d->...", x[..., 0, :], x[..., 1, :]) < -1 + 1e-12):
        warnings.warn("two antipodal tokens are an unstable equilibrium: they stay where they are", stacklevel=3)
