"""Numbers computed independently of this package (`tests/reference/*.json`), and what the tests that read them share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def reference(file: str, law: str | None = None) -> Any:
    """The contents of a file of numbers: its entries, or those of one law."""
    entries = json.loads((Path(__file__).parent / "reference" / f"{file}.json").read_text(encoding="utf-8"))
    return entries if law is None else [entry for entry in entries if entry["law"] == law]


def label(entry: dict[str, Any]) -> str:
    """Name of an entry in a list of tests."""
    return "-".join(str(value) for value in entry["inputs"].values())
