"""Files that are complete or absent, files of arrays, and saved states of long computations.

**Complete or absent.** A file is written under a temporary name in the directory of its final place, forced to disk, and renamed.
A process that is killed while it writes thus leaves the earlier file or none. The temporary name contains the machine and the
process that write it. Remainders of a killed process can thus be distinguished from files that are being written.

**Files of arrays.** A file has one line of JSON, which describes the arrays, then their bytes, then the SHA-256 of both.

    {"arrays": [["risk", "<f8", [3], "C"], ...], ...}   name, type, shape and order of every array, then further entries
    the bytes of the arrays, in this order
    32 bytes, the SHA-256 of everything before them

Cells of a store and saved states have this format. A file that was cut or changed is recognised by its hash. Nothing in a file is
unpickled. A file can be read without limitlab:

    content = open(path, "rb").read()
    about, place, arrays = json.loads(content.split(b"\\n", 1)[0]), content.index(b"\\n") + 1, {}
    for name, dtype, shape, order in about["arrays"]:
        arrays[name] = np.frombuffer(content, dtype, math.prod(shape), place).reshape(shape, order=order)
        place += arrays[name].nbytes

**Saved states.** A long computation that was stopped, also by kill -9, continues from its saved state. Long computations that
support saved states write one every minute. A block `checkpointing(folder)`, or the environment variable
LIMITLAB_CHECKPOINTS=folder, sets the folder of the saved states. Worker processes and clusters inherit the variable. A computation
that is started again with the same input continues from its saved state and gives the same numbers to the last bit. A saved state
is a file of arrays, named by the hash of the input of the computation. It is removed when the computation ends.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import os
import pickle
import platform
import re
import secrets
import shutil
import tempfile
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

from limitlab.errors import Refused

# -- files that are complete or absent --------------------------------------------------------------------------------


_OURSELVES = secrets.token_hex(4)
_TEMPORARY = re.compile(r"\.(?P<host>[0-9a-f]{8})-(?P<process>\d+)-(?P<token>[0-9a-f]{8})-[0-9a-f]{8}\.tmp\Z")
_ABANDONED_AFTER = 24 * 3600.0
"""Seconds after which a temporary file of another machine is considered abandoned."""


@contextmanager
def replacing(path: Path, forced: bool = True) -> Iterator[Path]:
    """Give a block a temporary path beside `path`, and rename it to `path` if the block ends without an error.

    With `forced` false the file is not forced to disk, and a loss of power may damage it. Use this for content that is checked when
    it is read and can be computed again.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "x.txt") as temporary:
    ...     _ = temporary.write_text("whole")
    >>> [entry.name for entry in folder.iterdir()]
    ['x.txt']
    """
    temporary = _temporary(path)
    try:
        yield temporary
        if temporary.is_dir():
            for entry in temporary.rglob("*"):
                if entry.is_file():
                    force_to_disk(entry)
            _swap_directory(temporary, path)
        else:
            if forced:
                force_to_disk(temporary)
            os.replace(temporary, path)
    finally:
        _remove(temporary)


def write_whole(path: Path, content: bytes, forced: bool = True) -> None:
    """Write a file so that readers never get a part of it; `forced` as in `replacing`."""
    temporary = _temporary(path)
    try:
        temporary.write_bytes(content)
        if forced:
            force_to_disk(temporary)
        os.replace(temporary, path)
    except BaseException:
        _remove(temporary)
        raise


def expanded(path: str | os.PathLike[str]) -> Path:
    """Return a path in which `~` and environment variables are replaced by their values.

    >>> os.environ["PLACE"] = "/data"
    >>> str(expanded("$PLACE/x.nc"))
    '/data/x.nc'
    """
    place = os.path.expanduser(os.path.expandvars(os.fspath(path)))
    if "\0" in place:
        raise Refused(f"path = {place[:80]!r} is not allowed: it contains the character 0")
    if place.split(os.sep)[0].startswith("~"):
        raise Refused(
            f"path = {place[:80]!r} is not allowed: there is no home folder of this name; write the path without ~"
        )
    return Path(place)


def require_writable(path: str | os.PathLike[str]) -> Path:
    """Return the path if a file can be written there; raise ValueError otherwise.

    >>> require_writable("/no/such/folder/result.csv")
    Traceback (most recent call last):
    ...
    limitlab.errors.Refused: cannot write to '/no/such/folder/result.csv': there is no folder '/no/such/folder'
    """
    target = expanded(path)
    if target.is_dir():
        raise Refused(f"cannot write to '{target}': it is a folder; give the name of a file")
    if not target.parent.is_dir():
        raise Refused(f"cannot write to '{target}': there is no folder '{target.parent}'")
    try:
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise Refused(f"cannot write to '{target}': {error.strerror}") from None
    if target.exists() and not os.access(target, os.W_OK):
        raise Refused(f"cannot write to '{target}': the file is read-only")
    return target


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{_host()}-{os.getpid()}-{_OURSELVES}-{secrets.token_hex(4)}.tmp")


def force_to_disk(path: Path) -> None:
    """Make the content of a file survive a loss of power.

    Without this the renamed file may survive without its content.
    """
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def clean_leftovers(folder: Path, name: str = "") -> int:
    """Remove the temporary files in a folder (or only those for the file `name`) whose writers have ended."""
    if not folder.is_dir():
        return 0
    left = [entry for entry in folder.iterdir() if entry.name.startswith(f".{name}") and _is_abandoned(entry)]
    for entry in left:
        _remove(entry)
    return len(left)


def _is_abandoned(entry: Path) -> bool:
    match = _TEMPORARY.search(entry.name)
    if match is None:
        return False
    if match["host"] == _host() and os.name == "posix":
        process = int(match["process"])
        return match["token"] != _OURSELVES if process == os.getpid() else not _is_running(process)
    try:
        return time.time() - entry.stat().st_mtime > _ABANDONED_AFTER
    except FileNotFoundError:
        return False  # its writer has finished meanwhile


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _swap_directory(new: Path, final: Path) -> None:
    """Replace a directory by a new one.

    The old directory is renamed, and then the new directory gets its name. If another process writes a directory of this name between
    the two steps, they are repeated.
    """
    for _ in range(100):
        try:
            os.rename(new, final)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        aside = new.with_name(new.name.removesuffix(".tmp")[:-8] + secrets.token_hex(4) + ".tmp")
        try:
            os.rename(final, aside)
        except FileNotFoundError:
            continue
        _remove(aside)
    raise OSError(f"cannot put {str(final)!r} in its place: other processes keep writing it")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@functools.cache
def _host() -> str:
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


# -- files of arrays --------------------------------------------------------------------------------------------------


DIGEST_LENGTH = 32
"""Bytes of a SHA-256 hash."""


class DamagedFile(ValueError):
    """The error for a file that is not a whole file of arrays."""


def pack(arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any] | None = None) -> bytes:
    """Return the bytes of a file that holds these arrays and their description.

    Parameters
    ----------
    arrays
        Arrays of numbers, truth values or texts by name.
    about
        Further entries of the description, as plain data.

    Examples
    --------
    >>> content = pack({"risk": np.array([1.0, 2.0])}, {"law": "Ridge"})
    >>> content.split(b"\\n", 1)[0]
    b'{"arrays":[["risk","<f8",[2],"C"]],"law":"Ridge"}'
    >>> unpack(content)
    ({'law': 'Ridge'}, {'risk': array([1., 2.])})
    """
    return b"".join(_pieces(arrays, about or {}))


def unpack(content: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the description and the arrays in the bytes of a file.

    Raises
    ------
    DamagedFile
        If the bytes are not a whole file of arrays.

    Examples
    --------
    >>> content = pack({"risk": np.array([1.0, 2.0])})
    >>> unpack(content[:-1])
    Traceback (most recent call last):
        ...
    limitlab._core.files.DamagedFile: its hash is not that of its content
    """
    end = len(content) - DIGEST_LENGTH
    if end < 0 or hashlib.sha256(memoryview(content)[:end]).digest() != content[end:]:
        raise DamagedFile("its hash is not that of its content")
    try:
        place = content.index(b"\n") + 1
        about = json.loads(content[: place - 1])
        arrays = {}
        for name, kind, shape, order in about.pop("arrays"):
            dtype = np.dtype(kind)
            _check_type(name, dtype)  # bytes must never be read as addresses of objects
            array = np.ndarray(shape, dtype, content, place, order=order)
            place += array.nbytes
            arrays[name] = array.copy(order="K")
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        raise DamagedFile(f"its content does not describe arrays ({error})") from None
    if place != end:
        raise DamagedFile("its description does not fit its length")
    return about, arrays


