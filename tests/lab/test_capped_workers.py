"""Worker processes whose running tasks can be cancelled and whose memory is capped."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from sweep_toys import ShrunkMean

from limitlab.lab import sweep
from limitlab.lab.engines import CappedWorkers, WorkerDied

OVER = {"shrink": [0.0, 0.5], "signal": [1.0, 2.0]}


def count_up(report: Any, end: int) -> int:
    for number in range(end):
        report(number)
    return os.getpid()


def sleep_in(file: Path) -> None:
    file.write_text(str(os.getpid()))
    time.sleep(600)


def allocate(megabytes: int) -> int:
    return int(np.ones(megabytes * 2**17).sum())


def unpicklable() -> Any:
    return lambda: None


class Unpicklable(Exception):
    def __init__(self, first: str, second: str):
        super().__init__(first)


def fail() -> None:
    raise Unpicklable("these words", "other words")


@pytest.fixture(scope="module")
def workers() -> Iterator[CappedWorkers]:
    made = CappedWorkers(1, megabytes=300)
    yield made
    made.shutdown(cancel_futures=True)


def until(wanted: Any, seconds: float = 20) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := wanted():
            return value
        time.sleep(0.01)
    raise AssertionError(f"not within {seconds} s")


def gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_sweep_gives_the_same_bits(workers: CappedWorkers) -> None:
    draws = dict(over=OVER, sizes=[10, 30], seeds=3)
    xr.testing.assert_identical(sweep(ShrunkMean(), **draws, engine=workers), sweep(ShrunkMean(), **draws))


def test_parts_arrive_in_order_and_a_worker_serves_many_tasks(workers: CappedWorkers) -> None:
    parts: list[int] = []
    first = workers.submit_with_parts(count_up, parts.append, 5).result(30)
    assert parts == [0, 1, 2, 3, 4]
    assert first == workers.submit_with_parts(count_up, parts.append, 1).result(30) != os.getpid()


def test_cancelling_a_running_task_ends_its_process_and_frees_the_place(workers: CappedWorkers, tmp_path: Path) -> None:
    file = tmp_path / "process"
    future, queued = workers.submit(sleep_in, file), workers.submit(abs, -3)
    process = int(until(lambda: file.exists() and file.read_text()))
    assert not gone(process)
    assert future.cancel()
    assert queued.result(30) == 3
    assert gone(process)
    until(lambda: workers.unfinished == 0)


def test_a_queued_task_is_cancelled_without_a_process(workers: CappedWorkers, tmp_path: Path) -> None:
    running, queued = workers.submit(sleep_in, tmp_path / "first"), workers.submit(sleep_in, tmp_path / "second")
    until((tmp_path / "first").exists)
    assert queued.cancel()
    assert running.cancel()
    assert workers.submit(abs, -1).result(30) == 1
    assert not (tmp_path / "second").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the cap on memory is tested on Linux")
def test_memory_beyond_the_cap_is_an_error_of_the_task(workers: CappedWorkers) -> None:
    assert workers.submit(allocate, 100).result(30) == 100 * 2**17
    with pytest.raises(MemoryError):
        workers.submit(allocate, 2000).result(30)
    assert workers.submit(allocate, 100).result(30) == 100 * 2**17


def test_errors_come_back_and_a_dead_process_is_an_error(workers: CappedWorkers) -> None:
    with pytest.raises(ZeroDivisionError):
        workers.submit(divmod, 1, 0).result(30)
    with pytest.raises(RuntimeError, match="Unpicklable: these words"):
        workers.submit(fail).result(30)
    with pytest.raises(RuntimeError, match="cannot be sent back"):
        workers.submit(unpicklable).result(30)
    with pytest.raises(WorkerDied):
        workers.submit(os._exit, 3).result(30)
    assert workers.submit(abs, -1).result(30) == 1


def test_shutting_down_ends_running_tasks_and_refuses_new_ones(tmp_path: Path) -> None:
    workers = CappedWorkers(1, megabytes=100)
    future = workers.submit(sleep_in, tmp_path / "process")
    process = int(until(lambda: (tmp_path / "process").exists() and (tmp_path / "process").read_text()))
    workers.shutdown(cancel_futures=True)
    assert future.cancelled()
    until(lambda: gone(process))
    with pytest.raises(RuntimeError, match="shut down"):
        workers.submit(abs, -1)


def test_no_process_outlives_the_program(tmp_path: Path) -> None:
    """Neither one that ends while a task runs, nor one that is killed."""
    program = textwrap.dedent(
        """
        import os, pathlib, sys, time
        sys.path.insert(0, sys.argv[1])
        from test_capped_workers import sleep_in, until
        from limitlab.lab.engines import CappedWorkers
        file = pathlib.Path(sys.argv[2])
        CappedWorkers(1, megabytes=100).submit(sleep_in, file)
        until(lambda: file.exists() and file.read_text())
        if sys.argv[3] == "killed":
            os.kill(os.getpid(), 9)
        """
    )
    for end in ("killed", "ended"):
        file = tmp_path / end
        subprocess.run([sys.executable, "-c", program, str(Path(__file__).parent), str(file), end], check=False, timeout=60)
        process = int(file.read_text())
        until(lambda process=process: gone(process))


@pytest.mark.parametrize(("options", "name"), [((0, 100), "engine"), ((1, 0), "megabytes")])
def test_what_is_no_number_of_workers_or_megabytes_is_refused(options: tuple[int, int], name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} = 0 is not allowed"):
        CappedWorkers(*options)
