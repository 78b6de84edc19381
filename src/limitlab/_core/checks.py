"""Checks of arguments that several packages share: sizes and seeds of experiments, rows and labels of a data set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from limitlab._core.draws import checked_seed, checked_size, is_whole
from limitlab._core.limits import refuse_listing


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


def checked_sizes(sizes: Any) -> list[int]:
    """Sizes of experiments: one or several, each of them once."""
    numbers = [checked_size(size) for size in _listed(sizes, "sizes")]
    if not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(f"sizes = {sizes!r} is not allowed: give at least one size, each of them once")
    return numbers


def checked_seeds(seeds: Any, least: int = 1) -> list[int]:
    """Seeds of draws: a number of them, which stands for 0, 1, 2, ..., or a list of different ones.

    >>> checked_seeds(3), checked_seeds([7, 9])
    ([0, 1, 2], [7, 9])
    """
    if np.ndim(seeds) == 0:
        if not is_whole(seeds) or seeds < least:
            raise ValueError(
                f"seeds = {seeds!r} is not allowed: give a number of draws of at least {least}, or a list of seeds"
            )
        refuse_listing(seeds, f"seeds = {seeds!r}")
        return list(range(int(seeds)))
    numbers = [checked_seed(seed) for seed in _listed(seeds, "seeds")]
    if len(numbers) < least or len(set(numbers)) < len(numbers):
        raise ValueError(f"seeds = {seeds!r} is not allowed: give at least {least} of them, each once")
    return numbers


def _listed(given: Any, name: str) -> list[Any]:
    if isinstance(given, np.ndarray):
        return given.ravel().tolist()
    if isinstance(given, (str, bytes, Mapping)) or (np.ndim(given) == 0 and not isinstance(given, Iterable)):
        given = [given]
    listed = list(given)
    if not all(isinstance(item, Real) and not isinstance(item, bool) for item in listed):
        raise ValueError(f"{name} = {given!r} is not allowed: must be whole numbers")
    return listed
