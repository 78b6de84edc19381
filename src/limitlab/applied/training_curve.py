"""When to stop a training, from its validation losses so far.

The validation loss L at step s is fitted with

    L = E + A s^-b            (still falling),
    L = E + A s^-b + C s^d    (falls, then rises because of overfitting),

with E, A and C at least 0. Every power b (and d) of a grid gives one fit by linear least squares. Its weight follows from its residuals
and from a prior of b with the median `USUAL_POWER`. Early parts of real curves fall faster than a power law, so deviations up to
`DEVIATION` times the loss count as possible for a correct power, and the number of residuals counts as at most `MOST_RESIDUALS`. The
forecast is the weighted median of the fits, and its band is their weighted quantiles, widened by the errors that forecasts from earlier
parts of the same curve made.

Learning rates
--------------
With learning rates r(s) in the file, the sum of r(s)/r_max over the steps replaces s in these laws, and the loss is lower by a share
c (1 - r/r_max) after the learning rate has fallen from its largest value r_max. The share c is fitted with the prior mean `DECAY_GAIN` and
the prior standard deviation `DECAY_GAIN_SPREAD`. Rows without a loss are the plan of later learning rates. Without a plan, a learning rate
that is still constant stays constant, and a learning rate that falls is continued as half a cosine that reaches a tenth of its largest
value at the end.
"""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.page import Described, Page, Table
from limitlab.errors import Refused, did_you_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TrainingForecast", "stop_training"]

Array = NDArray[np.float64]

FEWEST = 12
"""Smallest number of losses."""

START = 0.15
"""Share of the steps at the start that is left out, because of warm-up."""

POWERS = np.geomspace(0.1, 2.0, 16)
"""Powers b of the falling part."""

RISES = (0.5, 1.0, 2.0)
"""Powers d of the rising part."""

USUAL_POWER, POWER_SPREAD = 0.5, 0.5
"""Median of the prior of b, and standard deviation of its logarithm."""

DEVIATION, MOST_RESIDUALS = 0.002, 12.0
"""Deviation of real curves from the laws as a share of the loss, and the largest number of residuals that counts."""

DECAY_GAIN, DECAY_GAIN_SPREAD = 0.03, 0.015
"""Share of the loss that a decay of the learning rate to 0 removes, and its standard deviation between trainings."""

RISE_ODDS = 0.2
"""Prior odds of a loss that will rise."""

LAST_RATE = 0.1
"""Share of its largest value to which a falling learning rate is continued."""

PARTS = (0.4, 0.55, 0.7)
"""Shares of the curve from which its later part is forecast, as a test."""

MOST = 400
"""Largest number of losses of a fit. Longer curves are averaged over neighbouring steps."""

STEP_NAMES = re.compile(
    r"^(global_?)?(step|steps|iter|iters|iteration|iterations|epoch|epochs|tokens|update|updates|time)$", re.IGNORECASE
)
RATE_NAMES = re.compile(r"^(lr|learning_?rate|train[_/]lr|train[_/]learning_?rate)$", re.IGNORECASE)
LOSS_NAMES = (
    re.compile(r"^(val|valid|validation|eval|dev|test|held_?out)[_ /.-]?(loss|error|nll|perplexity)?$", re.IGNORECASE),
    re.compile(r"(val|valid|validation|eval|dev|test).*(loss|error)", re.IGNORECASE),
    re.compile(r"^(loss|error|nll)$", re.IGNORECASE),
)


