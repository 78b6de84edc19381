"""A result that is written to a Zarr group block by block: memory is that of a block, whatever the size of the result.

Cells come one after the other in the order of the tasks, the last loop fastest. Every variable collects them in a block, which covers a
contiguous piece of that order and whole chunks of the array on disk, and is written when the next one begins.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import xarray as xr

BLOCK = 64_000_000
"""Bytes of the blocks of all variables together."""


class Regions:
    """A Zarr group (format 2) that is being filled.

    Parameters
    ----------
    folder
        Where it is written. Nobody else may read it before `finish`.

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
        """A new array; `axes` are the dimensions of `shape` in the order that they have on disk, `share` is the number of variables."""
        return Region(self, name, shape, dtype, tuple(axes), BLOCK // share)

    def create(self, name: str, shape: tuple[int, ...], chunks: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """The array on disk. Where a chunk were lost, numbers are NaN there."""
        return self.group.create_array(
            name,
            shape=shape,
            chunks=chunks,
            dtype=dtype,
            fill_value=float("nan") if dtype.kind == "f" else None,
            config={"write_empty_chunks": True},
        )

    def finish(self, described: xr.Dataset) -> None:
        """Write what describes the arrays: dimensions, coordinates and attributes of a Dataset whose variables have their names."""
        import zarr

        described.drop_vars(list(described.data_vars)).to_zarr(self.folder, mode="a", zarr_format=2, consolidated=False)
        for name, variable in described.data_vars.items():
            self.group[str(name)].attrs.put({**variable.attrs, "_ARRAY_DIMENSIONS": [str(dim) for dim in variable.dims]})
        zarr.consolidate_metadata(self.group.store, zarr_format=2)
        listing = (
            self.folder / ".zmetadata"
        )  # its order is that of the file system: sorted, so that two runs give the same bytes
        content = json.loads(listing.read_text(encoding="utf-8"))
        content["metadata"] = dict(sorted(content["metadata"].items()))
        listing.write_text(json.dumps(content, indent=2), encoding="utf-8")


class Region:
    """One array of a group, into which cells are put at their places (the leading indices) in the order of the tasks."""

    def __init__(
        self, regions: Regions, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], axes: tuple[int, ...], size: int
    ):
        self.regions, self.name, self.shape, self.dtype, self.axes = regions, name, shape, dtype, axes
        self.chunks = chunks_of(shape, size // max(dtype.itemsize, 1))
        self._array = self._create()
        self._start: tuple[int, ...] = ()  # the first place of the block
        self._outer: tuple[int, ...] = ()  # how far it reaches from there
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
        """The same array with a wider type: what is on disk is copied, chunk by chunk."""
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
        """Write the last block; gives an array of the same shape and type that takes no memory, to be described."""
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
    """Chunks of at most so many numbers: whole last dimensions, a part of the one before, single indices of the first ones.

    >>> chunks_of((100, 5, 1000), 3000), chunks_of((100, 5, 1000), 300), math.prod(chunks_of((7, 3), 50))
    ((1, 3, 1000), (1, 1, 300), 21)
    """
    chunks: list[int] = []
    left = max(most, 1)
    for length in reversed(shape):
        chunks.append(max(1, min(length, left)))
        left //= chunks[-1]
    return tuple(reversed(chunks))
