"""Long computations, stopped at any moment and started again: the same numbers to the last bit."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from limitlab._core import files
from limitlab._core.files import SavedState, checkpoint_of, checkpointing
from limitlab.laws import CircleMeanField, NoisyMeanField, OnlineSingleIndex, PopulationFlow, TwoGaussians, TwoLayerDynamics
from limitlab.laws.attention._circle_density import volume_density


class Stop(Exception):
    pass


def stopped_after(monkeypatch, saves):
    """Every state is kept; the computation is stopped when it has kept so many."""
    left = [saves]
    write = files.write_arrays

    def count(path, arrays, about=None):
        write(path, arrays, about)
        left[0] -= 1
        if left[0] == 0:
            raise Stop

    monkeypatch.setattr(files, "write_arrays", count)
    monkeypatch.setattr("limitlab.numerics.two_time._marching.write_arrays", count)


def minibatches():
    return TwoLayerDynamics(activation="tanh", target_function="tanh", times=(0.5, 2.0), experiment_model="sgd")


CASES = {
    "march": (lambda: np.stack(list(TwoLayerDynamics(times=2.0).march(40).paths.values())), 7),
    "PDE": (lambda: NoisyMeanField(neuron="erf", times=(0.1, 0.3), solver_steps=60).theory(), 9),
    "chain": (lambda: OnlineSingleIndex(times=(0.1, 0.5)).simulate(200, 3), 2),
    "gradient flow": (lambda: TwoLayerDynamics(times=(0.5, 2.0)).simulate(20, 3), 3),
    "minibatches": (lambda: minibatches().simulate(20, 3), 5),
    "fresh samples": (lambda: PopulationFlow(times=(0.1, 0.2)).simulate(12, 3), 8),
    "Langevin": (lambda: NoisyMeanField(neuron="erf", times=(0.3, 0.9)).simulate(30, 3), 7),
    "two Gaussians": (lambda: TwoGaussians(times=(0.1, 0.4), test_points=50).simulate(20, 3), 5),
    "volumes": (lambda: volume_density(((0.5, 0.2),), 2.0, [0.0, 0.3, 0.6], cells=60), 9),
    "particles": (lambda: CircleMeanField(times=(0.3, 1.0), solver="particles").theory(), 12),
    "vectors": (lambda: OnlineSingleIndex(times=(0.1, 0.5)).full_experiment(60, [1, 2]), 5),
}


@pytest.mark.parametrize("name", CASES)
def test_stopped_and_started_again_gives_the_same_bits(name, tmp_path, monkeypatch):
    compute, saves = CASES[name]
    monkeypatch.setattr("limitlab.models.online.PIECE", 300)
    monkeypatch.setattr("limitlab.laws.mean_field._training.BLOCK", 20)
    whole = compute()
    with checkpointing(tmp_path, every=0.0):
        with monkeypatch.context() as patched:
            stopped_after(patched, saves)
            with pytest.raises(Stop):
                compute()
        assert len(list(tmp_path.glob("*.state"))) == 1
        again = compute()
    if isinstance(whole, xr.Dataset):
        xr.testing.assert_identical(whole, again)
    else:
        assert np.array_equal(whole, again)
    assert list(tmp_path.iterdir()) == []


def test_another_start_has_another_checkpoint(tmp_path):
    with checkpointing(tmp_path):
        places = {checkpoint_of("a", value).place for value in (1, 1.5, "x", (1, 2), np.arange(3).tobytes())}
        assert len(places) == 5
        assert not checkpoint_of("a", lambda: 0).active
    assert not checkpoint_of("a", 1).active


def test_an_unfinished_file_of_a_killed_run_is_removed(tmp_path):
    checkpoint = SavedState(tmp_path / "x.state", every=0.0)
    checkpoint.offer(lambda: {"a": np.arange(5)})
    script = (
        "import os, sys; from pathlib import Path; from limitlab._core.files import replacing\n"
        "block = replacing(Path(sys.argv[1])); block.__enter__().write_text('half'); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path / "x.state")], check=False).returncode == 9
    assert len(list(tmp_path.iterdir())) == 2
    assert checkpoint.load()["a"].tolist() == [0, 1, 2, 3, 4]
    assert [path.name for path in tmp_path.iterdir()] == ["x.state"]


def test_a_damaged_checkpoint_is_reported_and_not_used(tmp_path):
    kept = SavedState(tmp_path / "x.state", every=0.0)
    kept.offer(lambda: {"a": np.arange(5)})
    (tmp_path / "x.state").write_bytes((tmp_path / "x.state").read_bytes()[:40])
    with pytest.warns(UserWarning, match="is damaged"):
        assert kept.load() is None


SCRIPT = """
import sys
from limitlab.laws import CircleMeanField, NoisyMeanField, OnlineSingleIndex, TwoGaussians, TwoLayerDynamics
works = {
    "march": lambda: TwoLayerDynamics(times=(0.5, 6.0), solver_steps=1200).theory(),
    "PDE": lambda: NoisyMeanField(neuron="erf", times=(0.5, 4.0), solver_steps=600).theory(),
    "chain": lambda: OnlineSingleIndex(times=(0.1, 100.0)).simulate(10_000, 3),
    "volumes": lambda: CircleMeanField(times=(1.0, 20.0), solver="volumes").theory(),
    "Langevin": lambda: NoisyMeanField(times=(1.0, 40.0)).simulate(200_000, 3),
    "two Gaussians": lambda: TwoGaussians(times=(0.1, 20.0)).simulate(800, 3),
    "gradient flow": lambda: TwoLayerDynamics(times=(0.5, 30.0)).simulate(200, 3),
}
print(works[sys.argv[1]]().to_dict())
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
@pytest.mark.parametrize("name", ["march", "PDE", "chain", "volumes", "Langevin", "two Gaussians", "gradient flow"])
def test_killed_runs_end_with_the_same_numbers(name, tmp_path):
    script, folder = tmp_path / "run.py", tmp_path / "kept"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), name]
    whole = subprocess.run(command, capture_output=True, text=True, check=True, timeout=900).stdout
    environment = {**os.environ, "LIMITLAB_CHECKPOINTS": str(folder), "LIMITLAB_CHECKPOINTS_EVERY": "0.2"}
    hits = 0
    for _ in range(3):
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        before = {path: path.stat().st_mtime_ns for path in Path(folder).glob("[!.]*.state")}
        while process.poll() is None and before == {
            path: path.stat().st_mtime_ns for path in Path(folder).glob("[!.]*.state")
        }:
            time.sleep(0.01)
        if process.poll() is None:
            process.kill()
            hits += 1
        process.wait()
    assert hits >= 2
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=900)
    assert done.stdout == whole
    assert not list(folder.glob("[!.]*.state"))
