"""What `limitlab forecast` prints: one table, a few sentences, and the same numbers for machines.

Table, sentences and plot are made of one curve at one ridge rule, so that they cannot contradict each other.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from limitlab._core.tables import number
from limitlab.errors import UnreachableTarget

if TYPE_CHECKING:
    import xarray as xr

    from limitlab.applied.forecast import Forecast
    from limitlab.applied.forecast.advice import Gains
    from limitlab.applied.forecast.tables import Table


def unit_of(model: Forecast) -> str:
    """What the errors are."""
    if model.classes_ is not None:
        return "share of wrong labels"
    return "mean squared error over the variance of the target; RMSE in its own units"


def curve_rows(
    curve: xr.Dataset, checks: xr.Dataset | None, table: Table, others: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """One row per number of points: the metric with its band, what it means in the target's units, and what else people would guess."""
    others = others or {}
    real = real_by_count(checks, curve.attrs["metric"])
    rows = []
    for i, at in enumerate(curve.n.values.tolist()):
        row: dict[str, Any] = {"n": f"{at:.0f}" + (" *" if curve.extrapolated.values[i] else "")}
        row[curve.attrs["metric"] if table.labels else "test_error"] = short(curve.value[i])
        if "low" in curve:
            row["band"] = f"{short(curve.low[i])} to {short(curve.high[i])}"
        if not table.labels and curve.attrs["metric"] == "mse":
            row["rmse"] = short(np.sqrt(curve.value[i]) * table.scale)
        row |= {name: short(values[i]) for name, values in others.items()}
        row["ridge"] = f"{float(curve['ridge'][i]):.2g}"
        if real:
            row["real_fits"] = real.get(at, "")
        if "power_law" in curve:
            row["power_law"] = short(curve.power_law[i]) if curve.extrapolated.values[i] else ""
        rows.append(row)
    return rows


def real_by_count(checks: xr.Dataset | None, metric: str) -> dict[float, str]:
    """Real fits by number of points, in the metric of the curve where they were measured in it."""
    name = {"mse": "test_error", "error": "classification_error"}.get(metric)
    if checks is None or name is None or name not in checks:
        return {}
    values, errors = checks[name].values[:, 0], checks[f"{name}_standard_error"].values[:, 0]
    return {at: real_fits(values[i], errors[i]) for i, at in enumerate(checks.n.values.tolist())}


DRIFT = 1.25
"""Errors on later rows over the forecast, above which data are said to change with time."""


def drift_sentence(curve: xr.Dataset, checks: xr.Dataset | None) -> str:
    """Whether later rows are harder than rows drawn at random, as the largest of the real fits saw it."""
    name = {"mse": "test_error", "error": "classification_error"}.get(curve.attrs["metric"])
    if checks is None or name is None or name not in checks:
        return "No real fit was tested on later rows: nothing is known about change with time."
    last = checks.isel(n=-1, ridge=0)
    ratio = float(last[name]) / float(curve.value.sel(n=float(last.n)))
    error = float(last[f"{name}_standard_error"]) / float(curve.value.sel(n=float(last.n)))
    count = f"{float(last.n):.0f} consecutive rows"
    if ratio < DRIFT or ratio - 2 * error < 1:
        return f"Later rows are no harder: fits to {count} have {ratio:.2f}({error:.2g}) times the forecast error on the rows that follow."
    return (
        f"Later rows are harder: fits to {count} have {ratio:.2f}({error:.2g}) times the forecast error on the rows that follow. "
        "The data change with time, more old rows will not mend that; fit to recent rows and test on the newest."
    )


def real_fits(mean: float, error: float) -> str:
    """A measured error; one fit alone has no error bar.

    >>> real_fits(0.5, 0.01), real_fits(0.5, float("inf"))
    ('0.5 ± 0.01', '0.5 (one fit)')
    """
    return f"{short(mean)} ± {error:.1g}" if error < float("inf") else f"{short(mean)} (one fit)"


def short(value: Any) -> str:
    """Four digits.

    >>> short(0.123456)
    '0.1235'
    """
    return f"{float(value):.4g}"


