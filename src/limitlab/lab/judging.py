"""From means and predictions to a verdict: the error budget of every entry, and what it allows to be said.

An *entry* is one number of one observable (its value at one time, say). It is judged twice: against the scale of its observable (the
largest value), and, unless it is below a hundredth of that, against its own value, so that a late small number cannot be wrong by a
factor unseen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import xarray as xr

from limitlab._core.law import Law
from limitlab.lab import _statistics as statistics

__all__ = ["Row"]

Verdict = Literal["agree", "disagree", "underpowered"]
Reason = Literal["", "gap", "noise", "size", "rate", "misfit", "one size"]
"""Why an entry does not agree: a gap; too few draws; finite-size effects; a gap that falls at another rate than declared, or that no
power with the declared rate fits; a gap at the only size."""

FLOOR = 1e-12
"""Differences below this fraction of an observable's scale are rounding, whatever their standard error."""
POWER = 1.2815515655446004
"""Standard errors by which a gap must exceed the threshold to be noticed with probability 0.9."""
OWN_SCALE, SMALL = 0.5, 0.01
"""A gap of half of an entry's own value must be noticed, unless the entry is below this fraction of its observable's scale."""
HARMLESS = 0.1
"""Finite-size gaps below this fraction of the resolution may fall as they like."""


@dataclass(frozen=True)
class Entry:
    """The numbers of one entry of one observable, before the verdict."""

    observable: str
    label: str
    theory: float
    simulation: float  # mean at the largest size
    gap: float  # simulation minus theory, extrapolated to infinite size
    standard_error: float
    freedom: float
    numerical: float
    allowance: float
    scale: float
    rate: float
    rate_error: float
    declared_rates: tuple[float, float]
    misfit_p: float
    misfit: float
    last_gap: float  # at the largest size

    @property
    def z(self) -> float:
        """Standard errors by which the gap exceeds what numerics and finite size explain."""
        beyond = max(abs(self.gap) - self.allowance - self.numerical, 0.0)
        return float(np.copysign(beyond / self.standard_error, self.gap))

    def room(self, resolution: float) -> float:
        """The largest gap that may go unnoticed: on the observable's scale, and on the entry's own."""
        own = abs(self.theory)
        return min(resolution * self.scale, OWN_SCALE * own if own >= SMALL * self.scale else np.inf)

    def half_width(self, critical: float) -> float:
        """The gap that is noticed with probability 0.9."""
        return (critical + POWER) * self.standard_error + self.allowance + self.numerical

    @property
    def exact(self) -> bool:
        """Whether the law is declared to be exact at every size."""
        return bool(np.isinf(self.declared_rates[0]))

    def wrong_rate(self) -> bool:
        """Whether the gap visibly falls at another rate than declared (by half of it: the next order explains less)."""
        low, high = self.declared_rates
        outside = max(low - self.rate, self.rate - high)  # NaN where no rate can be seen
        return not self.exact and bool(outside > 4 * self.rate_error + low / 2)


@dataclass(frozen=True)
class Row:
    """One observable of a comparison, at its least favourable entry (time, position, ...)."""

    observable: str
    entry: str
    theory: float
    simulation: float  # mean at the largest size
    gap: float  # simulation minus theory, extrapolated to infinite size
    standard_error: float
    numerical_error: float
    finite_size_allowance: float
    z: float
    p_value: float
    rate: float
    rate_error: float
    half_width: float  # the widest over all entries: the gap that is noticed with probability 0.9
    relative_half_width: float  # on the observable's scale
    widest_entry: str
    verdict: Verdict
    reason: Reason
    draws_needed: int  # per size, where more draws would decide; 0 where they would not
    size_needed: int  # the same for a larger size


# -- entries --------------------------------------------------------------------------------------------------------------


