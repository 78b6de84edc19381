"""Functions that read a table from a file and prepare its columns for a fit, with notes on each step.

A file is a CSV, TSV, Parquet or NPZ file. Pickles are never read, and the size of an archive is checked before it is unpacked. A file that
is not a table raises an error. Examples are two columns with the same name, complex numbers, and an archive that is larger than the memory.

The columns are prepared as follows:

- Rows without a target are dropped. Rows that are equal to another row are dropped too.
- In columns of numbers, missing values become the median, and a further column marks them. Columns are standardised. Text with numbers in
  common notation (currencies, per cent, decimal commas) is read as numbers.
- Dates become days. Text and categories become one column of 0 and 1 per level. A missing value is a level, and rare levels are merged.
- Constant columns, row numbers and other identifiers, and columns of lists or records are dropped.
- All inputs are divided by the root of their number. A typical row then has norm 1, and ridges are comparable between tables.
"""

from __future__ import annotations

import csv
import re
import warnings
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab._core.arguments import explained
from limitlab._core.cost import available_memory
from limitlab._core.draws import checked_seed
from limitlab.applied.forecast._fitting import is_classification
from limitlab.errors import Refused, did_you_mean

__all__ = ["read_table"]

Array = NDArray[Any]

Floats = NDArray[np.float64]

MOSTLY = 0.9
"""Share of the distinct values that must be numbers (or dates) for a column to be read as numbers (or dates)."""

SAMPLE = 200
"""Number of distinct values that are tried before all of them are converted."""

DRESS = re.compile(r"[€$£¥₹%\s\u00a0\u202f'_]|\b(?:EUR|USD|GBP|CHF|JPY|Fr\.?|kr\.?)(?=\b|\s|$)", re.IGNORECASE)
"""Signs next to or inside a number that do not change it, such as currencies, per cent, blanks and thousands marks."""

POINT = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d*)?(?:[eE][+-]?\d+)?")
COMMA = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d+)?(?:,\d*)?(?:[eE][+-]?\d+)?")
DATE = re.compile(
    r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{1,2}:\d{2}|\d.*(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)", re.IGNORECASE
)


def numbers_of(texts: list[str]) -> Floats | None:
    """Return the numbers in texts with currency signs, per cent signs, thousands marks and decimal points or commas.

    The result is None if most texts are not numbers.

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
    """Return a text without the signs of `SIGNS`. The result is empty unless it is a number."""
    bare = DRESS.sub("", text)
    if bare.startswith("(") and bare.endswith(")"):  # accountants write -5 as (5)
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
    """Return dates as days after the first date, or None if most texts are not dates.

    >>> days_of(["2020-01-01", "2020-01-31", "2019-12-31"]).tolist(), days_of(["a1", "b2"]) is None
    ([1.0, 31.0, 0.0], True)
    """
    import pandas as pd

    if not texts or _share(texts[:SAMPLE], lambda text: bool(DATE.search(text))) < MOSTLY:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas warns if it cannot guess a format; the next lines handle this case
        dates = pd.to_datetime(pd.Series(texts), errors="coerce", utc=True)
        if dates.notna().mean() < MOSTLY:
            dates = pd.to_datetime(pd.Series(texts), errors="coerce", utc=True, format="mixed", dayfirst=True)
    if dates.notna().mean() < MOSTLY:
        return None
    return np.asarray((dates - dates.min()).dt.total_seconds() / 86400, dtype=float)


def as_floats(values: Any) -> Floats | None:
    """Return a column as numbers with NaN for missing values, or None if it contains categories."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(values):
        return np.asarray((values - values.min()).dt.total_seconds(), dtype=float)
    if pd.api.types.is_bool_dtype(values) or pd.api.types.is_numeric_dtype(values):
        return np.asarray(values.to_numpy(dtype=float, na_value=np.nan))
    place, levels = pd.factorize(values.astype(object))
    texts = [str(level).strip() for level in levels]
    for read in (numbers_of, days_of):
        numbers = read(texts)
        if numbers is not None:
            return np.where(place >= 0, numbers[place], np.nan)
    return None


def _share(texts: list[str], holds: Any) -> float:
    return sum(map(holds, texts)) / len(texts)


