"""No input but `--laws` is executed: files whose content would leave a mark if any code in them ran."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import limitlab as ll
from limitlab.errors import Refused
from limitlab.show.cli import app


class Mark:
    """An object whose unpickling makes a file."""

    def __init__(self, place: Path):
        self.place = place

    def __reduce__(self) -> Any:
        return (Path.touch, (self.place,))


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "executed"


def hostile(mark: Path) -> dict[str, bytes]:
    code = f"__import__('pathlib').Path({str(mark)!r}).touch()"
    packed = pickle.dumps(Mark(mark))
    return {
        "x.nc": packed, "x.json": json.dumps({"law": code, "parameters": code, "kind": "theory"}).encode(), "x.pkl": packed,
        "x.npz": packed,
        "x.npy": b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(128) + packed,
        "x.toml": f'law = "{code}"\n[over]\nratio = "{code}"\n'.encode(), "x.csv": f"a,b,y\n1,2,{code}\n".encode() * 30,
        "x.parquet": packed,
        "x.h5": packed, "x.py": code.encode(), "x.yaml": f"!!python/object/apply:os.system ['touch {mark}']".encode(), "x.zarr": packed,
    }  # fmt: skip


def test_unpickling_the_files_would_leave_a_mark(mark: Path) -> None:
    pickle.loads(pickle.dumps(Mark(mark)))
    assert mark.exists()


@pytest.mark.parametrize(
    "command",
    [
        ["sweep", "FILE"], ["reproduce", "FILE"], ["forecast", "FILE", "--target", "y"], ["scaling-fit", "FILE"], ["components", "FILE"],
        ["stop", "FILE"], ["sample-size", "--pilot", "FILE"], ["predict", "ridge", "--ratio", "CODE"], ["verify", "CODE"], ["show", "CODE"],
        ["forecast", "FILE", "--target", "y", "--model", "CODE"], ["compare", "ridge", "--engine", "slurm:FILE"], ["figure", "CODE"],
        ["forecast", "FILE", "--target", "y", "--against", "FILE"],
    ],
)  # fmt: skip
def test_no_command_executes_a_file(command: list[str], mark: Path, tmp_path: Path) -> None:
    code = f"__import__('pathlib').Path({str(mark)!r}).touch()"
    for name, content in hostile(mark).items():
        file = tmp_path / name
        file.write_bytes(content)
        words = [word.replace("FILE", str(file)).replace("CODE", code) for word in command]
        result = CliRunner().invoke(app, words)
        assert result.exit_code != 0
        assert isinstance(result.exception, SystemExit), f"{words}: {result.exception!r}"
        assert not mark.exists(), words
        if "FILE" not in " ".join(command):
            break


def test_no_function_executes_a_file(mark: Path, tmp_path: Path) -> None:
    for name, content in hostile(mark).items():
        file = tmp_path / name
        file.write_bytes(content)
        for read in (ll.reproduce, ll.lab.open_result, ll.lab.read_result, ll.lab.load_sweep, ll.applied.read_table):
            with pytest.raises((Refused, OSError)):
                read(file)
        assert not mark.exists(), name
