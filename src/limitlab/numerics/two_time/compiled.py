"""Memory integrals inside compiled code, so that the flow of a system can be one compiled function.

The `memory()` of a history is a named tuple of its arrays. Its static functions are the integrals of
`limitlab.numerics.two_time._memory.History`. Compiled code calls the functions of this file, and the type of the tuple selects the static
function. A two-time function is identified by a number, its position among (correlations, responses, auxiliaries).

A compiled flow that numba caches on disk contains the integrals. After a change of the integrals, touch the file of the flow too, so that
numba compiles it again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.extending import overload


def _compiled(name: str, what: str, choose: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for compiled code that calls the static function `name` of its first argument, a tuple."""

    def call(memory: Any, *arguments: Any) -> Any:
        return getattr(memory, name)(memory, *arguments)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = what
    overload(call, strict=False)(choose)
    return call


newest = _compiled("newest", "X(t, .), which may be written to.", lambda memory, number: memory.instance_class.newest)
after_start = _compiled(
    "after_start",
    "int_s^t f(u) X(u, s) du for an X that is concentrated near u = s and whose newest row is 0.",
    lambda memory, f, number: memory.instance_class.after_start,
)
before = _compiled("before", "int_0^s f(u) X(s, u) du.", lambda memory, f, number: memory.instance_class.before)
both = _compiled(
    "both",
    "int_s^t forward(u) X(u, s) du and int_0^s backward(u) X(s, u) du.",
    lambda memory, forward, backward, number: memory.instance_class.both,
)
whole = _compiled(
    "whole", "int_0^t f(u) X(u, s) du for a symmetric X.", lambda memory, f, number: memory.instance_class.whole
)
total = _compiled("total", "int_0^t f(u) du.", lambda memory, f: memory.instance_class.total)
