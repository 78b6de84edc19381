import concurrent.futures
import multiprocessing
import os
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
import xarray as xr
from sweep_toys import Fragile, ShrunkMean
from threadpoolctl import threadpool_info, threadpool_limits

from limitlab._core.cost import single_threaded
from limitlab.lab import SweepError, sweep
from limitlab.lab.engines import EngineError, available_cores, completed
from limitlab.laws import Ridge

OVER = {"shrink": [0.0, 0.5], "signal": [1.0, 2.0], "rule": ["mean", "median"]}


@pytest.fixture(scope="module")
def serial():
    return sweep(ShrunkMean(), OVER, sizes=[10, 30], seeds=3, with_theory=True)


@pytest.fixture(scope="module")
def dask_client():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("engine", ["serial", "threads", "processes"])
def test_own_engines_give_the_same_bits(engine, serial):
    xr.testing.assert_identical(serial, sweep(ShrunkMean(), OVER, sizes=[10, 30], seeds=3, with_theory=True, engine=engine))


def test_a_foreign_executor_gives_the_same_bits_and_stays_open(serial):
    with concurrent.futures.ThreadPoolExecutor(3) as executor:
        result = sweep(ShrunkMean(), OVER, sizes=[10, 30], seeds=3, with_theory=True, engine=executor)
        assert executor.submit(abs, -1).result() == 1
    xr.testing.assert_identical(serial, result)


class Backwards(concurrent.futures.Executor):
    """An executor that runs what it holds last in, first out, and only when it holds three: order must not matter."""

    def __init__(self):
        self.held = []

    def submit(self, function, /, *arguments, **keywords):
        future = concurrent.futures.Future()
        self.held.append((future, function, arguments))
        if len(self.held) == 3:
            while self.held:
                future_, function_, arguments_ = self.held.pop()
                future_.set_result(function_(*arguments_))
        return future


def test_the_order_does_not_matter():
    over = {"shrink": [0.0, 0.5], "signal": [1.0, 2.0, 3.0]}
    straight = sweep(ShrunkMean(), over, sizes=[10], seeds=2)
    xr.testing.assert_identical(straight, sweep(ShrunkMean(), over, sizes=[10], seeds=2, engine=Backwards()))


def test_dask_gives_the_same_bits(serial, dask_client):
    result = sweep(ShrunkMean(), OVER, sizes=[10, 30], seeds=3, with_theory=True, engine=dask_client)
    xr.testing.assert_identical(serial, result)


def test_dask_failures_are_collected(dask_client):
    with pytest.raises(SweepError) as caught:
        sweep(Fragile(), {"level": [1, 2, 3]}, sizes=[5], seeds=2, engine=dask_client)
    assert len(caught.value.failures) == 2


def test_ridge_is_the_same_with_any_number_of_blas_threads():
    over = {"ratio": [0.5, 2.0], "ridge": [0.1, 1.0]}
    with threadpool_limits(2, user_api="blas"):
        here = sweep(Ridge(), over, sizes=[120], seeds=1)
    there = sweep(Ridge(), over, sizes=[120], seeds=1, engine=2)
    xr.testing.assert_identical(here, there)


# -- failures -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("engine", "how"), [(None, "raise"), ("threads", "raise"), (2, "unpicklable")])
def test_a_failed_task_does_not_lose_the_others(engine, how):
    with pytest.raises(SweepError) as caught:
        sweep(Fragile(how=how), {"level": [0, 1, 2, 3]}, sizes=[5, 6], seeds=2, engine=engine)
    error = caught.value
    good = sweep(Fragile(how="never"), {"level": [0, 1, 2, 3]}, sizes=[5, 6], seeds=2)
    assert [failure.where.split(" (")[0] for failure in error.failures] == [
        f"level = 2, size = {size}, seed = {seed}" for size in (5, 6) for seed in (0, 1)
    ]
    assert "4 of 16 tasks failed" in str(error)
    assert {"raise": "RuntimeError: two is too much", "unpicklable": "UnreachableTarget: out of reach"}[how] in str(error)
    assert "Traceback" in error.failures[0].traceback
    assert np.isnan(error.partial.overlap.sel(level=2)).all()
    assert error.partial.attrs["missing_tasks"] == 4
    kept = error.partial.sel(level=[0, 1, 3])
    assert kept.overlap.shape == good.overlap.sel(level=[0, 1, 3]).shape
    assert np.isfinite(kept.overlap).all()


