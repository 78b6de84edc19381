"""The answer of a forecast in words, which are the error now, the error with twice the rows, and how reliable both are.

All sentences use the curve and its posterior, in the unit of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from limitlab.applied.forecast._learning import LIKELY, Curve, trust_word
from limitlab.applied.forecast._nested import NestedLosses
from limitlab.errors import Refused

Array = NDArray[Any]

CONTRADICTION = 3.0
"""Number of standard errors that a real fit must differ from the curve, beside the band, to contradict it."""

HEAVY = 0.5
"""Share of the summed losses in the 1 % of rows with the largest losses above which the mean loss is not reliable."""


@dataclass(frozen=True)
class Unit:
    """How a loss is shown.

    Attributes
    ----------
    column
        Heading of the column in the table.
    words
        Words that follow a number in a sentence.
    shown, loss
        Functions from the loss to the shown value and back.
    percent
        Whether values are shown in per cent.
    rising
        Whether larger shown values are better.
    power
        Power of the loss that the shown value is, such as 1/2 for an RMSE.
    """

    column: str
    words: str
    shown: Callable[[Any], Any]
    loss: Callable[[Any], Any]
    percent: bool = False
    rising: bool = False
    power: float = 1.0

    def text(self, value: Any) -> str:
        """Return a shown value as text.

        >>> unit_of("error").text(0.0321), unit_of("mse", 2.0, "price").text(0.5)
        ('3.2%', '0.5')
        """
        return percent(float(value)) if self.percent else f"{float(value):.4g}"

    def band(self, low: Any, high: Any) -> str:
        """Return a band of losses as text."""
        ends = sorted((float(self.shown(low)), float(self.shown(high))))
        return f"{self.text(ends[0])} to {self.text(ends[1])}"


def percent(value: float) -> str:
    """Return a share in per cent with two or three digits.

    >>> percent(0.1234), percent(0.00123), percent(0.5), percent(0.9996)
    ('12.3%', '0.12%', '50.0%', '99.96%')
    """
    near = min(value, 1 - value)
    return f"{value:.1%}" if near >= 0.01 or near <= 0 else f"{value:.2%}"


def unit_of(metric: str, scale: float = 1.0, target: str = "") -> Unit:
    """Return the unit in which a metric is shown. Mean squares are shown as RMSE in the units of the target."""
    if metric == "mse":
        return Unit(
            "rmse", f"RMSE in the units of {target}" if target else "RMSE",
            lambda loss: np.sqrt(loss) * scale, lambda value: (value / scale) ** 2, power=0.5,
        )  # fmt: skip
    if metric == "error":
        return Unit("wrong_labels", "wrong labels", _same, _same, percent=True)
    if metric == "accuracy":
        return Unit("correct_labels", "correct labels", _rest, _rest, percent=True, rising=True)
    return Unit(metric, {"auc": "area under the curve"}.get(metric, metric), _rest, _rest, rising=True)


def _same(value: Any) -> Any:
    return value


def _rest(value: Any) -> Any:
    return 1 - value


@dataclass(frozen=True)
class Answer:
    """The errors with all rows and with twice the rows.

    Attributes
    ----------
    rows
        Number of rows.
    now, twice
        Losses with all rows and with twice the rows, each with its band: (value, low, high).
    step
        Ratio of the losses with its band.
    probability
        Probability that both values are within 10 % of the truth.
    radius
        Share of the truth within which both values are with probability 80 %.
    word
        "trusted" (radius up to 10 %), "fair" (up to 25 %), "doubtful", or "not tested" without real fits.
    reasons
        Sentences on why the word is lower than that of the radius.
    """

    rows: int
    now: tuple[float, float, float]
    twice: tuple[float, float, float]
    step: tuple[float, float, float]
    probability: float
    radius: float
    word: str
    reasons: tuple[str, ...] = ()

    def to_dict(self, unit: Unit) -> dict[str, Any]:
        """Return the answer as a plain structure, in the shown unit."""
        shown = {
            name: dict(zip(("value", "low", "high"), [float(unit.shown(loss)) for loss in losses], strict=True))
            for name, losses in (("now", self.now), ("twice", self.twice))
        }
        if unit.rising:
            for entry in shown.values():
                entry["low"], entry["high"] = entry["high"], entry["low"]
        return {
            "rows": self.rows,
            "unit": unit.words,
            **shown,
            "trust": self.word,
            "probability_within_10_percent": self.probability,
            "radius_80_percent": self.radius,
        }

    def doubtful(self, reason: str) -> Answer:
        """Return the answer with the word "doubtful" and a reason."""
        return replace(self, word="doubtful", reasons=(*self.reasons, reason))

    def sentence(self, unit: Unit, count: Callable[[float], str], tested: str = "") -> str:
        """Return the answer as a sentence. `count` returns a number of rows in words, and `tested` says on which rows."""
        words = [
            f"{unit.text(unit.shown(losses[0]))} ({unit.band(losses[1], losses[2])})" for losses in (self.now, self.twice)
        ]
        value, _, band = words[0].partition(" ")
        radius = "" if self.reasons or not np.isfinite(self.radius) else f", {self.near(unit)}"
        return (
            f"Now, with {count(self.rows)}{tested}: {value} {unit.words} {band}. "
            f"With {count(2 * self.rows)}: {words[1]}. Trust: {self.word}{radius}."
        )

    def near(self, unit: Unit) -> str:
        """Return the radius in words. Values that rise are compared by their distance from the best value."""
        what = "distance from 1 " if unit.rising else ""
        return f"{what}within {self.percent()} with probability {LIKELY:.0%}"

    def percent(self) -> str:
        """Return the radius in per cent, rounded up."""
        return f"{np.ceil(100 * self.radius):.0f}%"


def from_posterior(curve: Curve, rows: int, band: float, unit: Unit) -> Answer:
    """Return the answer of a posterior."""
    low, middle, high = curve.quantiles([rows, 2 * rows], [(1 - band) / 2, 0.5, (1 + band) / 2])
    logs = curve.draws([rows, 2 * rows])
    steps = np.exp(np.quantile(logs[:, 1] - logs[:, 0], [0.5, (1 - band) / 2, (1 + band) / 2]))
    probability = float(curve.right([rows, 2 * rows], unit.power).min())
    radius = float(curve.radius([rows, 2 * rows], unit.power).max())
    now, twice = ((float(middle[i]), float(low[i]), float(high[i])) for i in (0, 1))
    return Answer(
        rows, now, twice, (float(steps[0]), float(steps[1]), float(steps[2])), probability, radius, trust_word(radius)
    )


def trust_sentence(answer: Answer, curve: Curve, fits: int, unit: Unit) -> str:
    """Return a sentence on how reliable the answer is, and why."""
    sizes = f"{fits} real fits to {int(curve.measured.sizes[0])} to {int(curve.measured.sizes[-1])} rows"
    if answer.reasons:
        return " ".join([f"Trust ({answer.word}), after {sizes}.", *answer.reasons])
    what = "the distances of both numbers from 1 are" if unit.rising else "both numbers are"
    return (
        f"Trust ({answer.word}): {what} within {answer.percent()} of the truth with probability {LIKELY:.0%}, from {sizes}."
    )


def advice_sentence(answer: Answer, unit: Unit, count: Callable[[float], str], worthwhile: float) -> str:
    """Return a sentence on the effect of twice the rows, in the shown unit."""
    change = [1 - ratio**unit.power for ratio in answer.step]
    now, twice = (unit.text(unit.shown(losses[0])) for losses in (answer.now, answer.twice))
    words, rows = unit.words.partition(" in the units")[0], f"Twice the rows, {count(2 * answer.rows)},"
    by = f"{change[0]:.0%} ({min(change[1:]):.0%} to {max(change[1:]):.0%})"
    share = f"its distance from the best value falls by {by}" if unit.rising else f"a reduction by {by}"
    if change[0] < 0:
        verb = "raise" if unit.rising else "reduce"
        return f"{rows} would not {verb} the {words}: it changes from {now} to {twice}."
    if change[0] < worthwhile:
        return f"{rows} would hardly change the {words}: from {now} to {twice}, {share}. Other inputs or another model may help more."
    if unit.rising:
        return f"{rows} would raise the {words} from {now} to {twice}, and {share}."
    return f"{rows} would reduce the {words} from {now} to {twice}, by {by}."


def heavy_share(losses: NestedLosses, name: str) -> float:
    """Return the share of the summed losses that the 1 % of rows with the largest losses contribute at the largest size."""
    if losses.losses is None or name not in losses.names or name == "error":
        return 0.0
    used = losses.tested[-1] > 0
    each = np.sort(losses.losses[losses.names.index(name), -1, used] / losses.tested[-1, used])[::-1]
    if each.size < 100 or each.sum() <= 0:
        return 0.0
    return float(each[: max(1, each.size // 100)].sum() / each.sum())


def contradictions(made: xr.Dataset, curve: Curve, band: float) -> list[tuple[float, float, float]]:
    """Return real fits that differ from the curve by more than its band and three standard errors, as (size, measured, curve)."""
    measured = curve.measured
    low, middle, high = curve.quantiles(measured.sizes, [(1 - band) / 2, 0.5, (1 + band) / 2])
    off = np.abs(np.log(measured.values / middle))
    bad = (off > CONTRADICTION * np.sqrt(np.diag(measured.covariance))) & (
        (measured.values < low) | (measured.values > high)
    )
    return [(float(measured.sizes[i]), float(measured.values[i]), float(middle[i])) for i in np.flatnonzero(bad)]


def needed_rows(
    curve: Curve, unit: Unit, wanted: float, rows: int, count: Callable[[float], str], band: float
) -> dict[str, Any]:
    """Return the number of rows at which the curve reaches a value, with an interval and a sentence.

    Parameters
    ----------
    curve, unit
        The posterior, and the unit of the value.
    wanted
        The value, in the shown unit.
    rows
        Number of rows in the data.
    count
        Function that returns a number of rows in words.
    band
        Nominal probability of the interval.
    """
    loss = checked_error(unit, wanted)
    most = 1000.0 * rows
    least = float(curve.measured.sizes[0])
    grid = np.unique(np.round(np.geomspace(least, most, 800)))
    middle = curve.quantiles(grid, [0.5])[0]
    low, high = curve.samples_for(loss, most, [(1 - band) / 2, (1 + band) / 2])
    shown = unit.text(wanted)
    what = f"{shown} {unit.words}"
    if not (middle <= loss).any():
        best = float(unit.shown(middle.min()))
        return {
            "n": None, "low": None if np.isinf(low) else float(low), "best": best, "at": float(grid[middle.argmin()]),
            "sentence": f"{what} cannot be reached with up to {count(most)}: the best expected value is {unit.text(best)}.",
        }  # fmt: skip
    n = float(grid[int((middle <= loss).argmax())])
    ends = (
        f"{band:.0%} interval {'at most ' if low <= least else ''}{low:.0f} to {high:.0f}"
        if np.isfinite(high)
        else f"at least {low:.0f} with probability {(1 + band) / 2:.0%}"
        if low > least
        else f"and with probability {(1 - band) / 2:.0%} more than {count(most)}"
    )
    beyond = " (extrapolated)" if n > rows else ""
    if n <= least:
        return {
            "n": n, "low": None, "high": None if np.isinf(high) else float(high), "extrapolated": False,
            "sentence": f"{what} needs at most {count(n)}, which is the smallest real fit.",
        }  # fmt: skip
    return {
        "n": n, "low": float(low), "high": None if np.isinf(high) else float(high), "extrapolated": bool(n > rows),
        "sentence": f"{what} needs about {count(n)}{beyond}, {ends}.",
    }  # fmt: skip


def checked_error(unit: Unit, wanted: float) -> float:
    """Return the loss of a required value. Raise `ValueError` if the value is not possible in this unit."""
    if not np.isfinite(wanted) or wanted <= 0:
        raise Refused(
            f"error = {wanted!r} is not allowed: must be a number above 0, in the unit of the table ({unit.words})"
        )
    if (unit.percent or unit.rising) and wanted >= 1:
        raise Refused(
            f"error = {wanted!r} is not allowed: must be a share between 0 and 1 ({unit.words}), such as 0.03 for 3%"
        )
    return float(unit.loss(wanted))
