"""A real `limitlab sweep`, killed with SIGKILL at random moments and started again: the store ends up as if nothing had happened."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from sweep_toys import tree

from limitlab.lab.store import open_result
from limitlab.lab.sweepfile import load_sweep, run_sweep

HERE = Path(__file__).parent

TOY = """
law = "sweep_toys:ShrunkMean"
sizes = [10, 20]
seeds = {seeds}
engine = {engine}
store = "{store}"
with_theory = true
[parameters]
delay = {delay}
[over]
signal = "1:2:4"
shrink = [0.0, 0.5]
rule = ["mean", "median"]
"""

RIDGE = """
law = "Ridge"
sizes = [20, 40]
seeds = {seeds}
engine = {engine}
store = "{store}"
with_theory = true
[over]
ratio = "0.5:2:6log"
ridge = "0.01:1:4log"
"""

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")


def start(file, **options):
    paths = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": paths}
    command = [
        sys.executable,
        str(HERE.parent / "hears_ctrl_c.py"),
        "sweep",
        str(file),
        "--laws",
        str(HERE / "sweep_toys.py"),
    ]
    return subprocess.Popen(command, cwd=file.parent, env=environment, **options)


def wait_until(condition, process=None, seconds=60.0):
    """Until the condition holds or the process has ended by itself."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and (process is None or process.poll() is None):
        if condition():
            return True
        time.sleep(0.001)
    return condition()


def kill_at_random(file, rng, within):
    """Start the sweep and kill it at a random moment after it has opened its store; whether it was still running."""
    process = start(file)
    wait_until(lambda: list(file.parent.glob("x*/**/sweep.json")), process)
    try:
        process.wait(timeout=float(rng.uniform(0, within)))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return True
    return False


def written(folder, text, **settings):
    folder.mkdir()
    (folder / "sweep.toml").write_text(text.format(**settings))
    return folder / "sweep.toml"


def expect_same(tmp_path, text, store, kills, rng, within, **settings):
    """The uninterrupted run happens here, in another process and engine; then kills, then one run to the end."""
    whole = written(tmp_path / "whole", text, store=tmp_path / "whole" / store, **{**settings, "engine": '"serial"'})
    result = run_sweep(load_sweep(whole))
    killed = written(tmp_path / "killed", text, store=store, **settings)
    hits = sum(kill_at_random(killed, rng, within) for _ in range(kills))
    assert start(killed).wait(timeout=120) == 0
    expected, found = tree(tmp_path / "whole"), tree(tmp_path / "killed")
    for files in (expected, found):
        files.pop("sweep.toml")
    assert found.keys() == expected.keys()
    assert [name for name in expected if found[name] != expected[name]] == []
    xr.testing.assert_equal(open_result(tmp_path / "killed" / store), result)
    return hits


def test_a_killed_ridge_sweep_ends_bit_for_bit_like_an_uninterrupted_one(tmp_path):
    rng = np.random.default_rng(1)
    assert expect_same(tmp_path, RIDGE, "x.nc", kills=3, rng=rng, within=0.3, seeds=8, engine='"serial"') > 0


def test_so_does_one_with_worker_processes(tmp_path):
    rng = np.random.default_rng(2)
    assert expect_same(tmp_path, TOY, "x.zarr", kills=2, rng=rng, within=1.5, seeds=8, engine=2, delay=0.005) > 0


@pytest.mark.slow
@pytest.mark.parametrize("store", ["x.nc", "x.zarr", "x"])
@pytest.mark.parametrize("engine", ['"serial"', '"threads"', "2"])
def test_many_kills(tmp_path, store, engine):
    rng = np.random.default_rng([2, len(store), len(engine)])
    within = 3.0 if engine == "2" else 1.2
    hits = expect_same(tmp_path, TOY, store, kills=10, rng=rng, within=within, seeds=12, engine=engine, delay=0.003)
    assert hits >= 3


def test_two_processes_can_share_a_store(tmp_path):
    whole = written(tmp_path / "whole", TOY, store=tmp_path / "whole" / "x.zarr", seeds=8, engine='"serial"', delay=0.0)
    run_sweep(load_sweep(whole))
    shared = written(tmp_path / "shared", TOY, store="x.zarr", seeds=8, engine='"serial"', delay=0.0)
    processes = [start(shared) for _ in range(2)]
    assert wait_until((shared.parent / "x.zarr.cells" / "cells").exists, processes[0])
    processes[0].kill()
    processes[0].wait()
    assert processes[1].wait(timeout=120) == 0
    run_sweep(load_sweep(shared), store=tmp_path / "shared" / "x.zarr")  # cleans up what the killed one may have left
    expected, found = tree(tmp_path / "whole"), tree(tmp_path / "shared")
    for files in (expected, found):
        files.pop("sweep.toml")
    assert found == expected


