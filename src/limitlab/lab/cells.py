"""Cells: the numbers of finished tasks, on disk under the hash of everything that they depend on.

A cell is written whole or not at all, never as a pickle, and ends with the SHA-256 of its own bytes; a damaged one is noticed and
computed again. Since its name says what it holds, any number of sweeps, comparisons and reports can share a folder of cells:
`with caching(folder)` makes everything inside read and keep its cells there.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import math
import os
import shutil
import struct
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab._core.files import clean_leftovers, write_whole
from limitlab._core.results import package_version

__all__ = ["DamagedCell", "caching"]

_DIGEST_LENGTH = 64


@dataclass(frozen=True)
class Cell:
    """The numbers of one task: arrays by name, their dimensions, the coordinates of these, absolute numerical errors, and the version
    of limitlab that computed them (the revision of the law is part of the cell's name)."""

    values: dict[str, NDArray[Any]]
    dims: dict[str, tuple[str, ...]] = field(default_factory=dict)
    coords: dict[str, NDArray[Any]] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    version: str = field(default_factory=package_version)

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays, and about what the objects around them take."""
        return sum(array.nbytes + 250 for array in (*self.values.values(), *self.coords.values())) + 1500


class DamagedCell(UserWarning):
    """A cell on disk was damaged and is computed again."""


class Cells:
    """A folder of cells: `<2 digits>/<sha256>.npz`.

    Parameters
    ----------
    folder
        Made when the first cell is written.
    lasting
        Whether a cell that was written survives a loss of power, which costs a millisecond each. A cache does without: a damaged cell is
        noticed and computed again.

    Examples
    --------
    >>> import tempfile
    >>> cells = Cells(tempfile.mkdtemp())
    >>> cells.write("ab" * 32, Cell({"risk": np.array(1.0)}), {})
    >>> cells.read("ab" * 32).values["risk"].item(), cells.read("cd" * 32)
    (1.0, None)
    """

    def __init__(self, folder: str | os.PathLike[str], lasting: bool = True):
        self.folder, self.lasting = Path(folder), lasting

    def read(self, key: str) -> Cell | None:
        """The finished cell of this name, or None. A damaged one is reported and counts as missing."""
        place = self._place(key)
        try:
            content = place.read_bytes()
        except FileNotFoundError:
            return None
        except (IsADirectoryError, NotADirectoryError):
            content = b""
        cell = unpack(content, key)
        if cell is None:
            warnings.warn(f"the cell {str(place)!r} is damaged and is computed again", DamagedCell, stacklevel=2)
        return cell

    def write(self, key: str, cell: Cell, content: Mapping[str, Any]) -> None:
        """Keep a finished cell; `content` is what its name is the hash of."""
        place, packed = self._place(key), pack(cell, key, content)
        try:
            write_whole(place, packed, forced=self.lasting)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError):
            self._make_room(place)
            write_whole(place, packed, forced=self.lasting)

    def _make_room(self, place: Path) -> None:
        """Make the folders above a cell, in place of what damage put there."""
        for folder in (self.folder, place.parent):
            if folder.exists() and not folder.is_dir():
                folder.unlink()  # a file where a folder of cells belongs
        if place.is_dir():
            shutil.rmtree(place)
        place.parent.mkdir(parents=True, exist_ok=True)

    def clean(self) -> None:
        """Remove what killed runs left half written."""
        if self.folder.is_dir():
            for folder in self.folder.iterdir():
                clean_leftovers(folder)

    def _place(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.npz"


_cache: ContextVar[Cells | None] = ContextVar("limitlab_cache", default=None)


@contextmanager
def caching(folder: str | os.PathLike[str] | None) -> Iterator[None]:
    """Within this block every sweep and comparison without a store of its own keeps its cells in `folder` (None: nowhere).

    >>> import tempfile
    >>> from limitlab.lab._sweep import sweep
    >>> from limitlab.laws import Ridge
    >>> with caching(tempfile.mkdtemp()):
    ...     limit = sweep(Ridge(), over={"ratio": [0.5, 2.0]})  # kept for the next such call
    """
    token = _cache.set(None if folder is None else Cells(folder, lasting=False))
    try:
        yield
    finally:
        _cache.reset(token)


def current_cache() -> Cells | None:
    """The folder of cells of the surrounding `caching` block, if there is one."""
    return _cache.get()


# -- a cell as bytes ----------------------------------------------------------------------------------------------------


def pack(cell: Cell, key: str, content: Mapping[str, Any]) -> bytes:
    """A cell as the bytes of an `.npz` file whose comment is the SHA-256 of all bytes before it."""
    about = {
        "key": key,
        "content": content,
        "version": cell.version,
        "errors": {name: repr(error) for name, error in cell.errors.items()},
        "dims": cell.dims,
        "order": list(cell.values),
        "coords": list(cell.coords),
    }
    arrays = {"about": np.array(json.dumps(about, sort_keys=True))}
    arrays |= {f"value.{name}": value for name, value in cell.values.items()}
    arrays |= {f"coord.{name}": value for name, value in cell.coords.items()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:  # as `numpy.savez` does, in half of its time
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), _array_as_bytes(array))
        archive.comment = b"0" * _DIGEST_LENGTH
    body = buffer.getvalue()[:-_DIGEST_LENGTH]
    return body + hashlib.sha256(body).hexdigest().encode()


def _array_as_bytes(array: NDArray[Any]) -> bytes:
    if array.dtype.hasobject:
        raise ValueError("a cell holds numbers and texts, no Python objects")
    column_major = array.flags.f_contiguous and not array.flags.c_contiguous
    return _header(array.dtype, array.shape, column_major) + array.tobytes(order="A")


@functools.lru_cache(maxsize=1024)
def _header(dtype: np.dtype[Any], shape: tuple[int, ...], column_major: bool) -> bytes:
    """What stands before the numbers of an array in an `.npy` file."""
    stream = io.BytesIO()
    about = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": column_major, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, about)
    return stream.getvalue()


def unpack(content: bytes, key: str) -> Cell | None:
    """The cell in these bytes; None if they are not the whole cell of this name.

    >>> cell = Cell({"risk": np.array([1.0, 2.0])}, {"risk": ("time",)}, {"time": np.array([0.0, 1.0])})
    >>> kept = pack(cell, "ab", {})
    >>> unpack(kept, "ab").values["risk"]
    array([1., 2.])
    >>> unpack(kept[:-1], "ab") is None
    True
    """
    body, digest = content[:-_DIGEST_LENGTH], content[-_DIGEST_LENGTH:]
    if hashlib.sha256(body).hexdigest().encode() != digest:
        return None
    try:
        return _unpacked(content, key)
    except Exception:  # whatever is in there, it is not a cell
        return None


def _unpacked(content: bytes, key: str) -> Cell | None:
    archive = _members(content)
    about = json.loads(str(archive["about"]))
    if about["key"] != key:
        return None
    values = {name: archive[f"value.{name}"] for name in about["order"]}
    coords = {name: archive[f"coord.{name}"] for name in about["coords"]}
    dims = {name: tuple(own) for name, own in about["dims"].items()}
    errors = {name: float(error) for name, error in about["errors"].items()}
    return Cell(values, dims, coords, errors, str(about.get("version", "unknown")))


def versions_of(cells: Iterable[Cell | None]) -> str:
    """The versions of limitlab that computed these cells, in one text: a result of old cells does not pass for a new one.

    >>> versions_of([Cell({}, version="1.0"), None, Cell({}, version="1.1"), Cell({}, version="1.0")])
    '1.0, 1.1'
    """
    return ", ".join(sorted({cell.version for cell in cells if cell is not None})) or package_version()


def _members(content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of an `.npz` file that `pack` wrote, as `numpy.load` gives them, in a tenth of its time."""
    end = len(content) - _DIGEST_LENGTH - 22  # the record that ends the archive has 22 bytes, then comes the comment
    signature, count, place = struct.unpack_from("<4s6xH4xI", content, end)
    if signature != b"PK\5\6" or max(count, place >> 16) == 0xFFFF:  # not ours, or so large that another record says where
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = [(entry.filename, entry.header_offset) for entry in archive.infolist()]
    else:
        entries = []
        for _ in range(count):  # the central directory: 46 bytes, then a name and two further texts
            length, extra, remark, offset = struct.unpack_from("<3H8xI", content, place + 28)
            entries.append((content[place + 46 : place + 46 + length].decode(), offset))
            place += 46 + length + extra + remark
    return {name.removesuffix(".npy"): _stored_array(content, offset) for name, offset in entries}


def _stored_array(content: bytes, offset: int) -> NDArray[Any]:
    name, extra = struct.unpack_from("<HH", content, offset + 26)  # lengths in the local header of 30 bytes
    start = offset + 30 + name + extra
    length = struct.unpack_from("<H", content, start + 8)[0]
    dtype, shape, fortran = _described(content[start : start + 10 + length])
    array = np.frombuffer(content, dtype, math.prod(shape), start + 10 + length)
    return array.reshape(shape, order="F" if fortran else "C").copy(order="K")


@functools.lru_cache(maxsize=1024)
def _described(header: bytes) -> tuple[np.dtype[Any], tuple[int, ...], bool]:
    """Type, shape and order from the header of an array, which the cells of a sweep share."""
    stream = io.BytesIO(header)
    np.lib.format.read_magic(stream)
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    return dtype, shape, fortran
