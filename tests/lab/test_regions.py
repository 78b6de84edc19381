"""Results that are assembled block by block: what is on disk is what the assembly in memory gives, whatever is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from sweep_toys import Decay, Fragile, ShrunkMean, tree

from limitlab.lab import SweepError, store, sweep
from limitlab.lab._sweep import sweep_cost
from limitlab.lab.store import Cells, open_result
from limitlab.laws import Draw, Law, observable, parameter


class Kinds(Law):
    """Values of every type, some of which change over the grid."""

    observables = {name: observable(name) for name in ("word", "number", "flag", "grows")} | {
        "samples": observable("samples", dims=("sample",)),
        "ragged": observable("entries", dims=("entry",)),
    }
    level: int = parameter(0, "level", least=0)
    times: tuple[float, ...] = parameter((0.0, 1.0, 2.0), "times", kind="coordinate", least=0)

    def predicted(self, times: Any) -> dict[str, Any]:
        raise AssertionError("not asked for")

    def measured(self, draw: Draw, times: Any) -> dict[str, Any]:
        drawn = draw.rng.standard_normal(4)
        return {
            "word": np.full(3, "x" * (self.level + 1)),
            "number": np.arange(3) + self.level,
            "flag": times > self.level,
            "grows": np.arange(3, dtype=np.int8 if self.level < 2 else np.float32) / (1 if self.level < 2 else 2),
            "samples": drawn,
            "ragged": np.zeros(2 if self.level < 3 else 3),
        }


CASES = {
    "draws and limit": (
        ShrunkMean(),
        dict(over={"shrink": [0.0, 0.5], "rule": ["mean", "median"], "signal": [1.0, 2.0, 3.0]}, sizes=[10, 20], seeds=2),
        dict(with_theory=True),
    ),
    "limit, lanes before loops": (
        Decay(level=0.3),
        dict(over={"speed": [1.0, 2.0, 3.0], "level": [0.1, 0.2], "times": [0.0, 0.5]}),
        {},
    ),
    "one point of time": (Decay(), dict(over={"level": [0.1, 0.2, 0.7]}, sizes=[10], seeds=2), {}),
    "only times": (Decay(), dict(over={"times": [0.0, 0.5, 1.0]}), {}),
    "types": (Kinds(), dict(over={"level": [0, 1, 2, 3]}, sizes=[10], seeds=3), {}),
}


@pytest.mark.parametrize("block", [250, 64_000_000])
@pytest.mark.parametrize("name", CASES)
def test_blocks_of_any_size_give_what_memory_gives(name, block, tmp_path, monkeypatch):
    law, grid, options = CASES[name]
    monkeypatch.setattr(store, "BLOCK", block)
    expected = sweep(law, **grid, **options)
    found = sweep(law, **grid, **options, store=tmp_path / "x.zarr")
    xr.testing.assert_identical(found, expected)
    assert list(found.data_vars) == list(expected.data_vars)
    assert {name: var.dtype for name, var in found.variables.items()} == {n: v.dtype for n, v in expected.variables.items()}
    assert found.attrs.keys() == expected.attrs.keys()
    xr.testing.assert_identical(open_result(tmp_path / "x.zarr"), expected)
    with xr.open_zarr(tmp_path / "x.zarr", chunks=None) as plain:  # as anybody opens it, nothing of ours is needed
        xr.testing.assert_identical(plain.load(), expected)
    found.to_netcdf(tmp_path / "again.nc", engine="h5netcdf")


def test_a_large_result_is_read_when_it_is_used(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "LOADED", 100)
    over = {"signal": np.linspace(1, 2, 5)}
    found = sweep(ShrunkMean(), over, sizes=[10], seeds=4, store=tmp_path / "x.zarr")
    assert not isinstance(found.mean_bias.variable._data, np.ndarray)
    xr.testing.assert_identical(found.load(), sweep(ShrunkMean(), over, sizes=[10], seeds=4))


def test_nan_in_a_limit_is_named_and_leaves_no_result(tmp_path):
    class Hole(Decay):
        def predicted(self, times, speed):
            return {"overlap": np.where((speed == 2) & (self.level == 0.2), np.nan, 1.0) + 0 * times}

    with pytest.raises(FloatingPointError, match=r"NaN for overlap at level = 0\.2, speed = 2\.0"):
        sweep(Hole(), {"level": [0.1, 0.2], "speed": [1.0, 2.0]}, store=tmp_path / "x.zarr")
    assert not (tmp_path / "x.zarr").exists()


def test_cells_that_vanish_before_the_assembly_are_not_zeros(tmp_path, monkeypatch):
    over = {"signal": [1.0, 2.0]}
    sweep(ShrunkMean(), over, sizes=[10], seeds=2, store=tmp_path / "x.zarr")
    monkeypatch.setattr(store, "MEMORY", 0)
    read, seen = Cells.read, []
    monkeypatch.setattr(Cells, "read", lambda self, key: None if key in seen else seen.append(key) or read(self, key))
    with pytest.raises(OSError, match="4 cells were damaged or removed while the result was assembled"):
        sweep(ShrunkMean(), over, sizes=[10], seeds=2, store=tmp_path / "x.zarr")


def test_a_partial_result_that_would_not_fit_is_not_assembled(tmp_path, monkeypatch):
    for memory, fits in ((4e9, True), (1e3, False)):
        monkeypatch.setattr("limitlab.lab._sweep.memory_limit", lambda memory=memory: memory)
        with pytest.raises(SweepError) as stopped:
            sweep(Fragile(), {"level": [0, 1, 2, 3]}, sizes=[5], seeds=1, store=tmp_path / "x.zarr")
        assert (stopped.value.partial is not None) == fits


def test_what_is_assembled_in_blocks_may_be_larger_than_the_memory():
    over, wide = {"speed": np.linspace(1, 2, 1000)}, Decay(times=tuple(np.linspace(0, 1, 1000)))
    whole, blocks = (sweep_cost(wide, over, [10], 1000, in_blocks)[1].memory for in_blocks in (False, True))
    assert whole > 40e9  # 10^9 numbers, and copies of them
    assert blocks < 3.5e9  # mostly the 10^6 tasks


KILLED = """
import os, signal, sys
sys.path.insert(0, {here!r})
from limitlab.lab import store, sweep
from sweep_toys import ShrunkMean
store.BLOCK = 100
flush, left = store.Region.flush, [7]
def killed(self):
    flush(self)
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
store.Region.flush = killed
sweep(ShrunkMean(), {{"signal": [1.0, 2.0]}}, sizes=[10], seeds={seeds}, store={store!r})
"""


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_kill_during_the_assembly_leaves_the_earlier_result_whole(tmp_path):
    place = tmp_path / "x.zarr"
    over = {"signal": [1.0, 2.0]}
    earlier = sweep(ShrunkMean(), over, sizes=[10], seeds=4, store=place)
    script = KILLED.format(here=str(Path(__file__).parent), seeds=20, store=str(place))
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    half = [entry for entry in tmp_path.iterdir() if entry.name.endswith(".tmp")]
    assert len(half) == 1
    xr.testing.assert_identical(open_result(place), earlier)
    xr.testing.assert_identical(sweep(ShrunkMean(), over, 10, 20, store=place), sweep(ShrunkMean(), over, 10, 20))
    assert not half[0].exists()
    sweep(ShrunkMean(), over, 10, 20, store=tmp_path / "other" / "x.zarr")
    assert tree(place) == tree(tmp_path / "other" / "x.zarr")


LARGE = """
import re
import numpy as np
from limitlab.lab import sweep
from limitlab.laws import Law, observable, parameter

class Wide(Law):
    "Many numbers in every draw."
    observables = {{"samples": observable("samples", dims=("sample",))}}
    level: float = parameter(0.0, "level")
    def measured(self, draw):
        return {{"samples": self.level + draw.rng.random(25_000)}}

def peak():
    return 1024 * int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])  # getrusage begins with the parent's

sweep(Wide(), {{"level": [1.0, 2.0]}}, 10, 2, store={store!r} + "/small.zarr")
before = peak()
result = sweep(Wide(), {{"level": np.linspace(1, 2, 30)}}, 10, 100, store={store!r} + "/x.zarr")
alone = Wide(level=result.level[3].item()).simulate(10, 7).samples
print(result.nbytes, peak() - before, bool((result.samples[3, 0, 7] == alone).all()))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_that_of_a_block_and_not_of_the_result(tmp_path):
    script = LARGE.format(store=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    size, peak, same = done.stdout.split()
    assert int(size) > 600e6
    assert int(peak) < 350e6  # 100 MB of cells, a block of 64 MB, copies of it on the way to the disk
    assert same == "True"
