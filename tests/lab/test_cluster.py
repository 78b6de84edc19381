"""Clusters by name: the files, the refusals within seconds, and a sweep that survives its workers and its driver."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import xarray as xr
from sweep_toys import ShrunkMean, tree

from limitlab.lab import cluster, engines, sweep
from limitlab.lab.cluster import EngineError, SlurmFile, read_slurm
from limitlab.lab.engines import check_engine, completed
from limitlab.lab.sweepfile import load_sweep, run_sweep

HERE = Path(__file__).parent
FILES = HERE.parents[1] / "docs" / "howto" / "cluster"
distributed = pytest.importorskip("distributed")


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(cluster, "WORKER_SECONDS", 1.0)
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 1.0)
    monkeypatch.setattr(engines, "CHECK_SECONDS", 0.2)


@pytest.fixture
def workerless():
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=None, scheduler_port=0) as own:
        yield own


# -- names and files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("local-cluster:no", "write local-cluster, or local-cluster:2"),
        ("local-cluster:0", "write local-cluster, or local-cluster:2"),
        ("tcp://host", "ends in a port"),
        ("slurm:/nowhere/x.toml", "Slurm file '/nowhere/x.toml' cannot be read: No such file"),
        ("local-clusters", "did you mean 'local-cluster'"),
        ("tcpp://host:1", "is not known"),
    ],
)
def test_bad_names_are_refused_before_anything_starts(engine, message):
    with pytest.raises(ValueError, match=message):
        check_engine(engine)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cores = 8", "the entry 'memory' is missing .memory of one job"),
        ('cores = 0\nmemory = "1GB"', "the entry 'cores' = 0 is not allowed"),
        ('cores = 2\nmemory = "lots"', "the entry 'memory' = 'lots' is not allowed"),
        ('core = 2\nmemory = "1GB"', "there is no entry 'core': did you mean 'cores'"),
        ('cores = 2\nmemory = "1GB"\nwalltime = "soon"', "'walltime' = 'soon' is not allowed"),
        ("cores = ", "is not valid TOML"),
    ],
)
def test_a_bad_slurm_file_is_one_line(tmp_path, text, message):
    file = tmp_path / "slurm.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        read_slurm(file)
    assert "\n" not in str(caught.value)


def test_the_slurm_file_of_the_docs_makes_the_job_that_it_says(tmp_path, monkeypatch):
    jobqueue = pytest.importorskip("dask_jobqueue")
    monkeypatch.chdir(tmp_path)  # a folder for its logs is made where one stands
    wanted = read_slurm(FILES / "slurm.toml")
    with jobqueue.SLURMCluster(**wanted.arguments(), scheduler_options={"dashboard_address": None}) as own:
        script = own.job_script()
    assert "#SBATCH -p cpu" in script
    assert "#SBATCH --cpus-per-task=8" in script
    assert "#SBATCH -t 04:00:00" in script
    assert "#SBATCH --constraint=avx2" in script
    lines = (
        "export OMP_NUM_THREADS=1",
        "source ~/.venv/bin/activate",
        "dask_worker" if "dask_worker" in script else " dask worker",
    )
    assert [script.index(line) for line in lines] == sorted(script.index(line) for line in lines)
    assert "--nthreads 1 " in script
    assert "--nworkers 8 " in script


def test_the_files_of_the_docs_are_well_formed():
    yaml = pytest.importorskip("yaml")
    documents = list(yaml.safe_load_all((FILES / "kubernetes.yaml").read_text()))
    assert [document["kind"] for document in documents] == ["Service", "Deployment", "Deployment", "Job"]
    names = {document["metadata"]["name"] for document in documents}
    worker, job = documents[2], documents[3]
    address = worker["spec"]["template"]["spec"]["containers"][0]["args"][2]
    assert address.removeprefix("tcp://").partition(":")[0] in names
    assert job["spec"]["template"]["spec"]["containers"][0]["args"][-1] == address
    check_engine(address)
    for document in documents[1:3]:
        assert document["spec"]["selector"]["matchLabels"] == document["spec"]["template"]["metadata"]["labels"]
    subprocess.run(["bash", "-n", str(FILES / "driver.sh")], check=True)


def test_a_slurm_file_asks_for_one_worker_of_one_thread_per_core():
    arguments = SlurmFile(cores=4, memory="8 GB").arguments()
    assert arguments["cores"] == arguments["processes"] == 4
    assert "export OMP_NUM_THREADS=1" in arguments["job_script_prologue"]
    assert "queue" not in arguments


# -- nothing hangs ----------------------------------------------------------------------------------------------------------


def test_no_scheduler_at_an_address(impatient):
    with pytest.raises(EngineError, match=r"no Dask scheduler answers at 'tcp://127\.0\.0\.1:9'"):
        list(completed(abs, [-1, -2], "tcp://127.0.0.1:9"))


def test_a_scheduler_without_workers(impatient, workerless):
    with pytest.raises(EngineError, match=r"has no workers \(waited 1 s\)"):
        sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[5], seeds=2, engine=workerless.scheduler_address)
    with distributed.Client(workerless) as client, pytest.raises(EngineError, match="has no workers"):
        list(completed(abs, [-1, -2], client))


def test_a_client_whose_scheduler_is_closed(impatient, workerless):
    client = distributed.Client(workerless)
    workerless.close()
    with pytest.raises(EngineError, match=r"Dask scheduler at .* (has stopped|does not answer)"):
        list(completed(abs, [-1, -2], client))
    client.close()
    with pytest.raises(EngineError, match="has stopped"):
        list(completed(abs, [-1, -2], client))


def test_a_scheduler_that_closes_during_the_run(impatient):
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as own,
        distributed.Client(own) as client,
    ):
        results = completed(time.sleep, [0.0, 3.0, 3.0], client)
        assert next(results)[0] == 0
        own.loop.add_callback(own.scheduler.close)
        with pytest.raises(EngineError, match="Dask"):
            list(results)


# -- the same numbers -------------------------------------------------------------------------------------------------------

SWEEP = """
law = "sweep_toys:ShrunkMean"
sizes = [10, 20]
seeds = {seeds}
engine = "{engine}"
store = "{store}"
[parameters]
delay = {delay}
[over]
signal = "1:2:{points}"
rule = ["mean", "median"]
"""


def written(folder, **settings):
    folder.mkdir()
    (folder / "sweep.toml").write_text(SWEEP.format(**settings))
    return folder / "sweep.toml"


def start(file):
    paths = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "limitlab", "sweep", str(file)]
    return subprocess.Popen(command, cwd=file.parent, env={**os.environ, "PYTHONPATH": paths}, start_new_session=True)


def workers_of(process):
    """Processes that a local cluster started: spawned descendants of the driver (Linux)."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            session = int((folder / "stat").read_text().rpartition(")")[2].split()[3])
        except (OSError, ValueError, IndexError):
            continue
        if session == process.pid and b"spawn_main" in command:
            found.append(int(folder.name))
    return sorted(found)


