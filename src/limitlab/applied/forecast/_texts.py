"""What a column of text holds: numbers in people's notation, dates, identifiers or categories.

Tried in this order on the distinct values, so that a column of a million rows with a dozen levels costs a dozen conversions.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOSTLY = 0.9
"""Share of the distinct values that must read as numbers (dates) for a column of them."""

SAMPLE = 200
"""Distinct values tried before all of them are converted."""

DRESS = re.compile(r"[€$£¥₹%\s\u00a0\u202f'_]|\b(?:EUR|USD|GBP|CHF|JPY|Fr\.?|kr\.?)(?=\b|\s|$)", re.IGNORECASE)
"""Signs that stand around and inside a number without changing it: currencies, per cent, blanks, thousands marks."""

POINT = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d*)?(?:[eE][+-]?\d+)?")
COMMA = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d+)?(?:,\d*)?(?:[eE][+-]?\d+)?")
DATE = re.compile(
    r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{1,2}:\d{2}|\d.*(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)", re.IGNORECASE
)


def numbers_of(texts: list[str]) -> Floats | None:
    """Numbers with currency and per cent signs, thousands marks, decimal points or commas; None where most texts are not numbers.

    >>> numbers_of(["€ 1.234,50", "99,90 €", "-3,5"]).tolist(), numbers_of(["12 %", "7.5%"]).tolist()
    ([1234.5, 99.9, -3.5], [12.0, 7.5])
    >>> numbers_of(["1,234", "2,000,000.5"]).tolist(), numbers_of(["red", "green"]) is None
    ([1234.0, 2000000.5], True)
    """
    if not texts or _share(texts[:SAMPLE], lambda text: bool(_bare(text))) < MOSTLY:
        return None
    bare = [_bare(text) for text in texts]
    point, comma = (_read(bare, style, mark) for style, mark in ((POINT, ","), (COMMA, ".")))
    best = point if np.isfinite(point).sum() >= np.isfinite(comma).sum() else comma
    return best if np.isfinite(best).mean() >= MOSTLY else None


def _bare(text: str) -> str:
    """A text without its dress, empty where no digit is left or something else than a number is."""
    bare = DRESS.sub("", text)
    if bare.startswith("(") and bare.endswith(")"):  # how accountants write a minus
        bare = "-" + bare[1:-1]
    return bare if re.fullmatch(r"[-+.,\deE]*\d[-+.,\deE]*", bare) else ""


def _read(bare: list[str], style: re.Pattern[str], thousands: str) -> Floats:
    out = np.full(len(bare), np.nan)
    for i, text in enumerate(bare):
        if text and style.fullmatch(text):
            try:
                out[i] = float(text.replace(thousands, "").replace(",", "."))
            except ValueError:
                continue
    return out


def days_of(texts: list[str]) -> Floats | None:
    """Dates as days after the first one; None where most texts are not dates.

    >>> days_of(["2020-01-01", "2020-01-31", "2019-12-31"]).tolist(), days_of(["a1", "b2"]) is None
    ([1.0, 31.0, 0.0], True)
    """
    import pandas as pd

    if not texts or _share(texts[:SAMPLE], lambda text: bool(DATE.search(text))) < MOSTLY:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas says when it cannot guess a format; so do we, by what comes next
        dates = pd.to_datetime(pd.Series(texts), errors="coerce", utc=True)
        if dates.notna().mean() < MOSTLY:
            dates = pd.to_datetime(pd.Series(texts), errors="coerce", utc=True, format="mixed", dayfirst=True)
    if dates.notna().mean() < MOSTLY:
        return None
    return np.asarray((dates - dates.min()).dt.total_seconds() / 86400, dtype=float)


def _share(texts: list[str], holds: Any) -> float:
    return sum(map(holds, texts)) / len(texts)
