"""Flows of many small systems with Q = K = V = I, for tokens or their Gram matrices, by compiled adaptive integration.

The Gram matrix of the tokens obeys a closed equation, so that for d >= n the cost does not depend on d (`gram_flow`). For d < n the Gram
equation is unstable. Rounding makes an eigenvalue negative, and overlaps below -1 then diverge. `gram_flow` raises an error in this case,
and `gram_path` integrates the vectors instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.checks import array, refuse, whole
from limitlab.errors import ConvergenceError
from limitlab.models.attention.token_flow import LARGEST_EXPONENT, checked_tokens
from limitlab.models.data import sphere
from limitlab.numerics.sphere_flow import checked_times, normalise

Array = NDArray[Any]

INDEPENDENT = 1e-10
"""Smallest eigenvalue of a Gram matrix that counts as positive."""

MOST_STEPS = 200_000


def gram_flow(
    gram: ArrayLike, beta: ArrayLike, times: ArrayLike, *, normalised: bool = True, tolerance: float = 1e-9
) -> Array:
    """Return Gram matrices over time, from the Gram matrices of linearly independent tokens (d >= n).

    Parameters
    ----------
    gram
        Overlaps at time 0, of shape (n, n) or (systems, n, n).
    beta
        Inverse temperature, as a number or as one number per system.
    times
        A time, or increasing times.
    normalised
        Whether attention is softmax attention. If False, the weights are exp(score) / n.
    tolerance
        Absolute error allowed in each step.

    Returns
    -------
    ndarray
        Gram matrices of shape (times, systems, n, n), without the axes that the arguments do not have.

    Examples
    --------
    >>> gram_flow(np.eye(3), 1.0, 2.0)[0].round(6)
    array([1.      , 0.894766, 0.894766])
    """
    matrices = array("gram", gram, shape=(..., "n", "n"))
    refuse(
        matrices.ndim > 3 or matrices.shape[-1] < 2,
        f"gram of shape {matrices.shape} is not allowed: must be (n, n) or (systems, n, n) with n at least 2",
    )
    refuse(
        not np.allclose(np.diagonal(matrices, axis1=-2, axis2=-1), 1, atol=1e-8, rtol=0),
        "gram is not allowed: its diagonal must be 1 (tokens of unit length)",
    )
    refuse(
        not np.linalg.eigvalsh(matrices).min() > INDEPENDENT,
        "gram is not allowed: the tokens are linearly dependent (d < n, or equal tokens), where the Gram equation is "
        "unstable; integrate the vectors (token_paths or flow)",
    )
    start = matrices.reshape(-1, *matrices.shape[-2:]).copy()
    diagonal = np.arange(start.shape[-1])
    start[:, diagonal, diagonal] = 1.0
    return _shaped(_run(True, start, beta, times, normalised, tolerance), matrices.ndim == 3, times)


def token_paths(
    x0: ArrayLike, beta: ArrayLike, times: ArrayLike, *, normalised: bool = True, tolerance: float = 1e-9
) -> Array:
    """Return tokens over time for many small systems with Q = K = V = I.

    The results are those of `flow`. The integration is compiled, and each system has a separate adaptive step size.

    >>> x = token_paths(np.eye(3), 1.0, 2.0)
    >>> round(float(x[0] @ x[1]), 6)
    0.894766
    """
    x = checked_tokens(x0, dtype=np.float64)
    start = np.ascontiguousarray(x.reshape(-1, *x.shape[-2:]))
    return _shaped(_run(False, start, beta, times, normalised, tolerance), x.ndim > 2, times, x.shape[:-2])


def gram_path(
    x0: ArrayLike, beta: ArrayLike, times: ArrayLike, *, normalised: bool = True, tolerance: float = 1e-9
) -> Array:
    """Return Gram matrices over time, from tokens.

    The function integrates the Gram matrices for d >= n, and the vectors for d < n, where the Gram equation is unstable.

    >>> gram_path(np.eye(3), 1.0, [0.0, 2.0])[:, 0, 1].round(6)
    array([0.      , 0.894766])
    """
    x = checked_tokens(x0, dtype=np.float64)
    gram = x @ np.swapaxes(x, -1, -2)
    if x.shape[-1] >= x.shape[-2] and np.linalg.eigvalsh(gram).min() > INDEPENDENT:
        return gram_flow(gram, beta, times, normalised=normalised, tolerance=tolerance)
    paths = token_paths(x, beta, times, normalised=normalised, tolerance=tolerance)
    return np.asarray(paths @ np.swapaxes(paths, -1, -2))


def _run(gram: bool, start: Array, beta: ArrayLike, times: ArrayLike, normalised: bool, tolerance: float) -> Array:
    from limitlab.models.attention import _compiled as compiled

    grid = checked_times(times)
    betas = array("beta", beta, least=0, most=LARGEST_EXPONENT)
    refuse(
        betas.size not in (1, len(start)),
        f"beta of shape {betas.shape} is not allowed: must be a number or one per system, {len(start)}",
    )
    betas = np.broadcast_to(betas.ravel(), len(start))
    out = np.empty((len(start), grid.size, *start.shape[1:]))
    status = np.array(
        [
            compiled.integrate(gram, normalised, float(b), x, grid, tolerance, MOST_STEPS, path)
            for b, x, path in zip(betas, start, out, strict=True)
        ]
    )
    if status.any():
        worst = int(np.flatnonzero(status)[0])
        reason = {
            compiled.NOT_FINITE: f"is not finite; use a smaller tolerance than {tolerance:g}",
            compiled.OUTSIDE: f"has an overlap outside [-1, 1]; use a smaller tolerance than {tolerance:g}",
            compiled.TOO_MANY_STEPS: f"needs more than {MOST_STEPS} steps until time {grid[-1]:g}; use a shorter time",
        }[int(status[worst])]
        raise ConvergenceError(f"system {worst} with beta = {betas[worst]:g} {reason}", out)
    return out


def _shaped(out: Array, several: bool, times: ArrayLike, systems: tuple[int, ...] = ()) -> Array:
    """Return (systems, times, ...) as (times, *systems, ...), without the axes that the arguments did not have."""
    moved = np.moveaxis(out, 1, 0)
    if not several:
        moved = moved[:, 0]
    elif systems:
        moved = moved.reshape(len(moved), *systems, *out.shape[2:])
    return moved if np.ndim(times) else np.asarray(moved[0])


# -- starts -----------------------------------------------------------------------------------------------------------


def random_tokens(rng: np.random.Generator, systems: int, tokens: int, dimension: int) -> Array:
    """Return independent uniform tokens on the sphere, shape (systems, tokens, dimension).

    >>> random_tokens(np.random.default_rng(0), 2, 3, 4).shape
    (2, 3, 4)
    """
    return sphere(rng, systems * tokens, dimension).reshape(systems, tokens, dimension)


def random_grams(rng: np.random.Generator, systems: int, tokens: int, dimension: int) -> Array:
    """Return Gram matrices of uniform tokens for d >= n, at a cost that does not depend on the dimension d.

    The method is Bartlett's decomposition.

    >>> random_grams(np.random.default_rng(0), 1, 2, 10**6)[0, 0, 1].round(4)
    np.float64(0.0006)
    """
    whole("dimension", dimension, least=tokens, remedy="for fewer dimensions than tokens use random_tokens")
    lower = np.tril(rng.standard_normal((systems, tokens, tokens)), -1)
    diagonal = np.arange(tokens)
    lower[:, diagonal, diagonal] = np.sqrt(rng.chisquare(dimension - diagonal, size=(systems, tokens)))
    x = normalise(lower)
    return np.asarray(x @ np.swapaxes(x, -1, -2))


def correlated_tokens(rng: np.random.Generator, tokens: int, dimension: int, overlap: float) -> Array:
    """Return random tokens whose overlaps tend to a common value as the dimension grows, shape (tokens, dimension).

    >>> x = correlated_tokens(np.random.default_rng(0), 3, 100_000, 0.5)
    >>> (x @ x.T)[0].round(2)
    array([1. , 0.5, 0.5])
    """
    target = np.full((tokens, tokens), overlap)
    np.fill_diagonal(target, 1.0)
    return normalise(np.linalg.cholesky(target) @ sphere(rng, tokens, dimension))