def test_a_task_that_kills_its_worker_is_found_out():
    with pytest.raises(SweepError) as caught:
        sweep(Fragile(how="die"), {"level": [0, 1, 2, 3]}, sizes=[5], seeds=1, engine=2)
    assert [failure.where.split(" (")[0] for failure in caught.value.failures] == ["level = 2, size = 5, seed = 0"]
    assert "the worker process died" in caught.value.failures[0].error
    assert int(np.isnan(caught.value.partial.overlap).sum()) == 1


def test_failures_of_the_limit_are_collected_too():
    with pytest.raises(SweepError, match="1 of 4 tasks failed") as caught:
        sweep(Fragile(), {"level": [0, 1, 2, 3]})
    np.testing.assert_array_equal(caught.value.partial.overlap, [0.0, 1.0, np.nan, 3.0])


def test_the_only_task_raises_its_own_error():
    with pytest.raises(RuntimeError, match="two is too much"):
        sweep(Fragile(), {"level": [2]}, sizes=[5], seeds=1)


def test_a_law_that_cannot_be_pickled_is_one_clear_line():
    class Local(ShrunkMean):
        """Defined inside a function."""

    with pytest.raises(ValueError, match=r"Local cannot be sent to worker processes .*engine='threads'") as caught:
        sweep(Local(), {"signal": [1.0, 2.0]}, sizes=[5], seeds=2, engine="processes")
    assert "\n" not in str(caught.value)
    sweep(Local(), {"signal": [1.0, 2.0]}, sizes=[5], seeds=2, engine="threads")


def test_what_is_no_engine_is_refused():
    for engine in (3.5, object(), concurrent.futures.ThreadPoolExecutor, [1]):
        with pytest.raises(ValueError, match="is not allowed: give 'serial'"):
            completed(abs, [1], engine)


def test_a_script_without_a_main_guard_is_told(tmp_path):
    script = tmp_path / "unguarded.py"
    script.write_text(
        textwrap.dedent("""
        import sys
        from limitlab.lab.engines import EngineError, completed
        try:
            list(completed(abs, [-1, -2], 1))
        except EngineError as error:
            print("TOLD", error)
        """)
    )
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
    assert "TOLD the worker processes could not start" in run.stdout
    assert "if __name__ == '__main__'" in run.stdout


def test_no_worker_outlives_its_sweep():
    list(completed(abs, [-1, -2, -3], 2))
    results = completed(time.sleep, [0.0, 0.0, 600.0, 600.0, 600.0], 2)
    next(results)
    results.close()  # what an interrupt does
    assert not [child for child in multiprocessing.active_children() if child.name.startswith("Spawn")]


def test_engine_error_is_not_a_bad_input():
    assert issubclass(EngineError, RuntimeError)
    assert 1 <= available_cores() <= (os.cpu_count() or 1)


# -- around the tasks ---------------------------------------------------------------------------------------------------


def test_blas_is_single_threaded_inside_and_restored_outside():
    import scipy.linalg  # noqa: F401  (a library can be limited once it is loaded)

    def threads():
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        assert threads() == {2}
        with single_threaded():
            assert threads() == {1}
            with single_threaded():
                pass
            assert threads() == {1}
        assert threads() == {2}


@pytest.mark.parametrize("engine", [None, "threads"])
def test_progress_counts_every_task(engine):
    seen = []
    sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[5], seeds=3, engine=engine, progress=lambda *a: seen.append(a))
    assert seen == [(done, 6) for done in range(1, 7)]


def test_progress_is_silent_when_not_on_a_terminal(capfd):
    sweep(ShrunkMean(delay=0.6), {"signal": [1.0, 2.0]}, sizes=[5], seeds=1)
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err == ""


def test_progress_bar_appears_when_it_takes_long(capfd):
    sweep(ShrunkMean(delay=0.8), {"signal": [1.0, 2.0]}, sizes=[5], seeds=1, progress=True)
    assert "sweeping ShrunkMean" in capfd.readouterr().err
