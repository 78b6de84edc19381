"""A store: finished cells on disk, so that a sweep goes on where it was stopped.

    sweep.json                     what is swept (law, parameters, grid, sizes, seeds)
    cells/<2 digits>/<sha256>.npz  one finished task each, named by the hash of everything it depends on

The cells are the truth. They are written whole or not at all, never as pickles, and each ends with the SHA-256 of its own
bytes; a damaged one is noticed and computed again. When all are there they are assembled into the result:

    store = "x.nc"    cells in x.nc.cells/, result x.nc (netCDF)
    store = "x.zarr"  cells in x.zarr.cells/, result x.zarr (Zarr)
    store = "x"       cells in x/, result x/result.nc

No file holds a time or anything else that differs between two runs, so the same sweep gives the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from limitlab.lab.files import clean_leftovers, replacing, write_whole
from limitlab.lab.tasks import FORMAT, Cell

MANIFEST = "sweep.json"
_DIGEST_LENGTH = 64


class DamagedCell(UserWarning):
    """A cell of a store was damaged and is computed again."""


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
        self.cells = self.home / "cells"

    def open(self, manifest: Mapping[str, Any]) -> None:
        """Make the store, or check that the one that is there belongs to this sweep; clean up after killed runs."""
        with self._clear_errors("write"):
            known = self._known_manifest()
            if known is not None:
                _check_same_sweep(self.path, known, manifest)
            elif self.result.exists() or (self.home.exists() and not _is_blank(self.home)):
                taken = self.result if self.result.exists() else self.home
                raise ValueError(
                    f"store {str(taken)!r} exists and was not made by a sweep: choose another name, or move it away"
                )
            self.home.mkdir(parents=True, exist_ok=True)
            content = (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode()
            if known is None or json.dumps(known, indent=1, sort_keys=True) + "\n" != content.decode():
                write_whole(self.home / MANIFEST, content)
            self.cells.mkdir(exist_ok=True)
            self._clean()

    def read(self, key: str) -> Cell | None:
        """The finished cell of this name, or None. A damaged one is reported and counts as missing."""
        place = self._place(key)
        with self._clear_errors("read"):
            try:
                content = place.read_bytes()
            except FileNotFoundError:
                return None
        cell = unpack(content, key)
        if cell is None:
            warnings.warn(f"the cell {str(place)!r} is damaged and is computed again", DamagedCell, stacklevel=2)
        return cell

    def write(self, key: str, cell: Cell, content: Mapping[str, Any]) -> None:
        """Keep a finished cell."""
        place = self._place(key)
        with self._clear_errors("write"):
            place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(place, pack(cell, key, content))

    def finish(self, result: xr.Dataset) -> None:
        """Write the assembled result in the place of an earlier one."""
        with self._clear_errors("write"), replacing(self.result) as temporary:
            write_dataset(result, temporary, zarr=self.result.suffix == ".zarr")

    def _place(self, key: str) -> Path:
        return self.cells / key[:2] / f"{key}.npz"

    def _known_manifest(self) -> dict[str, Any] | None:
        try:
            known = json.loads((self.home / MANIFEST).read_bytes())
        except FileNotFoundError:
            return None
        except (ValueError, IsADirectoryError) as error:
            raise ValueError(
                f"store {str(self.path)!r} is unreadable: {self.home / MANIFEST} is damaged ({error}); "
                "choose another name, or move it away"
            ) from None
        if not isinstance(known, dict) or not {"format", "law", "parameters", "over", "base_seed"} <= known.keys():
            raise ValueError(
                f"store {str(self.path)!r} is unreadable: {self.home / MANIFEST} does not describe a sweep; "
                "choose another name, or move it away"
            )
        return known

    def _clean(self) -> None:
        clean_leftovers(self.result.parent, self.result.name)
        clean_leftovers(self.home, MANIFEST)
        for folder in self.cells.iterdir():
            clean_leftovers(folder)

    @contextmanager
    def _clear_errors(self, doing: str) -> Iterator[None]:
        """What the operating system refuses, in one line."""
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            raise OSError(f"cannot {doing} store {str(self.path)!r}: {reason}") from error


# -- a cell as bytes ----------------------------------------------------------------------------------------------------


def pack(cell: Cell, key: str, content: Mapping[str, Any]) -> bytes:
    """A cell as the bytes of an `.npz` file whose comment is the SHA-256 of all bytes before it."""
    about = {
        "key": key,
        "content": content,
        "accuracy": repr(cell.accuracy),
        "dims": cell.dims,
        "order": list(cell.values),
        "coords": list(cell.coords),
    }
    arrays = {f"value.{name}": value for name, value in cell.values.items()}
    arrays |= {f"coord.{name}": value for name, value in cell.coords.items()}
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, about=np.array(json.dumps(about, sort_keys=True)), **arrays)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.comment = b"0" * _DIGEST_LENGTH
    body = buffer.getvalue()[:-_DIGEST_LENGTH]
    return body + hashlib.sha256(body).hexdigest().encode()


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
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        about = json.loads(str(archive["about"]))
        if about["key"] != key:
            return None
        values = {name: archive[f"value.{name}"] for name in about["order"]}
        coords = {name: archive[f"coord.{name}"] for name in about["coords"]}
    dims = {name: tuple(own) for name, own in about["dims"].items()}
    return Cell(values, dims, coords, float(about["accuracy"]))


# -- the assembled result -----------------------------------------------------------------------------------------------


def write_dataset(result: xr.Dataset, path: Path, zarr: bool = False) -> None:
    """Write a Dataset as netCDF or Zarr; the same Dataset gives the same bytes."""
    if zarr:
        # Format 2: in format 3 texts have no specified encoding yet.
        result.to_zarr(path, mode="w", zarr_format=2, consolidated=True)
    else:
        result.to_netcdf(path, engine="h5netcdf")


def open_result(path: str | os.PathLike[str]) -> xr.Dataset:
    """The assembled result of a store, loaded.

    Parameters
    ----------
    path
        What was given to `sweep` as `store`.
    """
    place = Store(path).result
    if not place.exists():
        raise ValueError(f"store {str(path)!r} has no result yet: run its sweep to the end")
    try:
        if place.suffix == ".zarr":
            return xr.open_zarr(place, chunks=None).load()
        with xr.open_dataset(place, engine="h5netcdf") as result:
            return result.load()
    except Exception as error:
        raise ValueError(f"the result {str(place)!r} is unreadable ({str(error).splitlines()[0]})") from None


def _is_blank(folder: Path) -> bool:
    """Whether a folder holds nothing but what a run that was killed at its very start may have left."""
    return folder.is_dir() and all(entry.name.startswith(f".{MANIFEST}.") for entry in folder.iterdir())


def _check_same_sweep(path: Path, known: Mapping[str, Any], manifest: Mapping[str, Any]) -> None:
    """More values, sizes or seeds are welcome in a store; another law, base seed or value of a fixed parameter is not."""
    other = "choose another store"
    if known["format"] != FORMAT:
        raise ValueError(f"store {str(path)!r} has format {known['format']}, this version writes {FORMAT}: {other}")
    for what in ("law", "base_seed"):
        if known[what] != manifest[what]:
            raise ValueError(
                f"store {str(path)!r} holds a sweep with {what} = {known[what]!r}, not {manifest[what]!r}: {other}"
            )
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
