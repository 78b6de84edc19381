"""From a file to numbers: CSV, Parquet and NPZ, prepared the way a careful analyst would, with notes of what was done.

Nothing is ever unpickled: a file is data, not a program.

- rows without a target are dropped, and so are rows that repeat another one entirely;
- numbers: missing values become the median, with a further column that says where; columns are standardised;
- dates become days; text and categories become one column of 0 and 1 per level (missing is a level; rare levels are merged);
- columns that never change, and text that is different in nearly every row (names, identifiers), are dropped;
- all inputs are divided by the root of their number, so that a typical row has norm 1 and ridges mean the same everywhere.
"""

from __future__ import annotations

import warnings
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import did_you_mean
from limitlab.laws.draws import checked_seed

Array = NDArray[Any]

FORMATS = (".csv", ".tsv", ".parquet", ".pq", ".npz")
MOST_LEVELS = 30
"""Levels of a category that get a column of their own; the others share one."""

IDENTIFIER = 0.9
"""Text with more distinct values than this share of the rows identifies rows instead of describing them."""

UNIT = "target standardised"


@dataclass
class Table:
    """Inputs and target, ready to fit, and what was done to get them.

    Attributes
    ----------
    X, y
        Inputs (standardised) and targets (standardised numbers, or labels).
    names
        Names of the columns of X.
    notes
        What was done, one line each.
    scale
        Standard deviation of the original target: errors times its square are in the original units.
    """

    X: Array
    y: Array
    names: list[str]
    notes: list[str] = field(default_factory=list)
    scale: float = 1.0


def read_table(path: str | Path, target: str, classify: bool = False, most_rows: int | None = None, seed: int = 0) -> Table:
    """Read a file and prepare it.

    Parameters
    ----------
    path
        A CSV, TSV, Parquet or NPZ file. In an NPZ file every array with as many entries as the target is an input; arrays of
        several dimensions are flattened to columns.
    target
        Name of the column (or array) to predict.
    classify
        Whether the target holds labels.
    most_rows
        Keep a random subset of so many rows.
    seed
        Seed of that subset.
    """
    if most_rows is not None and most_rows < 2:
        raise ValueError(f"rows = {most_rows} is not allowed: must be a whole number of at least 2")
    file, rng = Path(path), np.random.default_rng(checked_seed(seed))
    frame = load_frame(file, target)
    if target not in frame.columns:
        raise ValueError(f"{file.name} has no column {target!r}: {did_you_mean(target, map(str, frame.columns))}")
    if not len(frame):
        raise ValueError(f"{file.name} has a header but no rows: there is nothing to fit")
    notes: list[str] = []
    frame = clean_rows(frame, target, notes)
    if len(frame) < 2:
        raise ValueError(
            f"{file.name} has {len(frame)} different rows with a value of {target!r}: a forecast needs at least 2"
        )
    if most_rows is not None and len(frame) > most_rows:
        rows = np.sort(rng.permutation(len(frame))[:most_rows])
        notes.append(f"kept {most_rows} of {len(frame)} rows at random")
        frame = frame.iloc[rows]
    y, scale = _target(frame[target], target, classify, notes)
    X, names = columns(frame.drop(columns=[target]), notes)
    if not names:
        raise ValueError(
            f"{file.name} has no usable column besides {target!r}: give columns that vary and describe the rows"
        )
    mean, spread = X.mean(axis=0), X.std(axis=0)
    X = (X - mean) / spread / np.sqrt(X.shape[1])
    notes.append(
        f"standardised {X.shape[1]} input columns and divided them by {np.sqrt(X.shape[1]):.3g} (rows of norm about 1)"
    )
    return Table(X, y, names, notes, scale)


def load_frame(file: Path, target: str) -> Any:
    """A file as a table with named columns; one line where that is impossible."""
    if file.suffix.lower() not in FORMATS:
        raise ValueError(f"cannot read '{file}': the name must end in {', '.join(FORMATS)} (pickles are never read)")
    if not file.exists():
        raise ValueError(f"cannot read '{file}': there is no such file")
    if file.stat().st_size == 0:
        raise ValueError(f"cannot read '{file}': the file is empty")
    if file.suffix.lower() == ".npz":
        return _from_npz(file, target)
    import pandas as pd

    try:
        if file.suffix.lower() in (".parquet", ".pq"):
            return pd.read_parquet(file)
        return pd.read_csv(file, sep="\t" if file.suffix.lower() == ".tsv" else ",")
    except ImportError:
        raise ValueError(
            f"cannot read '{file}': Parquet needs pyarrow; install it with pip install 'limitlab[forecast]', or save as CSV"
        ) from None
    except (ValueError, OSError) as error:
        raise ValueError(f"cannot read '{file}': {str(error).splitlines()[0]}") from None


def _from_npz(file: Path, target: str) -> Any:
    import pandas as pd

    if not zipfile.is_zipfile(file):
        raise ValueError(f"cannot read '{file}': it is damaged, or was not written by numpy.savez")
    try:
        with np.load(file, allow_pickle=False) as arrays:
            loaded = {name: arrays[name] for name in arrays.files}
    except Exception as error:
        raise ValueError(f"cannot read '{file}': {str(error).splitlines()[0]} (pickled objects are never read)") from None
    if target not in loaded:
        raise ValueError(f"{file.name} has no array {target!r}: {did_you_mean(target, loaded)}")
    if loaded[target].ndim != 1:
        raise ValueError(f"the array {target!r} has shape {loaded[target].shape}: a target must be one-dimensional")
    rows = len(loaded[target])
    parts: dict[str, Array] = {}
    for name, array in loaded.items():
        if array.ndim == 0 or len(array) != rows:
            continue
        flat = array.reshape(rows, -1)
        labels = [name] if array.ndim == 1 else [f"{name}[{i}]" for i in range(flat.shape[1])]
        parts |= {label: flat[:, i] for i, label in enumerate(labels)}
    return pd.DataFrame(parts)


