"""The cells of many tasks, in their order: in memory, or in the store, from where those that are too many to be held are read again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from limitlab.lab.cells import Cell, Cells

MOST_CELLS = 20_000
MOST_BYTES = 100_000_000
"""Cells and bytes of them that a run with a store holds in memory, so that they are read only once."""


class OnDisk(Sequence[Cell | None]):
    """Cells in a store: one position per task, of which is known whether its cell is there; as many as may be are held in memory too.

    Parameters
    ----------
    cells
        The folder of cells.
    keys
        The name of every task's cell.
    most_cells, most_bytes
        Beyond so many positions no cell is held, and never more than so many bytes.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> folder = Cells(tempfile.mkdtemp())
    >>> slots = OnDisk(folder, ["ab" * 32, "cd" * 32])
    >>> slots.absent()
    [0, 1]
    >>> cell = Cell({"risk": np.array(1.0)})
    >>> folder.write("cd" * 32, cell, {})
    >>> slots[1] = cell
    >>> slots[1].values["risk"].item(), slots[0], slots.absent()
    (1.0, None, [0])
    """

    def __init__(self, cells: Cells, keys: Sequence[str], most_cells: int = MOST_CELLS, most_bytes: int = MOST_BYTES):
        self._cells, self._keys = cells, keys
        self._room = most_bytes if len(keys) <= most_cells else 0
        self._held: dict[int, Cell] = {}
        self._present = bytearray(len(keys))
        for position, key in enumerate(keys):  # look, and check every one
            if (cell := cells.read(key)) is not None:
                self[position] = cell

    def __len__(self) -> int:
        return len(self._keys)

    @overload
    def __getitem__(self, position: int) -> Cell | None: ...

    @overload
    def __getitem__(self, position: slice) -> Part: ...

    def __getitem__(self, position: int | slice) -> Cell | Part | None:
        if isinstance(position, slice):
            return Part(self, range(*position.indices(len(self))))
        if (cell := self._held.get(position)) is not None:
            return cell
        return self._cells.read(self._keys[position]) if self._present[position] else None

    def __setitem__(self, position: int, cell: Cell) -> None:
        """The cell was written: it is there from now on."""
        self._present[position] = True
        if (size := cell.nbytes) <= self._room:
            self._held[position] = cell
            self._room -= size

    def has(self, position: int) -> bool:
        """Whether a cell is there."""
        return bool(self._present[position])

    def absent(self) -> list[int]:
        """Positions without a cell."""
        return [position for position, there in enumerate(self._present) if not there]


class Part(Sequence[Cell | None]):
    """A range of the positions of `OnDisk`."""

    def __init__(self, whole: OnDisk, positions: range):
        self._whole, self._positions = whole, positions

    def __len__(self) -> int:
        return len(self._positions)

    @overload
    def __getitem__(self, position: int) -> Cell | None: ...

    @overload
    def __getitem__(self, position: slice) -> Part: ...

    def __getitem__(self, position: int | slice) -> Cell | Part | None:
        if isinstance(position, slice):
            return Part(self._whole, self._positions[position])
        return self._whole[self._positions[position]]

    def absent(self) -> list[int]:
        """Positions without a cell."""
        return [position for position, there in enumerate(self._positions) if not self._whole.has(there)]


Slots = Sequence[Cell | None]
"""One cell per task; None where a task has not finished."""


def missing_in(slots: Slots) -> int:
    """How many tasks have no cell.

    >>> missing_in([None, Cell({})])
    1
    """
    return len(slots.absent()) if isinstance(slots, (OnDisk, Part)) else sum(cell is None for cell in slots)
