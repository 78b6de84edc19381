"""Long computations that go on where they were stopped, even by kill -9.

Within `checkpointing(folder)`, or with the environment variable LIMITLAB_CHECKPOINTS=folder (which worker processes and clusters hand on),
a computation that knows how keeps its state in the folder every minute and takes it up again when it is started anew with the same
input: same state, same numbers to the last bit. A file is named by the hash of all that the computation starts from, is written whole or
not at all, holds no pickle, and is removed when the computation ends.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import secrets
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

State = Mapping[str, NDArray[Any]]

VARIABLE = "LIMITLAB_CHECKPOINTS"
SECONDS = 60.0
"""How often a state is kept, unless LIMITLAB_CHECKPOINTS_EVERY or the caller says otherwise."""

_folder: ContextVar[tuple[Path, float] | None] = ContextVar("limitlab_checkpoints", default=None)
_around: ContextVar[_Computation | None] = ContextVar("limitlab_computation", default=None)


@contextmanager
def checkpointing(folder: str | os.PathLike[str], every: float = SECONDS) -> Iterator[None]:
    """Within this block long computations keep their state in `folder` every so many seconds, and take it up again.

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


def checkpoint_of(*start: Any) -> Checkpoint:
    """The checkpoint of the computation that starts from these values; one that keeps nothing where none was asked for."""
    chosen = _chosen()
    if chosen is None:
        return Checkpoint(None)
    try:
        content = pickle.dumps(start, protocol=5)
    except Exception:  # a lambda, say: such a computation cannot be told from another one
        return Checkpoint(None)
    return Checkpoint(chosen[0] / f"{hashlib.sha256(content).hexdigest()}.npz", chosen[1])


def _chosen() -> tuple[Path, float] | None:
    """Folder and seconds that were asked for, here or by the environment."""
    chosen = _folder.get()
    if chosen is None and (named := os.environ.get(VARIABLE)):
        chosen = Path(named), float(os.environ.get(f"{VARIABLE}_EVERY", SECONDS))
    return chosen


@dataclass
class _Computation:
    identity: Callable[[], str]
    parts: int = 0


@contextmanager
def computing(identity: Callable[[], str]) -> Iterator[None]:
    """Within this block everything follows from what `identity` tells, so that its long parts can be told from all others.

    >>> import tempfile
    >>> with checkpointing(tempfile.mkdtemp()), computing(lambda: "one draw"):
    ...     first, second = checkpoint_within(1.0), checkpoint_within(1.0)
    >>> first.active, first.place == second.place
    (True, False)
    """
    token = _around.set(_Computation(identity))
    try:
        yield
    finally:
        _around.reset(token)


def checkpoint_within(*start: Any) -> Checkpoint:
    """The checkpoint of the next part of the surrounding computation; one that keeps nothing where there is none.

    What a part does may hang on functions and data that cannot be written down; what the whole computation starts from says it all.
    """
    around = _around.get()
    if around is None or _chosen() is None:
        return Checkpoint(None)
    around.parts += 1
    return checkpoint_of("part", around.identity(), around.parts, *start)


class Checkpoint:
    """The state of one computation in a file.

    Parameters
    ----------
    place
        The file; None: nothing is kept.
    every
        Seconds between two states that are kept.

    Examples
    --------
    >>> import tempfile
    >>> kept = Checkpoint(Path(tempfile.mkdtemp()) / "x.npz", every=0.0)
    >>> kept.offer(lambda: {"sum": np.array(3.0)})
    >>> float(kept.load()["sum"])
    3.0
    >>> kept.finish()
    >>> kept.load() is None
    True
    """

    def __init__(self, place: Path | None, every: float = SECONDS):
        self.place, self.every = place, every
        self._saved = time.monotonic()

    @property
    def active(self) -> bool:
        """Whether anything is kept."""
        return self.place is not None

    def load(self) -> dict[str, NDArray[Any]] | None:
        """The state that was kept last, if there is one; a damaged file is reported and counts as none."""
        if self.place is None or not self.place.exists():
            return None
        try:
            with np.load(self.place, allow_pickle=False) as file:
                return {name: file[name] for name in file.files}
        except Exception as error:
            warnings.warn(
                f"the checkpoint {str(self.place)!r} is damaged ({error}): starting from the beginning", stacklevel=2
            )
            return None

    def offer(self, state: Callable[[], State]) -> None:
        """Keep the state, which is asked for only if it is time to."""
        if self.place is not None and time.monotonic() - self._saved >= self.every:
            self.place.parent.mkdir(parents=True, exist_ok=True)
            write_arrays(self.place, state())
            self._saved = time.monotonic()

    def finish(self) -> None:
        """The computation has ended: its state is not needed any more."""
        if self.place is not None:
            self.place.unlink(missing_ok=True)


def write_arrays(path: str | os.PathLike[str], arrays: State) -> None:
    """Arrays as an npz file of which a reader sees the old or the new one, never a part."""
    target = Path(path)
    temporary = target.with_name(f".{target.stem}-{secrets.token_hex(8)}.part.npz")
    try:
        with open(temporary, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def generator_state(rng: np.random.Generator) -> NDArray[Any]:
    """The state of a generator as an array of one text."""
    return np.array(json.dumps(rng.bit_generator.state, default=lambda value: value.tolist()))


def restore_generator(rng: np.random.Generator, state: NDArray[Any]) -> None:
    """Put a generator into a state that `generator_state` gave.

    >>> rng = np.random.default_rng(3)
    >>> kept, first = generator_state(rng), rng.random()
    >>> restore_generator(rng, kept)
    >>> rng.random() == first
    True
    """
    rng.bit_generator.state = json.loads(str(state))