FORMATS = (".csv", ".tsv", ".parquet", ".pq", ".npz")
SEPARATORS = (",", ";", "\t", "|")
SNIFFED = 20
"""Number of lines that determine the separator of a CSV file."""

SHARE_OF_MEMORY = 0.25
"""Largest share of the free memory for a table. The preparation makes copies."""

LONGEST_LINE = 50_000_000
"""Largest number of characters in a header line."""


def load_frame(file: Path, target: str) -> Any:
    """Return a file as a table with named columns, or raise `ValueError` if it is not a table.

    Parameters
    ----------
    file
        A CSV file (comma, semicolon, tab or bar between fields, decimal point or comma), a Parquet or an NPZ file.
    target
        The column or array to predict. It determines which arrays of an NPZ file are inputs.
    """
    if file.suffix.lower() not in FORMATS:
        raise Refused(f"cannot read '{file}': the name must end in {', '.join(FORMATS)} (pickles are never read)")
    if not file.exists():
        raise Refused(f"cannot read '{file}': there is no such file")
    if file.is_dir():
        raise Refused(f"cannot read '{file}': it is a folder")
    if file.stat().st_size == 0:
        raise Refused(f"cannot read '{file}': the file is empty")
    if file.suffix.lower() == ".npz":
        return _from_npz(file, target)
    if file.suffix.lower() in (".parquet", ".pq"):
        return _from_parquet(file)
    return _from_csv(file)


# -- CSV -------------------------------------------------------------------------------------------------------------------


def _from_csv(file: Path) -> Any:
    import pandas as pd

    _require_room(file, float(file.stat().st_size) * 4)  # objects in memory need more bytes than text
    encoding = _encoding(file)
    separator = "\t" if file.suffix.lower() == ".tsv" else _separator(file, encoding)
    _refuse_repeated(file, _header(file, encoding, separator))
    try:
        return pd.read_csv(file, sep=separator, encoding=encoding, skipinitialspace=True, low_memory=False)
    except (ValueError, OSError) as error:
        raise Refused(f"cannot read '{file}': {str(error).splitlines()[0]}") from None


def _encoding(file: Path) -> str:
    """Return the encoding of a file, which is UTF-8 with or without a byte order mark, or otherwise Latin-1."""
    import codecs

    decoder = codecs.getincrementaldecoder("utf-8")()
    with file.open("rb") as stream:
        try:
            while chunk := stream.read(1 << 20):
                if b"\0" in chunk:
                    raise Refused(f"cannot read '{file}': it contains zero bytes, so it is not a text file")
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "latin-1"
    return "utf-8-sig"


def _separator(file: Path, encoding: str) -> str:
    """Return the separator that splits the first lines into the largest equal number of fields.

    Decimal commas split lines into different numbers of fields, or into fewer fields than the separator.
    """
    with file.open(encoding=encoding, newline="") as stream:
        lines = [line[:LONGEST_LINE] for line in islice(stream, SNIFFED)]

    def fields(separator: str) -> tuple[bool, int]:
        counts = [len(row) for row in csv.reader(lines, delimiter=separator) if row]
        return len(set(counts)) == 1 and counts[0] > 1, counts[0] if counts else 0

    return max(SEPARATORS, key=fields)


def _header(file: Path, encoding: str, separator: str) -> list[str]:
    limit = csv.field_size_limit(LONGEST_LINE)
    try:
        with file.open(encoding=encoding, newline="") as stream:
            return [name.strip() for name in next((row for row in csv.reader(stream, delimiter=separator) if row), [])]
    except csv.Error as error:
        raise Refused(f"cannot read '{file}': {error}") from None
    finally:
        csv.field_size_limit(limit)


def _refuse_repeated(file: Path, names: list[str]) -> None:
    repeated = [name for name, times in Counter(names).items() if times > 1 and name]
    if repeated:
        shown = ", ".join(repr(name) for name in repeated[:3])
        raise Refused(
            f"{file.name} has more than one column called {shown}: rename them, so that a copy of the target cannot become an input"
        )


# -- Parquet and NPZ ---------------------------------------------------------------------------------------------------------


