"""What a sweep will take, from a few timed cells."""

from __future__ import annotations

import time

import pytest
from sweep_toys import ShrunkMean

from limitlab.lab import sweep
from limitlab.lab.sweepfile import Estimate, estimate

OVER = {"signal": [1.0, 2.0, 3.0, 4.0], "rule": ["mean", "median"]}


def test_cells_work_and_memory_of_a_sweep(tmp_path):
    law, store = ShrunkMean(delay=0.02), tmp_path / "x.nc"
    found = estimate(law, OVER, sizes=[10, 20], seeds=3)
    assert (found.cells, found.done, found.timed) == (48, 0, 6)
    assert found.seconds >= 48 * 0.02  # more on a busy machine
    assert found.longest >= 0.02
    assert 2e7 < found.worker_memory < 2e9
    assert found.result_memory == 48 * 2 * 8
    assert 48 * 100 < found.disk < 48 * 2_000
    sweep(ShrunkMean(delay=0.02), {**OVER, "signal": [1.0, 2.0]}, sizes=[10, 20], seeds=3, store=store)
    rest = estimate(law, OVER, sizes=[10, 20], seeds=3, store=store)
    assert (rest.cells, rest.done) == (48, 24)
    assert rest.seconds >= 24 * 0.02
    assert rest.wall(2) < rest.wall(1)


def test_the_wall_time_has_a_floor_that_workers_do_not_lift():
    found = Estimate(1000, 0, 3, 100.0, 1.0, 0.2, 0.01, 1.0, 0, 0, 0)
    assert found.wall(1) == 101.0
    assert found.wall(2) == 1.0 + 50.0 + 0.2
    assert found.wall(1000) == 1.0 + 1000 * 0.01


@pytest.mark.slow
def test_the_wall_time_on_two_workers_is_what_it_takes():
    law = ShrunkMean(delay=0.05)
    told = estimate(law, OVER, sizes=[10], seeds=40)
    start = time.perf_counter()
    sweep(law, OVER, sizes=[10], seeds=40, engine=2)
    took = time.perf_counter() - start
    print(f"told {told.wall(2):.1f} s, took {took:.1f} s")
    assert 0.6 < took / told.wall(2) < 1.7
