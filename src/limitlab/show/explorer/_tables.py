"""Results as words, tables and CSV: what stands beside a picture, and what is downloaded."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from limitlab._core.tables import number

BUDGET = {
    "observable": "observable",
    "verdict": "verdict",
    "theory": "limit",
    "simulation": "experiment",
    "gap": "gap",
    "standard_error": "standard error",
    "finite_size_allowance": "finite-size allowance",
    "z": "z",
    "half_width": "half width",
    "numerical_error": "numerical error",
}
"""Columns of the error budget: fields of `lab.judging.Row` and their headings."""


def verdict_html(result: Mapping[str, Any]) -> str:
    """A comparison: the verdict, why, and its error budget."""
    rows = [[shown(row.get(field, "")) for field in BUDGET] for row in result["rows"]]
    badge = f'<p class="verdict {result["verdict"]}"><b>{result["verdict"]}</b> {html.escape(result["explanation"])}</p>'
    return badge + table_html(list(BUDGET.values()), rows)


def plan_html(result: Mapping[str, Any], along: str, observable: str, wanted: float) -> str:
    """A plan: every answer, and the observables at the first."""
    if not result["solutions"]:
        return f'<p class="verdict underpowered"><b>out of reach</b> {html.escape(result["sentence"])}</p>'
    first, *others = map(number, result["solutions"])
    more = f" Other answers: {', '.join(others)}." if others else ""
    words = f"<b>{along} = {first}</b> gives {observable} = {number(wanted)}.{more}"
    there = result["observables"]
    return f'<p class="verdict agree">{words}</p>' + table_html(list(there), [[shown(value) for value in there.values()]])


def forecast_html(result: Mapping[str, Any]) -> str:
    """A forecast: its sentence, and what was done to the table."""
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in result["notes"])
    return f'<p class="verdict agree">{html.escape(result["sentence"])}</p><ul class="notes">{notes}</ul>'


def table_html(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose every cell is text.

    >>> table_html(["a"], [["<b>"]])
    '<div class="table"><table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table></div>'
    """
    head = "".join(f"<th>{html.escape(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="table"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def shown(value: Any) -> str:
    """A cell of the budget, to three digits."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


# -- CSV --------------------------------------------------------------------------------------------------------------------


def curve_csv(along: str, theory: Mapping[str, Any] | None, measured: Mapping[str, Any] | None) -> str:
    """One line per number: where, what, its value, and for experiments the standard error and the draws."""
    rows: list[list[Any]] = []
    for name, line in (theory["y"] if theory else {}).items():
        rows += [[x, "limit", name, y, "", ""] for x, y in zip(theory["x"], line, strict=True)]  # type: ignore[index]
    for name, mean in (measured["mean"] if measured else {}).items():
        parts = zip(measured["x"], mean, measured["error"][name], measured["draws"], strict=True)  # type: ignore[index]
        rows += [[x, "experiment", name, y, error, int(draws)] for x, y, error, draws in parts if draws]
    return _csv([along, "kind", "observable", "value", "standard_error", "draws"], rows)


def phase_csv(x: str, y: str, observable: str, result: Mapping[str, Any]) -> str:
    """One line per point of the grid."""
    rows = [[a, b, result["z"][j, i]] for j, b in enumerate(result["y"]) for i, a in enumerate(result["x"])]
    return _csv([x, y, observable], rows)


def compare_csv(result: Mapping[str, Any]) -> str:
    """The error budget."""
    return _csv(list(BUDGET), [[row.get(field, "") for field in BUDGET] for row in result["rows"]])


def plan_csv(result: Mapping[str, Any], along: str) -> str:
    """Every answer."""
    return _csv([along], [[value] for value in result["solutions"]])


def forecast_csv(result: Mapping[str, Any]) -> str:
    """The forecast and its band."""
    blank = [""] * len(result["n"])
    low, high = (result[end] if result[end] is not None else blank for end in ("low", "high"))
    return _csv(["n", result["metric"], "low", "high"], list(zip(result["n"], result["value"], low, high, strict=True)))


def _csv(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows([[repr(float(cell)) if isinstance(cell, float) else cell for cell in row] for row in rows])
    return stream.getvalue()