def _from_parquet(file: Path) -> Any:
    import pandas as pd

    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise Refused(
            f"cannot read '{file}': Parquet needs pyarrow; install it with pip install 'limitlab[forecast]', or save as CSV"
        ) from None
    try:
        metadata = parquet.read_metadata(file)
        _require_room(file, 8.0 * metadata.num_rows * metadata.num_columns)
        _refuse_repeated(file, list(parquet.read_schema(file).names))
        return pd.read_parquet(file, engine="pyarrow")
    except (pyarrow.ArrowException, OSError) as error:
        raise Refused(f"cannot read '{file}': {str(error).splitlines()[0]}") from None


def _from_npz(file: Path, target: str) -> Any:
    import pandas as pd

    if not zipfile.is_zipfile(file):
        raise Refused(f"cannot read '{file}': it is damaged, or was not written by numpy.savez")
    try:
        with zipfile.ZipFile(file) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        _require_room(file, float(unpacked))
        with np.load(file, allow_pickle=False) as arrays:
            loaded = {name: arrays[name] for name in arrays.files}
    except _TooLarge:
        raise
    except Exception as error:
        raise Refused(f"cannot read '{file}': {str(error).splitlines()[0]} (pickled objects are never read)") from None
    if target not in loaded:
        raise Refused(f"{file.name} has no array {target!r}: {did_you_mean(target, loaded)}")
    if loaded[target].ndim != 1:
        raise Refused(f"the array {target!r} has shape {loaded[target].shape}: a target must be one-dimensional")
    rows = len(loaded[target])
    tables: list[Array] = []
    labels: list[str] = []
    for name, array in loaded.items():
        if array.ndim == 0 or len(array) != rows:
            continue
        if array.dtype.kind == "c":
            raise Refused(f"the array {name!r} contains complex numbers: give real and imaginary parts as two arrays")
        flat = array.reshape(rows, -1)
        labels += [name] if array.ndim == 1 else [f"{name}[{i}]" for i in range(flat.shape[1])]
        tables.append(flat)
    _refuse_repeated(file, labels)
    if len({table.dtype for table in tables}) == 1:  # a single block is a thousand times faster than one column at a time
        return pd.DataFrame(np.concatenate(tables, axis=1), columns=labels)
    return pd.concat([pd.DataFrame(table) for table in tables], axis=1).set_axis(labels, axis=1)


def load_matrix(file: Path, array: str | None = None) -> Any:
    """Return an array of two dimensions in an NPZ file as a table, by default the only such array."""
    import pandas as pd

    if not file.exists():
        raise Refused(f"cannot read '{file}': there is no such file")
    if not zipfile.is_zipfile(file):
        raise Refused(f"cannot read '{file}': it is damaged, or was not written by numpy.savez")
    with zipfile.ZipFile(file) as archive:
        _require_room(file, float(sum(entry.file_size for entry in archive.infolist())))
    try:
        with np.load(file, allow_pickle=False) as arrays:
            tables = {
                name: arrays[name] for name in arrays.files if arrays[name].ndim >= 2 and arrays[name].dtype.kind in "fiub"
            }
    except ValueError as error:
        raise Refused(f"cannot read '{file}': {str(error).splitlines()[0]} (pickled objects are never read)") from None
    if array is None and len(tables) != 1:
        raise Refused(
            f"{file.name} has {len(tables)} arrays of rows and columns ({', '.join(tables) or 'none'}): name one with array"
        )
    name = next(iter(tables)) if array is None else array
    if name not in tables:
        raise Refused(f"{file.name} has no array {name!r} of rows and columns: {did_you_mean(name, tables)}")
    flat = tables[name].reshape(len(tables[name]), -1)
    return pd.DataFrame(flat, columns=[f"{name}[{i}]" for i in range(flat.shape[1])])


class _TooLarge(ValueError):
    """Error for a file that needs more memory than allowed."""


def _require_room(file: Path, needed: float) -> None:
    room = SHARE_OF_MEMORY * available_memory()
    if needed > room:
        raise _TooLarge(
            f"cannot read '{file}': it needs about {needed / 1e9:.1f} GB of memory and {room / 1e9:.1f} GB may be used; "
            "give fewer rows or columns"
        )


MOST_LEVELS = 30
"""Largest number of levels of a category with separate columns. The other levels share a column."""

IDENTIFIER = 0.9
"""Columns of text with more distinct values than this share of the rows count as identifiers and are dropped."""

