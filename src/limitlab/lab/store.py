"""A store: finished cells on disk, so that a sweep goes on where it was stopped.

    sweep.json                     what is swept (law, parameters, grid, sizes, seeds)
    cells/<2 digits>/<sha256>.npz  one finished task each, named by the hash of everything it depends on

The cells (`limitlab.lab.cells`) are the truth. When all are there they are assembled into the result:

    store = "x.nc"    cells in x.nc.cells/, result x.nc (netCDF)
    store = "x.zarr"  cells in x.zarr.cells/, result x.zarr (Zarr)
    store = "x"       cells in x/, result x/result.nc

A Zarr result is written block by block (`limitlab.lab._regions`), so that it may be larger than the memory.
No file holds a time or anything else that differs between two runs, so the same sweep gives the same bytes.
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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import xarray as xr

from limitlab._core.files import clean_leftovers, replacing, write_whole
from limitlab.lab._regions import Regions
from limitlab.lab.cells import Cell, Cells, DamagedCell
from limitlab.lab.tasks import FORMAT

__all__ = ["open_result"]

MANIFEST = "sweep.json"
READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)
LOADED = 100_000_000
"""Bytes up to which a Zarr result is read into memory when it is opened; the numbers of a larger one are read when they are used."""


class Store:
    """The place of a sweep on disk.

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
            raise ValueError("store = '' is not allowed: give a path such as 'sweep.nc', 'sweep.zarr' or a directory")
        self.path = Path(path)
        single = self.path.suffix in (".nc", ".zarr")
        self.home = self.path.with_name(self.path.name + ".cells") if single else self.path
        self.result = self.path if single else self.path / "result.nc"
        self.cells = StoredCells(self)
        self.read_only = False

    @property
    def in_blocks(self) -> bool:
        """Whether the result is written block by block."""
        return self.result.suffix == ".zarr" and not self.read_only

    def open(self, manifest: Mapping[str, Any]) -> None:
        """Make the store, or check that the one that is there belongs to this sweep; clean up after killed runs."""
        with self.clear_errors("write"):
            known = self._known_manifest()
            if known is not None:
                _check_same_sweep(self.path, known, manifest)
            elif not _holds_cells(self.cells.folder) and (
                self.result.exists() or (self.home.exists() and not _is_blank(self.home))
            ):
                taken = self.result if self.result.exists() else self.home
                raise ValueError(
                    f"store {str(taken)!r} exists and was not made by a sweep: choose another name, or move it away"
                )
            try:
                self._prepare(known, manifest)
            except OSError as error:
                if known is None or error.errno not in READ_ONLY:
                    raise
                self.read_only = True  # what is complete can still be read

    def _prepare(self, known: Mapping[str, Any] | None, manifest: Mapping[str, Any]) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        content = (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode()
        if known is None or json.dumps(known, indent=1, sort_keys=True) + "\n" != content.decode():
            if (self.home / MANIFEST).is_dir():
                shutil.rmtree(self.home / MANIFEST)  # damage: a folder where the manifest belongs
            write_whole(self.home / MANIFEST, content)
        if self.cells.folder.exists() and not self.cells.folder.is_dir():
            self.cells.folder.unlink()  # damage: a file where the cells belong
        self.cells.folder.mkdir(exist_ok=True)
        self._clean()

    def finish(self, result: xr.Dataset) -> None:
        """Write the assembled result in the place of an earlier one (not on a disk that can only be read)."""
        if self.read_only:
            return
        with self.clear_errors("write"), replacing(self.result) as temporary:
            write_dataset(result, temporary, zarr=self.result.suffix == ".zarr")

    def finish_in_blocks(self, assemble: Callable[[Regions], xr.Dataset]) -> xr.Dataset:
        """Write a Zarr result block by block in the place of an earlier one, and open it.

        Parameters
        ----------
        assemble
            Writes the arrays into the given regions, and returns a Dataset that describes them.
        """
        with self.clear_errors("write"), replacing(self.result) as temporary:
            regions = Regions(temporary)
            described = assemble(regions)
            regions.finish(described)
        opened = open_result(self.path)
        return opened[list(described.data_vars)] if described.data_vars else opened  # in their own order

    def _known_manifest(self) -> dict[str, Any] | None:
        try:
            known = json.loads((self.home / MANIFEST).read_bytes())
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError, IsADirectoryError):
            known = None
        if _describes_a_sweep(known):
            return dict(known)
        if _holds_cells(self.cells.folder):  # ours: its cells say themselves what they hold
            warnings.warn(
                f"the manifest {str(self.home / MANIFEST)!r} is damaged and is written anew", DamagedCell, stacklevel=4
            )
            return None
        raise ValueError(
            f"store {str(self.path)!r} is unreadable: {self.home / MANIFEST} does not describe a sweep; "
            "choose another name, or move it away"
        )

    def _clean(self) -> None:
        clean_leftovers(self.result.parent, self.result.name)
        clean_leftovers(self.home, MANIFEST)
        self.cells.clean()

    @contextmanager
    def clear_errors(self, doing: str) -> Iterator[None]:
        """What the operating system refuses, in one line."""
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            raise OSError(f"cannot {doing} store {str(self.path)!r}: {reason}") from error


