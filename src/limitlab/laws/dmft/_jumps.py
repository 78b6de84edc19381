"""Location of the arguments in which the gradient of a loss jumps, from its values along random lines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limitlab.laws.dmft._losses import Loss, Part

Floats = NDArray[np.float64]

LINES, POINTS = 48, 257
"""Number of random lines per argument, and points on each."""

CANDIDATES, HALVINGS = 3, 14
"""Intervals per line that are halved, and halvings. The last intervals are about 2e-6 standard deviations wide."""

REACH = 5.0
"""End of the lines, in standard deviations of the argument."""

STEEP = 1e3
"""Slope, relative to the mean size of the values, above which a function of the truth counts as discontinuous."""


def jumping_arguments(loss: Loss, signal: Floats, start: Floats, steepest: float) -> tuple[str, ...]:
    """Return the arguments in which the gradient of a loss of vectors jumps, among "r" and "w".

    `signal` and `start` are the Gram matrices of truth and start, which determine the size of the arguments. A slope in r above
    `steepest` counts as a jump.

    >>> from limitlab.laws.dmft._losses import Loss, as_vector
    >>> absolute = as_vector(Loss(lambda r, w, e: np.sign(r - w), None, None, lambda r, w, e: abs(r - w)))
    >>> jumping_arguments(absolute, np.eye(1), np.eye(1), 10.0)
    ('r', 'w')
    """
    size = float(np.sqrt(max(np.diag(signal).max(), np.diag(start).max())))
    scales = np.full(len(start), size), np.sqrt(np.diag(signal))
    jumps = []
    for name, argument in (("r", 0), ("w", 1)):
        coordinates = range(1 if argument == 0 and loss.exchangeable else len(scales[argument]))
        slopes, sizes = zip(*(steepest_slope(loss.first, scales, argument, i) for i in coordinates), strict=True)
        bound = steepest if name == "r" else STEEP * max(sizes) / float(scales[1].max())
        if max(slopes) > max(bound, 1e-6 * STEEP * max(sizes)):
            jumps.append(name)
    return tuple(jumps)


def steepest_slope(part: Part, scales: tuple[Floats, Floats], argument: int, coordinate: int) -> tuple[float, float]:
    """Return the largest slope of a function of (r, w, e) along one coordinate, and its mean size.

    Parameters
    ----------
    part
        Function of arrays (m, N), (q, N), (N), with any leading axes in its result.
    scales
        Standard deviations of the coordinates of r and of w.
    argument, coordinate
        0 for r or 1 for w, and the coordinate that varies along the lines.
    """
    rng = np.random.default_rng(7)
    r, w = (scale[:, None] * rng.standard_normal((len(scale), LINES)) for scale in scales)
    e = rng.standard_normal(LINES)
    reach = REACH * float(scales[argument][coordinate])

    def along(lines: NDArray[np.int64], points: Floats) -> Floats:
        arguments = [r[:, lines].copy(), w[:, lines].copy(), e[lines]]
        arguments[argument][coordinate] = points
        values = np.asarray(part(*arguments), dtype=float)
        return values.reshape(-1, lines.size)

    grid = np.linspace(-reach, reach, POINTS) + 1e-4 * reach * rng.random()
    values = along(np.repeat(np.arange(LINES), POINTS), np.tile(grid, LINES))
    size = float(np.abs(values).mean())
    changes = np.abs(np.diff(values.reshape(-1, LINES, POINTS), axis=-1)).max(axis=0)
    padded = np.pad(changes, ((0, 0), (1, 1)), mode="edge")
    unlike = changes - np.minimum(padded[:, :-2], padded[:, 2:])  # how much an interval exceeds its neighbours
    first = np.argsort(unlike, axis=1)[:, -CANDIDATES:]
    steep = np.argsort(changes, axis=1)[:, -1:]
    places = np.concatenate([first, steep], axis=1)
    lines = np.repeat(np.arange(LINES), places.shape[1])
    low, high = grid[places].ravel(), grid[places + 1].ravel()
    below, above = along(lines, low), along(lines, high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        at = along(lines, middle)
        left = np.abs(at - below).max(axis=0) >= np.abs(above - at).max(axis=0)
        low, high = np.where(left, low, middle), np.where(left, middle, high)
        below, above = np.where(left, below, at), np.where(left, at, above)
    slopes = np.abs(above - below).max(axis=0) / (high - low)
    return float(slopes.max()), size