def children_of(process):
    """Processes whose parent is the given one (Linux)."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        except OSError:
            continue
        if int(fields["PPid"]) == process.pid:
            found.append(int(fields["Pid"]))
    return found


def is_running(number):
    try:
        return "State:\tZ" not in Path(f"/proc/{number}/status").read_text()
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_workers_do_not_outlive_a_killed_sweep(tmp_path):
    file = written(tmp_path / "s", TOY, store="x.nc", seeds=20, engine="2", delay=0.5)
    process = start(file)
    assert wait_until(lambda: list(file.parent.glob("x.nc.cells/cells/*/*.cell")), process)
    workers = children_of(process)
    assert len(workers) >= 2
    process.kill()
    process.wait()
    assert wait_until(lambda: not any(is_running(worker) for worker in workers), seconds=20)


@pytest.mark.parametrize("engine", ['"serial"', "2"])
def test_ctrl_c_says_how_to_go_on(tmp_path, engine):
    file = written(tmp_path / "s", TOY, store="x.nc", seeds=3, engine=engine, delay=0.02)
    process = start(file, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert wait_until(lambda: len(list(file.parent.glob("x.nc.cells/cells/*/*.cell"))) >= 3, process)
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to the workers too
    out, err = process.communicate(timeout=60)
    assert process.returncode not in (0, 1, 2)
    assert "stored in 'x.nc.cells'; the same command runs only the rest" in " ".join((out + err).split())
    assert "Traceback" not in err
    assert not (file.parent / "x.nc").exists()
    before = {path: path.stat().st_mtime_ns for path in file.parent.glob("x.nc.cells/cells/*/*.cell")}
    assert 3 <= len(before) < 2 + 4 * 2 * 2 * 3
    result = run_sweep(load_sweep(file), engine=None, store=file.parent / "x.nc")
    assert all(path.stat().st_mtime_ns == moment for path, moment in before.items())  # kept, not written again
    xr.testing.assert_identical(result, run_sweep(load_sweep(file), engine=None, store=None))


# -- comparisons and reports ---------------------------------------------------------------------------------------------


def killed_until_done(command, folder, cells, kills, rng):
    """Run a command that is killed at random moments, then once to the end; its output and how often it was hit."""
    hits = 0
    for _ in range(kills):
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: list(folder.glob(cells)), process)
        try:
            process.wait(timeout=float(rng.uniform(0.05, 0.6)))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            hits += 1
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    return done, hits


def test_a_killed_comparison_ends_like_an_uninterrupted_one(tmp_path):
    import limitlab as ll

    law = ll.laws.LeastSquaresDescent(ratio=3.0)
    command = [
        sys.executable,
        "-m",
        "limitlab",
        "compare",
        "least-squares-descent",
        "--ratio",
        "3",
        "--size",
        "100,200",
        "--seeds",
        "60",
    ]
    command += ["--engine", "processes", "--store", "x.nc", "--json"]
    done, hits = killed_until_done(command, tmp_path, "x.nc.cells/cells/*/*.cell", 3, np.random.default_rng(3))
    assert hits >= 1
    expected = ll.compare(law, [100, 200], 60)
    xr.testing.assert_equal(open_result(tmp_path / "x.nc"), expected.dataset)
    assert f'"verdict": "{expected.verdict}"' in done.stdout


@pytest.mark.slow  # the killed sweep and the killed comparison test the same store
def test_a_killed_report_ends_like_an_uninterrupted_one(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    command = [sys.executable, "-m", "limitlab", "report", "--laws", "nearest-neighbours", "--workers", "2"]
    (tmp_path / "killed").mkdir(), (tmp_path / "whole").mkdir()
    done, _ = killed_until_done(command, tmp_path / "killed", "report.html.cells/*/*.cell", 2, np.random.default_rng(4))
    assert done.returncode == 0, done.stderr
    subprocess.run(command, cwd=tmp_path / "whole", capture_output=True, timeout=300, check=True)
    texts = [without_seconds((tmp_path / name / "report.html").read_text()) for name in ("killed", "whole")]
    assert texts[0] == texts[1]


def without_seconds(page):
    """A report without the times that its checks took."""
    ledger = re.sub(r'<td class="number">[0-9.]*</td></tr>', "", page)
    return re.sub(r"<dt>Time</dt><dd>[^<]*</dd>|data-seconds=\"[0-9.]*\"", "", ledger)
