"""Files that a user names: refused before the work starts, rather than after it, when they cannot be written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def require_writable(path: str | os.PathLike[str]) -> Path:
    """The path, if a file can be written there.

    >>> require_writable("/no/such/folder/result.csv")
    Traceback (most recent call last):
    ...
    ValueError: cannot write to '/no/such/folder/result.csv': there is no folder '/no/such/folder'
    """
    target = Path(path)
    if target.is_dir():
        raise ValueError(f"cannot write to '{target}': it is a folder, give the name of a file")
    if not target.parent.is_dir():
        raise ValueError(f"cannot write to '{target}': there is no folder '{target.parent}'")
    try:
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise ValueError(f"cannot write to '{target}': {error.strerror}") from None
    if target.exists() and not os.access(target, os.W_OK):
        raise ValueError(f"cannot write to '{target}': the file is read-only")
    return target
