"""The record into which the check of a claim writes its criteria, further numbers and a note.

Functions for measurements that several checks share follow, such as slopes, standard errors and distances in standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.arguments import explained
from limitlab._core.draws import mean_and_error
from limitlab._core.law import Law

if TYPE_CHECKING:
    from limitlab.lab._compare import Comparison

__all__ = ["Check", "Criterion", "largest", "log_slope", "sigmas", "smallest", "standard_error"]

Number = float | int | str | bool


@dataclass(frozen=True)
class Criterion:
    """One condition of a check.

    Attributes
    ----------
    name
        The name of the measured number.
    value
        The measured value.
    words
        The condition in words, with its numbers.
    holds
        Whether the value fulfils the condition. NaN fulfils no condition.
    """

    name: str
    value: Number
    words: str
    holds: bool

    def __str__(self) -> str:
        return f"{self.name} {self.words}".rstrip()


class Check:
    """The record into which the check of a claim writes.

    A check receives an empty record. It calls a method of the record for every criterion, where the number is measured. The method
    compares the number with the condition and stores both, in the order of the calls. The claim passes if all criteria hold. NaN
    fulfils no criterion.

    Parameters
    ----------
    quick
        Whether the check uses small sizes, which take seconds. A full check uses the sizes that decide, which take minutes.

    Attributes
    ----------
    criteria
        The criteria so far.
    measured
        Further numbers, by name.
    text
        Sentences that the reader must know.

    Examples
    --------
    >>> check = Check(quick=True)
    >>> check.near("exponent", 1.04, 1.0, 0.1)
    >>> check.below("largest z", float("nan"), 5)
    >>> [(str(criterion), criterion.holds) for criterion in check.criteria]
    [('exponent within 0.1 of 1', True), ('largest z below 5', False)]
    """

    def __init__(self, quick: bool = True) -> None:
        self.quick = quick
        self.criteria: list[Criterion] = []
        self.measured: dict[str, Number] = {}
        self.text = ""

    # -- criteria on numbers --------------------------------------------------------------------------------------------

    def below(self, name: str, value: float, bound: float) -> None:
        """Demand value < bound."""
        self._judge(name, value, f"below {bound:.6g}", value < bound)

    def above(self, name: str, value: float, bound: float) -> None:
        """Demand value > bound."""
        self._judge(name, value, f"above {bound:.6g}", value > bound)

    def at_most(self, name: str, value: float, bound: float) -> None:
        """Demand value <= bound."""
        self._judge(name, value, f"at most {bound:.6g}", value <= bound)

    def at_least(self, name: str, value: float, bound: float) -> None:
        """Demand value >= bound."""
        self._judge(name, value, f"at least {bound:.6g}", value >= bound)

    def between(self, name: str, value: float, low: float, high: float) -> None:
        """Demand low < value < high."""
        self._judge(name, value, f"between {low:.6g} and {high:.6g}", low < value < high)

    def near(self, name: str, value: float, target: float, tolerance: float) -> None:
        """Demand |value - target| <= tolerance."""
        self._judge(name, value, f"within {tolerance:.4g} of {target:.10g}", abs(value - target) <= tolerance)

    def near_relative(self, name: str, value: float, target: float, share: float) -> None:
        """Demand |value / target - 1| <= share.

        >>> check = Check()
        >>> check.near_relative("half time", 5.3, 5.28, 0.03)
        >>> str(check.criteria[0])
        'half time within 3% of 5.28'
        """
        gap = abs(value / target - 1) if target else float("inf")
        self._judge(name, value, f"within {share:.2%} of {target:.6g}".replace(".00%", "%"), gap <= share)

    def equal(self, name: str, value: Number, target: Number) -> None:
        """Demand value == target, for whole numbers and texts."""
        self.criteria.append(Criterion(name, value, f"equal to {target}", bool(value == target)))

    def true(self, name: str, value: bool) -> None:
        """Demand that a condition holds.

        `name` is a sentence that states the condition.
        """
        self.criteria.append(Criterion(name, bool(value), "", bool(value)))

    def _judge(self, name: str, value: float, words: str, holds: bool) -> None:
        plain = value.item() if hasattr(value, "item") else value  # a NumPy number as a Python number
        self.criteria.append(Criterion(name, plain, words, bool(holds)))

    # -- criteria on laws -----------------------------------------------------------------------------------------------

    def agree(
        self,
        name: str,
        *laws: Law | type[Law],
        sizes: Sequence[int] | None = None,
        seeds: int | None = None,
        observables: Sequence[str] | None = None,
        points: int | None = None,
        together: bool = False,
        seconds: float = 600.0,
    ) -> list[Comparison]:
        """Demand that theory and simulation agree, and return the comparisons.

        The verdict of each comparison is a criterion, which holds for "agree" and fails for "disagree" and "underpowered". A class
        is compared at its check points.

        Parameters
        ----------
        name
            The name of the criterion. If there are several laws or a class, the name of criterion number i ends with
            "at check point i".
        *laws
            Laws at the parameters to compare, or classes of laws.
        sizes, seeds, observables
            As in `limitlab.compare`.
        points
            The number of check points of a class to compare, from the first (default: all of them).
        together
            Whether all check points of a class make one criterion, with the verdict of `compare` for the class.
        seconds
            The time that a full check may spend on additional draws. Choose a time long enough that a busy machine reaches the same
            verdict.
        """
        compared: list[Law | type[Law]] = []
        for law in laws:
            compared += law.check_points()[:points] if isinstance(law, type) and not together else [law]
        numbered = not together and (len(laws) > 1 or any(isinstance(law, type) for law in laws))
        comparisons = [self.compare(law, sizes, seeds, observables=observables, seconds=seconds) for law in compared]
        for number, comparison in enumerate(comparisons, 1):
            full_name = f"{name} at check point {number}" if numbered else name
            self.criteria.append(Criterion(full_name, comparison.verdict, "agrees with the simulation", comparison.passed))
        return comparisons

    def compare(
        self,
        law: Law | type[Law],
        sizes: Sequence[int] | None = None,
        seeds: int | None = None,
        *,
        observables: Sequence[str] | None = None,
        seconds: float = 600.0,
    ) -> Comparison:
        """Return the comparison of a law with the effort of this check. It adds no criterion.

        A quick check demands a resolution of a tenth of the scale of an observable and adds no draws to `seeds`. It stops earlier
        if fewer draws agree. A full check demands a resolution of a twentieth and adds draws for at most `seconds`.
        """
        from limitlab.lab._compare import compare

        return compare(
            law,
            sizes,
            seeds,
            observables=observables,
            resolution=0.1 if self.quick else 0.05,
            budget=0.0 if self.quick else seconds,
            early=self.quick,
            progress=False,
        )

    def extrapolated(
        self,
        name: str,
        law: Law,
        sizes: tuple[int, int],
        draws: int,
        observables: Sequence[str],
    ) -> None:
        """Demand that experiments, extrapolated from two sizes to the limit, agree with the theory and decide about a gap of 5 %.

        The mean over draws differs from the limit by c/m + O(1/m^2) at the size m. The term c/m cancels in 2 E(2m) - E(m). This number
        must lie within 4 standard errors of the theory, and its standard error must be at most 1 %.

        Parameters
        ----------
        name
            The beginning of the names of both criteria.
        law
            The law at its parameters.
        sizes
            The sizes m and 2m.
        draws
            The number of draws of each size.
        observables
            The observables to compare.
        """
        coarse, fine = (law.simulate_batch(size, range(draws)) for size in sizes)
        limit, distances, errors = law.theory(), [], []
        for observable in observables:
            (a, error_a), (b, error_b) = (mean_and_error(runs[observable].values) for runs in (coarse, fine))
            spread, target = np.hypot(2 * error_b, error_a), limit[observable].values
            distances.append(float(np.max(np.abs(2 * b - a - target) / spread)))
            errors.append(float(np.max(spread) / np.max(np.abs(target))))
        self.below(f"{name}, extrapolated: distance from the limit in standard errors", largest(distances), 4.0)
        self.below(f"{name}, extrapolated: standard error over the limit", largest(errors), 0.01)

    # -- numbers and notes ----------------------------------------------------------------------------------------------

    def show(self, name: str, value: Number) -> None:
        """Add a further number for the reader. It does not decide the claim."""
        self.measured[name] = value

    def note(self, text: str) -> None:
        """Add a sentence for the reader, such as a correction of the source or a restriction."""
        self.text = text


# -- measurements for several checks ----------------------------------------------------------------------------------


Array = NDArray[np.float64]

SIGMAS = 5.0
"""Standard errors within which a measured mean must agree with its law."""


class Slope(NamedTuple):
    """A fitted slope and its standard error."""

    value: float
    error: float


def words(name: str) -> str:
    """Return the name of an observable as words.

    >>> words("train_error")
    'train error'
    """
    return name.replace("_", " ")


@explained
def largest(values: Iterable[float]) -> float:
    """Return the largest number, or NaN if one of them is NaN. (Python's `max` can skip a NaN, so that a check would pass.)

    >>> largest([1.0, float("nan"), 0.5])
    nan
    """
    return float(np.max(list(values)))


@explained
def smallest(values: Iterable[float]) -> float:
    """Return the smallest number, or NaN if one of them is NaN.

    >>> smallest([1.0, 0.5])
    0.5
    """
    return float(np.min(list(values)))


@explained
def standard_error(values: ArrayLike) -> float:
    """Return the largest standard error of the mean over the first axis.

    >>> standard_error([1.0, 3.0])
    1.0
    """
    return float(np.max(mean_and_error(values)[1]))


@explained
def sigmas(values: ArrayLike, target: ArrayLike) -> float:
    """Return the largest distance of the mean over the first axis from a target, in standard errors.

    >>> sigmas([1.0, 3.0], 4.0)
    2.0
    """
    mean, error = mean_and_error(values)
    return float(np.max(np.abs(mean - np.asarray(target)) / error))


def slope(x: ArrayLike, y: ArrayLike, errors: ArrayLike | None = None) -> Slope:
    """Return the slope of y against x by least squares, weighted by the errors of y if they are known.

    Without errors of y, the standard error of the slope follows from the scatter about the line (it is 0 for two points).

    >>> slope([0, 1, 2], [1.0, 3.0, 5.0]).value
    2.0
    """
    a, b = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    weight = np.ones_like(b) if errors is None else np.asarray(errors, dtype=float) ** -2.0
    centre = np.average(a, weights=weight)
    spread = float((weight * (a - centre) ** 2).sum())
    value = float((weight * (a - centre) * b).sum()) / spread
    if errors is not None:
        return Slope(value, spread**-0.5)
    left = b - b.mean() - value * (a - a.mean())
    freedom = max(a.size - 2, 1)
    return Slope(value, math.sqrt(float(left @ left) / freedom / spread))


@explained
def log_slope(x: ArrayLike, y: ArrayLike, errors: ArrayLike | None = None) -> Slope:
    """Return the exponent of y ~ x^slope; `errors` are those of y.

    >>> round(log_slope([1, 10, 100], [5.0, 0.5, 0.05]).value, 12)
    -1.0
    """
    values = np.asarray(y, dtype=float)
    relative = None if errors is None else np.asarray(errors, dtype=float) / np.abs(values)
    return slope(np.log(np.asarray(x, dtype=float)), np.log(np.abs(values)), relative)


def common_rate(sizes: Sequence[int], gaps: Array, errors: Array) -> Slope:
    """Return the exponent r of gaps b_k d^-r with separate b_k and a common r, from least squares, with its standard error.

    Parameters
    ----------
    sizes
        The dimensions d.
    gaps, errors
        Gaps and their standard errors, shape (sizes, number of gaps).

    Examples
    --------
    >>> d = np.array([10, 20, 40])
    >>> rate, error = common_rate(d, np.array([2.0, -1.0]) / d[:, None], np.full((3, 2), 1e-3))
    >>> round(rate, 3), error < 0.02
    (1.0, True)
    """
    rates = np.linspace(-1, 4, 5001)
    powers = (np.asarray(sizes, dtype=float) / sizes[0])[:, None, None] ** -rates  # (sizes, 1, rates)
    weight = errors[..., None] ** -2
    amplitude = (weight * powers * gaps[..., None]).sum(axis=0) / (weight * powers**2).sum(axis=0)
    misfit = (weight * (gaps[..., None] - amplitude * powers) ** 2).sum(axis=(0, 1))
    best = int(np.argmin(misfit))
    inside = rates[misfit <= misfit[best] + 1]
    return Slope(float(rates[best]), float(inside[-1] - inside[0]) / 2)