@dataclass(frozen=True)
class TrainingForecast(Described):
    """The state of a training and its forecast.

    Attributes
    ----------
    source
        Name of the curve.
    steps, losses
        The validation losses.
    best_step, best_loss
        Step with the smallest smoothed loss, and this loss.
    verdict
        "stop" if the loss has passed its minimum, "rising soon" if a minimum is expected before the end, "flat" if more steps are expected
        to reduce the loss by less than the slack, "continue" otherwise.
    stop_at
        Recommended last step.
    end
        Step of the forecast.
    forecast, low, high
        Expected loss at `end` with its band.
    ahead, expected, expected_low, expected_high
        Further steps up to `end`, and the expected losses with their band.
    slack, band
        Smallest relative gain that justifies further steps, and nominal probability of the band.
    tested
        Mean relative error of forecasts of the last losses from earlier parts of the curve.
    rates
        A sentence on the learning rates of the forecast; empty without learning rates.
    """

    source: str
    steps: Array
    losses: Array
    best_step: float
    best_loss: float
    verdict: str
    stop_at: float
    end: float
    forecast: float
    low: float
    high: float
    ahead: Array
    expected: Array
    expected_low: Array
    expected_high: Array
    slack: float
    band: float
    tested: float
    rates: str = ""

    def sentences(self) -> list[str]:
        """Return the recommendation, and the expected loss, in sentences."""
        last, now = float(self.steps[-1]), float(self.losses[-1])
        expected = f"{self.forecast:.4g} ({self.low:.4g} to {self.high:.4g}) at step {self.end:.6g}"
        if self.verdict == "stop":
            best = f"the smoothed loss was {self.best_loss:.4g} and has risen since"
            first = f"Stop, and use the weights of step {self.best_step:.6g}: {best}."
        elif self.verdict == "rising soon":
            first = (
                f"Continue to about step {self.stop_at:.6g}: the loss is expected to rise after it, and to be {expected}."
            )
        elif self.verdict == "flat":
            first = (
                f"Stop: up to step {self.end:.6g} the loss is expected to fall by less than {self.slack:.1%}, from {self.best_loss:.4g} to "
                f"{expected}."
            )
        else:
            first = f"Continue: the loss is {self.best_loss:.4g} at step {last:.6g}, and is expected to be {expected}."
        lines = [first, f"The last of {self.steps.size} losses is {now:.4g} at step {last:.6g}."]
        if self.verdict == "continue" and self.stop_at < self.end:
            lines.append(
                f"From step {self.stop_at:.6g} on, twice as many steps reduce the loss by less than {self.slack:.1%}."
            )
        lines.append(
            f"Forecasts from {PARTS[0]:.0%} to {PARTS[-1]:.0%} of this curve were wrong by {self.tested:.1%} in the mean. "
            + (self.rates or "A later change of the learning rate is not included.")
        )
        return lines

    def page(self) -> Page:
        """Return the plain description, with the recommendation first and a table of expected losses."""
        rows = [
            {"step": float(step), "expected_loss": float(mean), "low": float(low), "high": float(high)}
            for step, mean, low, high in zip(self.ahead, self.expected, self.expected_low, self.expected_high, strict=True)
        ]
        first, *rest = self.sentences()
        data = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in asdict(self).items()}
        title = f"expected validation loss ({self.band:.0%} band)"
        return Page(
            facts={"answer": first},
            tables=[Table(rows, title)],
            sentences=rest,
            data={**data, "sentences": self.sentences()},
        )

    @property
    def table(self) -> list[dict[str, Any]]:
        """The expected losses, as rows."""
        rows: list[dict[str, Any]] = self.page().tables[0].rows  # type: ignore[assignment]
        return rows

    def figure(self) -> Figure:
        """Draw the losses, the expected losses with their band, and the recommended last step."""
        from limitlab.plotting.style import COLOURS, finish, new_figure, theory_line

        figure, (axes,) = new_figure(width=7.2)
        axes.plot(self.steps, self.losses, ".", color="grey", markersize=3, label="validation loss")
        theory_line(axes, self.ahead, self.expected, 0, "expected", linestyle="--")
        axes.fill_between(self.ahead, self.expected_low, self.expected_high, color=COLOURS[0], alpha=0.2, linewidth=0)
        axes.axvline(self.stop_at, color=COLOURS[1], linestyle=":", label="stop here")
        finish(axes, "step", "validation loss", self.source, xscale="log")
        return figure


