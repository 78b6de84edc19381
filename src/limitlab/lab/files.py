"""Files that are either whole or not there: write beside the target, then rename.

A process that is killed at any moment leaves the old file or the new one, never half of one.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path beside `path` to write to; it takes the place of `path` when the block ends without an error.

    The temporary name keeps the suffix, for libraries that choose a format by it.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with atomic_path(folder / "result.txt") as temporary:
    ...     _ = temporary.write_text("done")
    >>> [file.name for file in folder.iterdir()], (folder / "result.txt").read_text()
    (['result.txt'], 'done')
    """
    target = Path(path)
    temporary = target.with_name(f".{target.stem}-{secrets.token_hex(8)}.part{target.suffix}")
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def atomic_write(path: str | os.PathLike[str], data: str | bytes) -> None:
    """Write a whole file at once: readers see the old content or the new, nothing between.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "numbers.csv"
    >>> atomic_write(target, "1,2,3")
    >>> target.read_text()
    '1,2,3'
    """
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        file.write(data.encode() if isinstance(data, str) else data)
        file.flush()
        os.fsync(file.fileno())


def require_writable(path: str | os.PathLike[str]) -> Path:
    """Refuse a path that cannot be written, before the work starts rather than after it.

    >>> require_writable("/no/such/folder/result.csv")
    Traceback (most recent call last):
    ...
    ValueError: cannot write to '/no/such/folder/result.csv': there is no folder '/no/such/folder'
    """
    target = Path(path)
    folder = target.parent
    if target.is_dir():
        raise ValueError(f"cannot write to '{target}': it is a folder, give the name of a file")
    if not folder.is_dir():
        raise ValueError(f"cannot write to '{target}': there is no folder '{folder}'")
    try:
        handle, name = tempfile.mkstemp(dir=folder)
        os.close(handle)
        os.unlink(name)
    except OSError as error:
        raise ValueError(f"cannot write to '{target}': {error.strerror}") from None
    if target.exists() and not os.access(target, os.W_OK):
        raise ValueError(f"cannot write to '{target}': the file is read-only")
    return target
