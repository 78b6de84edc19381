"""One thread per process, repeatable examples, no window system: what every test may take for granted.

Floating-point warnings are errors (`filterwarnings` in pyproject.toml): a division by zero that is meant says so with
`np.errstate` where it happens.
"""

from __future__ import annotations

import os

# Before NumPy is imported: its BLAS reads these once. They also reach the processes that tests start.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_variable] = "1"
os.environ["MPLBACKEND"] = "Agg"
os.environ["JAX_PLATFORMS"] = "cpu"

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

from limitlab.lab.store import caching

# The same examples on every run, so that a red test stays red; HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("default", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", deadline=None, max_examples=500, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


collect_ignore = ["snapshot"]  # a script, not tests


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    """Libraries that a plugin loaded before this file was read are limited too."""
    with threadpool_limits(1):
        yield


@pytest.fixture
def shared_cells(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[None]:
    """Comparisons share their draws within one run of the tests: contract, figures, claims and report look at the same ones."""
    base = tmp_path_factory.getbasetemp()
    with caching((base if worker_id == "master" else base.parent) / "cells"):
        yield
