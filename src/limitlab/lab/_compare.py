"""Comparison of experiments with the limit, with an error budget and three verdicts.

`compare` simulates a law at several sizes, extrapolates the gap to infinite size (`limitlab.lab.judging`) and gives a verdict:

- **agree**: no entry of any observable differs from its prediction by more than its error budget, every budget is small enough to
detect a gap of the resolution, and the gap falls with size at the declared rate;
- **disagree**: an observable differs by more than its budget, after a correction for several tests;
- **underpowered**: the data are not sufficient for either verdict. The explanation gives a sufficient number of draws or size.

Draws are added until the verdict is decided or a time budget is spent. The draws are analysed after every addition. Analysis number
k tests at the level 2^-k `level`, so that all analyses together raise a false alarm with probability at most `level`. With `early`
a comparison with a fixed number of draws stops when a part of the draws agrees. The result is the same on every machine. Early
stopping adds no false alarm, because only the last analysis may give the verdict "disagree".
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from limitlab._core.about import titled
from limitlab._core.arguments import explained
from limitlab._core.cost import Cost, check_cost, estimate
from limitlab._core.draws import checked_seeds, checked_sizes, identity, key_parameters, mean_and_error
from limitlab._core.law import Law
from limitlab._core.page import Described, Page, Table
from limitlab._core.page import Verdict as Word
from limitlab._core.registry import as_law
from limitlab._core.results import package_version, to_dataset
from limitlab.errors import Refused
from limitlab.lab.engines import Engine
from limitlab.lab.judging import Row, Verdict, entries_of, judge
from limitlab.lab.progress import ProgressOption
from limitlab.lab.store import FORMAT, Cell, Store, versions_of
from limitlab.lab.tasks import LawTask, run_tasks

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Comparison", "compare"]

DRAW_SECONDS = 60.0
"""Seconds for additional draws when the user does not set the number of draws."""
DRAW_FACTORS = 1.5, 8.0
"""Smallest and largest factor by which one addition increases the number of draws."""
COLUMNS = ("theory", "simulation", "gap", "standard_error", "finite_size_allowance", "half_width", "z", "numerical_error")
"""The numbers of the error budget, in the order in which a page shows them."""
MOST_BUDGETS = 2.0
"""Draws are added only if the needed number is at most this multiple of the affordable number.

An estimate from few draws may be wrong by such a factor.
"""
FIRST_DRAWS = 8
"""Draws of the first analysis of a comparison that may stop early."""
NUMBERS_PER_DRAW = 300.0
"""Floating-point numbers that one task holds in addition to its result."""


@dataclass(frozen=True)
class Comparison(Described):
    """The result of `compare`. It prints as a table with the verdict; `passed` is True only for "agree".

    Attributes
    ----------
    law
        The law, at the parameters that were compared.
    verdict, explanation
        "agree", "disagree" or "underpowered", and the reason in a sentence.
    rows
        The error budget, with one row per observable. The row describes the entry (time, position) with the worst verdict.
    dataset
        Predictions, means and standard errors at every size.
    parts
        The comparisons at every check point, if a class of laws was compared. Then `dataset` belongs to the first check point.
    """

    law: Law
    verdict: Verdict
    explanation: str
    rows: tuple[Row, ...]
    dataset: xr.Dataset
    parts: tuple[Comparison, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether theory and simulation agree."""
        return self.verdict == "agree"

    @property
    def widest_budget(self) -> float:
        """The largest half width of all entries, relative to the scale of its observable."""
        return max(row.relative_half_width for row in self.rows)

    @property
    def draws(self) -> int:
        """The number of draws per size that were analysed."""
        return int(self.dataset.attrs["draws"])

    def table(self) -> pd.DataFrame:
        """Return the error budget, one row per observable."""
        import pandas as pd

        return pd.DataFrame([vars(row) for row in self.rows]).set_index("observable")

    def plot(self) -> Figure:
        """Draw the gap against size with error bars, one panel per observable."""
        from limitlab.lab.result_figures import comparison_figure

        return comparison_figure(self)

    def page(self) -> Page:
        """Return the plain description, with the error budget, the verdict and its explanation.

        Its data also contain the parameters and seeds.
        """
        several = any(row.entry for row in self.rows)
        rows = [
            {
                "observable": row.observable,
                **({"at": row.entry} if several else {}),
                "verdict": Word(row.verdict),
                **{name: getattr(row, name) for name in COLUMNS},
            }
            for row in self.rows
        ]
        data = {
            "law": type(self.law).__name__,
            "parameters": self.law.model_dump(mode="json"),
            "status": self.law.status,
            "verdict": self.verdict,
            "passed": self.passed,
            "explanation": self.explanation,
            "widest_budget": self.widest_budget,
            "draws": self.draws,
            "sizes": self.dataset["size"].values,
            "seeds": self.dataset.attrs["seeds"],
            "table": [vars(row) for row in self.rows],
        }
        table = Table(rows, digits=dict.fromkeys(COLUMNS, 4))
        return Page(titled(self.law), tables=[table], sentences=[self.explanation], verdict=self.verdict, data=data)

    def __str__(self) -> str:
        columns = ["theory", "simulation", "gap", "standard_error", "finite_size_allowance", "z", "half_width", "verdict"]
        return f"{type(self.law).__name__}: {self.verdict}. {self.explanation}\n{self.table()[columns].to_string()}"


