"""Memory integrals inside compiled code, so that the flow of a system can be one compiled function.

A history's `memory()` is a named tuple of its arrays whose static functions are the integrals of
`limitlab.numerics.two_time.memory.History`. The functions of this file stand for them in compiled code, where the kind of tuple decides
which one is meant. A two-time function has a number there: its place among (correlations, responses, auxiliaries).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.extending import overload


def _integral(name: str, choose: Callable[..., Any]) -> Callable[..., Any]:
    """What compiled code calls: the static function `name` of the tuple that it is given first."""

    def integral(memory: Any, *arguments: Any) -> Any:
        return getattr(memory, name)(memory, *arguments)

    overload(integral, strict=False)(choose)
    return integral


newest = _integral("newest", lambda memory, number: memory.instance_class.newest)
after_start = _integral("after_start", lambda memory, f, number: memory.instance_class.after_start)
before = _integral("before", lambda memory, f, number: memory.instance_class.before)
both = _integral("both", lambda memory, forward, backward, number: memory.instance_class.both)
whole = _integral("whole", lambda memory, f, number: memory.instance_class.whole)
total = _integral("total", lambda memory, f: memory.instance_class.total)