NAMES_OF_ROWS = re.compile(
    r"(?:^|[^a-z])(?:id|ids|uid|uuid|key|index|nr|row|rownum|row_?number|serial|record)$", re.IGNORECASE
)
"""Names of columns that count as row numbers if their whole numbers are all different."""

CLOCKS = re.compile(r"year|month|week|day|date|time|hour|age", re.IGNORECASE)
"""Names of columns that are kept even if their numbers increase by 1 in every row."""

FEWEST = 20
"""Smallest number of rows for a learning curve."""


@dataclass
class Table:
    """Prepared inputs and targets, with notes on the preparation.

    Attributes
    ----------
    X, y
        Inputs (standardised) and targets (standardised numbers, or labels).
    names
        Names of the columns of X.
    notes
        Notes on the preparation, one line each.
    scale
        Standard deviation of the original target. Root mean squares times this number are in the original units.
    labels
        Whether y contains labels.
    X_test, y_test
        Inputs and targets of a second file, prepared in the same way.
    groups
        Group of each row, if the table has a column of groups.
    groups_test
        Group of each row of the second file.
    raw
        The rows of X with the columns of the file (a data frame).
    """

    X: Array
    y: Array
    names: list[str]
    notes: list[str] = field(default_factory=list)
    scale: float = 1.0
    labels: bool = False
    X_test: Array | None = None
    y_test: Array | None = None
    groups: Array | None = None
    groups_test: Array | None = None
    raw: Any = None


@explained
def read_table(
    path: str | Path,
    target: str,
    task: str = "auto",
    most_rows: int | None = None,
    seed: int = 0,
    test_path: str | Path | None = None,
    groups: str | None = None,
    time: str | None = None,
) -> Table:
    """Return the prepared table of a file.

    Parameters
    ----------
    path
        A CSV, TSV, Parquet or NPZ file. In an NPZ file every array with as many entries as the target is an input. Arrays of several
        dimensions are flattened to columns.
    target
        Name of the column (or array) to predict.
    task
        "regression", "classification" or "auto". With "auto", labels are text other than numbers, True and False, or few different whole
        numbers.
    most_rows
        Size of a random subset of the rows.
    seed
        Seed of this subset.
    test_path
        A second file with the same columns, prepared together with the first.
    groups
        Column with the group of each row (patient, shop). It is not an input, because new groups have other names.
    time
        Column with the time of each row, by which rows are sorted. It is not an input, because later rows lie outside its range.
    """
    if most_rows is not None and most_rows < 2:
        raise Refused(f"rows = {most_rows} is not allowed: must be a whole number of at least 2")
    file, rng = Path(path), np.random.default_rng(checked_seed(seed))
    notes: list[str] = []
    frame = _loaded(file, target)
    _require_roles(file, frame, target=target, groups=groups, time=time)
    frame = clean_rows(frame, target, notes)
    _require_rows(file, frame, target, 2)
    if most_rows is not None and len(frame) > most_rows:
        rows = np.sort(rng.permutation(len(frame))[:most_rows])
        notes.append(f"kept {most_rows} of {len(frame)} rows at random")
        frame = frame.iloc[rows]
    if time is not None:
        frame = _in_order(frame, time, notes)
    training = len(frame)
    if test_path is not None:
        frame = _with_test(frame, _loaded(Path(test_path), target), Path(test_path), target)
    labels = _holds_labels(frame[target], task)
    y, scale = _target(frame[target], target, labels, notes)
    X, names = columns(frame.drop(columns=[name for name in (target, groups, time) if name is not None]), notes)
    if not names:
        raise Refused(f"{file.name} has no usable column besides {target!r}: give columns that vary and describe the rows")
    _require_rows(file, frame.iloc[:training], target, FEWEST)
    mean, spread = X[:training].mean(axis=0), X[:training].std(axis=0)
    X = (X - mean) / np.where(spread > 0, spread, 1.0) / np.sqrt(X.shape[1])
    notes.append(
        f"standardised {X.shape[1]} input columns and divided them by {np.sqrt(X.shape[1]):.3g} (rows of norm about 1)"
    )
    table = Table(X[:training], y[:training], names, notes, scale, labels, raw=frame.iloc[:training])
    if test_path is not None:
        table.X_test, table.y_test = X[training:], y[training:]
    if groups is not None:
        names_of_groups = frame[groups].astype(str).to_numpy()
        table.groups, table.groups_test = names_of_groups[:training], names_of_groups[training:]
        notes.append(f"{groups}: {np.unique(table.groups).size} groups of rows")
    return table