def entries_of(law: Law, data: xr.Dataset, name: str, draws: int) -> list[Entry]:
    """Extrapolated gap and error budget of every entry of an observable whose limit is finite."""
    sizes = data["size"].values.astype(float)
    theory, mean, error = (data[f"{kind}_{name}"].values.reshape(len(sizes), -1) for kind in ("theory", "mean", "error"))
    if not np.isfinite(mean).all():
        raise FloatingPointError(f"the simulation of {type(law).__name__} gave a non-finite {name}; theory: {theory[-1]}")
    finite = np.isfinite(theory).all(axis=0)
    if not finite.any():
        return []
    scale = max(float(np.abs(theory[:, finite]).max()), law.natural_scale(name)) or _overall_scale(data)
    gaps = mean[:, finite] - theory[:, finite]
    # a number that every draw gives exactly, such as a start, is not a coincidence of few draws
    exact = (error[:, finite] <= FLOOR * scale).all(axis=0) & (np.abs(gaps) <= 10 * FLOOR * scale).all(axis=0)
    error = np.where(exact, FLOOR * scale, statistics.steadied(error, FLOOR * scale)[:, finite])
    fits = [statistics.extrapolate(sizes, gaps, error, draws, rate) for rate in law.rates(name)]
    fit, between = fits[0], np.abs(fits[1].intercept - fits[0].intercept) / 2  # an exponent known only within bounds
    tests = [
        statistics.lack_of_fit(sizes, gaps, error, draws, rate, one) for rate, one in zip(law.rates(name), fits, strict=True)
    ]
    labels = _labels(data[f"theory_{name}"].isel(size=0))
    numerical = float(data[f"theory_{name}"].attrs["numerical_error"])
    entries = []
    for column, index in enumerate(np.flatnonzero(finite)):
        rate, rate_error = statistics.fitted_rate(sizes, gaps[:, column], error[:, column])
        entries.append(
            Entry(
                observable=name,
                label=labels[index],
                theory=float(theory[-1, index]),
                simulation=float(mean[-1, index]),
                gap=float(fits[0].intercept[column] + fits[1].intercept[column]) / 2,
                standard_error=float(fit.standard_error[column]),
                freedom=float(fit.freedom[column]),
                numerical=numerical + 10 * FLOOR * scale,
                allowance=abs(float(fit.correction[column])) / 2 + float(between[column]),
                scale=scale,
                rate=rate,
                rate_error=rate_error,
                declared_rates=law.rates(name),
                misfit_p=max(float(p_value[column]) for p_value, _ in tests),
                misfit=min(float(residual[column]) for _, residual in tests),
                last_gap=float(gaps[-1, column]),
            )
        )
    return entries


def _overall_scale(data: xr.Dataset) -> float:
    """Scale for an observable that the theory says is zero: the largest finite value of the others."""
    values = [data[name].values for name in data if str(name).startswith("theory_")]
    return max((float(np.abs(array[np.isfinite(array)]).max(initial=0.0)) for array in values), default=0.0) or 1.0


def _labels(array: xr.DataArray) -> list[str]:
    """A label such as "time=3" for every entry of an observable."""
    if not array.dims:
        return [""]

    def one(index: tuple[int, ...]) -> Iterator[str]:
        for dim, i in zip(array.dims, index, strict=True):
            yield f"{dim}={array[dim].values[i] if dim in array.coords else i:.4g}"

    return [", ".join(one(index)) for index in np.ndindex(*array.shape)]


# -- the verdict ----------------------------------------------------------------------------------------------------------


