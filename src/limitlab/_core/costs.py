"""Estimates of what a law takes, and the refusal of what would exceed the limits.

The rules for the estimates are `draw_cost` and `limit_cost` of the law (see `Declaration`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from limitlab._core.limits import Cost, refuse_beyond
from limitlab._core.parameters import numbers_in

if TYPE_CHECKING:
    from limitlab._core.declaration import Declaration


def estimate(law: Declaration, size: int | None = None) -> Cost:
    """What a law says about its cost; infinite where that is beyond all numbers."""
    try:
        return law.limit_cost() if size is None else law.draw_cost(size)
    except OverflowError:
        return Cost(math.inf, math.inf)


def latest(law: Declaration, coordinate: str = "times") -> float:
    """The largest finite value of a coordinate: how long an experiment runs."""
    return max((number for number in numbers_in(getattr(law, coordinate)) if math.isfinite(number)), default=0.0)


def refuse_draw(law: Declaration, size: int, draws: int = 1) -> None:
    """Refuse an experiment that would not fit, before anything is drawn."""
    one = estimate(law, size)
    words = (
        f"a draw of {type(law).__name__} at size {size}"
        if draws == 1
        else f"{draws} draws of {type(law).__name__} at size {size}"
    )
    refuse_beyond(Cost(one.numbers, draws * one.operations), words, "choose a smaller size" + _smaller(law, size))


def refuse_limit(law: Declaration) -> None:
    """Refuse a prediction that would not fit."""
    refuse_beyond(estimate(law), f"the prediction of {type(law).__name__}", "ask for fewer points or a coarser grid")


def _smaller(law: Declaration, size: int) -> str:
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
