"""Functions to read and fit a table of training runs (`scaling_study`), and to plan such a table (`scaling_plan`).

docs/theory/scaling_fit.md derives the formulas.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.page import Described, Page, Table
from limitlab.applied.scaling.fit import NAMES, NOT_DETERMINED, ScalingFit, checked_runs, positive, scaling_fit
from limitlab.errors import Refused
from limitlab.numerics import additive_powers as form
from limitlab.numerics.additive_powers import Best

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ScalingStudy", "scaling_fit_figure", "scaling_plan", "scaling_study"]

Array = NDArray[np.float64]

USUAL = {
    "N": ("n", "size", "model_size", "params", "parameters", "n_params", "width"),
    "D": ("d", "data", "tokens", "samples", "n_tokens", "training_tokens", "steps"),
    "loss": ("loss", "val_loss", "test_loss", "final_loss", "eval_loss"),
    "compute": ("c", "compute", "flops", "training_flop", "training_flops"),
}
"""Names by which a column is recognised. Upper and lower case are not distinguished."""


class RunTable(NamedTuple):
    """The columns of a table of runs. `D` is None if the table contains compute instead."""

    N: Array
    D: Array | None
    loss: Array
    compute: Array | None


def read_runs(path: Path, **named: str | None) -> RunTable:
    """Return the columns of a .csv or .tsv file of runs.

    The keywords `N`, `D`, `loss` and `compute` name columns. Otherwise columns are recognised by common names.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "runs.csv"
    >>> _ = file.write_text("params,tokens,loss\\n1e8,2e9,3.1\\n2e8,2e9,3.0\\n")
    >>> read_runs(file).N.tolist(), read_runs(file).compute
    ([100000000.0, 200000000.0], None)
    """
    import pandas as pd

    # a comment is a whole line, because names of runs and colours contain the character too
    lines = [line for line in Path(path).read_text(encoding="utf-8-sig").splitlines() if not line.lstrip().startswith("#")]
    frame = pd.read_csv(StringIO("\n".join(lines)), sep=None, engine="python", skipinitialspace=True)
    columns = {re.sub(r"[ _]+", "_", str(name).strip().lower()): str(name) for name in frame.columns}

    def column(role: str) -> Array | None:
        wanted = named.get(role)
        wanted = None if wanted is None else re.sub(r"[ _]+", "_", wanted.strip().lower())
        if wanted is not None and wanted not in columns:
            raise Refused(f"{path.name} has no column {named[role]!r}: its columns are {', '.join(map(str, frame.columns))}")
        name = wanted if wanted is not None else next((usual for usual in USUAL[role] if usual in columns), None)
        if name is None:
            return None
        numbers = pd.to_numeric(frame[columns[name]], errors="coerce").to_numpy(dtype=float)
        if np.isnan(numbers).any():
            row = int(np.flatnonzero(np.isnan(numbers))[0])
            raise Refused(
                f"column {columns[name]!r} of {path.name} does not contain a number in row {row + 1}: {str(frame[columns[name]][row])!r}"
            )
        return numbers

    size, data, loss, compute = (column(role) for role in ("N", "D", "loss", "compute"))
    shown = ", ".join(map(str, frame.columns))
    if size is None or loss is None or (data is None and compute is None):
        missing = "a size (N)" if size is None else "a loss" if loss is None else "data (D) or compute"
        raise Refused(f"{path.name} has no column for {missing}: name it with an option; its columns are {shown}")
    return RunTable(size, data, loss, compute if data is None else None)


@dataclass(frozen=True)
class ScalingStudy(Described):
    """The result of `scaling_study`.

    Attributes
    ----------
    source
        Name of the file.
    fit
        The fitted law.
    compute
        The compute budgets of the plan.
    """

    source: str
    fit: ScalingFit
    compute: tuple[float, ...]

    @property
    def passed(self) -> bool:
        """Whether the table determines the best size for the budgets. True if there are no budgets."""
        return self.fit.separable or not self.compute

    def parameters(self) -> list[dict[str, Any]]:
        """Return one row per parameter with its value and interval, or "not determined by these data"."""
        fit, rows = self.fit, []
        for name in NAMES:
            known = fit.separable or name == "E"
            low, high = fit.interval(name) if known and not fit.interaction else (-math.inf, math.inf)
            rows.append(
                dict(
                    parameter=name,
                    value=f"{getattr(fit, name):.6g}" if known else NOT_DETERMINED,
                    low="open" if low == -math.inf else f"{low:.5g}",
                    high="open" if high == math.inf else f"{high:.5g}",
                )
            )
        return rows

    def plans(self) -> list[dict[str, Any]]:
        """Return one row per budget.

        A row contains the size and the data with the smallest loss, the interval of the size, and the distance of the budget from the runs.
        """
        fit, rows = self.fit, []
        for total in self.compute if fit.separable else ():
            best = fit.optimum(total)
            low, high = fit.interval("N", compute=total) if not fit.interaction else (0.0, math.inf)
            loss = float(fit.predict(best.N, best.D))
            rows.append(dict(compute=total, N=best.N, N_low=low, N_high=high, D=best.D, loss=loss, where=fit.trust(total)))
        return rows

    def page(self) -> Page:
        """Return the plain description, with the parameters and the best size for every budget."""
        parameters, plans, fit = self.parameters(), self.plans(), self.fit
        title = f"L = E + A N^-a + B D^-b, {fit.runs.n.size} runs, residual sd of log L {fit.residual_sd:.3g}"
        tables = [Table(parameters, title)]
        if plans:
            tables.append(Table(plans, f"the best size for a budget of {fit.flops:g} N D"))
        data = dict(
            parameters=parameters,
            optimum=plans,
            separable=fit.separable,
            condition=fit.condition,
            residual_sd=fit.residual_sd,
            warnings=fit.warnings,
        )
        return Page(tables=tables, data=data)

    def figure(self) -> Figure:
        """Draw the runs and the fitted law."""
        return scaling_fit_figure(self.fit, self.source)


def scaling_study(
    runs: str | Path,
    size: str | None = None,
    data: str | None = None,
    loss: str | None = None,
    budget: str | None = None,
    compute: float | Sequence[float] | None = None,
    flops: float = 6.0,
    level: float = 0.95,
    least_squares: bool = False,
    interaction: bool = False,
) -> ScalingStudy:
    """Fit L = E + A N^-a + B D^-b to a table of runs, and plan with the fit.

    Parameters
    ----------
    runs
        A .csv or .tsv table with one row per run.
    size
        Name of the column of model sizes N (default: N, params, ...).
    data
        Name of the column of data D (default: D, tokens, ...).
    loss
        Name of the column of final losses (default: loss, val_loss, ...).
    budget
        Name of the column of the compute of each run, used if there is no D (default: C, flops, ...).
    compute
        Compute budgets of the plan, such as 1e22,1e24 or 1e20:1e24:5log.
    flops
        Compute per unit of N D.
    level
        Confidence level of the intervals.
    least_squares
        Use least squares instead of Huber's cost, which reduces the influence of bad runs.
    interaction
        Add a product term G N^-p D^-q.

    Returns
    -------
    ScalingStudy
        `.fit`, `.parameters()`, `.plans()`, `.figure()`.

    Examples
    --------
    >>> import tempfile
    >>> N, D = (grid.ravel() for grid in np.meshgrid(np.geomspace(5e7, 1e10, 4), np.geomspace(1e9, 3e11, 4)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "runs.csv"
    ...     loss = 1.82 + 482 * N**-0.348 + 2085 * D**-0.366
    ...     np.savetxt(file, np.c_[N, D, loss], delimiter=",", header="N,D,loss", comments="")
    ...     study = scaling_study(file, compute=1e22)
    >>> study.passed, study.plans()[0]["compute"]
    (True, 1e+22)
    """
    file = Path(runs)
    table = read_runs(file, N=size, D=data, loss=loss, compute=budget)
    fit = scaling_fit(
        table.N, table.D, table.loss, not least_squares, level, flops, compute=table.compute, interaction=interaction
    )
    budgets = () if compute is None else tuple(float(total) for total in np.atleast_1d(np.asarray(compute, dtype=float)))
    return ScalingStudy(file.name, fit, budgets)


def scaling_plan(
    N: ArrayLike,
    D: ArrayLike,
    noise: float,
    E: float = 1.8,
    A: float = 480.0,
    B: float = 2100.0,
    a: float = 0.35,
    b: float = 0.37,
    compute: float = 1e23,
    flops: float = 6.0,
) -> dict[str, float]:
    """Return the standard errors to expect from a planned table of runs, and its condition number.

    The errors are those of E, a, b and log N at a compute. `noise` is the standard deviation of log loss. The other numbers are the assumed
    true values.

    >>> N, D = (grid.ravel() for grid in np.meshgrid(np.geomspace(5e7, 1e10, 8), np.geomspace(1e9, 3e11, 6)))
    >>> round(scaling_plan(N, D, 0.01, 1.82, 482, 2085, 0.348, 0.366)["a"], 3)
    0.021
    """
    n, d = np.asarray(N, dtype=float), np.asarray(D, dtype=float)
    runs = checked_runs(n, d, E + A * n**-a + B * d**-b, None, flops)
    theta = np.array([E, math.log(A) - a * runs.centre_n, math.log(B) - b * runs.centre_d, a, b])
    spread = form.covariance(theta, runs, positive("noise", noise) ** 2)
    fit = ScalingFit(runs, Best(theta, 0.0, math.inf), 0.95, flops, True, form.condition(theta, runs))
    at, product = math.log(fit.optimum(compute).N), math.log(compute / flops)
    gradient = np.array([0.0, 1.0, -1.0, 1 / a - at + runs.centre_n, product - at - runs.centre_d - 1 / b]) / (a + b)
    errors = np.sqrt(np.diag(spread))
    return {
        "E": float(errors[0]),
        "a": float(errors[3]),
        "b": float(errors[4]),
        "log N": float(math.sqrt(gradient @ spread @ gradient)),
        "condition": fit.condition,
    }


# -- figures ------------------------------------------------------------------------------------------------------------


def scaling_fit_figure(fit: ScalingFit, title: str = "") -> Figure:
    """Draw the runs with the fitted loss, and the best size against the compute.

    The best size and its band are drawn only if the runs determine them.
    """
    from limitlab.plotting.style import COLOURS, finish, new_figure, simulation_points, theory_line

    figure, (left, right) = new_figure(columns=2)
    runs = fit.runs
    N, D = np.exp(runs.n + runs.centre_n), np.exp(runs.d + runs.centre_d)
    order = np.unique(N.round(-int(np.floor(np.log10(N.min()))) + 6))
    shown = order[np.unique(np.linspace(0, order.size - 1, 5).round().astype(int))]
    fine = np.geomspace(D.min(), D.max(), 80)
    for index, size in enumerate(shown):
        near = np.abs(np.log(N / size)) < 1e-4
        theory_line(left, fine, fit.predict(size, fine), index, f"$N = {size:.2g}$", linewidth=1.3)
        simulation_points(left, D[near], np.exp(runs.log_loss[near]), index=index, markersize=4)
    finish(left, "data $D$", "loss $L$", title or "runs and fit", xscale="log", yscale="log")
    compute = np.geomspace(fit.largest_compute / 1e4, fit.largest_compute * 1e2, 13)
    used = fit.flops * N * D
    right.plot(used, N, ".", color="grey", markersize=4, label="runs")
    if fit.separable:
        theory_line(right, compute, [fit.optimum(c).N for c in compute], 0, "best size $N^*$")
        if not fit.interaction:
            ends = np.array([fit.interval("N", compute=c) for c in compute])
            right.fill_between(compute, *ends.T, color=COLOURS[0], alpha=0.2, linewidth=0, label=f"{100 * fit.level:g} %")
        right.axvline(fit.largest_compute, color="grey", linestyle=":", linewidth=1)
        name = f"$a = {fit.a:.3f}$, $b = {fit.b:.3f}$, condition {fit.condition:.0f}"
    else:
        name = "best size: not determined by these data"
    finish(right, "compute $C$", "size $N$", name, xscale="log", yscale="log")
    return figure
