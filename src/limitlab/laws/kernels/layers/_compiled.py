"""Compiled loops of the layers, which sum kernels over a filter's offsets."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@numba.njit(inline="always")
def add(to: Array, source: Array) -> None:
    """Add one row to another."""
    for k in range(len(to)):
        to[k] += source[k]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def diagonal_sums(tables: Array, before: int, side: int, after: int, half: int, circular: bool) -> Array:
    """Return sum_o M[p + o, q + o] over |o| <= half along one side of the positions, for tables (pairs, positions, positions).

    Positions are (before, side, after), in this order. The sum runs along one side at a time, so that a square filter costs two passes
    instead of its area. In a row the entries (q, after) are neighbours, so that a shift of q is a shift of the row by `after`.
    """
    pairs = tables.shape[0]
    length = side * after
    out = np.zeros_like(tables)
    for pair in range(pairs):
        for a in range(before):
            for p in range(side):
                for o in range(-half, half + 1):
                    i = p + o
                    if circular:
                        i = i % side
                    elif i < 0 or i >= side:
                        continue
                    shift = o * after
                    if circular:
                        shift = shift % length
                    low, high = max(0, -shift), min(length, length - shift)
                    for b in range(after):
                        to, source = out[pair, (a * side + p) * after + b], tables[pair, (a * side + i) * after + b]
                        for c in range(before):
                            base = c * length
                            add(to[base + low : base + high], source[base + low + shift : base + high + shift])
                            if circular:  # entries beyond one end continue at the other
                                add(to[base + high : base + length], source[base : base + length - high])
    return out
