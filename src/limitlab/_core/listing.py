"""The index of built-in laws, claims and figures, read from `index.json`. This module imports nothing of limitlab."""

from __future__ import annotations

import functools
import json
from importlib.resources import files
from typing import Any


@functools.cache
def index() -> dict[str, dict[str, Any]]:
    """Return the built-in laws, claims and figures with the modules that define them.

    >>> index()["laws"]["Ridge"]
    'limitlab.laws.regression.ridge'
    """
    content: dict[str, dict[str, Any]] = json.loads((files("limitlab") / "_core" / "index.json").read_text(encoding="utf-8"))
    return content
