"""Results, errors and texts as plain data that can be written as JSON, without what differs between machines, runs or module paths."""

from __future__ import annotations

import functools
import hashlib
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

FEW = 20
"""Arrays with fewer numbers than this are recorded with their values, not only with their hash."""
NOT_RECORDED = {"version", "versions", "seconds"}
"""Keys of attributes and JSON output that differ between machines or runs."""
MEASURED = {"uncertainty", "longest", "each", "start", "worker_memory", "core_hours", "wall_seconds"}
"""Further such keys of one JSON output, the estimate of `limitlab sweep --dry-run`, which times a few draws."""
PREFIX = "limitlab-snapshot-"
"""How the names of the temporary folders of commands begin."""


def text(value: Any) -> str:
    """A text without what may change: module paths, absolute paths, addresses, durations, versions."""
    words = str(value).replace(f"{tempfile.gettempdir()}/{PREFIX}", "<tmp>/")
    for folder, name in ((str(Path(__file__).parents[2]), "<root>"), (sys.prefix, "<python>")):
        words = words.replace(folder, name)
    words = re.sub(r"<tmp>/\w+", "<tmp>", words)
    words = re.sub(r"^.* so far\)\n", "", words, flags=re.MULTILINE)  # lines that appear only on a slow machine
    words = re.sub(r"\babout \S+ s more here", "about * s more here", words)
    words = re.sub(r"\(\d+\.\d s\)", "(* s)", words)
    words = re.sub(r"\b0x[0-9a-f]+\b", "0x*", words)
    words = re.sub(
        r"\blimitlab(?:\.\w+)*\.([A-Z]\w*)", r"limitlab.*.\1", words
    )  # the name of a class is kept, its place is not
    words = re.sub(r"\blimitlab(?:\.\w+)+", "limitlab.*", words)
    return words.replace(f"limitlab {installed()}", "limitlab VERSION")


@functools.cache
def installed() -> str:
    """The version of the installed package."""
    return version("limitlab")


def plain(value: Any) -> Any:
    """A value as JSON data: numbers in full, texts without what may change, anything else by its text."""
    import numpy as np

    if isinstance(value, np.ndarray) and value.size >= FEW:
        return array(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, dict) or hasattr(value, "items"):
        left_out = NOT_RECORDED | (MEASURED if "wall_seconds" in value else set())
        return {text(key): plain(item) for key, item in value.items() if key not in left_out}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return text(value)


def array(value: Any) -> dict[str, Any]:
    """An array: type, shape, hash of its bytes, and its values where they are few."""
    import numpy as np

    found = np.ascontiguousarray(value)
    content = found.tobytes() if found.dtype.kind != "O" else repr(found.tolist()).encode()
    about = dict(dtype=str(found.dtype), shape=list(np.shape(value)), sha256=hashlib.sha256(content).hexdigest())
    if found.size < FEW:
        about["values"] = plain(found.astype(str).tolist() if found.dtype.kind in "cO" else np.asarray(value).tolist())
    return about


def dataset(result: Any) -> dict[str, Any]:
    """An `xarray.Dataset`: every variable and coordinate with its dimensions, numbers and attributes."""
    variables = {
        str(name): dict(dims=list(one.dims), **array(one.values), attrs=plain(one.attrs))
        for name, one in result.variables.items()
    }
    return dict(variables=variables, coordinates=sorted(map(str, result.coords)), attrs=plain(result.attrs))


def declared(record: Any, but: tuple[str, ...] = ()) -> dict[str, str]:
    """Every field of a dataclass such as `Parameter` or `Observable`, but those that are named."""
    return {field.name: text(repr(getattr(record, field.name))) for field in fields(record) if field.name not in but}


def raised(error: BaseException) -> dict[str, Any]:
    """An error: the names of its classes, and its message."""
    classes = [kind.__name__ for kind in type(error).__mro__ if issubclass(kind, Exception)]
    return {"error": " < ".join(classes), "message": text(error)}


def captured(function: Callable[[], Any]) -> Any:
    """The result of a function as it is, or the error that it raised."""
    try:
        return function()
    except Exception as error:
        return raised(error)
