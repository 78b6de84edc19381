"""Saved states of marches in files of arrays (`limitlab._core.files`), which are replaced atomically."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab._core.files import DamagedFile, read_arrays, write_arrays
from limitlab.numerics.two_time._memory import History

Floats = NDArray[np.float64]


def save_checkpoint(
    path: str | os.PathLike[str],
    signature: str,
    history: History,
    rates: Mapping[str, float],
    forcings: Mapping[str, Floats | float],
) -> None:
    """Write the history up to its newest point, and the flow there.

    The file is replaced atomically, so that a reader finds either the earlier file or the new file.
    """
    arrays: dict[str, NDArray[Any]] = {f"history/{name}": array for name, array in history.state().items()}
    arrays |= {f"path/{name}": path[: history.index + 1] for name, path in history.paths.items()}
    arrays |= {f"record/{name}": path[: history.index + 1] for name, path in history.records.items()}
    arrays |= {f"rate/{name}": np.array(rate) for name, rate in rates.items()}
    arrays |= {f"forcing/{name}": np.asarray(forcing) for name, forcing in forcings.items()}
    write_arrays(path, arrays, {"signature": signature, "index": int(history.index)})


def load_checkpoint(
    path: str | os.PathLike[str], signature: str, history: History
) -> tuple[dict[str, float], dict[str, Floats | float]] | None:
    """Fill the history from a file and return rates and forcings at its newest point, or None if there is no file.

    Raise ValueError if the file belongs to another system or grid, is damaged, or was written by another version.
    """
    try:
        about, arrays = read_arrays(path)
        if about["signature"] != signature:
            raise ValueError(
                f"checkpoint = {str(path)!r} is not allowed: the file was written by another integration ({about['signature']}); "
                "give another file or remove it"
            )
        parts: dict[str, dict[str, NDArray[Any]]] = {kind: {} for kind in ("history", "path", "record", "rate", "forcing")}
        for name, array in arrays.items():
            kind, _, rest = name.partition("/")
            parts[kind][rest] = array
        history.index = int(about["index"])
        for values_of, saved in ((history.paths, parts["path"]), (history.records, parts["record"])):
            for name, values in values_of.items():
                values[: history.index + 1] = saved[name]
        history.restore(parts["history"])
    except FileNotFoundError:
        return None
    except (DamagedFile, KeyError) as error:
        raise ValueError(
            f"checkpoint = {str(path)!r} is not allowed: it is damaged or from another version of limitlab ({error}); remove it or give "
            "another file"
        ) from None
    rates = {name: float(value) for name, value in parts["rate"].items()}
    forcings: dict[str, Floats | float] = {
        name: value if value.ndim else float(value) for name, value in parts["forcing"].items()
    }
    return rates, forcings
