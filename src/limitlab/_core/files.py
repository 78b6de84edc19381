"""Writing of files that are complete or absent, even if the process that writes them is killed.

A file is written under a temporary name in the directory of its final place, forced to disk, and renamed. The temporary name
contains the machine and the process that write it. Remainders of a killed process can thus be distinguished from files that are
being written.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import os
import platform
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from limitlab.errors import Refused

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


def require_writable(path: str | os.PathLike[str]) -> Path:
    """Return the path if a file can be written there; raise ValueError otherwise.

    >>> require_writable("/no/such/folder/result.csv")
    Traceback (most recent call last):
    ...
    limitlab.errors.Refused: cannot write to '/no/such/folder/result.csv': there is no folder '/no/such/folder'
    """
    target = Path(path)
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
    """Put a directory in the place of another one.

    This takes two steps. If another process interferes between the two steps, they are repeated.
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
