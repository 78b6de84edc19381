"""Interrupted marches continue: the state of a march in one npz file, written whole or not at all, without pickles."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab._core.checkpoints import write_arrays
from limitlab.numerics.two_time._memory import History

Floats = NDArray[np.float64]


def save_checkpoint(
    path: str | os.PathLike[str],
    signature: str,
    history: History,
    rates: Mapping[str, float],
    forcings: Mapping[str, Floats | float],
) -> None:
    """Write the history up to its newest point and the flow there; a reader sees the old file or the new one."""
    arrays: dict[str, NDArray[Any]] = {"signature": np.array(signature), "index": np.array(history.index)}
    arrays |= {f"history/{name}": array for name, array in history.state().items()}
    arrays |= {f"path/{name}": path[: history.index + 1] for name, path in history.paths.items()}
    arrays |= {f"record/{name}": path[: history.index + 1] for name, path in history.records.items()}
    arrays |= {f"rate/{name}": np.array(rate) for name, rate in rates.items()}
    arrays |= {f"forcing/{name}": np.asarray(forcing) for name, forcing in forcings.items()}
    write_arrays(path, arrays)


def load_checkpoint(
    path: str | os.PathLike[str], signature: str, history: History
) -> tuple[dict[str, float], dict[str, Floats | float]] | None:
    """Fill the history from a file and return rates and forcings at its newest point; None when there is no file.

    A file of another system, another grid or another version is refused, never mixed in.
    """
    if not Path(path).exists():
        return None
    with np.load(path, allow_pickle=False) as data:
        found = str(data["signature"])
        if found != signature:
            raise ValueError(
                f"checkpoint = {str(path)!r} is not allowed: it belongs to another march ({found}); give another file or remove it"
            )
        history.index = int(data["index"])
        for kind, paths in (("path", history.paths), ("record", history.records)):
            for name, values in paths.items():
                values[: history.index + 1] = data[f"{kind}/{name}"]
        parts = {
            kind: {key.removeprefix(kind + "/"): data[key] for key in data.files if key.startswith(kind + "/")}
            for kind in ("history", "rate", "forcing")
        }
    try:
        history.restore(parts["history"])
    except KeyError as missing:
        raise ValueError(
            f"checkpoint = {str(path)!r} is not allowed: it has no part {missing}, so another version of limitlab wrote it; remove it"
        ) from None
    rates = {name: float(value) for name, value in parts["rate"].items()}
    forcings: dict[str, Floats | float] = {
        name: value if value.ndim else float(value) for name, value in parts["forcing"].items()
    }
    return rates, forcings
