"""HTML of a fitted forecast for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from limitlab._core.notebook import html_table
from limitlab._core.typeset import typeset

if TYPE_CHECKING:
    from limitlab.applied.forecast._estimator import Forecast


def forecast_html(forecast: Forecast) -> str:
    """A fitted forecast: the error here, and what two and four times the data would give."""
    population = int(forecast.spectrum_.population)
    curve = forecast.learning_curve([population, 2 * population, 4 * population])
    banded = "test_error_low" in curve
    rows = [
        (
            f"{int(curve.n[i])}" + (" (your data)" if i == 0 else f" ({2**i} times)"),
            f"{float(curve.test_error[i]):.4g}",
            f"{float(curve.test_error_low[i]):.4g} to {float(curve.test_error_high[i]):.4g}" if banded else "",
        )
        for i in range(curve.sizes["n"])
    ]
    return (
        f"<div><strong>{type(forecast).__name__}</strong> from {population} points, kernel {escape(str(forecast.kernel))}"
        + html_table(("points", "test error", f"{float(curve.attrs['band']):.0%} band"), rows)
        + f"<p>{typeset(forecast.advice())}</p></div>"
    )