def write_arrays(
    path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any] | None = None
) -> None:
    """Write a file of arrays; a process that reads it meanwhile gets all of the earlier version or all of the new one.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "state"
    >>> write_arrays(place, {"sum": np.array(3.0)}, {"index": 7})
    >>> read_arrays(place)
    ({'index': 7}, {'sum': array(3.)})
    """
    with replacing(Path(path)) as temporary, open(temporary, "wb") as file:
        for piece in _pieces(arrays, about or {}):  # one array at a time, because a state may be large
            file.write(piece)


def read_arrays(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the description and the arrays of a file; raise `DamagedFile` if it is not a whole file of arrays."""
    return unpack(Path(path).read_bytes())


def _pieces(arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the description, the bytes of every array, and the hash."""
    for name, array in arrays.items():
        _check_type(name, array.dtype)
    listed = [(name, array.dtype.str, array.shape, _order(array)) for name, array in arrays.items()]
    head = json.dumps({"arrays": listed, **about}, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    digest = hashlib.sha256(head)
    yield head
    for array in arrays.values():
        data = array.tobytes(order="A")
        digest.update(data)
        yield data
    yield digest.digest()


def _check_type(name: str, dtype: np.dtype[Any]) -> None:
    """Raise ValueError if an array of this type is not determined by its bytes, its shape and the name of its type."""
    if dtype.hasobject or dtype.names is not None:
        raise Refused(f"{name} of type {dtype} is not allowed: must hold numbers, truth values or texts")


def _order(array: NDArray[Any]) -> str:
    """Return "F" for an array whose columns are contiguous, else "C", so that reading restores the order in memory."""
    return "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"


# -- saved states -----------------------------------------------------------------------------------------------------


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
