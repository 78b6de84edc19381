"""Does the experiment agree with the limit? A comparison with an error budget and three verdicts.

`compare` simulates a law at several sizes, extrapolates the gap to infinite size (`limitlab.lab.statistics`) and says

- **agree**: no observable is off by more than its error budget, and the budget is small enough to notice;
- **disagree**: an observable is off, after correction for testing several at once;
- **underpowered**: neither can be said; the explanation gives the number of draws or the size that would decide it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from limitlab.lab import statistics
from limitlab.lab.blas import single_threaded
from limitlab.laws.base import Law, checked_seed, checked_size

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
Verdict = Literal["agree", "disagree", "underpowered"]

FLOOR = 1e-12
"""Differences below this fraction of an observable's scale are rounding, whatever their standard error."""


@dataclass(frozen=True)
class Row:
    """One observable of a comparison, at the entry (time, position, ...) with the least favourable statistic."""

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
    half_width: float  # the gap that this comparison would have noticed
    verdict: Verdict


@dataclass(frozen=True)
class Comparison:
    """What `compare` found. Prints as a table with the verdict; `passed` is True only for "agree"."""

    law: Law
    verdict: Verdict
    explanation: str
    rows: tuple[Row, ...]
    dataset: xr.Dataset

    @property
    def passed(self) -> bool:
        """Whether theory and simulation agree."""
        return self.verdict == "agree"

    def table(self) -> pd.DataFrame:
        """The error budget, one row per observable."""
        import pandas as pd

        return pd.DataFrame([vars(row) for row in self.rows]).set_index("observable")

    def plot(self) -> Figure:
        """Gap against size with error bars, one panel per observable."""
        from limitlab.show.figures.generic import comparison_figure

        return comparison_figure(self)

    def __str__(self) -> str:
        columns = ["theory", "simulation", "gap", "standard_error", "finite_size_allowance", "z", "verdict"]
        return f"{type(self.law).__name__}: {self.verdict}. {self.explanation}\n{self.table()[columns].to_string()}"


def compare(
    law: Law,
    sizes: Sequence[int] | None = None,
    seeds: int | None = None,
    *,
    base_seed: int = 0,
    level: float = 1e-3,
    resolution: float = 0.1,
    observables: Sequence[str] | None = None,
) -> Comparison:
    """Compare the limit with experiments of growing size.

    Parameters
    ----------
    law
        The law to test.
    sizes
        Sizes of the experiments (default: the law's own). Three or more let the finite-size gap be fitted and checked.
    seeds
        Draws per size (default: the law's own).
    base_seed
        The draws are independent for different values.
    level
        Probability of a false "disagree", over all observables together.
    resolution
        Smallest gap worth noticing, relative to the size of an observable. A comparison whose error budget is larger is
        underpowered.
    observables
        Names to compare (default: all that theory and simulation share).

    Returns
    -------
    Comparison
        `.verdict`, `.passed`, `.explanation`, `.table()`, `.plot()`, `.dataset`.

    Examples
    --------
    >>> from limitlab.laws import Ridge
    >>> result = compare(Ridge(ratio=0.5, ridge=0.1, noise=0.5), sizes=[40, 80, 160], seeds=30)
    >>> result.verdict
    'agree'
    """
    sizes = sorted({checked_size(size) for size in (sizes if sizes is not None else law.default_sizes)})
    draws = _checked_draws(law.default_seeds if seeds is None else seeds)
    if not sizes:
        raise ValueError("sizes = [] is not allowed: give at least one size")
    theories = [law.realised(size).theory() for size in sizes]
    with single_threaded():  # matrices this small only lose time to threads
        batches = [law.simulate_batch(size, _draw_seeds(base_seed, size, draws)) for size in sizes]
    names = _shared_names(law, theories[-1], batches[-1], observables)
    data = _collect(names, sizes, theories, batches)
    accuracy = max(float(theory.attrs.get("accuracy", 0.0)) for theory in theories)
    entries = [entry for name in names for entry in _entries(law, data, name, accuracy, draws)]
    rows = _judge(entries, level, resolution, single_size=len(sizes) == 1)
    verdict, explanation = _summarise(rows, entries, sizes, draws, resolution)
    infinite = sorted(set(names) - {row.observable for row in rows})
    if infinite:
        explanation += f" Not compared, because the limit is infinite: {', '.join(infinite)}."
    if "caveat" in theories[-1].attrs:  # what a law wants said beside every verdict
        explanation += f" Note: {theories[-1].attrs['caveat']}."
    data.attrs.update(theories[-1].attrs, verdict=verdict, base_seed=base_seed, draws=draws)
    return Comparison(law, verdict, explanation, tuple(rows), data)


