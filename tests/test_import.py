"""`import limitlab` is light: no JAX, no matplotlib, no scikit-learn, and little time beyond its three foundations."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {"jax", "matplotlib", "sklearn", "numba", "panel", "distributed"}


def fresh(statement: str) -> tuple[float, set[str]]:
    """Seconds that a statement takes in a new interpreter, and the top-level modules loaded after it."""
    program = (
        "import sys, time\n"
        "start = time.perf_counter()\n"
        f"{statement}\n"
        "seconds = time.perf_counter() - start\n"
        "import json\n"
        "print(json.dumps([seconds, sorted({name.split('.')[0] for name in sys.modules})]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    seconds, modules = json.loads(done.stdout)
    return float(seconds), set(modules)


@pytest.mark.parametrize("statement", ["import limitlab", "import limitlab.laws", "import limitlab; limitlab.laws.Ridge()"])
def test_heavy_libraries_stay_out(statement: str) -> None:
    _, modules = fresh(statement)
    assert not modules & HEAVY


def test_import_costs_little_beyond_its_foundations() -> None:
    """Interleaved and best of three, as a ratio: other work on the machine slows both sides alike."""
    ours, foundations = [], []
    for _ in range(3):
        foundations.append(fresh("import numpy, xarray, pydantic")[0])
        ours.append(fresh("import limitlab, limitlab.laws")[0])
    assert min(ours) < 2 * min(foundations)
    assert min(fresh("import limitlab")[0] for _ in range(3)) < min(foundations)
