"""What a check asks of a number: an object that judges and prints, so that words and thresholds cannot drift apart.

>>> str(below("largest z", 3.2, 5)), below("largest z", 3.2, 5).holds, below("largest z", float("nan"), 5).holds
('largest z below 5', True, False)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from limitlab.lab._compare import Comparison

__all__ = [
    "Criterion",
    "above",
    "agrees",
    "at_least",
    "at_most",
    "below",
    "between",
    "equal",
    "near",
    "near_relative",
    "true",
]

Number = float | int | str | bool


@dataclass(frozen=True)
class Criterion:
    """One condition of a check.

    Attributes
    ----------
    name
        What is measured.
    value
        What was found.
    words
        What is asked of it, with the numbers.
    holds
        Whether it is so. A NaN never is.
    """

    name: str
    value: Number
    words: str
    holds: bool

    def __str__(self) -> str:
        return f"{self.name} {self.words}".rstrip()


def below(name: str, value: float, bound: float) -> Criterion:
    """value < bound."""
    return Criterion(name, _plain(value), f"below {bound:.6g}", bool(value < bound))


def above(name: str, value: float, bound: float) -> Criterion:
    """value > bound."""
    return Criterion(name, _plain(value), f"above {bound:.6g}", bool(value > bound))


def at_most(name: str, value: float, bound: float) -> Criterion:
    """value <= bound."""
    return Criterion(name, _plain(value), f"at most {bound:.6g}", bool(value <= bound))


def at_least(name: str, value: float, bound: float) -> Criterion:
    """value >= bound."""
    return Criterion(name, _plain(value), f"at least {bound:.6g}", bool(value >= bound))


def between(name: str, value: float, low: float, high: float) -> Criterion:
    """low < value < high.

    >>> str(between("slope", -0.5, -0.6, -0.4))
    'slope between -0.6 and -0.4'
    """
    return Criterion(name, _plain(value), f"between {low:.6g} and {high:.6g}", bool(low < value < high))


def near(name: str, value: float, target: float, tolerance: float) -> Criterion:
    """|value - target| <= tolerance.

    >>> str(near("exponent", 1.04, 1.0, 0.1))
    'exponent within 0.1 of 1'
    """
    return Criterion(name, _plain(value), f"within {tolerance:.4g} of {target:.10g}", bool(abs(value - target) <= tolerance))


def near_relative(name: str, value: float, target: float, share: float) -> Criterion:
    """|value / target - 1| <= share.

    >>> str(near_relative("half time", 5.3, 5.28, 0.03))
    'half time within 3% of 5.28'
    """
    gap = abs(value / target - 1) if target else float("inf")
    return Criterion(name, _plain(value), f"within {share:.2%} of {target:.6g}".replace(".00%", "%"), bool(gap <= share))


def equal(name: str, value: Number, target: Number) -> Criterion:
    """value == target, for whole numbers and names."""
    return Criterion(name, value, f"equal to {target}", bool(value == target))


def true(name: str, value: bool) -> Criterion:
    """A condition that is not a number; `name` is a sentence.

    >>> str(true("the energy never decreases", True))
    'the energy never decreases'
    """
    return Criterion(name, bool(value), "", bool(value))


def agrees(name: str, comparison: Comparison) -> Criterion:
    """Theory and simulation agree: the verdict is neither "disagree" nor "underpowered"."""
    return Criterion(name, comparison.verdict, "agrees with the simulation", comparison.passed)


def _plain(value: float) -> Number:
    """A NumPy number as a Python one."""
    return value.item() if hasattr(value, "item") else value