@dataclass(frozen=True)
class _Entry:
    """The numbers of one entry of one observable, before the verdict."""

    observable: str
    label: str
    theory: float
    simulation: float
    gap: float
    standard_error: float
    freedom: float
    numerical: float
    allowance: float
    scale: float
    rate: float
    rate_error: float
    declared_rate: float

    @property
    def z(self) -> float:
        """Standard errors by which the gap exceeds what numerics and finite size explain."""
        beyond = max(abs(self.gap) - self.allowance - self.numerical, 0.0)
        return float(np.copysign(beyond / self.standard_error, self.gap))


def _checked_draws(seeds: int) -> int:
    if isinstance(seeds, bool) or not isinstance(seeds, (int, np.integer)) or seeds < 2:
        raise ValueError(f"seeds = {seeds!r} is not allowed: a standard error needs a whole number of at least 2 draws")
    return int(seeds)


def _draw_seeds(base_seed: int, size: int, draws: int) -> list[int]:
    """One seed per draw, derived from (base_seed, size) and small enough for a file format's signed 64-bit integer."""
    words = np.random.SeedSequence([checked_seed(base_seed), size]).generate_state(draws, np.uint64)
    return [int(word >> np.uint64(1)) for word in words]


def _shared_names(law: Law, theory: xr.Dataset, batch: xr.Dataset, wanted: Sequence[str] | None) -> list[str]:
    shared = [name for name in (law.observables or tuple(map(str, theory))) if name in theory and name in batch]
    if wanted is not None:
        unknown = [name for name in wanted if name not in shared]
        if unknown:
            raise ValueError(f"observables = {unknown} are not shared by theory and simulation; those are {shared}")
        shared = list(wanted)
    if not shared:
        raise ValueError(f"{type(law).__name__}: theory and simulation share no observable")
    return shared


def _collect(names: list[str], sizes: list[int], theories: list[xr.Dataset], batches: list[xr.Dataset]) -> xr.Dataset:
    """Theory, mean and standard error of every observable along a dimension `size`."""
    size = xr.Variable("size", np.asarray(sizes))
    means, errors, limits = {}, {}, {}
    for name in names:
        limits[f"theory_{name}"] = xr.concat([theory[name] for theory in theories], dim=size)
        means[f"mean_{name}"] = xr.concat([batch[name].mean("seed") for batch in batches], dim=size)
        errors[f"error_{name}"] = xr.concat(
            [batch[name].std("seed", ddof=1) / np.sqrt(batch.sizes["seed"]) for batch in batches], dim=size
        )
    return xr.Dataset({**limits, **means, **errors})


