"""What a law takes, from its declaration: how many numbers it holds and how many operations it does.

The rule that fits most experiments: the lengths that are in play are the size, the whole numbers that its ratios become, and the
law's other whole numbers. A data matrix of the two largest is drawn, copied once or twice and decomposed. A law whose experiment is of
another kind (a chain, particles, a two-time grid) says so by its own `cost`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from limitlab._core.limits import Cost, refuse_beyond
from limitlab._core.parameters import numbers_in

if TYPE_CHECKING:
    from limitlab._core.law import Law

LEAST = Cost(numbers=1e5, operations=1e7)
"""What anything takes: results, labels, Python itself."""
PER_POINT = Cost(numbers=60.0, operations=1e5)
"""What one point of a prediction takes for every observable."""


def estimate(law: Law, size: int | None = None) -> Cost:
    """What a law says about its cost; infinite where that is beyond all numbers."""
    try:
        return law.limit_cost() if size is None else law.draw_cost(size)
    except OverflowError:
        return Cost(math.inf, math.inf)


def draw_cost(law: Law, size: int) -> Cost:
    """The rule for one experiment: matrices of the two largest lengths, a decomposition along the smaller one."""
    first, second = (*lengths(law, size), 1.0)[:2]
    lines, times = points(law), repetitions(law)
    return Cost(
        LEAST.numbers + law.matrices_held * first * second + len(type(law).outputs()) * lines + first * times,
        LEAST.operations + (first * second * second + 4 * first * second * lines) * times,
    )


def limit_cost(law: Law) -> Cost:
    """The rule for a prediction: a closed form, or a few equations for every point."""
    values = points(law) * len(type(law).outputs())
    return Cost(LEAST.numbers + PER_POINT.numbers * values, LEAST.operations + PER_POINT.operations * values)


def lengths(law: Law, size: int) -> list[float]:
    """The lengths in play in an experiment of this size, the largest first."""
    found = [float(size)]
    for name, meta in type(law).parameters().items():
        value = getattr(law, name)
        if meta.count in ("size * value", "size / value"):
            found += [float(law.count(name, size))] if math.isfinite(value) else []
        elif meta.kind == "physics" and isinstance(value, int) and not isinstance(value, bool):
            found.append(float(value))
    return sorted(found, reverse=True)


def repetitions(law: Law) -> float:
    """How often an experiment is repeated within one draw: its replicas, networks, ..."""
    found = [getattr(law, name) for name, meta in type(law).parameters().items() if meta.kind == "experiment"]
    return float(math.prod(value for value in found if isinstance(value, int) and not isinstance(value, bool)))


def points(law: Law) -> float:
    """Values of the law's own coordinates, all together."""
    return float(math.prod(np.size(line) for line in law.coordinates().values()))


def latest(law: Law, coordinate: str = "times") -> float:
    """The largest finite value of a coordinate: how long an experiment runs."""
    return max((number for number in numbers_in(getattr(law, coordinate)) if math.isfinite(number)), default=0.0)


def refuse_draw(law: Law, size: int, draws: int = 1) -> None:
    """Refuse an experiment that would not fit, before anything is drawn."""
    one = estimate(law, size)
    words = (
        f"a draw of {type(law).__name__} at size {size}"
        if draws == 1
        else f"{draws} draws of {type(law).__name__} at size {size}"
    )
    refuse_beyond(Cost(one.numbers, draws * one.operations), words, "choose a smaller size" + _smaller(law, size))


def refuse_limit(law: Law) -> None:
    """Refuse a prediction that would not fit."""
    refuse_beyond(estimate(law), f"the prediction of {type(law).__name__}", "ask for fewer points or a coarser grid")


def _smaller(law: Law, size: int) -> str:
    """The other lengths that would help, where one of them is larger than the size."""
    wholes = {
        name: getattr(law, name)
        for name, meta in type(law).parameters().items()
        if meta.kind in ("physics", "experiment")
        and isinstance(getattr(law, name), int)
        and not isinstance(getattr(law, name), bool)
    }
    large = [name for name, value in wholes.items() if value > size]
    return f" or fewer {', '.join(large)}" if large else ""
