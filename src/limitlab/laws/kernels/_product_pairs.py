"""Averages of products f(u) f(v) over many correlated Gaussian pairs at once, for smooth f (docs/theory/gaussian.md, section 4).

The trapezoidal rule on the whole line converges geometrically for functions that are analytic in a strip, however steep: a step of 0.3 in
the argument of tanh leaves 1e-14, where Gauss-Hermite rules need thousands of nodes, and every halving squares the error. With
Y = rho X + sqrt(1 - rho^2) W the part in W is short exactly where the pair is close to a line, and series in rho converge slowly.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

STEPS = (0.3, 0.15, 0.075)
"""Steps in the argument of f, tried in turn; each is compared with the rules of twice and four times its step."""
LONGEST = 0.5
"""Longest step in standard units; at twice that the Gaussian density itself is summed to 5e-9."""
REACH = 7.5
"""Standard deviations that are summed over: 6e-14 of the weight lies beyond."""
MOST = 1_000_000_000
"""Values of f that one call may take, some seconds."""
CHUNK = 2_000_000
"""Values of f that are held at once."""


def product_averages(
    f: Callable[[Array], Array], std1: Array, std2: Array, correlation: Array, tolerance: float = 1e-10
) -> tuple[Array, NDArray[np.bool_]]:
    """E f(std1 X) f(std2 Y) for standard Gaussians X, Y of each correlation.

    Parameters
    ----------
    f
        Smooth function of arrays.
    std1, std2, correlation
        One entry per pair.
    tolerance
        Error accepted, relative to E|f f|.

    Returns
    -------
    tuple of arrays
        The averages, and whether each of them meets the tolerance; those that do not would take too many values of f.

    Examples
    --------
    >>> value, resolved = product_averages(np.sin, np.array([1.0]), np.array([2.0]), np.array([0.9]))
    >>> exact = (np.exp(1.8 - 2.5) - np.exp(-1.8 - 2.5)) / 2
    >>> bool(abs(value[0] - exact) < 1e-12), resolved.tolist()
    (True, [True])
    """
    rho = np.clip(correlation, -1.0, 1.0)
    spread = np.sqrt((1 - rho) * (1 + rho))
    value, resolved = np.zeros(rho.size), np.zeros(rho.size, dtype=bool)
    spent = 0.0
    for step in STEPS:
        along = _half(step, np.maximum(std1, std2 * np.abs(rho)))
        across = _half(step, std2 * spread)
        work = np.where(resolved, 0.0, (2.0 * along + 1) * (2.0 * across + 1))
        spent += float(work.sum())
        if spent > MOST:
            break
        todo = np.flatnonzero(~resolved)
        todo = todo[np.argsort(work[todo], kind="stable")]
        for chunk in _chunks(todo, work):
            nodes = int(along[chunk].max()), int(across[chunk].max())
            sums, scale = _trapezoid(f, std1[chunk], std2[chunk], rho[chunk], spread[chunk], *nodes)
            value[chunk], resolved[chunk] = sums[0], _settled(sums, scale, tolerance)
        if resolved.all():
            break
    return value, resolved


def _half(step: float, steepness: Array) -> Array:
    """Nodes on one side of 0, a multiple of four."""
    length = np.minimum(LONGEST, step / np.maximum(steepness, 1e-300))
    return 4 * np.ceil(REACH / (4 * length))


def _chunks(members: NDArray[np.intp], work: Array) -> list[NDArray[np.intp]]:
    """Neighbours in the order of their work, as many as may be held at once."""
    if not members.size:
        return []
    heaviest = np.maximum.accumulate(work[members])
    cuts, start = [], 0
    for end in range(1, members.size + 1):
        if (end - start) * heaviest[end - 1] > CHUNK and end - 1 > start:
            cuts.append(end - 1)
            start = end - 1
    return np.split(members, cuts)


def _trapezoid(
    f: Callable[[Array], Array], std1: Array, std2: Array, rho: Array, spread: Array, along: int, across: int
) -> tuple[list[Array], Array]:
    """The double sums over every node, every second and every fourth one, and the average of the absolute values."""
    (x, x_weight), (w, w_weight) = _rule(along), _rule(across)
    first = np.asarray(f(std1[:, None] * x), dtype=float) * x_weight
    second = np.asarray(f(std2[:, None, None] * (rho[:, None, None] * x[:, None] + spread[:, None, None] * w)), dtype=float)
    sums = [
        every**2 * np.sum(first[:, ::every] * (second[:, ::every, ::every] @ w_weight[::every]), axis=1)
        for every in (1, 2, 4)
    ]
    return sums, 4 * np.sum(np.abs(first[:, ::2]) * (np.abs(second[:, ::2, ::2]) @ w_weight[::2]), axis=1)


def _settled(sums: list[Array], scale: Array, tolerance: float) -> NDArray[np.bool_]:
    """Whether the finest sum meets the tolerance: its neighbour does already, or the errors are seen to be squared at every halving."""
    (fine, coarse, coarser), unit = sums, np.maximum(scale, 1e-300)
    last, before = np.abs(fine - coarse) / unit, np.abs(coarse - coarser) / unit
    return (last <= tolerance) | ((10 * last**2 <= tolerance) & (last <= before**1.5))


def _rule(half: int) -> tuple[Array, Array]:
    """Nodes from -REACH to REACH, 0 among them, and their Gaussian weights."""
    nodes = np.linspace(-REACH, REACH, 2 * half + 1)
    return nodes, np.exp(-(nodes**2) / 2) * (REACH / half) / np.sqrt(2 * np.pi)
