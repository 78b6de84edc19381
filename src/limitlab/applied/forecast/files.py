"""From a file to a table with named columns: CSV in the dialects people have, Parquet and NPZ.

Nothing is ever unpickled, and nothing is unpacked before its size is known: a file is data, not a program. What cannot be a table is
refused in one line that says why: two columns of one name, complex numbers, an archive that would unpack to more than the memory.
"""

from __future__ import annotations

import csv
import zipfile
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab._core.cost import available_memory
from limitlab.errors import did_you_mean

Array = NDArray[Any]

FORMATS = (".csv", ".tsv", ".parquet", ".pq", ".npz")
SEPARATORS = (",", ";", "\t", "|")
SNIFFED = 20
"""Lines that are looked at to find the separator of a CSV file."""

SHARE_OF_MEMORY = 0.25
"""A table may take this share of the free memory: preparing it makes copies."""

LONGEST_LINE = 50_000_000
"""Characters of a line that is still read as a header."""


def load_frame(file: Path, target: str) -> Any:
    """A file as a table with named columns; one line where that is impossible.

    Parameters
    ----------
    file
        A CSV file (comma, semicolon, tab or bar between fields, decimal point or comma), a Parquet or an NPZ file.
    target
        The column or array to predict: it decides which arrays of an NPZ file are inputs.
    """
    if file.suffix.lower() not in FORMATS:
        raise ValueError(f"cannot read '{file}': the name must end in {', '.join(FORMATS)} (pickles are never read)")
    if not file.exists():
        raise ValueError(f"cannot read '{file}': there is no such file")
    if file.is_dir():
        raise ValueError(f"cannot read '{file}': it is a folder")
    if file.stat().st_size == 0:
        raise ValueError(f"cannot read '{file}': the file is empty")
    if file.suffix.lower() == ".npz":
        return _from_npz(file, target)
    if file.suffix.lower() in (".parquet", ".pq"):
        return _from_parquet(file)
    return _from_csv(file)


# -- CSV -------------------------------------------------------------------------------------------------------------------


def _from_csv(file: Path) -> Any:
    import pandas as pd

    _require_room(file, float(file.stat().st_size) * 4)  # numbers as text are short; as objects they are not
    encoding = _encoding(file)
    separator = "\t" if file.suffix.lower() == ".tsv" else _separator(file, encoding)
    _refuse_repeated(file, _header(file, encoding, separator))
    try:
        return pd.read_csv(file, sep=separator, encoding=encoding, skipinitialspace=True, low_memory=False)
    except (ValueError, OSError) as error:
        raise ValueError(f"cannot read '{file}': {str(error).splitlines()[0]}") from None


def _encoding(file: Path) -> str:
    """UTF-8 with or without a mark at the start, else the Western encoding that old spreadsheets write."""
    import codecs

    decoder = codecs.getincrementaldecoder("utf-8")()
    with file.open("rb") as stream:
        try:
            while chunk := stream.read(1 << 20):
                if b"\0" in chunk:
                    raise ValueError(f"cannot read '{file}': it holds zero bytes, so it is not a text file")
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "latin-1"
    return "utf-8-sig"


def _separator(file: Path, encoding: str) -> str:
    """The separator that splits the first lines into the same number of fields, most of them.

    A comma that is a decimal sign splits lines unevenly, or less often than the true separator.
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
        raise ValueError(f"cannot read '{file}': {error}") from None
    finally:
        csv.field_size_limit(limit)


def _refuse_repeated(file: Path, names: list[str]) -> None:
    repeated = [name for name, times in Counter(names).items() if times > 1 and name]
    if repeated:
        shown = ", ".join(repr(name) for name in repeated[:3])
        raise ValueError(
            f"{file.name} has more than one column called {shown}: rename them, so that a copy of the target cannot become an input"
        )


# -- Parquet and NPZ ---------------------------------------------------------------------------------------------------------


def _from_parquet(file: Path) -> Any:
    import pandas as pd

    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ValueError(
            f"cannot read '{file}': Parquet needs pyarrow; install it with pip install 'limitlab[forecast]', or save as CSV"
        ) from None
    try:
        found = parquet.read_metadata(file)
        _require_room(file, 8.0 * found.num_rows * found.num_columns)
        _refuse_repeated(file, list(parquet.read_schema(file).names))
        return pd.read_parquet(file, engine="pyarrow")
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"cannot read '{file}': {str(error).splitlines()[0]}") from None


def _from_npz(file: Path, target: str) -> Any:
    import pandas as pd

    if not zipfile.is_zipfile(file):
        raise ValueError(f"cannot read '{file}': it is damaged, or was not written by numpy.savez")
    try:
        with zipfile.ZipFile(file) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        _require_room(file, float(unpacked))
        with np.load(file, allow_pickle=False) as arrays:
            loaded = {name: arrays[name] for name in arrays.files}
    except _TooLarge:
        raise
    except Exception as error:
        raise ValueError(f"cannot read '{file}': {str(error).splitlines()[0]} (pickled objects are never read)") from None
    if target not in loaded:
        raise ValueError(f"{file.name} has no array {target!r}: {did_you_mean(target, loaded)}")
    if loaded[target].ndim != 1:
        raise ValueError(f"the array {target!r} has shape {loaded[target].shape}: a target must be one-dimensional")
    rows = len(loaded[target])
    tables: list[Array] = []
    labels: list[str] = []
    for name, array in loaded.items():
        if array.ndim == 0 or len(array) != rows:
            continue
        if array.dtype.kind == "c":
            raise ValueError(f"the array {name!r} holds complex numbers: give real and imaginary parts as two arrays")
        flat = array.reshape(rows, -1)
        labels += [name] if array.ndim == 1 else [f"{name}[{i}]" for i in range(flat.shape[1])]
        tables.append(flat)
    _refuse_repeated(file, labels)
    if len({table.dtype for table in tables}) == 1:  # one block: a thousand times faster than a column at a time
        return pd.DataFrame(np.concatenate(tables, axis=1), columns=labels)
    return pd.concat([pd.DataFrame(table) for table in tables], axis=1).set_axis(labels, axis=1)


class _TooLarge(ValueError):
    """A file that would fill the memory."""


def _require_room(file: Path, needed: float) -> None:
    room = SHARE_OF_MEMORY * available_memory()
    if needed > room:
        raise _TooLarge(
            f"cannot read '{file}': it would unpack to about {needed / 1e9:.1f} GB and {room / 1e9:.1f} GB may be used; "
            "give fewer rows or columns"
        )
