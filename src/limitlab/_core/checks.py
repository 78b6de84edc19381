"""Data sets as parameters of a law: rows and labels that have to fit together."""

from __future__ import annotations

import numpy as np


def checked_table(inputs: tuple[tuple[float, ...], ...] | None, targets: tuple[float, ...] | None) -> None:
    """Refuse inputs without targets, rows of different lengths, and different numbers of rows and labels.

    >>> checked_table(((1.0, 2.0),), (1.0, -1.0))
    Traceback (most recent call last):
        ...
    ValueError: targets of length 2 are not allowed: must be as many as the 1 rows of inputs
    """
    if inputs is None and targets is None:
        return
    if inputs is None or targets is None:
        missing = "inputs" if inputs is None else "targets"
        raise ValueError(f"{missing} = None is not allowed: inputs and targets are given together (see from_data)")
    if not inputs or len({len(row) for row in inputs}) != 1 or not inputs[0]:
        raise ValueError("inputs are not allowed: must be at least one row, all of the same length of at least 1")
    if len(targets) != len(inputs):
        raise ValueError(
            f"targets of length {len(targets)} are not allowed: must be as many as the {len(inputs)} rows of inputs"
        )
    if not np.isfinite(np.asarray(inputs)).all() or not np.isfinite(np.asarray(targets)).all():
        raise ValueError("inputs and targets are not allowed: must be finite numbers")