def level_sentence(curve: xr.Dataset, points: int, table: Table, target: str) -> str:
    """Where one stands with all the data, in people's units."""
    at = int(np.argmin(np.abs(curve.n.values - points)))
    value = float(curve.value[at])
    band = f" ({short(curve.low[at])} to {short(curve.high[at])})" if "low" in curve else ""
    if table.labels:
        named = {"error": f"{value:.1%} wrong labels", "accuracy": f"{value:.1%} right labels"}.get(
            curve.attrs["metric"], f"{curve.attrs['metric']} {short(value)}"
        )
        return f"With {curve.n.values[at]:.0f} rows: {named}{band}."
    rms = np.sqrt(value) * table.scale
    return (
        f"With {curve.n.values[at]:.0f} rows: an error of {short(rms)} in the units of {target} (RMSE), "
        f"{value:.1%} of its variance{band}."
    )


def exponent_sentence(model: Forecast) -> str:
    """How the error falls near all the data, as its spectrum implies."""
    near, power = model.spectrum_.population, model.exponent()
    return f"Near {near} rows the error above its noise floor falls like n^-{power:.2f} (mean square, best ridge)."


def data_sentence(found: Gains, gain: dict[str, float] | None, ridge: Any, table: Table, target: str) -> str:
    """How much twice the data would help, at the best ridge of each size, in people's units."""
    from limitlab.applied.forecast.advice import sentence

    words = sentence(found, ridge, "mean square of the scores" if table.labels else "error")
    words = words[0].upper() + words[1:] + "."
    if table.labels and gain is not None:
        return words + f" In labels: {gain['now']:.1%} wrong now, {gain['twice']:.1%} with twice the data (approximate)."
    now, twice = (np.sqrt(value) * table.scale for value in (found.best_error, found.best_error * (1 - found.data)))
    return words + f" At the best ridge the RMSE falls from {short(now)} to {short(twice)} in the units of {target}."


def trust_sentences(model: Forecast, curve: xr.Dataset) -> list[str]:
    """What the leverages say, and what half of the data would have said about the whole."""
    from limitlab.applied.forecast import diagnostics

    least = float(curve["ridge"].values.min())
    variation = float(diagnostics.leverage_variation(model.spectrum_, least)[0])
    lines = ["Trust: " + diagnostics.explain(variation, least) + "."]
    if "approximation_error" in curve.attrs:
        lines[0] += f" Nystrom approximation: relative error about {curve.attrs['approximation_error']:.1g}."
    if curve.extrapolated.values.any():
        found = model.backtest(curve["ridge"].values[-1])
        missed, trust = float(np.expm1(found.missed.item())), str(found.trust.item())
        warning = {
            "trusted": "extrapolations like this were right within a few per cent",
            "fair": "extrapolations like this were mostly right within 10%",
            "doubtful": "warning: extrapolations like this were often wrong by 10% and more",
        }[trust]
        lines.append(
            f"* beyond the data. Half of your rows would have missed the whole by {missed:+.1%} ({trust}: {warning})."
        )
        if curve.attrs["metric"] not in ("mse",):
            lines.append("Bands of labels beyond the data are approximate.")
    return lines


def rows_needed(model: Forecast, error: float, lam: Any) -> dict[str, Any]:
    """How many rows reach a test error, or that none do, as numbers and as a sentence."""
    try:
        found = model.samples_for(error, lam)
    except UnreachableTarget as reason:
        return {"n": None, "best": reason.best, "at": reason.at, "sentence": str(reason)[0].upper() + str(reason)[1:] + "."}
    beyond = " (extrapolated)" if found.extrapolated.item() else ""
    sentence = f"A test error of {number(error)} needs about {found.n.item():.0f} rows{beyond}."
    return {"n": found.n.item(), "extrapolated": found.extrapolated.item(), "sentence": sentence}


def described(found: Gains, gain: dict[str, float] | None) -> dict[str, Any]:
    """The gains for machines."""
    return {**asdict(found), "labels": gain}