def _require_roles(file: Path, frame: Any, **roles: str | None) -> None:
    """Raise `ValueError` if a column is missing or has two roles."""
    named = {role: name for role, name in roles.items() if name is not None}
    for role, name in named.items():
        if name not in frame.columns:
            raise Refused(f"{file.name} has no column {name!r} ({role}): {did_you_mean(name, map(str, frame.columns))}")
    twice = [name for name in named.values() if list(named.values()).count(name) > 1]
    if twice:
        raise Refused(f"{twice[0]!r} is given two roles ({', '.join(named)}): name different columns")


def _in_order(frame: Any, time: str, notes: list[str]) -> Any:
    """Return the rows sorted by a column of dates or numbers. Rows without a value are dropped."""
    import pandas as pd

    when = frame[time]
    if not (pd.api.types.is_numeric_dtype(when) or pd.api.types.is_datetime64_any_dtype(when)):
        text = [str(value) for value in when]
        read = next((values for values in (days_of(text), numbers_of(text)) if values is not None), None)
        if read is None:
            raise Refused(
                f"{time} contains neither dates nor numbers, such as {text[0]!r}, so rows cannot be sorted: name another column"
            )
        when = pd.Series(read, frame.index)
    unknown = int(when.isna().sum())
    if unknown:
        notes.append(f"dropped {unknown} rows without {time}")
    notes.append(f"rows are sorted by {time}, which is not an input")
    return frame.loc[when.dropna().sort_values(kind="stable").index]


def _loaded(file: Path, target: str) -> Any:
    frame = load_frame(file, target)
    if target not in frame.columns:
        raise Refused(f"{file.name} has no column {target!r}: {did_you_mean(target, map(str, frame.columns))}")
    if not len(frame):
        raise Refused(f"{file.name} has a header but no rows: give at least {FEWEST} rows")
    return frame


def _with_test(frame: Any, test: Any, file: Path, target: str) -> Any:
    """Return training rows followed by test rows. Copies of training rows are kept, because a test looks for them."""
    import pandas as pd

    absent = [str(name) for name in frame.columns if name not in test.columns]
    if absent:
        raise Refused(f"{file.name} lacks {_listed(absent)}: the test file needs the columns of the training file")
    rows = test[test[target].notna()][list(frame.columns)]
    if len(rows) < 2:
        raise Refused(f"{file.name} has {len(rows)} rows with a value of {target!r}: a check needs at least 2")
    return pd.concat([frame, rows], ignore_index=True)


def _holds_labels(values: Any, task: str) -> bool:
    import pandas as pd

    if task != "auto":
        return is_classification(task, values)
    if pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
        return is_classification("auto", values.to_numpy())
    return numbers_of([str(value) for value in values.unique()]) is None


def _require_rows(file: Path, frame: Any, target: str, least: int) -> None:
    if len(frame) < least:
        raise Refused(
            f"{file.name} has {len(frame)} different rows with a value of {target!r}, which is too few for a learning "
            f"curve; give at least {FEWEST}"
        )


def clean_rows(frame: Any, target: str, notes: list[str]) -> Any:
    """Return the table without columns of lists and records, rows without a target, and repeated rows."""
    nested = [
        name
        for name, kind in zip(frame.columns, frame.dtypes, strict=True)
        if kind == np.dtype(object) and _nested(frame[name])
    ]
    if target in nested:
        raise Refused(f"{target} contains lists or records: a target must contain numbers or labels")
    if nested:
        notes.append(
            f"dropped {_listed([str(name) for name in nested])}: they contain lists or records; give their entries as columns"
        )
        frame = frame.drop(columns=nested)
    missing = int(frame[target].isna().sum())
    if missing == len(frame):
        raise Refused(f"every value of {target!r} is missing: give a column with values")
    if missing:
        notes.append(f"dropped {missing} rows without {target}")
        frame = frame[frame[target].notna()]
    repeated = _repeated(frame)
    if repeated.any():
        notes.append(
            f"dropped {int(repeated.sum())} rows that are equal to another row (a row may not be tested on its copy)"
        )
        frame = frame[~repeated]
    return frame


