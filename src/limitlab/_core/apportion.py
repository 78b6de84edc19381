"""Division of a whole number in given proportions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab.errors import Refused


def apportion(size: int, weights: ArrayLike) -> NDArray[np.int64]:
    """Split `size` things into groups in proportion to the weights, at least one each (method of the largest remainder).

    >>> apportion(10, [0.55, 0.44, 0.01]).tolist()
    [5, 4, 1]
    """
    shares = np.asarray(weights, dtype=float) / np.sum(weights)
    if size < len(shares):
        raise Refused(f"size = {size} is not allowed: must be at least the number of groups, {len(shares)}")
    exact = shares * size
    counts = np.maximum(np.floor(exact).astype(np.int64), 1)
    while counts.sum() != size:
        short = counts.sum() < size
        gap = exact - counts if short else np.where(counts > 1, counts - exact, -np.inf)
        counts[np.argmax(gap)] += 1 if short else -1
    return counts