def cells_in(folder):
    return len(list(folder.glob("x.zarr.cells/cells/*/*.cell")))


def wait_until(condition, process, seconds=300.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        if condition():
            return True
        time.sleep(0.05)
    return False


def killed_and_resumed(tmp_path, points, seeds, delay):
    """A sweep on a local cluster of 2, of which one worker is killed, then the driver; the same command again; and a serial run."""
    total = points * 2 * 2 * seeds
    whole = written(
        tmp_path / "whole", points=points, seeds=seeds, delay=delay, engine="serial", store=tmp_path / "whole" / "x.zarr"
    )
    text = dict(points=points, seeds=seeds, delay=delay, engine="local-cluster:2", store="x.zarr")
    killed = written(tmp_path / "killed", **text)
    process = start(killed)
    assert wait_until(lambda: cells_in(killed.parent) > total // 10, process)
    workers = workers_of(process)
    assert len(workers) >= 2
    os.kill(workers[-1], signal.SIGKILL)
    after = cells_in(killed.parent)
    assert wait_until(lambda: cells_in(killed.parent) > max(after, total // 2), process)  # the other one goes on
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    left = cells_in(killed.parent)
    assert total // 2 <= left < total
    process = start(killed)
    assert process.wait(timeout=600) == 0
    expected = run_sweep(load_sweep(whole))
    with xr.open_zarr(killed.parent / "x.zarr", chunks=None) as found:
        for name in expected.data_vars:
            assert found[name].values.tobytes() == expected[name].values.tobytes()
    return tree(killed.parent / "x.zarr"), tree(tmp_path / "whole" / "x.zarr"), left, total


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_2000_cells_on_a_local_cluster_with_a_killed_worker_and_a_killed_driver(tmp_path):
    # 25 x 2 x 2 x 20 = 2,000 cells; `delay` is a parameter of the law, so the serial run has to have it too
    found, expected, left, total = killed_and_resumed(tmp_path, points=25, seeds=20, delay=0.002)
    assert total == 2000
    print(f"{left} of {total} cells were kept over the kill")
    assert found == expected


@pytest.mark.slow
def test_a_local_cluster_by_its_name_gives_the_same_bits_with_one_blas_thread():
    here = sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[10], seeds=3)
    there = sweep(ShrunkMean(), {"signal": [1.0, 2.0]}, sizes=[10], seeds=3, engine="local-cluster:2")
    xr.testing.assert_identical(here, there)