def _entries(law: Law, data: xr.Dataset, name: str, accuracy: float, draws: int) -> list[_Entry]:
    """Extrapolated gap and error budget of every entry of an observable whose limit is finite."""
    sizes = data["size"].values.astype(float)
    theory, mean, error = (data[f"{kind}_{name}"].values.reshape(len(sizes), -1) for kind in ("theory", "mean", "error"))
    if not np.isfinite(mean).all():
        raise FloatingPointError(f"the simulation of {type(law).__name__} gave a non-finite {name}; theory: {theory[-1]}")
    finite = np.isfinite(theory).all(axis=0)
    if not finite.any():
        return []
    scale = float(np.abs(theory[:, finite]).max()) or _overall_scale(data)
    error = statistics.steadied(error, FLOOR * scale)
    with np.errstate(invalid="ignore"):
        gaps = mean - theory
    fit = statistics.extrapolate(sizes, gaps[:, finite], error[:, finite], draws, law.rate(name))
    labels = _labels(data[f"theory_{name}"].isel(size=0))
    entries = []
    for column, (index, label) in enumerate((i, labels[i]) for i in np.flatnonzero(finite)):
        rate, rate_error = statistics.fitted_rate(sizes, gaps[:, index], error[:, index])
        entries.append(
            _Entry(
                observable=name,
                label=label,
                theory=float(theory[-1, index]),
                simulation=float(mean[-1, index]),
                gap=float(fit.intercept[column]),
                standard_error=float(fit.standard_error[column]),
                freedom=float(fit.freedom[column]),
                numerical=accuracy * abs(float(theory[-1, index])) + 10 * FLOOR * scale,
                allowance=abs(float(fit.correction[column])) / 2,
                scale=scale,
                rate=rate,
                rate_error=rate_error,
                declared_rate=law.rate(name),
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
    indices = np.ndindex(*array.shape)
    return [
        ", ".join(
            f"{dim}={array[dim].values[i] if dim in array.coords else i:.4g}"
            for dim, i in zip(array.dims, index, strict=True)
        )
        for index in indices
    ]


def _judge(entries: list[_Entry], level: float, resolution: float, single_size: bool) -> list[Row]:
    """A verdict per entry (Holm's correction over all of them), then the worst entry of each observable."""
    if not entries:
        raise ValueError("nothing to compare: the limit of every observable is infinite here; move a parameter")
    p_values = statistics.two_sided_p(np.array([e.z for e in entries]), np.array([e.freedom for e in entries]))
    rejected = statistics.holm(p_values, level)
    threshold = statistics.critical(level / len(entries), np.array([e.freedom for e in entries]))
    rows: dict[str, Row] = {}
    for entry, p_value, off, cut in zip(entries, p_values, rejected, threshold, strict=True):
        half_width = float(cut) * entry.standard_error + entry.allowance + entry.numerical
        verdict: Verdict = "agree" if half_width <= resolution * entry.scale else "underpowered"
        if off:  # with a single size a gap may be a finite-size effect: only growing sizes can tell
            verdict = "underpowered" if single_size and np.isfinite(entry.declared_rate) else "disagree"
        row = _row(entry, float(p_value), half_width, verdict)
        known = rows.get(entry.observable)
        if known is None or _severity(row) > _severity(known):
            rows[entry.observable] = row
    return list(rows.values())


def _row(entry: _Entry, p_value: float, half_width: float, verdict: Verdict) -> Row:
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
        half_width=half_width,
        verdict=verdict,
    )


def _severity(row: Row) -> tuple[int, float]:
    return {"agree": 0, "underpowered": 1, "disagree": 2}[row.verdict], -row.p_value


def _summarise(
    rows: list[Row], entries: list[_Entry], sizes: list[int], draws: int, resolution: float
) -> tuple[Verdict, str]:
    off = [row for row in rows if row.verdict == "disagree"]
    if off:
        worst = max(off, key=lambda row: abs(row.z))
        where = f" at {worst.entry}" if worst.entry else ""
        return "disagree", (
            f"{worst.observable}{where} is off by {worst.gap:+.3g} ({abs(worst.z):.1f} standard errors beyond the budget); "
            f"observables that disagree: {', '.join(row.observable for row in off)}."
        )
    weak = [row for row in rows if row.verdict == "underpowered"]
    if weak:
        return "underpowered", " ".join(_remedy(row, entries, sizes, draws, resolution) for row in weak)
    worst = max(rows, key=lambda row: row.half_width / max(abs(row.theory), np.finfo(float).tiny) * (row.theory != 0))
    return "agree", (
        f"{len(rows)} observables at {len(sizes)} sizes, {draws} draws each; the widest budget is "
        f"{worst.half_width:.2g} ({worst.observable} = {worst.theory:.4g})."
    )


def _remedy(row: Row, entries: list[_Entry], sizes: list[int], draws: int, resolution: float) -> str:
    """What would decide an underpowered observable: more draws where noise dominates, larger sizes otherwise."""
    entry = next(e for e in entries if e.observable == row.observable and e.label == row.entry)
    if row.half_width <= resolution * entry.scale:
        return f"{row.observable}: the gap {row.gap:+.3g} may be a finite-size effect; give at least two sizes."
    room = resolution * entry.scale
    noise = row.half_width - entry.allowance - entry.numerical
    if entry.allowance + entry.numerical < room / 2:
        needed = int(np.ceil(draws * (noise / (room - entry.allowance - entry.numerical)) ** 2))
        return f"{row.observable}: a gap below {row.half_width:.2g} would go unnoticed; about {needed} draws per size decide it."
    if entry.allowance <= noise / 2 and noise > room:  # the allowance itself is mostly noise
        needed = int(np.ceil(draws * (2 * (noise + entry.allowance) / room) ** 2))
        return f"{row.observable}: a gap below {row.half_width:.2g} would go unnoticed; about {needed} draws per size decide it."
    larger = int(np.ceil(sizes[-1] * (4 * entry.allowance / room) ** (1 / entry.declared_rate)))
    return (
        f"{row.observable}: finite-size effects hide a gap below {row.half_width:.2g}; sizes up to about {larger} decide it."
    )
