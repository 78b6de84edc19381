"""Ranges of numbers in the form in which a user types them, such as `0.1:100:60log`, `0:1:11` or `1,2,5`."""

from __future__ import annotations

import math
import re

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import Refused

MOST_POINTS = 1_000_000
"""Largest number of points of one range."""

_FORMS = "write start:stop:count (evenly spaced), start:stop:countlog (geometric), or values such as 1,2,5"
_COUNT = re.compile(r"(?P<count>[^a-z]*?)\s*(?P<spacing>log|lin|)\Z", re.IGNORECASE)


def parse_range(text: str) -> NDArray[np.float64]:
    """Return the numbers that a text describes; several pieces may be joined by commas.

    Parameters
    ----------
    text
        `start:stop:count` (evenly spaced, both ends included), `start:stop:countlog` (geometric), a number, or several
        of these separated by commas.

    Examples
    --------
    >>> parse_range("0:1:5")
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    >>> parse_range("0.1:100:4log")
    array([  0.1,   1. ,  10. , 100. ])
    >>> parse_range("0, 1:4:3log")
    array([0., 1., 2., 4.])
    """
    if not isinstance(text, str):
        raise Refused(f"range {text!r} is not a text: {_FORMS}")
    if not text.strip():
        raise Refused(f"the range is empty: {_FORMS}")
    return np.concatenate([_piece(piece.strip(), text) for piece in text.split(",")])


def _piece(piece: str, text: str) -> NDArray[np.float64]:
    parts = [part.strip() for part in piece.split(":")]
    if len(parts) == 1:
        return np.array([_number(parts[0], text)])
    if len(parts) != 3:
        raise Refused(f"range {text!r}: {piece!r} has {len(parts)} parts: {_FORMS}")
    start, stop = (_finite(part, text) for part in parts[:2])
    count, geometric = _count(parts[2], text)
    if not geometric:
        return np.linspace(start, stop, count)
    if start * stop <= 0:
        raise Refused(f"range {text!r}: a geometric range needs two ends of the same sign, and none of them may be 0")
    return np.geomspace(start, stop, count)


def _count(part: str, text: str) -> tuple[int, bool]:
    """Return the number of points that the third part of a range states, and whether they are geometric."""
    match = _COUNT.match(part)
    if match is None or not match["count"].strip().isdecimal():
        raise Refused(f"range {text!r}: {part!r} is not a number of points, such as 11 or 60log")
    count = int(match["count"])
    if not 2 <= count <= MOST_POINTS:
        raise Refused(f"range {text!r}: the number of points must be between 2 and {MOST_POINTS}, not {count}")
    return count, match["spacing"].lower() == "log"


def _finite(part: str, text: str) -> float:
    number = _number(part, text)
    if not math.isfinite(number):
        raise Refused(f"range {text!r}: the ends of a range must be finite (write infinity as a value: 1,2,inf)")
    return number


def _number(part: str, text: str) -> float:
    if not _is_number(part):
        raise Refused(f"range {text!r}: {part!r} is not a number: {_FORMS}")
    return float(part)


def _is_number(part: str) -> bool:
    try:
        return not math.isnan(float(part))
    except ValueError:
        return False