class StoredCells(Cells):
    """The cells of a store; what the operating system refuses is said in one line that names the store."""

    def __init__(self, store: Store):
        super().__init__(store.home / "cells")
        self.store = store

    def read(self, key: str) -> Cell | None:
        """The finished cell of this name, or None."""
        with self.store.clear_errors("read"):
            return super().read(key)

    def write(self, key: str, cell: Cell, content: Mapping[str, Any]) -> None:
        """Keep a finished cell."""
        with self.store.clear_errors("write"):
            super().write(key, cell, content)


# -- the assembled result -----------------------------------------------------------------------------------------------


def write_dataset(result: xr.Dataset, path: Path, zarr: bool = False) -> None:
    """Write a Dataset as netCDF or Zarr; the same Dataset gives the same bytes."""
    if zarr:
        # Format 2: in format 3 texts have no specified encoding yet.
        result.to_zarr(path, mode="w", zarr_format=2, consolidated=True)
    else:
        result.to_netcdf(path, engine="h5netcdf")


def open_result(path: str | os.PathLike[str]) -> xr.Dataset:
    """The assembled result of a store: loaded, unless it is a Zarr result of more than `LOADED` bytes.

    Parameters
    ----------
    path
        What was given to `sweep` as `store`.
    """
    place = Store(path).result
    if not place.exists():
        raise ValueError(f"store {str(path)!r} has no result yet: run its sweep to the end")
    return read_dataset(place, most=LOADED)


def read_dataset(place: Path, most: float = math.inf) -> xr.Dataset:
    """A netCDF or Zarr file as data (an array that would have to be unpickled is refused), loaded: of a Zarr file up to so many bytes."""
    with _silent_endings():
        try:
            if place.suffix == ".zarr":
                _refuse_pickles(place)
                found = xr.open_zarr(place, chunks=None)
                for variable in found.variables.values():
                    variable.encoding = {}  # how it is stored here need not be how it is stored next
                return found.load() if found.nbytes <= most else found
            with xr.open_dataset(place, engine="h5netcdf") as result:
                return result.load()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
        gc.collect()  # a half-opened file complains when it is let go: here, where nobody hears it
    raise ValueError(f"the result {str(place)!r} is unreadable: it is damaged, or not what its name says ({reason[:120]})")


@contextmanager
def _silent_endings() -> Iterator[None]:
    """Objects that fail while they are let go keep it to themselves."""
    before = sys.unraisablehook
    sys.unraisablehook = lambda _: None
    try:
        yield
    finally:
        sys.unraisablehook = before


def _refuse_pickles(folder: Path) -> None:
    """Zarr arrays may be stored as pickles, which run code when they are read. Ours never are."""
    for name in (".zmetadata", ".zarray", "zarr.json"):
        for file in folder.rglob(name):
            if "pickle" in file.read_text(encoding="utf-8").lower():
                raise ValueError("pickled data are not read")


def _describes_a_sweep(known: Any) -> bool:
    """Whether a manifest holds what a sweep or a comparison writes there (one of another format is refused later, with both numbers)."""
    if not isinstance(known, dict):
        return False
    if isinstance(known.get("format"), int) and known["format"] != FORMAT:
        return True
    kinds = {"format": int, "what": str, "law": str, "parameters": dict, "over": dict}
    return all(isinstance(known.get(name), kind) for name, kind in kinds.items())


def _holds_cells(folder: Path) -> bool:
    """Whether a folder holds cells and nothing else, so that it was made by a sweep even if its manifest is lost."""
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    return bool(names) and all(re.fullmatch("[0-9a-f]{2}", name) for name in names)


def _is_blank(folder: Path) -> bool:
    """Whether a folder holds nothing but what a run that was killed at its very start may have left."""
    return folder.is_dir() and all(entry.name.startswith(f".{MANIFEST}.") for entry in folder.iterdir())


def _check_same_sweep(path: Path, known: Mapping[str, Any], manifest: Mapping[str, Any]) -> None:
    """More values, sizes or seeds are welcome in a store; another law, base seed or value of a fixed parameter is not."""
    other = "choose another store"
    if known["format"] != FORMAT:
        raise ValueError(f"store {str(path)!r} has format {known['format']}, this version writes {FORMAT}: {other}")
    for what in ("what", "law"):
        if known[what] != manifest[what]:
            raise ValueError(f"store {str(path)!r} holds {what} = {known[what]!r}, not {manifest[what]!r}: {other}")
    for name, value in manifest["parameters"].items():
        before = known["parameters"].get(name, value)  # absent where the earlier sweep went over it
        if before != value:
            raise ValueError(f"store {str(path)!r} holds a sweep at {name} = {before!r}, not {value!r}: {other}")
    if known.get("version") != manifest.get("version"):
        warnings.warn(
            f"store {str(path)!r} was begun with limitlab {known.get('version')}; its cells are kept, new ones come from "
            f"{manifest.get('version')}",
            stacklevel=3,
        )
