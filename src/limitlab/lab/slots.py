"""The cells of many tasks, in their order: in memory, or (of a large run) in the store, from where they are read when they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from limitlab.lab.cells import Cell, Cells


class OnDisk(Sequence[Cell | None]):
    """Cells that stay on disk: one position per task, of which only is known here whether its cell is there.

    Parameters
    ----------
    cells
        The folder of cells.
    keys
        The name of every task's cell.
    present
        Which of them are there (default: look, and check every one).

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

    def __init__(self, cells: Cells, keys: Sequence[str], present: bytearray | None = None):
        self._cells, self._keys = cells, keys
        self._present = bytearray(cells.read(key) is not None for key in keys) if present is None else present

    def __len__(self) -> int:
        return len(self._keys)

    @overload
    def __getitem__(self, position: int) -> Cell | None: ...

    @overload
    def __getitem__(self, position: slice) -> OnDisk: ...

    def __getitem__(self, position: int | slice) -> Cell | OnDisk | None:
        if isinstance(position, slice):
            return OnDisk(self._cells, self._keys[position], self._present[position])
        return self._cells.read(self._keys[position]) if self._present[position] else None

    def __setitem__(self, position: int, cell: Cell) -> None:
        """The cell was written: it is there from now on."""
        self._present[position] = True

    def absent(self) -> list[int]:
        """Positions without a cell."""
        return [position for position, there in enumerate(self._present) if not there]


Slots = Sequence[Cell | None]
"""One cell per task; None where a task has not finished."""


def missing_in(slots: Slots) -> int:
    """How many tasks have no cell.

    >>> missing_in([None, Cell({})])
    1
    """
    return len(slots.absent()) if isinstance(slots, OnDisk) else sum(cell is None for cell in slots)
