"""Tables of functions of one variable for compiled loops, with a cubic polynomial on each of many small cells.

A compiled loop cannot call a user's Python function. It can read a table of cells between the kinks of the function. On a cell of width h
the error of the cubic is at most h^4 |f''''| / 3072, which is about 1e-12 for h = 1/128.

The loops read a table with `limitlab.models.online.look_up`.
This module does not import numba, so that laws can import it without loading numba.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.models.one_variable import REACH

Array = NDArray[np.float64]

CELLS = 128  # number of cells per unit of length
CHEBYSHEV = np.cos(np.pi * (np.arange(4) + 0.5) / 4)  # nodes of a cell, inside (-1, 1)


class Table(NamedTuple):
    """Table of cubics on the cells between `edges`, which are the ends and the kinks.

    Segment s has cells of width 1 / `per_unit[s]`, and its first cell is row `first[s]` of `cubics`.
    """

    edges: Array
    per_unit: Array
    first: NDArray[np.int64]
    cubics: Array


def tabulate(function: Callable[[Array], Any], kinks: Sequence[float] = ()) -> Table:
    """Return the table of a function on [-14, 14], which the outermost cubics continue outside this interval.

    Parameters
    ----------
    function
        Function of arrays.
    kinks
        Points where the function or a derivative jumps.

    Examples
    --------
    >>> table = tabulate(lambda x: np.maximum(x - 0.3, 0), kinks=(0.3,))
    >>> table.edges.tolist(), table.cubics.shape
    ([-14.0, 0.3, 14.0], (3585, 4))
    """
    edges = np.unique([-REACH, *(kink for kink in kinks if abs(kink) < REACH), REACH])
    counts = np.ceil(np.diff(edges) * CELLS).astype(np.int64)
    to_cubic = np.linalg.inv(np.vander(CHEBYSHEV, 4, increasing=True))
    corners = np.concatenate([np.linspace(a, b, n + 1)[:-1] for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)])
    halves = np.repeat(np.diff(edges) / counts, counts) / 2
    points = corners[:, None] + halves[:, None] * (1 + CHEBYSHEV)
    values = np.broadcast_to(np.asarray(function(points.ravel()), dtype=float), points.size).reshape(points.shape)
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    return Table(edges, counts / np.diff(edges), first.astype(np.int64), values @ to_cubic.T)
