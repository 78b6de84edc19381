"""A store is a folder with the finished cells of a sweep or a comparison, so that the same call continues where it was stopped.

    sweep.json                      the manifest (law, parameters, grid, sizes, seeds)
    cells/<2 digits>/<sha256>.cell  the results of the tasks, each named by the hash of its inputs

When all cells are finished, they are assembled into the result:

    store = "x.nc"    cells in x.nc.cells/, result x.nc (netCDF)
    store = "x.zarr"  cells in x.zarr.cells/, result x.zarr (Zarr)
    store = "x"       cells in x/, result x/result.nc

A Zarr result is written block by block (`Regions`), so that it may be larger than the memory. No file contains a time or anything
else that differs between two runs, so the same sweep gives the same bytes. A cell is a file of arrays
(`limitlab._core.files`). It is written completely or not at all and ends with the SHA-256 of its bytes. A damaged cell is
recognised by this hash and computed again.
"""

from __future__ import annotations

import errno
import gc
import json
import math
import os
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from limitlab._core import files
from limitlab._core.arguments import explained
from limitlab._core.files import clean_leftovers, expanded, replacing, write_whole
from limitlab._core.results import package_version
from limitlab.errors import Refused

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["DamagedCell", "caching", "open_result"]

FORMAT = 3
"""Format version of stored cells. It is part of the key of a cell, so increasing it invalidates all stored cells."""
MEMORY = 100_000_000
"""Bytes of cells that `Cells` of a folder hold in memory, so that their files are read only once."""
MANIFEST = "sweep.json"
READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)
LOADED = 100_000_000
"""Bytes up to which a Zarr result is read into memory when it is opened. The numbers of a larger result are read when they are used."""
BLOCK = 64_000_000
"""Bytes of the blocks of all variables of a Zarr result together."""


# -- cells --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """The result of one task.

    It has arrays by name, their dimensions, the coordinates of these, absolute numerical errors, and the version of limitlab that
    computed them. The revision of the law is part of the cell's key.
    """

    values: dict[str, NDArray[Any]]
    dims: dict[str, tuple[str, ...]] = field(default_factory=dict)
    coords: dict[str, NDArray[Any]] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    version: str = field(default_factory=package_version)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, and approximately those of the Python objects around them."""
        return sum(array.nbytes + 250 for array in (*self.values.values(), *self.coords.values())) + 1500


class DamagedCell(UserWarning):
    """The warning for a cell on disk that was damaged and is computed again."""