@explained
def compare(
    law: Law | type[Law] | str,
    sizes: Sequence[int] | int | None = None,
    seeds: Sequence[int] | int | None = None,
    *,
    budget: float | None = None,
    early: bool = False,
    level: float = 1e-3,
    resolution: float = 0.05,
    observables: Sequence[str] | None = None,
    engine: Engine = None,
    store: str | os.PathLike[str] | None = None,
    progress: ProgressOption = None,
) -> Comparison:
    """Compare the limit with experiments of growing size.

    Parameters
    ----------
    law
        The law to test. For a class or a name the check points of the law are tested, where no term of the equations is zero.
    sizes
        Sizes of the experiments (default: those that the law declares). With three or more sizes the fit of the finite-size gap can
        be checked.
    seeds
        Draws per size (default: the number that the law declares), with seeds 0, 1, 2, ..., or a list of seeds. The draws are those
        of `law.simulate`.
    budget
        Seconds for additional draws while the verdict is "underpowered" (default: 60, or 0 if `seeds` is set).
    early
        Whether to stop at an eighth, a quarter or half of the draws if these draws agree. Only the analysis of all draws may
        disagree. Every analysis may miss a gap, so "agree" is slightly weaker than without `early`. Use it for quick checks.
    level
        Probability of a false "disagree", over all observables and all analyses together.
    resolution
        The gap to detect, relative to the scale of an observable (its largest value). With the verdict "agree" such a gap would
        have been detected with probability 0.9, and so would a gap of half of an entry's own value.
    observables
        Names to compare (default: all observables that prediction and experiment share).
    engine, store, progress
        As in `limitlab.sweep`. They set where the draws run, where finished draws are stored so that the same call can continue,
        and whether a progress bar is shown.

    Returns
    -------
    Comparison
        `.verdict`, `.passed`, `.explanation`, `.widest_budget`, `.rows`, `.table()`, `.plot()`, `.dataset`.

    Examples
    --------
    >>> from limitlab.laws import Ridge
    >>> result = compare(Ridge(ratio=0.5, ridge=0.1, noise=0.5), sizes=[40, 80, 160], seeds=60)
    >>> result.verdict, result.widest_budget < 0.05
    ('agree', True)
    """
    options: dict[str, object] = dict(
        early=early, level=level, resolution=resolution, observables=observables, engine=engine
    )
    law = as_law(law)
    if isinstance(law, type):
        points = law.check_points()
        options["level"] = level / len(points)
        share = None if budget is None else budget / len(points)
        parts = [
            compare(point, sizes, seeds, budget=share, store=_numbered(store, i), progress=progress, **options)  # type: ignore[arg-type]
            for i, point in enumerate(points)
        ]
        return _together(parts)
    numbers = sorted(checked_sizes(law.simulation.sizes if sizes is None else sizes))
    planned = checked_seeds(law.simulation.draws if seeds is None else seeds, least=2)
    check_comparison_cost(law, numbers, len(planned))
    names = _shared_names(law, observables)
    seconds = _checked_budget(DRAW_SECONDS if seeds is None else 0.0) if budget is None else _checked_budget(budget)
    opened = None if store is None else _opened(store, law, numbers, planned)

    def run(tasks: list[LawTask]) -> list[Cell]:
        label = f"comparing {type(law).__name__}"
        return run_tasks(tasks, engine, opened.cells if opened else None, progress, label).complete(label, str(store or ""))

    limits = run([LawTask(law.realised(size)) for size in numbers])
    numerical = {name: max(cell.errors.get(name, 0.0) for cell in limits) for name in names}
    stated = all(map(math.isfinite, numerical.values()))
    if not stated:
        numerical = law.estimated_errors()
    groups: list[list[Cell]] = [[] for _ in numbers]
    analyses, began = 0, time.perf_counter()
    fresh = draws = planned[: max(FIRST_DRAWS, -(-len(planned) // 8))] if early else planned
    while fresh:
        cells = run([LawTask(law, size=size, seed=seed, cost_checked=True) for size in numbers for seed in fresh])
        for i, group in enumerate(groups):
            group += cells[i * len(fresh) : (i + 1) * len(fresh)]
        count = len(groups[0])
        analyses += count >= len(planned)  # an earlier analysis cannot give the verdict "disagree"
        data = _collect(law, names, numbers, limits, groups, numerical)
        entries = [entry for name in names for entry in entries_of(law, data, name, count)]
        if not entries:
            raise Refused(
                "there is nothing to compare: the limit of every observable is infinite at these parameters; change one of them"
            )
        rows = judge(entries, level * 2.0 ** -max(analyses, 1) if seconds else level, resolution, numbers, count)
        spent = time.perf_counter() - began
        if count < len(planned):
            fresh = [] if all(row.verdict == "agree" for row in rows) else planned[count : 2 * count]
        else:
            more = _more_draws(rows, count, spent / count, seconds - spent)
            fresh = list(range(draws[-1] + 1, draws[-1] + 1 + more))
        draws = [*draws, *fresh]
    verdict, explanation = _summarise(rows, numbers, count, resolution, spent / count)
    infinite = sorted(set(names) - {row.observable for row in rows})
    if infinite:
        explanation += f" Not compared, because the limit is infinite: {', '.join(infinite)}."
    if law.caveat():
        explanation += f" Note: {law.caveat()}."
    if not stated:
        explanation += " The law does not state its accuracy; its numerical error is estimated."
    data.attrs.update(version=versions_of([*limits, *(cell for group in groups for cell in group)]))
    data.attrs.update(sizes=np.asarray(numbers), verdict=verdict, seeds=np.asarray(draws), draws=count, looks=analyses)
    if opened is not None:
        opened.finish(data)
    return Comparison(law, verdict, explanation, tuple(rows), data)


def check_comparison_cost(law: Law, sizes: Sequence[int], draws: int) -> Cost:
    """Return the cost of a comparison; raise `TooCostly` if it exceeds the limits of memory or time."""
    costs = [estimate(law, size) for size in sizes]
    numbers = max(cost.numbers for cost in costs) + NUMBERS_PER_DRAW * draws * len(costs)
    total = Cost(numbers, draws * sum(cost.operations for cost in costs))
    words = f"a comparison of {type(law).__name__} at sizes {', '.join(map(str, sizes))} with {draws} draws each"
    check_cost(total, words, "choose smaller sizes or fewer draws")
    return total


def _together(parts: Sequence[Comparison]) -> Comparison:
    """Return comparisons at several check points as one comparison, which has the worst verdict of them."""
    if len(parts) == 1:
        return replace(parts[0], parts=(parts[0],))
    order = ("agree", "underpowered", "disagree")
    verdict = max((part.verdict for part in parts), key=order.index)
    words = [f"Check point {i}: {part.verdict}. {part.explanation}" for i, part in enumerate(parts, 1)]
    rows = [
        replace(row, entry=", ".join(filter(None, [f"point {i}", row.entry])))
        for i, part in enumerate(parts, 1)
        for row in part.rows
    ]
    return Comparison(parts[0].law, verdict, " ".join(words), tuple(rows), parts[0].dataset, tuple(parts))


def _more_draws(rows: Sequence[Row], draws: int, per_draw: float, left: float) -> int:
    """Return the number of draws per size to add.

    It is zero if the verdict is decided, if more draws would not decide it, or if the time does not suffice for the draws that
    would decide it.
    """
    if left <= 0 or any(row.verdict == "disagree" for row in rows):
        return 0
    open_rows = [row for row in rows if row.verdict == "underpowered"]
    if not open_rows or any(row.reason not in ("noise", "rate", "misfit") for row in open_rows):
        return 0
    wanted = max(row.draws_needed for row in open_rows)
    if not wanted:  # after a wrong rate or a misfit, twice the draws show whether it was chance
        wanted = 2 * draws
    least, most = (round(factor * draws) for factor in DRAW_FACTORS)
    affordable = draws + int(left / max(per_draw, 1e-9))
    if wanted > MOST_BUDGETS * affordable:
        return 0
    target = min(max(round(1.2 * wanted), least), most, affordable)
    return target - draws if target >= least else 0


def _checked_budget(budget: float) -> float:
    if isinstance(budget, bool) or not budget >= 0:
        raise Refused(f"budget = {budget!r} is not allowed: must be a number of seconds, at least 0")
    return float(budget)


def _numbered(store: str | os.PathLike[str] | None, number: int) -> str | None:
    """Return the name of the store of a check point, such as x.nc, x-2.nc, x-3.nc."""
    if store is None or number == 0:
        return None if store is None else os.fspath(store)
    stem, suffix = os.path.splitext(os.fspath(store))
    return f"{stem}-{number + 1}{suffix}"


def _opened(store: str | os.PathLike[str], law: Law, sizes: list[int], seeds: list[int]) -> Store:
    """Return the store of a comparison; make it if it does not exist."""
    opened = Store(store)
    opened.open(
        {
            "format": FORMAT,
            "what": "comparison",
            "law": identity(type(law)),
            "revision": law.revision,
            "parameters": key_parameters(law),
            "over": {},
            "sizes": sizes,
            "seeds": seeds,
            "version": package_version(),
        }
    )
    return opened


def _shared_names(law: Law, wanted: Sequence[str] | None) -> list[str]:
    shared = list(law.observed())
    unknown = [name for name in wanted or () if name not in shared]
    if unknown:
        raise Refused(
            f"observables = {unknown} are not allowed: prediction and experiment share {shared}; choose from these"
        )
    return list(wanted) if wanted is not None else shared


def _refuse_missing(law: Law, names: list[str], sizes: list[int], groups: Sequence[Sequence[Cell]]) -> None:
    """Raise ValueError if draws lack an observable, such as an estimate that does not exist for their data."""
    for name in names:
        for size, group in zip(sizes, groups, strict=True):
            lacking = sum(name not in cell.values for cell in group)
            if lacking:
                raise Refused(
                    f"{lacking} of {len(group)} draws of {type(law).__name__} at size {size} have no {name}: choose larger sizes, "
                    "compare other observables, or move a parameter"
                )


def _collect(
    law: Law,
    names: list[str],
    sizes: list[int],
    limits: Sequence[Cell],
    groups: Sequence[Sequence[Cell]],
    numerical: Mapping[str, float],
) -> xr.Dataset:
    """Return prediction with its numerical error, mean and standard error of every observable along `size`."""
    coords = {"size": np.asarray(sizes), **limits[0].coords}
    _refuse_missing(law, names, sizes, groups)
    data = {}
    for name in names:
        dims, meta = ("size", *limits[0].dims[name]), type(law).outputs()[name]
        about = dict(long_name=meta.long_name, symbol=meta.symbol)
        runs = [np.stack([cell.values[name] for cell in group]) for group in groups]
        data[f"theory_{name}"] = xr.Variable(
            dims,
            np.stack([cell.values[name] for cell in limits]),
            about | {"numerical_error": numerical.get(name, 0.0)},
        )
        means, errors = zip(*map(mean_and_error, runs), strict=True)
        data[f"mean_{name}"] = xr.Variable(dims, np.stack(means), about)
        data[f"error_{name}"] = xr.Variable(dims, np.stack(errors), about)
    result = to_dataset(law, {}, kind="comparison").drop_vars(list(law.coordinates()), errors="ignore")
    return xr.Dataset(data, coords, result.attrs)


# -- words ----------------------------------------------------------------------------------------------------------------


def _summarise(
    rows: Sequence[Row], sizes: Sequence[int], draws: int, resolution: float, per_draw: float
) -> tuple[Verdict, str]:
    off = [row for row in rows if row.verdict == "disagree"]
    if off:
        worst = max(off, key=lambda row: abs(row.z))
        return "disagree", (
            f"{_place(worst.observable, worst.entry)} differs from the prediction by {worst.gap:+.3g} "
            f"({abs(worst.z):.1f} standard errors beyond the "
            f"budget); observables that disagree: {', '.join(row.observable for row in off)}."
        )
    weak = [row for row in rows if row.verdict == "underpowered"]
    if weak:
        return "underpowered", " ".join(_remedy(row, draws, per_draw) for row in weak)
    widest = max(rows, key=lambda row: row.relative_half_width)
    return "agree", (
        f"{len(rows)} observables at {len(sizes)} sizes, {draws} draws each; the widest budget is {widest.half_width:.2g}, "
        f"{widest.relative_half_width:.2g} of the scale of {_place(widest.observable, widest.widest_entry)} "
        f"(resolution {resolution:g})."
    )


def _place(observable: str, entry: str) -> str:
    return f"{observable} at {entry}" if entry else observable


def _remedy(row: Row, draws: int, per_draw: float) -> str:
    """Return a sentence with the draws or sizes that would decide an underpowered observable."""
    where, width = _place(row.observable, row.entry), f"a gap below {row.half_width:.2g} could remain undetected"
    if row.reason == "one size":
        return f"{where}: the gap {row.gap:+.3g} may be a finite-size effect; give at least two sizes."
    if row.reason == "rate":
        return (
            f"{where}: the gap falls as size^-{row.rate:.2f} (+- {row.rate_error:.2f}), not at the declared rate; larger sizes decide "
            "the verdict."
        )
    if row.reason == "misfit":
        return f"{where}: the gaps at these sizes do not follow the declared rate; larger sizes decide the verdict."
    if row.reason == "size":
        if not row.size_needed:
            return f"{where}: {width}, because the prediction has the numerical error {row.numerical_error:.2g}; increase its accuracy."
        return f"{where}: {width} because of finite-size effects; sizes up to about {row.size_needed} decide the verdict."
    seconds = max(row.draws_needed - draws, 0) * per_draw
    return f"{where}: {width}; about {row.draws_needed} draws per size decide the verdict (about {seconds:.0f} s more on this machine)."