def clean_rows(frame: Any, target: str, notes: list[str]) -> Any:
    """Drop rows without a target and rows that repeat another one."""
    missing = int(frame[target].isna().sum())
    if missing == len(frame):
        raise ValueError(f"every value of {target!r} is missing: there is nothing to learn")
    if missing:
        notes.append(f"dropped {missing} rows without {target}")
        frame = frame[frame[target].notna()]
    repeated = frame.duplicated()
    if repeated.any():
        notes.append(
            f"dropped {int(repeated.sum())} rows that repeat another row entirely (they would be tested on their own copy)"
        )
        frame = frame[~repeated]
    return frame


def _target(values: Any, name: str, classify: bool, notes: list[str]) -> tuple[Array, float]:
    import pandas as pd

    if classify:
        labels = values.astype(str).to_numpy() if not pd.api.types.is_numeric_dtype(values) else values.to_numpy()
        classes = np.unique(labels).size
        if classes < 2:
            raise ValueError(f"{name} holds one class only: there is nothing to learn")
        if classes > max(20, len(labels) // 5):
            raise ValueError(
                f"{name} has {classes} classes in {len(labels)} rows: forecast it as a number, without --classify"
            )
        notes.append(f"{name}: {classes} classes, one target of 0 and 1 for each")
        return labels, 1.0
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=float)
    if not np.isfinite(numbers).all():
        first = values[~np.isfinite(numbers)].iloc[0]
        raise ValueError(f"{name} holds text, such as {str(first)!r}: use --classify for labels, or give numbers")
    spread = float(numbers.std())
    if spread == 0:
        raise ValueError(f"{name} is constant (every value is {numbers[0]:g}): there is nothing to learn")
    notes.append(
        f"{name}: centred at {numbers.mean():.4g} and divided by its standard deviation {spread:.4g} (error 1 is no skill)"
    )
    return (numbers - numbers.mean()) / spread, spread


def columns(frame: Any, notes: list[str]) -> tuple[Array, list[str]]:
    """Every usable column as numbers, unscaled, and the names of what came out."""
    found: dict[str, Array] = {}
    constant, identifiers = [], []
    for name in frame.columns:
        values, label = frame[name], str(name)
        if values.nunique(dropna=False) < 2:
            constant.append(label)
            continue
        made, kind = _column(values, label, notes)
        if kind == "identifier":
            identifiers.append(label)
        found |= {key: column for key, column in made.items() if np.ptp(column) > 0}
    if constant:
        notes.append(f"dropped {_listed(constant)}: the same value in every row")
    if identifiers:
        notes.append(f"dropped {_listed(identifiers)}: text that is different in nearly every row")
    table = np.column_stack(list(found.values())) if found else np.empty((len(frame), 0))
    return table.astype(float), list(found)


def _column(values: Any, label: str, notes: list[str]) -> tuple[dict[str, Array], str]:
    import pandas as pd

    if pd.api.types.is_bool_dtype(values):
        return {label: values.to_numpy(dtype=float)}, "number"
    if pd.api.types.is_datetime64_any_dtype(values):
        notes.append(f"{label}: dates, as days")
        days = (values - values.min()).dt.total_seconds() / 86400
        return _filled(days, label, notes), "number"
    if pd.api.types.is_numeric_dtype(values):
        return _filled(values, label, notes), "number"
    distinct = values.nunique()
    if distinct > IDENTIFIER * len(values):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas says when it cannot guess a format; so do we, by what comes next
            dates = pd.to_datetime(values, errors="coerce")
        if dates.notna().mean() > IDENTIFIER:
            return _column(dates, label, notes)
        return {}, "identifier"
    return _levels(values.astype(object), label, notes), "category"


def _filled(values: Any, label: str, notes: list[str]) -> dict[str, Array]:
    """Numbers with the median in place of missing ones, and a column that marks them."""
    numbers = values.to_numpy(dtype=float, na_value=np.nan)
    absent = ~np.isfinite(numbers)
    if not absent.any():
        return {label: numbers}
    if absent.all():
        notes.append(f"dropped {label}: no finite value")
        return {}
    middle = float(np.median(numbers[~absent]))
    notes.append(
        f"{label}: {int(absent.sum())} missing values replaced by the median {middle:.4g}, and marked in a column of their own"
    )
    return {label: np.where(absent, middle, numbers), f"{label} (missing)": absent.astype(float)}


def _levels(values: Any, label: str, notes: list[str]) -> dict[str, Array]:
    """One column per level of a category."""
    text = values.where(values.notna(), "(missing)").astype(str)
    counted = text.value_counts()
    common = list(counted.index[:MOST_LEVELS]) if len(counted) > MOST_LEVELS else list(counted.index)
    merged = len(counted) - len(common)
    rest = f", the {merged} rarest in one column" if merged else ""
    lost = int(values.isna().sum())
    missing = f", {lost} missing as a level of their own" if lost else ""
    notes.append(f"{label}: category with {len(counted)} levels{rest}{missing}, one column each")
    array = text.to_numpy()
    found = {f"{label}={level}": (array == level).astype(float) for level in common}
    if merged:
        found[f"{label}=(other)"] = (~np.isin(array, common)).astype(float)
    return found


def _listed(names: list[str], most: int = 5) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more columns"
