"""Tables of training runs: which column is the size, the data, the loss."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

USUAL = {
    "N": ("n", "size", "model_size", "params", "parameters", "n_params", "width"),
    "D": ("d", "data", "tokens", "samples", "n_tokens", "training_tokens", "steps"),
    "loss": ("loss", "val_loss", "test_loss", "final_loss", "eval_loss"),
    "compute": ("c", "compute", "flops", "training_flop", "training_flops"),
}
"""Names by which a column is recognised, whatever their case."""


class RunTable(NamedTuple):
    """The columns of a table of runs; `D` is None where the table has compute instead."""

    N: Array
    D: Array | None
    loss: Array
    compute: Array | None


def read_runs(path: Path, **named: str | None) -> RunTable:
    """Read a .csv or .tsv file of runs: columns by the given names (`N`, `D`, `loss`, `compute`), or by the usual ones.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "runs.csv"
    >>> _ = file.write_text("params,tokens,loss\\n1e8,2e9,3.1\\n2e8,2e9,3.0\\n")
    >>> read_runs(file).N.tolist(), read_runs(file).compute
    ([100000000.0, 200000000.0], None)
    """
    import pandas as pd

    frame = pd.read_csv(path, sep=None, engine="python", comment="#", skipinitialspace=True)
    columns = {str(name).strip().lower(): str(name) for name in frame.columns}

    def column(role: str) -> Array | None:
        wanted = named.get(role)
        if wanted is not None and wanted.lower() not in columns:
            raise ValueError(f"{path.name} has no column {wanted!r}: its columns are {', '.join(map(str, frame.columns))}")
        name = wanted.lower() if wanted is not None else next((usual for usual in USUAL[role] if usual in columns), None)
        if name is None:
            return None
        numbers = pd.to_numeric(frame[columns[name]], errors="coerce").to_numpy(dtype=float)
        if np.isnan(numbers).any():
            row = int(np.flatnonzero(np.isnan(numbers))[0])
            raise ValueError(
                f"column {columns[name]!r} of {path.name} holds no number in row {row + 1}: {frame[columns[name]][row]!r}"
            )
        return numbers

    size, data, loss, compute = (column(role) for role in ("N", "D", "loss", "compute"))
    shown = ", ".join(map(str, frame.columns))
    if size is None or loss is None or (data is None and compute is None):
        missing = "a size (N)" if size is None else "a loss" if loss is None else "data (D) or compute"
        raise ValueError(f"{path.name} has no column for {missing}: name it with an option; its columns are {shown}")
    return RunTable(size, data, loss, compute if data is None else None)
