"""Does the experiment agree with the limit? A comparison with an error budget and three verdicts.

`compare` simulates a law at several sizes, extrapolates the gap to infinite size (`limitlab.lab.statistics`) and says

- **agree**: no observable is off by more than its error budget, and the budget is small enough to notice;
- **disagree**: an observable is off, after correction for testing several at once;
- **underpowered**: neither can be said; the explanation gives the number of draws or the size that would decide it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from limitlab.lab import statistics
from limitlab.lab.cells import Cell
from limitlab.lab.engines import Engine
from limitlab.lab.progress import ProgressOption
from limitlab.lab.runner import run_tasks
from limitlab.lab.store import Store
from limitlab.lab.sweep import checked_seeds, checked_sizes
from limitlab.lab.tasks import FORMAT, LawTask
from limitlab.laws.base import Law
from limitlab.laws.draws import identity, plain_parameters
from limitlab.laws.results import package, package_version

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
    sizes: Sequence[int] | int | None = None,
    seeds: Sequence[int] | int | None = None,
    *,
    level: float = 1e-3,
    resolution: float = 0.1,
    observables: Sequence[str] | None = None,
    engine: Engine = None,
    store: str | os.PathLike[str] | None = None,
    progress: ProgressOption = None,
) -> Comparison:
    """Compare the limit with experiments of growing size.

    Parameters
    ----------
    law
        The law to test.
    sizes
        Sizes of the experiments (default: the law's own). Three or more let the finite-size gap be fitted and checked.
    seeds
        Draws per size (default: the law's own), with seeds 0, 1, 2, ..., or a list of seeds. They are the draws of `law.simulate`.
    level
        Probability of a false "disagree", over all observables together.
    resolution
        Smallest gap worth noticing, relative to the size of an observable. A comparison whose error budget is larger is
        underpowered.
    observables
        Names to compare (default: all that theory and simulation share).
    engine, store, progress
        As in `limitlab.sweep`: where the draws run, where finished ones are kept so that the same call goes on where it was
        stopped, and whether a bar is shown.

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
    if not isinstance(law, Law):
        raise ValueError(f"law = {law!r} is not a law: give an instance such as limitlab.laws.Ridge(ratio=2.0)")
    numbers = sorted(checked_sizes(law.default_sizes if sizes is None else sizes))
    draws = checked_seeds(law.default_seeds if seeds is None else seeds, least=2)
    names = _shared_names(law, observables)
    shelf = _open(store, law, numbers, draws)
    tasks = [LawTask(law.realised(size)) for size in numbers]
    tasks += [LawTask(law, size=size, seed=seed) for size in numbers for seed in draws]
    run = run_tasks(tasks, engine, shelf.cells if shelf else None, progress, f"comparing {type(law).__name__}")
    cells = run.complete(f"comparing {type(law).__name__}", str(store or ""))
    data = _collect(law, names, numbers, draws, cells)
    entries = [entry for name in names for entry in _entries(law, data, name, len(draws))]
    rows = _judge(entries, level, resolution, single_size=len(numbers) == 1)
    verdict, explanation = _summarise(rows, entries, numbers, len(draws), resolution)
    infinite = sorted(set(names) - {row.observable for row in rows})
    if infinite:
        explanation += f" Not compared, because the limit is infinite: {', '.join(infinite)}."
    if law.caveat():
        explanation += f" Note: {law.caveat()}."
    data.attrs.update(verdict=verdict, seeds=np.asarray(draws), draws=len(draws))
    if shelf is not None:
        shelf.finish(data)
    return Comparison(law, verdict, explanation, tuple(rows), data)


def _open(store: str | os.PathLike[str] | None, law: Law, sizes: list[int], seeds: list[int]) -> Store | None:
    if store is None:
        return None
    shelf = Store(store)
    shelf.open(
        {
            "format": FORMAT,
            "what": "comparison",
            "law": identity(type(law)),
            "revision": law.revision,
            "parameters": plain_parameters(law),
            "over": {},
            "sizes": sizes,
            "seeds": seeds,
            "version": package_version(),
        }
    )
    return shelf


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


def _shared_names(law: Law, wanted: Sequence[str] | None) -> list[str]:
    shared = list(law.observed())
    unknown = [name for name in wanted or () if name not in shared]
    if unknown:
        raise ValueError(f"observables = {unknown} are not shared by theory and simulation; those are {shared}")
    return list(wanted) if wanted is not None else shared


def _collect(law: Law, names: list[str], sizes: list[int], seeds: list[int], cells: list[Cell]) -> xr.Dataset:
    """Theory, mean and standard error of every observable along a dimension `size`."""
    limits, count = cells[: len(sizes)], len(seeds)
    groups = [cells[len(sizes) + i * count : len(sizes) + (i + 1) * count] for i in range(len(sizes))]
    coords = {"size": np.asarray(sizes), **limits[0].coords}
    data = {}
    for name in names:
        dims, meta = ("size", *limits[0].dims[name]), type(law).outputs()[name]
        about = dict(long_name=meta.long_name, symbol=meta.symbol)
        runs = [np.stack([cell.values[name] for cell in group]) for group in groups]
        data[f"theory_{name}"] = xr.Variable(
            dims,
            np.stack([cell.values[name] for cell in limits]),
            about | {"numerical_error": max(cell.errors.get(name, 0.0) for cell in limits)},
        )
        data[f"mean_{name}"] = xr.Variable(dims, np.stack([run.mean(axis=0) for run in runs]), about)
        spread = [run.std(axis=0, ddof=1) / np.sqrt(count) for run in runs]
        data[f"error_{name}"] = xr.Variable(dims, np.stack(spread), about)
    result = package(law, {}, kind="comparison").drop_vars(list(law.coordinates()), errors="ignore")
    return xr.Dataset(data, coords, result.attrs)


def _entries(law: Law, data: xr.Dataset, name: str, draws: int) -> list[_Entry]:
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
    numerical = float(data[f"theory_{name}"].attrs["numerical_error"])
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
                numerical=numerical + 10 * FLOOR * scale,
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
