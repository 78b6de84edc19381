"""The statistics of a comparison, from means and predictions to the error budget and the verdict of every observable.

The gap between experiment and limit is modelled, entry by entry, as

    gap(size) = a + b size^-r,                                                                                  (1)

with the declared exponent r of the law. The law is right if a = 0. The estimate of a has three errors, which are stated separately.
These are the standard error of the simulation, the numerical error of the prediction, and the finite-size allowance. The allowance
is half of the correction b size^-r that the fit removed at the largest size, because (1) is only the leading term of the expansion.

An *entry* is one number of one observable, for example its value at one time. Its gap is compared with the scale of its observable
(the largest value). It is also compared with the value of the entry itself, unless that value is below a hundredth of the scale, so
that the relative error of a small number at a late time is also bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from limitlab._core.draws import mean_and_error
from limitlab._core.law import Law

__all__ = ["Row"]

Array = NDArray[np.float64]
Verdict = Literal["agree", "disagree", "underpowered"]
Reason = Literal["", "gap", "noise", "size", "rate", "misfit", "one size"]
"""Why an entry does not agree.

The reasons are a gap; too few draws; finite-size effects; a gap that falls at another rate than declared, or that no power with the
declared rate fits; a gap at the only size.
"""

FLOOR = 1e-12
"""Differences below this fraction of an observable's scale count as rounding, whatever their standard error is."""
POWER = 1.2815515655446004
"""Standard errors by which a gap must exceed the threshold to be detected with probability 0.9."""
LARGEST_RELATIVE_GAP, NEGLIGIBLE_ENTRY = 0.5, 0.01
"""A gap of half of an entry's value must be detected, unless the entry is below this fraction of its observable's scale."""
NEGLIGIBLE_GAP = 0.1
"""The rate test is skipped for gaps smaller than this fraction of the resolution."""


@dataclass(frozen=True)
class EntryEstimate:
    """The estimates for one entry of one observable, from which its verdict follows."""

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
        """The number of standard errors by which the gap exceeds the numerical error and the finite-size allowance."""
        beyond = max(abs(self.gap) - self.allowance - self.numerical, 0.0)
        return float(np.copysign(beyond / self.standard_error, self.gap))

    def room(self, resolution: float) -> float:
        """Return the largest gap that may remain undetected, from the scale of the observable and from the entry itself."""
        size = abs(self.theory)
        return min(resolution * self.scale, LARGEST_RELATIVE_GAP * size if size >= NEGLIGIBLE_ENTRY * self.scale else np.inf)

    def half_width(self, critical: float) -> float:
        """Return the gap that is detected with probability 0.9."""
        return (critical + POWER) * self.standard_error + self.allowance + self.numerical

    @property
    def exact(self) -> bool:
        """Whether the law is declared to be exact at every size."""
        return bool(np.isinf(self.declared_rates[0]))

    def wrong_rate(self) -> bool:
        """Return whether the gap falls at another rate than declared, by more than half of it.

        Smaller deviations can come from the next order of the expansion.
        """
        low, high = self.declared_rates
        outside = max(low - self.rate, self.rate - high)  # NaN if no rate can be measured
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
    half_width: float  # the widest over all entries: the gap that is detected with probability 0.9
    relative_half_width: float  # relative to the scale of the observable
    widest_entry: str
    verdict: Verdict
    reason: Reason
    draws_needed: int  # draws per size that would decide; 0 if more draws would not decide
    size_needed: int  # a larger size that would decide; 0 if it would not


# -- entries --------------------------------------------------------------------------------------------------------------


