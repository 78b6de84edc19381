"""What a sweep or a comparison would take, before a single point is listed.

The explorer and the command line can ask the same: `refuse_sweep` and `refuse_comparison` raise `TooCostly` with what to
do about it, or return the estimate.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from limitlab._core.checks import is_whole
from limitlab._core.cost import NUMBER, Cost, check_cost, estimate
from limitlab._core.declaration import coordinate_values
from limitlab._core.law import Law
from limitlab.lab._regions import BLOCK
from limitlab.lab.ranges import parse_range

PER_CELL = 300.0
"""Numbers that a task takes by itself: its law, its labels, its place, its cell."""
PER_VALUE = 5.0
"""Numbers for every value of the result: the value, copies of it, what a vectorised law holds beside it."""
OPERATIONS_PER_VALUE = 1e3
"""Of a vectorised prediction."""
OPERATIONS_PER_MEASURED_VALUE = 1e4


def sweep_cost(
    law: Law, over: Mapping[str, Any], sizes: Any = None, seeds: Any = None, in_blocks: bool = False
) -> tuple[float, Cost]:
    """Points of a sweep, and what it takes; `in_blocks` if its result is assembled block by block.

    >>> from limitlab.laws import Ridge
    >>> count, cost = sweep_cost(Ridge(), {"ratio": "0.1:10:1000log", "ridge": [0.1, 1.0]})
    >>> count, round(cost.memory / 1e6)
    (2000.0, 1)
    """
    metas = type(law).parameters()
    counts = {name: _count(values) for name, values in over.items() if name in metas}
    draws = sizes is not None
    together = law.path_parameters() if draws else law.array_parameters()
    looped = math.prod(n for name, n in counts.items() if metas[name].kind != "coordinate" and name not in together)
    total = float(math.prod(counts.values()))
    listed = [int(size) for size in _listed(sizes) if is_whole(size) and size >= 2] if draws else []
    repeats = float(len(listed) * _count(seeds if seeds is not None else law.simulation.draws)) if draws else 1.0
    values = total * repeats * len(type(law).outputs()) * max(coordinate_values(law), 1.0)
    held = min(values, max(values / (looped * repeats), BLOCK / NUMBER)) if in_blocks else values
    numbers = PER_CELL * looped * repeats + PER_VALUE * held
    if draws:
        each = [estimate(law, size) for size in listed]
        work = (
            sum(one.operations for one in each) * repeats / max(len(each), 1) * looped
            + OPERATIONS_PER_MEASURED_VALUE * values
        )
        return total, Cost(numbers + max((one.numbers for one in each), default=0.0), work)
    return total, Cost(numbers, looped * estimate(law).operations + OPERATIONS_PER_VALUE * values)


def refuse_sweep(law: Law, over: Any, sizes: Any = None, seeds: Any = None, in_blocks: bool = False) -> Cost:
    """Refuse a sweep that would not fit."""
    if not isinstance(law, Law) or not isinstance(over, Mapping):
        return Cost()  # refused elsewhere, in its own words
    total, cost = sweep_cost(law, over, sizes, seeds, in_blocks)
    draws = "" if sizes is None else f" with {_count(seeds if seeds is not None else law.simulation.draws):.3g} draws each"
    check_cost(
        cost,
        f"a sweep of {type(law).__name__} over {total:.3g} points{draws}",
        "choose fewer values, or sweep in several parts"
        + ("" if in_blocks else ", or keep the result in a store NAME.zarr"),
    )
    return cost


def refuse_comparison(law: Law, sizes: Sequence[int], draws: int) -> Cost:
    """Refuse a comparison that would not fit."""
    each = [estimate(law, size) for size in sizes]
    cost = Cost(max(one.numbers for one in each) + PER_CELL * draws * len(each), draws * sum(one.operations for one in each))
    words = f"a comparison of {type(law).__name__} at sizes {', '.join(map(str, sizes))} with {draws} draws each"
    check_cost(cost, words, "choose smaller sizes or fewer draws")
    return cost


def _count(values: Any) -> int:
    """How many values these are, without listing them."""
    if isinstance(values, str):
        try:
            return int(parse_range(values).size)
        except ValueError:
            return 1  # a word, or a mistake that is refused elsewhere
    if isinstance(values, Collection):
        return len(values)
    if getattr(values, "ndim", 0):
        return int(values.size)
    return int(values) if is_whole(values) else 1


def _listed(sizes: Any) -> list[Any]:
    return (
        list(sizes)
        if (isinstance(sizes, Collection) and not isinstance(sizes, str)) or getattr(sizes, "ndim", 0) > 0
        else [sizes]
    )
