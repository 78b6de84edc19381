"""Files of arrays. A file has one line of JSON, which describes the arrays, then their bytes, then the SHA-256 of both.

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
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab._core.files import replacing
from limitlab.errors import Refused

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
    limitlab._core.array_file.DamagedFile: its hash is not that of its content
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
