"""Tests of the compiled chain of online SGD, with models of the package and with models that are defined elsewhere."""

import math
import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

from limitlab.models.activations import Activation
from limitlab.models.online import BinaryMixture, SpikedCovariance, TeacherStudent, fresh_sample, hitting_times, overlap_path

OWN = """
from typing import NamedTuple

import numpy as np

from limitlab.models.online import overlap_path


class Own(NamedTuple):
    gain: float

    @staticmethod
    def sample(rng, model, m):
        return 1.0, 0.0, m, GAIN * model.gain


print(overlap_path(np.random.default_rng(0), Own(1.0), 0.1, 100, 0.5, np.array([10]))[0])
"""


class Linear(NamedTuple):
    """A linear teacher and student, defined outside the package and without annotations."""

    noise: float

    @staticmethod
    def sample(rng, model, m):
        z, t = rng.standard_normal(), rng.standard_normal()
        w = m * z + math.sqrt(max(0.0, 1 - m * m)) * t
        return z, t, w, 2 * (z + model.noise * rng.standard_normal() - w)


def by_hand(rng, model, m, dimension, step, count):
    """The chain in plain Python (docs/theory/online_sgd.md, eq. 8), with the sample that the compiled code uses."""
    path = [m]
    for _ in range(count):
        z, t, w, gain = fresh_sample(rng, model, m)
        c = step / dimension * gain
        m = (m + c * (z - w * m)) / math.sqrt(1 + c**2 * (z**2 + t**2 + rng.chisquare(dimension - 2) - w**2))
        path.append(m)
    return np.array(path)


@pytest.mark.parametrize(
    "model",
    [
        TeacherStudent(Activation("tanh"), Activation("relu"), 0.3).compiled(),
        SpikedCovariance(2.0).compiled(),
        BinaryMixture(0.4).compiled(),
        Linear(0.5),
    ],
    ids=lambda model: type(model).__name__,
)
def test_compiled_chain_takes_the_steps_of_plain_python(model):
    found = overlap_path(np.random.default_rng(3), model, 0.2, 30, 0.4, np.arange(61))
    np.testing.assert_allclose(found, by_hand(np.random.default_rng(3), model, 0.2, 30, 0.4, 60), rtol=1e-9)
    level = float(np.sort(np.unique(found))[-5])
    time = hitting_times(np.random.default_rng(3), model, 0.2, 30, 0.4, np.array([level]), False, 60)
    assert time.tolist() == [int(np.argmax(found > level))]


def test_a_model_of_one_s_own_is_the_same_chain():
    """Linear neurons have the same path as tables of the package and as a class of this file, for the same random numbers."""
    identity = Activation("identity")
    table = TeacherStudent(identity, identity, 0.5).compiled()
    paths = [
        overlap_path(np.random.default_rng(8), model, 0.1, 50, 0.3, np.array([20, 200])) for model in (table, Linear(0.5))
    ]
    np.testing.assert_allclose(paths[0], paths[1], rtol=1e-8)


@pytest.mark.slow
def test_what_is_kept_on_disk_knows_nothing_of_foreign_models(tmp_path):
    """A model whose source changes is compiled again, and the models of the package run where it cannot be imported."""

    def run(code):
        there = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        return subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env=there, check=True, capture_output=True, text=True
        )

    found = []
    for gain in ("1.0", "50.0"):
        (tmp_path / "own.py").write_text(OWN.replace("GAIN", gain), encoding="utf-8")
        found.append(float(run("import own").stdout))
    assert found[0] != found[1]
    (tmp_path / "own.py").unlink()
    run("from limitlab.laws import OnlinePCA; OnlinePCA(times=0.1).simulate(20, 0)")
