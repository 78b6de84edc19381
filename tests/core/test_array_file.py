"""Files of arrays: every array returns as it was, every change of a file is noticed, and nothing in a file is run."""

from __future__ import annotations

import hashlib
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from limitlab._core.files import DamagedFile, pack, read_arrays, unpack, write_arrays

TYPES = st.one_of(
    arrays_of.floating_dtypes(), arrays_of.integer_dtypes(), arrays_of.boolean_dtypes(), arrays_of.complex_number_dtypes(),
    arrays_of.unicode_string_dtypes(), arrays_of.datetime64_dtypes(),
)  # fmt: skip
ARRAYS = arrays_of.arrays(TYPES, arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))


@given(st.dictionaries(st.text(max_size=5), st.tuples(ARRAYS, st.booleans()), max_size=3), st.integers(0, 10_000))
def test_arrays_return_as_they_were_and_every_changed_bit_is_noticed(given_arrays, position):
    arrays = {name: array.T if transposed else array for name, (array, transposed) in given_arrays.items()}
    content = pack(arrays, {"law": "Toy"})
    about, copies = unpack(content)
    assert about == {"law": "Toy"}
    assert list(copies) == list(arrays)
    for name, array in arrays.items():
        assert copies[name].dtype == array.dtype
        assert copies[name].shape == array.shape
        assert copies[name].tobytes() == array.tobytes()
        assert copies[name].flags.f_contiguous == array.flags.f_contiguous  # a product rounds differently in another order
        assert copies[name].flags.writeable
        assert copies[name].flags.aligned
    place = position % len(content)
    for changed in (content[:place], content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :], content + b"\0"):
        with pytest.raises(DamagedFile):
            unpack(changed)


def with_hash(head: object, data: bytes = b"") -> bytes:
    """A file whose hash is right."""
    body = (head if isinstance(head, bytes) else json.dumps(head).encode() + b"\n") + data
    return body + hashlib.sha256(body).digest()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        with_hash(b"no line"),
        with_hash(b"not JSON\n"),
        with_hash([1, 2]),
        with_hash({}),
        with_hash(b"[" * 100_000 + b"\n"),
        with_hash({"arrays": 3}),
        with_hash({"arrays": [["a", "<f8"]]}),
        with_hash({"arrays": [["a", "<f8", [2], "C"]]}, bytes(8)),  # too short
        with_hash({"arrays": [["a", "<f8", [2], "C"]]}, bytes(24)),  # too long
        with_hash({"arrays": [["a", "<f8", [-1], "C"]]}, bytes(8)),
        with_hash({"arrays": [["a", "<f8", [2**62, 2**62], "C"]]}, bytes(8)),
        with_hash({"arrays": [["a", "no type", [1], "C"]]}, bytes(8)),
        with_hash({"arrays": [["a", "<f8", [1], "Z"]]}, bytes(8)),
        with_hash({"arrays": [["a", "|O", [1], "C"]]}, bytes(8)),  # bytes must not become addresses of objects
        with_hash({"arrays": [["a", "f8,O", [1], "C"]]}, bytes(16)),
    ],
)
def test_a_file_that_does_not_describe_its_arrays_is_refused(content):
    with pytest.raises(DamagedFile):
        unpack(content)


@pytest.mark.parametrize("array", [np.array([{}, None], dtype=object), np.zeros(2, dtype=[("x", float), ("y", int)])])
def test_arrays_that_are_more_than_their_bytes_are_not_written(array, tmp_path):
    with pytest.raises(ValueError, match=r"^records of type .* is not allowed: must hold numbers"):
        write_arrays(tmp_path / "x", {"records": array})
    assert list(tmp_path.iterdir()) == []


def test_a_file_can_be_read_without_limitlab(tmp_path):
    rng = np.random.default_rng(3)
    written = {"matrix": np.asfortranarray(rng.random((3, 4))), "words": np.array(["a", "bcd"]), "number": np.array(2.5)}
    path = tmp_path / "x.state"
    write_arrays(path, written, {"index": 7})
    with open(path, "rb") as file:  # the lines of the documentation
        content = file.read()
    about, place, arrays = json.loads(content.split(b"\n", 1)[0]), content.index(b"\n") + 1, {}
    for name, dtype, shape, order in about["arrays"]:
        arrays[name] = np.frombuffer(content, dtype, math.prod(shape), place).reshape(shape, order=order)
        place += arrays[name].nbytes
    assert hashlib.sha256(content[:place]).digest() == content[place:]
    assert about["index"] == 7
    assert all(np.array_equal(arrays[name], array) for name, array in written.items())
    again, copies = read_arrays(path)
    assert again == {"index": 7}
    assert all(np.array_equal(copies[name], array) for name, array in written.items())
