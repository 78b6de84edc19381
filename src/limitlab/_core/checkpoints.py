"""Saved states of long computations, from which a computation continues after it was stopped, also by kill -9.

Long computations that support it save their state every minute. A block `checkpointing(folder)`, or the environment variable
LIMITLAB_CHECKPOINTS=folder, sets the folder of the saved states; worker processes and clusters inherit the variable. A
computation that is started again with the same input continues from its saved state and gives the same numbers to the last bit. A
state is a file of arrays (`limitlab._core.array_file`), named by the hash of the input of the computation. It is written
completely or not at all, and it is removed when the computation ends.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab._core.array_file import DamagedFile, read_arrays, write_arrays
from limitlab._core.files import clean_leftovers

State = Mapping[str, NDArray[Any]]

VARIABLE = "LIMITLAB_CHECKPOINTS"
SECONDS = 60.0
"""Seconds between two saved states, unless LIMITLAB_CHECKPOINTS_EVERY or the caller sets another number."""

_folder: ContextVar[tuple[Path, float] | None] = ContextVar("limitlab_checkpoints", default=None)
_around: ContextVar[_Computation | None] = ContextVar("limitlab_computation", default=None)


@contextmanager
def checkpointing(folder: str | os.PathLike[str], every: float = SECONDS) -> Iterator[None]:
    """Save the states of long computations within a block, every `every` seconds, and continue from states in `folder`.

    >>> import tempfile
    >>> with checkpointing(tempfile.mkdtemp()):
    ...     checkpoint_of("a computation", 1.0).load() is None
    True
    """
    token = _folder.set((Path(folder), every))
    try:
        yield
    finally:
        _folder.reset(token)


def checkpoint_of(*start: Any) -> SavedState:
    """Return the saved state of the computation that starts from these values; it is inactive if no folder is set."""
    setting = _setting()
    if setting is None:
        return SavedState(None)
    try:
        content = pickle.dumps(start, protocol=5)
    except Exception:  # values that cannot be pickled, such as a lambda, do not identify a computation
        return SavedState(None)
    folder, every = setting
    return SavedState(folder / f"{hashlib.sha256(content).hexdigest()}.state", every)


def _setting() -> tuple[Path, float] | None:
    """Return folder and seconds of the surrounding `checkpointing` block or of the environment variables, or None."""
    setting = _folder.get()
    if setting is None and (folder := os.environ.get(VARIABLE)):
        setting = Path(folder), float(os.environ.get(f"{VARIABLE}_EVERY", SECONDS))
    return setting


@dataclass
class _Computation:
    identity: Callable[[], str]
    parts: int = 0


@contextmanager
def resumable(identity: Callable[[], str]) -> Iterator[None]:
    """Identify the long parts of a block by the text that `identity` returns. The text must determine all numbers in the block.

    >>> import tempfile
    >>> with checkpointing(tempfile.mkdtemp()), resumable(lambda: "one draw"):
    ...     first, second = next_saved_state(1.0), next_saved_state(1.0)
    >>> first.active, first.place == second.place
    (True, False)
    """
    token = _around.set(_Computation(identity))
    try:
        yield
    finally:
        _around.reset(token)


def next_saved_state(*start: Any) -> SavedState:
    """Return the saved state of the next part of the surrounding computation; it is inactive outside of `resumable`.

    A part may depend on functions and data that cannot be pickled; the input of the whole computation identifies it.
    """
    around = _around.get()
    if around is None or _setting() is None:
        return SavedState(None)
    around.parts += 1
    return checkpoint_of("part", around.identity(), around.parts, *start)


class SavedState:
    """The saved state of one computation.

    Parameters
    ----------
    place
        The file. With None no state is saved.
    every
        Seconds between two saved states.

    Examples
    --------
    >>> import tempfile
    >>> state = SavedState(Path(tempfile.mkdtemp()) / "x.state", every=0.0)
    >>> state.offer(lambda: {"sum": np.array(3.0)})
    >>> float(state.load()["sum"])
    3.0
    >>> state.finish()
    >>> state.load() is None
    True
    """

    def __init__(self, place: Path | None, every: float = SECONDS):
        self.place, self.every = place, every
        self._saved = time.monotonic()

    @property
    def active(self) -> bool:
        """Whether states are saved in a file."""
        return self.place is not None

    def load(self) -> dict[str, NDArray[Any]] | None:
        """Return the latest saved state, or None if there is none; a damaged file causes a warning and counts as none."""
        if self.place is None:
            return None
        clean_leftovers(self.place.parent, self.place.name)
        try:
            return read_arrays(self.place)[1]
        except FileNotFoundError:
            return None
        except (DamagedFile, OSError) as error:
            warnings.warn(
                f"the saved state {str(self.place)!r} is damaged ({error}); the computation starts from the beginning",
                stacklevel=2,
            )
            return None

    def offer(self, state: Callable[[], State]) -> None:
        """Save the state that a function returns, if enough time has passed since the last one."""
        if self.place is not None and time.monotonic() - self._saved >= self.every:
            self.place.parent.mkdir(parents=True, exist_ok=True)
            write_arrays(self.place, state())
            self._saved = time.monotonic()

    def finish(self) -> None:
        """Remove the saved state of a computation that has ended."""
        if self.place is not None:
            self.place.unlink(missing_ok=True)


def generator_state(rng: np.random.Generator) -> NDArray[Any]:
    """Return the state of a generator as an array of one text."""
    return np.array(json.dumps(rng.bit_generator.state, default=lambda value: value.tolist()))


def restore_generator(rng: np.random.Generator, state: NDArray[Any]) -> None:
    """Set a generator to a state that `generator_state` returned.

    >>> rng = np.random.default_rng(3)
    >>> state, first = generator_state(rng), rng.random()
    >>> restore_generator(rng, state)
    >>> rng.random() == first
    True
    """
    rng.bit_generator.state = json.loads(str(state))