class Cells:
    """Finished cells by their keys, as files `<2 digits>/<sha256>.cell` in a folder, and some of them in memory.

    Parameters
    ----------
    folder
        The folder, which is made when the first cell is written. With None the cells are in memory only.
    lasting
        Whether a written cell survives a loss of power, which costs a millisecond for each cell. A cache does not need this,
        because a damaged cell is recognised and computed again.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> Cells(folder).write("ab" * 32, Cell({"risk": np.array(1.0)}), {})
    >>> Cells(folder).read("ab" * 32).values["risk"].item(), Cells(folder).read("cd" * 32)
    (1.0, None)
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, lasting: bool = True):
        self.folder, self.lasting = None if folder is None else Path(folder), lasting
        self._memory: dict[str, Cell] = {}
        self._room = math.inf if folder is None else MEMORY

    def read(self, key: str) -> Cell | None:
        """Return the cell of a key, or None. A damaged file causes a warning and counts as missing."""
        if key in self._memory or self.folder is None:
            return self._memory.get(key)
        path = self.path(key)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except (IsADirectoryError, NotADirectoryError):
            content = b""
        cell = unpack(content, key)
        if cell is None:
            warnings.warn(f"the cell {str(path)!r} is damaged and is computed again", DamagedCell, stacklevel=2)
        else:
            self._hold(key, cell)
        return cell

    def write(self, key: str, cell: Cell, content: Mapping[str, Any]) -> None:
        """Add a finished cell; `key` is the hash of `content`."""
        if self.folder is not None:
            path, packed = self.path(key), pack(cell, key, content)
            try:
                write_whole(path, packed, forced=self.lasting)
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError):
                self._make_folders(self.folder, path)
                write_whole(path, packed, forced=self.lasting)
        self._hold(key, cell)

    def path(self, key: str) -> Path:
        """Return the file of a cell."""
        if self.folder is None:
            raise Refused("cells in memory have no files")
        return self.folder / key[:2] / f"{key}.cell"

    def clean(self) -> None:
        """Remove files that killed runs have not finished writing."""
        if self.folder is not None and self.folder.is_dir():
            for folder in self.folder.iterdir():
                clean_leftovers(folder)

    def _hold(self, key: str, cell: Cell) -> None:
        """Hold a cell in memory if there is room for it."""
        if (size := cell.nbytes) <= self._room:
            self._memory[key] = cell
            self._room -= size

    @staticmethod
    def _make_folders(root: Path, path: Path) -> None:
        """Make the folders above a cell.

        Files and folders that damage has put in their places are removed.
        """
        for folder in (root, path.parent):
            if folder.exists() and not folder.is_dir():
                folder.unlink()
        if path.is_dir():
            shutil.rmtree(path)
        path.parent.mkdir(parents=True, exist_ok=True)


_cache: ContextVar[Path | None] = ContextVar("limitlab_cache", default=None)


@contextmanager
def caching(folder: str | os.PathLike[str] | None) -> Iterator[None]:
    """Make sweeps and comparisons without a store read and write their cells in `folder` within a block.

    With None no folder is used.

    Any number of sweeps, comparisons and reports can share a folder, because the name of a cell is the hash of all its inputs.

    >>> import tempfile
    >>> from limitlab import sweep
    >>> from limitlab.laws import Ridge
    >>> with caching(tempfile.mkdtemp()):
    ...     limit = sweep(Ridge(), over={"ratio": [0.5, 2.0]})  # a second such call reads the cells
    """
    token = _cache.set(None if folder is None else expanded(folder))
    try:
        yield
    finally:
        _cache.reset(token)


def current_cache() -> Cells | None:
    """Return the cells of the surrounding `caching` block, if there is one."""
    folder = _cache.get()
    return None if folder is None else Cells(folder, lasting=False)


def pack(cell: Cell, key: str, content: Mapping[str, Any]) -> bytes:
    """Return a cell as the bytes of a file of arrays (`limitlab._core.files`)."""
    arrays = {f"value.{name}": value for name, value in cell.values.items()}
    arrays |= {f"coord.{name}": value for name, value in cell.coords.items()}
    errors = {name: repr(error) for name, error in cell.errors.items()}  # JSON has no infinity
    about = {"key": key, "content": content, "version": cell.version, "errors": errors, "dims": cell.dims}
    return files.pack(arrays, about)


def unpack(content: bytes, key: str) -> Cell | None:
    """Return the cell in the bytes of a file, or None if the bytes are not the complete cell of this key.

    >>> cell = Cell({"risk": np.array([1.0, 2.0])}, {"risk": ("time",)}, {"time": np.array([0.0, 1.0])})
    >>> packed = pack(cell, "ab", {})
    >>> unpack(packed, "ab").values["risk"]
    array([1., 2.])
    >>> unpack(packed[:-1], "ab") is None, unpack(packed, "cd") is None
    (True, True)
    """
    try:
        about, arrays = files.unpack(content)
        if about["key"] != key:
            return None
        parts: dict[str, dict[str, NDArray[Any]]] = {"value": {}, "coord": {}}
        for name, array in arrays.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = array
        dims = {name: tuple(names) for name, names in about["dims"].items()}
        errors = {name: float(error) for name, error in about["errors"].items()}
        return Cell(parts["value"], dims, parts["coord"], errors, str(about["version"]))
    except (ValueError, TypeError, AttributeError, LookupError):  # an incomplete file, or not a cell
        return None


def versions_of(cells: Iterable[Cell | None]) -> str:
    """Return the versions of limitlab that computed these cells, in one text.

    >>> versions_of([Cell({}, version="1.0"), None, Cell({}, version="1.1"), Cell({}, version="1.0")])
    '1.0, 1.1'
    """
    return ", ".join(sorted({cell.version for cell in cells if cell is not None})) or package_version()


# -- stores --------------------------------------------------------------------------------------------------------------


class Store:
    """The folder and the result of a sweep or a comparison on disk.

    Parameters
    ----------
    path
        `NAME.nc`, `NAME.zarr`, or a directory.

    Examples
    --------
    >>> Store("rf.nc").home.name, Store("rf.zarr").result.name, Store("rf").result.name
    ('rf.nc.cells', 'rf.zarr', 'result.nc')
    """

    def __init__(self, path: str | os.PathLike[str]):
        if not str(path).strip():
            raise Refused("store = '' is not allowed: give a path such as 'sweep.nc', 'sweep.zarr' or a directory")
        self.path = expanded(path)
        single = self.path.suffix in (".nc", ".zarr")
        self.home = self.path.with_name(self.path.name + ".cells") if single else self.path
        self.result = self.path if single else self.path / "result.nc"
        self.cell_folder = self.home / "cells"
        self.cells = StoredCells(self)
        self.read_only = False

    @property
    def in_blocks(self) -> bool:
        """Whether the result is written block by block."""
        return self.result.suffix == ".zarr" and not self.read_only

    def open(self, manifest: Mapping[str, Any]) -> None:
        """Make the store, or check that an existing store belongs to this computation.

        Unfinished files of killed runs are removed.
        """
        with self.clear_errors("write"):
            known = self._known_manifest()
            if known is not None:
                _check_same_sweep(self.path, known, manifest)
            elif not _holds_cells(self.cell_folder) and (
                self.result.exists() or (self.home.exists() and not _is_blank(self.home))
            ):
                taken = self.result if self.result.exists() else self.home
                raise Refused(
                    f"store {str(taken)!r} exists and was not made by a sweep: choose another name, or move it away"
                )
            if known is not None and not all(os.access(folder, os.W_OK) for folder in (self.home, self.result.parent)):
                self.read_only = True  # a complete store can still be read
                return
            try:
                self._prepare(known, manifest)
            except OSError as error:
                if known is None or error.errno not in READ_ONLY:
                    raise
                self.read_only = True

    def _prepare(self, known: Mapping[str, Any] | None, manifest: Mapping[str, Any]) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        content = (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode()
        if known is None or json.dumps(known, indent=1, sort_keys=True) + "\n" != content.decode():
            if (self.home / MANIFEST).is_dir():
                shutil.rmtree(self.home / MANIFEST)  # a damaged store, with a folder in place of the manifest
            write_whole(self.home / MANIFEST, content)
        if self.cell_folder.exists() and not self.cell_folder.is_dir():
            self.cell_folder.unlink()  # a damaged store, with a file in place of the folder of cells
        self.cell_folder.mkdir(exist_ok=True)
        self._clean()

    def finish(self, result: xr.Dataset) -> None:
        """Write the assembled result in the place of an earlier one, unless the store is read-only."""
        if self.read_only:
            return
        with self.clear_errors("write"), replacing(self.result) as temporary:
            write_dataset(result, temporary, zarr=self.result.suffix == ".zarr")

    def finish_in_blocks(self, assemble: Callable[[Regions], xr.Dataset]) -> xr.Dataset:
        """Write a Zarr result block by block in the place of an earlier one, and open it.

        Parameters
        ----------
        assemble
            A function that writes the arrays into regions, and returns a Dataset that describes them.
        """
        with self.clear_errors("write"), replacing(self.result) as temporary:
            regions = Regions(temporary)
            described = assemble(regions)
            regions.finish(described)
        opened = open_result(self.path)
        return opened[list(described.data_vars)] if described.data_vars else opened  # the order of the description

    def _known_manifest(self) -> dict[str, Any] | None:
        try:
            known = json.loads((self.home / MANIFEST).read_bytes())
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError, IsADirectoryError):
            known = None
        if _describes_a_sweep(known):
            return dict(known)
        if _holds_cells(self.cell_folder):  # this is a store of limitlab, because every cell describes its content
            warnings.warn(
                f"the manifest {str(self.home / MANIFEST)!r} is damaged and is written again", DamagedCell, stacklevel=4
            )
            return None
        raise Refused(
            f"store {str(self.path)!r} is unreadable: {self.home / MANIFEST} does not describe a sweep; "
            "choose another name, or move it away"
        )

    def _clean(self) -> None:
        clean_leftovers(self.result.parent, self.result.name)
        clean_leftovers(self.home, MANIFEST)
        self.cells.clean()

    @contextmanager
    def clear_errors(self, doing: str) -> Iterator[None]:
        """Raise errors of the operating system within a block as one line that names the store."""
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            raise OSError(f"cannot {doing} store {str(self.path)!r}: {reason}") from error


class StoredCells(Cells):
    """The cells of a store. Errors of the operating system are raised as one line that names the store."""

    def __init__(self, store: Store):
        super().__init__(store.cell_folder)
        self.store = store

    def read(self, key: str) -> Cell | None:
        """Return the cell of a key, or None."""
        with self.store.clear_errors("read"):
            return super().read(key)

    def write(self, key: str, cell: Cell, content: Mapping[str, Any]) -> None:
        """Add a finished cell."""
        with self.store.clear_errors("write"):
            super().write(key, cell, content)


# -- the assembled result -----------------------------------------------------------------------------------------------


def write_dataset(result: xr.Dataset, path: Path, zarr: bool = False) -> None:
    """Write a Dataset as netCDF or Zarr. The same Dataset gives the same bytes."""
    if zarr:
        # Format 2: in format 3 texts have no specified encoding yet.
        result.to_zarr(path, mode="w", zarr_format=2, consolidated=True)
    else:
        result.to_netcdf(path, engine="h5netcdf")


@explained
def open_result(path: str | os.PathLike[str]) -> xr.Dataset:
    """Return the assembled result of a store.

    It is in memory unless it is a Zarr result of more than `LOADED` bytes.

    Parameters
    ----------
    path
        The argument `store` of the sweep.

    Examples
    --------
    >>> import tempfile
    >>> from limitlab import sweep
    >>> from limitlab.laws import Ridge
    >>> place = tempfile.mkdtemp() + "/ridge.nc"
    >>> _ = sweep(Ridge(), over={"ratio": [0.5, 2.0]}, store=place)
    >>> open_result(place).test_error.dims
    ('ratio',)
    """
    place = Store(path).result
    if not place.exists():
        raise Refused(f"store {str(path)!r} has no result yet: run its sweep to the end")
    return read_dataset(place, most=LOADED)


def read_dataset(place: Path, most: float = math.inf) -> xr.Dataset:
    """Return the Dataset in a netCDF or Zarr file.

    It is in memory unless it is a Zarr file of more than `most` bytes.

    An array that would have to be unpickled is refused.
    """
    import xarray as xr

    with _without_unraisable_errors():
        try:
            if place.suffix == ".zarr":
                _refuse_pickles(place)
                result = xr.open_zarr(place, chunks=None)
                for variable in result.variables.values():
                    variable.encoding = {}  # a copy of the result may have another encoding
                return result.load() if result.nbytes <= most else result
            with xr.open_dataset(place, engine="h5netcdf") as result:
                return result.load()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
        gc.collect()  # collect half-opened files now, while their error messages are suppressed
    raise Refused(
        f"the result {str(place)!r} is unreadable: it is damaged, or its content does not match its name ({reason[:120]})"
    )


@contextmanager
def _without_unraisable_errors() -> Iterator[None]:
    """Suppress errors raised by destructors within a block."""
    before = sys.unraisablehook
    sys.unraisablehook = lambda _: None
    try:
        yield
    finally:
        sys.unraisablehook = before


def _refuse_pickles(folder: Path) -> None:
    """Raise ValueError if an array of a Zarr file is stored as pickles, because reading pickles runs code."""
    for name in (".zmetadata", ".zarray", "zarr.json"):
        for file in folder.rglob(name):
            if "pickle" in file.read_text(encoding="utf-8").lower():
                raise Refused("pickled data are not read")


def _describes_a_sweep(known: Any) -> bool:
    """Return whether a manifest belongs to a sweep or a comparison.

    Another format is refused later, by `_check_same_sweep`.
    """
    if not isinstance(known, dict):
        return False
    if isinstance(known.get("format"), int) and known["format"] != FORMAT:
        return True
    kinds = {"format": int, "what": str, "law": str, "parameters": dict, "over": dict}
    return all(isinstance(known.get(name), kind) for name, kind in kinds.items())


def _holds_cells(folder: Path) -> bool:
    """Return whether a folder contains cells and nothing else.

    A sweep made such a folder, even if its manifest is lost.
    """
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    return bool(names) and all(re.fullmatch("[0-9a-f]{2}", name) for name in names)


def _is_blank(folder: Path) -> bool:
    """Return whether a folder contains at most the unfinished manifest of a run that was killed at its start."""
    return folder.is_dir() and all(entry.name.startswith(f".{MANIFEST}.") for entry in folder.iterdir())


def _check_same_sweep(path: Path, known: Mapping[str, Any], manifest: Mapping[str, Any]) -> None:
    """Raise ValueError for another law or another value of a fixed parameter.

    Values, sizes and seeds may be added to a store.
    """
    other = "choose another store"
    if known["format"] != FORMAT:
        raise Refused(
            f"store {str(path)!r} has format {known['format']}, which this version of limitlab (format {FORMAT}) cannot read: "
            f"{other}, or delete this one to compute its results again"
        )
    for what in ("what", "law"):
        if known[what] != manifest[what]:
            raise Refused(f"store {str(path)!r} holds {what} = {known[what]!r}, not {manifest[what]!r}: {other}")
    for name, value in manifest["parameters"].items():
        before = known["parameters"].get(name, value)  # absent if the earlier sweep varied it
        if before != value:
            raise Refused(f"store {str(path)!r} holds a sweep at {name} = {before!r}, not {value!r}: {other}")
    if known.get("version") != manifest.get("version"):
        warnings.warn(
            f"store {str(path)!r} was made by limitlab {known.get('version')}; its cells are used, and new cells come from "
            f"{manifest.get('version')}",
            stacklevel=3,
        )


# -- results that are written block by block ----------------------------------------------------------------------------


class Regions:
    """A Zarr group (format 2) that is written block by block, so that the memory is that of one block.

    Cells are added in the order of the tasks, with the last loop varying fastest. Every variable collects them in a block, which
    covers a contiguous part of that order and complete chunks of the array on disk. A block is written when the next block begins.

    Parameters
    ----------
    folder
        The folder of the group, which is complete after `finish`.

    Examples
    --------
    >>> import tempfile
    >>> import xarray as xr
    >>> folder = Path(tempfile.mkdtemp()) / "x.zarr"
    >>> regions = Regions(folder)
    >>> array = regions.array("risk", (2, 3), np.dtype(float), axes=(1, 0), share=1)
    >>> for place in range(2):
    ...     array[place,] = np.arange(3.0) + 10 * place
    >>> described = {"risk": (("time", "ratio"), array.close().transpose())}
    >>> regions.finish(xr.Dataset(described, {"ratio": [0.5, 2.0]}))
    >>> xr.open_zarr(folder, chunks=None).risk.sel(ratio=2.0).values
    array([10., 11., 12.])
    """

    def __init__(self, folder: Path):
        import zarr

        self.folder = folder
        self.group = zarr.open_group(folder, mode="w", zarr_format=2)  # in format 3 texts have no specified encoding yet

    def array(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], axes: Sequence[int], share: int) -> Region:
        """Return a new array; `axes` are the dimensions of `shape` in their order on disk, and `share` variables divide `BLOCK`."""
        return Region(self, name, shape, dtype, tuple(axes), BLOCK // share)

    def create(self, name: str, shape: tuple[int, ...], chunks: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """Return a new array on disk, in which the numbers of a missing chunk are NaN."""
        return self.group.create_array(
            name,
            shape=shape,
            chunks=chunks,
            dtype=dtype,
            fill_value=float("nan") if dtype.kind == "f" else None,
            config={"write_empty_chunks": True},
        )

    def finish(self, described: xr.Dataset) -> None:
        """Write dimensions, coordinates and attributes, from a Dataset whose variables have the names of the arrays."""
        import zarr

        described.drop_vars(list(described.data_vars)).to_zarr(self.folder, mode="a", zarr_format=2, consolidated=False)
        for name, variable in described.data_vars.items():
            self.group[str(name)].attrs.put({**variable.attrs, "_ARRAY_DIMENSIONS": [str(dim) for dim in variable.dims]})
        zarr.consolidate_metadata(self.group.store, zarr_format=2)
        listing = self.folder / ".zmetadata"  # sorted, because the order of the file system differs between runs
        content = json.loads(listing.read_text(encoding="utf-8"))
        content["metadata"] = dict(sorted(content["metadata"].items()))
        listing.write_text(json.dumps(content, indent=2), encoding="utf-8")


class Region:
    """One array of a group, to which the values of cells are assigned in the order of the tasks."""

    def __init__(
        self, regions: Regions, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], axes: tuple[int, ...], size: int
    ):
        self.regions, self.name, self.shape, self.dtype, self.axes = regions, name, shape, dtype, axes
        self.chunks = chunks_of(shape, size // max(dtype.itemsize, 1))
        self._array = self._create()
        self._start: tuple[int, ...] = ()  # first place of the block
        self._outer: tuple[int, ...] = ()  # its lengths along the leading indices
        self._cells = np.empty(0, dtype)  # its cells, one after the other
        self._filled = 0

    def __setitem__(self, place: tuple[int, ...], value: NDArray[Any]) -> None:
        if self._filled == len(self._cells):
            self.flush()
            ends = zip(self.shape, place, self.chunks, strict=False)
            self._start, self._outer = place, tuple(min(length - first, chunk) for length, first, chunk in ends)
            self._cells = np.zeros((math.prod(self._outer), *self.shape[len(place) :]), self.dtype)
        self._cells[self._filled] = value
        self._filled += 1

    def flush(self) -> None:
        """Write the block."""
        if self._filled:
            block = self._cells.reshape(*self._outer, *self._cells.shape[1:])
            self._array[self._region(self._start, block)] = block.transpose(self.axes)
        self._cells, self._filled = self._cells[:0], 0

    def astype(self, wider: np.dtype[Any]) -> Region:
        """Return the same array with a wider type.

        Numbers on disk are copied chunk by chunk.
        """
        folder = self.regions.folder / self.name
        narrow = folder.rename(folder.with_name(f".{self.name}"))
        old: Any = self.regions.group[narrow.name]
        self.dtype, self._cells = wider, self._cells.astype(wider)
        self._array = self._create()
        for start in np.ndindex(*(-(-length // chunk) for length, chunk in zip(old.shape, old.chunks, strict=True))):
            piece = tuple(slice(i * chunk, (i + 1) * chunk) for i, chunk in zip(start, old.chunks, strict=True))
            self._array[piece] = old[piece]
        shutil.rmtree(narrow)
        return self

    def drop(self) -> None:
        """Remove the array."""
        shutil.rmtree(self.regions.folder / self.name)

    def close(self) -> NDArray[Any]:
        """Write the last block, and return an array of the same shape and type that takes no memory."""
        self.flush()
        return np.broadcast_to(np.zeros((), self.dtype), self.shape)

    def _create(self) -> Any:
        shape, chunks = (tuple(lengths[axis] for axis in self.axes) for lengths in (self.shape, self.chunks))
        return self.regions.create(self.name, shape, chunks, self.dtype)

    def _region(self, start: tuple[int, ...], block: NDArray[Any]) -> tuple[slice, ...]:
        whole = (0,) * (len(self.shape) - len(start))
        slices = [slice(first, first + length) for first, length in zip((*start, *whole), block.shape, strict=True)]
        return tuple(slices[axis] for axis in self.axes)


def chunks_of(shape: tuple[int, ...], most: int) -> tuple[int, ...]:
    """Return lengths of chunks of at most `most` numbers.

    From the last dimension to the first, a chunk contains whole dimensions, then a part of one dimension, then single indices.

    >>> chunks_of((100, 5, 1000), 3000), chunks_of((100, 5, 1000), 300), math.prod(chunks_of((7, 3), 50))
    ((1, 3, 1000), (1, 1, 300), 21)
    """
    chunks: list[int] = []
    left = max(most, 1)
    for length in reversed(shape):
        chunks.append(max(1, min(length, left)))
        left //= chunks[-1]
    return tuple(reversed(chunks))