def stop_training(
    data: str | Path | tuple[ArrayLike, ArrayLike],
    end: float | None = None,
    slack: float = 0.01,
    band: float = 0.9,
    step_column: str | None = None,
    loss_column: str | None = None,
) -> TrainingForecast:
    """Return whether a training should stop, and the validation loss to expect, from its losses so far.

    Parameters
    ----------
    data
        A CSV, TSV or Parquet file with steps and validation losses, or arrays (steps, losses) or (steps, losses, learning rates). Rows with
        a learning rate and no loss are the plan of the later learning rates.
    end
        Step of the forecast (default: twice the last step).
    slack
        Smallest relative gain that justifies further steps.
    band
        Nominal probability of the band.
    step_column, loss_column
        Names of the columns (default: columns with names such as step and val_loss).

    Examples
    --------
    >>> steps = np.arange(100, 5000, 50.0)
    >>> plan = stop_training((steps, 2 + 30 / steps**0.5), end=20000)
    >>> plan.verdict, bool(abs(plan.forecast / (2 + 30 / 20000**0.5) - 1) < 0.01)
    ('continue', True)
    >>> stop_training((steps, 1 + 20 / steps**0.5 + steps / 5000)).verdict
    'stop'
    """
    for name, value in (("slack", slack), ("band", band)):
        if not 0 < value < 1:
            raise Refused(f"{name} = {value!r} is not allowed: must be above 0 and below 1")
    source, steps, losses, planned = _read(data, step_column, loss_column)
    last = float(steps[-1])
    if end is None:
        end = float(planned[0][-1]) if planned is not None and planned[0][-1] > last else 2 * last
    end = float(end)
    if not (math.isfinite(end) and end > last):
        raise Refused(f"end = {end:g} is not allowed: must be above {last:g}, the last step")
    s, loss = averaged(steps, losses)
    smooth = smoothed(s, loss)
    ahead = np.geomspace(last, end, 13)[1:]
    rates = None if planned is None else Rates.of(*planned, last, end)
    miss, bias = past_errors(s, loss, rates)
    mean, low, high = forecast(s, loss, ahead, band, rates)
    wide = np.log(ahead / last) / math.log(2) * miss * abs(mean)
    half = (1 + band) / 2
    from statistics import NormalDist

    wide = wide * NormalDist().inv_cdf(half)
    least, most = np.minimum(low, mean) - wide, np.maximum(high, mean) + wide
    place = int(np.argmin(smooth))
    level, noise = float(smooth[place]), noise_of(s, loss)
    after = loss[place + 1 :]
    count = min(max(len(after) // 2, 1), after.size)
    rise = float(after[-count:].mean()) - level if after.size else 0.0
    lowest = int(np.argmin(mean))
    if (
        after.size >= 4
        and rise > max(3 * noise / math.sqrt(count), 0.2 * slack * abs(level))
        and mean.min() > level - abs(level) * slack
    ):
        verdict, stop_at = "stop", float(s[place])
    elif lowest < len(ahead) - 1 and mean[-1] > mean[lowest] * (1 + slack / 2):
        verdict, stop_at = "rising soon", float(ahead[lowest])
    elif level - mean[-1] < slack * abs(level):
        verdict, stop_at = "flat", last
    else:
        verdict, stop_at = "continue", worth_stopping(s, loss, end, slack, rates)
    return TrainingForecast(
        source=source, steps=steps, losses=losses, best_step=float(s[place]), best_loss=level, verdict=verdict, stop_at=stop_at, end=end,
        forecast=float(mean[-1]), low=float(least[-1]), high=float(most[-1]), ahead=ahead, expected=mean, expected_low=least,
        expected_high=most, slack=slack, band=band, tested=bias, rates="" if rates is None else rates.words,
    )  # fmt: skip


# -- fits -----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rates:
    """Learning rates over their largest value, at all steps up to the end.

    Attributes
    ----------
    steps, shares
        Steps, and learning rates over their largest value.
    words
        A sentence on the later learning rates.
    """

    steps: Array
    shares: Array
    words: str

    @classmethod
    def of(cls, steps: Array, rates: Array, last: float, end: float) -> Rates | None:
        """Return the learning rates up to the end of the forecast. The result is None if they never differ."""
        peak = float(rates.max())
        if steps[-1] > last:
            later = float(rates[-1]) / peak
            words = f"The learning rates up to step {steps[-1]:.6g} are those of the file, which end with {later:.0%} of the largest."
            return cls(steps, rates / peak, words)
        level = float(rates[-1])
        if level > 0.995 * peak:
            return None
        grid = np.linspace(last, end, 65)[1:]
        start = float(steps[np.flatnonzero(rates > 0.995 * peak)[-1]])
        phase = math.pi * (grid - start) / (end - start)
        made = LAST_RATE + (1 - LAST_RATE) * 0.5 * (1 + np.cos(phase))
        falling = rates[-1] < rates[-1 - min(len(rates) - 1, max(1, len(rates) // 10))]
        made = np.minimum(made, level / peak) if falling else np.full(grid.size, level / peak)
        words = (
            f"The learning rate is assumed to fall further, to {made[-1]:.0%} of its largest value at step {end:.6g}."
            if falling
            else "The learning rate is assumed to stay as it is."
        )
        return cls(np.append(steps, grid), np.append(rates / peak, made), words)

    def area(self, at: Array) -> Array:
        """Return the sum of the shares over the steps before `at`. Steps before the first learning rate count as steps with its value."""
        steps, shares = np.append(0.0, self.steps), np.append(self.shares[0], self.shares)
        total = np.append(0.0, np.cumsum(np.diff(steps) * (shares[1:] + shares[:-1]) / 2))
        return np.asarray(np.interp(at, steps, total) + np.maximum(at - steps[-1], 0.0) * shares[-1])

    def fallen(self, at: Array) -> Array:
        """Return by how much the learning rate has fallen, as a share of its largest value. Warm-up counts as 0."""
        peak = float(self.steps[int(np.argmax(self.shares))])
        return np.asarray(np.where(at > peak, 1 - np.interp(at, self.steps, self.shares), 0.0))


def forecast(s: Array, loss: Array, ahead: Array, band: float, rates: Rates | None = None) -> tuple[Array, Array, Array]:
    """Return the expected losses at later steps and their band, from fits of all powers with weights from residuals and prior."""
    from scipy.optimize import nnls

    inside = s >= s[0] + START * (s[-1] - s[0])
    y = loss[inside]
    scale = float(np.abs(y).max())
    if rates is None:
        x, later = s[inside] / s[-1], ahead / s[-1]
    else:
        unit = float(rates.area(s[-1:])[0])
        x, later = rates.area(s[inside]) / unit, rates.area(ahead) / unit
        fallen, further_fallen = rates.fallen(s[inside]), rates.fallen(ahead)
    count = min(effective_count(x, y), MOST_RESIDUALS)
    sigma = DEVIATION * scale
    curves, squares, parameters, priors = [], [], [], []
    for power in POWERS:
        for rise in (None, *RISES):
            columns = [np.ones_like(x), x**-power] + ([] if rise is None else [x**rise])
            further = [np.ones_like(later), later**-power] + ([] if rise is None else [later**rise])
            table, target = np.column_stack(columns), y / scale
            if rates is not None:  # a further row holds the prior of the gain by a lower learning rate
                weight_of_prior = DEVIATION * math.sqrt(len(y) / count) / DECAY_GAIN_SPREAD
                table = np.column_stack([table, -fallen])
                table = np.vstack([table, np.append(np.zeros(table.shape[1] - 1), weight_of_prior)])
                target = np.append(target, weight_of_prior * DECAY_GAIN)
                further = [*further, -further_fallen]
            coefficients, norm = nnls(table, target)
            curves.append(np.column_stack(further) @ coefficients * scale)
            squares.append((norm * scale) ** 2)
            parameters.append(3 if rise is None else 5)
            priors.append(
                0.5 * (math.log(power / USUAL_POWER) / POWER_SPREAD) ** 2
                + (0.0 if rise is None else math.log(len(RISES) / RISE_ODDS))
            )
    total = np.array(squares)
    variance = max(total.min() / len(y), sigma**2)
    score = (
        0.5 * count * total / len(y) / variance + 0.5 * np.array(parameters) * math.log(max(count, 2.0)) + np.array(priors)
    )
    weight = np.exp(-(score - score.min()))
    weight /= weight.sum()
    values = np.array(curves)
    order = np.argsort(values, axis=0)
    sorted_values = np.take_along_axis(values, order, axis=0)
    below = np.cumsum(weight[order], axis=0)
    ends = [
        sorted_values[np.argmax(below >= share, axis=0), np.arange(later.size)]
        for share in ((1 - band) / 2, 0.5, (1 + band) / 2)
    ]
    return ends[1], ends[0], ends[2]


def effective_count(x: Array, y: Array) -> float:
    """Return the number of independent residuals, from the correlation of neighbouring residuals of a smooth curve."""
    rest = y - np.polynomial.Polynomial.fit(np.log(x), y, min(4, len(x) // 4))(np.log(x))
    power = float(rest @ rest)
    correlation = float(rest[1:] @ rest[:-1]) / power if power > 0 else 0.0
    correlation = min(max(correlation, 0.0), 0.98)
    return max(len(y) * (1 - correlation) / (1 + correlation), 4.0)


def past_errors(s: Array, loss: Array, rates: Rates | None = None) -> tuple[float, float]:
    """Return the relative error of forecasts per doubling of the steps, and their mean error, from earlier parts of the curve."""
    tail = max(3, len(s) // 20)
    truth = float(loss[-tail:].mean())
    at = float(np.exp(np.log(s[-tail:]).mean()))
    missed, per_doubling = [], []
    for part in PARTS:
        size = int(part * len(s))
        if size < FEWEST // 2:
            continue
        guess = float(forecast(s[:size], loss[:size], np.array([at]), 0.9, rates)[0][0])
        missed.append(abs(guess / truth - 1))
        per_doubling.append(missed[-1] / math.log2(at / s[size - 1]))
    if not missed:
        return 0.02, 0.02
    return float(np.sqrt(np.mean(np.square(per_doubling)))), float(np.mean(missed))


def worth_stopping(s: Array, loss: Array, end: float, slack: float, rates: Rates | None = None) -> float:
    """Return the step from which twice as many steps reduce the expected loss by less than the slack, at most `end`."""
    grid = np.geomspace(s[-1], end, 40)
    now, twice = forecast(s, loss, grid, 0.9, rates)[0], forecast(s, loss, 2 * grid, 0.9, rates)[0]
    small = np.flatnonzero(now - twice < slack * np.abs(now))
    return float(grid[small[0]]) if small.size else end


def averaged(steps: Array, losses: Array) -> tuple[Array, Array]:
    """Return at most `MOST` losses, averaged over neighbouring steps."""
    if len(steps) <= MOST:
        return steps, losses
    place = (np.arange(len(steps)) * MOST) // len(steps)
    counts = np.bincount(place)
    return np.bincount(place, steps) / counts, np.bincount(place, losses) / counts


def smoothed(s: Array, loss: Array) -> Array:
    """Return the losses smoothed by a local line in the logarithm of the steps."""
    x = np.log(s)
    half = max(2, len(s) // 25)
    out = np.empty_like(loss)
    for i in range(len(s)):
        low, high = max(0, i - half), min(len(s), i + half + 1)
        line = np.polynomial.Polynomial.fit(x[low:high], loss[low:high], 1)
        out[i] = line(x[i])
    return out


def noise_of(s: Array, loss: Array) -> float:
    """Return the standard deviation of a loss around the smooth curve, from second differences."""
    second = loss[2:] - 2 * loss[1:-1] + loss[:-2]
    return float(np.median(np.abs(second))) / 0.6745 / math.sqrt(6)


# -- reading --------------------------------------------------------------------------------------------------------------


def _read(
    data: Any, step_column: str | None, loss_column: str | None
) -> tuple[str, Array, Array, tuple[Array, Array] | None]:
    """Return the name of a curve, its steps in ascending order, its losses, and all steps with a learning rate (None without any)."""
    rates: Array | None = None
    if isinstance(data, tuple):
        source, steps, losses = "curve", np.asarray(data[0], dtype=float), np.asarray(data[1], dtype=float)
        rates = np.asarray(data[2], dtype=float) if len(data) > 2 else None
        if steps.ndim != 1 or steps.shape != losses.shape:
            raise Refused(
                f"steps of shape {steps.shape} and losses of shape {losses.shape} are not allowed: give two equal lengths"
            )
    else:
        from limitlab.applied.forecast.tables import as_floats, load_frame

        file = Path(data)
        if file.suffix.lower() == ".npz":
            raise Refused(f"cannot read '{file}': give the curve as a CSV, TSV or Parquet file")
        frame, source = load_frame(file, ""), file.name
        names = list(map(str, frame.columns))
        frame.columns = names
        step_column = _column(source, names, "step_column", step_column, (STEP_NAMES,))
        loss_column = _column(source, names, "loss_column", loss_column, LOSS_NAMES)
        read = [as_floats(frame[name]) for name in (step_column, loss_column)]
        for name, values in zip((step_column, loss_column), read, strict=True):
            if values is None:
                raise Refused(f"{source}: the column {name!r} contains text and not numbers: name another column")
        steps, losses = np.asarray(read[0]), np.asarray(read[1])
        named = [name for name in names if RATE_NAMES.search(name.strip())]
        rates = as_floats(frame[named[0]]) if len(named) == 1 else None
    steps = steps + 1.0 if steps.size and np.nanmin(steps) == 0 else steps
    planned = None if rates is None else _plan(source, steps, rates)
    known = np.isfinite(steps) & np.isfinite(losses)
    steps, losses = steps[known], losses[known]
    order = np.argsort(steps, kind="stable")
    steps, losses = steps[order], losses[order]
    if steps.size < FEWEST:
        raise Refused(f"{source} has {steps.size} losses, which is too few for a forecast: give at least {FEWEST}")
    if steps[0] <= 0 or (np.diff(steps) <= 0).any():
        repeated = float(steps[1:][np.diff(steps) <= 0][0]) if (np.diff(steps) <= 0).any() else float(steps[0])
        raise Refused(
            f"{source}: step {repeated:g} occurs twice or is negative: give the losses of a single run, one per step"
        )
    if np.ptp(losses) == 0:
        raise Refused(f"{source}: every loss is {losses[0]:g}: give losses that change")
    return source, steps, losses, planned


def _plan(source: str, steps: Array, rates: Array) -> tuple[Array, Array] | None:
    """Return the steps with a learning rate in ascending order, and these learning rates; None for fewer than two."""
    if rates.shape != steps.shape:
        raise Refused(
            f"{source}: learning rates of shape {rates.shape} are not allowed: give one for each of {steps.size} steps"
        )
    known = np.isfinite(steps) & np.isfinite(rates)
    if (rates[known] < 0).any():
        raise Refused(f"{source}: a learning rate of {rates[known].min():g} is not allowed: must be at least 0")
    if known.sum() < 2 or rates[known].max() == 0:
        return None
    order = np.argsort(steps[known], kind="stable")
    return steps[known][order], rates[known][order]


def _column(source: str, names: list[str], role: str, wanted: str | None, patterns: tuple[re.Pattern[str], ...]) -> str:
    if wanted is not None:
        if wanted not in names:
            raise Refused(f"{source} has no column {wanted!r} ({role}): {did_you_mean(wanted, names)}")
        return wanted
    for pattern in patterns:
        hits = [name for name in names if pattern.search(name.strip())]
        if len(hits) == 1:
            return hits[0]
        if hits:
            raise Refused(f"{source} has the columns {', '.join(hits)}: name one with {role}")
    raise Refused(f"{source} has no column for {role} among {', '.join(names[:8])}: name one with {role}")