def judge(entries: Sequence[Entry], level: float, resolution: float, sizes: Sequence[int], draws: int) -> list[Row]:
    """A verdict per entry (Holm's correction over all of them), then the worst entry of each observable."""
    freedom = np.array([entry.freedom for entry in entries])
    p_values = statistics.two_sided_p(np.array([entry.z for entry in entries]), freedom)
    off = statistics.holm(p_values, level)
    critical = statistics.critical(level / len(entries), freedom)
    misfits = statistics.holm(np.array([entry.misfit_p for entry in entries]), level)
    rows: dict[str, list[tuple[Entry, Row]]] = {}
    for i, entry in enumerate(entries):
        width = entry.half_width(float(critical[i]))
        reason = _reason(entry, bool(off[i]), bool(misfits[i]), width, resolution, single=len(sizes) == 1)
        row = _row(entry, float(p_values[i]), width, reason, resolution, sizes, draws)
        rows.setdefault(entry.observable, []).append((entry, row))
    return [_worst(found) for found in rows.values()]


def _reason(entry: Entry, off: bool, misfit: bool, width: float, resolution: float, single: bool) -> Reason:
    if off:  # with a single size a gap may be a finite-size effect: only growing sizes can tell
        return "one size" if single and not entry.exact else "gap"
    room = entry.room(resolution)
    if width > room:
        return "size" if _bound_by_size(entry, width, room) else "noise"
    if entry.wrong_rate() and abs(entry.last_gap) > HARMLESS * room:
        return "rate"
    if misfit and entry.misfit > HARMLESS * room:
        return "misfit"
    return ""


def _bound_by_size(entry: Entry, width: float, room: float) -> bool:
    """Whether finite-size effects and not noise make the budget too wide; an allowance may itself be mostly noise."""
    noise = width - entry.allowance - entry.numerical
    if entry.allowance + entry.numerical < room / 2:
        return False
    return not (entry.allowance <= noise / 2 and noise > room)


def _row(
    entry: Entry, p_value: float, width: float, reason: Reason, resolution: float, sizes: Sequence[int], draws: int
) -> Row:
    return Row(
        observable=entry.observable,
        entry=entry.label,
        theory=entry.theory,
        simulation=entry.simulation,
        gap=entry.gap,
        standard_error=entry.standard_error,
        numerical_error=entry.numerical,
        finite_size_allowance=entry.allowance,
        z=entry.z,
        p_value=p_value,
        rate=entry.rate,
        rate_error=entry.rate_error,
        half_width=width,
        relative_half_width=width / entry.scale,
        widest_entry=entry.label,
        verdict="agree" if not reason else "disagree" if reason == "gap" else "underpowered",
        reason=reason,
        draws_needed=_draws_needed(entry, width, entry.room(resolution), draws) if reason == "noise" else 0,
        size_needed=_size_needed(entry, entry.room(resolution), sizes) if reason == "size" else 0,
    )


def _draws_needed(entry: Entry, width: float, room: float, draws: int) -> int:
    """Draws per size at which the budget fits: the noise falls as their square root, and so does an allowance that is noise."""
    fixed = entry.allowance + entry.numerical
    noise = width - fixed
    factor = noise / (room - fixed) if fixed < room / 2 else 2 * (noise + fixed) / room
    return int(np.ceil(min(draws * min(factor, 1e150) ** 2, 1e300)))


def _size_needed(entry: Entry, room: float, sizes: Sequence[int]) -> int:
    if entry.exact or entry.allowance < entry.numerical:
        return 0  # the prediction itself is not accurate enough
    digits = np.log10(max(4 * entry.allowance / room, 1e-300)) / entry.declared_rates[0]
    return int(np.ceil(sizes[-1] * 10 ** min(digits, 290.0)))


def _worst(found: Sequence[tuple[Entry, Row]]) -> Row:
    """The row of an observable: its least favourable entry, with the widest of all its budgets."""
    order = {"agree": 0, "underpowered": 1, "disagree": 2}
    worst = max((row for _, row in found), key=lambda row: (order[row.verdict], row.draws_needed, -row.p_value))
    widest = max((row for _, row in found), key=lambda row: row.relative_half_width)
    return replace(
        worst,
        half_width=widest.half_width,
        relative_half_width=widest.relative_half_width,
        widest_entry=widest.entry,
    )