def _repeated(frame: Any) -> Any:
    """Return which rows are equal to an earlier row. Other columns are compared only for rows with equal numbers."""
    numeric = [at for at, kind in enumerate(frame.dtypes) if isinstance(kind, np.dtype) and kind.kind in "fiu"]
    if not numeric:
        return frame.duplicated().to_numpy()
    block = np.ascontiguousarray(frame.iloc[:, numeric].to_numpy(dtype=float) + 0.0)  # -0.0 becomes 0.0
    _, group, count = np.unique(np.array([hash(row.tobytes()) for row in block]), return_inverse=True, return_counts=True)
    suspects = np.flatnonzero(count[group] > 1)
    repeated = np.zeros(len(frame), dtype=bool)
    repeated[suspects] = frame.iloc[suspects].duplicated().to_numpy() if suspects.size else False
    return repeated


def _target(values: Any, name: str, labelled: bool, notes: list[str]) -> tuple[Array, float]:
    import pandas as pd

    if labelled:
        labels = values.astype(str).to_numpy() if not pd.api.types.is_numeric_dtype(values) else values.to_numpy()
        classes = np.unique(labels).size
        if classes < 2:
            raise Refused(f"{name} contains a single class: give at least two classes")
        if classes > max(20, len(labels) // 5):
            raise Refused(
                f"{name} has {classes} different values in {len(labels)} rows: these are too many for labels, and text is not a number"
            )
        kind = "a target of +1 and -1" if classes == 2 else "a target of 0 and 1 for each"
        notes.append(f"{name}: {classes} classes, {kind}")
        return labels, 1.0
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=float)
    endless = np.isinf(numbers)
    if endless.any():
        raise Refused(
            f"{name} is infinite in {int(endless.sum())} rows, first in row {int(np.argmax(endless))}: remove these rows"
        )
    if np.isnan(numbers).any():
        read = numbers_of([str(value) for value in values])
        if read is None or np.isnan(read).any():
            first = values[np.isnan(numbers)].iloc[0] if read is None else values[np.isnan(read)].iloc[0]
            raise Refused(
                f"{name} contains text, such as {str(first)!r}: use --task classification for labels, or give numbers"
            )
        notes.append(f"{name}: text read as numbers, such as {str(values.iloc[0])!r} as {read[0]:g}")
        numbers = read
    spread = float(numbers.std())
    if spread == 0:
        raise Refused(f"{name} is constant (every value is {numbers[0]:g}): give a column that varies")
    notes.append(
        f"{name}: centred at {numbers.mean():.4g} and divided by its standard deviation {spread:.4g} (the mean as prediction has error 1)"
    )
    return (numbers - numbers.mean()) / spread, spread


def columns(frame: Any, notes: list[str]) -> tuple[Array, list[str]]:
    """Return every usable column as unscaled numbers, and the names of the resulting columns."""
    plain = _plain_numbers(frame)
    numeric_columns: dict[str, Array] = {}
    constant, identifiers, rows = [], [], []
    for name in frame.columns:
        label = str(name)
        if label in plain:
            values = plain[label]
            if not np.ptp(values) > 0:
                constant.append(label)
            elif counts_rows(values, label):
                rows.append(label)
            else:
                numeric_columns[label] = values
            continue
        column = frame[name]
        if column.nunique(dropna=False) < 2:
            constant.append(label)
            continue
        made, kind = _column(column, label, notes)
        if kind == "identifier":
            identifiers.append(label)
        numeric_columns |= {key: value for key, value in made.items() if np.ptp(value) > 0}
    if constant:
        notes.append(f"dropped {_listed(constant)}: the same value in every row")
    if rows:
        notes.append(f"dropped {_listed(rows)}: row numbers or other whole numbers that identify rows")
    if identifiers:
        notes.append(f"dropped {_listed(identifiers)}: text that is different in nearly every row")
    table = np.column_stack(list(numeric_columns.values())) if numeric_columns else np.empty((len(frame), 0))
    return table.astype(float), list(numeric_columns)


