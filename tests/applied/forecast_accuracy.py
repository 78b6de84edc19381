"""How good the forecasts are: predicted against measured test errors on real data, failures included.

Three data sets, four kernels, four ridges and four numbers of points each; measured over random subsets, tested on the rest.
`python tests/applied/forecast_accuracy.py` prints the tables; with `--quick` only those of diabetes and digits.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from limitlab._core.page import Page, Table
from limitlab.applied import Forecast, ForecastWarning
from limitlab.models.datasets import HALF, mnist, prepared

KERNELS = ("linear", "rbf", "relu-nngp", "random-features")
RIDGES = (0.0, 1e-3, 1e-2, 1e-1)
SAMPLES = {"diabetes": (30, 80, 200, 350), "digits": (50, 150, 500, 1200), "mnist": (100, 300, 1000, 2500)}
WIDTHS = {"diabetes": 150, "digits": 500, "mnist": 1000}
INTERCEPT = 0.3


@dataclass(frozen=True)
class Row:
    """One forecast and its measurement; errors are predicted / measured - 1."""

    data: str
    kernel: str
    n: int
    ridge: float
    predicted: float
    corrected: float
    measured: float
    standard_error: float

    @property
    def law_gap(self) -> float:
        """Relative error of the law."""
        return self.predicted / self.measured - 1

    @property
    def corrected_gap(self) -> float:
        """Relative error of the law with the leverage of each point."""
        return self.corrected / self.measured - 1


def splits_for(name: str, n: int, quick: bool) -> int:
    """More random subsets where they are small, so that the measurement is sharper than what is measured."""
    total = {"diabetes": 442, "digits": 1797, "mnist": 4000}[name]
    cheap = 60 if n * 8 < total else 24 if n * 3 < total else 10
    return max(5, cheap // 2) if quick else cheap if name != "mnist" else max(4, cheap // 3)


def accuracy(
    data: Iterable[str] = ("diabetes", "digits", "mnist"),
    kernels: Iterable[str] = KERNELS,
    quick: bool = False,
    report: Callable[[str], None] = lambda line: None,
) -> list[Row]:
    """Forecast and measure.

    Parameters
    ----------
    data, kernels
        Which ones.
    quick
        Fewer random subsets.
    report
        Called with a line about each kernel before it starts.
    """
    rows = []
    chosen = tuple(kernels)
    for name in data:
        X, y = prepared(name)
        for kernel in chosen:
            report(f"{name}, {kernel}")
            forecast = Forecast(kernel, width=WIDTHS[name], intercept=INTERCEPT)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ForecastWarning)  # ridge 0 is asked for on purpose
                forecast.fit(X, y)
                predicted = forecast.predict_error(SAMPLES[name], RIDGES, corrected=True)
            for i, n in enumerate(SAMPLES[name]):
                found = forecast.measure([n], RIDGES, splits=splits_for(name, n, quick))
                for j, ridge in enumerate(RIDGES):
                    law, corrected = (predicted[one].values[i, j].item() for one in ("test_error", "corrected_test_error"))
                    real, error = (found[one].values[0, j].item() for one in ("test_error", "test_error_standard_error"))
                    rows.append(Row(name, kernel, n, ridge, law, corrected, real, error))
    return rows


@dataclass(frozen=True)
class HiddenTail:
    """An extrapolation from few points and what was measured with many."""

    kernel: str
    ridge: float
    predicted: float
    low: float
    high: float
    measured: float

    @property
    def inside(self) -> bool:
        """Whether the measurement is within the band."""
        return self.low <= self.measured <= self.high


def hidden_tail(
    kernels: Iterable[str] = KERNELS,
    ridges: Iterable[float] = (1e-3, 1e-2),
    known: int = 1000,
    full: int = HALF,
    seed: int = 0,
    report: Callable[[str], None] = lambda line: None,
) -> list[HiddenTail]:
    """Fit on a few images of MNIST, forecast the error with four times as many, and measure it on 4,000 further images.

    Parameters
    ----------
    kernels, ridges
        Which ones.
    known, full
        Points fitted, and points extrapolated to (at most 4,000).
    seed
        Which of the images are known.
    report
        Called with a line about each kernel before it starts.
    """
    from scipy.linalg import cho_factor, cho_solve

    images, labels = mnist("all")
    X = images - images.mean(axis=0)
    X, y = X / np.sqrt(X.var(axis=0).sum()), 1.0 - 2.0 * (labels % 2)
    inside, outside = slice(full), slice(HALF, None)
    rows = np.random.default_rng(seed).permutation(full)[:known]
    found = []
    for name in kernels:
        report(f"mnist, {name}: {known} points known, {full} asked for")
        forecast = Forecast(name, width=WIDTHS["mnist"], intercept=INTERCEPT).fit(X[rows], y[rows])
        assert forecast.kernel_ is not None
        gram, across = forecast.kernel_(X[inside], X[inside]), forecast.kernel_(X[outside], X[inside])
        for ridge in ridges:
            guess = across @ cho_solve(cho_factor(gram + full * ridge * np.eye(full)), y[inside])
            curve = forecast.learning_curve([full], ridge)
            value, low, high = (curve[one].item() for one in ("test_error", "test_error_low", "test_error_high"))
            found.append(HiddenTail(name, ridge, value, low, high, float(np.mean((guess - y[outside]) ** 2))))
    return found


def summary(rows: list[Row]) -> list[dict[str, object]]:
    """Median and largest relative error for every data set and range of ridges: the law, and with each point's leverage.

    >>> row = Row("toy", "linear", 10, 0.1, predicted=0.9, corrected=1.01, measured=1.0, standard_error=0.01)
    >>> [summary([row])[0][name] for name in ("law worst", "corrected worst")]
    ['10.0%', '1.0%']
    """
    lines: list[dict[str, object]] = []
    for name in [*dict.fromkeys(row.data for row in rows), "all"]:
        for words, wanted in (("at least 0.001", True), ("0", False)):
            chosen = [row for row in rows if name in (row.data, "all") and (row.ridge > 0) == wanted]
            if not chosen:
                continue
            law, corrected = (np.abs([getattr(row, gap) for row in chosen]) for gap in ("law_gap", "corrected_gap"))
            noise = np.median([row.standard_error / row.measured for row in chosen])
            lines.append(
                {
                    "data": name, "ridge": words, "cases": len(chosen),
                    "law median": f"{np.median(law):.1%}", "law worst": f"{law.max():.1%}",
                    "corrected median": f"{np.median(corrected):.1%}", "corrected worst": f"{corrected.max():.1%}",
                    "standard error": f"{noise:.1%}",
                }
            )  # fmt: skip
    return lines


def main(quick: bool) -> None:
    """Print the summary, every case that is off by more than 10 %, and the extrapolations."""
    rows = accuracy(("diabetes", "digits") if quick else ("diabetes", "digits", "mnist"), quick=quick, report=print)
    tails = [] if quick else hidden_tail(report=print)
    poor = [row for row in rows if max(abs(row.law_gap), abs(row.corrected_gap)) > 0.1]
    tables = [
        Table(summary(rows), "|predicted / measured - 1| of the test error (the law; with the leverage of each point)"),
        Table([vars(row) for row in poor], "Cases in which either is off by more than 10 %"),
        Table(
            [{**vars(row), "inside": row.inside} for row in tails], "MNIST, fitted on 1,000 images, extrapolated to 4,000"
        ),
    ]
    print(Page(tables=[table for table in tables if table.rows]))


if __name__ == "__main__":
    main("--quick" in sys.argv)