def entries_of(law: Law, data: xr.Dataset, name: str, draws: int) -> list[EntryEstimate]:
    """Return the extrapolated gap and the error budget of every entry of an observable whose limit is finite."""
    sizes = data["size"].values.astype(float)
    theory, mean, error = (data[f"{kind}_{name}"].values.reshape(len(sizes), -1) for kind in ("theory", "mean", "error"))
    if not np.isfinite(mean).all():
        raise FloatingPointError(f"the simulation of {type(law).__name__} gave a non-finite {name}; theory: {theory[-1]}")
    finite = np.isfinite(theory).all(axis=0)
    if not finite.any():
        return []
    scale = max(float(np.abs(theory[:, finite]).max()), law.natural_scale(name)) or _overall_scale(data)
    gaps = mean[:, finite] - theory[:, finite]
    # a number that every draw gives exactly, such as a start, has no error, unlike a coincidence of few draws
    exact = (error[:, finite] <= FLOOR * scale).all(axis=0) & (np.abs(gaps) <= 10 * FLOOR * scale).all(axis=0)
    error = np.where(exact, FLOOR * scale, with_error_floor(error, FLOOR * scale)[:, finite])
    fits = [extrapolate(sizes, gaps, error, draws, rate) for rate in law.rates(name)]
    fit, between = fits[0], np.abs(fits[1].intercept - fits[0].intercept) / 2  # an exponent that is only bounded
    tests = [
        lack_of_fit(sizes, gaps, error, draws, rate, extrapolation)
        for rate, extrapolation in zip(law.rates(name), fits, strict=True)
    ]
    labels = _labels(data[f"theory_{name}"].isel(size=0))
    numerical = float(data[f"theory_{name}"].attrs["numerical_error"])
    entries = []
    for column, index in enumerate(np.flatnonzero(finite)):
        rate, rate_error = fitted_rate(sizes, gaps[:, column], error[:, column])
        entries.append(
            EntryEstimate(
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
    """Return the scale of an observable whose prediction is zero.

    It is the largest finite value of the other observables.
    """
    values = [data[name].values for name in data if str(name).startswith("theory_")]
    return max((float(np.abs(array[np.isfinite(array)]).max(initial=0.0)) for array in values), default=0.0) or 1.0


def _labels(array: xr.DataArray) -> list[str]:
    """Return a label such as "time=3" for every entry of an observable."""
    if not array.dims:
        return [""]

    def label(index: tuple[int, ...]) -> Iterator[str]:
        for dim, i in zip(array.dims, index, strict=True):
            yield f"{dim}={array[dim].values[i] if dim in array.coords else i:.4g}"

    return [", ".join(label(index)) for index in np.ndindex(*array.shape)]


# -- the verdict ----------------------------------------------------------------------------------------------------------


def judge(entries: Sequence[EntryEstimate], level: float, resolution: float, sizes: Sequence[int], draws: int) -> list[Row]:
    """Return the worst entry of each observable.

    Every entry gets a verdict, with Holm's correction over all entries.
    """
    freedom = np.array([entry.freedom for entry in entries])
    p_values = two_sided_p(np.array([entry.z for entry in entries]), freedom)
    off = holm(p_values, level)
    critical_values = critical(level / len(entries), freedom)
    misfits = holm(np.array([entry.misfit_p for entry in entries]), level)
    rows: dict[str, list[tuple[EntryEstimate, Row]]] = {}
    for i, entry in enumerate(entries):
        width = entry.half_width(float(critical_values[i]))
        reason = _reason(entry, bool(off[i]), bool(misfits[i]), width, resolution, single=len(sizes) == 1)
        row = _row(entry, float(p_values[i]), width, reason, resolution, sizes, draws)
        rows.setdefault(entry.observable, []).append((entry, row))
    return [_worst(judged) for judged in rows.values()]


def _reason(entry: EntryEstimate, off: bool, misfit: bool, width: float, resolution: float, single: bool) -> Reason:
    if off:  # with a single size a gap may be a finite-size effect, which only growing sizes can exclude
        return "one size" if single and not entry.exact else "gap"
    room = entry.room(resolution)
    if width > room:
        return "size" if _bound_by_size(entry, width, room) else "noise"
    if entry.wrong_rate() and abs(entry.last_gap) > NEGLIGIBLE_GAP * room:
        return "rate"
    if misfit and entry.misfit > NEGLIGIBLE_GAP * room:
        return "misfit"
    return ""


def _bound_by_size(entry: EntryEstimate, width: float, room: float) -> bool:
    """Return whether finite-size and numerical errors, not noise, make the budget too wide.

    These errors must exceed half of the room. They do not count if the noise alone exceeds the room and the allowance is at most half
    of the noise, because such an allowance may itself be mostly noise.
    """
    noise = width - entry.allowance - entry.numerical
    if entry.allowance + entry.numerical < room / 2:
        return False
    return not (entry.allowance <= noise / 2 and noise > room)


def _row(
    entry: EntryEstimate, p_value: float, width: float, reason: Reason, resolution: float, sizes: Sequence[int], draws: int
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


def _draws_needed(entry: EntryEstimate, width: float, room: float, draws: int) -> int:
    """Return the draws per size at which the budget is small enough.

    The noise decreases as the inverse square root of the draws. If the other two errors reach half of the room, the whole budget is
    assumed to decrease in this way, and it must fall to half of the room.
    """
    fixed = entry.allowance + entry.numerical
    noise = width - fixed
    factor = noise / (room - fixed) if fixed < room / 2 else 2 * (noise + fixed) / room
    return int(np.ceil(min(draws * min(factor, 1e150) ** 2, 1e300)))


def _size_needed(entry: EntryEstimate, room: float, sizes: Sequence[int]) -> int:
    if entry.exact or entry.allowance < entry.numerical:
        return 0  # the prediction is not accurate enough
    digits = np.log10(max(4 * entry.allowance / room, 1e-300)) / entry.declared_rates[0]
    return int(np.ceil(sizes[-1] * 10 ** min(digits, 290.0)))


def _worst(judged: Sequence[tuple[EntryEstimate, Row]]) -> Row:
    """Return the row of an observable, which has its least favourable entry and the widest of all its budgets."""
    order = {"agree": 0, "underpowered": 1, "disagree": 2}
    worst = max((row for _, row in judged), key=lambda row: (order[row.verdict], row.draws_needed, -row.p_value))
    widest = max((row for _, row in judged), key=lambda row: row.relative_half_width)
    return replace(
        worst,
        half_width=widest.half_width,
        relative_half_width=widest.relative_half_width,
        widest_entry=widest.entry,
    )


# -- statistics of (1) --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Extrapolation:
    """The fit of (1) for every entry.

    It has the intercept `a`, its standard error and degrees of freedom, and the finite-size term.
    """

    intercept: Array
    standard_error: Array
    freedom: Array
    correction: Array  # b size^-r at the largest size


def extrapolate(sizes: Array, gaps: Array, errors: Array, draws: int, rate: float) -> Extrapolation:
    """Fit (1) by weighted least squares, independently for every column of `gaps` (rows are sizes).

    With one size, or for a law that is exact at every size (rate = inf), there is no b, and a is the weighted mean gap.

    >>> sizes = np.array([50.0, 100.0, 200.0])
    >>> fit = extrapolate(sizes, (3 / sizes)[:, None], np.full((3, 1), 0.01), draws=20, rate=1.0)
    >>> bool(abs(fit.intercept[0]) < 1e-12), float(round(fit.correction[0], 6))
    (True, 0.015)
    """
    weight = 1 / errors**2
    if len(sizes) == 1 or np.isinf(rate):
        hat = weight / weight.sum(axis=0)
        correction = np.zeros(gaps.shape[1])
    else:
        x = (sizes / sizes[-1]) ** -rate  # equals 1 at the largest size, so b is the correction there
        # differences instead of sums of squares avoid cancellation when one weight dominates
        apart = x[:, None] - x[None, :]
        determinant = np.einsum("ij,ie,je->e", apart**2, weight, weight) / 2
        hat = weight * np.einsum("ij,je->ie", -apart * x[None, :], weight) / determinant
        slope = weight * np.einsum("ij,je->ie", apart, weight) / determinant
        correction = (slope * gaps).sum(axis=0)
    variances = (hat * errors) ** 2
    total = variances.sum(axis=0)
    freedom = total**2 / np.maximum((variances**2 / max(draws - 1, 1)).sum(axis=0), np.finfo(float).tiny)
    return Extrapolation((hat * gaps).sum(axis=0), np.sqrt(total), freedom, correction)


def lack_of_fit(
    sizes: Array, gaps: Array, errors: Array, draws: int, rate: float, fit: Extrapolation
) -> tuple[Array, Array]:
    """Return a p-value and the largest residual for every column, from a test whether (1) describes the gaps.

    A next term of the expansion, c size^(-2r), is accepted if it is at most half of the leading term at the largest size, which is
    the finite-size allowance. With as many coefficients as sizes there is nothing to test (p = 1).

    >>> sizes = np.array([50.0, 100.0, 200.0])
    >>> straight, bent = (3 / sizes)[:, None], np.array([[0.0], [0.2], [0.0]])
    >>> errors = np.full((3, 1), 0.01)
    >>> for gaps in (straight, bent):
    ...     fit = extrapolate(sizes, gaps, errors, 20, 1.0)
    ...     print(bool(lack_of_fit(sizes, gaps, errors, 20, 1.0, fit)[0][0] < 1e-3))
    False
    True
    """
    from scipy.special import fdtrc

    count = gaps.shape[1]
    exact = len(sizes) == 1 or np.isinf(rate)
    freedom = len(sizes) - (1 if exact else 2)
    x = np.ones(len(sizes)) if exact else (sizes / sizes[-1]) ** -rate
    residual = gaps - fit.intercept - fit.correction * x[:, None]
    if freedom < 1:
        return np.ones(count), np.zeros(count)
    following = np.abs(fit.correction) / 2 * x[:, None] ** 2
    refit = extrapolate(sizes, following, errors, draws, rate)
    unexplained = following - refit.intercept - refit.correction * x[:, None]
    distance, granted = (np.sqrt(((part / errors) ** 2).sum(axis=0)) for part in (residual, unexplained))
    statistic = np.maximum(distance - granted, 0.0) ** 2 / freedom
    return np.asarray(fdtrc(freedom, max(draws - 1, 1), statistic)), np.abs(residual).max(axis=0)


def with_error_floor(errors: Array, floor: float) -> Array:
    """Return standard errors with a lower bound, because a few draws of a discrete observable can be identical.

    The typical error of an entry is the geometric mean over the sizes. If all errors of the entry vanish and those of other entries
    do not, its typical error is the median of the other typical errors. An error below a third of the typical error is raised to
    this third.

    >>> with_error_floor(np.array([[0.02], [0.0], [0.005]]), floor=1e-12).round(4).ravel().tolist()
    [0.02, 0.0033, 0.005]
    """
    counted = np.where(errors > floor, errors, np.nan)
    some = ~np.isnan(counted).all(axis=0)
    typical = np.zeros(errors.shape[1])
    typical[some] = np.exp(np.nanmean(np.log(counted[:, some]), axis=0))
    typical[~some] = np.median(typical[some]) if some.any() else 0.0
    return np.maximum(errors, np.maximum(typical / 3, floor))


def fitted_rate(sizes: Array, gaps: Array, errors: Array) -> tuple[float, float]:
    """Return the exponent of |gap| ~ size^-r and its standard error, or (NaN, NaN).

    The fit uses the sizes whose gap exceeds the noise.

    >>> sizes = np.array([50.0, 100.0, 200.0])
    >>> [round(value, 3) for value in fitted_rate(sizes, 2 / sizes, 1e-4 / sizes)]
    [1.0, 0.0]
    """
    clear = (np.abs(gaps) > 3 * errors) & (np.sign(gaps) == np.sign(gaps[0]))
    if clear.sum() < 3:
        return float("nan"), float("nan")
    x, y = np.log(sizes[clear]), np.log(np.abs(gaps[clear]))
    sigma = errors[clear] / np.abs(gaps[clear])
    centre = np.average(x, weights=sigma**-2)
    spread = ((x - centre) ** 2 / sigma**2).sum()
    return float(-((x - centre) * y / sigma**2).sum() / spread), float(spread**-0.5)


def holm(p_values: Array, level: float) -> NDArray[np.bool_]:
    """Return which hypotheses are rejected at a family-wise error of `level` (Holm's step-down procedure).

    >>> holm(np.array([1e-6, 0.2, 0.02]), 0.05).tolist()
    [True, False, True]
    >>> holm(np.array([1e-6, 0.2, 0.03]), 0.05).tolist()
    [True, False, False]
    """
    order = np.argsort(p_values)
    thresholds = level / np.arange(len(p_values), 0, -1)
    failed = p_values[order] > thresholds
    count = int(np.argmax(failed)) if failed.any() else len(p_values)
    rejected = np.zeros(len(p_values), dtype=bool)
    rejected[order[:count]] = True
    return rejected


def two_sided_p(z: Array, freedom: Array) -> Array:
    """Return the two-sided p-value of a Student statistic."""
    from scipy.special import stdtr

    return np.asarray(2 * stdtr(freedom, -np.abs(z)))


def critical(level: float, freedom: Array) -> Array:
    """Return the value that a Student statistic exceeds in absolute value with probability `level`."""
    from scipy.special import stdtrit

    return np.asarray(-stdtrit(freedom, level / 2))


# -- extrapolated values for figures --------------------------------------------------------------------------------------
# A figure with experiments of one size beside a limit shows finite-size gaps, which a comparison removes before its verdict. A
# figure of the extrapolated values shows agreement where the verdict is "agree".


class Compared(Protocol):
    """The parts of a comparison from which an observable is extrapolated."""

    @property
    def law(self) -> Law:
        """The law, at the parameters that were compared."""

    @property
    def dataset(self) -> xr.Dataset:
        """Predictions, means and standard errors at every size."""

    @property
    def draws(self) -> int:
        """Draws per size."""


def extrapolated(result: Compared, name: str) -> tuple[Array, Array]:
    """Return an observable extrapolated to infinite size, and its error, which is standard error plus finite-size allowance.

    Entries with an infinite limit, which are not compared, are NaN.

    >>> from limitlab import compare
    >>> from limitlab.laws import Ridge
    >>> result = compare(Ridge(ratio=0.5, ridge=0.1, noise=0.5), sizes=[20, 40, 80], seeds=30)
    >>> value, error = extrapolated(result, "test_error")
    >>> bool(abs(value - result.law.theory().test_error) < 4 * error)
    True
    """
    theory = result.dataset[f"theory_{name}"].values
    value, error = np.full(theory[-1].shape, np.nan), np.full(theory[-1].shape, np.nan)
    finite = np.isfinite(theory).all(axis=0)
    entries = entries_of(result.law, result.dataset, name, result.draws)
    value[finite] = [entry.theory + entry.gap for entry in entries]
    error[finite] = [entry.standard_error + entry.allowance for entry in entries]
    return value, error


def extrapolated_runs(
    sizes: Sequence[int], runs: Sequence[ArrayLike], limits: ArrayLike, rate: float
) -> tuple[Array, Array]:
    """Return the same extrapolation for draws that are already made.

    `runs` contains, for every size, the entries of every draw; `limits` is their prediction.

    >>> sizes, rng = (50, 100, 200), np.random.default_rng(0)
    >>> value, error = extrapolated_runs(sizes, [1 + 3 / n + 0.01 * rng.standard_normal((40, 1)) for n in sizes], [1.0], 1.0)
    >>> bool(abs(value[0] - 1) < 3 * error[0])
    True
    """
    tables = [np.asarray(run, dtype=float) for run in runs]
    means, errors = (np.array(part) for part in zip(*map(mean_and_error, tables), strict=True))
    limit = np.broadcast_to(np.asarray(limits, dtype=float), means.shape)
    fit = extrapolate(np.asarray(sizes, dtype=float), means - limit, errors, len(tables[0]), rate)
    return limit[-1] + fit.intercept, fit.standard_error + np.abs(fit.correction) / 2