def _plain_numbers(frame: Any) -> dict[str, Array]:
    """Return the columns of finite numbers, in a single step because files may have 100,000 columns."""
    import pandas as pd

    numeric = [
        position
        for position, kind in enumerate(frame.dtypes)
        if isinstance(kind, np.dtype) and kind.kind in "fiu" and not pd.api.types.is_bool_dtype(kind)
    ]
    block = frame.iloc[:, numeric].to_numpy(dtype=float) if numeric else np.empty((len(frame), 0))
    whole = np.asarray(np.isfinite(block).all(axis=0))
    return {str(frame.columns[at]): block[:, i] for i, at in enumerate(numeric) if whole[i]}


def counts_rows(values: Array, label: str) -> bool:
    """Return whether whole numbers are row numbers or identifiers.

    They are if they increase by 1 in every row, or if they are all different and the name of the column is that of an identifier.
    """
    if (values != np.round(values)).any() or CLOCKS.search(label):
        return False
    if (np.diff(values) == 1).all():
        return True
    return bool(NAMES_OF_ROWS.search(label)) and np.unique(values).size == values.size


def _nested(values: Any) -> bool:
    """Return whether a column of objects contains lists, records or arrays."""
    first = next((value for value in values if value is not None), None)
    return isinstance(first, (list, tuple, dict, set, np.ndarray))


def _column(values: Any, label: str, notes: list[str]) -> tuple[dict[str, Array], str]:
    import pandas as pd

    if pd.api.types.is_bool_dtype(values):
        return {label: values.to_numpy(dtype=float)}, "number"
    if pd.api.types.is_datetime64_any_dtype(values):
        notes.append(f"{label}: dates, as days")
        days = (values - values.min()).dt.total_seconds() / 86400
        return _filled(days.to_numpy(dtype=float), label, notes), "number"
    if pd.api.types.is_numeric_dtype(values):
        if pd.api.types.is_complex_dtype(values):
            raise Refused(f"{label} contains complex numbers: give real and imaginary parts as two columns")
        return _filled(values.to_numpy(dtype=float, na_value=np.nan), label, notes), "number"
    codes, levels = pd.factorize(values.astype(object))
    texts = [str(level).strip() for level in levels]
    for read, words in ((numbers_of, "text read as numbers"), (days_of, "dates, as days")):
        numbers = read(texts)
        if numbers is not None:
            notes.append(f"{label}: {words}, such as {texts[0]!r} as {numbers[0]:g}")
            return _filled(np.where(codes >= 0, numbers[codes], np.nan), label, notes), "number"
    if len(texts) > IDENTIFIER * len(values):
        return {}, "identifier"
    return _levels(codes, texts, label, notes), "category"


def _filled(numbers: Array, label: str, notes: list[str]) -> dict[str, Array]:
    """Return numbers with missing values replaced by the median, and a column that marks them."""
    absent = ~np.isfinite(numbers)
    if not absent.any():
        return {label: numbers}
    if absent.all():
        notes.append(f"dropped {label}: no finite value")
        return {}
    middle = float(np.median(numbers[~absent]))
    notes.append(
        f"{label}: {int(absent.sum())} missing values replaced by the median {middle:.4g}, and marked in a separate column"
    )
    return {label: np.where(absent, middle, numbers), f"{label} (missing)": absent.astype(float)}


def _levels(codes: Array, texts: list[str], label: str, notes: list[str]) -> dict[str, Array]:
    """Return one column per level of a category. `codes` contains the level of each row, or -1 for a missing value."""
    lost = int((codes < 0).sum())
    counted = np.bincount(np.where(codes < 0, len(texts), codes), minlength=len(texts) + 1)
    names = [*texts, "(missing)"]
    present = [int(code) for code in np.argsort(-counted, kind="stable") if counted[code]]
    common, merged = present[:MOST_LEVELS], len(present) - len(present[:MOST_LEVELS])
    rest = f", the {merged} rarest in the same column" if merged else ""
    missing = f", {lost} missing values as a separate level" if lost else ""
    notes.append(f"{label}: category with {len(present)} levels{rest}{missing}, one column each")
    place = np.where(codes < 0, len(texts), codes)
    level_columns = {f"{label}={names[code][:80]}": (place == code).astype(float) for code in common}
    if merged:
        level_columns[f"{label}=(other)"] = (~np.isin(place, common)).astype(float)
    return level_columns


def _listed(names: list[str], most: int = 5) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more columns"
